/*
 * Stage F: the model. The order of the checks is that of the reference, which builds its layers one by one and compares them
 * with the configuration last: a disagreement with the configuration is remembered, and loses against every fault
 * inside a later layer.
 */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PER_LAYER 9

/* ---- one parameter ---- */

static enum pawl_status
check_name(struct pawl_str name, struct lc_out *out)
{
    for (size_t i = 0; i <= name.len; i++) {
        unsigned char c = i < name.len ? (unsigned char)name.data[i] : '.'; /* the end closes the last segment */
        if (c == '.') {
            if (i == 0 || name.data[i - 1] == '.')
                return LC_REFUSE(out, "parameter", "empty_name_segment", LC_FIELDS(LC_U64("index", i)),
                                 "the name '%s' has an empty segment at byte %zu", PAWL_SHOW(name), i);
        } else if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') {
            return LC_REFUSE(
                out, "parameter", "invalid_name_character", LC_FIELDS(LC_U64("index", i), LC_U64("byte", c)),
                "the name '%s' has the byte 0x%02x at %zu, expected a-z, 0-9, '_' or '.'", PAWL_SHOW(name), c, i);
        }
    }
    return PAWL_OK;
}

enum pawl_status
pawl_lc_check_parameter(const struct lc_tensor *tensor, struct lc_out *out)
{
    enum pawl_status st = check_name(tensor->name, out);
    for (size_t i = 0; st == PAWL_OK && i < tensor->n; i++) {
        if (!isfinite(tensor->values[i]))
            st = LC_REFUSE(
                out, "parameter", "non_finite_value",
                LC_FIELDS(LC_U64("index", i), LC_F64("value", tensor->values[i]), LC_TEXT("name", tensor->name)),
                "parameter '%s' holds %g at index %zu", PAWL_SHOW(tensor->name), tensor->values[i], i);
    }
    return st;
}

/* ---- names and shapes ---- */

static const struct {
    const char *name;
    char shape[2]; /* of V, D, F; 0: no axis */
} layer_parameters[PER_LAYER] = {
    { "attention_norm.gain", { 'D', 0 } },       { "attention.query.weight", { 'D', 'D' } },
    { "attention.key.weight", { 'D', 'D' } },    { "attention.value.weight", { 'D', 'D' } },
    { "attention.output.weight", { 'D', 'D' } }, { "ffn_norm.gain", { 'D', 0 } },
    { "ffn.gate.weight", { 'D', 'F' } },         { "ffn.up.weight", { 'D', 'F' } },
    { "ffn.down.weight", { 'F', 'D' } },
};

bool
pawl_lc_expected_name(struct pawl_buffer *text, uint64_t index, uint64_t layers)
{
    pawl_buffer_clear(text);
    if (index == 0)
        return pawl_buffer_add_z(text, "token_embedding.weight");
    if (index == PER_LAYER * layers + 1)
        return pawl_buffer_add_z(text, "final_norm.gain");
    return pawl_buffer_printf(text, "blocks.%" PRIu64 ".%s", (index - 1) / PER_LAYER,
                              layer_parameters[(index - 1) % PER_LAYER].name);
}

size_t
pawl_lc_expected_shape(const struct pawl_llmcp35_config *config, uint64_t index, uint64_t shape[2])
{
    const char *axes = index == 0                                ? "VD"
                       : index == PER_LAYER * config->layers + 1 ? "D"
                                                                 : layer_parameters[(index - 1) % PER_LAYER].shape;
    size_t rank = 0;
    while (rank < 2 && axes[rank] != '\0') {
        shape[rank] = axes[rank] == 'V' ? config->vocabulary : axes[rank] == 'D' ? config->width : config->feed_forward;
        rank++;
    }
    return rank;
}

/* ---- the configuration ---- */

#define MODEL(out, cause, fields, ...) LC_REFUSE(out, "model", cause, fields, __VA_ARGS__)

static enum pawl_status
check_config(const struct pawl_llmcp35_config *config, struct lc_out *out)
{
    if (config->vocabulary == 0)
        return MODEL(out, "empty_vocabulary", LC_NO_FIELDS, "the decoder has no vocabulary");
    if (config->width == 0)
        return MODEL(out, "zero_width", LC_NO_FIELDS, "the decoder has the width 0");
    if (config->heads == 0)
        return MODEL(out, "zero_heads", LC_NO_FIELDS, "the decoder has no heads");
    if (config->width % config->heads != 0)
        return MODEL(out, "width_not_divisible",
                     LC_FIELDS(LC_U64("width", config->width), LC_U64("heads", config->heads)),
                     "the width %" PRIu64 " can't be divided among %" PRIu64 " heads", config->width, config->heads);
    uint64_t head_width = config->width / config->heads;
    if (head_width % 2 != 0)
        return MODEL(out, "odd_head_width", LC_FIELDS(LC_U64("head_width", head_width)),
                     "heads of width %" PRIu64 " are odd, and rotate in pairs", head_width);
    if (config->feed_forward == 0)
        return MODEL(out, "zero_feed_forward", LC_NO_FIELDS, "the feed-forward width is 0");
    if (config->positions == 0)
        return MODEL(out, "zero_positions", LC_NO_FIELDS, "the decoder has no positions");
    if (!isfinite(config->rope_base) || !(config->rope_base > 0))
        return MODEL(out, "invalid_rope_base", LC_FIELDS(LC_F64("value", config->rope_base)),
                     "the RoPE base is %g, expected a finite number above 0", config->rope_base);
    if (!isfinite(config->rms_epsilon) || !(config->rms_epsilon >= 0))
        return MODEL(out, "invalid_rms_epsilon", LC_FIELDS(LC_F64("value", config->rms_epsilon)),
                     "the RMSNorm epsilon is %g, expected a finite number not below 0", config->rms_epsilon);
    return PAWL_OK;
}

static enum pawl_status
check_names(const struct lc_state *state, struct lc_out *out)
{
    uint64_t expected;
    if (!pawl_mul_u64(state->config.layers, PER_LAYER, &expected) || !pawl_add_u64(expected, 2, &expected))
        return MODEL(out, "parameter_allocation", LC_NO_FIELDS,
                     "%" PRIu64 " layers have more parameters than can be counted", state->config.layers);
    if (expected != state->n_parameters)
        return MODEL(out, "parameter_count_mismatch",
                     LC_FIELDS(LC_U64("expected", expected), LC_U64("actual", state->n_parameters)),
                     "%" PRIu64 " layers have %" PRIu64 " parameters, found %zu", state->config.layers, expected,
                     state->n_parameters);
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < state->n_parameters; i++) {
        struct pawl_str found = state->parameters[i].name;
        if (!pawl_lc_expected_name(&text, i, state->config.layers))
            st = pawl_lc_fail_memory(out, "parameter_count");
        else if (!pawl_str_equal(found, pawl_buffer_str(&text)))
            st = MODEL(
                out, "parameter_name_mismatch",
                LC_FIELDS(LC_U64("index", i), LC_TEXT("expected", pawl_buffer_str(&text)), LC_TEXT("actual", found)),
                "parameter %zu is named '%s', expected '%s'", i, PAWL_SHOW(found), PAWL_SHOW(pawl_buffer_str(&text)));
    }
    pawl_buffer_release(&text);
    return st;
}

/* ---- shapes ---- */

/* A disagreement with the configuration: the first is kept, and reported after the layers. */
struct remembered {
    const char *cause; /* NULL: none */
    bool has_layer;
    uint64_t layer, expected, actual;
};

static void
remember(struct remembered *kept, const char *cause, bool has_layer, uint64_t layer, uint64_t expected, uint64_t actual)
{
    if (kept->cause == NULL && expected != actual)
        *kept = (struct remembered){ cause, has_layer, layer, expected, actual };
}

static enum pawl_status
report(const struct remembered *kept, struct lc_out *out)
{
    if (kept->cause == NULL)
        return PAWL_OK;
    if (kept->has_layer)
        return MODEL(
            out, kept->cause,
            LC_FIELDS(LC_U64("layer", kept->layer), LC_U64("expected", kept->expected), LC_U64("actual", kept->actual)),
            "layer %" PRIu64 ": found %" PRIu64 ", the configuration says %" PRIu64, kept->layer, kept->actual,
            kept->expected);
    return MODEL(out, kept->cause, LC_FIELDS(LC_U64("expected", kept->expected), LC_U64("actual", kept->actual)),
                 "found %" PRIu64 ", the configuration says %" PRIu64, kept->actual, kept->expected);
}

struct layer {
    const struct lc_tensor *at; /* its nine parameters */
    uint64_t index;
    const struct lc_state *state;
    struct lc_out *out;
};

static enum pawl_status
check_layer_gain(const struct layer *layer, const struct lc_tensor *gain, const char *rank_cause,
                 const char *empty_cause)
{
    char shape[96];
    if (gain->rank != 1)
        return MODEL(layer->out, rank_cause,
                     LC_FIELDS(LC_U64("layer", layer->index), LC_SHAPE("shape", gain->shape, gain->rank)),
                     "layer %" PRIu64 ": a gain has the shape %s, expected one dimension", layer->index,
                     pawl_lc_show_shape(shape, gain->shape, gain->rank));
    if (gain->shape[0] == 0)
        return MODEL(layer->out, empty_cause, LC_FIELDS(LC_U64("layer", layer->index)),
                     "layer %" PRIu64 ": a gain has no values", layer->index);
    return PAWL_OK;
}

/* A matrix: rank 2, no zero width. `which` NULL: the cause tells. */
static enum pawl_status
check_layer_matrix(const struct layer *layer, const struct lc_tensor *matrix, const char *which,
                   const char *const causes[3])
{
    struct lc_fields none = LC_FIELDS(LC_U64("layer", layer->index));
    struct lc_fields named = LC_FIELDS(LC_U64("layer", layer->index), LC_WORD("which", which != NULL ? which : ""));
    const char *shown = which != NULL ? which : "output";
    if (matrix->rank != 2) {
        if (which == NULL)
            return MODEL(layer->out, causes[0], LC_FIELDS(LC_U64("layer", layer->index), LC_U64("rank", matrix->rank)),
                         "layer %" PRIu64 ": %s has rank %" PRIu32 ", expected 2", layer->index, shown, matrix->rank);
        return MODEL(layer->out, causes[0],
                     LC_FIELDS(LC_U64("layer", layer->index), LC_WORD("which", which), LC_U64("rank", matrix->rank)),
                     "layer %" PRIu64 ": %s has rank %" PRIu32 ", expected 2", layer->index, shown, matrix->rank);
    }
    for (int side = 0; side < 2; side++) {
        if (matrix->shape[side] == 0)
            return MODEL(layer->out, causes[1 + side], which == NULL ? none : named,
                         "layer %" PRIu64 ": %s has the %s width 0", layer->index, shown,
                         side == 0 ? "input" : "output");
    }
    return PAWL_OK;
}

/* Three widths that must be one. */
static enum pawl_status
check_same(const struct layer *layer, const char *cause, const struct lc_tensor *three, int side)
{
    uint64_t q = three[0].shape[side], k = three[1].shape[side], v = three[2].shape[side];
    if (q == k && k == v)
        return PAWL_OK;
    return MODEL(layer->out, cause,
                 LC_FIELDS(LC_U64("layer", layer->index), LC_U64("query", q), LC_U64("key", k), LC_U64("value", v)),
                 "layer %" PRIu64 ": query, key and value have the %s widths %" PRIu64 ", %" PRIu64 " and %" PRIu64,
                 layer->index, side == 0 ? "input" : "output", q, k, v);
}

static enum pawl_status
check_width(const struct layer *layer, const char *cause, uint64_t expected, uint64_t actual)
{
    if (expected == actual)
        return PAWL_OK;
    return MODEL(layer->out, cause,
                 LC_FIELDS(LC_U64("layer", layer->index), LC_U64("expected", expected), LC_U64("actual", actual)),
                 "layer %" PRIu64 ": found the width %" PRIu64 ", expected %" PRIu64, layer->index, actual, expected);
}

/* Steps 8 to 14. */
static enum pawl_status
check_attention(const struct layer *layer)
{
    static const char *const input_causes[3] = { "block_attention_projection_rank",
                                                 "block_attention_projection_zero_input",
                                                 "block_attention_projection_zero_output" };
    static const char *const output_causes[3] = { "block_attention_output_rank", "block_attention_output_zero_input",
                                                  "block_attention_output_zero_output" };
    static const char *const which[3] = { "query", "key", "value" };
    const struct lc_tensor *inputs = &layer->at[1], *output = &layer->at[4];
    const struct pawl_llmcp35_config *config = &layer->state->config;
    enum pawl_status st =
        check_layer_gain(layer, &layer->at[0], "block_attention_norm_rank", "block_attention_norm_empty");
    for (size_t i = 0; st == PAWL_OK && i < 3; i++)
        st = check_layer_matrix(layer, &inputs[i], which[i], input_causes);
    if (st == PAWL_OK)
        st = check_same(layer, "block_attention_input_widths", inputs, 0);
    if (st == PAWL_OK)
        st = check_same(layer, "block_attention_output_widths", inputs, 1);
    if (st == PAWL_OK)
        st = check_layer_matrix(layer, output, NULL, output_causes);
    if (st != PAWL_OK)
        return st;
    uint64_t width = inputs[0].shape[0];
    if (width % config->heads != 0)
        return MODEL(layer->out, "block_attention_width_not_divisible",
                     LC_FIELDS(LC_U64("layer", layer->index), LC_U64("width", width), LC_U64("heads", config->heads)),
                     "layer %" PRIu64 ": the width %" PRIu64 " can't be divided among %" PRIu64 " heads", layer->index,
                     width, config->heads);
    if (width / config->heads % 2 != 0)
        return MODEL(layer->out, "block_attention_odd_head_width",
                     LC_FIELDS(LC_U64("layer", layer->index), LC_U64("head_width", width / config->heads)),
                     "layer %" PRIu64 ": heads of width %" PRIu64 " are odd", layer->index, width / config->heads);
    st = check_width(layer, "block_attention_projected_width", width, inputs[0].shape[1]);
    if (st == PAWL_OK)
        st = check_width(layer, "block_attention_output_input_width", width, output->shape[0]);
    if (st == PAWL_OK)
        st = check_width(layer, "block_attention_output_width", width, output->shape[1]);
    if (st == PAWL_OK)
        st =
            pawl_lc_check_rotary(config->rope_base, config->positions, width / config->heads, layer->index, layer->out);
    return st;
}

/* Steps 15 to 17. */
static enum pawl_status
check_feed_forward(const struct layer *layer, struct remembered *kept)
{
    static const char *const causes[3] = { "block_ffn_projection_rank", "block_ffn_projection_zero_input",
                                           "block_ffn_projection_zero_output" };
    static const char *const which[3] = { "gate", "up", "down" };
    const struct lc_tensor *gate = &layer->at[6], *up = &layer->at[7], *down = &layer->at[8];
    enum pawl_status st = check_layer_gain(layer, &layer->at[5], "block_ffn_norm_rank", "block_ffn_norm_empty");
    for (size_t i = 0; st == PAWL_OK && i < 3; i++)
        st = check_layer_matrix(layer, &layer->at[6 + i], which[i], causes);
    if (st != PAWL_OK)
        return st;
    for (int side = 0; side < 2; side++) {
        uint64_t g = gate->shape[side], u = up->shape[side];
        if (g != u)
            return MODEL(layer->out, side == 0 ? "block_ffn_input_widths" : "block_ffn_hidden_widths",
                         LC_FIELDS(LC_U64("layer", layer->index), LC_U64("gate", g), LC_U64("up", u)),
                         "layer %" PRIu64 ": gate and up have the %s widths %" PRIu64 " and %" PRIu64, layer->index,
                         side == 0 ? "input" : "output", g, u);
    }
    st = check_width(layer, "block_ffn_down_input", gate->shape[1], down->shape[0]);
    if (st != PAWL_OK)
        return st;

    const uint64_t width = layer->at[1].shape[0];
    const struct {
        const char *name;
        uint64_t width;
    } components[4] = { { "attention_norm", layer->at[0].shape[0] },
                        { "ffn_norm", layer->at[5].shape[0] },
                        { "ffn_gate", gate->shape[0] },
                        { "ffn_down", down->shape[1] } };
    for (size_t i = 0; i < 4; i++) {
        if (components[i].width != width)
            return MODEL(layer->out, "block_component_width",
                         LC_FIELDS(LC_U64("layer", layer->index), LC_WORD("component", components[i].name),
                                   LC_U64("expected", width), LC_U64("actual", components[i].width)),
                         "layer %" PRIu64 ": %s has the width %" PRIu64 ", its attention %" PRIu64, layer->index,
                         components[i].name, components[i].width, width);
    }
    remember(kept, "block_width_mismatch", true, layer->index, layer->state->config.width, width);
    remember(kept, "block_feed_forward_width_mismatch", true, layer->index, layer->state->config.feed_forward,
             gate->shape[1]);
    return PAWL_OK;
}

/* Steps 6 and 7. */
static enum pawl_status
check_embedding(const struct lc_state *state, struct remembered *kept, struct lc_out *out)
{
    const struct lc_tensor *embedding = &state->parameters[0];
    if (embedding->rank != 2)
        return MODEL(out, "embedding_rank", LC_FIELDS(LC_U64("rank", embedding->rank)),
                     "the embedding has rank %" PRIu32 ", expected 2", embedding->rank);
    if (embedding->shape[0] == 0)
        return MODEL(out, "embedding_empty_vocabulary", LC_NO_FIELDS, "the embedding has no rows");
    if (embedding->shape[1] == 0)
        return MODEL(out, "embedding_zero_width", LC_NO_FIELDS, "the embedding has the width 0");
    remember(kept, "embedding_vocabulary_mismatch", false, 0, state->config.vocabulary, embedding->shape[0]);
    remember(kept, "embedding_width_mismatch", false, 0, state->config.width, embedding->shape[1]);
    return PAWL_OK;
}

enum pawl_status
pawl_lc_check_model(const struct lc_state *state, struct lc_out *out)
{
    struct remembered kept = { NULL, false, 0, 0, 0 };
    char shape[96];
    enum pawl_status st = check_config(&state->config, out);
    if (st == PAWL_OK)
        st = check_names(state, out);
    if (st == PAWL_OK)
        st = check_embedding(state, &kept, out);
    for (uint64_t l = 0; st == PAWL_OK && l < state->config.layers; l++) {
        struct layer layer = { &state->parameters[1 + PER_LAYER * l], l, state, out };
        st = check_attention(&layer);
        if (st == PAWL_OK)
            st = check_feed_forward(&layer, &kept);
    }
    if (st != PAWL_OK)
        return st;
    const struct lc_tensor *gain = &state->parameters[state->n_parameters - 1];
    if (gain->rank != 1)
        return MODEL(out, "final_norm_rank", LC_FIELDS(LC_SHAPE("shape", gain->shape, gain->rank)),
                     "the last gain has the shape %s, expected one dimension",
                     pawl_lc_show_shape(shape, gain->shape, gain->rank));
    if (gain->shape[0] == 0)
        return MODEL(out, "final_norm_empty", LC_NO_FIELDS, "the last gain has no values");
    remember(&kept, "final_norm_width_mismatch", false, 0, state->config.width, gain->shape[0]);
    return report(&kept, out);
}

/* ---- from a file ---- */

/* Suffix strides, from the last axis to the first: only a zero further left can hide what overflows here from the byte length. */
static bool
strides_fit(const struct lc_record *record)
{
    uint64_t stride = 1;
    for (uint32_t i = record->rank; i > 0; i--) {
        if (!pawl_mul_u64(stride, record->dims[i - 1], &stride) || stride > SIZE_MAX)
            return false;
    }
    return true;
}

enum pawl_status
pawl_lc_read_model(const struct lc_file *file, struct lc_state *state, struct lc_out *out)
{
    if (file->n_parameters == 0)
        return LC_REFUSE(out, "layout", "no_parameters", LC_NO_FIELDS, "the file has no parameters");
    state->parameters = calloc(file->n_parameters, sizeof *state->parameters);
    if (state->parameters == NULL)
        return pawl_lc_fail_memory(out, "parameter_count");
    state->n_parameters = file->n_parameters;
    for (size_t i = 0; i < state->n_parameters; i++) {
        const struct lc_record *record = &file->records[file->first_parameter + i];
        out->offset = record->entry_offset;
        if (record->role != PAWL_LLMCP35_PARAMETER || record->dtype != PAWL_LLMCP35_F64)
            return LC_REFUSE(
                out, "layout", "parameter_identity",
                LC_FIELDS(LC_TEXT("name", record->name), LC_U64("role", record->role), LC_U64("dtype", record->dtype)),
                "record '%s' of role %u and dtype %u stands among the parameters (role 3, dtype 3)",
                PAWL_SHOW(record->name), record->role, record->dtype);
        if (!strides_fit(record))
            return LC_REFUSE(out, "tensor", "shape_overflow", LC_NO_FIELDS, "the strides of '%s' overflow",
                             PAWL_SHOW(record->name));
        enum pawl_status st = pawl_lc_read_tensor(file, record, state, &state->parameters[i], out);
        if (st == PAWL_OK)
            st = pawl_lc_check_parameter(&state->parameters[i], out);
        if (st != PAWL_OK)
            return st;
    }
    out->offset = PAWL_OFFSET_NONE;
    return pawl_lc_check_model(state, out);
}
