/* Making the index of a directory's shards anew, from what they hold. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "model/convert_model.h"
#include "model/index.h"
#include "os/path.h"

struct account {
    struct pawl_indexed shown;
    struct pawl_arena arena;
};

void
pawl_indexed_free(struct pawl_indexed *indexed)
{
    if (indexed == NULL)
        return;
    struct account *account = (struct account *)indexed; /* the first member */
    pawl_arena_release(&account->arena);
    free(account);
}

struct indexing {
    struct pawl_dir dir;
    struct pawl_dir_list list;
    struct pawl_set set;
    struct pawl_buffer text; /* of the new index */
    struct pawl_pair *map;   /* key: tensor, value: file; ascending once the text is printed */
    struct pawl_str *shards; /* point into the list */
    size_t n_shards;
    struct pawl_str base;
    struct account *account;
    char *path; /* of the index */
    struct pawl_error *err;
};

/* ---- which files are shards ---- */

static bool
is_file(const struct pawl_dir_entry *entry)
{
    return entry->kind != PAWL_OS_DIR && pawl_str_ends(pawl_str_z(entry->name), PAWL_STR(PAWL_FILE_ENDING));
}

static int
compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Numbers 1 ... n must all be there; equal names are the same file, so none can be there twice. */
static enum pawl_status
check_numbers(struct indexing *x, uint32_t *numbers, uint32_t n)
{
    if (x->n_shards == n)
        return PAWL_OK;
    size_t i = 0;
    qsort(numbers, x->n_shards, sizeof *numbers, compare_numbers);
    while (i < x->n_shards && numbers[i] == i + 1)
        i++;
    return pawl_fail(x->err, PAWL_CORRUPT, "missing-file", "shard %zu of %" PRIu32 " of '%s' is not there: %zu are",
                     i + 1, n, PAWL_SHOW(x->base), x->n_shards);
}

static enum pawl_status
choose_numbered(struct indexing *x)
{
    enum pawl_status st = PAWL_OK;
    uint32_t n = 0; /* of the set */
    uint32_t *numbers = calloc(x->list.n + 1, sizeof *numbers);
    if (numbers == NULL)
        return pawl_fail_memory(x->err, x->list.n * sizeof *numbers);
    for (size_t i = 0; i < x->list.n && st == PAWL_OK; i++) {
        struct pawl_str name = pawl_str_z(x->list.entries[i].name);
        struct pawl_str base;
        uint32_t k;
        uint32_t own_n;
        if (!is_file(&x->list.entries[i]) || !pawl_shard_number(name, &base, &k, &own_n))
            continue;
        if (x->n_shards != 0 && (own_n != n || !pawl_str_equal(base, x->base))) {
            st = pawl_fail(x->err, PAWL_CORRUPT, "content", "shards of more than one set: '%s' and '%s'",
                           PAWL_SHOW(x->shards[0]), PAWL_SHOW(name));
            pawl_error_hint(x->err, "move those that do not belong to the model away");
            break;
        }
        x->base = base;
        n = own_n;
        numbers[x->n_shards] = k;
        x->shards[x->n_shards++] = name;
    }
    if (st == PAWL_OK && x->n_shards != 0)
        st = check_numbers(x, numbers, n);
    free(numbers);
    return st;
}

static enum pawl_status
choose_shards(struct indexing *x)
{
    x->shards = calloc(x->list.n + 1, sizeof *x->shards);
    if (x->shards == NULL)
        return pawl_fail_memory(x->err, x->list.n * sizeof *x->shards);
    enum pawl_status st = choose_numbered(x);
    if (st != PAWL_OK || x->n_shards != 0)
        return st;
    x->base = PAWL_STR("model");
    for (size_t i = 0; i < x->list.n; i++) {
        if (is_file(&x->list.entries[i]))
            x->shards[x->n_shards++] = pawl_str_z(x->list.entries[i].name);
    }
    if (x->n_shards == 0)
        return pawl_fail(x->err, PAWL_CORRUPT, "not-safetensors", "the directory holds no safetensors file");
    if (x->n_shards == 1)
        return pawl_fail(x->err, PAWL_ARGUMENT, "argument", "one file, '%s', is a model without an index",
                         PAWL_SHOW(x->shards[0]));
    return PAWL_OK;
}

/* ---- what changes ---- */

static int
compare_pairs(const void *a, const void *b)
{
    return pawl_str_compare(((const struct pawl_pair *)a)->key, ((const struct pawl_pair *)b)->key);
}

static enum pawl_status
compare_maps(struct indexing *x, const struct pawl_index *index)
{
    struct pawl_indexed *shown = &x->account->shown;
    struct pawl_pair *old = calloc(index->n + 1, sizeof *old);
    if (old == NULL)
        return pawl_fail_memory(x->err, index->n * sizeof *old);
    for (size_t i = 0; i < index->n; i++)
        old[i] = (struct pawl_pair){ index->entries[i].tensor, index->files[index->entries[i].file] };
    if (index->n != 0)
        qsort(old, index->n, sizeof *old, compare_pairs);
    size_t i = 0;
    size_t k = 0;
    while (i < index->n || k < x->set.n) {
        int order = i == index->n ? 1 : k == x->set.n ? -1 : pawl_str_compare(old[i].key, x->map[k].key);
        shown->removed += order < 0;
        shown->added += order > 0;
        shown->moved += order == 0 && !pawl_str_equal(old[i].value, x->map[k].value);
        i += order <= 0;
        k += order >= 0;
    }
    free(old);
    return PAWL_OK;
}

/* Hold the new text against the index that is there. One that can't be read is as good as none. */
static enum pawl_status
look_at_old(struct indexing *x)
{
    struct pawl_indexed *shown = &x->account->shown;
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_index index;
    enum pawl_status st = pawl_file_open_in(&file, &x->dir, shown->name.data, PAWL_OS_FOLLOW, x->err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_INDEX_BYTES_MAX, &text, x->err);
    shown->is_changed = !(st == PAWL_OK && pawl_str_equal(pawl_buffer_str(&text), pawl_buffer_str(&x->text)));
    if (st == PAWL_OK)
        st = pawl_index_parse(&arena, &index, text.data, text.len, x->err);
    if (st == PAWL_OK) {
        shown->was_there = 1;
        shown->has_total_before = index.has_total;
        shown->total_size_before = index.has_total ? index.total_size : 0;
        st = compare_maps(x, &index);
    } else if (!pawl_status_is_machine_fault(st) && st != PAWL_IO) {
        shown->added = x->set.n;
        st = PAWL_OK;
    }
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
    pawl_file_release(&file);
    return st;
}

/* ---- the whole ---- */

static enum pawl_status
print_index(struct indexing *x)
{
    struct pawl_indexed *shown = &x->account->shown;
    struct pawl_buffer name = PAWL_BUFFER_INIT;
    bool is_done = pawl_buffer_add_str(&name, x->base) && pawl_buffer_add_z(&name, PAWL_INDEX_ENDING) &&
                   pawl_arena_copy_str(&x->account->arena, pawl_buffer_str(&name), &shown->name);
    pawl_buffer_release(&name);
    x->map = calloc(x->set.n + 1, sizeof *x->map);
    if (!is_done || x->map == NULL)
        return pawl_fail_memory(x->err, x->set.n * sizeof *x->map);
    for (size_t i = 0; i < x->set.n; i++)
        x->map[i] = (struct pawl_pair){ x->set.tensors[i].name, x->set.files[x->set.tensors[i].file].name };
    if (!pawl_index_print(&x->text, x->set.data_bytes, x->map, x->set.n))
        return pawl_fail_memory(x->err, x->text.len);
    shown->tensors = x->set.n;
    shown->files = x->set.n_files;
    shown->total_size = x->set.data_bytes;
    x->path = pawl_path_join(x->dir.path, shown->name.data);
    return x->path == NULL ? pawl_fail_memory(x->err, shown->name.len) : PAWL_OK;
}

static enum pawl_status
name_ignored(struct indexing *x)
{
    struct pawl_indexed *shown = &x->account->shown;
    struct pawl_str *ignored = pawl_arena_take_array(&x->account->arena, x->list.n + 1, sizeof *ignored);
    size_t next = 0; /* of the shards, which are in the order of the list */
    if (ignored == NULL)
        return pawl_fail_memory(x->err, x->list.n * sizeof *ignored);
    for (size_t i = 0; i < x->list.n; i++) {
        if (!is_file(&x->list.entries[i]))
            continue;
        if (next < x->n_shards && x->shards[next].data == x->list.entries[i].name)
            next++;
        else if (!pawl_arena_copy_str(&x->account->arena, pawl_str_z(x->list.entries[i].name),
                                      &ignored[shown->n_ignored++]))
            return pawl_fail_memory(x->err, x->list.n * sizeof *ignored);
    }
    shown->ignored = ignored;
    return PAWL_OK;
}

static enum pawl_status
write_index(struct indexing *x)
{
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_publish publish = PAWL_PUBLISH_INIT;
    struct pawl_os_stat manifest;
    struct pawl_error unused = PAWL_ERROR_INIT;
    if (pawl_dir_stat(&x->dir, "MANIFEST.json", &manifest, &unused) == PAWL_OK)
        return pawl_fail(x->err, PAWL_EXISTS, "exists",
                         "the index is not what the shards hold, and MANIFEST.json lists what is in this directory: "
                         "another index would break that");
    enum pawl_status st = pawl_publish_begin(&publish, x->dir.os, x->path, true, x->text.len, no_tap, x->err);
    if (st == PAWL_OK)
        st = pawl_writer_add(&publish.writer, x->text.data, x->text.len, x->err);
    if (st == PAWL_OK)
        st = pawl_publish_commit(&publish, x->err);
    pawl_publish_release(&publish);
    return st;
}

static enum pawl_status
make_index(struct indexing *x, const struct pawl_os *os, const char *path, bool is_dry)
{
    struct pawl_set_options options;
    enum pawl_status st = pawl_set_options_of(PAWL_MODE_STRICT, PAWL_PROFILE_NONE, 0, &options, x->err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&x->dir, os, path, x->err);
    if (st == PAWL_OK)
        st = pawl_dir_list(&x->dir, &x->list, x->err);
    if (st == PAWL_OK)
        st = choose_shards(x);
    if (st == PAWL_OK)
        st = pawl_set_open_shards(&x->set, &x->dir, x->shards, x->n_shards, &options, x->err);
    if (st == PAWL_OK)
        st = print_index(x);
    if (st == PAWL_OK)
        st = name_ignored(x);
    if (st == PAWL_OK)
        st = look_at_old(x);
    if (st == PAWL_OK && x->account->shown.is_changed && !is_dry)
        st = write_index(x);
    return st;
}

enum pawl_status
pawl_index_write_os(const struct pawl_os *os, struct pawl_str directory, const struct pawl_index_options *options,
                    struct pawl_indexed **ret_indexed, struct pawl_error *err)
{
    struct pawl_index_options known = PAWL_INDEX_OPTIONS(.dry_run = 0);
    struct indexing x = { .dir = PAWL_DIR_INIT, .set = PAWL_SET_INIT, .text = PAWL_BUFFER_INIT, .err = err };
    enum pawl_status st = PAWL_OK;

    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_index_options", err);
    if (st == PAWL_OK && (directory.len == 0 || memchr(directory.data, 0, directory.len) != NULL))
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    if (st != PAWL_OK)
        return st;
    char *path = pawl_str_dup(directory);
    x.account = calloc(1, sizeof *x.account);
    if (path == NULL || x.account == NULL)
        st = pawl_fail_memory(err, directory.len + sizeof *x.account);
    else
        st = make_index(&x, os, path, known.dry_run != 0);
    if (st != PAWL_OK)
        pawl_error_path(err, directory);
    if (st == PAWL_OK && ret_indexed != NULL)
        *ret_indexed = &x.account->shown;
    else
        pawl_indexed_free(x.account == NULL ? NULL : &x.account->shown);
    pawl_set_release(&x.set);
    pawl_dir_list_release(&x.list);
    pawl_dir_release(&x.dir);
    pawl_buffer_release(&x.text);
    free(x.map);
    free(x.shards);
    free(x.path);
    free(path);
    return st;
}

enum pawl_status
pawl_index_write(struct pawl_str directory, const struct pawl_index_options *options, struct pawl_indexed **ret_indexed,
                 struct pawl_error *err)
{
    return pawl_index_write_os(pawl_os_posix(), directory, options, ret_indexed, err);
}
