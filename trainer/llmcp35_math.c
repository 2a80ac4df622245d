/* Products, heads, rotations, and the memory of a pass. */
#include "trainer/llmcp35_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include "trainer/fault.h"

/* ---- memory ---- */

struct llmcp35_piece {
    struct llmcp35_piece *older;
    double values[];
};

double *
llmcp35_take(struct llmcp35_work *work, size_t rows, size_t columns)
{
    const size_t values_max = (SIZE_MAX - sizeof(struct llmcp35_piece)) / sizeof(double);
    if (work->is_short || (columns != 0 && rows > values_max / columns)) {
        work->is_short = true;
        return NULL;
    }
    struct llmcp35_piece *piece = malloc(sizeof *piece + rows * columns * sizeof(double));
    if (piece == NULL) {
        work->is_short = true;
        return NULL;
    }
    piece->older = work->newest;
    work->newest = piece;
    return piece->values;
}

double *
llmcp35_take_zeros(struct llmcp35_work *work, size_t rows, size_t columns)
{
    double *values = llmcp35_take(work, rows, columns);
    for (size_t i = 0; values != NULL && i < rows * columns; i++)
        values[i] = 0.0;
    return values;
}

void
llmcp35_work_release(struct llmcp35_work *work)
{
    while (work->newest != NULL) {
        struct llmcp35_piece *piece = work->newest;
        work->newest = piece->older;
        free(piece);
    }
}

enum pawl_status
llmcp35_work_status(const struct llmcp35_work *work, struct pawl_error *err)
{
    if (work->is_short)
        return fault(err, PAWL_NO_MEMORY, "no-memory", NULL, "not enough memory for the replay");
    if (work->is_infinite)
        return fault(err, PAWL_OUT_OF_RANGE, "out-of-range", NULL, "a value of %s is not finite", work->where);
    return PAWL_OK;
}

void
llmcp35_check(struct llmcp35_work *work, const char *where, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)llmcp35_keep(work, where, values[i]);
}

void
llmcp35_show(struct llmcp35_work *work, const char *label, const double *values, size_t n)
{
    if (work->trace != NULL)
        work->trace->tensor(work->trace->context, label, values, n);
}

void
llmcp35_show_block(struct llmcp35_work *work, size_t l, const char *label, const double *values, size_t n)
{
    char text[96];
    if (work->trace == NULL)
        return;
    if (work->layers > 1)
        (void)snprintf(text, sizeof text, "blocks.%zu.%s", l, label);
    llmcp35_show(work, work->layers > 1 ? text : label, values, n);
}

/* ---- products: one multiply, one add per term, terms in order, from 0.0 ---- */

void
llmcp35_product(double *c, const double *a, const double *b, size_t rows, size_t inner, size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        double *to = c + r * columns;
        for (size_t j = 0; j < columns; j++)
            to[j] = 0.0;
        for (size_t k = 0; k < inner; k++) {
            double factor = a[r * inner + k];
            for (size_t j = 0; j < columns; j++)
                to[j] = to[j] + factor * b[k * columns + j];
        }
    }
}

void
llmcp35_product_transposed(double *c, const double *a, const double *b, size_t rows, size_t inner, size_t columns)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < columns; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < inner; k++)
                sum = sum + a[r * inner + k] * b[j * inner + k];
            c[r * columns + j] = sum;
        }
    }
}

void
llmcp35_weight_gradient(double *c, double *scratch, const double *x, const double *dy, size_t batch, size_t tokens,
                        size_t inputs, size_t outputs)
{
    for (size_t i = 0; i < inputs * outputs; i++)
        c[i] = 0.0;
    for (size_t b = 0; b < batch; b++) {
        for (size_t i = 0; i < inputs * outputs; i++)
            scratch[i] = 0.0;
        for (size_t t = 0; t < tokens; t++) {
            const double *row = x + (b * tokens + t) * inputs;
            const double *adjoint = dy + (b * tokens + t) * outputs;
            for (size_t i = 0; i < inputs; i++) {
                for (size_t o = 0; o < outputs; o++)
                    scratch[i * outputs + o] = scratch[i * outputs + o] + row[i] * adjoint[o];
            }
        }
        for (size_t i = 0; i < inputs * outputs; i++)
            c[i] = c[i] + scratch[i];
    }
}

/* (1 + e)^2 - 1 - 2 e is 0 when the square is rounded, and e^2 when it is not. */
bool
llmcp35_is_exact(void)
{
    volatile double one = 1.0;
    double a = one + DBL_EPSILON;
    double b = -(one + 2 * DBL_EPSILON);
    double c[1] = { b };
    double difference = a * a + c[0];
    return difference == 0.0;
}

/* ---- heads ---- */

/* Where vector v of the heads, counted [batch][head][token], stands among the rows. */
static size_t
place_in_rows(const struct llmcp35_sizes *sizes, size_t v)
{
    size_t t = v % sizes->tokens, n = v / sizes->tokens % sizes->heads, b = v / sizes->tokens / sizes->heads;
    return (b * sizes->tokens + t) * sizes->width + n * sizes->head_width;
}

void
llmcp35_split_heads(double *to, const double *from, const struct llmcp35_sizes *sizes)
{
    for (size_t v = 0; v < sizes->rows * sizes->heads; v++)
        memcpy(to + v * sizes->head_width, from + place_in_rows(sizes, v), sizes->head_width * sizeof(double));
}

void
llmcp35_merge_heads(double *to, const double *from, const struct llmcp35_sizes *sizes)
{
    for (size_t v = 0; v < sizes->rows * sizes->heads; v++)
        memcpy(to + place_in_rows(sizes, v), from + v * sizes->head_width, sizes->head_width * sizeof(double));
}

void
llmcp35_rotate(double *vectors, const double *cosines, const double *sines, const struct llmcp35_sizes *sizes,
               bool is_inverse)
{
    for (size_t v = 0; v < sizes->batch * sizes->heads * sizes->tokens; v++) {
        size_t t = v % sizes->tokens;
        for (size_t p = 0; p < sizes->pairs; p++) {
            double *pair = vectors + v * sizes->head_width + 2 * p;
            double a = pair[0], b = pair[1];
            double c = cosines[t * sizes->pairs + p], s = sines[t * sizes->pairs + p];
            if (is_inverse) {
                pair[0] = llmcp35_plus_zero(a * c + b * s);
                pair[1] = llmcp35_plus_zero((-a) * s + b * c);
            } else {
                pair[0] = llmcp35_plus_zero(a * c - b * s);
                pair[1] = llmcp35_plus_zero(a * s + b * c);
            }
        }
    }
}
