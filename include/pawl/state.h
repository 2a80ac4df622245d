/*
 * pawl/state.h: what a run must not lose, described once.
 *
 * A state says where things live: tensors, numbers, generators, a token
 * stream. Saving reads from those places and restoring writes to them, so
 * nothing can be saved and not restored. Nothing is copied until a save, unless a
 * function says so; what is described must outlive the state, or the next description.
 *
 * Where things go on disk: docs/format/checkpoint.md. A state locks itself; but while it is being
 * saved or restored the caller's memory must not be written by others. In a child that was forked
 * while another thread saved or restored it, it answers PAWL_WRONG_PROCESS.
 */
#ifndef PAWL_STATE_H
#define PAWL_STATE_H

#include "pawl/pcg32.h"
#include "pawl/stream.h"
#include "pawl/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_state;

PAWL_API enum pawl_status pawl_state_new(struct pawl_state **ret_state, struct pawl_error *err);
PAWL_API void pawl_state_free(struct pawl_state *state); /* NULL is fine */

/*
 * Add a tensor to PAWL_MODEL or PAWL_OPTIMIZER. In the optimizer's slot the name is "<parameter>.<state key>".
 * Two tensors with equal address, dtype, shape and strides share storage: they are written once and restored once.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT for a slot without tensors, no data and no source, a name that is taken,
 * "__metadata__" or not UTF-8, an unknown dtype, a source whose bytes do not fit; PAWL_CORRUPT ("overflow", "bits") for a
 * shape that no file can hold; PAWL_NO_MEMORY.
 */
PAWL_API enum pawl_status pawl_state_tensor(struct pawl_state *state, const struct pawl_tensor *tensor,
                                            struct pawl_error *err);

/*
 * Add a number: `number` points to a double (PAWL_F64), an int64_t (PAWL_I64) or a uint64_t (PAWL_U64).
 *
 * PAWL_TRAINER    tokens_seen, data_cursor.shard, data_cursor.offset (integers), lr, loss_scale (doubles). The step is the save's.
 * PAWL_OPTIMIZER  a key of the optimizer's state: step, lr, eps, weight_decay, momentum ... Needs pawl_state_optimizer.
 * PAWL_EXTRA      any name: kept in pawl.state.json, bit for bit; doubles there may be infinite or NaN (payloads of NaN are not kept).
 *
 * Returns PAWL_ARGUMENT for a name that the slot does not know, that is taken or empty, or a dtype that does not suit it.
 */
PAWL_API enum pawl_status pawl_state_number(struct pawl_state *state, enum pawl_slot slot, const char *name,
                                            enum pawl_dtype dtype, void *number, struct pawl_error *err);
/* n numbers in a row under one key of the optimizer's state: betas. Only PAWL_OPTIMIZER. */
PAWL_API enum pawl_status pawl_state_numbers(struct pawl_state *state, enum pawl_slot slot, const char *name,
                                             enum pawl_dtype dtype, void *numbers, size_t n, struct pawl_error *err);

/*
 * Name the optimizer, in lower case: "adamw", "sgd", "muon" ... Without a call the run has none. Copied.
 * A restore from a checkpoint of another optimizer is a mismatch.
 */
PAWL_API enum pawl_status pawl_state_optimizer(struct pawl_state *state, const char *name, struct pawl_error *err);
/*
 * Further keys of the optimizer's state, as the text of one JSON object; copied, replaces the one of an earlier call. Keys that are
 * also numbers of the slot are PAWL_ARGUMENT at the save. It is written and never restored into anything: read it back with
 * pawl_ckpt_optimizer_state. NULL data takes it away.
 */
PAWL_API enum pawl_status pawl_state_optimizer_json(struct pawl_state *state, struct pawl_str json,
                                                    struct pawl_error *err);

/*
 * Add a generator. name NULL: the run's own (pcg_state, pcg_inc); else "<name>_state", "<name>_inc"; any name but "pcg".
 * A pending normal is kept too ("<name>_spare" in pawl.state.json; "pcg_spare" for the run's own).
 */
PAWL_API enum pawl_status pawl_state_rng(struct pawl_state *state, const char *name, struct pawl_pcg32 *rng,
                                         struct pawl_error *err);

/* The stream's cursor and generator (then there is no other run's own generator), and which data set they belong to
 * (pawl.stream.json): restoring over other shards is PAWL_MISMATCH. At most one. */
PAWL_API enum pawl_status pawl_state_stream(struct pawl_state *state, struct pawl_stream *stream,
                                            struct pawl_error *err);

/* Bytes that another library reads (a generator of its own, say): tag `type` says which. Kept in pawl.state.json. The size is fixed: a
 * checkpoint with another is a mismatch. */
PAWL_API enum pawl_status pawl_state_opaque(struct pawl_state *state, const char *name, const char *type, void *data,
                                            size_t bytes, struct pawl_error *err);

/* A text of trainer_state.json: "config_sha256" (64 hex digits) or "git_sha" (40, or "unknown"). Copied; never restored. */
PAWL_API enum pawl_status pawl_state_text(struct pawl_state *state, const char *name, struct pawl_str text,
                                          struct pawl_error *err);

/* Metadata of the model's file; "format" is "pt" unless given. Keys that begin with "pawl." are refused. Copied; a second call with one
 * key replaces its value. Never restored: read it with pawl_model_metadata. */
PAWL_API enum pawl_status pawl_state_metadata(struct pawl_state *state, struct pawl_str key, struct pawl_str value,
                                              struct pawl_error *err);

/*
 * A file that goes along: config.json, tokenizer.json, generation_config.json (verbatim, never parsed), or an
 * attachment under a name of the caller's. Copied; a second call with one name replaces it, data NULL takes it away.
 * A restore does not touch it: what the checkpoint holds is read with pawl_ckpt_file.
 *
 * PAWL_ARGUMENT for a name that is reserved (docs/format/checkpoint.md), empty, ".", "..", not UTF-8, or with a slash, backslash or NUL.
 */
PAWL_API enum pawl_status pawl_state_file(struct pawl_state *state, struct pawl_str name, const void *data,
                                          size_t bytes, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
