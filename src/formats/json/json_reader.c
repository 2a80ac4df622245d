/* The pull tokenizer: one state, one byte per open container in bits, no recursion. */
#include "formats/json/json.h"

#include <stdio.h>
#include "codec/utf8.h"
#include "formats/json/json_scan.h"

/* What may come next. */
enum state {
    STATE_VALUE = 0,        /* at the start, behind a colon, behind a comma in an array */
    STATE_VALUE_OR_END = 1, /* behind '[' */
    STATE_KEY_OR_END = 2,   /* behind '{' */
    STATE_AFTER = 3,        /* behind a value: a comma, an end, or the end of the text */
};

static bool
is_in_array(const struct pawl_json_reader *reader)
{
    unsigned top = reader->depth - 1;
    return (reader->is_array[top / 8] >> (top % 8) & 1) != 0;
}

/* What stands at a place, for a message. */
static const char *
show_byte(const struct pawl_json_reader *reader, const unsigned char *at, char text[32])
{
    if (at == reader->end)
        return "the end of the text";
    if (*at == 0)
        return "a NUL byte";
    if (*at > 0x20 && *at < 0x7f)
        (void)snprintf(text, 32, "'%c'", *at);
    else
        (void)snprintf(text, 32, "byte 0x%02x", *at);
    return text;
}

static enum pawl_status
fail_expected(const struct pawl_json_reader *reader, const unsigned char *at, const char *expected,
              struct pawl_error *err)
{
    char text[32];
    return pawl_fail_at(err, PAWL_CORRUPT, "json", (uint64_t)(at - reader->begin), "expected %s, found %s", expected,
                        show_byte(reader, at, text));
}

enum pawl_status
pawl_json_begin(struct pawl_json_reader *reader, const void *text, size_t bytes, unsigned flags, struct pawl_error *err)
{
    *reader = (struct pawl_json_reader){ .begin = text, .at = text, .end = text, .flags = flags };
    if (bytes == 0)
        return PAWL_OK; /* the first token says what is missing */
    reader->end += bytes;
    size_t bad = pawl_utf8_first_bad(text, bytes);
    if (bad != bytes)
        return pawl_fail_at(err, PAWL_CORRUPT, "utf8", bad, "not UTF-8: byte 0x%02x begins no valid sequence",
                            reader->begin[bad]);
    return PAWL_OK;
}

void
pawl_json_release(struct pawl_json_reader *reader)
{
    pawl_buffer_release(&reader->scratch);
    *reader = (struct pawl_json_reader){ 0 };
}

/* ---- strings ---- */

/* Four hex digits; false when there are not. */
static bool
read_hex4(const unsigned char *at, const unsigned char *end, uint32_t *ret)
{
    uint32_t value = 0;
    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        unsigned char c = at[i];
        unsigned char lower = c | 0x20;
        if (pawl_json_is_digit(c))
            value = value << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (uint32_t)(lower - 'a' + 10);
        else
            return false;
    }
    *ret = value;
    return true;
}

/* A \u escape, `at` behind the u: one code point, of one escape or of a pair. Returns the place behind it, NULL on error. */
static const unsigned char *
read_unicode_escape(const struct pawl_json_reader *reader, const unsigned char *at, uint32_t *ret_point,
                    struct pawl_error *err)
{
    const unsigned char *start = at - 2;
    uint64_t offset = (uint64_t)(start - reader->begin);
    uint32_t point;
    uint32_t low;

    if (!read_hex4(at, reader->end, &point)) {
        (void)pawl_fail_at(err, PAWL_CORRUPT, "json", offset, "\\u without four hex digits");
        return NULL;
    }
    at += 4;
    if (point >= 0xd800 && point < 0xe000) {
        if (point >= 0xdc00 || reader->end - at < 6 || at[0] != '\\' || at[1] != 'u' ||
            !read_hex4(at + 2, reader->end, &low) || low < 0xdc00 || low > 0xdfff) {
            (void)pawl_fail_at(err, PAWL_CORRUPT, "json", offset, "lone surrogate \\u%04x", (unsigned)point);
            return NULL;
        }
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    *ret_point = point;
    return at;
}

/* The rest of a string that has an escape at `at`; what stood before it is from `begin`. Decoded into the scratch. */
static enum pawl_status
read_escaped(struct pawl_json_reader *reader, const unsigned char *begin, const unsigned char *at,
             const unsigned char **ret_end, struct pawl_str *ret_text, struct pawl_error *err)
{
    static const char NAMES[] = "\"\\/bfnrt";
    static const char VALUES[] = "\"\\/\b\f\n\r\t";
    struct pawl_buffer *out = &reader->scratch;

    pawl_buffer_clear(out);
    pawl_buffer_add(out, begin, (size_t)(at - begin));
    for (;;) {
        const unsigned char *run = at;
        at = pawl_json_scan_plain(at, reader->end);
        pawl_buffer_add(out, run, (size_t)(at - run));
        if (at == reader->end || *at < 0x20 || *at == '"')
            break;
        const char *name = reader->end - at < 2 ? NULL : memchr(NAMES, at[1], sizeof NAMES - 1);
        if (name != NULL) {
            pawl_buffer_add_char(out, VALUES[name - NAMES]);
            at += 2;
        } else if (reader->end - at >= 2 && at[1] == 'u') {
            uint32_t point;
            unsigned char bytes[4];
            at = read_unicode_escape(reader, at + 2, &point, err);
            if (at == NULL)
                return PAWL_CORRUPT;
            pawl_buffer_add(out, bytes, pawl_utf8_encode(point, bytes));
        } else {
            return fail_expected(reader, at + 1, "one of \"\\/bfnrtu behind a backslash", err);
        }
    }
    if (!pawl_buffer_ok(out))
        return pawl_fail_memory(err, (size_t)(at - begin));
    *ret_end = at;
    *ret_text = pawl_buffer_str(out);
    return PAWL_OK;
}

/* A string, `at` on its quote. */
static enum pawl_status
read_string(struct pawl_json_reader *reader, const unsigned char *at, const unsigned char **ret_after,
            struct pawl_str *ret_text, struct pawl_error *err)
{
    const unsigned char *begin = at + 1;
    const unsigned char *stop = pawl_json_scan_plain(begin, reader->end);

    if (stop != reader->end && *stop == '\\') {
        enum pawl_status st = read_escaped(reader, begin, stop, &stop, ret_text, err);
        if (st != PAWL_OK)
            return st;
    } else {
        *ret_text = pawl_str_make((const char *)begin, (size_t)(stop - begin));
    }
    if (stop == reader->end)
        return pawl_fail_at(err, PAWL_CORRUPT, "json", (uint64_t)(stop - reader->begin),
                            "the text ends inside the string that begins at %zu", (size_t)(at - reader->begin));
    if (*stop != '"')
        return pawl_fail_at(err, PAWL_CORRUPT, "json", (uint64_t)(stop - reader->begin),
                            "control byte 0x%02x in a string: it must be escaped", *stop);
    *ret_after = stop + 1;
    return PAWL_OK;
}

/* ---- scalars ---- */

static enum pawl_status
read_number(const struct pawl_json_reader *reader, const unsigned char *at, const unsigned char **ret_after,
            struct pawl_error *err)
{
    const unsigned char *begin = at;
    const unsigned char *end = reader->end;

    if (at != end && *at == '-')
        at++;
    if (at == end || !pawl_json_is_digit(*at))
        return fail_expected(reader, at, "a digit", err);
    if (*at == '0' && end - at >= 2 && pawl_json_is_digit(at[1]))
        return pawl_fail_at(err, PAWL_CORRUPT, "json", (uint64_t)(at - reader->begin), "a number begins with 0");
    at = pawl_json_scan_digits(at, end);
    if (at != end && *at == '.') {
        at++;
        if (at == end || !pawl_json_is_digit(*at))
            return fail_expected(reader, at, "a digit behind the point", err);
        at = pawl_json_scan_digits(at, end);
    }
    bool has_exponent = at != end && (*at | 0x20) == 'e';
    if (has_exponent) {
        at++;
        if (at != end && (*at == '+' || *at == '-'))
            at++;
        if (at == end || !pawl_json_is_digit(*at))
            return fail_expected(reader, at, "a digit in the exponent", err);
        at = pawl_json_scan_digits(at, end);
    }
    /* Below 300 bytes without an exponent nothing can be out of range: the usual case is decided here. */
    size_t n = (size_t)(at - begin);
    if ((n >= 300 || has_exponent) && !pawl_json_is_in_range(pawl_str_make((const char *)begin, n)))
        return pawl_fail_at(err, PAWL_CORRUPT, "json", (uint64_t)(begin - reader->begin),
                            "a number of %zu bytes is beyond the range of a double", n);
    *ret_after = at;
    return PAWL_OK;
}

/* One of the words; false when it is none that the flags let through. */
static bool
read_word(const struct pawl_json_reader *reader, const unsigned char *at, const unsigned char **ret_after,
          struct pawl_json_token *token)
{
    static const struct {
        struct pawl_str text;
        enum pawl_json_type type;
        bool needs_flag;
    } WORDS[] = { { { "true", 4 }, PAWL_JSON_TRUE, false },      { { "false", 5 }, PAWL_JSON_FALSE, false },
                  { { "null", 4 }, PAWL_JSON_NULL, false },      { { "NaN", 3 }, PAWL_JSON_NUMBER, true },
                  { { "Infinity", 8 }, PAWL_JSON_NUMBER, true }, { { "-Infinity", 9 }, PAWL_JSON_NUMBER, true } };
    struct pawl_str rest = pawl_str_make((const char *)at, (size_t)(reader->end - at));
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if ((WORDS[i].needs_flag && (reader->flags & PAWL_JSON_NAN) == 0) || !pawl_str_starts(rest, WORDS[i].text))
            continue;
        token->type = WORDS[i].type;
        token->text = pawl_str_make(rest.data, WORDS[i].text.len);
        *ret_after = at + WORDS[i].text.len;
        return true;
    }
    return false;
}

/* A value that is no container and no string. */
static enum pawl_status
read_scalar(const struct pawl_json_reader *reader, const unsigned char *at, const unsigned char **ret_after,
            struct pawl_json_token *token, struct pawl_error *err)
{
    bool is_number = at != reader->end && pawl_json_is_digit(*at);
    if (!is_number && read_word(reader, at, ret_after, token))
        return PAWL_OK;
    if (!is_number && (at == reader->end || *at != '-'))
        return fail_expected(reader, at, "a value", err);
    enum pawl_status st = read_number(reader, at, ret_after, err);
    if (st != PAWL_OK)
        return st;
    token->type = PAWL_JSON_NUMBER;
    token->text = pawl_str_make((const char *)at, (size_t)(*ret_after - at));
    return PAWL_OK;
}

/* ---- tokens ---- */

/* Open a container. */
static enum pawl_status
push(struct pawl_json_reader *reader, const unsigned char *at, bool is_array, struct pawl_error *err)
{
    if (reader->depth == PAWL_JSON_DEPTH_MAX)
        return pawl_fail_at(err, PAWL_CORRUPT, "json", (uint64_t)(at - reader->begin), "nested deeper than %d levels",
                            PAWL_JSON_DEPTH_MAX);
    unsigned char bit = (unsigned char)(1u << (reader->depth % 8));
    unsigned char *byte = &reader->is_array[reader->depth / 8];
    *byte = (unsigned char)(is_array ? *byte | bit : *byte & ~bit);
    reader->depth++;
    reader->state = is_array ? STATE_VALUE_OR_END : STATE_KEY_OR_END;
    reader->at = at + 1;
    return PAWL_OK;
}

static enum pawl_status
read_value(struct pawl_json_reader *reader, const unsigned char *at, struct pawl_json_token *token,
           struct pawl_error *err)
{
    const unsigned char *after = at;
    enum pawl_status st;

    token->offset = (uint64_t)(at - reader->begin);
    token->text = pawl_str_make(NULL, 0);
    if (at != reader->end && *at == '"') {
        token->type = PAWL_JSON_STRING;
        st = read_string(reader, at, &after, &token->text, err);
    } else if (at != reader->end && (*at == '{' || *at == '[')) {
        token->type = *at == '{' ? PAWL_JSON_OBJECT : PAWL_JSON_ARRAY;
        return push(reader, at, *at == '[', err);
    } else {
        st = read_scalar(reader, at, &after, token, err);
    }
    if (st != PAWL_OK)
        return st;
    reader->at = after;
    reader->state = STATE_AFTER;
    return PAWL_OK;
}

static enum pawl_status
read_key(struct pawl_json_reader *reader, const unsigned char *at, const char *expected, struct pawl_json_token *token,
         struct pawl_error *err)
{
    const unsigned char *after;
    if (at == reader->end || *at != '"')
        return fail_expected(reader, at, expected, err);
    token->type = PAWL_JSON_KEY;
    token->offset = (uint64_t)(at - reader->begin);
    enum pawl_status st = read_string(reader, at, &after, &token->text, err);
    if (st != PAWL_OK)
        return st;
    after = pawl_json_scan_blanks(after, reader->end);
    if (after == reader->end || *after != ':')
        return fail_expected(reader, after, "':' behind a key", err);
    reader->at = after + 1;
    reader->state = STATE_VALUE;
    return PAWL_OK;
}

static enum pawl_status
read_end(struct pawl_json_reader *reader, const unsigned char *at, struct pawl_json_token *token)
{
    token->type = *at == '}' ? PAWL_JSON_OBJECT_END : PAWL_JSON_ARRAY_END;
    token->offset = (uint64_t)(at - reader->begin);
    token->text = pawl_str_make(NULL, 0);
    reader->depth--;
    reader->at = at + 1;
    reader->state = STATE_AFTER;
    return PAWL_OK;
}

static enum pawl_status
read_after(struct pawl_json_reader *reader, const unsigned char *at, struct pawl_json_token *token,
           struct pawl_error *err)
{
    if (reader->depth == 0) {
        if (at != reader->end)
            return fail_expected(reader, at, "the end of the text behind its value", err);
        *token = (struct pawl_json_token){ .type = PAWL_JSON_END, .offset = (uint64_t)(at - reader->begin) };
        return PAWL_OK;
    }
    bool is_array = is_in_array(reader);
    if (at != reader->end && *at == ',') {
        at = pawl_json_scan_blanks(at + 1, reader->end);
        return is_array ? read_value(reader, at, token, err)
                        : read_key(reader, at, "a key in quotes behind a comma", token, err);
    }
    if (at != reader->end && *at == (is_array ? ']' : '}'))
        return read_end(reader, at, token);
    return fail_expected(reader, at, is_array ? "',' or ']' behind an item" : "',' or '}' behind a member", err);
}

/* A failure leaves the reader as it was, so that asking again gives the same answer. */
enum pawl_status
pawl_json_next(struct pawl_json_reader *reader, struct pawl_json_token *ret_token, struct pawl_error *err)
{
    const unsigned char *at = pawl_json_scan_blanks(reader->at, reader->end);
    switch ((enum state)reader->state) {
    case STATE_AFTER:
        return read_after(reader, at, ret_token, err);
    case STATE_KEY_OR_END:
        if (at != reader->end && *at == '}')
            return read_end(reader, at, ret_token);
        return read_key(reader, at, "a key in quotes or '}'", ret_token, err);
    case STATE_VALUE_OR_END:
        if (at != reader->end && *at == ']')
            return read_end(reader, at, ret_token);
        break;
    case STATE_VALUE:
        break;
    }
    return read_value(reader, at, ret_token, err);
}

enum pawl_status
pawl_json_skip(struct pawl_json_reader *reader, const struct pawl_json_token *first, struct pawl_error *err)
{
    struct pawl_json_token token;
    if (first == NULL) {
        enum pawl_status st = pawl_json_next(reader, &token, err);
        if (st != PAWL_OK)
            return st;
        first = &token;
    }
    if (first->type != PAWL_JSON_OBJECT && first->type != PAWL_JSON_ARRAY)
        return PAWL_OK;
    unsigned outside = reader->depth - 1;
    while (reader->depth > outside) {
        enum pawl_status st = pawl_json_next(reader, &token, err);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* ---- the fast path's door ---- */

const unsigned char *
pawl_json_member_place(const struct pawl_json_reader *reader)
{
    const unsigned char *at = reader->at;
    if (reader->depth != 1)
        return NULL;
    if (reader->state == STATE_AFTER) {
        if (at == reader->end || *at != ',')
            return NULL;
        at++;
        if (at != reader->end && *at == ' ')
            at++;
    } else if (reader->state != STATE_KEY_OR_END) {
        return NULL;
    }
    return at != reader->end && *at == '"' ? at : NULL;
}

void
pawl_json_member_passed(struct pawl_json_reader *reader, const unsigned char *after)
{
    reader->at = after;
    reader->state = STATE_AFTER;
}

/* ---- integers ---- */

bool
pawl_json_u64(struct pawl_str digits, uint64_t *ret)
{
    uint64_t value = 0;
    if (digits.len == 0 || digits.len > 20 || (digits.data[0] == '0' && digits.len > 1))
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        unsigned char c = (unsigned char)digits.data[i];
        if (!pawl_json_is_digit(c))
            return false;
        uint64_t digit = (uint64_t)(c - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}

bool
pawl_json_i64(struct pawl_str digits, int64_t *ret)
{
    bool is_negative = digits.len > 0 && digits.data[0] == '-';
    uint64_t value;
    if (!pawl_json_u64(is_negative ? pawl_str_make(digits.data + 1, digits.len - 1) : digits, &value))
        return false;
    if (is_negative) {
        if (value == 0 || value > (uint64_t)INT64_MAX + 1)
            return false;
        *ret = value == (uint64_t)INT64_MAX + 1 ? INT64_MIN : -(int64_t)value;
        return true;
    }
    if (value > INT64_MAX)
        return false;
    *ret = (int64_t)value;
    return true;
}

bool
pawl_json_is_integer(struct pawl_str digits)
{
    size_t i = digits.len > 0 && digits.data[0] == '-' ? 1 : 0;
    if (i == digits.len)
        return false;
    for (; i < digits.len; i++) {
        if (!pawl_json_is_digit((unsigned char)digits.data[i]))
            return false;
    }
    return true;
}
