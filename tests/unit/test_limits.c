/*
 * Goal: the yardsticks of `pawl bench` and of bench/ measure what they say: a file that is fetched is in the cache, all of it; what is hashed
 * and written is what was asked for.
 *
 * Method: a file of an odd length, and the system's answer which of its pages are in the cache. Times are only looked at for being there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/limits.h"

#define BYTES ((size_t)(3 << 20) + 1234)

static size_t
cached_pages(const char *path, size_t *ret_pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char in[1024];
    size_t n = 0;
    *ret_pages = (BYTES + page - 1) / page;
    assert_in_range(*ret_pages, 1, sizeof in);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    void *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mincore(map, BYTES, in), 0);
    for (size_t i = 0; i < *ret_pages; i++)
        n += in[i] & 1;
    (void)munmap(map, BYTES);
    (void)close(fd);
    return n;
}

static void
what_is_fetched_is_cached(void **state)
{
    (void)state;
    char path[] = "pawl-limits-XXXXXX";
    unsigned char *data = limits_memory(BYTES);
    size_t pages;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && data != NULL);
    memset(data, 7, BYTES);
    assert_int_equal(write(fd, data, BYTES), BYTES);
    assert_int_equal(fsync(fd), 0); /* what is dirty stays in the cache */
    (void)close(fd);
    limits_forget_file(path);
    size_t before = cached_pages(path, &pages);
    limits_fetch_file(path);
    print_message("%zu of %zu pages were in the cache before\n", before, pages);
    assert_int_equal(cached_pages(path, &pages), pages);
    limits_fetch_file("pawl-limits-nothing"); /* nothing to do */
    (void)unlink(path);
    limits_forget(data, BYTES);
}

static void
every_number_of_streams_is_hashed(void **state)
{
    (void)state;
    unsigned char *data = limits_memory(BYTES);
    assert_non_null(data);
    for (size_t n = 2; n <= 9; n++)
        assert_true(limits_hash_many(data, BYTES, n) > 0.0);
    limits_forget(data, BYTES);
}

static void
nothing_is_left_of_what_was_written(void **state)
{
    (void)state;
    char folder[] = "pawl-limits-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
    assert_true(limits_write_best(path, BYTES) > 0.0);
    for (unsigned threads = 1; threads <= 5; threads++)
        assert_true(limits_write(path, BYTES, false, threads) > 0.0);
    assert_int_equal(rmdir(folder), 0);
    assert_true(limits_write_best(path, BYTES) < 0.0); /* the folder is not there */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_fetched_is_cached),
        cmocka_unit_test(every_number_of_streams_is_hashed),
        cmocka_unit_test(nothing_is_left_of_what_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
