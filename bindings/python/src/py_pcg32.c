/* py_pcg32.c: the generator, over pawl/pcg32.h. pawl.PCG32 (pawl/_pcg32.py) is a subclass with the pickling and the rest. */
#include "py_module.h"

struct pcg32 {
    PyObject_HEAD struct pawl_pcg32 rng;
    unsigned long long seed;
};

static PyTypeObject *pcg32_type;

struct pawl_pcg32 *
pcg32_of(PyObject *rng)
{
    if (PyObject_TypeCheck(rng, pcg32_type))
        return &((struct pcg32 *)rng)->rng;
    PyErr_SetString(PyExc_TypeError, "expected a PCG32");
    return NULL;
}

static PyObject *
pcg32_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "seed", "seq", NULL };
    unsigned long long seed = 0, seq = 54;
    PyObject *seed_object = NULL, *seq_object = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:PCG32", names, &seed_object, &seq_object))
        return NULL;
    PyObject **given[] = { &seed_object, &seq_object };
    unsigned long long *words[] = { &seed, &seq };
    for (int i = 0; i < 2; i++) {
        if (*given[i] == NULL)
            continue;
        PyObject *index = PyNumber_Index(*given[i]);
        if (index == NULL)
            return NULL;
        *words[i] = PyLong_AsUnsignedLongLong(index);
        Py_DECREF(index);
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_OverflowError))
                return NULL;
            PyErr_Clear();
            return fail_argument("%s is %R, expected 0 ... 2^64-1", names[i], *given[i]);
        }
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct pcg32 *p = (struct pcg32 *)alloc(type, 0);
    if (p == NULL)
        return NULL;
    pawl_pcg32_seed(&p->rng, seed, seq);
    p->seed = seed;
    return (PyObject *)p;
}

static void
pcg32_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *
next_u32(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(pawl_pcg32_next(&((struct pcg32 *)self)->rng));
}

static PyObject *
below(PyObject *self, PyObject *arg)
{
    PyObject *index = PyNumber_Index(arg);
    if (index == NULL)
        return NULL;
    unsigned long long n = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return NULL;
        PyErr_Clear();
        n = 0;
    }
    if (n < 1 || n > UINT64_C(4294967296))
        return fail_argument("n is %R, expected 1 ... 2^32", arg);
    return PyLong_FromUnsignedLongLong(pawl_pcg32_below(&((struct pcg32 *)self)->rng, n));
}

static PyObject *
uniform(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyFloat_FromDouble(pawl_pcg32_uniform(&((struct pcg32 *)self)->rng));
}

static PyObject *
normal(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyFloat_FromDouble(pawl_pcg32_normal(&((struct pcg32 *)self)->rng));
}

static PyObject *
get_state(PyObject *self, PyObject *unused)
{
    const struct pawl_pcg32 *rng = &((struct pcg32 *)self)->rng;
    (void)unused;
    return Py_BuildValue("KK", (unsigned long long)rng->state, (unsigned long long)rng->inc);
}

/* _set(state, inc): the caller has checked them; the spare is dropped */
static PyObject *
set_words(PyObject *self, PyObject *args)
{
    unsigned long long state, inc;
    if (!PyArg_ParseTuple(args, "KK", &state, &inc))
        return NULL;
    ((struct pcg32 *)self)->rng = (struct pawl_pcg32){ .state = state, .inc = inc };
    Py_RETURN_NONE;
}

/* _stream(seed, purpose): begin anew as that sub-stream */
static PyObject *
set_stream(PyObject *self, PyObject *args)
{
    unsigned long long seed, purpose;
    if (!PyArg_ParseTuple(args, "KK", &seed, &purpose))
        return NULL;
    struct pcg32 *p = (struct pcg32 *)self;
    p->seed = pawl_child_seed(seed, purpose);
    pawl_pcg32_stream(&p->rng, seed, purpose);
    Py_RETURN_NONE;
}

static PyObject *
get_spare(PyObject *self, void *unused)
{
    const struct pawl_pcg32 *rng = &((struct pcg32 *)self)->rng;
    (void)unused;
    if (!rng->has_spare)
        Py_RETURN_NONE;
    return PyFloat_FromDouble(rng->spare);
}

static int
set_spare(PyObject *self, PyObject *value, void *unused)
{
    struct pawl_pcg32 *rng = &((struct pcg32 *)self)->rng;
    (void)unused;
    if (value == NULL || value == Py_None) {
        rng->has_spare = false;
        rng->spare = 0;
        return 0;
    }
    double spare = PyFloat_AsDouble(value);
    if (spare == -1.0 && PyErr_Occurred())
        return -1;
    rng->spare = spare;
    rng->has_spare = true;
    return 0;
}

static PyObject *
get_seed(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct pcg32 *)self)->seed);
}

static PyMethodDef methods[] = {
    { "next_u32", next_u32, METH_NOARGS, "next_u32()\n--\n\n32 random bits." },
    { "below", below, METH_O, "below(n)\n--\n\nA uniform integer of [0, n), 1 <= n <= 2^32." },
    { "uniform", uniform, METH_NOARGS, "uniform()\n--\n\nA double of [0, 1), 53 bits; two draws." },
    { "normal", normal, METH_NOARGS,
      "normal()\n--\n\nA standard normal (Box-Muller); its pair's other is kept in `spare`." },
    { "state", get_state, METH_NOARGS, "state()\n--\n\nThe words (state, inc)." },
    { "_set", set_words, METH_VARARGS, NULL },
    { "_stream", set_stream, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "spare", get_spare, set_spare, "A normal that is pending, or None.", NULL },
    { "_seed", get_seed, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_new, (void *)pcg32_new },
    { Py_tp_dealloc, (void *)pcg32_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "pawl._pawl.PCG32",
    .basicsize = sizeof(struct pcg32),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int
add_pcg32(PyObject *module)
{
    return add_type(module, &spec, &pcg32_type);
}
