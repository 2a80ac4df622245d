/* py_module.c: the module itself. */
#include "py_module.h"

bool
put(PyObject *tuple, Py_ssize_t i, PyObject *value)
{
    if (value == NULL)
        return false;
    return PyTuple_SetItem(tuple, i, value) == 0;
}

int
add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret_type)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL)
        return -1;
    if (PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    *ret_type = (PyTypeObject *)type;
    return 0;
}

static PyObject *
libpawl_version(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString(pawl_version());
}

/* dtypes() -> list of (name, bits, is_float), in the format's order */
static PyObject *
dtypes(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int d = 1; list != NULL && d <= PAWL_DTYPE_COUNT; d++) {
        enum pawl_dtype dtype = (enum pawl_dtype)d;
        PyObject *item = Py_BuildValue("sIO", pawl_dtype_name(dtype), pawl_dtype_bits(dtype),
                                       pawl_dtype_is_float(dtype) ? Py_True : Py_False);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *
step_name(PyObject *self, PyObject *arg)
{
    char name[32];
    (void)self;
    long long step = PyLong_AsLongLong(arg);
    if (step == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return NULL;
        PyErr_Clear();
        return fail_argument("the step is no number of 0 ... 2^63-1");
    }
    if (step < 0)
        return fail_argument("the step is %lld, expected 0 or more", step);
    pawl_step_name(step, name);
    return PyUnicode_FromString(name);
}

static PyObject *
step_of_name(PyObject *self, PyObject *arg)
{
    PyObject *bytes;
    struct pawl_str name;
    (void)self;
    if (!path_of(arg, &bytes, &name))
        return NULL;
    int64_t step = pawl_step_of_name(name);
    Py_DECREF(bytes);
    return PyLong_FromLongLong(step);
}

/* decode(dtype, codes, n, values): n packed values of a float dtype to a writable buffer of n float32 */
static PyObject *
decode(PyObject *self, PyObject *args)
{
    const char *name;
    Py_buffer codes, values;
    Py_ssize_t n;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "sy*nw*:decode", &name, &codes, &n, &values))
        return NULL;
    enum pawl_dtype dtype = pawl_dtype_by_name(pawl_str_z(name));
    bool fits = n >= 0 && values.len / (Py_ssize_t)sizeof(float) == n &&
                codes.len == (Py_ssize_t)((uint64_t)n * pawl_dtype_bits(dtype) / 8);
    enum pawl_status st = PAWL_OK;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS st = pawl_decode_f32(dtype, codes.buf, (size_t)n, values.buf, &err);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&codes);
    PyBuffer_Release(&values);
    if (!fits)
        return fail_argument("decode: %zd values of %s do not fit the buffers", n, name);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "libpawl_version", libpawl_version, METH_NOARGS, "The version of the library that was loaded." },
    { "dtypes", dtypes, METH_NOARGS, "(name, bits, is_float) of every dtype." },
    { "step_name", step_name, METH_O, "The name of a step's directory." },
    { "step_of_name", step_of_name, METH_O, "The step of a directory's name, -1 when it is none of ours." },
    { "decode", decode, METH_VARARGS, "decode(dtype, codes, n, values): to float32, exactly." },
    { NULL, NULL, 0, NULL },
};

static int
fill(PyObject *module)
{
    if (add_errors(module) < 0 || add_pcg32(module) < 0 || add_write(module) < 0 || add_model(module) < 0 ||
        add_verify(module) < 0 || add_tokens(module) < 0 || add_ckpt(module) < 0 || add_run(module) < 0 ||
        add_save(module) < 0 || add_llmcp35(module) < 0)
        return -1;
    interpreter_open();
    return PyModule_AddStringConstant(module, "header_version", PAWL_VERSION_TEXT);
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, (void *)fill },
    { 0, NULL },
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "pawl._pawl",
    .m_doc = "libpawl's interface as it is; use the package.",
    .m_size = 0,
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__pawl(void);

PyMODINIT_FUNC
PyInit__pawl(void)
{
    return PyModuleDef_Init(&definition);
}
