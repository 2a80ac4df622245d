#include "token_support.h"

/* Pack files named in a row that ends with NULL. */
static enum pawl_status
pack(const char *directory, const char *const *names, struct pawl_pack_options options, struct pawl_packed **ret,
     struct pawl_error *err)
{
    struct pawl_str files[8];
    size_t n = 0;
    for (; names[n] != NULL; n++)
        files[n] = pawl_str_z(names[n]);
    return pawl_pack(pawl_str_z(directory), files, n, &options, ret, err);
}

static void
pack_ok(const char *directory, const char *const *names, struct pawl_pack_options options)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pack(directory, names, options, NULL, &err) != PAWL_OK)
        fail_msg("%s: %s", err.path, err.message);
}

static void
expect_sha256(const char *path, const char *hex)
{
    size_t n;
    char *bytes = get_file(path, &n), found[65];
    unsigned char digest[32];
    assert_int_equal(pawl_sha256_of(bytes, n, digest, NULL), PAWL_OK);
    pawl_sha256_print(digest, found);
    assert_string_equal(found, hex);
    free(bytes);
}

/* The ids of a shard as text, "1 2 3"; static storage. */
static const char *
ids_of(const char *path)
{
    static char text[8192];
    struct pawl_shard *shard;
    uint32_t ids[1024];
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_shard_open(pawl_str_z(path), NULL, &shard, &err) != PAWL_OK)
        fail_msg("%s: %s", path, err.message);
    size_t n = pawl_shard_info(shard).ids, at = 0;
    assert_true(n <= 1024);
    assert_int_equal(pawl_shard_read(shard, 0, n, ids, NULL), PAWL_OK);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%" PRIu32, i == 0 ? "" : " ", ids[i]);
    pawl_shard_close(shard);
    return text;
}

/* The value of a key of a manifest, as it is printed; static storage. */
static const char *
manifest_value(const char *directory, const char *key)
{
    static char value[512];
    char path[256], quoted[64];
    (void)snprintf(path, sizeof path, "%s/_MANIFEST.json", directory);
    (void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    char *text = get_file(path, NULL), *at = strstr(text, quoted);
    assert_non_null(at);
    at += strlen(quoted);
    (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at, ",\n"), at);
    free(text);
    return value;
}

static int
make_inputs(void **state)
{
    (void)state;
    fresh_folder("in");
    put_text("in/a", "ab");
    put_text("in/b", "");
    put_text("in/lines", "one\n\ntwo\nlast");
    put_text("in/ids", "1 2\t3\r\n\n 4 65535\n");
    return 0;
}

/* Goal: the worked example of the page, byte for byte, twice. Method: sizes and digests as printed there. */
static void
worked_example(void **state)
{
    (void)state;
    static const char *const FILES[] = { "in/a", "in/b", NULL };
    for (int run = 0; run < 2; run++) {
        struct pawl_packed *packed = NULL;
        size_t n;
        fresh_folder("out");
        assert_int_equal(
            pack("out", FILES,
                 PAWL_PACK_OPTIONS(.writer = PAWL_TOKEN_WRITER_OPTIONS(.has_separator = 1, .separator = 256)), &packed,
                 NULL),
            PAWL_OK);
        const struct pawl_token_file *files = pawl_packed_files(packed, &n);
        assert_int_equal(n, 1);
        assert_memory_equal(files[0].name.data, "train-00001.bin", 16);
        assert_memory_equal(files[0].split.data, "train", 6);
        assert_int_equal(files[0].ids, 4);
        assert_int_equal(files[0].documents, 2);
        pawl_packed_free(packed);

        free(get_file("out/train-00001.bin", &n));
        assert_int_equal(n, 1032);
        expect_sha256("out/train-00001.bin", "edad541ef22f982c7e58c56fa06b1d5410e12e4547452c898d6f9d872115461f");
        free(get_file("out/_MANIFEST.json", &n));
        assert_int_equal(n, 510);
        expect_sha256("out/_MANIFEST.json", "c2db57ffee7c183835a5745e0506de4cc3e6a18f70c4623c1dfe67c9a7dca05a");
        assert_string_equal(ids_of("out/train-00001.bin"), "256 97 98 256");
        assert_string_equal(manifest_value("out", "vocab_size"), "257");
        assert_string_equal(manifest_value("out", "corpus_manifest_sha256"),
                            "\"17f55a669658e2e06105f7c8eafbb12b4f271bbca56f6d669739690f1c53f8ca\"");
        assert_string_equal(manifest_value("out", "tokenizer_sha256"),
                            "\"40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880\"");
    }
}

/* Goal: each kind of document and of input, down to the last line without its LF and the empty line. */
static void
documents_are_what_the_page_says(void **state)
{
    (void)state;
    put_text("in/json", "{\"text\": \"a\\u00e9\", \"x\": [1, {}]}\n\n{\"x\": 0, \"text\": \"\"}\n{\"text\":\"z\"}");
    put_text("in/json-ids", "{\"ids\": [3, 1], \"n\": null}\n{\"ids\":[]}\r\n");
    put_text("in/feeds", "\n\n");
    static const struct {
        const char *file;
        enum pawl_pack_input input;
        enum pawl_pack_documents documents;
        const char *field, *ids;
    } CASES[] = {
        { "in/lines", PAWL_PACK_BYTES, PAWL_PACK_FILE, "", "999 111 110 101 10 10 116 119 111 10 108 97 115 116" },
        { "in/lines", PAWL_PACK_BYTES, PAWL_PACK_LINE, "", "999 111 110 101 999 999 116 119 111 999 108 97 115 116" },
        { "in/feeds", PAWL_PACK_BYTES, PAWL_PACK_LINE, "", "999 999" },
        { "in/b", PAWL_PACK_BYTES, PAWL_PACK_FILE, "", "999" },
        { "in/b", PAWL_PACK_BYTES, PAWL_PACK_LINE, "", "" },
        { "in/json", PAWL_PACK_BYTES, PAWL_PACK_JSONL, "text", "999 97 195 169 999 999 122" },
        { "in/ids", PAWL_PACK_IDS, PAWL_PACK_FILE, "", "999 1 2 3 4 65535" },
        { "in/ids", PAWL_PACK_IDS, PAWL_PACK_LINE, "", "999 1 2 3 999 999 4 65535" },
        { "in/b", PAWL_PACK_IDS, PAWL_PACK_LINE, "", "" },
        { "in/json-ids", PAWL_PACK_IDS, PAWL_PACK_JSONL, "ids", "999 3 1 999" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *const files[] = { CASES[i].file, NULL };
        fresh_folder("out");
        pack_ok("out", files,
                PAWL_PACK_OPTIONS(.input = CASES[i].input, .documents = CASES[i].documents,
                                  .field = pawl_str_z(CASES[i].field),
                                  .writer = PAWL_TOKEN_WRITER_OPTIONS(.has_separator = 1, .separator = 999)));
        assert_string_equal(ids_of("out/train-00001.bin"), CASES[i].ids);
        char documents[32];
        size_t n = 0;
        for (const char *at = CASES[i].ids; (at = strstr(at, "999")) != NULL; at += 3)
            n++;
        (void)snprintf(documents, sizeof documents, "%zu", n);
        assert_string_equal(manifest_value("out", "n_docs"), documents);
    }
}

/* Goal: nothing hangs on where a chunk of 1 MiB ends. Method: numbers, lines and JSON that straddle it, against a simple
 * model. */
static void
chunks_do_not_show(void **state)
{
    (void)state;
    enum { LINES = 180000 }; /* of 9 or 17 bytes: none ends where a chunk does */
    static const char *const FILES[] = { "in/long", NULL };
    for (int kind = 0; kind < 3; kind++) {
        FILE *file = fopen("in/long", "wb");
        assert_non_null(file);
        for (unsigned i = 0; i < LINES; i++) {
            if (kind == 2)
                (void)fprintf(file, "{\"v\": [%u]}\n", 10000000 + i);
            else
                (void)fprintf(file, "%u\n", 10000000 + i);
        }
        assert_int_equal(fclose(file), 0);
        fresh_folder("out");
        pack_ok("out", FILES,
                PAWL_PACK_OPTIONS(.input = kind == 0 ? PAWL_PACK_BYTES : PAWL_PACK_IDS,
                                  .documents = kind == 2 ? PAWL_PACK_JSONL : PAWL_PACK_LINE,
                                  .field = pawl_str_z(kind == 2 ? "v" : ""),
                                  .writer = PAWL_TOKEN_WRITER_OPTIONS(.has_separator = 1, .separator = 99999)));
        struct pawl_shard *shard;
        assert_int_equal(pawl_shard_open(PAWL_STR("out/train-00001.bin"), NULL, &shard, NULL), PAWL_OK);
        const size_t per_line = kind == 0 ? 9 : 2;
        assert_int_equal(pawl_shard_info(shard).ids, LINES * per_line);
        uint32_t *ids = calloc(LINES * per_line, sizeof *ids);
        assert_int_equal(pawl_shard_read(shard, 0, LINES * per_line, ids, NULL), PAWL_OK);
        for (unsigned i = 0; i < LINES; i++) {
            const uint32_t *at = ids + i * per_line;
            assert_int_equal(at[0], 99999);
            uint32_t value = 0;
            for (size_t k = 1; k < per_line; k++)
                value = kind == 0 ? value * 10 + at[k] - '0' : at[k];
            assert_int_equal(value, 10000000 + i);
        }
        free(ids);
        pawl_shard_close(shard);
    }
    assert_int_equal(unlink("in/long"), 0);
}

/* Goal: vocabulary, width and the other rows of the table of the page, for bytes and for ids from outside. */
static void
vocabulary_and_width(void **state)
{
    (void)state;
    static const uint32_t IDS[] = { 1, 2, 3 };
    put_shard("in/16-300.bin", 2, 300, IDS, 3);
    put_shard("in/16-300b.bin", 2, 300, IDS, 3);
    put_shard("in/16-none.bin", 2, 0, IDS, 3);
    put_shard("in/16-none-b.bin", 2, 0, IDS, 3);
    put_shard("in/32-none.bin", 4, 0, IDS, 3);
    put_shard("in/32-big.bin", 4, 128256, IDS, 3);
    static const struct {
        enum pawl_pack_input input;
        const char *files[3];
        uint64_t vocabulary;
        int separator; /* -1: none */
        uint8_t width;
        const char *vocab_size;
        unsigned got_width;
        uint32_t word_3;
    } CASES[] = {
        { PAWL_PACK_BYTES, { "in/a" }, 0, -1, 0, "256", 2, 256 },
        { PAWL_PACK_BYTES, { "in/a" }, 0, 10, 0, "256", 2, 256 },
        { PAWL_PACK_BYTES, { "in/a" }, 0, 255, 0, "256", 2, 256 },
        { PAWL_PACK_BYTES, { "in/a" }, 0, 256, 0, "257", 2, 257 },
        { PAWL_PACK_BYTES, { "in/a" }, 300, 256, 0, "300", 2, 300 },
        { PAWL_PACK_BYTES, { "in/a" }, 65536, -1, 0, "65536", 2, 65536 },
        { PAWL_PACK_BYTES, { "in/a" }, 65537, -1, 0, "65537", 4, 65537 },
        { PAWL_PACK_BYTES, { "in/a" }, 0, -1, 4, "256", 4, 256 },
        { PAWL_PACK_BYTES, { "in/a" }, UINT64_C(1) << 31, -1, 0, "2147483648", 4, 0 },
        { PAWL_PACK_BYTES, { "in/a" }, (UINT64_C(1) << 31) - 1, -1, 0, "2147483647", 4, 2147483647 },
        { PAWL_PACK_IDS, { "in/ids" }, 0, -1, 0, "null", 4, 0 },
        { PAWL_PACK_IDS, { "in/ids" }, 65536, -1, 0, "65536", 2, 65536 },
        { PAWL_PACK_IDS, { "in/ids" }, 0, -1, 2, "null", 2, 0 },
        { PAWL_PACK_SHARDS, { "in/16-300.bin" }, 0, -1, 0, "300", 2, 300 },
        { PAWL_PACK_SHARDS, { "in/16-300.bin", "in/16-300b.bin" }, 0, -1, 0, "300", 2, 300 },
        { PAWL_PACK_SHARDS, { "in/16-300.bin", "in/16-none.bin" }, 0, -1, 0, "null", 2, 0 },
        { PAWL_PACK_SHARDS, { "in/16-none.bin", "in/16-300.bin" }, 0, -1, 0, "null", 2, 0 },
        { PAWL_PACK_SHARDS, { "in/16-none.bin", "in/16-none-b.bin" }, 0, -1, 0, "null", 2, 0 },
        { PAWL_PACK_SHARDS, { "in/16-none.bin", "in/32-none.bin" }, 0, -1, 0, "null", 4, 0 },
        { PAWL_PACK_SHARDS, { "in/32-none.bin", "in/16-none.bin" }, 0, -1, 0, "null", 4, 0 },
        { PAWL_PACK_SHARDS, { "in/32-none.bin" }, 400, -1, 0, "400", 2, 400 },
        { PAWL_PACK_SHARDS, { "in/32-big.bin" }, 0, -1, 0, "128256", 4, 128256 },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        fresh_folder("out");
        struct pawl_token_writer_options writer =
            PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = CASES[i].vocabulary, .width = CASES[i].width,
                                      .has_separator = CASES[i].separator >= 0,
                                      .separator = CASES[i].separator < 0 ? 0 : (uint64_t)CASES[i].separator);
        pack_ok("out", CASES[i].files, PAWL_PACK_OPTIONS(.input = CASES[i].input, .writer = writer));
        assert_string_equal(manifest_value("out", "vocab_size"), CASES[i].vocab_size);
        char *bytes = get_file("out/train-00001.bin", NULL);
        assert_int_equal(pawl_get_u32le((unsigned char *)bytes + 4), CASES[i].got_width / 2);
        assert_int_equal(pawl_get_u32le((unsigned char *)bytes + 12), CASES[i].word_3);
        free(bytes);
    }
    fresh_folder("out");
    static const char *const BOTH[] = { "in/16-none.bin", "in/32-none.bin", NULL };
    pack_ok("out", BOTH,
            PAWL_PACK_OPTIONS(.input = PAWL_PACK_SHARDS,
                              .writer = PAWL_TOKEN_WRITER_OPTIONS(.has_separator = 1, .separator = 9)));
    assert_string_equal(ids_of("out/train-00001.bin"), "9 1 2 3 9 1 2 3");
    assert_string_equal(manifest_value("out", "n_docs"), "2");
    assert_string_equal(manifest_value("out", "doc_sep_id"), "9");
}

/* Goal: the other keys of the manifest, given and left out. */
static void
names_and_digests(void **state)
{
    (void)state;
    static const char *const FILES[] = { "in/ids", NULL };
    put_text("in/tokenizer.json", "{}");
    put_text("in/corpus.txt", "what it was made from\n");
    fresh_folder("out");
    pack_ok("out", FILES, PAWL_PACK_OPTIONS(.input = PAWL_PACK_IDS));
    assert_string_equal(manifest_value("out", "tokenizer_id"), "\"unknown\"");
    assert_string_equal(manifest_value("out", "tokenizer_sha256"), "null");
    assert_string_equal(manifest_value("out", "doc_sep_id"), "null");
    assert_string_equal(manifest_value("out", "dataset"), "\"unnamed\"");
    assert_string_equal(manifest_value("out", "version"), "\"1\"");

    fresh_folder("out");
    pack_ok(
        "out", FILES,
        PAWL_PACK_OPTIONS(.input = PAWL_PACK_IDS, .tokenizer_file = PAWL_STR("in/tokenizer.json"),
                          .corpus_manifest = PAWL_STR("in/corpus.txt"),
                          .writer = PAWL_TOKEN_WRITER_OPTIONS(.tokenizer_id = PAWL_STR("bpe-1"),
                                                              .dataset = PAWL_STR("web \xc3\xa9"),
                                                              .version = PAWL_STR("2"), .prefix = PAWL_STR("val.x"))));
    assert_string_equal(manifest_value("out", "tokenizer_id"), "\"bpe-1\"");
    assert_string_equal(manifest_value("out", "tokenizer_sha256"),
                        "\"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\""); /* of "{}" */
    assert_string_equal(manifest_value("out", "dataset"), "\"web \xc3\xa9\"");
    assert_string_equal(manifest_value("out", "version"), "\"2\"");
    assert_string_equal(manifest_value("out", "split"), "\"val.x\"");
    assert_string_equal(manifest_value("out", "name"), "\"val.x-00001.bin\"");
    char *text = get_file("in/corpus.txt", NULL), expected[70];
    unsigned char digest[32];
    assert_int_equal(pawl_sha256_of(text, strlen(text), digest, NULL), PAWL_OK);
    expected[0] = '"';
    pawl_sha256_print(digest, expected + 1);
    (void)strcat(expected, "\"");
    assert_string_equal(manifest_value("out", "corpus_manifest_sha256"), expected);
    free(text);
}

/* Goal: whatever is wrong with the input is refused with its place, and no set is left. Method: one file each. */
static void
bad_inputs_are_refused(void **state)
{
    (void)state;
    static const uint32_t IDS[] = { 1, 2, 300 };
    put_shard("in/range.bin", 2, 300, IDS, 3);
    put_shard("in/free.bin", 2, 0, IDS, 3);
    static const struct {
        const char *text; /* NULL: `file` is there */
        const char *file;
        enum pawl_pack_input input;
        enum pawl_pack_documents documents;
        uint64_t vocabulary;
        enum pawl_status status;
        const char *code;
        uint64_t offset;
        const char *message;
    } CASES[] = {
        { "1 2x", "in/t", PAWL_PACK_IDS, PAWL_PACK_FILE, 0, PAWL_CORRUPT, "content", 3,
          "ids are decimal numbers with blanks between them, found 'x' at byte 3" },
        { "1 -2", "in/t", PAWL_PACK_IDS, PAWL_PACK_FILE, 0, PAWL_CORRUPT, "content", 2,
          "ids are decimal numbers with blanks between them, found '-' at byte 2" },
        { "7 4294967296", "in/t", PAWL_PACK_IDS, PAWL_PACK_FILE, 0, PAWL_OUT_OF_RANGE, "id-range", 2,
          "id 4294967296 is not below 4294967296" },
        { "7 18446744073709551616", "in/t", PAWL_PACK_IDS, PAWL_PACK_FILE, 0, PAWL_OUT_OF_RANGE, "id-range", 2,
          "id 18446744073 is not below 4294967296" },
        { "1\n300\n", "in/t", PAWL_PACK_IDS, PAWL_PACK_LINE, 300, PAWL_OUT_OF_RANGE, "id-range", 2,
          "id 300 is not below 300" },
        { "{\"f\": \"\"}\n[1]", "in/t", PAWL_PACK_BYTES, PAWL_PACK_JSONL, 0, PAWL_CORRUPT, "content", 10,
          "line 2: a line is not an object" },
        { "{\"g\": \"\"}", "in/t", PAWL_PACK_BYTES, PAWL_PACK_JSONL, 0, PAWL_CORRUPT, "content", 8,
          "line 1: 'f' is not among the keys" },
        { "{\"f\": 1}", "in/t", PAWL_PACK_BYTES, PAWL_PACK_JSONL, 0, PAWL_CORRUPT, "content", 6,
          "line 1: 'f' is not a string" },
        { "{\"f\": \"\", \"f\": \"\"}", "in/t", PAWL_PACK_BYTES, PAWL_PACK_JSONL, 0, PAWL_CORRUPT, "content", 10,
          "line 1: 'f' is there twice" },
        { "{\"f\": \"1\"}", "in/t", PAWL_PACK_IDS, PAWL_PACK_JSONL, 0, PAWL_CORRUPT, "content", 6,
          "line 1: 'f' is not an array of ids" },
        { "{\"f\": [1, 2.0]}", "in/t", PAWL_PACK_IDS, PAWL_PACK_JSONL, 0, PAWL_CORRUPT, "content", 10,
          "line 1: 'f' has an item that is no id" },
        { NULL, "in/range.bin", PAWL_PACK_SHARDS, PAWL_PACK_FILE, 0, PAWL_CORRUPT, "id-range", 1028,
          "id 300 at position 2 is outside the vocabulary of 300" },
        { NULL, "in/free.bin", PAWL_PACK_SHARDS, PAWL_PACK_FILE, 300, PAWL_CORRUPT, "id-range", 1028,
          "id 300 at position 2 is outside the vocabulary of 300" },
        { NULL, "in/range.bin", PAWL_PACK_SHARDS, PAWL_PACK_FILE, 400, PAWL_CORRUPT, "vocabulary", 12,
          "a vocabulary of 400 was asked for, the shard names 300" },
        { "ab", "in/t", PAWL_PACK_BYTES, PAWL_PACK_FILE, 255, PAWL_ARGUMENT, "argument", PAWL_OFFSET_NONE,
          "a vocabulary of 255 is too small: bytes and separator take 256" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *const files[] = { CASES[i].file, NULL };
        struct pawl_error err = PAWL_ERROR_INIT;
        if (CASES[i].text != NULL)
            put_text("in/t", CASES[i].text);
        fresh_folder("out");
        enum pawl_status st =
            pack("out", files,
                 PAWL_PACK_OPTIONS(.input = CASES[i].input, .documents = CASES[i].documents,
                                   .field = pawl_str_z(CASES[i].documents == PAWL_PACK_JSONL ? "f" : ""),
                                   .writer = PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = CASES[i].vocabulary)),
                 NULL, &err);
        assert_string_equal(err.message, CASES[i].message);
        assert_string_equal(err.code, CASES[i].code);
        assert_int_equal(st, CASES[i].status);
        assert_int_equal(err.offset, CASES[i].offset);
        if (CASES[i].status != PAWL_ARGUMENT)
            assert_string_equal(err.path, CASES[i].file);
        assert_false(is_there("out/_MANIFEST.json"));
    }
    /* Broken JSON: the tokenizer's own words, the line and the place in the file added. */
    static const char *const FILES[] = { "in/t", NULL };
    struct pawl_error err = PAWL_ERROR_INIT;
    put_text("in/t", "{\"f\": \"\"}\n{\"f\": \"\",}\n");
    struct pawl_pack_options json = PAWL_PACK_OPTIONS(.documents = PAWL_PACK_JSONL, .field = PAWL_STR("f"));
    assert_int_equal(pack("out", FILES, json, NULL, &err), PAWL_CORRUPT);
    assert_memory_equal(err.message, "line 2: ", 8);
    assert_string_equal(err.code, "json");
    assert_int_equal(err.offset, 19);
    put_text("in/t", "{\"f\": \"\"} {}");
    assert_int_equal(pack("out", FILES, json, NULL, &err), PAWL_CORRUPT);
}

/* Goal: combinations that make no sense are the caller's fault, before anything is touched. */
static void
bad_options_are_refused(void **state)
{
    (void)state;
    static const char *const FILES[] = { "in/a", NULL }, *const NONE[] = { NULL }, *const GONE[] = { "in/gone", NULL };
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct {
        const char *const *files;
        struct pawl_pack_options options;
        enum pawl_status status;
        const char *message;
    } CASES[] = {
        { NONE, PAWL_PACK_OPTIONS(.input = PAWL_PACK_BYTES), PAWL_ARGUMENT, "there is no file to pack" },
        { FILES, PAWL_PACK_OPTIONS(.input = (enum pawl_pack_input)3), PAWL_ARGUMENT, "3 is no kind of input" },
        { FILES, PAWL_PACK_OPTIONS(.documents = (enum pawl_pack_documents)3), PAWL_ARGUMENT,
          "3 is no kind of document" },
        { FILES, PAWL_PACK_OPTIONS(.input = PAWL_PACK_SHARDS, .documents = PAWL_PACK_LINE), PAWL_ARGUMENT,
          "the documents of token files are in the files themselves" },
        { FILES, PAWL_PACK_OPTIONS(.documents = PAWL_PACK_JSONL), PAWL_ARGUMENT,
          "a field is for JSON Lines, and they need one" },
        { FILES, PAWL_PACK_OPTIONS(.field = PAWL_STR("text")), PAWL_ARGUMENT,
          "a field is for JSON Lines, and they need one" },
        { FILES, PAWL_PACK_OPTIONS(.tokenizer_file = PAWL_STR("in/a")), PAWL_ARGUMENT,
          "a tokenizer can be named only for ids from outside: these are bytes" },
        { FILES, PAWL_PACK_OPTIONS(.writer = PAWL_TOKEN_WRITER_OPTIONS(.tokenizer_id = PAWL_STR("x"))), PAWL_ARGUMENT,
          "a tokenizer can be named only for ids from outside: these are bytes" },
    };
    (void)system("rm -rf out");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_int_equal(pack("out", CASES[i].files, CASES[i].options, NULL, &err), CASES[i].status);
        assert_string_equal(err.message, CASES[i].message);
    }
    assert_int_equal(pack("out", GONE, PAWL_PACK_OPTIONS(.input = PAWL_PACK_BYTES), NULL, &err), PAWL_NO_FILE);
    assert_string_equal(err.path, "in/gone");
    assert_false(is_there("out"));
}

struct progress {
    uint64_t done, total, calls, stop_at;
};

static int
count_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *progress = context;
    assert_true(done > progress->done);
    progress->done = done;
    progress->total = total;
    return ++progress->calls == progress->stop_at;
}

/* Goal: progress reaches the whole, and a refusal of the callback ends the work with no set left. */
static void
progress_is_told_and_cancels(void **state)
{
    (void)state;
    static const char *const FILES[] = { "in/a", "in/lines", NULL };
    struct progress progress = { 0 };
    struct pawl_pack_options options = PAWL_PACK_OPTIONS(.progress = count_progress, .progress_context = &progress);
    fresh_folder("out");
    pack_ok("out", FILES, options);
    assert_int_equal(progress.done, 2 + 13);
    assert_int_equal(progress.total, 2 + 13);
    struct progress stopped = { .stop_at = 2 };
    struct pawl_error err = PAWL_ERROR_INIT;
    options.progress_context = &stopped;
    fresh_folder("out");
    assert_int_equal(pack("out", FILES, options, NULL, &err), PAWL_CANCELED);
    assert_string_equal(err.message, "packing was canceled");
    assert_false(is_there("out/_MANIFEST.json"));
    assert_false(is_there("out/train-00001.bin"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example),          cmocka_unit_test(documents_are_what_the_page_says),
        cmocka_unit_test(chunks_do_not_show),      cmocka_unit_test(vocabulary_and_width),
        cmocka_unit_test(names_and_digests),       cmocka_unit_test(bad_inputs_are_refused),
        cmocka_unit_test(bad_options_are_refused), cmocka_unit_test(progress_is_told_and_cancels),
    };
    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
