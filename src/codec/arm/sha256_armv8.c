/*
 * Two streams of SHA-256 interleaved, by the SHA-256 instructions of ARMv8.
 *
 * Four rounds are a sha256h and a sha256h2, and the next four wait for both.
 * So the rounds of one stream stand between those of the other, as in
 * x86/sha256_sha_ni.c.
 */
#include "codec/sha256_kernels.h"

#include <arm_neon.h>
#include "codec/sha256_constants.h"
#include "os/processor.h"

bool
pawl_sha256_armv8_can(void)
{
    return pawl_processor_has_arm_sha2();
}

/* A running stream: the state, and the last 16 words of the message. */
struct lane {
    uint32x4_t abcd, efgh;
    uint32x4_t w0, w1, w2, w3;
};

static inline uint32x4_t
load_words(const unsigned char *data)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data)));
}

static inline void
load_block(struct lane *lane, const unsigned char *data)
{
    lane->w0 = load_words(data);
    lane->w1 = load_words(data + 16);
    lane->w2 = load_words(data + 32);
    lane->w3 = load_words(data + 48);
}

/*
 * Rounds 4i to 4i + 3 of both streams. `now` are their words, and those of the
 * three groups after follow in order; up to group 11 `now` become the words of
 * group i + 4.
 */
#define FOUR_ROUNDS(i, now, next, third, fourth)                       \
    do {                                                               \
        const uint32x4_t k = vld1q_u32(CONSTANTS + 4 * (i));           \
        const uint32x4_t x_sum = vaddq_u32(x.now, k), x_abcd = x.abcd; \
        const uint32x4_t y_sum = vaddq_u32(y.now, k), y_abcd = y.abcd; \
        if ((i) < 12) {                                                \
            x.now = vsha256su0q_u32(x.now, x.next);                    \
            y.now = vsha256su0q_u32(y.now, y.next);                    \
        }                                                              \
        x.abcd = vsha256hq_u32(x.abcd, x.efgh, x_sum);                 \
        y.abcd = vsha256hq_u32(y.abcd, y.efgh, y_sum);                 \
        x.efgh = vsha256h2q_u32(x.efgh, x_abcd, x_sum);                \
        y.efgh = vsha256h2q_u32(y.efgh, y_abcd, y_sum);                \
        if ((i) < 12) {                                                \
            x.now = vsha256su1q_u32(x.now, x.third, x.fourth);         \
            y.now = vsha256su1q_u32(y.now, y.third, y.fourth);         \
        }                                                              \
    } while (0)

void
pawl_sha256_armv8(uint32_t a[8], const unsigned char *a_data, uint32_t b[8], const unsigned char *b_data, size_t blocks)
{
    struct lane x, y;
    x.abcd = vld1q_u32(a);
    x.efgh = vld1q_u32(a + 4);
    y.abcd = vld1q_u32(b);
    y.efgh = vld1q_u32(b + 4);
    for (; blocks != 0; blocks--, a_data += 64, b_data += 64) {
        const uint32x4_t x_abcd_before = x.abcd, x_efgh_before = x.efgh;
        const uint32x4_t y_abcd_before = y.abcd, y_efgh_before = y.efgh;
        load_block(&x, a_data);
        load_block(&y, b_data);
        FOUR_ROUNDS(0, w0, w1, w2, w3);
        FOUR_ROUNDS(1, w1, w2, w3, w0);
        FOUR_ROUNDS(2, w2, w3, w0, w1);
        FOUR_ROUNDS(3, w3, w0, w1, w2);
        FOUR_ROUNDS(4, w0, w1, w2, w3);
        FOUR_ROUNDS(5, w1, w2, w3, w0);
        FOUR_ROUNDS(6, w2, w3, w0, w1);
        FOUR_ROUNDS(7, w3, w0, w1, w2);
        FOUR_ROUNDS(8, w0, w1, w2, w3);
        FOUR_ROUNDS(9, w1, w2, w3, w0);
        FOUR_ROUNDS(10, w2, w3, w0, w1);
        FOUR_ROUNDS(11, w3, w0, w1, w2);
        FOUR_ROUNDS(12, w0, w1, w2, w3);
        FOUR_ROUNDS(13, w1, w2, w3, w0);
        FOUR_ROUNDS(14, w2, w3, w0, w1);
        FOUR_ROUNDS(15, w3, w0, w1, w2);
        x.abcd = vaddq_u32(x.abcd, x_abcd_before);
        x.efgh = vaddq_u32(x.efgh, x_efgh_before);
        y.abcd = vaddq_u32(y.abcd, y_abcd_before);
        y.efgh = vaddq_u32(y.efgh, y_efgh_before);
    }
    vst1q_u32(a, x.abcd);
    vst1q_u32(a + 4, x.efgh);
    vst1q_u32(b, y.abcd);
    vst1q_u32(b + 4, y.efgh);
}
