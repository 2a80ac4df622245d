#include "unit/model_tools.h"

#include <inttypes.h>
#include "pawl/model.h"
#include <pthread.h>

static uint64_t shape_of_a[2] = { 300, 1000 }, shape_of_b[1] = { 5 };
static float values_of_a[300000];
static unsigned char values_of_b[5] = { 1, 2, 3, 4, 5 };

/* A large tensor, a small one, metadata. */
static void
make_tensors(struct pawl_tensor tensors[2])
{
    for (size_t i = 0; i < 300000; i++)
        values_of_a[i] = (float)i;
    tensors[0] = (struct pawl_tensor){ .size = sizeof tensors[0],
                                       .dtype = PAWL_F32,
                                       .name = PAWL_STR("a"),
                                       .rank = 2,
                                       .shape = shape_of_a,
                                       .data = values_of_a };
    tensors[1] = (struct pawl_tensor){ .size = sizeof tensors[0],
                                       .dtype = PAWL_U8,
                                       .name = PAWL_STR("b"),
                                       .rank = 1,
                                       .shape = shape_of_b,
                                       .data = values_of_b };
}

static const struct pawl_pair METADATA = { { "format", 6 }, { "pt", 2 } };

struct collected {
    struct pawl_buffer bytes;
    size_t calls;
    size_t fail_at; /* the call that fails */
    bool fills_error;
};

static enum pawl_status
collect(void *context, const void *data, size_t n, struct pawl_error *err)
{
    struct collected *c = context;
    assert_true(n != 0);
    if (++c->calls == c->fail_at)
        return c->fills_error ? pawl_fail(err, PAWL_IO, "io", "the peer hung up") : PAWL_CANCELED;
    assert_true(pawl_buffer_add(&c->bytes, data, n));
    return PAWL_OK;
}

/* Goal: a sink gets the bytes of the file, front to back; memory too, of exactly the size that was told. */
static void
the_bytes_are_those_of_the_file(void **state)
{
    (void)state;
    struct pawl_tensor tensors[2];
    struct pawl_error err = PAWL_ERROR_INIT;
    struct collected c = { .bytes = PAWL_BUFFER_INIT };
    const struct pawl_sink sink = { collect, &c };
    const struct pawl_write_options options = PAWL_WRITE_OPTIONS(.align = 64, .metadata = &METADATA, .n_metadata = 1);
    size_t n;
    make_tensors(tensors);
    assert_int_equal(pawl_safetensors_write(PAWL_STR("f"), tensors, 2, &options, NULL), PAWL_OK);
    char *file = st_slurp("f", &n);
    assert_int_equal(pawl_safetensors_write_sink(&sink, tensors, 2, &options, NULL), PAWL_OK);
    assert_int_equal(c.bytes.len, n);
    assert_memory_equal(c.bytes.data, file, n);

    uint64_t need = 0;
    assert_int_equal(pawl_safetensors_write_memory(NULL, 0, tensors, 2, &options, &need, NULL), PAWL_OK);
    assert_int_equal(need, n);
    unsigned char *memory = malloc(n);
    assert_non_null(memory);
    assert_int_equal(pawl_safetensors_write_memory(memory, n - 1, tensors, 2, &options, &need, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_safetensors_write_memory(memory, n, tensors, 2, &options, NULL, NULL), PAWL_OK);
    assert_memory_equal(memory, file, n);
    free(memory);
    free(file);
    pawl_buffer_release(&c.bytes);
}

/* Goal: what a sink answers is the answer, at every call of it; what is refused is refused before the first byte. */
static void
a_sink_may_fail(void **state)
{
    (void)state;
    struct pawl_tensor tensors[2];
    size_t calls = 0;
    make_tensors(tensors);
    for (size_t fail_at = 1; calls == 0; fail_at++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct collected c = { .bytes = PAWL_BUFFER_INIT, .fail_at = fail_at, .fills_error = fail_at % 2 == 0 };
        const struct pawl_sink sink = { collect, &c };
        enum pawl_status st = pawl_safetensors_write_sink(&sink, tensors, 2, NULL, &err);
        if (c.calls < fail_at) {
            assert_int_equal(st, PAWL_OK);
            calls = c.calls;
        } else {
            assert_int_equal(st, c.fills_error ? PAWL_IO : PAWL_CANCELED);
            assert_int_equal(c.calls, fail_at); /* and is not called again */
            assert_non_null(strstr(err.message, c.fills_error ? "the peer hung up" : "the sink failed at byte "));
        }
        pawl_buffer_release(&c.bytes);
    }
    assert_true(calls >= 3);

    struct collected c = { .bytes = PAWL_BUFFER_INIT };
    const struct pawl_sink sink = { collect, &c };
    tensors[1].name = PAWL_STR("a");
    assert_int_equal(pawl_safetensors_write_sink(&sink, tensors, 2, NULL, NULL), PAWL_ARGUMENT);
    assert_int_equal(c.calls, 0);
    assert_int_equal(pawl_safetensors_write_sink(NULL, tensors, 1, NULL, NULL), PAWL_ARGUMENT);
    assert_int_equal(pawl_safetensors_write_sink(&(struct pawl_sink){ NULL, NULL }, tensors, 1, NULL, NULL),
                     PAWL_ARGUMENT);
}

static enum pawl_status
put_into_pipe(void *context, const void *data, size_t n, struct pawl_error *err)
{
    const int *fd = context;
    const char *at = data;
    while (n != 0) {
        ssize_t done = write(*fd, at, n);
        if (done <= 0)
            return pawl_fail_os(err, errno, "write");
        at += done;
        n -= (size_t)done;
    }
    return PAWL_OK;
}

static void *
drain(void *context)
{
    struct collected *c = context;
    char part[4000];
    ssize_t n;
    while ((n = read((int)c->calls, part, sizeof part)) > 0)
        assert_true(pawl_buffer_add(&c->bytes, part, (size_t)n));
    return NULL;
}

/* Goal: a pipe is enough, and what comes out of it is read from memory: save and load by bytes. */
static void
through_a_pipe_into_memory(void **state)
{
    (void)state;
    struct pawl_tensor tensors[2];
    int ends[2];
    pthread_t reader;
    make_tensors(tensors);
    assert_int_equal(pipe(ends), 0);
    struct collected c = { .bytes = PAWL_BUFFER_INIT, .calls = (size_t)ends[0] };
    assert_int_equal(pthread_create(&reader, NULL, drain, &c), 0);
    const struct pawl_sink sink = { put_into_pipe, &ends[1] };
    assert_int_equal(pawl_safetensors_write_sink(&sink, tensors, 2, NULL, NULL), PAWL_OK);
    close(ends[1]);
    assert_int_equal(pthread_join(reader, NULL), 0);
    close(ends[0]);

    struct pawl_model *model;
    const void *mapped;
    float *got = malloc(sizeof values_of_a);
    size_t n;
    assert_non_null(got);
    assert_int_equal(pawl_model_open_memory(c.bytes.data, c.bytes.len, NULL, &model, NULL), PAWL_OK);
    const struct pawl_tensor_info *t = pawl_model_tensors(model, &n);
    assert_int_equal(n, 2);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_SAFETENSORS);
    assert_int_equal(pawl_model_read(model, t, PAWL_F32, got, sizeof values_of_a, NULL), PAWL_OK);
    assert_memory_equal(got, values_of_a, sizeof values_of_a);
    const struct pawl_slice_axis row = { .start = -1, .flags = PAWL_SLICE_INDEX };
    assert_int_equal(pawl_model_read_slice(model, t, &row, 1, PAWL_F32, PAWL_OVERFLOW_FORMAT, got, 4000, NULL),
                     PAWL_OK);
    assert_memory_equal(got, values_of_a + 299000, 4000);
    assert_int_equal(pawl_model_map(model, pawl_model_find(model, PAWL_STR("b")), &mapped, NULL, NULL), PAWL_OK);
    assert_memory_equal(mapped, values_of_b, 5);
    assert_true((const char *)mapped >= c.bytes.data &&
                (const char *)mapped < c.bytes.data + c.bytes.len); /* no copy */
    pawl_model_close(model);
    free(got);
    pawl_buffer_release(&c.bytes);
}

/* Goal: memory is judged as a file is. Method: the first bytes of a good file, of every length, and bytes of something else. */
static void
memory_is_judged_as_a_file(void **state)
{
    (void)state;
    struct pawl_tensor tensors[2];
    unsigned char good[4096];
    uint64_t n = 0;
    make_tensors(tensors);
    assert_int_equal(pawl_safetensors_write_memory(NULL, 0, tensors + 1, 1, NULL, &n, NULL), PAWL_OK);
    assert_int_equal(pawl_safetensors_write_memory(good, (size_t)n, tensors + 1, 1, NULL, &n, NULL), PAWL_OK);
    for (size_t k = 0; k <= n; k++) {
        struct pawl_model *model = NULL;
        struct pawl_error err = PAWL_ERROR_INIT, of_file = PAWL_ERROR_INIT;
        unsigned char *part = malloc(k + (k == 0));
        assert_non_null(part);
        memcpy(part, good, k);
        enum pawl_status st = pawl_model_open_memory(part, k, NULL, &model, &err);
        assert_int_equal(st == PAWL_OK, k == n);
        pawl_model_close(model);
        model = NULL;
        put_bytes("f", part, k);
        assert_int_equal(pawl_model_open_z("f", NULL, &model, &of_file), st);
        assert_string_equal(err.code, of_file.code);
        assert_string_equal(err.message, of_file.message);
        assert_string_equal(err.path, "");
        pawl_model_close(model);
        free(part);
    }
    struct pawl_model *model;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_model_open_memory("GGUF....", 8, NULL, &model, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-safetensors");
    assert_int_equal(pawl_model_open_memory(NULL, 8, NULL, &model, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_model_open_memory(NULL, 0, NULL, &model, &err), PAWL_CORRUPT);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        TEST(the_bytes_are_those_of_the_file),
        TEST(a_sink_may_fail),
        TEST(through_a_pipe_into_memory),
        TEST(memory_is_judged_as_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
