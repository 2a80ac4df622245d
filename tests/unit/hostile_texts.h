/* unit/hostile_texts.h: headers made to cost their reader time or memory, of any size, and what each must be answered. */
#ifndef UNIT_HOSTILE_TEXTS_H
#define UNIT_HOSTILE_TEXTS_H

#include "pawl/model.h"
#include "unit/st_tools.h"

enum hostile {
    BRACKETS,       /* [[[[[ */
    BRACES,         /* {"a":{"a":{"a": */
    OPEN_STRING,    /* one string without an end */
    ONE_STRING,     /* one name of all the header */
    ESCAPES,        /* the same, each character as \u0061 */
    UNKNOWN_STRING, /* an unknown field with a string */
    UNKNOWN_ARRAYS, /* an unknown field of [],[],[] ... */
    DIGITS,         /* an unknown field with a number of many digits */
    EXPONENT,       /* one whose exponent has them */
    ENTRIES,        /* as many empty tensors as fit */
    SAME_NAME,      /* the same, of one name */
    SAME_START,     /* names that differ only in their last bytes, all at one offset, in descending order */
    METADATA,       /* as many keys as fit */
    METADATA_TWICE, /* of one name */
    DIMENSIONS,     /* one tensor of rank N, of ones */
    ZEROS,          /* a shape of zeros */
    BLANKS,         /* nothing but spaces */
    NULS,           /* nothing but NULs */
    COMMAS,         /* {,,,, */
    QUOTES,         /* "":"":"": */
    N_HOSTILE
};

/* What of it is right: NULL, it is accepted. */
static const char *const HOSTILE_CODES[N_HOSTILE] = {
    [BRACKETS] = "json",
    [BRACES] = "json",
    [OPEN_STRING] = "json",
    [DIGITS] = "json",
    [EXPONENT] = "json",
    [SAME_NAME] = "duplicate-key",
    [METADATA_TWICE] = "duplicate-key",
    [BLANKS] = "json",
    [NULS] = "json",
    [COMMAS] = "json",
    [QUOTES] = "json",
};

static ST_UNUSED void
repeat(struct pawl_buffer *b, const char *piece, size_t until)
{
    size_t n = strlen(piece);
    while (b->len + n <= until)
        (void)pawl_buffer_add(b, piece, n);
}

/* One after the other until the header is full: `format` takes a number. */
static ST_UNUSED void
count_up(struct pawl_buffer *b, const char *begin, const char *name_format, const char *rest, bool is_down,
         size_t until)
{
    size_t number = is_down ? 9999999 : 0;
    for (size_t i = 0; b->len + 120 < until; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s%0*zu", name_format, 7, number);
        (void)pawl_buffer_add_z(b, i == 0 ? "" : ",");
        (void)pawl_buffer_add_z(b, begin);
        (void)pawl_buffer_add_z(b, name);
        (void)pawl_buffer_add_z(b, rest);
        number = is_down ? number - 1 : number + 1;
    }
}

/* A whole file: 8 bytes, a header of about `bytes`, and what data it takes. */
static ST_UNUSED void
make_hostile(struct pawl_buffer *b, enum hostile kind, size_t bytes)
{
    static const char EMPTY[] = "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    size_t data = 0;
    size_t until = bytes - 100;
    (void)pawl_buffer_add(b, "\0\0\0\0\0\0\0\0", 8);
    switch (kind) {
    case BRACKETS:
        (void)pawl_buffer_add_z(b, "{\"a\":");
        repeat(b, "[", until);
        break;
    case BRACES:
        repeat(b, "{\"a\":", until);
        break;
    case OPEN_STRING:
        (void)pawl_buffer_add_z(b, "{\"");
        repeat(b, "abcdefghijklmnop", until);
        break;
    case ONE_STRING:
        (void)pawl_buffer_add_z(b, "{\"");
        repeat(b, "abcdefghijklmnop", until);
        (void)pawl_buffer_add_z(b, EMPTY);
        (void)pawl_buffer_add_z(b, "}");
        break;
    case ESCAPES:
        (void)pawl_buffer_add_z(b, "{\"");
        repeat(b, "\\u0061", until);
        (void)pawl_buffer_add_z(b, EMPTY);
        (void)pawl_buffer_add_z(b, "}");
        break;
    case UNKNOWN_STRING:
    case UNKNOWN_ARRAYS:
    case DIGITS:
    case EXPONENT:
        (void)pawl_buffer_add_z(b, "{\"a\":{\"x\":");
        (void)pawl_buffer_add_z(b, kind == UNKNOWN_STRING   ? "\""
                                   : kind == UNKNOWN_ARRAYS ? "[[]"
                                   : kind == DIGITS         ? "9"
                                                            : "1e9");
        repeat(b, kind == UNKNOWN_STRING ? "abcdefgh" : kind == UNKNOWN_ARRAYS ? ",[]" : "9", until);
        (void)pawl_buffer_add_z(b, kind == UNKNOWN_STRING ? "\"" : kind == UNKNOWN_ARRAYS ? "]" : "");
        (void)pawl_buffer_add_z(b, ",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
        break;
    case ENTRIES:
    case SAME_START:
        (void)pawl_buffer_add_z(b, "{");
        count_up(b, "\"", kind == ENTRIES ? "t" : "model.layers.weight.", EMPTY, kind == SAME_START, until);
        (void)pawl_buffer_add_z(b, "}");
        break;
    case SAME_NAME:
        (void)pawl_buffer_add_z(b, "{\"a");
        (void)pawl_buffer_add_z(b, EMPTY);
        repeat(b, ",\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", until);
        (void)pawl_buffer_add_z(b, "}");
        break;
    case METADATA:
    case METADATA_TWICE:
        (void)pawl_buffer_add_z(b, "{\"__metadata__\":{");
        if (kind == METADATA) {
            count_up(b, "\"", "k", "\":\"\"", false, until);
        } else {
            (void)pawl_buffer_add_z(b, "\"k\":\"\"");
            repeat(b, ",\"k\":\"\"", until);
        }
        (void)pawl_buffer_add_z(b, "}}");
        break;
    case DIMENSIONS:
    case ZEROS:
        data = kind == DIMENSIONS;
        (void)pawl_buffer_add_z(b, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":");
        (void)pawl_buffer_add_z(b, data == 1 ? "[0,1],\"shape\":[1" : "[0,0],\"shape\":[0");
        repeat(b, data == 1 ? ",1" : ",0", until);
        (void)pawl_buffer_add_z(b, "]}}");
        break;
    case BLANKS:
        repeat(b, "        ", until);
        break;
    case NULS:
        while (b->len < until)
            (void)pawl_buffer_add(b, "\0\0\0\0\0\0\0\0", 8);
        break;
    case COMMAS:
        (void)pawl_buffer_add_z(b, "{");
        repeat(b, ",", until);
        break;
    default:
        (void)pawl_buffer_add_z(b, "{");
        repeat(b, "\"\":", until);
        break;
    }
    if (!pawl_buffer_ok(b))
        abort();
    pawl_put_u64le((unsigned char *)b->data, b->len - 8);
    if (data != 0)
        (void)pawl_buffer_add(b, "\1", 1);
}

/* In every mode: accepted, or refused by that code; compat takes what stands twice. */
static ST_UNUSED void
expect_hostile(enum hostile kind, const struct pawl_buffer *file)
{
    for (int mode = PAWL_MODE_STRICT; mode <= PAWL_MODE_LINT; mode++) {
        const struct pawl_model_options options = PAWL_MODEL_OPTIONS(.mode = (enum pawl_mode)mode);
        const char *code = HOSTILE_CODES[kind];
        bool is_twice = kind == SAME_NAME || kind == METADATA_TWICE;
        struct pawl_model *model = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        if (is_twice && mode == PAWL_MODE_COMPAT)
            code = NULL;
        enum pawl_status st = pawl_model_open_memory(file->data, file->len, &options, &model, &err);
        if (code == NULL && st != PAWL_OK)
            fail_msg("text %d, mode %d: %s", (int)kind, mode, err.message);
        if (code != NULL && (st == PAWL_OK || strcmp(err.code, code) != 0))
            fail_msg("text %d, mode %d: %s: %s, expected %s", (int)kind, mode, err.code, err.message, code);
        pawl_model_close(model);
    }
}

#endif
