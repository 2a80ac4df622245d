/* The bigram: counting against a slow reference, the loss and its gradient against finite differences, samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/bigram.h"
#include "trainer/counts.h"
#include "trainer/sample.h"
#include "trainer/train.h"

#define BLOCK (256u << 10) /* what the counter reads at a time */

static void
write_file(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* One pair at a time, by its two bytes. */
static struct bigram_counts *
slow_counts(const unsigned char *bytes, size_t n)
{
    struct bigram_counts *counts = calloc(1, sizeof *counts);
    assert_non_null(counts);
    for (size_t i = 1; i < n; i++)
        counts->of[bytes[i - 1]][bytes[i]]++;
    return counts;
}

static void
check_counts(const unsigned char *bytes, size_t n, unsigned threads)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct bigram_counts *want = slow_counts(bytes, n), *found = malloc(sizeof *found);
    uint64_t read = 0;
    assert_non_null(found);
    memset(found, 0xa5, sizeof *found);
    write_file("counts.bin", bytes, n);
    assert_int_equal(counts_of_file("counts.bin", threads, found, &read, &err), PAWL_OK);
    assert_int_equal(read, n);
    assert_memory_equal(found, want, sizeof *want);
    free(want);
    free(found);
}

/*
 * Goal: no pair is lost, doubled or turned round, wherever it lies. Method: a slow reference, on sizes around a word, a block and
 * a thread's part, on bytes that repeat (counted eight at a time) and that do not.
 */
static void
test_counts(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0,  1,    2,         3,     8,         9,         10,           16,
                                    17, 1000, BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 2, 3 * BLOCK + 7 };
    unsigned char *bytes = malloc(3 * BLOCK + 7);
    assert_non_null(bytes);
    struct pawl_pcg32 rng;
    printf("seed 11\n");
    for (unsigned kind = 0; kind < 4; kind++) {
        pawl_pcg32_seed(&rng, 11, kind);
        for (size_t i = 0; i < 3 * BLOCK + 7; i++) {
            uint32_t draw = pawl_pcg32_next(&rng);
            unsigned char before = i > 0 ? bytes[i - 1] : 0;
            bytes[i] = kind == 0   ? (unsigned char)(draw >> 24)                             /* all pairs */
                       : kind == 1 ? (unsigned char)(draw >> 30)                             /* few */
                       : kind == 2 ? (draw % 50 == 0 ? (unsigned char)(draw >> 16) : before) /* runs */
                                   : (unsigned char)(i % 2 * 255);
        }
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check_counts(bytes, sizes[i], 1);
    }
    free(bytes);
}

/* Goal: pairs across the parts of two threads are counted once. Method: files of a few MiB, on 1 ... 5 threads. */
static void
test_counts_on_threads(void **state)
{
    (void)state;
    size_t n = (21u << 20) + 5;
    unsigned char *bytes = malloc(n);
    assert_non_null(bytes);
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 12, 0);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(pawl_pcg32_next(&rng) >> 24);
    for (unsigned threads = 0; threads <= 5; threads++)
        check_counts(bytes, n, threads);
    free(bytes);
}

struct writer {
    const unsigned char *bytes;
    size_t n;
};

static void *
write_fifo(void *argument)
{
    const struct writer *writer = argument;
    FILE *file = fopen("fifo", "wb");
    for (size_t at = 0; file != NULL && at < writer->n; at += 777) {
        size_t n = writer->n - at < 777 ? writer->n - at : 777;
        (void)fwrite(writer->bytes + at, 1, n, file);
        (void)fflush(file);
    }
    if (file != NULL)
        (void)fclose(file);
    return NULL;
}

/* Goal: short reads lose no pair. Method: a FIFO that gives 777 bytes at a time. */
static void
test_counts_of_fifo(void **state)
{
    (void)state;
    unsigned char bytes[20001];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * i >> 3);
    struct bigram_counts *want = slow_counts(bytes, sizeof bytes), *found = malloc(sizeof *found);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct writer writer = { bytes, sizeof bytes };
    pthread_t thread;
    uint64_t read = 0;
    (void)unlink("fifo");
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_fifo, &writer), 0);
    assert_int_equal(counts_of_file("fifo", 4, found, &read, &err), PAWL_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(read, sizeof bytes);
    assert_memory_equal(found, want, sizeof *want);
    free(want);
    free(found);
}

static void
random_weights(float *weight, uint64_t seed)
{
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, seed, 1);
    for (size_t i = 0; i < BIGRAM_WEIGHTS; i++)
        weight[i] = (float)pawl_pcg32_normal(&rng);
}

/* Goal: the count model is the smoothed frequencies. Method: by hand, and rows sum to 1. */
static void
test_from_counts(void **state)
{
    (void)state;
    struct bigram_counts *counts = slow_counts((const unsigned char *)"abab", 4);
    float *weight = malloc(BIGRAM_WEIGHTS * sizeof *weight);
    bigram_from_counts(counts, 1.0, weight);
    assert_float_equal(weight['a' * 256 + 'b'], logf(3.0f / 258.0f), 1e-6);
    assert_float_equal(weight['b' * 256 + 'a'], logf(2.0f / 257.0f), 1e-6);
    assert_float_equal(weight[0], logf(1.0f / 256.0f), 1e-6);
    bigram_from_counts(counts, 0.25, weight);
    assert_float_equal(weight['a' * 256 + 'b'], logf(2.25f / 66.0f), 1e-6);
    for (size_t i = 0; i < 256; i++) {
        double sum = 0;
        for (size_t j = 0; j < 256; j++)
            sum += exp((double)weight[i * 256 + j]);
        assert_true(fabs(sum - 1.0) < 1e-5);
    }
    free(weight);
    free(counts);
}

/* Goal: the gradient is that of the loss. Method: central differences of the loss, at weights with and without pairs. */
static void
test_gradient(void **state)
{
    (void)state;
    struct bigram_counts *counts = slow_counts((const unsigned char *)"the cat sat on the mat", 22);
    float *weight = malloc(BIGRAM_WEIGHTS * sizeof *weight), *gradient = malloc(BIGRAM_WEIGHTS * sizeof *gradient);
    random_weights(weight, 5);
    double loss = bigram_gradient(weight, counts, gradient);
    assert_true(loss == bigram_loss(weight, counts));
    static const unsigned places[][2] = { { 't', 'h' }, { 't', ' ' }, { 'a', 't' },
                                          { ' ', 'q' }, { 'z', 'z' }, { 'e', 0 } };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t at = places[i][0] * 256 + places[i][1];
        float kept = weight[at], step = 0.0078125f;
        weight[at] = kept + step;
        double up = bigram_loss(weight, counts);
        weight[at] = kept - step;
        double down = bigram_loss(weight, counts);
        weight[at] = kept;
        double slope = (up - down) / (2.0 * (double)step);
        assert_true(fabs(slope - (double)gradient[at]) < 1e-6 + 1e-4 * fabs(slope));
    }
    assert_true(gradient['z' * 256 + 'z'] == 0.0f);
    free(weight);
    free(gradient);
    free(counts);
}

/* Goal: large logits neither overflow nor give NaN. */
static void
test_softmax_of_large_logits(void **state)
{
    (void)state;
    float row[256];
    double probability[256];
    for (size_t j = 0; j < 256; j++)
        row[j] = j == 7 ? 3e38f : -3e38f;
    double log_sum = bigram_softmax(row, 1.0, probability);
    assert_true(probability[7] == 1.0 && probability[8] == 0.0);
    assert_true(log_sum == (double)3e38f);
    for (size_t j = 0; j < 256; j++)
        row[j] = 1000.0f;
    log_sum = bigram_softmax(row, 2.0, probability);
    assert_true(fabs(log_sum - (500.0 + log(256.0))) < 1e-9);
    assert_true(fabs(probability[0] - 1.0 / 256) < 1e-15);
}

/* Goal: seeds are streams of purpose 1: another seed or purpose gives other weights, the same gives the same. */
static void
test_init(void **state)
{
    (void)state;
    float *a = malloc(BIGRAM_WEIGHTS * sizeof *a), *b = malloc(BIGRAM_WEIGHTS * sizeof *b);
    struct pawl_pcg32 rng;
    bigram_init(a, 42);
    pawl_pcg32_stream(&rng, 42, 1);
    for (size_t i = 0; i < 5; i++)
        assert_true(a[i] == (float)(0.02 * pawl_pcg32_normal(&rng)));
    bigram_init(b, 42);
    assert_memory_equal(a, b, BIGRAM_WEIGHTS * sizeof *a);
    bigram_init(b, 43);
    assert_memory_not_equal(a, b, BIGRAM_WEIGHTS * sizeof *a);
    free(a);
    free(b);
}

/* Goal: the digest is over the name and then the little-endian data. Method: of zeros, by coreutils. */
static void
test_digest(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    float *weight = calloc(BIGRAM_WEIGHTS, sizeof *weight);
    char hex[65], want[65];
    unsigned char digest[32];
    size_t n = strlen(BIGRAM_NAME);
    unsigned char *bytes = calloc(1, n + BIGRAM_WEIGHTS * 4);
    memcpy(bytes, BIGRAM_NAME, n);
    weight[1] = 1.0f; /* 00 00 80 3f */
    bytes[n + 6] = 0x80;
    bytes[n + 7] = 0x3f;
    assert_int_equal(bigram_sha256(weight, hex, &err), PAWL_OK);
    assert_int_equal(pawl_sha256_of(bytes, n + BIGRAM_WEIGHTS * 4, digest, &err), PAWL_OK);
    pawl_sha256_print(digest, want);
    assert_string_equal(hex, want);
    free(weight);
    free(bytes);
}

/* Goal: loss_hex is C99's, always with 13 digits, and its own spelling of zero. */
static void
test_hex(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = { { 0.0, "0x0.0p+0" },
                 { 1.0, "0x1.0000000000000p+0" },
                 { 1.5, "0x1.8000000000000p+0" },
                 { 0.1, "0x1.999999999999ap-4" },
                 { 5.545177444479562, "0x1.62e42fefa39efp+2" },
                 { 5e-324, "0x0.0000000000001p-1022" },
                 { -2.0, "-0x1.0000000000000p+1" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        train_print_hex(rows[i].value, text);
        assert_string_equal(text, rows[i].text);
    }
}

static double
nll_of(struct pawl_json *json)
{
    struct pawl_str text;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_json_text(json, &text, &err), PAWL_OK);
    const char *at = strstr(text.data, "\"nll\": ");
    assert_non_null(at);
    double nll = strtod(at + 7, NULL);
    pawl_json_clear(json);
    return nll;
}

/*
 * Goal: full-batch descent reaches the count model's loss within 1e-3 nats per byte, and does not pass it, whatever the file
 * and the learning rate. Method: files of one pair, of few bytes, of all bytes, of a steep distribution.
 */
static void
test_descent_reaches_counts(void **state)
{
    (void)state;
    unsigned char *bytes = malloc(20000);
    struct pawl_json *json;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct talk talk = { .who = "test", .is_quiet = true };
    assert_int_equal(pawl_json_new(PAWL_JSON_SPACED, PAWL_JSON_RAW, &json, &err), PAWL_OK);
    for (unsigned kind = 0; kind < 4; kind++) {
        size_t n = kind == 0 ? 2 : kind == 1 ? 9 : 20000;
        struct pawl_pcg32 rng;
        pawl_pcg32_seed(&rng, 3, kind);
        for (size_t i = 0; i < n; i++) {
            double u = pawl_pcg32_uniform(&rng);
            bytes[i] = (unsigned char)(kind == 3 ? 255.0 * u * u * u * u : 255.0 * u);
        }
        write_file("descent.txt", bytes, n);
        struct train_counts_options by_counts = { "descent.txt", "by-counts", 1.0, 1, true };
        assert_int_equal(train_counts(&by_counts, &talk, json, &err), PAWL_OK);
        double goal = nll_of(json);
        for (unsigned i = 0; i < 3; i++) {
            struct train_raw_options by_descent = {
                "descent.txt", "by-descent", 9, 0, i == 0 ? 0.0 : i == 1 ? 5.0 : 60.0, 1, true
            };
            assert_int_equal(train_raw(&by_descent, &talk, json, &err), PAWL_OK);
            assert_true(fabs(nll_of(json) - goal) < 1e-3);
        }
    }
    free(bytes);
    pawl_json_free(json);
}

/* Goal: what is written is read back bit for bit, and a model that is there is not replaced unasked. */
static void
test_write_and_read(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    float *weight = malloc(BIGRAM_WEIGHTS * sizeof *weight), *read = malloc(BIGRAM_WEIGHTS * sizeof *read);
    random_weights(weight, 8);
    assert_int_equal(bigram_write("model/a/b", weight, true, &err), PAWL_OK);
    assert_int_equal(bigram_read("model/a/b", read, &err), PAWL_OK);
    assert_memory_equal(weight, read, BIGRAM_WEIGHTS * sizeof *weight);
    assert_int_equal(bigram_write("model/a/b", weight, false, &err), PAWL_EXISTS);
    assert_string_equal(err.code, "exists");
    assert_string_equal(err.message, "a model is there already");
    assert_string_equal(err.path, "model/a/b/model.safetensors");
    free(weight);
    free(read);
}

/* Goal: draws follow the softmax at their temperature. Method: 20,000 ids of a two-way row, frequencies within 4 deviations. */
static void
test_samples(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    float *weight = malloc(BIGRAM_WEIGHTS * sizeof *weight);
    struct pawl_json *json;
    assert_int_equal(pawl_json_new(PAWL_JSON_COMPACT, PAWL_JSON_RAW, &json, &err), PAWL_OK);
    for (size_t i = 0; i < BIGRAM_WEIGHTS; i++)
        weight[i] = i % 256 == 'x' ? 2.0f : i % 256 == 'y' ? 0.0f : -1e30f;
    assert_int_equal(bigram_write("samples", weight, true, &err), PAWL_OK);
    for (unsigned i = 0; i < 2; i++) {
        double temperature = i == 0 ? 1.0 : 4.0, p = 1.0 / (1.0 + exp(-2.0 / temperature));
        struct sample_options options = { "samples", { "x", 1 }, 20000, false, temperature, 5 };
        struct pawl_str text;
        assert_int_equal(sample_generate(&options, json, &err), PAWL_OK);
        assert_int_equal(pawl_json_text(json, &text, &err), PAWL_OK);
        const char *made = strstr(text.data, "\"text\":\"") + 8;
        size_t n = 0;
        for (size_t k = 0; k < 20000; k++) {
            assert_true(made[k] == 'x' || made[k] == 'y');
            n += made[k] == 'x';
        }
        assert_true(fabs((double)n / 20000 - p) < 4 * sqrt(p * (1 - p) / 20000));
        pawl_json_clear(json);
    }
    pawl_json_free(json);
    free(weight);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_counts_on_threads),
        cmocka_unit_test(test_counts_of_fifo),
        cmocka_unit_test(test_from_counts),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_softmax_of_large_logits),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_descent_reaches_counts),
        cmocka_unit_test(test_write_and_read),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
