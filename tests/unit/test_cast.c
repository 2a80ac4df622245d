#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "codec/cast.h"

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const enum pawl_dtype NARROW[] = { PAWL_F4,      PAWL_F6_E2M3,     PAWL_F6_E3M2,     PAWL_F8_E5M2, PAWL_F8_E4M3,
                                          PAWL_F8_E8M0, PAWL_F8_E4M3FNUZ, PAWL_F8_E5M2FNUZ, PAWL_F16,     PAWL_BF16 };
#define N_NARROW (sizeof NARROW / sizeof NARROW[0])

/* The value of a code, exactly, as F64. */
static double
decoded(enum pawl_dtype dtype, uint32_t code)
{
    unsigned char bytes[4] = { (unsigned char)code, (unsigned char)(code >> 8), 0, 0 };
    float values[4];
    size_t n = pawl_dtype_bits(dtype) < 8 ? 4 : 1;
    assert_int_equal(pawl_decode_f32(dtype, bytes, n, values, NULL), PAWL_OK);
    return (double)values[0];
}

static uint32_t
encoded(enum pawl_dtype dtype, double value, enum pawl_overflow overflow, enum pawl_status *ret_st)
{
    double values[4] = { value, 1, 1, 1 };
    unsigned char codes[8] = { 0 };
    size_t n = pawl_dtype_bits(dtype) < 8 ? 4 : 1;
    *ret_st = pawl_cast(PAWL_F64, values, n, dtype, overflow, codes, NULL, NULL);
    unsigned bits = pawl_dtype_bits(dtype);
    return bits == 16 ? (uint32_t)(codes[0] | codes[1] << 8) : codes[0] & ((1u << bits) - 1);
}

/*
 * Goal: F64 becomes the nearest code, an exact tie the even one, rounded once. Method: for every pair of neighbouring codes of
 * every format, the middle of them and the nearest F64 on both sides of it: a rounding by way of F32 takes these for the middle.
 */
static void
every_border_between_codes(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_NARROW; d++) {
        enum pawl_dtype dtype = NARROW[d];
        unsigned bits = pawl_dtype_bits(dtype);
        if (dtype == PAWL_F8_E8M0)
            continue; /* rounds on a scale of its own, below */
        for (uint32_t code = 0; code + 1 < 1u << (bits - 1); code++) {
            double low = decoded(dtype, code);
            double high = decoded(dtype, code + 1);
            enum pawl_status st;
            if (!isfinite(low) || !isfinite(high) || isnan(high))
                continue;
            double middle = low + (high - low) / 2; /* exact: F64 has bits to spare */
            uint32_t even = (code & 1) == 0 ? code : code + 1;
            assert_int_equal(encoded(dtype, middle, PAWL_OVERFLOW_FORMAT, &st), even);
            assert_int_equal(st, PAWL_OK);
            assert_int_equal(encoded(dtype, nextafter(middle, -1), PAWL_OVERFLOW_FORMAT, &st), code);
            assert_int_equal(encoded(dtype, nextafter(middle, INFINITY), PAWL_OVERFLOW_FORMAT, &st), code + 1);
            if (code != 0) /* the FNUZ formats have no negative zero */
                assert_int_equal(encoded(dtype, -nextafter(middle, INFINITY), PAWL_OVERFLOW_FORMAT, &st),
                                 (code + 1) | 1u << (bits - 1));
        }
    }
    enum pawl_status st;
    for (int e = -120; e < 120; e++) { /* E8M0: from one half of the fraction on, up */
        double half = ldexp(1.5, e);
        assert_int_equal(encoded(PAWL_F8_E8M0, half, PAWL_OVERFLOW_FORMAT, &st), (uint32_t)(e + 128));
        assert_int_equal(encoded(PAWL_F8_E8M0, nextafter(half, 0), PAWL_OVERFLOW_FORMAT, &st), (uint32_t)(e + 127));
    }
}

/* Goal: any F64 to F32 is what the processor's rounding gives, NaNs keep sign and payload, and overflow follows the rule. */
static void
doubles_as_floats(void **state)
{
    (void)state;
    uint64_t seed = UINT64_C(88172645463325252);
    print_message("seed %" PRIu64 "\n", seed);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next_random(&seed);
        double value;
        float got, want;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        assert_int_equal(pawl_cast(PAWL_F64, &value, 1, PAWL_F32, PAWL_OVERFLOW_FORMAT, &got, NULL, NULL), PAWL_OK);
        want = (float)value;
        assert_memory_equal(&got, &want, sizeof got);
    }
    const uint64_t nan =
        UINT64_C(0xfff4000020000000); /* signalling, with a payload that has a bit just above the cut */
    uint32_t got;
    assert_int_equal(pawl_cast(PAWL_F64, &nan, 1, PAWL_F32, PAWL_OVERFLOW_FORMAT, &got, NULL, NULL), PAWL_OK);
    assert_int_equal(got, 0xffe00001);
    const double large[] = { 1, -1e300, INFINITY };
    float out[3];
    size_t bad = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_cast(PAWL_F64, large, 3, PAWL_F32, PAWL_OVERFLOW_ERROR, out, &bad, &err), PAWL_OUT_OF_RANGE);
    assert_int_equal(bad, 1);
    assert_string_equal(err.message, "element 1 is -1e+300, beyond the largest of F32 in magnitude, 3.40282347e+38");
    assert_int_equal(pawl_cast(PAWL_F64, large, 3, PAWL_F32, PAWL_OVERFLOW_SATURATE, out, &bad, &err), PAWL_OK);
    assert_true(out[1] == -0x1.fffffep127f && out[2] == 0x1.fffffep127f);
    assert_int_equal(pawl_cast(PAWL_F64, large, 3, PAWL_BF16, PAWL_OVERFLOW_FORMAT, out, &bad, &err), PAWL_OK);
    assert_int_equal(pawl_cast(PAWL_F64, large, 3, PAWL_F8_E4M3, PAWL_OVERFLOW_FORMAT, out, &bad, &err),
                     PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message, "element 1 is -1e+300, beyond the largest of F8_E4M3 in magnitude, 448");
}

/* Goal: between any two of the narrow formats, and to F64, the value of each code is what arrives; equal dtypes move every bit. */
static void
every_pair_of_formats(void **state)
{
    (void)state;
    for (size_t a = 0; a < N_NARROW; a++) {
        unsigned bits = pawl_dtype_bits(NARROW[a]);
        unsigned char codes[8192 * 2];
        double wide[8192];
        size_t n = bits == 16 ? 8192 : 1u << bits;
        for (size_t i = 0; i < sizeof codes; i++)
            codes[i] = (unsigned char)(bits == 16 ? i * 37 >> 3 : i);
        n -= n % 8;
        assert_int_equal(pawl_cast(NARROW[a], codes, n, PAWL_F64, PAWL_OVERFLOW_FORMAT, wide, NULL, NULL), PAWL_OK);
        for (size_t b = 0; b < N_NARROW; b++) {
            float through[8192];
            unsigned char got[8192 * 2], want[8192 * 2];
            size_t bad_got = n, bad_want = n;
            assert_int_equal(pawl_decode_f32(NARROW[a], codes, n, through, NULL), PAWL_OK);
            enum pawl_status st = pawl_encode_f32(NARROW[b], PAWL_OVERFLOW_SATURATE, through, n, want, &bad_want, NULL);
            assert_int_equal(pawl_cast(NARROW[a], codes, n, NARROW[b], PAWL_OVERFLOW_SATURATE, got, &bad_got, NULL),
                             a == b ? PAWL_OK : st);
            if (a == b)
                assert_memory_equal(got, codes, n * bits / 8);
            else if (st == PAWL_OK)
                assert_memory_equal(got, want, n * pawl_dtype_bits(NARROW[b]) / 8);
            else
                assert_int_equal(bad_got, bad_want);
        }
        for (size_t i = 0; i < n; i++) {
            float one[4];
            unsigned char *at = codes + i * bits / 8;
            if (bits >= 8) {
                assert_int_equal(pawl_decode_f32(NARROW[a], at, 1, one, NULL), PAWL_OK);
                assert_true(wide[i] == (double)one[0] || (isnan(wide[i]) && isnan(one[0])));
            }
        }
    }
}

static void
what_is_not_converted(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    int32_t number = 7;
    float value = 0;
    assert_int_equal(pawl_cast(PAWL_I32, &number, 1, PAWL_F32, PAWL_OVERFLOW_FORMAT, &value, NULL, &err),
                     PAWL_ARGUMENT);
    assert_string_equal(err.message, "I32 can't become F32: only floats are converted, to other floats");
    assert_int_equal(pawl_cast(PAWL_I32, &number, 1, PAWL_I32, PAWL_OVERFLOW_FORMAT, &value, NULL, &err), PAWL_OK);
    assert_memory_equal(&value, &number, 4);
    assert_int_equal(pawl_cast(PAWL_C64, &number, 0, PAWL_F32, PAWL_OVERFLOW_FORMAT, &value, NULL, &err),
                     PAWL_ARGUMENT);
    assert_int_equal(pawl_cast(PAWL_F32, &number, 1, PAWL_F4, PAWL_OVERFLOW_FORMAT, &value, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "1 elements of F32 are no whole bytes of F4");
    assert_int_equal(pawl_cast((enum pawl_dtype)99, &number, 1, PAWL_F4, PAWL_OVERFLOW_FORMAT, &value, NULL, &err),
                     PAWL_ARGUMENT);
    assert_int_equal(pawl_cast(PAWL_F32, &number, 1, PAWL_F8_E4M3, PAWL_OVERFLOW_INF, &value, NULL, &err),
                     PAWL_ARGUMENT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_border_between_codes),
        cmocka_unit_test(doubles_as_floats),
        cmocka_unit_test(every_pair_of_formats),
        cmocka_unit_test(what_is_not_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
