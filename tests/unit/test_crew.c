/*
 * Goal: parts that are written at once come out as if written one after the other: the same bytes, the same order for whoever follows, the first
 * error by the order of the files, and after a failure or a cancellation the root as it was.
 *
 * Method: a state of two large files, and one cut into several, over the simulated disk, by threads and without; the followers look at
 * which thread speaks to them.
 */
#include "unit/save_support.h"

#include <errno.h>
#include <pthread.h>
#include "sim/faultos.h"

#define MODEL_FLOATS ((size_t)5 << 18)
#define OPTIMIZER_FLOATS ((size_t)10 << 18)

static float *model, *optimizer;
static struct pawl_state *described;
static pthread_t saver;
static unsigned n_files, n_told;
static unsigned stop_at_file, stop_at_told; /* 0: never */
static uint64_t told_done, told_total;

static int
set_up(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    model = malloc(MODEL_FLOATS * sizeof *model);
    optimizer = malloc(OPTIMIZER_FLOATS * sizeof *optimizer);
    if (model == NULL || optimizer == NULL || pawl_state_new(&described, NULL) != PAWL_OK)
        return -1;
    for (size_t i = 0; i < MODEL_FLOATS; i++)
        model[i] = (float)i;
    for (size_t i = 0; i < OPTIMIZER_FLOATS; i++)
        optimizer[i] = -(float)i;
    for (size_t i = 0; i < 5; i++) {
        char a[16], b[16];
        (void)snprintf(a, sizeof a, "w%zu", i);
        (void)snprintf(b, sizeof b, "m%zu", i);
        if (pawl_state_tensor(described,
                              &PAWL_TENSOR(PAWL_MODEL, a, PAWL_F32, model + i * (MODEL_FLOATS / 5), MODEL_FLOATS / 5),
                              &err) != PAWL_OK ||
            pawl_state_tensor(
                described,
                &PAWL_TENSOR(PAWL_OPTIMIZER, b, PAWL_F32, optimizer + i * (OPTIMIZER_FLOATS / 5), OPTIMIZER_FLOATS / 5),
                &err) != PAWL_OK)
            return -1;
    }
    saver = pthread_self();
    n_files = n_told = stop_at_file = stop_at_told = 0;
    told_done = told_total = 0;
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    pawl_state_free(described);
    free(model);
    free(optimizer);
    return 0;
}

static int
fail_at(void *context, const char *name)
{
    (void)context;
    if (strcmp(name, "save/after-file") != 0)
        return 0;
    assert_true(pthread_equal(saver, pthread_self()));
    return ++n_files == stop_at_file;
}

static int
tell(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    assert_true(pthread_equal(saver, pthread_self()));
    assert_true(done >= told_done && done <= total);
    assert_true(told_total == 0 || told_total == total);
    told_done = done;
    told_total = total;
    return ++n_told == stop_at_told;
}

/* A fresh disk, and a table of it that takes threads or not. */
static struct simdisk *
disk_for(struct faultos **ret_faults, bool has_threads)
{
    struct simdisk *disk = simdisk_new();
    *ret_faults = faultos_new(simdisk_os(disk));
    if (has_threads)
        faultos_take_threads(*ret_faults);
    return disk;
}

static void
done_with(struct simdisk *disk, struct faultos *faults)
{
    assert_int_equal(simdisk_open_handles(disk), 0);
    faultos_free(faults);
    simdisk_free(disk);
}

static enum pawl_status
save(struct faultos *faults, uint64_t max_file_bytes, struct pawl_error *err)
{
    struct pawl_run *run = open_run(
        faultos_os(faults), PAWL_RUN_OPTIONS(.progress = tell, .failpoint = fail_at, .max_file_bytes = max_file_bytes));
    enum pawl_status st = pawl_run_save(run, described, 1, NULL, err);
    close_run(run);
    return st;
}

static void
same_bytes_and_order(void **state)
{
    (void)state;
    const uint64_t limits[] = { 0, (uint64_t)4 << 20 };
    for (size_t i = 0; i < 2; i++) {
        uint64_t sums[2];
        unsigned files[2];
        for (int has_threads = 0; has_threads < 2; has_threads++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            struct faultos *faults;
            struct simdisk *disk = disk_for(&faults, has_threads);
            n_files = 0;
            told_done = told_total = 0;
            if (save(faults, limits[i], &err) != PAWL_OK)
                fail_msg("%s", err.message);
            assert_true(told_done == told_total && told_total > (uint64_t)15 << 20);
            files[has_threads] = n_files;
            sums[has_threads] = simdisk_fingerprint(disk);
            done_with(disk, faults);
        }
        assert_true(files[0] == files[1] && files[0] >= 3);
        assert_true(sums[0] == sums[1]);
    }
}

/* Every failpoint, every cancellation, every failing sync: the root is as it was. */
static void
what_ends_a_save_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned at = 1; at <= 12; at++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct faultos *faults;
        struct simdisk *disk = disk_for(&faults, true);
        n_files = n_told = 0;
        told_done = told_total = 0;
        stop_at_file = stop_at_told = 0;
        enum pawl_status want = PAWL_IO;
        if (at <= 3) {
            stop_at_file = at;
        } else if (at <= 5) {
            stop_at_told = at - 3;
            want = PAWL_CANCELED;
        } else {
            faultos_fail(faults, SIM_FILE_SYNC, at % 3, 0, EIO);
        }
        assert_int_equal(save(faults, 0, &err), want);
        assert_true(stop_at_file == 0 || n_files == stop_at_file);
        assert_true(stop_at_told == 0 || n_told == stop_at_told);
        char *tree = simdisk_tree(disk, ROOT);
        assert_string_equal(tree, "");
        free(tree);
        /* And the next one goes well. */
        stop_at_file = stop_at_told = 0;
        told_done = told_total = 0;
        assert_int_equal(save(faults, 0, &err), PAWL_OK);
        assert_true(simdisk_has(disk, ROOT "/step-000001/optimizer.safetensors"));
        done_with(disk, faults);
    }
}

/* All files fail; the one that is told is the first of them, whichever failed first. */
static void
the_first_file_is_the_one_that_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct faultos *faults;
        struct simdisk *disk = disk_for(&faults, true);
        faultos_fail(faults, SIM_FILE_WRITE_AT, 0, 100000, EIO);
        assert_int_equal(save(faults, 0, &err), PAWL_IO);
        assert_non_null(strstr(err.message, "/model.safetensors' at offset 0"));
        assert_int_equal(n_files, 0);
        faultos_reset(faults);
        done_with(disk, faults);
    }
}

/* ---- sources ---- */

static enum pawl_status
read_source(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    (void)err;
    assert_true(pthread_equal(saver, pthread_self()));
    memcpy(destination, (const unsigned char *)context + offset, n);
    return PAWL_OK;
}

static void
sources_are_read_by_the_thread_that_saves(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_source source = { MODEL_FLOATS * sizeof *model, read_source, model };
    const uint64_t shape[] = { MODEL_FLOATS };
    struct pawl_tensor tensor = { .size = sizeof tensor,
                                  .slot = PAWL_MODEL,
                                  .dtype = PAWL_F32,
                                  .name = PAWL_STR("from a source"),
                                  .rank = 1,
                                  .shape = shape,
                                  .source = &source };
    struct faultos *faults;
    struct simdisk *disk = disk_for(&faults, true);
    size_t bytes = 0;
    assert_int_equal(pawl_state_tensor(described, &tensor, &err), PAWL_OK);
    if (save(faults, 0, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_non_null(simdisk_get(disk, ROOT "/step-000001/model.safetensors", &bytes));
    assert_true(bytes > 2 * MODEL_FLOATS * sizeof *model);
    done_with(disk, faults);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(same_bytes_and_order),
        TEST(what_ends_a_save_leaves_nothing),
        TEST(the_first_file_is_the_one_that_is_told),
        TEST(sources_are_read_by_the_thread_that_saves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
