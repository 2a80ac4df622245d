/* One shard: a file, mapped. */
#include "stream/shard_file.h"

#include <inttypes.h>
#include <stdlib.h>

enum pawl_status
pawl_shard_path(struct pawl_str path, char **ret_path, struct pawl_error *err)
{
    if (path.len == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the path is empty");
    if (memchr(path.data, '\0', path.len) != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the path '%s' has a NUL in it", PAWL_SHOW(path));
    char *copy = pawl_str_dup(path);
    if (copy == NULL)
        return pawl_fail_memory(err, path.len + 1);
    *ret_path = copy;
    return PAWL_OK;
}

/* Read at a time when all ids are looked at: they stay in a core's cache between the two. */
#define SCAN_BYTES ((size_t)256 << 10)

/* Let the system read pages in, so that a file which was cut is a status. */
static enum pawl_status
populate(const struct pawl_shard *shard, uint64_t from, uint64_t n, struct pawl_error *err)
{
    const unsigned width = shard->info.width;
    enum pawl_status st =
        pawl_map_populate(&shard->map, PAWL_SHARD_HEADER_BYTES + (size_t)(from * width), (size_t)(n * width), err);
    return st == PAWL_UNSUPPORTED ? PAWL_OK : st;
}

enum pawl_status
pawl_shard_touch(struct pawl_shard *shard, uint64_t from, uint64_t n, struct pawl_error *err)
{
    if (from >= shard->readable_from && from + n <= shard->readable_to)
        return PAWL_OK;
    bool is_next = from >= shard->readable_from && from <= shard->readable_to && shard->readable_to != 0;
    uint64_t bytes = is_next ? 2 * shard->touch_bytes : PAWL_SHARD_TOUCH_BYTES_MIN;
    if (bytes > PAWL_SHARD_TOUCH_BYTES_MAX)
        bytes = PAWL_SHARD_TOUCH_BYTES_MAX;
    uint64_t ahead = bytes / shard->info.width;
    if (ahead < n)
        ahead = n;
    if (ahead > shard->info.ids - from)
        ahead = shard->info.ids - from;
    enum pawl_status st = populate(shard, from, ahead, err);
    if (st != PAWL_OK)
        return st;
    shard->readable_from = from;
    shard->readable_to = from + ahead;
    shard->touch_bytes = bytes;
    return PAWL_OK;
}

static const unsigned char *
id_bytes(const struct pawl_shard *shard, uint64_t at)
{
    return shard->map.data + PAWL_SHARD_HEADER_BYTES + at * shard->info.width;
}

/* By reads, not through the mapping: all ids are looked at, which takes long enough for the file to be cut meanwhile, and a
 * touch of what is gone would end the program. */
static enum pawl_status
scan(const struct pawl_file *file, const struct pawl_shard_info *info, uint64_t vocabulary, struct pawl_error *err)
{
    const uint64_t step = SCAN_BYTES / info->width;
    unsigned char *ids = malloc(SCAN_BYTES);
    enum pawl_status st = ids == NULL ? pawl_fail_memory(err, SCAN_BYTES) : PAWL_OK;
    for (uint64_t at = 0; st == PAWL_OK && at < info->ids; at += step) {
        uint64_t n = info->ids - at < step ? info->ids - at : step;
        st = pawl_file_read(file, PAWL_SHARD_HEADER_BYTES + at * info->width, ids, (size_t)(n * info->width), err);
        if (st != PAWL_OK)
            break;
        uint64_t bad = pawl_shard_find_beyond(ids, info->width, n, vocabulary);
        if (bad != n)
            st = pawl_shard_fail_id(err, ids, info->width, bad, at, vocabulary);
    }
    free(ids);
    return st;
}

enum pawl_status
pawl_shard_open(struct pawl_str path, const struct pawl_shard_options *options, struct pawl_shard **ret_shard,
                struct pawl_error *err)
{
    struct pawl_shard_options opt = PAWL_SHARD_OPTIONS(.vocabulary = 0);
    if (options != NULL)
        memcpy(&opt, options, options->size < sizeof opt ? options->size : sizeof opt);

    struct pawl_file file = PAWL_FILE_INIT;
    char *name = NULL;
    unsigned char header[PAWL_SHARD_HEADER_BYTES];
    struct pawl_shard *shard = calloc(1, sizeof *shard);
    enum pawl_status st = PAWL_OK;
    if (shard == NULL) {
        st = pawl_fail_memory(err, sizeof *shard);
        goto out;
    }
    st = pawl_shard_path(path, &name, err);
    if (st != PAWL_OK)
        goto out;
    st = pawl_file_open_path(&file, pawl_os_posix(), name, err);
    if (st != PAWL_OK)
        goto out;

    size_t n = file.bytes < sizeof header ? (size_t)file.bytes : sizeof header;
    st = pawl_file_read(&file, 0, header, n, err);
    if (st != PAWL_OK)
        goto out;
    st = pawl_shard_parse(header, n, file.bytes, &shard->info, err);
    if (st != PAWL_OK)
        goto out;
    st = pawl_shard_check_vocabulary(&shard->info, opt.vocabulary, err);
    if (st != PAWL_OK)
        goto out;
    st = pawl_map_file(&shard->map, &file, err);
    if (st != PAWL_OK)
        goto out;
    /* Advice alone: a system that does not take it reads as well. */
    (void)file.os->file_advise(file.os->context, file.handle, 0, 0, PAWL_OS_SEQUENTIAL);

    uint64_t vocabulary = pawl_shard_vocabulary(&shard->info, opt.vocabulary);
    if (vocabulary != 0 && opt.trust_ids == 0) {
        st = scan(&file, &shard->info, vocabulary, err);
        if (st != PAWL_OK)
            goto out;
    }
    *ret_shard = shard;
    shard = NULL;
out:
    if (st != PAWL_OK)
        pawl_error_path(err, path);
    pawl_shard_close(shard);
    pawl_file_release(&file);
    free(name);
    return st;
}

void
pawl_shard_close(struct pawl_shard *shard)
{
    if (shard == NULL)
        return;
    pawl_map_release(&shard->map);
    free(shard);
}

struct pawl_shard_info
pawl_shard_info(const struct pawl_shard *shard)
{
    return shard->info;
}

const void *
pawl_shard_data(const struct pawl_shard *shard)
{
    return shard->info.ids == 0 ? NULL : id_bytes(shard, 0);
}

enum pawl_status
pawl_shard_read(const struct pawl_shard *shard, uint64_t from, size_t n, uint32_t *ids, struct pawl_error *err)
{
    if (from > shard->info.ids || n > shard->info.ids - from) {
        enum pawl_status st = pawl_fail(err, PAWL_ARGUMENT, "argument",
                                        "%zu ids from position %" PRIu64 " are not among the %" PRIu64 " of the shard",
                                        n, from, shard->info.ids);
        pawl_error_path(err, pawl_str_z(shard->map.path));
        return st;
    }
    if (n == 0)
        return PAWL_OK;
    enum pawl_status st = populate(shard, from, n, err);
    if (st != PAWL_OK)
        return st;
    pawl_shard_widen(ids, id_bytes(shard, from), shard->info.width, n);
    return PAWL_OK;
}
