/*
 * os/posix.h: what the files of the POSIX table share. Nothing above os/ includes it.
 */
#ifndef PAWL_OS_POSIX_H
#define PAWL_OS_POSIX_H

#include "os/os.h"

struct pawl_posix_lock; /* in the registry of posix_lock.c */

struct pawl_os_dir {
    int fd;
    bool is_path_only;            /* searchable, not readable: names work, listing and syncing do not */
    struct pawl_posix_lock *lock; /* NULL: not locked */
};

/* The same open file on a descriptor that is not 0, 1 or 2: a program that was started with those closed would
 * otherwise print into a checkpoint. Takes `fd` over in any case; -1 with errno on failure, also for fd -1. */
int pawl_posix_above_stdio(int fd);

/*
 * An exclusive lock of `dir`, kept by an open description of its own, so that it can be closed in a forked child while
 * the directory's handle stays usable there. `flock_fn` is flock(2); tests give another that refuses directories.
 */
int pawl_posix_lock_dir(struct pawl_os_dir *dir, enum pawl_os_lock how, int (*flock_fn)(int fd, int operation),
                        bool *ret_is_fallback, int64_t *ret_holder);
/* Fine when there is none. */
int pawl_posix_unlock_dir(struct pawl_os_dir *dir);

#endif
