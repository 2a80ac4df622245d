/*
 * checkpoint/copy.c: copying a step, so that a copy is a checkpoint or is not there.
 *
 * Every byte is hashed as it is read; every file, folder and at last the directory is synced; the copy is dropped from the cache, read
 * again and judged like any step; then it gets its name, in one step, and the parent is synced.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/options.h"
#include "base/str.h"
#include "checkpoint/care.h"
#include "checkpoint/find.h"
#include "checkpoint/names.h"
#include "checkpoint/reading.h"
#include "checkpoint/root.h"
#include "checkpoint/run.h"
#include "pawl/digest.h"

/* Read, hashed and written at a time; progress is told as often. */
#define BLOCK_BYTES ((size_t)1 << 20)

/* Temporary names tried; taken ones are left by killed programs whose process number came again. */
#define TEMPORARIES_MAX 1000

#define TEMPORARY_BYTES 64 /* ".pawl-copy.", two numbers, ".tmp" */

struct copy {
    const struct pawl_os *os;
    struct pawl_copy_options options;
    struct pawl_report *report;
    struct pawl_warner warner;
    struct pawl_step *source;
    struct pawl_dir parent;
    char *name;        /* of the copy in its parent */
    bool is_step_name; /* it is one of ours: then the parent is a root, and locked */
    bool is_locked;
    char tmp[TEMPORARY_BYTES];   /* beside it */
    char aside[TEMPORARY_BYTES]; /* where names can't be exchanged: the one that is replaced, meanwhile */
    struct pawl_dir dir;         /* of the temporary */
    uint64_t done, total;
    unsigned char *block;
};

static enum pawl_status
fail_exists(const struct copy *copy, struct pawl_error *err)
{
    enum pawl_status st = pawl_fail(err, PAWL_EXISTS, "exists", "'%s' exists in '%s' and is not to be replaced",
                                    PAWL_SHOW(pawl_str_z(copy->name)), PAWL_SHOW(pawl_str_z(copy->parent.path)));
    pawl_error_path(err, pawl_str_z(copy->parent.path));
    return st;
}

/* ---- where to ---- */

/* `dest` is there: a root, or a step that would be replaced. */
static enum pawl_status
aim_at_directory(struct copy *copy, struct pawl_dir *there, const char *parent, const char *name,
                 struct pawl_error *err)
{
    struct pawl_os_stat status;
    enum pawl_status st = pawl_dir_stat(there, PAWL_MANIFEST, &status, err);
    if (st == PAWL_NO_FILE) {
        char step[PAWL_STEP_NAME_BYTES];
        pawl_entry_name(copy->source->number, "", step);
        copy->parent = *there;
        *there = (struct pawl_dir)PAWL_DIR_INIT;
        copy->name = pawl_str_dup(pawl_str_z(step));
        return copy->name == NULL ? pawl_fail_memory(err, sizeof step) : PAWL_OK;
    }
    if (st != PAWL_OK)
        return st;
    if (name == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "the destination is a step directory without a name of its own");
    copy->name = pawl_str_dup(pawl_str_z(name));
    if (copy->name == NULL)
        return pawl_fail_memory(err, strlen(name) + 1);
    return pawl_dir_open_path(&copy->parent, copy->os, parent, err);
}

/* A name of ours means something in a root: only the step's own is right. */
static enum pawl_status
check_name(struct copy *copy, struct pawl_error *err)
{
    int64_t step = -1;
    enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(copy->name), &step);
    copy->is_step_name = kind == PAWL_ENTRY_STEP;
    if (kind == PAWL_ENTRY_OTHER || (kind == PAWL_ENTRY_STEP && step == copy->source->number))
        return PAWL_OK;
    return pawl_fail(err, PAWL_ARGUMENT, "argument", "a copy of step %" PRId64 " can't be named '%s'",
                     copy->source->number, PAWL_SHOW(pawl_str_z(copy->name)));
}

static enum pawl_status
aim(struct copy *copy, struct pawl_str dest, struct pawl_error *err)
{
    struct pawl_dir there = PAWL_DIR_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    const char *parent = NULL;
    const char *name = NULL;
    char *path = NULL;
    enum pawl_status st = pawl_root_path(dest, &path, err);
    char *cut = st == PAWL_OK ? pawl_str_dup(dest) : NULL;
    if (st == PAWL_OK && cut == NULL)
        st = pawl_fail_memory(err, dest.len + 1);
    if (st != PAWL_OK)
        goto out;
    bool has_name = pawl_path_cut(cut, &parent, &name);
    st = pawl_dir_open_path(&there, copy->os, path, &own);
    if (st == PAWL_OK) {
        st = aim_at_directory(copy, &there, parent, has_name ? name : NULL, err);
    } else if (st == PAWL_NO_FILE && has_name) {
        copy->name = pawl_str_dup(pawl_str_z(name));
        st = copy->name == NULL ? pawl_fail_memory(err, strlen(name) + 1) : check_name(copy, err);
        if (st == PAWL_OK)
            st = pawl_dir_create_all(copy->os, parent, NULL, err);
        if (st == PAWL_OK)
            st = pawl_dir_open_path(&copy->parent, copy->os, parent, err);
    } else if (err != NULL) {
        *err = own;
    }
    if (st == PAWL_OK)
        st = check_name(copy, err);
out:
    pawl_dir_release(&there);
    free(path);
    free(cut);
    return st;
}

static enum pawl_status
lock_parent(struct copy *copy, struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    if (!copy->is_step_name)
        return PAWL_OK;
    enum pawl_status st = pawl_dir_lock(&copy->parent, PAWL_OS_LOCK_TRY, NULL, &own);
    copy->is_locked = st == PAWL_OK;
    if (st == PAWL_UNSUPPORTED) {
        pawl_warn_error(&copy->warner, "no-lock", NULL, "the root is not locked: see that no other writer uses it",
                        &own);
        return PAWL_OK;
    }
    if (st != PAWL_OK && err != NULL)
        *err = own;
    return st;
}

/* ---- the temporary ---- */

static enum pawl_status
make_temporary(struct copy *copy, struct pawl_error *err)
{
    enum pawl_status st;
    if (copy->is_step_name) {
        pawl_entry_name(copy->source->number, ".tmp", copy->tmp);
        pawl_entry_name(copy->source->number, ".prev", copy->aside);
        st = pawl_dir_remove_tree(&copy->parent, copy->tmp, err); /* of a crashed writer: the lock is ours */
        if (st == PAWL_OK)
            st = pawl_dir_create_in(&copy->parent, copy->tmp, err);
    } else {
        int64_t process = copy->os->process_id(copy->os->context);
        st = PAWL_EXISTS;
        for (unsigned i = 0; i < TEMPORARIES_MAX && st == PAWL_EXISTS; i++) {
            (void)snprintf(copy->tmp, sizeof copy->tmp, ".pawl-copy.%" PRId64 "-%u.tmp", process, i);
            (void)snprintf(copy->aside, sizeof copy->aside, ".pawl-copy.%" PRId64 "-%u.old", process, i);
            st = pawl_dir_create_in(&copy->parent, copy->tmp, err);
        }
    }
    if (st != PAWL_OK) {
        copy->tmp[0] = '\0'; /* not ours: nothing to remove */
        return st;
    }
    return pawl_dir_open_in(&copy->dir, &copy->parent, copy->tmp, err);
}

/* Open the folder that the file of a manifest's name is in, by walking. `name` is cut; *ret_last is its last part. */
static enum pawl_status
open_folder(const struct pawl_dir *dir, char *name, bool is_new, struct pawl_dir *ret_folder, const char **ret_last,
            struct pawl_error *err)
{
    struct pawl_dir folder = PAWL_DIR_INIT;
    enum pawl_status st = pawl_dir_open_in(&folder, dir, ".", err);
    char *slash;
    while (st == PAWL_OK && (slash = strchr(name, '/')) != NULL) {
        struct pawl_dir next = PAWL_DIR_INIT;
        *slash = '\0';
        if (is_new) {
            st = pawl_dir_create_in(&folder, name, err);
            st = st == PAWL_EXISTS ? PAWL_OK : st;
        }
        if (st == PAWL_OK)
            st = pawl_dir_open_in(&next, &folder, name, err);
        pawl_dir_release(&folder);
        folder = next;
        name = slash + 1;
    }
    if (st != PAWL_OK) {
        pawl_dir_release(&folder);
        return st;
    }
    *ret_folder = folder;
    *ret_last = name;
    return PAWL_OK;
}

/* ---- one file ---- */

static enum pawl_status
tell(struct copy *copy, size_t bytes, struct pawl_error *err)
{
    copy->done += bytes;
    if (copy->options.progress == NULL || copy->options.progress(copy->options.context, copy->done, copy->total) == 0)
        return PAWL_OK;
    return pawl_fail(err, PAWL_CANCELED, "canceled", "the copy was abandoned by its caller");
}

/* What the source turns out to be is a reason against it; *ret_is_source tells whose failure it was. */
static enum pawl_status
copy_bytes(struct copy *copy, const struct pawl_file *from, const struct pawl_receipt *row, struct pawl_writer *to,
           bool *ret_is_source, struct pawl_error *err)
{
    struct pawl_sha256 *hash = NULL;
    unsigned char digest[32];
    enum pawl_status st = pawl_sha256_new(&hash, err);
    for (uint64_t at = 0; st == PAWL_OK && at < row->bytes;) {
        size_t n = row->bytes - at < BLOCK_BYTES ? (size_t)(row->bytes - at) : BLOCK_BYTES;
        *ret_is_source = true;
        st = pawl_file_read(from, at, copy->block, n, err);
        if (st != PAWL_OK)
            break;
        *ret_is_source = false;
        pawl_sha256_update(hash, copy->block, n);
        st = pawl_writer_add(to, copy->block, n, err);
        if (st == PAWL_OK)
            st = tell(copy, n, err);
        at += n;
    }
    if (st == PAWL_OK) {
        pawl_sha256_finish(hash, digest);
        *ret_is_source = true;
        st = pawl_step_check_digest(row, digest, err);
    }
    pawl_sha256_free(hash);
    return st;
}

static enum pawl_status
copy_listed(struct copy *copy, const struct pawl_receipt *row, struct pawl_error *err)
{
    struct pawl_dir from_dir = PAWL_DIR_INIT;
    struct pawl_dir to_dir = PAWL_DIR_INIT;
    struct pawl_file from = PAWL_FILE_INIT;
    struct pawl_writer to = PAWL_WRITER_INIT;
    const struct pawl_tap no_tap = { NULL, NULL };
    const char *last = NULL;
    bool is_source = false;
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    char *from_name = pawl_str_dup(row->name);
    char *to_name = pawl_str_dup(row->name);
    if (from_name == NULL || to_name == NULL) {
        st = pawl_fail_memory(&own, row->name.len + 1);
        goto out;
    }
    is_source = true;
    st = open_folder(&copy->source->dir, from_name, false, &from_dir, &last, &own);
    if (st == PAWL_OK)
        st = pawl_file_open_in(&from, &from_dir, last, 0, &own);
    if (st == PAWL_OK && from.bytes != row->bytes)
        st = pawl_fail(&own, PAWL_TRUNCATED, "size", "expected %" PRIu64 " bytes, found %" PRIu64, row->bytes,
                       from.bytes);
    if (st != PAWL_OK)
        goto out;
    is_source = false;
    st = open_folder(&copy->dir, to_name, true, &to_dir, &last, &own);
    if (st == PAWL_OK)
        st = pawl_writer_create(&to, &to_dir, last, row->bytes, no_tap, &own);
    if (st == PAWL_OK)
        st = copy_bytes(copy, &from, row, &to, &is_source, &own);
    if (st == PAWL_OK)
        st = pawl_writer_sync(&to, &own);
    if (st == PAWL_OK)
        st = pawl_writer_close(&to, &own);
out:
    pawl_writer_abandon(&to);
    pawl_file_release(&from);
    pawl_dir_release(&from_dir);
    pawl_dir_release(&to_dir);
    free(from_name);
    free(to_name);
    if (st != PAWL_OK && is_source && pawl_step_is_content_fault(st)) {
        pawl_report_begin_verdict(copy->report, copy->source->name, PAWL_KIND_CHECKPOINT);
        pawl_report_problem_error(copy->report, NULL, row->name, &own);
        if (strcmp(own.code, "hash") == 0)
            pawl_step_tell_damage(copy->source, row, copy->report);
        pawl_report_end_verdict(copy->report);
        st = pawl_context(&own, PAWL_INCOMPLETE, "%s is not complete: %s", PAWL_SHOW(copy->source->name),
                          PAWL_SHOW(row->name));
        own.status = st;
    }
    if (st != PAWL_OK && err != NULL)
        *err = own;
    return st;
}

static enum pawl_status
copy_manifest(struct copy *copy, struct pawl_error *err)
{
    struct pawl_file from = PAWL_FILE_INIT;
    struct pawl_writer to = PAWL_WRITER_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    const struct pawl_tap no_tap = { NULL, NULL };
    enum pawl_status st = pawl_file_open_in(&from, &copy->source->dir, PAWL_MANIFEST, 0, err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&from, PAWL_DOCUMENT_BYTES_MAX, &text, err);
    if (st == PAWL_OK)
        st = pawl_writer_create(&to, &copy->dir, PAWL_MANIFEST, text.len, no_tap, err);
    if (st == PAWL_OK)
        st = pawl_writer_add(&to, text.data, text.len, err);
    if (st == PAWL_OK)
        st = pawl_writer_sync(&to, err);
    if (st == PAWL_OK)
        st = pawl_writer_close(&to, err);
    pawl_writer_abandon(&to);
    pawl_buffer_release(&text);
    pawl_file_release(&from);
    return st;
}

/* ---- all files ---- */

/* Sync every folder on the way to a listed file, and drop the file from the cache, so that what is read back comes from the device. */
static enum pawl_status
settle_file(struct copy *copy, const struct pawl_receipt *row, struct pawl_error *err)
{
    struct pawl_dir folder = PAWL_DIR_INIT;
    struct pawl_file file = PAWL_FILE_INIT;
    const char *last = NULL;
    enum pawl_status st = PAWL_OK;
    char *name = malloc(row->name.len + 1);
    if (name == NULL)
        return pawl_fail_memory(err, row->name.len + 1);
    for (size_t i = 0; i <= row->name.len && st == PAWL_OK; i++) {
        bool is_end = i == row->name.len;
        if (!is_end && row->name.data[i] != '/')
            continue;
        size_t len = is_end ? i : i + 1; /* "a/": the folder a */
        memcpy(name, row->name.data, len);
        name[len] = '\0';
        st = open_folder(&copy->dir, name, false, &folder, &last, err);
        if (st == PAWL_OK && !is_end)
            st = pawl_dir_sync(&folder, NULL, err);
        if (st == PAWL_OK && is_end && pawl_file_open_in(&file, &folder, last, 0, NULL) == PAWL_OK)
            (void)copy->os->file_advise(copy->os->context, file.handle, 0, row->bytes, PAWL_OS_DONT_NEED);
        pawl_file_release(&file);
        pawl_dir_release(&folder);
    }
    free(name);
    return st;
}

static enum pawl_status
read_back(struct copy *copy, struct pawl_error *err)
{
    const struct pawl_step_options options = { .trust = PAWL_TRUST_FULL };
    struct pawl_step step = { .number = -1 };
    struct pawl_report *found = pawl_report_new();
    if (found == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st = pawl_step_examine(&step, &copy->parent, copy->tmp, &options, found, err);
    if (st == PAWL_OK)
        pawl_report_end_verdict(found);
    if (st == PAWL_OK && (!step.is_complete || step.number != copy->source->number)) {
        size_t n = 0;
        const struct pawl_verdict *verdicts = pawl_report_verdicts(found, &n);
        const struct pawl_problem *first = n != 0 && verdicts[0].n_problems != 0 ? verdicts[0].problems : NULL;
        st = pawl_fail(err, PAWL_CORRUPT, first == NULL ? "content" : first->code,
                       "the copy does not read back as it was written: %s%s%s",
                       first == NULL || first->file.data == NULL ? "" : PAWL_SHOW(first->file),
                       first == NULL || first->file.data == NULL ? "" : ": ",
                       first == NULL ? "another step" : first->message);
    }
    pawl_step_release(&step);
    pawl_report_free(found);
    return st;
}

static enum pawl_status
fill(struct copy *copy, struct pawl_error *err)
{
    const struct pawl_manifest *manifest = &copy->source->manifest;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < manifest->n; i++)
        copy->total += manifest->files[i].bytes;
    st = pawl_dir_check_space(&copy->parent, copy->total, err);
    if (st == PAWL_OK)
        st = make_temporary(copy, err);
    copy->block = st == PAWL_OK ? malloc(BLOCK_BYTES) : NULL;
    if (st == PAWL_OK && copy->block == NULL)
        st = pawl_fail_memory(err, BLOCK_BYTES);
    for (size_t i = 0; i < manifest->n && st == PAWL_OK; i++)
        st = copy_listed(copy, &manifest->files[i], err);
    if (st == PAWL_OK)
        st = copy_manifest(copy, err);
    for (size_t i = 0; i < manifest->n && st == PAWL_OK; i++)
        st = settle_file(copy, &manifest->files[i], err);
    if (st == PAWL_OK)
        st = pawl_dir_sync(&copy->dir, NULL, err);
    pawl_dir_release(&copy->dir);
    if (st == PAWL_OK)
        st = read_back(copy, err);
    free(copy->block);
    return st;
}

/* ---- the name ---- */

static enum pawl_status
publish_new(struct copy *copy, struct pawl_error *err)
{
    struct pawl_os_stat status;
    enum pawl_status st = pawl_dir_rename(&copy->parent, copy->tmp, copy->name, PAWL_OS_NO_REPLACE, err);
    if (st == PAWL_UNSUPPORTED) {
        st = pawl_dir_stat(&copy->parent, copy->name, &status, err);
        if (st == PAWL_OK)
            st = PAWL_EXISTS;
        else if (st == PAWL_NO_FILE)
            st = pawl_dir_rename(&copy->parent, copy->tmp, copy->name, PAWL_OS_REPLACE, err);
    }
    if (st == PAWL_EXISTS)
        return fail_exists(copy, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_dir_sync(&copy->parent, NULL, err);
    if (st == PAWL_OK)
        copy->tmp[0] = '\0'; /* nothing is left to remove */
    else if (pawl_dir_rename(&copy->parent, copy->name, copy->tmp, PAWL_OS_REPLACE, NULL) != PAWL_OK ||
             pawl_dir_sync(&copy->parent, NULL, NULL) != PAWL_OK)
        copy->tmp[0] = '\0'; /* nobody knows which name the disk has: it is whole under either */
    return st;
}

/* The old one is whole at every instant: under the name, or aside. */
static enum pawl_status
publish_aside(struct copy *copy, struct pawl_error *err)
{
    enum pawl_status st = pawl_dir_rename(&copy->parent, copy->name, copy->aside, PAWL_OS_REPLACE, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_dir_sync(&copy->parent, NULL, err);
    if (st == PAWL_OK)
        st = pawl_dir_rename(&copy->parent, copy->tmp, copy->name, PAWL_OS_REPLACE, err);
    if (st != PAWL_OK) {
        (void)pawl_dir_rename(&copy->parent, copy->aside, copy->name, PAWL_OS_REPLACE, NULL);
        (void)pawl_dir_sync(&copy->parent, NULL, NULL);
        return st;
    }
    copy->tmp[0] = '\0';
    st = pawl_dir_sync(&copy->parent, NULL, err);
    if (st == PAWL_OK && pawl_dir_remove_tree(&copy->parent, copy->aside, NULL) != PAWL_OK)
        pawl_warn(&copy->warner, "not-deleted", copy->aside, "what was replaced could not be deleted");
    return st;
}

static enum pawl_status
publish(struct copy *copy, struct pawl_error *err)
{
    struct pawl_os_stat status;
    enum pawl_status st = pawl_dir_stat(&copy->parent, copy->name, &status, err);
    if (st == PAWL_NO_FILE)
        return publish_new(copy, err);
    if (st != PAWL_OK)
        return st;
    if (!copy->options.replace)
        return fail_exists(copy, err);
    /* Names before deleting: a crashed writer's are made sure of first. */
    if (copy->is_step_name) {
        st = pawl_root_settle(&copy->parent, &copy->warner, err);
        if (st != PAWL_OK)
            return st;
    }
    st = pawl_dir_rename(&copy->parent, copy->tmp, copy->name, PAWL_OS_EXCHANGE, err);
    if (st == PAWL_UNSUPPORTED)
        return publish_aside(copy, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_dir_sync(&copy->parent, NULL, err);
    if (st != PAWL_OK && (pawl_dir_rename(&copy->parent, copy->tmp, copy->name, PAWL_OS_EXCHANGE, NULL) != PAWL_OK ||
                          pawl_dir_sync(&copy->parent, NULL, NULL) != PAWL_OK))
        copy->tmp[0] = '\0'; /* both are whole, and nobody knows which is which on the disk */
    return st;
}

/* ---- the public call ---- */

/* A verdict on the copy, under its path. */
static enum pawl_status
tell_copy(struct copy *copy, struct pawl_error *err)
{
    size_t len = strlen(copy->parent.path);
    size_t size = len + strlen(copy->name) + 2;
    char *path = malloc(size);
    if (path == NULL)
        return pawl_fail_memory(err, size);
    bool has_slash = len != 0 && copy->parent.path[len - 1] == '/';
    (void)snprintf(path, size, "%s%s%s", copy->parent.path, has_slash ? "" : "/", copy->name);
    pawl_report_begin_verdict(copy->report, pawl_str_z(path), PAWL_KIND_CHECKPOINT);
    pawl_report_count(copy->report, copy->source->manifest.n, copy->total);
    pawl_report_end_verdict(copy->report);
    free(path);
    return PAWL_OK;
}

static enum pawl_status
copy_step(struct copy *copy, struct pawl_str dest, struct pawl_error *err)
{
    struct pawl_os_stat status;
    enum pawl_status st = aim(copy, dest, err);
    if (st == PAWL_OK)
        st = lock_parent(copy, err);
    if (st == PAWL_OK && !copy->options.replace) {
        /* Before the work; asked again, in one step, at its end. */
        st = pawl_dir_stat(&copy->parent, copy->name, &status, err);
        st = st == PAWL_OK ? fail_exists(copy, err) : st == PAWL_NO_FILE ? PAWL_OK : st;
    }
    if (st == PAWL_OK)
        st = fill(copy, err);
    if (st == PAWL_OK)
        st = tell_copy(copy, err); /* before the name: nothing fails after it */
    if (st == PAWL_OK && !pawl_report_ok(copy->report))
        st = pawl_fail_memory(err, 1);
    if (st == PAWL_OK)
        st = publish(copy, err);
    pawl_dir_release(&copy->dir);
    if (copy->tmp[0] != '\0' && pawl_dir_remove_tree(&copy->parent, copy->tmp, NULL) != PAWL_OK)
        pawl_warn(&copy->warner, "not-deleted", copy->tmp, "the temporary could not be deleted");
    if (copy->is_locked)
        pawl_dir_unlock(&copy->parent);
    pawl_dir_release(&copy->parent);
    free(copy->name);
    return st;
}

enum pawl_status
pawl_ckpt_copy_os(const struct pawl_os *os, struct pawl_str step, struct pawl_str dest,
                  const struct pawl_copy_options *options, struct pawl_report **ret_report, struct pawl_error *err)
{
    struct copy copy = { .os = os, .options = { .size = sizeof copy.options } };
    struct pawl_ckpt *source = NULL;
    struct pawl_report *report = NULL;
    enum pawl_status st = PAWL_OK;
    if (ret_report != NULL)
        *ret_report = NULL;
    if (options != NULL)
        st = pawl_options_take(&copy.options, sizeof copy.options, options, options->size, "struct pawl_copy_options",
                               err);
    if (st != PAWL_OK)
        return st;
    /* Sizes now, bytes as they are copied. */
    st = pawl_ckpt_open_os(os, step, &PAWL_CKPT_OPTIONS(.trust = PAWL_TRUST_SIZE_ONLY), &source, &report, err);
    if (st == PAWL_OK) {
        copy.report = report;
        copy.warner = (struct pawl_warner){ NULL, NULL, report };
        copy.source = &source->step;
        st = copy_step(&copy, dest, err);
    }
    if (st != PAWL_OK)
        st = pawl_context(err, st, "copy");
    pawl_ckpt_close(source);
    if (ret_report != NULL)
        *ret_report = report;
    else
        pawl_report_free(report);
    return st;
}

enum pawl_status
pawl_ckpt_copy(struct pawl_str step, struct pawl_str dest, const struct pawl_copy_options *options,
               struct pawl_report **ret_report, struct pawl_error *err)
{
    return pawl_ckpt_copy_os(pawl_os_posix(), step, dest, options, ret_report, err);
}
