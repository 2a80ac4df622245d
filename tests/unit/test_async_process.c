/* Saves in the background and the life of a process, on a real folder: forking, and leaving, with one in flight. */
#include "unit/async_support.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static bool
is_there(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, ROOT "/%s", name);
    return access(path, F_OK) == 0;
}

static int
wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

/* Children here leave with their run open, on purpose: what that leaks is the kernel's to take back. */
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- fork ---- */

/* What a child finds: 0 when every handle of the parent answers at once that this is the wrong process. */
static int
look_from_child(struct pawl_run *run, struct pawl_state *state, struct pawl_save *save)
{
    struct pawl_save_stats stats = PAWL_SAVE_STATS_INIT;
    struct pawl_save *other = NULL;
    enum pawl_stage stage = PAWL_STAGE_ACCEPTED;
    int64_t step = 0;
    const enum pawl_status answers[] = {
        pawl_run_save(run, state, 9, NULL, NULL),
        pawl_run_save_async(run, state, 9, NULL, &other, NULL),
        pawl_run_prepare(run, state, NULL),
        pawl_run_wait(run, NULL),
        pawl_run_restore(run, state, &step, NULL, NULL),
        pawl_run_prune(run, &PAWL_PRUNE_OPTIONS(.keep = 1), NULL, NULL),
        pawl_run_pin(run, 1, NULL),
        pawl_save_wait(save, -1, NULL),
        pawl_save_wait_released(save, -1, NULL),
        pawl_save_stage(save, &stage, NULL),
        pawl_save_progress(save, NULL, NULL, NULL),
        pawl_save_cancel(save, NULL, NULL),
        pawl_save_statistics(save, &stats, NULL),
        pawl_run_close(run, NULL),
    };
    pawl_save_release(save);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i] != PAWL_WRONG_PROCESS)
            return 10 + (int)i;
    return 0;
}

/*
 * Goal: fork while a save is in flight: the child's calls answer at once, its exit waits for nothing and disturbs nothing.
 * Method: stop the save at each point, holding locks or not; the child leaves by exit(), which runs what a library has installed.
 */
static void
forked_in_the_middle(void **state)
{
    (void)state;
    static const char *const points[] = { "progress", "save/after-file", "save/before-rename", "save/before-prune" };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct gate gate = GATE_INIT;
        struct toy toy;
        remove_root();
        toy_init(&toy, 1);
        struct pawl_run *run = open_host_run(GATED_OPTIONS(&gate, .keep = 0));
        gate_close(&gate, points[i]);
        struct pawl_save *save = save_async(run, &toy, 1, 1);
        gate_await(&gate);
        (void)fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            exit(look_from_child(run, toy.state, save));
        assert_int_equal(wait_for(child), 0);
        /* The lock is the parent's, still. */
        struct pawl_run *second = NULL;
        assert_int_equal(pawl_run_open_z(ROOT, NULL, &second, NULL), PAWL_BUSY);
        gate_open(&gate);
        assert_durable(save);
        pawl_save_release(save);
        close_run(run);
        toy_release(&toy);
        assert_root_holds(pawl_os_posix());
        assert_root_is_clean(pawl_os_posix());
    }
    remove_root();
}

/* ---- exit ---- */

static struct gate exit_gate = GATE_INIT;

static void
open_exit_gate(void)
{
    gate_open(&exit_gate);
}

static _Atomic(struct pawl_save *) exiting;

/* The save goes on only when the library's handler has given it up. */
static int
wait_until_given_up(void *context, const char *name)
{
    struct pawl_save *save = NULL;
    (void)context;
    if (strcmp(name, "save/after-file") == 0)
        while ((save = atomic_load(&exiting)) == NULL || !atomic_load(&save->is_given_up))
            (void)sched_yield();
    return 0;
}

static void
say_lost(void *context, struct pawl_save *save)
{
    int to = *(const int *)context;
    if (pawl_save_wait(save, 0, NULL) == PAWL_CANCELED && write(to, "lost", 4) != 4)
        _exit(99);
}

/* A program that leaves right after the call: by exit(), with its run open and the save surely in flight. */
static void
leave(enum pawl_at_exit at_exit, int lost_to)
{
    struct toy toy;
    toy_init(&toy, 2);
    if (at_exit == PAWL_AT_EXIT_WAIT) {
        struct pawl_run *run = open_host_run(GATED_OPTIONS(&exit_gate, .keep = 0));
        gate_close(&exit_gate, "progress");
        (void)save_async(run, &toy, 2, 2);
        gate_await(&exit_gate);
        /* Installed behind the library's, it runs before: the save goes on from here, with the exit begun. */
        if (atexit(open_exit_gate) != 0)
            _exit(96);
    } else {
        struct pawl_run *run = open_host_run(PAWL_RUN_OPTIONS(.failpoint = wait_until_given_up, .saved = say_lost,
                                                              .context = &lost_to, .at_exit = at_exit));
        atomic_store(&exiting, save_async(run, &toy, 2, 2));
    }
    exit(0);
}

/* Goal: a program that leaves with a save in flight waits for it, or, when asked, gives it up and says so; both leave a root that holds. */
static void
left_with_a_save_in_flight(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct toy toy;
        char lost[8] = "";
        int ends[2];
        remove_root();
        toy_init(&toy, 1);
        struct pawl_run *run = open_host_run(PAWL_RUN_OPTIONS(0));
        save_step(run, &toy, 1, 1);
        close_run(run);
        assert_int_equal(pipe(ends), 0);
        (void)fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            leave(i == 0 ? PAWL_AT_EXIT_WAIT : PAWL_AT_EXIT_CANCEL, ends[1]);
        (void)close(ends[1]);
        assert_int_equal(wait_for(child), 0);
        assert_true(read(ends[0], lost, sizeof lost - 1) >= 0);
        (void)close(ends[0]);
        assert_string_equal(lost, i == 0 ? "" : "lost");
        assert_int_equal(is_there("step-000002"), i == 0);
        assert_root_holds(pawl_os_posix());
        assert_root_is_clean(pawl_os_posix());
        toy_release(&toy);
    }
    remove_root();
}

static void
exit_from_callback(void *context, struct pawl_save *save)
{
    (void)context;
    (void)save;
    exit(7);
}

/* Goal: a callback that ends the program does not wait for the save it is called by. */
static void
left_from_a_callback(void **state)
{
    (void)state;
    remove_root();
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct toy toy;
        toy_init(&toy, 2);
        struct pawl_run *run = open_host_run(PAWL_RUN_OPTIONS(.saved = exit_from_callback));
        (void)save_async(run, &toy, 2, 2);
        (void)pawl_run_wait(run, NULL);
        _exit(1);
    }
    int status = wait_for(child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_true(is_there("step-000002"));
    remove_root();
}

/* ---- large files ---- */

#define LARGE_FLOATS ((size_t)5 << 20) /* two files that several threads write at once */

static float *
large_values(unsigned version)
{
    float *values = malloc(2 * LARGE_FLOATS * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < 2 * LARGE_FLOATS; i++)
        values[i] = (float)(i % 8191) + (float)version;
    return values;
}

static struct pawl_state *
large_state(float *values)
{
    struct pawl_state *described = NULL;
    assert_int_equal(pawl_state_new(&described, NULL), PAWL_OK);
    assert_int_equal(
        pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, values, LARGE_FLOATS / 2, 2), NULL),
        PAWL_OK);
    assert_int_equal(pawl_state_tensor(described,
                                       &PAWL_TENSOR(PAWL_OPTIMIZER, "w.exp_avg", PAWL_F32, values + LARGE_FLOATS,
                                                    LARGE_FLOATS / 2, 2),
                                       NULL),
                     PAWL_OK);
    return described;
}

static void
read_manifest(int64_t step, char text[8192])
{
    char path[128], name[PAWL_STEP_NAME_BYTES];
    pawl_entry_name(step, "", name);
    (void)snprintf(path, sizeof path, ROOT "/%s/MANIFEST.json", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, 8191, file)] = '\0';
    (void)fclose(file);
}

/*
 * Goal: files that several threads write at once hold the values of the call too: with copies whatever goes after it, with borrowed memory
 * what goes after the release; and they can be canceled on the way.
 */
static void
large_files(void **state)
{
    (void)state;
    char expected[8192], found[8192];
    for (unsigned way = 0; way < 2; way++) {
        struct gate gate = GATE_INIT;
        struct pawl_save *save = NULL;
        bool was_canceled = false;
        float *values = large_values(1);
        struct pawl_state *described = large_state(values);
        remove_root();
        struct pawl_run *run =
            open_host_run(GATED_OPTIONS(&gate, .snapshot = way == 0 ? PAWL_SNAPSHOT_COPY : PAWL_SNAPSHOT_BORROW));
        assert_int_equal(pawl_run_save(run, described, 1, NULL, NULL), PAWL_OK);
        read_manifest(1, expected);
        gate_close(&gate, "progress");
        assert_int_equal(pawl_run_save_async(run, described, 1, NULL, &save, NULL), PAWL_OK);
        gate_await(&gate);
        if (way == 1)
            gate_open(&gate);
        assert_int_equal(pawl_save_wait_released(save, -1, NULL), PAWL_OK);
        memset(values, 0xff, 2 * LARGE_FLOATS * sizeof *values);
        free(values);
        pawl_state_free(described);
        gate_open(&gate);
        assert_durable(save);
        pawl_save_release(save);
        read_manifest(1, found);
        assert_string_equal(found, expected);

        assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
        values = large_values(2);
        described = large_state(values);
        gate_close(&gate, "progress");
        assert_int_equal(pawl_run_save_async(run, described, 2, NULL, &save, NULL), PAWL_OK);
        gate_await(&gate);
        assert_int_equal(pawl_save_cancel(save, &was_canceled, NULL), PAWL_OK);
        assert_true(was_canceled);
        gate_open(&gate);
        assert_int_equal(pawl_save_wait(save, -1, NULL), PAWL_CANCELED);
        free(values); /* nothing reads it any more, borrowed or not */
        pawl_save_release(save);
        close_run(run);
        pawl_state_free(described);
        assert_root_holds(pawl_os_posix());
        assert_root_is_clean(pawl_os_posix());
        assert_false(is_there("step-000002"));
    }
    remove_root();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_files),
        cmocka_unit_test(forked_in_the_middle),
        cmocka_unit_test(left_with_a_save_in_flight),
        cmocka_unit_test(left_from_a_callback),
    };
    return end_tests(cmocka_run_group_tests(tests, NULL, NULL));
}
