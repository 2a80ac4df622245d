/* py_write.c: writing one safetensors file, under a path or into memory. */
#include "py_module.h"

/* What both kinds of writing take. */
struct writing {
    struct tensor_list tensors;
    struct pawl_pair *pairs;
    struct pawl_write_options options;
    struct talk talk;
};

static void
writing_release(struct writing *w)
{
    tensors_release(&w->tensors);
    PyMem_Free(w->pairs);
}

static bool
writing_take(struct writing *w, PyObject *tuples, PyObject *metadata, unsigned long long align, PyObject *progress)
{
    *w = (struct writing){ .options = { .size = sizeof w->options,
                                        .align = align,
                                        .progress = talk_progress,
                                        .progress_context = &w->talk },
                           .talk = { .progress = progress == Py_None ? NULL : progress } };
    if (metadata != Py_None) {
        if (!PyDict_Check(metadata)) {
            PyErr_SetString(PyExc_TypeError, "metadata is no dict");
            return false;
        }
        if (!pairs_take(metadata, &w->pairs, &w->options.n_metadata))
            return false;
        w->options.metadata = w->pairs;
        w->options.has_metadata = 1;
    }
    if (tensors_take(&w->tensors, tuples, PAWL_MODEL))
        return true;
    writing_release(w);
    return false;
}

/* write(path, tensors, metadata or None, align, is_durable, progress or None) */
static PyObject *
write_file(PyObject *self, PyObject *args)
{
    PyObject *path_object, *tuples, *metadata, *progress, *bytes, *result = NULL;
    unsigned long long align;
    int is_durable;
    struct pawl_str path;
    struct writing w;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOKpO:write", &path_object, &tuples, &metadata, &align, &is_durable, &progress))
        return NULL;
    if (!path_of(path_object, &bytes, &path))
        return NULL;
    if (writing_take(&w, tuples, metadata, align, progress)) {
        w.options.is_unsynced = !is_durable;
        Py_BEGIN_ALLOW_THREADS st = pawl_safetensors_write(path, w.tensors.items, w.tensors.n, &w.options, &err);
        Py_END_ALLOW_THREADS if (st != PAWL_OK)(void) fail_with(&err, NULL);
        else if (!PyErr_Occurred() && talk_finish(&w.talk)) result = Py_NewRef(Py_None);
        writing_release(&w);
    }
    Py_DECREF(bytes);
    return result;
}

/* write_bytes(tensors, metadata or None, align) -> bytes */
static PyObject *
write_bytes(PyObject *self, PyObject *args)
{
    PyObject *tuples, *metadata, *bytes = NULL;
    unsigned long long align;
    uint64_t n = 0;
    struct writing w;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOK:write_bytes", &tuples, &metadata, &align) ||
        !writing_take(&w, tuples, metadata, align, Py_None))
        return NULL;
    enum pawl_status st = pawl_safetensors_write_memory(NULL, 0, w.tensors.items, w.tensors.n, &w.options, &n, &err);
    if (st == PAWL_OK && n > (uint64_t)PY_SSIZE_T_MAX)
        (void)PyErr_NoMemory();
    else if (st == PAWL_OK)
        bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (bytes != NULL) {
        void *data = PyBytes_AsString(bytes);
        Py_BEGIN_ALLOW_THREADS st =
            pawl_safetensors_write_memory(data, (size_t)n, w.tensors.items, w.tensors.n, &w.options, NULL, &err);
        Py_END_ALLOW_THREADS
    }
    if (st != PAWL_OK || PyErr_Occurred())
        Py_CLEAR(bytes);
    if (st != PAWL_OK)
        (void)fail_with(&err, NULL);
    writing_release(&w);
    return bytes;
}

static PyMethodDef functions[] = {
    { "write", write_file, METH_VARARGS, "write(path, tensors, metadata, align, is_durable, progress)" },
    { "write_bytes", write_bytes, METH_VARARGS, "write_bytes(tensors, metadata, align) -> bytes" },
    { NULL, NULL, 0, NULL },
};

int
add_write(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
