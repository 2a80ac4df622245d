/*
 * safetensors/safetensors.h: one file's header, read and planned.
 *
 * The reader gives the verdict of the reference library (docs/format/safetensors.md), in its order of checks; the planner
 * gives its bytes. Neither knows what a path is: bytes and sizes come in, and the caller reads and writes.
 *
 * Memory: about twice the header for real files (its text, 56 bytes and the shape for each tensor, 4 to 8 for the table);
 * a hostile one of nothing but one-digit dimensions takes five times. Time is linear in the header; no recursion.
 * Names point into the header's own copy of the text.
 */
#ifndef PAWL_FORMATS_SAFETENSORS_SAFETENSORS_H
#define PAWL_FORMATS_SAFETENSORS_SAFETENSORS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "formats/json/name_table.h"
#include "os/file.h"
#include "pawl/tensor.h"

#define PAWL_ST_HEADER_BYTES_MAX UINT64_C(100000000) /* the reference's limit; this value passes */

enum pawl_st_mode { PAWL_ST_STRICT = 0, PAWL_ST_COMPAT = 1, PAWL_ST_LINT = 2 };

/* A warning of the lint mode. */
typedef void pawl_st_warn_fn(void *context, const char *code, struct pawl_str tensor, uint64_t offset,
                             const char *message);

struct pawl_st_options {
    enum pawl_st_mode mode;
    uint64_t header_bytes_max; /* 0: PAWL_ST_HEADER_BYTES_MAX */
    uint32_t dtypes;           /* bit 1 << dtype for each that is accepted; 0: all */
    pawl_st_warn_fn *warn;     /* lint only; may be NULL */
    void *warn_context;
};

struct pawl_st_header {
    struct pawl_tensor_info *tensors; /* in file order: by (begin, end), ties as in the header; `file` is 0 */
    size_t n;
    struct pawl_pair *metadata; /* in the order of the header */
    size_t n_metadata;
    bool has_metadata;     /* {} is present and empty */
    uint64_t header_bytes; /* N */
    uint64_t data_begin;   /* 8 + N */
    uint64_t file_bytes;
    /* private */
    unsigned char *text;     /* decoded where it had escapes: names point in here */
    unsigned char *original; /* as it was read; NULL: the text is that */
    struct pawl_name_table names;
    struct pawl_arena arena; /* shapes */
};

#define PAWL_ST_HEADER_INIT                                                                 \
    {                                                                                       \
        NULL, 0, NULL, 0, false, 0, 0, 0, NULL, NULL, PAWL_NAME_TABLE_INIT, PAWL_ARENA_INIT \
    }

/*
 * Parse the N bytes of header text of a file of `file_bytes` in all, and check everything: rules 2 to 8 of the page.
 * `text` is copied. On failure the header is empty. The error has code, offset (absolute in the file: 8 + place in the text), tensor and numbers.
 */
enum pawl_status pawl_st_parse(struct pawl_st_header *header, const void *text, uint64_t header_bytes,
                               uint64_t file_bytes, const struct pawl_st_options *options, struct pawl_error *err);

/* Read the header from an open file: rule 1, *Not safetensors*, the length, then as above. Two reads. No data is touched. */
enum pawl_status pawl_st_read(struct pawl_st_header *header, const struct pawl_file *file,
                              const struct pawl_st_options *options, struct pawl_error *err);

/* The same of a whole file in memory. */
enum pawl_status pawl_st_read_memory(struct pawl_st_header *header, const void *bytes, uint64_t n,
                                     const struct pawl_st_options *options, struct pawl_error *err);
void pawl_st_release(struct pawl_st_header *header);

/* Exact match of all bytes; NULL when there is none. */
const struct pawl_tensor_info *pawl_st_find(const struct pawl_st_header *header, struct pawl_str name);
/* NULL when there is none. */
const struct pawl_str *pawl_st_metadata(const struct pawl_st_header *header, struct pawl_str key);

/* ---- planning a file ---- */

struct pawl_st_item {
    struct pawl_str name;
    enum pawl_dtype dtype;
    size_t rank;
    const uint64_t *shape;
};

struct pawl_st_plan {
    struct pawl_buffer prefix; /* the 8 bytes of length and the header, padded: what a file begins with */
    size_t *order;             /* n indexes into the items: the order of the data */
    uint64_t *begins; /* by item (not by order): where its bytes begin in the data buffer. All three are one block */
    uint64_t *bytes;  /* by item */
    uint64_t data_bytes;
    uint64_t file_bytes;
};

/* A total order of tensors in a file: dtype descending, then name as unsigned bytes. For qsort-like uses and sharding. */
int pawl_st_compare(enum pawl_dtype dtype_a, struct pawl_str name_a, enum pawl_dtype dtype_b, struct pawl_str name_b);

/*
 * Plan the canonical file of these tensors. Metadata in any order: written sorted; has_metadata with none writes {}.
 * align     the data begin at a multiple of it: 0 or 8 (the reference's), 64, 256, 4096 (any power of two from 8).
 * Errors: PAWL_ARGUMENT: a tensor named __metadata__ ("argument"), a repeated name or metadata key ("duplicate-key"),
 * a name or metadata that is not UTF-8 ("utf8"), overflow, bits, a header beyond the reader's limit ("header-too-large").
 */
enum pawl_status pawl_st_plan(struct pawl_st_plan *plan, const struct pawl_st_item *items, size_t n,
                              const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata, uint64_t align,
                              struct pawl_error *err);
/*
 * The same of items that stand in the order of the file and were checked: dtypes that exist, names that are UTF-8, all different, none of them
 * __metadata__. Only what hangs on shapes and metadata is still checked. A file of many small tensors is planned in a quarter of the time.
 */
enum pawl_status pawl_st_plan_ordered(struct pawl_st_plan *plan, const struct pawl_st_item *items, size_t n,
                                      const struct pawl_pair *metadata, size_t n_metadata, bool has_metadata,
                                      uint64_t align, struct pawl_error *err);
void pawl_st_plan_release(struct pawl_st_plan *plan);

/* ---- what else a file can be ---- */

/*
 * Look at the first bytes (up to 512 suffice, `n` of them, of a file of `file_bytes`) and, when they are obviously
 * something else than safetensors, name it: PAWL_CORRUPT, a sentence in err->message with err's code "not-safetensors", and in
 * *ret_code (may be NULL) one of: empty, lfs-pointer, not-checkpoint (a web page, GGUF, NumPy, PNG), zip, zip-empty, zip-spanned,
 * is-7z, compressed, pytorch-preview, legacy-tar, is-hdf5, pickle, llmcp35, token-shard, safetensors-index, json, unknown-format.
 * PAWL_OK when nothing speaks against safetensors, a broken one included.
 */
enum pawl_status pawl_st_recognise(const void *bytes, size_t n, uint64_t file_bytes, const char **ret_code,
                                   struct pawl_error *err);

#endif
