#include "trainer/optimizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "trainer/fault.h"

const char *
optimizer_name(enum optimizer_kind kind)
{
    return kind == OPTIMIZER_ADAMW ? "adamw" : "sgd";
}

static enum pawl_status
allocate(float **ret, size_t n, struct pawl_error *err)
{
    *ret = calloc(n, sizeof **ret);
    return *ret != NULL ? PAWL_OK : fault_memory(err, n * sizeof **ret);
}

enum pawl_status
optimizer_init(struct optimizer *optimizer, enum optimizer_kind kind, size_t n, double lr, double momentum,
               struct pawl_error *err)
{
    *optimizer = (struct optimizer){ .kind = kind, .n = n, .lr = lr };
    enum pawl_status st = PAWL_OK;
    if (kind == OPTIMIZER_ADAMW) {
        optimizer->weight_decay = 0.01;
        optimizer->betas[0] = 0.9;
        optimizer->betas[1] = 0.999;
        optimizer->eps = 1e-8;
        optimizer->beta_powers[0] = optimizer->beta_powers[1] = 1.0;
        st = allocate(&optimizer->exp_avg, n, err);
        if (st == PAWL_OK)
            st = allocate(&optimizer->exp_avg_sq, n, err);
    } else if (momentum != 0.0) {
        optimizer->momentum = momentum;
        st = allocate(&optimizer->momentum_buffer, n, err);
    }
    if (st != PAWL_OK)
        optimizer_release(optimizer);
    return st;
}

void
optimizer_release(struct optimizer *optimizer)
{
    free(optimizer->exp_avg);
    free(optimizer->exp_avg_sq);
    free(optimizer->momentum_buffer);
    *optimizer = (struct optimizer){ .n = 0 };
}

static enum pawl_status
describe_tensor(struct pawl_state *state, const char *parameter, const char *key, float *data, const uint64_t *shape,
                size_t rank, struct pawl_error *err)
{
    if (data == NULL)
        return PAWL_OK;
    char name[128];
    int n = snprintf(name, sizeof name, "%s.%s", parameter, key);
    struct pawl_tensor tensor = { .size = sizeof tensor,
                                  .slot = PAWL_OPTIMIZER,
                                  .dtype = PAWL_F32,
                                  .name = { name, (size_t)n },
                                  .rank = rank,
                                  .shape = shape,
                                  .data = data };
    return pawl_state_tensor(state, &tensor, err);
}

enum pawl_status
optimizer_describe(struct optimizer *o, struct pawl_state *state, const char *parameter, const uint64_t *shape,
                   size_t rank, struct pawl_error *err)
{
    enum pawl_status st = pawl_state_optimizer(state, optimizer_name(o->kind), err);
    if (st == PAWL_OK)
        st = pawl_state_number(state, PAWL_OPTIMIZER, "step", PAWL_I64, &o->step, err);
    if (st == PAWL_OK)
        st = pawl_state_number(state, PAWL_OPTIMIZER, "lr", PAWL_F64, &o->lr, err);
    if (st == PAWL_OK)
        st = pawl_state_number(state, PAWL_OPTIMIZER, "weight_decay", PAWL_F64, &o->weight_decay, err);
    if (o->kind == OPTIMIZER_ADAMW) {
        if (st == PAWL_OK)
            st = pawl_state_numbers(state, PAWL_OPTIMIZER, "betas", PAWL_F64, o->betas, 2, err);
        if (st == PAWL_OK)
            st = pawl_state_number(state, PAWL_OPTIMIZER, "eps", PAWL_F64, &o->eps, err);
        if (st == PAWL_OK)
            st = pawl_state_numbers(state, PAWL_OPTIMIZER, "beta_powers", PAWL_F64, o->beta_powers, 2, err);
    } else if (st == PAWL_OK) {
        st = pawl_state_number(state, PAWL_OPTIMIZER, "momentum", PAWL_F64, &o->momentum, err);
    }
    if (st == PAWL_OK)
        st = describe_tensor(state, parameter, "exp_avg", o->exp_avg, shape, rank, err);
    if (st == PAWL_OK)
        st = describe_tensor(state, parameter, "exp_avg_sq", o->exp_avg_sq, shape, rank, err);
    if (st == PAWL_OK)
        st = describe_tensor(state, parameter, "momentum_buffer", o->momentum_buffer, shape, rank, err);
    return st;
}

void
optimizer_step(struct optimizer *optimizer, float *weight, const float *gradient)
{
    optimizer->step++;
    if (optimizer->kind == OPTIMIZER_ADAMW)
        adamw_update(optimizer, weight, gradient);
    else
        sgd_update(optimizer, weight, gradient);
}
