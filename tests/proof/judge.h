/*
 * proof/judge.h: an independent judge of what a crash has left.
 *
 * It shares nothing with the library's readers: it looks at the disk's names and bytes alone. A step directory is complete when it is, name
 * for name and byte for byte, one of the directories that were saved under that number (and those were checked once by their manifests, with
 * OpenSSL's own SHA-256). Which step a load must take is decided by the page's words; the library is then asked, and must answer the same.
 */
#ifndef PROOF_JUDGE_H
#define PROOF_JUDGE_H

#include "proof/life.h"
#include "sim/simdisk.h"

#define JUDGE_STEPS_MAX 16
#define JUDGE_BROKEN 99U /* the version of a directory that is not complete */

/* What a root holds, as far as it matters. */
struct holding {
    struct {
        int64_t step;
        unsigned version, prev, bad; /* under step-N, step-N.prev, step-N.bad; 0: not there */
    } steps[JUDGE_STEPS_MAX];
    size_t n;
    bool has_latest;
    int64_t latest;          /* -1: it is malformed */
    int64_t choice;          /* what a load takes: a step, -1 for none */
    unsigned choice_version; /* and which of its versions */
    bool choice_is_prev;
    char retention[256]; /* the text of RETENTION.json, "" without it */
};

struct judge;

/* `reference` holds directories as they were saved; every version used must be told before it is met. */
struct judge *judge_new(void);
void judge_free(struct judge *judge);
/* Learn the directory at `path` of a disk as a version of a step. Broken ones are JUDGE_BROKEN, the others are verified. */
void judge_learn(struct judge *judge, const struct simdisk *disk, const char *path, int64_t step, unsigned version);

/* Look at a root. False, with the reason in judge_reason(), for what may never be there: an unknown step directory, a malformed LATEST ... */
bool judge_look(struct judge *judge, const struct simdisk *disk, const char *root, struct holding *ret);
/*
 * A state on the way from one holding to the last of a list: is nothing lost that all of them have, nothing there that none has, nothing
 * mixed, and does a load take what it takes in one of them? Asks the library too.
 */
bool judge_among(struct judge *judge, struct simdisk *disk, const char *root, const struct holding *const *list,
                 size_t n);
const char *judge_reason(const struct judge *judge);

#endif
