/* safetensors/st_recognise.c: other files by the name of safetensors are called what they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "unit/st_tools.h"

/* The bytes, then zeros up to `size`, as a file; what it is taken for. */
static void
assert_is(struct pawl_str begin, size_t size, const char *code, const char *message)
{
    unsigned char *file = calloc(1, size == 0 ? 1 : size);
    assert_non_null(file);
    assert_true(begin.len <= size);
    if (begin.len != 0)
        memcpy(file, begin.data, begin.len);
    const char *found = "none";
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_st_recognise(file, size < 512 ? size : 512, size, &found, &err);
    assert_string_equal(found, code);
    if (strcmp(code, "none") == 0) {
        assert_int_equal(st, PAWL_OK);
    } else {
        char expected[300];
        struct pawl_st_header h;
        snprintf(expected, sizeof expected, "not a safetensors file: %s", message);
        assert_int_equal(st, PAWL_CORRUPT);
        assert_string_equal(err.code, "not-safetensors");
        assert_string_equal(err.message, expected);
        /* the reader says it before it parses anything */
        assert_int_equal(pawl_st_read_memory(&h, file, size, NULL, &err), PAWL_CORRUPT);
        assert_string_equal(err.message, expected);
    }
    free(file);
}

static void
kinds(void **state)
{
    (void)state;
    static const char LFS[] = "version https://git-lfs.github.com/spec/v1\noid "
                              "sha256:abababababababababababababababababababababababababababababababab\n"
                              "size 4943162336\n";
    assert_is(PAWL_STR(""), 0, "empty", "empty file (0 bytes)");
    assert_is(pawl_str_z(LFS), sizeof LFS - 1, "lfs-pointer",
              "Git LFS pointer; the real file is 4943162336 bytes, oid "
              "sha256:abababababababababababababababababababababababababababababababab, and was not fetched");
    assert_is(PAWL_STR("version https://git-lfs.github.com/spec/v1\n"), 43, "lfs-pointer",
              "Git LFS pointer; the real file is unknown bytes, oid unknown, and was not fetched");
    assert_is(PAWL_STR("<!DOCTYPE html><html>"), 21, "not-checkpoint", "HTML page, probably a failed download");
    assert_is(PAWL_STR("\xef\xbb\xbf\r\n <HTML><head>"), 20, "not-checkpoint", "HTML page, probably a failed download");
    assert_is(PAWL_STR("<?xml"), 5, "not-checkpoint", "HTML page, probably a failed download");
    assert_is(PAWL_STR("{ \"error\": \"Entry not found\"}"), 30, "not-checkpoint",
              "JSON error page, probably a failed download");
    assert_is(PAWL_STR("{\n  \"metadata\": {\"total_size\": 8},\n  \"weight_map\": {}\n}\n"), 57, "safetensors-index",
              "JSON, the index of a sharded model");
    assert_is(PAWL_STR("{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}"), 33, "json",
              "a bare JSON text: the 8 bytes of length before it are missing");
    assert_is(PAWL_STR("[1,2,3,4,5]"), 11, "json", "a bare JSON text: the 8 bytes of length before it are missing");
    assert_is(PAWL_STR("PK\3\4\x14\0\0\0\b\0"), 100, "zip", "a zip archive, as PyTorch checkpoints are");
    assert_is(PAWL_STR("PK\5\6"), 22, "zip-empty", "an empty zip archive");
    assert_is(PAWL_STR("7z\xbc\xaf\x27\x1c\0\4"), 64, "is-7z", "a 7z archive");
    assert_is(PAWL_STR("\x1f\x8b\b\0\0\0\0\0"), 108, "compressed", "gzip data");
    assert_is(PAWL_STR("\x1f\x8b\b\0\0\0\0\0"), 600000, "compressed",
              "gzip data"); /* long enough for a length of 559,903 */
    assert_is(PAWL_STR("\x28\xb5\x2f\xfd\x24\x10"), 40, "compressed", "zstd data");
    assert_is(PAWL_STR("\xfd"
                       "7zXZ\0\0\4"),
              40, "compressed", "xz data");
    assert_is(PAWL_STR("BZh91AY&SY"), 40, "compressed", "bzip2 data");
    assert_is(PAWL_STR("\x78\x9c\xed\xbd\x7f\x70\x1c\xc7"), 40, "compressed", "zlib data");
    assert_is(PAWL_STR("\x80\2}q\0X\1\0\0\0"), 40, "pickle", "a Python pickle, as old PyTorch checkpoints are");
    assert_is(PAWL_STR("\x80\4\x95\x1e\0\0\0\0\0\0\0"), 40, "pickle",
              "a Python pickle, as old PyTorch checkpoints are");
    assert_is(PAWL_STR("PYTORCH1"), 40, "pytorch-preview", "a PyTorch archive of a preview release");
    assert_is(PAWL_STR("\x89HDF\r\n\x1a\n"), 96, "is-hdf5", "an HDF5 file (Keras, netCDF)");
    assert_is(PAWL_STR("GGUF\3\0\0\0\0\0"), 96, "not-checkpoint", "a GGUF file");
    assert_is(PAWL_STR("GGUF\3\0\0\0{\0"), 96, "not-checkpoint", "a GGUF file"); /* 123 tensors */
    assert_is(PAWL_STR("\x93NUMPY\1\0v\0{'descr'"), 128, "not-checkpoint", "a NumPy array (.npy)");
    assert_is(PAWL_STR("\x89PNG\r\n\x1a\n"), 96, "not-checkpoint", "a PNG image");
    assert_is(PAWL_STR("LLMCP35\0"), 96, "llmcp35", "an LLMCP35 checkpoint");
    assert_is(PAWL_STR("\x88\xd8\x34\1\1\0\0\0{\0\0\0"), 1024 + 246, "token-shard", "a shard of tokens"); /* 123 ids */
    assert_is(PAWL_STR("\x81\xd9\x34\1\7\0\0\0"), 1024, "token-shard", "a shard of tokens (magic 20240801)");
    assert_is(PAWL_STR("MMIDIDX\0\0\1"), 64, "token-shard", "a Megatron index of tokens");
    assert_is(PAWL_STR("\1\2\3\4\5\6\7\xff\x09"), 9, "unknown-format",
              "no known format; its first bytes are 01 02 03 04 05 06 07 ff 09");

    char tar[600] = "model/data.pkl";
    memcpy(tar + 257, "ustar", 5);
    assert_is(pawl_str_make(tar, 512), 10240, "legacy-tar", "a tar archive");
}

/* Broken safetensors files keep their own error, also where their length spells a mark of two or three bytes. */
static void
broken_safetensors_stay_so(void **state)
{
    (void)state;
    assert_is(PAWL_STR("\x10\0\0\0\0\0\0"), 7, "none", NULL);             /* too short */
    assert_is(PAWL_STR("\1\xe1\xf5\5\0\0\0\0{"), 70, "none", NULL);       /* over the limit */
    assert_is(PAWL_STR("\1\xe1\xf5\5\0\0\0\0"), 70, "none", NULL);        /* the same without an object */
    assert_is(PAWL_STR("\x40\0\0\0\0\0\0\0 \n{\"a\""), 40, "none", NULL); /* cut inside the header */
    assert_is(PAWL_STR("\x78\1\0\0\0\0\0\0{}"), 384, "none", NULL);       /* 376: begins as zlib does */
    assert_is(PAWL_STR("\x78\1\0\0\0\0\0\0[]"), 384, "none", NULL);
    assert_is(PAWL_STR("\x80\2\0\0\0\0\0\0{}"), 648, "none", NULL); /* 640: begins as a pickle does */
    assert_is(PAWL_STR("\x80\2\0\0\0\0\0\0[]"), 648, "none", NULL);
    assert_is(PAWL_STR("\x1f\x8b\b\0\0\0\0\0{}"), 600000, "none", NULL); /* 559,903: begins as gzip does */
    assert_is(PAWL_STR("\x7b\0\0\0\0\0\0\0{}"), 200, "none", NULL);      /* 123: begins with a brace */
    assert_is(PAWL_STR("\x3c\0\0\0\0\0\0\0{}"), 200, "none", NULL);
}

/* Goal: it looks at nothing beyond the bytes given. Method: every length of every beginning, in memory of that size. */
static void
short_looks(void **state)
{
    (void)state;
    static const char *const BEGINS[] = { "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n",
                                          "<!DOCTYPE html>",
                                          "{ \"error\": 1, \"weight_map\": 2}",
                                          "\xef\xbb\xbf  [",
                                          "PK\3\4",
                                          "\x80\4",
                                          "\x78\x9c" };
    for (size_t i = 0; i < sizeof BEGINS / sizeof BEGINS[0]; i++) {
        for (size_t n = 0; n <= strlen(BEGINS[i]); n++) {
            char *copy = malloc(n == 0 ? 1 : n);
            struct pawl_error err;
            assert_non_null(copy);
            memcpy(copy, BEGINS[i], n);
            (void)pawl_st_recognise(copy, n, n, NULL, &err);
            (void)pawl_st_recognise(copy, n, n, NULL, NULL);
            free(copy);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(kinds), cmocka_unit_test(broken_safetensors_stay_so),
                                        cmocka_unit_test(short_looks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
