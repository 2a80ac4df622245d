/*
 * codec/convert.h: the variants of the conversions in pawl/dtype.h.
 *
 * Every kernel is written once, in convert_kernels.inc, and compiled for several
 * instruction sets; pawl_encode_f32() and pawl_decode_f32() take the best that the
 * processor has. Here a caller (a test, a benchmark) names the variant itself.
 */
#ifndef PAWL_CODEC_CONVERT_H
#define PAWL_CODEC_CONVERT_H

#include "pawl/dtype.h"

/* From the one that always runs to the widest. */
enum pawl_convert_variant {
    PAWL_CONVERT_PORTABLE = 0, /* what the compiler's default target has; SSE2 on x86-64 */
    PAWL_CONVERT_AVX2 = 1,
    PAWL_CONVERT_AVX512 = 2 /* F, BW, DQ and VL */
};

#define PAWL_CONVERT_VARIANTS 3

const char *pawl_convert_variant_name(enum pawl_convert_variant variant);
/* Whether this build has the variant and this processor runs it. */
bool pawl_convert_has(enum pawl_convert_variant variant);
enum pawl_convert_variant pawl_convert_best(void);

/* "out-of-range", with a message that says why the value has no code: `nan_bits` are those of a NaN, as F32. */
enum pawl_status pawl_convert_fail_value(enum pawl_dtype dtype, double value, uint32_t nan_bits, uint64_t index,
                                         struct pawl_error *err);

/* As pawl_encode_f32() and pawl_decode_f32(), by a variant that pawl_convert_has(). */
enum pawl_status pawl_encode_f32_by(enum pawl_convert_variant variant, enum pawl_dtype dtype,
                                    enum pawl_overflow overflow, const float *values, size_t n, void *codes,
                                    size_t *ret_bad, struct pawl_error *err);
enum pawl_status pawl_decode_f32_by(enum pawl_convert_variant variant, enum pawl_dtype dtype, const void *codes,
                                    size_t n, float *values, struct pawl_error *err);

#endif
