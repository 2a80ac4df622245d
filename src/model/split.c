#include "model/set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/checked.h"
#include "model/index.h"

/* transformers' default, in its unit: 5 GB. */
#define FILE_BYTES_DEFAULT UINT64_C(5000000000)

#define ENDING ".safetensors"

struct place {
    enum pawl_dtype dtype;
    struct pawl_str name;
    size_t item;
    size_t file;
};

static int
compare_places(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    int order = pawl_st_compare(x->dtype, x->name, y->dtype, y->name);
    /* Names that stand twice are refused when the file is planned; until then the order must be one. */
    return order != 0 ? order : (x->item > y->item) - (x->item < y->item);
}

/* The least name that stands twice: the same whatever the order of the items. */
struct repeated {
    const struct pawl_str *first;
    size_t stride;
    bool is_found;
    struct pawl_str name;
};

static size_t
same_name(void *context, size_t a, size_t b)
{
    struct repeated *r = context;
    struct pawl_str name;
    memcpy(&name, (const char *)r->first + a * r->stride, sizeof name);
    if (!r->is_found || pawl_str_compare(name, r->name) < 0)
        r->name = name;
    r->is_found = true;
    return a < b ? a : b;
}

enum pawl_status
pawl_names_build(struct pawl_name_table *table, const struct pawl_str *first, size_t stride, size_t n,
                 struct pawl_error *err)
{
    struct pawl_name_table made = PAWL_NAME_TABLE_INIT;
    struct repeated repeated = { first, stride, false, { NULL, 0 } };
    *table = made;
    if (n == 0)
        return PAWL_OK;
    enum pawl_status st = pawl_name_table_build(&made, first, stride, n, same_name, &repeated, err);
    if (st == PAWL_OK && repeated.is_found) {
        pawl_name_table_release(&made);
        st = pawl_fail(err, PAWL_ARGUMENT, "duplicate-key", "two tensors are named '%s'", PAWL_SHOW(repeated.name));
        pawl_error_tensor(err, repeated.name);
    }
    if (st == PAWL_OK)
        *table = made;
    return st;
}

/* Sort the tensors and say which file each goes to. *ret_bytes: of all tensors. */
static enum pawl_status
deal(struct place *places, const struct pawl_st_item *items, size_t n, uint64_t file_bytes_max, size_t *ret_files,
     uint64_t *ret_bytes, struct pawl_error *err)
{
    bool is_sorted = true;
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct place){ items[i].dtype, items[i].name, i, 0 };
        is_sorted = is_sorted && (i == 0 || compare_places(&places[i - 1], &places[i]) < 0);
    }
    if (!is_sorted)
        qsort(places, n, sizeof *places, compare_places);

    size_t file = 0;
    uint64_t filled = 0;
    uint64_t total = 0;
    bool is_empty = true;
    for (size_t i = 0; i < n; i++) {
        const struct pawl_st_item *item = &items[places[i].item];
        uint64_t elements;
        uint64_t bytes;
        enum pawl_status st = pawl_dtype_bytes(item->dtype, item->shape, item->rank, &elements, &bytes, err);
        if (st == PAWL_OK && !pawl_add_u64(total, bytes, &total))
            st = pawl_fail(err, PAWL_CORRUPT, "overflow", "more than 2^64 bytes of tensors");
        if (st != PAWL_OK) {
            pawl_error_tensor(err, item->name);
            return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(item->name));
        }
        if (!is_empty && (filled > file_bytes_max || bytes > file_bytes_max - filled)) {
            file++;
            filled = 0;
        }
        places[i].file = file;
        filled += bytes;
        is_empty = false;
    }
    *ret_files = file + 1;
    *ret_bytes = total;
    return PAWL_OK;
}

static bool
name_file(struct pawl_split *split, struct pawl_str base, size_t k, struct pawl_str *ret_name)
{
    struct pawl_buffer name = PAWL_BUFFER_INIT;
    (void)pawl_buffer_add_str(&name, base);
    if (split->n_files > 1)
        (void)pawl_buffer_printf(&name, "-%05zu-of-%05zu", k + 1, split->n_files);
    (void)pawl_buffer_add_z(&name, ENDING);
    bool is_done = pawl_buffer_ok(&name) && pawl_arena_copy_str(&split->arena, pawl_buffer_str(&name), ret_name);
    pawl_buffer_release(&name);
    return is_done;
}

static enum pawl_status
print_index(struct pawl_split *split, const struct place *places, size_t n, uint64_t total, struct pawl_error *err)
{
    struct pawl_pair *map = calloc(n + 1, sizeof *map);
    if (map == NULL)
        return pawl_fail_memory(err, n * sizeof *map);
    for (size_t i = 0; i < n; i++)
        map[i] = (struct pawl_pair){ places[i].name, split->files[places[i].file].name };
    bool is_done = pawl_index_print(&split->index, total, map, n);
    free(map);
    return is_done ? PAWL_OK : pawl_fail_memory(err, split->index.len);
}

/* `own` takes the items of one file: the planner wants them in a row. */
static enum pawl_status
plan_file(struct pawl_split_file *file, const struct pawl_st_item *items, struct pawl_st_item *own,
          const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata, uint64_t align,
          struct pawl_error *err)
{
    for (size_t i = 0; i < file->n; i++)
        own[i] = items[file->items[i]];
    return pawl_st_plan(&file->plan, own, file->n, metadata, n_metadata, has_metadata, align, err);
}

enum pawl_status
pawl_split_plan(struct pawl_split *split, struct pawl_str base, const struct pawl_st_item *items, size_t n,
                const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata, uint64_t file_bytes_max,
                uint64_t align, struct pawl_error *err)
{
    struct place *places = NULL;
    struct pawl_st_item *own = NULL;
    struct pawl_name_table names;
    uint64_t total = 0;
    enum pawl_status st;

    *split = (struct pawl_split){ .arena = PAWL_ARENA_INIT };
    places = calloc(n + 1, sizeof *places);
    own = calloc(n + 1, sizeof *own);
    size_t *order = pawl_arena_take_array(&split->arena, n + 1, sizeof *order);
    if (places == NULL || own == NULL || order == NULL) {
        st = pawl_fail_memory(err, n * (sizeof *places + sizeof *own + sizeof *order));
        goto out;
    }
    /* One name in two files would pass the planner, which sees one file at a time. */
    st = pawl_names_build(&names, n == 0 ? NULL : &items[0].name, sizeof *items, n, err);
    pawl_name_table_release(&names);
    if (st != PAWL_OK)
        goto out;
    st =
        deal(places, items, n, file_bytes_max == 0 ? FILE_BYTES_DEFAULT : file_bytes_max, &split->n_files, &total, err);
    if (st != PAWL_OK)
        goto out;
    split->files = pawl_arena_take_array(&split->arena, split->n_files, sizeof *split->files);
    if (split->files == NULL) {
        st = pawl_fail_memory(err, split->n_files * sizeof *split->files);
        split->n_files = 0;
        goto out;
    }
    memset(split->files, 0, split->n_files * sizeof *split->files);
    for (size_t i = 0; i < n; i++) {
        struct pawl_split_file *file = &split->files[places[i].file];
        order[i] = places[i].item;
        if (file->n++ == 0)
            file->items = &order[i];
    }
    for (size_t k = 0; k < split->n_files && st == PAWL_OK; k++) {
        struct pawl_split_file *file = &split->files[k];
        if (!name_file(split, base, k, &file->name))
            st = pawl_fail_memory(err, base.len);
        else
            st = plan_file(file, items, own, metadata, n_metadata, has_metadata, align, err);
        if (st == PAWL_OK && !pawl_add_u64(split->bytes, file->plan.file_bytes, &split->bytes))
            st = pawl_fail(err, PAWL_ARGUMENT, "overflow", "more than 2^64 bytes of files");
    }
    if (st == PAWL_OK && split->n_files > 1) {
        st = print_index(split, places, n, total, err);
        split->bytes += split->index.len;
    }
out:
    free(places);
    free(own);
    if (st != PAWL_OK)
        pawl_split_release(split);
    return st;
}

void
pawl_split_release(struct pawl_split *split)
{
    for (size_t k = 0; k < split->n_files; k++)
        pawl_st_plan_release(&split->files[k].plan);
    pawl_buffer_release(&split->index);
    pawl_arena_release(&split->arena);
    *split = (struct pawl_split){ .arena = PAWL_ARENA_INIT };
}
