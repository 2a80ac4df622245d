/*
 * Faults that users of safetensors files have met: each as a small file, with what Pawl says of it. Whole messages are compared: they
 * are what a person gets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "unit/st_tools.h"

#define ENTRY(dtype, shape, begin, end) \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"
#define F32_2(begin, end) ENTRY("F32", "2", begin, end)

static void
assert_good(struct pawl_str text, size_t data, enum pawl_st_mode mode, size_t tensors)
{
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (st_read_text(&h, text, data, mode, &err) != PAWL_OK)
        fail_msg("%.100s: %s", text.data, err.message);
    assert_int_equal(h.n, tensors);
    pawl_st_release(&h);
}

static void
assert_bad(struct pawl_str text, size_t data, const char *code, const char *message)
{
    for (int mode = PAWL_ST_STRICT; mode <= PAWL_ST_LINT; mode++) {
        struct pawl_st_header h;
        struct pawl_error err = PAWL_ERROR_INIT;
        if (mode == PAWL_ST_COMPAT && strcmp(code, "duplicate-key") == 0)
            continue;
        assert_int_not_equal(st_read_text(&h, text, data, (enum pawl_st_mode)mode, &err), PAWL_OK);
        assert_string_equal(err.message, message);
        assert_string_equal(err.code, code);
        assert_null(h.tensors);
        assert_null(h.text);
        pawl_st_release(&h);
    }
}

static void
repeated_names(void **state)
{
    (void)state;
    struct pawl_str apart = PAWL_STR("{\"a\":" F32_2(0, 8) ",\"a\":" F32_2(8, 16) "}");
    struct pawl_str same = PAWL_STR("{\"a\":" F32_2(0, 8) ",\"\\u0061\":" F32_2(0, 8) "}");
    assert_bad(apart, 16, "duplicate-key", "duplicate tensor name 'a': it stands at 10 already");
    assert_bad(same, 8, "duplicate-key", "duplicate tensor name 'a': it stands at 10 already");
    assert_good(same, 8, PAWL_ST_COMPAT, 1);

    /* compat: the last one wins, and it must tile */
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(st_read_text(&h, apart, 16, PAWL_ST_COMPAT, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "hole");
    struct pawl_str last =
        PAWL_STR("{\"a\":" ENTRY("U8", "9", 0, 9) ",\"b\":" ENTRY("U8", "1", 8, 9) ",\"a\":" F32_2(0, 8) "}");
    assert_int_equal(st_read_text(&h, last, 9, PAWL_ST_COMPAT, NULL), PAWL_OK);
    assert_int_equal(h.n, 2);
    assert_int_equal(pawl_st_find(&h, PAWL_STR("a"))->dtype, PAWL_F32);
    assert_ptr_equal(pawl_st_find(&h, PAWL_STR("b")), &h.tensors[1]);
    pawl_st_release(&h);

    /* the first second place in the text is told, whatever the order of the data */
    assert_bad(PAWL_STR("{\"b\":" F32_2(8, 16) ",\"a\":" F32_2(0, 8) ",\"a\":" F32_2(0, 8) ",\"b\":" F32_2(0, 8) "}"),
               16, "duplicate-key", "duplicate tensor name 'a': it stands at 64 already");
}

static void
metadata(void **state)
{
    (void)state;
    struct pawl_st_header h;
    assert_bad(PAWL_STR("{\"__metadata__\":{\"n\":0},\"a\":" F32_2(0, 8) "}"), 8, "json",
               "metadata key 'n': the value must be a string, found a number");
    assert_bad(PAWL_STR("{\"__metadata__\":{\"k\":\"1\",\"\\u006b\":\"2\"}}"), 0, "duplicate-key",
               "duplicate metadata key 'k': it stands at 26 already");
    assert_bad(PAWL_STR("{\"a\":" ENTRY("U8", "1", 0, 1) ",\"__metadata__\":" ENTRY("U8", "1", 1, 2) "}"), 2, "json",
               "metadata key 'shape': the value must be a string, found an array");
    assert_bad(PAWL_STR("{\"__metadata__\":[]}"), 0, "json",
               "__metadata__ must be an object of strings or null, found an array");
    assert_bad(PAWL_STR("{\"__metadata__\":null,\"\\u005f_metadata__\":{}}"), 0, "json", "__metadata__ stands twice");

    assert_int_equal(st_read_text(&h, PAWL_STR("{\"__metadata__\":{},\"a\":" F32_2(0, 8) "}"), 8, PAWL_ST_STRICT, NULL),
                     PAWL_OK);
    assert_true(h.has_metadata);
    assert_int_equal(h.n_metadata, 0);
    pawl_st_release(&h);
    assert_int_equal(
        st_read_text(&h, PAWL_STR("{\"__metadata__\":null,\"a\":" F32_2(0, 8) "}"), 8, PAWL_ST_STRICT, NULL), PAWL_OK);
    assert_false(h.has_metadata);
    pawl_st_release(&h);

    /* compat: the last value of a repeated key */
    assert_int_equal(
        st_read_text(&h, PAWL_STR("{\"__metadata__\":{\"k\":\"1\",\"x\":\"y\",\"k\":\"2\"}}"), 0, PAWL_ST_COMPAT, NULL),
        PAWL_OK);
    assert_int_equal(h.n_metadata, 2);
    assert_true(pawl_str_equal(*pawl_st_metadata(&h, PAWL_STR("k")), PAWL_STR("2")));
    assert_true(pawl_str_equal(*pawl_st_metadata(&h, PAWL_STR("x")), PAWL_STR("y")));
    assert_null(pawl_st_metadata(&h, PAWL_STR("")));
    pawl_st_release(&h);
}

static void
padding_and_blanks(void **state)
{
    (void)state;
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_str text = PAWL_STR("{\"a\":" F32_2(0, 8) "}\0\0\0");
    assert_bad(text, 8, "json", "NUL padding at offset 62: 3 zeros behind the object, where only blanks may be");
    assert_int_not_equal(st_read_text(&h, text, 8, PAWL_ST_STRICT, &err), PAWL_OK);
    assert_int_equal(err.offset, 62);
    assert_string_equal(err.hint, "'pawl repair' writes spaces there and leaves the data as they are");
    /* NULs with something behind them are no padding */
    assert_bad(PAWL_STR("{}\0x"), 0, "json", "expected the end of the text behind its value, found a NUL byte");
    assert_bad(PAWL_STR("\0\0\0\0\0\0\0\0"), 0, "json", "the header of 8 bytes is nothing but NUL bytes");
    assert_good(PAWL_STR(" {\"a\":" F32_2(0, 8) "}"), 8, PAWL_ST_STRICT, 1);
    assert_good(PAWL_STR("\n\t\r{\"a\":" F32_2(0, 8) "}\n"), 8, PAWL_ST_STRICT, 1);
    assert_bad(PAWL_STR("\xef\xbb\xbf{\"a\":" F32_2(0, 8) "}"), 8, "json", "expected a value, found byte 0xef");
    assert_bad(PAWL_STR("[]"), 0, "json", "the header must be an object, found an array");
}

/* The gate of the length: 100,000,000 passes it, one more does not, whatever comes behind. */
static void
header_lengths(void **state)
{
    (void)state;
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    const uint64_t limit = 100000000;
    assert_int_equal(pawl_st_parse(&h, "", limit + 1, limit + 9, NULL, &err), PAWL_LIMIT);
    assert_string_equal(err.code, "header-too-large");
    assert_string_equal(err.message, "header 100000001 > limit 100000000 (raise with option)");
    char *zeros = calloc(limit, 1);
    assert_non_null(zeros);
    assert_int_equal(pawl_st_parse(&h, zeros, limit, limit + 8, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "the header of 100000000 bytes is nothing but NUL bytes");
    free(zeros);
    struct pawl_st_options options = { .header_bytes_max = 20 };
    assert_int_equal(pawl_st_parse(&h, "{}                   ", 21, 29, &options, &err), PAWL_LIMIT);
    assert_string_equal(err.message, "header 21 > limit 20 (raise with option)");
    options.header_bytes_max = UINT64_MAX;
    assert_int_equal(pawl_st_parse(&h, "{}", UINT64_MAX, 10, &options, &err), PAWL_TRUNCATED);
    assert_string_equal(err.code, "header-truncated");

    for (uint64_t n = 99992; n <= 100008; n++) {
        char *text = malloc(n);
        assert_non_null(text);
        memset(text, ' ', n);
        memcpy(text, "{\"a\":" F32_2(0, 8) "}", 54);
        assert_int_equal(pawl_st_parse(&h, text, n, 8 + n + 8, NULL, &err), PAWL_OK);
        pawl_st_release(&h);
        free(text);
    }
}

static void
sizes_of_files(void **state)
{
    (void)state;
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_str text = PAWL_STR("{\"a\":" F32_2(0, 8) ",\"b\":" F32_2(8, 16) "}");
    assert_bad(text, 7, "truncated",
               "truncated: the file needs 132 bytes, it has 123, missing 9; first damaged tensor 'a'");
    assert_bad(text, 8, "truncated",
               "truncated: the file needs 132 bytes, it has 124, missing 8; first damaged tensor 'b'");
    assert_bad(text, 17, "trailing", "all of them zeros: 1 trailing bytes: the file needs 132 bytes, it has 133");
    size_t bytes;
    unsigned char *file = st_file(text, 18, &bytes);
    file[bytes - 1] = 1;
    assert_int_equal(pawl_st_read_memory(&h, file, bytes, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "not all of them zeros: 2 trailing bytes: the file needs 132 bytes, it has 134");
    assert_int_equal(err.offset, 132);
    /* cut inside the header: still a safetensors file, cut short */
    assert_int_equal(pawl_st_read_memory(&h, file, 60, NULL, &err), PAWL_TRUNCATED);
    assert_string_equal(err.code, "header-truncated");
    assert_string_equal(err.message, "the header takes 108 bytes behind the length, the file has 52 there: 56 missing");
    for (size_t n = 1; n < 8; n++) {
        assert_int_equal(pawl_st_read_memory(&h, file, n, NULL, &err), PAWL_TRUNCATED);
        assert_string_equal(err.code, "too-short");
    }
    free(file);
    assert_int_equal(pawl_st_read_memory(&h, "", 0, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "not a safetensors file: empty file (0 bytes)");
}

static void
holes_and_overlaps(void **state)
{
    (void)state;
    assert_bad(PAWL_STR("{\"b\":" F32_2(0, 8) ",\"a\":" F32_2(0, 8) "}"), 8, "overlap",
               "invalid offset: 'b' and 'a' overlap: 0..8 and 0..8");
    assert_bad(PAWL_STR("{\"a\":" ENTRY("F32", "4", 0, 16) ",\"b\":" F32_2(8, 16) "}"), 16, "overlap",
               "invalid offset: 'a' and 'b' overlap: 0..16 and 8..16");
    assert_bad(PAWL_STR("{\"f\":" ENTRY("F32", "1", 4, 8) ",\"u\":" ENTRY("U8", "3", 0, 3) "}"), 8, "hole",
               "invalid offset: 1-byte hole before 'f': 'u' ends at 3, 'f' begins at 4");
    assert_bad(PAWL_STR("{\"a\":" F32_2(8, 16) "}"), 16, "hole",
               "invalid offset: 8-byte hole before 'a', the first tensor, which begins at 8 and not at 0");
    assert_bad(PAWL_STR("{\"a\":" F32_2(0, 8) ",\"b\":" F32_2(8, 0) "}"), 8, "overlap",
               "invalid offset: 'b' ends at 0, before it begins at 8");
    assert_good(PAWL_STR("{\"a\":" F32_2(0, 8) ",\"z\":" ENTRY("F32", "0", 8, 8) "}"), 8, PAWL_ST_STRICT, 2);
    assert_bad(PAWL_STR("{\"a\":" ENTRY("F16", "2", 0, 8) "}"), 8, "size",
               "tensor 'a': F16 [2] takes 4 bytes, its offsets 0..8 hold 8");
    assert_bad(PAWL_STR("{\"a\":" ENTRY("F128", "2", 0, 8) "}"), 8, "dtype",
               "tensor 'a': 'F128' is no dtype of the format");
}

/* Products that wrap to something small must not pass, in the reference's order of multiplication. */
static void
overflows(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        const char *code; /* NULL: good */
    } CASES[] = {
        { "4294967296,4294967296", "overflow" },
        { "4611686018427387904", "overflow" },
        { "9223372036854775810,2", "overflow" },
        { "18446744073709551615,2,0", "overflow" },
        { "0,18446744073709551615,18446744073709551615", NULL },
        { "2305843009213693952", "overflow" },
        { "18446744073709551616", "json" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[200];
        struct pawl_st_header h;
        struct pawl_error err = PAWL_ERROR_INIT;
        snprintf(text, sizeof text,
                 "{\"z\":" ENTRY("U8", "0", 0, 0) ",\"t\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[0,0]}}",
                 CASES[i].shape);
        enum pawl_status st = st_read_text(&h, pawl_str_z(text), 0, PAWL_ST_STRICT, &err);
        assert_string_equal(err.code, CASES[i].code == NULL ? "" : CASES[i].code);
        if (CASES[i].code != NULL)
            assert_string_equal(err.tensor, "t");
        assert_int_equal(st, CASES[i].code == NULL ? PAWL_OK : PAWL_CORRUPT);
        pawl_st_release(&h);
    }
    assert_bad(PAWL_STR("{\"a\":" ENTRY("F4", "3", 0, 2) "}"), 2, "bits",
               "tensor 'a': shape [3] of F4: 12 bits are no whole bytes");
    /* sums of extents beyond 2^64, with sizes that are right each */
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    char text[1200] = "{";
    for (uint64_t i = 0; i < 7; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[2305843009213693951],\"data_offsets\":[%llu,%llu]}",
                 i == 0 ? "" : ",", (int)i, (unsigned long long)(i * UINT64_C(2305843009213693951)),
                 (unsigned long long)((i + 1) * UINT64_C(2305843009213693951)));
    strcat(text, "}");
    assert_int_equal(st_read_text(&h, pawl_str_z(text), 100, PAWL_ST_STRICT, &err), PAWL_TRUNCATED);
    assert_string_equal(err.tensor, "0");
}

/* Files beyond 2 and 4 GiB: only their headers are needed. */
static void
large_files(void **state)
{
    (void)state;
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_str text =
        PAWL_STR("{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967304],\"data_offsets\":[0,4294967304]},"
                 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4294967304,4294967308]}}");
    assert_int_equal(pawl_st_parse(&h, text.data, text.len, 8 + text.len + UINT64_C(4294967308), NULL, &err), PAWL_OK);
    assert_int_equal(pawl_st_find(&h, PAWL_STR("b"))->begin, UINT64_C(4294967304));
    pawl_st_release(&h);
    text = PAWL_STR("{\"a\":{\"dtype\":\"F32\",\"shape\":[134217728],\"data_offsets\":[0,536870912]}}");
    assert_int_equal(pawl_st_parse(&h, text.data, text.len, 8 + text.len + UINT64_C(536870912), NULL, &err), PAWL_OK);
    pawl_st_release(&h);
}

/* An unknown field of 9 MB, of three million brackets, escapes or numbers: accepted, and nothing of it is kept. */
static void
large_unknown_fields(void **state)
{
    (void)state;
    static const char HEAD[] = "{\"a\":{\"x\":[";
    static const char TAIL[] = "],\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    const size_t inside = 9000000;
    size_t n = sizeof HEAD - 1 + inside + sizeof TAIL - 1;
    char *text = malloc(n);
    assert_non_null(text);
    memcpy(text, HEAD, sizeof HEAD - 1);
    memcpy(text + sizeof HEAD - 1 + inside, TAIL, sizeof TAIL - 1);
    static const char *const FILLS[] = { "[],", "\"x\\n\",", "1e9," };
    for (size_t k = 0; k < sizeof FILLS / sizeof FILLS[0]; k++) {
        size_t unit = strlen(FILLS[k]);
        size_t at = sizeof HEAD - 1;
        size_t end = at + inside;
        memset(text + at, ' ', inside);
        for (; at + unit < end; at += unit)
            memcpy(text + at, FILLS[k], unit);
        text[at - 1] = ' ';
        struct pawl_st_header h;
        struct pawl_error err = PAWL_ERROR_INIT;
        if (pawl_st_parse(&h, text, n, 8 + n + 8, NULL, &err) != PAWL_OK)
            fail_msg("%s", err.message);
        assert_int_equal(h.n, 1);
        assert_true(h.arena.bytes_total < 100000);
        pawl_st_release(&h);
    }
    free(text);
}

/* ---- names ---- */

/* Length counts, not a NUL and not a limit: long names, a NUL inside, prefixes of each other, the empty name. */
static void
odd_names(void **state)
{
    (void)state;
    struct pawl_str text =
        PAWL_STR("{\"a\\u0000b\":" ENTRY("U8", "", 0, 1) ",\"a\":" ENTRY("U8", "", 1, 2) ",\"\":" ENTRY(
            "U8", "", 2, 3) ",\"w\":" ENTRY("U8", "", 3, 4) ",\"w2\":" ENTRY("U8", "", 4,
                                                                             5) ",\"\\n\\t\\\"\\\\\\/"
                                                                                "\\u00e9\\ud83d\\ude00\":" ENTRY(
                                                                                    "U8", "", 5, 6) ",\".."
                                                                                                    "\":" ENTRY("U"
                                                                                                                "8",
                                                                                                                "", 6,
                                                                                                                7) "}");
    struct pawl_st_header h;
    assert_int_equal(st_read_text(&h, text, 7, PAWL_ST_STRICT, NULL), PAWL_OK);
    const struct pawl_str names[] = { PAWL_STR("a\0b"), PAWL_STR("a"),  PAWL_STR(""),
                                      PAWL_STR("w"),    PAWL_STR("w2"), PAWL_STR("\n\t\"\\/\xc3\xa9\xf0\x9f\x98\x80"),
                                      PAWL_STR("..") };
    for (size_t i = 0; i < 7; i++)
        assert_ptr_equal(pawl_st_find(&h, names[i]), &h.tensors[i]);
    assert_null(pawl_st_find(&h, PAWL_STR("w22")));
    assert_null(pawl_st_find(&h, PAWL_STR("a\0")));
    assert_null(pawl_st_find(&h, PAWL_STR(".")));
    pawl_st_release(&h);

    static const size_t LENGTHS[] = { 4094, 4095, 4096, 5000, 100000 };
    char *long_text = malloc(400000);
    char *name = malloc(100001);
    assert_non_null(long_text);
    assert_non_null(name);
    memset(name, 'n', 100000);
    name[100000] = '\0';
    size_t at = (size_t)sprintf(long_text, "{");
    for (size_t i = 0; i < 5; i++)
        at += (size_t)sprintf(long_text + at, "%s\"%.*s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                              i == 0 ? "" : ",", (int)LENGTHS[i], name, i, i + 1);
    at += (size_t)sprintf(long_text + at, "}");
    assert_int_equal(st_read_text(&h, pawl_str_make(long_text, at), 5, PAWL_ST_STRICT, NULL), PAWL_OK);
    for (size_t i = 0; i < 5; i++)
        assert_ptr_equal(pawl_st_find(&h, pawl_str_make(name, LENGTHS[i])), &h.tensors[i]);
    assert_null(pawl_st_find(&h, pawl_str_make(name, 4999)));
    pawl_st_release(&h);
    free(long_text);
    free(name);
}

/* A message shows a name escaped: nothing of it reaches a terminal as it is. */
static void
names_in_messages(void **state)
{
    (void)state;
    assert_bad(PAWL_STR("{\"\\u001b[31m\\u202e\":" ENTRY("F16", "2", 0, 8) "}"), 8, "size",
               "tensor '\\x1b[31m\\u202e': F16 [2] takes 4 bytes, its offsets 0..8 hold 8");
}

/* Tensors of no elements at one offset keep the order of the header, whatever order the others are in. */
static void
order_of_ties(void **state)
{
    (void)state;
    struct pawl_str text = PAWL_STR("{\"q\":" ENTRY("U8", "0", 4, 4) ",\"b\":" ENTRY("F32", "1", 0, 4) ",\"p\":" ENTRY(
        "U8", "0", 4, 4) ",\"z\":" ENTRY("U8", "0", 0,
                                         0) ",\"c\":" ENTRY("U8", "1", 4,
                                                            5) ",\"y\":" ENTRY("U8", "0", 0,
                                                                               0) ",\"a\":" ENTRY("U8", "0", 4, 4) "}");
    static const char ORDER[] = "zybqpac";
    struct pawl_st_header h;
    assert_int_equal(st_read_text(&h, text, 5, PAWL_ST_STRICT, NULL), PAWL_OK);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(h.tensors[i].name.data[0], ORDER[i]);
        assert_ptr_equal(pawl_st_find(&h, pawl_str_make(ORDER + i, 1)), &h.tensors[i]);
    }
    pawl_st_release(&h);
}

/*
 * Goal: a header in no order at all is sorted right. Method: 3,000 tensors of 0 to 300 bytes whose entries are shuffled; afterwards
 * they tile, which the reader itself has checked, and each is found with the extent it was given.
 */
static void
shuffled_header(void **state)
{
    (void)state;
    enum { N = 3000 };
    static uint64_t begins[N + 1];
    static size_t order[N];
    uint32_t random = 99;
    for (size_t i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        begins[i + 1] = begins[i] + (random >> 16) % 301;
        order[i] = i;
        size_t k = (random >> 8) % (i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    char *text = malloc(N * 100);
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "{");
    for (size_t i = 0; i < N; i++) {
        size_t t = order[i];
        at += (size_t)sprintf(text + at, "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}",
                              i == 0 ? "" : ",", t, (unsigned long long)(begins[t + 1] - begins[t]),
                              (unsigned long long)begins[t], (unsigned long long)begins[t + 1]);
    }
    at += (size_t)sprintf(text + at, "}");
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_st_parse(&h, text, at, 8 + at + begins[N], NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    for (size_t t = 0; t < N; t++) {
        char name[16];
        snprintf(name, sizeof name, "t%zu", t);
        const struct pawl_tensor_info *info = pawl_st_find(&h, pawl_str_z(name));
        assert_int_equal(info->begin, begins[t]);
        assert_int_equal(info->end, begins[t + 1]);
        assert_int_equal(info->shape[0], begins[t + 1] - begins[t]);
        assert_true(info == h.tensors || info[-1].end == info->begin);
    }
    pawl_st_release(&h);
    free(text);
}

/* ---- the order of the rules, profiles, lint ---- */

/* What is no JSON further on is that, whatever a fault of types stands before it; UTF-8 comes before both. */
static void
order_of_rules(void **state)
{
    (void)state;
    assert_bad(PAWL_STR("{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]},}"), 8, "json",
               "expected a key in quotes behind a comma, found '}'");
    assert_bad(PAWL_STR("{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}"), 8, "dtype",
               "tensor 'a': 'F99' is no dtype of the format");
    assert_bad(PAWL_STR("{\"a\":1,\"b\":\"\xff\"}"), 8, "utf8", "not UTF-8: byte 0xff begins no valid sequence");
    assert_bad(PAWL_STR("{\"a\":1,\"b\":1e999}"), 8, "json", "a number of 5 bytes is beyond the range of a double");
    assert_bad(PAWL_STR("{\"a\":" F32_2(8, 16) ",\"a\":" F32_2(8, 16) "}"), 8, "duplicate-key",
               "duplicate tensor name 'a': it stands at 10 already");
    assert_bad(PAWL_STR("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"shape\":[2]}}"), 8, "json",
               "tensor 'a': two fields shape");
    assert_bad(PAWL_STR("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}"), 8, "json", "tensor 'a': it lacks data_offsets");
    assert_bad(PAWL_STR("{\"a\":" ENTRY("F32", "2.0", 0, 8) "}"), 8, "json",
               "tensor 'a': a dimension must be an integer of 0 to 2^64-1, found a number 2.0");
    assert_bad(PAWL_STR("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}"), 8, "json",
               "tensor 'a': data_offsets must have 2 items, found more");
}

static void
profile(void **state)
{
    (void)state;
    struct pawl_st_options options = { .dtypes = 1u << PAWL_F32 | 1u << PAWL_U8 };
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_str good = PAWL_STR("{\"a\":" F32_2(0, 8) ",\"b\":" ENTRY("U8", "1", 8, 9) "}");
    struct pawl_str bad = PAWL_STR("{\"a\":" F32_2(0, 8) ",\"b\":" ENTRY("I8", "1", 8, 9) "}");
    assert_int_equal(pawl_st_parse(&h, good.data, good.len, 8 + good.len + 9, &options, &err), PAWL_OK);
    pawl_st_release(&h);
    assert_int_equal(pawl_st_parse(&h, bad.data, bad.len, 8 + bad.len + 9, &options, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "dtype");
    assert_string_equal(err.message, "tensor 'b': dtype 'I8' is outside of the set that is accepted");
}

static void
note_warning(void *context, const char *code, struct pawl_str tensor, uint64_t offset, const char *message)
{
    char *all = context;
    assert_true(offset < 1000 && message[0] != '\0');
    snprintf(all + strlen(all), 400 - strlen(all), "%s(%.*s) ", code, (int)tensor.len, tensor.data);
}

static void
assert_warns(struct pawl_str text, size_t data, const char *expected)
{
    char all[400] = "";
    struct pawl_st_options options = { .mode = PAWL_ST_LINT, .warn = note_warning, .warn_context = all };
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_st_parse(&h, text.data, text.len, 8 + text.len + data, &options, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_string_equal(all, expected);
    pawl_st_release(&h);
}

static void
lint(void **state)
{
    (void)state;
    assert_warns(PAWL_STR("{\"a\":" F32_2(0, 8) "}  "), 8, "");
    assert_warns(PAWL_STR("{\"a\":" F32_2(0, 8) "} \n"), 8, "padding() ");
    assert_warns(PAWL_STR(" {\"a\":" F32_2(0, 8) "} "), 8, "leading-blanks() ");
    assert_warns(PAWL_STR("{\"a\":" F32_2(0, 8) "}"), 8, "header-length() misaligned(a) ");
    assert_warns(PAWL_STR("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}    "), 8,
                 "unknown-field(a) ");
    assert_warns(PAWL_STR("{\"\":" F32_2(0, 8) "}   "), 8, "empty-name() ");
    assert_warns(PAWL_STR("{\"\\u0001\":" ENTRY("U8", "8", 0, 8) "}   "), 8, "header-length() control-name(\1) ");
    assert_warns(PAWL_STR("{\"u\":" ENTRY("U8", "1", 0, 1) ",\"a\":" ENTRY("F32", "1", 1, 5) "}"), 5,
                 "header-length() misaligned(a) order(a) ");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_names),
        cmocka_unit_test(metadata),
        cmocka_unit_test(padding_and_blanks),
        cmocka_unit_test(header_lengths),
        cmocka_unit_test(sizes_of_files),
        cmocka_unit_test(holes_and_overlaps),
        cmocka_unit_test(overflows),
        cmocka_unit_test(large_files),
        cmocka_unit_test(large_unknown_fields),
        cmocka_unit_test(odd_names),
        cmocka_unit_test(names_in_messages),
        cmocka_unit_test(order_of_ties),
        cmocka_unit_test(shuffled_header),
        cmocka_unit_test(order_of_rules),
        cmocka_unit_test(profile),
        cmocka_unit_test(lint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
