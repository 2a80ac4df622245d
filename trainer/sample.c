#include "trainer/sample.h"

#include <inttypes.h>
#include <stdlib.h>

#include "trainer/bigram.h"
#include "trainer/fault.h"

static uint32_t
likeliest(const float row[BIGRAM_IDS])
{
    uint32_t best = 0;
    for (uint32_t j = 1; j < BIGRAM_IDS; j++)
        best = row[j] > row[best] ? j : best;
    return best;
}

static uint32_t
draw(const float row[BIGRAM_IDS], double temperature, struct pawl_pcg32 *rng)
{
    double probability[BIGRAM_IDS], sum = 0.0, u = pawl_pcg32_uniform(rng);
    (void)bigram_softmax(row, temperature, probability);
    uint32_t last = 0;
    for (uint32_t j = 0; j < BIGRAM_IDS; j++) {
        sum += probability[j];
        if (probability[j] > 0.0)
            last = j;
        if (u < sum)
            return j;
    }
    return last; /* rounding left the sum below u */
}

static void
add_generated(struct pawl_json *json, const unsigned char *ids, size_t n)
{
    pawl_json_add_object(json);
    pawl_json_add_key_z(json, "ids");
    pawl_json_add_array(json);
    for (size_t i = 0; i < n; i++)
        pawl_json_add_u64(json, ids[i]);
    pawl_json_end_array(json);
    pawl_json_add_key_z(json, "text");
    pawl_json_add_string(json, (struct pawl_str){ (const char *)ids, n });
    pawl_json_end_object(json);
}

static enum pawl_status
read_weights(const char *model, float **ret_weight, struct pawl_error *err)
{
    float *weight = malloc(BIGRAM_WEIGHTS * sizeof *weight);
    if (weight == NULL)
        return fault_memory(err, BIGRAM_WEIGHTS * sizeof *weight);
    enum pawl_status st = bigram_read(model, weight, err);
    if (st == PAWL_OK)
        *ret_weight = weight;
    else
        free(weight);
    return st;
}

enum pawl_status
sample_generate(const struct sample_options *options, struct pawl_json *result, struct pawl_error *err)
{
    if (options->prompt.len == 0)
        return fault(err, PAWL_ARGUMENT, "argument", NULL, "an empty prompt: a bigram goes on from its last byte");
    if (options->max_tokens > SIZE_MAX - 1)
        return fault(err, PAWL_ARGUMENT, "argument", NULL, "%" PRIu64 " ids are more than memory can hold",
                     options->max_tokens);
    float *weight = NULL;
    enum pawl_status st = read_weights(options->model, &weight, err);
    if (st != PAWL_OK)
        return st;
    size_t n = (size_t)options->max_tokens;
    unsigned char *ids = malloc(n + 1);
    if (ids == NULL) {
        free(weight);
        return fault_memory(err, n + 1);
    }
    struct pawl_pcg32 rng;
    pawl_pcg32_stream(&rng, options->seed, PAWL_PURPOSE_SAMPLE);
    unsigned char last = (unsigned char)options->prompt.data[options->prompt.len - 1];
    for (size_t i = 0; i < n; i++) {
        const float *row = weight + (size_t)last * BIGRAM_IDS;
        last = (unsigned char)(options->greedy ? likeliest(row) : draw(row, options->temperature, &rng));
        ids[i] = last;
    }
    add_generated(result, ids, n);
    free(ids);
    free(weight);
    return PAWL_OK;
}

enum pawl_status
sample_logits(const char *model, struct pawl_str prompt, const uint32_t *prefix_ids, size_t n_prefix,
              struct pawl_json *result, struct pawl_error *err)
{
    if (prompt.len == 0 && n_prefix == 0)
        return fault(err, PAWL_ARGUMENT, "argument", NULL, "an empty prompt: a bigram goes on from its last byte");
    for (size_t i = 0; i < n_prefix; i++) {
        if (prefix_ids[i] >= BIGRAM_IDS)
            return fault(err, PAWL_ARGUMENT, "argument", NULL, "prefix id %" PRIu32 ", the vocabulary has %d",
                         prefix_ids[i], BIGRAM_IDS);
    }
    float *weight = NULL;
    enum pawl_status st = read_weights(model, &weight, err);
    if (st != PAWL_OK)
        return st;
    size_t last = n_prefix > 0 ? prefix_ids[n_prefix - 1] : (unsigned char)prompt.data[prompt.len - 1];
    pawl_json_add_object(result);
    pawl_json_add_key_z(result, "logits");
    pawl_json_add_array(result);
    for (size_t j = 0; j < BIGRAM_IDS; j++)
        pawl_json_add_f64(result, (double)weight[last * BIGRAM_IDS + j]);
    pawl_json_end_array(result);
    pawl_json_end_object(result);
    free(weight);
    return PAWL_OK;
}
