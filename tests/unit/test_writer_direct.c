/* Writing past the page cache: the same bytes, whatever the sizes and places of the spans, and where it can't be done. */
#include "unit/os_fixture.h"

#include "pawl/pcg32.h"

static const struct pawl_tap NO_TAP = { NULL, NULL };
static struct pawl_error err;
static uint64_t seed; /* printed by main */

#define FILE_BYTES ((size_t)11 << 20)

/* A table over the host's that counts switches, and refuses unaligned or all direct writes as a filesystem would. */
struct direct_os {
    struct pawl_os table;
    bool has_none;    /* the switch is refused */
    bool has_no_luck; /* the switch works, no write does */
    bool is_short;    /* the first direct write is cut to an odd number */
    bool is_direct;
    unsigned direct_writes, other_writes;
};

static int
set_direct(void *context, struct pawl_os_file *file, bool is_direct)
{
    struct direct_os *d = context;
    (void)file;
    if (d->has_none)
        return EINVAL;
    d->is_direct = is_direct;
    return 0;
}

static int
write_at(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans, size_t n_spans,
         size_t *ret_written)
{
    struct direct_os *d = context;
    struct pawl_os_span span = spans[0];
    if (!d->is_direct) {
        d->other_writes++;
        return pawl_os_posix()->file_write_at(NULL, file, offset, spans, n_spans, ret_written);
    }
    for (size_t i = 0; i < n_spans; i++) {
        if (offset % 4096 != 0 || (uintptr_t)spans[i].data % 4096 != 0 || spans[i].bytes % 4096 != 0)
            return EINVAL;
    }
    if (d->has_no_luck)
        return EINVAL;
    d->direct_writes++;
    if (d->is_short) {
        d->is_short = false;
        span.bytes = 1000;
        return pawl_os_posix()->file_write_at(NULL, file, offset, &span, 1, ret_written);
    }
    return pawl_os_posix()->file_write_at(NULL, file, offset, spans, n_spans, ret_written);
}

static const struct pawl_os *
begin(struct direct_os *d)
{
    d->table = *pawl_os_posix();
    d->table.context = d;
    d->table.file_set_direct = set_direct;
    d->table.file_write_at = write_at;
    return &d->table;
}

/* Write `n` bytes of `data` in spans of random sizes, some from where pages begin, some gathered in place. */
static void
write_file(const struct pawl_os *os, const unsigned char *data, size_t n, struct pawl_pcg32 *rng)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct pawl_writer writer = PAWL_WRITER_INIT;
    assert_int_equal(pawl_dir_open_path(&dir, os, ".", &err), PAWL_OK);
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", n, NO_TAP, &err), PAWL_OK);
    pawl_writer_set_direct(&writer);
    for (size_t at = 0; at < n;) {
        size_t most = pawl_pcg32_next(rng) % 3 == 0 ? 5 << 20 : 70000;
        size_t take = pawl_pcg32_next(rng) % most + 1;
        take = take < n - at ? take : n - at;
        if (pawl_pcg32_next(rng) % 4 == 0) {
            void *room;
            size_t size;
            assert_int_equal(pawl_writer_room(&writer, take, &room, &size, &err), PAWL_OK);
            memcpy(room, data + at, size);
            take = size;
            assert_int_equal(pawl_writer_filled(&writer, take, &err), PAWL_OK);
        } else {
            if (pawl_pcg32_next(rng) % 2 == 0 && at % 4096 != 0) /* so that the next can be aligned */
                take = 4096 - at % 4096 < n - at ? 4096 - at % 4096 : n - at;
            assert_int_equal(pawl_writer_add(&writer, data + at, take, &err), PAWL_OK);
        }
        at += take;
    }
    if (pawl_writer_sync(&writer, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(pawl_writer_close(&writer, &err), PAWL_OK);
    pawl_dir_release(&dir);
}

static void
expect_file(const unsigned char *data, size_t n)
{
    unsigned char *found = malloc(n + 2);
    assert_non_null(found);
    FILE *file = fopen("f", "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, n + 1, file), n);
    assert_int_equal(fclose(file), 0);
    assert_true(memcmp(found, data, n) == 0);
    free(found);
    assert_int_equal(unlink("f"), 0);
}

/*
 * Goal: the file has the bytes that were added, where direct writing works, where it is refused at once, only when it is tried, and where a
 * write is short, so that the rest is at no page's begin; unaligned writes are never tried. Method: random spans, ends of every kind.
 */
static void
the_bytes_are_the_same(void **state)
{
    struct pawl_pcg32 rng;
    unsigned char *data = aligned_alloc(4096, FILE_BYTES);
    (void)state;
    assert_non_null(data);
    pawl_pcg32_seed(&rng, seed, 1);
    for (size_t i = 0; i < FILE_BYTES; i++)
        data[i] = (unsigned char)(i * 7 + i / 4096 * 13 + i / 65521);
    for (unsigned round = 0; round < 24; round++) {
        static const size_t ENDS[] = { 0, 1, 4096, 4095 };
        size_t n = round < 4 ? ENDS[round] : FILE_BYTES - 4096 * (pawl_pcg32_next(&rng) % 900) - ENDS[round % 4];
        struct direct_os d = { .has_none = round % 6 == 1, .has_no_luck = round % 6 == 2, .is_short = round % 6 == 3 };
        write_file(begin(&d), data, n, &rng);
        expect_file(data, n);
        assert_true(d.has_none || d.has_no_luck ? d.direct_writes == 0 : n < FILE_BYTES / 2 || d.direct_writes != 0);
        if (round % 6 > 3 && n > FILE_BYTES / 2) /* all but the last bytes */
            assert_true(d.other_writes <= 1);
        write_file(pawl_os_posix(), data, n, &rng); /* and on the disk that is here */
        expect_file(data, n);
    }
    free(data);
}

int
main(void)
{
    const char *given = getenv("PAWL_SEED");
    seed = given != NULL ? strtoull(given, NULL, 0) : 20251129;
    print_message("PAWL_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_bytes_are_the_same, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
