/* py_tensors.c: Python's arrays as struct pawl_tensor, without a copy: their buffers are held until the call is over. */
#include "py_module.h"

/* ---- taking ---- */

/* A tuple of integers, not negative unless they are strides. */
static bool
take_numbers(PyObject *tuple, size_t rank, uint64_t *shape, int64_t *strides)
{
    for (size_t i = 0; i < rank; i++) {
        PyObject *item = PyTuple_GetItem(tuple, (Py_ssize_t)i);
        if (item == NULL)
            return false;
        long long value = PyLong_AsLongLong(item);
        if (value == -1 && PyErr_Occurred())
            return false;
        if (shape != NULL)
            shape[i] = (uint64_t)value;
        else
            strides[i] = value;
    }
    return true;
}

static bool
take_one(struct tensor_list *list, size_t i, PyObject *tuple, enum pawl_slot slot, uint64_t *shape, int64_t *strides)
{
    PyObject *name, *shape_tuple, *strides_tuple, *buffer;
    const char *dtype, *stored;
    int is_big_endian, overflow;
    struct pawl_tensor *t = &list->items[i];
    if (!PyArg_ParseTuple(tuple, "UsO!OOpzi", &name, &dtype, &PyTuple_Type, &shape_tuple, &strides_tuple, &buffer,
                          &is_big_endian, &stored, &overflow))
        return false;
    size_t rank = (size_t)PyTuple_Size(shape_tuple);
    *t = (struct pawl_tensor){ .size = sizeof *t, .slot = slot, .rank = rank, .is_big_endian = is_big_endian != 0 };
    t->dtype = pawl_dtype_by_name(pawl_str_z(dtype));
    if (!text_of(name, &t->name))
        return false;
    if (t->dtype == 0) {
        (void)fail_argument("tensor %R: there is no dtype '%s'", name, dtype);
        return false;
    }
    if (stored != NULL) {
        t->stored = pawl_dtype_by_name(pawl_str_z(stored));
        t->overflow = (enum pawl_overflow)overflow;
    }
    if (!take_numbers(shape_tuple, rank, shape, NULL))
        return false;
    t->shape = shape;
    if (strides_tuple != Py_None) {
        if (!PyTuple_Check(strides_tuple) || !take_numbers(strides_tuple, rank, NULL, strides))
            return false;
        t->strides = strides;
    }
    if (PyObject_GetBuffer(buffer, &list->views[i], t->strides != NULL ? PyBUF_STRIDED_RO : PyBUF_SIMPLE) < 0)
        return false;
    list->n_views = i + 1;
    t->data = list->views[i].buf;
    return true;
}

bool
tensors_take(struct tensor_list *list, PyObject *tuples, enum pawl_slot slot)
{
    *list = (struct tensor_list){ NULL, 0, NULL, 0, NULL, NULL };
    if (!PyList_Check(tuples)) {
        PyErr_SetString(PyExc_TypeError, "expected a list of tensors");
        return false;
    }
    size_t n = (size_t)PyList_Size(tuples), dims = 0;
    for (size_t i = 0; i < n; i++) {
        PyObject *tuple = PyList_GetItem(tuples, (Py_ssize_t)i);
        PyObject *shape = PyTuple_Check(tuple) && PyTuple_Size(tuple) == 8 ? PyTuple_GetItem(tuple, 2) : NULL;
        if (shape == NULL || !PyTuple_Check(shape)) {
            PyErr_SetString(PyExc_TypeError, "expected tuples of eight, the third the shape");
            return false;
        }
        dims += (size_t)PyTuple_Size(shape);
    }
    list->items = PyMem_Calloc(n + 1, sizeof *list->items);
    list->views = PyMem_Calloc(n + 1, sizeof *list->views);
    list->shapes = PyMem_Calloc(dims + 1, sizeof *list->shapes);
    list->strides = PyMem_Calloc(dims + 1, sizeof *list->strides);
    if (list->items == NULL || list->views == NULL || list->shapes == NULL || list->strides == NULL) {
        PyErr_NoMemory();
        tensors_release(list);
        return false;
    }
    dims = 0;
    for (size_t i = 0; i < n; i++) {
        if (!take_one(list, i, PyList_GetItem(tuples, (Py_ssize_t)i), slot, list->shapes + dims,
                      list->strides + dims)) {
            tensors_release(list);
            return false;
        }
        dims += list->items[i].rank;
    }
    list->n = n;
    return true;
}

void
tensors_release(struct tensor_list *list)
{
    for (size_t i = 0; i < list->n_views; i++)
        PyBuffer_Release(&list->views[i]); /* fine on one that was never taken */
    PyMem_Free(list->items);
    PyMem_Free(list->views);
    PyMem_Free(list->shapes);
    PyMem_Free(list->strides);
    *list = (struct tensor_list){ NULL, 0, NULL, 0, NULL, NULL };
}

bool
pairs_take(PyObject *dict, struct pawl_pair **ret_pairs, size_t *ret_n)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    size_t n = 0;
    struct pawl_pair *pairs = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *pairs);
    if (pairs == NULL) {
        PyErr_NoMemory();
        return false;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (!text_of(key, &pairs[n].key) || !text_of(value, &pairs[n].value)) {
            PyMem_Free(pairs);
            return false;
        }
        n++;
    }
    *ret_pairs = pairs;
    *ret_n = n;
    return true;
}
