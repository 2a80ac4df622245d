#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "pawl/dtype.h"

/* The enumeration, written out a second time: names, order, bits and which are floats are part of every file. */
static const struct {
    enum pawl_dtype dtype;
    const char *name;
    unsigned bits;
    bool is_float;
} expected[] = {
    { PAWL_BOOL, "BOOL", 8, false },
    { PAWL_F4, "F4", 4, true },
    { PAWL_F6_E2M3, "F6_E2M3", 6, true },
    { PAWL_F6_E3M2, "F6_E3M2", 6, true },
    { PAWL_U8, "U8", 8, false },
    { PAWL_I8, "I8", 8, false },
    { PAWL_F8_E5M2, "F8_E5M2", 8, true },
    { PAWL_F8_E4M3, "F8_E4M3", 8, true },
    { PAWL_F8_E8M0, "F8_E8M0", 8, true },
    { PAWL_F8_E4M3FNUZ, "F8_E4M3FNUZ", 8, true },
    { PAWL_F8_E5M2FNUZ, "F8_E5M2FNUZ", 8, true },
    { PAWL_I16, "I16", 16, false },
    { PAWL_U16, "U16", 16, false },
    { PAWL_F16, "F16", 16, true },
    { PAWL_BF16, "BF16", 16, true },
    { PAWL_I32, "I32", 32, false },
    { PAWL_U32, "U32", 32, false },
    { PAWL_F32, "F32", 32, true },
    { PAWL_C64, "C64", 64, false },
    { PAWL_F64, "F64", 64, true },
    { PAWL_I64, "I64", 64, false },
    { PAWL_U64, "U64", 64, false },
};

static void
table_is_that_of_safetensors(void **state)
{
    (void)state;
    assert_int_equal(sizeof(expected) / sizeof(expected[0]), PAWL_DTYPE_COUNT);
    for (size_t i = 0; i < PAWL_DTYPE_COUNT; i++) {
        enum pawl_dtype dtype = expected[i].dtype;
        assert_int_equal(dtype, i + 1);
        assert_string_equal(pawl_dtype_name(dtype), expected[i].name);
        assert_int_equal(pawl_dtype_bits(dtype), expected[i].bits);
        assert_int_equal(pawl_dtype_is_float(dtype), expected[i].is_float);
        assert_int_equal(pawl_dtype_by_name(pawl_str_z(expected[i].name)), dtype);
    }
}

/* Numbers that come from a file or a newer header must not read behind the table. */
static void
numbers_that_are_no_dtype(void **state)
{
    (void)state;
    const unsigned numbers[] = { 0, 23, 24, 255, 256 + 18, 0x7fffffff };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        enum pawl_dtype dtype = (enum pawl_dtype)numbers[i];
        assert_null(pawl_dtype_name(dtype));
        assert_int_equal(pawl_dtype_bits(dtype), 0);
        assert_false(pawl_dtype_is_float(dtype));
    }
    struct pawl_error err = PAWL_ERROR_INIT;
    uint64_t elements = 7, bytes = 7;
    assert_int_equal(pawl_dtype_bytes((enum pawl_dtype)23, NULL, 0, &elements, &bytes, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "23 is the number of no dtype");
}

static void
names_are_exact(void **state)
{
    (void)state;
    const struct pawl_str wrong[] = { PAWL_STR(""),      PAWL_STR("f32"),  PAWL_STR("F3"),           PAWL_STR("F322"),
                                      PAWL_STR("F32\0"), PAWL_STR(" F32"), PAWL_STR("F8_E4M3FN"),    PAWL_STR("F8"),
                                      PAWL_STR("FLOAT"), PAWL_STR("bool"), PAWL_STR("F8_E4M3FNUZ "), PAWL_STR("C128"),
                                      { NULL, 0 } };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(pawl_dtype_by_name(wrong[i]), 0);
}

static void
expect_bytes(enum pawl_dtype dtype, const uint64_t *shape, size_t rank, uint64_t elements, uint64_t bytes)
{
    uint64_t got_elements = UINT64_MAX, got_bytes = UINT64_MAX;
    assert_int_equal(pawl_dtype_bytes(dtype, shape, rank, &got_elements, &got_bytes, NULL), PAWL_OK);
    assert_true(got_elements == elements);
    assert_true(got_bytes == bytes);
}

static void
expect_failure(enum pawl_dtype dtype, const uint64_t *shape, size_t rank, const char *code, const char *message)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    uint64_t elements = 7, bytes = 8;
    assert_int_equal(pawl_dtype_bytes(dtype, shape, rank, &elements, &bytes, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, code);
    assert_string_equal(err.message, message);
    assert_true(elements == 7 && bytes == 8); /* untouched */
}

#define SHAPE(...) (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)

static void
sizes_of_shapes(void **state)
{
    (void)state;
    expect_bytes(PAWL_F32, NULL, 0, 1, 4); /* a scalar */
    expect_bytes(PAWL_F32, SHAPE(0), 0, 0);
    expect_bytes(PAWL_F32, SHAPE(2, 3, 5), 30, 120);
    expect_bytes(PAWL_C64, SHAPE(3), 3, 24);
    expect_bytes(PAWL_BOOL, SHAPE(7), 7, 7);
    expect_bytes(PAWL_F4, SHAPE(2, 3), 6, 3);
    expect_bytes(PAWL_F6_E2M3, SHAPE(4), 4, 3);
    expect_bytes(PAWL_F6_E3M2, SHAPE(0, 3), 0, 0);
    expect_bytes(PAWL_U8, SHAPE(UINT64_MAX / 8), UINT64_MAX / 8, UINT64_MAX / 8);
}

/* As the reference library multiplies: left to right, so that a zero hides only what comes after it. */
static void
overflow_is_found_left_to_right(void **state)
{
    (void)state;
    expect_bytes(PAWL_F32, SHAPE(0, UINT64_MAX, UINT64_MAX), 0, 0);
    expect_bytes(PAWL_F32, SHAPE(UINT64_MAX, 0, UINT64_MAX), 0, 0);
    expect_failure(PAWL_F32, SHAPE(UINT64_MAX, 2, 0), "overflow",
                   "shape [18446744073709551615, 2, 0] has more than 2^64 - 1 elements");
    expect_failure(PAWL_U8, SHAPE(UINT64_C(1) << 32, UINT64_C(1) << 32), "overflow",
                   "shape [4294967296, 4294967296] has more than 2^64 - 1 elements");
    /* the elements fit, their bits do not, although their bytes would */
    expect_failure(
        PAWL_U8, SHAPE(UINT64_MAX / 8 + 1), "overflow",
        "shape [2305843009213693952] of U8: 2305843009213693952 elements of 8 bits are more than 2^64 - 1 bits");
    expect_failure(PAWL_F4, SHAPE(UINT64_MAX), "overflow",
                   "shape [18446744073709551615] of F4: 18446744073709551615 elements of 4 bits are more than 2^64 - 1 "
                   "bits");
}

static void
bits_that_are_no_whole_bytes(void **state)
{
    (void)state;
    expect_failure(PAWL_F4, NULL, 0, "bits", "shape [] of F4: 4 bits are no whole bytes");
    expect_failure(PAWL_F4, SHAPE(3, 5), "bits", "shape [3, 5] of F4: 60 bits are no whole bytes");
    expect_failure(PAWL_F6_E2M3, SHAPE(2), "bits", "shape [2] of F6_E2M3: 12 bits are no whole bytes");
    expect_failure(PAWL_F6_E3M2, SHAPE(3), "bits", "shape [3] of F6_E3M2: 18 bits are no whole bytes");
}

/* A header may hold a shape of millions of dimensions; the message's buffer does not. */
static void
message_of_a_long_shape_is_cut(void **state)
{
    (void)state;
    uint64_t shape[4096];
    for (size_t i = 0; i < 4096; i++)
        shape[i] = UINT64_MAX;
#define MAX "18446744073709551615, "
    expect_failure(PAWL_U8, shape, 4096, "overflow",
                   "shape [" MAX MAX MAX MAX MAX MAX "..., " MAX MAX MAX MAX MAX
                   "18446744073709551615] has more than 2^64 - 1 elements");
    expect_failure(PAWL_U8, shape, 12, "overflow",
                   "shape [" MAX MAX MAX MAX MAX MAX MAX MAX MAX MAX MAX
                   "18446744073709551615] has more than 2^64 - 1 elements");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_that_of_safetensors),
        cmocka_unit_test(numbers_that_are_no_dtype),
        cmocka_unit_test(names_are_exact),
        cmocka_unit_test(sizes_of_shapes),
        cmocka_unit_test(overflow_is_found_left_to_right),
        cmocka_unit_test(bits_that_are_no_whole_bytes),
        cmocka_unit_test(message_of_a_long_shape_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
