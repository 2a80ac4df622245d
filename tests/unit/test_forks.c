/*
 * Goal: a child that is forked while other threads of its parent are busy with a handle goes on with it, or is told at once that it can't; it waits for
 * nobody who is not there, and the parent does not notice.
 *
 * Method: a table of the host that stops a thread in the middle of a read or a mapping; fork; the child does everything with the handle, and an alarm ends
 * it when it hangs.
 */
#include "unit/os_fixture.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "checkpoint/reading.h"
#include "checkpoint/run.h"

#define BIG ((size_t)3 << 18) /* three MiB and more, so that it is of several blocks */
#define HANGS_AFTER_S 60

static float big[BIG], small[100];

/* ---- a table that stops a thread ---- */

static struct pawl_os table;
static atomic_bool stops_reads, stops_maps; /* the next one */
static atomic_bool is_stopped, goes_on;

static bool
sleeps(pid_t thread)
{
    char path[64], state = 'R';
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'R';
    (void)fclose(file);
    return state == 'S';
}

static int
read_at(void *context, struct pawl_os_file *file, uint64_t offset, void *data, size_t bytes, size_t *ret_n)
{
    if (atomic_exchange(&stops_reads, false)) {
        atomic_store(&is_stopped, true);
        while (!atomic_load(&goes_on))
            (void)sched_yield();
    }
    return pawl_os_posix()->file_read_at(context, file, offset, data, bytes, ret_n);
}

/* A lock is held here, which the one who forks waits for: he is the main thread. */
static int
map(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, const void **ret_data)
{
    if (atomic_exchange(&stops_maps, false)) {
        atomic_store(&is_stopped, true);
        while (!atomic_load(&goes_on) && !sleeps(getpid()))
            (void)sched_yield();
    }
    return pawl_os_posix()->file_map(context, file, offset, bytes, ret_data);
}

static void
reset_table(void)
{
    table = *pawl_os_posix();
    table.file_read_at = read_at;
    table.file_map = map;
    atomic_store(&stops_reads, false);
    atomic_store(&stops_maps, false);
    atomic_store(&is_stopped, false);
    atomic_store(&goes_on, false);
}

static void
await(atomic_bool *flag)
{
    while (!atomic_load(flag))
        (void)sched_yield();
}

/* ---- the checkpoint ---- */

static struct pawl_state *
describe(float *large)
{
    struct pawl_state *state = NULL;
    assert_int_equal(pawl_state_new(&state, NULL), PAWL_OK);
    assert_int_equal(pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "big", PAWL_F32, large, BIG), NULL), PAWL_OK);
    assert_int_equal(pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "small", PAWL_F32, small, 100), NULL), PAWL_OK);
    return state;
}

static void
make_root(bool with_sums)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    reset_table();
    for (size_t i = 0; i < BIG; i++)
        big[i] = (float)i;
    struct pawl_state *state = describe(big);
    if (pawl_run_open_z("root", &PAWL_RUN_OPTIONS(.write_sums = with_sums), &run, &err) != PAWL_OK ||
        pawl_run_save(run, state, 1, NULL, &err) != PAWL_OK || pawl_run_close(run, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    pawl_state_free(state);
}

static struct pawl_ckpt *
open_root(enum pawl_trust trust)
{
    struct pawl_ckpt *ckpt = NULL;
    const struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(.trust = trust);
    return pawl_ckpt_open_newest_os(&table, PAWL_STR("root"), &options, &ckpt, NULL, NULL) == PAWL_OK ? ckpt : NULL;
}

/* Does "big" come as it was saved? */
static bool
reads_big(const struct pawl_ckpt *ckpt)
{
    float *data = malloc(sizeof big);
    const struct pawl_model *model = pawl_ckpt_model(ckpt);
    bool is_right =
        data != NULL &&
        pawl_model_read(model, pawl_model_find(model, PAWL_STR("big")), PAWL_F32, data, sizeof big, NULL) == PAWL_OK &&
        memcmp(data, big, sizeof big) == 0;
    free(data);
    return is_right;
}

static bool
maps(const struct pawl_ckpt *ckpt, const char *name)
{
    const struct pawl_model *model = pawl_ckpt_model(ckpt);
    const void *data = NULL;
    return pawl_model_map(model, pawl_model_find(model, pawl_str_z(name)), &data, NULL, NULL) == PAWL_OK;
}

/* ---- threads and children ---- */

struct worker {
    pthread_t thread;
    struct pawl_ckpt *ckpt;
    struct pawl_state *state;
    atomic_int id;
    bool is_right;
};

static void
begin(struct worker *worker, void *(*work)(void *))
{
    atomic_init(&worker->id, 0);
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static void
end(struct worker *worker)
{
    assert_int_equal(pthread_join(worker->thread, NULL), 0);
    assert_true(worker->is_right);
}

static void *
read_big(void *context)
{
    struct worker *worker = context;
    atomic_store(&worker->id, (int)syscall(SYS_gettid));
    worker->is_right = reads_big(worker->ckpt);
    return NULL;
}

static void *
restore(void *context)
{
    struct worker *worker = context;
    worker->is_right = pawl_ckpt_restore(worker->ckpt, worker->state, NULL, NULL, NULL) == PAWL_OK;
    return NULL;
}

static void *
map_small(void *context)
{
    struct worker *worker = context;
    worker->is_right = maps(worker->ckpt, "small");
    return NULL;
}

/* In a child: threads are another matter there (a sanitizer's, an emulator's). */
static void
be_a_child(void)
{
    (void)alarm(HANGS_AFTER_S);
    table.takes_threads = false;
}

static void
assert_child_is_fine(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child %s %d", WIFEXITED(status) ? "left with" : "was ended by signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* ---- lazily ---- */

static int
go_on_lazily(struct pawl_ckpt *ckpt)
{
    be_a_child();
    if (!reads_big(ckpt))
        return 10;
    if (!maps(ckpt, "big") || !maps(ckpt, "small"))
        return 11;
    if (pawl_ckpt_verify(ckpt, NULL, NULL) != PAWL_OK)
        return 12;
    pawl_ckpt_close(ckpt);
    return 0;
}

/* One thread verifies, another waits for it. */
static void
a_child_verifies_itself_what_others_had_begun(void **state)
{
    (void)state;
    for (int with_sums = 0; with_sums < 2; with_sums++) {
        make_root(with_sums != 0);
        struct pawl_ckpt *ckpt = open_root(PAWL_TRUST_LAZY);
        assert_non_null(ckpt);
        struct worker first = { .ckpt = ckpt }, second = { .ckpt = ckpt };
        atomic_store(&stops_reads, true);
        begin(&first, read_big);
        await(&is_stopped);
        begin(&second, read_big);
        while (atomic_load(&second.id) == 0 || !sleeps((pid_t)atomic_load(&second.id)))
            (void)sched_yield();
        pid_t child = fork();
        if (child == 0)
            _exit(go_on_lazily(ckpt));
        assert_true(child > 0);
        assert_child_is_fine(child);
        atomic_store(&goes_on, true);
        end(&first);
        end(&second);
        assert_true(reads_big(ckpt));
        pawl_ckpt_close(ckpt);
        struct pawl_dir here = PAWL_DIR_INIT;
        assert_int_equal(pawl_dir_open_path(&here, pawl_os_posix(), ".", NULL), PAWL_OK);
        assert_int_equal(pawl_dir_remove_tree(&here, "root", NULL), PAWL_OK);
        pawl_dir_release(&here);
    }
}

/* What was found damaged before the fork is damaged in the child, and what was right is not read again. */
static void
a_child_keeps_what_was_verified(void **state)
{
    (void)state;
    make_root(true);
    struct pawl_ckpt *ckpt = open_root(PAWL_TRUST_LAZY);
    assert_non_null(ckpt);
    assert_true(reads_big(ckpt));
    pid_t child = fork();
    if (child == 0) {
        be_a_child();
        atomic_store(&stops_reads, true);
        if (!maps(ckpt, "big"))
            _exit(10);
        _exit(atomic_load(&stops_reads) ? 0 : 11);
    }
    assert_true(child > 0);
    assert_child_is_fine(child);
    pawl_ckpt_close(ckpt);
}

/* ---- a lock that is held for long ---- */

static int
be_told(struct pawl_ckpt *ckpt, struct pawl_state *state)
{
    static float own[BIG];
    struct pawl_error err = PAWL_ERROR_INIT;
    int64_t number = 0;
    be_a_child();
    struct pawl_state *fresh = describe(own);
    if (pawl_ckpt_restore(ckpt, fresh, NULL, NULL, &err) != PAWL_WRONG_PROCESS)
        return 10;
    if (strcmp(err.message, "the checkpoint was in use by another thread when this process was forked") != 0)
        return 11;
    if (pawl_ckpt_verify(ckpt, NULL, NULL) != PAWL_WRONG_PROCESS)
        return 12;
    if (!reads_big(ckpt) || !maps(ckpt, "small")) /* which needs no such lock */
        return 13;
    struct pawl_ckpt *other = open_root(PAWL_TRUST_FULL);
    if (other == NULL || pawl_ckpt_restore(other, state, NULL, NULL, &err) != PAWL_WRONG_PROCESS)
        return 14;
    if (strcmp(err.message, "the state was in use by another thread when this process was forked") != 0)
        return 15;
    if (pawl_state_number(state, PAWL_TRAINER, "more", PAWL_I64, &number, NULL) != PAWL_WRONG_PROCESS)
        return 16;
    struct pawl_run *run = NULL;
    const struct pawl_run_options options = PAWL_RUN_OPTIONS(0);
    if (pawl_run_open_os(&table, PAWL_STR("other"), &options, &run, NULL) != PAWL_OK ||
        pawl_run_save(run, state, 1, NULL, NULL) != PAWL_WRONG_PROCESS ||
        pawl_run_save_async(run, state, 1, NULL, NULL, NULL) != PAWL_WRONG_PROCESS ||
        pawl_run_save(run, fresh, 1, NULL, NULL) != PAWL_OK ||
        pawl_run_restore(run, state, NULL, NULL, NULL) != PAWL_WRONG_PROCESS || pawl_run_close(run, NULL) != PAWL_OK)
        return 17;
    if (pawl_ckpt_restore(other, fresh, NULL, NULL, NULL) != PAWL_OK || memcmp(own, big, sizeof own) != 0)
        return 18;
    pawl_ckpt_close(other);
    pawl_ckpt_close(ckpt);
    pawl_state_free(fresh);
    pawl_state_free(state);
    return 0;
}

static void
a_child_is_told_what_was_in_use(void **state)
{
    (void)state;
    static float target[BIG];
    make_root(true);
    struct worker worker = { .ckpt = open_root(PAWL_TRUST_LAZY), .state = describe(target) };
    assert_non_null(worker.ckpt);
    atomic_store(&stops_reads, true);
    begin(&worker, restore);
    await(&is_stopped);
    pid_t child = fork();
    if (child == 0)
        _exit(be_told(worker.ckpt, worker.state));
    assert_true(child > 0);
    assert_child_is_fine(child);
    atomic_store(&goes_on, true);
    end(&worker);
    assert_memory_equal(target, big, sizeof target);
    assert_int_equal(pawl_ckpt_restore(worker.ckpt, worker.state, NULL, NULL, NULL), PAWL_OK);
    pawl_ckpt_close(worker.ckpt);
    pawl_state_free(worker.state);
}

/* ---- a lock that is held for a moment ---- */

static void
a_fork_waits_for_a_mapping(void **state)
{
    (void)state;
    make_root(false);
    struct worker worker = { .ckpt = open_root(PAWL_TRUST_FULL) };
    assert_non_null(worker.ckpt);
    atomic_store(&stops_maps, true);
    begin(&worker, map_small);
    await(&is_stopped);
    pid_t child = fork();
    if (child == 0) {
        be_a_child();
        _exit(maps(worker.ckpt, "big") && reads_big(worker.ckpt) ? 0 : 10);
    }
    assert_true(child > 0);
    atomic_store(&goes_on, true);
    assert_child_is_fine(child);
    end(&worker);
    pawl_ckpt_close(worker.ckpt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_child_verifies_itself_what_others_had_begun, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(a_child_keeps_what_was_verified, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(a_child_is_told_what_was_in_use, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(a_fork_waits_for_a_mapping, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
