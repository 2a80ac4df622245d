/* pawl/digest.h: SHA-256 (FIPS 180-4) by libcrypto, which uses the processor's instructions, and FNV-1a. */
#ifndef PAWL_DIGEST_H
#define PAWL_DIGEST_H

#include "pawl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_sha256; /* a running hash; belongs to one thread at a time */

/* Start a hash. PAWL_NO_MEMORY. */
PAWL_API enum pawl_status pawl_sha256_new(struct pawl_sha256 **ret_hash, struct pawl_error *err);
PAWL_API void pawl_sha256_update(struct pawl_sha256 *hash, const void *bytes, size_t n); /* cannot fail */
/* The digest of all that was given. The hash begins anew. */
PAWL_API void pawl_sha256_finish(struct pawl_sha256 *hash, unsigned char ret_digest[32]);
PAWL_API void pawl_sha256_free(struct pawl_sha256 *hash); /* NULL is fine */

/*
 * Go on with n different hashes at once, hashes[i] by spans[i]; lengths may differ. Where the processor can, two streams share a core and go
 * nearly twice as fast as one after the other; the digests are the same.
 */
struct pawl_sha256_span {
    const void *data;
    size_t bytes;
};
PAWL_API void pawl_sha256_update_each(struct pawl_sha256 *const *hashes, const struct pawl_sha256_span *spans,
                                      size_t n);

/* In one call. */
PAWL_API enum pawl_status pawl_sha256_of(const void *bytes, size_t n, unsigned char ret_digest[32],
                                         struct pawl_error *err);
/* 64 lowercase hex digits and a NUL. */
PAWL_API void pawl_sha256_print(const unsigned char digest[32], char ret_hex[65]);
/* False unless exactly 64 lowercase hex digits. */
PAWL_API bool pawl_sha256_parse(struct pawl_str hex, unsigned char ret_digest[32]);

/* FNV-1a, 64 bits; begin with PAWL_FNV1A_BASIS. */
#define PAWL_FNV1A_BASIS UINT64_C(0xcbf29ce484222325)
PAWL_API uint64_t pawl_fnv1a(uint64_t hash, const void *bytes, size_t n);

#ifdef __cplusplus
}
#endif

#endif
