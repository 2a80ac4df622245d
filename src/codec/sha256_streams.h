/*
 * codec/sha256_streams.h: SHA-256 of several files at once on one core.
 *
 * Within one file SHA-256 is sequential, and the processor's rounds have a
 * latency of twice what their unit could take: one stream leaves half of it
 * idle. Two independent streams, their instructions interleaved, fill it
 * (docs/design/sha256.md has the numbers). Where the instructions are missing,
 * libcrypto does the streams one after another; digests are the same.
 *
 * A hash is used by one thread at a time; different hashes by any.
 */
#ifndef PAWL_CODEC_SHA256_STREAMS_H
#define PAWL_CODEC_SHA256_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "pawl/digest.h"

enum pawl_sha256_way {
    PAWL_SHA256_ONE_BY_ONE = 0, /* libcrypto, a stream after the other: everywhere */
    PAWL_SHA256_SHA_NI_2 = 1,   /* x86-64 with SHA extensions: two streams interleaved */
    PAWL_SHA256_ARMV8_2 = 2,    /* ARMv8 with the SHA-256 instructions, under Linux: two streams interleaved */
    PAWL_SHA256_AVX512_2 = 3    /* the rounds of SHA_NI_2, beside them the words of the message by AVX-512 */
};

/* Can this machine go that way? */
bool pawl_sha256_can(enum pawl_sha256_way way);
/* The way that is gone: the fastest that the machine can, as far as that is known, unless pawl_sha256_set_way said otherwise. */
enum pawl_sha256_way pawl_sha256_way(void);
const char *pawl_sha256_way_name(enum pawl_sha256_way way);
/* For tests and benchmarks; false, and nothing changes, for a way that the machine can't go. */
bool pawl_sha256_set_way(enum pawl_sha256_way way);

/* Go on with two different hashes, each by bytes of its own; the lengths may differ. */
void pawl_sha256_update_two(struct pawl_sha256 *a, struct pawl_sha256_span a_span, struct pawl_sha256 *b,
                            struct pawl_sha256_span b_span);
#endif
