/* model/index.h: the text of an index, `{"metadata": {"total_size": N}, "weight_map": {"tensor": "file"}}`. It takes bytes, never a path. */
#ifndef PAWL_MODEL_INDEX_H
#define PAWL_MODEL_INDEX_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "pawl/tensor.h"

struct pawl_index_entry {
    struct pawl_str tensor;
    uint32_t file; /* which of the index's files */
};

struct pawl_index {
    struct pawl_index_entry *entries; /* in the order of the text */
    size_t n;
    struct pawl_str *files; /* NUL-terminated, each once, in byte order */
    size_t n_files;
    bool has_total;
    uint64_t total_size; /* when has_total */
    struct pawl_str
        bad_total; /* what stands in the place of a total and is none, printable as it is; data NULL: nothing does */
};

/* Strict JSON; a repeated key, a weight_map that is missing or no object of strings are PAWL_CORRUPT with a message and an
 * offset. Names of files are not judged. Everything lives in the arena. */
enum pawl_status pawl_index_parse(struct pawl_arena *arena, struct pawl_index *ret_index, const void *text,
                                  size_t bytes, struct pawl_error *err);

/* Numbered shards: "<base>-00002-of-00004.safetensors" is 2 of 4 of that base. False for every other name. */
bool pawl_shard_number(struct pawl_str name, struct pawl_str *ret_base, uint32_t *ret_k, uint32_t *ret_n);

/* Print what json.dumps(..., indent=2, sort_keys=True) and a line end give. `map`: key tensor, value file; sorted here.
 * False: memory. */
bool pawl_index_print(struct pawl_buffer *out, uint64_t total_size, struct pawl_pair *map, size_t n);

#endif
