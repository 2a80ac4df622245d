/*
 * checkpoint/blocks.h: the blocks of one tensor file held against pawl.sums: which were looked at, and what came out.
 *
 * Threads share it: a block is read and summed by the first that asks for it, others wait for that and do not do it again. What is read is read by calls,
 * not through a mapping: a file that is cut meanwhile is an error.
 */
#ifndef PAWL_CHECKPOINT_BLOCKS_H
#define PAWL_CHECKPOINT_BLOCKS_H

#include <pthread.h>
#include "checkpoint/block_sums.h"
#include "model/set.h"

/* A block whose sum is another. */
struct pawl_bad_block {
    size_t block;
    uint64_t found;
};

struct pawl_blocks {
    const struct pawl_file *file;
    const struct pawl_sums_file *sums;
    size_t n;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    unsigned char *states;      /* of each block: enum block_state of blocks.c */
    struct pawl_bad_block *bad; /* ascending */
    size_t n_bad, bad_capacity;
};

/* File and sums agree in their bytes, and must live as long. PAWL_NO_MEMORY. */
enum pawl_status pawl_blocks_init(struct pawl_blocks *blocks, const struct pawl_file *file,
                                  const struct pawl_sums_file *sums, struct pawl_error *err);
void pawl_blocks_release(struct pawl_blocks *blocks); /* fine on a zeroed one */

/*
 * Look at the blocks that the bytes from `begin` to `end` of the file are in, as far as nobody has; by several threads where they are many.
 *
 * Returns PAWL_OK when all of them are known, right or wrong: *ret_n_bad of them are wrong, the first of which is *ret_bad. What reading answers,
 * PAWL_NO_MEMORY: then those that could not be read are not known, and the next call tries again.
 */
enum pawl_status pawl_blocks_check(struct pawl_blocks *blocks, uint64_t begin, uint64_t end,
                                   struct pawl_bad_block *ret_bad, size_t *ret_n_bad, struct pawl_error *err);

/* Around a fork (os/forks.h): in the child nobody looks at what other threads of its parent had begun. */
void pawl_blocks_before_fork(struct pawl_blocks *blocks);
void pawl_blocks_in_parent(struct pawl_blocks *blocks);
void pawl_blocks_in_child(struct pawl_blocks *blocks);

/* Bytes of the file that a block has: from *ret_begin to the byte before *ret_end. */
void pawl_blocks_extent(const struct pawl_blocks *blocks, size_t block, uint64_t *ret_begin, uint64_t *ret_end);

/* The sum of a header, as it was parsed; what pawl.sums says of it is sums->header_sum. */
uint64_t pawl_blocks_header_sum(const struct pawl_set_file *file);

/*
 * Tell which tensors lie in bad blocks, each a problem "hash" of the report's open verdict under the file's name, at most a hundred of them; `set_file`
 * NULL, or with a header that is itself damaged: which bytes.
 */
void pawl_blocks_tell(struct pawl_blocks *blocks, const struct pawl_set_file *set_file, struct pawl_report *report);

#endif
