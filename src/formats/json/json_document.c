/* A document: the tokens gathered into a tree. Values of open containers wait on a stack; a closing one takes its own. */
#include <assert.h>
#include <stdlib.h>
#include "formats/json/json.h"
#include "formats/json/name_table.h"

/* Up to here keys are compared with each other, which is faster than building a table. */
#define KEYS_COMPARED_MAX 16

struct builder {
    struct pawl_arena *arena;
    struct pawl_json_value *stack;
    size_t n;
    size_t capacity;
    size_t values; /* met so far */
    size_t values_max;
    size_t begins[PAWL_JSON_DEPTH_MAX]; /* per open container: where its children begin on the stack */
    size_t depth;
};

/* Of two members with one key the second in the text; the first such in an object is what the error names. */
struct repeated {
    const struct pawl_json_value *members;
    size_t second; /* SIZE_MAX: none */
    size_t first;
};

static void
note_repeated(struct repeated *repeated, size_t a, size_t b)
{
    size_t second = a > b ? a : b;
    if (second < repeated->second) {
        repeated->second = second;
        repeated->first = a > b ? b : a;
    }
}

static size_t
same_key(void *context, size_t a, size_t b)
{
    note_repeated(context, a, b);
    return a < b ? a : b;
}

static enum pawl_status
check_keys(const struct pawl_json_value *members, size_t n, struct pawl_error *err)
{
    struct repeated repeated = { members, SIZE_MAX, 0 };
    if (n < 2)
        return PAWL_OK;
    if (n <= KEYS_COMPARED_MAX) {
        for (size_t i = 1; i < n; i++) {
            for (size_t k = 0; k < i; k++) {
                if (pawl_str_equal(members[i].key, members[k].key))
                    note_repeated(&repeated, k, i);
            }
        }
    } else {
        struct pawl_name_table table;
        enum pawl_status st =
            pawl_name_table_build(&table, &members[0].key, sizeof members[0], n, same_key, &repeated, err);
        if (st != PAWL_OK)
            return st;
        pawl_name_table_release(&table);
    }
    if (repeated.second == SIZE_MAX)
        return PAWL_OK;
    return pawl_fail_at(err, PAWL_CORRUPT, "duplicate-key", members[repeated.second].offset,
                        "the key \"%s\" stands twice in one object", PAWL_SHOW(members[repeated.second].key));
}

static enum pawl_status
push(struct builder *builder, const struct pawl_json_value *value, struct pawl_error *err)
{
    if (builder->n == builder->capacity) {
        size_t capacity = builder->capacity == 0 ? 32 : builder->capacity * 2;
        struct pawl_json_value *stack = realloc(builder->stack, capacity * sizeof *stack);
        if (stack == NULL)
            return pawl_fail_memory(err, capacity * sizeof *stack);
        builder->stack = stack;
        builder->capacity = capacity;
    }
    builder->stack[builder->n++] = *value;
    return PAWL_OK;
}

/* The innermost container is whole: its children move from the stack to the arena. */
static enum pawl_status
close_container(struct builder *builder, struct pawl_error *err)
{
    assert(builder->depth > 0); /* the tokenizer ends nothing that it has not begun */
    size_t begin = builder->begins[--builder->depth];
    size_t n = builder->n - begin;
    struct pawl_json_value *container = &builder->stack[begin - 1];
    const struct pawl_json_value *children = &builder->stack[begin];

    if (container->type == PAWL_JSON_OBJECT) {
        enum pawl_status st = check_keys(children, n, err);
        if (st != PAWL_OK)
            return st;
    }
    container->n = n;
    container->first = NULL;
    if (n != 0) {
        struct pawl_json_value *kept = pawl_arena_take_array(builder->arena, n, sizeof *kept);
        if (kept == NULL)
            return pawl_fail_memory(err, n * sizeof *kept);
        memcpy(kept, children, n * sizeof *kept);
        container->first = kept;
    }
    builder->n = begin;
    return PAWL_OK;
}

static enum pawl_status
build(struct builder *builder, struct pawl_json_reader *reader, struct pawl_error *err)
{
    struct pawl_str key = { NULL, 0 };
    for (;;) {
        struct pawl_json_token token;
        enum pawl_status st = pawl_json_next(reader, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_END)
            return PAWL_OK;
        if (token.type == PAWL_JSON_OBJECT_END || token.type == PAWL_JSON_ARRAY_END) {
            st = close_container(builder, err);
            if (st != PAWL_OK)
                return st;
            continue;
        }
        struct pawl_str text = token.text;
        if ((token.type == PAWL_JSON_KEY || token.type == PAWL_JSON_STRING || token.type == PAWL_JSON_NUMBER) &&
            !pawl_arena_copy_str(builder->arena, token.text, &text))
            return pawl_fail_memory(err, token.text.len);
        if (token.type == PAWL_JSON_KEY) {
            key = text;
            continue;
        }
        struct pawl_json_value value = { .type = token.type, .offset = token.offset, .key = key, .text = text };
        key = pawl_str_make(NULL, 0);
        if (builder->values++ == builder->values_max)
            return pawl_fail_at(err, PAWL_LIMIT, "limit", token.offset, "more than %zu values in one document",
                                builder->values_max);
        st = push(builder, &value, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_OBJECT || token.type == PAWL_JSON_ARRAY)
            builder->begins[builder->depth++] = builder->n;
    }
}

enum pawl_status
pawl_json_parse(struct pawl_arena *arena, const void *text, size_t bytes, unsigned flags,
                const struct pawl_json_value **ret_value, struct pawl_error *err)
{
    struct builder builder = { .arena = arena, .values_max = PAWL_JSON_VALUES_FREE + bytes / PAWL_JSON_VALUE_BYTES };
    struct pawl_json_reader reader;
    enum pawl_status st = pawl_json_begin(&reader, text, bytes, flags, err);
    if (st == PAWL_OK)
        st = build(&builder, &reader, err);
    if (st == PAWL_OK) {
        struct pawl_json_value *value = pawl_arena_take(arena, sizeof *value);
        if (value == NULL) {
            st = pawl_fail_memory(err, sizeof *value);
        } else {
            assert(builder.n == 1);
            *value = builder.stack[0];
            *ret_value = value;
        }
    }
    free(builder.stack);
    pawl_json_release(&reader);
    return st;
}

const struct pawl_json_value *
pawl_json_member(const struct pawl_json_value *value, struct pawl_str name)
{
    if (value == NULL || value->type != PAWL_JSON_OBJECT)
        return NULL;
    for (size_t i = 0; i < value->n; i++) {
        if (pawl_str_equal(value->first[i].key, name))
            return &value->first[i];
    }
    return NULL;
}
