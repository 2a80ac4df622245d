/*
 * bench_load: loads and verifications of a step in several layouts, beside what the machine can do.
 *
 *     bench_load DIR [--bytes N] [--rounds R] [--only LAYOUT] [--json]
 *
 * Layouts of a state of N bytes (default 1 GiB) in 147 tensors: `one` file; `split`: model and optimizer, 1 : 2; `cut`: a model in files of 512 MiB, but two at least.
 * Each is saved once. In each round it is loaded from an empty cache, by sizes only (`raw`) and hashed (`cold`), and from a full one, hashed
 * (`warm`); and verified into nobody's memory, from an empty cache and from a full one. The limits of the round: direct reading of the largest file
 * into huge pages, and the hash of the same files on the same cores by the same kernels; of raw loads the first, of what is cold the lower, of
 * what is warm the second. Medians of the ratios. The memory that the first cold load takes beyond the state is shown too, and how much of the
 * files is in the cache after it. What was written is removed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_tools.h"
#include "cli/limits.h"

#define ROUNDS_MAX 31
#define TENSORS 147
#define FILES_MAX 64

enum layout { ONE, SPLIT, CUT, LAYOUTS };
static const char *const NAMES[LAYOUTS] = { "one", "split", "cut" };

enum kind { RAW, COLD, WARM, VERIFY_COLD, VERIFY_WARM, KINDS };
static const char *const KIND_NAMES[KINDS] = { "raw", "cold", "warm", "verify_cold", "verify_warm" };

struct result {
    double speed[KINDS][ROUNDS_MAX], ratio[KINDS][ROUNDS_MAX];
    double limits[2][ROUNDS_MAX]; /* GB/s: read, hash */
};

struct files {
    char names[FILES_MAX][4700];
    size_t n, largest;
    uint64_t largest_bytes;
};

static struct result results[LAYOUTS];
static size_t bytes = (size_t)1 << 30;
static unsigned char *data, *room;
static char root[4200], step_path[4300];

static void
die(const char *what, const struct pawl_error *err)
{
    (void)fprintf(stderr, "bench_load: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(1);
}

static void
list_files(struct files *files)
{
    memset(files, 0, sizeof *files);
    DIR *stream = opendir(step_path);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL && files->n < FILES_MAX) {
        char *name = files->names[files->n];
        struct stat status;
        (void)snprintf(name, sizeof files->names[0], "%s/%s", step_path, entry->d_name);
        if (stat(name, &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        if ((uint64_t)status.st_size > files->largest_bytes) {
            files->largest_bytes = (uint64_t)status.st_size;
            files->largest = files->n;
        }
        files->n++;
    }
    if (stream != NULL)
        (void)closedir(stream);
}

static void
empty_cache(const struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        limits_forget_file(files->names[i]);
}

static void
fill_cache(const struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        limits_fetch_file(files->names[i]);
}

/* The part of the files that is in the cache. */
static double
cached_part(const struct files *files)
{
    size_t pages = 0, in = 0;
    for (size_t i = 0; i < files->n; i++) {
        struct stat status;
        int fd = open(files->names[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) != 0 || status.st_size == 0) {
            if (fd >= 0)
                (void)close(fd);
            continue;
        }
        size_t n = ((size_t)status.st_size + 4095) / 4096;
        unsigned char *is_in = malloc(n);
        void *map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (is_in != NULL && map != MAP_FAILED && mincore(map, (size_t)status.st_size, is_in) == 0) {
            pages += n;
            for (size_t k = 0; k < n; k++)
                in += is_in[k] & 1;
        }
        if (map != MAP_FAILED)
            (void)munmap(map, (size_t)status.st_size);
        free(is_in);
        (void)close(fd);
    }
    return pages == 0 ? 0.0 : (double)in / (double)pages;
}

static struct pawl_state *
describe(enum layout layout, unsigned char *at)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = NULL;
    const uint64_t shape[] = { bytes / TENSORS / 4 };
    if (pawl_state_new(&state, &err) != PAWL_OK)
        die("state", &err);
    for (size_t i = 0; i < TENSORS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "t%06zu", i);
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = layout == SPLIT && i >= TENSORS / 3 ? PAWL_OPTIMIZER : PAWL_MODEL,
                                      .dtype = PAWL_F32,
                                      .name = pawl_str_z(name),
                                      .rank = 1,
                                      .shape = shape,
                                      .data = at + i * shape[0] * 4 };
        if (pawl_state_tensor(state, &tensor, &err) != PAWL_OK)
            die("tensor", &err);
    }
    return state;
}

static double
speed(double seconds)
{
    return seconds > 0.0 ? (double)bytes / seconds / 1e9 : 0.0;
}

static void
save(enum layout layout)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    struct pawl_state *state = describe(layout, data);
    if (pawl_run_open_z(root, &PAWL_RUN_OPTIONS(.max_file_bytes = layout == CUT ? bench_cut_bytes(bytes, TENSORS) : 0),
                        &run, &err) != PAWL_OK ||
        pawl_run_save(run, state, 1, NULL, &err) != PAWL_OK || pawl_run_close(run, &err) != PAWL_OK)
        die("save", &err);
    pawl_state_free(state);
}

static double
load(struct pawl_state *state, enum pawl_trust trust)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    struct pawl_ckpt *ckpt = NULL;
    double begin = limits_now();
    if (trust == PAWL_TRUST_FULL) {
        int64_t step;
        if (pawl_run_open_z(root, NULL, &run, &err) != PAWL_OK ||
            pawl_run_restore(run, state, &step, NULL, &err) != PAWL_OK)
            die("restore", &err);
        (void)pawl_run_close(run, NULL);
    } else {
        if (pawl_ckpt_open(pawl_str_z(root), &PAWL_CKPT_OPTIONS(.trust = trust), &ckpt, NULL, &err) != PAWL_OK ||
            pawl_ckpt_restore(ckpt, state, NULL, NULL, &err) != PAWL_OK)
            die("restore", &err);
        pawl_ckpt_close(ckpt);
    }
    return speed(limits_now() - begin);
}

static double
verify(void)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_report *report = NULL;
    double begin = limits_now();
    if (pawl_verify(pawl_str_z(root), NULL, &report, &err) != PAWL_OK)
        die("verify", &err);
    double seconds = limits_now() - begin;
    size_t n;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    if (n != 1 || !verdicts[0].is_ok)
        die("verify", NULL);
    pawl_report_free(report);
    return speed(seconds);
}

static void
measure(enum layout layout, size_t round, const struct files *files, struct pawl_state *state)
{
    struct result *r = &results[layout];
    empty_cache(files);
    double seconds = limits_read(files->names[files->largest], room, files->largest_bytes);
    double read = seconds > 0.0 ? (double)files->largest_bytes / seconds / 1e9 : 0.0;
    double hash = layout == ONE     ? speed(limits_hash(data, bytes))
                  : layout == SPLIT ? speed(limits_hash_two(data, bytes / 3, bytes - bytes / 3))
                                    : speed(limits_hash_many(data, bytes, bench_cut_files(bytes)));
    double both = read > 0.0 && read < hash ? read : hash;
    r->limits[0][round] = read;
    r->limits[1][round] = hash;
    empty_cache(files);
    r->speed[RAW][round] = load(state, PAWL_TRUST_SIZE_ONLY);
    empty_cache(files);
    r->speed[COLD][round] = load(state, PAWL_TRUST_FULL);
    empty_cache(files);
    r->speed[VERIFY_COLD][round] = verify();
    fill_cache(files);
    r->speed[WARM][round] = load(state, PAWL_TRUST_FULL);
    r->speed[VERIFY_WARM][round] = verify();
    for (int k = 0; k < KINDS; k++)
        r->ratio[k][round] = r->speed[k][round] / (k == RAW ? read : k == COLD || k == VERIFY_COLD ? both : hash);
}

static void
print_result(enum layout layout, size_t rounds, int is_first, int is_json)
{
    struct result *r = &results[layout];
    double read = bench_median(r->limits[0], rounds), hash = bench_median(r->limits[1], rounds);
    if (is_json)
        (void)printf("%s\"%s\": {\"read_limit_gb_s\": %.3f, \"hash_limit_gb_s\": %.3f", is_first ? "" : ", ",
                     NAMES[layout], read, hash);
    else
        (void)printf("%-5s  read %.2f, hash %.2f GB/s:", NAMES[layout], read, hash);
    for (int k = 0; k < KINDS; k++) {
        double gb_s = bench_median(r->speed[k], rounds), ratio = bench_median(r->ratio[k], rounds);
        if (is_json)
            (void)printf(", \"%s_gb_s\": %.3f, \"%s_ratio\": %.3f", KIND_NAMES[k], gb_s, KIND_NAMES[k], ratio);
        else
            (void)printf("  %s %.2f (%.2f)", KIND_NAMES[k], gb_s, ratio);
    }
    (void)printf(is_json ? "}" : "\n");
}

/* Of the first cold load: the peak beyond what was there, in MiB, and the part of the files that it left in the cache. */
static void
first_load(const struct files *files, struct pawl_state *state, double *ret_mib, double *ret_cached)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file != NULL) {
        (void)fputs("5", file); /* the peak begins anew */
        (void)fclose(file);
    }
    empty_cache(files);
    uint64_t before = bench_status_kib("VmRSS:");
    (void)load(state, PAWL_TRUST_FULL);
    uint64_t after = bench_status_kib("VmHWM:");
    *ret_mib = after > before ? (double)(after - before) / 1024.0 : 0.0;
    *ret_cached = cached_part(files);
}

int
main(int argc, char **argv)
{
    static struct files files;
    size_t rounds = 5;
    int is_json = 0;
    const char *dir = NULL, *only = NULL;
    double mib = 0.0, cached = 0.0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = 1;
        else if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else
            dir = argv[i];
    }
    if (dir == NULL || rounds < 1 || rounds > ROUNDS_MAX || bytes < (size_t)64 << 20) {
        (void)fprintf(
            stderr, "bench_load DIR [--bytes N] [--rounds R] [--only LAYOUT] [--json]: N 64 MiB or more, R up to %d\n",
            ROUNDS_MAX);
        return 2;
    }
    (void)snprintf(root, sizeof root, "%.4000s/bench-load-%ld", dir, (long)getpid());
    (void)snprintf(step_path, sizeof step_path, "%s/step-000001", root);
    data = limits_memory(bytes);
    room = limits_memory(bytes + ((size_t)16 << 20));
    if (data == NULL || room == NULL)
        die("memory", NULL);
    if (is_json)
        (void)printf("{\"bytes\": %zu, \"rounds\": %zu, \"layouts\": {", bytes, rounds);
    else
        (void)printf("%zu bytes, %zu rounds; GB/s (of the limit)\n", bytes, rounds);
    for (int k = 0, n = 0; k < LAYOUTS; k++) {
        if (only != NULL && strcmp(only, NAMES[k]) != 0)
            continue;
        struct pawl_state *state = describe((enum layout)k, room);
        save((enum layout)k);
        list_files(&files);
        if (n == 0)
            first_load(&files, state, &mib, &cached);
        for (size_t round = 0; round < rounds; round++)
            measure((enum layout)k, round, &files, state);
        print_result((enum layout)k, rounds, n++ == 0, is_json);
        pawl_state_free(state);
        bench_remove_root(root);
    }
    (void)printf(is_json ? "}, \"memory_mib\": %.1f, \"left_in_cache\": %.3f}\n"
                         : "memory of a cold load %.1f MiB; of the files in the cache after it: %.3f\n",
                 mib, cached);
    limits_forget(data, bytes);
    limits_forget(room, bytes + ((size_t)16 << 20));
    return 0;
}
