/*
 * Every operation on a root fails, in every way, and nothing is lost.
 *
 *     test_faults [long]
 *
 * Method: each act (a save, a replacement, a prune, a pin, a repair, a copy) runs over a simulated disk whose n-th call fails once, or fails
 * from then on, for every n; whose space ends at every byte; whose files are taken away. The judge of proof/judge.h looks at what is left: the
 * old or the new, all of it. Nothing leaks, and the next attempt works. The counts are printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proof/judge.h"

struct plot {
    const char *name;
    struct use use;
    unsigned lacking;
    struct act before[4];
    size_t n_before;
    int64_t broken; /* the step that is damaged then, 0: none */
    struct act act;
};

static const struct plot plots[] = {
    { "save", { .root = "root", .keep = 1 }, 0, { { ACT_SAVE, 1, 1 } }, 1, 0, { ACT_SAVE, 2, 2 } },
    { "replacement", { .root = "root" }, 0, { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } }, 2, 0, { ACT_SAVE, 2, 3 } },
    { "replacement by .prev",
      { .root = "root" },
      SIM_EXCHANGE | SIM_NO_REPLACE,
      { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } },
      2,
      0,
      { ACT_SAVE, 2, 3 } },
    { "save in several files",
      { .root = "root", .max_file_bytes = 2400 },
      0,
      { { ACT_SAVE, 1, 1 } },
      1,
      0,
      { ACT_SAVE, 2, 2 } },
    { "prune",
      { .root = "root" },
      0,
      { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 }, { ACT_SAVE, 3, 3 } },
      3,
      0,
      { ACT_PRUNE, 1, 0 } },
    { "pin", { .root = "root" }, 0, { { ACT_SAVE, 1, 1 }, { ACT_PIN, 3, 0 } }, 2, 0, { ACT_PIN, 1, 0 } },
    { "unpin", { .root = "root" }, 0, { { ACT_SAVE, 1, 1 }, { ACT_PIN, 1, 0 } }, 2, 0, { ACT_UNPIN, 1, 0 } },
    { "repair",
      { .root = "root" },
      SIM_NO_REPLACE,
      { { ACT_SAVE, 1, 1 }, { ACT_SAVE, 2, 2 } },
      2,
      2,
      { ACT_REPAIR, 0, 0 } },
    { "copy",
      { .root = "elsewhere/ckpt", .copy_from = "root/step-000001", .copy_to = "elsewhere/ckpt/step-000001" },
      0,
      { { ACT_SAVE, 1, 1 } },
      1,
      0,
      { ACT_COPY, 0, 0 } },
};
#define PLOTS (sizeof plots / sizeof *plots)

static const int codes[] = { EIO, ENOSPC, EDQUOT, EACCES, EROFS, EMFILE, ENOMEM, EINTR, ESTALE, 0 /* cut short */ };
#define CODES (sizeof codes / sizeof *codes)

struct bench {
    const struct plot *plot;
    struct judge *judge;
    struct life life;
    struct simdisk *model;
    struct holding before, after;
};

static void
fail(const struct plot *plot, const char *what, const char *detail, const struct simdisk *disk)
{
    char *tree = disk == NULL ? NULL : simdisk_tree(disk, "");
    (void)fprintf(stderr, "%s: %s: %s\n%s\n", plot->name, what, detail, tree == NULL ? "" : tree);
    free(tree);
    exit(1);
}

static void
learn(struct bench *bench, const struct act *act)
{
    char path[64], name[32];
    struct use use = { .root = "reference", .max_file_bytes = bench->plot->use.max_file_bytes };
    struct simdisk *disk = simdisk_new();
    struct pawl_error err = PAWL_ERROR_INIT;
    if (act->kind == ACT_SAVE) {
        if (act_do(act, &use, simdisk_os(disk), &bench->life, &err) != PAWL_OK)
            fail(bench->plot, "a reference", err.message, disk);
        pawl_step_name(act->step, name);
        (void)snprintf(path, sizeof path, "reference/%s", name);
        judge_learn(bench->judge, disk, path, act->step, act->version);
    }
    simdisk_free(disk);
}

static void
bench_begin(struct bench *bench, const struct plot *plot)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct use use = plot->use;
    *bench = (struct bench){ .plot = plot, .judge = judge_new() };
    life_init(&bench->life, 0);
    struct simdisk *disk = simdisk_new();
    use.keep = 0;
    use.root = "root";
    for (size_t i = 0; i < plot->n_before; i++) {
        learn(bench, &plot->before[i]);
        if (act_do(&plot->before[i], &use, simdisk_os(disk), &bench->life, &err) != PAWL_OK)
            fail(plot, "the beginning", err.message, disk);
    }
    learn(bench, &plot->act);
    if (plot->broken != 0) {
        simdisk_flip(disk, "root/step-000002/model.safetensors", 200, 4);
        judge_learn(bench->judge, disk, "root/step-000002", plot->broken, JUDGE_BROKEN);
    }
    bench->model = simdisk_clone(disk);
    simdisk_free(disk);
    disk = simdisk_clone(bench->model);
    simdisk_lack(disk, plot->lacking);
    if (!judge_look(bench->judge, disk, plot->use.root, &bench->before) ||
        act_do(&plot->act, &plot->use, simdisk_os(disk), &bench->life, &err) != PAWL_OK ||
        !judge_look(bench->judge, disk, plot->use.root, &bench->after))
        fail(plot, "without a fault", err.message, disk);
    simdisk_free(disk);
}

static void
bench_end(struct bench *bench)
{
    simdisk_free(bench->model);
    life_release(&bench->life);
    judge_free(bench->judge);
}

/* The old or the new, nothing else; and with the fault gone, the act can be done. */
static void
look(struct bench *bench, struct simdisk *disk, enum pawl_status st, const struct pawl_error *err, const char *what)
{
    const struct plot *plot = bench->plot;
    const struct holding *const list[] = { &bench->before, &bench->after };
    struct pawl_error again = PAWL_ERROR_INIT;
    struct holding now;
    if (simdisk_open_handles(disk) != 0 || simdisk_open_maps(disk) != 0)
        fail(plot, what, "a handle is left open", disk);
    /* What was done is all there; but what a save or a prune can't delete is a warning, and goes another time. */
    bool is_strict = st == PAWL_OK && plot->act.kind != ACT_SAVE && plot->act.kind != ACT_PRUNE;
    if (!judge_among(bench->judge, disk, plot->use.root, list + is_strict, 2 - (size_t)is_strict))
        fail(plot, what, judge_reason(bench->judge), disk);
    if (!judge_look(bench->judge, disk, plot->use.root, &now) ||
        (st == PAWL_OK && (now.choice != bench->after.choice || now.choice_version != bench->after.choice_version)))
        fail(plot, what, "it was reported done, and is not what a load takes", disk);
    if (st != PAWL_OK && (err->message[0] == '\0' || err->status != st || err->code[0] == '\0'))
        fail(plot, what, "a failure without its story", disk);
    enum pawl_status second = act_do(&plot->act, &plot->use, simdisk_os(disk), &bench->life, &again);
    bool is_there_already = plot->act.kind == ACT_COPY && second == PAWL_EXISTS; /* the first was done after all */
    if (second != PAWL_OK && !is_there_already)
        fail(plot, what, again.message, disk);
    if (!judge_among(bench->judge, disk, plot->use.root, list + 1, 1))
        fail(plot, what, judge_reason(bench->judge), disk);
    if (plot->act.kind == ACT_SAVE) {
        char *tree = simdisk_tree(disk, plot->use.root);
        if (strstr(tree, ".tmp") != NULL || strstr(tree, ".prev") != NULL)
            fail(plot, what, "the next save left something", disk);
        free(tree);
    }
}

/* Each call fails once, or with all after it; closes are made. */
static unsigned long
calls_fail(struct bench *bench, unsigned repeats, size_t stride)
{
    unsigned long n = 0;
    for (size_t c = 0; c < CODES; c += stride) {
        bool was_met = true;
        for (unsigned nth = 0; was_met; nth++, n++) {
            char what[96];
            struct pawl_error err = PAWL_ERROR_INIT;
            struct simdisk *disk = simdisk_clone(bench->model);
            simdisk_lack(disk, bench->plot->lacking);
            simdisk_fail(disk, SIM_ANY, nth, repeats, codes[c]);
            enum pawl_status st = act_do(&bench->plot->act, &bench->plot->use, simdisk_os(disk), &bench->life, &err);
            was_met = simdisk_fault_was_met(disk);
            simdisk_fail(disk, SIM_ANY, 100000000, 0, EIO);
            (void)snprintf(what, sizeof what, "call %u%s: %s", nth, repeats == 0 ? "" : " and all after it",
                           codes[c] == 0 ? "cut short" : strerror(codes[c]));
            look(bench, disk, st, &err, what);
            simdisk_free(disk);
        }
    }
    return n;
}

/* The disk is full at every byte that the act writes; a full one is said so, and leaves no debris. */
static unsigned long
disk_is_full(struct bench *bench, uint64_t stride)
{
    unsigned long n = 0;
    uint64_t used = 0;
    char *tree = simdisk_tree(bench->model, "");
    char *next = NULL;
    for (char *line = strtok_r(tree, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
        size_t bytes = 0;
        if (line[strlen(line) - 1] != '/' && simdisk_get(bench->model, line, &bytes) != NULL)
            used += bytes;
    }
    free(tree);
    bool is_full = true;
    for (uint64_t more = 0; is_full; more += stride, n++) {
        char what[64];
        struct pawl_error err = PAWL_ERROR_INIT;
        struct simdisk *disk = simdisk_clone(bench->model);
        simdisk_lack(disk, bench->plot->lacking);
        simdisk_set_capacity(disk, used + more);
        enum pawl_status st = act_do(&bench->plot->act, &bench->plot->use, simdisk_os(disk), &bench->life, &err);
        is_full = st != PAWL_OK;
        (void)snprintf(what, sizeof what, "full after %" PRIu64 " more bytes", more);
        if (st != PAWL_OK && (st != PAWL_NO_SPACE || strcmp(err.code, "no-space") != 0))
            fail(bench->plot, what, err.message, disk);
        tree = simdisk_tree(disk, "");
        if (strstr(tree, ".tmp") != NULL)
            fail(bench->plot, what, "debris is left", disk);
        free(tree);
        simdisk_set_capacity(disk, UINT64_MAX);
        look(bench, disk, st, &err, what);
        simdisk_free(disk);
    }
    return n;
}

int
main(int argc, char **argv)
{
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    unsigned long once = 0, on = 0, full = 0;
    for (size_t i = 0; i < PLOTS; i++) {
        struct bench bench;
        bench_begin(&bench, &plots[i]);
        once += calls_fail(&bench, 0, 1);
        on += calls_fail(&bench, 1000000, is_long ? 1 : 2);
        full += disk_is_full(&bench, is_long ? 1 : 61);
        bench_end(&bench);
    }
    (void)printf(
        "%zu acts; %lu with one call that failed, %lu with all from one on, %lu on a disk that was full at some byte: "
        "the old or the new was there every time, and the next attempt worked\n",
        PLOTS, once, on, full);
    return 0;
}
