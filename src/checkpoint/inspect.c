/* Whatever is at a path: what kind it is, opening it as a model, examining it. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "checkpoint/documents.h"
#include "checkpoint/examine.h"
#include "checkpoint/find.h"
#include "checkpoint/names.h"
#include "formats/tokens/manifest.h"
#include "model/model.h"
#include "os/path.h"
#include "pawl/digest.h"
#include "pawl/tokens.h"

/* Bytes of a file that are hashed at a time. */
#define HASH_BYTES ((size_t)1 << 20)

/* A path of the caller's while it is looked at. */
struct place {
    const struct pawl_os *os;
    char *path;
    struct pawl_dir dir; /* open when it is a directory */
    enum pawl_kind kind;
    uint64_t bytes; /* of a file */
};

static void
place_release(struct place *place)
{
    pawl_dir_release(&place->dir);
    free(place->path);
}

/* ---- what kind ---- */

/* `kind` of a MANIFEST.json; one that can't be used is a checkpoint's: the examination then tells what is wrong with it. */
static enum pawl_status
kind_of_manifest(const struct pawl_dir *dir, enum pawl_kind *ret_kind, struct pawl_error *err)
{
    struct pawl_os_stat stat;
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    struct pawl_manifest manifest;

    *ret_kind = PAWL_KIND_CHECKPOINT;
    enum pawl_status st = pawl_dir_stat(dir, PAWL_MANIFEST, &stat, &own);
    if (st == PAWL_OK && stat.kind != PAWL_OS_FILE)
        return PAWL_OK;
    if (st == PAWL_OK)
        st = pawl_file_open_in(&file, dir, PAWL_MANIFEST, 0, &own);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_DOCUMENT_BYTES_MAX, &text, &own);
    if (st == PAWL_OK)
        st = pawl_manifest_parse(&arena, &manifest, text.data, text.len, &own);
    if (st == PAWL_OK && pawl_str_equal(manifest.kind, PAWL_STR("release")))
        *ret_kind = PAWL_KIND_RELEASE;
    if (st != PAWL_OK && !pawl_status_is_machine_fault(st))
        st = PAWL_OK;
    else if (st != PAWL_OK && err != NULL)
        *err = own;
    pawl_file_release(&file);
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
    return st;
}

/* Does the directory hold a token file? Bytes decide: model hubs name other things *.bin. */
static enum pawl_status
has_token_file(const struct pawl_dir *dir, const struct pawl_dir_list *list, bool *ret_has, struct pawl_error *err)
{
    *ret_has = false;
    for (size_t i = 0; i < list->n && !*ret_has; i++) {
        struct pawl_file file = PAWL_FILE_INIT;
        struct pawl_error own = PAWL_ERROR_INIT;
        enum pawl_kind kind = PAWL_KIND_UNKNOWN;
        struct pawl_str name = pawl_str_z(list->entries[i].name);
        if (list->entries[i].kind == PAWL_OS_DIR || list->entries[i].kind == PAWL_OS_OTHER ||
            (!pawl_str_ends(name, PAWL_STR(".bin")) && !pawl_str_ends(name, PAWL_STR(".idx"))))
            continue;
        enum pawl_status st = pawl_file_open_in(&file, dir, list->entries[i].name, PAWL_OS_FOLLOW, &own);
        if (st == PAWL_OK)
            st = pawl_file_kind(&file, &kind, &own);
        pawl_file_release(&file);
        if (pawl_status_is_machine_fault(st)) {
            if (err != NULL)
                *err = own;
            return st;
        }
        *ret_has = kind == PAWL_KIND_TOKEN_SHARD;
    }
    return PAWL_OK;
}

static bool
is_step_name(const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    size_t begin = len;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    enum pawl_root_entry entry = pawl_entry_of_name(pawl_str_make(path + begin, len - begin), NULL);
    return entry == PAWL_ENTRY_STEP || entry == PAWL_ENTRY_PREV;
}

/* By its entries; a name counts only where they say nothing, as a step that lost its manifest is a broken step. */
static enum pawl_status
kind_of_directory(struct place *place, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    bool has_manifest = false;
    bool has_run = false;
    bool has_token_manifest = false;
    bool has_trainer_state = false;
    bool has_tensors = false;
    bool has_tokens = false;
    enum pawl_status st = pawl_dir_list(&place->dir, &list, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < list.n; i++) {
        struct pawl_str name = pawl_str_z(list.entries[i].name);
        has_manifest = has_manifest || pawl_str_equal(name, PAWL_STR(PAWL_MANIFEST));
        has_run = has_run || pawl_str_equal(name, PAWL_STR(PAWL_LATEST)) ||
                  pawl_entry_of_name(name, NULL) != PAWL_ENTRY_OTHER;
        has_token_manifest = has_token_manifest || pawl_str_equal(name, PAWL_STR(PAWL_TOKEN_MANIFEST_NAME));
        has_trainer_state = has_trainer_state || pawl_str_equal(name, PAWL_STR(PAWL_TRAINER_STATE));
        if (list.entries[i].kind != PAWL_OS_DIR)
            has_tensors = has_tensors || pawl_str_ends(name, PAWL_STR(".safetensors")) ||
                          pawl_str_ends(name, PAWL_STR(".safetensors.index.json"));
    }
    if (has_manifest) {
        st = kind_of_manifest(&place->dir, &place->kind, err);
    } else if (has_run) {
        place->kind = PAWL_KIND_RUN;
    } else if (has_token_manifest) {
        place->kind = PAWL_KIND_TOKEN_DIR;
    } else if (has_trainer_state || is_step_name(place->path)) {
        place->kind = PAWL_KIND_CHECKPOINT;
    } else if (has_tensors) {
        place->kind = PAWL_KIND_SAFETENSORS_INDEX;
    } else {
        st = has_token_file(&place->dir, &list, &has_tokens, err);
        place->kind = PAWL_KIND_TOKEN_DIR;
        if (st == PAWL_OK && !has_tokens) {
            st = pawl_fail(
                err, PAWL_CORRUPT, "unknown-format",
                "a directory of %zu entr%s, and none makes it a model, a checkpoint, a run or a set of tokens", list.n,
                list.n == 1 ? "y" : "ies");
            pawl_error_path(err, pawl_str_z(place->path));
        }
    }
    pawl_dir_list_release(&list);
    return st;
}

static enum pawl_status
kind_of_file(struct place *place, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    enum pawl_status st = pawl_file_open_path(&file, place->os, place->path, err);
    if (st != PAWL_OK)
        return st;
    place->bytes = file.bytes;
    st = pawl_file_kind(&file, &place->kind, err);
    pawl_file_release(&file);
    return st;
}

/* Look at a path. The place must be released in every case. */
static enum pawl_status
look(struct place *place, struct pawl_str path, struct pawl_error *err)
{
    *place = (struct place){ .os = pawl_os_posix(), .dir = PAWL_DIR_INIT };
    if (path.len == 0 || memchr(path.data, 0, path.len) != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    place->path = pawl_str_dup(path);
    if (place->path == NULL)
        return pawl_fail_memory(err, path.len);
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_dir_open_path(&place->dir, place->os, place->path, &own);
    if (st == PAWL_OK)
        return kind_of_directory(place, err);
    if (st == PAWL_NO_FILE) /* a file is no directory either */
        return kind_of_file(place, err);
    if (err != NULL)
        *err = own;
    return st;
}

enum pawl_status
pawl_kind_of(struct pawl_str path, enum pawl_kind *ret_kind, struct pawl_error *err)
{
    struct place place;
    enum pawl_status st = look(&place, path, err);
    if (st == PAWL_OK)
        *ret_kind = place.kind;
    place_release(&place);
    return st;
}

/* ---- as a model ---- */

static void
close_ckpt(void *owner)
{
    pawl_ckpt_close(owner);
}

/* What the reader of headers would have refused: a checkpoint is opened without a profile, so that a load never falls back over it. */
static enum pawl_status
check_dtypes(const struct pawl_set *set, uint32_t dtypes, struct pawl_error *err)
{
    for (size_t i = 0; i < set->n && dtypes != 0; i++) {
        const struct pawl_tensor_info *tensor = &set->tensors[i];
        if ((dtypes >> tensor->dtype & 1) != 0)
            continue;
        (void)pawl_fail(err, PAWL_CORRUPT, "dtype", "tensor '%s' of '%s' is %s, which the profile does not have",
                        PAWL_SHOW(tensor->name), PAWL_SHOW(set->files[tensor->file].name),
                        pawl_dtype_name(tensor->dtype));
        pawl_error_tensor(err, tensor->name);
        pawl_error_path(err, pawl_str_z(set->files[tensor->file].file.path));
        return PAWL_CORRUPT;
    }
    return PAWL_OK;
}

static enum pawl_status
open_checkpoint(const struct place *place, const struct pawl_model_options *options, struct pawl_model **ret_model,
                struct pawl_error *err)
{
    const struct pawl_ckpt_options ckpt_options = PAWL_CKPT_OPTIONS(.weights_only = 1);
    struct pawl_set_options set_options;
    struct pawl_ckpt *ckpt = NULL;
    enum pawl_status st =
        pawl_set_options_of(options->mode, options->profile, options->header_bytes_max, &set_options, err);
    if (st == PAWL_OK)
        st = pawl_ckpt_open(pawl_str_z(place->path), &ckpt_options, &ckpt, NULL, err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_set *set = pawl_ckpt_model(ckpt)->set;
    st = check_dtypes(set, set_options.st.dtypes, err);
    if (st == PAWL_OK)
        st = pawl_set_check_profile(set, options->profile, err);
    if (st == PAWL_OK)
        st = pawl_model_share(set, place->kind, ckpt, close_ckpt, ret_model, err);
    if (st != PAWL_OK)
        pawl_ckpt_close(ckpt);
    return st;
}

enum pawl_status
pawl_model_open(struct pawl_str path, const struct pawl_model_options *options, struct pawl_model **ret_model,
                struct pawl_error *err)
{
    struct pawl_model_options known = PAWL_MODEL_OPTIONS(.mode = PAWL_MODE_STRICT);
    struct place place;
    enum pawl_status st = PAWL_OK;
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_model_options", err);
    if (st != PAWL_OK)
        return st;
    /* Only a directory can be a checkpoint; a file, the usual case, is opened once and looked at there. */
    place = (struct place){ .os = pawl_os_posix(), .dir = PAWL_DIR_INIT, .path = pawl_str_dup(path) };
    if (place.path == NULL)
        return pawl_fail_memory(err, path.len);
    bool is_directory = path.len != 0 && memchr(path.data, 0, path.len) == NULL &&
                        pawl_dir_open_path(&place.dir, place.os, place.path, NULL) == PAWL_OK;
    if (is_directory && kind_of_directory(&place, NULL) == PAWL_OK &&
        (place.kind == PAWL_KIND_CHECKPOINT || place.kind == PAWL_KIND_RUN))
        st = open_checkpoint(&place, &known, ret_model, err);
    else
        st = pawl_model_open_plain(place.os, path, &known, NULL, ret_model, err);
    place_release(&place);
    return st;
}

enum pawl_status
pawl_model_open_z(const char *path, const struct pawl_model_options *options, struct pawl_model **ret_model,
                  struct pawl_error *err)
{
    return pawl_model_open(pawl_str_z(path), options, ret_model, err);
}

/* ---- examining ---- */

struct inquiry {
    struct place place;
    struct pawl_verify_options options;
    struct pawl_report *report;
    struct pawl_error *err;
};

/* Is it a fault of the bytes, which the report tells? */
static bool
is_content_fault(enum pawl_status st)
{
    return st == PAWL_CORRUPT || st == PAWL_TRUNCATED || st == PAWL_LIMIT;
}

static void
begin_verdict(const struct inquiry *q)
{
    pawl_report_begin_verdict(q->report, pawl_str_z(q->place.path), q->place.kind);
}

/* The last name of a path, "." for what has none. */
static const char *
last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash[1] != '\0' ? slash + 1 : ".";
}

static void
count_set(struct pawl_report *report, const struct pawl_set *set)
{
    for (size_t i = 0; i < set->n_files; i++)
        pawl_report_count(report, 1, set->files[i].header.file_bytes);
    if (set->has_index)
        pawl_report_count(report, 1, set->index_bytes);
}

static enum pawl_status
verify_model(struct inquiry *q)
{
    const struct pawl_model_options options =
        PAWL_MODEL_OPTIONS(.mode = q->options.mode, .profile = q->options.profile);
    struct pawl_model *model = NULL;
    struct pawl_error own = PAWL_ERROR_INIT;
    begin_verdict(q);
    enum pawl_status st =
        pawl_model_open_plain(q->place.os, pawl_str_z(q->place.path), &options, q->report, &model, &own);
    if (st == PAWL_OK) {
        count_set(q->report, model->set);
        if (q->options.check_finite)
            st = pawl_set_check_finite(model->set, q->report, &own);
    } else if (q->place.dir.handle == NULL) {
        pawl_report_count(q->report, 1, q->place.bytes);
    }
    pawl_model_close(model);
    if (is_content_fault(st)) {
        /* An index has told its faults by itself. */
        if (pawl_report_problem_count(q->report) == 0)
            pawl_report_problem_error(q->report, NULL,
                                      q->place.dir.handle == NULL ? pawl_str_z(last_name(q->place.path)) : PAWL_NO_STR,
                                      &own);
        st = PAWL_OK;
    } else if (st != PAWL_OK && q->err != NULL) {
        *q->err = own;
    }
    pawl_report_end_verdict(q->report);
    return st;
}

static enum pawl_status
check_step_finite(const struct inquiry *q, const struct pawl_step *step)
{
    enum pawl_status st = PAWL_OK;
    if (q->options.check_finite && step->has_model)
        st = pawl_set_check_finite(&step->model, q->report, q->err);
    if (st == PAWL_OK && q->options.check_finite && step->has_optimizer)
        st = pawl_set_check_finite(&step->optimizer, q->report, q->err);
    return st;
}

/* One step of a root, by its entry. *ret_is_there false: it is gone since the directory was listed. */
static enum pawl_status
verify_entry(const struct inquiry *q, const struct pawl_dir *root, const char *name, bool *ret_is_there)
{
    const struct pawl_step_options options = { .trust = q->options.size_only ? PAWL_TRUST_SIZE_ONLY : PAWL_TRUST_FULL,
                                               .profile = q->options.profile };
    struct pawl_step step = { 0 };
    enum pawl_status st = pawl_step_examine(&step, root, name, &options, q->report, q->err);
    *ret_is_there = st != PAWL_NO_FILE;
    if (st == PAWL_OK)
        st = check_step_finite(q, &step);
    if (*ret_is_there)
        pawl_report_end_verdict(q->report);
    pawl_step_release(&step);
    return st;
}

/*
 * A step directory by its path. Under a step's name it is examined as its root sees it, where a link is none; under any
 * other it is the directory that the caller named.
 */
static enum pawl_status
verify_checkpoint(struct inquiry *q)
{
    const struct pawl_step_options options = { .trust = q->options.size_only ? PAWL_TRUST_SIZE_ONLY : PAWL_TRUST_FULL,
                                               .profile = q->options.profile };
    enum pawl_status st;
    if (is_step_name(q->place.path)) {
        struct pawl_dir parent = PAWL_DIR_INIT;
        char *folder = NULL;
        char *name = NULL;
        bool has_slash;
        bool is_there = true;
        st = pawl_path_split(q->place.path, &folder, &name, &has_slash, q->err);
        if (st == PAWL_OK)
            st = pawl_dir_open_path(&parent, q->place.os, folder, q->err);
        if (st == PAWL_OK)
            st = verify_entry(q, &parent, name, &is_there);
        pawl_dir_release(&parent);
        free(folder);
        free(name);
    } else {
        struct pawl_step step = { 0 };
        st = pawl_step_examine_open(&step, &q->place.dir, q->place.path, &options, q->report, q->err);
        if (st == PAWL_OK)
            st = check_step_finite(q, &step);
        pawl_report_end_verdict(q->report);
        pawl_step_release(&step);
    }
    if (st == PAWL_OK)
        pawl_report_rename_verdict(q->report, pawl_str_z(q->place.path));
    return st;
}

/* Ascending by step, the step itself before its .prev. */
static int
compare_entries(const void *a, const void *b)
{
    const struct pawl_dir_entry *x = a;
    const struct pawl_dir_entry *y = b;
    int64_t step_x = -1;
    int64_t step_y = -1;
    enum pawl_root_entry kind_x = pawl_entry_of_name(pawl_str_z(x->name), &step_x);
    enum pawl_root_entry kind_y = pawl_entry_of_name(pawl_str_z(y->name), &step_y);
    if (step_x != step_y)
        return step_x < step_y ? -1 : 1;
    return (kind_x > kind_y) - (kind_x < kind_y);
}

static enum pawl_status
verify_run(struct inquiry *q)
{
    struct pawl_dir_list list = { NULL, 0 };
    enum pawl_status st = pawl_dir_list(&q->place.dir, &list, q->err);
    if (st == PAWL_OK && list.n > 0)
        qsort(list.entries, list.n, sizeof *list.entries, compare_entries);
    for (size_t i = 0; i < list.n && st == PAWL_OK; i++) {
        enum pawl_root_entry entry = pawl_entry_of_name(pawl_str_z(list.entries[i].name), NULL);
        bool is_there;
        if (entry != PAWL_ENTRY_STEP && entry != PAWL_ENTRY_PREV)
            continue;
        st = verify_entry(q, &q->place.dir, list.entries[i].name, &is_there);
        if (st == PAWL_NO_FILE) /* pruned meanwhile */
            st = PAWL_OK;
    }
    pawl_dir_list_release(&list);
    return st;
}

/* ---- tokens ---- */

static enum pawl_status
join(const char *dir, struct pawl_str name, struct pawl_buffer *ret_path, struct pawl_error *err)
{
    pawl_buffer_clear(ret_path);
    (void)pawl_buffer_add_z(ret_path, dir);
    (void)pawl_buffer_add_char(ret_path, '/');
    (void)pawl_buffer_add_str(ret_path, name);
    return pawl_buffer_ok(ret_path) ? PAWL_OK : pawl_fail_memory(err, name.len);
}

/* Open one shard, which scans its ids; `file` is its name in the report. *ret_ids is set when it is fine. */
static enum pawl_status
verify_shard(const struct inquiry *q, struct pawl_str path, struct pawl_str file, uint64_t vocabulary,
             uint64_t *ret_ids)
{
    const struct pawl_shard_options options = PAWL_SHARD_OPTIONS(.vocabulary = vocabulary);
    struct pawl_error own = PAWL_ERROR_INIT;
    struct pawl_shard *shard = NULL;
    enum pawl_status st = pawl_shard_open(path, &options, &shard, &own);
    if (st == PAWL_OK) {
        *ret_ids = pawl_shard_info(shard).ids;
        pawl_shard_close(shard);
        return PAWL_OK;
    }
    if (st == PAWL_NO_FILE || strcmp(own.code, "not-a-file") == 0)
        pawl_report_problem_error(q->report, "missing-file", file, &own);
    else if (is_content_fault(st))
        pawl_report_problem_error(q->report, NULL, file, &own);
    else if (q->err != NULL)
        *q->err = own;
    return is_content_fault(st) || st == PAWL_NO_FILE ? PAWL_OK : st;
}

static enum pawl_status
hash_file(const struct pawl_file *file, unsigned char digest[32], struct pawl_error *err)
{
    struct pawl_sha256 *hash = NULL;
    unsigned char *block = malloc(HASH_BYTES);
    enum pawl_status st = block == NULL ? pawl_fail_memory(err, HASH_BYTES) : pawl_sha256_new(&hash, err);
    for (uint64_t at = 0; st == PAWL_OK && at < file->bytes;) {
        size_t n = file->bytes - at < HASH_BYTES ? (size_t)(file->bytes - at) : HASH_BYTES;
        st = pawl_file_read(file, at, block, n, err);
        if (st == PAWL_OK)
            pawl_sha256_update(hash, block, n);
        at += n;
    }
    if (st == PAWL_OK)
        pawl_sha256_finish(hash, digest);
    pawl_sha256_free(hash);
    free(block);
    return st;
}

/* A file that the manifest lists: there, of that hash, a shard of that many ids. */
static enum pawl_status
verify_listed(const struct inquiry *q, const struct pawl_dir *dir, const struct pawl_token_file *row,
              uint64_t vocabulary)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer path = PAWL_BUFFER_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    unsigned char digest[32];
    uint64_t ids = UINT64_MAX;
    enum pawl_status st = join(dir->path, row->name, &path, &own);
    if (st == PAWL_OK && pawl_buffer_terminate(&path))
        st = pawl_file_open_path(&file, dir->os, path.data, &own);
    if (st == PAWL_NO_FILE || (st == PAWL_CORRUPT && strcmp(own.code, "not-a-file") == 0)) {
        pawl_report_problem_error(q->report, "missing-file", row->name, &own);
        st = PAWL_OK;
        goto out;
    }
    if (st != PAWL_OK)
        goto out;
    pawl_report_count(q->report, 1, file.bytes);
    size_t before = pawl_report_problem_count(q->report);
    st = verify_shard(q, pawl_buffer_str(&path), row->name, vocabulary, &ids);
    if (st != PAWL_OK) {
        pawl_file_release(&file);
        pawl_buffer_release(&path);
        return st; /* the error is filled */
    }
    if (ids != UINT64_MAX && ids != row->ids)
        pawl_report_problem(q->report, "count", row->name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "the manifest states %" PRIu64 " ids, the file has %" PRIu64, row->ids, ids);
    if (!q->options.size_only && pawl_report_problem_count(q->report) == before) {
        st = hash_file(&file, digest, &own);
        if (st == PAWL_OK && memcmp(digest, row->sha256, sizeof digest) != 0) {
            char found[65];
            char listed[65];
            pawl_sha256_print(digest, found);
            pawl_sha256_print(row->sha256, listed);
            pawl_report_problem(q->report, "hash", row->name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                                "sha256 is %s, the manifest states %s", found, listed);
        }
    }
out:
    pawl_file_release(&file);
    pawl_buffer_release(&path);
    if (st != PAWL_OK && q->err != NULL)
        *q->err = own;
    return st;
}

/* A directory without a manifest: every shard that it stands for. */
static enum pawl_status
verify_bare_tokens(const struct inquiry *q)
{
    struct pawl_token_files *files = NULL;
    struct pawl_error own = PAWL_ERROR_INIT;
    const struct pawl_str path = pawl_str_z(q->place.path);
    enum pawl_status st = pawl_token_files_open(&path, 1, PAWL_NO_STR, &files, &own);
    if (st != PAWL_OK) {
        if (is_content_fault(st))
            pawl_report_problem_error(q->report, NULL, PAWL_NO_STR, &own);
        else if (q->err != NULL)
            *q->err = own;
        return is_content_fault(st) ? PAWL_OK : st;
    }
    size_t n;
    const struct pawl_str *paths = pawl_token_files_paths(files, &n);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct pawl_file file = PAWL_FILE_INIT;
        uint64_t ids;
        char *text = pawl_str_dup(paths[i]);
        if (text == NULL) {
            st = pawl_fail_memory(q->err, paths[i].len);
            break;
        }
        if (pawl_file_open_path(&file, q->place.os, text, NULL) == PAWL_OK)
            pawl_report_count(q->report, 1, file.bytes);
        pawl_file_release(&file);
        st = verify_shard(q, paths[i], pawl_str_z(last_name(text)), q->options.vocabulary, &ids);
        free(text);
    }
    pawl_token_files_close(files);
    return st;
}

static enum pawl_status
verify_tokens(struct inquiry *q)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_token_manifest manifest;
    struct pawl_error own = PAWL_ERROR_INIT;
    const struct pawl_str manifest_name = PAWL_STR(PAWL_TOKEN_MANIFEST_NAME);
    enum pawl_status st;
    char *folder = NULL;
    char *name = NULL;
    bool has_slash;

    begin_verdict(q);
    if (q->place.dir.handle == NULL) { /* the manifest itself, which stands for its directory */
        st = pawl_path_split(q->place.path, &folder, &name, &has_slash, &own);
        if (st == PAWL_OK)
            st = pawl_dir_open_path(&dir, q->place.os, folder, &own);
    } else {
        dir = q->place.dir;
        q->place.dir = (struct pawl_dir)PAWL_DIR_INIT;
        st = PAWL_OK;
    }
    if (st == PAWL_OK)
        st = pawl_file_open_in(&file, &dir, name == NULL ? PAWL_TOKEN_MANIFEST_NAME : name, PAWL_OS_FOLLOW, &own);
    if (st == PAWL_NO_FILE && name == NULL) {
        st = verify_bare_tokens(q);
        pawl_report_end_verdict(q->report);
        pawl_dir_release(&dir);
        return st;
    }
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_TOKEN_MANIFEST_BYTES_MAX, &text, &own);
    if (st == PAWL_OK) {
        pawl_report_count(q->report, 1, file.bytes);
        st = pawl_token_manifest_parse(&arena, text.data, text.len, &manifest, &own);
    }
    if (is_content_fault(st)) {
        pawl_report_problem_error(q->report, NULL, manifest_name, &own);
        st = PAWL_OK;
    } else if (st == PAWL_OK) {
        uint64_t vocabulary = q->options.vocabulary;
        if (manifest.has_vocabulary && vocabulary != 0 && vocabulary != manifest.vocabulary)
            pawl_report_problem(q->report, "vocabulary", manifest_name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                                "the manifest states a vocabulary of %" PRIu64 ", the caller %" PRIu64,
                                manifest.vocabulary, vocabulary);
        if (manifest.has_vocabulary)
            vocabulary = manifest.vocabulary;
        for (size_t i = 0; i < manifest.n_files && st == PAWL_OK; i++) {
            st = verify_listed(q, &dir, &manifest.files[i], vocabulary);
            if (st != PAWL_OK && q->err != NULL)
                own = *q->err;
        }
    }
    if (st != PAWL_OK && q->err != NULL)
        *q->err = own;
    pawl_report_end_verdict(q->report);
    pawl_file_release(&file);
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
    pawl_dir_release(&dir);
    free(folder);
    free(name);
    return st;
}

static enum pawl_status
verify_token_file(struct inquiry *q)
{
    uint64_t ids;
    begin_verdict(q);
    pawl_report_count(q->report, 1, q->place.bytes);
    enum pawl_status st =
        verify_shard(q, pawl_str_z(q->place.path), pawl_str_z(last_name(q->place.path)), q->options.vocabulary, &ids);
    pawl_report_end_verdict(q->report);
    return st;
}

/* ---- all ---- */

static enum pawl_status
verify(struct inquiry *q)
{
    switch (q->place.kind) {
    case PAWL_KIND_SAFETENSORS:
    case PAWL_KIND_SAFETENSORS_INDEX:
    case PAWL_KIND_LLMCP35:
        return verify_model(q);
    case PAWL_KIND_CHECKPOINT:
        return verify_checkpoint(q);
    case PAWL_KIND_RUN:
        return verify_run(q);
    case PAWL_KIND_TOKEN_SHARD:
        return verify_token_file(q);
    case PAWL_KIND_TOKEN_DIR:
        return verify_tokens(q);
    default: {
        enum pawl_status st = pawl_fail(q->err, PAWL_UNSUPPORTED, "unsupported", "this version does not examine a %s",
                                        pawl_kind_name(q->place.kind));
        pawl_error_path(q->err, pawl_str_z(q->place.path));
        return st;
    }
    }
}

/* A link under a step's name is no step, whatever it leads to, nowhere too; nor is a file of no kind. The examination of the entry says so. */
static bool
is_step_link(const char *path)
{
    struct pawl_dir parent = PAWL_DIR_INIT;
    struct pawl_os_stat stat;
    char *folder = NULL;
    char *name = NULL;
    bool has_slash;
    bool is_link = is_step_name(path) && pawl_path_split(path, &folder, &name, &has_slash, NULL) == PAWL_OK &&
                   pawl_dir_open_path(&parent, pawl_os_posix(), folder, NULL) == PAWL_OK &&
                   pawl_dir_stat(&parent, name, &stat, NULL) == PAWL_OK && stat.kind == PAWL_OS_LINK;
    pawl_dir_release(&parent);
    free(folder);
    free(name);
    return is_link;
}

enum pawl_status
pawl_verify(struct pawl_str path, const struct pawl_verify_options *options, struct pawl_report **ret_report,
            struct pawl_error *err)
{
    struct inquiry q = { .options = PAWL_VERIFY_OPTIONS(.mode = PAWL_MODE_STRICT), .err = err };
    struct pawl_error own = PAWL_ERROR_INIT;
    q.report = pawl_report_new();
    if (ret_report != NULL)
        *ret_report = q.report;
    if (q.report == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st = PAWL_OK;
    if (options != NULL)
        st =
            pawl_options_take(&q.options, sizeof q.options, options, options->size, "struct pawl_verify_options", &own);
    if (st == PAWL_OK) {
        struct pawl_set_options unused; /* mode and profile must be ones */
        st = pawl_set_options_of(q.options.mode, q.options.profile, 0, &unused, &own);
    }
    if (st == PAWL_OK) {
        st = look(&q.place, path, &own);
        assert(q.place.path != NULL || (st != PAWL_OK && !is_content_fault(st)));
        bool is_step = q.place.path != NULL && is_step_name(q.place.path);
        if (is_step && (is_content_fault(st) || is_step_link(q.place.path))) {
            q.place.kind = PAWL_KIND_CHECKPOINT;
            st = PAWL_OK;
        }
        /* Safetensors are asked for: a file is judged as one whatever it is, and so is a directory of no kind. */
        bool is_other = st == PAWL_OK && q.place.dir.handle != NULL;
        if (q.options.is_safetensors && !is_other && (st == PAWL_OK || is_content_fault(st))) {
            if (st != PAWL_OK)
                q.place.kind = PAWL_KIND_UNKNOWN;
            st = verify_model(&q);
        } else if (st == PAWL_OK) {
            st = verify(&q);
        } else if (is_content_fault(st)) { /* it is something, and nothing of ours */
            q.place.kind = PAWL_KIND_UNKNOWN;
            begin_verdict(&q);
            if (q.place.dir.handle == NULL)
                pawl_report_count(q.report, 1, q.place.bytes);
            pawl_report_problem_error(q.report, NULL, PAWL_NO_STR, &own);
            pawl_report_end_verdict(q.report);
            st = PAWL_OK;
        } else if (err != NULL) {
            *err = own;
        }
        place_release(&q.place);
    } else if (err != NULL) {
        *err = own;
    }
    if (st == PAWL_OK && !pawl_report_ok(q.report))
        st = pawl_fail_memory(err, 1);
    if (ret_report == NULL)
        pawl_report_free(q.report);
    return st;
}
