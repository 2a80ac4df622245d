/* checkpoint/save.c under failures: every operation of a save fails once, in every way, and from some point on. */
#include "unit/save_support.h"

#include <errno.h>
#include "sim/faultos.h"

/* A root as it is before, and a save into it. */
struct scenario {
    const char *name;
    struct saved before[4];
    size_t n_before;
    unsigned lacking;
    int64_t keep;
    struct saved save;
    const char *leftover; /* a file that a crashed writer left, NULL: none */
};

static const struct scenario scenarios[] = {
    { "first save", { { 0, 0 } }, 0, 0, 0, { 1, 1 }, NULL },
    { "second save", { { 1, 1 } }, 1, 0, 0, { 2, 2 }, NULL },
    { "replacement by exchange", { { 1, 1 }, { 2, 2 } }, 2, 0, 0, { 2, 3 }, NULL },
    { "replacement by .prev", { { 1, 1 }, { 2, 2 } }, 2, SIM_EXCHANGE, 0, { 2, 3 }, NULL },
    { "replacement of an older step", { { 1, 1 }, { 2, 2 } }, 2, 0, 0, { 1, 3 }, NULL },
    { "retention", { { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3, 0, 1, { 4, 4 }, NULL },
    { "a crashed writer's step", { { 1, 1 } }, 1, 0, 0, { 2, 2 }, ROOT "/step-000002.tmp/sub/x" },
    { "no-replace is lacking", { { 1, 1 } }, 1, SIM_NO_REPLACE | SIM_RESERVE, 0, { 2, 2 }, NULL },
};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)

static struct simdisk *
disk_of(const struct scenario *scenario)
{
    struct simdisk *disk = disk_with(scenario->before, scenario->n_before);
    if (scenario->n_before == 0)
        simdisk_put_dir(disk, ROOT);
    if (scenario->leftover != NULL)
        simdisk_put_text(disk, scenario->leftover, "half of it");
    simdisk_lack(disk, scenario->lacking);
    return disk;
}

/* What the newest step must be when the save did not happen, and when it did. */
struct expected {
    int64_t old_step;
    char *old_manifest;
    char *new_manifest;
};

static struct expected
expect(const struct scenario *scenario)
{
    struct expected expected = { -1, NULL, manifest_of(scenario->save.step, scenario->save.version) };
    if (scenario->n_before != 0) {
        const struct saved *last = &scenario->before[scenario->n_before - 1];
        expected.old_step = last->step;
        expected.old_manifest = manifest_of(last->step, last->version);
    }
    return expected;
}

static void
assert_newest(struct simdisk *disk, int64_t step, const char *manifest)
{
    char *text = NULL;
    assert_int_equal(newest_of(simdisk_os(disk), disk, &text), step);
    if (manifest == NULL)
        assert_null(text);
    else
        assert_string_equal(text, manifest);
    free(text);
}

static void
never_fail(struct simdisk *disk)
{
    simdisk_fail(disk, SIM_ANY, 100000000, 0, EIO);
}

/* After the fault is over: the next save of the same handle works, and leaves a clean root. */
static void
assert_next_save_works(struct simdisk *disk, struct pawl_run *run, struct toy *toy)
{
    save_step(run, toy, 90, 9);
    close_run(run);
    assert_int_equal(simdisk_open_handles(disk), 0);
    assert_int_equal(simdisk_open_maps(disk), 0);
    assert_root_holds(simdisk_os(disk));
    assert_root_is_clean(simdisk_os(disk));
    char *manifest = manifest_of(90, 9);
    assert_newest(disk, 90, manifest);
    free(manifest);
}

/*
 * Goal: whatever operation of a save fails, and however: the call fails and the root is as before (or LATEST was changed and only
 * its last sync failed: then all is new), or it was past its commit and is durable; nothing leaks, and the next save works.
 * Method: the n-th call of the table fails, for n = 0, 1, 2 ... until a save meets no fault.
 */
static void
one_operation_fails(void **state)
{
    (void)state;
    const int codes[] = { EIO, ENOSPC, EINTR, EMFILE, EACCES, 0 /* a short write or read */ };
    unsigned runs = 0;
    unsigned failures = 0;
    for (size_t s = 0; s < SCENARIOS; s++) {
        const struct scenario *scenario = &scenarios[s];
        struct simdisk *model = disk_of(scenario);
        struct expected expected = expect(scenario);
        struct toy toy;
        toy_init(&toy, 0);
        for (size_t c = s % THINNED % 3; c < sizeof codes / sizeof *codes; c += THINNED) {
            bool was_met = true;
            for (unsigned nth = 0; was_met; nth++) {
                struct simdisk *disk = simdisk_clone(model);
                struct pawl_error err = PAWL_ERROR_INIT;
                simdisk_lack(disk, scenario->lacking);
                struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = scenario->keep));
                uint64_t before = simdisk_fingerprint(disk);
                char *tree = simdisk_tree(disk, ROOT);
                toy_set(&toy, scenario->save.version);
                simdisk_fail(disk, SIM_ANY, nth, 0, codes[c]);
                enum pawl_status st = pawl_run_save(run, toy.state, scenario->save.step, NULL, &err);
                was_met = simdisk_fault_was_met(disk);
                never_fail(disk);
                runs++;
                assert_root_holds(simdisk_os(disk));
                if (st != PAWL_OK) {
                    char latest[40];
                    const char *now = simdisk_text(disk, ROOT "/LATEST");
                    (void)snprintf(latest, sizeof latest, "step-%06" PRId64 "\n", scenario->save.step);
                    bool is_published =
                        now != NULL && strcmp(now, latest) == 0 && expected.old_step != scenario->save.step;
                    failures++;
                    assert_true(err.message[0] != '\0');
                    assert_true(err.system_errno == codes[c] || codes[c] == 0);
                    char *after = simdisk_tree(disk, ROOT);
                    if (is_published) {
                        assert_newest(disk, scenario->save.step, expected.new_manifest);
                    } else {
                        assert_newest(disk, expected.old_step, expected.old_manifest);
                        /* A stale directory of a crashed writer may be gone. */
                        if (scenario->leftover == NULL && simdisk_fingerprint(disk) != before)
                            fail_msg("%s, call %u, %s: the root was\n%s\nand is\n%s\nafter: %s", scenario->name, nth,
                                     strerror(codes[c]), tree, after, err.message);
                    }
                    free(after);
                } else {
                    assert_newest(disk, scenario->save.step, expected.new_manifest);
                }
                free(tree);
                assert_next_save_works(disk, run, &toy);
                simdisk_free(disk);
            }
        }
        toy_release(&toy);
        free(expected.old_manifest);
        free(expected.new_manifest);
        simdisk_free(model);
    }
    print_message("%u saves, %u of them failed\n", runs, failures);
    assert_true(failures > 1000 / THINNED && failures < runs);
}

/*
 * Goal: a disk that fails from some operation on, for good: the old step or the new one, never anything else; and once it works again,
 * so does the same handle. Taking back fails too here.
 */
static void
all_operations_fail_from_then_on(void **state)
{
    (void)state;
    const int codes[] = { EIO, ENOSPC };
    for (size_t s = 0; s < SCENARIOS; s++) {
        const struct scenario *scenario = &scenarios[s];
        struct simdisk *model = disk_of(scenario);
        struct expected expected = expect(scenario);
        struct toy toy;
        toy_init(&toy, 0);
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
            bool was_met = true;
            for (unsigned nth = 0; was_met; nth++) {
                struct simdisk *disk = simdisk_clone(model);
                struct heard heard = { .n = 0 };
                char *text = NULL;
                simdisk_lack(disk, scenario->lacking);
                struct pawl_run *run = open_run(
                    simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = scenario->keep, .warning = hear, .context = &heard));
                toy_set(&toy, scenario->save.version);
                simdisk_fail(disk, SIM_ANY, nth, 1000000, codes[c]);
                enum pawl_status st = pawl_run_save(run, toy.state, scenario->save.step, NULL, NULL);
                was_met = simdisk_fault_was_met(disk);
                never_fail(disk);
                assert_root_holds(simdisk_os(disk));
                int64_t step = newest_of(simdisk_os(disk), disk, &text);
                bool is_new = step == scenario->save.step && text != NULL && strcmp(text, expected.new_manifest) == 0;
                bool is_old = step == expected.old_step &&
                              (text == NULL ? expected.old_manifest == NULL : strcmp(text, expected.old_manifest) == 0);
                /* With nothing before, a complete step that was never declared done is what a load takes. */
                assert_true(is_new || is_old);
                assert_true(st != PAWL_OK || is_new);
                free(text);
                assert_next_save_works(disk, run, &toy);
                simdisk_free(disk);
            }
        }
        toy_release(&toy);
        free(expected.old_manifest);
        free(expected.new_manifest);
        simdisk_free(model);
    }
}

/*
 * Goal: a call that was made and then denied (an answer got lost, a signal came late) costs no step. Method: the n-th rename, creation
 * or removal is made and answers an error; the newest step is the old or the new one, and the next save works.
 */
static void
calls_are_made_and_denied(void **state)
{
    (void)state;
    const enum sim_op ops[] = { SIM_RENAME,      SIM_DIR_CREATE, SIM_FILE_CREATE,
                                SIM_REMOVE_FILE, SIM_REMOVE_DIR, SIM_DIR_SYNC };
    const int codes[] = { EINTR, EIO, ENOENT };
    for (size_t s = 0; s < SCENARIOS; s++) {
        const struct scenario *scenario = &scenarios[s];
        struct simdisk *model = disk_of(scenario);
        struct expected expected = expect(scenario);
        struct toy toy;
        toy_init(&toy, 0);
        for (size_t c = 0; c < 18; c += THINNED) {
            bool was_met = true;
            for (unsigned nth = 0; was_met; nth++) {
                struct simdisk *disk = simdisk_clone(model);
                char *text = NULL;
                simdisk_lack(disk, scenario->lacking);
                struct faultos *faults = faultos_new(simdisk_os(disk));
                struct pawl_run *run = open_run(faultos_os(faults), PAWL_RUN_OPTIONS(.keep = scenario->keep));
                toy_set(&toy, scenario->save.version);
                faultos_fail_after(faults, ops[c / 3], nth, codes[c % 3]);
                enum pawl_status st = pawl_run_save(run, toy.state, scenario->save.step, NULL, NULL);
                was_met = faultos_was_met(faults);
                faultos_fail_after(faults, SIM_ANY, 100000000, EIO);
                assert_root_holds(simdisk_os(disk));
                int64_t step = newest_of(simdisk_os(disk), disk, &text);
                bool is_new = step == scenario->save.step && text != NULL && strcmp(text, expected.new_manifest) == 0;
                bool is_old = step == expected.old_step &&
                              (text == NULL ? expected.old_manifest == NULL : strcmp(text, expected.old_manifest) == 0);
                assert_true(is_new || (is_old && st != PAWL_OK));
                free(text);
                assert_next_save_works(disk, run, &toy);
                faultos_free(faults);
                simdisk_free(disk);
            }
        }
        toy_release(&toy);
        free(expected.old_manifest);
        free(expected.new_manifest);
        simdisk_free(model);
    }
}

/* Goal: a root is opened or not; whatever fails, nothing leaks and the next attempt works. */
static void
opening_fails_at_every_call(void **state)
{
    (void)state;
    const int codes[] = { EIO, EMFILE, EINTR };
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        bool was_met = true;
        for (unsigned nth = 0; was_met; nth++) {
            struct simdisk *disk = simdisk_new();
            struct pawl_run *run = NULL;
            struct pawl_error err = PAWL_ERROR_INIT;
            struct pawl_run_options options = PAWL_RUN_OPTIONS(0);
            simdisk_fail(disk, SIM_ANY, nth, 0, codes[c]);
            enum pawl_status st = pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err);
            was_met = simdisk_fault_was_met(disk);
            never_fail(disk);
            if (st != PAWL_OK) {
                assert_null(run);
                assert_true(strncmp(err.message, "open run 'root': ", 17) == 0);
                assert_int_equal(simdisk_open_handles(disk), 0);
                assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err), PAWL_OK);
            }
            close_run(run);
            assert_int_equal(simdisk_open_handles(disk), 0);
            simdisk_free(disk);
        }
    }
}

/*
 * Goal: a sync that failed is final: the bytes are written again to a new file. Method: the disk drops what was pending when
 * a sync fails, and says "done" to later ones; after the next save and a loss of power the step must be whole.
 */
static void
failed_sync_is_final(void **state)
{
    (void)state;
    for (unsigned nth = 0; nth < 6; nth++) {
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct toy toy;
        toy_init(&toy, 2);
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
        simdisk_fail(disk, SIM_FILE_SYNC, nth, 0, EIO);
        assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, NULL), PAWL_IO);
        save_step(run, &toy, 2, 2);
        close_run(run);
        (void)simdisk_reboot(disk, nth);
        char *manifest = manifest_of(2, 2);
        assert_newest(disk, 2, manifest);
        assert_root_holds(simdisk_os(disk));
        free(manifest);
        toy_release(&toy);
        simdisk_free(disk);
    }
}

/* ---- a filesystem that is mounted read-only while a run is open ---- */

static struct pawl_os read_only;

static int
no_name(void *context, struct pawl_os_dir *dir, const char *name)
{
    (void)context;
    (void)dir;
    (void)name;
    return EROFS;
}

static int
no_file(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_file **ret_file)
{
    (void)ret_file;
    return no_name(context, dir, name);
}

static int
no_rename(void *context, struct pawl_os_dir *from_dir, const char *from, struct pawl_os_dir *to_dir, const char *to,
          enum pawl_os_rename how)
{
    (void)to_dir;
    (void)to;
    (void)how;
    return no_name(context, from_dir, from);
}

/*
 * Goal: a save says that the filesystem is read-only, at what it wanted to do, and what can be done; not that something could not be removed which was
 * never there. Method: from some point on the disk answers EROFS to all that would change a name, whether the name is there or not, as Linux does.
 */
static void
a_read_only_filesystem_is_told_as_such(void **state)
{
    (void)state;
    for (int has_leftover = 0; has_leftover < 2; has_leftover++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct toy toy;
        toy_init(&toy, 2);
        read_only = *simdisk_os(disk);
        struct pawl_run *run = open_run(&read_only, PAWL_RUN_OPTIONS(0));
        if (has_leftover)
            simdisk_put_text(disk, ROOT "/step-000002.tmp/x", "half of it");
        read_only.dir_create = no_name;
        read_only.remove_file = no_name;
        read_only.remove_dir = no_name;
        read_only.file_create = no_file;
        read_only.rename = no_rename;
        assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_PERMISSION);
        assert_string_equal(err.message, has_leftover
                                             ? "save step 2: remove 'root/step-000002.tmp': Read-only file system"
                                             : "save step 2: create directory 'root/step-000002.tmp': Read-only file "
                                               "system");
        assert_non_null(strstr(err.hint, "mounted read-only"));
        char *manifest = manifest_of(1, 1);
        assert_newest(disk, 1, manifest);
        free(manifest);
        struct pawl_dir root = PAWL_DIR_INIT;
        assert_int_equal(pawl_dir_open_path(&root, &read_only, ROOT, &err), PAWL_OK);
        assert_int_equal(pawl_dir_remove_file(&root, "nothing", &err), PAWL_NO_FILE);
        assert_int_equal(pawl_dir_remove_file(&root, "LATEST", &err), PAWL_PERMISSION);
        assert_int_equal(pawl_dir_remove_tree(&root, "nothing", &err), PAWL_OK);
        pawl_dir_release(&root);
        /* Mounted for writing again, the run goes on. */
        read_only = *simdisk_os(disk);
        save_step(run, &toy, 2, 2);
        close_run(run);
        assert_root_holds(simdisk_os(disk));
        toy_release(&toy);
        simdisk_free(disk);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_operation_fails),       cmocka_unit_test(all_operations_fail_from_then_on),
        cmocka_unit_test(calls_are_made_and_denied), cmocka_unit_test(opening_fails_at_every_call),
        cmocka_unit_test(failed_sync_is_final),      cmocka_unit_test(a_read_only_filesystem_is_told_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
