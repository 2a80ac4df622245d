#include "model/index.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "formats/json/json.h"

static int
compare_strs(const void *a, const void *b)
{
    return pawl_str_compare(*(const struct pawl_str *)a, *(const struct pawl_str *)b);
}

static int
compare_pairs(const void *a, const void *b)
{
    return pawl_str_compare(((const struct pawl_pair *)a)->key, ((const struct pawl_pair *)b)->key);
}

static const char *
type_name(const struct pawl_json_value *value)
{
    switch (value->type) {
    case PAWL_JSON_OBJECT:
        return "an object";
    case PAWL_JSON_ARRAY:
        return "an array";
    case PAWL_JSON_STRING:
        return "a string";
    case PAWL_JSON_NUMBER:
        return "a number";
    case PAWL_JSON_NULL:
        return "null";
    default:
        return "true or false";
    }
}

/*
 * What the index states as total. Tools have written it as 1234 and, where a dtype has less than a byte, as 1234.0:
 * both are totals. Anything else is kept for a warning: no reader needs the number.
 */
static void
read_total(struct pawl_index *index, const struct pawl_json_value *metadata)
{
    const struct pawl_json_value *total = pawl_json_member(metadata, PAWL_STR("total_size"));
    if (total == NULL || total->type == PAWL_JSON_NULL)
        return;
    if (total->type != PAWL_JSON_NUMBER) {
        index->bad_total = pawl_str_z(type_name(total));
        return;
    }
    if (pawl_json_u64(total->text, &index->total_size)) {
        index->has_total = true;
        return;
    }
    double real = pawl_json_f64(total->text);
    if (real >= 0 && real < 18446744073709551616.0 && real == floor(real)) {
        index->total_size = (uint64_t)real;
        index->has_total = true;
        return;
    }
    index->bad_total = total->text;
}

static enum pawl_status
read_map(struct pawl_arena *arena, struct pawl_index *index, const struct pawl_json_value *map, struct pawl_error *err)
{
    size_t n = map->n;
    if (n > UINT32_MAX)
        return pawl_fail(err, PAWL_LIMIT, "limit", "the index maps %zu tensors, more than %" PRIu32, n, UINT32_MAX);
    struct pawl_str *files = pawl_arena_take_array(arena, n + 1, sizeof *files);
    index->entries = pawl_arena_take_array(arena, n + 1, sizeof *index->entries);
    if (files == NULL || index->entries == NULL)
        return pawl_fail_memory(err, n * sizeof *index->entries);

    for (size_t i = 0; i < n; i++) {
        const struct pawl_json_value *value = &map->first[i];
        if (value->type != PAWL_JSON_STRING) {
            (void)pawl_fail_at(err, PAWL_CORRUPT, "content", value->offset,
                               "weight_map gives %s for tensor '%s', expected the name of a file", type_name(value),
                               PAWL_SHOW(value->key));
            pawl_error_tensor(err, value->key);
            return PAWL_CORRUPT;
        }
        files[i] = value->text;
    }
    if (n > 0)
        qsort(files, n, sizeof *files, compare_strs);
    size_t unique = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && pawl_str_equal(files[i], files[unique - 1]))
            continue;
        if (!pawl_arena_copy_str(arena, files[i], &files[unique]))
            return pawl_fail_memory(err, files[i].len);
        unique++;
    }
    index->files = files;
    index->n_files = unique;
    index->n = n;
    for (size_t i = 0; i < n; i++) {
        const struct pawl_str *file = bsearch(&map->first[i].text, files, unique, sizeof *files, compare_strs);
        index->entries[i].tensor = map->first[i].key;
        index->entries[i].file = (uint32_t)(file - files);
    }
    return PAWL_OK;
}

enum pawl_status
pawl_index_parse(struct pawl_arena *arena, struct pawl_index *ret_index, const void *text, size_t bytes,
                 struct pawl_error *err)
{
    struct pawl_index index = { NULL, 0, NULL, 0, false, 0, { NULL, 0 } };
    const struct pawl_json_value *root;
    enum pawl_status st = pawl_json_parse(arena, text, bytes, 0, &root, err);
    if (st != PAWL_OK)
        return st;
    if (root->type != PAWL_JSON_OBJECT)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", root->offset, "the index is %s, expected an object",
                            type_name(root));
    const struct pawl_json_value *metadata = pawl_json_member(root, PAWL_STR("metadata"));
    if (metadata != NULL && metadata->type != PAWL_JSON_NULL) {
        if (metadata->type != PAWL_JSON_OBJECT)
            return pawl_fail_at(err, PAWL_CORRUPT, "content", metadata->offset,
                                "the index's metadata is %s, expected an object", type_name(metadata));
        read_total(&index, metadata);
    }
    const struct pawl_json_value *map = pawl_json_member(root, PAWL_STR("weight_map"));
    if (map == NULL)
        return pawl_fail(err, PAWL_CORRUPT, "content", "the index has no weight_map");
    if (map->type != PAWL_JSON_OBJECT)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", map->offset,
                            "the index's weight_map is %s, expected an object", type_name(map));
    st = read_map(arena, &index, map, err);
    if (st == PAWL_OK)
        *ret_index = index;
    return st;
}

/* The digits that end at text[end), at least five, no more than nine, no zero in front of six or more. */
static bool
digits_before(struct pawl_str text, size_t end, size_t *ret_begin, uint32_t *ret_number)
{
    size_t begin = end;
    while (begin > 0 && text.data[begin - 1] >= '0' && text.data[begin - 1] <= '9')
        begin--;
    size_t n = end - begin;
    if (n < 5 || n > 9 || (n > 5 && text.data[begin] == '0'))
        return false;
    uint32_t number = 0;
    for (size_t i = begin; i < end; i++)
        number = number * 10 + (uint32_t)(text.data[i] - '0');
    *ret_begin = begin;
    *ret_number = number;
    return true;
}

bool
pawl_shard_number(struct pawl_str name, struct pawl_str *ret_base, uint32_t *ret_k, uint32_t *ret_n)
{
    const struct pawl_str ending = PAWL_STR(".safetensors");
    const struct pawl_str of = PAWL_STR("-of-");
    size_t at;
    uint32_t k;
    uint32_t n;
    if (!pawl_str_ends(name, ending) || !digits_before(name, name.len - ending.len, &at, &n))
        return false;
    if (!pawl_str_ends(pawl_str_make(name.data, at), of) || !digits_before(name, at - of.len, &at, &k))
        return false;
    if (at == 0 || name.data[at - 1] != '-' || k == 0 || k > n)
        return false;
    *ret_base = pawl_str_make(name.data, at - 1);
    *ret_k = k;
    *ret_n = n;
    return true;
}

bool
pawl_index_print(struct pawl_buffer *out, uint64_t total_size, struct pawl_pair *map, size_t n)
{
    struct pawl_json_writer json;
    if (n > 0)
        qsort(map, n, sizeof *map, compare_pairs);
    pawl_json_write_begin(&json, out, PAWL_JSON_INDENTED, PAWL_JSON_ASCII);
    pawl_json_write_object(&json);
    pawl_json_write_key(&json, PAWL_STR("metadata"));
    pawl_json_write_object(&json);
    pawl_json_write_key(&json, PAWL_STR("total_size"));
    pawl_json_write_u64(&json, total_size);
    pawl_json_write_object_end(&json);
    pawl_json_write_key(&json, PAWL_STR("weight_map"));
    pawl_json_write_object(&json);
    for (size_t i = 0; i < n; i++) {
        pawl_json_write_key(&json, map[i].key);
        pawl_json_write_string(&json, map[i].value);
    }
    pawl_json_write_object_end(&json);
    pawl_json_write_object_end(&json);
    (void)pawl_buffer_add_char(out, '\n');
    return pawl_buffer_ok(out);
}
