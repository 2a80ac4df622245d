/*
 * checkpoint/snapshot.h: the tensors of a save as they are now, laid out as its files will be: header, padding, every tensor packed. Nothing
 * is copied again after that: the hash and the disk read from it.
 */
#ifndef PAWL_CHECKPOINT_SNAPSHOT_H
#define PAWL_CHECKPOINT_SNAPSHOT_H

#include "checkpoint/parts.h"

/* Bytes that the images of the parts take; false when that is more than memory can be. */
bool pawl_snapshot_bytes(const struct pawl_parts *parts, size_t *ret_bytes);

/*
 * Fill `memory` (2 MiB aligned, as large as pawl_snapshot_bytes says) with the images and point the parts to them. What lies in memory is
 * copied by all processors; sources are read by this thread, each from front to back. PAWL_OK; what a source answers, its tensor named;
 * PAWL_NO_MEMORY.
 */
enum pawl_status pawl_snapshot_take(struct pawl_parts *parts, unsigned char *memory, struct pawl_error *err);

#endif
