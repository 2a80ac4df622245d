/* Rewriting a model while the power goes, calls fail and the disk is full: all of the old model or all of the new, or nothing that opens. */
#include "unit/os_fixture.h"

#include "formats/safetensors/safetensors.h"
#include "model/convert_model.h"
#include "sim/simdisk.h"

#define OPS_MAX 400
#define SEEDS 12
#define TENSORS 4
#define BYTES 700 /* of a tensor: two sectors, so that a torn file shows */

static uint64_t seed; /* printed by main */
static struct pawl_error err;

/* ---- models whose bytes tell which they are ---- */

static void
put_model(struct simdisk *disk, const char *path, char value)
{
    static const uint64_t shape = BYTES;
    static const char *const NAMES[TENSORS] = { "a", "b", "c", "d" };
    struct pawl_st_item items[TENSORS];
    struct pawl_st_plan plan;
    for (size_t i = 0; i < TENSORS; i++)
        items[i] = (struct pawl_st_item){ pawl_str_z(NAMES[i]), PAWL_U8, 1, &shape };
    assert_int_equal(pawl_st_plan(&plan, items, TENSORS, NULL, 0, false, 0, NULL), PAWL_OK);
    unsigned char *file = malloc((size_t)plan.file_bytes);
    assert_non_null(file);
    memset(file, value, (size_t)plan.file_bytes);
    memcpy(file, plan.prefix.data, plan.prefix.len);
    simdisk_put(disk, path, file, (size_t)plan.file_bytes);
    free(file);
    pawl_st_plan_release(&plan);
}

static enum pawl_status
rewrite(const struct pawl_os *os, const char *from, const char *to, uint64_t shard_bytes, bool keep_existing)
{
    const struct pawl_convert_options options =
        PAWL_CONVERT_OPTIONS(.is_directory = 1, .file_bytes_max = shard_bytes, .keep_existing = keep_existing);
    struct pawl_model *model = NULL;
    struct pawl_converted *done = NULL;
    enum pawl_status st = pawl_model_open_plain(os, pawl_str_z(from), NULL, NULL, &model, &err);
    if (st == PAWL_OK)
        st = pawl_convert_os(os, model, pawl_str_z(to), &options, &done, &err);
    assert_true((st == PAWL_OK) == (done != NULL));
    pawl_converted_free(done);
    pawl_model_close(model);
    return st;
}

/* The value of all bytes of all tensors of what "out" opens as; 0: it does not open, having no index. Anything else fails. */
static char
value_of(struct simdisk *disk)
{
    unsigned char bytes[BYTES];
    struct pawl_model *model = NULL;
    struct pawl_error own = PAWL_ERROR_INIT;
    size_t n;
    enum pawl_status st = pawl_model_open_plain(simdisk_os(disk), PAWL_STR("out"), NULL, NULL, &model, &own);
    if (st == PAWL_NO_FILE)
        return 0;
    if (st != PAWL_OK) {
        if (strcmp(own.code, "not-safetensors") != 0)
            fail_msg("%s: %s", own.code, own.message);
        return 0;
    }
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    assert_int_equal(n, TENSORS);
    char value = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(pawl_model_read(model, &tensors[i], PAWL_U8, bytes, BYTES, NULL), PAWL_OK);
        for (size_t k = 0; k < BYTES; k++) {
            value = value == 0 ? (char)bytes[0] : value;
            if ((char)bytes[k] != value)
                fail_msg("a mixture: byte %zu of tensor %zu is '%c', others are '%c'", k, i, bytes[k], value);
        }
    }
    pawl_model_close(model);
    return value;
}

static bool
has_temporaries(const struct simdisk *disk)
{
    char *tree = simdisk_tree(disk, "");
    bool has = strstr(tree, ".tmp") != NULL;
    free(tree);
    return has;
}

/* ---- what is there before, and what is written ---- */

struct scenario {
    const char *name;
    uint64_t old_bytes; /* limit of the old shards; 0: one file; UINT64_MAX: nothing */
    uint64_t new_bytes; /* 0: one file */
    bool is_renamed;    /* the old index has another name */
    bool has_stray;     /* a model.safetensors lies beside the old shards */
    bool is_in_place;   /* what is read is what is replaced */
    bool may_be_none;   /* half-way it may be that nothing opens */
    const char *tree;   /* of "out" after success */
};

#define OF2 "model-00001-of-00002.safetensors\nmodel-00002-of-00002.safetensors\nmodel.safetensors.index.json"
#define OF4                                                                                                  \
    "model-00001-of-00004.safetensors\nmodel-00002-of-00004.safetensors\nmodel-00003-of-00004.safetensors\n" \
    "model-00004-of-00004.safetensors\nmodel.safetensors.index.json"

static const struct scenario SCENARIOS[] = {
    { "nothing, then 2", UINT64_MAX, 1400, false, false, false, true, OF2 },
    { "nothing, then 1", UINT64_MAX, 0, false, false, false, true, "model.safetensors" },
    { "4, then 2", 700, 1400, false, false, false, false, OF2 },
    { "2, then 2", 1400, 1400, false, false, false, true, OF2 },
    { "1, then 2", 0, 1400, false, false, false, false, OF2 },
    { "2, then 1", 1400, 0, false, false, false, false, "model.safetensors" },
    { "1, then 1", 0, 0, false, false, false, false, "model.safetensors" },
    { "2 under another name, then 4", 1400, 700, true, false, false, false, OF4 },
    { "2 under another name, then 1", 1400, 0, true, false, false, false, "model.safetensors" },
    { "2 beside a stray, then 2", 1400, 1400, false, true, false, true, OF2 },
    { "2 beside a stray, then 4", 1400, 700, false, true, false, false, OF4 },
    { "4 in place, then 2", 700, 1400, false, false, true, false, OF2 },
    { "2 in place, then 1", 1400, 0, false, false, true, false, "model.safetensors" },
};
#define N_SCENARIOS (sizeof SCENARIOS / sizeof SCENARIOS[0])

static struct simdisk *
disk_before(const struct scenario *s)
{
    struct simdisk *disk = simdisk_new();
    put_model(disk, "in/model.safetensors", 'n');
    put_model(disk, "before/model.safetensors", s->is_in_place ? 'n' : 'o');
    if (s->old_bytes != UINT64_MAX)
        assert_int_equal(rewrite(simdisk_os(disk), "before", "out", s->old_bytes, true), PAWL_OK);
    if (s->is_renamed) {
        size_t n;
        const unsigned char *text = simdisk_get(disk, "out/model.safetensors.index.json", &n);
        assert_non_null(text);
        char copy[2000];
        assert_true(n < sizeof copy);
        memcpy(copy, text, n);
        simdisk_put(disk, "out/w.safetensors.index.json", copy, n);
        simdisk_remove(disk, "out/model.safetensors.index.json");
    }
    if (s->has_stray)
        put_model(disk, "out/model.safetensors", 'x');
    struct simdisk *clean = simdisk_clone(disk);
    simdisk_free(disk);
    return clean;
}

static enum pawl_status
run(const struct scenario *s, struct simdisk *disk)
{
    return rewrite(simdisk_os(disk), s->is_in_place ? "out" : "in", "out", s->new_bytes, false);
}

static char
old_value(const struct scenario *s)
{
    return s->old_bytes == UINT64_MAX ? 0 : s->is_in_place ? 'n' : 'o';
}

static void
expect_state(const struct scenario *s, struct simdisk *disk, enum pawl_status st, bool may_be_old)
{
    char value = value_of(disk);
    bool is_fine =
        value == 'n' || (may_be_old && value == old_value(s)) || (may_be_old && value == 0 && s->may_be_none);
    if (!is_fine || (st == PAWL_OK && value != 'n')) {
        char *tree = simdisk_tree(disk, "");
        fail_msg("%s: '%c' after %s:\n%s", s->name, value == 0 ? '-' : value, pawl_status_name(st), tree);
    }
}

/* ---- tests ---- */

/* Goal: each scenario does what it is for: the new set, and nothing left of the old one. */
static void
replaces_what_was_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SCENARIOS; i++) {
        struct simdisk *disk = disk_before(&SCENARIOS[i]);
        assert_int_equal(value_of(disk), old_value(&SCENARIOS[i]));
        simdisk_put_text(disk, "out/config.json", "{}");
        if (run(&SCENARIOS[i], disk) != PAWL_OK)
            fail_msg("%s: %s", SCENARIOS[i].name, err.message);
        expect_state(&SCENARIOS[i], disk, PAWL_OK, false);
        assert_string_equal(simdisk_text(disk, "out/config.json"), "{}");
        simdisk_remove(disk, "out/config.json");
        char *tree = simdisk_tree(disk, "out");
        assert_string_equal(tree, SCENARIOS[i].tree);
        free(tree);
        assert_int_equal(simdisk_open_handles(disk), 0);
        simdisk_free(disk);
    }
}

/*
 * Goal: wherever the power goes, the directory opens as the old model or the new one, bytes and all (where both sets have the same names: or
 * does not open), and after success as the new. Method: cut the power at call 0, 1, 2 ..., let chance decide what was lost, open.
 */
static void
old_or_new_under_power_loss(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SCENARIOS; i++) {
        struct simdisk *before = disk_before(&SCENARIOS[i]);
        unsigned op = 0;
        for (bool was_cut = true; was_cut; op++) {
            assert_true(op < OPS_MAX);
            for (uint64_t k = 0; k < SEEDS; k++) {
                struct simdisk *disk = simdisk_clone(before);
                simdisk_cut_power_at(disk, op);
                enum pawl_status st = run(&SCENARIOS[i], disk);
                was_cut = simdisk_reboot(disk, seed + 1000 * op + k);
                expect_state(&SCENARIOS[i], disk, st, st != PAWL_OK);
                simdisk_free(disk);
            }
        }
        assert_true(op > 20);
        simdisk_free(before);
    }
}

/* The same without a choice of places: every prefix of the trace, and of what is pending there every choice, or 32 by chance. */
static void
old_or_new_in_every_crash_state(void **state)
{
    (void)state;
    size_t states = 0;
    for (size_t i = 0; i < N_SCENARIOS; i++) {
        struct simdisk *disk = disk_before(&SCENARIOS[i]);
        size_t begin = simdisk_trace_len(disk);
        assert_int_equal(run(&SCENARIOS[i], disk), PAWL_OK);
        for (size_t prefix = begin; prefix <= simdisk_trace_len(disk); prefix++) {
            unsigned char fates[64] = { 0 };
            size_t n = simdisk_pending(disk, prefix, NULL, 0);
            assert_true(n <= sizeof fates);
            size_t choices = n < 5 ? (size_t)1 << n : 32;
            for (size_t choice = 0; choice < choices; choice++) {
                uint64_t bits = n < 5 ? choice : (seed + choice) * UINT64_C(0x9e3779b97f4a7c15) >> 7;
                for (size_t k = 0; k < n; k++)
                    fates[k] = (unsigned char)(bits >> (k % 57) & 1);
                struct simdisk *after = simdisk_build_state(disk, prefix, fates, n, choice);
                expect_state(&SCENARIOS[i], after, PAWL_IO, prefix < simdisk_trace_len(disk));
                simdisk_free(after);
                states++;
            }
        }
        simdisk_free(disk);
    }
    print_message("%zu crash states\n", states);
}

/*
 * Goal: after a failed call the old model is there or the new one whole; no temporary and no shard of the failed set is left, nor a
 * directory that was made for it; nothing stays open. Method: the n-th call fails once, for every n, with each of three errors.
 */
static void
any_call_may_fail_once(void **state)
{
    static const int CODES[] = { EIO, ENOSPC, EACCES };
    (void)state;
    for (size_t i = 0; i < N_SCENARIOS; i++) {
        struct simdisk *before = disk_before(&SCENARIOS[i]);
        char *tree_before = simdisk_tree(before, "");
        for (size_t c = 0; c < 3; c++) {
            bool was_met = true;
            for (unsigned op = 0; was_met; op++) {
                struct simdisk *disk = simdisk_clone(before);
                simdisk_fail(disk, SIM_ANY, op, 0, CODES[c]);
                enum pawl_status st = run(&SCENARIOS[i], disk);
                was_met = simdisk_fault_was_met(disk);
                assert_int_equal(simdisk_open_handles(disk), 0);
                struct simdisk *failed = disk;
                disk = simdisk_clone(failed); /* without the fault, when it was not met */
                simdisk_free(failed);
                expect_state(&SCENARIOS[i], disk, st, st != PAWL_OK);
                if (has_temporaries(disk))
                    fail_msg("%s: a temporary is left when call %u fails", SCENARIOS[i].name, op);
                if (st != PAWL_OK && value_of(disk) != 'n' && !SCENARIOS[i].may_be_none) {
                    char *tree = simdisk_tree(disk, "");
                    assert_string_equal(tree, tree_before);
                    free(tree);
                }
                if (st != PAWL_OK && SCENARIOS[i].old_bytes == UINT64_MAX && value_of(disk) == 0)
                    assert_false(simdisk_has(disk, "out"));
                simdisk_free(disk);
                assert_true(op < OPS_MAX);
            }
        }
        free(tree_before);
        simdisk_free(before);
    }
}

/* Goal: a full disk is said before anything is written where it can be seen, and met with nothing lost where it can't. */
static void
a_full_disk_keeps_the_old_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SCENARIOS; i++) {
        struct simdisk *before = disk_before(&SCENARIOS[i]);
        for (unsigned room = 0; room < 2; room++) {
            struct simdisk *disk = simdisk_clone(before);
            if (room == 1)
                simdisk_lack(disk, SIM_RESERVE); /* and what is free is only told, not promised */
            simdisk_set_capacity(disk, UINT64_C(2) * TENSORS * BYTES + 2000 +
                                           (SCENARIOS[i].old_bytes == UINT64_MAX ? 0U : 3000U) +
                                           (SCENARIOS[i].has_stray ? 3000U : 0U));
            enum pawl_status st = run(&SCENARIOS[i], disk);
            assert_int_equal(st, PAWL_NO_SPACE);
            assert_int_equal(value_of(disk), old_value(&SCENARIOS[i]));
            assert_false(has_temporaries(disk));
            simdisk_free(disk);
        }
        simdisk_free(before);
    }
}

/* Goal: two writers never mix: the second is told that the directory is busy. */
static void
a_second_writer_is_refused(void **state)
{
    struct simdisk *disk = disk_before(&SCENARIOS[2]);
    struct pawl_dir dir = PAWL_DIR_INIT;
    (void)state;
    assert_int_equal(pawl_dir_open_path(&dir, simdisk_os(disk), "out", NULL), PAWL_OK);
    assert_int_equal(pawl_dir_lock(&dir, PAWL_OS_LOCK_TRY, NULL, NULL), PAWL_OK);
    assert_int_equal(run(&SCENARIOS[2], disk), PAWL_BUSY);
    assert_int_equal(value_of(disk), 'o');
    pawl_dir_release(&dir);
    assert_int_equal(run(&SCENARIOS[2], disk), PAWL_OK);
    simdisk_free(disk);
}

int
main(void)
{
    const char *given = getenv("PAWL_SEED");
    seed = given != NULL ? strtoull(given, NULL, 0) : 20251129;
    print_message("PAWL_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_what_was_there),         cmocka_unit_test(old_or_new_under_power_loss),
        cmocka_unit_test(old_or_new_in_every_crash_state), cmocka_unit_test(any_call_may_fail_once),
        cmocka_unit_test(a_full_disk_keeps_the_old_model), cmocka_unit_test(a_second_writer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
