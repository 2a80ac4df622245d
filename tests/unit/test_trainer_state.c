/* checkpoint/trainer_state.c. Goal: the schema's rules, each with its message; the canonical print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include "checkpoint/documents.h"
#include "unit/document_cases.h"

#define CONFIG "2133e89bc402b2b25a1d91b99c157f0ebdb566267c3af48c80dfd316b5772af2"
#define GOOD                                                                                              \
    "{\"step\": 500, \"tokens_seen\": 9007199254740993, \"data_cursor\": {\"shard\": 3, \"offset\": 7}, " \
    "\"rng\": {\"pcg_state\": \"fedcba9876543210\", \"pcg_inc\": \"000000000000006d\", "                  \
    "\"a_inc\": \"0000000000000002\"}, \"lr\": 0.0003, \"config_sha256\": \"" CONFIG "\", \"git_sha\": \"unknown\"}"

static enum pawl_status
parse(struct pawl_arena *arena, const void *text, size_t bytes, struct pawl_error *err)
{
    struct pawl_trainer_document document;
    return pawl_trainer_state_parse(arena, &document, text, bytes, err);
}

static void
every_field_is_read(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_trainer_document document;
    assert_int_equal(pawl_trainer_state_parse(&arena, &document, GOOD, strlen(GOOD), NULL), PAWL_OK);
    const struct pawl_trainer_state *trainer = &document.state;
    assert_int_equal(trainer->step, 500);
    assert_int_equal(trainer->tokens_seen, INT64_C(9007199254740993)); /* no double holds it */
    assert_int_equal(trainer->cursor_shard, 3);
    assert_int_equal(trainer->cursor_offset, 7);
    assert_true(trainer->has_rng);
    assert_true(trainer->rng.state == UINT64_C(0xfedcba9876543210));
    assert_true(trainer->rng.inc == 0x6d);
    assert_true(trainer->lr == 0.0003);
    assert_false(trainer->has_loss_scale);
    assert_string_equal(trainer->config_sha256, CONFIG);
    assert_string_equal(trainer->git_sha, "unknown");
    assert_int_equal(document.n_rng, 3);
    assert_true(pawl_str_equal(document.rng[2].key, PAWL_STR("a_inc")));
    pawl_arena_release(&arena);
}

/* Put `to` in place of `from` in the good text, and parse it. */
static enum pawl_status
parse_with(struct pawl_arena *arena, struct pawl_trainer_document *document, const char *from, const char *to)
{
    char text[2048];
    const char *at = strstr(GOOD, from);
    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - GOOD), GOOD, to, at + strlen(from));
    return pawl_trainer_state_parse(arena, document, text, strlen(text), NULL);
}

static void
what_is_allowed(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_trainer_document document;
    assert_int_equal(parse_with(&arena, &document, "\"lr\": 0.0003", "\"lr\": 3"), PAWL_OK);
    assert_true(document.state.lr == 3.0);
    assert_int_equal(parse_with(&arena, &document, "\"lr\": 0.0003", "\"loss_scale\": 5e-324, \"lr\": -0.0"), PAWL_OK);
    assert_true(document.state.has_loss_scale && document.state.loss_scale == 5e-324);
    assert_int_equal(parse_with(&arena, &document, "\"unknown\"", "\"0123456789abcdef0123456789abcdef01234567\""),
                     PAWL_OK);
    assert_string_equal(document.state.git_sha, "0123456789abcdef0123456789abcdef01234567");
    assert_int_equal(parse_with(&arena, &document, "\"step\": 500", "\"step\": 9223372036854775807"), PAWL_OK);
    assert_true(document.state.step == INT64_MAX);
    /* state 0 and increment 1 is what a writer without a generator leaves */
    assert_int_equal(parse_with(&arena, &document, "fedcba9876543210\", \"pcg_inc\": \"000000000000006d",
                                "0000000000000000\", \"pcg_inc\": \"0000000000000001"),
                     PAWL_OK);
    assert_false(document.state.has_rng);
    assert_int_equal(parse_with(&arena, &document, "fedcba9876543210\", \"pcg_inc\": \"000000000000006d",
                                "0000000000000001\", \"pcg_inc\": \"0000000000000001"),
                     PAWL_OK);
    assert_true(document.state.has_rng);
    pawl_arena_release(&arena);
}

#define COUNT "expected an integer from 0 to 9223372036854775807 in digits alone, found "

static void
every_rule_has_its_message(void **state)
{
    (void)state;
    static const struct document_case CASES[] = {
        { NULL, "[]", "expected an object, found an array" },
        { "{\"step\"", "{\"x\": 1, \"step\"", "unknown key \"x\"" },
        { "\"step\": 500, ", "", "the key \"step\" is missing" },
        { "\"tokens_seen\": 9007199254740993, ", "", "the key \"tokens_seen\" is missing" },
        { "\"data_cursor\": {\"shard\": 3, \"offset\": 7}, ", "", "the key \"data_cursor\" is missing" },
        { "\"lr\": 0.0003, ", "", "the key \"lr\" is missing" },
        { "\"config_sha256\": \"" CONFIG "\", ", "", "the key \"config_sha256\" is missing" },
        { ", \"git_sha\": \"unknown\"", "", "the key \"git_sha\" is missing" },
        { "\"step\": 500", "\"step\": -1", "step: " COUNT "-1" },
        { "\"step\": 500", "\"step\": \"500\"", "step: " COUNT "\"500\"" },
        { "\"step\": 500", "\"step\": 500.0", "step: " COUNT "500.0" },
        { "9007199254740993", "9223372036854775808", "tokens_seen: " COUNT "9223372036854775808" },
        { "\"shard\": 3", "\"shard\": -3", "data_cursor: shard: " COUNT "-3" },
        { "\"offset\": 7", "\"offset\": null", "data_cursor: offset: " COUNT "null" },
        { ", \"offset\": 7", "", "data_cursor: the key \"offset\" is missing" },
        { "\"offset\": 7", "\"offset\": 7, \"z\": 0", "data_cursor: unknown key \"z\"" },
        { "{\"shard\": 3, \"offset\": 7}", "[3, 7]", "data_cursor: expected an object, found an array" },
        { "\"pcg_state\": \"fedcba9876543210\", ", "", "rng: the key \"pcg_state\" is missing" },
        { "\"pcg_inc\": \"000000000000006d\", ", "", "rng: the key \"pcg_inc\" is missing" },
        { "\"fedcba9876543210\"", "\"FEDCBA9876543210\"",
          "rng: pcg_state: expected 16 lowercase hex digits, found \"FEDCBA9876543210\"" },
        { "\"fedcba9876543210\"", "\"0xfedcba98765432\"",
          "rng: pcg_state: expected 16 lowercase hex digits, found \"0xfedcba98765432\"" },
        { "\"fedcba9876543210\"", "12", "rng: pcg_state: expected 16 lowercase hex digits, found 12" },
        { "\"0000000000000002\"", "\"00000000000000002\"",
          "rng: a_inc: expected 16 lowercase hex digits, found \"00000000000000002\"" },
        { "\"0000000000000002\"", "null", "rng: a_inc: expected 16 lowercase hex digits, found null" },
        { "6d\"", "6e\"", "rng: pcg_inc: expected an odd increment, found \"000000000000006e\"" },
        { "\"lr\": 0.0003", "\"lr\": -0.0003", "lr: expected a number that is not negative, found -0.0003" },
        { "\"lr\": 0.0003", "\"lr\": \"0.0003\"", "lr: expected a number, found \"0.0003\"" },
        { "\"lr\"", "\"loss_scale\": 0, \"lr\"", "loss_scale: expected a number above 0, found 0" },
        { "\"lr\"", "\"loss_scale\": -1.0, \"lr\"", "loss_scale: expected a number above 0, found -1.0" },
        { "\"lr\"", "\"loss_scale\": null, \"lr\"", "loss_scale: expected a number, found null" },
        { "\"2133", "\"133",
          "config_sha256: expected 64 lowercase hex digits, found "
          "\"133e89bc402b2b25a1d91b99c157f0ebdb566267c3af48c80dfd316b5772af2\"" },
        { "\"unknown\"", "\"Unknown\"", "git_sha: expected 40 lowercase hex digits or \"unknown\", found \"Unknown\"" },
        { "\"unknown\"", "\"0123456789abcdef0123456789abcdef0123456\"",
          "git_sha: expected 40 lowercase hex digits or \"unknown\", found "
          "\"0123456789abcdef0123456789abcdef0123456\"" },
        { "\"unknown\"", "null", "git_sha: expected 40 lowercase hex digits or \"unknown\", found null" },
    };
    check_document_cases(parse, GOOD, CASES, sizeof CASES / sizeof CASES[0]);
}

static void
texts_that_are_no_json(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *code;
    } CASES[] = {
        { "{\"step\"", "\xef\xbb\xbf{\"step\"", "json" },
        { "0.0003", "NaN", "json" },
        { "0.0003", "Infinity", "json" },
        { "0.0003", "1e999", "json" },
        { "\"step\": 500", "\"step\": 500, \"step\": 500", "duplicate-key" },
        { "unknown", "\xff", "utf8" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[2048];
        struct pawl_arena arena = PAWL_ARENA_INIT;
        struct pawl_error err = PAWL_ERROR_INIT;
        const char *at = strstr(GOOD, CASES[i].from);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - GOOD), GOOD, CASES[i].to, at + strlen(CASES[i].from));
        assert_int_equal(parse(&arena, text, strlen(text), &err), PAWL_CORRUPT);
        assert_string_equal(err.code, CASES[i].code);
        pawl_arena_release(&arena);
    }
}

static void
the_print_is_canonical(void **state)
{
    (void)state;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_pair rng[] = { { PAWL_STR("\xc3\x89_inc"), PAWL_STR("0000000000000003") },
                               { PAWL_STR("pcg_inc"), PAWL_STR("0000000000000001") },
                               { PAWL_STR("a_state"), PAWL_STR("0000000000000004") },
                               { PAWL_STR("pcg_state"), PAWL_STR("0000000000000000") } };
    struct pawl_trainer_document document = { .state = { .step = 7,
                                                         .lr = 1e-5,
                                                         .loss_scale = 65536,
                                                         .has_loss_scale = true,
                                                         .git_sha = "unknown",
                                                         .config_sha256 = CONFIG },
                                              .rng = rng,
                                              .n_rng = 4 };
    assert_true(pawl_trainer_state_print(&document, &out));
    assert_true(pawl_buffer_terminate(&out));
    assert_string_equal(out.data, "{\n  \"step\": 7,\n  \"tokens_seen\": 0,\n  \"data_cursor\": {\n    \"shard\": 0,\n"
                                  "    \"offset\": 0\n  },\n  \"rng\": {\n    \"pcg_state\": \"0000000000000000\",\n"
                                  "    \"pcg_inc\": \"0000000000000001\",\n    \"a_state\": \"0000000000000004\",\n"
                                  "    \"\xc3\x89_inc\": \"0000000000000003\"\n  },\n  \"lr\": 1e-05,\n"
                                  "  \"config_sha256\": \"" CONFIG "\",\n  \"git_sha\": \"unknown\",\n"
                                  "  \"loss_scale\": 65536.0\n}\n");
    pawl_buffer_release(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read),        cmocka_unit_test(what_is_allowed),
        cmocka_unit_test(every_rule_has_its_message), cmocka_unit_test(texts_that_are_no_json),
        cmocka_unit_test(the_print_is_canonical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
