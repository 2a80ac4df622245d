/* checkpoint/values.h: the numbers, generators and texts of a described state, taken at one moment and printed as the documents of a
 * step. Here is all that must be refused because of a value: PAWL_ARGUMENT, and nothing was written. The caller holds the state's lock. */
#ifndef PAWL_CHECKPOINT_VALUES_H
#define PAWL_CHECKPOINT_VALUES_H

#include "base/buffer.h"
#include "checkpoint/state.h"

/* The optimizer's name, "none" without one. */
struct pawl_str pawl_values_optimizer_name(const struct pawl_state *state);
/* The metadata `state` of the optimizer's file: the described numbers and the caller's JSON object, one object with its keys
 * in byte order. *ret_lr is its number `lr`, 0 when it has none. */
enum pawl_status pawl_values_optimizer(const struct pawl_state *state, struct pawl_buffer *out, double *ret_lr,
                                       struct pawl_error *err);
/* trainer_state.json; optimizer_lr is the default of its `lr`. */
enum pawl_status pawl_values_trainer(const struct pawl_state *state, int64_t step, double optimizer_lr,
                                     struct pawl_buffer *out, struct pawl_error *err);
/* pawl.state.json; empty when there is nothing for it. */
enum pawl_status pawl_values_extra(const struct pawl_state *state, struct pawl_buffer *out, struct pawl_error *err);

#endif
