/* base/report.h: building a struct pawl_report. Every adder copies what it is given; memory failures are remembered
 * and asked for once, with pawl_report_ok(). All accept report = NULL and then do nothing. */
#ifndef PAWL_BASE_REPORT_H
#define PAWL_BASE_REPORT_H

#include "base/arena.h"
#include "base/fail.h"
#include "pawl/report.h"

struct pawl_report *pawl_report_new(void); /* NULL: memory */
bool pawl_report_ok(const struct pawl_report *report);

/* Open a verdict; problems and warnings that follow belong to it until pawl_report_end_verdict. Verdicts do not nest. */
void pawl_report_begin_verdict(struct pawl_report *report, struct pawl_str name, enum pawl_kind kind);
/* Give the last verdict another name: a step that was asked for by its path has the path as given. */
void pawl_report_rename_verdict(struct pawl_report *report, struct pawl_str name);
void pawl_report_count(struct pawl_report *report, uint64_t files, uint64_t bytes);
/* Sorts the verdict's problems by file name (none first), keeping the order of those of one file. */
void pawl_report_end_verdict(struct pawl_report *report);

/* file.data or tensor.data NULL: none. */
void pawl_report_problem(struct pawl_report *report, const char *code, struct pawl_str file, struct pawl_str tensor,
                         uint64_t offset, const char *format, ...) PAWL_PRINTF(6, 7);
/* A problem from an error that a reader of one file gave. `code` NULL: the error's own. */
void pawl_report_problem_error(struct pawl_report *report, const char *code, struct pawl_str file,
                               const struct pawl_error *err);
/* To the open verdict, or to the report when none is open. */
void pawl_report_warning(struct pawl_report *report, const char *code, struct pawl_str file, const char *format, ...)
    PAWL_PRINTF(4, 5);
void pawl_report_name(struct pawl_report *report, enum pawl_names which, struct pawl_str name);

/* Problems in the open (or, when none is open, the last) verdict. */
size_t pawl_report_problem_count(const struct pawl_report *report);
/* Move all verdicts, names and warnings of `from` behind those of `report`, and free `from`. */
void pawl_report_join(struct pawl_report *report, struct pawl_report *from);
/* Take back the last verdict: it was examined and is fine, and only faults are to be reported. */
void pawl_report_drop_verdict(struct pawl_report *report);

#define PAWL_NO_STR ((struct pawl_str){ NULL, 0 })

#endif
