/* What token PATHs stand for: files, and directories with or without a _MANIFEST.json. */
#include "stream/token_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include "base/checked.h"
#include "stream/shard_file.h"

struct token_file {
    const struct pawl_token_file *row; /* NULL: no manifest */
    uint64_t vocabulary;
};

struct pawl_token_files {
    struct pawl_arena arena;
    struct pawl_str *paths;
    struct token_file *files;
    size_t n, capacity;
};

static enum pawl_status
add_file(struct pawl_token_files *files, struct pawl_str path, const struct pawl_token_file *row, uint64_t vocabulary,
         struct pawl_error *err)
{
    if (files->n == files->capacity) {
        size_t capacity, bytes;
        if (!pawl_mul_size(files->capacity == 0 ? 8 : files->capacity, 2, &capacity) ||
            !pawl_mul_size(capacity,
                           sizeof *files->paths > sizeof *files->files ? sizeof *files->paths : sizeof *files->files,
                           &bytes))
            return pawl_fail_memory(err, SIZE_MAX);
        struct pawl_str *paths = realloc(files->paths, capacity * sizeof *paths);
        if (paths == NULL)
            return pawl_fail_memory(err, bytes);
        files->paths = paths;
        struct token_file *rows = realloc(files->files, capacity * sizeof *rows);
        if (rows == NULL)
            return pawl_fail_memory(err, bytes);
        files->files = rows;
        files->capacity = capacity;
    }
    if (!pawl_arena_copy_str(&files->arena, path, &files->paths[files->n]))
        return pawl_fail_memory(err, path.len + 1);
    files->files[files->n] = (struct token_file){ row, vocabulary };
    files->n++;
    return PAWL_OK;
}

/* dir/name, in the directory's spelling as the caller gave it. */
static enum pawl_status
add_in_directory(struct pawl_token_files *files, const char *dir, struct pawl_str name,
                 const struct pawl_token_file *row, uint64_t vocabulary, struct pawl_error *err)
{
    struct pawl_buffer path = PAWL_BUFFER_INIT;
    size_t len = strlen(dir);
    if (!pawl_buffer_add(&path, dir, len) || (dir[len - 1] != '/' && !pawl_buffer_add_char(&path, '/')) ||
        !pawl_buffer_add_str(&path, name)) {
        pawl_buffer_release(&path);
        return pawl_fail_memory(err, len + name.len + 2);
    }
    enum pawl_status st = add_file(files, pawl_buffer_str(&path), row, vocabulary, err);
    pawl_buffer_release(&path);
    return st;
}

enum pawl_status
pawl_token_manifest_load(const struct pawl_dir *dir, struct pawl_arena *arena, struct pawl_token_manifest *ret_manifest,
                         struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    enum pawl_status st = pawl_file_open_in(&file, dir, PAWL_TOKEN_MANIFEST_NAME, PAWL_OS_FOLLOW, err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_TOKEN_MANIFEST_BYTES_MAX, &text, err);
    if (st == PAWL_OK)
        st = pawl_token_manifest_parse(arena, text.data, text.len, ret_manifest, err);
    if (st != PAWL_OK && file.path != NULL)
        pawl_error_path(err, pawl_str_z(file.path));
    pawl_buffer_release(&text);
    pawl_file_release(&file);
    return st;
}

static enum pawl_status
expand_manifest(struct pawl_token_files *files, const char *dir, const struct pawl_token_manifest *manifest,
                struct pawl_str split, struct pawl_error *err)
{
    size_t found = 0;
    for (size_t i = 0; i < manifest->n_files; i++) {
        const struct pawl_token_file *row = &manifest->files[i];
        if (split.len != 0 && !pawl_str_equal(row->split, split))
            continue;
        found++;
        enum pawl_status st =
            add_in_directory(files, dir, row->name, row, manifest->has_vocabulary ? manifest->vocabulary : 0, err);
        if (st != PAWL_OK)
            return st;
    }
    if (found != 0)
        return PAWL_OK;
    enum pawl_status st =
        pawl_fail(err, PAWL_NO_FILE, "not-found", "%s lists no file of the split '%s', the first of %zu is of '%s'",
                  PAWL_TOKEN_MANIFEST_NAME, PAWL_SHOW(split), manifest->n_files, PAWL_SHOW(manifest->files[0].split));
    pawl_error_path(err, pawl_str_z(dir));
    return st;
}

static enum pawl_status
expand_listing(struct pawl_token_files *files, const char *path, const struct pawl_dir *dir, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    enum pawl_status st = pawl_dir_list(dir, &list, err);
    size_t found = 0;
    for (size_t i = 0; i < list.n && st == PAWL_OK; i++) {
        struct pawl_str name = pawl_str_z(list.entries[i].name);
        if (list.entries[i].kind == PAWL_OS_DIR || !pawl_str_ends(name, PAWL_STR(".bin")))
            continue;
        found++;
        st = add_in_directory(files, path, name, NULL, 0, err);
    }
    pawl_dir_list_release(&list);
    if (st == PAWL_OK && found == 0) {
        st = pawl_fail(err, PAWL_CORRUPT, "content", "a directory of token shards has a %s or files named *.bin",
                       PAWL_TOKEN_MANIFEST_NAME);
        pawl_error_path(err, pawl_str_z(path));
    }
    return st;
}

static enum pawl_status
expand_directory(struct pawl_token_files *files, const char *path, const struct pawl_dir *dir, struct pawl_str split,
                 struct pawl_error *err)
{
    struct pawl_os_stat stat;
    enum pawl_status st = pawl_dir_stat(dir, PAWL_TOKEN_MANIFEST_NAME, &stat, err);
    if (st == PAWL_NO_FILE)
        return expand_listing(files, path, dir, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_token_manifest manifest;
    st = pawl_token_manifest_load(dir, &files->arena, &manifest, err);
    return st == PAWL_OK ? expand_manifest(files, path, &manifest, split, err) : st;
}

/* "a/_MANIFEST.json" becomes "a", "_MANIFEST.json" becomes ".", any other path stays. */
static void
cut_manifest_name(char *path)
{
    size_t len = strlen(path), tail = strlen(PAWL_TOKEN_MANIFEST_NAME);
    if (len < tail || strcmp(path + (len - tail), PAWL_TOKEN_MANIFEST_NAME) != 0)
        return;
    size_t keep = len - tail;
    if (keep == 0)
        memcpy(path, ".", 2);
    else if (keep == 1 && path[0] == '/')
        path[1] = '\0';
    else if (path[keep - 1] == '/')
        path[keep - 1] = '\0';
}

static enum pawl_status
expand(struct pawl_token_files *files, struct pawl_str path, struct pawl_str split, struct pawl_error *err)
{
    char *name = NULL;
    struct pawl_dir dir = PAWL_DIR_INIT;
    enum pawl_status st = pawl_shard_path(path, &name, err);
    if (st != PAWL_OK)
        return st;

    cut_manifest_name(name);
    bool is_manifest = strlen(name) != path.len;
    struct pawl_error dir_err = PAWL_ERROR_INIT;
    st = pawl_dir_open_path(&dir, pawl_os_posix(), name, &dir_err);
    if (st == PAWL_OK)
        st = expand_directory(files, name, &dir, split, err);
    else if (st == PAWL_NO_FILE && !is_manifest) /* no directory: a file, or nothing, as opening it will tell */
        st = add_file(files, path, NULL, 0, err);
    else if (err != NULL)
        *err = dir_err;
    pawl_dir_release(&dir);
    free(name);
    return st;
}

enum pawl_status
pawl_token_files_open(const struct pawl_str *paths, size_t n, struct pawl_str split,
                      struct pawl_token_files **ret_files, struct pawl_error *err)
{
    struct pawl_token_files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return pawl_fail_memory(err, sizeof *files);
    for (size_t i = 0; i < n; i++) {
        enum pawl_status st = expand(files, paths[i], split, err);
        if (st != PAWL_OK) {
            pawl_error_path(err, paths[i]);
            pawl_token_files_close(files);
            return st;
        }
    }
    *ret_files = files;
    return PAWL_OK;
}

void
pawl_token_files_close(struct pawl_token_files *files)
{
    if (files == NULL)
        return;
    pawl_arena_release(&files->arena);
    free(files->paths);
    free(files->files);
    free(files);
}

const struct pawl_str *
pawl_token_files_paths(const struct pawl_token_files *files, size_t *ret_n)
{
    *ret_n = files->n;
    return files->paths;
}

uint64_t
pawl_token_files_documents(const struct pawl_token_files *files, size_t i)
{
    const struct pawl_token_file *row = pawl_token_files_row(files, i);
    return row == NULL ? UINT64_MAX : row->documents;
}

const struct pawl_token_file *
pawl_token_files_row(const struct pawl_token_files *files, size_t i)
{
    return i < files->n ? files->files[i].row : NULL;
}

uint64_t
pawl_token_files_vocabulary(const struct pawl_token_files *files, size_t i)
{
    return i < files->n ? files->files[i].vocabulary : 0;
}

enum pawl_status
pawl_token_files_check(const struct pawl_token_files *files, size_t i, const struct pawl_shard_info *info,
                       struct pawl_error *err)
{
    const struct pawl_token_file *row = pawl_token_files_row(files, i);
    if (row == NULL || row->ids == info->ids)
        return PAWL_OK;
    enum pawl_status st =
        pawl_fail(err, PAWL_CORRUPT, "manifest", "%s lists %" PRIu64 " ids in '%s', the file has %" PRIu64,
                  PAWL_TOKEN_MANIFEST_NAME, row->ids, PAWL_SHOW(row->name), info->ids);
    pawl_error_path(err, files->paths[i]);
    return st;
}
