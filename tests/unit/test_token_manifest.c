#include "token_support.h"
#include "base/arena.h"
#include "formats/tokens/manifest.h"

#define HEX_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define HEX_2 "2222222222222222222222222222222222222222222222222222222222222222"
#define HEX_3 "3333333333333333333333333333333333333333333333333333333333333333"

static const char GOOD[] = "{\n"
                           "  \"tokenizer_id\": \"bpe-1.0_x\",\n"
                           "  \"tokenizer_sha256\": \"" HEX_1 "\",\n"
                           "  \"vocab_size\": 257,\n"
                           "  \"doc_sep_id\": 256,\n"
                           "  \"dataset\": \"web \xc3\xa9\",\n"
                           "  \"version\": \"2\",\n"
                           "  \"corpus_manifest_sha256\": \"" HEX_2 "\",\n"
                           "  \"files\": [\n"
                           "    {\n"
                           "      \"name\": \"train-00001.bin\",\n"
                           "      \"split\": \"train\",\n"
                           "      \"n_tokens\": 2147483647,\n"
                           "      \"n_docs\": 3,\n"
                           "      \"sha256\": \"" HEX_3 "\"\n"
                           "    },\n"
                           "    {\n"
                           "      \"name\": \"val-00001.bin\",\n"
                           "      \"split\": \"val\",\n"
                           "      \"n_tokens\": 0,\n"
                           "      \"n_docs\": 0,\n"
                           "      \"sha256\": \"" HEX_3 "\"\n"
                           "    }\n"
                           "  ]\n"
                           "}\n";

/* Goal: what is read is what is printed, byte for byte, with and without the nulls. */
static void
manifests_come_back(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_token_manifest manifest;
    assert_int_equal(pawl_token_manifest_parse(&arena, GOOD, strlen(GOOD), &manifest, NULL), PAWL_OK);
    assert_int_equal(manifest.n_files, 2);
    assert_int_equal(manifest.files[0].ids, 2147483647);
    assert_int_equal(manifest.files[0].documents, 3);
    pawl_token_manifest_print(&manifest, &out);
    assert_int_equal(out.len, strlen(GOOD));
    assert_memory_equal(out.data, GOOD, out.len);

    manifest.has_vocabulary = manifest.has_separator = manifest.has_tokenizer_sha256 = false;
    pawl_buffer_clear(&out);
    pawl_token_manifest_print(&manifest, &out);
    assert_int_equal(pawl_token_manifest_parse(&arena, out.data, out.len, &manifest, NULL), PAWL_OK);
    assert_false(manifest.has_vocabulary);
    assert_false(manifest.has_separator);
    assert_false(manifest.has_tokenizer_sha256);
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
}

/* GOOD with the first `from` replaced by `to`; the caller frees. */
static char *
edited(const char *from, const char *to)
{
    const char *at = strstr(GOOD, from);
    if (at == NULL)
        fail_msg("nothing to edit: '%s'", from);
    size_t all = sizeof GOOD + strlen(to);
    char *text = malloc(all);
    assert_non_null(text);
    (void)snprintf(text, all, "%.*s%s%s", (int)(at - GOOD), GOOD, to, at + strlen(from));
    return text;
}

static enum pawl_status
parse(const char *text, struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_token_manifest manifest;
    enum pawl_status st = pawl_token_manifest_parse(&arena, text, strlen(text), &manifest, err);
    pawl_arena_release(&arena);
    return st;
}

/* Goal: the schema is closed and each rule of it is held. Method: one edit each. */
static void
the_schema_is_held(void **state)
{
    (void)state;
    static const char LABEL[] =
        "'tokenizer_id' is not a string of a-z, 0-9, '.', '_' and '-' that begins with a letter or digit";
    static const char NAME[] = "'name' is not a file's name of the form train-00001.bin";
    static const struct {
        const char *from, *to, *message;
    } CASES[] = {
        { "\"tokenizer_id\": \"bpe-1.0_x\",", "", "the manifest lacks the key 'tokenizer_id'" },
        { "\"version\": \"2\",", "\"version\": \"2\", \"extra\": 1,", "the manifest has an unknown key 'extra'" },
        { "\"n_docs\": 3,", "", "a row of 'files' lacks the key 'n_docs'" },
        { "\"n_docs\": 3,", "\"n_docs\": 3, \"bytes\": 1,", "a row of 'files' has an unknown key 'bytes'" },
        { "bpe-1.0_x", "", LABEL },
        { "bpe-1.0_x", "Bpe", LABEL },
        { "bpe-1.0_x", "-a", LABEL },
        { "bpe-1.0_x", "a b", LABEL },
        { "\"bpe-1.0_x\"", "null", LABEL },
        { HEX_1, "00", "'tokenizer_sha256' is not 64 lowercase hex digits or null" },
        { "\"" HEX_1 "\"", "1", "'tokenizer_sha256' is not 64 lowercase hex digits or null" },
        { "257", "0", "'vocab_size' is not an integer from 1 to 9223372036854775807 or null" },
        { "257", "257.0", "'vocab_size' is not an integer from 1 to 9223372036854775807 or null" },
        { "257", "9223372036854775808", "'vocab_size' is not an integer from 1 to 9223372036854775807 or null" },
        { "\"doc_sep_id\": 256", "\"doc_sep_id\": -1",
          "'doc_sep_id' is not an integer from 0 to 9223372036854775807 or null" },
        { "\"doc_sep_id\": 256", "\"doc_sep_id\": \"256\"",
          "'doc_sep_id' is not an integer from 0 to 9223372036854775807 or null" },
        { "\"web \xc3\xa9\"", "\"\"", "'dataset' is not a string of at least one character" },
        { "\"2\"", "2", "'version' is not a string of at least one character" },
        { "\"" HEX_2 "\"", "null", "'corpus_manifest_sha256' is not 64 lowercase hex digits" },
        { "train-00001.bin", "train-0001.bin", NAME },
        { "train-00001.bin", "train-000001.txt", NAME },
        { "train-00001.bin", "../x-00001.bin", NAME },
        { "train-00001.bin", "a/x-00001.bin", NAME },
        { "train-00001.bin", "-00001.bin", NAME },
        { "train-00001.bin", "train_00001.bin", NAME },
        { "\"train\"", "\"\"",
          "'split' is not a string of a-z, 0-9, '.', '_' and '-' that begins with a letter or digit" },
        { "2147483647", "2147483648", "'n_tokens' is not an integer from 0 to 2147483647" },
        { "2147483647", "-1", "'n_tokens' is not an integer from 0 to 2147483647" },
        { "\"n_docs\": 3", "\"n_docs\": 3e0", "'n_docs' is not an integer from 0 to 9223372036854775807" },
        { HEX_3, HEX_3 "3", "'sha256' is not 64 lowercase hex digits" },
        { "val-00001.bin", "train-00001.bin", "'files' lists 'train-00001.bin' twice" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        char *text = edited(CASES[i].from, CASES[i].to);
        enum pawl_status st = parse(text, &err);
        assert_string_equal(err.message, CASES[i].message);
        assert_string_equal(err.code, "manifest");
        assert_int_equal(st, PAWL_CORRUPT);
        assert_true(err.offset < strlen(text));
        free(text);
    }
    static const char *const TEXTS[] = { "", "[]", "{}", "null", "\xef\xbb\xbf{}", "{\"files\": [], \"files\": []}" };
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        assert_int_equal(parse(TEXTS[i], &err), PAWL_CORRUPT);
        assert_string_equal(err.code, "manifest");
    }
    struct pawl_error err = PAWL_ERROR_INIT;
    char *text = edited("\"files\": [", "\"files\": [], \"x\": [");
    assert_int_equal(parse(text, &err), PAWL_CORRUPT);
    free(text);
    static const char EMPTY[] =
        "{\"tokenizer_id\":\"a\",\"tokenizer_sha256\":null,\"vocab_size\":null,\"doc_sep_id\":null,"
        "\"dataset\":\"a\",\"version\":\"1\",\"corpus_manifest_sha256\":\"" HEX_1 "\",\"files\":[]}";
    assert_int_equal(parse(EMPTY, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "'files' is not a list of at least one file");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manifests_come_back),
        cmocka_unit_test(the_schema_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
