/* checkpoint/care.h: looking after roots and steps outside a run, over another table of the system (tests). */
#ifndef PAWL_CHECKPOINT_CARE_H
#define PAWL_CHECKPOINT_CARE_H

#include "os/os.h"
#include "pawl/ckpt.h"

enum pawl_status pawl_ckpt_repair_os(const struct pawl_os *os, struct pawl_str root,
                                     const struct pawl_repair_options *options, struct pawl_report **ret_report,
                                     struct pawl_error *err);
enum pawl_status pawl_ckpt_copy_os(const struct pawl_os *os, struct pawl_str step, struct pawl_str dest,
                                   const struct pawl_copy_options *options, struct pawl_report **ret_report,
                                   struct pawl_error *err);
enum pawl_status pawl_ckpt_wait_os(const struct pawl_os *os, struct pawl_str root, int64_t newer_than,
                                   int64_t timeout_ms, const struct pawl_wait_options *options,
                                   struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report,
                                   struct pawl_error *err);

#endif
