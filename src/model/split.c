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

/* The items in the order of the files, and the number of each in `order`. */
static enum pawl_status
sort_items(const struct pawl_st_item *items, size_t n, struct pawl_st_item *sorted, size_t *order,
           struct pawl_error *err)
{
    struct place *places = calloc(n + 1, sizeof *places);
    bool is_sorted = true;
    if (places == NULL)
        return pawl_fail_memory(err, (n + 1) * sizeof *places);
    for (size_t i = 0; i < n; i++) {
        places[i] = (struct place){ items[i].dtype, items[i].name, i };
        is_sorted = is_sorted && (i == 0 || compare_places(&places[i - 1], &places[i]) < 0);
    }
    if (!is_sorted)
        qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i < n; i++) {
        order[i] = places[i].item;
        sorted[i] = items[places[i].item];
    }
    free(places);
    return PAWL_OK;
}

/* Deal the items, which are in order, to files: where each of these begins. *ret_bytes: of all tensors. */
static enum pawl_status
deal(const struct pawl_st_item *items, size_t n, uint64_t file_bytes_max, size_t *begins, size_t *ret_files,
     uint64_t *ret_bytes, struct pawl_error *err)
{
    size_t n_files = 1;
    uint64_t filled = 0;
    uint64_t total = 0;
    begins[0] = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t elements;
        uint64_t bytes;
        enum pawl_status st = pawl_dtype_bytes(items[i].dtype, items[i].shape, items[i].rank, &elements, &bytes, err);
        if (st == PAWL_OK && !pawl_add_u64(total, bytes, &total))
            st = pawl_fail(err, PAWL_CORRUPT, "overflow", "more than 2^64 bytes of tensors");
        if (st != PAWL_OK) {
            pawl_error_tensor(err, items[i].name);
            return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(items[i].name));
        }
        if (i != begins[n_files - 1] && (filled > file_bytes_max || bytes > file_bytes_max - filled)) {
            begins[n_files++] = i;
            filled = 0;
        }
        filled += bytes;
    }
    *ret_files = n_files;
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

/* `sorted`: the items in the order of the files. */
static enum pawl_status
print_index(struct pawl_split *split, const struct pawl_st_item *sorted, size_t n, uint64_t total,
            struct pawl_error *err)
{
    struct pawl_pair *map = calloc(n + 1, sizeof *map);
    size_t at = 0;
    if (map == NULL)
        return pawl_fail_memory(err, n * sizeof *map);
    for (size_t k = 0; k < split->n_files; k++)
        for (size_t i = 0; i < split->files[k].n; i++, at++)
            map[at] = (struct pawl_pair){ sorted[at].name, split->files[k].name };
    bool is_done = pawl_index_print(&split->index, total, map, n);
    free(map);
    return is_done ? PAWL_OK : pawl_fail_memory(err, split->index.len);
}

/* What all files of a split have in common. */
struct common {
    struct pawl_str base;
    const struct pawl_pair *metadata;
    size_t n_metadata;
    bool has_metadata;
    uint64_t file_bytes_max, align;
    bool are_checked; /* the items */
};

/* Plan the files of items that are in order; order[i] is the number that file->items tells of the i-th. */
static enum pawl_status
plan_files(struct pawl_split *split, const struct common *common, const struct pawl_st_item *sorted,
           const size_t *order, size_t n, struct pawl_error *err)
{
    uint64_t total = 0;
    size_t n_files = 0;
    size_t *begins = malloc((n + 1) * sizeof *begins);
    if (begins == NULL)
        return pawl_fail_memory(err, (n + 1) * sizeof *begins);
    enum pawl_status st = deal(sorted, n, common->file_bytes_max == 0 ? FILE_BYTES_DEFAULT : common->file_bytes_max,
                               begins, &n_files, &total, err);
    if (st == PAWL_OK) {
        split->files = pawl_arena_take_array(&split->arena, n_files, sizeof *split->files);
        st = split->files == NULL ? pawl_fail_memory(err, n_files * sizeof *split->files) : PAWL_OK;
    }
    if (st == PAWL_OK) {
        memset(split->files, 0, n_files * sizeof *split->files);
        split->n_files = n_files;
    }
    for (size_t k = 0; k < n_files && st == PAWL_OK; k++) {
        struct pawl_split_file *file = &split->files[k];
        const struct pawl_st_item *own = sorted + begins[k];
        file->items = order + begins[k];
        file->n = (k + 1 < n_files ? begins[k + 1] : n) - begins[k];
        if (!name_file(split, common->base, k, &file->name))
            st = pawl_fail_memory(err, common->base.len);
        else
            st = (common->are_checked ? pawl_st_plan_ordered : pawl_st_plan)(&file->plan, own, file->n,
                                                                             common->metadata, common->n_metadata,
                                                                             common->has_metadata, common->align, err);
        if (st == PAWL_OK && !pawl_add_u64(split->bytes, file->plan.file_bytes, &split->bytes))
            st = pawl_fail(err, PAWL_ARGUMENT, "overflow", "more than 2^64 bytes of files");
    }
    free(begins);
    if (st == PAWL_OK && split->n_files > 1) {
        st = print_index(split, sorted, n, total, err);
        split->bytes += split->index.len;
    }
    return st;
}

enum pawl_status
pawl_split_plan(struct pawl_split *split, struct pawl_str base, const struct pawl_st_item *items, size_t n,
                const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata, uint64_t file_bytes_max,
                uint64_t align, struct pawl_error *err)
{
    const struct common common = { base, metadata, n_metadata, has_metadata, file_bytes_max, align, false };
    struct pawl_name_table names = PAWL_NAME_TABLE_INIT;
    enum pawl_status st = PAWL_OK;

    *split = (struct pawl_split){ .arena = PAWL_ARENA_INIT };
    struct pawl_st_item *sorted = calloc(n + 1, sizeof *sorted);
    size_t *order = pawl_arena_take_array(&split->arena, n + 1, sizeof *order);
    if (sorted == NULL || order == NULL)
        st = pawl_fail_memory(err, n * (sizeof *sorted + sizeof *order));
    /* One name in two files would pass the planner, which sees one file at a time. */
    if (st == PAWL_OK)
        st = pawl_names_build(&names, n == 0 ? NULL : &items[0].name, sizeof *items, n, err);
    pawl_name_table_release(&names);
    if (st == PAWL_OK)
        st = sort_items(items, n, sorted, order, err);
    if (st == PAWL_OK)
        st = plan_files(split, &common, sorted, order, n, err);
    free(sorted);
    if (st != PAWL_OK)
        pawl_split_release(split);
    return st;
}

enum pawl_status
pawl_split_plan_ordered(struct pawl_split *split, struct pawl_str base, const struct pawl_st_item *items, size_t n,
                        const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata, uint64_t file_bytes_max,
                        uint64_t align, struct pawl_error *err)
{
    const struct common common = { base, metadata, n_metadata, has_metadata, file_bytes_max, align, true };

    *split = (struct pawl_split){ .arena = PAWL_ARENA_INIT };
    size_t *order = pawl_arena_take_array(&split->arena, n + 1, sizeof *order);
    for (size_t i = 0; i < n && order != NULL; i++)
        order[i] = i;
    enum pawl_status st = order == NULL ? pawl_fail_memory(err, (n + 1) * sizeof *order)
                                        : plan_files(split, &common, items, order, n, err);
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
