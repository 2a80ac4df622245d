/*
 * Goal: whichever allocation fails, of pinning, repairing, copying, waiting and pruning by metrics, the call answers PAWL_NO_MEMORY or is done, what
 * is there is whole, and nothing leaks (the sanitizer build sees to that). Method: as in test_save_memory: the n-th answers NULL.
 */
#include "unit/save_support.h"

#include "checkpoint/care.h"
#include "checkpoint/pins.h"
#include "unit/os_fixture.h"
#include "unit/failing_memory.h"

enum care { CARE_PIN, CARE_REPAIR, CARE_COPY, CARE_WAIT, CARE_PRUNE, CARE_SAVE, CARES };

static enum pawl_status
care(enum care what, const struct pawl_os *os, struct toy *toy, struct pawl_run *run, struct pawl_error *err)
{
    struct pawl_report *report = NULL;
    struct pawl_ckpt *ckpt = NULL;
    const struct pawl_keep_best best = { PAWL_STR("loss"), PAWL_LEAST, 1 };
    const struct pawl_metric metrics[] = { { PAWL_STR("loss"), 1.0 }, { PAWL_STR("acc"), 2.0 } };
    enum pawl_status st = PAWL_OK;
    switch (what) {
    case CARE_PIN:
        return pawl_ckpt_pin_os(os, PAWL_STR(ROOT), 2, true, err);
    case CARE_REPAIR:
        st = pawl_ckpt_repair_os(os, PAWL_STR(ROOT), NULL, &report, err);
        break;
    case CARE_COPY:
        st = pawl_ckpt_copy_os(os, PAWL_STR(ROOT "/step-000001"), PAWL_STR("other/step-000001"), NULL, &report, err);
        break;
    case CARE_WAIT:
        st = pawl_ckpt_wait_os(os, PAWL_STR(ROOT), 1, 0, NULL, &ckpt, &report, err);
        break;
    case CARE_PRUNE:
        st = pawl_ckpt_prune_os(os, PAWL_STR(ROOT),
                                &PAWL_PRUNE_OPTIONS(.keep = 1, .keep_best = &best, .n_keep_best = 1), &report, err);
        break;
    case CARE_SAVE:
        return pawl_run_save(run, toy->state, 4, &PAWL_SAVE_OPTIONS(.metrics = metrics, .n_metrics = 2), err);
    case CARES:
        break;
    }
    pawl_ckpt_close(ckpt);
    pawl_report_free(report);
    return st;
}

/* The host without its syncs: what is there is only looked at from here. */
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

static void
remove_all(void)
{
    struct pawl_dir here = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", NULL), PAWL_OK);
    assert_int_equal(pawl_dir_remove_tree(&here, ROOT, NULL), PAWL_OK);
    assert_int_equal(pawl_dir_remove_tree(&here, "other", NULL), PAWL_OK);
    pawl_dir_release(&here);
}

static void
every_allocation_fails_once(void **state)
{
    (void)state;
    for (int what = 0; what < CARES; what++) {
        unsigned failures = 0;
        for (long n = 0;; n++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            struct toy toy;
            toy_init(&toy, 1);
            struct pawl_run *run = open_run(quick_os(), PAWL_RUN_OPTIONS(0));
            for (int64_t step = 1; step <= 3; step++) {
                const struct pawl_metric metrics[] = { { PAWL_STR("loss"), (double)step } };
                assert_int_equal(
                    pawl_run_save(run, toy.state, step, &PAWL_SAVE_OPTIONS(.metrics = metrics, .n_metrics = 1), NULL),
                    PAWL_OK);
            }
            if (what != CARE_SAVE)
                close_run(run);
            if (what == CARE_REPAIR)
                host_put(ROOT "/step-000003/model.safetensors", "of another size");
            has_failed = false;
            until_failure = n;
            enum pawl_status st = care((enum care)what, quick_os(), &toy, run, &err);
            until_failure = -1;
            bool is_done = !has_failed;
            if (st != PAWL_OK) {
                failures++;
                if (st != PAWL_NO_MEMORY || err.status != PAWL_NO_MEMORY)
                    fail_msg("act %d, allocation %ld: %s: %s", what, n, pawl_status_name(st), err.message);
            }
            /* The same again works, but for a copy that is there already. */
            st = care((enum care)what, quick_os(), &toy, run, &err);
            assert_true(st == PAWL_OK || (what == CARE_COPY && st == PAWL_EXISTS));
            assert_root_holds(quick_os());
            if (what == CARE_SAVE)
                close_run(run);
            toy_release(&toy);
            remove_all();
            if (is_done)
                break;
        }
        print_message("act %d: %u failures\n", what, failures);
        assert_true(failures >= 5);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(every_allocation_fails_once, fixture_enter,
                                                                        fixture_leave) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
