#include "checkpoint/hashing.h"

#include "os/inlet.h"
#include "os/parallel.h"

/* Less is read and hashed in the time that threads take to begin. */
#define THREADS_BYTES ((uint64_t)4 << 20)

static void
update(void *context, const void *data, size_t bytes)
{
    pawl_sha256_update(context, data, bytes);
}

static void
update_two(void *a, const void *a_data, void *b, const void *b_data, size_t bytes)
{
    pawl_sha256_update_two(a, (struct pawl_sha256_span){ a_data, bytes }, b,
                           (struct pawl_sha256_span){ b_data, bytes });
}

struct pawl_tap
pawl_hash_tap(struct pawl_sha256 *hash)
{
    return (struct pawl_tap){ update, hash };
}

void
pawl_hash_sizes_add(struct pawl_hash_sizes *sizes, uint64_t bytes)
{
    unsigned bit = 0;
    sizes->bytes += bytes;
    if (bytes < PAWL_HASH_LARGE_BYTES)
        return;
    for (uint64_t left = bytes >> 1; left != 0; left >>= 1)
        bit++;
    sizes->n_large++;
    sizes->n_large_of[bit]++;
}

unsigned
pawl_hash_threads(const struct pawl_hash_sizes *sizes)
{
    unsigned top = 63, processors = pawl_processors();
    size_t n = 0;
    while (top > 0 && sizes->n_large_of[top] == 0)
        top--;
    for (unsigned bit = top < 2 ? 0 : top - 2; bit <= top; bit++)
        n += sizes->n_large_of[bit];
    n = n < PAWL_HASH_FILES_MAX ? n : PAWL_HASH_FILES_MAX;
    unsigned pairs = (unsigned)(n + 1) / 2;
    pairs = pairs == 0 ? 1 : pairs;
    return pairs < processors ? pairs : processors;
}

bool
pawl_hash_wants_threads(const struct pawl_os *os, const struct pawl_hash_sizes *sizes)
{
    return os->takes_threads && sizes->bytes >= THREADS_BYTES;
}

struct pawl_lanes *
pawl_hash_lanes(const struct pawl_os *os, const struct pawl_hash_sizes *sizes)
{
    struct pawl_lanes *lanes = NULL;
    if (!pawl_hash_wants_threads(os, sizes))
        return NULL;
    return pawl_lanes_new(&lanes, update_two, pawl_hash_threads(sizes), NULL) == PAWL_OK ? lanes : NULL;
}

/* All of a file, piece by piece, to the lane or, without one, to the hash. */
static enum pawl_status
hash_pieces(const struct pawl_hash_job *job, struct pawl_inlet *inlet, struct pawl_lane *lane, struct pawl_error *err)
{
    for (;;) {
        struct pawl_inlet_piece piece;
        enum pawl_status st = pawl_inlet_next(inlet, &piece, err);
        if (st != PAWL_OK)
            return st;
        if (piece.begin == piece.end)
            return lane == NULL ? PAWL_OK : pawl_lane_flush(lane, err);
        if (piece.data == NULL)
            st = pawl_inlet_load(inlet, piece.begin, &piece, err);
        if (st != PAWL_OK)
            return st;
        size_t bytes = (size_t)(piece.end - piece.begin);
        if (lane == NULL)
            pawl_sha256_update(job->hash, piece.data, bytes);
        else
            st = pawl_lane_lend_until(lane, piece.data, bytes, pawl_inlet_give, pawl_inlet_share(inlet), err);
        if (st != PAWL_OK)
            return st;
    }
}

struct hashing {
    struct pawl_hash_job *jobs;
    struct pawl_lanes *lanes;
    struct pawl_hash_sizes sizes;
};

static void
hash_one(void *context, size_t i)
{
    const struct hashing *hashing = context;
    struct pawl_hash_job *job = &hashing->jobs[i];
    struct pawl_lane *lane = NULL;
    struct pawl_inlet *inlet = NULL;
    const struct pawl_lane_options options = { .tap = pawl_hash_tap(job->hash) };
    job->error = (struct pawl_error)PAWL_ERROR_INIT;
    job->status = pawl_inlet_open(&inlet, job->file, job->from, job->file->bytes, hashing->sizes.n_large, &job->error);
    if (job->status != PAWL_OK)
        return;
    if (hashing->lanes != NULL && job->file->bytes - job->from >= PAWL_HASH_LARGE_BYTES)
        (void)pawl_lane_open(&lane, hashing->lanes, &options, NULL); /* or else it is hashed by who reads it */
    job->status = hash_pieces(job, inlet, lane, &job->error);
    if (job->status == PAWL_OK && job->must_stay)
        job->status = pawl_file_check_unchanged(job->file, &job->error);
    pawl_lane_close(lane);
    pawl_inlet_close(inlet);
}

void
pawl_hash_files(struct pawl_hash_job *jobs, size_t n)
{
    struct hashing hashing = { .jobs = jobs };
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        pawl_hash_sizes_add(&hashing.sizes,
                            jobs[i].file->bytes -
                                (jobs[i].from < jobs[i].file->bytes ? jobs[i].from : jobs[i].file->bytes));
    hashing.lanes = pawl_hash_lanes(jobs[0].file->os, &hashing.sizes);
    pawl_parallel(n, hashing.lanes == NULL ? 1 : PAWL_HASH_FILES_MAX, hash_one, &hashing);
    pawl_lanes_free(hashing.lanes);
}
