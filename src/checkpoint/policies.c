/* checkpoint/policies.c: choosing which steps go. */
#include "checkpoint/policies.h"

#include <inttypes.h>
#include <math.h>
#include "base/str.h"

/* ---- what a caller may ask for ---- */

enum pawl_status
pawl_policy_check(const struct pawl_retention_policy *policy, struct pawl_error *err)
{
    if (policy->keep < 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "keep is %" PRId64 ", expected 0 (all) or more", policy->keep);
    if (policy->keep_every < 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "keep_every is %" PRId64 ", expected 1 or more, or 0 for none",
                         policy->keep_every);
    if (policy->n_best != 0 && policy->best == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "keep_best: %zu were promised and none given", policy->n_best);
    for (size_t i = 0; i < policy->n_best; i++) {
        const struct pawl_keep_best *best = &policy->best[i];
        if (best->metric.len == 0)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "keep_best: the metric's name is empty");
        if (best->direction != PAWL_LEAST && best->direction != PAWL_GREATEST)
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "keep_best '%s': direction is %d, expected PAWL_LEAST or PAWL_GREATEST",
                             PAWL_SHOW(best->metric), (int)best->direction);
        if (best->count < 1)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "keep_best '%s': count is %" PRId64 ", expected 1 or more",
                             PAWL_SHOW(best->metric), best->count);
    }
    return PAWL_OK;
}

enum pawl_status
pawl_policy_copy(struct pawl_retention_policy *policy, struct pawl_arena *arena, struct pawl_error *err)
{
    struct pawl_keep_best *best = pawl_arena_take_array(arena, policy->n_best + 1, sizeof *best);
    bool is_fine = best != NULL;
    for (size_t i = 0; is_fine && i < policy->n_best; i++) {
        best[i] = policy->best[i];
        is_fine = pawl_arena_copy_str(arena, policy->best[i].metric, &best[i].metric);
    }
    if (!is_fine)
        return pawl_fail_memory(err, (policy->n_best + 1) * sizeof *best);
    policy->best = best;
    return PAWL_OK;
}

/* ---- the choice ---- */

/* Mark the best steps by one metric: one at a time, as few are asked for. From the newest on, so that of equal values the newer is met first. */
static void
mark_best(struct pawl_retention_step *steps, size_t n, const struct pawl_keep_best *best, size_t metric, int64_t newest)
{
    double last = NAN; /* those so good and better, down to place `last_at`, are marked */
    size_t last_at = n;
    for (int64_t marked = 0; marked < best->count; marked++) {
        double value = NAN;
        size_t at = n;
        for (size_t i = n; i-- > 0;) {
            if (!steps[i].counts || steps[i].step > newest || steps[i].values == NULL || isnan(steps[i].values[metric]))
                continue;
            /* Least is best from here on. */
            double its = best->direction == PAWL_LEAST ? steps[i].values[metric] : -steps[i].values[metric];
            bool is_behind = last_at == n || its > last || (its == last && i < last_at);
            if (is_behind && (at == n || its < value)) {
                value = its;
                at = i;
            }
        }
        if (at == n)
            return;
        steps[at].is_best = true;
        last = value;
        last_at = at;
    }
}

void
pawl_retention_choose(struct pawl_retention_step *steps, size_t n, const struct pawl_retention_policy *policy,
                      int64_t newest)
{
    /* The K-th newest that counts: what is older goes, complete or not. Without as many, nothing does. */
    int64_t oldest_kept = -1;
    int64_t counted = 0;
    for (size_t i = n; i-- > 0 && policy->keep > 0 && counted < policy->keep;) {
        if (!steps[i].counts || steps[i].step > newest)
            continue;
        counted++;
        oldest_kept = steps[i].step;
    }
    bool is_enough = policy->keep > 0 && counted == policy->keep;
    for (size_t i = 0; i < n; i++)
        steps[i].is_best = false;
    for (size_t k = 0; k < policy->n_best && is_enough; k++)
        mark_best(steps, n, &policy->best[k], k, newest);
    for (size_t i = 0; i < n; i++) {
        bool is_multiple = policy->keep_every > 0 && steps[i].counts && steps[i].step % policy->keep_every == 0;
        steps[i].goes = is_enough && steps[i].step < oldest_kept && steps[i].step < newest && !steps[i].is_pinned &&
                        !steps[i].is_best && !is_multiple;
    }
}
