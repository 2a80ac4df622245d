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
 *
 * The models of a checkpoint that was opened with PAWL_TRUST_LAZY (pawl/ckpt.h) verify
 * what they hand out before they do: PAWL_CORRUPT ("hash") for what is damaged.
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
#define PAWL_MODEL_OPTIONS(...) \
    PAWL_LITERAL_(pawl_model_options, .size = sizeof(struct pawl_model_options), __VA_ARGS__)

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
/*
 * A whole safetensors file that is in memory: `data` is borrowed until the model is closed, and must not change. Nothing is copied
 * but the header; pawl_model_map gives pointers into `data`.
 */
PAWL_API enum pawl_status pawl_model_open_memory(const void *data, size_t n, const struct pawl_model_options *options,
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
 * Read a tensor into the caller's memory. A large one is read by several threads.
 *
 * dtype  what the caller wants: the tensor's own (bytes moved untouched), or, for a float, any other float: exact where that is
 *        wider, rounded once where it is not, by the format's own rule of overflow. PAWL_ARGUMENT otherwise.
 * data   aligned for `dtype` where that is not the tensor's own.
 * bytes  of `data`; exactly what the result takes, else PAWL_ARGUMENT with both numbers.
 *
 * PAWL_OUT_OF_RANGE names the tensor and the first index whose value `dtype` lacks; `data` then holds anything.
 */
PAWL_API enum pawl_status pawl_model_read(const struct pawl_model *model, const struct pawl_tensor_info *tensor,
                                          enum pawl_dtype dtype, void *data, size_t bytes, struct pawl_error *err);
/*
 * The tensor's bytes in a read-only private mapping of its file, made at the first call. Lives until the model is closed.
 * *ret_is_aligned (may be NULL) says whether the address suits the dtype.
 */
PAWL_API enum pawl_status pawl_model_map(const struct pawl_model *model, const struct pawl_tensor_info *tensor,
                                         const void **ret_data, bool *ret_is_aligned, struct pawl_error *err);

/* ---- parts of tensors ---- */

/*
 * What is wanted along one axis, by NumPy's rules: negative places count from the end, ranges are clamped, an index that is
 * outside is an error. All zero is `:`, the whole axis.
 */
enum pawl_slice_flags {
    PAWL_SLICE_START = 1,   /* `start` counts; else from the end where the step begins */
    PAWL_SLICE_STOP = 2,    /* `stop` counts; else to the other end, and that included */
    PAWL_SLICE_INDEX = 4,   /* `start` is an index, and the axis is not in the result */
    PAWL_SLICE_ELLIPSIS = 8 /* `...`: as many whole axes as are needed here; once at most */
};
struct pawl_slice_axis {
    int64_t start, stop;
    int64_t step; /* 0 counts as 1 */
    uint32_t flags;
};

/*
 * Read NumPy's spelling: "0:10,::2,-1", "...,3". Blanks are allowed around numbers; "" is no axis at all.
 *
 * axes   room for n_max; *ret_n tells how many there are.
 * Returns PAWL_OK, or PAWL_ARGUMENT (a step of 0 in the text too), pointing at the place.
 */
PAWL_API enum pawl_status pawl_slice_parse(struct pawl_str text, struct pawl_slice_axis *axes, size_t n_max,
                                           size_t *ret_n, struct pawl_error *err);

/*
 * The shape that a slice of a tensor has.
 *
 * n          axes given; those that are missing at the end are whole. More than the tensor has is PAWL_ARGUMENT.
 * ret_shape  room for tensor->rank items; *ret_rank of them are set.
 * ret_bytes  in the tensor's own dtype; may be NULL.
 *
 * PAWL_ARGUMENT also for an index outside its axis (named, with its size), for two ellipses, and for elements of 4 or 6
 * bits where what is wanted does not lie in whole bytes.
 */
PAWL_API enum pawl_status pawl_slice_shape(const struct pawl_tensor_info *tensor, const struct pawl_slice_axis *axes,
                                           size_t n, uint64_t *ret_shape, size_t *ret_rank, uint64_t *ret_bytes,
                                           struct pawl_error *err);

/*
 * Read a slice, row-major and packed, without reading the rest: neighbours that are less than a page apart are read at once,
 * others one by one. Memory beyond `data` is at most 1 MiB.
 *
 * dtype, bytes  as in pawl_model_read. overflow: what becomes of a value beyond the range of `dtype`.
 */
PAWL_API enum pawl_status pawl_model_read_slice(const struct pawl_model *model, const struct pawl_tensor_info *tensor,
                                                const struct pawl_slice_axis *axes, size_t n, enum pawl_dtype dtype,
                                                enum pawl_overflow overflow, void *data, size_t bytes,
                                                struct pawl_error *err);

/* ---- checking ---- */

struct pawl_verify_options {
    size_t size;
    enum pawl_mode mode;
    enum pawl_profile profile;
    uint8_t size_only;    /* checkpoints: do not hash */
    uint8_t check_finite; /* every NaN or infinity in a float tensor is a problem, by tensor and first index */
    uint64_t vocabulary;  /* token files: the caller's, 0 for none */
    /* A file, or a directory of nothing else that is known, is to be safetensors: what is none is "not-safetensors", whatever it is. */
    uint8_t is_safetensors;
};
#define PAWL_VERIFY_OPTIONS(...) \
    PAWL_LITERAL_(pawl_verify_options, .size = sizeof(struct pawl_verify_options), __VA_ARGS__)

/*
 * Examine whatever is at `path` and report every fault (of a single file, the first that stops the reading). A run is
 * examined step by step, one verdict each. Writes nothing.
 *
 * Returns PAWL_OK when it could be examined, whatever was found: the verdicts tell; PAWL_NO_FILE; a fault of the machine.
 */
PAWL_API enum pawl_status pawl_verify(struct pawl_str path, const struct pawl_verify_options *options,
                                      struct pawl_report **ret_report, struct pawl_error *err);

/*
 * Hash the files of a list as sha256sum writes it ("<64 hex digits>  name"; names are relative to the list's folder): a verdict each, under
 * its path, with the problem "hash" or "missing-file", or what keeps it from being read. The list has a verdict of its own, first, only
 * where lines of it are none ("content"). Several files are hashed at once, at most 64 of them open; the verdicts have the order of the list.
 *
 * Returns PAWL_OK when the list could be read, whatever was found; PAWL_NO_FILE; a fault of the machine.
 */
PAWL_API enum pawl_status pawl_verify_sums(struct pawl_str list, struct pawl_report **ret_report,
                                           struct pawl_error *err);

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
    uint8_t
        is_unsynced; /* of a file: published by rename all the same, but a loss of power may leave the old file, or a broken one */
    /* Bytes written and in all, every few MiB, from the calling thread; another answer than 0 cancels: PAWL_CANCELED, the old file is intact. */
    int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
};
#define PAWL_WRITE_OPTIONS(...) \
    PAWL_LITERAL_(pawl_write_options, .size = sizeof(struct pawl_write_options), __VA_ARGS__)

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

/*
 * The same bytes to a sink, without seeking: nothing is synced, no file is made. What can be refused is refused before the first
 * byte; a value that `stored` lacks, and what a source answers, can come in the middle. keep_existing means nothing here.
 */
PAWL_API enum pawl_status pawl_safetensors_write_sink(const struct pawl_sink *sink, const struct pawl_tensor *tensors,
                                                      size_t n, const struct pawl_write_options *options,
                                                      struct pawl_error *err);
/*
 * The same bytes to memory: with data NULL only *ret_bytes, the size, is set; then `bytes` must be that, else PAWL_ARGUMENT.
 */
PAWL_API enum pawl_status pawl_safetensors_write_memory(void *data, size_t bytes, const struct pawl_tensor *tensors,
                                                        size_t n, const struct pawl_write_options *options,
                                                        uint64_t *ret_bytes, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
