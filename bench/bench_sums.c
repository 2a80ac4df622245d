/*
 * bench_sums: what pawl.sums costs a save.
 *
 *     bench_sums DIR [--bytes N] [--rounds R] [--json]
 *
 * A state of N bytes (default 1 GiB), all of it in the model's file (one), or a third in the model's and the rest in the optimizer's (two), is
 * saved without and with sums in turn, each round: in the foreground, and in the background with a copy, there until durable. Medians of the times, and of the
 * ratios of each round. The memory is touched, and each run has saved once, before anything is timed. What was written is removed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench_tools.h"
#include "pawl/pcg32.h"
#include "pawl/run.h"

#define ROUNDS_MAX 51
#define TENSORS 147

enum way { ONE, TWO, COPY, WAYS };
static const char *const NAMES[WAYS] = { "one file", "two files", "copy, durable" };
static const char *const KEYS[WAYS] = { "one", "two", "copy" };

static double times[WAYS][2][ROUNDS_MAX];

static double
now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
die(const char *what, const struct pawl_error *err)
{
    (void)fprintf(stderr, "bench_sums: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(1);
}

static struct pawl_state *
describe(unsigned char *memory, size_t each, bool is_one)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = NULL;
    if (pawl_state_new(&state, &err) != PAWL_OK)
        die("state", &err);
    for (unsigned i = 0; i < TENSORS; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "layer.%03u.weight", i);
        const struct pawl_tensor tensor = PAWL_TENSOR(is_one || i % 3 == 0 ? PAWL_MODEL : PAWL_OPTIMIZER, name,
                                                      PAWL_F32, memory + i * each, each / 4);
        if (pawl_state_tensor(state, &tensor, &err) != PAWL_OK)
            die(name, &err);
    }
    return state;
}

static void
root_of(const char *dir, enum way way, bool with_sums, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/bench-sums-%s-%d", dir, KEYS[way], with_sums ? 1 : 0);
}

static double
save(struct pawl_run *run, struct pawl_state *state, enum way way)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    double begin = now();
    enum pawl_status st =
        way == COPY ? pawl_run_save_async(run, state, 1, NULL, NULL, &err) : pawl_run_save(run, state, 1, NULL, &err);
    if (st == PAWL_OK)
        st = pawl_run_wait(run, &err);
    if (st != PAWL_OK)
        die("save", &err);
    return now() - begin;
}

static void
print_results(size_t bytes, unsigned rounds, bool is_json)
{
    if (is_json)
        (void)printf("{\"bytes\": %zu, \"rounds\": %u", bytes, rounds);
    else
        (void)printf("%.2f GiB, medians of %u rounds\n", (double)bytes / (1 << 30), rounds);
    for (unsigned w = 0; w < WAYS; w++) {
        double ratios[ROUNDS_MAX];
        for (unsigned r = 0; r < rounds; r++)
            ratios[r] = times[w][1][r] / times[w][0][r];
        double without = bench_median(times[w][0], rounds), with = bench_median(times[w][1], rounds);
        double ratio = bench_median(ratios, rounds);
        if (is_json)
            (void)printf(", \"%s\": {\"without_s\": %.6f, \"with_s\": %.6f, \"ratio\": %.4f}", KEYS[w], without, with,
                         ratio);
        else
            (void)printf("  %-14s without %7.1f ms (%.2f GB/s), with %7.1f ms (%.2f GB/s): %.3f times\n", NAMES[w],
                         without * 1e3, (double)bytes / without * 1e-9, with * 1e3, (double)bytes / with * 1e-9, ratio);
    }
    if (is_json)
        (void)printf("}\n");
}

int
main(int argc, char **argv)
{
    const char *dir = NULL;
    size_t bytes = (size_t)1 << 30;
    unsigned rounds = 7;
    bool is_json = false;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *runs[WAYS][2];
    struct pawl_state *states[WAYS];
    char root[4096];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else
            dir = argv[i];
    }
    size_t each = bytes / TENSORS / 4 * 4;
    if (dir == NULL || rounds < 1 || rounds > ROUNDS_MAX || each == 0)
        die("usage: bench_sums DIR [--bytes N] [--rounds 1 ... 51] [--json]", NULL);
    bytes = each * TENSORS;
    unsigned char *memory = malloc(bytes);
    if (memory == NULL)
        die("memory", NULL);
    uint64_t random = 1;
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t word = pawl_splitmix64_next(&random);
        memcpy(memory + at, &word, 8);
    }
    for (unsigned w = 0; w < WAYS; w++) {
        states[w] = describe(memory, each, w == ONE);
        for (int k = 0; k < 2; k++) {
            root_of(dir, (enum way)w, k != 0, root, sizeof root);
            if (pawl_run_open_z(root, &PAWL_RUN_OPTIONS(.write_sums = k != 0), &runs[w][k], &err) != PAWL_OK)
                die(root, &err);
            (void)save(runs[w][k], states[w], (enum way)w);
        }
    }
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned w = 0; w < WAYS; w++)
            for (unsigned k = 0; k < 2; k++) {
                unsigned which = (k + r) % 2; /* who goes first changes */
                times[w][which][r] = save(runs[w][which], states[w], (enum way)w);
            }
    print_results(bytes, rounds, is_json);
    for (unsigned w = 0; w < WAYS; w++) {
        pawl_state_free(states[w]);
        for (int k = 0; k < 2; k++) {
            if (pawl_run_close(runs[w][k], &err) != PAWL_OK)
                die("close", &err);
            root_of(dir, (enum way)w, k != 0, root, sizeof root);
            bench_remove_root(root);
        }
    }
    free(memory);
    return 0;
}
