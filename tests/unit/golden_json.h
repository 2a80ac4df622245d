/* unit/golden_json.h: JSON texts of the golden folders: read from a file, compared without the order of keys. */
#ifndef UNIT_GOLDEN_JSON_H
#define UNIT_GOLDEN_JSON_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "formats/json/json.h"
#include "os/file.h"

/* Parse a file of the host; NULL when there is none. The test stops when it is no JSON. */
static inline const struct pawl_json_value *
golden_read(struct pawl_arena *arena, const char *path)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_json_value *value = NULL;
    if (pawl_file_open_path(&file, pawl_os_posix(), path, &err) != PAWL_OK)
        return NULL;
    if (pawl_file_read_all(&file, (size_t)64 << 20, &text, &err) != PAWL_OK ||
        pawl_json_parse(arena, text.data, text.len, 0, &value, &err) != PAWL_OK)
        fail_msg("%s: %s", path, err.message);
    pawl_file_release(&file);
    pawl_buffer_release(&text);
    return value;
}

static inline const struct pawl_json_value *
golden_parse(struct pawl_arena *arena, const struct pawl_buffer *text)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_json_value *value = NULL;
    assert_true(pawl_buffer_ok(text));
    if (pawl_json_parse(arena, text->data, text->len, 0, &value, &err) != PAWL_OK)
        fail_msg("%s in %.*s", err.message, (int)text->len, text->data);
    return value;
}

static inline bool
golden_numbers_equal(struct pawl_str a, struct pawl_str b)
{
    if (pawl_str_equal(a, b))
        return true;
    if (pawl_json_is_integer(a) && pawl_json_is_integer(b))
        return false;
    double x = pawl_json_f64(a);
    double y = pawl_json_f64(b);
    return x == y && memcmp(&x, &y, sizeof x) == 0;
}

/*
 * Equal, where objects are sets of members, and arrays under the key `set_key` are sets of items. When not, `where` says where: a
 * path and both sides.
 */
static inline bool
golden_equal(const struct pawl_json_value *a, const struct pawl_json_value *b, const char *set_key, char *where,
             size_t size)
{
    struct pawl_show name;
    if (a->type != b->type || (a->n != b->n && (a->type == PAWL_JSON_OBJECT || a->type == PAWL_JSON_ARRAY))) {
        (void)snprintf(where, size, "%s: type %d of %zu against type %d of %zu", pawl_show_str(&name, a->key),
                       (int)a->type, a->n, (int)b->type, b->n);
        return false;
    }
    bool is_equal = true;
    switch (a->type) {
    case PAWL_JSON_OBJECT:
        for (size_t i = 0; i < a->n && is_equal; i++) {
            const struct pawl_json_value *other = pawl_json_member(b, a->first[i].key);
            if (other == NULL) {
                (void)snprintf(where, size, "%s is missing", pawl_show_str(&name, a->first[i].key));
                return false;
            }
            is_equal = golden_equal(&a->first[i], other, set_key, where, size);
        }
        return is_equal;
    case PAWL_JSON_ARRAY: {
        bool is_set = set_key != NULL && pawl_str_equal(a->key, pawl_str_z(set_key));
        for (size_t i = 0; i < a->n && is_equal; i++) {
            is_equal = false;
            for (size_t k = is_set ? 0 : i; k < (is_set ? b->n : i + 1) && !is_equal; k++)
                is_equal = golden_equal(&a->first[i], &b->first[k], set_key, where, size);
        }
        return is_equal;
    }
    case PAWL_JSON_STRING:
        is_equal = pawl_str_equal(a->text, b->text);
        break;
    case PAWL_JSON_NUMBER:
        is_equal = golden_numbers_equal(a->text, b->text);
        break;
    default:
        break;
    }
    if (!is_equal) {
        struct pawl_show x;
        struct pawl_show y;
        (void)snprintf(where, size, "%s: '%s' against '%s'", pawl_show_str(&name, a->key), pawl_show_str(&x, a->text),
                       pawl_show_str(&y, b->text));
    }
    return is_equal;
}

#endif
