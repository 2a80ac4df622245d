/* safetensors/st_parse.c and st_check.c: the verdict on headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "unit/st_tools.h"

/* The text of a row: "hex:..." or characters, in which <k x c> stands for k times c. */
static struct pawl_str
expand(const char *spelling)
{
    if (strncmp(spelling, "hex:", 4) == 0)
        return st_unhex(spelling + 4);
    char *out = malloc(strlen(spelling) + 4096);
    size_t n = 0;
    assert_non_null(out);
    while (*spelling != '\0') {
        unsigned count;
        char c;
        int used = 0;
        if (sscanf(spelling, "<%u x %c>%n", &count, &c, &used) == 2 && used > 0 && count <= 1000) {
            memset(out + n, c, count);
            n += count;
            spelling += used;
        } else {
            out[n++] = *spelling++;
        }
    }
    return pawl_str_make(out, n);
}

/* The stage that the reference names, from our code. */
static const char *
stage_of(enum pawl_status st, const char *code)
{
    static const char *const STAGES[][2] = { { "json", "json" },          { "dtype", "json" },
                                             { "utf8", "utf8" },          { "hole", "offset" },
                                             { "overlap", "offset" },     { "overflow", "overflow" },
                                             { "bits", "bits" },          { "size", "info" },
                                             { "truncated", "coverage" }, { "trailing", "coverage" } };
    if (st == PAWL_OK)
        return "ok";
    for (size_t i = 0; i < sizeof STAGES / sizeof STAGES[0]; i++) {
        if (strcmp(STAGES[i][0], code) == 0)
            return STAGES[i][1];
    }
    return code;
}

/* The rows that the strict mode refuses although the reference takes them: the published list of differences. */
static const char *
strict_difference(const char *spelling)
{
    static const char *const ROWS[][2] = {
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[2],"
          "\"data_offsets\":[0,8]}}",
          "duplicate-key" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},\"a\":{\"dtype\":\"F32\",\"shape\":[2],"
          "\"data_offsets\":[0,8]}}",
          "duplicate-key" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[2]"
          ",\"data_offsets\":[0,8]}}",
          "duplicate-key" },
        { "{\"a\":[\"F32\",[2],[0,8]]}", "json" },
        { "{\"a\":{\"dtype\":{\"F32\":null},\"shape\":[2],\"data_offsets\":[0,8]}}", "json" },
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        if (strcmp(spelling, ROWS[i][0]) == 0)
            return ROWS[i][1];
    }
    return NULL;
}

/*
 * Goal: compat gives the reference's verdict on every header of the list, strict and lint the same but for the
 * published differences. Method: the list itself, through pawl_st_parse, which judges text that no file could hold as well.
 */
static void
verdicts_are_those_of_the_reference(void **state)
{
    (void)state;
    size_t bytes;
    char *list = st_slurp(PAWL_GOLDEN "/safetensors/headers.tsv", &bytes);
    size_t rows = 0;
    size_t differences = 0;
    for (char *line = strtok(list, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (*line == '#')
            continue;
        char *at = line;
        const char *verdict = st_field(&at);
        uint64_t data = strtoull(st_field(&at), NULL, 10);
        struct pawl_str text = expand(at);
        for (int mode = PAWL_ST_STRICT; mode <= PAWL_ST_LINT; mode++) {
            struct pawl_st_options options = { .mode = (enum pawl_st_mode)mode };
            struct pawl_st_header h;
            struct pawl_error err = PAWL_ERROR_INIT;
            enum pawl_status st = pawl_st_parse(&h, text.data, text.len, 8 + text.len + data, &options, &err);
            const char *other = mode == PAWL_ST_COMPAT ? NULL : strict_difference(at);
            if (other != NULL) {
                differences++;
                assert_int_equal(st, PAWL_CORRUPT);
                assert_string_equal(err.code, other);
            } else if (strcmp(stage_of(st, err.code), verdict) != 0) {
                fail_msg("mode %d: %s: expected %s, found %s (%s)", mode, at, verdict, err.code, err.message);
            }
            pawl_st_release(&h);
        }
        free((char *)text.data);
        rows++;
    }
    free(list);
    assert_int_equal(rows, 148);
    assert_int_equal(differences, 10);
}

/* ---- every cut and every changed byte ---- */

/* Small files with every kind of thing in them: usual spelling, blanks, escapes, metadata, unknown fields, no tensors. */
static const char *const SMALL[] = {
    "{}",
    "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    "{\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[4,5]},\"a\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_"
    "offsets\":[0,4]}}  ",
    " { \"\\u0061\\n\" : { \"shape\" : [ 3 ] , \"x\" : [ 1.5e3 , { } , null ] , \"dtype\" : \"I8\" , \"data_offsets\" "
    ": [ 0 , 3 ] } }\n",
};

/* What must hold of any answer, whatever the bytes. */
static void
check_answer(const unsigned char *file, size_t bytes, enum pawl_st_mode mode, enum pawl_status *ret)
{
    struct pawl_st_options options = { .mode = mode };
    struct pawl_st_header h;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_st_read_memory(&h, file, bytes, &options, &err);
    *ret = st;
    if (st != PAWL_OK) {
        assert_true(st == PAWL_CORRUPT || st == PAWL_TRUNCATED || st == PAWL_LIMIT);
        assert_true(err.code[0] != '\0' && err.message[0] != '\0');
        assert_true(err.offset <= bytes || err.offset == PAWL_OFFSET_NONE);
        assert_null(h.text);
        return;
    }
    /* the same text, parsed again without the usual spelling's shortcut, would say the same: the tensors tile and are found */
    uint64_t at = 0;
    for (size_t i = 0; i < h.n; i++) {
        uint64_t elements;
        uint64_t size;
        assert_int_equal(h.tensors[i].begin, at);
        assert_int_equal(
            pawl_dtype_bytes(h.tensors[i].dtype, h.tensors[i].shape, h.tensors[i].rank, &elements, &size, NULL),
            PAWL_OK);
        at += size;
        assert_int_equal(h.tensors[i].end, at);
        assert_ptr_equal(pawl_st_find(&h, h.tensors[i].name), &h.tensors[i]);
    }
    assert_int_equal(h.data_begin + at, bytes);
    pawl_st_release(&h);
}

/* strict takes nothing that compat refuses, and lint is strict. */
static enum pawl_status
check_all_modes(const unsigned char *file, size_t bytes)
{
    enum pawl_status strict;
    enum pawl_status compat;
    enum pawl_status lint;
    check_answer(file, bytes, PAWL_ST_STRICT, &strict);
    check_answer(file, bytes, PAWL_ST_COMPAT, &compat);
    check_answer(file, bytes, PAWL_ST_LINT, &lint);
    assert_int_equal(strict, lint);
    if (strict == PAWL_OK)
        assert_int_equal(compat, PAWL_OK);
    return strict;
}

/*
 * Goal: no cut and no single changed byte crashes, is read beyond its end, or is answered against the rules; and a
 * file that is cut anywhere is refused. Method: all of them, of four small files, each in memory of exactly its size.
 */
static void
every_cut_and_every_change(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof SMALL / sizeof SMALL[0]; k++) {
        static const size_t DATA[] = { 0, 8, 5, 3 };
        size_t bytes;
        unsigned char *file = st_file(pawl_str_z(SMALL[k]), DATA[k], &bytes);
        assert_int_equal(check_all_modes(file, bytes), PAWL_OK);
        for (size_t n = 0; n < bytes; n++) {
            unsigned char *cut = malloc(n == 0 ? 1 : n);
            assert_non_null(cut);
            memcpy(cut, file, n);
            assert_int_not_equal(check_all_modes(cut, n), PAWL_OK);
            free(cut);
        }
        for (size_t i = 0; i < bytes; i++) {
            unsigned char was = file[i];
            for (unsigned value = 0; value < 256; value++) {
                file[i] = (unsigned char)value;
                (void)check_all_modes(file, bytes);
            }
            file[i] = was;
        }
        free(file);
    }
}

/* ---- the shortcut and the tokenizer ---- */

/* Insert a blank behind every byte outside of strings, so that no entry is in a usual spelling; or, as Python's json does,
 * behind colons and commas alone. */
static struct pawl_str
spread(struct pawl_str text, bool as_python)
{
    char *out = malloc(text.len * 2 + 1);
    size_t n = 0;
    bool is_string = false;
    assert_non_null(out);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        out[n++] = c;
        if (is_string && c == '\\')
            out[n++] = text.data[++i];
        else if (c == '"')
            is_string = !is_string;
        bool is_digit = i + 1 < text.len && text.data[i + 1] >= '0' && text.data[i + 1] <= '9';
        if (!is_string && (as_python ? c == ',' || c == ':' : !is_digit))
            out[n++] = ' ';
    }
    return pawl_str_make(out, n);
}

/*
 * Goal: entries in the usual spelling and in another mean the same. Method: random headers, planned and then broken in one place
 * in half of the rounds, read as they are and with blanks as Python writes them or between all tokens; verdict, code, tensors and names agree.
 */
static void
both_spellings_agree(void **state)
{
    (void)state;
    uint32_t random = 4711;
    print_message("seed %u\n", (unsigned)random);
    size_t good = 0;
    for (int round = 0; round < 4000; round++) {
        struct pawl_st_item items[6];
        uint64_t shapes[6][3];
        char names[6][16];
        random = random * 1664525 + 1013904223;
        size_t n = (random >> 20) % 6;
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            snprintf(names[i], sizeof names[i], "%s%u.%zu", (random >> 9) % 5 == 0 ? "\n\"" : "w", (random >> 12) % 100,
                     i);
            for (size_t k = 0; k < 3; k++)
                shapes[i][k] = (random >> (14 + 3 * k)) % 7 * 2;
            items[i] = (struct pawl_st_item){ pawl_str_z(names[i]), (enum pawl_dtype)(1 + (random >> 24) % 22),
                                              1 + (random >> 11) % 3, shapes[i] };
            if (items[i].dtype == PAWL_F6_E2M3 || items[i].dtype == PAWL_F6_E3M2)
                shapes[i][0] = 4;
        }
        struct pawl_st_plan plan;
        assert_int_equal(pawl_st_plan(&plan, items, n, NULL, 0, round % 3 == 0, 0, NULL), PAWL_OK);
        struct pawl_str text = pawl_str_make(plan.prefix.data + 8, plan.prefix.len - 8);
        random = random * 1664525 + 1013904223;
        if (round % 2 == 0) {
            static const char BYTES[] = "0123456789\",:[]{}aF";
            plan.prefix.data[8 + (random >> 10) % text.len] = BYTES[random % (sizeof BYTES - 1)];
        }
        struct pawl_str other = spread(text, round % 4 < 2);
        struct pawl_st_header a;
        struct pawl_st_header b;
        struct pawl_error err_a = PAWL_ERROR_INIT;
        struct pawl_error err_b = PAWL_ERROR_INIT;
        enum pawl_status st = pawl_st_parse(&a, text.data, text.len, plan.file_bytes, NULL, &err_a);
        enum pawl_status other_st =
            pawl_st_parse(&b, other.data, other.len, plan.file_bytes + other.len - text.len, NULL, &err_b);
        if (st != other_st || strcmp(err_a.code, err_b.code) != 0)
            fail_msg("%.*s: '%s' and '%s'", (int)text.len, text.data, err_a.message, err_b.message);
        assert_int_equal(a.n, b.n);
        for (size_t i = 0; i < a.n; i++) {
            assert_true(pawl_str_equal(a.tensors[i].name, b.tensors[i].name));
            assert_int_equal(a.tensors[i].dtype, b.tensors[i].dtype);
            assert_int_equal(a.tensors[i].begin, b.tensors[i].begin);
            assert_int_equal(a.tensors[i].end, b.tensors[i].end);
            assert_int_equal(a.tensors[i].rank, b.tensors[i].rank);
            assert_memory_equal(a.tensors[i].shape, b.tensors[i].shape, a.tensors[i].rank * sizeof(uint64_t));
        }
        good += st == PAWL_OK;
        pawl_st_release(&a);
        pawl_st_release(&b);
        free((char *)other.data);
        pawl_st_plan_release(&plan);
    }
    assert_true(good > 2000 && good < 3900);
}

/* Shapes of many dimensions, across the pieces that their space is taken in; memory stays about five times the text. */
static void
many_dimensions(void **state)
{
    (void)state;
    static const size_t RANKS[] = { 1, 4095, 4096, 4097, 10000, 1000000 };
    for (size_t k = 0; k < sizeof RANKS / sizeof RANKS[0]; k++) {
        size_t rank = RANKS[k];
        char *text = malloc(3 * rank + 300);
        assert_non_null(text);
        size_t n = (size_t)sprintf(
            text,
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1],\"data_offsets\":[0,1]},\"b\":{\"dtype\":\"U8\",\"shape\":[");
        for (size_t i = 0; i < rank; i++)
            n += (size_t)sprintf(text + n, "%s1", i == 0 ? "" : ",");
        n += (size_t)sprintf(
            text + n, "],\"data_offsets\":[1,2]},\"c\":{\"dtype\":\"U8\",\"shape\":[7],\"data_offsets\":[2,9]}}");
        struct pawl_st_header h;
        struct pawl_error err = PAWL_ERROR_INIT;
        if (pawl_st_parse(&h, text, n, 8 + n + 9, NULL, &err) != PAWL_OK)
            fail_msg("%s", err.message);
        assert_int_equal(h.tensors[0].rank, 3);
        assert_int_equal(h.tensors[1].rank, rank);
        for (size_t i = 0; i < rank; i++)
            assert_int_equal(h.tensors[1].shape[i], 1);
        assert_int_equal(h.tensors[2].shape[0], 7);
        assert_true(h.arena.bytes_total < 5 * n + 200000);
        pawl_st_release(&h);
        free(text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_the_reference),
        cmocka_unit_test(every_cut_and_every_change),
        cmocka_unit_test(both_spellings_agree),
        cmocka_unit_test(many_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
