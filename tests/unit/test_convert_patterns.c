/*
 * Encoders against a slow reference over very many F32 patterns. Without an
 * argument: a seeded sample for every format and variant. With the name of a
 * dtype: all 2^32 patterns of it, every variant (tests labelled long).
 *
 * The reference shares nothing with the kernels: it lists the finite values of
 * a format from its definition, as doubles, and looks for the nearest by binary
 * search; midpoints are exact in double. NaNs, infinities and the end of the
 * range follow the words of docs/format/numerics.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "codec/convert.h"
#include "pawl/pcg32.h"

enum kind { KIND_IEEE, KIND_FN, KIND_FNUZ, KIND_FINITE, KIND_SCALE };

struct format {
    enum pawl_dtype dtype;
    enum kind kind;
    int exponent_bits, mantissa_bits, bias;
};

static const struct format formats[] = {
    { PAWL_F16, KIND_IEEE, 5, 10, 15 },       { PAWL_BF16, KIND_IEEE, 8, 7, 127 },
    { PAWL_F8_E4M3, KIND_FN, 4, 3, 7 },       { PAWL_F8_E5M2, KIND_IEEE, 5, 2, 15 },
    { PAWL_F8_E4M3FNUZ, KIND_FNUZ, 4, 3, 8 }, { PAWL_F8_E5M2FNUZ, KIND_FNUZ, 5, 2, 16 },
    { PAWL_F8_E8M0, KIND_SCALE, 8, 0, 127 },  { PAWL_F6_E2M3, KIND_FINITE, 2, 3, 1 },
    { PAWL_F6_E3M2, KIND_FINITE, 3, 2, 3 },   { PAWL_F4, KIND_FINITE, 2, 1, 1 },
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

/* The finite values of a format that are not negative, ascending, each at the index of its code; [n] is where the next would lie. */
struct table {
    struct format format;
    double values[32770];
    uint32_t n;
    uint32_t last; /* where the last search ended */
};

static struct table table; /* one at a time */

static void
fill_table(struct format f)
{
    uint32_t codes = UINT32_C(1) << (f.exponent_bits + f.mantissa_bits);
    if (f.kind == KIND_IEEE)
        codes -= UINT32_C(1) << f.mantissa_bits;
    if (f.kind == KIND_FN || f.kind == KIND_SCALE)
        codes -= 1;
    for (uint32_t c = 0; c < codes; c++) {
        int exponent = (int)(c >> f.mantissa_bits);
        double mantissa = c & ((UINT32_C(1) << f.mantissa_bits) - 1);
        if (f.kind == KIND_SCALE)
            table.values[c] = ldexp(1, exponent - f.bias);
        else if (exponent == 0)
            table.values[c] = ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
        else
            table.values[c] = ldexp(ldexp(1, f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits);
    }
    table.n = codes;
    table.last = 0;
    double top = table.values[codes - 1];
    table.values[codes] = f.kind == KIND_SCALE ? 2 * top : top + (top - table.values[codes - 2]);
    table.format = f;
}

#define NO_CODE UINT32_MAX

static uint32_t
reference_nan(uint32_t bits)
{
    switch (table.format.dtype) {
    case PAWL_F16:
        return bits >> 31 << 15 | 0x7e00 | (bits >> 13 & 0x1ff);
    case PAWL_BF16:
        return bits >> 16 | 0x40;
    case PAWL_F8_E4M3:
    case PAWL_F8_E5M2:
        return 0x7f;
    case PAWL_F8_E4M3FNUZ:
    case PAWL_F8_E5M2FNUZ:
        return 0x80;
    case PAWL_F8_E8M0:
        return 0xff;
    default:
        return NO_CODE;
    }
}

/* The code of a pattern by the format's own overflow rule, or saturating; NO_CODE for an error. */
static uint32_t
reference(uint32_t bits, bool saturates)
{
    const struct format *f = &table.format;
    float single;
    memcpy(&single, &bits, 4);
    if (isnan(single))
        return reference_nan(bits);
    if (f->kind == KIND_SCALE && !(single > 0))
        return NO_CODE;
    const uint32_t sign_bit = UINT32_C(1) << (f->exponent_bits + f->mantissa_bits);
    const uint32_t sign = f->kind != KIND_SCALE && bits >> 31 != 0 ? sign_bit : 0;
    const double value = fabs((double)single);

    bool is_over = value >= table.values[table.n] || (f->kind == KIND_FN && value > table.values[table.n - 1]);
    uint32_t low = 0;
    if (!is_over) {
        uint32_t high = table.n; /* values[low] <= value < values[high], once value >= values[0] */
        if (table.values[table.last] <= value && value < table.values[table.last + 1]) {
            low = table.last; /* neighbours are asked for one after the other */
            high = low + 1;
        }
        while (high - low > 1) {
            uint32_t middle = (low + high) / 2;
            if (table.values[middle] <= value)
                low = middle;
            else
                high = middle;
        }
        table.last = low;
        double tie = (table.values[low] + table.values[low + 1]) / 2;
        bool ties_up = f->kind == KIND_SCALE || low % 2 != 0;
        if (f->kind == KIND_SCALE && low == 0)
            tie = table.values[0]; /* the rule for subnormals of F32: all above 2^-127 becomes 2^-126 */
        if (f->kind == KIND_SCALE && value == table.values[0])
            ties_up = false;
        if (value > tie || (value == tie && ties_up))
            low++;
        is_over = low == table.n;
    }
    if (is_over) {
        if (saturates)
            return sign | (table.n - 1);
        return f->kind == KIND_IEEE ? sign | table.n : NO_CODE;
    }
    return low == 0 && f->kind == KIND_FNUZ ? 0 : sign | low;
}

#define BATCH 8192

static uint32_t
code_at(const unsigned char *codes, unsigned bits, size_t i)
{
    size_t place = i * bits;
    uint32_t word = codes[place / 8] | (uint32_t)codes[place / 8 + 1] << 8;
    return word >> (place % 8) & ((UINT32_C(1) << bits) - 1);
}

static void
fail_pattern(enum pawl_convert_variant variant, uint32_t bits, bool saturates, uint32_t got, uint32_t want)
{
    fail_msg("%s %s: %08x%s gives %x, expected %x (ffffffff: an error)", pawl_convert_variant_name(variant),
             pawl_dtype_name(table.format.dtype), bits, saturates ? " saturating" : "", got, want);
}

/*
 * Encode a batch by every variant. Patterns without a code are replaced by 1
 * for the others' sake, and tried one by one, at most `errors_max` of a batch:
 * in the large, most batches are all of them or none.
 */
static void
check_batch(const uint32_t *patterns, bool saturates, size_t errors_max)
{
    static uint32_t want[BATCH], inputs[BATCH], bad[BATCH];
    static float values[BATCH];
    static unsigned char codes[2 * BATCH + 1];
    const enum pawl_dtype dtype = table.format.dtype;
    const unsigned bits = pawl_dtype_bits(dtype);
    const enum pawl_overflow overflow = saturates ? PAWL_OVERFLOW_SATURATE : PAWL_OVERFLOW_FORMAT;
    size_t n_bad = 0;
    for (size_t i = 0; i < BATCH; i++) {
        want[i] = reference(patterns[i], saturates);
        inputs[i] = patterns[i];
        if (want[i] == NO_CODE) {
            bad[n_bad++] = patterns[i];
            inputs[i] = 0x3f800000;
            want[i] = reference(0x3f800000, saturates);
        }
    }
    memcpy(values, inputs, sizeof(values));
    for (enum pawl_convert_variant v = PAWL_CONVERT_PORTABLE; v < PAWL_CONVERT_VARIANTS; v++) {
        if (!pawl_convert_has(v))
            continue;
        struct pawl_error err = PAWL_ERROR_INIT;
        size_t at = 0;
        if (pawl_encode_f32_by(v, dtype, overflow, values, BATCH, codes, &at, &err) != PAWL_OK)
            fail_pattern(v, inputs[at], saturates, NO_CODE, want[at]);
        for (size_t i = 0; i < BATCH; i++) {
            if (code_at(codes, bits, i) != want[i])
                fail_pattern(v, inputs[i], saturates, code_at(codes, bits, i), want[i]);
        }
        size_t step = n_bad > errors_max ? n_bad / errors_max : 1;
        for (size_t i = 0; i < n_bad; i += step) {
            const uint32_t four[4] = { 0x3f800000, bad[i], 0x3f800000, 0x3f800000 };
            float few[4];
            memcpy(few, four, sizeof(few));
            if (pawl_encode_f32_by(v, dtype, overflow, few, 4, codes, &at, NULL) != PAWL_OUT_OF_RANGE || at != 1)
                fail_pattern(v, bad[i], saturates, 0, NO_CODE);
        }
    }
}

/*
 * A sample: random patterns, random ones of the format's exponents, and for
 * each value of the format (of F16 and BF16 a random choice) itself, the ties
 * beside it, and what lies next to those.
 */
static uint32_t
sample_pattern(struct pawl_pcg32 *rng)
{
    uint32_t draw = pawl_pcg32_next(rng);
    if (draw % 4 == 0)
        return pawl_pcg32_next(rng);
    uint32_t index = (uint32_t)pawl_pcg32_below(rng, table.n);
    double value = table.values[index], next = table.values[index + 1];
    float single = (float)(draw % 4 == 1 ? value : draw % 4 == 2 ? (value + next) / 2 : value + (next - value) * 0.25);
    uint32_t bits;
    memcpy(&bits, &single, 4);
    bits += (uint32_t)pawl_pcg32_below(rng, 5) - 2;
    return bits ^ (draw & 0x80000000);
}

static void
sample_of_every_format(void **state)
{
    (void)state;
    const uint64_t seed = 20240602;
    static uint32_t patterns[BATCH];
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t f = 0; f < FORMATS; f++) {
        struct pawl_pcg32 rng;
        pawl_pcg32_seed(&rng, seed, f);
        fill_table(formats[f]);
        for (int batch = 0; batch < 100; batch++) {
            for (size_t i = 0; i < BATCH; i++)
                patterns[i] = sample_pattern(&rng);
            check_batch(patterns, batch % 2 != 0, 64);
        }
    }
}

static struct pawl_str asked;

static void
all_patterns(void **state)
{
    (void)state;
    const enum pawl_dtype dtype = pawl_dtype_by_name(asked);
    static uint32_t patterns[BATCH];
    for (size_t f = 0; f < FORMATS; f++) {
        if (formats[f].dtype != dtype)
            continue;
        fill_table(formats[f]);
        for (uint64_t first = 0; first < UINT64_C(1) << 32; first += BATCH) {
            for (size_t i = 0; i < BATCH; i++)
                patterns[i] = (uint32_t)(first + i);
            check_batch(patterns, false, 2);
            check_batch(patterns, true, 2);
        }
        return;
    }
    fail_msg("no format to test: '%.*s'", PAWL_ARG(asked));
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest sample[] = { cmocka_unit_test(sample_of_every_format) };
    const struct CMUnitTest all[] = { cmocka_unit_test(all_patterns) };
    if (argc < 2)
        return cmocka_run_group_tests(sample, NULL, NULL);
    asked = pawl_str_z(argv[1]);
    return cmocka_run_group_tests(all, NULL, NULL);
}
