/*
 * Load and save by path. Saving follows the format's own protocol, not pawl_publish: its names of temporaries, its
 * order of steps and its failures are part of the page.
 */
#include "formats/llmcp35/lc_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "os/file.h"
#include "os/path.h"

/* Names tried for a temporary. */
#define ATTEMPTS_MAX 128

/* ---- load ---- */

enum pawl_status
pawl_lc_read_file(const struct pawl_file *file, struct pawl_llmcp35 **ret_checkpoint, struct pawl_error *err)
{
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    enum pawl_status st = pawl_file_read_all(file, SIZE_MAX, &bytes, err);
    if (st == PAWL_OK)
        st = pawl_llmcp35_decode(bytes.data, bytes.len, ret_checkpoint, NULL, err);
    pawl_buffer_release(&bytes);
    if (st != PAWL_OK)
        pawl_error_path(err, pawl_str_z(file->path));
    return st;
}

enum pawl_status
pawl_lc_load(const struct pawl_os *os, const char *path, struct pawl_llmcp35 **ret_checkpoint, struct lc_out *out)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    enum pawl_status st = pawl_file_open_path(&file, os, path, out->err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, SIZE_MAX, &bytes, out->err);
    if (st != PAWL_OK) {
        st = pawl_lc_fail_io(out, st, "read", path);
    } else {
        st = pawl_llmcp35_decode(bytes.data, bytes.len, ret_checkpoint, out->ret_fault, out->err);
        if (st != PAWL_OK)
            pawl_error_path(out->err, pawl_str_z(path));
    }
    pawl_file_release(&file);
    pawl_buffer_release(&bytes);
    return st;
}

/* A path of the caller's as a C string on the heap. */
static enum pawl_status
take_path(struct pawl_str path, char **ret_path, struct lc_out *out)
{
    if (path.len > 0 && memchr(path.data, 0, path.len) != NULL)
        return pawl_fail(out->err, PAWL_ARGUMENT, "argument", "a path has no NUL");
    *ret_path = pawl_str_dup(path);
    return *ret_path != NULL ? PAWL_OK : pawl_lc_fail_memory(out, "payload");
}

enum pawl_status
pawl_llmcp35_load(struct pawl_str path, struct pawl_llmcp35 **ret_checkpoint, struct pawl_llmcp35_fault **ret_fault,
                  struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    char *text = NULL;
    enum pawl_status st = take_path(path, &text, &out);
    if (st == PAWL_OK)
        st = pawl_lc_load(pawl_os_posix(), text, ret_checkpoint, &out);
    free(text);
    return st;
}

enum pawl_status
pawl_llmcp35_load_z(const char *path, struct pawl_llmcp35 **ret_checkpoint, struct pawl_llmcp35_fault **ret_fault,
                    struct pawl_error *err)
{
    return pawl_llmcp35_load(pawl_str_z(path), ret_checkpoint, ret_fault, err);
}

/* ---- save ---- */

struct save {
    const struct pawl_os *os;
    struct lc_out *out;
    const char *path;
    char *dir_path, *name; /* of the target */
    const char *target;    /* the name as the path spells it: a slash behind it must fail as the system says */
    struct pawl_os_dir *dir;
    char *temporary;      /* its name in the directory */
    char *temporary_path; /* for messages */
    struct pawl_os_file *file;
};

static atomic_uint_fast64_t temporary_serial;

static enum pawl_status
fail_step(struct save *save, int code, const char *operation, const char *words, const char *path)
{
    enum pawl_status st = pawl_fail_os(save->out->err, code, "%s '%s'", words, PAWL_SHOW_PATH(path));
    pawl_error_path(save->out->err, pawl_str_z(path));
    return pawl_lc_fail_io(save->out, st, operation, path);
}

/* ".<name>.tmp-<process>-<serial>", and its path. */
static enum pawl_status
name_temporary(struct save *save)
{
    uint64_t serial = atomic_fetch_add_explicit(&temporary_serial, 1, memory_order_relaxed);
    int64_t process = save->os->process_id(save->os->context);
    size_t room = strlen(save->name) + 64;
    free(save->temporary);
    free(save->temporary_path);
    save->temporary_path = NULL;
    save->temporary = malloc(room);
    if (save->temporary == NULL)
        return pawl_lc_fail_memory(save->out, "file_length");
    (void)snprintf(save->temporary, room, ".%s.tmp-%" PRId64 "-%" PRIu64, save->name, process, serial);
    save->temporary_path = pawl_path_join(save->dir_path, save->temporary);
    return save->temporary_path != NULL ? PAWL_OK : pawl_lc_fail_memory(save->out, "file_length");
}

/* Step 3. A directory that can't be opened fails the first attempt, as creating a file in it would. */
static enum pawl_status
create_temporary(struct save *save)
{
    const struct pawl_os *os = save->os;
    for (unsigned attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        enum pawl_status st = name_temporary(save);
        int code = 0;
        if (st != PAWL_OK)
            return st;
        while (save->dir == NULL && (code = os->dir_open_path(os->context, save->dir_path, &save->dir)) == EINTR)
            ;
        while (code == 0 && save->file == NULL &&
               (code = os->file_create(os->context, save->dir, save->temporary, &save->file)) == EINTR)
            code = 0;
        if (code == 0)
            return PAWL_OK;
        if (code != EEXIST)
            return fail_step(save, code, "create_temp", "create", save->temporary_path);
    }
    char *path = pawl_path_join(save->dir_path, save->name);
    enum pawl_status st =
        path == NULL ? pawl_lc_fail_memory(save->out, "file_length")
                     : fail_step(save, EEXIST, "unique_temp", "find an unused name for a temporary beside", path);
    free(path);
    return st;
}

/* Step 4. */
static enum pawl_status
write_temporary(struct save *save, const unsigned char *bytes, size_t n)
{
    const struct pawl_os *os = save->os;
    int code = 0;
    for (size_t done = 0; done < n;) {
        struct pawl_os_span span = { bytes + done, n - done };
        size_t written = 0;
        code = os->file_write_at(os->context, save->file, done, &span, 1, &written);
        if (code == EINTR)
            continue;
        if (code != 0)
            return fail_step(save, code, "write_temp", "write", save->temporary_path);
        done += written;
    }
    do {
        code = os->file_sync(os->context, save->file);
    } while (code == EINTR);
    struct pawl_os_file *file = save->file;
    save->file = NULL;
    int close_code = os->file_close(os->context, file); /* never twice: EINTR has closed it */
    if (code != 0)
        return fail_step(save, code, "sync_temp", "sync", save->temporary_path);
    if (close_code != 0 && close_code != EINTR)
        return fail_step(save, close_code, "sync_temp", "close", save->temporary_path);
    return PAWL_OK;
}

/* Steps 5 and 6. */
static enum pawl_status
move_temporary(struct save *save)
{
    const struct pawl_os *os = save->os;
    int code;
    do {
        code = os->rename(os->context, save->dir, save->temporary, save->dir, save->target, PAWL_OS_REPLACE);
    } while (code == EINTR);
    if (code != 0)
        return fail_step(save, code, "rename", "rename a temporary to", save->path);
    do {
        code = os->dir_sync(os->context, save->dir);
    } while (code == EINTR);
    return code == 0 ? PAWL_OK : fail_step(save, code, "sync_dir", "sync directory", save->dir_path);
}

/* Step 1. */
static enum pawl_status
split_path(struct save *save)
{
    struct pawl_error why = PAWL_ERROR_INIT;
    bool has_slash;
    enum pawl_status st = pawl_path_split(save->path, &save->dir_path, &save->name, &has_slash, &why);
    if (st == PAWL_NO_MEMORY)
        return pawl_lc_fail_memory(save->out, "file_length");
    if (st != PAWL_OK) {
        st = pawl_lc_fail(save->out, PAWL_ARGUMENT, "layout", "no_file_name", LC_NO_FIELDS, "%s", why.message);
        pawl_error_path(save->out->err, pawl_str_z(save->path));
        return st;
    }
    size_t begin = strlen(save->path);
    while (begin > 0 && save->path[begin - 1] == '/')
        begin--;
    save->target = save->path + (begin - strlen(save->name));
    return PAWL_OK;
}

enum pawl_status
pawl_lc_save(const struct pawl_os *os, const struct pawl_llmcp35 *checkpoint, const char *path, struct lc_out *out)
{
    struct save save = { .os = os, .out = out, .path = path };
    size_t n = (size_t)(checkpoint->header_bytes + checkpoint->payload_bytes);
    unsigned char *bytes = NULL;
    enum pawl_status st = split_path(&save);
    if (st != PAWL_OK)
        goto out;
    bytes = malloc(n);
    if (bytes == NULL) {
        st = pawl_lc_fail_memory(out, "file_length");
        goto out;
    }
    (void)pawl_llmcp35_encode(checkpoint, bytes, n, NULL); /* of the right size: can't fail */
    st = create_temporary(&save);
    if (st != PAWL_OK)
        goto out;
    st = write_temporary(&save, bytes, n);
    if (st == PAWL_OK)
        st = move_temporary(&save);
    if (st != PAWL_OK) {
        if (save.file != NULL)
            (void)os->file_close(os->context, save.file);
        (void)os->remove_file(os->context, save.dir, save.temporary); /* the failure is already known */
    }
out:
    if (save.dir != NULL)
        (void)os->dir_close(os->context, save.dir); /* nothing written through it */
    free(bytes);
    free(save.dir_path);
    free(save.name);
    free(save.temporary);
    free(save.temporary_path);
    return st;
}

enum pawl_status
pawl_llmcp35_save(const struct pawl_llmcp35 *checkpoint, struct pawl_str path, struct pawl_llmcp35_fault **ret_fault,
                  struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    char *text = NULL;
    enum pawl_status st = take_path(path, &text, &out);
    if (st == PAWL_OK)
        st = pawl_lc_save(pawl_os_posix(), checkpoint, text, &out);
    free(text);
    return st;
}

enum pawl_status
pawl_llmcp35_save_z(const struct pawl_llmcp35 *checkpoint, const char *path, struct pawl_llmcp35_fault **ret_fault,
                    struct pawl_error *err)
{
    return pawl_llmcp35_save(checkpoint, pawl_str_z(path), ret_fault, err);
}
