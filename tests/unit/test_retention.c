/* checkpoint/retention.c: which steps go, by the golden cases and by rule; what can't be deleted; pawl_ckpt_prune. */
#include "unit/save_support.h"

#include <errno.h>
#include "checkpoint/retention.h"
#include "formats/json/json.h"
#include "unit/checkpoint_golden.h"
#include "unit/golden_json.h"

static uint64_t
number_of(const struct pawl_json_value *value)
{
    uint64_t number = 0;
    assert_non_null(value);
    assert_true(pawl_json_u64(value->text, &number));
    return number;
}

/* Directories named step-N in the root. */
static size_t
steps_of(const struct simdisk *disk)
{
    size_t n = 0;
    char *tree = simdisk_tree(disk, ROOT);
    for (char *line = strtok(tree, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *slash = strchr(line, '/');
        if (slash == NULL || slash[1] != '\0')
            continue;
        *slash = '\0';
        n += pawl_entry_of_name(pawl_str_z(line), NULL) == PAWL_ENTRY_STEP;
    }
    free(tree);
    return n;
}

/* ---- retention ---- */

/* The metrics of a step, when the case has any for it. */
static void
save_with_metrics(struct pawl_run *run, struct toy *toy, int64_t step, const struct pawl_json_value *all)
{
    char name[24];
    struct pawl_metric metrics[8];
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)snprintf(name, sizeof name, "%" PRId64, step);
    const struct pawl_json_value *its = all == NULL ? NULL : pawl_json_member(all, pawl_str_z(name));
    size_t n = its == NULL ? 0 : its->n;
    assert_true(n <= 8);
    for (size_t i = 0; i < n; i++)
        metrics[i] = (struct pawl_metric){ its->first[i].key, pawl_json_f64(its->first[i].text) };
    const struct pawl_save_options options = PAWL_SAVE_OPTIONS(.metrics = n == 0 ? NULL : metrics, .n_metrics = n);
    if (pawl_run_save(run, toy->state, step, &options, &err) != PAWL_OK)
        fail_msg("%s", err.message);
}

static void
retention_as_in_the_golden_cases(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *cases =
        pawl_json_member(golden_read(&arena, GOLDEN_CHECKPOINTS "/retention.json"), PAWL_STR("cases"));
    size_t done = 0;
    for (size_t i = 0; i < cases->n; i++) {
        const struct pawl_json_value *one = &cases->first[i];
        const struct pawl_json_value *steps = pawl_json_member(one, PAWL_STR("steps"));
        const struct pawl_json_value *broken = pawl_json_member(one, PAWL_STR("broken"));
        const struct pawl_json_value *left = pawl_json_member(one, PAWL_STR("left"));
        const struct pawl_json_value *pinned = pawl_json_member(one, PAWL_STR("pinned"));
        const struct pawl_json_value *every = pawl_json_member(one, PAWL_STR("keep_every"));
        const struct pawl_json_value *best = pawl_json_member(one, PAWL_STR("keep_best"));
        const struct pawl_json_value *metrics = pawl_json_member(one, PAWL_STR("metrics"));
        int64_t saved = (int64_t)number_of(pawl_json_member(one, PAWL_STR("saved")));
        struct simdisk *disk = simdisk_new();
        struct toy toy;
        toy_init(&toy, 1);
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
        for (size_t k = steps->n; k-- > 0;) /* backwards: no order but that of the numbers may count */
            if ((int64_t)number_of(&steps->first[k]) != saved)
                save_with_metrics(run, &toy, (int64_t)number_of(&steps->first[k]), metrics);
        close_run(run);
        for (size_t k = 0; k < broken->n; k++) {
            char path[128], name[PAWL_STEP_NAME_BYTES];
            pawl_entry_name((int64_t)number_of(&broken->first[k]), "", name);
            (void)snprintf(path, sizeof path, ROOT "/%s/%s", name,
                           k % 2 == 0 ? "MANIFEST.json" : "optimizer.safetensors");
            simdisk_put_text(disk, path, "{}");
        }
        if (pinned != NULL) {
            struct pawl_buffer text = PAWL_BUFFER_INIT;
            (void)pawl_buffer_printf(&text, "{\"kind\": \"retention\", \"pinned\": ");
            if (pinned->type == PAWL_JSON_NULL)
                (void)pawl_buffer_printf(&text, "[20, 10]}"); /* not ascending */
            for (size_t k = 0; k < pinned->n; k++)
                (void)pawl_buffer_printf(&text, "%s%.*s", k == 0 ? "[" : ", ", PAWL_ARG(pinned->first[k].text));
            if (pinned->type != PAWL_JSON_NULL)
                (void)pawl_buffer_printf(&text, "]}");
            assert_true(pawl_buffer_terminate(&text));
            simdisk_put_text(disk, ROOT "/RETENTION.json", text.data);
            pawl_buffer_release(&text);
        }
        struct heard heard = { .n = 0 };
        struct pawl_keep_best policy = { .count = 0 };
        if (best != NULL)
            policy = (struct pawl_keep_best){
                .metric = pawl_json_member(best, PAWL_STR("metric"))->text,
                .direction = pawl_str_equal(pawl_json_member(best, PAWL_STR("direction"))->text, PAWL_STR("max"))
                                 ? PAWL_GREATEST
                                 : PAWL_LEAST,
                .count = (int64_t)number_of(pawl_json_member(best, PAWL_STR("count")))
            };
        run =
            open_run(simdisk_os(disk),
                     PAWL_RUN_OPTIONS(.keep = (int64_t)number_of(pawl_json_member(one, PAWL_STR("keep"))),
                                      .keep_every = every == NULL ? 0 : (int64_t)number_of(every), .keep_best = &policy,
                                      .n_keep_best = best != NULL, .warning = hear, .context = &heard));
        save_with_metrics(run, &toy, saved, metrics);
        close_run(run);
        size_t n = steps_of(disk);
        for (size_t k = 0; k < left->n; k++) {
            char path[128], name[PAWL_STEP_NAME_BYTES];
            pawl_entry_name((int64_t)number_of(&left->first[k]), "", name);
            (void)snprintf(path, sizeof path, ROOT "/%s", name);
            if (!simdisk_has(disk, path))
                fail_msg("%.*s: %s is gone", PAWL_ARG(pawl_json_member(one, PAWL_STR("what"))->text), name);
        }
        if (n != left->n)
            fail_msg("%.*s: %zu steps are left, expected %zu", PAWL_ARG(pawl_json_member(one, PAWL_STR("what"))->text),
                     n, left->n);
        assert_int_equal(heard_of(&heard, "retention"), pinned != NULL && pinned->type == PAWL_JSON_NULL);
        assert_int_equal(heard_of(&heard, "newer-steps"), (int64_t)number_of(&steps->first[steps->n - 1]) > saved);
        toy_release(&toy);
        simdisk_free(disk);
        done++;
    }
    print_message("%zu of %zu retention cases\n", done, cases->n);
    assert_int_equal(done, 27);
    pawl_arena_release(&arena);
}

/* ---- what can't be deleted, what is corrupt ---- */

/* Goal: a step that can't be deleted is a warning, is never half-deleted under its name, and goes at the next save. */
static void
undeletable_goes_next_time(void **state)
{
    (void)state;
    const enum sim_op ops[] = { SIM_REMOVE_FILE, SIM_REMOVE_DIR, SIM_RENAME };
    const unsigned nths[] = { 2, 0, 2 };
    for (size_t i = 0; i < 3; i++) {
        struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
        struct heard heard = { .n = 0 };
        struct toy toy;
        toy_init(&toy, 3);
        struct pawl_run *run =
            open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 2, .warning = hear, .context = &heard));
        /* Retention's own: the third rename, after the step's and LATEST's, and not the look for a stale step-000003.tmp. */
        simdisk_fail(disk, ops[i], nths[i], 0, EACCES);
        save_step(run, &toy, 3, 3);
        assert_true(simdisk_fault_was_met(disk));
        assert_int_equal(heard_of(&heard, "not-deleted"), 1);
        assert_non_null(strstr(heard.messages[0], "left for the next save: "));
        assert_root_holds(simdisk_os(disk));
        save_step(run, &toy, 4, 4);
        assert_int_equal(heard.n, 1);
        assert_root_is_clean(simdisk_os(disk));
        assert_int_equal(steps_of(disk), 2);
        close_run(run);
        toy_release(&toy);
        simdisk_free(disk);
    }
}

/* Goal: a step that this handle found corrupt does not count, though its sizes are right: else good ones would go for it. */
static void
corrupt_step_does_not_count(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    struct toy toy;
    int64_t step = -1;
    toy_init(&toy, 0);
    simdisk_flip(disk, ROOT "/step-000003/model.safetensors", 190, 4);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 2));
    assert_int_equal(pawl_run_restore(run, toy.state, &step, NULL, NULL), PAWL_OK);
    assert_int_equal(step, 2);
    save_step(run, &toy, 4, 4);
    assert_false(simdisk_has(disk, ROOT "/step-000001"));
    assert_true(simdisk_has(disk, ROOT "/step-000002")); /* with 3 counted it would have gone */
    assert_true(simdisk_has(disk, ROOT "/step-000003"));
    /* Saved anew it is a step like others. */
    save_step(run, &toy, 3, 3);
    save_step(run, &toy, 4, 5);
    assert_false(simdisk_has(disk, ROOT "/step-000002"));
    assert_true(simdisk_has(disk, ROOT "/step-000003"));
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: a fault of the machine while steps are counted deletes nothing: a step that can't be looked at may be the good one. */
static void
machine_faults_delete_nothing(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    struct heard heard = { .n = 0 };
    struct toy toy;
    toy_init(&toy, 0);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1, .warning = hear, .context = &heard));
    simdisk_fail(disk, SIM_FILE_OPEN, 0, 0,
                 EMFILE); /* the manifest of the step just saved; LATEST was not there to read */
    simdisk_remove(disk, ROOT "/LATEST");
    save_step(run, &toy, 4, 4);
    assert_true(simdisk_fault_was_met(disk));
    assert_int_equal(heard_of(&heard, "not-deleted"), 1);
    assert_int_equal(steps_of(disk), 4);
    save_step(run, &toy, 5, 5);
    assert_int_equal(steps_of(disk), 1);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: what was copied into a root by hand under a name that is not ours is never removed, and file times mean nothing. */
static void
names_not_ours_stay(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 9900, 1 }, { 10000, 2 }, { 999999, 3 } }, 3);
    const char *const others[] = { "step-5", "step-0000005", "step-000005.old", "best", "Step-000001" };
    struct toy toy;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, ROOT "/%s/x", others[i]);
        simdisk_put_text(disk, path, "x");
    }
    toy_init(&toy, 0);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 2));
    save_step(run, &toy, 1000000, 4);
    close_run(run);
    assert_false(simdisk_has(disk, ROOT "/step-009900"));
    assert_false(simdisk_has(disk, ROOT "/step-010000"));
    assert_true(simdisk_has(disk, ROOT "/step-999999"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, ROOT "/%s/x", others[i]);
        assert_true(simdisk_has(disk, path));
    }
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: what RETENTION.json may look like, and that nothing goes when it looks otherwise. */
static void
malformed_retention_deletes_nothing(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",
        "{}",
        "[]",
        "{\"kind\": \"retention\"}",
        "{\"kind\": \"other\", \"pinned\": []}",
        "{\"kind\": \"retention\", \"pinned\": [1.0]}",
        "{\"kind\": \"retention\", \"pinned\": [-1]}",
        "{\"kind\": \"retention\", \"pinned\": [1, 1]}",
        "{\"kind\": \"retention\", \"pinned\": [9223372036854775808]}",
        "{\"kind\": \"retention\", \"pinned\": {}, \"x\": 1}",
        "{\"kind\": \"retention\", \"pinned\": [], \"pinned\": []}",
    };
    for (size_t i = 0; i <= sizeof texts / sizeof *texts; i++) {
        struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
        struct heard heard = { .n = 0 };
        struct toy toy;
        toy_init(&toy, 0);
        if (i < sizeof texts / sizeof *texts)
            simdisk_put_text(disk, ROOT "/RETENTION.json", texts[i]);
        else
            simdisk_put_fifo(disk, ROOT "/RETENTION.json");
        struct pawl_run *run =
            open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1, .warning = hear, .context = &heard));
        save_step(run, &toy, 3, 3);
        close_run(run);
        assert_int_equal(steps_of(disk), 3);
        assert_int_equal(heard.n, 1);
        assert_string_equal(heard.codes[0], "retention");
        toy_release(&toy);
        simdisk_free(disk);
    }
}

/* ---- choosing, by rule ---- */

/*
 * Goal: the choice is the page's rule. Method: random roots from a printed seed, against the rule said another way: a step goes when K that
 * count and are not newer than the save are newer than it, and it is neither pinned nor newer than the save.
 */
static void
choice_follows_the_rule(void **state)
{
    (void)state;
    uint64_t seed = 20240817;
    print_message("seed %" PRIu64 "\n", seed);
    for (unsigned round = 0; round < 20000; round++) {
        struct pawl_retention_step steps[12];
        size_t n = 1 + (size_t)(pawl_splitmix64_next(&seed) % 12);
        for (size_t i = 0; i < n; i++)
            steps[i] = (struct pawl_retention_step){ .step = (int64_t)i * 10,
                                                     .counts = pawl_splitmix64_next(&seed) % 4 != 0,
                                                     .is_pinned = pawl_splitmix64_next(&seed) % 5 == 0 };
        size_t saved = (size_t)(pawl_splitmix64_next(&seed) % n);
        const struct pawl_retention_policy policy = { .keep = (int64_t)(pawl_splitmix64_next(&seed) % 5) };
        steps[saved].counts = true;
        pawl_retention_choose(steps, n, &policy, steps[saved].step);
        for (size_t i = 0; i < n; i++) {
            int64_t newer = 0;
            for (size_t k = i + 1; k <= saved; k++)
                newer += steps[k].counts;
            bool goes = policy.keep > 0 && newer >= policy.keep && i < saved && !steps[i].is_pinned;
            assert_int_equal(steps[i].goes, goes);
        }
    }
}

/* ---- prune ---- */

static struct pawl_report *
prune(struct simdisk *disk, struct pawl_prune_options options, enum pawl_status expected)
{
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_ckpt_prune_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &report, &err);
    if (st != expected)
        fail_msg("%s: %s", pawl_status_name(st), err.message);
    assert_int_equal(simdisk_open_handles(disk), 0);
    return report;
}

static void
assert_deleted(struct pawl_report *report, const char *first, const char *second)
{
    size_t n = 0;
    const struct pawl_str *names = pawl_report_names(report, PAWL_NAMES_DELETED, &n);
    assert_int_equal(n, second != NULL ? 2 : first != NULL ? 1 : 0);
    if (first != NULL)
        assert_true(pawl_str_equal(names[0], pawl_str_z(first)));
    if (second != NULL)
        assert_true(pawl_str_equal(names[1], pawl_str_z(second)));
    pawl_report_free(report);
}

static void
prune_says_and_does(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    simdisk_put_text(disk, ROOT "/step-000009.tmp/x", "x");
    uint64_t before = simdisk_fingerprint(disk);
    assert_deleted(prune(disk, PAWL_PRUNE_OPTIONS(.keep = 1, .dry_run = 1), PAWL_OK), "step-000001", "step-000002");
    assert_int_equal(simdisk_fingerprint(disk), before);
    assert_deleted(prune(disk, PAWL_PRUNE_OPTIONS(.keep = 2), PAWL_OK), "step-000001", NULL);
    assert_root_is_clean(simdisk_os(disk));
    assert_root_holds(simdisk_os(disk));
    assert_deleted(prune(disk, PAWL_PRUNE_OPTIONS(.keep = 2), PAWL_OK), NULL, NULL);
    pawl_report_free(prune(disk, PAWL_PRUNE_OPTIONS(.keep = 0), PAWL_ARGUMENT));
    simdisk_free(disk);
}

/* Goal: the step LATEST names stays, and newer ones neither count nor go, whatever K; without a usable LATEST the newest decides. */
static void
prune_respects_latest(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    simdisk_put_text(disk, ROOT "/LATEST", "step-000002\n");
    assert_deleted(prune(disk, PAWL_PRUNE_OPTIONS(.keep = 1), PAWL_OK), "step-000001", NULL);
    assert_true(simdisk_has(disk, ROOT "/step-000002"));
    assert_true(simdisk_has(disk, ROOT "/step-000003"));
    simdisk_put_text(disk, ROOT "/LATEST", "step-000009\n");
    assert_deleted(prune(disk, PAWL_PRUNE_OPTIONS(.keep = 1), PAWL_OK), "step-000002", NULL);
    simdisk_free(disk);
}

static void
prune_under_the_lock(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(
        pawl_ckpt_prune_os(simdisk_os(disk), PAWL_STR(ROOT), &PAWL_PRUNE_OPTIONS(.keep = 1), &report, &err), PAWL_BUSY);
    pawl_report_free(report);
    /* The run itself has the lock, and keeps it. */
    assert_int_equal(pawl_run_prune(run, &PAWL_PRUNE_OPTIONS(.keep = 1, .dry_run = 1), &report, &err), PAWL_OK);
    pawl_report_free(report);
    assert_int_equal(steps_of(disk), 2);
    assert_int_equal(pawl_run_prune(run, &PAWL_PRUNE_OPTIONS(.keep = 0), NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_run_prune(run, NULL, NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_run_prune(NULL, &PAWL_PRUNE_OPTIONS(.keep = 1), NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_run_prune(run, &PAWL_PRUNE_OPTIONS(.keep = 1), &report, &err), PAWL_OK);
    size_t n = 0;
    assert_int_equal(pawl_str_compare(pawl_report_names(report, PAWL_NAMES_DELETED, &n)[0], PAWL_STR("step-000001")),
                     0);
    assert_int_equal(n, 1);
    pawl_report_free(report);
    assert_int_equal(pawl_ckpt_prune_os(simdisk_os(disk), PAWL_STR(ROOT), &PAWL_PRUNE_OPTIONS(.keep = 1), NULL, &err),
                     PAWL_BUSY);
    close_run(run);
    assert_int_equal(
        pawl_ckpt_prune_os(simdisk_os(disk), PAWL_STR("nowhere"), &PAWL_PRUNE_OPTIONS(.keep = 1), NULL, &err),
        PAWL_NO_FILE);
    assert_int_equal(steps_of(disk), 1);
    simdisk_free(disk);
}

/* Goal: power lost at any call of a prune leaves whole steps only, and the newest is among them. */
static void
prune_survives_power_loss(void **state)
{
    (void)state;
    struct simdisk *model = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    bool was_cut = true;
    for (unsigned nth = 0; was_cut; nth++) {
        for (unsigned seed = 0; seed < 10; seed++) {
            struct simdisk *disk = simdisk_clone(model);
            char *text = NULL;
            simdisk_cut_power_at(disk, nth);
            (void)pawl_ckpt_prune_os(simdisk_os(disk), PAWL_STR(ROOT), &PAWL_PRUNE_OPTIONS(.keep = 1), NULL, NULL);
            was_cut = simdisk_reboot(disk, seed + nth * 100);
            assert_root_holds(simdisk_os(disk));
            assert_int_equal(newest_of(simdisk_os(disk), disk, &text), 3);
            free(text);
            simdisk_free(disk);
        }
    }
    simdisk_free(model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retention_as_in_the_golden_cases),
        cmocka_unit_test(undeletable_goes_next_time),
        cmocka_unit_test(corrupt_step_does_not_count),
        cmocka_unit_test(machine_faults_delete_nothing),
        cmocka_unit_test(names_not_ours_stay),
        cmocka_unit_test(malformed_retention_deletes_nothing),
        cmocka_unit_test(choice_follows_the_rule),
        cmocka_unit_test(prune_says_and_does),
        cmocka_unit_test(prune_respects_latest),
        cmocka_unit_test(prune_under_the_lock),
        cmocka_unit_test(prune_survives_power_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
