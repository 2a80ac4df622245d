/*
 * A file that is in memory, as a model: behind the seam of the system it is a file like any other, whose mapping is the
 * memory itself. Only what a reader calls is in the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/options.h"
#include "model/model.h"

struct pawl_os_file {
    const unsigned char *data;
    uint64_t bytes;
};

static int
memory_close(void *context, struct pawl_os_file *file)
{
    (void)context;
    free(file);
    return 0;
}

static int
memory_stat(void *context, struct pawl_os_file *file, struct pawl_os_stat *ret)
{
    (void)context;
    *ret = (struct pawl_os_stat){ .kind = PAWL_OS_FILE, .bytes = file->bytes };
    return 0;
}

static int
memory_read_at(void *context, struct pawl_os_file *file, uint64_t offset, void *data, size_t bytes, size_t *ret_read)
{
    (void)context;
    uint64_t left = offset < file->bytes ? file->bytes - offset : 0;
    size_t n = left < bytes ? (size_t)left : bytes;
    if (n != 0)
        memcpy(data, file->data + offset, n);
    *ret_read = n;
    return 0;
}

static int
memory_map(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, const void **ret_data)
{
    (void)context;
    if (offset > file->bytes || bytes > file->bytes - offset)
        return EINVAL;
    *ret_data = file->data + offset;
    return 0;
}

static void
memory_unmap(void *context, const void *data, size_t bytes)
{
    (void)context;
    (void)data;
    (void)bytes;
}

static int
memory_populate(void *context, const void *data, size_t bytes)
{
    (void)context;
    (void)data;
    (void)bytes;
    return 0;
}

static const struct pawl_os MEMORY = {
    .file_close = memory_close,
    .file_stat = memory_stat,
    .file_read_at = memory_read_at,
    .file_map = memory_map,
    .unmap = memory_unmap,
    .map_populate = memory_populate,
};

static enum pawl_status
open_file(struct pawl_file *file, const void *data, size_t n, struct pawl_error *err)
{
    *file = (struct pawl_file)PAWL_FILE_INIT;
    struct pawl_os_file *handle = malloc(sizeof *handle);
    char *path = calloc(1, 1); /* it has none */
    if (handle == NULL || path == NULL) {
        free(handle);
        free(path);
        return pawl_fail_memory(err, sizeof *handle);
    }
    *handle = (struct pawl_os_file){ data, n };
    file->os = &MEMORY;
    file->handle = handle;
    file->path = path;
    file->bytes = n;
    return PAWL_OK;
}

enum pawl_status
pawl_model_open_memory(const void *data, size_t n, const struct pawl_model_options *options,
                       struct pawl_model **ret_model, struct pawl_error *err)
{
    struct pawl_model_options known = PAWL_MODEL_OPTIONS(.mode = PAWL_MODE_STRICT);
    struct pawl_set_options set_options;
    struct pawl_set set = PAWL_SET_INIT;
    struct pawl_file file = PAWL_FILE_INIT;
    enum pawl_status st = PAWL_OK;
    if (data == NULL && n != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%zu bytes, and no place of them", n);
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_model_options", err);
    if (st == PAWL_OK)
        st = pawl_set_options_of(known.mode, known.profile, known.header_bytes_max, &set_options, err);
    if (st == PAWL_OK)
        st = open_file(&file, data, n, err);
    if (st == PAWL_OK)
        st = pawl_set_adopt_file(&set, &MEMORY, &file, "", &set_options, err);
    if (st == PAWL_OK)
        st = pawl_set_check_profile(&set, known.profile, err);
    if (st == PAWL_OK) {
        struct pawl_error own = PAWL_ERROR_INIT;
        st = pawl_set_check_aliases(&set, &own);
        if (st == PAWL_CORRUPT) /* as in a file: only records that hold are used */
            st = PAWL_OK;
        else if (st != PAWL_OK && err != NULL)
            *err = own;
    }
    if (st == PAWL_OK)
        st = pawl_model_adopt(&set, PAWL_KIND_SAFETENSORS, ret_model, err);
    pawl_set_release(&set);
    pawl_file_release(&file);
    return st;
}
