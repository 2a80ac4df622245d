#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "codec/convert.h"
#include "pawl/pcg32.h"

static const enum pawl_dtype narrow[] = { PAWL_F16,         PAWL_BF16,    PAWL_F8_E4M3, PAWL_F8_E5M2, PAWL_F8_E4M3FNUZ,
                                          PAWL_F8_E5M2FNUZ, PAWL_F8_E8M0, PAWL_F6_E2M3, PAWL_F6_E3M2, PAWL_F4 };
#define NARROW (sizeof(narrow) / sizeof(narrow[0]))

#define EACH_VARIANT(v)                                                                       \
    for (enum pawl_convert_variant v = PAWL_CONVERT_PORTABLE; v < PAWL_CONVERT_VARIANTS; v++) \
        if (pawl_convert_has(v))

static float
f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static uint32_t
bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* Element i of packed codes, by bit arithmetic that knows nothing of groups. */
static uint32_t
code_at(const unsigned char *codes, enum pawl_dtype dtype, size_t i)
{
    unsigned bits = pawl_dtype_bits(dtype);
    uint32_t code = 0;
    for (unsigned k = 0; k < bits; k++) {
        size_t place = i * bits + k;
        code |= (uint32_t)(codes[place / 8] >> (place % 8) & 1) << k;
    }
    return code;
}

/* Whole file on the heap. */
static unsigned char *
read_golden(const char *name, const char *suffix, size_t *ret_len)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/numerics/%s%s", PAWL_GOLDEN, name, suffix);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("cannot open %s", path);
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *ret_len = fread(bytes, 1, 1 << 20, file);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

struct golden {
    size_t n;
    float *values;
    unsigned char *codes, *errors;
    enum pawl_dtype dtype;
    enum pawl_overflow overflow;
};

static uint32_t
golden_code(const struct golden *golden, size_t i)
{
    return pawl_dtype_bits(golden->dtype) == 16 ? code_at(golden->codes, PAWL_U16, i) : golden->codes[i];
}

static unsigned
golden_error(const struct golden *golden, size_t i)
{
    return golden->overflow == PAWL_OVERFLOW_SATURATE ? golden->errors[i] >> 4 : golden->errors[i] & 15;
}

/* The values without an error in one call; their codes in one row. */
static size_t
check_good_values(const struct golden *golden, enum pawl_convert_variant variant)
{
    float *values = malloc((golden->n + 4) * sizeof(*values));
    size_t *index = malloc((golden->n + 4) * sizeof(*index));
    unsigned char *codes = malloc(2 * golden->n + 8);
    size_t n = 0;
    assert_true(values != NULL && index != NULL && codes != NULL);
    for (size_t i = 0; i < golden->n; i++) {
        if (golden_error(golden, i) == 0) {
            index[n] = i;
            values[n++] = golden->values[i];
        }
    }
    size_t good = n;
    while (n % 4 != 0)
        values[n++] = 1.0f;
    assert_int_equal(pawl_encode_f32_by(variant, golden->dtype, golden->overflow, values, n, codes, NULL, NULL),
                     PAWL_OK);
    for (size_t i = 0; i < good; i++) {
        uint32_t got = code_at(codes, golden->dtype, i), want = golden_code(golden, index[i]);
        if (got != want)
            fail_msg("%s %s: %08x gives %x, expected %x", pawl_convert_variant_name(variant),
                     pawl_dtype_name(golden->dtype), bits_of(values[i]), got, want);
    }
    free(values);
    free(index);
    free(codes);
    return good;
}

/* Each value with an error, as the third of four, so that an index that is off shows. */
static size_t
check_bad_values(const struct golden *golden, enum pawl_convert_variant variant)
{
    size_t bad = 0;
    for (size_t i = 0; i < golden->n; i++) {
        unsigned error = golden_error(golden, i);
        if (error == 0)
            continue;
        float values[4] = { 1.0f, 1.0f, golden->values[i], 1.0f };
        unsigned char codes[8];
        size_t at = 99;
        struct pawl_error err = PAWL_ERROR_INIT;
        enum pawl_status st = pawl_encode_f32_by(variant, golden->dtype, golden->overflow, values, 4, codes, &at, &err);
        const char *story = error == 1   ? "element 2 is "
                            : error == 2 ? "element 2 is NaN"
                                         : "holds only powers of two, all positive";
        if (st != PAWL_OUT_OF_RANGE || at != 2 || strstr(err.message, story) == NULL ||
            (error == 1) != (strstr(err.message, "beyond the largest") != NULL))
            fail_msg("%s %s: %08x gives status %d at %zu: %s", pawl_convert_variant_name(variant),
                     pawl_dtype_name(golden->dtype), bits_of(values[2]), (int)st, at, err.message);
        assert_int_equal(code_at(codes, golden->dtype, 0), code_at(codes, golden->dtype, 1));
        bad++;
    }
    return bad;
}

/*
 * Goal: the codes and errors of every format are those of the golden files, by
 * the format's rule and saturating. They come from an exact search among decoded
 * values and were held against torch and ml_dtypes.
 */
static void
golden_encodings(void **state)
{
    (void)state;
    EACH_VARIANT(variant)
    {
        for (size_t d = 0; d < NARROW; d++) {
            const char *name = pawl_dtype_name(narrow[d]);
            for (int saturate = 0; saturate < 2; saturate++) {
                size_t n = 0;
                struct golden golden = { .dtype = narrow[d],
                                         .overflow = saturate ? PAWL_OVERFLOW_SATURATE : PAWL_OVERFLOW_FORMAT };
                unsigned char *inputs = read_golden("inputs", ".bin", &n);
                golden.n = n / 4;
                assert_int_equal(golden.n, 13226);
                golden.values = (float *)(void *)inputs;
                golden.codes = read_golden(name, saturate ? ".saturate.bin" : ".spec.bin", &n);
                assert_int_equal(n, golden.n * (pawl_dtype_bits(narrow[d]) == 16 ? 2 : 1));
                golden.errors = read_golden(name, ".error.bin", &n);
                assert_int_equal(n, golden.n);
                size_t good = check_good_values(&golden, variant);
                size_t bad = check_bad_values(&golden, variant);
                assert_int_equal(good + bad, golden.n);
                free(inputs);
                free(golden.codes);
                free(golden.errors);
            }
        }
    }
}

/* Every code of the formats of 8 bits and fewer, packed as the format packs. */
static void
golden_decodings(void **state)
{
    (void)state;
    EACH_VARIANT(variant)
    {
        for (size_t d = 2; d < NARROW; d++) {
            size_t len = 0;
            unsigned bits = pawl_dtype_bits(narrow[d]);
            unsigned char *want = read_golden(pawl_dtype_name(narrow[d]), ".decode.bin", &len);
            size_t n = (size_t)1 << bits;
            assert_int_equal(len, 4 * n);
            unsigned char codes[256] = { 0 };
            for (size_t i = 0; i < n * bits; i++)
                codes[i / 8] |= (unsigned char)((i / bits >> (i % bits) & 1) << (i % 8));
            float values[256];
            assert_int_equal(pawl_decode_f32_by(variant, narrow[d], codes, n, values, NULL), PAWL_OK);
            for (size_t i = 0; i < n; i++) {
                uint32_t expected;
                memcpy(&expected, want + 4 * i, 4);
                if (bits_of(values[i]) != expected)
                    fail_msg("%s %s: code %zx gives %08x, expected %08x", pawl_convert_variant_name(variant),
                             pawl_dtype_name(narrow[d]), i, bits_of(values[i]), expected);
            }
            free(want);
        }
    }
}

/* Every code of F16 and BF16 against the definition, in double arithmetic; NaNs by the rule's words. */
static void
decoding_16_bits(void **state)
{
    (void)state;
    uint16_t *codes = malloc(2 * 65536);
    float *values = malloc(4 * 65536);
    assert_true(codes != NULL && values != NULL);
    for (uint32_t c = 0; c < 65536; c++)
        codes[c] = (uint16_t)c;
    EACH_VARIANT(variant)
    {
        assert_int_equal(pawl_decode_f32_by(variant, PAWL_BF16, codes, 65536, values, NULL), PAWL_OK);
        for (uint32_t c = 0; c < 65536; c++)
            assert_int_equal(bits_of(values[c]), c << 16);
        assert_int_equal(pawl_decode_f32_by(variant, PAWL_F16, codes, 65536, values, NULL), PAWL_OK);
        for (uint32_t c = 0; c < 65536; c++) {
            uint32_t sign = c >> 15 << 31, exponent = c >> 10 & 31, mantissa = c & 1023, want;
            if (exponent == 31)
                want = sign | (mantissa == 0 ? 0x7f800000 : 0x7fc00000 | mantissa << 13);
            else
                want = sign | bits_of((float)(exponent == 0 ? ldexp(mantissa, -24)
                                                            : ldexp(1024 + mantissa, (int)exponent - 25)));
            if (bits_of(values[c]) != want)
                fail_msg("%s F16: code %04x gives %08x, expected %08x", pawl_convert_variant_name(variant), c,
                         bits_of(values[c]), want);
        }
    }
    free(codes);
    free(values);
}

/* The worked examples of docs/format/numerics.md. */
static void
examples_of_the_page(void **state)
{
    (void)state;
    static const struct {
        enum pawl_dtype dtype;
        uint32_t value, code;
    } rows[] = {
        { PAWL_BF16, 0x3f808000, 0x3f80 },  /* 1 + 2^-8: a tie, to even, down */
        { PAWL_BF16, 0x3f818000, 0x3f82 },  /* 1 + 3 * 2^-8: up */
        { PAWL_F8_E4M3, 0x3f880000, 0x38 }, /* 1.0625 */
        { PAWL_F8_E4M3, 0x3f980000, 0x3a }, /* 1.1875 */
        { PAWL_F8_E4M3, 0x437a0000, 0x78 }, /* 250: 256 */
        { PAWL_F8_E4M3, 0x3a800000, 0x00 }, /* 2^-10: half of the smallest */
        { PAWL_F8_E4M3, 0x3b400000, 0x02 }, /* 1.5 * 2^-9 */
        { PAWL_F16, 0x477fefff, 0x7bff },   /* the last below 65520 */
        { PAWL_F16, 0x477ff000, 0x7c00 },   /* 65520 */
        { PAWL_F16, 0xffa00000, 0xff00 },   /* a signalling NaN: sign and payload kept, quiet */
        { PAWL_BF16, 0x7f800001, 0x7fc0 },  /* its payload lies in the bits that are lost: still a NaN */
        { PAWL_F8_E4M3, 0xffc00000, 0x7f },     { PAWL_F8_E5M2, 0xffc00000, 0x7f },
        { PAWL_F8_E4M3FNUZ, 0x80000000, 0x00 }, /* no negative zero */
        { PAWL_F8_E4M3FNUZ, 0xb6000000, 0x00 }, /* nor a negative value that rounds to it */
        { PAWL_F8_E4M3, 0x80000000, 0x80 },     { PAWL_F4, 0x80000000, 0x08 },
        { PAWL_F8_E8M0, 0x3fc00000, 0x80 }, /* 1.5: the larger, 2 */
        { PAWL_F8_E8M0, 0x3fbfffff, 0x7f }, /* below: 1 */
        { PAWL_F8_E8M0, 0x00000001, 0x00 }, /* 2^-149: 2^-127 */
        { PAWL_F8_E8M0, 0x00400000, 0x00 }, /* 2^-127 */
        { PAWL_F8_E8M0, 0x00400001, 0x01 },
    };
    EACH_VARIANT(variant)
    {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const float values[2] = { f32(rows[i].value), f32(rows[i].value) };
            unsigned char codes[4] = { 0 };
            assert_int_equal(
                pawl_encode_f32_by(variant, rows[i].dtype, PAWL_OVERFLOW_FORMAT, values, 2, codes, NULL, NULL),
                PAWL_OK);
            assert_int_equal(code_at(codes, rows[i].dtype, 0), rows[i].code);
            assert_int_equal(code_at(codes, rows[i].dtype, 1), rows[i].code);
        }
    }
}

/* What each rule makes of +-infinity and of the values around the end of the range. */
static void
overflow_rules(void **state)
{
    (void)state;
    static const struct {
        enum pawl_dtype dtype;
        float last, first;          /* last in range, first beyond it */
        uint32_t largest, infinity; /* codes; infinity 0: none */
        uint32_t sign;
    } rows[] = {
        { PAWL_F16, 0x1.ffdffep15f, 0x1.ffep15f, 0x7bff, 0x7c00, 0x8000 },
        { PAWL_BF16, 0x1.fefffep127f, 0x1.ffp127f, 0x7f7f, 0x7f80, 0x8000 },
        { PAWL_F8_E5M2, 0x1.dffffep15f, 0x1.ep15f, 0x7b, 0x7c, 0x80 },
        { PAWL_F8_E4M3, 448.0f, 0x1.c00002p8f, 0x7e, 0, 0x80 },
        { PAWL_F8_E4M3FNUZ, 0x1.effffep7f, 248.0f, 0x7f, 0, 0x80 },
        { PAWL_F8_E5M2FNUZ, 0x1.dffffep15f, 0x1.ep15f, 0x7f, 0, 0x80 },
        { PAWL_F8_E8M0, 0x1.7ffffep127f, 0x1.8p127f, 0xfe, 0, 0 },
        { PAWL_F6_E2M3, 0x1.effffep2f, 7.75f, 0x1f, 0, 0x20 },
        { PAWL_F6_E3M2, 0x1.dffffep4f, 30.0f, 0x1f, 0, 0x20 },
        { PAWL_F4, 0x1.bffffep2f, 7.0f, 0x07, 0, 0x08 },
    };
    EACH_VARIANT(variant)
    {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            enum pawl_dtype dtype = rows[i].dtype;
            for (int overflow = PAWL_OVERFLOW_FORMAT; overflow <= PAWL_OVERFLOW_INF; overflow++) {
                for (int k = 0; k < 6; k++) {
                    bool is_negative = k % 2 != 0;
                    float magnitude = k < 2 ? rows[i].last : k < 4 ? rows[i].first : INFINITY;
                    if (is_negative && rows[i].sign == 0)
                        continue;
                    const float values[4] = { 1, 1, 1, is_negative ? -magnitude : magnitude };
                    unsigned char codes[8];
                    size_t bad = 99;
                    enum pawl_status st =
                        pawl_encode_f32_by(variant, dtype, (enum pawl_overflow)overflow, values, 4, codes, &bad, NULL);
                    if (overflow == PAWL_OVERFLOW_INF && rows[i].infinity == 0) {
                        assert_int_equal(st, PAWL_ARGUMENT);
                        continue;
                    }
                    bool is_error = k >= 2 && (overflow == PAWL_OVERFLOW_ERROR ||
                                               (overflow == PAWL_OVERFLOW_FORMAT && rows[i].infinity == 0));
                    assert_int_equal(st, is_error ? PAWL_OUT_OF_RANGE : PAWL_OK);
                    assert_int_equal(bad, is_error ? 3 : 99);
                    uint32_t want = k >= 2 && overflow != PAWL_OVERFLOW_SATURATE ? rows[i].infinity : rows[i].largest;
                    if (!is_error)
                        assert_int_equal(code_at(codes, dtype, 3), want | (is_negative ? rows[i].sign : 0));
                }
            }
        }
    }
}

/* NaN is no overflow: no rule makes an error of it where the format has one. */
static void
nan_under_every_rule(void **state)
{
    (void)state;
    EACH_VARIANT(variant)
    {
        for (size_t d = 0; d < NARROW; d++) {
            for (int overflow = PAWL_OVERFLOW_FORMAT; overflow <= PAWL_OVERFLOW_SATURATE; overflow++) {
                const float values[4] = { 1, f32(0xffc00000), 1, 1 };
                unsigned char codes[8];
                bool has_nan = pawl_dtype_bits(narrow[d]) >= 8;
                assert_int_equal(
                    pawl_encode_f32_by(variant, narrow[d], (enum pawl_overflow)overflow, values, 4, codes, NULL, NULL),
                    has_nan ? PAWL_OK : PAWL_OUT_OF_RANGE);
            }
        }
    }
}

static void
expect_message(enum pawl_dtype dtype, enum pawl_overflow overflow, float value, const char *message)
{
    EACH_VARIANT(variant)
    {
        float values[8] = { 1, 1, 1, 1, 1, value, value, 1 };
        unsigned char codes[16];
        size_t bad = 99;
        struct pawl_error err = PAWL_ERROR_INIT;
        assert_int_equal(pawl_encode_f32_by(variant, dtype, overflow, values, 8, codes, &bad, &err), PAWL_OUT_OF_RANGE);
        assert_int_equal(bad, 5);
        assert_string_equal(err.code, "out-of-range");
        assert_string_equal(err.message, message);
    }
}

static void
messages(void **state)
{
    (void)state;
    expect_message(PAWL_F8_E4M3, PAWL_OVERFLOW_FORMAT, -448.5f,
                   "element 5 is -448.5, beyond the largest of F8_E4M3 in magnitude, 448");
    expect_message(PAWL_F16, PAWL_OVERFLOW_ERROR, 65520.0f,
                   "element 5 is 65520, beyond the largest of F16 in magnitude, 65504");
    expect_message(PAWL_BF16, PAWL_OVERFLOW_ERROR, -INFINITY,
                   "element 5 is -inf, beyond the largest of BF16 in magnitude, 3.3895314e+38");
    expect_message(PAWL_F4, PAWL_OVERFLOW_SATURATE, f32(0xffc00001), "element 5 is NaN (0xffc00001), which F4 lacks");
    expect_message(PAWL_F8_E8M0, PAWL_OVERFLOW_SATURATE, 0.0f,
                   "element 5 is 0, and F8_E8M0 holds only powers of two, all positive");
    expect_message(PAWL_F8_E8M0, PAWL_OVERFLOW_SATURATE, -0.0f,
                   "element 5 is -0, and F8_E8M0 holds only powers of two, all positive");
    expect_message(PAWL_F8_E8M0, PAWL_OVERFLOW_FORMAT, -INFINITY,
                   "element 5 is -inf, and F8_E8M0 holds only powers of two, all positive");
    expect_message(PAWL_F8_E8M0, PAWL_OVERFLOW_FORMAT, INFINITY,
                   "element 5 is inf, beyond the largest of F8_E8M0 in magnitude, 2^127");
}

static void
arguments(void **state)
{
    (void)state;
    float values[4] = { 1, 2, 3, 4 };
    unsigned char codes[64];
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_encode_f32(PAWL_I32, PAWL_OVERFLOW_FORMAT, values, 4, codes, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "I32 is no float dtype");
    assert_int_equal(pawl_encode_f32(PAWL_C64, PAWL_OVERFLOW_FORMAT, values, 4, codes, NULL, NULL), PAWL_ARGUMENT);
    assert_int_equal(pawl_encode_f32((enum pawl_dtype)77, PAWL_OVERFLOW_FORMAT, values, 4, codes, NULL, &err),
                     PAWL_ARGUMENT);
    assert_string_equal(err.message, "77 is the number of no dtype");
    assert_int_equal(pawl_encode_f32(PAWL_F8_E4M3, PAWL_OVERFLOW_INF, values, 4, codes, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "F8_E4M3 has no infinity to overflow to");
    assert_int_equal(pawl_encode_f32(PAWL_F16, (enum pawl_overflow)4, values, 4, codes, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "4 is the number of no overflow rule");
    assert_int_equal(pawl_encode_f32(PAWL_F4, PAWL_OVERFLOW_FORMAT, values, 3, codes, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "3 elements of F4, 4 bits each, are no whole bytes");
    assert_int_equal(pawl_encode_f32(PAWL_F6_E2M3, PAWL_OVERFLOW_FORMAT, values, 2, codes, NULL, NULL), PAWL_ARGUMENT);
    assert_int_equal(pawl_encode_f32(PAWL_F4, PAWL_OVERFLOW_FORMAT, values, 2, codes, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_decode_f32(PAWL_F64, codes, 1, values, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "F64 is no float dtype of 32 bits or fewer");
    assert_int_equal(pawl_decode_f32(PAWL_U8, codes, 1, values, NULL), PAWL_ARGUMENT);
    assert_int_equal(pawl_decode_f32(PAWL_F6_E3M2, codes, 3, values, NULL), PAWL_ARGUMENT);
    for (int dtype = 1; dtype <= PAWL_DTYPE_COUNT; dtype++) {
        if (!pawl_dtype_is_float((enum pawl_dtype)dtype))
            continue;
        assert_int_equal(pawl_encode_f32((enum pawl_dtype)dtype, PAWL_OVERFLOW_FORMAT, NULL, 0, NULL, NULL, NULL),
                         PAWL_OK);
        if (dtype != PAWL_F64)
            assert_int_equal(pawl_decode_f32((enum pawl_dtype)dtype, NULL, 0, NULL, NULL), PAWL_OK);
    }
}

/* F32 moves every bit; F64 widens exactly, NaNs quiet with their payload. */
static void
copies_and_widenings(void **state)
{
    (void)state;
    const uint32_t patterns[] = { 0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x3f800001,
                                  0xc0490fdb, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xffc12345 };
    const uint64_t wide[] = { 0x0000000000000000, 0x8000000000000000, 0x36a0000000000000, 0xb80fffffc0000000,
                              0x3810000000000000, 0x3ff0000020000000, 0xc00921fb60000000, 0x47efffffe0000000,
                              0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000020000000, 0xfff82468a0000000 };
    const size_t n = sizeof(patterns) / sizeof(patterns[0]);
    EACH_VARIANT(variant)
    {
        float values[12], back[12];
        unsigned char codes[1 + 8 * 12];
        memcpy(values, patterns, sizeof(patterns));
        assert_int_equal(pawl_encode_f32_by(variant, PAWL_F32, PAWL_OVERFLOW_FORMAT, values, n, codes + 1, NULL, NULL),
                         PAWL_OK);
        assert_memory_equal(codes + 1, patterns, sizeof(patterns));
        assert_int_equal(pawl_decode_f32_by(variant, PAWL_F32, codes + 1, n, back, NULL), PAWL_OK);
        assert_memory_equal(back, patterns, sizeof(patterns));
        assert_int_equal(pawl_encode_f32_by(variant, PAWL_F64, PAWL_OVERFLOW_FORMAT, values, n, codes + 1, NULL, NULL),
                         PAWL_OK);
        for (size_t i = 0; i < n; i++) {
            uint64_t got;
            memcpy(&got, codes + 1 + 8 * i, 8);
            if (got != wide[i])
                fail_msg("%08x widens to %016llx, expected %016llx", patterns[i], (unsigned long long)got,
                         (unsigned long long)wide[i]);
        }
    }
}

/*
 * Goal: every length is whole: no element of a vector's tail is left out or
 * written twice, nothing behind the end is touched, codes at odd addresses work.
 * Method: each length to 140 and around the block sizes, against element by
 * element results, with a guard behind; exact heap blocks let a sanitizer see reads.
 */
static void
every_length(void **state)
{
    (void)state;
    struct pawl_pcg32 rng;
    static float pool[9000];
    pawl_pcg32_seed(&rng, 3, 54);
    for (size_t i = 0; i < 9000; i++)
        pool[i] = (float)(pawl_pcg32_uniform(&rng) * 5 + 0.01);
    const size_t long_ones[] = { 1020, 1024, 1028, 4092, 4096, 4100, 8192, 8204 };
    EACH_VARIANT(variant)
    {
        for (size_t d = 0; d < NARROW; d++) {
            unsigned bits = pawl_dtype_bits(narrow[d]);
            for (size_t k = 0; k < 140 + 8; k++) {
                size_t n = k < 140 ? k : long_ones[k - 140];
                if (n * bits % 8 != 0)
                    continue;
                size_t bytes = n * bits / 8;
                float *values = malloc(n * 4 + 4);
                unsigned char *codes = malloc(bytes + 9);
                float *back = malloc(n * 4 + 4);
                assert_true(values != NULL && codes != NULL && back != NULL);
                memcpy(values + 1, pool, n * 4);
                memset(codes, 0xa5, bytes + 9);
                assert_int_equal(
                    pawl_encode_f32_by(variant, narrow[d], PAWL_OVERFLOW_FORMAT, values + 1, n, codes + 1, NULL, NULL),
                    PAWL_OK);
                for (size_t i = 0; i < 8; i++)
                    assert_int_equal(codes[1 + bytes + i], 0xa5);
                assert_int_equal(codes[0], 0xa5);
                back[n] = 77.0f;
                assert_int_equal(pawl_decode_f32_by(variant, narrow[d], codes + 1, n, back, NULL), PAWL_OK);
                assert_true(back[n] == 77.0f);
                for (size_t i = 0; i < n; i++) {
                    const float same[4] = { pool[i], pool[i], pool[i], pool[i] };
                    unsigned char one[8];
                    float decoded[4];
                    assert_int_equal(pawl_encode_f32_by(PAWL_CONVERT_PORTABLE, narrow[d], PAWL_OVERFLOW_FORMAT, same, 4,
                                                        one, NULL, NULL),
                                     PAWL_OK);
                    assert_int_equal(code_at(codes + 1, narrow[d], i), code_at(one, narrow[d], 0));
                    assert_int_equal(pawl_decode_f32_by(PAWL_CONVERT_PORTABLE, narrow[d], one, 4, decoded, NULL),
                                     PAWL_OK);
                    assert_int_equal(bits_of(back[i]), bits_of(decoded[0]));
                }
                free(values);
                free(codes);
                free(back);
            }
        }
    }
}

/* The first of several bad values is named, wherever it lies in a block or a vector; all before it are written. */
static void
first_bad_index(void **state)
{
    (void)state;
    const size_t n = 3 * 4096 + 40;
    float *values = malloc(n * 4);
    unsigned char *codes = malloc(n);
    assert_true(values != NULL && codes != NULL);
    const size_t places[] = { 0, 1, 7, 8, 15, 16, 63, 64, 4095, 4096, 4097, 8191, 8192, 12287, 12288, n - 2, n - 1 };
    EACH_VARIANT(variant)
    {
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            for (size_t i = 0; i < n; i++)
                values[i] = 2.0f;
            values[places[p]] = 1e6f;
            values[n - 1] = -1e6f;
            memset(codes, 0xee, n);
            size_t bad = SIZE_MAX;
            assert_int_equal(
                pawl_encode_f32_by(variant, PAWL_F8_E4M3, PAWL_OVERFLOW_FORMAT, values, n, codes, &bad, NULL),
                PAWL_OUT_OF_RANGE);
            assert_int_equal(bad, places[p]);
            for (size_t i = 0; i < bad; i++)
                assert_int_equal(codes[i], 0x40);
        }
    }
    free(values);
    free(codes);
}

/*
 * Goal: a trainer's thread may have set another rounding mode or flush-to-zero
 * (torch.set_flush_denormal, -ffast-math), and the bits stay. Method: samples
 * with many subnormals in every mode against those in the default one.
 */
static void
floating_point_modes_change_nothing(void **state)
{
    (void)state;
    enum { N = 4096 };
    static float values[N];
    static unsigned char want[8 * N], got[8 * N];
    static float want_back[N], got_back[N];
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 11, 54);
    const enum pawl_dtype dtypes[] = { PAWL_F16,         PAWL_BF16,        PAWL_F8_E4M3, PAWL_F8_E5M2,
                                       PAWL_F8_E4M3FNUZ, PAWL_F8_E5M2FNUZ, PAWL_F8_E8M0, PAWL_F6_E2M3,
                                       PAWL_F6_E3M2,     PAWL_F4,          PAWL_F64 };
    for (size_t i = 0; i < N; i++) {
        uint32_t bits = pawl_pcg32_next(&rng) & 0x007fffff;
        uint32_t exponent = (uint32_t)pawl_pcg32_below(&rng, 3) == 0 ? 0 : (uint32_t)pawl_pcg32_below(&rng, 129);
        values[i] = f32(bits | exponent << 23 | (i == 0 ? 1 : 0));
        if (bits_of(values[i]) == 0)
            values[i] = 1;
    }
    const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    EACH_VARIANT(variant)
    {
        for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
            size_t bytes = N * pawl_dtype_bits(dtypes[d]) / 8;
            bool is_decoded = dtypes[d] != PAWL_F64;
            for (size_t m = 0; m < 8; m++) {
                (void)fesetround(modes[m % 4]);
#if defined(__x86_64__)
                unsigned kept = _mm_getcsr();
                if (m >= 4)
                    _mm_setcsr(kept | 0x8040); /* flush-to-zero, denormals-are-zero */
#endif
                enum pawl_status st = pawl_encode_f32_by(variant, dtypes[d], PAWL_OVERFLOW_SATURATE, values, N,
                                                         m == 0 ? want : got, NULL, NULL);
                enum pawl_status back = PAWL_OK;
                if (is_decoded)
                    back = pawl_decode_f32_by(variant, dtypes[d], want, N, m == 0 ? want_back : got_back, NULL);
#if defined(__x86_64__)
                _mm_setcsr(kept);
#endif
                (void)fesetround(FE_TONEAREST);
                assert_int_equal(st, PAWL_OK);
                assert_int_equal(back, PAWL_OK);
                if (m > 0 && memcmp(want, got, bytes) != 0)
                    fail_msg("%s %s: other codes in mode %zu", pawl_convert_variant_name(variant),
                             pawl_dtype_name(dtypes[d]), m);
                if (m > 0 && is_decoded && memcmp(want_back, got_back, sizeof(want_back)) != 0)
                    fail_msg("%s %s: other values in mode %zu", pawl_convert_variant_name(variant),
                             pawl_dtype_name(dtypes[d]), m);
            }
        }
    }
}

/* Nor does converting raise what a trainer may trap: no invalid operation, division by zero or overflow, whatever the bits. */
static void
no_exception_is_raised(void **state)
{
    (void)state;
    static const uint32_t patterns[4] = { 0x7f800001, 0xff800000, 0x7f7fffff, 0x00000001 };
    static float values[64], back[64];
    unsigned char codes[512];
    for (size_t i = 0; i < 64; i++)
        memcpy(&values[i], &patterns[i % 4], 4);
    EACH_VARIANT(variant)
    {
        for (size_t d = 0; d < NARROW; d++) {
            (void)feclearexcept(FE_ALL_EXCEPT);
            (void)pawl_encode_f32_by(variant, narrow[d], PAWL_OVERFLOW_SATURATE, values, 64, codes, NULL, NULL);
            memset(codes, 0xff, sizeof(codes));
            (void)pawl_decode_f32_by(variant, narrow[d], codes, 64, back, NULL);
            assert_int_equal(fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW), 0);
        }
    }
}

static void
variants(void **state)
{
    (void)state;
    assert_true(pawl_convert_has(PAWL_CONVERT_PORTABLE));
    assert_true(pawl_convert_has(pawl_convert_best()));
    assert_null(pawl_convert_variant_name((enum pawl_convert_variant)PAWL_CONVERT_VARIANTS));
    assert_false(pawl_convert_has((enum pawl_convert_variant)PAWL_CONVERT_VARIANTS));
    EACH_VARIANT(variant)
    {
        assert_true(variant <= pawl_convert_best());
        printf("variant %s runs here\n", pawl_convert_variant_name(variant));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants),
        cmocka_unit_test(golden_encodings),
        cmocka_unit_test(golden_decodings),
        cmocka_unit_test(decoding_16_bits),
        cmocka_unit_test(examples_of_the_page),
        cmocka_unit_test(overflow_rules),
        cmocka_unit_test(nan_under_every_rule),
        cmocka_unit_test(messages),
        cmocka_unit_test(arguments),
        cmocka_unit_test(copies_and_widenings),
        cmocka_unit_test(every_length),
        cmocka_unit_test(first_bad_index),
        cmocka_unit_test(floating_point_modes_change_nothing),
        cmocka_unit_test(no_exception_is_raised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
