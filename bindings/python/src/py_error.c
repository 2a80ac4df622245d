/* py_error.c: what libpawl says, as Python objects: errors, reports, texts and paths. */
#include "py_module.h"

#include <stdarg.h>

static PyObject *make; /* pawl._errors.make, found at the first error */

static bool
find_make(void)
{
    if (make != NULL)
        return true;
    PyObject *module = PyImport_ImportModule("pawl._errors");
    if (module != NULL)
        make = PyObject_GetAttrString(module, "make");
    Py_XDECREF(module);
    return make != NULL;
}

PyObject *
str_from(struct pawl_str text)
{
    return PyUnicode_DecodeUTF8(text.data == NULL ? "" : text.data, (Py_ssize_t)text.len, "replace");
}

PyObject *
name_from(struct pawl_str name)
{
    return PyUnicode_DecodeFSDefaultAndSize(name.data == NULL ? "" : name.data, (Py_ssize_t)name.len);
}

bool
text_of(PyObject *text, struct pawl_str *ret_text)
{
    Py_ssize_t n;
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "expected a str, not %R", (PyObject *)Py_TYPE(text));
        return false;
    }
    const char *data = PyUnicode_AsUTF8AndSize(text, &n);
    if (data == NULL) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();
            (void)fail_argument("the text %A has a lone surrogate: it is not Unicode", text);
        }
        return false;
    }
    *ret_text = (struct pawl_str){ data, (size_t)n };
    return true;
}

bool
path_of(PyObject *path, PyObject **ret_bytes, struct pawl_str *ret_path)
{
    PyObject *bytes = NULL;
    char *data;
    Py_ssize_t n;
    if (!PyUnicode_FSConverter(path, &bytes))
        return false;
    if (PyBytes_AsStringAndSize(bytes, &data, &n) < 0) {
        Py_DECREF(bytes);
        return false;
    }
    *ret_bytes = bytes;
    *ret_path = (struct pawl_str){ data, (size_t)n };
    return true;
}

/* ---- reports ---- */

static PyObject *
optional(struct pawl_str text, bool is_file)
{
    if (text.data == NULL)
        Py_RETURN_NONE;
    return is_file ? name_from(text) : str_from(text);
}

static PyObject *
offset_from(uint64_t offset)
{
    if (offset == PAWL_OFFSET_NONE)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(offset);
}

static PyObject *
problems_from(const struct pawl_problem *problems, size_t n)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++) {
        const struct pawl_problem *p = &problems[i];
        PyObject *item = PyTuple_New(5);
        if (item == NULL || !put(item, 0, PyUnicode_FromString(p->code)) ||
            !put(item, 1, str_from(pawl_str_z(p->message))) || !put(item, 2, optional(p->file, true)) ||
            !put(item, 3, optional(p->tensor, false)) || !put(item, 4, offset_from(p->offset)) ||
            PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *
verdicts_from(const struct pawl_report *report)
{
    size_t n = 0;
    const struct pawl_verdict *verdicts = report == NULL ? NULL : pawl_report_verdicts(report, &n);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++) {
        const struct pawl_verdict *v = &verdicts[i];
        PyObject *item = PyTuple_New(7);
        if (item == NULL || !put(item, 0, name_from(pawl_str_z(v->name))) ||
            !put(item, 1, PyUnicode_FromString(pawl_kind_name(v->kind))) || !put(item, 2, PyBool_FromLong(v->is_ok)) ||
            !put(item, 3, problems_from(v->problems, v->n_problems)) ||
            !put(item, 4, problems_from(v->warnings, v->n_warnings)) ||
            !put(item, 5, PyLong_FromUnsignedLongLong(v->files)) ||
            !put(item, 6, PyLong_FromUnsignedLongLong(v->bytes)) || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *
names_from(const struct pawl_report *report)
{
    static const struct {
        const char *key;
        enum pawl_names which;
    } lists[] = {
        { "missing", PAWL_NAMES_MISSING },       { "unexpected", PAWL_NAMES_UNEXPECTED },
        { "mismatched", PAWL_NAMES_MISMATCHED }, { "ignored", PAWL_NAMES_IGNORED },
        { "deleted", PAWL_NAMES_DELETED },       { "quarantined", PAWL_NAMES_QUARANTINED },
    };
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict != NULL && k < sizeof lists / sizeof *lists; k++) {
        size_t n = 0;
        const struct pawl_str *names = report == NULL ? NULL : pawl_report_names(report, lists[k].which, &n);
        PyObject *list = PyList_New(0);
        for (size_t i = 0; list != NULL && i < n; i++) {
            PyObject *name = str_from(names[i]);
            if (name == NULL || PyList_Append(list, name) < 0)
                Py_CLEAR(list);
            Py_XDECREF(name);
        }
        if (list == NULL || PyDict_SetItemString(dict, lists[k].key, list) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(list);
    }
    return dict;
}

PyObject *
report_from(const struct pawl_report *report)
{
    size_t n = 0;
    const struct pawl_problem *warnings = report == NULL ? NULL : pawl_report_warnings(report, &n);
    PyObject *all = PyTuple_New(3);
    if (all == NULL || !put(all, 0, verdicts_from(report)) || !put(all, 1, names_from(report)) ||
        !put(all, 2, problems_from(warnings, n)))
        Py_CLEAR(all);
    return all;
}

/* ---- raising ---- */

static void
raise_made(PyObject *error)
{
    if (error != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
}

PyObject *
fail_with(const struct pawl_error *err, struct pawl_report *report)
{
    if (PyErr_Occurred() || !find_make()) {
        pawl_report_free(report);
        return NULL;
    }
    PyObject *found = report_from(report);
    pawl_report_free(report);
    PyObject *args = found == NULL ? NULL : PyTuple_New(9);
    if (args != NULL && put(args, 0, PyUnicode_FromString(pawl_status_name(err->status))) &&
        put(args, 1, str_from(pawl_str_z(err->code))) && put(args, 2, str_from(pawl_str_z(err->message))) &&
        put(args, 3, name_from(pawl_str_z(err->path))) && put(args, 4, offset_from(err->offset)) &&
        put(args, 5, PyLong_FromLong(err->system_errno)) && put(args, 6, str_from(pawl_str_z(err->tensor))) &&
        put(args, 7, str_from(pawl_str_z(err->hint)))) {
        Py_INCREF(found);
        if (put(args, 8, found))
            raise_made(PyObject_Call(make, args, NULL));
    }
    Py_XDECREF(args);
    Py_XDECREF(found);
    return NULL;
}

PyObject *
fail_argument(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *message = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (message != NULL && find_make())
        raise_made(
            PyObject_CallFunction(make, "ssOsOisss", "argument", "argument", message, "", Py_None, 0, "", "", ""));
    Py_XDECREF(message);
    return NULL;
}

/* unraisable(error, what): to sys.unraisablehook, whose default takes only what CPython itself makes */
static PyObject *
unraisable(PyObject *self, PyObject *args)
{
    PyObject *error, *what;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO:unraisable", &error, &what))
        return NULL;
    if (!PyExceptionInstance_Check(error)) {
        PyErr_SetString(PyExc_TypeError, "expected an exception");
        return NULL;
    }
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    PyErr_WriteUnraisable(what);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "unraisable", unraisable, METH_VARARGS, "unraisable(error, what): to sys.unraisablehook" },
    { NULL, NULL, 0, NULL },
};

int
add_errors(PyObject *module)
{
    return PyModule_AddFunctions(module, functions); /* the classes are Python's: pawl/_errors.py */
}
