#include "unit/model_tools.h"
#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "model/model.h"
#include "unit/emulator.h"

#define SHARDED PAWL_GOLDEN "/safetensors/files/sharded"
#define ALL_DTYPES PAWL_GOLDEN "/safetensors/files/all-dtypes.safetensors"

static enum pawl_status
open_model(const char *path, struct pawl_model **ret_model, struct pawl_error *err)
{
    return pawl_model_open_plain(pawl_os_posix(), pawl_str_z(path), NULL, NULL, ret_model, err);
}

static const struct pawl_tensor_info *
find(const struct pawl_model *model, const char *name)
{
    const struct pawl_tensor_info *t = pawl_model_find(model, pawl_str_z(name));
    assert_non_null(t);
    return t;
}

/* F32 x = [1, 2], BF16 y = [1, -2], U8 z = 7, alias tied of x, unaligned on purpose: the header has an odd length. */
static void
put_small(const char *path)
{
    put_model(path,
              "{\"__metadata__\":{\"format\":\"pt\",\"pawl.alias.tied\":\"x\",\"pawl.alias.lost\":\"nowhere\"},"
              "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
              "\"y\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[8,12]},"
              "\"z\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[12,13]}}",
              "\0\0\200\077\0\0\0\100\200\077\0\300\7", 13);
}

/* Goal: everything that a model tells of itself, of a file and of a directory of shards. */
static void
tells_what_is_in_a_model(void **state)
{
    struct pawl_model *model;
    size_t n;
    bool is_present;
    (void)state;
    put_small("m.safetensors");
    assert_int_equal(open_model("m.safetensors", &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_SAFETENSORS);
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    assert_int_equal(n, 3);
    assert_ptr_equal(find(model, "y"), &tensors[1]);
    assert_ptr_equal(find(model, "tied"), &tensors[0]);
    assert_null(pawl_model_find(model, PAWL_STR("lost")));
    assert_null(pawl_model_find(model, PAWL_STR("")));
    const struct pawl_pair *aliases = pawl_model_aliases(model, &n);
    assert_int_equal(n, 1);
    assert_true(pawl_str_equal(aliases[0].key, PAWL_STR("tied")) && pawl_str_equal(aliases[0].value, PAWL_STR("x")));
    (void)pawl_model_metadata(model, &n, &is_present);
    assert_int_equal(n, 3); /* as it is there */
    assert_true(is_present);
    const struct pawl_model_file *files = pawl_model_files(model, &n);
    assert_int_equal(n, 1);
    assert_true(pawl_str_equal(files[0].name, PAWL_STR("m.safetensors")));
    assert_int_equal(files[0].bytes, 8 + files[0].header_bytes + 13);
    pawl_model_close(model);

    assert_int_equal(open_model(SHARDED, &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_SAFETENSORS_INDEX);
    (void)pawl_model_files(model, &n);
    assert_int_equal(n, 4);
    assert_int_equal(find(model, "model.layers.1.w")->file, 3);
    pawl_model_close(model);
    assert_int_equal(open_model(SHARDED "/model.safetensors.index.json", &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_SAFETENSORS_INDEX);
    pawl_model_close(model);
    pawl_model_close(NULL);

    int before = count_descriptors();
    assert_int_equal(open_model(SHARDED, &model, NULL), PAWL_OK);
    const void *data;
    assert_int_equal(pawl_model_map(model, find(model, "head.weight"), &data, NULL, NULL), PAWL_OK);
    pawl_model_close(model);
    assert_int_equal(count_descriptors(), before);
}

/* Goal: the three ways to the bytes agree, aligned or not; F32 comes decoded; wrong sizes and dtypes are answered with numbers. */
static void
reads_maps_and_decodes(void **state)
{
    struct pawl_model *model;
    struct pawl_error err = PAWL_ERROR_INIT;
    float values[4] = { 9, 9, 9, 9 };
    unsigned char bytes[8];
    const void *data;
    bool is_aligned;
    (void)state;
    put_small("m.safetensors");
    assert_int_equal(open_model("m.safetensors", &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_read(model, find(model, "x"), PAWL_F32, values, 8, NULL), PAWL_OK);
    assert_true(values[0] == 1 && values[1] == 2 && values[2] == 9);
    assert_int_equal(pawl_model_read(model, find(model, "y"), PAWL_F32, values, 8, NULL), PAWL_OK);
    assert_true(values[0] == 1 && values[1] == -2 && values[2] == 9);
    assert_int_equal(pawl_model_read(model, find(model, "y"), PAWL_BF16, bytes, 4, NULL), PAWL_OK);
    assert_memory_equal(bytes, "\200\077\0\300", 4);
    assert_int_equal(pawl_model_map(model, find(model, "y"), &data, &is_aligned, NULL), PAWL_OK);
    assert_memory_equal(data, "\200\077\0\300", 4);
    assert_int_equal(is_aligned, (uintptr_t)data % 2 == 0);
    const void *again;
    assert_int_equal(pawl_model_map(model, find(model, "z"), &again, &is_aligned, NULL), PAWL_OK);
    assert_ptr_equal(again, (const char *)data + 4); /* one mapping */
    assert_true(is_aligned);

    assert_int_equal(pawl_model_read(model, find(model, "x"), PAWL_F32, values, 12, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "tensor 'x': F32 takes 8 bytes, the caller's memory has 12");
    assert_int_equal(pawl_model_read(model, find(model, "y"), PAWL_F32, values, 4, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "tensor 'y': F32 takes 8 bytes, the caller's memory has 4");
    assert_int_equal(pawl_model_read(model, find(model, "z"), PAWL_F32, values, 4, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "tensor 'z': U8 can't be read as F32: as it is, or a float as another float");
    assert_int_equal(pawl_model_read(model, find(model, "x"), PAWL_I32, values, 8, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_model_read(model, find(model, "y"), PAWL_F32, (char *)values + 1, 8, &err), PAWL_ARGUMENT);
    struct pawl_tensor_info other = *find(model, "x");
    other.end += 100;
    assert_int_equal(pawl_model_read(model, &other, PAWL_F32, values, 8, &err), PAWL_ARGUMENT);
    other = *find(model, "x");
    other.file = 1;
    assert_int_equal(pawl_model_map(model, &other, &data, NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_model_read(model, NULL, PAWL_F32, values, 8, &err), PAWL_ARGUMENT);
    pawl_model_close(model);
}

/* Goal: every dtype of the golden file decodes as pawl_decode_f32 does it, or says that it can't; blocks end anywhere. */
static void
decodes_every_dtype(void **state)
{
    struct pawl_model *model;
    size_t n;
    unsigned decoded = 0;
    (void)state;
    assert_int_equal(open_model(ALL_DTYPES, &model, NULL), PAWL_OK);
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    for (size_t i = 0; i < n; i++) {
        const struct pawl_tensor_info *t = &tensors[i];
        size_t bytes = (size_t)(t->end - t->begin);
        size_t count = bytes * 8 / pawl_dtype_bits(t->dtype);
        float *got = calloc(count + 1, sizeof *got);
        float *want = calloc(count + 1, sizeof *want);
        unsigned char *raw = malloc(bytes + 1);
        assert_true(got != NULL && want != NULL && raw != NULL);
        assert_int_equal(pawl_model_read(model, t, t->dtype, raw, bytes, NULL), PAWL_OK);
        bool can = pawl_dtype_is_float(t->dtype);
        enum pawl_status st = pawl_model_read(model, t, PAWL_F32, got, count * sizeof *got, NULL);
        assert_int_equal(st, can ? PAWL_OK : PAWL_ARGUMENT);
        if (can && t->dtype != PAWL_F32) {
            assert_int_equal(pawl_cast(t->dtype, raw, count, PAWL_F32, PAWL_OVERFLOW_FORMAT, want, NULL, NULL),
                             PAWL_OK);
            if (t->dtype != PAWL_F64)
                assert_int_equal(pawl_decode_f32(t->dtype, raw, count, want, NULL), PAWL_OK);
            assert_memory_equal(got, want, count * sizeof *got);
            decoded++;
        }
        free(raw);
        free(want);
        free(got);
    }
    assert_true(decoded >= 8);
    pawl_model_close(model);

    /* more than one block of codes: F6, whose values lie across bytes */
    enum { CODES = 2000000 };
    size_t bytes = CODES / 4 * 3;
    unsigned char *raw = malloc(bytes);
    float *got = malloc(CODES * sizeof *got);
    float *want = malloc(CODES * sizeof *want);
    assert_true(raw != NULL && got != NULL && want != NULL);
    for (size_t i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(i * 2654435761u >> 15);
    put_model("f6.safetensors", "{\"w\":{\"dtype\":\"F6_E3M2\",\"shape\":[2000000],\"data_offsets\":[0,1500000]}}", raw,
              bytes);
    assert_int_equal(open_model("f6.safetensors", &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_read(model, find(model, "w"), PAWL_F32, got, CODES * sizeof *got, NULL), PAWL_OK);
    assert_int_equal(pawl_decode_f32(PAWL_F6_E3M2, raw, CODES, want, NULL), PAWL_OK);
    assert_memory_equal(got, want, CODES * sizeof *got);
    pawl_model_close(model);
    free(raw);
    free(got);
    free(want);
}

/* Goal: a file that is cut or changed while it is open is an error at every call, and no signal: case 80. */
static void
a_file_cut_while_open_is_an_error(void **state)
{
    enum { BYTES = 3 << 20 };
    struct pawl_model *model;
    struct pawl_error err = PAWL_ERROR_INIT;
    const void *data;
    (void)state;
    unsigned char *bytes = calloc(1, BYTES);
    put_model("m.safetensors",
              "{\"a\":{\"dtype\":\"U8\",\"shape\":[1024],\"data_offsets\":[0,1024]},"
              "\"b\":{\"dtype\":\"U8\",\"shape\":[3144704],\"data_offsets\":[1024,3145728]}}",
              bytes, BYTES);
    assert_int_equal(open_model("m.safetensors", &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_map(model, find(model, "b"), &data, NULL, NULL), PAWL_OK);
    assert_int_equal(truncate("m.safetensors", BYTES / 2), 0);
    assert_int_equal(pawl_model_read(model, find(model, "b"), PAWL_U8, bytes, BYTES - 1024, &err), PAWL_TRUNCATED);
    assert_string_equal(err.tensor, "b");
    assert_non_null(strstr(err.path, "m.safetensors"));
    assert_int_equal(pawl_model_map(model, find(model, "b"), &data, NULL, &err), PAWL_TRUNCATED);
    /* what is still there is of no file that was checked */
    assert_int_equal(pawl_model_read(model, find(model, "a"), PAWL_U8, bytes, 1024, &err), PAWL_TRUNCATED);
    assert_int_equal(pawl_model_map(model, find(model, "a"), &data, NULL, &err), PAWL_TRUNCATED);
    pawl_model_close(model);
    free(bytes);
}

/* Goal: a file that is replaced by rename keeps its old contents for those who have it open, read and mapped. */
static void
a_file_replaced_while_open_keeps_its_contents(void **state)
{
    struct pawl_model *model;
    float values[2];
    const void *data;
    (void)state;
    put_small("m.safetensors");
    assert_int_equal(open_model("m.safetensors", &model, NULL), PAWL_OK);
    put_model("other", "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "\0\0\0\0", 4);
    assert_int_equal(rename("other", "m.safetensors"), 0);
    assert_int_equal(pawl_model_read(model, find(model, "x"), PAWL_F32, values, 8, NULL), PAWL_OK);
    assert_true(values[0] == 1 && values[1] == 2);
    assert_int_equal(pawl_model_map(model, find(model, "x"), &data, NULL, NULL), PAWL_OK);
    assert_memory_equal(data, "\0\0\200\077\0\0\0\100", 8);
    pawl_model_close(model);
}

/* ---- directories ---- */

static void
expect_no_model(const char *path, enum pawl_status status, const char *code, const char *part)
{
    struct pawl_model *model = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(open_model(path, &model, &err), status);
    assert_null(model);
    assert_string_equal(err.code, code);
    if (strstr(err.message, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, err.message);
    assert_non_null(strstr(err.path, path));
}

/* Goal: which file of a directory is the model, and clear answers where none is. */
static void
chooses_the_model_of_a_directory(void **state)
{
    struct pawl_model *model;
    size_t n;
    (void)state;
    assert_int_equal(mkdir("d", 0777), 0);
    expect_no_model("d", PAWL_CORRUPT, "not-safetensors", "no index and no safetensors file");
    put_small("d/one.safetensors");
    assert_int_equal(open_model("d", &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_SAFETENSORS_INDEX);
    pawl_model_close(model);
    put_model("d/two.safetensors", "{}", "", 0);
    expect_no_model("d", PAWL_CORRUPT, "not-safetensors", "holds 2 safetensors files, none is model.safetensors");
    put_model("d/model.safetensors", "{\"q\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", "q", 1);
    assert_int_equal(open_model("d/", &model, NULL), PAWL_OK);
    assert_non_null(pawl_model_find(model, PAWL_STR("q")));
    pawl_model_close(model);
    /* an index is the model, files beside it are not */
    host_put("d/model.safetensors.index.json", "{\"weight_map\":{\"x\":\"one.safetensors\",\"y\":\"one.safetensors\","
                                               "\"z\":\"one.safetensors\"}}");
    assert_int_equal(open_model("d", &model, NULL), PAWL_OK);
    (void)pawl_model_files(model, &n);
    assert_int_equal(n, 1);
    assert_int_equal(pawl_model_find(model, PAWL_STR("q")) == NULL, 1);
    assert_non_null(pawl_model_find(model, PAWL_STR("tied")));
    pawl_model_close(model);
    assert_int_equal(rename("d/model.safetensors.index.json", "d/a.safetensors.index.json"), 0);
    copy_file("d/a.safetensors.index.json", "d/b.safetensors.index.json");
    expect_no_model("d", PAWL_CORRUPT, "not-safetensors", "holds 2 indexes and none is model.safetensors.index.json");
}

/* Goal: what is no model is said, never hangs, and a missing file is not a broken one. */
static void
says_what_a_path_is_instead(void **state)
{
    (void)state;
    expect_no_model("nothing-here", PAWL_NO_FILE, "not-found", "nothing-here");
    assert_int_equal(mkfifo("fifo", 0666), 0);
    expect_no_model("fifo", PAWL_CORRUPT, "not-a-file", "FIFO");
    host_put("empty", "");
    expect_no_model("empty", PAWL_CORRUPT, "not-safetensors", "empty file");
    host_put("pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12345\n");
    expect_no_model("pointer", PAWL_CORRUPT, "not-safetensors", "12345 bytes, oid sha256:abc");
    host_put("page", "<!DOCTYPE html><html></html>");
    expect_no_model("page", PAWL_CORRUPT, "not-safetensors", "HTML page");
    host_put("list", "[1, 2, 3, 4, 5]");
    expect_no_model("list", PAWL_CORRUPT, "not-safetensors", "JSON");
    struct pawl_model *model = NULL;
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), pawl_str_make("a\0b", 3), NULL, NULL, &model, NULL),
                     PAWL_ARGUMENT);
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), PAWL_STR(""), NULL, NULL, &model, NULL), PAWL_ARGUMENT);
    if (geteuid() != 0) { /* nothing is denied to root */
        put_small("locked");
        assert_int_equal(chmod("locked", 0), 0);
        expect_no_model("locked", PAWL_PERMISSION, "permission", "locked");
    }
    /* an index whose map stands behind a long list of metadata is one all the same */
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    (void)pawl_buffer_add_z(&text, "{\"metadata\":{\"note\":\"");
    for (int i = 0; i < 2000; i++)
        (void)pawl_buffer_add_char(&text, 'n');
    (void)pawl_buffer_add_z(&text, "\"},\"weight_map\":{\"x\":\"s\",\"y\":\"s\",\"z\":\"s\"}}");
    put_bytes("long.json", text.data, text.len);
    pawl_buffer_release(&text);
    put_small("s");
    assert_int_equal(open_model("long.json", &model, NULL), PAWL_OK);
    pawl_model_close(model);
    /* a link to an index elsewhere: its shards are beside the link */
    assert_int_equal(mkdir("far", 0777), 0);
    assert_int_equal(rename("long.json", "far/long.json"), 0);
    assert_int_equal(symlink("far/long.json", "link.json"), 0);
    assert_int_equal(open_model("link.json", &model, NULL), PAWL_OK);
    pawl_model_close(model);
}

/* Goal: modes and profiles narrow what opens. */
static void
profiles_and_modes_are_asked_for(void **state)
{
    struct pawl_model *model;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_str path = PAWL_STR("m.safetensors");
    (void)state;
    struct pawl_model_options options = PAWL_MODEL_OPTIONS(.profile = PAWL_PROFILE_TINYLLM);
    put_small("m.safetensors");
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "dtype");
    put_model("m.safetensors", "{\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", "abcd", 4);
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "the metadata of 'm.safetensors' have no format, and the profile wants tinyllm");
    put_model("m.safetensors",
              "{\"__metadata__\":{\"format\":\"pt\"},\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
              "abcd", 4);
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "the format of 'm.safetensors' is 'pt', and the profile wants tinyllm");
    options.profile = PAWL_PROFILE_COURSE;
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_OK);
    pawl_model_close(model);
    put_model("m.safetensors", "{\"x\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}", "abcdefgh", 8);
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "dtype");
    options = PAWL_MODEL_OPTIONS(.header_bytes_max = 10);
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_LIMIT);
    assert_string_equal(err.code, "header-too-large");
    options = PAWL_MODEL_OPTIONS(.mode = (enum pawl_mode)7);
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_ARGUMENT);
    options = PAWL_MODEL_OPTIONS(.mode = PAWL_MODE_STRICT);
    options.size = 3;
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), path, &options, NULL, &model, &err), PAWL_ARGUMENT);
}

/* ---- NaN and infinity ---- */

/* Goal: every tensor with a NaN or an infinity is named with the first index; no other, whatever its bits. */
static void
finds_every_tensor_that_is_not_finite(void **state)
{
    struct pawl_model *model;
    (void)state;
    static const unsigned char DATA[] = {
        0,    0,    0,    0,    0,    0,    0xf0, 0x7f, 1, 0, 0,    0,    0, 0, 0xf0, 0xff, /* f64: inf, NaN */
        0,    0,    0,    0,    0,    0,    0xe0, 0x7f, 0, 0, 0,    0,    0, 0, 0xf0, 0x7f, /* i64: anything */
        0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0x80, 0xff, 0, 0, 0,    0,    /* c64: 0, (-inf, 0) */
        0xff, 0xff, 0x7f, 0x7f, 0xff, 0xff, 0x7f, 0xff, /* f32: the largest, both signs */
        0x80, 0x7f, 0x81, 0x7f,                         /* bf16: inf, NaN */
        0xff, 0x7b, 0,    0x7c,                         /* f16: largest, inf */
        0x7f, 0xff, 0x7e,                               /* e4m3: NaN NaN 448 */
        0x7c, 0x7b,                                     /* e5m2: inf, largest */
        0x80, 0x7f,                                     /* e4m3fnuz: NaN, largest */
        0xff, 0xfe,                                     /* e8m0: NaN, largest */
        0xff, 0x7f,                                     /* u8 */
        0xff,                                           /* f4: two codes */
    };
    put_model("m.safetensors",
              "{\"f64\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[0,16]},"
              "\"i64\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[16,32]},"
              "\"c64\":{\"dtype\":\"C64\",\"shape\":[2],\"data_offsets\":[32,48]},"
              "\"f32\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[48,56]},"
              "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[56,60]},"
              "\"f16\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[60,64]},"
              "\"e4m3\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[64,67]},"
              "\"e5m2\":{\"dtype\":\"F8_E5M2\",\"shape\":[2],\"data_offsets\":[67,69]},"
              "\"fnuz\":{\"dtype\":\"F8_E4M3FNUZ\",\"shape\":[2],\"data_offsets\":[69,71]},"
              "\"e8m0\":{\"dtype\":\"F8_E8M0\",\"shape\":[2],\"data_offsets\":[71,73]},"
              "\"u8\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[73,75]},"
              "\"f4\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[75,76]}}",
              DATA, sizeof DATA);
    assert_int_equal(open_model("m.safetensors", &model, NULL), PAWL_OK);
    struct pawl_report *report = pawl_report_new();
    pawl_report_begin_verdict(report, PAWL_STR("m"), PAWL_KIND_SAFETENSORS);
    assert_int_equal(pawl_set_check_finite(model->set, report, NULL), PAWL_OK);
    pawl_report_end_verdict(report);
#define LINE(name, text) "non-finite m.safetensors " name ": tensor '" name "' has " text "\n"
    assert_string_equal(report_text(report),
                        LINE("f64", "1 NaN and 1 infinity, the first at [0, 0]: infinity")
                            LINE("c64", "0 NaNs and 1 infinity, the first at [1]: infinity")
                                LINE("bf16", "1 NaN and 1 infinity, the first at [0]: infinity")
                                    LINE("f16", "0 NaNs and 1 infinity, the first at [1, 0]: infinity")
                                        LINE("e4m3", "2 NaNs and 0 infinities, the first at [0]: NaN")
                                            LINE("e5m2", "0 NaNs and 1 infinity, the first at [0]: infinity")
                                                LINE("fnuz", "1 NaN and 0 infinities, the first at [0]: NaN")
                                                    LINE("e8m0", "1 NaN and 0 infinities, the first at [0]: NaN"));
    size_t n;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(verdicts[0].problems[3].offset, model->files[0].header_bytes + 8 + 62);
    pawl_report_free(report);
    pawl_model_close(model);
}

/* Goal: the index is right behind the first block, in more than one dimension. */
static void
finds_a_nan_far_in(void **state)
{
    enum { ROWS = 700, COLS = 513 };
    struct pawl_model *model;
    (void)state;
    float *values = calloc(ROWS * COLS, sizeof *values);
    assert_non_null(values);
    values[600 * COLS + 77] = NAN;
    values[699 * COLS + 512] = INFINITY;
    put_model("m.safetensors", "{\"w\":{\"dtype\":\"F32\",\"shape\":[700,513],\"data_offsets\":[0,1436400]}}", values,
              ROWS * COLS * sizeof *values);
    free(values);
    assert_int_equal(open_model("m.safetensors", &model, NULL), PAWL_OK);
    struct pawl_report *report = pawl_report_new();
    pawl_report_begin_verdict(report, PAWL_STR("m"), PAWL_KIND_SAFETENSORS);
    assert_int_equal(pawl_set_check_finite(model->set, report, NULL), PAWL_OK);
    pawl_report_end_verdict(report);
    assert_string_equal(report_text(report), LINE("w", "1 NaN and 1 infinity, the first at [600, 77]: NaN"));
    pawl_report_free(report);
    pawl_model_close(model);
}

/* ---- large files ---- */

static bool
make_sparse(const char *path, const char *header, uint64_t data_bytes)
{
    put_model(path, header, "", 0);
    if (truncate(path, (off_t)(8 + strlen(header) + data_bytes)) == 0)
        return true;
    print_message("skipped: this filesystem has no sparse file of %llu bytes\n", (unsigned long long)data_bytes);
    return false;
}

static void
write_at(const char *path, uint64_t offset, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, (off_t)offset), n);
    assert_int_equal(close(fd), 0);
}

/* Goal: offsets past 2 and 4 GiB, read and mapped: case 33. */
static void
reads_beyond_four_gibibytes(void **state)
{
    static const char HEADER[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[2147483656],\"data_offsets\":[0,2147483656]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2147483656,2147483660]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[2147483656],\"data_offsets\":[2147483660,4294967316]},"
        "\"d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4294967316,4294967320]}}";
    struct pawl_model *model;
    const float values[2] = { 1.5f, -2.25f };
    float got;
    const void *data;
    (void)state;
    if (!make_sparse("big.safetensors", HEADER, UINT64_C(4294967320)))
        return;
    write_at("big.safetensors", 8 + sizeof HEADER - 1 + UINT64_C(2147483656), &values[0], 4);
    write_at("big.safetensors", 8 + sizeof HEADER - 1 + UINT64_C(4294967316), &values[1], 4);
    assert_int_equal(open_model("big.safetensors", &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_read(model, find(model, "b"), PAWL_F32, &got, 4, NULL), PAWL_OK);
    assert_true(got == values[0]);
    assert_int_equal(pawl_model_read(model, find(model, "d"), PAWL_F32, &got, 4, NULL), PAWL_OK);
    assert_true(got == values[1]);
    assert_int_equal(pawl_model_map(model, find(model, "b"), &data, NULL, NULL), PAWL_OK);
    assert_memory_equal(data, &values[0], 4);
    assert_int_equal(pawl_model_map(model, find(model, "d"), &data, NULL, NULL), PAWL_OK);
    assert_memory_equal(data, &values[1], 4);
    pawl_model_close(model);
}

#if defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW 1
#endif
#endif

/* Goal: where memory is limited too much for a mapping, reading works and mapping is an error: case 81. */
static void
reads_where_a_mapping_has_no_room(void **state)
{
    static const char HEADER[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1073741824],\"data_offsets\":[0,1073741824]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1073741824,1073741828]}}";
    const float value = 3.5f;
    (void)state;
    SKIP_UNDER_EMULATOR("sets no limit of address space");
#ifdef HAS_SHADOW
    print_message("skipped: a sanitizer's shadow takes more than the limit\n");
    (void)HEADER;
    (void)value;
#else
    if (!make_sparse("big.safetensors", HEADER, UINT64_C(1073741828)))
        return;
    write_at("big.safetensors", 8 + sizeof HEADER - 1 + UINT64_C(1073741824), &value, 4);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = { 200 << 20, 200 << 20 };
        struct pawl_model *model;
        const void *data;
        float got = 0;
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(2);
        if (open_model("big.safetensors", &model, NULL) != PAWL_OK)
            _exit(3);
        const struct pawl_tensor_info *b = pawl_model_find(model, PAWL_STR("b"));
        if (pawl_model_map(model, b, &data, NULL, NULL) == PAWL_OK)
            _exit(4);
        if (pawl_model_read(model, b, PAWL_F32, &got, 4, NULL) != PAWL_OK || got != value)
            _exit(5);
        pawl_model_close(model);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
#endif
}

/* ---- threads ---- */

static void *
read_all(void *argument)
{
    struct pawl_model *model = argument;
    size_t n;
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < n; i++) {
            unsigned char bytes[256];
            const void *data;
            size_t want = (size_t)(tensors[i].end - tensors[i].begin);
            if (want > sizeof bytes || pawl_model_find(model, tensors[i].name) != &tensors[i] ||
                pawl_model_read(model, &tensors[i], tensors[i].dtype, bytes, want, NULL) != PAWL_OK ||
                pawl_model_map(model, &tensors[i], &data, NULL, NULL) != PAWL_OK || memcmp(bytes, data, want) != 0)
                return argument;
        }
    }
    return NULL;
}

/* Goal: several threads may share a model; the first mapping is made once. (A run under TSan is the judge.) */
static void
threads_share_a_model(void **state)
{
    pthread_t threads[4];
    struct pawl_model *model;
    (void)state;
    assert_int_equal(open_model(SHARDED, &model, NULL), PAWL_OK);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, model), 0);
    for (size_t i = 0; i < 4; i++) {
        void *answer;
        assert_int_equal(pthread_join(threads[i], &answer), 0);
        assert_null(answer);
    }
    pawl_model_close(model);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_enter, fixture_leave)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tells_what_is_in_a_model),
        TEST(reads_maps_and_decodes),
        TEST(decodes_every_dtype),
        TEST(a_file_cut_while_open_is_an_error),
        TEST(a_file_replaced_while_open_keeps_its_contents),
        TEST(chooses_the_model_of_a_directory),
        TEST(says_what_a_path_is_instead),
        TEST(profiles_and_modes_are_asked_for),
        TEST(finds_every_tensor_that_is_not_finite),
        TEST(finds_a_nan_far_in),
        TEST(reads_beyond_four_gibibytes),
        TEST(reads_where_a_mapping_has_no_room),
        TEST(threads_share_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
