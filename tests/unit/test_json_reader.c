/* json/json_reader.c: the grammar, and what a refusal says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "formats/json/json.h"
#include "unit/st_tools.h"

/* Read all tokens of a copy of exactly that size; the last answer. */
static enum pawl_status
drain(struct pawl_str text, unsigned flags, struct pawl_error *err)
{
    char *copy = malloc(text.len == 0 ? 1 : text.len);
    struct pawl_json_reader reader;
    struct pawl_json_token token = { .type = PAWL_JSON_NULL };
    assert_non_null(copy);
    if (text.len != 0)
        memcpy(copy, text.data, text.len);
    enum pawl_status st = pawl_json_begin(&reader, copy, text.len, flags, err);
    while (st == PAWL_OK && token.type != PAWL_JSON_END)
        st = pawl_json_next(&reader, &token, err);
    if (st != PAWL_OK && strcmp(err->code, "utf8") != 0) {
        /* asked again, it says the same */
        struct pawl_error again = PAWL_ERROR_INIT;
        assert_int_equal(pawl_json_next(&reader, &token, &again), st);
        assert_string_equal(again.message, err->message);
        assert_int_equal(again.offset, err->offset);
    } else if (st == PAWL_OK) {
        assert_int_equal(pawl_json_next(&reader, &token, err), PAWL_OK);
        assert_int_equal(token.type, PAWL_JSON_END);
    }
    pawl_json_release(&reader);
    free(copy);
    return st;
}

static void
good_texts(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-0.0",
        "1e5",
        "1E+5",
        "1.25e-300",
        "\"\"",
        "[]",
        "{}",
        " \t\r\n[ ] ",
        "[1,2]",
        "{\"a\":1,\"b\":[{}]}",
        "\"\\u0000\\ud83d\\ude00\\/\\b\"",
        "\"\x7f\xc2\x80\"",
        "[[[]],[]]",
        "{\"a\":{\"a\":{}}}",
        "18446744073709551616",
        "{\"\":0}",
        "[\"a\" , \"b\"]",
        "{\"a\" : 1 , \"b\" : 2}",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        if (drain(pawl_str_z(TEXTS[i]), 0, &err) != PAWL_OK)
            fail_msg("%s: %s", TEXTS[i], err.message);
    }
}

#define BAD(text, offset, message)                     \
    {                                                  \
        { "" text, sizeof(text) - 1 }, offset, message \
    }

/* Every refusal with its place and its words. */
static void
bad_texts(void **state)
{
    (void)state;
    static const struct {
        struct pawl_str text;
        uint64_t offset;
        const char *message;
    } CASES[] = {
        BAD("", 0, "expected a value, found the end of the text"),
        BAD("  ", 2, "expected a value, found the end of the text"),
        BAD("[1,]", 3, "expected a value, found ']'"),
        BAD("[,1]", 1, "expected a value, found ','"),
        BAD("[1 2]", 3, "expected ',' or ']' behind an item, found '2'"),
        BAD("[1", 2, "expected ',' or ']' behind an item, found the end of the text"),
        BAD("[1}", 2, "expected ',' or ']' behind an item, found '}'"),
        BAD("{\"a\":1]", 6, "expected ',' or '}' behind a member, found ']'"),
        BAD("{\"a\":1,}", 7, "expected a key in quotes behind a comma, found '}'"),
        BAD("{a:1}", 1, "expected a key in quotes or '}', found 'a'"),
        BAD("{'a':1}", 1, "expected a key in quotes or '}', found '''"),
        BAD("{1:1}", 1, "expected a key in quotes or '}', found '1'"),
        BAD("{\"a\"}", 4, "expected ':' behind a key, found '}'"),
        BAD("{\"a\":}", 5, "expected a value, found '}'"),
        BAD("{", 1, "expected a key in quotes or '}', found the end of the text"),
        BAD("[", 1, "expected a value, found the end of the text"),
        BAD("]", 0, "expected a value, found ']'"),
        BAD("1 2", 2, "expected the end of the text behind its value, found '2'"),
        BAD("{},", 2, "expected the end of the text behind its value, found ','"),
        BAD("{}\0", 2, "expected the end of the text behind its value, found a NUL byte"),
        BAD("{}//x", 2, "expected the end of the text behind its value, found '/'"),
        BAD("\v1", 0, "expected a value, found byte 0x0b"),
        BAD("nul", 0, "expected a value, found 'n'"),
        BAD("True", 0, "expected a value, found 'T'"),
        BAD("nulll", 4, "expected the end of the text behind its value, found 'l'"),
        BAD("NaN", 0, "expected a value, found 'N'"),
        BAD("Infinity", 0, "expected a value, found 'I'"),
        BAD("-Infinity", 1, "expected a digit, found 'I'"),
        BAD("+2", 0, "expected a value, found '+'"),
        BAD("02", 0, "a number begins with 0"),
        BAD("-02", 1, "a number begins with 0"),
        BAD("-", 1, "expected a digit, found the end of the text"),
        BAD(".5", 0, "expected a value, found '.'"),
        BAD("5.", 2, "expected a digit behind the point, found the end of the text"),
        BAD("5.e1", 2, "expected a digit behind the point, found 'e'"),
        BAD("5e", 2, "expected a digit in the exponent, found the end of the text"),
        BAD("5e+", 3, "expected a digit in the exponent, found the end of the text"),
        BAD("0x2", 1, "expected the end of the text behind its value, found 'x'"),
        BAD("1e999", 0, "a number of 5 bytes is beyond the range of a double"),
        BAD("[-1E309]", 1, "a number of 6 bytes is beyond the range of a double"),
        BAD("\"abc", 4, "the text ends inside the string that begins at 0"),
        BAD("\"a\\", 3, "expected one of \"\\/bfnrtu behind a backslash, found the end of the text"),
        BAD("\"a\\x41\"", 3, "expected one of \"\\/bfnrtu behind a backslash, found 'x'"),
        BAD("\"a\nb\"", 2, "control byte 0x0a in a string: it must be escaped"),
        BAD("\"\\n\x1f\"", 3, "control byte 0x1f in a string: it must be escaped"),
        BAD("\"0123456789abcdef\0\"", 17, "control byte 0x00 in a string: it must be escaped"),
        BAD("\"\\u12\"", 1, "\\u without four hex digits"),
        BAD("\"\\u00g0\"", 1, "\\u without four hex digits"),
        BAD("\"\\u123", 1, "\\u without four hex digits"),
        BAD("\"\\ud800\"", 1, "lone surrogate \\ud800"),
        BAD("\"\\udc00\"", 1, "lone surrogate \\udc00"),
        BAD("\"\\udc00\\udc00\"", 1, "lone surrogate \\udc00"),
        BAD("\"\\ud83d\\ud83d\"", 1, "lone surrogate \\ud83d"),
        BAD("\"\\uD83Dx\"", 1, "lone surrogate \\ud83d"),
        BAD("\"\\ud83d\\n\"", 1, "lone surrogate \\ud83d"),
        BAD("\"\\ud83d\\u0041\"", 1, "lone surrogate \\ud83d"),
        BAD("[\"\xed\xa0\x80\"]", 2, "not UTF-8: byte 0xed begins no valid sequence"),
        BAD("{} \xff", 3, "not UTF-8: byte 0xff begins no valid sequence"),
        BAD("\xef\xbb\xbf{}", 0, "expected a value, found byte 0xef"),
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        assert_int_equal(drain(CASES[i].text, 0, &err), PAWL_CORRUPT);
        assert_string_equal(err.message, CASES[i].message);
        assert_int_equal(err.offset, CASES[i].offset);
        assert_string_equal(err.code, strncmp(err.message, "not UTF-8", 9) == 0 ? "utf8" : "json");
    }
}

/* Goal: 127 levels pass and 128 do not, of arrays, objects, and both, wherever the innermost one is closed or not. */
static void
depth(void **state)
{
    (void)state;
    for (unsigned levels = 126; levels <= 129; levels++) {
        for (unsigned kind = 0; kind < 3; kind++) {
            char text[4096];
            size_t n = 0;
            for (unsigned i = 0; i < levels; i++) {
                bool is_object = kind == 1 || (kind == 2 && i % 2 == 0);
                n += (size_t)snprintf(text + n, sizeof text - n, "%s", is_object ? "{\"a\":" : "[");
            }
            n += (size_t)snprintf(text + n, sizeof text - n, "1");
            for (unsigned i = levels; i-- > 0;)
                text[n++] = kind == 1 || (kind == 2 && i % 2 == 0) ? '}' : ']';
            struct pawl_error err = PAWL_ERROR_INIT;
            enum pawl_status st = drain(pawl_str_make(text, n), 0, &err);
            assert_int_equal(st, levels <= 127 ? PAWL_OK : PAWL_CORRUPT);
            if (levels > 127)
                assert_string_equal(err.message, "nested deeper than 127 levels");
        }
    }
}

/* Goal: tokens, their places and texts. Method: one text with every kind, escapes in keys and values among them. */
static void
tokens(void **state)
{
    (void)state;
    static const char TEXT[] = "{\"a\\n\":[1.5e3,\"\\u00e9x\",null],\"b\":{},\"c\":true,\"d\":false}";
    static const struct {
        enum pawl_json_type type;
        uint64_t offset;
        const char *text;
    } EXPECTED[] = {
        { PAWL_JSON_OBJECT, 0, "" },
        { PAWL_JSON_KEY, 1, "a\n" },
        { PAWL_JSON_ARRAY, 7, "" },
        { PAWL_JSON_NUMBER, 8, "1.5e3" },
        { PAWL_JSON_STRING, 14, "\xc3\xa9x" },
        { PAWL_JSON_NULL, 24, "null" },
        { PAWL_JSON_ARRAY_END, 28, "" },
        { PAWL_JSON_KEY, 30, "b" },
        { PAWL_JSON_OBJECT, 34, "" },
        { PAWL_JSON_OBJECT_END, 35, "" },
        { PAWL_JSON_KEY, 37, "c" },
        { PAWL_JSON_TRUE, 41, "true" },
        { PAWL_JSON_KEY, 46, "d" },
        { PAWL_JSON_FALSE, 50, "false" },
        { PAWL_JSON_OBJECT_END, 55, "" },
        { PAWL_JSON_END, 56, "" },
    };
    struct pawl_json_reader reader;
    assert_int_equal(pawl_json_begin(&reader, TEXT, sizeof TEXT - 1, 0, NULL), PAWL_OK);
    for (size_t i = 0; i < sizeof EXPECTED / sizeof EXPECTED[0]; i++) {
        struct pawl_json_token token;
        assert_int_equal(pawl_json_next(&reader, &token, NULL), PAWL_OK);
        assert_int_equal(token.type, EXPECTED[i].type);
        assert_int_equal(token.offset, EXPECTED[i].offset);
        assert_true(pawl_str_equal(token.text, pawl_str_z(EXPECTED[i].text)));
    }
    pawl_json_release(&reader);
}

static void
not_a_number_behind_a_flag(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(drain(PAWL_STR("[NaN,Infinity,-Infinity,-1]"), PAWL_JSON_NAN, &err), PAWL_OK);
    assert_int_equal(drain(PAWL_STR("[-NaN]"), PAWL_JSON_NAN, &err), PAWL_CORRUPT);
    assert_int_equal(drain(PAWL_STR("[NaNs]"), PAWL_JSON_NAN, &err), PAWL_CORRUPT);
    assert_int_equal(drain(PAWL_STR("[Inf]"), PAWL_JSON_NAN, &err), PAWL_CORRUPT);
    assert_int_equal(drain(PAWL_STR("[1e999]"), PAWL_JSON_NAN, &err), PAWL_CORRUPT);
}

/* Goal: a skipped value leaves the reader behind it, whatever it holds; a fault inside is found. */
static void
skipping(void **state)
{
    (void)state;
    struct pawl_json_reader reader;
    struct pawl_json_token token;
    struct pawl_str text = PAWL_STR("{\"a\":[[],{\"x\":[1]}],\"b\":2,\"c\":{\"d\":[tru]}}");
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_json_begin(&reader, text.data, text.len, 0, NULL), PAWL_OK);
    assert_int_equal(pawl_json_next(&reader, &token, NULL), PAWL_OK);
    assert_int_equal(pawl_json_next(&reader, &token, NULL), PAWL_OK);
    assert_int_equal(pawl_json_skip(&reader, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_json_next(&reader, &token, NULL), PAWL_OK);
    assert_ptr_equal(token.text.data, strstr(text.data, "b\":"));
    assert_int_equal(pawl_json_next(&reader, &token, NULL), PAWL_OK);
    assert_int_equal(pawl_json_skip(&reader, &token, NULL), PAWL_OK); /* a scalar: passed already */
    assert_int_equal(pawl_json_next(&reader, &token, NULL), PAWL_OK);
    assert_int_equal(token.type, PAWL_JSON_KEY);
    assert_int_equal(pawl_json_next(&reader, &token, NULL), PAWL_OK);
    assert_int_equal(token.type, PAWL_JSON_OBJECT);
    assert_int_equal(pawl_json_skip(&reader, &token, &err), PAWL_CORRUPT);
    assert_int_equal(err.offset, strstr(text.data, "tru") - text.data);
    pawl_json_release(&reader);
}

static void
integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_u64, is_i64, is_integer;
        uint64_t u64;
        int64_t i64;
    } CASES[] = {
        { "0", true, true, true, 0, 0 },
        { "7", true, true, true, 7, 7 },
        { "18446744073709551615", true, false, true, UINT64_MAX, 0 },
        { "18446744073709551616", false, false, true, 0, 0 },
        { "99999999999999999999", false, false, true, 0, 0 },
        { "100000000000000000000", false, false, true, 0, 0 },
        { "9223372036854775807", true, true, true, INT64_MAX, INT64_MAX },
        { "9223372036854775808", true, false, true, (uint64_t)INT64_MAX + 1, 0 },
        { "-9223372036854775808", false, true, true, 0, INT64_MIN },
        { "-9223372036854775809", false, false, true, 0, 0 },
        { "-1", false, true, true, 0, -1 },
        { "-0", false, false, true, 0, 0 },
        { "1.0", false, false, false, 0, 0 },
        { "1e0", false, false, false, 0, 0 },
        { "", false, false, false, 0, 0 },
        { "-", false, false, false, 0, 0 },
        { "00", false, false, true, 0, 0 },
        { "+1", false, false, false, 0, 0 },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_str text = pawl_str_z(CASES[i].text);
        uint64_t u64 = 99;
        int64_t i64 = 99;
        assert_int_equal(pawl_json_u64(text, &u64), CASES[i].is_u64);
        assert_int_equal(u64, CASES[i].is_u64 ? CASES[i].u64 : 99);
        assert_int_equal(pawl_json_i64(text, &i64), CASES[i].is_i64);
        assert_true(i64 == (CASES[i].is_i64 ? CASES[i].i64 : 99));
        assert_int_equal(pawl_json_is_integer(text), CASES[i].is_integer);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_texts), cmocka_unit_test(bad_texts), cmocka_unit_test(depth),
        cmocka_unit_test(tokens),     cmocka_unit_test(skipping),  cmocka_unit_test(not_a_number_behind_a_flag),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
