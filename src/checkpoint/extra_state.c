/* pawl.state.json, read and printed. */
#include <math.h>
#include <stdlib.h>
#include "checkpoint/base64.h"
#include "checkpoint/documents.h"
#include "checkpoint/fields.h"

static int
compare_numbers(const void *a, const void *b)
{
    const struct pawl_named_number *first = a;
    const struct pawl_named_number *second = b;
    return pawl_str_compare(first->name, second->name);
}

static int
compare_opaques(const void *a, const void *b)
{
    const struct pawl_named_opaque *first = a;
    const struct pawl_named_opaque *second = b;
    return pawl_str_compare(first->name, second->name);
}

/* The strings that stand for doubles JSON has no word for. */
static bool
nonfinite_of_text(struct pawl_str text, double *ret)
{
    if (pawl_str_equal(text, PAWL_STR("Infinity")))
        *ret = (double)INFINITY;
    else if (pawl_str_equal(text, PAWL_STR("-Infinity")))
        *ret = -(double)INFINITY;
    else if (pawl_str_equal(text, PAWL_STR("NaN")))
        *ret = (double)NAN;
    else
        return false;
    return true;
}

static enum pawl_status
parse_number(const struct pawl_json_value *value, struct pawl_named_number *ret_number, struct pawl_error *err)
{
    struct pawl_show show;
    const char *name = pawl_show_str(&show, value->key);
    if (value->key.len == 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", value->offset, "a name is empty");
    *ret_number = (struct pawl_named_number){ .name = value->key };
    if (value->type == PAWL_JSON_STRING && nonfinite_of_text(value->text, &ret_number->real))
        return PAWL_OK;
    if (value->type != PAWL_JSON_NUMBER)
        return pawl_field_fail(value, name, "a number, \"Infinity\", \"-Infinity\" or \"NaN\"", err);
    ret_number->is_integer = pawl_json_is_integer(value->text);
    if (!ret_number->is_integer)
        ret_number->real = pawl_json_f64(value->text);
    else if (!pawl_json_i64(value->text, &ret_number->integer))
        return pawl_field_fail(value, name, "an integer from -9223372036854775808 to 9223372036854775807", err);
    return PAWL_OK;
}

static enum pawl_status
parse_opaque(struct pawl_arena *arena, const struct pawl_json_value *value, struct pawl_named_opaque *ret_opaque,
             struct pawl_error *err)
{
    static const char *const NAMES[] = { "type", "data" };
    const struct pawl_json_value *members[2];
    struct pawl_str text;
    size_t bad;

    if (value->key.len == 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", value->offset, "a name is empty");
    *ret_opaque = (struct pawl_named_opaque){ .name = value->key };
    enum pawl_status st = pawl_fields_object(value, NAMES, 2, 2, members, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_field_string(members[0], "type", &ret_opaque->type, err);
    if (st != PAWL_OK)
        return st;
    if (ret_opaque->type.len == 0)
        return pawl_field_fail(members[0], "type", "a tag", err);
    st = pawl_field_string(members[1], "data", &text, err);
    if (st != PAWL_OK)
        return st;
    size_t room = pawl_base64_bytes_max(text.len);
    unsigned char *data = pawl_arena_take(arena, room == 0 ? 1 : room);
    if (data == NULL)
        return pawl_fail_memory(err, room);
    if (!pawl_base64_decode(text, data, &ret_opaque->bytes, &bad)) {
        if (bad >= text.len)
            return pawl_fail_at(err, PAWL_CORRUPT, "content", members[1]->offset,
                                "data: expected base64 in groups of 4, found %zu characters", text.len);
        return pawl_fail_at(err, PAWL_CORRUPT, "content", members[1]->offset,
                            "data: expected base64, found '%s' as character %zu of %zu",
                            PAWL_SHOW(pawl_str_make(text.data + bad, 1)), bad, text.len);
    }
    ret_opaque->data = data;
    return PAWL_OK;
}

static enum pawl_status
parse_numbers(struct pawl_arena *arena, const struct pawl_json_value *value, struct pawl_extra_document *document,
              struct pawl_error *err)
{
    if (value->type != PAWL_JSON_OBJECT)
        return pawl_field_fail(value, "numbers", "an object", err);
    document->numbers = pawl_arena_take_array(arena, value->n == 0 ? 1 : value->n, sizeof *document->numbers);
    if (document->numbers == NULL)
        return pawl_fail_memory(err, value->n * sizeof *document->numbers);
    document->n_numbers = value->n;
    for (size_t i = 0; i < value->n; i++) {
        enum pawl_status st = parse_number(&value->first[i], &document->numbers[i], err);
        if (st != PAWL_OK)
            return pawl_context(err, st, "numbers");
    }
    if (value->n > 1)
        qsort(document->numbers, value->n, sizeof *document->numbers, compare_numbers);
    return PAWL_OK;
}

static enum pawl_status
parse_opaques(struct pawl_arena *arena, const struct pawl_json_value *value, struct pawl_extra_document *document,
              struct pawl_error *err)
{
    if (value->type != PAWL_JSON_OBJECT)
        return pawl_field_fail(value, "states", "an object", err);
    document->opaques = pawl_arena_take_array(arena, value->n == 0 ? 1 : value->n, sizeof *document->opaques);
    if (document->opaques == NULL)
        return pawl_fail_memory(err, value->n * sizeof *document->opaques);
    document->n_opaques = value->n;
    for (size_t i = 0; i < value->n; i++) {
        enum pawl_status st = parse_opaque(arena, &value->first[i], &document->opaques[i], err);
        if (st != PAWL_OK)
            return value->first[i].key.len == 0 ? pawl_context(err, st, "states")
                                                : pawl_context(err, st, "states: %s", PAWL_SHOW(value->first[i].key));
    }
    if (value->n > 1)
        qsort(document->opaques, value->n, sizeof *document->opaques, compare_opaques);
    return PAWL_OK;
}

enum pawl_status
pawl_extra_state_parse(struct pawl_arena *arena, struct pawl_extra_document *ret_document, const void *text,
                       size_t bytes, struct pawl_error *err)
{
    static const char *const NAMES[] = { "numbers", "states" };
    const struct pawl_json_value *members[2];
    const struct pawl_json_value *object = NULL;
    struct pawl_extra_document document = { 0 };

    enum pawl_status st = pawl_fields_parse(arena, text, bytes, &object, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_fields_object(object, NAMES, 2, 2, members, err);
    if (st != PAWL_OK)
        return st;
    st = parse_numbers(arena, members[0], &document, err);
    if (st != PAWL_OK)
        return st;
    st = parse_opaques(arena, members[1], &document, err);
    if (st != PAWL_OK)
        return st;
    *ret_document = document;
    return PAWL_OK;
}

static void
print_number(struct pawl_json_writer *writer, const struct pawl_named_number *number)
{
    pawl_json_write_key(writer, number->name);
    if (number->is_integer)
        pawl_json_write_i64(writer, number->integer);
    else if (isfinite(number->real))
        pawl_json_write_f64(writer, number->real);
    else
        pawl_json_write_string(writer, isnan(number->real) ? PAWL_STR("NaN")
                                       : number->real > 0  ? PAWL_STR("Infinity")
                                                           : PAWL_STR("-Infinity"));
}

bool
pawl_extra_state_print(struct pawl_extra_document *document, struct pawl_buffer *out)
{
    struct pawl_json_writer writer;
    struct pawl_buffer base64 = PAWL_BUFFER_INIT;
    bool is_ok = true;

    if (document->n_numbers > 1)
        qsort(document->numbers, document->n_numbers, sizeof *document->numbers, compare_numbers);
    if (document->n_opaques > 1)
        qsort(document->opaques, document->n_opaques, sizeof *document->opaques, compare_opaques);
    pawl_json_write_begin(&writer, out, PAWL_JSON_INDENTED, PAWL_JSON_RAW);
    pawl_json_write_object(&writer);
    pawl_json_write_key(&writer, PAWL_STR("numbers"));
    pawl_json_write_object(&writer);
    for (size_t i = 0; i < document->n_numbers; i++)
        print_number(&writer, &document->numbers[i]);
    pawl_json_write_object_end(&writer);
    pawl_json_write_key(&writer, PAWL_STR("states"));
    pawl_json_write_object(&writer);
    for (size_t i = 0; i < document->n_opaques && is_ok; i++) {
        const struct pawl_named_opaque *opaque = &document->opaques[i];
        pawl_buffer_clear(&base64);
        is_ok = pawl_base64_encode(&base64, opaque->data, opaque->bytes);
        pawl_json_write_key(&writer, opaque->name);
        pawl_json_write_object(&writer);
        pawl_json_write_key(&writer, PAWL_STR("type"));
        pawl_json_write_string(&writer, opaque->type);
        pawl_json_write_key(&writer, PAWL_STR("data"));
        pawl_json_write_string(&writer, pawl_buffer_str(&base64));
        pawl_json_write_object_end(&writer);
    }
    pawl_json_write_object_end(&writer);
    pawl_json_write_object_end(&writer);
    (void)pawl_buffer_add_char(out, '\n');
    pawl_buffer_release(&base64);
    return is_ok && pawl_buffer_ok(out);
}
