/* Rewriting models: to sinks, large ones, canceled, and from an input that changes. */
#include "unit/convert_tools.h"

#include <inttypes.h>

struct collected {
    unsigned char *bytes; /* NULL: only counted */
    size_t n, capacity;
    size_t fails_at; /* 0: never */
};

static enum pawl_status
collect(void *context, const void *data, size_t n, struct pawl_error *sink_err)
{
    struct collected *c = context;
    assert_non_null(sink_err);
    if (c->fails_at != 0 && c->n + n >= c->fails_at) {
        sink_err->status = PAWL_IO;
        (void)snprintf(sink_err->message, sizeof sink_err->message, "the pipe broke");
        return PAWL_IO;
    }
    if (c->bytes != NULL) {
        assert_true(n <= c->capacity - c->n);
        memcpy(c->bytes + c->n, data, n);
    }
    c->n += n;
    return PAWL_OK;
}

/* Goal: a sink gets the file's bytes in order; its failure is the answer. */
static void
writes_to_a_sink(void **state)
{
    struct collected c = { .bytes = malloc(10000), .capacity = 10000 };
    const struct pawl_sink sink = { collect, &c };
    struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.sink = &sink);
    size_t n;
    (void)state;
    put_tied("in.safetensors");
    convert("in.safetensors", "want.safetensors", NULL);
    convert("in.safetensors", "", &options);
    char *want = st_slurp("want.safetensors", &n);
    assert_int_equal(c.n, n);
    assert_memory_equal(c.bytes, want, n);
    free(want);
    c.n = 0;
    c.fails_at = 1;
    assert_int_equal(try_convert("in.safetensors", "", &options, NULL), PAWL_IO);
    assert_string_equal(err.message, "the pipe broke");
    options.is_directory = 1;
    assert_int_equal(try_convert("in.safetensors", "", &options, NULL), PAWL_ARGUMENT);
    free(c.bytes);
}

/* A sparse model of tensors of `each` bytes, with a word at the begin of each; named so that the output's order is not the input's. */
static void
put_large(const char *path, size_t n, uint64_t each)
{
    struct pawl_buffer header = PAWL_BUFFER_INIT;
    assert_true(pawl_buffer_add_z(&header, "{"));
    for (size_t i = 0; i < n; i++)
        assert_true(pawl_buffer_printf(&header,
                                       "%s\"t%03zu\":{\"dtype\":\"U8\",\"shape\":[%" PRIu64
                                       "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                                       i == 0 ? "" : ",", (i * 7 + 3) % n, each, i * each, (i + 1) * each));
    assert_true(pawl_buffer_add_z(&header, "}"));
    size_t bytes;
    unsigned char *begin = st_file(pawl_buffer_str(&header), 0, &bytes);
    put_bytes(path, begin, bytes);
    free(begin);
    pawl_buffer_release(&header);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)(bytes + n * each)) == 0);
    for (size_t i = 0; i < n; i++) {
        const unsigned char word[2] = { (unsigned char)((i * 7 + 3) % n), 0xaa };
        assert_int_equal(pwrite(fd, word, 2, (off_t)(bytes + i * each)), 2);
    }
    assert_int_equal(close(fd), 0);
}

/*
 * Goal: with a thread that reads ahead, the bytes are the same and in order. Method: 48 MiB whose tensors do not end with blocks, to a
 * sink; every tensor's first bytes tell which it is, and the zeros between are counted.
 */
static void
a_large_model_is_in_order(void **state)
{
    const size_t n = 48;
    const uint64_t each = (1 << 20) + 13;
    struct collected c = { .capacity = 60 << 20 };
    const struct pawl_sink sink = { collect, &c };
    const struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.sink = &sink);
    (void)state;
    c.bytes = malloc(c.capacity);
    assert_non_null(c.bytes);
    put_large("in.safetensors", n, each);
    convert("in.safetensors", "", &options);
    assert_true(c.n > n * each);
    const unsigned char *data = c.bytes + c.n - n * each;
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(data[i * each], i);
        assert_int_equal(data[i * each + 1], 0xaa);
    }
    for (size_t i = 0; i < n * each; i++)
        zeros += data[i] == 0;
    assert_int_equal(zeros, n * each - 2 * n + 1); /* one name is 0 */

    /* to files, past the cache: the same */
    size_t size;
    shard("in.safetensors", "shards", 20 << 20);
    convert("shards", "out.safetensors", NULL);
    char *found = st_slurp("out.safetensors", &size);
    assert_int_equal(size, c.n);
    assert_true(memcmp(found, c.bytes, size) == 0);
    free(found);
    free(c.bytes);
}

/* Four blocks, the gather buffer, and room for a heap; a sanitizer of threads has four shadows of each byte. */
#if defined(__SANITIZE_THREAD__)
#define MEMORY_MAX ((size_t)160 << 20)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MEMORY_MAX ((size_t)160 << 20)
#endif
#endif
#ifndef MEMORY_MAX
#define MEMORY_MAX ((size_t)32 << 20)
#endif

struct watching {
    size_t calls;
    uint64_t last;
    uint64_t cancel_at; /* bytes; UINT64_MAX: never */
    const char *cut;    /* a file that is cut when the bytes are reached */
    size_t rss_most, rss_first;
};

static size_t
resident_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int
watch(void *context, uint64_t done, uint64_t total)
{
    struct watching *w = context;
    assert_true(done >= w->last && done <= total);
    w->last = done;
    size_t rss = resident_bytes();
    if (w->calls++ == 0)
        w->rss_first = rss;
    w->rss_most = rss > w->rss_most ? rss : w->rss_most;
    if (done < w->cancel_at)
        return 0;
    if (w->cut != NULL) {
        assert_int_equal(truncate(w->cut, 100), 0);
        w->cut = NULL;
        w->cancel_at = UINT64_MAX;
        return 0;
    }
    return 1;
}

/* Goal: memory does not grow with the model. Method: 1 GiB, sparse, to a sink that throws it away; the resident pages are looked at on the way. */
static void
memory_does_not_grow(void **state)
{
    struct collected c = { .bytes = NULL };
    struct watching w = { .cancel_at = UINT64_MAX };
    const struct pawl_sink sink = { collect, &c };
    const struct pawl_convert_options options =
        PAWL_CONVERT_OPTIONS(.sink = &sink, .progress = watch, .progress_context = &w);
    (void)state;
    put_large("in.safetensors", 64, 1 << 24);
    convert("in.safetensors", "", &options);
    assert_true(c.n > (size_t)1 << 30);
    assert_int_equal(w.last, (uint64_t)1 << 30);
    assert_true(w.calls > 100);
    print_message("%zu MiB more than at the beginning\n", (w.rss_most - w.rss_first) >> 20);
    assert_true(w.rss_most - w.rss_first < MEMORY_MAX);
}

/* Goal: a canceled run, of one file and of a directory, large and small, leaves nothing and keeps the old. */
static void
canceling_leaves_nothing(void **state)
{
    (void)state;
    put_tied("small.safetensors");
    put_large("large.safetensors", 40, 1 << 20);
    for (int k = 0; k < 4; k++) {
        const char *in = k % 2 == 0 ? "small.safetensors" : "large.safetensors";
        struct watching w = { .cancel_at = k % 2 == 0 ? 0 : 20 << 20 };
        struct pawl_convert_options options =
            PAWL_CONVERT_OPTIONS(.progress = watch, .progress_context = &w, .is_directory = k >= 2);
        if (k >= 2)
            options.file_bytes_max = k == 2 ? 3 : 15 << 20;
        assert_int_equal(try_convert(in, "out", &options, NULL), PAWL_CANCELED);
        assert_string_equal(err.code, "canceled");
        assert_int_equal(count_names("."), 2);
        host_put("out", "old");
        if (k < 2) {
            w = (struct watching){ .cancel_at = 0 };
            assert_int_equal(try_convert(in, "out", &options, NULL), PAWL_CANCELED);
            assert_string_equal(host_text("out"), "old");
        }
        assert_int_equal(unlink("out"), 0);
    }
}

/* Goal: an input that is cut while it is read is an error that names it, and the old output stays; the thread too ends with it. */
static void
an_input_that_changes_is_noticed(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct watching w = { .cancel_at = 1, .cut = "in.safetensors" };
        const struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.progress = watch, .progress_context = &w);
        if (k == 0)
            put_tied("in.safetensors"); /* all of it is read by then: only its size tells */
        else
            put_large("in.safetensors", 60, 1 << 20);
        host_put("out.safetensors", "old");
        enum pawl_status st = try_convert("in.safetensors", "out.safetensors", &options, NULL);
        assert_true(st == PAWL_TRUNCATED || st == PAWL_CORRUPT);
        assert_string_equal(err.path, "in.safetensors");
        assert_string_equal(host_text("out.safetensors"), "old");
        assert_int_equal(count_names("."), 2);
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(writes_to_a_sink),
        IN_FOLDER(a_large_model_is_in_order),
        IN_FOLDER(memory_does_not_grow),
        IN_FOLDER(canceling_leaves_nothing),
        IN_FOLDER(an_input_that_changes_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
