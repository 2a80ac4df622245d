/* checkpoint/hashing.h: files hashed as fast as the machine can: read beside the hashing, several at once, two on each core. */
#ifndef PAWL_CHECKPOINT_HASHING_H
#define PAWL_CHECKPOINT_HASHING_H

#include "codec/sha256_streams.h"
#include "os/file.h"
#include "os/lane.h"

/* Go on with a hash by a file's bytes from `from` to the end that it had when it was opened. */
struct pawl_hash_job {
    const struct pawl_file *file;
    uint64_t from;
    struct pawl_sha256 *hash;
    bool must_stay;          /* a file that is another when its end was read is a fault (pawl_file_check_unchanged) */
    enum pawl_status status; /* what came out */
    struct pawl_error error;
};

/* Jobs of one table. A fault of one is in its status, and the others go on. Threads for as long as the call, where the table takes them. */
void pawl_hash_files(struct pawl_hash_job *jobs, size_t n);

/* Files that are hashed on their way: so many at once, as there are buffers for; from this size on by threads. */
#define PAWL_HASH_FILES_MAX 4
#define PAWL_HASH_LARGE_BYTES ((uint64_t)1 << 20)

/* The sizes of the files of one call. */
struct pawl_hash_sizes {
    uint64_t bytes;        /* of all */
    size_t n_large;        /* files of PAWL_HASH_LARGE_BYTES and more */
    size_t n_large_of[64]; /* of these, by the number of the highest bit of their size */
};

void pawl_hash_sizes_add(struct pawl_hash_sizes *sizes, uint64_t bytes);
/*
 * How many threads are to hash: one takes two files at a time, and more than there are pairs would take the processors of those who read, fill and
 * write. Only files of at least about a quarter of the largest count: the others are done long before it.
 */
unsigned pawl_hash_threads(const struct pawl_hash_sizes *sizes);

/* Is it worth threads to read these files, and does the table take them? */
bool pawl_hash_wants_threads(const struct pawl_os *os, const struct pawl_hash_sizes *sizes);
/* A group whose taps are `struct pawl_sha256`, for reading these files; NULL: not worth threads, or there are none to be had. */
struct pawl_lanes *pawl_hash_lanes(const struct pawl_os *os, const struct pawl_hash_sizes *sizes);
struct pawl_tap pawl_hash_tap(struct pawl_sha256 *hash);

#endif
