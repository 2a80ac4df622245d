#include "token_support.h"
#include "base/buffer.h"
#include "stream/stream_document.h"
#include "stream/stream_state.h"

/* A set of two small shards, and a stream over it. */
static const char *const PATHS[] = { "document/a.bin", "document/b.bin" };
#define SEED UINT64_C(0x2a)

static int
make_shards(void **state)
{
    (void)state;
    fresh_folder("document");
    put_counting_shard(PATHS[0], 2, 100, 40);
    put_counting_shard(PATHS[1], 4, 200, 23);
    return 0;
}

static struct pawl_stream *
open_with(size_t n, struct pawl_stream_options options)
{
    struct pawl_stream *stream = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_stream_open_z(PATHS, n, &options, &stream, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return stream;
}

static struct pawl_stream *
open_stream(void)
{
    return open_with(2, PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 1, .seed = SEED));
}

static void
walk(struct pawl_stream *stream, size_t windows)
{
    uint32_t inputs[64], targets[64];
    for (size_t i = 0; i < windows; i++)
        assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
}

/* The document as a C string; the caller frees. */
static char *
document_of(const struct pawl_stream *stream)
{
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    assert_int_equal(pawl_stream_write_document(stream, &out, NULL), PAWL_OK);
    assert_true(pawl_buffer_terminate(&out));
    return out.data;
}

/* `text` with the first `from` replaced by `to`; the caller frees. */
static char *
edited(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL)
        fail_msg("nothing to edit: '%s'", from);
    size_t head = (size_t)(at - text), all = strlen(text) + strlen(to) + 1;
    char *out = malloc(all);
    assert_non_null(out);
    (void)snprintf(out, all, "%.*s%s%s", (int)head, text, to, at + strlen(from));
    return out;
}

/* Goal: the bytes are those of the page, keys, order and indents. Method: the whole text, written by hand. */
static void
the_document_is_as_the_page_says(void **state)
{
    (void)state;
    struct pawl_stream *stream = open_stream();
    walk(stream, 10);
    char *text = document_of(stream), state_hex[17], inc_hex[17], expected[2048];
    pawl_pcg32_print(&stream->at.rng, state_hex, inc_hex);
    (void)snprintf(
        expected, sizeof expected,
        "{\n  \"version\": 1,\n  \"window\": 10,\n  \"seed\": \"000000000000002a\",\n  \"sources\": [\n    {\n"
        "      \"name\": \"0\",\n      \"order\": \"base-1\",\n      \"seed\": \"000000000000002a\",\n"
        "      \"shards\": [\n"
        "        {\n          \"name\": \"a.bin\",\n          \"ids\": 40,\n          \"width\": 2,\n"
        "          \"sha256\": null\n        },\n"
        "        {\n          \"name\": \"b.bin\",\n          \"ids\": 23,\n          \"width\": 4,\n"
        "          \"sha256\": null\n        }\n      ],\n"
        "      \"at\": [\n        {\n          \"windows\": 10,\n          \"pass\": 1,\n"
        "          \"shard\": 1,\n          \"offset\": %" PRIu64 ",\n          \"pcg_state\": \"%s\",\n"
        "          \"pcg_inc\": \"0000000000000007\"\n        }\n      ]\n    }\n  ],\n"
        "  \"segments\": [\n    {\n      \"start\": 0,\n      \"seq_len\": 4,\n      \"mix\": \"mix-1\",\n"
        "      \"block\": 65536,\n      \"weights\": [\n        1\n      ],\n      \"bases\": [\n        0\n"
        "      ],\n      \"shards\": [\n        2\n      ]\n    }\n  ]\n}\n",
        stream->at.offset, state_hex);
    assert_string_equal(text, expected);
    free(text);
    pawl_stream_close(stream);
}

/*
 * Goal: save, load, save gives the same bytes wherever a stream stands, and the windows go on. Method: at each of 60
 * windows, into a stream that was opened with another seed, by the document and by the bare cursor.
 */
static void
every_position_comes_back(void **state)
{
    (void)state;
    struct pawl_stream *stream = open_stream();
    for (size_t g = 0; g < 60; g++) {
        char *text = document_of(stream);
        struct pawl_stream *other = open_with(2, PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 1, .seed = 7));
        assert_int_equal(pawl_stream_check_document(other, text, strlen(text), NULL), PAWL_OK);
        assert_int_equal(pawl_stream_restore_document(other, text, strlen(text), false, NULL), PAWL_OK);
        char *again = document_of(other);
        assert_string_equal(again, text);
        free(again);
        uint64_t seed = 0;
        assert_true(pawl_stream_seed(other, &seed) && seed == SEED);

        struct pawl_stream *bare = open_stream();
        struct pawl_stream_cursor cursor;
        pawl_stream_cursor(stream, &cursor);
        assert_int_equal(pawl_stream_restore(bare, &cursor, NULL), PAWL_OK);
        again = document_of(bare);
        assert_string_equal(again, text);
        free(again);
        free(text);

        uint32_t a[4], b[4], c[4], targets[4];
        assert_int_equal(pawl_stream_next(stream, a, targets, NULL), PAWL_OK);
        assert_int_equal(pawl_stream_next(other, b, targets, NULL), PAWL_OK);
        assert_int_equal(pawl_stream_next(bare, c, targets, NULL), PAWL_OK);
        assert_memory_equal(a, b, sizeof a);
        assert_memory_equal(a, c, sizeof a);
        pawl_stream_close(other);
        pawl_stream_close(bare);
    }
    pawl_stream_close(stream);
}

/* Goal: a generator that was handed over has no seed to write, and a cursor that belongs to another generator no count. */
static void
a_stream_without_a_seed_says_so(void **state)
{
    (void)state;
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 9, 54);
    struct pawl_stream *stream = open_with(2, PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 1, .rng = &rng));
    walk(stream, 20);
    char *text = document_of(stream);
    assert_non_null(strstr(text, "\"window\": 20,\n  \"seed\": null,"));
    assert_non_null(strstr(text, "\"order\": \"base-1\",\n      \"seed\": null,"));

    /* The bare cursor of that run, in a stream of a seed: the seed is not its, and the count begins there. */
    struct pawl_stream_cursor cursor;
    pawl_stream_cursor(stream, &cursor);
    struct pawl_stream *other = open_stream();
    assert_int_equal(pawl_stream_restore(other, &cursor, NULL), PAWL_OK);
    walk(other, 3);
    char *foreign = document_of(other);
    assert_non_null(strstr(foreign, "\"window\": 3,\n  \"seed\": null,"));
    free(foreign);
    pawl_stream_close(other);

    /* A document without a seed is taken into a stream with one, and the seed goes. */
    uint64_t seed = 1;
    other = open_stream();
    assert_true(pawl_stream_seed(other, &seed) && seed == SEED);
    assert_int_equal(pawl_stream_restore_document(other, text, strlen(text), false, NULL), PAWL_OK);
    assert_false(pawl_stream_seed(other, &seed) || pawl_stream_seed(stream, &seed));
    assert_int_equal(seed, SEED);
    char *again = document_of(other);
    assert_string_equal(again, text);
    free(again);
    free(text);
    pawl_stream_close(other);
    pawl_stream_close(stream);
}

static void
expect_refusal(const char *text, enum pawl_status status, const char *code, const char *message)
{
    struct pawl_stream *stream = open_stream();
    walk(stream, 3);
    char *before = document_of(stream);
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_stream_restore_document(stream, text, strlen(text), false, &err);
    assert_string_equal(err.message, message);
    assert_string_equal(err.code, code);
    assert_int_equal(st, status);
    char *after = document_of(stream);
    assert_string_equal(after, before);
    free(before);
    free(after);
    pawl_stream_close(stream);
}

/* Goal: another data set is refused by the first difference, and let pass only when asked. Method: one edit each. */
static void
another_data_set_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } CASES[] = {
        { "a.bin", "c.bin", "another data set: shard 0 was 'c.bin', now it is 'a.bin'" },
        { "\"ids\": 23", "\"ids\": 24", "another data set: shard 1 ('b.bin') had 24 ids, now it has 23" },
        { "\"ids\": 23", "\"ids\": 22", "another data set: shard 1 ('b.bin') had 22 ids, now it has 23" },
        { "\"width\": 4", "\"width\": 2", "another data set: shard 1 ('b.bin') had ids of 2 bytes, now of 4" },
        { "\"seq_len\": 4", "\"seq_len\": 8", "another stream: its windows had 8 ids, now they have 4" },
    };
    struct pawl_stream *stream = open_stream();
    walk(stream, 12);
    char *text = document_of(stream);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *other = edited(text, CASES[i].from, CASES[i].to);
        expect_refusal(other, PAWL_MISMATCH, "mismatch", CASES[i].message);
        struct pawl_stream *fresh = open_stream();
        assert_int_equal(pawl_stream_check_document(fresh, other, strlen(other), NULL), PAWL_MISMATCH);
        assert_int_equal(pawl_stream_restore_document(fresh, other, strlen(other), true, NULL), PAWL_OK);
        assert_int_equal(fresh->at.offset, stream->at.offset);
        assert_int_equal(fresh->at.shard, stream->at.shard);
        pawl_stream_close(fresh);
        free(other);
    }
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_stream *one = open_with(1, PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 1));
    assert_int_equal(pawl_stream_check_document(one, text, strlen(text), &err), PAWL_MISMATCH);
    assert_string_equal(err.message, "another data set: it had 2 shards, now it has 1");
    /* Even when other data are let pass, a position must be inside them. */
    assert_int_equal(pawl_stream_restore_document(one, text, strlen(text), true, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the cursor is in shard 1 (from 0), the stream has 1");
    pawl_stream_close(one);
    free(text);
    pawl_stream_close(stream);
}

/* Goal: a hash counts where both are known. */
static void
a_changed_hash_is_another_data_set(void **state)
{
    (void)state;
    struct pawl_stream *stream = open_stream();
    stream->has_sha256[1] = true;
    memset(stream->sha256[1], 0xab, 32);
    char *text = document_of(stream), message[512], ab[65], cd[65];
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_stream_check_document(stream, text, strlen(text), NULL), PAWL_OK);
    for (int i = 0; i < 64; i++) {
        ab[i] = "ab"[i % 2];
        cd[i] = "cd"[i % 2];
    }
    ab[64] = cd[64] = '\0';
    memset(stream->sha256[1], 0xcd, 32);
    assert_int_equal(pawl_stream_check_document(stream, text, strlen(text), &err), PAWL_MISMATCH);
    (void)snprintf(message, sizeof message, "another data set: shard 1 ('b.bin') had the sha256 %s, now it has %s", ab,
                   cd);
    assert_string_equal(err.message, message);
    stream->has_sha256[1] = false;
    assert_int_equal(pawl_stream_check_document(stream, text, strlen(text), NULL), PAWL_OK);
    free(text);
    pawl_stream_close(stream);
}

/* Goal: what is no such document is refused, with the reason, and the stream stays. Method: one edit each. */
static void
broken_documents_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } CASES[] = {
        { "\"version\": 1", "\"version\": 2", "'version' is not an integer from 1 to 1" },
        { "\"version\": 1,", "", "'the document' lacks the key 'version'" },
        { "\"version\": 1,", "\"version\": 1, \"extra\": 0,", "'the document' has an unknown key 'extra'" },
        { "\"window\": 12", "\"window\": 12.0", "'window' is not an integer from 0 to 9007199254740991" },
        { "\"windows\": 12", "\"windows\": 13", "'windows' is not the 'window' of the stream, which has one source" },
        { "\"seed\": \"000000000000002a\"", "\"seed\": \"2a\"", "'seed' is not 16 lowercase hex digits or null" },
        { "\"pcg_inc\": \"0000000000000007\"", "\"pcg_inc\": \"0000000000000006\"",
          "'at' is not the state of a generator: 16 lowercase hex digits twice, the increment odd" },
        { "\"pass\": 1", "\"pass\": 2", "pass 2 of 2 shards is over shard 0, not 1" },
        { "\"sha256\": null", "\"sha256\": \"00\"", "'sha256' is not 64 lowercase hex digits or null" },
        { "\"width\": 2", "\"width\": 3", "'width' is not 1, 2 or 4" },
        { "\"name\": \"a.bin\"", "\"name\": \"\"", "'name' is not a string of at least one character" },
        { "\"mix-1\"", "\"mix-2\"", "'mix' is not mix-1" },
        { "\"seq_len\": 4", "\"seq_len\": 0", "'seq_len' is not an integer from 1 to 2147483646" },
        { "\"block\": 65536", "\"block\": 0", "'block' is not an integer from 1 to 16777216" },
        { "\"bases\": [\n        0\n      ]", "\"bases\": []", "'bases' is not a list of at least one item" },
        { "\"bases\": [\n        0\n      ]", "\"bases\": [0, 0]",
          "'bases' is not a list of one integer, as there is one source" },
    };
    struct pawl_stream *stream = open_stream();
    walk(stream, 12);
    char *text = document_of(stream);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *other = edited(text, CASES[i].from, CASES[i].to);
        expect_refusal(other, PAWL_CORRUPT, "content", CASES[i].message);
        free(other);
    }
    /* Every beginning of it is refused too, as text that ends too early. */
    for (size_t n = 0; n + 2 < strlen(text); n++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        assert_int_equal(pawl_stream_restore_document(stream, text, n, false, &err), PAWL_CORRUPT);
        assert_string_equal(err.code, "content");
    }
    char *other = edited(text, "\"offset\": ", "\"offset\": 900");
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_stream_restore_document(stream, other, strlen(other), false, &err), PAWL_ARGUMENT);
    free(other);
    free(text);
    pawl_stream_close(stream);
}

/* Goal: a document of a richer stream is not taken for a plain one. Method: those of the reference. */
static void
richer_streams_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *file, *found;
    } CASES[] = {
        { "plain", "several sources" },         { "three", "several sources" },
        { "append-base", "several segments" },  { "skip-one", "several segments" },
        { "seq-len-base", "several segments" }, { "append-round", "several segments" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char path[512], message[256];
        (void)snprintf(path, sizeof path, GOLDEN "cursors/%s.json", CASES[i].file);
        (void)snprintf(message, sizeof message,
                       "the cursor is of a stream with %s; this version reads one source in the order base-1",
                       CASES[i].found);
        char *text = get_file(path, NULL);
        expect_refusal(text, PAWL_UNSUPPORTED, "unsupported", message);
        free(text);
    }
    struct pawl_stream *stream = open_stream();
    char *text = document_of(stream), *other = edited(text, "base-1", "windows-1");
    expect_refusal(other, PAWL_UNSUPPORTED, "unsupported",
                   "the cursor is of a stream with windows-1; this version reads one source in the order base-1");
    free(other);
    free(text);
    pawl_stream_close(stream);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_is_as_the_page_says),   cmocka_unit_test(every_position_comes_back),
        cmocka_unit_test(a_stream_without_a_seed_says_so),    cmocka_unit_test(another_data_set_is_named),
        cmocka_unit_test(a_changed_hash_is_another_data_set), cmocka_unit_test(broken_documents_are_refused),
        cmocka_unit_test(richer_streams_are_named),
    };
    return cmocka_run_group_tests(tests, make_shards, NULL);
}
