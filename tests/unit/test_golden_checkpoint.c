/*
 * Goal: every golden root is judged and loaded exactly as its case says, and a step gives back exactly the values that were
 * put in. Method: set up each case in a folder of its own, write down what the library says as the same JSON, and compare the two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include "base/report.h"
#include "checkpoint/examine.h"
#include "checkpoint/find.h"
#include "checkpoint/names.h"
#include "pawl/ckpt.h"
#include "pawl/digest.h"
#include "unit/checkpoint_golden.h"
#include "unit/golden_json.h"

static unsigned failures;

static void
complain(const char *side, const char *name, const char *what)
{
    failures++;
    print_error("%s/%s: %s\n", side, name, what);
}

/* ---- writing down ---- */

static void
key(struct pawl_json_writer *w, const char *name)
{
    pawl_json_write_key(w, pawl_str_z(name));
}

static void
string(struct pawl_json_writer *w, const char *name, struct pawl_str text)
{
    key(w, name);
    pawl_json_write_string(w, text);
}

static void
write_reasons(struct pawl_json_writer *w, const struct pawl_verdict *verdict)
{
    key(w, "reasons");
    pawl_json_write_array(w);
    for (size_t i = 0; i < verdict->n_problems; i++) {
        pawl_json_write_object(w);
        string(w, "code", pawl_str_z(verdict->problems[i].code));
        key(w, "file");
        if (verdict->problems[i].file.data == NULL)
            pawl_json_write_null(w);
        else
            pawl_json_write_string(w, verdict->problems[i].file);
        pawl_json_write_object_end(w);
    }
    pawl_json_write_array_end(w);
}

static void
write_load(struct pawl_json_writer *w, const char *root)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    struct pawl_report *list = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    char latest[32];
    size_t n = 0;

    enum pawl_status st = pawl_ckpt_open_newest(pawl_str_z(root), NULL, &ckpt, &report, &err);
    assert_int_equal(pawl_ckpt_list(pawl_str_z(root), PAWL_TRUST_SIZE_ONLY, &list, latest, &err), PAWL_OK);
    pawl_report_free(list);
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    bool is_unusable = n > 0 && strcmp(verdicts[0].name, "LATEST") == 0;
    const char *state = is_unusable         ? latest[0] == '\0' ? "malformed" : "dangling"
                        : latest[0] == '\0' ? "missing"
                                            : "ok";
    string(w, "latest", pawl_str_z(state));
    string(w, "result",
           pawl_str_z(st == PAWL_OK              ? "loaded"
                      : st == PAWL_NOT_FOUND     ? "not-found"
                      : st == PAWL_NONE_COMPLETE ? "none-complete"
                                                 : err.message));
    key(w, "load");
    if (st == PAWL_OK) {
        pawl_json_write_object(w);
        string(w, "name", pawl_ckpt_name(ckpt));
        key(w, "step");
        pawl_json_write_i64(w, pawl_ckpt_step(ckpt));
        pawl_json_write_object_end(w);
    } else {
        pawl_json_write_null(w);
    }
    key(w, "skipped");
    pawl_json_write_array(w);
    for (size_t i = 0; i < n; i++) {
        pawl_json_write_object(w);
        string(w, "name", pawl_str_z(verdicts[i].name));
        write_reasons(w, &verdicts[i]);
        pawl_json_write_object_end(w);
    }
    pawl_json_write_array_end(w);
    key(w, "ignored");
    pawl_json_write_array(w);
    const struct pawl_str *ignored = pawl_report_names(report, PAWL_NAMES_IGNORED, &n);
    for (size_t i = 0; i < n; i++)
        pawl_json_write_string(w, ignored[i]);
    pawl_json_write_array_end(w);
    pawl_report_free(report);
    pawl_ckpt_close(ckpt);
}

/* The verdict by examining with hashes put off, then taken: it must be the same. */
static void
check_deferred(const char *side, const char *name, const struct pawl_dir *root, const struct pawl_verdict *verdict,
               enum pawl_profile profile)
{
    const struct pawl_step_options options = { .profile = profile, .defer_hash = true };
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    bool all_right;
    size_t n = 0;
    assert_int_equal(pawl_step_examine(&step, root, verdict->name, &options, report, NULL), PAWL_OK);
    if (step.has_model)
        assert_int_equal(pawl_step_hash_set(&step, &step.model, report, &all_right, NULL), PAWL_OK);
    if (step.has_optimizer)
        assert_int_equal(pawl_step_hash_set(&step, &step.optimizer, report, &all_right, NULL), PAWL_OK);
    pawl_report_end_verdict(report);
    const struct pawl_verdict *other = pawl_report_verdicts(report, &n);
    bool is_same = other->n_problems == verdict->n_problems;
    for (size_t i = 0; i < other->n_problems && is_same; i++)
        is_same = strcmp(other->problems[i].code, verdict->problems[i].code) == 0 &&
                  pawl_str_equal(other->problems[i].file, verdict->problems[i].file);
    if (!is_same)
        complain(side, name, "the verdict is another one when hashing is put off");
    pawl_step_release(&step);
    pawl_report_free(report);
}

static void
write_step(struct pawl_json_writer *w, const struct pawl_dir *root, const struct pawl_verdict *verdict)
{
    const struct pawl_step_options weights = { .weights_only = true };
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();

    pawl_json_write_object(w);
    string(w, "name", pawl_str_z(verdict->name));
    key(w, "complete");
    pawl_json_write_bool(w, verdict->is_ok);
    write_reasons(w, verdict);
    assert_int_equal(pawl_step_examine(&step, root, verdict->name, &weights, report, NULL), PAWL_OK);
    pawl_report_end_verdict(report);
    key(w, "weights");
    pawl_json_write_bool(w, step.has_weights);
    pawl_step_release(&step);
    pawl_report_free(report);
    if (verdict->is_ok) {
        char path[512];
        struct pawl_ckpt *ckpt = NULL;
        (void)snprintf(path, sizeof path, "%s/%s", root->path, verdict->name);
        assert_int_equal(pawl_ckpt_open(pawl_str_z(path), NULL, &ckpt, NULL, NULL), PAWL_OK);
        struct pawl_str state = pawl_ckpt_optimizer_state(ckpt);
        key(w, "optimizer_scalars");
        if (state.data == NULL)
            pawl_json_write_null(w);
        else
            pawl_json_write_raw(w, state);
        pawl_ckpt_close(ckpt);
    }
    pawl_json_write_object_end(w);
}

static void
write_steps(struct pawl_json_writer *w, const char *side, const char *name, const char *root_path,
            enum pawl_profile profile)
{
    const struct pawl_step_options options = { .profile = profile };
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_report *report = pawl_report_new();
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n = 0;

    assert_int_equal(pawl_dir_open_path(&root, pawl_os_posix(), root_path, &err), PAWL_OK);
    assert_int_equal(pawl_find_all(&root, &options, report, NULL, &err), PAWL_OK);
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    key(w, "steps");
    pawl_json_write_array(w);
    for (size_t i = 0; i < n; i++) {
        write_step(w, &root, &verdicts[i]);
        check_deferred(side, name, &root, &verdicts[i], profile);
    }
    pawl_json_write_array_end(w);
    pawl_report_free(report);
    pawl_dir_release(&root);
}

static enum pawl_profile
profile_of(const struct pawl_json_value *object)
{
    return pawl_json_member(object, PAWL_STR("profile"))->type == PAWL_JSON_NULL ? PAWL_PROFILE_NONE
                                                                                 : PAWL_PROFILE_TINYLLM;
}

/* Each under its own path and profile. */
static void
write_verify(struct pawl_json_writer *w, const char *root_path, const struct pawl_json_value *verify)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&root, pawl_os_posix(), root_path, NULL), PAWL_OK);
    key(w, "verify");
    pawl_json_write_array(w);
    for (size_t i = 0; i < verify->n; i++) {
        const struct pawl_json_value *item = &verify->first[i];
        const struct pawl_step_options options = { .profile = profile_of(item) };
        struct pawl_str path = pawl_json_member(item, PAWL_STR("path"))->text;
        struct pawl_report *report = pawl_report_new();
        struct pawl_step step = { 0 };
        size_t n = 0;
        char *name = pawl_str_dup(path);
        assert_int_equal(pawl_step_examine(&step, &root, name, &options, report, NULL), PAWL_OK);
        pawl_report_end_verdict(report);
        pawl_json_write_object(w);
        string(w, "path", path);
        key(w, "profile");
        pawl_json_write_value(w, pawl_json_member(item, PAWL_STR("profile")), false);
        write_reasons(w, pawl_report_verdicts(report, &n));
        pawl_json_write_object_end(w);
        free(name);
        pawl_step_release(&step);
        pawl_report_free(report);
    }
    pawl_json_write_array_end(w);
    pawl_dir_release(&root);
}

static void
check_verdicts(const char *side, const char *name)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_json_writer w;
    char path[4096];
    char where[1024] = "";

    (void)snprintf(path, sizeof path, "%s/%s/%s/expected.json", GOLDEN_CHECKPOINTS, side, name);
    const struct pawl_json_value *expected = golden_read(&arena, path);
    assert_non_null(expected);
    (void)snprintf(path, sizeof path, "%s/root", name);
    pawl_json_write_begin(&w, &text, PAWL_JSON_COMPACT, PAWL_JSON_RAW);
    pawl_json_write_object(&w);
    key(&w, "what");
    pawl_json_write_value(&w, pawl_json_member(expected, PAWL_STR("what")), false);
    key(&w, "profile");
    pawl_json_write_value(&w, pawl_json_member(expected, PAWL_STR("profile")), false);
    write_load(&w, path);
    write_steps(&w, side, name, path, profile_of(expected));
    const struct pawl_json_value *verify = pawl_json_member(expected, PAWL_STR("verify"));
    if (verify != NULL)
        write_verify(&w, path, verify);
    pawl_json_write_object_end(&w);
    if (!golden_equal(expected, golden_parse(&arena, &text), "reasons", where, sizeof where)) {
        complain(side, name, where);
        print_error("    found: %.*s\n", (int)(text.len < 3000 ? text.len : 3000), text.data);
    }
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
}

/* ---- values ---- */

static void
write_sha256(struct pawl_json_writer *w, const void *data, size_t bytes)
{
    unsigned char digest[32];
    char hex[65];
    assert_int_equal(pawl_sha256_of(data, bytes, digest, NULL), PAWL_OK);
    pawl_sha256_print(digest, hex);
    string(w, "sha256", pawl_str_make(hex, 64));
}

static void
write_tensors(struct pawl_json_writer *w, const char *name, const struct pawl_model *model)
{
    size_t n = 0;
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    key(w, name);
    pawl_json_write_array(w);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = (size_t)(tensors[i].end - tensors[i].begin);
        void *data = malloc(bytes + 1);
        assert_int_equal(pawl_model_read(model, &tensors[i], tensors[i].dtype, data, bytes, NULL), PAWL_OK);
        pawl_json_write_object(w);
        string(w, "name", tensors[i].name);
        string(w, "dtype", pawl_str_z(pawl_dtype_name(tensors[i].dtype)));
        key(w, "shape");
        pawl_json_write_array(w);
        for (size_t k = 0; k < tensors[i].rank; k++)
            pawl_json_write_u64(w, tensors[i].shape[k]);
        pawl_json_write_array_end(w);
        write_sha256(w, data, bytes);
        pawl_json_write_object_end(w);
        free(data);
    }
    pawl_json_write_array_end(w);
}

static void
write_pairs(struct pawl_json_writer *w, const char *name, const struct pawl_pair *pairs, size_t n, bool with_aliases)
{
    key(w, name);
    pawl_json_write_object(w);
    for (size_t i = 0; i < n; i++) {
        if (!with_aliases && pawl_str_starts(pairs[i].key, PAWL_STR("pawl.alias.")))
            continue;
        pawl_json_write_key(w, pairs[i].key);
        pawl_json_write_string(w, pairs[i].value);
    }
    pawl_json_write_object_end(w);
}

static void
write_trainer_state(struct pawl_json_writer *w, const struct pawl_ckpt *ckpt)
{
    const struct pawl_trainer_state *trainer = pawl_ckpt_trainer_state(ckpt);
    size_t n = 0;
    key(w, "trainer_state");
    pawl_json_write_object(w);
    key(w, "step");
    pawl_json_write_i64(w, trainer->step);
    key(w, "tokens_seen");
    pawl_json_write_i64(w, trainer->tokens_seen);
    key(w, "data_cursor");
    pawl_json_write_object(w);
    key(w, "shard");
    pawl_json_write_i64(w, trainer->cursor_shard);
    key(w, "offset");
    pawl_json_write_i64(w, trainer->cursor_offset);
    pawl_json_write_object_end(w);
    const struct pawl_pair *rng = pawl_ckpt_rng(ckpt, &n);
    write_pairs(w, "rng", rng, n, true);
    key(w, "lr");
    pawl_json_write_f64(w, trainer->lr);
    string(w, "config_sha256", pawl_str_z(trainer->config_sha256));
    string(w, "git_sha", pawl_str_z(trainer->git_sha));
    if (trainer->has_loss_scale) {
        key(w, "loss_scale");
        pawl_json_write_f64(w, trainer->loss_scale);
    }
    pawl_json_write_object_end(w);
}

static void
write_extra(struct pawl_json_writer *w, const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_named_number *numbers = pawl_ckpt_numbers(ckpt, &n);
    key(w, "numbers");
    pawl_json_write_object(w);
    for (size_t i = 0; i < n; i++) {
        pawl_json_write_key(w, numbers[i].name);
        if (numbers[i].is_integer)
            pawl_json_write_i64(w, numbers[i].integer);
        else if (isfinite(numbers[i].real))
            pawl_json_write_f64(w, numbers[i].real);
        else
            pawl_json_write_string(w, isnan(numbers[i].real) ? PAWL_STR("NaN")
                                      : numbers[i].real > 0  ? PAWL_STR("Infinity")
                                                             : PAWL_STR("-Infinity"));
    }
    pawl_json_write_object_end(w);
    const struct pawl_named_opaque *opaques = pawl_ckpt_opaques(ckpt, &n);
    key(w, "states");
    pawl_json_write_object(w);
    for (size_t i = 0; i < n; i++) {
        pawl_json_write_key(w, opaques[i].name);
        pawl_json_write_object(w);
        string(w, "type", opaques[i].type);
        key(w, "bytes");
        pawl_json_write_u64(w, opaques[i].bytes);
        write_sha256(w, opaques[i].data, opaques[i].bytes);
        pawl_json_write_object_end(w);
    }
    pawl_json_write_object_end(w);
}

static void
write_files(struct pawl_json_writer *w, const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_str *files = pawl_ckpt_files(ckpt, &n);
    key(w, "files");
    pawl_json_write_array(w);
    for (size_t i = 0; i < n; i++) {
        void *data = NULL;
        size_t bytes = 0;
        assert_int_equal(pawl_ckpt_file(ckpt, files[i], &data, &bytes, NULL), PAWL_OK);
        pawl_json_write_object(w);
        string(w, "name", files[i]);
        key(w, "bytes");
        pawl_json_write_u64(w, bytes);
        write_sha256(w, data, bytes);
        pawl_json_write_object_end(w);
        pawl_free(data);
    }
    pawl_json_write_array_end(w);
}

static void
write_metrics(struct pawl_json_writer *w, const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_metric *metrics = pawl_ckpt_metrics(ckpt, &n);
    key(w, "metrics");
    pawl_json_write_object(w);
    for (size_t i = 0; i < n; i++) {
        pawl_json_write_key(w, metrics[i].name);
        pawl_json_write_f64(w, metrics[i].value);
    }
    pawl_json_write_object_end(w);
}

static void
write_values(struct pawl_json_writer *w, const char *path)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n = 0;

    if (pawl_ckpt_open(pawl_str_z(path), NULL, &ckpt, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    const struct pawl_model *model = pawl_ckpt_model(ckpt);
    const struct pawl_model *optimizer = pawl_ckpt_optimizer(ckpt);
    pawl_json_write_object(w);
    write_tensors(w, "model", model);
    const struct pawl_pair *pairs = pawl_model_metadata(model, &n, NULL);
    write_pairs(w, "metadata", pairs, n, false);
    pairs = pawl_model_aliases(model, &n);
    write_pairs(w, "aliases", pairs, n, true);
    key(w, "optimizer");
    pawl_json_write_object(w);
    string(w, "name", pawl_ckpt_optimizer_name(ckpt));
    key(w, "step");
    pawl_json_write_i64(w, pawl_ckpt_step(ckpt));
    struct pawl_str state = pawl_ckpt_optimizer_state(ckpt);
    key(w, "state");
    if (state.data == NULL)
        pawl_json_write_null(w);
    else
        pawl_json_write_raw(w, state);
    write_tensors(w, "tensors", optimizer);
    pawl_json_write_object_end(w);
    write_trainer_state(w, ckpt);
    write_extra(w, ckpt);
    write_metrics(w, ckpt);
    write_files(w, ckpt);
    pawl_json_write_object_end(w);
    pawl_ckpt_close(ckpt);
}

static void
check_values(const char *side, const char *name)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s/%s/values.json", GOLDEN_CHECKPOINTS, side, name);
    const struct pawl_json_value *expected = golden_read(&arena, path);
    for (size_t i = 0; expected != NULL && i < expected->n; i++) {
        struct pawl_buffer text = PAWL_BUFFER_INIT;
        struct pawl_json_writer w;
        char where[1024] = "";
        (void)snprintf(path, sizeof path, "%s/root/%.*s", name, PAWL_ARG(expected->first[i].key));
        pawl_json_write_begin(&w, &text, PAWL_JSON_COMPACT, PAWL_JSON_RAW);
        write_values(&w, path);
        if (!golden_equal(&expected->first[i], golden_parse(&arena, &text), NULL, where, sizeof where))
            complain(side, name, where);
        pawl_buffer_release(&text);
    }
    pawl_arena_release(&arena);
}

/* ---- */

static void
check_side(const char *side, size_t at_least)
{
    struct pawl_dir_list list = { NULL, 0 };
    golden_cases(side, &list);
    assert_true(list.n >= at_least); /* the folder is whole */
    failures = 0;
    for (size_t i = 0; i < list.n; i++) {
        golden_setup(side, list.entries[i].name);
        check_verdicts(side, list.entries[i].name);
        check_values(side, list.entries[i].name);
        golden_remove(list.entries[i].name);
    }
    print_message("%s: %zu cases, %u wrong\n", side, list.n, failures);
    pawl_dir_list_release(&list);
    assert_int_equal(failures, 0);
}

static void
good_roots_load(void **state)
{
    (void)state;
    check_side("good", 52);
}

static void
bad_roots_are_refused_with_every_reason(void **state)
{
    (void)state;
    check_side("bad", 177);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_roots_load),
        cmocka_unit_test(bad_roots_are_refused_with_every_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
