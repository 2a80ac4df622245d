/*
 * py_module.h: the parts of the extension module `pawl._pawl`, a thin layer over include/pawl: paths, names and buffers in,
 * tuples and numbers out. What a user sees, with its types and defaults, is Python (bindings/python/pawl).
 *
 * Rules of the whole module: only the limited API of CPython 3.11. The GIL is released around every call into libpawl that
 * reads, writes, hashes, converts or waits, and held in every call into Python. Memory that libpawl works on while the GIL is
 * released is pinned by a Py_buffer.
 */
#ifndef PAWL_PYTHON_MODULE_H
#define PAWL_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "pawl/pawl.h"

/* ---- py_error.c ---- */

/*
 * Raise what a failed call told: calls pawl._errors.make(...), which chooses the class. An exception that is set already
 * (a callback raised, and so the call was abandoned) goes through untouched. Frees the report, which may be NULL. Always NULL.
 */
PyObject *fail_with(const struct pawl_error *err, struct pawl_report *report);
/* An ArgumentError of our own. Always NULL. */
PyObject *fail_argument(const char *format, ...);
/* UnicodeEncodeError of a text with lone surrogates becomes an ArgumentError. False: an exception is set. */
bool text_of(PyObject *text, struct pawl_str *ret_text);
/* A path: anything that os.fsencode takes; a new bytes object. False: an exception is set. */
bool path_of(PyObject *path, PyObject **ret_bytes, struct pawl_str *ret_path);
PyObject *str_from(struct pawl_str text);  /* UTF-8 */
PyObject *name_from(struct pawl_str name); /* of a file: os.fsdecode */
/* (verdicts, names, warnings); does not free it. NULL report: three empty ones. */
PyObject *report_from(const struct pawl_report *report);

/* ---- py_progress.c ---- */

/* What the callbacks of one call into libpawl need. Lives on the caller's stack. */
struct talk {
    PyObject *progress;  /* callable(done, total), or NULL: signals are polled all the same */
    PyObject *failpoint; /* callable(name) -> int, or NULL */
    PyObject *warnings;  /* a list that gets (code, message, file), or NULL */
    int64_t last_ns;     /* when progress was called */
    uint64_t total;
};
/*
 * Take the GIL in a callback, and give it back. False: the interpreter is ending, and must not be called. A thread that would wait for the GIL
 * while the interpreter goes is ended in the middle of a call into the library, or finds nothing to ask.
 */
bool interpreter_enter(PyGILState_STATE *ret_gil);
void interpreter_exit(PyGILState_STATE gil);
/* With the GIL, which is let go meanwhile: no callback calls the interpreter from now on. Waits for those that do, but no longer than 5 s; false:
 * there are some yet. */
bool interpreter_close(void);
/* Before the first callback: a forked child does not wait for those of the parent's threads. */
void interpreter_open(void);

int talk_progress(void *context, uint64_t done_bytes, uint64_t total_bytes);
int talk_failpoint(void *context, const char *name);
void talk_warning(void *context, const struct pawl_problem *problem);
/* Call progress once more, with everything done. False: it raised. */
bool talk_finish(const struct talk *talk);

/* ---- py_tensors.c ---- */

struct tensor_list {
    struct pawl_tensor *items;
    size_t n;
    /* private */
    Py_buffer *views;
    size_t n_views;
    uint64_t *shapes;
    int64_t *strides;
};
/*
 * Take a list of tuples (name, dtype, shape, strides or None, buffer, is_big_endian, stored or None, overflow).
 * False: an exception is set, nothing is held.
 */
bool tensors_take(struct tensor_list *list, PyObject *tuples, enum pawl_slot slot);
void tensors_release(struct tensor_list *list);

/* A dict of texts as pairs, which borrow from it. False: an exception is set. *ret_pairs is freed with PyMem_Free. */
bool pairs_take(PyObject *dict, struct pawl_pair **ret_pairs, size_t *ret_n);

/* ---- py_state.c ---- */

/* What a save is given, and what the state of it points to. */
struct described {
    struct pawl_state *state;
    struct tensor_list model, optimizer;
    union number {
        double real;
        int64_t integer;
    } * numbers;
    struct pawl_pcg32 *rngs;
    PyObject *held; /* what the state borrows: bytes of the opaque states */
};
/*
 * The dict of a save: model, optimizer, optimizer_name, optimizer_json, numbers, rngs, stream, texts, metadata, files, opaques.
 * False: an exception is set. Released afterwards in any case.
 */
bool describe(struct described *d, PyObject *all);
void described_release(struct described *d); /* fine on one whose state is NULL */
/* A dict of name to float; the texts are borrowed. NULL: an exception is set. Freed with PyMem_Free. */
struct pawl_metric *metrics_take(PyObject *dict);

/* ---- py_save.c ---- */

/* A Save without its save, so that nothing can fail once there is one. NULL: an exception is set. */
PyObject *save_new(void);
/* Give it its save, and what the save borrows until it is released (NULL: nothing), which is moved there. */
void save_fill(PyObject *self, struct pawl_save *save, struct described *borrowed);

/* ---- py_model.c ---- */

/* A Model over one that belongs to `owner`. */
PyObject *model_borrow(const struct pawl_model *model, PyObject *owner);

/* ---- py_tokens.c ---- */

struct pawl_stream *stream_of(PyObject *stream); /* NULL: a TypeError is set */

/* ---- py_pcg32.c ---- */

struct pawl_pcg32 *pcg32_of(PyObject *rng); /* NULL: a TypeError is set */

/* ---- what each file adds to the module: -1 with an exception set ---- */

int add_errors(PyObject *module);
int add_write(PyObject *module);
int add_model(PyObject *module);
int add_verify(PyObject *module);
int add_run(PyObject *module);
int add_save(PyObject *module);
int add_ckpt(PyObject *module);
int add_tokens(PyObject *module);
int add_pcg32(PyObject *module);
int add_llmcp35(PyObject *module);

/* Make a type and add it under its own name; *ret_type keeps a reference for the process. */
int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret_type);
/* PyTuple_SetItem for tuples that are being made: takes the value over; false when it is NULL. */
bool put(PyObject *tuple, Py_ssize_t i, PyObject *value);

#endif
