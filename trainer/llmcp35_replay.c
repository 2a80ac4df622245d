/* One update from a checkpoint, and what it shows. */
#include "trainer/llmcp35_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include "pawl/digest.h"
#include "trainer/fault.h"

/* FNV-1a over the values' bits, little-endian. */
static uint64_t
fingerprint(uint64_t hash, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        unsigned char bytes[8];
        memcpy(&bits, &values[i], sizeof bits);
        for (unsigned k = 0; k < 8; k++)
            bytes[k] = (unsigned char)(bits >> (8 * k));
        hash = pawl_fnv1a(hash, bytes, sizeof bytes);
    }
    return hash;
}

static void
show_named(const struct llmcp35_trace *trace, const char *what, struct pawl_str name, const double *values, size_t n)
{
    char label[320];
    if (trace == NULL)
        return;
    (void)snprintf(label, sizeof label, "%s:%.*s", what, (int)name.len, name.data);
    trace->tensor(trace->context, label, values, n);
}

/* The gradients of a pass over the batch; `pass` holds them. */
static enum pawl_status
differentiate(struct llmcp35_pass *pass, struct pawl_llmcp35_training *training, const struct llmcp35_batch *batch,
              const struct llmcp35_trace *trace, double *ret_loss, double **gradients, struct pawl_error *err)
{
    double *dlogits = NULL;
    enum pawl_status st = llmcp35_pass_begin(pass, training, batch, trace, err);
    if (st == PAWL_OK)
        st = llmcp35_forward(pass, err);
    if (st != PAWL_OK)
        return st;
    const struct llmcp35_sizes *sizes = &pass->sizes;
    if (sizes->layers > 0) {
        llmcp35_show(&pass->work, "rope_cosines", pass->cosines, sizes->tokens * sizes->pairs);
        llmcp35_show(&pass->work, "rope_sines", pass->sines, sizes->tokens * sizes->pairs);
    }
    llmcp35_show(&pass->work, "logits_before", pass->logits, sizes->rows * sizes->vocabulary);
    st = llmcp35_loss(pass, ret_loss, &dlogits, err);
    return st == PAWL_OK ? llmcp35_backward(pass, dlogits, gradients, err) : st;
}

enum pawl_status
llmcp35_gradients(struct pawl_llmcp35_training *training, const struct llmcp35_batch *batch, double *ret_loss,
                  double *const *gradients, struct pawl_error *err)
{
    struct llmcp35_pass pass = { .blocks = NULL };
    size_t n;
    const struct pawl_llmcp35_parameter *parameters = pawl_llmcp35_training_parameters(training, &n);
    double **found = calloc(n, sizeof *found);
    if (found == NULL)
        return fault_memory(err, n * sizeof *found);
    enum pawl_status st = differentiate(&pass, training, batch, NULL, ret_loss, found, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        memcpy(gradients[i], found[i], parameters[i].n * sizeof(double));
    llmcp35_pass_release(&pass);
    free(found);
    return st;
}

/* The logits of the model as it is now. */
static enum pawl_status
look_again(struct pawl_llmcp35_training *training, const struct llmcp35_batch *batch, const struct llmcp35_trace *trace,
           struct llmcp35_replay *replay, struct pawl_error *err)
{
    struct llmcp35_pass pass = { .blocks = NULL };
    enum pawl_status st = llmcp35_pass_begin(&pass, training, batch, NULL, err);
    if (st == PAWL_OK)
        st = llmcp35_forward(&pass, err);
    if (st == PAWL_OK) {
        size_t n = pass.sizes.rows * pass.sizes.vocabulary;
        replay->logits_after = fingerprint(PAWL_FNV1A_BASIS, pass.logits, n);
        if (trace != NULL)
            trace->tensor(trace->context, "logits_after", pass.logits, n);
    }
    llmcp35_pass_release(&pass);
    return st;
}

static void
note_state(const struct pawl_llmcp35_training *training, const struct llmcp35_trace *trace,
           struct llmcp35_replay *replay)
{
    struct pawl_llmcp35_training_facts facts;
    size_t n;
    const struct pawl_llmcp35_parameter *parameters = pawl_llmcp35_training_parameters(training, &n);
    pawl_llmcp35_training_facts(training, &facts);
    replay->parameters_after = PAWL_FNV1A_BASIS;
    replay->moments_after = PAWL_FNV1A_BASIS;
    for (size_t i = 0; i < n; i++) {
        const struct pawl_llmcp35_parameter *p = &parameters[i];
        show_named(trace, "parameter_after", p->name, p->values, p->n);
        show_named(trace, "first_moment_after", p->name, p->first, p->n);
        show_named(trace, "second_moment_after", p->name, p->second, p->n);
        replay->parameters_after = fingerprint(replay->parameters_after, p->values, p->n);
        replay->moments_after = fingerprint(replay->moments_after, p->first, p->n);
        replay->moments_after = fingerprint(replay->moments_after, p->second, p->n);
    }
    replay->beta1_power = facts.beta1_power;
    replay->beta2_power = facts.beta2_power;
    replay->step_after = facts.step;
}

static enum pawl_status
checkpoint_of(const struct pawl_llmcp35_training *training, const struct pawl_llmcp35 *before,
              struct pawl_llmcp35 **ret_after, struct pawl_error *err)
{
    struct pawl_llmcp35_bundle *bundle = NULL;
    struct pawl_llmcp35_facts facts;
    pawl_llmcp35_facts(before, &facts);
    enum pawl_status st = pawl_llmcp35_capture(training, &bundle, err);
    if (st == PAWL_OK)
        st = pawl_llmcp35_new(bundle, facts.tokenizer, facts.rng_state, ret_after, NULL, err);
    if (st != PAWL_OK)
        pawl_llmcp35_bundle_free(bundle);
    return st;
}

enum pawl_status
llmcp35_replay(const struct pawl_llmcp35 *checkpoint, const struct llmcp35_batch *batch, double rate,
               const struct llmcp35_trace *trace, struct llmcp35_replay *ret_replay, struct pawl_llmcp35 **ret_after,
               struct pawl_error *err)
{
    struct pawl_llmcp35_training *training = NULL;
    struct llmcp35_pass pass = { .blocks = NULL };
    struct llmcp35_replay replay = { .gradients = PAWL_FNV1A_BASIS };
    struct pawl_llmcp35_facts facts;
    double **gradients = NULL;
    size_t n;
    enum pawl_status st = pawl_llmcp35_restore(checkpoint, &training, NULL, err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_llmcp35_parameter *parameters = pawl_llmcp35_training_parameters(training, &n);
    gradients = calloc(n, sizeof *gradients);
    st = gradients == NULL ? fault_memory(err, n * sizeof *gradients)
                           : differentiate(&pass, training, batch, trace, &replay.loss, gradients, err);
    if (st != PAWL_OK)
        goto out;
    replay.logits_before = fingerprint(PAWL_FNV1A_BASIS, pass.logits, pass.sizes.rows * pass.sizes.vocabulary);
    for (size_t i = 0; i < n; i++) {
        show_named(trace, "gradient", parameters[i].name, gradients[i], parameters[i].n);
        replay.gradients = fingerprint(replay.gradients, gradients[i], parameters[i].n);
    }
    st = llmcp35_adamw(training, gradients, rate, err);
    if (st != PAWL_OK)
        goto out;
    note_state(training, trace, &replay);
    st = look_again(training, batch, trace, &replay, err);
    if (st != PAWL_OK)
        goto out;
    pawl_llmcp35_facts(checkpoint, &facts);
    replay.next_sampling_draw = pawl_llmcp35_draw(&facts.rng_state);
    if (ret_after != NULL)
        st = checkpoint_of(training, checkpoint, ret_after, err);
    if (st == PAWL_OK)
        *ret_replay = replay;
out:
    llmcp35_pass_release(&pass);
    free(gradients);
    pawl_llmcp35_training_free(training);
    return st;
}
