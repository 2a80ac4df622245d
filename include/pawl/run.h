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
 * A run locks itself: its calls may come from any thread, one is carried out at a time. After fork, the child's calls answer
 * PAWL_WRONG_PROCESS; the parent's lock and save are not disturbed.
 */
#ifndef PAWL_RUN_H
#define PAWL_RUN_H

#include "pawl/ckpt.h"
#include "pawl/state.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_run;

enum pawl_busy {
    PAWL_BUSY_ERROR = 0, /* another writer has the root: PAWL_BUSY at once */
    PAWL_BUSY_WAIT = 1   /* wait for it */
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
     */
    int (*failpoint)(void *context, const char *name);
    /* What was done instead of the usual, or could not be deleted. `problem` lives for the call. */
    void (*warning)(void *context, const struct pawl_problem *problem);
    /* Bytes written and in all, now and then, from the saving thread; another answer than 0 abandons the save (PAWL_CANCELED),
     * as long as it is not published. */
    int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context; /* of the three */
};
#define PAWL_RUN_OPTIONS(...) ((struct pawl_run_options){ .size = sizeof(struct pawl_run_options), __VA_ARGS__ })

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
#define PAWL_SAVE_OPTIONS(...) ((struct pawl_save_options){ .size = sizeof(struct pawl_save_options), __VA_ARGS__ })

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

/* As pawl_ckpt_pin and pawl_ckpt_unpin, for the root that this run has locked. */
PAWL_API enum pawl_status pawl_run_pin(struct pawl_run *run, int64_t step, struct pawl_error *err);
PAWL_API enum pawl_status pawl_run_unpin(struct pawl_run *run, int64_t step, struct pawl_error *err);
/* As pawl_ckpt_prune and pawl_ckpt_repair, for the root that this run has locked. */
PAWL_API enum pawl_status pawl_run_prune(struct pawl_run *run, const struct pawl_prune_options *options,
                                         struct pawl_report **ret_report, struct pawl_error *err);
PAWL_API enum pawl_status pawl_run_repair(struct pawl_run *run, const struct pawl_repair_options *options,
                                          struct pawl_report **ret_report, struct pawl_error *err);

/* Release the lock. NULL is fine. */
PAWL_API enum pawl_status pawl_run_close(struct pawl_run *run, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
