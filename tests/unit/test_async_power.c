/*
 * Goal: a save in the background is as safe as any: whatever the machine does at any instant, a load gives the last step that was told to be
 * durable or the one in flight, whole, with the values of its call. Method: as test_save_power.c, with stories of saves that follow each
 * other back to back, the state changing while they are written, and with saves that are canceled on the way. The thread is the only one that uses
 * the disk while it writes, so each story makes the same calls in the same order every time.
 */
#include "unit/async_support.h"

#include <errno.h>
#include "pawl/pcg32.h"

struct story {
    const char *name;
    enum pawl_snapshot snapshot;
    int64_t keep;
    struct saved saves[4];
    size_t n_saves;
    const char *canceled_at; /* the second save is given up there; NULL: none is */
    unsigned lacking;
};

static const struct story stories[] = {
    { "copies back to back", PAWL_SNAPSHOT_COPY, 1, { { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3, NULL, 0 },
    { "a step saved again", PAWL_SNAPSHOT_COPY, 0, { { 1, 1 }, { 1, 2 }, { 2, 3 } }, 3, NULL, 0 },
    { "borrowed", PAWL_SNAPSHOT_BORROW, 2, { { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3, NULL, 0 },
    { "canceled", PAWL_SNAPSHOT_COPY, 0, { { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3, "save/before-rename", 0 },
    { "again, no exchange", PAWL_SNAPSHOT_COPY, 1, { { 1, 1 }, { 1, 2 } }, 2, NULL, SIM_EXCHANGE },
};

#define STORIES (sizeof stories / sizeof *stories)
#define STEPS_MAX 4
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

/* ---- living a story ---- */

struct life {
    struct simdisk *disk;
    const char *canceled_at; /* of the save in flight */
    _Atomic(struct pawl_save *) save;
    size_t durable;
};

/* From the save's thread, right behind the last call of the protocol. */
static void
mark_durable(void *context, struct pawl_save *save)
{
    struct life *life = context;
    if (pawl_save_wait(save, 0, NULL) != PAWL_OK)
        return;
    simdisk_mark(life->disk, "durable");
    life->durable++;
}

static int
cancel_here(void *context, const char *name)
{
    struct life *life = context;
    struct pawl_save *save;
    if (life->canceled_at == NULL || strcmp(name, life->canceled_at) != 0)
        return 0;
    while ((save = atomic_load(&life->save)) == NULL)
        ; /* the call is about to return */
    (void)pawl_save_cancel(save, NULL, NULL);
    return 0;
}

/* Returns how many saves were told to be durable. */
static size_t
live(const struct story *story, struct simdisk *disk)
{
    struct life life = { .disk = disk };
    struct pawl_run *run = NULL;
    struct pawl_run_options options =
        PAWL_RUN_OPTIONS(.keep = story->keep, .snapshot = story->snapshot, .saved = mark_durable,
                         .failpoint = cancel_here, .context = &life);
    struct toy toy;
    simdisk_lack(disk, story->lacking);
    toy_init(&toy, 0);
    if (pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, NULL) == PAWL_OK) {
        for (size_t i = 0; i < story->n_saves; i++) {
            struct pawl_save *save = NULL;
            if (pawl_run_wait(run, NULL) != PAWL_OK) /* nothing of the life is touched while a save uses it */
                break;
            life.canceled_at = i == 1 ? story->canceled_at : NULL;
            atomic_store(&life.save, NULL);
            toy_set(&toy, story->saves[i].version);
            if (pawl_run_save_async(run, toy.state, story->saves[i].step, NULL, &save, NULL) != PAWL_OK)
                break;
            atomic_store(&life.save, save);
            (void)pawl_save_wait_released(save, -1, NULL);
            toy_set(&toy, 7); /* what the loop does meanwhile */
            if (life.canceled_at != NULL)
                (void)pawl_save_wait(save, -1, NULL);
            pawl_save_release(save);
        }
        (void)pawl_run_close(run, NULL);
    }
    toy_release(&toy);
    return life.durable;
}

/* Which of the story's saves a load may give once `durable` of them were told; those that were given up count for nothing. */
static void
check_load(const struct story *story, struct simdisk *disk, size_t durable, const char *when)
{
    char *text = NULL;
    char problem[256];
    struct saved saves[4];
    size_t n = 0;
    for (size_t i = 0; i < story->n_saves; i++)
        if (i != 1 || story->canceled_at == NULL)
            saves[n++] = story->saves[i];
    int64_t step = newest_of(simdisk_os(disk), disk, &text);
    bool is_right = durable == 0 && step == -1;
    for (size_t i = durable == 0 ? 0 : durable - 1; i <= durable && i < n; i++)
        is_right = is_right || (step == saves[i].step && text != NULL &&
                                strcmp(text, manifest_for(saves[i].step, saves[i].version)) == 0);
    check_root(simdisk_os(disk), problem, sizeof problem);
    if (!is_right || problem[0] != '\0') {
        char *tree = simdisk_tree(disk, "");
        fail_msg("%s, %s, %zu durable: a load gives %" PRId64 "; %s\n%s", story->name, when, durable, step, problem,
                 tree);
    }
    free(text);
}

/* A new process goes on, in the background too. */
static void
check_recovery(const struct story *story, struct simdisk *disk)
{
    struct toy toy;
    toy_init(&toy, 0);
    simdisk_lack(disk, story->lacking);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = story->keep));
    struct pawl_save *save = save_async(run, &toy, 7, 7);
    assert_durable(save);
    pawl_save_release(save);
    close_run(run);
    toy_release(&toy);
    assert_root_holds(simdisk_os(disk));
    assert_root_is_clean(simdisk_os(disk));
    assert_int_equal(simdisk_open_handles(disk), 0);
}

/* ---- the tests ---- */

static void
power_is_lost_at_every_call(void **state)
{
    (void)state;
    unsigned cuts = 0;
    for (size_t s = 0; s < STORIES; s++) {
        bool was_cut = true;
        for (unsigned nth = 0; was_cut; nth++) {
            for (unsigned seed = 0; seed < 8 && was_cut; seed += THINNED) {
                struct simdisk *disk = simdisk_new();
                simdisk_cut_power_at(disk, nth);
                size_t durable = live(&stories[s], disk);
                was_cut = simdisk_reboot(disk, seed * 1000 + nth);
                cuts++;
                check_load(&stories[s], disk, durable, "cut at a call");
                if (seed == 0 && nth % 3 == 0)
                    check_recovery(&stories[s], disk);
                simdisk_free(disk);
            }
        }
    }
    print_message("%u cuts\n", cuts);
}

/* Goal: the n-th call fails, for every n: the save in flight fails or not, what is there holds, nothing leaks, and the next save works. */
static void
every_call_fails(void **state)
{
    (void)state;
    unsigned failures = 0;
    for (size_t s = 0; s < STORIES; s++) {
        bool was_met = true;
        for (unsigned nth = 0; was_met; nth++) {
            struct simdisk *disk = simdisk_new();
            simdisk_fail(disk, SIM_ANY, nth, 0, nth % 2 == 0 ? EIO : ENOSPC);
            (void)live(&stories[s], disk);
            was_met = simdisk_fault_was_met(disk);
            failures += was_met;
            assert_root_holds(simdisk_os(disk));
            check_recovery(&stories[s], disk);
            simdisk_free(disk);
        }
    }
    print_message("%u failures\n", failures);
}

/* Goal: every state that a crash can leave, from the trace of a whole story: see test_save_power.c for which those are. */
static void
every_crash_state(void **state)
{
    (void)state;
    unsigned long states = 0;
    for (size_t s = 0; s < STORIES; s++) {
        struct simdisk *disk = simdisk_new();
        size_t told = live(&stories[s], disk);
        size_t durable = 0;
        assert_int_equal(told, stories[s].n_saves - (stories[s].canceled_at != NULL));
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
                for (size_t k = 0; k < n && i % 3 != 0; k++) /* a write that survives may be torn */
                    if (fates[k] == SIMFATE_KEPT && simdisk_can_tear(disk, places[k]))
                        fates[k] = i % 3 == 1 ? SIMFATE_TORN_SECTORS : SIMFATE_TORN_BYTES;
                struct simdisk *after = simdisk_build_state(disk, prefix, fates, n, random);
                check_load(&stories[s], after, durable, simdisk_describe(disk, prefix == 0 ? 0 : prefix - 1));
                simdisk_free(after);
                states++;
            }
        }
        assert_int_equal(durable, told);
        simdisk_free(disk);
    }
    print_message("%lu crash states\n", states);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_is_lost_at_every_call),
        cmocka_unit_test(every_call_fails),
        cmocka_unit_test(every_crash_state),
    };
    return end_tests(cmocka_run_group_tests(tests, NULL, free_manifests));
}
