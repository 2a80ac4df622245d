/* py_state.c: what a save is given, described to a struct pawl_state. */
#include "py_module.h"

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

void
described_release(struct described *d)
{
    pawl_state_free(d->state);
    tensors_release(&d->model);
    tensors_release(&d->optimizer);
    PyMem_Free(d->numbers);
    PyMem_Free(d->rngs);
    Py_XDECREF(d->held);
    *d = (struct described){ .state = NULL };
}

bool
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

struct pawl_metric *
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