/* stream/token_verify.h: examining shards and sets of them, for pawl_verify. */
#ifndef PAWL_STREAM_TOKEN_VERIFY_H
#define PAWL_STREAM_TOKEN_VERIFY_H

#include "base/report.h"
#include "pawl/tokens.h"

/*
 * Examine a token PATH and add one verdict to the report, by the name of the path.
 *
 * Every file is read whole: its form, every id against the vocabulary (the caller's, else the manifest's, else
 * the file's own), and under a manifest also the count, the digest, and whether it is there. Of each file the first fault is told,
 * of a set those of all its files. A shard beside the listed ones is a warning.
 *
 * vocabulary  the caller's; 0: not stated.
 *
 * Returns PAWL_OK when it could be examined, whatever was found; PAWL_NO_FILE when there is nothing at `path`; a fault of
 * the machine.
 */
enum pawl_status pawl_token_verify(struct pawl_str path, uint64_t vocabulary, struct pawl_report *report,
                                   struct pawl_error *err);

#endif
