/* checkpoint/root.c: looking after a root, and deleting directories from it. */
#include "checkpoint/root.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/str.h"
#include "checkpoint/documents.h"
#include "checkpoint/examine.h"
#include "checkpoint/names.h"

/* ---- warnings ---- */

void
pawl_warn(const struct pawl_warner *warner, const char *code, const char *file, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    struct pawl_str name = file == NULL ? PAWL_NO_STR : pawl_str_z(file);
    if (warner->report != NULL)
        pawl_report_warning(warner->report, code, name, "%s", message);
    if (warner->warning != NULL) {
        struct pawl_problem problem = {
            .code = code, .message = message, .file = name, .tensor = PAWL_NO_STR, .offset = PAWL_OFFSET_NONE
        };
        warner->warning(warner->context, &problem);
    }
}

void
pawl_warn_error(const struct pawl_warner *warner, const char *code, const char *file, const char *what,
                const struct pawl_error *err)
{
    pawl_warn(warner, code, file, "%s: %s", what, err->message);
}

/* ---- LATEST ---- */

enum pawl_status
pawl_root_latest(const struct pawl_dir *root, int64_t *ret_step, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_os_stat status;
    enum pawl_status st = pawl_dir_stat(root, PAWL_LATEST, &status, err);
    if (st == PAWL_NO_FILE || (st == PAWL_OK && status.kind != PAWL_OS_FILE)) {
        *ret_step = -1;
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = pawl_file_open_in(&file, root, PAWL_LATEST, 0, err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_STEP_NAME_BYTES, &text, err);
    if (st == PAWL_OK || st == PAWL_LIMIT) {
        *ret_step = st == PAWL_OK ? pawl_latest_parse(text.data, text.len) : -1;
        st = PAWL_OK;
    }
    pawl_buffer_release(&text);
    pawl_file_release(&file);
    return st;
}

/* ---- letting go ---- */

void
pawl_root_remove_stale(const struct pawl_dir *root, const struct pawl_dir_list *list, const struct pawl_warner *warner)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *name = list->entries[i].name;
        struct pawl_error err;
        if (pawl_entry_of_name(pawl_str_z(name), NULL) != PAWL_ENTRY_TMP && strcmp(name, PAWL_LATEST_TMP) != 0 &&
            strcmp(name, PAWL_RETENTION_TMP) != 0)
            continue;
        if (pawl_dir_remove_tree(root, name, &err) != PAWL_OK)
            pawl_warn_error(warner, "not-deleted", name, "left for the next save", &err);
    }
}

enum pawl_status
pawl_root_delete(const struct pawl_dir *root, char *const *names, size_t n, bool *ret_deleted,
                 const struct pawl_warner *warner, struct pawl_error *err)
{
    char(*temporaries)[PAWL_STEP_NAME_BYTES] = calloc(n + 1, sizeof *temporaries);
    bool is_any = false;
    enum pawl_status st = PAWL_OK;
    if (temporaries == NULL)
        return pawl_fail_memory(err, (n + 1) * sizeof *temporaries);
    for (size_t i = 0; i < n; i++) {
        struct pawl_error why;
        int64_t step;
        (void)pawl_entry_of_name(pawl_str_z(names[i]), &step);
        pawl_entry_name(step, ".tmp", temporaries[i]);
        if (pawl_dir_rename(root, names[i], temporaries[i], PAWL_OS_REPLACE, &why) != PAWL_OK) {
            temporaries[i][0] = '\0';
            pawl_warn_error(warner, "not-deleted", names[i], "left for the next save", &why);
        }
        is_any = is_any || temporaries[i][0] != '\0';
    }
    /* Names before files: else a crash could bring back a step that has lost some. */
    if (is_any)
        st = pawl_dir_sync(root, NULL, err);
    for (size_t i = 0; i < n; i++) {
        struct pawl_error why;
        bool is_gone = false;
        if (st != PAWL_OK && temporaries[i][0] != '\0') {
            /* A later sync need not keep what this one failed to: the names are changed back, and once more another time. */
            (void)pawl_dir_rename(root, temporaries[i], names[i], PAWL_OS_REPLACE, NULL);
        } else if (temporaries[i][0] != '\0') {
            is_gone = pawl_dir_remove_tree(root, temporaries[i], &why) == PAWL_OK;
            if (!is_gone)
                pawl_warn_error(warner, "not-deleted", temporaries[i], "left for the next save", &why);
        }
        if (ret_deleted != NULL)
            ret_deleted[i] = is_gone;
    }
    free(temporaries);
    return st;
}

/* ---- settling ---- */

/* Is `name` there, and complete, every file hashed? */
static enum pawl_status
is_complete(const struct pawl_dir *root, const char *name, bool *ret_is_there, bool *ret_is_complete,
            struct pawl_error *err)
{
    const struct pawl_step_options options = { .trust = PAWL_TRUST_FULL };
    struct pawl_step step = { .number = -1 };
    struct pawl_report *report = pawl_report_new();
    if (report == NULL)
        return pawl_fail_memory(err, sizeof step);
    enum pawl_status st = pawl_step_examine(&step, root, name, &options, report, err);
    if (st == PAWL_OK || st == PAWL_NO_FILE) {
        *ret_is_there = st == PAWL_OK;
        *ret_is_complete = st == PAWL_OK && step.is_complete;
        st = PAWL_OK;
    }
    pawl_step_release(&step);
    pawl_report_free(report);
    return st;
}

/* A broken step-N makes room for its .prev. */
static enum pawl_status
quarantine(const struct pawl_dir *root, int64_t number, const char *name, const struct pawl_warner *warner,
           struct pawl_error *err)
{
    char bad[PAWL_STEP_NAME_BYTES];
    struct pawl_os_stat status;
    pawl_entry_name(number, ".bad", bad);
    enum pawl_status st = pawl_dir_stat(root, bad, &status, NULL);
    if (st == PAWL_NO_FILE) {
        pawl_warn(warner, "mended", name, "%s is not complete and became %s", name, bad);
        return pawl_dir_rename(root, name, bad, PAWL_OS_REPLACE, err);
    }
    /* One was quarantined before, and is nobody's to delete. Of two broken ones of a number the newer goes. */
    char *names[] = { (char *)name };
    pawl_warn(warner, "mended", name, "%s is not complete and is deleted: there is a %s already", name, bad);
    return pawl_root_delete(root, names, 1, NULL, warner, err);
}

static enum pawl_status
settle_prev(const struct pawl_dir *root, int64_t number, char *prev, const struct pawl_warner *warner,
            struct pawl_error *err)
{
    char name[PAWL_STEP_NAME_BYTES];
    bool is_there = false;
    bool is_whole = false;
    pawl_entry_name(number, "", name);
    enum pawl_status st = is_complete(root, name, &is_there, &is_whole, err);
    if (st != PAWL_OK)
        return st;
    if (is_whole) {
        char *names[] = { prev };
        return pawl_root_delete(root, names, 1, NULL, warner, err);
    }
    if (is_there)
        st = quarantine(root, number, name, warner, err);
    if (st == PAWL_OK)
        st = pawl_dir_rename(root, prev, name, PAWL_OS_REPLACE, err);
    if (st == PAWL_OK)
        st = pawl_dir_sync(root, NULL, err);
    if (st == PAWL_OK)
        pawl_warn(warner, "mended", prev, "%s became %s again", prev, name);
    return st;
}

enum pawl_status
pawl_root_settle(const struct pawl_dir *root, const struct pawl_warner *warner, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    enum pawl_status st = pawl_dir_sync(root, NULL, err);
    if (st == PAWL_OK)
        st = pawl_dir_list(root, &list, err);
    for (size_t i = 0; st == PAWL_OK && i < list.n; i++) {
        int64_t number;
        if (pawl_entry_of_name(pawl_str_z(list.entries[i].name), &number) == PAWL_ENTRY_PREV)
            st = settle_prev(root, number, list.entries[i].name, warner, err);
        if (st != PAWL_OK)
            st = pawl_context(err, st, "look after '%s'", list.entries[i].name);
    }
    pawl_dir_list_release(&list);
    return st;
}
