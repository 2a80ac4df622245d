/* checkpoint/policies.h: which steps the policies of docs/format/checkpoint.md "Retention" keep, by numbers alone. */
#ifndef PAWL_CHECKPOINT_POLICIES_H
#define PAWL_CHECKPOINT_POLICIES_H

#include "base/arena.h"
#include "base/fail.h"
#include "pawl/ckpt.h"

/* What any of the policies keeps stays. */
struct pawl_retention_policy {
    int64_t keep;       /* the newest that count; 0: nothing goes */
    int64_t keep_every; /* the multiples of it; 0: no such policy */
    const struct pawl_keep_best *best;
    size_t n_best;
};

struct pawl_retention_step {
    int64_t step;
    bool counts; /* complete by manifest and sizes, and not found corrupt */
    bool is_pinned;
    const double *values; /* of the metrics of policy->best, NaN for one it lacks; NULL: it lacks all */
    bool is_best;         /* among the best by some metric; set on the way */
    bool goes;            /* the answer */
};

/*
 * Choose among the steps of a root, ascending. `newest` is the step that LATEST names: it stays, and newer ones do not count, do not
 * compete, and stay. Touches nothing.
 */
void pawl_retention_choose(struct pawl_retention_step *steps, size_t n, const struct pawl_retention_policy *policy,
                           int64_t newest);

/* PAWL_ARGUMENT for what no policy can be: a negative number, a metric without a name, a count below 1. */
enum pawl_status pawl_policy_check(const struct pawl_retention_policy *policy, struct pawl_error *err);
/* Let the policy outlive its caller's arrays. */
enum pawl_status pawl_policy_copy(struct pawl_retention_policy *policy, struct pawl_arena *arena,
                                  struct pawl_error *err);

#endif
