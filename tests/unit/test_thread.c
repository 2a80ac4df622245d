/* Threads beside the program: which signals reach them, and how long a wait is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>

#include "os/thread.h"

static void *
take_mask(void *context)
{
    (void)pthread_sigmask(SIG_SETMASK, NULL, context);
    return NULL;
}

/* Goal: no signal is delivered to a thread of ours; the program's own mask is as before. */
static void
signals_are_blocked(void **state)
{
    (void)state;
    pthread_t thread;
    sigset_t theirs, before, after;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    assert_int_equal(pawl_thread_begin(&thread, take_mask, &theirs), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXFSZ, SIGPIPE, SIGALRM, SIGCHLD };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(sigismember(&theirs, signals[i]), 1);
        assert_int_equal(sigismember(&after, signals[i]), sigismember(&before, signals[i]));
    }
}

/* Goal: a time-out that can't be counted is none, and none at all is no wrap. */
static void
deadlines(void **state)
{
    (void)state;
    uint64_t before = pawl_monotonic_ns();
    uint64_t soon = pawl_deadline_ns(5);
    assert_true(soon >= before + 5000000 && soon <= pawl_monotonic_ns() + 5000000);
    assert_true(pawl_deadline_ns(-1) == UINT64_MAX);
    assert_true(pawl_deadline_ns(INT64_MIN) == UINT64_MAX);
    assert_true(pawl_deadline_ns(INT64_MAX) == UINT64_MAX);
    assert_true(pawl_deadline_ns(0) <= pawl_monotonic_ns());
}

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int is_there;
};

static void *
arrive(void *context)
{
    struct meeting *meeting = context;
    (void)pthread_mutex_lock(&meeting->lock);
    meeting->is_there = 1;
    (void)pthread_cond_signal(&meeting->changed);
    (void)pthread_mutex_unlock(&meeting->lock);
    return NULL;
}

/* Goal: a wait ends when its deadline has passed, and not because of the clock on the wall; and it ends when it is signalled. */
static void
waits(void **state)
{
    (void)state;
    struct meeting meeting = { .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t thread;
    assert_int_equal(pawl_condition_init(&meeting.changed), 0);
    (void)pthread_mutex_lock(&meeting.lock);
    uint64_t deadline = pawl_deadline_ns(1);
    while (pawl_condition_wait(&meeting.changed, &meeting.lock, deadline))
        ; /* woken for nothing */
    assert_true(pawl_monotonic_ns() >= deadline);
    assert_int_equal(pawl_thread_begin(&thread, arrive, &meeting), 0);
    while (!meeting.is_there)
        assert_true(pawl_condition_wait(&meeting.changed, &meeting.lock, UINT64_MAX));
    (void)pthread_mutex_unlock(&meeting.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_cond_destroy(&meeting.changed);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_are_blocked),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
