/* checkpoint/wait.c: when a wait ends, and that it hashes only when something is new. The simulated clock jumps: nothing sleeps. */
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

/* What happens at which pause of a wait. */
struct happening {
    struct simdisk *disk;
    struct toy toy;
    unsigned pauses, at;
    int64_t step;       /* saved then; 0: nothing */
    unsigned cancel_at; /* 0: never */
    bool is_broken;     /* the step is damaged as soon as it is there */
};

static int
happen(void *context)
{
    struct happening *happening = context;
    happening->pauses++;
    if (happening->step != 0 && happening->pauses == happening->at) {
        struct pawl_run *run = open_run(simdisk_os(happening->disk), PAWL_RUN_OPTIONS(0));
        save_step(run, &happening->toy, happening->step, (unsigned)happening->step);
        close_run(run);
        if (happening->is_broken) {
            char path[64], name[PAWL_STEP_NAME_BYTES];
            pawl_entry_name(happening->step, "", name);
            (void)snprintf(path, sizeof path, ROOT "/%s/model.safetensors", name);
            damage(happening->disk, path);
        }
    }
    return happening->pauses == happening->cancel_at;
}

static enum pawl_status
wait_for(struct happening *happening, int64_t newer_than, int64_t timeout_ms, int64_t *ret_step, struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = NULL;
    enum pawl_status st =
        pawl_ckpt_wait_os(simdisk_os(happening->disk), PAWL_STR(ROOT), newer_than, timeout_ms,
                          &PAWL_WAIT_OPTIONS(.waiting = happen, .context = happening), &ckpt, NULL, err);
    *ret_step = -1;
    if (st == PAWL_OK)
        *ret_step = pawl_ckpt_step(ckpt);
    pawl_ckpt_close(ckpt);
    assert_int_equal(simdisk_open_handles(happening->disk), 0);
    return st;
}

static void
a_wait_ends_with_a_newer_step(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct happening happening = { .disk = simdisk_new(), .at = 5, .step = 3 };
    int64_t step;
    toy_init(&happening.toy, 1);
    /* The root comes while we wait. */
    assert_int_equal(wait_for(&happening, -1, -1, &step, &err), PAWL_OK);
    assert_int_equal(step, 3);
    assert_int_equal(happening.pauses, 5);
    /* What is there and newer ends it at once. */
    happening.pauses = 0;
    assert_int_equal(wait_for(&happening, 2, -1, &step, &err), PAWL_OK);
    assert_int_equal(happening.pauses, 0);
    /* What is there and not newer does not. */
    happening.at = 20;
    happening.step = 4;
    assert_int_equal(wait_for(&happening, 3, -1, &step, &err), PAWL_OK);
    assert_int_equal(step, 4);
    assert_int_equal(happening.pauses, 20);
    toy_release(&happening.toy);
    simdisk_free(happening.disk);
}

static void
a_wait_ends_in_time(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct happening happening = { .disk = disk_with(&(struct saved){ 2, 2 }, 1) };
    int64_t step;
    toy_init(&happening.toy, 1);
    assert_int_equal(wait_for(&happening, 2, 0, &step, &err), PAWL_TIME_OUT);
    assert_int_equal(happening.pauses, 0);
    assert_string_equal(err.message, "wait for a step in 'root': no complete step newer than 2 in 0 ms");
    assert_int_equal(wait_for(&happening, 2, 60000, &step, &err), PAWL_TIME_OUT);
    assert_true(happening.pauses > 50 && happening.pauses < 100);        /* about once a second */
    assert_int_equal(wait_for(&happening, -1, 0, &step, &err), PAWL_OK); /* a look is enough */
    happening.pauses = 0;
    happening.cancel_at = 7;
    assert_int_equal(wait_for(&happening, 2, -1, &step, &err), PAWL_CANCELED);
    assert_int_equal(wait_for(&happening, -2, -1, &step, &err), PAWL_ARGUMENT);
    toy_release(&happening.toy);
    simdisk_free(happening.disk);
}

/* Goal: a broken new step is hashed once, not at every look. Method: count the reads of a wait that lasts ten times as long. */
static void
a_broken_step_is_hashed_once(void **state)
{
    (void)state;
    unsigned reads[2];
    for (unsigned i = 0; i < 2; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct happening happening = {
            .disk = disk_with(&(struct saved){ 2, 2 }, 1), .at = 2, .step = 3, .is_broken = true
        };
        int64_t step;
        toy_init(&happening.toy, 1);
        assert_int_equal(wait_for(&happening, 2, i == 0 ? 20000 : 200000, &step, &err), PAWL_TIME_OUT);
        reads[i] = simdisk_calls(happening.disk, SIM_FILE_READ_AT);
        toy_release(&happening.toy);
        simdisk_free(happening.disk);
    }
    assert_int_equal(reads[0], reads[1]);
}

/* Goal: a fault of the machine ends the wait, and no step but the newer one ever does. */
static void
machine_faults_end_a_wait(void **state)
{
    (void)state;
    struct simdisk *model = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
    bool was_met = true;
    for (unsigned nth = 0; was_met; nth++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct happening happening = { .disk = simdisk_clone(model), .cancel_at = 3 };
        int64_t step;
        toy_init(&happening.toy, 1);
        simdisk_fail(happening.disk, SIM_ANY, nth, 0, EMFILE);
        enum pawl_status st = wait_for(&happening, 1, -1, &step, &err);
        was_met = simdisk_fault_was_met(happening.disk);
        assert_true((st == PAWL_OK && step == 2) || st == PAWL_NO_DESCRIPTORS);
        toy_release(&happening.toy);
        simdisk_free(happening.disk);
    }
    simdisk_free(model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_ends_with_a_newer_step),
        cmocka_unit_test(a_wait_ends_in_time),
        cmocka_unit_test(a_broken_step_is_hashed_once),
        cmocka_unit_test(machine_faults_end_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
