#include "codec/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "codec/convert_kernels.h"

/* Values per call of an encoder: a bad one is then looked for among so many. A multiple of every packed group. */
#define BLOCK 4096

static const struct convert_kernels *
kernels_of(enum pawl_convert_variant variant)
{
#if defined(__x86_64__)
    if (variant == PAWL_CONVERT_AVX512)
        return &pawl_convert_kernels_avx512;
    if (variant == PAWL_CONVERT_AVX2)
        return &pawl_convert_kernels_avx2;
#endif
    (void)variant;
    return &pawl_convert_kernels_portable;
}

const char *
pawl_convert_variant_name(enum pawl_convert_variant variant)
{
    switch (variant) {
    case PAWL_CONVERT_PORTABLE:
        return "portable";
    case PAWL_CONVERT_AVX2:
        return "avx2";
    case PAWL_CONVERT_AVX512:
        return "avx512";
    }
    return NULL;
}

bool
pawl_convert_has(enum pawl_convert_variant variant)
{
#if defined(__x86_64__)
    /* The compiler's runtime asks the processor once and keeps the answer: this is a load and a test. */
    __builtin_cpu_init();
    if (variant == PAWL_CONVERT_AVX2)
        return __builtin_cpu_supports("avx2") != 0;
    if (variant == PAWL_CONVERT_AVX512)
        return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
               __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#endif
    return variant == PAWL_CONVERT_PORTABLE;
}

enum pawl_convert_variant
pawl_convert_best(void)
{
    if (pawl_convert_has(PAWL_CONVERT_AVX512))
        return PAWL_CONVERT_AVX512;
    return pawl_convert_has(PAWL_CONVERT_AVX2) ? PAWL_CONVERT_AVX2 : PAWL_CONVERT_PORTABLE;
}

/* What a narrow format makes of values beyond its range. */
struct range {
    uint32_t largest_code;
    uint32_t infinity_code; /* 0: none */
    const char *largest;    /* for messages */
};

static struct range
range_of(enum pawl_dtype dtype)
{
    switch (dtype) {
    case PAWL_F16:
        return (struct range){ 0x7bff, 0x7c00, "65504" };
    case PAWL_BF16:
        return (struct range){ 0x7f7f, 0x7f80, "3.3895314e+38" };
    case PAWL_F8_E5M2:
        return (struct range){ 0x7b, 0x7c, "57344" };
    case PAWL_F8_E4M3:
        return (struct range){ 0x7e, 0, "448" };
    case PAWL_F8_E4M3FNUZ:
        return (struct range){ 0x7f, 0, "240" };
    case PAWL_F8_E5M2FNUZ:
        return (struct range){ 0x7f, 0, "57344" };
    case PAWL_F8_E8M0:
        return (struct range){ 0xfe, 0, "2^127" };
    case PAWL_F6_E2M3:
        return (struct range){ 0x1f, 0, "7.5" };
    case PAWL_F6_E3M2:
        return (struct range){ 0x1f, 0, "28" };
    case PAWL_F4:
        return (struct range){ 0x07, 0, "6" };
    default:
        return (struct range){ 0, 0, NULL }; /* F32 and F64 hold every F32 */
    }
}

/* The overflow rule as the kernels want it. */
static enum pawl_status
make_rule(enum pawl_dtype dtype, enum pawl_overflow overflow, struct encode_rule *ret_rule, struct pawl_error *err)
{
    struct range range = range_of(dtype);
    bool is_narrow = range.largest != NULL;
    struct encode_rule rule = { range.infinity_code, 0 };
    switch (overflow) {
    case PAWL_OVERFLOW_INF:
        if (is_narrow && range.infinity_code == 0)
            return pawl_fail(err, PAWL_ARGUMENT, "usage", "%s has no infinity to overflow to", pawl_dtype_name(dtype));
        break;
    case PAWL_OVERFLOW_FORMAT:
        rule.over_bad = range.infinity_code == 0 ? UINT32_MAX : 0;
        break;
    case PAWL_OVERFLOW_ERROR:
        rule.over_bad = UINT32_MAX;
        break;
    case PAWL_OVERFLOW_SATURATE:
        rule.over_code = range.largest_code;
        break;
    default:
        return pawl_fail(err, PAWL_ARGUMENT, "usage", "%u is the number of no overflow rule", (unsigned)overflow);
    }
    *ret_rule = rule;
    return PAWL_OK;
}

static enum pawl_status
fail_no_float(enum pawl_dtype dtype, const char *wanted, struct pawl_error *err)
{
    const char *name = pawl_dtype_name(dtype);
    if (name == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "usage", "%u is the number of no dtype", (unsigned)dtype);
    return pawl_fail(err, PAWL_ARGUMENT, "usage", "%s is no %s", name, wanted);
}

static enum pawl_status
fail_odd_count(enum pawl_dtype dtype, size_t n, struct pawl_error *err)
{
    return pawl_fail(err, PAWL_ARGUMENT, "usage", "%zu elements of %s, %u bits each, are no whole bytes", n,
                     pawl_dtype_name(dtype), pawl_dtype_bits(dtype));
}

/* F4 packs 2 to a byte, F6 packs 4 to three: n times bits must be whole bytes. */
static bool
fills_bytes(enum pawl_dtype dtype, size_t n)
{
    return n % 4 * pawl_dtype_bits(dtype) % 8 == 0;
}

enum pawl_status
pawl_convert_fail_value(enum pawl_dtype dtype, double value, uint32_t nan_bits, uint64_t index, struct pawl_error *err)
{
    const char *name = pawl_dtype_name(dtype);
    if (isnan(value))
        return pawl_fail(err, PAWL_OUT_OF_RANGE, "out-of-range",
                         "element %" PRIu64 " is NaN (0x%08" PRIx32 "), which %s lacks", index, nan_bits, name);
    if (dtype == PAWL_F8_E8M0 && value <= 0)
        return pawl_fail(err, PAWL_OUT_OF_RANGE, "out-of-range",
                         "element %" PRIu64 " is %.9g, and %s holds only powers of two, all positive", index, value,
                         name);
    return pawl_fail(err, PAWL_OUT_OF_RANGE, "out-of-range",
                     "element %" PRIu64 " is %.9g, beyond the largest of %s in magnitude, %s", index, value, name,
                     dtype == PAWL_F32 ? "3.40282347e+38" : range_of(dtype).largest);
}

static enum pawl_status
fail_value(enum pawl_dtype dtype, float value, size_t index, struct pawl_error *err)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    /* A signalling NaN is not converted: that would be an exception of the processor. */
    bool is_nan = (bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000);
    return pawl_convert_fail_value(dtype, is_nan ? (double)NAN : (double)value, bits, index, err);
}

enum pawl_status
pawl_encode_f32_by(enum pawl_convert_variant variant, enum pawl_dtype dtype, enum pawl_overflow overflow,
                   const float *values, size_t n, void *codes, size_t *ret_bad, struct pawl_error *err)
{
    if (!pawl_dtype_is_float(dtype))
        return fail_no_float(dtype, "float dtype", err);
    if (!fills_bytes(dtype, n))
        return fail_odd_count(dtype, n, err);
    struct encode_rule rule = { 0, 0 };
    enum pawl_status st = make_rule(dtype, overflow, &rule, err);
    if (st != PAWL_OK)
        return st;

    const struct convert_kernels *kernels = kernels_of(variant);
    const unsigned bits = pawl_dtype_bits(dtype);
    unsigned char *at = codes;
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t part = n - done < BLOCK ? n - done : BLOCK;
        if (kernels->encode[dtype](values + done, part, at, rule) != 0) {
            unsigned char one[8];
            size_t i = done;
            while (kernels->encode[dtype](values + i, 1, one, rule) == 0)
                i++;
            if (ret_bad != NULL)
                *ret_bad = i;
            return fail_value(dtype, values[i], i, err);
        }
        at += BLOCK / 8 * bits;
    }
    return PAWL_OK;
}

enum pawl_status
pawl_decode_f32_by(enum pawl_convert_variant variant, enum pawl_dtype dtype, const void *codes, size_t n, float *values,
                   struct pawl_error *err)
{
    if (!pawl_dtype_is_float(dtype) || dtype == PAWL_F64)
        return fail_no_float(dtype, "float dtype of 32 bits or fewer", err);
    if (!fills_bytes(dtype, n))
        return fail_odd_count(dtype, n, err);
    if (n > 0)
        kernels_of(variant)->decode[dtype](codes, n, values);
    return PAWL_OK;
}

enum pawl_status
pawl_encode_f32(enum pawl_dtype dtype, enum pawl_overflow overflow, const float *values, size_t n, void *codes,
                size_t *ret_bad, struct pawl_error *err)
{
    return pawl_encode_f32_by(pawl_convert_best(), dtype, overflow, values, n, codes, ret_bad, err);
}

enum pawl_status
pawl_decode_f32(enum pawl_dtype dtype, const void *codes, size_t n, float *values, struct pawl_error *err)
{
    return pawl_decode_f32_by(pawl_convert_best(), dtype, codes, n, values, err);
}
