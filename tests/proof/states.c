#include "proof/states.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PENDING_MAX 512

/* States that were judged: an open table of their sums. */
struct seen {
    uint64_t *sums;
    size_t n, capacity;
};

struct enumeration {
    const struct simdisk *disk;
    const struct states_options *options;
    states_fn *fn;
    void *context;
    struct states_count *count;
    struct seen seen;
    size_t prefix, phase, n;
    size_t places[PENDING_MAX];
    unsigned char fates[PENDING_MAX];
    uint64_t random;
    bool is_fine;
};

static char where[2048];

const char *
states_where(void)
{
    return where;
}

static uint64_t
draw(uint64_t *random)
{
    uint64_t z = (*random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* False when it was there already. */
static bool
add_seen(struct seen *seen, uint64_t sum)
{
    sum |= 1; /* 0 is an empty place */
    if (2 * (seen->n + 1) > seen->capacity) {
        struct seen larger = { NULL, 0, seen->capacity == 0 ? 1024 : 2 * seen->capacity };
        larger.sums = calloc(larger.capacity, sizeof *larger.sums);
        if (larger.sums == NULL)
            abort();
        for (size_t i = 0; i < seen->capacity; i++)
            if (seen->sums[i] != 0)
                (void)add_seen(&larger, seen->sums[i]);
        free(seen->sums);
        *seen = larger;
    }
    size_t at = (size_t)(sum * UINT64_C(0x9e3779b97f4a7c15) % seen->capacity);
    while (seen->sums[at] != 0) {
        if (seen->sums[at] == sum)
            return false;
        at = (at + 1) % seen->capacity;
    }
    seen->sums[at] = sum;
    seen->n++;
    return true;
}

static void
describe(const struct enumeration *e)
{
    static const char *const fates[] = { "lost", "kept", "torn in sectors", "torn in bytes" };
    int n = snprintf(where, sizeof where, "cut before operation %zu (phase %zu)", e->prefix, e->phase);
    for (size_t i = 0; i < e->n && n > 0 && (size_t)n < sizeof where; i++)
        n += snprintf(where + n, sizeof where - (size_t)n, "; %s: %s", simdisk_describe(e->disk, e->places[i]),
                      fates[e->fates[i]]);
}

static void
visit(struct enumeration *e)
{
    if (!e->is_fine)
        return;
    struct simdisk *state = simdisk_build_state(e->disk, e->prefix, e->fates, e->n, draw(&e->random));
    e->count->built++;
    if (add_seen(&e->seen, simdisk_fingerprint(state) * 31 + e->phase)) {
        e->count->different++;
        e->is_fine = e->fn(e->context, state, e->phase);
        if (!e->is_fine)
            describe(e);
    }
    simdisk_free(state);
}

static void
visit_subsets(struct enumeration *e)
{
    for (unsigned long bits = 0; bits < 1UL << e->n; bits++) {
        for (size_t i = 0; i < e->n; i++)
            e->fates[i] = (bits >> i & 1) != 0 ? SIMFATE_KEPT : SIMFATE_LOST;
        visit(e);
    }
}

static void
visit_few(struct enumeration *e)
{
    for (size_t kept = 0; kept <= e->n; kept++) { /* every prefix */
        for (size_t i = 0; i < e->n; i++)
            e->fates[i] = i < kept ? SIMFATE_KEPT : SIMFATE_LOST;
        visit(e);
    }
    for (unsigned survivors = 0; survivors < 2; survivors++) {
        unsigned char most = survivors ? SIMFATE_LOST : SIMFATE_KEPT;
        unsigned char few = survivors ? SIMFATE_KEPT : SIMFATE_LOST;
        for (size_t i = 0; i < e->n; i++) {
            for (size_t k = i; k < (e->n <= e->options->doubles_max ? e->n : i + 1); k++) {
                memset(e->fates, most, e->n);
                e->fates[i] = few;
                e->fates[k] = few;
                visit(e);
            }
        }
    }
}

/* Each write torn, the others all there, all lost, there up to it, or by chance. */
static void
visit_torn(struct enumeration *e)
{
    for (size_t i = 0; i < e->n; i++) {
        if (!simdisk_can_tear(e->disk, e->places[i]))
            continue;
        for (unsigned k = 0; k < e->options->tears; k++) {
            for (size_t j = 0; j < e->n; j++)
                e->fates[j] = k % 4 == 0   ? SIMFATE_KEPT
                              : k % 4 == 1 ? (j < i ? SIMFATE_KEPT : SIMFATE_LOST)
                              : k % 4 == 2 ? (draw(&e->random) & 1 ? SIMFATE_KEPT : SIMFATE_LOST)
                                           : SIMFATE_LOST;
            e->fates[i] = k / 4 % 2 == 0 ? SIMFATE_TORN_BYTES : SIMFATE_TORN_SECTORS;
            visit(e);
        }
    }
}

static void
visit_sample(struct enumeration *e)
{
    for (unsigned k = 0; k < e->options->sample && e->n > 0; k++) {
        for (size_t i = 0; i < e->n; i++)
            e->fates[i] = (unsigned char)(draw(&e->random) & 3);
        visit(e);
    }
}

bool
states_enumerate(const struct simdisk *disk, const struct states_options *options, states_fn *fn, void *context,
                 struct states_count *count)
{
    struct enumeration *e = calloc(1, sizeof *e);
    if (e == NULL)
        abort();
    *e = (struct enumeration){ .disk = disk,
                               .options = options,
                               .fn = fn,
                               .context = context,
                               .count = count,
                               .random = options->seed,
                               .is_fine = true };
    for (e->prefix = 0; e->prefix <= simdisk_trace_len(disk) && e->is_fine; e->prefix++) {
        e->phase += e->prefix > 0 && simdisk_mark_at(disk, e->prefix - 1) != NULL;
        if (e->prefix < options->from)
            continue;
        e->n = simdisk_pending(disk, e->prefix, e->places, PENDING_MAX);
        if (e->n > PENDING_MAX)
            abort();
        count->places++;
        count->pending_max = e->n > count->pending_max ? e->n : count->pending_max;
        if (e->n <= options->subsets_max)
            visit_subsets(e);
        else
            visit_few(e);
        visit_torn(e);
        if (e->n > options->subsets_max)
            visit_sample(e);
    }
    bool is_fine = e->is_fine;
    free(e->seen.sums);
    free(e);
    return is_fine;
}
