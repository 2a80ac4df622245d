/* checkpoint/ckpt.c: the public calls over real folders: what a path means, what an open checkpoint gives, arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include "base/report.h"
#include "base/str.h"
#include "pawl/ckpt.h"
#include "pawl/model.h"
#include "unit/checkpoint_golden.h"
#include "unit/os_fixture.h"

static struct pawl_ckpt *
must_open(const char *path)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_ckpt_open(pawl_str_z(path), NULL, &ckpt, NULL, &err) != PAWL_OK)
        fail_msg("%s: %s", path, err.message);
    return ckpt;
}

/* Goal: `--resume DIR` means the same however the path is written. */
static void
paths_of_steps_and_roots(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int64_t step;
        const char *name;
    } CASES[] = {
        { "prev-older/root", 30, "step-000030" },
        { "prev-older/root/", 30, "step-000030" },
        { "./prev-older/../prev-older/root/.", 30, "step-000030" },
        { "prev-older/root/step-000020", 20, "step-000020" },
        { "prev-older/root/step-000020///", 20, "step-000020" },
        { "prev-older/root/step-000010.prev", 10, "step-000010.prev" },
        { "prev-older/root/step-000010", 10, "step-000010.prev" }, /* it is there as .prev alone */
        { "prev-older/copy", 20, "prev-older/copy" },
        { "prev-older/link-to-step", 20, "prev-older/link-to-step" },
        { "prev-older/link-to-root", 30, "step-000030" },
        { "prev-older/link-to-root/step-000020", 20, "step-000020" },
        { "prev-older/step-000099.bad", 30, "step-000099.bad" },
    };
    golden_setup("good", "prev-older");
    golden_shell("cd prev-older && cp -R root/step-000020 copy && cp -R root/step-000030 step-000099.bad && "
                 "ln -s root/step-000020 link-to-step && ln -s root link-to-root");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_ckpt *ckpt = must_open(CASES[i].path);
        assert_int_equal(pawl_ckpt_step(ckpt), CASES[i].step);
        assert_string_equal(pawl_ckpt_name(ckpt).data, CASES[i].name);
        assert_true(pawl_ckpt_is_complete(ckpt));
        /* the path is one that opens the same again */
        struct pawl_ckpt *again = must_open(pawl_ckpt_path(ckpt).data);
        assert_int_equal(pawl_ckpt_step(again), CASES[i].step);
        pawl_ckpt_close(again);
        pawl_ckpt_close(ckpt);
    }
    /* from inside */
    assert_int_equal(chdir("prev-older/root/step-000020"), 0);
    struct pawl_ckpt *ckpt = must_open(".");
    assert_int_equal(pawl_ckpt_step(ckpt), 20);
    pawl_ckpt_close(ckpt);
    assert_int_equal(chdir("../../.."), 0);
    golden_remove("prev-older");
}

static void
paths_that_are_nothing(void **state)
{
    (void)state;
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_report *report = NULL;
    size_t n = 0;
    golden_setup("good", "latest-missing");
    static const struct {
        const char *path;
        enum pawl_status st;
        const char *message;
    } CASES[] = {
        { "latest-missing/nothing", PAWL_NO_FILE, NULL },
        { "latest-missing/nothing/step-000010", PAWL_NO_FILE, NULL },
        { "latest-missing/root/step-000011", PAWL_NO_FILE, "there is no step-000011 in 'latest-missing/root'" },
        { "latest-missing", PAWL_NOT_FOUND, "there is no step directory in 'latest-missing'" },
        { "latest-missing/root/step-000010/model.safetensors", PAWL_NO_FILE, NULL },
        { "", PAWL_ARGUMENT, NULL },
        { "latest-missing/x/step-000077", PAWL_INCOMPLETE,
          "the step is not complete: step-000077: not-a-directory (expected a directory, found a symbolic link)" },
        { "latest-missing/x/step-000078.tmp", PAWL_INCOMPLETE,
          "the step is not complete: step-000078.tmp: missing-file MANIFEST.json (there is no manifest: the directory "
          "was "
          "never finished, or is cut)" },
    };
    golden_shell(
        "cd latest-missing && mkdir x && cd x && ln -s ../root/step-000010 step-000077 && mkdir step-000078.tmp");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        enum pawl_status st = pawl_ckpt_open(pawl_str_z(CASES[i].path), NULL, &ckpt, &report, &err);
        if (st != CASES[i].st || (CASES[i].message != NULL && strcmp(err.message, CASES[i].message) != 0))
            fail_msg("%s: %s: %s", CASES[i].path, pawl_status_name(st), err.message);
        assert_null(ckpt);
        (void)pawl_report_verdicts(report, &n);
        assert_int_equal(n, st == PAWL_INCOMPLETE);
        pawl_report_free(report);
    }
    golden_remove("latest-missing");
}

static void
an_open_checkpoint_gives_what_is_in_it(void **state)
{
    (void)state;
    golden_setup("good", "adamw-full");
    struct pawl_ckpt *ckpt = must_open("adamw-full/root");
    size_t n = 0;
    void *data = NULL;
    size_t bytes = 0;
    struct pawl_error err = PAWL_ERROR_INIT;

    const struct pawl_str *files = pawl_ckpt_files(ckpt, &n);
    assert_int_equal(n, 3);
    assert_string_equal(files[0].data, "config.json");
    assert_string_equal(files[1].data, "generation_config.json");
    assert_string_equal(files[2].data, "tokenizer.json");
    assert_int_equal(pawl_ckpt_file(ckpt, PAWL_STR("tokenizer.json"), &data, &bytes, &err), PAWL_OK);
    assert_int_equal(bytes, 33);
    pawl_free(data);
    /* only what is listed as the caller's */
    assert_int_equal(pawl_ckpt_file(ckpt, PAWL_STR("nothing"), &data, &bytes, &err), PAWL_NO_FILE);
    assert_string_equal(err.message, "step-000500 has no file 'nothing'");
    assert_int_equal(pawl_ckpt_file(ckpt, PAWL_STR("model.safetensors"), &data, &bytes, &err), PAWL_NO_FILE);
    assert_int_equal(pawl_ckpt_file(ckpt, PAWL_STR("MANIFEST.json"), &data, &bytes, &err), PAWL_NO_FILE);
    /* read and checked now: a file that was changed since it was opened is damaged */
    host_put("adamw-full/root/step-000500/config.json", "12345678901234567890123456789012345678901234567890"
                                                        "123456789012345678901234567890123456789012345678");
    assert_int_equal(pawl_ckpt_file(ckpt, PAWL_STR("config.json"), &data, &bytes, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "hash");
    host_put("adamw-full/root/step-000500/config.json", "short");
    assert_int_equal(pawl_ckpt_file(ckpt, PAWL_STR("config.json"), &data, &bytes, &err), PAWL_TRUNCATED);
    assert_string_equal(err.message, "file 'config.json' of step-000500: expected 98 bytes, found 5");

    assert_true(pawl_model_kind(pawl_ckpt_model(ckpt)) == PAWL_KIND_CHECKPOINT);
    assert_non_null(pawl_model_find(pawl_ckpt_optimizer(ckpt), PAWL_STR("model.norm.weight.exp_avg")));
    assert_true(pawl_str_equal(pawl_ckpt_optimizer_name(ckpt), PAWL_STR("adamw")));
    assert_int_equal(pawl_ckpt_trainer_state(ckpt)->tokens_seen, INT64_C(9007199254740993));
    (void)pawl_ckpt_rng(ckpt, &n);
    assert_int_equal(n, 8);
    (void)pawl_ckpt_numbers(ckpt, &n);
    assert_int_equal(n, 0);
    (void)pawl_ckpt_opaques(ckpt, &n);
    assert_int_equal(n, 0);
    pawl_ckpt_close(ckpt);
    pawl_ckpt_close(NULL);
    golden_remove("adamw-full");
}

/* Warnings of the step that is taken are those of the load. */
static void
warnings_of_the_chosen_step_stay(void **state)
{
    (void)state;
    static const struct {
        const char *name, *code, *begin;
    } CASES[] = {
        { "sharded-wrong-total", "total-size", "step-000065: total_size is " },
        { "metrics-malformed", "content", "step-000020: the metrics are not used: " },
    };
    for (size_t i = 0; i < 2; i++) {
        char path[128];
        struct pawl_ckpt *ckpt = NULL;
        struct pawl_report *report = NULL;
        size_t n = 0;
        golden_setup("good", CASES[i].name);
        (void)snprintf(path, sizeof path, "%s/root", CASES[i].name);
        assert_int_equal(pawl_ckpt_open_newest(pawl_str_z(path), NULL, &ckpt, &report, NULL), PAWL_OK);
        const struct pawl_problem *warnings = pawl_report_warnings(report, &n);
        assert_int_equal(n, 1);
        assert_string_equal(warnings[0].code, CASES[i].code);
        assert_int_equal(strncmp(warnings[0].message, CASES[i].begin, strlen(CASES[i].begin)), 0);
        (void)pawl_report_verdicts(report, &n);
        assert_int_equal(n, 0);
        pawl_report_free(report);
        pawl_ckpt_close(ckpt);
        golden_remove(CASES[i].name);
    }
}

/* Goal: a damaged optimizer keeps nobody from the weights, and the result says that the step is not complete. */
static void
weights_alone(void **state)
{
    (void)state;
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n = 0;
    golden_setup("good", "latest-missing");
    golden_shell(
        "cd latest-missing/root && rm step-000030/optimizer.safetensors && echo x > step-000020/model.safetensors");
    const struct pawl_ckpt_options weights = PAWL_CKPT_OPTIONS(.weights_only = 1);
    assert_int_equal(pawl_ckpt_open_newest(PAWL_STR("latest-missing/root"), &weights, &ckpt, &report, &err), PAWL_OK);
    assert_int_equal(pawl_ckpt_step(ckpt), 30);
    assert_false(pawl_ckpt_is_complete(ckpt));
    assert_null(pawl_ckpt_optimizer(ckpt));
    assert_true(pawl_str_equal(pawl_ckpt_optimizer_name(ckpt), PAWL_STR("none")));
    assert_null(pawl_ckpt_optimizer_state(ckpt).data);
    assert_non_null(pawl_ckpt_trainer_state(ckpt));
    (void)pawl_model_tensors(pawl_ckpt_model(ckpt), &n);
    assert_true(n > 0);
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 1); /* what is wrong with the one that was taken */
    assert_string_equal(verdicts[0].name, "step-000030");
    assert_string_equal(verdicts[0].problems[0].code, "missing-file");
    pawl_report_free(report);
    pawl_ckpt_close(ckpt);

    /* weights that are damaged can't be had */
    assert_int_equal(pawl_ckpt_open_step(PAWL_STR("latest-missing/root"), 20, &weights, &ckpt, &report, &err),
                     PAWL_INCOMPLETE);
    pawl_report_free(report);
    /* a trainer state that is no such thing is not given */
    golden_shell("echo '{' > latest-missing/root/step-000030/trainer_state.json");
    assert_int_equal(pawl_ckpt_open_newest(PAWL_STR("latest-missing/root"), &weights, &ckpt, NULL, &err), PAWL_OK);
    assert_null(pawl_ckpt_trainer_state(ckpt));
    assert_int_equal(pawl_ckpt_step(ckpt), 30);
    pawl_ckpt_close(ckpt);
    golden_remove("latest-missing");
}

static void
a_root_is_listed_ascending(void **state)
{
    (void)state;
    static const char *const NAMES[] = { "step-000010.prev", "step-000020", "step-000030", "step-000030.prev",
                                         "step-1000000" };
    struct pawl_report *report = NULL;
    char latest[32];
    size_t n = 0;
    golden_setup("good", "prev-older");
    golden_shell("cd prev-older/root && mkdir step-1000000 step-000030.prev step-000040.tmp step-000050.bad");
    assert_int_equal(pawl_ckpt_list(PAWL_STR("prev-older/root"), PAWL_TRUST_FULL, &report, latest, NULL), PAWL_OK);
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(verdicts[i].name, NAMES[i]);
        assert_int_equal(verdicts[i].is_ok, i < 3);
        assert_int_equal(verdicts[i].kind, PAWL_KIND_CHECKPOINT);
        assert_int_equal(verdicts[i].files, i < 3 ? 3 : 0);
    }
    assert_int_equal(verdicts[1].bytes, verdicts[2].bytes);
    assert_true(verdicts[1].bytes > 500);
    assert_string_equal(latest, "step-000030");
    pawl_report_free(report);
    host_put("prev-older/root/LATEST", "nonsense");
    assert_int_equal(pawl_ckpt_list(PAWL_STR("prev-older/root"), PAWL_TRUST_SIZE_ONLY, NULL, latest, NULL), PAWL_OK);
    assert_string_equal(latest, "");
    assert_int_equal(pawl_ckpt_list(PAWL_STR("prev-older/none"), PAWL_TRUST_FULL, NULL, NULL, NULL), PAWL_NO_FILE);
    golden_remove("prev-older");
}

static void
arguments(void **state)
{
    (void)state;
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(0);
    options.size = 3;
    assert_int_equal(pawl_ckpt_open_newest(PAWL_STR("."), &options, &ckpt, NULL, &err), PAWL_ARGUMENT);
    options = PAWL_CKPT_OPTIONS(.trust = (enum pawl_trust)7);
    assert_int_equal(pawl_ckpt_open_newest(PAWL_STR("."), &options, &ckpt, NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_ckpt_open_step(PAWL_STR("."), -1, NULL, &ckpt, NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_ckpt_open_newest(PAWL_STR("a\0b"), NULL, &ckpt, NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_ckpt_open_newest(PAWL_STR("."), NULL, NULL, NULL, &err), PAWL_ARGUMENT);
    assert_null(ckpt);
    pawl_free(NULL);
}

/* Descriptors and memory (by the sanitizers) are given back, whatever comes of an opening. */
static void
nothing_stays_open(void **state)
{
    (void)state;
    int before = count_descriptors();
    struct pawl_ckpt *ckpt = NULL;
    golden_setup("bad", "load-third");
    assert_int_equal(pawl_ckpt_open_newest(PAWL_STR("load-third/root"), NULL, &ckpt, NULL, NULL), PAWL_OK);
    assert_true(count_descriptors() > before);
    pawl_ckpt_close(ckpt);
    assert_int_equal(pawl_ckpt_open_step(PAWL_STR("load-third/root"), 30, NULL, &ckpt, NULL, NULL), PAWL_INCOMPLETE);
    assert_int_equal(count_descriptors(), before);
    golden_remove("load-third");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(paths_of_steps_and_roots, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(paths_that_are_nothing, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(an_open_checkpoint_gives_what_is_in_it, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(warnings_of_the_chosen_step_stay, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(weights_alone, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(a_root_is_listed_ascending, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(arguments, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(nothing_stays_open, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
