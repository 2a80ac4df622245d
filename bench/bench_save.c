/*
 * bench_save: durable, hashed saves in several layouts, beside what the machine can do (loads: bench_load).
 *
 *     bench_save DIR [--bytes N] [--rounds R] [--json]
 *
 * Layouts of a state of N bytes (default 1 GiB): `one` file; `split`: model and optimizer, 1 : 2; `cut`: a model in files of 512 MiB, but two at least; `small`:
 * `one` in 100,000 tensors instead of 147 (and `large`, in 100, to hold it against). In each round every layout is saved and held against the limits of
 * that round: the best of direct writes by 1, 2 and 4 threads, and hashing the same files on the same cores by the same kernels. Medians of the ratios. The memory that the very first save
 * takes beyond the state is shown too. What was written is removed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_tools.h"
#include "cli/limits.h"

#define ROUNDS_MAX 31

enum layout { ONE, SPLIT, CUT, SMALL, LARGE, LAYOUTS };
static const char *const NAMES[LAYOUTS] = { "one", "split", "cut", "small", "large" };
static const size_t TENSORS[LAYOUTS] = { 147, 147, 147, 100000, 100 };

struct result {
    double save[ROUNDS_MAX], ratios[ROUNDS_MAX]; /* GB/s; of the limit */
};

static struct result results[LAYOUTS];
static double limits[3][ROUNDS_MAX]; /* GB/s: write, one hash, those of the cut files */
static size_t bytes = (size_t)1 << 30;
static unsigned char *data;
static char root[4200], scratch[4200];

static void
die(const char *what, const struct pawl_error *err)
{
    (void)fprintf(stderr, "bench_save: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(1);
}

static struct pawl_state *
describe(enum layout layout)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = NULL;
    size_t n = TENSORS[layout];
    const uint64_t shape[] = { bytes / n / 4 };
    if (pawl_state_new(&state, &err) != PAWL_OK)
        die("state", &err);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "t%06zu", i);
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = layout == SPLIT && i >= n / 3 ? PAWL_OPTIMIZER : PAWL_MODEL,
                                      .dtype = PAWL_F32,
                                      .name = pawl_str_z(name),
                                      .rank = 1,
                                      .shape = shape,
                                      .data = data + i * shape[0] * 4 };
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
measure_limits(size_t round)
{
    double best = limits_write_best(scratch, bytes);
    if (best < 0.0)
        die(scratch, NULL);
    limits[0][round] = speed(best);
    limits[1][round] = speed(limits_hash(data, bytes));
    limits[2][round] = speed(limits_hash_many(data, bytes, bench_cut_files(bytes)));
}

static void
measure(enum layout layout, size_t round, const struct pawl_state *described)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = (struct pawl_state *)(uintptr_t)described;
    struct pawl_run *run = NULL;
    struct result *result = &results[layout];
    bench_remove_root(root);
    if (pawl_run_open_z(root,
                        &PAWL_RUN_OPTIONS(.max_file_bytes = layout == CUT ? bench_cut_bytes(bytes, TENSORS[CUT]) : 0),
                        &run, &err) != PAWL_OK)
        die(root, &err);
    double begin = limits_now();
    if (pawl_run_save(run, state, 1, NULL, &err) != PAWL_OK)
        die("save", &err);
    result->save[round] = speed(limits_now() - begin);
    double hash = layout == SPLIT ? speed(limits_hash_two(data, bytes / 3, bytes - bytes / 3))
                  : layout == CUT ? limits[2][round]
                                  : limits[1][round];
    double write = limits[0][round];
    result->ratios[round] = result->save[round] / (write < hash ? write : hash);
    (void)pawl_run_close(run, NULL);
}

/* The peak of the first save beyond what was there, in MiB. */
static double
memory_of_a_save(struct pawl_state *state)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file != NULL) {
        (void)fputs("5", file); /* the peak begins anew */
        (void)fclose(file);
    }
    uint64_t before = bench_status_kib("VmRSS:");
    if (pawl_run_open_z(root, NULL, &run, &err) != PAWL_OK || pawl_run_save(run, state, 1, NULL, &err) != PAWL_OK)
        die("save", &err);
    (void)pawl_run_close(run, NULL);
    uint64_t after = bench_status_kib("VmHWM:");
    return after > before ? (double)(after - before) / 1024.0 : 0.0;
}

int
main(int argc, char **argv)
{
    size_t rounds = 5;
    int is_json = 0;
    const char *dir = NULL;
    struct pawl_state *states[LAYOUTS];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = 1;
        else if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (size_t)strtoull(argv[++i], NULL, 10);
        else
            dir = argv[i];
    }
    if (dir == NULL || rounds < 1 || rounds > ROUNDS_MAX || bytes < (size_t)64 << 20) {
        (void)fprintf(stderr, "bench_save DIR [--bytes N] [--rounds R] [--json]: N 64 MiB or more, R up to %d\n",
                      ROUNDS_MAX);
        return 2;
    }
    (void)snprintf(root, sizeof root, "%.4000s/bench-save-%ld", dir, (long)getpid());
    (void)snprintf(scratch, sizeof scratch, "%.4000s/bench-save-%ld.file", dir, (long)getpid());
    data = limits_memory(bytes);
    if (data == NULL)
        die("memory", NULL);
    for (int k = 0; k < LAYOUTS; k++)
        states[k] = describe((enum layout)k);
    double memory = memory_of_a_save(states[SPLIT]);
    for (size_t round = 0; round < rounds; round++) {
        measure_limits(round);
        for (int k = 0; k < LAYOUTS; k++)
            measure((enum layout)k, round, states[k]);
    }
    bench_remove_root(root);
    double small_to_large[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++)
        small_to_large[i] = results[LARGE].save[i] / results[SMALL].save[i];
    double few = bench_median(small_to_large, rounds);
    double write = bench_median(limits[0], rounds), one = bench_median(limits[1], rounds),
           cut = bench_median(limits[2], rounds);
    (void)printf(is_json
                     ? "{\"bytes\": %zu, \"rounds\": %zu, \"limits\": {\"write_gb_s\": %.3f, \"hash_gb_s\": %.3f, "
                       "\"hash_cut_gb_s\": %.3f}, \"save_memory_mib\": %.1f, \"small_to_large\": %.3f, \"layouts\": {"
                     : "%zu bytes, %zu rounds: write %.2f, hash %.2f, of the cut files %.2f GB/s\n"
                       "memory of a save %.1f MiB; 100,000 tensors take %.2f times the time of 100\n",
                 bytes, rounds, write, one, cut, memory, few);
    for (int k = 0; k < LAYOUTS; k++) {
        const struct result *r = &results[k];
        (void)printf(
            is_json ? "%s\"%s\": {\"save_gb_s\": %.3f, \"save_ratio\": %.3f}" : "%s%-6s %.2f GB/s, %.2f of the limit\n",
            is_json && k != 0 ? ", " : "", NAMES[k], bench_median(r->save, rounds), bench_median(r->ratios, rounds));
        pawl_state_free(states[k]);
    }
    if (is_json)
        (void)printf("}}\n");
    limits_forget(data, bytes);
    return 0;
}
