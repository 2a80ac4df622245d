#include "token_support.h"
#include "stream/token_writer.h"

#include <fcntl.h>

/*
 * Thousands of files are made here to see what is in them, and a disk takes milliseconds to sync each: the linker puts this in the
 * place of fsync. That they are synced, and in which order, is shown by test_token_writer_crash.
 */
int __wrap_fsync(int fd);
int
__wrap_fsync(int fd)
{
    return fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

static struct pawl_token_writer *
open_writer(struct pawl_token_writer_options options)
{
    struct pawl_token_writer *writer = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_token_writer_open(PAWL_STR("set"), &options, &writer, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return writer;
}

/* A document of n ids that count up from `first`. */
static void
add_document(struct pawl_token_writer *writer, uint32_t first, size_t n)
{
    assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
    for (size_t i = 0; i < n; i++) {
        uint32_t id = first + (uint32_t)i;
        assert_int_equal(pawl_token_writer_add(writer, &id, 1, NULL), PAWL_OK);
    }
}

/* Finish, close, and say what the files hold: "3/2 4/1": ids and documents. Static storage. */
static const char *
finish(struct pawl_token_writer *writer)
{
    static char text[1024];
    const struct pawl_token_file *files;
    size_t n, at = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_token_writer_finish(writer, &files, &n, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%" PRIu64 "/%" PRIu64, i == 0 ? "" : " ", files[i].ids,
                               files[i].documents);
    pawl_token_writer_close(writer);
    return text;
}

/* All ids of the files of the set, in order: they must count up from 0. */
static void
expect_counting(size_t all)
{
    struct pawl_token_files *files;
    struct pawl_str path = PAWL_STR("set");
    size_t n, seen = 0;
    assert_int_equal(pawl_token_files_open(&path, 1, PAWL_STR(""), &files, NULL), PAWL_OK);
    const struct pawl_str *paths = pawl_token_files_paths(files, &n);
    for (size_t i = 0; i < n; i++) {
        struct pawl_shard *shard;
        assert_int_equal(pawl_shard_open(paths[i], NULL, &shard, NULL), PAWL_OK);
        for (uint64_t k = 0; k < pawl_shard_info(shard).ids; k++) {
            uint32_t id;
            assert_int_equal(pawl_shard_read(shard, k, 1, &id, NULL), PAWL_OK);
            assert_int_equal(id, seen++);
        }
        pawl_shard_close(shard);
    }
    pawl_token_files_close(files);
    assert_int_equal(seen, all);
}

/* Goal: where a new file starts. Method: sizes of documents, and what each file then holds, with a limit of 10. */
static void
documents_stay_whole(void **state)
{
    (void)state;
    static const struct {
        size_t sizes[8], n;
        const char *files;
    } CASES[] = {
        { { 4, 6 }, 2, "10/2" },      /* full to the last id */
        { { 4, 7 }, 2, "4/1 7/1" },   /* one more would push it past */
        { { 10, 1 }, 2, "10/1 1/1" }, /* */
        { { 11 }, 1, "11/1" },        /* longer than a file: one to itself */
        { { 3, 25, 3 }, 3, "3/1 25/1 3/1" },
        { { 25, 25 }, 2, "25/1 25/1" },
        { { 25, 0, 2 }, 3, "25/2 2/1" }, /* no id pushes nothing */
        { { 0, 0, 3 }, 3, "3/3" },
        { { 0, 11, 0 }, 3, "11/3" },
        { { 0 }, 1, "0/1" },
        { { 0 }, 0, "0/0" }, /* no ids at all: one file of none */
        { { 9, 1, 1, 9, 1, 9, 10, 1 }, 8, "10/2 10/2 10/2 10/1 1/1" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        for (int known = 0; known < 2; known++) {
            fresh_folder("set");
            struct pawl_token_writer *writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.max_ids = 10));
            uint32_t next = 0;
            for (size_t d = 0; d < CASES[i].n; d++) {
                if (known == 0) {
                    add_document(writer, next, CASES[i].sizes[d]);
                    next += (uint32_t)CASES[i].sizes[d];
                    continue;
                }
                assert_int_equal(pawl_token_writer_document_of(writer, CASES[i].sizes[d], NULL), PAWL_OK);
                for (size_t k = 0; k < CASES[i].sizes[d]; k++, next++)
                    assert_int_equal(pawl_token_writer_add(writer, &next, 1, NULL), PAWL_OK);
            }
            assert_string_equal(finish(writer), CASES[i].files);
            expect_counting(next);
        }
    }
}

/* Goal: the separator is the document's, in its place and in its count; an empty document is the separator alone. */
static void
the_separator_counts(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        fresh_folder("set");
        struct pawl_token_writer *writer =
            open_writer(PAWL_TOKEN_WRITER_OPTIONS(.max_ids = 10, .has_separator = 1, .separator = 7));
        static const size_t SIZES[] = { 4, 4, 0, 9, 10 };
        for (size_t d = 0; d < 5; d++) {
            static const uint32_t IDS[10] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
            if (known == 0)
                assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
            else
                assert_int_equal(pawl_token_writer_document_of(writer, SIZES[d], NULL), PAWL_OK);
            assert_int_equal(pawl_token_writer_add(writer, IDS, SIZES[d], NULL), PAWL_OK);
        }
        assert_string_equal(finish(writer), "10/2 1/1 10/1 11/1");
    }
}

/* Goal: any sequence of documents, in any pieces, gives the files that a simple model says. Method: 60 seeded sets. */
static void
random_sets_are_as_the_model_says(void **state)
{
    (void)state;
    uint64_t seed = 20240520;
    print_message("seed %" PRIu64 "\n", seed);
    for (int run = 0; run < 60; run++) {
        const uint64_t max = 1 + pick(&seed, 40);
        const uint8_t width = pick(&seed, 2) == 0 ? 2 : 4;
        fresh_folder("set");
        struct pawl_token_writer *writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.max_ids = max, .width = width));
        uint32_t next = 0;
        uint64_t ids = 0, documents = 0, at = 0;
        char model[1024] = "";
        for (uint64_t d = pick(&seed, 30); d > 0; d--) {
            uint64_t n = pick(&seed, 4) == 0 ? pick(&seed, 100) : pick(&seed, 8);
            if (n != 0 && ids != 0 && ids + n > max) {
                at += (uint64_t)snprintf(model + at, sizeof model - at, "%" PRIu64 "/%" PRIu64 " ", ids, documents);
                ids = documents = 0;
            }
            ids += n;
            documents++;
            if (pick(&seed, 2) == 0)
                assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
            else
                assert_int_equal(pawl_token_writer_document_of(writer, n, NULL), PAWL_OK);
            while (n != 0) {
                uint32_t piece[100];
                size_t m = 1 + pick(&seed, n);
                for (size_t i = 0; i < m; i++)
                    piece[i] = next++;
                assert_int_equal(pawl_token_writer_add(writer, piece, m, NULL), PAWL_OK);
                n -= m;
            }
        }
        (void)snprintf(model + at, sizeof model - at, "%" PRIu64 "/%" PRIu64, ids, documents);
        assert_string_equal(finish(writer), model);
        expect_counting(next);
    }
}

/* Goal: bytes and ids of both widths arrive as they are, in pieces larger than any buffer. */
static void
large_pieces_arrive(void **state)
{
    (void)state;
    enum { N = 3000001 };
    unsigned char *bytes = malloc(N);
    uint32_t *ids = malloc(N * sizeof *ids), *got = malloc(N * sizeof *got);
    for (uint8_t width = 2; width <= 4; width += 2) {
        for (size_t i = 0; i < N; i++) {
            ids[i] = (uint32_t)(i * 2654435761u) >> (width == 2 ? 16 : 0);
            bytes[i] = (unsigned char)(i * 31 + (i >> 8));
        }
        fresh_folder("set");
        struct pawl_token_writer *writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.width = width));
        assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
        assert_int_equal(pawl_token_writer_add(writer, ids, N, NULL), PAWL_OK);
        assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
        assert_int_equal(pawl_token_writer_add_bytes(writer, bytes, N, NULL), PAWL_OK);
        assert_string_equal(finish(writer), "6000002/2");
        struct pawl_shard *shard;
        assert_int_equal(pawl_shard_open(PAWL_STR("set/train-00001.bin"), NULL, &shard, NULL), PAWL_OK);
        assert_int_equal(pawl_shard_info(shard).width, width);
        assert_int_equal(pawl_shard_read(shard, 0, N, got, NULL), PAWL_OK);
        assert_memory_equal(got, ids, N * sizeof *ids);
        assert_int_equal(pawl_shard_read(shard, N, N, got, NULL), PAWL_OK);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(got[i], bytes[i]);
        pawl_shard_close(shard);
    }
    free(bytes);
    free(ids);
    free(got);
}

static void
expect_failure(struct pawl_token_writer_options options, enum pawl_status status, const char *message)
{
    struct pawl_token_writer *writer = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_token_writer_open(PAWL_STR("set"), &options, &writer, &err);
    assert_string_equal(err.message, message);
    assert_int_equal(st, status);
    assert_null(writer);
}

/* Goal: options that make no set are refused by name. */
static void
bad_options_are_refused(void **state)
{
    (void)state;
    fresh_folder("set");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.prefix = PAWL_STR("Train")), PAWL_ARGUMENT,
                   "the prefix 'Train' is not of a-z, 0-9, '.', '_' and '-', a letter or digit first");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.prefix = PAWL_STR("../x")), PAWL_ARGUMENT,
                   "the prefix '../x' is not of a-z, 0-9, '.', '_' and '-', a letter or digit first");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.tokenizer_id = PAWL_STR("-a")), PAWL_ARGUMENT,
                   "the tokenizer's name '-a' is not of a-z, 0-9, '.', '_' and '-', a letter or digit first");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.dataset = PAWL_STR("\xff")), PAWL_ARGUMENT,
                   "the name of the data set '\\xff' is not UTF-8");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.version = PAWL_STR("\xff")), PAWL_ARGUMENT,
                   "the version of the data set '\\xff' is not UTF-8");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.width = 3), PAWL_ARGUMENT, "ids have 2 or 4 bytes, not 3");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.max_ids = UINT64_C(1) << 31), PAWL_ARGUMENT,
                   "a shard holds at most 2147483647 ids, 2147483648 were asked for");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = UINT64_MAX), PAWL_ARGUMENT,
                   "a vocabulary of 18446744073709551615 is too large");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = 256, .has_separator = 1, .separator = 256),
                   PAWL_OUT_OF_RANGE, "the separator 256 is outside the vocabulary of 256");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.width = 2, .has_separator = 1, .separator = 65536), PAWL_OUT_OF_RANGE,
                   "the separator 65536 does not fit in 16 bits");
}

/* Goal: an id that the set can't hold is refused, and the writer goes on; calls out of order are the caller's fault. */
static void
bad_ids_are_refused(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    uint32_t id = 300;
    fresh_folder("set");
    struct pawl_token_writer *writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = 250));
    assert_int_equal(pawl_token_writer_add(writer, &id, 1, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "ids were given before a document was begun");
    assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
    assert_int_equal(pawl_token_writer_add(writer, &id, 1, &err), PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message, "id 300 is outside the vocabulary of 250");
    assert_int_equal(pawl_token_writer_add_bytes(writer, "a\xfa", 2, &err), PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message, "id 250 is outside the vocabulary of 250");
    assert_int_equal(pawl_token_writer_document_of(writer, UINT64_C(1) << 31, &err), PAWL_LIMIT);
    assert_string_equal(err.message, "a document has at most 2147483647 ids with its separator, this one 2147483648");
    assert_string_equal(finish(writer), "0/1");

    fresh_folder("set");
    writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.width = 2));
    id = 65536;
    assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
    assert_int_equal(pawl_token_writer_add(writer, &id, 1, &err), PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message, "id 65536 does not fit in 16 bits");
    assert_int_equal(pawl_token_writer_finish(writer, NULL, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_token_writer_finish(writer, NULL, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the writer of 'set' has finished");
    pawl_token_writer_close(writer);
}

/* A set of one file of one id. */
static void
make_set(const char *prefix, uint8_t replace)
{
    struct pawl_token_writer *writer =
        open_writer(PAWL_TOKEN_WRITER_OPTIONS(.prefix = pawl_str_z(prefix), .replace = replace));
    add_document(writer, 0, 1);
    (void)finish(writer);
}

/*
 * Goal: what OUTDIR may be. Method: new (with parents), empty, left by an interrupted run; a set, and other files, are
 * refused and untouched; `replace` takes the old set's files away and nothing else.
 */
static void
what_the_directory_may_hold(void **state)
{
    (void)state;
    fresh_folder("new");
    struct pawl_token_writer *writer = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_token_writer_options plain = PAWL_TOKEN_WRITER_OPTIONS(.width = 0);
    assert_int_equal(pawl_token_writer_open(PAWL_STR("new/a/b"), &plain, &writer, NULL), PAWL_OK);
    assert_int_equal(pawl_token_writer_finish(writer, NULL, NULL, NULL), PAWL_OK);
    pawl_token_writer_close(writer);
    assert_true(is_there("new/a/b/train-00001.bin"));

    /* Left by an interrupted run: shards of any prefix and temporaries, no manifest. They go. */
    fresh_folder("set");
    put_text("set/train-00001.bin", "half");
    put_text("set/val-00007.bin", "half");
    put_text("set/.train-00002.bin.4711-0.tmp", "half");
    put_text("set/_MANIFEST.json.tmp", "half");
    make_set("train", 0);
    assert_false(is_there("set/val-00007.bin"));
    assert_false(is_there("set/.train-00002.bin.4711-0.tmp"));
    assert_false(is_there("set/_MANIFEST.json.tmp"));
    expect_counting(1);

    /* A set is not replaced unless asked. */
    char *before = get_file("set/_MANIFEST.json", NULL);
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.width = 0), PAWL_EXISTS,
                   "'set' holds a data set and is not to be replaced");
    char *after = get_file("set/_MANIFEST.json", NULL);
    assert_string_equal(after, before);
    free(before);
    free(after);

    /* Replaced by another split: the old set's file goes, what is not of it stays. */
    put_text("set/README", "mine");
    put_text("set/other-00001.bin", "mine too: no manifest lists it");
    make_set("val", 1);
    assert_false(is_there("set/train-00001.bin"));
    assert_true(is_there("set/README"));
    assert_true(is_there("set/other-00001.bin"));
    assert_true(is_there("set/val-00001.bin"));

    /* A replace that never begins a shard leaves the old set alone. */
    writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.replace = 1));
    assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
    pawl_token_writer_close(writer);
    assert_true(is_there("set/val-00001.bin"));
    assert_true(is_there("set/_MANIFEST.json"));

    /* A broken manifest can be replaced too. */
    put_text("set/_MANIFEST.json", "{");
    make_set("train", 1);
    assert_false(is_there("set/val-00001.bin"));

    /* Files that are not ours are refused, with or without shards. */
    fresh_folder("set");
    put_text("set/notes", "mine");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.width = 0), PAWL_EXISTS,
                   "'set' must be empty for a data set, it holds 'notes'");
    fresh_folder("set");
    assert_int_equal(mkdir("set/train-00001.bin", 0777), 0);
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.width = 0), PAWL_EXISTS,
                   "'set' must be empty for a data set, it holds 'train-00001.bin'");
    fresh_folder("set");
    put_text("set/train-000001.bin", "six digits are another program's");
    expect_failure(PAWL_TOKEN_WRITER_OPTIONS(.width = 0), PAWL_EXISTS,
                   "'set' must be empty for a data set, it holds 'train-000001.bin'");

    /* A second writer of the same directory is told. */
    fresh_folder("set");
    writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.width = 0));
    struct pawl_token_writer *second = NULL;
    assert_int_equal(pawl_token_writer_open(PAWL_STR("set"), &plain, &second, &err), PAWL_BUSY);
    pawl_token_writer_close(writer);

    /* Closed half-way: no manifest, no temporary. */
    writer = open_writer(PAWL_TOKEN_WRITER_OPTIONS(.max_ids = 2));
    add_document(writer, 0, 2);
    add_document(writer, 2, 2);
    add_document(writer, 4, 2);
    pawl_token_writer_close(writer);
    assert_true(is_there("set/train-00001.bin"));
    assert_int_equal(system("test -z \"$(ls -A set | grep -v '^train-00001.bin$')\""), 0);
}

/*
 * Goal: a set that was not made leaves no trace, and what was there stays. Method: a path of two levels, refused after and before it was
 * made, closed in the first file, closed after a file was published; and a directory that was there, even an empty one.
 */
static void
a_refusal_leaves_no_directory(void **state)
{
    (void)state;
    const struct pawl_token_writer_options plain = PAWL_TOKEN_WRITER_OPTIONS(.max_ids = 2);
    struct pawl_str missing = PAWL_STR("missing");
    struct pawl_token_writer *writer = NULL;
    fresh_folder("set");
    assert_int_equal(pawl_pack(PAWL_STR("set/a/b"), &missing, 1, NULL, NULL, NULL), PAWL_NO_FILE);
    assert_false(is_there("set/a"));
    assert_int_equal(pawl_pack(PAWL_STR("set"), &missing, 1, NULL, NULL, NULL), PAWL_NO_FILE);
    assert_true(is_there("set"));

    assert_int_equal(pawl_token_writer_open(PAWL_STR("set/a/b/"), &plain, &writer, NULL), PAWL_OK);
    add_document(writer, 0, 1);
    struct pawl_token_writer *second = NULL;
    assert_int_equal(pawl_token_writer_open(PAWL_STR("set/a/b"), &plain, &second, NULL), PAWL_BUSY);
    assert_true(is_there("set/a/b"));
    pawl_token_writer_close(writer);
    assert_false(is_there("set/a"));

    assert_int_equal(pawl_token_writer_open(PAWL_STR("set/a/b"), &plain, &writer, NULL), PAWL_OK);
    add_document(writer, 0, 2);
    add_document(writer, 2, 2);
    add_document(writer, 4, 2);
    pawl_token_writer_close(writer);
    assert_true(is_there("set/a/b/train-00001.bin"));

    /* Even a set without ids stays when it was finished. */
    assert_int_equal(pawl_token_writer_open(PAWL_STR("set/c"), &plain, &writer, NULL), PAWL_OK);
    assert_string_equal(finish(writer), "0/0");
    assert_true(is_there("set/c/_MANIFEST.json"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_stay_whole),
        cmocka_unit_test(the_separator_counts),
        cmocka_unit_test(random_sets_are_as_the_model_says),
        cmocka_unit_test(large_pieces_arrive),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(bad_ids_are_refused),
        cmocka_unit_test(what_the_directory_may_hold),
        cmocka_unit_test(a_refusal_leaves_no_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
