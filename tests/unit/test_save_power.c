/*
 * checkpoint/save.c under loss of power. What must hold wherever it is lost, with any part of what was not synced lost, torn or reordered:
 * every directory named step-N is complete, LATEST is absent or names one, a load returns the previous checkpoint or the new one,
 * and what was reported durable is not lost.
 */
#include "unit/save_support.h"

#include <errno.h>
#include "sim/faultos.h"

#define SAVES_MAX 6

/* What a process does between opening the root and losing power. */
struct story {
    const char *name;
    struct saved before[3]; /* durable from the start */
    size_t n_before;
    unsigned lacking;
    int64_t keep;
    struct saved saves[SAVES_MAX];
    size_t n_saves;
    unsigned seeds; /* per place of the cut */
};

static const struct story stories[] = {
    { "a fresh root", { { 0, 0 } }, 0, 0, 0, { { 1, 1 }, { 2, 2 } }, 2, 8 },
    { "replacing by exchange", { { 1, 1 } }, 1, 0, 0, { { 2, 2 }, { 2, 3 }, { 1, 4 } }, 3, 8 },
    { "replacing by .prev", { { 1, 1 } }, 1, SIM_EXCHANGE, 0, { { 2, 2 }, { 2, 3 }, { 2, 4 } }, 3, 8 },
    { "the only step, by .prev", { { 1, 1 } }, 1, SIM_EXCHANGE, 1, { { 1, 2 }, { 1, 3 } }, 2, 8 },
    { "keep 1", { { 1, 1 }, { 2, 2 } }, 2, 0, 1, { { 3, 3 }, { 4, 4 }, { 5, 5 } }, 3, 8 },
    { "keep 2 and no no-replace", { { 1, 1 }, { 2, 2 } }, 2, SIM_NO_REPLACE, 2, { { 3, 3 }, { 4, 4 } }, 2, 8 },
};
#define STORIES (sizeof stories / sizeof *stories)

/* Manifests are as good as the steps themselves, and are made once. */
#define STEPS_MAX 8
#define VERSIONS_MAX 8
static char *manifests[STEPS_MAX][VERSIONS_MAX];

static const char *
manifest_for(int64_t step, unsigned version)
{
    if (manifests[step][version] == NULL)
        manifests[step][version] = manifest_of(step, version);
    return manifests[step][version];
}

static int
free_manifests(void **state)
{
    (void)state;
    for (size_t i = 0; i < STEPS_MAX; i++)
        for (size_t k = 0; k < VERSIONS_MAX; k++)
            free(manifests[i][k]);
    return 0;
}

static struct simdisk *
disk_of(const struct story *story)
{
    struct simdisk *disk = disk_with(story->before, story->n_before);
    simdisk_lack(disk, story->lacking);
    return disk;
}

/* Live the story. Returns how many of its saves were reported durable; marks each in the trace. */
static size_t
live(const struct story *story, struct simdisk *disk, const struct pawl_os *os)
{
    struct pawl_run *run = NULL;
    struct pawl_run_options options = PAWL_RUN_OPTIONS(.keep = story->keep);
    struct toy toy;
    size_t durable = 0;
    toy_init(&toy, 0);
    if (pawl_run_open_os(os, PAWL_STR(ROOT), &options, &run, NULL) == PAWL_OK) {
        for (size_t i = 0; i < story->n_saves; i++) {
            toy_set(&toy, story->saves[i].version);
            if (pawl_run_save(run, toy.state, story->saves[i].step, NULL, NULL) != PAWL_OK)
                break;
            simdisk_mark(disk, "durable");
            durable++;
        }
        (void)pawl_run_close(run, NULL);
    }
    toy_release(&toy);
    return durable;
}

/* Save number i of the story, those from before counted too; -1: none. */
static struct saved
saved_at(const struct story *story, size_t i)
{
    return i < story->n_before ? story->before[i] : story->saves[i - story->n_before];
}

/* What a load gives on a disk whose first `durable` saves of the story were reported: that one or the one that was going on. */
static void
check_load(const struct story *story, struct simdisk *disk, size_t durable, const char *when)
{
    char *text = NULL;
    char problem[256];
    int64_t step = newest_of(simdisk_os(disk), disk, &text);
    size_t last = story->n_before + durable; /* index + 1 */
    bool is_right = last == 0 && step == -1;
    for (size_t i = last == 0 ? 0 : last - 1; i <= last && i < story->n_before + story->n_saves; i++) {
        struct saved save = saved_at(story, i);
        is_right =
            is_right || (step == save.step && text != NULL && strcmp(text, manifest_for(save.step, save.version)) == 0);
    }
    /* A step that is saved again exists in two versions; LATEST may name it while the second is going on. */
    check_root(simdisk_os(disk), problem, sizeof problem);
    if (!is_right || problem[0] != '\0') {
        char *tree = simdisk_tree(disk, "");
        fail_msg("%s, %s, %zu durable: a load gives %" PRId64 "; %s\n%s\nLATEST: %s", story->name, when, durable, step,
                 problem, tree, simdisk_has(disk, ROOT "/LATEST") ? simdisk_text(disk, ROOT "/LATEST") : "none");
    }
    free(text);
}

/* A new process goes on: it saves, and the root is clean. */
static void
check_recovery(const struct story *story, struct simdisk *disk)
{
    struct toy toy;
    toy_init(&toy, 0);
    simdisk_lack(disk, story->lacking);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = story->keep));
    save_step(run, &toy, 7, 7);
    close_run(run);
    toy_release(&toy);
    assert_root_holds(simdisk_os(disk));
    assert_root_is_clean(simdisk_os(disk));
    assert_int_equal(simdisk_open_handles(disk), 0);
}

/* Method: cut power at call 0, 1, 2 ... of each story, with many seeds for what survives; stop at the first run without a cut. */
static void
power_is_lost_at_every_call(void **state)
{
    (void)state;
    unsigned cuts = 0;
    for (size_t s = 0; s < STORIES; s++) {
        const struct story *story = &stories[s];
        struct simdisk *model = disk_of(story);
        bool was_cut = true;
        for (unsigned nth = 0; was_cut; nth++) {
            for (unsigned seed = 0; seed < story->seeds && was_cut; seed += THINNED) {
                struct simdisk *disk = simdisk_clone(model);
                simdisk_lack(disk, story->lacking);
                simdisk_cut_power_at(disk, nth);
                size_t durable = live(story, disk, simdisk_os(disk));
                was_cut = simdisk_reboot(disk, seed * 1000 + nth);
                cuts++;
                check_load(story, disk, durable, "cut at a call");
                if (seed % 8 == 0)
                    check_recovery(story, disk);
                simdisk_free(disk);
            }
        }
        simdisk_free(model);
    }
    print_message("%u cuts\n", cuts);
}

/* Goal: a second loss while the first is being mended. */
static void
power_is_lost_again(void **state)
{
    (void)state;
    for (size_t s = 0; s < STORIES; s++) {
        const struct story *story = &stories[s];
        struct simdisk *model = disk_of(story);
        bool was_cut = true;
        for (unsigned nth = 0; was_cut; nth += 5 * THINNED) {
            struct simdisk *disk = simdisk_clone(model);
            simdisk_lack(disk, story->lacking);
            simdisk_cut_power_at(disk, nth);
            size_t durable = live(story, disk, simdisk_os(disk));
            was_cut = simdisk_reboot(disk, nth);
            for (unsigned second = 0; second < 90; second += 1 + (nth + second) % 5) {
                struct simdisk *again = simdisk_clone(disk);
                struct toy toy;
                struct pawl_run *run = NULL;
                struct pawl_run_options options = PAWL_RUN_OPTIONS(.keep = story->keep);
                char problem[256];
                char *text = NULL;
                toy_init(&toy, 7);
                simdisk_lack(again, story->lacking);
                simdisk_cut_power_at(again, second);
                bool is_durable =
                    pawl_run_open_os(simdisk_os(again), PAWL_STR(ROOT), &options, &run, NULL) == PAWL_OK &&
                    pawl_run_save(run, toy.state, 7, NULL, NULL) == PAWL_OK;
                (void)pawl_run_close(run, NULL);
                bool was_cut_again = simdisk_reboot(again, nth * 100 + second);
                check_root(simdisk_os(again), problem, sizeof problem);
                if (problem[0] != '\0')
                    fail_msg("%s, cut at %u and at %u: %s", story->name, nth, second, problem);
                int64_t step = newest_of(simdisk_os(again), again, &text);
                assert_true(!is_durable || step == 7);
                if (step != 7)
                    check_load(story, again, durable, "cut twice");
                free(text);
                toy_release(&toy);
                simdisk_free(again);
                if (!was_cut_again)
                    break;
            }
            simdisk_free(disk);
        }
        simdisk_free(model);
    }
}

/*
 * Goal: a call fails and then power is lost: taking a save back must not leave half of anything on the disk.
 * Method: the n-th call fails (once, or all from then on), the process goes on, power goes right after.
 */
static void
failure_then_power_loss(void **state)
{
    (void)state;
    for (size_t s = 0; s < STORIES; s++) {
        const struct story *story = &stories[s];
        struct simdisk *model = disk_of(story);
        for (unsigned which = 0; which < 2; which++) {
            bool was_met = true;
            for (unsigned nth = 0; was_met; nth++) {
                for (unsigned seed = 0; seed < 6 && was_met; seed += THINNED) {
                    struct simdisk *disk = simdisk_clone(model);
                    simdisk_lack(disk, story->lacking);
                    simdisk_fail(disk, SIM_ANY, nth, which == 0 ? 0 : 1000000, EIO);
                    size_t durable = live(story, disk, simdisk_os(disk));
                    was_met = simdisk_fault_was_met(disk);
                    (void)simdisk_reboot(disk, seed + 10 * nth);
                    check_load(story, disk, durable, "cut after a failure");
                    if (seed == 0)
                        check_recovery(story, disk);
                    simdisk_free(disk);
                }
            }
        }
        simdisk_free(model);
    }
}

/*
 * Goal: a process is killed, another goes on with what it sees, and then power is lost: what one sees after a kill need not be
 * what the disk has. Method: no call reaches the disk from the n-th on, as if the process were gone; a new one saves and is cut at its k-th call.
 */
static void
kill_then_power_loss(void **state)
{
    (void)state;
    for (size_t s = 0; s < STORIES; s++) {
        const struct story *story = &stories[s];
        struct simdisk *model = disk_of(story);
        bool was_met = true;
        for (unsigned nth = 0; was_met; nth++) {
            for (unsigned second = nth % (5 * THINNED); second < 70; second += 5 * THINNED) {
                struct simdisk *disk = simdisk_clone(model);
                struct toy toy;
                struct pawl_run *run = NULL;
                struct pawl_run_options options = PAWL_RUN_OPTIONS(.keep = story->keep);
                char problem[256];
                char *text = NULL;
                simdisk_lack(disk, story->lacking);
                struct faultos *faults = faultos_new(simdisk_os(disk));
                faultos_fail(faults, SIM_ANY, nth, 1000000, ENODEV);
                size_t durable = live(story, disk, faultos_os(faults));
                was_met = faultos_was_met(faults);
                faultos_free(faults);
                /* The step that was going on, whose temporary may be there, or another. */
                int64_t next = nth % 2 == 0 && durable < story->n_saves ? story->saves[durable].step : 7;
                toy_init(&toy, 7);
                simdisk_cut_power_at(disk, second);
                bool is_durable = pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, NULL) == PAWL_OK &&
                                  pawl_run_save(run, toy.state, next, NULL, NULL) == PAWL_OK;
                (void)pawl_run_close(run, NULL);
                bool was_cut = simdisk_reboot(disk, nth * 100 + second);
                check_root(simdisk_os(disk), problem, sizeof problem);
                if (problem[0] != '\0')
                    fail_msg("%s, killed at %u, cut at %u: %s", story->name, nth, second, problem);
                int64_t step = newest_of(simdisk_os(disk), disk, &text);
                bool is_new = step == next && text != NULL && strcmp(text, manifest_for(next, 7)) == 0;
                assert_true(!is_durable || is_new);
                if (!is_new)
                    check_load(story, disk, durable, "cut after a kill");
                free(text);
                toy_release(&toy);
                simdisk_free(disk);
                if (!was_cut)
                    break;
            }
        }
        simdisk_free(model);
    }
}

/*
 * Goal: the same for every state that a crash can leave, not a sample. Method: from the trace of a whole story, right before each operation:
 * all subsets of the pending ones up to 2^8, beyond that each single and double loss, each single survivor, and a seeded sample;
 * writes torn too. The number is printed.
 */
static void
every_crash_state(void **state)
{
    (void)state;
    unsigned long states = 0;
    for (size_t s = 0; s < STORIES; s++) {
        const struct story *story = &stories[s];
        struct simdisk *disk = disk_of(story);
        (void)live(story, disk, simdisk_os(disk));
        size_t durable = 0;
        for (size_t prefix = 0; prefix <= simdisk_trace_len(disk); prefix++) {
            unsigned char fates[256];
            size_t places[256];
            if (prefix > 0 && simdisk_mark_at(disk, prefix - 1) != NULL)
                durable++;
            size_t n = simdisk_pending(disk, prefix, places, 256);
            assert_true(n <= 256);
            unsigned long tries = n <= 8 ? 1UL << n : (unsigned long)(n * (n + 1) / 2 + n + 64);
            for (unsigned long i = prefix % THINNED; i < tries; i += THINNED) {
                uint64_t random = i * UINT64_C(0x9e3779b97f4a7c15) + prefix;
                memset(fates, SIMFATE_KEPT, sizeof fates);
                if (n <= 8) {
                    for (size_t k = 0; k < n; k++)
                        fates[k] = (i >> k & 1) != 0 ? SIMFATE_KEPT : SIMFATE_LOST;
                } else if (i < n) { /* a single survivor */
                    memset(fates, SIMFATE_LOST, sizeof fates);
                    fates[i] = SIMFATE_KEPT;
                } else if (i < n + n * (n + 1) / 2) { /* losses of one and of two */
                    size_t pair = i - n;
                    size_t first = 0;
                    while (pair >= n - first)
                        pair -= n - first++;
                    fates[first] = SIMFATE_LOST;
                    fates[first + pair] = SIMFATE_LOST;
                } else {
                    for (size_t k = 0; k < n; k++)
                        fates[k] = (unsigned char)(pawl_splitmix64_next(&random) % 2);
                }
                /* A write that survives may be torn. */
                for (size_t k = 0; k < n && i % 3 != 0; k++)
                    if (fates[k] == SIMFATE_KEPT && simdisk_can_tear(disk, places[k]))
                        fates[k] = i % 3 == 1 ? SIMFATE_TORN_SECTORS : SIMFATE_TORN_BYTES;
                struct simdisk *after = simdisk_build_state(disk, prefix, fates, n, random);
                check_load(story, after, durable, simdisk_describe(disk, prefix == 0 ? 0 : prefix - 1));
                simdisk_free(after);
                states++;
            }
        }
        assert_int_equal(durable, story->n_saves);
        simdisk_free(disk);
    }
    print_message("%lu crash states\n", states);
}

/* Goal: keep = 1: at every instant of a save at least one complete step exists, durable. */
static void
keep_one_always_has_one(void **state)
{
    (void)state;
    for (size_t s = 0; s < STORIES; s++) {
        const struct story *story = &stories[s];
        if (story->keep != 1)
            continue;
        struct simdisk *disk = disk_of(story);
        (void)live(story, disk, simdisk_os(disk));
        for (size_t prefix = 0; prefix <= simdisk_trace_len(disk); prefix++) {
            size_t n = simdisk_pending(disk, prefix, NULL, 0);
            struct simdisk *after = simdisk_build_state(disk, prefix, NULL, n, 1); /* all that can be lost is */
            char *text = NULL;
            assert_true(newest_of(simdisk_os(after), after, &text) >= 1);
            free(text);
            simdisk_free(after);
        }
        simdisk_free(disk);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_is_lost_at_every_call), cmocka_unit_test(power_is_lost_again),
        cmocka_unit_test(failure_then_power_loss),     cmocka_unit_test(kill_then_power_loss),
        cmocka_unit_test(every_crash_state),           cmocka_unit_test(keep_one_always_has_one),
    };
    return cmocka_run_group_tests(tests, NULL, free_manifests);
}
