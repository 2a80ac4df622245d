/* What the programs of bench/ share beside cli/limits.h: medians, the memory of the process, and removing what a run has written. */
#ifndef BENCH_TOOLS_H
#define BENCH_TOOLS_H

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BENCH_VALUES_MAX 128

static inline int
bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of at most BENCH_VALUES_MAX values, which stay as they are. */
static inline double
bench_median(const double *values, size_t n)
{
    double sorted[BENCH_VALUES_MAX];
    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, bench_compare);
    return sorted[n / 2];
}

/* A model that is cut: into files of 512 MiB, at least two, all of about one size. */
static inline size_t
bench_cut_files(size_t bytes)
{
    return bytes >> 29 < 2 ? 2 : bytes >> 29;
}

/* How long its files may be: whole tensors, and a header. */
static inline uint64_t
bench_cut_bytes(size_t bytes, size_t tensors)
{
    size_t n = bench_cut_files(bytes);
    return (uint64_t)((tensors + n - 1) / n) * (bytes / tensors) + ((uint64_t)64 << 10);
}

/* A line of /proc/self/status ("VmHWM:"); 0: there is none. */
static inline uint64_t
bench_status_kib(const char *key)
{
    char line[256];
    uint64_t value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtoull(line + strlen(key) + 1, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return value;
}

/* Remove a folder with its files, and its folders with theirs: a root has no more levels. Links are removed, not followed. */
static inline void
bench_remove_folder(const char *path, int depth)
{
    DIR *stream = opendir(path);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char name[4800];
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int length = snprintf(name, sizeof name, "%.4400s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof name)
            continue;
        if (lstat(name, &status) == 0 && S_ISDIR(status.st_mode) && depth > 0)
            bench_remove_folder(name, depth - 1);
        else
            (void)unlink(name);
    }
    if (stream != NULL)
        (void)closedir(stream);
    (void)rmdir(path);
}

static inline void
bench_remove_root(const char *root)
{
    bench_remove_folder(root, 1);
}

#endif
