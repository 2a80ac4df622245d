/* model/model.h: what is inside a struct pawl_model, for the layer above, which wraps the sets of a checkpoint. */
#ifndef PAWL_MODEL_MODEL_H
#define PAWL_MODEL_MODEL_H

#include "model/set.h"
#include "os/forks.h"

/*
 * Whom to ask before bytes of a set's files are handed out: those from `begin` to the byte before `end` of file `file`, offsets in the file. Any status
 * but PAWL_OK is the answer of the call that wanted them. Asked by several threads at once.
 */
struct pawl_guard {
    enum pawl_status (*check)(void *context, size_t file, uint64_t begin, uint64_t end, struct pawl_error *err);
    void *context;
};

struct pawl_model {
    enum pawl_kind kind;
    struct pawl_set own; /* empty when the set belongs to another */
    const struct pawl_set *set;
    struct pawl_model_file *files;
    pthread_mutex_t lock; /* over maps */
    struct pawl_fork_watch watch;
    struct pawl_map *maps; /* one for each file, made when it is first asked for */
    void *owner;           /* what the set belongs to, and how to let it go; NULL: nothing */
    void (*close_owner)(void *owner);
    struct pawl_guard guard; /* check NULL: nobody is asked */
};

/* A model over a set, which is taken over when the call succeeds. */
enum pawl_status pawl_model_adopt(struct pawl_set *set, enum pawl_kind kind, struct pawl_model **ret_model,
                                  struct pawl_error *err);
/* A model over a set that belongs to `owner`, which pawl_model_close gives to `close_owner`. The owner stays the caller's on failure. */
enum pawl_status pawl_model_share(const struct pawl_set *set, enum pawl_kind kind, void *owner,
                                  void (*close_owner)(void *owner), struct pawl_model **ret_model,
                                  struct pawl_error *err);

/* Ask the guard for all bytes of all files: for who reads them without pawl_model_read. */
enum pawl_status pawl_model_guard_all(const struct pawl_model *model, struct pawl_error *err);

/*
 * Open a safetensors file, an index, or a directory that holds one index, a model.safetensors, or a single *.safetensors.
 * Everything else is an error ("not-safetensors"). Warnings and the faults of an index go into the report, which may be NULL.
 */
enum pawl_status pawl_model_open_plain(const struct pawl_os *os, struct pawl_str path,
                                       const struct pawl_model_options *options, struct pawl_report *report,
                                       struct pawl_model **ret_model, struct pawl_error *err);

/* What the caller's options ask of the reader of headers. */
enum pawl_status pawl_set_options_of(enum pawl_mode mode, enum pawl_profile profile, uint64_t header_bytes_max,
                                     struct pawl_set_options *ret_options, struct pawl_error *err);
/* Beyond dtypes, which the reader sees to: the tinyllm profile wants the metadata `format` = `tinyllm` in every file. PAWL_CORRUPT "content". */
enum pawl_status pawl_set_check_profile(const struct pawl_set *set, enum pawl_profile profile, struct pawl_error *err);

/* A problem "non-finite" for every tensor that holds a NaN or an infinity: how many, and the index of the first. */
enum pawl_status pawl_set_check_finite(const struct pawl_set *set, struct pawl_report *report, struct pawl_error *err);

/* The names by which a directory is a model: an index, else one file; both NUL-terminated in `list`. PAWL_CORRUPT "not-safetensors" when it
 * holds neither, or more than one to choose from. */
enum pawl_status pawl_model_choose(const struct pawl_dir_list *list, const char *path, const char **ret_name,
                                   bool *ret_is_index, struct pawl_error *err);

/* pawl_safetensors_write over another table of the system (tests). */
enum pawl_status pawl_safetensors_write_os(const struct pawl_os *os, struct pawl_str path,
                                           const struct pawl_tensor *tensors, size_t n,
                                           const struct pawl_write_options *options, struct pawl_error *err);

/*
 * What an open file is: safetensors, an index, PyTorch, LLMCP35, a token shard, or the manifest of a tokenised data set
 * (PAWL_KIND_TOKEN_DIR). PAWL_CORRUPT with the code of docs/format/pt-archive.md section 1 when it is of no kind.
 */
enum pawl_status pawl_file_kind(const struct pawl_file *file, enum pawl_kind *ret_kind, struct pawl_error *err);

#endif
