/*
 * codec/xxh64.h: XXH64, a checksum at the speed of memory, by its published specification (docs/design/sums.md has the reasons).
 *
 * It finds accidents, not attacks: whoever wants can make other bytes of the same sum.
 */
#ifndef PAWL_CODEC_XXH64_H
#define PAWL_CODEC_XXH64_H

#include <stddef.h>
#include <stdint.h>

#define PAWL_XXH64_STRIPE_BYTES 32

struct pawl_xxh64 {
    uint64_t lanes[4];
    uint64_t seed;
    uint64_t bytes;                              /* taken so far */
    unsigned char rest[PAWL_XXH64_STRIPE_BYTES]; /* bytes % 32 of them: no whole stripe yet */
};

void pawl_xxh64_begin(struct pawl_xxh64 *sum, uint64_t seed);
void pawl_xxh64_update(struct pawl_xxh64 *sum, const void *data, size_t bytes);
/* The sum of all that was taken; it can go on. */
uint64_t pawl_xxh64_finish(const struct pawl_xxh64 *sum);

/* Of one run of bytes; `data` may be NULL when there are none. */
uint64_t pawl_xxh64(const void *data, size_t bytes, uint64_t seed);

#endif
