/* Replacing and publishing: all of the old or all of the new, whatever fails and whenever the power goes. */
#include "unit/os_fixture.h"

#include "sim/faultos.h"
#include "sim/simdisk.h"

#define OPS_MAX 200
#define SEEDS 40

static const struct pawl_tap NO_TAP = { NULL, NULL };
static struct pawl_error err;
static uint64_t seed; /* printed by main */

/* Several sectors, so that a torn file shows: "old old old ..." and "new new ...", each with its end. */
static char old_text[3000], new_text[5000];

static void
fill(char *text, size_t size, const char *word)
{
    for (size_t i = 0; i + 1 < size; i++)
        text[i] = word[i % strlen(word)];
    text[size - 2] = '.';
    text[size - 1] = '\0';
}

/* The two ways that are tested alike. */
static enum pawl_status
replace(const struct pawl_os *os)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    enum pawl_status st = pawl_dir_open_path(&dir, os, "root", &err);
    if (st == PAWL_OK)
        st = pawl_file_replace(&dir, "LATEST", "LATEST.tmp", new_text, strlen(new_text), &err);
    pawl_dir_release(&dir);
    return st;
}

static enum pawl_status
publish_as(const struct pawl_os *os, const char *path, bool may_replace)
{
    struct pawl_publish publish = PAWL_PUBLISH_INIT;
    size_t half = strlen(new_text) / 2;
    enum pawl_status st = pawl_publish_begin(&publish, os, path, may_replace, strlen(new_text), NO_TAP, &err);
    if (st == PAWL_OK)
        st = pawl_writer_add(&publish.writer, new_text, half, &err);
    if (st == PAWL_OK)
        st = pawl_writer_add(&publish.writer, new_text + half, strlen(new_text) - half, &err);
    if (st == PAWL_OK)
        st = pawl_publish_commit(&publish, &err);
    pawl_publish_release(&publish);
    return st;
}

static enum pawl_status
publish(const struct pawl_os *os)
{
    return publish_as(os, "root/LATEST", true);
}

typedef enum pawl_status way_fn(const struct pawl_os *os);
static way_fn *const WAYS[] = { replace, publish };

static struct simdisk *
disk_with_old(void)
{
    struct simdisk *disk = simdisk_new();
    simdisk_put_text(disk, "root/LATEST", old_text);
    return disk;
}

static void
expect_tree(const struct simdisk *disk, const char *path, const char *expected)
{
    char *tree = simdisk_tree(disk, path);
    assert_string_equal(tree, expected);
    free(tree);
}

/*
 * Goal: wherever power is lost, a reader finds the whole old file or the whole
 * new one, and the new one once the call said so. Method: cut power at call 0,
 * 1, 2 ..., reboot by many seeds, look; stop at the first run that meets no cut.
 */
static void
atomic_under_power_loss(void **state)
{
    (void)state;
    for (size_t way = 0; way < 2; way++) {
        unsigned op = 0;
        for (;; op++) {
            bool was_cut = false;
            assert_true(op < OPS_MAX);
            for (uint64_t k = 0; k < SEEDS; k++) {
                struct simdisk *disk = disk_with_old();
                simdisk_cut_power_at(disk, op);
                enum pawl_status st = WAYS[way](simdisk_os(disk));
                was_cut = simdisk_reboot(disk, seed + 1000 * op + k);
                const char *text = simdisk_text(disk, "root/LATEST");
                assert_non_null(text);
                if (strcmp(text, new_text) != 0) {
                    assert_int_not_equal(st, PAWL_OK);
                    assert_string_equal(text, old_text);
                }
                simdisk_free(disk);
            }
            if (!was_cut)
                break;
        }
        assert_true(op > 5);
    }
}

/*
 * The same without chance: every prefix of the trace and every choice of fates
 * of what is pending there (kept, lost, torn at a sector, torn at a byte).
 */
static void
atomic_in_every_crash_state(void **state)
{
    (void)state;
    for (size_t way = 0; way < 2; way++) {
        struct simdisk *disk = disk_with_old();
        size_t states = 0;
        bool may_be_old = true;
        size_t begin = simdisk_trace_len(disk);
        assert_int_equal(WAYS[way](simdisk_os(disk)), PAWL_OK);
        simdisk_mark(disk, "durable");
        for (size_t prefix = begin; prefix <= simdisk_trace_len(disk); prefix++) {
            unsigned char fates[8] = { 0 };
            size_t places[8];
            size_t n = simdisk_pending(disk, prefix, places, 8);
            assert_true(n <= 8);
            if (prefix > 0 && simdisk_mark_at(disk, prefix - 1) != NULL)
                may_be_old = false;
            size_t choices = (size_t)1 << (2 * n);
            for (size_t choice = 0; choice < choices; choice++) {
                for (size_t i = 0; i < n; i++)
                    fates[i] = (unsigned char)(choice >> (2 * i) & 3);
                struct simdisk *after = simdisk_build_state(disk, prefix, fates, n, choice);
                const char *text = simdisk_text(after, "root/LATEST");
                assert_non_null(text);
                if (!may_be_old || strcmp(text, old_text) != 0)
                    assert_string_equal(text, new_text);
                simdisk_free(after);
                states++;
            }
        }
        assert_false(may_be_old);
        print_message("%s: %zu crash states\n", way == 0 ? "replace" : "publish", states);
        simdisk_free(disk);
    }
}

/*
 * Goal: any call may fail once, with any reason, and then the old content is
 * intact (or the new one whole), nothing leaks, no temporary is left, and the
 * next try works. Method: fail call 0, 1, 2 ... with each reason.
 */
static void
any_call_may_fail_once(void **state)
{
    (void)state;
    const int codes[] = { ENOSPC, EIO, EINTR, EMFILE, EDQUOT, EACCES, ENOMEM, 0 };
    for (size_t way = 0; way < 2; way++) {
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
            unsigned nth = 0;
            for (;; nth++) {
                struct simdisk *disk = disk_with_old();
                struct faultos *faults = faultos_new(simdisk_os(disk));
                assert_true(nth < OPS_MAX);
                faultos_fail(faults, SIM_ANY, nth, 0, codes[i]);
                enum pawl_status st = WAYS[way](faultos_os(faults));
                bool was_met = faultos_was_met(faults);
                const char *text = simdisk_text(disk, "root/LATEST");
                if (st == PAWL_OK) {
                    assert_string_equal(text, new_text);
                } else {
                    assert_true(was_met);
                    assert_int_not_equal(codes[i], 0);
                    assert_int_equal(st, pawl_status_of_errno(codes[i]));
                    assert_true(strcmp(text, old_text) == 0 || strcmp(text, new_text) == 0);
                    assert_string_not_equal(err.message, "");
                }
                expect_tree(disk, "root", "LATEST");
                assert_int_equal(simdisk_open_handles(disk), 0);
                assert_int_equal(faultos_open(faults), 0);
                faultos_reset(faults);
                assert_int_equal(WAYS[way](faultos_os(faults)), PAWL_OK);
                assert_string_equal(simdisk_text(disk, "root/LATEST"), new_text);
                faultos_free(faults);
                simdisk_free(disk);
                if (!was_met)
                    break;
            }
            assert_true(nth > 5);
        }
    }
}

/* The same on a real directory, where a leak is a descriptor. */
static void
any_call_may_fail_once_on_the_host(void **state)
{
    (void)state;
    const int codes[] = { ENOSPC, EIO, EMFILE };
    assert_int_equal(mkdir("root", 0755), 0);
    for (size_t way = 0; way < 2; way++) {
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
            int before = count_descriptors();
            for (unsigned nth = 0;; nth++) {
                struct faultos *faults = faultos_new(pawl_os_posix());
                assert_true(nth < OPS_MAX);
                host_put("root/LATEST", "old");
                faultos_fail(faults, SIM_ANY, nth, 0, codes[i]);
                enum pawl_status st = WAYS[way](faultos_os(faults));
                bool was_met = faultos_was_met(faults);
                if (st == PAWL_OK || strcmp(host_text("root/LATEST"), "old") != 0)
                    assert_true(strncmp(host_text("root/LATEST"), new_text, 4095) == 0);
                assert_int_equal(count_names("root"), 1);
                assert_int_equal(count_descriptors(), before);
                faultos_free(faults);
                if (!was_met)
                    break;
            }
        }
    }
}

/* Goal: the order itself: data, then name, then directory; a temporary that is never the name. */
static void
the_order_is_data_name_directory(void **state)
{
    (void)state;
    for (size_t way = 0; way < 2; way++) {
        struct simdisk *disk = disk_with_old();
        struct faultos *faults = faultos_new(simdisk_os(disk));
        assert_int_equal(WAYS[way](faultos_os(faults)), PAWL_OK);
        size_t n = 0;
        const enum sim_op *log = faultos_log(faults, &n);
        size_t at = 0;
        const enum sim_op order[] = { SIM_FILE_CREATE, SIM_FILE_WRITE_AT, SIM_FILE_SYNC,
                                      SIM_FILE_CLOSE,  SIM_RENAME,        SIM_DIR_SYNC };
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
                if (log[i] == order[k])
                    assert_int_equal(order[at++], log[i]); /* each once, in this order */
            }
        }
        assert_int_equal(at, sizeof order / sizeof order[0]);
        faultos_free(faults);
        simdisk_free(disk);
    }
}

static void
a_temporary_of_a_crash_is_no_obstacle(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with_old();
    simdisk_put_text(disk, "root/LATEST.tmp/odd", "a directory, even");
    assert_int_equal(replace(simdisk_os(disk)), PAWL_OK);
    expect_tree(disk, "root", "LATEST");
    /* a publish of a process with the same number: its name is taken, and left alone */
    simdisk_put_text(disk, "root/.LATEST.4711-0.tmp", "of another");
    assert_int_equal(publish(simdisk_os(disk)), PAWL_OK);
    expect_tree(disk, "root", ".LATEST.4711-0.tmp\nLATEST");
    simdisk_free(disk);
}

/* ---- publishing under a caller's path ---- */

static void
modes_are_an_ordinary_creates_and_are_kept(void **state)
{
    (void)state;
    const struct pawl_os *host = pawl_os_posix();
    assert_int_equal(publish_as(host, "a", true), PAWL_OK);
    assert_int_equal(host_mode("a"), 0644);
    (void)umask(007);
    assert_int_equal(publish_as(host, "b", true), PAWL_OK);
    assert_int_equal(host_mode("b"), 0660);
    assert_int_equal(publish_as(host, "a", true), PAWL_OK);
    assert_int_equal(host_mode("a"), 0644); /* it had that */
    assert_int_equal(chmod("a", 0400), 0);
    assert_int_equal(publish_as(host, "a", true), PAWL_OK);
    assert_int_equal(host_mode("a"), 0400);
    struct pawl_dir dir = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&dir, host, ".", &err), PAWL_OK);
    assert_int_equal(chmod("b", 0600), 0);
    assert_int_equal(pawl_file_replace(&dir, "b", "b.tmp", "x", 1, &err), PAWL_OK);
    assert_int_equal(host_mode("b"), 0660); /* an ordinary create's */
    pawl_dir_release(&dir);
    assert_int_equal(mkdir("shared", 0770), 0);
    if (geteuid() == 0)
        assert_int_equal(chown("shared", (uid_t)-1, 12345), 0);
    assert_int_equal(chmod("shared", 02770), 0);
    assert_int_equal(publish_as(host, "shared/f", true), PAWL_OK);
    struct stat parent, child;
    assert_int_equal(stat("shared", &parent), 0);
    assert_int_equal(stat("shared/f", &child), 0);
    assert_int_equal(child.st_gid, parent.st_gid);
}

/* Goal: a private file's successor is never open to others, not even while it is written. */
static void
a_private_file_is_private_before_it_has_content(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with_old();
    struct pawl_publish publishing = PAWL_PUBLISH_INIT;
    simdisk_put_mode(disk, "root/LATEST", 0600);
    assert_int_equal(pawl_publish_begin(&publishing, simdisk_os(disk), "root/LATEST", true, 0, NO_TAP, &err), PAWL_OK);
    assert_int_equal(simdisk_mode(disk, "root/.LATEST.4711-0.tmp"), 0600);
    assert_int_equal(pawl_writer_add(&publishing.writer, "x", 1, &err), PAWL_OK);
    assert_int_equal(pawl_publish_commit(&publishing, &err), PAWL_OK);
    pawl_publish_release(&publishing);
    struct simdisk *after = simdisk_build_state(disk, simdisk_trace_len(disk), NULL, 0, 0);
    assert_int_equal(simdisk_mode(after, "root/LATEST"), 0600); /* also after a cut */
    simdisk_free(after);
    simdisk_lack(disk, SIM_SET_MODE); /* a filesystem without modes still takes the file */
    simdisk_put_mode(disk, "root/LATEST", 0600);
    assert_int_equal(publish(simdisk_os(disk)), PAWL_OK);
    simdisk_free(disk);
}

static void
links_are_followed_to_the_target(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    const struct pawl_os *os = simdisk_os(disk);
    simdisk_put_text(disk, "store/v1/model", old_text);
    simdisk_put_link(disk, "store/current", "v1");
    simdisk_put_link(disk, "one", "two");
    simdisk_put_link(disk, "two", "store/current/model");
    simdisk_put_link(disk, "abs", "/store/v1/model");
    simdisk_put_link(disk, "dangling", "store/fresh");
    simdisk_put_link(disk, "loop-a", "loop-b");
    simdisk_put_link(disk, "loop-b", "loop-a");
    assert_int_equal(publish_as(os, "one", true), PAWL_OK);
    assert_string_equal(simdisk_text(disk, "store/v1/model"), new_text);
    simdisk_put_text(disk, "store/v1/model", old_text);
    assert_int_equal(publish_as(os, "abs", true), PAWL_OK);
    assert_string_equal(simdisk_text(disk, "store/v1/model"), new_text);
    assert_int_equal(publish_as(os, "dangling", true), PAWL_OK);
    assert_string_equal(simdisk_text(disk, "store/fresh"), new_text);
    assert_int_equal(publish_as(os, "one", false), PAWL_EXISTS);
    assert_string_equal(err.message, "'store/current/model' exists and is not to be replaced");
    assert_int_equal(publish_as(os, "loop-a", true), PAWL_IO);
    assert_string_equal(err.message, "follow links from 'loop-a': Too many levels of symbolic links");
    expect_tree(
        disk, "",
        "abs\ndangling\nloop-a\nloop-b\none\nstore/\nstore/current\nstore/fresh\nstore/v1/\nstore/v1/model\ntwo");
    assert_int_equal(simdisk_open_handles(disk), 0);
    simdisk_free(disk);
}

static void
what_is_no_file_is_not_replaced(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    const struct pawl_os *os = simdisk_os(disk);
    simdisk_put_dir(disk, "dir");
    simdisk_put_fifo(disk, "fifo");
    simdisk_put_link(disk, "to-fifo", "fifo");
    assert_int_equal(publish_as(os, "dir", true), PAWL_EXISTS);
    assert_string_equal(err.message, "write 'dir': expected a regular file or no file, found a directory");
    assert_int_equal(publish_as(os, "fifo", true), PAWL_EXISTS);
    assert_string_equal(err.message,
                        "write 'fifo': expected a regular file or no file, found a FIFO, device or socket");
    assert_int_equal(publish_as(os, "to-fifo", true), PAWL_EXISTS);
    assert_int_equal(publish_as(os, "new/", true), PAWL_ARGUMENT);
    assert_int_equal(publish_as(os, "", true), PAWL_ARGUMENT);
    assert_string_equal(err.message, "path '' does not end in the name of a file");
    assert_int_equal(publish_as(os, "dir/..", true), PAWL_ARGUMENT);
    assert_int_equal(publish_as(os, "none/f", true), PAWL_NO_FILE);
    expect_tree(disk, "", "dir/\nfifo\nto-fifo");
    simdisk_free(disk);
}

/* Goal: "must not replace" holds against a file that appears while we write; with one step and without. */
static void
a_file_that_appears_meanwhile_is_not_replaced(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct simdisk *disk = simdisk_new();
        struct pawl_publish publishing = PAWL_PUBLISH_INIT;
        if (round == 1)
            simdisk_lack(disk, SIM_NO_REPLACE);
        assert_int_equal(publish_as(simdisk_os(disk), "f", false), PAWL_OK);
        assert_string_equal(simdisk_text(disk, "f"), new_text);
        assert_int_equal(pawl_publish_begin(&publishing, simdisk_os(disk), "g", false, 0, NO_TAP, &err), PAWL_OK);
        simdisk_put_text(disk, "g", "of another");
        assert_int_equal(pawl_publish_commit(&publishing, &err), PAWL_EXISTS);
        assert_string_equal(err.message, "'g' exists and is not to be replaced");
        pawl_publish_release(&publishing);
        pawl_publish_release(&publishing);
        assert_string_equal(simdisk_text(disk, "g"), "of another");
        expect_tree(disk, "", "f\ng");
        simdisk_free(disk);
    }
}

static void
long_names_have_a_temporary_too(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    memcpy(name + 225, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 14);
    assert_int_equal(publish_as(pawl_os_posix(), name, false), PAWL_OK);
    assert_int_equal(access(name, F_OK), 0);
    assert_int_equal(count_names("."), 1);
    name[0] = 'm';
    assert_int_equal(publish_as(pawl_os_posix(), name, true), PAWL_OK);
}

/* A release without a commit undoes all. */
static void
a_publish_that_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with_old();
    struct pawl_publish publishing = PAWL_PUBLISH_INIT;
    assert_int_equal(pawl_publish_begin(&publishing, simdisk_os(disk), "root/LATEST", true, 0, NO_TAP, &err), PAWL_OK);
    assert_int_equal(pawl_writer_add(&publishing.writer, "x", 1, &err), PAWL_OK);
    pawl_publish_release(&publishing);
    expect_tree(disk, "root", "LATEST");
    assert_string_equal(simdisk_text(disk, "root/LATEST"), old_text);
    assert_int_equal(simdisk_open_handles(disk), 0);
    simdisk_free(disk);
}

/* A filesystem that lacks everything that can be lacked still takes files. */
static void
a_poor_filesystem_still_works(void **state)
{
    (void)state;
    for (size_t way = 0; way < 2; way++) {
        struct simdisk *disk = disk_with_old();
        simdisk_lack(disk, SIM_EXCHANGE | SIM_NO_REPLACE | SIM_RESERVE | SIM_LOCK | SIM_SYNC_DIR | SIM_KINDS |
                               SIM_POPULATE | SIM_SET_BYTES | SIM_SET_MODE);
        assert_int_equal(WAYS[way](simdisk_os(disk)), PAWL_OK);
        assert_string_equal(simdisk_text(disk, "root/LATEST"), new_text);
        simdisk_free(disk);
    }
}

int
main(void)
{
    const char *given = getenv("PAWL_TEST_SEED");
    seed = given != NULL ? strtoull(given, NULL, 0) : 20250607;
    print_message("seed %llu (PAWL_TEST_SEED sets it)\n", (unsigned long long)seed);
    fill(old_text, sizeof old_text, "old ");
    fill(new_text, sizeof new_text, "new ");
#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(atomic_under_power_loss),
        cmocka_unit_test(atomic_in_every_crash_state),
        cmocka_unit_test(any_call_may_fail_once),
        HOST_TEST(any_call_may_fail_once_on_the_host),
        cmocka_unit_test(the_order_is_data_name_directory),
        cmocka_unit_test(a_temporary_of_a_crash_is_no_obstacle),
        HOST_TEST(modes_are_an_ordinary_creates_and_are_kept),
        cmocka_unit_test(a_private_file_is_private_before_it_has_content),
        cmocka_unit_test(links_are_followed_to_the_target),
        cmocka_unit_test(what_is_no_file_is_not_replaced),
        cmocka_unit_test(a_file_that_appears_meanwhile_is_not_replaced),
        HOST_TEST(long_names_have_a_temporary_too),
        cmocka_unit_test(a_publish_that_is_given_up_leaves_nothing),
        cmocka_unit_test(a_poor_filesystem_still_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
