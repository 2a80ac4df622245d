/*
 * Several processes at one root, on the host's own files.
 *
 *     test_races [LOADS]
 *
 * A reader loads while a writer saves, replaces and prunes: every load gives one whole version, and never an older one than before. Two writers
 * save the same step at the same time: one waits for the other, and what is there is one of theirs, whole. The directory is
 * deleted under a writer: an error, no crash, and the next run works.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "checkpoint/run.h"
#include "proof/life.h"

#define ROOT "raced"

static pid_t writer; /* 0: there is none */

/* A writer that goes on for ever would keep the output of a failed test open. */
static void
fail(const char *what, const char *detail)
{
    if (writer > 0)
        (void)kill(writer, SIGKILL);
    (void)fprintf(stderr, "test_races: %s: %s\n", what, detail);
    exit(1);
}

static int
sync_no_file(void *context, struct pawl_os_file *file)
{
    (void)context;
    (void)file;
    return 0;
}

static int
sync_no_dir(void *context, struct pawl_os_dir *dir)
{
    (void)context;
    (void)dir;
    return 0;
}

/* The host without its syncs: power is not lost here, and a writer should be as fast as can be. */
static const struct pawl_os *
quick_os(void)
{
    static struct pawl_os os;
    os = *pawl_os_posix();
    os.file_sync = sync_no_file;
    os.dir_sync = sync_no_dir;
    return &os;
}

static void
remove_root(void)
{
    if (system("rm -rf ./" ROOT) != 0)
        fail("remove", ROOT);
}

/* Version v is saved as step v / 3: most steps are replaced twice before the next one comes and they are pruned. */
static void
write_for_ever(void)
{
    struct life life;
    struct pawl_run *run = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    life_init(&life, 0);
    if (pawl_run_open_os(quick_os(), PAWL_STR(ROOT), &PAWL_RUN_OPTIONS(.keep = 1), &run, &err) != PAWL_OK)
        fail("the writer", err.message);
    for (unsigned version = 3;; version++) {
        life_set(&life, version);
        if (pawl_run_save(run, life.state, version / 3, NULL, &err) != PAWL_OK)
            fail("the writer", err.message);
    }
}

static unsigned long
read_beside(unsigned long loads)
{
    struct life life;
    struct pawl_error err = PAWL_ERROR_INIT;
    unsigned last = 0;
    unsigned long different = 0;
    life_init(&life, 0);
    remove_root();
    writer = fork();
    if (writer < 0)
        fail("fork", strerror(errno));
    if (writer == 0)
        write_for_ever();
    for (unsigned long i = 0; i < loads || different < loads / 5;) {
        struct pawl_ckpt *ckpt = NULL;
        int status = 0;
        if (waitpid(writer, &status, WNOHANG) == writer)
            fail("the writer", "has ended");
        enum pawl_status st = pawl_ckpt_open_newest(PAWL_STR(ROOT), NULL, &ckpt, NULL, &err);
        if (last == 0 && (st == PAWL_NO_FILE || st == PAWL_NOT_FOUND))
            continue; /* it has not begun */
        if (st != PAWL_OK)
            fail("a load beside a writer", err.message);
        int64_t step = pawl_ckpt_step(ckpt);
        st = pawl_ckpt_restore(ckpt, life.state, NULL, NULL, &err);
        pawl_ckpt_close(ckpt);
        /* An open step may be pruned before its tensors are read: that is said, and the next try is for a newer one. */
        if (st == PAWL_INCOMPLETE)
            continue;
        if (st != PAWL_OK)
            fail("a restore beside a writer", err.message);
        unsigned version = (unsigned)(life.tokens / 1000);
        if (!life_is(&life, version) || version / 3 != (unsigned)step)
            fail("a restore beside a writer", "gave a mix");
        if (version < last)
            fail("a restore beside a writer", "went back");
        different += version != last;
        last = version;
        i++;
    }
    (void)kill(writer, SIGKILL);
    (void)waitpid(writer, NULL, 0);
    writer = 0;
    life_release(&life);
    return different;
}

static void
save_once(unsigned version, enum pawl_busy busy)
{
    struct life life;
    struct pawl_run *run = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    life_init(&life, version);
    enum pawl_status st = pawl_run_open_os(quick_os(), PAWL_STR(ROOT), &PAWL_RUN_OPTIONS(.busy = busy), &run, &err);
    if (st == PAWL_BUSY && busy == PAWL_BUSY_ERROR)
        exit(2);
    if (st != PAWL_OK || pawl_run_save(run, life.state, 5, NULL, &err) != PAWL_OK)
        fail("one of two writers", err.message);
    (void)pawl_run_close(run, NULL);
    life_release(&life);
    exit(0);
}

/* Returns how many of them were told "busy". */
static unsigned
write_twice(enum pawl_busy busy)
{
    struct life life;
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    unsigned n_busy = 0, n_done = 0;
    pid_t children[2];
    for (unsigned i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] < 0)
            fail("fork", strerror(errno));
        if (children[i] == 0)
            save_once(i + 1, busy);
    }
    for (unsigned i = 0; i < 2; i++) {
        int status = 0;
        (void)waitpid(children[i], &status, 0);
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 2))
            fail("one of two writers", "failed");
        n_busy += WEXITSTATUS(status) == 2;
        n_done += WEXITSTATUS(status) == 0;
    }
    if (n_done == 0 || (busy == PAWL_BUSY_WAIT && n_busy != 0))
        fail("two writers", "none saved, or one did not wait");
    life_init(&life, 0);
    if (pawl_ckpt_open_newest(PAWL_STR(ROOT), NULL, &ckpt, NULL, &err) != PAWL_OK ||
        pawl_ckpt_restore(ckpt, life.state, NULL, NULL, &err) != PAWL_OK)
        fail("after two writers", err.message);
    pawl_ckpt_close(ckpt);
    if (!life_is(&life, 1) && !life_is(&life, 2))
        fail("after two writers", "a mix");
    life_release(&life);
    return n_busy;
}

static void
delete_under_a_writer(void)
{
    struct life life;
    struct pawl_run *run = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    life_init(&life, 1);
    remove_root();
    for (unsigned i = 0; i < 2; i++) {
        if (pawl_run_open(PAWL_STR(ROOT), NULL, &run, &err) != PAWL_OK ||
            pawl_run_save(run, life.state, 1, NULL, &err) != PAWL_OK)
            fail("a save", err.message);
        if (i == 0) {
            remove_root();
            if (pawl_run_save(run, life.state, 2, NULL, &err) == PAWL_OK)
                fail("a save into a directory that was deleted", "was reported durable");
            if (err.message[0] == '\0')
                fail("a save into a directory that was deleted", "has no story");
        }
        (void)pawl_run_close(run, NULL);
    }
    life_release(&life);
    remove_root();
}

int
main(int argc, char **argv)
{
    unsigned long loads = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
    unsigned n_busy = 0;
    unsigned long different = read_beside(loads);
    remove_root();
    for (unsigned i = 0; i < 40; i++)
        n_busy += write_twice(i % 2 == 0 ? PAWL_BUSY_WAIT : PAWL_BUSY_ERROR);
    delete_under_a_writer();
    (void)printf("%lu loads beside a writer, %lu versions met, each whole; 40 pairs of writers, %u told busy\n", loads,
                 different, n_busy);
    return different >= loads / 5 ? 0 : 1;
}
