/*
 * Goal: an inlet gives every byte of a range once and in order, whatever is in the cache, whoever reads, and whatever is refused; what goes
 * wrong is told as a plain reading tells it; what is held is not written over; what is cold stays out of the cache.
 *
 * Method: the simulated disk says what is in its cache by a pattern, is as strict about direct reads as the strictest filesystem, and fails on
 * demand; once with the reading done by the owner, once by threads; and the host's own filesystem.
 */
#include "unit/os_fixture.h"

#include "os/inlet.h"
#include "os/slots.h"
#include "sim/faultos.h"
#include "sim/simdisk.h"

#define MIB ((size_t)1 << 20)
#define BIG_BYTES (11 * MIB + 12345)
#define ALL_COLD UINT32_MAX

static struct simdisk *disk;
static struct faultos *faults;
static struct pawl_error err;
static unsigned char *big;

static int
set_up(void **state)
{
    (void)state;
    disk = simdisk_new();
    faults = faultos_new(simdisk_os(disk));
    big = malloc(BIG_BYTES);
    if (big == NULL)
        return -1;
    for (size_t i = 0; i < BIG_BYTES; i++)
        big[i] = (unsigned char)(i * 2654435761u >> 13);
    simdisk_put(disk, "f", big, BIG_BYTES);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    free(big);
    bool is_leaking = simdisk_open_handles(disk) != 0 || faultos_open(faults) != 0;
    faultos_free(faults);
    simdisk_free(disk);
    return is_leaking ? -1 : 0;
}

/* Read a range into `got`: pieces that were not read are loaded, from a little further on than they begin where `skips`. */
static enum pawl_status
read_range(const struct pawl_file *file, uint64_t begin, uint64_t end, size_t at_once, bool skips, unsigned char *got)
{
    struct pawl_inlet *inlet = NULL;
    uint64_t at = begin;
    enum pawl_status st = pawl_inlet_open(&inlet, file, begin, end, at_once, &err);
    while (st == PAWL_OK) {
        struct pawl_inlet_piece piece;
        st = pawl_inlet_next(inlet, &piece, &err);
        if (st != PAWL_OK)
            break;
        assert_true(piece.begin == at);
        assert_true(piece.end >= at && piece.end <= end && piece.end - at <= PAWL_SLOT_BYTES);
        if (piece.begin == piece.end) {
            assert_true(at == end && piece.data == NULL);
            break;
        }
        if (piece.data == NULL) {
            size_t n = skips ? (size_t)(piece.end - at) / 3 : 0;
            st = pawl_file_read(file, at, got + (at - begin), n, &err);
            if (st == PAWL_OK)
                st = pawl_inlet_load(inlet, at + n, &piece, &err);
            if (st != PAWL_OK)
                break;
            assert_true(piece.begin == at + n);
            at += n;
        }
        memcpy(got + (at - begin), piece.data, (size_t)(piece.end - at));
        at = piece.end;
    }
    pawl_inlet_close(inlet);
    return st;
}

static enum pawl_status
read_named(const struct pawl_os *os, const char *name, uint64_t begin, uint64_t end, bool skips, unsigned char *got)
{
    struct pawl_file file = PAWL_FILE_INIT;
    assert_int_equal(pawl_file_open_path(&file, os, name, &err), PAWL_OK);
    enum pawl_status st = read_range(&file, begin, end, skips ? 2 : 1, skips, got);
    pawl_file_release(&file);
    return st;
}

static void
expect_range(uint64_t begin, uint64_t end)
{
    unsigned char *got = calloc(1, (size_t)(end - begin) + 1);
    assert_non_null(got);
    for (int skips = 0; skips < 2; skips++) {
        memset(got, 0, (size_t)(end - begin));
        if (read_named(faultos_os(faults), "f", begin, end, skips != 0, got) != PAWL_OK)
            fail_msg("%zu to %zu: %s", (size_t)begin, (size_t)end, err.message);
        assert_memory_equal(got, big + begin, (size_t)(end - begin));
    }
    free(got);
}

static void
every_range(void)
{
    const uint64_t begins[] = { 0, 9, 4097, 2 * MIB - 1, 5 * MIB + 77 };
    const uint64_t ends[] = { 5 * MIB + 77, 6 * MIB, 8 * MIB + 4095, BIG_BYTES };
    const uint32_t patterns[] = { 0, ALL_COLD, 0xc3c3c3c3 };
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        simdisk_set_cold(disk, patterns[p]);
        for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
            for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++)
                expect_range(begins[i], ends[k]);
    }
}

static void
every_range_by_the_owner(void **state)
{
    (void)state;
    every_range();
    assert_true(simdisk_direct_bytes_read(disk) > 100 * MIB);
    assert_int_equal(faultos_calls(faults, SIM_FILE_ADVISE), 0);
}

static void
every_range_by_threads(void **state)
{
    (void)state;
    faultos_take_threads(faults);
    every_range();
    assert_true(simdisk_direct_bytes_read(disk) > 100 * MIB);
}

/* Direct: what is mostly cold, and nothing else; small ranges never. */
static void
what_is_cold_is_read_directly(void **state)
{
    (void)state;
    const struct {
        uint32_t cold;
        uint64_t begin, end;
        uint64_t direct; /* in all, each range is read twice */
    } CASES[] = {
        { 0, 0, 8 * MIB, 0 },
        { ALL_COLD, 0, 8 * MIB, 8 * MIB },
        { 0x0f, 0, 8 * MIB, 4 * MIB },
        { 0x02, MIB / 2, 4 * MIB, 3 * MIB / 2 }, /* a third of it is cached: read along */
        { 0x01, 0, 8 * MIB, 0 },                 /* half of the first piece is cached: that is enough */
        { 0x07, 0, 8 * MIB, 2 * MIB },           /* the second piece is half cached */
        { 0x30, 100, 8 * MIB, 2 * MIB },
        { ALL_COLD, 5000, 8 * MIB - 5000, 8 * MIB - 2 * 4096 }, /* whole blocks around it */
        { ALL_COLD, 0, MIB - 1, 0 },
        { ALL_COLD, 8 * MIB, 9 * MIB, MIB },
        { ALL_COLD, 8 * MIB, BIG_BYTES, BIG_BYTES - 8 * MIB },
    };
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
            uint64_t before = simdisk_direct_bytes_read(disk);
            simdisk_set_cold(disk, CASES[i].cold);
            expect_range(CASES[i].begin, CASES[i].end);
            if (simdisk_direct_bytes_read(disk) - before != 2 * CASES[i].direct)
                fail_msg("case %zu: %zu bytes directly", i, (size_t)(simdisk_direct_bytes_read(disk) - before) / 2);
        }
        faultos_take_threads(faults);
    }
}

/* Refused at once, whatever the answer: asked for once, and all comes through the cache. */
static void
refused_direct_handles_mean_the_cache(void **state)
{
    (void)state;
    const int refusals[] = { EINVAL, EOPNOTSUPP, EMFILE, ENOENT, EACCES, ESTALE, EIO };
    simdisk_set_cold(disk, ALL_COLD);
    unsigned char *got = malloc(BIG_BYTES);
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
            faultos_reset(faults);
            faultos_fail(faults, SIM_FILE_OPEN_DIRECT, 0, 0, refusals[i]);
            assert_int_equal(read_named(faultos_os(faults), "f", 3, BIG_BYTES, false, got), PAWL_OK);
            assert_memory_equal(got, big + 3, BIG_BYTES - 3);
            assert_true(faultos_was_met(faults));
            assert_int_equal(faultos_calls(faults, SIM_FILE_OPEN_DIRECT), 1);
        }
        assert_int_equal(simdisk_direct_bytes_read(disk), 0);
        faultos_take_threads(faults);
    }
    free(got);
}

static void
tables_that_cannot_tell_mean_the_cache(void **state)
{
    (void)state;
    simdisk_set_cold(disk, ALL_COLD);
    faultos_lack(faults, SIM_CACHED);
    expect_range(0, BIG_BYTES);
    assert_int_equal(faultos_calls(faults, SIM_FILE_OPEN_DIRECT), 0);
    faultos_lack(faults, SIM_DIRECT);
    expect_range(0, BIG_BYTES);
    assert_int_equal(simdisk_direct_bytes_read(disk), 0);
    struct pawl_os bare = *simdisk_os(disk);
    unsigned char *got = malloc(BIG_BYTES);
    for (int which = 0; which < 2; which++) {
        bare = *simdisk_os(disk);
        if (which == 0)
            bare.file_cached = NULL;
        else
            bare.file_open_direct = NULL;
        assert_int_equal(read_named(&bare, "f", 0, BIG_BYTES, false, got), PAWL_OK);
        assert_memory_equal(got, big, BIG_BYTES);
    }
    assert_int_equal(simdisk_direct_bytes_read(disk), 0);
    free(got);
}

/* A handle that was given, and then a read is refused: from there on through the cache, and no direct read is tried again. */
static void
a_refused_read_means_the_cache_from_there_on(void **state)
{
    (void)state;
    unsigned char *got = malloc(BIG_BYTES);
    simdisk_set_cold(disk, ALL_COLD);
    for (unsigned nth = 0; nth < 6; nth++) {
        uint64_t before = simdisk_direct_bytes_read(disk);
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_READ_AT, nth, 0, EINVAL);
        assert_int_equal(read_named(faultos_os(faults), "f", 0, BIG_BYTES, false, got), PAWL_OK);
        assert_true(faultos_was_met(faults));
        assert_memory_equal(got, big, BIG_BYTES);
        assert_int_equal(simdisk_direct_bytes_read(disk) - before, nth * 2 * MIB);
    }
    faultos_take_threads(faults);
    for (unsigned nth = 0; nth < 6; nth++) {
        faultos_fail(faults, SIM_FILE_READ_AT, nth, 0, EINVAL);
        /* A thread may meet the cache's own reading of what was refused before: that is an error of a plain read. */
        if (read_named(faultos_os(faults), "f", 0, BIG_BYTES, false, got) == PAWL_OK)
            assert_memory_equal(got, big, BIG_BYTES);
    }
    free(got);
}

/* Cut reads, interrupted calls, a medium that fails once: at every call in turn. */
static void
short_and_interrupted_reads_lose_nothing(void **state)
{
    (void)state;
    const int codes[] = { 0, EINTR };
    const enum sim_op ops[] = { SIM_FILE_READ_AT, SIM_FILE_CACHED, SIM_FILE_OPEN_DIRECT };
    unsigned char *got = malloc(BIG_BYTES);
    const uint32_t patterns[] = { 0, ALL_COLD, 0x0cc };
    for (size_t p = 0; p < 3; p++) {
        simdisk_set_cold(disk, patterns[p]);
        for (size_t op = 0; op < 3; op++) {
            for (size_t c = op == 0 ? 0 : 1; c < 2; c++) {
                for (unsigned nth = 0; nth < 9; nth++) {
                    faultos_reset(faults);
                    faultos_fail(faults, ops[op], nth, 1, codes[c]);
                    if (read_named(faultos_os(faults), "f", 9, BIG_BYTES, nth % 2 != 0, got) != PAWL_OK)
                        fail_msg("%u: %s", nth, err.message);
                    assert_memory_equal(got, big + 9, BIG_BYTES - 9);
                }
            }
        }
    }
    free(got);
}

/* An I/O error that comes once is none; one that stays is told as a plain reading tells it: the place, and PAWL_IO. */
static void
a_medium_that_fails(void **state)
{
    (void)state;
    unsigned char *got = malloc(BIG_BYTES);
    simdisk_set_cold(disk, ALL_COLD);
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        for (unsigned nth = 0; nth < 6; nth++) {
            faultos_fail(faults, SIM_FILE_READ_AT, nth, 0, EIO);
            assert_int_equal(read_named(faultos_os(faults), "f", 0, BIG_BYTES, false, got), PAWL_OK);
            assert_true(faultos_was_met(faults));
            assert_memory_equal(got, big, BIG_BYTES);
        }
        faultos_fail(faults, SIM_FILE_READ_AT, 2, 1000, EIO);
        assert_int_equal(read_named(faultos_os(faults), "f", 0, BIG_BYTES, false, got), PAWL_IO);
        assert_non_null(strstr(err.message, "read 'f' at offset "));
        faultos_reset(faults);
        faultos_take_threads(faults);
    }
    free(got);
}

/* Goal: no call, whatever it answers, leaves a handle open, a wrong byte, or an owner waiting. Method: every call of a reading in turn. */
static void
every_call_may_fail(void **state)
{
    (void)state;
    const int codes[] = { EIO, EINVAL, ENOMEM, EMFILE };
    unsigned char *got = malloc(BIG_BYTES);
    struct pawl_file file = PAWL_FILE_INIT;
    simdisk_set_cold(disk, 0x33);
    assert_int_equal(pawl_file_open_path(&file, faultos_os(faults), "f", &err), PAWL_OK);
    int open_before = faultos_open(faults);
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        for (size_t c = 0; c < 4; c++) {
            for (unsigned nth = 0; nth < 24; nth++) {
                faultos_reset(faults);
                faultos_fail(faults, SIM_ANY, nth, 3, codes[c]);
                if (read_range(&file, 0, BIG_BYTES, 1, false, got) == PAWL_OK)
                    assert_memory_equal(got, big, BIG_BYTES);
                assert_int_equal(faultos_open(faults), open_before);
            }
        }
        faultos_take_threads(faults);
    }
    faultos_reset(faults);
    pawl_file_release(&file);
    free(got);
}

/* A buffer that somebody holds is not filled again, however far the owner has gone on; one that was let go is. */
static void
held_buffers_stay(void **state)
{
    (void)state;
    struct pawl_file file = PAWL_FILE_INIT;
    simdisk_set_cold(disk, ALL_COLD);
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        struct pawl_inlet *inlet = NULL;
        struct pawl_inlet_piece pieces[6];
        void *shares[6];
        assert_int_equal(pawl_file_open_path(&file, faultos_os(faults), "f", &err), PAWL_OK);
        assert_int_equal(pawl_inlet_open(&inlet, &file, 100, BIG_BYTES, 1, &err), PAWL_OK);
        for (size_t i = 0; i < 6; i++) {
            if (i >= 3) /* three are held, the owner has the fourth */
                pawl_inlet_give(shares[i - 3]);
            assert_int_equal(pawl_inlet_next(inlet, &pieces[i], &err), PAWL_OK);
            assert_non_null(pieces[i].data);
            shares[i] = pawl_inlet_share(inlet);
            for (size_t k = i < 2 ? 0 : i - 2; k <= i; k++)
                assert_memory_equal(pieces[k].data, big + pieces[k].begin, (size_t)(pieces[k].end - pieces[k].begin));
        }
        pawl_inlet_close(inlet); /* the last ones are still held: by nobody who looks */
        pawl_file_release(&file);
        faultos_take_threads(faults);
    }
}

/* Closed in the middle, at the beginning, after an error; the slots are there again. */
static void
an_owner_may_leave_early(void **state)
{
    (void)state;
    unsigned char *slots[PAWL_SLOTS_MAX];
    struct pawl_file file = PAWL_FILE_INIT;
    simdisk_set_cold(disk, 0x3c);
    faultos_take_threads(faults);
    assert_int_equal(pawl_file_open_path(&file, faultos_os(faults), "f", &err), PAWL_OK);
    for (unsigned n = 0; n < 5; n++) {
        struct pawl_inlet *inlet = NULL;
        struct pawl_inlet_piece piece;
        assert_int_equal(pawl_inlet_open(&inlet, &file, 0, BIG_BYTES, 1, &err), PAWL_OK);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(pawl_inlet_next(inlet, &piece, &err), PAWL_OK);
        pawl_inlet_close(inlet);
        assert_int_equal(pawl_slots_take(slots, PAWL_SLOTS_MAX, PAWL_SLOTS_MAX), PAWL_SLOTS_MAX);
        pawl_slots_give(slots, PAWL_SLOTS_MAX);
    }
    pawl_inlet_close(NULL);
    pawl_file_release(&file);
}

static void
without_slots_one_block_does(void **state)
{
    (void)state;
    unsigned char *slots[PAWL_SLOTS_MAX];
    size_t n = pawl_slots_take(slots, 1, PAWL_SLOTS_MAX);
    assert_int_equal(n, PAWL_SLOTS_MAX);
    simdisk_set_cold(disk, ALL_COLD);
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        expect_range(0, BIG_BYTES);
        expect_range(4097, 3 * MIB + 1);
        faultos_take_threads(faults);
    }
    assert_int_equal(simdisk_direct_bytes_read(disk), 0);
    pawl_slots_give(slots, n);
}

static void
empty_ranges_and_small_ones(void **state)
{
    (void)state;
    expect_range(0, 0);
    expect_range(BIG_BYTES, BIG_BYTES);
    expect_range(5, 6);
    expect_range(2 * MIB, 2 * MIB);
    expect_range(MIB - 1, MIB + 1);
}

/* ---- the host ---- */

static void
host_big(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, big, BIG_BYTES), BIG_BYTES);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(close(fd), 0);
}

static void
host_forget(const char *name)
{
    int fd = open(name, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    assert_int_equal(close(fd), 0);
}

static size_t
host_cached(const struct pawl_file *file, uint64_t at, size_t bytes)
{
    size_t cached = SIZE_MAX;
    assert_int_equal(file->os->file_cached(file->os->context, file->handle, at, bytes, &cached), 0);
    return cached;
}

static int
enter(void **state)
{
    return fixture_enter(state) != 0 ? -1 : set_up(state);
}

static int
leave(void **state)
{
    return tear_down(state) != 0 ? -1 : fixture_leave(state);
}

/* All, nothing, half of it in the cache; what was cold is cold after it where the filesystem reads past the cache at all. */
static void
the_host_in_every_state_of_its_cache(void **state)
{
    (void)state;
    unsigned char *got = malloc(BIG_BYTES);
    struct pawl_file file = PAWL_FILE_INIT;
    host_big("f");
    assert_int_equal(pawl_file_open_path(&file, pawl_os_posix(), "f", &err), PAWL_OK);
    assert_int_equal(host_cached(&file, 0, BIG_BYTES), BIG_BYTES);
    assert_int_equal(host_cached(&file, 4095, 2), 2);
    for (int how = 0; how < 4; how++) {
        struct pawl_os_file *direct = NULL;
        size_t alignment = 0;
        host_forget("f");
        bool forgets = host_cached(&file, 0, BIG_BYTES) == 0; /* a filesystem in memory can't */
        bool takes_direct = pawl_os_posix()->file_open_direct(NULL, file.handle, &direct, &alignment) == 0;
        if (takes_direct)
            assert_int_equal(pawl_os_posix()->file_close(NULL, direct), 0);
        if (how == 1)
            assert_int_equal(pawl_file_read(&file, 4 * MIB, got, 4 * MIB, &err), PAWL_OK);
        if (how == 2)
            assert_int_equal(pawl_file_read(&file, 0, got, 4096, &err), PAWL_OK);
        size_t before = host_cached(&file, 0, BIG_BYTES);
        memset(got, 0, BIG_BYTES);
        assert_int_equal(read_range(&file, 3, BIG_BYTES, 1 + (how & 1), how == 3, got), PAWL_OK);
        assert_memory_equal(got, big + 3, BIG_BYTES - 3);
        if (forgets && takes_direct && how != 1)
            assert_int_equal(host_cached(&file, 0, BIG_BYTES), before);
        if (forgets && takes_direct && how == 1) /* the system may have read a little ahead of what was asked for */
            assert_true(host_cached(&file, 0, BIG_BYTES) < 7 * MIB);
    }
    pawl_file_release(&file);
    free(got);
}

/* What was written a moment ago, and lies in the cache alone, is seen by a direct read too. */
static void
a_direct_read_sees_what_was_just_written(void **state)
{
    (void)state;
    const struct pawl_os *os = pawl_os_posix();
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_os_file *direct = NULL;
    size_t alignment = 0, n = 0;
    unsigned char *slot[1];
    host_big("f");
    int fd = open("f", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "fresh", 5, 5000), 5);
    assert_int_equal(pawl_file_open_path(&file, os, "f", &err), PAWL_OK);
    if (os->file_open_direct(os->context, file.handle, &direct, &alignment) == 0) {
        assert_int_equal(pawl_slots_take(slot, 1, 1), 1);
        assert_int_equal(os->file_read_at(os->context, direct, 0, slot[0], 2 * MIB, &n), 0);
        assert_int_equal(n, 2 * MIB);
        assert_memory_equal(slot[0] + 5000, "fresh", 5);
        assert_memory_equal(slot[0], big, 5000);
        /* Whole blocks over the end: as many bytes as there are. */
        assert_int_equal(os->file_read_at(os->context, direct, 10 * MIB, slot[0], 2 * MIB, &n), 0);
        assert_int_equal(n, BIG_BYTES - 10 * MIB);
        pawl_slots_give(slot, 1);
        assert_int_equal(os->file_close(os->context, direct), 0);
    }
    assert_int_equal(close(fd), 0);
    pawl_file_release(&file);
}

/* The second handle is of the file that is open, and not of what has its name now. */
static void
another_file_under_the_name_is_not_read(void **state)
{
    (void)state;
    unsigned char *got = malloc(BIG_BYTES);
    struct pawl_file file = PAWL_FILE_INIT;
    host_big("f");
    host_forget("f");
    host_put("g", "another");
    assert_int_equal(pawl_file_open_path(&file, pawl_os_posix(), "f", &err), PAWL_OK);
    assert_int_equal(rename("g", "f"), 0);
    assert_int_equal(read_range(&file, 0, BIG_BYTES, 1, false, got), PAWL_OK);
    assert_memory_equal(got, big, BIG_BYTES);
    pawl_file_release(&file);
    free(got);
}

/* A file that was cut after it was opened: told as truncated, and where it ends. */
static void
a_cut_file_is_told(void **state)
{
    (void)state;
    const off_t ends[] = { 0, 1, 4096, 5000, 3 * 1048576 + 511, BIG_BYTES - 1 };
    unsigned char *got = malloc(BIG_BYTES);
    for (int is_cold = 0; is_cold < 2; is_cold++) {
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            struct pawl_file file = PAWL_FILE_INIT;
            char at[64];
            host_big("f");
            if (is_cold)
                host_forget("f");
            assert_int_equal(pawl_file_open_path(&file, pawl_os_posix(), "f", &err), PAWL_OK);
            assert_int_equal(truncate("f", ends[i]), 0);
            assert_int_equal(read_range(&file, 0, BIG_BYTES, 1, false, got), PAWL_TRUNCATED);
            (void)snprintf(at, sizeof at, "the file ends at %ld", (long)ends[i]);
            assert_non_null(strstr(err.message, at));
            pawl_file_release(&file);
            assert_int_equal(unlink("f"), 0);
        }
    }
    free(got);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_range_by_the_owner, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_range_by_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_cold_is_read_directly, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused_direct_handles_mean_the_cache, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_that_cannot_tell_mean_the_cache, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refused_read_means_the_cache_from_there_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_and_interrupted_reads_lose_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_medium_that_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_call_may_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(held_buffers_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_owner_may_leave_early, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_slots_one_block_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(empty_ranges_and_small_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_host_in_every_state_of_its_cache, enter, leave),
        cmocka_unit_test_setup_teardown(a_direct_read_sees_what_was_just_written, enter, leave),
        cmocka_unit_test_setup_teardown(another_file_under_the_name_is_not_read, enter, leave),
        cmocka_unit_test_setup_teardown(a_cut_file_is_told, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
