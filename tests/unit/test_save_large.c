/*
 * Goal: a tensor of 5 GiB passes every 32-bit limit of a save: sizes, offsets, progress, the split, the manifest. Method: a sparse source over
 * a table that forgets what is written to files of tensors, so that it costs a hash and no disk. Long.
 */
#include "unit/save_support.h"

#include "unit/os_fixture.h"

#define LARGE_BYTES (UINT64_C(5) << 30)

static uint64_t written; /* bytes of files */
static uint64_t farthest;

static int
forget(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans, size_t n_spans,
       size_t *ret_written)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n_spans; i++)
        bytes += spans[i].bytes;
    farthest = offset + bytes > farthest ? offset + bytes : farthest;
    written += bytes;
    if (offset < 4096)
        return pawl_os_posix()->file_write_at(context, file, offset, spans, n_spans, ret_written);
    *ret_written = bytes;
    return 0;
}

static int
reserve_nothing(void *context, struct pawl_os_file *file, uint64_t bytes)
{
    (void)context;
    (void)file;
    (void)bytes;
    return 0;
}

static int
much_space(void *context, struct pawl_os_dir *dir, uint64_t *ret_available)
{
    (void)context;
    (void)dir;
    *ret_available = UINT64_MAX;
    return 0;
}

struct sparse {
    uint64_t next; /* where the next read must begin */
};

static enum pawl_status
read_sparse(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    struct sparse *sparse = context;
    (void)err;
    assert_true(offset == sparse->next);
    sparse->next = offset + n;
    memset(destination, 0, n);
    return PAWL_OK;
}

static uint64_t told;

static int
tell(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    assert_true(done >= told && done <= total && total > LARGE_BYTES);
    told = done;
    return 0;
}

static void
five_gib_in_one_tensor(void **state)
{
    (void)state;
    struct pawl_os os = *pawl_os_posix();
    struct sparse sparse = { 0 };
    struct pawl_source source = { LARGE_BYTES, read_sparse, &sparse };
    const uint64_t shape[] = { LARGE_BYTES / 4 };
    struct pawl_tensor tensor = { .size = sizeof tensor,
                                  .slot = PAWL_MODEL,
                                  .dtype = PAWL_F32,
                                  .name = PAWL_STR("large"),
                                  .rank = 1,
                                  .shape = shape,
                                  .source = &source };
    float small[2] = { 1, 2 };
    struct pawl_state *described = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    os.file_write_at = forget;
    os.file_reserve = reserve_nothing;
    os.dir_space = much_space;
    assert_int_equal(pawl_state_new(&described, NULL), PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &tensor, &err), PAWL_OK);
    assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "small", PAWL_F32, small, 2), &err),
                     PAWL_OK);
    struct pawl_run *run = open_run(&os, PAWL_RUN_OPTIONS(.progress = tell));
    if (pawl_run_save(run, described, 1, NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    close_run(run);
    assert_true(sparse.next == LARGE_BYTES);
    assert_true(farthest > LARGE_BYTES && written > LARGE_BYTES);
    /* Larger than the default limit: a shard of its own, and the total in the index. */
    assert_non_null(strstr(host_text(ROOT "/step-000001/model.safetensors.index.json"), "\"total_size\": 5368709128"));
    assert_non_null(strstr(host_text(ROOT "/step-000001/MANIFEST.json"), "\"bytes\": 53687"));
    pawl_state_free(described);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(five_gib_in_one_tensor, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
