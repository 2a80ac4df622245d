/* unit/convert_tools.h: rewriting models in tests, and what is in them. */
#ifndef UNIT_CONVERT_TOOLS_H
#define UNIT_CONVERT_TOOLS_H

#include "unit/model_tools.h"

#include "model/convert_model.h"

static struct pawl_error err;

static ST_UNUSED struct pawl_model *
open_model(const char *path)
{
    struct pawl_model *model = NULL;
    enum pawl_status st = pawl_model_open_plain(pawl_os_posix(), pawl_str_z(path), NULL, NULL, &model, &err);
    if (st != PAWL_OK)
        fail_msg("%s: %s", path, err.message);
    return model;
}

static ST_UNUSED enum pawl_status
try_convert(const char *from, const char *to, const struct pawl_convert_options *options,
            struct pawl_converted **ret_done)
{
    struct pawl_model *model = open_model(from);
    enum pawl_status st = pawl_convert(model, pawl_str_z(to), options, ret_done, &err);
    pawl_model_close(model);
    return st;
}

static ST_UNUSED void
convert(const char *from, const char *to, const struct pawl_convert_options *options)
{
    if (try_convert(from, to, options, NULL) != PAWL_OK)
        fail_msg("%s to %s: %s", from, to, err.message);
}

static ST_UNUSED void
shard(const char *from, const char *to, uint64_t bytes)
{
    const struct pawl_convert_options options = PAWL_CONVERT_OPTIONS(.is_directory = 1, .file_bytes_max = bytes);
    convert(from, to, &options);
}

static ST_UNUSED bool
is_same_file(const char *a, const char *b)
{
    size_t n;
    size_t m;
    char *x = st_slurp(a, &n);
    char *y = st_slurp(b, &m);
    bool is_same = n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return is_same;
}

static ST_UNUSED bool
is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

/* "name=value of its first byte" of all tensors, then "alias>target", then "key:value" of the metadata; static storage. */
static ST_UNUSED const char *
content_of(const char *path)
{
    static char text[4000];
    struct pawl_model *model = open_model(path);
    size_t n;
    size_t at = 0;
    text[0] = '\0';
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    for (size_t i = 0; i < n; i++) {
        unsigned char bytes[64] = { 0 };
        size_t size = (size_t)(tensors[i].end - tensors[i].begin);
        assert_true(size <= sizeof bytes);
        assert_int_equal(pawl_model_read(model, &tensors[i], tensors[i].dtype, bytes, size, NULL), PAWL_OK);
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*s=%d ", PAWL_ARG(tensors[i].name), bytes[0]);
    }
    const struct pawl_pair *pairs = pawl_model_aliases(model, &n);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%.*s>%.*s ", PAWL_ARG(pairs[i].key),
                               PAWL_ARG(pairs[i].value));
    pairs = pawl_model_metadata(model, &n, NULL);
    for (size_t i = 0; i < n; i++) {
        if (!pawl_str_starts(pairs[i].key, PAWL_STR("pawl.alias.")))
            at += (size_t)snprintf(text + at, sizeof text - at, "%.*s:%.*s ", PAWL_ARG(pairs[i].key),
                                   PAWL_ARG(pairs[i].value));
    }
    pawl_model_close(model);
    return text;
}

/* Four tensors and two aliases of "emb"; metadata that loaders look at. */
static ST_UNUSED void
put_tied(const char *path)
{
    put_model(
        path,
        "{\"__metadata__\":{\"pawl.alias.head\":\"emb\",\"pawl.alias.out.w\":\"emb\",\"format\":\"pt\",\"x\":\"y\"},"
        "\"emb\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"l.0.b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
        "\"l.0.w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]},"
        "\"l.1.w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[5,6]}}",
        "\1\1\2\3\3\4", 6);
}

#endif
