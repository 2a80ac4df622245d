/* unit/read_support.h: golden roots on a simulated disk, changed a little, and looking at what an examination says. */
#ifndef UNIT_READ_SUPPORT_H
#define UNIT_READ_SUPPORT_H

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
#include "checkpoint/reading.h"
#include "pawl/digest.h"
#include "sim/simdisk.h"

#ifndef ROOT
#define ROOT "root"
#endif

/* The root of a good golden case, durable. */
static inline struct simdisk *
golden_disk(const char *name)
{
    char path[4096];
    struct simdisk *disk = simdisk_new();
    (void)snprintf(path, sizeof path, "%s/checkpoint/good/%s/root", PAWL_GOLDEN, name);
    assert_int_equal(simdisk_import(disk, ROOT, path), 0);
    struct simdisk *settled = simdisk_clone(disk);
    simdisk_free(disk);
    return settled;
}

static inline struct pawl_dir
open_root(struct simdisk *disk)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&root, simdisk_os(disk), ROOT, NULL), PAWL_OK);
    return root;
}

/* Names in MANIFEST.json of a step are made to say what is there: the file is then "listed as it is". NULL data: the row goes. */
static inline void
relist(struct simdisk *disk, const char *step, const char *name)
{
    char path[512];
    size_t bytes = 0;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_manifest manifest;
    (void)snprintf(path, sizeof path, ROOT "/%s/MANIFEST.json", step);
    const unsigned char *text = simdisk_get(disk, path, &bytes);
    assert_non_null(text);
    assert_int_equal(pawl_manifest_parse(&arena, &manifest, text, bytes, NULL), PAWL_OK);
    struct pawl_receipt *rows = pawl_arena_take_array(&arena, manifest.n + 1, sizeof *rows);
    memcpy(rows, manifest.files, manifest.n * sizeof *rows);
    manifest.files = rows;
    size_t at = 0;
    while (at < manifest.n && !pawl_str_equal(rows[at].name, pawl_str_z(name)))
        at++;
    char file_path[4096];
    (void)snprintf(file_path, sizeof file_path, ROOT "/%s/%s", step, name);
    const unsigned char *data = simdisk_get(disk, file_path, &bytes);
    if (data == NULL) {
        assert_true(at < manifest.n);
        memmove(&rows[at], &rows[at + 1], (manifest.n - at - 1) * sizeof *rows);
        manifest.n--;
    } else {
        rows[at].name = pawl_str_z(name);
        rows[at].bytes = bytes;
        assert_int_equal(pawl_sha256_of(data, bytes, rows[at].sha256, NULL), PAWL_OK);
        manifest.n += at == manifest.n;
    }
    assert_true(pawl_manifest_print(&manifest, &out));
    simdisk_put(disk, path, out.data, out.len);
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
}

/* Put text into a file of a step, listed as it is. */
static inline void
put_listed(struct simdisk *disk, const char *step, const char *name, const void *data, size_t bytes)
{
    char path[4096];
    (void)snprintf(path, sizeof path, ROOT "/%s/%s", step, name);
    simdisk_put(disk, path, data, bytes);
    relist(disk, step, name);
}

/* In place of the first `from` in a file (both of one length, so that sizes stay). */
static inline void
edit_file(struct simdisk *disk, const char *path, const char *from, const char *to)
{
    size_t bytes = 0;
    size_t len = strlen(from);
    assert_int_equal(len, strlen(to));
    const unsigned char *data = simdisk_get(disk, path, &bytes);
    assert_non_null(data);
    unsigned char *copy = malloc(bytes);
    memcpy(copy, data, bytes);
    size_t at = 0;
    while (at + len <= bytes && memcmp(copy + at, from, len) != 0)
        at++;
    assert_true(at + len <= bytes);
    memcpy(copy + at, to, len);
    simdisk_put(disk, path, copy, bytes);
    free(copy);
}

/* "hash model.safetensors, size a" of a verdict; "" for one without problems. */
static inline const char *
print_verdict(char *text, size_t size, const struct pawl_verdict *verdict)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < verdict->n_problems && used < size; i++) {
        const struct pawl_problem *problem = &verdict->problems[i];
        int n = snprintf(text + used, size - used, "%s%s%s%.*s", i == 0 ? "" : ", ", problem->code,
                         problem->file.data == NULL ? "" : " ", PAWL_ARG(problem->file));
        used += n < 0 ? size : (size_t)n;
    }
    return text;
}

/* Examine a step and write the verdict down; "error: <status>" when it could not be examined. */
static inline const char *
examine_text(char *text, size_t size, struct simdisk *disk, const char *name, const struct pawl_step_options *options)
{
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    struct pawl_dir root = open_root(disk);
    bool all_right;
    size_t n = 0;
    enum pawl_status st = pawl_step_examine(&step, &root, name, options, report, NULL);
    if (st == PAWL_OK && options->defer_hash && step.has_model)
        st = pawl_step_hash_set(&step, &step.model, report, &all_right, NULL);
    if (st == PAWL_OK && options->defer_hash && step.has_optimizer)
        st = pawl_step_hash_set(&step, &step.optimizer, report, &all_right, NULL);
    pawl_report_end_verdict(report);
    if (st != PAWL_OK) {
        (void)snprintf(text, size, "error: %s", pawl_status_name(st));
    } else {
        const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
        assert_int_equal(n, 1);
        print_verdict(text, size, verdict);
        if (!options->defer_hash)
            assert_int_equal(step.is_complete, verdict->n_problems == 0);
    }
    pawl_step_release(&step);
    pawl_report_free(report);
    pawl_dir_release(&root);
    return text;
}

/* The verdict must be this one, with hashes taken at once and put off. */
static inline void
assert_verdict_at(struct simdisk *disk, const char *name, enum pawl_profile profile, const char *expected, int line)
{
    char text[2048];
    for (int defer = 0; defer < 2; defer++) {
        const struct pawl_step_options options = { .profile = profile, .defer_hash = defer != 0 };
        examine_text(text, sizeof text, disk, name, &options);
        if (strcmp(text, expected) != 0)
            fail_msg("line %d, %s%s: '%s', expected '%s'", line, name, defer != 0 ? " (hash put off)" : "", text,
                     expected);
    }
    assert_int_equal(simdisk_open_handles(disk), 0);
}
#define assert_verdict(disk, name, expected) assert_verdict_at(disk, name, PAWL_PROFILE_NONE, expected, __LINE__)

#endif
