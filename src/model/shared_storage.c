#include "model/shared_storage.h"

#include <stdint.h>
#include <stdlib.h>
#include "base/str.h"

static int
compare_words(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static uint64_t
stride_of(const struct pawl_tensor *tensor, size_t i, uint64_t packed)
{
    if (tensor->shape[i] == 1)
        return 0;
    return tensor->strides != NULL ? (uint64_t)tensor->strides[i] : packed;
}

bool
pawl_tensor_has_storage(const struct pawl_tensor *tensor)
{
    return tensor->source == NULL && tensor->data != NULL;
}

/* The dtype that the file has. */
static uint64_t
stored_of(const struct pawl_tensor *tensor)
{
    return (uint64_t)(tensor->stored == 0 ? tensor->dtype : tensor->stored);
}

static int
compare_storage(const struct pawl_tensor *a, const struct pawl_tensor *b)
{
    int order = compare_words((uint64_t)(uintptr_t)a->data, (uint64_t)(uintptr_t)b->data);
    if (order == 0)
        order = compare_words((uint64_t)a->dtype, (uint64_t)b->dtype);
    if (order == 0)
        order = compare_words(stored_of(a), stored_of(b));
    if (order == 0 && stored_of(a) != (uint64_t)a->dtype)
        order = compare_words((uint64_t)a->overflow, (uint64_t)b->overflow);
    if (order == 0)
        order = compare_words(a->is_big_endian != 0, b->is_big_endian != 0);
    if (order == 0)
        order = compare_words(a->rank, b->rank);
    uint64_t packed = 1; /* of both, as long as the inner dimensions are equal */
    for (size_t i = a->rank; order == 0 && i-- > 0;) {
        order = compare_words(a->shape[i], b->shape[i]);
        if (order == 0)
            order = compare_words(stride_of(a, i, packed), stride_of(b, i, packed));
        packed *= a->shape[i];
    }
    return order;
}

bool
pawl_tensor_shares(const struct pawl_tensor *a, const struct pawl_tensor *b)
{
    return pawl_tensor_has_storage(a) && pawl_tensor_has_storage(b) && compare_storage(a, b) == 0;
}

static int
compare_storage_and_name(const void *a_item, const void *b_item)
{
    const struct pawl_tensor *a = *(const struct pawl_tensor *const *)a_item;
    const struct pawl_tensor *b = *(const struct pawl_tensor *const *)b_item;
    int order = compare_storage(a, b);
    return order != 0 ? order : pawl_str_compare(a->name, b->name);
}

void
pawl_tensors_sort_by_storage(const struct pawl_tensor **tensors, size_t n)
{
    if (n > 1)
        qsort(tensors, n, sizeof *tensors, compare_storage_and_name);
}
