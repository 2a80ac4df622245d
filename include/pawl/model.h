/*
 * pawl/model.h: reading a set of named tensors, whatever holds it: a
 * safetensors file, an index with its shards, a directory of either, a
 * checkpoint's step directory or root (then its weights, checked by the manifest).
 *
 *     pawl_model_open_z("model.safetensors", NULL, &model, &err);
 *     const struct pawl_tensor_info *w = pawl_model_find(model, pawl_str_z("fc.weight"));
 *     pawl_model_read(model, w, PAWL_F32, buffer, sizeof buffer, &err);
 *     pawl_model_close(model);
 *
 * Opening reads headers only. A model may be used by several threads at once.
 * A file that is replaced by rename while open keeps its old contents; one that
 * is cut or changed in place is an error at the next read. No call into Pawl raises
 * SIGBUS; touching a pointer of pawl_model_map after the file was cut does.
 */
#ifndef PAWL_MODEL_H
#define PAWL_MODEL_H

#include "pawl/report.h"
#include "pawl/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_model;

enum pawl_mode {
    PAWL_MODE_STRICT = 0, /* the reference's verdict, and no repeated names */
    PAWL_MODE_COMPAT = 1, /* exactly the reference's verdict */
    PAWL_MODE_LINT = 2    /* strict, with warnings in the report */
};

enum pawl_profile {
    PAWL_PROFILE_NONE = 0,
    PAWL_PROFILE_TINYLLM = 1, /* checkpoints: F32, adamw, sgd, muon or none, format tinyllm */
    PAWL_PROFILE_COURSE = 2   /* F32, F16, BF16, F8_E4M3, I8, U8, I32 */
};

struct pawl_model_options {
    size_t size;
    enum pawl_mode mode;
    enum pawl_profile profile;
    uint64_t header_bytes_max; /* 0: 100,000,000 per file */
};
#define PAWL_MODEL_OPTIONS(...) ((struct pawl_model_options){ .size = sizeof(struct pawl_model_options), __VA_ARGS__ })

/*
 * Open what is at `path`.
 *
 * path     in the system's own encoding, as bytes; copied.
 * options  NULL means the defaults.
 *
 * Returns PAWL_OK; PAWL_NO_FILE; PAWL_CORRUPT or PAWL_TRUNCATED with the fine code ("overlap", "truncated",
 * "not-safetensors" ...), the file, the tensor and the numbers; PAWL_INCOMPLETE or PAWL_NONE_COMPLETE for a
 * checkpoint whose weights can't be had; PAWL_LIMIT; a fault of the machine.
 * Costs a read of each header; of a checkpoint, also a hash of the model's files.
 */
PAWL_API enum pawl_status pawl_model_open(struct pawl_str path, const struct pawl_model_options *options,
                                          struct pawl_model **ret_model, struct pawl_error *err);
PAWL_API enum pawl_status pawl_model_open_z(const char *path, const struct pawl_model_options *options,
                                            struct pawl_model **ret_model, struct pawl_error *err);
PAWL_API void pawl_model_close(struct pawl_model *model); /* NULL is fine; mappings end */

PAWL_API enum pawl_kind pawl_model_kind(const struct pawl_model *model);

/* Tensors in file order, file by file; n of them in a row. Aliases are not among them. */
PAWL_API const struct pawl_tensor_info *pawl_model_tensors(const struct pawl_model *model, size_t *ret_n);
/* By name, exactly; an alias gives its target. NULL when there is none. About 50 ns in file order. */
PAWL_API const struct pawl_tensor_info *pawl_model_find(const struct pawl_model *model, struct pawl_str name);

/* Metadata of the (first) file, as it is there; alias records included. *ret_is_present: {} and absent differ; may be NULL. */
PAWL_API const struct pawl_pair *pawl_model_metadata(const struct pawl_model *model, size_t *ret_n,
                                                     bool *ret_is_present);
/* key: the alias, value: its target; ascending by alias. */
PAWL_API const struct pawl_pair *pawl_model_aliases(const struct pawl_model *model, size_t *ret_n);

struct pawl_model_file {
    struct pawl_str name; /* relative to the model's directory */
    uint64_t bytes;
    uint64_t header_bytes; /* N: the data begin at 8 + N */
};
PAWL_API const struct pawl_model_file *pawl_model_files(const struct pawl_model *model, size_t *ret_n);

/*
 * Read a tensor into the caller's memory.
 *
 * dtype  what the caller wants: the tensor's own (bytes moved untouched), or PAWL_F32 for any float dtype up to 32 bits
 *        (decoded exactly). PAWL_ARGUMENT otherwise.
 * bytes  of `data`; exactly what the result takes, else PAWL_ARGUMENT with both numbers.
 */
PAWL_API enum pawl_status pawl_model_read(const struct pawl_model *model, const struct pawl_tensor_info *tensor,
                                          enum pawl_dtype dtype, void *data, size_t bytes, struct pawl_error *err);
/*
 * The tensor's bytes in a read-only private mapping of its file, made at the first call. Lives until the model is closed.
 * *ret_is_aligned (may be NULL) says whether the address suits the dtype.
 */
PAWL_API enum pawl_status pawl_model_map(const struct pawl_model *model, const struct pawl_tensor_info *tensor,
                                         const void **ret_data, bool *ret_is_aligned, struct pawl_error *err);

/* ---- checking ---- */

struct pawl_verify_options {
    size_t size;
    enum pawl_mode mode;
    enum pawl_profile profile;
    uint8_t size_only;    /* checkpoints: do not hash */
    uint8_t check_finite; /* every NaN or infinity in a float tensor is a problem, by tensor and first index */
    uint64_t vocabulary;  /* token files: the caller's, 0 for none */
};
#define PAWL_VERIFY_OPTIONS(...) \
    ((struct pawl_verify_options){ .size = sizeof(struct pawl_verify_options), __VA_ARGS__ })

/*
 * Examine whatever is at `path` and report every fault (of a single file, the first that stops the reading). A run is
 * examined step by step, one verdict each. Writes nothing.
 *
 * Returns PAWL_OK when it could be examined, whatever was found: the verdicts tell; PAWL_NO_FILE; a fault of the machine.
 */
PAWL_API enum pawl_status pawl_verify(struct pawl_str path, const struct pawl_verify_options *options,
                                      struct pawl_report **ret_report, struct pawl_error *err);

/* What a path is. PAWL_CORRUPT with the code of what it seems to be ("lfs-pointer", "compressed", "unknown-format" ...) when it is of no kind. */
PAWL_API enum pawl_status pawl_kind_of(struct pawl_str path, enum pawl_kind *ret_kind, struct pawl_error *err);

/* ---- writing one file ---- */

struct pawl_write_options {
    size_t size;
    uint64_t align; /* where the data begin: 0 or 8, 64, 256, 4096 */
    const struct pawl_pair *metadata;
    size_t n_metadata;
    uint8_t has_metadata;  /* with n_metadata 0: write {} */
    uint8_t keep_existing; /* PAWL_EXISTS rather than replace */
};
#define PAWL_WRITE_OPTIONS(...) ((struct pawl_write_options){ .size = sizeof(struct pawl_write_options), __VA_ARGS__ })

/*
 * Write a canonical safetensors file and publish it durably: temporary beside it, sync, rename, sync of the directory.
 * Slots are ignored. Tensors of equal address, dtype, shape and strides are written once, the others recorded as aliases.
 * Strided and big-endian tensors are packed as they are written; nothing is copied whole.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT, before any file exists, for what the format refuses; what a source answers, naming the
 * tensor; PAWL_NO_SPACE and other system failures: then an old file is intact and nothing is left behind.
 */
PAWL_API enum pawl_status pawl_safetensors_write(struct pawl_str path, const struct pawl_tensor *tensors, size_t n,
                                                 const struct pawl_write_options *options, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
