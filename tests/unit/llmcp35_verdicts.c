/*
 * llmcp35_verdicts: decode files from stdin (4 bytes of length, little-endian, then the bytes) and print a line of JSON for each:
 * {"ok": true}, or the category, the cause and the values. What is taken must encode to the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pawl/json.h"
#include "pawl/llmcp35.h"

static void
print_field(struct pawl_json *json, const struct pawl_llmcp35_field *field)
{
    char hex[24];
    uint64_t bits;
    pawl_json_add_key_z(json, field->name);
    switch (field->type) {
    case PAWL_LLMCP35_NUMBER:
        pawl_json_add_u64(json, field->number);
        break;
    case PAWL_LLMCP35_REAL:
        memcpy(&bits, &field->real, sizeof bits);
        (void)snprintf(hex, sizeof hex, "0x%016llx", (unsigned long long)bits);
        pawl_json_add_string_z(json, hex);
        break;
    case PAWL_LLMCP35_TEXT:
        pawl_json_add_string(json, field->text);
        break;
    case PAWL_LLMCP35_NUMBERS:
    case PAWL_LLMCP35_NAMES:
        pawl_json_add_array(json);
        for (size_t i = 0; i < field->n; i++) {
            if (field->type == PAWL_LLMCP35_NUMBERS)
                pawl_json_add_u64(json, field->numbers[i]);
            else
                pawl_json_add_string(json, field->names[i]);
        }
        pawl_json_end_array(json);
        break;
    }
}

static void
print_fault(struct pawl_json *json, const struct pawl_llmcp35_fault *fault)
{
    size_t n;
    const struct pawl_llmcp35_field *fields = pawl_llmcp35_fault_fields(fault, &n);
    pawl_json_add_key_z(json, "category");
    pawl_json_add_string_z(json, pawl_llmcp35_fault_category(fault));
    pawl_json_add_key_z(json, "cause");
    if (pawl_llmcp35_fault_cause(fault) != NULL)
        pawl_json_add_string_z(json, pawl_llmcp35_fault_cause(fault));
    else
        pawl_json_add_null(json);
    pawl_json_add_key_z(json, "fields");
    pawl_json_add_object(json);
    for (size_t i = 0; i < n; i++)
        print_field(json, &fields[i]);
    pawl_json_end_object(json);
}

static int
answer(const unsigned char *bytes, size_t n)
{
    struct pawl_llmcp35 *checkpoint = NULL;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_json *json = NULL;
    if (pawl_json_new(PAWL_JSON_COMPACT, PAWL_JSON_ASCII, &json, NULL) != PAWL_OK)
        return 1;
    pawl_json_add_object(json);
    if (pawl_llmcp35_decode(bytes, n, &checkpoint, &fault, NULL) == PAWL_OK) {
        unsigned char *again = malloc(n);
        if (again == NULL || pawl_llmcp35_encode(checkpoint, again, n, NULL) != PAWL_OK || memcmp(again, bytes, n) != 0)
            return 1;
        free(again);
        pawl_json_add_key_z(json, "ok");
        pawl_json_add_bool(json, true);
    } else {
        print_fault(json, fault);
    }
    pawl_json_end_object(json);
    struct pawl_str text;
    if (pawl_json_text(json, &text, NULL) != PAWL_OK)
        return 1;
    (void)printf("%.*s\n", (int)text.len, text.data);
    pawl_json_free(json);
    pawl_llmcp35_free(checkpoint);
    pawl_llmcp35_fault_free(fault);
    return 0;
}

int
main(void)
{
    unsigned char length[4];
    while (fread(length, 1, 4, stdin) == 4) {
        size_t n = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
        unsigned char *bytes = malloc(n == 0 ? 1 : n);
        if (bytes == NULL || fread(bytes, 1, n, stdin) != n || answer(bytes, n) != 0)
            return 1;
        free(bytes);
    }
    return 0;
}
