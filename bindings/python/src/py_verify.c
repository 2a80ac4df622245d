/* py_verify.c: examining whatever is at a path. */
#include "py_module.h"

/* verify(path, mode, profile, size_only, finite, vocabulary) -> report */
static PyObject *
verify(PyObject *self, PyObject *args)
{
    PyObject *path_object, *bytes;
    int mode, profile, size_only, finite;
    unsigned long long vocabulary;
    struct pawl_str path;
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OiippK:verify", &path_object, &mode, &profile, &size_only, &finite, &vocabulary))
        return NULL;
    if (!path_of(path_object, &bytes, &path))
        return NULL;
    struct pawl_verify_options options = { .size = sizeof options,
                                           .mode = (enum pawl_mode)mode,
                                           .profile = (enum pawl_profile)profile,
                                           .size_only = size_only != 0,
                                           .check_finite = finite != 0,
                                           .vocabulary = vocabulary };
    Py_BEGIN_ALLOW_THREADS st = pawl_verify(path, &options, &report, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, report);
    PyObject *found = report_from(report);
    pawl_report_free(report);
    return found;
}

/* kind_of(path) -> "safetensors" ... */
static PyObject *
kind_of(PyObject *self, PyObject *arg)
{
    PyObject *bytes;
    struct pawl_str path;
    enum pawl_kind kind = PAWL_KIND_UNKNOWN;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!path_of(arg, &bytes, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_kind_of(path, &kind, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    return PyUnicode_FromString(pawl_kind_name(kind));
}

static PyMethodDef functions[] = {
    { "verify", verify, METH_VARARGS, "verify(path, mode, profile, size_only, finite, vocabulary) -> report" },
    { "kind_of", kind_of, METH_O, "kind_of(path) -> str" },
    { NULL, NULL, 0, NULL },
};

int
add_verify(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
