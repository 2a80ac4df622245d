/* The forward pass and the loss. */
#include "trainer/llmcp35_inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include "trainer/fault.h"

/* ---- a pass ---- */

enum pawl_status
llmcp35_pass_begin(struct llmcp35_pass *pass, struct pawl_llmcp35_training *training, const struct llmcp35_batch *batch,
                   const struct llmcp35_trace *trace, struct pawl_error *err)
{
    struct pawl_llmcp35_training_facts facts;
    size_t n_parameters, pairs;
    pawl_llmcp35_training_facts(training, &facts);
    const struct pawl_llmcp35_config *config = &facts.config;
    *pass = (struct llmcp35_pass){ .batch = batch, .rms_epsilon = config->rms_epsilon };
    pass->parameters = pawl_llmcp35_training_parameters(training, &n_parameters);

    if (!llmcp35_is_exact())
        return fault(err, PAWL_UNSUPPORTED, "unsupported", NULL,
                     "this build fuses products and sums, the replay would have other bits: build it with "
                     "-ffp-contract=off");
    if (batch->n == 0 || batch->batch == 0 || batch->n % batch->batch != 0)
        return fault(err, PAWL_ARGUMENT, "argument", NULL, "%zu ids can't be cut into %zu sequences", batch->n,
                     batch->batch);
    size_t tokens = batch->n / batch->batch;
    if (tokens > config->positions)
        return fault(err, PAWL_ARGUMENT, "argument", NULL,
                     "sequences of %zu tokens for a model of %" PRIu64 " positions", tokens, config->positions);
    for (size_t i = 0; i < batch->n; i++) {
        uint64_t largest = batch->inputs[i] > batch->targets[i] ? batch->inputs[i] : batch->targets[i];
        if (largest >= config->vocabulary)
            return fault(err, PAWL_ARGUMENT, "argument", NULL, "id %" PRIu64 " of a vocabulary of %" PRIu64, largest,
                         config->vocabulary);
    }
    enum pawl_status st = pawl_llmcp35_training_rotary(training, tokens, &pass->cosines, &pass->sines, &pairs, err);
    if (st != PAWL_OK)
        return st;
    /* The parameters lie in memory, so their sizes fit a size_t. */
    pass->sizes = (struct llmcp35_sizes){ .batch = batch->batch,
                                          .tokens = tokens,
                                          .rows = batch->n,
                                          .width = (size_t)config->width,
                                          .heads = (size_t)config->heads,
                                          .head_width = (size_t)(config->width / config->heads),
                                          .pairs = pairs,
                                          .feed_forward = (size_t)config->feed_forward,
                                          .vocabulary = (size_t)config->vocabulary,
                                          .layers = (size_t)config->layers };
    pass->scale = 1.0 / sqrt((double)pass->sizes.head_width);
    pass->work.trace = trace;
    pass->work.layers = pass->sizes.layers;
    pass->blocks = calloc(pass->sizes.layers + 1, sizeof *pass->blocks);
    return pass->blocks != NULL ? PAWL_OK : fault_memory(err, (pass->sizes.layers + 1) * sizeof *pass->blocks);
}

void
llmcp35_pass_release(struct llmcp35_pass *pass)
{
    llmcp35_work_release(&pass->work);
    free(pass->blocks);
    pass->blocks = NULL;
}

struct llmcp35_block_weights
llmcp35_weights_of(const struct llmcp35_pass *pass, size_t layer)
{
    const struct pawl_llmcp35_parameter *p = pass->parameters + 1 + LLMCP35_PER_BLOCK * layer;
    return (struct llmcp35_block_weights){ p[0].values, p[1].values, p[2].values, p[3].values, p[4].values,
                                           p[5].values, p[6].values, p[7].values, p[8].values };
}

/* ---- pieces ---- */

static void
normalize(struct llmcp35_pass *pass, struct llmcp35_norm *norm, const double *input, const double *gain)
{
    struct llmcp35_work *work = &pass->work;
    const size_t rows = pass->sizes.rows, width = pass->sizes.width;
    norm->input = input;
    norm->mean_square = llmcp35_take(work, rows, 1);
    norm->stabilized = llmcp35_take(work, rows, 1);
    norm->inverse = llmcp35_take(work, rows, 1);
    norm->normalized = llmcp35_take(work, rows, width);
    norm->output = llmcp35_take(work, rows, width);
    if (work->is_short)
        return;
    for (size_t r = 0; r < rows; r++) {
        const double *x = input + r * width;
        double sum = 0.0;
        for (size_t f = 0; f < width; f++)
            sum = sum + x[f] * x[f];
        double mean_square = llmcp35_keep(work, "a mean square", sum / (double)width);
        double stabilized = llmcp35_keep(work, "a mean square", mean_square + pass->rms_epsilon);
        double logarithm = llmcp35_keep(work, "the logarithm of a mean square", log(stabilized));
        /* Not 1 / sqrt: the bits differ. */
        double inverse = llmcp35_keep(work, "a reciprocal root", exp(logarithm * -0.5));
        for (size_t f = 0; f < width; f++) {
            double normalized = llmcp35_keep(work, "a normalized row", x[f] * inverse);
            norm->normalized[r * width + f] = normalized;
            norm->output[r * width + f] = llmcp35_keep(work, "a normalized row", normalized * gain[f]);
        }
        norm->mean_square[r] = mean_square;
        norm->stabilized[r] = stabilized;
        norm->inverse[r] = inverse;
    }
}

/*
 * The parts of a softmax over n values: the largest, and the sum of the others' exponentials. The first value whose
 * difference to the largest is exactly 0 is the 1.0 of the denominator, and is not added.
 */
static double
softmax_tail(struct llmcp35_work *work, const double *values, size_t n, double *ret_max)
{
    double max = -INFINITY;
    for (size_t k = 0; k < n; k++)
        max = values[k] > max ? values[k] : max;
    double tail = 0.0;
    bool is_skipped = false;
    for (size_t k = 0; k < n; k++) {
        double difference = llmcp35_keep(work, "a difference of scores", values[k] - max);
        if (difference == 0.0 && !is_skipped) {
            is_skipped = true;
            continue;
        }
        tail = tail + exp(difference);
    }
    *ret_max = max;
    return llmcp35_keep(work, "the denominator of a softmax", tail);
}

static void
attend(struct llmcp35_pass *pass, struct llmcp35_block *block, double *heads, double *scores)
{
    struct llmcp35_work *work = &pass->work;
    const struct llmcp35_sizes *sizes = &pass->sizes;
    const size_t tokens = sizes->tokens, h = sizes->head_width;
    for (size_t n = 0; n < sizes->batch * sizes->heads; n++) {
        const double *query = block->query + n * tokens * h, *key = block->key + n * tokens * h;
        double *weights = block->weights + n * tokens * tokens;
        llmcp35_product_transposed(scores, query, key, tokens, h, tokens);
        for (size_t q = 0; q < tokens; q++) {
            double *row = scores + q * tokens;
            double max;
            for (size_t k = 0; k < tokens; k++)
                row[k] = llmcp35_keep(work, "an attention score",
                                      llmcp35_keep(work, "an attention score", row[k]) * pass->scale);
            double tail = softmax_tail(work, row, q + 1, &max);
            double denominator = 1.0 + tail;
            for (size_t k = 0; k < tokens; k++)
                weights[q * tokens + k] = k <= q ? llmcp35_plus_zero(exp(row[k] - max) / denominator) : 0.0;
        }
        llmcp35_check(work, "the attention weights", weights, tokens * tokens);
        llmcp35_product(heads + n * tokens * h, weights, block->value + n * tokens * h, tokens, tokens, h);
    }
}

static double
sigmoid(double v)
{
    if (v >= 0.0)
        return 1.0 / (1.0 + exp(-v));
    double e = exp(v);
    return e / (1.0 + e);
}

/* X times a matrix of the model, checked and shown. */
static double *
project(struct llmcp35_pass *pass, size_t l, const char *label, const double *x, const double *matrix, size_t inner,
        size_t columns)
{
    double *y = llmcp35_take(&pass->work, pass->sizes.rows, columns);
    if (y == NULL)
        return NULL;
    llmcp35_product(y, x, matrix, pass->sizes.rows, inner, columns);
    llmcp35_check(&pass->work, label, y, pass->sizes.rows * columns);
    llmcp35_show_block(&pass->work, l, label, y, pass->sizes.rows * columns);
    return y;
}

static double *
add(struct llmcp35_pass *pass, size_t l, const char *label, const double *a, const double *b)
{
    size_t n = pass->sizes.rows * pass->sizes.width;
    double *sum = llmcp35_take(&pass->work, pass->sizes.rows, pass->sizes.width);
    for (size_t i = 0; sum != NULL && i < n; i++)
        sum[i] = llmcp35_keep(&pass->work, label, a[i] + b[i]);
    if (sum != NULL)
        llmcp35_show_block(&pass->work, l, label, sum, n);
    return sum;
}

static double *
split(struct llmcp35_pass *pass, const double *rows)
{
    double *heads = llmcp35_take(&pass->work, pass->sizes.rows, pass->sizes.width);
    if (heads != NULL)
        llmcp35_split_heads(heads, rows, &pass->sizes);
    return heads;
}

/* Attention: from the block's input to after_attention. */
static void
forward_attention(struct llmcp35_pass *pass, size_t l, const double *x)
{
    struct llmcp35_work *work = &pass->work;
    struct llmcp35_block *block = &pass->blocks[l];
    const struct llmcp35_sizes *sizes = &pass->sizes;
    const struct llmcp35_block_weights w = llmcp35_weights_of(pass, l);
    const size_t n = sizes->rows * sizes->width, width = sizes->width;

    normalize(pass, &block->attention_norm, x, w.attention_gain);
    if (work->is_short)
        return;
    llmcp35_show_block(work, l, "attention_norm.mean_square", block->attention_norm.mean_square, sizes->rows);
    llmcp35_show_block(work, l, "attention_norm.inverse_rms", block->attention_norm.inverse, sizes->rows);
    const double *a = block->attention_norm.output;
    llmcp35_show_block(work, l, "attention_norm.output", a, n);
    double *query = project(pass, l, "query", a, w.query, width, width);
    double *key = project(pass, l, "key", a, w.key, width, width);
    double *value = project(pass, l, "value", a, w.value, width, width);
    if (work->is_short)
        return;
    block->query = split(pass, query);
    block->key = split(pass, key);
    block->value = split(pass, value);
    block->weights = llmcp35_take(work, sizes->batch * sizes->heads * sizes->tokens, sizes->tokens);
    double *heads = llmcp35_take(work, sizes->rows, width);
    double *scores = llmcp35_take(work, sizes->tokens, sizes->tokens);
    block->merged = llmcp35_take(work, sizes->rows, width);
    if (work->is_short)
        return;
    llmcp35_rotate(block->query, pass->cosines, pass->sines, sizes, false);
    llmcp35_rotate(block->key, pass->cosines, pass->sines, sizes, false);
    llmcp35_check(work, "a rotated query", block->query, n);
    llmcp35_check(work, "a rotated key", block->key, n);
    llmcp35_show_block(work, l, "rotated_query_heads", block->query, n);
    llmcp35_show_block(work, l, "rotated_key_heads", block->key, n);
    attend(pass, block, heads, scores);
    llmcp35_check(work, "a head's output", heads, n);
    llmcp35_show_block(work, l, "attention_weights", block->weights,
                       sizes->batch * sizes->heads * sizes->tokens * sizes->tokens);
    llmcp35_show_block(work, l, "head_outputs", heads, n);
    llmcp35_merge_heads(block->merged, heads, sizes);
    double *output = project(pass, l, "attention.output", block->merged, w.output, width, width);
    if (output != NULL)
        block->after_attention = add(pass, l, "after_attention", x, output);
}

/* The feed-forward half: from after_attention to the block's output. */
static void
forward_feed_forward(struct llmcp35_pass *pass, size_t l)
{
    struct llmcp35_work *work = &pass->work;
    struct llmcp35_block *block = &pass->blocks[l];
    const struct llmcp35_sizes *sizes = &pass->sizes;
    const struct llmcp35_block_weights w = llmcp35_weights_of(pass, l);
    const size_t n = sizes->rows * sizes->feed_forward;

    normalize(pass, &block->ffn_norm, block->after_attention, w.ffn_gain);
    if (work->is_short)
        return;
    const double *u = block->ffn_norm.output;
    llmcp35_show_block(work, l, "ffn_norm.output", u, sizes->rows * sizes->width);
    block->gate = project(pass, l, "gate_linear", u, w.gate, sizes->width, sizes->feed_forward);
    block->sigmoid = llmcp35_take(work, sizes->rows, sizes->feed_forward);
    block->silu = llmcp35_take(work, sizes->rows, sizes->feed_forward);
    block->product = llmcp35_take(work, sizes->rows, sizes->feed_forward);
    if (work->is_short)
        return;
    for (size_t i = 0; i < n; i++) {
        block->sigmoid[i] = sigmoid(block->gate[i]);
        block->silu[i] = llmcp35_keep(work, "gate_silu", block->gate[i] * block->sigmoid[i]);
    }
    llmcp35_show_block(work, l, "gate_silu", block->silu, n);
    block->up = project(pass, l, "up", u, w.up, sizes->width, sizes->feed_forward);
    if (work->is_short)
        return;
    for (size_t i = 0; i < n; i++)
        block->product[i] = llmcp35_keep(work, "the gated product", block->silu[i] * block->up[i]);
    double *down = project(pass, l, "ffn.output", block->product, w.down, sizes->feed_forward, sizes->width);
    if (down != NULL)
        block->output = add(pass, l, "block.output", block->after_attention, down);
}

enum pawl_status
llmcp35_forward(struct llmcp35_pass *pass, struct pawl_error *err)
{
    struct llmcp35_work *work = &pass->work;
    const struct llmcp35_sizes *sizes = &pass->sizes;
    const double *table = pass->parameters[0].values;
    const double *gain = pass->parameters[1 + LLMCP35_PER_BLOCK * sizes->layers].values;
    enum pawl_status st;

    pass->embedded = llmcp35_take(work, sizes->rows, sizes->width);
    for (size_t r = 0; pass->embedded != NULL && r < sizes->rows; r++)
        memcpy(pass->embedded + r * sizes->width, table + pass->batch->inputs[r] * sizes->width,
               sizes->width * sizeof(double));
    st = llmcp35_work_status(work, err);
    if (st != PAWL_OK)
        return st;
    llmcp35_show(work, "embedding", pass->embedded, sizes->rows * sizes->width);
    const double *x = pass->embedded;
    for (size_t l = 0; l < sizes->layers; l++) {
        forward_attention(pass, l, x);
        st = llmcp35_work_status(work, err);
        if (st != PAWL_OK)
            return st;
        forward_feed_forward(pass, l);
        st = llmcp35_work_status(work, err);
        if (st != PAWL_OK)
            return st;
        x = pass->blocks[l].output;
    }
    normalize(pass, &pass->final_norm, x, gain);
    pass->logits = llmcp35_take(work, sizes->rows, sizes->vocabulary);
    st = llmcp35_work_status(work, err);
    if (st != PAWL_OK)
        return st;
    llmcp35_show(work, "final_norm.output", pass->final_norm.output, sizes->rows * sizes->width);
    llmcp35_product_transposed(pass->logits, pass->final_norm.output, table, sizes->rows, sizes->width,
                               sizes->vocabulary);
    llmcp35_check(work, "the logits", pass->logits, sizes->rows * sizes->vocabulary);
    return llmcp35_work_status(work, err);
}

/* ---- loss ---- */

enum pawl_status
llmcp35_loss(struct llmcp35_pass *pass, double *ret_loss, double **ret_dlogits, struct pawl_error *err)
{
    struct llmcp35_work *work = &pass->work;
    const size_t rows = pass->sizes.rows, vocabulary = pass->sizes.vocabulary;
    double *dlogits = llmcp35_take(work, rows, vocabulary);
    double *gaps = llmcp35_take(work, rows, 1);
    double *log_tails = llmcp35_take(work, rows, 1);
    if (work->is_short)
        return llmcp35_work_status(work, err);
    const double scale = 1.0 / (double)rows;
    double sum = 0.0;
    bool is_finite = true;
    for (size_t r = 0; r < rows; r++) {
        const double *logits = pass->logits + r * vocabulary;
        const uint64_t target = pass->batch->targets[r];
        double max;
        double tail = softmax_tail(work, logits, vocabulary, &max);
        double denominator = 1.0 + tail;
        gaps[r] = max - logits[target];
        log_tails[r] = log1p(tail);
        double term = gaps[r] + log_tails[r];
        is_finite = is_finite && isfinite(term);
        sum = sum + term;
        for (size_t v = 0; v < vocabulary; v++) {
            double probability = llmcp35_plus_zero(exp(logits[v] - max) / denominator);
            if (v == target)
                probability = probability - 1.0;
            dlogits[r * vocabulary + v] = llmcp35_plus_zero(probability * scale);
        }
    }
    double loss = sum / (double)rows;
    if (!is_finite || !isfinite(sum)) { /* a term too large by itself: each is divided before it is added */
        loss = 0.0;
        for (size_t r = 0; r < rows; r++)
            loss = loss + (gaps[r] / (double)rows + log_tails[r] / (double)rows);
    }
    *ret_loss = llmcp35_plus_zero(llmcp35_keep(work, "the loss", loss));
    llmcp35_check(work, "the adjoint of the logits", dlogits, rows * vocabulary);
    *ret_dlogits = dlogits;
    return llmcp35_work_status(work, err);
}
