/*
 * trainer/failpoints.h: places where a test makes the program die, fail or wait, named in the environment:
 *
 *     PAWL_FAILPOINTS='train/after-step=60*crash;save/before-rename=sleep(20ms)'
 *
 * name=[N*]action, separated by ";". Actions: crash (exit at once with 137 and nothing flushed, as a SIGKILL), error,
 * sleep(20ms) (us, ms or s), off. "N*" fires on the N-th evaluation of the point in this process, otherwise every one does.
 * PAWL_FAILPOINTS is read first, then TL_FAILPOINTS; both lists count.
 */
#ifndef TRAINER_FAILPOINTS_H
#define TRAINER_FAILPOINTS_H

#include "pawl/status.h"

struct failpoints;

/* From a text; `name` says in messages where it came from. PAWL_ARGUMENT ("usage") for a syntax error, naming its place. */
enum pawl_status failpoints_add(struct failpoints *points, const char *name, const char *text, struct pawl_error *err);
enum pawl_status failpoints_new(struct failpoints **ret_points, struct pawl_error *err);
/* Of both variables of the environment. */
enum pawl_status failpoints_of_environment(struct failpoints **ret_points, struct pawl_error *err);
void failpoints_free(struct failpoints *points);

/* The first name in the list that no part of the trainer evaluates, NULL when there is none: a misspelt point never fires. */
const char *failpoints_unknown(const struct failpoints *points);

/* Evaluate a point: crash and sleep are carried out here. Returns 1 when the action is `error`, else 0. */
int failpoints_evaluate(struct failpoints *points, const char *name);

#endif
