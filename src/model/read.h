/* model/read.h: bytes of a tensor's file into the caller's memory, as they are or as another dtype. */
#ifndef PAWL_MODEL_READ_H
#define PAWL_MODEL_READ_H

#include "model/slice.h"
#include "os/file.h"

/* How values become those of the result. */
struct pawl_reading {
    const struct pawl_file *file;
    uint64_t begin; /* of the tensor, in the file */
    enum pawl_dtype from, to;
    enum pawl_overflow overflow;
};

/* All `bytes` of a tensor. */
enum pawl_status pawl_read_whole(const struct pawl_reading *reading, uint64_t bytes, void *data,
                                 struct pawl_error *err);
/* What was selected of it. */
enum pawl_status pawl_read_selection(const struct pawl_reading *reading, const struct pawl_selection *selection,
                                     void *data, struct pawl_error *err);

#endif
