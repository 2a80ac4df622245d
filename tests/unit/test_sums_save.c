/*
 * Goal: pawl.sums holds the sums of the very files that a save wrote, whichever way it wrote them, and only where it was asked for.
 *
 * Method: one state, with a strided tensor, a shared one and one from a source, saved over the simulated disk: one file after the other, by the
 * crew, in the background by a copy and by borrowing, whole and in shards; the document is made again here from the files and compared.
 */
#include "unit/save_support.h"

#include <errno.h>
#include "base/cursor.h"
#include "checkpoint/block_sums.h"
#include "sim/faultos.h"

#define FLOATS ((size_t)9 << 17) /* 4.5 MiB */
#define STEP ROOT "/step-000001"

static float *model, *optimizer;
static struct pawl_state *described;
static uint32_t counts[70];

static enum pawl_status
read_counts(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    (void)err;
    memcpy(destination, (const unsigned char *)context + offset, n);
    return PAWL_OK;
}

static void
describe(bool with_source)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    static const uint64_t shape[2] = { 1000, 100 };
    static const int64_t turned[2] = { 1, 1000 };
    static const uint64_t seventy = 70;
    static struct pawl_source source = { sizeof counts, read_counts, counts };
    assert_int_equal(pawl_state_new(&described, &err), PAWL_OK);
    struct pawl_tensor strided = PAWL_TENSOR(PAWL_MODEL, "strided", PAWL_F32, model, 1000, 100);
    strided.shape = shape;
    strided.strides = turned;
    struct pawl_tensor counted = PAWL_TENSOR(PAWL_OPTIMIZER, "counted", PAWL_U32, NULL, 70);
    counted.shape = &seventy;
    counted.source = &source;
    for (size_t i = 0; i < 6; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "w%zu", i);
        const struct pawl_tensor of_model =
            PAWL_TENSOR(PAWL_MODEL, name, PAWL_F32, model + i * (FLOATS / 6), FLOATS / 6);
        const struct pawl_tensor of_optimizer =
            PAWL_TENSOR(PAWL_OPTIMIZER, name, PAWL_F32, optimizer + i * (FLOATS / 6), FLOATS / 6);
        assert_int_equal(pawl_state_tensor(described, &of_model, &err), PAWL_OK);
        assert_int_equal(pawl_state_tensor(described, &of_optimizer, &err), PAWL_OK);
    }
    assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "tied", PAWL_F32, model, FLOATS / 6), &err),
                     PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &strided, &err), PAWL_OK);
    if (with_source)
        assert_int_equal(pawl_state_tensor(described, &counted, &err), PAWL_OK);
}

static int
set_up(void **state)
{
    (void)state;
    model = malloc(FLOATS * sizeof *model);
    optimizer = malloc(FLOATS * sizeof *optimizer);
    if (model == NULL || optimizer == NULL)
        return -1;
    for (size_t i = 0; i < FLOATS; i++) {
        model[i] = (float)i;
        optimizer[i] = -(float)(i * 7);
    }
    for (size_t i = 0; i < 70; i++)
        counts[i] = (uint32_t)i * 77;
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    pawl_state_free(described);
    described = NULL;
    free(model);
    free(optimizer);
    return 0;
}

/* The document as it must be, from the files that are there; the caller releases it. */
static struct pawl_buffer
expected_sums(struct simdisk *disk)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_manifest manifest;
    struct pawl_sums_file files[16];
    const unsigned char *contents[16];
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    size_t bytes = 0, n = 0;
    const unsigned char *text = simdisk_get(disk, STEP "/MANIFEST.json", &bytes);
    assert_int_equal(pawl_manifest_parse(&arena, &manifest, text, bytes, NULL), PAWL_OK);
    for (size_t i = 0; i < manifest.n; i++) {
        struct pawl_str name = manifest.files[i].name;
        char path[128];
        if (name.len < 12 || memcmp(name.data + name.len - 12, ".safetensors", 12) != 0)
            continue;
        (void)snprintf(path, sizeof path, STEP "/%.*s", PAWL_ARG(name));
        contents[n] = simdisk_get(disk, path, &bytes);
        assert_non_null(contents[n]);
        size_t header = 8 + (size_t)pawl_get_u64le(contents[n]);
        files[n] = (struct pawl_sums_file){
            .name = name, .bytes = bytes, .header_bytes = header, .header_sum = pawl_xxh64(contents[n], header, 0)
        };
        n++;
    }
    assert_int_equal(pawl_sums_lay_out(files, n, &out, NULL), PAWL_OK);
    for (size_t i = 0; i < n; i++) {
        unsigned char *to = (unsigned char *)out.data + (files[i].sums - (const unsigned char *)out.data);
        for (uint64_t at = 0; at < files[i].bytes; at += PAWL_SUMS_BLOCK_BYTES, to += 8) {
            uint64_t left = files[i].bytes - at;
            size_t len = left < PAWL_SUMS_BLOCK_BYTES ? (size_t)left : (size_t)PAWL_SUMS_BLOCK_BYTES;
            pawl_put_u64le(to, pawl_xxh64(contents[i] + at, len, 0));
        }
    }
    pawl_sums_seal(&out);
    pawl_arena_release(&arena);
    return out;
}

enum way { IN_TURN, BY_CREW, BY_COPY, BY_BORROWING, WAYS };

/* Save step 1; the fingerprint of the disk. */
static uint64_t
save_by(enum way way, uint64_t max_file_bytes, size_t *ret_bytes)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = simdisk_new();
    struct faultos *faults = faultos_new(simdisk_os(disk));
    if (way != IN_TURN)
        faultos_take_threads(faults);
    struct pawl_run *run =
        open_run(faultos_os(faults),
                 PAWL_RUN_OPTIONS(.write_sums = 1, .max_file_bytes = max_file_bytes,
                                  .snapshot = way == BY_BORROWING ? PAWL_SNAPSHOT_BORROW : PAWL_SNAPSHOT_COPY));
    enum pawl_status st;
    if (way == IN_TURN || way == BY_CREW) {
        st = pawl_run_save(run, described, 1, NULL, &err);
    } else {
        st = pawl_run_save_async(run, described, 1, NULL, NULL, &err);
        if (st == PAWL_OK)
            st = pawl_run_wait(run, &err);
    }
    if (st != PAWL_OK)
        fail_msg("%s", err.message);
    close_run(run);
    assert_root_holds(simdisk_os(disk));
    struct pawl_buffer expected = expected_sums(disk);
    const unsigned char *found = simdisk_get(disk, STEP "/pawl.sums", ret_bytes);
    assert_non_null(found);
    assert_int_equal(*ret_bytes, expected.len);
    assert_memory_equal(found, expected.data, expected.len);
    pawl_buffer_release(&expected);
    uint64_t fingerprint = simdisk_fingerprint(disk);
    assert_int_equal(simdisk_open_handles(disk), 0);
    faultos_free(faults);
    simdisk_free(disk);
    return fingerprint;
}

static void
every_way_gives_the_same_sums(void **state)
{
    (void)state;
    const uint64_t limits[] = { 0, (uint64_t)2 << 20 };
    for (int with_source = 0; with_source < 2; with_source++) {
        describe(with_source != 0);
        for (size_t i = 0; i < 2; i++) {
            size_t bytes = 0;
            uint64_t first = save_by(IN_TURN, limits[i], &bytes);
            assert_true(bytes > 120 && bytes < 1000);
            for (enum way way = BY_CREW; way < WAYS; way++)
                assert_true(save_by(way, limits[i], &bytes) == first);
        }
        pawl_state_free(described);
        described = NULL;
    }
}

static void
only_where_they_are_asked_for(void **state)
{
    (void)state;
    describe(false);
    struct simdisk *disk = simdisk_new();
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    assert_int_equal(pawl_run_save(run, described, 1, NULL, NULL), PAWL_OK);
    close_run(run);
    assert_true(simdisk_has(disk, STEP "/model.safetensors"));
    assert_false(simdisk_has(disk, STEP "/pawl.sums"));
    simdisk_free(disk);
}

/* ---- the document is a file of the save like another ---- */

static unsigned n_files, stop_at;
static uint64_t told, total;

static int
fail_at(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "save/after-file") == 0 && ++n_files == stop_at;
}

static int
tell(void *context, uint64_t done, uint64_t all)
{
    (void)context;
    told = done;
    total = all;
    return 0;
}

static void
a_save_that_ends_behind_it_leaves_nothing(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct simdisk *disk = simdisk_new();
    describe(false);
    struct pawl_run *run =
        open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.write_sums = 1, .failpoint = fail_at, .progress = tell));
    n_files = 0;
    stop_at = 4; /* model, optimizer, trainer_state.json, pawl.sums */
    assert_int_equal(pawl_run_save(run, described, 1, NULL, &err), PAWL_IO);
    assert_int_equal(n_files, 4);
    char *tree = simdisk_tree(disk, ROOT);
    assert_string_equal(tree, "");
    free(tree);
    stop_at = 0;
    assert_int_equal(pawl_run_save(run, described, 1, NULL, &err), PAWL_OK);
    assert_true(simdisk_has(disk, STEP "/pawl.sums"));
    assert_true(told == total && total > 2 * FLOATS * sizeof(float));
    close_run(run);
    simdisk_free(disk);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_way_gives_the_same_sums),
        TEST(only_where_they_are_asked_for),
        TEST(a_save_that_ends_behind_it_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
