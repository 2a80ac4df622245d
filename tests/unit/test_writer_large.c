/*
 * Goal: a large file has every byte once and in order, and so has its tap, whatever the sizes, whichever threads do the work, and whatever the
 * filesystem refuses: writing past the cache, at once or at the first write; reserving; cutting; whole writes.
 *
 * Method: the simulated disk is as strict about direct writes as the strictest filesystem, and refuses on demand; once with the work
 * done by the caller, once by threads; and the host's own filesystem, whatever it takes.
 */
#include "unit/os_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "os/lane.h"
#include "os/slots.h"
#include "os/thread.h"
#include "sim/faultos.h"
#include "sim/simdisk.h"
#include "unit/emulator.h"

#define MIB ((size_t)1 << 20)
#define BIG_BYTES (10 * MIB + 12345)

static struct simdisk *disk;
static struct faultos *faults;
static struct pawl_dir dir;
static struct pawl_error err;
static unsigned char *big; /* on a boundary of 4096 */

static int
set_up(void **state)
{
    (void)state;
    disk = simdisk_new();
    faults = faultos_new(simdisk_os(disk));
    dir = (struct pawl_dir)PAWL_DIR_INIT;
    if (posix_memalign((void **)&big, 4096, BIG_BYTES) != 0 ||
        pawl_dir_open_path(&dir, faultos_os(faults), ".", &err) != PAWL_OK)
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

static void
keep(void *context, const void *data, size_t bytes)
{
    assert_true(pawl_buffer_add(context, data, bytes));
}

enum how { ADD, FILL, LEND, HOWS };

/* Write `bytes` of `big` from `skip` on in pieces, announced as `announced`. */
static enum pawl_status
write_file(const char *name, size_t skip, size_t bytes, uint64_t announced, size_t piece, enum how how,
           struct pawl_buffer *seen)
{
    struct pawl_tap tap = { keep, seen };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    enum pawl_status st = pawl_writer_create(&writer, &dir, name, announced, tap, &err);
    for (size_t at = 0; at < bytes && st == PAWL_OK;) {
        size_t n = bytes - at < piece ? bytes - at : piece;
        void *room = NULL;
        size_t room_bytes = 0;
        if (how == FILL) {
            st = pawl_writer_room(&writer, n, &room, &room_bytes, &err);
            if (st != PAWL_OK)
                break;
            assert_true(room_bytes >= 1 && room_bytes <= n);
            n = room_bytes;
            memcpy(room, big + skip + at, n);
            st = pawl_writer_filled(&writer, n, &err);
        } else if (how == LEND) {
            st = pawl_writer_lend(&writer, big + skip + at, n, &err);
        } else {
            st = pawl_writer_add(&writer, big + skip + at, n, &err);
        }
        at += n;
    }
    if (st == PAWL_OK)
        st = pawl_writer_sync(&writer, &err);
    if (st == PAWL_OK) {
        assert_int_equal(writer.offset, bytes);
        assert_int_equal(writer.written, bytes);
        st = pawl_writer_close(&writer, &err);
    }
    pawl_writer_abandon(&writer);
    return st;
}

static void
expect_file(const char *name, size_t skip, size_t want, const struct pawl_buffer *seen)
{
    size_t bytes = 0;
    const unsigned char *data = simdisk_get(disk, name, &bytes);
    assert_int_equal(bytes, want);
    assert_memory_equal(data, big + skip, want);
    assert_int_equal(seen->len, want);
    assert_memory_equal(seen->data, big + skip, want);
}

static void
write_and_expect(size_t skip, size_t bytes, uint64_t announced, size_t piece, enum how how)
{
    struct pawl_buffer seen = PAWL_BUFFER_INIT;
    enum pawl_status st = write_file("f", skip, bytes, announced, piece, how, &seen);
    if (st != PAWL_OK)
        fail_msg("%zu bytes in pieces of %zu: %s", bytes, piece, err.message);
    expect_file("f", skip, bytes, &seen);
    simdisk_remove(disk, "f");
    pawl_buffer_release(&seen);
}

static void
every_way(void)
{
    const size_t sizes[] = { MIB, 2 * MIB - 1, 2 * MIB + 4096, 4 * MIB + 511 };
    const size_t pieces[] = { 10007, 2 * MIB, 3 * MIB + 4096 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++)
            for (int how = 0; how < HOWS; how++)
                write_and_expect(0, sizes[i], sizes[i], pieces[k], (enum how)how);
    /* Memory that no direct write takes, more and fewer bytes than announced. */
    for (int how = 0; how < HOWS; how++) {
        write_and_expect(0, BIG_BYTES, BIG_BYTES, BIG_BYTES, (enum how)how);
        write_and_expect(8, 3 * MIB, 3 * MIB, 2 * MIB, (enum how)how);
        write_and_expect(0, 3 * MIB + 5, 2 * MIB, MIB, (enum how)how);
        write_and_expect(0, 2 * MIB + 5, 9 * MIB, MIB, (enum how)how);
        write_and_expect(0, 5, 9 * MIB, 3 * MIB, (enum how)how);
    }
}

static void
all_sizes_by_the_caller(void **state)
{
    (void)state;
    every_way();
    assert_true(simdisk_direct_bytes(disk) > 50 * MIB);
}

static void
all_sizes_by_threads(void **state)
{
    (void)state;
    faultos_take_threads(faults);
    every_way();
    assert_true(simdisk_direct_bytes(disk) > 50 * MIB);
}

/* Goal: all but the last, odd bytes go past the cache, once; lent ones from where they are. */
static void
whole_blocks_are_direct(void **state)
{
    (void)state;
    write_and_expect(0, BIG_BYTES, BIG_BYTES, MIB, ADD);
    assert_int_equal(simdisk_direct_bytes(disk), BIG_BYTES - BIG_BYTES % 4096);
    assert_int_equal(faultos_calls(faults, SIM_FILE_SET_DIRECT), 2);
    assert_int_equal(faultos_calls(faults, SIM_FILE_SYNC), 1);
    assert_int_equal(faultos_calls(faults, SIM_FILE_WRITE_AT),
                     7); /* 5 slots, the rest of whole blocks, the odd bytes */
    faultos_reset(faults);
    write_and_expect(0, BIG_BYTES, BIG_BYTES, BIG_BYTES, LEND);
    assert_int_equal(faultos_calls(faults, SIM_FILE_WRITE_AT),
                     4); /* 4 MiB, 4 MiB, the rest of whole blocks, the odd bytes */
    /* Below 1 MiB there is nothing of that. */
    faultos_reset(faults);
    write_and_expect(0, MIB - 1, MIB - 1, MIB, ADD);
    assert_int_equal(faultos_calls(faults, SIM_FILE_SET_DIRECT), 0);
}

static void
what_a_filesystem_refuses(void **state)
{
    (void)state;
    const int refusals[] = { EINVAL, EOPNOTSUPP, ENOSYS };
    for (size_t i = 0; i < 3; i++) { /* when it is asked for */
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_SET_DIRECT, 0, 0, refusals[i]);
        write_and_expect(0, BIG_BYTES, BIG_BYTES, MIB, ADD);
        assert_true(faultos_was_met(faults));
        assert_int_equal(simdisk_direct_bytes(disk), 0);
    }
    for (unsigned nth = 0; nth < 6; nth++) { /* at the first write, or any */
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_WRITE_AT, nth, 0, EINVAL);
        write_and_expect(0, BIG_BYTES, BIG_BYTES, MIB, ADD);
        assert_true(faultos_was_met(faults));
    }
    for (unsigned nth = 0; nth < 7; nth++) { /* cut short, on a block's boundary or within one; interrupted */
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_WRITE_AT, nth, 2, nth % 2 == 0 ? 0 : EINTR);
        write_and_expect(0, BIG_BYTES, BIG_BYTES, MIB, LEND);
        write_and_expect(0, 2 * MIB + 4096 * 3, 2 * MIB + 4096 * 3, MIB, ADD);
        assert_true(faultos_was_met(faults));
    }
    faultos_reset(faults);
    faultos_fail(faults, SIM_FILE_SET_DIRECT, 0, 1, EINTR);
    write_and_expect(0, BIG_BYTES, BIG_BYTES, MIB, ADD);
    const enum sim_op space[] = { SIM_FILE_RESERVE, SIM_FILE_SET_BYTES };
    for (size_t i = 0; i < 2; i++) {
        faultos_reset(faults);
        faultos_fail(faults, space[i], 0, 0, EOPNOTSUPP);
        write_and_expect(0, 3 * MIB, BIG_BYTES, MIB, ADD);
        assert_true(faultos_was_met(faults));
    }
    faultos_reset(faults);
    faultos_lack(faults, SIM_DIRECT);
    every_way();
}

/* A table without the entry, and one whose switch can't be turned back: then the file can't be finished, and says so. */
static void
no_switch_and_a_switch_that_sticks(void **state)
{
    (void)state;
    struct pawl_buffer seen = PAWL_BUFFER_INIT;
    struct pawl_os table = *faultos_os(faults);
    table.file_set_direct = NULL;
    dir.os = &table;
    write_and_expect(0, BIG_BYTES, BIG_BYTES, MIB, ADD);
    assert_int_equal(simdisk_direct_bytes(disk), 0);
    dir.os = faultos_os(faults);
    faultos_fail(faults, SIM_FILE_SET_DIRECT, 1, 0, EIO);
    assert_int_equal(write_file("f", 0, BIG_BYTES, BIG_BYTES, MIB, ADD, &seen), PAWL_IO);
    assert_non_null(strstr(err.message, "turn to cached writing of 'f' at offset 10498048"));
    pawl_buffer_release(&seen);
}

/* Goal: an error that a thread meets is told, with its place, and everything after it is not written. */
static void
errors_of_threads_are_told(void **state)
{
    (void)state;
    for (int has_threads = 0; has_threads < 2; has_threads++) {
        struct pawl_buffer seen = PAWL_BUFFER_INIT;
        if (has_threads)
            faultos_take_threads(faults);
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_WRITE_AT, 2, 0, EIO);
        assert_int_equal(write_file("f", 0, BIG_BYTES, BIG_BYTES, MIB, ADD, &seen), PAWL_IO);
        assert_non_null(strstr(err.message, "write 'f' at offset 4194304"));
        assert_int_equal(faultos_calls(faults, SIM_FILE_WRITE_AT), 3);
        assert_int_equal(faultos_calls(faults, SIM_FILE_SYNC), 0);
        simdisk_remove(disk, "f");
        simdisk_set_capacity(disk, 5 * MIB);
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_RESERVE, 0, 0, EOPNOTSUPP);
        assert_int_equal(write_file("f", 0, BIG_BYTES, BIG_BYTES, MIB, ADD, &seen), PAWL_NO_SPACE);
        assert_non_null(strstr(err.message, "10498105 bytes are needed, 5242880 are written"));
        simdisk_set_capacity(disk, SIZE_MAX);
        simdisk_remove(disk, "f");
        pawl_buffer_release(&seen);
    }
}

/* Goal: after the sync the handle is an ordinary one: a header can be put in, as the token writer does. */
static void
the_handle_is_ordinary_after_the_sync(void **state)
{
    (void)state;
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    const struct pawl_os_span span = { "head", 4 };
    size_t n = 0;
    assert_int_equal(pawl_writer_create(&writer, &dir, "f", 4 * MIB, no_tap, &err), PAWL_OK);
    assert_int_equal(pawl_writer_add(&writer, big, 4 * MIB, &err), PAWL_OK);
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_OK);
    const struct pawl_os *os = faultos_os(faults);
    assert_int_equal(os->file_write_at(os->context, writer.handle, 3, &span, 1, &n), 0);
    assert_int_equal(pawl_writer_close(&writer, &err), PAWL_OK);
    assert_memory_equal(simdisk_get(disk, "f", &n) + 3, "head", 4);
    assert_int_equal(n, 4 * MIB);
}

/* Goal: however many files are open, there are 16 buffers; who gets none writes the simple way, and they come back. */
static void
buffers_are_bounded(void **state)
{
    (void)state;
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writers[7];
    unsigned with_lane = 0;
    for (int round = 0; round < 2; round++) {
        unsigned here = 0;
        for (size_t i = 0; i < 7; i++) {
            char name[] = { (char)('a' + (int)i), '\0' };
            writers[i] = (struct pawl_writer)PAWL_WRITER_INIT;
            assert_int_equal(pawl_writer_create(&writers[i], &dir, name, BIG_BYTES, no_tap, &err), PAWL_OK);
            assert_int_equal(pawl_writer_add(&writers[i], big, BIG_BYTES, &err), PAWL_OK);
            here += writers[i].lane != NULL;
        }
        for (size_t i = 0; i < 7; i++) {
            size_t bytes = 0;
            char name[] = { (char)('a' + (int)i), '\0' };
            assert_int_equal(pawl_writer_sync(&writers[i], &err), PAWL_OK);
            assert_int_equal(pawl_writer_close(&writers[i], &err), PAWL_OK);
            assert_memory_equal(simdisk_get(disk, name, &bytes), big, BIG_BYTES);
            assert_int_equal(bytes, BIG_BYTES);
            simdisk_remove(disk, name);
        }
        assert_int_equal(here, PAWL_SLOTS_MAX / 4);
        with_lane += here;
    }
    assert_int_equal(with_lane, 2 * (PAWL_SLOTS_MAX / 4));
}

/* ---- lanes that share a thread ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint pairs;

struct seen {
    struct pawl_buffer bytes;
    bool waits; /* at the gate, before the first byte */
};

static void
see(void *context, const void *data, size_t bytes)
{
    struct seen *seen = context;
    if (seen->waits) {
        (void)pthread_mutex_lock(&gate);
        (void)pthread_mutex_unlock(&gate);
    }
    keep(&seen->bytes, data, bytes);
}

static void
see_two(void *a, const void *a_data, void *b, const void *b_data, size_t bytes)
{
    atomic_fetch_add(&pairs, 1);
    see(a, a_data, bytes);
    see(b, b_data, bytes);
}

/*
 * Goal: what two lanes have is taken together, unequal lengths too. Method: the only thread that looks is held up in a third lane until
 * both have something.
 */
static void
two_lanes_are_taken_together(void **state)
{
    (void)state;
    struct pawl_lanes *lanes = NULL;
    struct pawl_lane *lane[3];
    struct seen seen[3] = { { PAWL_BUFFER_INIT, false }, { PAWL_BUFFER_INIT, false }, { PAWL_BUFFER_INIT, true } };
    const size_t bytes[] = { 3 * MIB, MIB + 7, 100 };
    atomic_store(&pairs, 0);
    assert_int_equal(pawl_lanes_new(&lanes, see_two, 1, &err), PAWL_OK);
    for (size_t i = 0; i < 3; i++) {
        const struct pawl_lane_options options = { .tap = { see, &seen[i] } };
        assert_int_equal(pawl_lane_open(&lane[i], lanes, &options, &err), PAWL_OK);
    }
    (void)pthread_mutex_lock(&gate);
    assert_int_equal(pawl_lane_lend(lane[2], big, bytes[2], &err), PAWL_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pawl_lane_lend(lane[i], big, bytes[i], &err), PAWL_OK);
    (void)pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pawl_lane_flush(lane[i], &err), PAWL_OK);
        pawl_lane_close(lane[i]);
        assert_int_equal(seen[i].bytes.len, bytes[i]);
        assert_memory_equal(seen[i].bytes.data, big, bytes[i]);
        pawl_buffer_release(&seen[i].bytes);
    }
    pawl_lanes_free(lanes);
    assert_true(atomic_load(&pairs) >= 1);
}

struct job {
    struct pawl_lanes *lanes;
    size_t number;
    size_t bytes;
    struct seen seen;
    enum pawl_status status;
};

static void *
write_among(void *context)
{
    struct job *job = context;
    struct pawl_writer writer = PAWL_WRITER_INIT;
    char name[] = { (char)('a' + (int)job->number), '\0' };
    struct pawl_tap tap = { see, &job->seen };
    enum pawl_status st = pawl_writer_create_among(&writer, job->lanes, &dir, name, job->bytes, tap, NULL);
    for (size_t at = 0; at < job->bytes && st == PAWL_OK; at += 70001)
        st = pawl_writer_add(&writer, big + at, job->bytes - at < 70001 ? job->bytes - at : 70001, NULL);
    if (st == PAWL_OK)
        st = pawl_writer_sync(&writer, NULL);
    if (st == PAWL_OK)
        st = pawl_writer_close(&writer, NULL);
    pawl_writer_abandon(&writer);
    job->status = st;
    return NULL;
}

static void
files_at_once(void **state)
{
    (void)state;
    faultos_take_threads(faults);
    for (unsigned threads = 0; threads < 3; threads++) {
        struct pawl_lanes *lanes = NULL;
        struct job jobs[5];
        pthread_t ids[5];
        assert_int_equal(pawl_lanes_new(&lanes, see_two, threads, &err), PAWL_OK);
        for (size_t i = 0; i < 5; i++) {
            jobs[i] = (struct job){ .lanes = lanes, .number = i, .bytes = BIG_BYTES - i * 999999 };
            assert_int_equal(pawl_thread_begin(&ids[i], write_among, &jobs[i]), 0);
        }
        for (size_t i = 0; i < 5; i++)
            (void)pthread_join(ids[i], NULL); /* all: the disk's helpers want nobody else there */
        for (size_t i = 0; i < 5; i++) {
            size_t bytes = 0;
            char name[] = { (char)('a' + (int)i), '\0' };
            assert_int_equal(jobs[i].status, PAWL_OK);
            assert_memory_equal(simdisk_get(disk, name, &bytes), big, jobs[i].bytes);
            assert_int_equal(bytes, jobs[i].bytes);
            assert_int_equal(jobs[i].seen.bytes.len, jobs[i].bytes);
            assert_memory_equal(jobs[i].seen.bytes.data, big, jobs[i].bytes);
            pawl_buffer_release(&jobs[i].seen.bytes);
            simdisk_remove(disk, name);
        }
        pawl_lanes_free(lanes);
    }
}

/* Goal: a lane that is given up with bytes under way ends, and drops them. */
static void
abandoned_with_bytes_under_way(void **state)
{
    (void)state;
    faultos_take_threads(faults);
    for (size_t at = 0; at < BIG_BYTES; at += MIB / 2) {
        struct pawl_writer writer = PAWL_WRITER_INIT;
        struct seen seen = { PAWL_BUFFER_INIT, false };
        assert_int_equal(pawl_writer_create(&writer, &dir, "f", BIG_BYTES, (struct pawl_tap){ see, &seen }, &err),
                         PAWL_OK);
        assert_int_equal(pawl_writer_add(&writer, big, at, &err), PAWL_OK);
        pawl_writer_abandon(&writer);
        assert_true(seen.bytes.len <= at);
        pawl_buffer_release(&seen.bytes);
        simdisk_remove(disk, "f");
    }
}

/* ---- the host ---- */

static unsigned long long
blocked_of(const char *task)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%.16s/status", task);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "SigBlk: %llx", &mask) == 1)
            break;
    (void)fclose(file);
    return mask;
}

/* Goal: signals stay with the program's own threads. Method: ask the system for the masks of all threads while a file is under way. */
static void
threads_block_signals(void **state)
{
    (void)state;
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct seen seen = { PAWL_BUFFER_INIT, false };
    struct pawl_dir here = PAWL_DIR_INIT;
    unsigned others = 0;
    char own[16];
    assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", &err), PAWL_OK);
    assert_int_equal(pawl_writer_create(&writer, &here, "f", BIG_BYTES, (struct pawl_tap){ see, &seen }, &err),
                     PAWL_OK);
    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    DIR *tasks = opendir("/proc/self/task");
    if (tasks != NULL) {
        struct dirent *entry;
        while ((entry = readdir(tasks)) != NULL) {
            if (entry->d_name[0] == '.' || strcmp(entry->d_name, own) == 0)
                continue;
            unsigned long long mask = blocked_of(entry->d_name);
            if ((mask & 1ull << (SIGTERM - 1)) != 0 && (mask & 1ull << (SIGINT - 1)) != 0 &&
                (mask & 1ull << (SIGXFSZ - 1)) != 0 && (mask & 1ull << (SIGCHLD - 1)) != 0)
                others++;
        }
        (void)closedir(tasks);
        assert_true(others >= 2); /* a sanitizer may have a thread of its own */
    }
    pawl_writer_abandon(&writer);
    pawl_buffer_release(&seen.bytes);
    pawl_dir_release(&here);
}

static void
put_host_file(const char *name)
{
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct pawl_dir here = PAWL_DIR_INIT;
    struct seen seen = { PAWL_BUFFER_INIT, false };
    assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", &err), PAWL_OK);
    assert_int_equal(pawl_writer_create(&writer, &here, name, BIG_BYTES, (struct pawl_tap){ see, &seen }, &err),
                     PAWL_OK);
    assert_int_equal(pawl_writer_add(&writer, big, BIG_BYTES, &err), PAWL_OK);
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_OK);
    assert_int_equal(pawl_writer_close(&writer, &err), PAWL_OK);
    assert_int_equal(seen.bytes.len, BIG_BYTES);
    assert_memory_equal(seen.bytes.data, big, BIG_BYTES);
    pawl_buffer_release(&seen.bytes);
    pawl_dir_release(&here);
}

static void
expect_host_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    unsigned char *data = malloc(BIG_BYTES + 1);
    assert_non_null(file);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, BIG_BYTES + 1, file), BIG_BYTES);
    assert_memory_equal(data, big, BIG_BYTES);
    free(data);
    (void)fclose(file);
}

/* Goal: a child made while buffers are in use has none of them and writes files of its own; the parent's file is not disturbed. */
static void
a_forked_child_has_buffers_of_its_own(void **state)
{
    (void)state;
    SKIP_UNDER_EMULATOR("lets no child of a program with threads begin some of its own");
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct pawl_dir here = PAWL_DIR_INIT;
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    skip(); /* it lets no child of a program with threads begin some of its own */
#endif
#endif
    assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", &err), PAWL_OK);
    assert_int_equal(pawl_writer_create(&writer, &here, "parent", BIG_BYTES, no_tap, &err), PAWL_OK);
    assert_int_equal(pawl_writer_add(&writer, big, 5 * MIB, &err), PAWL_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        put_host_file("child");
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(pawl_writer_add(&writer, big + 5 * MIB, BIG_BYTES - 5 * MIB, &err), PAWL_OK);
    assert_int_equal(pawl_writer_sync(&writer, &err), PAWL_OK);
    assert_int_equal(pawl_writer_close(&writer, &err), PAWL_OK);
    pawl_dir_release(&here);
    expect_host_file("child");
    expect_host_file("parent");
}

static int
enter_host(void **state)
{
    return set_up(state) != 0 ? -1 : fixture_enter(state);
}

static int
leave_host(void **state)
{
    int code = fixture_leave(state);
    return tear_down(state) != 0 ? -1 : code;
}

static void
the_hosts_own_filesystem(void **state)
{
    (void)state;
    put_host_file("f");
    expect_host_file("f");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, enter_host, leave_host)
    const struct CMUnitTest tests[] = {
        TEST(all_sizes_by_the_caller),
        TEST(all_sizes_by_threads),
        TEST(whole_blocks_are_direct),
        TEST(what_a_filesystem_refuses),
        TEST(no_switch_and_a_switch_that_sticks),
        TEST(errors_of_threads_are_told),
        TEST(the_handle_is_ordinary_after_the_sync),
        TEST(buffers_are_bounded),
        TEST(two_lanes_are_taken_together),
        TEST(files_at_once),
        TEST(abandoned_with_bytes_under_way),
        HOST_TEST(the_hosts_own_filesystem),
        HOST_TEST(threads_block_signals),
        HOST_TEST(a_forked_child_has_buffers_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
