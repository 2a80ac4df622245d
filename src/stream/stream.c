/* The base stream: windows of T + 1 ids, shard after shard, for ever. Rules: docs/format/token-stream.md. */
#include "pawl/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include "base/checked.h"
#include "base/fail.h"
#include "base/str.h"
#include "stream/shard_file.h"
#include "stream/stream_state.h"
#include "stream/token_files.h"

uint64_t
pawl_stream_draw_phase(struct pawl_pcg32 *rng, uint64_t ids, uint64_t seq_len)
{
    uint64_t room = ids - seq_len;
    return pawl_pcg32_below(rng, seq_len < room ? seq_len : room);
}

/* A pass begins: the one place where the generator is used. */
static void
begin_pass(const struct pawl_stream *stream, struct pawl_stream_place *at)
{
    at->offset = pawl_stream_draw_phase(&at->rng, stream->shards[at->shard].ids, stream->seq_len);
}

/* ---- opening ---- */

static enum pawl_status
check_options(const struct pawl_stream_options *opt, size_t n, struct pawl_error *err)
{
    uint64_t ids;
    if (n == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a stream needs at least one shard, none was given");
    if (opt->seq_len < 1)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "seq_len must be at least 1, it is %" PRIu64, opt->seq_len);
    if (opt->batch < 1)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "batch must be at least 1, it is %" PRIu64, opt->batch);
    if (!pawl_mul_u64(opt->seq_len, opt->batch, &ids) || ids > SIZE_MAX / sizeof(uint32_t))
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "%" PRIu64 " windows of %" PRIu64 " ids are more than memory can hold", opt->batch,
                         opt->seq_len);
    if (opt->rng != NULL && (opt->rng->inc & 1) == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the generator's increment %016" PRIx64 " is even",
                         opt->rng->inc);
    return PAWL_OK;
}

static struct pawl_str
last_component(struct pawl_str path)
{
    size_t from = path.len;
    while (from > 0 && path.data[from - 1] != '/')
        from--;
    return pawl_str_make(path.data + from, path.len - from);
}

static enum pawl_status
open_shard(struct pawl_stream *stream, size_t i, struct pawl_str path, const struct pawl_stream_options *opt,
           uint64_t *vocabulary, struct pawl_error *err)
{
    /* A manifest vouches for ids when it knows what they were held against. */
    const struct pawl_token_file *row = pawl_token_files_row(stream->files, i);
    uint64_t vouched = pawl_token_files_vocabulary(stream->files, i);
    bool is_vouched = vouched != 0 && (opt->vocabulary == 0 || vouched <= opt->vocabulary);
    struct pawl_shard_options shard_options =
        PAWL_SHARD_OPTIONS(.vocabulary = opt->vocabulary, .trust_ids = opt->trust_ids != 0 || is_vouched);
    enum pawl_status st = pawl_shard_open(path, &shard_options, &stream->mapped[i], err);
    if (st != PAWL_OK)
        return st;

    struct pawl_shard_info info = pawl_shard_info(stream->mapped[i]);
    st = pawl_token_files_check(stream->files, i, &info, err);
    if (st != PAWL_OK)
        return st;
    if (info.ids <= opt->seq_len)
        return pawl_fail(err, PAWL_CORRUPT, "too-few-ids",
                         "windows of %" PRIu64 " ids need a shard of one more, this one has %" PRIu64, opt->seq_len,
                         info.ids);
    if (info.vocabulary != 0 && *vocabulary != 0 && info.vocabulary != *vocabulary)
        return pawl_fail_at(err, PAWL_CORRUPT, "vocabulary", 12,
                            "the shard names a vocabulary of %" PRIu64 ", those before it one of %" PRIu64,
                            info.vocabulary, *vocabulary);
    if (info.vocabulary != 0)
        *vocabulary = info.vocabulary;

    stream->shards[i] = (struct pawl_stream_shard){ last_component(path), info.ids, info.width };
    stream->has_sha256[i] = row != NULL;
    if (row != NULL)
        memcpy(stream->sha256[i], row->sha256, sizeof row->sha256);
    return PAWL_OK;
}

static enum pawl_status
open_shards(struct pawl_stream *stream, const struct pawl_stream_options *opt, struct pawl_error *err)
{
    size_t n;
    const struct pawl_str *paths = pawl_token_files_paths(stream->files, &n);
    stream->n = n;
    stream->mapped = calloc(n, sizeof *stream->mapped);
    stream->shards = calloc(n, sizeof *stream->shards);
    stream->sha256 = calloc(n, sizeof *stream->sha256);
    stream->has_sha256 = calloc(n, sizeof *stream->has_sha256);
    if (stream->mapped == NULL || stream->shards == NULL || stream->sha256 == NULL || stream->has_sha256 == NULL)
        return pawl_fail_memory(err, n * sizeof *stream->shards);

    uint64_t vocabulary = 0;
    for (size_t i = 0; i < n; i++) {
        enum pawl_status st = open_shard(stream, i, paths[i], opt, &vocabulary, err);
        if (st != PAWL_OK) {
            pawl_error_path(err, paths[i]);
            return st;
        }
    }
    return PAWL_OK;
}

enum pawl_status
pawl_stream_open(const struct pawl_str *paths, size_t n, const struct pawl_stream_options *options,
                 struct pawl_stream **ret_stream, struct pawl_error *err)
{
    struct pawl_stream_options opt = PAWL_STREAM_OPTIONS(.seq_len = 0);
    if (options != NULL)
        memcpy(&opt, options, options->size < sizeof opt ? options->size : sizeof opt);
    enum pawl_status st = check_options(&opt, n, err);
    if (st != PAWL_OK)
        return st;

    struct pawl_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return pawl_fail_memory(err, sizeof *stream);
    stream->seq_len = opt.seq_len;
    stream->batch = opt.batch;
    st = pawl_token_files_open(paths, n, opt.split.len != 0 ? opt.split : PAWL_STR("train"), &stream->files, err);
    if (st == PAWL_OK)
        st = open_shards(stream, &opt, err);
    if (st != PAWL_OK) {
        pawl_stream_close(stream);
        return st;
    }

    stream->has_seed = opt.rng == NULL;
    stream->seed = opt.seed;
    if (opt.rng != NULL)
        stream->first = *opt.rng;
    else
        pawl_pcg32_stream(&stream->first, opt.seed, PAWL_PURPOSE_SHUFFLE);
    stream->at = (struct pawl_stream_place){ .rng = stream->first, .is_counted = true };
    begin_pass(stream, &stream->at);
    *ret_stream = stream;
    return PAWL_OK;
}

enum pawl_status
pawl_stream_open_z(const char *const *paths, size_t n, const struct pawl_stream_options *options,
                   struct pawl_stream **ret_stream, struct pawl_error *err)
{
    if (n == 0)
        return pawl_stream_open(NULL, 0, options, ret_stream, err);
    struct pawl_str *strs = calloc(n, sizeof *strs);
    if (strs == NULL)
        return pawl_fail_memory(err, n * sizeof *strs);
    for (size_t i = 0; i < n; i++)
        strs[i] = pawl_str_z(paths[i]);
    enum pawl_status st = pawl_stream_open(strs, n, options, ret_stream, err);
    free(strs);
    return st;
}

void
pawl_stream_close(struct pawl_stream *stream)
{
    if (stream == NULL)
        return;
    for (size_t i = 0; stream->mapped != NULL && i < stream->n; i++)
        pawl_shard_close(stream->mapped[i]);
    free(stream->mapped);
    free(stream->shards);
    free(stream->sha256);
    free(stream->has_sha256);
    pawl_token_files_close(stream->files);
    free(stream);
}

/* ---- windows ---- */

/* Where the next window lies; the place moves behind it. */
static void
take_window(const struct pawl_stream *stream, struct pawl_stream_place *at, uint64_t *ret_shard, uint64_t *ret_offset)
{
    /* The window needs the ids offset ... offset + T. An offset is at most n, and n a 31-bit number. */
    if (at->offset + stream->seq_len >= stream->shards[at->shard].ids) {
        at->shard = at->shard + 1 == stream->n ? 0 : at->shard + 1;
        at->pass++;
        begin_pass(stream, at);
    }
    *ret_shard = at->shard;
    *ret_offset = at->offset;
    at->offset += stream->seq_len;
    at->windows++;
}

enum pawl_status
pawl_stream_next(struct pawl_stream *stream, uint32_t *inputs, uint32_t *targets, struct pawl_error *err)
{
    const size_t T = (size_t)stream->seq_len;
    struct pawl_stream_place at = stream->at;
    for (size_t row = 0; row < stream->batch; row++) {
        uint64_t s, offset;
        take_window(stream, &at, &s, &offset);
        struct pawl_shard *shard = stream->mapped[s];
        enum pawl_status st = pawl_shard_touch(shard, offset, (uint64_t)T + 1, err);
        if (st != PAWL_OK)
            return st; /* the stream stands where it stood */
        const unsigned width = stream->shards[s].width;
        const unsigned char *ids = (const unsigned char *)pawl_shard_data(shard) + offset * width;
        pawl_shard_widen(inputs + row * T, ids, width, T);
        pawl_shard_widen(targets + row * T, ids + width, width, T);
    }
    stream->at = at;
    return PAWL_OK;
}

/* ---- the position ---- */

void
pawl_stream_cursor(const struct pawl_stream *stream, struct pawl_stream_cursor *ret_cursor)
{
    *ret_cursor = (struct pawl_stream_cursor){ stream->at.shard, stream->at.offset, stream->at.rng };
}

enum pawl_status
pawl_stream_restore(struct pawl_stream *stream, const struct pawl_stream_cursor *cursor, struct pawl_error *err)
{
    if (cursor->shard >= stream->n)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the cursor is in shard %" PRIu64 " (from 0), the stream has %zu", cursor->shard, stream->n);
    const struct pawl_stream_shard *shard = &stream->shards[cursor->shard];
    if (cursor->offset > shard->ids)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the cursor is at id %" PRIu64 " of shard %" PRIu64 " ('%s'), which has %" PRIu64,
                         cursor->offset, cursor->shard, PAWL_SHOW(shard->name), shard->ids);
    if ((cursor->rng.inc & 1) == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the cursor's increment %016" PRIx64 " is even: that is no generator", cursor->rng.inc);
    /* How many windows lie before it is worked out when somebody asks. */
    stream->at = (struct pawl_stream_place){
        .shard = cursor->shard, .offset = cursor->offset, .rng = cursor->rng, .pass = cursor->shard
    };
    return PAWL_OK;
}

/* How many steps of the generator lead from one state to another, mod 2^64: bit by bit, as each step of 2^k keeps the
 * k low bits and flips bit k (Brown 1994, "Random number generation with arbitrary strides", run backwards). */
static uint64_t
steps_between(uint64_t from, uint64_t to, uint64_t inc)
{
    uint64_t multiplier = UINT64_C(6364136223846793005), plus = inc, distance = 0;
    for (uint64_t bit = 1; bit != 0; bit <<= 1) {
        if ((from & bit) != (to & bit)) {
            from = from * multiplier + plus;
            distance |= bit;
        }
        plus = (multiplier + 1) * plus;
        multiplier *= multiplier;
    }
    return distance;
}

/* A cursor that is more draws away than this is taken for another generator's, which is some 2^63 away. Half a second. */
#define DRAWS_MAX (UINT64_C(1) << 28)

bool
pawl_stream_count(const struct pawl_stream *stream, const struct pawl_stream_place *place, uint64_t *ret_pass,
                  uint64_t *ret_windows)
{
    const uint64_t T = stream->seq_len;
    struct pawl_pcg32 rng = stream->first;
    if (rng.inc != place->rng.inc)
        return false;
    uint64_t steps = steps_between(rng.state, place->rng.state, rng.inc);
    if (steps > DRAWS_MAX)
        return false;

    /* A draw is at least one step of the generator, so there are at most `steps` passes to look at. */
    uint64_t windows = 0;
    size_t s = 0;
    for (uint64_t pass = 0; pass < steps; pass++) {
        const uint64_t ids = stream->shards[s].ids;
        uint64_t phase = pawl_stream_draw_phase(&rng, ids, T);
        uint64_t in_pass = (ids - 1 - phase) / T;
        if (rng.state == place->rng.state) {
            if (s != place->shard || place->offset < phase || (place->offset - phase) % T != 0 ||
                (place->offset - phase) / T > in_pass)
                return false;
            *ret_pass = pass;
            *ret_windows = windows + (place->offset - phase) / T;
            return true;
        }
        windows += in_pass;
        s = s + 1 == stream->n ? 0 : s + 1;
    }
    return false;
}

/* ---- what it reads ---- */

const struct pawl_stream_shard *
pawl_stream_shards(const struct pawl_stream *stream, size_t *ret_n)
{
    *ret_n = stream->n;
    return stream->shards;
}

bool
pawl_stream_seed(const struct pawl_stream *stream, uint64_t *ret_seed)
{
    if (stream->has_seed)
        *ret_seed = stream->seed;
    return stream->has_seed;
}

uint64_t
pawl_stream_seq_len(const struct pawl_stream *stream)
{
    return stream->seq_len;
}

uint64_t
pawl_stream_batch(const struct pawl_stream *stream)
{
    return stream->batch;
}
