/* LLMCP35: every single bit, every cut, and rules that edits of golden files seldom meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "unit/llmcp35_support.h"

/* The code of a refusal; "" when the file is taken, and then its encoding must be the same bytes. */
static const char *
verdict(const unsigned char *bytes, size_t n, char code[64])
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35 *checkpoint = NULL;
    code[0] = '\0';
    if (pawl_llmcp35_decode(bytes, n, &checkpoint, NULL, &err) != PAWL_OK) {
        assert_null(checkpoint);
        assert_true(err.message[0] != '\0');
        (void)snprintf(code, 64, "%s", err.code);
        return code;
    }
    size_t n_again;
    unsigned char *again = lc_encoded(checkpoint, &n_again);
    assert_int_equal(n_again, n);
    assert_memory_equal(again, bytes, n);
    free(again);
    pawl_llmcp35_free(checkpoint);
    return code;
}

/*
 * Goal: no flipped bit passes. Method: all 50,640 of the fixture. The checksum finds each one outside the first 38 bytes; inside
 * them the first rule of the page that sees the bit does.
 */
static void
every_flipped_bit_is_refused(void **state)
{
    (void)state;
    size_t n;
    char code[64];
    unsigned char *bytes = lc_bytes_of(LC_FIXTURE, &n);
    for (size_t at = 0; at < n; at++) {
        const char *expected = at < 8    ? "bad_magic"
                               : at < 10 ? "unsupported_version"
                               : at < 14 ? "unsupported_endianness"
                               : at < 30 ? "file_extent"
                                         : "checksum_mismatch";
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1u << bit);
            assert_string_equal(verdict(bytes, n, code), expected);
            bytes[at] ^= (unsigned char)(1u << bit);
        }
    }
    assert_string_equal(verdict(bytes, n, code), "");
    free(bytes);
}

/* Goal: no beginning of a file passes. Method: all 6,330, each in memory of just its size. */
static void
every_truncation_is_refused(void **state)
{
    (void)state;
    size_t n;
    char code[64];
    unsigned char *bytes = lc_bytes_of(LC_FIXTURE, &n);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *beginning = malloc(cut == 0 ? 1 : cut);
        assert_non_null(beginning);
        memcpy(beginning, bytes, cut);
        assert_string_equal(verdict(beginning, cut, code), cut < 38 ? "truncated" : "file_extent");
        free(beginning);
    }
    free(bytes);
}

/*
 * Goal: with the checksum put right, a flipped bit is refused by a rule, or makes another valid file. Method: all bits of the
 * variable header, and the payload of one parameter and one second moment; which rule it is, the second decoder of
 * llmcp35_oracle.py tells.
 */
static void
a_flipped_bit_with_its_checksum_is_judged(void **state)
{
    (void)state;
    size_t n, n_taken = 0, n_refused = 0;
    char code[64];
    unsigned char *bytes = lc_bytes_of(LC_FIXTURE, &n);
    for (size_t at = LC_FIXED_BYTES; at < n; at += at < 2869 || at > n - 160 ? 1 : 17) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1u << bit);
            lc_fix_checksum(bytes, n);
            bool is_taken = verdict(bytes, n, code)[0] == '\0';
            n_taken += is_taken;
            n_refused += !is_taken;
            assert_string_not_equal(code, "checksum_mismatch");
            bytes[at] ^= (unsigned char)(1u << bit);
        }
    }
    assert_true(n_taken > 1000 && n_refused > 10000);
    free(bytes);
}

/* ---- one rule at a time ---- */

struct edit {
    const char *file; /* below the golden folder */
    size_t at;
    const char *bytes; /* in hex */
    const char *code, *message;
};

static void
check_edit(const struct edit *edit)
{
    char path[512];
    size_t n;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35 *checkpoint = NULL;
    (void)snprintf(path, sizeof path, LC_GOLDEN "%s", edit->file);
    unsigned char *bytes = lc_bytes_of(path, &n);
    for (size_t i = 0; edit->bytes[2 * i] != '\0'; i++) {
        unsigned value;
        assert_int_equal(sscanf(edit->bytes + 2 * i, "%2x", &value), 1);
        bytes[edit->at + i] = (unsigned char)value;
    }
    lc_fix_checksum(bytes, n);
    enum pawl_status st = pawl_llmcp35_decode(bytes, n, &checkpoint, NULL, &err);
    if (st == PAWL_OK)
        fail_msg("%s at %zu is taken, expected %s", edit->bytes, edit->at, edit->code);
    if (strcmp(err.code, edit->code) != 0 || strcmp(err.message, edit->message) != 0)
        fail_msg("%s at %zu: %s: %s", edit->bytes, edit->at, err.code, err.message);
    free(bytes);
}

#define FIXTURE "v1-selected-step8.bin"
#define NEGATIVE_ONE "000000000000f0bf"
#define MOMENTS_AT 4026 /* of blocks.0.attention.key.weight, first and second: 128 bytes each */

/* Goal: rules that random edits seldom reach, with their whole messages. Method: one field of a golden file each. */
static void
rules_answer_with_numbers(void **state)
{
    (void)state;
    const struct edit edits[] = {
        { FIXTURE, 107, "ffffffffffffffff", "model/block_attention_rotary_table_allocation",
          "layer 0: a rotary table of 18446744073709551615 elements is too large for any memory" },
        { FIXTURE, 107, "0000000000000010", "model/block_attention_rotary_table_allocation",
          "layer 0: a rotary table of 1152921504606846976 elements is too large for any memory" },
        { "valid/literal-two-layer-step3.bin", 107, "0000000000000080", "model/block_attention_rotary_table_overflow",
          "layer 0: 9223372036854775808 positions of 2 pairs overflow" },
        { FIXTURE, MOMENTS_AT + 128, NEGATIVE_ONE, "adamw_state/negative_second_moment",
          "the second moment of 'blocks.0.attention.key.weight' holds -1 at index 0" },
        { FIXTURE, 42, "09", "step_mismatch", "the selected step is 9, AdamW's 8" },
        { FIXTURE, 504, "00", "adamw_state/invalid_beta_power",
          "the power of beta1 at step 0 is 0.430467, expected exactly 1" },
        { "valid/literal-step0-groups.bin", 67, "04", "model/embedding_vocabulary_mismatch",
          "found 3, the configuration says 4" },
        { FIXTURE, 115, "000000000000f07f", "model/invalid_rope_base",
          "the RoPE base is inf, expected a finite number above 0" },
        { FIXTURE, 123, NEGATIVE_ONE, "model/invalid_rms_epsilon",
          "the RMSNorm epsilon is -1, expected a finite number not below 0" },
        { FIXTURE, 99, "ffffffffffffffff", "model/parameter_allocation",
          "18446744073709551615 layers have more parameters than can be counted" },
        { FIXTURE, 59, "ffffffffffffffff", "size_overflow", "model_boundary: the size does not fit its field" },
        { FIXTURE, 59, "f4ffffffffffffff", "size_overflow", "optimizer_boundary: the size does not fit its field" },
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        check_edit(&edits[i]);
    }
}

/* Goal: both lists of groups are read before either is judged. Method: a name twice in the first, and no UTF-8 in the second. */
static void
groups_are_read_before_they_are_judged(void **state)
{
    (void)state;
    size_t n;
    char code[64];
    unsigned char *bytes = lc_bytes_of(LC_FIXTURE, &n);
    memcpy(bytes + 347, "blocks.0.ffn.down.weight", 24); /* as the name before it */
    lc_fix_checksum(bytes, n);
    assert_string_equal(verdict(bytes, n, code), "adamw_config/duplicate_grouped_parameter");
    bytes[431] = 0xff;
    lc_fix_checksum(bytes, n);
    assert_string_equal(verdict(bytes, n, code), "invalid_utf8");
    free(bytes);
}

/* Goal: what is allowed at the edge is allowed. Method: -0.0 where 0 is, and P = 2^59, whose table nobody could hold. */
static void
edges_are_taken(void **state)
{
    (void)state;
    const struct {
        size_t at;
        uint64_t word;
    } edges[] = { { 123, UINT64_C(0x8000000000000000) },              /* RMS epsilon -0.0 */
                  { 163, UINT64_C(0x8000000000000000) },              /* weight decay -0.0 */
                  { 512, UINT64_C(0x8000000000000000) },              /* beta1's power -0.0 */
                  { MOMENTS_AT + 128, UINT64_C(0x8000000000000000) }, /* a second moment -0.0 */
                  { MOMENTS_AT, 1 },                                  /* the least first moment */
                  { 107, UINT64_C(1) << 59 },
                  { 107, UINT64_MAX / 16 },
                  { 50, UINT64_MAX } };
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        size_t n;
        char code[64];
        unsigned char *bytes = lc_bytes_of(LC_FIXTURE, &n);
        pawl_put_u64le(bytes + edges[i].at, edges[i].word);
        lc_fix_checksum(bytes, n);
        assert_string_equal(verdict(bytes, n, code), "");
        free(bytes);
    }
}

/*
 * Goal: the last step of stage F names the least position, then the least pair. Method: bases whose angles stop being finite,
 * found here by walking the positions one by one.
 */
static void
angles_that_are_not_finite_are_found(void **state)
{
    (void)state;
    const struct {
        double base;
        uint64_t positions, head_width;
    } cases[] = { { 5e-324, 2, 4 },    { 5e-324, 9, 42 },    { 5e-324, 40, 40 },   { 5e-324, 1, 44 },
                  { 5e-324, 400, 38 }, { 1e-308, 99, 2000 }, { 1e-308, 99, 1000 }, { 1e-300, 99, 1000 },
                  { 5e-324, 3, 42 },   { 5e-324, 99, 100 },  { 1e308, 99, 64 } };
    unsigned n_found = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t pairs = cases[i].head_width / 2;
        uint64_t position = UINT64_MAX, pair = 0;
        for (uint64_t p = 0; p < pairs && position == UINT64_MAX; p++) {
            if (!isfinite(pow(cases[i].base, -2.0 * (double)p / (double)cases[i].head_width))) {
                position = 0;
                pair = p;
            }
        }
        for (uint64_t t = 0; t < cases[i].positions && position == UINT64_MAX; t++) {
            for (uint64_t p = 0; p < pairs && position == UINT64_MAX; p++) {
                if (!isfinite((double)t * pow(cases[i].base, -2.0 * (double)p / (double)cases[i].head_width))) {
                    position = t;
                    pair = p;
                }
            }
        }
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_llmcp35_fault *fault = NULL;
        struct lc_out out = lc_out_make(&fault, &err);
        enum pawl_status st = pawl_lc_check_rotary(cases[i].base, cases[i].positions, cases[i].head_width, 3, &out);
        assert_int_equal(st, position == UINT64_MAX ? PAWL_OK : PAWL_CORRUPT);
        if (st == PAWL_OK)
            continue;
        n_found++;
        assert_string_equal(err.code, "model/block_attention_rotary_non_finite");
        assert_int_equal(lc_field(fault, "layer")->number, 3);
        assert_int_equal(lc_field(fault, "position")->number, position);
        assert_int_equal(lc_field(fault, "pair")->number, pair);
        pawl_llmcp35_fault_free(fault);
    }
    assert_true(n_found >= 6 && n_found < sizeof cases / sizeof cases[0]);
}

/* Goal: a count is no reason to take memory. Method: the four counts at their largest; each ends with the bytes that are there. */
static void
huge_counts_end_with_the_bytes(void **state)
{
    (void)state;
    const struct {
        size_t at;
        const char *code;
    } counts[] = { { 172, "truncated" }, { 423, "invalid_utf8" }, { 536, "truncated" }, { 547, "truncated" } };
    for (size_t i = 0; i < 4; i++) {
        size_t n;
        char code[64];
        unsigned char *bytes = lc_bytes_of(LC_FIXTURE, &n);
        memset(bytes + counts[i].at, 0xff, 4);
        lc_fix_checksum(bytes, n);
        assert_string_equal(verdict(bytes, n, code), counts[i].code);
        free(bytes);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_flipped_bit_with_its_checksum_is_judged),
        cmocka_unit_test(rules_answer_with_numbers),
        cmocka_unit_test(groups_are_read_before_they_are_judged),
        cmocka_unit_test(edges_are_taken),
        cmocka_unit_test(angles_that_are_not_finite_are_found),
        cmocka_unit_test(huge_counts_end_with_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
