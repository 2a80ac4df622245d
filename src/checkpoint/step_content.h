/* checkpoint/step_content.h: the part of an examination that looks inside the files. For examine.c and restore.c. */
#ifndef PAWL_CHECKPOINT_STEP_CONTENT_H
#define PAWL_CHECKPOINT_STEP_CONTENT_H

#include "checkpoint/examine.h"
#include "pawl/digest.h"

/* Documents, tensor files, steps: the rows "content" and "step-mismatch" and the second "manifest" of the page's table. */
enum pawl_status pawl_step_check_content(struct pawl_step *step, const struct pawl_step_options *options,
                                         struct pawl_report *report, struct pawl_error *err);

/* Hash a listed file that is there and has not been hashed (else nothing is done): its state then says what came out, and the open verdict has
 * a problem when it is wrong. Only a fault of the machine is returned. */
enum pawl_status pawl_step_hash_listed(struct pawl_step *step, const struct pawl_receipt *row,
                                       struct pawl_report *report, struct pawl_error *err);

/* The bytes in front of a file's data, as they were parsed. */
void pawl_step_hash_header(struct pawl_sha256 *hash, const struct pawl_set_file *file);

#endif
