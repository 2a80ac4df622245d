#include "checkpoint/blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/cursor.h"
#include "os/parallel.h"

/* Read and summed at a time: it is summed while the processor still has it at hand. */
#define READ_BYTES ((size_t)128 << 10)
/* Blocks that a thread takes at a time: enough that a thread's beginning costs nothing, and few enough that all end together. */
#define PIECE_BLOCKS ((size_t)8)
/* Damaged tensors, or runs of damaged bytes, of one file that are told; a file of nothing but damage says no more than that. */
#define TOLD_MAX ((size_t)100)

enum block_state { BLOCK_UNKNOWN = 0, BLOCK_BUSY = 1, BLOCK_RIGHT = 2, BLOCK_WRONG = 3 };

enum pawl_status
pawl_blocks_init(struct pawl_blocks *blocks, const struct pawl_file *file, const struct pawl_sums_file *sums,
                 struct pawl_error *err)
{
    size_t n = pawl_sums_blocks(sums->bytes);
    unsigned char *states = calloc(n + 1, sizeof *states);
    if (states == NULL)
        return pawl_fail_memory(err, n + 1);
    *blocks = (struct pawl_blocks){ .file = file, .sums = sums, .n = n, .states = states };
    (void)pthread_mutex_init(&blocks->lock, NULL);
    (void)pthread_cond_init(&blocks->changed, NULL);
    return PAWL_OK;
}

void
pawl_blocks_release(struct pawl_blocks *blocks)
{
    if (blocks->states == NULL)
        return;
    (void)pthread_cond_destroy(&blocks->changed);
    (void)pthread_mutex_destroy(&blocks->lock);
    free(blocks->states);
    free(blocks->bad);
    *blocks = (struct pawl_blocks){ .file = NULL };
}

void
pawl_blocks_extent(const struct pawl_blocks *blocks, size_t block, uint64_t *ret_begin, uint64_t *ret_end)
{
    uint64_t left = blocks->sums->bytes - block * PAWL_SUMS_BLOCK_BYTES;
    *ret_begin = block * PAWL_SUMS_BLOCK_BYTES;
    *ret_end = *ret_begin + (left < PAWL_SUMS_BLOCK_BYTES ? left : PAWL_SUMS_BLOCK_BYTES);
}

uint64_t
pawl_blocks_header_sum(const struct pawl_set_file *file)
{
    struct pawl_xxh64 sum;
    unsigned char length[8];
    const unsigned char *text = file->header.original != NULL ? file->header.original : file->header.text;
    pawl_put_u64le(length, file->header.header_bytes);
    pawl_xxh64_begin(&sum, 0);
    pawl_xxh64_update(&sum, length, sizeof length);
    pawl_xxh64_update(&sum, text, (size_t)file->header.header_bytes);
    return pawl_xxh64_finish(&sum);
}

/* ---- looking ---- */

/* One call's look at blocks first ... end - 1. */
struct look {
    struct pawl_blocks *blocks;
    size_t first, end;
    enum pawl_status status; /* of the first block that could not be read; under the blocks' lock */
    struct pawl_error error;
};

static enum pawl_status
sum_block(const struct pawl_blocks *blocks, size_t block, unsigned char *buffer, uint64_t *ret_sum,
          struct pawl_error *err)
{
    struct pawl_xxh64 sum;
    uint64_t at, end;
    pawl_blocks_extent(blocks, block, &at, &end);
    pawl_xxh64_begin(&sum, 0);
    while (at < end) {
        size_t n = end - at < READ_BYTES ? (size_t)(end - at) : READ_BYTES;
        enum pawl_status st = pawl_file_read(blocks->file, at, buffer, n, err);
        if (st != PAWL_OK)
            return st;
        pawl_xxh64_update(&sum, buffer, n);
        at += n;
    }
    *ret_sum = pawl_xxh64_finish(&sum);
    return PAWL_OK;
}

/* Note a bad block, in its place. The lock is held. */
static bool
add_bad(struct pawl_blocks *blocks, size_t block, uint64_t found)
{
    if (blocks->n_bad == blocks->bad_capacity) {
        size_t capacity = blocks->bad_capacity == 0 ? 8 : blocks->bad_capacity * 2;
        struct pawl_bad_block *bad = realloc(blocks->bad, capacity * sizeof *bad);
        if (bad == NULL)
            return false;
        blocks->bad = bad;
        blocks->bad_capacity = capacity;
    }
    size_t at = blocks->n_bad++;
    for (; at != 0 && blocks->bad[at - 1].block > block; at--)
        blocks->bad[at] = blocks->bad[at - 1];
    blocks->bad[at] = (struct pawl_bad_block){ block, found };
    return true;
}

/* Take a block that nobody has looked at: it is this thread's then. */
static bool
claim(struct look *look, size_t block)
{
    struct pawl_blocks *blocks = look->blocks;
    (void)pthread_mutex_lock(&blocks->lock);
    bool is_ours = look->status == PAWL_OK && blocks->states[block] == BLOCK_UNKNOWN;
    if (is_ours)
        blocks->states[block] = BLOCK_BUSY;
    (void)pthread_mutex_unlock(&blocks->lock);
    return is_ours;
}

static void
settle(struct look *look, size_t block, enum pawl_status st, uint64_t found, const struct pawl_error *err)
{
    struct pawl_blocks *blocks = look->blocks;
    struct pawl_error own = *err;
    bool is_right = st == PAWL_OK && found == pawl_sums_of(blocks->sums, block);
    (void)pthread_mutex_lock(&blocks->lock);
    if (st == PAWL_OK && !is_right && !add_bad(blocks, block, found))
        st = pawl_fail_memory(&own, sizeof *blocks->bad);
    blocks->states[block] = st != PAWL_OK ? BLOCK_UNKNOWN : is_right ? BLOCK_RIGHT : BLOCK_WRONG;
    if (st != PAWL_OK && look->status == PAWL_OK) {
        look->status = st;
        look->error = own;
    }
    (void)pthread_cond_broadcast(&blocks->changed);
    (void)pthread_mutex_unlock(&blocks->lock);
}

static void
look_at_piece(void *context, size_t i)
{
    struct look *look = context;
    const struct pawl_file *file = look->blocks->file;
    size_t first = look->first + i * PIECE_BLOCKS;
    size_t end = look->end - first < PIECE_BLOCKS ? look->end : first + PIECE_BLOCKS;
    unsigned char *buffer = malloc(READ_BYTES);
    struct pawl_error err = PAWL_ERROR_INIT;
    uint64_t begin, stop, ignored;
    pawl_blocks_extent(look->blocks, first, &begin, &ignored);
    pawl_blocks_extent(look->blocks, end - 1, &ignored, &stop);
    /* Threads that read one file in turns look like nobody who reads on: the system has to be told. What it answers does not matter. */
    if (file->os->takes_threads)
        (void)file->os->file_advise(file->os->context, file->handle, begin, stop - begin, PAWL_OS_WILL_NEED);
    for (size_t block = first; block < end; block++) {
        uint64_t found = 0;
        if (!claim(look, block))
            continue;
        enum pawl_status st =
            buffer == NULL ? pawl_fail_memory(&err, READ_BYTES) : sum_block(look->blocks, block, buffer, &found, &err);
        settle(look, block, st, found, &err);
    }
    free(buffer);
}

/* Is there any of a state? The lock is held. */
static bool
has_state(const struct pawl_blocks *blocks, size_t first, size_t end, enum block_state state)
{
    return end > first && memchr(blocks->states + first, (int)state, end - first) != NULL;
}

/* Make all of them known, by looking and by waiting for those who look. */
static enum pawl_status
look_at(struct look *look)
{
    struct pawl_blocks *blocks = look->blocks;
    size_t pieces = (look->end - look->first + PIECE_BLOCKS - 1) / PIECE_BLOCKS;
    (void)pthread_mutex_lock(&blocks->lock);
    while (look->status == PAWL_OK) {
        if (has_state(blocks, look->first, look->end, BLOCK_UNKNOWN)) {
            (void)pthread_mutex_unlock(&blocks->lock);
            pawl_parallel(pieces, blocks->file->os->takes_threads ? 0 : 1, look_at_piece, look);
            (void)pthread_mutex_lock(&blocks->lock);
        } else if (has_state(blocks, look->first, look->end, BLOCK_BUSY)) {
            (void)pthread_cond_wait(&blocks->changed, &blocks->lock);
        } else {
            break;
        }
    }
    enum pawl_status st = look->status;
    (void)pthread_mutex_unlock(&blocks->lock);
    return st;
}

enum pawl_status
pawl_blocks_check(struct pawl_blocks *blocks, uint64_t begin, uint64_t end, struct pawl_bad_block *ret_bad,
                  size_t *ret_n_bad, struct pawl_error *err)
{
    struct look look = { .blocks = blocks, .error = PAWL_ERROR_INIT };
    *ret_n_bad = 0;
    if (begin == end)
        return PAWL_OK;
    look.first = (size_t)(begin / PAWL_SUMS_BLOCK_BYTES);
    look.end = (size_t)((end - 1) / PAWL_SUMS_BLOCK_BYTES) + 1;
    enum pawl_status st = look_at(&look);
    if (st != PAWL_OK) {
        if (err != NULL)
            *err = look.error;
        return st;
    }
    (void)pthread_mutex_lock(&blocks->lock);
    for (size_t i = 0; i < blocks->n_bad; i++) {
        const struct pawl_bad_block *bad = &blocks->bad[i];
        if (bad->block < look.first || bad->block >= look.end)
            continue;
        if ((*ret_n_bad)++ == 0)
            *ret_bad = *bad;
    }
    (void)pthread_mutex_unlock(&blocks->lock);
    return PAWL_OK;
}

/* ---- forks ---- */

void
pawl_blocks_before_fork(struct pawl_blocks *blocks)
{
    (void)pthread_mutex_lock(&blocks->lock);
}

void
pawl_blocks_in_parent(struct pawl_blocks *blocks)
{
    (void)pthread_mutex_unlock(&blocks->lock);
}

void
pawl_blocks_in_child(struct pawl_blocks *blocks)
{
    for (size_t i = 0; i < blocks->n; i++) {
        if (blocks->states[i] == BLOCK_BUSY)
            blocks->states[i] = BLOCK_UNKNOWN;
    }
    (void)pthread_cond_init(&blocks->changed, NULL);
    (void)pthread_mutex_unlock(&blocks->lock);
}

/* ---- telling ---- */

static void
tell(const struct pawl_blocks *blocks, const struct pawl_bad_block *bad, size_t n, struct pawl_str tensor,
     uint64_t offset, struct pawl_report *report)
{
    uint64_t begin, end, ignored;
    char what[300] = "";
    char where[128];
    pawl_blocks_extent(blocks, bad[0].block, &begin, &end);
    pawl_blocks_extent(blocks, bad[n - 1].block, &ignored, &end);
    if (tensor.data != NULL)
        (void)snprintf(what, sizeof what, "tensor '%s' lies in ", PAWL_SHOW(tensor));
    if (n == 1)
        (void)snprintf(where, sizeof where, "damaged bytes %" PRIu64 " ... %" PRIu64, begin, end - 1);
    else
        (void)snprintf(where, sizeof where, "%zu damaged blocks among bytes %" PRIu64 " ... %" PRIu64 ", the first", n,
                       begin, end - 1);
    pawl_report_problem(report, "hash", blocks->sums->name, tensor, offset,
                        "%s%s: expected xxh64 %016" PRIx64 ", found %016" PRIx64, what, where,
                        pawl_sums_of(blocks->sums, bad[0].block), bad[0].found);
}

/* Runs of neighbouring bad blocks, when nobody can say what is in them. */
static void
tell_bytes(const struct pawl_blocks *blocks, struct pawl_report *report)
{
    size_t told = 0;
    for (size_t i = 0; i < blocks->n_bad && told < TOLD_MAX; told++) {
        size_t n = 1;
        while (i + n < blocks->n_bad && blocks->bad[i + n].block == blocks->bad[i].block + n)
            n++;
        tell(blocks, &blocks->bad[i], n, PAWL_NO_STR, blocks->bad[i].block * PAWL_SUMS_BLOCK_BYTES, report);
        i += n;
    }
}

/* Tensors ascend in the file, and so do bad blocks. */
static void
tell_tensors(const struct pawl_blocks *blocks, const struct pawl_st_header *header, struct pawl_report *report)
{
    size_t first = 0, told = 0, more = 0;
    for (size_t i = 0; i < header->n; i++) {
        const struct pawl_tensor_info *info = &header->tensors[i];
        uint64_t begin = header->data_begin + info->begin;
        uint64_t end = header->data_begin + info->end;
        size_t n = 0;
        if (begin == end)
            continue;
        while (first < blocks->n_bad && blocks->bad[first].block < begin / PAWL_SUMS_BLOCK_BYTES)
            first++;
        while (first + n < blocks->n_bad && blocks->bad[first + n].block <= (end - 1) / PAWL_SUMS_BLOCK_BYTES)
            n++;
        if (n == 0)
            continue;
        if (told == TOLD_MAX) {
            more++;
            continue;
        }
        uint64_t block = blocks->bad[first].block * PAWL_SUMS_BLOCK_BYTES;
        tell(blocks, &blocks->bad[first], n, info->name, block > begin ? block : begin, report);
        told++;
    }
    if (more != 0)
        pawl_report_problem(report, "hash", blocks->sums->name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "and %zu more tensors in damaged blocks", more);
    if (told ==
        0) /* the damage is in the header's block, behind which nothing is: the header is right by its own sum */
        tell_bytes(blocks, report);
}

void
pawl_blocks_tell(struct pawl_blocks *blocks, const struct pawl_set_file *set_file, struct pawl_report *report)
{
    (void)pthread_mutex_lock(&blocks->lock);
    if (blocks->n_bad == 0)
        pawl_report_warning(report, "sums", blocks->sums->name,
                            "every block agrees with pawl.sums: it is the sha256 in the manifest that does not");
    else if (set_file != NULL && pawl_blocks_header_sum(set_file) == blocks->sums->header_sum)
        tell_tensors(blocks, &set_file->header, report);
    else
        tell_bytes(blocks, report);
    (void)pthread_mutex_unlock(&blocks->lock);
}
