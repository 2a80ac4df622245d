/*
 * Input that is made to hurt: what it may cost, in memory and in time. A step that is quadratic shows as a test that does not end
 * within its time-out; nothing here measures time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/report.h"
#include "checkpoint/documents.h"
#include "checkpoint/names.h"
#include "formats/json/json.h"

#define PROBLEMS 300000

/*
 * Goal: a directory with a fault for each of very many names is reported in the order of the names, faults of one name in the
 * order they were found. Method: names descending, each twice; moving every one to the front takes 4e10 steps of 72 bytes.
 */
static void
very_many_problems(void **state)
{
    (void)state;
    struct pawl_report *report = pawl_report_new();
    assert_non_null(report);
    pawl_report_begin_verdict(report, PAWL_STR("step-000001"), PAWL_KIND_CHECKPOINT);
    for (int i = 0; i < PROBLEMS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%07d", (PROBLEMS - 1 - i) / 2);
        pawl_report_problem(report, i % 2 == 0 ? "size" : "hash", pawl_str_z(name), PAWL_NO_STR, PAWL_OFFSET_NONE, "x");
    }
    pawl_report_problem(report, "io", PAWL_NO_STR, PAWL_NO_STR, PAWL_OFFSET_NONE, "of none");
    pawl_report_end_verdict(report);
    assert_true(pawl_report_ok(report));
    size_t n;
    const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 1);
    assert_int_equal(verdict->n_problems, PROBLEMS + 1);
    assert_false(verdict->is_ok);
    assert_string_equal(verdict->problems[0].code, "io");
    for (int i = 0; i < PROBLEMS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%07d", i / 2);
        assert_true(pawl_str_equal(verdict->problems[i + 1].file, pawl_str_z(name)));
        assert_string_equal(verdict->problems[i + 1].code, i % 2 == 0 ? "size" : "hash");
    }
    pawl_report_free(report);
}

/* "[0,0,...]" of n values and the array itself, `blanks` behind it. Free it. */
static char *
zeros(size_t n, size_t blanks, size_t *ret_bytes)
{
    size_t bytes = 2 * n + 1 + blanks;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, ' ', bytes);
    text[0] = '[';
    for (size_t i = 0; i < n; i++) {
        text[1 + 2 * i] = '0';
        text[2 + 2 * i] = i + 1 < n ? ',' : ']';
    }
    *ret_bytes = bytes;
    return text;
}

/*
 * Goal: a document of two bytes for a value does not become a tree of a hundred times its size. Method: the largest number of
 * values that a text of its length may have, one more, and that one in a text with room for it. The memory is counted.
 */
static void
values_of_two_bytes(void **state)
{
    (void)state;
    const struct pawl_json_value *root = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    size_t bytes;

    /* n + 1 values, the array being one, in 2n + 1 bytes: n + 1 = 2^20 + (2n + 1) / 16 */
    const size_t most = (PAWL_JSON_VALUES_FREE - 1) * 8 / 7;
    char *text = zeros(most, 0, &bytes);
    assert_true(most + 1 <= PAWL_JSON_VALUES_FREE + bytes / PAWL_JSON_VALUE_BYTES);
    assert_int_equal(pawl_json_parse(&arena, text, bytes, 0, &root, &err), PAWL_OK);
    assert_int_equal(root->n, most);
    assert_true(arena.bytes_total <= 11 * bytes + ((size_t)200 << 20));
    pawl_arena_release(&arena);
    free(text);

    const size_t beyond = most + 2;
    text = zeros(beyond, 0, &bytes);
    assert_true(beyond + 1 > PAWL_JSON_VALUES_FREE + bytes / PAWL_JSON_VALUE_BYTES);
    assert_int_equal(pawl_json_parse(&arena, text, bytes, 0, &root, &err), PAWL_LIMIT);
    assert_string_equal(err.code, "limit");
    char expected[80];
    (void)snprintf(expected, sizeof expected, "more than %zu values in one document",
                   PAWL_JSON_VALUES_FREE + bytes / PAWL_JSON_VALUE_BYTES);
    assert_string_equal(err.message, expected);
    pawl_arena_release(&arena);
    free(text);

    text = zeros(beyond, 64, &bytes);
    assert_int_equal(pawl_json_parse(&arena, text, bytes, 0, &root, &err), PAWL_OK);
    pawl_arena_release(&arena);
    free(text);
}

/*
 * Goal: such a document in the place of a manifest is a fault of the manifest, whatever its size; of 40 MB it took 2.8 GB. Method:
 * as above, and what the arena took.
 */
static void
manifest_of_zeros(void **state)
{
    (void)state;
    struct pawl_manifest manifest;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    size_t bytes;
    char *text = zeros((size_t)5 << 20, 0, &bytes);
    assert_int_equal(pawl_manifest_parse(&arena, &manifest, text, bytes, &err), PAWL_LIMIT);
    assert_string_equal(err.code, "limit");
    assert_true(arena.bytes_total <= 11 * bytes + ((size_t)200 << 20));
    pawl_arena_release(&arena);
    free(text);
}

/* Goal: a name of thousands of components, each a directory to be opened for every file below it, is refused. */
static void
deep_manifest_names(void **state)
{
    (void)state;
    char name[2 * (PAWL_NAME_LEVELS_MAX + 1)];
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 2 == 0 ? 'd' : '/';
    /* "d/d/...": 2k - 1 bytes are k components */
    assert_null(pawl_manifest_name_fault(pawl_str_make(name, 2 * PAWL_NAME_LEVELS_MAX - 1)));
    assert_string_equal(pawl_manifest_name_fault(pawl_str_make(name, 2 * PAWL_NAME_LEVELS_MAX + 1)),
                        "has more than 512 components");
    assert_string_equal(pawl_manifest_name_fault(pawl_str_make(name, 2 * PAWL_NAME_LEVELS_MAX)),
                        "has more than 512 components");
    assert_string_equal(pawl_manifest_name_fault(pawl_str_make(name, 4)), "has an empty component");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(very_many_problems),
        cmocka_unit_test(values_of_two_bytes),
        cmocka_unit_test(manifest_of_zeros),
        cmocka_unit_test(deep_manifest_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
