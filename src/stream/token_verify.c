#include "stream/token_verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include "formats/json/name_table.h"
#include "formats/tokens/shard.h"
#include "pawl/digest.h"
#include "stream/shard_file.h"
#include "stream/token_files.h"

/* Bytes hashed at a time. */
#define CHUNK_BYTES ((size_t)1 << 20)

static struct pawl_str
last_component(struct pawl_str path)
{
    size_t from = path.len;
    while (from > 0 && path.data[from - 1] != '/')
        from--;
    return pawl_str_make(path.data + from, path.len - from);
}

static enum pawl_status
hash_file(struct pawl_str path, unsigned char digest[32], struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_sha256 *hash = NULL;
    char *name = NULL;
    unsigned char *chunk = malloc(CHUNK_BYTES);
    enum pawl_status st = chunk == NULL ? pawl_fail_memory(err, CHUNK_BYTES) : pawl_shard_path(path, &name, err);
    if (st == PAWL_OK)
        st = pawl_file_open_path(&file, pawl_os_posix(), name, err);
    if (st == PAWL_OK)
        st = pawl_sha256_new(&hash, err);
    for (uint64_t at = 0; st == PAWL_OK && at < file.bytes; at += CHUNK_BYTES) {
        size_t n = file.bytes - at < CHUNK_BYTES ? (size_t)(file.bytes - at) : CHUNK_BYTES;
        st = pawl_file_read(&file, at, chunk, n, err);
        if (st == PAWL_OK)
            pawl_sha256_update(hash, chunk, n);
    }
    if (st == PAWL_OK)
        pawl_sha256_finish(hash, digest);
    pawl_sha256_free(hash);
    pawl_file_release(&file);
    free(name);
    free(chunk);
    return st;
}

/* The first fault of one file, as an error; *ret_bytes is its size when it is a shard. */
static enum pawl_status
examine(const struct pawl_token_files *files, size_t i, struct pawl_str path, uint64_t vocabulary, uint64_t *ret_bytes,
        struct pawl_error *err)
{
    const struct pawl_token_file *row = pawl_token_files_row(files, i);
    struct pawl_shard *shard = NULL;
    struct pawl_shard_options options =
        PAWL_SHARD_OPTIONS(.vocabulary = vocabulary != 0 ? vocabulary : pawl_token_files_vocabulary(files, i));
    /* The manifest vouches for nothing here. A vocabulary that does not fit in a header is not stated there. */
    enum pawl_status st = pawl_shard_open(path, &options, &shard, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_shard_info info = pawl_shard_info(shard);
    *ret_bytes = PAWL_SHARD_HEADER_BYTES + info.ids * info.width;
    pawl_shard_close(shard);
    st = pawl_token_files_check(files, i, &info, err);
    if (st != PAWL_OK || row == NULL)
        return st;

    unsigned char digest[32];
    char found[65], listed[65];
    st = hash_file(path, digest, err);
    if (st != PAWL_OK || memcmp(digest, row->sha256, sizeof digest) == 0)
        return st;
    pawl_sha256_print(digest, found);
    pawl_sha256_print(row->sha256, listed);
    return pawl_fail(err, PAWL_CORRUPT, "hash", "sha256 is %s, %s lists %s", found, PAWL_TOKEN_MANIFEST_NAME, listed);
}

/* Files of a set have names of their own: nothing is told twice. */
static size_t
first_of_two(void *context, size_t a, size_t b)
{
    (void)context;
    return a < b ? a : b;
}

/* Shards in the directory that no row lists. */
static enum pawl_status
warn_unlisted(const struct pawl_str *listed, size_t n, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct pawl_dir_list list = { NULL, 0 };
    struct pawl_name_table table = PAWL_NAME_TABLE_INIT;
    struct pawl_str *names = calloc(n + 1, sizeof *names);
    char *name = NULL;
    struct pawl_str parent = pawl_str_make(listed[0].data, listed[0].len - last_component(listed[0]).len);
    enum pawl_status st = pawl_shard_path(parent.len != 0 ? parent : PAWL_STR("."), &name, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&dir, pawl_os_posix(), name, err);
    if (st == PAWL_OK)
        st = pawl_dir_list(&dir, &list, err);
    if (st == PAWL_OK && names == NULL)
        st = pawl_fail_memory(err, n * sizeof *names);
    for (size_t k = 0; st == PAWL_OK && k < n; k++)
        names[k] = last_component(listed[k]);
    if (st == PAWL_OK)
        st = pawl_name_table_build(&table, names, sizeof *names, n, first_of_two, NULL, err);
    for (size_t i = 0; st == PAWL_OK && i < list.n; i++) {
        struct pawl_str entry = pawl_str_z(list.entries[i].name);
        if (pawl_token_is_file_name(entry) && pawl_name_table_find(&table, entry) == PAWL_NAME_TABLE_NONE)
            pawl_report_warning(report, "unlisted-file", entry, "%s does not list this shard",
                                PAWL_TOKEN_MANIFEST_NAME);
    }
    pawl_name_table_release(&table);
    free(names);
    pawl_dir_list_release(&list);
    pawl_dir_release(&dir);
    free(name);
    return st;
}

enum pawl_status
pawl_token_verify(struct pawl_str path, uint64_t vocabulary, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_token_files *files = NULL;
    struct pawl_error found = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_token_files_open(&path, 1, PAWL_STR(""), &files, &found);
    if (st == PAWL_CORRUPT || st == PAWL_LIMIT) { /* the manifest, or a directory of nothing */
        pawl_report_begin_verdict(report, path, PAWL_KIND_TOKEN_DIR);
        bool is_manifest = strcmp(found.code, "manifest") == 0;
        pawl_report_problem_error(report, NULL, is_manifest ? PAWL_STR(PAWL_TOKEN_MANIFEST_NAME) : PAWL_NO_STR, &found);
        pawl_report_end_verdict(report);
        return PAWL_OK;
    }
    if (st != PAWL_OK) {
        if (err != NULL)
            *err = found;
        return st;
    }

    size_t n;
    const struct pawl_str *paths = pawl_token_files_paths(files, &n);
    bool is_set = pawl_token_files_row(files, 0) != NULL;
    bool is_file = n == 1 && pawl_str_equal(paths[0], path);
    pawl_report_begin_verdict(report, path, is_file ? PAWL_KIND_TOKEN_SHARD : PAWL_KIND_TOKEN_DIR);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        uint64_t bytes = 0;
        enum pawl_status one = examine(files, i, paths[i], vocabulary, &bytes, &found);
        struct pawl_str name = is_file ? PAWL_NO_STR : last_component(paths[i]);
        pawl_report_count(report, 1, bytes);
        if (one == PAWL_NO_FILE && is_set)
            pawl_report_problem(report, "missing-file", name, PAWL_NO_STR, PAWL_OFFSET_NONE, "%s lists it",
                                PAWL_TOKEN_MANIFEST_NAME);
        else if (one == PAWL_NO_FILE || pawl_status_is_machine_fault(one) || one == PAWL_ARGUMENT || one == PAWL_IO)
            st = one; /* not examined */
        else if (one != PAWL_OK)
            pawl_report_problem_error(report, NULL, name, &found);
    }
    if (st != PAWL_OK && err != NULL)
        *err = found;
    if (st == PAWL_OK && is_set)
        st = warn_unlisted(paths, n, report, err);
    pawl_report_end_verdict(report);
    pawl_token_files_close(files);
    return st;
}
