/* MANIFEST.json, read and printed. The name of the file keeps it apart from the token formats' manifest.c. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/checked.h"
#include "checkpoint/documents.h"
#include "checkpoint/fields.h"
#include "checkpoint/names.h"
#include "pawl/digest.h"

static int
compare_receipts(const void *a, const void *b)
{
    const struct pawl_receipt *first = a;
    const struct pawl_receipt *second = b;
    return pawl_str_compare(first->name, second->name);
}

static enum pawl_status
parse_row(const struct pawl_json_value *value, struct pawl_receipt *ret_row, struct pawl_error *err)
{
    static const char *const NAMES[] = { "name", "sha256", "bytes" };
    const struct pawl_json_value *members[3];
    struct pawl_str hex;
    int64_t bytes;

    enum pawl_status st = pawl_fields_object(value, NAMES, 3, 3, members, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_field_string(members[0], "name", &ret_row->name, err);
    if (st != PAWL_OK)
        return st;
    const char *fault = pawl_manifest_name_fault(ret_row->name);
    if (fault != NULL)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", members[0]->offset, "\"%s\": the name %s",
                            PAWL_SHOW(ret_row->name), fault);
    st = pawl_field_hex(members[1], "sha256", 64, &hex, err);
    if (st != PAWL_OK)
        return st;
    (void)pawl_sha256_parse(hex, ret_row->sha256); /* 64 hex digits: it can't refuse them */
    st = pawl_field_count(members[2], "bytes", &bytes, err);
    if (st != PAWL_OK)
        return st;
    ret_row->bytes = (uint64_t)bytes;
    return PAWL_OK;
}

static enum pawl_status
parse_rows(struct pawl_arena *arena, const struct pawl_json_value *value, struct pawl_manifest *manifest,
           struct pawl_error *err)
{
    if (value->type != PAWL_JSON_ARRAY)
        return pawl_field_fail(value, "files", "an array", err);
    if (value->n == 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", value->offset,
                            "files: expected at least one file, found none");
    manifest->files = pawl_arena_take_array(arena, value->n, sizeof *manifest->files);
    if (manifest->files == NULL)
        return pawl_fail_memory(err, value->n * sizeof *manifest->files);
    manifest->n = value->n;
    for (size_t i = 0; i < value->n; i++) {
        enum pawl_status st = parse_row(&value->first[i], &manifest->files[i], err);
        if (st != PAWL_OK)
            return pawl_context(err, st, "files[%zu]", i);
    }
    qsort(manifest->files, manifest->n, sizeof *manifest->files, compare_receipts);
    for (size_t i = 1; i < manifest->n; i++) {
        if (pawl_str_equal(manifest->files[i - 1].name, manifest->files[i].name))
            return pawl_fail(err, PAWL_CORRUPT, "content", "files: \"%s\" is listed twice",
                             PAWL_SHOW(manifest->files[i].name));
    }
    return PAWL_OK;
}

enum pawl_status
pawl_manifest_parse(struct pawl_arena *arena, struct pawl_manifest *ret_manifest, const void *text, size_t bytes,
                    struct pawl_error *err)
{
    static const char *const NAMES[] = { "kind", "files", "model_id", "version", "created_at" };
    const struct pawl_json_value *members[5];
    const struct pawl_json_value *object = NULL;
    struct pawl_manifest manifest = { 0 };

    enum pawl_status st = pawl_fields_parse(arena, text, bytes, &object, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_fields_object(object, NAMES, 5, 2, members, err);
    if (st != PAWL_OK)
        return st;
    if (members[0]->type != PAWL_JSON_STRING || (!pawl_str_equal(members[0]->text, PAWL_STR("checkpoint")) &&
                                                 !pawl_str_equal(members[0]->text, PAWL_STR("release"))))
        return pawl_field_fail(members[0], "kind", "\"checkpoint\" or \"release\"", err);
    manifest.kind = members[0]->text;
    struct pawl_str *texts[] = { &manifest.model_id, &manifest.version, &manifest.created_at };
    for (size_t i = 0; i < 3; i++) {
        if (members[i + 2] == NULL)
            continue;
        st = pawl_field_string(members[i + 2], NAMES[i + 2], texts[i], err);
        if (st != PAWL_OK)
            return st;
    }
    st = parse_rows(arena, members[1], &manifest, err);
    if (st != PAWL_OK)
        return st;
    *ret_manifest = manifest;
    return PAWL_OK;
}

static void
print_text(struct pawl_json_writer *writer, const char *key, struct pawl_str text)
{
    if (text.data == NULL)
        return;
    pawl_json_write_key(writer, pawl_str_make(key, strlen(key)));
    pawl_json_write_string(writer, text);
}

bool
pawl_manifest_print(struct pawl_manifest *manifest, struct pawl_buffer *out)
{
    struct pawl_json_writer writer;

    if (manifest->n > 1)
        qsort(manifest->files, manifest->n, sizeof *manifest->files, compare_receipts);
    pawl_json_write_begin(&writer, out, PAWL_JSON_INDENTED, PAWL_JSON_RAW);
    pawl_json_write_object(&writer);
    print_text(&writer, "kind", manifest->kind);
    print_text(&writer, "model_id", manifest->model_id);
    print_text(&writer, "version", manifest->version);
    print_text(&writer, "created_at", manifest->created_at);
    pawl_json_write_key(&writer, PAWL_STR("files"));
    pawl_json_write_array(&writer);
    for (size_t i = 0; i < manifest->n; i++) {
        char hex[65];
        pawl_sha256_print(manifest->files[i].sha256, hex);
        pawl_json_write_object(&writer);
        print_text(&writer, "name", manifest->files[i].name);
        print_text(&writer, "sha256", pawl_str_make(hex, 64));
        pawl_json_write_key(&writer, PAWL_STR("bytes"));
        pawl_json_write_u64(&writer, manifest->files[i].bytes);
        pawl_json_write_object_end(&writer);
    }
    pawl_json_write_array_end(&writer);
    pawl_json_write_object_end(&writer);
    (void)pawl_buffer_add_char(out, '\n');
    return pawl_buffer_ok(out);
}

const struct pawl_receipt *
pawl_manifest_find(const struct pawl_manifest *manifest, struct pawl_str name)
{
    size_t begin = 0;
    size_t end = manifest->n;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        int order = pawl_str_compare(manifest->files[middle].name, name);
        if (order == 0)
            return &manifest->files[middle];
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}
