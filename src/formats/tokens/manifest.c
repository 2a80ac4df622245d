#include "formats/tokens/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include "formats/json/json.h"
#include "pawl/digest.h"

static bool
is_label_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool
pawl_token_is_label(struct pawl_str text)
{
    if (text.len == 0 || !is_label_byte(text.data[0]))
        return false;
    for (size_t i = 1; i < text.len; i++) {
        char c = text.data[i];
        if (!is_label_byte(c) && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

bool
pawl_token_is_file_name(struct pawl_str text)
{
    const size_t tail = sizeof "-00001.bin" - 1;
    if (text.len <= tail || !pawl_str_ends(text, PAWL_STR(".bin")))
        return false;
    const char *at = text.data + (text.len - tail);
    if (at[0] != '-')
        return false;
    for (int i = 1; i <= 5; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
    }
    return pawl_token_is_label(pawl_str_make(text.data, text.len - tail));
}

/* ---- reading ---- */

static enum pawl_status
fail_key(struct pawl_error *err, const struct pawl_json_value *value, const char *key, const char *expected)
{
    return pawl_fail_at(err, PAWL_CORRUPT, "manifest", value->offset, "'%s' is not %s", key, expected);
}

/* An object of exactly these keys, in any order. */
static enum pawl_status
check_keys(const struct pawl_json_value *object, const char *what, const char *const *keys, size_t n_keys,
           struct pawl_error *err)
{
    if (object->type != PAWL_JSON_OBJECT)
        return pawl_fail_at(err, PAWL_CORRUPT, "manifest", object->offset, "%s is not an object", what);
    for (size_t i = 0; i < object->n; i++) {
        size_t k = 0;
        while (k < n_keys && !pawl_str_equal(object->first[i].key, pawl_str_z(keys[k])))
            k++;
        if (k == n_keys)
            return pawl_fail_at(err, PAWL_CORRUPT, "manifest", object->first[i].offset, "%s has an unknown key '%s'",
                                what, PAWL_SHOW(object->first[i].key));
    }
    for (size_t k = 0; k < n_keys; k++) {
        if (pawl_json_member(object, pawl_str_z(keys[k])) == NULL)
            return pawl_fail_at(err, PAWL_CORRUPT, "manifest", object->offset, "%s lacks the key '%s'", what, keys[k]);
    }
    return PAWL_OK;
}

static enum pawl_status
get_label(const struct pawl_json_value *object, const char *key, struct pawl_str *ret, struct pawl_error *err)
{
    const struct pawl_json_value *value = pawl_json_member(object, pawl_str_z(key));
    if (value->type != PAWL_JSON_STRING || !pawl_token_is_label(value->text))
        return fail_key(err, value, key, "a string of a-z, 0-9, '.', '_' and '-' that begins with a letter or digit");
    *ret = value->text;
    return PAWL_OK;
}

static enum pawl_status
get_text(const struct pawl_json_value *object, const char *key, struct pawl_str *ret, struct pawl_error *err)
{
    const struct pawl_json_value *value = pawl_json_member(object, pawl_str_z(key));
    if (value->type != PAWL_JSON_STRING || value->text.len == 0)
        return fail_key(err, value, key, "a string of at least one character");
    *ret = value->text;
    return PAWL_OK;
}

/* null counts as "none" where ret_has is given. */
static enum pawl_status
get_sha256(const struct pawl_json_value *object, const char *key, bool *ret_has, unsigned char ret[32],
           struct pawl_error *err)
{
    const struct pawl_json_value *value = pawl_json_member(object, pawl_str_z(key));
    if (ret_has != NULL) {
        *ret_has = value->type != PAWL_JSON_NULL;
        if (!*ret_has)
            return PAWL_OK;
    }
    if (value->type != PAWL_JSON_STRING || !pawl_sha256_parse(value->text, ret))
        return fail_key(err, value, key,
                        ret_has != NULL ? "64 lowercase hex digits or null" : "64 lowercase hex digits");
    return PAWL_OK;
}

static enum pawl_status
get_number(const struct pawl_json_value *object, const char *key, uint64_t min, uint64_t max, bool *ret_has,
           uint64_t *ret, struct pawl_error *err)
{
    const struct pawl_json_value *value = pawl_json_member(object, pawl_str_z(key));
    if (ret_has != NULL) {
        *ret_has = value->type != PAWL_JSON_NULL;
        if (!*ret_has)
            return PAWL_OK;
    }
    uint64_t number = 0;
    if (value->type != PAWL_JSON_NUMBER || !pawl_json_u64(value->text, &number) || number < min || number > max)
        return pawl_fail_at(err, PAWL_CORRUPT, "manifest", value->offset,
                            "'%s' is not an integer from %" PRIu64 " to %" PRIu64 "%s", key, min, max,
                            ret_has != NULL ? " or null" : "");
    *ret = number;
    return PAWL_OK;
}

static int
compare_names(const void *a, const void *b)
{
    return pawl_str_compare(*(const struct pawl_str *)a, *(const struct pawl_str *)b);
}

static enum pawl_status
check_unique(const struct pawl_token_file *files, size_t n, uint64_t offset, struct pawl_error *err)
{
    struct pawl_str *names = calloc(n, sizeof *names);
    if (names == NULL)
        return pawl_fail_memory(err, n * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = files[i].name;
    qsort(names, n, sizeof *names, compare_names);
    enum pawl_status st = PAWL_OK;
    for (size_t i = 1; i < n && st == PAWL_OK; i++) {
        if (pawl_str_equal(names[i - 1], names[i]))
            st = pawl_fail_at(err, PAWL_CORRUPT, "manifest", offset, "'files' lists '%s' twice", PAWL_SHOW(names[i]));
    }
    free(names);
    return st;
}

static enum pawl_status
get_file(const struct pawl_json_value *row, struct pawl_token_file *ret, struct pawl_error *err)
{
    static const char *const KEYS[] = { "name", "split", "n_tokens", "n_docs", "sha256" };
    enum pawl_status st = check_keys(row, "a row of 'files'", KEYS, sizeof KEYS / sizeof KEYS[0], err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_json_value *name = pawl_json_member(row, PAWL_STR("name"));
    if (name->type != PAWL_JSON_STRING || !pawl_token_is_file_name(name->text))
        return fail_key(err, name, "name", "a file's name of the form train-00001.bin");
    ret->name = name->text;
    st = get_label(row, "split", &ret->split, err);
    if (st == PAWL_OK)
        st = get_number(row, "n_tokens", 0, UINT64_C(2147483647), NULL, &ret->ids, err);
    if (st == PAWL_OK)
        st = get_number(row, "n_docs", 0, INT64_MAX, NULL, &ret->documents, err);
    if (st == PAWL_OK)
        st = get_sha256(row, "sha256", NULL, ret->sha256, err);
    return st;
}

static enum pawl_status
get_files(struct pawl_arena *arena, const struct pawl_json_value *root, struct pawl_token_manifest *manifest,
          struct pawl_error *err)
{
    const struct pawl_json_value *list = pawl_json_member(root, PAWL_STR("files"));
    if (list->type != PAWL_JSON_ARRAY || list->n == 0)
        return fail_key(err, list, "files", "a list of at least one file");
    struct pawl_token_file *files = pawl_arena_take_array(arena, list->n, sizeof *files);
    if (files == NULL)
        return pawl_fail_memory(err, list->n * sizeof *files);
    for (size_t i = 0; i < list->n; i++) {
        enum pawl_status st = get_file(&list->first[i], &files[i], err);
        if (st != PAWL_OK)
            return st;
    }
    manifest->files = files;
    manifest->n_files = list->n;
    return check_unique(files, list->n, list->offset, err);
}

enum pawl_status
pawl_token_manifest_parse(struct pawl_arena *arena, const void *text, size_t bytes,
                          struct pawl_token_manifest *ret_manifest, struct pawl_error *err)
{
    static const char *const KEYS[] = { "tokenizer_id", "tokenizer_sha256",       "vocab_size", "doc_sep_id", "dataset",
                                        "version",      "corpus_manifest_sha256", "files" };
    struct pawl_token_manifest m = { .files = NULL };
    const struct pawl_json_value *root = NULL;
    enum pawl_status st = pawl_json_parse(arena, text, bytes, 0, &root, err);
    if (st != PAWL_OK) {
        if (st != PAWL_NO_MEMORY)
            pawl_error_code(err, "manifest");
        return st;
    }
    st = check_keys(root, "the manifest", KEYS, sizeof KEYS / sizeof KEYS[0], err);
    if (st == PAWL_OK)
        st = get_label(root, "tokenizer_id", &m.tokenizer_id, err);
    if (st == PAWL_OK)
        st = get_sha256(root, "tokenizer_sha256", &m.has_tokenizer_sha256, m.tokenizer_sha256, err);
    if (st == PAWL_OK)
        st = get_number(root, "vocab_size", 1, INT64_MAX, &m.has_vocabulary, &m.vocabulary, err);
    if (st == PAWL_OK)
        st = get_number(root, "doc_sep_id", 0, INT64_MAX, &m.has_separator, &m.separator, err);
    if (st == PAWL_OK)
        st = get_text(root, "dataset", &m.dataset, err);
    if (st == PAWL_OK)
        st = get_text(root, "version", &m.version, err);
    if (st == PAWL_OK)
        st = get_sha256(root, "corpus_manifest_sha256", NULL, m.corpus_sha256, err);
    if (st == PAWL_OK)
        st = get_files(arena, root, &m, err);
    if (st == PAWL_OK)
        *ret_manifest = m;
    return st;
}

/* ---- printing ---- */

static void
put_sha256(struct pawl_json_writer *json, const char *key, bool has, const unsigned char digest[32])
{
    char hex[65];
    pawl_json_write_key(json, pawl_str_z(key));
    if (!has) {
        pawl_json_write_null(json);
        return;
    }
    pawl_sha256_print(digest, hex);
    pawl_json_write_string(json, pawl_str_z(hex));
}

static void
put_number(struct pawl_json_writer *json, const char *key, bool has, uint64_t number)
{
    pawl_json_write_key(json, pawl_str_z(key));
    if (has)
        pawl_json_write_u64(json, number);
    else
        pawl_json_write_null(json);
}

static void
put_text(struct pawl_json_writer *json, const char *key, struct pawl_str text)
{
    pawl_json_write_key(json, pawl_str_z(key));
    pawl_json_write_string(json, text);
}

void
pawl_token_manifest_print(const struct pawl_token_manifest *manifest, struct pawl_buffer *out)
{
    struct pawl_json_writer json;
    pawl_json_write_begin(&json, out, PAWL_JSON_INDENTED, PAWL_JSON_RAW);
    pawl_json_write_object(&json);
    put_text(&json, "tokenizer_id", manifest->tokenizer_id);
    put_sha256(&json, "tokenizer_sha256", manifest->has_tokenizer_sha256, manifest->tokenizer_sha256);
    put_number(&json, "vocab_size", manifest->has_vocabulary, manifest->vocabulary);
    put_number(&json, "doc_sep_id", manifest->has_separator, manifest->separator);
    put_text(&json, "dataset", manifest->dataset);
    put_text(&json, "version", manifest->version);
    put_sha256(&json, "corpus_manifest_sha256", true, manifest->corpus_sha256);
    pawl_json_write_key(&json, PAWL_STR("files"));
    pawl_json_write_array(&json);
    for (size_t i = 0; i < manifest->n_files; i++) {
        const struct pawl_token_file *file = &manifest->files[i];
        pawl_json_write_object(&json);
        put_text(&json, "name", file->name);
        put_text(&json, "split", file->split);
        put_number(&json, "n_tokens", true, file->ids);
        put_number(&json, "n_docs", true, file->documents);
        put_sha256(&json, "sha256", true, file->sha256);
        pawl_json_write_object_end(&json);
    }
    pawl_json_write_array_end(&json);
    pawl_json_write_object_end(&json);
    (void)pawl_buffer_add_char(out, '\n');
}
