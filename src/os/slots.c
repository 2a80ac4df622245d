/* The process's stock of buffers. */
#include "os/slots.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>
#include "os/kept.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct pawl_pages made[PAWL_SLOTS_MAX];
static bool is_taken[PAWL_SLOTS_MAX];
static size_t n_made;

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&mutex);
}

static void
after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

/* The memory is not there: what the parent was filling can't be seen, and the child makes its own. */
static void
after_fork_in_child(void)
{
    n_made = 0;
    for (size_t i = 0; i < PAWL_SLOTS_MAX; i++)
        is_taken[i] = false;
    (void)pthread_mutex_unlock(&mutex);
}

static void
begin(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

size_t
pawl_slots_take(unsigned char **ret_slots, size_t least, size_t n)
{
    size_t taken = 0;
    (void)pthread_once(&once, begin);
    (void)pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < PAWL_SLOTS_MAX && taken < n; i++) {
        if (i == n_made) {
            if (!pawl_pages_take(&made[i], PAWL_SLOT_BYTES))
                break;
            n_made++;
        }
        if (is_taken[i])
            continue;
        is_taken[i] = true;
        ret_slots[taken++] = made[i].data;
    }
    (void)pthread_mutex_unlock(&mutex);
    if (taken >= least)
        return taken;
    pawl_slots_give(ret_slots, taken);
    return 0;
}

void
pawl_slots_give(unsigned char *const *slots, size_t n)
{
    (void)pthread_mutex_lock(&mutex);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n_made; i++)
            if (made[i].data == slots[k])
                is_taken[i] = false;
    (void)pthread_mutex_unlock(&mutex);
}
