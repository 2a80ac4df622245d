/*
 * A checkpoint as a safetensors file and back, without loss: every record a tensor, everything else one JSON text in the
 * metadata, floats as their bits. What comes back passes the same rules as a file of the format's own.
 */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "formats/json/json.h"
#include "formats/safetensors/safetensors.h"

#define TOKEN_PREFIX "tokenizer.token."
#define PAIRS_NAME "tokenizer." LC_PAIRS_NAME
#define FIRST_PREFIX "adamw.first."
#define SECOND_PREFIX "adamw.second."

bool
pawl_lc_tensor_name(struct pawl_buffer *text, const struct pawl_llmcp35_record *record)
{
    static const char *const prefixes[] = { [PAWL_LLMCP35_TOKEN] = TOKEN_PREFIX,
                                            [PAWL_LLMCP35_MERGES] = "tokenizer.",
                                            [PAWL_LLMCP35_PARAMETER] = "",
                                            [PAWL_LLMCP35_FIRST_MOMENT] = FIRST_PREFIX,
                                            [PAWL_LLMCP35_SECOND_MOMENT] = SECOND_PREFIX };
    pawl_buffer_clear(text);
    return pawl_buffer_add_z(text, prefixes[record->role]) && pawl_buffer_add_str(text, record->name);
}

enum pawl_dtype
pawl_lc_tensor_dtype(enum pawl_llmcp35_dtype dtype)
{
    return dtype == PAWL_LLMCP35_U8 ? PAWL_U8 : dtype == PAWL_LLMCP35_U32 ? PAWL_U32 : PAWL_F64;
}

/* ---- the state as JSON ---- */

/* The fields in the order of the file. A member of `struct lc_text` says where each lies. */
enum field_type { FIELD_U64, FIELD_BITS, FIELD_NAMES };

struct text_field {
    const char *name;
    enum field_type type;
    void *at; /* uint64_t, double, struct lc_names */
};

#define TEXT_FIELDS_MAX 21

struct lc_text {
    uint64_t version, tokenizer_kind;
    struct lc_state *state;
    uint64_t rng_state;
};

static size_t
list_fields(struct lc_text *text, struct text_field fields[TEXT_FIELDS_MAX])
{
    struct lc_state *state = text->state;
    struct pawl_llmcp35_config *config = &state->config;
    struct lc_adamw *adamw = &state->adamw;
    const struct text_field all[TEXT_FIELDS_MAX] = {
        { "version", FIELD_U64, &text->version },
        { "tokenizer_kind", FIELD_U64, &text->tokenizer_kind },
        { "step", FIELD_U64, &state->step },
        { "rng_state", FIELD_U64, &text->rng_state },
        { "decoder_vocabulary", FIELD_U64, &config->vocabulary },
        { "decoder_width", FIELD_U64, &config->width },
        { "decoder_heads", FIELD_U64, &config->heads },
        { "decoder_ffn_width", FIELD_U64, &config->feed_forward },
        { "decoder_layers", FIELD_U64, &config->layers },
        { "decoder_positions", FIELD_U64, &config->positions },
        { "rope_base_bits", FIELD_BITS, &config->rope_base },
        { "rms_epsilon_bits", FIELD_BITS, &config->rms_epsilon },
        { "adamw_learning_rate_bits", FIELD_BITS, &adamw->learning_rate },
        { "adamw_beta1_bits", FIELD_BITS, &adamw->beta1 },
        { "adamw_beta2_bits", FIELD_BITS, &adamw->beta2 },
        { "adamw_epsilon_bits", FIELD_BITS, &adamw->epsilon },
        { "adamw_weight_decay_bits", FIELD_BITS, &adamw->weight_decay },
        { "beta1_power_bits", FIELD_BITS, &state->beta1_power },
        { "beta2_power_bits", FIELD_BITS, &state->beta2_power },
        { "decay_names", FIELD_NAMES, &adamw->decay },
        { "no_decay_names", FIELD_NAMES, &adamw->no_decay },
    };
    memcpy(fields, all, sizeof all);
    return adamw->has_groups ? TEXT_FIELDS_MAX : TEXT_FIELDS_MAX - 2;
}

bool
pawl_lc_state_text(const struct pawl_llmcp35 *checkpoint, struct pawl_buffer *out)
{
    struct text_field fields[TEXT_FIELDS_MAX];
    struct lc_state state = checkpoint->state; /* only looked at: list_fields hands out pointers for both ways */
    struct lc_text text = { 1, (uint64_t)checkpoint->tokenizer->kind, &state, checkpoint->rng_state };
    size_t n = list_fields(&text, fields);
    struct pawl_json_writer writer;
    pawl_json_write_begin(&writer, out, PAWL_JSON_COMPACT, PAWL_JSON_RAW);
    pawl_json_write_object(&writer);
    for (size_t i = 0; i < n; i++) {
        pawl_json_write_key(&writer, pawl_str_z(fields[i].name));
        if (fields[i].type == FIELD_U64) {
            pawl_json_write_u64(&writer, *(const uint64_t *)fields[i].at);
        } else if (fields[i].type == FIELD_BITS) {
            uint64_t bits;
            char hex[24];
            memcpy(&bits, fields[i].at, sizeof bits);
            (void)snprintf(hex, sizeof hex, "0x%016" PRIx64, bits);
            pawl_json_write_string(&writer, pawl_str_z(hex));
        } else {
            const struct lc_names *names = fields[i].at;
            pawl_json_write_array(&writer);
            for (size_t k = 0; k < names->n; k++)
                pawl_json_write_string(&writer, names->items[k]);
            pawl_json_write_array_end(&writer);
        }
    }
    pawl_json_write_object_end(&writer);
    return pawl_buffer_ok(out);
}

static bool
read_bits(const struct pawl_json_value *value, double *ret)
{
    uint64_t bits = 0;
    if (value->type != PAWL_JSON_STRING || value->text.len != 18 || memcmp(value->text.data, "0x", 2) != 0)
        return false;
    for (size_t i = 2; i < 18; i++) {
        char c = value->text.data[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        bits = bits << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    memcpy(ret, &bits, sizeof bits);
    return true;
}

static bool
read_names(const struct pawl_json_value *value, struct pawl_arena *arena, struct lc_names *ret, bool *ret_is_memory)
{
    if (value->type != PAWL_JSON_ARRAY)
        return false;
    struct pawl_str *items = pawl_arena_take_array(arena, value->n, sizeof *items);
    struct lc_names found = { items, value->n };
    for (size_t i = 0; i < value->n; i++) {
        if (value->first[i].type != PAWL_JSON_STRING)
            return false;
        if (items != NULL)
            items[i] = value->first[i].text;
    }
    if ((items == NULL && value->n > 0) || pawl_lc_names_copy(arena, ret, found.items, found.n) != PAWL_OK)
        *ret_is_memory = true;
    pawl_lc_names_sort(*ret);
    return !*ret_is_memory;
}

/* A file of another kind than ours has no fault as data: an error alone. */
#define REFUSE(out, ...) pawl_fail((out)->err, PAWL_CORRUPT, "content", __VA_ARGS__)

static enum pawl_status
parse_state(struct pawl_str json, struct lc_text *text, struct lc_out *out)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *value = NULL;
    struct text_field fields[TEXT_FIELDS_MAX];
    enum pawl_status st = pawl_json_parse(&arena, json.data, json.len, 0, &value, out->err);
    if (st != PAWL_OK) {
        st = st == PAWL_CORRUPT ? REFUSE(out, "the metadata '" PAWL_LLMCP35_STATE_KEY "' are not JSON") : st;
        goto out;
    }
    text->state->adamw.has_groups = pawl_json_member(value, PAWL_STR("decay_names")) != NULL;
    size_t n = list_fields(text, fields);
    if (value->type != PAWL_JSON_OBJECT || value->n != n) {
        st = REFUSE(out, "the metadata '" PAWL_LLMCP35_STATE_KEY "' have %zu members, expected %zu", value->n, n);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        const struct pawl_json_value *member = pawl_json_member(value, pawl_str_z(fields[i].name));
        bool is_memory = false;
        bool is_fine = member != NULL;
        if (is_fine && fields[i].type == FIELD_U64)
            is_fine = member->type == PAWL_JSON_NUMBER && pawl_json_u64(member->text, fields[i].at);
        else if (is_fine && fields[i].type == FIELD_BITS)
            is_fine = read_bits(member, fields[i].at);
        else if (is_fine)
            is_fine = read_names(member, &text->state->arena, fields[i].at, &is_memory);
        if (!is_fine) {
            st = is_memory ? pawl_lc_fail_memory(out, fields[i].name)
                           : REFUSE(out, "the metadata '" PAWL_LLMCP35_STATE_KEY "' have no good member '%s'",
                                    fields[i].name);
            goto out;
        }
    }
    if (text->version != 1 || (text->tokenizer_kind != 1 && text->tokenizer_kind != 2))
        st = REFUSE(out, "version %" PRIu64 " with a tokenizer of kind %" PRIu64 ", expected version 1 and kind 1 or 2",
                    text->version, text->tokenizer_kind);
out:
    pawl_arena_release(&arena);
    return st;
}

/* ---- export ---- */

struct writer_sink {
    struct lc_sink sink;
    struct pawl_writer *writer;
    enum pawl_status st;
    struct pawl_error *err;
};

static bool
write_bytes(struct lc_sink *sink, const void *bytes, size_t n)
{
    struct writer_sink *to = (struct writer_sink *)sink;
    to->st = pawl_writer_add(to->writer, bytes, n, to->err);
    return to->st == PAWL_OK;
}

static enum pawl_status
write_file(const struct pawl_llmcp35 *checkpoint, const struct pawl_st_plan *plan, const char *path, bool may_replace,
           struct pawl_error *err)
{
    struct pawl_publish publish = PAWL_PUBLISH_INIT;
    const struct pawl_tap no_tap = { NULL, NULL };
    enum pawl_status st =
        pawl_publish_begin(&publish, pawl_os_posix(), path, may_replace, plan->file_bytes, no_tap, err);
    if (st != PAWL_OK)
        return st;
    struct writer_sink sink = { { write_bytes }, &publish.writer, PAWL_OK, err };
    if (write_bytes(&sink.sink, plan->prefix.data, plan->prefix.len)) {
        for (size_t i = 0; i < checkpoint->n_records && sink.st == PAWL_OK; i++)
            (void)pawl_lc_emit_record(checkpoint, plan->order[i], &sink.sink);
    }
    st = sink.st == PAWL_OK ? pawl_publish_commit(&publish, err) : sink.st;
    pawl_publish_release(&publish);
    return st;
}

/* The tensors of all records, names in the arena. */
static bool
list_items(const struct pawl_llmcp35 *checkpoint, struct pawl_arena *arena, struct pawl_st_item *items)
{
    struct pawl_buffer name = PAWL_BUFFER_INIT;
    bool is_whole = true;
    for (size_t i = 0; is_whole && i < checkpoint->n_records; i++) {
        const struct pawl_llmcp35_record *record = &checkpoint->records[i];
        items[i].dtype = pawl_lc_tensor_dtype(record->dtype);
        items[i].rank = record->rank;
        items[i].shape = record->shape;
        is_whole =
            pawl_lc_tensor_name(&name, record) && pawl_arena_copy_str(arena, pawl_buffer_str(&name), &items[i].name);
    }
    pawl_buffer_release(&name);
    return is_whole;
}

enum pawl_status
pawl_llmcp35_export_safetensors(const struct pawl_llmcp35 *checkpoint, struct pawl_str path, uint8_t may_replace,
                                struct pawl_error *err)
{
    struct lc_out out = lc_out_make(NULL, err);
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer json = PAWL_BUFFER_INIT;
    struct pawl_st_plan plan = { .order = NULL };
    char *target = NULL;
    enum pawl_status st = PAWL_OK;
    if (path.len == 0 || memchr(path.data, 0, path.len) != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    struct pawl_st_item *items = calloc(checkpoint->n_records, sizeof *items);
    target = pawl_str_dup(path);
    if (items == NULL || target == NULL || !list_items(checkpoint, &arena, items) ||
        !pawl_lc_state_text(checkpoint, &json)) {
        st = pawl_lc_fail_memory(&out, "record_count");
        goto out;
    }
    const struct pawl_pair metadata[2] = { { PAWL_STR(PAWL_LLMCP35_FORMAT_KEY), PAWL_STR(PAWL_LLMCP35_FORMAT) },
                                           { PAWL_STR(PAWL_LLMCP35_STATE_KEY), pawl_buffer_str(&json) } };
    st = pawl_st_plan(&plan, items, checkpoint->n_records, metadata, 2, true, 0, err);
    if (st == PAWL_OK) {
        st = write_file(checkpoint, &plan, target, may_replace != 0, err);
        pawl_st_plan_release(&plan);
    }
out:
    free(items);
    free(target);
    pawl_buffer_release(&json);
    pawl_arena_release(&arena);
    return st;
}

/* ---- import ---- */

struct import {
    const unsigned char *data; /* the tensors' bytes */
    const struct pawl_st_header *header;
    size_t n_taken;
    struct pawl_buffer name;
    struct lc_out *out;
};

static enum pawl_status
find_tensor(struct import *import, const char *prefix, struct pawl_str rest, enum pawl_dtype dtype,
            const struct pawl_tensor_info **ret_tensor)
{
    pawl_buffer_clear(&import->name);
    if (!pawl_buffer_add_z(&import->name, prefix) || !pawl_buffer_add_str(&import->name, rest))
        return pawl_lc_fail_memory(import->out, "record_name");
    struct pawl_str name = pawl_buffer_str(&import->name);
    const struct pawl_tensor_info *tensor = pawl_st_find(import->header, name);
    if (tensor == NULL)
        return REFUSE(import->out, "there is no tensor '%s'", PAWL_SHOW(name));
    if (tensor->dtype != dtype)
        return REFUSE(import->out, "tensor '%s' is %s, expected %s", PAWL_SHOW(name), pawl_dtype_name(tensor->dtype),
                      pawl_dtype_name(dtype));
    import->n_taken++;
    *ret_tensor = tensor;
    return PAWL_OK;
}

static enum pawl_status
import_values(struct import *import, const char *prefix, struct pawl_str name, struct lc_state *state,
              struct lc_tensor *tensor)
{
    const struct pawl_tensor_info *found = NULL;
    enum pawl_status st = find_tensor(import, prefix, name, PAWL_F64, &found);
    if (st != PAWL_OK)
        return st;
    uint64_t *shape = pawl_arena_take_array(&state->arena, found->rank, sizeof *shape);
    tensor->rank = found->rank;
    tensor->shape = shape;
    tensor->n = (size_t)(found->end - found->begin) / 8;
    tensor->values = pawl_lc_values_new(tensor->n);
    if ((shape == NULL && found->rank > 0) || tensor->values == NULL ||
        !pawl_arena_copy_str(&state->arena, name, &tensor->name))
        return pawl_lc_fail_memory(import->out, "payload");
    for (uint32_t i = 0; i < found->rank; i++)
        shape[i] = found->shape[i];
    for (size_t i = 0; i < tensor->n; i++) {
        uint64_t bits = pawl_get_u64le(import->data + found->begin + 8 * i);
        memcpy(&tensor->values[i], &bits, sizeof bits);
    }
    return PAWL_OK;
}

static size_t
count_prefix(const struct pawl_st_header *header, struct pawl_str prefix)
{
    size_t n = 0;
    for (size_t i = 0; i < header->n; i++)
        n += pawl_str_starts(header->tensors[i].name, prefix);
    return n;
}

static enum pawl_status
import_literal(struct import *import, struct pawl_llmcp35_tokenizer **ret_tokenizer)
{
    size_t n = count_prefix(import->header, PAWL_STR(TOKEN_PREFIX));
    struct pawl_str *pieces = calloc(n + 1, sizeof *pieces);
    enum pawl_status st = PAWL_OK;
    if (pieces == NULL)
        return pawl_lc_fail_memory(import->out, "tokenizer_vocabulary");
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        const struct pawl_tensor_info *found = NULL;
        char text[LC_NAME_TOKENS_MAX];
        (void)snprintf(text, sizeof text, "%zu", i);
        st = find_tensor(import, TOKEN_PREFIX, pawl_str_z(text), PAWL_U8, &found);
        if (st == PAWL_OK && found->rank != 1)
            st = REFUSE(import->out, "tensor '%s' has rank %" PRIu32 ", expected 1", PAWL_SHOW(found->name),
                        found->rank);
        if (st == PAWL_OK)
            pieces[i] = pawl_str_make((const char *)import->data + found->begin, (size_t)(found->end - found->begin));
    }
    if (st == PAWL_OK)
        st = pawl_llmcp35_tokenizer_literal(pieces, n, ret_tokenizer, import->out->ret_fault, import->out->err);
    free(pieces);
    return st;
}

static enum pawl_status
import_bpe(struct import *import, struct pawl_llmcp35_tokenizer **ret_tokenizer)
{
    const struct pawl_tensor_info *found = NULL;
    enum pawl_status st = find_tensor(import, PAIRS_NAME, pawl_str_make(NULL, 0), PAWL_U32, &found);
    if (st == PAWL_OK && (found->rank != 2 || found->shape[1] != 2))
        st = REFUSE(import->out, "tensor '" PAIRS_NAME "' has not the shape [n, 2]");
    if (st != PAWL_OK)
        return st;
    size_t n = (size_t)found->shape[0];
    uint32_t *pairs = malloc(8 * n + 1);
    if (pairs == NULL)
        return pawl_lc_fail_memory(import->out, "payload");
    for (size_t i = 0; i < 2 * n; i++)
        pairs[i] = pawl_get_u32le(import->data + found->begin + 4 * i);
    st = pawl_llmcp35_tokenizer_bpe(pairs, n, ret_tokenizer, import->out->ret_fault, import->out->err);
    free(pairs);
    return st;
}

/* Stage F over tensors found by the names that the configuration asks for. */
static enum pawl_status
import_model(struct import *import, struct lc_state *state)
{
    uint64_t n;
    struct pawl_buffer name = PAWL_BUFFER_INIT;
    enum pawl_status st = PAWL_OK;
    if (!pawl_mul_u64(state->config.layers, 9, &n) || !pawl_add_u64(n, 2, &n) || n > import->header->n)
        return REFUSE(import->out, "%" PRIu64 " layers have more parameters than there are tensors",
                      state->config.layers);
    state->parameters = calloc((size_t)n, sizeof *state->parameters);
    if (state->parameters == NULL)
        return pawl_lc_fail_memory(import->out, "parameter_count");
    state->n_parameters = (size_t)n;
    for (size_t i = 0; st == PAWL_OK && i < state->n_parameters; i++) {
        st = pawl_lc_expected_name(&name, i, state->config.layers)
                 ? import_values(import, "", pawl_buffer_str(&name), state, &state->parameters[i])
                 : pawl_lc_fail_memory(import->out, "parameter_count");
        if (st == PAWL_OK)
            st = pawl_lc_check_parameter(&state->parameters[i], import->out);
    }
    pawl_buffer_release(&name);
    return st == PAWL_OK ? pawl_lc_check_model(state, import->out) : st;
}

static enum pawl_status
import_optimizer(struct import *import, struct lc_state *state)
{
    struct lc_names names = { NULL, 0 };
    enum pawl_status st = PAWL_OK;
    if (count_prefix(import->header, PAWL_STR("adamw.")) == 0)
        return pawl_lc_check_optimizer(state, import->out);
    state->moments = calloc(state->n_parameters, sizeof *state->moments);
    if (state->moments == NULL || !pawl_lc_parameter_names(state, &names))
        return pawl_lc_fail_memory(import->out, "moment_count");
    state->n_moments = state->n_parameters;
    for (size_t i = 0; st == PAWL_OK && i < names.n; i++) {
        struct lc_moments *moments = &state->moments[i];
        st = import_values(import, FIRST_PREFIX, names.items[i], state, &moments->first);
        if (st == PAWL_OK)
            st = import_values(import, SECOND_PREFIX, names.items[i], state, &moments->second);
        if (st == PAWL_OK && !pawl_lc_shape_equal(&moments->first, &moments->second))
            st = LC_REFUSE(import->out, "layout", "moment_shapes",
                           LC_FIELDS(LC_TEXT("name", names.items[i]),
                                     LC_SHAPE("first", moments->first.shape, moments->first.rank),
                                     LC_SHAPE("second", moments->second.shape, moments->second.rank)),
                           "the moments of '%s' have two shapes", PAWL_SHOW(names.items[i]));
        if (st == PAWL_OK)
            st = pawl_lc_check_moments(moments, import->out);
    }
    free(names.items);
    return st == PAWL_OK ? pawl_lc_check_optimizer(state, import->out) : st;
}

static enum pawl_status
import_all(struct import *import, struct pawl_llmcp35 *checkpoint)
{
    struct lc_state *state = &checkpoint->state;
    struct lc_out *out = import->out;
    const struct pawl_str *format = pawl_st_metadata(import->header, PAWL_STR(PAWL_LLMCP35_FORMAT_KEY));
    const struct pawl_str *json = pawl_st_metadata(import->header, PAWL_STR(PAWL_LLMCP35_STATE_KEY));
    struct lc_text text = { 0, 0, state, 0 };
    if (format == NULL || !pawl_str_equal(*format, PAWL_STR(PAWL_LLMCP35_FORMAT)) || json == NULL)
        return REFUSE(out, "the metadata have not the format '" PAWL_LLMCP35_FORMAT
                           "' and the key '" PAWL_LLMCP35_STATE_KEY "'");
    state->config.size = sizeof state->config;
    enum pawl_status st = parse_state(*json, &text, out);
    checkpoint->rng_state = text.rng_state;
    if (st == PAWL_OK)
        st = pawl_lc_check_adamw(&state->adamw, out);
    if (st == PAWL_OK && state->adamw.has_groups)
        st = pawl_lc_check_groups(&state->adamw, out);
    if (st == PAWL_OK)
        st = text.tokenizer_kind == 1 ? import_literal(import, &checkpoint->tokenizer)
                                      : import_bpe(import, &checkpoint->tokenizer);
    if (st == PAWL_OK)
        st = import_model(import, state);
    if (st == PAWL_OK)
        st = import_optimizer(import, state);
    if (st == PAWL_OK)
        st = pawl_lc_check_relations(state, checkpoint->tokenizer, state->step, out);
    if (st == PAWL_OK && import->n_taken != import->header->n)
        st = REFUSE(out, "the file has %zu tensors, the checkpoint takes %zu of them", import->header->n,
                    import->n_taken);
    if (st == PAWL_OK)
        st = pawl_lc_state_view(state, out);
    if (st == PAWL_OK)
        st = pawl_lc_layout(checkpoint, out);
    if (st == PAWL_OK)
        checkpoint->checksum = pawl_lc_checksum(checkpoint);
    return st;
}

enum pawl_status
pawl_llmcp35_import_safetensors(struct pawl_str path, struct pawl_llmcp35 **ret_checkpoint,
                                struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    struct pawl_st_header header = PAWL_ST_HEADER_INIT;
    struct import import = { .header = &header, .name = PAWL_BUFFER_INIT, .out = &out };
    struct pawl_llmcp35 *checkpoint = NULL;
    if (path.len == 0 || memchr(path.data, 0, path.len) != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    char *text = pawl_str_dup(path);
    if (text == NULL)
        return pawl_lc_fail_memory(&out, "payload");
    enum pawl_status st = pawl_file_open_path(&file, pawl_os_posix(), text, err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, SIZE_MAX, &bytes, err);
    if (st == PAWL_OK)
        st = pawl_st_read_memory(&header, bytes.data, bytes.len, NULL, err);
    if (st == PAWL_OK) {
        import.data = (const unsigned char *)bytes.data + header.data_begin;
        checkpoint = calloc(1, sizeof *checkpoint);
        st = checkpoint == NULL ? pawl_lc_fail_memory(&out, "payload") : import_all(&import, checkpoint);
    }
    if (st != PAWL_OK) {
        pawl_error_path(err, path);
        pawl_llmcp35_free(checkpoint);
    } else {
        *ret_checkpoint = checkpoint;
    }
    pawl_st_release(&header);
    pawl_buffer_release(&import.name);
    pawl_buffer_release(&bytes);
    pawl_file_release(&file);
    free(text);
    return st;
}
