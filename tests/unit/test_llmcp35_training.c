/* LLMCP35 in memory: tokenizers, the generator, training, bundles and checkpoints made of them, safetensors and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "pawl/model.h"
#include "unit/llmcp35_support.h"

/* A table of 2^62 bytes must be refused by malloc, not end the program. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- tokenizers ---- */

static void
literal_tokenizers(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    const struct pawl_str pieces[4] = { PAWL_STR("the"), PAWL_STR("\xff\0x"), PAWL_STR(" "), PAWL_STR("th") };
    char bytes[8];
    uint64_t id, n;
    size_t n_merges, n_ids;
    assert_int_equal(pawl_llmcp35_tokenizer_literal(pieces, 4, &tokenizer, &fault, &err), PAWL_OK);
    assert_null(fault);
    assert_int_equal(pawl_llmcp35_tokenizer_kind(tokenizer), PAWL_LLMCP35_LITERAL);
    assert_int_equal(pawl_llmcp35_tokenizer_vocabulary(tokenizer), 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(pawl_llmcp35_tokenizer_find(tokenizer, pieces[i], &id));
        assert_int_equal(id, i);
        assert_int_equal(pawl_llmcp35_tokenizer_spell(tokenizer, i, bytes, sizeof bytes, &n, &err), PAWL_OK);
        assert_true(pawl_str_equal(pawl_str_make(bytes, (size_t)n), pieces[i]));
    }
    assert_false(pawl_llmcp35_tokenizer_find(tokenizer, PAWL_STR("t"), &id));
    assert_false(pawl_llmcp35_tokenizer_find(tokenizer, PAWL_STR("them"), &id));
    assert_int_equal(pawl_llmcp35_tokenizer_spell(tokenizer, 1, bytes, 1, &n, &err), PAWL_OK); /* cut, and told */
    assert_int_equal(n, 3);
    assert_int_equal(pawl_llmcp35_tokenizer_spell(tokenizer, 4, bytes, 1, &n, &err), PAWL_ARGUMENT);
    assert_null(pawl_llmcp35_tokenizer_merges(tokenizer, &n_merges));
    assert_int_equal(n_merges, 0);
    assert_int_equal(pawl_llmcp35_tokenizer_encode(tokenizer, "the", 3, &id, 1, &n_ids, &err), PAWL_UNSUPPORTED);
    pawl_llmcp35_tokenizer_free(tokenizer);

    const struct pawl_str repeated[4] = { PAWL_STR("a"), PAWL_STR("b"), PAWL_STR("b"), PAWL_STR("a") };
    const struct pawl_str empty[2] = { PAWL_STR("a"), PAWL_STR("") };
    assert_int_equal(pawl_llmcp35_tokenizer_literal(repeated, 4, &tokenizer, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "tokenizer/repeated_spelling");
    assert_int_equal(lc_field(fault, "id")->number, 2); /* the first that repeats, not the first that is repeated */
    pawl_llmcp35_fault_free(fault);
    assert_int_equal(pawl_llmcp35_tokenizer_literal(empty, 2, &tokenizer, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "tokenizer/empty_spelling");
    assert_int_equal(lc_field(fault, "id")->number, 1);
    pawl_llmcp35_fault_free(fault);
    assert_int_equal(pawl_llmcp35_tokenizer_literal(NULL, 0, &tokenizer, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "tokenizer/empty");
}

/* Merge by merge over the whole text, in rank order: what the encoder's short way must give. */
static size_t
encode_slowly(const uint32_t *pairs, size_t n_merges, const char *text, size_t n, uint64_t *ids)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (unsigned char)text[i];
    for (size_t rank = 0; rank < n_merges; rank++) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            bool is_pair = i + 1 < n && ids[i] == pairs[2 * rank] && ids[i + 1] == pairs[2 * rank + 1];
            ids[kept++] = is_pair ? 256 + rank : ids[i];
            i += is_pair;
        }
        n = kept;
    }
    for (size_t i = 0; i < n; i++)
        ids[i] += 2;
    return n;
}

static void
byte_bpe_tokenizers(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    /* ab, aba, aa, aabab, cc, cccc */
    const uint32_t pairs[] = { 'a', 'b', 256, 'a', 'a', 'a', 258, 256, 'c', 'c', 260, 260 };
    const char *spellings[] = { "ab", "aba", "aa", "aaab", "cc", "cccc" };
    char bytes[8];
    uint64_t n, ids[64], expected[64];
    size_t n_ids;
    assert_int_equal(pawl_llmcp35_tokenizer_bpe(pairs, 6, &tokenizer, NULL, &err), PAWL_OK);
    assert_int_equal(pawl_llmcp35_tokenizer_vocabulary(tokenizer), 264);
    for (uint64_t rank = 0; rank < 6; rank++) {
        assert_int_equal(pawl_llmcp35_tokenizer_spell(tokenizer, 258 + rank, bytes, sizeof bytes, &n, &err), PAWL_OK);
        assert_true(pawl_str_equal(pawl_str_make(bytes, (size_t)n), pawl_str_z(spellings[rank])));
    }
    for (uint64_t id = 0; id < 258; id++) {
        assert_int_equal(pawl_llmcp35_tokenizer_spell(tokenizer, id, bytes, sizeof bytes, &n, &err), PAWL_OK);
        assert_int_equal(n, id < 2 ? 0 : 1);
        assert_true(id < 2 || (unsigned char)bytes[0] == id - 2);
    }
    uint64_t random = 7;
    for (unsigned round = 0; round < 500; round++) {
        char text[40];
        size_t len = (size_t)(pawl_llmcp35_draw(&random) % sizeof text);
        for (size_t i = 0; i < len; i++)
            text[i] = (char)('a' + pawl_llmcp35_draw(&random) % 3);
        assert_int_equal(pawl_llmcp35_tokenizer_encode(tokenizer, text, len, ids, 64, &n_ids, &err), PAWL_OK);
        assert_int_equal(n_ids, encode_slowly(pairs, 6, text, len, expected));
        assert_memory_equal(ids, expected, n_ids * sizeof *ids);
    }
    assert_int_equal(pawl_llmcp35_tokenizer_encode(tokenizer, "xyz", 3, ids, 2, &n_ids, &err), PAWL_ARGUMENT);
    pawl_llmcp35_tokenizer_free(tokenizer);

    const uint32_t itself[] = { 'a', 'b', 257, 'a' }, unknown[] = { 'a', 256 },
                   twice[] = { 'a', 'b', 'c', 'd', 'a', 'b' };
    assert_int_equal(pawl_llmcp35_tokenizer_bpe(itself, 2, &tokenizer, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "bpe/unknown_merge_operand");
    assert_int_equal(lc_field(fault, "rank")->number, 1);
    pawl_llmcp35_fault_free(fault);
    assert_int_equal(pawl_llmcp35_tokenizer_bpe(unknown, 1, &tokenizer, &fault, &err), PAWL_CORRUPT);
    assert_int_equal(lc_field(fault, "token_id")->number, 256);
    pawl_llmcp35_fault_free(fault);
    assert_int_equal(pawl_llmcp35_tokenizer_bpe(twice, 3, &tokenizer, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "bpe/duplicate_merge_pair");
    assert_int_equal(lc_field(fault, "rank")->number, 2);
    assert_int_equal(lc_field(fault, "right")->number, 'b');
    pawl_llmcp35_fault_free(fault);
    const uint32_t both[] = { 'a', 300, 'c', 'd', 'c', 'd' }; /* rank by rank: the operand comes first */
    assert_int_equal(pawl_llmcp35_tokenizer_bpe(both, 3, &tokenizer, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "merge 0 joins token 300, which is not there before it");
    pawl_llmcp35_fault_free(fault);
}

/* Goal: tokens that double with every merge have no bytes to count. Method: 100 merges; 2^64 is passed at the 64th. */
static void
tokens_longer_than_can_be_counted(void **state)
{
    (void)state;
    uint32_t pairs[200];
    char bytes[4] = "";
    uint64_t n;
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    for (uint32_t r = 0; r < 100; r++)
        pairs[2 * r] = pairs[2 * r + 1] = r == 0 ? 'z' : 255 + r;
    assert_int_equal(pawl_llmcp35_tokenizer_bpe(pairs, 100, &tokenizer, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_llmcp35_tokenizer_spell(tokenizer, 258 + 62, bytes, 4, &n, NULL), PAWL_OK);
    assert_true(n == UINT64_C(1) << 63 && memcmp(bytes, "zzzz", 4) == 0);
    assert_int_equal(pawl_llmcp35_tokenizer_spell(tokenizer, 258 + 99, bytes, 4, &n, NULL), PAWL_OK);
    assert_true(n == UINT64_MAX);
    pawl_llmcp35_tokenizer_free(tokenizer);
}

static void
the_generator_is_splitmix64(void **state)
{
    (void)state;
    uint64_t draws = 35;
    (void)pawl_llmcp35_draw(&draws);
    assert_true(draws == UINT64_C(0x9e3779b97f4a7c38));
    assert_true(pawl_llmcp35_draw(&draws) == UINT64_C(0x9a8c505971939232));
    draws = 0; /* the published first draws from seed 0 */
    assert_true(pawl_llmcp35_draw(&draws) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(pawl_llmcp35_draw(&draws) == UINT64_C(0x6e789e6aa1b965f4));
}

/* ---- restoring ---- */

static void
check_same_parameters(const struct pawl_llmcp35_parameter *a, const struct pawl_llmcp35_parameter *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t bytes = a[i].n * sizeof(double);
        assert_true(pawl_str_equal(a[i].name, b[i].name) && a[i].n == b[i].n && a[i].rank == b[i].rank);
        assert_memory_equal(a[i].values, b[i].values, bytes);
        assert_true((a[i].first == NULL) == (b[i].first == NULL));
        if (a[i].first != NULL) {
            assert_memory_equal(a[i].first, b[i].first, bytes);
            assert_memory_equal(a[i].second, b[i].second, bytes);
        }
        assert_int_equal(a[i].is_decayed, b[i].is_decayed);
    }
}

/*
 * Goal: restoring by copy and by move give equal bits, and a checkpoint made of what was restored is the same file. Method:
 * every valid golden file, around once by each way.
 */
static void
copy_and_move_come_back_to_the_same_file(void **state)
{
    (void)state;
    static const char *const names[] = { "v1-selected-step8",
                                         "valid/byte-bpe-step1",
                                         "valid/byte-bpe-no-merges-step0",
                                         "valid/literal-step0-groups",
                                         "valid/literal-two-layer-step3",
                                         "valid/literal-no-groups-step2",
                                         "valid/negative-zero-second-moment" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        size_t n, n_copy, n_move, n_again;
        struct pawl_llmcp35_facts facts;
        struct pawl_llmcp35_training *copy = NULL, *move = NULL;
        struct pawl_llmcp35_bundle *bundle = NULL;
        struct pawl_llmcp35 *made = NULL;
        (void)snprintf(path, sizeof path, LC_GOLDEN "%s.bin", names[i]);
        struct pawl_llmcp35 *checkpoint = lc_load_golden(path);
        unsigned char *bytes = lc_bytes_of(path, &n);
        assert_int_equal(pawl_llmcp35_restore(checkpoint, &copy, NULL, NULL), PAWL_OK);
        pawl_llmcp35_facts(checkpoint, &facts);
        assert_int_equal(pawl_llmcp35_capture(copy, &bundle, NULL), PAWL_OK);
        assert_int_equal(pawl_llmcp35_new(bundle, facts.tokenizer, facts.rng_state, &made, NULL, NULL), PAWL_OK);
        unsigned char *again = lc_encoded(made, &n_again);
        assert_int_equal(n_again, n);
        assert_memory_equal(again, bytes, n);

        assert_int_equal(pawl_llmcp35_restore_move(checkpoint, &move, NULL, NULL), PAWL_OK); /* checkpoint is gone */
        const struct pawl_llmcp35_parameter *a = pawl_llmcp35_training_parameters(copy, &n_copy);
        const struct pawl_llmcp35_parameter *b = pawl_llmcp35_training_parameters(move, &n_move);
        assert_int_equal(n_copy, n_move);
        check_same_parameters(a, b, n_copy);
        free(bytes);
        free(again);
        pawl_llmcp35_free(made);
        pawl_llmcp35_training_free(copy);
        pawl_llmcp35_training_free(move);
    }
}

/* Goal: a capacity that loads and that no machine can serve fails the restore with the page's cause, and the checkpoint stays usable. */
static void
an_absurd_capacity_fails_on_restore(void **state)
{
    (void)state;
    size_t n;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_llmcp35 *checkpoint = NULL;
    struct pawl_llmcp35_training *training = NULL;
    unsigned char *bytes = lc_bytes_of(LC_FIXTURE, &n);
    pawl_put_u64le(bytes + 107, UINT64_C(1) << 59);
    lc_fix_checksum(bytes, n);
    assert_int_equal(pawl_llmcp35_decode(bytes, n, &checkpoint, NULL, &err), PAWL_OK);
    for (int by_move = 0; by_move < 2; by_move++) {
        enum pawl_status st = by_move ? pawl_llmcp35_restore_move(checkpoint, &training, &fault, &err)
                                      : pawl_llmcp35_restore(checkpoint, &training, &fault, &err);
        assert_int_equal(st, PAWL_NO_MEMORY);
        assert_string_equal(err.code, "model/block_attention_rotary_table_allocation");
        assert_true(lc_field(fault, "elements")->number == UINT64_C(1) << 59);
        pawl_llmcp35_fault_free(fault);
    }
    size_t n_again;
    unsigned char *again = lc_encoded(checkpoint, &n_again);
    assert_memory_equal(again, bytes, n);
    free(again);
    free(bytes);
    pawl_llmcp35_free(checkpoint);
}

static void
rotary_tables_grow_with_what_is_asked(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    const double *cosines, *sines, *again;
    size_t pairs;
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_GOLDEN "valid/literal-two-layer-step3.bin");
    struct pawl_llmcp35_facts facts;
    pawl_llmcp35_facts(checkpoint, &facts);
    assert_int_equal(pawl_llmcp35_restore_move(checkpoint, &training, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_llmcp35_training_rotary(training, 1, &cosines, &sines, &pairs, &err), PAWL_OK);
    assert_int_equal(pairs, facts.config.width / facts.config.heads / 2);
    assert_true(cosines[0] == 1.0 && sines[0] == 0.0 && !signbit(sines[0]));
    assert_int_equal(pawl_llmcp35_training_rotary(training, 3, &again, &sines, &pairs, &err), PAWL_OK);
    assert_ptr_equal(again, cosines);
    for (size_t t = 0; t < 3; t++) {
        for (size_t p = 0; p < pairs; p++) {
            double angle = (double)t * pow(facts.config.rope_base, -2.0 * (double)p / (2.0 * (double)pairs));
            assert_true(fabs(again[t * pairs + p] - cos(angle)) < 1e-15);
            assert_true(fabs(sines[t * pairs + p] - sin(angle)) < 1e-15);
        }
    }
    assert_int_equal(pawl_llmcp35_training_rotary(training, facts.config.positions + 1, &again, &sines, &pairs, &err),
                     PAWL_ARGUMENT);
    pawl_llmcp35_training_free(training);
}

/* ---- a model from nothing ---- */

#define N_PARAMETERS 11
static const uint64_t sizes[N_PARAMETERS] = { 12, 4, 16, 16, 16, 16, 4, 12, 12, 12, 4 };

struct start {
    struct pawl_llmcp35_config config;
    struct pawl_llmcp35_adamw adamw;
    struct pawl_str decay[N_PARAMETERS], no_decay[N_PARAMETERS];
    double *values[N_PARAMETERS];
};

static void
start_init(struct start *start)
{
    *start = (struct start){ .config = PAWL_LLMCP35_CONFIG(.vocabulary = 3, .width = 4, .heads = 2, .feed_forward = 3,
                                                           .layers = 1, .positions = 5, .rope_base = 1e4,
                                                           .rms_epsilon = 1e-6),
                             .adamw = PAWL_LLMCP35_ADAMW(.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99,
                                                         .epsilon = 1e-8, .weight_decay = 0.5) };
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        start->values[i] = malloc((size_t)sizes[i] * sizeof(double));
        assert_non_null(start->values[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            start->values[i][k] = (double)(i + 1) + (double)k / 64;
    }
}

static void
start_release(struct start *start)
{
    for (size_t i = 0; i < N_PARAMETERS; i++)
        free(start->values[i]);
}

static enum pawl_status
begin(const struct start *start, struct pawl_llmcp35_training **ret_training, struct pawl_llmcp35_fault **ret_fault,
      struct pawl_error *err)
{
    return pawl_llmcp35_training_new(&start->config, &start->adamw, (const double *const *)start->values, N_PARAMETERS,
                                     ret_training, ret_fault, err);
}

/* A step's result: the values moved a little, the moments all at `moment`. */
struct step {
    double *arrays[3][N_PARAMETERS];
    struct pawl_llmcp35_update update;
};

static void
step_init(struct step *step, const struct start *start, double moment)
{
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        for (size_t k = 0; k < 3; k++) {
            step->arrays[k][i] = malloc((size_t)sizes[i] * sizeof(double));
            assert_non_null(step->arrays[k][i]);
            for (size_t at = 0; at < sizes[i]; at++)
                step->arrays[k][i][at] = k == 0 ? start->values[i][at] + 0.25 : moment;
        }
    }
    step->update = PAWL_LLMCP35_UPDATE(.values = (const double *const *)step->arrays[0],
                                       .first = (const double *const *)step->arrays[1],
                                       .second = (const double *const *)step->arrays[2], .n = N_PARAMETERS,
                                       .beta1_power = 0.9, .beta2_power = 0.99);
}

static void
step_release(struct step *step)
{
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < N_PARAMETERS; i++)
            free(step->arrays[k][i]);
    }
}

/*
 * Goal: an update is taken whole or not at all. Method: one bad number in an otherwise good update, of every kind; then the good one.
 */
static void
an_update_is_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct start start;
    struct step step;
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35_training_facts facts;
    size_t n;
    start_init(&start);
    step_init(&step, &start, 0.5);
    assert_int_equal(begin(&start, &training, NULL, &err), PAWL_OK);
    const double bad[] = { NAN, INFINITY, -INFINITY };
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            double *place = &step.arrays[k][N_PARAMETERS - 1][3];
            double kept = *place;
            *place = bad[i];
            assert_int_equal(pawl_llmcp35_update(training, &step.update, &err), PAWL_OUT_OF_RANGE);
            assert_string_equal(err.tensor, "final_norm.gain");
            *place = kept;
        }
    }
    step.arrays[2][0][0] = -1.0;
    assert_int_equal(pawl_llmcp35_update(training, &step.update, &err), PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message, "the second moment of 'token_embedding.weight' would hold -1 at index 0");
    step.arrays[2][0][0] = 0.5;
    step.update.beta2_power = 1.0;
    assert_int_equal(pawl_llmcp35_update(training, &step.update, &err), PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message, "the power of beta2 would be 1, expected a number in [0, 1)");
    step.update.beta2_power = 0.99;
    step.update.n--;
    assert_int_equal(pawl_llmcp35_update(training, &step.update, &err), PAWL_ARGUMENT);
    step.update.n++;

    const struct pawl_llmcp35_parameter *parameters = pawl_llmcp35_training_parameters(training, &n);
    for (size_t i = 0; i < n; i++) {
        assert_null(parameters[i].first);
        assert_memory_equal(parameters[i].values, start.values[i], parameters[i].n * sizeof(double));
    }
    pawl_llmcp35_training_facts(training, &facts);
    assert_true(facts.step == 0 && facts.beta1_power == 1.0);

    assert_int_equal(pawl_llmcp35_update(training, &step.update, &err), PAWL_OK);
    pawl_llmcp35_training_facts(training, &facts);
    assert_true(facts.step == 1 && facts.beta1_power == 0.9 && facts.beta2_power == 0.99);
    parameters = pawl_llmcp35_training_parameters(training, &n);
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(parameters[i].values, step.arrays[0][i], parameters[i].n * sizeof(double));
        assert_memory_equal(parameters[i].first, step.arrays[1][i], parameters[i].n * sizeof(double));
    }
    pawl_llmcp35_training_free(training);
    step_release(&step);
    start_release(&start);
}

/*
 * Goal: a checkpoint made in memory is a file that decodes; it does not change with the training that goes on; groups come out in
 * byte order however they were given. Method: step 0 and step 1, both encoded and decoded.
 */
static void
checkpoints_of_training_are_files(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct start start;
    struct step step;
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    struct pawl_llmcp35 *checkpoints[2] = { NULL, NULL };
    struct pawl_buffer name = PAWL_BUFFER_INIT;
    char names[N_PARAMETERS][64];
    const struct pawl_str pieces[3] = { PAWL_STR("a"), PAWL_STR("b"), PAWL_STR("c") };
    start_init(&start);
    step_init(&step, &start, 0.5);
    for (size_t i = 0; i < N_PARAMETERS; i++) { /* in model order: not byte order */
        assert_true(pawl_lc_expected_name(&name, i, 1));
        (void)snprintf(names[i], sizeof names[i], "%.*s", PAWL_ARG(pawl_buffer_str(&name)));
        struct pawl_str *to =
            sizes[i] > 4 ? &start.decay[start.adamw.n_decay++] : &start.no_decay[start.adamw.n_no_decay++];
        *to = pawl_str_z(names[i]);
    }
    start.adamw.has_groups = 1;
    start.adamw.decay = start.decay;
    start.adamw.no_decay = start.no_decay;
    assert_int_equal(pawl_llmcp35_tokenizer_literal(pieces, 3, &tokenizer, NULL, NULL), PAWL_OK);
    assert_int_equal(begin(&start, &training, NULL, &err), PAWL_OK);
    for (size_t i = 0; i < 2; i++) {
        struct pawl_llmcp35_bundle *bundle = NULL;
        assert_int_equal(pawl_llmcp35_capture(training, &bundle, &err), PAWL_OK);
        assert_int_equal(pawl_llmcp35_new(bundle, tokenizer, 99, &checkpoints[i], NULL, &err), PAWL_OK);
        if (i == 0)
            assert_int_equal(pawl_llmcp35_update(training, &step.update, &err), PAWL_OK);
    }
    for (size_t i = 0; i < 2; i++) {
        struct pawl_llmcp35 *decoded = NULL;
        struct pawl_llmcp35_facts facts;
        size_t n, n_parameters;
        unsigned char *bytes = lc_encoded(checkpoints[i], &n);
        if (pawl_llmcp35_decode(bytes, n, &decoded, NULL, &err) != PAWL_OK)
            fail_msg("step %zu: %s", i, err.message);
        pawl_llmcp35_facts(decoded, &facts);
        assert_true(facts.step == i && facts.rng_state == 99 && facts.values == 124);
        assert_true(pawl_str_equal(facts.adamw.decay[0], PAWL_STR("blocks.0.attention.key.weight")));
        const struct pawl_llmcp35_parameter *parameters = pawl_llmcp35_parameters(decoded, &n_parameters);
        for (size_t k = 0; k < n_parameters; k++) {
            assert_memory_equal(parameters[k].values, i == 0 ? start.values[k] : step.arrays[0][k],
                                parameters[k].n * sizeof(double));
            assert_int_equal(parameters[k].is_decayed, sizes[k] > 4);
        }
        free(bytes);
        pawl_llmcp35_free(decoded);
        pawl_llmcp35_free(checkpoints[i]);
    }
    pawl_buffer_release(&name);
    pawl_llmcp35_tokenizer_free(tokenizer);
    pawl_llmcp35_training_free(training);
    step_release(&step);
    start_release(&start);
}

/* Goal: what could not stand in a file does not come into training or a checkpoint, with the page's category and cause. */
static void
what_no_file_could_say_is_refused(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    struct pawl_llmcp35_bundle *bundle = NULL;
    struct pawl_llmcp35 *checkpoint = NULL;
    struct start start;
    struct step step;
    const struct pawl_str pieces[2] = { PAWL_STR("a"), PAWL_STR("b") }, foreign[1] = { PAWL_STR("x") };
    start_init(&start);

    struct start edited = start;
    edited.config.heads = 3;
    assert_int_equal(begin(&edited, &training, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "model/width_not_divisible");
    pawl_llmcp35_fault_free(fault);
    edited = start;
    edited.config.layers = UINT64_MAX;
    assert_int_equal(begin(&edited, &training, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "model/parameter_allocation");
    edited = start;
    edited.config.layers = 2;
    assert_int_equal(begin(&edited, &training, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "model/parameter_count_mismatch");
    edited = start;
    edited.config.vocabulary = UINT64_MAX / 2;
    assert_int_equal(begin(&edited, &training, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "tensor/shape_overflow");
    edited = start;
    edited.adamw.beta1 = 1.0;
    assert_int_equal(begin(&edited, &training, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "adamw_config/invalid_beta1");
    edited = start;
    edited.adamw.size = 8;
    assert_int_equal(begin(&edited, &training, &fault, &err), PAWL_ARGUMENT);
    assert_null(fault);
    edited = start;
    edited.adamw.has_groups = 1;
    assert_int_equal(begin(&edited, &training, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "adamw_config/empty_parameter_groups");
    start.values[3][5] = NAN;
    assert_int_equal(begin(&start, &training, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "parameter/non_finite_value");
    assert_int_equal(lc_field(fault, "index")->number, 5);
    pawl_llmcp35_fault_free(fault);
    start.values[3][5] = 0;

    /* groups that name something else: nothing says so at step 0, and the first update does */
    edited = start;
    edited.adamw.has_groups = 1;
    edited.adamw.decay = foreign;
    edited.adamw.n_decay = 1;
    step_init(&step, &start, 0.5);
    assert_int_equal(begin(&edited, &training, NULL, &err), PAWL_OK);
    assert_int_equal(pawl_llmcp35_update(training, &step.update, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "adamw_state/parameter_groups_mismatch");
    assert_int_equal(pawl_llmcp35_capture(training, &bundle, &err), PAWL_OK);
    assert_int_equal(pawl_llmcp35_tokenizer_literal(pieces, 2, &tokenizer, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_llmcp35_new(bundle, tokenizer, 0, &checkpoint, &fault, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "vocabulary_mismatch");
    assert_string_equal(err.message, "the tokenizer has 2 tokens, the decoder 3");
    pawl_llmcp35_fault_free(fault);
    pawl_llmcp35_bundle_free(bundle); /* a refusal leaves it to the caller */
    pawl_llmcp35_tokenizer_free(tokenizer);
    pawl_llmcp35_training_free(training);
    step_release(&step);
    start_release(&start);
}

/* ---- safetensors ---- */

/* Goal: to safetensors and back is the same file. Method: all valid golden files. */
static void
safetensors_and_back_is_the_same_file(void **state)
{
    (void)state;
    static const char *const names[] = { "v1-selected-step8",
                                         "valid/byte-bpe-step1",
                                         "valid/byte-bpe-no-merges-step0",
                                         "valid/literal-step0-groups",
                                         "valid/literal-two-layer-step3",
                                         "valid/literal-no-groups-step2",
                                         "valid/negative-zero-second-moment" };
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_str path = PAWL_STR("converted.safetensors");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char golden[512];
        size_t n, n_again;
        struct pawl_llmcp35 *again = NULL;
        (void)snprintf(golden, sizeof golden, LC_GOLDEN "%s.bin", names[i]);
        struct pawl_llmcp35 *checkpoint = lc_load_golden(golden);
        unsigned char *bytes = lc_bytes_of(golden, &n);
        assert_int_equal(pawl_llmcp35_export_safetensors(checkpoint, path, i > 0, &err), PAWL_OK);
        if (pawl_llmcp35_import_safetensors(path, &again, NULL, &err) != PAWL_OK)
            fail_msg("%s: %s", names[i], err.message);
        unsigned char *back = lc_encoded(again, &n_again);
        assert_int_equal(n_again, n);
        assert_memory_equal(back, bytes, n);
        free(back);
        free(bytes);
        pawl_llmcp35_free(checkpoint);
        pawl_llmcp35_free(again);
    }
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE);
    assert_int_equal(pawl_llmcp35_export_safetensors(checkpoint, path, 0, &err), PAWL_EXISTS);
    pawl_llmcp35_free(checkpoint);
    assert_int_equal(remove("converted.safetensors"), 0);
}

/* Change the first place where `from` stands in a file to `to`, of the same length. */
static void
edit_text(const char *path, const char *from, const char *to)
{
    size_t n, len = strlen(from);
    unsigned char *bytes = lc_bytes_of(path, &n);
    assert_int_equal(strlen(to), len);
    size_t at = 0;
    while (at + len <= n && memcmp(bytes + at, from, len) != 0)
        at++;
    assert_true(at + len <= n);
    memcpy(bytes + at, to, len);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

/* Goal: safetensors that are not such a file are refused with what is missing, and never half read. */
static void
other_safetensors_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *code, *message;
    } edits[] = {
        { "\"format\":\"llmcp35\"", "\"format\":\"llmcp36\"", "content",
          "the metadata have not the format 'llmcp35' and the key 'llmcp35'" },
        { "\\\"decoder_width\\\"", "\\\"decoder_Width\\\"", "content",
          "the metadata 'llmcp35' have no good member 'decoder_width'" },
        { "\\\"step\\\":8", "\\\"step\\\":9", "", "" },
        { "0x40c3880000000000", "0x40C3880000000000", "content",
          "the metadata 'llmcp35' have no good member 'rope_base_bits'" },
        { "\\\"version\\\":1", "\\\"version\\\":2", "content",
          "version 2 with a tokenizer of kind 1, expected version 1 and kind 1 or 2" },
        { "\"tokenizer.token.3\"", "\"tokenizer.token.7\"", "content", "there is no tensor 'tokenizer.token.3'" },
        { "\"final_norm.gain\"", "\"final_norm.main\"", "content", "there is no tensor 'final_norm.gain'" },
        { "\"adamw.first.final_norm.gain\"", "\"adamw.first.final_norm.main\"", "content",
          "there is no tensor 'adamw.first.final_norm.gain'" },
        { "\\\"decoder_heads\\\":2", "\\\"decoder_heads\\\":3", "model/width_not_divisible",
          "the width 4 can't be divided among 3 heads" },
        { "\\\"no_decay_names\\\":[\\\"", "\\\"no_decay_names\\\":[\\\"", "", "" },
    };
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_llmcp35 *again = NULL;
        assert_int_equal(pawl_llmcp35_export_safetensors(checkpoint, PAWL_STR("edited.safetensors"), 1, &err), PAWL_OK);
        edit_text("edited.safetensors", edits[i].from, edits[i].to);
        enum pawl_status st = pawl_llmcp35_import_safetensors(PAWL_STR("edited.safetensors"), &again, NULL, &err);
        if (edits[i].code[0] == '\0') {
            assert_int_equal(st, PAWL_OK); /* another valid state */
            pawl_llmcp35_free(again);
            continue;
        }
        assert_int_equal(st, PAWL_CORRUPT);
        if (strcmp(err.code, edits[i].code) != 0 || strcmp(err.message, edits[i].message) != 0)
            fail_msg("%s: %s: %s", edits[i].to, err.code, err.message);
    }
    assert_int_equal(remove("edited.safetensors"), 0);
    pawl_llmcp35_free(checkpoint);
}

/* Goal: a tensor that the checkpoint has no use for is not lost in silence. Method: the exported file with one more. */
static void
a_tensor_too_many_is_refused(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_model *model = NULL;
    struct pawl_llmcp35 *again = NULL;
    struct pawl_tensor tensors[64];
    size_t n, n_metadata;
    unsigned char extra[1] = { 7 };
    const uint64_t one[1] = { 1 };
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE);
    assert_int_equal(pawl_llmcp35_export_safetensors(checkpoint, PAWL_STR("one.safetensors"), 1, &err), PAWL_OK);
    assert_int_equal(pawl_model_open_z("one.safetensors", NULL, &model, &err), PAWL_OK);
    const struct pawl_tensor_info *infos = pawl_model_tensors(model, &n);
    const struct pawl_pair *metadata = pawl_model_metadata(model, &n_metadata, NULL);
    assert_true(n < 64);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = (size_t)(infos[i].end - infos[i].begin);
        tensors[i] = (struct pawl_tensor){ .size = sizeof tensors[i],
                                           .slot = PAWL_MODEL,
                                           .dtype = infos[i].dtype,
                                           .name = infos[i].name,
                                           .rank = infos[i].rank,
                                           .shape = infos[i].shape,
                                           .data = malloc(bytes + 1) };
        assert_non_null(tensors[i].data);
        assert_int_equal(pawl_model_read(model, &infos[i], infos[i].dtype, tensors[i].data, bytes, &err), PAWL_OK);
    }
    tensors[n] = (struct pawl_tensor){ .size = sizeof tensors[n],
                                       .slot = PAWL_MODEL,
                                       .dtype = PAWL_U8,
                                       .name = PAWL_STR("extra"),
                                       .rank = 1,
                                       .shape = one,
                                       .data = extra };
    assert_int_equal(pawl_safetensors_write(PAWL_STR("two.safetensors"), tensors, n + 1,
                                            &PAWL_WRITE_OPTIONS(.metadata = metadata, .n_metadata = n_metadata), &err),
                     PAWL_OK);
    assert_int_equal(pawl_llmcp35_import_safetensors(PAWL_STR("two.safetensors"), &again, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "the file has 39 tensors, the checkpoint takes 38 of them");
    for (size_t i = 0; i < n; i++)
        free(tensors[i].data);
    pawl_model_close(model);
    pawl_llmcp35_free(checkpoint);
    assert_int_equal(remove("one.safetensors") | remove("two.safetensors"), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literal_tokenizers),
        cmocka_unit_test(byte_bpe_tokenizers),
        cmocka_unit_test(tokens_longer_than_can_be_counted),
        cmocka_unit_test(the_generator_is_splitmix64),
        cmocka_unit_test(copy_and_move_come_back_to_the_same_file),
        cmocka_unit_test(an_absurd_capacity_fails_on_restore),
        cmocka_unit_test(rotary_tables_grow_with_what_is_asked),
        cmocka_unit_test(an_update_is_taken_whole_or_not_at_all),
        cmocka_unit_test(checkpoints_of_training_are_files),
        cmocka_unit_test(what_no_file_could_say_is_refused),
        cmocka_unit_test(safetensors_and_back_is_the_same_file),
        cmocka_unit_test(other_safetensors_are_refused),
        cmocka_unit_test(a_tensor_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
