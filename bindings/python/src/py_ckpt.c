/* py_ckpt.c: Ckpt, an open checkpoint; what the root holds; pruning. */
#include "py_module.h"

struct ckpt {
    PyObject_HEAD struct pawl_ckpt *ckpt;
};

static PyTypeObject *ckpt_type;

/* open_ckpt(root, step or None, trust, weights_only) -> (Ckpt, report) */
static PyObject *
open_ckpt(PyObject *self, PyObject *args)
{
    PyObject *root_object, *step_object, *bytes, *result = NULL;
    int trust, weights_only;
    long long step = 0;
    struct pawl_str root;
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOip:open_ckpt", &root_object, &step_object, &trust, &weights_only))
        return NULL;
    if (step_object != Py_None) {
        step = PyLong_AsLongLong(step_object);
        if (step == -1 && PyErr_Occurred())
            return NULL;
    }
    if (!path_of(root_object, &bytes, &root))
        return NULL;
    struct pawl_ckpt_options options = { .size = sizeof options,
                                         .trust = (enum pawl_trust)trust,
                                         .weights_only = weights_only != 0 };
    bool is_newest = step_object == Py_None;
    Py_BEGIN_ALLOW_THREADS st = is_newest ? pawl_ckpt_open_newest(root, &options, &ckpt, &report, &err)
                                          : pawl_ckpt_open_step(root, step, &options, &ckpt, &report, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, report);
    struct ckpt *c = PyObject_New(struct ckpt, ckpt_type);
    PyObject *found = report_from(report);
    pawl_report_free(report);
    if (c == NULL)
        pawl_ckpt_close(ckpt);
    else
        c->ckpt = ckpt;
    if (c != NULL && found != NULL)
        result = PyTuple_Pack(2, (PyObject *)c, found);
    Py_XDECREF((PyObject *)c);
    Py_XDECREF(found);
    return result;
}

static void
ckpt_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pawl_ckpt_close(((struct ckpt *)self)->ckpt);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *
ckpt_model(PyObject *self, PyObject *unused)
{
    (void)unused;
    return model_borrow(pawl_ckpt_model(((struct ckpt *)self)->ckpt), self);
}

static PyObject *
ckpt_optimizer(PyObject *self, PyObject *unused)
{
    const struct pawl_model *model = pawl_ckpt_optimizer(((struct ckpt *)self)->ckpt);
    (void)unused;
    if (model == NULL)
        Py_RETURN_NONE;
    return model_borrow(model, self);
}

static bool
set_item(PyObject *dict, const char *key, PyObject *value)
{
    if (value == NULL)
        return false;
    int code = PyDict_SetItemString(dict, key, value);
    Py_DECREF(value);
    return code == 0;
}

static PyObject *
rngs_from(const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_pair *pairs = pawl_ckpt_rng(ckpt, &n);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < n; i++) {
        PyObject *key = str_from(pairs[i].key);
        PyObject *value = str_from(pairs[i].value);
        if (key == NULL || value == NULL || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *
numbers_from(const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_named_number *numbers = pawl_ckpt_numbers(ckpt, &n);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < n; i++) {
        PyObject *key = str_from(numbers[i].name);
        PyObject *value =
            numbers[i].is_integer ? PyLong_FromLongLong(numbers[i].integer) : PyFloat_FromDouble(numbers[i].real);
        if (key == NULL || value == NULL || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *
metrics_from(const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_metric *metrics = pawl_ckpt_metrics(ckpt, &n);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < n; i++) {
        PyObject *key = str_from(metrics[i].name);
        PyObject *value = PyFloat_FromDouble(metrics[i].value);
        if (key == NULL || value == NULL || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *
opaques_from(const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_named_opaque *opaques = pawl_ckpt_opaques(ckpt, &n);
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < n; i++) {
        PyObject *key = str_from(opaques[i].name);
        PyObject *value = PyTuple_New(2);
        if (key == NULL || value == NULL || !put(value, 0, str_from(opaques[i].type)) ||
            !put(value, 1, PyBytes_FromStringAndSize(opaques[i].data, (Py_ssize_t)opaques[i].bytes)) ||
            PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *
files_from(const struct pawl_ckpt *ckpt)
{
    size_t n = 0;
    const struct pawl_str *files = pawl_ckpt_files(ckpt, &n);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *name = str_from(files[i]);
        if (name == NULL || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* (step, tokens_seen, shard, offset, lr, loss_scale or None, (state, inc) or None, config_sha256, git_sha), or None */
static PyObject *
trainer_from(const struct pawl_ckpt *ckpt)
{
    const struct pawl_trainer_state *t = pawl_ckpt_trainer_state(ckpt);
    if (t == NULL)
        Py_RETURN_NONE;
    PyObject *scale = t->has_loss_scale ? PyFloat_FromDouble(t->loss_scale) : Py_NewRef(Py_None);
    PyObject *rng = t->has_rng ? Py_BuildValue("KK", (unsigned long long)t->rng.state, (unsigned long long)t->rng.inc)
                               : Py_NewRef(Py_None);
    if (scale == NULL || rng == NULL) {
        Py_XDECREF(scale);
        Py_XDECREF(rng);
        return NULL;
    }
    return Py_BuildValue("LLLLdNNss", (long long)t->step, (long long)t->tokens_seen, (long long)t->cursor_shard,
                         (long long)t->cursor_offset, t->lr, scale, rng, t->config_sha256, t->git_sha);
}

static PyObject *
ckpt_info(PyObject *self, PyObject *unused)
{
    const struct pawl_ckpt *ckpt = ((struct ckpt *)self)->ckpt;
    struct pawl_str state = pawl_ckpt_optimizer_state(ckpt);
    PyObject *dict = PyDict_New();
    (void)unused;
    if (dict == NULL)
        return NULL;
    if (!set_item(dict, "step", PyLong_FromLongLong(pawl_ckpt_step(ckpt))) ||
        !set_item(dict, "path", name_from(pawl_ckpt_path(ckpt))) ||
        !set_item(dict, "complete", PyBool_FromLong(pawl_ckpt_is_complete(ckpt))) ||
        !set_item(dict, "optimizer_name", str_from(pawl_ckpt_optimizer_name(ckpt))) ||
        !set_item(dict, "optimizer_state", state.data == NULL ? Py_NewRef(Py_None) : str_from(state)) ||
        !set_item(dict, "trainer", trainer_from(ckpt)) || !set_item(dict, "rngs", rngs_from(ckpt)) ||
        !set_item(dict, "numbers", numbers_from(ckpt)) || !set_item(dict, "metrics", metrics_from(ckpt)) ||
        !set_item(dict, "opaques", opaques_from(ckpt)) || !set_item(dict, "files", files_from(ckpt)))
        Py_CLEAR(dict);
    return dict;
}

/* file(name) -> bytes */
static PyObject *
ckpt_file(PyObject *self, PyObject *arg)
{
    struct pawl_str name;
    void *data = NULL;
    size_t n = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (!text_of(arg, &name))
        return NULL;
    Py_INCREF(arg);
    Py_BEGIN_ALLOW_THREADS st = pawl_ckpt_file(((struct ckpt *)self)->ckpt, name, &data, &n, &err);
    Py_END_ALLOW_THREADS Py_DECREF(arg);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)n);
    pawl_free(data);
    return bytes;
}

/* restore_stream(stream): its cursor, generator and counts; MismatchError over another data set */
static PyObject *
ckpt_restore_stream(PyObject *self, PyObject *arg)
{
    struct pawl_stream *stream = stream_of(arg);
    struct pawl_state *state = NULL;
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (stream == NULL)
        return NULL;
    /* Lenient: the tensors of the checkpoint are not asked for here. */
    struct pawl_restore_options options = { .size = sizeof options, .lenient = 1 };
    Py_INCREF(arg);
    Py_BEGIN_ALLOW_THREADS st = pawl_state_new(&state, &err);
    if (st == PAWL_OK)
        st = pawl_state_stream(state, stream, &err);
    if (st == PAWL_OK)
        st = pawl_ckpt_restore(((struct ckpt *)self)->ckpt, state, &options, &report, &err);
    pawl_state_free(state);
    Py_END_ALLOW_THREADS Py_DECREF(arg);
    if (st != PAWL_OK)
        return fail_with(&err, report);
    pawl_report_free(report);
    Py_RETURN_NONE;
}

/* verify() -> report: what a lazy checkpoint has not looked at yet; damage is in the report and no error */
static PyObject *
ckpt_verify(PyObject *self, PyObject *unused)
{
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS st = pawl_ckpt_verify(((struct ckpt *)self)->ckpt, &report, &err);
    Py_END_ALLOW_THREADS if (st != PAWL_OK && st != PAWL_INCOMPLETE) return fail_with(&err, report);
    PyObject *found = report_from(report);
    pawl_report_free(report);
    return found;
}

static PyMethodDef ckpt_methods[] = {
    { "restore_stream", ckpt_restore_stream, METH_O, "restore_stream(stream)" },
    { "model", ckpt_model, METH_NOARGS, "the weights" },
    { "optimizer", ckpt_optimizer, METH_NOARGS, "the optimizer's tensors, or None" },
    { "info", ckpt_info, METH_NOARGS, "everything else" },
    { "file", ckpt_file, METH_O, "file(name) -> bytes" },
    { "verify", ckpt_verify, METH_NOARGS, "verify() -> report" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot ckpt_slots[] = {
    { Py_tp_dealloc, (void *)ckpt_dealloc },
    { Py_tp_methods, ckpt_methods },
    { Py_tp_doc, (void *)"An open checkpoint." },
    { 0, NULL },
};

static PyType_Spec ckpt_spec = {
    .name = "pawl._pawl.Ckpt",
    .basicsize = sizeof(struct ckpt),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = ckpt_slots,
};

/* list_ckpts(root, size_only) -> (report, latest) */
static PyObject *
list_ckpts(PyObject *self, PyObject *args)
{
    PyObject *root_object, *bytes;
    int size_only;
    char latest[32] = "";
    struct pawl_str root;
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "Op:list_ckpts", &root_object, &size_only) || !path_of(root_object, &bytes, &root))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st =
        pawl_ckpt_list(root, size_only ? PAWL_TRUST_SIZE_ONLY : PAWL_TRUST_FULL, &report, latest, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, report);
    PyObject *found = report_from(report);
    pawl_report_free(report);
    return found == NULL ? NULL : Py_BuildValue("Ns", found, latest);
}

static PyMethodDef functions[] = {
    { "open_ckpt", open_ckpt, METH_VARARGS, "open_ckpt(root, step, trust, weights_only) -> (Ckpt, report)" },
    { "list_ckpts", list_ckpts, METH_VARARGS, "list_ckpts(root, size_only) -> (report, latest)" },
    { NULL, NULL, 0, NULL },
};

int
add_ckpt(PyObject *module)
{
    if (add_type(module, &ckpt_spec, &ckpt_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
