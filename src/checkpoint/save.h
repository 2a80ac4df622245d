/* checkpoint/save.h: the protocol of a save. */
#ifndef PAWL_CHECKPOINT_SAVE_H
#define PAWL_CHECKPOINT_SAVE_H

#include "checkpoint/parts.h"
#include "checkpoint/run.h"

/* Who follows a save, from the thread that saves. */
struct pawl_save_watch {
    int (*progress)(void *context, uint64_t done_bytes,
                    uint64_t total_bytes); /* as in the run's options, which it replaces */
    void (*released)(void *context);       /* no tensor is read any more */
    void (*written)(void *context);        /* all of it is on the disk, under the temporary name */
    /* The last moment at which the save can be given up: another answer than PAWL_OK does. */
    enum pawl_status (*publishing)(void *context, struct pawl_error *err);
    void (*durable)(
        void *context); /* LATEST names it, and nothing can make the save fail any more; old steps go after */
    void *context;
    struct pawl_save_times *times;
};

/*
 * Write the parts as `step` and publish them. Nothing else is done with the run meanwhile; the state's lock is held, unless the parts are the
 * save's own. `watch` NULL: nobody but the run's own progress.
 */
enum pawl_status pawl_save_parts(struct pawl_run *run, struct pawl_parts *parts, int64_t step,
                                 const struct pawl_save_watch *watch, struct pawl_error *err);

#endif
