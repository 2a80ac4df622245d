/* By the streaming stores that every x86-64 processor has. */
#include "codec/past_cache.h"

#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

#define LINE_BYTES ((size_t)64)
/* Ahead of where it is read: the processor's own prefetching stops at the end of a page. */
#define AHEAD_BYTES ((size_t)1024)

void
pawl_copy_past_cache(void *to, const void *from, size_t bytes)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    size_t odd = (size_t)(-(uintptr_t)out % LINE_BYTES);
    if (bytes < 4 * LINE_BYTES) {
        memcpy(out, in, bytes);
        return;
    }
    memcpy(out, in, odd);
    out += odd;
    in += odd;
    bytes -= odd;
    for (; bytes >= LINE_BYTES; bytes -= LINE_BYTES, in += LINE_BYTES, out += LINE_BYTES) {
        const __m128i *line = (const __m128i *)(const void *)in;
        __m128i *place = (__m128i *)(void *)out;
        if (bytes > AHEAD_BYTES)
            _mm_prefetch((const char *)in + AHEAD_BYTES, _MM_HINT_NTA);
        __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
        __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
        _mm_stream_si128(place, a);
        _mm_stream_si128(place + 1, b);
        _mm_stream_si128(place + 2, c);
        _mm_stream_si128(place + 3, d);
    }
    /* Streaming stores are ordered by this alone: who is told that the copy is there must see it. */
    _mm_sfence();
    memcpy(out, in, bytes);
}
