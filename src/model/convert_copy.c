/*
 * The bytes of a conversion, from the files of the input to those of the output.
 *
 * The output's order is not the input's, but in long runs it is: tensors that follow each other on both sides are read as one. A
 * block is filled from as many runs as it takes, so that a hundred thousand small tensors are a few reads.
 *
 * One thread reads, the caller's writes: each copies between the page cache and a block, which takes about as long as the disk needs, and one
 * thread for both would add the times. The ring has a block in each hand and two between, for when one side stops for a moment.
 */
#include <signal.h>
#include <stdlib.h>
#include "model/convert_model.h"
#include "os/large.h"

/* What is read at once, and handed to the writer. */
#define BLOCK_BYTES ((size_t)4 << 20)

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Less than this is copied before a second thread is at work. */
#define THREAD_BYTES_MIN ((uint64_t)32 << 20)

static const struct pawl_tensor_info *
tensor_at(const struct pawl_conversion *c, size_t file, size_t item)
{
    const struct pawl_split_file *f = &c->split.files[file];
    return c->sources[f->items[f->plan.order[item]]];
}

/* Bytes from where the reader is to the end of the run, at most `most`; moves it there. */
static size_t
take_run(struct pawl_copier *copier, size_t most)
{
    const struct pawl_conversion *c = copier->conversion;
    const struct pawl_split_file *f = &c->split.files[copier->file];
    const struct pawl_tensor_info *tensor = tensor_at(c, copier->file, copier->item);
    uint64_t n = 0;
    for (;;) {
        uint64_t left = tensor->end - tensor->begin - copier->at;
        if (left > most - n) {
            copier->at += most - n;
            return most;
        }
        n += left;
        copier->at = 0;
        if (++copier->item == f->n)
            return (size_t)n;
        const struct pawl_tensor_info *next = tensor_at(c, copier->file, copier->item);
        if (next->file != tensor->file || next->begin != tensor->end)
            return (size_t)n;
        tensor = next;
    }
}

/* Fill a block with what comes next of one file. n 0: there is nothing more at all. */
static enum pawl_status
fill(struct pawl_copier *copier, struct pawl_copy_block *block, struct pawl_error *err)
{
    const struct pawl_conversion *c = copier->conversion;
    size_t room = BLOCK_BYTES;
    block->n = 0;
    while (block->n < room && copier->file < c->split.n_files) {
        if (copier->item == c->split.files[copier->file].n) {
            if (block->n != 0)
                break;
            copier->file++;
            copier->item = 0;
            continue;
        }
        if (copier->item == 0 && copier->at == 0) /* the header is in front of the first block */
            room = BLOCK_BYTES - c->split.files[copier->file].plan.prefix.len % BLOCK_BYTES;
        const struct pawl_tensor_info *tensor = tensor_at(c, copier->file, copier->item);
        const struct pawl_set_file *from = &c->set->files[tensor->file];
        uint64_t offset = from->header.data_begin + tensor->begin + copier->at;
        size_t n = take_run(copier, room - block->n);
        if (n == 0)
            continue; /* nothing but empty tensors */
        enum pawl_status st = pawl_file_read(&from->file, offset, block->data + block->n, n, err);
        if (st != PAWL_OK)
            return st;
        block->n += n;
        block->file = copier->file;
    }
    return PAWL_OK;
}

/* ---- the thread ---- */

static void *
read_ahead(void *context)
{
    struct pawl_copier *copier = context;
    pthread_mutex_lock(&copier->lock);
    while (!copier->must_stop && !copier->is_at_end) {
        if (copier->n_filled == PAWL_COPY_BLOCKS) {
            pthread_cond_wait(&copier->changed, &copier->lock);
            continue;
        }
        struct pawl_copy_block *block = &copier->blocks[(copier->first + copier->n_filled) % PAWL_COPY_BLOCKS];
        pthread_mutex_unlock(&copier->lock);
        enum pawl_status st = fill(copier, block, &copier->err);
        pthread_mutex_lock(&copier->lock);
        copier->status = st;
        copier->is_at_end = st != PAWL_OK || block->n == 0;
        if (!copier->is_at_end)
            copier->n_filled++;
        pthread_cond_signal(&copier->changed);
    }
    pthread_mutex_unlock(&copier->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static bool
start_thread(struct pawl_copier *copier)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    bool is_started = pthread_create(&copier->thread, NULL, read_ahead, copier) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_started;
}

/* ---- the caller's side ---- */

enum pawl_status
pawl_copier_begin(struct pawl_copier *copier, const struct pawl_conversion *conversion, struct pawl_error *err)
{
    bool is_large = conversion->data_bytes >= THREAD_BYTES_MIN;
    size_t n = is_large ? PAWL_COPY_BLOCKS : 1;
    *copier = (struct pawl_copier){ .conversion = conversion, .err = PAWL_ERROR_INIT };
    copier->memory = is_large ? aligned_alloc(HUGE_PAGE_BYTES, n * BLOCK_BYTES) : malloc(n * BLOCK_BYTES);
    if (copier->memory == NULL)
        return pawl_fail_memory(err, n * BLOCK_BYTES);
    if (is_large)
        pawl_memory_filled(copier->memory, n * BLOCK_BYTES);
    for (size_t i = 0; i < n; i++)
        copier->blocks[i].data = copier->memory + i * BLOCK_BYTES;
    if (pthread_mutex_init(&copier->lock, NULL) != 0) {
        free(copier->memory);
        return pawl_fail_memory(err, sizeof copier->lock);
    }
    if (pthread_cond_init(&copier->changed, NULL) != 0) {
        pthread_mutex_destroy(&copier->lock);
        free(copier->memory);
        return pawl_fail_memory(err, sizeof copier->changed);
    }
    copier->has_thread = is_large && start_thread(copier); /* without one it is only slower */
    return PAWL_OK;
}

void
pawl_copier_end(struct pawl_copier *copier)
{
    if (copier->has_thread) {
        pthread_mutex_lock(&copier->lock);
        copier->must_stop = true;
        pthread_cond_signal(&copier->changed);
        pthread_mutex_unlock(&copier->lock);
        pthread_join(copier->thread, NULL);
    }
    pthread_cond_destroy(&copier->changed);
    pthread_mutex_destroy(&copier->lock);
    free(copier->memory);
}

static enum pawl_status
tell_progress(const struct pawl_copier *copier, struct pawl_error *err)
{
    const struct pawl_convert_options *o = &copier->conversion->options;
    if (o->progress == NULL ||
        o->progress(o->progress_context, copier->done_bytes, copier->conversion->data_bytes) == 0)
        return PAWL_OK;
    return pawl_fail(err, PAWL_CANCELED, "canceled", "canceled by the caller; nothing was changed");
}

/* The block that is next, waiting for the reader where there is one; n 0 at the end. */
static enum pawl_status
look(struct pawl_copier *copier, const struct pawl_copy_block **ret_block, struct pawl_error *err)
{
    static const struct pawl_copy_block NOTHING = { NULL, 0, SIZE_MAX };
    enum pawl_status st = PAWL_OK;
    bool is_there;
    if (!copier->has_thread) {
        if (copier->n_filled == 0 && !copier->is_at_end) {
            st = fill(copier, &copier->blocks[0], err);
            copier->is_at_end = st != PAWL_OK || copier->blocks[0].n == 0;
            copier->n_filled = copier->is_at_end ? 0 : 1;
        }
        is_there = copier->n_filled != 0;
    } else {
        pthread_mutex_lock(&copier->lock);
        while (copier->n_filled == 0 && !copier->is_at_end)
            pthread_cond_wait(&copier->changed, &copier->lock);
        is_there = copier->n_filled != 0;
        if (!is_there)
            st = copier->status;
        pthread_mutex_unlock(&copier->lock);
        if (st != PAWL_OK && err != NULL)
            *err = copier->err;
    }
    *ret_block = is_there ? &copier->blocks[copier->first] : &NOTHING;
    return st;
}

/* The caller is done with the block it has. */
static void
give_back(struct pawl_copier *copier)
{
    if (!copier->has_block)
        return;
    copier->has_block = false;
    pthread_mutex_lock(&copier->lock);
    if (copier->has_thread)
        copier->first = (copier->first + 1) % PAWL_COPY_BLOCKS;
    copier->n_filled--;
    pthread_cond_signal(&copier->changed);
    pthread_mutex_unlock(&copier->lock);
}

enum pawl_status
pawl_copier_next(struct pawl_copier *copier, size_t file, const void **ret_data, size_t *ret_n, struct pawl_error *err)
{
    const struct pawl_copy_block *block;
    give_back(copier);
    enum pawl_status st = tell_progress(copier, err);
    if (st == PAWL_OK)
        st = look(copier, &block, err);
    if (st != PAWL_OK)
        return st;
    *ret_n = 0;
    if (block->file != file)
        return PAWL_OK;
    copier->has_block = true;
    copier->done_bytes += block->n;
    *ret_data = block->data;
    *ret_n = block->n;
    return PAWL_OK;
}

enum pawl_status
pawl_copier_write(struct pawl_copier *copier, size_t file, struct pawl_writer *writer, struct pawl_error *err)
{
    const struct pawl_st_plan *plan = &copier->conversion->split.files[file].plan;
    const void *data = NULL;
    size_t n = 1;
    enum pawl_status st = pawl_writer_add(writer, plan->prefix.data, plan->prefix.len, err);
    while (st == PAWL_OK && n != 0) {
        st = pawl_copier_next(copier, file, &data, &n, err);
        if (st == PAWL_OK && n != 0)
            st = pawl_writer_add(writer, data, n, err);
    }
    return st;
}

enum pawl_status
pawl_conversion_check_unchanged(const struct pawl_conversion *conversion, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < conversion->set->n_files && st == PAWL_OK; i++)
        st = pawl_file_check_unchanged(&conversion->set->files[i].file, err);
    return st;
}
