/* Threads for one call. Signals stay with the threads that the program has: these block them all. */
#include "os/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* Reading and converting are bound by memory, which a few threads fill. */
#define THREADS_MAX 8

struct work {
    atomic_size_t next;
    size_t n;
    void (*fn)(void *context, size_t i);
    void *context;
};

unsigned
pawl_processors(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        return n > 0 ? (unsigned)n : 1;
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

static void *
take_pieces(void *context)
{
    struct work *work = context;
    for (;;) {
        size_t i = atomic_fetch_add(&work->next, 1);
        if (i >= work->n)
            return NULL;
        work->fn(work->context, i);
    }
}

void
pawl_parallel(size_t n, unsigned threads, void (*fn)(void *context, size_t i), void *context)
{
    struct work work = { .n = n, .fn = fn, .context = context };
    pthread_t others[THREADS_MAX];
    unsigned n_others = 0;
    atomic_init(&work.next, 0);
    if (threads == 0)
        threads = pawl_processors();
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    if (threads > n)
        threads = (unsigned)n;
    if (threads > 1) {
        sigset_t all, old;
        sigfillset(&all);
        int is_blocked = pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
        while (n_others + 1 < threads && pthread_create(&others[n_others], NULL, take_pieces, &work) == 0)
            n_others++;
        if (is_blocked)
            (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    (void)take_pieces(&work);
    for (unsigned i = 0; i < n_others; i++)
        (void)pthread_join(others[i], NULL);
}
