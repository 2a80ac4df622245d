/* AdamW: its numbers, its groups (both at the end of stage B), its moments and powers (stage G). */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- configuration ---- */

static bool
is_power_base(double value)
{
    return isfinite(value) && value >= 0 && value < 1;
}

enum pawl_status
pawl_lc_check_adamw(const struct lc_adamw *adamw, struct lc_out *out)
{
    const struct {
        const char *cause, *name, *expected;
        double value;
        bool is_fine;
    } numbers[5] = {
        { "invalid_learning_rate", "the learning rate", "a finite number above 0", adamw->learning_rate,
          isfinite(adamw->learning_rate) && adamw->learning_rate > 0 },
        { "invalid_beta1", "beta1", "a number in [0, 1)", adamw->beta1, is_power_base(adamw->beta1) },
        { "invalid_beta2", "beta2", "a number in [0, 1)", adamw->beta2, is_power_base(adamw->beta2) },
        { "invalid_epsilon", "epsilon", "a finite number above 0", adamw->epsilon,
          isfinite(adamw->epsilon) && adamw->epsilon > 0 },
        { "invalid_weight_decay", "the weight decay", "a finite number not below 0", adamw->weight_decay,
          isfinite(adamw->weight_decay) && adamw->weight_decay >= 0 },
    };
    for (size_t i = 0; i < 5; i++) {
        if (!numbers[i].is_fine)
            return LC_REFUSE(out, "adamw_config", numbers[i].cause, LC_FIELDS(LC_F64("value", numbers[i].value)),
                             "%s is %g, expected %s", numbers[i].name, numbers[i].value, numbers[i].expected);
    }
    double product = adamw->learning_rate * adamw->weight_decay;
    if (adamw->weight_decay != 0 && !(isfinite(product) && product > 0 && product < 1))
        return LC_REFUSE(out, "adamw_config", "invalid_decay_product",
                         LC_FIELDS(LC_F64("learning_rate", adamw->learning_rate),
                                   LC_F64("weight_decay", adamw->weight_decay), LC_F64("product", product)),
                         "learning rate %g times weight decay %g is %g, expected a number between 0 and 1",
                         adamw->learning_rate, adamw->weight_decay, product);
    return PAWL_OK;
}

/* In file order: each name first for being empty, then for being an earlier one of the list. */
static enum pawl_status
check_list(struct lc_names list, const char *group, struct lc_key *keys, struct lc_out *out)
{
    for (size_t i = 0; i < list.n; i++)
        keys[i] = (struct lc_key){ list.items[i], 0, i };
    size_t repeat = pawl_lc_first_repeat(keys, list.n);
    for (size_t i = 0; i < list.n; i++) {
        if (list.items[i].len == 0)
            return LC_REFUSE(out, "adamw_config", "empty_grouped_parameter_name", LC_FIELDS(LC_WORD("group", group)),
                             "name %zu of the group %s is empty", i, group);
        if (i == repeat)
            return LC_REFUSE(out, "adamw_config", "duplicate_grouped_parameter",
                             LC_FIELDS(LC_WORD("group", group), LC_TEXT("name", list.items[i])),
                             "'%s' stands twice in the group %s", PAWL_SHOW(list.items[i]), group);
    }
    return PAWL_OK;
}

enum pawl_status
pawl_lc_check_groups(const struct lc_adamw *adamw, struct lc_out *out)
{
    const struct lc_names *decay = &adamw->decay, *no_decay = &adamw->no_decay;
    struct lc_key *keys = calloc(decay->n + no_decay->n + 1, sizeof *keys);
    if (keys == NULL)
        return pawl_lc_fail_memory(out, "decay_names");
    enum pawl_status st = check_list(*decay, "decay", keys, out);
    if (st == PAWL_OK)
        st = check_list(*no_decay, "no_decay", keys + decay->n, out);
    if (st == PAWL_OK && decay->n + no_decay->n == 0)
        st = LC_REFUSE(out, "adamw_config", "empty_parameter_groups", LC_NO_FIELDS,
                       "there are parameter groups, and both are empty");
    /* Both halves are sorted, and no name stands twice in one: the first pair of neighbours that are equal is the least. */
    size_t n = decay->n + no_decay->n;
    if (st == PAWL_OK)
        pawl_lc_keys_sort(keys, n);
    for (size_t i = 1; st == PAWL_OK && i < n; i++) {
        if (pawl_str_equal(keys[i - 1].bytes, keys[i].bytes))
            st = LC_REFUSE(out, "adamw_config", "parameter_in_multiple_groups",
                           LC_FIELDS(LC_TEXT("name", keys[i].bytes)), "'%s' stands in both groups",
                           PAWL_SHOW(keys[i].bytes));
    }
    free(keys);
    return st;
}

/* ---- moments ---- */

static enum pawl_status
check_finite(const struct lc_tensor *tensor, const char *kind, struct lc_out *out)
{
    for (size_t i = 0; i < tensor->n; i++) {
        if (!isfinite(tensor->values[i]))
            return LC_REFUSE(out, "adamw_state", "non_finite_moment",
                             LC_FIELDS(LC_TEXT("name", tensor->name), LC_WORD("kind", kind), LC_U64("index", i),
                                       LC_F64("value", tensor->values[i])),
                             "the %s moment of '%s' holds %g at index %zu", kind, PAWL_SHOW(tensor->name),
                             tensor->values[i], i);
    }
    return PAWL_OK;
}

enum pawl_status
pawl_lc_check_moments(const struct lc_moments *moments, struct lc_out *out)
{
    const struct lc_tensor *second = &moments->second;
    enum pawl_status st = check_finite(&moments->first, "first", out);
    if (st == PAWL_OK)
        st = check_finite(second, "second", out);
    for (size_t i = 0; st == PAWL_OK && i < second->n; i++) {
        if (second->values[i] < 0)
            st = LC_REFUSE(
                out, "adamw_state", "negative_second_moment",
                LC_FIELDS(LC_TEXT("name", second->name), LC_U64("index", i), LC_F64("value", second->values[i])),
                "the second moment of '%s' holds %g at index %zu", PAWL_SHOW(second->name), second->values[i], i);
    }
    return st;
}

static enum pawl_status
check_power(const char *which, double value, uint64_t step, struct lc_out *out)
{
    bool is_fine = step == 0 ? value == 1.0 : is_power_base(value);
    if (is_fine)
        return PAWL_OK;
    return LC_REFUSE(out, "adamw_state", "invalid_beta_power",
                     LC_FIELDS(LC_WORD("which", which), LC_F64("value", value), LC_U64("step", step)),
                     "the power of %s at step %" PRIu64 " is %g, expected %s", which, step, value,
                     step == 0 ? "exactly 1" : "a number in [0, 1)");
}

bool
pawl_lc_group_names(const struct lc_state *state, struct lc_names *ret_names)
{
    const struct lc_names *lists[2] = { &state->adamw.decay, &state->adamw.no_decay };
    struct lc_names all = { calloc(lists[0]->n + lists[1]->n + 1, sizeof *all.items), 0 };
    if (all.items == NULL)
        return false;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < lists[k]->n; i++)
            all.items[all.n++] = lists[k]->items[i];
    }
    pawl_lc_names_sort(all);
    *ret_names = all;
    return true;
}

static enum pawl_status
check_union(const struct lc_state *state, struct lc_out *out)
{
    struct lc_names all = { NULL, 0 };
    struct lc_names moments = { NULL, 0 };
    enum pawl_status st = PAWL_OK;
    if (!pawl_lc_group_names(state, &all) || !pawl_lc_moment_names(state, &moments))
        st = pawl_lc_fail_memory(out, "moment_count");
    else if (!pawl_lc_names_equal(all, moments))
        st = LC_REFUSE(out, "adamw_state", "parameter_groups_mismatch",
                       LC_FIELDS(LC_NAMES("expected", all), LC_NAMES("actual", moments)),
                       "the groups name %zu parameters, and not those of the %zu pairs of moments", all.n, moments.n);
    free(all.items);
    free(moments.items);
    return st;
}

enum pawl_status
pawl_lc_check_optimizer(const struct lc_state *state, struct lc_out *out)
{
    enum pawl_status st = check_power("beta1", state->beta1_power, state->step, out);
    if (st == PAWL_OK)
        st = check_power("beta2", state->beta2_power, state->step, out);
    if (st == PAWL_OK && (state->step == 0) != (state->n_moments == 0))
        st = LC_REFUSE(out, "adamw_state", "state_presence",
                       LC_FIELDS(LC_U64("step", state->step), LC_U64("entries", state->n_moments)),
                       "step %" PRIu64 " with %zu pairs of moments: there are none at step 0, and some after it",
                       state->step, state->n_moments);
    if (st == PAWL_OK && state->adamw.has_groups && state->step > 0)
        st = check_union(state, out);
    return st;
}

/* ---- from a file ---- */

enum pawl_status
pawl_lc_read_optimizer(const struct lc_file *file, struct lc_state *state, struct lc_out *out)
{
    if (file->n_moments > 0) {
        state->moments = calloc(file->n_moments, sizeof *state->moments);
        if (state->moments == NULL)
            return pawl_lc_fail_memory(out, "moment_count");
    }
    state->n_moments = file->n_moments;
    for (size_t i = 0; i < state->n_moments; i++) {
        const struct lc_record *a = &file->records[file->first_moment + 2 * i], *b = a + 1;
        struct lc_moments *moments = &state->moments[i];
        char shapes[2][96];
        out->offset = a->entry_offset;
        if (a->role != PAWL_LLMCP35_FIRST_MOMENT || a->dtype != PAWL_LLMCP35_F64)
            return pawl_lc_fail_identity(out, a, a->name, PAWL_LLMCP35_FIRST_MOMENT, PAWL_LLMCP35_F64);
        out->offset = b->entry_offset;
        if (b->role != PAWL_LLMCP35_SECOND_MOMENT || b->dtype != PAWL_LLMCP35_F64 || !pawl_str_equal(a->name, b->name))
            return pawl_lc_fail_identity(out, b, a->name, PAWL_LLMCP35_SECOND_MOMENT, PAWL_LLMCP35_F64);
        if (a->rank != b->rank || (a->rank > 0 && memcmp(a->dims, b->dims, 8 * (size_t)a->rank) != 0))
            return LC_REFUSE(out, "layout", "moment_shapes",
                             LC_FIELDS(LC_TEXT("name", a->name), LC_SHAPE("first", a->dims, a->rank),
                                       LC_SHAPE("second", b->dims, b->rank)),
                             "the moments of '%s' have the shapes %s and %s", PAWL_SHOW(a->name),
                             pawl_lc_show_shape(shapes[0], a->dims, a->rank),
                             pawl_lc_show_shape(shapes[1], b->dims, b->rank));
        enum pawl_status st = pawl_lc_read_tensor(file, a, state, &moments->first, out);
        if (st == PAWL_OK)
            st = pawl_lc_read_tensor(file, b, state, &moments->second, out);
        if (st == PAWL_OK)
            st = pawl_lc_check_moments(moments, out);
        if (st != PAWL_OK)
            return st;
    }
    out->offset = PAWL_OFFSET_NONE;
    return pawl_lc_check_optimizer(state, out);
}
