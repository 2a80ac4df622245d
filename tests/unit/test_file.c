/* Reading files and mapping them: whole counts, second tries, errors that say what was expected and found. */
#include "unit/os_fixture.h"

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
    simdisk_put_text(disk, "d/ten", "0123456789");
    return 0;
}

/* Nothing may be left open by any test. */
static int
tear_down(void **state)
{
    (void)state;
    bool is_leaking = simdisk_open_handles(disk) != 0 || simdisk_open_maps(disk) != 0 || faultos_open(faults) != 0;
    faultos_free(faults);
    simdisk_free(disk);
    return is_leaking ? -1 : 0;
}

static void
open_says_what_it_found_instead(void **state)
{
    (void)state;
    const struct {
        const char *path;
        const char *message;
    } rows[] = {
        { "d/fifo", "open 'd/fifo': expected a regular file, found a FIFO, device or socket" },
        { "d", "open 'd': expected a regular file, found a directory" },
        { "d/", "open 'd/': expected a regular file, found a directory" },
        { ".", "open '.': expected a regular file, found a directory" },
        { "/", "open '/': expected a regular file, found a directory" },
        { "to-fifo", "open 'to-fifo': expected a regular file, found a FIFO, device or socket" },
    };
    struct pawl_file file = PAWL_FILE_INIT;
    simdisk_put_fifo(disk, "d/fifo");
    simdisk_put_link(disk, "to-fifo", "d/fifo");
    simdisk_put_link(disk, "to-ten", "d/ten");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(pawl_file_open_path(&file, os, rows[i].path, &err), PAWL_CORRUPT);
        assert_string_equal(err.message, rows[i].message);
        assert_string_equal(err.code, "not-a-file");
        assert_string_equal(err.path, rows[i].path);
        assert_null(file.handle);
    }
    assert_int_equal(pawl_file_open_path(&file, os, "d/none", &err), PAWL_NO_FILE);
    assert_string_equal(err.message, "open 'd/none': No such file or directory");
    assert_int_equal(pawl_file_open_path(&file, os, "none/x", &err), PAWL_NO_FILE);
    assert_string_equal(err.message, "open directory 'none': No such file or directory");
    assert_int_equal(pawl_file_open_path(&file, os, "", &err), PAWL_NO_FILE);
    assert_int_equal(pawl_file_open_path(&file, os, "d/ten/", &err), PAWL_NO_FILE);
    assert_string_equal(err.message, "open directory 'd/ten/': Not a directory");

    struct pawl_dir dir = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", NULL), PAWL_OK);
    assert_int_equal(pawl_file_open_in(&file, &dir, "to-ten", 0, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "open 'to-ten': expected a regular file, found a symbolic link");
    assert_int_equal(pawl_file_open_in(&file, &dir, "to-ten", PAWL_OS_FOLLOW, &err), PAWL_OK);
    assert_int_equal(file.bytes, 10);
    pawl_file_release(&file);
    pawl_file_release(&file); /* the empty state is fine */
    pawl_dir_release(&dir);
    pawl_dir_release(&dir);
}

static struct pawl_file
open_ten(void)
{
    struct pawl_file file = PAWL_FILE_INIT;
    assert_int_equal(pawl_file_open_path(&file, os, "d/ten", &err), PAWL_OK);
    return file;
}

static void
reads_are_whole_or_say_where_the_file_ends(void **state)
{
    (void)state;
    struct pawl_file file = open_ten();
    char text[16] = { 0 };
    assert_int_equal(pawl_file_read(&file, 3, text, 7, &err), PAWL_OK);
    assert_string_equal(text, "3456789");
    assert_int_equal(pawl_file_read(&file, 10, NULL, 0, &err), PAWL_OK);
    assert_int_equal(pawl_file_read(&file, 3, text, 8, &err), PAWL_TRUNCATED);
    assert_string_equal(err.message, "read 'd/ten': expected 8 bytes at offset 3, found 7: the file ends at 10");
    assert_int_equal(err.offset, 10);
    assert_int_equal(pawl_file_read(&file, UINT64_MAX - 3, text, 8, &err), PAWL_TRUNCATED);
    pawl_file_release(&file);
}

/* EINTR and short counts change nothing; one EIO is tried again, two are believed. */
static void
reads_are_tried_again_when_it_can_help(void **state)
{
    (void)state;
    struct pawl_file file = open_ten();
    char text[16] = { 0 };
    faultos_fail(faults, SIM_FILE_READ_AT, 0, 4, EINTR);
    assert_int_equal(pawl_file_read(&file, 0, text, 10, &err), PAWL_OK);
    assert_string_equal(text, "0123456789");
    memset(text, 0, sizeof text);
    faultos_reset(faults);
    faultos_fail(faults, SIM_FILE_READ_AT, 0, 2, 0);
    assert_int_equal(pawl_file_read(&file, 0, text, 10, &err), PAWL_OK);
    assert_string_equal(text, "0123456789");
    assert_int_equal(faultos_calls(faults, SIM_FILE_READ_AT), 4); /* 5, 2, 1 and the last 2 */
    memset(text, 0, sizeof text);
    faultos_reset(faults);
    faultos_fail(faults, SIM_FILE_READ_AT, 0, 0, EIO);
    assert_int_equal(pawl_file_read(&file, 0, text, 10, &err), PAWL_OK);
    assert_string_equal(text, "0123456789");
    faultos_reset(faults);
    faultos_fail(faults, SIM_FILE_READ_AT, 0, 1, EIO);
    assert_int_equal(pawl_file_read(&file, 2, text, 8, &err), PAWL_IO);
    assert_string_equal(err.message, "read 'd/ten' at offset 2: Input/output error");
    assert_int_equal(err.system_errno, EIO);
    assert_int_equal(err.offset, 2);
    assert_int_equal(faultos_calls(faults, SIM_FILE_READ_AT), 2);
    faultos_fail(faults, SIM_FILE_READ_AT, 0, 0, ESTALE); /* not of the content: no second try */
    assert_int_equal(pawl_file_read(&file, 2, text, 8, &err), PAWL_STALE);
    pawl_file_release(&file);
}

static void
read_all_has_a_limit(void **state)
{
    (void)state;
    struct pawl_file file = open_ten();
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    assert_int_equal(pawl_file_read_all(&file, 9, &bytes, &err), PAWL_LIMIT);
    assert_string_equal(err.message, "read 'd/ten': 10 bytes, the limit is 9");
    assert_null(bytes.data);
    assert_int_equal(pawl_file_read_all(&file, 10, &bytes, &err), PAWL_OK);
    assert_int_equal(bytes.len, 10);
    assert_memory_equal(bytes.data, "0123456789", 10);
    faultos_fail(faults, SIM_FILE_READ_AT, 0, 1, EIO);
    assert_int_equal(pawl_file_read_all(&file, 10, &bytes, &err), PAWL_IO);
    assert_int_equal(bytes.len, 10); /* untouched */
    pawl_buffer_release(&bytes);
    pawl_file_release(&file);

    simdisk_put(disk, "empty", "", 0);
    assert_int_equal(pawl_file_open_path(&file, os, "empty", &err), PAWL_OK);
    assert_int_equal(pawl_file_read_all(&file, 0, &bytes, &err), PAWL_OK);
    assert_int_equal(bytes.len, 0);
    pawl_file_release(&file);
}

/* A file that is replaced by a rename is not changed; one that is cut, grown or written in place is. */
static void
changes_in_place_are_noticed(void **state)
{
    (void)state;
    (void)mkdir("d", 0755);
    const struct pawl_os *host = pawl_os_posix();
    struct pawl_file file = PAWL_FILE_INIT;
    const struct timespec old[2] = { { 1000, 5 }, { 1000, 5 } };

    host_put("f", "0123456789");
    assert_int_equal(utimensat(AT_FDCWD, "f", old, 0), 0);
    assert_int_equal(pawl_file_open_path(&file, host, "f", &err), PAWL_OK);
    assert_int_equal(pawl_file_check_unchanged(&file, &err), PAWL_OK);
    host_put("g", "another");
    assert_int_equal(rename("f", "kept"), 0);
    assert_int_equal(rename("g", "f"), 0);
    assert_int_equal(pawl_file_check_unchanged(&file, &err), PAWL_OK);
    assert_int_equal(truncate("kept", 4), 0);
    assert_int_equal(pawl_file_check_unchanged(&file, &err), PAWL_TRUNCATED);
    assert_string_equal(err.message, "'f' was cut while open: expected 10 bytes, found 4");
    assert_int_equal(truncate("kept", 11), 0);
    assert_int_equal(pawl_file_check_unchanged(&file, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "'f' grew while open: expected 10 bytes, found 11");
    assert_string_equal(err.code, "changed");
    host_put("kept", "9876543210");
    assert_int_equal(pawl_file_check_unchanged(&file, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "'f' was written to while open");
    pawl_file_release(&file);
}

static void
maps_are_whole_and_outlive_the_file(void **state)
{
    (void)state;
    struct pawl_file file = open_ten();
    struct pawl_map map = PAWL_MAP_INIT;
    assert_int_equal(pawl_map_file(&map, &file, &err), PAWL_OK);
    pawl_file_release(&file);
    assert_int_equal(map.bytes, 10);
    assert_memory_equal(map.data, "0123456789", 10);
    assert_int_equal(pawl_map_populate(&map, 0, 10, &err), PAWL_OK);
    assert_int_equal(pawl_map_populate(&map, 10, 0, &err), PAWL_OK);
    assert_int_equal(pawl_map_populate(&map, 4, 7, &err), PAWL_TRUNCATED);
    assert_string_equal(err.message, "map 'd/ten': 7 bytes at offset 4 are outside its 10 bytes");
    faultos_fail(faults, SIM_MAP_POPULATE, 0, 0, EFAULT);
    assert_int_equal(pawl_map_populate(&map, 4, 6, &err), PAWL_TRUNCATED);
    assert_string_equal(err.message, "map 'd/ten': the file was cut while mapped: 6 bytes at offset 4 are not there");
    faultos_lack(faults, SIM_POPULATE);
    assert_int_equal(pawl_map_populate(&map, 4, 6, &err), PAWL_UNSUPPORTED);
    pawl_map_release(&map);
    pawl_map_release(&map);

    simdisk_put(disk, "empty", "", 0);
    assert_int_equal(pawl_file_open_path(&file, os, "empty", &err), PAWL_OK);
    assert_int_equal(pawl_map_file(&map, &file, &err), PAWL_OK);
    assert_null(map.data);
    assert_int_equal(map.bytes, 0);
    pawl_map_release(&map);
    pawl_file_release(&file);
}

/* Every call of open, read and map fails once with each errno: a clean failure or success, and nothing left open. */
static void
any_call_may_fail_once(void **state)
{
    (void)state;
    const int codes[] = { EIO, EINTR, EMFILE, ENOMEM, EACCES, ESTALE };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        for (unsigned nth = 0;; nth++) {
            struct pawl_file file = PAWL_FILE_INIT;
            struct pawl_map map = PAWL_MAP_INIT;
            struct pawl_buffer bytes = PAWL_BUFFER_INIT;
            assert_true(nth < 100);
            faultos_reset(faults);
            faultos_fail(faults, SIM_ANY, nth, 0, codes[i]);
            enum pawl_status st = pawl_file_open_path(&file, os, "d/ten", &err);
            if (st == PAWL_OK)
                st = pawl_file_read_all(&file, 100, &bytes, &err);
            if (st == PAWL_OK)
                st = pawl_map_file(&map, &file, &err);
            if (st != PAWL_OK) {
                assert_int_equal(st, pawl_status_of_errno(codes[i]));
                assert_non_null(strstr(err.message, strerror(codes[i])));
                assert_int_not_equal(codes[i], EINTR);
            } else {
                assert_memory_equal(bytes.data, "0123456789", 10);
            }
            pawl_buffer_release(&bytes);
            pawl_map_release(&map);
            pawl_file_release(&file);
            assert_int_equal(faultos_open(faults), 0);
            assert_int_equal(simdisk_open_handles(disk), 0);
            if (!faultos_was_met(faults))
                break;
        }
    }
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
        TEST(open_says_what_it_found_instead),
        TEST(reads_are_whole_or_say_where_the_file_ends),
        TEST(reads_are_tried_again_when_it_can_help),
        TEST(read_all_has_a_limit),
        cmocka_unit_test_setup_teardown(changes_in_place_are_noticed, set_up_both, tear_down_both),
        TEST(maps_are_whole_and_outlive_the_file),
        TEST(any_call_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
