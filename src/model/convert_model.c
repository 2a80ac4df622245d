/* Rewriting a model: the options, where the output goes, and the account of it. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "model/convert_model.h"

/* ---- the account ---- */

struct account {
    struct pawl_converted shown;
    struct pawl_arena arena;
};

void
pawl_converted_free(struct pawl_converted *converted)
{
    if (converted == NULL)
        return;
    struct account *account = (struct account *)converted; /* the first member */
    pawl_arena_release(&account->arena);
    free(account);
}

/* The strings are copied: the model may be closed before the account is read. */
static bool
copy_pairs(struct pawl_arena *arena, const struct pawl_pair *from, size_t n, const struct pawl_pair **ret_pairs)
{
    struct pawl_pair *pairs = pawl_arena_take_array(arena, n + 1, sizeof *pairs);
    if (pairs == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!pawl_arena_copy_str(arena, from[i].key, &pairs[i].key) ||
            !pawl_arena_copy_str(arena, from[i].value, &pairs[i].value))
            return false;
    }
    *ret_pairs = pairs;
    return true;
}

static bool
copy_files(struct account *account, const struct pawl_conversion *c, struct pawl_str single_name)
{
    const struct pawl_split *split = &c->split;
    size_t n = split->n_files + (split->n_files > 1);
    struct pawl_model_file *files = pawl_arena_take_array(&account->arena, n, sizeof *files);
    if (files == NULL)
        return false;
    for (size_t k = 0; k < split->n_files; k++) {
        struct pawl_str name = single_name.data != NULL ? single_name : split->files[k].name;
        files[k].bytes = split->files[k].plan.file_bytes;
        files[k].header_bytes = split->files[k].plan.prefix.len - 8;
        if (!pawl_arena_copy_str(&account->arena, name, &files[k].name))
            return false;
    }
    if (split->n_files > 1)
        files[n - 1] = (struct pawl_model_file){ PAWL_STR("model" PAWL_INDEX_ENDING), split->index.len, 0 };
    account->shown.files = files;
    account->shown.n_files = n;
    return true;
}

static enum pawl_status
make_account(const struct pawl_conversion *c, struct pawl_str single_name, struct pawl_converted **ret_converted,
             struct pawl_error *err)
{
    struct account *account = calloc(1, sizeof *account);
    if (account == NULL)
        return pawl_fail_memory(err, sizeof *account);
    struct pawl_converted *shown = &account->shown;
    struct pawl_str *dropped = pawl_arena_take_array(&account->arena, c->n_dropped + 1, sizeof *dropped);
    bool is_done = dropped != NULL && copy_files(account, c, single_name) &&
                   copy_pairs(&account->arena, c->aliases, c->n_aliases, &shown->aliases);
    for (size_t i = 0; i < c->n_dropped && is_done; i++)
        is_done = pawl_arena_copy_str(&account->arena, c->dropped[i], &dropped[i]);
    if (!is_done) {
        pawl_converted_free(shown);
        return pawl_fail_memory(err, c->n_dropped * sizeof *dropped + c->n_aliases * sizeof *c->aliases);
    }
    shown->n_aliases = c->n_aliases;
    shown->dropped = dropped;
    shown->n_dropped = c->n_dropped;
    shown->tensors = c->n;
    shown->bytes_out = c->split.bytes;
    shown->bytes_in = c->set->index_bytes;
    for (size_t i = 0; i < c->set->n_files; i++)
        shown->bytes_in += c->set->files[i].header.file_bytes;
    *ret_converted = shown;
    return PAWL_OK;
}

/* ---- one file ---- */

static enum pawl_status
write_file(const struct pawl_os *os, const char *path, const struct pawl_conversion *c, struct pawl_error *err)
{
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_publish publish = PAWL_PUBLISH_INIT;
    struct pawl_copier copier;
    enum pawl_status st = pawl_publish_begin(&publish, os, path, !c->options.keep_existing,
                                             c->split.files[0].plan.file_bytes, no_tap, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_copier_begin(&copier, c, err);
    if (st == PAWL_OK) {
        st = pawl_copier_write(&copier, 0, &publish.writer, err);
        pawl_copier_end(&copier);
    }
    if (st == PAWL_OK)
        st = pawl_conversion_check_unchanged(c, err);
    if (st == PAWL_OK)
        st = pawl_publish_commit(&publish, err);
    pawl_publish_release(&publish);
    return st;
}

static enum pawl_status
write_sink(const struct pawl_conversion *c, struct pawl_error *err)
{
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct pawl_copier copier;
    enum pawl_status st = pawl_writer_to_sink(&writer, c->options.sink, no_tap, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_copier_begin(&copier, c, err);
    if (st == PAWL_OK) {
        st = pawl_copier_write(&copier, 0, &writer, err);
        pawl_copier_end(&copier);
    }
    if (st == PAWL_OK)
        st = pawl_conversion_check_unchanged(c, err);
    if (st == PAWL_OK)
        st = pawl_writer_sync(&writer, err);
    if (st == PAWL_OK)
        st = pawl_writer_close(&writer, err);
    pawl_writer_abandon(&writer);
    return st;
}

/* ---- the whole ---- */

static enum pawl_status
check_list(const void *items, size_t n, const char *what, struct pawl_error *err)
{
    if (n != 0 && items == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%zu %s, and no place of them", n, what);
    return PAWL_OK;
}

static enum pawl_status
check_options(const struct pawl_convert_options *o, struct pawl_str path, struct pawl_error *err)
{
    if (o->sink == NULL && (path.len == 0 || memchr(path.data, 0, path.len) != NULL))
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    if (o->sink != NULL && o->is_directory)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a sink takes one file, not a directory");
    if (!o->is_directory && o->file_bytes_max != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a size of shards is for a directory, the output is one file");
    if (o->align != 0 && o->align != 8 && o->align != 64 && o->align != 256 && o->align != 4096)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "data can begin at a multiple of 8, 64, 256 or 4096 bytes, not of %" PRIu64, o->align);
    enum pawl_status st = check_list(o->only, o->n_only, "patterns of what to keep", err);
    if (st == PAWL_OK)
        st = check_list(o->drop, o->n_drop, "patterns of what to drop", err);
    if (st == PAWL_OK)
        st = check_list(o->renames, o->n_renames, "renames", err);
    if (st == PAWL_OK)
        st = check_list(o->metadata, o->n_metadata, "metadata", err);
    return st;
}

enum pawl_status
pawl_convert_os(const struct pawl_os *os, const struct pawl_model *model, struct pawl_str path,
                const struct pawl_convert_options *options, struct pawl_converted **ret_converted,
                struct pawl_error *err)
{
    struct pawl_conversion c = { .options = PAWL_CONVERT_OPTIONS(.align = 0), .set = model->set };
    struct pawl_converted *made = NULL;
    char *path_z = NULL;
    enum pawl_status st = PAWL_OK;

    if (options != NULL)
        st =
            pawl_options_take(&c.options, sizeof c.options, options, options->size, "struct pawl_convert_options", err);
    if (st == PAWL_OK)
        st = check_options(&c.options, path, err);
    if (st == PAWL_OK)
        st = pawl_conversion_plan(&c, err);
    if (st != PAWL_OK)
        goto out;
    path_z = pawl_str_dup(c.options.sink != NULL ? PAWL_STR("-") : path);
    if (path_z == NULL) {
        st = pawl_fail_memory(err, path.len);
        goto out;
    }
    const char *slash = strrchr(path_z, '/');
    struct pawl_str single_name = pawl_str_z(slash == NULL ? path_z : slash + 1);
    st = make_account(&c, c.options.is_directory ? PAWL_NO_STR : single_name, &made, err);
    if (st != PAWL_OK || c.options.dry_run)
        goto out;
    st = pawl_model_guard_all(model, err); /* nothing of what nobody has looked at becomes a file that looks right */
    if (st != PAWL_OK)
        goto out;
    if (c.options.sink != NULL)
        st = write_sink(&c, err);
    else if (c.options.is_directory)
        st = pawl_folder_write(os, path_z, &c, err);
    else
        st = write_file(os, path_z, &c, err);
    if (st != PAWL_OK && c.options.sink == NULL)
        pawl_error_path(err, path);
out:
    if (st == PAWL_OK && ret_converted != NULL)
        *ret_converted = made;
    else
        pawl_converted_free(made);
    free(path_z);
    pawl_conversion_release(&c);
    return st;
}

enum pawl_status
pawl_convert(const struct pawl_model *model, struct pawl_str path, const struct pawl_convert_options *options,
             struct pawl_converted **ret_converted, struct pawl_error *err)
{
    return pawl_convert_os(pawl_os_posix(), model, path, options, ret_converted, err);
}
