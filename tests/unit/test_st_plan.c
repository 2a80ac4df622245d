/* safetensors/st_plan.c: the writer's header, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "unit/st_tools.h"

static struct pawl_str
z(const char *text)
{
    return pawl_str_z(text);
}

/* The planned file with these data bytes behind the header, against hex. */
static void
assert_plan_is(const struct pawl_st_plan *plan, const char *data_hex, const char *expected_hex)
{
    struct pawl_str expected = st_unhex(expected_hex);
    struct pawl_str data = st_unhex(data_hex);
    assert_int_equal(plan->data_bytes, data.len);
    assert_int_equal(plan->file_bytes, expected.len);
    assert_int_equal(plan->prefix.len + data.len, expected.len);
    assert_memory_equal(plan->prefix.data, expected.data, plan->prefix.len);
    if (data.len != 0)
        assert_memory_equal(data.data, expected.data + plan->prefix.len, data.len);
    free((char *)expected.data);
    free((char *)data.data);
}

static void
plan_and_compare(const struct pawl_st_item *items, size_t n, const struct pawl_pair *metadata, size_t n_metadata,
                 bool has_metadata, const char *data_hex, const char *expected_hex)
{
    struct pawl_st_plan plan;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_st_plan(&plan, items, n, metadata, n_metadata, has_metadata, 0, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_plan_is(&plan, data_hex, expected_hex);
    pawl_st_plan_release(&plan);
}

/*
 * Goal: the reference writer's bytes. Method: its output for small sets (empty, metadata only, a scalar, four dtypes in
 * another order, a tensor of no elements beside empty metadata, a name that needs every kind of escape), and the page's example.
 */
static void
exact_bytes(void **state)
{
    (void)state;
    const uint64_t one[] = { 1 }, two[] = { 2 }, three[] = { 3 }, zero_three[] = { 0, 3 }, square[] = { 2, 2 };
    const struct pawl_pair key = { z("key"), z("value") };
    const struct pawl_pair format = { z("format"), z("tinyllm") };

    plan_and_compare(NULL, 0, NULL, 0, false, "", "08000000000000007b7d202020202020");
    plan_and_compare(NULL, 0, &key, 1, true, "",
                     "20000000000000007b225f5f6d657461646174615f5f223a7b226b6579223a2276616c7565227d7d");
    const struct pawl_st_item scalar = { z("s"), PAWL_F32, 0, NULL };
    plan_and_compare(
        &scalar, 1, NULL, 0, false, "0000803f",
        "38000000000000007b2273223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f666673657473"
        "223a5b302c345d7d7d2020200000803f");
    const struct pawl_st_item empty = { z("z"), PAWL_F32, 2, zero_three };
    plan_and_compare(
        &empty, 1, NULL, 0, true, "",
        "50000000000000007b225f5f6d657461646174615f5f223a7b7d2c227a223a7b226474797065223a22463332222c22736861706522"
        "3a5b302c335d2c22646174615f6f666673657473223a5b302c305d7d7d202020202020");
    const struct pawl_st_item escaped = { z("q\"\\\n\x01\x7f\xc3\xa9"), PAWL_U8, 1, one };
    plan_and_compare(
        &escaped, 1, NULL, 0, false, "00",
        "48000000000000007b22715c225c5c5c6e5c75303030317fc3a9223a7b226474797065223a225538222c227368617065223a5b315d"
        "2c22646174615f6f666673657473223a5b302c315d7d7d2020202000");
    const struct pawl_st_item w = { z("w"), PAWL_BF16, 2, square };
    struct pawl_st_plan plan;
    assert_int_equal(pawl_st_plan(&plan, &w, 1, &format, 1, true, 0, NULL), PAWL_OK);
    assert_int_equal(plan.prefix.len, 8 + 96);
    assert_int_equal(plan.file_bytes, 112);
    assert_memory_equal(plan.prefix.data + 8 + 93, "   ", 3);
    pawl_st_plan_release(&plan);

    const struct pawl_st_item four[] = { { z("b"), PAWL_U8, 1, three },
                                         { z("a"), PAWL_F32, 1, one },
                                         { z("c"), PAWL_BOOL, 1, one },
                                         { z("d"), PAWL_F4, 1, two } };
    const size_t order[] = { 1, 0, 3, 2 };
    const uint64_t begins[] = { 4, 0, 8, 7 };
    assert_int_equal(pawl_st_plan(&plan, four, 4, NULL, 0, false, 0, NULL), PAWL_OK);
    assert_int_equal(plan.prefix.len, 8 + 0xd8);
    assert_memory_equal(plan.order, order, sizeof order);
    assert_memory_equal(plan.begins, begins, sizeof begins);
    assert_int_equal(plan.data_bytes, 9);
    pawl_st_plan_release(&plan);
}

/* No tensors beside metadata that are there and empty: the reference writes a broken header, Pawl a good one. */
static void
empty_metadata_alone(void **state)
{
    (void)state;
    struct pawl_st_plan plan;
    struct pawl_st_header h;
    assert_int_equal(pawl_st_plan(&plan, NULL, 0, NULL, 0, true, 0, NULL), PAWL_OK);
    assert_int_equal(plan.prefix.len, 32);
    assert_memory_equal(plan.prefix.data + 8, "{\"__metadata__\":{}}     ", 24);
    assert_int_equal(pawl_st_read_memory(&h, plan.prefix.data, plan.prefix.len, NULL, NULL), PAWL_OK);
    assert_true(h.has_metadata);
    assert_int_equal(h.n_metadata, 0);
    pawl_st_release(&h);
    pawl_st_plan_release(&plan);
}

/*
 * Goal: the order in which tensors and metadata are given never changes the bytes, and several metadata keys are sorted.
 * Method: 16 keys and 30 tensors in 50 shuffled orders from a fixed generator.
 */
static void
order_of_calls_does_not_matter(void **state)
{
    (void)state;
    enum { KEYS = 16, ITEMS = 30 };
    static char names[ITEMS][8];
    static char keys[KEYS][8];
    struct pawl_st_item items[ITEMS];
    struct pawl_pair pairs[KEYS];
    const uint64_t shape[] = { 3, 5 };
    for (int i = 0; i < ITEMS; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i * 7 % 10 + i / 10 * 100);
        items[i] = (struct pawl_st_item){ z(names[i]), i % 2 ? PAWL_BF16 : PAWL_F64, 2, shape };
    }
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "%d", i);
        pairs[i] = (struct pawl_pair){ z(keys[i]), z("v") };
    }
    struct pawl_st_plan first;
    assert_int_equal(pawl_st_plan(&first, items, ITEMS, pairs, KEYS, true, 0, NULL), PAWL_OK);
    assert_memory_equal(first.prefix.data + 8, "{\"__metadata__\":{\"0\":\"v\",\"1\":\"v\",\"10\":\"v\",", 41);
    uint32_t random = 12345;
    for (int round = 0; round < 50; round++) {
        for (size_t i = ITEMS - 1; i > 0; i--) {
            random = random * 1664525 + 1013904223;
            size_t k = (random >> 8) % (i + 1);
            struct pawl_st_item swap = items[i];
            items[i] = items[k];
            items[k] = swap;
        }
        for (size_t i = KEYS - 1; i > 0; i--) {
            random = random * 1664525 + 1013904223;
            size_t k = (random >> 8) % (i + 1);
            struct pawl_pair swap = pairs[i];
            pairs[i] = pairs[k];
            pairs[k] = swap;
        }
        struct pawl_st_plan plan;
        assert_int_equal(pawl_st_plan(&plan, items, ITEMS, pairs, KEYS, true, 0, NULL), PAWL_OK);
        assert_int_equal(plan.prefix.len, first.prefix.len);
        assert_memory_equal(plan.prefix.data, first.prefix.data, first.prefix.len);
        for (size_t i = 0; i < ITEMS; i++) /* the offsets go with the item, not with its place in the array */
            assert_int_equal(plan.begins[plan.order[i]], i * 15 * 0 + (i < 15 ? i * 120 : 15 * 120 + (i - 15) * 30));
        pawl_st_plan_release(&plan);
    }
    pawl_st_plan_release(&first);
}

/*
 * Goal: items that are in order and known to be right give the same plan without the checks. Method: names that need escapes, or none, of many
 * lengths, ranks from 0 to 9, in both ways.
 */
static void
ordered_items_give_the_same_plan(void **state)
{
    (void)state;
    enum { ITEMS = 500 };
    static char names[ITEMS][40];
    static struct pawl_st_item items[ITEMS];
    static const uint64_t shape[] = { 1, 2, 1, 10, 1, 1, 100, 1, 1 };
    static const struct pawl_pair pairs[] = { { { "k\n", 2 }, { "v", 1 } }, { { "a", 1 }, { "\"", 1 } } };
    for (size_t i = 0; i < ITEMS; i++) {
        size_t len = (size_t)snprintf(names[i], sizeof names[i], "%03zu%.*s", i, (int)(i % 29),
                                      "\"\\\n\t\x01 plain and \xc3\xa9 \"end");
        while (len > 3 && ((unsigned char)names[i][len - 1] & 0xc0) == 0xc0) /* no half of the letter */
            len--;
        items[i] = (struct pawl_st_item){ pawl_str_make(names[i], len), i < 200 ? PAWL_I64 : PAWL_F16, i % 10, shape };
    }
    for (size_t n = 0; n <= ITEMS; n += n < 5 ? 1 : 99) {
        struct pawl_st_plan one, other;
        struct pawl_error err = PAWL_ERROR_INIT;
        if (pawl_st_plan(&one, items, n, pairs, 2, true, 64, &err) != PAWL_OK)
            fail_msg("%s", err.message);
        assert_int_equal(pawl_st_plan_ordered(&other, items, n, pairs, 2, true, 64, NULL), PAWL_OK);
        assert_int_equal(one.prefix.len, other.prefix.len);
        assert_memory_equal(one.prefix.data, other.prefix.data, one.prefix.len);
        assert_int_equal(one.file_bytes, other.file_bytes);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(other.order[i], i);
            assert_int_equal(one.order[i], i);
            assert_int_equal(one.begins[i], other.begins[i]);
            assert_int_equal(one.bytes[i], other.bytes[i]);
        }
        pawl_st_plan_release(&one);
        pawl_st_plan_release(&other);
    }
    struct pawl_st_plan plan;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_pair twice[] = { pairs[0], pairs[0] };
    assert_int_equal(pawl_st_plan_ordered(&plan, items, 1, twice, 2, true, 0, &err), PAWL_ARGUMENT);
    assert_string_equal(err.code, "duplicate-key");
    assert_int_equal(pawl_st_plan_ordered(&plan, items, 1, NULL, 0, false, 12, &err), PAWL_ARGUMENT);
}

/* The data begin at a multiple of what was asked for, and nothing but spaces is added. */
static void
alignment(void **state)
{
    (void)state;
    const uint64_t shape[] = { 2 };
    const struct pawl_st_item item = { z("w"), PAWL_F32, 1, shape };
    static const uint64_t ALIGNS[] = { 0, 8, 16, 64, 256, 4096 };
    for (size_t i = 0; i < sizeof ALIGNS / sizeof ALIGNS[0]; i++) {
        struct pawl_st_plan plan;
        uint64_t align = ALIGNS[i] == 0 ? 8 : ALIGNS[i];
        assert_int_equal(pawl_st_plan(&plan, &item, 1, NULL, 0, false, ALIGNS[i], NULL), PAWL_OK);
        assert_int_equal(plan.prefix.len % align, 0);
        assert_int_equal(plan.prefix.len, (62 + align - 1) / align * align);
        for (size_t k = 62; k < plan.prefix.len; k++)
            assert_int_equal(plan.prefix.data[k], ' ');
        assert_int_equal(pawl_get_u64le((const unsigned char *)plan.prefix.data), plan.prefix.len - 8);
        pawl_st_plan_release(&plan);
    }
    struct pawl_error err;
    struct pawl_st_plan plan;
    assert_int_equal(pawl_st_plan(&plan, &item, 1, NULL, 0, false, 24, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the data can't be aligned to 24: a power of two from 8 is expected");
    assert_int_equal(pawl_st_plan(&plan, &item, 1, NULL, 0, false, 4, &err), PAWL_ARGUMENT);
}

static void
assert_refused(const struct pawl_st_item *items, size_t n, const struct pawl_pair *metadata, size_t n_metadata,
               const char *code, const char *message)
{
    struct pawl_st_plan plan;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_st_plan(&plan, items, n, metadata, n_metadata, n_metadata != 0, 0, &err), PAWL_ARGUMENT);
    assert_string_equal(err.code, code);
    assert_string_equal(err.message, message);
    assert_null(plan.prefix.data);
}

/* What can't be written is refused before there is a file, each with its own words. */
static void
refusals(void **state)
{
    (void)state;
    const uint64_t three[] = { 3 }, huge[] = { UINT64_MAX, 2 }, large[] = { UINT64_C(1) << 60 };
    const struct pawl_st_item reserved = { z("__metadata__"), PAWL_U8, 0, NULL };
    assert_refused(&reserved, 1, NULL, 0, "argument", "no tensor can have the name '__metadata__'");
    const struct pawl_st_item twice[] = { { z("a"), PAWL_U8, 0, NULL },
                                          { z("b"), PAWL_U8, 0, NULL },
                                          { z("a"), PAWL_F32, 0, NULL } };
    assert_refused(twice, 3, NULL, 0, "duplicate-key", "the tensor name 'a' is given twice");
    const struct pawl_st_item bad = { z("x\xff"), PAWL_U8, 0, NULL };
    assert_refused(&bad, 1, NULL, 0, "utf8", "the tensor name 'x\\xff' is not UTF-8 at byte 1");
    const struct pawl_st_item nibbles = { z("n"), PAWL_F4, 1, three };
    struct pawl_st_plan plan;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_st_plan(&plan, &nibbles, 1, NULL, 0, false, 0, &err), PAWL_ARGUMENT);
    assert_string_equal(err.code, "bits");
    assert_string_equal(err.tensor, "n");
    const struct pawl_st_item wraps = { z("n"), PAWL_F32, 2, huge };
    assert_int_equal(pawl_st_plan(&plan, &wraps, 1, NULL, 0, false, 0, &err), PAWL_ARGUMENT);
    assert_string_equal(err.code, "overflow");
    struct pawl_st_item many[17];
    static char names[17][4];
    for (int i = 0; i < 17; i++) {
        snprintf(names[i], sizeof names[i], "%02d", i);
        many[i] = (struct pawl_st_item){ z(names[i]), PAWL_U8, 1, large };
    }
    assert_refused(many, 17, NULL, 0, "overflow", "with tensor '15' the data pass 2^64 bytes");
    const struct pawl_pair pairs[] = { { z("k"), z("1") }, { z("k"), z("2") } };
    assert_refused(NULL, 0, pairs, 2, "duplicate-key", "the metadata key 'k' is given twice");
    const struct pawl_pair value = { z("k"), z("\xc0\x80") };
    assert_refused(NULL, 0, &value, 1, "utf8", "the metadata value '\\xc0\\x80' is not UTF-8 at byte 0");
    const struct pawl_st_item none = { z("n"), (enum pawl_dtype)0, 0, NULL };
    assert_refused(&none, 1, NULL, 0, "dtype", "tensor 'n': 0 is no dtype");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_bytes),
        cmocka_unit_test(empty_metadata_alone),
        cmocka_unit_test(order_of_calls_does_not_matter),
        cmocka_unit_test(ordered_items_give_the_same_plan),
        cmocka_unit_test(alignment),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
