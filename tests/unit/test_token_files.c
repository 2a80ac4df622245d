#include "token_support.h"

/* What paths expand to, as "a b c"; or the message, behind "!". Static storage. */
static const char *
expand(const char *const *paths, size_t n, const char *split)
{
    static char text[2048];
    struct pawl_token_files *files;
    struct pawl_str strs[8];
    struct pawl_error err = PAWL_ERROR_INIT;
    for (size_t i = 0; i < n; i++)
        strs[i] = pawl_str_z(paths[i]);
    text[0] = '\0';
    if (pawl_token_files_open(strs, n, pawl_str_z(split), &files, &err) != PAWL_OK) {
        (void)snprintf(text, sizeof text, "!%s: %s", err.code, err.message);
        return text;
    }
    size_t m, at = 0;
    const struct pawl_str *got = pawl_token_files_paths(files, &m);
    for (size_t i = 0; i < m; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", i == 0 ? "" : " ", PAWL_ARG(got[i]));
    pawl_token_files_close(files);
    return text;
}

static const char *
expand_one(const char *path, const char *split)
{
    return expand(&path, 1, split);
}

/* A set of two train files and one val file, by the writer, and then its manifest edited to list all three. */
static void
make_set(void)
{
    static const uint32_t IDS[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    fresh_folder("set");
    put_shard("set/train-00001.bin", 2, 0, IDS, 4);
    put_shard("set/train-00002.bin", 2, 0, IDS, 5);
    put_shard("set/val-00001.bin", 2, 0, IDS, 6);
    put_shard("set/train-00009.bin", 2, 0, IDS, 7); /* not listed */
    put_text("set/_MANIFEST.json",
             "{\"tokenizer_id\":\"a\",\"tokenizer_sha256\":null,\"vocab_size\":9,\"doc_sep_id\":null,\"dataset\":\"a\","
             "\"version\":\"1\",\"corpus_manifest_sha256\":"
             "\"1111111111111111111111111111111111111111111111111111111111111111\",\"files\":["
             "{\"name\":\"train-00001.bin\",\"split\":\"train\",\"n_tokens\":4,\"n_docs\":2,\"sha256\":"
             "\"1111111111111111111111111111111111111111111111111111111111111111\"},"
             "{\"name\":\"train-00002.bin\",\"split\":\"train\",\"n_tokens\":5,\"n_docs\":3,\"sha256\":"
             "\"2222222222222222222222222222222222222222222222222222222222222222\"},"
             "{\"name\":\"val-00001.bin\",\"split\":\"val\",\"n_tokens\":6,\"n_docs\":4,\"sha256\":"
             "\"3333333333333333333333333333333333333333333333333333333333333333\"}]}");
}

/* Goal: what each kind of PATH stands for. */
static void
paths_expand(void **state)
{
    (void)state;
    make_set();
    assert_string_equal(expand_one("set", ""), "set/train-00001.bin set/train-00002.bin set/val-00001.bin");
    assert_string_equal(expand_one("set/", "train"), "set/train-00001.bin set/train-00002.bin");
    assert_string_equal(expand_one("set/_MANIFEST.json", "val"), "set/val-00001.bin");
    assert_string_equal(expand_one("set/val-00001.bin", "train"), "set/val-00001.bin"); /* a file is a file */
    assert_string_equal(expand_one("set", "test"),
                        "!not-found: _MANIFEST.json lists no file of the split 'test', the first of 3 is of 'train'");
    assert_int_equal(chdir("set"), 0);
    assert_string_equal(expand_one("_MANIFEST.json", "val"), "./val-00001.bin");
    assert_string_equal(expand_one(".", "val"), "./val-00001.bin");
    assert_int_equal(chdir(".."), 0);
    static const char *const TWO[] = { "set/val-00001.bin", "set" };
    assert_string_equal(expand(TWO, 2, "train"), "set/val-00001.bin set/train-00001.bin set/train-00002.bin");

    /* Documents are told by a manifest alone. */
    struct pawl_token_files *files;
    struct pawl_str paths[] = { PAWL_STR("set"), PAWL_STR("set/val-00001.bin") };
    assert_int_equal(pawl_token_files_open(paths, 2, PAWL_STR(""), &files, NULL), PAWL_OK);
    assert_int_equal(pawl_token_files_documents(files, 1), 3);
    assert_int_equal(pawl_token_files_documents(files, 3), UINT64_MAX);
    assert_int_equal(pawl_token_files_documents(files, 4), UINT64_MAX);
    pawl_token_files_close(files);

    /* Without a manifest: *.bin, in byte order. */
    fresh_folder("bare");
    put_text("bare/b.bin", "");
    put_text("bare/B.bin", "");
    put_text("bare/a10.bin", "");
    put_text("bare/a2.bin", "");
    put_text("bare/notes.txt", "");
    assert_int_equal(mkdir("bare/dir.bin", 0777), 0);
    assert_string_equal(expand_one("bare", "train"), "bare/B.bin bare/a10.bin bare/a2.bin bare/b.bin");

    fresh_folder("bare");
    assert_string_equal(expand_one("bare", ""),
                        "!content: a directory of token shards has a _MANIFEST.json or files named *.bin");
    put_text("bare/_MANIFEST.json", "{}");
    assert_string_equal(expand_one("bare", ""), "!manifest: the manifest lacks the key 'tokenizer_id'");
    assert_string_equal(expand_one("gone", ""), "gone"); /* opening it will tell */
    assert_memory_equal(expand_one("gone/_MANIFEST.json", ""), "!not-found: ", 12);
    assert_string_equal(expand_one("", ""), "!argument: the path is empty");
}

/* Goal: a manifest saves the scan, and no more than the scan. Method: a set with an id beyond its vocabulary. */
static void
a_manifest_vouches(void **state)
{
    (void)state;
    static const uint32_t IDS[] = { 1, 2, 3, 400, 5, 6, 7, 8 };
    const char *paths[] = { "set" }, *file[] = { "set/train-00001.bin" };
    struct pawl_stream *stream = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    make_set();
    put_shard("set/train-00001.bin", 2, 9, IDS, 4);
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 2, .batch = 1);
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, NULL), PAWL_OK);
    pawl_stream_close(stream);
    assert_int_equal(pawl_stream_open_z(file, 1, &options, &stream, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "id 400 at position 3 is outside the vocabulary of 9");

    /* It vouches for its own vocabulary: a caller with a smaller one has ids looked at. */
    put_shard("set/train-00001.bin", 2, 0, IDS, 4);
    options.vocabulary = 9;
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, NULL), PAWL_OK);
    pawl_stream_close(stream);
    options.vocabulary = 8;
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "id 400 at position 3 is outside the vocabulary of 8");

    /* A file of other ids than the row says is not vouched for. */
    options.vocabulary = 0;
    put_shard("set/train-00001.bin", 2, 0, IDS, 8);
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "_MANIFEST.json lists 4 ids in 'train-00001.bin', the file has 8");
    assert_string_equal(err.code, "manifest");
    assert_string_equal(err.path, "set/train-00001.bin");
    assert_int_equal(unlink("set/train-00002.bin"), 0);
    put_shard("set/train-00001.bin", 2, 0, IDS, 4);
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, &err), PAWL_NO_FILE);
    assert_string_equal(err.path, "set/train-00002.bin");
}

/* Goal: a stream takes the train files of a set unless told, and knows their digests. */
static void
a_stream_takes_a_split(void **state)
{
    (void)state;
    const char *paths[] = { "set" };
    struct pawl_stream *stream;
    size_t n;
    make_set();
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 2, .batch = 1);
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, NULL), PAWL_OK);
    const struct pawl_stream_shard *shards = pawl_stream_shards(stream, &n);
    assert_int_equal(n, 2);
    assert_true(pawl_str_equal(shards[1].name, PAWL_STR("train-00002.bin")));
    pawl_stream_close(stream);
    options.split = PAWL_STR("val");
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, NULL), PAWL_OK);
    shards = pawl_stream_shards(stream, &n);
    assert_int_equal(n, 1);
    assert_int_equal(shards[0].ids, 6);
    pawl_stream_close(stream);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_expand),
        cmocka_unit_test(a_manifest_vouches),
        cmocka_unit_test(a_stream_takes_a_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
