/* The place where every file is written: gathered, shown to a tap, written, synced once. */
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "os/pages.h"
#include "os/path.h"

/* Small spans are gathered to this, and large ones cut to it, so that a tap's bytes are still in the cache when they
 * are copied to the system. */
#define GATHER_BYTES ((size_t)1 << 20)

/* Begin write-back this often: the disk works while the data come, and the sync at the end is short. */
#define WRITE_BACK_BYTES ((uint64_t)8 << 20)

/* What direct writes are aligned to: no disk of today wants more. One that does answers EINVAL, and the cache is used. */
#define DIRECT_ALIGN ((size_t)4096)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static bool
is_full_disk(int code)
{
    return code == ENOSPC || code == EDQUOT;
}

/* An error of `operation`; of a full disk it says how much is needed and how much is there. */
static enum pawl_status
fail_writer(const struct pawl_writer *writer, int code, const char *operation, struct pawl_error *err)
{
    enum pawl_status st;
    uint64_t available = 0;
    uint64_t needed = writer->bytes_expected > writer->offset ? writer->bytes_expected : writer->offset;

    if (is_full_disk(code) && writer->os->dir_space(writer->os->context, writer->dir, &available) == 0)
        st = pawl_fail_os(err, code,
                          "%s '%s' at offset %" PRIu64 ": %" PRIu64 " bytes are needed, %" PRIu64
                          " are written, %" PRIu64 " more are available",
                          operation, PAWL_SHOW_PATH(writer->path), writer->written, needed, writer->written, available);
    else
        st = pawl_fail_os(err, code, "%s '%s' at offset %" PRIu64, operation, PAWL_SHOW_PATH(writer->path),
                          writer->written);
    pawl_error_path(err, pawl_str_z(writer->path));
    return st;
}

enum pawl_status
pawl_writer_create(struct pawl_writer *writer, const struct pawl_dir *dir, const char *name, uint64_t bytes,
                   struct pawl_tap tap, struct pawl_error *err)
{
    const struct pawl_os *os = dir->os;
    struct pawl_writer fresh = PAWL_WRITER_INIT;
    enum pawl_status st = PAWL_OK;
    int code;

    fresh.os = os;
    fresh.dir = dir->handle;
    fresh.tap = tap;
    fresh.bytes_expected = bytes;
    fresh.path = pawl_path_join(dir->path, name);
    fresh.gather = malloc(GATHER_BYTES);
    fresh.gather_bytes = GATHER_BYTES;
    if (fresh.path == NULL || fresh.gather == NULL) {
        st = pawl_fail_memory(err, GATHER_BYTES);
        goto failed;
    }
    do {
        code = os->file_create(os->context, dir->handle, name, &fresh.handle);
    } while (code == EINTR);
    if (code != 0) {
        fresh.handle = NULL;
        st = pawl_fail_path(err, code, "create", fresh.path);
        goto failed;
    }
    if (bytes != 0) {
        do {
            code = os->file_reserve(os->context, fresh.handle, bytes);
        } while (code == EINTR);
        if (code == 0) {
            fresh.bytes_reserved = bytes;
        } else if (is_full_disk(code) || code == EIO || code == EFBIG) {
            st = fail_writer(&fresh, code, "reserve space for", err);
            goto failed;
        } /* else it can't be done here: a full disk will be met later */
    }
    *writer = fresh;
    return PAWL_OK;

failed:
    if (fresh.handle != NULL) {
        (void)os->file_close(os->context, fresh.handle);
        (void)os->remove_file(os->context, dir->handle, name); /* ours: it was just created */
    }
    free(fresh.path);
    free(fresh.gather);
    return st;
}

enum pawl_status
pawl_writer_to_sink(struct pawl_writer *writer, const struct pawl_sink *sink, struct pawl_tap tap,
                    struct pawl_error *err)
{
    struct pawl_writer fresh = PAWL_WRITER_INIT;
    fresh.sink = sink;
    fresh.tap = tap;
    fresh.gather = malloc(GATHER_BYTES);
    fresh.gather_bytes = GATHER_BYTES;
    if (fresh.gather == NULL)
        return pawl_fail_memory(err, GATHER_BYTES);
    *writer = fresh;
    return PAWL_OK;
}

/* What is gathered and then `bytes` of `data` to the sink. */
static enum pawl_status
hand_over(struct pawl_writer *writer, const void *data, size_t bytes, struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT; /* a sink may always fill an error */
    enum pawl_status st = PAWL_OK;
    if (writer->gathered != 0)
        st = writer->sink->write(writer->sink->context, writer->gather, writer->gathered, &own);
    if (st == PAWL_OK && bytes != 0) {
        writer->written += writer->gathered;
        writer->gathered = 0;
        st = writer->sink->write(writer->sink->context, data, bytes, &own);
    }
    if (st != PAWL_OK) {
        if (own.status == PAWL_OK) /* it left the error as it was */
            return pawl_fail(err, st, pawl_code_of_status(st), "the sink failed at byte %" PRIu64, writer->written);
        if (err != NULL)
            *err = own;
        return st;
    }
    writer->written = writer->offset;
    writer->gathered = 0;
    return PAWL_OK;
}

void
pawl_writer_set_direct(struct pawl_writer *writer)
{
    const struct pawl_os *os = writer->os;
    assert(writer->offset == 0);
    if (writer->sink != NULL || os->file_set_direct == NULL || writer->is_direct)
        return;
    unsigned char *gather = aligned_alloc(HUGE_PAGE_BYTES, PAWL_DIRECT_BYTES);
    if (gather == NULL)
        return;
    if (os->file_set_direct(os->context, writer->handle, true) != 0) {
        free(gather);
        return;
    }
    pawl_memory_filled(gather, PAWL_DIRECT_BYTES);
    free(writer->gather);
    writer->gather = gather;
    writer->gather_bytes = PAWL_DIRECT_BYTES;
    writer->is_direct = true;
}

/* Through the cache from here on. The kernel keeps the two ways of one file in step. */
static void
stop_direct(struct pawl_writer *writer)
{
    if (writer->is_direct)
        (void)writer->os->file_set_direct(writer->os->context, writer->handle, false);
    writer->is_direct = false;
}

/* Write what is gathered and then `bytes` of `data`, all of it. */
static enum pawl_status
write_out(struct pawl_writer *writer, const void *data, size_t bytes, struct pawl_error *err)
{
    const struct pawl_os *os = writer->os;
    struct pawl_os_span spans[2] = { { writer->gather, writer->gathered }, { data, bytes } };
    size_t at = 0;

    if (writer->sink != NULL)
        return hand_over(writer, data, bytes, err);
    for (;;) {
        while (at < 2 && spans[at].bytes == 0)
            at++;
        if (at == 2)
            break;
        size_t n_spans = spans[1].bytes == 0 ? 1 : 2 - at;
        size_t n = 0;
        int code = os->file_write_at(os->context, writer->handle, writer->written, spans + at, n_spans, &n);
        if (code == EINTR)
            continue;
        if (code == EINVAL && writer->is_direct) { /* not here, or not so: a short write left the offset odd */
            stop_direct(writer);
            continue;
        }
        if (code == 0 && n == 0)
            code = EIO; /* a table that answers "nothing written" would be asked for ever */
        if (code != 0)
            return fail_writer(writer, code, "write", err);
        writer->written += n;
        for (size_t i = at; i < 2 && n != 0; i++) {
            size_t taken = n < spans[i].bytes ? n : spans[i].bytes;
            spans[i].data = (const unsigned char *)spans[i].data + taken;
            spans[i].bytes -= taken;
            n -= taken;
        }
    }
    writer->gathered = 0;

    if (writer->is_direct)
        writer->written_back = writer->written;
    if (writer->written - writer->written_back >= WRITE_BACK_BYTES) {
        int code = os->file_write_back(os->context, writer->handle, writer->written_back,
                                       writer->written - writer->written_back);
        /* Advice, mostly; but an error of the disk that shows here might not be told again. */
        if (code == EIO || is_full_disk(code))
            return fail_writer(writer, code, "begin write-back of", err);
        writer->written_back = writer->written;
    }
    return PAWL_OK;
}

static enum pawl_status
check_length(const struct pawl_writer *writer, size_t bytes, struct pawl_error *err)
{
    if (bytes <= (uint64_t)INT64_MAX - writer->offset || writer->sink != NULL)
        return PAWL_OK;
    return fail_writer(writer, EFBIG, "write", err);
}

enum pawl_status
pawl_writer_add(struct pawl_writer *writer, const void *data, size_t bytes, struct pawl_error *err)
{
    const unsigned char *at = data;
    enum pawl_status st = check_length(writer, bytes, err);

    while (st == PAWL_OK && bytes != 0) {
        size_t room = writer->gather_bytes - writer->gathered;
        size_t n = bytes < writer->gather_bytes ? bytes : writer->gather_bytes;
        bool is_small = n <= room && n < writer->gather_bytes;
        if (writer->is_direct) { /* whole pages from where they are, or whole buffers */
            bool is_aligned = writer->gathered == 0 && (uintptr_t)at % DIRECT_ALIGN == 0 && n >= DIRECT_ALIGN;
            is_small = !is_aligned;
            n = is_aligned ? n - n % DIRECT_ALIGN : n < room ? n : room;
        }
        if (writer->tap.update != NULL)
            writer->tap.update(writer->tap.context, at, n);
        writer->offset += n;
        if (is_small) {
            memcpy(writer->gather + writer->gathered, at, n);
            writer->gathered += n;
            if (writer->is_direct && writer->gathered == writer->gather_bytes)
                st = write_out(writer, NULL, 0, err);
        } else {
            st = write_out(writer, at, n, err);
        }
        at += n;
        bytes -= n;
    }
    return st;
}

enum pawl_status
pawl_writer_room(struct pawl_writer *writer, size_t bytes, void **ret_room, size_t *ret_bytes, struct pawl_error *err)
{
    if (writer->gathered == writer->gather_bytes) {
        enum pawl_status st = write_out(writer, NULL, 0, err);
        if (st != PAWL_OK)
            return st;
    }
    size_t room = writer->gather_bytes - writer->gathered;
    *ret_room = writer->gather + writer->gathered;
    *ret_bytes = bytes < room && bytes != 0 ? bytes : room;
    return PAWL_OK;
}

enum pawl_status
pawl_writer_filled(struct pawl_writer *writer, size_t bytes, struct pawl_error *err)
{
    assert(bytes <= writer->gather_bytes - writer->gathered);
    enum pawl_status st = check_length(writer, bytes, err);
    if (st != PAWL_OK)
        return st;
    if (writer->tap.update != NULL && bytes != 0)
        writer->tap.update(writer->tap.context, writer->gather + writer->gathered, bytes);
    writer->gathered += bytes;
    writer->offset += bytes;
    return PAWL_OK;
}

enum pawl_status
pawl_writer_sync(struct pawl_writer *writer, struct pawl_error *err)
{
    const struct pawl_os *os = writer->os;
    if (writer->gathered % DIRECT_ALIGN != 0)
        stop_direct(writer); /* the last bytes are no whole page */
    enum pawl_status st = write_out(writer, NULL, 0, err);
    if (st != PAWL_OK || writer->sink != NULL)
        return st;
    if (writer->bytes_reserved > writer->written) {
        /* Give back what was reserved and not used. Space only: a filesystem that refuses to keeps it. */
        int code;
        do {
            code = os->file_set_bytes(os->context, writer->handle, writer->written);
        } while (code == EINTR);
        if (code == EIO || is_full_disk(code))
            return fail_writer(writer, code, "cut", err);
        writer->bytes_reserved = writer->written;
    }
    /* Once. After a failure the pages may be marked clean, and a second sync would answer "done" for lost data. */
    int code = os->file_sync(os->context, writer->handle);
    return code == 0 ? PAWL_OK : fail_writer(writer, code, "sync", err);
}

enum pawl_status
pawl_writer_close(struct pawl_writer *writer, struct pawl_error *err)
{
    if (writer->gathered % DIRECT_ALIGN != 0)
        stop_direct(writer);
    enum pawl_status st = write_out(writer, NULL, 0, err); /* nothing, after a sync */
    if (st != PAWL_OK)
        return st;
    if (writer->sink != NULL) {
        pawl_writer_abandon(writer);
        return PAWL_OK;
    }
    int code = writer->os->file_close(writer->os->context, writer->handle);
    writer->handle = NULL; /* closed in any case */
    if (code != 0)
        st = fail_writer(writer, code, "close", err);
    pawl_writer_abandon(writer);
    return st;
}

void
pawl_writer_abandon(struct pawl_writer *writer)
{
    if (writer->handle != NULL)
        (void)writer->os->file_close(writer->os->context, writer->handle);
    free(writer->path);
    free(writer->gather);
    *writer = (struct pawl_writer)PAWL_WRITER_INIT;
}
