/*
 * Kill a run at random instants, resume it each time, and look.
 *
 *     kill_test [--async] WORKER [KILLS [SEED]]          (or PAWL_KILLS, PAWL_KILL_SEED)
 *
 * --async: the runs that are killed save in the background, by turns with copies and with borrowed memory. The one that is never killed saves in
 * the foreground all the same: the bytes must agree.
 *
 * After every kill: each directory named step-N verifies, every byte hashed; LATEST is absent or names one; and no step that was there
 * and verified as LATEST is lost. When a run has reached its end, its last step is, byte for byte, that of a run that was never killed.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pawl/ckpt.h"
#include "pawl/pcg32.h"

#define STEPS 12
#define STEPS_TEXT "12"
#define ROOT "killed"
#define WHOLE "whole"
#define LAST "/step-000012/MANIFEST.json"

static void
fail(const char *what, const char *detail)
{
    (void)fprintf(stderr, "kill_test: %s: %s\n", what, detail);
    exit(1);
}

static pid_t
start(const char *worker, const char *root, const char *way)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork", strerror(errno));
    if (child == 0) {
        (void)execl(worker, worker, root, STEPS_TEXT, "7", way, (char *)NULL); /* way NULL ends the list */
        _exit(127);
    }
    return child;
}

static uint64_t
now_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static void
remove_root(const char *root)
{
    char command[64];
    (void)snprintf(command, sizeof command, "rm -rf ./%s", root);
    if (system(command) != 0)
        fail("remove", root);
}

/* The whole of a small file. */
static void
read_text(const char *root, const char *name, char *text, size_t size)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", root, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail(path, strerror(errno));
    size_t n = fread(text, 1, size - 1, file);
    text[n] = '\0';
    (void)fclose(file);
}

/* Returns the step that LATEST names, 0 for none. */
static int64_t
check_root(int64_t latest_before)
{
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    char latest[32];
    enum pawl_status st = pawl_ckpt_list(pawl_str_z(ROOT), PAWL_TRUST_FULL, &report, latest, &err);
    if (st == PAWL_NO_FILE) {
        pawl_report_free(report);
        return latest_before == 0 ? 0 : (fail("the root is gone", ROOT), 0);
    }
    if (st != PAWL_OK)
        fail("list", err.message);
    size_t n = 0;
    bool names_one = false;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    for (size_t i = 0; i < n; i++) {
        if (!verdicts[i].is_ok)
            fail(verdicts[i].name, verdicts[i].n_problems != 0 ? verdicts[i].problems[0].message : "not complete");
        names_one = names_one || strcmp(verdicts[i].name, latest) == 0;
    }
    pawl_report_free(report);
    if (latest[0] == '\0') {
        if (latest_before != 0 || access(ROOT "/LATEST", F_OK) == 0)
            fail("LATEST is lost or malformed", ROOT);
        return 0;
    }
    if (!names_one)
        fail("LATEST names what is not there", latest);
    int64_t step = pawl_step_of_name(pawl_str_z(latest));
    if (step < latest_before)
        fail("LATEST went back", latest);
    return step;
}

int
main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    bool is_async = argc > 1 && strcmp(argv[1], "--async") == 0;
    unsigned long starts = 0;
    if (is_async) {
        argv++;
        if (--argc < 2)
            return 2;
    }
    const char *kills_text = argc > 2 ? argv[2] : getenv("PAWL_KILLS");
    const char *seed_text = argc > 3 ? argv[3] : getenv("PAWL_KILL_SEED");
    unsigned long kills = kills_text == NULL ? 200 : strtoul(kills_text, NULL, 10);
    uint64_t seed = seed_text == NULL ? now_ns() : strtoull(seed_text, NULL, 10);
    char whole[8192], resumed[8192];
    int status = 0;
    (void)printf("seed %" PRIu64 ", %lu kills\n", seed, kills);
    (void)fflush(stdout);

    /* The run that is never killed tells also how long one takes here. */
    remove_root(WHOLE);
    remove_root(ROOT);
    uint64_t began = now_ns();
    if (waitpid(start(argv[1], WHOLE, NULL), &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail("the whole run", "did not end well");
    uint64_t run_ns = now_ns() - began;
    read_text(WHOLE, LAST, whole, sizeof whole);

    unsigned long killed = 0, finished = 0, before_latest = 0;
    int64_t latest = 0;
    while (killed < kills) {
        /* Mostly within the time of a few steps; now and then at any time of a whole run. */
        uint64_t span = pawl_splitmix64_next(&seed) % 4 == 0 ? run_ns : run_ns / 4;
        uint64_t wait_ns = pawl_splitmix64_next(&seed) % (span + 1);
        pid_t child = start(argv[1], ROOT, !is_async ? NULL : starts++ % 2 == 0 ? "copy" : "borrow");
        struct timespec wait = { (time_t)(wait_ns / 1000000000U), (long)(wait_ns % 1000000000U) };
        (void)nanosleep(&wait, NULL);
        (void)kill(child, SIGKILL);
        if (waitpid(child, &status, 0) < 0)
            fail("waitpid", strerror(errno));
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            killed++;
        else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail("the worker", "failed");
        latest = check_root(latest);
        before_latest += latest == 0;
        if (WIFEXITED(status)) {
            read_text(ROOT, LAST, resumed, sizeof resumed);
            if (strcmp(whole, resumed) != 0)
                fail("the last step differs from that of the run that was never killed", resumed);
            remove_root(ROOT);
            latest = 0;
            finished++;
        }
    }
    /* To its end once more, so that the last kills count too. */
    if (waitpid(start(argv[1], ROOT, is_async ? "copy" : NULL), &status, 0) < 0 || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        fail("the worker", "failed at the end");
    (void)check_root(latest);
    read_text(ROOT, LAST, resumed, sizeof resumed);
    if (strcmp(whole, resumed) != 0)
        fail("the last step differs from that of the run that was never killed", resumed);
    finished++;
    remove_root(ROOT);
    remove_root(WHOLE);
    (void)printf("%lu kills, %lu before the first step was declared, %lu runs to their end, all bytes equal\n", killed,
                 before_latest, finished);
    return 0;
}
