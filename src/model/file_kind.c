/* What kind of file something is, by its bytes. */
#include <stdio.h>
#include <string.h>
#include "formats/tokens/manifest.h"
#include "model/index.h"
#include "model/model.h"

/* What pawl_st_recognise wants to see, and room for the blanks that may stand before a header's object. */
#define LOOK_BYTES ((size_t)4096)

/* What the recogniser puts in front, which speaks of safetensors alone. */
#define NOT_SAFETENSORS "not a safetensors file: "

/* A JSON text is an index, or the manifest of a tokenised data set, or nothing of ours. */
static enum pawl_status
kind_of_json(const struct pawl_file *file, enum pawl_kind *ret_kind, struct pawl_error *err)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_index index;
    struct pawl_token_manifest manifest;
    enum pawl_kind kind = PAWL_KIND_UNKNOWN;
    if (file->bytes > PAWL_TOKEN_MANIFEST_BYTES_MAX)
        return PAWL_CORRUPT;
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_file_read_all(file, PAWL_TOKEN_MANIFEST_BYTES_MAX, &text, &own);
    if (st == PAWL_OK) {
        kind = PAWL_KIND_SAFETENSORS_INDEX;
        st = pawl_index_parse(&arena, &index, text.data, text.len, &own);
        if (st == PAWL_CORRUPT) {
            kind = PAWL_KIND_TOKEN_DIR;
            st = pawl_token_manifest_parse(&arena, text.data, text.len, &manifest, &own);
        }
    }
    if (st != PAWL_OK && st != PAWL_CORRUPT && err != NULL)
        *err = own;
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
    if (st == PAWL_OK)
        *ret_kind = kind;
    return st;
}

/* The object of a header stands behind the length, blanks before it allowed. */
static bool
has_object(const unsigned char *look, size_t n)
{
    size_t at = 8;
    while (at < n && (look[at] == ' ' || look[at] == '\t' || look[at] == '\n' || look[at] == '\r'))
        at++;
    return at < n ? look[at] == '{' : n == LOOK_BYTES && at > 8; /* nothing but blanks as far as one looks */
}

static enum pawl_status
fail_unknown(const unsigned char *look, size_t n, struct pawl_error *err)
{
    char hex[3 * 16 + 1] = "";
    for (size_t i = 0; i < 16 && i < n; i++)
        (void)snprintf(hex + 3 * i, 4, " %02x", look[i]);
    return pawl_fail_at(err, PAWL_CORRUPT, "unknown-format", 0, "no known format; its first bytes are%s", hex);
}

/* The recogniser's code and sentence, without what it says of safetensors. */
static enum pawl_status
fail_recognised(const char *code, const struct pawl_error *said, struct pawl_error *err)
{
    const char *message = said->message;
    size_t prefix = strlen(NOT_SAFETENSORS);
    if (strncmp(message, NOT_SAFETENSORS, prefix) == 0)
        message += prefix;
    (void)pawl_fail_at(err, PAWL_CORRUPT, strcmp(code, "json") == 0 ? "unknown-format" : code, 0, "%s", message);
    if (said->hint[0] != '\0')
        pawl_error_hint(err, "%s", said->hint);
    return PAWL_CORRUPT;
}

enum pawl_status
pawl_file_kind(const struct pawl_file *file, enum pawl_kind *ret_kind, struct pawl_error *err)
{
    static const struct {
        const char *code;
        enum pawl_kind kind;
    } KINDS[] = {
        { "zip", PAWL_KIND_PYTORCH },
        { "pickle", PAWL_KIND_PYTORCH },
        { "llmcp35", PAWL_KIND_LLMCP35 },
        { "token-shard", PAWL_KIND_TOKEN_SHARD },
        { "safetensors-index", PAWL_KIND_SAFETENSORS_INDEX },
    };
    unsigned char look[LOOK_BYTES] = { 0 };
    struct pawl_error said = PAWL_ERROR_INIT;
    const char *code = NULL;
    size_t n = file->bytes < sizeof look ? (size_t)file->bytes : sizeof look;
    enum pawl_status st = n == 0 ? PAWL_OK : pawl_file_read(file, 0, look, n, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_st_recognise(look, n, file->bytes, &code, &said);
    if (st == PAWL_OK) {
        if (!has_object(look, n)) {
            st = fail_unknown(look, n, err);
            pawl_error_path(err, pawl_str_z(file->path));
            return st;
        }
        *ret_kind = PAWL_KIND_SAFETENSORS;
        return PAWL_OK;
    }
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strcmp(code, KINDS[i].code) == 0) {
            *ret_kind = KINDS[i].kind;
            return PAWL_OK;
        }
    }
    if (strcmp(code, "json") == 0) {
        st = kind_of_json(file, ret_kind, err);
        if (st != PAWL_CORRUPT)
            return st;
    }
    st = fail_recognised(code, &said, err);
    pawl_error_path(err, pawl_str_z(file->path));
    return st;
}
