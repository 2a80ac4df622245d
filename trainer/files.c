#include "trainer/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/fault.h"

enum pawl_status
files_join(const char *dir, const char *name, char ret_path[FILES_PATH_MAX], struct pawl_error *err)
{
    size_t len = strlen(dir);
    const char *slash = len > 0 && dir[len - 1] != '/' ? "/" : "";
    int n = snprintf(ret_path, FILES_PATH_MAX, "%s%s%s", dir, slash, name);
    if (n < 0 || n >= FILES_PATH_MAX)
        return fault(err, PAWL_ARGUMENT, "argument", dir, "a path of %zu bytes, at most %d can be opened",
                     len + strlen(name) + 1, FILES_PATH_MAX - 1);
    return PAWL_OK;
}

bool
files_exist(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

enum pawl_status
files_sync_directory(const char *path, struct pawl_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return PAWL_OK; /* searched but not read: it can't be opened for syncing */
    if (fd < 0)
        return fault_os(err, errno, path, "open the directory for syncing");
    int failed = fsync(fd) < 0 ? errno : 0;
    (void)close(fd); /* opened read-only: close cannot lose data */
    if (failed != 0 && failed != EINVAL && failed != ENOTSUP)
        return fault_os(err, failed, path, "fsync the directory");
    return PAWL_OK;
}

/* One level: made, and durable in its parent; or there already. */
static enum pawl_status
make_directory(char *path, struct pawl_error *err)
{
    if (mkdir(path, 0777) < 0) {
        struct stat info;
        int failed = errno;
        if (failed == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return PAWL_OK;
        return fault_os(err, failed == EEXIST ? ENOTDIR : failed, path, "make the directory");
    }
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return files_sync_directory(".", err);
    if (slash == path)
        return files_sync_directory("/", err);
    *slash = '\0';
    enum pawl_status st = files_sync_directory(path, err);
    *slash = '/';
    return st;
}

enum pawl_status
files_make_directories(const char *path, struct pawl_error *err)
{
    char part[FILES_PATH_MAX];
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len == 0 || len >= sizeof part)
        return fault(err, PAWL_ARGUMENT, "argument", path, len == 0 ? "an empty path" : "the path is too long");
    memcpy(part, path, len);
    part[len] = '\0';

    struct stat info;
    if (stat(part, &info) == 0 && S_ISDIR(info.st_mode))
        return PAWL_OK;
    for (size_t i = 1; i < len; i++) {
        if (part[i] != '/' || part[i - 1] == '/')
            continue;
        part[i] = '\0';
        bool is_there = stat(part, &info) == 0 && S_ISDIR(info.st_mode);
        enum pawl_status st = is_there ? PAWL_OK : make_directory(part, err);
        part[i] = '/';
        if (st != PAWL_OK)
            return st;
    }
    return make_directory(part, err);
}

static int
write_all(int fd, struct pawl_str text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.data, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        text.data += n;
        text.len -= (size_t)n;
    }
    return 0;
}

enum pawl_status
files_publish(const char *dir, const char *name, struct pawl_str text, struct pawl_error *err)
{
    char path[FILES_PATH_MAX], temporary[FILES_PATH_MAX], tmp_name[256];
    (void)snprintf(tmp_name, sizeof tmp_name, ".%s.%ld.tmp", name, (long)getpid());
    enum pawl_status st = files_join(dir, name, path, err);
    if (st == PAWL_OK)
        st = files_join(dir, tmp_name, temporary, err);
    if (st != PAWL_OK)
        return st;

    /* A file of this name is of a process that is gone: the number in it is ours now. */
    (void)unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return fault_os(err, errno, temporary, "create the file");
    int failed = write_all(fd, text);
    const char *what = "write the file";
    if (failed == 0 && fsync(fd) < 0) {
        failed = errno;
        what = "fsync the file";
    }
    if (close(fd) < 0 && failed == 0) {
        failed = errno;
        what = "close the file";
    }
    if (failed == 0 && rename(temporary, path) < 0) {
        failed = errno;
        what = "rename the file into place";
    }
    if (failed != 0) {
        (void)unlink(temporary);
        return fault_os(err, failed, path, "%s", what);
    }
    return files_sync_directory(dir, err);
}
