/*
 * json/json_scan.h: the innermost loops of the tokenizer, shared with the fast path of the safetensors header.
 */
#ifndef PAWL_FORMATS_JSON_JSON_SCAN_H
#define PAWL_FORMATS_JSON_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/*
 * The first byte in [at, end) that a string can't hold as it is: '"', '\' or a control byte; `end` when there is none.
 *
 * Eight bytes at a time: with the bit 7 trick, (x - low) & ~x has the top bit of each byte that is below `low`, exact
 * up to the first such byte, as a borrow runs upwards only; so the lowest bit of the three masks together is right. On
 * a big-endian machine the lowest bit is not the first byte: there a hit is looked for byte by byte.
 */
static inline const unsigned char *
pawl_json_scan_plain(const unsigned char *at, const unsigned char *end)
{
#if defined(__SSE2__)
    const __m128i quotes = _mm_set1_epi8('"');
    const __m128i slashes = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1f);
    while (end - at >= 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, quotes), _mm_cmpeq_epi8(x, slashes)),
                                   _mm_cmpeq_epi8(_mm_min_epu8(x, last_control), x));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask != 0)
            return at + __builtin_ctz(mask);
        at += 16;
    }
#endif
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);
    while (end - at >= 8) {
        uint64_t x;
        memcpy(&x, at, 8);
        uint64_t quote = x ^ (ones * '"');
        uint64_t slash = x ^ (ones * '\\');
        uint64_t hit = (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((x - ones * 0x20) & ~x)) & tops;
        if (hit != 0)
            break;
        at += 8;
    }
    while (at != end && *at != '"' && *at != '\\' && *at >= 0x20)
        at++;
    return at;
}

static inline bool
pawl_json_is_blank(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline const unsigned char *
pawl_json_scan_blanks(const unsigned char *at, const unsigned char *end)
{
    while (at != end && pawl_json_is_blank(*at))
        at++;
    return at;
}

static inline bool
pawl_json_is_digit(unsigned char c)
{
    return (unsigned char)(c - '0') < 10;
}

static inline const unsigned char *
pawl_json_scan_digits(const unsigned char *at, const unsigned char *end)
{
    while (at != end && pawl_json_is_digit(*at))
        at++;
    return at;
}

#endif
