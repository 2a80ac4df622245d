/* unit/os_fixture.h: a fresh folder of the host for one test, and helpers that look at it past the table. */
#ifndef UNIT_OS_FIXTURE_H
#define UNIT_OS_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

static char fixture_home[4096];

/* Make a folder of its own and go into it. */
static inline int
fixture_enter(void **state)
{
    (void)state;
    char name[] = "t-XXXXXX";
    if (getcwd(fixture_home, sizeof fixture_home) == NULL || mkdtemp(name) == NULL || chdir(name) < 0)
        return -1;
    (void)umask(022);
    return 0;
}

static inline int
fixture_leave(void **state)
{
    (void)state;
    char here[4096];
    struct pawl_dir home = PAWL_DIR_INIT;
    if (getcwd(here, sizeof here) == NULL || chdir(fixture_home) < 0)
        return -1;
    if (pawl_dir_open_path(&home, pawl_os_posix(), ".", NULL) != PAWL_OK)
        return -1;
    (void)pawl_dir_remove_tree(&home, strrchr(here, '/') + 1, NULL);
    pawl_dir_release(&home);
    return 0;
}

static inline void
host_put(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Of up to 4095 bytes; NULL: no such file. Static storage. */
static inline const char *
host_text(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    return text;
}

static inline unsigned
host_mode(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return (unsigned)status.st_mode & 07777;
}

/* Descriptors that are open in this process. */
static inline int
count_descriptors(void)
{
    DIR *stream = opendir("/proc/self/fd");
    int n = 0;
    if (stream == NULL)
        return -1;
    while (readdir(stream) != NULL)
        n++;
    (void)closedir(stream);
    return n - 3; /* ".", ".." and the stream's own */
}

/* Names in a directory. */
static inline int
count_names(const char *path)
{
    DIR *stream = opendir(path);
    int n = 0;
    assert_non_null(stream);
    while (readdir(stream) != NULL)
        n++;
    (void)closedir(stream);
    return n - 2;
}

#endif
