/*
 * os/lane.h: the bytes of one file on their way, in order, through up to two stations at once: one that writes them and one that looks
 * at them (a hash).
 *
 * A lane has a few slots. Its owner fills one while others are written and looked at; a slot is free again when both stations are done
 * with it. Bytes can also be lent: they stay where they are, and must, until the lane is flushed. Lanes of one group share the threads that
 * look: those take two lanes at once where there are two, as two hashes on one core are twice as fast as one (codec/sha256_streams.h).
 *
 *     pawl_lanes_new -> pawl_lane_open -> pawl_lane_room, pawl_lane_filled ... -> pawl_lane_flush -> pawl_lane_close -> pawl_lanes_free
 *
 * A lane belongs to one thread at a time; lanes of one group to several. Where no thread can be had, and where none is wanted, its owner
 * does the stations' work himself.
 */
#ifndef PAWL_OS_LANE_H
#define PAWL_OS_LANE_H

#include "os/file.h"

struct pawl_lanes;
struct pawl_lane;

/* Both contexts of taps, each by bytes of its own, as many of one as of the other. */
typedef void pawl_tap_two_fn(void *a, const void *a_data, void *b, const void *b_data, size_t bytes);
typedef enum pawl_status pawl_lane_write_fn(void *context, const void *data, size_t bytes, struct pawl_error *err);

/* `two` (may be NULL) serves the taps of all lanes of the group; `threads` look, at most 8, with 0 every owner himself. */
enum pawl_status pawl_lanes_new(struct pawl_lanes **ret_lanes, pawl_tap_two_fn *two, unsigned threads,
                                struct pawl_error *err);
/* Its lanes are closed. */
void pawl_lanes_free(struct pawl_lanes *lanes);

struct pawl_lane_options {
    struct pawl_tap tap;
    pawl_lane_write_fn *write; /* NULL: nothing is written */
    void *write_context;
    bool has_writer; /* by a thread of the lane's own */
    size_t slots;    /* wanted, at most 8; 0: everything is lent */
};

/* PAWL_BUSY: fewer than two slots are left; do without a lane. `lanes` must live longer than the lane. */
enum pawl_status pawl_lane_open(struct pawl_lane **ret_lane, struct pawl_lanes *lanes,
                                const struct pawl_lane_options *options, struct pawl_error *err);
/* Room to fill, at least 1 byte; the same again until pawl_lane_filled. */
enum pawl_status pawl_lane_room(struct pawl_lane *lane, void **ret_room, size_t *ret_bytes, struct pawl_error *err);
/* A full slot goes on its way. */
enum pawl_status pawl_lane_filled(struct pawl_lane *lane, size_t bytes, struct pawl_error *err);
/* What is in the slot goes first. */
enum pawl_status pawl_lane_lend(struct pawl_lane *lane, const void *data, size_t bytes, struct pawl_error *err);
/* The same, and `done(context)` is called, by any thread and with the lane's group locked, when both stations are done with these bytes;
 * of a lane that is closed before, never. */
enum pawl_status pawl_lane_lend_until(struct pawl_lane *lane, const void *data, size_t bytes,
                                      void (*done)(void *context), void *context, struct pawl_error *err);
/* Wait until all is written and looked at. An error of the writing is told here at the latest, and again by every later call. */
enum pawl_status pawl_lane_flush(struct pawl_lane *lane, struct pawl_error *err);
/* What is still under way is dropped. Fine with NULL. */
void pawl_lane_close(struct pawl_lane *lane);

#endif
