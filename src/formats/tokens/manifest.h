/*
 * tokens/manifest.h: _MANIFEST.json of a tokenized data set, as bytes.
 * Format: docs/format/tokens.md.
 */
#ifndef PAWL_FORMATS_TOKENS_MANIFEST_H
#define PAWL_FORMATS_TOKENS_MANIFEST_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "pawl/tokens.h"

#define PAWL_TOKEN_MANIFEST_NAME "_MANIFEST.json"
/* A row is about 230 bytes: room for 99,999 files of a split, and a few splits of them. */
#define PAWL_TOKEN_MANIFEST_BYTES_MAX ((size_t)128 << 20)
/* Five digits of a file's name. */
#define PAWL_TOKEN_FILES_MAX 99999

struct pawl_token_manifest {
    struct pawl_str tokenizer_id;
    bool has_tokenizer_sha256; /* else null */
    unsigned char tokenizer_sha256[32];
    bool has_vocabulary; /* else null */
    uint64_t vocabulary;
    bool has_separator; /* else null */
    uint64_t separator;
    struct pawl_str dataset, version;
    unsigned char corpus_sha256[32];
    const struct pawl_token_file *files;
    size_t n_files;
};

/*
 * Read one by its schema: every key there, none besides, each of its type and
 * form. PAWL_CORRUPT, code "manifest", with the offset; a file listed twice is
 * that too. Texts and rows live in the arena.
 */
enum pawl_status pawl_token_manifest_parse(struct pawl_arena *arena, const void *text, size_t bytes,
                                           struct pawl_token_manifest *ret_manifest, struct pawl_error *err);

/* Append it to `out`; failures of memory show in pawl_buffer_ok(out). */
void pawl_token_manifest_print(const struct pawl_token_manifest *manifest, struct pawl_buffer *out);

/* [a-z0-9][a-z0-9._-]*: a tokenizer's name, a split. */
bool pawl_token_is_label(struct pawl_str text);
/* A label, "-", five digits, ".bin". */
bool pawl_token_is_file_name(struct pawl_str text);

#endif
