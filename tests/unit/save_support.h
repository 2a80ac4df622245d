/* unit/save_support.h: a small run's state, saves of it over a simulated disk or a folder, and what must hold in a root afterwards. */
#ifndef UNIT_SAVE_SUPPORT_H
#define UNIT_SAVE_SUPPORT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "base/str.h"
#include "checkpoint/examine.h"
#include "checkpoint/find.h"
#include "checkpoint/names.h"
#include "checkpoint/root.h"
#include "checkpoint/run.h"
#include "os/file.h"
#include "pawl/run.h"
#include "sim/simdisk.h"

#define ROOT "root"

/* Sanitizers cost these tests more than ten times: every so many-th case is enough there, the plain build takes all. */
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

/* What a run must not lose. */
struct toy {
    float weight[6], bias[2], moment[6];
    double lr, best;
    int64_t tokens, optimizer_step;
    struct pawl_pcg32 rng;
    struct pawl_state *state;
};

/* Other values for every other version. */
static inline void
toy_set(struct toy *toy, unsigned version)
{
    for (size_t i = 0; i < 6; i++) {
        toy->weight[i] = (float)version + (float)i / 8;
        toy->moment[i] = -(float)version - (float)i / 16;
    }
    toy->bias[0] = (float)version * 3;
    toy->bias[1] = (float)version * 5;
    toy->lr = 1.0 / (1 + version);
    toy->best = (double)version + 0.5;
    toy->tokens = 1000 * (int64_t)version;
    toy->optimizer_step = version;
    pawl_pcg32_seed(&toy->rng, version, 54);
}

static inline void
toy_init(struct toy *toy, unsigned version)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    *toy = (struct toy){ .state = NULL };
    toy_set(toy, version);
    bool is_fine = pawl_state_new(&toy->state, &err) == PAWL_OK;
    struct pawl_state *state = toy->state;
    is_fine = is_fine &&
              pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "fc.weight", PAWL_F32, toy->weight, 2, 3), &err) == 0;
    is_fine =
        is_fine && pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "fc.bias", PAWL_F32, toy->bias, 2), &err) == 0;
    is_fine =
        is_fine &&
        pawl_state_tensor(state, &PAWL_TENSOR(PAWL_OPTIMIZER, "fc.weight.momentum_buffer", PAWL_F32, toy->moment, 2, 3),
                          &err) == 0;
    is_fine = is_fine && pawl_state_optimizer(state, "sgd", &err) == 0;
    is_fine = is_fine && pawl_state_number(state, PAWL_OPTIMIZER, "lr", PAWL_F64, &toy->lr, &err) == 0;
    is_fine = is_fine && pawl_state_number(state, PAWL_OPTIMIZER, "step", PAWL_I64, &toy->optimizer_step, &err) == 0;
    is_fine = is_fine && pawl_state_number(state, PAWL_TRAINER, "tokens_seen", PAWL_I64, &toy->tokens, &err) == 0;
    is_fine = is_fine && pawl_state_number(state, PAWL_EXTRA, "best", PAWL_F64, &toy->best, &err) == 0;
    is_fine = is_fine && pawl_state_rng(state, NULL, &toy->rng, &err) == 0;
    if (!is_fine)
        fail_msg("%s", err.message);
}

static inline void
toy_release(struct toy *toy)
{
    pawl_state_free(toy->state);
}

/* Warnings of a run, by their codes. */
struct heard {
    char codes[64][32];
    char messages[64][256];
    size_t n;
};

static inline void
hear(void *context, const struct pawl_problem *problem)
{
    struct heard *heard = context;
    if (heard->n < 64) {
        (void)snprintf(heard->codes[heard->n], 32, "%s", problem->code);
        (void)snprintf(heard->messages[heard->n], 256, "%s", problem->message);
        heard->n++;
    }
}

static inline size_t
heard_of(const struct heard *heard, const char *code)
{
    size_t n = 0;
    for (size_t i = 0; i < heard->n; i++)
        n += strcmp(heard->codes[i], code) == 0;
    return n;
}

static inline struct pawl_run *
open_run(const struct pawl_os *os, struct pawl_run_options options)
{
    struct pawl_run *run = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_run_open_os(os, PAWL_STR(ROOT), &options, &run, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return run;
}

static inline void
save_step(struct pawl_run *run, struct toy *toy, int64_t step, unsigned version)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    toy_set(toy, version);
    if (pawl_run_save(run, toy->state, step, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
}

static inline void
close_run(struct pawl_run *run)
{
    assert_int_equal(pawl_run_close(run, NULL), PAWL_OK);
}

/* A root of saves, each a version of the toy: durable from the start. */
struct saved {
    int64_t step;
    unsigned version;
};

static inline struct simdisk *
disk_with(const struct saved *saves, size_t n)
{
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    toy_init(&toy, 0);
    if (n != 0) {
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
        for (size_t i = 0; i < n; i++)
            save_step(run, &toy, saves[i].step, saves[i].version);
        close_run(run);
    }
    toy_release(&toy);
    struct simdisk *settled = simdisk_clone(disk);
    simdisk_free(disk);
    return settled;
}

/* What the manifest of a step says when it was saved as `version`: hashes of everything, so that equal texts are equal steps. */
static inline char *
manifest_of(int64_t step, unsigned version)
{
    char path[96], name[PAWL_STEP_NAME_BYTES];
    struct simdisk *disk = disk_with(&(struct saved){ step, version }, 1);
    pawl_entry_name(step, "", name);
    (void)snprintf(path, sizeof path, ROOT "/%s/MANIFEST.json", name);
    const char *text = simdisk_text(disk, path);
    assert_non_null(text);
    char *copy = strdup(text);
    simdisk_free(disk);
    return copy;
}

/* Every directory named step-N is complete, LATEST is absent or names one; "" or what does not hold. */
static inline void
check_root(const struct pawl_os *os, char *problem, size_t size)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_dir_list list = { NULL, 0 };
    int64_t latest = -1;
    bool names_one = false;
    problem[0] = '\0';
    if (pawl_dir_open_path(&root, os, ROOT, NULL) != PAWL_OK)
        return;
    assert_int_equal(pawl_dir_list(&root, &list, NULL), PAWL_OK);
    assert_int_equal(pawl_root_latest(&root, &latest, NULL), PAWL_OK);
    bool has_latest = false;
    for (size_t i = 0; i < list.n; i++) {
        int64_t number = -1;
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(list.entries[i].name), &number);
        has_latest = has_latest || strcmp(list.entries[i].name, "LATEST") == 0;
        if (kind != PAWL_ENTRY_STEP && kind != PAWL_ENTRY_PREV)
            continue;
        names_one = names_one || number == latest;
        struct pawl_step step = { .number = -1 };
        struct pawl_report *report = pawl_report_new();
        assert_non_null(report);
        assert_int_equal(
            pawl_step_examine(&step, &root, list.entries[i].name, &(struct pawl_step_options){ 0 }, report, NULL),
            PAWL_OK);
        pawl_report_end_verdict(report);
        size_t n = 0;
        const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
        if (!step.is_complete)
            (void)snprintf(problem, size, "%s is not complete: %s", list.entries[i].name,
                           n != 0 && verdicts[0].n_problems != 0 ? verdicts[0].problems[0].message : "?");
        pawl_step_release(&step);
        pawl_report_free(report);
    }
    if (has_latest && (latest < 0 || !names_one))
        (void)snprintf(problem, size, "LATEST names %" PRId64 ", which is not there", latest);
    pawl_dir_list_release(&list);
    pawl_dir_release(&root);
}

static inline void
assert_root_holds(const struct pawl_os *os)
{
    char problem[256];
    check_root(os, problem, sizeof problem);
    if (problem[0] != '\0')
        fail_msg("%s", problem);
}

/* The newest step that a load would take: its number and its manifest's text (the caller frees); -1 for none. */
static inline int64_t
newest_of(const struct pawl_os *os, const struct simdisk *disk, char **ret_manifest)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_step step = { .number = -1 };
    struct pawl_find_request request = { .use = NULL };
    int64_t number = -1;
    *ret_manifest = NULL;
    if (pawl_dir_open_path(&root, os, ROOT, NULL) != PAWL_OK)
        return -1;
    struct pawl_report *report = pawl_report_new();
    assert_non_null(report);
    if (pawl_find_newest(&root, &request, &step, report, NULL) == PAWL_OK) {
        char path[96];
        number = step.number;
        (void)snprintf(path, sizeof path, ROOT "/%.*s/MANIFEST.json", PAWL_ARG(step.name));
        const char *text = simdisk_text(disk, path);
        assert_non_null(text);
        *ret_manifest = strdup(text);
    }
    pawl_step_release(&step);
    pawl_report_free(report);
    pawl_dir_release(&root);
    return number;
}

/* Is everything of ours in the root LATEST or a step directory? */
static inline void
assert_root_is_clean(const struct pawl_os *os)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_dir_list list = { NULL, 0 };
    assert_int_equal(pawl_dir_open_path(&root, os, ROOT, NULL), PAWL_OK);
    assert_int_equal(pawl_dir_list(&root, &list, NULL), PAWL_OK);
    for (size_t i = 0; i < list.n; i++) {
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(list.entries[i].name), NULL);
        if (kind != PAWL_ENTRY_STEP && strcmp(list.entries[i].name, "LATEST") != 0)
            fail_msg("'%s' is left in the root", list.entries[i].name);
    }
    pawl_dir_list_release(&list);
    pawl_dir_release(&root);
}

#endif
