/*
 * trainer/optimizer.h: AdamW and SGD on one F32 parameter. The state is F32 as the parameter is; the arithmetic of one
 * element is double, rounded once into each of its values.
 *
 *     optimizer_init(&optimizer, &settings, n, &err);
 *     optimizer_describe(&optimizer, state, "bigram.weight", shape, 2, &err);   what a checkpoint must keep
 *     while (...) optimizer_step(&optimizer, weight, gradient);
 *     optimizer_release(&optimizer);
 */
#ifndef TRAINER_OPTIMIZER_H
#define TRAINER_OPTIMIZER_H

#include "pawl/pawl.h"

enum optimizer_kind { OPTIMIZER_ADAMW = 1, OPTIMIZER_SGD = 2 };

struct optimizer {
    enum optimizer_kind kind;
    size_t n;     /* elements of the parameter */
    int64_t step; /* updates so far */
    double lr;
    double weight_decay;   /* decoupled: AdamW 0.01, SGD 0 */
    double betas[2], eps;  /* AdamW: 0.9, 0.999 and 1e-8 */
    double beta_powers[2]; /* betas to the power of step, by repeated multiplication: the same bits after a resume */
    double momentum;       /* SGD; 0: no state */
    float *exp_avg, *exp_avg_sq; /* AdamW: n elements each */
    float *momentum_buffer;      /* SGD with momentum: n elements */
};

/* Set the defaults and allocate the state, zeros. lr and momentum are the caller's; momentum is for SGD. */
enum pawl_status optimizer_init(struct optimizer *optimizer, enum optimizer_kind kind, size_t n, double lr,
                                double momentum, struct pawl_error *err);
void optimizer_release(struct optimizer *optimizer);

/* Name everything that a checkpoint must keep: tensors "<parameter>.<key>" and the numbers of the optimizer's slot. */
enum pawl_status optimizer_describe(struct optimizer *optimizer, struct pawl_state *state, const char *parameter,
                                    const uint64_t *shape, size_t rank, struct pawl_error *err);

/* One update of n weights. */
void optimizer_step(struct optimizer *optimizer, float *weight, const float *gradient);

/* "adamw", "sgd". */
const char *optimizer_name(enum optimizer_kind kind);

/* The two formulas; see adamw.c and sgd.c. `step` counts this update already. */
void adamw_update(struct optimizer *optimizer, float *weight, const float *gradient);
void sgd_update(struct optimizer *optimizer, float *weight, const float *gradient);

#endif
