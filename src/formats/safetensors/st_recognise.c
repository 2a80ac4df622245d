/*
 * What a file is that is given as safetensors and is something else.
 *
 * A safetensors file begins with a length and has '{' at byte 8 (blanks before it allowed); the first bytes of other
 * kinds can read as a length too (gzip's as 559,903), any byte of theirs can be a '{' (the count of a shard of 123 tokens),
 * and a broken safetensors file must keep its own error. So: '{' in its place behind a length below 2^32 speaks for
 * safetensors whatever the length's bytes spell (bytes 4 to 7 are zeros then, which those kinds do not have there); marks of
 * three bytes and more are believed otherwise; marks of two bytes only when the length can't be one.
 */
#include <inttypes.h>
#include <stdio.h>
#include "base/cursor.h"
#include "formats/json/json_scan.h"
#include "formats/safetensors/st_inside.h"

#define LENGTH_LIKELY (UINT64_C(1) << 32)
#define LENGTH_ABSURD (UINT64_C(1) << 40) /* a header of a TiB */
#define TEXT_LOOK ((size_t)512)

struct look {
    const unsigned char *bytes;
    size_t n;
    uint64_t file_bytes;
    const char *code;
    struct pawl_error *err;
};

static bool
begins(const struct look *look, const char *mark, size_t n)
{
    return look->n >= n && memcmp(look->bytes, mark, n) == 0;
}
#define BEGINS(look, literal) begins((look), "" literal, sizeof(literal) - 1)

static enum pawl_status
name_it(struct look *look, const char *code, const char *message, const char *hint)
{
    look->code = code;
    (void)pawl_fail_at(look->err, PAWL_CORRUPT, "not-safetensors", 0, "not a safetensors file: %s", message);
    if (hint != NULL)
        pawl_error_hint(look->err, "%s", hint);
    return PAWL_CORRUPT;
}

/* ---- texts ---- */

/* The rest of the line behind `key` in a pointer file. */
static struct pawl_str
pointer_field(struct pawl_str text, struct pawl_str key)
{
    for (size_t i = 0; i < text.len; i++) {
        struct pawl_str rest = pawl_str_make(text.data + i, text.len - i);
        if ((i == 0 || text.data[i - 1] == '\n') && pawl_str_starts(rest, key)) {
            const char *value = rest.data + key.len;
            size_t left = rest.len - key.len;
            const char *line_end = left == 0 ? NULL : memchr(value, '\n', left);
            return pawl_str_make(value, line_end == NULL ? left : (size_t)(line_end - value));
        }
    }
    return PAWL_STR("unknown");
}

static enum pawl_status
look_for_pointer(struct look *look)
{
    if (!BEGINS(look, "version https://git-lfs.github.com/spec/"))
        return PAWL_OK;
    struct pawl_str text = pawl_str_make((const char *)look->bytes, look->n < TEXT_LOOK ? look->n : TEXT_LOOK);
    char message[700];
    (void)snprintf(message, sizeof message, "Git LFS pointer; the real file is %s bytes, oid %s, and was not fetched",
                   PAWL_SHOW(pointer_field(text, PAWL_STR("size "))), PAWL_SHOW(pointer_field(text, PAWL_STR("oid "))));
    return name_it(look, "lfs-pointer", message, "fetch it: git lfs pull");
}

/* `word` in small letters against bytes in any case. */
static bool
starts_with_word(const unsigned char *at, const unsigned char *end, const char *word)
{
    for (; *word != '\0'; word++, at++) {
        if (at == end || (*word >= 'a' && *word <= 'z' ? (*at | 0x20) : *at) != (unsigned char)*word)
            return false;
    }
    return true;
}

static bool
contains(const unsigned char *at, const unsigned char *end, const char *word)
{
    for (; at != end; at++) {
        if (starts_with_word(at, end, word))
            return true;
    }
    return false;
}

/* Texts begin with bytes that read as an enormous length. */
static enum pawl_status
look_for_text(struct look *look)
{
    static const char *const PAGES[] = { "<!doctype", "<html", "<head", "<?xml", "<body" };
    static const char AGAIN[] = "download it again, and look at what the server answered";
    const unsigned char *at = look->bytes;
    const unsigned char *end = at + (look->n < TEXT_LOOK ? look->n : TEXT_LOOK);

    if (BEGINS(look, "\xef\xbb\xbf"))
        at += 3;
    at = pawl_json_scan_blanks(at, end);
    for (size_t i = 0; i < sizeof PAGES / sizeof PAGES[0]; i++) {
        if (starts_with_word(at, end, PAGES[i]))
            return name_it(look, "not-checkpoint", "HTML page, probably a failed download", AGAIN);
    }
    if (at == end || (*at != '{' && *at != '['))
        return PAWL_OK;
    /* a text, not a length that happens to begin with a bracket: no NUL where the length's high bytes would be */
    for (size_t i = 0; i < look->n && i < 8; i++) {
        if (look->bytes[i] == 0)
            return PAWL_OK;
    }
    const unsigned char *key = pawl_json_scan_blanks(at + 1, end);
    if (*at == '{' && (starts_with_word(key, end, "\"error\"") || starts_with_word(key, end, "\"message\"")))
        return name_it(look, "not-checkpoint", "JSON error page, probably a failed download", AGAIN);
    if (*at == '{' && (contains(at, end, "\"weight_map\"") || contains(at, end, "\"total_size\"")))
        return name_it(look, "safetensors-index", "JSON, the index of a sharded model",
                       "open the index as a model, or one of the files that it names");
    return name_it(look, "json", "a bare JSON text: the 8 bytes of length before it are missing", NULL);
}

/* ---- binaries ---- */

struct mark {
    const char *bytes;
    size_t n;
    const char *code;
    const char *message;
    const char *hint;
};
#define MARK(bytes, code, message, hint)              \
    {                                                 \
        bytes, sizeof(bytes) - 1, code, message, hint \
    }

static const char TORCH[] = "if it is a PyTorch checkpoint, convert it to safetensors first";
static const char UNPACK[] = "decompress it first";

/* Three bytes and more: believed unless an object stands where the header's should. */
static const struct mark STRONG[] = {
    MARK("PK\3\4", "zip", "a zip archive, as PyTorch checkpoints are", TORCH),
    MARK("PK\5\6", "zip-empty", "an empty zip archive", NULL),
    MARK("PK\7\10", "zip-spanned", "a zip archive of several volumes", NULL),
    MARK("7z\xbc\xaf\x27\x1c", "is-7z", "a 7z archive", UNPACK),
    MARK("\x1f\x8b\x08", "compressed", "gzip data", UNPACK),
    MARK("\x28\xb5\x2f\xfd", "compressed", "zstd data", UNPACK),
    MARK("\xfd"
         "7zXZ\0",
         "compressed", "xz data", UNPACK),
    MARK("BZh", "compressed", "bzip2 data", UNPACK),
    MARK("PYTORCH1", "pytorch-preview", "a PyTorch archive of a preview release", NULL),
    MARK("\x89HDF\r\n\x1a\n", "is-hdf5", "an HDF5 file (Keras, netCDF)", NULL),
    MARK("GGUF", "not-checkpoint", "a GGUF file", NULL),
    MARK("\x93NUMPY", "not-checkpoint", "a NumPy array (.npy)", NULL),
    MARK("\x89PNG", "not-checkpoint", "a PNG image", NULL),
    MARK("LLMCP35\0", "llmcp35", "an LLMCP35 checkpoint", NULL),
    MARK("\x88\xd8\x34\x01", "token-shard", "a shard of tokens", NULL),
    MARK("\x81\xd9\x34\x01", "token-shard", "a shard of tokens (magic 20240801)", NULL),
    MARK("\x8a\xd8\x34\x01", "token-shard", "a file of an evaluation set (magic 20240522)", NULL),
    MARK("MMIDIDX\0\0", "token-shard", "a Megatron index of tokens", NULL),
};

static bool
is_zlib(const struct look *look)
{
    return look->n >= 2 && look->bytes[0] == 0x78 &&
           (look->bytes[1] == 0x01 || look->bytes[1] == 0x5e || look->bytes[1] == 0x9c || look->bytes[1] == 0xda);
}

static enum pawl_status
look_for_binary(struct look *look, bool length_fits)
{
    for (size_t i = 0; i < sizeof STRONG / sizeof STRONG[0]; i++) {
        if (begins(look, STRONG[i].bytes, STRONG[i].n))
            return name_it(look, STRONG[i].code, STRONG[i].message, STRONG[i].hint);
    }
    if (look->n >= 262 && memcmp(look->bytes + 257, "ustar", 5) == 0)
        return name_it(look, "legacy-tar", "a tar archive", UNPACK);
    if (length_fits)
        return PAWL_OK;
    if (is_zlib(look))
        return name_it(look, "compressed", "zlib data", UNPACK);
    if (look->n >= 2 && look->bytes[0] == 0x80 && look->bytes[1] <= 5)
        return name_it(look, "pickle", "a Python pickle, as old PyTorch checkpoints are", TORCH);
    return PAWL_OK;
}

static enum pawl_status
recognise(struct look *look)
{
    if (look->file_bytes == 0)
        return name_it(look, "empty", "empty file (0 bytes)", "fetch or copy it again");
    enum pawl_status st = look_for_pointer(look);
    if (st != PAWL_OK)
        return st;
    uint64_t length = look->n < 8 ? UINT64_MAX : pawl_get_u64le(look->bytes);
    const unsigned char *end = look->bytes + look->n;
    const unsigned char *object = look->n < 8 ? end : pawl_json_scan_blanks(look->bytes + 8, end);
    if (length < LENGTH_LIKELY && object != end && *object == '{')
        return PAWL_OK;
    st = look_for_text(look);
    if (st == PAWL_OK)
        st = look_for_binary(look, look->file_bytes >= 8 && length <= look->file_bytes - 8);
    if (st != PAWL_OK || look->n < 8 || length < LENGTH_ABSURD)
        return st;
    char hex[50];
    for (size_t i = 0; i < 16 && i < look->n; i++)
        (void)snprintf(hex + 3 * i, 4, " %02x", look->bytes[i]);
    char message[160];
    (void)snprintf(message, sizeof message, "no known format; its first bytes are%s", hex);
    return name_it(look, "unknown-format", message, NULL);
}

enum pawl_status
pawl_st_recognise(const void *bytes, size_t n, uint64_t file_bytes, const char **ret_code, struct pawl_error *err)
{
    struct look look = { bytes, n, file_bytes, NULL, err };
    enum pawl_status st = recognise(&look);
    if (st != PAWL_OK && ret_code != NULL)
        *ret_code = look.code;
    return st;
}
