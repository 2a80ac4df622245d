#include "checkpoint/find.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "checkpoint/names.h"

/* LATEST has at most 25 bytes; what is longer than this is malformed whatever it says. */
#define LATEST_BYTES_MAX 64

/* ---- a look at the root ---- */

enum latest_state { LATEST_MISSING = 0, LATEST_MALFORMED = 1, LATEST_NAMES = 2 };

struct candidate {
    int64_t step;
    bool is_prev;
};

/* What a root held when it was looked at. */
struct view {
    enum latest_state latest;
    int64_t latest_step;         /* when it names one */
    char text[LATEST_BYTES_MAX]; /* its bytes, as many as were read */
    size_t text_bytes;
    char fault[128];              /* what is wrong with it, as the end of a sentence */
    struct candidate *candidates; /* step directories and .prev, newest first, a step before its .prev */
    size_t n;
    bool has_quarantined;
};

static void
view_release(struct view *view)
{
    free(view->candidates);
    *view = (struct view){ 0 };
}

static bool
views_equal(const struct view *a, const struct view *b)
{
    if (a->latest != b->latest || a->text_bytes != b->text_bytes || memcmp(a->text, b->text, a->text_bytes) != 0 ||
        a->n != b->n || a->has_quarantined != b->has_quarantined)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (a->candidates[i].step != b->candidates[i].step || a->candidates[i].is_prev != b->candidates[i].is_prev)
            return false;
    }
    return true;
}

static bool
view_has(const struct view *view, int64_t step, bool is_prev)
{
    for (size_t i = 0; i < view->n; i++) {
        if (view->candidates[i].step == step && view->candidates[i].is_prev == is_prev)
            return true;
    }
    return false;
}

/* LATEST is a hint: one that can't be read is as one that says nothing; only a fault of the machine ends the load. */
static enum pawl_status
read_latest(const struct pawl_dir *root, struct view *view, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_os_stat status;
    struct pawl_error own = PAWL_ERROR_INIT;

    enum pawl_status st = pawl_dir_stat(root, PAWL_LATEST, &status, &own);
    if (st == PAWL_IO)
        st = pawl_dir_stat(root, PAWL_LATEST, &status, &own);
    if (st == PAWL_NO_FILE) {
        view->latest = LATEST_MISSING;
        return PAWL_OK;
    }
    view->latest = LATEST_MALFORMED;
    if (st == PAWL_OK && status.kind != PAWL_OS_FILE) {
        (void)snprintf(view->fault, sizeof view->fault, "is no regular file");
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = pawl_file_open_in(&file, root, PAWL_LATEST, 0, &own);
    if (st == PAWL_IO)
        st = pawl_file_open_in(&file, root, PAWL_LATEST, 0, &own);
    if (st == PAWL_NO_FILE) { /* it was there a moment ago: another look will tell */
        view->latest = LATEST_MISSING;
        return PAWL_OK;
    }
    if (st == PAWL_OK) {
        view->text_bytes = file.bytes < LATEST_BYTES_MAX ? (size_t)file.bytes : LATEST_BYTES_MAX;
        st = pawl_file_read(&file, 0, view->text, view->text_bytes, &own);
        if (st != PAWL_OK)
            view->text_bytes = 0;
    }
    bool is_short = file.bytes <= LATEST_BYTES_MAX;
    pawl_file_release(&file);
    if (st != PAWL_OK) {
        if (pawl_step_is_content_fault(st)) {
            (void)snprintf(view->fault, sizeof view->fault, "can't be read: %.100s", own.message);
            return PAWL_OK;
        }
        if (err != NULL)
            *err = own;
        return st;
    }
    int64_t step = is_short ? pawl_latest_parse(view->text, view->text_bytes) : -1;
    if (step >= 0) {
        view->latest = LATEST_NAMES;
        view->latest_step = step;
    } else if (view->text_bytes == 0) {
        (void)snprintf(view->fault, sizeof view->fault, "is empty");
    } else {
        (void)snprintf(view->fault, sizeof view->fault, "says '%.60s', which is no step's name and a newline",
                       PAWL_SHOW(pawl_str_make(view->text, view->text_bytes)));
    }
    return PAWL_OK;
}

static int
compare_candidates(const void *a, const void *b)
{
    const struct candidate *first = a;
    const struct candidate *second = b;
    if (first->step != second->step)
        return first->step > second->step ? -1 : 1;
    return (int)first->is_prev - (int)second->is_prev;
}

static enum pawl_status
take_view(const struct pawl_dir *root, struct view *ret_view, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    struct view view = { 0 };

    enum pawl_status st = read_latest(root, &view, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_dir_list(root, &list, err);
    if (st == PAWL_IO)
        st = pawl_dir_list(root, &list, err);
    if (st != PAWL_OK)
        return st;
    view.candidates = calloc(list.n + 1, sizeof *view.candidates);
    if (view.candidates == NULL) {
        st = pawl_fail_memory(err, (list.n + 1) * sizeof *view.candidates);
        pawl_dir_list_release(&list);
        return st;
    }
    for (size_t i = 0; i < list.n; i++) {
        int64_t step = -1;
        switch (pawl_entry_of_name(pawl_str_z(list.entries[i].name), &step)) {
        case PAWL_ENTRY_STEP:
            view.candidates[view.n++] = (struct candidate){ step, false };
            break;
        case PAWL_ENTRY_PREV:
            view.candidates[view.n++] = (struct candidate){ step, true };
            break;
        case PAWL_ENTRY_BAD:
            view.has_quarantined = true;
            break;
        case PAWL_ENTRY_TMP:
        case PAWL_ENTRY_OTHER:
            break;
        }
    }
    pawl_dir_list_release(&list);
    if (view.n > 1)
        qsort(view.candidates, view.n, sizeof *view.candidates, compare_candidates);
    *ret_view = view;
    return PAWL_OK;
}

/* Does it name an entry that is there, or its .prev? */
static bool
latest_is_usable(const struct view *view)
{
    return view->latest == LATEST_NAMES &&
           (view_has(view, view->latest_step, false) || view_has(view, view->latest_step, true));
}

static void
report_latest(const struct pawl_dir *root, const struct view *view, struct pawl_report *report)
{
    struct pawl_str name = PAWL_STR(PAWL_LATEST);
    if (view->latest == LATEST_MISSING || latest_is_usable(view))
        return;
    pawl_report_begin_verdict(report, name, PAWL_KIND_UNKNOWN);
    if (view->latest == LATEST_MALFORMED) {
        pawl_report_problem(report, "latest", name, PAWL_NO_STR, PAWL_OFFSET_NONE, "LATEST %s", view->fault);
    } else {
        char step[PAWL_STEP_NAME_BYTES];
        pawl_step_name(view->latest_step, step);
        pawl_report_problem(report, "latest", name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "LATEST names %s, which is not in '%s'", step, PAWL_SHOW(pawl_str_z(root->path)));
    }
    pawl_report_end_verdict(report);
}

/* ---- one candidate ---- */

/* The verdict of a step that is taken is no skipped one: it goes, and its warnings stay as those of the load. */
static enum pawl_status
drop_verdict(struct pawl_step *step, struct pawl_report *report, struct pawl_error *err)
{
    size_t n = 0;
    const struct pawl_verdict *verdict = &pawl_report_verdicts(report, &n)[0];
    verdict += n - 1;
    size_t n_warnings = verdict->n_warnings;
    struct pawl_problem *warnings = pawl_arena_take_array(&step->arena, n_warnings + 1, sizeof *warnings);
    if (warnings == NULL)
        return pawl_fail_memory(err, (n_warnings + 1) * sizeof *warnings);
    if (n_warnings != 0)
        memcpy(warnings, verdict->warnings, n_warnings * sizeof *warnings); /* the texts stay in the report's arena */
    pawl_report_drop_verdict(report);
    for (size_t i = 0; i < n_warnings; i++)
        pawl_report_warning(report, warnings[i].code, warnings[i].file, "%s: %s", PAWL_SHOW(step->name),
                            warnings[i].message);
    return PAWL_OK;
}

/* After an examination that answered PAWL_OK: is the step taken (PAWL_OK), or passed over (PAWL_INCOMPLETE)? */
static enum pawl_status
judge(struct pawl_step *step, const struct pawl_find_request *request, struct pawl_report *report,
      struct pawl_error *err)
{
    enum pawl_status st = PAWL_INCOMPLETE;
    if (request->options.weights_only ? step->has_weights : step->is_complete)
        st = request->use == NULL ? PAWL_OK : request->use(request->context, step, report, err);
    if (pawl_report_problem_count(report) == 0) {
        enum pawl_status dropped = drop_verdict(step, report, err);
        return st == PAWL_OK ? dropped : st;
    }
    pawl_report_end_verdict(report);
    return st;
}

/*
 * Examine one and judge it. *ret_is_raced: the name stood for another directory, or none, before or after: what was seen in it is not to be
 * believed.
 */
static enum pawl_status
try_entry(const struct pawl_dir *root, const char *name, const struct pawl_find_request *request,
          struct pawl_step *ret_step, bool *ret_is_raced, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_step step = { 0 };
    struct pawl_os_stat status;
    struct pawl_error own = PAWL_ERROR_INIT;

    enum pawl_status st = pawl_step_examine(&step, root, name, &request->options, report, err);
    if (st == PAWL_OK)
        st = judge(&step, request, report, err);
    else if (st == PAWL_NO_FILE)
        *ret_is_raced = true;
    else
        pawl_report_end_verdict(report);
    if (st == PAWL_OK) {
        *ret_step = step;
        return PAWL_OK;
    }
    if (st == PAWL_INCOMPLETE) {
        enum pawl_status again = pawl_dir_stat(root, name, &status, &own);
        if (again == PAWL_NO_FILE || (again == PAWL_OK && (status.inode != step.inode || status.device != step.device)))
            *ret_is_raced = true;
    }
    pawl_step_release(&step);
    return st;
}

/* ---- messages ---- */

/* "step-000020: hash model.safetensors; step-000010: missing-file a" of all verdicts of steps. */
static void
print_reasons(const struct pawl_report *report, bool with_messages, struct pawl_buffer *out)
{
    size_t n = 0;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    for (size_t i = 0; i < n; i++) {
        if (verdicts[i].kind != PAWL_KIND_CHECKPOINT)
            continue;
        (void)pawl_buffer_printf(out, "%s%s: ", out->len == 0 ? "" : "; ", verdicts[i].name);
        for (size_t k = 0; k < verdicts[i].n_problems; k++) {
            const struct pawl_problem *problem = &verdicts[i].problems[k];
            (void)pawl_buffer_printf(out, "%s%s%s%s", k == 0 ? "" : ", ", problem->code,
                                     problem->file.data == NULL ? "" : " ",
                                     problem->file.data == NULL ? "" : PAWL_SHOW(problem->file));
            if (with_messages)
                (void)pawl_buffer_printf(out, " (%s)", problem->message);
        }
    }
    (void)pawl_buffer_terminate(out);
}

static enum pawl_status
fail_none(const struct pawl_dir *root, const struct view *view, const struct pawl_report *report,
          struct pawl_error *err)
{
    struct pawl_buffer reasons = PAWL_BUFFER_INIT;
    struct pawl_str path = pawl_str_z(root->path);
    enum pawl_status st;
    size_t n_ignored = 0;
    const struct pawl_str *ignored = pawl_report_names(report, PAWL_NAMES_IGNORED, &n_ignored);

    if (view->n == 0 && !view->has_quarantined) {
        st = pawl_fail(err, PAWL_NOT_FOUND, "not-found", "there is no step directory in '%s'", PAWL_SHOW(path));
    } else {
        print_reasons(report, false, &reasons);
        if (!pawl_buffer_ok(&reasons))
            st = pawl_fail_memory(err, reasons.len);
        else
            st = pawl_fail(err, PAWL_NONE_COMPLETE, "none-complete", "no step directory in '%s' is complete: %s",
                           PAWL_SHOW(path),
                           reasons.len != 0 ? reasons.data
                           : n_ignored != 0 ? "there are only such that are newer than LATEST"
                                            : "there are only quarantined ones");
        if (n_ignored != 0)
            pawl_error_hint(err, "newer than LATEST and never declared done: to load one, --resume '%s/%s'",
                            PAWL_SHOW(path), PAWL_SHOW(ignored[n_ignored - 1]));
    }
    pawl_error_path(err, path);
    pawl_buffer_release(&reasons);
    return st;
}

static enum pawl_status
fail_incomplete(const struct pawl_dir *root, const char *name, const struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_buffer reasons = PAWL_BUFFER_INIT;
    struct pawl_buffer path = PAWL_BUFFER_INIT;
    size_t n = 0;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    const char *code = n == 0 || verdicts[0].n_problems == 0 ? "content" : verdicts[0].problems[0].code;

    print_reasons(report, true, &reasons);
    (void)pawl_buffer_printf(&path, "%s%s%s", root == NULL ? "" : root->path, root == NULL ? "" : "/", name);
    enum pawl_status st = pawl_buffer_ok(&reasons) && pawl_buffer_ok(&path)
                              ? pawl_fail(err, PAWL_INCOMPLETE, code, "the step is not complete: %s", reasons.data)
                              : pawl_fail_memory(err, reasons.len);
    pawl_error_path(err, pawl_buffer_str(&path));
    pawl_buffer_release(&reasons);
    pawl_buffer_release(&path);
    return st;
}

/* What a person is to know of a load that went well over others. */
static void
warn(const struct pawl_dir *root, struct pawl_report *report)
{
    struct pawl_str path = pawl_str_z(root->path);
    size_t n = 0;
    const struct pawl_str *ignored = pawl_report_names(report, PAWL_NAMES_IGNORED, &n);
    for (size_t i = 0; i < n; i++) {
        struct pawl_str name = ignored[i]; /* the list may move while the report grows */
        pawl_report_warning(report, "ignored", name,
                            "newer than LATEST, never declared done and so ignored: to load it, --resume '%s/%s'",
                            PAWL_SHOW(path), PAWL_SHOW(name));
    }
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    for (size_t i = 0; i < n; i++) {
        if (verdicts[i].kind == PAWL_KIND_CHECKPOINT && verdicts[i].n_problems != 0)
            pawl_report_warning(report, "skipped", pawl_str_z(verdicts[i].name),
                                "not complete, and examined again at every start until it is quarantined: "
                                "pawl ckpt repair '%s'",
                                PAWL_SHOW(path));
    }
}

/* ---- the newest ---- */

/* Steps newer than LATEST, ascending; a .prev only where its step is not there. */
static void
report_ignored(const struct view *view, int64_t limit, struct pawl_report *report)
{
    for (size_t i = view->n; i-- > 0;) {
        const struct candidate *candidate = &view->candidates[i];
        char name[PAWL_STEP_NAME_BYTES];
        if (candidate->step <= limit || (candidate->is_prev && view_has(view, candidate->step, false)))
            continue;
        pawl_entry_name(candidate->step, candidate->is_prev ? ".prev" : "", name);
        pawl_report_name(report, PAWL_NAMES_IGNORED, pawl_str_z(name));
    }
}

/* One attempt. *ret_is_settled false: something moved meanwhile, and the answer may be wrong. */
static enum pawl_status
attempt(const struct pawl_dir *root, const struct pawl_find_request *request, struct pawl_step *ret_step,
        bool *ret_is_settled, struct pawl_report *report, struct pawl_error *err)
{
    struct view view = { 0 };
    struct view after = { 0 };
    bool is_raced = false;
    size_t n_passed = 0;
    size_t n_ignored = 0;

    *ret_is_settled = true;
    enum pawl_status st = take_view(root, &view, err);
    if (st != PAWL_OK)
        return st;
    bool is_usable = latest_is_usable(&view);
    int64_t limit = is_usable ? view.latest_step : INT64_MAX;
    report_latest(root, &view, report);
    report_ignored(&view, limit, report);
    (void)pawl_report_names(report, PAWL_NAMES_IGNORED, &n_ignored);
    st = PAWL_INCOMPLETE;
    for (size_t i = 0; i < view.n && st == PAWL_INCOMPLETE && !is_raced; i++) {
        char name[PAWL_STEP_NAME_BYTES];
        if (view.candidates[i].step > limit)
            continue;
        pawl_entry_name(view.candidates[i].step, view.candidates[i].is_prev ? ".prev" : "", name);
        st = try_entry(root, name, request, ret_step, &is_raced, report, err);
        n_passed += st != PAWL_OK;
    }
    if (is_raced) {
        *ret_is_settled = false;
        st = pawl_fail(err, PAWL_BUSY, "busy", "'%s' kept changing while it was read",
                       PAWL_SHOW(pawl_str_z(root->path)));
        goto out;
    }
    if (st != PAWL_OK && st != PAWL_INCOMPLETE)
        goto out; /* a mismatch, or the machine */
    if (st == PAWL_INCOMPLETE)
        st = fail_none(root, &view, report, err);
    if (st == PAWL_OK && n_passed == 0 && n_ignored == 0 && (is_usable || view.latest == LATEST_MISSING))
        goto out;
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status again = take_view(root, &after, &own);
    if (again != PAWL_OK) {
        if (st == PAWL_OK)
            pawl_step_release(ret_step);
        st = again;
        if (err != NULL)
            *err = own;
        goto out;
    }
    *ret_is_settled = views_equal(&view, &after);
out:
    view_release(&view);
    view_release(&after);
    return st;
}

enum pawl_status
pawl_find_newest(const struct pawl_dir *root, const struct pawl_find_request *request, struct pawl_step *ret_step,
                 struct pawl_report *report, struct pawl_error *err)
{
    enum pawl_status st = PAWL_BUSY;
    for (unsigned i = 0; i < PAWL_FIND_ATTEMPTS_MAX; i++) {
        bool is_settled = true;
        bool is_last = i + 1 == PAWL_FIND_ATTEMPTS_MAX;
        struct pawl_report *found = pawl_report_new();
        if (found == NULL)
            return pawl_fail_memory(err, 1);
        st = attempt(root, request, ret_step, &is_settled, found, err);
        /* A step that was taken is complete: the newest of that moment, even when there is a newer one by now. But where others were
         * passed over it may not be the newest, and then it is better to look again. */
        if (is_settled || is_last) {
            if (st == PAWL_OK)
                warn(root, found);
            if (!pawl_report_ok(found) && st == PAWL_OK) {
                pawl_step_release(ret_step);
                st = pawl_fail_memory(err, sizeof(struct pawl_problem));
            }
            pawl_report_join(report, found);
            return st;
        }
        if (st == PAWL_OK)
            pawl_step_release(ret_step);
        pawl_report_free(found);
    }
    return st;
}

/* ---- a given one ---- */

enum pawl_status
pawl_find_step(const struct pawl_dir *root, int64_t number, const struct pawl_find_request *request,
               struct pawl_step *ret_step, struct pawl_report *report, struct pawl_error *err)
{
    char names[2][PAWL_STEP_NAME_BYTES];
    enum pawl_status st = PAWL_NO_FILE;
    pawl_entry_name(number, "", names[0]);
    pawl_entry_name(number, ".prev", names[1]);
    for (unsigned i = 0; i < PAWL_FIND_ATTEMPTS_MAX; i++) {
        bool is_last = i + 1 == PAWL_FIND_ATTEMPTS_MAX;
        bool is_raced = false;
        bool was_there = false;
        struct pawl_report *found = pawl_report_new();
        if (found == NULL)
            return pawl_fail_memory(err, 1);
        st = PAWL_INCOMPLETE;
        for (size_t k = 0; k < 2 && (st == PAWL_INCOMPLETE || st == PAWL_NO_FILE); k++) {
            bool is_gone = false;
            st = try_entry(root, names[k], request, ret_step, &is_gone, found, err);
            was_there = was_there || st != PAWL_NO_FILE;
            is_raced = is_raced || (is_gone && st != PAWL_NO_FILE);
        }
        /* Between the two looks the one may have become the other: absent is only what is absent twice. */
        if (!was_there && i == 0)
            is_raced = true;
        if (st != PAWL_INCOMPLETE && st != PAWL_NO_FILE)
            is_raced = false;
        if (is_raced && !is_last) {
            pawl_report_free(found);
            continue;
        }
        if (st == PAWL_INCOMPLETE || (st == PAWL_NO_FILE && was_there)) {
            st = fail_incomplete(root, names[0], found, err);
        } else if (st == PAWL_NO_FILE) {
            st = pawl_fail(err, PAWL_NO_FILE, "not-found", "there is no %s in '%s'", names[0],
                           PAWL_SHOW(pawl_str_z(root->path)));
            pawl_error_path(err, pawl_str_z(root->path));
        }
        pawl_report_join(report, found);
        return st;
    }
    return st;
}

enum pawl_status
pawl_find_entry(const struct pawl_dir *root, const char *name, const struct pawl_find_request *request,
                struct pawl_step *ret_step, struct pawl_report *report, struct pawl_error *err)
{
    bool is_raced = false;
    enum pawl_status st = try_entry(root, name, request, ret_step, &is_raced, report, err);
    return st == PAWL_INCOMPLETE ? fail_incomplete(root, name, report, err) : st;
}

enum pawl_status
pawl_find_open(struct pawl_dir *dir, const char *name, const struct pawl_find_request *request,
               struct pawl_step *ret_step, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_step step = { 0 };
    enum pawl_status st = pawl_step_examine_open(&step, dir, name, &request->options, report, err);
    if (st == PAWL_OK)
        st = judge(&step, request, report, err);
    else
        pawl_report_end_verdict(report);
    if (st == PAWL_INCOMPLETE)
        st = fail_incomplete(NULL, name, report, err);
    if (st == PAWL_OK)
        *ret_step = step;
    else
        pawl_step_release(&step);
    return st;
}

/* ---- all ---- */

enum pawl_status
pawl_find_all(const struct pawl_dir *root, const struct pawl_step_options *options, struct pawl_report *report,
              char ret_latest[32], struct pawl_error *err)
{
    struct view view = { 0 };
    enum pawl_status st = take_view(root, &view, err);
    if (st != PAWL_OK)
        return st;
    if (ret_latest != NULL)
        pawl_step_name(view.latest == LATEST_NAMES ? view.latest_step : -1, ret_latest);
    /* Ascending: from the end of the list, which is newest first, step by step; the step itself before its .prev. */
    for (size_t end = view.n; end > 0 && st == PAWL_OK;) {
        int64_t step = view.candidates[end - 1].step;
        size_t begin = end - 1;
        while (begin > 0 && view.candidates[begin - 1].step == step)
            begin--;
        for (size_t i = begin; i < end && st == PAWL_OK; i++) {
            struct pawl_step examined = { 0 };
            char name[PAWL_STEP_NAME_BYTES];
            pawl_entry_name(step, view.candidates[i].is_prev ? ".prev" : "", name);
            st = pawl_step_examine(&examined, root, name, options, report, err);
            if (st == PAWL_NO_FILE)
                st = PAWL_OK; /* pruned since the listing */
            else
                pawl_report_end_verdict(report);
            pawl_step_release(&examined);
        }
        end = begin;
    }
    view_release(&view);
    return st;
}
