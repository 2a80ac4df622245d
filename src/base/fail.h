/*
 * base/fail.h: filling a struct pawl_error. Every function returns the status
 * it was given or found, so that a check reads `return pawl_fail(...)`.
 * All accept err = NULL.
 */
#ifndef PAWL_BASE_FAIL_H
#define PAWL_BASE_FAIL_H

#include <stdarg.h>
#include "pawl/status.h"

#if defined(__GNUC__)
#define PAWL_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define PAWL_PRINTF(format_at, first_at)
#endif

/* A name for a message: at most 8 are alive at once per thread of formatting; see PAWL_SHOW. */
struct pawl_show {
    char text[256];
};

/*
 * Printable form of bytes for a message: control characters, DEL, invalid
 * UTF-8 and bidirectional overrides become \n, \t, \x.. or \u....; what is
 * longer than 200 bytes is cut in the middle. Use as a temporary:
 *     pawl_fail(err, ..., "tensor '%s'", PAWL_SHOW(name));
 */
#define PAWL_SHOW(str) (pawl_show_str(&(struct pawl_show){ { 0 } }, (str)))
const char *pawl_show_str(struct pawl_show *show, struct pawl_str str);

/* The same without the cut, into a caller's buffer; cut in the middle at `size`. Always terminates. */
void pawl_show_into(char *text, size_t size, struct pawl_str str);

/* Set status, code and message; path, tensor, hint and offset become empty. `code` is copied. */
enum pawl_status pawl_fail(struct pawl_error *err, enum pawl_status status, const char *code, const char *format, ...)
    PAWL_PRINTF(4, 5);

/* The same, with a place in the file. */
enum pawl_status pawl_fail_at(struct pawl_error *err, enum pawl_status status, const char *code, uint64_t offset,
                              const char *format, ...) PAWL_PRINTF(5, 6);

/*
 * A failed operation of the system: the status and code follow from errno
 * (ENOSPC and EDQUOT: no-space; EACCES, EPERM, EROFS: permission; EMFILE,
 * ENFILE: no-descriptors; ENOMEM: no-memory; ETIMEDOUT: time-out; EINTR:
 * interrupted; ESTALE: stale, code "io"; ENOENT, ENOTDIR: PAWL_NO_FILE,
 * "not-found"; EEXIST: exists; EWOULDBLOCK: busy; EOPNOTSUPP, ENOSYS: unsupported; else io),
 * and the message ends with ": " and the system's text. With EROFS there is a hint.
 */
enum pawl_status pawl_fail_os(struct pawl_error *err, int system_errno, const char *format, ...) PAWL_PRINTF(3, 4);
enum pawl_status pawl_status_of_errno(int system_errno);

enum pawl_status pawl_fail_memory(struct pawl_error *err, size_t bytes);

/* Add to an error that is already filled. They change nothing where err is NULL. */
void pawl_error_path(struct pawl_error *err, struct pawl_str path); /* only when there is none yet */
void pawl_error_tensor(struct pawl_error *err, struct pawl_str tensor);
void pawl_error_hint(struct pawl_error *err, const char *format, ...) PAWL_PRINTF(2, 3);
void pawl_error_code(struct pawl_error *err, const char *code);

/* Put the caller's purpose in front of the message: "publish step 900: fsync directory '/ckpt': ...". */
enum pawl_status pawl_context(struct pawl_error *err, enum pawl_status status, const char *format, ...)
    PAWL_PRINTF(3, 4);

/* The lowercase word of cli.md for a status that has no finer code. Static storage. */
const char *pawl_code_of_status(enum pawl_status status);

#if defined(__clang_analyzer__) && !defined(PAWL_FAIL_DEFINES)
/* The analyzer sees one source file at a time: it would believe that these can return PAWL_OK. */
#define pawl_fail(err, status, ...) ((void)pawl_fail(err, status, __VA_ARGS__), (status))
#define pawl_fail_at(err, status, ...) ((void)pawl_fail_at(err, status, __VA_ARGS__), (status))
#define pawl_fail_os(...) ((void)pawl_fail_os(__VA_ARGS__), PAWL_IO)
#define pawl_fail_memory(err, bytes) ((void)pawl_fail_memory(err, bytes), PAWL_NO_MEMORY)
#define pawl_context(err, status, ...) ((void)pawl_context(err, status, __VA_ARGS__), (status))
#endif

#endif
