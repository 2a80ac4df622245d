/*
 * Models of one file of bytes: by counting, and by gradient descent. Both need the counts of its pairs and nothing else.
 *
 * The descent is Nesterov's accelerated gradient for convex functions ("A method of solving a convex programming problem with convergence
 * rate O(1/k^2)", 1983), with the restart of O'Donoghue and Candes ("Adaptive restart for accelerated gradient schemes",
 * 2015): when the loss rises the momentum is dropped, and when it rises without momentum the step is halved. The Hessian of the
 * cross-entropy of a row by its logits, diag(p) - p p^T, has no eigenvalue above 1/2, and a row counts n_i / n in the mean; so 2 n / max n_i is a
 * step that surely descends, and the default.
 *
 * The goal is the loss of the count model. Its smoothing puts it above the least that the data allow, so a descent that went on would
 * pass it: it ends there, and its last step is shortened to meet it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/bigram.h"
#include "trainer/counts.h"
#include "trainer/signals.h"
#include "trainer/train.h"

#define BISECTIONS 40
#define LOSS_SLACK 1e-6 /* nats: how near the goal the last step ends */

static enum pawl_status
count_data(const char *data, unsigned threads, struct bigram_counts *counts, uint64_t *ret_bytes,
           struct pawl_error *err)
{
    enum pawl_status st = counts_of_file(data, threads, counts, ret_bytes, err);
    if (st == PAWL_OK && *ret_bytes < 2)
        st = fault(err, PAWL_CORRUPT, "too-few-ids", data, "expected 2 bytes or more, found %" PRIu64, *ret_bytes);
    return st;
}

static void
add_result(struct pawl_json *json, const char *out, uint64_t bytes, double nll)
{
    pawl_json_add_object(json);
    pawl_json_add_key_z(json, "out");
    pawl_json_add_string_z(json, out);
    pawl_json_add_key_z(json, "tokens");
    pawl_json_add_u64(json, bytes);
    pawl_json_add_key_z(json, "nll");
    pawl_json_add_f64(json, nll);
    pawl_json_end_object(json);
}

enum pawl_status
train_counts(const struct train_counts_options *options, struct talk *talk, struct pawl_json *result,
             struct pawl_error *err)
{
    enum pawl_status st = options->replace ? PAWL_OK : bigram_refuse_existing(options->out, err);
    if (st != PAWL_OK)
        return st;
    uint64_t bytes;
    struct bigram_counts *counts = malloc(sizeof *counts);
    float *weight = malloc(BIGRAM_WEIGHTS * sizeof *weight);
    if (counts == NULL || weight == NULL)
        st = fault_memory(err, sizeof *counts + BIGRAM_WEIGHTS * sizeof *weight);
    if (st == PAWL_OK)
        st = count_data(options->data, options->threads, counts, &bytes, err);
    if (st == PAWL_OK) {
        bigram_from_counts(counts, options->alpha, weight);
        st = bigram_write(options->out, weight, options->replace, err);
    }
    if (st == PAWL_OK) {
        double nll = bigram_loss(weight, counts);
        talk_line(talk, "%" PRIu64 " bytes, %.6f nats per byte", bytes, nll);
        add_result(result, options->out, bytes, nll);
    }
    free(counts);
    free(weight);
    return st;
}

struct descent {
    const struct bigram_counts *counts;
    double goal;
    double lr;
    double *at;    /* the iterate */
    double *look;  /* where the gradient is taken: beyond `at`, by the momentum */
    float *weight; /* `look`, rounded: what the loss is of */
    float *last;   /* the weights of the step before */
    float *gradient;
    double loss;
};

static double
default_lr(const struct bigram_counts *counts)
{
    uint64_t most = 0;
    for (size_t i = 0; i < BIGRAM_IDS; i++) {
        uint64_t n = 0;
        for (size_t j = 0; j < BIGRAM_IDS; j++)
            n += counts->of[i][j];
        most = n > most ? n : most;
    }
    return 2.0 * (double)bigram_pairs(counts) / (double)most;
}

/* Go back along the last step until the loss is the goal's. */
static void
shorten_last_step(struct descent *d, float *candidate)
{
    double low = 0.0, high = 1.0; /* at low the loss is above the goal, at high it is not */
    float *end = d->gradient;     /* not needed any more */
    memcpy(end, d->weight, BIGRAM_WEIGHTS * sizeof *end);
    for (int i = 0; i < BISECTIONS && d->goal - d->loss > LOSS_SLACK; i++) {
        double middle = (low + high) / 2;
        for (size_t j = 0; j < BIGRAM_WEIGHTS; j++)
            candidate[j] = (float)((double)d->last[j] + middle * ((double)end[j] - (double)d->last[j]));
        double loss = bigram_loss(candidate, d->counts);
        if (loss > d->goal) {
            low = middle;
        } else {
            high = middle;
            d->loss = loss;
            memcpy(d->weight, candidate, BIGRAM_WEIGHTS * sizeof *candidate);
        }
    }
}

/* Returns the steps that were made, fewer than `steps` when the goal was met or a signal came. */
static uint64_t
descend(struct descent *d, uint64_t steps)
{
    double clock = 1.0, loss_before = INFINITY;
    uint64_t since_restart = 0;
    for (uint64_t step = 0;; step++) {
        for (size_t i = 0; i < BIGRAM_WEIGHTS; i++)
            d->weight[i] = (float)d->look[i];
        d->loss = bigram_gradient(d->weight, d->counts, d->gradient);
        if (d->loss <= d->goal || step == steps || signals_pending() != 0)
            return step;
        if (d->loss > loss_before) {
            /* A first step has no momentum: its length is to blame, and it is taken back. */
            if (since_restart == 1) {
                d->lr /= 2;
                for (size_t i = 0; i < BIGRAM_WEIGHTS; i++)
                    d->at[i] = (double)d->last[i];
            }
            memcpy(d->look, d->at, BIGRAM_WEIGHTS * sizeof *d->look);
            clock = 1.0;
            loss_before = INFINITY;
            since_restart = 0;
            continue;
        }
        memcpy(d->last, d->weight, BIGRAM_WEIGHTS * sizeof *d->last);
        loss_before = d->loss;
        since_restart++;
        double next_clock = (1.0 + sqrt(1.0 + 4.0 * clock * clock)) / 2;
        double momentum = (clock - 1.0) / next_clock;
        clock = next_clock;
        for (size_t i = 0; i < BIGRAM_WEIGHTS; i++) {
            double next = d->look[i] - d->lr * (double)d->gradient[i];
            d->look[i] = next + momentum * (next - d->at[i]);
            d->at[i] = next;
        }
    }
}

/* Fills d->weight and d->loss. */
static enum pawl_status
descend_to_goal(struct descent *d, const struct train_raw_options *options, struct talk *talk, struct pawl_error *err)
{
    bigram_from_counts(d->counts, 1.0, d->weight);
    d->goal = bigram_loss(d->weight, d->counts);
    d->lr = options->lr != 0.0 ? options->lr : default_lr(d->counts);
    bigram_init(d->weight, options->seed);
    for (size_t i = 0; i < BIGRAM_WEIGHTS; i++)
        d->look[i] = d->at[i] = (double)d->weight[i];

    float *candidate = malloc(BIGRAM_WEIGHTS * sizeof *candidate);
    if (candidate == NULL)
        return fault_memory(err, BIGRAM_WEIGHTS * sizeof *candidate);
    uint64_t steps = options->steps != 0 ? options->steps : RAW_STEPS_DEFAULT;
    uint64_t made = descend(d, steps);
    int signal_number = signals_pending();
    if (d->loss <= d->goal && made > 0)
        shorten_last_step(d, candidate);
    free(candidate);
    if (signal_number != 0)
        return fault(err, PAWL_INTERRUPTED, "interrupted", NULL, "stopped by %s after step %" PRIu64,
                     signals_name(signal_number), made);
    if (d->loss > d->goal)
        talk_warning(talk,
                     "after %" PRIu64 " steps the loss is %.6f, %.6f above the count model's; more --steps would help",
                     made, d->loss, d->loss - d->goal);
    else
        talk_line(talk, "%" PRIu64 " steps, %.6f nats per byte", made, d->loss);
    return PAWL_OK;
}

static enum pawl_status
train_on_counts(const struct train_raw_options *options, const struct bigram_counts *counts, uint64_t bytes,
                struct talk *talk, struct pawl_json *result, struct pawl_error *err)
{
    double *doubles = calloc(2 * BIGRAM_WEIGHTS, sizeof *doubles);
    float *floats = calloc(3 * BIGRAM_WEIGHTS, sizeof *floats);
    enum pawl_status st = PAWL_OK;
    if (doubles == NULL || floats == NULL) {
        st = fault_memory(err, BIGRAM_WEIGHTS * (2 * sizeof *doubles + 3 * sizeof *floats));
        goto out;
    }
    struct descent d = { .counts = counts,
                         .at = doubles,
                         .look = doubles + BIGRAM_WEIGHTS,
                         .weight = floats,
                         .last = floats + BIGRAM_WEIGHTS,
                         .gradient = floats + 2 * BIGRAM_WEIGHTS };
    st = descend_to_goal(&d, options, talk, err);
    if (st == PAWL_OK)
        st = bigram_write(options->out, d.weight, options->replace, err);
    if (st == PAWL_OK)
        add_result(result, options->out, bytes, d.loss);
out:
    free(doubles);
    free(floats);
    return st;
}

enum pawl_status
train_raw(const struct train_raw_options *options, struct talk *talk, struct pawl_json *result, struct pawl_error *err)
{
    enum pawl_status st = options->replace ? PAWL_OK : bigram_refuse_existing(options->out, err);
    if (st != PAWL_OK)
        return st;
    struct bigram_counts *counts = malloc(sizeof *counts);
    if (counts == NULL)
        return fault_memory(err, sizeof *counts);
    uint64_t bytes;
    st = count_data(options->data, options->threads, counts, &bytes, err);
    if (st == PAWL_OK) {
        signals_catch();
        st = train_on_counts(options, counts, bytes, talk, result, err);
        signals_restore();
    }
    free(counts);
    return st;
}
