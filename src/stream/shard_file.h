/* stream/shard_file.h: a mapped shard, seen by its neighbours in this folder. */
#ifndef PAWL_STREAM_SHARD_FILE_H
#define PAWL_STREAM_SHARD_FILE_H

#include "formats/tokens/shard.h"
#include "os/file.h"

struct pawl_shard {
    struct pawl_shard_info info;
    struct pawl_map map;
    uint64_t readable_from, readable_to; /* ids whose pages were read in last: see pawl_shard_touch */
    uint64_t touch_bytes;                /* how many are read in next */
};

/*
 * The page that a mapping touches may be gone when another program has cut
 * the file short meanwhile; the touch is then SIGBUS, not a status. So ids are
 * read in by the system before they are looked at, and a cut file is
 * PAWL_TRUNCATED. What is left is a file cut between that and the look, within
 * the same few pages. Where the system can't tell, the mapping is taken at its word.
 *
 * As in a file system's own reading ahead, the piece is small after a jump and
 * doubles while the ids are read in a row: the first batch after a restore does not wait for megabytes.
 */
#define PAWL_SHARD_TOUCH_BYTES_MIN ((uint64_t)64 << 10)
#define PAWL_SHARD_TOUCH_BYTES_MAX ((uint64_t)2 << 20)

/* Make ids [from, from + n) safe to look at; they must be there. Remembers what it did, and reads ahead. */
enum pawl_status pawl_shard_touch(struct pawl_shard *shard, uint64_t from, uint64_t n, struct pawl_error *err);

/* A C string of a caller's path: PAWL_ARGUMENT when it is empty or has a NUL. Free with free(). */
enum pawl_status pawl_shard_path(struct pawl_str path, char **ret_path, struct pawl_error *err);

#endif
