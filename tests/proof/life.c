#include "proof/life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "checkpoint/care.h"
#include "checkpoint/pins.h"
#include "checkpoint/run.h"

void
life_set(struct life *life, unsigned version)
{
    for (size_t t = 0; t < LIFE_TENSORS; t++) {
        for (size_t i = 0; i < LIFE_VALUES; i++) {
            life->weights[t][i] = (float)version + (float)(t * LIFE_VALUES + i) / 64;
            life->moments[t][i] = -(float)version - (float)(t * LIFE_VALUES + i) / 128;
        }
    }
    life->lr = 1.0 / (1 + version);
    life->tokens = 1000 * (int64_t)version;
    life->optimizer_step = version;
    pawl_pcg32_seed(&life->rng, version, 54);
}

bool
life_is(const struct life *life, unsigned version)
{
    struct life other = { .state = NULL };
    uint64_t state[2], inc[2];
    life_set(&other, version);
    state[0] = life->rng.state;
    state[1] = other.rng.state;
    inc[0] = life->rng.inc;
    inc[1] = other.rng.inc;
    return memcmp(life->weights, other.weights, sizeof other.weights) == 0 &&
           memcmp(life->moments, other.moments, sizeof other.moments) == 0 &&
           memcmp(&life->lr, &other.lr, sizeof other.lr) == 0 && life->tokens == other.tokens &&
           life->optimizer_step == other.optimizer_step && state[0] == state[1] && inc[0] == inc[1];
}

void
life_init(struct life *life, unsigned version)
{
    static const char *const names[LIFE_TENSORS] = { "embed", "fc.weight", "head" };
    static const char *const moments[LIFE_TENSORS] = { "embed.exp_avg", "fc.weight.exp_avg", "head.exp_avg" };
    struct pawl_error err = PAWL_ERROR_INIT;
    *life = (struct life){ .state = NULL };
    life_set(life, version);
    enum pawl_status st = pawl_state_new(&life->state, &err);
    for (size_t t = 0; t < LIFE_TENSORS && st == PAWL_OK; t++) {
        st = pawl_state_tensor(
            life->state, &PAWL_TENSOR(PAWL_MODEL, names[t], PAWL_F32, life->weights[t], 2, LIFE_VALUES / 2), &err);
        if (st == PAWL_OK)
            st = pawl_state_tensor(
                life->state, &PAWL_TENSOR(PAWL_OPTIMIZER, moments[t], PAWL_F32, life->moments[t], 2, LIFE_VALUES / 2),
                &err);
    }
    if (st == PAWL_OK)
        st = pawl_state_optimizer(life->state, "adamw", &err);
    if (st == PAWL_OK)
        st = pawl_state_number(life->state, PAWL_OPTIMIZER, "lr", PAWL_F64, &life->lr, &err);
    if (st == PAWL_OK)
        st = pawl_state_number(life->state, PAWL_OPTIMIZER, "step", PAWL_I64, &life->optimizer_step, &err);
    if (st == PAWL_OK)
        st = pawl_state_number(life->state, PAWL_TRAINER, "tokens_seen", PAWL_I64, &life->tokens, &err);
    if (st == PAWL_OK)
        st = pawl_state_rng(life->state, NULL, &life->rng, &err);
    if (st != PAWL_OK) {
        (void)fprintf(stderr, "describe a run: %s\n", err.message);
        exit(1);
    }
}

void
life_release(struct life *life)
{
    pawl_state_free(life->state);
    life->state = NULL;
}

static enum pawl_status
save(const struct act *act, const struct use *use, const struct pawl_os *os, struct life *life, struct pawl_error *err)
{
    struct pawl_run *run = NULL;
    const struct pawl_run_options options =
        PAWL_RUN_OPTIONS(.keep = use->keep, .max_file_bytes = use->max_file_bytes, .write_sums = use->with_sums);
    enum pawl_status st = pawl_run_open_os(os, pawl_str_z(use->root), &options, &run, err);
    if (st != PAWL_OK)
        return st;
    life_set(life, act->version);
    st = pawl_run_save(run, life->state, act->step, NULL, err);
    (void)pawl_run_close(run, NULL);
    return st;
}

enum pawl_status
act_do(const struct act *act, const struct use *use, const struct pawl_os *os, struct life *life,
       struct pawl_error *err)
{
    struct pawl_str root = pawl_str_z(use->root);
    switch (act->kind) {
    case ACT_SAVE:
        return save(act, use, os, life, err);
    case ACT_PRUNE:
        return pawl_ckpt_prune_os(os, root, &PAWL_PRUNE_OPTIONS(.keep = act->step), NULL, err);
    case ACT_PIN:
        return pawl_ckpt_pin_os(os, root, act->step, true, err);
    case ACT_UNPIN:
        return pawl_ckpt_pin_os(os, root, act->step, false, err);
    case ACT_REPAIR:
        return pawl_ckpt_repair_os(os, root, NULL, NULL, err);
    case ACT_COPY:
        return pawl_ckpt_copy_os(os, pawl_str_z(use->copy_from), pawl_str_z(use->copy_to), NULL, NULL, err);
    }
    return PAWL_ARGUMENT;
}
