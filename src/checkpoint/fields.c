#include "checkpoint/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/str.h"

/* What stands there, for a message. */
static const char *
show_value(char *text, size_t size, const struct pawl_json_value *value)
{
    switch (value->type) {
    case PAWL_JSON_OBJECT:
        return "an object";
    case PAWL_JSON_ARRAY:
        return "an array";
    case PAWL_JSON_TRUE:
        return "true";
    case PAWL_JSON_FALSE:
        return "false";
    case PAWL_JSON_NULL:
        return "null";
    case PAWL_JSON_STRING:
        (void)snprintf(text, size, "\"%s\"", PAWL_SHOW(value->text));
        return text;
    default:
        (void)snprintf(text, size, "%s", PAWL_SHOW(value->text));
        return text;
    }
}

enum pawl_status
pawl_field_fail(const struct pawl_json_value *value, const char *name, const char *expected, struct pawl_error *err)
{
    char found[260];
    const char *text = show_value(found, sizeof found, value);
    return pawl_fail_at(err, PAWL_CORRUPT, "content", value->offset, "%s%sexpected %s, found %s", name,
                        name[0] == '\0' ? "" : ": ", expected, text);
}

enum pawl_status
pawl_fields_parse(struct pawl_arena *arena, const void *text, size_t bytes, const struct pawl_json_value **ret_object,
                  struct pawl_error *err)
{
    const struct pawl_json_value *value = NULL;
    enum pawl_status st = pawl_json_parse(arena, text, bytes, 0, &value, err);
    if (st != PAWL_OK)
        return st;
    if (value->type != PAWL_JSON_OBJECT)
        return pawl_field_fail(value, "", "an object", err);
    *ret_object = value;
    return PAWL_OK;
}

enum pawl_status
pawl_fields_object(const struct pawl_json_value *value, const char *const *names, size_t n, size_t n_required,
                   const struct pawl_json_value **ret_members, struct pawl_error *err)
{
    if (value->type != PAWL_JSON_OBJECT)
        return pawl_field_fail(value, "", "an object", err);
    for (size_t i = 0; i < n; i++)
        ret_members[i] = NULL;
    for (size_t m = 0; m < value->n; m++) {
        const struct pawl_json_value *member = &value->first[m];
        size_t i = 0;
        while (i < n && !pawl_str_equal(member->key, pawl_str_make(names[i], strlen(names[i]))))
            i++;
        if (i == n)
            return pawl_fail_at(err, PAWL_CORRUPT, "content", member->offset, "unknown key \"%s\"",
                                PAWL_SHOW(member->key));
        ret_members[i] = member;
    }
    for (size_t i = 0; i < n_required; i++) {
        if (ret_members[i] == NULL)
            return pawl_fail_at(err, PAWL_CORRUPT, "content", value->offset, "the key \"%s\" is missing", names[i]);
    }
    return PAWL_OK;
}

enum pawl_status
pawl_field_count(const struct pawl_json_value *value, const char *name, int64_t *ret, struct pawl_error *err)
{
    uint64_t count;
    if (value->type != PAWL_JSON_NUMBER || !pawl_json_u64(value->text, &count) || count > INT64_MAX)
        return pawl_field_fail(value, name, "an integer from 0 to 9223372036854775807 in digits alone", err);
    *ret = (int64_t)count;
    return PAWL_OK;
}

enum pawl_status
pawl_field_real(const struct pawl_json_value *value, const char *name, double *ret, struct pawl_error *err)
{
    if (value->type != PAWL_JSON_NUMBER)
        return pawl_field_fail(value, name, "a number", err);
    *ret = pawl_json_f64(value->text);
    return PAWL_OK;
}

enum pawl_status
pawl_field_string(const struct pawl_json_value *value, const char *name, struct pawl_str *ret, struct pawl_error *err)
{
    if (value->type != PAWL_JSON_STRING)
        return pawl_field_fail(value, name, "a string", err);
    *ret = value->text;
    return PAWL_OK;
}

enum pawl_status
pawl_field_hex(const struct pawl_json_value *value, const char *name, size_t digits, struct pawl_str *ret,
               struct pawl_error *err)
{
    bool is_hex = value->type == PAWL_JSON_STRING && value->text.len == digits;
    for (size_t i = 0; is_hex && i < digits; i++) {
        char c = value->text.data[i];
        is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    }
    if (!is_hex) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "%zu lowercase hex digits", digits);
        return pawl_field_fail(value, name, expected, err);
    }
    *ret = value->text;
    return PAWL_OK;
}
