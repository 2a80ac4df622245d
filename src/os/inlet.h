/*
 * os/inlet.h: a file read front to back, piece by piece, ahead of who wants its bytes: past the system's cache where they are not in it.
 *
 * What is in the cache is best read from there, straight to where it is wanted. What is not is read directly into buffers of our own
 * (os/slots.h), several pieces at once: that costs a fifth of the processor's time, leaves the cache as it was, and keeps the disk busy
 * while others are copied and hashed. Never into the caller's memory: his pages may be small and lie anywhere, and a fork in the middle of a
 * direct read can give its bytes to the wrong process. Which piece is which is asked for each, right before it is read; every refusal,
 * of a table, a filesystem or a single read, means the cache.
 *
 *     pawl_inlet_open -> pawl_inlet_next, (pawl_inlet_load) ... -> pawl_inlet_close
 *
 * An inlet belongs to one thread; its readers are its own, and there are none where the table does not take threads.
 */
#ifndef PAWL_OS_INLET_H
#define PAWL_OS_INLET_H

#include "os/file.h"

struct pawl_inlet;

/* `begin` up to `end` of the file. */
struct pawl_inlet_piece {
    uint64_t begin, end;
    const unsigned char
        *data; /* of `begin`. NULL: it was not read. Read it from the file to where it is wanted, or load it */
};

/* Bytes from `begin` to `end`, in pieces of at most 2 MiB. `at_once`: so many files are read beside each other, this one among them. */
enum pawl_status pawl_inlet_open(struct pawl_inlet **ret_inlet, const struct pawl_file *file, uint64_t begin,
                                 uint64_t end, size_t at_once, struct pawl_error *err);
/* The next piece; the owner lets go of the one before. Past the last one: an empty one. PAWL_TRUNCATED, and what pawl_file_read fails with. */
enum pawl_status pawl_inlet_next(struct pawl_inlet *inlet, struct pawl_inlet_piece *ret_piece, struct pawl_error *err);
/* Of a piece that was not read, read the rest, from `at` on, into its buffer: it begins there then. */
enum pawl_status pawl_inlet_load(struct pawl_inlet *inlet, uint64_t at, struct pawl_inlet_piece *piece,
                                 struct pawl_error *err);
/* One who holds the buffer of the present piece beside the owner, until pawl_inlet_give, by any thread. */
void *pawl_inlet_share(struct pawl_inlet *inlet);
void pawl_inlet_give(void *share);
/* Nobody looks at a buffer any more. Fine with NULL. */
void pawl_inlet_close(struct pawl_inlet *inlet);

#endif
