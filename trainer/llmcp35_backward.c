/*
 * The backward pass. An adjoint is a sum of contributions, and its bits depend on their order, which is that of the
 * reference: the reverse of its walk over the graph. Where a line below looks as if it could be shortened, its order is why it is not.
 */
#include "trainer/llmcp35_inside.h"

#include <assert.h>

struct backward {
    struct llmcp35_pass *pass;
    double **gradients; /* model order */
    double *scratch;    /* for weight gradients: the largest matrix */
};

static double *
take_matrix(struct backward *b, size_t columns)
{
    return llmcp35_take(&b->pass->work, b->pass->sizes.rows, columns);
}

static void
weight_gradient(struct backward *b, size_t parameter, const double *x, const double *dy, size_t inputs, size_t outputs)
{
    const struct llmcp35_sizes *sizes = &b->pass->sizes;
    llmcp35_weight_gradient(b->gradients[parameter], b->scratch, x, dy, sizes->batch, sizes->tokens, inputs, outputs);
    llmcp35_check(&b->pass->work, "a weight's gradient", b->gradients[parameter], inputs * outputs);
}

/* dx[r][i] = sum over o ascending of dy[r][o] * w[i][o]. */
static double *
input_adjoint(struct backward *b, const double *dy, const double *w, size_t inputs, size_t outputs)
{
    double *dx = take_matrix(b, inputs);
    if (dx == NULL)
        return NULL;
    llmcp35_product_transposed(dx, dy, w, b->pass->sizes.rows, outputs, inputs);
    llmcp35_check(&b->pass->work, "an adjoint", dx, b->pass->sizes.rows * inputs);
    return dx;
}

/* An adjoint that begins with one contribution, from 0.0. */
static double *
begin_adjoint(struct backward *b, const double *contribution, size_t columns)
{
    double *adjoint = take_matrix(b, columns);
    for (size_t i = 0; adjoint != NULL && i < b->pass->sizes.rows * columns; i++)
        adjoint[i] = 0.0 + contribution[i];
    return adjoint;
}

static void
add_adjoint(struct backward *b, double *adjoint, const double *contribution, size_t columns)
{
    for (size_t i = 0; i < b->pass->sizes.rows * columns; i++)
        adjoint[i] = llmcp35_keep(&b->pass->work, "an adjoint", adjoint[i] + contribution[i]);
}

/* dx may hold contributions already: those of the norm come behind them. */
static void
norm_backward(struct backward *b, const struct llmcp35_norm *norm, size_t parameter, const double *du, double *dx)
{
    struct llmcp35_work *work = &b->pass->work;
    const size_t rows = b->pass->sizes.rows, width = b->pass->sizes.width;
    const double *gain = b->pass->parameters[parameter].values;
    double *gain_gradient = b->gradients[parameter];
    for (size_t f = 0; f < width; f++)
        gain_gradient[f] = 0.0;
    for (size_t r = 0; r < rows; r++) {
        const double *x = norm->input + r * width, *d = du + r * width;
        double gi = 0.0;
        for (size_t f = 0; f < width; f++) {
            gain_gradient[f] = gain_gradient[f] + d[f] * norm->normalized[r * width + f];
            double gn = llmcp35_keep(work, "a norm's adjoint", d[f] * gain[f]);
            gi = gi + gn * x[f];
        }
        double gl = llmcp35_keep(work, "a norm's adjoint", (gi * norm->inverse[r]) * -0.5);
        double gs = llmcp35_keep(work, "a norm's adjoint", gl / norm->stabilized[r]);
        double gq = llmcp35_keep(work, "a norm's adjoint", gs / (double)width);
        for (size_t f = 0; f < width; f++) {
            double gn = d[f] * gain[f];
            double s = llmcp35_keep(work, "a norm's adjoint", gq * x[f]);
            double *to = &dx[r * width + f];
            /* x stands twice in x * x: s is added twice, not 2 s once */
            *to = llmcp35_keep(work, "a norm's adjoint", ((*to + gn * norm->inverse[r]) + s) + s);
        }
    }
    llmcp35_check(work, "a gain's gradient", gain_gradient, width);
}

/* From the adjoint of the block's output to that of after_attention. */
static double *
feed_forward_backward(struct backward *b, size_t l, const double *dnext)
{
    struct llmcp35_pass *pass = b->pass;
    struct llmcp35_work *work = &pass->work;
    const struct llmcp35_block *block = &pass->blocks[l];
    const struct llmcp35_block_weights w = llmcp35_weights_of(pass, l);
    const size_t first = 1 + LLMCP35_PER_BLOCK * l, width = pass->sizes.width, f = pass->sizes.feed_forward;
    const size_t n = pass->sizes.rows * f;

    double *dy = begin_adjoint(b, dnext, width); /* the residual comes first */
    double *dz = input_adjoint(b, dnext, w.down, f, width);
    double *dp = take_matrix(b, f), *dg = take_matrix(b, f);
    if (work->is_short)
        return NULL;
    weight_gradient(b, first + 8, block->product, dnext, f, width);
    for (size_t i = 0; i < n; i++) {
        double sg = block->sigmoid[i], g = block->gate[i];
        double dsilu = llmcp35_keep(work, "the gate's adjoint", dz[i] * block->up[i]);
        dp[i] = llmcp35_keep(work, "the gate's adjoint", dz[i] * block->silu[i]);
        dg[i] = llmcp35_keep(work, "the gate's adjoint", dsilu * (sg * (1.0 + g * (1.0 - sg))));
    }
    double *from_up = input_adjoint(b, dp, w.up, width, f);
    double *from_gate = input_adjoint(b, dg, w.gate, width, f);
    if (work->is_short)
        return NULL;
    double *du = begin_adjoint(b, from_up, width);
    if (du == NULL)
        return NULL;
    add_adjoint(b, du, from_gate, width);
    weight_gradient(b, first + 7, block->ffn_norm.output, dp, width, f);
    weight_gradient(b, first + 6, block->ffn_norm.output, dg, width, f);
    norm_backward(b, &block->ffn_norm, first + 5, du, dy);
    return dy;
}

/* Adjoints of one head's query, key and value. */
struct head_adjoints {
    double *query, *key, *value, *scores;
};

static void
attend_backward(struct backward *b, const struct llmcp35_block *block, const double *dheads, struct head_adjoints *to)
{
    struct llmcp35_pass *pass = b->pass;
    struct llmcp35_work *work = &pass->work;
    const size_t tokens = pass->sizes.tokens, h = pass->sizes.head_width;
    for (size_t n = 0; n < pass->sizes.batch * pass->sizes.heads; n++) {
        const size_t at = n * tokens * h;
        const double *w = block->weights + n * tokens * tokens;
        double *dr = to->scores;
        llmcp35_product_transposed(dr, dheads + at, block->value + at, tokens, h, tokens); /* the weights' adjoint */
        llmcp35_check(work, "the attention weights' adjoint", dr, tokens * tokens);
        for (size_t i = 0; i < tokens * h; i++)
            to->key[at + i] = to->value[at + i] = 0.0;
        for (size_t q = 0; q < tokens; q++) {
            for (size_t k = 0; k < tokens; k++) {
                for (size_t f = 0; f < h; f++)
                    to->value[at + k * h + f] = to->value[at + k * h + f] + w[q * tokens + k] * dheads[at + q * h + f];
            }
            double sum = 0.0;
            for (size_t k = 0; k <= q; k++)
                sum = sum + dr[q * tokens + k] * w[q * tokens + k];
            for (size_t k = 0; k < tokens; k++) {
                double ds = k <= q ? llmcp35_plus_zero(w[q * tokens + k] * (dr[q * tokens + k] - sum)) : 0.0;
                dr[q * tokens + k] = llmcp35_keep(work, "the scores' adjoint",
                                                  llmcp35_keep(work, "the scores' adjoint", ds) * pass->scale);
            }
        }
        llmcp35_product(to->query + at, dr, block->key + at, tokens, tokens, h);
        for (size_t q = 0; q < tokens; q++) {
            for (size_t k = 0; k < tokens; k++) {
                for (size_t f = 0; f < h; f++)
                    to->key[at + k * h + f] =
                        to->key[at + k * h + f] + block->query[at + q * h + f] * dr[q * tokens + k];
            }
        }
    }
}

/* From the adjoint of after_attention to that of the block's input. */
static double *
attention_backward(struct backward *b, size_t l, const double *dy)
{
    struct llmcp35_pass *pass = b->pass;
    struct llmcp35_work *work = &pass->work;
    const struct llmcp35_sizes *sizes = &pass->sizes;
    const struct llmcp35_block *block = &pass->blocks[l];
    const struct llmcp35_block_weights w = llmcp35_weights_of(pass, l);
    const size_t first = 1 + LLMCP35_PER_BLOCK * l, width = sizes->width, n = sizes->rows * width;
    const double *a = block->attention_norm.output;

    double *dx = begin_adjoint(b, dy, width); /* the residual comes first */
    double *dmerged = input_adjoint(b, dy, w.output, width, width);
    double *dheads = take_matrix(b, width);
    struct head_adjoints heads = { take_matrix(b, width), take_matrix(b, width), take_matrix(b, width),
                                   llmcp35_take(work, sizes->tokens, sizes->tokens) };
    double *dq = take_matrix(b, width), *dk = take_matrix(b, width), *dv = take_matrix(b, width);
    if (work->is_short)
        return NULL;
    weight_gradient(b, first + 4, block->merged, dy, width, width);
    llmcp35_split_heads(dheads, dmerged, sizes);
    attend_backward(b, block, dheads, &heads);
    llmcp35_rotate(heads.query, pass->cosines, pass->sines, sizes, true);
    llmcp35_rotate(heads.key, pass->cosines, pass->sines, sizes, true);
    llmcp35_merge_heads(dq, heads.query, sizes);
    llmcp35_merge_heads(dk, heads.key, sizes);
    llmcp35_merge_heads(dv, heads.value, sizes);
    llmcp35_check(work, "the query's adjoint", dq, n);
    llmcp35_check(work, "the key's adjoint", dk, n);
    llmcp35_check(work, "the value's adjoint", dv, n);

    /* Value, key, query: three contributions, and their order shows. */
    double *from_value = input_adjoint(b, dv, w.value, width, width);
    double *from_key = input_adjoint(b, dk, w.key, width, width);
    double *from_query = input_adjoint(b, dq, w.query, width, width);
    if (work->is_short)
        return NULL;
    double *da = begin_adjoint(b, from_value, width);
    if (da == NULL)
        return NULL;
    add_adjoint(b, da, from_key, width);
    add_adjoint(b, da, from_query, width);
    weight_gradient(b, first + 3, a, dv, width, width);
    weight_gradient(b, first + 2, a, dk, width, width);
    weight_gradient(b, first + 1, a, dq, width, width);
    norm_backward(b, &block->attention_norm, first, da, dx);
    return dx;
}

/* The table's gradient: the head's contribution first, then the rows that were looked up. */
static void
table_gradient(struct backward *b, const double *dlogits, double *by_head, double *by_gather, const double *dx)
{
    struct llmcp35_pass *pass = b->pass;
    const struct llmcp35_sizes *sizes = &pass->sizes;
    const size_t width = sizes->width, vocabulary = sizes->vocabulary;
    double *table = b->gradients[0];
    llmcp35_weight_gradient(by_head, b->scratch, pass->final_norm.output, dlogits, sizes->batch, sizes->tokens, width,
                            vocabulary);
    for (size_t v = 0; v < vocabulary; v++) {
        for (size_t f = 0; f < width; f++)
            table[v * width + f] = 0.0 + by_head[f * vocabulary + v];
    }
    for (size_t r = 0; r < sizes->rows; r++) {
        for (size_t f = 0; f < width; f++) {
            double *to = &by_gather[pass->batch->inputs[r] * width + f];
            *to = *to + dx[r * width + f];
        }
    }
    for (size_t i = 0; i < vocabulary * width; i++)
        table[i] = table[i] + by_gather[i];
    llmcp35_check(&pass->work, "the embedding's gradient", table, vocabulary * width);
}

enum pawl_status
llmcp35_backward(struct llmcp35_pass *pass, const double *dlogits, double **gradients, struct pawl_error *err)
{
    struct llmcp35_work *work = &pass->work;
    const struct llmcp35_sizes *sizes = &pass->sizes;
    const size_t n_parameters = 2 + LLMCP35_PER_BLOCK * sizes->layers;
    size_t widest = sizes->width > sizes->feed_forward ? sizes->width : sizes->feed_forward;
    widest = sizes->vocabulary > widest ? sizes->vocabulary : widest;
    for (size_t i = 0; i < n_parameters; i++)
        gradients[i] = llmcp35_take(work, pass->parameters[i].n, 1);
    struct backward b = { pass, gradients, llmcp35_take(work, sizes->width, widest) };
    double *by_head = llmcp35_take(work, sizes->width, sizes->vocabulary);
    double *by_gather = llmcp35_take_zeros(work, sizes->vocabulary, sizes->width);
    double *dn = llmcp35_take(work, sizes->rows, sizes->width);
    double *dx = llmcp35_take_zeros(work, sizes->rows, sizes->width);
    if (work->is_short)
        return llmcp35_work_status(work, err);

    llmcp35_product(dn, dlogits, pass->parameters[0].values, sizes->rows, sizes->vocabulary, sizes->width);
    llmcp35_check(work, "an adjoint", dn, sizes->rows * sizes->width);
    norm_backward(&b, &pass->final_norm, n_parameters - 1, dn, dx);
    enum pawl_status st = llmcp35_work_status(work, err);
    for (size_t l = sizes->layers; l > 0 && st == PAWL_OK; l--) {
        double *dy = feed_forward_backward(&b, l - 1, dx);
        dx = dy == NULL ? NULL : attention_backward(&b, l - 1, dy);
        st = llmcp35_work_status(work, err);
        assert(dx != NULL || st != PAWL_OK); /* the work knows what it had no memory for */
    }
    if (st != PAWL_OK)
        return st;
    table_gradient(&b, dlogits, by_head, by_gather, dx);
    return llmcp35_work_status(work, err);
}
