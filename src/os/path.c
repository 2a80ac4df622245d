#define PAWL_FAIL_DEFINES
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *
pawl_path_join(const char *dir, const char *name)
{
    const char *in = strcmp(dir, ".") == 0 ? "" : dir;
    size_t in_len = strlen(in);
    const char *slash = in_len != 0 && in[in_len - 1] != '/' ? "/" : "";
    size_t size = in_len + 1 + strlen(name) + 1;
    char *path = malloc(size);
    if (path != NULL)
        (void)snprintf(path, size, "%s%s%s", in, slash, name);
    return path;
}

enum pawl_status
pawl_fail_path(struct pawl_error *err, int system_errno, const char *operation, const char *path)
{
    enum pawl_status st = pawl_fail_os(err, system_errno, "%s '%s'", operation, PAWL_SHOW_PATH(path));
    pawl_error_path(err, pawl_str_z(path));
    return st;
}

enum pawl_status
pawl_path_split(const char *path, char **ret_dir, char **ret_name, bool *ret_has_slash, struct pawl_error *err)
{
    size_t end = strlen(path);
    bool has_slash = false;
    while (end > 0 && path[end - 1] == '/') {
        end--;
        has_slash = true;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    struct pawl_str name = pawl_str_make(path + begin, end - begin);
    if (name.len == 0 || pawl_str_equal(name, PAWL_STR(".")) || pawl_str_equal(name, PAWL_STR(".."))) {
        enum pawl_status st = pawl_fail(err, PAWL_ARGUMENT, "argument", "path '%s' does not end in the name of a file",
                                        PAWL_SHOW_PATH(path));
        pawl_error_path(err, pawl_str_z(path));
        return st;
    }
    while (begin > 1 && path[begin - 1] == '/' && path[begin - 2] == '/')
        begin--;
    /* "a/b" -> "a"; "/b" -> "/"; "b" -> "." */
    struct pawl_str dir = begin == 0 ? PAWL_STR(".") : begin == 1 ? PAWL_STR("/") : pawl_str_make(path, begin - 1);
    char *dir_copy = pawl_str_dup(dir);
    char *name_copy = pawl_str_dup(name);
    if (dir_copy == NULL || name_copy == NULL) {
        free(dir_copy);
        free(name_copy);
        return pawl_fail_memory(err, end);
    }
    *ret_dir = dir_copy;
    *ret_name = name_copy;
    *ret_has_slash = has_slash;
    return PAWL_OK;
}
