/*
 * pawl/dtype.h: the 22 element types of safetensors, and conversions of floats.
 *
 * Formats and rules: docs/format/numerics.md. Every function here is pure and
 * may be called from any thread.
 */
#ifndef PAWL_DTYPE_H
#define PAWL_DTYPE_H

#include "pawl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of the format's enumeration, from small to large; 0 is no dtype. */
enum pawl_dtype {
    PAWL_BOOL = 1,
    PAWL_F4 = 2,      /* E2M1, two to a byte, the first in the low nibble */
    PAWL_F6_E2M3 = 3, /* four to three bytes, least significant bits first */
    PAWL_F6_E3M2 = 4,
    PAWL_U8 = 5,
    PAWL_I8 = 6,
    PAWL_F8_E5M2 = 7,
    PAWL_F8_E4M3 = 8,
    PAWL_F8_E8M0 = 9,
    PAWL_F8_E4M3FNUZ = 10,
    PAWL_F8_E5M2FNUZ = 11,
    PAWL_I16 = 12,
    PAWL_U16 = 13,
    PAWL_F16 = 14,
    PAWL_BF16 = 15,
    PAWL_I32 = 16,
    PAWL_U32 = 17,
    PAWL_F32 = 18,
    PAWL_C64 = 19, /* two F32: real, imaginary */
    PAWL_F64 = 20,
    PAWL_I64 = 21,
    PAWL_U64 = 22
};

#define PAWL_DTYPE_COUNT 22

/* "F32", NULL for a number that is no dtype. Static storage. */
PAWL_API const char *pawl_dtype_name(enum pawl_dtype dtype);
/* Exact spelling, case matters; 0 when there is none. */
PAWL_API enum pawl_dtype pawl_dtype_by_name(struct pawl_str name);
/* Bits of one element: 4, 6, 8, 16, 32 or 64; 0 for a number that is no dtype. */
PAWL_API unsigned pawl_dtype_bits(enum pawl_dtype dtype);
/* Whether values are real floats (F4 ... F64, E8M0 too; not C64). */
PAWL_API bool pawl_dtype_is_float(enum pawl_dtype dtype);

/*
 * Bytes of a tensor of `rank` dimensions, row-major and packed. The product is
 * taken left to right with checks, as the reference library does it: a zero in
 * front of an overflow hides it, one behind does not.
 *
 * Returns PAWL_OK; PAWL_CORRUPT with code "overflow" when elements or bits pass 2^64,
 * or with code "bits" when the bits are no whole bytes. rank 0 is a scalar: one element.
 */
PAWL_API enum pawl_status pawl_dtype_bytes(enum pawl_dtype dtype, const uint64_t *shape, size_t rank,
                                           uint64_t *ret_elements, uint64_t *ret_bytes, struct pawl_error *err);

/* What happens to a value beyond the target's largest finite one. */
enum pawl_overflow {
    PAWL_OVERFLOW_FORMAT = 0,   /* the format's own rule: infinity where it has one, else an error */
    PAWL_OVERFLOW_ERROR = 1,    /* an error always; infinities too */
    PAWL_OVERFLOW_SATURATE = 2, /* clamp to the largest finite value; infinities too */
    PAWL_OVERFLOW_INF = 3       /* to infinity; PAWL_ARGUMENT for a format that has none */
};

/*
 * Convert n F32 values to a narrower float (round to nearest, ties to even) or
 * copy them (dtype F32). `codes` takes pawl_dtype bits each, packed, and must
 * not overlap `values`.
 *
 * dtype    F32, F16, BF16, F8_*, F6_*, F4; F64 widens exactly. n times bits must be whole bytes for F4 and F6.
 * ret_bad  may be NULL; set on PAWL_OUT_OF_RANGE to the index of the first value that has no code.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT (no float dtype, or an overflow rule it does not
 * have); PAWL_OUT_OF_RANGE with code "out-of-range": too large, a NaN where there is
 * none, or for E8M0 zero or negative. Codes before the bad one are written.
 * One pass, vectorised; every instruction set gives the same bits (bench/bench_convert has the speeds). Since 0.1.
 */
PAWL_API enum pawl_status pawl_encode_f32(enum pawl_dtype dtype, enum pawl_overflow overflow, const float *values,
                                          size_t n, void *codes, size_t *ret_bad, struct pawl_error *err);

/*
 * Convert n packed values of a float dtype up to 32 bits to F32, exactly. `codes` need not
 * be aligned and must not overlap `values`.
 * Returns PAWL_OK, or PAWL_ARGUMENT for a dtype that is no float of 32 bits or fewer.
 */
PAWL_API enum pawl_status pawl_decode_f32(enum pawl_dtype dtype, const void *codes, size_t n, float *values,
                                          struct pawl_error *err);

/*
 * Convert n packed values of one float dtype to another (F64 too), each rounded once: nearest, ties to even. Equal dtypes move
 * the bits untouched. Integers, BOOL and C64 are moved to themselves only.
 *
 * `codes` and `values` need no alignment and must not overlap. n times the bits of each must be whole bytes.
 * overflow  for a target that lacks the value; F32 and F64 count as formats with infinities.
 * ret_bad   may be NULL; set on PAWL_OUT_OF_RANGE to the index of the first value that has no code.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT; PAWL_OUT_OF_RANGE with code "out-of-range". Since 0.1.
 */
PAWL_API enum pawl_status pawl_cast(enum pawl_dtype from, const void *codes, size_t n, enum pawl_dtype to,
                                    enum pawl_overflow overflow, void *values, size_t *ret_bad, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
