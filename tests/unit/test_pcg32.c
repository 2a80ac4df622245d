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
#include "pawl/pcg32.h"

/* One value of a golden line: how it is drawn and compared depends on the line's kind. */
struct line {
    const char *kind;
    uint64_t seed, parameter;
    struct pawl_pcg32 rng;
    unsigned char order[10]; /* shuffled 0..9 */
    size_t index;
};

/* Distance in representable doubles; both of one sign. */
static uint64_t
ulps_between(double a, double b)
{
    int64_t x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    if ((x ^ y) < 0)
        return UINT64_MAX;
    return x > y ? (uint64_t)(x - y) : (uint64_t)(y - x);
}

static void
begin_line(struct line *line)
{
    pawl_pcg32_seed(&line->rng, line->seed, 54);
    line->index = 0;
    if (strcmp(line->kind, "stream") == 0)
        pawl_pcg32_stream(&line->rng, line->seed, line->parameter);
    if (strcmp(line->kind, "shuffle") == 0) {
        for (unsigned char i = 0; i < 10; i++)
            line->order[i] = i;
        pawl_pcg32_shuffle(&line->rng, line->order, 10, 1);
    }
    if (strcmp(line->kind, "state") == 0) {
        for (int i = 0; i < 1024; i++)
            (void)pawl_pcg32_next(&line->rng);
    }
}

static bool
value_matches(struct line *line, const char *text)
{
    const char *kind = line->kind;
    size_t index = line->index++;
    if (strcmp(kind, "next") == 0 || strcmp(kind, "stream") == 0)
        return pawl_pcg32_next(&line->rng) == strtoull(text, NULL, 10);
    if (strcmp(kind, "below") == 0)
        return pawl_pcg32_below(&line->rng, line->parameter) == strtoull(text, NULL, 10);
    if (strcmp(kind, "uniform") == 0)
        return pawl_pcg32_uniform(&line->rng) == strtod(text, NULL);
    if (strcmp(kind, "normal") == 0)
        return ulps_between(pawl_pcg32_normal(&line->rng), strtod(text, NULL)) <= 4;
    if (strcmp(kind, "shuffle") == 0)
        return line->order[index] == strtoul(text, NULL, 10);
    if (strcmp(kind, "child") == 0)
        return pawl_child_seed(line->seed, line->parameter) == strtoull(text, NULL, 16);
    if (strcmp(kind, "state") == 0) {
        char hex[2][17];
        pawl_pcg32_print(&line->rng, hex[0], hex[1]);
        return strcmp(hex[index], text) == 0;
    }
    fail_msg("unknown kind '%s'", kind);
    return false;
}

/* Every line of the golden vectors; the counts make sure that none was passed over. */
static void
golden_vectors(void **state)
{
    (void)state;
    FILE *file = fopen(PAWL_GOLDEN "/pcg32/vectors.txt", "r");
    assert_non_null(file);
    static char text[32768];
    size_t lines = 0, values = 0;
    while (fgets(text, sizeof(text), file) != NULL) {
        assert_non_null(strchr(text, '\n')); /* else the buffer was too small */
        char *rest = NULL;
        struct line line = { .kind = strtok_r(text, " \n", &rest) };
        line.seed = strtoull(strtok_r(NULL, " \n", &rest), NULL, 10);
        line.parameter = strtoull(strtok_r(NULL, " \n", &rest), NULL, 10);
        begin_line(&line);
        for (char *word; (word = strtok_r(NULL, " \n", &rest)) != NULL; values++) {
            if (!value_matches(&line, word))
                fail_msg("%s of seed %llu, parameter %llu: value %zu is not %s", line.kind,
                         (unsigned long long)line.seed, (unsigned long long)line.parameter, line.index - 1, word);
        }
        lines++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(lines, 88);
    assert_int_equal(values, 4820);
}

/* The outputs printed with the reference implementation, and sequence numbers that are shifted in whole. */
static void
outputs_of_the_reference(void **state)
{
    (void)state;
    const uint32_t want[] = { 0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b, 0xcbed606e };
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 42, 54);
    assert_true(rng.inc == 109);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pawl_pcg32_next(&rng), want[i]);
    pawl_pcg32_seed(&rng, 42, UINT64_MAX);
    assert_true(rng.inc == UINT64_MAX);
}

/* SplitMix64 from 0 and from 1234567: the outputs published with it. */
static void
splitmix64(void **state)
{
    (void)state;
    uint64_t word = 0;
    assert_true(pawl_splitmix64_next(&word) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(pawl_splitmix64_next(&word) == UINT64_C(0x6e789e6aa1b965f4));
    word = 1234567;
    assert_true(pawl_splitmix64_next(&word) == UINT64_C(6457827717110365317));
    assert_true(pawl_splitmix64_next(&word) == UINT64_C(3203168211198807973));
    assert_true(pawl_mix64(0) == 0);
}

/*
 * Goal: below(n) refuses the draws under (2^32 - n) mod n and no other. Method:
 * set the state so that the next draw is known: with an output of 0 the state's
 * high bits are 0; n = 2^31 + 1 has threshold 2^31 - 1, so about half of all draws
 * are refused; count what is used against a replay.
 */
static void
below_refuses_and_counts(void **state)
{
    (void)state;
    const uint64_t sizes[] = { 3, 1000, (UINT64_C(1) << 31) + 1, 3 * (UINT64_C(1) << 30), (UINT64_C(1) << 32) - 1 };
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const uint64_t n = sizes[s], threshold = (UINT64_C(1) << 32) % n;
        struct pawl_pcg32 rng, replay;
        pawl_pcg32_seed(&rng, 7, 54);
        replay = rng;
        for (int i = 0; i < 5000; i++) {
            uint64_t draw = pawl_pcg32_next(&replay);
            while (draw < threshold)
                draw = pawl_pcg32_next(&replay);
            assert_true(pawl_pcg32_below(&rng, n) == draw % n);
            assert_true(rng.state == replay.state);
        }
    }
}

static void
step_back(struct pawl_pcg32 *rng)
{
    /* the inverse of the multiplier modulo 2^64, by Newton's steps */
    uint64_t multiplier = UINT64_C(6364136223846793005), inverse = multiplier;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - multiplier * inverse;
    rng->state = (rng->state - rng->inc) * inverse;
}

/* The draw that equals the threshold is taken, the one below it refused: n is chosen to fit a draw that comes. */
static void
below_at_the_threshold(void **state)
{
    (void)state;
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 1, 54);
    unsigned taken = 0, refused = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t draw = pawl_pcg32_next(&rng);
        if (draw == 0 || draw >= UINT64_C(1) << 31)
            continue;
        /* n = 2^32 - t has threshold t when t < n */
        for (uint64_t t = draw; t <= draw + 1; t++) {
            struct pawl_pcg32 again = rng;
            step_back(&again);
            uint64_t n = (UINT64_C(1) << 32) - t;
            uint64_t got = pawl_pcg32_below(&again, n);
            if (t == draw) {
                assert_true(got == draw % n && again.state == rng.state);
                taken++;
            } else {
                assert_true(again.state != rng.state);
                refused++;
            }
        }
    }
    assert_true(taken > 50 && refused > 50);
}

static void
below_outside_its_range_draws_nothing(void **state)
{
    (void)state;
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 5, 54);
    uint64_t before = rng.state;
    assert_true(pawl_pcg32_below(&rng, 0) == 0);
    assert_true(pawl_pcg32_below(&rng, (UINT64_C(1) << 32) + 1) == 0);
    assert_true(pawl_pcg32_below(&rng, UINT64_MAX) == 0);
    assert_true(rng.state == before);
    assert_true(pawl_pcg32_below(&rng, 1) == 0);
    assert_true(rng.state != before); /* 1 is inside: it draws, as the definition says */
}

/* A pair of normals takes four draws; the second comes from the spare, which a copied state carries along. */
static void
normal_keeps_its_spare(void **state)
{
    (void)state;
    struct pawl_pcg32 rng, replay;
    pawl_pcg32_seed(&rng, 42, 54);
    replay = rng;
    double first = pawl_pcg32_normal(&rng);
    assert_true(rng.has_spare);
    for (int i = 0; i < 4; i++)
        (void)pawl_pcg32_next(&replay);
    assert_true(rng.state == replay.state);

    struct pawl_pcg32 copy = rng;
    double second = pawl_pcg32_normal(&rng);
    assert_true(rng.state == replay.state); /* no draw */
    assert_false(rng.has_spare);
    assert_true(second == copy.spare);
    assert_true(pawl_pcg32_normal(&copy) == second);
    assert_true(first != second);
    double third = pawl_pcg32_normal(&rng);
    assert_true(third == pawl_pcg32_normal(&copy));
    assert_true(third != second);

    /* seeding forgets a spare: the run is that of the seed */
    pawl_pcg32_seed(&rng, 42, 54);
    assert_true(pawl_pcg32_normal(&rng) == first);
    pawl_pcg32_stream(&rng, 42, PAWL_PURPOSE_INIT);
    assert_false(rng.has_spare);
}

/* Elements of any size move whole: sizes around the swap buffer's 64, in the order that bytes of size 1 take. */
static void
shuffle_moves_whole_elements(void **state)
{
    (void)state;
    const size_t sizes[] = { 2, 3, 4, 8, 63, 64, 65, 128, 200 };
    unsigned char order[50];
    struct pawl_pcg32 rng;
    for (unsigned char i = 0; i < 50; i++)
        order[i] = i;
    pawl_pcg32_seed(&rng, 9, 54);
    pawl_pcg32_shuffle(&rng, order, 50, 1);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        unsigned char elements[50 * 200];
        size_t bytes = sizes[s];
        for (size_t i = 0; i < 50 * bytes; i++)
            elements[i] = (unsigned char)(i / bytes + i % bytes);
        pawl_pcg32_seed(&rng, 9, 54);
        pawl_pcg32_shuffle(&rng, elements, 50, bytes);
        for (size_t i = 0; i < 50 * bytes; i++)
            assert_int_equal(elements[i], (unsigned char)(order[i / bytes] + i % bytes));
    }
    uint64_t before = rng.state;
    pawl_pcg32_shuffle(&rng, order, 0, 1);
    pawl_pcg32_shuffle(&rng, order, 1, 1);
    pawl_pcg32_shuffle(&rng, NULL, 0, 4);
    assert_true(rng.state == before);
}

static void
state_as_text(void **state)
{
    (void)state;
    struct pawl_pcg32 rng, back;
    char state_hex[17], inc_hex[17];
    pawl_pcg32_seed(&rng, 42, UINT64_C(0x0123456789abcdef) >> 1);
    (void)pawl_pcg32_normal(&rng);
    pawl_pcg32_print(&rng, state_hex, inc_hex);
    assert_string_equal(inc_hex, "0123456789abcdef");
    memset(&back, 0xff, sizeof(back));
    back.has_spare = true;
    assert_int_equal(pawl_pcg32_parse(&back, pawl_str_z(state_hex), pawl_str_z(inc_hex), NULL), PAWL_OK);
    assert_true(back.state == rng.state && back.inc == rng.inc);
    assert_false(back.has_spare);
    assert_int_equal(pawl_pcg32_next(&back), pawl_pcg32_next(&rng));
}

static void
texts_that_are_no_state(void **state)
{
    (void)state;
    const struct pawl_str good = PAWL_STR("00000000000000ff");
    const struct {
        struct pawl_str state, inc;
        const char *message;
    } bad[] = {
        { good, PAWL_STR("000000000000006c"), "pcg inc '000000000000006c' is even: no PCG stream has that" },
        { good, PAWL_STR("0000000000000000"), "pcg inc '0000000000000000' is even: no PCG stream has that" },
        { good, PAWL_STR("000000000000006"), "pcg inc '000000000000006' is not 16 lowercase hex digits" },
        { good, PAWL_STR("0x0000000000006d"), "pcg inc '0x0000000000006d' is not 16 lowercase hex digits" },
        { PAWL_STR("00000000000000FF"), good, "pcg state '00000000000000FF' is not 16 lowercase hex digits" },
        { PAWL_STR("00000000000000ff0"), good, "pcg state '00000000000000ff0' is not 16 lowercase hex digits" },
        { PAWL_STR("00000000000000f/"), good, "pcg state '00000000000000f/' is not 16 lowercase hex digits" },
        { PAWL_STR("00000000000000f:"), good, "pcg state '00000000000000f:' is not 16 lowercase hex digits" },
        { PAWL_STR("00000000000000f`"), good, "pcg state '00000000000000f`' is not 16 lowercase hex digits" },
        { PAWL_STR("00000000000000fg"), good, "pcg state '00000000000000fg' is not 16 lowercase hex digits" },
        { { NULL, 0 }, good, "pcg state '' is not 16 lowercase hex digits" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_pcg32 rng;
        pawl_pcg32_seed(&rng, 3, 54);
        const struct pawl_pcg32 before = rng;
        assert_int_equal(pawl_pcg32_parse(&rng, bad[i].state, bad[i].inc, &err), PAWL_ARGUMENT);
        assert_string_equal(err.message, bad[i].message);
        assert_true(rng.state == before.state && rng.inc == before.inc);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(outputs_of_the_reference),
        cmocka_unit_test(splitmix64),
        cmocka_unit_test(below_refuses_and_counts),
        cmocka_unit_test(below_at_the_threshold),
        cmocka_unit_test(below_outside_its_range_draws_nothing),
        cmocka_unit_test(normal_keeps_its_spare),
        cmocka_unit_test(shuffle_moves_whole_elements),
        cmocka_unit_test(state_as_text),
        cmocka_unit_test(texts_that_are_no_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
