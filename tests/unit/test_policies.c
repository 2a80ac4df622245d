/* checkpoint/policies.c and the metrics of a save: what the policies keep, by the page's rule said another way; what no policy can be. */
#include "unit/save_support.h"

#include <errno.h>
#include <math.h>
#include "checkpoint/policies.h"

#define STEPS_MAX 14

/* Is step i among the best by metric m? Count those that are better: a smaller value, or an equal one of a newer step. */
static bool
is_best(const struct pawl_retention_step *steps, size_t n, size_t i, const struct pawl_keep_best *best, size_t m,
        int64_t newest)
{
    int64_t better = 0;
    double sign = best->direction == PAWL_LEAST ? 1 : -1;
    if (!steps[i].counts || steps[i].step > newest || steps[i].values == NULL || isnan(steps[i].values[m]))
        return false;
    for (size_t k = 0; k < n; k++) {
        if (k == i || !steps[k].counts || steps[k].step > newest || steps[k].values == NULL ||
            isnan(steps[k].values[m]))
            continue;
        double its = sign * steps[k].values[m];
        double ours = sign * steps[i].values[m];
        better += its < ours || (its == ours && k > i);
    }
    return better < best->count;
}

/*
 * Goal: what any policy keeps stays, and nothing else does. Method: random roots and policies from a printed seed, against the rule as the
 * page says it: fewer than K that count: nothing goes; else those older than the K-th go that no other policy keeps.
 */
static void
choice_follows_the_rule(void **state)
{
    (void)state;
    uint64_t seed = 20261129;
    unsigned went = 0, kept_by_best = 0, kept_by_every = 0;
    print_message("seed %" PRIu64 "\n", seed);
    for (unsigned round = 0; round < 40000; round++) {
        struct pawl_retention_step steps[STEPS_MAX];
        double values[STEPS_MAX][2];
        struct pawl_keep_best best[2];
        size_t n = 1 + (size_t)(pawl_splitmix64_next(&seed) % STEPS_MAX);
        for (size_t i = 0; i < n; i++) {
            steps[i] = (struct pawl_retention_step){ .step = (int64_t)i * 10,
                                                     .counts = pawl_splitmix64_next(&seed) % 4 != 0,
                                                     .is_pinned = pawl_splitmix64_next(&seed) % 6 == 0 };
            for (size_t m = 0; m < 2; m++)
                values[i][m] = pawl_splitmix64_next(&seed) % 4 == 0
                                   ? (double)NAN
                                   : (double)(pawl_splitmix64_next(&seed) % 5) - 2; /* ties are common */
            steps[i].values = pawl_splitmix64_next(&seed) % 5 == 0 ? NULL : values[i];
        }
        for (size_t m = 0; m < 2; m++)
            best[m] =
                (struct pawl_keep_best){ .metric = PAWL_STR("m"),
                                         .direction = pawl_splitmix64_next(&seed) % 2 ? PAWL_LEAST : PAWL_GREATEST,
                                         .count = 1 + (int64_t)(pawl_splitmix64_next(&seed) % 3) };
        size_t saved = (size_t)(pawl_splitmix64_next(&seed) % n);
        const struct pawl_retention_policy policy = {
            .keep = (int64_t)(pawl_splitmix64_next(&seed) % 4),
            .keep_every = (int64_t)(pawl_splitmix64_next(&seed) % 3) * 20,
            .best = best,
            .n_best = (size_t)(pawl_splitmix64_next(&seed) % 3),
        };
        steps[saved].counts = true;
        pawl_retention_choose(steps, n, &policy, steps[saved].step);
        for (size_t i = 0; i < n; i++) {
            int64_t newer = 0;
            bool stays = steps[i].is_pinned;
            for (size_t k = i + 1; k <= saved; k++)
                newer += steps[k].counts;
            bool is_old = policy.keep > 0 && newer >= policy.keep && i < saved;
            bool is_multiple = policy.keep_every > 0 && steps[i].counts && steps[i].step % policy.keep_every == 0;
            for (size_t m = 0; m < policy.n_best; m++) {
                bool is_one = is_best(steps, n, i, &best[m], m, steps[saved].step);
                kept_by_best += is_one && is_old && !stays;
                stays = stays || is_one;
            }
            kept_by_every += is_multiple && is_old && !stays;
            stays = stays || is_multiple;
            assert_int_equal(steps[i].goes, is_old && !stays);
            went += steps[i].goes;
        }
    }
    assert_true(went > 10000 && kept_by_best > 1000 && kept_by_every > 1000);
}

static void
impossible_policies_are_refused(void **state)
{
    (void)state;
    const struct {
        struct pawl_retention_policy policy;
        const char *message;
    } cases[] = {
        { { -1, 0, NULL, 0 }, "keep is -1, expected 0 (all) or more" },
        { { 1, -5, NULL, 0 }, "keep_every is -5, expected 1 or more, or 0 for none" },
        { { 1, 0, NULL, 2 }, "keep_best: 2 were promised and none given" },
        { { 1, 0, &(struct pawl_keep_best){ { "", 0 }, PAWL_LEAST, 1 }, 1 }, "keep_best: the metric's name is empty" },
        { { 1, 0, &(struct pawl_keep_best){ { "loss", 4 }, (enum pawl_direction)7, 1 }, 1 },
          "keep_best 'loss': direction is 7, expected PAWL_LEAST or PAWL_GREATEST" },
        { { 1, 0, &(struct pawl_keep_best){ { "loss", 4 }, PAWL_LEAST, 0 }, 1 },
          "keep_best 'loss': count is 0, expected 1 or more" },
    };
    struct simdisk *disk = simdisk_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_run *run = NULL;
        const struct pawl_retention_policy *policy = &cases[i].policy;
        struct pawl_run_options options = PAWL_RUN_OPTIONS(.keep = policy->keep, .keep_every = policy->keep_every,
                                                           .keep_best = policy->best, .n_keep_best = policy->n_best);
        assert_int_equal(pawl_policy_check(policy, &err), PAWL_ARGUMENT);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err), PAWL_ARGUMENT);
        assert_false(simdisk_has(disk, ROOT));
    }
    simdisk_free(disk);
}

/* Goal: a run keeps its policies though the caller's arrays are gone: they are copied. */
static void
policies_are_copied(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    char metric[] = "loss";
    struct pawl_keep_best best = { pawl_str_z(metric), PAWL_LEAST, 1 };
    toy_init(&toy, 1);
    struct pawl_run *run =
        open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1, .keep_best = &best, .n_keep_best = 1));
    memset(metric, 'x', 4);
    best = (struct pawl_keep_best){ .count = -1 };
    for (int64_t step = 1; step <= 4; step++) {
        const struct pawl_metric metrics[] = { { PAWL_STR("loss"), step == 2 ? 0.5 : 1.0 } };
        assert_int_equal(
            pawl_run_save(run, toy.state, step, &PAWL_SAVE_OPTIONS(.metrics = metrics, .n_metrics = 1), NULL), PAWL_OK);
    }
    close_run(run);
    assert_false(simdisk_has(disk, ROOT "/step-000001"));
    assert_true(simdisk_has(disk, ROOT "/step-000002"));
    assert_false(simdisk_has(disk, ROOT "/step-000003"));
    toy_release(&toy);
    simdisk_free(disk);
}

static void
bad_metrics_are_refused_before_anything_is_written(void **state)
{
    (void)state;
    const struct {
        struct pawl_metric metrics[2];
        size_t n;
        const char *message;
    } cases[] = {
        { { { { "", 0 }, 1.0 } }, 1, "save step 1: a metric's name is empty" },
        { { { { "\xff", 1 }, 1.0 } }, 1, "save step 1: the metric's name '\\xff' is not UTF-8" },
        { { { { "loss", 4 }, (double)INFINITY } }, 1, "save step 1: metric 'loss' is inf, expected a finite number" },
        { { { { "loss", 4 }, 1.0 }, { { "loss", 4 }, 2.0 } }, 2, "save step 1: metric 'loss' is given twice" },
    };
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        assert_int_equal(pawl_run_save(run, toy.state, 1,
                                       &PAWL_SAVE_OPTIONS(.metrics = cases[i].metrics, .n_metrics = cases[i].n), &err),
                         PAWL_ARGUMENT);
        assert_string_equal(err.message, cases[i].message);
        char *tree = simdisk_tree(disk, ROOT);
        assert_string_equal(tree, "");
        free(tree);
    }
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: malformed metrics are none: the step does not compete, counts all the same, and a warning says so. */
static void
malformed_metrics_are_none(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    struct heard heard = { .n = 0 };
    const struct pawl_keep_best best = { PAWL_STR("loss"), PAWL_LEAST, 1 };
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    for (int64_t step = 1; step <= 2; step++) {
        const struct pawl_metric metrics[] = { { PAWL_STR("loss"), (double)step } };
        assert_int_equal(
            pawl_run_save(run, toy.state, step, &PAWL_SAVE_OPTIONS(.metrics = metrics, .n_metrics = 1), NULL), PAWL_OK);
    }
    close_run(run);
    size_t bytes = 0;
    const unsigned char *text = simdisk_get(disk, ROOT "/step-000001/pawl.metrics.json", &bytes);
    char *broken = malloc(bytes + 1);
    memset(broken, '[', bytes);
    broken[bytes] = '\0';
    assert_non_null(text);
    simdisk_put_text(disk, ROOT "/step-000001/pawl.metrics.json", broken);
    free(broken);
    run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1, .keep_best = &best, .n_keep_best = 1, .warning = hear,
                                                      .context = &heard));
    save_step(run, &toy, 3, 3);
    close_run(run);
    assert_false(simdisk_has(disk, ROOT "/step-000001"));
    assert_true(simdisk_has(disk, ROOT "/step-000002"));
    assert_int_equal(heard_of(&heard, "metrics"), 1);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: a metric that can't be read for want of a descriptor is not "none": the best step would go. Method: each opening of a save fails once. */
static void
machine_faults_cost_no_best_step(void **state)
{
    (void)state;
    const struct pawl_keep_best best = { PAWL_STR("loss"), PAWL_LEAST, 1 };
    bool was_met = true;
    for (unsigned nth = 0; was_met; nth++) {
        struct simdisk *disk = simdisk_new();
        struct toy toy;
        toy_init(&toy, 1);
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
        for (int64_t step = 1; step <= 2; step++) {
            const struct pawl_metric metrics[] = { { PAWL_STR("loss"), (double)step } };
            assert_int_equal(
                pawl_run_save(run, toy.state, step, &PAWL_SAVE_OPTIONS(.metrics = metrics, .n_metrics = 1), NULL),
                PAWL_OK);
        }
        close_run(run);
        run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1, .keep_best = &best, .n_keep_best = 1));
        simdisk_fail(disk, SIM_FILE_OPEN, nth, 0, EMFILE);
        (void)pawl_run_save(run, toy.state, 3, NULL, NULL);
        was_met = simdisk_fault_was_met(disk);
        assert_true(simdisk_has(disk, ROOT "/step-000001"));
        close_run(run);
        toy_release(&toy);
        simdisk_free(disk);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choice_follows_the_rule),
        cmocka_unit_test(impossible_policies_are_refused),
        cmocka_unit_test(policies_are_copied),
        cmocka_unit_test(bad_metrics_are_refused_before_anything_is_written),
        cmocka_unit_test(malformed_metrics_are_none),
        cmocka_unit_test(machine_faults_cost_no_best_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
