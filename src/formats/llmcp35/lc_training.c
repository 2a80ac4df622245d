/*
 * Training: a model and its optimizer that change together, step by step; what an instant of it leaves; and the checkpoint
 * made of that. There is no other way to a checkpoint than a file, so every model has its own moments.
 */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "base/options.h"

struct pawl_llmcp35_training {
    struct lc_state state;
    uint64_t pairs;            /* half a head's width */
    uint64_t positions_filled; /* rows of the tables that have been worked out */
    double *cosines, *sines;   /* positions x pairs */
};

struct pawl_llmcp35_bundle {
    struct lc_state state;
};

/* ---- making ---- */

void
pawl_llmcp35_training_free(struct pawl_llmcp35_training *training)
{
    if (training == NULL)
        return;
    pawl_lc_state_release(&training->state);
    free(training->cosines);
    free(training->sines);
    free(training);
}

/*
 * The tables have the room of every position, and rows are worked out when they are asked for. A capacity that a file may
 * state and no machine can serve ends here.
 */
static enum pawl_status
take_tables(struct pawl_llmcp35_training *training, struct lc_out *out)
{
    const struct pawl_llmcp35_config *config = &training->state.config;
    uint64_t pairs = config->width / config->heads / 2;
    uint64_t elements = config->positions * pairs; /* a model with layers was checked; the others have no tables */
    training->pairs = pairs;
    if (config->layers == 0)
        return PAWL_OK;
    training->cosines = pawl_lc_values_new((size_t)elements);
    training->sines = pawl_lc_values_new((size_t)elements);
    if (training->cosines != NULL && training->sines != NULL)
        return PAWL_OK;
    return pawl_lc_fail(out, PAWL_NO_MEMORY, "model", "block_attention_rotary_table_allocation",
                        LC_FIELDS(LC_U64("layer", 0), LC_U64("elements", elements)),
                        "no memory for the rotary tables of %" PRIu64 " positions, %" PRIu64 " elements each",
                        config->positions, elements);
}

static enum pawl_status
check_options(const struct pawl_llmcp35_config *config, const struct pawl_llmcp35_adamw *adamw,
              struct pawl_llmcp35_config *ret_config, struct pawl_llmcp35_adamw *ret_adamw, struct pawl_error *err)
{
    if (config == NULL || adamw == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a configuration is missing");
    enum pawl_status st =
        pawl_options_take(ret_config, sizeof *ret_config, config, config->size, "struct pawl_llmcp35_config", err);
    if (st == PAWL_OK)
        st = pawl_options_take(ret_adamw, sizeof *ret_adamw, adamw, adamw->size, "struct pawl_llmcp35_adamw", err);
    ret_config->size = sizeof *ret_config;
    return st;
}

/* The groups in byte order, as files have them. */
static enum pawl_status
take_adamw(struct lc_state *state, const struct pawl_llmcp35_adamw *adamw, struct lc_out *out)
{
    struct lc_adamw *own = &state->adamw;
    *own = (struct lc_adamw){ .learning_rate = adamw->learning_rate,
                              .beta1 = adamw->beta1,
                              .beta2 = adamw->beta2,
                              .epsilon = adamw->epsilon,
                              .weight_decay = adamw->weight_decay,
                              .has_groups = adamw->has_groups != 0 };
    if (own->has_groups &&
        (pawl_lc_names_copy(&state->arena, &own->decay, adamw->decay, adamw->n_decay) != PAWL_OK ||
         pawl_lc_names_copy(&state->arena, &own->no_decay, adamw->no_decay, adamw->n_no_decay) != PAWL_OK))
        return pawl_lc_fail_memory(out, "decay_names");
    enum pawl_status st = pawl_lc_check_adamw(own, out);
    if (st == PAWL_OK && own->has_groups)
        st = pawl_lc_check_groups(own, out);
    pawl_lc_state_sort(state); /* after the check, which names what the caller said first */
    return st;
}

/* Names and shapes follow from the configuration; the values are the caller's. */
static enum pawl_status
take_parameters(struct lc_state *state, const double *const *values, size_t n, struct lc_out *out)
{
    uint64_t expected;
    if (!pawl_mul_u64(state->config.layers, 9, &expected) || !pawl_add_u64(expected, 2, &expected))
        return LC_REFUSE(out, "model", "parameter_allocation", LC_NO_FIELDS,
                         "%" PRIu64 " layers have more parameters than can be counted", state->config.layers);
    if (expected != n)
        return LC_REFUSE(
            out, "model", "parameter_count_mismatch", LC_FIELDS(LC_U64("expected", expected), LC_U64("actual", n)),
            "%" PRIu64 " layers have %" PRIu64 " parameters, found %zu", state->config.layers, expected, n);
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    enum pawl_status st = PAWL_OK;
    state->parameters = calloc(n, sizeof *state->parameters);
    if (state->parameters == NULL)
        return pawl_lc_fail_memory(out, "parameter_count");
    state->n_parameters = n;
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        struct lc_tensor *tensor = &state->parameters[i];
        uint64_t *shape = pawl_arena_take_array(&state->arena, 2, sizeof *shape);
        if (shape == NULL || !pawl_lc_expected_name(&text, i, state->config.layers) ||
            !pawl_arena_copy_str(&state->arena, pawl_buffer_str(&text), &tensor->name)) {
            st = pawl_lc_fail_memory(out, "parameter_count");
            break;
        }
        tensor->rank = (uint32_t)pawl_lc_expected_shape(&state->config, i, shape);
        tensor->shape = shape;
        tensor->n = 1;
        for (uint32_t k = 0; st == PAWL_OK && k < tensor->rank; k++) {
            if (shape[k] > SIZE_MAX || !pawl_mul_size(tensor->n, (size_t)shape[k], &tensor->n))
                st = LC_REFUSE(out, "tensor", "shape_overflow", LC_NO_FIELDS, "the strides of '%s' overflow",
                               PAWL_SHOW(tensor->name));
        }
        if (st != PAWL_OK)
            break;
        tensor->values = pawl_lc_values_new(tensor->n);
        if (tensor->values == NULL) {
            st = pawl_lc_fail_memory(out, "payload");
            break;
        }
        memcpy(tensor->values, values[i], tensor->n * sizeof(double));
        st = pawl_lc_check_parameter(tensor, out);
    }
    pawl_buffer_release(&text);
    return st == PAWL_OK ? pawl_lc_check_model(state, out) : st;
}

enum pawl_status
pawl_llmcp35_training_new(const struct pawl_llmcp35_config *config, const struct pawl_llmcp35_adamw *adamw,
                          const double *const *values, size_t n_values, struct pawl_llmcp35_training **ret_training,
                          struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    struct pawl_llmcp35_adamw known_adamw = PAWL_LLMCP35_ADAMW(.has_groups = 0);
    struct pawl_llmcp35_training *training = calloc(1, sizeof *training);
    if (training == NULL)
        return pawl_lc_fail_memory(&out, "payload");
    struct lc_state *state = &training->state;
    state->beta1_power = 1.0;
    state->beta2_power = 1.0;
    enum pawl_status st = check_options(config, adamw, &state->config, &known_adamw, err);
    if (st == PAWL_OK)
        st = take_adamw(state, &known_adamw, &out);
    if (st == PAWL_OK)
        st = take_parameters(state, values, n_values, &out);
    if (st == PAWL_OK)
        st = pawl_lc_state_view(state, &out);
    if (st == PAWL_OK)
        st = take_tables(training, &out);
    if (st != PAWL_OK) {
        pawl_llmcp35_training_free(training);
        return st;
    }
    *ret_training = training;
    return PAWL_OK;
}

/* ---- restoring ---- */

static enum pawl_status
restore(const struct lc_state *state, bool with_values, struct pawl_llmcp35_training **ret_training, struct lc_out *out)
{
    struct pawl_llmcp35_training *training = calloc(1, sizeof *training);
    if (training == NULL)
        return pawl_lc_fail_memory(out, "payload");
    enum pawl_status st = pawl_lc_state_copy(&training->state, state, with_values, out);
    if (st == PAWL_OK)
        st = take_tables(training, out);
    if (st != PAWL_OK) {
        pawl_llmcp35_training_free(training);
        return st;
    }
    *ret_training = training;
    return PAWL_OK;
}

enum pawl_status
pawl_llmcp35_restore(const struct pawl_llmcp35 *checkpoint, struct pawl_llmcp35_training **ret_training,
                     struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    return restore(&checkpoint->state, true, ret_training, &out);
}

enum pawl_status
pawl_llmcp35_restore_move(struct pawl_llmcp35 *checkpoint, struct pawl_llmcp35_training **ret_training,
                          struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    struct pawl_llmcp35_training *training = calloc(1, sizeof *training);
    if (training == NULL)
        return pawl_lc_fail_memory(&out, "payload");
    training->state.config = checkpoint->state.config;
    enum pawl_status st = take_tables(training, &out);
    if (st != PAWL_OK) {
        pawl_llmcp35_training_free(training);
        return st;
    }
    /* Records point into the arena that moves: the checkpoint goes at once. */
    training->state = checkpoint->state;
    checkpoint->state = (struct lc_state)LC_STATE_INIT;
    pawl_llmcp35_free(checkpoint);
    *ret_training = training;
    return PAWL_OK;
}

/* ---- looking ---- */

void
pawl_llmcp35_training_facts(const struct pawl_llmcp35_training *training, struct pawl_llmcp35_training_facts *ret_facts)
{
    const struct lc_state *state = &training->state;
    *ret_facts = (struct pawl_llmcp35_training_facts){ .config = state->config,
                                                       .adamw = pawl_lc_public_adamw(&state->adamw),
                                                       .step = state->step,
                                                       .beta1_power = state->beta1_power,
                                                       .beta2_power = state->beta2_power };
}

const struct pawl_llmcp35_parameter *
pawl_llmcp35_training_parameters(const struct pawl_llmcp35_training *training, size_t *ret_n)
{
    *ret_n = training->state.n_parameters;
    return training->state.views;
}

enum pawl_status
pawl_llmcp35_training_rotary(struct pawl_llmcp35_training *training, uint64_t positions, const double **ret_cosines,
                             const double **ret_sines, size_t *ret_pairs, struct pawl_error *err)
{
    const struct pawl_llmcp35_config *config = &training->state.config;
    if (positions > config->positions)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%" PRIu64 " positions of a model of %" PRIu64, positions,
                         config->positions);
    for (uint64_t t = training->positions_filled; training->cosines != NULL && t < positions; t++) {
        size_t at = (size_t)(t * training->pairs);
        pawl_lc_rotary_row(config->rope_base, config->width / config->heads, t, training->cosines + at,
                           training->sines + at);
        training->positions_filled = t + 1;
    }
    *ret_cosines = training->cosines;
    *ret_sines = training->sines;
    *ret_pairs = (size_t)training->pairs;
    return PAWL_OK;
}

/* ---- a step ---- */

static enum pawl_status
refuse_update(struct pawl_error *err, struct pawl_str name, const char *what, size_t index, double value)
{
    enum pawl_status st = pawl_fail(err, PAWL_OUT_OF_RANGE, "out-of-range", "%s of '%s' would hold %g at index %zu",
                                    what, PAWL_SHOW(name), value, index);
    pawl_error_tensor(err, name);
    return st;
}

static enum pawl_status
check_update(const struct lc_state *state, const struct pawl_llmcp35_update *update, struct pawl_error *err)
{
    if (update->n != state->n_parameters)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "an update of %zu parameters for a model of %zu", update->n,
                         state->n_parameters);
    if (state->step == UINT64_MAX)
        return pawl_fail(err, PAWL_OUT_OF_RANGE, "out-of-range", "the step counter is at its end");
    const double powers[2] = { update->beta1_power, update->beta2_power };
    for (size_t i = 0; i < 2; i++) {
        if (!(powers[i] >= 0 && powers[i] < 1))
            return pawl_fail(err, PAWL_OUT_OF_RANGE, "out-of-range",
                             "the power of beta%zu would be %g, expected a number in [0, 1)", i + 1, powers[i]);
    }
    for (size_t i = 0; i < update->n; i++) {
        const struct lc_tensor *tensor = &state->parameters[i];
        for (size_t k = 0; k < tensor->n; k++) {
            if (!isfinite(update->values[i][k]))
                return refuse_update(err, tensor->name, "the values", k, update->values[i][k]);
            if (!isfinite(update->first[i][k]))
                return refuse_update(err, tensor->name, "the first moment", k, update->first[i][k]);
            if (!isfinite(update->second[i][k]) || update->second[i][k] < 0)
                return refuse_update(err, tensor->name, "the second moment", k, update->second[i][k]);
        }
    }
    return PAWL_OK;
}

/* The first step gives every parameter its moments. */
static enum pawl_status
make_moments(struct lc_state *state, struct lc_out *out)
{
    struct lc_moments *moments = calloc(state->n_parameters, sizeof *moments);
    bool is_whole = moments != NULL;
    for (size_t i = 0; is_whole && i < state->n_parameters; i++) {
        struct lc_tensor *first = &moments[i].first, *second = &moments[i].second;
        *first = state->parameters[i];
        *second = state->parameters[i];
        first->values = pawl_lc_values_new(first->n);
        second->values = pawl_lc_values_new(second->n);
        is_whole = first->values != NULL && second->values != NULL;
    }
    if (!is_whole) {
        for (size_t i = 0; moments != NULL && i < state->n_parameters; i++) {
            free(moments[i].first.values);
            free(moments[i].second.values);
        }
        free(moments);
        return pawl_lc_fail_memory(out, "moment_count");
    }
    free(state->moments);
    state->moments = moments;
    state->n_moments = state->n_parameters;
    pawl_lc_state_sort(state);
    enum pawl_status st = pawl_lc_state_view(state, out);
    if (st != PAWL_OK) {
        for (size_t i = 0; i < state->n_moments; i++) {
            free(moments[i].first.values);
            free(moments[i].second.values);
        }
        state->n_moments = 0;
    }
    return st;
}

enum pawl_status
pawl_llmcp35_update(struct pawl_llmcp35_training *training, const struct pawl_llmcp35_update *update,
                    struct pawl_error *err)
{
    struct lc_out out = lc_out_make(NULL, err);
    struct lc_state *state = &training->state;
    struct pawl_llmcp35_update known = PAWL_LLMCP35_UPDATE(.n = 0);
    enum pawl_status st =
        pawl_options_take(&known, sizeof known, update, update->size, "struct pawl_llmcp35_update", err);
    if (st == PAWL_OK)
        st = check_update(state, &known, err);
    if (st != PAWL_OK)
        return st;

    if (state->adamw.has_groups) {
        /* From the first step on a file says which parameters decay: the groups must be right before it. */
        struct lc_names names = { NULL, 0 };
        struct lc_names all = { NULL, 0 };
        if (!pawl_lc_parameter_names(state, &names) || !pawl_lc_group_names(state, &all))
            st = pawl_lc_fail_memory(&out, "decay_names");
        else if (!pawl_lc_names_equal(all, names))
            st = LC_REFUSE(&out, "adamw_state", "parameter_groups_mismatch", LC_NO_FIELDS,
                           "the groups name %zu parameters, and not the %zu of the model", all.n, names.n);
        free(all.items);
        free(names.items);
    }
    if (st == PAWL_OK && state->n_moments == 0)
        st = make_moments(state, &out);
    if (st != PAWL_OK)
        return st;

    /* Nothing fails from here on. An array given may be the one that it goes to. */
    for (size_t i = 0; i < state->n_parameters; i++) {
        struct lc_tensor *tensor = &state->parameters[i];
        struct lc_moments *moments = pawl_lc_find_moments(state, tensor->name);
        size_t bytes = tensor->n * sizeof(double);
        memmove(tensor->values, known.values[i], bytes);
        memmove(moments->first.values, known.first[i], bytes);
        memmove(moments->second.values, known.second[i], bytes);
    }
    state->beta1_power = known.beta1_power;
    state->beta2_power = known.beta2_power;
    state->step++;
    return PAWL_OK;
}

/* ---- to a checkpoint ---- */

enum pawl_status
pawl_llmcp35_capture(const struct pawl_llmcp35_training *training, struct pawl_llmcp35_bundle **ret_bundle,
                     struct pawl_error *err)
{
    struct lc_out out = lc_out_make(NULL, err);
    struct pawl_llmcp35_bundle *bundle = calloc(1, sizeof *bundle);
    if (bundle == NULL)
        return pawl_lc_fail_memory(&out, "payload");
    enum pawl_status st = pawl_lc_state_copy(&bundle->state, &training->state, true, &out);
    if (st != PAWL_OK) {
        free(bundle);
        return st;
    }
    *ret_bundle = bundle;
    return PAWL_OK;
}

void
pawl_llmcp35_bundle_free(struct pawl_llmcp35_bundle *bundle)
{
    if (bundle == NULL)
        return;
    pawl_lc_state_release(&bundle->state);
    free(bundle);
}

static enum pawl_status
copy_tokenizer(const struct pawl_llmcp35_tokenizer *from, struct pawl_llmcp35_tokenizer **ret_tokenizer,
               struct lc_out *out)
{
    return from->kind == PAWL_LLMCP35_LITERAL
               ? pawl_llmcp35_tokenizer_literal(from->pieces, from->n_pieces, ret_tokenizer, out->ret_fault, out->err)
               : pawl_llmcp35_tokenizer_bpe(from->pairs, from->n_merges, ret_tokenizer, out->ret_fault, out->err);
}

enum pawl_status
pawl_llmcp35_new(struct pawl_llmcp35_bundle *bundle, const struct pawl_llmcp35_tokenizer *tokenizer, uint64_t rng_state,
                 struct pawl_llmcp35 **ret_checkpoint, struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    struct pawl_llmcp35 *checkpoint = calloc(1, sizeof *checkpoint);
    if (checkpoint == NULL)
        return pawl_lc_fail_memory(&out, "payload");
    /* What training let through was checked there, value by value; these are the rules between the parts. */
    enum pawl_status st = copy_tokenizer(tokenizer, &checkpoint->tokenizer, &out);
    if (st == PAWL_OK)
        st = pawl_lc_check_optimizer(&bundle->state, &out);
    if (st == PAWL_OK)
        st = pawl_lc_check_relations(&bundle->state, tokenizer, bundle->state.step, &out);
    if (st == PAWL_OK) {
        checkpoint->state = bundle->state;
        checkpoint->rng_state = rng_state;
        st = pawl_lc_layout(checkpoint, &out);
        bundle->state = checkpoint->state; /* the arena has grown */
        if (st != PAWL_OK)
            checkpoint->state = (struct lc_state)LC_STATE_INIT;
    }
    if (st != PAWL_OK) {
        pawl_llmcp35_free(checkpoint);
        return st;
    }
    bundle->state = (struct lc_state)LC_STATE_INIT;
    pawl_llmcp35_bundle_free(bundle);
    checkpoint->checksum = pawl_lc_checksum(checkpoint);
    *ret_checkpoint = checkpoint;
    return PAWL_OK;
}
