/*
 * pawl/run.h: a checkpoint root and the one writer that owns it.
 *
 *     pawl_run_open_z("out/ckpt", &PAWL_RUN_OPTIONS(.keep = 3), &run, &err);
 *     st = pawl_run_restore(run, state, &step, NULL, &err);
 *     if (st != PAWL_OK && st != PAWL_NOT_FOUND)
 *         die(&err);
 *     while (step < steps) { ...; pawl_run_save(run, state, ++step, NULL, &err); }
 *     pawl_run_close(run, &err);
 *
 * With pawl_run_save_async in place of pawl_run_save the loop goes on while the step is written (below: "Saving in the background").
 *
 * A run locks itself: its calls may come from any thread, one is carried out at a time, and a call waits for a save in flight. After fork,
 * the child's calls answer PAWL_WRONG_PROCESS, at once; the parent's lock and save are not disturbed. A callback of a save must not call what
 * would wait for that save: PAWL_ARGUMENT ("own-save") where it can be told (a save in the background), never a hang there.
 */
#ifndef PAWL_RUN_H
#define PAWL_RUN_H

#include "pawl/ckpt.h"
#include "pawl/state.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_run;
struct pawl_save;

enum pawl_busy {
    PAWL_BUSY_ERROR = 0, /* another writer has the root: PAWL_BUSY at once */
    PAWL_BUSY_WAIT = 1   /* wait for it */
};

/* How a save in the background gets at the tensors as they were. */
enum pawl_snapshot {
    PAWL_SNAPSHOT_COPY =
        0, /* they are copied before the call returns, into memory that the run keeps: one model more */
    PAWL_SNAPSHOT_BORROW = 1 /* the caller leaves them alone until the save is released: no copy, no memory */
};

/* A save is asked for while one is in flight. */
enum pawl_in_flight {
    PAWL_IN_FLIGHT_WAIT = 0,  /* wait for it */
    PAWL_IN_FLIGHT_REFUSE = 1 /* PAWL_BUSY ("in-flight") at once, nothing was done */
};

/* The program leaves (exit, return from main) with a save in flight. */
enum pawl_at_exit {
    PAWL_AT_EXIT_WAIT = 0,  /* wait for it */
    PAWL_AT_EXIT_CANCEL = 1 /* give it up if it is not published yet: `saved` hears of it */
};

struct pawl_run_options {
    size_t size;
    int64_t keep;       /* newest steps that stay; 0: all. Negative: PAWL_ARGUMENT */
    int64_t keep_every; /* of the older ones the multiples of this step number stay too; 0: no such policy */
    const struct pawl_keep_best *keep_best; /* and the best by these metrics, that saves were given; copied */
    size_t n_keep_best;
    enum pawl_profile profile;
    uint64_t max_file_bytes; /* of one model or optimizer file's tensors; 0: 5,000,000,000; UINT64_MAX: never split */
    enum pawl_busy busy;
    uint8_t write_created_at; /* a time in MANIFEST.json: then two saves of one state are not byte-identical */
    uint8_t verify_first; /* restore: check every file before the first byte is overwritten (each is then read twice) */

    /*
     * Called at the named points of a save (save/after-file, save/before-manifest, save/before-rename, save/before-latest,
     * save/before-prune), for tests of recovery. Another answer than 0 makes the save fail there as an I/O error would.
     * This one and the next two are called by the thread that saves: for a save in the background that is one of Pawl's.
     */
    int (*failpoint)(void *context, const char *name);
    /* What was done instead of the usual, or could not be deleted. `problem` lives for the call. */
    void (*warning)(void *context, const struct pawl_problem *problem);
    /* Bytes written and in all, now and then, from the saving thread; another answer than 0 abandons the save (PAWL_CANCELED),
     * as long as it is not published. */
    int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context; /* of the callbacks */

    enum pawl_snapshot snapshot;
    enum pawl_in_flight in_flight;
    enum pawl_at_exit at_exit;
    /*
     * A save in the background is over: durable (and then never before), failed or canceled; pawl_save_wait(save, 0, &err) tells. From the
     * thread that saved, outside of the run's lock; the handle is lent for the call. It may call anything but what would wait for this save:
     * for the next call of the run it is in flight until this has returned and old steps, which go only after it, are gone.
     */
    void (*saved)(void *context, struct pawl_save *save);
    /*
     * Write pawl.sums into each step: a fast checksum for every MiB of the tensor files, taken as they are written. With it a report names the
     * damaged tensors, and a lazy checkpoint (PAWL_TRUST_LAZY) verifies a tensor without the rest of its file. 8 bytes for a MiB.
     */
    uint8_t write_sums;
};
#define PAWL_RUN_OPTIONS(...) PAWL_LITERAL_(pawl_run_options, .size = sizeof(struct pawl_run_options), __VA_ARGS__)

/*
 * Open a root for writing: create it (and missing parents) durably, and take its lock until the run is closed.
 * What a crashed writer left is mended here or by the next save, never what is complete.
 *
 * Returns PAWL_OK; PAWL_BUSY, naming the holder where the system tells; PAWL_ARGUMENT; system failures.
 */
PAWL_API enum pawl_status pawl_run_open(struct pawl_str root, const struct pawl_run_options *options,
                                        struct pawl_run **ret_run, struct pawl_error *err);
PAWL_API enum pawl_status pawl_run_open_z(const char *root, const struct pawl_run_options *options,
                                          struct pawl_run **ret_run, struct pawl_error *err);

/* Whether the root has any step directory, complete or not, quarantined ones too. For a trainer that must not begin in a used root. */
PAWL_API enum pawl_status pawl_run_has_steps(struct pawl_run *run, bool *ret_has, struct pawl_error *err);

/*
 * Restore the newest step that verifies, by docs/format/checkpoint.md "Loading". The state's tensors, numbers, generators and
 * stream must be exactly those of the checkpoint.
 *
 * ret_step    set on PAWL_OK only.
 * ret_report  may be NULL; what was skipped and why, what is ignored; on PAWL_MISMATCH the names.
 *
 * Returns PAWL_OK; PAWL_NOT_FOUND (a fresh start: nothing was touched); PAWL_NONE_COMPLETE (stop!); PAWL_MISMATCH, every name in
 * the report and the first ones in the message; a fault of the machine. After a failure other than NOT_FOUND and MISMATCH tensors are
 * undefined; numbers, generators and stream are unchanged after any failure.
 */
PAWL_API enum pawl_status pawl_run_restore(struct pawl_run *run, struct pawl_state *state, int64_t *ret_step,
                                           struct pawl_report **ret_report, struct pawl_error *err);

struct pawl_save_options {
    size_t size;
    /* Kept in pawl.metrics.json, for keep_best and for readers (pawl_ckpt_metrics): names that differ, not empty; finite values. */
    const struct pawl_metric *metrics;
    size_t n_metrics;
};
#define PAWL_SAVE_OPTIONS(...) PAWL_LITERAL_(pawl_save_options, .size = sizeof(struct pawl_save_options), __VA_ARGS__)

/*
 * Save the state as `step`, 0 ... 2^63-1. On PAWL_OK the step is durable, LATEST names it, and retention was carried out.
 * An existing step of that number is replaced atomically. options NULL means the defaults.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT, before anything is written, for what the page forbids; what a source answered; PAWL_NO_SPACE with
 * needed and available bytes; PAWL_CANCELED; PAWL_IO and other system failures with the operation and the path. After
 * any failure the previous checkpoint is intact, the temporary is removed where it can be, and the next save works.
 */
PAWL_API enum pawl_status pawl_run_save(struct pawl_run *run, struct pawl_state *state, int64_t step,
                                        const struct pawl_save_options *options, struct pawl_error *err);

/* ---- saving in the background ---- */

/*
 * A save passes these in order; the last three are ends. Only PAWL_STAGE_DURABLE may be logged as saved. The numbers are part of the ABI.
 */
enum pawl_stage {
    PAWL_STAGE_ACCEPTED = 1, /* the call returned: numbers, generators, cursor and files are copied */
    PAWL_STAGE_RELEASED = 2, /* the caller may change its tensors: at once with PAWL_SNAPSHOT_COPY */
    PAWL_STAGE_WRITTEN = 3,  /* all of it is on the disk, and not yet a step */
    PAWL_STAGE_DURABLE = 4,
    PAWL_STAGE_FAILED = 5,
    PAWL_STAGE_CANCELED = 6
};

/*
 * Make ready for saves of this state in the background, so that the first stalls no longer than the others: with PAWL_SNAPSHOT_COPY take the
 * memory and touch it (about the time of writing it twice). Without this call the first pawl_run_save_async does it. What a save
 * of the state would refuse is refused here.
 */
PAWL_API enum pawl_status pawl_run_prepare(struct pawl_run *run, struct pawl_state *state, struct pawl_error *err);

/*
 * Save as pawl_run_save does, and return as soon as the caller may go on: the rest is done by a thread of the library that blocks all signals.
 *
 * With PAWL_SNAPSHOT_COPY the tensors are copied before the return, by all processors, sources by calling them from this thread; then
 * tensors may change and the state may be changed or freed. With PAWL_SNAPSHOT_BORROW nothing is copied but what is not a tensor: until
 * the save is released the tensors' memory must neither change nor go, and sources are called from the library's thread.
 *
 * One save of a run is in flight at a time, and at most one waits: see `in_flight` of the run's options. Retention is part of the save.
 * Where no thread can be had the save is carried out before the return, and `warning` hears "no-thread".
 *
 * ret_save  may be NULL. Set on PAWL_OK only; the caller's, until pawl_save_release. It may outlive the run.
 *
 * Returns PAWL_OK: accepted; what pawl_run_save answers before it writes, and what a source answers; PAWL_BUSY; PAWL_NO_MEMORY. When an
 * earlier save in the background has failed and nobody was told (by pawl_save_wait or pawl_run_wait), this call and
 * pawl_run_save answer with that error instead, once, and save nothing: the message names that step. The next call saves.
 */
PAWL_API enum pawl_status pawl_run_save_async(struct pawl_run *run, struct pawl_state *state, int64_t step,
                                              const struct pawl_save_options *options, struct pawl_save **ret_save,
                                              struct pawl_error *err);

/* Wait for the save in flight, its `saved` callback and retention included; PAWL_OK when there is none. An error of which nobody was told is the answer. */
PAWL_API enum pawl_status pawl_run_wait(struct pawl_run *run, struct pawl_error *err);

/*
 * What follows may be called from any thread, for as long as the handle is held, whether or not the run is still open. After fork, the child's
 * calls answer PAWL_WRONG_PROCESS at once.
 */

PAWL_API int64_t pawl_save_step(const struct pawl_save *save);
PAWL_API enum pawl_status pawl_save_stage(struct pawl_save *save, enum pawl_stage *ret_stage, struct pawl_error *err);

/*
 * Wait until the save is over. timeout_ms negative: for ever; 0: only look. Old steps are deleted after: pawl_run_wait waits for that too.
 *
 * Returns PAWL_OK when it is durable; PAWL_CANCELED; what made it fail, after which this run's next call does not report it again;
 * PAWL_TIME_OUT: it goes on.
 */
PAWL_API enum pawl_status pawl_save_wait(struct pawl_save *save, int64_t timeout_ms, struct pawl_error *err);

/* Wait until the caller may change its tensors: PAWL_OK, also when the save has failed or was canceled; or PAWL_TIME_OUT. */
PAWL_API enum pawl_status pawl_save_wait_released(struct pawl_save *save, int64_t timeout_ms, struct pawl_error *err);

/* Bytes written and in all, the manifest left out. Each may be NULL. */
PAWL_API enum pawl_status pawl_save_progress(struct pawl_save *save, uint64_t *ret_done_bytes,
                                             uint64_t *ret_total_bytes, struct pawl_error *err);

/*
 * Give the save up, unless it is being published already. *ret_canceled (may be NULL) tells: true, and the save will not become a step: it ends
 * as canceled (or failed, when that comes first), its temporary is removed, the checkpoint before is what a load gives; false, and it was too late.
 * Does not wait: pawl_save_wait does. A canceled save is no error of the run's next call.
 */
PAWL_API enum pawl_status pawl_save_cancel(struct pawl_save *save, bool *ret_canceled, struct pawl_error *err);

/* What the save took, so far; each is 0 until known. */
struct pawl_save_stats {
    size_t size;
    uint64_t bytes;         /* of all files */
    double waited_seconds;  /* of the call, for the save before */
    double stall_seconds;   /* of the call, without that: what the caller's loop lost */
    double hash_seconds;    /* of all threads together */
    double write_seconds;   /* likewise, without hashing and syncing */
    double sync_seconds;    /* likewise, of the files */
    double durable_seconds; /* from the call until durable, the wait for the save before left out */
};
#define PAWL_SAVE_STATS_INIT                                            \
    {                                                                   \
        sizeof(struct pawl_save_stats), 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 \
    }

/* ret_stats->size says which version of the struct this is. */
PAWL_API enum pawl_status pawl_save_statistics(struct pawl_save *save, struct pawl_save_stats *ret_stats,
                                               struct pawl_error *err);

/* Let the handle go; the save goes on. NULL is fine; in a forked child it does nothing. */
PAWL_API void pawl_save_release(struct pawl_save *save);

/* ---- care, of the root that this run has locked; each waits for a save in flight ---- */

/* As pawl_ckpt_pin, pawl_ckpt_unpin, pawl_ckpt_prune and pawl_ckpt_repair. */
PAWL_API enum pawl_status pawl_run_pin(struct pawl_run *run, int64_t step, struct pawl_error *err);
PAWL_API enum pawl_status pawl_run_unpin(struct pawl_run *run, int64_t step, struct pawl_error *err);
PAWL_API enum pawl_status pawl_run_prune(struct pawl_run *run, const struct pawl_prune_options *options,
                                         struct pawl_report **ret_report, struct pawl_error *err);
PAWL_API enum pawl_status pawl_run_repair(struct pawl_run *run, const struct pawl_repair_options *options,
                                          struct pawl_report **ret_report, struct pawl_error *err);

/*
 * Wait for a save in flight, release the lock and free the run. NULL is fine. An error of a save in the background of which nobody was
 * told is the answer; the run is closed all the same. With PAWL_WRONG_PROCESS and PAWL_ARGUMENT ("own-save") it is not.
 */
PAWL_API enum pawl_status pawl_run_close(struct pawl_run *run, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
