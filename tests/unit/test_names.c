/* checkpoint/names.c: which names are ours. Goal: each rule of spelling, at its edge, on both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "checkpoint/documents.h"
#include "checkpoint/names.h"

static void
step_names_have_one_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t step;
    } CASES[] = {
        { "step-000000", 0 },
        { "step-000042", 42 },
        { "step-999999", 999999 },
        { "step-1000000", 1000000 },
        { "step-9223372036854775807", INT64_MAX },
        { "step-9223372036854775808", -1 }, /* 2^63 */
        { "step-18446744073709551616", -1 },
        { "step-99999999999999999999999999", -1 },
        { "step-5", -1 },
        { "step-00005", -1 },
        { "step-0000005", -1 },
        { "step-0999999", -1 },
        { "step-000005 ", -1 },
        { "step-000005.old", -1 },
        { "step-000005.prev", -1 },
        { "step-00000x", -1 },
        { "step-+00005", -1 },
        { "step--00005", -1 },
        { "Step-000005", -1 },
        { "step-", -1 },
        { "step", -1 },
        { "", -1 },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        assert_int_equal(pawl_step_of_name(pawl_str_z(CASES[i].name)), CASES[i].step);
    assert_int_equal(pawl_step_of_name(PAWL_STR("step-000005\0")), -1);
}

static void
names_are_printed_as_they_are_read(void **state)
{
    (void)state;
    static const int64_t STEPS[] = { 0, 1, 999999, 1000000, 9999999, INT64_MAX };
    char name[PAWL_STEP_NAME_BYTES];
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        pawl_step_name(STEPS[i], name);
        assert_int_equal(pawl_step_of_name(pawl_str_z(name)), STEPS[i]);
    }
    pawl_step_name(7, name);
    assert_string_equal(name, "step-000007");
    pawl_step_name(1234567, name);
    assert_string_equal(name, "step-1234567");
    pawl_step_name(-1, name);
    assert_string_equal(name, "");
    pawl_entry_name(INT64_MAX, ".prev", name); /* the longest there is */
    assert_string_equal(name, "step-9223372036854775807.prev");
}

static void
entries_of_a_root(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum pawl_root_entry entry;
        int64_t step;
    } CASES[] = {
        { "step-000020", PAWL_ENTRY_STEP, 20 },
        { "step-000020.prev", PAWL_ENTRY_PREV, 20 },
        { "step-000020.tmp", PAWL_ENTRY_TMP, 20 },
        { "step-000020.bad", PAWL_ENTRY_BAD, 20 },
        { "step-1000000.prev", PAWL_ENTRY_PREV, 1000000 },
        { "step-000020.bad.prev", PAWL_ENTRY_OTHER, 0 },
        { "step-000020.PREV", PAWL_ENTRY_OTHER, 0 },
        { "step-20.prev", PAWL_ENTRY_OTHER, 0 },
        { "step-.prev", PAWL_ENTRY_OTHER, 0 },
        { ".prev", PAWL_ENTRY_OTHER, 0 },
        { "best.prev", PAWL_ENTRY_OTHER, 0 },
        { "LATEST", PAWL_ENTRY_OTHER, 0 },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int64_t step = 0;
        assert_int_equal(pawl_entry_of_name(pawl_str_z(CASES[i].name), &step), CASES[i].entry);
        assert_int_equal(step, CASES[i].step);
        assert_int_equal(pawl_entry_of_name(pawl_str_z(CASES[i].name), NULL), CASES[i].entry);
    }
}

static void
latest_is_a_name_and_a_newline(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t step;
    } CASES[] = {
        { "step-000500\n", 500 },
        { "step-1000000\n", 1000000 },
        { "step-000500", -1 },
        { "", -1 },
        { "\n", -1 },
        { "step-000500\r\n", -1 },
        { "step-000500 ", -1 },
        { " step-000500\n", -1 },
        { "step-000500\n\n", -1 },
        { "step-500\n", -1 },
        { "./step-000500\n", -1 },
        { "step-000500.prev\n", -1 },
        { "step-000500.tmp\n", -1 },
        { "step-00050\n", -1 },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        assert_int_equal(pawl_latest_parse(CASES[i].text, strlen(CASES[i].text)), CASES[i].step);
    assert_int_equal(pawl_latest_parse("step-000500\0\n", 13), -1);
}

static void
tensor_files(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum pawl_tensor_file form;
    } CASES[] = {
        { "model.safetensors", PAWL_TENSOR_FILE_SINGLE },
        { "model.safetensors.index.json", PAWL_TENSOR_FILE_INDEX },
        { "model-00002-of-00004.safetensors", PAWL_TENSOR_FILE_SHARD },
        { "model-00000-of-00000.safetensors", PAWL_TENSOR_FILE_SHARD }, /* of that form, though no shard of anything */
        { "model-2-of-4.safetensors", PAWL_TENSOR_FILE_NO },
        { "model-00002-of-000004.safetensors", PAWL_TENSOR_FILE_NO },
        { "model-0000x-of-00004.safetensors", PAWL_TENSOR_FILE_NO },
        { "model-00002-of-00004.safetensors.index.json", PAWL_TENSOR_FILE_NO },
        { "model-00002-of-00004", PAWL_TENSOR_FILE_NO },
        { "model.safetensors2", PAWL_TENSOR_FILE_NO },
        { "models.safetensors", PAWL_TENSOR_FILE_NO },
        { "sub/model.safetensors", PAWL_TENSOR_FILE_NO },
        { "optimizer.safetensors", PAWL_TENSOR_FILE_NO },
        { "model", PAWL_TENSOR_FILE_NO },
        { "", PAWL_TENSOR_FILE_NO },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        assert_int_equal(pawl_tensor_file_of_name(pawl_str_z(CASES[i].name), PAWL_STR("model"), NULL, NULL),
                         CASES[i].form);
    uint32_t k = 0;
    uint32_t n = 0;
    assert_int_equal(
        pawl_tensor_file_of_name(PAWL_STR("optimizer-00012-of-99999.safetensors"), PAWL_STR("optimizer"), &k, &n),
        PAWL_TENSOR_FILE_SHARD);
    assert_int_equal(k, 12);
    assert_int_equal(n, 99999);
}

static void
attachment_names(void **state)
{
    (void)state;
    const struct {
        struct pawl_str name;
        const char *message; /* NULL: allowed */
    } CASES[] = {
        { PAWL_STR("note.txt"), NULL },
        { PAWL_STR(".hidden"), NULL },
        { PAWL_STR("..."), NULL },
        { PAWL_STR("a\nb"), NULL },
        { PAWL_STR("gr\xc3\xb6\xc3\x9f"
                   "e"),
          NULL },
        { PAWL_STR("model-1-of-2.safetensors"), NULL },
        { PAWL_STR("config.json5"), NULL },
        { PAWL_STR("config.json"), NULL },
        { PAWL_STR("pawl"), NULL },
        { PAWL_STR(""), "attachment '': the name is empty" },
        { PAWL_STR("."), "attachment '.': the name is a directory's" },
        { PAWL_STR(".."), "attachment '..': the name is a directory's" },
        { PAWL_STR("a/b"), "attachment 'a/b': the name has a slash" },
        { PAWL_STR("a\\b"), "attachment 'a\\b': the name has a backslash" },
        { PAWL_STR("a\0b"), "attachment 'a\\x00b': the name has a NUL" },
        { PAWL_STR("a\xff"), "attachment 'a\\xff': the name is not UTF-8" },
        { PAWL_STR("pawl.x"),
          "attachment 'pawl.x': the name begins with \"pawl.\", which is kept for files of the engine" },
        { PAWL_STR("MANIFEST.json"),
          "attachment 'MANIFEST.json': the name is kept for a file of the checkpoint's own" },
        { PAWL_STR("trainer_state.json"),
          "attachment 'trainer_state.json': the name is kept for a file of the checkpoint's own" },
        { PAWL_STR("optimizer.safetensors"),
          "attachment 'optimizer.safetensors': the name is kept for a file of the checkpoint's own" },
        { PAWL_STR("model.safetensors.index.json"),
          "attachment 'model.safetensors.index.json': the name is kept for a file of the checkpoint's own" },
        { PAWL_STR("model-00001-of-00002.safetensors"),
          "attachment 'model-00001-of-00002.safetensors': the name is kept for a file of the checkpoint's own" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        bool is_known = true;
        enum pawl_status st = pawl_attachment_name_check(CASES[i].name, &is_known, &err);
        assert_string_equal(err.message, CASES[i].message == NULL ? "" : CASES[i].message);
        assert_int_equal(st, CASES[i].message == NULL ? PAWL_OK : PAWL_ARGUMENT);
        if (st == PAWL_OK)
            assert_int_equal(is_known, pawl_str_equal(CASES[i].name, PAWL_STR("config.json")));
    }
}

static void
manifest_names(void **state)
{
    (void)state;
    const struct {
        struct pawl_str name;
        const char *fault;
    } CASES[] = {
        { PAWL_STR("a"), NULL },
        { PAWL_STR("sub/dir/a"), NULL },
        { PAWL_STR("sub/MANIFEST.json"), NULL },
        { PAWL_STR(".hidden"), NULL },
        { PAWL_STR("..."), NULL },
        { PAWL_STR("a\nb"), NULL },
        { PAWL_STR(""), "is empty" },
        { PAWL_STR("/"), "is absolute" },
        { PAWL_STR("/etc/passwd"), "is absolute" },
        { PAWL_STR("a\\b"), "has a backslash" },
        { PAWL_STR("C:\\a"), "has a backslash" },
        { PAWL_STR("a\0"), "has a NUL" },
        { PAWL_STR("MANIFEST.json"), "is the manifest's own" },
        { PAWL_STR("a//b"), "has an empty component" },
        { PAWL_STR("a/"), "has an empty component" },
        { PAWL_STR("."), "has a component \".\" or \"..\"" },
        { PAWL_STR(".."), "has a component \".\" or \"..\"" },
        { PAWL_STR("../a"), "has a component \".\" or \"..\"" },
        { PAWL_STR("a/../b"), "has a component \".\" or \"..\"" },
        { PAWL_STR("a/.."), "has a component \".\" or \"..\"" },
        { PAWL_STR("a/./b"), "has a component \".\" or \"..\"" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *fault = pawl_manifest_name_fault(CASES[i].name);
        if (CASES[i].fault == NULL)
            assert_null(fault);
        else
            assert_string_equal(fault == NULL ? "" : fault, CASES[i].fault);
        assert_int_equal(pawl_manifest_name_is_valid(CASES[i].name), CASES[i].fault == NULL);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_names_have_one_spelling),
        cmocka_unit_test(names_are_printed_as_they_are_read),
        cmocka_unit_test(entries_of_a_root),
        cmocka_unit_test(latest_is_a_name_and_a_newline),
        cmocka_unit_test(tensor_files),
        cmocka_unit_test(attachment_names),
        cmocka_unit_test(manifest_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
