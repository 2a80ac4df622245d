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

/* Is it worth threads to read so many bytes, and does the table take them? */
bool pawl_hash_wants_threads(const struct pawl_os *os, uint64_t bytes);
/* A group whose taps are `struct pawl_sha256`, for reading n large files, and small ones, of so many bytes in all; NULL: not worth threads, or there are none to be had. */
#define PAWL_HASH_LARGE_BYTES ((uint64_t)1 << 20)
struct pawl_lanes *pawl_hash_lanes(const struct pawl_os *os, size_t n, uint64_t bytes);
struct pawl_tap pawl_hash_tap(struct pawl_sha256 *hash);

/* Files read at once: as many as there are buffers for. */
#define PAWL_HASH_FILES_MAX 4

#endif
