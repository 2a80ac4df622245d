/*
 * Decoding: the fixed header, the variable header, and the order of the stages.
 * What a file says first is what is checked first; the page's order is the order of
 * the statements here.
 */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "codec/utf8.h"
#include "pawl/digest.h"

const unsigned char pawl_lc_magic[8] = { 'L', 'L', 'M', 'C', 'P', '3', '5', 0 };

static uint16_t
get_u16le(const unsigned char *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

uint64_t
pawl_lc_checksum_of(const unsigned char *bytes, size_t n)
{
    static const unsigned char zeros[8];
    uint64_t hash = pawl_fnv1a(PAWL_FNV1A_BASIS, bytes, LC_CHECKSUM_AT);
    hash = pawl_fnv1a(hash, zeros, sizeof zeros);
    return pawl_fnv1a(hash, bytes + LC_FIXED_BYTES, n - LC_FIXED_BYTES);
}

/* Stage A. */
static enum pawl_status
read_fixed(struct lc_file *file, struct lc_out *out)
{
    const unsigned char *bytes = file->bytes;
    out->offset = 0;
    if (file->n < LC_FIXED_BYTES)
        return pawl_lc_fail(out, PAWL_TRUNCATED, "truncated", NULL, LC_FIELDS(LC_WORD("where", "fixed_header")),
                            "an LLMCP35 file begins with a header of %d bytes, this one has %zu", LC_FIXED_BYTES,
                            file->n);
    if (memcmp(bytes, pawl_lc_magic, sizeof pawl_lc_magic) != 0)
        return LC_REFUSE(out, "bad_magic", NULL, LC_NO_FIELDS,
                         "the file does not begin with the 8 bytes \"LLMCP35\\0\"");
    out->offset = 8;
    uint16_t version = get_u16le(bytes + 8);
    if (version != 1)
        return LC_REFUSE(out, "unsupported_version", NULL, LC_FIELDS(LC_U64("found", version)),
                         "the schema version is %u, this reader knows 1", version);
    out->offset = 10;
    uint32_t marker = pawl_get_u32le(bytes + 10);
    if (marker != 0x01020304)
        return LC_REFUSE(out, "unsupported_endianness", NULL, LC_FIELDS(LC_U64("found", marker)),
                         "the endian marker is 0x%08" PRIx32 ", expected 0x01020304", marker);
    out->offset = 14;
    file->header_bytes = pawl_get_u64le(bytes + 14);
    file->payload_bytes = pawl_get_u64le(bytes + 22);
    uint64_t sum;
    if (file->header_bytes < LC_FIXED_BYTES || !pawl_add_u64(file->header_bytes, file->payload_bytes, &sum) ||
        sum != file->n)
        return LC_REFUSE(out, "file_extent", NULL,
                         LC_FIELDS(LC_U64("header", file->header_bytes), LC_U64("payload", file->payload_bytes),
                                   LC_U64("actual", file->n)),
                         "a header of %" PRIu64 " bytes (at least %d) and a payload of %" PRIu64
                         " do not make the file of %zu",
                         file->header_bytes, LC_FIXED_BYTES, file->payload_bytes, file->n);
    out->offset = LC_CHECKSUM_AT;
    file->checksum = pawl_get_u64le(bytes + LC_CHECKSUM_AT);
    uint64_t computed = pawl_lc_checksum_of(bytes, file->n);
    if (file->checksum != computed)
        return LC_REFUSE(out, "checksum_mismatch", NULL,
                         LC_FIELDS(LC_U64("stored", file->checksum), LC_U64("computed", computed)),
                         "the file's checksum is fnv1a64:%016" PRIx64 ", its bytes have fnv1a64:%016" PRIx64,
                         file->checksum, computed);
    return PAWL_OK;
}

/* ---- stage B: fields in a row ---- */

/* The first failure sticks: reads after it give 0, so that fields may be read in a row and asked for once. */
struct reader {
    struct pawl_cursor in;
    struct lc_out *out;
    enum pawl_status st;
};

static const unsigned char *
take(struct reader *r, size_t n, const char *where)
{
    const unsigned char *bytes = NULL;
    if (r->st != PAWL_OK)
        return NULL;
    r->out->offset = r->in.offset;
    if (!pawl_cursor_take(&r->in, n, &bytes))
        r->st =
            pawl_lc_fail(r->out, PAWL_TRUNCATED, "truncated", NULL, LC_FIELDS(LC_WORD("where", where)),
                         "the header ends inside %s: %zu bytes wanted, %zu left", where, n, pawl_cursor_left(&r->in));
    return bytes;
}

static uint8_t
take_u8(struct reader *r, const char *where)
{
    const unsigned char *bytes = take(r, 1, where);
    return bytes == NULL ? 0 : bytes[0];
}

static uint16_t
take_u16(struct reader *r, const char *where)
{
    const unsigned char *bytes = take(r, 2, where);
    return bytes == NULL ? 0 : get_u16le(bytes);
}

static uint32_t
take_u32(struct reader *r, const char *where)
{
    const unsigned char *bytes = take(r, 4, where);
    return bytes == NULL ? 0 : pawl_get_u32le(bytes);
}

static uint64_t
take_u64(struct reader *r, const char *where)
{
    const unsigned char *bytes = take(r, 8, where);
    return bytes == NULL ? 0 : pawl_get_u64le(bytes);
}

static double
take_f64(struct reader *r, const char *where)
{
    uint64_t bits = take_u64(r, where);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The string lies in the file's bytes. */
static struct pawl_str
take_str(struct reader *r, const char *where)
{
    uint32_t len = take_u32(r, where);
    const unsigned char *bytes = take(r, len, where);
    if (r->st != PAWL_OK)
        return pawl_str_make(NULL, 0);
    if (pawl_utf8_first_bad(bytes, len) != len) {
        r->st = LC_REFUSE(r->out, "invalid_utf8", NULL, LC_FIELDS(LC_WORD("where", where)),
                          "%s: a name that is not UTF-8 at its byte %zu", where, pawl_utf8_first_bad(bytes, len));
        return pawl_str_make(NULL, 0);
    }
    return pawl_str_make((const char *)bytes, len);
}

/* Grown name by name: the count alone is no reason to take memory. */
static struct lc_names
take_names(struct reader *r, const char *where)
{
    struct lc_names names = { NULL, 0 };
    size_t names_max = 0;
    uint32_t n = take_u32(r, where);
    for (uint32_t i = 0; i < n && r->st == PAWL_OK; i++) {
        struct pawl_str name = take_str(r, where);
        if (r->st != PAWL_OK)
            break;
        if (names.n == names_max) {
            size_t more = names_max == 0 ? 16 : 2 * names_max;
            struct pawl_str *items = realloc(names.items, more * sizeof *items);
            if (items == NULL) {
                r->st = pawl_lc_fail_memory(r->out, where);
                break;
            }
            names.items = items;
            names_max = more;
        }
        names.items[names.n++] = name;
    }
    return names;
}

static void
read_config(struct reader *r, struct pawl_llmcp35_config *config)
{
    config->size = sizeof *config;
    config->vocabulary = take_u64(r, "decoder_vocabulary");
    config->width = take_u64(r, "decoder_width");
    config->heads = take_u64(r, "decoder_heads");
    config->feed_forward = take_u64(r, "decoder_ffn_width");
    config->layers = take_u64(r, "decoder_layers");
    config->positions = take_u64(r, "decoder_positions");
    config->rope_base = take_f64(r, "rope_base");
    config->rms_epsilon = take_f64(r, "rms_epsilon");
}

static enum pawl_status
read_adamw(struct reader *r, struct lc_adamw *adamw, struct pawl_arena *arena)
{
    adamw->learning_rate = take_f64(r, "adamw_learning_rate");
    adamw->beta1 = take_f64(r, "adamw_beta1");
    adamw->beta2 = take_f64(r, "adamw_beta2");
    adamw->epsilon = take_f64(r, "adamw_epsilon");
    adamw->weight_decay = take_f64(r, "adamw_weight_decay");
    if (r->st == PAWL_OK)
        r->st = pawl_lc_check_adamw(adamw, r->out);

    uint8_t flag = take_u8(r, "groups_flag");
    if (r->st == PAWL_OK && flag > 1)
        r->st = LC_REFUSE(r->out, "non_canonical", "groups_flag", LC_FIELDS(LC_U64("flag", flag)),
                          "the flag of the parameter groups is %u, expected 0 or 1", flag);
    if (r->st != PAWL_OK || flag == 0)
        return r->st;

    struct lc_adamw found = *adamw;
    found.has_groups = true;
    found.decay = take_names(r, "decay_names");
    found.no_decay = take_names(r, "no_decay_names");
    if (r->st == PAWL_OK)
        r->st = pawl_lc_check_groups(&found, r->out);
    adamw->has_groups = true;
    if (r->st == PAWL_OK && (pawl_lc_names_copy(arena, &adamw->decay, found.decay.items, found.decay.n) != PAWL_OK))
        r->st = pawl_lc_fail_memory(r->out, "decay_names");
    if (r->st == PAWL_OK &&
        (pawl_lc_names_copy(arena, &adamw->no_decay, found.no_decay.items, found.no_decay.n) != PAWL_OK))
        r->st = pawl_lc_fail_memory(r->out, "no_decay_names");
    free(found.decay.items);
    free(found.no_decay.items);
    return r->st;
}

static enum pawl_status
read_record(struct reader *r, struct lc_file *file)
{
    struct lc_record record = { .entry_offset = r->in.offset };
    record.role = take_u8(r, "record_role");
    if (r->st == PAWL_OK && (record.role < 1 || record.role > 5))
        r->st = LC_REFUSE(r->out, "unknown_role", NULL, LC_FIELDS(LC_U64("tag", record.role)),
                          "record %zu has the role %u, known are 1 to 5", file->n_records, record.role);
    record.name = take_str(r, "record_name");
    if (r->st == PAWL_OK && record.name.len == 0)
        r->st = LC_REFUSE(r->out, "layout", "empty_name", LC_NO_FIELDS, "record %zu has no name", file->n_records);
    record.dtype = take_u8(r, "record_dtype");
    if (r->st == PAWL_OK && (record.dtype < 1 || record.dtype > 3))
        r->st = LC_REFUSE(r->out, "unknown_dtype", NULL, LC_FIELDS(LC_U64("tag", record.dtype)),
                          "record %zu has the dtype %u, known are 1 to 3", file->n_records, record.dtype);
    record.rank = take_u32(r, "record_rank");
    if (r->st == PAWL_OK && record.rank > pawl_cursor_left(&r->in) / 8) {
        /* The dimension that does not fit, without reading those that do. */
        r->out->offset = r->in.offset + pawl_cursor_left(&r->in) / 8 * 8;
        r->st = pawl_lc_fail(r->out, PAWL_TRUNCATED, "truncated", NULL, LC_FIELDS(LC_WORD("where", "record_dim")),
                             "record %zu has %" PRIu32 " dimensions, the header has room for %zu", file->n_records,
                             record.rank, pawl_cursor_left(&r->in) / 8);
    }
    if (r->st != PAWL_OK)
        return r->st;
    uint64_t *dims = pawl_arena_take_array(&file->arena, record.rank, sizeof *dims);
    if (dims == NULL && record.rank > 0)
        return r->st = pawl_lc_fail_memory(r->out, "record_dim");
    for (uint32_t i = 0; i < record.rank; i++)
        dims[i] = take_u64(r, "record_dim");
    record.dims = dims;
    record.offset = take_u64(r, "record_offset");
    record.bytes = take_u64(r, "record_length");
    if (r->st != PAWL_OK)
        return r->st;

    if (file->n_records == file->records_max) {
        size_t more = file->records_max == 0 ? 64 : 2 * file->records_max;
        struct lc_record *records = realloc(file->records, more * sizeof *records);
        if (records == NULL)
            return r->st = pawl_lc_fail_memory(r->out, "record_count");
        file->records = records;
        file->records_max = more;
    }
    file->records[file->n_records++] = record;
    return PAWL_OK;
}

static enum pawl_status
read_variable(struct lc_file *file, struct pawl_llmcp35 *checkpoint, struct lc_out *out)
{
    struct reader r = { pawl_cursor_make(file->bytes + LC_FIXED_BYTES, (size_t)file->header_bytes - LC_FIXED_BYTES),
                        out, PAWL_OK };
    struct lc_state *state = &checkpoint->state;
    r.in.offset = LC_FIXED_BYTES;

    uint16_t layout = take_u16(&r, "tokenizer_layout");
    if (r.st == PAWL_OK && layout != 1)
        r.st = LC_REFUSE(out, "unsupported_tokenizer_layout", NULL, LC_FIELDS(LC_U64("found", layout)),
                         "the tokenizer's layout is version %u, this reader knows 1", layout);
    uint16_t rng = take_u16(&r, "rng_algorithm");
    if (r.st == PAWL_OK && rng != 1)
        r.st = LC_REFUSE(out, "unsupported_rng_algorithm", NULL, LC_FIELDS(LC_U64("found", rng)),
                         "the sampling generator is version %u, this reader knows 1 (SplitMix64)", rng);
    file->selected_step = take_u64(&r, "selected_step");
    checkpoint->rng_state = take_u64(&r, "rng_state");
    file->tokenizer_kind = take_u8(&r, "tokenizer_kind");
    if (r.st == PAWL_OK && file->tokenizer_kind != 1 && file->tokenizer_kind != 2)
        r.st = LC_REFUSE(out, "unknown_tokenizer_kind", NULL, LC_FIELDS(LC_U64("tag", file->tokenizer_kind)),
                         "the tokenizer is of kind %u, known are 1 (literal) and 2 (byte BPE)", file->tokenizer_kind);
    file->tokenizer_vocabulary = take_u64(&r, "tokenizer_vocabulary");
    read_config(&r, &state->config);
    if (read_adamw(&r, &state->adamw, &state->arena) != PAWL_OK)
        return r.st;
    state->step = take_u64(&r, "adamw_step");
    state->beta1_power = take_f64(&r, "beta1_power");
    state->beta2_power = take_f64(&r, "beta2_power");
    file->n_parameters = take_u32(&r, "parameter_count");
    file->n_moments = take_u32(&r, "moment_count");
    file->n_stated = take_u32(&r, "record_count");
    for (uint32_t i = 0; i < file->n_stated && r.st == PAWL_OK; i++)
        (void)read_record(&r, file);
    if (r.st != PAWL_OK)
        return r.st;
    size_t left = pawl_cursor_left(&r.in);
    out->offset = r.in.offset;
    if (left != 0)
        return LC_REFUSE(out, "non_canonical", "header_tail", LC_FIELDS(LC_U64("remaining", left)),
                         "%zu bytes follow the record table in the header", left);
    return PAWL_OK;
}

/* ---- all stages ---- */

static enum pawl_status
decode(struct lc_file *file, struct pawl_llmcp35 *checkpoint, struct lc_out *out)
{
    enum pawl_status st = read_fixed(file, out);
    if (st == PAWL_OK)
        st = read_variable(file, checkpoint, out);
    if (st == PAWL_OK)
        st = pawl_lc_check_table(file, out);
    if (st == PAWL_OK)
        st = pawl_lc_check_families(file, out);
    if (st == PAWL_OK)
        st = pawl_lc_read_tokenizer(file, &checkpoint->tokenizer, out);
    if (st == PAWL_OK)
        st = pawl_lc_read_model(file, &checkpoint->state, out);
    if (st == PAWL_OK)
        st = pawl_lc_read_optimizer(file, &checkpoint->state, out);
    out->offset = PAWL_OFFSET_NONE;
    if (st == PAWL_OK)
        st = pawl_lc_check_relations(&checkpoint->state, checkpoint->tokenizer, file->selected_step, out);
    if (st == PAWL_OK) {
        pawl_lc_state_sort(&checkpoint->state); /* as the one encoding has it, whatever the file's order was */
        st = pawl_lc_state_view(&checkpoint->state, out);
    }
    if (st == PAWL_OK)
        st = pawl_lc_layout(checkpoint, out);
    if (st == PAWL_OK) {
        checkpoint->checksum = file->checksum;
        if (!pawl_lc_emits(checkpoint, file->bytes, file->n))
            st = LC_REFUSE(out, "non_canonical", "reencode", LC_NO_FIELDS,
                           "the state is valid, but its one encoding has other bytes: names of groups or moments are "
                           "not in byte order");
    }
    return st;
}

enum pawl_status
pawl_llmcp35_decode(const void *bytes, size_t n, struct pawl_llmcp35 **ret_checkpoint,
                    struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    struct lc_file file = { .bytes = bytes, .n = n };
    struct pawl_llmcp35 *checkpoint = calloc(1, sizeof *checkpoint);
    if (checkpoint == NULL)
        return pawl_lc_fail_memory(&out, "fixed_header");
    enum pawl_status st = decode(&file, checkpoint, &out);
    free(file.records);
    pawl_arena_release(&file.arena);
    if (st != PAWL_OK) {
        pawl_llmcp35_free(checkpoint);
        return st;
    }
    *ret_checkpoint = checkpoint;
    return PAWL_OK;
}
