/*
 * A fault of the machine never makes a load fall back: it ends it. Otherwise a run would go on from an older step, and prune the good one.
 *
 *     test_load_faults GOLDEN [long]
 *
 * Method: every good root of the golden folder is loaded over the host's own files, once undisturbed, and then with the n-th call failing, for every
 * n and every such errno. Allowed are: the same step, or the fault. Never another step, never "none complete", never "not found". An
 * interrupted call and a short read change nothing, and an I/O error that does not come back costs no step. The same with features that filesystems lack.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "checkpoint/reading.h"
#include "sim/faultos.h"

#define NAME_BYTES 64

static const int machine_codes[] = { ENOMEM, EMFILE, ENFILE, EACCES, EPERM, ESTALE, ETIMEDOUT };
#define MACHINE_CODES (sizeof machine_codes / sizeof *machine_codes)
static const int passing_codes[] = { EINTR, 0 };
static const unsigned lackings[] = { SIM_KINDS, SIM_POPULATE, SIM_KINDS | SIM_POPULATE | SIM_LOCK };

static unsigned long loads;

static void
fail(const char *root, const char *what, const char *detail)
{
    (void)fprintf(stderr, "%s: %s: %s\n", root, what, detail);
    exit(1);
}

struct answer {
    enum pawl_status status;
    char name[NAME_BYTES];
    struct pawl_error err;
};

static struct answer
load(const struct pawl_os *os, const char *root)
{
    struct answer answer = { .err = PAWL_ERROR_INIT };
    struct pawl_ckpt *ckpt = NULL;
    answer.status = pawl_ckpt_open_newest_os(os, pawl_str_z(root), NULL, &ckpt, NULL, &answer.err);
    if (answer.status == PAWL_OK)
        (void)snprintf(answer.name, sizeof answer.name, "%.*s", PAWL_ARG(pawl_ckpt_name(ckpt)));
    pawl_ckpt_close(ckpt);
    loads++;
    return answer;
}

static bool
is_same(const struct answer *a, const struct answer *b)
{
    return a->status == b->status && strcmp(a->name, b->name) == 0;
}

static void
try_code(const char *root, const struct answer *clean, int code, bool may_end, unsigned stride)
{
    char what[96], found[1200];
    bool was_met = true;
    for (unsigned nth = 0; was_met; nth += stride) {
        struct faultos *faults = faultos_new(pawl_os_posix());
        faultos_fail(faults, SIM_ANY, nth, 0, code);
        struct answer answer = load(faultos_os(faults), root);
        was_met = faultos_was_met(faults);
        bool is_fault = (pawl_status_is_machine_fault(answer.status) || answer.status == PAWL_IO) &&
                        answer.err.system_errno == code;
        if (!is_same(&answer, clean) && !(may_end && is_fault)) {
            (void)snprintf(what, sizeof what, "call %u: %s", nth, code == 0 ? "cut short" : strerror(code));
            (void)snprintf(found, sizeof found, "%s %s, undisturbed %s %s; %s", pawl_status_name(answer.status),
                           answer.name, pawl_status_name(clean->status), clean->name, answer.err.message);
            fail(root, what, found);
        }
        if (faultos_open(faults) != 0)
            fail(root, "a handle is left open after", strerror(code));
        faultos_free(faults);
    }
}

static void
try_root(const char *root, bool is_long)
{
    struct answer clean = load(pawl_os_posix(), root);
    unsigned stride = is_long ? 1 : 3;
    if (clean.status != PAWL_OK)
        fail(root, "undisturbed", clean.err.message);
    for (size_t i = 0; i < sizeof lackings / sizeof *lackings; i++) {
        struct faultos *faults = faultos_new(pawl_os_posix());
        faultos_lack(faults, lackings[i]);
        struct answer answer = load(faultos_os(faults), root);
        faultos_free(faults);
        if (!is_same(&answer, &clean))
            fail(root, "a filesystem that lacks something", answer.err.message);
    }
    for (size_t i = 0; i < MACHINE_CODES; i++)
        try_code(root, &clean, machine_codes[i], true, stride);
    try_code(root, &clean, EIO, true, 1); /* what a second reading does not repeat is no fault of a step */
    for (size_t i = 0; i < sizeof passing_codes / sizeof *passing_codes; i++)
        try_code(root, &clean, passing_codes[i], false, stride);
}

int
main(int argc, char **argv)
{
    char path[4096], command[8192];
    struct stat status;
    unsigned roots = 0;
    if (argc < 2)
        return 2;
    bool is_long = argc > 2 && strcmp(argv[2], "long") == 0;
    (void)snprintf(path, sizeof path, "%s/checkpoint/good", argv[1]);
    DIR *dir = opendir(path);
    if (dir == NULL)
        fail(path, "open", strerror(errno));
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/checkpoint/good/%s/root", argv[1], entry->d_name) >= (int)sizeof path ||
            stat(path, &status) != 0)
            continue;
        int n = snprintf(command, sizeof command,
                         "rm -rf r && cp -R '%s' r && if [ -f '%s/checkpoint/good/%s/setup.sh' ]; then cd r && sh "
                         "'%s/checkpoint/good/%s/setup.sh'; fi",
                         path, argv[1], entry->d_name, argv[1], entry->d_name);
        if (n < 0 || (size_t)n >= sizeof command || system(command) != 0)
            fail(path, "copy", "failed");
        try_root("r", is_long);
        roots++;
    }
    (void)closedir(dir);
    (void)printf("%u golden roots, %lu loads: the same step or the fault, every time\n", roots, loads);
    return roots >= 50 ? 0 : 1;
}
