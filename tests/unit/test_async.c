/* A save in the background: what it saves, its stages, canceling it, its errors, and the order of things around it. */
#include "unit/async_support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILES(step)                                                                                          \
    "\n" step "/\n" step "/MANIFEST.json\n" step "/model.safetensors\n" step "/optimizer.safetensors\n" step \
    "/pawl.state.json\n" step "/trainer_state.json"

/* ---- what is saved ---- */

/* Every kind of place a tensor can be in. */
struct subject {
    float packed[300], strided[40], big_endian[4];
    double one;
    unsigned char bits[6];
    uint16_t *mapped; /* 4096 of them */
    uint32_t from_source[70];
    int64_t tokens;
    struct pawl_source source;
    struct pawl_state *state;
};

static enum pawl_status
read_values(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    (void)err;
    memcpy(destination, (const unsigned char *)context + offset, n);
    return PAWL_OK;
}

static void
subject_set(struct subject *s, unsigned version)
{
    for (size_t i = 0; i < 300; i++)
        s->packed[i] = (float)(version * 1000 + i);
    for (size_t i = 0; i < 40; i++)
        s->strided[i] = (float)(version * 100 + i) / 8;
    for (size_t i = 0; i < 4; i++)
        s->big_endian[i] = (float)(version + i);
    s->one = version + 0.25;
    memset(s->bits, (int)(version * 17), sizeof s->bits);
    for (size_t i = 0; i < 4096; i++)
        s->mapped[i] = (uint16_t)(version * 31 + i);
    for (size_t i = 0; i < 70; i++)
        s->from_source[i] = (uint32_t)(version * 7 + i);
    s->tokens = 100 + version;
}

static void
subject_init(struct subject *s)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const uint64_t seventy = 70;
    static const uint64_t shape[2] = { 4, 5 };
    static const int64_t turned[2] = { 1, -8 }; /* columns first, backwards */
    *s = (struct subject){ .tokens = 0 };
    int fd = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, 8192) == 0);
    s->mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(s->mapped, MAP_FAILED);
    (void)close(fd);
    s->source = (struct pawl_source){ sizeof s->from_source, read_values, s->from_source };
    assert_int_equal(pawl_state_new(&s->state, &err), PAWL_OK);
    struct pawl_tensor strided = PAWL_TENSOR(PAWL_MODEL, "strided", PAWL_F32, s->strided + 33, 4, 5);
    strided.shape = shape;
    strided.strides = turned;
    struct pawl_tensor big_endian = PAWL_TENSOR(PAWL_MODEL, "big-endian", PAWL_F32, s->big_endian, 4);
    big_endian.is_big_endian = 1;
    struct pawl_tensor source = PAWL_TENSOR(PAWL_OPTIMIZER, "packed.count", PAWL_U32, NULL, 70);
    source.shape = &seventy;
    source.source = &s->source;
    if (pawl_state_tensor(s->state, &PAWL_TENSOR(PAWL_MODEL, "packed", PAWL_F32, s->packed, 3, 100), &err) != PAWL_OK ||
        pawl_state_tensor(s->state, &PAWL_TENSOR(PAWL_MODEL, "packed.tied", PAWL_F32, s->packed, 3, 100), &err) != 0 ||
        pawl_state_tensor(s->state, &PAWL_TENSOR(PAWL_MODEL, "none", PAWL_F32, NULL, 0, 7), &err) != PAWL_OK ||
        pawl_state_tensor(s->state, &PAWL_TENSOR(PAWL_MODEL, "four-bits", PAWL_F4, s->bits, 12), &err) != PAWL_OK ||
        pawl_state_tensor(s->state, &PAWL_TENSOR(PAWL_MODEL, "mapped", PAWL_BF16, s->mapped, 4096), &err) != PAWL_OK ||
        pawl_state_tensor(s->state, &PAWL_SCALAR(PAWL_MODEL, "one", PAWL_F64, &s->one), &err) != PAWL_OK ||
        pawl_state_tensor(s->state, &strided, &err) != PAWL_OK ||
        pawl_state_tensor(s->state, &big_endian, &err) != PAWL_OK ||
        pawl_state_tensor(s->state, &source, &err) != PAWL_OK ||
        pawl_state_file(s->state, PAWL_STR("note.txt"), "before", 6, &err) != PAWL_OK ||
        pawl_state_number(s->state, PAWL_TRAINER, "tokens_seen", PAWL_I64, &s->tokens, &err) != PAWL_OK)
        fail_msg("%s", err.message);
}

static void
subject_release(struct subject *s)
{
    pawl_state_free(s->state);
    (void)munmap(s->mapped, 8192);
}

/* The manifest of a synchronous save of the subject: equal texts are equal files. */
static char *
subject_manifest(struct subject *s, int64_t step, uint64_t max_file_bytes)
{
    char path[96], name[PAWL_STEP_NAME_BYTES];
    struct simdisk *disk = simdisk_new();
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.max_file_bytes = max_file_bytes));
    assert_int_equal(pawl_run_save(run, s->state, step, NULL, NULL), PAWL_OK);
    close_run(run);
    pawl_entry_name(step, "", name);
    (void)snprintf(path, sizeof path, ROOT "/%s/MANIFEST.json", name);
    char *copy = strdup(simdisk_text(disk, path));
    simdisk_free(disk);
    return copy;
}

/*
 * Goal: a copy holds the values of the moment of the call: all of them, whatever changes or goes after the return.
 * Method: stop the thread before the first byte is written; change every tensor, number and file, and free the state; compare with
 * a synchronous save of the values before. One file, and many.
 */
static void
values_of_the_call_are_saved(void **state)
{
    (void)state;
    static const uint64_t limits[] = { 0, 1000 };
    for (size_t i = 0; i < 2; i++) {
        struct gate gate = GATE_INIT;
        struct subject s;
        struct pawl_save *save = NULL;
        subject_init(&s);
        subject_set(&s, 3);
        char *expected = subject_manifest(&s, 12, limits[i]);
        struct simdisk *disk = simdisk_new();
        struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .max_file_bytes = limits[i]));
        assert_int_equal(pawl_run_prepare(run, s.state, NULL), PAWL_OK);
        int64_t step = 12;
        gate_close(&gate, "progress");
        assert_int_equal(pawl_run_save_async(run, s.state, step, NULL, &save, NULL), PAWL_OK);
        assert_int_equal(stage_of(save), PAWL_STAGE_RELEASED);
        step++;
        subject_set(&s, 4);
        assert_int_equal(pawl_state_file(s.state, PAWL_STR("note.txt"), "after!", 6, NULL), PAWL_OK);
        subject_release(&s);
        gate_await(&gate);
        gate_open(&gate);
        assert_durable(save);
        assert_string_equal(simdisk_text(disk, ROOT "/step-000012/MANIFEST.json"), expected);
        pawl_save_release(save);
        close_run(run);
        assert_root_holds(simdisk_os(disk));
        free(expected);
        simdisk_free(disk);
    }
}

/* Goal: the same for `borrow`, from the release on; and before it the save is not called released. */
static void
borrowed_until_released(void **state)
{
    (void)state;
    struct gate gate = GATE_INIT;
    struct subject s;
    struct pawl_save *save = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    subject_init(&s);
    subject_set(&s, 3);
    char *expected = subject_manifest(&s, 12, 0);
    struct simdisk *disk = simdisk_new();
    struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .snapshot = PAWL_SNAPSHOT_BORROW));
    assert_int_equal(pawl_run_prepare(run, s.state, NULL), PAWL_OK);
    gate_close(&gate, "progress");
    assert_int_equal(pawl_run_save_async(run, s.state, 12, NULL, &save, NULL), PAWL_OK);
    gate_await(&gate);
    assert_int_equal(stage_of(save), PAWL_STAGE_ACCEPTED);
    assert_int_equal(pawl_save_wait_released(save, 0, &err), PAWL_TIME_OUT);
    assert_string_equal(err.message, "the save of step 12 is not released after 0 ms");
    s.tokens = 1; /* numbers are copied before the call returns, files too; the description may go on */
    assert_int_equal(pawl_state_file(s.state, PAWL_STR("note.txt"), "after!", 6, NULL), PAWL_OK);
    float more[100];
    char name[16];
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "more.%u", i);
        assert_int_equal(pawl_state_tensor(s.state, &PAWL_TENSOR(PAWL_MODEL, name, PAWL_F32, &more[i], 1), NULL), 0);
    }
    gate.next = "save/before-manifest";
    gate_open(&gate);
    assert_int_equal(pawl_save_wait_released(save, -1, NULL), PAWL_OK);
    assert_int_equal(stage_of(save), PAWL_STAGE_RELEASED); /* it stands at the second stop */
    subject_set(&s, 4);
    subject_release(&s);
    gate_open(&gate);
    assert_durable(save);
    assert_string_equal(simdisk_text(disk, ROOT "/step-000012/MANIFEST.json"), expected);
    pawl_save_release(save);
    close_run(run);
    free(expected);
    simdisk_free(disk);
}

/* Goal: metrics and further options go the same way. */
static void
metrics_are_saved(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    struct pawl_metric metric = { PAWL_STR("loss"), 0.5 };
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    assert_int_equal(
        pawl_run_save_async(run, toy.state, 1, &PAWL_SAVE_OPTIONS(.metrics = &metric, .n_metrics = 1), NULL, NULL),
        PAWL_OK);
    metric.value = 7;
    close_run(run);
    assert_string_equal(simdisk_text(disk, ROOT "/step-000001/pawl.metrics.json"), "{\n  \"loss\": 0.5\n}\n");
    toy_release(&toy);
    simdisk_free(disk);
}

/* ---- stages ---- */

/* Goal: each stage is shown when it is reached, never before; what is visible in the root fits it. */
static void
stages_in_their_order(void **state)
{
    (void)state;
    static const struct {
        const char *point;
        enum pawl_stage stage;
        bool is_step; /* step-000001 is there */
    } points[] = { { "progress", PAWL_STAGE_RELEASED, false },
                   { "save/after-file", PAWL_STAGE_RELEASED, false },
                   { "save/before-manifest", PAWL_STAGE_RELEASED, false },
                   { "save/before-rename", PAWL_STAGE_WRITTEN, false },
                   { "save/before-latest", PAWL_STAGE_WRITTEN, true },
                   { "save/before-prune", PAWL_STAGE_DURABLE, true } };
    struct toy toy;
    toy_init(&toy, 1);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct gate gate = GATE_INIT;
        struct simdisk *disk = simdisk_new();
        struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 1));
        uint64_t done = 1, total = 0;
        gate_close(&gate, points[i].point);
        struct pawl_save *save = save_async(run, &toy, 1, 1);
        gate_await(&gate);
        assert_int_equal(stage_of(save), points[i].stage);
        assert_int_equal(simdisk_has(disk, ROOT "/step-000001"), points[i].is_step);
        bool is_durable = points[i].stage == PAWL_STAGE_DURABLE;
        assert_int_equal(pawl_save_wait(save, 0, NULL), is_durable ? PAWL_OK : PAWL_TIME_OUT);
        assert_int_equal(pawl_save_wait_released(save, 0, NULL), PAWL_OK);
        assert_int_equal(gate.n_saved, is_durable); /* else nobody heard "durable" */
        gate_open(&gate);
        assert_durable(save);
        assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
        assert_int_equal(gate.n_saved, 1);
        assert_int_equal(gate.ends[0], PAWL_OK);
        assert_int_equal(pawl_save_progress(save, &done, &total, NULL), PAWL_OK);
        assert_true(done == total && total > 0);
        struct pawl_save_stats stats = PAWL_SAVE_STATS_INIT;
        assert_int_equal(pawl_save_statistics(save, &stats, NULL), PAWL_OK);
        assert_true(stats.bytes == total && stats.hash_seconds > 0 && stats.sync_seconds > 0 &&
                    stats.write_seconds > 0);
        assert_true(stats.durable_seconds > 0 && stats.stall_seconds > 0);
        pawl_save_release(save);
        close_run(run);
        assert_tree(disk, "LATEST" FILES("step-000001"));
        simdisk_free(disk);
    }
    toy_release(&toy);
}

/* Goal: who waits for durable does not wait for the deleting of old steps; the run does. */
static void
old_steps_go_after(void **state)
{
    (void)state;
    struct gate gate = GATE_INIT;
    struct toy toy;
    toy_init(&toy, 1);
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 1));
    gate_close(&gate, "save/before-prune");
    struct pawl_save *save = save_async(run, &toy, 2, 2);
    gate_await(&gate);
    assert_durable(save);
    assert_tree(disk, "LATEST" FILES("step-000001") FILES("step-000002"));
    gate_open(&gate);
    assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
    assert_tree(disk, "LATEST" FILES("step-000002"));
    pawl_save_release(save);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* ---- canceling ---- */

/*
 * Goal: a save can be given up until it is published, and then leaves nothing; after that it can't, and becomes a step.
 * Method: cancel at each point. The next save is a save, and no error is left over.
 */
static void
canceled_at_every_stage(void **state)
{
    (void)state;
    static const struct {
        const char *point;
        bool can;
    } points[] = { { "progress", true },           { "save/after-file", true },     { "save/before-manifest", true },
                   { "save/before-rename", true }, { "save/before-latest", false }, { "save/before-prune", false } };
    struct toy toy;
    toy_init(&toy, 1);
    for (size_t i = 0; i < 2 * sizeof points / sizeof *points; i++) {
        struct gate gate = GATE_INIT;
        struct pawl_error err = PAWL_ERROR_INIT;
        const char *point = points[i / 2].point;
        bool can = points[i / 2].can, was_canceled = !can;
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct pawl_run *run = open_run(
            simdisk_os(disk), GATED_OPTIONS(&gate, .snapshot = i % 2 == 0 ? PAWL_SNAPSHOT_COPY : PAWL_SNAPSHOT_BORROW));
        gate_close(&gate, point);
        struct pawl_save *save = save_async(run, &toy, 2, 2);
        gate_await(&gate);
        assert_int_equal(pawl_save_cancel(save, &was_canceled, NULL), PAWL_OK);
        assert_int_equal(was_canceled, can);
        gate_open(&gate);
        assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK); /* nobody was told, and there is nothing to tell */
        assert_int_equal(pawl_save_wait(save, -1, &err), can ? PAWL_CANCELED : PAWL_OK);
        assert_int_equal(stage_of(save), can ? PAWL_STAGE_CANCELED : PAWL_STAGE_DURABLE);
        assert_int_equal(pawl_save_wait_released(save, 0, NULL), PAWL_OK);
        if (can)
            assert_string_equal(err.message, "save step 2: the save was abandoned by its caller");
        /* Once it is over the answer stays. */
        assert_int_equal(pawl_save_cancel(save, &was_canceled, NULL), PAWL_OK);
        assert_int_equal(was_canceled, can);
        assert_tree(disk, can ? "LATEST" FILES("step-000001") : "LATEST" FILES("step-000001") FILES("step-000002"));
        pawl_save_release(save);
        save = save_async(run, &toy, 3, 3);
        assert_durable(save);
        pawl_save_release(save);
        close_run(run);
        assert_root_holds(simdisk_os(disk));
        assert_root_is_clean(simdisk_os(disk));
        simdisk_free(disk);
    }
    toy_release(&toy);
}

/* ---- errors ---- */

enum asked_by { BY_NEXT_ASYNC, BY_NEXT_SAVE, BY_RUN_WAIT, BY_CLOSE, BY_HANDLE };

/*
 * Goal: the error of a save in the background reaches somebody, once; the root is as it was; later saves work.
 * Method: fail at every point; ask in every way.
 */
static void
errors_are_never_lost(void **state)
{
    (void)state;
    static const char *const points[] = { "save/after-file", "save/before-manifest", "save/before-rename",
                                          "save/before-latest" };
    struct toy toy;
    toy_init(&toy, 1);
    for (size_t i = 0; i < 5 * sizeof points / sizeof *points; i++) {
        struct gate gate = GATE_INIT;
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_save *save = NULL;
        char expected[160];
        const char *point = points[i / 5];
        enum asked_by asked = (enum asked_by)(i % 5);
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 2));
        gate_fail(&gate, point);
        assert_int_equal(pawl_run_save_async(run, toy.state, 2, NULL, asked == BY_HANDLE ? &save : NULL, NULL),
                         PAWL_OK);
        if (asked == BY_HANDLE) {
            assert_int_equal(pawl_save_wait(save, -1, &err), PAWL_IO);
            assert_int_equal(stage_of(save), PAWL_STAGE_FAILED);
            assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK); /* it was told */
            (void)snprintf(expected, sizeof expected, "save step 2: failpoint '%s': Input/output error", point);
        } else {
            /* Calls that wait and do not report leave it for one that does. */
            bool has = false;
            assert_int_equal(pawl_run_has_steps(run, &has, NULL), PAWL_OK);
            assert_int_equal(pawl_run_prune(run, &PAWL_PRUNE_OPTIONS(.keep = 5), NULL, NULL), PAWL_OK);
            gate_fail(&gate, NULL);
            enum pawl_status st = asked == BY_NEXT_ASYNC  ? pawl_run_save_async(run, toy.state, 3, NULL, &save, &err)
                                  : asked == BY_NEXT_SAVE ? pawl_run_save(run, toy.state, 3, NULL, &err)
                                  : asked == BY_RUN_WAIT  ? pawl_run_wait(run, &err)
                                                          : pawl_run_close(run, &err);
            assert_int_equal(st, PAWL_IO);
            assert_null(save);
            (void)snprintf(expected, sizeof expected,
                           "an earlier save, in the background: save step 2: failpoint '%s': Input/output error",
                           point);
        }
        assert_string_equal(err.message, expected);
        pawl_save_release(save);
        assert_int_equal(gate.n_saved, 1);
        assert_int_equal(gate.ends[0], PAWL_IO);
        gate_fail(&gate, NULL);
        if (asked == BY_CLOSE) /* closed all the same: the lock is free */
            run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 2));
        assert_false(simdisk_has(disk, ROOT "/step-000002"));
        assert_false(simdisk_has(disk, ROOT "/step-000003"));
        save = save_async(run, &toy, 4, 4); /* told once: this one saves */
        assert_durable(save);
        pawl_save_release(save);
        close_run(run);
        assert_root_holds(simdisk_os(disk));
        assert_root_is_clean(simdisk_os(disk));
        assert_int_equal(simdisk_open_handles(disk), 0);
        simdisk_free(disk);
    }
    toy_release(&toy);
}

static enum pawl_status
refuse_second(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    (void)destination;
    (void)n;
    (void)err;
    ++*(unsigned *)context;
    return offset == 0 ? PAWL_STALE : PAWL_OK;
}

/* Goal: a source that fails: with `copy` the call says so and nothing has begun, with `borrow` the save does; the tensor is named. */
static void
source_fails(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        unsigned calls = 0;
        const struct pawl_source source = { 8, refuse_second, &calls };
        struct pawl_tensor tensor = PAWL_TENSOR(PAWL_MODEL, "far", PAWL_F32, NULL, 2);
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_save *save = NULL;
        struct toy toy;
        toy_init(&toy, 1);
        tensor.source = &source;
        assert_int_equal(pawl_state_tensor(toy.state, &tensor, NULL), PAWL_OK);
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct pawl_run *run = open_run(
            simdisk_os(disk), PAWL_RUN_OPTIONS(.snapshot = i == 0 ? PAWL_SNAPSHOT_COPY : PAWL_SNAPSHOT_BORROW));
        enum pawl_status st = pawl_run_save_async(run, toy.state, 2, NULL, &save, &err);
        assert_int_equal(st, i == 0 ? PAWL_STALE : PAWL_OK);
        if (i == 1)
            assert_int_equal(pawl_save_wait(save, -1, &err), PAWL_STALE);
        assert_string_equal(err.message, "save step 2: tensor 'far': its source failed at byte 0 of 8");
        assert_string_equal(err.tensor, "far");
        assert_int_equal(calls, 1);
        assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
        pawl_save_release(save);
        close_run(run);
        assert_tree(disk, "LATEST" FILES("step-000001"));
        toy_release(&toy);
        simdisk_free(disk);
    }
}

/* Goal: what a save refuses is refused by the call, and by making ready, before anything is begun. */
static void
refused_at_once(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_save *save = NULL;
    struct pawl_run *run = NULL;
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    toy_init(&toy, 1);
    run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    assert_int_equal(pawl_run_save_async(run, toy.state, -1, NULL, &save, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "save step -1: step -1 is negative");
    assert_int_equal(pawl_run_save_async(run, NULL, 1, NULL, &save, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_run_save_async(NULL, toy.state, 1, NULL, &save, &err), PAWL_ARGUMENT);
    toy.rng.inc = 2;
    assert_int_equal(pawl_run_save_async(run, toy.state, 1, NULL, &save, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_run_prepare(run, toy.state, &err), PAWL_ARGUMENT);
    assert_non_null(strstr(err.message, "prepare for saves in the background: "));
    assert_null(save);
    assert_int_equal(pawl_save_wait(NULL, 0, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_save_step(NULL), -1);
    pawl_save_release(NULL);
    assert_tree(disk, "");
    close_run(run);
    struct pawl_run_options bad = PAWL_RUN_OPTIONS(.snapshot = (enum pawl_snapshot)2);
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &bad, &run, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "snapshot is 2, expected PAWL_SNAPSHOT_COPY or PAWL_SNAPSHOT_BORROW");
    toy_release(&toy);
    simdisk_free(disk);
}

/* ---- around a save ---- */

struct call {
    struct pawl_run *run;
    struct toy *toy;
    struct pawl_report *report;
    enum pawl_status st;
};

static void *
save_third(void *context)
{
    struct call *call = context;
    call->st = pawl_run_save_async(call->run, call->toy->state, 3, NULL, NULL, NULL);
    return NULL;
}

static void *
prune_to_one(void *context)
{
    struct call *call = context;
    call->st = pawl_run_prune(call->run, &PAWL_PRUNE_OPTIONS(.keep = 1), &call->report, NULL);
    return NULL;
}

/* Goal: one save is in flight, a second waits for it and comes after it, or is refused, as the run says. */
static void
one_in_flight(void **state)
{
    (void)state;
    struct gate gate = GATE_INIT;
    struct toy toy;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = simdisk_new();
    pthread_t thread;
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 0));
    struct call call = { run, &toy, NULL, PAWL_IO };
    gate_close(&gate, "save/before-rename");
    struct pawl_save *save = save_async(run, &toy, 2, 2);
    gate_await(&gate);
    assert_int_equal(pthread_create(&thread, NULL, save_third, &call), 0);
    gate_open(&gate);
    (void)pthread_join(thread, NULL);
    assert_int_equal(call.st, PAWL_OK);
    assert_durable(save);
    assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
    assert_int_equal(gate.n_saved, 2);
    assert_true(gate.steps[0] == 2 && gate.steps[1] == 3);
    pawl_save_release(save);
    close_run(run);

    run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .in_flight = PAWL_IN_FLIGHT_REFUSE));
    gate_close(&gate, "save/before-rename");
    save = save_async(run, &toy, 4, 4);
    gate_await(&gate);
    assert_int_equal(pawl_run_save_async(run, toy.state, 5, NULL, NULL, &err), PAWL_BUSY);
    assert_string_equal(err.message, "the save of step 4 is in flight, and the run refuses to wait");
    assert_string_equal(err.code, "in-flight");
    assert_int_equal(pawl_run_save(run, toy.state, 5, NULL, &err), PAWL_BUSY);
    gate_open(&gate);
    assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
    assert_int_equal(pawl_run_save(run, toy.state, 5, NULL, NULL), PAWL_OK);
    pawl_save_release(save);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/*
 * Goal: retention while a save is in flight waits for it, and never counts what is not finished: with keep = 1 the old step is there until
 * the new one is.
 */
static void
retention_waits(void **state)
{
    (void)state;
    struct gate gate = GATE_INIT;
    struct toy toy;
    pthread_t thread;
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 0));
    struct call call = { run, &toy, NULL, PAWL_IO };
    gate_close(&gate, "save/before-rename");
    struct pawl_save *save = save_async(run, &toy, 3, 3);
    gate_await(&gate);
    assert_int_equal(pawl_ckpt_prune_os(simdisk_os(disk), PAWL_STR(ROOT), &PAWL_PRUNE_OPTIONS(.keep = 1), NULL, NULL),
                     PAWL_BUSY);
    assert_int_equal(pthread_create(&thread, NULL, prune_to_one, &call), 0);
    assert_true(simdisk_has(disk, ROOT "/step-000001") && simdisk_has(disk, ROOT "/step-000002"));
    gate_open(&gate);
    (void)pthread_join(thread, NULL);
    assert_int_equal(call.st, PAWL_OK);
    size_t n = 0;
    (void)pawl_report_names(call.report, PAWL_NAMES_DELETED, &n);
    assert_int_equal(n, 2);
    pawl_report_free(call.report);
    assert_durable(save);
    pawl_save_release(save);
    assert_tree(disk, "LATEST" FILES("step-000003"));
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: a restore right after the call reads what was just saved. */
static void
restore_waits(void **state)
{
    (void)state;
    struct toy toy;
    struct simdisk *disk = simdisk_new();
    int64_t step = 0;
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    pawl_save_release(save_async(run, &toy, 8, 5));
    toy_set(&toy, 6);
    assert_int_equal(pawl_run_restore(run, toy.state, &step, NULL, NULL), PAWL_OK);
    assert_int_equal(step, 8);
    assert_true(toy.weight[0] == 5.0F && toy.tokens == 5000);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: from a callback of a save, what would wait for it is refused and does not hang; looking is fine. */
static void
callbacks_can_not_wait_for_themselves(void **state)
{
    (void)state;
    struct gate gate = GATE_INIT;
    struct toy toy;
    struct simdisk *disk = simdisk_new();
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 0));
    gate.run = run;
    gate.toy = &toy;
    gate_close(&gate, "progress");
    struct pawl_save *save = save_async(run, &toy, 1, 1);
    gate_await(&gate);
    gate.waited_for = save;
    gate_open(&gate);
    assert_durable(save);
    assert_int_equal(pawl_run_wait(run, NULL), PAWL_OK);
    assert_int_equal(gate.own_wait, PAWL_ARGUMENT);
    assert_int_equal(gate.own_call, PAWL_ARGUMENT);
    assert_string_equal(gate.own_message, "called from a callback of the save of step 1, which it would wait for");
    pawl_save_release(save);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: runs of one process do not wait for each other. Method: both are stopped at once, and the second ends first. */
static void
two_runs(void **state)
{
    (void)state;
    struct gate gates[2] = { GATE_INIT, GATE_INIT };
    struct simdisk *disks[2];
    struct pawl_run *runs[2];
    struct pawl_save *saves[2];
    struct toy toy;
    toy_init(&toy, 1);
    for (size_t i = 0; i < 2; i++) {
        disks[i] = simdisk_new();
        runs[i] = open_run(simdisk_os(disks[i]), GATED_OPTIONS(&gates[i], .keep = 0));
        gate_close(&gates[i], "save/before-rename");
        saves[i] = save_async(runs[i], &toy, (int64_t)i + 1, (unsigned)i + 1); /* of one state, which a copy lets go */
    }
    for (size_t i = 2; i-- > 0;) {
        gate_await(&gates[i]);
        gate_open(&gates[i]);
        assert_durable(saves[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        pawl_save_release(saves[i]);
        close_run(runs[i]);
        assert_root_holds(simdisk_os(disks[i]));
        simdisk_free(disks[i]);
    }
    toy_release(&toy);
}

/* Goal: state, handle and run may go in any order; a handle that is let go cancels nothing, and one that is kept still answers. */
static void
freed_in_any_order(void **state)
{
    (void)state;
    static const char orders[][4] = { "shr", "srh", "hsr", "hrs", "rsh", "rhs" };
    for (size_t i = 0; i < 6; i++) {
        struct gate gate = GATE_INIT;
        struct toy toy;
        struct simdisk *disk = simdisk_new();
        toy_init(&toy, 1);
        struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 0));
        gate_close(&gate, "save/after-file");
        struct pawl_save *save = save_async(run, &toy, 1, 1);
        gate_await(&gate);
        for (const char *what = orders[i]; *what != '\0'; what++) {
            if (*what == 's')
                toy_release(&toy);
            else if (*what == 'h')
                pawl_save_release(save);
            else {
                gate_open(&gate); /* a close waits */
                close_run(run);
                if (strchr(orders[i], 'h') > what)
                    assert_durable(save);
            }
        }
        assert_tree(disk, "LATEST" FILES("step-000001"));
        assert_int_equal(simdisk_open_handles(disk), 0);
        simdisk_free(disk);
    }
}

/* ---- without a thread ---- */

static bool has_no_threads;
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *context);

int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *context)
{
    return has_no_threads ? EAGAIN : __real_pthread_create(thread, attributes, fn, context);
}

/* Goal: where no thread can be had the save is made all the same, and said. */
static void
saved_at_once_without_a_thread(void **state)
{
    (void)state;
    struct gate gate = GATE_INIT;
    struct toy toy;
    struct simdisk *disk = simdisk_new();
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), GATED_OPTIONS(&gate, .keep = 0));
    gate.run = run;
    gate.toy = &toy;
    has_no_threads = true;
    struct pawl_save *save = save_async(run, &toy, 1, 1);
    has_no_threads = false;
    assert_int_equal(stage_of(save), PAWL_STAGE_DURABLE);
    assert_int_equal(heard_of(&gate.heard, "no-thread"), 1);
    assert_int_equal(gate.own_call, PAWL_ARGUMENT);
    gate.run = NULL;
    pawl_save_release(save);
    save = save_async(run, &toy, 2, 2);
    assert_durable(save);
    pawl_save_release(save);
    close_run(run);
    assert_root_holds(simdisk_os(disk));
    toy_release(&toy);
    simdisk_free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_the_call_are_saved),
        cmocka_unit_test(borrowed_until_released),
        cmocka_unit_test(metrics_are_saved),
        cmocka_unit_test(stages_in_their_order),
        cmocka_unit_test(canceled_at_every_stage),
        cmocka_unit_test(errors_are_never_lost),
        cmocka_unit_test(source_fails),
        cmocka_unit_test(refused_at_once),
        cmocka_unit_test(one_in_flight),
        cmocka_unit_test(old_steps_go_after),
        cmocka_unit_test(retention_waits),
        cmocka_unit_test(restore_waits),
        cmocka_unit_test(callbacks_can_not_wait_for_themselves),
        cmocka_unit_test(two_runs),
        cmocka_unit_test(freed_in_any_order),
        cmocka_unit_test(saved_at_once_without_a_thread),
    };
    return end_tests(cmocka_run_group_tests(tests, NULL, NULL));
}
