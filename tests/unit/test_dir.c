/* Directories: made durably, listed in order, locked, renamed in, removed whole. */
#include "unit/os_fixture.h"

#include <sys/resource.h>

#include "sim/faultos.h"
#include "sim/simdisk.h"

static struct simdisk *disk;
static struct faultos *faults;
static const struct pawl_os *os;
static struct pawl_error err;

static int
set_up(void **state)
{
    (void)state;
    disk = simdisk_new();
    faults = faultos_new(simdisk_os(disk));
    os = faultos_os(faults);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    bool is_leaking = simdisk_open_handles(disk) != 0 || faultos_open(faults) != 0;
    faultos_free(faults);
    simdisk_free(disk);
    return is_leaking ? -1 : 0;
}

static void
expect_tree(const char *path, const char *expected)
{
    char *tree = simdisk_tree(disk, path);
    assert_string_equal(tree, expected);
    free(tree);
}

/* ---- create_all ---- */

/*
 * Goal: what create_all reported survives a cut right after. Method: all
 * pending operations lost, for several spellings of the same path.
 */
static void
created_directories_survive_a_cut(void **state)
{
    (void)state;
    const char *const paths[] = { "a/b/c",  "a/b/c/",     "a//b///c",  "./a/./b/c",
                                  "/a/b/c", "x/../a/b/c", "link/b/c/", "a/b/../b/c" };
    const size_t made[] = { 3, 3, 3, 3, 3, 3, 2, 1 }; /* the innermost, behind the last ".." */
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct simdisk *fresh = simdisk_new();
        size_t n_made = 0;
        if (strncmp(paths[i], "link", 4) == 0) {
            simdisk_put_dir(fresh, "a");
            simdisk_put_link(fresh, "link", "a");
        }
        assert_int_equal(pawl_dir_create_all(simdisk_os(fresh), paths[i], &n_made, &err), PAWL_OK);
        assert_int_equal(n_made, made[i]);
        assert_int_equal(simdisk_open_handles(fresh), 0);
        struct simdisk *after = simdisk_build_state(fresh, simdisk_trace_len(fresh), NULL, 0, 1);
        assert_true(simdisk_has(after, "a/b/c"));
        assert_int_equal(simdisk_mode(after, "a/b/c"), 0755);
        assert_int_equal(pawl_dir_create_all(simdisk_os(after), paths[i], &n_made, &err), PAWL_OK);
        assert_int_equal(n_made, 0);
        simdisk_free(after);
        simdisk_free(fresh);
    }
}

/*
 * Goal: directories that a killed run made and did not sync are durable once
 * the next run has opened them. Method: make them past create_all, unsynced.
 */
static void
existing_directories_are_made_durable_too(void **state)
{
    (void)state;
    size_t n_made = 9;
    assert_int_equal(os->dir_create_path(os->context, "a"), 0);
    assert_int_equal(os->dir_create_path(os->context, "a/b"), 0);
    struct simdisk *before = simdisk_build_state(disk, simdisk_trace_len(disk), NULL, 0, 1);
    assert_false(simdisk_has(before, "a"));
    simdisk_free(before);
    assert_int_equal(pawl_dir_create_all(os, "a/b", &n_made, &err), PAWL_OK);
    assert_int_equal(n_made, 0);
    struct simdisk *after = simdisk_build_state(disk, simdisk_trace_len(disk), NULL, 0, 1);
    assert_true(simdisk_has(after, "a/b"));
    simdisk_free(after);
}

static void
create_all_says_what_is_in_the_way(void **state)
{
    (void)state;
    simdisk_put_text(disk, "file", "x");
    simdisk_put_link(disk, "nowhere", "gone/away");
    size_t n_made = 0;
    assert_int_equal(pawl_dir_create_all(os, "", &n_made, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_dir_create_all(os, "file", &n_made, &err), PAWL_NO_FILE);
    assert_string_equal(err.message, "open directory 'file': Not a directory");
    assert_int_equal(pawl_dir_create_all(os, "file/b", &n_made, &err), PAWL_NO_FILE);
    assert_string_equal(err.message, "open directory 'file': Not a directory");
    assert_int_equal(pawl_dir_create_all(os, "nowhere/b", &n_made, &err), PAWL_NO_FILE);
    assert_int_equal(n_made, 0);
    faultos_fail(faults, SIM_DIR_CREATE_PATH, 0, 0, EROFS);
    assert_int_equal(pawl_dir_create_all(os, "new/b", &n_made, &err), PAWL_PERMISSION);
    assert_string_equal(err.message, "create directory 'new': Read-only file system");
    faultos_fail(faults, SIM_DIR_SYNC, 0, 0, EIO);
    assert_int_equal(pawl_dir_create_all(os, "new/b", &n_made, &err), PAWL_IO);
    assert_string_equal(err.message, "sync directory 'new/b/..': Input/output error");
    assert_false(simdisk_has(disk, "new"));

    /* The second of two can't be made: the first goes again. */
    faultos_fail(faults, SIM_DIR_CREATE_PATH, 1, 0, ENOSPC);
    assert_int_equal(pawl_dir_create_all(os, "new/b", &n_made, &err), PAWL_NO_SPACE);
    assert_false(simdisk_has(disk, "new"));

    /* Taking back stops at what is in use. */
    assert_int_equal(pawl_dir_create_all(os, "new/./b//c/.", &n_made, &err), PAWL_OK);
    assert_int_equal(n_made, 3);
    simdisk_put_text(disk, "new/mine", "x");
    pawl_dir_remove_made(os, "new/./b//c/.", n_made);
    assert_false(simdisk_has(disk, "new/b"));
    assert_true(simdisk_has(disk, "new/mine"));
}

/* Goal: what is no failure leaves no error behind: a parent that may not be opened, above a directory that was there. */
static void
create_all_keeps_quiet_about_what_does_not_matter(void **state)
{
    (void)state;
    assert_int_equal(pawl_dir_create_all(os, "there", NULL, &err), PAWL_OK);
    err = (struct pawl_error)PAWL_ERROR_INIT;
    faultos_fail(faults, SIM_DIR_OPEN, 0, 0, EACCES);
    assert_int_equal(pawl_dir_create_all(os, "there", NULL, &err), PAWL_OK);
    assert_true(faultos_was_met(faults));
    assert_int_equal(err.status, PAWL_OK);
    assert_string_equal(err.message, "");
    assert_string_equal(err.path, "");
}

/* On the host, with the modes that an ordinary mkdir gives, also below a set-group-id directory. */
static void
modes_are_an_ordinary_mkdirs(void **state)
{
    (void)state;
    const struct pawl_os *host = pawl_os_posix();
    assert_int_equal(pawl_dir_create_all(host, "a/b", NULL, &err), PAWL_OK);
    assert_int_equal(host_mode("a"), 0755);
    assert_int_equal(host_mode("a/b"), 0755);
    (void)umask(007);
    assert_int_equal(pawl_dir_create_all(host, "a/c", NULL, &err), PAWL_OK);
    assert_int_equal(host_mode("a/c"), 0770);
    assert_int_equal(mkdir("shared", 0770), 0);
    if (geteuid() == 0)
        assert_int_equal(chown("shared", (uid_t)-1, 12345), 0);
    assert_int_equal(chmod("shared", 02770), 0);
    assert_int_equal(pawl_dir_create_all(host, "shared/run/ckpt", NULL, &err), PAWL_OK);
    assert_int_equal(host_mode("shared/run/ckpt"), 02770);
    struct stat parent, child;
    assert_int_equal(stat("shared", &parent), 0);
    assert_int_equal(stat("shared/run/ckpt", &child), 0);
    assert_int_equal(child.st_gid, parent.st_gid);
}

/* ---- listing ---- */

static void
lists_are_in_byte_order_with_kinds(void **state)
{
    (void)state;
    simdisk_put_text(disk, "d/b", "");
    simdisk_put_text(disk, "d/B", "");
    simdisk_put_text(disk, "d/b.tmp", "");
    simdisk_put_text(disk, "d/\xc3\xa9", "");
    simdisk_put_dir(disk, "d/dir");
    simdisk_put_link(disk, "d/link", "b");
    simdisk_put_fifo(disk, "d/fifo");
    for (int round = 0; round < 2; round++) {
        struct pawl_dir dir = PAWL_DIR_INIT;
        struct pawl_dir_list list = { NULL, 0 };
        faultos_lack(faults, round == 0 ? 0 : SIM_KINDS); /* then the kinds are asked for */
        assert_int_equal(pawl_dir_open_path(&dir, os, "d", &err), PAWL_OK);
        faultos_fail_after(faults, SIM_DIR_LIST, 0, EINTR); /* when all were told: none may be there twice */
        assert_int_equal(pawl_dir_list(&dir, &list, &err), PAWL_OK);
        const char *const names[] = { "B", "b", "b.tmp", "dir", "fifo", "link", "\xc3\xa9" };
        const enum pawl_os_kind kinds[] = { PAWL_OS_FILE,  PAWL_OS_FILE, PAWL_OS_FILE, PAWL_OS_DIR,
                                            PAWL_OS_OTHER, PAWL_OS_LINK, PAWL_OS_FILE };
        assert_int_equal(list.n, 7);
        for (size_t i = 0; i < list.n; i++) {
            assert_string_equal(list.entries[i].name, names[i]);
            assert_int_equal(list.entries[i].kind, kinds[i]);
        }
        pawl_dir_list_release(&list);
        if (round == 1) {
            faultos_reset(faults);
            faultos_fail(faults, SIM_STAT, 2, 0, ENOENT); /* removed while listing: left out */
            assert_int_equal(pawl_dir_list(&dir, &list, &err), PAWL_OK);
            assert_int_equal(list.n, 6);
            pawl_dir_list_release(&list);
            faultos_fail(faults, SIM_STAT, 2, 0, EACCES);
            assert_int_equal(pawl_dir_list(&dir, &list, &err), PAWL_PERMISSION);
            assert_int_equal(list.n, 0);
        }
        faultos_fail(faults, SIM_DIR_LIST, 0, 0, EIO);
        assert_int_equal(pawl_dir_list(&dir, &list, &err), PAWL_IO);
        assert_string_equal(err.message, "list directory 'd': Input/output error");
        pawl_dir_release(&dir);
    }
}

/* ---- syncing ---- */

static void
a_directory_sync_that_is_not_there_is_no_failure(void **state)
{
    (void)state;
    const int unsupported[] = { EINVAL, ENOTSUP };
    struct pawl_dir dir = PAWL_DIR_INIT;
    bool is_unsupported = true;
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", &err), PAWL_OK);
    assert_int_equal(pawl_dir_sync(&dir, &is_unsupported, &err), PAWL_OK);
    assert_false(is_unsupported);
    for (size_t i = 0; i < 2; i++) {
        is_unsupported = false;
        faultos_fail(faults, SIM_DIR_SYNC, 0, 0, unsupported[i]);
        assert_int_equal(pawl_dir_sync(&dir, &is_unsupported, &err), PAWL_OK);
        assert_true(is_unsupported);
    }
    faultos_reset(faults);
    faultos_fail(faults, SIM_DIR_SYNC, 0, 0, EIO);
    assert_int_equal(pawl_dir_sync(&dir, &is_unsupported, &err), PAWL_IO);
    assert_string_equal(err.message, "sync directory '.': Input/output error");
    assert_int_equal(faultos_calls(faults, SIM_DIR_SYNC), 1); /* never a second time */
    pawl_dir_release(&dir);
}

/* ---- renaming ---- */

static void
a_rename_in_one_step_that_is_not_there_says_unsupported(void **state)
{
    (void)state;
    const int codes[] = { EINVAL, ENOSYS, ENOTSUP, EXDEV };
    struct pawl_dir dir = PAWL_DIR_INIT;
    simdisk_put_text(disk, "a", "A");
    simdisk_put_text(disk, "b", "B");
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", &err), PAWL_OK);
    for (size_t i = 0; i < 4; i++) {
        faultos_fail(faults, SIM_RENAME, 0, 0, codes[i]);
        assert_int_equal(pawl_dir_rename(&dir, "a", "b", PAWL_OS_EXCHANGE, &err), PAWL_UNSUPPORTED);
        assert_int_equal(err.status, PAWL_UNSUPPORTED);
        assert_string_equal(err.code, "unsupported");
        faultos_fail(faults, SIM_RENAME, 0, 0, codes[i]);
        assert_int_equal(pawl_dir_rename(&dir, "a", "c", PAWL_OS_NO_REPLACE, &err),
                         codes[i] == EXDEV ? PAWL_IO : PAWL_UNSUPPORTED);
    }
    faultos_fail(faults, SIM_RENAME, 0, 0, EINVAL); /* of a plain rename it is a failure */
    assert_int_equal(pawl_dir_rename(&dir, "a", "b", PAWL_OS_REPLACE, &err), PAWL_IO);
    assert_string_equal(err.message, "rename 'a' to 'b': Invalid argument");
    assert_int_equal(pawl_dir_rename(&dir, "a", "b", PAWL_OS_NO_REPLACE, &err), PAWL_EXISTS);
    assert_int_equal(pawl_dir_rename(&dir, "none", "b", PAWL_OS_REPLACE, &err), PAWL_NO_FILE);
    assert_int_equal(pawl_dir_rename(&dir, "a", "b", PAWL_OS_EXCHANGE, &err), PAWL_OK);
    assert_string_equal(simdisk_text(disk, "a"), "B");
    pawl_dir_release(&dir);
}

/*
 * Goal: a rename that the file server carried out and then denied counts as
 * done, and one that was not carried out does not, although the new name is
 * there from before.
 */
static void
a_denied_rename_is_believed_only_after_a_look(void **state)
{
    (void)state;
    const enum pawl_os_rename hows[] = { PAWL_OS_REPLACE, PAWL_OS_NO_REPLACE };
    const int codes[] = { ENOENT, EINTR };
    struct pawl_dir dir = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", &err), PAWL_OK);
    for (size_t i = 0; i < 4; i++) {
        simdisk_put_text(disk, "a", "new");
        faultos_fail_after(faults, SIM_RENAME, 0, codes[i % 2]);
        assert_int_equal(pawl_dir_rename(&dir, "a", "b", hows[i / 2], &err), PAWL_OK);
        assert_string_equal(simdisk_text(disk, "b"), "new");
        simdisk_remove(disk, "b");
    }
    simdisk_put_text(disk, "a", "new");
    simdisk_put_text(disk, "b", "old");
    faultos_fail(faults, SIM_RENAME, 0, 0, ENOENT);
    assert_int_equal(pawl_dir_rename(&dir, "a", "b", PAWL_OS_REPLACE, &err), PAWL_NO_FILE);
    assert_string_equal(simdisk_text(disk, "b"), "old");
    faultos_fail(faults, SIM_RENAME, 0, 2, EINTR); /* not carried out: tried again */
    assert_int_equal(pawl_dir_rename(&dir, "a", "b", PAWL_OS_REPLACE, &err), PAWL_OK);
    assert_string_equal(simdisk_text(disk, "b"), "new");
    simdisk_put_text(disk, "a", "other");
    faultos_fail_after(faults, SIM_RENAME, 0, EINTR); /* an exchange is not made twice */
    assert_int_equal(pawl_dir_rename(&dir, "a", "b", PAWL_OS_EXCHANGE, &err), PAWL_INTERRUPTED);
    assert_string_equal(simdisk_text(disk, "b"), "other");
    pawl_dir_release(&dir);
}

/* ---- removing ---- */

static void
trees_are_removed_and_links_are_not_followed(void **state)
{
    (void)state;
    struct pawl_dir dir = PAWL_DIR_INIT;
    simdisk_put_text(disk, "kept/file", "x");
    simdisk_put_text(disk, "t/a/b/c/file", "x");
    simdisk_put_text(disk, "t/a/file", "x");
    simdisk_put_text(disk, "t/z", "x");
    simdisk_put_dir(disk, "t/empty");
    simdisk_put_fifo(disk, "t/a/fifo");
    simdisk_put_link(disk, "t/a/link", "../../kept");
    simdisk_put_link(disk, "link", "kept");
    simdisk_put_text(disk, "plain", "x");
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", &err), PAWL_OK);
    for (int round = 0; round < 2; round++) { /* the second finds nothing, which is fine */
        assert_int_equal(pawl_dir_remove_tree(&dir, "t", &err), PAWL_OK);
        assert_int_equal(pawl_dir_remove_tree(&dir, "link", &err), PAWL_OK);
        assert_int_equal(pawl_dir_remove_tree(&dir, "plain", &err), PAWL_OK);
    }
    expect_tree("", "kept/\nkept/file");
    pawl_dir_release(&dir);
}

static void
removal_goes_on_and_reports_the_first_failure(void **state)
{
    (void)state;
    struct pawl_dir dir = PAWL_DIR_INIT;
    simdisk_put_text(disk, "t/a/stuck", "x");
    simdisk_put_text(disk, "t/b", "x");
    simdisk_put_text(disk, "t/c/d", "x");
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", &err), PAWL_OK);
    unsigned calls = 0;
    /* Whichever call fails: no leak, no false "done", and a second removal finishes the work. */
    for (unsigned nth = 0;; nth++) {
        struct simdisk *copy = simdisk_clone(disk);
        struct faultos *faulty = faultos_new(simdisk_os(copy));
        struct pawl_dir at = PAWL_DIR_INIT;
        assert_int_equal(pawl_dir_open_path(&at, faultos_os(faulty), ".", &err), PAWL_OK);
        faultos_fail(faulty, SIM_ANY, nth, 0, EACCES);
        enum pawl_status st = pawl_dir_remove_tree(&at, "t", &err);
        if (st == PAWL_OK)
            assert_false(simdisk_has(copy, "t"));
        else
            assert_int_equal(st, PAWL_PERMISSION);
        bool was_met = faultos_was_met(faulty);
        faultos_reset(faulty);
        assert_int_equal(pawl_dir_remove_tree(&at, "t", &err), PAWL_OK);
        assert_false(simdisk_has(copy, "t"));
        pawl_dir_release(&at);
        assert_int_equal(simdisk_open_handles(copy), 0);
        faultos_free(faulty);
        simdisk_free(copy);
        if (!was_met)
            break;
        calls = nth + 1;
    }
    assert_true(calls > 10);
    faultos_reset(faults);
    faultos_fail(faults, SIM_REMOVE_FILE, 1, 0,
                 EACCES); /* after "t" itself, the first file found: the disk lists c first */
    assert_int_equal(pawl_dir_remove_tree(&dir, "t", &err), PAWL_PERMISSION);
    assert_string_equal(err.message, "remove 't/c/d': Permission denied");
    expect_tree("t", "c/\nc/d"); /* all the rest went */
    pawl_dir_release(&dir);
}

/* Goal: depth costs no descriptors and no stack. Method: 400 levels on the host, with 64 descriptors. */
static void
deep_trees_are_removed(void **state)
{
    (void)state;
    const struct pawl_os *host = pawl_os_posix();
    struct pawl_dir dir = PAWL_DIR_INIT;
    int home = open(".", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(mkdir("deep", 0755), 0);
        assert_int_equal(chdir("deep"), 0);
    }
    host_put("bottom", "x");
    assert_int_equal(fchdir(home), 0);
    (void)close(home);
    assert_int_equal(pawl_dir_open_path(&dir, host, ".", &err), PAWL_OK);
    int before = count_descriptors();
    struct rlimit limit, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(pawl_dir_remove_tree(&dir, "deep", &err), PAWL_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(count_names("."), 0);
    pawl_dir_release(&dir);
}

/* ---- locks and space ---- */

static void
a_lock_that_is_taken_says_by_whom(void **state)
{
    (void)state;
    struct pawl_dir dir = PAWL_DIR_INIT, other = PAWL_DIR_INIT;
    bool is_fallback = true;
    simdisk_put_dir(disk, "run");
    assert_int_equal(pawl_dir_open_path(&dir, os, "run", &err), PAWL_OK);
    assert_int_equal(pawl_dir_open_path(&other, os, "run", &err), PAWL_OK);
    assert_int_equal(pawl_dir_lock(&dir, PAWL_OS_LOCK_TRY, &is_fallback, &err), PAWL_OK);
    assert_false(is_fallback);
    assert_int_equal(pawl_dir_lock(&other, PAWL_OS_LOCK_TRY, NULL, &err), PAWL_BUSY);
    assert_string_equal(err.message, "lock directory 'run': process 4711 holds it");
    assert_string_equal(err.code, "busy");
    pawl_dir_unlock(&dir);
    assert_int_equal(pawl_dir_lock(&other, PAWL_OS_LOCK_TRY, NULL, &err), PAWL_OK);
    pawl_dir_release(&other);
    simdisk_lack(disk, SIM_LOCK);
    assert_int_equal(pawl_dir_lock(&dir, PAWL_OS_LOCK_TRY, &is_fallback, &err), PAWL_OK);
    assert_true(is_fallback);
    expect_tree("run", ".lock");
    faultos_lack(faults, SIM_LOCK);
    assert_int_equal(pawl_dir_lock(&dir, PAWL_OS_LOCK_TRY, &is_fallback, &err), PAWL_UNSUPPORTED);
    pawl_dir_release(&dir);
}

static void
space_is_told_in_numbers(void **state)
{
    (void)state;
    struct pawl_dir dir = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", &err), PAWL_OK);
    simdisk_set_capacity(disk, 1000);
    simdisk_put_text(disk, "a", "0123456789");
    assert_int_equal(pawl_dir_check_space(&dir, 990, &err), PAWL_OK);
    assert_int_equal(pawl_dir_check_space(&dir, 991, &err), PAWL_NO_SPACE);
    assert_string_equal(err.message, "no space in '.': 991 bytes are needed, 990 bytes are available");
    faultos_fail(faults, SIM_DIR_SPACE, 0, 0, ENOSYS);
    assert_int_equal(pawl_dir_check_space(&dir, 991, &err), PAWL_OK); /* advice: it can't say */
    simdisk_set_weak_kind(disk, "nfs");
    assert_string_equal(pawl_dir_weak_kind(&dir), "nfs");
    pawl_dir_release(&dir);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        TEST(created_directories_survive_a_cut),
        TEST(existing_directories_are_made_durable_too),
        TEST(create_all_says_what_is_in_the_way),
        TEST(create_all_keeps_quiet_about_what_does_not_matter),
        HOST_TEST(modes_are_an_ordinary_mkdirs),
        TEST(lists_are_in_byte_order_with_kinds),
        TEST(a_directory_sync_that_is_not_there_is_no_failure),
        TEST(a_rename_in_one_step_that_is_not_there_says_unsupported),
        TEST(a_denied_rename_is_believed_only_after_a_look),
        TEST(trees_are_removed_and_links_are_not_followed),
        TEST(removal_goes_on_and_reports_the_first_failure),
        HOST_TEST(deep_trees_are_removed),
        TEST(a_lock_that_is_taken_says_by_whom),
        TEST(space_is_told_in_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
