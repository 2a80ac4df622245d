/*
 * checkpoint/restore.c, restore_values.c and the restores of ckpt.c. A run is saved to a simulated disk and put back; then everything that can
 * differ between the two descriptions differs, and every call fails.
 */
#include "unit/read_support.h"

#include <errno.h>
#include <math.h>
#include "checkpoint/restore.h"
#include "checkpoint/run.h"
#include "sim/faultos.h"
#include "unit/hook_os.h"
#include "unit/save_support.h"
#include "unit/token_support.h"

/* What FINE shows. */
static struct pawl_error fine;
#define FINE(call)                                           \
    do {                                                     \
        fine = (struct pawl_error)PAWL_ERROR_INIT;           \
        if ((call) != PAWL_OK)                               \
            fail_msg("line %d: %s", __LINE__, fine.message); \
    } while (0)

static struct pawl_state *
new_state(void)
{
    struct pawl_state *state = NULL;
    FINE(pawl_state_new(&state, &fine));
    return state;
}

/* Save a state as step 5 into an empty simulated disk. */
static struct simdisk *
saved(struct pawl_state *state)
{
    struct simdisk *disk = simdisk_new();
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    FINE(pawl_run_save(run, state, 5, NULL, &fine));
    close_run(run);
    return disk;
}

/* Restore it through a run into another state. The report is the caller's. */
static enum pawl_status
restored(struct simdisk *disk, struct pawl_state *state, struct pawl_report **ret_report, struct pawl_error *err)
{
    int64_t step = -1;
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    enum pawl_status st = pawl_run_restore(run, state, &step, ret_report, err);
    assert_int_equal(step, st == PAWL_OK ? 5 : -1); /* set on success only */
    close_run(run);
    assert_int_equal(simdisk_open_handles(disk), 0);
    return st;
}

/* The same by way of an open checkpoint. */
static enum pawl_status
restored_with(struct simdisk *disk, struct pawl_state *state, struct pawl_restore_options options,
              struct pawl_report **ret_report, struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = NULL;
    FINE(pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, &ckpt, NULL, &fine));
    enum pawl_status st = pawl_ckpt_restore(ckpt, state, &options, ret_report, err);
    pawl_ckpt_close(ckpt);
    assert_int_equal(simdisk_open_handles(disk), 0);
    return st;
}

static const char *
print_names(char *text, size_t size, const struct pawl_report *report, enum pawl_names which)
{
    size_t n = 0;
    size_t used = 0;
    const struct pawl_str *names = pawl_report_names(report, which, &n);
    text[0] = '\0';
    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%.*s", i == 0 ? "" : " | ", PAWL_ARG(names[i]));
    return text;
}

/* The restore must be a mismatch with this message and these lists, strictly by a run; memory is left alone. */
static void
assert_mismatch_at(struct simdisk *disk, struct pawl_state *state, const char *message, const char *missing,
                   const char *unexpected, const char *mismatched, int line)
{
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    char text[2048];
    size_t n = 0;
    enum pawl_status st = restored(disk, state, &report, &err);
    if (st != PAWL_MISMATCH || strcmp(err.message, message) != 0)
        fail_msg("line %d: %s: '%s', expected '%s'", line, pawl_status_name(st), err.message, message);
    assert_string_equal(err.code, "mismatch");
    assert_string_equal(print_names(text, sizeof text, report, PAWL_NAMES_MISSING), missing);
    assert_string_equal(print_names(text, sizeof text, report, PAWL_NAMES_UNEXPECTED), unexpected);
    assert_string_equal(print_names(text, sizeof text, report, PAWL_NAMES_MISMATCHED), mismatched);
    (void)pawl_report_verdicts(report, &n);
    assert_int_equal(n, 0); /* nothing was passed over for it */
    pawl_report_free(report);
}
#define assert_mismatch(disk, state, message, missing, unexpected, mismatched) \
    assert_mismatch_at(disk, state, message, missing, unexpected, mismatched, __LINE__)

/* ---- round trips ---- */

static void
everything_comes_back(void **state)
{
    (void)state;
    struct toy toy;
    struct toy other;
    toy_init(&toy, 7);
    toy.rng.has_spare = true;
    toy.rng.spare = -0.25;
    toy.best = (double)INFINITY;
    struct simdisk *disk = saved(toy.state);
    for (int way = 0; way < 2; way++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        toy_init(&other, 1);
        if ((way == 0 ? restored(disk, other.state, NULL, &err)
                      : restored_with(disk, other.state, PAWL_RESTORE_OPTIONS(0), NULL, &err)) != PAWL_OK)
            fail_msg("%s", err.message);
        assert_memory_equal(other.weight, toy.weight, sizeof toy.weight);
        assert_memory_equal(other.bias, toy.bias, sizeof toy.bias);
        assert_memory_equal(other.moment, toy.moment, sizeof toy.moment);
        assert_true(other.lr == toy.lr && isinf(other.best));
        assert_int_equal(other.tokens, toy.tokens);
        assert_int_equal(other.optimizer_step, toy.optimizer_step);
        assert_true(other.rng.state == toy.rng.state && other.rng.inc == toy.rng.inc && other.rng.has_spare &&
                    other.rng.spare == -0.25);
        toy_release(&other);
    }
    toy_release(&toy);
    simdisk_free(disk);
}

/* Layouts differ between the two sides: what counts is the values. Large tensors take the direct way, small ones share a block. */
static void
layouts_are_the_callers(void **state)
{
    (void)state;
    enum { ROWS = 300, COLUMNS = 257 };
    uint32_t *packed = malloc(ROWS * COLUMNS * sizeof *packed);
    uint32_t *strided = calloc((size_t)2 * ROWS * COLUMNS, sizeof *strided);
    uint32_t *turned = calloc((size_t)ROWS * COLUMNS, sizeof *turned);
    unsigned char big_endian[8 * 4];
    uint32_t little[8];
    double scalar = 0.1;
    double scalar_back = 0;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        packed[i] = i * UINT32_C(2654435761);
    for (uint32_t i = 0; i < 8; i++)
        little[i] = UINT32_C(0x01020304) + i;

    struct pawl_state *from = new_state();
    FINE(pawl_state_tensor(from, &PAWL_TENSOR(PAWL_MODEL, "a", PAWL_U32, packed, ROWS, COLUMNS), &fine));
    FINE(pawl_state_tensor(from, &PAWL_TENSOR(PAWL_MODEL, "b", PAWL_U32, packed, COLUMNS, ROWS), &fine));
    FINE(pawl_state_tensor(from, &PAWL_TENSOR(PAWL_MODEL, "c", PAWL_U32, little, 8), &fine));
    FINE(pawl_state_tensor(from, &PAWL_TENSOR(PAWL_MODEL, "none", PAWL_F32, packed, 0, 7), &fine));
    FINE(pawl_state_tensor(from, &PAWL_SCALAR(PAWL_MODEL, "s", PAWL_F64, &scalar), &fine));
    struct simdisk *disk = saved(from);

    struct pawl_state *to = new_state();
    const uint64_t shape[2] = { ROWS, COLUMNS };
    const int64_t gaps[2] = { 2 * COLUMNS, 2 };
    FINE(pawl_state_tensor(to,
                           &(struct pawl_tensor){ .size = sizeof(struct pawl_tensor),
                                                  .slot = PAWL_MODEL,
                                                  .dtype = PAWL_U32,
                                                  .name = PAWL_STR("a"),
                                                  .rank = 2,
                                                  .shape = shape,
                                                  .strides = gaps,
                                                  .data = strided },
                           &fine));
    FINE(pawl_state_tensor(to, &PAWL_TENSOR(PAWL_MODEL, "b", PAWL_U32, turned, COLUMNS, ROWS), &fine));
    const uint64_t eight = 8;
    FINE(pawl_state_tensor(to,
                           &(struct pawl_tensor){ .size = sizeof(struct pawl_tensor),
                                                  .slot = PAWL_MODEL,
                                                  .dtype = PAWL_U32,
                                                  .name = PAWL_STR("c"),
                                                  .rank = 1,
                                                  .shape = &eight,
                                                  .data = big_endian,
                                                  .is_big_endian = 1 },
                           &fine));
    FINE(pawl_state_tensor(to, &PAWL_TENSOR(PAWL_MODEL, "none", PAWL_F32, strided, 0, 7), &fine));
    FINE(pawl_state_tensor(to, &PAWL_SCALAR(PAWL_MODEL, "s", PAWL_F64, &scalar_back), &fine));
    FINE(restored(disk, to, NULL, &fine));
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        assert_int_equal(strided[2 * i], packed[i]);
        assert_int_equal(strided[2 * i + 1], 0);
    }
    assert_memory_equal(turned, packed, ROWS * COLUMNS * sizeof *packed);
    for (size_t i = 0; i < 8; i++)
        assert_memory_equal(big_endian + 4 * i, ((unsigned char[]){ 1, 2, 3, (unsigned char)(4 + i) }), 4);
    assert_true(scalar_back == 0.1);
    pawl_state_free(from);
    pawl_state_free(to);
    free(packed);
    free(strided);
    free(turned);
    simdisk_free(disk);
}

/* Goal: the bytes of a checkpoint are read once, and so hashed once. Method: count what the table reads; beside the files there is LATEST, and
 * what the reader of a header looks at before it knows its length. */
static void
each_byte_is_read_once(void **state)
{
    (void)state;
    enum { N = 600000 };
    float *values = calloc(N, sizeof *values);
    struct pawl_state *model = new_state();
    FINE(pawl_state_tensor(model, &PAWL_TENSOR(PAWL_MODEL, "big", PAWL_F32, values, N), &fine));
    FINE(pawl_state_tensor(model, &PAWL_TENSOR(PAWL_MODEL, "small", PAWL_F32, values, 7), &fine));
    FINE(pawl_state_file(model, PAWL_STR("note"), values, 3000000 / 2, &fine));
    struct simdisk *disk = saved(model);
    static const char *const FILES[] = { "model.safetensors", "optimizer.safetensors", "trainer_state.json", "note",
                                         "MANIFEST.json" };
    uint64_t total = 0;
    for (size_t i = 0; i < 5; i++) {
        char path[128];
        size_t bytes = 0;
        (void)snprintf(path, sizeof path, ROOT "/step-000005/%s", FILES[i]);
        assert_non_null(simdisk_get(disk, path, &bytes));
        total += bytes;
    }
    struct hook_os hook;
    const struct pawl_os *os = hook_begin(&hook, simdisk_os(disk));
    struct pawl_dir root = PAWL_DIR_INIT;
    assert_int_equal(pawl_dir_open_path(&root, os, ROOT, NULL), PAWL_OK);
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    struct pawl_find_request request = { .options = { .defer_hash = true } };
    assert_int_equal(pawl_find_newest(&root, &request, &step, report, NULL), PAWL_OK);
    assert_true(hook.bytes_read < total - N * sizeof *values + 4096); /* the tensors have not been read yet */
    const struct pawl_restore_request plain = { .lenient = false };
    struct pawl_restore restore = { .step = NULL };
    assert_int_equal(pawl_restore_read(&restore, &step, model, &plain, report, NULL), PAWL_OK);
    assert_int_equal(pawl_restore_set(&restore, &step, NULL), PAWL_OK);
    pawl_restore_release(&restore);
    assert_in_range(hook.bytes_read, total, total + strlen("step-000005\n") + 2 * 1024);
    assert_int_equal(step.files[0].state, PAWL_STEP_FILE_RIGHT);
    pawl_step_release(&step);

    /* an open checkpoint has been hashed, and its tensors are hashed again as they are handed over; nothing else is read */
    hook.bytes_read = 0;
    struct pawl_ckpt *ckpt = NULL;
    assert_int_equal(pawl_ckpt_open_newest_os(os, PAWL_STR(ROOT), NULL, &ckpt, NULL, NULL), PAWL_OK);
    assert_in_range(hook.bytes_read, total, total + strlen("step-000005\n") + 2 * 1024);
    hook.bytes_read = 0;
    assert_int_equal(pawl_ckpt_restore(ckpt, model, NULL, NULL, NULL), PAWL_OK);
    assert_int_equal(hook.bytes_read, (N + 7) * sizeof *values);
    pawl_ckpt_close(ckpt);
    pawl_report_free(report);
    pawl_dir_release(&root);
    pawl_state_free(model);
    free(values);
    simdisk_free(disk);
}

/* Names may be anything that is UTF-8, and many. */
static void
many_and_odd_names(void **state)
{
    (void)state;
    enum { N = 20000 };
    int64_t *values = calloc(2 * N, sizeof *values);
    const size_t long_bytes = 1 << 20;
    char *name = malloc(long_bytes);
    memset(name, 'x', long_bytes);
    for (int side = 0; side < 2; side++) {
        static struct simdisk *disk;
        struct pawl_state *s = new_state();
        for (size_t i = 0; i < N; i++) {
            char text[32];
            struct pawl_str names[4] = { { name, long_bytes }, PAWL_STR("a\0b\n"), PAWL_STR(""), PAWL_STR("\xc3\xa9") };
            (void)snprintf(text, sizeof text, "layer.%zu", side == 0 ? i : N - 1 - i);
            const uint64_t one = 1;
            const size_t at = side == 0 ? i : N - 1 - i;
            struct pawl_tensor tensor = { .size = sizeof tensor,
                                          .slot = PAWL_MODEL,
                                          .dtype = PAWL_I64,
                                          .rank = 1,
                                          .shape = &one,
                                          .name = at < 4 ? names[at] : pawl_str_z(text),
                                          .data = &values[(size_t)side * N + at] };
            if (side == 0)
                values[at] = (int64_t)(at * at);
            FINE(pawl_state_tensor(s, &tensor, &fine));
        }
        if (side == 0) {
            disk = saved(s);
        } else {
            FINE(restored(disk, s, NULL, &fine));
            assert_memory_equal(values, values + N, N * sizeof *values);
            simdisk_free(disk);
        }
        pawl_state_free(s);
    }
    free(name);
    free(values);
}

/* ---- tied tensors ---- */

static void
aliases_are_tied_copied_or_refused(void **state)
{
    (void)state;
    float shared[2] = { 1, 2 };
    float apart[2] = { 3, 4 };
    struct pawl_state *tied = new_state();
    FINE(pawl_state_tensor(tied, &PAWL_TENSOR(PAWL_MODEL, "head", PAWL_F32, shared, 2), &fine));
    FINE(pawl_state_tensor(tied, &PAWL_TENSOR(PAWL_MODEL, "embed", PAWL_F32, shared, 2), &fine));
    struct pawl_state *untied = new_state();
    FINE(pawl_state_tensor(untied, &PAWL_TENSOR(PAWL_MODEL, "head", PAWL_F32, shared, 2), &fine));
    FINE(pawl_state_tensor(untied, &PAWL_TENSOR(PAWL_MODEL, "embed", PAWL_F32, apart, 2), &fine));
    struct simdisk *disk = saved(tied);

    /* tied here and there */
    shared[0] = 0;
    FINE(restored(disk, tied, NULL, &fine));
    assert_true(shared[0] == 1);
    /* the alias is asked for in memory of its own: it gets the bytes too */
    shared[0] = 0;
    FINE(restored(disk, untied, NULL, &fine));
    assert_true(shared[0] == 1 && shared[1] == 2 && apart[0] == 1 && apart[1] == 2);
    /* an alias is a name like others: it can be missing, unexpected and of another form */
    struct pawl_state *without = new_state();
    FINE(pawl_state_tensor(without, &PAWL_TENSOR(PAWL_MODEL, "embed", PAWL_F32, apart, 2), &fine));
    FINE(pawl_state_tensor(without, &PAWL_TENSOR(PAWL_MODEL, "more", PAWL_F32, apart, 1), &fine));
    assert_mismatch(disk, without,
                    "step-000005 does not fit the state: 1 missing in the checkpoint (more); 1 not asked for (head)",
                    "more", "head", "");
    pawl_state_free(without);
    struct pawl_state *other_form = new_state();
    FINE(pawl_state_tensor(other_form, &PAWL_TENSOR(PAWL_MODEL, "embed", PAWL_F32, shared, 2), &fine));
    FINE(pawl_state_tensor(other_form, &PAWL_TENSOR(PAWL_MODEL, "head", PAWL_I32, apart, 1, 2), &fine));
    assert_mismatch(disk, other_form,
                    "step-000005 does not fit the state: 1 that differ (head: F32 [2] on disk, I32 [1, 2] asked)", "",
                    "", "head: F32 [2] on disk, I32 [1, 2] asked");
    pawl_state_free(other_form);
    simdisk_free(disk);

    /* tied here, apart there: one memory can't hold both */
    apart[0] = 7;
    disk = saved(untied);
    assert_mismatch(
        disk, tied,
        "step-000005 does not fit the state: 1 that differ (head: bytes of its own on disk, the storage of embed "
        "asked)",
        "", "", "head: bytes of its own on disk, the storage of embed asked");
    simdisk_free(disk);
    pawl_state_free(tied);
    pawl_state_free(untied);
}

/* ---- what does not fit ---- */

static void
all_names_are_listed_and_the_first_shown(void **state)
{
    (void)state;
    float w[6] = { 1, 2, 3, 4, 5, 6 };
    struct pawl_state *from = new_state();
    struct pawl_state *to = new_state();
    for (char c = 'a'; c < 'g'; c++) {
        char name[8];
        (void)snprintf(name, sizeof name, "old.%c", c);
        FINE(pawl_state_tensor(from, &PAWL_TENSOR(PAWL_MODEL, name, PAWL_F32, &w[c - 'a'], 1), &fine));
        (void)snprintf(name, sizeof name, "new.%c", c);
        FINE(pawl_state_tensor(to, &PAWL_TENSOR(PAWL_MODEL, name, PAWL_F32, &w[c - 'a'], 1), &fine));
    }
    struct simdisk *disk = saved(from);
    memset(w, 0, sizeof w);
    assert_mismatch(
        disk, to,
        "step-000005 does not fit the state: 6 missing in the checkpoint (new.a, new.b, new.c, new.d, ...); 6 "
        "not asked for (old.a, old.b, old.c, old.d, ...)",
        "new.a | new.b | new.c | new.d | new.e | new.f", "old.a | old.b | old.c | old.d | old.e | old.f", "");
    assert_true(w[0] == 0); /* nothing was touched */
    pawl_state_free(from);
    pawl_state_free(to);
    simdisk_free(disk);
}

static void
dtypes_and_shapes_must_be_equal(void **state)
{
    (void)state;
    static const struct {
        enum pawl_dtype dtype;
        size_t rank;
        uint64_t shape[3];
        const char *text;
    } CASES[] = {
        { PAWL_F32, 2, { 3, 2 }, "F32 [3, 2]" },
        { PAWL_F32, 1, { 6 }, "F32 [6]" },
        { PAWL_F32, 3, { 2, 3, 1 }, "F32 [2, 3, 1]" },
        { PAWL_I32, 2, { 2, 3 }, "I32 [2, 3]" },
        { PAWL_F32, 0, { 0 }, "F32 []" },
    };
    float w[6] = { 1, 2, 3, 4, 5, 6 };
    struct pawl_state *from = new_state();
    FINE(pawl_state_tensor(from, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 2, 3), &fine));
    struct simdisk *disk = saved(from);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        float other[6] = { 0 };
        char message[256];
        char name[128];
        struct pawl_state *to = new_state();
        FINE(pawl_state_tensor(to,
                               &(struct pawl_tensor){ .size = sizeof(struct pawl_tensor),
                                                      .slot = PAWL_MODEL,
                                                      .dtype = CASES[i].dtype,
                                                      .name = PAWL_STR("w"),
                                                      .rank = CASES[i].rank,
                                                      .shape = CASES[i].shape,
                                                      .data = other },
                               &fine));
        (void)snprintf(name, sizeof name, "w: F32 [2, 3] on disk, %s asked", CASES[i].text);
        (void)snprintf(message, sizeof message, "step-000005 does not fit the state: 1 that differ (%s)", name);
        assert_mismatch(disk, to, message, "", "", name);
        assert_true(other[0] == 0);
        pawl_state_free(to);
    }
    pawl_state_free(from);
    simdisk_free(disk);
}

/* Goal: a slot that the checkpoint lacks is never a silent fresh start, lenient or not. */
static void
slots_that_are_not_there_are_errors(void **state)
{
    (void)state;
    float w[1] = { 1 };
    double number = 3;
    int64_t integer = 4;
    char bytes[4] = "abc";
    struct pawl_pcg32 rng = { 1, 3, 0, false };
    struct pawl_state *bare = new_state();
    FINE(pawl_state_tensor(bare, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 1), &fine));
    struct simdisk *disk = saved(bare);
    static const char *const MESSAGES[] = {
        "step-000005 does not fit the state: the checkpoint has no optimizer, 'adamw' is asked; 1 missing in the "
        "checkpoint "
        "(optimizer: adamw)",
        "step-000005 does not fit the state: the checkpoint has no generator of the run's own (state 0, increment 1); "
        "1 missing "
        "in the checkpoint (trainer_state.json: rng.pcg_state)",
        "step-000005 does not fit the state: the checkpoint has no generator 'drop'; 1 missing in the checkpoint "
        "(trainer_state.json: rng.drop_state)",
        "step-000005 does not fit the state: the checkpoint has no number 'best'; 1 missing in the checkpoint "
        "(pawl.state.json: best)",
        "step-000005 does not fit the state: the checkpoint has no state 'np'; 1 missing in the checkpoint "
        "(pawl.state.json: np)",
        "step-000005 does not fit the state: the checkpoint has no loss_scale; 1 missing in the checkpoint "
        "(trainer_state.json: loss_scale)",
        "step-000005 does not fit the state: 1 missing in the checkpoint (w2)",
    };
    for (size_t i = 0; i < sizeof MESSAGES / sizeof MESSAGES[0]; i++) {
        struct pawl_state *s = new_state();
        struct pawl_report *report = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        size_t n = 0;
        FINE(pawl_state_tensor(s, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 1), &fine));
        switch (i) {
        case 0:
            FINE(pawl_state_optimizer(s, "adamw", &fine));
            break;
        case 1:
            FINE(pawl_state_rng(s, NULL, &rng, &fine));
            break;
        case 2:
            FINE(pawl_state_rng(s, "drop", &rng, &fine));
            break;
        case 3:
            FINE(pawl_state_number(s, PAWL_EXTRA, "best", PAWL_F64, &number, &fine));
            break;
        case 4:
            FINE(pawl_state_opaque(s, "np", "t", bytes, 4, &fine));
            break;
        case 5:
            FINE(pawl_state_number(s, PAWL_TRAINER, "loss_scale", PAWL_F64, &number, &fine));
            break;
        default:
            FINE(pawl_state_tensor(s, &PAWL_TENSOR(PAWL_MODEL, "w2", PAWL_F32, w + 0, 1), NULL));
            break;
        }
        if (restored(disk, s, &report, &err) != PAWL_MISMATCH || strcmp(err.message, MESSAGES[i]) != 0)
            fail_msg("case %zu: %s", i, err.message);
        pawl_report_free(report);
        /* lenient: the last, a single tensor, is let pass and listed */
        enum pawl_status st = restored_with(disk, s, PAWL_RESTORE_OPTIONS(.lenient = 1), &report, &err);
        assert_int_equal(st, i == 6 ? PAWL_OK : PAWL_MISMATCH);
        (void)pawl_report_names(report, PAWL_NAMES_MISSING, &n);
        assert_int_equal(n, 1);
        pawl_report_free(report);
        pawl_state_free(s);
    }
    assert_true(number == 3 && integer == 4 && rng.state == 1 && strcmp(bytes, "abc") == 0);
    pawl_state_free(bare);
    simdisk_free(disk);
}

static void
what_nobody_asks_for_is_unexpected(void **state)
{
    (void)state;
    float w[1] = { 1 };
    struct toy toy;
    toy_init(&toy, 3);
    double scale = 2;
    char bytes[4] = "abc";
    struct pawl_pcg32 rng = { 1, 3, 0.5, true };
    FINE(pawl_state_number(toy.state, PAWL_TRAINER, "loss_scale", PAWL_F64, &scale, &fine));
    FINE(pawl_state_opaque(toy.state, "np", "t", bytes, 4, &fine));
    FINE(pawl_state_rng(toy.state, "drop", &rng, &fine));
    struct simdisk *disk = saved(toy.state);
    struct pawl_state *bare = new_state();
    FINE(pawl_state_tensor(bare, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 1), &fine));
    assert_mismatch(
        disk, bare,
        "step-000005 does not fit the state: 1 missing in the checkpoint (w); 13 not asked for (fc.bias, "
        "fc.weight, fc.weight.momentum_buffer, optimizer state: lr, ...)",
        "w",
        "fc.bias | fc.weight | fc.weight.momentum_buffer | optimizer state: lr | optimizer state: step | optimizer: "
        "sgd | pawl.state.json: best | pawl.state.json: drop_spare | pawl.state.json: np | trainer_state.json: "
        "loss_scale | trainer_state.json: rng.drop_inc | trainer_state.json: rng.drop_state | trainer_state.json: "
        "rng.pcg_state",
        "");
    /* lenient takes nothing here, says so, and leaves the caller's alone */
    struct pawl_report *report = NULL;
    char text[1024];
    FINE(restored_with(disk, bare, PAWL_RESTORE_OPTIONS(.lenient = 1), &report, &fine));
    assert_string_equal(print_names(text, sizeof text, report, PAWL_NAMES_MISSING), "w");
    assert_true(w[0] == 1);
    pawl_report_free(report);
    pawl_state_free(bare);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Keys of the optimizer's state that the caller writes as JSON are known, though nothing restores them. */
static void
keys_of_the_callers_json_are_known(void **state)
{
    (void)state;
    struct pawl_state *s = new_state();
    float w[1] = { 1 };
    double betas[2] = { 0.9, 0.95 };
    int64_t count = 12;
    FINE(pawl_state_tensor(s, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 1), &fine));
    FINE(pawl_state_optimizer(s, "lion", &fine));
    FINE(pawl_state_optimizer_json(s, PAWL_STR("{\"schedule\": [1, 2], \"params\": [\"w\"]}"), &fine));
    FINE(pawl_state_numbers(s, PAWL_OPTIMIZER, "betas", PAWL_F64, betas, 2, &fine));
    FINE(pawl_state_number(s, PAWL_OPTIMIZER, "step", PAWL_I64, &count, &fine));
    struct simdisk *disk = saved(s);
    betas[0] = betas[1] = 0;
    count = 0;
    FINE(restored(disk, s, NULL, &fine));
    assert_true(betas[0] == 0.9 && betas[1] == 0.95 && count == 12);
    FINE(pawl_state_optimizer_json(s, PAWL_STR("{}"), &fine));
    assert_mismatch(disk, s, "step-000005 does not fit the state: 1 not asked for (optimizer state: schedule)", "",
                    "optimizer state: schedule", "");
    pawl_state_free(s);

    s = new_state();
    double three[3] = { 0 };
    double single = 0;
    FINE(pawl_state_tensor(s, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 1), &fine));
    FINE(pawl_state_optimizer(s, "lion", &fine));
    FINE(pawl_state_optimizer_json(s, PAWL_STR("{\"schedule\": 0}"), &fine));
    FINE(pawl_state_numbers(s, PAWL_OPTIMIZER, "betas", PAWL_F64, three, 3, &fine));
    FINE(pawl_state_number(s, PAWL_OPTIMIZER, "step", PAWL_F64, &single, &fine));
    FINE(pawl_state_number(s, PAWL_OPTIMIZER, "eps", PAWL_F64, &single, NULL));
    assert_mismatch(
        disk, s,
        "step-000005 does not fit the state: 1 missing in the checkpoint (optimizer state: eps); 1 that differ "
        "(optimizer state: betas: a list of 2 on disk, a list of 3 numbers asked)",
        "optimizer state: eps", "", "optimizer state: betas: a list of 2 on disk, a list of 3 numbers asked");
    pawl_state_free(s);

    s = new_state();
    FINE(pawl_state_tensor(s, &PAWL_TENSOR(PAWL_MODEL, "w", PAWL_F32, w, 1), &fine));
    FINE(pawl_state_optimizer(s, "adamw", &fine));
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(restored(disk, s, NULL, &err), PAWL_MISMATCH);
    assert_non_null(strstr(err.message, "the checkpoint's optimizer is 'lion', 'adamw' is asked"));
    pawl_state_free(s);
    simdisk_free(disk);
}

/* An optimizer's file without `state` is complete, and its scalars can't be had. */
static void
scalars_that_were_never_written(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("optimizer-no-state");
    struct pawl_state *s = new_state();
    double lr = 0.5;
    struct pawl_error err = PAWL_ERROR_INIT;
    FINE(pawl_state_optimizer(s, "adamw", &fine));
    FINE(pawl_state_number(s, PAWL_OPTIMIZER, "lr", PAWL_F64, &lr, &fine));
    struct pawl_ckpt *ckpt = NULL;
    FINE(pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, &ckpt, NULL, &fine));
    assert_null(pawl_ckpt_optimizer_state(ckpt).data);
    assert_int_equal(pawl_ckpt_restore(ckpt, s, &PAWL_RESTORE_OPTIONS(.lenient = 1), NULL, &err), PAWL_MISMATCH);
    assert_non_null(strstr(err.message,
                           "step-000020 does not fit the state: the optimizer's file was written without scalars "
                           "(its metadata have no `state`)"));
    assert_true(lr == 0.5);
    pawl_ckpt_close(ckpt);
    pawl_state_free(s);
    simdisk_free(disk);
}

static void
numbers_are_exact_or_a_mismatch(void **state)
{
    (void)state;
    /* written as a double or an integer, asked as another */
    static const struct {
        enum pawl_dtype from, to;
        double real;
        int64_t integer;
        const char *differs; /* NULL: it fits */
    } CASES[] = {
        { PAWL_F64, PAWL_I64, 3.0, 0, NULL },
        { PAWL_F64, PAWL_I64, -9223372036854775808.0, 0, NULL },
        { PAWL_F64, PAWL_I64, 9223372036854775808.0, 0, "9.223372036854776e+18 on disk, I64 asked" },
        { PAWL_F64, PAWL_I64, 3.5, 0, "3.5 on disk, I64 asked" },
        { PAWL_F64, PAWL_I64, -0.0, 0, "-0.0 on disk, I64 asked" },
        { PAWL_F64, PAWL_I64, (double)NAN, 0, "NaN on disk, I64 asked" },
        { PAWL_F64, PAWL_U64, -1.0, 0, "-1.0 on disk, U64 asked" },
        { PAWL_F64, PAWL_U64, 18446744073709549568.0, 0, NULL },
        { PAWL_I64, PAWL_F64, 0, INT64_C(9007199254740992), NULL },
        { PAWL_I64, PAWL_F64, 0, INT64_C(9007199254740993), "9007199254740993 on disk, F64 asked" },
        { PAWL_I64, PAWL_F64, 0, INT64_MAX, "9223372036854775807 on disk, F64 asked" },
        { PAWL_I64, PAWL_F64, 0, INT64_MIN, NULL },
        { PAWL_I64, PAWL_U64, 0, -1, "-1 on disk, U64 asked" },
        { PAWL_I64, PAWL_U64, 0, INT64_MAX, NULL },
        { PAWL_F64, PAWL_F64, -0.0, 0, NULL },
        { PAWL_F64, PAWL_F64, -(double)INFINITY, 0, NULL },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        double real = CASES[i].real;
        int64_t integer = CASES[i].integer;
        struct pawl_state *from = new_state();
        struct pawl_state *to = new_state();
        union {
            double real;
            int64_t integer;
            uint64_t word;
        } place = { .word = 0x5555 };
        void *at = CASES[i].from == PAWL_F64 ? (void *)&real : (void *)&integer;
        FINE(pawl_state_number(from, PAWL_EXTRA, "n", CASES[i].from, at, &fine));
        FINE(pawl_state_number(to, PAWL_EXTRA, "n", CASES[i].to, &place, &fine));
        struct simdisk *disk = saved(from);
        if (CASES[i].differs != NULL) {
            char name[128];
            char message[256];
            (void)snprintf(name, sizeof name, "pawl.state.json: n: %s", CASES[i].differs);
            (void)snprintf(message, sizeof message, "step-000005 does not fit the state: 1 that differ (%s)", name);
            assert_mismatch(disk, to, message, "", "", name);
            assert_int_equal(place.word, 0x5555);
        } else {
            FINE(restored(disk, to, NULL, &fine));
            double value = CASES[i].from == PAWL_F64 ? real : (double)integer;
            if (CASES[i].to == PAWL_F64)
                assert_memory_equal(&place.real, &value, sizeof value);
            else if (CASES[i].to == PAWL_I64)
                assert_true(place.integer == (int64_t)value);
            else if (CASES[i].from == PAWL_I64)
                assert_true(place.word == (uint64_t)integer);
            else
                assert_true(place.word == (uint64_t)value);
        }
        pawl_state_free(from);
        pawl_state_free(to);
        simdisk_free(disk);
    }
}

static void
opaque_states_keep_tag_and_size(void **state)
{
    (void)state;
    char bytes[4] = "abc";
    char other[5] = "....";
    struct pawl_state *from = new_state();
    FINE(pawl_state_opaque(from, "np", "numpy", bytes, 4, &fine));
    struct simdisk *disk = saved(from);
    struct pawl_state *to = new_state();
    FINE(pawl_state_opaque(to, "np", "numpy", other, 4, &fine));
    FINE(restored(disk, to, NULL, &fine));
    assert_string_equal(other, "abc");
    pawl_state_free(to);
    to = new_state();
    FINE(pawl_state_opaque(to, "np", "torch", other, 4, &fine));
    assert_mismatch(
        disk, to,
        "step-000005 does not fit the state: 1 that differ (pawl.state.json: np: numpy of 4 bytes on disk, torch of "
        "4 bytes asked)",
        "", "", "pawl.state.json: np: numpy of 4 bytes on disk, torch of 4 bytes asked");
    pawl_state_free(to);
    to = new_state();
    FINE(pawl_state_opaque(to, "np", "numpy", other, 5, &fine));
    assert_mismatch(
        disk, to,
        "step-000005 does not fit the state: 1 that differ (pawl.state.json: np: numpy of 4 bytes on disk, numpy of "
        "5 bytes asked)",
        "", "", "pawl.state.json: np: numpy of 4 bytes on disk, numpy of 5 bytes asked");
    pawl_state_free(to);
    pawl_state_free(from);
    simdisk_free(disk);
}

/* ---- damage ---- */

/* Three saves, the newest damaged at the end of its weights. */
static struct simdisk *
damaged_disk(void)
{
    struct simdisk *disk = disk_with((struct saved[]){ { 10, 1 }, { 20, 2 }, { 30, 3 } }, 3);
    size_t bytes = 0;
    assert_non_null(simdisk_get(disk, ROOT "/step-000030/model.safetensors", &bytes));
    simdisk_flip(disk, ROOT "/step-000030/model.safetensors", bytes - 1, 0x40);
    return disk;
}

/* Goal: a step that turns out damaged while its bytes are read is passed over, and remembered. */
static void
damage_that_is_met_while_reading_falls_back(void **state)
{
    (void)state;
    for (int verify_first = 0; verify_first < 2; verify_first++) {
        struct simdisk *disk = damaged_disk();
        struct toy toy;
        struct pawl_report *report = NULL;
        int64_t step = -1;
        size_t n = 0;
        toy_init(&toy, 9);
        size_t bytes = 0;
        assert_non_null(simdisk_get(disk, ROOT "/step-000030/optimizer.safetensors", &bytes));
        simdisk_flip(disk, ROOT "/step-000030/optimizer.safetensors", bytes - 1, 1);
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.verify_first = verify_first != 0));
        FINE(pawl_run_restore(run, toy.state, &step, &report, &fine));
        assert_int_equal(step, 20);
        struct toy expected;
        toy_init(&expected, 2);
        assert_memory_equal(toy.weight, expected.weight, sizeof toy.weight);
        assert_memory_equal(toy.moment, expected.moment, sizeof toy.moment);
        assert_true(toy.lr == expected.lr && toy.tokens == expected.tokens && toy.rng.state == expected.rng.state);
        toy_release(&expected);
        const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
        char text[256];
        assert_int_equal(n, 1);
        assert_string_equal(verdicts[0].name, "step-000030");
        /* all reasons, also of the file that the reading did not come to */
        assert_string_equal(print_verdict(text, sizeof text, &verdicts[0]),
                            "hash model.safetensors, hash optimizer.safetensors");
        assert_int_equal(run->n_corrupt, 1);
        assert_int_equal(run->corrupt[0], 30);
        pawl_report_free(report);
        close_run(run);
        toy_release(&toy);
        assert_int_equal(simdisk_open_handles(disk), 0);
        simdisk_free(disk);
    }
}

/* A flipped bit in a header can look like another name, shape, dtype or number: that is damage and no mismatch. */
static void
a_damaged_header_is_no_mismatch(void **state)
{
    (void)state;
    static const char *const EDITS[][3] = {
        { "model.safetensors", "fc.weight", "fc.weighu" },
        { "model.safetensors", "[2,3]", "[3,2]" },
        { "model.safetensors", "F32", "I32" },
        { "optimizer.safetensors", "momentum_buffer", "momentum_bufffr" },
        { "optimizer.safetensors", "\"sgd\"", "\"sge\"" },
        { "optimizer.safetensors", "step\\\":3", "step\\\":9" },
    };
    for (size_t i = 0; i < sizeof EDITS / sizeof EDITS[0]; i++) {
        struct simdisk *disk = disk_with((struct saved[]){ { 20, 2 }, { 30, 3 } }, 2);
        struct toy toy;
        char path[128];
        int64_t step = -1;
        toy_init(&toy, 9);
        (void)snprintf(path, sizeof path, ROOT "/step-000030/%s", EDITS[i][0]);
        edit_file(disk, path, EDITS[i][1], EDITS[i][2]);
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
        FINE(pawl_run_restore(run, toy.state, &step, NULL, &fine));
        assert_int_equal(step, 20);
        assert_int_equal(toy.optimizer_step, 2);
        close_run(run);
        toy_release(&toy);
        simdisk_free(disk);
    }
}

/* After a failed restore numbers and generators are unchanged; with verify_first tensors too. */
static void
failures_leave_numbers_alone(void **state)
{
    (void)state;
    for (int verify_first = 0; verify_first < 2; verify_first++) {
        struct simdisk *disk = disk_with(&(struct saved){ 30, 3 }, 1);
        struct pawl_ckpt *ckpt = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_report *report = NULL;
        struct toy toy;
        struct toy before;
        size_t bytes = 0;
        size_t n = 0;
        toy_init(&toy, 9);
        toy_init(&before, 9);
        /* trusted by their sizes at open; then hashed by a restore of an open checkpoint that trusts nothing */
        FINE(pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, &ckpt, NULL, &fine));
        assert_non_null(simdisk_get(disk, ROOT "/step-000030/optimizer.safetensors", &bytes));
        simdisk_flip(disk, ROOT "/step-000030/optimizer.safetensors", bytes - 1, 1);
        if (verify_first != 0)
            for (size_t i = 0; i < ckpt->step.manifest.n; i++)
                ckpt->step.files[i].state = PAWL_STEP_FILE_THERE; /* as after an examination that put hashing off */
        assert_int_equal(
            pawl_ckpt_restore(ckpt, toy.state, &PAWL_RESTORE_OPTIONS(.verify_first = verify_first != 0), &report, &err),
            PAWL_INCOMPLETE);
        assert_string_equal(err.code, "hash");
        char text[256];
        assert_string_equal(print_verdict(text, sizeof text, pawl_report_verdicts(report, &n)),
                            "hash optimizer.safetensors");
        assert_int_equal(memcmp(toy.weight, before.weight, sizeof toy.weight) == 0, verify_first != 0);
        assert_true(toy.lr == before.lr && toy.best == before.best && toy.tokens == before.tokens &&
                    toy.optimizer_step == before.optimizer_step && toy.rng.state == before.rng.state);
        pawl_report_free(report);
        pawl_ckpt_close(ckpt);
        toy_release(&toy);
        toy_release(&before);
        simdisk_free(disk);
    }
}

/* Cut or replaced under an open checkpoint: an error, and the one that was opened. */
static void
files_that_change_while_open(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 30, 3 }, 1);
    struct toy toy;
    struct pawl_ckpt *ckpt = NULL;
    toy_init(&toy, 9);
    FINE(pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, &ckpt, NULL, &fine));
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1));
    struct toy other;
    toy_init(&other, 0);
    save_step(run, &other, 30, 4); /* replaces it; the old directory is gone when this returns */
    toy_release(&other);
    close_run(run);
    FINE(pawl_ckpt_restore(ckpt, toy.state, NULL, NULL, &fine));
    assert_int_equal(toy.optimizer_step, 3);
    assert_true(toy.weight[0] == 3);
    pawl_ckpt_close(ckpt);
    toy_release(&toy);
    simdisk_free(disk);
}

static void
machine_faults_end_the_restore(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum pawl_status st;
    } FAULTS[] = {
        { ENOMEM, PAWL_NO_MEMORY }, { EMFILE, PAWL_NO_DESCRIPTORS }, { ESTALE, PAWL_STALE }, { EIO, PAWL_OK }
    };
    static const enum sim_op OPS[] = { SIM_DIR_OPEN,  SIM_DIR_LIST,  SIM_STAT,
                                       SIM_FILE_OPEN, SIM_FILE_STAT, SIM_FILE_READ_AT };
    struct simdisk *disk = disk_with((struct saved[]){ { 20, 2 }, { 30, 3 } }, 2);
    unsigned n_met = 0;
    for (size_t op = 0; op < sizeof OPS / sizeof OPS[0]; op++) {
        bool is_met = true;
        for (unsigned nth = 0; is_met; nth++) {
            for (size_t f = 0; f < sizeof FAULTS / sizeof FAULTS[0] && is_met; f++) {
                struct faultos *faults = faultos_new(simdisk_os(disk));
                struct toy toy;
                struct pawl_error err = PAWL_ERROR_INIT;
                int64_t step = -1;
                toy_init(&toy, 9);
                struct pawl_run *run = open_run(faultos_os(faults), PAWL_RUN_OPTIONS(0));
                faultos_fail(faults, OPS[op], nth, 0, FAULTS[f].code);
                enum pawl_status st = pawl_run_restore(run, toy.state, &step, NULL, &err);
                is_met = faultos_was_met(faults);
                enum pawl_status expected = is_met ? FAULTS[f].st : PAWL_OK;
                if (st != expected)
                    fail_msg("%s %u, errno %d: %s %s", sim_op_name(OPS[op]), nth, FAULTS[f].code, pawl_status_name(st),
                             err.message);
                assert_int_equal(toy.optimizer_step, st == PAWL_OK ? 3 : 9);
                assert_int_equal(step, st == PAWL_OK ? 30 : -1);
                n_met += is_met;
                close_run(run);
                toy_release(&toy);
                assert_int_equal(faultos_open(faults), 0);
                faultos_free(faults);
            }
        }
    }
    assert_true(n_met > 80);
    simdisk_free(disk);
}

/* ---- the stream ---- */

static const char *const SHARDS[] = { "tokens/a.bin", "tokens/b.bin" };

static struct pawl_stream *
open_stream(size_t n)
{
    struct pawl_stream *stream = NULL;
    FINE(pawl_stream_open_z(SHARDS, n, &PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 2, .seed = 1), &stream, &fine));
    return stream;
}

static void
the_stream_goes_on_where_it_was(void **state)
{
    (void)state;
    fresh_folder("tokens");
    put_counting_shard(SHARDS[0], 2, 100, 60);
    put_counting_shard(SHARDS[1], 2, 500, 70);
    uint32_t in[8];
    uint32_t out[8];
    uint32_t expected[8];
    struct pawl_stream *stream = open_stream(2);
    struct pawl_state *from = new_state();
    FINE(pawl_state_stream(from, stream, &fine));
    for (int i = 0; i < 9; i++)
        FINE(pawl_stream_next(stream, in, out, &fine));
    struct simdisk *disk = saved(from);
    FINE(pawl_stream_next(stream, expected, out, &fine));

    struct pawl_stream *again = open_stream(2);
    struct pawl_state *to = new_state();
    FINE(pawl_state_stream(to, again, &fine));
    FINE(restored(disk, to, NULL, &fine));
    FINE(pawl_stream_next(again, in, out, &fine));
    assert_memory_equal(in, expected, sizeof in);

    /* another data set is a mismatch, and the stream stays where it is; by the caller's word it is taken all the same */
    const char *const turned[] = { SHARDS[1], SHARDS[0] };
    struct pawl_stream *one = NULL;
    FINE(pawl_stream_open_z(turned, 2, &PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 2, .seed = 1), &one, &fine));
    struct pawl_state *other = new_state();
    struct pawl_stream_cursor before;
    struct pawl_stream_cursor after;
    struct pawl_error err = PAWL_ERROR_INIT;
    FINE(pawl_state_stream(other, one, &fine));
    pawl_stream_cursor(one, &before);
    assert_int_equal(restored(disk, other, NULL, &err), PAWL_MISMATCH);
    assert_non_null(strstr(err.message, "the stream is not the checkpoint's: "));
    pawl_stream_cursor(one, &after);
    assert_memory_equal(&before.shard, &after.shard, sizeof before.shard);
    assert_true(before.offset == after.offset && before.rng.state == after.rng.state);

    FINE(restored_with(disk, other, PAWL_RESTORE_OPTIONS(.other_data = 1), NULL, &fine));
    pawl_stream_cursor(one, &after);
    assert_true(before.offset != after.offset || before.shard != after.shard);

    /* who has no stream is told that there was one */
    struct pawl_state *none = new_state();
    struct pawl_report *report = NULL;
    char text[512];
    assert_int_equal(restored(disk, none, &report, &err), PAWL_MISMATCH);
    assert_string_equal(print_names(text, sizeof text, report, PAWL_NAMES_UNEXPECTED),
                        "pawl.stream.json | trainer_state.json: rng.pcg_state");
    pawl_report_free(report);
    pawl_state_free(none);
    pawl_state_free(other);
    pawl_state_free(to);
    pawl_state_free(from);
    pawl_stream_close(one);
    pawl_stream_close(again);
    pawl_stream_close(stream);
    simdisk_free(disk);
}

/* A cursor that lies outside the stream's shards is refused before the first tensor is overwritten. */
static void
a_cursor_outside_is_refused_first(void **state)
{
    (void)state;
    fresh_folder("tokens");
    put_counting_shard(SHARDS[0], 2, 100, 60);
    struct simdisk *disk = golden_disk("latest-missing");
    struct pawl_stream *stream = open_stream(1);
    struct pawl_state *to = new_state();
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_ckpt *ckpt = NULL;
    edit_file(disk, ROOT "/step-000030/trainer_state.json", "\"shard\": 0", "\"shard\": 7");
    relist(disk, "step-000030", "trainer_state.json");
    FINE(pawl_state_stream(to, stream, &fine));
    FINE(pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, &ckpt, NULL, &fine));
    assert_int_equal(pawl_ckpt_restore(ckpt, to, &PAWL_RESTORE_OPTIONS(.lenient = 1, .other_data = 1), NULL, &err),
                     PAWL_MISMATCH);
    assert_non_null(strstr(err.message, "the cursor is in shard 7, the stream has 1"));
    pawl_ckpt_close(ckpt);
    pawl_state_free(to);
    pawl_stream_close(stream);
    simdisk_free(disk);
}

/* ---- arguments ---- */

static enum pawl_status
no_source(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    (void)context;
    (void)offset;
    (void)err;
    memset(destination, 0, n);
    return PAWL_OK;
}

static void
a_source_has_no_memory_to_restore_into(void **state)
{
    (void)state;
    const struct pawl_source source = { 4, no_source, NULL };
    struct pawl_state *s = new_state();
    struct pawl_error err = PAWL_ERROR_INIT;
    FINE(pawl_state_tensor(s,
                           &(struct pawl_tensor){ .size = sizeof(struct pawl_tensor),
                                                  .slot = PAWL_MODEL,
                                                  .dtype = PAWL_F32,
                                                  .name = PAWL_STR("w"),
                                                  .source = &source },
                           &fine));
    struct simdisk *disk = saved(s);
    assert_int_equal(restored(disk, s, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "tensor 'w' has a source and no memory: it can't be restored into");
    assert_string_equal(err.tensor, "w");
    assert_int_equal(restored(disk, NULL, NULL, &err), PAWL_ARGUMENT);
    pawl_state_free(s);
    simdisk_free(disk);
}

/* An empty root is a fresh start, and nothing is touched. */
static void
a_fresh_start_touches_nothing(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    struct pawl_error err = PAWL_ERROR_INIT;
    toy_init(&toy, 3);
    assert_int_equal(restored(disk, toy.state, NULL, &err), PAWL_NOT_FOUND);
    assert_int_equal(toy.optimizer_step, 3);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Weights alone, from a step whose optimizer is damaged. */
static void
weights_alone_go_into_a_state_of_weights(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 30, 3 }, 1);
    simdisk_remove(disk, ROOT "/step-000030/optimizer.safetensors");
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    float weight[6] = { 0 };
    float bias[2] = { 0 };
    struct pawl_state *s = new_state();
    assert_int_equal(pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), NULL, &ckpt, NULL, &err),
                     PAWL_NONE_COMPLETE);
    FINE(pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), &PAWL_CKPT_OPTIONS(.weights_only = 1), &ckpt, NULL,
                                  &fine));
    FINE(pawl_state_tensor(s, &PAWL_TENSOR(PAWL_MODEL, "fc.weight", PAWL_F32, weight, 2, 3), &fine));
    FINE(pawl_state_tensor(s, &PAWL_TENSOR(PAWL_MODEL, "fc.bias", PAWL_F32, bias, 2), &fine));
    FINE(pawl_ckpt_restore(ckpt, s, NULL, NULL, &fine));
    assert_true(weight[0] == 3 && weight[5] == 3.625f && bias[1] == 15);
    struct toy toy;
    toy_init(&toy, 9);
    assert_int_equal(pawl_ckpt_restore(ckpt, toy.state, &PAWL_RESTORE_OPTIONS(.lenient = 1), NULL, &err),
                     PAWL_MISMATCH);
    assert_non_null(strstr(err.message, "the checkpoint was opened for its weights only, and the state asks for more"));
    assert_true(toy.weight[0] == 9);
    toy_release(&toy);
    pawl_state_free(s);
    pawl_ckpt_close(ckpt);
    simdisk_free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(layouts_are_the_callers),
        cmocka_unit_test(each_byte_is_read_once),
        cmocka_unit_test(many_and_odd_names),
        cmocka_unit_test(aliases_are_tied_copied_or_refused),
        cmocka_unit_test(all_names_are_listed_and_the_first_shown),
        cmocka_unit_test(dtypes_and_shapes_must_be_equal),
        cmocka_unit_test(slots_that_are_not_there_are_errors),
        cmocka_unit_test(what_nobody_asks_for_is_unexpected),
        cmocka_unit_test(keys_of_the_callers_json_are_known),
        cmocka_unit_test(scalars_that_were_never_written),
        cmocka_unit_test(numbers_are_exact_or_a_mismatch),
        cmocka_unit_test(opaque_states_keep_tag_and_size),
        cmocka_unit_test(damage_that_is_met_while_reading_falls_back),
        cmocka_unit_test(a_damaged_header_is_no_mismatch),
        cmocka_unit_test(failures_leave_numbers_alone),
        cmocka_unit_test(files_that_change_while_open),
        cmocka_unit_test(machine_faults_end_the_restore),
        cmocka_unit_test(the_stream_goes_on_where_it_was),
        cmocka_unit_test(a_cursor_outside_is_refused_first),
        cmocka_unit_test(a_source_has_no_memory_to_restore_into),
        cmocka_unit_test(a_fresh_start_touches_nothing),
        cmocka_unit_test(weights_alone_go_into_a_state_of_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
