/* checkpoint/extra_state.c, metrics.c and base64.c. Goal: the schemas' rules, each with its message; what is printed reads back bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "checkpoint/base64.h"
#include "checkpoint/documents.h"
#include "unit/document_cases.h"

#define GOOD                                                                                           \
    "{\"numbers\": {\"b\": 1.5, \"a\": -9223372036854775808, \"nan\": \"NaN\", \"up\": \"Infinity\", " \
    "\"down\": \"-Infinity\", \"z\": -0.0}, \"states\": {\"s\": {\"type\": \"t\", \"data\": \"AAEC/w==\"}}}"

static enum pawl_status
parse(struct pawl_arena *arena, const void *text, size_t bytes, struct pawl_error *err)
{
    struct pawl_extra_document document;
    return pawl_extra_state_parse(arena, &document, text, bytes, err);
}

static void
values_are_read(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_extra_document document;
    assert_int_equal(pawl_extra_state_parse(&arena, &document, GOOD, strlen(GOOD), NULL), PAWL_OK);
    assert_int_equal(document.n_numbers, 6);
    const struct pawl_named_number *n = document.numbers; /* a b down nan up z */
    assert_true(n[0].is_integer && n[0].integer == INT64_MIN);
    assert_true(!n[1].is_integer && n[1].real == 1.5);
    assert_true(isinf(n[2].real) && n[2].real < 0);
    assert_true(!n[3].is_integer && isnan(n[3].real));
    assert_true(isinf(n[4].real) && n[4].real > 0);
    assert_true(!n[5].is_integer && n[5].real == 0 && signbit(n[5].real));
    assert_int_equal(document.n_opaques, 1);
    assert_int_equal(document.opaques[0].bytes, 4);
    assert_memory_equal(document.opaques[0].data, "\x00\x01\x02\xff", 4);
    pawl_arena_release(&arena);
}

static void
every_rule_has_its_message(void **state)
{
    (void)state;
    static const struct document_case CASES[] = {
        { NULL, "7", "expected an object, found 7" },
        { NULL, "{\"numbers\": {}}", "the key \"states\" is missing" },
        { NULL, "{\"states\": {}}", "the key \"numbers\" is missing" },
        { NULL, "{\"numbers\": {}, \"states\": {}, \"more\": {}}", "unknown key \"more\"" },
        { NULL, "{\"numbers\": [], \"states\": {}}", "numbers: expected an object, found an array" },
        { NULL, "{\"numbers\": {}, \"states\": null}", "states: expected an object, found null" },
        { "1.5", "true", "numbers: b: expected a number, \"Infinity\", \"-Infinity\" or \"NaN\", found true" },
        { "1.5", "\"1.5\"", "numbers: b: expected a number, \"Infinity\", \"-Infinity\" or \"NaN\", found \"1.5\"" },
        { "1.5", "\"nan\"", "numbers: b: expected a number, \"Infinity\", \"-Infinity\" or \"NaN\", found \"nan\"" },
        { "1.5", "9223372036854775808",
          "numbers: b: expected an integer from -9223372036854775808 to 9223372036854775807, found "
          "9223372036854775808" },
        { "1.5", "-9223372036854775809",
          "numbers: b: expected an integer from -9223372036854775808 to 9223372036854775807, found "
          "-9223372036854775809" },
        { "\"b\"", "\"\"", "numbers: a name is empty" },
        { "\"s\"", "\"\"", "states: a name is empty" },
        { "\"t\"", "\"\"", "states: s: type: expected a tag, found \"\"" },
        { "\"t\"", "1", "states: s: type: expected a string, found 1" },
        { "\"type\": \"t\", ", "", "states: s: the key \"type\" is missing" },
        { ", \"data\": \"AAEC/w==\"", "", "states: s: the key \"data\" is missing" },
        { "\"type\"", "\"size\": 4, \"type\"", "states: s: unknown key \"size\"" },
        { "\"AAEC/w==\"", "[0]", "states: s: data: expected a string, found an array" },
        { "AAEC/w==", "AAEC/x==", "states: s: data: expected base64, found 'x' as character 5 of 8" },
        { "AAEC/w==", "AAEC/w", "states: s: data: expected base64 in groups of 4, found 6 characters" },
        { "AAEC/w==", "AA==AAEC", "states: s: data: expected base64, found '=' as character 2 of 8" },
        { "AAEC/w==", "AAE C/w=", "states: s: data: expected base64, found ' ' as character 3 of 8" },
    };
    check_document_cases(parse, GOOD, CASES, sizeof CASES / sizeof CASES[0]);
}

static void
what_is_printed_reads_back(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_named_number numbers[] = { { PAWL_STR("z"), false, 0, 5e-324 },
                                           { PAWL_STR("n"), false, 0, (double)NAN },
                                           { PAWL_STR("i"), false, 0, -(double)INFINITY },
                                           { PAWL_STR("a"), true, INT64_MIN, 0 } };
    struct pawl_named_opaque opaques[] = { { PAWL_STR("two"), PAWL_STR("x"), "\xfb\xef", 2 },
                                           { PAWL_STR("no"), PAWL_STR("x"), "", 0 } };
    struct pawl_extra_document document = { numbers, 4, opaques, 2 };
    assert_true(pawl_extra_state_print(&document, &out));
    assert_true(pawl_buffer_terminate(&out));
    assert_string_equal(out.data, "{\n  \"numbers\": {\n    \"a\": -9223372036854775808,\n    \"i\": \"-Infinity\",\n"
                                  "    \"n\": \"NaN\",\n    \"z\": 5e-324\n  },\n  \"states\": {\n    \"no\": {\n"
                                  "      \"type\": \"x\",\n      \"data\": \"\"\n    },\n    \"two\": {\n"
                                  "      \"type\": \"x\",\n      \"data\": \"++8=\"\n    }\n  }\n}\n");
    struct pawl_extra_document again;
    assert_int_equal(pawl_extra_state_parse(&arena, &again, out.data, out.len, NULL), PAWL_OK);
    assert_int_equal(again.n_numbers, 4);
    assert_int_equal(again.n_opaques, 2);
    pawl_buffer_release(&out);
    struct pawl_extra_document empty = { NULL, 0, NULL, 0 };
    assert_true(pawl_extra_state_print(&empty, &out));
    assert_true(pawl_buffer_terminate(&out));
    assert_string_equal(out.data, "{\n  \"numbers\": {},\n  \"states\": {}\n}\n");
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
}

/* Goal: the decoder takes exactly what the encoder gives. Method: every text of up to 8 characters of a few kinds, by decoding and
 * encoding again: what comes back must be the text. */
static void
base64_has_one_text_for_each_bytes(void **state)
{
    (void)state;
    static const char KINDS[] = "ABQw8/+=- ";
    const size_t kinds = sizeof KINDS - 1;
    size_t taken = 0;
    for (size_t len = 0; len <= 4; len++) {
        size_t texts = 1;
        for (size_t i = 0; i < len; i++)
            texts *= kinds;
        for (size_t t = 0; t < texts; t++) {
            char text[12] = "AAAA";
            size_t rest = t;
            for (size_t i = 0; i < len; i++, rest /= kinds)
                text[4 + i] = KINDS[rest % kinds];
            unsigned char data[9];
            size_t bytes = 0;
            size_t bad = SIZE_MAX;
            struct pawl_str whole = { text, 4 + len };
            if (!pawl_base64_decode(whole, data, &bytes, &bad)) {
                assert_true(bad <= whole.len);
                continue;
            }
            struct pawl_buffer out = PAWL_BUFFER_INIT;
            assert_true(pawl_base64_encode(&out, data, bytes));
            assert_true(pawl_str_equal(pawl_buffer_str(&out), whole));
            pawl_buffer_release(&out);
            taken++;
        }
    }
    /* nothing more; four of the 7 characters; "xxx=" with the 4 whose last two bits are zero; "xx==" with the 3 whose last four are */
    assert_int_equal(taken, 1 + 7 * 7 * 7 * 7 + 7 * 7 * 4 + 7 * 3);
}

static void
base64_bytes(void **state)
{
    (void)state;
    unsigned char data[256];
    for (size_t i = 0; i < 256; i++)
        data[i] = (unsigned char)(255 - i);
    for (size_t n = 0; n <= 256; n++) {
        struct pawl_buffer out = PAWL_BUFFER_INIT;
        unsigned char again[258];
        size_t bytes = 0;
        size_t bad = 0;
        assert_true(pawl_base64_encode(&out, data, n));
        assert_int_equal(out.len, (n + 2) / 3 * 4);
        assert_true(pawl_base64_decode(pawl_buffer_str(&out), again, &bytes, &bad));
        assert_int_equal(bytes, n);
        assert_memory_equal(again, data, n);
        pawl_buffer_release(&out);
    }
}

static enum pawl_status
parse_metrics(struct pawl_arena *arena, const void *text, size_t bytes, struct pawl_error *err)
{
    struct pawl_metrics_document document;
    return pawl_metrics_parse(arena, &document, text, bytes, err);
}

static void
metrics(void **state)
{
    (void)state;
    static const struct document_case CASES[] = {
        { NULL, "[]", "expected an object, found an array" },
        { NULL, "{\"\": 1}", "a name is empty" },
        { NULL, "{\"loss\": \"1\"}", "loss: expected a number, found \"1\"" },
        { NULL, "{\"loss\": {}}", "loss: expected a number, found an object" },
    };
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_metrics_document document;
    const char *text = "{\"loss\": 2.25, \"acc\": 1}";
    check_document_cases(parse_metrics, "", CASES, sizeof CASES / sizeof CASES[0]);
    assert_int_equal(pawl_metrics_parse(&arena, &document, text, strlen(text), NULL), PAWL_OK);
    assert_true(pawl_metrics_print(&document, &out));
    assert_true(pawl_buffer_terminate(&out));
    assert_string_equal(out.data, "{\n  \"acc\": 1.0,\n  \"loss\": 2.25\n}\n");
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(every_rule_has_its_message),
        cmocka_unit_test(what_is_printed_reads_back),
        cmocka_unit_test(base64_has_one_text_for_each_bytes),
        cmocka_unit_test(base64_bytes),
        cmocka_unit_test(metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
