/*
 * A set of files in a directory: all of the old model or all of the new, wherever the power goes.
 *
 * Every new file is written to a temporary and synced while the old model stands. Then only names change:
 *
 *   shards      the temporaries get their names, the directory is synced, the index gets its name (from here on the new model is
 *               what the directory opens as), the directory is synced, what the old model leaves is removed.
 *   one file    it gets its name and the directory is synced; indexes of an old model hide it until they are removed (from here on ...).
 *
 * The old index does not name the new shards, as their number is in their names. Where both have as many, it does, and half-way it
 * would open a mixture of the two: then it is removed first, and the old shards that stand in the way with it. A loss of power in these
 * moments leaves a directory that does not open, so what is read must not be among the files that go.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "model/convert_model.h"
#include "model/index.h"
#include "os/path.h"

/* Temporary names tried; taken ones are left by killed programs whose process number came again. */
#define TEMPORARIES_MAX 1000

/* What an entry of the directory is to the new set. */
struct earlier {
    bool is_index;  /* of an old model */
    bool is_old;    /* a file of one */
    bool is_listed; /* an old index names it */
    bool is_taken;  /* a file of the new set has this name */
};

struct folder {
    const struct pawl_os *os;
    const char *path;
    const struct pawl_conversion *c;
    struct pawl_dir dir;
    bool is_created; /* by us */
    struct pawl_dir_list list;
    struct earlier *earlier; /* by entry */
    bool must_clear;         /* the old index names files that are replaced */
    size_t n_outputs;        /* files of the split, and the index */
    char **temporaries;      /* by output; NULL: none, or it has its name */
    bool *is_new;            /* by output: got its name, which was free */
    size_t n_removed;        /* entries */
    bool is_published;       /* the new model is what the directory opens as */
    struct pawl_error *err;
};

static bool
has_index(const struct folder *f)
{
    return f->c->split.n_files > 1;
}

static const char *
output_name(const struct folder *f, size_t k)
{
    return k < f->c->split.n_files ? f->c->split.files[k].name.data : "model" PAWL_INDEX_ENDING;
}

static size_t
find_entry(const struct folder *f, struct pawl_str name)
{
    for (size_t low = 0, high = f->list.n; low < high;) {
        size_t middle = low + (high - low) / 2;
        int order = pawl_str_compare(pawl_str_z(f->list.entries[middle].name), name);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

/* ---- what is there ---- */

/* The files that an old index names. One that can't be read is no reason to stop: it is replaced; then every file counts as named. */
static enum pawl_status
read_old_index(struct folder *f, size_t entry, bool *ret_is_read)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_index index;
    enum pawl_status st = pawl_file_open_in(&file, &f->dir, f->list.entries[entry].name, PAWL_OS_FOLLOW, f->err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_INDEX_BYTES_MAX, &text, f->err);
    if (st == PAWL_OK)
        st = pawl_index_parse(&arena, &index, text.data, text.len, f->err);
    for (size_t i = 0; st == PAWL_OK && i < index.n_files; i++) {
        size_t at = find_entry(f, index.files[i]);
        if (at != SIZE_MAX && pawl_str_ends(index.files[i], PAWL_STR(PAWL_FILE_ENDING)) &&
            f->list.entries[at].kind != PAWL_OS_DIR)
            f->earlier[at].is_old = f->earlier[at].is_listed = true;
    }
    *ret_is_read = st == PAWL_OK;
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
    pawl_file_release(&file);
    return pawl_status_is_machine_fault(st) || st == PAWL_IO ? st : PAWL_OK;
}

static bool
is_of_model(struct pawl_str name)
{
    struct pawl_str base;
    uint32_t k;
    uint32_t n;
    return pawl_str_equal(name, PAWL_STR("model" PAWL_FILE_ENDING)) ||
           (pawl_shard_number(name, &base, &k, &n) && pawl_str_equal(base, PAWL_STR("model")));
}

static enum pawl_status
look_around(struct folder *f)
{
    bool is_unreadable = false;
    enum pawl_status st = pawl_dir_list(&f->dir, &f->list, f->err);
    if (st != PAWL_OK)
        return st;
    f->earlier = calloc(f->list.n + 1, sizeof *f->earlier);
    if (f->earlier == NULL)
        return pawl_fail_memory(f->err, f->list.n * sizeof *f->earlier);
    for (size_t i = 0; i < f->list.n && st == PAWL_OK; i++) {
        struct pawl_str name = pawl_str_z(f->list.entries[i].name);
        if (f->list.entries[i].kind == PAWL_OS_DIR)
            continue;
        if (is_of_model(name))
            f->earlier[i].is_old = true;
        if (pawl_str_ends(name, PAWL_STR(PAWL_INDEX_ENDING))) {
            bool is_read;
            f->earlier[i].is_index = true;
            st = read_old_index(f, i, &is_read);
            is_unreadable = is_unreadable || !is_read;
        }
    }
    for (size_t k = 0; k < f->c->split.n_files && st == PAWL_OK; k++) {
        size_t at = find_entry(f, f->c->split.files[k].name);
        if (at == SIZE_MAX)
            continue;
        f->earlier[at].is_taken = true;
        f->must_clear = f->must_clear || f->earlier[at].is_listed || is_unreadable;
    }
    return st;
}

static enum pawl_status
fail_entry(const struct folder *f, const char *name, const char *what)
{
    char *path = pawl_path_join(f->path, name);
    const char *shown = path != NULL ? path : name;
    (void)pawl_fail(f->err, PAWL_EXISTS, "exists", "'%s' %s", PAWL_SHOW_PATH(shown), what);
    pawl_error_path(f->err, pawl_str_z(shown));
    free(path);
    return PAWL_EXISTS;
}

/* Is it one of the files that the model is read from? */
static enum pawl_status
is_input(const struct folder *f, const char *name, bool *ret_is_input)
{
    const struct pawl_set *set = f->c->set;
    struct pawl_os_stat there;
    *ret_is_input = false;
    enum pawl_status st = pawl_dir_stat(&f->dir, name, &there, f->err);
    for (size_t i = 0; i < set->n_files && st == PAWL_OK; i++) {
        struct pawl_os_stat own;
        int code;
        do {
            code = set->os->file_stat(set->os->context, set->files[i].file.handle, &own);
        } while (code == EINTR);
        if (code != 0)
            return pawl_fail_path(f->err, code, "stat", set->files[i].file.path);
        *ret_is_input = *ret_is_input || (own.device == there.device && own.inode == there.inode);
    }
    return st;
}

static enum pawl_status
check_room(struct folder *f)
{
    enum pawl_status st = PAWL_OK;
    /* A checkpoint is what its manifest lists: one file more, and it is none. */
    if (find_entry(f, PAWL_STR("MANIFEST.json")) != SIZE_MAX) {
        st = fail_entry(f, "MANIFEST.json",
                        "lists what is in this directory, and a model written into it would break that");
        pawl_error_hint(f->err, "write to another directory");
        return st;
    }
    for (size_t i = 0; i < f->list.n && st == PAWL_OK; i++) {
        const struct earlier *e = &f->earlier[i];
        bool is_input_too = false;
        if (f->c->options.keep_existing && (e->is_index || e->is_old || e->is_taken))
            return fail_entry(f, f->list.entries[i].name, "exists and is not to be replaced");
        if (f->list.entries[i].kind == PAWL_OS_DIR && e->is_taken)
            return fail_entry(f, f->list.entries[i].name, "is a directory, and a file is to have its name");
        if (f->must_clear && e->is_taken)
            st = is_input(f, f->list.entries[i].name, &is_input_too);
        if (is_input_too) {
            st =
                fail_entry(f, f->list.entries[i].name,
                           "is read, and would be replaced by as many shards: a loss of power between could lose both");
            pawl_error_hint(f->err, "write to another directory, or choose another size of shards");
        }
    }
    return st == PAWL_OK ? pawl_dir_check_space(&f->dir, f->c->split.bytes, f->err) : st;
}

static enum pawl_status
open_folder(struct folder *f)
{
    struct pawl_error unused = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_dir_open_path(&f->dir, f->os, f->path, &unused);
    if (st == PAWL_NO_FILE)
        f->is_created = true; /* also when creating it fails half-way */
    pawl_dir_release(&f->dir);
    st = pawl_dir_create_all(f->os, f->path, NULL, f->err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&f->dir, f->os, f->path, f->err);
    if (st != PAWL_OK)
        return st;
    st = pawl_dir_lock(&f->dir, PAWL_OS_LOCK_TRY, NULL, f->err);
    return st == PAWL_UNSUPPORTED ? PAWL_OK : st;
}

/* ---- temporaries ---- */

static enum pawl_status
create_temporary(struct folder *f, size_t k, uint64_t bytes, struct pawl_writer *writer)
{
    const struct pawl_tap no_tap = { NULL, NULL };
    const char *name = output_name(f, k);
    const int64_t process = f->os->process_id(f->os->context);
    size_t size = strlen(name) + 48;
    enum pawl_status st = PAWL_EXISTS;
    char *temporary = malloc(size);
    if (temporary == NULL)
        return pawl_fail_memory(f->err, size);
    for (unsigned number = 0; number < TEMPORARIES_MAX && st == PAWL_EXISTS; number++) {
        (void)snprintf(temporary, size, ".%s.%" PRId64 "-%u.tmp", name, process, number);
        st = pawl_writer_create(writer, &f->dir, temporary, bytes, no_tap, f->err);
    }
    if (st == PAWL_OK)
        f->temporaries[k] = temporary;
    else
        free(temporary);
    return st;
}

static enum pawl_status
settle(struct pawl_writer *writer, enum pawl_status st, struct pawl_error *err)
{
    if (st == PAWL_OK)
        st = pawl_writer_sync(writer, err);
    if (st == PAWL_OK)
        st = pawl_writer_close(writer, err);
    pawl_writer_abandon(writer); /* after a close: does nothing */
    return st;
}

static enum pawl_status
write_temporaries(struct folder *f)
{
    const struct pawl_split *split = &f->c->split;
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct pawl_copier copier;
    enum pawl_status st = pawl_copier_begin(&copier, f->c, f->err);
    if (st != PAWL_OK)
        return st;
    for (size_t k = 0; k < split->n_files && st == PAWL_OK; k++) {
        st = create_temporary(f, k, split->files[k].plan.file_bytes, &writer);
        if (st == PAWL_OK)
            st = settle(&writer, pawl_copier_write(&copier, k, &writer, f->err), f->err);
    }
    pawl_copier_end(&copier);
    if (st == PAWL_OK)
        st = pawl_conversion_check_unchanged(f->c, f->err);
    if (st == PAWL_OK && has_index(f)) {
        st = create_temporary(f, split->n_files, split->index.len, &writer);
        if (st == PAWL_OK)
            st = settle(&writer, pawl_writer_add(&writer, split->index.data, split->index.len, f->err), f->err);
    }
    return st;
}

/* ---- names ---- */

static enum pawl_status
publish(struct folder *f, size_t k)
{
    const char *name = output_name(f, k);
    bool was_there = find_entry(f, pawl_str_z(name)) != SIZE_MAX;
    enum pawl_status st = pawl_dir_rename(&f->dir, f->temporaries[k], name, PAWL_OS_REPLACE, f->err);
    if (st != PAWL_OK)
        return st;
    free(f->temporaries[k]);
    f->temporaries[k] = NULL;
    f->is_new[k] = !was_there || f->must_clear; /* what was there was removed then */
    return PAWL_OK;
}

/* Remove the entries that `is_chosen` wants, and make it durable when there were any. */
static enum pawl_status
remove_entries(struct folder *f, bool (*is_chosen)(const struct folder *f, size_t entry))
{
    bool is_any = false;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < f->list.n && st == PAWL_OK; i++) {
        if (!is_chosen(f, i))
            continue;
        is_any = true;
        st = pawl_dir_remove_file(&f->dir, f->list.entries[i].name, f->err);
        f->n_removed += st == PAWL_OK;
        if (st == PAWL_NO_FILE) /* removed before, or by another */
            st = PAWL_OK;
    }
    return st == PAWL_OK && is_any ? pawl_dir_sync(&f->dir, NULL, f->err) : st;
}

static bool
is_new_index(const struct folder *f, size_t entry)
{
    return has_index(f) && strcmp(f->list.entries[entry].name, output_name(f, f->c->split.n_files)) == 0;
}

static bool
is_old_index(const struct folder *f, size_t entry)
{
    return f->earlier[entry].is_index;
}

static bool
is_other_index(const struct folder *f, size_t entry)
{
    return f->earlier[entry].is_index && !is_new_index(f, entry);
}

/* A model.safetensors beside an old index is ignored as long as that is there: it must not come to life when it goes. */
static bool
is_stray(const struct folder *f, size_t entry)
{
    return strcmp(f->list.entries[entry].name, "model" PAWL_FILE_ENDING) == 0 && !f->earlier[entry].is_listed &&
           f->list.entries[entry].kind != PAWL_OS_DIR;
}

static bool
is_in_the_way(const struct folder *f, size_t entry)
{
    return f->earlier[entry].is_taken;
}

static bool
is_left_over(const struct folder *f, size_t entry)
{
    return f->earlier[entry].is_old && !f->earlier[entry].is_taken;
}

static bool
has_old_index(const struct folder *f)
{
    for (size_t i = 0; i < f->list.n; i++) {
        if (f->earlier[i].is_index)
            return true;
    }
    return false;
}

static enum pawl_status
change_names(struct folder *f)
{
    size_t n = f->c->split.n_files;
    enum pawl_status st = PAWL_OK;
    if (f->must_clear) {
        st = remove_entries(f, is_stray);
        if (st == PAWL_OK)
            st = remove_entries(f, is_old_index);
        if (st == PAWL_OK)
            st = remove_entries(f, is_in_the_way);
    }
    for (size_t k = 0; k < n && st == PAWL_OK; k++)
        st = publish(f, k);
    bool is_hidden = has_index(f) || (has_old_index(f) && !f->must_clear);
    f->is_published = st == PAWL_OK && !is_hidden;
    if (st == PAWL_OK)
        st = pawl_dir_sync(&f->dir, NULL, f->err);
    if (st == PAWL_OK && has_index(f)) {
        st = publish(f, n);
        f->is_published = st == PAWL_OK;
        /* Before anything of the old goes: its names must not be lost while the old index is still the one on the disk. */
        if (st == PAWL_OK)
            st = pawl_dir_sync(&f->dir, NULL, f->err);
    }
    if (st == PAWL_OK) {
        size_t before = f->n_removed;
        st = remove_entries(f, is_other_index);
        f->is_published = f->is_published || st == PAWL_OK || f->n_removed != before;
    }
    if (st == PAWL_OK)
        st = remove_entries(f, is_left_over);
    return st;
}

/* ---- the whole ---- */

/* After a failure: nothing of ours stays, and a directory that we made goes. */
static void
undo(struct folder *f)
{
    char *parent_path = NULL;
    char *name = NULL;
    bool has_slash;
    struct pawl_dir parent = PAWL_DIR_INIT;
    for (size_t k = 0; k < f->n_outputs && !f->is_published; k++) {
        if (f->is_new[k])
            (void)pawl_dir_remove_file(&f->dir, output_name(f, k), NULL);
    }
    pawl_dir_release(&f->dir);
    if (!f->is_created || f->is_published)
        return;
    if (pawl_path_split(f->path, &parent_path, &name, &has_slash, NULL) == PAWL_OK &&
        pawl_dir_open_path(&parent, f->os, parent_path, NULL) == PAWL_OK)
        (void)f->os->remove_dir(f->os->context, parent.handle, name);
    pawl_dir_release(&parent);
    free(parent_path);
    free(name);
}

enum pawl_status
pawl_folder_write(const struct pawl_os *os, const char *path, const struct pawl_conversion *conversion,
                  struct pawl_error *err)
{
    struct folder f = { .os = os, .path = path, .c = conversion, .dir = PAWL_DIR_INIT, .err = err };
    enum pawl_status st;

    f.n_outputs = conversion->split.n_files + 1;
    f.temporaries = calloc(f.n_outputs, sizeof *f.temporaries);
    f.is_new = calloc(f.n_outputs, sizeof *f.is_new);
    if (f.temporaries == NULL || f.is_new == NULL) {
        st = pawl_fail_memory(err, f.n_outputs * (sizeof *f.temporaries + sizeof *f.is_new));
        goto out;
    }
    st = open_folder(&f);
    if (st == PAWL_OK)
        st = look_around(&f);
    if (st == PAWL_OK)
        st = check_room(&f);
    if (st == PAWL_OK)
        st = write_temporaries(&f);
    if (st == PAWL_OK)
        st = change_names(&f);
    for (size_t k = 0; k < f.n_outputs; k++) {
        if (f.temporaries[k] != NULL)
            (void)pawl_dir_remove_file(&f.dir, f.temporaries[k], NULL); /* the failure is already known */
        free(f.temporaries[k]);
    }
    if (st != PAWL_OK)
        undo(&f);
out:
    pawl_dir_release(&f.dir);
    pawl_dir_list_release(&f.list);
    free(f.earlier);
    free(f.temporaries);
    free(f.is_new);
    return st;
}
