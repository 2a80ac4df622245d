/* checkpoint/reading.h: what is inside a struct pawl_ckpt, and the public calls over another table of the system (tests). */
#ifndef PAWL_CHECKPOINT_READING_H
#define PAWL_CHECKPOINT_READING_H

#include "checkpoint/guard.h"
#include "os/forks.h"
#include "pawl/ckpt.h"

struct pawl_ckpt {
    struct pawl_step step;
    bool weights_only;
    struct pawl_model *model;     /* never NULL */
    struct pawl_model *optimizer; /* NULL: not opened */
    struct pawl_str *files;       /* what pawl_ckpt_files gives */
    size_t n_files;
    struct pawl_step_guard *guard; /* of a lazy checkpoint, else NULL */
    struct pawl_handle_lock lock;  /* one restore at a time: it keeps what it learns about the files */
};

/* Cut a path into the directory to open and the last name; false for a path without one ("/", ".", "a/.."). `path` is changed. */
bool pawl_path_cut(char *path, const char **ret_parent, const char **ret_name);

enum pawl_status pawl_ckpt_open_newest_os(const struct pawl_os *os, struct pawl_str root,
                                          const struct pawl_ckpt_options *options, struct pawl_ckpt **ret_ckpt,
                                          struct pawl_report **ret_report, struct pawl_error *err);
enum pawl_status pawl_ckpt_open_step_os(const struct pawl_os *os, struct pawl_str root, int64_t step,
                                        const struct pawl_ckpt_options *options, struct pawl_ckpt **ret_ckpt,
                                        struct pawl_report **ret_report, struct pawl_error *err);
enum pawl_status pawl_ckpt_open_os(const struct pawl_os *os, struct pawl_str path,
                                   const struct pawl_ckpt_options *options, struct pawl_ckpt **ret_ckpt,
                                   struct pawl_report **ret_report, struct pawl_error *err);
enum pawl_status pawl_ckpt_list_os(const struct pawl_os *os, struct pawl_str root, enum pawl_trust trust,
                                   struct pawl_report **ret_report, char ret_latest[32], struct pawl_error *err);

#endif
