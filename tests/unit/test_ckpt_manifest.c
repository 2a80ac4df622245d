/* checkpoint/ckpt_manifest.c. Goal: the schema's rules and those of names, each with its message; print and read are inverse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include "checkpoint/documents.h"
#include "unit/document_cases.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ROW(name, bytes) "{\"name\": \"" name "\", \"sha256\": \"" HEX "\", \"bytes\": " bytes "}"
#define GOOD "{\"kind\": \"checkpoint\", \"files\": [" ROW("b", "5") ", " ROW("a/x", "0") "]}"

static enum pawl_status
parse(struct pawl_arena *arena, const void *text, size_t bytes, struct pawl_error *err)
{
    struct pawl_manifest manifest;
    return pawl_manifest_parse(arena, &manifest, text, bytes, err);
}

static void
rows_are_read_in_any_order(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_manifest manifest;
    assert_int_equal(pawl_manifest_parse(&arena, &manifest, GOOD, strlen(GOOD), NULL), PAWL_OK);
    assert_int_equal(manifest.n, 2);
    assert_string_equal(manifest.files[0].name.data, "a/x");
    const struct pawl_receipt *row = pawl_manifest_find(&manifest, PAWL_STR("b"));
    assert_non_null(row);
    assert_int_equal(row->bytes, 5);
    assert_int_equal(row->sha256[0], 0x01);
    assert_int_equal(row->sha256[31], 0xef);
    assert_null(pawl_manifest_find(&manifest, PAWL_STR("a")));
    assert_null(pawl_manifest_find(&manifest, PAWL_STR("c")));
    assert_null(pawl_manifest_find(&manifest, PAWL_STR("")));
    assert_null(manifest.created_at.data);
    pawl_arena_release(&arena);
}

static void
every_rule_has_its_message(void **state)
{
    (void)state;
    static const struct document_case CASES[] = {
        { NULL, "[]", "expected an object, found an array" },
        { NULL, "\"checkpoint\"", "expected an object, found \"checkpoint\"" },
        { "\"checkpoint\"", "\"folder\"", "kind: expected \"checkpoint\" or \"release\", found \"folder\"" },
        { "\"checkpoint\"", "7", "kind: expected \"checkpoint\" or \"release\", found 7" },
        { "\"kind\": \"checkpoint\", ", "", "the key \"kind\" is missing" },
        { NULL, "{\"kind\": \"checkpoint\"}", "the key \"files\" is missing" },
        { "{\"kind\"", "{\"note\": 1, \"kind\"", "unknown key \"note\"" },
        { "{\"kind\"", "{\"created_at\": 1, \"kind\"", "created_at: expected a string, found 1" },
        { "{\"kind\"", "{\"model_id\": null, \"kind\"", "model_id: expected a string, found null" },
        { "{\"kind\"", "{\"version\": {}, \"kind\"", "version: expected a string, found an object" },
        { NULL, "{\"kind\": \"checkpoint\", \"files\": {}}", "files: expected an array, found an object" },
        { NULL, "{\"kind\": \"checkpoint\", \"files\": []}", "files: expected at least one file, found none" },
        { NULL, "{\"kind\": \"checkpoint\", \"files\": [\"a\"]}", "files[0]: expected an object, found \"a\"" },
        { ", \"bytes\": 5", "", "files[0]: the key \"bytes\" is missing" },
        { "\"name\": \"b\", ", "", "files[0]: the key \"name\" is missing" },
        { "\"bytes\": 0", "\"bytes\": 0, \"mode\": 420", "files[1]: unknown key \"mode\"" },
        { "\"name\": \"b\"", "\"name\": 5", "files[0]: name: expected a string, found 5" },
        { "\"bytes\": 0", "\"bytes\": -1",
          "files[1]: bytes: expected an integer from 0 to 9223372036854775807 in digits alone, found -1" },
        { "\"bytes\": 0", "\"bytes\": 0.0",
          "files[1]: bytes: expected an integer from 0 to 9223372036854775807 in digits alone, found 0.0" },
        { "\"bytes\": 0", "\"bytes\": 7e0",
          "files[1]: bytes: expected an integer from 0 to 9223372036854775807 in digits alone, found 7e0" },
        { "\"bytes\": 0", "\"bytes\": 9223372036854775808",
          "files[1]: bytes: expected an integer from 0 to 9223372036854775807 in digits alone, found "
          "9223372036854775808" },
        { "\"bytes\": 0", "\"bytes\": true",
          "files[1]: bytes: expected an integer from 0 to 9223372036854775807 in digits alone, found true" },
        { "\"name\": \"b\"", "\"name\": \"\"", "files[0]: \"\": the name is empty" },
        { "\"name\": \"b\"", "\"name\": \"/b\"", "files[0]: \"/b\": the name is absolute" },
        { "\"name\": \"b\"", "\"name\": \"../b\"", "files[0]: \"../b\": the name has a component \".\" or \"..\"" },
        { "\"name\": \"b\"", "\"name\": \"b\\u0000\"", "files[0]: \"b\\x00\": the name has a NUL" },
        { "\"name\": \"b\"", "\"name\": \"MANIFEST.json\"",
          "files[0]: \"MANIFEST.json\": the name is the manifest's own" },
        { "\"name\": \"b\"", "\"name\": \"a/x\"", "files: \"a/x\" is listed twice" },
        { "\"name\": \"b\"", "\"name\": \"\\u0061/x\"", "files: \"a/x\" is listed twice" },
    };
    check_document_cases(parse, GOOD, CASES, sizeof CASES / sizeof CASES[0]);
}

static void
hashes_are_64_lowercase_digits(void **state)
{
    (void)state;
    static const char *const WRONG[] = {
        "",
        "0123",
        HEX "0",
        "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
        "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\\n",
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        char text[512];
        struct pawl_arena arena = PAWL_ARENA_INIT;
        struct pawl_error err = PAWL_ERROR_INIT;
        (void)snprintf(text, sizeof text,
                       "{\"kind\": \"checkpoint\", \"files\": [{\"name\": \"a\", \"sha256\": \"%s\", \"bytes\": 1}]}",
                       WRONG[i]);
        assert_int_equal(parse(&arena, text, strlen(text), &err), PAWL_CORRUPT);
        assert_non_null(strstr(err.message, "files[0]: sha256: expected 64 lowercase hex digits, found \""));
        pawl_arena_release(&arena);
    }
}

static void
a_print_is_sorted_and_reads_back(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_receipt files[2] = { { PAWL_STR("b"), INT64_MAX, { 0xff } }, { PAWL_STR("a\n"), 0, { 0 } } };
    struct pawl_manifest manifest = { .kind = PAWL_STR("checkpoint"), .files = files, .n = 2 };
    manifest.created_at = PAWL_STR("2026-01-01T00:00:00Z");
    assert_true(pawl_manifest_print(&manifest, &out));
    assert_true(pawl_buffer_terminate(&out));
    assert_string_equal(
        out.data, "{\n  \"kind\": \"checkpoint\",\n  \"created_at\": \"2026-01-01T00:00:00Z\",\n  \"files\": [\n    {\n"
                  "      \"name\": \"a\\n\",\n"
                  "      \"sha256\": \"0000000000000000000000000000000000000000000000000000000000000000\",\n"
                  "      \"bytes\": 0\n    },\n    {\n      \"name\": \"b\",\n"
                  "      \"sha256\": \"ff00000000000000000000000000000000000000000000000000000000000000\",\n"
                  "      \"bytes\": 9223372036854775807\n    }\n  ]\n}\n");
    struct pawl_manifest again;
    assert_int_equal(pawl_manifest_parse(&arena, &again, out.data, out.len, NULL), PAWL_OK);
    assert_int_equal(again.n, 2);
    assert_true(pawl_str_equal(again.created_at, manifest.created_at));
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_in_any_order),
        cmocka_unit_test(every_rule_has_its_message),
        cmocka_unit_test(hashes_are_64_lowercase_digits),
        cmocka_unit_test(a_print_is_sorted_and_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
