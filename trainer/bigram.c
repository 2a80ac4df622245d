#include "trainer/bigram.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/fault.h"
#include "trainer/files.h"

#if defined(__FAST_MATH__)
#error "bits are promised: -ffast-math would change them"
#endif

#define INIT_DEVIATION 0.02

uint64_t
bigram_pairs(const struct bigram_counts *counts)
{
    uint64_t n = 0;
    for (size_t i = 0; i < BIGRAM_IDS; i++) {
        for (size_t j = 0; j < BIGRAM_IDS; j++)
            n += counts->of[i][j];
    }
    return n;
}

static uint64_t
row_pairs(const uint64_t row[BIGRAM_IDS])
{
    uint64_t n = 0;
    for (size_t j = 0; j < BIGRAM_IDS; j++)
        n += row[j];
    return n;
}

void
bigram_init(float weight[BIGRAM_WEIGHTS], uint64_t seed)
{
    struct pawl_pcg32 rng;
    pawl_pcg32_stream(&rng, seed, PAWL_PURPOSE_INIT);
    for (size_t i = 0; i < BIGRAM_WEIGHTS; i++)
        weight[i] = (float)(INIT_DEVIATION * pawl_pcg32_normal(&rng));
}

void
bigram_from_counts(const struct bigram_counts *counts, double alpha, float weight[BIGRAM_WEIGHTS])
{
    for (size_t i = 0; i < BIGRAM_IDS; i++) {
        double whole = (double)row_pairs(counts->of[i]) + alpha * BIGRAM_IDS;
        for (size_t j = 0; j < BIGRAM_IDS; j++)
            weight[i * BIGRAM_IDS + j] = (float)log(((double)counts->of[i][j] + alpha) / whole);
    }
}

double
bigram_softmax(const float row[BIGRAM_IDS], double temperature, double probability[BIGRAM_IDS])
{
    double top = (double)row[0] / temperature;
    for (size_t j = 0; j < BIGRAM_IDS; j++) {
        double x = (double)row[j] / temperature;
        top = x > top ? x : top;
    }
    double sum = 0.0;
    for (size_t j = 0; j < BIGRAM_IDS; j++) {
        probability[j] = exp((double)row[j] / temperature - top);
        sum += probability[j];
    }
    for (size_t j = 0; j < BIGRAM_IDS; j++)
        probability[j] /= sum;
    return top + log(sum);
}

double
bigram_gradient(const float weight[BIGRAM_WEIGHTS], const struct bigram_counts *counts, float gradient[BIGRAM_WEIGHTS])
{
    double pairs = (double)bigram_pairs(counts), loss = 0.0;
    for (size_t i = 0; i < BIGRAM_IDS; i++) {
        const float *row = weight + i * BIGRAM_IDS;
        float *out = gradient != NULL ? gradient + i * BIGRAM_IDS : NULL;
        double n = (double)row_pairs(counts->of[i]), probability[BIGRAM_IDS];
        if (n == 0.0) {
            if (out != NULL)
                memset(out, 0, BIGRAM_IDS * sizeof *out);
            continue;
        }
        double log_sum = bigram_softmax(row, 1.0, probability);
        for (size_t j = 0; j < BIGRAM_IDS; j++) {
            double c = (double)counts->of[i][j];
            loss += c * (log_sum - (double)row[j]);
            if (out != NULL)
                out[j] = (float)((n * probability[j] - c) / pairs);
        }
    }
    return loss / pairs;
}

double
bigram_loss(const float weight[BIGRAM_WEIGHTS], const struct bigram_counts *counts)
{
    return bigram_gradient(weight, counts, NULL);
}

enum pawl_status
bigram_sha256(const float weight[BIGRAM_WEIGHTS], char ret_hex[65], struct pawl_error *err)
{
    struct pawl_sha256 *hash;
    enum pawl_status st = pawl_sha256_new(&hash, err);
    if (st != PAWL_OK)
        return st;
    pawl_sha256_update(hash, BIGRAM_NAME, strlen(BIGRAM_NAME));
    for (size_t i = 0; i < BIGRAM_IDS; i++) {
        unsigned char bytes[BIGRAM_IDS * 4];
        for (size_t j = 0; j < BIGRAM_IDS; j++) {
            uint32_t bits;
            memcpy(&bits, &weight[i * BIGRAM_IDS + j], sizeof bits);
            for (size_t k = 0; k < 4; k++)
                bytes[j * 4 + k] = (unsigned char)(bits >> (8 * k));
        }
        pawl_sha256_update(hash, bytes, sizeof bytes);
    }
    unsigned char digest[32];
    pawl_sha256_finish(hash, digest);
    pawl_sha256_free(hash);
    pawl_sha256_print(digest, ret_hex);
    return PAWL_OK;
}

struct pawl_str
bigram_config(void)
{
    /* The JSON of every text file that Pawl writes: two spaces, one line for each key, a line end. */
    return pawl_str_z("{\n  \"tl_arch\": \"bigram\",\n  \"tl_tokenizer\": \"bytes\",\n  \"vocab_size\": 256,\n"
                      "  \"tl_format\": 1\n}\n");
}

enum pawl_status
bigram_refuse_existing(const char *dir, struct pawl_error *err)
{
    char path[FILES_PATH_MAX];
    enum pawl_status st = files_join(dir, "model.safetensors", path, err);
    if (st == PAWL_OK && files_exist(path)) {
        st = fault(err, PAWL_EXISTS, "exists", path, "a model is there already");
        fault_hint(err, "--force replaces it");
    }
    return st;
}

enum pawl_status
bigram_write(const char *dir, const float weight[BIGRAM_WEIGHTS], bool replace, struct pawl_error *err)
{
    enum pawl_status st = files_make_directories(dir, err);
    if (st == PAWL_OK && !replace)
        st = bigram_refuse_existing(dir, err);
    if (st == PAWL_OK)
        st = files_publish(dir, "config.json", bigram_config(), err);
    if (st != PAWL_OK)
        return st;
    char path[FILES_PATH_MAX];
    st = files_join(dir, "model.safetensors", path, err);
    if (st != PAWL_OK)
        return st;
    /* A save only reads the tensor; the interface has one struct for both ways. */
    struct pawl_tensor tensor = PAWL_TENSOR(PAWL_MODEL, BIGRAM_NAME, PAWL_F32, (void *)weight, BIGRAM_IDS, BIGRAM_IDS);
    struct pawl_pair metadata = { pawl_str_z("format"), pawl_str_z("tinyllm") };
    return pawl_safetensors_write(
        pawl_str_z(path), &tensor, 1,
        &PAWL_WRITE_OPTIONS(.metadata = &metadata, .n_metadata = 1, .has_metadata = 1, .keep_existing = !replace), err);
}

enum pawl_status
bigram_read(const char *dir, float weight[BIGRAM_WEIGHTS], struct pawl_error *err)
{
    struct pawl_model *model = NULL;
    enum pawl_status st = pawl_model_open_z(dir, NULL, &model, err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_tensor_info *tensor = pawl_model_find(model, pawl_str_z(BIGRAM_NAME));
    if (tensor == NULL) {
        st = fault(err, PAWL_CORRUPT, "content", dir, "expected a bigram model, found no tensor %s", BIGRAM_NAME);
    } else if (tensor->dtype != PAWL_F32 || tensor->rank != 2 || tensor->shape[0] != BIGRAM_IDS ||
               tensor->shape[1] != BIGRAM_IDS) {
        char shape[64] = "";
        for (uint32_t i = 0, used = 0; i < tensor->rank && i < 2; i++)
            used += (uint32_t)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64, i > 0 ? ", " : "",
                                       tensor->shape[i]);
        st = fault(err, PAWL_CORRUPT, "content", dir, "expected %s as F32 [256, 256], found %s [%s%s]", BIGRAM_NAME,
                   pawl_dtype_name(tensor->dtype), shape, tensor->rank > 2 ? ", ..." : "");
    } else {
        st = pawl_model_read(model, tensor, PAWL_F32, weight, BIGRAM_WEIGHTS * sizeof *weight, err);
    }
    pawl_model_close(model);
    return st;
}
