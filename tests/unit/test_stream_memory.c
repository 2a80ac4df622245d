#include "token_support.h"
#include "base/buffer.h"
#include "base/report.h"
#include "stream/stream_document.h"
#include "stream/token_verify.h"

/*
 * Goal: whichever allocation fails, the call answers PAWL_NO_MEMORY with a message, frees what it had (the leak checker of
 * the sanitizer build sees to that), and the next call works. Method: the linker hands the library's malloc, calloc and
 * realloc to these; the n-th answers NULL, for every n.
 */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static long until_failure = -1; /* allocations before the one that fails; below 0: none fails */
static bool has_failed;
static size_t largest; /* of the allocations so far */

static bool
fails_now(size_t bytes)
{
    if (bytes > largest)
        largest = bytes;
    if (until_failure < 0 || until_failure-- != 0)
        return false;
    has_failed = true;
    return true;
}

void *
__wrap_malloc(size_t bytes)
{
    return fails_now(bytes) ? NULL : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t n, size_t bytes)
{
    return fails_now(n * bytes) ? NULL : __real_calloc(n, bytes);
}

void *
__wrap_realloc(void *old, size_t bytes)
{
    return fails_now(bytes) ? NULL : __real_realloc(old, bytes);
}

static enum pawl_status
pack_with(enum pawl_pack_input input, enum pawl_pack_documents documents, const char *file, struct pawl_error *err)
{
    struct pawl_packed *packed = NULL;
    struct pawl_str files[] = { pawl_str_z(file), pawl_str_z(file) };
    struct pawl_pack_options options =
        PAWL_PACK_OPTIONS(.input = input, .documents = documents,
                          .field = pawl_str_z(documents == PAWL_PACK_JSONL ? "t" : ""),
                          .writer = PAWL_TOKEN_WRITER_OPTIONS(.replace = 1, .max_ids = 3));
    enum pawl_status st = pawl_pack(PAWL_STR("memory/set"), files, 2, &options, &packed, err);
    pawl_packed_free(packed);
    return st;
}

static enum pawl_status
pack_lines(struct pawl_error *err)
{
    return pack_with(PAWL_PACK_BYTES, PAWL_PACK_LINE, "memory/lines", err);
}

static enum pawl_status
pack_json(struct pawl_error *err)
{
    return pack_with(PAWL_PACK_BYTES, PAWL_PACK_JSONL, "memory/json", err);
}

static enum pawl_status
pack_shards(struct pawl_error *err)
{
    return pack_with(PAWL_PACK_SHARDS, PAWL_PACK_FILE, "memory/a.bin", err);
}

static enum pawl_status
use_stream(struct pawl_error *err)
{
    const char *paths[] = { "memory/a.bin", "memory/dir" };
    struct pawl_stream *stream = NULL;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    uint32_t inputs[4], targets[4];
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 2, .batch = 2, .seed = 3);
    enum pawl_status st = pawl_stream_open_z(paths, 2, &options, &stream, err);
    if (st == PAWL_OK)
        st = pawl_stream_next(stream, inputs, targets, err);
    if (st == PAWL_OK)
        st = pawl_stream_write_document(stream, &text, err);
    if (st == PAWL_OK)
        st = pawl_stream_restore_document(stream, text.data, text.len, false, err);
    pawl_buffer_release(&text);
    pawl_stream_close(stream);
    return st;
}

static enum pawl_status
verify_set(struct pawl_error *err)
{
    struct pawl_report *report = pawl_report_new();
    if (report == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st = pawl_token_verify(PAWL_STR("memory/dir"), 0, report, err);
    if (st == PAWL_OK && !pawl_report_ok(report))
        st = pawl_fail_memory(err, 1);
    pawl_report_free(report);
    return st;
}

static void
each_allocation_may_fail(void **state)
{
    (void)state;
    static enum pawl_status (*const CALLS[])(struct pawl_error *) = { pack_lines, pack_json, pack_shards, use_stream,
                                                                      verify_set };
    fresh_folder("memory");
    assert_int_equal(mkdir("memory/dir", 0777), 0);
    put_text("memory/lines", "ab\ncdefgh\ni\n");
    put_text("memory/json", "{\"t\": \"a\\nb\"}\n{\"x\": [{}], \"t\": \"\"}\n");
    put_counting_shard("memory/a.bin", 2, 0, 7);
    put_counting_shard("memory/dir/b.bin", 4, 9, 8);
    for (size_t c = 0; c < sizeof CALLS / sizeof CALLS[0]; c++) {
        for (long n = 0;; n++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            has_failed = false;
            until_failure = n;
            enum pawl_status st = CALLS[c](&err);
            until_failure = -1;
            if (!has_failed) {
                assert_int_equal(st, PAWL_OK);
                assert_true(n > 5);
                break;
            }
            if (st == PAWL_OK)
                continue; /* what could be done without: syncing the parent of a directory that was there */
            if (st != PAWL_NO_MEMORY)
                fail_msg("call %zu, allocation %ld: %s, '%s'", c, n, pawl_status_name(st), err.message);
            assert_string_equal(err.code, "no-memory");
        }
    }
}

/*
 * Goal: memory does not grow with a document that outgrows its file. Method: files and lines of 16 MiB behind a short one,
 * with a limit of 1000 ids; the largest block asked for is a buffer of a fixed size.
 */
static void
large_documents_are_not_held(void **state)
{
    (void)state;
    enum { LARGE = 16 << 20 };
    char *text = malloc(LARGE + 2);
    assert_non_null(text);
    memset(text, 'x', LARGE + 2);
    text[1] = '\n';
    fresh_folder("memory");
    put_file("memory/large", text, LARGE + 2);
    free(text);
    put_text("memory/small", "y");
    for (int documents = PAWL_PACK_FILE; documents <= PAWL_PACK_LINE; documents++) {
        struct pawl_str files[] = { PAWL_STR("memory/small"), PAWL_STR("memory/large") };
        struct pawl_pack_options options =
            PAWL_PACK_OPTIONS(.documents = (enum pawl_pack_documents)documents,
                              .writer = PAWL_TOKEN_WRITER_OPTIONS(.replace = 1, .max_ids = 1000));
        struct pawl_packed *packed;
        size_t n;
        largest = 0;
        assert_int_equal(pawl_pack(PAWL_STR("memory/set"), files, 2, &options, &packed, NULL), PAWL_OK);
        assert_true(largest <= (size_t)2 << 20);
        const struct pawl_token_file *rows = pawl_packed_files(packed, &n);
        assert_int_equal(n, 2);
        assert_int_equal(rows[1].ids, documents == PAWL_PACK_FILE ? LARGE + 2 : LARGE);
        assert_int_equal(rows[1].documents, 1);
        pawl_packed_free(packed);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(large_documents_are_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
