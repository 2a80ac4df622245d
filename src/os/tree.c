/* Listing a directory, and removing one with all that is in it. */
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "os/path.h"

/* ---- listing ---- */

struct gatherer {
    struct pawl_dir_list list;
    size_t capacity;
};

static int
gather_entry(void *context, const char *name, enum pawl_os_kind kind)
{
    struct gatherer *gatherer = context;
    if (gatherer->list.n == gatherer->capacity) {
        size_t capacity, bytes;
        if (!pawl_mul_size(gatherer->capacity == 0 ? 16 : gatherer->capacity, 2, &capacity) ||
            !pawl_mul_size(capacity, sizeof *gatherer->list.entries, &bytes))
            return ENOMEM;
        struct pawl_dir_entry *entries = realloc(gatherer->list.entries, bytes);
        if (entries == NULL)
            return ENOMEM;
        gatherer->list.entries = entries;
        gatherer->capacity = capacity;
    }
    char *copy = pawl_str_dup(pawl_str_z(name));
    if (copy == NULL)
        return ENOMEM;
    gatherer->list.entries[gatherer->list.n++] = (struct pawl_dir_entry){ copy, kind };
    return 0;
}

static int
compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct pawl_dir_entry *)a)->name, ((const struct pawl_dir_entry *)b)->name);
}

void
pawl_dir_list_release(struct pawl_dir_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->entries[i].name);
    free(list->entries);
    *list = (struct pawl_dir_list){ NULL, 0 };
}

enum pawl_status
pawl_dir_list(const struct pawl_dir *dir, struct pawl_dir_list *ret_list, struct pawl_error *err)
{
    const struct pawl_os *os = dir->os;
    struct gatherer gatherer = { { NULL, 0 }, 0 };
    enum pawl_status st;
    int code;

    while ((code = os->dir_list(os->context, dir->handle, gather_entry, &gatherer)) == EINTR) {
        pawl_dir_list_release(&gatherer.list); /* from the beginning */
        gatherer.capacity = 0;
    }
    if (code != 0) {
        st = pawl_fail_path(err, code, "list directory", dir->path);
        goto failed;
    }

    size_t kept = 0;
    for (size_t i = 0; i < gatherer.list.n; i++) {
        struct pawl_dir_entry *entry = &gatherer.list.entries[i];
        struct pawl_os_stat status;
        if (entry->kind == 0) {
            struct pawl_error stat_err = PAWL_ERROR_INIT;
            st = pawl_dir_stat(dir, entry->name, &status, &stat_err);
            if (st == PAWL_NO_FILE) { /* removed since it was listed */
                free(entry->name);
                entry->name = NULL;
                continue;
            }
            if (st != PAWL_OK) {
                if (err != NULL)
                    *err = stat_err;
                goto failed;
            }
            entry->kind = status.kind;
        }
        struct pawl_dir_entry moved = *entry;
        entry->name = NULL;
        gatherer.list.entries[kept++] = moved;
    }
    gatherer.list.n = kept;
    if (kept > 1)
        qsort(gatherer.list.entries, kept, sizeof *gatherer.list.entries, compare_entries);
    *ret_list = gatherer.list;
    return PAWL_OK;

failed:
    pawl_dir_list_release(&gatherer.list);
    return st;
}

/* ---- removing a tree ---- */

/*
 * A walk with one open directory at a time, so that depth costs memory and no
 * descriptors. Going up is by "..", and the directory found there must be the
 * one that was left: if somebody moved the tree meanwhile, the walk ends
 * rather than remove what it was not asked for.
 */
struct level {
    char *name; /* in the level above */
    uint64_t device, inode;
    struct pawl_dir_list list;
    size_t next;
};

struct removal {
    const struct pawl_os *os;
    const struct pawl_dir *top;
    struct level *levels;
    size_t n, capacity;
    struct pawl_os_dir *at; /* the open directory of the last level; NULL: of `top`, not owned */
    enum pawl_status st;    /* the first failure */
    struct pawl_error *err;
};

static struct pawl_os_dir *
here(const struct removal *removal)
{
    return removal->at != NULL ? removal->at : removal->top->handle;
}

/* Remember the first failure, with the whole path of the entry. */
static void
note_failure(struct removal *removal, int code, const char *operation, const char *name)
{
    if (removal->st != PAWL_OK)
        return;
    struct pawl_buffer path = PAWL_BUFFER_INIT;
    if (strcmp(removal->top->path, ".") != 0) {
        (void)pawl_buffer_add_z(&path, removal->top->path);
        (void)pawl_buffer_add_char(&path, '/');
    }
    for (size_t i = 0; i < removal->n; i++) {
        (void)pawl_buffer_add_z(&path, removal->levels[i].name);
        (void)pawl_buffer_add_char(&path, '/');
    }
    (void)pawl_buffer_add_z(&path, name);
    bool is_whole = pawl_buffer_terminate(&path);
    removal->st = pawl_fail_path(removal->err, code, operation, is_whole ? path.data : name);
    pawl_buffer_release(&path);
}

/* Remove a non-directory or an empty directory of the level; 0 also when it is gone already. */
static int
remove_entry(struct removal *removal, const char *name, bool is_dir)
{
    int code = pawl_os_remove(removal->os, here(removal), name, is_dir, NULL);
    return code == ENOENT ? 0 : code;
}

/* Open the subdirectory `name` and make it the last level. Returns an errno value; 0: entered. */
static int
enter(struct removal *removal, const char *name)
{
    const struct pawl_os *os = removal->os;
    struct pawl_os_dir *child = NULL;
    struct pawl_os_stat status;
    int code;

    if (removal->n == removal->capacity) {
        size_t capacity = removal->capacity == 0 ? 8 : removal->capacity * 2;
        size_t bytes;
        if (!pawl_mul_size(capacity, sizeof *removal->levels, &bytes))
            return ENOMEM;
        assert(bytes != 0);
        struct level *levels = realloc(removal->levels, bytes);
        if (levels == NULL)
            return ENOMEM;
        removal->levels = levels;
        removal->capacity = capacity;
    }
    struct level level = { pawl_str_dup(pawl_str_z(name)), 0, 0, { NULL, 0 }, 0 };
    if (level.name == NULL)
        return ENOMEM;
    do {
        code = os->dir_open(os->context, here(removal), name, &child);
    } while (code == EINTR);
    if (code != 0)
        goto failed;
    do {
        code = os->stat(os->context, child, ".", &status);
    } while (code == EINTR);
    if (code != 0)
        goto failed;

    struct gatherer gatherer = { { NULL, 0 }, 0 };
    while ((code = os->dir_list(os->context, child, gather_entry, &gatherer)) == EINTR) {
        pawl_dir_list_release(&gatherer.list);
        gatherer.capacity = 0;
    }
    level.list = gatherer.list;
    if (code != 0)
        goto failed;
    level.device = status.device;
    level.inode = status.inode;
    removal->levels[removal->n++] = level;
    if (removal->at != NULL)
        (void)os->dir_close(os->context, removal->at);
    removal->at = child;
    return 0;

failed:
    if (child != NULL)
        (void)os->dir_close(os->context, child);
    pawl_dir_list_release(&level.list);
    free(level.name);
    return code;
}

/* Back to the level above; false when that is no longer the directory that was left. */
static bool
leave(struct removal *removal)
{
    const struct pawl_os *os = removal->os;
    struct pawl_os_dir *above = NULL;
    struct pawl_os_stat status;
    int code = 0;

    if (removal->n > 1) {
        const struct level *expected = &removal->levels[removal->n - 2];
        do {
            code = os->dir_open(os->context, removal->at, "..", &above);
        } while (code == EINTR);
        if (code == 0) {
            do {
                code = os->stat(os->context, above, ".", &status);
            } while (code == EINTR);
        }
        if (code == 0 && (status.device != expected->device || status.inode != expected->inode))
            code = ESTALE;
    }
    (void)os->dir_close(os->context, removal->at);
    removal->at = above;
    if (code != 0) {
        note_failure(removal, code, "go up from directory", ".");
        return false;
    }
    return true;
}

static void
drop_level(struct removal *removal)
{
    struct level *level = &removal->levels[--removal->n];
    pawl_dir_list_release(&level->list);
    free(level->name);
}

/* One entry: removed, entered, or noted as a failure. */
static void
remove_or_enter(struct removal *removal, const char *name, enum pawl_os_kind kind)
{
    int code = EISDIR;
    if (kind != PAWL_OS_DIR)
        code = remove_entry(removal, name, false);
    if (code == 0)
        return;
    /* unlink of a directory: Linux says EISDIR, POSIX EPERM; and the kind may not have been known. */
    if (kind != PAWL_OS_DIR && code != EISDIR && code != EPERM) {
        note_failure(removal, code, "remove", name);
        return;
    }
    int remove_code = remove_entry(removal, name, true); /* empty ones need no entering, nor permission to list */
    if (remove_code == 0)
        return;
    if (remove_code == ENOTDIR) { /* EPERM above was meant: a file that may not be removed */
        note_failure(removal, code == EISDIR ? remove_code : code, "remove", name);
        return;
    }
    if (remove_code != ENOTEMPTY && remove_code != EEXIST) {
        note_failure(removal, remove_code, "remove directory", name);
        return;
    }
    code = enter(removal, name);
    if (code != 0 && code != ENOENT)
        note_failure(removal, code, "open directory", name);
}

enum pawl_status
pawl_dir_remove_tree(const struct pawl_dir *dir, const char *name, struct pawl_error *err)
{
    struct removal removal = { dir->os, dir, NULL, 0, 0, NULL, PAWL_OK, err };

    remove_or_enter(&removal, name, (enum pawl_os_kind)0);
    while (removal.n > 0) {
        struct level *level = &removal.levels[removal.n - 1];
        if (level->next < level->list.n) {
            const struct pawl_dir_entry *entry = &level->list.entries[level->next++];
            remove_or_enter(&removal, entry->name, entry->kind);
            continue;
        }
        if (!leave(&removal))
            break;
        struct level done = *level;
        removal.n--;
        int code = remove_entry(&removal, done.name, true);
        if (code != 0) /* after an earlier failure inside, which is the one reported */
            note_failure(&removal, code, "remove directory", done.name);
        pawl_dir_list_release(&done.list);
        free(done.name);
    }
    if (removal.at != NULL)
        (void)removal.os->dir_close(removal.os->context, removal.at);
    while (removal.n > 0)
        drop_level(&removal);
    free(removal.levels);
    return removal.st;
}
