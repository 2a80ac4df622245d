/*
 * proof/states.h: every state that a crash can leave of a recorded trace.
 *
 * Right before each operation of the trace, of the operations that are pending there: all subsets where they are few; where they are more,
 * every prefix, every single and double loss, every single and double survivor, and a seeded sample. Writes are also torn, at a sector and at a byte.
 */
#ifndef PROOF_STATES_H
#define PROOF_STATES_H

#include "sim/simdisk.h"

struct states_options {
    size_t subsets_max; /* all subsets of as many pending operations */
    size_t doubles_max; /* pairs are tried for as many */
    unsigned sample;    /* states drawn beside, per place */
    unsigned tears;     /* torn variants of each write, per place */
    uint64_t seed;
    size_t from; /* cuts before this place of the trace are left out */
};

struct states_count {
    unsigned long places, built, different; /* places of the trace; states built, and those that no other one equals */
    size_t pending_max;
};

/* Called for each state, but not twice for equal ones with one `phase` (the number of marks before the place). The disk is lent. False ends it. */
typedef bool states_fn(void *context, struct simdisk *state, size_t phase);

/* A sentence on the place and the fates of the state at hand, for a failure. */
const char *states_where(void);

bool states_enumerate(const struct simdisk *disk, const struct states_options *options, states_fn *fn, void *context,
                      struct states_count *count);

#endif
