/*
 * base/buffer.h: bytes that grow. Every append either does all of it or returns
 * false (memory) and leaves the buffer as it was; a buffer that failed once
 * stays failed, so a caller may append many times and ask once with
 * pawl_buffer_ok(). The bytes are never NUL-terminated unless asked.
 */
#ifndef PAWL_BASE_BUFFER_H
#define PAWL_BASE_BUFFER_H

#include "base/fail.h"
#include "base/str.h"

struct pawl_buffer {
    char *data;
    size_t len;
    size_t capacity;
    bool is_failed;
};

#define PAWL_BUFFER_INIT  \
    {                     \
        NULL, 0, 0, false \
    }

void pawl_buffer_release(struct pawl_buffer *buffer); /* back to the empty state */
void pawl_buffer_clear(struct pawl_buffer *buffer);   /* keeps the memory */
bool pawl_buffer_reserve(struct pawl_buffer *buffer, size_t more);
bool pawl_buffer_add(struct pawl_buffer *buffer, const void *bytes, size_t len);
bool pawl_buffer_add_str(struct pawl_buffer *buffer, struct pawl_str str);
bool pawl_buffer_add_z(struct pawl_buffer *buffer, const char *text);
bool pawl_buffer_add_char(struct pawl_buffer *buffer, char c);
bool pawl_buffer_printf(struct pawl_buffer *buffer, const char *format, ...) PAWL_PRINTF(2, 3);

/* Append a NUL that is not counted; false when memory is short. */
bool pawl_buffer_terminate(struct pawl_buffer *buffer);

static inline bool
pawl_buffer_ok(const struct pawl_buffer *buffer)
{
    return !buffer->is_failed;
}

static inline struct pawl_str
pawl_buffer_str(const struct pawl_buffer *buffer)
{
    return pawl_str_make(buffer->data, buffer->len);
}

#endif
