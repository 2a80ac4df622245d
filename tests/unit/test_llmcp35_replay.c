/* The replay of LLMCP35: golden results and trace, other inputs, finite differences, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>
#include "trainer/llmcp35_replay.h"
#include "unit/golden_json.h"
#include "unit/llmcp35_support.h"

#define IDS_MAX 64

static uint64_t
bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/*
 * Whether exp, pow, sin and cos here round as the golden results' did. glibc has variants with and without fused
 * multiply-add, and its results differ in the last bit for some arguments; these are arguments of the replays that are
 * marked as sensitive.
 */
static bool
is_golden_libm(void)
{
    static const struct {
        char function;
        uint64_t argument, result;
    } probes[] = { { 'e', 0, UINT64_C(0x3ff0000000000000) } };
    bool is_golden = true;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        volatile double argument; /* worked out when the program runs, not by the compiler */
        double given;
        memcpy(&given, &probes[i].argument, sizeof given);
        argument = given;
        double result = probes[i].function == 'e'   ? exp(argument)
                        : probes[i].function == 's' ? sin(argument)
                        : probes[i].function == 'l' ? log(argument)
                                                    : cos(argument);
        is_golden = is_golden && bits_of(result) == probes[i].result;
    }
    return is_golden;
}

/* ---- golden ---- */

static size_t
read_ids(const struct pawl_json_value *list, uint64_t ids[IDS_MAX])
{
    assert_true(list->n <= IDS_MAX);
    for (size_t i = 0; i < list->n; i++)
        assert_true(pawl_json_u64(list->first[i].text, &ids[i]));
    return list->n;
}

static uint64_t
read_number(const struct pawl_json_value *object, const char *key)
{
    uint64_t number;
    assert_true(pawl_json_u64(pawl_json_member(object, pawl_str_z(key))->text, &number));
    return number;
}

/* "fnv1a64:..." or "0x...": compares and says which field it is. */
static bool
is_text(const struct pawl_json_value *object, const char *key, const char *prefix, uint64_t found)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%s%016llx", prefix, (unsigned long long)found);
    struct pawl_str expected = pawl_json_member(object, pawl_str_z(key))->text;
    if (pawl_str_equal(pawl_str_z(text), expected))
        return true;
    print_message("%s: %s, expected %.*s\n", key, text, PAWL_ARG(expected));
    return false;
}

static bool
is_golden_replay(const struct pawl_json_value *golden, const struct llmcp35_replay *replay)
{
    bool is_same = is_text(golden, "logits_before", "fnv1a64:", replay->logits_before);
    is_same = is_text(golden, "loss_bits", "0x", bits_of(replay->loss)) && is_same;
    is_same = is_text(golden, "gradients", "fnv1a64:", replay->gradients) && is_same;
    is_same = is_text(golden, "parameters_after", "fnv1a64:", replay->parameters_after) && is_same;
    is_same = is_text(golden, "moments_after", "fnv1a64:", replay->moments_after) && is_same;
    is_same = is_text(golden, "beta1_power_bits", "0x", bits_of(replay->beta1_power)) && is_same;
    is_same = is_text(golden, "beta2_power_bits", "0x", bits_of(replay->beta2_power)) && is_same;
    is_same = read_number(golden, "step_after") == replay->step_after && is_same;
    is_same = is_text(golden, "logits_after", "fnv1a64:", replay->logits_after) && is_same;
    return is_text(golden, "next_sampling_draw", "0x", replay->next_sampling_draw) && is_same;
}

/*
 * Goal: all ten fields of the eight replays are the reference's. Method: replay.json; the two that it marks as depending on the
 * variant of libm are let off only where libm itself is seen to round in another way.
 */
static void
replays_are_the_reference_s(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *list = golden_read(&arena, LC_GOLDEN "replay.json");
    const bool has_golden_libm = is_golden_libm();
    unsigned n_sensitive = 0;
    assert_int_equal(list->n, 8);
    for (size_t i = 0; i < list->n; i++) {
        const struct pawl_json_value *golden = &list->first[i];
        struct pawl_error err = PAWL_ERROR_INIT;
        struct llmcp35_replay replay;
        uint64_t inputs[IDS_MAX], targets[IDS_MAX];
        char path[512];
        (void)snprintf(path, sizeof path, LC_GOLDEN "%.*s",
                       PAWL_ARG(pawl_json_member(golden, PAWL_STR("checkpoint"))->text));
        struct llmcp35_batch batch = { inputs, targets, read_ids(pawl_json_member(golden, PAWL_STR("inputs")), inputs),
                                       (size_t)read_number(golden, "batch") };
        assert_int_equal(read_ids(pawl_json_member(golden, PAWL_STR("targets")), targets), batch.n);
        assert_int_equal(batch.n, batch.batch * read_number(golden, "tokens"));
        double rate = pawl_json_f64(pawl_json_member(golden, PAWL_STR("learning_rate"))->text);
        bool is_sensitive = pawl_json_member(golden, PAWL_STR("libm_variant_sensitive"))->type == PAWL_JSON_TRUE;
        n_sensitive += is_sensitive;

        struct pawl_llmcp35 *checkpoint = lc_load_golden(path);
        if (llmcp35_replay(checkpoint, &batch, rate, NULL, &replay, NULL, &err) != PAWL_OK)
            fail_msg("%s: %s", path, err.message);
        if (!is_golden_replay(golden, &replay)) {
            if (!is_sensitive || has_golden_libm)
                fail_msg("replay %zu of %s differs", i, path);
            print_message("libm-variant: replay %zu of %s differs, and so does this machine's libm\n", i, path);
        }
        pawl_llmcp35_free(checkpoint);
    }
    assert_int_equal(n_sensitive, 2);
    pawl_arena_release(&arena);
}

/* ---- the trace ---- */

struct lines {
    struct pawl_buffer text;
};

static void
add_line(void *context, const char *label, const double *values, size_t n)
{
    struct lines *lines = context;
    (void)pawl_buffer_printf(&lines->text, "%s\t", label);
    for (size_t i = 0; i < n; i++)
        (void)pawl_buffer_printf(&lines->text, "%s%016llx", i == 0 ? "" : " ", (unsigned long long)bits_of(values[i]));
    (void)pawl_buffer_add_char(&lines->text, '\n');
}

static const uint64_t fixture_inputs[2] = { 0, 1 };
static const uint64_t fixture_targets[2] = { 1, 2 };
static const struct llmcp35_batch fixture_batch = { fixture_inputs, fixture_targets, 2, 1 };

/* Goal: every intermediate value of the fixture's replay is the reference's. Method: the trace, byte for byte. */
static void
the_trace_is_the_reference_s(void **state)
{
    (void)state;
    struct lines lines = { PAWL_BUFFER_INIT };
    const struct llmcp35_trace trace = { add_line, &lines };
    struct llmcp35_replay replay;
    size_t n;
    struct pawl_llmcp35 *checkpoint = lc_load_golden(LC_FIXTURE);
    assert_int_equal(llmcp35_replay(checkpoint, &fixture_batch, 0.006, &trace, &replay, NULL, NULL), PAWL_OK);
    unsigned char *golden = lc_bytes_of(LC_GOLDEN "replay-fixture-trace.tsv", &n);
    assert_true(pawl_buffer_ok(&lines.text));
    size_t shared = lines.text.len < n ? lines.text.len : n;
    for (size_t i = 0, begin = 0; i < shared; i++) {
        if (lines.text.data[i] != (char)golden[i])
            fail_msg("the trace differs at byte %zu, in the line: %.60s", i, lines.text.data + begin);
        begin = golden[i] == '\n' ? i + 1 : begin;
    }
    assert_int_equal(lines.text.len, n);
    free(golden);
    pawl_buffer_release(&lines.text);
    pawl_llmcp35_free(checkpoint);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_are_the_reference_s),
        cmocka_unit_test(the_trace_is_the_reference_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
