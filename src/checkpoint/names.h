/* checkpoint/names.h: which names in a root, and in a step directory, are ours. */
#ifndef PAWL_CHECKPOINT_NAMES_H
#define PAWL_CHECKPOINT_NAMES_H

#include "base/fail.h"
#include "base/str.h"
#include "pawl/ckpt.h"

#define PAWL_LATEST "LATEST"
#define PAWL_LATEST_TMP "LATEST.tmp"
#define PAWL_RETENTION "RETENTION.json"
#define PAWL_RETENTION_TMP "RETENTION.tmp"
#define PAWL_MANIFEST "MANIFEST.json"
#define PAWL_TRAINER_STATE "trainer_state.json"
#define PAWL_EXTRA_STATE "pawl.state.json"
#define PAWL_STREAM_STATE "pawl.stream.json"
#define PAWL_METRICS "pawl.metrics.json"
#define PAWL_SUMS "pawl.sums"
#define PAWL_CONFIG "config.json"
#define PAWL_TOKENIZER "tokenizer.json"
#define PAWL_GENERATION_CONFIG "generation_config.json"
#define PAWL_STEP_NAME_BYTES 32 /* "step-", 19 digits, ".prev", NUL */

enum pawl_root_entry {
    PAWL_ENTRY_OTHER = 0, /* not ours: never touched, never a fault */
    PAWL_ENTRY_STEP = 1,  /* step-N */
    PAWL_ENTRY_PREV = 2,  /* step-N.prev */
    PAWL_ENTRY_TMP = 3,   /* step-N.tmp */
    PAWL_ENTRY_BAD = 4    /* step-N.bad */
};

/* What an entry of a root is by its name; *ret_step (may be NULL) for the four of ours. */
enum pawl_root_entry pawl_entry_of_name(struct pawl_str name, int64_t *ret_step);

/* "step-000042" with a suffix: "", ".tmp", ".prev", ".bad". */
void pawl_entry_name(int64_t step, const char *suffix, char ret_name[PAWL_STEP_NAME_BYTES]);

/* "model.safetensors", "model.safetensors.index.json", "model-00001-of-00004.safetensors": is it of that form, of `base` ("model")? */
enum pawl_tensor_file {
    PAWL_TENSOR_FILE_NO = 0,
    PAWL_TENSOR_FILE_SINGLE = 1,
    PAWL_TENSOR_FILE_INDEX = 2,
    PAWL_TENSOR_FILE_SHARD = 3
};
enum pawl_tensor_file pawl_tensor_file_of_name(struct pawl_str name, struct pawl_str base, uint32_t *ret_k,
                                               uint32_t *ret_n);

/* Is it a file of tensors, of the model or the optimizer: no index? */
bool pawl_name_is_tensor_file(struct pawl_str name);

/* May a caller use this name for an attachment (config.json, tokenizer.json and generation_config.json are allowed too: *ret_is_known)? */
enum pawl_status pawl_attachment_name_check(struct pawl_str name, bool *ret_is_known, struct pawl_error *err);

/* Components of a manifest's name: each one costs a directory that is opened for the file, and for those above it. */
#define PAWL_NAME_LEVELS_MAX 512

/* Is it a valid name in a manifest: relative, at most PAWL_NAME_LEVELS_MAX components, no empty, "." or ".." component, no backslash, no NUL, not MANIFEST.json? */
bool pawl_manifest_name_is_valid(struct pawl_str name);
/* What is wrong with it, as the end of a sentence that begins with "the name"; NULL when it is valid. */
const char *pawl_manifest_name_fault(struct pawl_str name);

#endif
