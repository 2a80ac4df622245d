#include "checkpoint/hashing.h"

#include <stdlib.h>
#include "os/parallel.h"

/* Less is read and hashed in the time that threads take to begin. */
#define THREADS_BYTES ((uint64_t)4 << 20)

/* Without a lane, read and hashed at a time: large enough that a call costs nothing beside the hash. */
#define BLOCK_BYTES ((size_t)1 << 20)
#define LANE_SLOTS 4

/* The system's own reading ahead keeps 128 KiB in flight: far too little for a disk of today. */
#define AHEAD_BYTES ((uint64_t)8 << 20)

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

struct pawl_lanes *
pawl_hash_lanes(const struct pawl_os *os, size_t n, uint64_t bytes)
{
    struct pawl_lanes *lanes = NULL;
    if (!os->takes_threads || bytes < THREADS_BYTES)
        return NULL;
    size_t at_once = n < PAWL_HASH_FILES_MAX ? n : PAWL_HASH_FILES_MAX;
    unsigned threads = pawl_processors();
    if (threads > (at_once + 1) / 2)
        threads = (unsigned)((at_once + 1) / 2);
    return pawl_lanes_new(&lanes, update_two, threads, NULL) == PAWL_OK ? lanes : NULL;
}

static enum pawl_status
hash_alone(const struct pawl_hash_job *job, struct pawl_error *err)
{
    unsigned char *block = malloc(BLOCK_BYTES);
    enum pawl_status st = PAWL_OK;
    if (block == NULL)
        return pawl_fail_memory(err, BLOCK_BYTES);
    for (uint64_t at = job->from; st == PAWL_OK && at < job->file->bytes;) {
        uint64_t left = job->file->bytes - at;
        size_t n = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
        st = pawl_file_read(job->file, at, block, n, err);
        if (st == PAWL_OK)
            pawl_sha256_update(job->hash, block, n);
        at += n;
    }
    free(block);
    return st;
}

static enum pawl_status
hash_in_lane(struct pawl_lane *lane, const struct pawl_hash_job *job, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    uint64_t ahead = 0;
    for (uint64_t at = job->from; st == PAWL_OK && at < job->file->bytes;) {
        uint64_t left = job->file->bytes - at;
        void *room;
        size_t n;
        st = pawl_lane_room(lane, &room, &n, err);
        if (st != PAWL_OK)
            break;
        n = left < n ? (size_t)left : n;
        pawl_read_ahead(job->file, at, &ahead);
        st = pawl_file_read(job->file, at, room, n, err);
        if (st == PAWL_OK)
            st = pawl_lane_filled(lane, n, err);
        at += n;
    }
    return st == PAWL_OK ? pawl_lane_flush(lane, err) : st;
}

void
pawl_read_ahead(const struct pawl_file *file, uint64_t at, uint64_t *ahead)
{
    const struct pawl_os *os = file->os;
    if (!os->takes_threads)
        return;
    if (*ahead < at)
        *ahead = at;
    while (*ahead < file->bytes && *ahead - at < AHEAD_BYTES) {
        uint64_t left = file->bytes - *ahead;
        uint64_t n = left < AHEAD_BYTES / 2 ? left : AHEAD_BYTES / 2;
        /* Advice: what it answers does not matter. */
        (void)os->file_advise(os->context, file->handle, *ahead, n, PAWL_OS_WILL_NEED);
        *ahead += n;
    }
}

struct hashing {
    struct pawl_hash_job *jobs;
    struct pawl_lanes *lanes;
};

static void
hash_one(void *context, size_t i)
{
    const struct hashing *hashing = context;
    struct pawl_hash_job *job = &hashing->jobs[i];
    struct pawl_lane *lane = NULL;
    const struct pawl_lane_options options = { .tap = pawl_hash_tap(job->hash), .slots = LANE_SLOTS };
    job->error = (struct pawl_error)PAWL_ERROR_INIT;
    if (hashing->lanes != NULL && job->file->bytes - job->from >= THREADS_BYTES / 4 &&
        pawl_lane_open(&lane, hashing->lanes, &options, NULL) == PAWL_OK) {
        job->status = hash_in_lane(lane, job, &job->error);
        pawl_lane_close(lane);
    } else {
        job->status = hash_alone(job, &job->error);
    }
}

void
pawl_hash_files(struct pawl_hash_job *jobs, size_t n)
{
    struct hashing hashing = { .jobs = jobs };
    uint64_t bytes = 0;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        bytes += jobs[i].file->bytes - (jobs[i].from < jobs[i].file->bytes ? jobs[i].from : jobs[i].file->bytes);
    hashing.lanes = pawl_hash_lanes(jobs[0].file->os, n, bytes);
    pawl_parallel(n, hashing.lanes == NULL ? 1 : PAWL_HASH_FILES_MAX, hash_one, &hashing);
    pawl_lanes_free(hashing.lanes);
}
