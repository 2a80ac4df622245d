/*
 * Locks of the POSIX table, and the one registry of the process.
 *
 * A lock taken with flock belongs to the open description, and a forked child
 * shares it: a data-loader worker that outlives a killed trainer would keep
 * the root locked. So every lock has a description of its own and stands in a
 * list; a fork handler closes them all in the child.
 */
#include "os/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char FALLBACK_NAME[] = ".lock";

struct pawl_posix_lock {
    struct pawl_posix_lock *previous, *next;
    int fd; /* -1 in a forked child */
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pawl_posix_lock *registry;
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;
static int registry_errno; /* of pthread_atfork */

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&registry_mutex);
}

static void
after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&registry_mutex);
}

static void
after_fork_in_child(void)
{
    for (struct pawl_posix_lock *lock = registry; lock != NULL; lock = lock->next) {
        if (lock->fd >= 0)
            (void)close(lock->fd);
        lock->fd = -1;
    }
    (void)pthread_mutex_unlock(&registry_mutex);
}

static void
start_registry(void)
{
    registry_errno = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Open and enlist in one step as fork() sees it, so that no child can inherit a descriptor that it does not know of. */
static int
open_listed(int dir_fd, const char *name, int flags, struct pawl_posix_lock **ret_lock)
{
    (void)pthread_once(&registry_once, start_registry);
    if (registry_errno != 0)
        return registry_errno;
    struct pawl_posix_lock *lock = malloc(sizeof *lock);
    if (lock == NULL)
        return ENOMEM;

    (void)pthread_mutex_lock(&registry_mutex);
    lock->fd = pawl_posix_above_stdio(openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    int saved_errno = lock->fd < 0 ? errno : 0;
    if (saved_errno == 0) {
        lock->previous = NULL;
        lock->next = registry;
        if (registry != NULL)
            registry->previous = lock;
        registry = lock;
    }
    (void)pthread_mutex_unlock(&registry_mutex);

    if (saved_errno != 0) {
        free(lock);
        return saved_errno;
    }
    *ret_lock = lock;
    return 0;
}

static int
close_listed(struct pawl_posix_lock *lock)
{
    (void)pthread_mutex_lock(&registry_mutex);
    if (lock->previous != NULL)
        lock->previous->next = lock->next;
    else
        registry = lock->next;
    if (lock->next != NULL)
        lock->next->previous = lock->previous;
    int saved_errno = lock->fd >= 0 && close(lock->fd) < 0 ? errno : 0;
    (void)pthread_mutex_unlock(&registry_mutex);
    free(lock);
    return saved_errno;
}

/* A number at *at that `mark` ends, at most `max`; *at moves behind the mark. */
static bool
take_number(const char **at, int base, char mark, unsigned long long max, unsigned long long *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(*at, &end, base);
    bool is_one = end != *at && errno == 0 && *end == mark && *ret <= max;
    *at = is_one ? end + 1 : *at;
    return is_one;
}

/* "1: FLOCK  ADVISORY  WRITE 1234 fe:00:1835028 0 EOF": is it the lock on the file of `status`, and by whom? */
static bool
names_holder(const char *line, const struct stat *status, int64_t *ret_holder)
{
    unsigned long long holder, device_major, device_minor, inode;
    const char *at = strchr(line, ':');
    if (at == NULL || strstr(line, "->") != NULL) /* one that waits */
        return false;
    at++;
    for (int word = 0; word < 3; word++) {
        at += strspn(at, " ");
        at += strcspn(at, " ");
    }
    /* -1 holds a lock of an open file, 0 a process that we can't see: neither is a number for people. */
    if (!take_number(&at, 10, ' ', INT64_MAX, &holder) || !take_number(&at, 16, ':', UINT_MAX, &device_major) ||
        !take_number(&at, 16, ':', UINT_MAX, &device_minor) || !take_number(&at, 10, ' ', ULLONG_MAX, &inode))
        return false;
    if (inode != (unsigned long long)status->st_ino || holder == 0)
        return false;
    /* A subvolume of btrfs has a device number of its own in stat(); both are of the unnamed kind, major 0. */
    if (makedev((unsigned)device_major, (unsigned)device_minor) != status->st_dev &&
        (device_major != 0 || major(status->st_dev) != 0))
        return false;
    *ret_holder = (int64_t)holder;
    return true;
}

static int64_t
find_holder(int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return 0;
    int locks = pawl_posix_above_stdio(open("/proc/locks", O_RDONLY | O_CLOEXEC));
    if (locks < 0)
        return 0;

    int64_t holder = 0;
    char text[4096];
    size_t used = 0;
    for (;;) {
        ssize_t n = read(locks, text + used, sizeof text - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
        text[used] = '\0';
        char *line = text;
        char *end;
        while (holder == 0 && (end = strchr(line, '\n')) != NULL) {
            *end = '\0';
            (void)names_holder(line, &status, &holder);
            line = end + 1;
        }
        used -= (size_t)(line - text);
        if (holder != 0 || used == sizeof text - 1) /* found, or a line that no lock has */
            break;
        memmove(text, line, used);
    }
    (void)close(locks);
    return holder;
}

/* Does this answer mean "a directory can't be locked here", so that a file may do? NFS: EBADF. Lustre: ENOSYS. */
static bool
wants_fallback(int flock_errno)
{
    return flock_errno == EBADF || flock_errno == ENOSYS || flock_errno == EOPNOTSUPP || flock_errno == EINVAL ||
           flock_errno == ENOLCK || flock_errno == EISDIR;
}

int
pawl_posix_lock_dir(struct pawl_os_dir *dir, enum pawl_os_lock how, int (*flock_fn)(int fd, int operation),
                    bool *ret_is_fallback, int64_t *ret_holder)
{
    const int operation = how == PAWL_OS_LOCK_TRY ? LOCK_EX | LOCK_NB : LOCK_EX;
    struct pawl_posix_lock *lock = NULL;
    bool is_fallback = false;
    int status;

    *ret_is_fallback = false;
    *ret_holder = 0;
    if (dir->lock != NULL) /* a handle locks once; the description's own lock would be "granted" again */
        return EDEADLK;
    if (dir->is_path_only) {
        status = EACCES;
    } else {
        status = open_listed(dir->fd, ".", O_RDONLY | O_DIRECTORY, &lock);
        if (status == 0 && flock_fn(lock->fd, operation) < 0)
            status = errno;
    }
    if (wants_fallback(status) || (status == EACCES && lock == NULL)) {
        if (lock != NULL)
            (void)close_listed(lock);
        lock = NULL;
        is_fallback = true;
        status = open_listed(dir->fd, FALLBACK_NAME, O_RDWR | O_CREAT, &lock);
        if (status == 0 && flock_fn(lock->fd, operation) < 0)
            status = errno;
    }
    if (status == EWOULDBLOCK && lock != NULL) /* NULL: a lease on the lock file, of nobody that /proc/locks names so */
        *ret_holder = find_holder(lock->fd);
    if (status != 0) {
        if (lock != NULL)
            (void)close_listed(lock);
        return status;
    }
    *ret_is_fallback = is_fallback;
    dir->lock = lock;
    return 0;
}

int
pawl_posix_unlock_dir(struct pawl_os_dir *dir)
{
    if (dir->lock == NULL)
        return 0;
    int status = close_listed(dir->lock); /* the only descriptor of its description: the lock goes with it */
    dir->lock = NULL;
    return status;
}
