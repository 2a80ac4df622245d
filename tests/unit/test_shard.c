#include "token_support.h"
#include "formats/tokens/shard.h"
#include "os/os.h"
#include "unit/emulator.h"

/* ---- the header ---- */

/* A header with words 4 to 255 of noise: they are ignored. */
static void
put_words(unsigned char bytes[1024], const uint32_t *words)
{
    memset(bytes, 0xa5, 1024);
    for (size_t i = 0; i < 4; i++)
        pawl_put_u32le(bytes + 4 * i, words[i]);
}

/*
 * Goal: each refusal has its code, place and words, and they come in the order of the page. Method: a header with one
 * fault; then, row by row, one with all later faults too, which must not show.
 */
static void
refusals_in_order(void **state)
{
    (void)state;
    static const struct {
        uint32_t words[4];
        uint64_t bytes;
        const char *code;
        enum pawl_status status;
        uint64_t offset;
        const char *message;
    } CASES[] = {
        { { 1, 9, UINT32_MAX, UINT32_MAX },
          0,
          "too-short",
          PAWL_TRUNCATED,
          0,
          "a token shard begins with a header of 1024 bytes, this file has 0" },
        { { 1, 9, UINT32_MAX, UINT32_MAX },
          1023,
          "too-short",
          PAWL_TRUNCATED,
          1023,
          "a token shard begins with a header of 1024 bytes, this file has 1023" },
        { { 20240521, 9, UINT32_MAX, UINT32_MAX },
          1025,
          "magic",
          PAWL_CORRUPT,
          0,
          "a token shard begins with the number 20240520, this file with 20240521" },
        { { UINT32_MAX, 1, 0, 0 },
          1024,
          "magic",
          PAWL_CORRUPT,
          0,
          "a token shard begins with the number 20240520, this file with -1" },
        { { 20240520, 0, UINT32_MAX, UINT32_MAX },
          1025,
          "version",
          PAWL_CORRUPT,
          4,
          "version 1 (16-bit ids) or 2 (32-bit ids) was expected, found 0" },
        { { 20240520, 3, UINT32_MAX, UINT32_MAX },
          1025,
          "version",
          PAWL_CORRUPT,
          4,
          "version 1 (16-bit ids) or 2 (32-bit ids) was expected, found 3" },
        { { 20240520, UINT32_MAX, UINT32_MAX, UINT32_MAX },
          1025,
          "version",
          PAWL_CORRUPT,
          4,
          "version 1 (16-bit ids) or 2 (32-bit ids) was expected, found -1" },
        { { 20240520, 1, UINT32_MAX, UINT32_MAX },
          1025,
          "count",
          PAWL_CORRUPT,
          8,
          "the number of ids is negative: -1" },
        { { 20240520, 2, 0x80000000, 0 },
          1024,
          "count",
          PAWL_CORRUPT,
          8,
          "the number of ids is negative: -2147483648" },
        { { 20240520, 1, 10, UINT32_MAX },
          1043,
          "truncated",
          PAWL_TRUNCATED,
          1043,
          "10 ids of 2 bytes make a file of 1044 bytes, this one has 1043" },
        { { 20240520, 1, 10, UINT32_MAX },
          1045,
          "trailing",
          PAWL_CORRUPT,
          1044,
          "10 ids of 2 bytes make a file of 1044 bytes, this one has 1045" },
        { { 20240520, 1, 10, 0 },
          1034,
          "truncated",
          PAWL_TRUNCATED,
          1034,
          "10 ids of 2 bytes make a file of 1044 bytes, this one has 1034; ids of 1 byte would fit" },
        { { 20240520, 1, 10, 0 },
          1064,
          "trailing",
          PAWL_CORRUPT,
          1044,
          "10 ids of 2 bytes make a file of 1044 bytes, this one has 1064; ids of 4 bytes would fit" },
        { { 20240520, 2, 10, 0 },
          1044,
          "truncated",
          PAWL_TRUNCATED,
          1044,
          "10 ids of 4 bytes make a file of 1064 bytes, this one has 1044; ids of 2 bytes would fit" },
        { { 20240520, 1, 0, 0 },
          1025,
          "trailing",
          PAWL_CORRUPT,
          1024,
          "0 ids of 2 bytes make a file of 1024 bytes, this one has 1025" },
        { { 20240520, 2, INT32_MAX, 0 },
          1024,
          "truncated",
          PAWL_TRUNCATED,
          1024,
          "2147483647 ids of 4 bytes make a file of 8589935612 bytes, this one has 1024" },
        { { 20240520, 1, 10, UINT32_MAX }, 1044, "vocabulary", PAWL_CORRUPT, 12, "the vocabulary is negative: -1" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        unsigned char bytes[1024];
        struct pawl_shard_info info = { .width = 77 };
        struct pawl_error err = PAWL_ERROR_INIT;
        put_words(bytes, CASES[i].words);
        size_t n = CASES[i].bytes < 1024 ? (size_t)CASES[i].bytes : 1024;
        enum pawl_status st = pawl_shard_parse(bytes, n, CASES[i].bytes, &info, &err);
        assert_string_equal(err.message, CASES[i].message);
        assert_string_equal(err.code, CASES[i].code);
        assert_int_equal(st, CASES[i].status);
        assert_int_equal(err.offset, CASES[i].offset);
        assert_int_equal(info.width, 77);
    }
}

/* Goal: what is written is what is read, at the edges of every word. */
static void
headers_come_back(void **state)
{
    (void)state;
    static const uint64_t IDS[] = { 0, 1, 100000000, 2147483647 };
    static const uint64_t VOCABULARIES[] = { 0, 1, 65536, 2147483647, 2147483648, UINT64_C(1) << 32 };
    for (unsigned width = 2; width <= 4; width += 2) {
        for (size_t i = 0; i < 4; i++) {
            for (size_t v = 0; v < 6; v++) {
                unsigned char bytes[1024];
                struct pawl_shard_info info = { .width = width, .ids = IDS[i], .vocabulary = VOCABULARIES[v] }, got;
                pawl_shard_print(&info, bytes);
                for (size_t b = 16; b < 1024; b++)
                    assert_int_equal(bytes[b], 0);
                assert_int_equal(pawl_shard_parse(bytes, 1024, 1024 + IDS[i] * width, &got, NULL), PAWL_OK);
                assert_int_equal(got.width, width);
                assert_int_equal(got.format, width / 2);
                assert_int_equal(got.ids, IDS[i]);
                assert_int_equal(got.vocabulary, VOCABULARIES[v] >= 2147483648 ? 0 : VOCABULARIES[v]);
            }
        }
    }
    assert_string_equal(pawl_shard_format_name(PAWL_SHARD_PAWL_1), "pawl-1");
    assert_string_equal(pawl_shard_format_name(PAWL_SHARD_PAWL_2), "pawl-2");
}

/* ---- ids ---- */

/*
 * Goal: the scan by lanes finds the very first id that is out of range, at every place and limit. Method: against the scan
 * of one id at a time: all single positions of arrays that end inside and at the edge of a block, and seeded noise.
 */
static void
the_scan_agrees_with_the_plain_one(void **state)
{
    (void)state;
    uint64_t seed = 77;
    print_message("seed %" PRIu64 "\n", seed);
    static uint32_t wide[8192];
    static uint16_t narrow[8192];
    static const uint64_t LIMITS[] = { 1,
                                       2,
                                       255,
                                       256,
                                       32767,
                                       32768,
                                       32769,
                                       65535,
                                       65536,
                                       65537,
                                       UINT64_C(0x7fffffff),
                                       UINT64_C(0x80000000),
                                       UINT64_C(0x80000001),
                                       UINT64_C(0xffffffff),
                                       UINT64_C(0x100000000),
                                       UINT64_MAX };
    for (size_t l = 0; l < sizeof LIMITS / sizeof LIMITS[0]; l++) {
        for (unsigned width = 2; width <= 4; width += 2) {
            const uint64_t limit = LIMITS[l], most = width == 2 ? UINT16_MAX : UINT32_MAX;
            const void *ids = width == 2 ? (const void *)narrow : wide;
            for (int round = 0; round < 300; round++) {
                size_t n = round < 20 ? (size_t)round : pick(&seed, 8193);
                for (size_t i = 0; i < n; i++) {
                    wide[i] = (uint32_t)pick(&seed, limit < most ? limit : most + 1);
                    narrow[i] = (uint16_t)wide[i];
                }
                /* none to three that are out of range, the limit itself among them */
                for (uint64_t k = pick(&seed, 4); k > 0 && n != 0 && limit <= most; k--) {
                    size_t at = pick(&seed, n);
                    wide[at] = (uint32_t)(pick(&seed, 2) == 0 ? limit : limit + pick(&seed, most - limit + 1));
                    narrow[at] = (uint16_t)wide[at];
                }
                assert_int_equal(pawl_shard_find_beyond(ids, width, n, limit),
                                 pawl_shard_find_beyond_scalar(ids, width, n, limit));
            }
        }
    }
    for (size_t n = 2040; n <= 2060; n++) {
        for (size_t at = 0; at < n; at++) {
            memset(narrow, 0, sizeof narrow);
            narrow[at] = 300;
            assert_int_equal(pawl_shard_find_beyond(narrow, 2, n, 300), at);
            assert_int_equal(pawl_shard_find_beyond(narrow, 2, n, 301), n);
        }
    }
}

/* Goal: widening is exact for every count around the lanes, and writes no id more. */
static void
widening_is_exact(void **state)
{
    (void)state;
    uint16_t narrow[64];
    uint32_t wide[64], out[65];
    for (unsigned i = 0; i < 64; i++) {
        narrow[i] = (uint16_t)(i * 4099 + 60000);
        wide[i] = i * 2654435761u;
    }
    for (size_t from = 0; from < 3; from++) {
        for (size_t n = 0; n + from <= 64; n++) {
            memset(out, 0xee, sizeof out);
            pawl_shard_widen(out, narrow + from, 2, n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(out[i], narrow[from + i]);
            assert_int_equal(out[n], 0xeeeeeeee);
            memset(out, 0xee, sizeof out);
            pawl_shard_widen(out, wide + from, 4, n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(out[i], wide[from + i]);
            assert_int_equal(out[n], 0xeeeeeeee);
        }
    }
}

/* ---- files ---- */

static enum pawl_status
open_shard(const char *path, uint64_t vocabulary, bool trust, struct pawl_shard **ret, struct pawl_error *err)
{
    struct pawl_shard_options options = PAWL_SHARD_OPTIONS(.vocabulary = vocabulary, .trust_ids = trust);
    return pawl_shard_open(pawl_str_z(path), &options, ret, err);
}

/* Goal: the worked example of the page: 1030 bytes, and the first sixteen of them. */
static void
worked_example(void **state)
{
    (void)state;
    static const uint32_t IDS[] = { 1, 2, 3 };
    static const unsigned char BEGIN[] = { 0x88, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 3, 0, 0, 0, 0, 1, 0, 0 };
    static const unsigned char END[] = { 1, 0, 2, 0, 3, 0 };
    struct pawl_shard_info info = { .width = 2, .ids = 3, .vocabulary = 256 };
    unsigned char file[1030];
    pawl_shard_print(&info, file);
    memcpy(file + 1024, END, sizeof END);
    assert_memory_equal(file, BEGIN, sizeof BEGIN);
    put_file("example.bin", file, sizeof file);

    struct pawl_shard *shard;
    uint32_t ids[3];
    assert_int_equal(open_shard("example.bin", 256, false, &shard, NULL), PAWL_OK);
    assert_int_equal(pawl_shard_info(shard).ids, 3);
    assert_int_equal(pawl_shard_info(shard).vocabulary, 256);
    assert_int_equal(pawl_shard_read(shard, 0, 3, ids, NULL), PAWL_OK);
    assert_memory_equal(ids, IDS, sizeof IDS);
    assert_memory_equal(pawl_shard_data(shard), END, sizeof END);
    assert_int_equal((uintptr_t)pawl_shard_data(shard) % 4, 0);

    /* Reading stops at the end of the ids, whatever the sum of position and count. */
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_shard_read(shard, 3, 0, ids, NULL), PAWL_OK);
    assert_int_equal(pawl_shard_read(shard, 1, 3, ids, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "3 ids from position 1 are not among the 3 of the shard");
    assert_string_equal(err.path, "example.bin");
    assert_int_equal(pawl_shard_read(shard, 4, 0, ids, NULL), PAWL_ARGUMENT);
    assert_int_equal(pawl_shard_read(shard, 2, SIZE_MAX, ids, NULL), PAWL_ARGUMENT);
    assert_int_equal(pawl_shard_read(shard, UINT64_MAX, 2, ids, NULL), PAWL_ARGUMENT);
    pawl_shard_close(shard);
    pawl_shard_close(NULL);
}

/* Goal: every good golden file gives its ids; none is refused for what its header holds beyond word 3. */
static void
golden_good(void **state)
{
    (void)state;
    char *text = get_file(GOLDEN "good.tsv", NULL), *line = text, *fields[7] = { NULL };
    size_t n = 0;
    while (*line != '\0') {
        char *next = strchr(line, '\n') + 1, path[512];
        struct pawl_shard *shard;
        struct pawl_error err = PAWL_ERROR_INIT;
        assert_int_equal(cut_line(line, fields, 7), 7);
        (void)snprintf(path, sizeof path, GOLDEN "%s", fields[0]);
        if (open_shard(path, 0, false, &shard, &err) != PAWL_OK)
            fail_msg("%s: %s", path, err.message);
        struct pawl_shard_info info = pawl_shard_info(shard);
        const size_t from = strtoull(fields[4], NULL, 10), to = strtoull(fields[5], NULL, 10);
        assert_string_equal(pawl_shard_format_name(info.format), fields[1]);
        assert_int_equal(info.width, strtoull(fields[2], NULL, 10));
        assert_int_equal(info.ids, to - from);
        assert_int_equal(info.vocabulary, strtoull(fields[6], NULL, 10));
        if (strcmp(fields[3], "-") == 0) {
            assert_null(pawl_shard_data(shard));
        } else {
            size_t n_corpus;
            uint32_t *corpus = golden_corpus(fields[3], &n_corpus), got[1024];
            assert_true(to <= n_corpus);
            assert_int_equal(pawl_shard_read(shard, 0, to - from, got, NULL), PAWL_OK);
            assert_memory_equal(got, corpus + from, (to - from) * 4);
            free(corpus);
        }
        pawl_shard_close(shard);
        line = next;
        n++;
    }
    free(text);
    assert_int_equal(n, 15);
}

/* Goal: every bad golden file is refused by its reason, with the width that fits and the position of the id. */
static void
golden_bad(void **state)
{
    (void)state;
    char *text = get_file(GOLDEN "bad.tsv", NULL), *line = text, *fields[5] = { NULL };
    size_t n = 0;
    while (*line != '\0') {
        char *next = strchr(line, '\n') + 1, path[512], expected[64];
        struct pawl_shard *shard = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        assert_int_equal(cut_line(line, fields, 5), 5);
        (void)snprintf(path, sizeof path, GOLDEN "%s", fields[0]);
        assert_int_not_equal(open_shard(path, strtoull(fields[4], NULL, 10), false, &shard, &err), PAWL_OK);
        assert_null(shard);
        assert_string_equal(err.code, fields[1]);
        assert_non_null(strstr(err.path, fields[0]));
        (void)snprintf(expected, sizeof expected, "; ids of %s byte", fields[2]);
        assert_int_equal(strstr(err.message, expected) != NULL, strcmp(fields[2], "-") != 0);
        assert_int_equal(strstr(err.message, "would fit") != NULL, strcmp(fields[2], "-") != 0);
        (void)snprintf(expected, sizeof expected, "at position %s ", fields[3]);
        assert_int_equal(strstr(err.message, expected) != NULL, strcmp(fields[3], "-") != 0);
        line = next;
        n++;
    }
    free(text);
    assert_int_equal(n, 21);
}

/* Goal: which vocabulary ids are held against, and when they are not looked at. */
static void
vocabularies(void **state)
{
    (void)state;
    static const uint32_t IDS[] = { 5, 7, 99, 7 };
    struct pawl_shard *shard;
    struct pawl_error err = PAWL_ERROR_INIT;
    put_shard("free.bin", 2, 0, IDS, 4);
    put_shard("named.bin", 4, 99, IDS, 4);
    put_shard("exact.bin", 4, 100, IDS, 4);

    /* Nobody states one: nothing to hold ids against. */
    assert_int_equal(open_shard("free.bin", 0, false, &shard, NULL), PAWL_OK);
    pawl_shard_close(shard);
    /* The caller alone. */
    assert_int_equal(open_shard("free.bin", 100, false, &shard, NULL), PAWL_OK);
    pawl_shard_close(shard);
    assert_int_equal(open_shard("free.bin", 99, false, &shard, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "id 99 at position 2 is outside the vocabulary of 99");
    assert_string_equal(err.code, "id-range");
    assert_int_equal(err.offset, 1024 + 2 * 2);
    /* The file alone: an id that is the vocabulary is out. */
    assert_int_equal(open_shard("exact.bin", 0, false, &shard, NULL), PAWL_OK);
    pawl_shard_close(shard);
    assert_int_equal(open_shard("named.bin", 0, false, &shard, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "id 99 at position 2 is outside the vocabulary of 99");
    assert_int_equal(err.offset, 1024 + 2 * 4);
    assert_string_equal(err.path, "named.bin");
    /* Both: they must agree, and that comes first. */
    assert_int_equal(open_shard("named.bin", 100, false, &shard, &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "a vocabulary of 100 was asked for, the shard names 99");
    assert_string_equal(err.code, "vocabulary");
    assert_int_equal(open_shard("named.bin", 100, true, &shard, &err), PAWL_CORRUPT);
    /* Trusted: not scanned. */
    assert_int_equal(open_shard("named.bin", 0, true, &shard, NULL), PAWL_OK);
    pawl_shard_close(shard);
    assert_int_equal(open_shard("free.bin", 50, true, &shard, NULL), PAWL_OK);
    pawl_shard_close(shard);
}

/* Goal: a bad id is found wherever it lies among the steps of the scan of a large file. */
static void
a_bad_id_far_into_a_file(void **state)
{
    (void)state;
    enum { N = 3 << 20 };
    uint32_t *ids = calloc(N, sizeof *ids);
    static const size_t PLACES[] = { 0, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, N - 1 };
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++) {
        struct pawl_shard *shard;
        struct pawl_error err = PAWL_ERROR_INIT;
        char message[128];
        ids[PLACES[i]] = 256;
        put_shard("far.bin", 2, 256, ids, N);
        ids[PLACES[i]] = 0;
        assert_int_equal(open_shard("far.bin", 0, false, &shard, &err), PAWL_CORRUPT);
        (void)snprintf(message, sizeof message, "id 256 at position %zu is outside the vocabulary of 256", PLACES[i]);
        assert_string_equal(err.message, message);
        assert_int_equal(err.offset, 1024 + 2 * PLACES[i]);
    }
    free(ids);
}

/* Goal: paths that are no file, and a file that is cut while mapped, are statuses. */
static void
paths_and_files_that_change(void **state)
{
    (void)state;
    SKIP_UNDER_EMULATOR("says of every advice about memory that it was taken");
    struct pawl_shard *shard;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(open_shard("gone.bin", 0, false, &shard, &err), PAWL_NO_FILE);
    assert_string_equal(err.path, "gone.bin");
    assert_int_equal(open_shard("", 0, false, &shard, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the path is empty");
    assert_int_equal(pawl_shard_open(PAWL_STR("a\0b"), NULL, &shard, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the path 'a\\x00b' has a NUL in it");
    assert_int_equal(open_shard(".", 0, false, &shard, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-a-file");
    (void)unlink("pipe.bin");
    assert_int_equal(mkfifo("pipe.bin", 0666), 0);
    assert_int_equal(open_shard("pipe.bin", 0, false, &shard, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-a-file");

    put_counting_shard("cut.bin", 4, 0, 100000);
    assert_int_equal(open_shard("cut.bin", 0, false, &shard, NULL), PAWL_OK);
    const struct pawl_os *os = pawl_os_posix();
    if (os->map_populate(os->context, pawl_shard_data(shard), 1) != 0) {
        pawl_shard_close(shard);
        skip(); /* a system that can't tell */
    }
    assert_int_equal(truncate("cut.bin", 4096), 0);
    uint32_t id;
    enum pawl_status st = pawl_shard_read(shard, 0, 1, &id, NULL);
    assert_int_equal(st, PAWL_OK);

    st = pawl_shard_read(shard, 90000, 1, &id, &err);
    assert_int_equal(st, PAWL_TRUNCATED);
    assert_string_equal(err.code, "truncated");
    pawl_shard_close(shard);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_in_order),
        cmocka_unit_test(headers_come_back),
        cmocka_unit_test(the_scan_agrees_with_the_plain_one),
        cmocka_unit_test(widening_is_exact),
        cmocka_unit_test(worked_example),
        cmocka_unit_test(golden_good),
        cmocka_unit_test(golden_bad),
        cmocka_unit_test(vocabularies),
        cmocka_unit_test(a_bad_id_far_into_a_file),
        cmocka_unit_test(paths_and_files_that_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
