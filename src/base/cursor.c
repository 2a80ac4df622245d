#include "base/cursor.h"

bool
pawl_cursor_take(struct pawl_cursor *cursor, size_t n, const unsigned char **ret_bytes)
{
    if (pawl_cursor_left(cursor) < n) /* compare sizes; never form at + n first */
        return false;
    *ret_bytes = cursor->at;
    if (n != 0)
        cursor->at += n;
    cursor->offset += n;
    return true;
}

bool
pawl_cursor_u8(struct pawl_cursor *cursor, uint8_t *ret)
{
    const unsigned char *bytes;
    if (!pawl_cursor_take(cursor, 1, &bytes))
        return false;
    *ret = bytes[0];
    return true;
}

bool
pawl_cursor_u16le(struct pawl_cursor *cursor, uint16_t *ret)
{
    const unsigned char *bytes;
    if (!pawl_cursor_take(cursor, 2, &bytes))
        return false;
    *ret = (uint16_t)(bytes[0] | bytes[1] << 8);
    return true;
}

bool
pawl_cursor_u32le(struct pawl_cursor *cursor, uint32_t *ret)
{
    const unsigned char *bytes;
    if (!pawl_cursor_take(cursor, 4, &bytes))
        return false;
    *ret = pawl_get_u32le(bytes);
    return true;
}

bool
pawl_cursor_u64le(struct pawl_cursor *cursor, uint64_t *ret)
{
    const unsigned char *bytes;
    if (!pawl_cursor_take(cursor, 8, &bytes))
        return false;
    *ret = pawl_get_u64le(bytes);
    return true;
}
