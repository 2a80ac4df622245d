/*
 * The tokenizer and the document on any bytes. The first byte chooses the flags, the rest is the text. They must agree; what was
 * parsed prints, and the print parses to the same print; every number prints to a text that reads back to its bits.
 */
#include <stdlib.h>
#include <string.h>
#include "formats/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds)
        abort();
}

static void
check_number(struct pawl_str text)
{
    char printed[32];
    double value = pawl_json_f64(text);
    size_t n = pawl_json_print_f64(value, printed);
    require(n == strlen(printed) && n <= 24);
    double again = pawl_json_f64(pawl_str_make(printed, n));
    require(memcmp(&value, &again, sizeof value) == 0 || (value != value && again != again));
    int64_t i64;
    uint64_t u64;
    if (pawl_json_u64(text, &u64) || pawl_json_i64(text, &i64))
        require(pawl_json_is_integer(text));
}

static enum pawl_status
tokenize(const uint8_t *text, size_t bytes, unsigned flags, struct pawl_error *err)
{
    struct pawl_json_reader reader;
    struct pawl_json_token token = { .type = PAWL_JSON_NULL };
    enum pawl_status st = pawl_json_begin(&reader, text, bytes, flags, err);
    while (st == PAWL_OK && token.type != PAWL_JSON_END) {
        st = pawl_json_next(&reader, &token, err);
        if (st == PAWL_OK && token.type == PAWL_JSON_NUMBER)
            check_number(token.text);
    }
    pawl_json_release(&reader);
    return st;
}

static void
print_value(const struct pawl_json_value *value, enum pawl_json_style style, enum pawl_json_escape escape,
            bool sort_keys, struct pawl_buffer *out)
{
    struct pawl_json_writer writer;
    pawl_buffer_clear(out);
    pawl_json_write_begin(&writer, out, style, escape);
    pawl_json_write_value(&writer, value, sort_keys);
    require(pawl_buffer_ok(out));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_error document_err = PAWL_ERROR_INIT;
    if (size == 0)
        return 0;
    unsigned flags = data[0] & PAWL_JSON_NAN;
    enum pawl_json_style style = data[0] >> 1 & 1 ? PAWL_JSON_INDENTED : PAWL_JSON_SPACED;
    enum pawl_json_escape escape = data[0] >> 2 & 1 ? PAWL_JSON_ASCII : PAWL_JSON_RAW;
    bool sort_keys = (data[0] >> 3 & 1) != 0;

    enum pawl_status st = tokenize(data + 1, size - 1, flags, &err);
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *value;
    enum pawl_status document_st = pawl_json_parse(&arena, data + 1, size - 1, flags, &value, &document_err);
    if (strcmp(document_err.code, "duplicate-key") != 0)
        require(st == document_st && err.offset == document_err.offset &&
                strcmp(err.message, document_err.message) == 0);
    if (document_st == PAWL_OK) {
        struct pawl_buffer first = PAWL_BUFFER_INIT;
        struct pawl_buffer second = PAWL_BUFFER_INIT;
        print_value(value, style, escape, sort_keys, &first);
        require(pawl_json_parse(&arena, first.data, first.len, flags, &value, NULL) == PAWL_OK);
        print_value(value, style, escape, false, &second);
        require(pawl_str_equal(pawl_buffer_str(&first), pawl_buffer_str(&second)));
        pawl_buffer_release(&first);
        pawl_buffer_release(&second);
    }
    pawl_arena_release(&arena);
    return 0;
}
