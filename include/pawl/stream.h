/*
 * pawl/stream.h: windows of T + 1 ids from token shards, for ever, from an exact position.
 *
 * The cursor is the whole position: N batches, cursor, a new stream over the same shards, restore, M batches are the
 * N + M batches of one stream, bit for bit. Rules: docs/format/token-stream.md. A stream belongs to one thread at a time.
 */
#ifndef PAWL_STREAM_H
#define PAWL_STREAM_H

#include "pawl/dtype.h"
#include "pawl/pcg32.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_stream;

struct pawl_stream_options {
    size_t size;
    uint64_t seq_len;             /* T >= 1 */
    uint64_t batch;               /* B >= 1 windows per batch */
    uint64_t seed;                /* the generator is pawl_pcg32_stream(seed, PAWL_PURPOSE_SHUFFLE) */
    const struct pawl_pcg32 *rng; /* instead of a seed: a generator before its first draw; copied */
    uint64_t vocabulary;          /* the caller's, 0: not stated */
    uint8_t trust_ids;            /* do not scan */
    struct pawl_str split;        /* of directories with a manifest; empty: train */
};
#define PAWL_STREAM_OPTIONS(...) \
    PAWL_LITERAL_(pawl_stream_options, .size = sizeof(struct pawl_stream_options), __VA_ARGS__)

struct pawl_stream_cursor {
    uint64_t shard;        /* index in the list of shards */
    uint64_t offset;       /* of the next window; may be past the last full one */
    struct pawl_pcg32 rng; /* state and inc */
};

/*
 * Open a stream over token PATHs (files or directories; see tokens.h), in this order. The first phase is drawn here.
 * Returns PAWL_OK; PAWL_ARGUMENT (no shards, seq_len or batch 0); PAWL_CORRUPT with the shard's path and code, "too-few-ids" for
 * one of fewer than T + 1 ids.
 */
PAWL_API enum pawl_status pawl_stream_open(const struct pawl_str *paths, size_t n,
                                           const struct pawl_stream_options *options, struct pawl_stream **ret_stream,
                                           struct pawl_error *err);
PAWL_API enum pawl_status pawl_stream_open_z(const char *const *paths, size_t n,
                                             const struct pawl_stream_options *options, struct pawl_stream **ret_stream,
                                             struct pawl_error *err);
PAWL_API void pawl_stream_close(struct pawl_stream *stream);

/* The next batch: B rows of T ids each, and the same moved by one. The arrays must not overlap. */
PAWL_API enum pawl_status pawl_stream_next(struct pawl_stream *stream, uint32_t *inputs, uint32_t *targets,
                                           struct pawl_error *err);

PAWL_API void pawl_stream_cursor(const struct pawl_stream *stream, struct pawl_stream_cursor *ret_cursor);
/* Constant cost; no ids are read. PAWL_ARGUMENT outside the shards or for an even increment: the stream is then as before. */
PAWL_API enum pawl_status pawl_stream_restore(struct pawl_stream *stream, const struct pawl_stream_cursor *cursor,
                                              struct pawl_error *err);

struct pawl_stream_shard {
    struct pawl_str name; /* last component of the path */
    uint64_t ids;
    unsigned width;
};
PAWL_API const struct pawl_stream_shard *pawl_stream_shards(const struct pawl_stream *stream, size_t *ret_n);
PAWL_API uint64_t pawl_stream_seq_len(const struct pawl_stream *stream);
PAWL_API uint64_t pawl_stream_batch(const struct pawl_stream *stream);
/*
 * The seed: the one that it was opened with, or, once a state with the stream was restored from a checkpoint whose pawl.stream.json says one, that of the
 * checkpoint. A bare cursor (pawl_stream_restore) says nothing of seeds and leaves it. False, and *ret_seed is left alone, where the generator was
 * handed over, here or in the run that was restored. Since 0.1.
 */
PAWL_API bool pawl_stream_seed(const struct pawl_stream *stream, uint64_t *ret_seed);

#ifdef __cplusplus
}
#endif

#endif
