/*
 * proof/life.h: a small run whose every value follows from its version, and the operations on a root whose crash states are enumerated.
 * A version is a set of values: what was saved as version 3 must come back as version 3, every bit of it.
 */
#ifndef PROOF_LIFE_H
#define PROOF_LIFE_H

#include "os/os.h"
#include "pawl/run.h"

#define LIFE_TENSORS 3
#define LIFE_VALUES 300 /* two sectors and some: writes can be torn between them */

struct life {
    float weights[LIFE_TENSORS][LIFE_VALUES], moments[LIFE_TENSORS][LIFE_VALUES];
    double lr;
    int64_t tokens, optimizer_step;
    struct pawl_pcg32 rng;
    struct pawl_state *state;
};

void life_init(struct life *life, unsigned version); /* stops the program when it can't */
void life_release(struct life *life);
void life_set(struct life *life, unsigned version);
/* Does it hold exactly the values of a version? */
bool life_is(const struct life *life, unsigned version);

enum act_kind { ACT_SAVE = 1, ACT_PRUNE, ACT_PIN, ACT_UNPIN, ACT_REPAIR, ACT_COPY };

struct act {
    enum act_kind kind;
    int64_t step;     /* of a save, pin; what a prune keeps */
    unsigned version; /* of a save */
};

/* How a root is used: the same for all acts on it. */
struct use {
    const char *root;
    const char *copy_from, *copy_to; /* for ACT_COPY */
    int64_t keep;
    uint64_t max_file_bytes;
    bool with_sums;
};

/* One process: opens the root, acts, closes. PAWL_OK when it was done and reported so. */
enum pawl_status act_do(const struct act *act, const struct use *use, const struct pawl_os *os, struct life *life,
                        struct pawl_error *err);

#endif
