/* checkpoint/run.c: opening a root, its lock, its process, its modes and its paths. */
#include "unit/save_support.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit/os_fixture.h"

static void
bad_options_make_no_root(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    struct pawl_run_options options = PAWL_RUN_OPTIONS(.keep = -1);
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "keep is -1, expected 0 (all) or more");
    options = PAWL_RUN_OPTIONS(.profile = (enum pawl_profile)9);
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "9 is no profile");
    options = PAWL_RUN_OPTIONS(0);
    options.size = 8;
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(""), NULL, &run, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the root's path is empty");
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR("a\0b"), NULL, &run, &err), PAWL_ARGUMENT);
    assert_null(run);
    assert_int_equal(simdisk_calls(disk, SIM_ANY), 0);
    simdisk_free(disk);
}

static void
weak_filesystem_is_named(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct heard heard = { .n = 0 };
    simdisk_set_weak_kind(disk, "nfs");
    close_run(open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.warning = hear, .context = &heard)));
    assert_int_equal(heard.n, 1);
    assert_string_equal(heard.messages[0], "the root is on nfs: what is durable there is what its server keeps");
    simdisk_free(disk);
}

/* ---- the host: modes, processes, paths ---- */

static struct pawl_run *
open_host(const char *root, struct pawl_run_options options)
{
    struct pawl_run *run = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_run_open_z(root, &options, &run, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return run;
}

static void
modes_follow_the_umask(void **state)
{
    (void)state;
    const struct {
        mode_t mask;
        unsigned file, dir;
    } cases[] = { { 022, 0644, 0755 }, { 007, 0660, 0770 } };
    for (size_t i = 0; i < 2; i++) {
        struct toy toy;
        toy_init(&toy, 1);
        (void)umask(cases[i].mask);
        struct pawl_run *run = open_host("modes", PAWL_RUN_OPTIONS(0));
        save_step(run, &toy, 1, 1);
        close_run(run);
        (void)umask(022);
        assert_int_equal(host_mode("modes"), cases[i].dir);
        assert_int_equal(host_mode("modes/step-000001"), cases[i].dir);
        assert_int_equal(host_mode("modes/step-000001/model.safetensors"), cases[i].file);
        assert_int_equal(host_mode("modes/step-000001/MANIFEST.json"), cases[i].file);
        assert_int_equal(host_mode("modes/LATEST"), cases[i].file);
        assert_int_equal(system("rm -r modes"), 0);
        toy_release(&toy);
    }
}

/* Goal: a set-group-id root hands its group, and the bit, on to what is made in it. */
static void
set_group_id_is_passed_on(void **state)
{
    (void)state;
    struct toy toy;
    struct stat root, step;
    toy_init(&toy, 1);
    assert_int_equal(mkdir("shared", 0775), 0);
    assert_int_equal(chmod("shared", 02775), 0);
    struct pawl_run *run = open_host("shared", PAWL_RUN_OPTIONS(0));
    save_step(run, &toy, 1, 1);
    close_run(run);
    assert_int_equal(stat("shared", &root), 0);
    assert_int_equal(stat("shared/step-000001", &step), 0);
    assert_int_equal(step.st_mode & S_ISGID, S_ISGID);
    assert_int_equal(step.st_gid, root.st_gid);
    toy_release(&toy);
}

/* Goal: a second process is told "busy" at once and by whom, the first goes on; and the second gets the root once it is free. */
static void
second_writer_is_busy(void **state)
{
    (void)state;
    struct toy toy;
    int go[2], told[2];
    char byte = 0;
    toy_init(&toy, 1);
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(told), 0);
    pid_t parent = getpid();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct pawl_run *run = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        char expected[128];
        (void)snprintf(expected, sizeof expected, "open run 'busy': lock directory 'busy': process %d holds it",
                       (int)parent);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        if (pawl_run_open_z("busy", NULL, &run, &err) != PAWL_BUSY || strcmp(err.message, expected) != 0)
            _exit(2);
        if (write(told[1], "b", 1) != 1)
            _exit(3);
        if (pawl_run_open_z("busy", &PAWL_RUN_OPTIONS(.busy = PAWL_BUSY_WAIT), &run, &err) != PAWL_OK)
            _exit(4);
        /* The same step, and another. */
        if (pawl_run_save(run, toy.state, 1, NULL, &err) != PAWL_OK ||
            pawl_run_save(run, toy.state, 2, NULL, &err) != PAWL_OK || pawl_run_close(run, &err) != PAWL_OK)
            _exit(5);
        _exit(0);
    }
    struct pawl_run *run = open_host("busy", PAWL_RUN_OPTIONS(0));
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(read(told[0], &byte, 1), 1);
    save_step(run, &toy, 1, 1); /* while the other waits */
    close_run(run);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct pawl_report *report = NULL;
    char latest[32];
    size_t n = 0;
    assert_int_equal(pawl_ckpt_list(PAWL_STR("busy"), PAWL_TRUST_FULL, &report, latest, NULL), PAWL_OK);
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 2);
    assert_true(verdicts[0].is_ok && verdicts[1].is_ok);
    assert_string_equal(latest, "step-000002");
    pawl_report_free(report);
    toy_release(&toy);
}

/* Goal: in a forked child every call answers "wrong process", and what the child does leaves the parent's lock and save alone. */
static void
forked_child_is_another_process(void **state)
{
    (void)state;
    struct toy toy;
    toy_init(&toy, 1);
    struct pawl_run *run = open_host("fork", PAWL_RUN_OPTIONS(0));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct pawl_error err = PAWL_ERROR_INIT;
        bool has;
        int64_t step;
        int wrong = 0;
        wrong += pawl_run_save(run, toy.state, 1, NULL, &err) != PAWL_WRONG_PROCESS;
        wrong += pawl_run_has_steps(run, &has, &err) != PAWL_WRONG_PROCESS;
        wrong += pawl_run_restore(run, toy.state, &step, NULL, &err) != PAWL_WRONG_PROCESS;
        wrong += pawl_run_close(run, &err) != PAWL_WRONG_PROCESS;
        _exit(wrong);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    struct pawl_run *other = NULL;
    assert_int_equal(pawl_run_open_z("fork", NULL, &other, NULL), PAWL_BUSY);
    save_step(run, &toy, 1, 1);
    close_run(run);
    toy_release(&toy);
}

/* Goal: one root whatever its spelling, and a change of the working directory between two saves changes nothing. */
static void
paths_of_all_kinds(void **state)
{
    (void)state;
    const char *const spellings[] = { "deep/../paths", "./paths/", "paths//", "link", "with space/\xc3\xbc \n" };
    assert_int_equal(mkdir("deep", 0755), 0);
    assert_int_equal(mkdir("elsewhere", 0755), 0);
    assert_int_equal(mkdir("with space", 0755), 0);
    assert_int_equal(mkdir("paths", 0755), 0);
    assert_int_equal(symlink("paths", "link"), 0);
    struct toy toy;
    toy_init(&toy, 1);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        char manifest[128];
        struct pawl_run *run = open_host(spellings[i], PAWL_RUN_OPTIONS(0));
        save_step(run, &toy, 1, 1);
        assert_int_equal(chdir("elsewhere"), 0);
        save_step(run, &toy, (int64_t)i + 2, 1);
        assert_int_equal(chdir(".."), 0);
        close_run(run);
        (void)snprintf(manifest, sizeof manifest, "%s/step-%06zu/MANIFEST.json", spellings[i], i + 2);
        assert_non_null(host_text(manifest));
    }
    assert_string_equal(host_text("paths/LATEST"), "step-000005\n");
    assert_int_equal(rmdir("elsewhere"), 0); /* empty */
    toy_release(&toy);
}

static void
has_steps_sees_all_kinds(void **state)
{
    (void)state;
    const struct {
        const char *path;
        bool has;
    } cases[] = { { NULL, false },
                  { ROOT "/step-000001/x", true },
                  { ROOT "/step-000001.bad/x", true },
                  { ROOT "/step-000001.prev/x", true },
                  { ROOT "/step-000001.tmp/x", false },
                  { ROOT "/step-1/x", false } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct simdisk *disk = simdisk_new();
        bool has = !cases[i].has;
        if (cases[i].path != NULL)
            simdisk_put_text(disk, cases[i].path, "x");
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
        assert_int_equal(pawl_run_has_steps(run, &has, NULL), PAWL_OK);
        assert_int_equal(has, cases[i].has);
        close_run(run);
        simdisk_free(disk);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weak_filesystem_is_named),
        cmocka_unit_test(bad_options_make_no_root),
        cmocka_unit_test(has_steps_sees_all_kinds),
        cmocka_unit_test_setup_teardown(modes_follow_the_umask, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(set_group_id_is_passed_on, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(second_writer_is_busy, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(forked_child_is_another_process, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(paths_of_all_kinds, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
