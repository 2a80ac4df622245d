/*
 * pawl/report.h: what was found wrong, passed over or worth saying, as data.
 *
 * Calls that examine take a `struct pawl_report **ret_report` that may be NULL.
 * When it is not, it is set on success and on failure alike (NULL only when
 * memory ran out) and belongs to the caller until pawl_report_free(). What the
 * accessors give lives as long as the report. Reading a report from several
 * threads is fine.
 */
#ifndef PAWL_REPORT_H
#define PAWL_REPORT_H

#include "pawl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a path is, decided by bytes and entries, never by its name. */
enum pawl_kind {
    PAWL_KIND_UNKNOWN = 0,
    PAWL_KIND_SAFETENSORS = 1,
    PAWL_KIND_SAFETENSORS_INDEX = 2, /* an index file, or a directory of a sharded or single model */
    PAWL_KIND_CHECKPOINT = 3,        /* a step directory */
    PAWL_KIND_RUN = 4,               /* a checkpoint root */
    PAWL_KIND_RELEASE = 5,
    PAWL_KIND_SPLIT = 6,
    PAWL_KIND_PYTORCH = 7,
    PAWL_KIND_LLMCP35 = 8,
    PAWL_KIND_TOKEN_SHARD = 9,
    PAWL_KIND_TOKEN_DIR = 10
};

/* "safetensors", "token-shard" ...; "unknown". Static storage. */
PAWL_API const char *pawl_kind_name(enum pawl_kind kind);

/* One fault or warning. */
struct pawl_problem {
    const char *code;       /* "hash", "missing-file" ...: lowercase words with hyphens */
    const char *message;    /* one sentence, printable */
    struct pawl_str file;   /* relative to what was examined, as it is on disk; data NULL: none */
    struct pawl_str tensor; /* data NULL: none */
    uint64_t offset;        /* PAWL_OFFSET_NONE: none */
};

/* What was found about one thing: a step directory, a file, LATEST. */
struct pawl_verdict {
    const char *name; /* "step-000020", "LATEST", or the path as given */
    enum pawl_kind kind;
    bool is_ok;                          /* no problems */
    const struct pawl_problem *problems; /* by file name in byte order */
    size_t n_problems;
    const struct pawl_problem *warnings;
    size_t n_warnings;
    uint64_t files, bytes; /* examined */
};

/* The lists of names of a restore. */
enum pawl_names {
    PAWL_NAMES_MISSING = 1,    /* asked for, not in the checkpoint */
    PAWL_NAMES_UNEXPECTED = 2, /* in the checkpoint, not asked for */
    PAWL_NAMES_MISMATCHED = 3, /* in both, with another dtype or shape: "name: F32 [2, 3] on disk, F32 [3, 2] asked" */
    PAWL_NAMES_IGNORED = 4,    /* step directories newer than LATEST, ascending */
    PAWL_NAMES_DELETED = 5,    /* step directories that retention deleted, or would delete */
    PAWL_NAMES_QUARANTINED = 6 /* broken step directories that a repair renamed to step-N.bad, or would rename */
};

struct pawl_report;

/* In the order of the call's page: steps of a verification ascending, skipped ones of a load newest first. */
PAWL_API const struct pawl_verdict *pawl_report_verdicts(const struct pawl_report *report, size_t *ret_n);
PAWL_API const struct pawl_str *pawl_report_names(const struct pawl_report *report, enum pawl_names which,
                                                  size_t *ret_n);
/* Warnings that belong to no verdict: a fall-back that was taken, a directory that could not be deleted. */
PAWL_API const struct pawl_problem *pawl_report_warnings(const struct pawl_report *report, size_t *ret_n);
PAWL_API void pawl_report_free(struct pawl_report *report); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
