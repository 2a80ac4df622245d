/* checkpoint/state.c: describing a state. Everything that can be said about a thing alone is checked when it is described; what hangs on
 * values (a negative learning rate, an even increment) is checked at the save, in parts.c. */
#include "checkpoint/state.h"

#include <assert.h>
#include <stdlib.h>
#include "base/checked.h"
#include "base/str.h"
#include "checkpoint/names.h"
#include "base/options.h"
#include "codec/utf8.h"
#include "formats/json/json.h"
#include "formats/json/name_table.h"
#include "model/set.h"
#include "os/large.h"

/* ---- the lock ---- */

enum pawl_status
pawl_state_enter(struct pawl_state *state, struct pawl_error *err)
{
    return pawl_handle_lock_take(&state->lock, "the state", err);
}

void
pawl_state_leave(struct pawl_state *state)
{
    pawl_handle_lock_give(&state->lock);
}

static enum pawl_status
lock_state(struct pawl_state *state, struct pawl_error *err)
{
    if (state == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no state was given");
    return pawl_state_enter(state, err);
}

static enum pawl_status
unlock_state(struct pawl_state *state, enum pawl_status st)
{
    pawl_state_leave(state);
    return st;
}

/* ---- small helpers ---- */

/* Room for one more item; what is there stays there when memory is short. */
static bool
grow(void **items, size_t n, size_t *capacity, size_t each)
{
    if (n < *capacity)
        return true;
    size_t more = *capacity == 0 ? 8 : *capacity;
    size_t wanted, bytes;
    if (!pawl_add_size(*capacity, more, &wanted) || !pawl_mul_size(wanted, each, &bytes))
        return false;
    assert(bytes != 0);
    void *larger = realloc(*items, bytes);
    if (larger == NULL)
        return false;
    pawl_memory_large(larger, bytes);
    *items = larger;
    *capacity = wanted;
    return true;
}

static enum pawl_status
check_utf8(struct pawl_str text, const char *what, struct pawl_error *err)
{
    if (text.data == NULL && text.len != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%s of %zu bytes without data", what, text.len);
    size_t bad = pawl_utf8_first_bad(text.data, text.len);
    if (bad != text.len)
        return pawl_fail(err, PAWL_ARGUMENT, "utf8", "%s '%s' is not UTF-8: byte %zu", what, PAWL_SHOW(text), bad);
    return PAWL_OK;
}

static enum pawl_status
check_name(struct pawl_str name, const char *what, struct pawl_error *err)
{
    if (name.len == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%s has no name", what);
    return check_utf8(name, what, err);
}

static enum pawl_status
fail_taken(struct pawl_str name, const char *what, struct pawl_error *err)
{
    return pawl_fail(err, PAWL_ARGUMENT, "duplicate-key", "%s '%s' is described twice", what, PAWL_SHOW(name));
}

/* ---- life ---- */

enum pawl_status
pawl_state_new(struct pawl_state **ret_state, struct pawl_error *err)
{
    if (ret_state == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no place for the state was given");
    struct pawl_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return pawl_fail_memory(err, sizeof *state);
    enum pawl_status st = pawl_handle_lock_init(&state->lock, err);
    if (st == PAWL_OK)
        *ret_state = state;
    else
        free(state);
    return st;
}

void
pawl_state_free(struct pawl_state *state)
{
    if (state == NULL)
        return;
    for (size_t i = 0; i < state->n_files; i++)
        pawl_buffer_release(&state->files[i].data);
    pawl_buffer_release(&state->optimizer_json);
    free(state->tensors);
    free(state->tensor_table);
    for (size_t i = 0; i < sizeof state->orders / sizeof *state->orders; i++)
        pawl_state_order_release(&state->orders[i]);
    free(state->numbers);
    free(state->rngs);
    free(state->opaques);
    free(state->files);
    free(state->metadata);
    pawl_arena_release(&state->arena);
    pawl_handle_lock_release(&state->lock);
    free(state);
}

/* ---- tensors ---- */

static uint32_t
hash_tensor(enum pawl_slot slot, struct pawl_str name)
{
    return (uint32_t)pawl_name_hash(name) ^ (slot == PAWL_OPTIMIZER ? UINT32_C(0x9e3779b9) : 0);
}

/* Where (slot, name) stands in the table, or the free place where it would. */
static struct pawl_state_place *
find_place(const struct pawl_state *state, enum pawl_slot slot, struct pawl_str name, uint32_t hash)
{
    size_t mask = state->tensor_table_size - 1;
    size_t at = hash & mask;
    for (; state->tensor_table[at].index != 0; at = (at + 1) & mask) {
        if (state->tensor_table[at].hash != hash)
            continue;
        const struct pawl_tensor *tensor = &state->tensors[state->tensor_table[at].index - 1];
        if (tensor->slot == slot && pawl_str_equal(tensor->name, name))
            break;
    }
    return &state->tensor_table[at];
}

const struct pawl_tensor *
pawl_state_find_tensor(const struct pawl_state *state, enum pawl_slot slot, struct pawl_str name)
{
    if (state->tensor_table_size == 0)
        return NULL;
    uint32_t index = find_place(state, slot, name, hash_tensor(slot, name))->index;
    return index == 0 ? NULL : &state->tensors[index - 1];
}

/* A table that is at most half full with one more tensor. */
static bool
grow_table(struct pawl_state *state)
{
    if (state->n_tensors >= UINT32_MAX - 1)
        return false;
    if (state->n_tensors + 1 <= state->tensor_table_size / 2)
        return true;
    size_t size = state->tensor_table_size == 0 ? 64 : 2 * state->tensor_table_size;
    struct pawl_state_place *table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < state->tensor_table_size; i++) {
        struct pawl_state_place place = state->tensor_table[i];
        size_t at = place.hash & (size - 1);
        while (place.index != 0 && table[at].index != 0)
            at = (at + 1) & (size - 1);
        if (place.index != 0)
            table[at] = place;
    }
    free(state->tensor_table);
    state->tensor_table = table;
    state->tensor_table_size = size;
    return true;
}

static enum pawl_status
check_tensor(const struct pawl_state *state, const struct pawl_tensor *tensor, struct pawl_error *err)
{
    if (tensor->slot != PAWL_MODEL && tensor->slot != PAWL_OPTIMIZER)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "slot %d holds no tensors; PAWL_MODEL and PAWL_OPTIMIZER do",
                         (int)tensor->slot);
    enum pawl_status st = check_utf8(tensor->name, "the tensor's name", err);
    if (st != PAWL_OK)
        return st;
    if (pawl_str_equal(tensor->name, PAWL_STR("__metadata__")))
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a tensor can't be named '__metadata__'");
    if (pawl_state_find_tensor(state, tensor->slot, tensor->name) != NULL)
        return fail_taken(tensor->name, tensor->slot == PAWL_MODEL ? "tensor" : "optimizer tensor", err);
    if (tensor->stored != 0 && tensor->stored != tensor->dtype)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "tensor '%s' is to be stored as %s: a checkpoint keeps every bit of the %s that it is",
                         PAWL_SHOW(tensor->name),
                         pawl_dtype_name(tensor->stored) == NULL ? "no dtype" : pawl_dtype_name(tensor->stored),
                         pawl_dtype_name(tensor->dtype) == NULL ? "value" : pawl_dtype_name(tensor->dtype));
    uint64_t bytes;
    return pawl_tensor_check(tensor, &bytes, err);
}

bool
pawl_tensor_keep(struct pawl_arena *arena, struct pawl_tensor *tensor)
{
    if (!pawl_arena_copy_str(arena, tensor->name, &tensor->name))
        return false;
    if (tensor->rank == 0) {
        tensor->shape = NULL;
        tensor->strides = NULL;
    }
    if (tensor->shape != NULL) {
        uint64_t *shape = pawl_arena_take_array(arena, tensor->rank, sizeof *shape);
        if (shape == NULL)
            return false;
        memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
        tensor->shape = shape;
    }
    if (tensor->strides != NULL) {
        int64_t *strides = pawl_arena_take_array(arena, tensor->rank, sizeof *strides);
        if (strides == NULL)
            return false;
        memcpy(strides, tensor->strides, tensor->rank * sizeof *strides);
        tensor->strides = strides;
    }
    if (tensor->source != NULL) {
        struct pawl_source *source = pawl_arena_take(arena, sizeof *source);
        if (source == NULL)
            return false;
        *source = *tensor->source;
        tensor->source = source;
    }
    tensor->size = sizeof *tensor;
    return true;
}

static enum pawl_status
add_tensor(struct pawl_state *state, struct pawl_tensor tensor, struct pawl_error *err)
{
    enum pawl_status st = check_tensor(state, &tensor, err);
    if (st != PAWL_OK) {
        pawl_error_tensor(err, tensor.name);
        return st;
    }
    if (!grow((void **)&state->tensors, state->n_tensors, &state->tensors_capacity, sizeof *state->tensors) ||
        !grow_table(state) || !pawl_tensor_keep(&state->arena, &tensor))
        return pawl_fail_memory(err, sizeof tensor);
    uint32_t hash = hash_tensor(tensor.slot, tensor.name);
    *find_place(state, tensor.slot, tensor.name, hash) =
        (struct pawl_state_place){ hash, (uint32_t)state->n_tensors + 1 };
    state->tensors[state->n_tensors++] = tensor;
    return PAWL_OK;
}

enum pawl_status
pawl_state_tensor(struct pawl_state *state, const struct pawl_tensor *tensor, struct pawl_error *err)
{
    struct pawl_tensor known;
    if (tensor == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no tensor was given");
    enum pawl_status st = pawl_options_take(&known, sizeof known, tensor, tensor->size, "struct pawl_tensor", err);
    if (st == PAWL_OK)
        st = lock_state(state, err);
    if (st != PAWL_OK)
        return st;
    return unlock_state(state, add_tensor(state, known, err));
}

/* ---- numbers ---- */

static const struct {
    const char *name;
    bool is_integer;
} trainer_numbers[] = {
    { "tokens_seen", true }, { "data_cursor.shard", true }, { "data_cursor.offset", true },
    { "lr", false },         { "loss_scale", false },
};

static bool
is_cursor(struct pawl_str name)
{
    return pawl_str_starts(name, PAWL_STR("data_cursor."));
}

static enum pawl_status
check_trainer_number(const struct pawl_state *state, struct pawl_str name, enum pawl_dtype dtype,
                     struct pawl_error *err)
{
    size_t i = 0;
    while (i < sizeof trainer_numbers / sizeof *trainer_numbers &&
           !pawl_str_equal(name, pawl_str_z(trainer_numbers[i].name)))
        i++;
    if (i == sizeof trainer_numbers / sizeof *trainer_numbers)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the trainer's state has no number '%s'; it has tokens_seen, data_cursor.shard, "
                         "data_cursor.offset, lr and loss_scale, others belong in PAWL_EXTRA",
                         PAWL_SHOW(name));
    if (trainer_numbers[i].is_integer != (dtype != PAWL_F64))
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "'%s' of the trainer's state is %s, not %s", PAWL_SHOW(name),
                         trainer_numbers[i].is_integer ? "an integer (I64 or U64)" : "a double (F64)",
                         pawl_dtype_name(dtype));
    if (is_cursor(name) && state->stream != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "'%s' is the stream's, which is described already",
                         PAWL_SHOW(name));
    return PAWL_OK;
}

/* "x_spare" is where the pending normal of generator x is kept. */
static bool
is_spare_of(struct pawl_str number, struct pawl_str rng)
{
    return number.len == rng.len + strlen("_spare") && pawl_str_starts(number, rng) &&
           pawl_str_ends(number, PAWL_STR("_spare"));
}

static enum pawl_status
check_number(const struct pawl_state *state, const struct pawl_state_number *number, struct pawl_error *err)
{
    if (number->slot != PAWL_TRAINER && number->slot != PAWL_OPTIMIZER && number->slot != PAWL_EXTRA)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "slot %d holds no numbers; PAWL_TRAINER, PAWL_OPTIMIZER and PAWL_EXTRA do", (int)number->slot);
    enum pawl_status st = check_name(number->name, "a number", err);
    if (st != PAWL_OK)
        return st;
    if (number->dtype != PAWL_F64 && number->dtype != PAWL_I64 && number->dtype != PAWL_U64) {
        const char *dtype = pawl_dtype_name(number->dtype);
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "number '%s' is %s; numbers are F64, I64 or U64",
                         PAWL_SHOW(number->name), dtype == NULL ? "of no dtype" : dtype);
    }
    if (number->at == NULL && number->n != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "number '%s' lies nowhere", PAWL_SHOW(number->name));
    if (number->slot == PAWL_TRAINER)
        st = check_trainer_number(state, number->name, number->dtype, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < state->n_numbers; i++)
        if (state->numbers[i].slot == number->slot && pawl_str_equal(state->numbers[i].name, number->name))
            return fail_taken(number->name, "number", err);
    if (number->slot == PAWL_EXTRA) {
        for (size_t i = 0; i < state->n_rngs; i++)
            if (is_spare_of(number->name, state->rngs[i].name))
                return pawl_fail(err, PAWL_ARGUMENT, "duplicate-key",
                                 "number '%s': the name is that of a generator's pending normal",
                                 PAWL_SHOW(number->name));
        if (state->stream != NULL && is_spare_of(number->name, PAWL_STR("pcg")))
            return pawl_fail(err, PAWL_ARGUMENT, "duplicate-key",
                             "number '%s': the name is that of a generator's pending normal", PAWL_SHOW(number->name));
    }
    return PAWL_OK;
}

static enum pawl_status
add_number(struct pawl_state *state, struct pawl_state_number number, struct pawl_error *err)
{
    enum pawl_status st = lock_state(state, err);
    if (st != PAWL_OK)
        return st;
    st = check_number(state, &number, err);
    if (st == PAWL_OK &&
        (!grow((void **)&state->numbers, state->n_numbers, &state->numbers_capacity, sizeof *state->numbers) ||
         !pawl_arena_copy_str(&state->arena, number.name, &number.name)))
        st = pawl_fail_memory(err, sizeof number);
    if (st == PAWL_OK)
        state->numbers[state->n_numbers++] = number;
    return unlock_state(state, st);
}

enum pawl_status
pawl_state_number(struct pawl_state *state, enum pawl_slot slot, const char *name, enum pawl_dtype dtype, void *number,
                  struct pawl_error *err)
{
    return add_number(
        state,
        (struct pawl_state_number){
            .slot = slot, .name = pawl_str_z(name), .dtype = dtype, .at = number, .n = 1, .is_array = false },
        err);
}

enum pawl_status
pawl_state_numbers(struct pawl_state *state, enum pawl_slot slot, const char *name, enum pawl_dtype dtype,
                   void *numbers, size_t n, struct pawl_error *err)
{
    if (slot != PAWL_OPTIMIZER)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "slot %d holds no rows of numbers; only PAWL_OPTIMIZER does",
                         (int)slot);
    return add_number(
        state,
        (struct pawl_state_number){
            .slot = slot, .name = pawl_str_z(name), .dtype = dtype, .at = numbers, .n = n, .is_array = true },
        err);
}

/* ---- the optimizer ---- */

static enum pawl_status
set_optimizer(struct pawl_state *state, struct pawl_str name, struct pawl_error *err)
{
    enum pawl_status st = check_name(name, "the optimizer", err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] >= 'A' && name.data[i] <= 'Z')
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "the optimizer's name '%s' is not in lower case",
                             PAWL_SHOW(name));
    struct pawl_str copy;
    if (!pawl_arena_copy_str(&state->arena, name, &copy))
        return pawl_fail_memory(err, name.len + 1);
    state->optimizer = copy;
    return PAWL_OK;
}

enum pawl_status
pawl_state_optimizer(struct pawl_state *state, const char *name, struct pawl_error *err)
{
    enum pawl_status st = lock_state(state, err);
    return st != PAWL_OK ? st : unlock_state(state, set_optimizer(state, pawl_str_z(name), err));
}

static enum pawl_status
set_optimizer_json(struct pawl_state *state, struct pawl_str json, struct pawl_error *err)
{
    if (json.data == NULL) {
        pawl_buffer_release(&state->optimizer_json);
        return PAWL_OK;
    }
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer copy = PAWL_BUFFER_INIT;
    const struct pawl_json_value *value;
    enum pawl_status st = pawl_json_parse(&arena, json.data, json.len, 0, &value, err);
    if (st != PAWL_OK)
        st = pawl_context(err, st, "the optimizer's state");
    else if (value->type != PAWL_JSON_OBJECT)
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "the optimizer's state is no JSON object");
    else if (!pawl_buffer_add_str(&copy, json))
        st = pawl_fail_memory(err, json.len);
    pawl_arena_release(&arena);
    if (st == PAWL_OK) {
        pawl_buffer_release(&state->optimizer_json);
        state->optimizer_json = copy;
        return PAWL_OK;
    }
    pawl_buffer_release(&copy);
    /* A text of the caller's, not a file: what breaks its form is an argument. */
    if (st == PAWL_CORRUPT || st == PAWL_TRUNCATED) {
        st = PAWL_ARGUMENT;
        if (err != NULL)
            err->status = st;
    }
    return st;
}

enum pawl_status
pawl_state_optimizer_json(struct pawl_state *state, struct pawl_str json, struct pawl_error *err)
{
    enum pawl_status st = lock_state(state, err);
    return st != PAWL_OK ? st : unlock_state(state, set_optimizer_json(state, json, err));
}

/* ---- generators and the stream ---- */

static enum pawl_status
check_rng(const struct pawl_state *state, struct pawl_str name, struct pawl_error *err)
{
    enum pawl_status st = check_name(name, "a generator", err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < state->n_rngs; i++)
        if (pawl_str_equal(state->rngs[i].name, name))
            return fail_taken(name, "generator", err);
    if (state->stream != NULL && pawl_str_equal(name, PAWL_STR("pcg")))
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the run's own generator is the stream's, which is described already");
    for (size_t i = 0; i < state->n_numbers; i++)
        if (state->numbers[i].slot == PAWL_EXTRA && is_spare_of(state->numbers[i].name, name))
            return pawl_fail(err, PAWL_ARGUMENT, "duplicate-key",
                             "generator '%s': the place of its pending normal is taken by number '%s'", PAWL_SHOW(name),
                             PAWL_SHOW(state->numbers[i].name));
    return PAWL_OK;
}

static enum pawl_status
add_rng(struct pawl_state *state, struct pawl_state_rng rng, struct pawl_error *err)
{
    enum pawl_status st = check_rng(state, rng.name, err);
    if (st != PAWL_OK)
        return st;
    if (!grow((void **)&state->rngs, state->n_rngs, &state->rngs_capacity, sizeof *state->rngs) ||
        !pawl_arena_copy_str(&state->arena, rng.name, &rng.name))
        return pawl_fail_memory(err, sizeof rng);
    state->rngs[state->n_rngs++] = rng;
    return PAWL_OK;
}

enum pawl_status
pawl_state_rng(struct pawl_state *state, const char *name, struct pawl_pcg32 *rng, struct pawl_error *err)
{
    if (rng == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no generator was given");
    if (name != NULL && strcmp(name, "pcg") == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "'pcg' is the run's own generator: describe it without a name (NULL)");
    enum pawl_status st = lock_state(state, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_state_rng item = { name == NULL ? PAWL_STR("pcg") : pawl_str_z(name), rng };
    return unlock_state(state, add_rng(state, item, err));
}

static enum pawl_status
set_stream(struct pawl_state *state, struct pawl_stream *stream, struct pawl_error *err)
{
    if (state->stream != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a stream is described already");
    for (size_t i = 0; i < state->n_rngs; i++)
        if (pawl_str_equal(state->rngs[i].name, PAWL_STR("pcg")))
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "the run's own generator is described already, and a stream brings its own");
    for (size_t i = 0; i < state->n_numbers; i++) {
        const struct pawl_state_number *number = &state->numbers[i];
        if ((number->slot == PAWL_TRAINER && is_cursor(number->name)) ||
            (number->slot == PAWL_EXTRA && is_spare_of(number->name, PAWL_STR("pcg"))))
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "'%s' is described already, and a stream brings its own",
                             PAWL_SHOW(number->name));
    }
    state->stream = stream;
    return PAWL_OK;
}

enum pawl_status
pawl_state_stream(struct pawl_state *state, struct pawl_stream *stream, struct pawl_error *err)
{
    if (stream == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no stream was given");
    enum pawl_status st = lock_state(state, err);
    return st != PAWL_OK ? st : unlock_state(state, set_stream(state, stream, err));
}

/* ---- opaque states ---- */

static enum pawl_status
add_opaque(struct pawl_state *state, struct pawl_state_opaque opaque, struct pawl_error *err)
{
    enum pawl_status st = check_name(opaque.name, "an opaque state", err);
    if (st != PAWL_OK)
        return st;
    if (opaque.type.len == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "opaque state '%s' has no type", PAWL_SHOW(opaque.name));
    st = check_utf8(opaque.type, "the opaque state's type", err);
    if (st != PAWL_OK)
        return st;
    if (opaque.at == NULL && opaque.bytes != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "opaque state '%s': %zu bytes without data",
                         PAWL_SHOW(opaque.name), opaque.bytes);
    for (size_t i = 0; i < state->n_opaques; i++)
        if (pawl_str_equal(state->opaques[i].name, opaque.name))
            return fail_taken(opaque.name, "opaque state", err);
    if (!grow((void **)&state->opaques, state->n_opaques, &state->opaques_capacity, sizeof *state->opaques) ||
        !pawl_arena_copy_str(&state->arena, opaque.name, &opaque.name) ||
        !pawl_arena_copy_str(&state->arena, opaque.type, &opaque.type))
        return pawl_fail_memory(err, sizeof opaque);
    state->opaques[state->n_opaques++] = opaque;
    return PAWL_OK;
}

enum pawl_status
pawl_state_opaque(struct pawl_state *state, const char *name, const char *type, void *data, size_t bytes,
                  struct pawl_error *err)
{
    enum pawl_status st = lock_state(state, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_state_opaque opaque = { pawl_str_z(name), pawl_str_z(type), data, bytes };
    return unlock_state(state, add_opaque(state, opaque, err));
}

/* ---- texts, metadata, files ---- */

static bool
is_lower_hex(struct pawl_str text, size_t digits)
{
    if (text.len != digits)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!((text.data[i] >= '0' && text.data[i] <= '9') || (text.data[i] >= 'a' && text.data[i] <= 'f')))
            return false;
    return true;
}

static enum pawl_status
set_text(struct pawl_state *state, struct pawl_str name, struct pawl_str text, struct pawl_error *err)
{
    struct pawl_str *place;
    if (text.data == NULL && text.len != 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "text '%s' of %zu bytes without data", PAWL_SHOW(name),
                         text.len);
    if (pawl_str_equal(name, PAWL_STR("config_sha256"))) {
        place = &state->config_sha256;
        if (!is_lower_hex(text, 64))
            return pawl_fail(err, PAWL_ARGUMENT, "argument", "config_sha256 '%s' is not 64 lowercase hex digits",
                             PAWL_SHOW(text));
    } else if (pawl_str_equal(name, PAWL_STR("git_sha"))) {
        place = &state->git_sha;
        if (!is_lower_hex(text, 40) && !pawl_str_equal(text, PAWL_STR("unknown")))
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "git_sha '%s' is neither 40 lowercase hex digits nor 'unknown'", PAWL_SHOW(text));
    } else {
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the trainer's state has no text '%s'; it has config_sha256 and git_sha", PAWL_SHOW(name));
    }
    struct pawl_str copy;
    if (!pawl_arena_copy_str(&state->arena, text, &copy))
        return pawl_fail_memory(err, text.len + 1);
    *place = copy;
    return PAWL_OK;
}

enum pawl_status
pawl_state_text(struct pawl_state *state, const char *name, struct pawl_str text, struct pawl_error *err)
{
    enum pawl_status st = lock_state(state, err);
    return st != PAWL_OK ? st : unlock_state(state, set_text(state, pawl_str_z(name), text, err));
}

static enum pawl_status
set_metadata(struct pawl_state *state, struct pawl_str key, struct pawl_str value, struct pawl_error *err)
{
    enum pawl_status st = check_utf8(key, "the metadata key", err);
    if (st == PAWL_OK)
        st = check_utf8(value, "the metadata value", err);
    if (st != PAWL_OK)
        return st;
    if (pawl_str_starts(key, PAWL_STR("pawl.")))
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "metadata key '%s': keys that begin with 'pawl.' are Pawl's own", PAWL_SHOW(key));
    size_t at = 0;
    while (at < state->n_metadata && !pawl_str_equal(state->metadata[at].key, key))
        at++;
    struct pawl_pair pair;
    if (!grow((void **)&state->metadata, state->n_metadata, &state->metadata_capacity, sizeof *state->metadata) ||
        !pawl_arena_copy_str(&state->arena, key, &pair.key) || !pawl_arena_copy_str(&state->arena, value, &pair.value))
        return pawl_fail_memory(err, key.len + value.len + 2);
    state->metadata[at] = pair;
    if (at == state->n_metadata)
        state->n_metadata++;
    return PAWL_OK;
}

enum pawl_status
pawl_state_metadata(struct pawl_state *state, struct pawl_str key, struct pawl_str value, struct pawl_error *err)
{
    enum pawl_status st = lock_state(state, err);
    return st != PAWL_OK ? st : unlock_state(state, set_metadata(state, key, value, err));
}

static enum pawl_status
set_file(struct pawl_state *state, struct pawl_str name, const void *data, size_t bytes, struct pawl_error *err)
{
    bool is_known;
    enum pawl_status st = pawl_attachment_name_check(name, &is_known, err);
    if (st != PAWL_OK)
        return st;
    size_t at = 0;
    while (at < state->n_files && !pawl_str_equal(state->files[at].name, name))
        at++;
    if (data == NULL) {
        if (at < state->n_files) {
            pawl_buffer_release(&state->files[at].data);
            memmove(&state->files[at], &state->files[at + 1], (state->n_files - at - 1) * sizeof *state->files);
            state->n_files--;
        }
        return PAWL_OK;
    }
    struct pawl_state_file file = { .data = PAWL_BUFFER_INIT };
    if (!pawl_buffer_add(&file.data, data, bytes) ||
        !grow((void **)&state->files, state->n_files, &state->files_capacity, sizeof *state->files) ||
        !pawl_arena_copy_str(&state->arena, name, &file.name)) {
        pawl_buffer_release(&file.data);
        return pawl_fail_memory(err, bytes);
    }
    if (at == state->n_files)
        state->n_files++;
    else
        pawl_buffer_release(&state->files[at].data);
    state->files[at] = file;
    return PAWL_OK;
}

enum pawl_status
pawl_state_file(struct pawl_state *state, struct pawl_str name, const void *data, size_t bytes, struct pawl_error *err)
{
    enum pawl_status st = lock_state(state, err);
    return st != PAWL_OK ? st : unlock_state(state, set_file(state, name, data, bytes, err));
}
