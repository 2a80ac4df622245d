/*
 * Stochastic gradient descent, with momentum in the form of PyTorch's torch.optim.SGD (dampening 0, not Nesterov), after
 * Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum in deep learning" (ICML 2013):
 *
 *     w <- w - lr * weight_decay * w                     decoupled, as in AdamW; 0 unless told
 *     b <- momentum * b + g                              b begins at 0, so that the first b is g
 *     w <- w - lr * b                                    without momentum: g in the place of b, and no state
 */
#include "trainer/optimizer.h"

void
sgd_update(struct optimizer *o, float *weight, const float *gradient)
{
    double kept = 1.0 - o->lr * o->weight_decay;
    for (size_t i = 0; i < o->n; i++) {
        double b = (double)gradient[i];
        if (o->momentum_buffer != NULL) {
            b += o->momentum * (double)o->momentum_buffer[i];
            o->momentum_buffer[i] = (float)b;
        }
        weight[i] = (float)((double)weight[i] * kept - o->lr * b);
    }
}
