#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "codec/utf8.h"
#include "pawl/pcg32.h"

/* The checker on a heap copy of exactly n bytes, so that a sanitizer sees a read past the end. */
static size_t
first_bad(const void *bytes, size_t n)
{
    unsigned char *copy = malloc(n == 0 ? 1 : n);
    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, bytes, n);
    size_t at = pawl_utf8_first_bad(copy, n);
    free(copy);
    return at;
}

/*
 * Goal: exactly the code points of Unicode, without the surrogates, are valid,
 * in their one shortest form. Method: all of them, encoded, checked, decoded;
 * every prefix of a sequence is bad at its beginning.
 */
static void
every_code_point(void **state)
{
    (void)state;
    assert_int_equal(pawl_utf8_first_bad(NULL, 0), 0);
    for (uint32_t point = 0; point <= 0x10ffff; point++) {
        if (point == 0xd800)
            point = 0xe000;
        unsigned char bytes[5] = { 0 };
        size_t n = pawl_utf8_encode(point, bytes);
        size_t want = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        uint32_t back = UINT32_MAX;
        if (n != want || pawl_utf8_first_bad(bytes, n) != n || pawl_utf8_decode(bytes, &back) != n || back != point)
            fail_msg("U+%04X: %zu bytes, back as U+%04X", (unsigned)point, n, (unsigned)back);
        for (size_t cut = 1; cut < n; cut++) {
            if (pawl_utf8_first_bad(bytes, cut) != 0)
                fail_msg("U+%04X cut to %zu bytes passes", (unsigned)point, cut);
        }
    }
}

/* A checker that follows the bits instead of the table of ranges: decode by the length mark, then judge the code point. */
static size_t
plain_first_bad(const unsigned char *bytes, size_t n)
{
    static const uint32_t shortest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    for (size_t i = 0; i < n;) {
        unsigned char first = bytes[i];
        size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
        if (length == 0 || n - i < length)
            return i;
        if (length > 1) {
            uint32_t point = first & (0xffu >> (length + 1));
            for (size_t k = 1; k < length; k++) {
                if (bytes[i + k] >> 6 != 2)
                    return i;
                point = point << 6 | (bytes[i + k] & 63u);
            }
            if (point < shortest[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
                return i;
        }
        i += length;
    }
    return n;
}

/*
 * Goal: every invalid class is refused: lone continuations, c0 and c1, f5..ff,
 * overlong forms, surrogates, past U+10FFFF, cut sequences. Method: all 2^24
 * texts of three bytes with the fourth a continuation, against plain_first_bad();
 * a stride keeps the last bytes to the classes that matter.
 */
static void
every_class_of_sequences(void **state)
{
    (void)state;
    const unsigned char last[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xff };
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        for (size_t c = 0; c < sizeof(last); c++) {
            for (size_t d = 0; d < sizeof(last); d++) {
                const unsigned char text[4] = { (unsigned char)(pair >> 8), (unsigned char)pair, last[c], last[d] };
                for (size_t n = d == 0 ? 1 : 4; n <= 4; n++) {
                    if (pawl_utf8_first_bad(text, n) != plain_first_bad(text, n))
                        fail_msg("%02x %02x %02x %02x, %zu bytes: bad at %zu, expected %zu", text[0], text[1], text[2],
                                 text[3], n, pawl_utf8_first_bad(text, n), plain_first_bad(text, n));
                }
            }
        }
    }
}

/* The classes again by name, so that both checkers cannot be wrong together. */
static void
named_bad_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n, bad;
    } texts[] = {
        { "\x80", 1, 0 },                 /* a continuation alone */
        { "a\xbf", 2, 1 },                /* behind ASCII */
        { "\xc0\x80", 2, 0 },             /* overlong NUL */
        { "\xc1\xbf", 2, 0 },             /* overlong U+007F */
        { "\xe0\x9f\xbf", 3, 0 },         /* overlong U+07FF */
        { "\xf0\x8f\xbf\xbf", 4, 0 },     /* overlong U+FFFF */
        { "\xed\xa0\x80", 3, 0 },         /* U+D800 */
        { "\xed\xbf\xbf", 3, 0 },         /* U+DFFF */
        { "\xf4\x90\x80\x80", 4, 0 },     /* U+110000 */
        { "\xf5\x80\x80\x80", 4, 0 },     /* beyond */
        { "\xf8\x88\x80\x80\x80", 5, 0 }, /* five bytes, once allowed */
        { "\xfe", 1, 0 },
        { "\xff", 1, 0 },
        { "\xc3", 1, 0 }, /* cut at the end */
        { "\xe2\x82", 2, 0 },
        { "\xf0\x9f\x98", 3, 0 },
        { "\xc3"
          "A",
          2, 0 }, /* cut by ASCII */
        { "\xe2\x82"
          "A",
          3, 0 },
        { "\xc3\xa9\xc3\xc3\xa9", 5, 2 }, /* cut by another beginning */
        { "ok \xe2\x82\xac\x80", 7, 6 },  /* one continuation too many */
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(first_bad(texts[i].text, texts[i].n), texts[i].bad);
    assert_int_equal(first_bad("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xf0\x90\x80\x80", 14), 14);
}

/*
 * Goal: the fast way over ASCII neither skips a byte nor reads past the end.
 * Method: ASCII of every length to 140, one byte replaced at every offset by a
 * bad one, or two by a valid sequence; at every alignment to 8.
 */
static void
one_byte_in_ascii(void **state)
{
    (void)state;
    char text[160];
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t n = 0; n <= 140; n++) {
            char *at = text + shift;
            memset(text, 'x', sizeof(text));
            memset(at + n, 0xff, 8); /* behind the end: must not be seen */
            assert_int_equal(pawl_utf8_first_bad(at, n), n);
            assert_int_equal(first_bad(at, n), n);
            for (size_t i = 0; i < n; i++) {
                at[i] = (char)0x80;
                assert_int_equal(pawl_utf8_first_bad(at, n), i);
                if (i + 1 < n) {
                    memcpy(at + i, "\xc3\xa9", 2);
                    assert_int_equal(pawl_utf8_first_bad(at, n), n);
                    at[i + 1] = 'x';
                    assert_int_equal(pawl_utf8_first_bad(at, n), i);
                }
                at[i] = 'x';
            }
        }
    }
}

/* Random mixtures of runs of ASCII, valid sequences and, now and then, a spoilt byte, against the plain checker. */
static void
random_texts(void **state)
{
    (void)state;
    const uint64_t seed = 20240601;
    printf("seed %llu\n", (unsigned long long)seed);
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, seed, 54);
    size_t bad_texts = 0;
    for (int round = 0; round < 20000; round++) {
        unsigned char text[600];
        size_t n = 0;
        while (n < 512 && pawl_pcg32_below(&rng, 12) != 0) {
            if (pawl_pcg32_below(&rng, 2) == 0) {
                size_t run = (size_t)pawl_pcg32_below(&rng, 80);
                memset(text + n, 'q', run);
                n += run;
            } else {
                uint32_t point = (uint32_t)pawl_pcg32_below(&rng, 0x110000);
                n += pawl_utf8_encode(point >= 0xd800 && point < 0xe000 ? 0xe9 : point, text + n);
            }
        }
        if (n > 0 && pawl_pcg32_below(&rng, 2) == 0)
            text[pawl_pcg32_below(&rng, n)] = (unsigned char)pawl_pcg32_next(&rng);
        size_t want = plain_first_bad(text, n);
        bad_texts += want < n;
        assert_int_equal(first_bad(text, n), want);
    }
    assert_true(bad_texts > 1000 && bad_texts < 19000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point), cmocka_unit_test(every_class_of_sequences),
        cmocka_unit_test(named_bad_texts),  cmocka_unit_test(one_byte_in_ascii),
        cmocka_unit_test(random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
