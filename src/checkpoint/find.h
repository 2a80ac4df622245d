/*
 * checkpoint/find.h: which step of a root a load takes, as docs/format/checkpoint.md "Loading" says.
 *
 * No lock is taken, so a writer may publish, replace and prune meanwhile. A directory stays open while it is read, so what is read is of
 * one directory and never a mix; and an answer other than "the one LATEST names, complete" is believed only when LATEST, the
 * entries and the directories looked at are the same afterwards, else the whole is done again.
 */
#ifndef PAWL_CHECKPOINT_FIND_H
#define PAWL_CHECKPOINT_FIND_H

#include "checkpoint/examine.h"

/* A writer that publishes faster than a reader examines, this many times in a row, is none. */
#define PAWL_FIND_ATTEMPTS_MAX 100

struct pawl_find_request {
    struct pawl_step_options options;
    /*
     * What to do with a step that is complete as far as it was examined; may be NULL. PAWL_OK: it is taken. PAWL_INCOMPLETE: it turned
     * out to be damaged, and the problems were added to the open verdict: the search goes on. Any other status ends the search.
     */
    enum pawl_status (*use)(void *context, struct pawl_step *step, struct pawl_report *report, struct pawl_error *err);
    void *context;
};

/*
 * The newest step. The report gets a verdict for LATEST when it is not usable and for each step passed over, newest first; the ignored
 * names; and warnings that say how to load an ignored step, and how to be rid of a broken one. With weights_only the step
 * that is taken has a verdict too, the last, when it is not complete.
 */
enum pawl_status pawl_find_newest(const struct pawl_dir *root, const struct pawl_find_request *request,
                                  struct pawl_step *ret_step, struct pawl_report *report, struct pawl_error *err);
/* Step `number` or its .prev: PAWL_INCOMPLETE with a verdict for each, PAWL_NO_FILE when neither is there. */
enum pawl_status pawl_find_step(const struct pawl_dir *root, int64_t number, const struct pawl_find_request *request,
                                struct pawl_step *ret_step, struct pawl_report *report, struct pawl_error *err);
/* One entry by its name, whatever that is. */
enum pawl_status pawl_find_entry(const struct pawl_dir *root, const char *name, const struct pawl_find_request *request,
                                 struct pawl_step *ret_step, struct pawl_report *report, struct pawl_error *err);
/* An open directory under a name that is not ours; taken over. */
enum pawl_status pawl_find_open(struct pawl_dir *dir, const char *name, const struct pawl_find_request *request,
                                struct pawl_step *ret_step, struct pawl_report *report, struct pawl_error *err);

/* A verdict for every step directory and every .prev, ascending; latest[0] 0 when LATEST is not there or malformed. */
enum pawl_status pawl_find_all(const struct pawl_dir *root, const struct pawl_step_options *options,
                               struct pawl_report *report, char ret_latest[32], struct pawl_error *err);

#endif
