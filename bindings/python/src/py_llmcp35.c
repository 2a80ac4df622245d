/* py_llmcp35.c: checkpoints of one file, over pawl/llmcp35.h. pawl.llmcp35.Checkpoint (pawl/llmcp35.py) holds one of these. */
#include "py_module.h"

#include <stdlib.h>

struct checkpoint {
    PyObject_HEAD struct pawl_llmcp35 *checkpoint;
};

/* A row of numbers of a checkpoint, which it keeps. */
struct numbers {
    PyObject_HEAD PyObject *owner;
    const double *data;
    size_t n;
};

static PyTypeObject *checkpoint_type, *numbers_type;

static PyObject *
checkpoint_from(struct pawl_llmcp35 *checkpoint)
{
    struct checkpoint *c = PyObject_New(struct checkpoint, checkpoint_type);
    if (c == NULL)
        pawl_llmcp35_free(checkpoint);
    else
        c->checkpoint = checkpoint;
    return (PyObject *)c;
}

static void
checkpoint_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pawl_llmcp35_free(((struct checkpoint *)self)->checkpoint);
    PyObject_Free(self);
    Py_DECREF(type);
}

static void
numbers_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((struct numbers *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int
numbers_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    const struct numbers *numbers = (struct numbers *)self;
    return PyBuffer_FillInfo(view, self, (void *)(uintptr_t)numbers->data,
                             (Py_ssize_t)(numbers->n * sizeof *numbers->data), 1, flags);
}

static PyObject *
numbers_from(PyObject *owner, const double *data, size_t n)
{
    if (data == NULL)
        Py_RETURN_NONE;
    struct numbers *numbers = PyObject_New(struct numbers, numbers_type);
    if (numbers == NULL)
        return NULL;
    Py_INCREF(owner);
    numbers->owner = owner;
    numbers->data = data;
    numbers->n = n;
    return (PyObject *)numbers;
}

/* ---- looking ---- */

static PyObject *
names_from(const struct pawl_str *names, size_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple != NULL && i < n; i++) {
        if (!put(tuple, (Py_ssize_t)i, str_from(names[i])))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* facts() -> (config, adamw, groups or None, (step, beta1_power, beta2_power, rng_state), (header_bytes, payload_bytes, checksum)) */
static PyObject *
checkpoint_facts(PyObject *self, PyObject *unused)
{
    struct pawl_llmcp35_facts facts;
    (void)unused;
    pawl_llmcp35_facts(((struct checkpoint *)self)->checkpoint, &facts);
    const struct pawl_llmcp35_config *c = &facts.config;
    const struct pawl_llmcp35_adamw *a = &facts.adamw;
    PyObject *groups = Py_None;
    Py_INCREF(groups);
    if (a->has_groups) {
        Py_DECREF(groups);
        groups = PyTuple_New(2);
        if (groups != NULL && (!put(groups, 0, names_from(a->decay, a->n_decay)) ||
                               !put(groups, 1, names_from(a->no_decay, a->n_no_decay))))
            Py_CLEAR(groups);
        if (groups == NULL)
            return NULL;
    }
    typedef unsigned long long u64;
    return Py_BuildValue("((KKKKKKdd)(ddddd)N(KddK)(KKK))", (u64)c->vocabulary, (u64)c->width, (u64)c->heads,
                         (u64)c->feed_forward, (u64)c->layers, (u64)c->positions, c->rope_base, c->rms_epsilon,
                         a->learning_rate, a->beta1, a->beta2, a->epsilon, a->weight_decay, groups, (u64)facts.step,
                         facts.beta1_power, facts.beta2_power, (u64)facts.rng_state, (u64)facts.header_bytes,
                         (u64)facts.payload_bytes, (u64)facts.checksum);
}

static PyObject *
shape_from(const struct pawl_llmcp35_parameter *parameter)
{
    PyObject *shape = PyTuple_New((Py_ssize_t)parameter->rank);
    for (size_t i = 0; shape != NULL && i < parameter->rank; i++) {
        if (!put(shape, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(parameter->shape[i])))
            Py_CLEAR(shape);
    }
    return shape;
}

/* parameters() -> list of (name, shape, values, first or None, second or None), in model order */
static PyObject *
checkpoint_parameters(PyObject *self, PyObject *unused)
{
    size_t n = 0;
    const struct pawl_llmcp35_parameter *all = pawl_llmcp35_parameters(((struct checkpoint *)self)->checkpoint, &n);
    PyObject *list = PyList_New(0);
    (void)unused;
    for (size_t i = 0; list != NULL && i < n; i++) {
        const struct pawl_llmcp35_parameter *p = &all[i];
        PyObject *item = PyTuple_New(5);
        if (item == NULL || !put(item, 0, str_from(p->name)) || !put(item, 1, shape_from(p)) ||
            !put(item, 2, numbers_from(self, p->values, p->n)) || !put(item, 3, numbers_from(self, p->first, p->n)) ||
            !put(item, 4, numbers_from(self, p->second, p->n)) || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *
piece_from(const struct pawl_llmcp35_tokenizer *tokenizer, uint64_t id)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    uint64_t n = 0;
    enum pawl_status st = pawl_llmcp35_tokenizer_spell(tokenizer, id, NULL, 0, &n, &err);
    PyObject *piece = st == PAWL_OK ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n) : fail_with(&err, NULL);
    if (piece != NULL)
        (void)pawl_llmcp35_tokenizer_spell(tokenizer, id, PyBytes_AsString(piece), (size_t)n, &n, &err);
    return piece;
}

/* tokenizer() -> (is_literal, list of the bytes of each id, list of the merges' two operands) */
static PyObject *
checkpoint_tokenizer(PyObject *self, PyObject *unused)
{
    struct pawl_llmcp35_facts facts;
    size_t n = 0;
    (void)unused;
    pawl_llmcp35_facts(((struct checkpoint *)self)->checkpoint, &facts);
    uint64_t vocabulary = pawl_llmcp35_tokenizer_vocabulary(facts.tokenizer);
    const uint32_t *pairs = pawl_llmcp35_tokenizer_merges(facts.tokenizer, &n);
    PyObject *pieces = PyList_New(0), *merges = PyList_New(0);
    bool is_fine = pieces != NULL && merges != NULL;
    for (uint64_t id = 0; is_fine && id < vocabulary; id++) {
        PyObject *piece = piece_from(facts.tokenizer, id);
        is_fine = piece != NULL && PyList_Append(pieces, piece) == 0;
        Py_XDECREF(piece);
    }
    for (size_t i = 0; is_fine && i < n; i++) {
        PyObject *pair = Py_BuildValue("II", pairs[2 * i], pairs[2 * i + 1]);
        is_fine = pair != NULL && PyList_Append(merges, pair) == 0;
        Py_XDECREF(pair);
    }
    if (is_fine)
        return Py_BuildValue("ONN",
                             pawl_llmcp35_tokenizer_kind(facts.tokenizer) == PAWL_LLMCP35_LITERAL ? Py_True : Py_False,
                             pieces, merges);
    Py_XDECREF(pieces);
    Py_XDECREF(merges);
    return NULL;
}

/* ---- reading and writing ---- */

static PyObject *
load_llmcp35(PyObject *self, PyObject *arg)
{
    PyObject *bytes;
    struct pawl_str path;
    struct pawl_llmcp35 *checkpoint = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!path_of(arg, &bytes, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_llmcp35_load(path, &checkpoint, NULL, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    return st == PAWL_OK ? checkpoint_from(checkpoint) : fail_with(&err, NULL);
}

static PyObject *
checkpoint_save(PyObject *self, PyObject *arg)
{
    PyObject *bytes;
    struct pawl_str path;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (!path_of(arg, &bytes, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_llmcp35_save(((struct checkpoint *)self)->checkpoint, path, NULL, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

/* ---- making ---- */

/* Buffers of doubles, pinned. */
struct rows {
    Py_buffer *views;
    const double **data;
    size_t n;
};

static void
rows_release(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        PyBuffer_Release(&rows->views[i]);
    PyMem_Free(rows->views);
    PyMem_Free(rows->data);
    *rows = (struct rows){ NULL, NULL, 0 };
}

/* A list of packed buffers of doubles, as long as the parameters are: the caller has checked them. */
static bool
rows_take(struct rows *rows, PyObject *list)
{
    *rows = (struct rows){ NULL, NULL, 0 };
    size_t n = (size_t)PyList_Size(list);
    rows->views = PyMem_Calloc(n + 1, sizeof *rows->views);
    rows->data = PyMem_Calloc(n + 1, sizeof *rows->data);
    if (rows->views == NULL || rows->data == NULL) {
        rows_release(rows);
        (void)PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (PyObject_GetBuffer(PyList_GetItem(list, (Py_ssize_t)i), &rows->views[i], PyBUF_SIMPLE) < 0) {
            rows_release(rows);
            return false;
        }
        rows->n++;
        rows->data[i] = rows->views[i].buf;
    }
    return true;
}

/* Texts of a list as they are; they borrow from it. */
static struct pawl_str *
texts_take(PyObject *list, bool is_bytes, size_t *ret_n)
{
    size_t n = (size_t)PyList_Size(list);
    struct pawl_str *texts = PyMem_Calloc(n + 1, sizeof *texts);
    if (texts == NULL)
        (void)PyErr_NoMemory();
    for (size_t i = 0; texts != NULL && i < n; i++) {
        PyObject *item = PyList_GetItem(list, (Py_ssize_t)i);
        char *data;
        Py_ssize_t len = 0;
        bool is_fine = is_bytes ? PyBytes_AsStringAndSize(item, &data, &len) == 0 : text_of(item, &texts[i]);
        if (is_fine && is_bytes)
            texts[i] = (struct pawl_str){ data, (size_t)len };
        if (!is_fine) {
            PyMem_Free(texts);
            texts = NULL;
        }
    }
    *ret_n = n;
    return texts;
}

/* A list of bytes, or of pairs of numbers. NULL: an exception is set. */
static struct pawl_llmcp35_tokenizer *
tokenizer_of(bool is_literal, PyObject *list)
{
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n = 0;
    enum pawl_status st;
    if (is_literal) {
        struct pawl_str *pieces = texts_take(list, true, &n);
        if (pieces == NULL)
            return NULL;
        st = pawl_llmcp35_tokenizer_literal(pieces, n, &tokenizer, NULL, &err);
        PyMem_Free(pieces);
    } else {
        n = (size_t)PyList_Size(list);
        uint32_t *pairs = PyMem_Calloc(2 * n + 1, sizeof *pairs);
        if (pairs == NULL) {
            (void)PyErr_NoMemory();
            return NULL;
        }
        for (size_t i = 0; i < n; i++) {
            unsigned first, second;
            if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)i), "II", &first, &second)) {
                PyMem_Free(pairs);
                return NULL;
            }
            pairs[2 * i] = first;
            pairs[2 * i + 1] = second;
        }
        st = pawl_llmcp35_tokenizer_bpe(pairs, n, &tokenizer, NULL, &err);
        PyMem_Free(pairs);
    }
    if (st != PAWL_OK)
        (void)fail_with(&err, NULL);
    return st == PAWL_OK ? tokenizer : NULL;
}

/* What a training state and a tokenizer make. Frees the training. */
static enum pawl_status
finish_training(struct pawl_llmcp35_training *training, const struct pawl_llmcp35_tokenizer *tokenizer,
                uint64_t rng_state, struct pawl_llmcp35 **ret_checkpoint, struct pawl_error *err)
{
    struct pawl_llmcp35_bundle *bundle = NULL;
    enum pawl_status st = pawl_llmcp35_capture(training, &bundle, err);
    pawl_llmcp35_training_free(training);
    if (st != PAWL_OK)
        return st;
    st = pawl_llmcp35_new(bundle, tokenizer, rng_state, ret_checkpoint, NULL, err);
    if (st != PAWL_OK)
        pawl_llmcp35_bundle_free(bundle);
    return st;
}

/* new_llmcp35(config, adamw, has_groups, decay, no_decay, values, is_literal, tokens, rng_state) */
static PyObject *
new_llmcp35(PyObject *self, PyObject *args)
{
    PyObject *decay, *no_decay, *values, *tokens;
    unsigned long long c[6], rng_state;
    double reals[7];
    int is_literal, has_groups;
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35 *made = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct rows rows = { NULL, NULL, 0 };
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "(KKKKKKdd)(ddddd)pO!O!O!pO!K:new_llmcp35", &c[0], &c[1], &c[2], &c[3], &c[4], &c[5],
                          &reals[0], &reals[1], &reals[2], &reals[3], &reals[4], &reals[5], &reals[6], &has_groups,
                          &PyList_Type, &decay, &PyList_Type, &no_decay, &PyList_Type, &values, &is_literal,
                          &PyList_Type, &tokens, &rng_state))
        return NULL;
    const struct pawl_llmcp35_config config =
        PAWL_LLMCP35_CONFIG(.vocabulary = c[0], .width = c[1], .heads = c[2], .feed_forward = c[3], .layers = c[4],
                            .positions = c[5], .rope_base = reals[0], .rms_epsilon = reals[1]);
    struct pawl_llmcp35_adamw adamw =
        PAWL_LLMCP35_ADAMW(.learning_rate = reals[2], .beta1 = reals[3], .beta2 = reals[4], .epsilon = reals[5],
                           .weight_decay = reals[6], .has_groups = has_groups != 0);
    struct pawl_str *with = texts_take(decay, false, &adamw.n_decay);
    struct pawl_str *without = with == NULL ? NULL : texts_take(no_decay, false, &adamw.n_no_decay);
    struct pawl_llmcp35_tokenizer *tokenizer = without == NULL ? NULL : tokenizer_of(is_literal != 0, tokens);
    bool is_fine = tokenizer != NULL && rows_take(&rows, values);
    if (is_fine) {
        adamw.decay = with;
        adamw.no_decay = without;
        Py_BEGIN_ALLOW_THREADS st =
            pawl_llmcp35_training_new(&config, &adamw, rows.data, rows.n, &training, NULL, &err);
        if (st == PAWL_OK)
            st = finish_training(training, tokenizer, rng_state, &made, &err);
        Py_END_ALLOW_THREADS rows_release(&rows);
        if (st != PAWL_OK)
            (void)fail_with(&err, NULL);
    }
    pawl_llmcp35_tokenizer_free(tokenizer);
    PyMem_Free(with);
    PyMem_Free(without);
    return made == NULL ? NULL : checkpoint_from(made);
}

/* step(values, first, second, beta1_power, beta2_power, rng_state) -> the checkpoint one step later */
static PyObject *
checkpoint_step(PyObject *self, PyObject *args)
{
    PyObject *lists[3];
    struct rows rows[3];
    double beta1_power, beta2_power;
    unsigned long long rng_state;
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35 *made = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (!PyArg_ParseTuple(args, "O!O!O!ddK:step", &PyList_Type, &lists[0], &PyList_Type, &lists[1], &PyList_Type,
                          &lists[2], &beta1_power, &beta2_power, &rng_state))
        return NULL;
    size_t taken = 0;
    while (taken < 3 && rows_take(&rows[taken], lists[taken]))
        taken++;
    if (taken == 3) {
        const struct pawl_llmcp35 *base = ((struct checkpoint *)self)->checkpoint;
        struct pawl_llmcp35_facts facts;
        pawl_llmcp35_facts(base, &facts);
        const struct pawl_llmcp35_update update =
            PAWL_LLMCP35_UPDATE(.values = rows[0].data, .first = rows[1].data, .second = rows[2].data, .n = rows[0].n,
                                .beta1_power = beta1_power, .beta2_power = beta2_power);
        Py_BEGIN_ALLOW_THREADS st = pawl_llmcp35_restore(base, &training, NULL, &err);
        if (st == PAWL_OK) {
            st = pawl_llmcp35_update(training, &update, &err);
            if (st == PAWL_OK)
                st = finish_training(training, facts.tokenizer, rng_state, &made, &err);
            else
                pawl_llmcp35_training_free(training);
        }
        Py_END_ALLOW_THREADS if (st != PAWL_OK)(void) fail_with(&err, NULL);
    }
    while (taken > 0)
        rows_release(&rows[--taken]);
    return made == NULL ? NULL : checkpoint_from(made);
}

static PyMethodDef checkpoint_methods[] = {
    { "facts", checkpoint_facts, METH_NOARGS,
      "(config, adamw, groups, (step, powers, rng), (bytes, bytes, checksum))" },
    { "parameters", checkpoint_parameters, METH_NOARGS, "list of (name, shape, values, first, second)" },
    { "tokenizer", checkpoint_tokenizer, METH_NOARGS, "(is_literal, pieces, merges)" },
    { "save", checkpoint_save, METH_O, "save(path)" },
    { "step", checkpoint_step, METH_VARARGS, "step(values, first, second, beta1_power, beta2_power, rng_state)" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot checkpoint_slots[] = {
    { Py_tp_dealloc, (void *)checkpoint_dealloc },
    { Py_tp_methods, checkpoint_methods },
    { Py_tp_doc, (void *)"An LLMCP35 checkpoint." },
    { 0, NULL },
};

static PyType_Spec checkpoint_spec = {
    .name = "pawl._pawl.Llmcp35",
    .basicsize = sizeof(struct checkpoint),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = checkpoint_slots,
};

static PyType_Slot numbers_slots[] = {
    { Py_tp_dealloc, (void *)numbers_dealloc },
    { Py_bf_getbuffer, (void *)numbers_getbuffer },
    { Py_tp_doc, (void *)"Numbers of an LLMCP35 checkpoint, read-only." },
    { 0, NULL },
};

static PyType_Spec numbers_spec = {
    .name = "pawl._pawl.Llmcp35Numbers",
    .basicsize = sizeof(struct numbers),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = numbers_slots,
};

static PyMethodDef functions[] = {
    { "load_llmcp35", load_llmcp35, METH_O, "load_llmcp35(path) -> Llmcp35" },
    { "new_llmcp35", new_llmcp35, METH_VARARGS,
      "new_llmcp35(config, adamw, has_groups, decay, no_decay, values, is_literal, tokens, rng_state) -> Llmcp35" },
    { NULL, NULL, 0, NULL },
};

int
add_llmcp35(PyObject *module)
{
    if (add_type(module, &checkpoint_spec, &checkpoint_type) < 0 || add_type(module, &numbers_spec, &numbers_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
