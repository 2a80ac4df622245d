/* trainer/sample.h: using a bigram model: what comes next, and texts drawn from it. */
#ifndef TRAINER_SAMPLE_H
#define TRAINER_SAMPLE_H

#include "pawl/pawl.h"

struct sample_options {
    const char *model;      /* directory */
    struct pawl_str prompt; /* at least one byte */
    uint64_t max_tokens;
    bool greedy;        /* the likeliest id, of equal ones the least; no draw */
    double temperature; /* > 0 */
    uint64_t seed;      /* the draws are stream(seed, 4)'s */
};

/* {"ids", "text"}: the ids that follow the prompt, and their bytes as text. */
enum pawl_status sample_generate(const struct sample_options *options, struct pawl_json *result,
                                 struct pawl_error *err);

/* {"logits"}: the 256 logits of what follows the last id of prompt and prefix ids. */
enum pawl_status sample_logits(const char *model, struct pawl_str prompt, const uint32_t *prefix_ids, size_t n_prefix,
                               struct pawl_json *result, struct pawl_error *err);

#endif
