#include "unit/model_tools.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include "unit/hostile_texts.h"

/* Memory of a reader, per byte of header, at most: names of seven bytes and one-digit dimensions are the worst there are. */
#define BYTES_PER_BYTE 8

/*
 * Goal: 100 MB of each hostile header are answered with memory that is a small multiple of it. Method: a process for each, which may take
 * no more than that beyond the file; time that is not linear ends in the test's time-out.
 */
static void
a_hundred_megabytes_of_each(void **state)
{
    (void)state;
    enum { BYTES = 100000000 };
    for (size_t i = 0; i < N_HOSTILE; i++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct pawl_buffer file = PAWL_BUFFER_INIT;
            make_hostile(&file, (enum hostile)i, BYTES);
            struct rlimit limit;
            FILE *statm = fopen("/proc/self/statm", "r");
            unsigned long pages = 0;
            if (statm == NULL || fscanf(statm, "%lu", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0)
                _exit(3);
            fclose(statm);
            limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)BYTES_PER_BYTE * BYTES;
            if (setrlimit(RLIMIT_AS, &limit) != 0)
                _exit(3);
            expect_hostile((enum hostile)i, &file);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("text %zu: status %d", i, status);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_hundred_megabytes_of_each) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
