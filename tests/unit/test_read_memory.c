/*
 * Goal: whichever allocation fails while a checkpoint is found, opened, listed or restored, the answer is PAWL_NO_MEMORY, or what it is with memory: never a step that
 * was passed over, never a fresh start; nothing leaks (the sanitizer build sees to that), numbers stay. Method: the linker hands the
 * library's malloc, calloc and realloc to these; the n-th answers NULL, for every n.
 */
#include "unit/os_fixture.h"

#include "base/str.h"
#include "pawl/ckpt.h"
#include "pawl/run.h"
#include "unit/checkpoint_golden.h"
#include "unit/failing_memory.h"

/* Call with the n-th allocation failing, n from 0 until none fails any more. */
static void
try_all(enum pawl_status (*call)(struct pawl_error *err), enum pawl_status without_failure)
{
    for (long n = 0;; n++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        has_failed = false;
        until_failure = n;
        enum pawl_status st = call(&err);
        until_failure = -1;
        if (!has_failed) {
            assert_int_equal(st, without_failure);
            assert_true(n > 50);
            return;
        }
        /* the path of a message that nobody gets to see may fail, and then the answer is the usual one */
        if (st != PAWL_NO_MEMORY && st != without_failure)
            fail_msg("allocation %ld: %s: %s", n, pawl_status_name(st), err.message);
    }
}

static const char *path;

static enum pawl_status
open_newest(struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    enum pawl_status st = pawl_ckpt_open_newest(pawl_str_z(path), NULL, &ckpt, &report, err);
    pawl_report_free(report);
    pawl_ckpt_close(ckpt);
    return st;
}

static enum pawl_status
open_path(struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = NULL;
    enum pawl_status st = pawl_ckpt_open(pawl_str_z(path), NULL, &ckpt, NULL, err);
    pawl_ckpt_close(ckpt);
    return st;
}

static enum pawl_status
list(struct pawl_error *err)
{
    struct pawl_report *report = NULL;
    char latest[32];
    enum pawl_status st = pawl_ckpt_list(pawl_str_z(path), PAWL_TRUST_FULL, &report, latest, err);
    pawl_report_free(report);
    return st;
}

static void
finding_and_listing(void **state)
{
    (void)state;
    static const struct {
        const char *side, *name;
        enum pawl_status st;
    } CASES[] = { { "good", "sharded", PAWL_OK },      { "good", "opaque-states", PAWL_OK },
                  { "good", "other-writer", PAWL_OK }, { "bad", "load-third", PAWL_OK },
                  { "bad", "index-lacks", PAWL_OK },   { "bad", "load-none", PAWL_NONE_COMPLETE } };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char root[256];
        golden_setup(CASES[i].side, CASES[i].name);
        (void)snprintf(root, sizeof root, "%s/root", CASES[i].name);
        path = root;
        try_all(open_newest, CASES[i].st);
        try_all(open_path, CASES[i].st);
        try_all(list, PAWL_OK);
        golden_remove(CASES[i].name);
    }
}

/* ---- restoring ---- */

static struct {
    struct pawl_run *run;
    struct pawl_state *state;
    float w[4], m[4];
    double lr, best;
    char bytes[4];
    struct pawl_pcg32 rng;
} world;

static enum pawl_status
restore(struct pawl_error *err)
{
    int64_t step = -1;
    world.lr = world.best = -1;
    enum pawl_status st = pawl_run_restore(world.run, world.state, &step, NULL, err);
    assert_true(st == PAWL_OK ? world.lr == 0.5 && world.best == 2 && step == 1
                              : world.lr == -1 && world.best == -1 && step == -1);
    return st;
}

static enum pawl_status
restore_mismatched(struct pawl_error *err)
{
    struct pawl_report *report = NULL;
    enum pawl_status st = pawl_run_restore(world.run, world.state, NULL, &report, err);
    pawl_report_free(report);
    return st;
}

static void
must(enum pawl_status st)
{
    assert_int_equal(st, PAWL_OK);
}

static void
restoring(void **state)
{
    (void)state;
    world.lr = 0.5;
    world.best = 2;
    pawl_pcg32_seed(&world.rng, 1, 54);
    must(pawl_state_new(&world.state, NULL));
    must(pawl_state_tensor(world.state, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, world.w, 4), NULL));
    must(pawl_state_tensor(world.state, &PAWL_TENSOR(PAWL_MODEL, "tied", PAWL_F32, world.w, 4), NULL));
    must(pawl_state_tensor(world.state, &PAWL_TENSOR(PAWL_OPTIMIZER, "w.m", PAWL_F32, world.m, 4), NULL));
    must(pawl_state_optimizer(world.state, "sgd", NULL));
    must(pawl_state_number(world.state, PAWL_OPTIMIZER, "lr", PAWL_F64, &world.lr, NULL));
    must(pawl_state_number(world.state, PAWL_EXTRA, "best", PAWL_F64, &world.best, NULL));
    must(pawl_state_opaque(world.state, "np", "t", world.bytes, 4, NULL));
    must(pawl_state_rng(world.state, NULL, &world.rng, NULL));
    must(pawl_run_open_z("run", NULL, &world.run, NULL));
    must(pawl_run_save(world.run, world.state, 1, NULL, NULL));
    try_all(restore, PAWL_OK);
    /* with a step that is passed over there is more to do after the reading */
    must(pawl_run_save(world.run, world.state, 2, NULL, NULL));
    host_put("run/step-000002/trainer_state.json", "cut");
    try_all(restore, PAWL_OK);
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "more.%d", i);
        must(pawl_state_tensor(world.state, &PAWL_TENSOR(PAWL_MODEL, name, PAWL_F32, world.m, 1), NULL));
    }
    try_all(restore_mismatched, PAWL_MISMATCH);
    must(pawl_run_close(world.run, NULL));
    pawl_state_free(world.state);
}

/* ---- lazily ---- */

/* Open, touch every tensor of the model, and verify the rest. */
static enum pawl_status
open_touch_and_verify(struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    const void *data;
    size_t n = 0;
    enum pawl_status st =
        pawl_ckpt_open(pawl_str_z("lazy/step-000001"), &PAWL_CKPT_OPTIONS(.trust = PAWL_TRUST_LAZY), &ckpt, NULL, err);
    const struct pawl_tensor_info *tensors = st == PAWL_OK ? pawl_model_tensors(pawl_ckpt_model(ckpt), &n) : NULL;
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = pawl_model_map(pawl_ckpt_model(ckpt), &tensors[i], &data, NULL, err);
    if (st == PAWL_OK)
        st = pawl_ckpt_verify(ckpt, &report, err);
    pawl_report_free(report);
    pawl_ckpt_close(ckpt);
    return st;
}

/* Damaged sums of tensors are told by a full look at the step. */
static enum pawl_status
look_at_all(struct pawl_error *err)
{
    struct pawl_report *report = NULL;
    enum pawl_status st = pawl_verify(PAWL_STR("lazy/step-000001"), NULL, &report, err);
    pawl_report_free(report);
    return st;
}

static void
opening_lazily(void **state)
{
    (void)state;
    for (int with_sums = 0; with_sums < 2; with_sums++) {
        struct pawl_state *lazy = NULL;
        struct pawl_run *run = NULL;
        static float w[1000], m[1000];
        must(pawl_state_new(&lazy, NULL));
        must(pawl_state_tensor(lazy, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 1000), NULL));
        must(pawl_state_tensor(lazy, &PAWL_TENSOR(PAWL_OPTIMIZER, "w.m", PAWL_F32, m, 1000), NULL));
        must(pawl_state_file(lazy, PAWL_STR("note.txt"), "a note", 6, NULL));
        must(pawl_run_open_z("lazy", &PAWL_RUN_OPTIONS(.write_sums = with_sums != 0), &run, NULL));
        must(pawl_run_save(run, lazy, 1, NULL, NULL));
        must(pawl_run_close(run, NULL));
        try_all(open_touch_and_verify, PAWL_OK);
        FILE *file = fopen("lazy/step-000001/optimizer.safetensors", "r+b");
        assert_non_null(file);
        assert_int_equal(fseek(file, -1, SEEK_END), 0);
        assert_int_equal(fputc(1, file), 1);
        assert_int_equal(fclose(file), 0);
        try_all(open_touch_and_verify, PAWL_INCOMPLETE);
        try_all(look_at_all, PAWL_OK);
        pawl_state_free(lazy);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opening_lazily, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(finding_and_listing, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(restoring, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
