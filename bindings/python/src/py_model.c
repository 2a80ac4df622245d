/*
 * py_model.c: Model, an open set of tensors, and Mapping, the bytes of one of them in the map of its file. A Mapping holds its
 * Model, and an array over it holds the Mapping: a map lives as long as anything looks at it.
 */
#include "py_module.h"

#include <string.h>

struct model {
    PyObject_HEAD struct pawl_model *own; /* NULL when it belongs to another */
    const struct pawl_model *model;       /* always set */
    PyObject *owner;                      /* keeps `model`, or the memory it lies in, alive; may be NULL */
    const struct pawl_tensor_info *tensors;
    size_t n;
};

struct mapping {
    PyObject_HEAD PyObject *model;
    void *data;
    Py_ssize_t bytes;
};

static PyTypeObject *model_type;
static PyTypeObject *mapping_type;

/* ---- Mapping ---- */

static PyObject *
mapping_new(PyObject *model, const void *data, uint64_t bytes)
{
    struct mapping *m = PyObject_New(struct mapping, mapping_type);
    if (m == NULL)
        return NULL;
    m->model = Py_NewRef(model);
    m->data = (void *)(uintptr_t)data; /* read-only: the buffer says so */
    m->bytes = (Py_ssize_t)bytes;
    return (PyObject *)m;
}

static void
mapping_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((struct mapping *)self)->model);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int
mapping_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing; /* where an empty tensor lies */
    struct mapping *m = (struct mapping *)self;
    return PyBuffer_FillInfo(view, self, m->data != NULL ? m->data : &nothing, m->bytes, 1, flags);
}

static PyType_Slot mapping_slots[] = {
    { Py_tp_dealloc, (void *)mapping_dealloc },
    { Py_bf_getbuffer, (void *)mapping_getbuffer },
    { Py_tp_doc, (void *)"The bytes of a tensor in the map of its file, read-only." },
    { 0, NULL },
};

static PyType_Spec mapping_spec = {
    .name = "pawl._pawl.Mapping",
    .basicsize = sizeof(struct mapping),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = mapping_slots,
};

/* ---- Model ---- */

static PyObject *
model_new_over(struct pawl_model *own, const struct pawl_model *model, PyObject *owner)
{
    struct model *m = PyObject_New(struct model, model_type);
    if (m == NULL) {
        pawl_model_close(own);
        return NULL;
    }
    m->own = own;
    m->model = model;
    m->owner = Py_XNewRef(owner);
    m->tensors = pawl_model_tensors(model, &m->n);
    return (PyObject *)m;
}

PyObject *
model_borrow(const struct pawl_model *model, PyObject *owner)
{
    return model_new_over(NULL, model, owner);
}

/* open_model(path, mode, header_bytes_max) */
static PyObject *
open_model(PyObject *self, PyObject *args)
{
    PyObject *path_object, *bytes;
    int mode;
    unsigned long long header_bytes_max;
    struct pawl_str path;
    struct pawl_model *model = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OiK:open_model", &path_object, &mode, &header_bytes_max))
        return NULL;
    if (!path_of(path_object, &bytes, &path))
        return NULL;
    struct pawl_model_options options = { .size = sizeof options,
                                          .mode = (enum pawl_mode)mode,
                                          .header_bytes_max = header_bytes_max };
    Py_BEGIN_ALLOW_THREADS st = pawl_model_open(path, &options, &model, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    return model_new_over(model, model, NULL);
}

/* A buffer that outlives its user: the memory of a file that was opened in place. */
struct held {
    PyObject_HEAD Py_buffer view;
};

static PyTypeObject *held_type;

static void
held_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyBuffer_Release(&((struct held *)self)->view);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot held_slots[] = {
    { Py_tp_dealloc, (void *)held_dealloc },
    { 0, NULL },
};

static PyType_Spec held_spec = {
    .name = "pawl._pawl.Held",
    .basicsize = sizeof(struct held),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = held_slots,
};

/* open_memory(data, mode, header_bytes_max): the file is in memory, which is held */
static PyObject *
open_memory(PyObject *self, PyObject *args)
{
    PyObject *data;
    int mode;
    unsigned long long header_bytes_max;
    struct pawl_model *model = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OiK:open_memory", &data, &mode, &header_bytes_max))
        return NULL;
    struct held *held = PyObject_New(struct held, held_type);
    if (held == NULL)
        return NULL;
    memset(&held->view, 0, sizeof held->view);
    PyObject *result = NULL;
    if (PyObject_GetBuffer(data, &held->view, PyBUF_SIMPLE) == 0) {
        struct pawl_model_options options = { .size = sizeof options,
                                              .mode = (enum pawl_mode)mode,
                                              .header_bytes_max = header_bytes_max };
        Py_BEGIN_ALLOW_THREADS st =
            pawl_model_open_memory(held->view.buf, (size_t)held->view.len, &options, &model, &err);
        Py_END_ALLOW_THREADS result =
            st == PAWL_OK ? model_new_over(model, model, (PyObject *)held) : fail_with(&err, NULL);
    }
    Py_DECREF((PyObject *)held);
    return result;
}

static void
model_dealloc(PyObject *self)
{
    struct model *m = (struct model *)self;
    PyTypeObject *type = Py_TYPE(self);
    pawl_model_close(m->own);
    Py_XDECREF(m->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *
shape_from(const struct pawl_tensor_info *t)
{
    PyObject *shape = PyTuple_New((Py_ssize_t)t->rank);
    for (uint32_t i = 0; shape != NULL && i < t->rank; i++) {
        if (!put(shape, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(t->shape[i])))
            Py_CLEAR(shape);
    }
    return shape;
}

/* tensors() -> list of (name, dtype, shape, begin, end, file) */
static PyObject *
model_tensors(PyObject *self, PyObject *unused)
{
    struct model *m = (struct model *)self;
    PyObject *dtypes[PAWL_DTYPE_COUNT + 1] = { NULL };
    PyObject *list = PyList_New((Py_ssize_t)m->n);
    (void)unused;
    for (size_t i = 0; list != NULL && i < m->n; i++) {
        const struct pawl_tensor_info *t = &m->tensors[i];
        PyObject **dtype = &dtypes[t->dtype];
        if (*dtype == NULL)
            *dtype = PyUnicode_InternFromString(pawl_dtype_name(t->dtype));
        PyObject *item = PyTuple_New(6);
        if (item == NULL || !put(item, 0, str_from(t->name)) || !put(item, 1, Py_XNewRef(*dtype)) ||
            !put(item, 2, shape_from(t)) || !put(item, 3, PyLong_FromUnsignedLongLong(t->begin)) ||
            !put(item, 4, PyLong_FromUnsignedLongLong(t->end)) || !put(item, 5, PyLong_FromUnsignedLong(t->file))) {
            Py_XDECREF(item);
            Py_CLEAR(list);
        } else if (PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_CLEAR(list);
        }
    }
    for (size_t i = 0; i <= PAWL_DTYPE_COUNT; i++)
        Py_XDECREF(dtypes[i]);
    return list;
}

static PyObject *
pairs_from(const struct pawl_pair *pairs, size_t n)
{
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
model_metadata(PyObject *self, PyObject *unused)
{
    size_t n = 0;
    bool is_present = false;
    const struct pawl_pair *pairs = pawl_model_metadata(((struct model *)self)->model, &n, &is_present);
    (void)unused;
    if (!is_present)
        Py_RETURN_NONE;
    return pairs_from(pairs, n);
}

static PyObject *
model_aliases(PyObject *self, PyObject *unused)
{
    size_t n = 0;
    const struct pawl_pair *pairs = pawl_model_aliases(((struct model *)self)->model, &n);
    (void)unused;
    return pairs_from(pairs, n);
}

static PyObject *
model_kind(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(pawl_kind_name(pawl_model_kind(((struct model *)self)->model)));
}

/* files() -> list of (name, bytes, header_bytes) */
static PyObject *
model_files(PyObject *self, PyObject *unused)
{
    size_t n = 0;
    const struct pawl_model_file *files = pawl_model_files(((struct model *)self)->model, &n);
    PyObject *list = PyList_New(0);
    (void)unused;
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *item = PyTuple_New(3);
        if (item == NULL || !put(item, 0, name_from(files[i].name)) ||
            !put(item, 1, PyLong_FromUnsignedLongLong(files[i].bytes)) ||
            !put(item, 2, PyLong_FromUnsignedLongLong(files[i].header_bytes)) || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static const struct pawl_tensor_info *
tensor_at(const struct model *m, Py_ssize_t i)
{
    if (i >= 0 && (size_t)i < m->n)
        return &m->tensors[i];
    PyErr_Format(PyExc_IndexError, "tensor %zd of %zu", i, m->n);
    return NULL;
}

/* read(i, buffer, decode): into a writable contiguous buffer of exactly its size; with decode, as float32 */
static PyObject *
model_read(PyObject *self, PyObject *args)
{
    struct model *m = (struct model *)self;
    Py_ssize_t i;
    Py_buffer view;
    int is_decoded;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (!PyArg_ParseTuple(args, "nw*p:read", &i, &view, &is_decoded))
        return NULL;
    const struct pawl_tensor_info *tensor = tensor_at(m, i);
    if (tensor == NULL) {
        PyBuffer_Release(&view);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS st =
        pawl_model_read(m->model, tensor, is_decoded ? PAWL_F32 : tensor->dtype, view.buf, (size_t)view.len, &err);
    Py_END_ALLOW_THREADS PyBuffer_Release(&view);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

static PyObject *
model_map(PyObject *self, PyObject *arg)
{
    struct model *m = (struct model *)self;
    const void *data = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    Py_ssize_t i = PyLong_AsSsize_t(arg);
    if (i == -1 && PyErr_Occurred())
        return NULL;
    const struct pawl_tensor_info *tensor = tensor_at(m, i);
    if (tensor == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_model_map(m->model, tensor, &data, NULL, &err);
    Py_END_ALLOW_THREADS return st == PAWL_OK ? mapping_new(self, data, tensor->end - tensor->begin)
                                              : fail_with(&err, NULL);
}

/* maps() -> list of Mapping, one for each tensor */
static PyObject *
model_maps(PyObject *self, PyObject *unused)
{
    struct model *m = (struct model *)self;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    const void **data = PyMem_Calloc(m->n + 1, sizeof *data);
    (void)unused;
    if (data == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS for (size_t i = 0; st == PAWL_OK && i < m->n; i++) st =
        pawl_model_map(m->model, &m->tensors[i], &data[i], NULL, &err);
    Py_END_ALLOW_THREADS PyObject *list = st == PAWL_OK ? PyList_New((Py_ssize_t)m->n) : fail_with(&err, NULL);
    for (size_t i = 0; list != NULL && i < m->n; i++) {
        PyObject *item = mapping_new(self, data[i], m->tensors[i].end - m->tensors[i].begin);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    PyMem_Free(data);
    return list;
}

/* ---- slices ---- */

struct slice {
    struct pawl_slice_axis *axes;
    size_t n;
};

/* A tuple of (start or None, stop or None, step) for a range, an int for an index, None for `...`. */
static bool
slice_take(struct slice *slice, PyObject *tuple)
{
    slice->n = (size_t)PyTuple_Size(tuple);
    slice->axes = PyMem_Calloc(slice->n + 1, sizeof *slice->axes);
    if (slice->axes == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < slice->n && !PyErr_Occurred(); i++) {
        struct pawl_slice_axis *axis = &slice->axes[i];
        PyObject *item = PyTuple_GetItem(tuple, (Py_ssize_t)i), *start, *stop;
        long long step;
        if (item == Py_None) {
            axis->flags = PAWL_SLICE_ELLIPSIS;
        } else if (PyLong_Check(item)) {
            axis->flags = PAWL_SLICE_START | PAWL_SLICE_INDEX;
            axis->start = PyLong_AsLongLong(item);
        } else if (PyArg_ParseTuple(item, "OOL", &start, &stop, &step)) {
            axis->step = step;
            if (start != Py_None) {
                axis->flags |= PAWL_SLICE_START;
                axis->start = PyLong_AsLongLong(start);
            }
            if (stop != Py_None) {
                axis->flags |= PAWL_SLICE_STOP;
                axis->stop = PyLong_AsLongLong(stop);
            }
        }
    }
    if (!PyErr_Occurred())
        return true;
    PyMem_Free(slice->axes);
    return false;
}

/* slice_shape(i, axes) -> shape */
static PyObject *
model_slice_shape(PyObject *self, PyObject *args)
{
    Py_ssize_t i;
    PyObject *tuple, *shape = NULL;
    struct slice slice;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "nO!:slice_shape", &i, &PyTuple_Type, &tuple))
        return NULL;
    const struct pawl_tensor_info *tensor = tensor_at((struct model *)self, i);
    if (tensor == NULL || !slice_take(&slice, tuple))
        return NULL;
    uint64_t *dims = PyMem_Calloc(tensor->rank + 1, sizeof *dims);
    size_t rank = 0;
    if (dims == NULL) {
        PyErr_NoMemory();
    } else if (pawl_slice_shape(tensor, slice.axes, slice.n, dims, &rank, NULL, &err) != PAWL_OK) {
        (void)fail_with(&err, NULL);
    } else {
        const struct pawl_tensor_info result = { .shape = dims, .rank = (uint32_t)rank };
        shape = shape_from(&result);
    }
    PyMem_Free(dims);
    PyMem_Free(slice.axes);
    return shape;
}

/* read_slice(i, axes, buffer, decode) */
static PyObject *
model_read_slice(PyObject *self, PyObject *args)
{
    struct model *m = (struct model *)self;
    Py_ssize_t i;
    PyObject *tuple;
    Py_buffer view;
    int is_decoded;
    struct slice slice;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    if (!PyArg_ParseTuple(args, "nO!w*p:read_slice", &i, &PyTuple_Type, &tuple, &view, &is_decoded))
        return NULL;
    const struct pawl_tensor_info *tensor = tensor_at(m, i);
    bool is_fine = tensor != NULL && slice_take(&slice, tuple);
    if (is_fine) {
        Py_BEGIN_ALLOW_THREADS st =
            pawl_model_read_slice(m->model, tensor, slice.axes, slice.n, is_decoded ? PAWL_F32 : tensor->dtype,
                                  PAWL_OVERFLOW_FORMAT, view.buf, (size_t)view.len, &err);
        Py_END_ALLOW_THREADS PyMem_Free(slice.axes);
    }
    PyBuffer_Release(&view);
    if (!is_fine)
        return NULL;
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef model_methods[] = {
    { "slice_shape", model_slice_shape, METH_VARARGS, "slice_shape(i, axes) -> shape" },
    { "read_slice", model_read_slice, METH_VARARGS, "read_slice(i, axes, buffer, decode)" },
    { "tensors", model_tensors, METH_NOARGS, "list of (name, dtype, shape, begin, end, file)" },
    { "metadata", model_metadata, METH_NOARGS, "dict or None" },
    { "aliases", model_aliases, METH_NOARGS, "dict of alias to target" },
    { "kind", model_kind, METH_NOARGS, "what was opened" },
    { "files", model_files, METH_NOARGS, "list of (name, bytes, header_bytes)" },
    { "read", model_read, METH_VARARGS, "read(i, buffer, decode)" },
    { "map", model_map, METH_O, "map(i) -> Mapping" },
    { "maps", model_maps, METH_NOARGS, "list of Mapping" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot model_slots[] = {
    { Py_tp_dealloc, (void *)model_dealloc },
    { Py_tp_methods, (void *)model_methods },
    { Py_tp_doc, (void *)"An open set of tensors." },
    { 0, NULL },
};

static PyType_Spec model_spec = {
    .name = "pawl._pawl.Model",
    .basicsize = sizeof(struct model),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = model_slots,
};

static PyMethodDef functions[] = {
    { "open_model", open_model, METH_VARARGS, "open_model(path, mode, header_bytes_max) -> Model" },
    { "open_memory", open_memory, METH_VARARGS, "open_memory(data, mode, header_bytes_max) -> Model" },
    { NULL, NULL, 0, NULL },
};

int
add_model(PyObject *module)
{
    if (add_type(module, &held_spec, &held_type) < 0 || add_type(module, &mapping_spec, &mapping_type) < 0 ||
        add_type(module, &model_spec, &model_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
