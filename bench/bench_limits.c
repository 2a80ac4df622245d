/*
 * bench_limits: what the machine and a directory can do, on one line of JSON: the yardsticks of a round of bench_save_peers.py.
 *
 *     bench_limits DIR [--bytes N] [--read FILE]
 *
 * GB/s of N bytes (default 1 GiB): the best of direct writes by 1, 2 and 4 threads (through the cache where there are none), SHA-256 of one
 * stream, of files of 512 MiB (two at least), of two of 1 : 2, a copy by all processors, and reading FILE past the cache. Memory: twice N.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_tools.h"
#include "cli/limits.h"

static void
die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_limits: %s: %s\n", what, why);
    exit(1);
}

static double
speed(uint64_t bytes, double seconds)
{
    return seconds > 0.0 ? (double)bytes / seconds / 1e9 : 0.0;
}

int
main(int argc, char **argv)
{
    const char *dir = NULL, *file = NULL;
    size_t bytes = (size_t)1 << 30;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--read") == 0 && i + 1 < argc)
            file = argv[++i];
        else
            dir = argv[i];
    }
    if (dir == NULL || bytes < (size_t)1 << 20)
        die("usage", "bench_limits DIR [--bytes N] [--read FILE]: N 1 MiB or more");
    char path[4200];
    (void)snprintf(path, sizeof path, "%.4000s/bench-limits-%ld.file", dir, (long)getpid());
    struct stat status = { 0 };
    if (file != NULL && stat(file, &status) != 0)
        die(file, "can't be read");
    uint64_t readable = (uint64_t)status.st_size;
    size_t room_bytes =
        (readable > bytes ? (size_t)readable : bytes) + ((size_t)4 << 20); /* direct reads end on a block */
    unsigned char *data = limits_memory(bytes), *room = limits_memory(room_bytes);
    if (data == NULL || room == NULL)
        die("memory", "there is none");
    double write = limits_write_best(path, bytes);
    if (write < 0.0)
        die(path, "can't be written");
    double read = file == NULL ? 0.0 : limits_read(file, room, readable);
    (void)printf(
        "{\"bytes\": %zu, \"write_gb_s\": %.3f, \"read_gb_s\": %.3f, \"hash_gb_s\": %.3f, \"hash_cut_gb_s\": %.3f, "
        "\"hash_split_gb_s\": %.3f, \"copy_gb_s\": %.3f}\n",
        bytes, speed(bytes, write), speed(readable, read), speed(bytes, limits_hash(data, bytes)),
        speed(bytes, limits_hash_many(data, bytes, bench_cut_files(bytes))),
        speed(bytes, limits_hash_two(data, bytes / 3, bytes - bytes / 3)),
        speed(bytes, limits_copy(room, data, bytes)));
    limits_forget(data, bytes);
    limits_forget(room, room_bytes);
    return 0;
}
