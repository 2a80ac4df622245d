/* base/cursor.h: reading bytes we did not write. It cannot leave them. */
#ifndef PAWL_BASE_CURSOR_H
#define PAWL_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pawl_cursor {
    const unsigned char *at;
    const unsigned char *end;
    uint64_t offset; /* of `at` in the whole, for messages */
};

static inline struct pawl_cursor
pawl_cursor_make(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    struct pawl_cursor cursor = { at, len == 0 ? at : at + len, 0 };
    return cursor;
}

static inline size_t
pawl_cursor_left(const struct pawl_cursor *cursor)
{
    return cursor->at == cursor->end ? 0 : (size_t)(cursor->end - cursor->at);
}

/* Each takes what it names, or takes nothing and returns false. */
bool pawl_cursor_take(struct pawl_cursor *cursor, size_t n, const unsigned char **ret_bytes);
bool pawl_cursor_u8(struct pawl_cursor *cursor, uint8_t *ret);
bool pawl_cursor_u16le(struct pawl_cursor *cursor, uint16_t *ret);
bool pawl_cursor_u32le(struct pawl_cursor *cursor, uint32_t *ret);
bool pawl_cursor_u64le(struct pawl_cursor *cursor, uint64_t *ret);

/* Storing and loading little-endian words in bytes known to be there. */
static inline void
pawl_put_u32le(unsigned char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline void
pawl_put_u64le(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline uint32_t
pawl_get_u32le(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t
pawl_get_u64le(const unsigned char *bytes)
{
    return (uint64_t)pawl_get_u32le(bytes) | (uint64_t)pawl_get_u32le(bytes + 4) << 32;
}

#endif
