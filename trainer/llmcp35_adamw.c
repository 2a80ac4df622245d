/* The AdamW update of the replay: worked out beside the state, and taken by the library whole or not at all. */
#include "trainer/llmcp35_inside.h"

#include <stdlib.h>
#include "trainer/fault.h"

static enum pawl_status
check_rate(const struct pawl_llmcp35_adamw *adamw, double rate, struct pawl_error *err)
{
    if (!isfinite(rate) || !(rate > 0))
        return fault(err, PAWL_ARGUMENT, "adamw_config/invalid_learning_rate", NULL,
                     "the rate is %g, expected a finite number above 0", rate);
    double product = rate * adamw->weight_decay;
    if (adamw->weight_decay != 0 && !(isfinite(product) && product > 0 && product < 1))
        return fault(err, PAWL_ARGUMENT, "adamw_config/invalid_decay_product", NULL,
                     "rate %g times weight decay %g is %g, expected a number between 0 and 1", rate,
                     adamw->weight_decay, product);
    return PAWL_OK;
}

/* What is the same for all elements. */
struct step {
    double beta1, beta2, c1, c2, epsilon, rate, weight_decay;
};

static void
update_parameter(struct llmcp35_work *work, const struct step *step, const struct pawl_llmcp35_parameter *parameter,
                 const double *gradient, double *values, double *first, double *second)
{
    const double wd = parameter->is_decayed != 0 ? step->weight_decay : 0.0;
    static const char where[] = "the update";
    for (size_t i = 0; i < parameter->n; i++) {
        const double g = gradient[i], value = parameter->values[i];
        const double m0 = parameter->first != NULL ? parameter->first[i] : 0.0;
        const double v0 = parameter->second != NULL ? parameter->second[i] : 0.0;
        double m = llmcp35_keep(work, where, step->beta1 * m0 + (1.0 - step->beta1) * g);
        double v = llmcp35_keep(work, where, step->beta2 * v0 + (1.0 - step->beta2) * (g * g));
        double direction = llmcp35_keep(work, where,
                                        llmcp35_keep(work, where, m / step->c1) /
                                            (sqrt(llmcp35_keep(work, where, v / step->c2)) + step->epsilon));
        double adaptive = llmcp35_keep(work, where, step->rate * direction);
        double decay = llmcp35_keep(work, where, (step->rate * wd) * value); /* of the value before the update */
        values[i] = llmcp35_keep(work, where, (value - adaptive) - decay);
        first[i] = m;
        second[i] = v;
    }
}

enum pawl_status
llmcp35_adamw(struct pawl_llmcp35_training *training, double *const *gradients, double rate, struct pawl_error *err)
{
    struct pawl_llmcp35_training_facts facts;
    struct llmcp35_work work = { .newest = NULL };
    size_t n;
    const struct pawl_llmcp35_parameter *parameters = pawl_llmcp35_training_parameters(training, &n);
    pawl_llmcp35_training_facts(training, &facts);
    enum pawl_status st = check_rate(&facts.adamw, rate, err);
    if (st != PAWL_OK)
        return st;

    const double **arrays = calloc(3 * n, sizeof *arrays); /* values, first, second: n each */
    if (arrays == NULL)
        return fault_memory(err, 3 * n * sizeof *arrays);
    /* The stored powers go on; they are never worked out anew from the step. */
    const double beta1_power = facts.beta1_power * facts.adamw.beta1;
    const double beta2_power = facts.beta2_power * facts.adamw.beta2;
    const struct step step = { .beta1 = facts.adamw.beta1,
                               .beta2 = facts.adamw.beta2,
                               .c1 = 1.0 - beta1_power,
                               .c2 = 1.0 - beta2_power,
                               .epsilon = facts.adamw.epsilon,
                               .rate = rate,
                               .weight_decay = facts.adamw.weight_decay };
    for (size_t i = 0; i < n && !work.is_short; i++) {
        double *values = llmcp35_take(&work, parameters[i].n, 1);
        double *first = llmcp35_take(&work, parameters[i].n, 1);
        double *second = llmcp35_take(&work, parameters[i].n, 1);
        if (work.is_short)
            break;
        update_parameter(&work, &step, &parameters[i], gradients[i], values, first, second);
        arrays[i] = values;
        arrays[n + i] = first;
        arrays[2 * n + i] = second;
    }
    st = llmcp35_work_status(&work, err);
    if (st == PAWL_OK)
        st = pawl_llmcp35_update(training,
                                 &PAWL_LLMCP35_UPDATE(.values = arrays, .first = arrays + n, .second = arrays + 2 * n,
                                                      .n = n, .beta1_power = beta1_power, .beta2_power = beta2_power),
                                 err);
    llmcp35_work_release(&work);
    free(arrays);
    return st;
}
