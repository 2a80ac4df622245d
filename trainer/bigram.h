/*
 * trainer/bigram.h: the smallest language model: a table of 256 rows of logits, row i for what follows byte i.
 *
 * Everything here works on counts of pairs, which are all that the loss and its gradient depend on: a batch is a set of
 * pairs, a file too. So the result does not depend on the order of the windows in a batch, and every sum
 * runs in ascending order of row and column, in double: the same build gives the same bits.
 */
#ifndef TRAINER_BIGRAM_H
#define TRAINER_BIGRAM_H

#include "pawl/pawl.h"

#define BIGRAM_IDS 256
#define BIGRAM_WEIGHTS (BIGRAM_IDS * BIGRAM_IDS)
#define BIGRAM_NAME "bigram.weight"

/* How often byte j follows byte i: of[i][j]. */
struct bigram_counts {
    uint64_t of[BIGRAM_IDS][BIGRAM_IDS];
};

uint64_t bigram_pairs(const struct bigram_counts *counts);

/* Draw the initial weights, normal with deviation 0.02, from stream(seed, 1) of the generator. */
void bigram_init(float weight[BIGRAM_WEIGHTS], uint64_t seed);

/* Log of (count + alpha) / (row's count + 256 alpha), alpha > 0. */
void bigram_from_counts(const struct bigram_counts *counts, double alpha, float weight[BIGRAM_WEIGHTS]);

/* Mean cross-entropy of the pairs, in nats. There must be at least one pair. */
double bigram_loss(const float weight[BIGRAM_WEIGHTS], const struct bigram_counts *counts);

/*
 * The same, and its gradient: (n_i p_ij - c_ij) / pairs, where p is the softmax of row i and n_i the pairs that begin with i.
 * Rows without a pair have the gradient 0.
 */
double bigram_gradient(const float weight[BIGRAM_WEIGHTS], const struct bigram_counts *counts,
                       float gradient[BIGRAM_WEIGHTS]);

/* Softmax of one row over a temperature (> 0): probabilities in double. Returns log of the sum of exponentials of row / temperature. */
double bigram_softmax(const float row[BIGRAM_IDS], double temperature, double probability[BIGRAM_IDS]);

/* SHA-256 over each parameter in order: the bytes of its name, then its F32 data, little-endian, row-major. */
enum pawl_status bigram_sha256(const float weight[BIGRAM_WEIGHTS], char ret_hex[65], struct pawl_error *err);

/*
 * Write a model directory: config.json and model.safetensors, durably, each at once. The directory is made when it is not
 * there. Without `replace` an existing model.safetensors is PAWL_EXISTS.
 */
enum pawl_status bigram_write(const char *dir, const float weight[BIGRAM_WEIGHTS], bool replace,
                              struct pawl_error *err);
/* PAWL_EXISTS, with a hint, when a model is there already: to be asked before the work. */
enum pawl_status bigram_refuse_existing(const char *dir, struct pawl_error *err);
/* The text of config.json, as it stands in a model directory and in each checkpoint. */
struct pawl_str bigram_config(void);

/* Read the weights of a model directory, a checkpoint step or a run. PAWL_CORRUPT ("content") when it is no bigram. */
enum pawl_status bigram_read(const char *dir, float weight[BIGRAM_WEIGHTS], struct pawl_error *err);

#endif
