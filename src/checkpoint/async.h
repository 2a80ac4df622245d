/*
 * checkpoint/async.h: a save in the background, as the run and the registry see it.
 *
 * Locks, in the order in which they are taken: the run's, the registry's, the save's. A callback is called with none of them held.
 */
#ifndef PAWL_CHECKPOINT_ASYNC_H
#define PAWL_CHECKPOINT_ASYNC_H

#include "checkpoint/run.h"
#include "checkpoint/save.h"

/*
 * Held by its caller's handle and by the run, as long as either wants it; its thread is always joined before the run lets it go.
 * Between the call's return and the end, `run` and `parts` are its thread's alone.
 */
struct pawl_save {
    const struct pawl_os *os;
    int64_t process; /* that began it */
    int64_t step;
    bool is_canceled_at_exit;
    struct pawl_run *run; /* valid until the run has seen its end */
    struct pawl_parts parts;

    atomic_uint_fast64_t done_bytes;
    uint64_t total_bytes;
    atomic_bool is_given_up; /* somebody canceled it: looked at between slices */
    struct pawl_save_times times;

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    unsigned references;
    enum pawl_stage stage;
    bool is_released;   /* also after a failure on the way */
    bool is_publishing; /* too late to cancel */
    bool is_told;       /* somebody has got the error */
    struct pawl_error error;
    pthread_t thread;
    bool has_thread, is_joining, is_joined;
    uint64_t begin_ns, waited_ns, stall_ns, durable_ns;

    struct pawl_save *previous, *next; /* in the registry, by its lock */
    bool is_registered;
};

/* ---- the run's side; its lock is held ---- */

/* Wait for the save in flight and take note of how it ended. PAWL_ARGUMENT from a callback of that save. */
enum pawl_status pawl_flight_wait(struct pawl_run *run, struct pawl_error *err);
/* PAWL_BUSY when there is one. */
enum pawl_status pawl_flight_refuse(struct pawl_run *run, struct pawl_error *err);
/* The error of a save that has failed and of which nobody was told; it is told now. PAWL_OK when there is none. */
enum pawl_status pawl_flight_tell(struct pawl_run *run, struct pawl_error *err);

/* ---- the save's side ---- */

void pawl_save_hold(struct pawl_save *save); /* one more reference; given back by pawl_save_let_go */
void pawl_save_let_go(struct pawl_save *save);
/* Is this its thread? */
bool pawl_save_is_own(struct pawl_save *save);
/* Wait for its thread to be gone, whoever else does. Not from that thread. */
void pawl_save_join(struct pawl_save *save);
/* Cancel it unless it is too late: whether it will not become a step. */
bool pawl_save_give_up(struct pawl_save *save);

#endif
