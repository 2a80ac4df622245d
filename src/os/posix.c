/*
 * The table of operations on a POSIX host (Linux first). Every descriptor is
 * close-on-exec and above 2. Nothing here retries or decides: os/os.h.
 */
#include "os/posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14; older headers lack it */
#define MADV_POPULATE_READ 22
#endif

/* Spans handed to the system in one call; a longer list is a short write. */
#define SPANS_MAX 64
/* Pages that are asked about in one call: a piece of 2 MiB. */
#define PAGES_ASKED 512

struct pawl_os_file {
    int fd;
};

int
pawl_posix_above_stdio(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int saved_errno = errno;
    (void)close(fd); /* the description lives on in `above`; if that failed, nothing was written yet */
    errno = saved_errno;
    return above;
}

/* ---- directories ---- */

static int
open_dir(int at_fd, const char *path, int flags, struct pawl_os_dir **ret_dir)
{
    struct pawl_os_dir *dir = malloc(sizeof *dir);
    if (dir == NULL)
        return ENOMEM;
    dir->lock = NULL;
    dir->is_path_only = false;
    dir->fd = pawl_posix_above_stdio(openat(at_fd, path, flags | O_RDONLY | O_DIRECTORY | O_CLOEXEC));
#ifdef O_PATH
    if (dir->fd < 0 && errno == EACCES) {
        /* Mode --x: files in it can still be opened by name. */
        dir->is_path_only = true;
        dir->fd = pawl_posix_above_stdio(openat(at_fd, path, flags | O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
#endif
    if (dir->fd < 0) {
        int saved_errno = errno;
        free(dir);
        return saved_errno;
    }
    *ret_dir = dir;
    return 0;
}

static int
posix_dir_open_path(void *context, const char *path, struct pawl_os_dir **ret_dir)
{
    (void)context;
    return open_dir(AT_FDCWD, path, 0, ret_dir);
}

static int
posix_dir_open(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_dir **ret_dir)
{
    (void)context;
    return open_dir(dir->fd, name, O_NOFOLLOW, ret_dir);
}

static int
posix_dir_close(void *context, struct pawl_os_dir *dir)
{
    (void)context;
    int unlock_errno = pawl_posix_unlock_dir(dir);
    int close_errno = close(dir->fd) < 0 ? errno : 0;
    free(dir);
    return close_errno != 0 ? close_errno : unlock_errno;
}

static int
posix_dir_create_path(void *context, const char *path)
{
    (void)context;
    return mkdir(path, 0777) < 0 ? errno : 0;
}

static int
posix_dir_create(void *context, struct pawl_os_dir *dir, const char *name)
{
    (void)context;
    return mkdirat(dir->fd, name, 0777) < 0 ? errno : 0;
}

static enum pawl_os_kind
kind_of_entry(const struct dirent *entry)
{
    switch (entry->d_type) {
    case DT_REG:
        return PAWL_OS_FILE;
    case DT_DIR:
        return PAWL_OS_DIR;
    case DT_LNK:
        return PAWL_OS_LINK;
    case DT_UNKNOWN:
        return (enum pawl_os_kind)0;
    default:
        return PAWL_OS_OTHER;
    }
}

static int
posix_dir_list(void *context, struct pawl_os_dir *dir, pawl_os_list_fn *fn, void *fn_context)
{
    (void)context;
    /* A description of its own: the position of a listing is the description's. */
    int fd = pawl_posix_above_stdio(openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return errno;
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        int saved_errno = errno;
        (void)close(fd);
        return saved_errno;
    }
    int status = 0;
    while (status == 0) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            status = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = fn(fn_context, entry->d_name, kind_of_entry(entry));
    }
    (void)closedir(stream); /* only read from */
    return status;
}

static int
posix_dir_sync(void *context, struct pawl_os_dir *dir)
{
    (void)context;
    if (dir->is_path_only)
        return ENOTSUP;
    return fsync(dir->fd) < 0 ? errno : 0;
}

static int
posix_dir_lock(void *context, struct pawl_os_dir *dir, enum pawl_os_lock how, bool *ret_is_fallback,
               int64_t *ret_holder)
{
    (void)context;
    return pawl_posix_lock_dir(dir, how, flock, ret_is_fallback, ret_holder);
}

static int
posix_dir_unlock(void *context, struct pawl_os_dir *dir)
{
    (void)context;
    return pawl_posix_unlock_dir(dir);
}

static int
posix_dir_space(void *context, struct pawl_os_dir *dir, uint64_t *ret_available)
{
    (void)context;
    struct statvfs status;
    if (fstatvfs(dir->fd, &status) < 0)
        return errno;
    uint64_t unit = status.f_frsize != 0 ? status.f_frsize : status.f_bsize;
    if (unit == 0)
        return ENOTSUP;
    uint64_t blocks = status.f_bavail;
    *ret_available = blocks > UINT64_MAX / unit ? UINT64_MAX : blocks * unit;
    return 0;
}

static int
posix_dir_weak_kind(void *context, struct pawl_os_dir *dir, const char **ret_kind)
{
    static const struct {
        uint32_t magic;
        const char *name;
    } KINDS[] = {
        { 0x6969, "nfs" }, { 0xff534d42, "cifs" }, { 0xfe534d42, "cifs" }, { 0x65735546, "fuse" }, { 0x01021997, "9p" },
    };
    (void)context;
    struct statfs status;
    if (fstatfs(dir->fd, &status) < 0)
        return errno;
    *ret_kind = NULL;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if ((uint32_t)status.f_type == KINDS[i].magic)
            *ret_kind = KINDS[i].name;
    }
    return 0;
}

/* ---- names ---- */

static void
fill_stat(struct pawl_os_stat *ret, const struct stat *status)
{
    ret->kind = S_ISREG(status->st_mode)   ? PAWL_OS_FILE
                : S_ISDIR(status->st_mode) ? PAWL_OS_DIR
                : S_ISLNK(status->st_mode) ? PAWL_OS_LINK
                                           : PAWL_OS_OTHER;
    ret->bytes = status->st_size < 0 ? 0 : (uint64_t)status->st_size;
    ret->mode = (uint32_t)status->st_mode & 07777;
    ret->device = (uint64_t)status->st_dev;
    ret->inode = (uint64_t)status->st_ino;
    ret->mtime_ns = (int64_t)((uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec);
}

static int
posix_stat(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_stat *ret)
{
    (void)context;
    struct stat status;
    if (fstatat(dir->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    fill_stat(ret, &status);
    return 0;
}

static int
posix_read_link(void *context, struct pawl_os_dir *dir, const char *name, char *text, size_t size, size_t *ret_len)
{
    (void)context;
    ssize_t len = readlinkat(dir->fd, name, text, size);
    if (len < 0)
        return errno;
    if ((size_t)len >= size) /* may have been cut */
        return ENAMETOOLONG;
    text[len] = '\0';
    *ret_len = (size_t)len;
    return 0;
}

static int
posix_rename(void *context, struct pawl_os_dir *from_dir, const char *from, struct pawl_os_dir *to_dir, const char *to,
             enum pawl_os_rename how)
{
    (void)context;
    int answer;
    switch (how) {
    case PAWL_OS_REPLACE:
        answer = renameat(from_dir->fd, from, to_dir->fd, to);
        break;
    case PAWL_OS_NO_REPLACE:
        answer = renameat2(from_dir->fd, from, to_dir->fd, to, RENAME_NOREPLACE);
        break;
    case PAWL_OS_EXCHANGE:
        answer = renameat2(from_dir->fd, from, to_dir->fd, to, RENAME_EXCHANGE);
        break;
    default:
        return EINVAL;
    }
    return answer < 0 ? errno : 0;
}

static int
posix_remove_file(void *context, struct pawl_os_dir *dir, const char *name)
{
    (void)context;
    return unlinkat(dir->fd, name, 0) < 0 ? errno : 0;
}

static int
posix_remove_dir(void *context, struct pawl_os_dir *dir, const char *name)
{
    (void)context;
    if (unlinkat(dir->fd, name, AT_REMOVEDIR) == 0)
        return 0;
    return errno == EEXIST ? ENOTEMPTY : errno; /* POSIX lets a system say either */
}

/* ---- files ---- */

static int
posix_file_create(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_file **ret_file)
{
    (void)context;
    struct pawl_os_file *file = malloc(sizeof *file);
    if (file == NULL)
        return ENOMEM;
    int fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    file->fd = pawl_posix_above_stdio(fd);
    if (file->fd < 0) {
        int saved_errno = errno;
        if (fd >= 0) /* made, and no descriptor above 2 was left for it */
            (void)unlinkat(dir->fd, name, 0);
        free(file);
        return saved_errno;
    }
    *ret_file = file;
    return 0;
}

static int
posix_file_open(void *context, struct pawl_os_dir *dir, const char *name, unsigned open_flags,
                struct pawl_os_file **ret_file)
{
    (void)context;
    struct pawl_os_file *file = malloc(sizeof *file);
    if (file == NULL)
        return ENOMEM;
    /* O_NONBLOCK: a FIFO without a writer must not hang before fstat can tell what it is. */
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    file->fd = pawl_posix_above_stdio(openat(dir->fd, name, flags | (open_flags & PAWL_OS_FOLLOW ? 0 : O_NOFOLLOW)));
    struct stat status;
    int saved_errno = 0;
    if (file->fd < 0 || fstat(file->fd, &status) < 0)
        saved_errno = errno;
    else if (S_ISDIR(status.st_mode))
        saved_errno = EISDIR;
    else if (!S_ISREG(status.st_mode))
        saved_errno = ENXIO;
    if (saved_errno != 0) {
        if (file->fd >= 0)
            (void)close(file->fd);
        free(file);
        return saved_errno;
    }
    *ret_file = file;
    return 0;
}

static int
posix_file_close(void *context, struct pawl_os_file *file)
{
    (void)context;
    int saved_errno = close(file->fd) < 0 ? errno : 0; /* closed in any case, also after EINTR */
    free(file);
    return saved_errno;
}

static int
posix_file_stat(void *context, struct pawl_os_file *file, struct pawl_os_stat *ret)
{
    (void)context;
    struct stat status;
    if (fstat(file->fd, &status) < 0)
        return errno;
    fill_stat(ret, &status);
    return 0;
}

static int
posix_file_set_mode(void *context, struct pawl_os_file *file, uint32_t mode)
{
    (void)context;
    return fchmod(file->fd, (mode_t)(mode & 07777)) < 0 ? errno : 0;
}

/* A file that grows past RLIMIT_FSIZE raises SIGXFSZ in the thread, which would end the program. It is blocked around
 * the call, and taken out again when the call raised it; one that was pending before stays. */
struct size_signal {
    sigset_t mask_before;
    bool was_pending;
};

static void
size_signal_block(struct size_signal *signal_state)
{
    sigset_t only, pending;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &only, &signal_state->mask_before);
    signal_state->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

static void
size_signal_restore(struct size_signal *signal_state, int call_errno)
{
    if (call_errno == EFBIG && !signal_state->was_pending) {
        const struct timespec no_time = { 0, 0 };
        sigset_t only;
        (void)sigemptyset(&only);
        (void)sigaddset(&only, SIGXFSZ);
        while (sigtimedwait(&only, NULL, &no_time) < 0 && errno == EINTR) {
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &signal_state->mask_before, NULL);
}

static int
posix_file_write_at(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans,
                    size_t n_spans, size_t *ret_written)
{
    (void)context;
    struct iovec vector[SPANS_MAX];
    size_t n = n_spans < SPANS_MAX ? n_spans : SPANS_MAX;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        /* one call takes at most SSIZE_MAX bytes in all */
        size_t bytes = spans[i].bytes < (size_t)SSIZE_MAX - total ? spans[i].bytes : (size_t)SSIZE_MAX - total;
        vector[i].iov_base = (void *)spans[i].data; /* pwritev only reads */
        vector[i].iov_len = bytes;
        total += bytes;
    }
    if (offset > (uint64_t)INT64_MAX)
        return EFBIG;

    struct size_signal signal_state;
    size_signal_block(&signal_state);
    ssize_t written = pwritev(file->fd, vector, (int)n, (off_t)offset);
    int saved_errno = written < 0 ? errno : 0;
    size_signal_restore(&signal_state, saved_errno);
    if (saved_errno != 0)
        return saved_errno;
    if (written == 0 && total != 0)
        return EIO;
    *ret_written = (size_t)written;
    return 0;
}

static int
posix_file_read_at(void *context, struct pawl_os_file *file, uint64_t offset, void *data, size_t bytes,
                   size_t *ret_read)
{
    (void)context;
    if (offset > (uint64_t)INT64_MAX)
        return EINVAL;
    ssize_t n = pread(file->fd, data, bytes < (size_t)SSIZE_MAX ? bytes : (size_t)SSIZE_MAX, (off_t)offset);
    if (n < 0)
        return errno;
    *ret_read = (size_t)n;
    return 0;
}

static int
posix_file_reserve(void *context, struct pawl_os_file *file, uint64_t bytes)
{
    (void)context;
    if (bytes == 0)
        return 0;
    if (bytes > (uint64_t)INT64_MAX)
        return EFBIG;
    /* The size stays what was written, so that a reader never takes reserved zeros for content. Not posix_fallocate:
     * where the filesystem can't, glibc writes every block instead. */
    struct size_signal signal_state;
    size_signal_block(&signal_state);
    int saved_errno = fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0 ? errno : 0;
    size_signal_restore(&signal_state, saved_errno);
    return saved_errno;
}

static int
posix_file_set_bytes(void *context, struct pawl_os_file *file, uint64_t bytes)
{
    (void)context;
    if (bytes > (uint64_t)INT64_MAX)
        return EFBIG;
    struct size_signal signal_state;
    size_signal_block(&signal_state);
    int saved_errno = ftruncate(file->fd, (off_t)bytes) < 0 ? errno : 0;
    size_signal_restore(&signal_state, saved_errno);
    return saved_errno;
}

/* By the filesystem's word, where it gives one. */
static size_t
direct_alignment(int fd)
{
    const size_t ordinary = 4096;
#ifdef STATX_DIOALIGN
    struct statx status;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 && (status.stx_mask & STATX_DIOALIGN) != 0) {
        if (status.stx_dio_offset_align == 0)
            return 0; /* it says that it can't */
        size_t both = status.stx_dio_offset_align > status.stx_dio_mem_align ? status.stx_dio_offset_align
                                                                             : status.stx_dio_mem_align;
        return both > ordinary ? both : ordinary;
    }
#else
    (void)fd;
#endif
    return ordinary;
}

static int
posix_file_set_direct(void *context, struct pawl_os_file *file, bool is_direct, size_t *ret_alignment)
{
    (void)context;
#ifdef O_DIRECT
    /* On the descriptor that the file was made with: an error of write-back is told to each descriptor once. */
    int flags = fcntl(file->fd, F_GETFL);
    size_t alignment = is_direct ? direct_alignment(file->fd) : 1;
    if (flags < 0)
        return errno;
    if (alignment == 0)
        return EOPNOTSUPP;
    if (fcntl(file->fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT) < 0)
        return errno;
    *ret_alignment = alignment;
    return 0;
#else
    (void)file;
    *ret_alignment = 1;
    return is_direct ? EOPNOTSUPP : 0;
#endif
}

static int
posix_file_open_direct(void *context, struct pawl_os_file *file, struct pawl_os_file **ret_direct,
                       size_t *ret_alignment)
{
    (void)context;
#ifdef O_DIRECT
    char name[48];
    struct stat ours, found;
    size_t alignment = direct_alignment(file->fd);
    if (alignment == 0)
        return EOPNOTSUPP;
    struct pawl_os_file *direct = malloc(sizeof *direct);
    if (direct == NULL)
        return ENOMEM;
    /* A description of its own: the flag on ours would refuse odd reads of others that share it. By this name it is the same file
     * though its own name be gone or given to another. */
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", file->fd);
    direct->fd = pawl_posix_above_stdio(open(name, O_RDONLY | O_DIRECT | O_NOCTTY | O_CLOEXEC));
    int saved_errno = 0;
    if (direct->fd < 0 || fstat(file->fd, &ours) < 0 || fstat(direct->fd, &found) < 0)
        saved_errno = errno;
    else if (ours.st_dev != found.st_dev || ours.st_ino != found.st_ino)
        saved_errno = ESTALE; /* something else than /proc is mounted there */
    if (saved_errno != 0) {
        if (direct->fd >= 0)
            (void)close(direct->fd);
        free(direct);
        return saved_errno;
    }
    *ret_direct = direct;
    *ret_alignment = alignment;
    return 0;
#else
    (void)file;
    (void)ret_direct;
    (void)ret_alignment;
    return EOPNOTSUPP;
#endif
}

static int
posix_file_cached(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, size_t *ret_cached)
{
    (void)context;
    unsigned char is_in[PAGES_ASKED];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t before = (size_t)(offset % page);
    if (offset > (uint64_t)INT64_MAX || bytes == 0 || bytes > (size_t)INT64_MAX / 2)
        return EINVAL;
    /* Mapped and not touched: only asked about. Who may not write to the file is told that all of it is there (since Linux 5.2), which
     * means the cache, as before. */
    unsigned char *map = mmap(NULL, before + bytes, PROT_READ, MAP_SHARED, file->fd, (off_t)(offset - before));
    if (map == MAP_FAILED)
        return errno;
    const size_t n_pages = (before + bytes + page - 1) / page;
    size_t n_cached = 0;
    int saved_errno = 0;
    for (size_t at = 0; at < n_pages && saved_errno == 0; at += PAGES_ASKED) {
        size_t n = n_pages - at < PAGES_ASKED ? n_pages - at : PAGES_ASKED;
        if (mincore(map + at * page, n * page, is_in) < 0)
            saved_errno = errno;
        for (size_t i = 0; i < n && saved_errno == 0; i++)
            n_cached += is_in[i] & 1;
    }
    (void)munmap(map, before + bytes);
    if (saved_errno == 0)
        *ret_cached = n_cached * page < bytes ? n_cached * page : bytes;
    return saved_errno;
}

static int
posix_file_sync(void *context, struct pawl_os_file *file)
{
    (void)context;
    /* fsync, not fdatasync: a mode that was set on the file must survive as well. */
    return fsync(file->fd) < 0 ? errno : 0;
}

static int
posix_file_write_back(void *context, struct pawl_os_file *file, uint64_t offset, uint64_t bytes)
{
    (void)context;
    if (offset > (uint64_t)INT64_MAX || bytes > (uint64_t)INT64_MAX - offset)
        return EINVAL;
    /* Without the waiting flags: those would take a write-back error away from the fsync that must report it. */
    return sync_file_range(file->fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE) < 0 ? errno : 0;
}

static int
posix_file_advise(void *context, struct pawl_os_file *file, uint64_t offset, uint64_t bytes, enum pawl_os_advice advice)
{
    (void)context;
    if (offset > (uint64_t)INT64_MAX || bytes > (uint64_t)INT64_MAX - offset)
        return EINVAL;
    const int code = advice == PAWL_OS_SEQUENTIAL  ? POSIX_FADV_SEQUENTIAL
                     : advice == PAWL_OS_WILL_NEED ? POSIX_FADV_WILLNEED
                                                   : POSIX_FADV_DONTNEED;
    return posix_fadvise(file->fd, (off_t)offset, (off_t)bytes, code);
}

static int
posix_file_map(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, const void **ret_data)
{
    (void)context;
    if (offset > (uint64_t)INT64_MAX)
        return EINVAL;
    void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file->fd, (off_t)offset);
    if (data == MAP_FAILED)
        return errno;
    *ret_data = data;
    return 0;
}

static void
posix_unmap(void *context, const void *data, size_t bytes)
{
    (void)context;
    (void)munmap((void *)data, bytes); /* fails only for what is no mapping */
}

static int
posix_map_populate(void *context, const void *data, size_t bytes)
{
    (void)context;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const size_t before = (size_t)((uintptr_t)data % page);
    if (bytes == 0 || madvise((char *)data - before, bytes + before, MADV_POPULATE_READ) == 0)
        return 0;
    return errno == EINVAL ? ENOSYS : errno; /* an older Linux does not know this advice */
}

/* ---- the machine ---- */

static uint64_t
posix_clock_ns(void *context)
{
    (void)context;
    struct timespec now = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int64_t
posix_wall_seconds(void *context)
{
    (void)context;
    return (int64_t)time(NULL);
}

static void
posix_sleep_ns(void *context, uint64_t ns)
{
    (void)context;
    struct timespec left = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
    while (nanosleep(&left, &left) < 0 && errno == EINTR) {
    }
}

static int64_t
posix_process_id(void *context)
{
    (void)context;
    return (int64_t)getpid();
}

static const struct pawl_os POSIX = {
    .context = NULL,
    .takes_threads = true,
    .dir_open_path = posix_dir_open_path,
    .dir_open = posix_dir_open,
    .dir_close = posix_dir_close,
    .dir_create_path = posix_dir_create_path,
    .dir_create = posix_dir_create,
    .dir_list = posix_dir_list,
    .dir_sync = posix_dir_sync,
    .dir_lock = posix_dir_lock,
    .dir_unlock = posix_dir_unlock,
    .dir_space = posix_dir_space,
    .dir_weak_kind = posix_dir_weak_kind,
    .stat = posix_stat,
    .read_link = posix_read_link,
    .rename = posix_rename,
    .remove_file = posix_remove_file,
    .remove_dir = posix_remove_dir,
    .file_create = posix_file_create,
    .file_open = posix_file_open,
    .file_close = posix_file_close,
    .file_stat = posix_file_stat,
    .file_set_mode = posix_file_set_mode,
    .file_write_at = posix_file_write_at,
    .file_read_at = posix_file_read_at,
    .file_reserve = posix_file_reserve,
    .file_set_bytes = posix_file_set_bytes,
    .file_set_direct = posix_file_set_direct,
    .file_open_direct = posix_file_open_direct,
    .file_cached = posix_file_cached,
    .file_sync = posix_file_sync,
    .file_write_back = posix_file_write_back,
    .file_advise = posix_file_advise,
    .file_map = posix_file_map,
    .unmap = posix_unmap,
    .map_populate = posix_map_populate,
    .clock_ns = posix_clock_ns,
    .wall_seconds = posix_wall_seconds,
    .sleep_ns = posix_sleep_ns,
    .process_id = posix_process_id,
};

const struct pawl_os *
pawl_os_posix(void)
{
    return &POSIX;
}
