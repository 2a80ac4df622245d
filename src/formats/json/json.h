/*
 * json/json.h: the one JSON tokenizer of the project, and canonical printing.
 *
 * Reading is strict (RFC 8259, UTF-8 checked over the whole text first): no
 * trailing commas, comments, single quotes, raw control bytes, "+2", "02",
 * byte order mark; a surrogate pair escape is one code point, a lone surrogate
 * an error; nesting at most 127 levels (a container inside a container counts
 * two); a number outside the range of a double is an error. It is iterative, takes
 * time linear in the text, and allocates only for strings that have escapes.
 *
 * Two ways to use it: as a pull tokenizer (large headers: nothing is kept),
 * and, for metadata files of a few KiB, as a document (a tree in an arena).
 * Both answer the same to the same text; the document is built on the tokenizer.
 */
#ifndef PAWL_FORMATS_JSON_JSON_H
#define PAWL_FORMATS_JSON_JSON_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "pawl/json.h"

/* What the reference reader of safetensors takes: 127 nested containers pass, 128 do not. */
#define PAWL_JSON_DEPTH_MAX 127

enum pawl_json_flags {
    PAWL_JSON_NAN = 1, /* take NaN, Infinity and -Infinity as numbers (files by Python's json) */
};

enum pawl_json_type {
    PAWL_JSON_END = 0,    /* the text's end, once, after the one value */
    PAWL_JSON_OBJECT = 1, /* { */
    PAWL_JSON_OBJECT_END = 2,
    PAWL_JSON_ARRAY = 3,
    PAWL_JSON_ARRAY_END = 4,
    PAWL_JSON_KEY = 5, /* a string before a colon */
    PAWL_JSON_STRING = 6,
    PAWL_JSON_NUMBER = 7,
    PAWL_JSON_TRUE = 8,
    PAWL_JSON_FALSE = 9,
    PAWL_JSON_NULL = 10
};

struct pawl_json_token {
    enum pawl_json_type type;
    uint64_t offset;      /* of its first byte in the text */
    struct pawl_str text; /* KEY, STRING: decoded, points into the text when it has no escapes, else into the reader's
                              scratch, valid until the next token; NUMBER: the raw digits */
};

struct pawl_json_reader {
    const unsigned char *begin;
    const unsigned char *at;
    const unsigned char *end;
    unsigned flags;
    unsigned depth;
    unsigned char state;                                   /* what may come next */
    unsigned char is_array[(PAWL_JSON_DEPTH_MAX + 8) / 8]; /* a bit per open container */
    struct pawl_buffer scratch;
};

/* The text is borrowed until release. The UTF-8 of the whole is checked here: PAWL_CORRUPT, "utf8", with its offset. */
enum pawl_status pawl_json_begin(struct pawl_json_reader *reader, const void *text, size_t bytes, unsigned flags,
                                 struct pawl_error *err);
/* The next token. PAWL_CORRUPT with code "json" and the offset where the text breaks the grammar; the text that is too
 * short is that too. After an error, or after END, it answers the same again. */
enum pawl_status pawl_json_next(struct pawl_json_reader *reader, struct pawl_json_token *ret_token,
                                struct pawl_error *err);
/* Pass over a whole value, checked all the same. `first` is its first token when that has been read already (a scalar is
 * then passed already); NULL when the value comes next. */
enum pawl_status pawl_json_skip(struct pawl_json_reader *reader, const struct pawl_json_token *first,
                                struct pawl_error *err);
void pawl_json_release(struct pawl_json_reader *reader);

/*
 * For a caller that knows the usual spelling of the members of the outermost object and reads them faster itself: where
 * the next member's opening quote stands, NULL unless it stands there with at most one space behind the comma (the
 * tokenizer goes on then); and, having read the whole member, the place behind its value. What the caller takes must be what the
 * tokenizer would have taken.
 */
const unsigned char *pawl_json_member_place(const struct pawl_json_reader *reader);
void pawl_json_member_passed(struct pawl_json_reader *reader, const unsigned char *after);

/* ---- numbers, from their raw text ---- */

/* Digits alone (no sign, point or exponent), 0 ... 2^64-1. */
bool pawl_json_u64(struct pawl_str digits, uint64_t *ret);
/* Digits alone with an optional minus, -2^63 ... 2^63-1; "-0" is not one. */
bool pawl_json_i64(struct pawl_str digits, int64_t *ret);
bool pawl_json_is_integer(struct pawl_str digits); /* no point, no exponent */
/* Correctly rounded, whatever the locale. NaN and infinities when the flag let them through. */
double pawl_json_f64(struct pawl_str number);
/* Whether a number of the grammar rounds to a finite double. Nearly free but at the edge itself. */
bool pawl_json_is_in_range(struct pawl_str number);

/* ---- a document ---- */

struct pawl_json_value {
    enum pawl_json_type type; /* OBJECT, ARRAY, STRING, NUMBER, TRUE, FALSE, NULL */
    uint64_t offset;
    struct pawl_str key;                 /* inside an object */
    struct pawl_str text;                /* STRING: decoded; NUMBER: raw */
    size_t n;                            /* members or items */
    const struct pawl_json_value *first; /* of n, in a row */
};

/* A value of a tree takes far more memory than the two bytes that it may take in a text ("0,"), so a text of n bytes may have
 * PAWL_JSON_VALUES_FREE values and one for each PAWL_JSON_VALUE_BYTES: the tree then is at most about eleven times its text
 * and 200 MB. What is printed here has 14 bytes and more for each value once there are a million. */
#define PAWL_JSON_VALUES_FREE ((size_t)1 << 20)
#define PAWL_JSON_VALUE_BYTES ((size_t)16)

/* A repeated key (escapes resolved) is PAWL_CORRUPT, "duplicate-key"; too many values PAWL_LIMIT, "limit". Values live in
 * the arena; strings are copied. */
enum pawl_status pawl_json_parse(struct pawl_arena *arena, const void *text, size_t bytes, unsigned flags,
                                 const struct pawl_json_value **ret_value, struct pawl_error *err);
/* The member of that name; NULL when there is none or `value` is no object. */
const struct pawl_json_value *pawl_json_member(const struct pawl_json_value *value, struct pawl_str name);

/* ---- printing ---- */

/* enum pawl_json_style and enum pawl_json_escape are those of pawl/json.h. */

/* The caller calls in the order of the text; nothing is sorted. Commas, colons and indents come by themselves.
 * Failures of memory show in pawl_buffer_ok(out). Strings must be valid UTF-8. */
struct pawl_json_writer {
    struct pawl_buffer *out;
    enum pawl_json_style style;
    enum pawl_json_escape escape;
    unsigned depth;
    bool is_first; /* nothing yet in the open container */
    bool after_key;
};

void pawl_json_write_begin(struct pawl_json_writer *writer, struct pawl_buffer *out, enum pawl_json_style style,
                           enum pawl_json_escape escape);
void pawl_json_write_object(struct pawl_json_writer *writer);
void pawl_json_write_object_end(struct pawl_json_writer *writer);
void pawl_json_write_array(struct pawl_json_writer *writer);
void pawl_json_write_array_end(struct pawl_json_writer *writer);
void pawl_json_write_key(struct pawl_json_writer *writer, struct pawl_str key);
void pawl_json_write_string(struct pawl_json_writer *writer, struct pawl_str text);
void pawl_json_write_u64(struct pawl_json_writer *writer, uint64_t value);
void pawl_json_write_i64(struct pawl_json_writer *writer, int64_t value);
/* Shortest decimal that reads back to the same bits, in Python's spelling; NaN and infinities print as NaN, Infinity. */
void pawl_json_write_f64(struct pawl_json_writer *writer, double value);
void pawl_json_write_raw(struct pawl_json_writer *writer, struct pawl_str text); /* a value that is already printed */
void pawl_json_write_bool(struct pawl_json_writer *writer, bool value);
void pawl_json_write_null(struct pawl_json_writer *writer);
/* Print a parsed value again: numbers by their raw text, objects in their order, or with sort_keys in byte order. */
void pawl_json_write_value(struct pawl_json_writer *writer, const struct pawl_json_value *value, bool sort_keys);

/* "0.0001", "1e-05", "1.0", "1e+16", "-0.0"; "NaN", "Infinity", "-Infinity". At most 24 bytes and a NUL; the bytes. */
size_t pawl_json_print_f64(double value, char text[32]);

/* One escaped string with its quotes, appended: what a safetensors header needs. */
bool pawl_json_quote(struct pawl_buffer *out, struct pawl_str text, enum pawl_json_escape escape);

#endif
