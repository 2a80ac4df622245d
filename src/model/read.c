/*
 * Reading tensors and slices of them. A large tensor is cut into slabs that several threads read, each with a buffer of its own
 * where values are converted. Of a slice, runs that lie close are read together and sorted into their places; others one by one.
 */
#include "model/read.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "codec/cast.h"
#include "os/parallel.h"

/* Converted at a time: a multiple of 24, so that a block of any dtype ends with a whole byte and a whole value. */
#define BLOCK_BYTES ((size_t)3 << 18)
/* A slab is what one thread takes at a time: of such a size that starting it costs nothing beside reading it. */
#define SLAB_BYTES ((uint64_t)12 << 20)
/* Below this a thread would cost more than it saves. */
#define PARALLEL_BYTES ((uint64_t)32 << 20)
/* What lies between two runs is read with them when it is less than a page: a page is what the system reads at least. */
#define GAP_BYTES ((uint64_t)4096)
#define WINDOW_BYTES ((uint64_t)1 << 20)

static uint64_t
elements_of(uint64_t bytes, unsigned bits)
{
    return bytes / bits * 8 + bytes % bits * 8 / bits;
}

static unsigned char *
place_of(const struct pawl_reading *r, void *data, uint64_t element)
{
    unsigned bits = pawl_dtype_bits(r->to);
    return (unsigned char *)data + (element / 8 * bits + element % 8 * bits / 8);
}

/* ---- whole tensors ---- */

/* Part of a tensor: `bytes` from `at` on, which is element `first`. */
static enum pawl_status
read_part(const struct pawl_reading *r, uint64_t at, uint64_t bytes, void *data, uint64_t first, struct pawl_error *err)
{
    unsigned bits = pawl_dtype_bits(r->from);
    enum pawl_status st = PAWL_OK;
    if (bytes == 0)
        return PAWL_OK;
    if (r->from == r->to)
        return pawl_file_read(r->file, r->begin + at, data, (size_t)bytes, err);
    size_t most = bytes < BLOCK_BYTES ? (size_t)bytes : BLOCK_BYTES;
    unsigned char *codes = malloc(most);
    if (codes == NULL)
        return pawl_fail_memory(err, most);
    for (uint64_t done = 0; done < bytes && st == PAWL_OK;) {
        size_t n = bytes - done < most ? (size_t)(bytes - done) : most;
        uint64_t element = elements_of(done, bits);
        st = pawl_file_read(r->file, r->begin + at + done, codes, n, err);
        if (st == PAWL_OK)
            st = pawl_cast_part(r->from, codes, (size_t)elements_of(n, bits), r->to, r->overflow,
                                place_of(r, data, element), first + element, NULL, err);
        done += n;
    }
    free(codes);
    return st;
}

struct slabs {
    const struct pawl_reading *reading;
    uint64_t bytes;
    void *data;
    pthread_mutex_t lock; /* over what follows: the fault of the lowest slab */
    size_t failed_slab;
    enum pawl_status st;
    struct pawl_error err;
};

static void
read_slab(void *context, size_t i)
{
    struct slabs *s = context;
    struct pawl_error own = PAWL_ERROR_INIT;
    uint64_t at = (uint64_t)i * SLAB_BYTES;
    uint64_t n = s->bytes - at < SLAB_BYTES ? s->bytes - at : SLAB_BYTES;
    uint64_t first = elements_of(at, pawl_dtype_bits(s->reading->from));
    pthread_mutex_lock(&s->lock);
    bool is_wanted = s->st == PAWL_OK || i < s->failed_slab;
    pthread_mutex_unlock(&s->lock);
    if (!is_wanted)
        return;
    enum pawl_status st = read_part(s->reading, at, n, place_of(s->reading, s->data, first), first, &own);
    if (st == PAWL_OK)
        return;
    pthread_mutex_lock(&s->lock);
    if (s->st == PAWL_OK || i < s->failed_slab) {
        s->st = st;
        s->err = own;
        s->failed_slab = i;
    }
    pthread_mutex_unlock(&s->lock);
}

enum pawl_status
pawl_read_whole(const struct pawl_reading *reading, uint64_t bytes, void *data, struct pawl_error *err)
{
    struct slabs slabs = { .reading = reading, .bytes = bytes, .data = data, .err = PAWL_ERROR_INIT };
    if (bytes < PARALLEL_BYTES || pthread_mutex_init(&slabs.lock, NULL) != 0)
        return read_part(reading, 0, bytes, data, 0, err);
    pawl_parallel((size_t)(bytes / SLAB_BYTES + (bytes % SLAB_BYTES != 0)), 0, read_slab, &slabs);
    pthread_mutex_destroy(&slabs.lock);
    if (slabs.st != PAWL_OK && err != NULL)
        *err = slabs.err;
    return slabs.st;
}

/* ---- slices ---- */

/* A place among the runs. */
struct walk {
    uint64_t at;   /* of the run, in the tensor */
    uint64_t out;  /* its element in the result */
    uint64_t left; /* runs, with this one */
    uint64_t index[PAWL_SLICE_LEVELS_MAX];
};

static struct walk
walk_begin(const struct pawl_selection *s)
{
    struct walk w = { .at = s->base, .out = s->out_base, .left = s->elements / s->run };
    return w;
}

/* `n` runs further along the innermost level, and not beyond its end. */
static void
walk_on(struct walk *w, const struct pawl_selection *s, uint64_t n)
{
    w->left -= n;
    for (size_t i = 0; i < s->n; i++) {
        const struct pawl_slice_level *level = &s->levels[i];
        w->index[i] += n;
        w->at += n * level->step;
        w->out += n * (uint64_t)level->out_step;
        if (w->index[i] < level->count)
            return;
        w->index[i] = 0;
        w->at -= level->count * level->step;
        w->out -= level->count * (uint64_t)level->out_step;
        n = 1;
    }
}

struct slicing {
    const struct pawl_reading *reading;
    const struct pawl_selection *selection;
    unsigned char *data;
    uint64_t run;          /* bytes of a run in the file */
    unsigned char *window; /* WINDOW_BYTES: what was read */
    unsigned char *row; /* the same: runs in the order of the result, before they are converted; NULL: they are not */
};

/* How many runs of this row, from `w` on, end at or before `end` and lie close. */
static uint64_t
runs_until(const struct slicing *s, const struct walk *w, uint64_t end)
{
    if (s->selection->n == 0 || end - w->at < s->run)
        return 1;
    const struct pawl_slice_level *row = &s->selection->levels[0];
    uint64_t k = row->count - w->index[0];
    uint64_t fit = (end - w->at - s->run) / row->step + 1;
    if (row->step - s->run >= GAP_BYTES)
        return 1;
    return k < fit ? k : fit;
}

#define COPY_RUNS(bytes)                   \
    for (size_t i = 0; i < (size_t)n; i++) \
        memcpy(to + (ptrdiff_t)i * to_step, from + i * step, (bytes));

/* `n` runs, `step` bytes apart, to places `to_step` bytes apart. */
static void
copy_runs(unsigned char *to, ptrdiff_t to_step, const unsigned char *from, size_t step, size_t run, uint64_t n)
{
    switch (run) {
    case 1:
        COPY_RUNS(1)
        break;
    case 2:
        COPY_RUNS(2)
        break;
    case 4:
        COPY_RUNS(4)
        break;
    case 8:
        COPY_RUNS(8)
        break;
    case 16:
        COPY_RUNS(16)
        break;
    default:
        COPY_RUNS(run)
    }
}

/* Put `n` runs of one row, found in the window, where they belong. */
static enum pawl_status
place_runs(const struct slicing *s, const struct walk *w, const unsigned char *from, uint64_t n, struct pawl_error *err)
{
    const struct pawl_reading *r = s->reading;
    const struct pawl_selection *sel = s->selection;
    size_t step = sel->n == 0 ? 0 : (size_t)sel->levels[0].step;
    bool is_backward = sel->n != 0 && sel->levels[0].out_step < 0;
    uint64_t apart = sel->n == 0   ? 0
                     : is_backward ? (uint64_t)-sel->levels[0].out_step
                                   : (uint64_t)sel->levels[0].out_step; /* elements */
    if (s->row == NULL) {
        ptrdiff_t to_step = (ptrdiff_t)(place_of(r, s->data, apart) - s->data);
        copy_runs(place_of(r, s->data, w->out), is_backward ? -to_step : to_step, from, step, (size_t)s->run, n);
        return PAWL_OK;
    }
    /* Along a row the result's runs are neighbours, one way or the other: a piece of it is converted at once. */
    uint64_t first = is_backward ? w->out - (n - 1) * apart : w->out;
    ptrdiff_t run = (ptrdiff_t)s->run;
    copy_runs(is_backward ? s->row + (n - 1) * s->run : s->row, is_backward ? -run : run, from, step, (size_t)s->run,
              n);
    return pawl_cast_part(r->from, s->row, (size_t)(n * sel->run), r->to, r->overflow, place_of(r, s->data, first),
                          first, NULL, err);
}

/* Read as many runs from `w` on as lie close and fit the window, and place them. `w` then stands behind them. */
static enum pawl_status
read_window(const struct slicing *s, struct walk *w, struct pawl_error *err)
{
    struct walk scan = *w;
    uint64_t begin = w->at;
    uint64_t end;
    uint64_t runs = 0;
    do {
        uint64_t k = runs_until(s, &scan, begin + WINDOW_BYTES);
        end = scan.at + s->run + (k - 1) * (s->selection->n == 0 ? 0 : s->selection->levels[0].step);
        runs += k;
        walk_on(&scan, s->selection, k);
    } while (scan.left != 0 && scan.at - end < GAP_BYTES && scan.at + s->run - begin <= WINDOW_BYTES);

    const struct pawl_reading *r = s->reading;
    if (runs == 1 && s->row == NULL) { /* nothing to sort */
        enum pawl_status st =
            pawl_file_read(r->file, r->begin + begin, place_of(r, s->data, w->out), (size_t)s->run, err);
        *w = scan;
        return st;
    }
    enum pawl_status st = pawl_file_read(r->file, r->begin + begin, s->window, (size_t)(end - begin), err);
    while (st == PAWL_OK && runs != 0) {
        uint64_t k = runs_until(s, w, end);
        st = place_runs(s, w, s->window + (w->at - begin), k, err);
        walk_on(w, s->selection, k);
        runs -= k;
    }
    return st;
}

/* A run of its own: `reading` with the tensor's begin moved to it. */
static enum pawl_status
read_run(const struct slicing *s, const struct walk *w, struct pawl_error *err)
{
    struct pawl_reading one = *s->reading;
    one.begin += w->at;
    if (one.from == one.to || s->selection->n == 0)
        return pawl_read_whole(&one, s->run, place_of(&one, s->data, w->out), err);
    return read_part(&one, 0, s->run, place_of(&one, s->data, w->out), w->out, err);
}

static enum pawl_status
read_runs(const struct pawl_reading *reading, const struct pawl_selection *selection, void *data,
          struct pawl_error *err)
{
    unsigned bits = pawl_dtype_bits(reading->from);
    struct slicing s = { .reading = reading, .selection = selection, .data = data };
    struct walk w = walk_begin(selection);
    enum pawl_status st = PAWL_OK;
    s.run = selection->run / 8 * bits + selection->run % 8 * bits / 8;
    if (selection->n == 0 || s.run >= WINDOW_BYTES / 2) { /* long runs gain nothing from a window */
        for (; st == PAWL_OK && w.left != 0; walk_on(&w, selection, 1))
            st = read_run(&s, &w, err);
        return st;
    }
    bool is_cast = reading->from != reading->to;
    unsigned char *room = malloc((size_t)WINDOW_BYTES * (is_cast ? 2 : 1));
    if (room == NULL)
        return pawl_fail_memory(err, (size_t)WINDOW_BYTES * (is_cast ? 2 : 1));
    s.window = room;
    s.row = is_cast ? room + WINDOW_BYTES : NULL;
    while (st == PAWL_OK && w.left != 0)
        st = read_window(&s, &w, err);
    free(room);
    return st;
}

enum pawl_status
pawl_read_selection(const struct pawl_reading *reading, const struct pawl_selection *selection, void *data,
                    struct pawl_error *err)
{
    if (selection->elements == 0)
        return PAWL_OK;
    /* A run may end inside a byte of the result: then the slice is had as it is first. */
    bool is_whole = selection->n == 0 || pawl_dtype_bits(reading->to) % 8 == 0 || reading->from == reading->to;
    if (is_whole)
        return read_runs(reading, selection, data, err);
    struct pawl_reading plain = *reading;
    plain.to = reading->from;
    void *codes = selection->bytes > SIZE_MAX ? NULL : malloc((size_t)selection->bytes);
    if (codes == NULL)
        return pawl_fail_memory(err, (size_t)selection->bytes);
    enum pawl_status st = read_runs(&plain, selection, codes, err);
    if (st == PAWL_OK)
        st = pawl_cast_part(reading->from, codes, (size_t)selection->elements, reading->to, reading->overflow, data, 0,
                            NULL, err);
    free(codes);
    return st;
}
