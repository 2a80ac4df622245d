/*
 * Goal: whichever allocation fails, of describing, opening, saving and pruning, the call answers PAWL_NO_MEMORY (or had passed its commit), the
 * root is whole, nothing leaks (the leak checker of the sanitizer build sees to that), and the next call works. Method: the linker
 * hands the library's malloc, calloc and realloc to these; the n-th answers NULL, for every n.
 */
#include "unit/save_support.h"

#include "checkpoint/parts.h"
#include "unit/os_fixture.h"
#include "unit/failing_memory.h"

static void
fail_at(long n)
{
    has_failed = false;
    until_failure = n;
}

/* The host without its syncs: hundreds of saves are only looked at from here. */
static int
sync_no_file(void *context, struct pawl_os_file *file)
{
    (void)context;
    (void)file;
    return 0;
}

static int
sync_no_dir(void *context, struct pawl_os_dir *dir)
{
    (void)context;
    (void)dir;
    return 0;
}

static const struct pawl_os *
quick_os(void)
{
    static struct pawl_os os;
    os = *pawl_os_posix();
    os.file_sync = sync_no_file;
    os.dir_sync = sync_no_dir;
    return &os;
}

/* ---- describing ---- */

static enum pawl_status
describe_all(struct pawl_state *state, struct pawl_error *err)
{
    static float data[40][4];
    static double number;
    static struct pawl_pcg32 rngs[20];
    const int64_t strides[] = { 2, 1 };
    const uint64_t shape[] = { 2, 2 };
    enum pawl_status st = PAWL_OK;
    for (unsigned i = 0; i < 40 && st == PAWL_OK; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = PAWL_MODEL,
                                      .dtype = PAWL_F32,
                                      .name = pawl_str_z(name),
                                      .rank = 2,
                                      .shape = shape,
                                      .strides = strides,
                                      .data = data[i] };
        st = pawl_state_tensor(state, &tensor, err);
        if (st == PAWL_OK)
            st = pawl_state_number(state, PAWL_EXTRA, name, PAWL_F64, &number, err);
        if (st == PAWL_OK && i < 20)
            st = pawl_state_rng(state, name, &rngs[i], err);
        if (st == PAWL_OK)
            st = pawl_state_opaque(state, name, "type", &number, 8, err);
        if (st == PAWL_OK)
            st = pawl_state_metadata(state, pawl_str_z(name), PAWL_STR("value"), err);
        if (st == PAWL_OK)
            st = pawl_state_file(state, pawl_str_z(name), "bytes", 5, err);
    }
    if (st == PAWL_OK)
        st = pawl_state_file(state, PAWL_STR("n3"), "others", 6, err);
    if (st == PAWL_OK)
        st = pawl_state_optimizer(state, "adamw", err);
    if (st == PAWL_OK)
        st = pawl_state_optimizer_json(state, PAWL_STR("{\"a\": [1, 2, {\"b\": null}]}"), err);
    if (st == PAWL_OK)
        st = pawl_state_text(state, "git_sha", PAWL_STR("unknown"), err);
    return st;
}

static void
describing_runs_out_of_memory(void **unused)
{
    (void)unused;
    unsigned failures = 0;
    for (long n = 0;; n++) {
        struct pawl_state *state = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        fail_at(n);
        enum pawl_status st = pawl_state_new(&state, &err);
        if (st == PAWL_OK)
            st = describe_all(state, &err);
        until_failure = -1;
        pawl_state_free(state);
        if (!has_failed) {
            assert_int_equal(st, PAWL_OK);
            break;
        }
        failures++;
        assert_int_equal(st, PAWL_NO_MEMORY);
        assert_int_equal(err.status, PAWL_NO_MEMORY);
    }
    assert_true(failures > 50);
}

/* ---- saving ---- */

static void
opening_runs_out_of_memory(void **unused)
{
    (void)unused;
    unsigned failures = 0;
    for (long n = 0;; n++) {
        struct pawl_run *run = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        fail_at(n);
        enum pawl_status st = pawl_run_open_os(quick_os(), PAWL_STR(ROOT), NULL, &run, &err);
        until_failure = -1;
        if (st == PAWL_OK) { /* directories above the root are synced as far as they can be opened */
            close_run(run);
            if (!has_failed)
                break;
            continue;
        }
        failures++;
        assert_int_equal(st, PAWL_NO_MEMORY);
        assert_null(run);
        close_run(open_run(quick_os(), PAWL_RUN_OPTIONS(0))); /* no lock is left behind */
    }
    assert_true(failures > 5);
}

static void
saving_runs_out_of_memory(void **unused)
{
    (void)unused;
    struct toy toy;
    unsigned failures = 0, warned = 0;
    toy_init(&toy, 1);
    float extra[8] = { 0 };
    assert_int_equal(pawl_state_tensor(toy.state, &PAWL_TENSOR(PAWL_MODEL, "tied.a", PAWL_F32, extra, 8), NULL),
                     PAWL_OK);
    assert_int_equal(pawl_state_tensor(toy.state, &PAWL_TENSOR(PAWL_MODEL, "tied.b", PAWL_F32, extra, 8), NULL),
                     PAWL_OK);
    assert_int_equal(pawl_state_optimizer_json(toy.state, PAWL_STR("{\"x\": {\"y\": [1]}}"), NULL), PAWL_OK);
    for (long n = 0;; n++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct heard heard = { .n = 0 };
        struct pawl_run *run = open_run(quick_os(), PAWL_RUN_OPTIONS(0));
        save_step(run, &toy, 1, 1);
        save_step(run, &toy, 2, 2);
        close_run(run);
        run = open_run(quick_os(), PAWL_RUN_OPTIONS(.keep = 1, .write_sums = 1, .max_file_bytes = 30, .warning = hear,
                                                    .context = &heard));
        toy_set(&toy, 3);
        fail_at(n);
        enum pawl_status st = pawl_run_save(run, toy.state, 2, NULL, &err);
        until_failure = -1;
        if (st != PAWL_OK) {
            failures++;
            assert_int_equal(st, PAWL_NO_MEMORY);
            assert_true(strncmp(err.message, "save step 2: ", 13) == 0);
            assert_root_is_clean(pawl_os_posix());
        } else if (has_failed) {
            warned += heard.n != 0;
        }
        assert_root_holds(pawl_os_posix());
        save_step(run, &toy, 3, 3);
        close_run(run);
        assert_root_is_clean(pawl_os_posix());
        assert_string_equal(host_text(ROOT "/LATEST"), "step-000003\n");
        if (!has_failed)
            break;
    }
    print_message("%u saves ran out of memory, %u past their commit\n", failures, warned);
    assert_true(failures > 80 && warned > 3);
    toy_release(&toy);
}

/* Goal: finding the order of a state, which it keeps, may fail at every allocation, and the next plan finds it. */
static void
ordering_runs_out_of_memory(void **unused)
{
    (void)unused;
    static float data[4][2];
    static const char *const NAMES[] = { "d", "b", "c", "a", "tied" };
    unsigned failures = 0;
    for (long n = 0;; n++) {
        struct pawl_state *state = NULL;
        struct pawl_parts parts;
        struct pawl_error err = PAWL_ERROR_INIT;
        const struct pawl_parts_options options = { .step = 1 };
        assert_int_equal(pawl_state_new(&state, NULL), PAWL_OK);
        for (size_t i = 0; i < 5; i++) {
            enum pawl_dtype dtype = i == 2 ? PAWL_I32 : PAWL_F32;
            assert_int_equal(
                pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, NAMES[i], dtype, data[(i + 1) % 4], 2), NULL),
                PAWL_OK);
        }
        fail_at(n);
        enum pawl_status st = pawl_parts_plan(&parts, state, &options, &err);
        until_failure = -1;
        if (st == PAWL_OK) {
            pawl_parts_release(&parts);
        } else {
            failures++;
            assert_int_equal(st, PAWL_NO_MEMORY);
        }
        assert_int_equal(pawl_parts_plan(&parts, state, &options, &err), PAWL_OK);
        assert_int_equal(parts.model.n, 4);
        assert_int_equal(parts.model.n_metadata, 2);
        assert_true(pawl_str_equal(parts.model.tensors[0]->name, PAWL_STR("a")));
        assert_true(pawl_str_equal(parts.model.tensors[3]->name, PAWL_STR("c")));
        pawl_parts_release(&parts);
        pawl_state_free(state);
        if (!has_failed)
            break;
    }
    assert_true(failures > 15);
}

static void
pruning_runs_out_of_memory(void **unused)
{
    (void)unused;
    struct toy toy;
    toy_init(&toy, 1);
    for (long n = 0;; n++) {
        struct pawl_report *report = NULL;
        struct pawl_run *run = open_run(quick_os(), PAWL_RUN_OPTIONS(0));
        save_step(run, &toy, 1, 1);
        save_step(run, &toy, 2, 2);
        close_run(run);
        fail_at(n);
        enum pawl_status st =
            pawl_ckpt_prune_os(quick_os(), PAWL_STR(ROOT), &PAWL_PRUNE_OPTIONS(.keep = 1), &report, NULL);
        until_failure = -1;
        pawl_report_free(report);
        assert_true(st == PAWL_OK || st == PAWL_NO_MEMORY);
        assert_root_holds(pawl_os_posix());
        if (!has_failed)
            break;
    }
    toy_release(&toy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describing_runs_out_of_memory),
        cmocka_unit_test_setup_teardown(opening_runs_out_of_memory, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(saving_runs_out_of_memory, fixture_enter, fixture_leave),
        cmocka_unit_test(ordering_runs_out_of_memory),
        cmocka_unit_test_setup_teardown(pruning_runs_out_of_memory, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
