/*
 * Every bit matters: damage to any byte of a step is found, the file named, and the step before it loaded.
 *
 *     test_damage [long]
 *
 * Method: two steps on a simulated disk. One bit of each byte of each file of the newer one is flipped in turn (by default of every third byte),
 * each file is cut at each length that is a multiple of 64 and at its end less one, each file is made longer, emptied, removed. Every time the list of
 * steps gives a verdict against it that names the file, and a load takes the older step; with LATEST damaged it takes the newer one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "checkpoint/reading.h"
#include "proof/life.h"
#include "sim/simdisk.h"

#define NEWER "root/step-000002"

/* Under a sanitizer, which looks for other faults, a quarter of the bytes will do; odd, so that every bit of a byte has its turn. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 13
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define STRIDE 13
#endif
#endif
#ifndef STRIDE
#define STRIDE 3
#endif

static unsigned long damages;

static void
fail(const char *file, const char *what, const char *detail)
{
    (void)fprintf(stderr, "%s: %s: %s\n", file, what, detail);
    exit(1);
}

/* The list's verdict on step 2: does a reason name the file? A damaged manifest may speak of other files: there any reason will do. */
static bool
is_named(struct simdisk *disk, const char *file)
{
    struct pawl_report *report = NULL;
    size_t n = 0;
    bool is = false;
    if (pawl_ckpt_list_os(simdisk_os(disk), PAWL_STR("root"), PAWL_TRUST_FULL, &report, NULL, NULL) != PAWL_OK)
        fail(file, "list", "failed");
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < verdicts[i].n_problems && strcmp(verdicts[i].name, "step-000002") == 0; k++)
            is = is || strcmp(file, "MANIFEST.json") == 0 ||
                 pawl_str_equal(verdicts[i].problems[k].file, pawl_str_z(file));
    pawl_report_free(report);
    return is;
}

static void
expect(struct simdisk *disk, struct life *life, const char *file, const char *what, int64_t step)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    damages++;
    if (step == 1 && !is_named(disk, file))
        fail(file, what, "no reason against the step names it");
    if (pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR("root"), NULL, &ckpt, NULL, &err) != PAWL_OK)
        fail(file, what, err.message);
    if (pawl_ckpt_step(ckpt) != step)
        fail(file, what, "another step is loaded");
    life_set(life, 77);
    if (pawl_ckpt_restore(ckpt, life->state, NULL, NULL, &err) != PAWL_OK || !life_is(life, (unsigned)step))
        fail(file, what, "other values come back");
    pawl_ckpt_close(ckpt);
}

static void
damage_file(const struct simdisk *model, struct life *life, const char *file, const char *path, int64_t step,
            size_t stride)
{
    char what[64];
    size_t bytes = 0;
    const unsigned char *data = simdisk_get(model, path, &bytes);
    if (data == NULL || bytes == 0)
        fail(file, "is empty", path);
    /* White space at a manifest's end says nothing: more or less of it is the one thing that nobody can tell from what was written. */
    bool is_manifest = strcmp(file, "MANIFEST.json") == 0;
    struct simdisk *disk = simdisk_clone(model);
    for (size_t at = 0; at < bytes; at += stride) {
        unsigned char bit = (unsigned char)(1U << (at * 5 + 3) % 8);
        (void)snprintf(what, sizeof what, "bit %#x of byte %zu", bit, at);
        simdisk_flip(disk, path, at, bit);
        expect(disk, life, file, what, step);
        simdisk_flip(disk, path, at, bit);
    }
    unsigned char *copy = malloc(bytes + 1);
    if (copy == NULL)
        abort();
    memcpy(copy, data, bytes);
    copy[bytes] = '\n';
    for (size_t length = 0; length < bytes;
         length = length + 64 < bytes || length + 1 == bytes ? length + 64 : bytes - 1) {
        (void)snprintf(what, sizeof what, "cut at %zu of %zu", length, bytes);
        simdisk_put(disk, path, copy, length);
        if (!is_manifest || length + 1 < bytes)
            expect(disk, life, file, what, step);
    }
    simdisk_put(disk, path, copy, bytes + 1);
    if (!is_manifest)
        expect(disk, life, file, "a byte longer", step);
    simdisk_remove(disk, path);
    expect(disk, life, file, "removed", step);
    free(copy);
    simdisk_free(disk);
}

int
main(int argc, char **argv)
{
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    const struct use uses[] = { { .root = "root" }, { .root = "root", .max_file_bytes = 2400 } };
    struct life life;
    unsigned files = 0;
    life_init(&life, 0);
    for (size_t u = 0; u < 2; u++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct simdisk *disk = simdisk_new();
        for (unsigned version = 1; version <= 2; version++)
            if (act_do(&(struct act){ ACT_SAVE, version, version }, &uses[u], simdisk_os(disk), &life, &err) != PAWL_OK)
                fail("save", "failed", err.message);
        struct simdisk *model = simdisk_clone(disk);
        char *tree = simdisk_tree(model, NEWER);
        char *next = NULL;
        for (char *line = strtok_r(tree, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next), files++) {
            char path[128];
            (void)snprintf(path, sizeof path, NEWER "/%s", line);
            damage_file(model, &life, line, path, 1, is_long ? 1 : STRIDE);
        }
        free(tree);
        damage_file(model, &life, "LATEST", "root/LATEST", 2, 1);
        simdisk_free(model);
        simdisk_free(disk);
    }
    life_release(&life);
    (void)printf("%u files, %lu damages: each found, and the right step loaded\n", files, damages);
    return files >= 9 ? 0 : 1;
}
