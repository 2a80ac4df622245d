/* The handles of the process that want to know of forks. */
#include "os/forks.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pawl_fork_watch *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_started;

/* The list's own lock is held from here to the end of the fork: who comes and goes meanwhile would be told half of it. */
static void
before_fork(void)
{
    (void)pthread_mutex_lock(&list_mutex);
    for (struct pawl_fork_watch *watch = list; watch != NULL; watch = watch->next) {
        if (watch->before != NULL)
            watch->before(watch->context);
    }
}

static void
after_fork_in_parent(void)
{
    for (struct pawl_fork_watch *watch = list; watch != NULL; watch = watch->next) {
        if (watch->in_parent != NULL)
            watch->in_parent(watch->context);
    }
    (void)pthread_mutex_unlock(&list_mutex);
}

static void
after_fork_in_child(void)
{
    for (struct pawl_fork_watch *watch = list; watch != NULL; watch = watch->next) {
        if (watch->in_child != NULL)
            watch->in_child(watch->context);
    }
    (void)pthread_mutex_unlock(&list_mutex);
}

static void
start(void)
{
    is_started = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

enum pawl_status
pawl_fork_watch_begin(struct pawl_fork_watch *watch, struct pawl_error *err)
{
    (void)pthread_once(&once, start);
    if (!is_started)
        return pawl_fail_memory(err, sizeof *watch);
    (void)pthread_mutex_lock(&list_mutex);
    watch->previous = NULL;
    watch->next = list;
    if (list != NULL)
        list->previous = watch;
    list = watch;
    (void)pthread_mutex_unlock(&list_mutex);
    return PAWL_OK;
}

void
pawl_fork_watch_end(struct pawl_fork_watch *watch)
{
    (void)pthread_mutex_lock(&list_mutex);
    if (watch->previous != NULL)
        watch->previous->next = watch->next;
    else if (list == watch)
        list = watch->next;
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    watch->previous = watch->next = NULL;
    (void)pthread_mutex_unlock(&list_mutex);
}

/* ---- locks that may be held for long ---- */

static void
look_in_child(void *context)
{
    struct pawl_handle_lock *lock = context;
    if (pthread_mutex_trylock(&lock->mutex) == 0)
        (void)pthread_mutex_unlock(&lock->mutex);
    else
        lock->is_lost = true;
}

enum pawl_status
pawl_handle_lock_init(struct pawl_handle_lock *lock, struct pawl_error *err)
{
    *lock = (struct pawl_handle_lock){ .watch = { .in_child = look_in_child, .context = lock } };
    if (pthread_mutex_init(&lock->mutex, NULL) != 0)
        return pawl_fail_memory(err, sizeof *lock);
    enum pawl_status st = pawl_fork_watch_begin(&lock->watch, err);
    if (st != PAWL_OK)
        (void)pthread_mutex_destroy(&lock->mutex);
    return st;
}

void
pawl_handle_lock_release(struct pawl_handle_lock *lock)
{
    pawl_fork_watch_end(&lock->watch);
    if (!lock->is_lost)
        (void)pthread_mutex_destroy(&lock->mutex);
}

enum pawl_status
pawl_handle_lock_take(struct pawl_handle_lock *lock, const char *what, struct pawl_error *err)
{
    if (lock->is_lost) {
        (void)pawl_fail(err, PAWL_WRONG_PROCESS, "wrong-process",
                        "%s was in use by another thread when this process was forked", what);
        pawl_error_hint(err, "make one of its own in the child, or fork when nobody saves, restores or verifies");
        return PAWL_WRONG_PROCESS;
    }
    (void)pthread_mutex_lock(&lock->mutex);
    return PAWL_OK;
}

void
pawl_handle_lock_give(struct pawl_handle_lock *lock)
{
    (void)pthread_mutex_unlock(&lock->mutex);
}
