/* os/thread.c: threads and waiting, by POSIX. */
#include "os/thread.h"

#include <signal.h>
#include <time.h>

#define NS_PER_SECOND ((uint64_t)1000 * 1000 * 1000)
#define NS_PER_MS ((uint64_t)1000 * 1000)

uint64_t
pawl_monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

int
pawl_thread_begin(pthread_t *ret_thread, void *(*fn)(void *context), void *context)
{
    sigset_t all, old;
    (void)sigfillset(&all);
    /* Blocked before it begins: a new thread inherits the mask, and no signal can reach it in between. */
    int code = pthread_sigmask(SIG_SETMASK, &all, &old);
    if (code != 0)
        return code;
    code = pthread_create(ret_thread, NULL, fn, context);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

int
pawl_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int code = pthread_condattr_init(&attributes);
    if (code != 0)
        return code;
    code = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (code == 0)
        code = pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return code;
}

uint64_t
pawl_deadline_ns(int64_t timeout_ms)
{
    if (timeout_ms < 0)
        return UINT64_MAX;
    uint64_t now = pawl_monotonic_ns();
    /* More than centuries is for ever. */
    return (uint64_t)timeout_ms > (UINT64_MAX / 2 - now) / NS_PER_MS ? UINT64_MAX
                                                                     : now + (uint64_t)timeout_ms * NS_PER_MS;
}

bool
pawl_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(condition, mutex) == 0;
    struct timespec until = { (time_t)(deadline_ns / NS_PER_SECOND), (long)(deadline_ns % NS_PER_SECOND) };
    return pthread_cond_timedwait(condition, mutex, &until) == 0;
}
