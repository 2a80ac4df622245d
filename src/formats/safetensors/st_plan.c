/* The header that the reference's writer gives to a set of tensors, byte for byte. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/checked.h"
#include "base/cursor.h"
#include "codec/utf8.h"
#include "formats/safetensors/st_inside.h"
#include "os/large.h"

int
pawl_st_compare(enum pawl_dtype dtype_a, struct pawl_str name_a, enum pawl_dtype dtype_b, struct pawl_str name_b)
{
    if (dtype_a != dtype_b)
        return dtype_a > dtype_b ? -1 : 1;
    return pawl_str_compare(name_a, name_b);
}

/* ---- what the caller may not ask for ---- */

static enum pawl_status
check_utf8(const char *what, struct pawl_str text, struct pawl_error *err)
{
    size_t bad = pawl_utf8_first_bad(text.data, text.len);
    if (bad == text.len)
        return PAWL_OK;
    return pawl_fail(err, PAWL_ARGUMENT, "utf8", "%s '%s' is not UTF-8 at byte %zu", what, PAWL_SHOW(text), bad);
}

/* The name that stands twice, the smallest of them: the same whatever the order of the items. */
struct repeated {
    const unsigned char *first;
    size_t stride;
    bool is_found;
    struct pawl_str name;
};

static size_t
same_name(void *context, size_t a, size_t b)
{
    struct repeated *r = context;
    struct pawl_str name;
    memcpy(&name, r->first + a * r->stride, sizeof name);
    if (!r->is_found || pawl_str_compare(name, r->name) < 0)
        r->name = name;
    r->is_found = true;
    return a < b ? a : b;
}

static enum pawl_status
check_different(const char *what, const struct pawl_str *first, size_t stride, size_t n, struct pawl_error *err)
{
    struct repeated repeated = { .first = (const unsigned char *)first, .stride = stride };
    struct pawl_name_table table;
    if (n < 2)
        return PAWL_OK;
    enum pawl_status st = pawl_name_table_build(&table, first, stride, n, same_name, &repeated, err);
    if (st != PAWL_OK)
        return st;
    pawl_name_table_release(&table);
    if (!repeated.is_found)
        return PAWL_OK;
    return pawl_fail(err, PAWL_ARGUMENT, "duplicate-key", "%s '%s' is given twice", what, PAWL_SHOW(repeated.name));
}

static enum pawl_status
check_items(const struct pawl_st_item *items, size_t n, struct pawl_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (pawl_str_equal(items[i].name, PAWL_STR("__metadata__")))
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "no tensor can have the name '__metadata__'");
        if (pawl_dtype_bits(items[i].dtype) == 0)
            return pawl_fail(err, PAWL_ARGUMENT, "dtype", "tensor '%s': %d is no dtype", PAWL_SHOW(items[i].name),
                             (int)items[i].dtype);
        enum pawl_status st = check_utf8("the tensor name", items[i].name, err);
        if (st != PAWL_OK)
            return st;
    }
    return n == 0 ? PAWL_OK : check_different("the tensor name", &items[0].name, sizeof items[0], n, err);
}

static enum pawl_status
check_metadata(const struct pawl_pair *metadata, size_t n, struct pawl_error *err)
{
    for (size_t i = 0; i < n; i++) {
        enum pawl_status st = check_utf8("the metadata key", metadata[i].key, err);
        if (st == PAWL_OK)
            st = check_utf8("the metadata value", metadata[i].value, err);
        if (st != PAWL_OK)
            return st;
    }
    return n == 0 ? PAWL_OK : check_different("the metadata key", &metadata[0].key, sizeof metadata[0], n, err);
}

/* ---- order and offsets ---- */

static int
compare_items(const void *a, const void *b)
{
    const struct pawl_st_item *left = *(const struct pawl_st_item *const *)a;
    const struct pawl_st_item *right = *(const struct pawl_st_item *const *)b;
    return pawl_st_compare(left->dtype, left->name, right->dtype, right->name);
}

static enum pawl_status
order_items(struct pawl_st_plan *plan, const struct pawl_st_item *items, size_t n, struct pawl_error *err)
{
    bool is_sorted = true;
    for (size_t i = 0; i < n; i++) {
        plan->order[i] = i;
        is_sorted = is_sorted && (i == 0 || pawl_st_compare(items[i - 1].dtype, items[i - 1].name, items[i].dtype,
                                                            items[i].name) < 0);
    }
    if (is_sorted)
        return PAWL_OK;
    const struct pawl_st_item **pointers = malloc(n * sizeof *pointers);
    if (pointers == NULL)
        return pawl_fail_memory(err, n * sizeof *pointers);
    for (size_t i = 0; i < n; i++)
        pointers[i] = &items[i];
    qsort(pointers, n, sizeof *pointers, compare_items); /* names differ: nothing is left to the library's choice */
    for (size_t i = 0; i < n; i++)
        plan->order[i] = (size_t)(pointers[i] - items);
    free(pointers);
    return PAWL_OK;
}

static enum pawl_status
place_items(struct pawl_st_plan *plan, const struct pawl_st_item *items, size_t n, struct pawl_error *err)
{
    uint64_t at = 0;
    struct pawl_error own = PAWL_ERROR_INIT;
    for (size_t k = 0; k < n; k++) {
        size_t i = plan->order[k];
        const struct pawl_st_item *item = &items[i];
        uint64_t elements;
        enum pawl_status st = pawl_dtype_bytes(item->dtype, item->shape, item->rank, &elements, &plan->bytes[i], &own);
        if (st != PAWL_OK) {
            (void)pawl_fail(err, PAWL_ARGUMENT, own.code, "tensor '%s': %s", PAWL_SHOW(item->name), own.message);
            pawl_error_tensor(err, item->name);
            return PAWL_ARGUMENT;
        }
        plan->begins[i] = at;
        if (!pawl_add_u64(at, plan->bytes[i], &at)) {
            (void)pawl_fail(err, PAWL_ARGUMENT, "overflow", "with tensor '%s' the data pass 2^64 bytes",
                            PAWL_SHOW(item->name));
            pawl_error_tensor(err, item->name);
            return PAWL_ARGUMENT;
        }
    }
    plan->data_bytes = at;
    return PAWL_OK;
}

/* ---- the text ---- */

static int
compare_pairs(const void *a, const void *b)
{
    const struct pawl_pair *left = *(const struct pawl_pair *const *)a;
    const struct pawl_pair *right = *(const struct pawl_pair *const *)b;
    return pawl_str_compare(left->key, right->key);
}

/* In ascending order of the keys' bytes. */
static enum pawl_status
add_metadata(struct pawl_buffer *out, const struct pawl_pair *metadata, size_t n, struct pawl_error *err)
{
    const struct pawl_pair **pointers = malloc((n == 0 ? 1 : n) * sizeof *pointers);
    if (pointers == NULL)
        return pawl_fail_memory(err, n * sizeof *pointers);
    for (size_t i = 0; i < n; i++)
        pointers[i] = &metadata[i];
    qsort(pointers, n, sizeof *pointers, compare_pairs);
    pawl_buffer_add_z(out, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            pawl_buffer_add_char(out, ',');
        pawl_json_quote(out, pointers[i]->key, PAWL_JSON_RAW);
        pawl_buffer_add_char(out, ':');
        pawl_json_quote(out, pointers[i]->value, PAWL_JSON_RAW);
    }
    pawl_buffer_add_char(out, '}');
    free(pointers);
    return PAWL_OK;
}

/* Digits of any number of 64 bits. */
#define DIGITS_MAX 20
/* What an item's text has at most, beside its name and its shape: both brackets, the longest dtype, two offsets, commas. */
#define ITEM_TEXT_MAX (56 + 2 * DIGITS_MAX)

/* Two digits at a time: half the divisions, each of which waits for the one before. */
static char *
put_u64(char *to, uint64_t value)
{
    static const char PAIRS[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
        "49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
        "9899";
    char text[DIGITS_MAX];
    size_t at = sizeof text;
    for (; value >= 100; value /= 100) {
        at -= 2;
        memcpy(text + at, PAIRS + 2 * (value % 100), 2);
    }
    at -= 2;
    memcpy(text + at, PAIRS + 2 * value, 2);
    at += value < 10;
    memcpy(to, text + at, sizeof text - at);
    return to + (sizeof text - at);
}

static char *
put_text(char *to, struct pawl_str text)
{
    memcpy(to, text.data, text.len);
    return to + text.len;
}

/* Into room that is asked for once: an item has a dozen pieces, and a file may have a hundred thousand items. */
static void
add_item(struct pawl_buffer *out, const struct pawl_st_item *item, uint64_t begin, uint64_t bytes)
{
    pawl_json_quote(out, item->name, PAWL_JSON_RAW);
    size_t room;
    if (!pawl_mul_size(item->rank, DIGITS_MAX + 1, &room) || !pawl_add_size(room, ITEM_TEXT_MAX, &room) ||
        !pawl_buffer_reserve(out, room)) {
        out->is_failed = true;
        return;
    }
    char *at = out->data + out->len;
    at = put_text(at, PAWL_STR(":{\"dtype\":\""));
    at = put_text(at, pawl_str_z(pawl_dtype_name(item->dtype)));
    at = put_text(at, PAWL_STR("\",\"shape\":["));
    for (size_t i = 0; i < item->rank; i++) {
        if (i > 0)
            *at++ = ',';
        at = put_u64(at, item->shape[i]);
    }
    at = put_text(at, PAWL_STR("],\"data_offsets\":["));
    at = put_u64(at, begin);
    *at++ = ',';
    at = put_u64(at, begin + bytes);
    at = put_text(at, PAWL_STR("]}"));
    out->len = (size_t)(at - out->data);
}

/*
 * Room for the text of usual items, so that a large text is not moved as it grows, and its memory comes in large pages. Where there is no
 * memory for it, what is added will tell.
 */
static void
reserve_text(struct pawl_buffer *out, const struct pawl_st_item *items, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += items[i].name.len + 3 + ITEM_TEXT_MAX + (items[i].rank < 4 ? items[i].rank : 4) * (DIGITS_MAX + 1);
    if (pawl_buffer_reserve(out, bytes))
        pawl_memory_large(out->data, out->capacity);
}

/* Spaces up to the alignment, and the length in front. */
static enum pawl_status
finish_prefix(struct pawl_st_plan *plan, uint64_t align, struct pawl_error *err)
{
    struct pawl_buffer *out = &plan->prefix;
    uint64_t end;
    if (!pawl_buffer_ok(out))
        return pawl_fail_memory(err, out->len);
    if (!pawl_round_up_u64(out->len, align, &end) || end - 8 > PAWL_ST_HEADER_BYTES_MAX)
        return pawl_fail(err, PAWL_ARGUMENT, "header-too-large",
                         "the header would take %" PRIu64 " bytes, readers take %" PRIu64, (uint64_t)out->len - 8,
                         PAWL_ST_HEADER_BYTES_MAX);
    size_t pad = (size_t)(end - out->len);
    if (!pawl_buffer_reserve(out, pad))
        return pawl_fail_memory(err, (size_t)end);
    memset(out->data + out->len, ' ', pad);
    out->len += pad;
    pawl_put_u64le((unsigned char *)out->data, end - 8);
    if (!pawl_add_u64(end, plan->data_bytes, &plan->file_bytes))
        return pawl_fail(err, PAWL_ARGUMENT, "overflow", "header and data pass 2^64 bytes");
    return PAWL_OK;
}

/* Of items that were checked, in the order that the plan has. */
static enum pawl_status
print_plan(struct pawl_st_plan *plan, const struct pawl_st_item *items, size_t n, const struct pawl_pair *metadata,
           size_t n_metadata, bool has_metadata, uint64_t align, struct pawl_error *err)
{
    struct pawl_buffer *out = &plan->prefix;
    static const char NO_LENGTH[8];
    enum pawl_status st = place_items(plan, items, n, err);
    if (st != PAWL_OK)
        return st;
    pawl_buffer_add(out, NO_LENGTH, sizeof NO_LENGTH);
    pawl_buffer_add_char(out, '{');
    if (has_metadata || n_metadata != 0) {
        st = add_metadata(out, metadata, n_metadata, err);
        if (st != PAWL_OK)
            return st;
        if (n != 0)
            pawl_buffer_add_char(out, ',');
    }
    reserve_text(out, items, n);
    for (size_t k = 0; k < n; k++) {
        if (k > 0)
            pawl_buffer_add_char(out, ',');
        size_t i = plan->order[k];
        add_item(out, &items[i], plan->begins[i], plan->bytes[i]);
    }
    pawl_buffer_add_char(out, '}');
    return finish_prefix(plan, align, err);
}

static enum pawl_status
begin_plan(struct pawl_st_plan *plan, size_t n, uint64_t *align, struct pawl_error *err)
{
    *plan = (struct pawl_st_plan){ .prefix = PAWL_BUFFER_INIT };
    if (*align == 0)
        *align = 8;
    if (*align < 8 || (*align & (*align - 1)) != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the data can't be aligned to %" PRIu64 ": a power of two from 8 is expected", *align);
    size_t bytes;
    if (!pawl_mul_size(n, 2 * sizeof *plan->begins + sizeof *plan->order, &bytes) || !pawl_add_size(bytes, 1, &bytes))
        return pawl_fail_memory(err, SIZE_MAX);
    plan->begins = malloc(bytes);
    if (plan->begins == NULL)
        return pawl_fail_memory(err, bytes);
    pawl_memory_filled(plan->begins, bytes);
    plan->bytes = plan->begins + n;
    plan->order = (size_t *)(plan->bytes + n);
    return PAWL_OK;
}

enum pawl_status
pawl_st_plan(struct pawl_st_plan *plan, const struct pawl_st_item *items, size_t n, const struct pawl_pair *metadata,
             size_t n_metadata, bool has_metadata, uint64_t align, struct pawl_error *err)
{
    enum pawl_status st = begin_plan(plan, n, &align, err);
    if (st == PAWL_OK)
        st = check_items(items, n, err);
    if (st == PAWL_OK)
        st = check_metadata(metadata, n_metadata, err);
    if (st == PAWL_OK)
        st = order_items(plan, items, n, err);
    if (st == PAWL_OK)
        st = print_plan(plan, items, n, metadata, n_metadata, has_metadata, align, err);
    if (st != PAWL_OK)
        pawl_st_plan_release(plan);
    return st;
}

enum pawl_status
pawl_st_plan_ordered(struct pawl_st_plan *plan, const struct pawl_st_item *items, size_t n,
                     const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata, uint64_t align,
                     struct pawl_error *err)
{
    enum pawl_status st = begin_plan(plan, n, &align, err);
    if (st == PAWL_OK)
        st = check_metadata(metadata, n_metadata, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        plan->order[i] = i;
    if (st == PAWL_OK)
        st = print_plan(plan, items, n, metadata, n_metadata, has_metadata, align, err);
    if (st != PAWL_OK)
        pawl_st_plan_release(plan);
    return st;
}

void
pawl_st_plan_release(struct pawl_st_plan *plan)
{
    pawl_buffer_release(&plan->prefix);
    free(plan->begins); /* and the other two */
    *plan = (struct pawl_st_plan){ .prefix = PAWL_BUFFER_INIT };
}
