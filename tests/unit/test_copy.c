/* checkpoint/copy.c: where a copy goes, what it is, and that nothing is left of one that failed. */
#include "unit/save_support.h"

#include "checkpoint/care.h"
#include "pawl/digest.h"

/* A bit of the last byte. */
static void
damage(struct simdisk *disk, const char *path)
{
    size_t bytes = 0;
    assert_non_null(simdisk_get(disk, path, &bytes));
    simdisk_flip(disk, path, bytes - 1, 1);
}

static enum pawl_status
copy(struct simdisk *disk, const char *step, const char *dest, struct pawl_copy_options options,
     struct pawl_report **ret_report, struct pawl_error *err)
{
    enum pawl_status st =
        pawl_ckpt_copy_os(simdisk_os(disk), pawl_str_z(step), pawl_str_z(dest), &options, ret_report, err);
    assert_int_equal(simdisk_open_handles(disk), 0);
    assert_int_equal(simdisk_open_maps(disk), 0);
    char *tree = simdisk_tree(disk, "");
    if (strstr(tree, ".tmp") != NULL || strstr(tree, ".old") != NULL)
        fail_msg("something is left:\n%s", tree);
    free(tree);
    return st;
}

/* Two directories with the same names and bytes. */
static void
assert_same(const struct simdisk *disk, const char *a, const char *b)
{
    char *left = simdisk_tree(disk, a);
    char *right = simdisk_tree(disk, b);
    assert_string_equal(left, right);
    for (char *line = strtok(left, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char paths[2][256];
        size_t bytes[2] = { 0, 0 };
        if (line[strlen(line) - 1] == '/')
            continue;
        (void)snprintf(paths[0], 256, "%s/%s", a, line);
        (void)snprintf(paths[1], 256, "%s/%s", b, line);
        const unsigned char *ours = simdisk_get(disk, paths[0], &bytes[0]);
        const unsigned char *theirs = simdisk_get(disk, paths[1], &bytes[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(ours, theirs, bytes[0]);
    }
    free(left);
    free(right);
}

/* Goal: a directory that is there gets step-N, every other name is the copy's own, and the report names it. */
static void
copies_go_where_they_should(void **state)
{
    (void)state;
    static const struct {
        const char *step, *dest, *path, *source;
    } cases[] = {
        { "root/step-000001", "archive", "archive/step-000001", "root/step-000001" },
        { "root", "archive", "archive/step-000002", "root/step-000002" },
        { "root/", "new", "./new", "root/step-000002" },
        { "new", "archive/deep/er/step-000002", "archive/deep/er/step-000002", "root/step-000002" },
        { "root/step-000001/", "archive/one/", "archive/one", "root/step-000001" },
        { "best", ".", "./step-000003", "best" },
    };
    struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 }, { 3, 3 } }, 3);
    struct pawl_dir root = PAWL_DIR_INIT, top = PAWL_DIR_INIT;
    const struct pawl_os *os = simdisk_os(disk);
    simdisk_put_dir(disk, "archive");
    /* Out of the root, under a name that is not ours. */
    assert_int_equal(pawl_dir_open_path(&root, os, ROOT, NULL), PAWL_OK);
    assert_int_equal(pawl_dir_open_path(&top, os, ".", NULL), PAWL_OK);
    assert_int_equal(os->rename(os->context, root.handle, "step-000003", top.handle, "best", PAWL_OS_REPLACE), 0);
    pawl_dir_release(&root);
    pawl_dir_release(&top);
    simdisk_put_text(disk, ROOT "/LATEST", "step-000002\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pawl_report *report = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        size_t n = 0;
        if (copy(disk, cases[i].step, cases[i].dest, PAWL_COPY_OPTIONS(0), &report, &err) != PAWL_OK)
            fail_msg("%s to %s: %s", cases[i].step, cases[i].dest, err.message);
        const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
        assert_int_equal(n, 1);
        assert_string_equal(verdicts[0].name, cases[i].path);
        assert_int_equal(verdicts[0].files, 4);
        assert_same(disk, cases[i].source, cases[i].path);
        pawl_report_free(report);
    }
    assert_string_equal(simdisk_text(disk, ROOT "/LATEST"), "step-000002\n");
    simdisk_free(disk);
}

/* Goal: what is there stays unless it is to be replaced, and then by the new one, whole, also where names can't be exchanged. */
static void
what_is_there_stays(void **state)
{
    (void)state;
    const unsigned lackings[] = { 0, SIM_EXCHANGE, SIM_EXCHANGE | SIM_NO_REPLACE };
    for (size_t i = 0; i < 3; i++) {
        struct simdisk *disk = disk_with((const struct saved[]){ { 1, 1 }, { 2, 2 } }, 2);
        struct pawl_error err = PAWL_ERROR_INIT;
        simdisk_lack(disk, lackings[i]);
        assert_int_equal(copy(disk, "root/step-000001", "other/step-000001", PAWL_COPY_OPTIONS(0), NULL, &err),
                         PAWL_OK);
        assert_int_equal(copy(disk, "root/step-000001", "plain", PAWL_COPY_OPTIONS(0), NULL, &err), PAWL_OK);
        damage(disk, "other/step-000001/model.safetensors");
        damage(disk, "plain/model.safetensors");
        uint64_t before = simdisk_fingerprint(disk);
        assert_int_equal(copy(disk, "root/step-000001", "other", PAWL_COPY_OPTIONS(0), NULL, &err), PAWL_EXISTS);
        assert_string_equal(err.message, "copy: 'step-000001' exists in 'other' and is not to be replaced");
        assert_int_equal(copy(disk, "root/step-000001", "plain", PAWL_COPY_OPTIONS(0), NULL, &err), PAWL_EXISTS);
        assert_int_equal(simdisk_fingerprint(disk), before);
        assert_int_equal(copy(disk, "root/step-000001", "other", PAWL_COPY_OPTIONS(.replace = 1), NULL, &err), PAWL_OK);
        assert_int_equal(copy(disk, "root/step-000002", "plain", PAWL_COPY_OPTIONS(.replace = 1), NULL, &err), PAWL_OK);
        assert_same(disk, "root/step-000001", "other/step-000001");
        assert_same(disk, "root/step-000002", "plain");
        simdisk_free(disk);
    }
}

static void
names_that_mean_something_are_refused(void **state)
{
    (void)state;
    const char *const names[] = { "other/step-000002", "other/step-000001.tmp", "other/step-000001.prev",
                                  "other/step-000001.bad" };
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    uint64_t before = simdisk_fingerprint(disk);
    struct pawl_error err = PAWL_ERROR_INIT;
    for (size_t i = 0; i < 4; i++) {
        char expected[128];
        (void)snprintf(expected, sizeof expected, "copy: a copy of step 1 can't be named '%s'", names[i] + 6);
        assert_int_equal(copy(disk, "root/step-000001", names[i], PAWL_COPY_OPTIONS(0), NULL, &err), PAWL_ARGUMENT);
        assert_string_equal(err.message, expected);
    }
    assert_int_equal(copy(disk, "root/step-000007", "x", PAWL_COPY_OPTIONS(0), NULL, &err), PAWL_NO_FILE);
    assert_int_equal(copy(disk, "root/step-000001", "", PAWL_COPY_OPTIONS(0), NULL, &err), PAWL_ARGUMENT);
    assert_int_equal(simdisk_fingerprint(disk), before);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    assert_int_equal(pawl_ckpt_copy_os(simdisk_os(disk), PAWL_STR("root/step-000001"), PAWL_STR("root"),
                                       &PAWL_COPY_OPTIONS(.replace = 1), NULL, &err),
                     PAWL_BUSY);
    close_run(run);
    simdisk_free(disk);
}

/* Goal: a damaged source is found while it is read, whichever file it is, named with its reason, and nothing is left. */
static void
damage_is_found_while_reading(void **state)
{
    (void)state;
    const char *const files[] = { "model.safetensors", "optimizer.safetensors", "trainer_state.json",
                                  "pawl.state.json" };
    for (size_t i = 0; i < 4; i++) {
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct pawl_report *report = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        char path[64];
        size_t bytes = 0, n = 0;
        (void)snprintf(path, sizeof path, ROOT "/step-000001/%s", files[i]);
        assert_non_null(simdisk_get(disk, path, &bytes));
        simdisk_flip(disk, path, bytes - 2, 1); /* the last value, or the last brace */
        enum pawl_status st = copy(disk, "root/step-000001", "copied", PAWL_COPY_OPTIONS(0), &report, &err);
        assert_int_equal(st, PAWL_INCOMPLETE);
        const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
        assert_int_equal(n, 1);
        assert_true(verdicts[0].n_problems == 1);
        assert_true(pawl_str_equal(verdicts[0].problems[0].file, pawl_str_z(files[i])));
        assert_false(simdisk_has(disk, "copied"));
        pawl_report_free(report);
        simdisk_free(disk);
    }
}

static void
short_writes_are_finished(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    for (unsigned nth = 0; nth < 5; nth++) {
        simdisk_fail(disk, SIM_FILE_WRITE_AT, nth, 0, 0);
        assert_int_equal(copy(disk, "root/step-000001", "copied", PAWL_COPY_OPTIONS(.replace = 1), NULL, &err),
                         PAWL_OK);
        assert_same(disk, "root/step-000001", "copied");
    }
    simdisk_free(disk);
}

/* A medium that changes what it is given: a bit of the n-th write. */
static unsigned until_lie;
static const struct pawl_os *honest;

static int
write_a_lie(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans, size_t n_spans,
            size_t *ret_written)
{
    unsigned char changed[8192];
    if (until_lie-- != 0 || n_spans == 0 || spans[0].bytes == 0 || spans[0].bytes > sizeof changed)
        return honest->file_write_at(context, file, offset, spans, n_spans, ret_written);
    memcpy(changed, spans[0].data, spans[0].bytes);
    changed[spans[0].bytes / 2] ^= 1;
    const struct pawl_os_span lie = { changed, spans[0].bytes };
    return honest->file_write_at(context, file, offset, &lie, 1, ret_written);
}

/* Goal: what does not read back as it was read gets no name, whichever of the files it is. */
static void
a_copy_that_does_not_read_back_gets_no_name(void **state)
{
    (void)state;
    unsigned nth = 0;
    for (;; nth++) {
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_os os = *simdisk_os(disk);
        honest = simdisk_os(disk);
        os.file_write_at = write_a_lie;
        until_lie = nth;
        uint64_t before = simdisk_fingerprint(disk);
        enum pawl_status st =
            pawl_ckpt_copy_os(&os, PAWL_STR("root/step-000001"), PAWL_STR("copied"), NULL, NULL, &err);
        bool was_told = until_lie > nth; /* it has wrapped */
        if (was_told) {
            assert_int_equal(st, PAWL_CORRUPT);
            assert_non_null(strstr(err.message, "copy: the copy does not read back as it was written: "));
            assert_int_equal(simdisk_fingerprint(disk), before);
        }
        simdisk_free(disk);
        if (!was_told) {
            assert_int_equal(st, PAWL_OK);
            break;
        }
    }
    assert_int_equal(nth, 5); /* four files and the manifest */
}

static int
cancel(void *context, uint64_t done, uint64_t total)
{
    unsigned *left = context;
    assert_true(done <= total);
    return (*left)-- == 0;
}

static void
a_copy_can_be_abandoned(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    uint64_t before = simdisk_fingerprint(disk);
    unsigned after = 0;
    for (;; after++) {
        unsigned left = after;
        enum pawl_status st = copy(disk, "root/step-000001", "copied",
                                   PAWL_COPY_OPTIONS(.progress = cancel, .context = &left), NULL, &err);
        if (st == PAWL_OK)
            break;
        assert_int_equal(st, PAWL_CANCELED);
        assert_int_equal(simdisk_fingerprint(disk), before);
    }
    assert_int_equal(after, 4); /* once a file at least */
    simdisk_free(disk);
}

/* Goal: listed files in folders are copied into folders. Method: a step with such a manifest, which other writers may make. */
static void
files_in_folders_are_copied(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    char hex[65], text[4096];
    unsigned char digest[32];
    const char *manifest = simdisk_text(disk, ROOT "/step-000001/MANIFEST.json");
    const char *list = strstr(manifest, "[");
    assert_int_equal(pawl_sha256_of("note", 4, digest, NULL), PAWL_OK);
    pawl_sha256_print(digest, hex);
    (void)snprintf(text, sizeof text,
                   "%.*s[{\"name\": \"a/b/note\", \"sha256\": \"%s\", \"bytes\": 4}, {\"name\": \"a/top\", \"sha256\": "
                   "\"%s\", \"bytes\": 4},%s",
                   (int)(list - manifest), manifest, hex, hex, list + 1);
    simdisk_put_text(disk, ROOT "/step-000001/MANIFEST.json", text);
    simdisk_put_text(disk, ROOT "/step-000001/a/b/note", "note");
    simdisk_put_text(disk, ROOT "/step-000001/a/top", "note");
    if (copy(disk, "root/step-000001", "copied", PAWL_COPY_OPTIONS(0), NULL, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_same(disk, "root/step-000001", "copied");
    /* Every folder was synced: after a loss of power with everything pending lost, all is there. */
    struct simdisk *after = simdisk_build_state(disk, simdisk_trace_len(disk), NULL, 0, 1);
    assert_same(after, "root/step-000001", "copied");
    simdisk_free(after);
    simdisk_free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_where_they_should),
        cmocka_unit_test(what_is_there_stays),
        cmocka_unit_test(names_that_mean_something_are_refused),
        cmocka_unit_test(damage_is_found_while_reading),
        cmocka_unit_test(short_writes_are_finished),
        cmocka_unit_test(a_copy_that_does_not_read_back_gets_no_name),
        cmocka_unit_test(a_copy_can_be_abandoned),
        cmocka_unit_test(files_in_folders_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
