/*
 * trainer/progress.h: what a run tells while it runs: a file of JSON lines for programs, and lines or one live line for people.
 */
#ifndef TRAINER_PROGRESS_H
#define TRAINER_PROGRESS_H

#include "pawl/pawl.h"
#include "trainer/talk.h"

struct progress;

/* path NULL: no file, only what people see. The file is appended to, so that a resumed run continues its own. */
enum pawl_status progress_open(const char *path, struct talk *talk, int64_t first_step, int64_t last_step,
                               struct progress **ret_progress, struct pawl_error *err);
/* PAWL_IO or PAWL_NO_SPACE when a line of the file could not be written. NULL is fine. */
enum pawl_status progress_close(struct progress *progress, struct pawl_error *err);

void progress_step(struct progress *progress, int64_t step, double loss, double lr, int64_t tokens);
/* Only once the checkpoint is durable. */
void progress_ckpt(struct progress *progress, int64_t step, const char *path);
void progress_metric(struct progress *progress, int64_t step, const char *name, double value);
void progress_done(struct progress *progress, int64_t step, double loss, int64_t tokens, const char *const *outputs,
                   size_t n);

/* Tokens of this process so far by the seconds that it took. */
double progress_tokens_per_second(const struct progress *progress, int64_t tokens);

#endif
