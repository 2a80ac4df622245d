/*
 * The header of a safetensors file, parsed and checked.
 *
 * Entries in the usual spelling (the reference writer's, with or without a space behind colons and commas) are read by
 * read_usual_entry(), a straight run over the text; whatever differs goes through the tokenizer from the beginning of that
 * entry. The first takes only what the second would take, with the same result, and reports nothing.
 *
 * A fault of types (rule 6) is reported only when the rest of the text is JSON (rule 5): the order of the rules is
 * the order of the verdicts.
 */
#include "formats/safetensors/st_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/checked.h"
#include "formats/json/json_scan.h"
#include "os/large.h"

/* Literals are compared, and words loaded, without asking whether they still fit: the text has this many NULs behind it. */
#define ST_SLACK 64
/* Space for shapes is taken in pieces of this many dimensions. */
#define SHAPE_PIECE ((size_t)4096)

static const struct pawl_st_options DEFAULTS = { .mode = PAWL_ST_STRICT };

struct parse {
    struct pawl_st_header *header;
    const struct pawl_st_options *options;
    struct pawl_json_reader reader;
    size_t capacity;          /* of header->tensors */
    size_t metadata_capacity; /* of header->metadata */
    uint64_t *shape_at;       /* free space for shapes */
    size_t shape_left;        /* dimensions that fit there */
    bool has_metadata_key;    /* __metadata__ has been there, also as null */
    /* the dtype found last: most tensors of a file share one */
    bool is_memory_out; /* no room for the text as it was */
    char dtype_text[16];
    size_t dtype_len;
    enum pawl_dtype dtype;
};

/* What an entry has so far. */
struct entry {
    struct pawl_tensor_info info;
    bool has_dtype, has_shape, has_offsets;
};

/* ---- failing ---- */

/* Places in the text become places in the file. */
static enum pawl_status
fix_offset(enum pawl_status st, struct pawl_error *err)
{
    if (st != PAWL_OK && err->offset != PAWL_OFFSET_NONE)
        err->offset += 8;
    return st;
}

/*
 * A fault of types at `offset` of the text, already described in `err`. If the text is no JSON further on, that is what is
 * wrong with it.
 */
static enum pawl_status
fail_typed(struct parse *p, struct pawl_error *err)
{
    struct pawl_error later = PAWL_ERROR_INIT;
    struct pawl_json_token token = { .type = PAWL_JSON_NULL };
    while (token.type != PAWL_JSON_END) {
        enum pawl_status st = pawl_json_next(&p->reader, &token, &later);
        if (st != PAWL_OK) {
            *err = later;
            return st;
        }
    }
    return err->status;
}

static const char *
type_name(enum pawl_json_type type)
{
    static const char *const NAMES[] = { "nothing",  "an object", "its end", "an array", "its end", "a key",
                                         "a string", "a number",  "true",    "false",    "null" };
    return NAMES[type];
}

static enum pawl_status
fail_entry(struct parse *p, struct pawl_str name, const struct pawl_json_token *token, const char *field,
           const char *expected, struct pawl_error *err)
{
    (void)pawl_fail_at(err, PAWL_CORRUPT, "json", token->offset, "tensor '%s': %s must be %s, found %s%s%s",
                       PAWL_SHOW(name), field, expected, type_name(token->type),
                       token->type == PAWL_JSON_NUMBER ? " " : "",
                       token->type == PAWL_JSON_NUMBER ? PAWL_SHOW(token->text) : "");
    pawl_error_tensor(err, name);
    return fail_typed(p, err);
}

/* ---- room ---- */

/*
 * Room for one more tensor. The size of the whole is estimated from the part of the text that is read, so that a large
 * header is not copied again and again, and little is taken that is not used.
 */
static bool
reserve_tensor(struct parse *p)
{
    struct pawl_st_header *h = p->header;
    if (h->n < p->capacity)
        return true;
    size_t capacity = 64;
    if (h->n != 0) {
        double done = (double)(p->reader.at - p->reader.begin);
        double whole = (double)(p->reader.end - p->reader.begin);
        size_t estimate = (size_t)((double)h->n * (whole / done) * 1.02);
        capacity = h->n + h->n / 4 + 16;
        /* the first entries say little of the rest, but each step doubles at least once a header is large */
        if (estimate > capacity)
            capacity = estimate < h->n * 64 ? estimate : h->n * 64;
    }
    size_t bytes;
    if (!pawl_mul_size(capacity, sizeof *h->tensors, &bytes))
        return false;
    assert(bytes != 0);
    struct pawl_tensor_info *tensors = realloc(h->tensors, bytes);
    if (tensors == NULL)
        return false;
    pawl_memory_large(tensors, bytes);
    h->tensors = tensors;
    p->capacity = capacity;
    return true;
}

/* At least one more dimension for the shape that begins at `*shape` and has `rank`; `at` is where its text goes on. */
static bool
reserve_shape(struct parse *p, uint64_t **shape, size_t rank, const unsigned char *at)
{
    /* no more dimensions can follow than the text has commas to the next bracket: nothing is taken on trust, nothing twice */
    size_t more = 1;
    for (; at != p->reader.end && *at != ']'; at++)
        more += *at == ',';
    size_t piece = rank + more;
    if (piece < SHAPE_PIECE) {
        size_t text = (size_t)(p->reader.end - at) / 16 + piece;
        piece = text < SHAPE_PIECE ? text : SHAPE_PIECE;
    }
    uint64_t *fresh = pawl_arena_take_array(&p->header->arena, piece, sizeof *fresh);
    if (fresh == NULL)
        return false;
    if (rank != 0)
        memcpy(fresh, *shape, rank * sizeof *fresh);
    *shape = fresh;
    p->shape_at = fresh;
    p->shape_left = piece;
    return true;
}

/* ---- an entry in the usual spelling ---- */

/* Digits, at most 19, without a leading zero: what is longer is left to the tokenizer. */
static const unsigned char *
read_digits(const unsigned char *at, uint64_t *ret)
{
    const unsigned char *begin = at;
    uint64_t value = 0;
    while (pawl_json_is_digit(*at))
        value = value * 10 + (uint64_t)(*at++ - '0'); /* wraps only where the length is refused below */
    size_t n = (size_t)(at - begin);
    if (n == 0 || n > 19 || (*begin == '0' && n > 1))
        return NULL;
    *ret = value;
    return at;
}

static bool
take_literal(const unsigned char **at, const char *literal, size_t n)
{
    if (memcmp(*at, literal, n) != 0)
        return false;
    *at += n;
    return true;
}
#define TAKE(at, literal) take_literal((at), "" literal, sizeof(literal) - 1)

/* One of two spellings: compact, as the reference writes, or with a space behind colons and commas, as Python's json does. */
#define TAKE_EITHER(at, compact, spaced) (TAKE(at, compact) || TAKE(at, spaced))

/* The name of a dtype up to its quote; NULL when it is none that is accepted. */
static const unsigned char *
read_usual_dtype(struct parse *p, const unsigned char *at, enum pawl_dtype *ret)
{
    if (p->dtype_len != 0 && memcmp(at, p->dtype_text, p->dtype_len) == 0 && at[p->dtype_len] == '"') {
        *ret = p->dtype;
        return at + p->dtype_len;
    }
    size_t n = 0;
    while (n < sizeof p->dtype_text && at[n] != '"')
        n++;
    if (n == sizeof p->dtype_text)
        return NULL;
    enum pawl_dtype dtype = pawl_dtype_by_name(pawl_str_make((const char *)at, n));
    if (dtype == 0 || (p->options->dtypes != 0 && (p->options->dtypes >> dtype & 1) == 0))
        return NULL;
    memcpy(p->dtype_text, at, n);
    p->dtype_len = n;
    p->dtype = *ret = dtype;
    return at + n;
}

static bool
is_metadata_key(struct pawl_str name)
{
    return name.len == 12 && memcmp(name.data, "__metadata__", 12) == 0;
}

/* True when a whole entry was taken; false: nothing was, and the tokenizer goes on where it was. */
static bool
read_usual_entry(struct parse *p)
{
    const unsigned char *at = pawl_json_member_place(&p->reader);
    if (at == NULL || p->header->n == p->capacity)
        return false;
    struct pawl_tensor_info *info = &p->header->tensors[p->header->n];
    const unsigned char *name = at + 1;
    at = pawl_json_scan_plain(name, p->reader.end);
    *info = (struct pawl_tensor_info){ .name = { (const char *)name, (size_t)(at - name) } };
    if (!TAKE_EITHER(&at, "\":{\"dtype\":\"", "\": {\"dtype\": \"") || is_metadata_key(info->name))
        return false;
    at = read_usual_dtype(p, at, &info->dtype);
    if (at == NULL || !TAKE_EITHER(&at, "\",\"shape\":[", "\", \"shape\": ["))
        return false;
    size_t rank = 0;
    while (*at != ']') {
        if (rank == p->shape_left || (rank != 0 && !TAKE_EITHER(&at, ", ", ",")))
            return false;
        at = read_digits(at, &p->shape_at[rank++]);
        if (at == NULL)
            return false;
    }
    if (!TAKE_EITHER(&at, "],\"data_offsets\":[", "], \"data_offsets\": ["))
        return false;
    at = read_digits(at, &info->begin);
    if (at == NULL || !TAKE_EITHER(&at, ", ", ","))
        return false;
    at = read_digits(at, &info->end);
    if (at == NULL || !TAKE(&at, "]}"))
        return false;

    if (rank != 0) {
        if (rank > UINT32_MAX)
            return false;
        info->rank = (uint32_t)rank;
        info->shape = p->shape_at;
        p->shape_at += rank;
        p->shape_left -= rank;
    }
    p->header->n++;
    pawl_json_member_passed(&p->reader, at);
    return true;
}

/* ---- an entry in any spelling ---- */

/* Decoded bytes are never more than the spelling they came from: they replace it, so that the text holds every name. The text as it was
 * is kept then: who hashes the file hashes what was parsed. */
static struct pawl_str
keep_string(struct parse *p, const struct pawl_json_token *token)
{
    struct pawl_st_header *h = p->header;
    char *place = (char *)h->text + token->offset + 1;
    if (token->text.data == place)
        return token->text;
    if (h->original == NULL && token->text.len != 0) {
        h->original = malloc((size_t)h->header_bytes);
        if (h->original == NULL)
            p->is_memory_out = true;
        else
            memcpy(h->original, h->text, (size_t)h->header_bytes);
    }
    if (token->text.len != 0)
        memmove(place, token->text.data, token->text.len);
    return pawl_str_make(place, token->text.len);
}

static enum pawl_status
read_dtype(struct parse *p, struct pawl_str name, const struct pawl_json_token *first, enum pawl_dtype *ret,
           struct pawl_error *err)
{
    struct pawl_json_token token = *first;
    bool is_variant = token.type == PAWL_JSON_OBJECT && p->options->mode == PAWL_ST_COMPAT; /* {"F32":null} */
    enum pawl_status st;

    if (is_variant) {
        st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
    }
    if (token.type != (is_variant ? PAWL_JSON_KEY : PAWL_JSON_STRING))
        return fail_entry(p, name, &token, "dtype", "a string", err);
    enum pawl_dtype dtype = pawl_dtype_by_name(token.text);
    bool is_outside = dtype != 0 && p->options->dtypes != 0 && (p->options->dtypes >> dtype & 1) == 0;
    if (dtype == 0 || is_outside) {
        (void)pawl_fail_at(err, PAWL_CORRUPT, "dtype", token.offset,
                           is_outside ? "tensor '%s': dtype '%s' is outside of the set that is accepted"
                                      : "tensor '%s': '%s' is no dtype of the format",
                           PAWL_SHOW(name), PAWL_SHOW(token.text));
        pawl_error_tensor(err, name);
        return fail_typed(p, err);
    }
    if (is_variant) {
        st = pawl_json_next(&p->reader, &token, err);
        if (st == PAWL_OK && token.type != PAWL_JSON_NULL)
            return fail_entry(p, name, &token, "the value beside a dtype", "null", err);
        if (st == PAWL_OK)
            st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type != PAWL_JSON_OBJECT_END)
            return fail_entry(p, name, &token, "dtype", "one name", err);
    }
    *ret = dtype;
    return PAWL_OK;
}

static enum pawl_status
read_shape(struct parse *p, struct pawl_str name, const struct pawl_json_token *first, struct pawl_tensor_info *info,
           struct pawl_error *err)
{
    uint64_t *shape = p->shape_at;
    size_t rank = 0;
    if (first->type != PAWL_JSON_ARRAY)
        return fail_entry(p, name, first, "shape", "an array", err);
    for (;;) {
        struct pawl_json_token token;
        uint64_t dim;
        enum pawl_status st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_ARRAY_END)
            break;
        if (token.type != PAWL_JSON_NUMBER || !pawl_json_u64(token.text, &dim))
            return fail_entry(p, name, &token, "a dimension", "an integer of 0 to 2^64-1", err);
        if (rank == p->shape_left && !reserve_shape(p, &shape, rank, p->reader.at))
            return pawl_fail_memory(err, (rank + 1) * sizeof *shape);
        shape[rank++] = dim;
    }
    if (rank > UINT32_MAX)
        return pawl_fail(err, PAWL_LIMIT, "header-too-large", "tensor '%s' has %zu dimensions", PAWL_SHOW(name), rank);
    if (rank != 0) {
        info->rank = (uint32_t)rank;
        info->shape = shape;
        p->shape_at = shape + rank;
        p->shape_left -= rank;
    }
    return PAWL_OK;
}

static enum pawl_status
read_offsets(struct parse *p, struct pawl_str name, const struct pawl_json_token *first, struct pawl_tensor_info *info,
             struct pawl_error *err)
{
    uint64_t offsets[2] = { 0, 0 };
    if (first->type != PAWL_JSON_ARRAY)
        return fail_entry(p, name, first, "data_offsets", "an array of two", err);
    for (size_t i = 0;; i++) {
        struct pawl_json_token token;
        uint64_t value;
        enum pawl_status st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_ARRAY_END && i == 2)
            break;
        if (token.type == PAWL_JSON_ARRAY_END || i == 2) {
            (void)pawl_fail_at(err, PAWL_CORRUPT, "json", first->offset,
                               "tensor '%s': data_offsets must have 2 items, found %s", PAWL_SHOW(name),
                               i == 2   ? "more"
                               : i == 1 ? "1"
                                        : "0");
            pawl_error_tensor(err, name);
            return fail_typed(p, err);
        }
        if (token.type != PAWL_JSON_NUMBER || !pawl_json_u64(token.text, &value))
            return fail_entry(p, name, &token, "an offset", "an integer of 0 to 2^64-1", err);
        offsets[i] = value;
    }
    info->begin = offsets[0];
    info->end = offsets[1];
    return PAWL_OK;
}

static enum pawl_status
fail_field(struct parse *p, struct pawl_str name, uint64_t offset, const char *format_field, const char *field,
           struct pawl_error *err)
{
    (void)pawl_fail_at(err, PAWL_CORRUPT, "json", offset, "tensor '%s': %s %s", PAWL_SHOW(name), format_field, field);
    pawl_error_tensor(err, name);
    return fail_typed(p, err);
}

static enum pawl_status
read_field(struct parse *p, struct entry *entry, const struct pawl_json_token *key, struct pawl_error *err)
{
    static const struct {
        struct pawl_str name;
        size_t flag;
    } FIELDS[] = { { { "dtype", 5 }, offsetof(struct entry, has_dtype) },
                   { { "shape", 5 }, offsetof(struct entry, has_shape) },
                   { { "data_offsets", 12 }, offsetof(struct entry, has_offsets) } };
    struct pawl_str name = entry->info.name;
    struct pawl_json_token value;
    size_t i = 0;

    while (i < 3 && !pawl_str_equal(key->text, FIELDS[i].name))
        i++;
    uint64_t offset = key->offset;
    if (i == 3) {
        if (p->options->mode == PAWL_ST_LINT)
            pawl_st_warn(p->options, "unknown-field", name, 8 + offset, "tensor '%s': unknown field \"%s\"",
                         PAWL_SHOW(name), PAWL_SHOW(key->text));
        return pawl_json_skip(&p->reader, NULL, err);
    }
    bool *flag = (bool *)((char *)entry + FIELDS[i].flag);
    if (*flag)
        return fail_field(p, name, offset, "two fields", FIELDS[i].name.data, err);
    *flag = true;
    enum pawl_status st = pawl_json_next(&p->reader, &value, err);
    if (st != PAWL_OK)
        return st;
    return i == 0   ? read_dtype(p, name, &value, &entry->info.dtype, err)
           : i == 1 ? read_shape(p, name, &value, &entry->info, err)
                    : read_offsets(p, name, &value, &entry->info, err);
}

static enum pawl_status
read_entry_object(struct parse *p, struct entry *entry, uint64_t offset, struct pawl_error *err)
{
    for (;;) {
        struct pawl_json_token token;
        enum pawl_status st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_OBJECT_END)
            break;
        st = read_field(p, entry, &token, err);
        if (st != PAWL_OK)
            return st;
    }
    if (!entry->has_dtype || !entry->has_shape || !entry->has_offsets)
        return fail_field(p, entry->info.name, offset, "it lacks",
                          !entry->has_dtype   ? "dtype"
                          : !entry->has_shape ? "shape"
                                              : "data_offsets",
                          err);
    return PAWL_OK;
}

/* ["F32",[2],[0,8]], which the reference takes. */
static enum pawl_status
read_entry_array(struct parse *p, struct entry *entry, uint64_t offset, struct pawl_error *err)
{
    for (int i = 0;; i++) {
        struct pawl_json_token token;
        enum pawl_status st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
        bool is_end = token.type == PAWL_JSON_ARRAY_END;
        if (is_end && i == 3)
            return PAWL_OK;
        if (is_end || i == 3)
            return fail_field(p, entry->info.name, offset, "an entry that is an array must have", "3 items", err);
        st = i == 0   ? read_dtype(p, entry->info.name, &token, &entry->info.dtype, err)
             : i == 1 ? read_shape(p, entry->info.name, &token, &entry->info, err)
                      : read_offsets(p, entry->info.name, &token, &entry->info, err);
        if (st != PAWL_OK)
            return st;
    }
}

static enum pawl_status
read_entry(struct parse *p, const struct pawl_json_token *key, struct pawl_error *err)
{
    struct entry entry = { .info = { .name = keep_string(p, key) } };
    struct pawl_json_token value;
    enum pawl_status st = pawl_json_next(&p->reader, &value, err);
    if (st != PAWL_OK)
        return st;
    if (value.type == PAWL_JSON_OBJECT)
        st = read_entry_object(p, &entry, value.offset, err);
    else if (value.type == PAWL_JSON_ARRAY && p->options->mode == PAWL_ST_COMPAT)
        st = read_entry_array(p, &entry, value.offset, err);
    else
        st = fail_entry(p, entry.info.name, &value, "its entry", "an object", err);
    if (st != PAWL_OK)
        return st;
    if (!reserve_tensor(p))
        return pawl_fail_memory(err, (p->header->n + 1) * sizeof *p->header->tensors);
    p->header->tensors[p->header->n++] = entry.info;
    return PAWL_OK;
}

/* ---- metadata ---- */

static enum pawl_status
add_pair(struct parse *p, struct pawl_pair pair, struct pawl_error *err)
{
    struct pawl_st_header *h = p->header;
    if (h->n_metadata == p->metadata_capacity) {
        size_t capacity = p->metadata_capacity == 0 ? 8 : p->metadata_capacity + p->metadata_capacity / 2;
        struct pawl_pair *metadata = realloc(h->metadata, capacity * sizeof *metadata);
        if (metadata == NULL)
            return pawl_fail_memory(err, capacity * sizeof *metadata);
        h->metadata = metadata;
        p->metadata_capacity = capacity;
    }
    h->metadata[h->n_metadata++] = pair;
    return PAWL_OK;
}

static enum pawl_status
read_metadata(struct parse *p, const struct pawl_json_token *key, struct pawl_error *err)
{
    struct pawl_json_token token;
    if (p->has_metadata_key) {
        (void)pawl_fail_at(err, PAWL_CORRUPT, "json", key->offset, "__metadata__ stands twice");
        return fail_typed(p, err);
    }
    p->has_metadata_key = true;
    enum pawl_status st = pawl_json_next(&p->reader, &token, err);
    if (st != PAWL_OK || token.type == PAWL_JSON_NULL)
        return st;
    if (token.type != PAWL_JSON_OBJECT) {
        (void)pawl_fail_at(err, PAWL_CORRUPT, "json", token.offset,
                           "__metadata__ must be an object of strings or null, found %s", type_name(token.type));
        return fail_typed(p, err);
    }
    p->header->has_metadata = true;
    for (;;) {
        struct pawl_pair pair;
        st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK || token.type == PAWL_JSON_OBJECT_END)
            return st;
        pair.key = keep_string(p, &token);
        st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type != PAWL_JSON_STRING) {
            (void)pawl_fail_at(err, PAWL_CORRUPT, "json", token.offset,
                               "metadata key '%s': the value must be a string, found %s", PAWL_SHOW(pair.key),
                               type_name(token.type));
            return fail_typed(p, err);
        }
        pair.value = keep_string(p, &token);
        st = add_pair(p, pair, err);
        if (st != PAWL_OK)
            return st;
    }
}

/* ---- the whole text ---- */

static enum pawl_status
read_members(struct parse *p, struct pawl_error *err)
{
    struct pawl_json_token token;
    enum pawl_status st = pawl_json_next(&p->reader, &token, err);
    if (st != PAWL_OK)
        return st;
    if (token.type != PAWL_JSON_OBJECT) {
        (void)pawl_fail_at(err, PAWL_CORRUPT, "json", token.offset, "the header must be an object, found %s",
                           type_name(token.type));
        return fail_typed(p, err);
    }
    for (;;) {
        while (read_usual_entry(p)) {
        }
        st = pawl_json_next(&p->reader, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_OBJECT_END)
            break;
        st = is_metadata_key(token.text) ? read_metadata(p, &token, err) : read_entry(p, &token, err);
        if (st != PAWL_OK)
            return st;
    }
    return pawl_json_next(&p->reader, &token, err); /* the end, or what stands behind the object */
}

/* Zeros where blanks should be: an old mistake of writers, worth its own sentence. `err` is what the tokenizer said. */
static void
explain_nul(const struct parse *p, struct pawl_error *err)
{
    size_t n = (size_t)(p->reader.end - p->reader.begin);
    if (strcmp(err->code, "json") != 0 || err->offset >= n)
        return;
    size_t end = n;
    while (end > err->offset && p->reader.begin[end - 1] == 0)
        end--;
    if (end != err->offset || p->reader.depth != 0)
        return;
    uint64_t at = err->offset;
    if (p->reader.at == p->reader.begin)
        (void)pawl_fail_at(err, PAWL_CORRUPT, "json", at, "the header of %zu bytes is nothing but NUL bytes", n);
    else
        (void)pawl_fail_at(err, PAWL_CORRUPT, "json", at,
                           "NUL padding at offset %" PRIu64 ": %" PRIu64
                           " zeros behind the object, where only blanks may be",
                           8 + at, (uint64_t)n - at);
    if (p->reader.at != p->reader.begin)
        pawl_error_hint(err, "'pawl repair' writes spaces there and leaves the data as they are");
}

static enum pawl_status
read_text(struct parse *p, struct pawl_error *err)
{
    struct pawl_st_header *h = p->header;
    enum pawl_status st = pawl_json_begin(&p->reader, h->text, (size_t)h->header_bytes, 0, err);
    if (st == PAWL_OK && !reserve_tensor(p))
        st = pawl_fail_memory(err, 64 * sizeof *h->tensors);
    if (st == PAWL_OK)
        st = read_members(p, err);
    if (st != PAWL_OK)
        explain_nul(p, err);
    pawl_json_release(&p->reader);
    if (st != PAWL_OK)
        return fix_offset(st, err);
    /* give back what the estimate took too much; a failure to shrink leaves the larger block */
    if (p->capacity - h->n > 64) {
        struct pawl_tensor_info *tensors = realloc(h->tensors, (h->n == 0 ? 1 : h->n) * sizeof *tensors);
        if (tensors != NULL)
            h->tensors = tensors;
    }
    return PAWL_OK;
}

/* ---- doors ---- */

enum pawl_status
pawl_st_check_length(uint64_t header_bytes, uint64_t file_bytes, const struct pawl_st_options *options,
                     struct pawl_error *err)
{
    uint64_t limit =
        options == NULL || options->header_bytes_max == 0 ? PAWL_ST_HEADER_BYTES_MAX : options->header_bytes_max;
    if (header_bytes > limit) {
        (void)pawl_fail_at(err, PAWL_LIMIT, "header-too-large", 0,
                           "header %" PRIu64 " > limit %" PRIu64 " (raise with option)", header_bytes, limit);
        pawl_error_hint(err, "if the file is trusted, raise the limit of the header's bytes");
        return PAWL_LIMIT;
    }
    uint64_t present = file_bytes < 8 ? 0 : file_bytes - 8;
    if (header_bytes > present) {
        (void)pawl_fail_at(err, PAWL_TRUNCATED, "header-truncated", file_bytes,
                           "the header takes %" PRIu64 " bytes behind the length, the file has %" PRIu64
                           " there: %" PRIu64 " missing",
                           header_bytes, present, header_bytes - present);
        pawl_error_hint(err, "the file is cut short: fetch or copy it again");
        return PAWL_TRUNCATED;
    }
    return PAWL_OK;
}

unsigned char *
pawl_st_text_new(uint64_t header_bytes)
{
    if (header_bytes > SIZE_MAX / 2) /* on a machine of 32 bits a file may have more than memory can hold */
        return NULL;
    size_t n = (size_t)header_bytes;
    unsigned char *text = malloc(n + ST_SLACK);
    if (text != NULL) {
        pawl_memory_filled(text, n);
        memset(text + n, 0, ST_SLACK);
    }
    return text;
}

enum pawl_status
pawl_st_parse_text(struct pawl_st_header *header, unsigned char *text, uint64_t header_bytes, uint64_t file_bytes,
                   const struct pawl_st_options *options, struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    struct parse p = { .header = header, .options = options == NULL ? &DEFAULTS : options };

    *header = (struct pawl_st_header){
        .header_bytes = header_bytes, .data_begin = 8 + header_bytes, .file_bytes = file_bytes, .text = text
    };
    if (p.options->mode == PAWL_ST_LINT)
        pawl_st_lint_text(header, p.options);
    enum pawl_status st = read_text(&p, &own);
    if (st == PAWL_OK && p.is_memory_out)
        st = pawl_fail_memory(&own, (size_t)header_bytes);
    if (st == PAWL_OK)
        st = pawl_st_check(header, p.options, &own);
    if (st != PAWL_OK) {
        pawl_st_release(header);
        if (err != NULL)
            *err = own;
    }
    return st;
}

enum pawl_status
pawl_st_parse(struct pawl_st_header *header, const void *text, uint64_t header_bytes, uint64_t file_bytes,
              const struct pawl_st_options *options, struct pawl_error *err)
{
    *header = (struct pawl_st_header)PAWL_ST_HEADER_INIT;
    enum pawl_status st = pawl_st_check_length(header_bytes, file_bytes, options, err);
    if (st != PAWL_OK)
        return st;
    unsigned char *copy = pawl_st_text_new(header_bytes);
    if (copy == NULL)
        return pawl_fail_memory(err, (size_t)header_bytes);
    if (header_bytes != 0)
        memcpy(copy, text, (size_t)header_bytes);
    return pawl_st_parse_text(header, copy, header_bytes, file_bytes, options, err);
}

void
pawl_st_release(struct pawl_st_header *header)
{
    free(header->tensors);
    free(header->metadata);
    free(header->text);
    free(header->original);
    pawl_name_table_release(&header->names);
    pawl_arena_release(&header->arena);
    *header = (struct pawl_st_header)PAWL_ST_HEADER_INIT;
}
