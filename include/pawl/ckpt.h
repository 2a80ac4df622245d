/*
 * pawl/ckpt.h: reading checkpoints: the newest that verifies, or a given one; no lock is needed and nothing is written, so a
 * run may be saving there. Rules: docs/format/checkpoint.md. An open checkpoint may be read by several threads.
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
    PAWL_TRUST_FULL = 0,     /* every byte is hashed */
    PAWL_TRUST_SIZE_ONLY = 1 /* sizes only: for a filesystem that checks by itself */
};

struct pawl_ckpt_options {
    size_t size;
    enum pawl_trust trust;
    uint8_t weights_only; /* only the model's files are needed; the optimizer's may be damaged */
};
#define PAWL_CKPT_OPTIONS(...) ((struct pawl_ckpt_options){ .size = sizeof(struct pawl_ckpt_options), __VA_ARGS__ })

/*
 * Open the newest step under `root` that is complete (with weights_only: whose weights can be had), as "Loading" says.
 *
 * ret_report  may be NULL: skipped steps with all their reasons, newest first, before them LATEST when it is not usable; ignored ones.
 *
 * Returns PAWL_OK; PAWL_NOT_FOUND: no step directory at all; PAWL_NONE_COMPLETE: some, none complete, each named with its reasons;
 * PAWL_NO_FILE: no such root; a fault of the machine. Reads and hashes every listed file of the chosen step once.
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

/* Names of config.json, tokenizer.json, generation_config.json and attachments that are there, ascending. */
PAWL_API const struct pawl_str *pawl_ckpt_files(const struct pawl_ckpt *ckpt, size_t *ret_n);
/* Bytes of one of them, read and checked now; the caller's: free with pawl_free. PAWL_NO_FILE when there is none of that name. */
PAWL_API enum pawl_status pawl_ckpt_file(const struct pawl_ckpt *ckpt, struct pawl_str name, void **ret_data,
                                         size_t *ret_bytes, struct pawl_error *err);
/* Give back memory that the library handed over; NULL is fine. */
PAWL_API void pawl_free(void *data);

struct pawl_restore_options {
    size_t size;
    uint8_t lenient; /* take what fits; the report lists the rest. Slots that the checkpoint lacks are still an error */
    uint8_t verify_first; /* check every file before the first byte is overwritten */
    uint8_t other_data;   /* the stream may be over other shards than the checkpoint's */
};
#define PAWL_RESTORE_OPTIONS(...) \
    ((struct pawl_restore_options){ .size = sizeof(struct pawl_restore_options), __VA_ARGS__ })

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

struct pawl_prune_options {
    size_t size;
    int64_t keep;    /* at least 1 */
    uint8_t dry_run; /* only say what would go */
};
#define PAWL_PRUNE_OPTIONS(...) ((struct pawl_prune_options){ .size = sizeof(struct pawl_prune_options), __VA_ARGS__ })

/* Delete old steps under the root's lock, by the rules of retention. What went is in the report (PAWL_NAMES_DELETED). PAWL_BUSY while a run
 * is open there. */
PAWL_API enum pawl_status pawl_ckpt_prune(struct pawl_str root, const struct pawl_prune_options *options,
                                          struct pawl_report **ret_report, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
