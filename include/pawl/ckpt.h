/*
 * pawl/ckpt.h: reading checkpoints: the newest that verifies, or a given one; no lock is needed and nothing is written, so a
 * run may be saving there. Rules: docs/format/checkpoint.md. An open checkpoint may be read by several threads.
 *
 * A forked child may go on with its parent's checkpoints and models. What another thread was verifying at the fork, the child verifies itself. Only
 * pawl_ckpt_restore and pawl_ckpt_verify, of a checkpoint or into a state that another thread was restoring, verifying or saving at that moment, answer
 * PAWL_WRONG_PROCESS there; to close and free it is fine.
 */
#ifndef PAWL_CKPT_H
#define PAWL_CKPT_H

#include "pawl/model.h"
#include "pawl/state.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_ckpt;

enum pawl_trust {
    PAWL_TRUST_FULL = 0,      /* every byte is hashed */
    PAWL_TRUST_SIZE_ONLY = 1, /* sizes only: for a filesystem that checks by itself */
    PAWL_TRUST_LAZY = 2       /* open at once, and verify each tensor when its bytes are first asked for: below */
};

/*
 * With PAWL_TRUST_LAZY opening looks at the manifest, at names and sizes, at the headers, and at the small documents, which are hashed; no tensor is
 * read. The newest step that is right so far is the one that is opened: damage of a tensor's bytes is found later, and nothing falls back to
 * an older step by itself then.
 *
 * From such a checkpoint pawl_model_read, pawl_model_read_slice, pawl_model_map and pawl_convert verify before they hand out. With pawl.sums
 * (pawl_run_options.write_sums) what is read is the MiB blocks that the wanted bytes are in; without, the tensor's whole file, which is hashed
 * against the manifest. What was looked at once is not looked at again; several threads may ask at once, for the same tensor too. Damage is
 * PAWL_CORRUPT ("hash"), with the file, the tensor, the bytes, what was expected and found, and a hint which step to open
 * instead; every later call for these bytes gives it again, others go on. A file that was cut or changed after the opening is an error, never a SIGBUS.
 *
 * What was verified is what was read then. Who changes a file in place afterwards and puts its time back is not found out, and a pointer of
 * pawl_model_map shows what the file has become.
 *
 * pawl_ckpt_file hashes what it gives, pawl_ckpt_restore every tensor file as it reads it: both as with PAWL_TRUST_FULL.
 */

struct pawl_ckpt_options {
    size_t size;
    enum pawl_trust trust;
    uint8_t weights_only; /* only the model's files are needed; the optimizer's may be damaged */
};
#define PAWL_CKPT_OPTIONS(...) PAWL_LITERAL_(pawl_ckpt_options, .size = sizeof(struct pawl_ckpt_options), __VA_ARGS__)

/*
 * Open the newest step under `root` that is complete (with weights_only: whose weights can be had), as "Loading" says.
 *
 * ret_report  may be NULL: skipped steps with all their reasons, newest first, before them LATEST when it is not usable; ignored ones.
 *
 * Returns PAWL_OK; PAWL_NOT_FOUND: no step directory at all; PAWL_NONE_COMPLETE: some, none complete, each named with its reasons;
 * PAWL_NO_FILE: no such root; a fault of the machine. Reads and hashes every listed file of the chosen step once, unless trust says otherwise.
 */
PAWL_API enum pawl_status pawl_ckpt_open_newest(struct pawl_str root, const struct pawl_ckpt_options *options,
                                                struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report,
                                                struct pawl_error *err);
/* That step (or its .prev): PAWL_INCOMPLETE with the reasons in the report; PAWL_NO_FILE when it is not there. */
PAWL_API enum pawl_status pawl_ckpt_open_step(struct pawl_str root, int64_t step,
                                              const struct pawl_ckpt_options *options, struct pawl_ckpt **ret_ckpt,
                                              struct pawl_report **ret_report, struct pawl_error *err);
/* A step directory under any name, or a root: what `--resume DIR` means. */
PAWL_API enum pawl_status pawl_ckpt_open(struct pawl_str path, const struct pawl_ckpt_options *options,
                                         struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report,
                                         struct pawl_error *err);
PAWL_API void pawl_ckpt_close(struct pawl_ckpt *ckpt); /* NULL is fine */

PAWL_API int64_t pawl_ckpt_step(const struct pawl_ckpt *ckpt);
PAWL_API struct pawl_str pawl_ckpt_path(const struct pawl_ckpt *ckpt); /* NUL-terminated */
PAWL_API struct pawl_str pawl_ckpt_name(const struct pawl_ckpt *ckpt); /* "step-000500" or "step-000500.prev" */
PAWL_API bool pawl_ckpt_is_complete(const struct pawl_ckpt *ckpt);     /* false only with weights_only */

/* The weights; the optimizer's tensors, NULL when there are none to be had (weights_only). They live as long as the checkpoint. */
PAWL_API const struct pawl_model *pawl_ckpt_model(const struct pawl_ckpt *ckpt);
PAWL_API const struct pawl_model *pawl_ckpt_optimizer(const struct pawl_ckpt *ckpt);
PAWL_API struct pawl_str pawl_ckpt_optimizer_name(const struct pawl_ckpt *ckpt); /* "none" without one */
PAWL_API struct pawl_str pawl_ckpt_optimizer_state(
    const struct pawl_ckpt *ckpt); /* JSON; data NULL: the writer kept none */

struct pawl_trainer_state {
    int64_t step, tokens_seen;
    int64_t cursor_shard, cursor_offset;
    double lr;
    double loss_scale; /* when has_loss_scale */
    bool has_loss_scale;
    bool has_rng; /* false for state 0 and increment 1: "no generator" */
    struct pawl_pcg32 rng;
    char config_sha256[65];
    char git_sha[41];
};
/* With weights_only and a damaged file: NULL. */
PAWL_API const struct pawl_trainer_state *pawl_ckpt_trainer_state(const struct pawl_ckpt *ckpt);

/* Every key of `rng`, as text: "pcg_state", "pcg_inc" and those of further streams, in the file's order. */
PAWL_API const struct pawl_pair *pawl_ckpt_rng(const struct pawl_ckpt *ckpt, size_t *ret_n);

struct pawl_named_number {
    struct pawl_str name;
    bool is_integer;
    int64_t integer; /* when is_integer */
    double real;     /* else */
};
struct pawl_named_opaque {
    struct pawl_str name, type;
    const void *data;
    size_t bytes;
};
/* pawl.state.json, ascending by name; empty without the file. */
PAWL_API const struct pawl_named_number *pawl_ckpt_numbers(const struct pawl_ckpt *ckpt, size_t *ret_n);
PAWL_API const struct pawl_named_opaque *pawl_ckpt_opaques(const struct pawl_ckpt *ckpt, size_t *ret_n);

struct pawl_metric {
    struct pawl_str name; /* never empty */
    double value;         /* finite */
};
/* pawl.metrics.json, ascending by name; empty without the file, and when it is malformed (then the report has a warning). */
PAWL_API const struct pawl_metric *pawl_ckpt_metrics(const struct pawl_ckpt *ckpt, size_t *ret_n);

/* Names of config.json, tokenizer.json, generation_config.json and attachments that are there, ascending. */
PAWL_API const struct pawl_str *pawl_ckpt_files(const struct pawl_ckpt *ckpt, size_t *ret_n);
/* Bytes of one of them, read and checked now; the caller's: free with pawl_free. PAWL_NO_FILE when there is none of that name. */
PAWL_API enum pawl_status pawl_ckpt_file(const struct pawl_ckpt *ckpt, struct pawl_str name, void **ret_data,
                                         size_t *ret_bytes, struct pawl_error *err);
/*
 * Verify all that a lazy checkpoint has not looked at yet, by all processors: tensors by pawl.sums, what that has no sums of by its hash. To look at every
 * sha256 of the manifest use pawl_verify.
 *
 * ret_report  may be NULL: a verdict; every damaged file, and with pawl.sums every damaged tensor, is a problem.
 *
 * Returns PAWL_OK, at once for a checkpoint that was opened with PAWL_TRUST_FULL; PAWL_INCOMPLETE when something is damaged, the first of it in the
 * message; PAWL_ARGUMENT for one that was opened by its sizes; a fault of the machine. Other threads may read meanwhile. Since 0.1.
 */
PAWL_API enum pawl_status pawl_ckpt_verify(struct pawl_ckpt *ckpt, struct pawl_report **ret_report,
                                           struct pawl_error *err);
/* Give back memory that the library handed over; NULL is fine. */
PAWL_API void pawl_free(void *data);

struct pawl_restore_options {
    size_t size;
    uint8_t lenient; /* take what fits; the report lists the rest. Slots that the checkpoint lacks are still an error */
    uint8_t verify_first; /* check every file before the first byte is overwritten */
    uint8_t other_data;   /* the stream may be over other shards than the checkpoint's */
};
#define PAWL_RESTORE_OPTIONS(...) \
    PAWL_LITERAL_(pawl_restore_options, .size = sizeof(struct pawl_restore_options), __VA_ARGS__)

/*
 * Put a checkpoint back into a state. All names, shapes and dtypes are compared before the first byte is overwritten; each file is hashed as
 * its bytes go into the caller's memory; numbers, generators and stream are set last. Failures as in pawl_run_restore, and
 * PAWL_INCOMPLETE when a file turns out to be damaged.
 */
PAWL_API enum pawl_status pawl_ckpt_restore(struct pawl_ckpt *ckpt, struct pawl_state *state,
                                            const struct pawl_restore_options *options, struct pawl_report **ret_report,
                                            struct pawl_error *err);

/* ---- a root as a whole ---- */

/* Every step directory and .prev, ascending, with its verdict; *ret_latest (may be NULL): what LATEST names, "" when there is none or it is
 * malformed. */
PAWL_API enum pawl_status pawl_ckpt_list(struct pawl_str root, enum pawl_trust trust, struct pawl_report **ret_report,
                                         char ret_latest[32], struct pawl_error *err);

/* The step number of a directory's name, -1 when it is not exactly one of ours ("step-000042"). */
PAWL_API int64_t pawl_step_of_name(struct pawl_str name);
/* "step-000042"; "" below 0. */
PAWL_API void pawl_step_name(int64_t step, char ret_name[32]);

/*
 * Wait for a step that a load would choose and that is newer than `newer_than` (-1: any), for an evaluator beside a run. The root need not
 * be there yet. It is looked at about once a second, cheaply: steps are hashed only when LATEST or the names in the root say that something is new.
 *
 * timeout_ms  negative: for ever; 0: look once.
 * options     may be NULL.
 *
 * Returns PAWL_OK, as pawl_ckpt_open_newest; PAWL_TIME_OUT; PAWL_CANCELED; a fault of the machine. That there is no step, or no complete
 * one, is no failure: it may come.
 */
struct pawl_wait_options {
    size_t size;
    const struct pawl_ckpt_options *ckpt; /* may be NULL */
    int (*waiting)(void *context); /* called before each pause; another answer than 0 ends the wait: PAWL_CANCELED */
    void *context;
};
#define PAWL_WAIT_OPTIONS(...) PAWL_LITERAL_(pawl_wait_options, .size = sizeof(struct pawl_wait_options), __VA_ARGS__)
PAWL_API enum pawl_status pawl_ckpt_wait(struct pawl_str root, int64_t newer_than, int64_t timeout_ms,
                                         const struct pawl_wait_options *options, struct pawl_ckpt **ret_ckpt,
                                         struct pawl_report **ret_report, struct pawl_error *err);

/* ---- care: each of these takes the root's lock, and answers PAWL_BUSY while a run is open there ---- */

enum pawl_direction { PAWL_LEAST = 0, PAWL_GREATEST = 1 };

/* The best `count` steps by a metric; of equal values the newer. A step without the metric does not compete. */
struct pawl_keep_best {
    struct pawl_str metric;
    enum pawl_direction direction; /* which values are best */
    int64_t count;                 /* at least 1 */
};

struct pawl_prune_options {
    size_t size;
    int64_t keep;                           /* the newest that count; 0 only beside another policy: nothing goes then */
    uint8_t dry_run;                        /* only say what would go */
    int64_t keep_every;                     /* the multiples of this step number stay too; 0: no such policy */
    const struct pawl_keep_best *keep_best; /* these stay too */
    size_t n_keep_best;
};
#define PAWL_PRUNE_OPTIONS(...) \
    PAWL_LITERAL_(pawl_prune_options, .size = sizeof(struct pawl_prune_options), __VA_ARGS__)

/*
 * Delete old steps by the rules of retention: what any of the policies keeps stays, pinned steps stay, and with fewer than `keep` that count
 * nothing goes. What went is in the report (PAWL_NAMES_DELETED); what could not be deleted is a warning there.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT; PAWL_BUSY; PAWL_NO_FILE; system failures. Nothing is ever left half-deleted under a step's name.
 */
PAWL_API enum pawl_status pawl_ckpt_prune(struct pawl_str root, const struct pawl_prune_options *options,
                                          struct pawl_report **ret_report, struct pawl_error *err);

/*
 * Pin a step: retention never deletes it, broken or not. It need not be there (yet). Durable on return; pinning twice, or unpinning what is
 * not pinned, changes nothing. With a run open use pawl_run_pin.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT below 0; PAWL_CORRUPT when RETENTION.json is malformed (it is left as it is: nothing is deleted
 * meanwhile); PAWL_BUSY; PAWL_NO_FILE: no such root; system failures, after which the pins are the old or the new ones.
 */
PAWL_API enum pawl_status pawl_ckpt_pin(struct pawl_str root, int64_t step, struct pawl_error *err);
PAWL_API enum pawl_status pawl_ckpt_unpin(struct pawl_str root, int64_t step, struct pawl_error *err);
/* Every pinned step, ascending; the caller's: free with pawl_free. Needs no lock. */
PAWL_API enum pawl_status pawl_ckpt_pins(struct pawl_str root, int64_t **ret_steps, size_t *ret_n,
                                         struct pawl_error *err);

struct pawl_repair_options {
    size_t size;
    uint8_t dry_run; /* only say what would be renamed */
};
#define PAWL_REPAIR_OPTIONS(...) \
    PAWL_LITERAL_(pawl_repair_options, .size = sizeof(struct pawl_repair_options), __VA_ARGS__)

/*
 * Quarantine every broken step: hash all of them, and rename those that are not complete to step-N.bad, which no load looks at and retention
 * neither counts nor deletes. Nothing is deleted but a `.prev` beside its complete step. A LATEST that names a broken step is
 * first moved to the step that a load takes instead, so that what loads is the same before and after; without an older complete
 * one it stays as it is.
 *
 * ret_report  may be NULL: a verdict for each broken step with its reasons; the names (PAWL_NAMES_QUARANTINED); warnings.
 *
 * Returns PAWL_OK, also when nothing was broken; PAWL_EXISTS when a step-N.bad is there already: that step stays as it is, the others are
 * quarantined; PAWL_BUSY; PAWL_NO_FILE; a fault of the machine, after which the rest is as it was.
 */
PAWL_API enum pawl_status pawl_ckpt_repair(struct pawl_str root, const struct pawl_repair_options *options,
                                           struct pawl_report **ret_report, struct pawl_error *err);

struct pawl_copy_options {
    size_t size;
    uint8_t replace; /* a step of that name may be replaced, atomically */
    /* Bytes read and in all; another answer than 0 abandons the copy (PAWL_CANCELED): nothing is left of it. */
    int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context;
};
#define PAWL_COPY_OPTIONS(...) PAWL_LITERAL_(pawl_copy_options, .size = sizeof(struct pawl_copy_options), __VA_ARGS__)

/*
 * Copy a complete step. Every byte is hashed as it is read; the copy is synced, read again and verified by its manifest, and only then gets
 * its name.
 *
 * step  a step directory under any name; or a root: the step that a load takes.
 * dest  a directory that is there and is no step: the copy is `dest`/step-N. Else the name of the new directory; missing
 *       parents are created. A copy under a step's name is made under that root's lock, and LATEST there is left alone.
 *
 * ret_report  may be NULL: a verdict on the copy, whose name is its path; of a source that is not complete the reasons.
 *
 * Returns PAWL_OK; PAWL_INCOMPLETE and what pawl_ckpt_open answers for the source; PAWL_EXISTS; PAWL_BUSY; PAWL_NO_SPACE;
 * PAWL_CANCELED; PAWL_CORRUPT when the copy does not read back; system failures. After any failure there is no new name, and what
 * was there is whole.
 */
PAWL_API enum pawl_status pawl_ckpt_copy(struct pawl_str step, struct pawl_str dest,
                                         const struct pawl_copy_options *options, struct pawl_report **ret_report,
                                         struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
