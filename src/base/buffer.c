#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"

void
pawl_buffer_release(struct pawl_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct pawl_buffer)PAWL_BUFFER_INIT;
}

void
pawl_buffer_clear(struct pawl_buffer *buffer)
{
    buffer->len = 0;
    buffer->is_failed = false;
}

bool
pawl_buffer_reserve(struct pawl_buffer *buffer, size_t more)
{
    size_t need;
    if (buffer->is_failed)
        return false;
    if (!pawl_add_size(buffer->len, more, &need))
        goto failed;
    if (need <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
    while (capacity < need) {
        if (!pawl_mul_size(capacity, 2, &capacity))
            capacity = need;
    }
    char *data = realloc(buffer->data, capacity);
    if (data == NULL)
        goto failed;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
failed:
    buffer->is_failed = true;
    return false;
}

bool
pawl_buffer_add(struct pawl_buffer *buffer, const void *bytes, size_t len)
{
    if (!pawl_buffer_reserve(buffer, len))
        return false;
    if (len != 0)
        memcpy(buffer->data + buffer->len, bytes, len);
    buffer->len += len;
    return true;
}

bool
pawl_buffer_add_str(struct pawl_buffer *buffer, struct pawl_str str)
{
    return pawl_buffer_add(buffer, str.data, str.len);
}

bool
pawl_buffer_add_z(struct pawl_buffer *buffer, const char *text)
{
    return pawl_buffer_add(buffer, text, strlen(text));
}

bool
pawl_buffer_add_char(struct pawl_buffer *buffer, char c)
{
    return pawl_buffer_add(buffer, &c, 1);
}

bool
pawl_buffer_printf(struct pawl_buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !pawl_buffer_reserve(buffer, (size_t)n + 1)) {
        buffer->is_failed = true;
        return false;
    }
    va_start(args, format);
    (void)vsnprintf(buffer->data + buffer->len, (size_t)n + 1, format, args);
    va_end(args);
    buffer->len += (size_t)n;
    return true;
}

bool
pawl_buffer_terminate(struct pawl_buffer *buffer)
{
    if (!pawl_buffer_reserve(buffer, 1))
        return false;
    buffer->data[buffer->len] = '\0';
    return true;
}
