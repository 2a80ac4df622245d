#include "unit/model_tools.h"
#include "model/index.h"
#include "model/set.h"

/* The tensors of a golden model in shards, given in a scattered order. */
static struct pawl_st_item *
golden_items(const char *folder, struct pawl_set *set)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    const struct pawl_set_options options = { .use_own_codes = true };
    assert_int_equal(pawl_dir_open_path(&dir, pawl_os_posix(), folder, NULL), PAWL_OK);
    assert_int_equal(pawl_set_open_index(set, &dir, "model.safetensors.index.json", &options, NULL, NULL), PAWL_OK);
    pawl_dir_release(&dir);
    struct pawl_st_item *items = calloc(set->n, sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i < set->n; i++) {
        const struct pawl_tensor_info *t = &set->tensors[(i * 5 + 2) % set->n]; /* 7 or 9 tensors: a permutation */
        items[i] = (struct pawl_st_item){ t->name, t->dtype, t->rank, t->shape };
    }
    return items;
}

/*
 * Goal: the sharding rule and every byte of index and headers are those of a model that the reference wrote. Method: plan the tensors of the
 * golden models anew, under the limits they were made with, and compare the files' beginnings and the index whole.
 */
static void
plans_golden_shards_byte_for_byte(void **state)
{
    static const struct {
        const char *folder;
        uint64_t limit;
    } CASES[] = { { PAWL_GOLDEN "/safetensors/files/sharded", 150 },
                  { PAWL_GOLDEN "/checkpoint/good/sharded/root/step-000064", 128 } };
    (void)state;
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct pawl_set set;
        struct pawl_split split;
        struct pawl_st_item *items = golden_items(CASES[c].folder, &set);
        const struct pawl_st_header *first = &set.files[0].header;
        assert_int_equal(pawl_split_plan(&split, PAWL_STR("model"), items, set.n, first->metadata, first->n_metadata,
                                         first->has_metadata, CASES[c].limit, 0, NULL),
                         PAWL_OK);
        assert_int_equal(split.n_files, set.n_files);
        uint64_t bytes = split.index.len;
        for (size_t k = 0; k < split.n_files; k++) {
            const struct pawl_split_file *file = &split.files[k];
            assert_true(pawl_str_equal(file->name, set.files[k].name));
            char path[4096];
            size_t n;
            (void)snprintf(path, sizeof path, "%s/%.*s", CASES[c].folder, PAWL_ARG(file->name));
            char *golden = st_slurp(path, &n);
            assert_int_equal(file->plan.file_bytes, n);
            assert_memory_equal(file->plan.prefix.data, golden, file->plan.prefix.len);
            free(golden);
            bytes += n;
            for (size_t i = 0; i < file->n; i++) /* the items that the plan numbers */
                assert_true(
                    pawl_str_equal(items[file->items[file->plan.order[i]]].name, set.files[k].header.tensors[i].name));
        }
        assert_int_equal(split.bytes, bytes);
        char path[4096];
        size_t n;
        (void)snprintf(path, sizeof path, "%s/model.safetensors.index.json", CASES[c].folder);
        char *golden = st_slurp(path, &n);
        assert_int_equal(split.index.len, n);
        assert_memory_equal(split.index.data, golden, n);
        free(golden);
        free(items);
        pawl_split_release(&split);
        pawl_set_release(&set);
    }
}

static const uint64_t SIZES[] = { 0, 5, 10, 11, 20 };

static struct pawl_st_item
bytes_item(const char *name, size_t which)
{
    return (struct pawl_st_item){ pawl_str_z(name), PAWL_U8, 1, &SIZES[which] };
}

/* "a b | c": the items' names by file. */
static const char *
deal_text(const struct pawl_split *split, const struct pawl_st_item *items)
{
    static char text[500];
    size_t at = 0;
    text[0] = '\0';
    for (size_t k = 0; k < split->n_files; k++) {
        for (size_t i = 0; i < split->files[k].n; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                                   at == 0  ? ""
                                   : i == 0 ? " | "
                                            : " ",
                                   items[split->files[k].items[i]].name.data);
    }
    return text;
}

/* Goal: a file ends before the tensor that would pass the limit, exactly; tensors of no bytes never begin one; one above the limit is alone. */
static void
begins_a_file_before_the_limit_is_passed(void **state)
{
    struct pawl_split split;
    (void)state;
    const struct pawl_st_item items[] = { bytes_item("f", 1), bytes_item("a", 2), bytes_item("d", 4),
                                          bytes_item("b", 2), bytes_item("c", 0), bytes_item("e", 3) };
#define PLAN(limit) \
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("m"), items, 6, NULL, 0, false, (limit), 0, NULL), PAWL_OK)
    PLAN(20);
    assert_string_equal(deal_text(&split, items), "a b c | d | e f");
    assert_string_equal(split.files[1].name.data, "m-00002-of-00003.safetensors");
    pawl_split_release(&split);
    PLAN(19);
    assert_string_equal(deal_text(&split, items), "a | b c | d | e f");
    pawl_split_release(&split);
    PLAN(1);
    assert_string_equal(deal_text(&split, items), "a | b | c | d | e | f");
    pawl_split_release(&split);
    PLAN(51);
    assert_string_equal(deal_text(&split, items), "a b c d e | f");
    pawl_split_release(&split);
    PLAN(50);
    assert_string_equal(deal_text(&split, items), "a b c d | e f");
    pawl_split_release(&split);
    PLAN(56); /* all of it: no numbers, no index */
    assert_string_equal(deal_text(&split, items), "a b c d e f");
    assert_string_equal(split.files[0].name.data, "m.safetensors");
    assert_int_equal(split.index.len, 0);
    pawl_split_release(&split);
    PLAN(0);
    assert_int_equal(split.n_files, 1);
    pawl_split_release(&split);
    PLAN(UINT64_MAX);
    assert_int_equal(split.n_files, 1);
    pawl_split_release(&split);
}

/* Goal: dtypes come in canonical order before names; the limit of 0 is 5 GB, to the byte; nothing is written, so sizes may be any. */
static void
knows_the_default_limit(void **state)
{
    static const uint64_t most = UINT64_C(4999999999);
    static const uint64_t one = 1;
    static const uint64_t two = 2;
    struct pawl_split split;
    (void)state;
    struct pawl_st_item items[] = { { PAWL_STR("x"), PAWL_U8, 1, &most }, { PAWL_STR("y"), PAWL_U8, 1, &one } };
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("m"), items, 2, NULL, 0, false, 0, 0, NULL), PAWL_OK);
    assert_int_equal(split.n_files, 1);
    pawl_split_release(&split);
    items[1].shape = &two;
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("m"), items, 2, NULL, 0, false, 0, 0, NULL), PAWL_OK);
    assert_int_equal(split.n_files, 2);
    pawl_split_release(&split);
    items[1].dtype = PAWL_F32; /* first now: 8 bytes */
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("m"), items, 2, NULL, 0, false, 0, 0, NULL), PAWL_OK);
    assert_string_equal(deal_text(&split, items), "y | x");
    pawl_split_release(&split);
}

/* Goal: a set of no tensors is one file; and what the format refuses is refused though the two would lie in different files. */
static void
refuses_what_one_file_would(void **state)
{
    struct pawl_split split;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)state;
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("m"), NULL, 0, NULL, 0, false, 0, 0, &err), PAWL_OK);
    assert_int_equal(split.n_files, 1);
    assert_int_equal(split.files[0].plan.file_bytes, 16);
    pawl_split_release(&split);

    const struct pawl_st_item twice[] = { bytes_item("z", 1), bytes_item("b", 4), bytes_item("z", 2),
                                          bytes_item("b", 4) };
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("m"), twice, 4, NULL, 0, false, 1, 0, &err), PAWL_ARGUMENT);
    assert_string_equal(err.code, "duplicate-key");
    assert_string_equal(err.message, "two tensors are named 'b'");
    const struct pawl_st_item bad[] = { bytes_item("a", 4), bytes_item("\xff", 4) };
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("m"), bad, 2, NULL, 0, false, 20, 0, &err), PAWL_ARGUMENT);
    assert_string_equal(err.code, "utf8");
    static const uint64_t huge[2] = { UINT64_MAX, 4 };
    const struct pawl_st_item over[] = { { PAWL_STR("o"), PAWL_U8, 2, huge } };
    assert_int_not_equal(pawl_split_plan(&split, PAWL_STR("m"), over, 1, NULL, 0, false, 20, 0, &err), PAWL_OK);
    assert_string_equal(err.code, "overflow");
    static const uint64_t half = UINT64_C(1) << 60;
    struct pawl_st_item many[17];
    char names[17][4];
    for (size_t i = 0; i < 17; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", i);
        many[i] = (struct pawl_st_item){ pawl_str_z(names[i]), PAWL_U8, 1, &half };
    }
    assert_int_not_equal(pawl_split_plan(&split, PAWL_STR("m"), many, 17, NULL, 0, false, 20, 0, &err), PAWL_OK);
    assert_string_equal(err.code, "overflow");
    assert_int_equal(split.n_files, 0); /* empty after a failure */
    pawl_split_release(&split);
}

/* Goal: the index is what Python's json.dumps(indent=2, sort_keys=True) prints: order of code points, ASCII escapes, pairs beyond the BMP. */
static void
prints_an_index_as_python_does(void **state)
{
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    (void)state;
    struct pawl_pair map[] = { { PAWL_STR("\xf0\x9f\x98\x80"), PAWL_STR("f") },
                               { PAWL_STR("\xef\xbc\xa1"), PAWL_STR("f") },
                               { PAWL_STR("b\"\\\x7f\x01"), PAWL_STR("f") },
                               { PAWL_STR("B"), PAWL_STR("g") } };
    assert_true(pawl_index_print(&out, UINT64_MAX, map, 4));
    static const char WANT[] =
        "{\n  \"metadata\": {\n    \"total_size\": 18446744073709551615\n  },\n  \"weight_map\": {\n"
        "    \"B\": \"g\",\n    \"b\\\"\\\\\\u007f\\u0001\": \"f\",\n    \"\\uff21\": \"f\",\n"
        "    \"\\ud83d\\ude00\": \"f\"\n  }\n}\n";
    assert_int_equal(out.len, sizeof WANT - 1);
    assert_memory_equal(out.data, WANT, out.len);
    pawl_buffer_release(&out);
}

/* Goal: which names are numbered shards. */
static void
reads_the_numbers_of_shards(void **state)
{
    static const char *const NOT[] = { "model.safetensors",
                                       "model-00000-of-00002.safetensors",
                                       "model-00003-of-00002.safetensors",
                                       "model-0001-of-0002.safetensors",
                                       "model-000001-of-000002.safetensors",
                                       "model-00001-of-00002.safetensors.bak",
                                       "model_00001-of-00002.safetensors",
                                       "00001-of-00002.safetensors",
                                       "model-00001-00002.safetensors",
                                       "-of-00002.safetensors",
                                       "",
                                       "model-00001-of-4294967297.safetensors" };
    struct pawl_str base;
    uint32_t k;
    uint32_t n;
    (void)state;
    assert_true(pawl_shard_number(PAWL_STR("a-b-00002-of-00010.safetensors"), &base, &k, &n));
    assert_true(pawl_str_equal(base, PAWL_STR("a-b")));
    assert_int_equal(k, 2);
    assert_int_equal(n, 10);
    assert_true(pawl_shard_number(PAWL_STR("m-100000-of-100001.safetensors"), &base, &k, &n));
    assert_int_equal(k, 100000);
    for (size_t i = 0; i < sizeof NOT / sizeof NOT[0]; i++)
        assert_false(pawl_shard_number(pawl_str_z(NOT[i]), &base, &k, &n));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_golden_shards_byte_for_byte), cmocka_unit_test(begins_a_file_before_the_limit_is_passed),
        cmocka_unit_test(knows_the_default_limit),           cmocka_unit_test(refuses_what_one_file_would),
        cmocka_unit_test(prints_an_index_as_python_does),    cmocka_unit_test(reads_the_numbers_of_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
