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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_those_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
