/*
 * model/set.h: a set of named tensors over one or many safetensors files of one directory: read (a file, or an index with its
 * shards), and planned (the sharding rule). What pawl_model_* gives is one of these.
 */
#ifndef PAWL_MODEL_SET_H
#define PAWL_MODEL_SET_H

#include "base/report.h"
#include "formats/json/name_table.h"
#include "formats/safetensors/safetensors.h"
#include "os/file.h"
#include "pawl/model.h"

/* An index of more bytes is none: as much as the largest header. */
#define PAWL_INDEX_BYTES_MAX ((size_t)100000000)

/* Metadata key that records a tied weight: pawl.alias.<alias> = <target>. */
#define PAWL_ALIAS_PREFIX "pawl.alias."

struct pawl_set_file {
    struct pawl_str name;  /* NUL-terminated; relative to the directory, as the index spells it */
    struct pawl_file file; /* open for reading */
    struct pawl_st_header header;
    uint32_t first; /* its tensors are set->tensors[first .. first + header.n) */
};

struct pawl_set {
    const struct pawl_os *os;
    struct pawl_arena arena;
    struct pawl_set_file *files; /* by name, which is by shard number; or one */
    size_t n_files;
    struct pawl_tensor_info *tensors; /* file by file in file order; `file` is set */
    size_t n;
    struct pawl_pair *aliases; /* key: alias, value: target; ascending */
    size_t n_aliases;
    uint64_t total_size_stated; /* UINT64_MAX: the index does not say, or there is none */
    uint64_t data_bytes;        /* of all tensors */
    bool has_index;
    struct pawl_str index_name;   /* NUL-terminated, when has_index */
    uint64_t index_bytes;         /* size of the index's file */
    struct pawl_name_table names; /* of the tensors, when there are several files; one file has a table of its own */
};

#define PAWL_SET_INIT                                                                                                \
    {                                                                                                                \
        NULL, PAWL_ARENA_INIT, NULL, 0, NULL, 0, NULL, 0, UINT64_MAX, 0, false, { NULL, 0 }, 0, PAWL_NAME_TABLE_INIT \
    }

struct pawl_set_options {
    struct pawl_st_options st;
    /*
     * The set is part of a checkpoint: every file is a regular file directly in the directory, no link is followed, nobody lists
     * the directory for strays, and a file has at most one problem in the report. Else shards may lie in folders below, and a link
     * may lead to another file of the directory, or to the cache of a model hub (../../blobs).
     */
    bool index_inside_only;
    bool use_own_codes; /* a fault inside a shard has its own code ("overlap"), not "content" */
    bool
        follow_any; /* of the file or index itself: a link is followed wherever it leads, as it is the caller's own path */
};

/* Open one file as a set. `set` need not be initialised; on failure it is empty. Aliases are not looked for yet. */
enum pawl_status pawl_set_open_file(struct pawl_set *set, const struct pawl_dir *dir, const char *name,
                                    const struct pawl_set_options *options, struct pawl_error *err);

/* The same of a file that is open, which is taken over when the call succeeds. */
enum pawl_status pawl_set_adopt_file(struct pawl_set *set, const struct pawl_os *os, struct pawl_file *file,
                                     const char *name, const struct pawl_set_options *options, struct pawl_error *err);

/* An LLMCP35 file that is open, decoded and checked whole; taken over when the call succeeds. */
enum pawl_status pawl_set_adopt_llmcp35(struct pawl_set *set, const struct pawl_os *os, struct pawl_file *file,
                                        const char *name, struct pawl_error *err);

/*
 * Open an index and its shards, with all the checks of docs/format/safetensors.md "Sharded models": each fault is added to the
 * report (may be NULL) under the index's or the shard's name (codes "content", "missing-file", or the shard's own), a wrong total_size as a
 * warning "total-size". Returns PAWL_CORRUPT when there was any fault, the first of them in `err`; PAWL_NO_FILE when there is no index.
 */
enum pawl_status pawl_set_open_index(struct pawl_set *set, const struct pawl_dir *dir, const char *index_name,
                                     const struct pawl_set_options *options, struct pawl_report *report,
                                     struct pawl_error *err);

/*
 * Open shards without an index: `names` in byte order, relative to `dir`. A tensor that stands in two is PAWL_CORRUPT "content", and the
 * message says whether the bytes differ; a shard that can't be read has its own code.
 */
enum pawl_status pawl_set_open_shards(struct pawl_set *set, const struct pawl_dir *dir, const struct pawl_str *names,
                                      size_t n, const struct pawl_set_options *options, struct pawl_error *err);

/*
 * Take the aliases out of the metadata of the first file. One without a target, or that is itself a tensor, is PAWL_CORRUPT
 * ("content", the first in byte order); the others are there all the same.
 */
enum pawl_status pawl_set_check_aliases(struct pawl_set *set, struct pawl_error *err);
void pawl_set_release(struct pawl_set *set); /* fine on a zeroed one */

/*
 * Open a file of a set for reading: `name` is relative to `dir`. PAWL_CORRUPT "content" for a name or a link that leaves the
 * directory, "not-a-file" for what is no regular file; PAWL_NO_FILE when there is nothing.
 */
enum pawl_status pawl_member_open(struct pawl_file *file, const struct pawl_dir *dir, struct pawl_str name,
                                  const struct pawl_set_options *options, struct pawl_error *err);

/* Exact name, aliases resolved. */
const struct pawl_tensor_info *pawl_set_find(const struct pawl_set *set, struct pawl_str name);

/* ---- planning ---- */

struct pawl_split_file {
    struct pawl_str name; /* "model.safetensors" or "model-00001-of-00002.safetensors" */
    struct pawl_st_plan plan;
    const size_t *items; /* which of the items, in the order of the plan's own numbering */
    size_t n;
};

struct pawl_split {
    struct pawl_arena arena;
    struct pawl_split_file *files;
    size_t n_files;
    struct pawl_buffer index; /* text of <base>.safetensors.index.json; empty when there is one file */
    uint64_t bytes;           /* of all files and the index */
};

/* Find tensors to be written by name, once none stands twice: else PAWL_ARGUMENT "duplicate-key", naming the least. n may be 0. */
enum pawl_status pawl_names_build(struct pawl_name_table *table, const struct pawl_str *first, size_t stride, size_t n,
                                  struct pawl_error *err);

/*
 * Plan a set: walk the tensors in canonical order, begin a new file when the next would exceed `file_bytes_max` bytes of tensors (0: 5 GB;
 * UINT64_MAX: never). Every file has the same metadata. Errors as pawl_st_plan.
 */
enum pawl_status pawl_split_plan(struct pawl_split *split, struct pawl_str base, const struct pawl_st_item *items,
                                 size_t n, const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata,
                                 uint64_t file_bytes_max, uint64_t align, struct pawl_error *err);
/* The same of items that stand in canonical order and were checked, as pawl_st_plan_ordered wants them. */
enum pawl_status pawl_split_plan_ordered(struct pawl_split *split, struct pawl_str base,
                                         const struct pawl_st_item *items, size_t n, const struct pawl_pair *metadata,
                                         size_t n_metadata, bool has_metadata, uint64_t file_bytes_max, uint64_t align,
                                         struct pawl_error *err);
void pawl_split_release(struct pawl_split *split);

/* ---- writing tensors ---- */

/* Whether a tensor of the caller's can be written: its dtype, shape, strides, and that data or source fit. PAWL_ARGUMENT or what
 * pawl_dtype_bytes answers; the message names the tensor. */
enum pawl_status pawl_tensor_check(const struct pawl_tensor *tensor, uint64_t *ret_bytes, struct pawl_error *err);

/* Write one tensor's bytes, row-major, packed, little-endian, whatever its strides, byte order or source; an error names the tensor. */
enum pawl_status pawl_tensor_write(const struct pawl_tensor *tensor, struct pawl_writer *writer,
                                   struct pawl_error *err);
/* The inverse: put `n` packed bytes that begin at byte `offset` of the tensor, which has passed the check, into its memory. */
void pawl_tensor_scatter(const struct pawl_tensor *tensor, uint64_t offset, const void *bytes, size_t n);
/* Is it one row-major run of little-endian bytes in memory? */
bool pawl_tensor_is_packed(const struct pawl_tensor *tensor);
/* The memory from the lowest byte of an element to the end of the highest, and what lies between. The tensor has passed the check, has
 * no source, and `bytes` is what that gave. */
void pawl_tensor_span(const struct pawl_tensor *tensor, uint64_t bytes, uintptr_t *ret_begin, uintptr_t *ret_end);

#endif
