/* Rewriting models: which tensors, under which names, with which metadata, in which files, byte for byte. */
#include "unit/convert_tools.h"

#include "pawl/pcg32.h"

#define FILES PAWL_GOLDEN "/safetensors/files/"

static uint64_t seed; /* printed by main */

/* A file whose header is padded with blanks to a multiple of 8. */
static void
put_padded(const char *path, const char *header, const void *data, size_t n)
{
    char text[1000];
    int len = snprintf(text, sizeof text, "%s%*s", header, (int)(-strlen(header) % 8), "");
    assert_true(len > 0 && (size_t)len < sizeof text);
    put_model(path, text, data, n);
}

/* ---- the same bytes as the reference ---- */

/*
 * Goal: what was written by others comes out as the reference writes it: canonical files as they are, others (padded differently, with
 * blanks, metadata last) as the canonical writer makes them. Method: every golden file that opens; where it is not canonical, against what
 * pawl_safetensors_write makes of its tensors, whose bytes have tests of their own.
 */
static void
golden_files_come_out_canonical(void **state)
{
    size_t n;
    size_t canonical = 0;
    size_t others = 0;
    (void)state;
    char *manifest = st_slurp(FILES "manifest.tsv", &n);
    for (char *line = strtok(manifest, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char path[4096];
        struct pawl_model *model = NULL;
        char *at = line;
        bool is_file = strcmp(st_field(&at), "file") == 0;
        char *name = st_field(&at);
        (void)snprintf(path, sizeof path, FILES "%s", name);
        if (!is_file || pawl_model_open_plain(pawl_os_posix(), pawl_str_z(path), NULL, NULL, &model, &err) != PAWL_OK)
            continue;
        assert_int_equal(pawl_convert(model, PAWL_STR("out.safetensors"), NULL, NULL, &err), PAWL_OK);
        size_t n_tensors;
        size_t n_metadata;
        bool has_metadata;
        const struct pawl_tensor_info *infos = pawl_model_tensors(model, &n_tensors);
        const struct pawl_pair *metadata = pawl_model_metadata(model, &n_metadata, &has_metadata);
        struct pawl_tensor *tensors = calloc(n_tensors + 1, sizeof *tensors);
        assert_non_null(tensors);
        for (size_t i = 0; i < n_tensors; i++) {
            const void *data;
            assert_int_equal(pawl_model_map(model, &infos[i], &data, NULL, &err), PAWL_OK);
            tensors[i] =
                (struct pawl_tensor){ .size = sizeof *tensors,
                                      .name = infos[i].name,
                                      .dtype = infos[i].dtype,
                                      .rank = infos[i].rank,
                                      .shape = infos[i].shape,
                                      .data = infos[i].end == infos[i].begin ? NULL : (void *)(uintptr_t)data };
        }
        const struct pawl_write_options options =
            PAWL_WRITE_OPTIONS(.metadata = metadata, .n_metadata = n_metadata, .has_metadata = has_metadata);
        assert_int_equal(pawl_safetensors_write(PAWL_STR("want.safetensors"), tensors, n_tensors, &options, &err),
                         PAWL_OK);
        free(tensors);
        pawl_model_close(model);
        if (!is_same_file("out.safetensors", "want.safetensors"))
            fail_msg("%s: not what the writer makes", name);
        (void)st_field(&at); /* bytes, hash, verdict */
        (void)st_field(&at);
        (void)st_field(&at);
        bool is_same = is_same_file("out.safetensors", path);
        if (is_same != (*st_field(&at) == '1'))
            fail_msg("%s: %s the bytes of the golden file", name, is_same ? "has" : "has not");
        canonical += is_same;
        others += !is_same;
    }
    free(manifest);
    print_message("%zu canonical files, %zu others\n", canonical, others);
    assert_true(canonical >= 20 && others >= 3);
}

/* Goal: a file of another writer, of any padding, gets the reference's bytes. */
static void
unpadded_headers_become_padded(void **state)
{
    (void)state;
    for (size_t blanks = 0; blanks < 9; blanks++) {
        char header[100] = "{\"w\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}";
        memset(header + strlen(header), ' ', blanks);
        put_model("in", header, "\x80\x3f\0\x40", 4);
        convert("in", "out.safetensors", NULL);
        put_padded("want", "{\"w\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", "\x80\x3f\0\x40", 4);
        if (!is_same_file("out.safetensors", "want"))
            fail_msg("with %zu blanks", blanks);
    }
}

/* Goal: the data begin where the caller wants them, and the content is the same. */
static void
aligns_the_data(void **state)
{
    static const uint64_t ALIGNS[] = { 0, 8, 64, 256, 4096 };
    (void)state;
    put_tied("in.safetensors");
    for (size_t i = 0; i < 5; i++) {
        const struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.align = ALIGNS[i]);
        convert("in.safetensors", "out.safetensors", &options);
        struct pawl_model *model = open_model("out.safetensors");
        size_t n;
        const struct pawl_model_file *files = pawl_model_files(model, &n);
        assert_int_equal((8 + files[0].header_bytes) % (ALIGNS[i] == 0 ? 8 : ALIGNS[i]), 0);
        pawl_model_close(model);
        assert_string_equal(content_of("out.safetensors"),
                            "emb=1 l.0.b=2 l.0.w=3 l.1.w=4 head>emb out.w>emb format:pt x:y ");
    }
}

/* ---- splitting and joining ---- */

/* Goal: 3 shards, 1 file, 2 shards of at most 20 bytes: names, map, and the reference's bytes when joined. */
static void
three_to_one_to_two(void **state)
{
    (void)state;
    assert_int_equal(mkdir("three", 0777), 0);
    put_model("three/model-00001-of-00003.safetensors",
              "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", "aaaaaaaaaaaa", 12);
    put_model("three/model-00002-of-00003.safetensors",
              "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "bbbbbbbb", 8);
    put_model("three/model-00003-of-00003.safetensors",
              "{\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "cccc", 4);
    host_put("three/model.safetensors.index.json",
             "{\"weight_map\":{\"a\":\"model-00001-of-00003.safetensors\",\"b\":\"model-00002-of-00003.safetensors\","
             "\"c\":\"model-00003-of-00003.safetensors\"}}");
    convert("three", "one.safetensors", NULL);
    put_padded("want",
               "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
               "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]},"
               "\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[20,24]}}",
               "aaaaaaaaaaaabbbbbbbbcccc", 24);
    assert_true(is_same_file("one.safetensors", "want"));

    shard("one.safetensors", "two", 20);
    assert_int_equal(count_names("two"), 3);
    assert_string_equal(
        host_text("two/model.safetensors.index.json"),
        "{\n  \"metadata\": {\n    \"total_size\": 24\n  },\n  \"weight_map\": {\n"
        "    \"a\": \"model-00001-of-00002.safetensors\",\n    \"b\": \"model-00001-of-00002.safetensors\",\n"
        "    \"c\": \"model-00002-of-00002.safetensors\"\n  }\n}\n");
    convert("two", "again.safetensors", NULL);
    assert_true(is_same_file("one.safetensors", "again.safetensors"));
    shard("two", "all", 0); /* 5 GB: one file, no index */
    assert_int_equal(count_names("all"), 1);
    assert_true(is_same_file("one.safetensors", "all/model.safetensors"));
}

/* Goal: the golden sharded models, written by others, join to what the reference would have written. */
static void
golden_shards_are_joined(void **state)
{
    static const char *const DIRS[] = { "sharded", "sharded-no-metadata", "sharded-wrong-total" };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, FILES "%s", DIRS[i]);
        convert(path, "joined.safetensors", NULL);
        convert("joined.safetensors", "again.safetensors", NULL);
        assert_true(is_same_file("joined.safetensors", "again.safetensors"));
        struct pawl_model *shards = open_model(path);
        struct pawl_model *joined = open_model("joined.safetensors");
        size_t n;
        size_t m;
        const struct pawl_tensor_info *tensors = pawl_model_tensors(shards, &n);
        (void)pawl_model_tensors(joined, &m);
        assert_true(n > 0 && n == m);
        for (size_t k = 0; k < n; k++) {
            const struct pawl_tensor_info *other = pawl_model_find(joined, tensors[k].name);
            const void *a;
            const void *b;
            assert_non_null(other);
            assert_int_equal(other->dtype, tensors[k].dtype);
            assert_int_equal(other->end - other->begin, tensors[k].end - tensors[k].begin);
            assert_int_equal(pawl_model_map(shards, &tensors[k], &a, NULL, NULL), PAWL_OK);
            assert_int_equal(pawl_model_map(joined, other, &b, NULL, NULL), PAWL_OK);
            assert_memory_equal(a, b, (size_t)(other->end - other->begin));
        }
        pawl_model_close(shards);
        pawl_model_close(joined);
    }
}

/*
 * Goal: any model comes back from any splitting byte for byte. Method: random dtypes, names and sizes (empty ones too), written by the
 * writer, split by a random limit, split again by another, joined.
 */
static void
random_models_come_back(void **state)
{
    static unsigned char data[4000];
    struct pawl_pcg32 rng;
    (void)state;
    pawl_pcg32_seed(&rng, seed, 1);
    for (unsigned round = 0; round < 60; round++) {
        struct pawl_tensor tensors[24];
        uint64_t shapes[24];
        char names[24][16];
        size_t n = pawl_pcg32_next(&rng) % 24 + 1;
        uint64_t total = 1;
        for (size_t i = 0; i < n; i++) {
            enum pawl_dtype dtype = (enum pawl_dtype)(pawl_pcg32_next(&rng) % PAWL_DTYPE_COUNT + 1);
            shapes[i] = pawl_pcg32_next(&rng) % 13 * 4; /* whole bytes of 4 and 6 bits too */
            (void)snprintf(names[i], sizeof names[i], "%c%u.%zu", 'a' + (char)(pawl_pcg32_next(&rng) % 26),
                           pawl_pcg32_next(&rng) % 100, i);
            for (size_t k = 0; k < sizeof data; k++)
                data[k] = (unsigned char)(k * 31 + k / 256);
            tensors[i] = (struct pawl_tensor){ .size = sizeof tensors[i],
                                               .name = pawl_str_z(names[i]),
                                               .dtype = dtype,
                                               .rank = 1,
                                               .shape = &shapes[i],
                                               .data = shapes[i] == 0 ? NULL : data + pawl_pcg32_next(&rng) % 3000 };
            total += shapes[i] * 8;
        }
        assert_int_equal(pawl_safetensors_write(PAWL_STR("in.safetensors"), tensors, n, NULL, &err), PAWL_OK);
        const struct pawl_convert_options first =
            PAWL_CONVERT_OPTIONS(.is_directory = 1, .file_bytes_max = pawl_pcg32_next(&rng) % total + 1);
        const struct pawl_convert_options second =
            PAWL_CONVERT_OPTIONS(.is_directory = 1, .file_bytes_max = pawl_pcg32_next(&rng) % total + 1);
        convert("in.safetensors", "first", &first);
        convert("first", "second", &second); /* over what the round before left */
        convert("second", "out.safetensors", NULL);
        if (!is_same_file("in.safetensors", "out.safetensors"))
            fail_msg("round %u", round);
    }
}

/* ---- names ---- */

struct name_case {
    const char *what;
    const char *only[3], *drop[3];
    const char *renames[3][2];
    const char *content; /* NULL: it fails */
    const char *message;
};

static const struct name_case NAME_CASES[] = {
    { "nothing asked",
      { 0 },
      { 0 },
      { { 0 } },
      "emb=1 l.0.b=2 l.0.w=3 l.1.w=4 head>emb out.w>emb format:pt x:y ",
      NULL },
    { "only", { "l.*" }, { 0 }, { { 0 } }, "l.0.b=2 l.0.w=3 l.1.w=4 format:pt x:y ", NULL },
    { "only two", { "l.0.?", "emb" }, { 0 }, { { 0 } }, "emb=1 l.0.b=2 l.0.w=3 format:pt x:y ", NULL },
    { "drop", { 0 }, { "*.w", "l.*.b" }, { { 0 } }, "emb=1 head>emb format:pt x:y ", NULL },
    { "only and drop", { "l.*" }, { "*.[b-c]" }, { { 0 } }, "l.0.w=3 l.1.w=4 format:pt x:y ", NULL },
    { "an alias alone is promoted", { "head" }, { 0 }, { { 0 } }, "head=1 format:pt x:y ", NULL },
    { "the target dropped", { 0 }, { "emb", "l.*" }, { { 0 } }, "head=1 out.w>head format:pt x:y ", NULL },
    { "the least by its new name is promoted",
      { "head", "out.w" },
      { 0 },
      { { "head", "z" } },
      "out.w=1 z>out.w format:pt x:y ",
      NULL },
    { "everything dropped", { 0 }, { "*" }, { { 0 } }, "format:pt x:y ", NULL },
    { "a target renamed", { "emb", "head" }, { 0 }, { { "emb", "E" } }, "E=1 head>E format:pt x:y ", NULL },
    { "an alias renamed", { "emb", "head" }, { 0 }, { { "head", "H" } }, "emb=1 H>emb format:pt x:y ", NULL },
    { "a star", { "l.*" }, { 0 }, { { "l.*", "m.*" } }, "m.0.b=2 m.0.w=3 m.1.w=4 format:pt x:y ", NULL },
    { "a star in the middle", { "l.*" }, { 0 }, { { "l.*.w", "*" } }, "0=3 1=4 l.0.b=2 format:pt x:y ", NULL },
    { "the first that fits, once",
      { "l.*" },
      { 0 },
      { { "l.0.*", "l.1.*" }, { "l.1.w", "w" } },
      "l.1.b=2 l.1.w=3 w=4 format:pt x:y ",
      NULL },
    { "of two that fit the first",
      { "l.?.w" },
      { 0 },
      { { "l.0.w", "f" }, { "l.*.w", "s.*" } },
      "f=3 s.1=4 format:pt x:y ",
      NULL },
    { "names exchanged",
      { "l.?.w" },
      { 0 },
      { { "l.0.w", "l.1.w" }, { "l.1.w", "l.0.w" } },
      "l.0.w=4 l.1.w=3 format:pt x:y ",
      NULL },
    { "a clash", { 0 }, { 0 }, { { "l.0.w", "l.1.w" } }, NULL, "'l.0.w' and 'l.1.w' would both be called 'l.1.w'" },
    { "a clash with an alias",
      { 0 },
      { 0 },
      { { "l.0.w", "head" } },
      NULL,
      "'head' and 'l.0.w' would both be called 'head'" },
    { "no clash with what is dropped",
      { 0 },
      { "[eho]*", "l.1.w" },
      { { "l.0.w", "l.1.w" } },
      "l.0.b=2 l.1.w=3 format:pt x:y ",
      NULL },
    { "only fits nothing",
      { "l.*", "lm.*" },
      { 0 },
      { { 0 } },
      NULL,
      "nothing fits the pattern 'lm.*' of what to keep" },
    { "drop fits nothing", { 0 }, { "emb.*" }, { { 0 } }, NULL, "nothing fits the pattern 'emb.*' of what to drop" },
    { "rename fits nothing",
      { 0 },
      { 0 },
      { { "module.*", "*" } },
      NULL,
      "nothing that is kept is called 'module.*', to be renamed" },
    { "rename of what is dropped",
      { 0 },
      { "emb" },
      { { "emb", "E" } },
      NULL,
      "nothing that is kept is called 'emb', to be renamed" },
    { "a star on one side",
      { 0 },
      { 0 },
      { { "l.*", "m" } },
      NULL,
      "rename 'l.*' to 'm': expected a name to a name, or one * on both sides" },
    { "two stars",
      { 0 },
      { 0 },
      { { "*.*", "*.*" } },
      NULL,
      "rename '*.*' to '*.*': expected a name to a name, or one * on both sides" },
    { "a name that is none",
      { 0 },
      { 0 },
      { { "emb", "__metadata__" } },
      NULL,
      "no tensor can have the name '__metadata__'" },
    { "a name that is no text", { 0 }, { 0 }, { { "emb", "\xff" } }, NULL, NULL },
};

/* Goal: each rule about names. Nothing is written when one is broken. */
static void
names_are_chosen_and_changed(void **state)
{
    (void)state;
    put_tied("in.safetensors");
    for (size_t i = 0; i < sizeof NAME_CASES / sizeof NAME_CASES[0]; i++) {
        const struct name_case *c = &NAME_CASES[i];
        struct pawl_str only[3];
        struct pawl_str drop[3];
        struct pawl_rename renames[3];
        struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.only = only, .drop = drop, .renames = renames);
        for (size_t k = 0; k < 3; k++) {
            if (c->only[k] != NULL)
                only[options.n_only++] = pawl_str_z(c->only[k]);
            if (c->drop[k] != NULL)
                drop[options.n_drop++] = pawl_str_z(c->drop[k]);
            if (c->renames[k][0] != NULL)
                renames[options.n_renames++] =
                    (struct pawl_rename){ pawl_str_z(c->renames[k][0]), pawl_str_z(c->renames[k][1]) };
        }
        (void)unlink("out.safetensors");
        enum pawl_status st = try_convert("in.safetensors", "out.safetensors", &options, NULL);
        if (c->content == NULL) {
            if (st != PAWL_ARGUMENT || (c->message != NULL && strcmp(err.message, c->message) != 0))
                fail_msg("%s: %s: %s", c->what, pawl_status_name(st), err.message);
            assert_int_equal(count_names("."), 1);
            continue;
        }
        if (st != PAWL_OK || strcmp(content_of("out.safetensors"), c->content) != 0)
            fail_msg("%s: %s: %s", c->what, pawl_status_name(st),
                     st == PAWL_OK ? content_of("out.safetensors") : err.message);
    }
}

/* Goal: names of any bytes pass untouched: an empty one, NULs, line ends. A pattern sees all of them. */
static void
odd_names_pass(void **state)
{
    const struct pawl_str drop = PAWL_STR("a\0*");
    const struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.drop = &drop, .n_drop = 1);
    struct pawl_converted *done = NULL;
    (void)state;
    put_model("in.safetensors",
              "{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
              "\"data_offsets\":[1,2]},\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
              "\"z\\n\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}",
              "\1\2\3\4", 4);
    assert_int_equal(try_convert("in.safetensors", "out.safetensors", &options, &done), PAWL_OK);
    assert_int_equal(done->tensors, 3);
    assert_int_equal(done->n_dropped, 1);
    assert_true(pawl_str_equal(done->dropped[0], PAWL_STR("a\0b")));
    pawl_converted_free(done);
    assert_string_equal(content_of("out.safetensors"), "=1 a=2 z\n=4 ");
}

/* ---- metadata ---- */

/* Goal: metadata are carried over, `format` too; the caller's are added or replace; records of aliases can't be forged. */
static void
metadata_are_carried_over(void **state)
{
    const struct pawl_pair given[2] = { { PAWL_STR("x"), PAWL_STR("z") }, { PAWL_STR("new"), PAWL_STR("") } };
    const struct pawl_pair twice[2] = { { PAWL_STR("k"), PAWL_STR("1") }, { PAWL_STR("k"), PAWL_STR("2") } };
    const struct pawl_pair forged = { PAWL_STR("pawl.alias.q"), PAWL_STR("emb") };
    const struct pawl_pair format = { PAWL_STR("format"), PAWL_STR("pt") };
    (void)state;
    put_tied("in.safetensors");
    const struct pawl_convert_options added = PAWL_CONVERT_OPTIONS(.metadata = given, .n_metadata = 2);
    convert("in.safetensors", "out.safetensors", &added);
    assert_string_equal(content_of("out.safetensors"),
                        "emb=1 l.0.b=2 l.0.w=3 l.1.w=4 head>emb out.w>emb format:pt new: x:z ");
    const struct pawl_convert_options repeated = PAWL_CONVERT_OPTIONS(.metadata = twice, .n_metadata = 2);
    assert_int_equal(try_convert("in.safetensors", "no.safetensors", &repeated, NULL), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the metadata 'k' are given twice");
    const struct pawl_convert_options alias = PAWL_CONVERT_OPTIONS(.metadata = &forged, .n_metadata = 1);
    assert_int_equal(try_convert("in.safetensors", "no.safetensors", &alias, NULL), PAWL_ARGUMENT);

    /* absent stays absent, {} stays {} */
    put_model("none", "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", "12345678", 8);
    convert("none", "out.safetensors", NULL);
    assert_null(strstr(host_text("out.safetensors") + 8, "__metadata__"));
    put_model("empty", "{\"__metadata__\":{},\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
              "12345678", 8);
    convert("empty", "out.safetensors", NULL);
    assert_non_null(strstr(host_text("out.safetensors") + 8, "{\"__metadata__\":{},"));
    const struct pawl_convert_options with_format = PAWL_CONVERT_OPTIONS(.metadata = &format, .n_metadata = 1);
    convert("none", "out.safetensors", &with_format);
    assert_string_equal(content_of("out.safetensors"), "a=49 format:pt ");
}

/* Goal: metadata of further shards are not lost, the first one's win, and every shard of the output has them all. */
static void
metadata_of_all_shards_count(void **state)
{
    (void)state;
    assert_int_equal(mkdir("in", 0777), 0);
    put_model("in/a.safetensors",
              "{\"__metadata__\":{\"k\":\"1\"},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "a", 1);
    put_model("in/b.safetensors",
              "{\"__metadata__\":{\"k\":\"2\",\"m\":\"3\",\"pawl.alias.q\":\"a\"},"
              "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
              "b", 1);
    host_put("in/model.safetensors.index.json", "{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}");
    shard("in", "out", 1);
    assert_string_equal(content_of("out"), "a=97 b=98 k:1 m:3 ");
    assert_string_equal(content_of("out/model-00002-of-00002.safetensors"), "b=98 k:1 m:3 ");
}

/* Goal: records of aliases that do not hold (the alias is a tensor, the target is none) are left out, those that hold stay. */
static void
false_aliases_are_left_out(void **state)
{
    (void)state;
    put_model("in.safetensors",
              "{\"__metadata__\":{\"pawl.alias.a\":\"b\",\"pawl.alias.c\":\"none\",\"pawl.alias.d\":\"a\"},"
              "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
              "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
              "\1\2", 2);
    convert("in.safetensors", "out.safetensors", NULL);
    assert_string_equal(content_of("out.safetensors"), "a=1 b=2 d>a ");
    assert_null(strstr(host_text("out.safetensors") + 8, "pawl.alias.a"));
    assert_null(strstr(host_text("out.safetensors") + 8, "pawl.alias.c"));
}

/* ---- where it goes ---- */

/* Goal: an existing file is kept, or replaced with its mode; a link is followed; a file may be written over itself. */
static void
files_are_replaced_as_asked(void **state)
{
    const struct pawl_convert_options keep = PAWL_CONVERT_OPTIONS(.keep_existing = 1);
    (void)state;
    put_tied("in.safetensors");
    host_put("real.safetensors", "old");
    assert_int_equal(chmod("real.safetensors", 0640), 0);
    assert_int_equal(symlink("real.safetensors", "out.safetensors"), 0);
    assert_int_equal(try_convert("in.safetensors", "out.safetensors", &keep, NULL), PAWL_EXISTS);
    assert_string_equal(host_text("real.safetensors"), "old");
    convert("in.safetensors", "out.safetensors", NULL);
    assert_int_equal(host_mode("real.safetensors"), 0640);
    struct stat status;
    assert_int_equal(lstat("out.safetensors", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    convert("out.safetensors", "out.safetensors", NULL);
    assert_string_equal(content_of("real.safetensors"),
                        "emb=1 l.0.b=2 l.0.w=3 l.1.w=4 head>emb out.w>emb format:pt x:y ");
    convert("in.safetensors", "new.safetensors", &keep);
    assert_int_equal(host_mode("new.safetensors"), 0644);
    assert_int_equal(count_names("."), 4);
}

/* Goal: in a directory only what is part of a model goes; a checkpoint is not written into; shards that are read are not replaced. */
static void
directories_are_respected(void **state)
{
    struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.is_directory = 1, .file_bytes_max = 3);
    (void)state;
    put_tied("in.safetensors");
    assert_int_equal(mkdir("out", 0777), 0);
    host_put("out/config.json", "{}");
    host_put("out/other.safetensors", "mine");
    host_put("out/model-00001-of-00009.safetensors", "left by a run that was killed");
    options.keep_existing = 1;
    assert_int_equal(try_convert("in.safetensors", "out", &options, NULL), PAWL_EXISTS);
    assert_string_equal(err.message, "'out/model-00001-of-00009.safetensors' exists and is not to be replaced");
    options.keep_existing = 0;
    convert("in.safetensors", "out", &options);
    assert_false(is_there("out/model-00001-of-00009.safetensors"));
    assert_string_equal(host_text("out/config.json"), "{}");
    assert_string_equal(host_text("out/other.safetensors"), "mine");
    assert_int_equal(count_names("out"), 2 + 3);

    assert_int_equal(try_convert("out", "out", &options, NULL), PAWL_EXISTS);
    assert_string_equal(err.message,
                        "'out/model-00001-of-00002.safetensors' is read, and would be replaced by as many shards: a "
                        "loss of power between could lose both");
    assert_string_equal(content_of("out"), "emb=1 l.0.b=2 l.0.w=3 l.1.w=4 head>emb out.w>emb format:pt x:y ");

    assert_int_equal(mkdir("step", 0777), 0);
    host_put("step/MANIFEST.json", "{}");
    assert_int_equal(try_convert("in.safetensors", "step", &options, NULL), PAWL_EXISTS);
    assert_string_equal(err.hint, "write to another directory");
    assert_int_equal(count_names("step"), 1);

    assert_int_equal(try_convert("in.safetensors", "in.safetensors", &options, NULL) == PAWL_OK, 0); /* a file */
    assert_int_equal(mkdir("taken", 0777), 0);
    assert_int_equal(mkdir("taken/model-00001-of-00002.safetensors", 0777), 0);
    assert_int_equal(try_convert("in.safetensors", "taken", &options, NULL), PAWL_EXISTS);
    assert_int_equal(count_names("taken"), 1);
    convert("in.safetensors", "deep/er/out", &options); /* parents are made */
    assert_int_equal(count_names("deep/er/out"), 3);
}

/* Goal: a dry run says what the run does, and touches nothing. */
static void
a_dry_run_tells_the_same(void **state)
{
    const struct pawl_str drop = PAWL_STR("l.1.w");
    struct pawl_convert_options options =
        PAWL_CONVERT_OPTIONS(.is_directory = 1, .file_bytes_max = 3, .drop = &drop, .n_drop = 1, .dry_run = 1);
    struct pawl_converted *told = NULL;
    struct pawl_converted *done = NULL;
    uint64_t bytes = 0;
    (void)state;
    put_tied("in.safetensors");
    assert_int_equal(try_convert("in.safetensors", "out", &options, &told), PAWL_OK);
    assert_false(is_there("out"));
    options.dry_run = 0;
    assert_int_equal(try_convert("in.safetensors", "out", &options, &done), PAWL_OK);
    assert_int_equal(told->n_files, 3);
    for (size_t i = 0; i < 3; i++) {
        char path[200];
        struct stat status;
        (void)snprintf(path, sizeof path, "out/%.*s", PAWL_ARG(told->files[i].name));
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, told->files[i].bytes);
        assert_true(pawl_str_equal(told->files[i].name, done->files[i].name));
        bytes += told->files[i].bytes;
    }
    struct stat in;
    assert_int_equal(stat("in.safetensors", &in), 0);
    assert_int_equal(told->bytes_in, in.st_size);
    assert_int_equal(told->bytes_out, bytes);
    assert_int_equal(told->tensors, 3);
    assert_int_equal(told->n_aliases, 2);
    assert_true(pawl_str_equal(told->aliases[1].key, PAWL_STR("out.w")));
    assert_int_equal(told->n_dropped, 1);
    pawl_converted_free(told);
    pawl_converted_free(done);
    pawl_converted_free(NULL);
}

/* ---- the caller's faults ---- */

static void
arguments_are_checked(void **state)
{
    const struct pawl_convert_options bad[] = {
        PAWL_CONVERT_OPTIONS(.align = 12),
        PAWL_CONVERT_OPTIONS(.file_bytes_max = 5),
        PAWL_CONVERT_OPTIONS(.n_only = 1),
        PAWL_CONVERT_OPTIONS(.n_drop = 1),
        PAWL_CONVERT_OPTIONS(.n_renames = 1),
        PAWL_CONVERT_OPTIONS(.n_metadata = 1),
        { .size = 3 },
    };
    (void)state;
    put_tied("in.safetensors");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(try_convert("in.safetensors", "out.safetensors", &bad[i], NULL), PAWL_ARGUMENT);
    assert_int_equal(try_convert("in.safetensors", "", NULL, NULL), PAWL_ARGUMENT);
    struct pawl_model *model = open_model("in.safetensors");
    assert_int_equal(pawl_convert(model, PAWL_STR("a\0b"), NULL, NULL, NULL), PAWL_ARGUMENT);
    pawl_model_close(model);
    assert_int_equal(try_convert("in.safetensors", "none/out.safetensors", NULL, NULL), PAWL_NO_FILE);
    assert_int_equal(count_names("."), 1);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)

int
main(void)
{
    const char *given = getenv("PAWL_SEED");
    seed = given != NULL ? strtoull(given, NULL, 0) : 20251129;
    print_message("PAWL_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        IN_FOLDER(golden_files_come_out_canonical),
        IN_FOLDER(unpadded_headers_become_padded),
        IN_FOLDER(aligns_the_data),
        IN_FOLDER(three_to_one_to_two),
        IN_FOLDER(golden_shards_are_joined),
        IN_FOLDER(random_models_come_back),
        IN_FOLDER(names_are_chosen_and_changed),
        IN_FOLDER(odd_names_pass),
        IN_FOLDER(metadata_are_carried_over),
        IN_FOLDER(metadata_of_all_shards_count),
        IN_FOLDER(false_aliases_are_left_out),
        IN_FOLDER(files_are_replaced_as_asked),
        IN_FOLDER(directories_are_respected),
        IN_FOLDER(a_dry_run_tells_the_same),
        IN_FOLDER(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
