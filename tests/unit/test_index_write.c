/* Making an index anew: from the shards alone, checked, telling what changed. */
#include "unit/model_tools.h"

#include "model/convert_model.h"

static struct pawl_error err;

#define S1 "model-00001-of-00002.safetensors"
#define S2 "model-00002-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"
#define ONE(name) "{\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define RIGHT                                                                   \
    "{\n  \"metadata\": {\n    \"total_size\": 16\n  },\n  \"weight_map\": {\n" \
    "    \"v\": \"" S2 "\",\n    \"w\": \"" S1 "\"\n  }\n}\n"

static void
put_shards(void)
{
    assert_int_equal(mkdir("m", 0777), 0);
    put_model("m/" S1, ONE("w"), "wwwwwwww", 8);
    put_model("m/" S2, ONE("v"), "vvvvvvvv", 8);
}

/* "changed was total-before added removed moved" of a run, or the error's code and message; static storage. */
static const char *
make_index(bool is_dry)
{
    static char text[2000];
    const struct pawl_index_options options = PAWL_INDEX_OPTIONS(.dry_run = is_dry);
    struct pawl_indexed *done = NULL;
    enum pawl_status st = pawl_index_write(PAWL_STR("m"), &options, &done, &err);
    if (st != PAWL_OK)
        (void)snprintf(text, sizeof text, "%s: %s", err.code, err.message);
    else
        (void)snprintf(text, sizeof text, "%d %d %ld %zu %zu %zu", done->is_changed, done->was_there,
                       done->has_total_before ? (long)done->total_size_before : -1L, done->added, done->removed,
                       done->moved);
    pawl_indexed_free(done);
    return text;
}

/* Goal: an index is made where there was none, and then it is right, so that nothing is written again. */
static void
makes_an_index(void **state)
{
    struct stat before;
    struct stat after;
    (void)state;
    put_shards();
    assert_string_equal(make_index(true), "1 0 -1 2 0 0");
    assert_int_equal(count_names("m"), 2);
    assert_string_equal(make_index(false), "1 0 -1 2 0 0");
    assert_string_equal(host_text("m/" INDEX), RIGHT);
    assert_int_equal(stat("m/" INDEX, &before), 0);
    assert_string_equal(make_index(false), "0 1 16 0 0 0");
    assert_int_equal(stat("m/" INDEX, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(count_names("m"), 3);
}

/* Goal: whatever the old index says, the new one says what the shards hold, and the difference is told. */
static void
mends_an_index(void **state)
{
    static const struct {
        const char *old, *told;
    } CASES[] = {
        { "{\"metadata\":{\"total_size\":24},\"weight_map\":{\"w\":\"" S1 "\",\"v\":\"" S2 "\"}}", "1 1 24 0 0 0" },
        { "{\"weight_map\":{\"w\":\"" S1 "\",\"v\":\"" S2 "\"}}", "1 1 -1 0 0 0" },
        { "{\"metadata\":null,\"weight_map\":{\"w\":\"" S2 "\",\"v\":\"" S2 "\"}}", "1 1 -1 0 0 1" },
        { "{\"metadata\":{\"total_size\":16},\"weight_map\":{\"w\":\"" S1 "\",\"z\":\"gone\"}}", "1 1 16 1 1 0" },
        { "{\"weight_map\":{}}", "1 1 -1 2 0 0" },
        { "{\"weight_map\":", "1 0 -1 2 0 0" },
        { "", "1 0 -1 2 0 0" },
    };
    (void)state;
    put_shards();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        host_put("m/" INDEX, CASES[i].old);
        assert_int_equal(chmod("m/" INDEX, 0600), 0);
        if (strcmp(make_index(false), CASES[i].told) != 0)
            fail_msg("%s: %s", CASES[i].old, make_index(false));
        assert_string_equal(host_text("m/" INDEX), RIGHT);
        assert_int_equal(host_mode("m/" INDEX), 0600);
    }
}

/* Goal: what is no sound set is refused with its reason, and the old index stays as it is. */
static void
refuses_what_is_no_set(void **state)
{
    (void)state;
    put_shards();
    host_put("m/" INDEX, "old");
    put_model("m/" S2, ONE("w"), "wwwwwwww", 8);
    assert_string_equal(make_index(false),
                        "content: tensor 'w' is in '" S1 "' and in '" S2 "': the bytes are the same");
    put_model("m/" S2, ONE("w"), "vvvvvvvv", 8);
    assert_string_equal(make_index(false), "content: tensor 'w' is in '" S1 "' and in '" S2 "': the bytes differ");
    put_model("m/" S2, ONE("v"), "vvvv", 4);
    assert_non_null(strstr(make_index(false), "truncated: "));
    assert_string_equal(err.path, "m/" S2);
    host_put("m/" S2, "{}");
    assert_int_equal(pawl_index_write(PAWL_STR("m"), NULL, NULL, &err), PAWL_CORRUPT);
    assert_int_equal(unlink("m/" S2), 0);
    assert_string_equal(make_index(false), "missing-file: shard 2 of 2 of 'model' is not there: 1 are");
    put_model("m/" S2, ONE("v"), "vvvvvvvv", 8);
    assert_int_equal(unlink("m/" S1), 0);
    assert_string_equal(make_index(false), "missing-file: shard 1 of 2 of 'model' is not there: 1 are");
    put_model("m/model-00001-of-00003.safetensors", ONE("w"), "wwwwwwww", 8);
    assert_string_equal(make_index(false),
                        "content: shards of more than one set: 'model-00001-of-00003.safetensors' and '" S2 "'");
    assert_string_equal(err.hint, "move those that do not belong to the model away");
    assert_string_equal(host_text("m/" INDEX), "old");
    assert_int_equal(pawl_index_write(PAWL_STR("none"), NULL, NULL, &err), PAWL_NO_FILE);
    assert_int_equal(pawl_index_write(PAWL_STR(""), NULL, NULL, &err), PAWL_ARGUMENT);
}

/* Goal: files without numbers are shards when none has one; else they are ignored, and named. One file alone needs no index. */
static void
chooses_the_shards(void **state)
{
    struct pawl_indexed *done = NULL;
    (void)state;
    assert_int_equal(mkdir("m", 0777), 0);
    assert_string_equal(make_index(false), "not-safetensors: the directory holds no safetensors file");
    put_model("m/a.safetensors", ONE("w"), "wwwwwwww", 8);
    assert_string_equal(make_index(false), "argument: one file, 'a.safetensors', is a model without an index");
    put_model("m/b.safetensors", ONE("v"), "vvvvvvvv", 8);
    assert_string_equal(make_index(false), "1 0 -1 2 0 0");
    assert_non_null(strstr(host_text("m/" INDEX), "\"v\": \"b.safetensors\""));

    put_model("m/w-00001-of-00001.safetensors", ONE("w"), "wwwwwwww", 8);
    host_put("m/c.json", "{}");
    assert_int_equal(mkdir("m/d.safetensors", 0777), 0);
    assert_int_equal(pawl_index_write(PAWL_STR("m"), NULL, &done, &err), PAWL_OK);
    assert_true(pawl_str_equal(done->name, PAWL_STR("w.safetensors.index.json")));
    assert_int_equal(done->n_ignored, 2);
    assert_true(pawl_str_equal(done->ignored[0], PAWL_STR("a.safetensors")));
    assert_true(pawl_str_equal(done->ignored[1], PAWL_STR("b.safetensors")));
    assert_int_equal(done->tensors, 1);
    assert_int_equal(done->files, 1);
    assert_int_equal(done->total_size, 8);
    pawl_indexed_free(done);
}

/* Goal: the files of a checkpoint are what its manifest lists: its index is looked at, and not changed. */
static void
leaves_checkpoints_alone(void **state)
{
    (void)state;
    put_shards();
    assert_string_equal(make_index(false), "1 0 -1 2 0 0");
    host_put("m/MANIFEST.json", "{}");
    assert_string_equal(make_index(false), "0 1 16 0 0 0");
    host_put("m/" INDEX, "old");
    assert_int_equal(pawl_index_write(PAWL_STR("m"), NULL, NULL, &err), PAWL_EXISTS);
    assert_string_equal(host_text("m/" INDEX), "old");
    assert_string_equal(make_index(true), "1 0 -1 2 0 0");
}

/* Goal: 100,000 shards would be counted right: numbers of six digits stand before those of five in byte order. */
static void
numbers_are_compared_as_numbers(void **state)
{
    (void)state;
    put_shards();
    assert_int_equal(unlink("m/" S1), 0);
    assert_int_equal(unlink("m/" S2), 0);
    put_model("m/model-100000-of-100000.safetensors", ONE("w"), "wwwwwwww", 8);
    put_model("m/model-00001-of-100000.safetensors", ONE("v"), "vvvvvvvv", 8);
    assert_string_equal(make_index(false), "missing-file: shard 2 of 100000 of 'model' is not there: 2 are");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(makes_an_index),     IN_FOLDER(mends_an_index),           IN_FOLDER(refuses_what_is_no_set),
        IN_FOLDER(chooses_the_shards), IN_FOLDER(leaves_checkpoints_alone), IN_FOLDER(numbers_are_compared_as_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
