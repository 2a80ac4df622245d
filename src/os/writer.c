/* The place where every file is written: gathered or in a lane, shown to a tap, written, synced once. */
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "os/lane.h"
#include "os/path.h"
#include "os/outlet.h"

/* Small spans are gathered to this, and large ones cut to it, so that a tap's bytes are still in the cache when they
 * are copied to the system. */
#define GATHER_BYTES ((size_t)1 << 20)

/* Begin write-back this often: the disk works while the data come, and the sync at the end is short. */
#define WRITE_BACK_BYTES ((uint64_t)8 << 20)

/* Smaller files are written by their caller: threads and direct writes would cost more than they save. */
#define LANE_BYTES ((uint64_t)1 << 20)
#define LANE_SLOTS 4

/* Lent bytes go on their way in pieces of this, so that writing and hashing overlap; each begins where a direct write can. */
#define LEND_BYTES ((size_t)4 << 20)
#define LEND_ALIGNMENT 4096

static enum pawl_status
fail_writer(const struct pawl_writer *writer, int code, const char *operation, struct pawl_error *err)
{
    const struct pawl_outlet at = {
        .os = writer->os, .dir = writer->dir, .path = writer->path, .written = writer->written
    };
    uint64_t needed = writer->bytes_expected > writer->offset ? writer->bytes_expected : writer->offset;
    return pawl_fail_writing(&at, needed, code, operation, err);
}

/* ---- a lane, for large files ---- */

static void
close_lane(struct pawl_writer *writer)
{
    pawl_lane_close(writer->lane);
    pawl_lanes_free(writer->own_lanes);
    free(writer->outlet);
    writer->lane = NULL;
    writer->own_lanes = NULL;
    writer->outlet = NULL;
}

/* Where all buffers are in use, or there is no memory for a lane, the file goes the simple way: no lane then, and no error. */
static void
open_lane(struct pawl_writer *writer, struct pawl_lanes *lanes)
{
    bool has_threads = writer->os->takes_threads;
    writer->outlet = malloc(sizeof *writer->outlet);
    if (writer->outlet == NULL)
        return;
    *writer->outlet = (struct pawl_outlet){ .os = writer->os,
                                            .dir = writer->dir,
                                            .handle = writer->handle,
                                            .path = writer->path,
                                            .bytes_expected = writer->bytes_expected };
    const struct pawl_lane_options options = { .tap = writer->tap,
                                               .write = pawl_outlet_write,
                                               .write_context = writer->outlet,
                                               .has_writer = has_threads,
                                               .slots = LANE_SLOTS };
    unsigned threads = has_threads && writer->tap.update != NULL ? 1 : 0;
    if (lanes == NULL && pawl_lanes_new(&writer->own_lanes, NULL, threads, NULL) == PAWL_OK)
        lanes = writer->own_lanes;
    if (lanes == NULL || pawl_lane_open(&writer->lane, lanes, &options, NULL) != PAWL_OK)
        close_lane(writer);
    else
        pawl_outlet_begin(writer->outlet); /* the lane is empty: nobody else looks at it */
}

/* Wait for the lane; then the handle is as any other. */
static enum pawl_status
flush_lane(struct pawl_writer *writer, struct pawl_error *err)
{
    enum pawl_status st = pawl_lane_flush(writer->lane, err);
    if (st == PAWL_OK)
        st = pawl_outlet_end(writer->outlet, err);
    writer->written = writer->outlet->written;
    return st;
}

/* ---- beginning ---- */

enum pawl_status
pawl_writer_create(struct pawl_writer *writer, const struct pawl_dir *dir, const char *name, uint64_t bytes,
                   struct pawl_tap tap, struct pawl_error *err)
{
    return pawl_writer_create_among(writer, NULL, dir, name, bytes, tap, err);
}

enum pawl_status
pawl_writer_create_among(struct pawl_writer *writer, struct pawl_lanes *lanes, const struct pawl_dir *dir,
                         const char *name, uint64_t bytes, struct pawl_tap tap, struct pawl_error *err)
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
    if (fresh.path == NULL)
        return pawl_fail_memory(err, strlen(name));
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
        } else if (pawl_is_full_disk(code) || code == EIO || code == EFBIG) {
            st = fail_writer(&fresh, code, "reserve space for", err);
            goto failed;
        } /* else it can't be done here: a full disk will be met later */
    }
    if (bytes >= LANE_BYTES)
        open_lane(&fresh, lanes);
    if (fresh.lane == NULL) {
        fresh.gather = malloc(GATHER_BYTES);
        if (fresh.gather == NULL) {
            st = pawl_fail_memory(err, GATHER_BYTES);
            goto failed;
        }
    }
    *writer = fresh;
    return PAWL_OK;

failed:
    if (fresh.handle != NULL) {
        (void)os->file_close(os->context, fresh.handle);
        (void)os->remove_file(os->context, dir->handle, name); /* ours: it was just created */
    }
    free(fresh.path);
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

/* Write what is gathered and then `bytes` of `data`, all of it. */
static enum pawl_status
write_out(struct pawl_writer *writer, const void *data, size_t bytes, struct pawl_error *err)
{
    const struct pawl_os *os = writer->os;
    struct pawl_os_span spans[2] = { { writer->gather, writer->gathered }, { data, bytes } };
    size_t at = 0;

    assert(writer->lane == NULL);
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

    if (writer->written - writer->written_back >= WRITE_BACK_BYTES) {
        int code = os->file_write_back(os->context, writer->handle, writer->written_back,
                                       writer->written - writer->written_back);
        /* Advice, mostly; but an error of the disk that shows here might not be told again. */
        if (code == EIO || pawl_is_full_disk(code))
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

    while (st == PAWL_OK && bytes != 0 && writer->lane != NULL) {
        void *room;
        size_t n;
        st = pawl_lane_room(writer->lane, &room, &n, err);
        if (st != PAWL_OK)
            return st;
        n = n < bytes ? n : bytes;
        memcpy(room, at, n);
        writer->offset += n;
        st = pawl_lane_filled(writer->lane, n, err);
        at += n;
        bytes -= n;
    }
    while (st == PAWL_OK && bytes != 0) {
        size_t room = GATHER_BYTES - writer->gathered;
        size_t n = bytes < GATHER_BYTES ? bytes : GATHER_BYTES;
        bool is_small = n <= room && n < GATHER_BYTES;
        if (writer->tap.update != NULL)
            writer->tap.update(writer->tap.context, at, n);
        writer->offset += n;
        if (is_small) {
            memcpy(writer->gather + writer->gathered, at, n);
            writer->gathered += n;
        } else {
            st = write_out(writer, at, n, err);
        }
        at += n;
        bytes -= n;
    }
    return st;
}

enum pawl_status
pawl_writer_lend(struct pawl_writer *writer, const void *data, size_t bytes, struct pawl_error *err)
{
    const unsigned char *at = data;
    enum pawl_status st = check_length(writer, bytes, err);
    bool is_aligned =
        writer->lane != NULL && (uintptr_t)at % LEND_ALIGNMENT == 0 && writer->offset % LEND_ALIGNMENT == 0;
    while (st == PAWL_OK && is_aligned && bytes >= LEND_ALIGNMENT) {
        size_t n = bytes < LEND_BYTES ? bytes - bytes % LEND_ALIGNMENT : LEND_BYTES;
        writer->offset += n;
        st = pawl_lane_lend(writer->lane, at, n, err);
        at += n;
        bytes -= n;
    }
    return st == PAWL_OK ? pawl_writer_add(writer, at, bytes, err) : st;
}

enum pawl_status
pawl_writer_room(struct pawl_writer *writer, size_t bytes, void **ret_room, size_t *ret_bytes, struct pawl_error *err)
{
    if (writer->lane != NULL) {
        size_t room;
        enum pawl_status st = pawl_lane_room(writer->lane, ret_room, &room, err);
        if (st == PAWL_OK)
            *ret_bytes = bytes < room && bytes != 0 ? bytes : room;
        return st;
    }
    if (writer->gathered == GATHER_BYTES) {
        enum pawl_status st = write_out(writer, NULL, 0, err);
        if (st != PAWL_OK)
            return st;
    }
    size_t room = GATHER_BYTES - writer->gathered;
    *ret_room = writer->gather + writer->gathered;
    *ret_bytes = bytes < room && bytes != 0 ? bytes : room;
    return PAWL_OK;
}

enum pawl_status
pawl_writer_filled(struct pawl_writer *writer, size_t bytes, struct pawl_error *err)
{
    enum pawl_status st = check_length(writer, bytes, err);
    if (st != PAWL_OK)
        return st;
    if (writer->lane != NULL) {
        writer->offset += bytes;
        return pawl_lane_filled(writer->lane, bytes, err);
    }
    assert(bytes <= GATHER_BYTES - writer->gathered);
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
    enum pawl_status st = writer->lane != NULL ? flush_lane(writer, err) : write_out(writer, NULL, 0, err);
    if (st != PAWL_OK || writer->sink != NULL)
        return st;
    if (writer->bytes_reserved > writer->written) {
        /* Give back what was reserved and not used. Space only: a filesystem that refuses to keeps it. */
        int code;
        do {
            code = os->file_set_bytes(os->context, writer->handle, writer->written);
        } while (code == EINTR);
        if (code == EIO || pawl_is_full_disk(code))
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
    /* Nothing, after a sync. */
    enum pawl_status st = writer->lane != NULL ? flush_lane(writer, err) : write_out(writer, NULL, 0, err);
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
    close_lane(writer);
    if (writer->handle != NULL)
        (void)writer->os->file_close(writer->os->context, writer->handle);
    free(writer->path);
    free(writer->gather);
    *writer = (struct pawl_writer)PAWL_WRITER_INIT;
}
