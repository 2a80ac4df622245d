/* Writing a file front to back: direct where it can be, then its last, odd bytes through the cache. */
#include "os/outlet.h"

#include <errno.h>
#include <inttypes.h>
#include "os/path.h"

/* Begin write-back this often: the disk works while the data come, and the sync at the end is short. */
#define WRITE_BACK_BYTES ((uint64_t)8 << 20)

bool
pawl_is_full_disk(int code)
{
    return code == ENOSPC || code == EDQUOT;
}

enum pawl_status
pawl_fail_writing(const struct pawl_outlet *outlet, uint64_t needed, int code, const char *operation,
                  struct pawl_error *err)
{
    enum pawl_status st;
    uint64_t available = 0;
    if (pawl_is_full_disk(code) && outlet->os->dir_space(outlet->os->context, outlet->dir, &available) == 0)
        st = pawl_fail_os(err, code,
                          "%s '%s' at offset %" PRIu64 ": %" PRIu64 " bytes are needed, %" PRIu64
                          " are written, %" PRIu64 " more are available",
                          operation, PAWL_SHOW_PATH(outlet->path), outlet->written, needed, outlet->written, available);
    else
        st = pawl_fail_os(err, code, "%s '%s' at offset %" PRIu64, operation, PAWL_SHOW_PATH(outlet->path),
                          outlet->written);
    pawl_error_path(err, pawl_str_z(outlet->path));
    return st;
}

static int
set_direct(struct pawl_outlet *outlet, bool is_direct, size_t *ret_alignment)
{
    int code;
    do {
        code = outlet->os->file_set_direct(outlet->os->context, outlet->handle, is_direct, ret_alignment);
    } while (code == EINTR);
    return code;
}

void
pawl_outlet_begin(struct pawl_outlet *outlet)
{
    size_t alignment = 0;
    outlet->alignment = 0;
    /* Any refusal means the same: the other way is always there. */
    if (outlet->os->file_set_direct != NULL && set_direct(outlet, true, &alignment) == 0)
        outlet->alignment = alignment;
}

enum pawl_status
pawl_outlet_end(struct pawl_outlet *outlet, struct pawl_error *err)
{
    size_t alignment;
    if (outlet->alignment == 0)
        return PAWL_OK;
    int code = set_direct(outlet, false, &alignment);
    if (code != 0)
        return pawl_fail_writing(outlet, outlet->bytes_expected, code, "turn to cached writing of", err);
    outlet->alignment = 0;
    outlet->written_back = outlet->written;
    return PAWL_OK;
}

static enum pawl_status
begin_write_back(struct pawl_outlet *outlet, uint64_t needed, struct pawl_error *err)
{
    if (outlet->alignment != 0 || outlet->written - outlet->written_back < WRITE_BACK_BYTES)
        return PAWL_OK;
    int code = outlet->os->file_write_back(outlet->os->context, outlet->handle, outlet->written_back,
                                           outlet->written - outlet->written_back);
    /* Advice, mostly; but an error of the disk that shows here might not be told again. */
    if (code == EIO || pawl_is_full_disk(code))
        return pawl_fail_writing(outlet, needed, code, "begin write-back of", err);
    outlet->written_back = outlet->written;
    return PAWL_OK;
}

enum pawl_status
pawl_outlet_write(void *context, const void *data, size_t bytes, struct pawl_error *err)
{
    struct pawl_outlet *outlet = context;
    const struct pawl_os *os = outlet->os;
    const unsigned char *at = data;
    uint64_t end = outlet->written + bytes;
    uint64_t needed = end > outlet->bytes_expected ? end : outlet->bytes_expected;
    enum pawl_status st = PAWL_OK;
    while (bytes != 0) {
        size_t n = bytes;
        if (outlet->alignment != 0) {
            n -= n % outlet->alignment;
            /* The last bytes of the file; or a write was cut short where no direct one can go on. */
            if (n == 0 || outlet->written % outlet->alignment != 0 || (uintptr_t)at % outlet->alignment != 0) {
                st = pawl_outlet_end(outlet, err);
                if (st != PAWL_OK)
                    return st;
                continue;
            }
        }
        const struct pawl_os_span span = { at, n };
        size_t done = 0;
        int code = os->file_write_at(os->context, outlet->handle, outlet->written, &span, 1, &done);
        if (code == EINTR)
            continue;
        if (code == EINVAL && outlet->alignment != 0) {
            /* It took the flag and not the write. */
            st = pawl_outlet_end(outlet, err);
            if (st != PAWL_OK)
                return st;
            continue;
        }
        if (code == 0 && done == 0)
            code = EIO; /* a table that answers "nothing written" would be asked for ever */
        if (code != 0)
            return pawl_fail_writing(outlet, needed, code, "write", err);
        outlet->written += done;
        at += done;
        bytes -= done;
    }
    return begin_write_back(outlet, needed, err);
}
