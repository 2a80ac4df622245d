/* What a save writes comes back, through the public interface: resumed runs, tied tensors, views, sources, mapped files, odd names, and
 * many tensors. */
#include "unit/save_support.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "unit/os_fixture.h"
#include "unit/token_support.h"

static struct pawl_run *
open_at(const char *root, struct pawl_run_options options)
{
    struct pawl_run *run = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_run_open_z(root, &options, &run, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return run;
}

static uint64_t
bytes_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return (uint64_t)status.st_size;
}

/* ---- resuming ---- */

/* A run of a stream, weights, moments and a dropout generator with a pending normal; its last loss is kept too. */
struct training {
    float w[8], m[8];
    double lr, loss;
    int64_t step;
    struct pawl_pcg32 dropout;
    struct pawl_stream *stream;
    struct pawl_state *state;
};

static void
training_init(struct training *t)
{
    const char *const shards[] = { "a.bin", "b.bin" };
    struct pawl_error err = PAWL_ERROR_INIT;
    *t = (struct training){ .lr = 0.5 };
    pawl_pcg32_stream(&t->dropout, 1, PAWL_PURPOSE_DROPOUT);
    if (pawl_stream_open_z(shards, 2, &PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 2, .seed = 3), &t->stream, &err) !=
            PAWL_OK ||
        pawl_state_new(&t->state, &err) != PAWL_OK ||
        pawl_state_tensor(t->state, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, t->w, 8), &err) != PAWL_OK ||
        pawl_state_tensor(t->state, &PAWL_TENSOR(PAWL_OPTIMIZER, "w.exp_avg", PAWL_F32, t->m, 8), &err) != PAWL_OK ||
        pawl_state_optimizer(t->state, "adamw", &err) != PAWL_OK ||
        pawl_state_number(t->state, PAWL_OPTIMIZER, "step", PAWL_I64, &t->step, &err) != PAWL_OK ||
        pawl_state_number(t->state, PAWL_OPTIMIZER, "lr", PAWL_F64, &t->lr, &err) != PAWL_OK ||
        pawl_state_number(t->state, PAWL_EXTRA, "loss", PAWL_F64, &t->loss, &err) != PAWL_OK ||
        pawl_state_rng(t->state, "dropout", &t->dropout, &err) != PAWL_OK ||
        pawl_state_stream(t->state, t->stream, &err) != PAWL_OK)
        fail_msg("%s", err.message);
}

static void
training_release(struct training *t)
{
    pawl_state_free(t->state);
    pawl_stream_close(t->stream);
}

static void
train(struct training *t)
{
    uint32_t inputs[8], targets[8];
    assert_int_equal(pawl_stream_next(t->stream, inputs, targets, NULL), PAWL_OK);
    for (size_t i = 0; i < 8; i++) {
        t->m[i] = 0.9F * t->m[i] + (float)inputs[i] * 0.001F + (float)pawl_pcg32_normal(&t->dropout);
        t->w[i] -= (float)t->lr * t->m[i];
    }
    (void)pawl_pcg32_normal(&t->dropout); /* an odd number of normals: one is pending at every other save */
    t->loss = (double)t->w[0] + targets[7];
    t->lr *= 0.97;
    t->step++;
}

/* Runs of so many steps each, each in a new life; the last step is saved. */
static void
run_parts(const char *root, const unsigned *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct training t;
        int64_t step = 0;
        training_init(&t);
        struct pawl_run *run = open_at(root, PAWL_RUN_OPTIONS(.keep = 1));
        enum pawl_status st = pawl_run_restore(run, t.state, &step, NULL, &err);
        if (st != (i == 0 ? PAWL_NOT_FOUND : PAWL_OK))
            fail_msg("%s: %s", pawl_status_name(st), err.message);
        for (unsigned k = 0; k < parts[i]; k++) {
            train(&t);
            step++;
        }
        if (pawl_run_save(run, t.state, step, NULL, &err) != PAWL_OK)
            fail_msg("%s", err.message);
        close_run(run);
        training_release(&t);
    }
}

static void
resumed_runs_end_with_the_same_bytes(void **state)
{
    (void)state;
    put_counting_shard("a.bin", 2, 0, 40);
    put_counting_shard("b.bin", 2, 500, 33);
    run_parts("straight", (const unsigned[]){ 20 }, 1);
    run_parts("halves", (const unsigned[]){ 10, 10 }, 2);
    run_parts("thirds", (const unsigned[]){ 7, 6, 7 }, 3);
    run_parts("ones", (const unsigned[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 20);
    char *text = strdup(host_text("straight/step-000020/MANIFEST.json"));
    assert_non_null(text);
    assert_non_null(strstr(text, "pawl.stream.json"));
    assert_string_equal(host_text("halves/step-000020/MANIFEST.json"), text);
    assert_string_equal(host_text("thirds/step-000020/MANIFEST.json"), text);
    assert_string_equal(host_text("ones/step-000020/MANIFEST.json"), text);
    free(text);
}

/* ---- moments for some parameters, an empty optimizer ---- */

static void
partial_and_empty_optimizers_round_trip(void **state)
{
    (void)state;
    float a[2] = { 1, 2 }, b[2] = { 3, 4 }, m[2] = { 5, 6 };
    double lr = 0.25;
    int64_t step = 0;
    for (unsigned with_moments = 0; with_moments < 2; with_moments++) {
        struct pawl_state *described = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        const char *root = with_moments ? "some" : "none";
        assert_int_equal(pawl_state_new(&described, &err), PAWL_OK);
        assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "a", PAWL_F32, a, 2), &err), PAWL_OK);
        assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "b", PAWL_F32, b, 2), &err), PAWL_OK);
        assert_int_equal(pawl_state_optimizer(described, "sgd", &err), PAWL_OK);
        assert_int_equal(pawl_state_number(described, PAWL_OPTIMIZER, "lr", PAWL_F64, &lr, &err), PAWL_OK);
        if (with_moments)
            assert_int_equal(
                pawl_state_tensor(described, &PAWL_TENSOR(PAWL_OPTIMIZER, "b.momentum_buffer", PAWL_F32, m, 2), &err),
                PAWL_OK);
        struct pawl_run *run = open_at(root, PAWL_RUN_OPTIONS(0));
        assert_int_equal(pawl_run_save(run, described, 1, NULL, &err), PAWL_OK);
        a[0] = b[1] = m[0] = -1;
        lr = -1;
        if (pawl_run_restore(run, described, &step, NULL, &err) != PAWL_OK)
            fail_msg("%s", err.message);
        assert_true(a[0] == 1 && b[1] == 4 && lr == 0.25);
        assert_true(m[0] == (with_moments ? 5.0F : -1.0F));
        m[0] = 5;
        /* A scalar that the checkpoint lacks is a mismatch, never a fresh start. */
        assert_int_equal(pawl_state_number(described, PAWL_OPTIMIZER, "eps", PAWL_F64, &lr, &err), PAWL_OK);
        assert_int_equal(pawl_run_restore(run, described, &step, NULL, &err), PAWL_MISMATCH);
        close_run(run);
        pawl_state_free(described);
    }
}

/* ---- tied tensors, views, strides ---- */

static void
tied_once_and_views_small(void **state)
{
    (void)state;
    const size_t large_bytes = (size_t)64 << 20;
    float *large = calloc(1, large_bytes); /* untouched but for the slice */
    float tied[6] = { 1, 2, 3, 4, 5, 6 };
    float turned[6] = { 0 };
    const uint64_t shape[] = { 2, 3 };
    const int64_t strides[] = { 1, 2 };
    struct pawl_state *described = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    int64_t step;
    assert_non_null(large);
    float *slice = large + 1000000;
    for (size_t i = 0; i < 256; i++)
        slice[i] = (float)i;
    assert_int_equal(pawl_state_new(&described, &err), PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "z.head", PAWL_F32, tied, 2, 3), &err),
                     PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "embed", PAWL_F32, tied, 2, 3), &err),
                     PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "slice", PAWL_F32, slice, 256), &err),
                     PAWL_OK);
    for (size_t i = 0; i < 6; i++)
        turned[i] = (float)i * 10;
    struct pawl_tensor column = { .size = sizeof column,
                                  .slot = PAWL_MODEL,
                                  .dtype = PAWL_F32,
                                  .name = PAWL_STR("turned"),
                                  .rank = 2,
                                  .shape = shape,
                                  .strides = strides,
                                  .data = turned };
    assert_int_equal(pawl_state_tensor(described, &column, &err), PAWL_OK);
    struct pawl_run *run = open_at("views", PAWL_RUN_OPTIONS(0));
    if (pawl_run_save(run, described, 1, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    /* 1024 + 24 + 24 bytes of data and a header: the tied pair once, the slice alone. */
    assert_true(bytes_of("views/step-000001/model.safetensors") < 1024 + 24 + 24 + 420);
    memset(tied, 0, sizeof tied);
    memset(turned, 0, sizeof turned);
    memset(slice, 0, 1024);
    if (pawl_run_restore(run, described, &step, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_true(tied[5] == 6 && turned[3] == 30 && slice[255] == 255 && slice[256] == 0);
    close_run(run);
    pawl_state_free(described);
    free(large);
}

/* ---- a mapped file that is saved over ---- */

/* Goal: a reader that has a step's file mapped keeps the old bytes when that step is saved again, and the state may be that mapping. */
static void
mapping_keeps_the_old_bytes(void **state)
{
    (void)state;
    struct toy toy;
    toy_init(&toy, 1);
    struct pawl_run *run = open_at("mapped", PAWL_RUN_OPTIONS(0));
    save_step(run, &toy, 1, 1);
    const char *path = "mapped/step-000001/model.safetensors";
    size_t bytes = (size_t)bytes_of(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    unsigned char *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(map != MAP_FAILED);
    unsigned char *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, map, bytes);
    save_step(run, &toy, 1, 2);
    assert_memory_equal(map, before, bytes);
    assert_int_equal(bytes_of(path), bytes);
    struct pawl_state *described = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_state_new(&described, NULL), PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "bytes", PAWL_U8, map, bytes), &err),
                     PAWL_OK);
    assert_int_equal(pawl_run_save(run, described, 1, NULL, &err), PAWL_OK);
    assert_memory_equal(map, before, bytes);
    assert_true(bytes_of(path) > bytes);
    free(before);
    (void)munmap(map, bytes);
    (void)close(fd);
    close_run(run);
    pawl_state_free(described);
    toy_release(&toy);
}

/* ---- odd and many names, sources ---- */

static void
odd_names_and_no_elements(void **state)
{
    (void)state;
    const size_t long_bytes = (size_t)1 << 20;
    char *long_name = malloc(long_bytes);
    float value[3] = { 1.5F, 2.5F, 3.5F };
    const uint64_t none[] = { 3, 0, 2 };
    struct pawl_state *described = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    int64_t step;
    assert_non_null(long_name);
    memset(long_name, 'n', long_bytes);
    const struct pawl_str names[] = { PAWL_STR("nul\0here"),
                                      PAWL_STR("line\nbreak"),
                                      PAWL_STR(""),
                                      PAWL_STR("\xf0\x9f\xa6\x80"),
                                      { long_name, long_bytes } };
    assert_int_equal(pawl_state_new(&described, NULL), PAWL_OK);
    for (size_t i = 0; i < 5; i++) {
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = PAWL_MODEL,
                                      .dtype = PAWL_F32,
                                      .name = names[i],
                                      .data = i < 3 ? &value[i] : NULL };
        if (i >= 3) {
            tensor.rank = 3;
            tensor.shape = none;
        }
        if (pawl_state_tensor(described, &tensor, &err) != PAWL_OK)
            fail_msg("%s", err.message);
    }
    struct pawl_run *run = open_at("odd", PAWL_RUN_OPTIONS(0));
    assert_int_equal(pawl_run_save(run, described, 1, NULL, &err), PAWL_OK);
    memset(value, 0, sizeof value);
    if (pawl_run_restore(run, described, &step, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_true(value[0] == 1.5F && value[1] == 2.5F && value[2] == 3.5F);
    close_run(run);
    pawl_state_free(described);
    free(long_name);
}

static void
a_hundred_thousand_tensors(void **state)
{
    (void)state;
    enum { N = 100000 };
    uint32_t *values = malloc(N * sizeof *values);
    struct pawl_state *described = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    int64_t step;
    assert_non_null(values);
    assert_int_equal(pawl_state_new(&described, NULL), PAWL_OK);
    for (uint32_t i = 0; i < N; i++) {
        char name[32];
        values[i] = i * 7;
        (void)snprintf(name, sizeof name, "layer.%u.w", i);
        assert_int_equal(pawl_state_tensor(described, &PAWL_SCALAR(PAWL_MODEL, name, PAWL_U32, &values[i]), &err),
                         PAWL_OK);
    }
    struct pawl_run *run = open_at("many", PAWL_RUN_OPTIONS(.max_file_bytes = 100000));
    if (pawl_run_save(run, described, 1, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_non_null(host_text("many/step-000001/model.safetensors.index.json"));
    memset(values, 0, N * sizeof *values);
    if (pawl_run_restore(run, described, &step, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(values[i], i * 7);
    close_run(run);
    pawl_state_free(described);
    free(values);
}

/* ---- another device, a small disk ---- */

/* Goal: the system's folder for temporary files has no part in a save. */
static void
no_temporary_folder_is_used(void **state)
{
    (void)state;
    struct toy toy;
    toy_init(&toy, 1);
    assert_int_equal(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
    struct pawl_run *run = open_at("tmpdir", PAWL_RUN_OPTIONS(0));
    save_step(run, &toy, 1, 1);
    close_run(run);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    toy_release(&toy);
}

/* Goal: a small filesystem of the host that fills up: "no space", the old step intact, no debris. Needs the right to mount one. */
static void
small_filesystem_fills_up(void **state)
{
    (void)state;
    assert_int_equal(mkdir("small", 0755), 0);
    if (mount("tmpfs", "small", "tmpfs", 0, "size=256k") != 0)
        skip();
    const uint64_t bytes = 400000;
    unsigned char *data = calloc(1, bytes);
    struct toy toy;
    struct pawl_state *described = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_non_null(data);
    toy_init(&toy, 1);
    struct pawl_run *run = open_at("small/ckpt", PAWL_RUN_OPTIONS(0));
    save_step(run, &toy, 1, 1);
    assert_int_equal(pawl_state_new(&described, NULL), PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_U8, data, bytes), &err), PAWL_OK);
    enum pawl_status st = pawl_run_save(run, described, 2, NULL, &err);
    bool is_clean = access("small/ckpt/step-000002.tmp", F_OK) != 0 && access("small/ckpt/step-000002", F_OK) != 0;
    bool is_named = strstr(err.message, "bytes are needed") != NULL;
    save_step(run, &toy, 3, 3);
    close_run(run);
    assert_int_equal(umount("small"), 0);
    pawl_state_free(described);
    toy_release(&toy);
    free(data);
    assert_int_equal(st, PAWL_NO_SPACE);
    assert_true(is_clean && is_named);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(resumed_runs_end_with_the_same_bytes, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(partial_and_empty_optimizers_round_trip, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(tied_once_and_views_small, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(mapping_keeps_the_old_bytes, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(odd_names_and_no_elements, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(a_hundred_thousand_tensors, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(no_temporary_folder_is_used, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(small_filesystem_fills_up, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
