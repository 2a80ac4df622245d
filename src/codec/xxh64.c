/*
 * XXH64 as its specification says: four lanes of 64 bits take 8 bytes each of a stripe of 32; at the end the lanes are folded into one
 * word, the bytes behind the last stripe are mixed in, and the word is stirred. All words are little-endian, all arithmetic is modulo 2^64.
 */
#include "codec/xxh64.h"

#include <string.h>
#include "base/cursor.h"

#define STRIPE PAWL_XXH64_STRIPE_BYTES

static const uint64_t PRIME_1 = UINT64_C(0x9e3779b185ebca87);
static const uint64_t PRIME_2 = UINT64_C(0xc2b2ae3d27d4eb4f);
static const uint64_t PRIME_3 = UINT64_C(0x165667b19e3779f9);
static const uint64_t PRIME_4 = UINT64_C(0x85ebca77c2b2ae63);
static const uint64_t PRIME_5 = UINT64_C(0x27d4eb2f165667c5);

static inline uint64_t
rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline uint64_t
take_word(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * PRIME_2, 31) * PRIME_1;
}

static void
take_stripes(uint64_t lanes[4], const unsigned char *at, size_t stripes)
{
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (; stripes != 0; stripes--, at += STRIPE) {
        a = take_word(a, pawl_get_u64le(at));
        b = take_word(b, pawl_get_u64le(at + 8));
        c = take_word(c, pawl_get_u64le(at + 16));
        d = take_word(d, pawl_get_u64le(at + 24));
    }
    lanes[0] = a;
    lanes[1] = b;
    lanes[2] = c;
    lanes[3] = d;
}

void
pawl_xxh64_begin(struct pawl_xxh64 *sum, uint64_t seed)
{
    *sum = (struct pawl_xxh64){ .lanes = { seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1 },
                                .seed = seed };
}

void
pawl_xxh64_update(struct pawl_xxh64 *sum, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    size_t have = (size_t)(sum->bytes % STRIPE);
    if (bytes == 0)
        return;
    sum->bytes += bytes;
    if (have != 0) {
        size_t n = bytes < STRIPE - have ? bytes : STRIPE - have;
        memcpy(sum->rest + have, at, n);
        if (have + n < STRIPE)
            return;
        take_stripes(sum->lanes, sum->rest, 1);
        at += n;
        bytes -= n;
    }
    take_stripes(sum->lanes, at, bytes / STRIPE);
    at += bytes - bytes % STRIPE;
    if (bytes % STRIPE != 0)
        memcpy(sum->rest, at, bytes % STRIPE);
}

static uint64_t
fold_lanes(const uint64_t lanes[4])
{
    uint64_t word = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
    for (int i = 0; i < 4; i++)
        word = (word ^ take_word(0, lanes[i])) * PRIME_1 + PRIME_4;
    return word;
}

uint64_t
pawl_xxh64_finish(const struct pawl_xxh64 *sum)
{
    const unsigned char *at = sum->rest;
    size_t left = (size_t)(sum->bytes % STRIPE);
    uint64_t word = sum->bytes >= STRIPE ? fold_lanes(sum->lanes) : sum->seed + PRIME_5;
    word += sum->bytes;
    for (; left >= 8; left -= 8, at += 8)
        word = rotate(word ^ take_word(0, pawl_get_u64le(at)), 27) * PRIME_1 + PRIME_4;
    for (; left >= 4; left -= 4, at += 4)
        word = rotate(word ^ pawl_get_u32le(at) * PRIME_1, 23) * PRIME_2 + PRIME_3;
    for (; left != 0; left--, at++)
        word = rotate(word ^ *at * PRIME_5, 11) * PRIME_1;
    word = (word ^ word >> 33) * PRIME_2;
    word = (word ^ word >> 29) * PRIME_3;
    return word ^ word >> 32;
}

uint64_t
pawl_xxh64(const void *data, size_t bytes, uint64_t seed)
{
    struct pawl_xxh64 sum;
    pawl_xxh64_begin(&sum, seed);
    pawl_xxh64_update(&sum, data, bytes);
    return pawl_xxh64_finish(&sum);
}
