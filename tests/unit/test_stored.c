#include "unit/model_tools.h"

#include <inttypes.h>
#include "pawl/model.h"
#include "pawl/state.h"

#define STORED(name_, stored_, data_, ...)                                                                      \
    {                                                                                                           \
        .size = sizeof(struct pawl_tensor), .dtype = PAWL_F32, .name = PAWL_STR(name_),                         \
        .rank = sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, .shape = (uint64_t[]){ __VA_ARGS__ }, .data = (data_), \
        .stored = (stored_)                                                                                     \
    }

/* The bytes of the only tensor of a file, and its dtype. Static storage. */
static const unsigned char *
stored_bytes(const char *path, enum pawl_dtype dtype, size_t bytes)
{
    static unsigned char data[1 << 20];
    struct pawl_model *model;
    size_t n;
    assert_int_equal(pawl_model_open_z(path, NULL, &model, NULL), PAWL_OK);
    const struct pawl_tensor_info *t = pawl_model_tensors(model, &n);
    assert_int_equal(n, 1);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(pawl_model_read(model, t, dtype, data, bytes, NULL), PAWL_OK);
    pawl_model_close(model);
    return data;
}

static enum pawl_status
source_of_floats(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    (void)err;
    memcpy(destination, (const char *)context + offset, n);
    return PAWL_OK;
}

/*
 * Goal: F32 values are stored as any narrower float, rounded once as pawl_encode_f32 does, from packed memory, strided memory, big-endian
 * memory and a source alike. Method: more values than a block, compared with the encoder's answer for all of them.
 */
static void
every_narrow_float_from_every_memory(void **state)
{
    (void)state;
    static const enum pawl_dtype DTYPES[] = { PAWL_F4,      PAWL_F6_E2M3, PAWL_F6_E3M2,     PAWL_F8_E5M2,
                                              PAWL_F8_E4M3, PAWL_F8_E8M0, PAWL_F8_E4M3FNUZ, PAWL_F8_E5M2FNUZ,
                                              PAWL_F16,     PAWL_BF16 };
    enum { ROWS = 100, COLS = 92, N = ROWS * COLS };
    static float values[N], turned[N], swapped[N];
    static unsigned char want[N * 2];
    static const int64_t turned_strides[] = { 1, ROWS };
    for (size_t i = 0; i < N; i++) {
        values[i] = (float)(i % 977 + 1) / 200;
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        bits = bits >> 24 | (bits >> 8 & 0xff00) | (bits << 8 & 0xff0000) | bits << 24;
        memcpy(&swapped[i], &bits, 4);
        turned[i % COLS * ROWS + i / COLS] = values[i];
    }
    for (size_t d = 0; d < sizeof DTYPES / sizeof DTYPES[0]; d++) {
        size_t bytes = N * pawl_dtype_bits(DTYPES[d]) / 8;
        assert_int_equal(pawl_encode_f32(DTYPES[d], PAWL_OVERFLOW_SATURATE, values, N, want, NULL, NULL), PAWL_OK);
        const struct pawl_source source = { N * 4, source_of_floats, values };
        for (int memory = 0; memory < 4; memory++) {
            struct pawl_tensor t = STORED("w", DTYPES[d],
                                          memory == 1   ? turned
                                          : memory == 2 ? swapped
                                                        : values,
                                          ROWS, COLS);
            t.overflow = PAWL_OVERFLOW_SATURATE;
            if (memory == 1)
                t.strides = turned_strides;
            t.is_big_endian = memory == 2;
            if (memory == 3) {
                t.data = NULL;
                t.source = &source;
            }
            assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), &t, 1, NULL, NULL), PAWL_OK);
            assert_memory_equal(stored_bytes("w.safetensors", DTYPES[d], bytes), want, bytes);
        }
    }
}

/* Goal: a value that the format lacks is an error with its tensor and first index, and the old file stays; saturation is asked for. */
static void
values_beyond_the_range(void **state)
{
    (void)state;
    static float values[10000];
    struct pawl_error err = PAWL_ERROR_INIT;
    values[9000] = 449;
    values[9001] = -1e9f;
    struct pawl_tensor t = STORED("layer.w", PAWL_F8_E4M3, values, 100, 100);
    host_put("w.safetensors", "old");
    assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), &t, 1, NULL, &err), PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message,
                        "tensor 'layer.w': element 9000 is 449, beyond the largest of F8_E4M3 in magnitude, 448");
    assert_string_equal(err.code, "out-of-range");
    assert_string_equal(err.tensor, "layer.w");
    assert_string_equal(host_text("w.safetensors"), "old");
    assert_int_equal(system("test \"$(ls -A)\" = w.safetensors"), 0);
    t.overflow = PAWL_OVERFLOW_SATURATE;
    assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), &t, 1, NULL, &err), PAWL_OK);
    const unsigned char *codes = stored_bytes("w.safetensors", PAWL_F8_E4M3, 10000);
    assert_int_equal(codes[9000], 0x7e);
    assert_int_equal(codes[9001], 0xfe);
    t.stored = PAWL_F16;
    t.overflow = PAWL_OVERFLOW_FORMAT;
    assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), &t, 1, NULL, &err), PAWL_OK);
    assert_int_equal(stored_bytes("w.safetensors", PAWL_F16, 20000)[18003],
                     0xfc); /* -infinity: the format's own rule */
    t.overflow = PAWL_OVERFLOW_ERROR;
    assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), &t, 1, NULL, &err), PAWL_OUT_OF_RANGE);
}

/* Goal: what would lose more than a rounding is refused before a file exists: narrowed F64, a second rounding, floats as integers. */
static void
what_is_not_stored_otherwise(void **state)
{
    (void)state;
    static const struct {
        enum pawl_dtype dtype, stored;
        enum pawl_overflow overflow;
        const char *message;
    } CASES[] = {
        { PAWL_F64, PAWL_F32, 0, "tensor 'w': F64 can't be stored as F32: only F32 is, as a narrower float" },
        { PAWL_F64, PAWL_BF16, 0, "tensor 'w': F64 can't be stored as BF16: only F32 is, as a narrower float" },
        { PAWL_F16, PAWL_BF16, 0, "tensor 'w': F16 can't be stored as BF16: only F32 is, as a narrower float" },
        { PAWL_F32, PAWL_F64, 0, "tensor 'w': F32 can't be stored as F64: only F32 is, as a narrower float" },
        { PAWL_F32, PAWL_I32, 0, "tensor 'w': F32 can't be stored as I32: only F32 is, as a narrower float" },
        { PAWL_I32, PAWL_F16, 0, "tensor 'w': I32 can't be stored as F16: only F32 is, as a narrower float" },
        { PAWL_C64, PAWL_F16, 0, "tensor 'w': C64 can't be stored as F16: only F32 is, as a narrower float" },
        { PAWL_F32, (enum pawl_dtype)77, 0, "tensor 'w': 77 is no dtype to store" },
        { PAWL_F32, PAWL_F8_E4M3, PAWL_OVERFLOW_INF, "tensor 'w': F8_E4M3 has no infinity to overflow to" },
        { PAWL_F32, PAWL_F4, 0, "tensor 'w': 3 elements of F4, 4 bits each, are no whole bytes" },
    };
    double data[3] = { 0 };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_tensor t = STORED("w", CASES[i].stored, data, 3);
        t.dtype = CASES[i].dtype;
        t.overflow = CASES[i].overflow;
        assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), &t, 1, NULL, &err), PAWL_ARGUMENT);
        if (strcmp(err.message, CASES[i].message) != 0 && CASES[i].stored != PAWL_F4)
            fail_msg("%s, expected %s", err.message, CASES[i].message);
        assert_int_equal(access("w.safetensors", F_OK), -1);
    }
    struct pawl_tensor same = STORED("w", PAWL_F32, data, 3); /* its own dtype is no conversion */
    assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), &same, 1, NULL, NULL), PAWL_OK);
}

/* Goal: one memory stored in two ways is two tensors, in one way a tensor and its alias; the order in the file is that of what is stored. */
static void
ties_and_order_are_those_of_the_file(void **state)
{
    (void)state;
    float data[4] = { 1, 2, 3, 4 };
    struct pawl_tensor both[3] = { STORED("a", PAWL_BF16, data, 4), STORED("b", 0, data, 4),
                                   STORED("c", PAWL_BF16, data, 4) };
    struct pawl_model *model;
    size_t n;
    assert_int_equal(pawl_safetensors_write(PAWL_STR("w.safetensors"), both, 3, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_model_open_z("w.safetensors", NULL, &model, NULL), PAWL_OK);
    const struct pawl_tensor_info *t = pawl_model_tensors(model, &n);
    assert_int_equal(n, 2);
    assert_int_equal(t[0].dtype, PAWL_F32);
    assert_int_equal(t[1].dtype, PAWL_BF16);
    assert_memory_equal(t[1].name.data, "a", 1);
    assert_ptr_equal(pawl_model_find(model, PAWL_STR("c")), &t[1]);
    pawl_model_close(model);
}

/* Goal: a checkpoint keeps every bit: a tensor that is to be stored otherwise is none of its state. */
static void
a_checkpoint_refuses(void **state)
{
    (void)state;
    float data[4] = { 0 };
    struct pawl_state *saved;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_tensor t = STORED("w", PAWL_BF16, data, 4);
    t.slot = PAWL_MODEL;
    assert_int_equal(pawl_state_new(&saved, NULL), PAWL_OK);
    assert_int_equal(pawl_state_tensor(saved, &t, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message,
                        "tensor 'w' is to be stored as BF16: a checkpoint keeps every bit of the F32 that it is");
    t.stored = PAWL_F32;
    assert_int_equal(pawl_state_tensor(saved, &t, &err), PAWL_OK);
    pawl_state_free(saved);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        TEST(every_narrow_float_from_every_memory), TEST(values_beyond_the_range), TEST(what_is_not_stored_otherwise),
        TEST(ties_and_order_are_those_of_the_file), TEST(a_checkpoint_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
