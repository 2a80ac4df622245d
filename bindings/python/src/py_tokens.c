/* py_tokens.c: Shard, the ids of one file; Stream; Writer of a data set. */
#include "py_module.h"

#include <stdlib.h>

/* ---- paths ---- */

struct path_list {
    PyObject *bytes; /* a list that holds them */
    struct pawl_str *items;
    size_t n;
};

static void
paths_release(struct path_list *list)
{
    Py_CLEAR(list->bytes);
    PyMem_Free(list->items);
    list->items = NULL;
}

static bool
paths_take(struct path_list *list, PyObject *paths)
{
    *list = (struct path_list){ NULL, NULL, 0 };
    if (!PyList_Check(paths)) {
        PyErr_SetString(PyExc_TypeError, "expected a list of paths");
        return false;
    }
    size_t n = (size_t)PyList_Size(paths);
    list->bytes = PyList_New(0);
    list->items = PyMem_Calloc(n + 1, sizeof *list->items);
    if (list->bytes == NULL || list->items == NULL) {
        PyErr_NoMemory();
        paths_release(list);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        PyObject *bytes;
        bool is_fine = path_of(PyList_GetItem(paths, (Py_ssize_t)i), &bytes, &list->items[i]);
        if (is_fine) {
            is_fine = PyList_Append(list->bytes, bytes) == 0;
            Py_DECREF(bytes);
        }
        if (!is_fine) {
            paths_release(list);
            return false;
        }
    }
    list->n = n;
    return true;
}

/* token_files(paths, split) -> list of paths */
static PyObject *
token_files(PyObject *self, PyObject *args)
{
    PyObject *paths_object, *split_object;
    struct path_list paths;
    struct pawl_str split;
    struct pawl_token_files *files = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OU:token_files", &paths_object, &split_object) || !text_of(split_object, &split) ||
        !paths_take(&paths, paths_object))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_token_files_open(paths.items, paths.n, split, &files, &err);
    Py_END_ALLOW_THREADS paths_release(&paths);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    size_t n = 0;
    const struct pawl_str *found = pawl_token_files_paths(files, &n);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *path = name_from(found[i]);
        if (path == NULL || PyList_Append(list, path) < 0)
            Py_CLEAR(list);
        Py_XDECREF(path);
    }
    pawl_token_files_close(files);
    return list;
}

/* ---- Shard ---- */

struct shard {
    PyObject_HEAD struct pawl_shard *shard;
};

static PyTypeObject *shard_type;

/* open_shard(path, vocabulary, trust_ids) -> Shard */
static PyObject *
open_shard(PyObject *self, PyObject *args)
{
    PyObject *path_object, *bytes;
    unsigned long long vocabulary;
    int trust_ids;
    struct pawl_str path;
    struct pawl_shard *shard = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OKp:open_shard", &path_object, &vocabulary, &trust_ids))
        return NULL;
    if (!path_of(path_object, &bytes, &path))
        return NULL;
    struct pawl_shard_options options = { .size = sizeof options,
                                          .vocabulary = vocabulary,
                                          .trust_ids = trust_ids != 0 };
    Py_BEGIN_ALLOW_THREADS st = pawl_shard_open(path, &options, &shard, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    struct shard *s = PyObject_New(struct shard, shard_type);
    if (s == NULL) {
        pawl_shard_close(shard);
        return NULL;
    }
    s->shard = shard;
    return (PyObject *)s;
}

static void
shard_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pawl_shard_close(((struct shard *)self)->shard);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int
shard_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing;
    const struct pawl_shard *shard = ((struct shard *)self)->shard;
    struct pawl_shard_info info = pawl_shard_info(shard);
    const void *data = pawl_shard_data(shard);
    return PyBuffer_FillInfo(view, self, data != NULL ? (void *)(uintptr_t)data : &nothing,
                             (Py_ssize_t)(info.ids * info.width), 1, flags);
}

/* info() -> (version, ids, width, vocabulary) */
static PyObject *
shard_info(PyObject *self, PyObject *unused)
{
    struct pawl_shard_info info = pawl_shard_info(((struct shard *)self)->shard);
    (void)unused;
    return Py_BuildValue("iKIK", (int)info.format, (unsigned long long)info.ids, info.width,
                         (unsigned long long)info.vocabulary);
}

static PyMethodDef shard_methods[] = {
    { "info", shard_info, METH_NOARGS, "(version, ids, width, vocabulary)" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot shard_slots[] = {
    { Py_tp_dealloc, (void *)shard_dealloc },
    { Py_tp_methods, shard_methods },
    { Py_bf_getbuffer, (void *)shard_getbuffer },
    { Py_tp_doc, (void *)"The ids of a token shard, mapped." },
    { 0, NULL },
};

static PyType_Spec shard_spec = {
    .name = "pawl._pawl.Shard",
    .basicsize = sizeof(struct shard),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = shard_slots,
};

/* ---- Stream ---- */

struct stream {
    PyObject_HEAD struct pawl_stream *stream;
    uint32_t *ids;  /* two batches, for outputs of 64 bits */
    bool is_in_use; /* set and cleared with the GIL held */
};

static PyTypeObject *stream_type;

struct pawl_stream *
stream_of(PyObject *stream)
{
    if (PyObject_TypeCheck(stream, stream_type))
        return ((struct stream *)stream)->stream;
    PyErr_SetString(PyExc_TypeError, "expected a stream");
    return NULL;
}

/* open_stream(paths, seq_len, batch, seed, rng or None, vocabulary, trust_ids) */
static PyObject *
open_stream(PyObject *self, PyObject *args)
{
    PyObject *paths_object, *rng;
    unsigned long long seq_len, batch, seed, vocabulary;
    int trust_ids;
    struct path_list paths;
    struct pawl_stream *stream = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OKKKOKp:open_stream", &paths_object, &seq_len, &batch, &seed, &rng, &vocabulary,
                          &trust_ids))
        return NULL;
    struct pawl_stream_options options = { .size = sizeof options,
                                           .seq_len = seq_len,
                                           .batch = batch,
                                           .seed = seed,
                                           .vocabulary = vocabulary,
                                           .trust_ids = trust_ids != 0 };
    if (rng != Py_None) {
        options.rng = pcg32_of(rng);
        if (options.rng == NULL)
            return NULL;
    }
    if (!paths_take(&paths, paths_object))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_stream_open(paths.items, paths.n, &options, &stream, &err);
    Py_END_ALLOW_THREADS paths_release(&paths);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    struct stream *s = PyObject_New(struct stream, stream_type);
    if (s == NULL) {
        pawl_stream_close(stream);
        return NULL;
    }
    s->stream = stream;
    s->ids = NULL;
    s->is_in_use = false;
    return (PyObject *)s;
}

static void
stream_dealloc(PyObject *self)
{
    struct stream *s = (struct stream *)self;
    PyTypeObject *type = Py_TYPE(self);
    pawl_stream_close(s->stream);
    free(s->ids);
    PyObject_Free(self);
    Py_DECREF(type);
}

static bool
stream_enter(struct stream *s)
{
    if (s->is_in_use) {
        PyErr_SetString(PyExc_RuntimeError, "the stream is in use by another thread: it belongs to one at a time");
        return false;
    }
    s->is_in_use = true;
    return true;
}

/* The batch as 64-bit numbers: the ids are drawn into memory of the stream's own and widened. */
static enum pawl_status
next_wide(struct stream *s, size_t n, uint64_t *inputs, uint64_t *targets, struct pawl_error *err)
{
    if (s->ids == NULL)
        s->ids = malloc(2 * n * sizeof *s->ids);
    if (s->ids == NULL) {
        err->status = PAWL_NO_MEMORY;
        return PAWL_NO_MEMORY;
    }
    enum pawl_status st = pawl_stream_next(s->stream, s->ids, s->ids + n, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        inputs[i] = s->ids[i];
        targets[i] = s->ids[n + i];
    }
    return st;
}

/* next(inputs, targets): two writable buffers of batch x seq_len items of 4 or 8 bytes */
static PyObject *
stream_next(PyObject *self, PyObject *args)
{
    struct stream *s = (struct stream *)self;
    Py_buffer inputs, targets;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    if (!PyArg_ParseTuple(args, "w*w*:next", &inputs, &targets))
        return NULL;
    size_t n = (size_t)(pawl_stream_batch(s->stream) * pawl_stream_seq_len(s->stream));
    size_t width = n == 0 ? 0 : (size_t)inputs.len / n;
    bool fits = (width == 4 || width == 8) && (size_t)inputs.len == n * width && inputs.len == targets.len;
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "the buffers have %zd and %zd bytes, expected %zu items of 4 or 8", inputs.len,
                     targets.len, n);
    } else if (!stream_enter(s)) {
        fits = false;
    } else {
        Py_BEGIN_ALLOW_THREADS st = width == 4 ? pawl_stream_next(s->stream, inputs.buf, targets.buf, &err)
                                               : next_wide(s, n, inputs.buf, targets.buf, &err);
        Py_END_ALLOW_THREADS s->is_in_use = false;
    }
    PyBuffer_Release(&inputs);
    PyBuffer_Release(&targets);
    if (!fits)
        return NULL;
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

/* cursor() -> (shard, offset, state, inc) */
static PyObject *
stream_cursor(PyObject *self, PyObject *unused)
{
    struct stream *s = (struct stream *)self;
    struct pawl_stream_cursor cursor;
    (void)unused;
    if (!stream_enter(s))
        return NULL;
    pawl_stream_cursor(s->stream, &cursor);
    s->is_in_use = false;
    return Py_BuildValue("KKKK", (unsigned long long)cursor.shard, (unsigned long long)cursor.offset,
                         (unsigned long long)cursor.rng.state, (unsigned long long)cursor.rng.inc);
}

static PyObject *
stream_restore(PyObject *self, PyObject *args)
{
    struct stream *s = (struct stream *)self;
    unsigned long long shard, offset, state, inc;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "KKKK:restore", &shard, &offset, &state, &inc) || !stream_enter(s))
        return NULL;
    struct pawl_stream_cursor cursor = { .shard = shard, .offset = offset, .rng = { .state = state, .inc = inc } };
    enum pawl_status st = pawl_stream_restore(s->stream, &cursor, &err);
    s->is_in_use = false;
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

/* shards() -> list of (name, ids, width) */
static PyObject *
stream_shards(PyObject *self, PyObject *unused)
{
    size_t n = 0;
    const struct pawl_stream_shard *shards = pawl_stream_shards(((struct stream *)self)->stream, &n);
    PyObject *list = PyList_New(0);
    (void)unused;
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *item = PyTuple_New(3);
        if (item == NULL || !put(item, 0, name_from(shards[i].name)) ||
            !put(item, 1, PyLong_FromUnsignedLongLong(shards[i].ids)) ||
            !put(item, 2, PyLong_FromUnsignedLong(shards[i].width)) || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyMethodDef stream_methods[] = {
    { "next", stream_next, METH_VARARGS, "next(inputs, targets)" },
    { "cursor", stream_cursor, METH_NOARGS, "(shard, offset, state, inc)" },
    { "restore", stream_restore, METH_VARARGS, "restore(shard, offset, state, inc)" },
    { "shards", stream_shards, METH_NOARGS, "list of (name, ids, width)" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot stream_slots[] = {
    { Py_tp_dealloc, (void *)stream_dealloc },
    { Py_tp_methods, stream_methods },
    { Py_tp_doc, (void *)"Windows of token shards, for ever." },
    { 0, NULL },
};

static PyType_Spec stream_spec = {
    .name = "pawl._pawl.Stream",
    .basicsize = sizeof(struct stream),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = stream_slots,
};

/* ---- Writer ---- */

struct writer {
    PyObject_HEAD struct pawl_token_writer *writer; /* NULL once it is closed */
};

static PyTypeObject *writer_type;

/* open_writer(directory, vocabulary, separator or -1, width, max_ids, split, replace, tokenizer_id, dataset, version) */
static PyObject *
open_writer(PyObject *self, PyObject *args)
{
    PyObject *directory, *bytes, *split, *tokenizer, *dataset, *version;
    unsigned long long vocabulary, max_ids;
    long long separator;
    int width, replace;
    struct pawl_str path;
    struct pawl_token_writer *writer = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "OKLiKUpUUU:open_writer", &directory, &vocabulary, &separator, &width, &max_ids, &split,
                          &replace, &tokenizer, &dataset, &version))
        return NULL;
    struct pawl_token_writer_options options = { .size = sizeof options,
                                                 .vocabulary = vocabulary,
                                                 .separator = separator < 0 ? 0 : (uint64_t)separator,
                                                 .has_separator = separator >= 0,
                                                 .width = (uint8_t)width,
                                                 .replace = replace != 0,
                                                 .max_ids = max_ids };
    if (!text_of(split, &options.prefix) || !text_of(tokenizer, &options.tokenizer_id) ||
        !text_of(dataset, &options.dataset) || !text_of(version, &options.version) ||
        !path_of(directory, &bytes, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_token_writer_open(path, &options, &writer, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    struct writer *w = PyObject_New(struct writer, writer_type);
    if (w == NULL) {
        pawl_token_writer_close(writer);
        return NULL;
    }
    w->writer = writer;
    return (PyObject *)w;
}

static void
writer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    pawl_token_writer_close(((struct writer *)self)->writer);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The handle, taken away so that no other thread can use it meanwhile. */
static struct pawl_token_writer *
writer_take(struct writer *w)
{
    struct pawl_token_writer *writer = w->writer;
    if (writer == NULL)
        PyErr_SetString(PyExc_RuntimeError, "the writer is closed, or in use by another thread");
    w->writer = NULL;
    return writer;
}

/* document(ids): one document, a buffer of uint32 */
static PyObject *
writer_document(PyObject *self, PyObject *arg)
{
    struct writer *w = (struct writer *)self;
    Py_buffer view;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (PyObject_GetBuffer(arg, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    struct pawl_token_writer *writer = writer_take(w);
    if (writer == NULL) {
        PyBuffer_Release(&view);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS st = pawl_token_writer_document(writer, &err);
    if (st == PAWL_OK)
        st = pawl_token_writer_add(writer, view.buf, (size_t)view.len / sizeof(uint32_t), &err);
    Py_END_ALLOW_THREADS w->writer = writer;
    PyBuffer_Release(&view);
    if (st != PAWL_OK)
        return fail_with(&err, NULL);
    Py_RETURN_NONE;
}

/* finish() -> list of (name, ids, documents) */
static PyObject *
writer_finish(PyObject *self, PyObject *unused)
{
    struct pawl_token_writer *writer = writer_take((struct writer *)self);
    const struct pawl_token_file *files = NULL;
    size_t n = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    (void)unused;
    if (writer == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS st = pawl_token_writer_finish(writer, &files, &n, &err);
    Py_END_ALLOW_THREADS PyObject *list = st == PAWL_OK ? PyList_New(0) : fail_with(&err, NULL);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *item = PyTuple_New(3);
        if (item == NULL || !put(item, 0, name_from(files[i].name)) ||
            !put(item, 1, PyLong_FromUnsignedLongLong(files[i].ids)) ||
            !put(item, 2, PyLong_FromUnsignedLongLong(files[i].documents)) || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    pawl_token_writer_close(writer);
    return list;
}

/* abandon(): without finish, temporaries go */
static PyObject *
writer_abandon(PyObject *self, PyObject *unused)
{
    struct writer *w = (struct writer *)self;
    (void)unused;
    pawl_token_writer_close(w->writer);
    w->writer = NULL;
    Py_RETURN_NONE;
}

static PyMethodDef writer_methods[] = {
    { "document", writer_document, METH_O, "document(ids)" },
    { "finish", writer_finish, METH_NOARGS, "list of (name, ids, documents)" },
    { "abandon", writer_abandon, METH_NOARGS, "without finish" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot writer_slots[] = {
    { Py_tp_dealloc, (void *)writer_dealloc },
    { Py_tp_methods, writer_methods },
    { Py_tp_doc, (void *)"Writes a tokenised data set." },
    { 0, NULL },
};

static PyType_Spec writer_spec = {
    .name = "pawl._pawl.Writer",
    .basicsize = sizeof(struct writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = writer_slots,
};

static PyMethodDef functions[] = {
    { "token_files", token_files, METH_VARARGS, "token_files(paths, split) -> list of paths" },
    { "open_shard", open_shard, METH_VARARGS, "open_shard(path, vocabulary, trust_ids) -> Shard" },
    { "open_stream", open_stream, METH_VARARGS,
      "open_stream(paths, seq_len, batch, seed, rng, vocabulary, trust_ids)" },
    { "open_writer", open_writer, METH_VARARGS,
      "open_writer(directory, vocabulary, separator, width, max_ids, split, replace, tokenizer_id, dataset, version)" },
    { NULL, NULL, 0, NULL },
};

int
add_tokens(PyObject *module)
{
    if (add_type(module, &shard_spec, &shard_type) < 0 || add_type(module, &stream_spec, &stream_type) < 0 ||
        add_type(module, &writer_spec, &writer_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
