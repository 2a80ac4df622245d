/*
 * checkpoint/block_sums.h: pawl.sums, a fast checksum for each MiB of a step's tensor files; docs/format/sums.md has it byte by byte.
 * Reader and writer of the format are in one file; so is the taking of the sums, as the bytes of a file go by.
 */
#ifndef PAWL_CHECKPOINT_BLOCK_SUMS_H
#define PAWL_CHECKPOINT_BLOCK_SUMS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "codec/xxh64.h"

#define PAWL_SUMS_BLOCK_BYTES ((uint64_t)1 << 20)

/* Longer names no filesystem of ours has; every tensor file's is far shorter. */
#define PAWL_SUMS_NAME_BYTES_MAX ((size_t)255)

struct pawl_sums_file {
    struct pawl_str name;
    uint64_t bytes;            /* of the file */
    uint64_t header_bytes;     /* of these, what stands in front of the tensors' data */
    uint64_t header_sum;       /* of that alone, so that a header is checked without what shares its block */
    const unsigned char *sums; /* one for each block, 8 bytes little-endian each; read them with pawl_sums_of */
};

struct pawl_sums {
    struct pawl_sums_file *files; /* ascending by name */
    size_t n;
};

size_t pawl_sums_blocks(uint64_t bytes); /* of a file of so many bytes */
uint64_t pawl_sums_of(const struct pawl_sums_file *file, size_t block);
/* NULL when it is not listed. */
const struct pawl_sums_file *pawl_sums_find(const struct pawl_sums *sums, struct pawl_str name);

/*
 * Parse; `bytes` must live as long as what is returned, which points into them.
 *
 * Returns PAWL_OK; PAWL_CORRUPT, "content", with the place; PAWL_UNSUPPORTED for a version to come, of which nothing can be said;
 * PAWL_NO_MEMORY.
 */
enum pawl_status pawl_sums_parse(struct pawl_arena *arena, struct pawl_sums *ret_sums, const void *bytes, size_t n,
                                 struct pawl_error *err);

/*
 * Lay out the document of `files`, ascending by name: all of it but the sums of the blocks, for which there are zeros (files[i].sums points
 * to them, in *out, which must not grow any more), and the sum at the end, which pawl_sums_seal sets.
 *
 * Returns PAWL_OK; PAWL_LIMIT when it would be larger than a document may be; PAWL_NO_MEMORY.
 */
enum pawl_status pawl_sums_lay_out(struct pawl_sums_file *files, size_t n, struct pawl_buffer *out,
                                   struct pawl_error *err);
void pawl_sums_seal(struct pawl_buffer *document);

/* ---- taking them ---- */

/* Over the bytes of one file, in their order. All zero: nobody wants them, and the calls do nothing. */
struct pawl_sums_taker {
    struct pawl_xxh64 sum; /* of the block that is not whole yet */
    uint64_t left;         /* bytes of that block still to come */
    unsigned char *to, *end;
};

/* `to` has room for the sums of a file of so many bytes. */
void pawl_sums_take_begin(struct pawl_sums_taker *taker, unsigned char *to, uint64_t bytes);
void pawl_sums_take(struct pawl_sums_taker *taker, const void *data, size_t bytes);
void pawl_sums_take_end(struct pawl_sums_taker *taker);

#endif
