/*
 * checkpoint/repair.c: quarantining broken steps.
 *
 * The order makes a load give the same at every instant: LATEST leaves a broken step before the step's name does, for with a LATEST that names
 * nothing a load would take the newest complete step, also one that was never declared done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/options.h"
#include "base/str.h"
#include "checkpoint/care.h"
#include "checkpoint/examine.h"
#include "checkpoint/names.h"
#include "checkpoint/root.h"
#include "checkpoint/run.h"

struct found {
    const char *name; /* of the listing */
    int64_t step;
    bool is_prev;
    bool is_complete;
    bool is_taken; /* there is a step-N.bad already */
};

struct repair {
    const struct pawl_dir *root;
    bool is_dry;
    struct pawl_report *report;
    struct pawl_warner warner;
    struct pawl_dir_list list;
    struct found *found; /* step directories and .prev, in the order of the listing */
    size_t n;
};

static bool
list_has(const struct pawl_dir_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->entries[i].name, name) == 0)
            return true;
    return false;
}

/* Settle, and say what that has quarantined: a broken step-N whose .prev was complete. */
static enum pawl_status
settle(struct repair *repair, struct pawl_error *err)
{
    struct pawl_dir_list before = { NULL, 0 };
    enum pawl_status st = PAWL_OK;
    if (!repair->is_dry) {
        st = pawl_dir_list(repair->root, &before, err);
        if (st == PAWL_OK)
            st = pawl_root_settle(repair->root, &repair->warner, err);
    }
    if (st == PAWL_OK)
        st = pawl_dir_list(repair->root, &repair->list, err);
    for (size_t i = 0; i < repair->list.n && !repair->is_dry && st == PAWL_OK; i++) {
        const char *name = repair->list.entries[i].name;
        int64_t step;
        if (pawl_entry_of_name(pawl_str_z(name), &step) != PAWL_ENTRY_BAD || list_has(&before, name))
            continue;
        char was[PAWL_STEP_NAME_BYTES];
        pawl_entry_name(step, "", was);
        pawl_report_name(repair->report, PAWL_NAMES_QUARANTINED, pawl_str_z(was));
    }
    pawl_dir_list_release(&before);
    return st;
}

/* The verdict on one entry; the report keeps those of broken ones. */
static enum pawl_status
examine(struct repair *repair, struct found *found, struct pawl_error *err)
{
    const struct pawl_step_options options = { .trust = PAWL_TRUST_FULL };
    struct pawl_step step = { .number = -1 };
    enum pawl_status st = pawl_step_examine(&step, repair->root, found->name, &options, repair->report, err);
    if (st == PAWL_OK) {
        found->is_complete = step.is_complete;
        if (step.is_complete)
            pawl_report_drop_verdict(repair->report);
        else
            pawl_report_end_verdict(repair->report);
    }
    pawl_step_release(&step);
    return st;
}

static int
compare_found(const void *a, const void *b)
{
    const struct found *left = a;
    const struct found *right = b;
    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (int)left->is_prev - (int)right->is_prev;
}

static enum pawl_status
examine_all(struct repair *repair, struct pawl_error *err)
{
    repair->found = calloc(repair->list.n + 1, sizeof *repair->found);
    if (repair->found == NULL)
        return pawl_fail_memory(err, (repair->list.n + 1) * sizeof *repair->found);
    for (size_t i = 0; i < repair->list.n; i++) {
        int64_t step;
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(repair->list.entries[i].name), &step);
        if (kind == PAWL_ENTRY_STEP || kind == PAWL_ENTRY_PREV)
            repair->found[repair->n++] = (struct found){ .name = repair->list.entries[i].name,
                                                         .step = step,
                                                         .is_prev = kind == PAWL_ENTRY_PREV };
    }
    qsort(repair->found, repair->n, sizeof *repair->found, compare_found);
    for (size_t i = 0; i < repair->n; i++) {
        struct found *found = &repair->found[i];
        char bad[PAWL_STEP_NAME_BYTES];
        enum pawl_status st = examine(repair, found, err);
        if (st != PAWL_OK)
            return st;
        pawl_entry_name(found->step, ".bad", bad);
        found->is_taken = list_has(&repair->list, bad);
    }
    return PAWL_OK;
}

/* Before a step that LATEST names is quarantined, LATEST names what a load takes instead. */
static enum pawl_status
move_latest(struct repair *repair, struct pawl_error *err)
{
    int64_t latest = -1;
    const struct found *named = NULL;
    const struct found *older = NULL;
    enum pawl_status st = pawl_root_latest(repair->root, &latest, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < repair->n; i++) {
        const struct found *found = &repair->found[i];
        if (found->step == latest && !found->is_complete && !found->is_taken)
            named = found;
        if (found->step < latest && found->is_complete)
            older = found;
    }
    if (named == NULL)
        return PAWL_OK;
    if (older == NULL) {
        pawl_warn(&repair->warner, "latest", PAWL_LATEST,
                  "it names %s, which is broken, and no older step is complete: it stays as it is", named->name);
        return PAWL_OK;
    }
    char text[PAWL_STEP_NAME_BYTES + 1];
    char name[PAWL_STEP_NAME_BYTES];
    pawl_entry_name(older->step, "", name);
    int n = snprintf(text, sizeof text, "%s\n", name);
    if (!repair->is_dry)
        st = pawl_file_replace(repair->root, PAWL_LATEST, PAWL_LATEST_TMP, text, (size_t)n, err);
    if (st == PAWL_OK)
        pawl_warn(&repair->warner, "latest", PAWL_LATEST, "it named %s, which is broken, and %s %s", named->name,
                  repair->is_dry ? "would name" : "names now", name);
    return st;
}

static enum pawl_status
quarantine(struct repair *repair, const struct found *found, struct pawl_error *err)
{
    char bad[PAWL_STEP_NAME_BYTES];
    pawl_entry_name(found->step, ".bad", bad);
    enum pawl_status st = PAWL_OK;
    if (!repair->is_dry) {
        st = pawl_dir_rename(repair->root, found->name, bad, PAWL_OS_NO_REPLACE, err);
        if (st == PAWL_UNSUPPORTED) /* the name was free a moment ago, and the lock is ours */
            st = pawl_dir_rename(repair->root, found->name, bad, PAWL_OS_REPLACE, err);
    }
    if (st == PAWL_OK)
        pawl_report_name(repair->report, PAWL_NAMES_QUARANTINED, pawl_str_z(found->name));
    return st;
}

static enum pawl_status
quarantine_all(struct repair *repair, struct pawl_error *err)
{
    struct pawl_error taken = PAWL_ERROR_INIT;
    bool is_any = false;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < repair->n && st == PAWL_OK; i++) {
        const struct found *found = &repair->found[i];
        if (found->is_complete)
            continue;
        if (found->is_taken) {
            if (taken.status == PAWL_OK) {
                (void)pawl_fail(&taken, PAWL_EXISTS, "exists",
                                "%s is broken, and step-%06" PRId64 ".bad is there already: it stays as it is",
                                found->name, found->step);
                pawl_error_hint(&taken, "move or remove step-%06" PRId64 ".bad, then repair again", found->step);
            }
            continue;
        }
        st = quarantine(repair, found, err);
        is_any = is_any || st == PAWL_OK;
    }
    if (is_any && !repair->is_dry) {
        enum pawl_status synced = pawl_dir_sync(repair->root, NULL, st == PAWL_OK ? err : NULL);
        st = st == PAWL_OK ? synced : st;
    }
    if (st == PAWL_OK && taken.status != PAWL_OK) {
        st = taken.status;
        if (err != NULL)
            *err = taken;
    }
    return st;
}

static enum pawl_status
repair_locked(struct repair *repair, struct pawl_error *err)
{
    enum pawl_status st = settle(repair, err);
    if (st == PAWL_OK)
        st = examine_all(repair, err);
    if (st == PAWL_OK)
        st = move_latest(repair, err);
    if (st == PAWL_OK)
        st = quarantine_all(repair, err);
    free(repair->found);
    pawl_dir_list_release(&repair->list);
    return st;
}

/* In a root that is locked: the caller's run, or one that is opened for this. */
static enum pawl_status
repair_with_report(const struct pawl_dir *root, bool is_dry, struct pawl_report *report, struct pawl_error *err)
{
    struct repair repair = { .root = root, .is_dry = is_dry, .report = report, .warner = { NULL, NULL, report } };
    enum pawl_status st = repair_locked(&repair, err);
    if (st == PAWL_OK && !pawl_report_ok(report))
        st = pawl_fail_memory(err, 1);
    return st;
}

static enum pawl_status
take_repair_options(const struct pawl_repair_options *options, bool *ret_is_dry, struct pawl_error *err)
{
    struct pawl_repair_options known = { .size = sizeof known };
    enum pawl_status st = PAWL_OK;
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_repair_options", err);
    *ret_is_dry = known.dry_run != 0;
    return st;
}

static void
give_report(struct pawl_report *report, struct pawl_report **ret_report)
{
    if (ret_report != NULL)
        *ret_report = report;
    else
        pawl_report_free(report);
}

enum pawl_status
pawl_ckpt_repair_os(const struct pawl_os *os, struct pawl_str path, const struct pawl_repair_options *options,
                    struct pawl_report **ret_report, struct pawl_error *err)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    bool is_dry;
    if (ret_report != NULL)
        *ret_report = NULL;
    struct pawl_report *report = pawl_report_new();
    if (report == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st = take_repair_options(options, &is_dry, err);
    if (st == PAWL_OK)
        st = pawl_root_open_locked(&root, os, path, err);
    if (st == PAWL_OK) {
        st = repair_with_report(&root, is_dry, report, err);
        pawl_dir_unlock(&root);
    }
    if (st != PAWL_OK)
        st = pawl_context(err, st, "repair");
    pawl_dir_release(&root);
    give_report(report, ret_report);
    return st;
}

enum pawl_status
pawl_ckpt_repair(struct pawl_str root, const struct pawl_repair_options *options, struct pawl_report **ret_report,
                 struct pawl_error *err)
{
    return pawl_ckpt_repair_os(pawl_os_posix(), root, options, ret_report, err);
}

enum pawl_status
pawl_run_repair(struct pawl_run *run, const struct pawl_repair_options *options, struct pawl_report **ret_report,
                struct pawl_error *err)
{
    bool is_dry;
    if (ret_report != NULL)
        *ret_report = NULL;
    struct pawl_report *report = pawl_report_new();
    if (report == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st = take_repair_options(options, &is_dry, err);
    if (st == PAWL_OK)
        st = pawl_run_enter(run, err);
    if (st == PAWL_OK) {
        st = repair_with_report(&run->root, is_dry, report, err);
        pawl_run_leave(run);
    }
    if (st != PAWL_OK)
        st = pawl_context(err, st, "repair");
    give_report(report, ret_report);
    return st;
}
