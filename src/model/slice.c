/*
 * NumPy's rules of slicing: text to axes, axes to the bytes they mean. Nothing is read here.
 */
#include "model/slice.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/str.h"

/* ---- text ---- */

struct text {
    struct pawl_str str;
    size_t at;
};

static void
skip_blanks(struct text *t)
{
    while (t->at < t->str.len && (t->str.data[t->at] == ' ' || t->str.data[t->at] == '\t'))
        t->at++;
}

static bool
take(struct text *t, char c)
{
    skip_blanks(t);
    if (t->at >= t->str.len || t->str.data[t->at] != c)
        return false;
    t->at++;
    return true;
}

static bool
is_digit(const struct text *t)
{
    return t->at < t->str.len && t->str.data[t->at] >= '0' && t->str.data[t->at] <= '9';
}

/* A number with its sign, when one begins here. Beyond the range of 64 bits it is clamped: no axis is so long. */
static bool
take_number(struct text *t, int64_t *ret)
{
    size_t begin = t->at;
    skip_blanks(t);
    bool is_negative = t->at < t->str.len && t->str.data[t->at] == '-';
    bool has_sign = is_negative || (t->at < t->str.len && t->str.data[t->at] == '+');
    t->at += has_sign;
    if (!is_digit(t)) {
        t->at = begin;
        return false;
    }
    int64_t value = 0;
    while (is_digit(t)) {
        int digit = t->str.data[t->at++] - '0';
        value = value > (INT64_MAX - digit) / 10 ? INT64_MAX : value * 10 + digit;
    }
    *ret = is_negative ? -value : value;
    return true;
}

static enum pawl_status
fail_text(const struct text *t, const char *expected, struct pawl_error *err)
{
    if (t->at >= t->str.len)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "slice '%s': expected %s, found the end", PAWL_SHOW(t->str),
                         expected);
    return pawl_fail(err, PAWL_ARGUMENT, "argument", "slice '%s': expected %s at '%s'", PAWL_SHOW(t->str), expected,
                     PAWL_SHOW(pawl_str_make(t->str.data + t->at, t->str.len - t->at)));
}

/* One axis: "...", "3", or a range. */
static enum pawl_status
parse_axis(struct text *t, struct pawl_slice_axis *axis, struct pawl_error *err)
{
    *axis = (struct pawl_slice_axis){ .flags = 0 };
    skip_blanks(t);
    if (t->str.len - t->at >= 3 && memcmp(t->str.data + t->at, "...", 3) == 0) {
        t->at += 3;
        axis->flags = PAWL_SLICE_ELLIPSIS;
        return PAWL_OK;
    }
    if (take_number(t, &axis->start))
        axis->flags |= PAWL_SLICE_START;
    if (!take(t, ':')) {
        if (axis->flags == 0)
            return fail_text(t, "a number, ':' or '...'", err);
        axis->flags = PAWL_SLICE_INDEX;
        return PAWL_OK;
    }
    if (take_number(t, &axis->stop))
        axis->flags |= PAWL_SLICE_STOP;
    if (take(t, ':') && take_number(t, &axis->step) && axis->step == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "slice '%s': a step of 0 leads nowhere", PAWL_SHOW(t->str));
    return PAWL_OK;
}

enum pawl_status
pawl_slice_parse(struct pawl_str text, struct pawl_slice_axis *axes, size_t n_max, size_t *ret_n,
                 struct pawl_error *err)
{
    struct text t = { text, 0 };
    size_t n = 0;
    skip_blanks(&t);
    while (t.at < t.str.len) {
        struct pawl_slice_axis axis;
        enum pawl_status st = parse_axis(&t, &axis, err);
        if (st != PAWL_OK)
            return st;
        if (n == n_max)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "slice '%s': more than %zu axes", PAWL_SHOW(text), n_max);
        axes[n++] = axis;
        skip_blanks(&t);
        if (t.at == t.str.len)
            break;
        if (!take(&t, ','))
            return fail_text(&t, "',' or the end", err);
        skip_blanks(&t); /* a comma may stand at the end, as in Python */
    }
    *ret_n = n;
    return PAWL_OK;
}

/* ---- one axis ---- */

/* An axis worked out: `count` places from `start` on, `step` apart. */
struct range {
    int64_t start, step;
    uint64_t count;
    bool is_index;
};

static uint64_t
size_of(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* A bound from the front, within what a walk in this direction can begin or end at. */
static int64_t
clamp(int64_t bound, int64_t len, bool is_backward)
{
    if (bound < 0) {
        bound += len;
        return bound >= 0 ? bound : is_backward ? -1 : 0;
    }
    return bound < len ? bound : is_backward ? len - 1 : len;
}

static enum pawl_status
work_out(const struct pawl_slice_axis *axis, size_t which, uint64_t size, struct range *ret, struct pawl_error *err)
{
    int64_t step = axis->step == 0 ? 1 : axis->step;
    bool is_whole = (axis->flags & (PAWL_SLICE_START | PAWL_SLICE_STOP | PAWL_SLICE_INDEX)) == 0 && step == 1;
    if (is_whole) {
        *ret = (struct range){ 0, 1, size, false };
        return PAWL_OK;
    }
    if (size > INT64_MAX) /* only a tensor without elements has such an axis */
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "axis %zu has size %" PRIu64 ", too much to count in", which,
                         size);
    int64_t len = (int64_t)size;
    if ((axis->flags & PAWL_SLICE_INDEX) != 0) {
        int64_t index = axis->start < 0 ? axis->start + len : axis->start;
        if (index < 0 || index >= len)
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "index %" PRId64 " is out of bounds for axis %zu with size %" PRIu64, axis->start, which,
                             size);
        *ret = (struct range){ index, 1, 1, true };
        return PAWL_OK;
    }
    bool is_backward = step < 0;
    int64_t start = is_backward ? len - 1 : 0;
    int64_t stop = is_backward ? -1 : len;
    if ((axis->flags & PAWL_SLICE_START) != 0)
        start = clamp(axis->start, len, is_backward);
    if ((axis->flags & PAWL_SLICE_STOP) != 0)
        stop = clamp(axis->stop, len, is_backward);
    uint64_t count = 0;
    if (!is_backward && start < stop)
        count = (uint64_t)(stop - start - 1) / size_of(step) + 1;
    else if (is_backward && stop < start)
        count = (uint64_t)(start - stop - 1) / size_of(step) + 1;
    *ret = (struct range){ start, step, count, false };
    return PAWL_OK;
}

/* ---- all axes ---- */

/* The axes as given, and where the tensor's own are among them. */
struct given {
    const struct pawl_slice_axis *axes;
    size_t n;
    size_t front; /* in front of the ellipsis */
    size_t back;  /* behind it */
};

static enum pawl_status
look_at_axes(struct given *given, const struct pawl_slice_axis *axes, size_t n, size_t rank, struct pawl_error *err)
{
    const uint32_t known = PAWL_SLICE_START | PAWL_SLICE_STOP | PAWL_SLICE_INDEX | PAWL_SLICE_ELLIPSIS;
    size_t ellipses = 0;
    *given = (struct given){ axes, n, n, 0 };
    if (n != 0 && axes == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%zu axes, and no place of them", n);
    for (size_t i = 0; i < n; i++) {
        if ((axes[i].flags & ~known) != 0)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "%" PRIu32 " are no flags of an axis", axes[i].flags);
        if ((axes[i].flags & PAWL_SLICE_ELLIPSIS) == 0)
            continue;
        if (++ellipses > 1)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "'...' can stand only once");
        given->front = i;
        given->back = n - i - 1;
    }
    if (n - ellipses > rank)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "too many indices: the tensor has %zu axes, %zu were indexed",
                         rank, n - ellipses);
    return PAWL_OK;
}

static struct pawl_slice_axis
axis_of(const struct given *given, size_t i, size_t rank)
{
    if (i < given->front)
        return given->axes[i];
    if (i >= rank - given->back)
        return given->axes[given->n - (rank - i)];
    return (struct pawl_slice_axis){ .flags = 0 };
}

/* The next axis outward of a selection that has elements: `stride` elements of the tensor and `out` of the result lie inside it. */
static void
add_axis(struct pawl_selection *s, const struct range *range, uint64_t stride, uint64_t out)
{
    bool is_backward = range->step < 0;
    uint64_t lowest = (uint64_t)range->start;
    if (is_backward) {
        lowest -= (range->count - 1) * size_of(range->step);
        s->out_base += (range->count - 1) * out;
    }
    s->base += lowest * stride;
    if (range->count == 1)
        return;
    uint64_t step = size_of(range->step) * stride;
    int64_t out_step = is_backward ? -(int64_t)out : (int64_t)out;
    struct pawl_slice_level *inner = s->n == 0 ? NULL : &s->levels[s->n - 1];
    if (inner == NULL && step == s->run && !is_backward) {
        s->run *= range->count;
    } else if (inner != NULL && step == inner->step * inner->count &&
               out_step == inner->out_step * (int64_t)inner->count) {
        inner->count *= range->count;
    } else {
        assert(s->n < PAWL_SLICE_LEVELS_MAX);
        s->levels[s->n++] = (struct pawl_slice_level){ range->count, step, out_step };
    }
}

/* From elements to bytes; false when a run begins or ends inside one. */
static bool
count_bytes(struct pawl_selection *s, unsigned bits)
{
    bool is_whole = s->base % 8 * bits % 8 == 0 && s->run % 8 * bits % 8 == 0;
    for (size_t i = 0; i < s->n; i++) {
        is_whole = is_whole && s->levels[i].step % 8 * bits % 8 == 0;
        s->levels[i].step = s->levels[i].step * bits / 8;
    }
    s->base = s->base * bits / 8;
    s->bytes = s->elements * bits / 8;
    return is_whole;
}

static enum pawl_status
make(struct pawl_selection *s, const struct pawl_tensor_info *tensor, const struct pawl_slice_axis *axes, size_t n,
     uint64_t *ret_shape, size_t *ret_rank, struct pawl_error *err)
{
    struct given given;
    struct range range = { 0, 1, 0, false };
    size_t rank = tensor->rank;
    size_t out_rank = 0;
    *s = (struct pawl_selection){ .run = 1, .elements = 1 };
    enum pawl_status st = look_at_axes(&given, axes, n, rank, err);
    for (size_t i = 0; i < rank && st == PAWL_OK; i++) {
        struct pawl_slice_axis axis = axis_of(&given, i, rank);
        st = work_out(&axis, i, tensor->shape[i], &range, err);
        if (st != PAWL_OK)
            return st;
        if (range.count == 0)
            s->elements = 0;
        if (ret_shape != NULL && !range.is_index)
            ret_shape[out_rank++] = range.count;
    }
    if (st != PAWL_OK)
        return st;
    if (ret_rank != NULL)
        *ret_rank = out_rank;
    if (s->elements == 0)
        return PAWL_OK;
    /* No size is 0 here, so all products are of at most the tensor's elements. */
    uint64_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
        struct pawl_slice_axis axis = axis_of(&given, i, rank);
        (void)work_out(&axis, i, tensor->shape[i], &range, NULL);
        add_axis(s, &range, stride, s->elements);
        stride *= tensor->shape[i];
        s->elements *= range.count;
    }
    unsigned bits = pawl_dtype_bits(tensor->dtype);
    uint64_t first = s->base;
    uint64_t run = s->run;
    if (!count_bytes(s, bits))
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "%s has %u bits an element, and only whole bytes can be taken: here are runs of %" PRIu64
                         " element%s, the lowest from element %" PRIu64 " on",
                         pawl_dtype_name(tensor->dtype), bits, run, run == 1 ? "" : "s", first);
    return PAWL_OK;
}

enum pawl_status
pawl_selection_make(struct pawl_selection *selection, const struct pawl_tensor_info *tensor,
                    const struct pawl_slice_axis *axes, size_t n, uint64_t *ret_shape, size_t *ret_rank,
                    struct pawl_error *err)
{
    enum pawl_status st = make(selection, tensor, axes, n, ret_shape, ret_rank, err);
    if (st == PAWL_OK)
        return PAWL_OK;
    pawl_error_tensor(err, tensor->name);
    return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(tensor->name));
}

enum pawl_status
pawl_slice_shape(const struct pawl_tensor_info *tensor, const struct pawl_slice_axis *axes, size_t n,
                 uint64_t *ret_shape, size_t *ret_rank, uint64_t *ret_bytes, struct pawl_error *err)
{
    struct pawl_selection selection;
    uint64_t stack[8];
    uint64_t *shape = stack;
    size_t rank = 0;
    if (tensor->rank > 8) {
        shape = malloc(tensor->rank * sizeof *shape);
        if (shape == NULL)
            return pawl_fail_memory(err, tensor->rank * sizeof *shape);
    }
    enum pawl_status st = pawl_selection_make(&selection, tensor, axes, n, shape, &rank, err);
    if (st == PAWL_OK) { /* only now: what a failed call was given stays as it was */
        if (rank != 0)
            memcpy(ret_shape, shape, rank * sizeof *shape);
        *ret_rank = rank;
        if (ret_bytes != NULL)
            *ret_bytes = selection.bytes;
    }
    if (shape != stack)
        free(shape);
    return st;
}
