/* unit/hook_os.h: a table that lets something happen before the n-th call that reads: another program at work between two calls. */
#ifndef UNIT_HOOK_OS_H
#define UNIT_HOOK_OS_H

#include <stdbool.h>
#include <stdint.h>
#include "os/os.h"

struct hook_os {
    struct pawl_os table; /* what the code under test uses */
    const struct pawl_os *inner;
    void (*act)(void *context, unsigned call); /* before each call that reads */
    void *context;
    unsigned calls;
    bool is_acting;
    uint64_t bytes_read; /* of files */
};

static inline void
hook_before(struct hook_os *hook)
{
    unsigned call = hook->calls++;
    if (hook->act == NULL || hook->is_acting)
        return;
    hook->is_acting = true;
    hook->act(hook->context, call);
    hook->is_acting = false;
}

static int
hook_dir_open_path(void *context, const char *path, struct pawl_os_dir **ret_dir)
{
    struct hook_os *hook = context;
    hook_before(hook);
    return hook->inner->dir_open_path(hook->inner->context, path, ret_dir);
}

static int
hook_dir_open(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_dir **ret_dir)
{
    struct hook_os *hook = context;
    hook_before(hook);
    return hook->inner->dir_open(hook->inner->context, dir, name, ret_dir);
}

static int
hook_dir_close(void *context, struct pawl_os_dir *dir)
{
    struct hook_os *hook = context;
    return hook->inner->dir_close(hook->inner->context, dir);
}

static int
hook_dir_list(void *context, struct pawl_os_dir *dir, pawl_os_list_fn *fn, void *fn_context)
{
    struct hook_os *hook = context;
    hook_before(hook);
    return hook->inner->dir_list(hook->inner->context, dir, fn, fn_context);
}

static int
hook_stat(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_stat *ret)
{
    struct hook_os *hook = context;
    hook_before(hook);
    return hook->inner->stat(hook->inner->context, dir, name, ret);
}

static int
hook_file_open(void *context, struct pawl_os_dir *dir, const char *name, unsigned flags, struct pawl_os_file **ret_file)
{
    struct hook_os *hook = context;
    hook_before(hook);
    return hook->inner->file_open(hook->inner->context, dir, name, flags, ret_file);
}

static int
hook_file_close(void *context, struct pawl_os_file *file)
{
    struct hook_os *hook = context;
    return hook->inner->file_close(hook->inner->context, file);
}

static int
hook_file_stat(void *context, struct pawl_os_file *file, struct pawl_os_stat *ret)
{
    struct hook_os *hook = context;
    hook_before(hook);
    return hook->inner->file_stat(hook->inner->context, file, ret);
}

static int
hook_file_read_at(void *context, struct pawl_os_file *file, uint64_t offset, void *data, size_t bytes, size_t *ret_read)
{
    struct hook_os *hook = context;
    hook_before(hook);
    int code = hook->inner->file_read_at(hook->inner->context, file, offset, data, bytes, ret_read);
    if (code == 0)
        hook->bytes_read += *ret_read;
    return code;
}

/* Only what a reader calls is there: a reader that wrote would crash the test. */
static inline const struct pawl_os *
hook_begin(struct hook_os *hook, const struct pawl_os *inner)
{
    *hook = (struct hook_os){ .inner = inner };
    hook->table = (struct pawl_os){
        .context = hook,
        .dir_open_path = hook_dir_open_path,
        .dir_open = hook_dir_open,
        .dir_close = hook_dir_close,
        .dir_list = hook_dir_list,
        .stat = hook_stat,
        .file_open = hook_file_open,
        .file_close = hook_file_close,
        .file_stat = hook_file_stat,
        .file_read_at = hook_file_read_at,
    };
    return &hook->table;
}

#endif
