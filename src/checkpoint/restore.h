/*
 * checkpoint/restore.h: putting a step back into a state. All names, shapes, dtypes and values are compared before the first byte of a
 * tensor is overwritten; tensors are hashed as they go into the caller's memory; numbers, generators, states and the stream are set last, when
 * nothing can fail any more.
 */
#ifndef PAWL_CHECKPOINT_RESTORE_H
#define PAWL_CHECKPOINT_RESTORE_H

#include "checkpoint/examine.h"
#include "checkpoint/state.h"

struct pawl_restore_request {
    bool lenient;    /* what does not fit is listed and left alone; whole slots that are not there are still an error */
    bool other_data; /* the stream may be over other shards */
    bool verify_first; /* hash the tensor files that have not been hashed before the first byte is overwritten */
    bool weights_only; /* the step was examined for its weights: nothing else can be asked for */
};

/* A value to be set at the end. */
struct pawl_restore_value {
    void *at;
    const void *from;
    size_t bytes;
};

struct pawl_restore_names {
    struct pawl_str *items;
    size_t n, capacity;
};

struct pawl_restore {
    struct pawl_step *step;
    struct pawl_state *state;
    struct pawl_restore_request request;
    struct pawl_report *report;
    struct pawl_error *err;
    struct pawl_arena scratch;
    struct pawl_restore_names missing, unexpected, mismatched;
    struct pawl_buffer hard; /* what is an error in the lenient form too, as the beginning of the message */
    struct pawl_restore_value *values;
    size_t n_values, values_capacity;
    struct pawl_pcg32 stream_rng; /* of the cursor, when the state has a stream */
};

/*
 * Compare an examined step with a state, whose lock the caller holds, and read the tensors. On PAWL_OK `restore` holds the values that are
 * still to be set, until pawl_restore_release; on failure it is empty.
 *
 * Returns PAWL_OK; PAWL_MISMATCH, every name in the report; PAWL_INCOMPLETE: a file turned out to be damaged, and the report's open
 * verdict says which (a mismatch is believed only of files whose hash is right); PAWL_ARGUMENT for a tensor with a source; a fault of
 * the machine.
 */
enum pawl_status pawl_restore_read(struct pawl_restore *restore, struct pawl_step *step, struct pawl_state *state,
                                   const struct pawl_restore_request *request, struct pawl_report *report,
                                   struct pawl_error *err);
/* Set the values: the last thing that a restore does, after all that can fail. Only the stream can refuse, and then nothing was set. `step` is
 * the one that was read, wherever it lies now. */
enum pawl_status pawl_restore_set(struct pawl_restore *restore, struct pawl_step *step, struct pawl_error *err);
void pawl_restore_release(struct pawl_restore *restore); /* fine on a zeroed one */

/* ---- inside: restore.c and restore_values.c ---- */

/* Add a name, printed and copied. False: memory. */
bool pawl_restore_add_name(struct pawl_restore *restore, struct pawl_restore_names *names, const char *format, ...)
    PAWL_PRINTF(3, 4);
/* Note an error that the lenient form has too. */
void pawl_restore_add_hard(struct pawl_restore *restore, const char *format, ...) PAWL_PRINTF(2, 3);

/* Compare numbers, generators, opaque states and the stream, and note what is to be set. Only memory and arguments fail. */
enum pawl_status pawl_restore_plan_values(struct pawl_restore *restore);

#endif
