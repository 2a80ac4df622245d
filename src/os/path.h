/* os/path.h: paths as texts, and errors that carry one. Used inside os/ only. */
#ifndef PAWL_OS_PATH_H
#define PAWL_OS_PATH_H

#include "base/fail.h"
#include "base/str.h"
#include "os/os.h"

/* A path or name in a message. */
#define PAWL_SHOW_PATH(text) PAWL_SHOW(pawl_str_z(text))

/* "dir/name" on the heap, without a second slash where `dir` ends in one, and the name alone where it is "."; NULL:
 * memory. Free with free(). */
char *pawl_path_join(const char *dir, const char *name);

/* "write 'ckpt/a': Input/output error", with the path in the error. */
enum pawl_status pawl_fail_path(struct pawl_error *err, int system_errno, const char *operation, const char *path);

/*
 * remove_file or remove_dir, again while it is interrupted. A read-only filesystem refuses to remove before it looks whether the name is there (EROFS): what
 * is not there is ENOENT here all the same. *ret_was_interrupted (may be NULL): ENOENT may then be of our own doing.
 */
int pawl_os_remove(const struct pawl_os *os, struct pawl_os_dir *dir, const char *name, bool is_dir,
                   bool *ret_was_interrupted);

/*
 * Cut a path into the directory to open and the last name, both on the heap.
 * Slashes at its end are left off; "." stands for an empty directory part.
 * PAWL_ARGUMENT for a path without a last name ("", "/", "a/..").
 */
enum pawl_status pawl_path_split(const char *path, char **ret_dir, char **ret_name, bool *ret_has_slash,
                                 struct pawl_error *err);

#if defined(__clang_analyzer__) && !defined(PAWL_FAIL_DEFINES) /* as in base/fail.h */
#define pawl_fail_path(...) ((void)pawl_fail_path(__VA_ARGS__), PAWL_IO)
#endif

#endif
