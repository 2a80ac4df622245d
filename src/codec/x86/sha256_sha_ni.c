/*
 * Two streams of SHA-256 interleaved, by the SHA extensions.
 *
 * Four rounds need two sha256rnds2, each waiting for the one before; the unit
 * takes a new one every second cycle and answers after four. So the rounds of
 * one stream stand between those of the other, and both go at full pace.
 */
#include "codec/sha256_kernels.h"

#include <cpuid.h>
#include <immintrin.h>
#include "codec/sha256_constants.h"

bool
pawl_sha256_sha_ni_can(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0)
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & 1U << 29) != 0; /* SHA */
}

/* As in sha256_avx512.c. */
#define FETCH_AHEAD(data) __asm__("prefetcht0 1024(%[from])" : : [from] "r"(data))

#define KERNEL __attribute__((target("sha,sse4.1,ssse3")))

/* A running stream: the state in the order of the instructions, and the last 16 words of the message. */
struct lane {
    __m128i abef, cdgh;
    __m128i w0, w1, w2, w3;
};

KERNEL static inline void
load_state(struct lane *lane, const uint32_t state[8])
{
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(state + 4)), 0x1B);
    lane->abef = _mm_alignr_epi8(low, high, 8);
    lane->cdgh = _mm_blend_epi16(high, low, 0xF0);
}

KERNEL static inline void
store_state(const struct lane *lane, uint32_t state[8])
{
    __m128i feba = _mm_shuffle_epi32(lane->abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(lane->cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#define LOAD_WORDS(lane, data)                                                                             \
    do {                                                                                                   \
        (lane).w0 = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(data)), swap);        \
        (lane).w1 = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)((data) + 16)), swap); \
        (lane).w2 = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)((data) + 32)), swap); \
        (lane).w3 = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)((data) + 48)), swap); \
    } while (0)

/*
 * Rounds 4i to 4i + 3 of both streams. `now` are their words; `next` become
 * those of the rounds after (i from 3 to 14) and `last` are prepared for
 * three groups later (i from 1 to 12).
 */
#define FOUR_ROUNDS(i, last, now, next)                                                          \
    do {                                                                                         \
        const __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(CONSTANTS + 4 * (i))); \
        __m128i x_sum = _mm_add_epi32(x.now, k);                                                 \
        __m128i y_sum = _mm_add_epi32(y.now, k);                                                 \
        x.cdgh = _mm_sha256rnds2_epu32(x.cdgh, x.abef, x_sum);                                   \
        y.cdgh = _mm_sha256rnds2_epu32(y.cdgh, y.abef, y_sum);                                   \
        if ((i) >= 3 && (i) <= 14) {                                                             \
            x.next = _mm_add_epi32(x.next, _mm_alignr_epi8(x.now, x.last, 4));                   \
            y.next = _mm_add_epi32(y.next, _mm_alignr_epi8(y.now, y.last, 4));                   \
            x.next = _mm_sha256msg2_epu32(x.next, x.now);                                        \
            y.next = _mm_sha256msg2_epu32(y.next, y.now);                                        \
        }                                                                                        \
        x_sum = _mm_shuffle_epi32(x_sum, 0x0E);                                                  \
        y_sum = _mm_shuffle_epi32(y_sum, 0x0E);                                                  \
        x.abef = _mm_sha256rnds2_epu32(x.abef, x.cdgh, x_sum);                                   \
        y.abef = _mm_sha256rnds2_epu32(y.abef, y.cdgh, y_sum);                                   \
        if ((i) >= 1 && (i) <= 12) {                                                             \
            x.last = _mm_sha256msg1_epu32(x.last, x.now);                                        \
            y.last = _mm_sha256msg1_epu32(y.last, y.now);                                        \
        }                                                                                        \
    } while (0)

KERNEL void
pawl_sha256_sha_ni(uint32_t a[8], const unsigned char *a_data, uint32_t b[8], const unsigned char *b_data,
                   size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    struct lane x, y;
    load_state(&x, a);
    load_state(&y, b);
    for (; blocks != 0; blocks--, a_data += 64, b_data += 64) {
        const struct lane x_before = x, y_before = y;
        FETCH_AHEAD(a_data);
        FETCH_AHEAD(b_data);
        LOAD_WORDS(x, a_data);
        LOAD_WORDS(y, b_data);
        FOUR_ROUNDS(0, w3, w0, w1);
        FOUR_ROUNDS(1, w0, w1, w2);
        FOUR_ROUNDS(2, w1, w2, w3);
        FOUR_ROUNDS(3, w2, w3, w0);
        FOUR_ROUNDS(4, w3, w0, w1);
        FOUR_ROUNDS(5, w0, w1, w2);
        FOUR_ROUNDS(6, w1, w2, w3);
        FOUR_ROUNDS(7, w2, w3, w0);
        FOUR_ROUNDS(8, w3, w0, w1);
        FOUR_ROUNDS(9, w0, w1, w2);
        FOUR_ROUNDS(10, w1, w2, w3);
        FOUR_ROUNDS(11, w2, w3, w0);
        FOUR_ROUNDS(12, w3, w0, w1);
        FOUR_ROUNDS(13, w0, w1, w2);
        FOUR_ROUNDS(14, w1, w2, w3);
        FOUR_ROUNDS(15, w2, w3, w0);
        x.abef = _mm_add_epi32(x.abef, x_before.abef);
        x.cdgh = _mm_add_epi32(x.cdgh, x_before.cdgh);
        y.abef = _mm_add_epi32(y.abef, y_before.abef);
        y.cdgh = _mm_add_epi32(y.cdgh, y_before.cdgh);
    }
    store_state(&x, a);
    store_state(&y, b);
}
