/* trainer/counts.h: counting the pairs of consecutive bytes of a file, about as fast as the file can be read. */
#ifndef TRAINER_COUNTS_H
#define TRAINER_COUNTS_H

#include "trainer/bigram.h"

/*
 * Count every (byte, next byte) of a file, whatever its size. Pipes and devices are read to their end.
 *
 * threads    0: as many as the machine has processors for us. A part of the file for each; the sums are exact, so the
 *            result does not depend on it. Pipes are read by one.
 * ret_bytes  bytes that were read.
 *
 * Returns PAWL_OK; PAWL_NO_FILE; PAWL_ARGUMENT for a directory; PAWL_NO_MEMORY; other failures of the system.
 * Memory: about 1 MiB for each thread.
 */
enum pawl_status counts_of_file(const char *path, unsigned threads, struct bigram_counts *counts, uint64_t *ret_bytes,
                                struct pawl_error *err);

/* Add the pairs inside `bytes`: n - 1 of them, and not those across its borders. */
void counts_add(struct bigram_counts *counts, const unsigned char *bytes, size_t n);

#endif
