/*
 * Tensors of the caller's, in whatever layout, to packed row-major little-endian
 * bytes and back.
 *
 * A layout is first made small: dimensions of one element go, and neighbours
 * that lie in memory as one go together, so that a slice of a matrix's rows is two
 * dimensions whatever its rank was, and a packed tensor one. What is left is seen
 * as a grid (the last two dimensions) that outer indexes move about, and whole
 * rows of a grid are copied by one loop over elements of a fixed size.
 */
#include "model/set.h"
#include "model/stored.h"

#include <assert.h>
#include <inttypes.h>
#include "base/checked.h"

/* Every dimension that is kept has at least two elements, and the number of elements fits 64 bits. */
#define DIMS_MAX 64

/* One side of a tile, in elements: 16 rows of 16 elements of 8 bytes are 32 cache lines to read and to write. */
#define TILE 16

/* No memory is so large, and sums and products of two reaches still fit 64 bits with a sign. */
#define REACH_MAX ((uint64_t)PTRDIFF_MAX / 4)

/* Bytes turned at a time on their way into big-endian memory; on the stack. */
#define SWAP_BYTES ((size_t)4096)

struct layout {
    size_t each; /* bytes of an element */
    size_t unit; /* bytes to turn around; 1: none */
    uint64_t elements;
    bool is_run; /* one run of memory, in order: the byte order apart */
    /* the grid */
    uint64_t rows, cols;
    int64_t row_step, col_step; /* in bytes */
    /* the dimensions in front of it, outermost first */
    size_t n_outer;
    uint64_t extent[DIMS_MAX];
    int64_t step[DIMS_MAX]; /* in bytes */
};

/* A place in the layout: which element, and where the first one of its grid lies. */
struct walk {
    uint64_t row, col;
    uint64_t index[DIMS_MAX];
    unsigned char *grid;
};

static bool
is_sub_byte(enum pawl_dtype dtype)
{
    return pawl_dtype_bits(dtype) % 8 != 0;
}

static size_t
unit_of(const struct pawl_tensor *tensor)
{
    if (!tensor->is_big_endian || is_sub_byte(tensor->dtype))
        return 1;
    return tensor->dtype == PAWL_C64 ? 4 : pawl_dtype_bits(tensor->dtype) / 8;
}

/* Are the strides those of a row-major, packed tensor? Dimensions of one element may have any. */
static bool
has_packed_strides(const struct pawl_tensor *tensor)
{
    if (tensor->strides == NULL)
        return true;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0)
            return true;
    }
    uint64_t run = 1;
    for (size_t i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] != 1 && (tensor->strides[i] < 0 || (uint64_t)tensor->strides[i] != run))
            return false;
        if (!pawl_mul_u64(run, tensor->shape[i], &run))
            return false;
    }
    return true;
}

bool
pawl_tensor_is_packed(const struct pawl_tensor *tensor)
{
    return tensor->source == NULL && unit_of(tensor) == 1 && has_packed_strides(tensor);
}

/* How far the other elements lie from the first, in both directions; false: farther than 64 bits can tell. The tensor has strides. */
static bool
find_reach(const struct pawl_tensor *tensor, uint64_t *ret_below, uint64_t *ret_above)
{
    uint64_t each = pawl_dtype_bits(tensor->dtype) / 8;
    *ret_below = *ret_above = 0;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0) {
            *ret_below = *ret_above = 0;
            return true;
        }
        int64_t stride = tensor->strides[i];
        uint64_t size = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
        uint64_t *sum = stride < 0 ? ret_below : ret_above;
        uint64_t reach;
        if (!pawl_mul_u64(size, tensor->shape[i] - 1, &reach) || !pawl_mul_u64(reach, each, &reach) ||
            !pawl_add_u64(*sum, reach, sum))
            return false;
    }
    return true;
}

/* The farthest element from the first must be a distance that memory can have. */
static bool
reach_fits(const struct pawl_tensor *tensor)
{
    uint64_t below, above;
    return find_reach(tensor, &below, &above) && below <= REACH_MAX && above <= REACH_MAX;
}

void
pawl_tensor_span(const struct pawl_tensor *tensor, uint64_t bytes, uintptr_t *ret_begin, uintptr_t *ret_end)
{
    uint64_t below = 0, above = 0;
    *ret_begin = *ret_end = (uintptr_t)tensor->data;
    if (bytes == 0)
        return;
    if (has_packed_strides(tensor)) {
        *ret_end += (uintptr_t)bytes;
        return;
    }
    (void)find_reach(tensor, &below, &above); /* it fits: the tensor has passed the check */
    *ret_begin -= (uintptr_t)below;
    *ret_end += (uintptr_t)(above + pawl_dtype_bits(tensor->dtype) / 8);
}

static enum pawl_status
check(const struct pawl_tensor *tensor, uint64_t *ret_bytes, struct pawl_error *err)
{
    uint64_t elements;
    uint64_t bytes;
    if (pawl_dtype_name(tensor->dtype) == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no dtype", (int)tensor->dtype);
    if (tensor->rank != 0 && tensor->shape == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "rank %zu, and no shape", tensor->rank);
    enum pawl_status st = pawl_dtype_bytes(tensor->dtype, tensor->shape, tensor->rank, &elements, &bytes, err);
    if (st != PAWL_OK)
        return st;
    if (tensor->source != NULL) {
        if (tensor->data != NULL)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "both data and a source");
        if (tensor->source->read == NULL)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "a source without a function to read");
        if (tensor->source->bytes != bytes)
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "the source has %" PRIu64 " bytes, dtype and shape take %" PRIu64, tensor->source->bytes,
                             bytes);
        if (tensor->strides != NULL || tensor->is_big_endian)
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "a source gives packed little-endian bytes: strides and byte order do not apply");
    } else {
        if (tensor->data == NULL && bytes != 0)
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "neither data nor a source for %" PRIu64 " bytes", bytes);
        if (is_sub_byte(tensor->dtype) && !has_packed_strides(tensor))
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "strides, and elements of %u bits: %s must be packed",
                             pawl_dtype_bits(tensor->dtype), pawl_dtype_name(tensor->dtype));
        if (has_packed_strides(tensor) ? bytes > REACH_MAX : !reach_fits(tensor))
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "reaches beyond all memory");
    }
    if (tensor->stored != 0 && tensor->stored != tensor->dtype) {
        st = pawl_stored_check(tensor, err);
        if (st != PAWL_OK)
            return st;
    }
    *ret_bytes = bytes;
    return PAWL_OK;
}

enum pawl_status
pawl_tensor_check(const struct pawl_tensor *tensor, uint64_t *ret_bytes, struct pawl_error *err)
{
    enum pawl_status st = check(tensor, ret_bytes, err);
    if (st == PAWL_OK)
        return PAWL_OK;
    pawl_error_tensor(err, tensor->name);
    return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(tensor->name));
}

/* `tensor` has passed the check, is not of a source, and has elements of whole bytes. */
static void
layout_init(struct layout *layout, const struct pawl_tensor *tensor)
{
    uint64_t extent[DIMS_MAX];
    int64_t step[DIMS_MAX];
    size_t n = 0;
    int64_t each = (int64_t)(pawl_dtype_bits(tensor->dtype) / 8);

    layout->each = (size_t)each;
    layout->unit = unit_of(tensor);
    layout->elements = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0)
            layout->elements = 0;
    }
    /* Innermost first: with no strides a step is all that lies inside. */
    int64_t run = each;
    for (size_t i = tensor->rank; layout->elements != 0 && i-- > 0;) {
        uint64_t size = tensor->shape[i];
        if (size == 1)
            continue;
        int64_t own = tensor->strides != NULL ? tensor->strides[i] * each : run;
        run *= (int64_t)(tensor->strides != NULL ? 1 : size);
        layout->elements *= size;
        if (n > 0 && own == step[n - 1] * (int64_t)extent[n - 1]) {
            extent[n - 1] *= size;
        } else {
            assert(n < DIMS_MAX);
            extent[n] = size;
            step[n] = own;
            n++;
        }
    }
    layout->is_run = n == 0 || (n == 1 && step[0] == each);
    layout->cols = n > 0 ? extent[0] : 1;
    layout->col_step = n > 0 ? step[0] : each;
    layout->rows = n > 1 ? extent[1] : 1;
    layout->row_step = n > 1 ? step[1] : 0;
    layout->n_outer = n > 2 ? n - 2 : 0;
    for (size_t i = 0; i < layout->n_outer; i++) {
        layout->extent[i] = extent[n - 1 - i];
        layout->step[i] = step[n - 1 - i];
    }
}

static void
walk_init(struct walk *walk, const struct layout *layout, void *data, uint64_t element)
{
    walk->grid = data;
    walk->col = element % layout->cols;
    element /= layout->cols;
    walk->row = element % layout->rows;
    element /= layout->rows;
    for (size_t i = layout->n_outer; i-- > 0;) {
        walk->index[i] = element % layout->extent[i];
        element /= layout->extent[i];
        walk->grid += (ptrdiff_t)walk->index[i] * (ptrdiff_t)layout->step[i];
    }
}

/* To the first element of the next grid; from the last one, to the first again. */
static void
walk_next_grid(struct walk *walk, const struct layout *layout)
{
    walk->row = 0;
    for (size_t i = layout->n_outer; i-- > 0;) {
        if (++walk->index[i] < layout->extent[i]) {
            walk->grid += (ptrdiff_t)layout->step[i];
            return;
        }
        walk->grid -= (ptrdiff_t)(layout->extent[i] - 1) * (ptrdiff_t)layout->step[i];
        walk->index[i] = 0;
    }
}

/*
 * A part of a grid, to or from `packed`. Row by row, but where memory runs down the columns (a transposed matrix):
 * then in tiles, or every element would fetch a cache line of its own.
 */
#define DEFINE_GRID(name, bytes, to, from)                                                                     \
    static void name(unsigned char *packed, unsigned char *memory, size_t rows, int64_t row_step, size_t cols, \
                     int64_t col_step)                                                                         \
    {                                                                                                          \
        size_t tile_rows = rows;                                                                               \
        size_t tile_cols = cols;                                                                               \
        if (row_step == (bytes) && col_step != (bytes)) {                                                      \
            tile_rows = TILE;                                                                                  \
            tile_cols = TILE;                                                                                  \
        }                                                                                                      \
        for (size_t r0 = 0; r0 < rows; r0 += tile_rows) {                                                      \
            size_t r1 = rows - r0 < tile_rows ? rows : r0 + tile_rows;                                         \
            for (size_t c0 = 0; c0 < cols; c0 += tile_cols) {                                                  \
                size_t c1 = cols - c0 < tile_cols ? cols : c0 + tile_cols;                                     \
                for (size_t r = r0; r < r1; r++) {                                                             \
                    unsigned char *in_file = packed + (r * cols + c0) * (bytes);                               \
                    unsigned char *in_memory =                                                                 \
                        memory + (ptrdiff_t)r * (ptrdiff_t)row_step + (ptrdiff_t)c0 * (ptrdiff_t)col_step;     \
                    for (size_t c = c0; c < c1; c++) {                                                         \
                        memcpy(to, from, (bytes));                                                             \
                        in_file += (bytes);                                                                    \
                        if (c + 1 < c1)                                                                        \
                            in_memory += (ptrdiff_t)col_step;                                                  \
                    }                                                                                          \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
    }

DEFINE_GRID(gather_1, 1, in_file, in_memory)
DEFINE_GRID(gather_2, 2, in_file, in_memory)
DEFINE_GRID(gather_4, 4, in_file, in_memory)
DEFINE_GRID(gather_8, 8, in_file, in_memory)
DEFINE_GRID(scatter_1, 1, in_memory, in_file)
DEFINE_GRID(scatter_2, 2, in_memory, in_file)
DEFINE_GRID(scatter_4, 4, in_memory, in_file)
DEFINE_GRID(scatter_8, 8, in_memory, in_file)

typedef void grid_fn(unsigned char *packed, unsigned char *memory, size_t rows, int64_t row_step, size_t cols,
                     int64_t col_step);

static grid_fn *
grid_of(size_t each, bool is_gather)
{
    switch (each) {
    case 1:
        return is_gather ? gather_1 : scatter_1;
    case 2:
        return is_gather ? gather_2 : scatter_2;
    case 4:
        return is_gather ? gather_4 : scatter_4;
    default:
        assert(each == 8);
        return is_gather ? gather_8 : scatter_8;
    }
}

/* Copy rows of a grid whose columns lie side by side. */
static void
copy_rows(unsigned char *packed, unsigned char *memory, size_t rows, int64_t row_step, size_t bytes, bool is_gather)
{
    for (size_t r = 0; r < rows; r++) {
        unsigned char *row = memory + (ptrdiff_t)r * (ptrdiff_t)row_step;
        memcpy(is_gather ? packed : row, is_gather ? row : packed, bytes);
        packed += bytes;
    }
}

/* The next `n` elements of the walk, to or from `packed`. */
static void
move_elements(struct walk *walk, const struct layout *layout, unsigned char *packed, size_t n, bool is_gather)
{
    grid_fn *grid = grid_of(layout->each, is_gather);
    bool is_side_by_side = layout->col_step == (int64_t)layout->each;
    while (n > 0) {
        size_t rows = 1;
        size_t cols;
        if (walk->col == 0 && n >= layout->cols) {
            cols = (size_t)layout->cols;
            rows = n / cols;
            if (rows > layout->rows - walk->row)
                rows = (size_t)(layout->rows - walk->row);
        } else {
            uint64_t left = layout->cols - walk->col;
            cols = n < left ? n : (size_t)left;
        }
        unsigned char *at = walk->grid + (ptrdiff_t)walk->row * (ptrdiff_t)layout->row_step +
                            (ptrdiff_t)walk->col * (ptrdiff_t)layout->col_step;
        if (is_side_by_side)
            copy_rows(packed, at, rows, layout->row_step, cols * layout->each, is_gather);
        else
            grid(packed, at, rows, layout->row_step, cols, layout->col_step);
        packed += rows * cols * layout->each;
        n -= rows * cols;
        walk->col += cols;
        if (walk->col < layout->cols)
            continue;
        walk->col = 0;
        walk->row += rows;
        if (walk->row == layout->rows)
            walk_next_grid(walk, layout);
    }
}

/* Turn every `unit` bytes around, in place. */
static void
swap_units(unsigned char *bytes, size_t n, size_t unit)
{
    if (unit == 2) {
        for (size_t i = 0; i < n; i += 2) {
            uint16_t v;
            memcpy(&v, bytes + i, sizeof v);
            v = (uint16_t)(v << 8 | v >> 8);
            memcpy(bytes + i, &v, sizeof v);
        }
    } else if (unit == 4) {
        for (size_t i = 0; i < n; i += 4) {
            uint32_t v;
            memcpy(&v, bytes + i, sizeof v);
            v = v << 24 | (v << 8 & 0xff0000) | (v >> 8 & 0xff00) | v >> 24;
            memcpy(bytes + i, &v, sizeof v);
        }
    } else if (unit == 8) {
        for (size_t i = 0; i < n; i += 8) {
            uint64_t v;
            memcpy(&v, bytes + i, sizeof v);
            v = (v << 8 & UINT64_C(0xff00ff00ff00ff00)) | (v >> 8 & UINT64_C(0x00ff00ff00ff00ff));
            v = (v << 16 & UINT64_C(0xffff0000ffff0000)) | (v >> 16 & UINT64_C(0x0000ffff0000ffff));
            v = v << 32 | v >> 32;
            memcpy(bytes + i, &v, sizeof v);
        }
    }
}

/* ---- out ---- */

static enum pawl_status
write_run(const void *data, uint64_t bytes, struct pawl_writer *writer, struct pawl_error *err)
{
    /* One call, but where a size_t is shorter than a file: such a tensor can't be in memory, so this is no loss. */
    assert(bytes <= SIZE_MAX);
    return bytes == 0 ? PAWL_OK : pawl_writer_add(writer, data, (size_t)bytes, err);
}

enum pawl_status
pawl_source_read(const struct pawl_source *source, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT; /* a source may always fill an error */
    enum pawl_status st = source->read(source->context, offset, destination, n, &own);
    if (st == PAWL_OK)
        return PAWL_OK;
    if (own.status == PAWL_OK) /* it left the error as it was */
        return pawl_fail(err, st, pawl_code_of_status(st), "its source failed at byte %" PRIu64 " of %" PRIu64, offset,
                         source->bytes);
    if (err != NULL)
        *err = own;
    return st;
}

static enum pawl_status
write_source(const struct pawl_source *source, struct pawl_writer *writer, struct pawl_error *err)
{
    uint64_t offset = 0;
    while (offset < source->bytes) {
        uint64_t left = source->bytes - offset;
        void *room;
        size_t n;
        enum pawl_status st = pawl_writer_room(writer, left > SIZE_MAX ? SIZE_MAX : (size_t)left, &room, &n, err);
        if (st != PAWL_OK)
            return st;
        st = pawl_source_read(source, offset, room, n, err);
        if (st == PAWL_OK)
            st = pawl_writer_filled(writer, n, err);
        if (st != PAWL_OK)
            return st;
        offset += n;
    }
    return PAWL_OK;
}

static enum pawl_status
write_layout(const struct pawl_tensor *tensor, struct pawl_writer *writer, struct pawl_error *err)
{
    struct layout layout;
    struct walk walk;
    layout_init(&layout, tensor);
    if (layout.elements == 0)
        return PAWL_OK;
    walk_init(&walk, &layout, tensor->data, 0);

    uint64_t left = layout.elements;
    while (left > 0) {
        uint64_t want = left > SIZE_MAX / layout.each ? SIZE_MAX / layout.each : left;
        void *room;
        size_t bytes;
        enum pawl_status st = pawl_writer_room(writer, (size_t)want * layout.each, &room, &bytes, err);
        if (st != PAWL_OK)
            return st;
        size_t n = bytes / layout.each;
        if (n > 0) {
            move_elements(&walk, &layout, room, n, true);
            swap_units(room, n * layout.each, layout.unit);
            st = pawl_writer_filled(writer, n * layout.each, err);
        } else { /* the room ends inside an element */
            unsigned char element[8];
            n = 1;
            move_elements(&walk, &layout, element, 1, true);
            swap_units(element, layout.each, layout.unit);
            st = pawl_writer_add(writer, element, layout.each, err);
        }
        if (st != PAWL_OK)
            return st;
        left -= n;
    }
    return PAWL_OK;
}

enum pawl_status
pawl_tensor_write(const struct pawl_tensor *tensor, struct pawl_writer *writer, struct pawl_error *err)
{
    uint64_t bytes = 0;
    enum pawl_status st = check(tensor, &bytes, err);
    if (st == PAWL_OK) {
        if (tensor->stored != 0 && tensor->stored != tensor->dtype)
            st = pawl_stored_write(tensor, writer, err);
        else if (tensor->source != NULL)
            st = write_source(tensor->source, writer, err);
        else if (pawl_tensor_is_packed(tensor))
            st = write_run(tensor->data, bytes, writer, err);
        else
            st = write_layout(tensor, writer, err);
    }
    if (st == PAWL_OK)
        return PAWL_OK;
    pawl_error_tensor(err, tensor->name);
    return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(tensor->name));
}

/* Elements from `first` on, packed and little-endian. */
void
pawl_tensor_gather(const struct pawl_tensor *tensor, uint64_t first, size_t n, void *packed)
{
    struct layout layout;
    struct walk walk;
    assert(tensor->source == NULL && !is_sub_byte(tensor->dtype));
    layout_init(&layout, tensor);
    assert(first <= layout.elements && n <= layout.elements - first);
    if (n == 0)
        return;
    walk_init(&walk, &layout, tensor->data, first);
    move_elements(&walk, &layout, packed, n, true);
    swap_units(packed, n * layout.each, layout.unit);
}

/* ---- back ---- */

/* A part of one element: the bytes from `first` on of its packed form. */
static void
scatter_part(const struct layout *layout, void *data, uint64_t element, size_t first, const unsigned char *bytes,
             size_t n)
{
    struct walk walk;
    unsigned char whole[8];
    walk_init(&walk, layout, data, element);
    struct walk again = walk;
    move_elements(&walk, layout, whole, 1, true);
    swap_units(whole, layout->each, layout->unit);
    memcpy(whole + first, bytes, n);
    swap_units(whole, layout->each, layout->unit);
    move_elements(&again, layout, whole, 1, false);
}

/* Whole elements from `element` on. */
static void
scatter_whole(const struct layout *layout, void *data, uint64_t element, const unsigned char *bytes, size_t n)
{
    struct walk walk;
    walk_init(&walk, layout, data, element);
    if (layout->unit == 1) {
        /* Scattering only reads what is packed; the kernels serve both ways. */
        move_elements(&walk, layout, (unsigned char *)bytes, n, false);
        return;
    }
    unsigned char turned[SWAP_BYTES];
    size_t most = sizeof turned / layout->each;
    while (n > 0) {
        size_t k = n < most ? n : most;
        memcpy(turned, bytes, k * layout->each);
        swap_units(turned, k * layout->each, layout->unit);
        move_elements(&walk, layout, turned, k, false);
        bytes += k * layout->each;
        n -= k;
    }
}

void
pawl_tensor_scatter(const struct pawl_tensor *tensor, uint64_t offset, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    assert(tensor->source == NULL);
    if (n == 0)
        return;
    if (pawl_tensor_is_packed(tensor)) {
        memcpy((unsigned char *)tensor->data + offset, bytes, n);
        return;
    }
    struct layout layout;
    layout_init(&layout, tensor);
    assert(offset / layout.each < layout.elements);

    size_t first = (size_t)(offset % layout.each);
    uint64_t element = offset / layout.each;
    if (first != 0) {
        size_t k = layout.each - first < n ? layout.each - first : n;
        scatter_part(&layout, tensor->data, element, first, at, k);
        at += k;
        n -= k;
        element++;
    }
    size_t whole = n / layout.each;
    if (whole > 0)
        scatter_whole(&layout, tensor->data, element, at, whole);
    at += whole * layout.each;
    n -= whole * layout.each;
    if (n > 0)
        scatter_part(&layout, tensor->data, element + whole, 0, at, n);
}
