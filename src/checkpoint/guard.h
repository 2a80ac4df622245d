/*
 * checkpoint/guard.h: the tensor files of a step that was opened lazily: what of them was verified, and verifying more when somebody asks.
 *
 * Where the step has sums, by blocks (blocks.h); a file without is hashed whole, once. A verdict against bytes stays; a reading that failed is tried
 * again by the next who asks.
 */
#ifndef PAWL_CHECKPOINT_GUARD_H
#define PAWL_CHECKPOINT_GUARD_H

#include "checkpoint/examine.h"
#include "model/model.h"

struct pawl_step_guard;

/* Stand before the models of a step, `optimizer` may be NULL; all three must live longer, but for the models' being closed. PAWL_NO_MEMORY. */
enum pawl_status pawl_step_guard_new(const struct pawl_step *step, struct pawl_model *model,
                                     struct pawl_model *optimizer, struct pawl_step_guard **ret_guard,
                                     struct pawl_error *err);
void pawl_step_guard_free(struct pawl_step_guard *guard); /* NULL is fine */

/* Verify all that was not. What is damaged is a problem of the report's open verdict; only a fault of the machine is returned. */
enum pawl_status pawl_step_guard_verify(struct pawl_step_guard *guard, struct pawl_report *report,
                                        struct pawl_error *err);

#endif
