/* json/json_decimal.c, json_print.c and json_text.c: numbers and texts as Python prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include "formats/json/json.h"
#include "unit/st_tools.h"

#define VECTORS PAWL_GOLDEN "/json/"

static double
double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t
bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Call `check` with the fields of every line. */
static size_t
each_line(const char *path, void (*check)(char *at))
{
    size_t n;
    size_t lines = 0;
    char *rest;
    char *list = st_slurp(path, &n);
    for (char *line = strtok_r(list, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        check(line);
        lines++;
    }
    free(list);
    return lines;
}

static void
check_double(char *at)
{
    uint64_t bits = strtoull(st_field(&at), NULL, 16);
    const char *expected = st_field(&at);
    char text[32];
    size_t n = pawl_json_print_f64(double_of_bits(bits), text);
    assert_int_equal(n, strlen(text));
    assert_true(n <= 24);
    assert_string_equal(text, expected);
    assert_int_equal(bits_of_double(pawl_json_f64(pawl_str_z(expected))), bits);
    assert_true(pawl_json_is_in_range(pawl_str_z(expected)));
}

/*
 * Goal: the shortest decimals, in Python's spelling, and back to the same bits. Method: 9,000 doubles with Python's answer:
 * all powers of two (lopsided intervals), their neighbours, subnormals, powers of ten, whole numbers, random bits.
 */
static void
doubles_print_as_in_python(void **state)
{
    (void)state;
    assert_true(each_line(VECTORS "doubles.tsv", check_double) > 8000);
}

static void
check_decimal(char *at)
{
    const char *bits = st_field(&at);
    struct pawl_str text = pawl_str_z(st_field(&at));
    if (strcmp(bits, "inf") == 0) {
        assert_false(pawl_json_is_in_range(text));
        assert_true(isinf(pawl_json_f64(text)));
        return;
    }
    assert_true(pawl_json_is_in_range(text));
    if (bits_of_double(pawl_json_f64(text)) != strtoull(bits, NULL, 16))
        fail_msg("%.60s: expected %s, found %a", text.data, bits, pawl_json_f64(text));
}

/* Goal: correct rounding. Method: the exact midpoints of neighbours, a hair below and above, in up to 1,600 digits. */
static void
decimals_read_correctly_rounded(void **state)
{
    (void)state;
    assert_true(each_line(VECTORS "decimals.tsv", check_decimal) > 200);
}

/* A locale with a decimal comma changes nothing, where the system has one. */
static void
locale_changes_nothing(void **state)
{
    (void)state;
    static const char *const LOCALES[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    bool is_set = false;
    for (size_t i = 0; i < 4 && !is_set; i++)
        is_set = setlocale(LC_ALL, LOCALES[i]) != NULL;
    char text[32];
    pawl_json_print_f64(1234.5, text);
    assert_string_equal(text, "1234.5");
    pawl_json_print_f64(2.5e-7, text);
    assert_string_equal(text, "2.5e-07");
    assert_true(pawl_json_f64(PAWL_STR("0.5")) == 0.5);
    assert_true(pawl_json_f64(PAWL_STR("123.4567890123456789e-5")) == 123.4567890123456789e-5);
    setlocale(LC_ALL, "C");
    if (!is_set)
        print_message("no locale with a decimal comma here\n");
}

static void
not_finite(void **state)
{
    (void)state;
    char text[32];
    assert_int_equal(pawl_json_print_f64((double)NAN, text), 3);
    assert_string_equal(text, "NaN");
    pawl_json_print_f64(-(double)INFINITY, text);
    assert_string_equal(text, "-Infinity");
    pawl_json_print_f64((double)INFINITY, text);
    assert_string_equal(text, "Infinity");
    assert_true(isnan(pawl_json_f64(PAWL_STR("NaN"))));
    assert_true(pawl_json_f64(PAWL_STR("-Infinity")) < 0 && isinf(pawl_json_f64(PAWL_STR("-Infinity"))));
}

static void
check_string(char *at)
{
    struct pawl_str text = st_unhex(st_field(&at));
    struct pawl_str raw = st_unhex(st_field(&at));
    const char *ascii = st_field(&at);
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    assert_true(pawl_json_quote(&out, text, PAWL_JSON_RAW));
    assert_true(pawl_str_equal(pawl_buffer_str(&out), raw));
    pawl_buffer_clear(&out);
    assert_true(pawl_json_quote(&out, text, PAWL_JSON_ASCII));
    assert_true(pawl_str_equal(pawl_buffer_str(&out), pawl_str_z(ascii)));
    pawl_buffer_release(&out);
    free((char *)text.data);
    free((char *)raw.data);
}

static void
strings_are_quoted_as_in_python(void **state)
{
    (void)state;
    assert_true(each_line(VECTORS "strings.tsv", check_string) > 200);
}

static void
assert_prints(const struct pawl_json_value *value, enum pawl_json_style style, bool sort_keys, char *hex)
{
    struct pawl_str expected = st_unhex(hex);
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_json_writer writer;
    pawl_json_write_begin(&writer, &out, style, PAWL_JSON_RAW);
    pawl_json_write_value(&writer, value, sort_keys);
    assert_true(pawl_buffer_ok(&out));
    assert_true(pawl_str_equal(pawl_buffer_str(&out), expected));
    pawl_buffer_release(&out);
    free((char *)expected.data);
}

static void
check_document(char *at)
{
    struct pawl_str compact;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *value;
    char *compact_hex = st_field(&at);
    compact = st_unhex(compact_hex);
    assert_int_equal(pawl_json_parse(&arena, compact.data, compact.len, 0, &value, NULL), PAWL_OK);
    assert_prints(value, PAWL_JSON_COMPACT, false, compact_hex);
    assert_prints(value, PAWL_JSON_INDENTED, false, st_field(&at));
    assert_prints(value, PAWL_JSON_SPACED, false, st_field(&at));
    assert_prints(value, PAWL_JSON_COMPACT, true, st_field(&at));
    pawl_arena_release(&arena);
    free((char *)compact.data);
}

/* Goal: the layouts of Python's json.dumps. Method: 100 documents, parsed and printed again in every style. */
static void
documents_print_as_in_python(void **state)
{
    (void)state;
    assert_true(each_line(VECTORS "documents.tsv", check_document) > 100);
}

/* ---- the public writer ---- */

static void
assert_text(struct pawl_json *json, const char *expected)
{
    struct pawl_str text = { NULL, 0 };
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_json_text(json, &text, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_string_equal(text.data, expected); /* a NUL stands behind it */
    assert_int_equal(text.len, strlen(expected));
}

static void
public_writer(void **state)
{
    (void)state;
    struct pawl_json *json;
    assert_int_equal(pawl_json_new(PAWL_JSON_SPACED, PAWL_JSON_RAW, &json, NULL), PAWL_OK);
    pawl_json_add_object(json);
    pawl_json_add_key_z(json, "ok");
    pawl_json_add_bool(json, true);
    pawl_json_add_key_z(json, "n");
    pawl_json_add_array(json);
    pawl_json_add_u64(json, UINT64_MAX);
    pawl_json_add_i64(json, INT64_MIN);
    pawl_json_add_f64(json, 0.1);
    pawl_json_add_f64(json, (double)NAN);
    pawl_json_add_f64(json, -(double)INFINITY);
    pawl_json_add_null(json);
    pawl_json_add_string_z(json, NULL);
    pawl_json_add_raw(json, PAWL_STR("{\"x\":1}"));
    pawl_json_end_array(json);
    pawl_json_add_key(json, PAWL_STR("a\0b"));
    pawl_json_add_string(json, PAWL_STR("x\xff\xc3(\xe2\x82z"));
    pawl_json_end_object(json);
    const char *expected =
        "{\"ok\": true, \"n\": [18446744073709551615, -9223372036854775808, 0.1, \"NaN\", \"-Infinity\", null, null, "
        "{\"x\":1}], \"a\\u0000b\": \"x\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbdz\"}";
    assert_text(json, expected);
    assert_text(json, expected);
    pawl_json_clear(json);
    pawl_json_add_array(json);
    pawl_json_end_array(json);
    assert_text(json, "[]");
    pawl_json_free(json);
    pawl_json_free(NULL);
}

enum step { OBJECT, END_OBJECT, ARRAY, END_ARRAY, KEY, VALUE };

/* Goal: no order of calls makes a text that is no JSON: the first mistake is told. */
static void
public_writer_tells_mistakes(void **state)
{
    (void)state;
    static const struct {
        enum step steps[4];
        size_t n;
        const char *fault;
    } CASES[] = {
        { { VALUE }, 0, "no value" },
        { { OBJECT, VALUE }, 2, "a value in an object without a key" },
        { { OBJECT, OBJECT }, 2, "a value in an object without a key" },
        { { OBJECT }, 1, "an object that is not ended" },
        { { ARRAY }, 1, "an array that is not ended" },
        { { OBJECT, END_ARRAY }, 2, "the end of an array that is not open" },
        { { ARRAY, END_OBJECT }, 2, "the end of an object that is not open" },
        { { END_OBJECT }, 1, "the end of an object that is not open" },
        { { OBJECT, KEY, END_OBJECT }, 3, "a key without a value" },
        { { OBJECT, KEY, KEY }, 3, "a key behind a key" },
        { { KEY }, 1, "a key outside of an object" },
        { { ARRAY, KEY }, 2, "a key outside of an object" },
        { { VALUE, VALUE }, 2, "a second value behind the first" },
        { { ARRAY, END_ARRAY, ARRAY, END_ARRAY }, 4, "a second value behind the first" },
    };
    struct pawl_json *json;
    assert_int_equal(pawl_json_new(PAWL_JSON_COMPACT, PAWL_JSON_ASCII, &json, NULL), PAWL_OK);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        pawl_json_clear(json);
        for (size_t k = 0; k < CASES[i].n; k++) {
            switch (CASES[i].steps[k]) {
            case OBJECT:
                pawl_json_add_object(json);
                break;
            case END_OBJECT:
                pawl_json_end_object(json);
                break;
            case ARRAY:
                pawl_json_add_array(json);
                break;
            case END_ARRAY:
                pawl_json_end_array(json);
                break;
            case KEY:
                pawl_json_add_key_z(json, "k");
                break;
            case VALUE:
                pawl_json_add_u64(json, 1);
                break;
            }
        }
        struct pawl_str text;
        struct pawl_error err = PAWL_ERROR_INIT;
        char expected[100];
        snprintf(expected, sizeof expected, "writing JSON: %s", CASES[i].fault);
        assert_int_equal(pawl_json_text(json, &text, &err), PAWL_ARGUMENT);
        assert_string_equal(err.message, expected);
    }
    pawl_json_free(json);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_print_as_in_python),
        cmocka_unit_test(decimals_read_correctly_rounded),
        cmocka_unit_test(locale_changes_nothing),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(strings_are_quoted_as_in_python),
        cmocka_unit_test(documents_print_as_in_python),
        cmocka_unit_test(public_writer),
        cmocka_unit_test(public_writer_tells_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
