/*
 * checkpoint/root.h: what a writer does to a checkpoint root beside writing a step: look after what a crashed writer left, and let a
 * directory go without ever showing half of it. The caller holds the root's lock.
 */
#ifndef PAWL_CHECKPOINT_ROOT_H
#define PAWL_CHECKPOINT_ROOT_H

#include "base/report.h"
#include "os/file.h"

/* Where warnings go; each may be NULL. */
struct pawl_warner {
    void (*warning)(void *context, const struct pawl_problem *problem);
    void *context;
    struct pawl_report *report;
};

/* `file` NULL: of the root as a whole. */
void pawl_warn(const struct pawl_warner *warner, const char *code, const char *file, const char *format, ...)
    PAWL_PRINTF(4, 5);
/* The same with an error's message behind the text. */
void pawl_warn_error(const struct pawl_warner *warner, const char *code, const char *file, const char *what,
                     const struct pawl_error *err);

/*
 * Make sure of what is visible, then look after each `step-N.prev`: deleted when step-N is complete (every file is hashed: it is the only
 * other copy), else renamed back, a broken step-N having become step-N.bad.
 *
 * Nothing may be deleted in a root before this: a writer that was killed between a rename and its sync leaves names on the
 * disk that are not those one sees.
 */
enum pawl_status pawl_root_settle(const struct pawl_dir *root, const struct pawl_warner *warner,
                                  struct pawl_error *err);

/* Remove `step-N.tmp`, LATEST.tmp and RETENTION.tmp; what can't be removed is a warning. Root must be settled. */
void pawl_root_remove_stale(const struct pawl_dir *root, const struct pawl_dir_list *list,
                            const struct pawl_warner *warner);

/*
 * Let directories go: rename each to its step's .tmp name, sync the root, remove them. `names` are of steps or .prev's. What can't be
 * deleted is a warning, and *ret_deleted[i] (may be NULL) false. A failure of the sync is the answer: then no file was touched.
 */
enum pawl_status pawl_root_delete(const struct pawl_dir *root, char *const *names, size_t n, bool *ret_deleted,
                                  const struct pawl_warner *warner, struct pawl_error *err);

/* What LATEST names: -1 when there is none or it is malformed. */
enum pawl_status pawl_root_latest(const struct pawl_dir *root, int64_t *ret_step, struct pawl_error *err);

#endif
