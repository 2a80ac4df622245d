/*
 * bench_small: what a tensor costs beside its bytes.
 *
 *     bench_small DIR [--bytes N] [--rounds R] [--json]
 *
 * N bytes (default 64 MiB) as 100 tensors, as 100,000 described in the order of the file, and as 100,000 described in another one (`layers.10`
 * after `layers.9`, addresses shuffled). In each round, of each in turn: describing them, planning a save, the first save of the description
 * and a second one, a verified load from the cache, and opening the step's model file. Medians of the times, and of the ratios to the 100 of the
 * same round. What was written is removed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_tools.h"
#include "checkpoint/parts.h"
#include "cli/limits.h"

#define ROUNDS_MAX 101

enum layout { FEW, MANY, MIXED, LAYOUTS };
static const char *const LAYOUT_NAMES[LAYOUTS] = { "few", "many", "mixed" };
static const size_t TENSORS[LAYOUTS] = { 100, 100000, 100000 };

enum phase { DESCRIBE, PLAN, PLAN_AGAIN, FIRST_SAVE, NEXT_SAVE, LOAD, OPEN, PHASES };
static const char *const PHASE_NAMES[PHASES] = { "describe",  "plan", "plan_again", "first_save",
                                                 "next_save", "load", "open" };

static double times[PHASES][LAYOUTS][ROUNDS_MAX];
static size_t bytes = (size_t)64 << 20;
static unsigned char *data;
static uint32_t *places; /* a shuffle of 0 to 99,999 */
static char root[4200];

static void
die(const char *what, const struct pawl_error *err)
{
    (void)fprintf(stderr, "bench_small: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(1);
}

static void
shuffle(void)
{
    size_t n = TENSORS[MIXED];
    uint32_t random = 1;
    places = malloc(n * sizeof *places);
    if (places == NULL)
        die("memory", NULL);
    for (size_t i = 0; i < n; i++)
        places[i] = (uint32_t)i;
    for (size_t i = n - 1; i > 0; i--) {
        random = random * 1664525 + 1013904223;
        size_t k = (random >> 8) % (i + 1);
        uint32_t swap = places[i];
        places[i] = places[k];
        places[k] = swap;
    }
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
        char name[40];
        size_t place = layout == MIXED ? places[i] : i;
        (void)snprintf(name, sizeof name, layout == MIXED ? "layers.%zu.weight" : "layers.%06zu.weight", i);
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = PAWL_MODEL,
                                      .dtype = PAWL_F32,
                                      .name = pawl_str_z(name),
                                      .rank = 1,
                                      .shape = shape,
                                      .data = data + place * shape[0] * 4 };
        if (pawl_state_tensor(state, &tensor, &err) != PAWL_OK)
            die("tensor", &err);
    }
    return state;
}

static void
plan(struct pawl_state *state)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_parts parts;
    const struct pawl_parts_options options = { .step = 1 };
    if (pawl_parts_plan(&parts, state, &options, &err) != PAWL_OK)
        die("plan", &err);
    pawl_parts_release(&parts);
}

static double
since(double *begin)
{
    double now = limits_now();
    double seconds = now - *begin;
    *begin = now;
    return seconds;
}

/* Both steps, and their root. */
static void
clean(void)
{
    static const char *const FILES[] = { "model.safetensors", "optimizer.safetensors", "trainer_state.json",
                                         "MANIFEST.json" };
    char path[4400];
    for (int step = 1; step <= 2; step++) {
        for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
            (void)snprintf(path, sizeof path, "%s/step-%06d/%s", root, step, FILES[i]);
            (void)unlink(path);
        }
        (void)snprintf(path, sizeof path, "%s/step-%06d", root, step);
        (void)rmdir(path);
    }
    (void)snprintf(path, sizeof path, "%s/LATEST", root);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/LOCK", root);
    (void)unlink(path);
    if (rmdir(root) != 0)
        die("removing what was written", NULL);
}

static void
measure(enum layout layout, size_t round)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    struct pawl_model *model = NULL;
    char path[4400];
    int64_t step;
    if (pawl_run_open_z(root, &PAWL_RUN_OPTIONS(.keep = 3), &run, &err) != PAWL_OK)
        die(root, &err);
    double at = limits_now();
    struct pawl_state *state = describe(layout);
    times[DESCRIBE][layout][round] = since(&at);
    plan(state);
    times[PLAN][layout][round] = since(&at);
    plan(state);
    times[PLAN_AGAIN][layout][round] = since(&at);
    pawl_state_free(state);
    state = describe(layout);
    for (int64_t i = 1; i <= 2; i++) {
        at = limits_now();
        if (pawl_run_save(run, state, i, NULL, &err) != PAWL_OK)
            die("save", &err);
        times[i == 1 ? FIRST_SAVE : NEXT_SAVE][layout][round] = since(&at);
    }
    for (int i = 0; i < 2; i++) { /* into the cache, and from there */
        at = limits_now();
        if (pawl_run_restore(run, state, &step, NULL, &err) != PAWL_OK)
            die("restore", &err);
        times[LOAD][layout][round] = since(&at);
    }
    (void)snprintf(path, sizeof path, "%s/step-000002/model.safetensors", root);
    at = limits_now();
    if (pawl_model_open_z(path, NULL, &model, &err) != PAWL_OK)
        die(path, &err);
    times[OPEN][layout][round] = since(&at);
    pawl_model_close(model);
    pawl_state_free(state);
    (void)pawl_run_close(run, NULL);
    clean();
}

static double
median_ratio(const double *over, const double *under, size_t n)
{
    double ratios[ROUNDS_MAX];
    for (size_t i = 0; i < n; i++)
        ratios[i] = over[i] / under[i];
    return bench_median(ratios, n);
}

static void
report(size_t rounds, int is_json)
{
    (void)printf(
        is_json ? "{\"bytes\": %zu, \"rounds\": %zu, \"phases\": {"
                : "%zu bytes, %zu rounds: ms in 100 tensors, in 100,000, in 100,000 of mixed order; times the 100\n",
        bytes, rounds);
    for (int p = 0; p < PHASES; p++) {
        (void)printf(is_json ? "%s\"%s\": {" : "%s%-10s", is_json && p != 0 ? ", " : "", PHASE_NAMES[p]);
        for (int k = 0; k < LAYOUTS; k++) {
            double ms = bench_median(times[p][k], rounds) * 1e3;
            if (is_json)
                (void)printf("\"%s_ms\": %.3f, ", LAYOUT_NAMES[k], ms);
            else
                (void)printf("  %9.3f", ms);
        }
        double many = median_ratio(times[p][MANY], times[p][FEW], rounds);
        double mixed = median_ratio(times[p][MIXED], times[p][FEW], rounds);
        (void)printf(is_json ? "\"many_to_few\": %.3f, \"mixed_to_few\": %.3f}" : "  %7.2f  %7.2f\n", many, mixed);
    }
    if (is_json)
        (void)printf("}}\n");
}

int
main(int argc, char **argv)
{
    size_t rounds = 9;
    int is_json = 0;
    const char *dir = NULL;
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
    if (dir == NULL || rounds < 1 || rounds > ROUNDS_MAX || bytes < (size_t)1 << 20) {
        (void)fprintf(stderr, "bench_small DIR [--bytes N] [--rounds R] [--json]: N 1 MiB or more, R up to %d\n",
                      ROUNDS_MAX);
        return 2;
    }
    (void)snprintf(root, sizeof root, "%.4000s/bench-small-%ld", dir, (long)getpid());
    data = limits_memory(bytes);
    if (data == NULL)
        die("memory", NULL);
    shuffle();
    for (size_t round = 0; round < rounds; round++)
        for (int k = 0; k < LAYOUTS; k++)
            measure((enum layout)k, round);
    report(rounds, is_json);
    free(places);
    limits_forget(data, bytes);
    return 0;
}
