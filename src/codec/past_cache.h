/* codec/past_cache.h: copying what will not be read soon. */
#ifndef PAWL_CODEC_PAST_CACHE_H
#define PAWL_CODEC_PAST_CACHE_H

#include <stddef.h>

/*
 * As memcpy, past the processor's cache where there is a way: a line that is written whole need not be fetched first, which is a third of the
 * traffic. For copies larger than the cache; what is read right after is better copied by memcpy.
 */
void pawl_copy_past_cache(void *to, const void *from, size_t bytes);

#endif
