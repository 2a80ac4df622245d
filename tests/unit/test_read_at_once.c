/*
 * Goal: a restore whose files are read and hashed at once gives every bit back, and says of a damaged step exactly what a restore that
 * reads one file after the other says: the first wrong file, and all others that are wrong.
 *
 * Method: one saved step with large and small tensors, in two files and in many, on the simulated disk; read by threads and without.
 */
#include "unit/save_support.h"

#include <errno.h>
#include "sim/faultos.h"

#define LARGE_FLOATS ((size_t)3 << 18) /* 3 MiB: read straight into its place */
#define SMALL 400
#define SMALL_FLOATS 1000 /* shares blocks */

struct memory {
    float *large[2];              /* model, optimizer */
    float (*small)[SMALL_FLOATS]; /* SMALL of each */
    struct pawl_state *state;
};

static void
memory_init(struct memory *memory, bool is_filled)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    memory->small = calloc(2 * (size_t)SMALL, sizeof *memory->small);
    assert_non_null(memory->small);
    assert_int_equal(pawl_state_new(&memory->state, NULL), PAWL_OK);
    for (int slot = 0; slot < 2; slot++) {
        const enum pawl_slot which = slot == 0 ? PAWL_MODEL : PAWL_OPTIMIZER;
        memory->large[slot] = calloc(LARGE_FLOATS, sizeof(float));
        assert_non_null(memory->large[slot]);
        for (size_t i = 0; i < LARGE_FLOATS && is_filled; i++)
            memory->large[slot][i] = (float)(i + (size_t)slot);
        assert_int_equal(pawl_state_tensor(memory->state,
                                           &PAWL_TENSOR(which, "large", PAWL_F32, memory->large[slot], LARGE_FLOATS),
                                           &err),
                         PAWL_OK);
        for (size_t k = 0; k < SMALL; k++) {
            float *data = memory->small[(size_t)slot * SMALL + k];
            char name[32];
            for (size_t i = 0; i < SMALL_FLOATS && is_filled; i++)
                data[i] = (float)(k * 7 + i);
            (void)snprintf(name, sizeof name, "small.%zu", k);
            assert_int_equal(
                pawl_state_tensor(memory->state, &PAWL_TENSOR(which, name, PAWL_F32, data, SMALL_FLOATS), &err),
                PAWL_OK);
        }
    }
}

static void
memory_release(struct memory *memory)
{
    pawl_state_free(memory->state);
    free(memory->large[0]);
    free(memory->large[1]);
    free(memory->small);
}

static void
expect_same(const struct memory *a, const struct memory *b)
{
    for (int slot = 0; slot < 2; slot++)
        assert_memory_equal(a->large[slot], b->large[slot], LARGE_FLOATS * sizeof(float));
    assert_memory_equal(a->small, b->small, 2 * SMALL * sizeof *a->small);
}

static struct simdisk *
saved(const struct memory *memory, uint64_t max_file_bytes)
{
    struct simdisk *disk = simdisk_new();
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.max_file_bytes = max_file_bytes));
    if (pawl_run_save(run, memory->state, 1, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    close_run(run);
    return disk;
}

/* Restore by a table that takes threads or not; what is said goes into `said`. */
static enum pawl_status
restore(struct simdisk *disk, struct memory *memory, bool has_threads, bool verify_first, struct pawl_buffer *said)
{
    struct faultos *faults = faultos_new(simdisk_os(disk));
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_report *report = NULL;
    int64_t step = -1;
    if (has_threads)
        faultos_take_threads(faults);
    struct pawl_run *run = open_run(faultos_os(faults), PAWL_RUN_OPTIONS(.verify_first = verify_first));
    enum pawl_status st = pawl_run_restore(run, memory->state, &step, &report, &err);
    if (st != PAWL_OK)
        (void)pawl_buffer_printf(said, "%s\n", err.message);
    size_t n = 0;
    const struct pawl_verdict *verdicts = report == NULL ? NULL : pawl_report_verdicts(report, &n);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < verdicts[i].n_problems; k++) {
            const struct pawl_problem *problem = &verdicts[i].problems[k];
            (void)pawl_buffer_printf(said, "%s %.*s %s\n", problem->code, PAWL_ARG(problem->file), problem->message);
        }
    }
    pawl_report_free(report);
    close_run(run);
    assert_int_equal(faultos_open(faults), 0);
    faultos_free(faults);
    return st;
}

/* Which MiB are not in the cache: none, all, a mixture. */
static const uint32_t PATTERNS[] = { 0, UINT32_MAX, 0x66666666 };
#define PATTERNS_N 3

static void
every_bit_comes_back(void **state)
{
    (void)state;
    const uint64_t limits[] = { 0, (uint64_t)1 << 20 };
    struct memory original;
    memory_init(&original, true);
    for (size_t i = 0; i < 2; i++) {
        struct simdisk *disk = saved(&original, limits[i]);
        for (int how = 0; how < 4 * PATTERNS_N; how++) {
            struct memory copy;
            struct pawl_buffer said = PAWL_BUFFER_INIT;
            memory_init(&copy, false);
            simdisk_set_cold(disk, PATTERNS[how / 4]);
            assert_int_equal(restore(disk, &copy, how % 2 == 0, how % 4 >= 2, &said), PAWL_OK);
            expect_same(&original, &copy);
            pawl_buffer_release(&said);
            memory_release(&copy);
        }
        assert_true(simdisk_direct_bytes_read(disk) > 40 * LARGE_FLOATS);
        simdisk_free(disk);
    }
    memory_release(&original);
}

/* Flips in the model, in the optimizer, in both: at the beginning of the data, in the middle, at the end. */
static void
damage_is_told_as_ever(void **state)
{
    (void)state;
    const char *const files[] = { ROOT "/step-000001/model.safetensors", ROOT "/step-000001/optimizer.safetensors" };
    struct memory original;
    memory_init(&original, true);
    for (unsigned which = 1; which < 4; which++) {
        for (unsigned place = 0; place < 3; place++) {
            struct simdisk *disk = saved(&original, 0);
            struct pawl_buffer said[2] = { PAWL_BUFFER_INIT, PAWL_BUFFER_INIT };
            simdisk_set_cold(disk, PATTERNS[(which + place) % PATTERNS_N]);
            for (unsigned k = 0; k < 2; k++) {
                size_t bytes = 0;
                (void)simdisk_get(disk, files[k], &bytes);
                if ((which >> k & 1) != 0)
                    simdisk_flip(disk, files[k], place == 0 ? 65536 : place == 1 ? bytes / 2 : bytes - 1, 16);
            }
            for (int has_threads = 0; has_threads < 2; has_threads++) {
                for (int verify_first = 0; verify_first < 2; verify_first++) {
                    struct memory copy, empty;
                    memory_init(&copy, false);
                    memory_init(&empty, false);
                    assert_int_not_equal(restore(disk, &copy, has_threads, verify_first, &said[has_threads]), PAWL_OK);
                    if (verify_first)
                        expect_same(&copy, &empty);
                    memory_release(&copy);
                    memory_release(&empty);
                }
            }
            assert_true(said[0].len == said[1].len && said[0].len > 100);
            assert_memory_equal(said[0].data, said[1].data, said[0].len);
            pawl_buffer_release(&said[0]);
            pawl_buffer_release(&said[1]);
            simdisk_free(disk);
        }
    }
    memory_release(&original);
}

/* Goal: a medium that can't be read is told, and never taken for content. Method: two EIO in a row, at every reading in turn. */
static void
unreadable_places_are_told(void **state)
{
    (void)state;
    struct memory original, copy;
    memory_init(&original, true);
    memory_init(&copy, false);
    struct simdisk *disk = saved(&original, 0);
    unsigned failed = 0;
    simdisk_set_cold(disk, 0x66666666);
    for (unsigned nth = 0; nth < 60; nth += 3) {
        struct faultos *faults = faultos_new(simdisk_os(disk));
        struct pawl_error err = PAWL_ERROR_INIT;
        int64_t step = -1;
        faultos_take_threads(faults);
        struct pawl_run *run = open_run(faultos_os(faults), PAWL_RUN_OPTIONS(0));
        faultos_fail(faults, SIM_FILE_READ_AT, nth, 5, EIO);
        enum pawl_status st = pawl_run_restore(run, copy.state, &step, NULL, &err);
        if (st == PAWL_OK)
            expect_same(&original, &copy);
        failed += st != PAWL_OK;
        close_run(run);
        assert_int_equal(faultos_open(faults), 0);
        faultos_free(faults);
    }
    assert_true(failed > 2);
    simdisk_free(disk);
    memory_release(&copy);
    memory_release(&original);
}

/* Verifying a step, by its files at once or in turn: the same verdict. */
static void
a_verdict_is_the_same(void **state)
{
    (void)state;
    struct memory original;
    memory_init(&original, true);
    for (unsigned damage = 0; damage < 3; damage++) {
        struct simdisk *disk = saved(&original, 0);
        char *texts[2];
        if (damage != 0)
            simdisk_flip(
                disk, damage == 1 ? ROOT "/step-000001/model.safetensors" : ROOT "/step-000001/optimizer.safetensors",
                100000, 1);
        simdisk_set_cold(disk, PATTERNS[damage % PATTERNS_N]);
        for (int has_threads = 0; has_threads < 2; has_threads++) {
            struct faultos *faults = faultos_new(simdisk_os(disk));
            char problem[512] = "";
            if (has_threads)
                faultos_take_threads(faults);
            check_root(faultos_os(faults), problem, sizeof problem);
            assert_true((problem[0] == '\0') == (damage == 0));
            texts[has_threads] = pawl_str_dup(pawl_str_z(problem));
            assert_int_equal(faultos_open(faults), 0);
            faultos_free(faults);
        }
        assert_string_equal(texts[0], texts[1]);
        free(texts[0]);
        free(texts[1]);
        simdisk_free(disk);
    }
    memory_release(&original);
}

/* ---- memory that two tensors have ---- */

#define VIEW ((size_t)1 << 18)  /* floats of a view: 1 MiB, one step of reading */
#define SHIFT ((size_t)1 << 15) /* two views lie this far apart */

struct views {
    float *model, *optimizer; /* VIEW + 2 * SHIFT floats each; one memory when they are entangled */
    struct pawl_state *state;
};

/*
 * Of each slot a view, one that lies SHIFT further and one that begins there and has every other float: `overlap` says how much of
 * that is so; 0: each has memory of its own.
 */
static void
views_init(struct views *views, unsigned overlap, float salt)
{
    const size_t each = 3 * (VIEW + 2 * SHIFT);
    struct pawl_error err = PAWL_ERROR_INIT;
    int64_t two = 2;
    views->model = calloc(2 * each, sizeof(float));
    assert_non_null(views->model);
    views->optimizer = views->model + (overlap == 2 ? SHIFT / 2 : each);
    assert_int_equal(pawl_state_new(&views->state, NULL), PAWL_OK);
    for (size_t i = 0; i < 2 * each; i++)
        views->model[i] = (float)(i % 1000003) * salt;
    for (int slot = 0; slot < 2; slot++) {
        const enum pawl_slot which = slot == 0 ? PAWL_MODEL : PAWL_OPTIMIZER;
        float *base = slot == 0 ? views->model : views->optimizer;
        const size_t apart = overlap == 0 ? VIEW + 2 * SHIFT : SHIFT;
        struct pawl_tensor odd = PAWL_TENSOR(which, "c", PAWL_F32, base + 2 * apart, VIEW / 2);
        odd.strides = &two;
        assert_int_equal(pawl_state_tensor(views->state, &PAWL_TENSOR(which, "a", PAWL_F32, base, VIEW), &err),
                         PAWL_OK);
        assert_int_equal(pawl_state_tensor(views->state, &PAWL_TENSOR(which, "b", PAWL_F32, base + apart, VIEW), &err),
                         PAWL_OK);
        assert_int_equal(pawl_state_tensor(views->state, &odd, &err), PAWL_OK);
    }
}

static void
views_release(struct views *views)
{
    pawl_state_free(views->state);
    free(views->model);
}

/*
 * Goal: views that share a part of their memory, restored from a step in which the bytes of that part differ, are no damage. What a
 * caller gets is the same by threads and without, in one file or many, and is what writing one tensor after the other gives.
 * Method: a step of a state whose tensors lie apart into states whose views overlap within a slot and across the slots. It would
 * catch a reader that hashes the caller's memory after the next tensor was read into it.
 */
static void
overlapping_views_are_no_damage(void **state)
{
    (void)state;
    const uint64_t limits[] = { 0, (uint64_t)5 << 18 };
    struct views apart;
    views_init(&apart, 0, 0.5F);
    for (size_t i = 0; i < 2; i++) {
        struct memory source = { .state = apart.state };
        struct simdisk *disk = saved(&source, limits[i]);
        for (unsigned round = 0; round < 3 * PATTERNS_N; round++) {
            struct views got[4];
            const unsigned overlap = round % 3;
            simdisk_set_cold(disk, PATTERNS[round / 3]);
            for (int how = 0; how < 4; how++) {
                struct pawl_buffer said = PAWL_BUFFER_INIT;
                views_init(&got[how], overlap, 2.0F);
                struct memory target = { .state = got[how].state };
                enum pawl_status st = restore(disk, &target, how % 2 == 0, how >= 2, &said);
                if (st != PAWL_OK || said.len != 0)
                    fail_msg("overlap %u, how %d: %.*s", overlap, how, (int)said.len, said.data);
                pawl_buffer_release(&said);
                assert_memory_equal(got[how].model, got[0].model, 6 * (VIEW + 2 * SHIFT) * sizeof(float));
            }
            /* Where "a" alone lies it is what was saved. */
            if (overlap < 2)
                assert_memory_equal(got[0].model, apart.model, SHIFT * sizeof(float));
            for (int how = 0; how < 4; how++)
                views_release(&got[how]);
        }
        simdisk_free(disk);
    }
    views_release(&apart);
}

/* ---- odd memory ---- */

#define ODD 40

/* Goal: tensors of odd sizes at odd addresses get their bytes and nothing beside them. Method: memory with a guard around each. */
static void
odd_tensors_at_odd_addresses(void **state)
{
    (void)state;
    const size_t room = (size_t)5 << 20;
    unsigned char *memory[2] = { malloc(room), malloc(room) };
    struct pawl_state *states[2];
    struct pawl_error err = PAWL_ERROR_INIT;
    for (int k = 0; k < 2; k++) {
        size_t at = 1;
        assert_non_null(memory[k]);
        for (size_t i = 0; i < room; i++)
            memory[k][i] = k == 0 ? (unsigned char)(i * 2654435761u >> 11) : 0xa5;
        assert_int_equal(pawl_state_new(&states[k], NULL), PAWL_OK);
        for (size_t i = 0; i < ODD; i++) {
            char name[32];
            /* By turns large and small; the sum is about 4 MiB. */
            const size_t bytes = i % 4 == 0 ? ((size_t)370 << 10) + 37 * i + 1 : 13 * i + 1;
            (void)snprintf(name, sizeof name, "odd.%02zu", i);
            assert_int_equal(pawl_state_tensor(states[k],
                                               &PAWL_TENSOR(i % 8 < 6 ? PAWL_MODEL : PAWL_OPTIMIZER, name, PAWL_U8,
                                                            memory[k] + at, bytes),
                                               &err),
                             PAWL_OK);
            at += bytes;
            memory[0][at] = 0xa5; /* the guard */
            at += 1 + i % 3;
        }
        for (size_t i = at; i < room; i++)
            memory[0][i] = 0xa5;
    }
    struct memory source = { .state = states[0] };
    struct simdisk *disk = saved(&source, 0);
    for (int how = 0; how < 4 * PATTERNS_N; how++) {
        struct pawl_buffer said = PAWL_BUFFER_INIT;
        struct memory target = { .state = states[1] };
        memset(memory[1], 0xa5, room);
        simdisk_set_cold(disk, PATTERNS[how / 4]);
        assert_int_equal(restore(disk, &target, how % 2 == 0, how % 4 >= 2, &said), PAWL_OK);
        /* Between the tensors nothing was written: where the guards are, and only there, both have the same filling. */
        size_t at = 1;
        for (size_t i = 0; i < ODD; i++) {
            const size_t bytes = i % 4 == 0 ? ((size_t)370 << 10) + 37 * i + 1 : 13 * i + 1;
            assert_memory_equal(memory[1] + at, memory[0] + at, bytes);
            at += bytes;
            for (size_t k = 0; k < 1 + i % 3; k++)
                assert_int_equal(memory[1][at + k], 0xa5);
            at += 1 + i % 3;
        }
        pawl_buffer_release(&said);
    }
    assert_true(simdisk_direct_bytes_read(disk) != 0);
    simdisk_free(disk);
    for (int k = 0; k < 2; k++) {
        pawl_state_free(states[k]);
        free(memory[k]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_comes_back),
        cmocka_unit_test(damage_is_told_as_ever),
        cmocka_unit_test(unreadable_places_are_told),
        cmocka_unit_test(a_verdict_is_the_same),
        cmocka_unit_test(overlapping_views_are_no_damage),
        cmocka_unit_test(odd_tensors_at_odd_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
