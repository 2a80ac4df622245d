/* model/convert_model.h: the parts of rewriting a model: what is written (convert_plan.c), its bytes (convert_copy.c), a set in a directory
 * (convert_folder.c), the whole (convert.c). */
#ifndef PAWL_MODEL_CONVERT_MODEL_H
#define PAWL_MODEL_CONVERT_MODEL_H

#include <pthread.h>
#include "model/model.h"
#include "pawl/convert.h"

#define PAWL_FILE_ENDING ".safetensors"
#define PAWL_INDEX_ENDING ".safetensors.index.json"

/* ---- what is written ---- */

struct pawl_conversion {
    struct pawl_convert_options options;
    const struct pawl_set *set;
    struct pawl_arena arena;
    struct pawl_st_item *items;              /* the tensors of the output */
    const struct pawl_tensor_info **sources; /* by item: what it is in the set */
    size_t n;
    struct pawl_pair *metadata; /* of every file, records of aliases included */
    size_t n_metadata;
    bool has_metadata;
    struct pawl_pair *aliases; /* key: the alias, value: its tensor; ascending */
    size_t n_aliases;
    struct pawl_str *dropped; /* ascending */
    size_t n_dropped;
    struct pawl_split split;
    uint64_t data_bytes;
};

/* Decide everything before anything is written. `conversion` has its options and set; on failure it can be released. */
enum pawl_status pawl_conversion_plan(struct pawl_conversion *conversion, struct pawl_error *err);
void pawl_conversion_release(struct pawl_conversion *conversion);

/* ---- its bytes ---- */

#define PAWL_COPY_BLOCKS 4

struct pawl_copy_block {
    unsigned char *data;
    size_t n;
    size_t file; /* of the split */
};

/*
 * Reads the data of the output's files, in their order. Of a large model a second thread reads ahead, so that reading and
 * writing go on at once; a small one is read by the thread that asks, in an order of calls that is always the same.
 */
struct pawl_copier {
    const struct pawl_conversion *conversion;
    /* where the reader is: bytes `at` of the tensor at place `item` of the order of `file` */
    size_t file, item;
    uint64_t at;
    unsigned char *memory;
    struct pawl_copy_block blocks[PAWL_COPY_BLOCKS];
    uint64_t done_bytes;
    bool has_block; /* the caller has one in hand */
    bool has_thread;
    pthread_t thread;
    /* under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t first, n_filled; /* blocks[first ...], around the end, are for the caller */
    bool is_at_end, must_stop;
    enum pawl_status status; /* of the reader, and its error */
    struct pawl_error err;
};

enum pawl_status pawl_copier_begin(struct pawl_copier *copier, const struct pawl_conversion *conversion,
                                   struct pawl_error *err);
/* The next bytes of the data of file `file`, asked for in ascending order; n 0: that was all. They live until the next call. Tells the
 * progress: PAWL_CANCELED. */
enum pawl_status pawl_copier_next(struct pawl_copier *copier, size_t file, const void **ret_data, size_t *ret_n,
                                  struct pawl_error *err);
void pawl_copier_end(struct pawl_copier *copier);

/* Header and data of file `file` into a writer. */
enum pawl_status pawl_copier_write(struct pawl_copier *copier, size_t file, struct pawl_writer *writer,
                                   struct pawl_error *err);
/* Whether the files that were read are still those that were opened: to be asked before the output gets its name. */
enum pawl_status pawl_conversion_check_unchanged(const struct pawl_conversion *conversion, struct pawl_error *err);

/* ---- a set in a directory ---- */

enum pawl_status pawl_folder_write(const struct pawl_os *os, const char *path, const struct pawl_conversion *conversion,
                                   struct pawl_error *err);

/* ---- over another table of the system (tests) ---- */

enum pawl_status pawl_convert_os(const struct pawl_os *os, const struct pawl_model *model, struct pawl_str path,
                                 const struct pawl_convert_options *options, struct pawl_converted **ret_converted,
                                 struct pawl_error *err);
enum pawl_status pawl_index_write_os(const struct pawl_os *os, struct pawl_str directory,
                                     const struct pawl_index_options *options, struct pawl_indexed **ret_indexed,
                                     struct pawl_error *err);

#endif
