/* What saves in the background leave behind in memory, descriptors and threads: 200 of them, 1,000 in the long suite. */
#include "unit/async_support.h"
#include "unit/emulator.h"

#include <dirent.h>
#include <unistd.h>

#ifndef SAVES
#define SAVES 200
#endif

#define STATE_BYTES ((size_t)4 << 20)

static size_t
resident_bytes(void)
{
    unsigned long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t
entries_of(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    (void)closedir(dir);
    return n;
}

/*
 * Goal: saves leave nothing behind: resident memory is flat within 5 % and descriptors and threads are as many as before, for both ways.
 * Method: compare after a tenth of the saves and at the end. Sanitizers keep what was freed: there only descriptors and threads count.
 */
static void
nothing_grows(void **state)
{
    (void)state;
    SKIP_UNDER_EMULATOR("keeps memory of its own in the process");
    for (unsigned way = 0; way < 2; way++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_state *described = NULL;
        size_t resident = 0, descriptors = 0, threads = 0;
        unsigned saves = SAVES / (THINNED == 1 ? 1 : 4);
        float *weights = calloc(STATE_BYTES / sizeof *weights, sizeof *weights);
        assert_non_null(weights);
        remove_root();
        assert_int_equal(pawl_state_new(&described, &err), PAWL_OK);
        assert_int_equal(pawl_state_tensor(described,
                                           &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, weights, 1024, STATE_BYTES / 4096),
                                           &err),
                         PAWL_OK);
        struct pawl_run *run = open_host_run(
            PAWL_RUN_OPTIONS(.keep = 1, .snapshot = way == 0 ? PAWL_SNAPSHOT_COPY : PAWL_SNAPSHOT_BORROW));
        for (unsigned i = 0; i < saves; i++) {
            struct pawl_save *save = NULL;
            assert_int_equal(pawl_run_save_async(run, described, i, NULL, i % 2 == 0 ? &save : NULL, &err), PAWL_OK);
            if (save != NULL)
                assert_int_equal(pawl_save_wait_released(save, -1, NULL), PAWL_OK);
            else
                assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
            weights[i] = (float)i;
            pawl_save_release(save);
            if (i != saves / 10 && i + 1 != saves)
                continue;
            assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
            size_t now = resident_bytes();
            if (resident != 0) {
                print_message("%u saves, resident %zu KiB, then %zu KiB\n", saves, resident >> 10, now >> 10);
                assert_int_equal(entries_of("/proc/self/fd"), descriptors);
                assert_int_equal(entries_of("/proc/self/task"), threads);
                if (THINNED == 1)
                    assert_true(now <= resident + resident / 20 && now + now / 20 >= resident);
            }
            resident = now;
            descriptors = entries_of("/proc/self/fd");
            threads = entries_of("/proc/self/task");
        }
        close_run(run);
        pawl_state_free(described);
        free(weights);
        assert_root_holds(pawl_os_posix());
    }
    remove_root();
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_grows) };
    return end_tests(cmocka_run_group_tests(tests, NULL, NULL));
}
