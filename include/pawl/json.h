/*
 * pawl/json.h: writing a JSON text, for programs that report.
 *
 *     pawl_json_new -> pawl_json_add_... in the order of the text -> pawl_json_text -> pawl_json_free
 *
 * The add functions return nothing: the first thing that went wrong is kept, and
 * pawl_json_text tells. What comes out is always valid JSON in UTF-8. Commas,
 * colons, line ends and indents come by themselves; nothing is sorted. A handle
 * belongs to one thread at a time. Since 0.1.
 */
#ifndef PAWL_JSON_H
#define PAWL_JSON_H

#include "pawl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pawl_json_style {
    PAWL_JSON_COMPACT = 0,  /* no white space */
    PAWL_JSON_INDENTED = 1, /* two spaces, every item on its own line, [] and {} when empty: Python's indent=2 */
    PAWL_JSON_SPACED = 2    /* one line, ", " and ": ", as Python's json.dumps without arguments */
};

enum pawl_json_escape {
    PAWL_JSON_RAW = 0,  /* non-ASCII as it is; " \ and controls escaped: \b \f \n \r \t, others \u00xx */
    PAWL_JSON_ASCII = 1 /* everything outside space ... ~ as \u escapes, pairs beyond the BMP */
};

struct pawl_json;

/* Start a text. PAWL_NO_MEMORY. */
PAWL_API enum pawl_status pawl_json_new(enum pawl_json_style style, enum pawl_json_escape escape,
                                        struct pawl_json **ret_json, struct pawl_error *err);
PAWL_API void pawl_json_free(struct pawl_json *json); /* NULL is fine */

PAWL_API void pawl_json_add_object(struct pawl_json *json);
PAWL_API void pawl_json_end_object(struct pawl_json *json);
PAWL_API void pawl_json_add_array(struct pawl_json *json);
PAWL_API void pawl_json_end_array(struct pawl_json *json);
/* Bytes of a key or string that are not UTF-8 are written as U+FFFD, one for each: names of files may be such. */
PAWL_API void pawl_json_add_key(struct pawl_json *json, struct pawl_str key);
PAWL_API void pawl_json_add_string(struct pawl_json *json, struct pawl_str text);
PAWL_API void pawl_json_add_u64(struct pawl_json *json, uint64_t value);
PAWL_API void pawl_json_add_i64(struct pawl_json *json, int64_t value);
/* The shortest decimal that reads back to the same bits, in Python's spelling. JSON has no word for the others: they are
 * the strings "NaN", "Infinity" and "-Infinity". */
PAWL_API void pawl_json_add_f64(struct pawl_json *json, double value);
PAWL_API void pawl_json_add_bool(struct pawl_json *json, bool value);
PAWL_API void pawl_json_add_null(struct pawl_json *json);
/* A value that is printed already; taken on trust. */
PAWL_API void pawl_json_add_raw(struct pawl_json *json, struct pawl_str text);

/* Shorthands for C strings, and for a member of an object in one line. */
PAWL_API void pawl_json_add_key_z(struct pawl_json *json, const char *key);
PAWL_API void pawl_json_add_string_z(struct pawl_json *json, const char *text); /* NULL is null */

/*
 * The whole text, without a line end, followed by a NUL that is not counted.
 *
 * ret_text  set only on PAWL_OK; valid until the next call with this handle.
 *
 * Returns PAWL_OK; PAWL_NO_MEMORY; PAWL_ARGUMENT when the calls made no complete text (a value
 * in an object without a key, an end without a begin, an open container, no value, two values).
 */
PAWL_API enum pawl_status pawl_json_text(struct pawl_json *json, struct pawl_str *ret_text, struct pawl_error *err);
/* Begin a new text with the same handle; its memory and its style are kept. */
PAWL_API void pawl_json_clear(struct pawl_json *json);

#ifdef __cplusplus
}
#endif

#endif
