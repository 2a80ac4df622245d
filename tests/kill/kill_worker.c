/*
 * A run like any user's, over the public interface alone: it trains a toy whose every bit follows from its seed, saves after
 * each step, and resumes whatever it finds. It is killed by kill_test at random instants.
 *
 *     kill_worker ROOT STEPS SEED [copy|borrow]
 *
 * With a way of snapshots it saves in the background, back to back: it trains while the step before is written, and the bytes must be
 * the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pawl/run.h"

#define WEIGHTS 4096

static float weights[WEIGHTS], moments[WEIGHTS];
static double lr = 0.125;
static int64_t tokens, optimizer_step;
static struct pawl_pcg32 rng;

static void
die(const struct pawl_error *err)
{
    (void)fprintf(stderr, "kill_worker: %s\n", err->message);
    exit(1);
}

static enum pawl_status
describe(struct pawl_state **ret_state, struct pawl_error *err)
{
    struct pawl_state *state = NULL;
    if (pawl_state_new(&state, err) != PAWL_OK)
        return err->status;
    *ret_state = state;
    if (pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, weights, 64, WEIGHTS / 64), err) != PAWL_OK ||
        pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "w.tied", PAWL_F32, weights, 64, WEIGHTS / 64), err) !=
            PAWL_OK ||
        pawl_state_tensor(state, &PAWL_TENSOR(PAWL_OPTIMIZER, "w.momentum_buffer", PAWL_F32, moments, 64, WEIGHTS / 64),
                          err) != PAWL_OK ||
        pawl_state_optimizer(state, "sgd", err) != PAWL_OK ||
        pawl_state_number(state, PAWL_OPTIMIZER, "lr", PAWL_F64, &lr, err) != PAWL_OK ||
        pawl_state_number(state, PAWL_OPTIMIZER, "step", PAWL_I64, &optimizer_step, err) != PAWL_OK ||
        pawl_state_number(state, PAWL_TRAINER, "tokens_seen", PAWL_I64, &tokens, err) != PAWL_OK)
        return err->status;
    return pawl_state_rng(state, NULL, &rng, err);
}

/* Every value hangs on all that came before, so that nothing can be lost without a trace. */
static void
train(void)
{
    for (size_t i = 0; i < WEIGHTS; i++) {
        float gradient = (float)(pawl_pcg32_normal(&rng) + 0.01 * weights[(i * 31 + 7) % WEIGHTS]);
        moments[i] = 0.9F * moments[i] + gradient;
        weights[i] -= (float)lr * moments[i];
    }
    lr *= 0.99;
    tokens += 17;
    optimizer_step++;
}

int
main(int argc, char **argv)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = NULL;
    struct pawl_run *run = NULL;
    int64_t step = 0;
    if (argc != 4 && argc != 5)
        return 2;
    bool is_async = argc == 5;
    bool is_borrow = is_async && strcmp(argv[4], "borrow") == 0;
    int64_t steps = strtoll(argv[2], NULL, 10);
    pawl_pcg32_seed(&rng, strtoull(argv[3], NULL, 10), 54);

    if (describe(&state, &err) != PAWL_OK ||
        pawl_run_open_z(argv[1],
                        &PAWL_RUN_OPTIONS(.keep = 2, .snapshot = is_borrow ? PAWL_SNAPSHOT_BORROW : PAWL_SNAPSHOT_COPY),
                        &run, &err) != PAWL_OK)
        die(&err);
    enum pawl_status st = pawl_run_restore(run, state, &step, NULL, &err);
    if (st != PAWL_OK && st != PAWL_NOT_FOUND)
        die(&err);
    while (step < steps) {
        train();
        if (!is_async && pawl_run_save(run, state, ++step, NULL, &err) != PAWL_OK)
            die(&err);
        struct pawl_save *save = NULL;
        if (is_async && (pawl_run_save_async(run, state, ++step, NULL, &save, &err) != PAWL_OK ||
                         pawl_save_wait_released(save, -1, &err) != PAWL_OK))
            die(&err);
        pawl_save_release(save);
    }
    if (pawl_run_close(run, &err) != PAWL_OK)
        die(&err);
    pawl_state_free(state);
    return 0;
}
