/*
 * py_progress.c: callbacks from a call into libpawl back into Python. They come from the thread that made the call, which has
 * released the GIL. An exception that one raises stays set, the call is abandoned, and fail_with() lets it through.
 */
#include "py_module.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* At most ten calls a second. */
#define PAUSE_NS INT64_C(100000000)

static int64_t
now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the end of the interpreter ---- */

#define CLOSE_NS INT64_C(5000000000)

static atomic_bool is_closed;
static atomic_uint n_inside;         /* threads in a callback, or waiting for the GIL for it */
static _Thread_local unsigned n_own; /* of them this thread: a callback may save too */

/* In a forked child there are no other threads, and nobody leaves for them. */
static void
forget_others(void)
{
    atomic_store(&n_inside, n_own);
}

static void
follow_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_others); /* short of memory a child's exit waits its full time */
}

void
interpreter_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, follow_forks);
}

bool
interpreter_enter(PyGILState_STATE *ret_gil)
{
    /* Counted first: who closes either sees this thread, or is seen by it. */
    (void)atomic_fetch_add(&n_inside, 1);
    n_own++;
    if (atomic_load(&is_closed)) {
        (void)atomic_fetch_sub(&n_inside, 1);
        n_own--;
        return false;
    }
    *ret_gil = PyGILState_Ensure();
    return true;
}

void
interpreter_exit(PyGILState_STATE gil)
{
    PyGILState_Release(gil);
    n_own--;
    (void)atomic_fetch_sub(&n_inside, 1);
}

bool
interpreter_close(void)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    atomic_store(&is_closed, true);
    int64_t end = now_ns() + CLOSE_NS;
    Py_BEGIN_ALLOW_THREADS while (atomic_load(&n_inside) != 0 && now_ns() < end)(void) nanosleep(&pause, NULL);
    Py_END_ALLOW_THREADS return atomic_load(&n_inside) == 0;
}

/* ---- callbacks ---- */

static bool
call_progress(const struct talk *talk, uint64_t done, uint64_t total)
{
    PyObject *answer = PyObject_CallFunction(talk->progress, "KK", (unsigned long long)done, (unsigned long long)total);
    Py_XDECREF(answer);
    return answer != NULL;
}

int
talk_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct talk *talk = context;
    PyGILState_STATE gil;
    if (!interpreter_enter(&gil))
        return 0;
    bool is_fine = !PyErr_Occurred() && PyErr_CheckSignals() == 0;
    talk->total = total_bytes;
    if (is_fine && talk->progress != NULL && done_bytes < total_bytes) {
        int64_t now = now_ns();
        if (talk->last_ns == 0 || now - talk->last_ns >= PAUSE_NS) {
            talk->last_ns = now;
            is_fine = call_progress(talk, done_bytes, total_bytes);
        }
    }
    interpreter_exit(gil);
    return is_fine ? 0 : -1;
}

bool
talk_finish(const struct talk *talk)
{
    return talk->progress == NULL || call_progress(talk, talk->total, talk->total);
}

int
talk_failpoint(void *context, const char *name)
{
    struct talk *talk = context;
    PyGILState_STATE gil;
    if (talk->failpoint == NULL || !interpreter_enter(&gil))
        return 0;
    long answer = -1;
    if (!PyErr_Occurred()) {
        PyObject *value = PyObject_CallFunction(talk->failpoint, "s", name);
        answer = value == NULL ? -1 : PyLong_AsLong(value);
        Py_XDECREF(value);
    }
    interpreter_exit(gil);
    return answer == 0 ? 0 : -1;
}

void
talk_warning(void *context, const struct pawl_problem *problem)
{
    struct talk *talk = context;
    PyGILState_STATE gil;
    if (talk->warnings == NULL || !interpreter_enter(&gil))
        return;
    if (!PyErr_Occurred()) { /* else the call is ending with an exception, which matters more */
        PyObject *item = PyTuple_New(3);
        PyObject *file = problem->file.data == NULL ? Py_NewRef(Py_None) : name_from(problem->file);
        if (item == NULL || !put(item, 0, PyUnicode_FromString(problem->code)) ||
            !put(item, 1, str_from(pawl_str_z(problem->message))) || !put(item, 2, file) ||
            PyList_Append(talk->warnings, item) < 0)
            PyErr_Clear(); /* no memory for a warning: the save goes on */
        Py_XDECREF(item);
    }
    interpreter_exit(gil);
}
