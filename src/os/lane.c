/* Lanes: a queue of spans each, two counters that chase its end, and the threads that move them. */
#include "os/lane.h"

#include <assert.h>
#include <stdlib.h>
#include "os/slots.h"
#include "os/thread.h"

#define THREADS_MAX 8
#define LANE_SLOTS_MAX 8
#define QUEUE 16 /* more than there are slots: lent bytes queue as well */

/* Looked at in one go when no second lane has anything: short enough that the two soon go together again. */
#define ALONE_BYTES ((size_t)256 << 10)

struct item {
    const unsigned char *data;
    size_t bytes;
    int slot;                    /* -1: lent */
    void (*done)(void *context); /* NULL: nobody waits for it */
    void *done_context;
};

struct pawl_lane {
    struct pawl_lanes *lanes;
    struct pawl_lane *next;
    struct pawl_lane_options options;
    unsigned char *slots[LANE_SLOTS_MAX];
    bool is_free[LANE_SLOTS_MAX];
    size_t n_slots;
    int filling; /* the slot that the owner fills; -1: none */
    size_t filled;

    /* Under the group's mutex: items in the order of the file, by the number of each; number n is at n % QUEUE. */
    struct item items[QUEUE];
    uint64_t submitted, written, tapped, retired;
    size_t tapped_bytes; /* of item `tapped` */
    bool is_tapping, is_closing;
    enum pawl_status status; /* of the writing; the first error */
    struct pawl_error error;
    pthread_cond_t moved;    /* for the owner: something was done */
    pthread_cond_t has_work; /* for the lane's writer */
    pthread_t writer;
    bool has_writer;
};

struct pawl_lanes {
    pthread_mutex_t mutex;
    pthread_cond_t has_taps; /* for the threads that look */
    pawl_tap_two_fn *two;
    struct pawl_lane *first;
    size_t n_lanes;
    pthread_t threads[THREADS_MAX];
    unsigned n_threads;
    bool is_ending;
};

/* ---- the stations; the mutex is held ---- */

/* Slots that both stations are done with are free. */
static void
retire(struct pawl_lane *lane)
{
    uint64_t done = lane->written < lane->tapped ? lane->written : lane->tapped;
    if (lane->retired == done && !lane->is_closing)
        return; /* waking the owner for nothing costs as much as looking at some 20 KiB */
    for (; lane->retired < done; lane->retired++) {
        const struct item *item = &lane->items[lane->retired % QUEUE];
        if (item->slot >= 0)
            lane->is_free[item->slot] = true;
        if (item->done != NULL)
            item->done(item->done_context);
    }
    (void)pthread_cond_signal(&lane->moved);
}

static bool
has_tap_work(const struct pawl_lane *lane)
{
    return !lane->is_tapping && !lane->is_closing && lane->tapped < lane->submitted;
}

static size_t
tap_left(const struct pawl_lane *lane, const unsigned char **ret_data)
{
    const struct item *item = &lane->items[lane->tapped % QUEUE];
    *ret_data = item->data + lane->tapped_bytes;
    return item->bytes - lane->tapped_bytes;
}

static void
tap_done(struct pawl_lane *lane, size_t bytes)
{
    lane->is_tapping = false;
    lane->tapped_bytes += bytes;
    if (lane->tapped_bytes == lane->items[lane->tapped % QUEUE].bytes) {
        lane->tapped++;
        lane->tapped_bytes = 0;
    }
    retire(lane);
}

/* The one behind the last that was served comes first: nobody starves. */
static struct pawl_lane *
find_tap_work(struct pawl_lanes *lanes, const struct pawl_lane *other)
{
    for (struct pawl_lane *lane = lanes->first; lane != NULL; lane = lane->next)
        if (lane != other && has_tap_work(lane))
            return lane;
    return NULL;
}

static void
move_to_end(struct pawl_lanes *lanes, struct pawl_lane *lane)
{
    struct pawl_lane **at = &lanes->first;
    while (*at != NULL) {
        if (*at == lane)
            *at = lane->next;
        else
            at = &(*at)->next;
    }
    lane->next = NULL;
    *at = lane;
}

/* Look at what one lane or two have; the mutex is let go meanwhile. */
static void
tap(struct pawl_lanes *lanes, struct pawl_lane *a)
{
    const unsigned char *a_data, *b_data = NULL;
    struct pawl_lane *b = lanes->two == NULL ? NULL : find_tap_work(lanes, a);
    size_t bytes = tap_left(a, &a_data);
    a->is_tapping = true;
    if (b != NULL) {
        size_t b_bytes = tap_left(b, &b_data);
        bytes = bytes < b_bytes ? bytes : b_bytes;
        b->is_tapping = true;
    } else if (lanes->two != NULL && lanes->n_lanes > 1 && bytes > ALONE_BYTES) {
        bytes = ALONE_BYTES;
    }
    (void)pthread_mutex_unlock(&lanes->mutex);
    if (b != NULL)
        lanes->two(a->options.tap.context, a_data, b->options.tap.context, b_data, bytes);
    else
        a->options.tap.update(a->options.tap.context, a_data, bytes);
    (void)pthread_mutex_lock(&lanes->mutex);
    tap_done(a, bytes);
    move_to_end(lanes, a);
    if (b != NULL) {
        tap_done(b, bytes);
        move_to_end(lanes, b);
    }
}

static void *
tap_lanes(void *context)
{
    struct pawl_lanes *lanes = context;
    (void)pthread_mutex_lock(&lanes->mutex);
    while (!lanes->is_ending) {
        struct pawl_lane *lane = find_tap_work(lanes, NULL);
        if (lane != NULL)
            tap(lanes, lane);
        else
            (void)pthread_cond_wait(&lanes->has_taps, &lanes->mutex);
    }
    (void)pthread_mutex_unlock(&lanes->mutex);
    return NULL;
}

/* Write the oldest item that is not written; after an error it only counts as done. The mutex is let go meanwhile. */
static void
write_item(struct pawl_lane *lane)
{
    const struct item item = lane->items[lane->written % QUEUE];
    if (lane->status == PAWL_OK && !lane->is_closing) {
        struct pawl_error err = PAWL_ERROR_INIT;
        (void)pthread_mutex_unlock(&lane->lanes->mutex);
        enum pawl_status st = lane->options.write(lane->options.write_context, item.data, item.bytes, &err);
        (void)pthread_mutex_lock(&lane->lanes->mutex);
        if (st != PAWL_OK) {
            lane->status = st;
            lane->error = err;
        }
    }
    lane->written++;
    retire(lane);
}

static void *
write_lane(void *context)
{
    struct pawl_lane *lane = context;
    (void)pthread_mutex_lock(&lane->lanes->mutex);
    while (!lane->is_closing || lane->written < lane->submitted) {
        if (lane->written < lane->submitted)
            write_item(lane);
        else
            (void)pthread_cond_wait(&lane->has_work, &lane->lanes->mutex);
    }
    (void)pthread_mutex_unlock(&lane->lanes->mutex);
    return NULL;
}

/* ---- the group ---- */

enum pawl_status
pawl_lanes_new(struct pawl_lanes **ret_lanes, pawl_tap_two_fn *two, unsigned threads, struct pawl_error *err)
{
    struct pawl_lanes *lanes = calloc(1, sizeof *lanes);
    if (lanes == NULL)
        return pawl_fail_memory(err, sizeof *lanes);
    int code = pthread_mutex_init(&lanes->mutex, NULL);
    if (code == 0 && (code = pthread_cond_init(&lanes->has_taps, NULL)) != 0)
        (void)pthread_mutex_destroy(&lanes->mutex);
    if (code != 0) {
        free(lanes);
        return pawl_fail_os(err, code, "make threads");
    }
    lanes->two = two;
    while (lanes->n_threads < threads && lanes->n_threads < THREADS_MAX &&
           pawl_thread_begin(&lanes->threads[lanes->n_threads], tap_lanes, lanes) == 0)
        lanes->n_threads++;
    *ret_lanes = lanes;
    return PAWL_OK;
}

void
pawl_lanes_free(struct pawl_lanes *lanes)
{
    if (lanes == NULL)
        return;
    assert(lanes->first == NULL);
    (void)pthread_mutex_lock(&lanes->mutex);
    lanes->is_ending = true;
    (void)pthread_cond_broadcast(&lanes->has_taps);
    (void)pthread_mutex_unlock(&lanes->mutex);
    for (unsigned i = 0; i < lanes->n_threads; i++)
        (void)pthread_join(lanes->threads[i], NULL);
    (void)pthread_cond_destroy(&lanes->has_taps);
    (void)pthread_mutex_destroy(&lanes->mutex);
    free(lanes);
}

/* ---- a lane ---- */

enum pawl_status
pawl_lane_open(struct pawl_lane **ret_lane, struct pawl_lanes *lanes, const struct pawl_lane_options *options,
               struct pawl_error *err)
{
    struct pawl_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return pawl_fail_memory(err, sizeof *lane);
    lane->lanes = lanes;
    lane->options = *options;
    lane->filling = -1;
    if (options->slots != 0) {
        size_t want = options->slots < LANE_SLOTS_MAX ? options->slots : LANE_SLOTS_MAX;
        lane->n_slots = pawl_slots_take(lane->slots, 2, want);
        if (lane->n_slots == 0) {
            free(lane);
            return pawl_fail(err, PAWL_BUSY, "busy", "all buffers for large files are in use");
        }
        for (size_t i = 0; i < lane->n_slots; i++)
            lane->is_free[i] = true;
    }
    int code = pthread_cond_init(&lane->moved, NULL);
    if (code == 0 && (code = pthread_cond_init(&lane->has_work, NULL)) != 0)
        (void)pthread_cond_destroy(&lane->moved);
    if (code != 0) {
        pawl_slots_give(lane->slots, lane->n_slots);
        free(lane);
        return pawl_fail_os(err, code, "make threads");
    }
    lane->has_writer =
        options->write != NULL && options->has_writer && pawl_thread_begin(&lane->writer, write_lane, lane) == 0;
    (void)pthread_mutex_lock(&lanes->mutex);
    lane->next = lanes->first;
    lanes->first = lane;
    lanes->n_lanes++;
    (void)pthread_mutex_unlock(&lanes->mutex);
    *ret_lane = lane;
    return PAWL_OK;
}

static enum pawl_status
tell_error(const struct pawl_lane *lane, struct pawl_error *err)
{
    if (lane->status != PAWL_OK && err != NULL)
        *err = lane->error;
    return lane->status;
}

/* Send an item on its way. What no thread does is done here. */
static enum pawl_status
submit(struct pawl_lane *lane, struct item item, struct pawl_error *err)
{
    struct pawl_lanes *lanes = lane->lanes;
    (void)pthread_mutex_lock(&lanes->mutex);
    while (lane->submitted - lane->retired == QUEUE)
        (void)pthread_cond_wait(&lane->moved, &lanes->mutex);
    lane->items[lane->submitted % QUEUE] = item;
    lane->submitted++;
    if (lane->options.tap.update == NULL) {
        lane->tapped++;
    } else if (lanes->n_threads != 0) {
        (void)pthread_cond_signal(&lanes->has_taps);
    } else {
        (void)pthread_mutex_unlock(&lanes->mutex);
        lane->options.tap.update(lane->options.tap.context, item.data, item.bytes);
        (void)pthread_mutex_lock(&lanes->mutex);
        lane->tapped++;
    }
    if (lane->options.write == NULL)
        lane->written++;
    else if (lane->has_writer)
        (void)pthread_cond_signal(&lane->has_work);
    else
        write_item(lane);
    retire(lane);
    enum pawl_status st = tell_error(lane, err);
    (void)pthread_mutex_unlock(&lanes->mutex);
    return st;
}

static enum pawl_status
submit_slot(struct pawl_lane *lane, struct pawl_error *err)
{
    if (lane->filling < 0 || lane->filled == 0)
        return PAWL_OK;
    const struct item item = { lane->slots[lane->filling], lane->filled, lane->filling, NULL, NULL };
    lane->filling = -1;
    lane->filled = 0;
    return submit(lane, item, err);
}

enum pawl_status
pawl_lane_room(struct pawl_lane *lane, void **ret_room, size_t *ret_bytes, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    if (lane->filling < 0) {
        (void)pthread_mutex_lock(&lane->lanes->mutex);
        while (lane->filling < 0 && (st = tell_error(lane, err)) == PAWL_OK) {
            for (size_t i = 0; i < lane->n_slots && lane->filling < 0; i++)
                if (lane->is_free[i])
                    lane->filling = (int)i;
            if (lane->filling < 0)
                (void)pthread_cond_wait(&lane->moved, &lane->lanes->mutex);
        }
        if (lane->filling >= 0)
            lane->is_free[lane->filling] = false;
        (void)pthread_mutex_unlock(&lane->lanes->mutex);
        if (st != PAWL_OK)
            return st;
    }
    *ret_room = lane->slots[lane->filling] + lane->filled;
    *ret_bytes = PAWL_SLOT_BYTES - lane->filled;
    return PAWL_OK;
}

enum pawl_status
pawl_lane_filled(struct pawl_lane *lane, size_t bytes, struct pawl_error *err)
{
    assert(bytes <= PAWL_SLOT_BYTES - lane->filled);
    lane->filled += bytes;
    return lane->filled == PAWL_SLOT_BYTES ? submit_slot(lane, err) : PAWL_OK;
}

enum pawl_status
pawl_lane_lend(struct pawl_lane *lane, const void *data, size_t bytes, struct pawl_error *err)
{
    return pawl_lane_lend_until(lane, data, bytes, NULL, NULL, err);
}

enum pawl_status
pawl_lane_lend_until(struct pawl_lane *lane, const void *data, size_t bytes, void (*done)(void *context), void *context,
                     struct pawl_error *err)
{
    enum pawl_status st = submit_slot(lane, err);
    if (st != PAWL_OK || bytes != 0)
        return st != PAWL_OK ? st : submit(lane, (struct item){ data, bytes, -1, done, context }, err);
    if (done != NULL)
        done(context);
    return PAWL_OK;
}

enum pawl_status
pawl_lane_flush(struct pawl_lane *lane, struct pawl_error *err)
{
    enum pawl_status st = submit_slot(lane, err);
    (void)pthread_mutex_lock(&lane->lanes->mutex);
    while (lane->retired < lane->submitted)
        (void)pthread_cond_wait(&lane->moved, &lane->lanes->mutex);
    if (st == PAWL_OK)
        st = tell_error(lane, err);
    (void)pthread_mutex_unlock(&lane->lanes->mutex);
    return st;
}

void
pawl_lane_close(struct pawl_lane *lane)
{
    if (lane == NULL)
        return;
    struct pawl_lanes *lanes = lane->lanes;
    (void)pthread_mutex_lock(&lanes->mutex);
    lane->is_closing = true;
    (void)pthread_cond_signal(&lane->has_work);
    while (lane->is_tapping)
        (void)pthread_cond_wait(&lane->moved, &lanes->mutex);
    struct pawl_lane **at = &lanes->first;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    lanes->n_lanes--;
    (void)pthread_mutex_unlock(&lanes->mutex);
    if (lane->has_writer)
        (void)pthread_join(lane->writer, NULL);
    (void)pthread_cond_destroy(&lane->moved);
    (void)pthread_cond_destroy(&lane->has_work);
    pawl_slots_give(lane->slots, lane->n_slots);
    free(lane);
}
