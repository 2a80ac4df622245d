/* The table of the host: what it asks of the system, and what must never happen. */
#include "unit/os_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "os/posix.h"
#include "unit/emulator.h"

static const struct pawl_os *os;

static struct pawl_os_dir *
open_here(void)
{
    struct pawl_os_dir *dir = NULL;
    assert_int_equal(os->dir_open_path(os->context, ".", &dir), 0);
    return dir;
}

static void
close_dir(struct pawl_os_dir *dir)
{
    assert_int_equal(os->dir_close(os->context, dir), 0);
}

/* Run `body` in a child; its answer is the exit status. */
static int
in_child(int (*body)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- descriptors ---- */

static int closed_mask; /* which of 0, 1 and 2 */

static int
open_everything_without_stdio(void)
{
    struct pawl_os_dir *dir = NULL, *sub = NULL;
    struct pawl_os_file *file = NULL, *other = NULL;
    bool is_fallback;
    int64_t holder;
    bool was_open[64];
    for (int fd = 0; fd <= 2; fd++) {
        if ((closed_mask >> fd & 1) != 0)
            (void)close(fd);
    }
    for (int fd = 0; fd < 64; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    if (os->dir_open_path(NULL, ".", &dir) != 0 || os->dir_create(NULL, dir, "sub") != 0 ||
        os->dir_open(NULL, dir, "sub", &sub) != 0 || os->file_create(NULL, dir, "file", &file) != 0 ||
        os->file_open(NULL, dir, "file", 0, &other) != 0 ||
        os->dir_lock(NULL, dir, PAWL_OS_LOCK_TRY, &is_fallback, &holder) != 0)
        return 10;
    for (int fd = 0; fd <= 2; fd++) {
        if ((closed_mask >> fd & 1) != 0 && fcntl(fd, F_GETFD) >= 0)
            return 20 + fd;
    }
    int opened = 0;
    for (int fd = 3; fd < 64; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || was_open[fd])
            continue;
        opened++;
        if ((flags & FD_CLOEXEC) == 0)
            return 30;
    }
    return opened == 5 ? 0 : 31;
}

/*
 * Goal: a program started without stdin, stdout or stderr never writes its
 * messages into a checkpoint. Method: close each choice of them, open one of each kind,
 * look whether 0, 1 or 2 is in use; and all are closed at exec.
 */
static void
descriptors_are_above_stdio_and_close_on_exec(void **state)
{
    (void)state;
    for (closed_mask = 1; closed_mask < 8; closed_mask++) {
        assert_int_equal(in_child(open_everything_without_stdio), 0);
        assert_int_equal(unlink("file"), 0);
        assert_int_equal(rmdir("sub"), 0);
    }
}

/* A descriptor that can't be moved above 2 leaves no file behind: a retry would meet EEXIST. */
static int
create_without_room(void)
{
    struct pawl_os_dir *dir = NULL;
    struct pawl_os_file *file = NULL;
    if (os->dir_open_path(NULL, ".", &dir) != 0)
        return 1;
    struct rlimit limit = { (rlim_t)dir->fd + 1, (rlim_t)dir->fd + 1 };
    (void)close(0);
    for (int fd = 3; fd < dir->fd; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && dup2(2, fd) < 0)
            return 2;
    }
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 3;
    if (os->file_create(NULL, dir, "file", &file) != EMFILE)
        return 4;
    return access("file", F_OK) == 0 ? 5 : 0;
}

static void
create_that_finds_no_descriptor_leaves_no_file(void **state)
{
    (void)state;
    assert_int_equal(in_child(create_without_room), 0);
}

/* ---- kinds ---- */

/* Goal: no open hangs. Method: a FIFO without a writer, a device, a socket, a link, a directory; the alarm would kill. */
static void
what_is_no_file_is_refused_at_once(void **state)
{
    (void)state;
    struct pawl_os_dir *dir = open_here();
    struct pawl_os_file *file = NULL;
    int before = count_descriptors();
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(mkdir("sub", 0755), 0);
    host_put("real", "x");
    assert_int_equal(symlink("real", "link"), 0);
    assert_int_equal(symlink("fifo", "to-fifo"), 0);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };
    assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof name), 0);
    (void)close(listener);

    (void)alarm(20);
    assert_int_equal(os->file_open(NULL, dir, "fifo", 0, &file), ENXIO);
    assert_int_equal(os->file_open(NULL, dir, "to-fifo", PAWL_OS_FOLLOW, &file), ENXIO);
    assert_int_equal(os->file_open(NULL, dir, "socket", 0, &file), ENXIO);
    assert_int_equal(os->file_open(NULL, dir, "/dev/null", 0, &file), ENXIO);
    assert_int_equal(os->file_open(NULL, dir, "sub", 0, &file), EISDIR);
    assert_int_equal(os->file_open(NULL, dir, "link", 0, &file), ELOOP);
    assert_int_equal(os->file_open(NULL, dir, "none", 0, &file), ENOENT);
    struct pawl_os_dir *sub = NULL;
    assert_int_equal(os->dir_open_path(NULL, "fifo", &sub), ENOTDIR);
    assert_int_equal(symlink("sub", "to-sub"), 0);
    assert_int_not_equal(os->dir_open(NULL, dir, "to-sub", &sub), 0);
    (void)alarm(0);
    assert_null(file);
    assert_null(sub);
    assert_int_equal(count_descriptors(), before);

    struct pawl_os_stat status;
    assert_int_equal(os->stat(NULL, dir, "fifo", &status), 0);
    assert_int_equal(status.kind, PAWL_OS_OTHER);
    assert_int_equal(os->stat(NULL, dir, "link", &status), 0);
    assert_int_equal(status.kind, PAWL_OS_LINK);
    close_dir(dir);
}

/* ---- locks ---- */

static int64_t child_sees_holder;

static int
try_lock(void)
{
    struct pawl_os_dir *dir = NULL;
    bool is_fallback;
    int64_t holder = -1;
    if (os->dir_open_path(NULL, ".", &dir) != 0)
        return 100;
    int code = os->dir_lock(NULL, dir, PAWL_OS_LOCK_TRY, &is_fallback, &holder);
    if (os->dir_close(os->context, dir) != 0)
        return 102;
    return code == EWOULDBLOCK && holder != child_sees_holder ? 101 : code;
}

/* Goal: a second writer learns at once that the root is taken, and by whom. */
static void
a_held_lock_names_its_holder(void **state)
{
    (void)state;
    struct pawl_os_dir *dir = open_here();
    bool is_fallback = true;
    int64_t holder = 0;
    assert_int_equal(in_child(try_lock), 0);
    assert_int_equal(os->dir_lock(NULL, dir, PAWL_OS_LOCK_TRY, &is_fallback, &holder), 0);
    assert_false(is_fallback);
    child_sees_holder = getpid();
    assert_int_equal(in_child(try_lock), EWOULDBLOCK);
    assert_int_equal(try_lock(), EWOULDBLOCK); /* another handle of the same process too */
    assert_int_equal(os->dir_unlock(NULL, dir), 0);
    assert_int_equal(in_child(try_lock), 0);
    assert_int_equal(os->dir_lock(NULL, dir, PAWL_OS_LOCK_WAIT, &is_fallback, &holder), 0);
    close_dir(dir); /* the lock goes with the handle */
    assert_int_equal(in_child(try_lock), 0);
    assert_int_equal(count_names("."), 0); /* no lock file is left */
}

/*
 * Goal: a worker that outlives its killed trainer does not keep the root
 * locked. Method: a process locks, forks a grandchild that stays alive, and is
 * killed; then the lock can be had while the grandchild still runs.
 */
static void
a_forked_child_does_not_keep_the_lock(void **state)
{
    (void)state;
    int ready[2], hold[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(hold), 0);
    pid_t trainer = fork();
    assert_true(trainer >= 0);
    if (trainer == 0) {
        struct pawl_os_dir *dir = NULL;
        bool is_fallback;
        int64_t holder;
        if (os->dir_open_path(NULL, ".", &dir) != 0 ||
            os->dir_lock(NULL, dir, PAWL_OS_LOCK_TRY, &is_fallback, &holder) != 0)
            _exit(1);
        if (fork() == 0) { /* the worker: its directory handle still works, closing it is fine */
            char byte = os->dir_create(NULL, dir, "by-worker") == 0 && os->dir_close(NULL, dir) == 0 ? 'y' : 'n';
            (void)close(hold[1]);
            if (write(ready[1], &byte, 1) != 1)
                _exit(1);
            (void)!read(hold[0], &byte, 1); /* until the test is over */
            _exit(0);
        }
        (void)close(hold[1]);
        (void)!read(hold[0], &(char){ 0 }, 1); /* until it is killed, or the test is gone */
        _exit(0);
    }
    (void)close(ready[1]);
    (void)close(hold[0]);
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    child_sees_holder = trainer;
    assert_int_equal(try_lock(), EWOULDBLOCK); /* the trainer lives and keeps it */
    assert_int_equal(kill(trainer, SIGKILL), 0);
    assert_int_equal(waitpid(trainer, NULL, 0), trainer);
    assert_int_equal(try_lock(), 0);
    (void)close(hold[1]);
    (void)close(ready[0]);
}

static int flock_errno;

/* flock as NFS (EBADF without write access) or Lustre (ENOSYS) has it: refuses directories. */
static int
flock_no_directories(int fd, int operation)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = flock_errno;
        return -1;
    }
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    return flock(fd, operation);
}

static int
flock_never(int fd, int operation)
{
    (void)fd;
    (void)operation;
    errno = ENOSYS;
    return -1;
}

static void
a_directory_that_cannot_be_locked_has_a_lock_file(void **state)
{
    (void)state;
    const int codes[] = { EBADF, ENOSYS };
    for (size_t i = 0; i < 2; i++) {
        struct pawl_os_dir *dir = open_here();
        struct pawl_os_dir *other = open_here();
        bool is_fallback = false;
        int64_t holder = 0;
        flock_errno = codes[i];
        assert_int_equal(pawl_posix_lock_dir(dir, PAWL_OS_LOCK_TRY, flock_no_directories, &is_fallback, &holder), 0);
        assert_true(is_fallback);
        assert_int_equal(access(".lock", F_OK), 0);
        assert_int_equal(pawl_posix_lock_dir(other, PAWL_OS_LOCK_TRY, flock_no_directories, &is_fallback, &holder),
                         EWOULDBLOCK);
        assert_int_equal(holder, getpid());
        assert_int_equal(pawl_posix_unlock_dir(dir), 0);
        assert_int_equal(access(".lock", F_OK), 0); /* never unlinked: another may have it open */
        assert_int_equal(pawl_posix_lock_dir(other, PAWL_OS_LOCK_TRY, flock_no_directories, &is_fallback, &holder), 0);
        close_dir(other);
        int before = count_descriptors();
        assert_int_equal(pawl_posix_lock_dir(dir, PAWL_OS_LOCK_TRY, flock_never, &is_fallback, &holder), ENOSYS);
        assert_int_equal(count_descriptors(), before);
        close_dir(dir);
    }
}

/* ---- renames, lists, links ---- */

static void
renames_do_what_their_names_say(void **state)
{
    (void)state;
    struct pawl_os_dir *dir = open_here();
    host_put("a", "A");
    host_put("b", "B");
    assert_int_equal(os->rename(NULL, dir, "a", dir, "b", PAWL_OS_NO_REPLACE), EEXIST);
    assert_int_equal(os->rename(NULL, dir, "a", dir, "b", PAWL_OS_EXCHANGE), 0);
    assert_string_equal(host_text("a"), "B");
    assert_string_equal(host_text("b"), "A");
    assert_int_equal(os->rename(NULL, dir, "a", dir, "b", PAWL_OS_REPLACE), 0);
    assert_string_equal(host_text("b"), "B");
    assert_int_equal(os->rename(NULL, dir, "b", dir, "c", PAWL_OS_NO_REPLACE), 0);
    assert_int_equal(os->rename(NULL, dir, "b", dir, "c", PAWL_OS_EXCHANGE), ENOENT);
    char text[4];
    size_t len = 0;
    assert_int_equal(symlink("123", "short"), 0);
    assert_int_equal(symlink("1234", "long"), 0);
    assert_int_equal(os->read_link(NULL, dir, "short", text, sizeof text, &len), 0);
    assert_int_equal(len, 3);
    assert_string_equal(text, "123");
    assert_int_equal(os->read_link(NULL, dir, "long", text, sizeof text, &len), ENAMETOOLONG);
    assert_int_equal(os->remove_dir(NULL, dir, "short"), ENOTDIR);
    close_dir(dir);
}

/* ---- writing ---- */

static int
is_pending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

/* The size limit: 0 when all is as it should be, else which check failed. */
static int
write_past_the_limit(void)
{
    struct pawl_os_dir *dir = NULL;
    struct pawl_os_file *file = NULL;
    struct rlimit limit = { 100, 100 };
    sigset_t before, after, only;
    const char text[200] = { 0 };
    struct pawl_os_span span = { text, sizeof text };
    size_t n = 0;
    if (os->dir_open_path(NULL, ".", &dir) != 0 || os->file_create(NULL, dir, "file", &file) != 0 ||
        setrlimit(RLIMIT_FSIZE, &limit) < 0)
        return 1;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &before);
    if (os->file_write_at(NULL, file, 0, &span, 1, &n) != 0 || n != 100) /* short, then an error */
        return 2;
    if (os->file_write_at(NULL, file, 100, &span, 1, &n) != EFBIG)
        return 3;
    if (os->file_set_bytes(NULL, file, 1000) != EFBIG)
        return 4;
    (void)os->file_reserve(NULL, file, 1 << 20); /* with the size kept, Linux does not look at the limit */
    if (is_pending())
        return 6;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int number = 1; number < 32; number++) {
        if (sigismember(&before, number) != sigismember(&after, number))
            return 7;
    }
    /* The caller blocks it and has one pending of its own: both stay. */
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &only, NULL);
    (void)raise(SIGXFSZ);
    if (os->file_write_at(NULL, file, 100, &span, 1, &n) != EFBIG || !is_pending())
        return 8;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &after);
    return sigismember(&after, SIGXFSZ) == 1 ? 0 : 9;
}

/* Goal: RLIMIT_FSIZE is an error like others: not the end of the program, and no change to the caller's signals. */
static void
the_size_limit_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(in_child(write_past_the_limit), 0);
}

static void
spans_are_written_in_order_and_reserving_keeps_the_size(void **state)
{
    (void)state;
    struct pawl_os_dir *dir = open_here();
    struct pawl_os_file *file = NULL;
    struct pawl_os_span spans[3] = { { "ab", 2 }, { "", 0 }, { "cde", 3 } };
    struct pawl_os_stat status;
    size_t n = 0;
    assert_int_equal(os->file_create(NULL, dir, "f", &file), 0);
    int code = os->file_reserve(NULL, file, 65536);
    assert_true(code == 0 || code == EOPNOTSUPP);
    assert_int_equal(os->file_write_at(NULL, file, 1, spans, 3, &n), 0);
    assert_int_equal(n, 5);
    assert_int_equal(os->file_stat(NULL, file, &status), 0);
    assert_int_equal(status.bytes, 6);
    assert_int_equal(os->file_sync(NULL, file), 0);
    assert_int_equal(os->file_write_back(NULL, file, 0, 6), 0);
    char text[16] = { 0 };
    assert_int_equal(os->file_read_at(NULL, file, 0, text, sizeof text, &n), 0);
    assert_int_equal(n, 6);
    assert_memory_equal(text, "\0abcde", 6);
    assert_int_equal(os->file_read_at(NULL, file, 6, text, sizeof text, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(os->file_create(NULL, dir, "f", &file), EEXIST);
    assert_int_equal(os->file_close(NULL, file), 0);
    close_dir(dir);
}

/* ---- mappings ---- */

/* Goal: a mapping outlives its handle and a replaced name, and a cut file is an answer, not SIGBUS. */
static void
mappings_keep_the_old_file_and_tell_a_cut_one(void **state)
{
    (void)state;
    SKIP_UNDER_EMULATOR("says of every advice about memory that it was taken");
    struct pawl_os_dir *dir = open_here();
    struct pawl_os_file *file = NULL;
    const void *data = NULL;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 3 * page;
    char *big = malloc(bytes);
    assert_non_null(big);
    memset(big, 'o', bytes);
    FILE *stream = fopen("f", "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(big, 1, bytes, stream), bytes);
    (void)fclose(stream);
    host_put("new", "new");
    assert_int_equal(os->file_open(NULL, dir, "f", 0, &file), 0);
    assert_int_equal(os->file_map(NULL, file, 0, bytes, &data), 0);
    assert_int_equal(os->file_close(NULL, file), 0);
    assert_int_equal(rename("f", "old"), 0);
    assert_int_equal(rename("new", "f"), 0);
    int code = os->map_populate(NULL, data, bytes);
    assert_true(code == 0 || code == ENOSYS);
    assert_memory_equal(data, big, bytes);
    assert_int_equal(truncate("old", 100), 0);
    if (code == 0) {
        assert_int_equal(os->map_populate(NULL, (const char *)data + 2 * page, page), EFAULT);
        assert_int_equal(os->map_populate(NULL, (const char *)data + 10, 90), 0); /* not on a page's beginning */
    }
    os->unmap(NULL, data, bytes);
    free(big);
    close_dir(dir);
}

/* ---- directories that can be searched and not read ---- */

static int
use_unreadable_dir(void)
{
    struct pawl_os_dir *dir = NULL;
    struct pawl_os_file *file = NULL;
    struct pawl_os_stat status;
    if (geteuid() == 0 && setuid(65534) < 0) /* root may read everything */
        return 0;
    if (os->dir_open_path(NULL, "wx", &dir) != 0)
        return 1;
    if (os->file_create(NULL, dir, "f", &file) != 0 || os->file_close(NULL, file) != 0)
        return 2;
    if (os->stat(NULL, dir, "f", &status) != 0 || status.kind != PAWL_OS_FILE)
        return 3;
    return os->dir_sync(NULL, dir) == ENOTSUP ? 0 : 4;
}

static void
a_directory_without_read_permission_can_be_used(void **state)
{
    (void)state;
    assert_int_equal(chmod(".", 0755), 0);
    assert_int_equal(mkdir("wx", 0700), 0);
    assert_int_equal(chmod("wx", 0733), 0);
    if (geteuid() == 0)
        assert_int_equal(chown("wx", 1, 1), 0);
    assert_int_equal(in_child(use_unreadable_dir), 0);
    assert_int_equal(chmod("wx", 0755), 0);
}

static void
space_and_kind_of_the_filesystem(void **state)
{
    (void)state;
    struct pawl_os_dir *dir = open_here();
    uint64_t available = 0;
    const char *kind = "?";
    assert_int_equal(os->dir_space(NULL, dir, &available), 0);
    assert_true(available > 0);
    assert_int_equal(os->dir_weak_kind(NULL, dir, &kind), 0);
    assert_true(kind == NULL || strcmp(kind, "?") != 0);
    assert_true(os->process_id(NULL) == getpid());
    uint64_t before = os->clock_ns(NULL);
    assert_true(os->clock_ns(NULL) >= before);
    close_dir(dir);
}

int
main(void)
{
    os = pawl_os_posix();
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        TEST(descriptors_are_above_stdio_and_close_on_exec),
        TEST(create_that_finds_no_descriptor_leaves_no_file),
        TEST(what_is_no_file_is_refused_at_once),
        TEST(a_held_lock_names_its_holder),
        TEST(a_forked_child_does_not_keep_the_lock),
        TEST(a_directory_that_cannot_be_locked_has_a_lock_file),
        TEST(renames_do_what_their_names_say),
        TEST(the_size_limit_is_an_error),
        TEST(spans_are_written_in_order_and_reserving_keeps_the_size),
        TEST(mappings_keep_the_old_file_and_tell_a_cut_one),
        TEST(a_directory_without_read_permission_can_be_used),
        TEST(space_and_kind_of_the_filesystem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
