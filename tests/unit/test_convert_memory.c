/* Rewriting models when memory fails: every allocation, once. */
#include "unit/model_tools.h"
#include "model/convert_model.h"
#include "unit/failing_memory.h"

static struct pawl_model *model;

static enum pawl_status
to_directory(struct pawl_error *err)
{
    const struct pawl_str drop = PAWL_STR("b");
    const struct pawl_rename rename = { PAWL_STR("*a"), PAWL_STR("*A") };
    const struct pawl_pair pair = { PAWL_STR("k"), PAWL_STR("v") };
    const struct pawl_convert_options options =
        PAWL_CONVERT_OPTIONS(.is_directory = 1, .file_bytes_max = 2, .drop = &drop, .n_drop = 1, .renames = &rename,
                             .n_renames = 1, .metadata = &pair, .n_metadata = 1);
    struct pawl_converted *done = NULL;
    enum pawl_status st = pawl_convert(model, PAWL_STR("out"), &options, &done, err);
    pawl_converted_free(done);
    return st;
}

static enum pawl_status
to_file(struct pawl_error *err)
{
    return pawl_convert(model, PAWL_STR("out"), NULL, NULL, err);
}

static enum pawl_status
take_all(void *context, const void *data, size_t n, struct pawl_error *err)
{
    (void)context;
    (void)data;
    (void)n;
    (void)err;
    return PAWL_OK;
}

static enum pawl_status
to_sink(struct pawl_error *err)
{
    const struct pawl_sink sink = { take_all, NULL };
    const struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.sink = &sink);
    return pawl_convert(model, PAWL_STR(""), &options, NULL, err);
}

static enum pawl_status
make_index(struct pawl_error *err)
{
    struct pawl_indexed *done = NULL;
    enum pawl_status st = pawl_index_write(PAWL_STR("shards"), NULL, &done, err);
    pawl_indexed_free(done);
    return st;
}

static void
remove_output(void)
{
    struct pawl_dir here = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", NULL), PAWL_OK);
    assert_int_equal(pawl_dir_remove_tree(&here, "out", NULL), PAWL_OK);
    (void)unlink("shards/model.safetensors.index.json");
    pawl_dir_release(&here);
}

/*
 * Goal: without memory the answer is that, and neither a temporary nor half a set is left (a sanitizer sees what leaks). Method: the n-th
 * allocation fails, for every n.
 */
static void
every_allocation_may_fail(void **state)
{
    static enum pawl_status (*const WAYS[])(struct pawl_error * err) = { to_directory, to_file, to_sink, make_index };
    (void)state;
    put_model("in.safetensors",
              "{\"__metadata__\":{\"pawl.alias.t\":\"a\",\"x\":\"y\"},"
              "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
              "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]},"
              "\"ca\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}",
              "\1\2\3\4\5\6", 6);
    assert_int_equal(mkdir("shards", 0777), 0);
    copy_file("in.safetensors", "shards/model-00001-of-00002.safetensors");
    put_model("shards/model-00002-of-00002.safetensors",
              "{\"z\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "\1", 1);
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), PAWL_STR("in.safetensors"), NULL, NULL, &model, NULL),
                     PAWL_OK);
    for (size_t way = 0; way < 4; way++) {
        long n = 0;
        for (has_failed = true; has_failed; n++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            has_failed = false;
            until_failure = n;
            enum pawl_status st = WAYS[way](&err);
            until_failure = -1;
            if (has_failed && st == PAWL_OK) { /* it could do without: done all the same */
                remove_output();
                continue;
            }
            if (st != (has_failed ? PAWL_NO_MEMORY : PAWL_OK))
                fail_msg("way %zu, allocation %ld: %s", way, n, err.message);
            if (st != PAWL_OK && count_names(".") != 2)
                fail_msg("way %zu, allocation %ld: something is left", way, n);
            if (st != PAWL_OK && count_names("shards") != 2)
                fail_msg("way %zu, allocation %ld: an index is left", way, n);
        }
        assert_true(n > 10);
        remove_output();
    }
    pawl_model_close(model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
