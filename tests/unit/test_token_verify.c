#include "token_support.h"
#include "stream/token_verify.h"

/* The one verdict of a path: "ok", or "code file: message" of each problem, a line each; then "~code file" of warnings. */
static const char *
verify(const char *path, uint64_t vocabulary)
{
    static char text[4096];
    struct pawl_report *report = pawl_report_new();
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n, at = 0;
    if (pawl_token_verify(pawl_str_z(path), vocabulary, report, &err) != PAWL_OK) {
        (void)snprintf(text, sizeof text, "!%s", err.code);
        pawl_report_free(report);
        return text;
    }
    const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 1);
    assert_string_equal(verdict->name, path);
    text[0] = '\0';
    if (verdict->is_ok)
        at += (size_t)snprintf(text, sizeof text, "ok %" PRIu64 " %" PRIu64, verdict->files, verdict->bytes);
    for (size_t i = 0; i < verdict->n_problems; i++) {
        const struct pawl_problem *p = &verdict->problems[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %.*s: %s", at == 0 ? "" : "\n", p->code,
                               p->file.data == NULL ? 1 : (int)p->file.len, p->file.data == NULL ? "-" : p->file.data,
                               p->message);
    }
    for (size_t i = 0; i < verdict->n_warnings; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "\n~%s %.*s", verdict->warnings[i].code,
                               PAWL_ARG(verdict->warnings[i].file));
    pawl_report_free(report);
    return text;
}

/* Goal: a set is held against its manifest, file by file, and every id is looked at. Method: one fault each, then all. */
static void
faults_of_a_set_are_told(void **state)
{
    (void)state;
    struct pawl_token_writer *writer = NULL;
    struct pawl_token_writer_options options = PAWL_TOKEN_WRITER_OPTIONS(.max_ids = 2, .vocabulary = 9);
    fresh_folder("set");
    assert_int_equal(pawl_token_writer_open(PAWL_STR("set"), &options, &writer, NULL), PAWL_OK);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
        assert_int_equal(pawl_token_writer_add(writer, (uint32_t[]){ i, i + 1 }, 2, NULL), PAWL_OK);
    }
    assert_int_equal(pawl_token_writer_finish(writer, NULL, NULL, NULL), PAWL_OK);
    pawl_token_writer_close(writer);
    assert_string_equal(verify("set", 0), "ok 4 4112");
    assert_string_equal(verify("set/_MANIFEST.json", 9), "ok 4 4112");
    assert_string_equal(verify("set/train-00003.bin", 0), "ok 1 1028");

    put_shard("set/train-00001.bin", 2, 9, (uint32_t[]){ 5, 9 }, 2);    /* an id out of range */
    put_shard("set/train-00002.bin", 2, 9, (uint32_t[]){ 1, 2, 3 }, 3); /* another count */
    put_shard("set/train-00003.bin", 2, 9, (uint32_t[]){ 2, 4 }, 2);    /* another id */
    assert_int_equal(unlink("set/train-00004.bin"), 0);
    put_shard("set/train-00005.bin", 2, 9, (uint32_t[]){ 2, 4 }, 2);
    const char *text = verify("set", 0);
    assert_non_null(strstr(text, "id-range train-00001.bin: id 9 at position 1 is outside the vocabulary of 9\n"));
    assert_non_null(
        strstr(text, "\nmanifest train-00002.bin: _MANIFEST.json lists 2 ids in 'train-00002.bin', the file has 3"));
    assert_non_null(strstr(text, "\nhash train-00003.bin: sha256 is "));
    assert_non_null(strstr(text, "\nmissing-file train-00004.bin: _MANIFEST.json lists it"));
    assert_non_null(strstr(text, "\n~unlisted-file train-00005.bin"));

    put_text("set/_MANIFEST.json", "{");
    assert_memory_equal(verify("set", 0), "manifest _MANIFEST.json: ", 25);
    fresh_folder("set");
    assert_string_equal(verify("set", 0),
                        "content -: a directory of token shards has a _MANIFEST.json or files named *.bin");
    assert_string_equal(verify("gone", 0), "!not-found");
    assert_string_equal(verify(GOLDEN "bad/id-is-vocabulary.bin", 0) + 0,
                        "id-range -: id 256 at position 500 is outside the vocabulary of 256");
    assert_string_equal(verify(GOLDEN "byte.llmc1.bin", 100) + 0,
                        "id-range -: id 119 at position 2 is outside the vocabulary of 100");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_a_set_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
