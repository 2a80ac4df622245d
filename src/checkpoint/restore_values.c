/* The part of a restore that is not tensors: what the documents of a step say, held against what the state asks for. */
#include "checkpoint/restore.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "checkpoint/names.h"
#include "formats/json/json.h"
#include "stream/stream_document.h"

static enum pawl_status
no_memory(struct pawl_restore *r)
{
    return pawl_fail_memory(r->err, sizeof(struct pawl_restore_value));
}

/* ---- noting what is to be set ---- */

static bool
add_value(struct pawl_restore *r, void *at, const void *from, size_t bytes)
{
    if (r->n_values == r->values_capacity) {
        size_t capacity = r->values_capacity == 0 ? 16 : r->values_capacity * 2;
        struct pawl_restore_value *values = realloc(r->values, capacity * sizeof *values);
        if (values == NULL)
            return false;
        r->values = values;
        r->values_capacity = capacity;
    }
    r->values[r->n_values++] = (struct pawl_restore_value){ at, from, bytes };
    return true;
}

/* A number as a document has it: exact. */
struct number {
    bool is_integer, is_negative;
    uint64_t magnitude; /* of an integer */
    double real;        /* else */
};

static struct number
number_of_named(const struct pawl_named_number *named)
{
    struct number number = { .is_integer = named->is_integer, .real = named->real };
    if (named->is_integer) {
        number.is_negative = named->integer < 0;
        number.magnitude = number.is_negative ? UINT64_C(0) - (uint64_t)named->integer : (uint64_t)named->integer;
    }
    return number;
}

static struct number
number_of_i64(int64_t value)
{
    const struct pawl_named_number named = { .is_integer = true, .integer = value };
    return number_of_named(&named);
}

static bool
number_of_json(const struct pawl_json_value *value, struct number *ret)
{
    uint64_t magnitude;
    int64_t integer;
    if (value->type != PAWL_JSON_NUMBER)
        return false;
    if (!pawl_json_is_integer(value->text)) {
        *ret = (struct number){ .real = pawl_json_f64(value->text) };
        return true;
    }
    if (pawl_json_u64(value->text, &magnitude)) {
        *ret = (struct number){ .is_integer = true, .magnitude = magnitude };
        return true;
    }
    if (!pawl_json_i64(value->text, &integer))
        return false;
    *ret = number_of_i64(integer);
    return true;
}

/* The bits of a number in a place of that dtype; false when the place can't hold exactly this value. */
static bool
number_bits(const struct number *number, enum pawl_dtype dtype, uint64_t *ret_bits)
{
    if (dtype == PAWL_F64) {
        double real = number->real;
        if (number->is_integer) {
            real = (double)number->magnitude;
            if (real >= 18446744073709551616.0 || (uint64_t)real != number->magnitude)
                return false;
            real = number->is_negative ? -real : real;
        }
        memcpy(ret_bits, &real, sizeof real);
        return true;
    }
    struct number integer = *number;
    if (!number->is_integer) {
        double size = fabs(number->real);
        if (!(size < 18446744073709551616.0) || trunc(size) != size || (size == 0 && signbit(number->real)))
            return false;
        integer = (struct number){ true, number->real < 0, (uint64_t)size, 0 };
    }
    uint64_t max = dtype == PAWL_U64 ? UINT64_MAX : (uint64_t)INT64_MAX;
    if (integer.is_negative ? dtype == PAWL_U64 || integer.magnitude > max + 1 : integer.magnitude > max)
        return false;
    *ret_bits = integer.is_negative ? UINT64_C(0) - integer.magnitude : integer.magnitude;
    return true;
}

static const char *
show_number(char text[32], const struct number *number)
{
    if (number->is_integer)
        (void)snprintf(text, 32, "%s%" PRIu64, number->is_negative ? "-" : "", number->magnitude);
    else
        (void)pawl_json_print_f64(number->real, text);
    return text;
}

/* Numbers of a document for a place of `n`: noted, or a mismatch under `where`. */
static enum pawl_status
plan_number(struct pawl_restore *r, const struct pawl_state_number *place, const struct number *numbers,
            const char *where)
{
    uint64_t *bits = pawl_arena_take_array(&r->scratch, place->n + 1, sizeof *bits);
    if (bits == NULL)
        return no_memory(r);
    for (size_t i = 0; i < place->n; i++) {
        char text[32];
        if (number_bits(&numbers[i], place->dtype, &bits[i]))
            continue;
        if (!pawl_restore_add_name(r, &r->mismatched, "%s %s: %s on disk, %s asked", where, PAWL_SHOW(place->name),
                                   show_number(text, &numbers[i]), pawl_dtype_name(place->dtype)))
            return no_memory(r);
        return PAWL_OK;
    }
    if (!add_value(r, place->at, bits, place->n * sizeof *bits))
        return no_memory(r);
    return PAWL_OK;
}

/* ---- trainer_state.json ---- */

static enum pawl_status
plan_trainer_numbers(struct pawl_restore *r)
{
    const struct pawl_trainer_state *trainer = &r->step->trainer.state;
    bool has_loss_scale = false;
    for (size_t i = 0; i < r->state->n_numbers; i++) {
        const struct pawl_state_number *place = &r->state->numbers[i];
        struct number number;
        if (place->slot != PAWL_TRAINER)
            continue;
        if (pawl_str_equal(place->name, PAWL_STR("tokens_seen"))) {
            number = number_of_i64(trainer->tokens_seen);
        } else if (pawl_str_equal(place->name, PAWL_STR("data_cursor.shard"))) {
            number = number_of_i64(trainer->cursor_shard);
        } else if (pawl_str_equal(place->name, PAWL_STR("data_cursor.offset"))) {
            number = number_of_i64(trainer->cursor_offset);
        } else if (pawl_str_equal(place->name, PAWL_STR("lr"))) {
            number = (struct number){ .real = trainer->lr };
        } else {
            has_loss_scale = true;
            number = (struct number){ .real = trainer->loss_scale };
            if (!trainer->has_loss_scale) {
                pawl_restore_add_hard(r, "the checkpoint has no loss_scale");
                if (!pawl_restore_add_name(r, &r->missing, "%s: loss_scale", PAWL_TRAINER_STATE))
                    return no_memory(r);
                continue;
            }
        }
        enum pawl_status st = plan_number(r, place, &number, PAWL_TRAINER_STATE ":");
        if (st != PAWL_OK)
            return st;
    }
    if (trainer->has_loss_scale && !has_loss_scale &&
        !pawl_restore_add_name(r, &r->unexpected, "%s: loss_scale", PAWL_TRAINER_STATE))
        return no_memory(r);
    return PAWL_OK;
}

/* The value of `<name><ending>` in rng; data NULL: none. */
static struct pawl_str
rng_text(const struct pawl_restore *r, struct pawl_str name, const char *ending)
{
    const struct pawl_trainer_document *trainer = &r->step->trainer;
    for (size_t i = 0; i < trainer->n_rng; i++) {
        struct pawl_str key = trainer->rng[i].key;
        if (key.len == name.len + strlen(ending) && pawl_str_starts(key, name) &&
            pawl_str_ends(key, pawl_str_z(ending)))
            return trainer->rng[i].value;
    }
    return PAWL_NO_STR;
}

static const struct pawl_named_number *
find_extra(const struct pawl_restore *r, struct pawl_str name, const char *ending)
{
    const struct pawl_extra_document *extra = &r->step->extra;
    for (size_t i = 0; i < extra->n_numbers; i++) {
        struct pawl_str key = extra->numbers[i].name;
        if (key.len == name.len + strlen(ending) && pawl_str_starts(key, name) &&
            pawl_str_ends(key, pawl_str_z(ending)))
            return &extra->numbers[i];
    }
    return NULL;
}

/* A generator and its pending normal. *ret_is_there false: it is missing, and noted. */
static enum pawl_status
read_rng(struct pawl_restore *r, struct pawl_str name, struct pawl_pcg32 *ret_rng, bool *ret_is_there)
{
    struct pawl_str state = rng_text(r, name, "_state");
    struct pawl_str inc = rng_text(r, name, "_inc");
    struct pawl_error own = PAWL_ERROR_INIT;
    bool is_own = pawl_str_equal(name, PAWL_STR("pcg"));

    *ret_is_there = false;
    if (state.data == NULL || inc.data == NULL || (is_own && !r->step->trainer.state.has_rng)) {
        if (is_own)
            pawl_restore_add_hard(r, "the checkpoint has no generator of the run's own (state 0, increment 1)");
        else
            pawl_restore_add_hard(r, "the checkpoint has no generator '%s'", PAWL_SHOW(name));
        if (!pawl_restore_add_name(r, &r->missing, "%s: rng.%s_state", PAWL_TRAINER_STATE, PAWL_SHOW(name)))
            return no_memory(r);
        return PAWL_OK;
    }
    if (pawl_pcg32_parse(ret_rng, state, inc, &own) != PAWL_OK) {
        pawl_restore_add_hard(r, "'%s' is no PCG stream: %s", PAWL_SHOW(name), own.message);
        if (!pawl_restore_add_name(r, &r->mismatched, "%s: rng.%s_inc: %s", PAWL_TRAINER_STATE, PAWL_SHOW(name),
                                   own.message))
            return no_memory(r);
        return PAWL_OK;
    }
    *ret_is_there = true;
    const struct pawl_named_number *spare = find_extra(r, name, "_spare");
    ret_rng->has_spare = spare != NULL;
    ret_rng->spare = spare == NULL ? 0.0 : spare->is_integer ? (double)spare->integer : spare->real;
    return PAWL_OK;
}

static enum pawl_status
plan_rngs(struct pawl_restore *r)
{
    const struct pawl_trainer_document *trainer = &r->step->trainer;
    bool has_own = r->state->stream != NULL;
    for (size_t i = 0; i < r->state->n_rngs; i++) {
        const struct pawl_state_rng *place = &r->state->rngs[i];
        struct pawl_pcg32 *rng = pawl_arena_take(&r->scratch, sizeof *rng);
        bool is_there;
        if (rng == NULL)
            return no_memory(r);
        has_own = has_own || pawl_str_equal(place->name, PAWL_STR("pcg"));
        enum pawl_status st = read_rng(r, place->name, rng, &is_there);
        if (st != PAWL_OK)
            return st;
        if (is_there && !add_value(r, place->rng, rng, sizeof *rng))
            return no_memory(r);
    }
    if (trainer->state.has_rng && !has_own &&
        !pawl_restore_add_name(r, &r->unexpected, "%s: rng.pcg_state", PAWL_TRAINER_STATE))
        return no_memory(r);
    for (size_t i = 0; i < trainer->n_rng; i++) {
        struct pawl_str key = trainer->rng[i].key;
        bool is_asked = pawl_str_equal(key, PAWL_STR("pcg_state")) || pawl_str_equal(key, PAWL_STR("pcg_inc"));
        for (size_t k = 0; k < r->state->n_rngs && !is_asked; k++) {
            struct pawl_str name = r->state->rngs[k].name;
            struct pawl_str ending = pawl_str_make(key.data + name.len, key.len < name.len ? 0 : key.len - name.len);
            is_asked = pawl_str_starts(key, name) &&
                       (pawl_str_equal(ending, PAWL_STR("_state")) || pawl_str_equal(ending, PAWL_STR("_inc")));
        }
        if (!is_asked && !pawl_restore_add_name(r, &r->unexpected, "%s: rng.%s", PAWL_TRAINER_STATE, PAWL_SHOW(key)))
            return no_memory(r);
    }
    return PAWL_OK;
}

/* ---- the optimizer's state ---- */

static enum pawl_status
plan_optimizer_number(struct pawl_restore *r, const struct pawl_state_number *place,
                      const struct pawl_json_value *value)
{
    static const char WHERE[] = "optimizer state:";
    struct number *numbers = pawl_arena_take_array(&r->scratch, place->n + 1, sizeof *numbers);
    if (numbers == NULL)
        return no_memory(r);
    bool is_array = value->type == PAWL_JSON_ARRAY;
    bool fits = is_array == place->is_array && (!is_array || value->n == place->n);
    for (size_t i = 0; i < place->n && fits; i++)
        fits = number_of_json(is_array ? &value->first[i] : value, &numbers[i]);
    if (fits)
        return plan_number(r, place, numbers, WHERE);
    char expected[48];
    (void)snprintf(expected, sizeof expected, place->is_array ? "a list of %zu numbers" : "a number", place->n);
    char found[48];
    (void)snprintf(found, sizeof found, is_array ? "a list of %zu" : "something else", value->n);
    if (!pawl_restore_add_name(r, &r->mismatched, "%s %s: %s on disk, %s asked", WHERE, PAWL_SHOW(place->name), found,
                               expected))
        return no_memory(r);
    return PAWL_OK;
}

/* Keys on disk that nobody asked for, by a number or by a JSON of the caller's own. `params` is for people. */
static enum pawl_status
note_unasked_keys(struct pawl_restore *r, const struct pawl_json_value *disk)
{
    const struct pawl_json_value *own = NULL;
    if (r->state->optimizer_json.len != 0) {
        enum pawl_status st =
            pawl_json_parse(&r->scratch, r->state->optimizer_json.data, r->state->optimizer_json.len, 0, &own, r->err);
        if (st != PAWL_OK)
            return st;
    }
    for (size_t i = 0; i < disk->n; i++) {
        struct pawl_str key = disk->first[i].key;
        bool is_asked = pawl_str_equal(key, PAWL_STR("params")) || (own != NULL && pawl_json_member(own, key) != NULL);
        for (size_t k = 0; k < r->state->n_numbers && !is_asked; k++)
            is_asked = r->state->numbers[k].slot == PAWL_OPTIMIZER && pawl_str_equal(r->state->numbers[k].name, key);
        if (!is_asked && !pawl_restore_add_name(r, &r->unexpected, "optimizer state: %s", PAWL_SHOW(key)))
            return no_memory(r);
    }
    return PAWL_OK;
}

static enum pawl_status
plan_optimizer(struct pawl_restore *r)
{
    const struct pawl_str none = PAWL_STR("none");
    struct pawl_str disk_name = r->step->optimizer_name;
    struct pawl_str name = r->state->optimizer.data == NULL ? none : r->state->optimizer;
    const struct pawl_json_value *disk = NULL;
    size_t n_asked = 0;

    if (!pawl_str_equal(name, disk_name)) {
        if (pawl_str_equal(name, none)) {
            if (!pawl_restore_add_name(r, &r->unexpected, "optimizer: %s", PAWL_SHOW(disk_name)))
                return no_memory(r);
        } else if (pawl_str_equal(disk_name, none)) {
            pawl_restore_add_hard(r, "the checkpoint has no optimizer, '%s' is asked", PAWL_SHOW(name));
            if (!pawl_restore_add_name(r, &r->missing, "optimizer: %s", PAWL_SHOW(name)))
                return no_memory(r);
        } else {
            pawl_restore_add_hard(r, "the checkpoint's optimizer is '%s', '%s' is asked", PAWL_SHOW(disk_name),
                                  PAWL_SHOW(name));
            if (!pawl_restore_add_name(r, &r->mismatched, "optimizer: %s on disk, %s asked", PAWL_SHOW(disk_name),
                                       PAWL_SHOW(name)))
                return no_memory(r);
        }
    }
    for (size_t i = 0; i < r->state->n_numbers; i++)
        n_asked += r->state->numbers[i].slot == PAWL_OPTIMIZER;
    if (r->step->optimizer_state.data == NULL) {
        if (n_asked != 0)
            pawl_restore_add_hard(r, "the optimizer's file was written without scalars (its metadata have no `state`)");
    } else {
        enum pawl_status st =
            pawl_json_parse(&r->scratch, r->step->optimizer_state.data, r->step->optimizer_state.len, 0, &disk, r->err);
        if (st == PAWL_OK)
            st = note_unasked_keys(r, disk);
        if (st != PAWL_OK)
            return st;
    }
    for (size_t i = 0; i < r->state->n_numbers; i++) {
        const struct pawl_state_number *place = &r->state->numbers[i];
        if (place->slot != PAWL_OPTIMIZER)
            continue;
        const struct pawl_json_value *value = disk == NULL ? NULL : pawl_json_member(disk, place->name);
        enum pawl_status st = PAWL_OK;
        if (value != NULL)
            st = plan_optimizer_number(r, place, value);
        else if (!pawl_restore_add_name(r, &r->missing, "optimizer state: %s", PAWL_SHOW(place->name)))
            st = no_memory(r);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* ---- pawl.state.json ---- */

static bool
is_asked_number(const struct pawl_restore *r, struct pawl_str name)
{
    for (size_t i = 0; i < r->state->n_numbers; i++) {
        if (r->state->numbers[i].slot == PAWL_EXTRA && pawl_str_equal(r->state->numbers[i].name, name))
            return true;
    }
    for (size_t i = 0; i <= r->state->n_rngs; i++) { /* a pending normal of a generator that is asked for */
        bool is_stream = i == r->state->n_rngs;
        if (is_stream && r->state->stream == NULL)
            break;
        struct pawl_str rng = is_stream ? PAWL_STR("pcg") : r->state->rngs[i].name;
        if (name.len == rng.len + strlen("_spare") && pawl_str_starts(name, rng) &&
            pawl_str_ends(name, PAWL_STR("_spare")))
            return true;
    }
    return false;
}

static enum pawl_status
plan_extra_numbers(struct pawl_restore *r)
{
    const struct pawl_extra_document *extra = &r->step->extra;
    for (size_t i = 0; i < r->state->n_numbers; i++) {
        const struct pawl_state_number *place = &r->state->numbers[i];
        if (place->slot != PAWL_EXTRA)
            continue;
        const struct pawl_named_number *named = find_extra(r, place->name, "");
        enum pawl_status st = PAWL_OK;
        if (named != NULL) {
            struct number number = number_of_named(named);
            st = plan_number(r, place, &number, PAWL_EXTRA_STATE ":");
        } else {
            pawl_restore_add_hard(r, "the checkpoint has no number '%s'", PAWL_SHOW(place->name));
            if (!pawl_restore_add_name(r, &r->missing, "%s: %s", PAWL_EXTRA_STATE, PAWL_SHOW(place->name)))
                st = no_memory(r);
        }
        if (st != PAWL_OK)
            return st;
    }
    for (size_t i = 0; i < extra->n_numbers; i++) {
        if (!is_asked_number(r, extra->numbers[i].name) &&
            !pawl_restore_add_name(r, &r->unexpected, "%s: %s", PAWL_EXTRA_STATE, PAWL_SHOW(extra->numbers[i].name)))
            return no_memory(r);
    }
    return PAWL_OK;
}

static enum pawl_status
plan_opaques(struct pawl_restore *r)
{
    const struct pawl_extra_document *extra = &r->step->extra;
    size_t n_found = 0;
    for (size_t i = 0; i < r->state->n_opaques; i++) {
        const struct pawl_state_opaque *place = &r->state->opaques[i];
        const struct pawl_named_opaque *found = NULL;
        bool ok = true;
        for (size_t k = 0; k < extra->n_opaques && found == NULL; k++) {
            if (pawl_str_equal(extra->opaques[k].name, place->name))
                found = &extra->opaques[k];
        }
        n_found += found != NULL;
        if (found == NULL) {
            pawl_restore_add_hard(r, "the checkpoint has no state '%s'", PAWL_SHOW(place->name));
            ok = pawl_restore_add_name(r, &r->missing, "%s: %s", PAWL_EXTRA_STATE, PAWL_SHOW(place->name));
        } else if (!pawl_str_equal(found->type, place->type) || found->bytes != place->bytes) {
            ok = pawl_restore_add_name(r, &r->mismatched, "%s: %s: %s of %zu bytes on disk, %s of %zu bytes asked",
                                       PAWL_EXTRA_STATE, PAWL_SHOW(place->name), PAWL_SHOW(found->type), found->bytes,
                                       PAWL_SHOW(place->type), place->bytes);
        } else {
            ok = add_value(r, place->at, found->data, found->bytes);
        }
        if (!ok)
            return no_memory(r);
    }
    for (size_t i = 0; i < extra->n_opaques && n_found < extra->n_opaques; i++) {
        bool is_asked = false;
        for (size_t k = 0; k < r->state->n_opaques && !is_asked; k++)
            is_asked = pawl_str_equal(r->state->opaques[k].name, extra->opaques[i].name);
        if (!is_asked &&
            !pawl_restore_add_name(r, &r->unexpected, "%s: %s", PAWL_EXTRA_STATE, PAWL_SHOW(extra->opaques[i].name)))
            return no_memory(r);
    }
    return PAWL_OK;
}

/* ---- the stream ---- */

static bool
has_stream_document(const struct pawl_restore *r)
{
    return r->step->stream_text.len != 0;
}

static enum pawl_status
plan_stream(struct pawl_restore *r)
{
    const struct pawl_trainer_state *trainer = &r->step->trainer.state;
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    bool is_there = false;
    size_t n = 0;

    if (r->state->stream == NULL) {
        if (has_stream_document(r) && !pawl_restore_add_name(r, &r->unexpected, "%s", PAWL_STREAM_STATE))
            return no_memory(r);
        return PAWL_OK;
    }
    st = read_rng(r, PAWL_STR("pcg"), &r->stream_rng, &is_there);
    if (st != PAWL_OK || !is_there)
        return st;
    if (has_stream_document(r) && !r->request.other_data)
        st = pawl_stream_check_document(r->state->stream, r->step->stream_text.data, r->step->stream_text.len, &own);
    if (st == PAWL_NO_MEMORY) {
        if (r->err != NULL)
            *r->err = own;
        return st;
    }
    /* A position outside the shards would be refused only when the tensors are overwritten already. */
    const struct pawl_stream_shard *shards = pawl_stream_shards(r->state->stream, &n);
    if (st == PAWL_OK && (uint64_t)trainer->cursor_shard >= n)
        st = pawl_fail(&own, PAWL_MISMATCH, "mismatch", "the cursor is in shard %" PRId64 ", the stream has %zu",
                       trainer->cursor_shard, n);
    else if (st == PAWL_OK && (uint64_t)trainer->cursor_offset > shards[trainer->cursor_shard].ids)
        st = pawl_fail(&own, PAWL_MISMATCH, "mismatch",
                       "the cursor is at id %" PRId64 " of shard %" PRId64 ", which has %" PRIu64,
                       trainer->cursor_offset, trainer->cursor_shard, shards[trainer->cursor_shard].ids);
    if (st == PAWL_OK)
        return PAWL_OK;
    pawl_restore_add_hard(r, "the stream is not the checkpoint's: %s", own.message);
    if (!pawl_restore_add_name(r, &r->mismatched, "%s: %s", PAWL_STREAM_STATE, own.message))
        return no_memory(r);
    return PAWL_OK;
}

static enum pawl_status
set_stream(struct pawl_restore *r)
{
    const struct pawl_trainer_state *trainer = &r->step->trainer.state;
    if (r->state->stream == NULL)
        return PAWL_OK;
    if (has_stream_document(r))
        return pawl_stream_restore_document(r->state->stream, r->step->stream_text.data, r->step->stream_text.len,
                                            r->request.other_data, r->err);
    const struct pawl_stream_cursor cursor = { (uint64_t)trainer->cursor_shard, (uint64_t)trainer->cursor_offset,
                                               r->stream_rng };
    return pawl_stream_restore(r->state->stream, &cursor, r->err);
}

/* ---- all of it ---- */

enum pawl_status
pawl_restore_plan_values(struct pawl_restore *r)
{
    enum pawl_status st = plan_trainer_numbers(r);
    if (st == PAWL_OK)
        st = plan_rngs(r);
    if (st == PAWL_OK)
        st = plan_optimizer(r);
    if (st == PAWL_OK)
        st = plan_extra_numbers(r);
    if (st == PAWL_OK)
        st = plan_opaques(r);
    if (st == PAWL_OK)
        st = plan_stream(r);
    return st;
}

enum pawl_status
pawl_restore_set(struct pawl_restore *r, struct pawl_step *step, struct pawl_error *err)
{
    r->step = step;
    r->err = err;
    if (r->request.weights_only)
        return PAWL_OK;
    enum pawl_status st = set_stream(r);
    if (st != PAWL_OK)
        return pawl_context(err, st, "restore the stream");
    for (size_t i = 0; i < r->n_values; i++) {
        if (r->values[i].bytes != 0)
            memcpy(r->values[i].at, r->values[i].from, r->values[i].bytes);
    }
    return PAWL_OK;
}
