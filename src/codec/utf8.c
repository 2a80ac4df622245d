#include "codec/utf8.h"

#include <assert.h>
#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

/*
 * Length of the valid sequence that begins at `at`, whose first byte is not
 * ASCII, or 0. RFC 3629, table of well-formed sequences: the first byte decides
 * the length and the range of the second, and every other byte is 80..bf. The
 * range of the second is what shuts out overlong forms (e0, f0), surrogates
 * (ed) and what lies past U+10FFFF (f4).
 */
static size_t
sequence_length(const unsigned char *at, size_t left)
{
    unsigned char first = at[0], low = 0x80, high = 0xbf;
    size_t length;
    if (first >= 0xc2 && first <= 0xdf) {
        length = 2;
    } else if (first >= 0xe0 && first <= 0xef) {
        length = 3;
        if (first == 0xe0)
            low = 0xa0;
        else if (first == 0xed)
            high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
        length = 4;
        if (first == 0xf0)
            low = 0x90;
        else if (first == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (left < length || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    return length;
}

/* Whether 32 bytes are all ASCII. Written on words: compilers make vector instructions of it. */
static bool
is_ascii_32(const unsigned char *at)
{
    uint64_t word[4];
    memcpy(word, at, sizeof(word));
    return ((word[0] | word[1] | word[2] | word[3]) & HIGH_BITS) == 0;
}

size_t
pawl_utf8_first_bad(const void *bytes, size_t n)
{
    const unsigned char *base = bytes;
    size_t i = 0;
    while (i < n) {
        if (base[i] < 0x80) {
            while (n - i >= 32 && is_ascii_32(base + i))
                i += 32;
            while (i < n && base[i] < 0x80)
                i++;
        } else {
            size_t length = sequence_length(base + i, n - i);
            if (length == 0)
                return i;
            i += length;
        }
    }
    return n;
}

size_t
pawl_utf8_decode(const unsigned char *at, uint32_t *ret_point)
{
    uint32_t first = at[0];
    if (first < 0x80) {
        *ret_point = first;
        return 1;
    }
    if (first < 0xe0) {
        *ret_point = (first & 0x1f) << 6 | (at[1] & 0x3fu);
        return 2;
    }
    if (first < 0xf0) {
        *ret_point = (first & 0x0f) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
        return 3;
    }
    *ret_point = (first & 0x07) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
    return 4;
}

size_t
pawl_utf8_encode(uint32_t point, unsigned char bytes[4])
{
    assert(point <= 0x10ffff && (point < 0xd800 || point > 0xdfff));
    if (point < 0x80) {
        bytes[0] = (unsigned char)point;
        return 1;
    }
    if (point < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | point >> 6);
        bytes[1] = (unsigned char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | point >> 12);
        bytes[1] = (unsigned char)(0x80 | (point >> 6 & 0x3f));
        bytes[2] = (unsigned char)(0x80 | (point & 0x3f));
        return 3;
    }
    bytes[0] = (unsigned char)(0xf0 | point >> 18);
    bytes[1] = (unsigned char)(0x80 | (point >> 12 & 0x3f));
    bytes[2] = (unsigned char)(0x80 | (point >> 6 & 0x3f));
    bytes[3] = (unsigned char)(0x80 | (point & 0x3f));
    return 4;
}
