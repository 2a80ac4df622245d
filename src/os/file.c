/* Files for reading, and mappings. */
#include "os/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "os/path.h"

/* Bytes asked of the system in one call: larger ones are cut short by some systems anyway (Linux at 2 GiB - 4 KiB). */
#define READ_BYTES_MAX ((size_t)1 << 30)

static enum pawl_status
fail_kind(struct pawl_error *err, const char *path, const char *found)
{
    enum pawl_status st = pawl_fail(err, PAWL_CORRUPT, "not-a-file", "open '%s': expected a regular file, found %s",
                                    PAWL_SHOW_PATH(path), found);
    pawl_error_path(err, pawl_str_z(path));
    return st;
}

/* Takes `path` over. */
static enum pawl_status
open_named(struct pawl_file *file, const struct pawl_os *os, struct pawl_os_dir *dir, const char *name,
           unsigned open_flags, char *path, struct pawl_error *err)
{
    struct pawl_os_file *handle = NULL;
    struct pawl_os_stat status;
    enum pawl_status st = PAWL_OK;
    int code;

    do {
        code = os->file_open(os->context, dir, name, open_flags, &handle);
    } while (code == EINTR);
    if (code == EISDIR)
        st = fail_kind(err, path, "a directory");
    else if (code == ENXIO)
        st = fail_kind(err, path, "a FIFO, device or socket");
    else if (code == ELOOP && (open_flags & PAWL_OS_FOLLOW) == 0)
        st = fail_kind(err, path, "a symbolic link");
    else if (code != 0)
        st = pawl_fail_path(err, code, "open", path);
    if (st != PAWL_OK)
        goto failed;

    do {
        code = os->file_stat(os->context, handle, &status);
    } while (code == EINTR);
    if (code != 0) {
        st = pawl_fail_path(err, code, "stat", path);
        goto failed;
    }
    file->os = os;
    file->handle = handle;
    file->path = path;
    file->bytes = status.bytes;
    file->mtime_ns = status.mtime_ns;
    return PAWL_OK;

failed:
    if (handle != NULL)
        (void)os->file_close(os->context, handle); /* only read from */
    free(path);
    return st;
}

enum pawl_status
pawl_file_open_path(struct pawl_file *file, const struct pawl_os *os, const char *path, struct pawl_error *err)
{
    char *dir_path = NULL, *name = NULL;
    bool has_slash = false;
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct pawl_error split_err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_path_split(path, &dir_path, &name, &has_slash, &split_err);

    /* "", "/", "a/..", "a/": no file can be there, and the directory that is says so. */
    if (st == PAWL_ARGUMENT || (st == PAWL_OK && has_slash)) {
        st = pawl_dir_open_path(&dir, os, path, err);
        if (st == PAWL_OK)
            st = fail_kind(err, path, "a directory");
        goto out;
    }
    if (st != PAWL_OK) {
        if (err != NULL)
            *err = split_err;
        goto out;
    }
    char *copy = pawl_str_dup(pawl_str_z(path));
    if (copy == NULL) {
        st = pawl_fail_memory(err, strlen(path) + 1);
        goto out;
    }
    st = pawl_dir_open_path(&dir, os, dir_path, err);
    if (st != PAWL_OK) {
        free(copy);
        goto out;
    }
    st = open_named(file, os, dir.handle, name, PAWL_OS_FOLLOW, copy, err);
out:
    pawl_dir_release(&dir);
    free(dir_path);
    free(name);
    return st;
}

enum pawl_status
pawl_file_open_in(struct pawl_file *file, const struct pawl_dir *dir, const char *name, unsigned open_flags,
                  struct pawl_error *err)
{
    char *path = pawl_path_join(dir->path, name);
    if (path == NULL)
        return pawl_fail_memory(err, strlen(dir->path) + strlen(name) + 2);
    return open_named(file, dir->os, dir->handle, name, open_flags, path, err);
}

void
pawl_file_release(struct pawl_file *file)
{
    if (file->handle != NULL)
        (void)file->os->file_close(file->os->context, file->handle); /* only read from: close cannot lose data */
    free(file->path);
    *file = (struct pawl_file)PAWL_FILE_INIT;
}

enum pawl_status
pawl_file_read(const struct pawl_file *file, uint64_t offset, void *data, size_t bytes, struct pawl_error *err)
{
    const struct pawl_os *os = file->os;
    unsigned char *to = data;
    size_t done = 0;
    bool was_tried = false; /* this place, and it answered EIO */
    uint64_t end;

    if (!pawl_add_u64(offset, bytes, &end)) {
        enum pawl_status st = pawl_fail_at(err, PAWL_TRUNCATED, "truncated", offset,
                                           "read '%s': %zu bytes at offset %" PRIu64 " are past any file's end",
                                           PAWL_SHOW_PATH(file->path), bytes, offset);
        pawl_error_path(err, pawl_str_z(file->path));
        return st;
    }
    while (done < bytes) {
        size_t left = bytes - done;
        size_t n = 0;
        int code = os->file_read_at(os->context, file->handle, offset + done, to + done,
                                    left < READ_BYTES_MAX ? left : READ_BYTES_MAX, &n);
        if (code == EINTR)
            continue;
        if (code == EIO && !was_tried) {
            was_tried = true;
            continue;
        }
        if (code != 0) {
            enum pawl_status st =
                pawl_fail_os(err, code, "read '%s' at offset %" PRIu64, PAWL_SHOW_PATH(file->path), offset + done);
            pawl_error_path(err, pawl_str_z(file->path));
            if (err != NULL)
                err->offset = offset + done;
            return st;
        }
        was_tried = false;
        if (n == 0) {
            enum pawl_status st = pawl_fail_at(err, PAWL_TRUNCATED, "truncated", offset + done,
                                               "read '%s': expected %zu bytes at offset %" PRIu64
                                               ", found %zu: the file ends at %" PRIu64,
                                               PAWL_SHOW_PATH(file->path), bytes, offset, done, offset + done);
            pawl_error_path(err, pawl_str_z(file->path));
            return st;
        }
        done += n;
    }
    return PAWL_OK;
}

enum pawl_status
pawl_file_read_all(const struct pawl_file *file, size_t bytes_max, struct pawl_buffer *ret_bytes,
                   struct pawl_error *err)
{
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    enum pawl_status st;

    if (file->bytes > bytes_max) {
        st = pawl_fail(err, PAWL_LIMIT, "limit", "read '%s': %" PRIu64 " bytes, the limit is %zu",
                       PAWL_SHOW_PATH(file->path), file->bytes, bytes_max);
        pawl_error_path(err, pawl_str_z(file->path));
        return st;
    }
    if (!pawl_buffer_reserve(&bytes, (size_t)file->bytes)) {
        pawl_buffer_release(&bytes);
        return pawl_fail_memory(err, (size_t)file->bytes);
    }
    st = pawl_file_read(file, 0, bytes.data, (size_t)file->bytes, err);
    if (st != PAWL_OK) {
        pawl_buffer_release(&bytes);
        return st;
    }
    bytes.len = (size_t)file->bytes;
    pawl_buffer_release(ret_bytes);
    *ret_bytes = bytes;
    return PAWL_OK;
}

enum pawl_status
pawl_file_check_unchanged(const struct pawl_file *file, struct pawl_error *err)
{
    const struct pawl_os *os = file->os;
    struct pawl_os_stat status;
    enum pawl_status st = PAWL_OK;
    int code;

    do {
        code = os->file_stat(os->context, file->handle, &status);
    } while (code == EINTR);
    if (code != 0)
        return pawl_fail_path(err, code, "stat", file->path);
    if (status.bytes < file->bytes)
        st = pawl_fail(err, PAWL_TRUNCATED, "truncated",
                       "'%s' was cut while open: expected %" PRIu64 " bytes, found %" PRIu64,
                       PAWL_SHOW_PATH(file->path), file->bytes, status.bytes);
    else if (status.bytes > file->bytes)
        st = pawl_fail(err, PAWL_CORRUPT, "changed", "'%s' grew while open: expected %" PRIu64 " bytes, found %" PRIu64,
                       PAWL_SHOW_PATH(file->path), file->bytes, status.bytes);
    else if (status.mtime_ns != file->mtime_ns)
        st = pawl_fail(err, PAWL_CORRUPT, "changed", "'%s' was written to while open", PAWL_SHOW_PATH(file->path));
    if (st != PAWL_OK)
        pawl_error_path(err, pawl_str_z(file->path));
    return st;
}

/* ---- mappings ---- */

enum pawl_status
pawl_map_file(struct pawl_map *map, const struct pawl_file *file, struct pawl_error *err)
{
    const struct pawl_os *os = file->os;
    const void *data = NULL;

    if (file->bytes > SIZE_MAX) {
        enum pawl_status st = pawl_fail(err, PAWL_LIMIT, "limit", "map '%s': %" PRIu64 " bytes do not fit in memory",
                                        PAWL_SHOW_PATH(file->path), file->bytes);
        pawl_error_path(err, pawl_str_z(file->path));
        return st;
    }
    char *path = pawl_str_dup(pawl_str_z(file->path));
    if (path == NULL)
        return pawl_fail_memory(err, strlen(file->path) + 1);
    if (file->bytes != 0) {
        int code;
        do {
            code = os->file_map(os->context, file->handle, 0, (size_t)file->bytes, &data);
        } while (code == EINTR);
        if (code != 0) {
            free(path);
            return pawl_fail_path(err, code, "map", file->path);
        }
    }
    map->os = os;
    map->data = data;
    map->bytes = (size_t)file->bytes;
    map->path = path;
    return PAWL_OK;
}

enum pawl_status
pawl_map_populate(const struct pawl_map *map, size_t offset, size_t bytes, struct pawl_error *err)
{
    enum pawl_status st;
    int code;

    if (offset > map->bytes || bytes > map->bytes - offset) {
        st = pawl_fail_at(err, PAWL_TRUNCATED, "truncated", offset,
                          "map '%s': %zu bytes at offset %zu are outside its %zu bytes", PAWL_SHOW_PATH(map->path),
                          bytes, offset, map->bytes);
        pawl_error_path(err, pawl_str_z(map->path));
        return st;
    }
    if (bytes == 0)
        return PAWL_OK;
    do {
        code = map->os->map_populate(map->os->context, map->data + offset, bytes);
    } while (code == EINTR);
    if (code == 0)
        return PAWL_OK;
    if (code == EFAULT)
        st = pawl_fail_at(err, PAWL_TRUNCATED, "truncated", offset,
                          "map '%s': the file was cut while mapped: %zu bytes at offset %zu are not there",
                          PAWL_SHOW_PATH(map->path), bytes, offset);
    else
        st = pawl_fail_os(err, code, "read mapped pages of '%s'", PAWL_SHOW_PATH(map->path));
    pawl_error_path(err, pawl_str_z(map->path));
    return st;
}

void
pawl_map_release(struct pawl_map *map)
{
    if (map->data != NULL)
        map->os->unmap(map->os->context, map->data, map->bytes);
    free(map->path);
    *map = (struct pawl_map)PAWL_MAP_INIT;
}
