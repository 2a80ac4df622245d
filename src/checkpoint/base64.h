/* checkpoint/base64.h: RFC 4648 section 4, strictly: padded, no white space, unused bits zero. */
#ifndef PAWL_CHECKPOINT_BASE64_H
#define PAWL_CHECKPOINT_BASE64_H

#include "base/buffer.h"

/* Bytes that a decoding of `text_bytes` characters takes at most. */
static inline size_t
pawl_base64_bytes_max(size_t text_bytes)
{
    return text_bytes / 4 * 3;
}

/*
 * Decode into `data`, which has room for pawl_base64_bytes_max(text.len). False: not base64, and *ret_bad is the index of the
 * first character that can't stand there; text.len when there are too few.
 */
bool pawl_base64_decode(struct pawl_str text, unsigned char *data, size_t *ret_bytes, size_t *ret_bad);

/* Append the encoding. False: memory. */
bool pawl_base64_encode(struct pawl_buffer *out, const void *data, size_t bytes);

#endif
