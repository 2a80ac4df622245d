/* checkpoint/run.h: what is inside a struct pawl_run, and runs over another table of the system (tests). */
#ifndef PAWL_CHECKPOINT_RUN_H
#define PAWL_CHECKPOINT_RUN_H

#include <pthread.h>
#include "base/arena.h"
#include "checkpoint/policies.h"
#include "checkpoint/root.h"
#include "os/file.h"
#include "os/kept.h"
#include "pawl/run.h"

/* Said once per run: what a filesystem lacks, it lacks every time. */
enum pawl_run_said {
    PAWL_SAID_EXCHANGE = 1 << 0,
    PAWL_SAID_NO_REPLACE = 1 << 1,
    PAWL_SAID_RESERVE = 1 << 2,
    PAWL_SAID_DIR_SYNC = 1 << 3,
    PAWL_SAID_NEWER = 1 << 4
};

struct pawl_run {
    pthread_mutex_t lock;
    const struct pawl_os *os;
    int64_t process; /* that opened it */
    struct pawl_dir
        root; /* open and locked: a change of the working directory, or of a link in the path, changes nothing */
    struct pawl_run_options options;
    struct pawl_arena arena; /* what `policy` points to */
    struct pawl_retention_policy policy;
    struct pawl_warner warner;
    unsigned said;
    bool is_unsettled; /* what a crashed or failed save left is to be looked after before the next one */
    int64_t *corrupt;  /* steps that a restore found wrong */
    size_t n_corrupt;

    /* Saves in the background, async.c. While one is in flight its thread has the run, without the lock, but for these. */
    pthread_cond_t changed;   /* flight_is_over became true */
    struct pawl_save *flight; /* in flight, or over and not looked at since; a reference. NULL: none */
    bool flight_is_over;
    struct pawl_save *failed; /* the last one that ended so; a reference. NULL: none, or it was told */
    struct pawl_pages shadow; /* where snapshots are kept */
};

/* A NUL-terminated copy of a caller's path, on the heap; PAWL_ARGUMENT for one that is empty or holds a NUL. */
enum pawl_status pawl_root_path(struct pawl_str root, char **ret_path, struct pawl_error *err);

/* Open a root for one piece of care and take its lock: PAWL_BUSY at once when a run has it. Unlock and release it afterwards. */
enum pawl_status pawl_root_open_locked(struct pawl_dir *root, const struct pawl_os *os, struct pawl_str path,
                                       struct pawl_error *err);

enum pawl_status pawl_run_open_os(const struct pawl_os *os, struct pawl_str root,
                                  const struct pawl_run_options *options, struct pawl_run **ret_run,
                                  struct pawl_error *err);
enum pawl_status pawl_ckpt_prune_os(const struct pawl_os *os, struct pawl_str root,
                                    const struct pawl_prune_options *options, struct pawl_report **ret_report,
                                    struct pawl_error *err);

/*
 * Take the run's lock, after the save in flight. PAWL_WRONG_PROCESS in a forked child, where the lock may be held for ever; PAWL_ARGUMENT from a
 * callback of the save in flight.
 */
enum pawl_status pawl_run_enter(struct pawl_run *run, struct pawl_error *err);
/* The same for a new save: PAWL_BUSY when one is in flight and the options refuse that; an error that nobody was told. */
enum pawl_status pawl_run_enter_save(struct pawl_run *run, struct pawl_error *err);
void pawl_run_leave(struct pawl_run *run);

#endif
