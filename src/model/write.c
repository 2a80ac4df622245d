/* Writing one canonical safetensors file under a path, durably. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "model/model.h"
#include "model/shared_storage.h"

/* Written between two calls of progress. */
#define TELL_BYTES ((size_t)4 << 20)

struct writing {
    struct pawl_arena arena;
    const struct pawl_tensor *given;
    size_t n_given;
    size_t *target; /* by given tensor: the one that is written in its place, itself when it is */
    struct pawl_st_item *items;
    size_t *item_of; /* by item: which of the given */
    size_t n;
    struct pawl_pair *metadata;
    size_t n_metadata;
    struct pawl_name_table names; /* of the given */
    struct pawl_st_plan plan;
    struct pawl_write_options options;
};

/* ---- tied tensors ---- */

static enum pawl_status
find_tied(struct writing *w, struct pawl_error *err)
{
    const struct pawl_tensor **order = calloc(w->n_given + 1, sizeof(const struct pawl_tensor *));
    if (order == NULL)
        return pawl_fail_memory(err, w->n_given * sizeof *order);
    size_t n = 0;
    for (size_t i = 0; i < w->n_given; i++) {
        w->target[i] = i;
        if (pawl_tensor_has_storage(&w->given[i]))
            order[n++] = &w->given[i];
    }
    pawl_tensors_sort_by_storage(order, n);
    for (size_t i = 1; i < n; i++) {
        if (pawl_tensor_shares(order[i - 1], order[i]))
            w->target[order[i] - w->given] = w->target[order[i - 1] - w->given];
    }
    free(order);
    return PAWL_OK;
}

/* ---- metadata ---- */

static enum pawl_status
add_alias(struct writing *w, struct pawl_str alias, struct pawl_str target, struct pawl_error *err)
{
    const struct pawl_str prefix = PAWL_STR(PAWL_ALIAS_PREFIX);
    char *key = pawl_arena_take(&w->arena, prefix.len + alias.len);
    if (key == NULL)
        return pawl_fail_memory(err, prefix.len + alias.len);
    memcpy(key, prefix.data, prefix.len);
    if (alias.len != 0)
        memcpy(key + prefix.len, alias.data, alias.len);
    w->metadata[w->n_metadata].key = pawl_str_make(key, prefix.len + alias.len);
    w->metadata[w->n_metadata].value = target;
    w->n_metadata++;
    return PAWL_OK;
}

/*
 * The caller's metadata may have been read from another file, with its records of aliases: a record whose name is now a
 * tensor has done its work, one whose target is among the tensors stays, and one without a target would lose a weight.
 */
static enum pawl_status
take_metadata(struct writing *w, const struct pawl_write_options *options, struct pawl_error *err)
{
    const struct pawl_str prefix = PAWL_STR(PAWL_ALIAS_PREFIX);
    for (size_t i = 0; i < options->n_metadata; i++) {
        struct pawl_pair pair = options->metadata[i];
        if (pawl_str_starts(pair.key, prefix)) {
            struct pawl_str alias = pawl_str_make(pair.key.data + prefix.len, pair.key.len - prefix.len);
            if (pawl_name_table_find(&w->names, alias) != PAWL_NAME_TABLE_NONE)
                continue;
            size_t at = pawl_name_table_find(&w->names, pair.value);
            if (at == PAWL_NAME_TABLE_NONE)
                return pawl_fail(err, PAWL_ARGUMENT, "argument",
                                 "the metadata make '%s' an alias of '%s', which is not among the tensors",
                                 PAWL_SHOW(alias), PAWL_SHOW(pair.value));
            pair.value = w->given[w->target[at]].name;
        }
        w->metadata[w->n_metadata++] = pair;
    }
    for (size_t i = 0; i < w->n_given; i++) {
        if (w->target[i] == i)
            continue;
        enum pawl_status st = add_alias(w, w->given[i].name, w->given[w->target[i]].name, err);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* ---- the whole ---- */

static enum pawl_status
prepare(struct writing *w, const struct pawl_write_options *options, struct pawl_error *err)
{
    size_t n = w->n_given;
    enum pawl_status st = pawl_names_build(&w->names, n == 0 ? NULL : &w->given[0].name, sizeof *w->given, n, err);
    if (st != PAWL_OK)
        return st;
    w->target = pawl_arena_take_array(&w->arena, n + 1, sizeof *w->target);
    w->items = pawl_arena_take_array(&w->arena, n + 1, sizeof *w->items);
    w->item_of = pawl_arena_take_array(&w->arena, n + 1, sizeof *w->item_of);
    w->metadata = n > SIZE_MAX - 1 - options->n_metadata
                      ? NULL
                      : pawl_arena_take_array(&w->arena, n + 1 + options->n_metadata, sizeof *w->metadata);
    if (w->target == NULL || w->items == NULL || w->item_of == NULL || w->metadata == NULL)
        return pawl_fail_memory(err, n * (sizeof *w->items + 2 * sizeof *w->target + sizeof *w->metadata));
    st = find_tied(w, err);
    if (st == PAWL_OK)
        st = take_metadata(w, options, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        const struct pawl_tensor *tensor = &w->given[i];
        if (w->target[i] != i)
            continue;
        w->items[w->n] = (struct pawl_st_item){ tensor->name, tensor->stored != 0 ? tensor->stored : tensor->dtype,
                                                tensor->rank, tensor->shape };
        w->item_of[w->n++] = i;
    }
    return st;
}

static enum pawl_status
tell_progress(const struct writing *w, const struct pawl_writer *writer, uint64_t *told, struct pawl_error *err)
{
    bool is_news = writer->offset > *told;
    *told = writer->offset;
    if (w->options.progress == NULL || !is_news ||
        w->options.progress(w->options.progress_context, writer->offset, w->plan.file_bytes) == 0)
        return PAWL_OK;
    return pawl_fail(err, PAWL_CANCELED, "canceled", "canceled by the caller; nothing was changed");
}

/* A tensor that is one run in memory, told about on the way: it may be the whole file. */
static enum pawl_status
write_told(const struct writing *w, const struct pawl_tensor *tensor, uint64_t bytes, struct pawl_writer *writer,
           uint64_t *told, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    for (uint64_t at = 0; at < bytes && st == PAWL_OK; at += TELL_BYTES) {
        size_t n = bytes - at < TELL_BYTES ? (size_t)(bytes - at) : TELL_BYTES;
        st = pawl_writer_add(writer, (const unsigned char *)tensor->data + at, n, err);
        if (st != PAWL_OK) {
            pawl_error_tensor(err, tensor->name);
            return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(tensor->name));
        }
        st = tell_progress(w, writer, told, err);
    }
    return st;
}

static enum pawl_status
write_tensor(const struct writing *w, const struct pawl_tensor *tensor, struct pawl_writer *writer, uint64_t *told,
             struct pawl_error *err)
{
    uint64_t bytes;
    enum pawl_status st = pawl_tensor_check(tensor, &bytes, err);
    if (st != PAWL_OK)
        return st;
    bool is_one_run = tensor->source == NULL && (tensor->stored == 0 || tensor->stored == tensor->dtype) &&
                      pawl_tensor_is_packed(tensor);
    if (w->options.progress != NULL && is_one_run && bytes > TELL_BYTES)
        return write_told(w, tensor, bytes, writer, told, err);
    return pawl_tensor_write(tensor, writer, err);
}

/* The whole file, front to back. */
static enum pawl_status
write_all(const struct writing *w, struct pawl_writer *writer, struct pawl_error *err)
{
    uint64_t told = 0;
    enum pawl_status st = pawl_writer_add(writer, w->plan.prefix.data, w->plan.prefix.len, err);
    for (size_t i = 0; i < w->n && st == PAWL_OK; i++) {
        st = write_tensor(w, &w->given[w->item_of[w->plan.order[i]]], writer, &told, err);
        if (st == PAWL_OK && writer->offset - told >= TELL_BYTES)
            st = tell_progress(w, writer, &told, err);
    }
    return st == PAWL_OK ? tell_progress(w, writer, &told, err) : st;
}

/* Everything that a caller can get wrong, before anything is looked for. */
static enum pawl_status
check_arguments(const struct pawl_tensor *tensors, size_t n, const struct pawl_write_options *options,
                struct pawl_error *err)
{
    if (options->align != 0 && options->align != 8 && options->align != 64 && options->align != 256 &&
        options->align != 4096)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "data can begin at a multiple of 8, 64, 256 or 4096 bytes, not of %" PRIu64, options->align);
    if (options->n_metadata != 0 && options->metadata == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%zu metadata, and no place of them", options->n_metadata);
    if (n != 0 && tensors == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%zu tensors, and no place of them", n);
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes;
        if (tensors[i].size != sizeof tensors[i])
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "tensor %zu has a struct of %zu bytes, expected %zu: use its macro", i, tensors[i].size,
                             sizeof tensors[i]);
        enum pawl_status st = pawl_tensor_check(&tensors[i], &bytes, err);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* What the format refuses is the caller's argument here, whatever it would be in a file. */
static enum pawl_status
as_argument(enum pawl_status st, struct pawl_error *err)
{
    if (st != PAWL_CORRUPT && st != PAWL_LIMIT)
        return st;
    if (err != NULL)
        err->status = PAWL_ARGUMENT;
    return PAWL_ARGUMENT;
}

static void
release(struct writing *w)
{
    pawl_st_plan_release(&w->plan);
    pawl_name_table_release(&w->names);
    pawl_arena_release(&w->arena);
}

/* From what the caller gives to a plan of the file: all that can be refused is refused here. `w` must be released in any case. */
static enum pawl_status
plan_file(struct writing *w, const struct pawl_tensor *tensors, size_t n, const struct pawl_write_options *options,
          struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    *w = (struct writing){ .given = tensors, .n_given = n, .names = PAWL_NAME_TABLE_INIT };
    w->options = PAWL_WRITE_OPTIONS(.align = 0);
    if (options != NULL)
        st =
            pawl_options_take(&w->options, sizeof w->options, options, options->size, "struct pawl_write_options", err);
    if (st == PAWL_OK)
        st = check_arguments(tensors, n, &w->options, err);
    if (st == PAWL_OK)
        st = prepare(w, &w->options, err);
    if (st == PAWL_OK)
        st = pawl_st_plan(&w->plan, w->items, w->n, w->metadata, w->n_metadata,
                          w->options.has_metadata != 0 || w->n_metadata != 0, w->options.align, err);
    return as_argument(st, err);
}

static enum pawl_status
publish(const struct writing *w, const struct pawl_os *os, const char *path, struct pawl_error *err)
{
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_publish publish = PAWL_PUBLISH_INIT;
    enum pawl_status st =
        pawl_publish_begin(&publish, os, path, !w->options.keep_existing, w->plan.file_bytes, no_tap, err);
    publish.is_unsynced = w->options.is_unsynced != 0;
    if (st == PAWL_OK)
        st = write_all(w, &publish.writer, err);
    if (st == PAWL_OK)
        st = pawl_publish_commit(&publish, err);
    pawl_publish_release(&publish);
    return st;
}

enum pawl_status
pawl_safetensors_write_os(const struct pawl_os *os, struct pawl_str path, const struct pawl_tensor *tensors, size_t n,
                          const struct pawl_write_options *options, struct pawl_error *err)
{
    struct writing w;
    if (path.len == 0 || memchr(path.data, 0, path.len) != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    enum pawl_status st = plan_file(&w, tensors, n, options, err);
    if (st == PAWL_OK) {
        char *path_z = pawl_str_dup(path);
        st = path_z != NULL ? publish(&w, os, path_z, err) : pawl_fail_memory(err, path.len);
        free(path_z);
        if (st != PAWL_OK)
            pawl_error_path(err, path);
    }
    release(&w);
    return st;
}

enum pawl_status
pawl_safetensors_write(struct pawl_str path, const struct pawl_tensor *tensors, size_t n,
                       const struct pawl_write_options *options, struct pawl_error *err)
{
    return pawl_safetensors_write_os(pawl_os_posix(), path, tensors, n, options, err);
}

/* ---- without a file ---- */

static enum pawl_status
write_to_sink(const struct writing *w, const struct pawl_sink *sink, struct pawl_error *err)
{
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    enum pawl_status st = pawl_writer_to_sink(&writer, sink, no_tap, err);
    if (st == PAWL_OK)
        st = write_all(w, &writer, err);
    if (st == PAWL_OK)
        st = pawl_writer_close(&writer, err);
    pawl_writer_abandon(&writer);
    return st;
}

enum pawl_status
pawl_safetensors_write_sink(const struct pawl_sink *sink, const struct pawl_tensor *tensors, size_t n,
                            const struct pawl_write_options *options, struct pawl_error *err)
{
    struct writing w;
    if (sink == NULL || sink->write == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a sink without a function to write");
    enum pawl_status st = plan_file(&w, tensors, n, options, err);
    if (st == PAWL_OK)
        st = write_to_sink(&w, sink, err);
    release(&w);
    return st;
}

/* Memory as a sink: of the size that was planned, so it never ends too early. */
static enum pawl_status
fill_memory(void *context, const void *data, size_t n, struct pawl_error *err)
{
    unsigned char **at = context;
    (void)err;
    memcpy(*at, data, n);
    *at += n;
    return PAWL_OK;
}

enum pawl_status
pawl_safetensors_write_memory(void *data, size_t bytes, const struct pawl_tensor *tensors, size_t n,
                              const struct pawl_write_options *options, uint64_t *ret_bytes, struct pawl_error *err)
{
    struct writing w;
    unsigned char *at = data;
    const struct pawl_sink sink = { fill_memory, &at };
    enum pawl_status st = plan_file(&w, tensors, n, options, err);
    uint64_t needed = w.plan.file_bytes;
    if (st == PAWL_OK && data != NULL && needed != bytes)
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "the file takes %" PRIu64 " bytes, the caller's memory has %zu",
                       needed, bytes);
    if (st == PAWL_OK && data != NULL)
        st = write_to_sink(&w, &sink, err);
    if (st == PAWL_OK && ret_bytes != NULL)
        *ret_bytes = needed;
    release(&w);
    return st;
}
