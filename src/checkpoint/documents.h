/*
 * checkpoint/documents.h: the JSON files of a step directory, read strictly by their schemas and printed canonically. Reader and
 * writer of one document share a file: ckpt_manifest.c, trainer_state.c, extra_state.c. Everything read lives in the arena.
 * Parsers answer PAWL_CORRUPT, code "content" ("json", "utf8", "duplicate-key" for the text itself), with a message that says what was expected where; they take bytes, never a path.
 */
#ifndef PAWL_CHECKPOINT_DOCUMENTS_H
#define PAWL_CHECKPOINT_DOCUMENTS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "pawl/ckpt.h"

/* Metadata documents are small; what is larger than this is not one. A manifest of a million files has some 120 MB. */
#define PAWL_DOCUMENT_BYTES_MAX ((size_t)256 << 20)

/* ---- MANIFEST.json ---- */

/* One file that was written whole: what a part of a save hands to the committer. */
struct pawl_receipt {
    struct pawl_str name;
    uint64_t bytes;
    unsigned char sha256[32];
};

struct pawl_manifest {
    struct pawl_str kind;                          /* "checkpoint" or "release" */
    struct pawl_str model_id, version, created_at; /* data NULL: none */
    struct pawl_receipt *files;                    /* after parsing and printing: sorted by name */
    size_t n;
};

enum pawl_status pawl_manifest_parse(struct pawl_arena *arena, struct pawl_manifest *ret_manifest, const void *text,
                                     size_t bytes, struct pawl_error *err);
/* Sorts `files` by name. */
bool pawl_manifest_print(struct pawl_manifest *manifest, struct pawl_buffer *out);
/* NULL when it is not listed. The files must be sorted. */
const struct pawl_receipt *pawl_manifest_find(const struct pawl_manifest *manifest, struct pawl_str name);

/* ---- trainer_state.json ---- */

struct pawl_trainer_document {
    struct pawl_trainer_state state;
    struct pawl_pair *rng; /* all keys of rng, in the file's order; values 16 hex digits */
    size_t n_rng;
};

enum pawl_status pawl_trainer_state_parse(struct pawl_arena *arena, struct pawl_trainer_document *ret_document,
                                          const void *text, size_t bytes, struct pawl_error *err);
/* What is in `rng` is printed (state.rng is not): sorted as the page says, pcg_state, pcg_inc, then the others in byte order. */
bool pawl_trainer_state_print(struct pawl_trainer_document *document, struct pawl_buffer *out);

/* ---- pawl.state.json ---- */

struct pawl_extra_document {
    struct pawl_named_number *numbers; /* ascending by name */
    size_t n_numbers;
    struct pawl_named_opaque *opaques; /* ascending by name */
    size_t n_opaques;
};

enum pawl_status pawl_extra_state_parse(struct pawl_arena *arena, struct pawl_extra_document *ret_document,
                                        const void *text, size_t bytes, struct pawl_error *err);
/* Sorts both lists. */
bool pawl_extra_state_print(struct pawl_extra_document *document, struct pawl_buffer *out);

/* ---- pawl.metrics.json ---- */

struct pawl_metrics_document {
    struct pawl_metric *metrics; /* ascending by name */
    size_t n;
};

enum pawl_status pawl_metrics_parse(struct pawl_arena *arena, struct pawl_metrics_document *ret_document,
                                    const void *text, size_t bytes, struct pawl_error *err);
/* Sorts the list. */
bool pawl_metrics_print(struct pawl_metrics_document *document, struct pawl_buffer *out);
/* The document of a save's metrics, in the caller's order: PAWL_ARGUMENT for an empty name, one that is no UTF-8 or there twice, and a value
 * that is not finite. */
enum pawl_status pawl_metrics_make(const struct pawl_metric *metrics, size_t n, struct pawl_buffer *out,
                                   struct pawl_error *err);

/* ---- LATEST ---- */

/* "step-000500\n" exactly: its step, else -1. */
int64_t pawl_latest_parse(const void *text, size_t bytes);

#endif
