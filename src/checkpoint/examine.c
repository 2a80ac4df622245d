/*
 * The verdict on one step directory, in this order: the entry, the manifest, what is listed and what is there, sizes and
 * hashes, contents (step_content.c). Nothing is concluded from a file whose size or hash is wrong.
 */
#include "checkpoint/examine.h"

#include <inttypes.h>
#include <stdlib.h>
#include "checkpoint/blocks.h"
#include "checkpoint/hashing.h"
#include "checkpoint/names.h"
#include "checkpoint/step_content.h"
#include "pawl/digest.h"

bool
pawl_step_is_content_fault(enum pawl_status status)
{
    return status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_IO || status == PAWL_NO_FILE ||
           status == PAWL_LIMIT;
}

void
pawl_step_release(struct pawl_step *step)
{
    pawl_set_release(&step->model);
    pawl_set_release(&step->optimizer);
    pawl_buffer_release(&step->stream_text);
    pawl_buffer_release(&step->sums_text);
    pawl_dir_release(&step->dir);
    pawl_arena_release(&step->arena);
    *step = (struct pawl_step){ .number = -1 };
}

const struct pawl_receipt *
pawl_step_row(const struct pawl_step *step, struct pawl_str name)
{
    return pawl_manifest_find(&step->manifest, name);
}

/* ---- one listed file ---- */

/* Open the directory that a listed name is in, component by component: a link on the way is not followed. */
static enum pawl_status
open_folder(const struct pawl_step *step, struct pawl_str name, struct pawl_dir *ret_dir, const char **ret_last,
            struct pawl_error *err)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    size_t begin = 0;
    const char *slash;
    while ((slash = memchr(name.data + begin, '/', name.len - begin)) != NULL) {
        struct pawl_dir inner = PAWL_DIR_INIT;
        char *part = pawl_str_dup(pawl_str_make(name.data + begin, (size_t)(slash - name.data) - begin));
        if (part == NULL) {
            pawl_dir_release(&dir);
            return pawl_fail_memory(err, name.len);
        }
        enum pawl_status st = pawl_dir_open_in(&inner, dir.handle == NULL ? &step->dir : &dir, part, err);
        free(part);
        pawl_dir_release(&dir);
        if (st != PAWL_OK)
            return st;
        dir = inner;
        begin = (size_t)(slash - name.data) + 1;
    }
    *ret_dir = dir; /* closed: the step's own */
    *ret_last = name.data + begin;
    return PAWL_OK;
}

static enum pawl_status
open_listed_once(const struct pawl_step *step, const struct pawl_receipt *row, struct pawl_file *ret_file,
                 struct pawl_error *err)
{
    struct pawl_dir folder = PAWL_DIR_INIT;
    const char *last = NULL;
    enum pawl_status st = open_folder(step, row->name, &folder, &last, err);
    if (st != PAWL_OK)
        return st;
    char *text = pawl_str_dup(pawl_str_make(last, row->name.len - (size_t)(last - row->name.data)));
    if (text == NULL)
        st = pawl_fail_memory(err, row->name.len);
    else
        st = pawl_file_open_in(ret_file, folder.handle == NULL ? &step->dir : &folder, text, 0, err);
    free(text);
    pawl_dir_release(&folder);
    if (st != PAWL_OK)
        return st;
    if (ret_file->bytes != row->bytes) {
        st = pawl_fail(err, PAWL_TRUNCATED, "size", "expected %" PRIu64 " bytes, found %" PRIu64, row->bytes,
                       ret_file->bytes);
        pawl_error_path(err, pawl_str_z(ret_file->path));
        pawl_file_release(ret_file);
    }
    return st;
}

/* An I/O error is believed when a second try repeats it; readings do that by themselves. */
static enum pawl_status
open_listed(const struct pawl_step *step, const struct pawl_receipt *row, struct pawl_file *ret_file,
            struct pawl_error *err)
{
    enum pawl_status st = open_listed_once(step, row, ret_file, err);
    return st == PAWL_IO ? open_listed_once(step, row, ret_file, err) : st;
}

enum pawl_status
pawl_step_check_digest(const struct pawl_receipt *row, const unsigned char digest[32], struct pawl_error *err)
{
    char expected[65];
    char found[65];
    if (memcmp(row->sha256, digest, 32) == 0)
        return PAWL_OK;
    pawl_sha256_print(row->sha256, expected);
    pawl_sha256_print(digest, found);
    return pawl_fail(err, PAWL_CORRUPT, "hash", "expected sha256 %s, found %s", expected, found);
}

/* The word of the page for a fault of a listed file that could not be read as it should. */
static enum pawl_status
name_fault(enum pawl_status st, struct pawl_error *err)
{
    if (st == PAWL_NO_FILE || (st == PAWL_CORRUPT && strcmp(err->code, "not-a-file") == 0))
        pawl_error_code(err, "missing-file");
    else if (st == PAWL_TRUNCATED)
        pawl_error_code(err, "size");
    else if (st == PAWL_IO)
        pawl_error_code(err, "io");
    return st;
}

enum pawl_status
pawl_step_read_file(const struct pawl_step *step, const struct pawl_receipt *row, size_t bytes_max,
                    struct pawl_buffer *ret_bytes, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    unsigned char digest[32];

    enum pawl_status st = open_listed(step, row, &file, &own);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, bytes_max, ret_bytes, &own);
    if (st == PAWL_OK && step->trust != PAWL_TRUST_SIZE_ONLY) {
        st = pawl_sha256_of(ret_bytes->data, ret_bytes->len, digest, &own);
        if (st == PAWL_OK)
            st = pawl_step_check_digest(row, digest, &own);
        pawl_error_path(&own, pawl_str_z(file.path));
    }
    pawl_file_release(&file);
    if (st != PAWL_OK) {
        (void)name_fault(st, &own);
        if (err != NULL)
            *err = own;
    }
    return st;
}

void
pawl_step_tell_damage(const struct pawl_step *step, const struct pawl_receipt *row, struct pawl_report *report)
{
    static const struct pawl_set_options options = { .index_inside_only = true };
    const struct pawl_sums_file *sums = pawl_sums_find(&step->sums, row->name);
    struct pawl_set set = PAWL_SET_INIT;
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_blocks blocks = { .file = NULL };
    struct pawl_bad_block bad;
    size_t n_bad;
    char *name = sums == NULL ? NULL : pawl_str_dup(row->name);
    if (name == NULL)
        return;
    /* That the file is damaged is told already: what can't be found out here is not. */
    bool is_set = pawl_set_open_file(&set, &step->dir, name, &options, NULL) == PAWL_OK;
    bool is_open = is_set || pawl_file_open_in(&file, &step->dir, name, 0, NULL) == PAWL_OK;
    const struct pawl_file *at = is_set ? &set.files[0].file : &file;
    if (is_open && at->bytes == sums->bytes && pawl_blocks_init(&blocks, at, sums, NULL) == PAWL_OK &&
        pawl_blocks_check(&blocks, 0, sums->bytes, &bad, &n_bad, NULL) == PAWL_OK)
        pawl_blocks_tell(&blocks, is_set ? &set.files[0] : NULL, report);
    pawl_blocks_release(&blocks);
    pawl_set_release(&set);
    pawl_file_release(&file);
    free(name);
}

/* What a reading of a listed file came to: its state, and a problem when it is wrong. A fault of the machine is returned. */
static enum pawl_status
settle(struct pawl_step *step, const struct pawl_receipt *row, enum pawl_status st, struct pawl_report *report,
       struct pawl_error *own, struct pawl_error *err)
{
    struct pawl_step_file *file = &step->files[row - step->manifest.files];
    if (st == PAWL_OK) {
        file->state = PAWL_STEP_FILE_RIGHT;
        return PAWL_OK;
    }
    (void)name_fault(st, own);
    if (!pawl_step_is_content_fault(st)) {
        if (err != NULL)
            *err = *own;
        return st;
    }
    file->state = PAWL_STEP_FILE_WRONG;
    pawl_report_problem_error(report, NULL, row->name, own);
    if (strcmp(own->code, "hash") == 0)
        pawl_step_tell_damage(step, row, report);
    return PAWL_OK;
}

enum pawl_status
pawl_step_hash_listed(struct pawl_step *step, const struct pawl_receipt *row, struct pawl_report *report,
                      struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_sha256 *hash = NULL;
    struct pawl_error own = PAWL_ERROR_INIT;
    unsigned char digest[32];

    if (step->files[row - step->manifest.files].state != PAWL_STEP_FILE_THERE)
        return PAWL_OK;
    if (step->trust == PAWL_TRUST_SIZE_ONLY)
        return settle(step, row, PAWL_OK, report, &own, err);
    enum pawl_status st = open_listed(step, row, &file, &own);
    if (st == PAWL_OK)
        st = pawl_sha256_new(&hash, &own);
    if (st == PAWL_OK) {
        struct pawl_hash_job job = { .file = &file, .hash = hash };
        pawl_hash_files(&job, 1);
        st = job.status;
        own = job.error;
    }
    if (st == PAWL_OK) {
        pawl_sha256_finish(hash, digest);
        st = pawl_step_check_digest(row, digest, &own);
    }
    pawl_sha256_free(hash);
    pawl_file_release(&file);
    return settle(step, row, st, report, &own, err);
}

void
pawl_step_hash_header(struct pawl_sha256 *hash, const struct pawl_set_file *file)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(file->header.header_bytes >> (8 * i));
    pawl_sha256_update(hash, length, sizeof length);
    const unsigned char *text = file->header.original != NULL ? file->header.original : file->header.text;
    pawl_sha256_update(hash, text, (size_t)file->header.header_bytes);
}

/* The hash of one file of a set. */
struct set_hash {
    const struct pawl_receipt *row; /* NULL: the agreement of index and shards has said so */
    enum pawl_status status;
    struct pawl_error error;
    struct pawl_sha256 *hash; /* NULL: none is wanted */
    unsigned char digest[32]; /* when it was */
};

static bool
is_unhashed(const struct pawl_step *step, const struct pawl_receipt *row)
{
    return row != NULL && step->files[row - step->manifest.files].state == PAWL_STEP_FILE_THERE;
}

/* The handle that a reader gets is what is hashed, beginning with the very bytes that were parsed. */
static void
begin_set_hash(struct pawl_step *step, const struct pawl_set_file *file, struct set_hash *to)
{
    to->row = pawl_step_row(step, file->name);
    to->error = (struct pawl_error)PAWL_ERROR_INIT;
    if (!is_unhashed(step, to->row))
        return;
    if (file->file.bytes != to->row->bytes)
        to->status = pawl_fail(&to->error, PAWL_TRUNCATED, "size", "expected %" PRIu64 " bytes, found %" PRIu64,
                               to->row->bytes, file->file.bytes);
    else if (step->trust == PAWL_TRUST_SIZE_ONLY)
        return;
    else if (step->files[to->row - step->manifest.files].ahead == file->file.handle)
        to->status =
            pawl_step_check_digest(to->row, step->files[to->row - step->manifest.files].ahead_digest, &to->error);
    else
        to->status = pawl_sha256_new(&to->hash, &to->error);
    if (to->hash != NULL)
        pawl_step_hash_header(to->hash, file);
}

static void
end_set_hash(struct set_hash *to, const struct pawl_hash_job *job)
{
    to->status = job->status;
    to->error = job->error;
    if (to->status == PAWL_OK) {
        pawl_sha256_finish(to->hash, to->digest);
        to->status = pawl_step_check_digest(to->row, to->digest, &to->error);
    }
}

/* Hash the files of some sets, at once; hashes[] has room for all of them, in order, zeroed. */
static enum pawl_status
hash_sets(struct pawl_step *step, const struct pawl_set *const *sets, size_t n_sets, struct set_hash *hashes,
          size_t n_files, struct pawl_error *err)
{
    struct pawl_hash_job *jobs = calloc(n_files + 1, sizeof *jobs);
    size_t n_jobs = 0;
    size_t at = 0;
    if (jobs == NULL)
        return pawl_fail_memory(err, (n_files + 1) * sizeof *jobs);
    for (size_t k = 0; k < n_sets; k++) {
        for (size_t i = 0; i < sets[k]->n_files; i++, at++) {
            const struct pawl_set_file *file = &sets[k]->files[i];
            begin_set_hash(step, file, &hashes[at]);
            if (hashes[at].hash != NULL)
                jobs[n_jobs++] = (struct pawl_hash_job){ .file = &file->file,
                                                         .from = file->header.data_begin,
                                                         .hash = hashes[at].hash };
        }
    }
    pawl_hash_files(jobs, n_jobs);
    n_jobs = 0;
    for (size_t i = 0; i < n_files; i++) {
        if (hashes[i].hash != NULL)
            end_set_hash(&hashes[i], &jobs[n_jobs++]);
        pawl_sha256_free(hashes[i].hash);
        hashes[i].hash = NULL;
    }
    free(jobs);
    return PAWL_OK;
}

enum pawl_status
pawl_step_hash_sets(struct pawl_step *step, const struct pawl_set *const *sets, size_t n_sets,
                    struct pawl_report *report, bool *ret_all_right, struct pawl_error *err)
{
    bool all_right = true;
    size_t n_files = 0;
    for (size_t k = 0; k < n_sets; k++)
        n_files += sets[k]->n_files;
    struct set_hash *hashes = calloc(n_files + 1, sizeof *hashes);
    if (hashes == NULL)
        return pawl_fail_memory(err, (n_files + 1) * sizeof *hashes);
    enum pawl_status st = hash_sets(step, sets, n_sets, hashes, n_files, err);
    for (size_t i = 0; i < n_files && st == PAWL_OK; i++) {
        if (hashes[i].row == NULL)
            continue;
        step->files[hashes[i].row - step->manifest.files].ahead = NULL;
        if (is_unhashed(step, hashes[i].row))
            st = settle(step, hashes[i].row, hashes[i].status, report, &hashes[i].error, err);
        all_right = all_right && step->files[hashes[i].row - step->manifest.files].state == PAWL_STEP_FILE_RIGHT;
    }
    free(hashes);
    if (st == PAWL_OK)
        *ret_all_right = all_right;
    return st;
}

void
pawl_step_hash_ahead(struct pawl_step *step, const struct pawl_set *const *sets, size_t n_sets)
{
    size_t n_files = 0;
    size_t at = 0;
    for (size_t k = 0; k < n_sets; k++)
        n_files += sets[k]->n_files;
    struct set_hash *hashes = calloc(n_files + 1, sizeof *hashes);
    if (hashes == NULL || hash_sets(step, sets, n_sets, hashes, n_files, NULL) != PAWL_OK) {
        free(hashes);
        return;
    }
    for (size_t k = 0; k < n_sets; k++) {
        for (size_t i = 0; i < sets[k]->n_files; i++, at++) {
            if (hashes[at].row == NULL || hashes[at].status != PAWL_OK || step->trust != PAWL_TRUST_FULL ||
                !is_unhashed(step, hashes[at].row))
                continue;
            struct pawl_step_file *file = &step->files[hashes[at].row - step->manifest.files];
            file->ahead = sets[k]->files[i].file.handle;
            memcpy(file->ahead_digest, hashes[at].digest, sizeof file->ahead_digest);
        }
    }
    free(hashes);
}

enum pawl_status
pawl_step_hash_set(struct pawl_step *step, const struct pawl_set *set, struct pawl_report *report, bool *ret_all_right,
                   struct pawl_error *err)
{
    return pawl_step_hash_sets(step, &set, 1, report, ret_all_right, err);
}

/* ---- the manifest ---- */

/* What is in the way of using it: the only reason then. */
static void
manifest_fault(struct pawl_report *report, const char *code, const char *message)
{
    pawl_report_problem(report, code, PAWL_STR(PAWL_MANIFEST), PAWL_NO_STR, PAWL_OFFSET_NONE, "%s", message);
}

static enum pawl_status
read_manifest(struct pawl_step *step, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    struct pawl_os_stat status;

    enum pawl_status st = pawl_dir_stat(&step->dir, PAWL_MANIFEST, &status, &own);
    if (st == PAWL_IO)
        st = pawl_dir_stat(&step->dir, PAWL_MANIFEST, &status, &own);
    if (st == PAWL_NO_FILE) {
        manifest_fault(report, "missing-file", "there is no manifest: the directory was never finished, or is cut");
        return PAWL_OK;
    }
    if (st == PAWL_OK && status.kind != PAWL_OS_FILE) {
        manifest_fault(report, "manifest",
                       status.kind == PAWL_OS_DIR    ? "expected a regular file, found a directory"
                       : status.kind == PAWL_OS_LINK ? "expected a regular file, found a symbolic link"
                                                     : "expected a regular file, found a FIFO, device or socket");
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = pawl_file_open_in(&file, &step->dir, PAWL_MANIFEST, 0, &own);
    if (st == PAWL_IO)
        st = pawl_file_open_in(&file, &step->dir, PAWL_MANIFEST, 0, &own);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_DOCUMENT_BYTES_MAX, &text, &own);
    if (st == PAWL_OK)
        st = pawl_manifest_parse(&step->arena, &step->manifest, text.data, text.len, &own);
    if (st == PAWL_OK && !pawl_str_equal(step->manifest.kind, PAWL_STR("checkpoint")))
        st = pawl_fail(&own, PAWL_CORRUPT, "manifest", "kind: expected \"checkpoint\", found \"%s\"",
                       PAWL_SHOW(step->manifest.kind));
    pawl_buffer_release(&text);
    pawl_file_release(&file);
    if (st == PAWL_OK) {
        step->files = pawl_arena_take_array(&step->arena, step->manifest.n, sizeof *step->files);
        if (step->files == NULL)
            return pawl_fail_memory(err, step->manifest.n * sizeof *step->files);
        memset(step->files, 0, step->manifest.n * sizeof *step->files);
        step->has_manifest = true;
        return PAWL_OK;
    }
    step->manifest = (struct pawl_manifest){ 0 };
    if (!pawl_step_is_content_fault(st)) {
        if (err != NULL)
            *err = own;
        return st;
    }
    pawl_report_problem_error(report,
                              st == PAWL_IO        ? "io"
                              : st == PAWL_NO_FILE ? "missing-file"
                                                   : "manifest",
                              PAWL_STR(PAWL_MANIFEST), &own);
    return PAWL_OK;
}

/* ---- what is listed, and what is there ---- */

/* Does the manifest list something inside the directory `name`? */
static bool
holds_listed(const struct pawl_manifest *manifest, struct pawl_str name)
{
    size_t begin = 0;
    size_t end = manifest->n;
    while (begin < end) { /* the first row that is not below `name` + "/" */
        size_t middle = begin + (end - begin) / 2;
        struct pawl_str row = manifest->files[middle].name;
        int order = pawl_str_compare(row, name);
        if (order == 0)
            order = -1; /* the name itself, as a file: what is inside it would follow */
        else if (pawl_str_starts(row, name))
            order = (unsigned char)row.data[name.len] - (unsigned char)'/';
        if (order == 0)
            return true;
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return false;
}

/* Directories still to look into, by their name inside the step; "" is the step itself. */
struct folder {
    struct folder *next;
    struct pawl_str name;
};

static enum pawl_status
join_names(struct pawl_arena *arena, struct pawl_str folder, struct pawl_str name, struct pawl_str *ret,
           struct pawl_error *err)
{
    if (folder.len == 0) {
        if (!pawl_arena_copy_str(arena, name, ret))
            return pawl_fail_memory(err, name.len);
        return PAWL_OK;
    }
    size_t len = folder.len + 1 + name.len;
    char *text = pawl_arena_take(arena, len + 1);
    if (text == NULL)
        return pawl_fail_memory(err, len + 1);
    memcpy(text, folder.data, folder.len);
    text[folder.len] = '/';
    memcpy(text + folder.len + 1, name.data, name.len);
    text[len] = '\0';
    *ret = pawl_str_make(text, len);
    return PAWL_OK;
}

static const char *
kind_text(enum pawl_os_kind kind)
{
    return kind == PAWL_OS_DIR    ? "a directory"
           : kind == PAWL_OS_LINK ? "a symbolic link"
           : kind == PAWL_OS_FILE ? "a file"
                                  : "a FIFO, device or socket";
}

/* A listed name that is there: is it a regular file of the listed size? */
static enum pawl_status
check_listed(struct pawl_step *step, const struct pawl_dir *dir, const struct pawl_dir_entry *entry,
             const struct pawl_receipt *row, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_step_file *file = &step->files[row - step->manifest.files];
    struct pawl_os_stat status;
    struct pawl_error own = PAWL_ERROR_INIT;

    file->is_reported = true;
    if (entry->kind != PAWL_OS_FILE) {
        pawl_report_problem(report, "missing-file", row->name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "expected a regular file, found %s", kind_text(entry->kind));
        return PAWL_OK;
    }
    enum pawl_status st = pawl_dir_stat(dir, entry->name, &status, &own);
    if (st == PAWL_IO)
        st = pawl_dir_stat(dir, entry->name, &status, &own);
    if (st == PAWL_NO_FILE) {
        file->is_reported = false; /* gone meanwhile: as if it had not been listed */
        return PAWL_OK;
    }
    if (st != PAWL_OK)
        return settle(step, row, st, report, &own, err);
    if (status.bytes != row->bytes) {
        file->state = PAWL_STEP_FILE_SIZE;
        pawl_report_problem(report, "size", row->name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "expected %" PRIu64 " bytes, found %" PRIu64, row->bytes, status.bytes);
        return PAWL_OK;
    }
    file->state = PAWL_STEP_FILE_THERE;
    pawl_report_count(report, 1, status.bytes);
    return PAWL_OK;
}

static enum pawl_status
check_folder(struct pawl_step *step, struct pawl_arena *scratch, const struct pawl_dir *dir, struct folder **folders,
             struct pawl_str folder, bool *ret_is_listed, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_dir_list(dir, &list, &own);
    if (st == PAWL_IO)
        st = pawl_dir_list(dir, &list, &own);
    if (st == PAWL_IO) {
        *ret_is_listed = false;
        pawl_report_problem_error(report, "io", folder.len == 0 ? PAWL_NO_STR : folder, &own);
        return PAWL_OK;
    }
    if (st != PAWL_OK) {
        if (err != NULL)
            *err = own;
        return st;
    }
    for (size_t i = 0; i < list.n && st == PAWL_OK; i++) {
        const struct pawl_dir_entry *entry = &list.entries[i];
        struct pawl_str name;
        st = join_names(scratch, folder, pawl_str_z(entry->name), &name, err);
        if (st != PAWL_OK)
            break;
        const struct pawl_receipt *row = pawl_step_row(step, name);
        bool is_folder = entry->kind == PAWL_OS_DIR && holds_listed(&step->manifest, name);
        if (is_folder) {
            struct folder *more = pawl_arena_take(scratch, sizeof *more);
            if (more == NULL) {
                st = pawl_fail_memory(err, sizeof *more);
                break;
            }
            *more = (struct folder){ *folders, name };
            *folders = more;
        }
        if (row != NULL)
            st = check_listed(step, dir, entry, row, report, err);
        else if (!is_folder && !pawl_str_equal(name, PAWL_STR(PAWL_MANIFEST)))
            pawl_report_problem(report, "unlisted-file", name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                                "%s that the manifest does not list", kind_text(entry->kind));
    }
    pawl_dir_list_release(&list);
    return st;
}

/* Open a directory inside the step, by walking: no link is followed. */
static enum pawl_status
open_inside(const struct pawl_step *step, struct pawl_arena *scratch, struct pawl_str name, struct pawl_dir *ret_dir,
            struct pawl_error *err)
{
    struct pawl_str below;
    const char *last;
    enum pawl_status st = join_names(scratch, name, PAWL_STR("."), &below, err);
    return st == PAWL_OK ? open_folder(step, below, ret_dir, &last, err) : st;
}

/* Hold the listing of the directory against the manifest. Directories are kept in a list and not in the call stack. */
static enum pawl_status
check_entries(struct pawl_step *step, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_arena scratch = PAWL_ARENA_INIT;
    struct folder *folders = NULL;
    bool is_listed = true; /* else nothing can be said about what is missing */
    enum pawl_status st = check_folder(step, &scratch, &step->dir, &folders, PAWL_STR(""), &is_listed, report, err);
    while (st == PAWL_OK && folders != NULL) {
        struct folder *folder = folders;
        struct pawl_dir dir = PAWL_DIR_INIT;
        folders = folder->next;
        st = open_inside(step, &scratch, folder->name, &dir, err);
        if (st == PAWL_IO)
            st = open_inside(step, &scratch, folder->name, &dir, err);
        if (st == PAWL_IO) {
            pawl_report_problem(report, "io", folder->name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                                "the directory can't be opened: an I/O error, twice");
            is_listed = false;
            st = PAWL_OK;
            continue;
        }
        if (st == PAWL_NO_FILE) {
            st = PAWL_OK; /* gone meanwhile: what it held is missing */
            continue;
        }
        if (st == PAWL_OK)
            st = check_folder(step, &scratch, &dir, &folders, folder->name, &is_listed, report, err);
        pawl_dir_release(&dir);
    }
    pawl_arena_release(&scratch);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < step->manifest.n && is_listed; i++) {
        if (!step->files[i].is_reported)
            pawl_report_problem(report, "missing-file", step->manifest.files[i].name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                                "listed, and not there");
    }
    return PAWL_OK;
}

/* ---- the whole ---- */

/* Files that are neither tensors nor documents: nothing but their hash is looked at. */
static enum pawl_status
hash_others(struct pawl_step *step, struct pawl_report *report, struct pawl_error *err)
{
    for (size_t i = 0; i < step->manifest.n; i++) {
        const struct pawl_receipt *row = &step->manifest.files[i];
        bool is_tensors = pawl_tensor_file_of_name(row->name, PAWL_STR("model"), NULL, NULL) != PAWL_TENSOR_FILE_NO ||
                          pawl_tensor_file_of_name(row->name, PAWL_STR("optimizer"), NULL, NULL) != PAWL_TENSOR_FILE_NO;
        if (is_tensors)
            continue;
        enum pawl_status st = pawl_step_hash_listed(step, row, report, err);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

static enum pawl_status
examine_contents(struct pawl_step *step, const struct pawl_step_options *options, struct pawl_report *report,
                 struct pawl_error *err)
{
    enum pawl_status st = check_entries(step, report, err);
    if (st == PAWL_OK)
        st = pawl_step_check_content(step, options, report, err);
    bool is_lazy = options->trust == PAWL_TRUST_LAZY;
    if (st == PAWL_OK && !options->weights_only && !is_lazy)
        st = hash_others(step, report, err);
    /* A step that is passed over is to be reported with all its reasons: what was left to the reader is hashed after all. */
    if (st == PAWL_OK && options->defer_hash && !is_lazy && pawl_report_problem_count(report) != 0) {
        for (size_t i = 0; i < step->manifest.n && st == PAWL_OK; i++)
            st = pawl_step_hash_listed(step, &step->manifest.files[i], report, err);
    }
    return st;
}

/* step->dir and step->name are set. */
static enum pawl_status
examine(struct pawl_step *step, const struct pawl_step_options *options, struct pawl_report *report,
        struct pawl_error *err)
{
    enum pawl_status st = read_manifest(step, report, err);
    if (st == PAWL_OK && step->has_manifest)
        st = examine_contents(step, options, report, err);
    if (st == PAWL_OK && !pawl_report_ok(report))
        st = pawl_fail_memory(err, sizeof(struct pawl_problem));
    if (st != PAWL_OK)
        return pawl_context(err, st, "examine '%s'", PAWL_SHOW(step->name));
    step->is_complete = step->has_manifest && pawl_report_problem_count(report) == 0;
    return PAWL_OK;
}

static enum pawl_status
begin(struct pawl_step *step, const char *name, const struct pawl_step_options *options, struct pawl_report *report,
      struct pawl_error *err)
{
    *step = (struct pawl_step){ .number = -1, .trust = options->trust };
    if (report == NULL)
        return pawl_fail_memory(err, 1); /* the verdict is in the report: its owner had no memory for one */
    if (!pawl_arena_copy_str(&step->arena, pawl_str_z(name), &step->name))
        return pawl_fail_memory(err, strlen(name) + 1);
    return PAWL_OK;
}

static enum pawl_status
open_entry(struct pawl_step *step, const struct pawl_dir *parent, const char *name, struct pawl_os_stat *ret_status,
           struct pawl_error *err)
{
    enum pawl_status st = pawl_dir_stat(parent, name, ret_status, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_os_stat opened = *ret_status;
    if (ret_status->kind == PAWL_OS_DIR) {
        st = pawl_dir_open_in(&step->dir, parent, name, err);
        /* Of what was opened, which its handle keeps from becoming another: the name may have changed hands since, and the number of
         * a directory that is gone is given to the next. */
        if (st == PAWL_OK)
            st = pawl_dir_stat(&step->dir, ".", &opened, err);
        if (st != PAWL_OK)
            pawl_dir_release(&step->dir); /* it may be tried again */
    }
    step->device = opened.device;
    step->inode = opened.inode;
    return st;
}

enum pawl_status
pawl_step_examine(struct pawl_step *step, const struct pawl_dir *parent, const char *name,
                  const struct pawl_step_options *options, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_os_stat status;
    struct pawl_error own = PAWL_ERROR_INIT;
    int64_t number = -1;

    enum pawl_status st = begin(step, name, options, report, err);
    if (st != PAWL_OK)
        return st;
    enum pawl_root_entry entry = pawl_entry_of_name(step->name, &number);
    if (entry == PAWL_ENTRY_STEP || entry == PAWL_ENTRY_PREV)
        step->number = number;
    step->is_named = step->number >= 0;
    st = open_entry(step, parent, name, &status, &own);
    if (st == PAWL_IO)
        st = open_entry(step, parent, name, &status, &own);
    if (st != PAWL_OK && st != PAWL_IO) {
        if (err != NULL)
            *err = own;
        return st;
    }
    pawl_report_begin_verdict(report, step->name, PAWL_KIND_CHECKPOINT);
    if (st == PAWL_IO) {
        pawl_report_problem_error(report, "io", PAWL_NO_STR, &own);
        return PAWL_OK;
    }
    if (status.kind == PAWL_OS_DIR)
        return examine(step, options, report, err);
    pawl_report_problem(report, "not-a-directory", PAWL_NO_STR, PAWL_NO_STR, PAWL_OFFSET_NONE,
                        "expected a directory, found %s", kind_text(status.kind));
    return PAWL_OK;
}

enum pawl_status
pawl_step_examine_open(struct pawl_step *step, struct pawl_dir *dir, const char *name,
                       const struct pawl_step_options *options, struct pawl_report *report, struct pawl_error *err)
{
    enum pawl_status st = begin(step, name, options, report, err);
    step->dir = *dir;
    *dir = (struct pawl_dir)PAWL_DIR_INIT;
    if (st != PAWL_OK)
        return st;
    pawl_report_begin_verdict(report, step->name, PAWL_KIND_CHECKPOINT);
    return examine(step, options, report, err);
}
