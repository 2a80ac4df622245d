/* checkpoint/repair.c: what is renamed, what LATEST says, what stays. */
#include "unit/save_support.h"

#include <errno.h>
#include "checkpoint/care.h"
#include "sim/faultos.h"

/* A bit of the last byte. */
static void
damage(struct simdisk *disk, const char *path)
{
    size_t bytes = 0;
    assert_non_null(simdisk_get(disk, path, &bytes));
    simdisk_flip(disk, path, bytes - 1, 1);
}

static struct pawl_report *
repair(struct simdisk *disk, bool is_dry, enum pawl_status expected, struct pawl_error *err)
{
    struct pawl_report *report = NULL;
    enum pawl_status st =
        pawl_ckpt_repair_os(simdisk_os(disk), PAWL_STR(ROOT), &PAWL_REPAIR_OPTIONS(.dry_run = is_dry), &report, err);
    if (st != expected)
        fail_msg("%s: %s", pawl_status_name(st), err == NULL ? "" : err->message);
    assert_int_equal(simdisk_open_handles(disk), 0);
    return report;
}

/* "step-000002 step-000003" */
static const char *
quarantined(const struct pawl_report *report)
{
    static char text[256];
    size_t n = 0;
    const struct pawl_str *names = pawl_report_names(report, PAWL_NAMES_QUARANTINED, &n);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s%.*s", i == 0 ? "" : " ", PAWL_ARG(names[i]));
    }
    return text;
}

static int64_t
newest(struct simdisk *disk)
{
    char *text = NULL;
    int64_t step = newest_of(simdisk_os(disk), disk, &text);
    free(text);
    return step;
}

/* Goal: broken steps are renamed and whole ones are not; a dry run changes nothing and says the same; a second repair finds nothing. */
static void
broken_steps_are_quarantined(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 } }, 4);
    struct pawl_error err = PAWL_ERROR_INIT;
    damage(disk, ROOT "/step-000001/optimizer.safetensors");
    simdisk_remove(disk, ROOT "/step-000003/trainer_state.json");
    simdisk_put_text(disk, ROOT "/step-000009", "a file under a step's name");
    simdisk_put_text(disk, ROOT "/step-5/x", "not ours");
    uint64_t before = simdisk_fingerprint(disk);
    struct pawl_report *report = repair(disk, true, PAWL_OK, &err);
    assert_string_equal(quarantined(report), "step-000001 step-000003 step-000009");
    assert_int_equal(simdisk_fingerprint(disk), before);
    pawl_report_free(report);

    report = repair(disk, false, PAWL_OK, &err);
    size_t n = 0;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_string_equal(quarantined(report), "step-000001 step-000003 step-000009");
    assert_int_equal(n, 3);
    assert_string_equal(verdicts[0].problems[0].code, "hash");
    assert_string_equal(verdicts[1].problems[0].code, "missing-file");
    assert_string_equal(verdicts[2].problems[0].code, "not-a-directory");
    pawl_report_free(report);
    assert_true(simdisk_has(disk, ROOT "/step-000001.bad/MANIFEST.json"));
    assert_true(simdisk_has(disk, ROOT "/step-000003.bad"));
    assert_true(simdisk_has(disk, ROOT "/step-000009.bad"));
    assert_true(simdisk_has(disk, ROOT "/step-5/x"));
    assert_int_equal(newest(disk), 4);
    assert_string_equal(simdisk_text(disk, ROOT "/LATEST"), "step-000004\n");

    before = simdisk_fingerprint(disk);
    report = repair(disk, false, PAWL_OK, &err);
    assert_string_equal(quarantined(report), "");
    assert_int_equal(simdisk_fingerprint(disk), before);
    pawl_report_free(report);
    simdisk_free(disk);
}

/* Goal: what loads is the same before and after, also where LATEST names a broken step and a newer one was never declared done. */
static void
what_loads_stays_the_same(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    struct pawl_error err = PAWL_ERROR_INIT;
    simdisk_put_text(disk, ROOT "/LATEST", "step-000002\n");
    damage(disk, ROOT "/step-000002/model.safetensors");
    assert_int_equal(newest(disk), 1);
    struct pawl_report *report = repair(disk, false, PAWL_OK, &err);
    size_t n = 0;
    const struct pawl_problem *warnings = pawl_report_warnings(report, &n);
    assert_int_equal(n, 1);
    assert_string_equal(warnings[0].code, "latest");
    assert_string_equal(warnings[0].message, "it named step-000002, which is broken, and names now step-000001");
    pawl_report_free(report);
    assert_string_equal(simdisk_text(disk, ROOT "/LATEST"), "step-000001\n");
    assert_int_equal(newest(disk), 1);
    simdisk_free(disk);

    /* Without an older complete one LATEST stays, and says so. */
    disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
    damage(disk, ROOT "/step-000001/model.safetensors");
    simdisk_put_text(disk, ROOT "/LATEST", "step-000001\n");
    report = repair(disk, false, PAWL_OK, &err);
    warnings = pawl_report_warnings(report, &n);
    assert_int_equal(n, 1);
    assert_string_equal(warnings[0].message,
                        "it names step-000001, which is broken, and no older step is complete: it stays as it is");
    assert_string_equal(simdisk_text(disk, ROOT "/LATEST"), "step-000001\n");
    pawl_report_free(report);
    simdisk_free(disk);
}

/* Goal: a step-N.bad that is there is nobody's to replace: that step stays, the others are quarantined, and the answer says so. */
static void
a_taken_name_is_kept(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    struct pawl_error err = PAWL_ERROR_INIT;
    simdisk_put_text(disk, ROOT "/step-000001.bad/notes", "of a person");
    damage(disk, ROOT "/step-000001/model.safetensors");
    damage(disk, ROOT "/step-000002/model.safetensors");
    struct pawl_report *report = repair(disk, false, PAWL_EXISTS, &err);
    assert_string_equal(err.message,
                        "repair: step-000001 is broken, and step-000001.bad is there already: it stays as it is");
    assert_string_equal(err.hint, "move or remove step-000001.bad, then repair again");
    assert_string_equal(quarantined(report), "step-000002");
    assert_string_equal(simdisk_text(disk, ROOT "/step-000001.bad/notes"), "of a person");
    assert_true(simdisk_has(disk, ROOT "/step-000001/MANIFEST.json"));
    pawl_report_free(report);
    simdisk_free(disk);
}

/* Goal: a .prev is settled as a writer would, and what that quarantines is named too. */
static void
a_prev_takes_its_place(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_dir_open_path(&root, simdisk_os(disk), ROOT, NULL), PAWL_OK);
    assert_int_equal(pawl_dir_rename(&root, "step-000002", "step-000002.prev", PAWL_OS_REPLACE, NULL), PAWL_OK);
    pawl_dir_release(&root);
    simdisk_put_text(disk, ROOT "/step-000002/x", "half");
    struct pawl_report *report = repair(disk, true, PAWL_OK, &err);
    assert_string_equal(quarantined(report), "step-000002");
    pawl_report_free(report);
    report = repair(disk, false, PAWL_OK, &err);
    assert_string_equal(quarantined(report), "step-000002");
    pawl_report_free(report);
    assert_true(simdisk_has(disk, ROOT "/step-000002.bad/x"));
    assert_true(simdisk_has(disk, ROOT "/step-000002/MANIFEST.json"));
    assert_false(simdisk_has(disk, ROOT "/step-000002.prev"));
    assert_int_equal(newest(disk), 2);
    simdisk_free(disk);
}

/* Goal: a fault of the machine is never taken for a broken step. Method: every call answers "no descriptors" once, and "permission". */
static void
machine_faults_quarantine_nothing(void **state)
{
    (void)state;
    const int codes[] = { EMFILE, EACCES, ENOMEM, ESTALE };
    struct simdisk *model = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        bool was_met = true;
        for (unsigned nth = 0; was_met; nth++) {
            struct simdisk *disk = simdisk_clone(model);
            uint64_t before = simdisk_fingerprint(disk);
            struct pawl_error err = PAWL_ERROR_INIT;
            simdisk_fail(disk, SIM_ANY, nth, 0, codes[c]);
            enum pawl_status st = pawl_ckpt_repair_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, NULL, &err);
            was_met = simdisk_fault_was_met(disk);
            assert_true(st == PAWL_OK || err.system_errno == codes[c]);
            assert_int_equal(simdisk_fingerprint(disk), before);
            simdisk_free(disk);
        }
    }
    simdisk_free(model);
}

static void
repair_needs_the_lock_and_a_root(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    assert_int_equal(pawl_ckpt_repair_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, NULL, &err), PAWL_BUSY);
    close_run(run);
    assert_int_equal(pawl_ckpt_repair_os(simdisk_os(disk), PAWL_STR("nowhere"), NULL, NULL, &err), PAWL_NO_FILE);
    assert_int_equal(pawl_ckpt_repair_os(simdisk_os(disk), PAWL_STR(""), NULL, NULL, &err), PAWL_ARGUMENT);
    simdisk_free(disk);
}

/* Goal: a run repairs its own root without giving up the lock; nobody else gets in, and its next save works. */
static void
a_run_repairs_its_own_root(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_report *report = NULL;
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    damage(disk, ROOT "/step-000002/model.safetensors");
    assert_int_equal(pawl_run_repair(run, &PAWL_REPAIR_OPTIONS(.dry_run = 1), &report, &err), PAWL_OK);
    assert_string_equal(quarantined(report), "step-000002");
    pawl_report_free(report);
    assert_false(simdisk_has(disk, ROOT "/step-000002.bad"));
    assert_int_equal(pawl_run_repair(run, NULL, &report, &err), PAWL_OK);
    assert_string_equal(quarantined(report), "step-000002");
    pawl_report_free(report);
    assert_true(simdisk_has(disk, ROOT "/step-000002.bad"));
    assert_int_equal(pawl_ckpt_repair_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, NULL, &err), PAWL_BUSY);
    assert_int_equal(newest(disk), 1);
    assert_int_equal(pawl_run_repair(NULL, NULL, NULL, &err), PAWL_ARGUMENT);
    close_run(run);
    simdisk_free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_steps_are_quarantined),
        cmocka_unit_test(what_loads_stays_the_same),
        cmocka_unit_test(a_taken_name_is_kept),
        cmocka_unit_test(a_prev_takes_its_place),
        cmocka_unit_test(machine_faults_quarantine_nothing),
        cmocka_unit_test(repair_needs_the_lock_and_a_root),
        cmocka_unit_test(a_run_repairs_its_own_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
