/*
 * py_save.c: Save, the handle of a save in the background. It holds the buffers that the save borrows until the save is released: they keep the
 * arrays alive and where they are.
 */
#include "py_module.h"

struct save {
    PyObject_HEAD struct pawl_save *save;
    struct described borrowed; /* until the save is released */
};

static PyTypeObject *save_type;

PyObject *
save_new(void)
{
    struct save *s = PyObject_New(struct save, save_type);
    if (s == NULL)
        return NULL;
    s->save = NULL;
    s->borrowed = (struct described){ .state = NULL };
    return (PyObject *)s;
}

void
save_fill(PyObject *self, struct pawl_save *save, struct described *borrowed)
{
    struct save *s = (struct save *)self;
    s->save = save;
    if (borrowed == NULL)
        return;
    s->borrowed = *borrowed;
    *borrowed = (struct described){ .state = NULL };
}

typedef enum pawl_status wait_function(struct pawl_save *save, int64_t timeout_ms, struct pawl_error *err);

/* Wait at most `arg` milliseconds, negative: for ever. 1: it came; 0: it did not; -1: with an exception. */
static int
wait_by(struct save *s, PyObject *arg, wait_function *wait)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    long long timeout_ms = PyLong_AsLongLong(arg);
    if (timeout_ms == -1 && PyErr_Occurred())
        return -1;
    Py_BEGIN_ALLOW_THREADS st = wait(s->save, timeout_ms, &err);
    Py_END_ALLOW_THREADS if (st == PAWL_OK || st == PAWL_TIME_OUT) return st == PAWL_OK;
    (void)fail_with(&err, NULL);
    return -1;
}

/* wait_released(timeout_ms) -> bool: whether the arrays may change; then they are let go. Negative: for ever. */
static PyObject *
save_wait_released(PyObject *self, PyObject *arg)
{
    struct save *s = (struct save *)self;
    int came = wait_by(s, arg, pawl_save_wait_released);
    if (came == 1)
        described_release(&s->borrowed);
    return came < 0 ? NULL : PyBool_FromLong(came);
}

static void
save_dealloc(PyObject *self)
{
    struct save *s = (struct save *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (s->borrowed.state != NULL) { /* nobody watched it to its release */
        Py_BEGIN_ALLOW_THREADS(void) pawl_save_wait_released(s->save, -1, NULL);
        Py_END_ALLOW_THREADS described_release(&s->borrowed);
    }
    pawl_save_release(s->save);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* wait(timeout_ms) -> bool: whether it is over; raises what made it fail, or that it was canceled. Negative: for ever. */
static PyObject *
save_wait(PyObject *self, PyObject *arg)
{
    int came = wait_by((struct save *)self, arg, pawl_save_wait);
    return came < 0 ? NULL : PyBool_FromLong(came);
}

/* stage() -> int: enum pawl_stage */
static PyObject *
save_stage(PyObject *self, PyObject *unused)
{
    enum pawl_stage stage = PAWL_STAGE_ACCEPTED;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)unused;
    if (pawl_save_stage(((struct save *)self)->save, &stage, &err) != PAWL_OK)
        return fail_with(&err, NULL);
    return PyLong_FromLong(stage);
}

/* progress() -> (done, total) */
static PyObject *
save_progress(PyObject *self, PyObject *unused)
{
    uint64_t done = 0, total = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)unused;
    if (pawl_save_progress(((struct save *)self)->save, &done, &total, &err) != PAWL_OK)
        return fail_with(&err, NULL);
    return Py_BuildValue("KK", (unsigned long long)done, (unsigned long long)total);
}

/* cancel() -> bool: whether it will not become a step */
static PyObject *
save_cancel(PyObject *self, PyObject *unused)
{
    bool is_canceled = false;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)unused;
    if (pawl_save_cancel(((struct save *)self)->save, &is_canceled, &err) != PAWL_OK)
        return fail_with(&err, NULL);
    return PyBool_FromLong(is_canceled);
}

static PyMethodDef save_methods[] = {
    { "wait_released", save_wait_released, METH_O, "wait_released(timeout_ms) -> bool" },
    { "wait", save_wait, METH_O, "wait(timeout_ms) -> bool" },
    { "stage", save_stage, METH_NOARGS, "stage() -> int" },
    { "progress", save_progress, METH_NOARGS, "progress() -> (done, total)" },
    { "cancel", save_cancel, METH_NOARGS, "cancel() -> bool" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot save_slots[] = {
    { Py_tp_dealloc, (void *)save_dealloc },
    { Py_tp_methods, save_methods },
    { Py_tp_doc, (void *)"A save in the background." },
    { 0, NULL },
};

static PyType_Spec save_spec = {
    .name = "pawl._pawl.Save",
    .basicsize = sizeof(struct save),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = save_slots,
};

int
add_save(PyObject *module)
{
    return add_type(module, &save_spec, &save_type);
}
