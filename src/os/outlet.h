/* os/outlet.h: the last station of a lane: writes what comes, in order, past the system's cache where that can be done. */
#ifndef PAWL_OS_OUTLET_H
#define PAWL_OS_OUTLET_H

#include "os/file.h"

/* An outlet is used by one thread at a time; its owner reads it while the lane is flushed. */
struct pawl_outlet {
    const struct pawl_os *os;
    struct pawl_os_dir *dir;
    struct pawl_os_file *handle;
    const char *path; /* not owned, like the handles */
    uint64_t bytes_expected;
    uint64_t written;
    uint64_t written_back;
    size_t alignment; /* of direct writes; 0: they go through the cache */
};

/* Whether writes are direct is decided here, and again by the first that is refused. */
void pawl_outlet_begin(struct pawl_outlet *outlet);
enum pawl_status pawl_outlet_write(void *outlet, const void *data, size_t bytes, struct pawl_error *err);
/* No longer direct: whoever has the handle writes as he likes. */
enum pawl_status pawl_outlet_end(struct pawl_outlet *outlet, struct pawl_error *err);

/* An error of `operation` at `written`; of a full disk it says how much is needed and how much is there. */
enum pawl_status pawl_fail_writing(const struct pawl_outlet *outlet, uint64_t needed, int code, const char *operation,
                                   struct pawl_error *err);
bool pawl_is_full_disk(int code);

#endif
