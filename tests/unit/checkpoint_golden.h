/* unit/checkpoint_golden.h: a case of tests/golden/checkpoint set up in the test's folder, for both directions. */
#ifndef UNIT_CHECKPOINT_GOLDEN_H
#define UNIT_CHECKPOINT_GOLDEN_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/file.h"

#define GOLDEN_CHECKPOINTS PAWL_GOLDEN "/checkpoint"

/* Run a shell command; the test stops when it fails. */
static inline void
golden_shell(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

/* Copy the root of a case to ./<case>/root and run its setup there. Paths of the source tree have no quote in them. */
static inline void
golden_setup(const char *side, const char *name)
{
    char command[8192];
    int n =
        snprintf(command, sizeof command,
                 "rm -rf './%s' && mkdir './%s' && if [ -d '%s/%s/%s/root' ]; then cp -R '%s/%s/%s/root' './%s/root'; "
                 "else mkdir './%s/root'; fi && if [ -f '%s/%s/%s/setup.sh' ]; then cd './%s/root' && sh "
                 "'%s/%s/%s/setup.sh'; fi",
                 name, name, GOLDEN_CHECKPOINTS, side, name, GOLDEN_CHECKPOINTS, side, name, name, name,
                 GOLDEN_CHECKPOINTS, side, name, name, GOLDEN_CHECKPOINTS, side, name);
    assert_true(n > 0 && (size_t)n < sizeof command);
    golden_shell(command);
}

static inline void
golden_remove(const char *name)
{
    struct pawl_dir here = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", NULL), PAWL_OK);
    assert_int_equal(pawl_dir_remove_tree(&here, name, NULL), PAWL_OK);
    pawl_dir_release(&here);
}

/* The cases of a side, "good" or "bad", sorted. */
static inline void
golden_cases(const char *side, struct pawl_dir_list *ret_list)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", GOLDEN_CHECKPOINTS, side);
    assert_int_equal(pawl_dir_open_path(&dir, pawl_os_posix(), path, NULL), PAWL_OK);
    assert_int_equal(pawl_dir_list(&dir, ret_list, NULL), PAWL_OK);
    pawl_dir_release(&dir);
}

#endif
