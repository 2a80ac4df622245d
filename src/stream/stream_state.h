/* stream/stream_state.h: what a stream is made of, for stream.c and stream_document.c. */
#ifndef PAWL_STREAM_STREAM_STATE_H
#define PAWL_STREAM_STREAM_STATE_H

#include "pawl/stream.h"
#include "pawl/tokens.h"

/* Where a stream stands. Small, so that a call that fails can put the old one back. */
struct pawl_stream_place {
    uint64_t shard, offset; /* of the next window */
    struct pawl_pcg32 rng;  /* after the draw of the pass in progress */
    uint64_t pass;          /* its number, from 0 */
    uint64_t windows;       /* consumed */
    bool is_counted;        /* pass and windows are known; a bare cursor does not tell them */
};

struct pawl_stream {
    struct pawl_shard **mapped;
    struct pawl_stream_shard *shards;
    unsigned char (*sha256)[32]; /* of shard i, where has_sha256[i]: a manifest stated it */
    bool *has_sha256;
    size_t n;
    struct pawl_token_files *files; /* the names point in here */
    uint64_t seq_len, batch;
    bool has_seed; /* else the generator was handed over */
    uint64_t seed;
    struct pawl_pcg32 first; /* the generator before its first draw */
    struct pawl_stream_place at;
};

/* Draw the phase of a pass over a shard of `ids` ids, at least seq_len + 1. */
uint64_t pawl_stream_draw_phase(struct pawl_pcg32 *rng, uint64_t ids, uint64_t seq_len);

/*
 * The pass and the count of windows of a cursor, found by drawing the phases
 * from the beginning again: about 2 ns a pass. False when the cursor is none
 * of this stream's: another generator, or an offset that no window ends at.
 */
bool pawl_stream_count(const struct pawl_stream *stream, const struct pawl_stream_place *place, uint64_t *ret_pass,
                       uint64_t *ret_windows);

#endif
