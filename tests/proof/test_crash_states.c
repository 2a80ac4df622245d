/*
 * The proof that no crash loses a checkpoint.
 *
 *     test_crash_states STORY [long]
 *
 * Method: a story (processes that save, prune, pin, repair, copy) runs once over a simulated disk that records every operation. Then every
 * state that a loss of power can leave is built (proof/states.h) and judged (proof/judge.h). For each different shape of a root that was
 * met, a new process opens the crashed disk and saves, that is recorded too, and power is lost again at every point of it. The counts are printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proof/judge.h"
#include "proof/order.h"
#include "proof/states.h"
#include "sim/faultos.h"

#define ACTS_MAX 6
#define SHAPES_MAX 256
#define SEED UINT64_C(20261129)

/* Under a sanitizer, which looks for other faults, an eighth of the places of a kill will do. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define THINNED 8
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define THINNED 8
#endif
#endif
#ifndef THINNED
#define THINNED 1
#endif

struct story {
    const char *name;
    struct use use;
    unsigned lacking;
    struct act before[4]; /* saves, durable from the start */
    size_t n_before;
    int64_t broken;       /* the step that is damaged then; 0: none */
    int64_t stale_latest; /* what LATEST is set back to; 0: nothing */
    struct act acts[ACTS_MAX];
    size_t n_acts;
    const char *left[ACTS_MAX]; /* the steps that are there after each act, "N:version" */
};

static const struct story stories[] = {
    { .name = "first",
      .use = { .root = "a/b/ckpt" },
      .acts = { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } },
      .n_acts = 2,
      .left = { "1:1", "1:1 2:2" } },
    { .name = "retention",
      .use = { .root = "root", .keep = 2 },
      .before = { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } },
      .n_before = 2,
      .acts = { { ACT_SAVE, 3, 3 }, { ACT_SAVE, 4, 4 } },
      .n_acts = 2,
      .left = { "2:2 3:3", "3:3 4:4" } },
    { .name = "keep-1",
      .use = { .root = "root", .keep = 1 },
      .before = { { ACT_SAVE, 1, 1 } },
      .n_before = 1,
      .acts = { { ACT_SAVE, 2, 2 }, { ACT_SAVE, 3, 3 } },
      .n_acts = 2,
      .left = { "2:2", "3:3" } },
    { .name = "exchange",
      .use = { .root = "root" },
      .before = { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } },
      .n_before = 2,
      .acts = { { ACT_SAVE, 2, 3 }, { ACT_SAVE, 1, 4 } },
      .n_acts = 2,
      .left = { "1:1 2:3", "1:4 2:3" } },
    { .name = "prev",
      .use = { .root = "root" },
      .lacking = SIM_EXCHANGE,
      .before = { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } },
      .n_before = 2,
      .acts = { { ACT_SAVE, 2, 3 }, { ACT_SAVE, 2, 4 } },
      .n_acts = 2,
      .left = { "1:1 2:3", "1:1 2:4" } },
    { .name = "prev-alone", /* the only step there is */
      .use = { .root = "root", .keep = 1 },
      .lacking = SIM_EXCHANGE | SIM_NO_REPLACE,
      .before = { { ACT_SAVE, 1, 1 } },
      .n_before = 1,
      .acts = { { ACT_SAVE, 1, 2 }, { ACT_SAVE, 1, 3 } },
      .n_acts = 2,
      .left = { "1:2", "1:3" } },
    { .name = "prune",
      .use = { .root = "root" },
      .before = { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 }, { ACT_SAVE, 3, 3 }, { ACT_SAVE, 4, 4 } },
      .n_before = 4,
      .acts = { { ACT_PRUNE, 3, 0 }, { ACT_PRUNE, 1, 0 } },
      .n_acts = 2,
      .left = { "2:2 3:3 4:4", "4:4" } },
    { .name = "several-files",
      .use = { .root = "root", .keep = 1, .max_file_bytes = 2400 },
      .before = { { ACT_SAVE, 1, 1 } },
      .n_before = 1,
      .acts = { { ACT_SAVE, 2, 2 }, { ACT_SAVE, 2, 3 } },
      .n_acts = 2,
      .left = { "2:2", "2:3" } },
    { .name = "sums",
      .use = { .root = "root", .keep = 1, .with_sums = true },
      .before = { { ACT_SAVE, 1, 1 } },
      .n_before = 1,
      .acts = { { ACT_SAVE, 2, 2 }, { ACT_SAVE, 2, 3 } },
      .n_acts = 2,
      .left = { "2:2", "2:3" } },
    { .name = "pins",
      .use = { .root = "root", .keep = 1 },
      .before = { { ACT_SAVE, 1, 1 } },
      .n_before = 1,
      .acts = { { ACT_PIN, 1, 0 }, { ACT_SAVE, 2, 2 }, { ACT_PIN, 2, 0 }, { ACT_UNPIN, 1, 0 }, { ACT_SAVE, 3, 3 } },
      .n_acts = 5,
      .left = { "1:1", "1:1 2:2", "1:1 2:2", "1:1 2:2", "2:2 3:3" } },
    { .name = "repair", /* LATEST names a broken step, and a newer one was never declared done */
      .use = { .root = "root" },
      .before = { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 }, { ACT_SAVE, 3, 3 } },
      .n_before = 3,
      .broken = 2,
      .stale_latest = 2,
      .acts = { { ACT_REPAIR, 0, 0 }, { ACT_SAVE, 2, 4 } },
      .n_acts = 2,
      .left = { "1:1 3:3", "1:1 2:4 3:3" } },
    { .name = "copy",
      .use = { .root = "elsewhere/ckpt", .copy_from = "root/step-000002", .copy_to = "elsewhere/ckpt/step-000002" },
      .before = { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } },
      .n_before = 2,
      .acts = { { ACT_COPY, 0, 0 } },
      .n_acts = 1,
      .left = { "2:2" } },
};
#define STORIES (sizeof stories / sizeof *stories)

static const struct states_options short_options = {
    .subsets_max = 12, .doubles_max = 64, .sample = 200 / THINNED, .tears = 16, .seed = SEED
};
static const struct states_options long_options = {
    .subsets_max = 14, .doubles_max = 64, .sample = 20000, .tears = 400, .seed = SEED
};
static const struct states_options again_short = {
    .subsets_max = 4, .doubles_max = 0, .sample = 4, .tears = 2, .seed = SEED
};
static const struct states_options again_long = {
    .subsets_max = 12, .doubles_max = 64, .sample = 400, .tears = 64, .seed = SEED
};

struct shape {
    uint64_t sum;
    struct simdisk *disk;
    char where[256];
};

struct proof {
    const struct story *story;
    bool is_long;
    struct judge *judge;
    struct life life;
    struct holding holdings[ACTS_MAX + 1]; /* before the acts, and after each */
    struct shape shapes[SHAPES_MAX];
    size_t n_shapes;
    struct holding again[2]; /* of a recovery */
};

static void
fail(const struct proof *proof, const char *what, const char *detail, const struct simdisk *disk)
{
    char *tree = disk == NULL ? NULL : simdisk_tree(disk, "");
    (void)fprintf(stderr, "%s: %s: %s\n%s\n", proof->story->name, what, detail, tree == NULL ? "" : tree);
    free(tree);
    exit(1);
}

/* ---- the beginning ---- */

/* Every version that the story saves, saved once on a disk of its own, is what the judge knows as right. */
static void
learn(struct proof *proof, const struct act *act)
{
    char path[256], name[32];
    struct pawl_error err = PAWL_ERROR_INIT;
    struct use use = proof->story->use;
    struct simdisk *disk = simdisk_new();
    use.root = "reference";
    use.keep = 0;
    if (act->kind != ACT_SAVE) {
        simdisk_free(disk);
        return;
    }
    if (act_do(act, &use, simdisk_os(disk), &proof->life, &err) != PAWL_OK)
        fail(proof, "a reference", err.message, disk);
    pawl_step_name(act->step, name);
    (void)snprintf(path, sizeof path, "reference/%s", name);
    judge_learn(proof->judge, disk, path, act->step, act->version);
    simdisk_free(disk);
}

static struct simdisk *
begin(struct proof *proof)
{
    const struct story *story = proof->story;
    char path[256], name[32];
    struct pawl_error err = PAWL_ERROR_INIT;
    struct use use = story->use;
    struct simdisk *disk = simdisk_new();
    use.keep = 0;
    if (story->use.copy_from != NULL)
        use.root = "root";
    for (size_t i = 0; i < story->n_before; i++) {
        learn(proof, &story->before[i]);
        if (act_do(&story->before[i], &use, simdisk_os(disk), &proof->life, &err) != PAWL_OK)
            fail(proof, "the beginning", err.message, disk);
    }
    for (size_t i = 0; i < story->n_acts; i++)
        learn(proof, &story->acts[i]);
    if (story->broken != 0) {
        pawl_step_name(story->broken, name);
        (void)snprintf(path, sizeof path, "%s/%s/model.safetensors", use.root, name);
        simdisk_flip(disk, path, 200, 4);
        (void)snprintf(path, sizeof path, "%s/%s", use.root, name);
        judge_learn(proof->judge, disk, path, story->broken, JUDGE_BROKEN);
    }
    if (story->stale_latest != 0) {
        char text[40];
        pawl_step_name(story->stale_latest, name);
        (void)snprintf(path, sizeof path, "%s/LATEST", use.root);
        (void)snprintf(text, sizeof text, "%s\n", name);
        simdisk_put_text(disk, path, text);
    }
    struct simdisk *settled = simdisk_clone(disk);
    simdisk_free(disk);
    simdisk_lack(settled, story->lacking);
    return settled;
}

/* "1:1 2:3" must be what is there under the steps' own names. */
static void
check_left(const struct proof *proof, const struct holding *holding, const char *left)
{
    char text[256] = "";
    for (int64_t step = 0; step < 100; step++) {
        for (size_t i = 0; i < holding->n; i++) {
            size_t n = strlen(text);
            if (holding->steps[i].step == step && holding->steps[i].version != 0)
                (void)snprintf(text + n, sizeof text - n, "%s%" PRId64 ":%u", n == 0 ? "" : " ", step,
                               holding->steps[i].version);
        }
    }
    if (strcmp(text, left) != 0)
        fail(proof, left, text, NULL);
}

/* ---- each state ---- */

/* What a process that opens the root goes by: the names in it, and what LATEST says. */
static uint64_t
shape_of(const struct simdisk *disk, const char *root)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    char path[256];
    if (!simdisk_has(disk, root))
        return sum;
    char *tree = simdisk_tree(disk, root);
    (void)snprintf(path, sizeof path, "%s/LATEST", root);
    const char *latest = simdisk_text(disk, path);
    char *next = NULL;
    for (char *line = strtok_r(tree, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
        char *slash = strchr(line, '/');
        for (const char *at = line; slash == NULL || slash[1] == '\0' ? *at != '\0' : 0; at++)
            sum = (sum ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    }
    for (; latest != NULL && *latest != '\0'; latest++)
        sum = (sum ^ (unsigned char)*latest) * UINT64_C(0x100000001b3);
    free(tree);
    return sum;
}

static void
keep_shape(struct proof *proof, const struct simdisk *state)
{
    uint64_t sum = shape_of(state, proof->story->use.root);
    for (size_t i = 0; i < proof->n_shapes; i++)
        if (proof->shapes[i].sum == sum)
            return;
    if (proof->n_shapes == SHAPES_MAX)
        return;
    proof->shapes[proof->n_shapes].sum = sum;
    proof->shapes[proof->n_shapes++].disk = simdisk_clone(state);
}

static bool
judge_state(void *context, struct simdisk *state, size_t phase)
{
    struct proof *proof = context;
    /* Two marks an act: between "save" and "done" it is going on; an act that has not begun is like one that is. */
    size_t done = phase / 2;
    size_t next = done < proof->story->n_acts ? done + 1 : done;
    const struct holding *const list[] = { &proof->holdings[done], &proof->holdings[next] };
    if (!judge_among(proof->judge, state, proof->story->use.root, list, 2)) {
        char *tree = simdisk_tree(state, "");
        (void)fprintf(stderr, "%s\n", tree);
        free(tree);
        return false;
    }
    keep_shape(proof, state);
    return true;
}

static bool
judge_again(void *context, struct simdisk *state, size_t phase)
{
    struct proof *proof = context;
    const struct holding *const list[] = { &proof->again[phase < 2 ? 0 : 1], &proof->again[1] };
    return judge_among(proof->judge, state, proof->story->use.root, list, 2);
}

/* A process was killed in its first act, and a second is at work: what the first did may still be lost. */
static bool
judge_killed(void *context, struct simdisk *state, size_t phase)
{
    struct proof *proof = context;
    const struct holding *const list[] = { &proof->holdings[0], &proof->holdings[1], &proof->again[0],
                                           &proof->again[1] };
    size_t first = phase < 3 ? 0 : 3; /* three marks: the act that was killed, and the two of the save after it */
    return judge_among(proof->judge, state, proof->story->use.root, list + first, 4 - first);
}

/* ---- after a kill ---- */

/*
 * The first act's process is killed at its n-th call; nothing is lost by that, and nothing is made sure either. Another goes on with what it
 * sees, and then power is lost. False when the act has fewer calls.
 */
static bool
kill_and_recover(struct proof *proof, const struct simdisk *model, unsigned nth, struct states_count *count)
{
    const struct story *story = proof->story;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct act act = { ACT_SAVE, 9, 9 };
    struct states_options options = proof->is_long ? again_long : again_short;
    struct simdisk *disk = simdisk_clone(model);
    struct faultos *faults = faultos_new(simdisk_os(disk));
    simdisk_lack(disk, story->lacking);
    faultos_fail(faults, SIM_ANY, nth, 1000000, ENODEV); /* no call of a process that is gone reaches the disk */
    simdisk_mark(disk, "act");
    (void)act_do(&story->acts[0], &story->use, faultos_os(faults), &proof->life, &err);
    bool was_met = faultos_was_met(faults);
    faultos_free(faults);
    if (!judge_look(proof->judge, disk, story->use.root, &proof->again[0]))
        fail(proof, "after a kill", judge_reason(proof->judge), disk);
    options.from = simdisk_trace_len(disk);
    simdisk_mark(disk, "save");
    if (act_do(&act, &story->use, simdisk_os(disk), &proof->life, &err) != PAWL_OK)
        fail(proof, "a save after a kill", err.message, disk);
    simdisk_mark(disk, "done");
    if (!judge_look(proof->judge, disk, story->use.root, &proof->again[1]) || proof->again[1].choice != 9)
        fail(proof, "a save after a kill", judge_reason(proof->judge), disk);
    if (!states_enumerate(disk, &options, judge_killed, proof, count))
        fail(proof, judge_reason(proof->judge), states_where(), disk);
    simdisk_free(disk);
    return was_met;
}

/* ---- after a crash ---- */

/* A process goes on with a crashed disk, and power is lost again at every point. */
static void
recover(struct proof *proof, const struct shape *shape, struct states_count *count)
{
    const struct story *story = proof->story;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct act act = { ACT_SAVE, 9, 9 };
    struct simdisk *disk = simdisk_clone(shape->disk);
    simdisk_lack(disk, story->lacking);
    if (!judge_look(proof->judge, disk, story->use.root, &proof->again[0]))
        fail(proof, "a crashed disk", judge_reason(proof->judge), disk);
    simdisk_mark(disk, "save");
    if (act_do(&act, &story->use, simdisk_os(disk), &proof->life, &err) != PAWL_OK)
        fail(proof, "a save after a crash", err.message, disk);
    simdisk_mark(disk, "done");
    if (!judge_look(proof->judge, disk, story->use.root, &proof->again[1]))
        fail(proof, "a save after a crash", judge_reason(proof->judge), disk);
    if (proof->again[1].choice != 9 || proof->again[1].choice_version != 9)
        fail(proof, "a save after a crash", "is not what a load takes", disk);
    const char *fault = order_check(disk, story->use.root);
    if (fault != NULL)
        fail(proof, "the order of a recovery", fault, disk);
    /* The root is clean again. */
    char *tree = simdisk_tree(disk, story->use.root);
    if (strstr(tree, ".tmp") != NULL || strstr(tree, ".prev") != NULL)
        fail(proof, "a save after a crash", "leaves something", disk);
    free(tree);
    if (!states_enumerate(disk, proof->is_long ? &again_long : &again_short, judge_again, proof, count))
        fail(proof, judge_reason(proof->judge), states_where(), shape->disk);
    simdisk_free(disk);
}

int
main(int argc, char **argv)
{
    static struct proof proof;
    struct states_count first = { 0 }, again = { 0 }, killed = { 0 };
    unsigned kills = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    for (size_t i = 0; i < STORIES && argc > 1; i++)
        if (strcmp(stories[i].name, argv[1]) == 0)
            proof.story = &stories[i];
    if (proof.story == NULL)
        return 2;
    proof.is_long = argc > 2 && strcmp(argv[2], "long") == 0;
    proof.judge = judge_new();
    life_init(&proof.life, 0);
    learn(&proof, &(struct act){ ACT_SAVE, 9, 9 });

    struct simdisk *disk = begin(&proof);
    struct simdisk *model = simdisk_clone(disk);
    const char *root = proof.story->use.root;
    if (!judge_look(proof.judge, disk, root, &proof.holdings[0]))
        fail(&proof, "the beginning", judge_reason(proof.judge), disk);
    for (size_t i = 0; i < proof.story->n_acts; i++) {
        const struct act *act = &proof.story->acts[i];
        simdisk_mark(disk, act->kind == ACT_SAVE ? "save" : "act");
        if (act_do(act, &proof.story->use, simdisk_os(disk), &proof.life, &err) != PAWL_OK)
            fail(&proof, "an act", err.message, disk);
        simdisk_mark(disk, "done");
        if (!judge_look(proof.judge, disk, root, &proof.holdings[i + 1]))
            fail(&proof, "after an act", judge_reason(proof.judge), disk);
        check_left(&proof, &proof.holdings[i + 1], proof.story->left[i]);
    }
    const char *fault = order_check(disk, root);
    if (fault != NULL)
        fail(&proof, "the order", fault, NULL);
    if (!states_enumerate(disk, proof.is_long ? &long_options : &short_options, judge_state, &proof, &first))
        fail(&proof, judge_reason(proof.judge), states_where(), NULL);
    for (size_t i = 0; i < proof.n_shapes; i++) {
        recover(&proof, &proof.shapes[i], &again);
        simdisk_free(proof.shapes[i].disk);
    }
    while (kill_and_recover(&proof, model, kills * THINNED * (proof.is_long ? 1 : 3), &killed))
        kills++;
    (void)printf(
        "%s: seed %" PRIu64 "; %lu places, at most %zu operations pending\n"
        "power lost: %lu states built, %lu different, all judged\n"
        "lost again while %zu shapes of a root were mended: %lu built, %lu different\n"
        "lost while a process went on after one that was killed at %u of its calls: %lu built, %lu different\n",
        proof.story->name, SEED, first.places, first.pending_max, first.built, first.different, proof.n_shapes,
        again.built, again.different, kills, killed.built, killed.different);
    simdisk_free(model);
    simdisk_free(disk);
    life_release(&proof.life);
    judge_free(proof.judge);
    return 0;
}
