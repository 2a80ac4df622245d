/*
 * bench_lazy: how long a checkpoint takes to open, by trust, and what is left for later.
 *
 *     bench_lazy DIR [--bytes N] [--rounds R] [--json]
 *
 * Two steps of N bytes (default 256 MiB), one in 1,000 tensors and one in 100,000, a third of them in the model and the others in the optimizer, with
 * pawl.sums and without. In each round every step is opened by its sizes, lazily and fully, in turn, from a warm cache; of the lazy ones one tensor
 * in the middle of the model is mapped (verified at this touch), and then the rest is verified. Medians. What was written is removed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench_tools.h"
#include "pawl/run.h"

#define ROUNDS_MAX 101
#define SHAPES 4

enum way { SIZE_ONLY, LAZY, TOUCH, REST, FULL, WAYS };
static const char *const WAY_NAMES[WAYS] = { "open size-only", "open lazy", "first touch", "verify the rest",
                                             "open full" };
static const char *const WAY_KEYS[WAYS] = { "open_size_only", "open_lazy", "first_touch", "verify_rest", "open_full" };

static const size_t TENSORS[SHAPES] = { 1000, 1000, 100000, 100000 };
static double times[SHAPES][WAYS][ROUNDS_MAX];

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
    (void)fprintf(stderr, "bench_lazy: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(1);
}

static bool
has_sums(size_t shape)
{
    return shape % 2 == 0;
}

static void
root_of(const char *dir, size_t shape, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/bench-lazy-%zu", dir, shape);
}

static void
write_step(const char *root, size_t n, float *memory, size_t each, bool with_sums)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = NULL;
    struct pawl_run *run = NULL;
    if (pawl_state_new(&state, &err) != PAWL_OK)
        die("state", &err);
    for (size_t i = 0; i < n; i++) {
        char name[48];
        bool is_model = i % 3 == 0;
        (void)snprintf(name, sizeof name, is_model ? "layer.%06zu.weight" : "layer.%06zu.weight.exp_avg%s", i / 3,
                       i % 3 == 1 ? "" : "_sq");
        const struct pawl_tensor tensor =
            PAWL_TENSOR(is_model ? PAWL_MODEL : PAWL_OPTIMIZER, name, PAWL_F32, memory + i * each, each);
        if (pawl_state_tensor(state, &tensor, &err) != PAWL_OK)
            die(name, &err);
    }
    if (pawl_state_optimizer(state, "adamw", &err) != PAWL_OK ||
        pawl_run_open_z(root, &PAWL_RUN_OPTIONS(.write_sums = with_sums), &run, &err) != PAWL_OK ||
        pawl_run_save(run, state, 1, NULL, &err) != PAWL_OK || pawl_run_close(run, &err) != PAWL_OK)
        die(root, &err);
    pawl_state_free(state);
}

static struct pawl_ckpt *
open_timed(const char *root, enum pawl_trust trust, double *ret_seconds)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_ckpt *ckpt = NULL;
    double begin = now();
    if (pawl_ckpt_open_newest(pawl_str_z(root), &PAWL_CKPT_OPTIONS(.trust = trust), &ckpt, NULL, &err) != PAWL_OK)
        die(root, &err);
    *ret_seconds = now() - begin;
    return ckpt;
}

static void
measure(const char *root, double (*to)[ROUNDS_MAX], size_t round)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const void *data;
    size_t n;
    pawl_ckpt_close(open_timed(root, PAWL_TRUST_SIZE_ONLY, &to[SIZE_ONLY][round]));
    struct pawl_ckpt *ckpt = open_timed(root, PAWL_TRUST_LAZY, &to[LAZY][round]);
    const struct pawl_tensor_info *tensors = pawl_model_tensors(pawl_ckpt_model(ckpt), &n);
    double begin = now();
    if (pawl_model_map(pawl_ckpt_model(ckpt), &tensors[n / 2], &data, NULL, &err) != PAWL_OK)
        die("touch", &err);
    to[TOUCH][round] = now() - begin;
    begin = now();
    if (pawl_ckpt_verify(ckpt, NULL, &err) != PAWL_OK)
        die("verify", &err);
    to[REST][round] = now() - begin;
    pawl_ckpt_close(ckpt);
    pawl_ckpt_close(open_timed(root, PAWL_TRUST_FULL, &to[FULL][round]));
}

static void
print_results(size_t bytes, size_t rounds, bool is_json)
{
    if (is_json)
        (void)printf("{\"bytes\": %zu, \"rounds\": %zu, \"shapes\": [", bytes, rounds);
    else
        (void)printf("%zu MiB, warm, medians of %zu rounds\n", bytes >> 20, rounds);
    for (size_t s = 0; s < SHAPES; s++) {
        if (is_json)
            (void)printf("%s{\"tensors\": %zu, \"sums\": %s", s == 0 ? "" : ", ", TENSORS[s],
                         has_sums(s) ? "true" : "false");
        else
            (void)printf("%zu tensors, %s\n", TENSORS[s], has_sums(s) ? "with pawl.sums" : "without");
        for (size_t w = 0; w < WAYS; w++) {
            double seconds = bench_median(times[s][w], rounds);
            if (is_json)
                (void)printf(", \"%s_s\": %.7f", WAY_KEYS[w], seconds);
            else if (w == REST || w == FULL)
                (void)printf("  %-16s %10.3f ms  %6.2f GB/s\n", WAY_NAMES[w], seconds * 1e3,
                             (double)bytes / seconds * 1e-9);
            else
                (void)printf("  %-16s %10.3f ms\n", WAY_NAMES[w], seconds * 1e3);
        }
        if (is_json)
            (void)printf("}");
    }
    if (is_json)
        (void)printf("]}\n");
}

int
main(int argc, char **argv)
{
    const char *dir = NULL;
    size_t bytes = (size_t)256 << 20;
    size_t rounds = 11;
    bool is_json = false;
    char root[4096];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (size_t)strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else
            dir = argv[i];
    }
    if (dir == NULL || rounds < 1 || rounds > ROUNDS_MAX || bytes / sizeof(float) < TENSORS[SHAPES - 1])
        die("usage: bench_lazy DIR [--bytes N] [--rounds 1 ... 101] [--json]", NULL);
    float *memory = malloc(bytes);
    if (memory == NULL)
        die("memory", NULL);
    for (size_t i = 0; i < bytes / sizeof *memory; i++)
        memory[i] = (float)i;
    for (size_t s = 0; s < SHAPES; s++) {
        root_of(dir, s, root, sizeof root);
        write_step(root, TENSORS[s], memory, bytes / sizeof *memory / TENSORS[s], has_sums(s));
    }
    free(memory);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t s = 0; s < SHAPES; s++) {
            root_of(dir, s, root, sizeof root);
            measure(root, times[s], round);
        }
    }
    print_results(bytes, rounds, is_json);
    for (size_t s = 0; s < SHAPES; s++) {
        root_of(dir, s, root, sizeof root);
        bench_remove_root(root);
    }
    return 0;
}
