#include "unit/model_tools.h"
#include "pawl/ckpt.h"
#include "pawl/model.h"
#include "pawl/tokens.h"

#define GOOD PAWL_GOLDEN "/checkpoint/good"
#define BAD PAWL_GOLDEN "/checkpoint/bad"
#define FILES PAWL_GOLDEN "/safetensors/files"

static void
expect_kind(const char *path, enum pawl_kind want)
{
    enum pawl_kind kind = PAWL_KIND_UNKNOWN;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_kind_of(pawl_str_z(path), &kind, &err);
    if (st != PAWL_OK)
        fail_msg("%s: %s", path, err.message);
    assert_string_equal(pawl_kind_name(kind), pawl_kind_name(want));
}

static void
expect_none(const char *path, const char *code, const char *message)
{
    enum pawl_kind kind = PAWL_KIND_UNKNOWN;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_kind_of(pawl_str_z(path), &kind, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, code);
    if (strstr(err.message, message) == NULL)
        fail_msg("%s: '%s'", path, err.message);
    assert_non_null(strstr(err.path, path));
    assert_int_equal(kind, PAWL_KIND_UNKNOWN);
}

static void
put_with_zeros(const char *path, const void *begin, size_t n)
{
    unsigned char bytes[600] = { 0 };
    memcpy(bytes, begin, n);
    put_bytes(path, bytes, sizeof bytes);
}

/* Goal: the kind of a file is what its bytes say, whatever its name. */
static void
knows_files_by_their_bytes(void **state)
{
    (void)state;
    put_model("model.pt", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x", 1);
    expect_kind("model.pt", PAWL_KIND_SAFETENSORS);
    put_model("blank.json", "\n\t {}", "", 0);
    expect_kind("blank.json", PAWL_KIND_SAFETENSORS);
    put_model("cut", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1000],\"data_offsets\":[0,1000]}}", "x", 1);
    expect_kind("cut", PAWL_KIND_SAFETENSORS); /* broken, but of that kind: case 17 */
    expect_kind(FILES "/overlap.safetensors", PAWL_KIND_SAFETENSORS);
    expect_kind(FILES "/sharded/model.safetensors.index.json", PAWL_KIND_SAFETENSORS_INDEX);
    host_put("x.safetensors", "{\"weight_map\": {\"a\": \"b\"}}");
    expect_kind("x.safetensors", PAWL_KIND_SAFETENSORS_INDEX);
    put_with_zeros("zip.safetensors", "PK\3\4", 4);
    expect_kind("zip.safetensors", PAWL_KIND_PYTORCH);
    put_bytes("pickle", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
    expect_kind("pickle", PAWL_KIND_PYTORCH);
    put_with_zeros("replay", "LLMCP35\0", 8);
    expect_kind("replay", PAWL_KIND_LLMCP35);
    put_with_zeros("tokens.bin", "\x88\xd8\x34\x01\1\0\0\0", 8);
    expect_kind("tokens.bin", PAWL_KIND_TOKEN_SHARD);
}

/* Goal: what is of no kind has the code and the words that tell what happened; a FIFO never hangs. */
static void
names_what_is_of_no_kind(void **state)
{
    enum pawl_kind kind;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)state;
    host_put("empty", "");
    expect_none("empty", "empty", "empty file");
    host_put("pointer", "version https://git-lfs.github.com/spec/v1\n"
                        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345678\n");
    expect_none("pointer", "lfs-pointer",
                "Git LFS pointer; the real file is 12345678 bytes, oid "
                "sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393");
    host_put("page", "\n<!DOCTYPE html><html>");
    expect_none("page", "not-checkpoint", "HTML page");
    host_put("answer", "{\"error\": \"not found\"}");
    expect_none("answer", "not-checkpoint", "JSON error page");
    put_with_zeros("gz", "\x1f\x8b\x08", 3);
    expect_none("gz", "compressed", "gzip");
    put_with_zeros("7z", "7z\xbc\xaf\x27\x1c", 6);
    expect_none("7z", "is-7z", "7z");
    put_with_zeros("h5", "\x89HDF\r\n\x1a\n", 8);
    expect_none("h5", "is-hdf5", "HDF5");
    put_with_zeros("gguf", "GGUF", 4);
    expect_none("gguf", "not-checkpoint", "GGUF");
    host_put("other.json", "{\"a\": 1}");
    expect_none("other.json", "unknown-format", "JSON");
    host_put("text", "hello, world, this is text");
    expect_none("text", "unknown-format", "its first bytes are 68 65 6c 6c 6f 2c 20 77 6f 72 6c 64 2c 20 74 68");
    put_bytes("short", "\1\2\3", 3);
    expect_none("short", "unknown-format", "its first bytes are 01 02 03");
    put_with_zeros("zeros", "", 0);
    expect_none("zeros", "unknown-format", "its first bytes are 00 00");
    assert_int_equal(mkfifo("fifo", 0666), 0);
    expect_none("fifo", "not-a-file", "FIFO");
    assert_int_equal(pawl_kind_of(PAWL_STR("nothing"), &kind, &err), PAWL_NO_FILE);
    assert_int_equal(pawl_kind_of(PAWL_STR(""), &kind, &err), PAWL_ARGUMENT);
    assert_int_equal(mkdir("dir", 0777), 0);
    expect_none("dir", "unknown-format", "a directory of 0 entries");
    host_put("dir/weights.bin", "not a shard");
    expect_none("dir", "unknown-format", "a directory of 1 entry");
}

/* Goal: the kind of a directory is what its entries say. */
static void
knows_directories_by_their_entries(void **state)
{
    (void)state;
    expect_kind(FILES "/sharded", PAWL_KIND_SAFETENSORS_INDEX);
    expect_kind(GOOD "/adamw-full/root", PAWL_KIND_RUN);
    expect_kind(GOOD "/sharded/root/step-000064", PAWL_KIND_CHECKPOINT);
    expect_kind(GOOD "/sharded/root/step-000064/", PAWL_KIND_CHECKPOINT);
    assert_int_equal(mkdir("d", 0777), 0);
    host_put("d/trainer_state.json", "{}");
    host_put("d/model.safetensors", "");
    expect_kind("d", PAWL_KIND_CHECKPOINT);
    host_put(
        "d/MANIFEST.json",
        "{\"kind\": \"release\", \"model_id\": \"m\", \"version\": \"1\", \"files\": [{\"name\": \"f\", \"sha256\": "
        "\"4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\", \"bytes\": 1}]}");
    expect_kind("d", PAWL_KIND_RELEASE);
    host_put("d/MANIFEST.json", "not json");
    expect_kind("d", PAWL_KIND_CHECKPOINT); /* a broken one */
    assert_int_equal(unlink("d/MANIFEST.json"), 0);
    assert_int_equal(mkfifo("d/MANIFEST.json", 0666), 0);
    expect_kind("d", PAWL_KIND_CHECKPOINT); /* and nothing hangs */

    assert_int_equal(mkdir("one", 0777), 0);
    host_put("one/model.safetensors", "");
    expect_kind("one", PAWL_KIND_SAFETENSORS_INDEX);
    assert_int_equal(mkdir("root", 0777), 0);
    host_put("root/LATEST", "");
    expect_kind("root", PAWL_KIND_RUN);
    assert_int_equal(unlink("root/LATEST"), 0);
    assert_int_equal(mkdir("root/step-000001.bad", 0777), 0);
    expect_kind("root", PAWL_KIND_RUN);
    assert_int_equal(mkdir("step-000007", 0777), 0);
    expect_kind("step-000007", PAWL_KIND_CHECKPOINT); /* it lost everything */
    assert_int_equal(mkdir("tokens", 0777), 0);
    put_with_zeros("tokens/a.bin", "\x88\xd8\x34\x01\1\0\0\0", 8);
    expect_kind("tokens", PAWL_KIND_TOKEN_DIR);
    assert_int_equal(unlink("tokens/a.bin"), 0);
    host_put("tokens/_MANIFEST.json", "");
    expect_kind("tokens", PAWL_KIND_TOKEN_DIR);
}

/* ---- opening ---- */

/* Goal: a step and a root open as their weights; a step whose optimizer is damaged too, one whose weights are damaged not. */
static void
opens_checkpoints_as_models(void **state)
{
    struct pawl_model *model;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n;
    (void)state;
    int before = count_descriptors();
    assert_int_equal(pawl_model_open_z(GOOD "/sharded/root/step-000064", NULL, &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_CHECKPOINT);
    (void)pawl_model_tensors(model, &n);
    assert_int_equal(n, 9);
    assert_ptr_equal(pawl_model_find(model, PAWL_STR("tied")), pawl_model_find(model, PAWL_STR("last")));
    float values[16];
    const void *data;
    const struct pawl_tensor_info *t = pawl_model_find(model, PAWL_STR("last"));
    assert_int_equal(pawl_model_read(model, t, PAWL_F32, values, sizeof values, NULL), PAWL_OK);
    assert_int_equal(pawl_model_map(model, t, &data, NULL, NULL), PAWL_OK);
    assert_memory_equal(data, values, sizeof values);
    pawl_model_close(model);
    assert_int_equal(count_descriptors(), before); /* the checkpoint is closed too */

    assert_int_equal(pawl_model_open_z(GOOD "/sharded/root", NULL, &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_RUN);
    pawl_model_close(model);
    assert_int_equal(pawl_model_open_z(BAD "/hash-optimizer/root/step-000020", NULL, &model, NULL), PAWL_OK);
    pawl_model_close(model);
    assert_int_equal(pawl_model_open_z(BAD "/hash-model-data/root/step-000020", NULL, &model, &err), PAWL_INCOMPLETE);
    const struct pawl_model_options options = PAWL_MODEL_OPTIONS(.profile = PAWL_PROFILE_TINYLLM);
    assert_int_equal(pawl_model_open_z(GOOD "/every-dtype/root", &options, &model, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "dtype");
    assert_int_equal(pawl_model_open_z(FILES "/worked-example.safetensors", NULL, &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_kind(model), PAWL_KIND_SAFETENSORS);
    pawl_model_close(model);
    assert_int_equal(pawl_model_open_z("", NULL, &model, &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_model_open_z("nothing", NULL, &model, &err), PAWL_NO_FILE);
    assert_int_equal(count_descriptors(), before);
}

/* ---- examining ---- */

/* "name kind ok|bad files bytes" and the problems, a verdict a line. */
static const char *
verify_text(const char *path, const struct pawl_verify_options *options)
{
    static char text[30000];
    struct pawl_report *report = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n;
    size_t at = 0;
    int before = count_descriptors();
    enum pawl_status st = pawl_verify(pawl_str_z(path), options, &report, &err);
    assert_int_equal(count_descriptors(), before);
    assert_non_null(report);
    text[0] = '\0';
    if (st != PAWL_OK)
        at = (size_t)snprintf(text, sizeof text, "%s\n", pawl_status_name(st));
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s %s %s %llu\n", verdicts[i].name,
                               pawl_kind_name(verdicts[i].kind), verdicts[i].is_ok ? "ok" : "bad",
                               (unsigned long long)verdicts[i].files);
        assert_int_equal(verdicts[i].is_ok, verdicts[i].n_problems == 0);
    }
    (void)snprintf(text + at, sizeof text - at, "%s", report_text(report));
    pawl_report_free(report);
    return text;
}

/* Goal: single files, indexes and directories, good and bad, with warnings. */
static void
verifies_models(void **state)
{
    (void)state;
    assert_string_equal(verify_text(FILES "/worked-example.safetensors", NULL),
                        FILES "/worked-example.safetensors safetensors ok 1\n");
    assert_string_equal(verify_text(FILES "/sharded", NULL), FILES "/sharded safetensors-index ok 5\n");
    assert_string_equal(verify_text(FILES "/sharded-wrong-total/model.safetensors.index.json", NULL),
                        FILES "/sharded-wrong-total/model.safetensors.index.json safetensors-index ok 4\n"
                              "warning total-size model.safetensors.index.json: total_size is 376, the tensors have "
                              "368 bytes\n");
    const char *text = verify_text(FILES "/truncated-half.safetensors", NULL);
    assert_ptr_equal(strstr(text, FILES "/truncated-half.safetensors safetensors bad 1\ntruncated "
                                        "truncated-half.safetensors "),
                     text);
    text = verify_text(FILES "/not-lfs.safetensors", NULL);
    assert_ptr_equal(strstr(text, FILES "/not-lfs.safetensors unknown bad 1\nlfs-pointer : Git LFS pointer;"), text);
    assert_string_equal(verify_text("nothing", NULL), "no-file\n");

    /* lint, by the file it is in */
    put_model("odd", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"note\":1}}", "x", 1);
    const struct pawl_verify_options lint = PAWL_VERIFY_OPTIONS(.mode = PAWL_MODE_LINT);
    text = verify_text("odd", &lint);
    assert_ptr_equal(strstr(text, "odd safetensors ok 1\nwarning "), text);
    assert_non_null(strstr(text, " odd: "));
    host_put("odd.index", "{\"weight_map\":{\"a\":\"odd\"}}");
    text = verify_text("odd.index", &lint);
    assert_ptr_equal(strstr(text, "odd.index safetensors-index ok 2\nwarning "), text);
    assert_non_null(strstr(text, " odd: "));
    assert_string_equal(verify_text("odd", NULL), "odd safetensors ok 1\n");

    put_model("nan", "{\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]}}", "\xc0\x7f", 2);
    const struct pawl_verify_options finite = PAWL_VERIFY_OPTIONS(.check_finite = 1);
    assert_string_equal(verify_text("nan", &finite),
                        "nan safetensors bad 1\n"
                        "non-finite nan a: tensor 'a' has 1 NaN and 0 infinities, the first at [0]: NaN\n");
    assert_string_equal(verify_text("nan", NULL), "nan safetensors ok 1\n");
    const struct pawl_verify_options course = PAWL_VERIFY_OPTIONS(.profile = PAWL_PROFILE_TINYLLM);
    text = verify_text("nan", &course);
    assert_non_null(strstr(text, "dtype nan a: "));
    const struct pawl_verify_options wrong = PAWL_VERIFY_OPTIONS(.profile = (enum pawl_profile)9);
    assert_string_equal(verify_text("nan", &wrong), "argument\n");
}

/* Goal: a step by its path and a run step by step, with all that the examination says. */
static void
verifies_checkpoints(void **state)
{
    (void)state;
    const char *text = verify_text(GOOD "/sharded/root/step-000064", NULL);
    assert_ptr_equal(strstr(text, GOOD "/sharded/root/step-000064 checkpoint ok "), text);
    text = verify_text(BAD "/index-wrong-shard/root/step-000020", NULL);
    assert_ptr_equal(strstr(text, BAD "/index-wrong-shard/root/step-000020 checkpoint bad "), text);
    assert_non_null(strstr(text, "content model.safetensors.index.json"));
    text = verify_text(BAD "/index-wrong-shard/root", NULL);
    assert_ptr_equal(strstr(text, "step-000010 checkpoint ok "), text);
    assert_non_null(strstr(text, "step-000020 checkpoint bad "));
    assert_non_null(strstr(text, "content model.safetensors.index.json"));
    const struct pawl_verify_options size_only = PAWL_VERIFY_OPTIONS(.size_only = 1);
    text = verify_text(BAD "/hash-model-data/root/step-000020", &size_only);
    assert_non_null(strstr(text, "checkpoint ok"));
    text = verify_text(BAD "/hash-model-data/root/step-000020", NULL);
    assert_non_null(strstr(text, "hash model.safetensors"));
    /* a link under a step's name is none; under another name it is the caller's own */
    assert_int_equal(symlink(GOOD "/sharded/root/step-000064", "step-000064"), 0);
    text = verify_text("step-000064", NULL);
    assert_ptr_equal(strstr(text, "step-000064 checkpoint bad "), text);
    assert_non_null(strstr(text, "not-a-directory "));
    assert_int_equal(symlink(GOOD "/sharded/root/step-000064", "copy"), 0);
    text = verify_text("copy", NULL);
    assert_ptr_equal(strstr(text, "copy checkpoint ok "), text);
    assert_int_equal(symlink("nowhere", "step-000001"), 0);
    text = verify_text("step-000001", NULL);
    assert_non_null(strstr(text, "not-a-directory "));
    host_put("step-000002", "a file");
    text = verify_text("step-000002", NULL);
    assert_ptr_equal(strstr(text, "step-000002 checkpoint bad 0\nnot-a-directory : "), text);
    /* finite: every file of a step, under its own name */
    const struct pawl_verify_options finite = PAWL_VERIFY_OPTIONS(.check_finite = 1);
    text = verify_text(GOOD "/adamw-full/root", &finite);
    assert_null(strstr(text, " bad "));
    text = verify_text(GOOD "/tensor-names-and-bits/root", &finite);
    assert_non_null(strstr(text, "non-finite model.safetensors "));
}

/* Goal: a tokenised data set by its manifest: files that are gone, changed, or of another count. */
static void
verifies_tokens(void **state)
{
    struct pawl_token_writer *writer;
    const struct pawl_token_file *files;
    size_t n;
    const uint32_t ids[] = { 1, 2, 3, 4, 5, 6 };
    const struct pawl_token_writer_options options = PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = 10, .max_ids = 4);
    (void)state;
    assert_int_equal(pawl_token_writer_open(PAWL_STR("set"), &options, &writer, NULL), PAWL_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pawl_token_writer_document(writer, NULL), PAWL_OK);
        assert_int_equal(pawl_token_writer_add(writer, ids + 2 * i, 2, NULL), PAWL_OK);
    }
    assert_int_equal(pawl_token_writer_finish(writer, &files, &n, NULL), PAWL_OK);
    assert_int_equal(n, 2);
    char first[64];
    char second[64];
    (void)snprintf(first, sizeof first, "set/%.*s", PAWL_ARG(files[0].name));
    (void)snprintf(second, sizeof second, "set/%.*s", PAWL_ARG(files[1].name));
    pawl_token_writer_close(writer);
    assert_string_equal(verify_text("set", NULL), "set token-dir ok 3\n");
    assert_string_equal(verify_text("set/_MANIFEST.json", NULL), "set/_MANIFEST.json token-dir ok 3\n");
    const char *text = verify_text(first, NULL);
    assert_non_null(strstr(text, " token-shard ok 1\n"));
    const struct pawl_verify_options small = PAWL_VERIFY_OPTIONS(.vocabulary = 9);
    text = verify_text("set", &small);
    assert_non_null(strstr(text, "vocabulary _MANIFEST.json: the manifest states a vocabulary of 10, the caller 9\n"));

    int fd = open(first, O_RDWR);
    assert_int_equal(pwrite(fd, "\7", 1, 1024), 1);
    text = verify_text("set", NULL);
    assert_non_null(strstr(text, " bad "));
    assert_non_null(strstr(text, "hash "));
    const struct pawl_verify_options size_only = PAWL_VERIFY_OPTIONS(.size_only = 1);
    assert_string_equal(verify_text("set", &size_only), "set token-dir ok 3\n");
    assert_int_equal(pwrite(fd, "\77", 1, 1024), 1);
    text = verify_text("set", &size_only);
    assert_non_null(strstr(text, "id-range "));
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(first), 0);
    copy_file(second, first);
    text = verify_text("set", &size_only);
    assert_non_null(strstr(text, "count "));
    assert_non_null(strstr(text, "the manifest states 4 ids, the file has 2"));
    assert_int_equal(unlink(first), 0);
    text = verify_text("set", NULL);
    assert_non_null(strstr(text, "missing-file "));
    copy_file(second, first);
    assert_int_equal(unlink("set/_MANIFEST.json"), 0);
    assert_string_equal(verify_text("set", NULL), "set token-dir ok 2\n");
    host_put("set/_MANIFEST.json", "{}");
    text = verify_text("set", NULL);
    assert_ptr_equal(strstr(text, "set token-dir bad 1\nmanifest _MANIFEST.json: "), text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_enter, fixture_leave)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(knows_files_by_their_bytes),
        TEST(names_what_is_of_no_kind),
        TEST(knows_directories_by_their_entries),
        TEST(opens_checkpoints_as_models),
        TEST(verifies_models),
        TEST(verifies_checkpoints),
        TEST(verifies_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
