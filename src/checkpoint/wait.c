/* checkpoint/wait.c: waiting for a newer step. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "base/str.h"
#include "checkpoint/care.h"
#include "checkpoint/names.h"
#include "checkpoint/reading.h"
#include "checkpoint/root.h"
#include "checkpoint/run.h"
#include "pawl/digest.h"

/* Pauses grow from the first to the second: a step that is about to be done is met soon, and a root of a day is not hammered. */
#define PAUSE_FIRST_NS ((uint64_t)20 * 1000 * 1000)
#define PAUSE_MAX_NS ((uint64_t)1000 * 1000 * 1000)

#define NS_PER_MS ((uint64_t)1000 * 1000)

/* What a look saw, as one number: another one means that something has changed. */
struct look {
    uint64_t sum;
    bool may_have_one; /* a step newer than the one that was named is there */
};

/* The names and LATEST alone; a save that replaces a step writes a new LATEST. */
static enum pawl_status
look_at(const struct pawl_os *os, const char *path, int64_t newer_than, struct look *ret, struct pawl_error *err)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_dir_list list = { NULL, 0 };
    struct pawl_os_stat latest = { .bytes = 0 };
    struct look look = { PAWL_FNV1A_BASIS, false };
    enum pawl_status st = pawl_dir_open_path(&root, os, path, err);
    if (st == PAWL_OK)
        st = pawl_dir_list(&root, &list, err);
    for (size_t i = 0; i < list.n; i++) {
        int64_t step;
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(list.entries[i].name), &step);
        if (kind != PAWL_ENTRY_STEP && kind != PAWL_ENTRY_PREV)
            continue;
        look.sum = pawl_fnv1a(look.sum, list.entries[i].name, strlen(list.entries[i].name) + 1);
        look.may_have_one = look.may_have_one || step > newer_than;
    }
    if (st == PAWL_OK && pawl_dir_stat(&root, PAWL_LATEST, &latest, NULL) == PAWL_OK) {
        const uint64_t words[] = { latest.inode, (uint64_t)latest.mtime_ns, latest.bytes };
        look.sum = pawl_fnv1a(look.sum, words, sizeof words);
    }
    pawl_dir_list_release(&list);
    pawl_dir_release(&root);
    *ret = look;
    if (st == PAWL_NO_FILE) /* the root may come too */
        st = PAWL_OK;
    return st;
}

/* Nothing yet, or nothing good yet. */
static bool
is_not_yet(enum pawl_status st)
{
    return st == PAWL_NOT_FOUND || st == PAWL_NONE_COMPLETE || st == PAWL_NO_FILE;
}

/* One try to open; *ret_is_done: the wait is over, with the status. */
static enum pawl_status
try_open(const struct pawl_os *os, struct pawl_str root, int64_t newer_than, const struct pawl_ckpt_options *options,
         struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report, bool *ret_is_done, struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    enum pawl_status st = pawl_ckpt_open_newest_os(os, root, options, &ckpt, &report, err);
    bool is_newer = st == PAWL_OK && pawl_ckpt_step(ckpt) > newer_than;
    *ret_is_done = is_newer || (st != PAWL_OK && !is_not_yet(st));
    if (is_newer)
        *ret_ckpt = ckpt;
    else if (st == PAWL_OK)
        pawl_ckpt_close(ckpt);
    pawl_report_free(*ret_report); /* the last try's is told */
    *ret_report = report;
    return st;
}

static enum pawl_status
wait_for(const struct pawl_os *os, struct pawl_str root, const char *path, int64_t newer_than, int64_t timeout_ms,
         const struct pawl_wait_options *options, struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report,
         struct pawl_error *err)
{
    const uint64_t begin = os->clock_ns(os->context);
    uint64_t pause = PAUSE_FIRST_NS;
    struct look seen = { 0, false };
    bool has_tried = false;
    for (;;) {
        struct look look;
        enum pawl_status st = look_at(os, path, newer_than, &look, err);
        if (st != PAWL_OK)
            return st;
        if (look.may_have_one && (!has_tried || look.sum != seen.sum)) {
            bool is_done = false;
            st = try_open(os, root, newer_than, options->ckpt, ret_ckpt, ret_report, &is_done, err);
            if (is_done)
                return st;
            has_tried = true;
            seen = look;
            pause = PAUSE_FIRST_NS; /* something is going on */
        }
        uint64_t gone = os->clock_ns(os->context) - begin;
        if (timeout_ms >= 0 && gone / NS_PER_MS >= (uint64_t)timeout_ms)
            return newer_than < 0
                       ? pawl_fail(err, PAWL_TIME_OUT, "time-out", "no complete step in %" PRId64 " ms", timeout_ms)
                       : pawl_fail(err, PAWL_TIME_OUT, "time-out",
                                   "no complete step newer than %" PRId64 " in %" PRId64 " ms", newer_than, timeout_ms);
        if (options->waiting != NULL && options->waiting(options->context) != 0)
            return pawl_fail(err, PAWL_CANCELED, "canceled", "the wait was given up by its caller");
        uint64_t ns = pause;
        if (timeout_ms >= 0 && (uint64_t)timeout_ms - gone / NS_PER_MS < ns / NS_PER_MS)
            ns = ((uint64_t)timeout_ms - gone / NS_PER_MS) * NS_PER_MS;
        os->sleep_ns(os->context, ns);
        pause = pause * 2 < PAUSE_MAX_NS ? pause * 2 : PAUSE_MAX_NS;
    }
}

enum pawl_status
pawl_ckpt_wait_os(const struct pawl_os *os, struct pawl_str root, int64_t newer_than, int64_t timeout_ms,
                  const struct pawl_wait_options *options, struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report,
                  struct pawl_error *err)
{
    struct pawl_wait_options known = { .size = sizeof known };
    struct pawl_report *report = NULL;
    char *path = NULL;
    enum pawl_status st = PAWL_OK;
    if (ret_report != NULL)
        *ret_report = NULL;
    if (ret_ckpt == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no place for the checkpoint was given");
    if (newer_than < -1)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "newer_than is %" PRId64 ", expected a step, or -1 for any",
                         newer_than);
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_wait_options", err);
    if (st == PAWL_OK)
        st = pawl_root_path(root, &path, err);
    if (st == PAWL_OK)
        st = wait_for(os, root, path, newer_than, timeout_ms, &known, ret_ckpt, &report, err);
    free(path);
    if (st != PAWL_OK)
        st = pawl_context(err, st, "wait for a step in '%s'", PAWL_SHOW(root));
    if (report == NULL && st != PAWL_NO_MEMORY)
        report = pawl_report_new();
    if (ret_report != NULL)
        *ret_report = report;
    else
        pawl_report_free(report);
    return st;
}

enum pawl_status
pawl_ckpt_wait(struct pawl_str root, int64_t newer_than, int64_t timeout_ms, const struct pawl_wait_options *options,
               struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report, struct pawl_error *err)
{
    return pawl_ckpt_wait_os(pawl_os_posix(), root, newer_than, timeout_ms, options, ret_ckpt, ret_report, err);
}
