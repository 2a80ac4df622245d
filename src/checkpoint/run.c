/* checkpoint/run.c: the handle of the one writer of a root. */
#include "checkpoint/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include "base/str.h"
#include "checkpoint/names.h"
#include "base/options.h"
#include "checkpoint/async.h"
#include "checkpoint/save.h"
#include "os/thread.h"

enum pawl_status
pawl_root_path(struct pawl_str root, char **ret_path, struct pawl_error *err)
{
    if (root.len == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the root's path is empty");
    if (memchr(root.data, '\0', root.len) != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the root's path '%s' holds a NUL", PAWL_SHOW(root));
    char *path = pawl_str_dup(root);
    if (path == NULL)
        return pawl_fail_memory(err, root.len + 1);
    *ret_path = path;
    return PAWL_OK;
}

enum pawl_status
pawl_root_open_locked(struct pawl_dir *root, const struct pawl_os *os, struct pawl_str path, struct pawl_error *err)
{
    char *copy = NULL;
    enum pawl_status st = pawl_root_path(path, &copy, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(root, os, copy, err);
    if (st == PAWL_OK) {
        st = pawl_dir_lock(root, PAWL_OS_LOCK_TRY, NULL, err);
        if (st != PAWL_OK)
            pawl_dir_release(root);
    }
    free(copy);
    return st;
}

/* ---- entering ---- */

static enum pawl_status
lock_run(struct pawl_run *run, struct pawl_error *err)
{
    if (run == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no run was given");
    int64_t process = run->os->process_id(run->os->context);
    if (process != run->process)
        return pawl_fail(err, PAWL_WRONG_PROCESS, "wrong-process",
                         "the run was opened by process %" PRId64 " and is used by process %" PRId64
                         ": a forked child opens its own",
                         run->process, process);
    (void)pthread_mutex_lock(&run->lock);
    return PAWL_OK;
}

enum pawl_status
pawl_run_enter(struct pawl_run *run, struct pawl_error *err)
{
    enum pawl_status st = lock_run(run, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_flight_wait(run, err);
    if (st != PAWL_OK)
        pawl_run_leave(run);
    return st;
}

enum pawl_status
pawl_run_enter_save(struct pawl_run *run, struct pawl_error *err)
{
    enum pawl_status st = lock_run(run, err);
    if (st != PAWL_OK)
        return st;
    if (run->options.in_flight == PAWL_IN_FLIGHT_REFUSE)
        st = pawl_flight_refuse(run, err);
    if (st == PAWL_OK)
        st = pawl_flight_wait(run, err);
    if (st == PAWL_OK)
        st = pawl_flight_tell(run, err);
    if (st != PAWL_OK)
        pawl_run_leave(run);
    return st;
}

void
pawl_run_leave(struct pawl_run *run)
{
    (void)pthread_mutex_unlock(&run->lock);
}

/* ---- opening and closing ---- */

static enum pawl_status
check_options(const struct pawl_run_options *options, struct pawl_error *err)
{
    const struct pawl_retention_policy policy = { options->keep, options->keep_every, options->keep_best,
                                                  options->n_keep_best };
    enum pawl_status st = pawl_policy_check(&policy, err);
    if (st != PAWL_OK)
        return st;
    if (options->profile != PAWL_PROFILE_NONE && options->profile != PAWL_PROFILE_TINYLLM &&
        options->profile != PAWL_PROFILE_COURSE)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no profile", (int)options->profile);
    if (options->busy != PAWL_BUSY_ERROR && options->busy != PAWL_BUSY_WAIT)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "busy is %d, expected PAWL_BUSY_ERROR or PAWL_BUSY_WAIT",
                         (int)options->busy);
    if (options->snapshot != PAWL_SNAPSHOT_COPY && options->snapshot != PAWL_SNAPSHOT_BORROW)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "snapshot is %d, expected PAWL_SNAPSHOT_COPY or PAWL_SNAPSHOT_BORROW", (int)options->snapshot);
    if (options->in_flight != PAWL_IN_FLIGHT_WAIT && options->in_flight != PAWL_IN_FLIGHT_REFUSE)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "in_flight is %d, expected PAWL_IN_FLIGHT_WAIT or PAWL_IN_FLIGHT_REFUSE",
                         (int)options->in_flight);
    if (options->at_exit != PAWL_AT_EXIT_WAIT && options->at_exit != PAWL_AT_EXIT_CANCEL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "at_exit is %d, expected PAWL_AT_EXIT_WAIT or PAWL_AT_EXIT_CANCEL", (int)options->at_exit);
    return PAWL_OK;
}

static enum pawl_status
lock_root(struct pawl_run *run, struct pawl_error *err)
{
    bool is_fallback = false;
    bool is_waiting = run->options.busy == PAWL_BUSY_WAIT;
    struct pawl_error why;
    enum pawl_status st =
        pawl_dir_lock(&run->root, is_waiting ? PAWL_OS_LOCK_WAIT : PAWL_OS_LOCK_TRY, &is_fallback, &why);
    if (st == PAWL_UNSUPPORTED) {
        pawl_warn_error(&run->warner, "no-lock", NULL, "the root is not locked: see that no other writer uses it",
                        &why);
        return PAWL_OK;
    }
    if (st != PAWL_OK) {
        if (err != NULL)
            *err = why;
        return st;
    }
    if (is_fallback)
        pawl_warn(&run->warner, "lock-file", ".lock", "the directory can't be locked here: the file .lock in it is");
    const char *weak = pawl_dir_weak_kind(&run->root);
    if (weak != NULL)
        pawl_warn(&run->warner, "weak-filesystem", NULL,
                  "the root is on %s: what is durable there is what its server keeps", weak);
    return PAWL_OK;
}

static void
free_run(struct pawl_run *run)
{
    pawl_dir_release(&run->root);
    (void)pthread_cond_destroy(&run->changed);
    (void)pthread_mutex_destroy(&run->lock);
    pawl_pages_release(&run->shadow);
    pawl_arena_release(&run->arena);
    free(run->corrupt);
    free(run);
}

enum pawl_status
pawl_run_open_os(const struct pawl_os *os, struct pawl_str root, const struct pawl_run_options *options,
                 struct pawl_run **ret_run, struct pawl_error *err)
{
    struct pawl_run_options known = { .size = sizeof known };
    struct pawl_run *run = NULL;
    char *path = NULL;
    enum pawl_status st = PAWL_OK;
    if (ret_run == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no place for the run was given");
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_run_options", err);
    if (st == PAWL_OK)
        st = check_options(&known, err);
    if (st == PAWL_OK)
        st = pawl_root_path(root, &path, err);
    if (st != PAWL_OK)
        return st;
    run = calloc(1, sizeof *run);
    if (run == NULL || pthread_mutex_init(&run->lock, NULL) != 0) {
        free(run);
        free(path);
        return pawl_fail_memory(err, sizeof *run);
    }
    if (pawl_condition_init(&run->changed) != 0) {
        (void)pthread_mutex_destroy(&run->lock);
        free(run);
        free(path);
        return pawl_fail_memory(err, sizeof *run);
    }
    run->os = os;
    run->process = os->process_id(os->context);
    run->options = known;
    run->warner = (struct pawl_warner){ known.warning, known.context, NULL };
    run->is_unsettled = true;
    run->policy = (struct pawl_retention_policy){ known.keep, known.keep_every, known.keep_best, known.n_keep_best };
    st = pawl_policy_copy(&run->policy, &run->arena, err);
    run->options.keep_best = run->policy.best;
    if (st == PAWL_OK)
        st = pawl_dir_create_all(os, path, NULL, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&run->root, os, path, err);
    if (st == PAWL_OK)
        st = lock_root(run, err);
    if (st == PAWL_OK)
        *ret_run = run;
    else
        free_run(run);
    if (st != PAWL_OK)
        st = pawl_context(err, st, "open run '%s'", PAWL_SHOW(root));
    free(path);
    return st;
}

enum pawl_status
pawl_run_open(struct pawl_str root, const struct pawl_run_options *options, struct pawl_run **ret_run,
              struct pawl_error *err)
{
    return pawl_run_open_os(pawl_os_posix(), root, options, ret_run, err);
}

enum pawl_status
pawl_run_open_z(const char *root, const struct pawl_run_options *options, struct pawl_run **ret_run,
                struct pawl_error *err)
{
    return pawl_run_open(pawl_str_z(root), options, ret_run, err);
}

enum pawl_status
pawl_run_close(struct pawl_run *run, struct pawl_error *err)
{
    if (run == NULL)
        return PAWL_OK;
    /* In a child the handle stays as it is: unlocking would take the parent's lock away. */
    enum pawl_status st = pawl_run_enter(run, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_flight_tell(run, err);
    pawl_run_leave(run);
    pawl_dir_unlock(&run->root);
    free_run(run);
    return st;
}

/* ---- what a run does ---- */

enum pawl_status
pawl_run_has_steps(struct pawl_run *run, bool *ret_has, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    if (ret_has == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no place for the answer was given");
    enum pawl_status st = pawl_run_enter(run, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_dir_list(&run->root, &list, err);
    pawl_run_leave(run);
    if (st != PAWL_OK)
        return st;
    bool has = false;
    for (size_t i = 0; i < list.n; i++) {
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(list.entries[i].name), NULL);
        has = has || kind == PAWL_ENTRY_STEP || kind == PAWL_ENTRY_PREV || kind == PAWL_ENTRY_BAD;
    }
    pawl_dir_list_release(&list);
    *ret_has = has;
    return PAWL_OK;
}

static enum pawl_status
save_locked(struct pawl_run *run, struct pawl_state *state, int64_t step, const struct pawl_save_options *save,
            struct pawl_error *err)
{
    struct pawl_parts parts;
    const struct pawl_parts_options options = { .step = step,
                                                .profile = run->options.profile,
                                                .max_file_bytes = run->options.max_file_bytes,
                                                .metrics = save->metrics,
                                                .n_metrics = save->n_metrics,
                                                .with_sums = run->options.write_sums != 0 };
    enum pawl_status st = pawl_state_enter(state, err);
    if (st != PAWL_OK)
        return pawl_context(err, st, "save step %" PRId64, step);
    st = pawl_parts_plan(&parts, state, &options, err);
    if (st == PAWL_OK) {
        st = pawl_save_parts(run, &parts, step, NULL, err);
        pawl_parts_release(&parts);
    } else {
        st = pawl_context(err, st, "save step %" PRId64, step);
    }
    pawl_state_leave(state);
    return st;
}

enum pawl_status
pawl_run_save(struct pawl_run *run, struct pawl_state *state, int64_t step, const struct pawl_save_options *options,
              struct pawl_error *err)
{
    struct pawl_save_options known = { .size = sizeof known };
    enum pawl_status st = PAWL_OK;
    if (state == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no state was given");
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_save_options", err);
    if (st == PAWL_OK)
        st = pawl_run_enter_save(run, err);
    if (st != PAWL_OK)
        return st;
    st = save_locked(run, state, step, &known, err);
    pawl_run_leave(run);
    return st;
}
