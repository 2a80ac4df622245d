/* A model with its optimizer as one value, what holds between its parts (stage H), and looking at a checkpoint. */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- the state ---- */

void
pawl_lc_state_release(struct lc_state *state)
{
    for (size_t i = 0; i < state->n_parameters && state->parameters != NULL; i++)
        free(state->parameters[i].values);
    for (size_t i = 0; i < state->n_moments && state->moments != NULL; i++) {
        free(state->moments[i].first.values);
        free(state->moments[i].second.values);
    }
    free(state->parameters);
    free(state->moments);
    free(state->views);
    pawl_arena_release(&state->arena);
    *state = (struct lc_state)LC_STATE_INIT;
}

static bool
copy_tensor(struct pawl_arena *arena, struct lc_tensor *to, const struct lc_tensor *from, bool with_values)
{
    uint64_t *shape = pawl_arena_take_array(arena, from->rank, sizeof *shape);
    to->rank = from->rank;
    to->n = from->n;
    to->shape = shape;
    to->values = NULL;
    if ((shape == NULL && from->rank > 0) || !pawl_arena_copy_str(arena, from->name, &to->name))
        return false;
    for (uint32_t i = 0; i < from->rank; i++)
        shape[i] = from->shape[i];
    if (!with_values)
        return true;
    to->values = pawl_lc_values_new(from->n);
    if (to->values == NULL)
        return false;
    memcpy(to->values, from->values, from->n * sizeof(double));
    return true;
}

enum pawl_status
pawl_lc_state_copy(struct lc_state *to, const struct lc_state *from, bool with_values, struct lc_out *out)
{
    *to = (struct lc_state){ .arena = PAWL_ARENA_INIT,
                             .config = from->config,
                             .adamw = from->adamw,
                             .step = from->step,
                             .beta1_power = from->beta1_power,
                             .beta2_power = from->beta2_power };
    to->parameters = calloc(from->n_parameters + 1, sizeof *to->parameters);
    to->moments = calloc(from->n_moments + 1, sizeof *to->moments);
    to->n_parameters = to->parameters != NULL ? from->n_parameters : 0;
    to->n_moments = to->moments != NULL ? from->n_moments : 0;
    bool is_whole =
        to->parameters != NULL && to->moments != NULL &&
        pawl_lc_names_copy(&to->arena, &to->adamw.decay, from->adamw.decay.items, from->adamw.decay.n) == PAWL_OK &&
        pawl_lc_names_copy(&to->arena, &to->adamw.no_decay, from->adamw.no_decay.items, from->adamw.no_decay.n) ==
            PAWL_OK;
    for (size_t i = 0; is_whole && i < from->n_parameters; i++)
        is_whole = copy_tensor(&to->arena, &to->parameters[i], &from->parameters[i], with_values);
    for (size_t i = 0; is_whole && i < from->n_moments; i++)
        is_whole = copy_tensor(&to->arena, &to->moments[i].first, &from->moments[i].first, with_values) &&
                   copy_tensor(&to->arena, &to->moments[i].second, &from->moments[i].second, with_values);
    if (is_whole && pawl_lc_state_view(to, out) == PAWL_OK)
        return PAWL_OK;
    pawl_lc_state_release(to);
    return pawl_lc_fail_memory(out, "payload");
}

static int
compare_moments(const void *name, const void *moments)
{
    return pawl_str_compare(*(const struct pawl_str *)name, ((const struct lc_moments *)moments)->first.name);
}

static int
compare_names(const void *a, const void *b)
{
    return pawl_str_compare(*(const struct pawl_str *)a, *(const struct pawl_str *)b);
}

static int
compare_pairs(const void *a, const void *b)
{
    return pawl_str_compare(((const struct lc_moments *)a)->first.name, ((const struct lc_moments *)b)->first.name);
}

void
pawl_lc_state_sort(struct lc_state *state)
{
    pawl_lc_names_sort(state->adamw.decay);
    pawl_lc_names_sort(state->adamw.no_decay);
    if (state->n_moments > 1)
        qsort(state->moments, state->n_moments, sizeof *state->moments, compare_pairs);
}

struct lc_moments *
pawl_lc_find_moments(const struct lc_state *state, struct pawl_str name)
{
    return state->n_moments == 0
               ? NULL
               : bsearch(&name, state->moments, state->n_moments, sizeof *state->moments, compare_moments);
}

enum pawl_status
pawl_lc_state_view(struct lc_state *state, struct lc_out *out)
{
    struct pawl_llmcp35_parameter *views = calloc(state->n_parameters + 1, sizeof *views);
    if (views == NULL)
        return pawl_lc_fail_memory(out, "parameter_count");
    const struct lc_names decay = state->adamw.decay;
    for (size_t i = 0; i < state->n_parameters; i++) {
        const struct lc_tensor *tensor = &state->parameters[i];
        const struct lc_moments *moments = pawl_lc_find_moments(state, tensor->name);
        views[i] = (struct pawl_llmcp35_parameter){
            .name = tensor->name, .shape = tensor->shape, .rank = tensor->rank, .n = tensor->n, .values = tensor->values
        };
        if (moments != NULL) {
            views[i].first = moments->first.values;
            views[i].second = moments->second.values;
        }
        views[i].is_decayed =
            !state->adamw.has_groups ||
            (decay.n > 0 && bsearch(&tensor->name, decay.items, decay.n, sizeof *decay.items, compare_names) != NULL);
    }
    free(state->views);
    state->views = views;
    return PAWL_OK;
}

bool
pawl_lc_parameter_names(const struct lc_state *state, struct lc_names *ret_names)
{
    struct lc_names names = { calloc(state->n_parameters + 1, sizeof *names.items), state->n_parameters };
    if (names.items == NULL)
        return false;
    for (size_t i = 0; i < names.n; i++)
        names.items[i] = state->parameters[i].name;
    pawl_lc_names_sort(names);
    *ret_names = names;
    return true;
}

bool
pawl_lc_moment_names(const struct lc_state *state, struct lc_names *ret_names)
{
    struct lc_names names = { calloc(state->n_moments + 1, sizeof *names.items), state->n_moments };
    if (names.items == NULL)
        return false;
    for (size_t i = 0; i < names.n; i++)
        names.items[i] = state->moments[i].first.name;
    pawl_lc_names_sort(names);
    *ret_names = names;
    return true;
}

/* ---- stage H ---- */

bool
pawl_lc_shape_equal(const struct lc_tensor *a, const struct lc_tensor *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* The names are the same: both lists in byte order, item by item. */
static enum pawl_status
check_shapes(const struct lc_state *state, struct lc_out *out)
{
    size_t n = state->n_parameters;
    struct lc_key *parameters = calloc(2 * n, sizeof *parameters);
    enum pawl_status st = PAWL_OK;
    char shapes[2][96];
    if (parameters == NULL)
        return pawl_lc_fail_memory(out, "parameter_count");
    struct lc_key *moments = parameters + n;
    for (size_t i = 0; i < n; i++) {
        parameters[i] = (struct lc_key){ state->parameters[i].name, 0, i };
        moments[i] = (struct lc_key){ state->moments[i].first.name, 0, i };
    }
    pawl_lc_keys_sort(parameters, n);
    pawl_lc_keys_sort(moments, n);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        const struct lc_tensor *model = &state->parameters[parameters[i].index];
        const struct lc_tensor *optimizer = &state->moments[moments[i].index].first;
        if (!pawl_lc_shape_equal(model, optimizer))
            st = LC_REFUSE(out, "optimizer_shape", NULL,
                           LC_FIELDS(LC_TEXT("name", model->name), LC_SHAPE("model_shape", model->shape, model->rank),
                                     LC_SHAPE("optimizer_shape", optimizer->shape, optimizer->rank)),
                           "parameter '%s' has the shape %s, its moments %s", PAWL_SHOW(model->name),
                           pawl_lc_show_shape(shapes[0], model->shape, model->rank),
                           pawl_lc_show_shape(shapes[1], optimizer->shape, optimizer->rank));
    }
    free(parameters);
    return st;
}

enum pawl_status
pawl_lc_check_relations(const struct lc_state *state, const struct pawl_llmcp35_tokenizer *tokenizer,
                        uint64_t selected_step, struct lc_out *out)
{
    uint64_t vocabulary = pawl_llmcp35_tokenizer_vocabulary(tokenizer);
    if (vocabulary != state->config.vocabulary)
        return LC_REFUSE(out, "vocabulary_mismatch", NULL,
                         LC_FIELDS(LC_U64("tokenizer", vocabulary), LC_U64("decoder", state->config.vocabulary)),
                         "the tokenizer has %" PRIu64 " tokens, the decoder %" PRIu64, vocabulary,
                         state->config.vocabulary);
    if (selected_step != state->step)
        return LC_REFUSE(out, "step_mismatch", NULL,
                         LC_FIELDS(LC_U64("selected", selected_step), LC_U64("optimizer", state->step)),
                         "the selected step is %" PRIu64 ", AdamW's %" PRIu64, selected_step, state->step);
    if (selected_step == 0)
        return PAWL_OK;
    struct lc_names expected = { NULL, 0 };
    struct lc_names actual = { NULL, 0 };
    enum pawl_status st = PAWL_OK;
    if (!pawl_lc_parameter_names(state, &expected) || !pawl_lc_moment_names(state, &actual))
        st = pawl_lc_fail_memory(out, "moment_count");
    else if (!pawl_lc_names_equal(expected, actual))
        st = LC_REFUSE(out, "optimizer_names", NULL,
                       LC_FIELDS(LC_NAMES("expected", expected), LC_NAMES("actual", actual)),
                       "the moments of %zu parameters are not those of the %zu of the model", actual.n, expected.n);
    free(expected.items);
    free(actual.items);
    return st == PAWL_OK ? check_shapes(state, out) : st;
}

/* ---- looking ---- */

void
pawl_llmcp35_free(struct pawl_llmcp35 *checkpoint)
{
    if (checkpoint == NULL)
        return;
    pawl_lc_state_release(&checkpoint->state);
    pawl_llmcp35_tokenizer_free(checkpoint->tokenizer);
    free(checkpoint->records);
    free(checkpoint);
}

struct pawl_llmcp35_adamw
pawl_lc_public_adamw(const struct lc_adamw *adamw)
{
    return PAWL_LLMCP35_ADAMW(.learning_rate = adamw->learning_rate, .beta1 = adamw->beta1, .beta2 = adamw->beta2,
                              .epsilon = adamw->epsilon, .weight_decay = adamw->weight_decay,
                              .has_groups = adamw->has_groups, .decay = adamw->decay.items, .n_decay = adamw->decay.n,
                              .no_decay = adamw->no_decay.items, .n_no_decay = adamw->no_decay.n);
}

void
pawl_llmcp35_facts(const struct pawl_llmcp35 *checkpoint, struct pawl_llmcp35_facts *ret_facts)
{
    const struct lc_state *state = &checkpoint->state;
    struct pawl_llmcp35_facts facts = { .config = state->config,
                                        .adamw = pawl_lc_public_adamw(&state->adamw),
                                        .step = state->step,
                                        .beta1_power = state->beta1_power,
                                        .beta2_power = state->beta2_power,
                                        .rng_state = checkpoint->rng_state,
                                        .tokenizer = checkpoint->tokenizer,
                                        .parameters = state->n_parameters,
                                        .header_bytes = checkpoint->header_bytes,
                                        .payload_bytes = checkpoint->payload_bytes,
                                        .checksum = checkpoint->checksum };
    for (size_t i = 0; i < state->n_parameters; i++)
        facts.values += state->parameters[i].n;
    *ret_facts = facts;
}

const struct pawl_llmcp35_parameter *
pawl_llmcp35_parameters(const struct pawl_llmcp35 *checkpoint, size_t *ret_n)
{
    *ret_n = checkpoint->state.n_parameters;
    return checkpoint->state.views;
}

const struct pawl_llmcp35_record *
pawl_llmcp35_records(const struct pawl_llmcp35 *checkpoint, size_t *ret_n)
{
    *ret_n = checkpoint->n_records;
    return checkpoint->records;
}
