#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include "base/checked.h"
#include "model/read.h"

/* ---- making and closing ---- */

static void
take_lock(void *context)
{
    struct pawl_model *model = context;
    (void)pthread_mutex_lock(&model->lock);
}

static void
give_lock(void *context)
{
    struct pawl_model *model = context;
    (void)pthread_mutex_unlock(&model->lock);
}

/* A forked child keeps its parent's models, and no lock on them is another thread's there. */
static enum pawl_status
watch_forks(struct pawl_model *model, struct pawl_error *err)
{
    model->watch = (struct pawl_fork_watch){ take_lock, give_lock, give_lock, model, NULL, NULL };
    enum pawl_status st = pawl_fork_watch_begin(&model->watch, err);
    if (st != PAWL_OK)
        (void)pthread_mutex_destroy(&model->lock);
    return st;
}

static enum pawl_status
model_new(const struct pawl_set *set, enum pawl_kind kind, struct pawl_model **ret_model, struct pawl_error *err)
{
    struct pawl_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return pawl_fail_memory(err, sizeof *model);
    model->files = calloc(set->n_files + 1, sizeof *model->files);
    model->maps = calloc(set->n_files + 1, sizeof *model->maps);
    enum pawl_status st = model->files == NULL || model->maps == NULL || pthread_mutex_init(&model->lock, NULL) != 0
                              ? pawl_fail_memory(err, (set->n_files + 1) * (sizeof *model->files + sizeof *model->maps))
                              : watch_forks(model, err);
    if (st != PAWL_OK) {
        free(model->files);
        free(model->maps);
        free(model);
        return st;
    }
    model->kind = kind;
    model->set = set;
    for (size_t i = 0; i < set->n_files; i++) {
        model->files[i].name = set->files[i].name;
        model->files[i].bytes = set->files[i].header.file_bytes;
        model->files[i].header_bytes = set->files[i].header.header_bytes;
    }
    *ret_model = model;
    return PAWL_OK;
}

enum pawl_status
pawl_model_adopt(struct pawl_set *set, enum pawl_kind kind, struct pawl_model **ret_model, struct pawl_error *err)
{
    struct pawl_model *model;
    enum pawl_status st = model_new(set, kind, &model, err);
    if (st != PAWL_OK)
        return st;
    model->own = *set;
    model->set = &model->own;
    *set = (struct pawl_set)PAWL_SET_INIT;
    *ret_model = model;
    return PAWL_OK;
}

enum pawl_status
pawl_model_share(const struct pawl_set *set, enum pawl_kind kind, void *owner, void (*close_owner)(void *owner),
                 struct pawl_model **ret_model, struct pawl_error *err)
{
    struct pawl_model *model;
    enum pawl_status st = model_new(set, kind, &model, err);
    if (st != PAWL_OK)
        return st;
    model->owner = owner;
    model->close_owner = close_owner;
    *ret_model = model;
    return PAWL_OK;
}

void
pawl_model_close(struct pawl_model *model)
{
    if (model == NULL)
        return;
    for (size_t i = 0; i < model->set->n_files; i++)
        pawl_map_release(&model->maps[i]);
    pawl_fork_watch_end(&model->watch);
    pthread_mutex_destroy(&model->lock);
    free(model->maps);
    free(model->files);
    pawl_set_release(&model->own);
    if (model->owner != NULL)
        model->close_owner(model->owner);
    free(model);
}

/* ---- looking ---- */

enum pawl_kind
pawl_model_kind(const struct pawl_model *model)
{
    return model->kind;
}

const struct pawl_tensor_info *
pawl_model_tensors(const struct pawl_model *model, size_t *ret_n)
{
    *ret_n = model->set->n;
    return model->set->tensors;
}

const struct pawl_tensor_info *
pawl_model_find(const struct pawl_model *model, struct pawl_str name)
{
    return pawl_set_find(model->set, name);
}

const struct pawl_pair *
pawl_model_metadata(const struct pawl_model *model, size_t *ret_n, bool *ret_is_present)
{
    const struct pawl_st_header *header = &model->set->files[0].header;
    *ret_n = header->n_metadata;
    if (ret_is_present != NULL)
        *ret_is_present = header->has_metadata;
    return header->metadata;
}

const struct pawl_pair *
pawl_model_aliases(const struct pawl_model *model, size_t *ret_n)
{
    *ret_n = model->set->n_aliases;
    return model->set->aliases;
}

const struct pawl_model_file *
pawl_model_files(const struct pawl_model *model, size_t *ret_n)
{
    *ret_n = model->set->n_files;
    return model->files;
}

/* ---- reading ---- */

/* The file of a tensor; NULL, with an error, for a struct that is no tensor of this model. */
static const struct pawl_set_file *
file_of(const struct pawl_model *model, const struct pawl_tensor_info *tensor, struct pawl_error *err)
{
    const struct pawl_set *set = model->set;
    if (tensor != NULL && tensor->file < set->n_files && tensor->begin <= tensor->end) {
        const struct pawl_set_file *file = &set->files[tensor->file];
        if (tensor->end <= file->header.file_bytes - file->header.data_begin)
            return file;
    }
    (void)pawl_fail(err, PAWL_ARGUMENT, "argument", "not a tensor of this model");
    return NULL;
}

static enum pawl_status
ask_guard(const struct pawl_model *model, size_t file, uint64_t begin, uint64_t end, struct pawl_error *err)
{
    const struct pawl_guard *guard = &model->guard;
    return guard->check == NULL || begin == end ? PAWL_OK : guard->check(guard->context, file, begin, end, err);
}

enum pawl_status
pawl_model_guard_all(const struct pawl_model *model, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < model->set->n_files && st == PAWL_OK; i++)
        st = ask_guard(model, i, 0, model->files[i].bytes, err);
    return st;
}

static enum pawl_status
with_tensor(const struct pawl_tensor_info *tensor, enum pawl_status st, struct pawl_error *err)
{
    if (st == PAWL_OK)
        return PAWL_OK;
    pawl_error_tensor(err, tensor->name);
    return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(tensor->name));
}

/* What the result takes, once it is known that there is one. */
static enum pawl_status
check_read(const struct pawl_tensor_info *tensor, uint64_t own_bytes, enum pawl_dtype dtype, const void *data,
           size_t bytes, struct pawl_error *err)
{
    unsigned from = pawl_dtype_bits(tensor->dtype);
    unsigned to = pawl_dtype_bits(dtype);
    uint64_t bits;
    if (dtype != tensor->dtype && (!pawl_dtype_is_float(tensor->dtype) || !pawl_dtype_is_float(dtype)))
        return pawl_fail(
            err, PAWL_ARGUMENT, "argument", "%s can't be read as %s: as it is, or a float as another float",
            pawl_dtype_name(tensor->dtype), pawl_dtype_name(dtype) == NULL ? "no dtype" : pawl_dtype_name(dtype));
    /* own_bytes * 8 / from values; a file's tensor has less than 2^61 bytes */
    if (!pawl_mul_u64(own_bytes * 8 / from, to, &bits))
        return pawl_fail_memory(err, SIZE_MAX);
    if (bits % 8 != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%" PRIu64 " elements of %s are no whole bytes", bits / to,
                         pawl_dtype_name(dtype));
    if (bytes != bits / 8)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%s takes %" PRIu64 " bytes, the caller's memory has %zu",
                         pawl_dtype_name(dtype), bits / 8, bytes);
    if (dtype != tensor->dtype && to >= 16 && (uintptr_t)data % (to / 8) != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%s needs memory aligned to %u bytes", pawl_dtype_name(dtype),
                         to / 8);
    return PAWL_OK;
}

enum pawl_status
pawl_model_read(const struct pawl_model *model, const struct pawl_tensor_info *tensor, enum pawl_dtype dtype,
                void *data, size_t bytes, struct pawl_error *err)
{
    const struct pawl_set_file *file = file_of(model, tensor, err);
    if (file == NULL)
        return PAWL_ARGUMENT;
    uint64_t own_bytes = tensor->end - tensor->begin;
    const struct pawl_reading reading = { &file->file, file->header.data_begin + tensor->begin, tensor->dtype, dtype,
                                          PAWL_OVERFLOW_FORMAT };
    enum pawl_status st = check_read(tensor, own_bytes, dtype, data, bytes, err);
    if (st == PAWL_OK)
        st = ask_guard(model, tensor->file, reading.begin, reading.begin + own_bytes, err);
    if (st == PAWL_OK)
        st = pawl_read_whole(&reading, own_bytes, data, err);
    if (st == PAWL_OK) /* what was read is of the file that was opened, and of all of it */
        st = pawl_file_check_unchanged(&file->file, err);
    return with_tensor(tensor, st, err);
}

/* Where the highest run ends, in bytes of the tensor. */
static uint64_t
selection_end(const struct pawl_selection *selection, enum pawl_dtype dtype)
{
    unsigned bits = pawl_dtype_bits(dtype);
    uint64_t end = selection->base + selection->run / 8 * bits + selection->run % 8 * bits / 8;
    for (size_t i = 0; i < selection->n; i++)
        end += (selection->levels[i].count - 1) * selection->levels[i].step;
    return end;
}

enum pawl_status
pawl_model_read_slice(const struct pawl_model *model, const struct pawl_tensor_info *tensor,
                      const struct pawl_slice_axis *axes, size_t n, enum pawl_dtype dtype, enum pawl_overflow overflow,
                      void *data, size_t bytes, struct pawl_error *err)
{
    struct pawl_selection selection;
    const struct pawl_set_file *file = file_of(model, tensor, err);
    if (file == NULL)
        return PAWL_ARGUMENT;
    enum pawl_status st = pawl_selection_make(&selection, tensor, axes, n, NULL, NULL, err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_reading reading = { &file->file, file->header.data_begin + tensor->begin, tensor->dtype, dtype,
                                          overflow };
    st = check_read(tensor, selection.bytes, dtype, data, bytes, err);
    if (st == PAWL_OK && selection.elements != 0)
        st = ask_guard(model, tensor->file, reading.begin + selection.base,
                       reading.begin + selection_end(&selection, tensor->dtype), err);
    if (st == PAWL_OK)
        st = pawl_read_selection(&reading, &selection, data, err);
    if (st == PAWL_OK)
        st = pawl_file_check_unchanged(&file->file, err);
    return with_tensor(tensor, st, err);
}

/*
 * The whole file is mapped once: tensors have no alignment, and a mapping for each would cost a page table and a call. The
 * size is looked at first, so that a file that was cut before the call is an error and not a pointer to nothing; no page is touched.
 */
enum pawl_status
pawl_model_map(const struct pawl_model *model, const struct pawl_tensor_info *tensor, const void **ret_data,
               bool *ret_is_aligned, struct pawl_error *err)
{
    const struct pawl_set_file *file = file_of(model, tensor, err);
    if (file == NULL)
        return PAWL_ARGUMENT;
    uint64_t begin = file->header.data_begin + tensor->begin;
    enum pawl_status st = ask_guard(model, tensor->file, begin, file->header.data_begin + tensor->end, err);
    if (st == PAWL_OK) /* and what it looked at is of the file that was opened */
        st = pawl_file_check_unchanged(&file->file, err);
    if (st != PAWL_OK)
        return with_tensor(tensor, st, err);

    /* The maps are a cache: making one does not change the model that others see. */
    struct pawl_model *own = (struct pawl_model *)model;
    struct pawl_map *map = &own->maps[tensor->file];
    pthread_mutex_lock(&own->lock);
    if (map->data == NULL)
        st = pawl_map_file(map, &file->file, err);
    const unsigned char *data = map->data;
    pthread_mutex_unlock(&own->lock);
    if (st != PAWL_OK)
        return with_tensor(tensor, st, err);

    const unsigned char *at = data + begin;
    unsigned bits = pawl_dtype_bits(tensor->dtype);
    size_t unit = tensor->dtype == PAWL_C64 ? 4 : bits % 8 != 0 ? 1 : bits / 8;
    *ret_data = at;
    if (ret_is_aligned != NULL)
        *ret_is_aligned = (uintptr_t)at % unit == 0;
    return PAWL_OK;
}
