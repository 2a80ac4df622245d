/*
 * trainer/llmcp35_replay.h: one training update of the model in an LLMCP35 file, in exactly the order of operations of
 * docs/format/llmcp35.md, so that its results can be held against other implementations' bit by bit. Every value is an
 * IEEE 754 double rounded to nearest; exp, log, log1p, pow, sin and cos are the platform's.
 */
#ifndef TRAINER_LLMCP35_REPLAY_H
#define TRAINER_LLMCP35_REPLAY_H

#include "pawl/llmcp35.h"

/* Ids of `batch` sequences in a row, each of n / batch positions. */
struct llmcp35_batch {
    const uint64_t *inputs, *targets; /* n each */
    size_t n;
    size_t batch;
};

/* Called for every intermediate tensor, in the order in which they are worked out; labels as on the page. */
struct llmcp35_trace {
    void (*tensor)(void *context, const char *label, const double *values, size_t n);
    void *context;
};

/* Fingerprints are FNV-1a over the values' bytes. Of the fields that golden/llmcp35/replay.json has. */
struct llmcp35_replay {
    uint64_t logits_before;
    double loss;
    uint64_t gradients, parameters_after, moments_after;
    double beta1_power, beta2_power;
    uint64_t step_after;
    uint64_t logits_after;
    uint64_t next_sampling_draw;
};

/*
 * Restore the checkpoint, work out logits, loss and gradients of the batch, make one AdamW update at `rate` in place of the
 * stored one, and work out the logits again. The checkpoint is left alone.
 *
 * trace      NULL: nobody looks.
 * ret_after  the checkpoint after the update (the generator's state untouched); may be NULL.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT for a batch or rate that the model does not take; PAWL_OUT_OF_RANGE when a value stops
 * being finite, naming it; PAWL_NO_MEMORY; PAWL_UNSUPPORTED in a build that fuses products and sums.
 */
enum pawl_status llmcp35_replay(const struct pawl_llmcp35 *checkpoint, const struct llmcp35_batch *batch, double rate,
                                const struct llmcp35_trace *trace, struct llmcp35_replay *ret_replay,
                                struct pawl_llmcp35 **ret_after, struct pawl_error *err);

/* The loss, and for every parameter in model order its gradient in the caller's memory (as many values as it has). */
enum pawl_status llmcp35_gradients(struct pawl_llmcp35_training *training, const struct llmcp35_batch *batch,
                                   double *ret_loss, double *const *gradients, struct pawl_error *err);

#endif
