/*
 * bench_async: what a save in the background costs the loop that asks for it, and when it is durable.
 *
 *     bench_async DIR [--bytes N] [--rounds R] [--json]
 *
 * A state of N bytes (default 1 GiB; 147 tensors, a third of them the model's) is saved under DIR. Each round does, one after the other: one
 * memcpy of the state by all processors into memory that is kept, touched before and on huge pages, which is what a copy can't go
 * below; a save in the foreground; a save in the background with `copy`, and one with `borrow`, of each the stall of the call and the time
 * until durable. The first round counts like the others, and its stall is also shown by itself: nothing is warmed but by pawl_run_prepare.
 * Medians; what was written is removed. Memory: three times N.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "bench_tools.h"
#include "pawl/pawl.h"

#define TENSORS 147
#define ROUNDS_MAX 31
#define THREADS_MAX 64
#define HUGE_BYTES ((size_t)2 << 20)

enum way { MEMCPY, FOREGROUND, COPY_STALL, COPY_DURABLE, BORROW_STALL, BORROW_DURABLE, WAYS };
static const char *const WAY_NAMES[WAYS] = { "memcpy",        "save",          "copy, stall",
                                             "copy, durable", "borrow, stall", "borrow, durable" };
static const char *const WAY_KEYS[WAYS] = { "memcpy",       "save",         "copy_stall",
                                            "copy_durable", "borrow_stall", "borrow_durable" };

static const char *const ROOTS[] = { "bench-save", "bench-copy", "bench-borrow" };

static double times[WAYS][ROUNDS_MAX];

static void
die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_async: %s: %s\n", what, why);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static unsigned char *
take_memory(size_t bytes)
{
    unsigned char *all = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        die("mmap", "no memory");
    all += (HUGE_BYTES - (uintptr_t)all % HUGE_BYTES) % HUGE_BYTES;
    (void)madvise(all, bytes, MADV_HUGEPAGE);
    return all;
}

/* ---- one memcpy by all processors ---- */

struct share {
    const unsigned char *from;
    unsigned char *to;
    size_t bytes;
};

static void *
copy_share(void *context)
{
    const struct share *share = context;
    memcpy(share->to, share->from, share->bytes);
    return NULL;
}

static double
copy_by_all(const unsigned char *from, unsigned char *to, size_t bytes)
{
    struct share shares[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    n = n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
    double begin = now();
    for (long i = 0; i < n; i++) {
        size_t first = bytes / (size_t)n * (size_t)i;
        size_t last = i + 1 == n ? bytes : first + bytes / (size_t)n;
        shares[i] = (struct share){ from + first, to + first, last - first };
        if (i > 0 && pthread_create(&threads[i], NULL, copy_share, &shares[i]) != 0)
            die("pthread_create", "no thread");
    }
    (void)copy_share(&shares[0]);
    for (long i = 1; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    return now() - begin;
}

/* ---- the saves ---- */

static struct pawl_state *
describe(unsigned char *memory, size_t each)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = NULL;
    if (pawl_state_new(&state, &err) != PAWL_OK)
        die("state", err.message);
    for (unsigned i = 0; i < TENSORS; i++) {
        char name[40];
        bool is_model = i % 3 == 0;
        (void)snprintf(name, sizeof name, is_model ? "layer.%03u.weight" : "layer.%03u.weight.exp_avg%s", i / 3,
                       i % 3 == 1 ? "" : "_sq");
        if (pawl_state_tensor(
                state,
                &PAWL_TENSOR(is_model ? PAWL_MODEL : PAWL_OPTIMIZER, name, PAWL_F32, memory + i * each, each / 4),
                &err) != PAWL_OK)
            die(name, err.message);
    }
    if (pawl_state_optimizer(state, "adamw", &err) != PAWL_OK)
        die("state", err.message);
    return state;
}

static struct pawl_run *
open_run(const char *dir, const char *name, enum pawl_snapshot snapshot)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (pawl_run_open_z(path, &PAWL_RUN_OPTIONS(.snapshot = snapshot), &run, &err) != PAWL_OK)
        die(path, err.message);
    return run;
}

static void
save_in_background(struct pawl_run *run, struct pawl_state *state, int64_t step, double *ret_stall, double *ret_durable)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_save *save = NULL;
    double begin = now();
    if (pawl_run_save_async(run, state, step, NULL, &save, &err) != PAWL_OK)
        die("save", err.message);
    *ret_stall = now() - begin;
    if (pawl_save_wait(save, -1, &err) != PAWL_OK)
        die("save", err.message);
    *ret_durable = now() - begin;
    pawl_save_release(save);
    if (pawl_run_wait(run, &err) != PAWL_OK)
        die("wait", err.message);
}

/* Not by the run's retention: deleting takes some filesystems a quarter of the time of the save, and only the one in the foreground waits for it. */
static void
remove_step(const char *dir, const char *root, int64_t step)
{
    static const char *const names[] = { "MANIFEST.json", "model.safetensors", "optimizer.safetensors",
                                         "trainer_state.json" };
    char path[4200], name[32];
    pawl_step_name(step, name);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        (void)snprintf(path, sizeof path, "%s/%s/%s/%s", dir, root, name, names[k]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/%s/%s", dir, root, name);
    (void)rmdir(path);
}

static void
print_result(size_t bytes, unsigned rounds, double first_ratio, bool is_json)
{
    double m[WAYS];
    for (unsigned i = 0; i < WAYS; i++)
        m[i] = bench_median(times[i], rounds);
    double stall = m[COPY_STALL] / m[MEMCPY], durable = m[COPY_DURABLE] / m[FOREGROUND];
    double borrowed = m[BORROW_DURABLE] / m[FOREGROUND];
    if (is_json) {
        (void)printf("{\"bytes\": %zu, \"rounds\": %u, \"seconds\": {", bytes, rounds);
        for (unsigned i = 0; i < WAYS; i++)
            (void)printf("%s\"%s\": %.6f", i == 0 ? "" : ", ", WAY_KEYS[i], m[i]);
        (void)printf("}, \"ratios\": {\"copy_stall_to_memcpy\": %.3f, \"first_copy_stall_to_memcpy\": %.3f, "
                     "\"copy_durable_to_save\": %.3f, \"borrow_durable_to_save\": %.3f}}\n",
                     stall, first_ratio, durable, borrowed);
        return;
    }
    (void)printf("%.2f GiB in %d tensors, medians of %u rounds\n", (double)bytes / (1 << 30), TENSORS, rounds);
    for (unsigned i = 0; i < WAYS; i++)
        (void)printf("  %-16s %10.2f ms  %7.2f GB/s\n", WAY_NAMES[i], m[i] * 1e3, (double)bytes / m[i] * 1e-9);
    (void)printf("stall of copy: %.2f times the memcpy (the first: %.2f); of borrow: %.2f ms\n", stall, first_ratio,
                 m[BORROW_STALL] * 1e3);
    (void)printf("until durable: %.2f times the save in the foreground with copy, %.2f with borrow\n", durable,
                 borrowed);
}

int
main(int argc, char **argv)
{
    const char *dir = NULL;
    size_t bytes = (size_t)1 << 30;
    unsigned rounds = 7;
    bool is_json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (dir == NULL && argv[i][0] != '-')
            dir = argv[i];
        else
            die(argv[i], "bench_async DIR [--bytes N] [--rounds R] [--json]");
    }
    size_t each = bytes / TENSORS / 4 * 4;
    if (dir == NULL || rounds < 1 || rounds > ROUNDS_MAX || each == 0)
        die("usage", "bench_async DIR [--bytes N] [--rounds 1 ... 31] [--json]");
    bytes = each * TENSORS;

    struct pawl_error err = PAWL_ERROR_INIT;
    unsigned char *memory = take_memory(bytes), *kept = take_memory(bytes);
    uint64_t random = 1;
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t word = pawl_splitmix64_next(&random) & UINT64_C(0x3fffffff3fffffff); /* finite floats */
        memcpy(memory + at, &word, 8);
    }
    memset(kept, 1, bytes);
    struct pawl_state *state = describe(memory, each);
    struct pawl_run *foreground = open_run(dir, ROOTS[0], PAWL_SNAPSHOT_COPY);
    struct pawl_run *copy = open_run(dir, ROOTS[1], PAWL_SNAPSHOT_COPY);
    struct pawl_run *borrow = open_run(dir, ROOTS[2], PAWL_SNAPSHOT_BORROW);
    if (pawl_run_prepare(copy, state, &err) != PAWL_OK || pawl_run_prepare(borrow, state, &err) != PAWL_OK)
        die("prepare", err.message);
    for (unsigned r = 0; r < rounds; r++) {
        times[MEMCPY][r] = copy_by_all(memory, kept, bytes);
        save_in_background(copy, state, r, &times[COPY_STALL][r], &times[COPY_DURABLE][r]);
        remove_step(dir, ROOTS[1], r);
        double begin = now();
        if (pawl_run_save(foreground, state, r, NULL, &err) != PAWL_OK)
            die("save", err.message);
        times[FOREGROUND][r] = now() - begin;
        remove_step(dir, ROOTS[0], r);
        save_in_background(borrow, state, r, &times[BORROW_STALL][r], &times[BORROW_DURABLE][r]);
        remove_step(dir, ROOTS[2], r);
    }
    double first_ratio = times[COPY_STALL][0] / bench_median(times[MEMCPY], rounds);
    print_result(bytes, rounds, first_ratio, is_json);
    if (pawl_run_close(foreground, &err) != PAWL_OK || pawl_run_close(copy, &err) != PAWL_OK ||
        pawl_run_close(borrow, &err) != PAWL_OK)
        die("close", err.message);
    pawl_state_free(state);
    for (size_t i = 0; i < 3; i++) {
        char path[4200];
        (void)snprintf(path, sizeof path, "%s/%s/LATEST", dir, ROOTS[i]);
        (void)unlink(path);
        (void)snprintf(path, sizeof path, "%s/%s", dir, ROOTS[i]);
        (void)rmdir(path);
    }
    return 0;
}
