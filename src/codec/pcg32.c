#include "pawl/pcg32.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"

#define PCG_MULTIPLIER UINT64_C(6364136223846793005)
#define GOLDEN_GAMMA UINT64_C(0x9E3779B97F4A7C15)
#define TWO_PI 6.283185307179586476925286766559

void
pawl_pcg32_seed(struct pawl_pcg32 *rng, uint64_t seed, uint64_t seq)
{
    rng->inc = seq << 1 | 1;
    rng->state = 0;
    rng->spare = 0;
    rng->has_spare = false;
    (void)pawl_pcg32_next(rng);
    rng->state += seed;
    (void)pawl_pcg32_next(rng);
}

void
pawl_pcg32_stream(struct pawl_pcg32 *rng, uint64_t seed, uint64_t purpose)
{
    pawl_pcg32_seed(rng, pawl_child_seed(seed, purpose), purpose);
}

uint64_t
pawl_mix64(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t
pawl_child_seed(uint64_t seed, uint64_t purpose)
{
    return pawl_mix64(seed + purpose * GOLDEN_GAMMA);
}

uint64_t
pawl_splitmix64_next(uint64_t *state)
{
    *state += GOLDEN_GAMMA;
    return pawl_mix64(*state);
}

uint32_t
pawl_pcg32_next(struct pawl_pcg32 *rng)
{
    uint64_t old = rng->state;
    rng->state = old * PCG_MULTIPLIER + rng->inc;
    uint32_t x = (uint32_t)((old >> 18 ^ old) >> 27);
    unsigned turn = (unsigned)(old >> 59);
    return x >> turn | x << (-turn & 31); /* the mask keeps a turn of 0 from shifting by 32 */
}

uint64_t
pawl_pcg32_below(struct pawl_pcg32 *rng, uint64_t n)
{
    const uint64_t draws = UINT64_C(1) << 32;
    if (n < 1 || n > draws)
        return 0;

    /* Draws under the threshold are refused: what is left is a multiple of n, so no result is favoured. */
    uint64_t threshold = (draws - n) % n;
    uint64_t draw;
    do {
        draw = pawl_pcg32_next(rng);
    } while (draw < threshold);
    return draw % n;
}

double
pawl_pcg32_uniform(struct pawl_pcg32 *rng)
{
    uint64_t high = pawl_pcg32_next(rng) >> 5;
    uint64_t low = pawl_pcg32_next(rng) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

double
pawl_pcg32_normal(struct pawl_pcg32 *rng)
{
    if (rng->has_spare) {
        double spare = rng->spare;
        rng->spare = 0; /* equal states compare equal, whatever was drawn before */
        rng->has_spare = false;
        return spare;
    }
    double u1 = pawl_pcg32_uniform(rng);
    double u2 = pawl_pcg32_uniform(rng);
    double radius = sqrt(-2.0 * log(1.0 - u1)); /* 1 - u1 is exact and never 0 */
    double angle = TWO_PI * u2;
    rng->spare = radius * sin(angle);
    rng->has_spare = true;
    return radius * cos(angle);
}

/* Swap two elements of any size through a small buffer; a and b may be the same element. */
static void
swap_elements(unsigned char *a, unsigned char *b, size_t bytes)
{
    unsigned char held[64];
    if (a == b)
        return;
    while (bytes > 0) {
        size_t part = bytes < sizeof(held) ? bytes : sizeof(held);
        memcpy(held, a, part);
        memcpy(a, b, part);
        memcpy(b, held, part);
        a += part;
        b += part;
        bytes -= part;
    }
}

void
pawl_pcg32_shuffle(struct pawl_pcg32 *rng, void *elements, size_t n, size_t bytes)
{
    unsigned char *base = elements;
    for (size_t i = n; i-- > 1;) {
        size_t j = (size_t)pawl_pcg32_below(rng, (uint64_t)i + 1);
        swap_elements(base + i * bytes, base + j * bytes, bytes);
    }
}

static void
print_hex(uint64_t word, char hex[17])
{
    for (int i = 0; i < 16; i++)
        hex[i] = "0123456789abcdef"[word >> (60 - 4 * i) & 15];
    hex[16] = '\0';
}

void
pawl_pcg32_print(const struct pawl_pcg32 *rng, char state_hex[17], char inc_hex[17])
{
    print_hex(rng->state, state_hex);
    print_hex(rng->inc, inc_hex);
}

static bool
parse_hex(struct pawl_str hex, uint64_t *ret_word)
{
    if (hex.len != 16)
        return false;
    uint64_t word = 0;
    for (size_t i = 0; i < 16; i++) {
        char c = hex.data[i];
        if (c >= '0' && c <= '9')
            word = word << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            word = word << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret_word = word;
    return true;
}

enum pawl_status
pawl_pcg32_parse(struct pawl_pcg32 *rng, struct pawl_str state_hex, struct pawl_str inc_hex, struct pawl_error *err)
{
    uint64_t state, inc;
    if (!parse_hex(state_hex, &state))
        return pawl_fail(err, PAWL_ARGUMENT, "usage", "pcg state '%s' is not 16 lowercase hex digits",
                         PAWL_SHOW(state_hex));
    if (!parse_hex(inc_hex, &inc))
        return pawl_fail(err, PAWL_ARGUMENT, "usage", "pcg inc '%s' is not 16 lowercase hex digits",
                         PAWL_SHOW(inc_hex));
    if ((inc & 1) == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "usage", "pcg inc '%s' is even: no PCG stream has that",
                         PAWL_SHOW(inc_hex));
    rng->state = state;
    rng->inc = inc;
    rng->spare = 0;
    rng->has_spare = false;
    return PAWL_OK;
}
