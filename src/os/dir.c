/* Directories: opening, creating durably, names in them, locking. Listing and removing trees: tree.c. */
#include "os/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "os/path.h"

enum pawl_status
pawl_dir_open_path(struct pawl_dir *dir, const struct pawl_os *os, const char *path, struct pawl_error *err)
{
    struct pawl_os_dir *handle = NULL;
    int code;

    char *copy = pawl_str_dup(pawl_str_z(path));
    if (copy == NULL)
        return pawl_fail_memory(err, strlen(path) + 1);
    do {
        code = os->dir_open_path(os->context, path, &handle);
    } while (code == EINTR);
    if (code != 0) {
        free(copy);
        return pawl_fail_path(err, code, "open directory", path);
    }
    dir->os = os;
    dir->handle = handle;
    dir->path = copy;
    return PAWL_OK;
}

enum pawl_status
pawl_dir_open_in(struct pawl_dir *dir, const struct pawl_dir *parent, const char *name, struct pawl_error *err)
{
    const struct pawl_os *os = parent->os;
    struct pawl_os_dir *handle = NULL;
    int code;

    char *path = pawl_path_join(parent->path, name);
    if (path == NULL)
        return pawl_fail_memory(err, strlen(parent->path) + strlen(name) + 2);
    do {
        code = os->dir_open(os->context, parent->handle, name, &handle);
    } while (code == EINTR);
    if (code != 0) {
        enum pawl_status st = pawl_fail_path(err, code, "open directory", path);
        free(path);
        return st;
    }
    dir->os = os;
    dir->handle = handle;
    dir->path = path;
    return PAWL_OK;
}

void
pawl_dir_release(struct pawl_dir *dir)
{
    if (dir->handle != NULL)
        (void)dir->os->dir_close(dir->os->context, dir->handle); /* what must last was synced before */
    free(dir->path);
    *dir = (struct pawl_dir)PAWL_DIR_INIT;
}

enum pawl_status
pawl_dir_sync(const struct pawl_dir *dir, bool *ret_is_unsupported, struct pawl_error *err)
{
    /* Never tried again: after a failed sync a second one may answer "done" for what was lost. */
    int code = dir->os->dir_sync(dir->os->context, dir->handle);
    /* EROFS: nothing there can be waiting to be written. */
    bool is_unsupported = code == EINVAL || code == EROFS || pawl_status_of_errno(code) == PAWL_UNSUPPORTED;
    if (code != 0 && !is_unsupported)
        return pawl_fail_path(err, code, "sync directory", dir->path);
    if (ret_is_unsupported != NULL)
        *ret_is_unsupported = is_unsupported;
    return PAWL_OK;
}

/* ---- creating a path ---- */

/* Where the last name of `path` begins, after what says nothing behind it is cut off ("/", "/."); NULL: there is none. */
static char *
find_last(char *path)
{
    size_t end = strlen(path);
    while (end > 0 && (path[end - 1] == '/' || (end > 1 && path[end - 1] == '.' && path[end - 2] == '/')))
        path[--end] = '\0';
    if (end == 0)
        return NULL;
    char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

void
pawl_dir_remove_made(const struct pawl_os *os, const char *path, size_t n_made)
{
    char *rest = n_made == 0 ? NULL : pawl_str_dup(pawl_str_z(path));
    for (; rest != NULL && n_made > 0; n_made--) {
        struct pawl_dir parent = PAWL_DIR_INIT;
        char *name = find_last(rest);
        char *own = name == NULL ? NULL : pawl_str_dup(pawl_str_z(name));
        int code = ENOMEM;
        if (own != NULL) {
            *name = '\0';
            if (pawl_dir_open_path(&parent, os, *rest == '\0' ? "." : rest, NULL) == PAWL_OK) {
                do {
                    code = os->remove_dir(os->context, parent.handle, own);
                } while (code == EINTR);
            }
        }
        pawl_dir_release(&parent);
        free(own);
        if (code != 0)
            break; /* not empty, or gone: it is no longer ours to remove */
    }
    free(rest);
}

/*
 * Make the directories of `path` that are missing, nearest to the root first. *ret_made counts those that it made, *ret_depth also those
 * that another process made meanwhile. On failure those that it made are gone again.
 */
static enum pawl_status
create_missing(const struct pawl_os *os, const char *path, size_t *ret_made, size_t *ret_depth, struct pawl_error *err)
{
    size_t len = strlen(path);
    char *prefix = malloc(len + 1);
    if (prefix == NULL)
        return pawl_fail_memory(err, len + 1);

    enum pawl_status st = PAWL_OK;
    size_t made = 0, depth = 0;
    for (size_t end = 0; end < len && st == PAWL_OK;) {
        while (end < len && path[end] == '/')
            end++;
        size_t begin = end;
        while (end < len && path[end] != '/')
            end++;
        if (begin == end)
            break;
        memcpy(prefix, path, end);
        prefix[end] = '\0';

        struct pawl_os_dir *probe = NULL;
        int code;
        /* Look before creating: an automounter or a read-only parent may refuse mkdir for what is there. */
        do {
            code = os->dir_open_path(os->context, prefix, &probe);
        } while (code == EINTR);
        if (code == 0) {
            (void)os->dir_close(os->context, probe);
            if (end - begin != 1 || path[begin] != '.')
                made = depth = 0;
            continue;
        }
        if (code != ENOENT)
            st = pawl_fail_path(err, code, "open directory", prefix);
        bool was_interrupted = false;
        while (st == PAWL_OK && (code = os->dir_create_path(os->context, prefix)) == EINTR)
            was_interrupted = true;
        if (st == PAWL_OK && code != 0 && code != EEXIST)
            st = pawl_fail_path(err, code, "create directory", prefix);
        if (st != PAWL_OK) {
            prefix[begin] = '\0';
            pawl_dir_remove_made(os, prefix, made);
            break;
        }
        /* EEXIST: another process was faster (or a link points nowhere: opening it will tell). */
        made = code == 0 || was_interrupted ? made + 1 : 0;
        depth++;
    }
    free(prefix);
    if (st == PAWL_OK) {
        *ret_made = made;
        *ret_depth = depth;
    }
    return st;
}

/*
 * Sync the directories above `path`, as far as they are on its filesystem. The
 * `depth` nearest hold names that were just made: there every failure counts.
 * Further up it ends quietly at a directory that can't be opened or looked at.
 */
static enum pawl_status
sync_above(const struct pawl_os *os, const char *path, size_t depth, struct pawl_error *err)
{
    struct pawl_dir at = PAWL_DIR_INIT;
    struct pawl_os_stat here, above;
    enum pawl_status st = pawl_dir_open_path(&at, os, path, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_error own = PAWL_ERROR_INIT; /* of what may fail without being a failure */
    int code;
    do {
        code = os->stat(os->context, at.handle, ".", &here);
    } while (code == EINTR);
    if (code != 0)
        st = pawl_fail_path(err, code, "stat", path);

    for (size_t level = 0; st == PAWL_OK; level++) {
        struct pawl_dir parent = PAWL_DIR_INIT;
        st = pawl_dir_open_in(&parent, &at, "..", &own);
        if (st != PAWL_OK) {
            if (level >= depth)
                st = PAWL_OK;
            else if (err != NULL)
                *err = own;
            break;
        }
        pawl_dir_release(&at);
        at = parent;
        do {
            code = os->stat(os->context, at.handle, ".", &above);
        } while (code == EINTR);
        if (code != 0) {
            if (level < depth)
                st = pawl_fail_path(err, code, "stat", at.path);
            break;
        }
        /* The top of all, or of the filesystem: a mount point's own name is not ours. */
        if (above.device != here.device || above.inode == here.inode)
            break;
        here = above;
        st = pawl_dir_sync(&at, NULL, err);
    }
    pawl_dir_release(&at);
    return st;
}

enum pawl_status
pawl_dir_create_all(const struct pawl_os *os, const char *path, size_t *ret_made, struct pawl_error *err)
{
    size_t made = 0, depth = 0;
    enum pawl_status st;

    if (path[0] == '\0')
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "create directory: the path is empty");
    st = create_missing(os, path, &made, &depth, err);
    if (st != PAWL_OK)
        return st;
    st = sync_above(os, path, depth, err);
    if (st != PAWL_OK) {
        pawl_dir_remove_made(os, path, made);
        return st;
    }
    if (ret_made != NULL)
        *ret_made = made;
    return PAWL_OK;
}

/* An error about the entry `name` of `dir`. */
static enum pawl_status
fail_entry(struct pawl_error *err, int code, const char *operation, const struct pawl_dir *dir, const char *name)
{
    char *path = pawl_path_join(dir->path, name);
    enum pawl_status st = pawl_fail_path(err, code, operation, path != NULL ? path : name);
    free(path);
    return st;
}

enum pawl_status
pawl_dir_create_in(const struct pawl_dir *parent, const char *name, struct pawl_error *err)
{
    const struct pawl_os *os = parent->os;
    int code;
    do {
        code = os->dir_create(os->context, parent->handle, name);
    } while (code == EINTR);
    return code == 0 ? PAWL_OK : fail_entry(err, code, "create directory", parent, name);
}

/* ---- names ---- */

enum pawl_status
pawl_dir_stat(const struct pawl_dir *dir, const char *name, struct pawl_os_stat *ret, struct pawl_error *err)
{
    const struct pawl_os *os = dir->os;
    struct pawl_os_stat status;
    int code;
    do {
        code = os->stat(os->context, dir->handle, name, &status);
    } while (code == EINTR);
    if (code != 0)
        return fail_entry(err, code, "stat", dir, name);
    *ret = status;
    return PAWL_OK;
}

/* Is the file that was `before` under the name `to` now, and no longer under `from`? */
static bool
was_renamed(const struct pawl_dir *dir, const char *from, const char *to, const struct pawl_os_stat *before)
{
    const struct pawl_os *os = dir->os;
    struct pawl_os_stat after;
    return os->stat(os->context, dir->handle, from, &after) == ENOENT &&
           os->stat(os->context, dir->handle, to, &after) == 0 && after.device == before->device &&
           after.inode == before->inode;
}

enum pawl_status
pawl_dir_rename(const struct pawl_dir *dir, const char *from, const char *to, enum pawl_os_rename how,
                struct pawl_error *err)
{
    const struct pawl_os *os = dir->os;
    struct pawl_os_stat before;
    enum pawl_status st = pawl_dir_stat(dir, from, &before, err);
    if (st != PAWL_OK)
        return pawl_context(err, st, "rename to '%s'", PAWL_SHOW_PATH(to));

    int code = os->rename(os->context, dir->handle, from, dir->handle, to, how);
    if (code == EINTR && how != PAWL_OS_EXCHANGE && was_renamed(dir, from, to, &before))
        return PAWL_OK;
    /* Carrying out an exchange twice would undo it: interrupted ones are left to the caller. */
    while (code == EINTR && how != PAWL_OS_EXCHANGE)
        code = os->rename(os->context, dir->handle, from, dir->handle, to, how);
    /* A file server that gets a request again answers that the old name is gone, because the first was carried out. */
    if (code == ENOENT && how != PAWL_OS_EXCHANGE && was_renamed(dir, from, to, &before))
        return PAWL_OK;
    if (code == 0)
        return PAWL_OK;

    bool is_unsupported =
        code == EINVAL || pawl_status_of_errno(code) == PAWL_UNSUPPORTED || (code == EXDEV && how == PAWL_OS_EXCHANGE);
    char *path = pawl_path_join(dir->path, from);
    st = pawl_fail_os(err, code, "rename '%s' to '%s'", PAWL_SHOW_PATH(path != NULL ? path : from), PAWL_SHOW_PATH(to));
    pawl_error_path(err, pawl_str_z(path != NULL ? path : from));
    free(path);
    if (how != PAWL_OS_REPLACE && is_unsupported) {
        st = PAWL_UNSUPPORTED;
        if (err != NULL)
            err->status = st;
        pawl_error_code(err, "unsupported");
    }
    return st;
}

int
pawl_os_remove(const struct pawl_os *os, struct pawl_os_dir *dir, const char *name, bool is_dir,
               bool *ret_was_interrupted)
{
    struct pawl_os_stat ignored;
    bool was_interrupted = false;
    int code;
    while ((code = is_dir ? os->remove_dir(os->context, dir, name) : os->remove_file(os->context, dir, name)) == EINTR)
        was_interrupted = true;
    if (ret_was_interrupted != NULL)
        *ret_was_interrupted = was_interrupted;
    return code == EROFS && os->stat(os->context, dir, name, &ignored) == ENOENT ? ENOENT : code;
}

enum pawl_status
pawl_dir_remove_file(const struct pawl_dir *dir, const char *name, struct pawl_error *err)
{
    bool was_interrupted = false;
    int code = pawl_os_remove(dir->os, dir->handle, name, false, &was_interrupted);
    if (code == 0 || (code == ENOENT && was_interrupted))
        return PAWL_OK;
    return fail_entry(err, code, "remove", dir, name);
}

/* ---- locks and space ---- */

enum pawl_status
pawl_dir_lock(const struct pawl_dir *dir, enum pawl_os_lock how, bool *ret_is_fallback, struct pawl_error *err)
{
    const struct pawl_os *os = dir->os;
    bool is_fallback = false;
    int64_t holder = 0;
    int code;
    do {
        code = os->dir_lock(os->context, dir->handle, how, &is_fallback, &holder);
    } while (code == EINTR);
    if (code == 0) {
        if (ret_is_fallback != NULL)
            *ret_is_fallback = is_fallback;
        return PAWL_OK;
    }
    if (code != EWOULDBLOCK)
        return pawl_fail_path(err, code, "lock directory", dir->path);
    enum pawl_status st;
    if (holder > 0)
        st = pawl_fail(err, PAWL_BUSY, "busy", "lock directory '%s': process %" PRId64 " holds it",
                       PAWL_SHOW_PATH(dir->path), holder);
    else
        st = pawl_fail(err, PAWL_BUSY, "busy", "lock directory '%s': another process holds it",
                       PAWL_SHOW_PATH(dir->path));
    if (err != NULL)
        err->system_errno = code;
    pawl_error_path(err, pawl_str_z(dir->path));
    return st;
}

void
pawl_dir_unlock(const struct pawl_dir *dir)
{
    (void)dir->os->dir_unlock(dir->os->context, dir->handle); /* the lock ends with its descriptor in any case */
}

const char *
pawl_dir_weak_kind(const struct pawl_dir *dir)
{
    const char *kind = NULL;
    return dir->os->dir_weak_kind(dir->os->context, dir->handle, &kind) == 0 ? kind : NULL;
}

enum pawl_status
pawl_dir_check_space(const struct pawl_dir *dir, uint64_t bytes, struct pawl_error *err)
{
    uint64_t available = 0;
    int code;
    do {
        code = dir->os->dir_space(dir->os->context, dir->handle, &available);
    } while (code == EINTR);
    /* Advice only: a filesystem that can't say is no reason to stop. */
    if (code != 0 || bytes <= available)
        return PAWL_OK;
    enum pawl_status st = pawl_fail(err, PAWL_NO_SPACE, "no-space",
                                    "no space in '%s': %" PRIu64 " bytes are needed, %" PRIu64 " bytes are available",
                                    PAWL_SHOW_PATH(dir->path), bytes, available);
    pawl_error_path(err, pawl_str_z(dir->path));
    return st;
}
