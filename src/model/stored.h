/* model/stored.h: tensors that the file holds as a narrower float than memory does. */
#ifndef PAWL_MODEL_STORED_H
#define PAWL_MODEL_STORED_H

#include "os/file.h"
#include "pawl/tensor.h"

/* Whether `stored`, which is another dtype than the tensor's own, may be asked for: a float narrower than F32 for F32 values. */
enum pawl_status pawl_stored_check(const struct pawl_tensor *tensor, struct pawl_error *err);
/* Write the tensor, which has passed the checks, in its stored dtype. */
enum pawl_status pawl_stored_write(const struct pawl_tensor *tensor, struct pawl_writer *writer,
                                   struct pawl_error *err);

/* Of tensor_bytes.c: elements from `first` on, of a tensor in memory that has passed the check, packed and little-endian. */
void pawl_tensor_gather(const struct pawl_tensor *tensor, uint64_t first, size_t n, void *packed);
/* Of tensor_bytes.c: ask a source, which may leave the error to us. */
enum pawl_status pawl_source_read(const struct pawl_source *source, uint64_t offset, void *destination, size_t n,
                                  struct pawl_error *err);

#endif
