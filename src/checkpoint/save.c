/*
 * checkpoint/save.c: the protocol of a save, docs/format/checkpoint.md "Saving". The numbers in the comments are its steps.
 *
 * States of a save, and what taking it back means in each:
 *
 *   SAVE_NOTHING    step-N.tmp may be there                    remove it
 *   SAVE_FRESH      step-N is the new one, there was none      rename it to step-N.tmp, sync, remove
 *   SAVE_EXCHANGED  step-N is new, step-N.tmp the old          exchange again, sync, remove
 *   SAVE_SET_ASIDE  step-N.prev is the old, no step-N          rename it back, sync; then as SAVE_NOTHING
 *   SAVE_BY_PREV    step-N is new, step-N.prev the old         rename both back, sync, remove
 *   SAVE_UNKNOWN    nobody can say which is which              leave both
 *
 * Where the sync of taking back fails, nobody knows which names the disk has, so nothing is removed: what is there is whole under every name,
 * and the next save settles the root first. Once LATEST has changed, a save is not taken back.
 */
#include "checkpoint/save.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/checked.h"
#include "base/str.h"
#include "checkpoint/crew.h"
#include "checkpoint/names.h"
#include "checkpoint/retention.h"

/* An exchange that was interrupted is tried again this often. */
#define EXCHANGES_MAX 16

enum save_state { SAVE_NOTHING, SAVE_FRESH, SAVE_EXCHANGED, SAVE_SET_ASIDE, SAVE_BY_PREV, SAVE_UNKNOWN };

struct save {
    struct pawl_run *run;
    struct pawl_parts *parts;
    const struct pawl_dir *root;
    char name[PAWL_STEP_NAME_BYTES];
    char tmp[PAWL_STEP_NAME_BYTES];
    char prev[PAWL_STEP_NAME_BYTES];
    int64_t step;
    enum save_state state;
    bool has_tmp;        /* step-N.tmp was created by this save */
    struct pawl_dir dir; /* of step-N.tmp, while files are written */
    struct pawl_receipt *receipts;
    struct pawl_manifest manifest;
    struct pawl_buffer text; /* of the manifest */
    struct pawl_meter meter;
    const struct pawl_save_watch *watch; /* NULL: nobody */
};

static void
say_once(struct pawl_run *run, enum pawl_run_said what, const char *code, const char *message)
{
    if ((run->said & (unsigned)what) != 0)
        return;
    run->said |= (unsigned)what;
    pawl_warn(&run->warner, code, NULL, "%s", message);
}

static enum pawl_status
pass_failpoint(const struct save *save, const char *name, struct pawl_error *err)
{
    const struct pawl_run_options *options = &save->run->options;
    if (options->failpoint == NULL || options->failpoint(options->context, name) == 0)
        return PAWL_OK;
    return pawl_fail_os(err, EIO, "failpoint '%s'", name);
}

static enum pawl_status
sync_dir(const struct save *save, const struct pawl_dir *dir, struct pawl_error *err)
{
    bool is_unsupported = false;
    enum pawl_status st = pawl_dir_sync(dir, &is_unsupported, err);
    if (st == PAWL_OK && is_unsupported)
        say_once(save->run, PAWL_SAID_DIR_SYNC, "no-directory-sync",
                 "this filesystem can't sync directories: names become durable when it pleases");
    return st;
}

/* ---- the manifest ---- */

static enum pawl_status
print_manifest(struct save *save, struct pawl_error *err)
{
    pawl_buffer_clear(&save->text);
    if (!pawl_manifest_print(&save->manifest, &save->text))
        return pawl_fail_memory(err, save->text.len);
    return PAWL_OK;
}

/* Digests have one length: the manifest is as long before the files are written as after. */
static enum pawl_status
begin_manifest(struct save *save, char *created_at, size_t size, struct pawl_error *err)
{
    const struct pawl_parts *parts = save->parts;
    size_t n = parts->n + (parts->sums.name != NULL);
    save->receipts = calloc(n, sizeof *save->receipts);
    if (save->receipts == NULL)
        return pawl_fail_memory(err, n * sizeof *save->receipts);
    for (size_t i = 0; i < n; i++) {
        const struct pawl_part *part = i < parts->n ? &parts->parts[i] : &parts->sums;
        save->receipts[i] = (struct pawl_receipt){ .name = pawl_str_z(part->name), .bytes = part->bytes };
    }
    save->manifest = (struct pawl_manifest){ .kind = PAWL_STR("checkpoint"), .files = save->receipts, .n = n };
    if (save->run->options.write_created_at) {
        time_t seconds = (time_t)save->run->os->wall_seconds(save->run->os->context);
        struct tm utc;
        if (gmtime_r(&seconds, &utc) != NULL && strftime(created_at, size, "%Y-%m-%dT%H:%M:%SZ", &utc) != 0)
            save->manifest.created_at = pawl_str_z(created_at);
    }
    enum pawl_status st = print_manifest(save, err);
    if (st != PAWL_OK)
        return st;
    save->meter.total = save->parts->bytes + save->text.len;
    return PAWL_OK;
}

/* ---- 1: a directory to write into ---- */

/* Bytes to come against bytes there. What crashed writers left may be what fills the disk: it goes before anyone is told that there
 * is no space. */
static enum pawl_status
check_space(const struct save *save, struct pawl_error *err)
{
    uint64_t bytes = save->meter.total + strlen(save->name) + 1; /* with LATEST.tmp */
    enum pawl_status st = pawl_dir_check_space(save->root, bytes, err);
    if (st != PAWL_NO_SPACE)
        return st;
    struct pawl_dir_list list = { NULL, 0 };
    if (pawl_dir_list(save->root, &list, NULL) != PAWL_OK)
        return st;
    pawl_root_remove_stale(save->root, &list, &save->run->warner);
    pawl_dir_list_release(&list);
    return pawl_dir_check_space(save->root, bytes, err);
}

static enum pawl_status
make_directory(struct save *save, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    if (save->run->is_unsettled) {
        st = pawl_root_settle(save->root, &save->run->warner, err);
        save->run->is_unsettled = st != PAWL_OK;
    }
    if (st == PAWL_OK)
        st = pawl_dir_remove_tree(save->root, save->tmp, err);
    if (st == PAWL_OK)
        st = check_space(save, err);
    if (st == PAWL_OK)
        st = pawl_dir_create_in(save->root, save->tmp, err);
    if (st != PAWL_OK)
        return st;
    save->has_tmp = true;
    return pawl_dir_open_in(&save->dir, save->root, save->tmp, err);
}

/* ---- 2 and 3: files, then the manifest ---- */

static void
say_no_reserve(struct pawl_run *run)
{
    say_once(run, PAWL_SAID_RESERVE, "no-reserve",
             "this filesystem can't reserve space: a full disk is found only while writing");
}

static enum pawl_status
write_part(struct save *save, const struct pawl_part *part, struct pawl_receipt *receipt, struct pawl_error *err)
{
    bool is_reserved = true;
    enum pawl_status st = pawl_part_write(part, &save->dir, NULL, &save->meter, receipt, &is_reserved, err);
    if (!is_reserved)
        say_no_reserve(save->run);
    return st;
}

/* What follows each file of tensors or document, in their order. */
static enum pawl_status
pass_file(void *context, bool is_reserved, struct pawl_error *err)
{
    const struct save *save = context;
    if (!is_reserved)
        say_no_reserve(save->run);
    return pass_failpoint(save, "save/after-file", err);
}

static enum pawl_status
write_parts(struct save *save, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    bool has_begun = false;
    /* Printing the manifest has sorted the receipts; these are new ones, in the order of the parts. */
    if (pawl_crew_can(save->parts, save->run->os))
        st = pawl_crew_write(save->parts, &save->dir, &save->meter, save->receipts, pass_file, save, &has_begun, err);
    if (has_begun)
        return st;
    for (size_t i = 0; i < save->parts->n && st == PAWL_OK; i++) {
        st = write_part(save, &save->parts->parts[i], &save->receipts[i], err);
        if (st == PAWL_OK)
            st = pass_file(save, true, err);
    }
    return st;
}

/* What was summed on the way, when all of it is there. */
static enum pawl_status
write_sums(struct save *save, struct pawl_error *err)
{
    if (save->parts->sums.name == NULL)
        return PAWL_OK;
    pawl_parts_seal_sums(save->parts);
    enum pawl_status st = write_part(save, &save->parts->sums, &save->receipts[save->parts->n], err);
    return st == PAWL_OK ? pass_file(save, true, err) : st;
}

static enum pawl_status
write_files(struct save *save, struct pawl_error *err)
{
    enum pawl_status st = write_parts(save, err);
    if (st == PAWL_OK && save->watch != NULL)
        save->watch->released(save->watch->context);
    if (st == PAWL_OK)
        st = write_sums(save, err);
    if (st == PAWL_OK)
        st = pass_failpoint(save, "save/before-manifest", err);
    if (st == PAWL_OK)
        st = print_manifest(save, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_part part = { .name = PAWL_MANIFEST, .bytes = save->text.len, .text = save->text.data };
    struct pawl_receipt receipt;
    st = write_part(save, &part, &receipt, err);
    if (st == PAWL_OK)
        st = sync_dir(save, &save->dir, err);
    if (st == PAWL_OK && save->watch != NULL)
        save->watch->written(save->watch->context);
    return st;
}

/* ---- 4: the name ---- */

/*
 * Change the places of step-N and step-N.tmp, once. An exchange that was answered with an error may have been made all the same (an
 * interrupted call, a server whose answer was lost): what is under the name tells. *ret_is_known: the answer is the truth.
 */
static enum pawl_status
exchange(const struct save *save, bool *ret_is_known, struct pawl_error *err)
{
    struct pawl_os_stat before, after;
    *ret_is_known = true;
    enum pawl_status st = pawl_dir_stat(save->root, save->tmp, &before, err);
    for (unsigned tries = 0; st == PAWL_OK; tries++) {
        st = pawl_dir_rename(save->root, save->tmp, save->name, PAWL_OS_EXCHANGE, err);
        if (st == PAWL_OK || st == PAWL_UNSUPPORTED)
            return st;
        *ret_is_known = pawl_dir_stat(save->root, save->name, &after, NULL) == PAWL_OK;
        if (!*ret_is_known)
            return st;
        if (after.device == before.device && after.inode == before.inode)
            return PAWL_OK;
        if (st == PAWL_INTERRUPTED && tries < EXCHANGES_MAX)
            st = PAWL_OK;
    }
    return st;
}

static enum pawl_status
replace_by_prev(struct save *save, struct pawl_error *err)
{
    say_once(save->run, PAWL_SAID_EXCHANGE, "no-exchange",
             "this filesystem can't exchange two names: a step that is saved again is set aside as .prev meanwhile");
    enum pawl_status st = pawl_dir_rename(save->root, save->name, save->prev, PAWL_OS_REPLACE, err);
    if (st != PAWL_OK)
        return st;
    save->state = SAVE_SET_ASIDE;
    st = sync_dir(save, save->root, err);
    if (st == PAWL_OK)
        st = pawl_dir_rename(save->root, save->tmp, save->name, PAWL_OS_REPLACE, err);
    if (st == PAWL_OK)
        save->state = SAVE_BY_PREV;
    return st;
}

static enum pawl_status
publish(struct save *save, struct pawl_error *err)
{
    struct pawl_os_stat there;
    enum pawl_status st = pass_failpoint(save, "save/before-rename", err);
    if (st == PAWL_OK && save->watch != NULL)
        st = save->watch->publishing(save->watch->context, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_dir_stat(save->root, save->name, &there, err);
    if (st == PAWL_NO_FILE) {
        st = pawl_dir_rename(save->root, save->tmp, save->name, PAWL_OS_NO_REPLACE, err);
        if (st == PAWL_UNSUPPORTED) {
            say_once(save->run, PAWL_SAID_NO_REPLACE, "no-rename-no-replace",
                     "this filesystem can't rename without replacing: the name is looked at before");
            st = pawl_dir_rename(save->root, save->tmp, save->name, PAWL_OS_REPLACE, err);
        }
        if (st == PAWL_OK)
            save->state = SAVE_FRESH;
    } else if (st == PAWL_OK) {
        bool is_known;
        st = exchange(save, &is_known, err);
        if (st == PAWL_OK)
            save->state = SAVE_EXCHANGED;
        else if (!is_known)
            save->state = SAVE_UNKNOWN;
        else if (st == PAWL_UNSUPPORTED)
            st = replace_by_prev(save, err);
    }
    return st == PAWL_OK ? sync_dir(save, save->root, err) : st;
}

/* ---- taking back ---- */

static enum pawl_status
rename_back(struct save *save)
{
    enum pawl_status st = PAWL_OK;
    switch (save->state) {
    case SAVE_NOTHING:
        return PAWL_OK;
    case SAVE_FRESH:
        st = pawl_dir_rename(save->root, save->name, save->tmp, PAWL_OS_REPLACE, NULL);
        break;
    case SAVE_UNKNOWN:
        return PAWL_IO;
    case SAVE_EXCHANGED: {
        bool is_known;
        st = exchange(save, &is_known, NULL);
        break;
    }
    case SAVE_BY_PREV:
        st = pawl_dir_rename(save->root, save->name, save->tmp, PAWL_OS_REPLACE, NULL);
        if (st != PAWL_OK)
            break;
        save->state = SAVE_SET_ASIDE;
        st = pawl_dir_rename(save->root, save->prev, save->name, PAWL_OS_REPLACE, NULL);
        break;
    case SAVE_SET_ASIDE:
        st = pawl_dir_rename(save->root, save->prev, save->name, PAWL_OS_REPLACE, NULL);
        break;
    }
    if (st == PAWL_OK)
        st = pawl_dir_sync(save->root, NULL, NULL);
    return st;
}

/* After a failure, the root as it was before, as far as that can be had. */
static void
take_back(struct save *save)
{
    pawl_dir_release(&save->dir);
    save->run->is_unsettled = true;
    if (rename_back(save) == PAWL_OK && save->has_tmp)
        (void)pawl_dir_remove_tree(save->root, save->tmp, NULL); /* what stays is stale, and goes with the next save */
}

/* ---- 5 and 6: LATEST ---- */

/* *ret_is_final: LATEST may have changed, so that taking the step back would leave it naming nothing. */
static enum pawl_status
write_latest(struct save *save, bool *ret_is_final, struct pawl_error *err)
{
    int64_t before = -1;
    char text[PAWL_STEP_NAME_BYTES + 1];
    enum pawl_status st = pass_failpoint(save, "save/before-latest", err);
    if (st != PAWL_OK)
        return st;
    /* An old LATEST that can't be read is no reason against a new one. */
    bool was_known = pawl_root_latest(save->root, &before, NULL) == PAWL_OK;
    int n = snprintf(text, sizeof text, "%s\n", save->name);
    st = pawl_file_replace(save->root, PAWL_LATEST, PAWL_LATEST_TMP, text, (size_t)n, err);
    if (st != PAWL_OK) {
        int64_t after = -1;
        bool is_known = pawl_root_latest(save->root, &after, NULL) == PAWL_OK;
        *ret_is_final = !was_known || !is_known || (after == save->step && before != after);
    }
    return st;
}

/* ---- 7: deleting ---- */

static void
say_newer(const struct save *save, const struct pawl_dir_list *list)
{
    size_t n = 0;
    int64_t greatest = -1;
    for (size_t i = 0; i < list->n; i++) {
        int64_t step;
        if (pawl_entry_of_name(pawl_str_z(list->entries[i].name), &step) != PAWL_ENTRY_STEP || step <= save->step)
            continue;
        n++;
        greatest = step > greatest ? step : greatest;
    }
    if (n == 0 || (save->run->said & (unsigned)PAWL_SAID_NEWER) != 0)
        return;
    char name[PAWL_STEP_NAME_BYTES];
    save->run->said |= (unsigned)PAWL_SAID_NEWER;
    pawl_entry_name(greatest, "", name);
    pawl_warn(&save->run->warner, "newer-steps", name,
              "the root holds %zu newer than %s, up to %s: of an older run, not counted and not deleted", n, save->name,
              name);
}

/* The save is durable: nothing here makes it fail. */
static void
delete_old(struct save *save)
{
    struct pawl_run *run = save->run;
    struct pawl_dir_list list = { NULL, 0 };
    struct pawl_error err;
    enum pawl_status st = pass_failpoint(save, "save/before-prune", &err);
    if (st == PAWL_OK)
        st = pawl_dir_list(save->root, &list, &err);
    if (st == PAWL_OK) {
        pawl_root_remove_stale(save->root, &list, &run->warner);
        say_newer(save, &list);
        if (save->state == SAVE_BY_PREV) {
            char *names[] = { save->prev };
            bool is_gone = false;
            st = pawl_root_delete(save->root, names, 1, &is_gone, &run->warner, &err);
            run->is_unsettled = run->is_unsettled || !is_gone;
        }
    }
    if (st == PAWL_OK) {
        const struct pawl_retention retention = { .root = save->root,
                                                  .policy = run->policy,
                                                  .newest = save->step,
                                                  .corrupt = run->corrupt,
                                                  .n_corrupt = run->n_corrupt,
                                                  .warner = &run->warner };
        st = pawl_retention_apply(&retention, &list, &err);
    }
    if (st != PAWL_OK) {
        run->is_unsettled = true;
        pawl_warn_error(&run->warner, "not-deleted", NULL, "old entries are left for the next save", &err);
    }
    pawl_dir_list_release(&list);
}

/* The step has new bytes: what a restore found wrong is gone. */
static void
forget_corrupt(struct pawl_run *run, int64_t step)
{
    size_t kept = 0;
    for (size_t i = 0; i < run->n_corrupt; i++)
        if (run->corrupt[i] != step)
            run->corrupt[kept++] = run->corrupt[i];
    run->n_corrupt = kept;
}

/* ---- all of it ---- */

enum pawl_status
pawl_save_parts(struct pawl_run *run, struct pawl_parts *parts, int64_t step, const struct pawl_save_watch *watch,
                struct pawl_error *err)
{
    char created_at[40];
    bool is_final = false;
    struct save save = { .run = run,
                         .parts = parts,
                         .root = &run->root,
                         .step = step,
                         .dir = PAWL_DIR_INIT,
                         .text = PAWL_BUFFER_INIT,
                         .meter = { .progress = run->options.progress, .context = run->options.context },
                         .watch = watch };
    if (watch != NULL)
        save.meter =
            (struct pawl_meter){ .progress = watch->progress, .context = watch->context, .times = watch->times };
    pawl_entry_name(step, "", save.name);
    pawl_entry_name(step, ".tmp", save.tmp);
    pawl_entry_name(step, ".prev", save.prev);

    enum pawl_status st = begin_manifest(&save, created_at, sizeof created_at, err);
    if (st == PAWL_OK)
        st = make_directory(&save, err);
    if (st == PAWL_OK)
        st = write_files(&save, err);
    pawl_dir_release(&save.dir);
    if (st == PAWL_OK)
        st = publish(&save, err);
    if (st == PAWL_OK)
        st = write_latest(&save, &is_final, err);
    if (st != PAWL_OK) {
        if (is_final)
            run->is_unsettled = true;
        else
            take_back(&save);
        st = pawl_context(err, st, "save step %" PRId64, step);
    } else {
        forget_corrupt(run, step);
        /* Deleting takes a filesystem up to a second for each few GiB: who waits for durable does not wait for that. */
        if (watch != NULL)
            watch->durable(watch->context);
        delete_old(&save);
    }
    free(save.receipts);
    pawl_buffer_release(&save.text);
    return st;
}
