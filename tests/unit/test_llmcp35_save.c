/* LLMCP35: saving by the page's protocol, under every failure and every loss of power; loading. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>
#include "sim/faultos.h"
#include "sim/simdisk.h"
#include "unit/llmcp35_support.h"

#define OPS_MAX 64

static uint64_t seed; /* printed by main */

/* The old file on the disk, and the checkpoint that is to replace it. */
struct stage {
    struct pawl_llmcp35 *checkpoint;
    unsigned char *old, *fresh;
    size_t n_old, n_fresh;
};

static void
stage_init(struct stage *stage)
{
    stage->checkpoint = lc_load_golden(LC_FIXTURE);
    stage->fresh = lc_bytes_of(LC_FIXTURE, &stage->n_fresh);
    stage->old = lc_bytes_of(LC_GOLDEN "valid/literal-step0-groups.bin", &stage->n_old);
}

static void
stage_release(struct stage *stage)
{
    pawl_llmcp35_free(stage->checkpoint);
    free(stage->old);
    free(stage->fresh);
}

static struct simdisk *
disk_with_old(const struct stage *stage)
{
    struct simdisk *disk = simdisk_new();
    simdisk_put(disk, "run/model", stage->old, stage->n_old);
    simdisk_put_text(disk, "run/.model.tmp-1-0", "another program's");
    simdisk_set_process(disk, 4711);
    return disk;
}

static bool
holds(const struct simdisk *disk, const char *path, const unsigned char *bytes, size_t n)
{
    size_t found;
    const unsigned char *data = simdisk_get(disk, path, &found);
    return data != NULL && found == n && memcmp(data, bytes, n) == 0;
}

/* Entries of a directory that begin with ".model.tmp-4711-". */
static unsigned
count_temporaries(const struct simdisk *disk)
{
    unsigned n = 0;
    char *tree = simdisk_tree(disk, "run");
    for (const char *at = strstr(tree, ".model.tmp-4711-"); at != NULL; at = strstr(at + 1, ".model.tmp-4711-"))
        n++;
    free(tree);
    return n;
}

static enum pawl_status
save(const struct pawl_os *os, const struct stage *stage, const char *path, struct pawl_llmcp35_fault **ret_fault,
     struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    return pawl_lc_save(os, stage->checkpoint, path, &out);
}

/* Goal: the calls are those of the page, in its order. Method: the log of a table that counts. */
static void
a_save_makes_the_page_s_calls(void **state)
{
    (void)state;
    static const enum sim_op expected[] = { SIM_DIR_OPEN_PATH, SIM_FILE_CREATE, SIM_FILE_WRITE_AT, SIM_FILE_SYNC,
                                            SIM_FILE_CLOSE,    SIM_RENAME,      SIM_DIR_SYNC,      SIM_DIR_CLOSE };
    struct stage stage;
    size_t n;
    stage_init(&stage);
    struct simdisk *disk = disk_with_old(&stage);
    struct faultos *faults = faultos_new(simdisk_os(disk));
    assert_int_equal(save(faultos_os(faults), &stage, "run/model", NULL, NULL), PAWL_OK);
    const enum sim_op *log = faultos_log(faults, &n);
    assert_int_equal(n, sizeof expected / sizeof expected[0]);
    assert_memory_equal(log, expected, sizeof expected);
    assert_true(holds(disk, "run/model", stage.fresh, stage.n_fresh));
    char *tree = simdisk_tree(disk, "run");
    assert_string_equal(tree, ".model.tmp-1-0\nmodel");
    free(tree);
    assert_int_equal(faultos_open(faults), 0);
    faultos_free(faults);
    simdisk_free(disk);
    stage_release(&stage);
}

/*
 * Goal: each failing call gives the page's operation and path and its own errno, the destination has all of the old bytes, or after
 * the last step all of the new, and no temporary stays. Method: fail the first call of each kind.
 */
static void
each_failing_call_is_named(void **state)
{
    (void)state;
    static const struct {
        enum sim_op op;
        const char *operation, *path; /* a path that ends in '-' goes on with the serial */
        bool is_new;
    } cases[] = {
        { SIM_DIR_OPEN_PATH, "create_temp", "run/.model.tmp-4711-", false },
        { SIM_FILE_CREATE, "create_temp", "run/.model.tmp-4711-", false },
        { SIM_FILE_WRITE_AT, "write_temp", "run/.model.tmp-4711-", false },
        { SIM_FILE_SYNC, "sync_temp", "run/.model.tmp-4711-", false },
        { SIM_FILE_CLOSE, "sync_temp", "run/.model.tmp-4711-", false },
        { SIM_RENAME, "rename", "run/model", false },
        { SIM_DIR_SYNC, "sync_dir", "run", true },
    };
    struct stage stage;
    stage_init(&stage);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_llmcp35_fault *fault = NULL;
        struct simdisk *disk = disk_with_old(&stage);
        struct faultos *faults = faultos_new(simdisk_os(disk));
        faultos_fail(faults, cases[i].op, 0, 0, ENOSPC);
        assert_int_equal(save(faultos_os(faults), &stage, "run/model", &fault, &err), PAWL_NO_SPACE);
        assert_true(faultos_was_met(faults));
        assert_string_equal(err.code, "no-space");
        assert_string_equal(pawl_llmcp35_fault_category(fault), "io");
        assert_null(pawl_llmcp35_fault_cause(fault));
        assert_true(pawl_str_equal(lc_field(fault, "operation")->text, pawl_str_z(cases[i].operation)));
        struct pawl_str path = lc_field(fault, "path")->text, expected = pawl_str_z(cases[i].path);
        assert_true(pawl_str_ends(expected, PAWL_STR("-")) ? pawl_str_starts(path, expected)
                                                           : pawl_str_equal(path, expected));
        assert_true(pawl_str_equal(path, pawl_str_z(err.path)));
        assert_int_equal(lc_field(fault, "errno")->number, ENOSPC);
        assert_true(cases[i].is_new ? holds(disk, "run/model", stage.fresh, stage.n_fresh)
                                    : holds(disk, "run/model", stage.old, stage.n_old));
        assert_int_equal(count_temporaries(disk), 0);
        assert_int_equal(faultos_open(faults), 0);
        pawl_llmcp35_fault_free(fault);
        faultos_free(faults);
        simdisk_free(disk);
    }
    stage_release(&stage);
}

/* Goal: whichever call fails, with whatever, the same holds. Method: the n-th call of any kind, until one run meets no fault; EINTR and
 * short writes are no failures. */
static void
any_failing_call_leaves_old_or_new(void **state)
{
    (void)state;
    static const int codes[] = { EIO, EINTR, 0 };
    struct stage stage;
    stage_init(&stage);
    for (size_t c = 0; c < 3; c++) {
        bool is_over = false;
        for (unsigned nth = 0; nth < OPS_MAX && !is_over; nth++) {
            struct simdisk *disk = disk_with_old(&stage);
            struct faultos *faults = faultos_new(simdisk_os(disk));
            if (codes[c] == 0)
                faultos_fail(faults, SIM_FILE_WRITE_AT, nth, 0, 0);
            else
                faultos_fail(faults, SIM_ANY, nth, 0, codes[c]);
            enum pawl_status st = save(faultos_os(faults), &stage, "run/model", NULL, NULL);
            bool is_new = holds(disk, "run/model", stage.fresh, stage.n_fresh);
            assert_true(is_new || holds(disk, "run/model", stage.old, stage.n_old));
            assert_true(st != PAWL_OK || is_new);
            if (codes[c] != EIO)
                assert_int_equal(st, PAWL_OK);
            assert_int_equal(count_temporaries(disk), 0);
            assert_int_equal(faultos_open(faults), 0);
            is_over = !faultos_was_met(faults);
            faultos_free(faults);
            simdisk_free(disk);
        }
        assert_true(is_over);
    }
    stage_release(&stage);
}

/*
 * Goal: wherever power is lost, a reader finds the whole old file or the whole new one, and the new one once a save has
 * answered. Method: every prefix of the trace, every choice of which unsynced operations are kept, lost or torn.
 */
static void
a_save_survives_every_loss_of_power(void **state)
{
    (void)state;
    struct stage stage;
    size_t n_states = 0, n_old = 0, n_new = 0;
    stage_init(&stage);
    struct simdisk *before = disk_with_old(&stage);
    struct simdisk *disk = simdisk_clone(before); /* whose trace begins with the save */
    simdisk_free(before);
    assert_int_equal(save(simdisk_os(disk), &stage, "run/model", NULL, NULL), PAWL_OK);
    simdisk_mark(disk, "saved");
    const size_t end = simdisk_trace_len(disk);
    for (size_t prefix = 0; prefix <= end; prefix++) {
        const bool is_saved = prefix == end;
        unsigned char fates[8] = { 0 };
        size_t n = simdisk_pending(disk, prefix, NULL, 0);
        assert_true(n <= 8);
        size_t choices = (size_t)1 << (2 * n);
        for (size_t choice = 0; choice < choices; choice++) {
            for (size_t i = 0; i < n; i++)
                fates[i] = (unsigned char)(choice >> (2 * i) & 3);
            struct simdisk *after = simdisk_build_state(disk, prefix, fates, n, seed + choice);
            bool is_old = holds(after, "run/model", stage.old, stage.n_old);
            bool is_new = holds(after, "run/model", stage.fresh, stage.n_fresh);
            if (!is_old && !is_new)
                fail_msg("prefix %zu, choice %zu: neither the old nor the new file", prefix, choice);
            if (is_saved && !is_new)
                fail_msg("saved, and lost by choice %zu", choice);
            assert_true(simdisk_has(after, "run/.model.tmp-1-0"));
            n_states++;
            n_old += is_old;
            n_new += is_new;
            simdisk_free(after);
        }
    }
    print_message("%zu crash states: %zu with the old file, %zu with the new\n", n_states, n_old, n_new);
    assert_true(n_old > 0 && n_new > 0);
    simdisk_free(disk);
    stage_release(&stage);
}

/* Goal: names in use are stepped over, 128 times and no more. Method: the create fails with EEXIST so often. */
static void
names_in_use_are_stepped_over(void **state)
{
    (void)state;
    struct stage stage;
    stage_init(&stage);
    for (unsigned taken = 127; taken <= 128; taken++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_llmcp35_fault *fault = NULL;
        struct simdisk *disk = disk_with_old(&stage);
        struct faultos *faults = faultos_new(simdisk_os(disk));
        faultos_fail(faults, SIM_FILE_CREATE, 0, taken - 1, EEXIST);
        enum pawl_status st = save(faultos_os(faults), &stage, "run/model", &fault, &err);
        assert_int_equal(faultos_calls(faults, SIM_FILE_CREATE), 128);
        if (taken == 127) {
            assert_int_equal(st, PAWL_OK);
        } else {
            assert_int_equal(st, PAWL_EXISTS);
            assert_true(pawl_str_equal(lc_field(fault, "operation")->text, PAWL_STR("unique_temp")));
            assert_true(pawl_str_equal(lc_field(fault, "path")->text, PAWL_STR("run/model")));
            assert_string_equal(err.message, "find an unused name for a temporary beside 'run/model': File exists");
            assert_true(holds(disk, "run/model", stage.old, stage.n_old));
        }
        pawl_llmcp35_fault_free(fault);
        faultos_free(faults);
        simdisk_free(disk);
    }
    stage_release(&stage);
}

/* Goal: every attempt takes a serial of its own, also those of several saves. Method: saves that fail, and the names that they tell. */
static void
serials_go_on(void **state)
{
    (void)state;
    struct stage stage;
    char names[3][128];
    stage_init(&stage);
    struct simdisk *disk = disk_with_old(&stage);
    struct faultos *faults = faultos_new(simdisk_os(disk));
    for (unsigned i = 0; i < 3; i++) {
        struct pawl_llmcp35_fault *fault = NULL;
        faultos_reset(faults);
        faultos_fail(faults, SIM_FILE_SYNC, 0, 0, EIO);
        assert_int_equal(save(faultos_os(faults), &stage, "run/model", &fault, NULL), PAWL_IO);
        (void)snprintf(names[i], sizeof names[i], "%.*s", PAWL_ARG(lc_field(fault, "path")->text));
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
        pawl_llmcp35_fault_free(fault);
    }
    faultos_free(faults);
    simdisk_free(disk);
    stage_release(&stage);
}

/* Goal: what names no file is refused before anything is opened; where a name has a slash behind it, the system refuses. */
static void
paths_without_a_file_name_are_refused(void **state)
{
    (void)state;
    static const char *const paths[] = { "", "/", ".", "..", "a/..", "///", "a/." };
    struct stage stage;
    stage_init(&stage);
    struct simdisk *disk = disk_with_old(&stage);
    struct faultos *faults = faultos_new(simdisk_os(disk));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_llmcp35_fault *fault = NULL;
        assert_int_equal(save(faultos_os(faults), &stage, paths[i], &fault, &err), PAWL_ARGUMENT);
        assert_string_equal(err.code, "layout/no_file_name");
        assert_string_equal(pawl_llmcp35_fault_cause(fault), "no_file_name");
        assert_int_equal(faultos_calls(faults, SIM_ANY), 0);
        pawl_llmcp35_fault_free(fault);
    }
    assert_int_equal(save(simdisk_os(disk), &stage, "model", NULL, NULL), PAWL_OK); /* "." is the directory */
    assert_true(holds(disk, "model", stage.fresh, stage.n_fresh));
    faultos_free(faults);
    simdisk_free(disk);
    stage_release(&stage);
}

/* On the host's own files: save, load, and what a load answers to what is no file. */
static void
files_of_the_host(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_llmcp35 *loaded = NULL;
    struct stage stage;
    size_t n;
    stage_init(&stage);
    assert_int_equal(pawl_llmcp35_save_z(stage.checkpoint, "saved.llmcp35", NULL, &err), PAWL_OK);
    assert_int_equal(pawl_llmcp35_save_z(stage.checkpoint, "saved.llmcp35", NULL, &err), PAWL_OK);
    unsigned char *bytes = lc_bytes_of("saved.llmcp35", &n);
    assert_int_equal(n, stage.n_fresh);
    assert_memory_equal(bytes, stage.fresh, n);
    free(bytes);
    assert_int_equal(pawl_llmcp35_load_z("saved.llmcp35", &loaded, NULL, &err), PAWL_OK);
    pawl_llmcp35_free(loaded);

    assert_int_equal(pawl_llmcp35_save_z(stage.checkpoint, "saved.llmcp35/", &fault, &err), PAWL_NO_FILE);
    assert_true(pawl_str_equal(lc_field(fault, "operation")->text, PAWL_STR("rename")));
    pawl_llmcp35_fault_free(fault);
    assert_int_equal(pawl_llmcp35_load_z("not-there", &loaded, &fault, &err), PAWL_NO_FILE);
    assert_string_equal(err.code, "not-found");
    assert_string_equal(pawl_llmcp35_fault_category(fault), "io");
    assert_true(pawl_str_equal(lc_field(fault, "operation")->text, PAWL_STR("read")));
    pawl_llmcp35_fault_free(fault);
    assert_int_equal(pawl_llmcp35_load_z(".", &loaded, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-a-file");
    assert_int_equal(pawl_llmcp35_load(pawl_str_make("a\0b", 3), &loaded, NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(remove("saved.llmcp35"), 0);
    stage_release(&stage);
}

/* Goal: a read that fails says so, and a file that ends early is no crash. Method: the n-th call of a load fails. */
static void
a_failing_read_is_named(void **state)
{
    (void)state;
    struct stage stage;
    bool is_over = false;
    stage_init(&stage);
    for (unsigned nth = 0; nth < OPS_MAX && !is_over; nth++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_llmcp35_fault *fault = NULL;
        struct pawl_llmcp35 *loaded = NULL;
        struct simdisk *disk = disk_with_old(&stage);
        struct faultos *faults = faultos_new(simdisk_os(disk));
        struct lc_out out = lc_out_make(&fault, &err);
        faultos_fail(faults, SIM_ANY, nth, 4, EIO); /* an EIO is tried again before it is believed */
        enum pawl_status st = pawl_lc_load(faultos_os(faults), "run/model", &loaded, &out);
        if (st != PAWL_OK) {
            assert_int_equal(st, PAWL_IO);
            assert_true(pawl_str_equal(lc_field(fault, "operation")->text, PAWL_STR("read")));
            assert_true(pawl_str_equal(lc_field(fault, "path")->text, PAWL_STR("run/model")));
        }
        assert_int_equal(faultos_open(faults), 0);
        is_over = !faultos_was_met(faults);
        pawl_llmcp35_fault_free(fault);
        pawl_llmcp35_free(loaded);
        faultos_free(faults);
        simdisk_free(disk);
    }
    assert_true(is_over);
    stage_release(&stage);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_makes_the_page_s_calls),
        cmocka_unit_test(each_failing_call_is_named),
        cmocka_unit_test(any_failing_call_leaves_old_or_new),
        cmocka_unit_test(a_save_survives_every_loss_of_power),
        cmocka_unit_test(names_in_use_are_stepped_over),
        cmocka_unit_test(serials_go_on),
        cmocka_unit_test(paths_without_a_file_name_are_refused),
        cmocka_unit_test(files_of_the_host),
        cmocka_unit_test(a_failing_read_is_named),
    };
    seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
