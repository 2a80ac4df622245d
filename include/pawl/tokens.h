/*
 * pawl/tokens.h: token shards: files of ids behind a 1024-byte header, mapped
 * read-only, and the writer of a whole data set with its _MANIFEST.json.
 * Format: docs/format/tokens.md.
 *
 * A token PATH is a file, or a directory: then the files that its _MANIFEST.json
 * lists (of one split when asked), without one the files in it named *.bin, in byte order. A _MANIFEST.json stands for its directory.
 */
#ifndef PAWL_TOKENS_H
#define PAWL_TOKENS_H

#include "pawl/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one shard ---- */

struct pawl_shard;

enum pawl_shard_format {
    PAWL_SHARD_PAWL_1 = 1, /* 16-bit ids */
    PAWL_SHARD_PAWL_2 = 2  /* 32-bit ids */
};
PAWL_API const char *pawl_shard_format_name(enum pawl_shard_format format); /* "pawl-1" */

struct pawl_shard_options {
    size_t size;
    uint64_t vocabulary; /* the caller's; 0: not stated. A shard that names another, or an id beyond it, is refused */
    uint8_t trust_ids;   /* do not scan the ids, whatever vocabulary is stated */
};
#define PAWL_SHARD_OPTIONS(...) \
    PAWL_LITERAL_(pawl_shard_options, .size = sizeof(struct pawl_shard_options), __VA_ARGS__)

struct pawl_shard_info {
    enum pawl_shard_format format;
    unsigned width; /* bytes per id: 2 or 4 */
    uint64_t ids;
    uint64_t vocabulary; /* 0: not stated */
};

/*
 * Map a shard. Constant cost, plus one scan when a vocabulary is stated by the file or the caller.
 * Returns PAWL_OK; PAWL_NO_FILE; PAWL_TRUNCATED ("too-short", "truncated") or PAWL_CORRUPT ("magic", "version",
 * "count", "trailing", "vocabulary", "id-range" with the position), in the order of the page.
 */
PAWL_API enum pawl_status pawl_shard_open(struct pawl_str path, const struct pawl_shard_options *options,
                                          struct pawl_shard **ret_shard, struct pawl_error *err);
PAWL_API void pawl_shard_close(struct pawl_shard *shard);
PAWL_API struct pawl_shard_info pawl_shard_info(const struct pawl_shard *shard);
/* The ids in the mapping: uint16_t or uint32_t by width, little-endian, aligned. NULL when there are none. */
PAWL_API const void *pawl_shard_data(const struct pawl_shard *shard);
/* Copy n ids from position `from`. PAWL_ARGUMENT when they are not all there. */
PAWL_API enum pawl_status pawl_shard_read(const struct pawl_shard *shard, uint64_t from, size_t n, uint32_t *ids,
                                          struct pawl_error *err);

/* ---- what a token PATH stands for ---- */

struct pawl_token_files;

/* Expand PATHs into shard files, in order. split NULL or empty: all. PAWL_NO_FILE; PAWL_CORRUPT for a broken manifest, a name that leaves its
 * directory, or a directory without shards. */
PAWL_API enum pawl_status pawl_token_files_open(const struct pawl_str *paths, size_t n, struct pawl_str split,
                                                struct pawl_token_files **ret_files, struct pawl_error *err);
PAWL_API void pawl_token_files_close(struct pawl_token_files *files);
PAWL_API const struct pawl_str *pawl_token_files_paths(const struct pawl_token_files *files, size_t *ret_n);
/* Documents that a manifest states for file i; UINT64_MAX: not stated. */
PAWL_API uint64_t pawl_token_files_documents(const struct pawl_token_files *files, size_t i);

/* ---- writing a data set ---- */

struct pawl_token_writer;

struct pawl_token_writer_options {
    size_t size;
    uint64_t vocabulary; /* 0: not known; word 3 is then 0 and vocab_size null */
    uint64_t separator;  /* the id before each document, when has_separator */
    uint8_t has_separator;
    uint8_t width;                         /* bytes: 0 (2 when a vocabulary up to 65,536 is known, else 4), 2 or 4 */
    uint8_t replace;                       /* the directory may hold a set: its files go */
    uint64_t max_ids;                      /* per file; 0: 100,000,000 */
    struct pawl_str prefix;                /* the split: [a-z0-9][a-z0-9._-]*; empty: train */
    struct pawl_str tokenizer_id;          /* empty: unknown */
    const unsigned char *tokenizer_sha256; /* 32 bytes, NULL: null */
    struct pawl_str dataset, version;      /* empty: unnamed, 1 */
    const unsigned char *corpus_sha256;    /* 32 bytes of corpus_manifest_sha256; NULL: of no bytes */
};
#define PAWL_TOKEN_WRITER_OPTIONS(...) \
    PAWL_LITERAL_(pawl_token_writer_options, .size = sizeof(struct pawl_token_writer_options), __VA_ARGS__)

/* The directory is new, empty, or what an interrupted writer left. PAWL_EXISTS otherwise, unless `replace`. One that was made here is gone
 * again when the call fails, or when the writer is closed before its first file was published. */
PAWL_API enum pawl_status pawl_token_writer_open(struct pawl_str directory,
                                                 const struct pawl_token_writer_options *options,
                                                 struct pawl_token_writer **ret_writer, struct pawl_error *err);
/* Begin a document: the separator is written when there is one. */
PAWL_API enum pawl_status pawl_token_writer_document(struct pawl_token_writer *writer, struct pawl_error *err);
/* Ids of the open document. PAWL_OUT_OF_RANGE for an id that vocabulary or width lack. A document is kept whole in one file:
 * it is held in memory until it ends, or until it alone fills a file. */
PAWL_API enum pawl_status pawl_token_writer_add(struct pawl_token_writer *writer, const uint32_t *ids, size_t n,
                                                struct pawl_error *err);
/* For the tokenizer of bytes. */
PAWL_API enum pawl_status pawl_token_writer_add_bytes(struct pawl_token_writer *writer, const void *bytes, size_t n,
                                                      struct pawl_error *err);
/* Name the digest of what the set was made from, when it is known only now. */
PAWL_API void pawl_token_writer_corpus(struct pawl_token_writer *writer, const unsigned char sha256[32]);

struct pawl_token_file {
    struct pawl_str name, split;
    uint64_t ids, documents;
    unsigned char sha256[32];
};
/* Publish the last shard and the manifest, durably. The list is the writer's, until pawl_token_writer_close. */
PAWL_API enum pawl_status pawl_token_writer_finish(struct pawl_token_writer *writer,
                                                   const struct pawl_token_file **ret_files, size_t *ret_n,
                                                   struct pawl_error *err);
PAWL_API void pawl_token_writer_close(
    struct pawl_token_writer *writer); /* without finish: temporaries go; NULL is fine */

/* ---- packing files ---- */

enum pawl_pack_input {
    PAWL_PACK_BYTES = 0,
    PAWL_PACK_IDS = 1 /* decimal numbers in text */,
    PAWL_PACK_SHARDS = 2 /* ids of token files */
};
enum pawl_pack_documents { PAWL_PACK_FILE = 0, PAWL_PACK_LINE = 1, PAWL_PACK_JSONL = 2 };

struct pawl_pack_options {
    size_t size;
    enum pawl_pack_input input;
    enum pawl_pack_documents documents;
    struct pawl_str field; /* of JSON Lines */
    struct pawl_token_writer_options
        writer;                      /* .size included; vocabulary 0: as docs/format/tokens.md says for the input */
    struct pawl_str tokenizer_file;  /* path; hashed into tokenizer_sha256 (ids given from outside) */
    struct pawl_str corpus_manifest; /* path; hashed into corpus_manifest_sha256 instead of the list of inputs */
    /* Called now and then with bytes read and in all; another answer than 0 cancels. May be NULL. */
    int (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};
#define PAWL_PACK_OPTIONS(...) PAWL_LITERAL_(pawl_pack_options, .size = sizeof(struct pawl_pack_options), __VA_ARGS__)

struct pawl_packed; /* the result */

/* Pack files into a data set at `directory`. Memory does not grow with the files beyond one document. */
PAWL_API enum pawl_status pawl_pack(struct pawl_str directory, const struct pawl_str *files, size_t n,
                                    const struct pawl_pack_options *options, struct pawl_packed **ret_packed,
                                    struct pawl_error *err);
PAWL_API const struct pawl_token_file *pawl_packed_files(const struct pawl_packed *packed, size_t *ret_n);
PAWL_API void pawl_packed_free(struct pawl_packed *packed);

#ifdef __cplusplus
}
#endif

#endif
