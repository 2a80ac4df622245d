/* Sorting in linear time, held against sorting by comparison. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sort.h"

enum { MOST = 3000 };

/* What is sorted by name, with something before and behind, as names lie in tensors. */
struct named {
    int before;
    struct pawl_str name;
    int behind;
};

static struct named things[MOST];
static char texts[MOST][64];
static struct pawl_sort_item items[MOST], spare[MOST], expected[MOST];
static uint64_t seed;

static uint64_t
next_random(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> 33;
}

static int
compare_keys(const void *a, const void *b)
{
    const struct pawl_sort_item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int
compare_names(const void *a, const void *b)
{
    const struct pawl_sort_item *x = a, *y = b;
    int order = pawl_str_compare(things[x->item].name, things[y->item].name);
    return order != 0 ? order : (x->item > y->item) - (x->item < y->item);
}

/* Goal: keys of any width are sorted, and equal ones keep their order. Method: keys that differ in some of their bytes only. */
static void
keys_of_any_width(void **state)
{
    static const uint64_t MASKS[] = { 0,         1, 0xff, 0xff00, UINT64_C(0xff00000000000000), UINT64_C(0x7ffffff000),
                                      UINT64_MAX };
    static const size_t COUNTS[] = { 0, 1, 2, 3, 100, MOST };
    (void)state;
    for (size_t m = 0; m < sizeof MASKS / sizeof *MASKS; m++) {
        for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
            size_t n = COUNTS[c];
            for (size_t i = 0; i < n; i++) {
                uint64_t key = next_random() << 33 ^ next_random() << 11 ^ next_random();
                items[i] = (struct pawl_sort_item){ (key & MASKS[m]) | (UINT64_C(0x42) & ~MASKS[m]), i };
            }
            memcpy(expected, items, n * sizeof *items);
            qsort(expected, n, sizeof *expected, compare_keys);
            const struct pawl_sort_item *sorted = pawl_sort_by_key(items, spare, n);
            assert_true(sorted == items || sorted == spare);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(sorted[i].key, expected[i].key);
                assert_int_equal(sorted[i].item, expected[i].item);
            }
        }
    }
}

static void
assert_sorts(size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        items[i] = (struct pawl_sort_item){ next_random(), i };
    memcpy(expected, items, n * sizeof *items);
    qsort(expected, n, sizeof *expected, compare_names);
    pawl_sort_by_name(items, spare, n, &things[0].name, sizeof things[0]);
    for (size_t i = 0; i < n; i++)
        if (items[i].item != expected[i].item)
            fail_msg("%s, %zu names: at %zu stands '%.*s', expected was '%.*s'", what, n, i,
                     PAWL_ARG(things[items[i].item].name), PAWL_ARG(things[expected[i].item].name));
}

static void
set_name(size_t i, size_t len)
{
    things[i] = (struct named){ -1, pawl_str_make(texts[i], len), -1 };
}

/*
 * Goal: names come in the order of their bytes, whatever they have in common: a name before what goes on from it, be it with a zero byte,
 * high bytes behind low ones, equal ones as they stood. Method: names as models have them, and random ones of few letters, so that many begin
 * alike, are equal, or end in the middle of another.
 */
static void
names_of_any_kind(void **state)
{
    static const size_t COUNTS[] = { 0, 1, 2, 31, 32, 33, 34, 200, MOST };
    static const char LETTERS[] = { 0, 'a', 'b', (char)0xff };
    (void)state;
    for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
        size_t n = COUNTS[c];
        for (size_t i = 0; i < n; i++)
            set_name(i, (size_t)snprintf(texts[i], sizeof texts[i], "model.layers.%zu.%s.weight", i / 3 * 7 % n,
                                         i % 3 == 0   ? "mlp.down_proj"
                                         : i % 3 == 1 ? "mlp.up_proj"
                                                      : "self_attn.q_proj"));
        assert_sorts(n, "a model's");
        for (size_t most = 1; most <= sizeof texts[0]; most += most < 20 ? 1 : 11) {
            for (size_t i = 0; i < n; i++) {
                size_t len = next_random() % (most + 1);
                for (size_t k = 0; k < len; k++) /* mostly one letter, so that runs are long and deep */
                    texts[i][k] = LETTERS[next_random() % 16 == 0 ? next_random() % 4 : 1];
                set_name(i, len);
            }
            assert_sorts(n, "random");
        }
    }
}

/* Goal: each name a byte longer than the one before, thousands of bytes: no call nests with them. */
static void
names_that_go_on_from_each_other(void **state)
{
    static char longest[MOST];
    (void)state;
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < MOST; i++)
        things[i] = (struct named){ -1, pawl_str_make(longest, i * 7 % MOST), -1 };
    assert_sorts(MOST, "nested");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_any_width),
        cmocka_unit_test(names_of_any_kind),
        cmocka_unit_test(names_that_go_on_from_each_other),
    };
    seed = 20261129;
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
