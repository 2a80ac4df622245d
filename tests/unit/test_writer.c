/* The writer: every byte once, in order, to the file and to the tap; errors with numbers; one sync. */
#include "unit/os_fixture.h"

#include "sim/faultos.h"
#include "sim/simdisk.h"

#define BIG_BYTES ((size_t)10 * 1024 * 1024 + 12345)

static struct simdisk *disk;
static struct faultos *faults;
static struct pawl_dir dir;
static struct pawl_error err;
static unsigned char *big;

/* A tap that keeps what it was shown. */
static void
keep(void *context, const void *data, size_t bytes)
{
    assert_true(pawl_buffer_add(context, data, bytes));
}

static int
set_up(void **state)
{
    (void)state;
    disk = simdisk_new();
    faults = faultos_new(simdisk_os(disk));
    dir = (struct pawl_dir)PAWL_DIR_INIT;
    big = malloc(BIG_BYTES);
    if (big == NULL || pawl_dir_open_path(&dir, faultos_os(faults), ".", &err) != PAWL_OK)
        return -1;
    for (size_t i = 0; i < BIG_BYTES; i++)
        big[i] = (unsigned char)(i * 2654435761u >> 13);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    free(big);
    pawl_dir_release(&dir);
    bool is_leaking = simdisk_open_handles(disk) != 0 || faultos_open(faults) != 0;
    faultos_free(faults);
    simdisk_free(disk);
    return is_leaking ? -1 : 0;
}

/* `told` bytes are said to come: 0 keeps so large a file out of a lane. */
static enum pawl_status
write_pieces(size_t piece, size_t told, bool in_place, struct pawl_buffer *seen)
{
    struct pawl_tap tap = { keep, seen };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    enum pawl_status st = pawl_writer_create(&writer, &dir, "f", told, tap, &err);
    for (size_t at = 0; at < BIG_BYTES && st == PAWL_OK;) {
        size_t n = BIG_BYTES - at < piece ? BIG_BYTES - at : piece;
        if (in_place) {
            void *room = NULL;
            size_t room_bytes = 0;
            st = pawl_writer_room(&writer, n, &room, &room_bytes, &err);
            if (st != PAWL_OK)
                break;
            assert_true(room_bytes >= 1 && room_bytes <= n);
            n = room_bytes;
            memcpy(room, big + at, n);
            st = pawl_writer_filled(&writer, n, &err);
        } else {
            st = pawl_writer_add(&writer, big + at, n, &err);
        }
        at += n;
    }
    if (st == PAWL_OK)
        st = pawl_writer_sync(&writer, &err);
    if (st == PAWL_OK)
        st = pawl_writer_close(&writer, &err);
    pawl_writer_abandon(&writer);
    return st;
}

static void
expect_big(const struct pawl_buffer *seen)
{
    size_t bytes = 0;
    const unsigned char *data = simdisk_get(disk, "f", &bytes);
    assert_int_equal(bytes, BIG_BYTES);
    assert_memory_equal(data, big, BIG_BYTES);
    assert_int_equal(seen->len, BIG_BYTES);
    assert_memory_equal(seen->data, big, BIG_BYTES);
}

/* Pieces of all sizes around the buffer's, with short and interrupted writes in between; in a lane, and gathered. */
static void
file_and_tap_get_every_byte_once_in_order(void **state)
{
    (void)state;
    const size_t pieces[] = { 4097, 65536, 1048575, 1048576, 1048577, 3 * 1048576 + 1, BIG_BYTES };
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        for (unsigned way = 0; way < 4; way++) {
            struct pawl_buffer seen = PAWL_BUFFER_INIT;
            faultos_fail(faults, SIM_FILE_WRITE_AT, 1, 5, i % 2 == 0 ? 0 : EINTR);
            assert_int_equal(write_pieces(pieces[i], way < 2 ? BIG_BYTES : 0, way % 2 == 1, &seen), PAWL_OK);
            assert_true(faultos_was_met(faults));
            expect_big(&seen);
            pawl_buffer_release(&seen);
            simdisk_remove(disk, "f");
        }
    }
}

/* Goal: small spans cost no call each, large ones are not cut small. */
static void
small_spans_are_gathered(void **state)
{
    (void)state;
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", 0, no_tap, &err), PAWL_OK);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(pawl_writer_add(&writer, "0123456789", 10, &err), PAWL_OK);
    assert_int_equal(faultos_calls(faults, SIM_FILE_WRITE_AT), 0);
    assert_int_equal(faultos_calls(faults, SIM_FILE_RESERVE), 0); /* the size was not told */
    assert_int_equal(writer.offset, 100000);
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_OK);
    assert_int_equal(pawl_writer_close(&writer, &err), PAWL_OK);
    assert_int_equal(faultos_calls(faults, SIM_FILE_WRITE_AT), 1);
    assert_int_equal(faultos_calls(faults, SIM_FILE_SYNC), 1);
    pawl_writer_abandon(&writer);
}

/* What was synced survives, bytes and size; before that nothing needs to. */
static void
data_are_durable_after_the_sync(void **state)
{
    (void)state;
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", 100, no_tap, &err), PAWL_OK);
    assert_int_equal(pawl_writer_add(&writer, "0123456789", 10, &err), PAWL_OK); /* fewer than told: the rest is cut */
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_OK);
    assert_int_equal(faultos_calls(faults, SIM_FILE_SET_BYTES), 1);
    assert_int_equal(pawl_writer_close(&writer, &err), PAWL_OK);
    assert_int_equal(pawl_dir_sync(&dir, NULL, &err), PAWL_OK);
    struct simdisk *after = simdisk_build_state(disk, simdisk_trace_len(disk), NULL, 0, 1);
    assert_string_equal(simdisk_text(after, "f"), "0123456789");
    simdisk_free(after);
}

static void
a_full_disk_is_told_in_numbers(void **state)
{
    (void)state;
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    simdisk_set_capacity(disk, 3000);
    /* found early, before a byte is written; and no file is left */
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", 5000, no_tap, &err), PAWL_NO_SPACE);
    assert_string_equal(err.message, "reserve space for 'f' at offset 0: 5000 bytes are needed, 0 are written, "
                                     "3000 more are available: No space left on device");
    assert_false(simdisk_has(disk, "f"));
    /* where nothing can be reserved: at the write */
    faultos_lack(faults, SIM_RESERVE);
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", 5000, no_tap, &err), PAWL_OK);
    assert_int_equal(pawl_writer_add(&writer, big, 5000, &err), PAWL_OK);
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_NO_SPACE);
    assert_string_equal(err.message, "write 'f' at offset 3000: 5000 bytes are needed, 3000 are written, "
                                     "0 more are available: No space left on device");
    assert_string_equal(err.code, "no-space");
    assert_string_equal(err.path, "f");
    pawl_writer_abandon(&writer);
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", 0, no_tap, &err), PAWL_EXISTS);
    faultos_lack(faults, 0);
    simdisk_remove(disk, "f");
    simdisk_set_capacity(disk, SIZE_MAX);
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", 0, no_tap, &err), PAWL_OK);
    faultos_fail(faults, SIM_FILE_SYNC, 0, 0, EDQUOT); /* and it can still come at the sync */
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_NO_SPACE);
    pawl_writer_abandon(&writer);
}

/* A table that writes nothing and says "fine" would loop for ever. */
static int
write_nothing(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans,
              size_t n_spans, size_t *ret_written)
{
    (void)context;
    (void)file;
    (void)offset;
    (void)spans;
    (void)n_spans;
    *ret_written = 0;
    return 0;
}

static void
a_write_of_nothing_is_an_error(void **state)
{
    (void)state;
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct pawl_os table = *faultos_os(faults);
    struct pawl_dir at = dir;
    table.file_write_at = write_nothing;
    at.os = &table;
    assert_int_equal(pawl_writer_create(&writer, &at, "f", 0, no_tap, &err), PAWL_OK);
    assert_int_equal(pawl_writer_add(&writer, "x", 1, &err), PAWL_OK);
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_IO);
    pawl_writer_abandon(&writer);
}

/* Goal: a failed sync is final, a failed close is a failure. Method: count the calls. */
static void
syncs_are_never_repeated_and_closes_are_believed(void **state)
{
    (void)state;
    const int codes[] = { EIO, EINTR, ENOSPC };
    for (size_t i = 0; i < 3; i++) {
        struct pawl_buffer seen = PAWL_BUFFER_INIT;
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_SYNC, 0, 0, codes[i]);
        assert_int_equal(write_pieces(BIG_BYTES, BIG_BYTES, false, &seen), pawl_status_of_errno(codes[i]));
        assert_int_equal(faultos_calls(faults, SIM_FILE_SYNC), 1);
        assert_non_null(strstr(err.message, "sync 'f'"));
        simdisk_remove(disk, "f");
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_CLOSE, 0, 0, codes[i]);
        assert_int_equal(write_pieces(BIG_BYTES, BIG_BYTES, false, &seen), pawl_status_of_errno(codes[i]));
        assert_int_equal(faultos_calls(faults, SIM_FILE_CLOSE), 1);
        assert_non_null(strstr(err.message, "close 'f'"));
        simdisk_remove(disk, "f");
        pawl_buffer_release(&seen);
    }
}

static void
write_back_is_begun_early_and_its_disk_errors_count(void **state)
{
    (void)state;
    struct pawl_buffer seen = PAWL_BUFFER_INIT;
    faultos_lack(faults, SIM_DIRECT);
    assert_int_equal(write_pieces(BIG_BYTES, BIG_BYTES, false, &seen), PAWL_OK);
    assert_int_equal(faultos_calls(faults, SIM_FILE_WRITE_BACK), 1);
    simdisk_remove(disk, "f");
    pawl_buffer_release(&seen);
    faultos_fail(faults, SIM_FILE_WRITE_BACK, 0, 0, ENOSYS);
    assert_int_equal(write_pieces(BIG_BYTES, BIG_BYTES, false, &seen), PAWL_OK);
    expect_big(&seen);
    simdisk_remove(disk, "f");
    faultos_fail(faults, SIM_FILE_WRITE_BACK, 0, 0, EIO);
    assert_int_equal(write_pieces(BIG_BYTES, BIG_BYTES, false, &seen), PAWL_IO);
    pawl_buffer_release(&seen);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(file_and_tap_get_every_byte_once_in_order),
        TEST(small_spans_are_gathered),
        TEST(data_are_durable_after_the_sync),
        TEST(a_full_disk_is_told_in_numbers),
        TEST(a_write_of_nothing_is_an_error),
        TEST(syncs_are_never_repeated_and_closes_are_believed),
        TEST(write_back_is_begun_early_and_its_disk_errors_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
