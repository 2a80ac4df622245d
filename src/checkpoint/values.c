/* checkpoint/values.c: what the numbers of a state are now, as the documents of a step. */
#include "checkpoint/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/str.h"
#include "checkpoint/documents.h"
#include "checkpoint/names.h"
#include "formats/json/json.h"
#include "pawl/digest.h"

/* ---- one number ---- */

static double
get_f64(const struct pawl_state_number *number, size_t i)
{
    double value;
    memcpy(&value, (const char *)number->at + i * sizeof value, sizeof value);
    return value;
}

static uint64_t
get_word(const struct pawl_state_number *number, size_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)number->at + i * sizeof value, sizeof value);
    return value;
}

/* An integer that a signed 64-bit field can hold. */
static enum pawl_status
get_i64(const struct pawl_state_number *number, int64_t *ret, struct pawl_error *err)
{
    uint64_t word = get_word(number, 0);
    if (number->dtype == PAWL_U64 && word > (uint64_t)INT64_MAX)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "number '%s' is %" PRIu64 ", the largest integer is 2^63-1",
                         PAWL_SHOW(number->name), word);
    memcpy(ret, &word, sizeof *ret);
    return PAWL_OK;
}

/* "inf" and "nan" by their names in JSON, which people know. */
static enum pawl_status
fail_double(struct pawl_str name, double value, const char *expected, struct pawl_error *err)
{
    char text[32];
    (void)pawl_json_print_f64(value, text);
    return pawl_fail(err, PAWL_ARGUMENT, "argument", "number '%s' is %s, expected %s", PAWL_SHOW(name), text, expected);
}

/* ---- the optimizer's state ---- */

struct member {
    struct pawl_str key;
    const struct pawl_state_number *number; /* NULL: the JSON value */
    const struct pawl_json_value *value;
};

static int
compare_members(const void *a, const void *b)
{
    return pawl_str_compare(((const struct member *)a)->key, ((const struct member *)b)->key);
}

struct pawl_str
pawl_values_optimizer_name(const struct pawl_state *state)
{
    return state->optimizer.data == NULL ? PAWL_STR("none") : state->optimizer;
}

static enum pawl_status
write_number(struct pawl_json_writer *writer, const struct pawl_state_number *number, struct pawl_error *err)
{
    if (number->is_array)
        pawl_json_write_array(writer);
    for (size_t i = 0; i < number->n; i++) {
        uint64_t word = get_word(number, i);
        if (number->dtype == PAWL_U64) {
            pawl_json_write_u64(writer, word);
        } else if (number->dtype == PAWL_I64) {
            int64_t value;
            memcpy(&value, &word, sizeof value);
            pawl_json_write_i64(writer, value);
        } else {
            double value = get_f64(number, i);
            if (!isfinite(value))
                return fail_double(number->name, value, "a finite double", err);
            pawl_json_write_f64(writer, value);
        }
    }
    if (number->is_array)
        pawl_json_write_array_end(writer);
    return PAWL_OK;
}

/* Both kinds of members in one list, sorted; a key twice is refused. */
static enum pawl_status
gather_members(const struct pawl_state *state, const struct pawl_json_value *object, struct member **ret_members,
               size_t *ret_n, struct pawl_error *err)
{
    size_t n_values = object == NULL ? 0 : object->n;
    size_t n = 0;
    struct member *members = calloc(state->n_numbers + n_values + 1, sizeof *members);
    if (members == NULL)
        return pawl_fail_memory(err, (state->n_numbers + n_values + 1) * sizeof *members);
    for (size_t i = 0; i < state->n_numbers; i++)
        if (state->numbers[i].slot == PAWL_OPTIMIZER)
            members[n++] = (struct member){ state->numbers[i].name, &state->numbers[i], NULL };
    for (size_t i = 0; i < n_values; i++)
        members[n++] = (struct member){ object->first[i].key, NULL, &object->first[i] };
    qsort(members, n, sizeof *members, compare_members);
    for (size_t i = 1; i < n; i++) {
        if (pawl_str_equal(members[i - 1].key, members[i].key)) {
            enum pawl_status st = pawl_fail(err, PAWL_ARGUMENT, "duplicate-key",
                                            "'%s' of the optimizer's state is both a number and a key of its JSON",
                                            PAWL_SHOW(members[i].key));
            free(members);
            return st;
        }
    }
    *ret_members = members;
    *ret_n = n;
    return PAWL_OK;
}

static double
lr_of(const struct member *member)
{
    if (member->value != NULL)
        return member->value->type == PAWL_JSON_NUMBER ? pawl_json_f64(member->value->text) : 0.0;
    if (member->number->is_array)
        return 0.0;
    uint64_t word = get_word(member->number, 0);
    int64_t value;
    memcpy(&value, &word, sizeof value);
    switch (member->number->dtype) {
    case PAWL_U64:
        return (double)word;
    case PAWL_I64:
        return (double)value;
    default:
        return get_f64(member->number, 0);
    }
}

enum pawl_status
pawl_values_optimizer(const struct pawl_state *state, struct pawl_buffer *out, double *ret_lr, struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *object = NULL;
    struct member *members = NULL;
    struct pawl_json_writer writer;
    size_t n = 0;
    double lr = 0.0;
    enum pawl_status st = PAWL_OK;

    if (state->optimizer_json.len != 0)
        st = pawl_json_parse(&arena, state->optimizer_json.data, state->optimizer_json.len, 0, &object, err);
    if (st == PAWL_OK)
        st = gather_members(state, object, &members, &n, err);
    if (st != PAWL_OK)
        goto out;
    if (n != 0 && pawl_str_equal(pawl_values_optimizer_name(state), PAWL_STR("none"))) {
        st =
            pawl_fail(err, PAWL_ARGUMENT, "argument",
                      "'%s' of the optimizer's state is described, and no optimizer: name it with pawl_state_optimizer",
                      PAWL_SHOW(members[0].key));
        goto out;
    }
    pawl_json_write_begin(&writer, out, PAWL_JSON_COMPACT, PAWL_JSON_RAW);
    pawl_json_write_object(&writer);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        pawl_json_write_key(&writer, members[i].key);
        if (members[i].number != NULL)
            st = write_number(&writer, members[i].number, err);
        else
            pawl_json_write_value(&writer, members[i].value, true);
        if (pawl_str_equal(members[i].key, PAWL_STR("lr")))
            lr = lr_of(&members[i]);
    }
    pawl_json_write_object_end(&writer);
    if (st == PAWL_OK && !pawl_buffer_ok(out))
        st = pawl_fail_memory(err, out->len);
    if (st == PAWL_OK)
        *ret_lr = lr;
out:
    free(members);
    pawl_arena_release(&arena);
    return st;
}

/* ---- trainer_state.json ---- */

static enum pawl_status
set_count(const struct pawl_state_number *number, int64_t *ret, struct pawl_error *err)
{
    int64_t value = 0;
    enum pawl_status st = get_i64(number, &value, err);
    if (st != PAWL_OK)
        return st;
    if (value < 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "number '%s' is %" PRId64 ", expected 0 or more",
                         PAWL_SHOW(number->name), value);
    *ret = value;
    return PAWL_OK;
}

static enum pawl_status
set_trainer_numbers(const struct pawl_state *state, struct pawl_trainer_state *trainer, struct pawl_error *err)
{
    bool has_shard = false;
    bool has_offset = false;
    for (size_t i = 0; i < state->n_numbers; i++) {
        const struct pawl_state_number *number = &state->numbers[i];
        enum pawl_status st = PAWL_OK;
        if (number->slot != PAWL_TRAINER)
            continue;
        if (pawl_str_equal(number->name, PAWL_STR("tokens_seen"))) {
            st = set_count(number, &trainer->tokens_seen, err);
        } else if (pawl_str_equal(number->name, PAWL_STR("data_cursor.shard"))) {
            st = set_count(number, &trainer->cursor_shard, err);
            has_shard = true;
        } else if (pawl_str_equal(number->name, PAWL_STR("data_cursor.offset"))) {
            st = set_count(number, &trainer->cursor_offset, err);
            has_offset = true;
        } else if (pawl_str_equal(number->name, PAWL_STR("lr"))) {
            trainer->lr = get_f64(number, 0);
        } else {
            trainer->loss_scale = get_f64(number, 0);
            trainer->has_loss_scale = true;
            if (!isfinite(trainer->loss_scale) || trainer->loss_scale <= 0.0)
                st = fail_double(number->name, trainer->loss_scale, "a finite double above 0", err);
        }
        if (st != PAWL_OK)
            return st;
    }
    if (has_shard != has_offset)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "data_cursor.%s is described and data_cursor.%s is not",
                         has_shard ? "shard" : "offset", has_shard ? "offset" : "shard");
    if (!isfinite(trainer->lr) || trainer->lr < 0.0)
        return fail_double(PAWL_STR("lr"), trainer->lr, "a finite double of 0 or more", err);
    return PAWL_OK;
}

static enum pawl_status
add_rng(struct pawl_arena *arena, struct pawl_trainer_document *document, struct pawl_str name,
        const struct pawl_pcg32 *rng, struct pawl_error *err)
{
    if (rng->inc % 2 == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "generator '%s' has the even increment %016" PRIx64 ": that is no PCG stream", PAWL_SHOW(name),
                         rng->inc);
    char *text = pawl_arena_take(arena, 2 * (size_t)17);
    char *keys = pawl_arena_take(arena, 2 * name.len + sizeof "_state" + sizeof "_inc");
    if (text == NULL || keys == NULL)
        return pawl_fail_memory(err, 2 * name.len + 64);
    pawl_pcg32_print(rng, text, text + 17);
    memcpy(keys, name.data, name.len);
    memcpy(keys + name.len, "_state", sizeof "_state");
    document->rng[document->n_rng++] = (struct pawl_pair){ pawl_str_make(keys, name.len + 6), pawl_str_make(text, 16) };
    keys += name.len + 6;
    memcpy(keys, name.data, name.len);
    memcpy(keys + name.len, "_inc", sizeof "_inc");
    document->rng[document->n_rng++] =
        (struct pawl_pair){ pawl_str_make(keys, name.len + 4), pawl_str_make(text + 17, 16) };
    return PAWL_OK;
}

static enum pawl_status
set_rngs(const struct pawl_state *state, const struct pawl_stream_cursor *cursor, struct pawl_arena *arena,
         struct pawl_trainer_document *document, struct pawl_error *err)
{
    const struct pawl_pcg32 no_generator = { 0, 1, 0.0, false };
    bool has_own = false;
    enum pawl_status st = PAWL_OK;

    document->rng = pawl_arena_take_array(arena, 2 * (state->n_rngs + 1), sizeof *document->rng);
    if (document->rng == NULL)
        return pawl_fail_memory(err, 2 * (state->n_rngs + 1) * sizeof *document->rng);
    document->n_rng = 0;
    for (size_t i = 0; i < state->n_rngs && st == PAWL_OK; i++) {
        has_own = has_own || pawl_str_equal(state->rngs[i].name, PAWL_STR("pcg"));
        st = add_rng(arena, document, state->rngs[i].name, state->rngs[i].rng, err);
    }
    if (st == PAWL_OK && !has_own)
        st = add_rng(arena, document, PAWL_STR("pcg"), state->stream != NULL ? &cursor->rng : &no_generator, err);
    return st;
}

static enum pawl_status
set_texts(const struct pawl_state *state, struct pawl_trainer_state *trainer, struct pawl_error *err)
{
    struct pawl_str git = state->git_sha.data != NULL ? state->git_sha : PAWL_STR("unknown");
    memcpy(trainer->git_sha, git.data, git.len);
    trainer->git_sha[git.len] = '\0';
    if (state->config_sha256.data != NULL) {
        memcpy(trainer->config_sha256, state->config_sha256.data, 64);
        trainer->config_sha256[64] = '\0';
        return PAWL_OK;
    }
    struct pawl_str config = PAWL_STR("");
    for (size_t i = 0; i < state->n_files; i++)
        if (pawl_str_equal(state->files[i].name, PAWL_STR(PAWL_CONFIG)))
            config = pawl_buffer_str(&state->files[i].data);
    unsigned char digest[32];
    enum pawl_status st = pawl_sha256_of(config.data, config.len, digest, err);
    if (st == PAWL_OK)
        pawl_sha256_print(digest, trainer->config_sha256);
    return st;
}

enum pawl_status
pawl_values_trainer(const struct pawl_state *state, int64_t step, double optimizer_lr, struct pawl_buffer *out,
                    struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_trainer_document document = { .state = { .step = step, .lr = optimizer_lr } };
    struct pawl_stream_cursor cursor;
    enum pawl_status st = set_trainer_numbers(state, &document.state, err);
    if (st == PAWL_OK && state->stream != NULL) {
        pawl_stream_cursor(state->stream, &cursor);
        if (cursor.shard > (uint64_t)INT64_MAX || cursor.offset > (uint64_t)INT64_MAX) {
            st = pawl_fail(err, PAWL_ARGUMENT, "argument",
                           "the stream stands at shard %" PRIu64 ", offset %" PRIu64 ": beyond 2^63-1", cursor.shard,
                           cursor.offset);
        } else {
            document.state.cursor_shard = (int64_t)cursor.shard;
            document.state.cursor_offset = (int64_t)cursor.offset;
        }
    }
    if (st == PAWL_OK)
        st = set_rngs(state, &cursor, &arena, &document, err);
    if (st == PAWL_OK)
        st = set_texts(state, &document.state, err);
    if (st == PAWL_OK && !pawl_trainer_state_print(&document, out))
        st = pawl_fail_memory(err, out->len);
    pawl_arena_release(&arena);
    return st;
}

/* ---- pawl.state.json ---- */

/* The pending normal of a generator, if there is one. */
static bool
add_spare(struct pawl_arena *arena, struct pawl_extra_document *document, struct pawl_str name,
          const struct pawl_pcg32 *rng)
{
    if (!rng->has_spare)
        return true;
    char *key = pawl_arena_take(arena, name.len + sizeof "_spare");
    if (key == NULL)
        return false;
    memcpy(key, name.data, name.len);
    memcpy(key + name.len, "_spare", sizeof "_spare");
    document->numbers[document->n_numbers++] =
        (struct pawl_named_number){ .name = pawl_str_make(key, name.len + 6), .real = rng->spare };
    return true;
}

static enum pawl_status
add_numbers(const struct pawl_state *state, struct pawl_extra_document *document, struct pawl_error *err)
{
    for (size_t i = 0; i < state->n_numbers; i++) {
        const struct pawl_state_number *number = &state->numbers[i];
        struct pawl_named_number named = { .name = number->name };
        if (number->slot != PAWL_EXTRA)
            continue;
        if (number->dtype == PAWL_F64) {
            named.real = get_f64(number, 0);
        } else {
            enum pawl_status st = get_i64(number, &named.integer, err);
            if (st != PAWL_OK)
                return st;
            named.is_integer = true;
        }
        document->numbers[document->n_numbers++] = named;
    }
    return PAWL_OK;
}

enum pawl_status
pawl_values_extra(const struct pawl_state *state, struct pawl_buffer *out, struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_extra_document document = { NULL, 0, NULL, 0 };
    size_t n_numbers = state->n_numbers + state->n_rngs + 1;
    enum pawl_status st = PAWL_OK;
    bool is_memory_out;

    document.numbers = pawl_arena_take_array(&arena, n_numbers, sizeof *document.numbers);
    document.opaques = pawl_arena_take_array(&arena, state->n_opaques + 1, sizeof *document.opaques);
    is_memory_out = document.numbers == NULL || document.opaques == NULL;
    if (!is_memory_out)
        st = add_numbers(state, &document, err);
    for (size_t i = 0; i < state->n_rngs && !is_memory_out; i++)
        is_memory_out = !add_spare(&arena, &document, state->rngs[i].name, state->rngs[i].rng);
    if (state->stream != NULL && !is_memory_out) {
        struct pawl_stream_cursor cursor;
        pawl_stream_cursor(state->stream, &cursor);
        is_memory_out = !add_spare(&arena, &document, PAWL_STR("pcg"), &cursor.rng);
    }
    for (size_t i = 0; i < state->n_opaques && !is_memory_out; i++) {
        const struct pawl_state_opaque *opaque = &state->opaques[i];
        document.opaques[document.n_opaques++] =
            (struct pawl_named_opaque){ opaque->name, opaque->type, opaque->at, opaque->bytes };
    }
    bool is_empty = document.n_numbers == 0 && document.n_opaques == 0;
    if (st == PAWL_OK && !is_memory_out && !is_empty)
        is_memory_out = !pawl_extra_state_print(&document, out);
    if (st == PAWL_OK && is_memory_out)
        st = pawl_fail_memory(err, n_numbers * sizeof *document.numbers);
    pawl_arena_release(&arena);
    return st;
}
