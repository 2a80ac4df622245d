/* py_run.c: Run, the writer of a root. What a save is given is described to a struct pawl_state that lives for the call. */
#include "py_module.h"

struct run {
    PyObject_HEAD struct pawl_run *run; /* NULL once it is closed */
    struct talk talk;                   /* of the save that is going on */
};

static PyTypeObject *run_type;

static int
run_progress(void *context, uint64_t done, uint64_t total)
{
    return talk_progress(&((struct run *)context)->talk, done, total);
}

static int
run_failpoint(void *context, const char *name)
{
    return talk_failpoint(&((struct run *)context)->talk, name);
}

static void
run_warning(void *context, const struct pawl_problem *problem)
{
    talk_warning(&((struct run *)context)->talk, problem);
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

/* open_run(root, keep, keep_every, keep_best, profile, max_file_bytes, wait, warnings) -> Run */
static PyObject *
open_run(PyObject *self, PyObject *args)
{
    PyObject *root_object, *bytes = NULL, *best, *warnings;
    long long keep, keep_every;
    int profile, wait;
    unsigned long long max_file_bytes;
    struct pawl_str root;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OLLO!iKpO!:open_run", &root_object, &keep, &keep_every, &PyList_Type, &best, &profile,
                          &max_file_bytes, &wait, &PyList_Type, &warnings))
        return NULL;
    struct pawl_keep_best *policies = keep_best_take(best);
    struct run *r = policies == NULL ? NULL : PyObject_New(struct run, run_type);
    if (r == NULL) {
        PyMem_Free(policies);
        return NULL;
    }
    r->run = NULL;
    r->talk = (struct talk){ NULL, NULL, warnings, 0, 0 };
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
                                        .failpoint = run_failpoint,
                                        .warning = run_warning,
                                        .progress = run_progress,
                                        .context = r };
    Py_BEGIN_ALLOW_THREADS st = pawl_run_open(root, &options, &r->run, &err);
    Py_END_ALLOW_THREADS r->talk.warnings = NULL;
    PyMem_Free(policies);
    Py_DECREF(bytes);
    if (st != PAWL_OK) {
        Py_DECREF((PyObject *)r);
        return fail_with(&err, NULL);
    }
    return (PyObject *)r;
}

static void
run_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    (void)pawl_run_close(((struct run *)self)->run, NULL);
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

/* Numbers and generators that the state points to while it is saved. */
struct described {
    struct pawl_state *state;
    struct tensor_list model, optimizer;
    union number {
        double real;
        int64_t integer;
    } * numbers;
    struct pawl_pcg32 *rngs;
    PyObject *held; /* what the state borrows: bytes of the opaque states */
};

static bool
check(enum pawl_status st, const struct pawl_error *err)
{
    if (st != PAWL_OK)
        (void)fail_with(err, NULL);
    return st == PAWL_OK;
}

static bool
add_tensors(struct pawl_state *state, const struct tensor_list *list)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    for (size_t i = 0; i < list->n; i++) {
        if (!check(pawl_state_tensor(state, &list->items[i], &err), &err))
            return false;
    }
    return true;
}

/* Of trainer_state.json: a dict of name to int or float. */
static bool
add_numbers(struct described *d, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    size_t i = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    d->numbers = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *d->numbers);
    if (d->numbers == NULL) {
        PyErr_NoMemory();
        return false;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        struct pawl_str name;
        bool is_real = PyFloat_Check(value);
        if (!text_of(key, &name))
            return false;
        if (is_real)
            d->numbers[i].real = PyFloat_AsDouble(value);
        else
            d->numbers[i].integer = PyLong_AsLongLong(value);
        if (PyErr_Occurred())
            return false;
        if (!check(pawl_state_number(d->state, PAWL_TRAINER, name.data, is_real ? PAWL_F64 : PAWL_I64, &d->numbers[i],
                                     &err),
                   &err))
            return false;
        i++;
    }
    return true;
}

/* A list of (name or None, state, inc, spare or None). */
static bool
add_rngs(struct described *d, PyObject *list)
{
    size_t n = (size_t)PyList_Size(list);
    struct pawl_error err = PAWL_ERROR_INIT;
    d->rngs = PyMem_Calloc(n + 1, sizeof *d->rngs);
    if (d->rngs == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const char *name;
        unsigned long long state, inc;
        PyObject *spare;
        if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)i), "zKKO", &name, &state, &inc, &spare))
            return false;
        d->rngs[i] = (struct pawl_pcg32){ .state = state, .inc = inc };
        if (spare != Py_None) {
            d->rngs[i].spare = PyFloat_AsDouble(spare);
            d->rngs[i].has_spare = true;
            if (PyErr_Occurred())
                return false;
        }
        if (!check(pawl_state_rng(d->state, name, &d->rngs[i], &err), &err))
            return false;
    }
    return true;
}

enum text_kind { TEXTS, METADATA, FILES, OPAQUES };

/* A dict of name to text, to bytes, or to (type, bytes). */
static bool
add_texts(struct described *d, PyObject *dict, enum text_kind kind)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    while (PyDict_Next(dict, &at, &key, &value)) {
        struct pawl_str name, text;
        char *data = NULL;
        Py_ssize_t n = 0;
        const char *type = NULL;
        PyObject *bytes = NULL;
        enum pawl_status st;
        if (!text_of(key, &name))
            return false;
        if (kind == TEXTS || kind == METADATA) {
            if (!text_of(value, &text))
                return false;
        } else if (kind == FILES) {
            if (PyBytes_AsStringAndSize(value, &data, &n) < 0)
                return false;
        } else if (!PyArg_ParseTuple(value, "sS", &type, &bytes) || PyBytes_AsStringAndSize(bytes, &data, &n) < 0) {
            return false;
        }
        switch (kind) {
        case TEXTS:
            st = pawl_state_text(d->state, name.data, text, &err);
            break;
        case METADATA:
            st = pawl_state_metadata(d->state, name, text, &err);
            break;
        case FILES:
            st = pawl_state_file(d->state, name, data, (size_t)n, &err);
            break;
        default:
            st = pawl_state_opaque(d->state, name.data, type, data, (size_t)n, &err);
            break;
        }
        if (!check(st, &err))
            return false;
    }
    return true;
}

static void
described_release(struct described *d)
{
    pawl_state_free(d->state);
    tensors_release(&d->model);
    tensors_release(&d->optimizer);
    PyMem_Free(d->numbers);
    PyMem_Free(d->rngs);
    Py_XDECREF(d->held);
}

/* The dict of a save: model, optimizer, optimizer_name, optimizer_json, numbers, rngs, stream, texts, metadata, files, opaques. */
static bool
describe(struct described *d, PyObject *all)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_str text;
    PyObject *model = PyDict_GetItemString(all, "model"), *optimizer = PyDict_GetItemString(all, "optimizer");
    PyObject *name = PyDict_GetItemString(all, "optimizer_name"), *json = PyDict_GetItemString(all, "optimizer_json");
    PyObject *numbers = PyDict_GetItemString(all, "numbers"), *rngs = PyDict_GetItemString(all, "rngs");
    PyObject *stream = PyDict_GetItemString(all, "stream"), *texts = PyDict_GetItemString(all, "texts");
    PyObject *metadata = PyDict_GetItemString(all, "metadata"), *files = PyDict_GetItemString(all, "files");
    PyObject *opaques = PyDict_GetItemString(all, "opaques");
    if (model == NULL || optimizer == NULL || name == NULL || json == NULL || numbers == NULL || rngs == NULL ||
        stream == NULL || texts == NULL || metadata == NULL || files == NULL || opaques == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_KeyError, "a save lacks a key");
        return false;
    }
    d->held = Py_NewRef(all);
    if (!check(pawl_state_new(&d->state, &err), &err) || !tensors_take(&d->model, model, PAWL_MODEL) ||
        !tensors_take(&d->optimizer, optimizer, PAWL_OPTIMIZER) || !add_tensors(d->state, &d->model))
        return false;
    if (name != Py_None && (!text_of(name, &text) || !check(pawl_state_optimizer(d->state, text.data, &err), &err)))
        return false;
    if (json != Py_None && (!text_of(json, &text) || !check(pawl_state_optimizer_json(d->state, text, &err), &err)))
        return false;
    if (!add_tensors(d->state, &d->optimizer) || !add_numbers(d, numbers) || !add_rngs(d, rngs) ||
        !add_texts(d, texts, TEXTS) || !add_texts(d, metadata, METADATA) || !add_texts(d, files, FILES) ||
        !add_texts(d, opaques, OPAQUES))
        return false;
    if (stream == Py_None)
        return true;
    struct pawl_stream *s = stream_of(stream);
    return s != NULL && check(pawl_state_stream(d->state, s, &err), &err);
}

/* A dict of name to float; the texts are borrowed. NULL: an exception is set. */
static struct pawl_metric *
metrics_take(PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    size_t n = 0;
    struct pawl_metric *metrics = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *metrics);
    if (metrics == NULL)
        PyErr_NoMemory();
    while (metrics != NULL && PyDict_Next(dict, &at, &key, &value)) {
        metrics[n].value = PyFloat_AsDouble(value);
        if (PyErr_Occurred() || !text_of(key, &metrics[n].name)) {
            PyMem_Free(metrics);
            return NULL;
        }
        n++;
    }
    return metrics;
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
                          &failpoint, &PyList_Type, &warnings))
        return NULL;
    if (r->run == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the run is closed");
        return NULL;
    }
    struct pawl_metric *metrics = metrics_take(metrics_dict);
    if (metrics != NULL && describe(&d, all)) {
        struct pawl_save_options options = { .size = sizeof options,
                                             .metrics = metrics,
                                             .n_metrics = (size_t)PyDict_Size(metrics_dict) };
        r->talk = (struct talk){ progress == Py_None ? NULL : progress, failpoint == Py_None ? NULL : failpoint,
                                 warnings, 0, 0 };
        Py_BEGIN_ALLOW_THREADS st = pawl_run_save(r->run, d.state, step, &options, &err);
        Py_END_ALLOW_THREADS if (st != PAWL_OK)(void) fail_with(&err, NULL);
        else if (!PyErr_Occurred() && talk_finish(&r->talk)) result = Py_NewRef(Py_None);
        r->talk = (struct talk){ NULL, NULL, NULL, 0, 0 };
    }
    described_release(&d);
    PyMem_Free(metrics);
    return result;
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
    if (r->run == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the run is closed");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS st = call(r->run, step, &err);
    Py_END_ALLOW_THREADS if (st != PAWL_OK) return fail_with(&err, NULL);
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
    if (r->run == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the run is closed");
        return NULL;
    }
    struct pawl_prune_options options = { .size = sizeof options, .keep = keep };
    Py_BEGIN_ALLOW_THREADS st = pawl_run_prune(r->run, &options, &report, &err);
    Py_END_ALLOW_THREADS if (st != PAWL_OK) return fail_with(&err, report);
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
    if (r->run == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the run is closed");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS st = pawl_run_repair(r->run, NULL, &report, &err);
    Py_END_ALLOW_THREADS if (st != PAWL_OK) return fail_with(&err, report);
    PyObject *found = report_from(report);
    pawl_report_free(report);
    return found;
}

static PyMethodDef run_methods[] = {
    { "prune", run_prune, METH_O, "prune(keep) -> report" },
    { "repair", run_repair, METH_NOARGS, "repair() -> report" },
    { "save", run_save, METH_VARARGS, "save(step, all, metrics, progress, failpoint, warnings)" },
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

static PyMethodDef functions[] = {
    { "open_run", open_run, METH_VARARGS,
      "open_run(root, keep, keep_every, keep_best, profile, max_file_bytes, wait, warnings) -> Run" },
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
