/* Failures as data, and the small helpers that every stage has. */
#define PAWL_FAIL_DEFINES
#include "formats/llmcp35/lc_inside.h"

#include <stdio.h>
#include <stdlib.h>

struct pawl_llmcp35_fault {
    struct pawl_arena arena;
    const char *category, *cause; /* literals */
    struct pawl_llmcp35_field *fields;
    size_t n;
};

static bool
copy_field(struct pawl_arena *arena, struct pawl_llmcp35_field *to, const struct pawl_llmcp35_field *from)
{
    *to = *from;
    if (from->type == PAWL_LLMCP35_TEXT)
        return pawl_arena_copy_str(arena, from->text, &to->text);
    if (from->type == PAWL_LLMCP35_NUMBERS) {
        uint64_t *numbers = pawl_arena_take_array(arena, from->n, sizeof *numbers);
        if (numbers == NULL)
            return false;
        for (size_t i = 0; i < from->n; i++)
            numbers[i] = from->numbers[i];
        to->numbers = numbers;
    }
    if (from->type == PAWL_LLMCP35_NAMES) {
        struct pawl_str *names = pawl_arena_take_array(arena, from->n, sizeof *names);
        if (names == NULL)
            return false;
        for (size_t i = 0; i < from->n; i++) {
            if (!pawl_arena_copy_str(arena, from->names[i], &names[i]))
                return false;
        }
        to->names = names;
    }
    return true;
}

/* NULL when memory is short: the status and the error tell all the same. */
static struct pawl_llmcp35_fault *
fault_new(const char *category, const char *cause, struct lc_fields fields)
{
    struct pawl_llmcp35_fault *fault = calloc(1, sizeof *fault);
    if (fault == NULL)
        return NULL;
    fault->category = category;
    fault->cause = cause;
    fault->n = fields.n;
    fault->fields = pawl_arena_take_array(&fault->arena, fields.n, sizeof *fault->fields);
    bool is_whole = fault->fields != NULL || fields.n == 0;
    for (size_t i = 0; is_whole && i < fields.n; i++)
        is_whole = copy_field(&fault->arena, &fault->fields[i], &fields.items[i]);
    if (!is_whole) {
        pawl_llmcp35_fault_free(fault);
        return NULL;
    }
    return fault;
}

static void
put_fault(struct lc_out *out, const char *category, const char *cause, struct lc_fields fields)
{
    if (out->ret_fault == NULL)
        return;
    pawl_llmcp35_fault_free(*out->ret_fault); /* a failure on the way to this one */
    *out->ret_fault = fault_new(category, cause, fields);
}

enum pawl_status
pawl_lc_fail(struct lc_out *out, enum pawl_status status, const char *category, const char *cause,
             struct lc_fields fields, const char *format, ...)
{
    put_fault(out, category, cause, fields);
    if (out->err == NULL)
        return status;
    char code[sizeof out->err->code];
    char message[sizeof out->err->message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (void)snprintf(code, sizeof code, "%s%s%s", category, cause != NULL ? "/" : "", cause != NULL ? cause : "");
    return pawl_fail_at(out->err, status, code, out->offset, "%s", message);
}

enum pawl_status
pawl_lc_fail_memory(struct lc_out *out, const char *where)
{
    return pawl_lc_fail(out, PAWL_NO_MEMORY, "allocation", NULL, LC_FIELDS(LC_WORD("where", where)),
                        "not enough memory for %s", where);
}

enum pawl_status
pawl_lc_fail_size(struct lc_out *out, const char *where)
{
    return LC_REFUSE(out, "size_overflow", NULL, LC_FIELDS(LC_WORD("where", where)),
                     "%s: the size does not fit its field", where);
}

enum pawl_status
pawl_lc_fail_io(struct lc_out *out, enum pawl_status status, const char *operation, const char *path)
{
    uint64_t code = out->err != NULL ? (uint64_t)out->err->system_errno : 0;
    put_fault(out, "io", NULL,
              LC_FIELDS(LC_WORD("operation", operation), LC_WORD("path", path), LC_U64("errno", code)));
    return status;
}

const char *
pawl_llmcp35_fault_category(const struct pawl_llmcp35_fault *fault)
{
    return fault->category;
}

const char *
pawl_llmcp35_fault_cause(const struct pawl_llmcp35_fault *fault)
{
    return fault->cause;
}

const struct pawl_llmcp35_field *
pawl_llmcp35_fault_fields(const struct pawl_llmcp35_fault *fault, size_t *ret_n)
{
    *ret_n = fault->n;
    return fault->fields;
}

void
pawl_llmcp35_fault_free(struct pawl_llmcp35_fault *fault)
{
    if (fault == NULL)
        return;
    pawl_arena_release(&fault->arena);
    free(fault);
}

const char *
pawl_lc_show_shape(char text[96], const uint64_t *shape, size_t rank)
{
    size_t used = 1;
    text[0] = '[';
    text[1] = '\0';
    for (size_t i = 0; i < rank; i++) {
        if (used > 60) { /* a dimension takes at most 22 more */
            (void)snprintf(text + used, 96 - used, ", ... %zu in all", rank);
            used = strlen(text);
            break;
        }
        (void)snprintf(text + used, 96 - used, "%s%llu", i == 0 ? "" : ", ", (unsigned long long)shape[i]);
        used = strlen(text);
    }
    (void)snprintf(text + used, 96 - used, "]");
    return text;
}

/* ---- keys ---- */

static int
compare_bytes(const struct lc_key *a, const struct lc_key *b)
{
    if (a->tag != b->tag)
        return a->tag < b->tag ? -1 : 1;
    return pawl_str_compare(a->bytes, b->bytes);
}

static int
compare_keys(const void *a, const void *b)
{
    const struct lc_key *x = a, *y = b;
    int order = compare_bytes(x, y);
    return order != 0 ? order : x->index < y->index ? -1 : x->index > y->index;
}

void
pawl_lc_keys_sort(struct lc_key *keys, size_t n)
{
    if (n > 1)
        qsort(keys, n, sizeof *keys, compare_keys);
}

size_t
pawl_lc_first_repeat(struct lc_key *keys, size_t n)
{
    size_t first = n;
    pawl_lc_keys_sort(keys, n);
    for (size_t i = 1; i < n; i++) {
        if (compare_bytes(&keys[i - 1], &keys[i]) == 0 && keys[i].index < first)
            first = keys[i].index;
    }
    return first;
}

/* ---- names ---- */

static int
compare_names(const void *a, const void *b)
{
    return pawl_str_compare(*(const struct pawl_str *)a, *(const struct pawl_str *)b);
}

void
pawl_lc_names_sort(struct lc_names names)
{
    if (names.n > 1)
        qsort(names.items, names.n, sizeof *names.items, compare_names);
}

bool
pawl_lc_names_equal(struct lc_names a, struct lc_names b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (!pawl_str_equal(a.items[i], b.items[i]))
            return false;
    }
    return true;
}

enum pawl_status
pawl_lc_names_copy(struct pawl_arena *arena, struct lc_names *to, const struct pawl_str *items, size_t n)
{
    struct lc_names copy = { NULL, n };
    if (n > 0) {
        copy.items = pawl_arena_take_array(arena, n, sizeof *copy.items);
        if (copy.items == NULL)
            return PAWL_NO_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        if (!pawl_arena_copy_str(arena, items[i], &copy.items[i]))
            return PAWL_NO_MEMORY;
    }
    *to = copy;
    return PAWL_OK;
}

double *
pawl_lc_values_new(size_t n)
{
    size_t bytes;
    return pawl_mul_size(n == 0 ? 1 : n, sizeof(double), &bytes) ? malloc(bytes) : NULL;
}
