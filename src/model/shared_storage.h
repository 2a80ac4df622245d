/* model/shared_storage.h: tensors that are one in memory (tied weights) and so are written once. */
#ifndef PAWL_MODEL_SHARED_STORAGE_H
#define PAWL_MODEL_SHARED_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include "pawl/tensor.h"

/* Can another tensor share its storage? Nothing lies at NULL, and what a source gives is not known to be the same. */
bool pawl_tensor_has_storage(const struct pawl_tensor *tensor);

/*
 * Do two tensors share storage? Address, dtype, shape and strides are equal, and so is what the file would hold. A stride of a dimension of one element
 * means nothing, and "row-major and packed" can be said with strides and without. The name least in byte order is the one that is written.
 */
bool pawl_tensor_shares(const struct pawl_tensor *a, const struct pawl_tensor *b);

/* Sort tensors that have storage so that those that share it stand together, the least name first. */
void pawl_tensors_sort_by_storage(const struct pawl_tensor **tensors, size_t n);

#endif
