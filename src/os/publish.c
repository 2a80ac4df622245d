/*
 * Publishing a file: the data are synced, then the name is moved onto them,
 * then the directory is synced. In another order a crash could leave the name
 * on bytes that never reached the disk.
 */
#include "os/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "os/path.h"

/* Links followed from the target's path: Linux allows 40 too. */
#define LINKS_MAX 40

/* Bytes of a link's text, PATH_MAX of Linux. */
#define LINK_BYTES_MAX ((size_t)4096)

/* Bytes of one name on every usual filesystem. */
#define NAME_BYTES_MAX ((size_t)255)

/* Temporary names tried; taken ones are left by killed programs whose process number came again. */
#define TEMPORARIES_MAX 1000

/* The data are on the disk after this. */
static enum pawl_status
settle(struct pawl_writer *writer, struct pawl_error *err)
{
    enum pawl_status st = pawl_writer_sync(writer, err);
    return st == PAWL_OK ? pawl_writer_close(writer, err) : st;
}

enum pawl_status
pawl_file_replace(const struct pawl_dir *dir, const char *name, const char *temporary, const void *data, size_t bytes,
                  struct pawl_error *err)
{
    const struct pawl_tap no_tap = { NULL, NULL };
    struct pawl_writer writer = PAWL_WRITER_INIT;
    bool is_there = false; /* the temporary */
    enum pawl_status st;

    st = pawl_writer_create(&writer, dir, temporary, bytes, no_tap, err);
    if (st == PAWL_EXISTS) { /* left by a crash; it is ours by its name */
        st = pawl_dir_remove_tree(dir, temporary, err);
        if (st == PAWL_OK)
            st = pawl_writer_create(&writer, dir, temporary, bytes, no_tap, err);
    }
    if (st != PAWL_OK)
        goto out;
    is_there = true;
    st = pawl_writer_add(&writer, data, bytes, err);
    if (st != PAWL_OK)
        goto out;
    st = settle(&writer, err);
    if (st != PAWL_OK)
        goto out;
    st = pawl_dir_rename(dir, temporary, name, PAWL_OS_REPLACE, err);
    if (st != PAWL_OK)
        goto out;
    is_there = false;
    st = pawl_dir_sync(dir, NULL, err);
out:
    pawl_writer_abandon(&writer); /* after a close: does nothing */
    if (is_there)
        (void)pawl_dir_remove_file(dir, temporary, NULL); /* the failure is already known */
    return st;
}

/* ---- a large file under a caller's path ---- */

/* The path that the link `name` in `dir_path` points to, on the heap. */
static enum pawl_status
follow_link(const struct pawl_dir *dir, const char *dir_path, const char *name, char **ret_path, struct pawl_error *err)
{
    const struct pawl_os *os = dir->os;
    char text[LINK_BYTES_MAX + 1];
    size_t len = 0;
    int code;

    do {
        code = os->read_link(os->context, dir->handle, name, text, sizeof text, &len);
    } while (code == EINTR);
    if (code == 0 && len == 0)
        code = ENOENT;
    if (code != 0) {
        char *path = pawl_path_join(dir_path, name);
        enum pawl_status st = pawl_fail_path(err, code, "read link", path != NULL ? path : name);
        free(path);
        return st;
    }
    text[len < sizeof text ? len : sizeof text - 1] = '\0';
    char *path = text[0] == '/' ? pawl_str_dup(pawl_str_make(text, len)) : pawl_path_join(dir_path, text);
    if (path == NULL)
        return pawl_fail_memory(err, len + strlen(dir_path) + 2);
    *ret_path = path;
    return PAWL_OK;
}

static enum pawl_status
fail_target(struct pawl_error *err, enum pawl_status status, const char *code, const char *path, const char *found)
{
    enum pawl_status st = pawl_fail(err, status, code, "write '%s': expected a regular file or no file, found %s",
                                    PAWL_SHOW_PATH(path), found);
    pawl_error_path(err, pawl_str_z(path));
    return st;
}

/* Open the directory in which the file really lies, and name it there. */
static enum pawl_status
find_target(struct pawl_publish *publish, const struct pawl_os *os, const char *path, struct pawl_error *err)
{
    enum pawl_status st;
    char *at = pawl_str_dup(pawl_str_z(path));
    if (at == NULL)
        return pawl_fail_memory(err, strlen(path) + 1);

    for (unsigned links = 0;; links++) {
        char *dir_path = NULL;
        char *name = NULL;
        bool has_slash = false;
        struct pawl_os_stat status;
        struct pawl_error stat_err = PAWL_ERROR_INIT;

        st = pawl_path_split(at, &dir_path, &name, &has_slash, err);
        if (st == PAWL_OK && has_slash)
            st = fail_target(err, PAWL_ARGUMENT, "argument", path, "the name of a directory");
        if (st == PAWL_OK)
            st = pawl_dir_open_path(&publish->dir, os, dir_path, err);
        if (st != PAWL_OK) {
            free(dir_path);
            free(name);
            break;
        }
        st = pawl_dir_stat(&publish->dir, name, &status, &stat_err);
        if (st == PAWL_OK && status.kind == PAWL_OS_LINK && links < LINKS_MAX) {
            char *next = NULL;
            st = follow_link(&publish->dir, dir_path, name, &next, err);
            pawl_dir_release(&publish->dir);
            free(dir_path);
            free(name);
            if (st != PAWL_OK)
                break;
            free(at);
            at = next;
            continue;
        }
        free(dir_path);
        if (st == PAWL_OK) {
            publish->is_replacing = true;
            publish->mode = status.mode;
            if (status.kind == PAWL_OS_LINK)
                st = pawl_fail_path(err, ELOOP, "follow links from", path);
            else if (status.kind == PAWL_OS_DIR)
                st = fail_target(err, PAWL_EXISTS, "not-a-file", path, "a directory");
            else if (status.kind != PAWL_OS_FILE)
                st = fail_target(err, PAWL_EXISTS, "not-a-file", path, "a FIFO, device or socket");
        } else if (st == PAWL_NO_FILE) {
            st = PAWL_OK;
        } else if (err != NULL) {
            *err = stat_err;
        }
        publish->name = name;
        break;
    }
    free(at);
    return st;
}

static enum pawl_status
fail_exists(const struct pawl_publish *publish, struct pawl_error *err)
{
    char *path = pawl_path_join(publish->dir.path, publish->name);
    const char *shown = path != NULL ? path : publish->name;
    enum pawl_status st =
        pawl_fail(err, PAWL_EXISTS, "exists", "'%s' exists and is not to be replaced", PAWL_SHOW_PATH(shown));
    pawl_error_path(err, pawl_str_z(shown));
    free(path);
    return st;
}

/* ".<name>.<process>-<number>.tmp"; a name that would become too long for the filesystem is cut. */
static char *
temporary_name(const struct pawl_publish *publish, int64_t process, unsigned number)
{
    char tail[48];
    int n = snprintf(tail, sizeof tail, ".%" PRId64 "-%u.tmp", process, number);
    size_t tail_len = n < 0 ? 0 : (size_t)n;
    size_t name_len = strlen(publish->name);
    if (1 + name_len + tail_len > NAME_BYTES_MAX) {
        name_len = NAME_BYTES_MAX - 1 - tail_len;
        while (name_len > 0 && ((unsigned char)publish->name[name_len] & 0xc0) == 0x80)
            name_len--; /* not inside a UTF-8 sequence: some filesystems refuse that */
    }
    size_t size = 1 + name_len + tail_len + 1;
    char *name = malloc(size);
    if (name != NULL)
        (void)snprintf(name, size, ".%.*s%s", (int)name_len, publish->name, tail);
    return name;
}

/* A replaced file keeps its mode; set before there is anything in the file, so that a private one is never open. */
static enum pawl_status
keep_mode(struct pawl_publish *publish, struct pawl_error *err)
{
    const struct pawl_os *os = publish->dir.os;
    struct pawl_os_file *handle = publish->writer.handle;
    struct pawl_os_stat status;
    int code;

    do {
        code = os->file_stat(os->context, handle, &status);
    } while (code == EINTR);
    if (code != 0)
        return pawl_fail_path(err, code, "stat", publish->writer.path);
    if (status.mode == publish->mode)
        return PAWL_OK;
    do {
        code = os->file_set_mode(os->context, handle, publish->mode);
    } while (code == EINTR);
    /* A filesystem without modes gives every file the same. */
    if (code != 0 && code != EPERM && pawl_status_of_errno(code) != PAWL_UNSUPPORTED)
        return pawl_fail_path(err, code, "set the mode of", publish->writer.path);
    return PAWL_OK;
}

enum pawl_status
pawl_publish_begin(struct pawl_publish *publish, const struct pawl_os *os, const char *path, bool may_replace,
                   uint64_t bytes, struct pawl_tap tap, struct pawl_error *err)
{
    struct pawl_publish fresh = PAWL_PUBLISH_INIT;
    enum pawl_status st;

    fresh.may_replace = may_replace;
    st = find_target(&fresh, os, path, err);
    if (st != PAWL_OK)
        goto failed;
    if (fresh.is_replacing && !may_replace) {
        st = fail_exists(&fresh, err);
        goto failed;
    }
    const int64_t process = os->process_id(os->context);
    for (unsigned number = 0; number < TEMPORARIES_MAX; number++) {
        free(fresh.temporary);
        fresh.temporary = temporary_name(&fresh, process, number);
        if (fresh.temporary == NULL) {
            st = pawl_fail_memory(err, NAME_BYTES_MAX);
            goto failed;
        }
        st = pawl_writer_create(&fresh.writer, &fresh.dir, fresh.temporary, bytes, tap, err);
        if (st != PAWL_EXISTS)
            break;
    }
    if (st != PAWL_OK) {
        free(fresh.temporary); /* not ours: nothing to remove */
        fresh.temporary = NULL;
        goto failed;
    }
    if (fresh.is_replacing) {
        st = keep_mode(&fresh, err);
        if (st != PAWL_OK)
            goto failed;
    }
    *publish = fresh;
    return PAWL_OK;

failed:
    pawl_publish_release(&fresh);
    return st;
}

/* Give the settled temporary its name; PAWL_EXISTS when that is taken and may not be replaced. */
static enum pawl_status
move_into_place(const struct pawl_publish *publish, struct pawl_error *err)
{
    const struct pawl_dir *dir = &publish->dir;
    if (publish->may_replace)
        return pawl_dir_rename(dir, publish->temporary, publish->name, PAWL_OS_REPLACE, err);

    enum pawl_status st = pawl_dir_rename(dir, publish->temporary, publish->name, PAWL_OS_NO_REPLACE, err);
    if (st == PAWL_UNSUPPORTED) {
        /* Not in one step here: look, then rename. */
        struct pawl_os_stat status;
        st = pawl_dir_stat(dir, publish->name, &status, err);
        if (st == PAWL_NO_FILE)
            return pawl_dir_rename(dir, publish->temporary, publish->name, PAWL_OS_REPLACE, err);
        if (st == PAWL_OK)
            st = PAWL_EXISTS;
    }
    return st == PAWL_EXISTS ? fail_exists(publish, err) : st;
}

enum pawl_status
pawl_publish_commit(struct pawl_publish *publish, struct pawl_error *err)
{
    enum pawl_status st =
        publish->is_unsynced ? pawl_writer_close(&publish->writer, err) : settle(&publish->writer, err);
    if (st != PAWL_OK)
        return st;
    st = move_into_place(publish, err);
    if (st != PAWL_OK)
        return st;
    free(publish->temporary); /* its name is gone */
    publish->temporary = NULL;
    return publish->is_unsynced ? PAWL_OK : pawl_dir_sync(&publish->dir, NULL, err);
}

void
pawl_publish_release(struct pawl_publish *publish)
{
    pawl_writer_abandon(&publish->writer);
    if (publish->temporary != NULL)
        (void)pawl_dir_remove_file(&publish->dir, publish->temporary, NULL);
    free(publish->temporary);
    free(publish->name);
    pawl_dir_release(&publish->dir);
    *publish = (struct pawl_publish)PAWL_PUBLISH_INIT;
}
