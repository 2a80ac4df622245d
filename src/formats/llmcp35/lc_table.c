/* Stages C and D: what the record table says about the payload, and which records are whose. */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <stdlib.h>

static const unsigned char element_bytes[4] = { 0, 1, 4, 8 };

static enum pawl_status
find_repeat(const struct lc_file *file, size_t *ret_repeat, struct lc_out *out)
{
    struct lc_key *keys = calloc(file->n_records + 1, sizeof *keys);
    if (keys == NULL)
        return pawl_lc_fail_memory(out, "record_count");
    for (size_t i = 0; i < file->n_records; i++)
        keys[i] = (struct lc_key){ file->records[i].name, file->records[i].role, i };
    *ret_repeat = pawl_lc_first_repeat(keys, file->n_records);
    free(keys);
    return PAWL_OK;
}

enum pawl_status
pawl_lc_check_table(struct lc_file *file, struct lc_out *out)
{
    uint64_t end = file->header_bytes;
    size_t repeat = 0;
    enum pawl_status st = find_repeat(file, &repeat, out);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < file->n_records; i++) {
        struct lc_record *record = &file->records[i];
        out->offset = record->entry_offset;
        if (i == repeat)
            return LC_REFUSE(out, "layout", "duplicate_record",
                             LC_FIELDS(LC_U64("role", record->role), LC_TEXT("name", record->name)),
                             "a second record of role %u is named '%s'", record->role, PAWL_SHOW(record->name));
        /* Left to right: a zero further right does not undo an overflow. */
        uint64_t bytes = 1;
        bool fits = true;
        for (uint32_t k = 0; fits && k < record->rank; k++)
            fits = pawl_mul_u64(bytes, record->dims[k], &bytes);
        record->elements = bytes;
        if (!fits || !pawl_mul_u64(bytes, element_bytes[record->dtype], &bytes))
            return pawl_lc_fail_size(out, "shape_bytes");
        if (record->bytes != bytes)
            return LC_REFUSE(
                out, "layout", "byte_length",
                LC_FIELDS(LC_TEXT("name", record->name), LC_U64("declared", record->bytes), LC_U64("computed", bytes)),
                "record '%s' declares %" PRIu64 " bytes, its shape takes %" PRIu64, PAWL_SHOW(record->name),
                record->bytes, bytes);
        if (record->offset != end)
            return LC_REFUSE(
                out, "layout", "offset",
                LC_FIELDS(LC_TEXT("name", record->name), LC_U64("found", record->offset), LC_U64("expected", end)),
                "record '%s' begins at %" PRIu64 ", the one before it ends at %" PRIu64, PAWL_SHOW(record->name),
                record->offset, end);
        if (!pawl_add_u64(end, bytes, &end))
            return LC_REFUSE(out, "layout", "end_overflow", LC_FIELDS(LC_TEXT("name", record->name)),
                             "record '%s' of %" PRIu64 " bytes ends beyond 2^64", PAWL_SHOW(record->name), bytes);
    }
    out->offset = PAWL_OFFSET_NONE;
    if (end != file->n)
        return LC_REFUSE(out, "layout", "final_end", LC_FIELDS(LC_U64("end", end), LC_U64("size", file->n)),
                         "the last record ends at %" PRIu64 " of %zu bytes", end, file->n);
    return PAWL_OK;
}

enum pawl_status
pawl_lc_check_families(struct lc_file *file, struct lc_out *out)
{
    uint64_t tokens = file->tokenizer_kind == 1 ? file->tokenizer_vocabulary : 1;
    uint64_t total;
    if (!pawl_add_u64(tokens, file->n_parameters, &total))
        return pawl_lc_fail_size(out, "model_boundary");
    /* twice a u32 always fits a u64: "optimizer_count" is for narrower sizes */
    if (!pawl_add_u64(total, 2 * (uint64_t)file->n_moments, &total))
        return pawl_lc_fail_size(out, "optimizer_boundary");
    if (total != file->n_records)
        return LC_REFUSE(out, "layout", "record_count",
                         LC_FIELDS(LC_U64("found", file->n_records), LC_U64("expected", total)),
                         "the table has %zu records, %" PRIu64 " tokenizer records, %" PRIu32 " parameters and %" PRIu32
                         " pairs of moments make %" PRIu64,
                         file->n_records, tokens, file->n_parameters, file->n_moments, total);
    file->first_parameter = (size_t)tokens;
    file->first_moment = (size_t)tokens + file->n_parameters;
    return PAWL_OK;
}

enum pawl_status
pawl_lc_fail_identity(struct lc_out *out, const struct lc_record *found, struct pawl_str name, uint8_t role,
                      uint8_t dtype)
{
    return LC_REFUSE(out, "layout", "record_identity",
                     LC_FIELDS(LC_TEXT("name", found->name), LC_U64("role", found->role), LC_U64("dtype", found->dtype),
                               LC_TEXT("expected_name", name), LC_U64("expected_role", role),
                               LC_U64("expected_dtype", dtype)),
                     "found a record '%s' of role %u and dtype %u, expected '%s' of role %u and dtype %u",
                     PAWL_SHOW(found->name), found->role, found->dtype, PAWL_SHOW(name), role, dtype);
}

enum pawl_status
pawl_lc_read_tensor(const struct lc_file *file, const struct lc_record *record, struct lc_state *state,
                    struct lc_tensor *tensor, struct lc_out *out)
{
    uint64_t *shape = pawl_arena_take_array(&state->arena, record->rank, sizeof *shape);
    tensor->rank = record->rank;
    tensor->n = (size_t)record->elements; /* 8 bytes each lie in the file */
    tensor->shape = shape;
    tensor->values = pawl_lc_values_new(tensor->n);
    if ((shape == NULL && record->rank > 0) || tensor->values == NULL ||
        !pawl_arena_copy_str(&state->arena, record->name, &tensor->name))
        return pawl_lc_fail_memory(out, "payload");
    for (uint32_t i = 0; i < record->rank; i++)
        shape[i] = record->dims[i];
    const unsigned char *at = file->bytes + record->offset;
    for (size_t i = 0; i < tensor->n; i++) {
        uint64_t bits = pawl_get_u64le(at + 8 * i);
        memcpy(&tensor->values[i], &bits, sizeof bits);
    }
    return PAWL_OK;
}
