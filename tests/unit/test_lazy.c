/*
 * Goal: a checkpoint that was opened lazily hands out no byte that nobody has looked at; what is damaged is named, and what is not goes on. The same names
 * come from a full examination of a step with sums.
 *
 * Method: two steps with tensors of some MiB on the simulated disk, with and without pawl.sums, single bits flipped; reading by every call that hands out
 * bytes, by one thread and by many; files that are cut, on a real filesystem.
 */
#include "unit/read_support.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "base/cursor.h"
#include "checkpoint/block_sums.h"
#include "checkpoint/run.h"
#include "model/convert_model.h"
#include "pawl/run.h"
#include "sim/faultos.h"

#define MIB ((size_t)1 << 20)
/* The tensors of the model, in the order of the file, as tensors of one dtype are written by name: "big" over 3 MiB, "few" of 400 bytes, "mid" over 1 MiB. */
#define BIG ((size_t)3 << 18)
#define FEW ((size_t)100)
#define MID ((size_t)1 << 18)
#define MOMENTS ((size_t)5 << 17)
#define STEP_2 ROOT "/step-000002"
#define MODEL STEP_2 "/model.safetensors"

static float big[BIG], few[FEW], mid[MID], moments[MOMENTS];

static void
fill(unsigned version)
{
    for (size_t i = 0; i < BIG; i++)
        big[i] = (float)(i + version);
    for (size_t i = 0; i < FEW; i++)
        few[i] = -(float)(i * version);
    for (size_t i = 0; i < MID; i++)
        mid[i] = (float)(i * 3 + version);
    for (size_t i = 0; i < MOMENTS; i++)
        moments[i] = (float)(i * 5 + version);
}

static struct pawl_state *
describe(void)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_state *state = NULL;
    assert_int_equal(pawl_state_new(&state, &err), PAWL_OK);
    if (pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "big", PAWL_F32, big, BIG / 256, 256), &err) != PAWL_OK ||
        pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "few", PAWL_F32, few, FEW), &err) != PAWL_OK ||
        pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "mid", PAWL_F32, mid, MID), &err) != PAWL_OK ||
        pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "none", PAWL_F32, NULL, 0), &err) != PAWL_OK ||
        pawl_state_tensor(state, &PAWL_TENSOR(PAWL_OPTIMIZER, "moments", PAWL_F32, moments, MOMENTS), &err) != 0 ||
        pawl_state_file(state, PAWL_STR("note.txt"), "a note", 6, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return state;
}

/* Steps 1 and 2, durable; what is in memory afterwards is step 2. */
static struct simdisk *
make_root(bool with_sums, uint64_t max_file_bytes)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    struct simdisk *disk = simdisk_new();
    struct pawl_state *state = describe();
    const struct pawl_run_options options = PAWL_RUN_OPTIONS(.write_sums = with_sums, .max_file_bytes = max_file_bytes);
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err), PAWL_OK);
    for (unsigned step = 1; step <= 2; step++) {
        fill(step);
        if (pawl_run_save(run, state, step, NULL, &err) != PAWL_OK)
            fail_msg("%s", err.message);
    }
    assert_int_equal(pawl_run_close(run, NULL), PAWL_OK);
    pawl_state_free(state);
    struct simdisk *settled = simdisk_clone(disk);
    simdisk_free(disk);
    return settled;
}

static size_t
header_bytes(struct simdisk *disk, const char *path)
{
    size_t bytes = 0;
    const unsigned char *data = simdisk_get(disk, path, &bytes);
    assert_true(data != NULL && bytes > 8);
    return 8 + (size_t)pawl_get_u64le(data);
}

static struct pawl_ckpt *
open_by(const struct pawl_os *os, enum pawl_trust trust)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_ckpt *ckpt = NULL;
    const struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(.trust = trust);
    if (pawl_ckpt_open_newest_os(os, PAWL_STR(ROOT), &options, &ckpt, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return ckpt;
}

static struct pawl_ckpt *
open_lazily(struct simdisk *disk)
{
    return open_by(simdisk_os(disk), PAWL_TRUST_LAZY);
}

/* With a bit that is wrong, in "big" alone. */
static struct pawl_ckpt *
open_damaged(bool with_sums, struct simdisk **ret_disk)
{
    *ret_disk = make_root(with_sums, 0);
    simdisk_flip(*ret_disk, MODEL, MIB + 77, 0x10);
    return open_lazily(*ret_disk);
}

/* With every call of the system counted, those that open it too. */
static struct pawl_ckpt *
open_counted(bool with_sums, struct simdisk **ret_disk, struct faultos **ret_faults)
{
    *ret_disk = make_root(with_sums, 0);
    *ret_faults = faultos_new(simdisk_os(*ret_disk));
    return open_by(faultos_os(*ret_faults), PAWL_TRUST_LAZY);
}

static void
close_with(struct pawl_ckpt *ckpt, struct simdisk *disk)
{
    pawl_ckpt_close(ckpt);
    assert_int_equal(simdisk_open_handles(disk), 0);
    simdisk_free(disk);
}

static const struct pawl_tensor_info *
find(const struct pawl_ckpt *ckpt, const char *name)
{
    const struct pawl_tensor_info *info = pawl_model_find(pawl_ckpt_model(ckpt), pawl_str_z(name));
    assert_non_null(info);
    return info;
}

/* Read a tensor of the model; when that goes well its values must be those of `values`. */
static enum pawl_status
read_tensor(const struct pawl_ckpt *ckpt, const char *name, const float *values, struct pawl_error *err)
{
    const struct pawl_tensor_info *info = find(ckpt, name);
    size_t bytes = (size_t)(info->end - info->begin);
    void *data = malloc(bytes + 1);
    assert_non_null(data);
    enum pawl_status st = pawl_model_read(pawl_ckpt_model(ckpt), info, PAWL_F32, data, bytes, err);
    if (st == PAWL_OK)
        assert_memory_equal(data, values, bytes);
    free(data);
    return st;
}

static void
assert_damaged(enum pawl_status st, const struct pawl_error *err, const char *tensor, const char *message)
{
    if (st != PAWL_CORRUPT || strcmp(err->code, "hash") != 0 || strcmp(err->tensor, tensor) != 0 ||
        strstr(err->message, message) == NULL)
        fail_msg("status %d, code %s, tensor %s: %s", (int)st, err->code, err->tensor, err->message);
}

/* ---- what is right ---- */

static void
every_call_gives_the_values(void **state)
{
    (void)state;
    for (int with_sums = 0; with_sums < 2; with_sums++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct simdisk *disk = make_root(with_sums != 0, with_sums != 0 ? 0 : 2 * MIB);
        struct pawl_ckpt *ckpt = open_lazily(disk);
        float row[2][256];
        const void *mapped = NULL;
        assert_int_equal(pawl_ckpt_step(ckpt), 2);
        assert_true(pawl_ckpt_is_complete(ckpt));
        assert_int_equal(pawl_ckpt_trainer_state(ckpt)->step, 2);
        assert_int_equal(read_tensor(ckpt, "big", big, &err), PAWL_OK);
        assert_int_equal(read_tensor(ckpt, "few", few, &err), PAWL_OK);
        assert_int_equal(read_tensor(ckpt, "none", NULL, &err), PAWL_OK);
        assert_int_equal(pawl_model_map(pawl_ckpt_model(ckpt), find(ckpt, "mid"), &mapped, NULL, &err), PAWL_OK);
        assert_memory_equal(mapped, mid, sizeof mid);
        const struct pawl_slice_axis axis = { 7, 9, 1, PAWL_SLICE_START | PAWL_SLICE_STOP };
        assert_int_equal(pawl_model_read_slice(pawl_ckpt_model(ckpt), find(ckpt, "big"), &axis, 1, PAWL_F32,
                                               PAWL_OVERFLOW_FORMAT, row, sizeof row, &err),
                         PAWL_OK);
        assert_memory_equal(row, big + 7 * 256, sizeof row);
        close_with(ckpt, disk);
    }
}

/* Goal: a byte is looked at once. Method: count the reading calls of a second touch, and of a touch of the neighbours in the same block. */
static void
what_was_looked_at_is_not_looked_at_again(void **state)
{
    (void)state;
    for (int with_sums = 0; with_sums < 2; with_sums++) {
        struct simdisk *disk;
        struct faultos *faults;
        struct pawl_ckpt *ckpt = open_counted(with_sums != 0, &disk, &faults);
        const void *mapped;
        faultos_reset(faults);
        assert_int_equal(pawl_model_map(pawl_ckpt_model(ckpt), find(ckpt, "few"), &mapped, NULL, NULL), PAWL_OK);
        unsigned first = faultos_calls(faults, SIM_FILE_READ_AT);
        assert_true(with_sums ? first == 8 : first > 1); /* a block by eighths of a MiB; or the whole file */
        assert_int_equal(pawl_model_map(pawl_ckpt_model(ckpt), find(ckpt, "few"), &mapped, NULL, NULL), PAWL_OK);
        assert_int_equal(faultos_calls(faults, SIM_FILE_READ_AT), first);
        assert_int_equal(pawl_model_map(pawl_ckpt_model(ckpt), find(ckpt, "mid"), &mapped, NULL, NULL), PAWL_OK);
        unsigned second = faultos_calls(faults, SIM_FILE_READ_AT);
        assert_true(with_sums ? second > first && second <= first + 8 : second == first);
        close_with(ckpt, disk);
        faultos_free(faults);
    }
}

/* ---- damaged tensors ---- */

static void
a_damaged_tensor_is_named(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = make_root(true, 0);
    size_t header = header_bytes(disk, MODEL);
    const void *mapped = NULL;
    float row[256];
    char wanted[256];
    simdisk_flip(disk, MODEL, MIB + 77, 0x10); /* in "big" alone */
    simdisk_flip(disk, MODEL, MIB + 78, 0x10);
    simdisk_flip(disk, MODEL, 2 * MIB, 0x01);
    struct pawl_ckpt *ckpt = open_lazily(disk);
    assert_int_equal(pawl_ckpt_step(ckpt), 2);

    for (int i = 0; i < 2; i++) { /* the error stays */
        assert_damaged(read_tensor(ckpt, "big", big, &err), &err, "big",
                       "tensor 'big': bytes 1048576 ... 2097151 of 'model.safetensors' are damaged: expected xxh64 ");
        assert_non_null(strstr(err.message, ", and 1 more blocks"));
        assert_true(err.offset == MIB);
        assert_string_equal(err.path, MODEL);
        assert_string_equal(err.hint, "open step-000001 instead: the newest older step whose files have their sizes");
    }
    const unsigned char *data = simdisk_get(disk, MODEL, &(size_t){ 0 });
    (void)snprintf(wanted, sizeof wanted, ", found %016" PRIx64, pawl_xxh64(data + MIB, MIB, 0));
    assert_non_null(strstr(err.message, wanted));
    assert_damaged(pawl_model_map(pawl_ckpt_model(ckpt), find(ckpt, "big"), &mapped, NULL, &err), &err, "big",
                   "bytes 1048576 ... 2097151");
    assert_null(mapped);
    assert_int_equal(read_tensor(ckpt, "mid", mid, &err), PAWL_OK);
    assert_int_equal(read_tensor(ckpt, "few", few, &err), PAWL_OK);

    /* Of a slice, just the blocks that it is in: the last whole row in front of the damaged block, the row at its edge, and those behind. */
    size_t edge = (MIB - header) / 1024;
    for (size_t i = edge - 1; i <= edge + 1; i++) {
        const struct pawl_slice_axis axis = { .start = (int64_t)i, .flags = PAWL_SLICE_START | PAWL_SLICE_INDEX };
        enum pawl_status st = pawl_model_read_slice(pawl_ckpt_model(ckpt), find(ckpt, "big"), &axis, 1, PAWL_F32,
                                                    PAWL_OVERFLOW_FORMAT, row, sizeof row, &err);
        if (i < edge) {
            assert_int_equal(st, PAWL_OK);
            assert_memory_equal(row, big + i * 256, sizeof row);
        } else {
            assert_damaged(st, &err, "big", "bytes 1048576 ... 2097151");
        }
    }
    close_with(ckpt, disk);
}

/* Every other row of the first half, backwards, with the damage at the last byte that is wanted, and one behind it. */
static void
slices_ask_for_just_what_they_hand_out(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = make_root(true, 0);
    size_t header = header_bytes(disk, MODEL);
    static float out[BIG];
    simdisk_flip(disk, MODEL, MIB, 0x01); /* the first byte of the second block */
    struct pawl_ckpt *ckpt = open_lazily(disk);
    size_t edge = (MIB - header) / 1024; /* the row that goes over the edge */
    size_t cut = (MIB - header) % 1024 / 4;
    for (int with_edge = 0; with_edge < 2; with_edge++) {
        const struct pawl_slice_axis axes[2] = {
            { (int64_t)edge, -(int64_t)(BIG / 256) - 1, -1, PAWL_SLICE_START | PAWL_SLICE_STOP },
            { 0, (int64_t)cut + with_edge, 1, PAWL_SLICE_START | PAWL_SLICE_STOP },
        };
        size_t bytes = (edge + 1) * (cut + (size_t)with_edge) * 4;
        enum pawl_status st = pawl_model_read_slice(pawl_ckpt_model(ckpt), find(ckpt, "big"), axes, 2, PAWL_F32,
                                                    PAWL_OVERFLOW_FORMAT, out, bytes, &err);
        if (with_edge == 0) {
            if (st != PAWL_OK)
                fail_msg("%s", err.message);
            assert_true(out[0] == big[edge * 256]);
        } else {
            assert_damaged(st, &err, "big", "bytes 1048576 ... 2097151");
        }
    }
    close_with(ckpt, disk);
}

static void
without_sums_the_file_is_what_is_damaged(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk;
    struct pawl_ckpt *ckpt = open_damaged(false, &disk);
    for (int i = 0; i < 2; i++) {
        assert_damaged(read_tensor(ckpt, "few", few, &err), &err, "few",
                       "tensor 'few': 'model.safetensors' is damaged: expected sha256 ");
        assert_string_equal(err.hint, "open step-000001 instead: the newest older step whose files have their sizes");
        assert_string_equal(err.path, MODEL);
    }
    const struct pawl_model *optimizer = pawl_ckpt_optimizer(ckpt);
    static float data[MOMENTS];
    assert_int_equal(
        pawl_model_read(optimizer, pawl_model_find(optimizer, PAWL_STR("moments")), PAWL_F32, data, sizeof data, &err),
        PAWL_OK);
    assert_memory_equal(data, moments, sizeof data);
    close_with(ckpt, disk);
}

static void
the_hint_knows_when_there_is_no_other_step(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = make_root(true, 0);
    simdisk_put_text(disk, ROOT "/step-000001/trainer_state.json", "{}");
    simdisk_flip(disk, MODEL, MIB + 77, 0x10);
    struct pawl_ckpt *ckpt = open_lazily(disk);
    assert_int_equal(read_tensor(ckpt, "big", big, &err), PAWL_CORRUPT);
    assert_string_equal(err.hint,
                        "no older step is there to open instead: bring the file back from a copy of this one");
    close_with(ckpt, disk);
}

static void
nothing_damaged_is_converted(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk;
    struct pawl_ckpt *ckpt = open_damaged(true, &disk);
    assert_int_equal(
        pawl_convert_os(simdisk_os(disk), pawl_ckpt_model(ckpt), PAWL_STR("out.safetensors"), NULL, NULL, &err),
        PAWL_CORRUPT);
    assert_string_equal(err.code, "hash");
    assert_false(simdisk_has(disk, "out.safetensors"));
    close_with(ckpt, disk);
}

/* An error of reading is no verdict: the next who asks tries again. */
static void
a_failed_reading_is_tried_again(void **state)
{
    (void)state;
    for (int with_sums = 0; with_sums < 2; with_sums++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct simdisk *disk;
        struct faultos *faults;
        struct pawl_ckpt *ckpt = open_counted(with_sums != 0, &disk, &faults);
        faultos_fail(faults, SIM_FILE_READ_AT, 1, 1, EIO); /* twice: it is believed */
        assert_int_equal(read_tensor(ckpt, "big", big, &err), PAWL_IO);
        assert_true(faultos_was_met(faults));
        assert_int_equal(read_tensor(ckpt, "big", big, &err), PAWL_OK);
        close_with(ckpt, disk);
        faultos_free(faults);
    }
}

/* ---- which step is opened ---- */

/* The step that a lazy opening takes, and the problems of those it passed over. */
static int64_t
newest_by_lazy(struct simdisk *disk, char *text, size_t size)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    const struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(.trust = PAWL_TRUST_LAZY);
    if (pawl_ckpt_open_newest_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &ckpt, &report, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    size_t n = 0;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    text[0] = '\0';
    if (n != 0)
        (void)print_verdict(text, size, &verdicts[0]);
    int64_t step = pawl_ckpt_step(ckpt);
    pawl_report_free(report);
    pawl_ckpt_close(ckpt);
    return step;
}

static void
what_makes_a_step_pass_over(void **state)
{
    (void)state;
    static const struct {
        bool with_sums;
        const char *file;
        uint64_t offset; /* of a flipped bit; UINT64_MAX: a byte behind the end is added instead */
        int64_t step;
        const char *problems;
    } cases[] = {
        { true, MODEL, 2 * MIB, 2, "" },
        { true, STEP_2 "/optimizer.safetensors", 2 * MIB, 2, "" },
        { true, STEP_2 "/note.txt", 1, 2, "" },
        { true, STEP_2 "/trainer_state.json", 3, 1, "hash trainer_state.json" },
        { true, STEP_2 "/pawl.sums", 60, 1, "hash pawl.sums" },
        { true, MODEL, UINT64_MAX, 1, "size model.safetensors" },
        /* In the header, an escape of the name "big": it still reads, as "cig". */
        { true, MODEL, 0, 1, "hash model.safetensors, hash model.safetensors" },
        { false, MODEL, 0, 2, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct simdisk *disk = make_root(cases[i].with_sums, 0);
        char text[256];
        size_t bytes = 0;
        const unsigned char *data = simdisk_get(disk, cases[i].file, &bytes);
        if (cases[i].offset == UINT64_MAX) {
            unsigned char *longer = calloc(1, bytes + 1);
            memcpy(longer, data, bytes);
            simdisk_put(disk, cases[i].file, longer, bytes + 1);
            free(longer);
        } else if (cases[i].offset == 0) {
            edit_file(disk, cases[i].file, "\"big\"", "\"cig\"");
        } else {
            simdisk_flip(disk, cases[i].file, cases[i].offset, 0x20);
        }
        int64_t step = newest_by_lazy(disk, text, sizeof text);
        if (step != cases[i].step || strcmp(text, cases[i].problems) != 0)
            fail_msg("case %zu: step %" PRId64 ", %s", i, step, text);
        simdisk_free(disk);
    }
}

/* Names that nobody has looked at are part of what is hashed before their bytes are handed out: as they were parsed, whatever the file says by then. */
static void
without_sums_a_damaged_header_is_found_at_the_touch(void **state)
{
    (void)state;
    for (int is_mended = 0; is_mended < 2; is_mended++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct simdisk *disk = make_root(false, 0);
        size_t bytes = 0;
        const char *data = (const char *)simdisk_get(disk, MODEL, &bytes);
        uint64_t at = (uint64_t)(strstr(data + 8, "\"big\"") + 1 - data);
        simdisk_flip(disk, MODEL, at, 0x01); /* "cig" */
        struct pawl_ckpt *ckpt = open_lazily(disk);
        if (is_mended)
            simdisk_flip(disk, MODEL, at, 0x01);
        assert_damaged(read_tensor(ckpt, "cig", big, &err), &err, "cig", "'model.safetensors' is damaged");
        close_with(ckpt, disk);
    }
}

/* ---- sums that are wrong themselves ---- */

/* Make the sums of step 2 say something else, list them as they are, and examine. */
static void
assert_sums_verdict(size_t at, uint64_t word, size_t more, const char *message)
{
    struct simdisk *disk = make_root(true, 0);
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    struct pawl_dir root = open_root(disk);
    size_t bytes = 0, n = 0;
    const unsigned char *data = simdisk_get(disk, STEP_2 "/pawl.sums", &bytes);
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    assert_true(pawl_buffer_add(&text, data, bytes) && pawl_buffer_reserve(&text, more));
    memset(text.data + text.len, 0, more);
    text.len += more;
    pawl_put_u64le((unsigned char *)text.data + at, word);
    pawl_sums_seal(&text);
    put_listed(disk, "step-000002", "pawl.sums", text.data, text.len);
    assert_int_equal(pawl_step_examine(&step, &root, "step-000002", &(struct pawl_step_options){ 0 }, report, NULL),
                     PAWL_OK);
    pawl_report_end_verdict(report);
    const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
    const struct pawl_problem *problem = verdict->n_problems == 0 ? verdict->warnings : verdict->problems;
    assert_int_equal(verdict->n_problems + verdict->n_warnings, 1);
    assert_string_equal(problem->code, "content");
    assert_true(pawl_str_equal(problem->file, PAWL_STR("pawl.sums")));
    if (strstr(problem->message, message) == NULL)
        fail_msg("%s", problem->message);
    assert_true(step.is_complete == (verdict->n_problems == 0));
    assert_int_equal(step.sums.n, 0);
    pawl_dir_release(&root);
    pawl_report_free(report);
    pawl_step_release(&step);
    pawl_buffer_release(&text);
    simdisk_free(disk);
}

static void
sums_that_do_not_fit_are_wrong_in_content(void **state)
{
    (void)state;
    assert_sums_verdict(0, 0, 0, "it does not begin with PAWLSUMS");
    assert_sums_verdict(8, 2, 0, "the sums are not used: version 2, this Pawl knows version 1");
    assert_sums_verdict(40, 4 * MIB + 1000, 0, "bytes, listed are "); /* as many blocks, other bytes */
    assert_sums_verdict(40 + 32 + 8, UINT64_C(0x2e736c65646f6d2e), 0, "is no name of a tensor file");
}

static void
sums_of_other_files_are_wrong_in_content(void **state)
{
    (void)state;
    struct pawl_sums_file files[3] = {
        { .name = PAWL_STR("model-00001-of-00001.safetensors"), .bytes = 10, .header_bytes = 10 },
        { .name = PAWL_STR("model.safetensors") },
        { .name = PAWL_STR("optimizer.safetensors") },
    };
    struct simdisk *disk = make_root(true, 0);
    for (size_t first = 0; first < 2; first++) {
        char text[256];
        struct pawl_buffer out = PAWL_BUFFER_INIT;
        for (size_t i = 1; i < 3; i++) {
            char path[64];
            size_t bytes = 0;
            (void)snprintf(path, sizeof path, STEP_2 "/%.*s", PAWL_ARG(files[i].name));
            const unsigned char *data = simdisk_get(disk, path, &bytes);
            assert_non_null(data);
            files[i].bytes = bytes;
            files[i].header_bytes = header_bytes(disk, path);
            files[i].header_sum = pawl_xxh64(data, (size_t)files[i].header_bytes, 0);
        }
        /* one too many; then one too few */
        assert_int_equal(pawl_sums_lay_out(files + 2 * first, 3 - 2 * first, &out, NULL), PAWL_OK);
        pawl_sums_seal(&out);
        put_listed(disk, "step-000002", "pawl.sums", out.data, out.len);
        assert_int_equal(newest_by_lazy(disk, text, sizeof text), 1);
        assert_string_equal(text, "content pawl.sums");
        pawl_buffer_release(&out);
    }
    simdisk_free(disk);
}

/* The sum of a header that is right by its sha256: the sums are to blame, and not the file. */
static void
a_wrong_sum_of_a_header_is_a_fault_of_the_sums(void **state)
{
    (void)state;
    char text[256];
    struct simdisk *disk = make_root(true, 0);
    size_t bytes = 0;
    const unsigned char *data = simdisk_get(disk, STEP_2 "/pawl.sums", &bytes);
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    assert_true(pawl_buffer_add(&out, data, bytes));
    pawl_put_u64le((unsigned char *)out.data + 40 + 16, 1);
    pawl_sums_seal(&out);
    put_listed(disk, "step-000002", "pawl.sums", out.data, out.len);
    assert_int_equal(newest_by_lazy(disk, text, sizeof text), 1);
    assert_string_equal(text, "content pawl.sums");
    pawl_buffer_release(&out);
    simdisk_free(disk);
}

/* ---- what is told of a damaged step ---- */

/* "hash model.safetensors:big@1048576" for each problem, in their order. */
static const char *
print_places(char *text, size_t size, const struct pawl_report *report)
{
    size_t used = 0, n = 0;
    const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
    text[0] = '\0';
    for (size_t i = 0; n != 0 && i < verdict->n_problems; i++) {
        const struct pawl_problem *p = &verdict->problems[i];
        used += (size_t)snprintf(text + used, size - used, "%s%s %.*s", i == 0 ? "" : ", ", p->code, PAWL_ARG(p->file));
        if (p->tensor.data != NULL)
            used += (size_t)snprintf(text + used, size - used, ":%.*s", PAWL_ARG(p->tensor));
        if (p->offset != PAWL_OFFSET_NONE)
            used += (size_t)snprintf(text + used, size - used, "@%" PRIu64, p->offset);
    }
    return text;
}

/* Flips in "big" (two blocks), in the block that "big", "few" and "mid" share, and in the optimizer's only tensor. */
static void
damage(struct simdisk *disk, char *ret_shared, size_t size)
{
    size_t header = header_bytes(disk, MODEL);
    size_t few_at = header + sizeof big;
    simdisk_flip(disk, MODEL, MIB + 1, 0x02);
    simdisk_flip(disk, MODEL, 2 * MIB + 1, 0x02);
    simdisk_flip(disk, MODEL, few_at + 5, 0x02);
    simdisk_flip(disk, STEP_2 "/optimizer.safetensors", 2 * MIB + 9, 0x02);
    (void)snprintf(ret_shared, size,
                   "hash model.safetensors:big@1048576, hash model.safetensors:few@%zu, hash "
                   "model.safetensors:mid@%zu, ",
                   few_at, few_at + sizeof few);
}

static void
a_full_examination_names_the_tensors(void **state)
{
    (void)state;
    struct simdisk *disk = make_root(true, 0);
    struct pawl_dir root = open_root(disk);
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    char shared[256], wanted[640], text[640];
    damage(disk, shared, sizeof shared);
    assert_int_equal(pawl_step_examine(&step, &root, "step-000002", &(struct pawl_step_options){ 0 }, report, NULL),
                     PAWL_OK);
    pawl_report_end_verdict(report);
    (void)snprintf(wanted, sizeof wanted,
                   "hash model.safetensors, %shash optimizer.safetensors, hash optimizer.safetensors:moments@2097152",
                   shared);
    assert_string_equal(print_places(text, sizeof text, report), wanted);
    size_t n = 0;
    const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
    assert_non_null(strstr(verdict->problems[1].message,
                           "tensor 'big' lies in 3 damaged blocks among bytes 1048576 ... 4194303, the first: "));
    assert_non_null(strstr(verdict->problems[2].message,
                           "tensor 'few' lies in damaged bytes 3145728 ... 4194303: expected xxh64 "));
    pawl_report_free(report);
    pawl_step_release(&step);
    pawl_dir_release(&root);
    simdisk_free(disk);
}

/* Of a header that can't be believed, the bytes; of a whole file without a wrong block, that it is the manifest's hash. */
static void
damage_without_names(void **state)
{
    (void)state;
    for (int is_header = 0; is_header < 2; is_header++) {
        struct simdisk *disk = make_root(true, 0);
        struct pawl_dir root = open_root(disk);
        struct pawl_step step = { 0 };
        struct pawl_report *report = pawl_report_new();
        char text[256];
        size_t n = 0;
        if (is_header) {
            edit_file(disk, MODEL, "\"big\"", "\"cig\"");
        } else { /* another digit in its hash */
            size_t bytes = 0;
            const char *manifest = (const char *)simdisk_get(disk, STEP_2 "/MANIFEST.json", &bytes);
            const char *digit = strstr(strstr(manifest, "\"model.safetensors\""), "\"sha256\": \"") + 11;
            while (*digit > '9')
                digit++;
            simdisk_flip(disk, STEP_2 "/MANIFEST.json", (uint64_t)(digit - manifest), 0x01);
        }
        enum pawl_status st =
            pawl_step_examine(&step, &root, "step-000002", &(struct pawl_step_options){ 0 }, report, NULL);
        assert_int_equal(st, PAWL_OK);
        pawl_report_end_verdict(report);
        const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
        if (is_header) {
            assert_string_equal(print_places(text, sizeof text, report),
                                "hash model.safetensors, hash model.safetensors@0");
            assert_non_null(strstr(verdict->problems[1].message, "damaged bytes 0 ... 1048575: expected xxh64 "));
        } else {
            assert_string_equal(print_places(text, sizeof text, report), "hash model.safetensors");
            assert_int_equal(verdict->n_warnings, 1);
            assert_string_equal(verdict->warnings[0].code, "sums");
        }
        pawl_report_free(report);
        pawl_step_release(&step);
        pawl_dir_release(&root);
        simdisk_free(disk);
    }
}

/* A file that is damaged all over says so in a hundred lines and one. */
static void
no_endless_lists(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_run *run = NULL;
    struct pawl_state *many = NULL;
    struct simdisk *disk = simdisk_new();
    const struct pawl_run_options options = PAWL_RUN_OPTIONS(.write_sums = 1);
    assert_int_equal(pawl_state_new(&many, &err), PAWL_OK);
    for (size_t i = 0; i < 150; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "t%03zu", i);
        assert_int_equal(pawl_state_tensor(many, &PAWL_TENSOR(PAWL_MODEL, name, PAWL_F32, big + i, 1), &err), PAWL_OK);
    }
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, &err), PAWL_OK);
    assert_int_equal(pawl_run_save(run, many, 2, NULL, &err), PAWL_OK);
    assert_int_equal(pawl_run_close(run, NULL), PAWL_OK);
    pawl_state_free(many);
    simdisk_flip(disk, MODEL, header_bytes(disk, MODEL) + 4, 0x01);
    struct pawl_dir root = open_root(disk);
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    size_t n = 0;
    assert_int_equal(pawl_step_examine(&step, &root, "step-000002", &(struct pawl_step_options){ 0 }, report, NULL),
                     PAWL_OK);
    pawl_report_end_verdict(report);
    const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
    assert_int_equal(verdict->n_problems, 102);
    assert_string_equal(verdict->problems[101].message, "and 50 more tensors in damaged blocks");
    pawl_report_free(report);
    pawl_step_release(&step);
    pawl_dir_release(&root);
    simdisk_free(disk);
}

/* ---- verifying the rest ---- */

static enum pawl_status
verify(struct pawl_ckpt *ckpt, char *text, size_t size, struct pawl_error *err)
{
    struct pawl_report *report = NULL;
    enum pawl_status st = pawl_ckpt_verify(ckpt, &report, err);
    (void)print_places(text, size, report);
    pawl_report_free(report);
    return st;
}

static void
the_rest_is_verified_on_request(void **state)
{
    (void)state;
    for (int with_sums = 0; with_sums < 2; with_sums++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        char text[640], wanted[640], shared[256];
        struct simdisk *disk = make_root(with_sums != 0, 0);
        struct pawl_ckpt *ckpt = open_lazily(disk);
        for (int i = 0; i < 2; i++)
            assert_int_equal(verify(ckpt, text, sizeof text, &err), PAWL_OK);
        pawl_ckpt_close(ckpt);

        damage(disk, shared, sizeof shared);
        simdisk_flip(disk, STEP_2 "/note.txt", 1, 0x20);
        ckpt = open_lazily(disk);
        assert_int_equal(read_tensor(ckpt, "big", big, &err), PAWL_CORRUPT);
        assert_int_equal(verify(ckpt, text, sizeof text, &err), PAWL_INCOMPLETE);
        if (with_sums)
            (void)snprintf(wanted, sizeof wanted,
                           "hash model.safetensors@1048576, %shash note.txt, hash optimizer.safetensors@2097152, hash "
                           "optimizer.safetensors:moments@2097152",
                           shared);
        else
            (void)snprintf(wanted, sizeof wanted, "hash model.safetensors, hash note.txt, hash optimizer.safetensors");
        assert_string_equal(text, wanted);
        assert_non_null(strstr(err.message, "step-000002 is damaged: 'model.safetensors': "));
        close_with(ckpt, disk);
    }
}

static void
verifying_what_was_not_opened_lazily(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = make_root(true, 0);
    struct pawl_ckpt *ckpt = open_by(simdisk_os(disk), PAWL_TRUST_FULL);
    assert_int_equal(pawl_ckpt_verify(ckpt, NULL, &err), PAWL_OK);
    pawl_ckpt_close(ckpt);
    ckpt = open_by(simdisk_os(disk), PAWL_TRUST_SIZE_ONLY);
    assert_int_equal(pawl_ckpt_verify(ckpt, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message,
                        "step-000002 was opened by its sizes: open it with PAWL_TRUST_LAZY to verify it later");
    pawl_ckpt_close(ckpt);
    assert_int_equal(pawl_ckpt_verify(NULL, NULL, &err), PAWL_ARGUMENT);
    simdisk_free(disk);
}

static void
files_are_hashed_when_they_are_asked_for(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = make_root(true, 0);
    void *data = NULL;
    size_t bytes = 0;
    simdisk_flip(disk, STEP_2 "/note.txt", 1, 0x20);
    struct pawl_ckpt *ckpt = open_lazily(disk);
    assert_int_equal(pawl_ckpt_file(ckpt, PAWL_STR("note.txt"), &data, &bytes, &err), PAWL_CORRUPT);
    assert_null(data);
    close_with(ckpt, disk);
}

/* ---- restoring ---- */

static void
a_restore_hashes_what_it_reads(void **state)
{
    (void)state;
    for (int is_damaged = 0; is_damaged < 2; is_damaged++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_report *report = NULL;
        struct simdisk *disk = make_root(true, 0);
        struct pawl_state *mine = describe();
        char text[640], wanted[640], shared[256];
        if (is_damaged)
            damage(disk, shared, sizeof shared);
        struct pawl_ckpt *ckpt = open_lazily(disk);
        memset(big, 0, sizeof big);
        enum pawl_status st = pawl_ckpt_restore(ckpt, mine, NULL, &report, &err);
        if (is_damaged) {
            assert_int_equal(st, PAWL_INCOMPLETE);
            (void)snprintf(
                wanted, sizeof wanted,
                "hash model.safetensors, %shash optimizer.safetensors, hash optimizer.safetensors:moments@2097152",
                shared);
            assert_string_equal(print_places(text, sizeof text, report), wanted);
        } else {
            assert_int_equal(st, PAWL_OK);
            assert_true(big[5] == 7.0F);
        }
        pawl_report_free(report);
        pawl_ckpt_close(ckpt);
        pawl_state_free(mine);
        simdisk_free(disk);
    }
}

/* ---- by many threads ---- */

#define THREADS 6

struct toucher {
    const struct pawl_ckpt *ckpt;
    bool is_damaged;
    unsigned faults;
};

static void *
touch_all(void *context)
{
    struct toucher *t = context;
    const struct pawl_model *model = pawl_ckpt_model(t->ckpt);
    size_t n = 0;
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < n; i++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            const void *data = NULL;
            enum pawl_status st = pawl_model_map(model, &tensors[i], &data, NULL, &err);
            bool is_big = pawl_str_equal(tensors[i].name, PAWL_STR("big"));
            if (t->is_damaged && is_big)
                t->faults += st != PAWL_CORRUPT || strstr(err.message, "bytes 1048576 ... 2097151") == NULL;
            else
                t->faults += st != PAWL_OK || (is_big && memcmp(data, big, sizeof big) != 0);
        }
    }
    return NULL;
}

static void
threads_touch_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        bool with_sums = round % 3 != 2;
        bool is_damaged = round % 3 == 1;
        struct simdisk *disk = make_root(with_sums, 0);
        struct faultos *faults = faultos_new(simdisk_os(disk));
        struct toucher touchers[THREADS];
        pthread_t threads[THREADS];
        if (round >= 3)
            faultos_take_threads(faults);
        if (is_damaged)
            simdisk_flip(disk, MODEL, MIB + 77, 0x10);
        struct pawl_ckpt *ckpt = open_by(faultos_os(faults), PAWL_TRUST_LAZY);
        faultos_reset(faults);
        for (size_t i = 0; i < THREADS; i++) {
            touchers[i] = (struct toucher){ ckpt, is_damaged, 0 };
            assert_int_equal(pthread_create(&threads[i], NULL, touch_all, &touchers[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(touchers[i].faults, 0);
        }
        /* However many asked, every block was read once (a hint costs a look at the older step). */
        if (with_sums && !is_damaged)
            assert_int_equal(faultos_calls(faults, SIM_FILE_READ_AT), 4 * 8 + 1);
        close_with(ckpt, disk);
        faultos_free(faults);
    }
}

/* ---- a real filesystem: files that are cut ---- */

static void
remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char inner[1024];
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0)
            remove_folder(inner);
    }
    if (dir != NULL)
        (void)closedir(dir);
    (void)rmdir(path);
}

static void
a_file_cut_after_the_opening_is_an_error(void **state)
{
    (void)state;
    for (int with_sums = 0; with_sums < 2; with_sums++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_ckpt *ckpt = NULL;
        struct pawl_report *report = NULL;
        char folder[] = "lazyXXXXXX";
        char root[64], file[128], text[256];
        const void *mapped = NULL;
        struct simdisk *disk = make_root(with_sums != 0, 0);
        assert_non_null(mkdtemp(folder));
        (void)snprintf(root, sizeof root, "%s/root", folder);
        (void)snprintf(file, sizeof file, "%s/step-000002/model.safetensors", root);
        assert_int_equal(simdisk_export(disk, ROOT, root), 0);
        simdisk_free(disk);
        const struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(.trust = PAWL_TRUST_LAZY);
        assert_int_equal(pawl_ckpt_open_newest(pawl_str_z(root), &options, &ckpt, NULL, &err), PAWL_OK);
        assert_int_equal(read_tensor(ckpt, "big", big, &err), PAWL_OK);
        assert_int_equal(truncate(file, (off_t)(3 * MIB)), 0);
        assert_int_equal(pawl_model_map(pawl_ckpt_model(ckpt), find(ckpt, "mid"), &mapped, NULL, &err), PAWL_TRUNCATED);
        assert_int_equal(pawl_model_map(pawl_ckpt_model(ckpt), find(ckpt, "big"), &mapped, NULL, &err), PAWL_TRUNCATED);
        assert_int_equal(read_tensor(ckpt, "big", big, &err), PAWL_TRUNCATED);
        assert_null(mapped);
        assert_int_equal(pawl_ckpt_verify(ckpt, &report, &err), PAWL_INCOMPLETE);
        assert_string_equal(print_places(text, sizeof text, report),
                            with_sums ? "size model.safetensors@4194304" : "size model.safetensors");
        pawl_report_free(report);
        pawl_ckpt_close(ckpt);
        remove_folder(folder);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_gives_the_values),
        cmocka_unit_test(what_was_looked_at_is_not_looked_at_again),
        cmocka_unit_test(a_damaged_tensor_is_named),
        cmocka_unit_test(slices_ask_for_just_what_they_hand_out),
        cmocka_unit_test(without_sums_the_file_is_what_is_damaged),
        cmocka_unit_test(the_hint_knows_when_there_is_no_other_step),
        cmocka_unit_test(nothing_damaged_is_converted),
        cmocka_unit_test(a_failed_reading_is_tried_again),
        cmocka_unit_test(what_makes_a_step_pass_over),
        cmocka_unit_test(without_sums_a_damaged_header_is_found_at_the_touch),
        cmocka_unit_test(sums_that_do_not_fit_are_wrong_in_content),
        cmocka_unit_test(sums_of_other_files_are_wrong_in_content),
        cmocka_unit_test(a_wrong_sum_of_a_header_is_a_fault_of_the_sums),
        cmocka_unit_test(a_full_examination_names_the_tensors),
        cmocka_unit_test(damage_without_names),
        cmocka_unit_test(no_endless_lists),
        cmocka_unit_test(the_rest_is_verified_on_request),
        cmocka_unit_test(verifying_what_was_not_opened_lazily),
        cmocka_unit_test(files_are_hashed_when_they_are_asked_for),
        cmocka_unit_test(a_restore_hashes_what_it_reads),
        cmocka_unit_test(threads_touch_at_once),
        cmocka_unit_test(a_file_cut_after_the_opening_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
