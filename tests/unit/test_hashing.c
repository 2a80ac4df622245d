/*
 * Goal: as many threads hash as there are pairs of files that take about as long, and no more than processors.
 *
 * Method: sizes as checkpoints have them, the expected number from hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "checkpoint/hashing.h"
#include "os/parallel.h"

#define MIB ((uint64_t)1 << 20)

static void
expect_threads(unsigned pairs, const uint64_t *sizes, size_t n, size_t n_large, uint64_t bytes)
{
    struct pawl_hash_sizes all = { 0 };
    unsigned processors = pawl_processors();
    for (size_t i = 0; i < n; i++)
        pawl_hash_sizes_add(&all, sizes[i]);
    assert_int_equal(pawl_hash_threads(&all), pairs < processors ? pairs : processors);
    assert_int_equal(all.n_large, n_large);
    assert_int_equal(all.bytes, bytes);
}

#define EXPECT(pairs, n_large, bytes, ...)                                            \
    do {                                                                              \
        const uint64_t sizes[] = { __VA_ARGS__ };                                     \
        expect_threads(pairs, sizes, sizeof sizes / sizeof sizes[0], n_large, bytes); \
    } while (0)

static void
a_thread_for_each_pair(void **state)
{
    (void)state;
    EXPECT(1, 1, 1024 * MIB, 1024 * MIB);
    EXPECT(1, 2, 1024 * MIB, 512 * MIB, 512 * MIB);
    EXPECT(1, 2, 900 * MIB, 300 * MIB, 600 * MIB);
    EXPECT(2, 3, 900 * MIB, 300 * MIB, 300 * MIB, 300 * MIB);
    EXPECT(2, 4, 1200 * MIB, 300 * MIB, 300 * MIB, 300 * MIB, 300 * MIB);
    EXPECT(2, 8, 8 * MIB, MIB, MIB, MIB, MIB, MIB, MIB, MIB, MIB); /* four are read at a time */
}

/* What is done long before the others needs no thread. */
static void
small_files_do_not_count(void **state)
{
    (void)state;
    EXPECT(1, 3, 1031 * MIB, 512 * MIB, 512 * MIB, 7 * MIB);
    EXPECT(1, 2, 1024 * MIB + 1000, 512 * MIB, 512 * MIB, 300, 700);
    EXPECT(2, 3, 1152 * MIB, 512 * MIB, 512 * MIB, 128 * MIB);
    EXPECT(1, 3, 1151 * MIB, 512 * MIB, 512 * MIB, 127 * MIB);
    EXPECT(1, 3, 515 * MIB, MIB, MIB, 513 * MIB);
}

static void
nothing_large(void **state)
{
    (void)state;
    EXPECT(1, 0, 0, 0);
    EXPECT(1, 0, MIB - 1, MIB - 1);
    EXPECT(1, 0, 3 * (MIB - 1), MIB - 1, MIB - 1, MIB - 1);
    EXPECT(1, 1, UINT64_MAX, UINT64_MAX);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_for_each_pair),
        cmocka_unit_test(small_files_do_not_count),
        cmocka_unit_test(nothing_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
