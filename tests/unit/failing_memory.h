/*
 * unit/failing_memory.h: memory runs out: the n-th allocation of the library fails, once. For one file of a test program that is linked with
 * -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc; libcrypto and the C library allocate as ever.
 *
 *     has_failed = false; until_failure = n; ... the call ...; until_failure = -1;
 */
#ifndef PAWL_UNIT_FAILING_MEMORY_H
#define PAWL_UNIT_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *old, size_t bytes);

static long until_failure = -1;  /* allocations before the one that fails; below 0: none fails */
static bool has_failed;          /* one did */
static bool (*is_counted)(void); /* of an allocation, by the thread that asks for it; NULL: each is */

static bool
allocation_fails(void)
{
    if ((is_counted != NULL && !is_counted()) || until_failure < 0 || until_failure-- != 0)
        return false;
    has_failed = true;
    return true;
}

void *
__wrap_malloc(size_t bytes)
{
    return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t n, size_t each)
{
    return allocation_fails() ? NULL : __real_calloc(n, each);
}

void *
__wrap_realloc(void *old, size_t bytes)
{
    return allocation_fails() ? NULL : __real_realloc(old, bytes);
}

#endif
