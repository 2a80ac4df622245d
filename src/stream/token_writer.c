/*
 * Writing a data set: documents into shards, a manifest over them.
 *
 * A document lies whole in one file. While it is not known whether the file in
 * progress has room for it, it is held in memory; it is written straight when
 * the file has no id yet, when its size was told, or when it has outgrown a file.
 *
 * The header, with the number of ids, stands before the ids: room for it is
 * left, and it is put in place when the file is full. The digest is then
 * taken from the file, which is still in the page cache; it is a check of what was written besides.
 *
 * Every shard is published when it is full, the manifest last. So a directory
 * with shards and no manifest is what an interrupted run left. When a set is replaced, its manifest goes first, but not
 * before the first new shard is begun: a run that fails on its input leaves the old set alone.
 */
#include "stream/token_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/buffer.h"
#include "codec/utf8.h"
#include "formats/tokens/shard.h"
#include "os/file.h"
#include "pawl/digest.h"
#include "stream/shard_file.h"
#include "stream/token_files.h"

#define MAX_IDS_DEFAULT UINT64_C(100000000)
#define MANIFEST_TEMPORARY PAWL_TOKEN_MANIFEST_NAME ".tmp"
/* The fall-back of a lock where a directory can't be locked. */
#define LOCK_NAME ".lock"
/* Ids are made narrow, and files hashed, in steps of this many bytes. */
#define STEP_BYTES ((size_t)64 << 10)

struct pawl_token_writer {
    const struct pawl_os *os;
    struct pawl_arena arena; /* texts, names */
    struct pawl_dir dir;
    const char *path;
    size_t n_made; /* directories of the path that were made for this; they go when nothing was published */
    struct pawl_token_manifest manifest; /* all but the files */
    unsigned width;
    uint64_t id_limit; /* ids are below this */
    uint64_t max_ids;
    struct pawl_str prefix;

    struct pawl_str *doomed; /* what goes before the first new shard is written */
    size_t n_doomed;
    bool has_old_manifest;
    bool is_cleared;

    struct pawl_token_file *files; /* published */
    size_t n_files, files_capacity;

    struct pawl_publish publish; /* the shard in progress */
    bool is_file_open;
    uint64_t file_ids, file_documents;

    bool in_document, is_held;
    uint64_t document_ids;
    struct pawl_buffer held; /* encoded */

    unsigned char *step; /* STEP_BYTES */
    bool is_broken;      /* an earlier call failed half-way */
    bool is_finished;
};

/* ---- options ---- */

static enum pawl_status
copy_text(struct pawl_token_writer *writer, struct pawl_str text, const char *otherwise, struct pawl_str *ret,
          struct pawl_error *err)
{
    struct pawl_str from = text.len != 0 ? text : pawl_str_z(otherwise);
    return pawl_arena_copy_str(&writer->arena, from, ret) ? PAWL_OK : pawl_fail_memory(err, from.len + 1);
}

static enum pawl_status
check_label(struct pawl_str text, const char *what, struct pawl_error *err)
{
    if (text.len == 0 || pawl_token_is_label(text))
        return PAWL_OK;
    return pawl_fail(err, PAWL_ARGUMENT, "argument",
                     "the %s '%s' is not of a-z, 0-9, '.', '_' and '-', a letter or digit first", what,
                     PAWL_SHOW(text));
}

static enum pawl_status
check_utf8(struct pawl_str text, const char *what, struct pawl_error *err)
{
    if (pawl_utf8_first_bad(text.data, text.len) == text.len)
        return PAWL_OK;
    return pawl_fail(err, PAWL_ARGUMENT, "argument", "the %s '%s' is not UTF-8", what, PAWL_SHOW(text));
}

static enum pawl_status
check_options(const struct pawl_token_writer_options *opt, struct pawl_error *err)
{
    enum pawl_status st = check_label(opt->prefix, "prefix", err);
    if (st == PAWL_OK)
        st = check_label(opt->tokenizer_id, "tokenizer's name", err);
    if (st == PAWL_OK)
        st = check_utf8(opt->dataset, "name of the data set", err);
    if (st == PAWL_OK)
        st = check_utf8(opt->version, "version of the data set", err);
    if (st != PAWL_OK)
        return st;
    if (opt->width != 0 && opt->width != 2 && opt->width != 4)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "ids have 2 or 4 bytes, not %u", opt->width);
    if (opt->max_ids > PAWL_SHARD_IDS_MAX)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "a shard holds at most %" PRIu64 " ids, %" PRIu64 " were asked for", PAWL_SHARD_IDS_MAX,
                         opt->max_ids);
    if (opt->vocabulary > INT64_MAX)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a vocabulary of %" PRIu64 " is too large", opt->vocabulary);
    return PAWL_OK;
}

static enum pawl_status
fail_id(const struct pawl_token_writer *writer, uint64_t id, const char *what, struct pawl_error *err)
{
    if (writer->manifest.has_vocabulary && id >= writer->manifest.vocabulary)
        return pawl_fail(err, PAWL_OUT_OF_RANGE, "id-range", "%s %" PRIu64 " is outside the vocabulary of %" PRIu64,
                         what, id, writer->manifest.vocabulary);
    return pawl_fail(err, PAWL_OUT_OF_RANGE, "id-range", "%s %" PRIu64 " does not fit in %u bits", what, id,
                     8 * writer->width);
}

static enum pawl_status
take_options(struct pawl_token_writer *writer, const struct pawl_token_writer_options *opt, struct pawl_error *err)
{
    struct pawl_token_manifest *m = &writer->manifest;
    enum pawl_status st = copy_text(writer, opt->prefix, "train", &writer->prefix, err);
    if (st == PAWL_OK)
        st = copy_text(writer, opt->tokenizer_id, "unknown", &m->tokenizer_id, err);
    if (st == PAWL_OK)
        st = copy_text(writer, opt->dataset, "unnamed", &m->dataset, err);
    if (st == PAWL_OK)
        st = copy_text(writer, opt->version, "1", &m->version, err);
    if (st == PAWL_OK && opt->corpus_sha256 == NULL)
        st = pawl_sha256_of("", 0, m->corpus_sha256, err);
    if (st != PAWL_OK)
        return st;
    if (opt->corpus_sha256 != NULL)
        memcpy(m->corpus_sha256, opt->corpus_sha256, sizeof m->corpus_sha256);
    m->has_tokenizer_sha256 = opt->tokenizer_sha256 != NULL;
    if (m->has_tokenizer_sha256)
        memcpy(m->tokenizer_sha256, opt->tokenizer_sha256, sizeof m->tokenizer_sha256);
    m->has_vocabulary = opt->vocabulary != 0;
    m->vocabulary = opt->vocabulary;
    m->has_separator = opt->has_separator != 0;
    m->separator = opt->separator;

    writer->max_ids = opt->max_ids != 0 ? opt->max_ids : MAX_IDS_DEFAULT;
    writer->width = opt->width != 0 ? opt->width : m->has_vocabulary && m->vocabulary <= 65536 ? 2 : 4;
    writer->id_limit = UINT64_C(1) << (8 * writer->width);
    if (m->has_vocabulary && m->vocabulary < writer->id_limit)
        writer->id_limit = m->vocabulary;
    if (m->has_separator && m->separator >= writer->id_limit)
        return fail_id(writer, m->separator, "the separator", err);
    return PAWL_OK;
}

/* ---- what lies in the directory already ---- */

/* ".<shard>.<anything>.tmp": what pawl_publish leaves when it is killed. */
static bool
is_temporary(struct pawl_str name)
{
    if (pawl_str_equal(name, PAWL_STR(MANIFEST_TEMPORARY)))
        return true;
    if (name.len == 0 || name.data[0] != '.' || !pawl_str_ends(name, PAWL_STR(".tmp")))
        return false;
    for (size_t i = name.len - 4; i > 1; i--) {
        if (name.data[i] == '.' && pawl_token_is_file_name(pawl_str_make(name.data + 1, i - 1)))
            return true;
    }
    return false;
}

static bool
is_of_prefix(const struct pawl_token_writer *writer, struct pawl_str name)
{
    return name.len == writer->prefix.len + sizeof "-00001.bin" - 1 && pawl_str_starts(name, writer->prefix);
}

static bool
is_listed(const struct pawl_token_manifest *manifest, struct pawl_str name)
{
    for (size_t i = 0; i < manifest->n_files; i++) {
        if (pawl_str_equal(manifest->files[i].name, name))
            return true;
    }
    return false;
}

static enum pawl_status
fail_exists(const struct pawl_token_writer *writer, const char *name, struct pawl_error *err)
{
    enum pawl_status st;
    if (strcmp(name, PAWL_TOKEN_MANIFEST_NAME) == 0)
        st = pawl_fail(err, PAWL_EXISTS, "exists", "'%s' holds a data set and is not to be replaced",
                       PAWL_SHOW(pawl_str_z(writer->path)));
    else
        st = pawl_fail(err, PAWL_EXISTS, "exists", "'%s' must be empty for a data set, it holds '%s'",
                       PAWL_SHOW(pawl_str_z(writer->path)), PAWL_SHOW(pawl_str_z(name)));
    pawl_error_path(err, pawl_str_z(writer->path));
    return st;
}

/*
 * Decide for each entry: refuse, remove before the first shard, or leave alone. Without a manifest every shard is left from
 * an interrupted run. With one, those that it lists belong to the old set, and those of our own names are in the way.
 */
static enum pawl_status
look_around(struct pawl_token_writer *writer, bool may_replace, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    struct pawl_token_manifest old = { .n_files = 0 };
    enum pawl_status st = pawl_dir_list(&writer->dir, &list, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < list.n; i++)
        writer->has_old_manifest |= strcmp(list.entries[i].name, PAWL_TOKEN_MANIFEST_NAME) == 0;
    if (writer->has_old_manifest && may_replace) {
        st = pawl_token_manifest_load(&writer->dir, &writer->arena, &old, err);
        if (st == PAWL_CORRUPT || st == PAWL_LIMIT) /* broken: then all shards are its */
            st = PAWL_OK;
    }
    bool is_old_readable = old.n_files != 0;

    writer->doomed = pawl_arena_take_array(&writer->arena, list.n + 1, sizeof *writer->doomed);
    if (st == PAWL_OK && writer->doomed == NULL)
        st = pawl_fail_memory(err, list.n * sizeof *writer->doomed);
    for (size_t i = 0; i < list.n && st == PAWL_OK; i++) {
        struct pawl_str name = pawl_str_z(list.entries[i].name);
        bool is_file = list.entries[i].kind == PAWL_OS_FILE;
        bool is_shard = is_file && pawl_token_is_file_name(name);
        bool is_manifest = pawl_str_equal(name, PAWL_STR(PAWL_TOKEN_MANIFEST_NAME));
        bool is_ours = is_shard || (is_file && is_temporary(name)) || pawl_str_equal(name, PAWL_STR(LOCK_NAME));
        if (!may_replace && (is_manifest || !is_ours)) {
            st = fail_exists(writer, writer->has_old_manifest ? PAWL_TOKEN_MANIFEST_NAME : list.entries[i].name, err);
            break;
        }
        bool goes = (is_file && is_temporary(name)) ||
                    (is_shard && (!is_old_readable || is_listed(&old, name) || is_of_prefix(writer, name)));
        if (goes && !pawl_arena_copy_str(&writer->arena, name, &writer->doomed[writer->n_doomed++]))
            st = pawl_fail_memory(err, name.len + 1);
    }
    pawl_dir_list_release(&list);
    return st;
}

/* Once, before the first shard is begun. The manifest goes first, durably: without it what is left is no set. */
static enum pawl_status
clear_directory(struct pawl_token_writer *writer, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    if (writer->is_cleared)
        return PAWL_OK;
    if (writer->has_old_manifest) {
        st = pawl_dir_remove_file(&writer->dir, PAWL_TOKEN_MANIFEST_NAME, err);
        if (st == PAWL_OK)
            st = pawl_dir_sync(&writer->dir, NULL, err);
    }
    for (size_t i = 0; i < writer->n_doomed && st == PAWL_OK; i++)
        st = pawl_dir_remove_file(&writer->dir, writer->doomed[i].data, err);
    writer->is_cleared = st == PAWL_OK;
    return st;
}

/* Two programs must not write one set. A filesystem that can't lock is taken as it is. */
static enum pawl_status
lock_directory(struct pawl_token_writer *writer, struct pawl_error *err)
{
    bool is_fallback = false;
    struct pawl_error lock_err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_dir_lock(&writer->dir, PAWL_OS_LOCK_TRY, &is_fallback, &lock_err);
    if (st == PAWL_OK || st == PAWL_UNSUPPORTED)
        return PAWL_OK;
    if (err != NULL)
        *err = lock_err;
    return st;
}

/* ---- opening and closing ---- */

enum pawl_status
pawl_token_writer_open_on(const struct pawl_os *os, struct pawl_str directory,
                          const struct pawl_token_writer_options *options, struct pawl_token_writer **ret_writer,
                          struct pawl_error *err)
{
    struct pawl_token_writer_options opt = PAWL_TOKEN_WRITER_OPTIONS(.width = 0);
    if (options != NULL)
        memcpy(&opt, options, options->size < sizeof opt ? options->size : sizeof opt);
    enum pawl_status st = check_options(&opt, err);
    if (st != PAWL_OK)
        return st;

    struct pawl_token_writer *writer = calloc(1, sizeof *writer);
    char *path = NULL;
    struct pawl_str copy;
    if (writer == NULL)
        return pawl_fail_memory(err, sizeof *writer);
    writer->os = os;
    writer->publish = (struct pawl_publish)PAWL_PUBLISH_INIT;
    writer->step = malloc(STEP_BYTES);
    if (writer->step == NULL) {
        st = pawl_fail_memory(err, STEP_BYTES);
        goto out;
    }
    st = take_options(writer, &opt, err);
    if (st != PAWL_OK)
        goto out;
    st = pawl_shard_path(directory, &path, err);
    if (st != PAWL_OK)
        goto out;
    if (!pawl_arena_copy_str(&writer->arena, directory, &copy)) {
        st = pawl_fail_memory(err, directory.len + 1);
        goto out;
    }
    writer->path = copy.data;
    st = pawl_dir_create_all(os, path, &writer->n_made, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&writer->dir, os, path, err);
    if (st == PAWL_OK)
        st = lock_directory(writer, err);
    if (st == PAWL_BUSY)
        writer->n_made = 0; /* another writer has found it meanwhile */
    if (st == PAWL_OK)
        st = look_around(writer, opt.replace != 0, err);
    if (st == PAWL_OK) {
        *ret_writer = writer;
        writer = NULL;
    }
out:
    free(path);
    pawl_token_writer_close(writer);
    return st;
}

enum pawl_status
pawl_token_writer_open(struct pawl_str directory, const struct pawl_token_writer_options *options,
                       struct pawl_token_writer **ret_writer, struct pawl_error *err)
{
    return pawl_token_writer_open_on(pawl_os_posix(), directory, options, ret_writer, err);
}

void
pawl_token_writer_close(struct pawl_token_writer *writer)
{
    if (writer == NULL)
        return;
    pawl_publish_release(&writer->publish);
    if (!writer->is_finished && writer->n_files == 0)
        pawl_dir_remove_made(writer->os, writer->path, writer->n_made); /* under its lock: nobody else is in there */
    pawl_dir_release(&writer->dir);                                     /* and its lock */
    pawl_buffer_release(&writer->held);
    pawl_arena_release(&writer->arena);
    free(writer->files);
    free(writer->step);
    free(writer);
}

/* ---- files ---- */

static enum pawl_status
open_file(struct pawl_token_writer *writer, struct pawl_error *err)
{
    static const unsigned char ROOM[PAWL_SHARD_HEADER_BYTES];
    const struct pawl_tap nobody = { NULL, NULL };
    enum pawl_status st = clear_directory(writer, err);
    if (st != PAWL_OK)
        return st;
    if (writer->n_files == PAWL_TOKEN_FILES_MAX)
        return pawl_fail(err, PAWL_LIMIT, "limit",
                         "a set has at most %d files: more ids per file than %" PRIu64 " are needed",
                         PAWL_TOKEN_FILES_MAX, writer->max_ids);

    struct pawl_buffer path = PAWL_BUFFER_INIT;
    (void)pawl_buffer_printf(&path, "%s/%.*s-%05zu.bin", writer->path, PAWL_ARG(writer->prefix), writer->n_files + 1);
    if (!pawl_buffer_terminate(&path)) {
        pawl_buffer_release(&path);
        return pawl_fail_memory(err, strlen(writer->path) + writer->prefix.len + 16);
    }
    st = pawl_publish_begin(&writer->publish, writer->os, path.data, false, 0, nobody, err);
    pawl_buffer_release(&path);
    if (st == PAWL_OK)
        st = pawl_writer_add(&writer->publish.writer, ROOM, sizeof ROOM, err);
    if (st != PAWL_OK)
        return st;
    writer->is_file_open = true;
    writer->file_ids = 0;
    writer->file_documents = 0;
    return PAWL_OK;
}

static enum pawl_status
put_header(struct pawl_token_writer *writer, struct pawl_error *err)
{
    const struct pawl_os *os = writer->os;
    struct pawl_shard_info info = { .width = writer->width,
                                    .ids = writer->file_ids,
                                    .vocabulary = writer->manifest.has_vocabulary ? writer->manifest.vocabulary : 0 };
    unsigned char header[PAWL_SHARD_HEADER_BYTES];
    pawl_shard_print(&info, header);
    for (size_t done = 0; done < sizeof header;) {
        struct pawl_os_span span = { header + done, sizeof header - done };
        size_t n = 0;
        int code = os->file_write_at(os->context, writer->publish.writer.handle, done, &span, 1, &n);
        if (code == EINTR)
            continue;
        if (code == 0 && n == 0)
            code = EIO;
        if (code != 0)
            return pawl_fail_os(err, code, "write the header of '%s'",
                                PAWL_SHOW(pawl_str_z(writer->publish.writer.path)));
        done += n;
    }
    return PAWL_OK;
}

static enum pawl_status
hash_file(struct pawl_token_writer *writer, unsigned char digest[32], struct pawl_error *err)
{
    const struct pawl_os *os = writer->os;
    const uint64_t bytes = PAWL_SHARD_HEADER_BYTES + writer->file_ids * writer->width;
    struct pawl_sha256 *hash = NULL;
    enum pawl_status st = pawl_sha256_new(&hash, err);
    for (uint64_t at = 0; at < bytes && st == PAWL_OK;) {
        size_t n = 0;
        int code = os->file_read_at(os->context, writer->publish.writer.handle, at, writer->step, STEP_BYTES, &n);
        if (code == EINTR)
            continue;
        if (code == 0 && n == 0)
            code = EIO; /* shorter than what was written to it */
        if (code != 0)
            st = pawl_fail_os(err, code, "read back '%s'", PAWL_SHOW(pawl_str_z(writer->publish.writer.path)));
        else
            pawl_sha256_update(hash, writer->step, n);
        at += n;
    }
    if (st == PAWL_OK)
        pawl_sha256_finish(hash, digest);
    pawl_sha256_free(hash);
    return st;
}

static enum pawl_status
add_row(struct pawl_token_writer *writer, const unsigned char digest[32], struct pawl_error *err)
{
    if (writer->n_files == writer->files_capacity) {
        size_t capacity = writer->files_capacity == 0 ? 16 : writer->files_capacity * 2;
        struct pawl_token_file *files = realloc(writer->files, capacity * sizeof *files);
        if (files == NULL)
            return pawl_fail_memory(err, capacity * sizeof *files);
        writer->files = files;
        writer->files_capacity = capacity;
    }
    struct pawl_token_file *row = &writer->files[writer->n_files];
    *row = (struct pawl_token_file){ .split = writer->prefix,
                                     .ids = writer->file_ids,
                                     .documents = writer->file_documents };
    memcpy(row->sha256, digest, sizeof row->sha256);
    if (!pawl_arena_copy_str(&writer->arena, pawl_str_z(writer->publish.name), &row->name))
        return pawl_fail_memory(err, strlen(writer->publish.name) + 1);
    writer->n_files++;
    return PAWL_OK;
}

static enum pawl_status
close_file(struct pawl_token_writer *writer, struct pawl_error *err)
{
    unsigned char digest[32];
    enum pawl_status st = PAWL_OK;
    if (!writer->is_file_open)
        return PAWL_OK;
    /* The ids leave the gathering buffer; the header then goes beneath them, and the commit syncs it too. */
    st = pawl_writer_sync(&writer->publish.writer, err);
    if (st == PAWL_OK)
        st = put_header(writer, err);
    if (st == PAWL_OK)
        st = hash_file(writer, digest, err);
    if (st == PAWL_OK)
        st = pawl_publish_commit(&writer->publish, err);
    if (st == PAWL_OK)
        st = add_row(writer, digest, err);
    pawl_publish_release(&writer->publish);
    writer->is_file_open = false;
    writer->file_ids = 0;
    return st;
}

/* ---- documents ---- */

/* A file for a document of `ids` ids, in which it lies whole. */
static enum pawl_status
make_room(struct pawl_token_writer *writer, uint64_t ids, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    /* A document without ids pushes no file past its limit. */
    if (ids != 0 && writer->file_ids != 0 && (ids > writer->max_ids || writer->file_ids > writer->max_ids - ids))
        st = close_file(writer, err);
    if (st == PAWL_OK && !writer->is_file_open)
        st = open_file(writer, err);
    if (st == PAWL_OK)
        writer->file_documents++;
    return st;
}

static enum pawl_status
put_encoded(struct pawl_token_writer *writer, const void *bytes, size_t n_bytes, struct pawl_error *err)
{
    if (writer->is_held)
        return pawl_buffer_add(&writer->held, bytes, n_bytes) ? PAWL_OK
                                                              : pawl_fail_memory(err, writer->held.len + n_bytes);
    writer->file_ids += n_bytes / writer->width;
    return pawl_writer_add(&writer->publish.writer, bytes, n_bytes, err);
}

/* The document has its place: what was held goes there, and what follows with it. */
static enum pawl_status
place_document(struct pawl_token_writer *writer, uint64_t ids, struct pawl_error *err)
{
    enum pawl_status st = make_room(writer, ids, err);
    if (st != PAWL_OK)
        return st;
    writer->is_held = false;
    st = put_encoded(writer, writer->held.data, writer->held.len, err);
    if (writer->held.capacity > (size_t)64 << 20) /* the next document is not as large */
        pawl_buffer_release(&writer->held);
    pawl_buffer_clear(&writer->held);
    return st;
}

static enum pawl_status
end_document(struct pawl_token_writer *writer, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    if (writer->in_document && writer->is_held)
        st = place_document(writer, writer->document_ids, err);
    writer->in_document = false;
    return st;
}

static enum pawl_status
check_usable(const struct pawl_token_writer *writer, struct pawl_error *err)
{
    if (!writer->is_broken && !writer->is_finished)
        return PAWL_OK;
    return pawl_fail(err, PAWL_ARGUMENT, "argument", "the writer of '%s' %s", PAWL_SHOW(pawl_str_z(writer->path)),
                     writer->is_finished ? "has finished" : "failed before and can only be closed");
}

static enum pawl_status
broken(struct pawl_token_writer *writer, enum pawl_status st, struct pawl_error *err)
{
    if (st != PAWL_OK) {
        writer->is_broken = true;
        pawl_error_path(err, pawl_str_z(writer->path));
    }
    return st;
}

/* Room for n more ids of the open document, which is given its place when that is known now. */
static enum pawl_status
grow_document(struct pawl_token_writer *writer, uint64_t n, struct pawl_error *err)
{
    if (n > PAWL_SHARD_IDS_MAX - writer->document_ids)
        return pawl_fail(err, PAWL_LIMIT, "limit",
                         "a document has at most %" PRIu64 " ids, this one %" PRIu64 " or more", PAWL_SHARD_IDS_MAX,
                         writer->document_ids + n);
    writer->document_ids += n;
    if (!writer->is_held)
        return PAWL_OK;
    if (writer->file_ids == 0 || writer->document_ids > writer->max_ids)
        return place_document(writer, writer->document_ids, err);
    return PAWL_OK;
}

/* `in` narrowed or widened to the width of the file, step by step. in_width: bytes per id of `in`. */
static enum pawl_status
put_ids(struct pawl_token_writer *writer, const void *in, unsigned in_width, size_t n, struct pawl_error *err)
{
    enum pawl_status st = grow_document(writer, n, err);
    const size_t per_step = STEP_BYTES / writer->width;
    if (st == PAWL_OK && in_width == writer->width)
        return put_encoded(writer, in, n * in_width, err);
    for (size_t at = 0; at < n && st == PAWL_OK; at += per_step) {
        size_t m = n - at < per_step ? n - at : per_step;
        uint16_t *narrow = (uint16_t *)(void *)writer->step;
        uint32_t *wide = (uint32_t *)(void *)writer->step;
        if (in_width == 4) {
            for (size_t i = 0; i < m; i++)
                narrow[i] = (uint16_t)((const uint32_t *)in)[at + i];
        } else if (writer->width == 2) {
            for (size_t i = 0; i < m; i++)
                narrow[i] = ((const unsigned char *)in)[at + i];
        } else {
            for (size_t i = 0; i < m; i++)
                wide[i] = ((const unsigned char *)in)[at + i];
        }
        st = put_encoded(writer, writer->step, m * writer->width, err);
    }
    return st;
}

static enum pawl_status
begin_document(struct pawl_token_writer *writer, struct pawl_error *err)
{
    writer->in_document = true;
    writer->document_ids = 0;
    if (!writer->manifest.has_separator)
        return PAWL_OK;
    uint32_t id = (uint32_t)writer->manifest.separator;
    return put_ids(writer, &id, 4, 1, err);
}

enum pawl_status
pawl_token_writer_document(struct pawl_token_writer *writer, struct pawl_error *err)
{
    enum pawl_status st = check_usable(writer, err);
    if (st != PAWL_OK)
        return st;
    st = end_document(writer, err);
    if (st == PAWL_OK) {
        writer->is_held = true;
        st = begin_document(writer, err);
    }
    return broken(writer, st, err);
}

enum pawl_status
pawl_token_writer_document_of(struct pawl_token_writer *writer, uint64_t ids, struct pawl_error *err)
{
    enum pawl_status st = check_usable(writer, err);
    if (st != PAWL_OK)
        return st;
    uint64_t all = ids + (writer->manifest.has_separator ? 1 : 0);
    if (ids > PAWL_SHARD_IDS_MAX || all > PAWL_SHARD_IDS_MAX)
        return pawl_fail(err, PAWL_LIMIT, "limit",
                         "a document has at most %" PRIu64 " ids with its separator, this one %" PRIu64,
                         PAWL_SHARD_IDS_MAX, all);
    st = end_document(writer, err);
    if (st == PAWL_OK) {
        writer->is_held = false;
        st = make_room(writer, all, err);
    }
    if (st == PAWL_OK)
        st = begin_document(writer, err);
    return broken(writer, st, err);
}

static enum pawl_status
check_document(const struct pawl_token_writer *writer, struct pawl_error *err)
{
    enum pawl_status st = check_usable(writer, err);
    if (st == PAWL_OK && !writer->in_document)
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "ids were given before a document was begun");
    return st;
}

enum pawl_status
pawl_token_writer_add(struct pawl_token_writer *writer, const uint32_t *ids, size_t n, struct pawl_error *err)
{
    enum pawl_status st = check_document(writer, err);
    if (st != PAWL_OK || n == 0)
        return st;
    uint64_t bad = pawl_shard_find_beyond(ids, 4, n, writer->id_limit);
    if (bad != n)
        return fail_id(writer, ids[bad], "id", err);
    return broken(writer, put_ids(writer, ids, 4, n, err), err);
}

enum pawl_status
pawl_token_writer_add_bytes(struct pawl_token_writer *writer, const void *bytes, size_t n, struct pawl_error *err)
{
    enum pawl_status st = check_document(writer, err);
    if (st != PAWL_OK || n == 0)
        return st;
    const unsigned char *at = bytes;
    for (size_t i = 0; writer->id_limit < 256 && i < n; i++) {
        if (at[i] >= writer->id_limit)
            return fail_id(writer, at[i], "id", err);
    }
    return broken(writer, put_ids(writer, bytes, 1, n, err), err);
}

void
pawl_token_writer_corpus(struct pawl_token_writer *writer, const unsigned char sha256[32])
{
    memcpy(writer->manifest.corpus_sha256, sha256, sizeof writer->manifest.corpus_sha256);
}

uint64_t
pawl_token_writer_id_limit(const struct pawl_token_writer *writer)
{
    return writer->id_limit;
}

/* ---- the end ---- */

static enum pawl_status
write_manifest(struct pawl_token_writer *writer, struct pawl_error *err)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    writer->manifest.files = writer->files; /* numbered from 00001: in byte order already */
    writer->manifest.n_files = writer->n_files;
    pawl_token_manifest_print(&writer->manifest, &text);
    enum pawl_status st = pawl_buffer_ok(&text) ? pawl_file_replace(&writer->dir, PAWL_TOKEN_MANIFEST_NAME,
                                                                    MANIFEST_TEMPORARY, text.data, text.len, err)
                                                : pawl_fail_memory(err, text.len);
    pawl_buffer_release(&text);
    return st;
}

enum pawl_status
pawl_token_writer_finish(struct pawl_token_writer *writer, const struct pawl_token_file **ret_files, size_t *ret_n,
                         struct pawl_error *err)
{
    enum pawl_status st = check_usable(writer, err);
    if (st != PAWL_OK)
        return st;
    st = end_document(writer, err);
    if (st == PAWL_OK && !writer->is_file_open && writer->n_files == 0)
        st = open_file(writer, err);
    if (st == PAWL_OK)
        st = close_file(writer, err);
    if (st == PAWL_OK)
        st = write_manifest(writer, err);
    if (st != PAWL_OK)
        return broken(writer, st, err);
    writer->is_finished = true;
    if (ret_files != NULL)
        *ret_files = writer->files;
    if (ret_n != NULL)
        *ret_n = writer->n_files;
    return PAWL_OK;
}
