#include "proof/judge.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "checkpoint/reading.h"

#define VERSIONS_MAX 64

struct judge {
    struct {
        int64_t step;
        unsigned version;
        uint64_t sum;
    } known[VERSIONS_MAX];
    size_t n;
    struct life life;
    char reason[512];
};

static bool
refuse(struct judge *judge, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(judge->reason, sizeof judge->reason, format, args);
    va_end(args);
    return false;
}

const char *
judge_reason(const struct judge *judge)
{
    return judge->reason;
}

static void
stop(const char *what, const char *detail)
{
    (void)fprintf(stderr, "judge: %s: %s\n", what, detail);
    exit(1);
}

struct judge *
judge_new(void)
{
    struct judge *judge = calloc(1, sizeof *judge);
    if (judge == NULL)
        stop("memory", "none");
    life_init(&judge->life, 0);
    return judge;
}

void
judge_free(struct judge *judge)
{
    life_release(&judge->life);
    free(judge);
}

/* ---- directories as values ---- */

static uint64_t
mix(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return (sum ^ bytes) * UINT64_C(0x100000001b3);
}

/* Names and bytes of all that is under a directory; 0 when it is not there. */
static uint64_t
sum_of(const struct simdisk *disk, const char *path)
{
    char file[512];
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    if (!simdisk_has(disk, path))
        return 0;
    char *tree = simdisk_tree(disk, path);
    char *next = NULL;
    for (char *line = strtok_r(tree, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
        size_t bytes = 0;
        (void)snprintf(file, sizeof file, "%s/%s", path, line);
        const unsigned char *data = line[strlen(line) - 1] == '/' ? NULL : simdisk_get(disk, file, &bytes);
        sum = mix(sum, line, strlen(line));
        sum = mix(sum, data == NULL ? (const unsigned char *)"" : data, data == NULL ? 0 : bytes);
    }
    free(tree);
    return sum;
}

/* Every row of MANIFEST.json against the bytes, by plain text search and OpenSSL; and no file besides. */
static void
check_by_manifest(const struct simdisk *disk, const char *path)
{
    char file[512];
    size_t n_listed = 0, n_there = 0;
    (void)snprintf(file, sizeof file, "%s/MANIFEST.json", path);
    const char *text = simdisk_text(disk, file);
    if (text == NULL)
        stop(path, "a saved step has no manifest");
    char *copy = strdup(text);
    for (char *at = copy; copy != NULL && (at = strstr(at, "\"name\": \"")) != NULL; n_listed++) {
        char name[128], sha[65], hex[65];
        uint64_t listed = 0;
        size_t bytes = 0;
        unsigned char digest[32];
        if (sscanf(at, "\"name\": \"%127[^\"]\", \"sha256\": \"%64[0-9a-f]\", \"bytes\": %" SCNu64, name, sha,
                   &listed) != 3 &&
            sscanf(at, "\"name\": \"%127[^\"]\",\n      \"sha256\": \"%64[0-9a-f]\",\n      \"bytes\": %" SCNu64, name,
                   sha, &listed) != 3)
            stop(path, "a row of the manifest can't be read");
        (void)snprintf(file, sizeof file, "%s/%s", path, name);
        const unsigned char *data = simdisk_get(disk, file, &bytes);
        if (data == NULL || bytes != listed || EVP_Digest(data, bytes, digest, NULL, EVP_sha256(), NULL) != 1)
            stop(file, "is not there, or of another size");
        for (size_t i = 0; i < 32; i++)
            (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
        if (strcmp(hex, sha) != 0)
            stop(file, "has another hash");
        at += 8;
    }
    free(copy);
    char *tree = simdisk_tree(disk, path);
    for (const char *at = tree; *at != '\0'; at++)
        n_there += *at == '\n';
    n_there += tree[0] != '\0' && tree[strlen(tree) - 1] != '\n';
    free(tree);
    if (n_listed < 3 || n_there != n_listed + 1)
        stop(path, "has files that its manifest does not list");
}

void
judge_learn(struct judge *judge, const struct simdisk *disk, const char *path, int64_t step, unsigned version)
{
    if (version != JUDGE_BROKEN)
        check_by_manifest(disk, path);
    for (size_t i = 0; i < judge->n; i++)
        if (judge->known[i].step == step && judge->known[i].version == version)
            return;
    if (judge->n == VERSIONS_MAX)
        stop("versions", "too many");
    judge->known[judge->n].step = step;
    judge->known[judge->n].version = version;
    judge->known[judge->n++].sum = sum_of(disk, path);
}

/* 0 when it is none that was ever saved under that number. */
static unsigned
version_of(const struct judge *judge, int64_t step, uint64_t sum)
{
    for (size_t i = 0; i < judge->n; i++)
        if (judge->known[i].step == step && judge->known[i].sum == sum)
            return judge->known[i].version;
    return 0;
}

/* ---- a root ---- */

/* "step-000012" and a suffix: the number, else -1; *ret_suffix is what stands behind it. */
static int64_t
number_of(const char *name, const char **ret_suffix)
{
    int64_t number = 0;
    size_t digits = 0;
    if (strncmp(name, "step-", 5) != 0)
        return -1;
    for (name += 5; *name >= '0' && *name <= '9'; name++, digits++)
        number = number * 10 + (*name - '0');
    *ret_suffix = name;
    return digits >= 6 ? number : -1;
}

static size_t
place_of(struct holding *holding, int64_t step)
{
    for (size_t i = 0; i < holding->n; i++)
        if (holding->steps[i].step == step)
            return i;
    if (holding->n == JUDGE_STEPS_MAX)
        stop("steps", "too many");
    holding->steps[holding->n].step = step;
    return holding->n++;
}

static bool
is_whole(unsigned version)
{
    return version != 0 && version != JUDGE_BROKEN;
}

/* What a load takes, by the page: LATEST's, or its .prev; else the newest older; without a usable LATEST the newest. */
static void
choose(struct holding *holding)
{
    int64_t below = INT64_MAX;
    bool names_one = false;
    for (size_t i = 0; i < holding->n; i++)
        names_one = names_one || (holding->has_latest && holding->steps[i].step == holding->latest &&
                                  (holding->steps[i].version != 0 || holding->steps[i].prev != 0));
    if (names_one)
        below = holding->latest;
    holding->choice = -1;
    holding->choice_version = 0;
    for (size_t i = 0; i < holding->n; i++) {
        bool is_step = is_whole(holding->steps[i].version);
        if ((!is_step && !is_whole(holding->steps[i].prev)) || holding->steps[i].step > below ||
            holding->steps[i].step < holding->choice)
            continue;
        holding->choice = holding->steps[i].step;
        holding->choice_is_prev = !is_step;
        holding->choice_version = is_step ? holding->steps[i].version : holding->steps[i].prev;
    }
}

static bool
look_at_entry(struct judge *judge, const struct simdisk *disk, const char *root, char *name, struct holding *ret)
{
    static const char *const others[] = { "LATEST", "LATEST.tmp", "RETENTION.json", "RETENTION.tmp", ".lock" };
    char path[512];
    const char *suffix = "";
    size_t len = strlen(name);
    bool is_dir = name[len - 1] == '/';
    if (is_dir)
        name[len - 1] = '\0';
    int64_t number = number_of(name, &suffix);
    if (number < 0) {
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strcmp(name, others[i]) == 0)
                return true;
        return refuse(judge, "'%s' is in the root", name);
    }
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    if (strcmp(suffix, ".tmp") == 0)
        return true; /* nobody looks at it */
    unsigned version = is_dir ? version_of(judge, number, sum_of(disk, path)) : 0;
    if (version == 0)
        return refuse(judge, "'%s' is none of the directories that were saved as it: torn, mixed or half-deleted",
                      name);
    size_t at = place_of(ret, number);
    if (suffix[0] == '\0')
        ret->steps[at].version = version;
    else if (strcmp(suffix, ".prev") == 0)
        ret->steps[at].prev = version;
    else if (strcmp(suffix, ".bad") == 0)
        ret->steps[at].bad = version;
    else
        return refuse(judge, "'%s' is in the root", name);
    return true;
}

bool
judge_look(struct judge *judge, const struct simdisk *disk, const char *root, struct holding *ret)
{
    char path[512];
    bool is_fine = true;
    *ret = (struct holding){ .latest = -1, .choice = -1 };
    judge->reason[0] = '\0';
    if (!simdisk_has(disk, root))
        return true;
    char *tree = simdisk_tree(disk, root);
    char *next = NULL;
    for (char *line = strtok_r(tree, "\n", &next); line != NULL && is_fine; line = strtok_r(NULL, "\n", &next)) {
        char *slash = strchr(line, '/');
        if (slash == NULL || slash[1] == '\0')
            is_fine = look_at_entry(judge, disk, root, line, ret);
    }
    free(tree);
    if (!is_fine)
        return false;
    (void)snprintf(path, sizeof path, "%s/LATEST", root);
    size_t bytes = 0;
    const char *text = (const char *)simdisk_get(disk, path, &bytes);
    if (text != NULL) {
        const char *suffix = "";
        int64_t number = number_of(text, &suffix);
        ret->has_latest = true;
        if (number < 0 || strcmp(suffix, "\n") != 0 || bytes != strlen(text))
            return refuse(judge, "LATEST holds %zu bytes that name no step", bytes);
        ret->latest = number;
    }
    (void)snprintf(path, sizeof path, "%s/RETENTION.json", root);
    text = simdisk_text(disk, path);
    (void)snprintf(ret->retention, sizeof ret->retention, "%s", text == NULL ? "" : text);
    choose(ret);
    return true;
}

/* ---- between two ---- */

/* The versions that a step may have: before, after; 0: not there. */
static void
versions_in(const struct holding *holding, int64_t step, unsigned *ret_version, unsigned *ret_bad)
{
    *ret_version = 0;
    *ret_bad = 0;
    for (size_t i = 0; i < holding->n; i++) {
        if (holding->steps[i].step != step)
            continue;
        *ret_version = holding->steps[i].version != 0 ? holding->steps[i].version : holding->steps[i].prev;
        *ret_bad = holding->steps[i].bad;
    }
}

static bool
check_step(struct judge *judge, int64_t step, const struct holding *now, const struct holding *const *list, size_t n)
{
    unsigned version = 0, prev = 0, bad = 0;
    bool is_version = false, is_prev = false, is_bad = false, is_in_all = true, is_broken_in_all = true;
    for (size_t i = 0; i < now->n; i++) {
        if (now->steps[i].step != step)
            continue;
        version = now->steps[i].version;
        prev = now->steps[i].prev;
        bad = now->steps[i].bad;
    }
    for (size_t k = 0; k < n; k++) {
        unsigned its = 0, its_bad = 0;
        versions_in(list[k], step, &its, &its_bad);
        is_version = is_version || version == its;
        is_prev = is_prev || prev == its;
        is_bad = is_bad || bad == its_bad;
        is_in_all = is_in_all && its != 0;
        is_broken_in_all = is_broken_in_all && (its == JUDGE_BROKEN || its_bad == JUDGE_BROKEN);
        for (size_t i = 0; i < list[k]->n; i++)
            is_prev = is_prev || (list[k]->steps[i].step == step && list[k]->steps[i].prev == prev);
    }
    if (version != 0 && !is_version)
        return refuse(judge, "step %" PRId64 " holds version %u, which is none of those it may hold", step, version);
    if (prev != 0 && !is_prev)
        return refuse(judge, "step %" PRId64 ".prev holds version %u, which is none of those it may hold", step, prev);
    if (bad != 0 && !is_bad)
        return refuse(judge, "step %" PRId64 ".bad holds version %u, which is none of those it may hold", step, bad);
    if (is_in_all && version == 0 && prev == 0)
        return refuse(judge, "step %" PRId64 " is lost: it was there before, and is there after", step);
    if (is_broken_in_all && version != JUDGE_BROKEN && bad != JUDGE_BROKEN)
        return refuse(judge, "the broken step %" PRId64 " is lost", step);
    return true;
}

/* The library must load what the judge says, and every value of it. */
static bool
ask_library(struct judge *judge, struct simdisk *disk, const char *root, const struct holding *now)
{
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_ckpt_open_newest_os(simdisk_os(disk), pawl_str_z(root), NULL, &ckpt, NULL, &err);
    bool is_fine;
    if (st != PAWL_OK) {
        bool has_any = false;
        for (size_t i = 0; i < now->n; i++)
            has_any = true;
        bool is_nothing = st == PAWL_NO_FILE || st == (has_any ? PAWL_NONE_COMPLETE : PAWL_NOT_FOUND);
        is_fine = now->choice < 0 && is_nothing;
        return is_fine || refuse(judge, "a load should take step %" PRId64 " and says: %s", now->choice, err.message);
    }
    if (pawl_ckpt_step(ckpt) != now->choice ||
        pawl_str_ends(pawl_ckpt_name(ckpt), PAWL_STR(".prev")) != now->choice_is_prev) {
        (void)refuse(judge, "a load takes %.*s, expected step %" PRId64 "%s", PAWL_ARG(pawl_ckpt_name(ckpt)),
                     now->choice, now->choice_is_prev ? ".prev" : "");
        pawl_ckpt_close(ckpt);
        return false;
    }
    life_set(&judge->life, 77); /* nothing of an earlier look */
    st = pawl_ckpt_restore(ckpt, judge->life.state, NULL, NULL, &err);
    pawl_ckpt_close(ckpt);
    if (st != PAWL_OK)
        return refuse(judge, "a restore of step %" PRId64 " says: %s", now->choice, err.message);
    if (!life_is(&judge->life, now->choice_version))
        return refuse(judge, "a restore of step %" PRId64 " gives other values than were saved", now->choice);
    return true;
}

bool
judge_among(struct judge *judge, struct simdisk *disk, const char *root, const struct holding *const *list, size_t n)
{
    struct holding now;
    bool may_lack_latest = false, is_latest = false, is_retention = false, is_choice = false;
    if (!judge_look(judge, disk, root, &now))
        return false;
    for (size_t k = 0; k <= n; k++) {
        const struct holding *one = k < n ? list[k] : &now;
        for (size_t i = 0; i < one->n; i++)
            if (!check_step(judge, one->steps[i].step, &now, list, n))
                return false;
    }
    for (size_t k = 0; k < n; k++) {
        may_lack_latest = may_lack_latest || !list[k]->has_latest;
        is_latest = is_latest || (list[k]->has_latest && list[k]->latest == now.latest);
        is_retention = is_retention || strcmp(now.retention, list[k]->retention) == 0;
        is_choice = is_choice || (now.choice == list[k]->choice && now.choice_version == list[k]->choice_version);
    }
    if (!now.has_latest && !may_lack_latest)
        return refuse(judge, "LATEST is lost");
    if (now.has_latest && !is_latest)
        return refuse(judge, "LATEST names %" PRId64 ", neither the old nor the new step", now.latest);
    if (now.has_latest) {
        unsigned version, bad;
        versions_in(&now, now.latest, &version, &bad);
        if (version == 0)
            return refuse(judge, "LATEST names step %" PRId64 ", which is not there", now.latest);
    }
    if (!is_retention)
        return refuse(judge, "RETENTION.json is neither the old nor the new one: %s", now.retention);
    if (!is_choice)
        return refuse(judge, "a load would take step %" PRId64 " of version %u, neither the old nor the new",
                      now.choice, now.choice_version);
    return ask_library(judge, disk, root, &now);
}
