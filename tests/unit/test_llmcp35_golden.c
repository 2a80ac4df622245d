/* LLMCP35: the golden files, valid and corrupt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#include "unit/golden_json.h"
#include "unit/llmcp35_support.h"

/*
 * Goal: every file of the reference decodes, and its encoding is the same bytes. Method: valid.json lists them with their header's
 * size and checksum.
 */
static void
valid_files_come_back_byte_for_byte(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *list = golden_read(&arena, LC_GOLDEN "valid.json");
    assert_non_null(list);
    assert_int_equal(list->n, 7);
    for (size_t i = 0; i < list->n; i++) {
        char path[512], label[32];
        struct pawl_llmcp35_facts facts;
        size_t n, n_again;
        uint64_t size, header_bytes;
        (void)snprintf(path, sizeof path, LC_GOLDEN "%.*s",
                       PAWL_ARG(pawl_json_member(&list->first[i], PAWL_STR("file"))->text));
        unsigned char *bytes = lc_bytes_of(path, &n);
        assert_true(pawl_json_u64(pawl_json_member(&list->first[i], PAWL_STR("size"))->text, &size));
        assert_true(pawl_json_u64(pawl_json_member(&list->first[i], PAWL_STR("header_bytes"))->text, &header_bytes));
        assert_int_equal(n, size);

        struct pawl_llmcp35 *checkpoint = lc_load_golden(path);
        pawl_llmcp35_facts(checkpoint, &facts);
        assert_int_equal(facts.header_bytes, header_bytes);
        assert_int_equal(facts.header_bytes + facts.payload_bytes, size);
        (void)snprintf(label, sizeof label, "fnv1a64:%016llx", (unsigned long long)facts.checksum);
        assert_true(pawl_str_equal(pawl_str_z(label), pawl_json_member(&list->first[i], PAWL_STR("checksum"))->text));

        unsigned char *again = lc_encoded(checkpoint, &n_again);
        assert_int_equal(n_again, n);
        assert_memory_equal(again, bytes, n);
        /* The checksum that a checkpoint made in memory would get. */
        assert_int_equal(pawl_lc_checksum(checkpoint), facts.checksum);
        free(again);
        free(bytes);
        pawl_llmcp35_free(checkpoint);
    }
    pawl_arena_release(&arena);
}

static bool
shape_is(const struct pawl_llmcp35_field *field, const struct pawl_json_value *expected)
{
    if (field->type != PAWL_LLMCP35_NUMBERS || field->n != expected->n)
        return false;
    for (size_t i = 0; i < field->n; i++) {
        uint64_t number;
        if (!pawl_json_u64(expected->first[i].text, &number) || number != field->numbers[i])
            return false;
    }
    return true;
}

/* Does a field hold what the case says? Checksums are written as 16 hex digits there. */
static bool
field_is(const struct pawl_llmcp35_field *field, const struct pawl_json_value *expected)
{
    uint64_t number;
    char hex[32];
    switch (expected->type) {
    case PAWL_JSON_NUMBER:
        return field->type == PAWL_LLMCP35_NUMBER && pawl_json_u64(expected->text, &number) && number == field->number;
    case PAWL_JSON_STRING:
        if (field->type == PAWL_LLMCP35_TEXT)
            return pawl_str_equal(field->text, expected->text);
        (void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)field->number);
        return field->type == PAWL_LLMCP35_NUMBER && pawl_str_equal(pawl_str_z(hex), expected->text);
    case PAWL_JSON_ARRAY:
        return shape_is(field, expected);
    default:
        return false;
    }
}

static void
check_corrupt(struct pawl_str name, struct pawl_str category, struct pawl_str cause)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_llmcp35 *checkpoint = NULL;
    char path[512], code[96];
    size_t n;
    (void)snprintf(path, sizeof path, LC_GOLDEN "%.*sjson", (int)name.len - 3, name.data);
    const struct pawl_json_value *expect = pawl_json_member(golden_read(&arena, path), PAWL_STR("expect"));
    const struct pawl_json_value *fields = pawl_json_member(expect, PAWL_STR("fields"));
    assert_non_null(fields);
    assert_true(pawl_str_equal(pawl_json_member(expect, PAWL_STR("category"))->text, category));

    (void)snprintf(path, sizeof path, LC_GOLDEN "%.*s", PAWL_ARG(name));
    unsigned char *bytes = lc_bytes_of(path, &n);
    enum pawl_status st = pawl_llmcp35_decode(bytes, n, &checkpoint, &fault, &err);
    if (st == PAWL_OK)
        fail_msg("%s is taken, expected %.*s", path, PAWL_ARG(category));
    assert_null(checkpoint);
    assert_non_null(fault);
    bool has_cause = !pawl_str_equal(cause, PAWL_STR("-"));
    (void)snprintf(code, sizeof code, "%.*s%s%.*s", PAWL_ARG(category), has_cause ? "/" : "",
                   has_cause ? (int)cause.len : 0, cause.data);
    if (strcmp(err.code, code) != 0)
        fail_msg("%s: %s (%s), expected %s", path, err.code, err.message, code);
    assert_true(pawl_str_equal(category, pawl_str_z(pawl_llmcp35_fault_category(fault))));
    assert_true(has_cause == (pawl_llmcp35_fault_cause(fault) != NULL));
    if (has_cause)
        assert_true(pawl_str_equal(cause, pawl_str_z(pawl_llmcp35_fault_cause(fault))));
    assert_int_equal(st, pawl_str_equal(category, PAWL_STR("truncated")) ? PAWL_TRUNCATED : PAWL_CORRUPT);
    for (size_t i = 0; i < fields->n; i++) {
        char field_name[64];
        (void)snprintf(field_name, sizeof field_name, "%.*s", PAWL_ARG(fields->first[i].key));
        const struct pawl_llmcp35_field *field = lc_field(fault, field_name);
        if (field == NULL || !field_is(field, &fields->first[i]))
            fail_msg("%s: %s: the field '%s' is %s", path, err.message, field_name,
                     field == NULL ? "not there" : "another");
    }
    pawl_llmcp35_fault_free(fault);
    free(bytes);
    pawl_arena_release(&arena);
}

/*
 * Goal: each of the 60 corrupt files gives its category, cause and data. Method: corrupt.tsv lists them, the JSON beside each
 * has the data. Where the machine's memory decides ("also acceptable: allocation") ours is always the first answer.
 */
static void
corrupt_files_give_category_cause_and_data(void **state)
{
    (void)state;
    size_t n, cases = 0;
    unsigned char *bytes = lc_bytes_of(LC_GOLDEN "corrupt.tsv", &n);
    struct pawl_str text = pawl_str_make((const char *)bytes, n);
    while (text.len > 0) {
        struct pawl_str columns[5] = { { NULL, 0 } };
        const char *end = memchr(text.data, '\n', text.len);
        struct pawl_str line = pawl_str_make(text.data, end == NULL ? text.len : (size_t)(end - text.data));
        text = end == NULL ? pawl_str_make(NULL, 0) : pawl_str_make(end + 1, text.len - line.len - 1);
        for (size_t i = 0; i < 5; i++) {
            const char *tab = memchr(line.data, '\t', line.len);
            size_t len = tab == NULL ? line.len : (size_t)(tab - line.data);
            columns[i] = pawl_str_make(line.data, len);
            line = tab == NULL ? pawl_str_make(line.data + len, 0) : pawl_str_make(tab + 1, line.len - len - 1);
        }
        if (!pawl_str_starts(columns[0], PAWL_STR("corrupt/")))
            continue;
        check_corrupt(columns[0], columns[2], columns[3]);
        cases++;
    }
    assert_int_equal(cases, 60);
    free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_files_come_back_byte_for_byte),
        cmocka_unit_test(corrupt_files_give_category_cause_and_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
