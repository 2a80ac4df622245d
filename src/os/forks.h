/*
 * os/forks.h: what a forked child finds of its parent's handles.
 *
 * A child has its parent's memory and only the thread that forked: a lock that another thread held is never given back there, and what that thread had
 * begun never ends. So a handle that a child may go on with says here what is to be done around a fork.
 */
#ifndef PAWL_OS_FORKS_H
#define PAWL_OS_FORKS_H

#include <pthread.h>
#include <stdbool.h>
#include "base/fail.h"

/*
 * Calls around every fork, by the thread that forks; each may be NULL. `before` takes the handle's locks, so that nobody is in the middle of a change,
 * `in_parent` gives them back, and so does `in_child`, which also ends what other threads had begun, and makes conditions anew: threads that wait are
 * counted in them. For locks that are held for moments: whoever forks waits for them, and one who holds them must not begin or end a watch.
 */
struct pawl_fork_watch {
    void (*before)(void *context);
    void (*in_parent)(void *context);
    void (*in_child)(void *context);
    void *context;
    struct pawl_fork_watch *previous, *next;
};

/* From now on; PAWL_NO_MEMORY. `watch` stays where it is until it ends. */
enum pawl_status pawl_fork_watch_begin(struct pawl_fork_watch *watch, struct pawl_error *err);
void pawl_fork_watch_end(struct pawl_fork_watch *watch); /* fine on one that was not begun, all zero */

/*
 * A lock that may be held for seconds, so that no fork can wait for it. In a child whose parent's threads held it when they were left behind, what it
 * guards may be half done, and it is never given again.
 */
struct pawl_handle_lock {
    pthread_mutex_t mutex;
    bool is_lost; /* set once, in a child with one thread */
    struct pawl_fork_watch watch;
};

enum pawl_status pawl_handle_lock_init(struct pawl_handle_lock *lock, struct pawl_error *err);
void pawl_handle_lock_release(struct pawl_handle_lock *lock);
/* PAWL_WRONG_PROCESS where it was lost; `what` it is, for the message: "the checkpoint". */
enum pawl_status pawl_handle_lock_take(struct pawl_handle_lock *lock, const char *what, struct pawl_error *err);
void pawl_handle_lock_give(struct pawl_handle_lock *lock);

#endif
