/* trainer/llmcp35_inside.h: what the files of the replay share. */
#ifndef TRAINER_LLMCP35_INSIDE_H
#define TRAINER_LLMCP35_INSIDE_H

#include <float.h>
#include <math.h>
#include <string.h>
#include "trainer/llmcp35_replay.h"

/* The bits are the point: nothing may be contracted, reassociated or kept in more precision than it is written. */
#ifdef __FAST_MATH__
#error "the replay's order of operations is exact: build it without fast-math"
#endif
#if FLT_EVAL_METHOD != 0
#error "the replay needs arithmetic that rounds every operation to double"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* A matrix is row-major; widths are as on the page. */
struct llmcp35_block_weights {
    const double *attention_gain; /* [D] */
    const double *query, *key, *value, *output;
    const double *ffn_gain;
    const double *gate, *up; /* [D, F] */
    const double *down;      /* [F, D] */
};

#define LLMCP35_PER_BLOCK 9

/* Sizes of one pass. */
struct llmcp35_sizes {
    size_t batch, tokens, rows; /* rows = batch * tokens */
    size_t width, heads, head_width, pairs, feed_forward, vocabulary, layers;
};

/* Memory of a pass: everything ends together. After a failure it gives NULL, and says so when asked. */
struct llmcp35_work {
    struct llmcp35_piece *newest;
    bool is_short;    /* of memory */
    bool is_infinite; /* a value was not finite; `where` is its label */
    const char *where;
    const struct llmcp35_trace *trace; /* NULL: none */
    size_t layers;                     /* labels name the layer when there are several */
};

double *llmcp35_take(struct llmcp35_work *work, size_t rows, size_t columns);
double *llmcp35_take_zeros(struct llmcp35_work *work, size_t rows, size_t columns);
void llmcp35_work_release(struct llmcp35_work *work);
/* Whether all that was worked out so far is fine: PAWL_NO_MEMORY or PAWL_OUT_OF_RANGE if not. */
enum pawl_status llmcp35_work_status(const struct llmcp35_work *work, struct pawl_error *err);
/* Remember the first value that is not finite, and show the tensor to the trace. `label` NULL: none to show. */
void llmcp35_check(struct llmcp35_work *work, const char *where, const double *values, size_t n);
void llmcp35_show(struct llmcp35_work *work, const char *label, const double *values, size_t n);
/* The same of a tensor of layer l: "blocks.<l>.<label>" when there are several layers. */
void llmcp35_show_block(struct llmcp35_work *work, size_t l, const char *label, const double *values, size_t n);

/* Replaces -0.0. */
static inline double
llmcp35_plus_zero(double x)
{
    return x == 0.0 ? 0.0 : x;
}

/* Note whether a value is finite, and give it on. */
static inline double
llmcp35_keep(struct llmcp35_work *work, const char *where, double value)
{
    if (!isfinite(value) && !work->is_infinite) {
        work->is_infinite = true;
        work->where = where;
    }
    return value;
}

/* ---- products (llmcp35_math.c) ---- */

/* Whether products are rounded before they are added: an option of the compiler can outdo the pragma above. */
bool llmcp35_is_exact(void);
/* c[r][j] = sum over k ascending of a[r][k] * b[k][j]. */
void llmcp35_product(double *c, const double *a, const double *b, size_t rows, size_t inner, size_t columns);
/* c[r][j] = sum over k ascending of a[r][k] * b[j][k]. */
void llmcp35_product_transposed(double *c, const double *a, const double *b, size_t rows, size_t inner, size_t columns);
/* c[i][o]: over t ascending x[t][i] * dy[t][o] within each sequence, the sequences' sums then added in order. */
void llmcp35_weight_gradient(double *c, double *scratch, const double *x, const double *dy, size_t batch, size_t tokens,
                             size_t inputs, size_t outputs);
/* [batch][token][head][feature] to [batch][head][token][feature], and back. */
void llmcp35_split_heads(double *to, const double *from, const struct llmcp35_sizes *sizes);
void llmcp35_merge_heads(double *to, const double *from, const struct llmcp35_sizes *sizes);
/* Adjacent pairs of every head's vectors, forward or back. */
void llmcp35_rotate(double *vectors, const double *cosines, const double *sines, const struct llmcp35_sizes *sizes,
                    bool is_inverse);

/* ---- a pass ---- */

struct llmcp35_norm {
    const double *input; /* [rows, D] */
    double *mean_square; /* [rows] */
    double *stabilized;  /* [rows] */
    double *inverse;     /* [rows] */
    double *normalized;  /* [rows, D] */
    double *output;      /* [rows, D] */
};

struct llmcp35_block {
    struct llmcp35_norm attention_norm, ffn_norm;
    double *query, *key, *value;                  /* heads: [batch][head][token][feature]; query and key rotated */
    double *weights;                              /* [batch][head][token][token] */
    double *merged;                               /* [rows, D] */
    double *after_attention;                      /* y */
    double *gate, *sigmoid, *silu, *up, *product; /* [rows, F] */
    double *output;
};

struct llmcp35_pass {
    struct llmcp35_work work;
    struct llmcp35_sizes sizes;
    const struct pawl_llmcp35_parameter *parameters;
    const double *cosines, *sines;
    double rms_epsilon, scale; /* 1 / sqrt(head width) */
    const struct llmcp35_batch *batch;
    double *embedded; /* [rows, D] */
    struct llmcp35_block *blocks;
    struct llmcp35_norm final_norm;
    double *logits; /* [rows, V] */
};

/* Sizes and tables of a pass over a batch, checked against the model. */
enum pawl_status llmcp35_pass_begin(struct llmcp35_pass *pass, struct pawl_llmcp35_training *training,
                                    const struct llmcp35_batch *batch, const struct llmcp35_trace *trace,
                                    struct pawl_error *err);
void llmcp35_pass_release(struct llmcp35_pass *pass);
struct llmcp35_block_weights llmcp35_weights_of(const struct llmcp35_pass *pass, size_t layer);

enum pawl_status llmcp35_forward(struct llmcp35_pass *pass, struct pawl_error *err);
/* The loss, and the adjoint of the logits. */
enum pawl_status llmcp35_loss(struct llmcp35_pass *pass, double *ret_loss, double **ret_dlogits,
                              struct pawl_error *err);
/* Gradients in model order, each as large as its parameter, in the pass's memory. */
enum pawl_status llmcp35_backward(struct llmcp35_pass *pass, const double *dlogits, double **gradients,
                                  struct pawl_error *err);

/* The update; on failure training is as it was. */
enum pawl_status llmcp35_adamw(struct pawl_llmcp35_training *training, double *const *gradients, double rate,
                               struct pawl_error *err);

#endif
