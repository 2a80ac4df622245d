/* Kept memory: where it lies, that it was touched, and that a forked child does not have it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/kept.h"
#include "unit/emulator.h"

static void
taken_and_touched(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, PAWL_HUGE_PAGE_BYTES, PAWL_HUGE_PAGE_BYTES + 1, 35 * PAWL_HUGE_PAGE_BYTES };
    static const size_t wanted[] = { 1, 1, 1, 2, 35 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct pawl_pages pages = PAWL_PAGES_INIT;
        unsigned char resident[35 * PAWL_HUGE_PAGE_BYTES / 4096];
        assert_true(pawl_pages_take(&pages, sizes[i]));
        assert_int_equal(pages.bytes, wanted[i] * PAWL_HUGE_PAGE_BYTES);
        assert_int_equal((uintptr_t)pages.data % PAWL_HUGE_PAGE_BYTES, 0);
        assert_int_equal(mincore(pages.data, pages.bytes, resident), 0);
        for (size_t at = 0; at < pages.bytes / 4096; at++)
            assert_int_equal(resident[at] & 1, 1);
        for (size_t at = 0; at < pages.bytes; at += 4093)
            assert_int_equal(pages.data[at], 0);
        memset(pages.data, 0xab, pages.bytes);
        unsigned char *was = pages.data;
        pawl_pages_release(&pages);
        assert_null(pages.data);
        assert_true(msync(was, 4096, MS_ASYNC) < 0 && errno == ENOMEM); /* given back */
        pawl_pages_release(&pages);
    }
}

static void
too_much_is_refused(void **state)
{
    (void)state;
    struct pawl_pages pages = PAWL_PAGES_INIT;
    assert_false(pawl_pages_take(&pages, SIZE_MAX));
    assert_false(pawl_pages_take(&pages, SIZE_MAX / 4)); /* more than any address space */
    assert_null(pages.data);
}

/* Goal: a fork costs nothing for it, and a child can't write into what the parent's disk is reading. */
static void
not_in_a_child(void **state)
{
    (void)state;
    SKIP_UNDER_EMULATOR("gives a child the pages that it should not have");
    struct pawl_pages pages = PAWL_PAGES_INIT;
    int status = 0;
    assert_true(pawl_pages_take(&pages, 1));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(msync(pages.data, 4096, MS_ASYNC) < 0 && errno == ENOMEM ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pages.data[0] = 1;
    pawl_pages_release(&pages);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_and_touched),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(not_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
