/*
 * os/thread.h: a thread that works beside the program, and waiting for what it does.
 *
 * Signals stay with the threads that the program has: ours block them all. Time is the machine's monotonic clock, whatever table of
 * files is in use: a wait over a simulated disk still takes real time.
 */
#ifndef PAWL_OS_THREAD_H
#define PAWL_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of the monotonic clock. */
uint64_t pawl_monotonic_ns(void);

/* Begin a thread that blocks every signal; 0 or an errno value. It is joined with pthread_join. */
int pawl_thread_begin(pthread_t *ret_thread, void *(*fn)(void *context), void *context);

/* A condition whose timed waits go by the monotonic clock; 0 or an errno value. */
int pawl_condition_init(pthread_cond_t *condition);

/* When a wait of so many milliseconds, begun now, is over: UINT64_MAX (never) when it is negative. */
uint64_t pawl_deadline_ns(int64_t timeout_ms);

/* Wait for a signal of the condition, or until the deadline: false when it has passed. The mutex is held before and after. */
bool pawl_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ns);

#endif
