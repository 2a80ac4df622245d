/* checkpoint/state.h: what is inside a struct pawl_state. state.c fills it; save.c reads it, restore.c writes through it. */
#ifndef PAWL_CHECKPOINT_STATE_H
#define PAWL_CHECKPOINT_STATE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "os/forks.h"
#include "pawl/state.h"

/* Strings, shapes, strides and sources are copies in the state's arena. */
struct pawl_state_number {
    enum pawl_slot slot;
    struct pawl_str name;
    enum pawl_dtype dtype; /* F64, I64, U64 */
    void *at;
    size_t n;
    bool is_array; /* described with pawl_state_numbers: prints as a list */
};

struct pawl_state_rng {
    struct pawl_str name; /* "pcg": the run's own */
    struct pawl_pcg32 *rng;
};

struct pawl_state_opaque {
    struct pawl_str name, type;
    void *at;
    size_t bytes;
};

struct pawl_state_file {
    struct pawl_str name;
    struct pawl_buffer data;
};

/* Of a table of tensors: a hash, so that looking on does not look at the tensors, and an index + 1; 0: free. */
struct pawl_state_place {
    uint32_t hash, index;
};

/* A tensor that is not written, as it shares the storage of another one; both by their places among the state's tensors. */
struct pawl_state_alias {
    uint32_t tensor, target;
};

/* The tensors of one slot as its file has them (state_order.c). */
struct pawl_state_order {
    uint32_t *items; /* those that are written, by their places among the state's tensors, in the order of the file */
    size_t n;
    struct pawl_state_alias *aliases;
    size_t n_aliases;
    size_t n_described; /* the state's tensors, of both slots, when this was found */
};

struct pawl_state {
    struct pawl_handle_lock lock; /* taken by pawl_state_enter */
    struct pawl_arena arena;

    struct pawl_tensor *tensors; /* both slots, in the order of description */
    size_t n_tensors, tensors_capacity;
    /* open addressing over (slot, name) */
    struct pawl_state_place *tensor_table;
    size_t tensor_table_size;
    struct pawl_state_order orders[2]; /* of the model and of the optimizer, as they were last asked for */

    struct pawl_state_number *numbers;
    size_t n_numbers, numbers_capacity;
    struct pawl_state_rng *rngs;
    size_t n_rngs, rngs_capacity;
    struct pawl_state_opaque *opaques;
    size_t n_opaques, opaques_capacity;
    struct pawl_state_file *files;
    size_t n_files, files_capacity;
    struct pawl_pair *metadata; /* of the model, without format's default */
    size_t n_metadata, metadata_capacity;

    struct pawl_str optimizer; /* data NULL: none */
    struct pawl_buffer optimizer_json;
    struct pawl_str config_sha256, git_sha; /* data NULL: the default */
    struct pawl_stream *stream;             /* NULL: none */
};

/* Take the state's lock, for as long as a save or a restore. PAWL_WRONG_PROCESS in a child that was forked meanwhile. */
enum pawl_status pawl_state_enter(struct pawl_state *state, struct pawl_error *err);
void pawl_state_leave(struct pawl_state *state);

/* The tensor of that slot and name; NULL when there is none. */
const struct pawl_tensor *pawl_state_find_tensor(const struct pawl_state *state, enum pawl_slot slot,
                                                 struct pawl_str name);

/*
 * How the tensors of a slot stand in its file. Found when it is first asked for and kept: tensors are only ever added to a state, and none
 * is changed, so the order is another one only when there are more of them. The state's lock is held for as long as the answer is used.
 */
enum pawl_status pawl_state_order(struct pawl_state *state, enum pawl_slot slot,
                                  const struct pawl_state_order **ret_order, struct pawl_error *err);
void pawl_state_order_release(struct pawl_state_order *order);

/* Copy what the tensor points to (name, shape, strides, the source's struct) into the arena; false: no memory. */
bool pawl_tensor_keep(struct pawl_arena *arena, struct pawl_tensor *tensor);

#endif
