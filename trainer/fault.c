#define FAULT_DEFINES
#include "trainer/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trainer/talk.h"

static void
clear(struct pawl_error *err, enum pawl_status status, const char *code)
{
    *err = (struct pawl_error)PAWL_ERROR_INIT;
    err->status = status;
    (void)snprintf(err->code, sizeof err->code, "%s", code);
}

void
fault_path(struct pawl_error *err, const char *path)
{
    if (err != NULL && path != NULL && err->path[0] == '\0')
        talk_escape(pawl_str_z(path), err->path, sizeof err->path);
}

enum pawl_status
fault(struct pawl_error *err, enum pawl_status status, const char *code, const char *path, const char *format, ...)
{
    if (err == NULL)
        return status;
    clear(err, status, code);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    fault_path(err, path);
    return status;
}

static enum pawl_status
status_of_errno(int system_errno, const char **ret_code)
{
    static const struct {
        int system_errno;
        enum pawl_status status;
        const char *code;
    } known[] = {
        { ENOSPC, PAWL_NO_SPACE, "no-space" },
        { EDQUOT, PAWL_NO_SPACE, "no-space" },
        { EACCES, PAWL_PERMISSION, "permission" },
        { EPERM, PAWL_PERMISSION, "permission" },
        { EROFS, PAWL_PERMISSION, "permission" },
        { EMFILE, PAWL_NO_DESCRIPTORS, "no-descriptors" },
        { ENFILE, PAWL_NO_DESCRIPTORS, "no-descriptors" },
        { ENOMEM, PAWL_NO_MEMORY, "no-memory" },
        { ETIMEDOUT, PAWL_TIME_OUT, "time-out" },
        { EINTR, PAWL_INTERRUPTED, "interrupted" },
        { ESTALE, PAWL_STALE, "io" },
        { ENOENT, PAWL_NO_FILE, "not-found" },
        { ENOTDIR, PAWL_NO_FILE, "not-found" },
        { EEXIST, PAWL_EXISTS, "exists" },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].system_errno == system_errno) {
            *ret_code = known[i].code;
            return known[i].status;
        }
    }
    *ret_code = "io";
    return PAWL_IO;
}

enum pawl_status
fault_os(struct pawl_error *err, int system_errno, const char *path, const char *format, ...)
{
    const char *code;
    enum pawl_status status = status_of_errno(system_errno, &code);
    if (err == NULL)
        return status;
    clear(err, status, code);
    err->system_errno = system_errno;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    size_t used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof err->message - used, ": %s", strerror(system_errno));
    fault_path(err, path);
    return status;
}

enum pawl_status
fault_memory(struct pawl_error *err, size_t bytes)
{
    return fault(err, PAWL_NO_MEMORY, "no-memory", NULL, "no memory for %zu bytes", bytes);
}

void
fault_hint(struct pawl_error *err, const char *format, ...)
{
    if (err == NULL)
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->hint, sizeof err->hint, format, args);
    va_end(args);
}
