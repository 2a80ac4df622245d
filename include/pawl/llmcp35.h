/*
 * pawl/llmcp35.h: LLMCP35 version 1: one file with a tokenizer, a small decoder
 * language model, its AdamW state and a sampling generator. The same state always
 * gives the same bytes, and a reader takes nothing but those. Format:
 * docs/format/llmcp35.md.
 *
 * A checkpoint (struct pawl_llmcp35) never changes. It comes from a file:
 *
 *     pawl_llmcp35_load_z("run.llmcp35", &checkpoint, NULL, &err);
 *
 * or from training, which holds a model and the AdamW state that belongs to it:
 *
 *     pawl_llmcp35_restore(checkpoint, &training, NULL, &err);   (or pawl_llmcp35_training_new)
 *     for (;;)
 *         pawl_llmcp35_update(training, &update, &err);          all of a step at once, or nothing
 *     pawl_llmcp35_capture(training, &bundle, &err);             model, optimizer and step of one instant
 *     pawl_llmcp35_new(bundle, tokenizer, rng_state, &checkpoint, NULL, &err);
 *     pawl_llmcp35_save_z(checkpoint, "run.llmcp35", NULL, &err);
 *
 * A bundle comes from training only, and training from a model and its own
 * optimizer: there is no way to pair one with the other's.
 *
 * A file holds no corpus, batch order, training generator, schedule of rates,
 * clipping or validation policy, and no gradients: those are the caller's.
 *
 * Checkpoints and tokenizers may be read by several threads; training belongs to one
 * at a time. Since 0.1.
 */
#ifndef PAWL_LLMCP35_H
#define PAWL_LLMCP35_H

#include "pawl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_llmcp35;           /* a checkpoint */
struct pawl_llmcp35_tokenizer; /* literal pieces, or byte-level BPE */
struct pawl_llmcp35_training;  /* a model and its AdamW state */
struct pawl_llmcp35_bundle;    /* what one instant of training leaves */
struct pawl_llmcp35_fault;     /* a failure as data */

/* ---- failures as data ---- */

/*
 * The format's page gives every failure a category, a cause where the category has several, and values. In a struct
 * pawl_error the code is "category/cause" or "category"; calls that take a `struct pawl_llmcp35_fault **ret_fault` (may be
 * NULL) give all of it: on failure *ret_fault is the caller's until pawl_llmcp35_fault_free, or NULL when the failure has
 * none (an argument) or memory ran out. A failure of the system has category "io" with the values operation, path and
 * errno; its code in the struct pawl_error is the system's ("no-space", "not-found", "io" ...).
 */
enum pawl_llmcp35_field_type {
    PAWL_LLMCP35_NUMBER = 1,  /* number */
    PAWL_LLMCP35_REAL = 2,    /* real: any bits */
    PAWL_LLMCP35_TEXT = 3,    /* text */
    PAWL_LLMCP35_NUMBERS = 4, /* n numbers: a shape */
    PAWL_LLMCP35_NAMES = 5    /* n names */
};

struct pawl_llmcp35_field {
    const char *name; /* "where", "expected", "layer" ... */
    enum pawl_llmcp35_field_type type;
    uint64_t number;
    double real;
    struct pawl_str text;
    const uint64_t *numbers;
    const struct pawl_str *names;
    size_t n;
};

PAWL_API const char *pawl_llmcp35_fault_category(const struct pawl_llmcp35_fault *fault); /* "layout" */
PAWL_API const char *pawl_llmcp35_fault_cause(const struct pawl_llmcp35_fault *fault); /* "byte_length"; NULL: none */
PAWL_API const struct pawl_llmcp35_field *pawl_llmcp35_fault_fields(const struct pawl_llmcp35_fault *fault,
                                                                    size_t *ret_n);
PAWL_API void pawl_llmcp35_fault_free(struct pawl_llmcp35_fault *fault); /* NULL is fine */

/* ---- tokenizers ---- */

enum pawl_llmcp35_tokenizer_kind { PAWL_LLMCP35_LITERAL = 1, PAWL_LLMCP35_BYTE_BPE = 2 };

/* Begin and end of document of a byte-BPE tokenizer; the bytes are 2 to 257, merge r is 258 + r. */
#define PAWL_LLMCP35_BPE_BEGIN 0
#define PAWL_LLMCP35_BPE_END 1

/* Token i is spelt pieces[i]: any bytes, at least one, no two the same, at least one token. Copied. */
PAWL_API enum pawl_status pawl_llmcp35_tokenizer_literal(const struct pawl_str *pieces, size_t n,
                                                         struct pawl_llmcp35_tokenizer **ret_tokenizer,
                                                         struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
/* Merge r joins pairs[2 r] and pairs[2 r + 1], in the ids of training: 0 to 255 are bytes, 256 + r is merge r. Copied. n, the
 * number of merges, may be 0. */
PAWL_API enum pawl_status pawl_llmcp35_tokenizer_bpe(const uint32_t *pairs, size_t n,
                                                     struct pawl_llmcp35_tokenizer **ret_tokenizer,
                                                     struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
PAWL_API void pawl_llmcp35_tokenizer_free(struct pawl_llmcp35_tokenizer *tokenizer); /* NULL is fine */

PAWL_API enum pawl_llmcp35_tokenizer_kind pawl_llmcp35_tokenizer_kind(const struct pawl_llmcp35_tokenizer *tokenizer);
/* Ids are 0 ... this - 1. */
PAWL_API uint64_t pawl_llmcp35_tokenizer_vocabulary(const struct pawl_llmcp35_tokenizer *tokenizer);
/* Merges of a byte-BPE tokenizer, two numbers each, in rank order; NULL and 0 of a literal one. */
PAWL_API const uint32_t *pawl_llmcp35_tokenizer_merges(const struct pawl_llmcp35_tokenizer *tokenizer, size_t *ret_n);
/* The id of exactly this literal piece; false when there is none, or the tokenizer is not literal. */
PAWL_API bool pawl_llmcp35_tokenizer_find(const struct pawl_llmcp35_tokenizer *tokenizer, struct pawl_str piece,
                                          uint64_t *ret_id);
/*
 * The bytes of one token, appended to nothing: *ret_bytes is their number, and `bytes` (may be NULL) takes the first
 * bytes_max. The two controls of byte-BPE have none. PAWL_ARGUMENT for an id that is not there.
 */
PAWL_API enum pawl_status pawl_llmcp35_tokenizer_spell(const struct pawl_llmcp35_tokenizer *tokenizer, uint64_t id,
                                                       void *bytes, size_t bytes_max, uint64_t *ret_bytes,
                                                       struct pawl_error *err);
/*
 * The ids of a text, of a byte-BPE tokenizer: the bytes, joined by merge 0 wherever it applies from left to right, then by
 * merge 1, and so on; no controls. *ret_n is their number; `ids` takes at most n_max of them, and n ids always
 * suffice for n bytes: PAWL_ARGUMENT when they do not fit. A literal tokenizer is PAWL_UNSUPPORTED: its format does not say
 * how a text is cut into pieces; find each with pawl_llmcp35_tokenizer_find.
 * Costs a pass over the text for every merge that applies.
 */
PAWL_API enum pawl_status pawl_llmcp35_tokenizer_encode(const struct pawl_llmcp35_tokenizer *tokenizer,
                                                        const void *text, size_t n, uint64_t *ids, size_t n_max,
                                                        size_t *ret_n, struct pawl_error *err);

/* ---- the sampling generator ---- */

/* SplitMix64: the next draw; *state is the raw state before it, and the one after it on return. */
PAWL_API uint64_t pawl_llmcp35_draw(uint64_t *state);

/* ---- reading ---- */

/*
 * Decode a whole file. Checks run in the order of the format's page, and the first that fails is the answer. `bytes` are not
 * kept. Memory: the values once more, and a table of records; never more than a small multiple of n, whatever the file says.
 *
 * Returns PAWL_OK; PAWL_TRUNCATED for the category "truncated"; PAWL_NO_MEMORY for "allocation"; else PAWL_CORRUPT.
 */
PAWL_API enum pawl_status pawl_llmcp35_decode(const void *bytes, size_t n, struct pawl_llmcp35 **ret_checkpoint,
                                              struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
/* Read a file whole and decode it. What the system answers, or as pawl_llmcp35_decode with the path. */
PAWL_API enum pawl_status pawl_llmcp35_load(struct pawl_str path, struct pawl_llmcp35 **ret_checkpoint,
                                            struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
PAWL_API enum pawl_status pawl_llmcp35_load_z(const char *path, struct pawl_llmcp35 **ret_checkpoint,
                                              struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
PAWL_API void pawl_llmcp35_free(struct pawl_llmcp35 *checkpoint); /* NULL is fine */

/* ---- looking ---- */

struct pawl_llmcp35_config {
    size_t size;
    uint64_t vocabulary, width, heads, feed_forward, layers, positions;
    double rope_base, rms_epsilon;
};
#define PAWL_LLMCP35_CONFIG(...) \
    PAWL_LITERAL_(pawl_llmcp35_config, .size = sizeof(struct pawl_llmcp35_config), __VA_ARGS__)

/* has_groups 0: weight decay for every parameter. Else the two lists together name them all. */
struct pawl_llmcp35_adamw {
    size_t size;
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    const struct pawl_str *decay, *no_decay; /* of a checkpoint: in byte order */
    size_t n_decay, n_no_decay;
    uint8_t has_groups;
};
#define PAWL_LLMCP35_ADAMW(...) \
    PAWL_LITERAL_(pawl_llmcp35_adamw, .size = sizeof(struct pawl_llmcp35_adamw), __VA_ARGS__)

struct pawl_llmcp35_facts {
    struct pawl_llmcp35_config config;
    struct pawl_llmcp35_adamw adamw;
    uint64_t step;
    double beta1_power, beta2_power;
    uint64_t rng_state; /* before its next draw */
    const struct pawl_llmcp35_tokenizer *tokenizer;
    uint64_t parameters; /* tensors */
    uint64_t values;     /* numbers in all parameters */
    uint64_t header_bytes, payload_bytes;
    uint64_t checksum; /* FNV-1a of the file, its own field taken as zero */
};
/* Everything but the tensors. Pointers in it live as long as the checkpoint. */
PAWL_API void pawl_llmcp35_facts(const struct pawl_llmcp35 *checkpoint, struct pawl_llmcp35_facts *ret_facts);

/* A parameter, in model order; first and second are NULL at step 0. All n values, row-major. */
struct pawl_llmcp35_parameter {
    struct pawl_str name;
    const uint64_t *shape;
    size_t rank, n;
    const double *values, *first, *second;
    uint8_t is_decayed; /* weight decay applies to it */
};
PAWL_API const struct pawl_llmcp35_parameter *pawl_llmcp35_parameters(const struct pawl_llmcp35 *checkpoint,
                                                                      size_t *ret_n);

enum pawl_llmcp35_role {
    PAWL_LLMCP35_TOKEN = 1,
    PAWL_LLMCP35_MERGES = 2,
    PAWL_LLMCP35_PARAMETER = 3,
    PAWL_LLMCP35_FIRST_MOMENT = 4,
    PAWL_LLMCP35_SECOND_MOMENT = 5
};
enum pawl_llmcp35_dtype { PAWL_LLMCP35_U8 = 1, PAWL_LLMCP35_U32 = 2, PAWL_LLMCP35_F64 = 3 };

/* An entry of the file's record table. */
struct pawl_llmcp35_record {
    struct pawl_str name;
    enum pawl_llmcp35_role role;
    enum pawl_llmcp35_dtype dtype;
    size_t rank;
    const uint64_t *shape;
    uint64_t offset, bytes; /* where it lies in the file */
};
PAWL_API const struct pawl_llmcp35_record *pawl_llmcp35_records(const struct pawl_llmcp35 *checkpoint, size_t *ret_n);

/* ---- writing ---- */

/* The checkpoint's file, header_bytes + payload_bytes of it, into `bytes`. PAWL_ARGUMENT when n is another number. */
PAWL_API enum pawl_status pawl_llmcp35_encode(const struct pawl_llmcp35 *checkpoint, void *bytes, size_t n,
                                              struct pawl_error *err);
/*
 * Write the checkpoint's file beside `path`, sync it, and rename it onto `path`, whatever is there. After a failure `path`
 * has all of its old bytes, or, when the last sync of the directory failed, all of the new. pawl_llmcp35_facts and
 * pawl_llmcp35_records describe what was written.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT ("layout/no_file_name"); PAWL_NO_MEMORY; what the system answers, category "io".
 */
PAWL_API enum pawl_status pawl_llmcp35_save(const struct pawl_llmcp35 *checkpoint, struct pawl_str path,
                                            struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
PAWL_API enum pawl_status pawl_llmcp35_save_z(const struct pawl_llmcp35 *checkpoint, const char *path,
                                              struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);

/* ---- training ---- */

/*
 * A new model at step 0. values[i] are those of parameter i in model order (docs/format/llmcp35.md), as many as its shape has;
 * copied, as are the groups. Failures are those of a file that said the same: "model/odd_head_width".
 */
PAWL_API enum pawl_status pawl_llmcp35_training_new(const struct pawl_llmcp35_config *config,
                                                    const struct pawl_llmcp35_adamw *adamw, const double *const *values,
                                                    size_t n_values, struct pawl_llmcp35_training **ret_training,
                                                    struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
/*
 * Restore model and optimizer, by copy. "model/block_attention_rotary_table_allocation" (PAWL_NO_MEMORY) when the tables of
 * the checkpoint's position capacity can't be had.
 */
PAWL_API enum pawl_status pawl_llmcp35_restore(const struct pawl_llmcp35 *checkpoint,
                                               struct pawl_llmcp35_training **ret_training,
                                               struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
/* The same without a copy: on PAWL_OK the checkpoint is gone, its values have moved. On failure it is as it was. */
PAWL_API enum pawl_status pawl_llmcp35_restore_move(struct pawl_llmcp35 *checkpoint,
                                                    struct pawl_llmcp35_training **ret_training,
                                                    struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err);
PAWL_API void pawl_llmcp35_training_free(struct pawl_llmcp35_training *training); /* NULL is fine */

struct pawl_llmcp35_training_facts {
    struct pawl_llmcp35_config config;
    struct pawl_llmcp35_adamw adamw;
    uint64_t step;
    double beta1_power, beta2_power;
};
PAWL_API void pawl_llmcp35_training_facts(const struct pawl_llmcp35_training *training,
                                          struct pawl_llmcp35_training_facts *ret_facts);
/* In model order; the pointers stay until the next update. */
PAWL_API const struct pawl_llmcp35_parameter *pawl_llmcp35_training_parameters(
    const struct pawl_llmcp35_training *training, size_t *ret_n);
/*
 * Cosines and sines of the angles of positions 0 ... `positions` - 1, `pairs` (half a head's width) in a row. They are worked
 * out as far as they are asked for. PAWL_ARGUMENT beyond the model's capacity.
 */
PAWL_API enum pawl_status pawl_llmcp35_training_rotary(struct pawl_llmcp35_training *training, uint64_t positions,
                                                       const double **ret_cosines, const double **ret_sines,
                                                       size_t *ret_pairs, struct pawl_error *err);

/* What one step of the optimizer gives: for every parameter in model order all of its new numbers, and the powers. */
struct pawl_llmcp35_update {
    size_t size;
    const double *const *values, *const *first, *const *second; /* n each; copied */
    size_t n;
    double beta1_power, beta2_power;
};
#define PAWL_LLMCP35_UPDATE(...) \
    PAWL_LITERAL_(pawl_llmcp35_update, .size = sizeof(struct pawl_llmcp35_update), __VA_ARGS__)

/*
 * Take a step's result: everything, and the step counter goes up by one; or, when anything in it could not stand in a file
 * (a number that is not finite, a negative second moment, a power outside [0, 1)), nothing. PAWL_OUT_OF_RANGE then, and when
 * the counter is at its end.
 */
PAWL_API enum pawl_status pawl_llmcp35_update(struct pawl_llmcp35_training *training,
                                              const struct pawl_llmcp35_update *update, struct pawl_error *err);

/* Copy model, optimizer and step of this instant. PAWL_NO_MEMORY. */
PAWL_API enum pawl_status pawl_llmcp35_capture(const struct pawl_llmcp35_training *training,
                                               struct pawl_llmcp35_bundle **ret_bundle, struct pawl_error *err);
PAWL_API void pawl_llmcp35_bundle_free(struct pawl_llmcp35_bundle *bundle); /* NULL is fine */

/*
 * A checkpoint of a bundle, a tokenizer (copied) and the state of the sampling generator. On PAWL_OK the bundle is used up.
 * Failures: "vocabulary_mismatch", "adamw_state/parameter_groups_mismatch", "size_overflow" ...; then the bundle is as it was.
 */
PAWL_API enum pawl_status pawl_llmcp35_new(struct pawl_llmcp35_bundle *bundle,
                                           const struct pawl_llmcp35_tokenizer *tokenizer, uint64_t rng_state,
                                           struct pawl_llmcp35 **ret_checkpoint, struct pawl_llmcp35_fault **ret_fault,
                                           struct pawl_error *err);

/* ---- to and from safetensors, without loss ---- */

/*
 * Write the checkpoint as a safetensors file, durably, replacing what is there when `may_replace`: parameters by their names (F64),
 * moments as adamw.first.NAME and adamw.second.NAME (F64), tokens as tokenizer.token.ID (U8) or tokenizer.training-pairs
 * (U32), all else in the metadata (docs/format/llmcp35.md). Returns as pawl_safetensors_write.
 */
PAWL_API enum pawl_status pawl_llmcp35_export_safetensors(const struct pawl_llmcp35 *checkpoint, struct pawl_str path,
                                                          uint8_t may_replace, struct pawl_error *err);
/*
 * Read such a file. What was exported comes back bit for bit. PAWL_CORRUPT "content" when a tensor or a key is missing, unknown
 * or of another form; a fault of its safetensors; or as pawl_llmcp35_decode of the file that says the same.
 */
PAWL_API enum pawl_status pawl_llmcp35_import_safetensors(struct pawl_str path, struct pawl_llmcp35 **ret_checkpoint,
                                                          struct pawl_llmcp35_fault **ret_fault,
                                                          struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
