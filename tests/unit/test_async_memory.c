/*
 * Goal: whichever allocation of a save in the background fails, in the call or in its thread, or the shadow's memory can't be had, the answer is
 * PAWL_NO_MEMORY (or the save was durable), the root is whole, nothing leaks (the leak checker of the sanitizer build sees to that), and
 * the next save works. Method: the linker hands the library's malloc, calloc, realloc and mmap to these; the n-th answers nothing, for every n.
 */
#include "unit/async_support.h"

#include <sys/mman.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

static atomic_long until_failure = -1; /* allocations before the one that fails; below 0: none fails */
static atomic_bool has_failed;

static bool
fails_now(void)
{
    if (atomic_load(&until_failure) < 0 || atomic_fetch_sub(&until_failure, 1) != 0)
        return false;
    atomic_store(&has_failed, true);
    return true;
}

void *
__wrap_malloc(size_t bytes)
{
    return fails_now() ? NULL : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t n, size_t bytes)
{
    return fails_now() ? NULL : __real_calloc(n, bytes);
}

void *
__wrap_realloc(void *old, size_t bytes)
{
    return fails_now() ? NULL : __real_realloc(old, bytes);
}

void *
__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails_now() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

static void
fail_at(long n)
{
    atomic_store(&has_failed, false);
    atomic_store(&until_failure, n);
}

/* The host without its syncs: hundreds of saves are only looked at from here. */
static int
sync_no_file(void *context, struct pawl_os_file *file)
{
    (void)context;
    (void)file;
    return 0;
}

static int
sync_no_dir(void *context, struct pawl_os_dir *dir)
{
    (void)context;
    (void)dir;
    return 0;
}

static const struct pawl_os *
quick_os(void)
{
    static struct pawl_os os;
    os = *pawl_os_posix();
    os.file_sync = sync_no_file;
    os.dir_sync = sync_no_dir;
    return &os;
}

static void
every_allocation_fails(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        struct toy toy;
        unsigned in_call = 0, in_thread = 0;
        bool was_met = true;
        remove_root();
        toy_init(&toy, 1);
        const struct pawl_run_options options =
            PAWL_RUN_OPTIONS(.keep = 2, .write_sums = 1,
                             .snapshot = way == 0 ? PAWL_SNAPSHOT_COPY : PAWL_SNAPSHOT_BORROW);
        for (long nth = 0; was_met; nth++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            struct pawl_save *save = NULL;
            struct pawl_run *run = open_run(quick_os(), options); /* a new one: its shadow is not there yet */
            fail_at(nth);
            enum pawl_status st = pawl_run_save_async(run, toy.state, nth, NULL, &save, &err);
            enum pawl_status end = st == PAWL_OK ? pawl_save_wait(save, -1, &err) : st;
            (void)pawl_run_wait(run, NULL);
            was_met = atomic_load(&has_failed);
            fail_at(-1);
            if (end != PAWL_OK && end != PAWL_NO_MEMORY)
                fail_msg("allocation %ld: status %d, %s", nth, (int)end, err.message);
            assert_true(end == PAWL_OK || was_met);
            assert_true((save != NULL) == (st == PAWL_OK));
            in_call += st != PAWL_OK;
            in_thread += st == PAWL_OK && end != PAWL_OK;
            pawl_save_release(save);
            assert_root_holds(pawl_os_posix());
            save = save_async(run, &toy, nth, 3);
            assert_durable(save);
            pawl_save_release(save);
            close_run(run);
        }
        assert_root_holds(pawl_os_posix());
        assert_root_is_clean(pawl_os_posix());
        assert_true(in_call > 5 && in_thread > 5);
        print_message("%u failed in the call, %u in the thread\n", in_call, in_thread);
        toy_release(&toy);
        remove_root();
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_fails) };
    return end_tests(cmocka_run_group_tests(tests, NULL, NULL));
}
