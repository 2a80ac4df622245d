/*
 * Two streams of SHA-256 interleaved: the rounds by the SHA extensions, the words of the message by AVX-512.
 *
 * In sha256_sha_ni.c a quarter of what the processor's one SHA unit does is the message schedule (sha256msg2), and two streams keep that unit
 * busy. The words of a block need nothing but the block, so those of 16 blocks, eight of each stream, are computed side by side in the lanes of
 * wide registers, by other units, while the rounds of the 16 blocks before them go on: 143 cycles for a block of both streams in place of
 * 168, on a Zen 5; 128 is what the rounds alone take there (docs/design/sha256.md).
 *
 * Words go from the one to the other through memory, with their constants added: group g, the words 4g to 4g + 3 of all blocks, takes 256
 * bytes, 16 for each block; block i of the first stream has the i-th of them, that of the second the (8 + i)-th.
 */
#include "codec/sha256_kernels.h"

#include <cpuid.h>
#include <immintrin.h>
#include "codec/sha256_constants.h"

#define BLOCK_BYTES ((size_t)64)
#define BLOCKS ((size_t)8) /* of each stream at a time */
#define GROUP_BYTES 256
/* Fewer have no rounds beside which their words could be computed. */
#define BLOCKS_LEAST ((size_t)4 * BLOCKS)

bool
pawl_sha256_avx512_can(void)
{
    return pawl_sha256_sha_ni_can() && __builtin_cpu_supports("avx512f") != 0 &&
           __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

/* AMD's family 1Ah. Of the ones before, registers are half as wide inside; Intel's share a unit with the rounds. Neither was measured. */
bool
pawl_sha256_avx512_is_faster(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!pawl_sha256_avx512_can() || __get_cpuid(0, &a, &b, &c, &d) == 0 || b != signature_AMD_ebx ||
        c != signature_AMD_ecx || d != signature_AMD_edx)
        return false;
    /* The base family of all newer ones is 15; the extended family is added to it. */
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (a >> 8 & 15) == 15 && (a >> 20 & 255) == 0x1A - 15;
}

#define KERNEL __attribute__((target("sha,sse4.1,ssse3,avx512f,avx512bw,avx512vl")))
#define INLINE __attribute__((always_inline)) KERNEL

/* Streams cross pages, where the processor stops fetching ahead by itself: far enough for the memory, near enough for its first cache. */
#define AHEAD_BYTES ((size_t)1024)

/* ---- the words ---- */

/* Four registers of rows to four of columns, in each quarter of them; it is its own inverse. */
#define TRANSPOSE(a, b, c, d)                                                                         \
    do {                                                                                              \
        const __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);    \
        const __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);    \
        (a) = _mm512_unpacklo_epi64(ab_low, cd_low), (b) = _mm512_unpackhi_epi64(ab_low, cd_low);     \
        (c) = _mm512_unpacklo_epi64(ab_high, cd_high), (d) = _mm512_unpackhi_epi64(ab_high, cd_high); \
    } while (0)

/* Words 4g to 4g + 3 of four blocks that follow each other, a block in each quarter, for all four g. */
INLINE static inline void
load_four_blocks(__m512i ret_groups[4], const unsigned char *data)
{
    const __m512i swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
    const __m512i b0 = _mm512_loadu_si512(data), b1 = _mm512_loadu_si512(data + 64);
    const __m512i b2 = _mm512_loadu_si512(data + 128), b3 = _mm512_loadu_si512(data + 192);
    const __m512i low_01 = _mm512_shuffle_i32x4(b0, b1, 0x44), high_01 = _mm512_shuffle_i32x4(b0, b1, 0xEE);
    const __m512i low_23 = _mm512_shuffle_i32x4(b2, b3, 0x44), high_23 = _mm512_shuffle_i32x4(b2, b3, 0xEE);
    ret_groups[0] = _mm512_shuffle_epi8(_mm512_shuffle_i32x4(low_01, low_23, 0x88), swap);
    ret_groups[1] = _mm512_shuffle_epi8(_mm512_shuffle_i32x4(low_01, low_23, 0xDD), swap);
    ret_groups[2] = _mm512_shuffle_epi8(_mm512_shuffle_i32x4(high_01, high_23, 0x88), swap);
    ret_groups[3] = _mm512_shuffle_epi8(_mm512_shuffle_i32x4(high_01, high_23, 0xDD), swap);
}

/* w[t]: word t of all 16 blocks. */
INLINE static inline void
load_words(__m512i w[16], const unsigned char *a_data, const unsigned char *b_data)
{
    __m512i groups[4][4];
    load_four_blocks(groups[0], a_data);
    load_four_blocks(groups[1], a_data + 4 * BLOCK_BYTES);
    load_four_blocks(groups[2], b_data);
    load_four_blocks(groups[3], b_data + 4 * BLOCK_BYTES);
    for (int g = 0; g < 4; g++) {
        TRANSPOSE(groups[0][g], groups[1][g], groups[2][g], groups[3][g]);
        for (int t = 0; t < 4; t++)
            w[4 * g + t] = groups[t][g];
    }
}

/* The line `at` bytes further. May be past the end, where nothing is fetched and where C allows no pointer. */
#define FETCH(data, at) __asm__("prefetcht0 %c[offset](%[from])" : : [from] "r"(data), [offset] "i"(AHEAD_BYTES + (at)))

INLINE static inline void
fetch_ahead(const unsigned char *data)
{
    FETCH(data, 0 * BLOCK_BYTES);
    FETCH(data, 1 * BLOCK_BYTES);
    FETCH(data, 2 * BLOCK_BYTES);
    FETCH(data, 3 * BLOCK_BYTES);
    FETCH(data, 4 * BLOCK_BYTES);
    FETCH(data, 5 * BLOCK_BYTES);
    FETCH(data, 6 * BLOCK_BYTES);
    FETCH(data, 7 * BLOCK_BYTES);
}

#define XOR3(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0x96)

/* Word t + 16 in the place of word t (FIPS 180-4, 6.2.2). */
#define NEXT_WORD(w, t)                                                                                 \
    do {                                                                                                \
        const __m512i first = (w)[((t) + 1) % 16], last = (w)[((t) + 14) % 16];                         \
        const __m512i first_mixed =                                                                     \
            XOR3(_mm512_ror_epi32(first, 7), _mm512_ror_epi32(first, 18), _mm512_srli_epi32(first, 3)); \
        const __m512i last_mixed =                                                                      \
            XOR3(_mm512_ror_epi32(last, 17), _mm512_ror_epi32(last, 19), _mm512_srli_epi32(last, 10));  \
        (w)[t] = _mm512_add_epi32(_mm512_add_epi32((w)[t], (w)[((t) + 9) % 16]), first_mixed);          \
        (w)[t] = _mm512_add_epi32((w)[t], last_mixed);                                                  \
    } while (0)

/* A group, words t to t + 3 with their constants, to where the rounds find it. */
#define STORE_GROUP(to, w, t, constants)                                                          \
    do {                                                                                          \
        __m512i p = _mm512_add_epi32((w)[t], _mm512_set1_epi32((int)(constants)[t]));             \
        __m512i q = _mm512_add_epi32((w)[(t) + 1], _mm512_set1_epi32((int)(constants)[(t) + 1])); \
        __m512i r = _mm512_add_epi32((w)[(t) + 2], _mm512_set1_epi32((int)(constants)[(t) + 2])); \
        __m512i s = _mm512_add_epi32((w)[(t) + 3], _mm512_set1_epi32((int)(constants)[(t) + 3])); \
        TRANSPOSE(p, q, r, s);                                                                    \
        _mm512_store_si512((to) + (t) / 4 * GROUP_BYTES, p);                                      \
        _mm512_store_si512((to) + (t) / 4 * GROUP_BYTES + 64, q);                                 \
        _mm512_store_si512((to) + (t) / 4 * GROUP_BYTES + 128, r);                                \
        _mm512_store_si512((to) + (t) / 4 * GROUP_BYTES + 192, s);                                \
    } while (0)

/* Sixteen words of each block, the first ones as they were loaded. */
INLINE static inline void
make_words(__m512i w[16], bool is_loaded, const uint32_t *constants, unsigned char *to)
{
#define FOUR_WORDS(t)                     \
    do {                                  \
        if (!is_loaded) {                 \
            NEXT_WORD(w, (t));            \
            NEXT_WORD(w, (t) + 1);        \
            NEXT_WORD(w, (t) + 2);        \
            NEXT_WORD(w, (t) + 3);        \
        }                                 \
        STORE_GROUP(to, w, t, constants); \
    } while (0)
    FOUR_WORDS(0);
    FOUR_WORDS(4);
    FOUR_WORDS(8);
    FOUR_WORDS(12);
}

/* ---- the rounds ---- */

/* A running stream, in the order of the instructions. */
struct stream {
    __m128i abef, cdgh;
};

INLINE static inline void
load_state(struct stream *stream, const uint32_t state[8])
{
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(state + 4)), 0x1B);
    stream->abef = _mm_alignr_epi8(low, high, 8);
    stream->cdgh = _mm_blend_epi16(high, low, 0xF0);
}

INLINE static inline void
store_state(const struct stream *stream, uint32_t state[8])
{
    __m128i feba = _mm_shuffle_epi32(stream->abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(stream->cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/*
 * Four rounds of both streams by group g. Written out because of one instruction: a compiler that may use AVX fetches the words
 * by vmovq, and these rounds take 9 cycles of 139 longer than with movq.
 */
#define FOUR_ROUNDS(g)                                                          \
    "movq " #g "*256(%[w]), %%xmm0\n\tsha256rnds2 %%xmm0, %[xa], %[xc]\n\t"     \
    "movq " #g "*256+128(%[w]), %%xmm0\n\tsha256rnds2 %%xmm0, %[ya], %[yc]\n\t" \
    "movq " #g "*256+8(%[w]), %%xmm0\n\tsha256rnds2 %%xmm0, %[xc], %[xa]\n\t"   \
    "movq " #g "*256+136(%[w]), %%xmm0\n\tsha256rnds2 %%xmm0, %[yc], %[ya]\n\t"

/* A block of both streams; `words` are where group 0 has those of the first. */
INLINE static inline void
do_rounds(struct stream *x, struct stream *y, const unsigned char *words)
{
    __m128i xa = x->abef, xc = x->cdgh, ya = y->abef, yc = y->cdgh;
    __asm__(FOUR_ROUNDS(0) FOUR_ROUNDS(1) FOUR_ROUNDS(2) FOUR_ROUNDS(3)     /* */
            FOUR_ROUNDS(4) FOUR_ROUNDS(5) FOUR_ROUNDS(6) FOUR_ROUNDS(7)     /* */
            FOUR_ROUNDS(8) FOUR_ROUNDS(9) FOUR_ROUNDS(10) FOUR_ROUNDS(11)   /* */
            FOUR_ROUNDS(12) FOUR_ROUNDS(13) FOUR_ROUNDS(14) FOUR_ROUNDS(15) /* */
            : [xa] "+x"(xa), [xc] "+x"(xc), [ya] "+x"(ya), [yc] "+x"(yc)
            : [w] "r"(words), "m"(*(const unsigned char(*)[16 * GROUP_BYTES - 112]) words)
            : "xmm0");
    x->abef = _mm_add_epi32(x->abef, xa);
    x->cdgh = _mm_add_epi32(x->cdgh, xc);
    y->abef = _mm_add_epi32(y->abef, ya);
    y->cdgh = _mm_add_epi32(y->cdgh, yc);
}

KERNEL void
pawl_sha256_avx512(uint32_t a[8], const unsigned char *a_data, uint32_t b[8], const unsigned char *b_data,
                   size_t blocks)
{
    _Alignas(64) unsigned char words[2][16 * GROUP_BYTES];
    size_t turns = blocks < BLOCKS_LEAST ? 0 : blocks / BLOCKS;
    if (turns != 0) {
        struct stream x, y;
        __m512i w[16];
        load_state(&x, a);
        load_state(&y, b);
        load_words(w, a_data, b_data);
        make_words(w, true, CONSTANTS, words[0]);
        for (int part = 1; part < 4; part++)
            make_words(w, false, CONSTANTS + (size_t)16 * (size_t)part, words[0] + (size_t)part * 4 * GROUP_BYTES);
        for (size_t turn = 0; turn < turns; turn++) {
            const unsigned char *now = words[turn % 2];
            unsigned char *next = words[(turn + 1) % 2];
            /* Beside the rounds of the last blocks their words are made once more: nobody reads them. */
            size_t ahead = (turn + 1 == turns ? turn : turn + 1) * BLOCKS * BLOCK_BYTES;
            load_words(w, a_data + ahead, b_data + ahead);
            do_rounds(&x, &y, now);
            do_rounds(&x, &y, now + 16);
            const uint32_t *constants = CONSTANTS;
            __asm__("" : "+r"(constants)); /* or GCC keeps copies of the first ones, which takes 3 cycles */
            make_words(w, true, constants, next);
            fetch_ahead(a_data + ahead);
            fetch_ahead(b_data + ahead);
#pragma GCC unroll 1
            for (int part = 1; part < 4; part++) {
                do_rounds(&x, &y, now + (size_t)part * 32);
                do_rounds(&x, &y, now + (size_t)part * 32 + 16);
                make_words(w, false, constants + (size_t)16 * (size_t)part, next + (size_t)part * 4 * GROUP_BYTES);
            }
        }
        store_state(&x, a);
        store_state(&y, b);
    }
    size_t done = turns * BLOCKS;
    if (done != blocks)
        pawl_sha256_sha_ni(a, a_data + done * BLOCK_BYTES, b, b_data + done * BLOCK_BYTES, blocks - done);
}
