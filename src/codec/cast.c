/*
 * From any float dtype to any other, rounded once. Up to 32 bits the way leads through F32, which holds every value of them.
 * F64 is first rounded to F32 "to odd": cut off, and the last bit set where anything was lost. No format below has more than
 * 22 of the 24 bits, so the second rounding sees on which side of a tie, and of every border, the value lay.
 */
#include "codec/cast.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "base/cursor.h"
#include "base/fail.h"
#include "codec/convert.h"

/* Values at a time, on the stack: a multiple of 4, so that a block of 4 or 6 bits each has whole bytes. */
#define BLOCK ((size_t)1024)

static uint32_t
bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float
float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double
double_at(const unsigned char *code)
{
    uint64_t bits = pawl_get_u64le(code);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Sign, quiet, and the payload's top bits. */
static uint32_t
narrow_nan(uint64_t bits)
{
    return (uint32_t)(bits >> 63 << 31) | UINT32_C(0x7fc00000) | (uint32_t)(bits >> 29 & UINT64_C(0x7fffff));
}

static float
narrow_to_odd(const unsigned char *code)
{
    double value = double_at(code);
    if (isnan(value))
        return float_of(narrow_nan(pawl_get_u64le(code)));
    float near = (float)value;
    if ((double)near == value)
        return near;
    uint32_t bits = bits_of(near);
    if (fabs((double)near) > fabs(value))
        bits--; /* toward zero; from infinity to the largest */
    return float_of(bits | 1);
}

/* To F32 itself. False: the value is none of it. */
static bool
narrow_to_nearest(const unsigned char *code, enum pawl_overflow overflow, float *ret)
{
    double value = double_at(code);
    if (isnan(value)) {
        *ret = float_of(narrow_nan(pawl_get_u64le(code)));
        return true;
    }
    *ret = (float)value;
    if (!isinf(*ret))
        return true;
    if (overflow == PAWL_OVERFLOW_SATURATE)
        *ret = value < 0 ? -FLT_MAX : FLT_MAX;
    return overflow != PAWL_OVERFLOW_ERROR;
}

struct cast {
    enum pawl_dtype from, to;
    enum pawl_overflow overflow;
    uint64_t first; /* what the values before are: for messages */
    struct pawl_error *err;
};

static enum pawl_status
fail_at(const struct cast *cast, double value, uint32_t nan_bits, uint64_t index, uint64_t *ret_bad)
{
    if (ret_bad != NULL)
        *ret_bad = cast->first + index;
    return pawl_convert_fail_value(cast->to, value, nan_bits, cast->first + index, cast->err);
}

/* A block, whose values begin at `index`. */
static enum pawl_status
cast_block(const struct cast *cast, const unsigned char *codes, size_t n, unsigned char *values, uint64_t index,
           uint64_t *ret_bad)
{
    float through[BLOCK];
    bool is_64 = cast->from == PAWL_F64;
    size_t bad = 0;
    if (is_64) {
        for (size_t i = 0; i < n; i++) {
            if (cast->to != PAWL_F32)
                through[i] = narrow_to_odd(codes + 8 * i);
            else if (!narrow_to_nearest(codes + 8 * i, cast->overflow, &through[i]))
                return fail_at(cast, double_at(codes + 8 * i), 0, index + i, ret_bad);
        }
    } else {
        enum pawl_status st = pawl_decode_f32(cast->from, codes, n, through, cast->err);
        if (st != PAWL_OK)
            return st;
    }
    enum pawl_status st = pawl_encode_f32(cast->to, cast->overflow, through, n, values, &bad, cast->err);
    if (st != PAWL_OUT_OF_RANGE)
        return st;
    return fail_at(cast, is_64 ? double_at(codes + 8 * bad) : (double)through[bad], bits_of(through[bad]), index + bad,
                   ret_bad);
}

static enum pawl_status
check(const struct cast *cast, size_t n)
{
    const char *from = pawl_dtype_name(cast->from);
    const char *to = pawl_dtype_name(cast->to);
    if (from == NULL || to == NULL)
        return pawl_fail(cast->err, PAWL_ARGUMENT, "argument", "%d is no dtype",
                         from == NULL ? (int)cast->from : (int)cast->to);
    if (cast->from != cast->to && (!pawl_dtype_is_float(cast->from) || !pawl_dtype_is_float(cast->to)))
        return pawl_fail(cast->err, PAWL_ARGUMENT, "argument",
                         "%s can't become %s: only floats are converted, to other floats", from, to);
    if (n % 8 * pawl_dtype_bits(cast->from) % 8 != 0 || n % 8 * pawl_dtype_bits(cast->to) % 8 != 0)
        return pawl_fail(cast->err, PAWL_ARGUMENT, "argument", "%zu elements of %s are no whole bytes of %s", n, from,
                         to);
    return PAWL_OK;
}

enum pawl_status
pawl_cast_part(enum pawl_dtype from, const void *codes, size_t n, enum pawl_dtype to, enum pawl_overflow overflow,
               void *values, uint64_t first, uint64_t *ret_bad, struct pawl_error *err)
{
    const struct cast cast = { from, to, overflow, first, err };
    const unsigned char *in = codes;
    unsigned char *out = values;
    enum pawl_status st = check(&cast, n);
    if (st != PAWL_OK || n == 0)
        return st;
    if (from == to) {
        memcpy(out, in, n / 8 * pawl_dtype_bits(from) + n % 8 * pawl_dtype_bits(from) / 8);
        return PAWL_OK;
    }
    if (to == PAWL_F32 && from != PAWL_F64 && (uintptr_t)values % _Alignof(float) == 0)
        return pawl_decode_f32(from, codes, n, values, err);
    for (size_t at = 0; at < n && st == PAWL_OK; at += BLOCK) {
        size_t part = n - at < BLOCK ? n - at : BLOCK;
        st = cast_block(&cast, in, part, out, at, ret_bad);
        in += part / 8 * pawl_dtype_bits(from) + part % 8 * pawl_dtype_bits(from) / 8;
        out += part / 8 * pawl_dtype_bits(to) + part % 8 * pawl_dtype_bits(to) / 8;
    }
    return st;
}

enum pawl_status
pawl_cast(enum pawl_dtype from, const void *codes, size_t n, enum pawl_dtype to, enum pawl_overflow overflow,
          void *values, size_t *ret_bad, struct pawl_error *err)
{
    uint64_t bad = 0;
    enum pawl_status st = pawl_cast_part(from, codes, n, to, overflow, values, 0, &bad, err);
    if (st == PAWL_OUT_OF_RANGE && ret_bad != NULL)
        *ret_bad = (size_t)bad;
    return st;
}
