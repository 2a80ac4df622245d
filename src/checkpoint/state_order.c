/* checkpoint/state_order.c: in which order a file has the tensors of a state, and which of them share storage. */
#include <stdlib.h>
#include "base/sort.h"
#include "base/str.h"
#include "checkpoint/state.h"
#include "formats/safetensors/safetensors.h"
#include "model/shared_storage.h"
#include "os/large.h"

/* Of a slot: how many tensors, and whether there is nothing to sort. */
struct survey {
    size_t n;
    bool are_addresses_ascending; /* strictly: then none shares another's storage */
    bool is_sorted;
    bool are_dtypes_equal;
};

static struct survey
survey_slot(const struct pawl_state *state, enum pawl_slot slot)
{
    struct survey survey = { 0, true, true, true };
    const struct pawl_tensor *before = NULL, *stored = NULL;
    for (size_t i = 0; i < state->n_tensors; i++) {
        const struct pawl_tensor *tensor = &state->tensors[i];
        if (tensor->slot != slot)
            continue;
        if (pawl_tensor_has_storage(tensor)) {
            survey.are_addresses_ascending =
                survey.are_addresses_ascending && (stored == NULL || (uintptr_t)stored->data < (uintptr_t)tensor->data);
            stored = tensor;
        }
        if (before != NULL) {
            survey.is_sorted =
                survey.is_sorted && pawl_st_compare(before->dtype, before->name, tensor->dtype, tensor->name) < 0;
            survey.are_dtypes_equal = survey.are_dtypes_equal && before->dtype == tensor->dtype;
        }
        before = tensor;
        survey.n++;
    }
    return survey;
}

/* What is worked with while an order is found. */
struct scratch {
    struct pawl_sort_item *items, *spare; /* room for all tensors of the slot; NULL: nothing is to be sorted */
    const struct pawl_tensor **equal;     /* those that begin where another one does */
    unsigned char *is_alias;              /* of each tensor of the state; NULL: none is */
};

/* The tensors of the slot that begin where another one of it does: only they are compared. */
static enum pawl_status
find_equal(const struct pawl_state *state, enum pawl_slot slot, struct scratch *scratch, size_t *ret_n,
           struct pawl_error *err)
{
    size_t n = 0, n_equal = 0;
    for (size_t i = 0; i < state->n_tensors; i++)
        if (state->tensors[i].slot == slot && pawl_tensor_has_storage(&state->tensors[i]))
            scratch->items[n++] = (struct pawl_sort_item){ (uint64_t)(uintptr_t)state->tensors[i].data, i };
    struct pawl_sort_item *sorted = pawl_sort_by_key(scratch->items, scratch->spare, n);
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = begin + 1;
        while (end < n && sorted[end].key == sorted[begin].key)
            end++;
        for (size_t i = begin; i < end && end - begin > 1; i++)
            sorted[n_equal++] = sorted[i];
    }
    *ret_n = n_equal;
    if (n_equal == 0)
        return PAWL_OK;
    scratch->equal = malloc(n_equal * sizeof *scratch->equal);
    if (scratch->equal == NULL)
        return pawl_fail_memory(err, n_equal * sizeof *scratch->equal);
    for (size_t i = 0; i < n_equal; i++)
        scratch->equal[i] = &state->tensors[sorted[i].item];
    return PAWL_OK;
}

/* The tensors that share the storage of one with a lesser name. */
static enum pawl_status
find_aliases(const struct pawl_state *state, enum pawl_slot slot, struct pawl_state_order *order,
             struct scratch *scratch, struct pawl_error *err)
{
    size_t n;
    enum pawl_status st = find_equal(state, slot, scratch, &n, err);
    if (st != PAWL_OK || n == 0)
        return st;
    order->aliases = malloc(n * sizeof *order->aliases);
    scratch->is_alias = calloc(state->n_tensors, 1);
    if (order->aliases == NULL || scratch->is_alias == NULL)
        return pawl_fail_memory(err, n * sizeof *order->aliases + state->n_tensors);
    pawl_tensors_sort_by_storage(scratch->equal, n);
    const struct pawl_tensor *target = scratch->equal[0];
    for (size_t i = 1; i < n; i++) {
        const struct pawl_tensor *tensor = scratch->equal[i];
        if (!pawl_tensor_shares(target, tensor)) {
            target = tensor;
            continue;
        }
        uint32_t alias = (uint32_t)(tensor - state->tensors);
        order->aliases[order->n_aliases++] = (struct pawl_state_alias){ alias, (uint32_t)(target - state->tensors) };
        scratch->is_alias[alias] = 1;
    }
    return PAWL_OK;
}

/* ---- the order ---- */

/* Descending dtype, then name. Names of one slot differ, so the order is one. */
static void
sort_order(const struct pawl_state *state, struct pawl_state_order *order, const struct scratch *scratch,
           bool are_dtypes_equal)
{
    struct pawl_sort_item *sorted = scratch->items;
    for (size_t i = 0; i < order->n; i++)
        sorted[i] = (struct pawl_sort_item){ 0, order->items[i] };
    pawl_sort_by_name(sorted, scratch->spare, order->n, &state->tensors[0].name, sizeof *state->tensors);
    if (!are_dtypes_equal) {
        for (size_t i = 0; i < order->n; i++)
            sorted[i].key = PAWL_DTYPE_COUNT - (uint64_t)state->tensors[sorted[i].item].dtype;
        sorted = pawl_sort_by_key(sorted, scratch->spare, order->n);
    }
    for (size_t i = 0; i < order->n; i++)
        order->items[i] = (uint32_t)sorted[i].item;
}

static enum pawl_status
fill_order(const struct pawl_state *state, enum pawl_slot slot, const struct survey *survey, struct scratch *scratch,
           struct pawl_state_order *order, struct pawl_error *err)
{
    size_t n = survey->n;
    enum pawl_status st = PAWL_OK;
    order->items = malloc((n + 1) * sizeof *order->items);
    if (order->items == NULL)
        return pawl_fail_memory(err, (n + 1) * sizeof *order->items);
    if (!survey->are_addresses_ascending || !survey->is_sorted) {
        scratch->items = malloc(2 * n * sizeof *scratch->items);
        if (scratch->items == NULL)
            return pawl_fail_memory(err, 2 * n * sizeof *scratch->items);
        pawl_memory_filled(scratch->items, 2 * n * sizeof *scratch->items);
        scratch->spare = scratch->items + n;
    }
    if (!survey->are_addresses_ascending)
        st = find_aliases(state, slot, order, scratch, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < state->n_tensors; i++)
        if (state->tensors[i].slot == slot && (scratch->is_alias == NULL || scratch->is_alias[i] == 0))
            order->items[order->n++] = (uint32_t)i;
    if (!survey->is_sorted)
        sort_order(state, order, scratch, survey->are_dtypes_equal);
    order->n_described = state->n_tensors;
    return PAWL_OK;
}

static enum pawl_status
find_order(const struct pawl_state *state, enum pawl_slot slot, struct pawl_state_order *order, struct pawl_error *err)
{
    const struct survey survey = survey_slot(state, slot);
    struct scratch scratch = { .items = NULL };
    enum pawl_status st = fill_order(state, slot, &survey, &scratch, order, err);
    free(scratch.items);
    free(scratch.equal);
    free(scratch.is_alias);
    return st;
}

enum pawl_status
pawl_state_order(struct pawl_state *state, enum pawl_slot slot, const struct pawl_state_order **ret_order,
                 struct pawl_error *err)
{
    struct pawl_state_order *order = &state->orders[slot == PAWL_MODEL ? 0 : 1];
    if (order->items == NULL || order->n_described != state->n_tensors) {
        pawl_state_order_release(order);
        enum pawl_status st = find_order(state, slot, order, err);
        if (st != PAWL_OK) {
            pawl_state_order_release(order);
            return st;
        }
    }
    *ret_order = order;
    return PAWL_OK;
}

void
pawl_state_order_release(struct pawl_state_order *order)
{
    free(order->items);
    free(order->aliases);
    *order = (struct pawl_state_order){ .items = NULL };
}
