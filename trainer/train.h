/*
 * trainer/train.h: the three ways to make a bigram model. Each writes a model directory and puts the object that the
 * program prints last into `result`. They talk on stderr, catch SIGTERM and SIGINT while they run, and never exit
 * (failpoints and a second signal do).
 */
#ifndef TRAINER_TRAIN_H
#define TRAINER_TRAIN_H

#include "trainer/failpoints.h"
#include "trainer/optimizer.h"
#include "trainer/talk.h"

struct train_counts_options {
    const char *data, *out;
    double alpha;     /* > 0 */
    unsigned threads; /* 0: what the machine has */
    bool replace;     /* a model that is there */
};

/* Count the pairs of a file: {"out", "tokens", "nll"}. PAWL_CORRUPT ("too-few-ids") for a file without a pair. */
enum pawl_status train_counts(const struct train_counts_options *options, struct talk *talk, struct pawl_json *result,
                              struct pawl_error *err);

struct train_raw_options {
    const char *data, *out;
    uint64_t seed;
    uint64_t steps; /* at most; 0: RAW_STEPS_DEFAULT */
    double lr;      /* 0: the largest step that is sure to descend, by the data */
    unsigned threads;
    bool replace;
};
#define RAW_STEPS_DEFAULT 20000

/*
 * Full-batch gradient descent on the mean cross-entropy of every pair of a file, until it has come down to the loss of the
 * count model (alpha 1) of the same file: {"out", "tokens", "nll"}. A warning says so when the steps did not suffice.
 * PAWL_INTERRUPTED after a signal: nothing is written.
 */
enum pawl_status train_raw(const struct train_raw_options *options, struct talk *talk, struct pawl_json *result,
                           struct pawl_error *err);

struct train_shards_options {
    const char *const *data; /* token PATHs */
    size_t n_data;
    const char *out;
    const char *split;                              /* NULL: train */
    uint64_t max_steps, batch, seq_len, ckpt_every; /* each at least 1 */
    bool has_seed;                                  /* then a checkpoint of another one is refused */
    uint64_t seed;
    enum optimizer_kind optimizer;
    bool has_lr; /* then lr also replaces the one of a checkpoint */
    double lr, momentum;
    int64_t keep; /* 0: all */
    bool resume;
    const char *resume_from; /* NULL: the run's own root */
    bool replace;
    const char *progress; /* NULL: none */
    bool async;           /* the run goes on while a checkpoint is written */
    bool sums;            /* each checkpoint has pawl.sums */
};
#define TRAIN_LR_ADAMW 0.03
#define TRAIN_LR_SGD 3.0

/*
 * Mini-batches from token shards with checkpoints under OUT/ckpt: the object of final.json. PAWL_EXISTS in a root that has
 * steps, without `resume`; PAWL_INTERRUPTED after a signal, when the checkpoint is durable; PAWL_MISMATCH for a checkpoint of other
 * shards, another optimizer, another batch or another seed.
 */
enum pawl_status train_shards(const struct train_shards_options *options, struct failpoints *failpoints,
                              struct talk *talk, struct pawl_json *result, struct pawl_error *err);

/* "0x1.8000000000000p+0": 13 digits behind the point; "0x0.0p+0" for zero; "nan", "inf", "-inf". */
void train_print_hex(double value, char ret_text[32]);

#endif
