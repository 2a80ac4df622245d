/* model/slice.h: which bytes of a tensor a slice is, and where each goes. */
#ifndef PAWL_MODEL_SLICE_H
#define PAWL_MODEL_SLICE_H

#include "pawl/model.h"

/* Each kept level has at least two runs, and their number fits 64 bits. */
#define PAWL_SLICE_LEVELS_MAX 64

struct pawl_slice_level {
    uint64_t count;
    uint64_t step;    /* bytes in the file from one to the next: always forward */
    int64_t out_step; /* elements of the result: backward where the slice's step is negative */
};

/*
 * A selection as runs of neighbouring elements. Axes inside a run, and such as lie one behind the other, are one. Walked with
 * the innermost level fastest the runs ascend in the file and never overlap, as each step of an axis is at least all that lies inside it.
 */
struct pawl_selection {
    uint64_t base;     /* bytes from the tensor's begin to the lowest run */
    uint64_t out_base; /* where that goes, in elements of the result */
    uint64_t run;      /* elements of a run */
    uint64_t elements; /* of the result; 0: nothing, and the rest means nothing */
    uint64_t bytes;    /* of the result, in the tensor's dtype */
    size_t n;
    struct pawl_slice_level levels[PAWL_SLICE_LEVELS_MAX]; /* innermost first */
};

/* Work out a slice, as pawl_slice_shape does; ret_shape may be NULL, and ret_rank with it. */
enum pawl_status pawl_selection_make(struct pawl_selection *selection, const struct pawl_tensor_info *tensor,
                                     const struct pawl_slice_axis *axes, size_t n, uint64_t *ret_shape,
                                     size_t *ret_rank, struct pawl_error *err);

#endif
