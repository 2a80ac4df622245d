#include "checkpoint/guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "checkpoint/blocks.h"
#include "checkpoint/hashing.h"
#include "checkpoint/names.h"
#include "checkpoint/reading.h"
#include "checkpoint/step_content.h"
#include "os/forks.h"

enum whole_state { WHOLE_UNKNOWN = 0, WHOLE_BUSY = 1, WHOLE_RIGHT = 2, WHOLE_WRONG = 3 };

struct guarded_file {
    const struct pawl_set_file *file;
    const struct pawl_receipt *row;
    struct pawl_blocks blocks; /* where there are sums; else states is NULL, and: */
    enum whole_state whole;    /* under the guard's lock */
    struct pawl_error error;   /* of WHOLE_WRONG */
};

/* What a model's guard has as its context. */
struct guarded_set {
    struct pawl_step_guard *guard;
    size_t first; /* of its files */
};

struct pawl_step_guard {
    const struct pawl_step *step;
    struct guarded_file *files; /* the model's, then the optimizer's */
    size_t n;
    struct guarded_set sets[2];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pawl_fork_watch watch;
    bool has_hint; /* under the lock, like the hint */
    char hint[160];
};

/* ---- what to do instead ---- */

/* The newest step that is older than this one and whose files have their sizes, in the same root; -1: none, or it can't be told. */
static int64_t
find_older(const struct pawl_step *step)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_dir_list list = { NULL, 0 };
    const struct pawl_step_options options = { .trust = PAWL_TRUST_SIZE_ONLY };
    const char *parent = NULL;
    const char *name = NULL;
    int64_t found = -1;
    int64_t below = step->number;
    char *path = pawl_str_dup(pawl_str_z(step->dir.path));
    bool is_listed = path != NULL && step->is_named && pawl_path_cut(path, &parent, &name) &&
                     pawl_dir_open_path(&root, step->dir.os, parent, NULL) == PAWL_OK &&
                     pawl_dir_list(&root, &list, NULL) == PAWL_OK;
    while (is_listed && found < 0 && below >= 0) {
        char entry[PAWL_STEP_NAME_BYTES];
        int64_t next = -1;
        for (size_t i = 0; i < list.n; i++) {
            int64_t number = pawl_step_of_name(pawl_str_z(list.entries[i].name));
            if (number < below && number > next)
                next = number;
        }
        below = next;
        if (next < 0)
            break;
        struct pawl_step older = { .number = -1 };
        struct pawl_report *report = pawl_report_new();
        pawl_entry_name(next, "", entry);
        if (pawl_step_examine(&older, &root, entry, &options, report, NULL) == PAWL_OK && older.is_complete)
            found = next;
        pawl_step_release(&older);
        pawl_report_free(report);
    }
    pawl_dir_list_release(&list);
    pawl_dir_release(&root);
    free(path);
    return found;
}

static void
find_hint(const struct pawl_step *step, char *hint, size_t size)
{
    char name[PAWL_STEP_NAME_BYTES];
    int64_t older = find_older(step);
    if (older < 0) {
        (void)snprintf(hint, size,
                       "no older step is there to open instead: bring the file back from a copy of this one");
        return;
    }
    pawl_entry_name(older, "", name);
    (void)snprintf(hint, size, "open %s instead: the newest older step whose files have their sizes", name);
}

/* Looked for once: what stands in a root while a checkpoint is open hardly gets better. And without the lock: forks wait for that. */
static void
add_hint(struct pawl_step_guard *guard, struct pawl_error *err)
{
    char hint[sizeof guard->hint] = "";
    (void)pthread_mutex_lock(&guard->lock);
    bool has_hint = guard->has_hint;
    (void)pthread_mutex_unlock(&guard->lock);
    if (!has_hint)
        find_hint(guard->step, hint, sizeof hint);
    (void)pthread_mutex_lock(&guard->lock);
    if (!guard->has_hint)
        memcpy(guard->hint, hint, sizeof hint);
    guard->has_hint = true;
    pawl_error_hint(err, "%s", guard->hint);
    (void)pthread_mutex_unlock(&guard->lock);
}

/* ---- by sums ---- */

static enum pawl_status
check_blocks(struct pawl_step_guard *guard, struct guarded_file *at, uint64_t begin, uint64_t end,
             struct pawl_error *err)
{
    struct pawl_bad_block bad;
    size_t n_bad;
    uint64_t from, to;
    char more[64] = "";
    enum pawl_status st = pawl_blocks_check(&at->blocks, begin, end, &bad, &n_bad, err);
    if (st != PAWL_OK || n_bad == 0)
        return st;
    pawl_blocks_extent(&at->blocks, bad.block, &from, &to);
    if (n_bad > 1)
        (void)snprintf(more, sizeof more, ", and %zu more blocks", n_bad - 1);
    st = pawl_fail_at(
        err, PAWL_CORRUPT, "hash", from,
        "bytes %" PRIu64 " ... %" PRIu64 " of '%s' are damaged: expected xxh64 %016" PRIx64 ", found %016" PRIx64 "%s",
        from, to - 1, PAWL_SHOW(at->row->name), pawl_sums_of(at->blocks.sums, bad.block), bad.found, more);
    pawl_error_path(err, pawl_str_z(at->file->file.path));
    add_hint(guard, err);
    return st;
}

/* ---- without ---- */

/* A file that this thread has made WHOLE_BUSY, and what came out. */
struct whole {
    struct guarded_file *at;
    enum pawl_status status;
    struct pawl_error error;
};

/* Hash some files whole, at once; there is a job for each. */
static void
hash_whole(struct whole *wholes, size_t n, struct pawl_hash_job *jobs)
{
    for (size_t i = 0; i < n; i++) {
        const struct pawl_set_file *file = wholes[i].at->file;
        wholes[i].error = (struct pawl_error)PAWL_ERROR_INIT;
        jobs[i] = (struct pawl_hash_job){ .file = &file->file, .from = file->header.data_begin };
        wholes[i].status = pawl_sha256_new(&jobs[i].hash, &wholes[i].error);
        if (wholes[i].status == PAWL_OK)
            pawl_step_hash_header(jobs[i].hash, file);
        else
            jobs[i].from = file->file.bytes; /* nothing to hash then */
    }
    pawl_hash_files(jobs, n);
    for (size_t i = 0; i < n; i++) {
        struct whole *whole = &wholes[i];
        unsigned char digest[32];
        if (whole->status == PAWL_OK && jobs[i].status != PAWL_OK) {
            whole->status = jobs[i].status;
            whole->error = jobs[i].error;
        } else if (whole->status == PAWL_OK) {
            pawl_sha256_finish(jobs[i].hash, digest);
            whole->status = pawl_step_check_digest(whole->at->row, digest, &whole->error);
            (void)pawl_context(&whole->error, whole->status, "'%s' is damaged", PAWL_SHOW(whole->at->row->name));
            if (whole->status != PAWL_OK)
                pawl_error_path(&whole->error, pawl_str_z(whole->at->file->file.path));
        }
        pawl_sha256_free(jobs[i].hash);
    }
}

/* A wrong hash stays; what could not be read may be tried again. */
static void
settle_whole(struct pawl_step_guard *guard, const struct whole *whole)
{
    (void)pthread_mutex_lock(&guard->lock);
    whole->at->whole = whole->status == PAWL_OK        ? WHOLE_RIGHT
                       : whole->status == PAWL_CORRUPT ? WHOLE_WRONG
                                                       : WHOLE_UNKNOWN;
    whole->at->error = whole->error;
    (void)pthread_cond_broadcast(&guard->changed);
    (void)pthread_mutex_unlock(&guard->lock);
}

static enum pawl_status
check_whole(struct pawl_step_guard *guard, struct guarded_file *at, struct pawl_error *err)
{
    struct whole whole = { .at = at, .status = PAWL_OK, .error = PAWL_ERROR_INIT };
    struct pawl_hash_job job;
    (void)pthread_mutex_lock(&guard->lock);
    while (at->whole == WHOLE_BUSY)
        (void)pthread_cond_wait(&guard->changed, &guard->lock);
    bool is_ours = at->whole == WHOLE_UNKNOWN;
    if (is_ours)
        at->whole = WHOLE_BUSY;
    if (at->whole == WHOLE_WRONG) {
        whole.status = PAWL_CORRUPT;
        whole.error = at->error;
    }
    (void)pthread_mutex_unlock(&guard->lock);
    if (is_ours) {
        hash_whole(&whole, 1, &job);
        settle_whole(guard, &whole);
    }
    if (whole.status == PAWL_CORRUPT)
        add_hint(guard, &whole.error);
    if (whole.status != PAWL_OK && err != NULL)
        *err = whole.error;
    return whole.status;
}

static enum pawl_status
check(void *context, size_t file, uint64_t begin, uint64_t end, struct pawl_error *err)
{
    const struct guarded_set *set = context;
    struct guarded_file *at = &set->guard->files[set->first + file];
    return at->blocks.states != NULL ? check_blocks(set->guard, at, begin, end, err) : check_whole(set->guard, at, err);
}

/* ---- all of it ---- */

/* Hash at once the files without sums that nobody has begun: several streams are faster than one after the other. */
static enum pawl_status
hash_the_rest(struct pawl_step_guard *guard, struct pawl_error *err)
{
    struct whole *wholes = calloc(guard->n + 1, sizeof *wholes);
    struct pawl_hash_job *jobs = calloc(guard->n + 1, sizeof *jobs);
    enum pawl_status st = PAWL_OK;
    size_t n = 0;
    if (wholes == NULL || jobs == NULL) {
        st = pawl_fail_memory(err, (guard->n + 1) * (sizeof *wholes + sizeof *jobs));
        goto out;
    }
    (void)pthread_mutex_lock(&guard->lock);
    for (size_t i = 0; i < guard->n; i++) {
        if (guard->files[i].blocks.states != NULL || guard->files[i].whole != WHOLE_UNKNOWN)
            continue;
        guard->files[i].whole = WHOLE_BUSY;
        wholes[n++].at = &guard->files[i];
    }
    (void)pthread_mutex_unlock(&guard->lock);
    hash_whole(wholes, n, jobs);
    for (size_t i = 0; i < n; i++)
        settle_whole(guard, &wholes[i]);
out:
    free(wholes);
    free(jobs);
    return st;
}

/* One file, looked at whole, and its problems. */
static enum pawl_status
verify_file(struct pawl_step_guard *guard, struct guarded_file *at, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    bool has_sums = at->blocks.states != NULL;
    uint64_t bytes = at->file->file.bytes;
    enum pawl_status st = has_sums ? check_blocks(guard, at, 0, bytes, &own) : check_whole(guard, at, &own);
    bool is_damaged = st == PAWL_CORRUPT;
    if (st == PAWL_OK)
        st = pawl_file_check_unchanged(&at->file->file, &own);
    pawl_report_count(report, 1, bytes);
    if (st == PAWL_OK)
        return PAWL_OK;
    if (!pawl_step_is_content_fault(st)) {
        if (err != NULL)
            *err = own;
        return st;
    }
    const char *code = st == PAWL_TRUNCATED ? "size" : st == PAWL_IO ? "io" : NULL;
    pawl_report_problem_error(report, code, at->row->name, &own);
    if (is_damaged && has_sums)
        pawl_blocks_tell(&at->blocks, at->file, report);
    return PAWL_OK;
}

enum pawl_status
pawl_step_guard_verify(struct pawl_step_guard *guard, struct pawl_report *report, struct pawl_error *err)
{
    enum pawl_status st = hash_the_rest(guard, err);
    for (size_t i = 0; i < guard->n && st == PAWL_OK; i++)
        st = verify_file(guard, &guard->files[i], report, err);
    return st;
}

/* ---- forks ---- */

static void
before_fork(void *context)
{
    struct pawl_step_guard *guard = context;
    (void)pthread_mutex_lock(&guard->lock);
    for (size_t i = 0; i < guard->n; i++) {
        if (guard->files[i].blocks.states != NULL)
            pawl_blocks_before_fork(&guard->files[i].blocks);
    }
}

static void
after_fork_in_parent(void *context)
{
    struct pawl_step_guard *guard = context;
    for (size_t i = 0; i < guard->n; i++) {
        if (guard->files[i].blocks.states != NULL)
            pawl_blocks_in_parent(&guard->files[i].blocks);
    }
    (void)pthread_mutex_unlock(&guard->lock);
}

/* Those who were verifying are not there: what they had begun, the next who asks begins again. */
static void
after_fork_in_child(void *context)
{
    struct pawl_step_guard *guard = context;
    for (size_t i = 0; i < guard->n; i++) {
        if (guard->files[i].blocks.states != NULL)
            pawl_blocks_in_child(&guard->files[i].blocks);
        if (guard->files[i].whole == WHOLE_BUSY)
            guard->files[i].whole = WHOLE_UNKNOWN;
    }
    (void)pthread_cond_init(&guard->changed, NULL);
    (void)pthread_mutex_unlock(&guard->lock);
}

/* ---- making one ---- */

static enum pawl_status
guard_set(struct pawl_step_guard *guard, size_t which, struct pawl_model *model, struct pawl_error *err)
{
    const struct pawl_set *set = model->set;
    guard->sets[which] = (struct guarded_set){ guard, guard->n };
    for (size_t i = 0; i < set->n_files; i++) {
        struct guarded_file *at = &guard->files[guard->n];
        const struct pawl_sums_file *sums = pawl_sums_find(&guard->step->sums, set->files[i].name);
        *at = (struct guarded_file){ .file = &set->files[i], .row = pawl_step_row(guard->step, set->files[i].name) };
        enum pawl_status st = sums == NULL ? PAWL_OK : pawl_blocks_init(&at->blocks, &set->files[i].file, sums, err);
        if (st != PAWL_OK)
            return st;
        guard->n++;
    }
    model->guard = (struct pawl_guard){ check, &guard->sets[which] };
    return PAWL_OK;
}

enum pawl_status
pawl_step_guard_new(const struct pawl_step *step, struct pawl_model *model, struct pawl_model *optimizer,
                    struct pawl_step_guard **ret_guard, struct pawl_error *err)
{
    struct pawl_step_guard *guard = calloc(1, sizeof *guard);
    size_t n = model->set->n_files + (optimizer == NULL ? 0 : optimizer->set->n_files);
    if (guard == NULL || (guard->files = calloc(n + 1, sizeof *guard->files)) == NULL) {
        free(guard);
        return pawl_fail_memory(err, (n + 1) * sizeof *guard->files);
    }
    guard->step = step;
    (void)pthread_mutex_init(&guard->lock, NULL);
    (void)pthread_cond_init(&guard->changed, NULL);
    enum pawl_status st = guard_set(guard, 0, model, err);
    if (st == PAWL_OK && optimizer != NULL)
        st = guard_set(guard, 1, optimizer, err);
    if (st == PAWL_OK) {
        guard->watch =
            (struct pawl_fork_watch){ before_fork, after_fork_in_parent, after_fork_in_child, guard, NULL, NULL };
        st = pawl_fork_watch_begin(&guard->watch, err);
    }
    if (st == PAWL_OK)
        *ret_guard = guard;
    else
        pawl_step_guard_free(guard);
    return st;
}

void
pawl_step_guard_free(struct pawl_step_guard *guard)
{
    if (guard == NULL)
        return;
    pawl_fork_watch_end(&guard->watch);
    for (size_t i = 0; i < guard->n; i++)
        pawl_blocks_release(&guard->files[i].blocks);
    (void)pthread_cond_destroy(&guard->changed);
    (void)pthread_mutex_destroy(&guard->lock);
    free(guard->files);
    free(guard);
}
