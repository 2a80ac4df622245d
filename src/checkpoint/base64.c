#include "checkpoint/base64.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The six bits of a character, 64 when it has none. */
static uint32_t
bits_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool
pawl_base64_decode(struct pawl_str text, unsigned char *data, size_t *ret_bytes, size_t *ret_bad)
{
    size_t n = 0;
    for (size_t at = 0; at < text.len; at += 4) {
        size_t group = text.len - at < 4 ? text.len - at : 4;
        size_t characters = 0;
        uint32_t word = 0;
        while (characters < group) {
            uint32_t bits = bits_of(text.data[at + characters]);
            if (bits == 64)
                break;
            word |= bits << (18 - 6 * characters);
            characters++;
        }
        bool is_last = at + 4 == text.len;
        size_t pads = 0; /* "xx==" or "xxx=", at the very end only */
        while (is_last && characters >= 2 && characters + pads < 4 && text.data[at + characters + pads] == '=')
            pads++;
        if (characters + pads < 4) {
            *ret_bad = at + characters + pads;
            return false;
        }
        /* What the last character says beyond whole bytes must be zero, else two texts would stand for the same bytes. */
        if ((pads == 1 && (word & 0xff) != 0) || (pads == 2 && (word & 0xffff) != 0)) {
            *ret_bad = at + characters - 1;
            return false;
        }
        for (size_t i = 0; i < 3 - pads; i++)
            data[n++] = (unsigned char)(word >> (16 - 8 * i));
    }
    *ret_bytes = n;
    return true;
}

bool
pawl_base64_encode(struct pawl_buffer *out, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    while (bytes > 0) {
        size_t group = bytes < 3 ? bytes : 3;
        uint32_t word = (uint32_t)at[0] << 16;
        if (group > 1)
            word |= (uint32_t)at[1] << 8;
        if (group > 2)
            word |= at[2];
        const char text[4] = { ALPHABET[word >> 18], ALPHABET[word >> 12 & 63],
                               group > 1 ? ALPHABET[word >> 6 & 63] : '=', group > 2 ? ALPHABET[word & 63] : '=' };
        if (!pawl_buffer_add(out, text, sizeof text))
            return false;
        at += group;
        bytes -= group;
    }
    return pawl_buffer_ok(out);
}
