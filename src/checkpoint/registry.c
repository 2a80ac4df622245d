/* checkpoint/registry.c: leaving a program, and forking it, with saves in flight. */
#include "checkpoint/registry.h"

#include <stdlib.h>
#include "pawl/digest.h"

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pawl_save *registry;
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;
static bool is_started;

/* ---- fork ---- */

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&registry_mutex);
}

static void
after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&registry_mutex);
}

static void
after_fork_in_child(void)
{
    /* Their threads are the parent's: a child that waited for them at its exit would wait for ever. */
    registry = NULL;
    (void)pthread_mutex_unlock(&registry_mutex);
}

/* ---- exit ---- */

/* One that is not this thread's own (a callback may call exit), with a reference; NULL: none. */
static struct pawl_save *
take_one(void)
{
    (void)pthread_mutex_lock(&registry_mutex);
    struct pawl_save *save = registry;
    while (save != NULL && pawl_save_is_own(save))
        save = save->next;
    if (save != NULL)
        pawl_save_hold(save);
    (void)pthread_mutex_unlock(&registry_mutex);
    return save;
}

static void
at_exit(void)
{
    struct pawl_save *save;
    while ((save = take_one()) != NULL) {
        if (save->is_canceled_at_exit)
            (void)pawl_save_give_up(save);
        pawl_save_join(save); /* which takes it out of the registry */
        pawl_save_let_go(save);
    }
}

static void
start(void)
{
    unsigned char digest[32];
    /*
     * Handlers run in the reverse order of their installing. libcrypto installs one of its own at its first use, which takes down what
     * a save in flight hashes with; so its first use comes before ours.
     */
    if (pawl_sha256_of("", 0, digest, NULL) != PAWL_OK)
        return;
    is_started = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0 && atexit(at_exit) == 0;
}

enum pawl_status
pawl_registry_start(struct pawl_error *err)
{
    (void)pthread_once(&registry_once, start);
    return is_started ? PAWL_OK : pawl_fail_memory(err, sizeof(struct pawl_save));
}

/* ---- the list ---- */

void
pawl_registry_add(struct pawl_save *save)
{
    (void)pthread_mutex_lock(&registry_mutex);
    save->previous = NULL;
    save->next = registry;
    if (registry != NULL)
        registry->previous = save;
    registry = save;
    save->is_registered = true;
    (void)pthread_mutex_unlock(&registry_mutex);
}

void
pawl_registry_remove(struct pawl_save *save)
{
    (void)pthread_mutex_lock(&registry_mutex);
    if (save->is_registered) {
        if (save->previous != NULL)
            save->previous->next = save->next;
        else
            registry = save->next;
        if (save->next != NULL)
            save->next->previous = save->previous;
        save->is_registered = false;
    }
    (void)pthread_mutex_unlock(&registry_mutex);
}
