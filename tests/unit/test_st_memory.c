/* json and safetensors when memory runs out: the n-th allocation fails, for every n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "formats/json/json.h"
#include "unit/st_tools.h"
#include "unit/failing_memory.h"

/* Unsorted, with metadata, an escape, a repeated name (for compat) and shapes: every allocation there is. */
static const char HEADER[] =
    "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"},\"x\\n\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
    "\"y\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},\"y\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_"
    "offsets\":[0,8]}}";

static enum pawl_status
parse_header(struct pawl_error *err)
{
    struct pawl_st_header h;
    struct pawl_st_options options = { .mode = PAWL_ST_COMPAT };
    enum pawl_status st = pawl_st_parse(&h, HEADER, sizeof HEADER - 1, 8 + sizeof HEADER - 1 + 16, &options, err);
    if (st == PAWL_OK) {
        assert_int_equal(h.n, 2);
        assert_non_null(pawl_st_find(&h, PAWL_STR("x\n")));
    }
    pawl_st_release(&h);
    return st;
}

static enum pawl_status
parse_document(struct pawl_error *err)
{
    static const char TEXT[] =
        "{\"a\":[[],{\"b\\t\":\"x\\u0041\"}],\"k0\":0,\"k1\":0,\"k2\":0,\"k3\":0,\"k4\":0,\"k5\":0,\"k6\":0,\"k7\":0,"
        "\"k8\":0,\"k9\":0,\"ka\":0,\"kb\":0,\"kc\":0,\"kd\":0,\"ke\":0,\"kf\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
        "17,18,19,20]}";
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *value = NULL;
    enum pawl_status st = pawl_json_parse(&arena, TEXT, sizeof TEXT - 1, 0, &value, err);
    assert_int_equal(value != NULL, st == PAWL_OK);
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_json_writer writer;
    if (st == PAWL_OK) {
        pawl_json_write_begin(&writer, &out, PAWL_JSON_INDENTED, PAWL_JSON_ASCII);
        pawl_json_write_value(&writer, value, true);
        if (!pawl_buffer_ok(&out))
            st = pawl_fail_memory(err, 0);
    }
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
    return st;
}

static enum pawl_status
plan_file(struct pawl_error *err)
{
    const struct pawl_st_item items[] = { { PAWL_STR("a"), PAWL_U8, 0, NULL }, { PAWL_STR("b"), PAWL_F32, 0, NULL } };
    const struct pawl_pair metadata[] = { { PAWL_STR("k"), PAWL_STR("v") }, { PAWL_STR("j"), PAWL_STR("w") } };
    struct pawl_st_plan plan;
    enum pawl_status st = pawl_st_plan(&plan, items, 2, metadata, 2, true, 4096, err);
    assert_int_equal(plan.prefix.len, st == PAWL_OK ? 4096 : 0);
    pawl_st_plan_release(&plan);
    return st;
}

static enum pawl_status
write_text(struct pawl_error *err)
{
    struct pawl_json *json = NULL;
    struct pawl_str text;
    enum pawl_status st = pawl_json_new(PAWL_JSON_INDENTED, PAWL_JSON_RAW, &json, err);
    if (st != PAWL_OK)
        return st;
    pawl_json_add_object(json);
    pawl_json_add_key_z(json, "key");
    pawl_json_add_array(json);
    pawl_json_add_string(json,
                         PAWL_STR("bad \xff, and then much more text than fits into a first buffer of a few bytes"));
    pawl_json_end_array(json);
    pawl_json_end_object(json);
    st = pawl_json_text(json, &text, err);
    pawl_json_free(json);
    return st;
}

/*
 * Goal: no allocation that fails is passed over, leaks, or makes another answer than "no memory". Method: let the first, the
 * second ... fail until a run meets no failure; a sanitizer sees what leaks.
 */
static void
every_allocation_fails(void **state)
{
    (void)state;
    enum pawl_status (*const JOBS[])(struct pawl_error *) = { parse_header, parse_document, plan_file, write_text };
    for (size_t i = 0; i < sizeof JOBS / sizeof JOBS[0]; i++) {
        long n = 0;
        for (;; n++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            has_failed = false;
            until_failure = n;
            enum pawl_status st = JOBS[i](&err);
            until_failure = -1;
            if (!has_failed) {
                assert_int_equal(st, PAWL_OK);
                break;
            }
            assert_int_equal(st, PAWL_NO_MEMORY);
            assert_string_equal(err.code, "no-memory");
        }
        print_message("job %zu: %ld allocations\n", i, n);
        assert_true(n >= 3);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_fails) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
