/*
 * Encoding. One walk over a checkpoint emits its file; what becomes of the bytes is the sink's: memory, the checksum, or a
 * comparison with the file that was read, which costs no second copy.
 */
#include "formats/llmcp35/lc_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include "pawl/digest.h"

/* Values turned to bytes at a time. */
#define CHUNK_VALUES 512

static const unsigned char element_bytes[4] = { 0, 1, 4, 8 };

/* ---- layout ---- */

/* The sums of a layout; false when they leave u64. */
static bool
add_names(uint64_t *bytes, struct lc_names names)
{
    for (size_t i = 0; i < names.n; i++) {
        if (!pawl_add_u64(*bytes, 4 + (uint64_t)names.items[i].len, bytes))
            return false;
    }
    return true;
}

static enum pawl_status
place(struct pawl_llmcp35_record *record, uint64_t *end, struct lc_out *out)
{
    uint64_t bytes = 1;
    for (size_t i = 0; i < record->rank; i++) {
        if (!pawl_mul_u64(bytes, record->shape[i], &bytes))
            return pawl_lc_fail_size(out, "shape_bytes");
    }
    if (!pawl_mul_u64(bytes, element_bytes[record->dtype], &bytes))
        return pawl_lc_fail_size(out, "shape_bytes");
    record->offset = *end;
    record->bytes = bytes;
    return pawl_add_u64(*end, bytes, end) ? PAWL_OK : pawl_lc_fail_size(out, "file_length");
}

static struct pawl_llmcp35_record
tensor_record(const struct lc_tensor *tensor, enum pawl_llmcp35_role role)
{
    return (struct pawl_llmcp35_record){
        .name = tensor->name, .role = role, .dtype = PAWL_LLMCP35_F64, .rank = tensor->rank, .shape = tensor->shape
    };
}

static enum pawl_status
list_tokenizer(struct pawl_llmcp35 *checkpoint, struct pawl_llmcp35_record *records, size_t n, struct lc_out *out)
{
    const struct pawl_llmcp35_tokenizer *tokenizer = checkpoint->tokenizer;
    struct pawl_arena *arena = &checkpoint->state.arena;
    for (size_t i = 0; i < n; i++) {
        bool is_literal = tokenizer->kind == PAWL_LLMCP35_LITERAL;
        size_t rank = is_literal ? 1 : 2;
        uint64_t *shape = pawl_arena_take_array(arena, rank, sizeof *shape);
        char text[LC_NAME_TOKENS_MAX];
        (void)snprintf(text, sizeof text, "%zu", i);
        records[i].role = is_literal ? PAWL_LLMCP35_TOKEN : PAWL_LLMCP35_MERGES;
        records[i].dtype = is_literal ? PAWL_LLMCP35_U8 : PAWL_LLMCP35_U32;
        records[i].rank = rank;
        records[i].shape = shape;
        if (shape == NULL ||
            !pawl_arena_copy_str(arena, pawl_str_z(is_literal ? text : LC_PAIRS_NAME), &records[i].name))
            return pawl_lc_fail_memory(out, "record_count");
        shape[0] = is_literal ? tokenizer->pieces[i].len : tokenizer->n_merges;
        if (!is_literal)
            shape[1] = 2;
    }
    return PAWL_OK;
}

enum pawl_status
pawl_lc_layout(struct pawl_llmcp35 *checkpoint, struct lc_out *out)
{
    const struct lc_state *state = &checkpoint->state;
    const struct pawl_llmcp35_tokenizer *tokenizer = checkpoint->tokenizer;
    size_t n_tokens = tokenizer->kind == PAWL_LLMCP35_LITERAL ? tokenizer->n_pieces : 1;
    size_t n = n_tokens + state->n_parameters + 2 * state->n_moments;
    struct pawl_llmcp35_record *records = calloc(n, sizeof *records);
    if (records == NULL)
        return pawl_lc_fail_memory(out, "record_count");
    checkpoint->records = records;
    checkpoint->n_records = n;
    enum pawl_status st = list_tokenizer(checkpoint, records, n_tokens, out);
    if (st != PAWL_OK)
        return st;
    records += n_tokens;
    for (size_t i = 0; i < state->n_parameters; i++)
        *records++ = tensor_record(&state->parameters[i], PAWL_LLMCP35_PARAMETER);
    for (size_t i = 0; i < state->n_moments; i++) {
        *records++ = tensor_record(&state->moments[i].first, PAWL_LLMCP35_FIRST_MOMENT);
        *records++ = tensor_record(&state->moments[i].second, PAWL_LLMCP35_SECOND_MOMENT);
    }

    uint64_t header = 172; /* up to the flag of the groups */
    const struct lc_adamw *adamw = &state->adamw;
    if (n > UINT32_MAX || adamw->decay.n > UINT32_MAX || adamw->no_decay.n > UINT32_MAX)
        return pawl_lc_fail_size(out, "record_count");
    if (adamw->has_groups) {
        header += 8;
        if (!add_names(&header, adamw->decay) || !add_names(&header, adamw->no_decay))
            return pawl_lc_fail_size(out, "decay_names");
    }
    header += 36;
    for (size_t i = 0; i < n; i++) {
        const struct pawl_llmcp35_record *record = &checkpoint->records[i];
        if (record->name.len > UINT32_MAX)
            return pawl_lc_fail_size(out, "record_name");
        if (!pawl_add_u64(header, 26 + (uint64_t)record->name.len + 8 * (uint64_t)record->rank, &header))
            return pawl_lc_fail_size(out, "file_length");
    }
    uint64_t end = header;
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = place(&checkpoint->records[i], &end, out);
    checkpoint->header_bytes = header;
    checkpoint->payload_bytes = end - header;
    return st == PAWL_OK && end > SIZE_MAX ? pawl_lc_fail_size(out, "file_length") : st;
}

/* ---- emitting ---- */

/* Fields gather here; the sink is called for each, and remembered when it says stop. */
struct emitter {
    struct lc_sink *sink;
    bool is_fine;
};

static void
put(struct emitter *e, const void *bytes, size_t n)
{
    e->is_fine = e->is_fine && (n == 0 || e->sink->put(e->sink, bytes, n));
}

static void
put_u8(struct emitter *e, uint8_t value)
{
    put(e, &value, 1);
}

static void
put_u16(struct emitter *e, uint16_t value)
{
    unsigned char bytes[2] = { (unsigned char)value, (unsigned char)(value >> 8) };
    put(e, bytes, sizeof bytes);
}

static void
put_u32(struct emitter *e, uint32_t value)
{
    unsigned char bytes[4];
    pawl_put_u32le(bytes, value);
    put(e, bytes, sizeof bytes);
}

static void
put_u64(struct emitter *e, uint64_t value)
{
    unsigned char bytes[8];
    pawl_put_u64le(bytes, value);
    put(e, bytes, sizeof bytes);
}

static void
put_f64(struct emitter *e, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(e, bits);
}

static void
put_str(struct emitter *e, struct pawl_str str)
{
    put_u32(e, (uint32_t)str.len);
    put(e, str.data, str.len);
}

static void
put_names(struct emitter *e, struct lc_names names)
{
    put_u32(e, (uint32_t)names.n);
    for (size_t i = 0; i < names.n; i++)
        put_str(e, names.items[i]);
}

static void
put_values(struct emitter *e, const struct lc_tensor *tensor)
{
    unsigned char bytes[8 * CHUNK_VALUES];
    for (size_t i = 0; e->is_fine && i < tensor->n; i += CHUNK_VALUES) {
        size_t n = tensor->n - i < CHUNK_VALUES ? tensor->n - i : CHUNK_VALUES;
        for (size_t k = 0; k < n; k++) {
            uint64_t bits;
            memcpy(&bits, &tensor->values[i + k], sizeof bits);
            pawl_put_u64le(bytes + 8 * k, bits);
        }
        put(e, bytes, 8 * n);
    }
}

static void
put_header(struct emitter *e, const struct pawl_llmcp35 *checkpoint, uint64_t checksum)
{
    const struct lc_state *state = &checkpoint->state;
    const struct pawl_llmcp35_config *config = &state->config;
    const struct lc_adamw *adamw = &state->adamw;
    put(e, pawl_lc_magic, sizeof pawl_lc_magic);
    put_u16(e, 1);
    put_u32(e, 0x01020304);
    put_u64(e, checkpoint->header_bytes);
    put_u64(e, checkpoint->payload_bytes);
    put_u64(e, checksum);

    put_u16(e, 1); /* the tokenizer's layout */
    put_u16(e, 1); /* the generator's algorithm */
    put_u64(e, state->step);
    put_u64(e, checkpoint->rng_state);
    put_u8(e, (uint8_t)checkpoint->tokenizer->kind);
    put_u64(e, pawl_llmcp35_tokenizer_vocabulary(checkpoint->tokenizer));
    put_u64(e, config->vocabulary);
    put_u64(e, config->width);
    put_u64(e, config->heads);
    put_u64(e, config->feed_forward);
    put_u64(e, config->layers);
    put_u64(e, config->positions);
    put_f64(e, config->rope_base);
    put_f64(e, config->rms_epsilon);
    put_f64(e, adamw->learning_rate);
    put_f64(e, adamw->beta1);
    put_f64(e, adamw->beta2);
    put_f64(e, adamw->epsilon);
    put_f64(e, adamw->weight_decay);
    put_u8(e, adamw->has_groups ? 1 : 0);
    if (adamw->has_groups) {
        put_names(e, adamw->decay);
        put_names(e, adamw->no_decay);
    }
    put_u64(e, state->step);
    put_f64(e, state->beta1_power);
    put_f64(e, state->beta2_power);
    put_u32(e, (uint32_t)state->n_parameters);
    put_u32(e, (uint32_t)state->n_moments);
    put_u32(e, (uint32_t)checkpoint->n_records);
    for (size_t i = 0; i < checkpoint->n_records; i++) {
        const struct pawl_llmcp35_record *record = &checkpoint->records[i];
        put_u8(e, (uint8_t)record->role);
        put_str(e, record->name);
        put_u8(e, (uint8_t)record->dtype);
        put_u32(e, (uint32_t)record->rank);
        for (size_t k = 0; k < record->rank; k++)
            put_u64(e, record->shape[k]);
        put_u64(e, record->offset);
        put_u64(e, record->bytes);
    }
}

static void
put_record(struct emitter *e, const struct pawl_llmcp35 *checkpoint, size_t index)
{
    const struct lc_state *state = &checkpoint->state;
    const struct pawl_llmcp35_tokenizer *tokenizer = checkpoint->tokenizer;
    size_t n_tokens = checkpoint->n_records - state->n_parameters - 2 * state->n_moments;
    if (index < n_tokens && tokenizer->kind == PAWL_LLMCP35_LITERAL) {
        put(e, tokenizer->pieces[index].data, tokenizer->pieces[index].len);
    } else if (index < n_tokens) {
        for (size_t i = 0; i < 2 * tokenizer->n_merges; i++)
            put_u32(e, tokenizer->pairs[i]);
    } else if (index < n_tokens + state->n_parameters) {
        put_values(e, &state->parameters[index - n_tokens]);
    } else {
        size_t at = index - n_tokens - state->n_parameters;
        const struct lc_moments *moments = &state->moments[at / 2];
        put_values(e, at % 2 == 0 ? &moments->first : &moments->second);
    }
}

bool
pawl_lc_emit_record(const struct pawl_llmcp35 *checkpoint, size_t index, struct lc_sink *sink)
{
    struct emitter e = { sink, true };
    put_record(&e, checkpoint, index);
    return e.is_fine;
}

bool
pawl_lc_emit(const struct pawl_llmcp35 *checkpoint, uint64_t checksum, struct lc_sink *sink)
{
    struct emitter e = { sink, true };
    put_header(&e, checkpoint, checksum);
    for (size_t i = 0; i < checkpoint->n_records && e.is_fine; i++)
        put_record(&e, checkpoint, i);
    return e.is_fine;
}

/* ---- sinks ---- */

struct memory_sink {
    struct lc_sink sink;
    unsigned char *at, *end;
};

static bool
put_memory(struct lc_sink *sink, const void *bytes, size_t n)
{
    struct memory_sink *memory = (struct memory_sink *)sink;
    if ((size_t)(memory->end - memory->at) < n)
        return false;
    memcpy(memory->at, bytes, n);
    memory->at += n;
    return true;
}

struct compare_sink {
    struct lc_sink sink;
    const unsigned char *at, *end;
};

static bool
compare_memory(struct lc_sink *sink, const void *bytes, size_t n)
{
    struct compare_sink *compare = (struct compare_sink *)sink;
    if ((size_t)(compare->end - compare->at) < n || memcmp(compare->at, bytes, n) != 0)
        return false;
    compare->at += n;
    return true;
}

struct hash_sink {
    struct lc_sink sink;
    uint64_t hash;
};

static bool
hash_memory(struct lc_sink *sink, const void *bytes, size_t n)
{
    struct hash_sink *hash = (struct hash_sink *)sink;
    hash->hash = pawl_fnv1a(hash->hash, bytes, n);
    return true;
}

bool
pawl_lc_emits(const struct pawl_llmcp35 *checkpoint, const unsigned char *bytes, size_t n)
{
    struct compare_sink compare = { { compare_memory }, bytes, bytes + n };
    return pawl_lc_emit(checkpoint, checkpoint->checksum, &compare.sink) && compare.at == compare.end;
}

uint64_t
pawl_lc_checksum(const struct pawl_llmcp35 *checkpoint)
{
    struct hash_sink hash = { { hash_memory }, PAWL_FNV1A_BASIS };
    (void)pawl_lc_emit(checkpoint, 0, &hash.sink); /* this sink never stops */
    return hash.hash;
}

enum pawl_status
pawl_llmcp35_encode(const struct pawl_llmcp35 *checkpoint, void *bytes, size_t n, struct pawl_error *err)
{
    uint64_t file_bytes = checkpoint->header_bytes + checkpoint->payload_bytes;
    if (n != file_bytes)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the file takes %llu bytes, the caller's memory has %zu",
                         (unsigned long long)file_bytes, n);
    struct memory_sink memory = { { put_memory }, bytes, (unsigned char *)bytes + n };
    (void)pawl_lc_emit(checkpoint, checkpoint->checksum, &memory.sink); /* as many bytes as the layout says */
    return PAWL_OK;
}
