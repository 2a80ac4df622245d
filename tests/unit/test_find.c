/* checkpoint/find.c beyond the golden roots: messages, machines that fail, and writers that are at work while a reader reads. */
#include "unit/read_support.h"

#include <errno.h>
#include "checkpoint/restore.h"
#include "checkpoint/run.h"
#include "sim/faultos.h"
#include "unit/hook_os.h"
#include "unit/save_support.h"

static const struct pawl_find_request PLAIN = { .use = NULL };

/* ---- what is said ---- */

struct answer {
    enum pawl_status st;
    struct pawl_error err;
    struct pawl_report *report;
    char name[PAWL_STEP_NAME_BYTES];
};

static struct answer
find_newest(struct simdisk *disk)
{
    struct answer answer = { .err = PAWL_ERROR_INIT, .report = pawl_report_new() };
    struct pawl_dir root = open_root(disk);
    struct pawl_step step = { 0 };
    answer.st = pawl_find_newest(&root, &PLAIN, &step, answer.report, &answer.err);
    if (answer.st == PAWL_OK)
        (void)snprintf(answer.name, sizeof answer.name, "%s", step.name.data);
    pawl_step_release(&step);
    pawl_dir_release(&root);
    assert_int_equal(simdisk_open_handles(disk), 0);
    return answer;
}

static void
nothing_complete_names_each_candidate(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    simdisk_put_text(disk, ROOT "/LATEST", "step-000020\n");
    simdisk_flip(disk, ROOT "/step-000020/model.safetensors", 100, 1);
    simdisk_remove(disk, ROOT "/step-000010/optimizer.safetensors");
    simdisk_remove(disk, ROOT "/step-000010/trainer_state.json");
    struct answer answer = find_newest(disk);
    assert_int_equal(answer.st, PAWL_NONE_COMPLETE);
    assert_string_equal(answer.err.code, "none-complete");
    assert_string_equal(answer.err.message,
                        "no step directory in 'root' is complete: step-000020: hash model.safetensors; step-000010: "
                        "missing-file optimizer.safetensors, missing-file trainer_state.json");
    assert_string_equal(answer.err.hint,
                        "newer than LATEST and never declared done: to load one, --resume 'root/step-000030'");
    assert_string_equal(answer.err.path, "root");
    pawl_report_free(answer.report);
    simdisk_free(disk);
}

static void
a_fresh_start_is_another_thing_than_nothing_complete(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    simdisk_put_dir(disk, ROOT "/step-000005.tmp");
    simdisk_put_text(disk, ROOT "/step-5", "");
    struct answer answer = find_newest(disk);
    assert_int_equal(answer.st, PAWL_NOT_FOUND);
    assert_string_equal(answer.err.message, "there is no step directory in 'root'");
    assert_string_equal(answer.err.code, "not-found");
    pawl_report_free(answer.report);

    simdisk_put_dir(disk, ROOT "/step-000005.bad");
    answer = find_newest(disk);
    assert_int_equal(answer.st, PAWL_NONE_COMPLETE);
    assert_string_equal(answer.err.message, "no step directory in 'root' is complete: there are only quarantined ones");
    pawl_report_free(answer.report);
    simdisk_free(disk);
}

static void
what_was_passed_over_says_what_to_do(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    size_t n = 0;
    simdisk_put_text(disk, ROOT "/LATEST", "step-000020\n");
    simdisk_put_dir(disk, ROOT "/step-000040.prev");
    simdisk_put_dir(disk, ROOT "/step-000030.prev");
    simdisk_flip(disk, ROOT "/step-000020/model.safetensors", 100, 1);
    struct answer answer = find_newest(disk);
    assert_int_equal(answer.st, PAWL_OK);
    assert_string_equal(answer.name, "step-000010");
    const struct pawl_str *ignored = pawl_report_names(answer.report, PAWL_NAMES_IGNORED, &n);
    assert_int_equal(n, 2); /* ascending; a .prev only where there is no step */
    assert_string_equal(ignored[0].data, "step-000030");
    assert_string_equal(ignored[1].data, "step-000040.prev");
    const struct pawl_problem *warnings = pawl_report_warnings(answer.report, &n);
    assert_int_equal(n, 3);
    assert_string_equal(warnings[0].code, "ignored");
    assert_string_equal(
        warnings[0].message,
        "newer than LATEST, never declared done and so ignored: to load it, --resume 'root/step-000030'");
    assert_string_equal(warnings[2].code, "skipped");
    assert_string_equal(warnings[2].message, "not complete, and examined again at every start until it is quarantined: "
                                             "pawl ckpt repair 'root'");
    const struct pawl_verdict *verdicts = pawl_report_verdicts(answer.report, &n);
    assert_int_equal(n, 1); /* the one that was taken is not among the skipped */
    assert_string_equal(verdicts[0].name, "step-000020");
    pawl_report_free(answer.report);
    simdisk_free(disk);
}

static void
latest_is_reported_with_what_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } CASES[] = {
        { "", "LATEST is empty" },
        { "step-000020", "LATEST says 'step-000020', which is no step's name and a newline" },
        { "step-000099\n", "LATEST names step-000099, which is not in 'root'" },
        { "../step-000020\n", "LATEST says '../step-000020\\n', which is no step's name and a newline" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct simdisk *disk = golden_disk("latest-missing");
        size_t n = 0;
        simdisk_put_text(disk, ROOT "/LATEST", CASES[i].text);
        struct answer answer = find_newest(disk);
        assert_int_equal(answer.st, PAWL_OK);
        assert_string_equal(answer.name, "step-000030");
        const struct pawl_verdict *verdicts = pawl_report_verdicts(answer.report, &n);
        assert_int_equal(n, 1);
        assert_string_equal(verdicts[0].name, "LATEST");
        assert_string_equal(verdicts[0].problems[0].code, "latest");
        assert_string_equal(verdicts[0].problems[0].message, CASES[i].message);
        pawl_report_free(answer.report);
        simdisk_free(disk);
    }
}

static void
a_given_step_is_that_step_or_an_error(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    struct pawl_dir root = open_root(disk);
    struct pawl_step step = { 0 };
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_report *report = pawl_report_new();
    size_t n = 0;

    assert_int_equal(pawl_find_step(&root, 10, &PLAIN, &step, report, &err), PAWL_OK);
    assert_int_equal(step.number, 10);
    pawl_step_release(&step);
    assert_int_equal(pawl_find_step(&root, 11, &PLAIN, &step, report, &err), PAWL_NO_FILE);
    assert_string_equal(err.message, "there is no step-000011 in 'root'");
    (void)pawl_report_verdicts(report, &n);
    assert_int_equal(n, 0);

    /* a broken one is not replaced by another step */
    simdisk_remove(disk, ROOT "/step-000020/model.safetensors");
    simdisk_put_link(disk, ROOT "/step-000020.prev", "step-000010");
    assert_int_equal(pawl_find_step(&root, 20, &PLAIN, &step, report, &err), PAWL_INCOMPLETE);
    assert_string_equal(err.code, "missing-file");
    assert_string_equal(err.path, "root/step-000020");
    assert_string_equal(err.message,
                        "the step is not complete: step-000020: missing-file model.safetensors (listed, and not "
                        "there); step-000020.prev: not-a-directory (expected a directory, found a symbolic "
                        "link)");
    (void)pawl_report_verdicts(report, &n);
    assert_int_equal(n, 2);
    pawl_report_free(report);
    pawl_dir_release(&root);
    assert_int_equal(simdisk_open_handles(disk), 0);
    simdisk_free(disk);
}

/* ---- machines that fail ---- */

/*
 * Goal: a fault of the machine ends a load with that fault; it never makes it fall back, or begin afresh. Method: each call of each kind fails
 * once, in a root whose newest step would be passed over for the one before.
 */
static void
machine_faults_end_the_load(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum pawl_status st;
    } FAULTS[] = { { ENOMEM, PAWL_NO_MEMORY },
                   { EMFILE, PAWL_NO_DESCRIPTORS },
                   { EACCES, PAWL_PERMISSION },
                   { ESTALE, PAWL_STALE },
                   { EINTR, PAWL_OK }, /* tried again */
                   { EIO, PAWL_OK } }; /* as well */
    static const enum sim_op OPS[] = { SIM_DIR_OPEN,  SIM_DIR_LIST,  SIM_STAT,
                                       SIM_FILE_OPEN, SIM_FILE_STAT, SIM_FILE_READ_AT };
    struct simdisk *disk = golden_disk("prev-older");
    unsigned n_met = 0;
    for (size_t op = 0; op < sizeof OPS / sizeof OPS[0]; op++) {
        bool is_met = true;
        for (unsigned nth = 0; is_met; nth++) {
            for (size_t f = 0; f < sizeof FAULTS / sizeof FAULTS[0] && is_met; f++) {
                struct faultos *faults = faultos_new(simdisk_os(disk));
                struct pawl_dir root = PAWL_DIR_INIT;
                struct pawl_step step = { 0 };
                struct pawl_report *report = pawl_report_new();
                assert_int_equal(pawl_dir_open_path(&root, faultos_os(faults), ROOT, NULL), PAWL_OK);
                faultos_fail(faults, OPS[op], nth, 0, FAULTS[f].code);
                enum pawl_status st = pawl_find_newest(&root, &PLAIN, &step, report, NULL);
                is_met = faultos_was_met(faults);
                enum pawl_status expected = is_met ? FAULTS[f].st : PAWL_OK;
                if (st != expected)
                    fail_msg("%s %u, errno %d: %s", sim_op_name(OPS[op]), nth, FAULTS[f].code, pawl_status_name(st));
                if (st == PAWL_OK)
                    assert_int_equal(step.number, 30);
                n_met += is_met;
                pawl_step_release(&step);
                pawl_report_free(report);
                pawl_dir_release(&root);
                assert_int_equal(faultos_open(faults), 0);
                faultos_free(faults);
            }
        }
    }
    assert_true(n_met > 100);
    simdisk_free(disk);
}

/* ---- writers at work ---- */

/* A writer that does one thing at one call of the reader's. */
struct writer {
    struct simdisk *disk;
    struct pawl_run *run;
    struct toy toy;
    unsigned at;
    bool acted;
    int64_t step;
    unsigned version;
};

static void
save_once(void *context, unsigned call)
{
    struct writer *writer = context;
    if (call != writer->at)
        return;
    writer->acted = true;
    save_step(writer->run, &writer->toy, writer->step, writer->version);
}

/*
 * Goal: a reader that races with a writer gets the step before or the step after, whole, and hears of nothing skipped. Method: a save happens
 * between two calls of the reader's, before every call in turn: one that publishes and prunes with keep 1, one that
 * replaces the step that is being read, by exchange and, where there is none, by way of .prev. What is read back must be of one version.
 */
static void
race(int64_t step, unsigned lacks, int64_t keep)
{
    for (unsigned at = 0;; at++) {
        struct writer writer = { .at = at, .step = step, .version = 9 };
        struct hook_os hook;
        struct pawl_ckpt *ckpt = NULL;
        struct pawl_report *report = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        size_t n = 0;

        writer.disk = disk_with((struct saved[]){ { 10, 1 }, { 20, 2 } }, 2);
        simdisk_lack(writer.disk, lacks);
        toy_init(&writer.toy, 0);
        writer.run = open_run(simdisk_os(writer.disk), PAWL_RUN_OPTIONS(.keep = keep));
        const struct pawl_os *os = hook_begin(&hook, simdisk_os(writer.disk));
        hook.act = save_once;
        hook.context = &writer;
        if (pawl_ckpt_open_newest_os(os, PAWL_STR(ROOT), NULL, &ckpt, &report, &err) != PAWL_OK)
            fail_msg("call %u: %s", at, err.message);
        (void)pawl_report_verdicts(report, &n);
        if (n != 0)
            fail_msg("call %u: %zu skipped, %s", at, n, pawl_report_verdicts(report, &n)[0].name);
        (void)pawl_report_names(report, PAWL_NAMES_IGNORED, &n);
        assert_int_equal(n, 0);

        struct toy read;
        toy_init(&read, 5);
        if (pawl_ckpt_restore(ckpt, read.state, NULL, NULL, &err) != PAWL_OK)
            fail_msg("call %u: %s", at, err.message);
        bool is_old = pawl_ckpt_step(ckpt) == 20 && read.tokens == 2000;
        bool is_new = pawl_ckpt_step(ckpt) == step && read.tokens == 9000;
        if (!is_old && !is_new)
            fail_msg("call %u: step %" PRId64 " with the tokens of %" PRId64, at, pawl_ckpt_step(ckpt), read.tokens);
        unsigned version = is_old ? 2 : 9;
        struct toy expected;
        toy_init(&expected, version);
        assert_memory_equal(read.weight, expected.weight, sizeof read.weight);
        assert_memory_equal(read.moment, expected.moment, sizeof read.moment);
        assert_int_equal(read.optimizer_step, version);
        toy_release(&expected);
        toy_release(&read);

        bool acted = writer.acted;
        pawl_report_free(report);
        pawl_ckpt_close(ckpt);
        close_run(writer.run);
        toy_release(&writer.toy);
        assert_int_equal(simdisk_open_handles(writer.disk), 0);
        simdisk_free(writer.disk);
        if (!acted) {
            assert_true(at > 30); /* the calls of a load */
            return;
        }
    }
}

static void
a_writer_that_publishes_and_prunes(void **state)
{
    (void)state;
    race(30, 0, 1);
    race(30, 0, 0);
}

static void
a_writer_that_replaces_the_step_being_read(void **state)
{
    (void)state;
    race(20, 0, 1);
    race(20, 0, 0); /* then nothing else in the root tells that there was a writer */
}

static void
a_writer_that_replaces_without_exchange(void **state)
{
    (void)state;
    race(20, SIM_EXCHANGE, 1);
    race(20, SIM_EXCHANGE, 0);
}

/* Two whole directories that take turns under one name; the second is pruned when the first is back. */
struct turns {
    struct simdisk *disk;
    unsigned away, back; /* the calls before which they change */
    bool is_back;
};

static void
rename_in_root(struct simdisk *disk, const char *from, const char *to)
{
    struct pawl_dir root = open_root(disk);
    assert_int_equal(pawl_dir_rename(&root, from, to, PAWL_OS_REPLACE, NULL), PAWL_OK);
    pawl_dir_release(&root);
}

static void
take_turns(void *context, unsigned call)
{
    struct turns *turns = context;
    if (call == turns->away) {
        rename_in_root(turns->disk, "step-000020", "spare");
        rename_in_root(turns->disk, "other", "step-000020");
    } else if (call == turns->back) {
        rename_in_root(turns->disk, "step-000020", "gone");
        rename_in_root(turns->disk, "spare", "step-000020");
        simdisk_remove(turns->disk, ROOT "/gone/model.safetensors");
        turns->is_back = true;
    }
}

/*
 * Goal: a directory that was replaced while it was read is not believed, though the name stands for one of the number that it had at first: numbers
 * of directories that are gone are given to new ones. Method: two directories change places before every call of a load, and back before
 * every one of the next few.
 */
static void
a_number_that_comes_back(void **state)
{
    (void)state;
    bool is_reached = true;
    for (unsigned away = 0; is_reached; away++) {
        is_reached = false;
        for (unsigned more = 1; more < 12; more++) {
            struct turns turns = { .away = away, .back = away + more };
            struct hook_os hook;
            struct pawl_ckpt *ckpt = NULL;
            struct pawl_error err = PAWL_ERROR_INIT;
            struct toy toy;
            toy_init(&toy, 0);
            turns.disk = disk_with(&(struct saved){ 20, 1 }, 1);
            rename_in_root(turns.disk, "step-000020", "spare");
            struct pawl_run *run = open_run(simdisk_os(turns.disk), PAWL_RUN_OPTIONS(.keep = 0));
            save_step(run, &toy, 20, 2);
            close_run(run);
            rename_in_root(turns.disk, "step-000020", "other");
            rename_in_root(turns.disk, "spare", "step-000020");
            const struct pawl_os *os = hook_begin(&hook, simdisk_os(turns.disk));
            hook.act = take_turns;
            hook.context = &turns;
            if (pawl_ckpt_open_newest_os(os, PAWL_STR(ROOT), NULL, &ckpt, NULL, &err) != PAWL_OK)
                fail_msg("away before call %u, back before %u: %s", away, turns.back, err.message);
            is_reached = is_reached || turns.is_back;
            pawl_ckpt_close(ckpt);
            toy_release(&toy);
            simdisk_free(turns.disk);
        }
    }
}

/* A directory that is another one at every look: the search ends, and does not say that there is nothing. */
static void
change_always(void *context, unsigned call)
{
    struct simdisk *disk = context;
    (void)call;
    simdisk_put_text(disk, ROOT "/LATEST", simdisk_has(disk, ROOT "/step-000077") ? "step-000077\n" : "step-000078\n");
    if (simdisk_has(disk, ROOT "/step-000077")) {
        simdisk_remove(disk, ROOT "/step-000077");
        simdisk_put_dir(disk, ROOT "/step-000078");
    } else {
        simdisk_remove(disk, ROOT "/step-000078");
        simdisk_put_dir(disk, ROOT "/step-000077");
    }
}

static void
a_root_that_never_rests(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct hook_os hook;
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    struct pawl_error err = PAWL_ERROR_INIT;
    simdisk_put_dir(disk, ROOT "/step-000077");
    const struct pawl_os *os = hook_begin(&hook, simdisk_os(disk));
    assert_int_equal(pawl_dir_open_path(&root, os, ROOT, NULL), PAWL_OK);
    hook.act = change_always;
    hook.context = disk;
    enum pawl_status st = pawl_find_newest(&root, &PLAIN, &step, report, &err);
    assert_true(st == PAWL_BUSY || st == PAWL_NONE_COMPLETE);
    pawl_report_free(report);
    pawl_dir_release(&root);
    simdisk_free(disk);
}

/* ---- a step that turns out to be damaged ---- */

struct refusal {
    int64_t refused; /* this step and newer ones */
    enum pawl_status with;
    unsigned calls;
};

static enum pawl_status
refuse(void *context, struct pawl_step *step, struct pawl_report *report, struct pawl_error *err)
{
    struct refusal *refusal = context;
    refusal->calls++;
    if (step->number < refusal->refused)
        return PAWL_OK;
    if (refusal->with == PAWL_INCOMPLETE)
        pawl_report_problem(report, "hash", PAWL_STR("model.safetensors"), PAWL_NO_STR, PAWL_OFFSET_NONE, "damaged");
    return pawl_fail(err, refusal->with, "test", "refused");
}

static void
only_damage_makes_a_search_go_on(void **state)
{
    (void)state;
    static const enum pawl_status ENDS[] = { PAWL_MISMATCH, PAWL_NO_MEMORY, PAWL_ARGUMENT, PAWL_PERMISSION };
    struct simdisk *disk = golden_disk("latest-missing");
    struct pawl_dir root = open_root(disk);
    size_t n = 0;
    struct refusal refusal = { 20, PAWL_INCOMPLETE, 0 };
    struct pawl_find_request request = { .use = refuse, .context = &refusal };
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    assert_int_equal(pawl_find_newest(&root, &request, &step, report, NULL), PAWL_OK);
    assert_int_equal(step.number, 10);
    assert_int_equal(refusal.calls, 3);
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 2);
    assert_string_equal(verdicts[0].name, "step-000030");
    assert_string_equal(verdicts[1].problems[0].message, "damaged");
    pawl_step_release(&step);
    pawl_report_free(report);
    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
        refusal = (struct refusal){ 20, ENDS[i], 0 };
        report = pawl_report_new();
        assert_int_equal(pawl_find_newest(&root, &request, &step, report, NULL), ENDS[i]);
        assert_int_equal(refusal.calls, 1);
        (void)pawl_report_verdicts(report, &n);
        assert_int_equal(n, 0);
        pawl_report_free(report);
    }
    pawl_dir_release(&root);
    assert_int_equal(simdisk_open_handles(disk), 0);
    simdisk_free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_complete_names_each_candidate),
        cmocka_unit_test(a_fresh_start_is_another_thing_than_nothing_complete),
        cmocka_unit_test(what_was_passed_over_says_what_to_do),
        cmocka_unit_test(latest_is_reported_with_what_it_says),
        cmocka_unit_test(a_given_step_is_that_step_or_an_error),
        cmocka_unit_test(machine_faults_end_the_load),
        cmocka_unit_test(a_writer_that_publishes_and_prunes),
        cmocka_unit_test(a_writer_that_replaces_the_step_being_read),
        cmocka_unit_test(a_writer_that_replaces_without_exchange),
        cmocka_unit_test(a_number_that_comes_back),
        cmocka_unit_test(a_root_that_never_rests),
        cmocka_unit_test(only_damage_makes_a_search_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
