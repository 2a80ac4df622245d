/* What is checked once the whole header is read: repeated names, that the tensors tile the data, and the file's size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/checked.h"
#include "base/sort.h"
#include "formats/safetensors/st_inside.h"

/* Where the name of a tensor stands in the file; names lie in the text, also those that had escapes. */
static uint64_t
name_offset(const struct pawl_st_header *h, const struct pawl_tensor_info *info)
{
    return 8 + (uint64_t)((const unsigned char *)info->name.data - h->text);
}

/* ---- the order of the file ---- */

static bool
is_sorted(const struct pawl_st_header *h)
{
    for (size_t i = 1; i < h->n; i++) {
        const struct pawl_tensor_info *a = &h->tensors[i - 1];
        const struct pawl_tensor_info *b = &h->tensors[i];
        if (a->begin > b->begin || (a->begin == b->begin && a->end > b->end))
            return false;
    }
    return true;
}

/* tensors[i] becomes the old tensors[order[i].item], in place: every cycle of the permutation once. Spoils `order`. */
static void
permute(struct pawl_tensor_info *tensors, struct pawl_sort_item *order, size_t n)
{
    for (size_t start = 0; start < n; start++) {
        if (order[start].item == start)
            continue;
        struct pawl_tensor_info held = tensors[start];
        size_t to = start;
        while (order[to].item != start) {
            size_t from = order[to].item;
            tensors[to] = tensors[from];
            order[to].item = to;
            to = from;
        }
        tensors[to] = held;
        order[to].item = to;
    }
}

/*
 * By (begin, end), ties as in the header. In linear time: there are files whose header is in no order at all. The table of
 * names is built before, while the names still lie in the order of the text, and follows the tensors to their new places.
 */
static enum pawl_status
sort_tensors(struct pawl_st_header *h, struct pawl_error *err)
{
    size_t n = h->n;
    if (is_sorted(h))
        return PAWL_OK;
    struct pawl_sort_item *items = malloc(2 * n * sizeof *items);
    if (items == NULL)
        return pawl_fail_memory(err, 2 * n * sizeof *items);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct pawl_sort_item){ h->tensors[i].end, i };
    struct pawl_sort_item *order = pawl_sort_by_key(items, items + n, n);
    for (size_t i = 0; i < n; i++)
        order[i].key = h->tensors[order[i].item].begin;
    order = pawl_sort_by_key(order, order == items ? items + n : items, n);

    struct pawl_sort_item *places = order == items ? items + n : items; /* by the old index: the new one */
    for (size_t i = 0; i < n; i++)
        places[order[i].item].item = i;
    pawl_name_table_renumber(&h->names, &places[0].item, sizeof places[0]);
    permute(h->tensors, order, n);
    free(items);
    return PAWL_OK;
}

/* ---- names ---- */

/* Of a repeated name the place where it stands the second time; the first such in the text is reported. */
struct repeated {
    struct pawl_st_header *header;
    const char *second; /* NULL: none is repeated */
    struct pawl_str name;
    uint64_t first_offset;
    size_t n;
};

static void
note_repeated(struct repeated *r, struct pawl_str a, struct pawl_str b)
{
    struct pawl_str second = a.data > b.data ? a : b;
    r->n++;
    if (r->second == NULL || second.data < r->second) {
        r->second = second.data;
        r->name = second;
        r->first_offset = 8 + (uint64_t)((const unsigned char *)(a.data > b.data ? b : a).data - r->header->text);
    }
}

static enum pawl_status
fail_repeated(const struct repeated *r, const char *what, struct pawl_error *err)
{
    return pawl_fail_at(
        err, PAWL_CORRUPT, "duplicate-key", 8 + (uint64_t)((const unsigned char *)r->second - r->header->text),
        "duplicate %s '%s': it stands at %" PRIu64 " already", what, PAWL_SHOW(r->name), r->first_offset);
}

/* The later one in the header is kept, as the reference does; the other is marked by a file number that no tensor has. */
static size_t
same_tensor(void *context, size_t a, size_t b)
{
    struct repeated *r = context;
    struct pawl_tensor_info *tensors = r->header->tensors;
    bool keeps_a = tensors[a].name.data > tensors[b].name.data;
    note_repeated(r, tensors[a].name, tensors[b].name);
    tensors[keeps_a ? b : a].file = UINT32_MAX;
    return keeps_a ? a : b;
}

static enum pawl_status
build_names(struct pawl_st_header *h, struct repeated *repeated, struct pawl_error *err)
{
    static const struct pawl_str NOTHING;
    return pawl_name_table_build(&h->names, h->n == 0 ? &NOTHING : &h->tensors[0].name, sizeof *h->tensors, h->n,
                                 same_tensor, repeated, err);
}

static enum pawl_status
check_names(struct pawl_st_header *h, const struct pawl_st_options *options, struct pawl_error *err)
{
    struct repeated repeated = { .header = h };
    enum pawl_status st = build_names(h, &repeated, err);
    if (st != PAWL_OK || repeated.second == NULL)
        return st;
    if (options->mode != PAWL_ST_COMPAT) {
        (void)fail_repeated(&repeated, "tensor name", err);
        pawl_error_tensor(err, repeated.name);
        return PAWL_CORRUPT;
    }
    size_t kept = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (h->tensors[i].file == 0)
            h->tensors[kept++] = h->tensors[i];
    }
    h->n = kept;
    pawl_name_table_release(&h->names);
    return build_names(h, &repeated, err);
}

static size_t
same_key(void *context, size_t a, size_t b)
{
    struct repeated *r = context;
    struct pawl_pair *pairs = r->header->metadata;
    note_repeated(r, pairs[a].key, pairs[b].key);
    size_t earlier = a < b ? a : b;
    pairs[earlier].value.data = NULL; /* a value of the text never is */
    return a < b ? b : a;
}

static enum pawl_status
check_metadata(struct pawl_st_header *h, const struct pawl_st_options *options, struct pawl_error *err)
{
    struct repeated repeated = { .header = h };
    struct pawl_name_table table;
    if (h->n_metadata < 2)
        return PAWL_OK;
    enum pawl_status st = pawl_name_table_build(&table, &h->metadata[0].key, sizeof *h->metadata, h->n_metadata,
                                                same_key, &repeated, err);
    if (st != PAWL_OK)
        return st;
    pawl_name_table_release(&table);
    if (repeated.second == NULL)
        return PAWL_OK;
    if (options->mode != PAWL_ST_COMPAT)
        return fail_repeated(&repeated, "metadata key", err);
    size_t kept = 0;
    for (size_t i = 0; i < h->n_metadata; i++) {
        if (h->metadata[i].value.data != NULL)
            h->metadata[kept++] = h->metadata[i];
    }
    h->n_metadata = kept;
    return PAWL_OK;
}

/* ---- extents ---- */

/* "[2,3]", cut when it is long. */
static const char *
show_shape(const struct pawl_tensor_info *info, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < info->rank; i++) {
        if (size - used < 32) {
            used += (size_t)snprintf(text + used, size - used, ",...");
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64, i == 0 ? "" : ",", info->shape[i]);
    }
    (void)snprintf(text + used, size - used, "]");
    return text;
}

/* Rule 7 for the i-th tensor; `start` is where the one before it ends. */
static enum pawl_status
fail_extent(const struct pawl_st_header *h, size_t i, uint64_t start, struct pawl_error *err)
{
    const struct pawl_tensor_info *t = &h->tensors[i];
    uint64_t at = name_offset(h, t);
    if (t->begin > start && i == 0)
        (void)pawl_fail_at(err, PAWL_CORRUPT, "hole", at,
                           "invalid offset: %" PRIu64
                           "-byte hole before '%s', the first tensor, which begins at %" PRIu64 " and not at 0",
                           t->begin, PAWL_SHOW(t->name), t->begin);
    else if (t->begin > start)
        (void)pawl_fail_at(err, PAWL_CORRUPT, "hole", at,
                           "invalid offset: %" PRIu64 "-byte hole before '%s': '%s' ends at %" PRIu64
                           ", '%s' begins at %" PRIu64,
                           t->begin - start, PAWL_SHOW(t->name), PAWL_SHOW(h->tensors[i - 1].name), start,
                           PAWL_SHOW(t->name), t->begin);
    else if (t->begin < start)
        (void)pawl_fail_at(err, PAWL_CORRUPT, "overlap", at,
                           "invalid offset: '%s' and '%s' overlap: %" PRIu64 "..%" PRIu64 " and %" PRIu64 "..%" PRIu64,
                           PAWL_SHOW(h->tensors[i - 1].name), PAWL_SHOW(t->name), h->tensors[i - 1].begin, start,
                           t->begin, t->end);
    else
        (void)pawl_fail_at(err, PAWL_CORRUPT, "overlap", at,
                           "invalid offset: '%s' ends at %" PRIu64 ", before it begins at %" PRIu64, PAWL_SHOW(t->name),
                           t->end, t->begin);
    pawl_error_tensor(err, t->name);
    if (t->begin > start)
        pawl_error_hint(err,
                        "the format has no padding between tensors; writing the file again (convert) closes the hole");
    return PAWL_CORRUPT;
}

static enum pawl_status
check_tensor(const struct pawl_st_header *h, size_t i, uint64_t start, struct pawl_error *err)
{
    const struct pawl_tensor_info *t = &h->tensors[i];
    uint64_t elements;
    uint64_t bytes;
    if (t->begin != start || t->end < t->begin)
        return fail_extent(h, i, start, err);
    enum pawl_status st = pawl_dtype_bytes(t->dtype, t->shape, t->rank, &elements, &bytes, err);
    if (st != PAWL_OK) {
        (void)pawl_context(err, st, "tensor '%s'", PAWL_SHOW(t->name));
        err->offset = name_offset(h, t);
        pawl_error_tensor(err, t->name);
        return st;
    }
    if (t->end - t->begin != bytes) {
        char shape[200];
        (void)pawl_fail_at(err, PAWL_CORRUPT, "size", name_offset(h, t),
                           "tensor '%s': %s %s takes %" PRIu64 " bytes, its offsets %" PRIu64 "..%" PRIu64
                           " hold %" PRIu64,
                           PAWL_SHOW(t->name), pawl_dtype_name(t->dtype), show_shape(t, shape, sizeof shape), bytes,
                           t->begin, t->end, t->end - t->begin);
        pawl_error_tensor(err, t->name);
        return PAWL_CORRUPT;
    }
    return PAWL_OK;
}

static enum pawl_status
check_file_bytes(const struct pawl_st_header *h, uint64_t data_bytes, struct pawl_error *err)
{
    uint64_t need;
    if (!pawl_add_u64(h->data_begin, data_bytes, &need))
        need = UINT64_MAX; /* no file is that large */
    if (need == h->file_bytes)
        return PAWL_OK;
    if (need < h->file_bytes) {
        (void)pawl_fail_at(err, PAWL_CORRUPT, "trailing", need,
                           "%" PRIu64 " trailing bytes: the file needs %" PRIu64 " bytes, it has %" PRIu64,
                           h->file_bytes - need, need, h->file_bytes);
        return PAWL_CORRUPT;
    }
    size_t first = 0;
    while (h->tensors[first].end <= h->file_bytes - h->data_begin)
        first++;
    (void)pawl_fail_at(err, PAWL_TRUNCATED, "truncated", h->file_bytes,
                       "truncated: the file needs %" PRIu64 " bytes, it has %" PRIu64 ", missing %" PRIu64
                       "; first damaged tensor '%s'",
                       need, h->file_bytes, need - h->file_bytes, PAWL_SHOW(h->tensors[first].name));
    pawl_error_tensor(err, h->tensors[first].name);
    pawl_error_hint(err, "the file is cut short: fetch or copy it again");
    return PAWL_TRUNCATED;
}

enum pawl_status
pawl_st_check(struct pawl_st_header *h, const struct pawl_st_options *options, struct pawl_error *err)
{
    if (options->mode == PAWL_ST_LINT)
        pawl_st_lint_tensors(h, options);
    enum pawl_status st = check_names(h, options, err);
    if (st == PAWL_OK)
        st = check_metadata(h, options, err);
    if (st == PAWL_OK)
        st = sort_tensors(h, err);
    uint64_t start = 0;
    for (size_t i = 0; i < h->n && st == PAWL_OK; i++) {
        st = check_tensor(h, i, start, err);
        start = h->tensors[i].end;
    }
    return st == PAWL_OK ? check_file_bytes(h, start, err) : st;
}
