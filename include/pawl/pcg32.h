/*
 * pawl/pcg32.h: the PCG-XSH-RR generator (O'Neill 2014), 64-bit state, 32-bit
 * output, and streams derived from one user seed by SplitMix64. The state is
 * the caller's, open, and the whole of it: copy it, save it, restore it.
 * Page: docs/format/pcg32.md. A struct belongs to one thread at a time.
 */
#ifndef PAWL_PCG32_H
#define PAWL_PCG32_H

#include "pawl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_pcg32 {
    uint64_t state;
    uint64_t inc; /* odd, always */
    double spare; /* the second normal of a pair, when has_spare */
    bool has_spare;
};

/* Purposes of streams. */
enum pawl_purpose {
    PAWL_PURPOSE_INIT = 1,
    PAWL_PURPOSE_DROPOUT = 2,
    PAWL_PURPOSE_SHUFFLE = 3,
    PAWL_PURPOSE_SAMPLE = 4,
    PAWL_PURPOSE_MUTATION = 5
};

PAWL_API void pawl_pcg32_seed(struct pawl_pcg32 *rng, uint64_t seed, uint64_t seq); /* seq 54 is the usual one */
PAWL_API void pawl_pcg32_stream(struct pawl_pcg32 *rng, uint64_t seed, uint64_t purpose);
PAWL_API uint64_t pawl_mix64(uint64_t z);
PAWL_API uint64_t pawl_child_seed(uint64_t seed, uint64_t purpose);
PAWL_API uint64_t pawl_splitmix64_next(uint64_t *state);

PAWL_API uint32_t pawl_pcg32_next(struct pawl_pcg32 *rng);
/* Uniform in [0, n), 1 <= n <= 2^32; n outside gives 0 and draws nothing. */
PAWL_API uint64_t pawl_pcg32_below(struct pawl_pcg32 *rng, uint64_t n);
PAWL_API double pawl_pcg32_uniform(struct pawl_pcg32 *rng); /* [0, 1), 53 bits, two draws */
PAWL_API double pawl_pcg32_normal(struct pawl_pcg32 *rng);  /* Box-Muller; keeps the second of a pair in `spare` */
/* Fisher-Yates over n elements of `bytes` each, n < 2^32. */
PAWL_API void pawl_pcg32_shuffle(struct pawl_pcg32 *rng, void *elements, size_t n, size_t bytes);

/* The two words as 16 lowercase hex digits each and a NUL. */
PAWL_API void pawl_pcg32_print(const struct pawl_pcg32 *rng, char state_hex[17], char inc_hex[17]);
/* PAWL_ARGUMENT when a text is not 16 lowercase hex digits or inc is even: that is no PCG stream. The spare is dropped. */
PAWL_API enum pawl_status pawl_pcg32_parse(struct pawl_pcg32 *rng, struct pawl_str state_hex, struct pawl_str inc_hex,
                                           struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
