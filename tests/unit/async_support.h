/* unit/async_support.h: stopping a save in the background at a named point, so that a test meets it there every time. */
#ifndef UNIT_ASYNC_SUPPORT_H
#define UNIT_ASYNC_SUPPORT_H

#include "unit/save_support.h"

#include <pthread.h>
#include <unistd.h>
#include "checkpoint/async.h"

/* The point "progress" is the first call of it: nothing of the tensors was written. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *point; /* where the save stops; NULL: nowhere */
    const char *next;  /* and then, when it goes on from there */
    const char *fails; /* where it fails */
    bool is_reached, is_open;
    struct heard heard;

    /* What `saved` was called with. */
    int64_t steps[32];
    enum pawl_status ends[32];
    size_t n_saved;
    enum pawl_status own_call, own_wait; /* of the run and of the handle, from inside */
    char own_message[1024];
    struct pawl_run *run; /* that `saved` calls, when it is to */
    struct toy *toy;
    struct pawl_save *waited_for; /* that `progress` waits for */
};

#define GATE_INIT                                                              \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

static inline void
gate_pass(struct gate *gate, const char *point)
{
    (void)pthread_mutex_lock(&gate->lock);
    if (gate->point != NULL && strcmp(gate->point, point) == 0) {
        gate->is_reached = true;
        (void)pthread_cond_broadcast(&gate->changed);
        while (!gate->is_open)
            (void)pthread_cond_wait(&gate->changed, &gate->lock);
        gate->point = gate->next;
        gate->next = NULL;
        gate->is_open = false;
    }
    (void)pthread_mutex_unlock(&gate->lock);
}

static inline int
gate_failpoint(void *context, const char *name)
{
    struct gate *gate = context;
    gate_pass(gate, name);
    (void)pthread_mutex_lock(&gate->lock);
    bool fails = gate->fails != NULL && strcmp(gate->fails, name) == 0;
    (void)pthread_mutex_unlock(&gate->lock);
    return fails;
}

static inline int
gate_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct gate *gate = context;
    (void)done_bytes;
    (void)total_bytes;
    gate_pass(gate, "progress");
    (void)pthread_mutex_lock(&gate->lock);
    struct pawl_save *save = gate->waited_for;
    gate->waited_for = NULL;
    (void)pthread_mutex_unlock(&gate->lock);
    if (save != NULL)
        gate->own_wait = pawl_save_wait(save, -1, NULL);
    return 0;
}

static inline void
gate_warning(void *context, const struct pawl_problem *problem)
{
    hear(&((struct gate *)context)->heard, problem);
}

static inline void
gate_saved(void *context, struct pawl_save *save)
{
    struct gate *gate = context;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_stage stage = PAWL_STAGE_ACCEPTED;
    assert_int_equal(pawl_save_stage(save, &stage, NULL), PAWL_OK);
    assert_true(stage >= PAWL_STAGE_DURABLE);
    (void)pthread_mutex_lock(&gate->lock);
    gate->steps[gate->n_saved % 32] = pawl_save_step(save);
    gate->ends[gate->n_saved++ % 32] = stage == PAWL_STAGE_DURABLE    ? PAWL_OK
                                       : stage == PAWL_STAGE_CANCELED ? PAWL_CANCELED
                                                                      : PAWL_IO;
    (void)pthread_mutex_unlock(&gate->lock);
    if (gate->run != NULL) {
        gate->own_call = pawl_run_save(gate->run, gate->toy->state, 99, NULL, &err);
        (void)snprintf(gate->own_message, sizeof gate->own_message, "%s", err.message);
    }
}

#define GATED_OPTIONS(gate, ...)                                                                      \
    PAWL_RUN_OPTIONS(.failpoint = gate_failpoint, .progress = gate_progress, .warning = gate_warning, \
                     .context = (gate), .saved = gate_saved, __VA_ARGS__)

/* Stop the next save there. Not while one is in flight. */
static inline void
gate_close(struct gate *gate, const char *point)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->point = point;
    gate->is_reached = gate->is_open = false;
    (void)pthread_mutex_unlock(&gate->lock);
}

/* Saves fail there from now on; NULL: no more. */
static inline void
gate_fail(struct gate *gate, const char *point)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->fails = point;
    (void)pthread_mutex_unlock(&gate->lock);
}

static inline void
gate_await(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    while (!gate->is_reached)
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    (void)pthread_mutex_unlock(&gate->lock);
}

static inline void
gate_open(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

static inline struct pawl_save *
save_async(struct pawl_run *run, struct toy *toy, int64_t step, unsigned version)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_save *save = NULL;
    toy_set(toy, version);
    if (pawl_run_save_async(run, toy->state, step, NULL, &save, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_non_null(save);
    return save;
}

static inline enum pawl_stage
stage_of(struct pawl_save *save)
{
    enum pawl_stage stage = PAWL_STAGE_ACCEPTED;
    assert_int_equal(pawl_save_stage(save, &stage, NULL), PAWL_OK);
    return stage;
}

static inline void
assert_durable(struct pawl_save *save)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_save_wait(save, -1, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(stage_of(save), PAWL_STAGE_DURABLE);
}

/* After a failed test a save may stand at its gate for ever: then nobody waits for it. */
static inline int
end_tests(int failed)
{
    (void)fflush(NULL);
    if (failed != 0)
        _exit(failed);
    return failed;
}

/* Everything in a root, a line each. */
static inline void
assert_tree(struct simdisk *disk, const char *expected)
{
    char *tree = simdisk_tree(disk, ROOT);
    assert_string_equal(tree, expected);
    free(tree);
}

/* ---- on a folder of the host ---- */

static inline struct pawl_run *
open_host_run(struct pawl_run_options options)
{
    struct pawl_run *run = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_run_open_z(ROOT, &options, &run, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return run;
}

static inline void
remove_root(void)
{
    struct pawl_dir here = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", NULL), PAWL_OK);
    assert_int_equal(pawl_dir_remove_tree(&here, ROOT, NULL), PAWL_OK);
    pawl_dir_release(&here);
}

#endif
