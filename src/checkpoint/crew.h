/*
 * checkpoint/crew.h: the parts of a save, several at once.
 *
 * Nobody but the files can tell: receipts are those of one after the other, and whoever follows the save is spoken to from the thread that
 * saves, part by part in their order.
 */
#ifndef PAWL_CHECKPOINT_CREW_H
#define PAWL_CHECKPOINT_CREW_H

#include "checkpoint/parts.h"

/*
 * Is it worth it, and can it be done? Not where calls must come one after the other, and not with a tensor that has a source: its function is
 * called by the thread that saves, one call at a time.
 */
bool pawl_crew_can(const struct pawl_parts *parts, const struct pawl_os *os);

/* A part is written, synced and closed, as are those before it. Another answer than PAWL_OK ends the save. */
typedef enum pawl_status pawl_crew_written_fn(void *context, bool is_reserved, struct pawl_error *err);

/*
 * Write all parts into `dir`. receipts[i] is filled for each. Of several failures the one of the first part counts. After a failure some files may be
 * there, in part. *ret_has_begun false: there are no threads to be had, and nothing was done; write one after the other.
 */
enum pawl_status pawl_crew_write(const struct pawl_parts *parts, const struct pawl_dir *dir, struct pawl_meter *meter,
                                 struct pawl_receipt *receipts, pawl_crew_written_fn *written, void *context,
                                 bool *ret_has_begun, struct pawl_error *err);

#endif
