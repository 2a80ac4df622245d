/* checkpoint/retention.h: which steps of a root stay. docs/format/checkpoint.md, "Saving". */
#ifndef PAWL_CHECKPOINT_RETENTION_H
#define PAWL_CHECKPOINT_RETENTION_H

#include "base/report.h"
#include "checkpoint/policies.h"
#include "checkpoint/root.h"
#include "os/file.h"

struct pawl_retention {
    const struct pawl_dir *root;
    struct pawl_retention_policy policy;
    int64_t newest;
    const int64_t *corrupt; /* steps that count no longer: their bytes were found wrong */
    size_t n_corrupt;
    bool dry_run;
    const struct pawl_warner *warner;
    struct pawl_report *report; /* PAWL_NAMES_DELETED go there; may be NULL */
};

/*
 * Carry a policy out on a settled root. What can't be deleted is a warning; so is a RETENTION.json that can't be used: then
 * nothing goes. An error means that it was given up on the way; nothing is left half-deleted under a step's name.
 */
enum pawl_status pawl_retention_apply(const struct pawl_retention *retention, const struct pawl_dir_list *list,
                                      struct pawl_error *err);

#endif
