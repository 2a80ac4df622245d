/*
 * py_run.c: Run, the writer of a root. What a save is given is described to a struct pawl_state that lives for the call or, where the save
 * borrows it, in the Save.
 *
 * A run has one set of callbacks, and two kinds of threads that they come from: the one whose call is going on, and the library's own, of a
 * save in the background. The latter must not wait for the GIL needlessly: it may be gone for good when the interpreter is ending.
 */
#include "py_module.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A warning of a save in the background. */
struct said {
    struct said *next;
    const char *code, *message; /* behind it, as the file */
    struct pawl_str file;
};

struct run {
    PyObject_HEAD struct pawl_run *run; /* NULL once it is closed */
    struct talk talk;                   /* of the call that is going on */
    atomic_ulong caller;                /* its thread; 0: none */
    bool borrows;                       /* PAWL_SNAPSHOT_BORROW */
    PyObject *failpoint;                /* of the save in the background; looked at with the GIL */
    atomic_bool has_failpoint;
    _Atomic(struct said *) said; /* the last one first */
};

static PyTypeObject *run_type;

static bool
is_from_call(struct run *r)
{
    return atomic_load(&r->caller) == PyThread_get_thread_ident();
}

static int
run_progress(void *context, uint64_t done, uint64_t total)
{
    struct run *r = context;
    return is_from_call(r) ? talk_progress(&r->talk, done, total) : 0; /* of the others Python asks */
}

static int
run_failpoint(void *context, const char *name)
{
    struct run *r = context;
    if (is_from_call(r))
        return talk_failpoint(&r->talk, name);
    PyGILState_STATE gil;
    if (!atomic_load(&r->has_failpoint) || !interpreter_enter(&gil))
        return 0;
    struct talk talk = { .failpoint = r->failpoint };
    int answer = talk_failpoint(&talk, name);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(r->failpoint); /* nobody else hears of it in this thread */
    interpreter_exit(gil);
    return answer;
}

/* Without the GIL and without a lock; what there is no memory for is not said. */
static void
keep_said(struct run *r, const struct pawl_problem *problem)
{
    size_t code = strlen(problem->code) + 1, message = strlen(problem->message) + 1, file = problem->file.len;
    struct said *said = malloc(sizeof *said + code + message + file);
    if (said == NULL)
        return;
    char *texts = (char *)(said + 1);
    said->code = memcpy(texts, problem->code, code);
    said->message = memcpy(texts + code, problem->message, message);
    said->file = (struct pawl_str){ NULL, 0 };
    if (problem->file.data != NULL)
        said->file = (struct pawl_str){ memcpy(texts + code + message, problem->file.data, file), file };
    said->next = atomic_load(&r->said);
    while (!atomic_compare_exchange_weak(&r->said, &said->next, said))
        ;
}

static void
run_warning(void *context, const struct pawl_problem *problem)
{
    struct run *r = context;
    if (is_from_call(r))
        talk_warning(&r->talk, problem);
    else
        keep_said(r, problem);
}

/* Before and after a call whose callbacks are its own. */
static void
begin_call(struct run *r, struct talk talk)
{
    r->talk = talk;
    atomic_store(&r->caller, PyThread_get_thread_ident());
}

static void
end_call(struct run *r)
{
    atomic_store(&r->caller, 0);
    r->talk = (struct talk){ .progress = NULL };
}

/* A list of (metric, is_greatest, count); its texts are borrowed. NULL: an exception is set. */
static struct pawl_keep_best *
keep_best_take(PyObject *list)
{
    size_t n = (size_t)PyList_Size(list);
    struct pawl_keep_best *policies = PyMem_Calloc(n + 1, sizeof *policies);
    if (policies == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; policies != NULL && i < n; i++) {
        PyObject *metric;
        int is_greatest;
        long long count;
        if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)i), "UpL", &metric, &is_greatest, &count) ||
            !text_of(metric, &policies[i].metric)) {
            PyMem_Free(policies);
            return NULL;
        }
        policies[i].direction = is_greatest ? PAWL_GREATEST : PAWL_LEAST;
        policies[i].count = count;
    }
    return policies;
}

/* open_run(root, keep, keep_every, keep_best, profile, max_file_bytes, wait, borrow, sums, warnings) -> Run */
static PyObject *
open_run(PyObject *self, PyObject *args)
{
    PyObject *root_object, *bytes = NULL, *best, *warnings;
    long long keep, keep_every;
    int profile, wait, borrow, sums;
    unsigned long long max_file_bytes;
    struct pawl_str root;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OLLO!iKpppO!:open_run", &root_object, &keep, &keep_every, &PyList_Type, &best,
                          &profile, &max_file_bytes, &wait, &borrow, &sums, &PyList_Type, &warnings))
        return NULL;
    struct pawl_keep_best *policies = keep_best_take(best);
    struct run *r = policies == NULL ? NULL : PyObject_New(struct run, run_type);
    if (r == NULL) {
        PyMem_Free(policies);
        return NULL;
    }
    r->run = NULL;
    r->borrows = borrow != 0;
    r->failpoint = NULL;
    atomic_init(&r->caller, 0);
    atomic_init(&r->has_failpoint, false);
    atomic_init(&r->said, NULL);
    begin_call(r, (struct talk){ .warnings = warnings });
    if (!path_of(root_object, &bytes, &root)) {
        PyMem_Free(policies);
        Py_DECREF((PyObject *)r);
        return NULL;
    }
    struct pawl_run_options options = { .size = sizeof options,
                                        .keep = keep,
                                        .keep_every = keep_every,
                                        .keep_best = policies,
                                        .n_keep_best = (size_t)PyList_Size(best),
                                        .profile = (enum pawl_profile)profile,
                                        .max_file_bytes = max_file_bytes,
                                        .busy = wait ? PAWL_BUSY_WAIT : PAWL_BUSY_ERROR,
                                        .write_sums = sums != 0,
                                        .snapshot = borrow ? PAWL_SNAPSHOT_BORROW : PAWL_SNAPSHOT_COPY,
                                        .failpoint = run_failpoint,
                                        .warning = run_warning,
                                        .progress = run_progress,
                                        .context = r };
    Py_BEGIN_ALLOW_THREADS st = pawl_run_open(root, &options, &r->run, &err);
    Py_END_ALLOW_THREADS end_call(r);
    PyMem_Free(policies);
    Py_DECREF(bytes);
    if (st != PAWL_OK) {
        Py_DECREF((PyObject *)r);
        return fail_with(&err, NULL);
    }
    return (PyObject *)r;
}

static void
free_said(struct said *said)
{
    while (said != NULL) {
        struct said *next = said->next;
        free(said);
        said = next;
    }
}

static void
run_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct run *r = (struct run *)self;
    struct pawl_run *run = r->run;
    Py_BEGIN_ALLOW_THREADS(void) pawl_run_close(run, NULL); /* waits for a save in flight, which may want the GIL */
    Py_END_ALLOW_THREADS free_said(atomic_exchange(&r->said, NULL));
    Py_XDECREF(r->failpoint);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *
run_close(PyObject *self, PyObject *unused)
{
    struct run *r = (struct run *)self;
    struct pawl_run *run = r->run;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)unused;
    r->run = NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_run_close(run, &err);
    Py_END_ALLOW_THREADS if (st != PAWL_OK) return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

/* ---- a save ---- */

static bool
is_open(const struct run *r)
{
    if (r->run == NULL)
        PyErr_SetString(PyExc_RuntimeError, "the run is closed");
    return r->run != NULL;
}

/* save(step, all, metrics, progress or None, failpoint or None, warnings): the caller sees to it that one is called at a time */
static PyObject *
run_save(PyObject *self, PyObject *args)
{
    struct run *r = (struct run *)self;
    long long step;
    PyObject *all, *metrics_dict, *progress, *failpoint, *warnings, *result = NULL;
    struct described d = { .state = NULL };
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (!PyArg_ParseTuple(args, "LO!O!OOO!:save", &step, &PyDict_Type, &all, &PyDict_Type, &metrics_dict, &progress,
                          &failpoint, &PyList_Type, &warnings) ||
        !is_open(r))
        return NULL;
    struct pawl_metric *metrics = metrics_take(metrics_dict);
    if (metrics != NULL && describe(&d, all)) {
        struct pawl_save_options options = { .size = sizeof options,
                                             .metrics = metrics,
                                             .n_metrics = (size_t)PyDict_Size(metrics_dict) };
        begin_call(r, (struct talk){ .progress = progress == Py_None ? NULL : progress,
                                     .failpoint = failpoint == Py_None ? NULL : failpoint,
                                     .warnings = warnings });
        Py_BEGIN_ALLOW_THREADS st = pawl_run_save(r->run, d.state, step, &options, &err);
        Py_END_ALLOW_THREADS if (st != PAWL_OK)(void) fail_with(&err, NULL);
        else if (!PyErr_Occurred() && talk_finish(&r->talk)) result = Py_NewRef(Py_None);
        end_call(r);
    }
    described_release(&d);
    PyMem_Free(metrics);
    return result;
}

static void
set_failpoint(struct run *r, PyObject *failpoint)
{
    PyObject *before = r->failpoint;
    r->failpoint = Py_XNewRef(failpoint);
    atomic_store(&r->has_failpoint, failpoint != NULL);
    Py_XDECREF(before);
}

/* save_async(step, all, metrics, failpoint or None) -> Save. The caller sees to it that no other is in flight, and calls over() after its end. */
static PyObject *
run_save_async(PyObject *self, PyObject *args)
{
    struct run *r = (struct run *)self;
    long long step;
    PyObject *all, *metrics_dict, *failpoint;
    struct described d = { .state = NULL };
    struct pawl_save *save = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_NO_MEMORY;
    if (!PyArg_ParseTuple(args, "LO!O!O:save_async", &step, &PyDict_Type, &all, &PyDict_Type, &metrics_dict,
                          &failpoint) ||
        !is_open(r))
        return NULL;
    PyObject *result = save_new();
    struct pawl_metric *metrics = result == NULL ? NULL : metrics_take(metrics_dict);
    if (metrics != NULL && describe(&d, all)) {
        struct pawl_save_options options = { .size = sizeof options,
                                             .metrics = metrics,
                                             .n_metrics = (size_t)PyDict_Size(metrics_dict) };
        set_failpoint(r, failpoint == Py_None ? NULL : failpoint);
        Py_BEGIN_ALLOW_THREADS st = pawl_run_save_async(r->run, d.state, step, &options, &save, &err);
        Py_END_ALLOW_THREADS if (st == PAWL_OK) save_fill(result, save, r->borrows ? &d : NULL);
        else(void) fail_with(&err, NULL);
    }
    described_release(&d); /* what was moved is empty */
    PyMem_Free(metrics);
    if (st != PAWL_OK)
        Py_CLEAR(result);
    return result;
}

/* settle(): the save in the background has been told; wait until old steps are gone too */
static PyObject *
run_settle(PyObject *self, PyObject *unused)
{
    struct run *r = (struct run *)self;
    (void)unused;
    /* What it could answer, the save's handle has told. */
    Py_BEGIN_ALLOW_THREADS(void) pawl_run_wait(r->run, NULL);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* over() -> list of (code, message, file): the save in the background has ended; what it had to say */
static PyObject *
run_over(PyObject *self, PyObject *unused)
{
    struct run *r = (struct run *)self;
    (void)unused;
    struct said *all = atomic_exchange(&r->said, NULL);
    PyObject *list = PyList_New(0);
    struct talk talk = { .warnings = list };
    for (struct said *said = all; list != NULL && said != NULL; said = said->next) {
        const struct pawl_problem problem = { .code = said->code, .message = said->message, .file = said->file };
        talk_warning(&talk, &problem);
    }
    free_said(all);
    set_failpoint(r, NULL);
    if (list != NULL && PyList_Reverse(list) < 0)
        Py_CLEAR(list);
    return list;
}

static PyObject *
pin_or_unpin(PyObject *self, PyObject *arg,
             enum pawl_status (*call)(struct pawl_run *run, int64_t step, struct pawl_error *err))
{
    struct run *r = (struct run *)self;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    long long step = PyLong_AsLongLong(arg);
    if (step == -1 && PyErr_Occurred())
        return NULL;
    if (!is_open(r))
        return NULL;
    begin_call(r, (struct talk){ .progress = NULL });
    Py_BEGIN_ALLOW_THREADS st = call(r->run, step, &err);
    Py_END_ALLOW_THREADS end_call(r);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *
run_pin(PyObject *self, PyObject *arg)
{
    return pin_or_unpin(self, arg, pawl_run_pin);
}

static PyObject *
run_unpin(PyObject *self, PyObject *arg)
{
    return pin_or_unpin(self, arg, pawl_run_unpin);
}

/* check(all): describe it and forget it, so that what is refused is refused before anything is touched */
static PyObject *
check_save(PyObject *self, PyObject *all)
{
    struct described d = { .state = NULL };
    (void)self;
    if (!PyDict_Check(all)) {
        PyErr_SetString(PyExc_TypeError, "expected a dict");
        return NULL;
    }
    bool is_fine = describe(&d, all);
    described_release(&d);
    return is_fine ? Py_NewRef(Py_None) : NULL;
}

/* prune(keep) -> report */
static PyObject *
run_prune(PyObject *self, PyObject *arg)
{
    struct run *r = (struct run *)self;
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    long long keep = PyLong_AsLongLong(arg);
    if (keep == -1 && PyErr_Occurred())
        return NULL;
    if (!is_open(r))
        return NULL;
    struct pawl_prune_options options = { .size = sizeof options, .keep = keep };
    begin_call(r, (struct talk){ .progress = NULL });
    Py_BEGIN_ALLOW_THREADS st = pawl_run_prune(r->run, &options, &report, &err);
    Py_END_ALLOW_THREADS end_call(r);
    if (st != PAWL_OK)
        return fail_with(&err, report);
    PyObject *found = report_from(report);
    pawl_report_free(report);
    return found;
}

/* repair() -> report */
static PyObject *
run_repair(PyObject *self, PyObject *unused)
{
    struct run *r = (struct run *)self;
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)unused;
    if (!is_open(r))
        return NULL;
    begin_call(r, (struct talk){ .progress = NULL });
    Py_BEGIN_ALLOW_THREADS st = pawl_run_repair(r->run, NULL, &report, &err);
    Py_END_ALLOW_THREADS end_call(r);
    if (st != PAWL_OK)
        return fail_with(&err, report);
    PyObject *found = report_from(report);
    pawl_report_free(report);
    return found;
}

static PyMethodDef run_methods[] = {
    { "prune", run_prune, METH_O, "prune(keep) -> report" },
    { "repair", run_repair, METH_NOARGS, "repair() -> report" },
    { "save", run_save, METH_VARARGS, "save(step, all, metrics, progress, failpoint, warnings)" },
    { "save_async", run_save_async, METH_VARARGS, "save_async(step, all, metrics, failpoint) -> Save" },
    { "settle", run_settle, METH_NOARGS, "settle(): wait until the save in the background has let the run go" },
    { "over", run_over, METH_NOARGS, "over() -> list of warnings" },
    { "pin", run_pin, METH_O, "pin(step)" },
    { "unpin", run_unpin, METH_O, "unpin(step)" },
    { "close", run_close, METH_NOARGS, "release the lock" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot run_slots[] = {
    { Py_tp_dealloc, (void *)run_dealloc },
    { Py_tp_methods, run_methods },
    { Py_tp_doc, (void *)"The writer of a root." },
    { 0, NULL },
};

static PyType_Spec run_spec = {
    .name = "pawl._pawl.Run",
    .basicsize = sizeof(struct run),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = run_slots,
};

static PyObject *
leave(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyBool_FromLong(interpreter_close());
}

static PyMethodDef functions[] = {
    { "open_run", open_run, METH_VARARGS,
      "open_run(root, keep, keep_every, keep_best, profile, max_file_bytes, wait, borrow, sums, warnings) -> Run" },
    { "leave", leave, METH_NOARGS,
      "leave() -> bool: from now on no other thread calls into the interpreter; whether none is in it" },
    { "check_save", check_save, METH_O, "check_save(all)" },
    { NULL, NULL, 0, NULL },
};

int
add_run(PyObject *module)
{
    if (add_type(module, &run_spec, &run_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
