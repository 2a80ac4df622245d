#include "base/report.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"

/* A list that grows by doubling. `items` of `each` bytes. */
struct list {
    void *items;
    size_t n, capacity;
};

#define NAME_LISTS 7 /* enum pawl_names, from 1 */

struct verdict_lists {
    struct list problems; /* struct pawl_problem */
    struct list warnings; /* struct pawl_problem */
};

struct pawl_report {
    struct pawl_arena arena;
    struct pawl_report *joined; /* reports whose strings we use: freed with this one */
    struct list verdicts;       /* struct pawl_verdict */
    struct list lists;          /* struct verdict_lists, one per verdict */
    struct list names[NAME_LISTS];
    struct list warnings;
    bool is_open;
    bool is_failed;
};

/* Room for one more, zeroed; NULL: memory. */
static void *
list_add(struct list *list, size_t each)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity == 0 ? 4 : list->capacity;
        size_t bytes;
        if (!pawl_mul_size(capacity, 2, &capacity) || !pawl_mul_size(capacity, each, &bytes))
            return NULL;
        assert(bytes != 0);
        void *items = realloc(list->items, bytes);
        if (items == NULL)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    void *item = (char *)list->items + list->n * each;
    memset(item, 0, each);
    list->n++;
    return item;
}

struct pawl_report *
pawl_report_new(void)
{
    return calloc(1, sizeof(struct pawl_report));
}

bool
pawl_report_ok(const struct pawl_report *report)
{
    return report == NULL || !report->is_failed;
}

void
pawl_report_free(struct pawl_report *report)
{
    while (report != NULL) {
        struct pawl_report *next = report->joined;
        struct verdict_lists *lists = report->lists.items;
        for (size_t i = 0; i < report->lists.n; i++) {
            free(lists[i].problems.items);
            free(lists[i].warnings.items);
        }
        free(report->verdicts.items);
        free(report->lists.items);
        for (size_t i = 0; i < NAME_LISTS; i++)
            free(report->names[i].items);
        free(report->warnings.items);
        pawl_arena_release(&report->arena);
        free(report);
        report = next;
    }
}

static struct pawl_str
copy_str(struct pawl_report *report, struct pawl_str str)
{
    struct pawl_str copy = PAWL_NO_STR;
    if (str.data != NULL && !pawl_arena_copy_str(&report->arena, str, &copy))
        report->is_failed = true;
    return copy;
}

static struct pawl_verdict *
last_verdict(const struct pawl_report *report)
{
    return report->verdicts.n == 0 ? NULL : (struct pawl_verdict *)report->verdicts.items + (report->verdicts.n - 1);
}

static struct verdict_lists *
last_lists(const struct pawl_report *report)
{
    return (struct verdict_lists *)report->lists.items + (report->lists.n - 1);
}

/* The lists move when they grow: the verdict shows where they are now. */
static void
show_lists(struct pawl_report *report)
{
    struct pawl_verdict *verdict = last_verdict(report);
    const struct verdict_lists *lists = last_lists(report);
    verdict->problems = lists->problems.items;
    verdict->n_problems = lists->problems.n;
    verdict->warnings = lists->warnings.items;
    verdict->n_warnings = lists->warnings.n;
    verdict->is_ok = lists->problems.n == 0;
}

void
pawl_report_begin_verdict(struct pawl_report *report, struct pawl_str name, enum pawl_kind kind)
{
    if (report == NULL || report->is_failed)
        return;
    struct verdict_lists *lists = list_add(&report->lists, sizeof *lists);
    if (lists == NULL) {
        report->is_failed = true;
        return;
    }
    struct pawl_verdict *verdict = list_add(&report->verdicts, sizeof *verdict);
    if (verdict == NULL) {
        report->lists.n--;
        report->is_failed = true;
        return;
    }
    struct pawl_str copy = copy_str(report, name);
    verdict->name = copy.data == NULL ? "" : copy.data;
    verdict->kind = kind;
    verdict->is_ok = true;
    report->is_open = true;
}

void
pawl_report_rename_verdict(struct pawl_report *report, struct pawl_str name)
{
    if (report == NULL || report->verdicts.n == 0)
        return;
    struct pawl_str copy = copy_str(report, name);
    last_verdict(report)->name = copy.data == NULL ? "" : copy.data;
}

void
pawl_report_count(struct pawl_report *report, uint64_t files, uint64_t bytes)
{
    if (report == NULL || report->is_failed || report->verdicts.n == 0)
        return;
    last_verdict(report)->files += files;
    last_verdict(report)->bytes += bytes;
}

/* By file, those of one file in their order. Merges, as a directory can have a fault for each of a million names. False: memory. */
static bool
sort_problems(struct list *list)
{
    struct pawl_problem *from = list->items;
    size_t n = list->n;
    size_t in_order = 1;
    while (in_order < n && pawl_str_compare(from[in_order - 1].file, from[in_order].file) <= 0)
        in_order++;
    if (in_order >= n)
        return true;
    struct pawl_problem *spare = calloc(list->capacity, sizeof *spare);
    if (spare == NULL)
        return false;
    struct pawl_problem *to = spare;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            size_t a = begin;
            size_t a_end = n - begin < width ? n : begin + width;
            size_t b = a_end;
            size_t b_end = n - a_end < width ? n : a_end + width;
            for (size_t out = begin; out < b_end; out++) {
                bool takes_a = a < a_end && (b == b_end || pawl_str_compare(from[a].file, from[b].file) <= 0);
                to[out] = takes_a ? from[a++] : from[b++];
            }
        }
        struct pawl_problem *swap = from;
        from = to;
        to = swap;
    }
    free(to);
    list->items = from;
    return true;
}

void
pawl_report_end_verdict(struct pawl_report *report)
{
    if (report == NULL || !report->is_open)
        return;
    report->is_open = false;
    if (!sort_problems(&last_lists(report)->problems))
        report->is_failed = true;
    show_lists(report);
}

static void
add_problem(struct pawl_report *report, struct list *list, const char *code, struct pawl_str file,
            struct pawl_str tensor, uint64_t offset, const char *message)
{
    struct pawl_problem *problem = list_add(list, sizeof *problem);
    if (problem == NULL) {
        report->is_failed = true;
        return;
    }
    struct pawl_str text = copy_str(report, pawl_str_z(message));
    struct pawl_str word = copy_str(report, pawl_str_z(code));
    problem->message = text.data == NULL ? "" : text.data;
    problem->code = word.data == NULL ? "" : word.data;
    problem->file = copy_str(report, file);
    problem->tensor = copy_str(report, tensor);
    problem->offset = offset;
}

void
pawl_report_problem(struct pawl_report *report, const char *code, struct pawl_str file, struct pawl_str tensor,
                    uint64_t offset, const char *format, ...)
{
    if (report == NULL || report->is_failed || report->verdicts.n == 0)
        return;
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    add_problem(report, &last_lists(report)->problems, code, file, tensor, offset, message);
    show_lists(report);
}

void
pawl_report_problem_error(struct pawl_report *report, const char *code, struct pawl_str file,
                          const struct pawl_error *err)
{
    if (err == NULL)
        return;
    struct pawl_str tensor = err->tensor[0] == '\0' ? PAWL_NO_STR : pawl_str_z(err->tensor);
    pawl_report_problem(report, code == NULL ? err->code : code, file, tensor, err->offset, "%s", err->message);
}

void
pawl_report_warning(struct pawl_report *report, const char *code, struct pawl_str file, const char *format, ...)
{
    if (report == NULL || report->is_failed)
        return;
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    struct list *list = report->is_open ? &last_lists(report)->warnings : &report->warnings;
    add_problem(report, list, code, file, PAWL_NO_STR, PAWL_OFFSET_NONE, message);
    if (report->is_open)
        show_lists(report);
}

void
pawl_report_name(struct pawl_report *report, enum pawl_names which, struct pawl_str name)
{
    if (report == NULL || report->is_failed)
        return;
    struct pawl_str *room = list_add(&report->names[which], sizeof *room);
    if (room == NULL) {
        report->is_failed = true;
        return;
    }
    *room = copy_str(report, name);
}

size_t
pawl_report_problem_count(const struct pawl_report *report)
{
    return report == NULL || report->lists.n == 0 ? 0 : last_lists(report)->problems.n;
}

static bool
list_join(struct list *list, struct list *from, size_t each)
{
    for (size_t i = 0; i < from->n; i++) {
        void *room = list_add(list, each);
        if (room == NULL)
            return false;
        memcpy(room, (const char *)from->items + i * each, each);
    }
    free(from->items);
    *from = (struct list){ NULL, 0, 0 };
    return true;
}

void
pawl_report_join(struct pawl_report *report, struct pawl_report *from)
{
    if (from == NULL)
        return;
    if (report == NULL) {
        pawl_report_free(from);
        return;
    }
    bool ok = !from->is_failed;
    /* Room is made for both before either moves: a verdict and its lists go together. */
    size_t verdicts = report->verdicts.n;
    ok = ok && list_join(&report->verdicts, &from->verdicts, sizeof(struct pawl_verdict));
    if (ok) {
        struct list moved = from->lists;
        from->lists = (struct list){ NULL, 0, 0 };
        ok = list_join(&report->lists, &moved, sizeof(struct verdict_lists));
        if (!ok) {
            report->verdicts.n = verdicts;
            report->lists.n = verdicts;
            from->lists = moved;
        }
    } else {
        report->verdicts.n = verdicts;
    }
    for (size_t i = 0; ok && i < NAME_LISTS; i++)
        ok = list_join(&report->names[i], &from->names[i], sizeof(struct pawl_str));
    ok = ok && list_join(&report->warnings, &from->warnings, sizeof(struct pawl_problem));
    if (!ok)
        report->is_failed = true;
    /* The strings stay where they are. */
    struct pawl_report *last = from;
    while (last->joined != NULL)
        last = last->joined;
    last->joined = report->joined;
    report->joined = from;
}

void
pawl_report_drop_verdict(struct pawl_report *report)
{
    if (report == NULL || report->verdicts.n == 0)
        return;
    struct verdict_lists *lists = last_lists(report);
    free(lists->problems.items);
    free(lists->warnings.items);
    report->lists.n--;
    report->verdicts.n--;
    report->is_open = false;
}

const struct pawl_verdict *
pawl_report_verdicts(const struct pawl_report *report, size_t *ret_n)
{
    *ret_n = report == NULL ? 0 : report->verdicts.n;
    return report == NULL ? NULL : report->verdicts.items;
}

const struct pawl_str *
pawl_report_names(const struct pawl_report *report, enum pawl_names which, size_t *ret_n)
{
    if (report == NULL || (unsigned)which >= NAME_LISTS) {
        *ret_n = 0;
        return NULL;
    }
    *ret_n = report->names[which].n;
    return report->names[which].items;
}

const struct pawl_problem *
pawl_report_warnings(const struct pawl_report *report, size_t *ret_n)
{
    *ret_n = report == NULL ? 0 : report->warnings.n;
    return report == NULL ? NULL : report->warnings.items;
}

const char *
pawl_kind_name(enum pawl_kind kind)
{
    static const char *const NAMES[] = { "unknown",  "safetensors", "safetensors-index", "checkpoint", "run",
                                         "release",  "split",       "pytorch",           "llmcp35",    "token-shard",
                                         "token-dir" };
    size_t at = (size_t)kind;
    return at < sizeof NAMES / sizeof NAMES[0] ? NAMES[at] : "unknown";
}
