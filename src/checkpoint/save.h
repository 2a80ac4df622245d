/* checkpoint/save.h: the protocol of a save. */
#ifndef PAWL_CHECKPOINT_SAVE_H
#define PAWL_CHECKPOINT_SAVE_H

#include "checkpoint/parts.h"
#include "checkpoint/run.h"

/* Write the parts as `step` and publish them. The run's and the state's locks are held. */
enum pawl_status pawl_save_parts(struct pawl_run *run, const struct pawl_parts *parts, int64_t step,
                                 struct pawl_error *err);

#endif
