/*
 * checkpoint/parts.h: a save is N parts and a commit. A part is one file of a step directory, written by one writer, and yields a
 * receipt; a committer turns receipts into MANIFEST.json (save.c).
 *
 * Planning takes all that a save is made of: what must be refused is refused there, and numbers, generators and cursor are copied.
 * Only the tensors' bytes are read later, when their part is written.
 */
#ifndef PAWL_CHECKPOINT_PARTS_H
#define PAWL_CHECKPOINT_PARTS_H

#include <stdatomic.h>
#include "checkpoint/documents.h"
#include "checkpoint/state.h"
#include "model/set.h"

struct pawl_part {
    const char *name;
    uint64_t bytes;   /* of the file: known before it is written */
    const void *text; /* a document; NULL when it is a file of tensors */
    /*
     * All bytes of a file of tensors, header and padding included, as a snapshot left them: aligned to 4096, large ones to 2 MiB,
     * zeros behind them up to a multiple of 4096, so that they can be written as they lie. NULL: they are read from the tensors.
     */
    const void *image;
    const struct pawl_split_file *file;
    const struct pawl_tensor *const *tensors; /* by the numbers in file->items */
    unsigned char
        *sums; /* of a file of tensors: where the sums of its blocks go, into pawl.sums; NULL: nobody wants them */
};

/* The tensors of one slot: those that are written, and the plan of their files. */
struct pawl_part_set {
    const struct pawl_tensor **tensors;
    size_t n;
    struct pawl_pair *metadata;
    size_t n_metadata;
    struct pawl_split split;
};

struct pawl_parts {
    struct pawl_arena arena;
    struct pawl_part *parts; /* in the order of writing */
    size_t n;
    struct pawl_part
        sums;       /* pawl.sums, which is whole when all parts are written: sealed and written last. name NULL: none */
    uint64_t bytes; /* of all of them */
    struct pawl_part_set model, optimizer;
    struct pawl_buffer optimizer_state, trainer_state, extra_state, stream_state, metrics, sums_text;
};

struct pawl_parts_options {
    int64_t step;
    enum pawl_profile profile;
    uint64_t max_file_bytes; /* 0: the rule's 5 GB */
    const struct pawl_metric *metrics;
    size_t n_metrics;
    bool with_sums;
};

/*
 * Plan the save of a state, whose lock is held until the parts are released. `parts` need not be initialised; on failure it is empty.
 * Returns PAWL_OK; PAWL_ARGUMENT and what a plan of a file answers: nothing was written; PAWL_NO_MEMORY.
 */
enum pawl_status pawl_parts_plan(struct pawl_parts *parts, struct pawl_state *state,
                                 const struct pawl_parts_options *options, struct pawl_error *err);
/*
 * Make the parts the save's own: copy what they borrow from the state, the files that go along and, with_tensors, what describes the tensors
 * (after a snapshot nobody asks for that), so that the state's lock can be let go. Only the tensors' memory and the contexts of sources are
 * still the caller's. After a failure release them.
 */
enum pawl_status pawl_parts_own(struct pawl_parts *parts, bool with_tensors, struct pawl_error *err);
void pawl_parts_release(struct pawl_parts *parts); /* fine on a zeroed one */

/* All parts are written: pawl.sums is ready to be. */
void pawl_parts_seal_sums(struct pawl_parts *parts);

/* What a save spends its time on, in nanoseconds of all its threads together. */
struct pawl_save_times {
    atomic_uint_fast64_t hash, write, sync;
};

/* How far a save has come, and who wants to know. */
struct pawl_meter {
    int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes); /* NULL: nobody */
    void *context;
    uint64_t done, told, total;
    struct pawl_save_times *times; /* NULL: nobody */
};

/*
 * Write one part into `dir`, sync and close it, alone (`lanes` NULL) or as one of several at once: then pawl_part_hash_two is what the group
 * takes two of them by, and the meter is this part's own. *ret_is_reserved (may be NULL): whether its space could be reserved before.
 * PAWL_CANCELED when the meter's owner wants no more. After a failure the file may be there, in part.
 */
enum pawl_status pawl_part_write(const struct pawl_part *part, const struct pawl_dir *dir, struct pawl_lanes *lanes,
                                 struct pawl_meter *meter, struct pawl_receipt *ret_receipt, bool *ret_is_reserved,
                                 struct pawl_error *err);
void pawl_part_hash_two(void *a, const void *a_data, void *b, const void *b_data, size_t bytes);

#endif
