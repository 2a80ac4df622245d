/*
 * The simulated disk itself: that it forgets what a real one may forget, and
 * keeps what a real one must keep; else the tests that stand on it prove nothing.
 */
#include "unit/os_fixture.h"

#include "sim/simdisk.h"

static struct simdisk *disk;
static const struct pawl_os *os;
static struct pawl_os_dir *root;

static int
set_up(void **state)
{
    (void)state;
    disk = simdisk_new();
    os = simdisk_os(disk);
    return os->dir_open_path(disk, "/", &root) == 0 ? 0 : -1;
}

static int
tear_down(void **state)
{
    (void)state;
    (void)os->dir_close(disk, root);
    simdisk_free(disk);
    return 0;
}

static void
write_text(const char *name, const char *text, bool is_synced)
{
    struct pawl_os_file *file = NULL;
    struct pawl_os_span span = { text, strlen(text) };
    size_t n = 0;
    assert_int_equal(os->file_create(disk, root, name, &file), 0);
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0);
    assert_int_equal(n, strlen(text));
    if (is_synced)
        assert_int_equal(os->file_sync(disk, file), 0);
    assert_int_equal(os->file_close(disk, file), 0);
}

/* The text of "f" after the given fates, "(none)" without the file; fates as digits, oldest first. */
static const char *
after(const char *fates, uint64_t seed)
{
    static char text[64];
    unsigned char values[16];
    size_t n = strlen(fates);
    assert_int_equal(simdisk_pending(disk, simdisk_trace_len(disk), NULL, 0), n);
    for (size_t i = 0; i < n; i++)
        values[i] = (unsigned char)(fates[i] - '0');
    struct simdisk *state = simdisk_build_state(disk, simdisk_trace_len(disk), values, n, seed);
    const char *found = simdisk_text(state, "f");
    (void)snprintf(text, sizeof text, "%s", found == NULL ? "(none)" : found);
    simdisk_free(state);
    return text;
}

static void
each_pending_operation_is_lost_or_kept_on_its_own(void **state)
{
    (void)state;
    write_text("f", "abc", false);
    assert_string_equal(after("00", 1), "(none)");
    assert_string_equal(after("10", 1), "");       /* the name without the bytes */
    assert_string_equal(after("01", 1), "(none)"); /* the bytes without the name */
    assert_string_equal(after("11", 1), "abc");
    assert_int_equal(os->dir_sync(disk, root), 0); /* the name is safe, the bytes are not */
    assert_string_equal(after("0", 1), "");
    assert_string_equal(after("1", 1), "abc");
}

static void
a_file_sync_does_not_keep_the_name(void **state)
{
    (void)state;
    write_text("f", "abc", true);
    assert_string_equal(after("0", 1), "(none)");
    assert_string_equal(after("1", 1), "abc");
    assert_int_equal(os->dir_sync(disk, root), 0);
    assert_string_equal(after("", 1), "abc");
}

/* The accident that every replace must prevent: the new name on bytes that never came. */
static void
a_rename_before_the_sync_can_lose_both_texts(void **state)
{
    (void)state;
    simdisk_put_text(disk, "f", "old");
    write_text("g", "new", false);
    assert_int_equal(os->rename(disk, root, "g", root, "f", PAWL_OS_REPLACE), 0);
    assert_string_equal(after("000", 1), "old");
    assert_string_equal(after("101", 1), ""); /* created, not written, renamed */
    assert_string_equal(after("001", 1), "");
    assert_string_equal(after("011", 1), "new");
}

static void
a_failed_sync_dooms_what_it_should_have_kept(void **state)
{
    (void)state;
    struct pawl_os_file *file = NULL;
    struct pawl_os_span span = { "abc", 3 };
    size_t n;
    assert_int_equal(os->file_create(disk, root, "f", &file), 0);
    assert_int_equal(os->dir_sync(disk, root), 0);
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0);
    simdisk_fail(disk, SIM_FILE_SYNC, 0, 0, EIO);
    assert_int_equal(os->file_sync(disk, file), EIO);
    assert_int_equal(os->file_sync(disk, file), 0); /* it answers "done", and nothing is there */
    assert_string_equal(after("0", 1), "");
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0);
    assert_int_equal(os->file_sync(disk, file), 0); /* written again it is */
    assert_string_equal(after("0", 1), "abc");
    assert_int_equal(os->file_close(disk, file), 0);
}

/* Torn writes: whole sectors of the old or the new; a beginning; never bytes that nobody wrote. */
static void
writes_tear_at_sectors_and_at_bytes(void **state)
{
    (void)state;
    unsigned char text[2048];
    struct pawl_os_file *file = NULL;
    struct pawl_os_span span = { text, sizeof text };
    size_t n;
    unsigned torn = 0, inside_a_sector = 0;
    memset(text, 'n', sizeof text);
    assert_int_equal(os->file_create(disk, root, "f", &file), 0);
    assert_int_equal(os->dir_sync(disk, root), 0);
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0);
    assert_int_equal(os->file_close(disk, file), 0);
    assert_true(simdisk_can_tear(disk, simdisk_trace_len(disk) - 1));
    for (uint64_t seed = 0; seed < 100; seed++) {
        for (unsigned char fate = SIMFATE_TORN_SECTORS; fate <= SIMFATE_TORN_BYTES; fate++) {
            struct simdisk *cut = simdisk_build_state(disk, simdisk_trace_len(disk), &fate, 1, seed);
            size_t bytes = 0;
            const unsigned char *data = simdisk_get(cut, "f", &bytes);
            size_t written = 0;
            assert_true(bytes <= sizeof text);
            for (size_t i = 0; i < bytes; i++) {
                assert_true(data[i] == 'n' || data[i] == 0);
                written += data[i] == 'n';
                if (fate == SIMFATE_TORN_SECTORS && i % 512 != 0)
                    assert_int_equal(data[i], data[i - 1]);
            }
            torn += written != 0 && written != sizeof text;
            inside_a_sector += written % 512 != 0;
            simdisk_free(cut);
        }
    }
    assert_true(torn > 100);
    assert_true(inside_a_sector > 50);
}

/* Directories: what is in a lost one is lost; an exchange is whole or not at all. */
static void
names_are_set_as_a_whole(void **state)
{
    (void)state;
    simdisk_put_text(disk, "a/x", "A");
    simdisk_put_text(disk, "b/x", "B");
    assert_int_equal(os->rename(disk, root, "a", root, "b", PAWL_OS_EXCHANGE), 0);
    for (unsigned char fate = 0; fate < 2; fate++) {
        struct simdisk *cut = simdisk_build_state(disk, simdisk_trace_len(disk), &fate, 1, 0);
        assert_string_equal(simdisk_text(cut, "a/x"), fate == 0 ? "A" : "B");
        assert_string_equal(simdisk_text(cut, "b/x"), fate == 0 ? "B" : "A");
        simdisk_free(cut);
    }
    assert_int_equal(os->rename(disk, root, "a", root, "b", PAWL_OS_REPLACE), ENOTEMPTY);
    assert_int_equal(os->remove_dir(disk, root, "a"), ENOTEMPTY);
    assert_int_equal(os->remove_file(disk, root, "a"), EISDIR);
}

static void
a_cut_stops_everything_and_a_reboot_decides(void **state)
{
    (void)state;
    unsigned met = 0, kept = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct simdisk *fresh = simdisk_new();
        const struct pawl_os *table = simdisk_os(fresh);
        struct pawl_os_dir *dir = NULL;
        simdisk_put_text(fresh, "kept", "x");
        assert_int_equal(table->dir_open_path(fresh, ".", &dir), 0);
        simdisk_cut_power_at(fresh, 1);
        assert_int_equal(table->dir_create(fresh, dir, "one"), 0);
        assert_int_equal(table->dir_sync(fresh, dir), EIO); /* perhaps carried out, never answered */
        assert_int_equal(table->dir_create(fresh, dir, "two"), EIO);
        (void)table->dir_close(fresh, dir);
        met += simdisk_reboot(fresh, seed);
        kept += simdisk_has(fresh, "one");
        assert_false(simdisk_has(fresh, "two"));
        assert_true(simdisk_has(fresh, "kept"));
        assert_int_equal(simdisk_trace_len(fresh), 0);
        assert_int_equal(table->dir_open_path(fresh, ".", &dir), 0); /* it runs again */
        assert_int_equal(table->dir_close(fresh, dir), 0);
        assert_false(simdisk_reboot(fresh, seed));
        simdisk_free(fresh);
    }
    assert_int_equal(met, 64);
    assert_true(kept > 16 && kept < 64);
}

static void
the_disk_can_be_full_and_calls_can_fail(void **state)
{
    (void)state;
    struct pawl_os_file *file = NULL;
    struct pawl_os_span span = { "0123456789", 10 };
    size_t n = 0;
    uint64_t left = 0;
    simdisk_set_capacity(disk, 14);
    assert_int_equal(os->file_create(disk, root, "f", &file), 0);
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0);
    assert_int_equal(os->dir_space(disk, root, &left), 0);
    assert_int_equal(left, 4);
    assert_int_equal(os->file_reserve(disk, file, 5), ENOSPC);
    assert_int_equal(os->file_write_at(disk, file, 10, &span, 1, &n), 0);
    assert_int_equal(n, 4);
    assert_int_equal(os->file_write_at(disk, file, 14, &span, 1, &n), ENOSPC);
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0); /* over what is there */
    simdisk_fail(disk, SIM_FILE_WRITE_AT, 1, 0, 0);
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0);
    assert_int_equal(n, 10);
    assert_int_equal(os->file_write_at(disk, file, 0, &span, 1, &n), 0);
    assert_int_equal(n, 5);
    assert_true(simdisk_fault_was_met(disk));
    simdisk_fail(disk, SIM_FILE_CLOSE, 0, 0, EIO);
    assert_int_equal(os->file_close(disk, file), EIO); /* and closed */
    assert_int_equal(simdisk_open_handles(disk), 1);
}

static void
helpers_put_look_and_go_to_the_host_and_back(void **state)
{
    (void)state;
    simdisk_put_text(disk, "run/step-1/model", "weights");
    simdisk_put_text(disk, "run/LATEST", "step-1\n");
    simdisk_put_dir(disk, "run/empty");
    uint64_t before = simdisk_fingerprint(disk);
    assert_int_equal(simdisk_export(disk, "run", "exported"), 0);
    assert_string_equal(host_text("exported/step-1/model"), "weights");
    struct simdisk *back = simdisk_new();
    assert_int_equal(simdisk_import(back, "run", "exported"), 0);
    assert_int_equal(simdisk_fingerprint(back), before);
    char *tree = simdisk_tree(back, "run");
    assert_string_equal(tree, "LATEST\nempty/\nstep-1/\nstep-1/model");
    free(tree);
    simdisk_flip(back, "run/step-1/model", 0, 1);
    assert_string_equal(simdisk_text(back, "run/step-1/model"), "veights");
    assert_int_not_equal(simdisk_fingerprint(back), before);
    struct simdisk *copy = simdisk_clone(back);
    simdisk_remove(back, "run/step-1/model");
    assert_false(simdisk_has(back, "run/step-1/model"));
    assert_true(simdisk_has(copy, "run/step-1/model"));
    simdisk_free(copy);
    simdisk_free(back);
}

static void
the_trace_can_be_read(void **state)
{
    (void)state;
    const char *const expected[] = { "create f",      "write f 0+3",      "sync file f",
                                     "rename f -> g", "sync directory /", "mark durable" };
    write_text("f", "abc", true);
    assert_int_equal(os->rename(disk, root, "f", root, "g", PAWL_OS_REPLACE), 0);
    assert_int_equal(os->dir_sync(disk, root), 0);
    simdisk_mark(disk, "durable");
    assert_int_equal(simdisk_trace_len(disk), 6);
    for (size_t i = 0; i < 6; i++) {
        /* the listing calls the file by its present name */
        const char *text = simdisk_describe(disk, i);
        if (i == 1)
            assert_string_equal(text, "write g 0+3");
        else if (i == 2)
            assert_string_equal(text, "sync file g");
        else
            assert_string_equal(text, expected[i]);
    }
    assert_string_equal(simdisk_mark_at(disk, 5), "durable");
    assert_null(simdisk_mark_at(disk, 4));
    assert_true(simdisk_call_of(disk, 0) < simdisk_call_of(disk, 1));
    size_t places[4];
    assert_int_equal(simdisk_pending(disk, 2, places, 4), 2);
    assert_int_equal(simdisk_pending(disk, 4, places, 4), 2); /* the create and the rename; the write is synced */
    assert_int_equal(places[0], 0);
    assert_int_equal(places[1], 3);
    assert_int_equal(simdisk_pending(disk, 6, places, 4), 0);
}

static int
set_up_both(void **state)
{
    return fixture_enter(state) != 0 ? -1 : set_up(state);
}

static int
tear_down_both(void **state)
{
    int sim = tear_down(state);
    return fixture_leave(state) != 0 ? -1 : sim;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_pending_operation_is_lost_or_kept_on_its_own),
        TEST(a_file_sync_does_not_keep_the_name),
        TEST(a_rename_before_the_sync_can_lose_both_texts),
        TEST(a_failed_sync_dooms_what_it_should_have_kept),
        TEST(writes_tear_at_sectors_and_at_bytes),
        TEST(names_are_set_as_a_whole),
        TEST(a_cut_stops_everything_and_a_reboot_decides),
        TEST(the_disk_can_be_full_and_calls_can_fail),
        cmocka_unit_test_setup_teardown(helpers_put_look_and_go_to_the_host_and_back, set_up_both, tear_down_both),
        TEST(the_trace_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
