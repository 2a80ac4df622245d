/* codec/utf8.h: strict UTF-8 (RFC 3629): no overlong forms, no surrogates, at most U+10FFFF. */
#ifndef PAWL_CODEC_UTF8_H
#define PAWL_CODEC_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offset of the first byte that begins no valid sequence; n when all is valid. ASCII runs go 16 bytes or more at a time. */
size_t pawl_utf8_first_bad(const void *bytes, size_t n);

/* Decode one sequence known to be valid; returns its length. */
size_t pawl_utf8_decode(const unsigned char *at, uint32_t *ret_point);

/* Write a code point (no surrogate, at most 0x10ffff); returns 1 to 4. */
size_t pawl_utf8_encode(uint32_t point, unsigned char bytes[4]);

#endif
