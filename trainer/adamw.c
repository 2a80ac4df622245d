/*
 * AdamW: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (ICLR 2019), algorithm 2 with the schedule
 * multiplier at 1, in the form that PyTorch's torch.optim.AdamW documents:
 *
 *     w <- w - lr * weight_decay * w                     the decay does not pass through the moments
 *     m <- beta1 * m + (1 - beta1) * g
 *     v <- beta2 * v + (1 - beta2) * g * g
 *     w <- w - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * with t = 1 for the first update. weight_decay is 0.01 unless told, as there. The powers of the betas are kept in the
 * state as running products, so that nothing depends on a libm's pow.
 */
#include <math.h>

#include "trainer/optimizer.h"

void
adamw_update(struct optimizer *o, float *weight, const float *gradient)
{
    o->beta_powers[0] *= o->betas[0];
    o->beta_powers[1] *= o->betas[1];
    double kept = 1.0 - o->lr * o->weight_decay;
    double bias1 = 1.0 - o->beta_powers[0], bias2 = 1.0 - o->beta_powers[1];
    for (size_t i = 0; i < o->n; i++) {
        double g = (double)gradient[i];
        double m = o->betas[0] * (double)o->exp_avg[i] + (1.0 - o->betas[0]) * g;
        double v = o->betas[1] * (double)o->exp_avg_sq[i] + (1.0 - o->betas[1]) * g * g;
        o->exp_avg[i] = (float)m;
        o->exp_avg_sq[i] = (float)v;
        weight[i] = (float)((double)weight[i] * kept - o->lr * (m / bias1) / (sqrt(v / bias2) + o->eps));
    }
}
