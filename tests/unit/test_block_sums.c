/* pawl.sums as bytes: what is written is read, everything else is refused with the place; and the taking of the sums. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cursor.h"
#include "base/fail.h"
#include "base/str.h"
#include "checkpoint/block_sums.h"
#include "checkpoint/documents.h"

#define MIB PAWL_SUMS_BLOCK_BYTES

/* A document of two files; the sums of its blocks are 0x1000 + their number. */
static struct pawl_buffer
make_document(void)
{
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_sums_file files[] = {
        { .name = PAWL_STR("model.safetensors"), .bytes = 2 * MIB + 5, .header_bytes = 80, .header_sum = 0x77 },
        { .name = PAWL_STR("optimizer-00001-of-00001.safetensors"),
          .bytes = MIB,
          .header_bytes = MIB,
          .header_sum = 1 },
    };
    assert_int_equal(pawl_sums_lay_out(files, 2, &out, NULL), PAWL_OK);
    unsigned char *bytes = (unsigned char *)out.data;
    for (size_t i = 0; i < 3; i++)
        pawl_put_u64le(bytes + (files[0].sums - bytes) + 8 * i, 0x1000 + i);
    pawl_put_u64le(bytes + (files[1].sums - bytes), 0x1003);
    pawl_sums_seal(&out);
    return out;
}

static void
what_is_written_is_read(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_sums sums;
    struct pawl_buffer text = make_document();
    assert_int_equal(text.len, 40 + (32 + 24 + 24) + (32 + 40 + 8) + 8);
    assert_int_equal(pawl_sums_parse(&arena, &sums, text.data, text.len, NULL), PAWL_OK);
    assert_int_equal(sums.n, 2);
    const struct pawl_sums_file *model = pawl_sums_find(&sums, PAWL_STR("model.safetensors"));
    const struct pawl_sums_file *optimizer = pawl_sums_find(&sums, PAWL_STR("optimizer-00001-of-00001.safetensors"));
    assert_non_null(model);
    assert_non_null(optimizer);
    assert_null(pawl_sums_find(&sums, PAWL_STR("optimizer.safetensors")));
    assert_true(model->bytes == 2 * MIB + 5 && model->header_bytes == 80 && model->header_sum == 0x77);
    assert_int_equal(pawl_sums_blocks(model->bytes), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(pawl_sums_of(model, i) == 0x1000 + i);
    assert_true(optimizer->bytes == MIB && optimizer->header_bytes == MIB);
    assert_true(pawl_sums_of(optimizer, 0) == 0x1003);
    pawl_arena_release(&arena);
    pawl_buffer_release(&text);
}

static void
no_files_at_all(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_sums sums;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    assert_int_equal(pawl_sums_lay_out(NULL, 0, &out, NULL), PAWL_OK);
    pawl_sums_seal(&out);
    assert_int_equal(pawl_sums_parse(&arena, &sums, out.data, out.len, NULL), PAWL_OK);
    assert_int_equal(sums.n, 0);
    assert_null(pawl_sums_find(&sums, PAWL_STR("model.safetensors")));
    pawl_arena_release(&arena);
    pawl_buffer_release(&out);
}

/* The document of the format's page, byte for byte. */
static void
the_example_of_the_page(void **state)
{
    (void)state;
    static const char expected[] = "5041574c53554d53"
                                   "0100000000000000"
                                   "0000100000000000"
                                   "7000000000000000"
                                   "0100000000000000"
                                   "0a00000000000000"
                                   "0a00000000000000"
                                   "7217a839d990bb0a"
                                   "1100000000000000"
                                   "6d6f64656c2e7361666574656e736f727300000000000000"
                                   "7217a839d990bb0a"
                                   "3b4ecc8f4340ac9d";
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    static const unsigned char file[] = "\x02\0\0\0\0\0\0\0{}"; /* the smallest safetensors file */
    struct pawl_sums_file entry = {
        .name = PAWL_STR("model.safetensors"), .bytes = 10, .header_bytes = 10, .header_sum = pawl_xxh64(file, 10, 0)
    };
    struct pawl_sums_taker taker = { .to = NULL };
    assert_int_equal(pawl_sums_lay_out(&entry, 1, &out, NULL), PAWL_OK);
    pawl_sums_take_begin(&taker, (unsigned char *)out.data + (entry.sums - (unsigned char *)out.data), 10);
    pawl_sums_take(&taker, file, 10);
    pawl_sums_take_end(&taker);
    pawl_sums_seal(&out);
    char hex[512] = "";
    for (size_t i = 0; i < out.len; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)out.data[i]);
    assert_string_equal(hex, expected);
    pawl_buffer_release(&out);
}

/* ---- what is refused ---- */

struct refused {
    const char *what;
    size_t at;     /* a word is put here... */
    uint64_t word; /* ...this one */
    size_t cut;    /* bytes taken away at the end; the words for the size and the sum are made right */
    bool is_raw;   /* neither is made right */
    uint64_t offset;
    const char *message;
};

#define FIRST 40              /* where the first entry begins */
#define SECOND (40 + 32 + 48) /* and the second */

static const struct refused REFUSED[] = {
    { "another magic", 0, 0, 0, false, 0, "it does not begin with PAWLSUMS" },
    { "version 0", 8, 0, 0, false, 8, "expected version 1, found 0" },
    { "other blocks", 16, 4096, 0, false, 16, "expected blocks of 1048576 bytes, found 4096" },
    { "another size", 24, 207, 0, true, 24, "it says that it has 207 bytes, and has 208" },
    { "no sum of itself", 48, 81, 0, true, 200, "expected the sum" },
    { "a file more", 32, 3, 0, false, 200, "an entry takes 32 bytes or more, and 0 are left" },
    { "a file less", 32, 1, 0, false, 120, "80 bytes stand behind the last file" },
    { "more files than fit", 32, UINT64_MAX, 0, false, 32, "18446744073709551615 files do not fit into 208 bytes" },
    { "a file too large", FIRST, UINT64_MAX, 0, false, 96,
      "'model.safetensors' of 18446744073709551615 bytes has 17592186044416 sums, and 104 bytes are left" },
    { "a header too large", FIRST + 8, 2 * MIB + 6, 0, false, FIRST + 8,
      "'model.safetensors' has a header of 2097158 bytes in a file of 2097157" },
    { "no name", FIRST + 24, 0, 0, false, FIRST + 24, "a name of 0 bytes, expected 1 ... 255" },
    { "a long name", FIRST + 24, 256, 0, false, FIRST + 24, "a name of 256 bytes, expected 1 ... 255" },
    { "a name that ends behind the file", FIRST + 24, 255, 0, false, FIRST + 32,
      "a name of 255 bytes, and 128 are left" },
    { "another name", FIRST + 32, UINT64_C(0x6c6d2e61646f6d6d), 0, false, FIRST + 32, "is no name of a tensor file" },
    { "no zeros behind the name", FIRST + 32 + 16, 0x4100000000000073, 0, false, FIRST + 32 + 23,
      "expected a zero behind the name, found 0x41" },
    { "cut in an entry", 32, 2, 60, false, 120, "an entry takes 32 bytes or more, and 20 are left" },
    { "cut in the head", 32, 2, 170, true, 32, "38 bytes, expected 48 or more" },
    { "cut in the version", 0, UINT64_C(0x534d55534c574150), 194, true, 8, "14 bytes, expected 48 or more" },
    { "cut in the magic", 0, UINT64_C(0x534d55534c574150), 204, true, 0, "it does not begin with PAWLSUMS" },
};

static void
everything_else_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        const struct refused *r = &REFUSED[i];
        struct pawl_arena arena = PAWL_ARENA_INIT;
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_sums sums;
        struct pawl_buffer text = make_document();
        pawl_put_u64le((unsigned char *)text.data + r->at, r->word);
        text.len -= r->cut;
        if (!r->is_raw) {
            pawl_put_u64le((unsigned char *)text.data + 24, text.len);
            pawl_sums_seal(&text);
        }
        enum pawl_status st = pawl_sums_parse(&arena, &sums, text.data, text.len, &err);
        if (st != PAWL_CORRUPT || strcmp(err.code, "content") != 0 || err.offset != r->offset ||
            strstr(err.message, r->message) == NULL)
            fail_msg("%s: status %d, code %s, offset %" PRIu64 ": %s", r->what, (int)st, err.code, err.offset,
                     err.message);
        pawl_arena_release(&arena);
        pawl_buffer_release(&text);
    }
}

/* Each name once, ascending. */
static void
names_ascend(void **state)
{
    (void)state;
    const char *const pairs[][2] = { { "optimizer.safetensors", "model.safetensors" },
                                     { "model.safetensors", "model.safetensors" } };
    for (size_t i = 0; i < 2; i++) {
        struct pawl_arena arena = PAWL_ARENA_INIT;
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_buffer text = PAWL_BUFFER_INIT;
        struct pawl_sums sums;
        struct pawl_sums_file files[] = { { .name = pawl_str_z(pairs[i][0]), .bytes = 10, .header_bytes = 10 },
                                          { .name = pawl_str_z(pairs[i][1]), .bytes = 10, .header_bytes = 10 } };
        assert_int_equal(pawl_sums_lay_out(files, 2, &text, NULL), PAWL_OK);
        pawl_sums_seal(&text);
        assert_int_equal(pawl_sums_parse(&arena, &sums, text.data, text.len, &err), PAWL_CORRUPT);
        assert_non_null(strstr(err.message, "expected each name once and ascending"));
        pawl_arena_release(&arena);
        pawl_buffer_release(&text);
    }
}

/* Every single byte of a document is under its own sum, or is that sum. */
static void
every_flipped_bit_is_refused(void **state)
{
    (void)state;
    struct pawl_buffer text = make_document();
    for (size_t i = 0; i < text.len * 8; i++) {
        struct pawl_arena arena = PAWL_ARENA_INIT;
        struct pawl_sums sums;
        text.data[i / 8] = (char)(text.data[i / 8] ^ 1 << i % 8);
        enum pawl_status st = pawl_sums_parse(&arena, &sums, text.data, text.len, NULL);
        assert_int_equal(st, i / 64 == 1 ? st == PAWL_CORRUPT ? PAWL_CORRUPT : PAWL_UNSUPPORTED : PAWL_CORRUPT);
        text.data[i / 8] = (char)(text.data[i / 8] ^ 1 << i % 8);
        pawl_arena_release(&arena);
    }
    for (size_t n = 0; n < text.len; n++) {
        struct pawl_arena arena = PAWL_ARENA_INIT;
        struct pawl_sums sums;
        assert_int_equal(pawl_sums_parse(&arena, &sums, text.data, n, NULL), PAWL_CORRUPT);
        pawl_arena_release(&arena);
    }
    pawl_buffer_release(&text);
}

/* A version to come is nobody's fault. */
static void
a_later_version_is_not_corrupt(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_sums sums;
    struct pawl_buffer text = make_document();
    pawl_put_u64le((unsigned char *)text.data + 8, 2);
    assert_int_equal(pawl_sums_parse(&arena, &sums, text.data, text.len, &err), PAWL_UNSUPPORTED);
    assert_string_equal(err.message, "version 2, this Pawl knows version 1");
    pawl_arena_release(&arena);
    pawl_buffer_release(&text);
}

static void
more_than_a_document_may_have(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_sums_file file = { .name = PAWL_STR("model.safetensors"),
                                   .bytes = MIB * (PAWL_DOCUMENT_BYTES_MAX / 8) };
    assert_int_equal(pawl_sums_lay_out(&file, 1, &out, &err), PAWL_LIMIT);
    assert_string_equal(err.message, "pawl.sums would have more than 268435456 bytes");
    file.bytes = UINT64_MAX;
    assert_int_equal(pawl_sums_lay_out(&file, 1, &out, &err), PAWL_LIMIT);
    assert_null(out.data);
}

/* ---- taking the sums ---- */

/* Goal: however the bytes come, the sums are those of the blocks. Method: files about as long as a block or two, in pieces of many sizes. */
static void
pieces_give_the_sums_of_the_blocks(void **state)
{
    (void)state;
    const size_t most = 2 * (size_t)MIB + 1;
    const size_t files[] = { 0, 1, MIB - 1, MIB, MIB + 1, 2 * MIB, 2 * MIB + 1 };
    const size_t pieces[] = { 1000, 65536, MIB - 1, MIB, MIB + 1, 3 * MIB };
    unsigned char *data = malloc(most);
    assert_non_null(data);
    for (size_t i = 0; i < most; i++)
        data[i] = (unsigned char)(i * 31 + i / 251);
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
            unsigned char sums[4 * 8];
            struct pawl_sums_taker taker = { .to = NULL };
            memset(sums, 0xee, sizeof sums);
            pawl_sums_take_begin(&taker, sums, files[f]);
            for (size_t at = 0; at < files[f]; at += pieces[p])
                pawl_sums_take(&taker, data + at, files[f] - at < pieces[p] ? files[f] - at : pieces[p]);
            pawl_sums_take_end(&taker);
            pawl_sums_take(&taker, data, 100); /* more than was said: nobody's memory is touched */
            size_t n = pawl_sums_blocks(files[f]);
            for (size_t i = 0; i < n; i++) {
                size_t len = files[f] - i * MIB < MIB ? files[f] - i * MIB : MIB;
                assert_true(pawl_get_u64le(sums + 8 * i) == pawl_xxh64(data + i * MIB, len, 0));
            }
            for (size_t i = 8 * n; i < sizeof sums; i++)
                assert_int_equal(sums[i], 0xee);
        }
    }
    free(data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(no_files_at_all),
        cmocka_unit_test(the_example_of_the_page),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(names_ascend),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(a_later_version_is_not_corrupt),
        cmocka_unit_test(more_than_a_document_may_have),
        cmocka_unit_test(pieces_give_the_sums_of_the_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
