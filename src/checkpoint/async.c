/*
 * checkpoint/async.c: saves in the background.
 *
 * The call plans the save (which copies all that is not a tensor), takes the snapshot, and hands the run to a thread; the thread carries the
 * same protocol out that pawl_run_save does (save.c), tells the end, and gives the run back. Who calls the run meanwhile waits for that.
 *
 *     caller   plan, snapshot, begin the thread | goes on
 *     thread                                    | write, publish | the end is told | `saved` | old steps go | the run is free
 *                                               accepted, released, written        durable
 */
#include "checkpoint/async.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "base/str.h"
#include "checkpoint/registry.h"
#include "checkpoint/snapshot.h"
#include "os/thread.h"

/* The header of a file grows by a digit now and then: room, so that a kept shadow need not be taken anew. */
#define SHADOW_ROOM (2 * PAWL_HUGE_PAGE_BYTES)

static double
seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static bool
is_over(enum pawl_stage stage)
{
    return stage >= PAWL_STAGE_DURABLE;
}

/* ---- life ---- */

static enum pawl_status
new_save(struct pawl_run *run, int64_t step, struct pawl_save **ret_save, struct pawl_error *err)
{
    struct pawl_save *save = calloc(1, sizeof *save);
    if (save == NULL)
        return pawl_fail_memory(err, sizeof *save);
    if (pthread_mutex_init(&save->lock, NULL) != 0) {
        free(save);
        return pawl_fail_memory(err, sizeof *save);
    }
    if (pawl_condition_init(&save->changed) != 0) {
        (void)pthread_mutex_destroy(&save->lock);
        free(save);
        return pawl_fail_memory(err, sizeof *save);
    }
    save->os = run->os;
    save->process = run->process;
    save->run = run;
    save->step = step;
    save->is_canceled_at_exit = run->options.at_exit == PAWL_AT_EXIT_CANCEL;
    save->references = 1;
    save->stage = PAWL_STAGE_ACCEPTED;
    *ret_save = save;
    return PAWL_OK;
}

void
pawl_save_hold(struct pawl_save *save)
{
    (void)pthread_mutex_lock(&save->lock);
    save->references++;
    (void)pthread_mutex_unlock(&save->lock);
}

void
pawl_save_let_go(struct pawl_save *save)
{
    (void)pthread_mutex_lock(&save->lock);
    bool is_last = --save->references == 0;
    (void)pthread_mutex_unlock(&save->lock);
    if (!is_last)
        return;
    pawl_parts_release(&save->parts); /* empty after the save; not when it never began */
    (void)pthread_cond_destroy(&save->changed);
    (void)pthread_mutex_destroy(&save->lock);
    free(save);
}

bool
pawl_save_is_own(struct pawl_save *save)
{
    (void)pthread_mutex_lock(&save->lock);
    bool is_own = save->has_thread && !save->is_joined && pthread_equal(save->thread, pthread_self());
    (void)pthread_mutex_unlock(&save->lock);
    return is_own;
}

void
pawl_save_join(struct pawl_save *save)
{
    (void)pthread_mutex_lock(&save->lock);
    bool is_ours = save->has_thread && !save->is_joining;
    save->is_joining = save->is_joining || is_ours;
    while (save->has_thread && !is_ours && !save->is_joined)
        (void)pawl_condition_wait(&save->changed, &save->lock, UINT64_MAX);
    (void)pthread_mutex_unlock(&save->lock);
    if (!is_ours)
        return;
    (void)pthread_join(save->thread, NULL);
    pawl_registry_remove(save);
    (void)pthread_mutex_lock(&save->lock);
    save->is_joined = true;
    (void)pthread_cond_broadcast(&save->changed);
    (void)pthread_mutex_unlock(&save->lock);
}

bool
pawl_save_give_up(struct pawl_save *save)
{
    (void)pthread_mutex_lock(&save->lock);
    bool can = is_over(save->stage) ? save->stage == PAWL_STAGE_CANCELED : !save->is_publishing;
    if (can)
        atomic_store(&save->is_given_up, true);
    (void)pthread_mutex_unlock(&save->lock);
    return can;
}

/* ---- following the save, from its thread ---- */

static int
on_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct pawl_save *save = context;
    const struct pawl_run_options *options = &save->run->options;
    atomic_store(&save->done_bytes, done_bytes < save->total_bytes ? done_bytes : save->total_bytes);
    if (options->progress != NULL && options->progress(options->context, done_bytes, total_bytes) != 0)
        return 1;
    return atomic_load(&save->is_given_up); /* asked last: the callback may have been where it was given up */
}

static void
on_released(void *context)
{
    struct pawl_save *save = context;
    (void)pthread_mutex_lock(&save->lock);
    if (save->stage < PAWL_STAGE_RELEASED)
        save->stage = PAWL_STAGE_RELEASED;
    save->is_released = true;
    (void)pthread_cond_broadcast(&save->changed);
    (void)pthread_mutex_unlock(&save->lock);
}

static void
on_written(void *context)
{
    struct pawl_save *save = context;
    (void)pthread_mutex_lock(&save->lock);
    save->stage = PAWL_STAGE_WRITTEN;
    (void)pthread_cond_broadcast(&save->changed);
    (void)pthread_mutex_unlock(&save->lock);
}

static enum pawl_status
on_publishing(void *context, struct pawl_error *err)
{
    struct pawl_save *save = context;
    (void)pthread_mutex_lock(&save->lock);
    bool is_given_up = atomic_load(&save->is_given_up);
    save->is_publishing = !is_given_up;
    (void)pthread_mutex_unlock(&save->lock);
    if (!is_given_up)
        return PAWL_OK;
    return pawl_fail(err, PAWL_CANCELED, "canceled", "the save was abandoned by its caller");
}

/* ---- the thread ---- */

static void
tell_end(struct pawl_save *save, enum pawl_status st, const struct pawl_error *err)
{
    (void)pthread_mutex_lock(&save->lock);
    save->durable_ns = st == PAWL_OK ? pawl_monotonic_ns() - save->begin_ns : 0;
    save->is_released = true;
    save->is_publishing = true;
    save->stage = st == PAWL_OK ? PAWL_STAGE_DURABLE : st == PAWL_CANCELED ? PAWL_STAGE_CANCELED : PAWL_STAGE_FAILED;
    if (st == PAWL_OK)
        atomic_store(&save->done_bytes, save->total_bytes);
    else
        save->error = *err;
    (void)pthread_cond_broadcast(&save->changed);
    (void)pthread_mutex_unlock(&save->lock);
}

static void
on_durable(void *context)
{
    struct pawl_save *save = context;
    tell_end(save, PAWL_OK, NULL);
    if (save->run->options.saved != NULL)
        save->run->options.saved(save->run->options.context, save);
}

static void *
carry_out(void *context)
{
    struct pawl_save *save = context;
    struct pawl_run *run = save->run;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_save_watch watch = { .progress = on_progress,
                                           .released = on_released,
                                           .written = on_written,
                                           .publishing = on_publishing,
                                           .durable = on_durable,
                                           .context = save,
                                           .times = &save->times };
    enum pawl_status st = pawl_save_parts(run, &save->parts, save->step, &watch, &err);
    pawl_parts_release(&save->parts);
    if (st != PAWL_OK) {
        tell_end(save, st, &err);
        if (run->options.saved != NULL)
            run->options.saved(run->options.context, save);
    }
    (void)pthread_mutex_lock(&run->lock);
    run->flight_is_over = true;
    (void)pthread_cond_broadcast(&run->changed);
    (void)pthread_mutex_unlock(&run->lock);
    return NULL; /* who is told joins this thread before the run can go */
}

/* ---- the run's side ---- */

static enum pawl_status
fail_own(const struct pawl_save *save, struct pawl_error *err)
{
    return pawl_fail(err, PAWL_ARGUMENT, "own-save",
                     "called from a callback of the save of step %" PRId64 ", which it would wait for", save->step);
}

enum pawl_status
pawl_flight_refuse(struct pawl_run *run, struct pawl_error *err)
{
    if (run->flight == NULL || run->flight_is_over)
        return PAWL_OK;
    return pawl_fail(err, PAWL_BUSY, "in-flight",
                     "the save of step %" PRId64 " is in flight, and the run refuses to wait", run->flight->step);
}

enum pawl_status
pawl_flight_wait(struct pawl_run *run, struct pawl_error *err)
{
    while (run->flight != NULL) {
        struct pawl_save *save = run->flight;
        if (!run->flight_is_over) {
            if (pawl_save_is_own(save))
                return fail_own(save, err);
            (void)pawl_condition_wait(&run->changed, &run->lock, UINT64_MAX);
            continue;
        }
        run->flight = NULL;
        run->flight_is_over = false;
        pawl_save_join(save);
        if (save->stage == PAWL_STAGE_FAILED) { /* no thread writes it any more */
            assert(run->failed == NULL);
            run->failed = save;
        } else {
            pawl_save_let_go(save);
        }
    }
    return PAWL_OK;
}

enum pawl_status
pawl_flight_tell(struct pawl_run *run, struct pawl_error *err)
{
    struct pawl_save *save = run->failed;
    if (save == NULL)
        return PAWL_OK;
    run->failed = NULL;
    (void)pthread_mutex_lock(&save->lock);
    bool was_told = save->is_told;
    save->is_told = true;
    (void)pthread_mutex_unlock(&save->lock);
    enum pawl_status st = was_told ? PAWL_OK : save->error.status;
    if (st != PAWL_OK && err != NULL)
        *err = save->error;
    pawl_save_let_go(save);
    return st == PAWL_OK ? st : pawl_context(err, st, "an earlier save, in the background");
}

/* Memory for the images of these parts. */
static enum pawl_status
ensure_shadow(struct pawl_run *run, const struct pawl_parts *parts, struct pawl_error *err)
{
    size_t bytes;
    if (!pawl_snapshot_bytes(parts, &bytes) || bytes > SIZE_MAX - SHADOW_ROOM)
        return pawl_fail(err, PAWL_NO_MEMORY, "no-memory", "a snapshot of %" PRIu64 " bytes is more than memory can be",
                         parts->bytes);
    if (bytes <= run->shadow.bytes)
        return PAWL_OK;
    pawl_pages_release(&run->shadow);
    if (pawl_pages_take(&run->shadow, bytes + SHADOW_ROOM))
        return PAWL_OK;
    (void)pawl_fail_memory(err, bytes + SHADOW_ROOM);
    pawl_error_hint(err, "a copy takes as much memory as the state: with PAWL_SNAPSHOT_BORROW there is none");
    return PAWL_NO_MEMORY;
}

/* The parts of a save, and their snapshot when one is to be taken. */
static enum pawl_status
plan_and_copy(struct pawl_run *run, struct pawl_state *state, const struct pawl_parts_options *options,
              bool is_only_prepared, struct pawl_parts *parts, struct pawl_error *err)
{
    bool is_copy = run->options.snapshot == PAWL_SNAPSHOT_COPY;
    enum pawl_status st = pawl_state_enter(state, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_parts_plan(parts, state, options, err);
    if (st == PAWL_OK && is_copy)
        st = ensure_shadow(run, parts, err);
    if (st == PAWL_OK && !is_only_prepared)
        st = pawl_parts_own(parts, !is_copy, err);
    if (st == PAWL_OK && !is_only_prepared && is_copy)
        st = pawl_snapshot_take(parts, run->shadow.data, err);
    if (st != PAWL_OK)
        pawl_parts_release(parts);
    pawl_state_leave(state);
    return st;
}

/* Hand the save to a thread. The run's lock is held, and let go for as long as the save takes where no thread can be had. */
static void
begin(struct pawl_run *run, struct pawl_save *save)
{
    run->flight = save;
    run->flight_is_over = false;
    (void)pthread_mutex_lock(&save->lock);
    int code = pawl_thread_begin(&save->thread, carry_out, save);
    save->has_thread = code == 0;
    (void)pthread_mutex_unlock(&save->lock);
    if (code == 0)
        return;
    pawl_registry_remove(save);
    (void)pthread_mutex_lock(&save->lock);
    save->thread = pthread_self();
    save->has_thread = true;
    save->is_joining = true; /* by the end of this call */
    (void)pthread_mutex_unlock(&save->lock);
    (void)pthread_mutex_unlock(&run->lock);
    pawl_warn(&run->warner, "no-thread", NULL, "no thread can be had (error %d): the save is carried out at once",
              code);
    (void)carry_out(save);
    (void)pthread_mutex_lock(&save->lock);
    save->is_joined = true;
    (void)pthread_cond_broadcast(&save->changed);
    (void)pthread_mutex_unlock(&save->lock);
    (void)pthread_mutex_lock(&run->lock);
}

static enum pawl_status
save_locked(struct pawl_run *run, struct pawl_state *state, int64_t step, const struct pawl_save_options *save_options,
            uint64_t asked_ns, struct pawl_save **ret_save, struct pawl_error *err)
{
    struct pawl_save *save = NULL;
    const struct pawl_parts_options options = { .step = step,
                                                .profile = run->options.profile,
                                                .max_file_bytes = run->options.max_file_bytes,
                                                .metrics = save_options->metrics,
                                                .n_metrics = save_options->n_metrics,
                                                .with_sums = run->options.write_sums != 0 };
    uint64_t begin_ns = pawl_monotonic_ns();
    enum pawl_status st = pawl_registry_start(err);
    if (st == PAWL_OK)
        st = new_save(run, step, &save, err);
    if (st != PAWL_OK)
        return st;
    st = plan_and_copy(run, state, &options, false, &save->parts, err);
    if (st != PAWL_OK) {
        pawl_save_let_go(save);
        return st;
    }
    save->begin_ns = begin_ns;
    save->waited_ns = begin_ns - asked_ns;
    save->total_bytes = save->parts.bytes;
    save->is_released = run->options.snapshot == PAWL_SNAPSHOT_COPY;
    if (save->is_released)
        save->stage = PAWL_STAGE_RELEASED;
    if (ret_save != NULL)
        pawl_save_hold(save);
    pawl_save_hold(save); /* this call's */
    pawl_registry_add(save);
    begin(run, save);
    (void)pthread_mutex_lock(&save->lock);
    save->stall_ns = pawl_monotonic_ns() - begin_ns;
    (void)pthread_mutex_unlock(&save->lock);
    if (ret_save != NULL)
        *ret_save = save;
    pawl_save_let_go(save);
    return PAWL_OK;
}

enum pawl_status
pawl_run_save_async(struct pawl_run *run, struct pawl_state *state, int64_t step,
                    const struct pawl_save_options *options, struct pawl_save **ret_save, struct pawl_error *err)
{
    struct pawl_save_options known = { .size = sizeof known };
    uint64_t asked_ns = pawl_monotonic_ns();
    enum pawl_status st = PAWL_OK;
    if (state == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no state was given");
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_save_options", err);
    if (st == PAWL_OK)
        st = pawl_run_enter_save(run, err);
    if (st != PAWL_OK)
        return st;
    st = save_locked(run, state, step, &known, asked_ns, ret_save, err);
    pawl_run_leave(run);
    return st == PAWL_OK ? st : pawl_context(err, st, "save step %" PRId64, step);
}

enum pawl_status
pawl_run_prepare(struct pawl_run *run, struct pawl_state *state, struct pawl_error *err)
{
    struct pawl_parts parts;
    if (state == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no state was given");
    enum pawl_status st = pawl_run_enter(run, err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_parts_options options = { .step = 0,
                                                .profile = run->options.profile,
                                                .max_file_bytes = run->options.max_file_bytes,
                                                .with_sums = run->options.write_sums != 0 };
    st = pawl_registry_start(err);
    if (st == PAWL_OK)
        st = plan_and_copy(run, state, &options, true, &parts, err);
    if (st == PAWL_OK)
        pawl_parts_release(&parts);
    pawl_run_leave(run);
    return st == PAWL_OK ? st : pawl_context(err, st, "prepare for saves in the background");
}

enum pawl_status
pawl_run_wait(struct pawl_run *run, struct pawl_error *err)
{
    enum pawl_status st = pawl_run_enter(run, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_flight_tell(run, err);
    pawl_run_leave(run);
    return st;
}

/* ---- the handle ---- */

static enum pawl_status
lock_save(struct pawl_save *save, struct pawl_error *err)
{
    if (save == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no save was given");
    /* Asked before the lock, which in a child may be held by a thread that is not there. */
    int64_t process = save->os->process_id(save->os->context);
    if (process != save->process)
        return pawl_fail(err, PAWL_WRONG_PROCESS, "wrong-process",
                         "the save was begun by process %" PRId64 " and is asked by process %" PRId64, save->process,
                         process);
    (void)pthread_mutex_lock(&save->lock);
    return PAWL_OK;
}

/* The save's lock is held. */
static enum pawl_status
wait_locked(struct pawl_save *save, int64_t timeout_ms, bool for_release, struct pawl_error *err)
{
    uint64_t deadline = pawl_deadline_ns(timeout_ms);
    bool is_own = save->has_thread && !save->is_joined && pthread_equal(save->thread, pthread_self());
    bool has_time = timeout_ms != 0;
    while (!(for_release ? save->is_released : is_over(save->stage))) {
        if (!has_time)
            return pawl_fail(err, PAWL_TIME_OUT, "time-out",
                             "the save of step %" PRId64 " is not %s after %" PRId64 " ms", save->step,
                             for_release ? "released" : "durable", timeout_ms);
        if (is_own)
            return fail_own(save, err);
        has_time = pawl_condition_wait(&save->changed, &save->lock, deadline);
    }
    return PAWL_OK;
}

int64_t
pawl_save_step(const struct pawl_save *save)
{
    return save == NULL ? -1 : save->step;
}

enum pawl_status
pawl_save_stage(struct pawl_save *save, enum pawl_stage *ret_stage, struct pawl_error *err)
{
    if (ret_stage == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no place for the stage was given");
    enum pawl_status st = lock_save(save, err);
    if (st != PAWL_OK)
        return st;
    *ret_stage = save->stage;
    (void)pthread_mutex_unlock(&save->lock);
    return PAWL_OK;
}

enum pawl_status
pawl_save_wait(struct pawl_save *save, int64_t timeout_ms, struct pawl_error *err)
{
    enum pawl_status st = lock_save(save, err);
    if (st != PAWL_OK)
        return st;
    st = wait_locked(save, timeout_ms, false, err);
    if (st == PAWL_OK && save->stage != PAWL_STAGE_DURABLE) {
        save->is_told = true;
        st = save->error.status;
        if (err != NULL)
            *err = save->error;
    }
    (void)pthread_mutex_unlock(&save->lock);
    return st;
}

enum pawl_status
pawl_save_wait_released(struct pawl_save *save, int64_t timeout_ms, struct pawl_error *err)
{
    enum pawl_status st = lock_save(save, err);
    if (st != PAWL_OK)
        return st;
    st = wait_locked(save, timeout_ms, true, err);
    (void)pthread_mutex_unlock(&save->lock);
    return st;
}

enum pawl_status
pawl_save_progress(struct pawl_save *save, uint64_t *ret_done_bytes, uint64_t *ret_total_bytes, struct pawl_error *err)
{
    enum pawl_status st = lock_save(save, err);
    if (st != PAWL_OK)
        return st;
    if (ret_done_bytes != NULL)
        *ret_done_bytes = atomic_load(&save->done_bytes);
    if (ret_total_bytes != NULL)
        *ret_total_bytes = save->total_bytes;
    (void)pthread_mutex_unlock(&save->lock);
    return PAWL_OK;
}

enum pawl_status
pawl_save_cancel(struct pawl_save *save, bool *ret_canceled, struct pawl_error *err)
{
    enum pawl_status st = lock_save(save, err);
    if (st != PAWL_OK)
        return st;
    (void)pthread_mutex_unlock(&save->lock);
    bool is_canceled = pawl_save_give_up(save);
    if (ret_canceled != NULL)
        *ret_canceled = is_canceled;
    return PAWL_OK;
}

enum pawl_status
pawl_save_statistics(struct pawl_save *save, struct pawl_save_stats *ret_stats, struct pawl_error *err)
{
    if (ret_stats == NULL || ret_stats->size < sizeof *ret_stats)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "struct pawl_save_stats is missing or has no size: use its macro");
    enum pawl_status st = lock_save(save, err);
    if (st != PAWL_OK)
        return st;
    *ret_stats = (struct pawl_save_stats){ .size = ret_stats->size,
                                           .bytes = save->total_bytes,
                                           .waited_seconds = seconds(save->waited_ns),
                                           .stall_seconds = seconds(save->stall_ns),
                                           .hash_seconds = seconds(atomic_load(&save->times.hash)),
                                           .write_seconds = seconds(atomic_load(&save->times.write)),
                                           .sync_seconds = seconds(atomic_load(&save->times.sync)),
                                           .durable_seconds = seconds(save->durable_ns) };
    (void)pthread_mutex_unlock(&save->lock);
    return PAWL_OK;
}

void
pawl_save_release(struct pawl_save *save)
{
    /* In a child the handle stays as it is. */
    if (save != NULL && save->os->process_id(save->os->context) == save->process)
        pawl_save_let_go(save);
}
