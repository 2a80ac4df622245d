/* The replay of LLMCP35: golden results and trace, other inputs, finite differences, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "trainer/llmcp35_inside.h"
#include "unit/golden_json.h"
#include "unit/llmcp35_support.h"

#define IDS_MAX 64

static uint64_t
bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/*
 * Whether exp here rounds as in the golden results. glibc has variants with and without fused multiply-add, which
 * differ in the last bit for some arguments; these are all such arguments of the two replays that are marked as sensitive.
 */
static bool
is_golden_libm(void)
{
    static const struct {
        uint64_t argument, result;
    } probes[] = { { UINT64_C(0xbfd69de1b2c0c6fc), UINT64_C(0x3fe6794a0d8f942b) },
                   { UINT64_C(0xbff0d309f9276447), UINT64_C(0x3fd65ca75b970cb1) },
                   { UINT64_C(0xc0029151f2019449), UINT64_C(0x3fb9224bef9428e3) } };
    bool is_golden = true;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        volatile double argument; /* worked out when the program runs, not by the compiler */
        double given;
        memcpy(&given, &probes[i].argument, sizeof given);
        argument = given;
        is_golden = is_golden && bits_of(exp(argument)) == probes[i].result;
    }
    return is_golden;
}

/* ---- golden ---- */

static size_t
read_ids(const struct pawl_json_value *list, uint64_t ids[IDS_MAX])
{
    assert_true(list->n <= IDS_MAX);
    for (size_t i = 0; i < list->n; i++)
        assert_true(pawl_json_u64(list->first[i].text, &ids[i]));
    return list->n;
}

static uint64_t
read_number(const struct pawl_json_value *object, const char *key)
{
    uint64_t number;
    assert_true(pawl_json_u64(pawl_json_member(object, pawl_str_z(key))->text, &number));
    return number;
}

/* "fnv1a64:..." or "0x...": compares and says which field it is. */
static bool
is_text(const struct pawl_json_value *object, const char *key, const char *prefix, uint64_t found)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%s%016llx", prefix, (unsigned long long)found);
    struct pawl_str expected = pawl_json_member(object, pawl_str_z(key))->text;
    if (pawl_str_equal(pawl_str_z(text), expected))
        return true;
    print_message("%s: %s, expected %.*s\n", key, text, PAWL_ARG(expected));
    return false;
}

static bool
is_golden_replay(const struct pawl_json_value *golden, const struct llmcp35_replay *replay)
{
    bool is_same = is_text(golden, "logits_before", "fnv1a64:", replay->logits_before);
    is_same = is_text(golden, "loss_bits", "0x", bits_of(replay->loss)) && is_same;
    is_same = is_text(golden, "gradients", "fnv1a64:", replay->gradients) && is_same;
    is_same = is_text(golden, "parameters_after", "fnv1a64:", replay->parameters_after) && is_same;
    is_same = is_text(golden, "moments_after", "fnv1a64:", replay->moments_after) && is_same;
    is_same = is_text(golden, "beta1_power_bits", "0x", bits_of(replay->beta1_power)) && is_same;
    is_same = is_text(golden, "beta2_power_bits", "0x", bits_of(replay->beta2_power)) && is_same;
    is_same = read_number(golden, "step_after") == replay->step_after && is_same;
    is_same = is_text(golden, "logits_after", "fnv1a64:", replay->logits_after) && is_same;
    return is_text(golden, "next_sampling_draw", "0x", replay->next_sampling_draw) && is_same;
}

/*
 * Goal: all ten fields of the eight replays are the reference's. Method: replay.json; the two that it marks as depending on the
 * variant of libm are let off only where libm itself is seen to round in another way.
 */
static void
replays_are_the_reference_s(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *list = golden_read(&arena, LC_GOLDEN "replay.json");
    const bool has_golden_libm = is_golden_libm();
    unsigned n_sensitive = 0;
    assert_int_equal(list->n, 8);
    for (size_t i = 0; i < list->n; i++) {
        const struct pawl_json_value *golden = &list->first[i];
        struct pawl_error err = PAWL_ERROR_INIT;
        struct llmcp35_replay replay;
        uint64_t inputs[IDS_MAX], targets[IDS_MAX];
        char path[512];
        (void)snprintf(path, sizeof path, LC_GOLDEN "%.*s",
                       PAWL_ARG(pawl_json_member(golden, PAWL_STR("checkpoint"))->text));
        struct llmcp35_batch batch = { inputs, targets, read_ids(pawl_json_member(golden, PAWL_STR("inputs")), inputs),
                                       (size_t)read_number(golden, "batch") };
        assert_int_equal(read_ids(pawl_json_member(golden, PAWL_STR("targets")), targets), batch.n);
        assert_int_equal(batch.n, batch.batch * read_number(golden, "tokens"));
        double rate = pawl_json_f64(pawl_json_member(golden, PAWL_STR("learning_rate"))->text);
        bool is_sensitive = pawl_json_member(golden, PAWL_STR("libm_variant_sensitive"))->type == PAWL_JSON_TRUE;
        n_sensitive += is_sensitive;

        struct pawl_llmcp35 *checkpoint = lc_load_golden(path);
        if (llmcp35_replay(checkpoint, &batch, rate, NULL, &replay, NULL, &err) != PAWL_OK)
            fail_msg("%s: %s", path, err.message);
        if (!is_golden_replay(golden, &replay)) {
            if (!is_sensitive || has_golden_libm)
                fail_msg("replay %zu of %s differs", i, path);
            print_message("libm-variant: replay %zu of %s differs, and so does this machine's libm\n", i, path);
        }
        pawl_llmcp35_free(checkpoint);
    }
    assert_int_equal(n_sensitive, 2);
    pawl_arena_release(&arena);
}

/* ---- the trace ---- */

struct lines {
    struct pawl_buffer text;
};

static void
add_line(void *context, const char *label, const double *values, size_t n)
{
    struct lines *lines = context;
    (void)pawl_buffer_printf(&lines->text, "%s\t", label);
    for (size_t i = 0; i < n; i++)
        (void)pawl_buffer_printf(&lines->text, "%s%016llx", i == 0 ? "" : " ", (unsigned long long)bits_of(values[i]));
    (void)pawl_buffer_add_char(&lines->text, '\n');
}

static const uint64_t fixture_inputs[2] = { 0, 1 };
static const uint64_t fixture_targets[2] = { 1, 2 };
static const struct llmcp35_batch fixture_batch = { fixture_inputs, fixture_targets, 2, 1 };

/* Goal: every intermediate value of the fixture's replay is the reference's. Method: the trace, byte for byte. */
static void
the_trace_is_the_reference_s(void **state)
{
    (void)state;
    struct lines lines = { PAWL_BUFFER_INIT };
    const struct llmcp35_trace trace = { add_line, &lines };
    struct llmcp35_replay replay;
    size_t n;
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE);
    assert_int_equal(llmcp35_replay(checkpoint, &fixture_batch, 0.006, &trace, &replay, NULL, NULL), PAWL_OK);
    unsigned char *golden = lc_bytes_of(LC_GOLDEN "replay-fixture-trace.tsv", &n);
    assert_true(pawl_buffer_ok(&lines.text));
    size_t shared = lines.text.len < n ? lines.text.len : n;
    for (size_t i = 0, begin = 0; i < shared; i++) {
        if (lines.text.data[i] != (char)golden[i])
            fail_msg("the trace differs at byte %zu, in the line: %.60s", i, lines.text.data + begin);
        begin = golden[i] == '\n' ? i + 1 : begin;
    }
    assert_int_equal(lines.text.len, n);
    free(golden);
    pawl_buffer_release(&lines.text);
    pawl_llmcp35_free(checkpoint);
}

/* ---- other inputs ---- */

/* Goal: the result is of the batch and the rate, not of the file alone. Method: change one thing at a time; the loss and the gradients
 * do not know the rate, and the logits before do not know the targets. */
static void
another_batch_or_rate_gives_another_result(void **state)
{
    (void)state;
    const uint64_t other_targets[2] = { 1, 3 }, other_inputs[2] = { 0, 2 };
    const struct llmcp35_batch batches[3] = { fixture_batch,
                                              { fixture_inputs, other_targets, 2, 1 },
                                              { other_inputs, fixture_targets, 2, 1 } };
    struct llmcp35_replay base, found;
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE);
    assert_int_equal(llmcp35_replay(checkpoint, &fixture_batch, 0.006, NULL, &base, NULL, NULL), PAWL_OK);
    assert_int_equal(llmcp35_replay(checkpoint, &fixture_batch, 0.007, NULL, &found, NULL, NULL), PAWL_OK);
    assert_true(found.logits_before == base.logits_before && found.gradients == base.gradients);
    assert_true(found.parameters_after != base.parameters_after && found.logits_after != base.logits_after);
    assert_true(found.moments_after == base.moments_after);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(llmcp35_replay(checkpoint, &batches[i], 0.006, NULL, &found, NULL, NULL), PAWL_OK);
        assert_true((found.logits_before == base.logits_before) == (i == 1));
        assert_true(found.gradients != base.gradients && found.logits_after != base.logits_after);
        assert_true(bits_of(found.loss) != bits_of(base.loss));
    }
    /* The same ids as two sequences of one token are another batch: nothing is attended to. */
    const struct llmcp35_batch two = { fixture_inputs, fixture_targets, 2, 2 };
    assert_int_equal(llmcp35_replay(checkpoint, &two, 0.006, NULL, &found, NULL, NULL), PAWL_OK);
    assert_true(found.logits_before != base.logits_before);
    pawl_llmcp35_free(checkpoint);
}

static void
check_refused(const struct llmcp35_batch *batch, double rate, const char *code, const char *message)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct llmcp35_replay replay = { .loss = 7 };
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE), *after = NULL;
    assert_int_equal(llmcp35_replay(checkpoint, batch, rate, NULL, &replay, &after, &err), PAWL_ARGUMENT);
    assert_string_equal(err.code, code);
    assert_string_equal(err.message, message);
    assert_true(replay.loss == 7 && after == NULL);
    pawl_llmcp35_free(checkpoint);
}

static void
what_the_model_does_not_take_is_refused(void **state)
{
    (void)state;
    const uint64_t ids[4] = { 0, 1, 2, 5 };
    const struct llmcp35_batch none = { ids, ids, 0, 1 }, uneven = { ids, ids, 3, 2 }, long_one = { ids, ids, 3, 1 },
                               foreign = { ids + 2, ids + 2, 2, 1 };
    check_refused(&none, 0.006, "argument", "0 ids can't be cut into 1 sequences");
    check_refused(&uneven, 0.006, "argument", "3 ids can't be cut into 2 sequences");
    check_refused(&long_one, 0.006, "argument", "sequences of 3 tokens for a model of 2 positions");
    check_refused(&foreign, 0.006, "argument", "id 5 of a vocabulary of 5");
    check_refused(&fixture_batch, 0.0, "adamw_config/invalid_learning_rate",
                  "the rate is 0, expected a finite number above 0");
    check_refused(&fixture_batch, INFINITY, "adamw_config/invalid_learning_rate",
                  "the rate is inf, expected a finite number above 0");
    check_refused(&fixture_batch, 100.0, "adamw_config/invalid_decay_product",
                  "rate 100 times weight decay 0.01 is 1, expected a number between 0 and 1");
}

/* ---- models of the test's own ---- */

#define MODEL_VOCABULARY 7
#define MODEL_PARAMETERS 20 /* two layers */

struct model {
    double *values[MODEL_PARAMETERS];
    size_t sizes[MODEL_PARAMETERS];
};

static const struct pawl_llmcp35_config model_config = { .size = sizeof model_config,
                                                         .vocabulary = MODEL_VOCABULARY,
                                                         .width = 8,
                                                         .heads = 2,
                                                         .feed_forward = 6,
                                                         .layers = 2,
                                                         .positions = 8,
                                                         .rope_base = 100.0,
                                                         .rms_epsilon = 1e-5 };

/* Values between -1 and 1 from a seed; gains around 1. */
static void
model_init(struct model *model, uint64_t seed)
{
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        uint64_t shape[2] = { 1, 1 };
        size_t rank = pawl_lc_expected_shape(&model_config, i, shape);
        model->sizes[i] = (size_t)(shape[0] * (rank == 2 ? shape[1] : 1));
        model->values[i] = malloc(model->sizes[i] * sizeof(double));
        assert_non_null(model->values[i]);
        for (size_t k = 0; k < model->sizes[i]; k++) {
            double unit = (double)(pawl_llmcp35_draw(&seed) >> 11) * 0x1p-53;
            model->values[i][k] = rank == 1 ? 0.5 + unit : 2 * unit - 1;
        }
    }
}

static void
model_release(struct model *model)
{
    for (size_t i = 0; i < MODEL_PARAMETERS; i++)
        free(model->values[i]);
}

static struct pawl_llmcp35_training *
model_training(const struct model *model, double weight_decay)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_training *training = NULL;
    const struct pawl_llmcp35_adamw adamw = PAWL_LLMCP35_ADAMW(.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.99,
                                                               .epsilon = 1e-8, .weight_decay = weight_decay);
    if (pawl_llmcp35_training_new(&model_config, &adamw, (const double *const *)model->values, MODEL_PARAMETERS,
                                  &training, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return training;
}

static double
loss_of(const struct model *model, const struct llmcp35_batch *batch, double *const *gradients)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_training *training = model_training(model, 0.0);
    double loss;
    if (llmcp35_gradients(training, batch, &loss, gradients, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    pawl_llmcp35_training_free(training);
    return loss;
}

static const uint64_t model_inputs[6] = { 3, 1, 4, 1, 5, 6 };
static const uint64_t model_targets[6] = { 1, 4, 1, 5, 6, 2 };
static const struct llmcp35_batch model_batch = { model_inputs, model_targets, 6, 2 };

/*
 * Goal: the gradients are those of the loss. Method: central differences, for every value of every parameter of a model with two
 * layers, two heads and two sequences; the error of the differences is about 1e-9.
 */
static void
gradients_are_those_of_the_loss(void **state)
{
    (void)state;
    const double step = 1e-5;
    struct model model;
    double *gradients[MODEL_PARAMETERS], *ignored[MODEL_PARAMETERS];
    model_init(&model, 2026);
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        gradients[i] = malloc(model.sizes[i] * sizeof(double));
        ignored[i] = malloc(model.sizes[i] * sizeof(double));
        assert_true(gradients[i] != NULL && ignored[i] != NULL);
    }
    (void)loss_of(&model, &model_batch, gradients);
    double largest = 0;
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        for (size_t k = 0; k < model.sizes[i]; k++) {
            const double value = model.values[i][k];
            model.values[i][k] = value + step;
            double above = loss_of(&model, &model_batch, ignored);
            model.values[i][k] = value - step;
            double below = loss_of(&model, &model_batch, ignored);
            model.values[i][k] = value;
            double difference = (above - below) / (2 * step);
            if (fabs(difference - gradients[i][k]) > 1e-7 + 1e-6 * fabs(difference))
                fail_msg("parameter %zu, value %zu: the gradient is %g, the loss changes by %g", i, k, gradients[i][k],
                         difference);
            largest = fmax(largest, fabs(difference));
        }
    }
    assert_true(largest > 0.01); /* there was something to see */
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        free(gradients[i]);
        free(ignored[i]);
    }
    model_release(&model);
}

/*
 * Goal: a weight's gradient is summed within each sequence first, then over the sequences; no golden replay has two sequences of
 * two tokens. Method: terms that a sum over all rows would lose: 1e16 + 1 is 1e16, and 1e16 + (1 + 1) is not.
 */
static void
weight_gradients_are_summed_by_sequence(void **state)
{
    (void)state;
    const double x[4] = { 1, 1, 1, 1 }, dy[4] = { 1e16, 1, 1, 1 };
    double gradient[1], scratch[1];
    llmcp35_weight_gradient(gradient, scratch, x, dy, 2, 2, 1, 1);
    assert_true(gradient[0] == 1e16 + 2);
    llmcp35_weight_gradient(gradient, scratch, x, dy, 1, 4, 1, 1);
    assert_true(gradient[0] == 1e16);
}

/* Goal: the loss of a sure answer keeps its digits, which log(1 + tail) loses. Method: the loss of two logits 23 apart. */
static void
the_loss_of_a_sure_answer_is_exact(void **state)
{
    (void)state;
    double logits[2] = { 0.0, -23.0 }, loss = 0, *dlogits = NULL;
    const uint64_t target[1] = { 0 };
    const struct llmcp35_batch batch = { target, target, 1, 1 };
    struct llmcp35_pass pass = { .sizes = { .rows = 1, .vocabulary = 2 }, .batch = &batch, .logits = logits };
    assert_int_equal(llmcp35_loss(&pass, &loss, &dlogits, NULL), PAWL_OK);
    assert_int_equal(bits_of(loss), bits_of(log1p(exp(-23.0))));
    assert_true(loss != log(1.0 + exp(-23.0)));
    assert_true(dlogits[0] < 0 && dlogits[1] > 0 && fabs(dlogits[0] + dlogits[1]) < 1e-15);
    llmcp35_pass_release(&pass);
}

/*
 * Goal: weight decay is (rate * wd) * value, in this order; no golden replay tells it from rate * (wd * value). Method: the
 * update worked out here from the gradients, for a rate and a decay whose products round apart, held against the library's
 * state; and the other order differs somewhere, so that the test can fail.
 */
static void
decay_is_rate_times_decay_first(void **state)
{
    (void)state;
    const double rate = 0.3, wd = 0.7, beta1 = 0.9, beta2 = 0.99;
    struct model model;
    double *gradients[MODEL_PARAMETERS];
    struct llmcp35_replay replay;
    struct pawl_llmcp35 *checkpoint = NULL, *after = NULL;
    struct pawl_llmcp35_bundle *bundle = NULL;
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    struct pawl_str pieces[MODEL_VOCABULARY];
    size_t n, n_apart = 0;
    double loss;

    model_init(&model, 2027);
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        gradients[i] = malloc(model.sizes[i] * sizeof(double));
        assert_non_null(gradients[i]);
    }
    for (size_t i = 0; i < MODEL_VOCABULARY; i++)
        pieces[i] = pawl_str_make(&"abcdefg"[i], 1);
    struct pawl_llmcp35_training *training = model_training(&model, wd);
    assert_int_equal(llmcp35_gradients(training, &model_batch, &loss, gradients, NULL), PAWL_OK);
    assert_int_equal(pawl_llmcp35_capture(training, &bundle, NULL), PAWL_OK);
    assert_int_equal(pawl_llmcp35_tokenizer_literal(pieces, MODEL_VOCABULARY, &tokenizer, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_llmcp35_new(bundle, tokenizer, 1, &checkpoint, NULL, NULL), PAWL_OK);
    assert_int_equal(llmcp35_replay(checkpoint, &model_batch, rate, NULL, &replay, &after, NULL), PAWL_OK);

    const struct pawl_llmcp35_parameter *parameters = pawl_llmcp35_parameters(after, &n);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < parameters[i].n; k++) {
            /* volatile: every operation is rounded by itself, whatever this test is built with */
            volatile double value = model.values[i][k], g = gradients[i][k];
            volatile double square = g * g, first = (1.0 - beta1) * g, second = (1.0 - beta2) * square;
            volatile double m = beta1 * 0.0 + first, v = beta2 * 0.0 + second;
            volatile double mean = m / (1.0 - beta1), root = sqrt(v / (1.0 - beta2)), denominator = root + 1e-8;
            volatile double direction = mean / denominator, adaptive = rate * direction, moved = value - adaptive;
            volatile double product = rate * wd, decay = product * value, other = wd * value,
                            other_decay = rate * other;
            volatile double expected = moved - decay, otherwise = moved - other_decay;
            assert_int_equal(bits_of(parameters[i].values[k]), bits_of(expected));
            n_apart += bits_of(expected) != bits_of(otherwise);
        }
    }
    assert_true(n_apart > 0);
    for (size_t i = 0; i < MODEL_PARAMETERS; i++)
        free(gradients[i]);
    pawl_llmcp35_training_free(training);
    pawl_llmcp35_tokenizer_free(tokenizer);
    pawl_llmcp35_free(checkpoint);
    pawl_llmcp35_free(after);
    model_release(&model);
}

/* Goal: what stops being finite stops the replay, and is named. Method: weights so large that a product overflows. */
static void
values_that_stop_being_finite_stop_the_replay(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct model model;
    double *gradients[MODEL_PARAMETERS], loss = 7;
    model_init(&model, 5);
    for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
        gradients[i] = calloc(model.sizes[i], sizeof(double));
        assert_non_null(gradients[i]);
    }
    const struct {
        size_t parameter;
        const char *message;
    } cases[] = { { 0, "a value of a mean square is not finite" },
                  { 1, "a value of a normalized row is not finite" },
                  { 2, "a value of an attention score is not finite" },
                  { 19, "a value of a normalized row is not finite" } };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double *values = model.values[cases[c].parameter];
        size_t n = model.sizes[cases[c].parameter];
        double *kept = malloc(n * sizeof(double));
        assert_non_null(kept);
        memcpy(kept, values, n * sizeof(double));
        for (size_t k = 0; k < n; k++)
            values[k] = c == 2 ? 1e308 : 1.7e308;
        struct pawl_llmcp35_training *training = model_training(&model, 0.0);
        enum pawl_status st = llmcp35_gradients(training, &model_batch, &loss, gradients, &err);
        assert_int_equal(st, PAWL_OUT_OF_RANGE);
        if (c != 2)
            assert_string_equal(err.message, cases[c].message);
        pawl_llmcp35_training_free(training);
        memcpy(values, kept, n * sizeof(double));
        free(kept);
    }
    for (size_t i = 0; i < MODEL_PARAMETERS; i++)
        free(gradients[i]);
    model_release(&model);
}

/* Goal: the checkpoint after an update can go on: saved, loaded and replayed it gives what staying in memory gives. */
static void
an_updated_checkpoint_goes_on(void **state)
{
    (void)state;
    struct llmcp35_replay first, second, again;
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE), *after = NULL, *loaded = NULL;
    size_t n;
    assert_int_equal(llmcp35_replay(checkpoint, &fixture_batch, 0.006, NULL, &first, &after, NULL), PAWL_OK);
    assert_int_equal(llmcp35_replay(after, &fixture_batch, 0.006, NULL, &second, NULL, NULL), PAWL_OK);
    unsigned char *bytes = lc_encoded(after, &n);
    assert_int_equal(pawl_llmcp35_decode(bytes, n, &loaded, NULL, NULL), PAWL_OK);
    assert_int_equal(llmcp35_replay(loaded, &fixture_batch, 0.006, NULL, &again, NULL, NULL), PAWL_OK);
    assert_memory_equal(&second, &again, sizeof again);
    assert_int_equal(second.logits_before, first.logits_after);
    assert_int_equal(second.step_after, 10);
    free(bytes);
    pawl_llmcp35_free(checkpoint);
    pawl_llmcp35_free(after);
    pawl_llmcp35_free(loaded);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_are_the_reference_s),
        cmocka_unit_test(the_trace_is_the_reference_s),
        cmocka_unit_test(another_batch_or_rate_gives_another_result),
        cmocka_unit_test(what_the_model_does_not_take_is_refused),
        cmocka_unit_test(gradients_are_those_of_the_loss),
        cmocka_unit_test(weight_gradients_are_summed_by_sequence),
        cmocka_unit_test(the_loss_of_a_sure_answer_is_exact),
        cmocka_unit_test(decay_is_rate_times_decay_first),
        cmocka_unit_test(values_that_stop_being_finite_stop_the_replay),
        cmocka_unit_test(an_updated_checkpoint_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
