/* base/checked.h: arithmetic that says when it would wrap. */
#ifndef PAWL_BASE_CHECKED_H
#define PAWL_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool
pawl_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    if (a > UINT64_MAX - b)
        return false;
    *ret = a + b;
    return true;
}

static inline bool
pawl_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    if (a != 0 && b > UINT64_MAX / a)
        return false;
    *ret = a * b;
    return true;
}

static inline bool
pawl_add_size(size_t a, size_t b, size_t *ret)
{
    if (a > SIZE_MAX - b)
        return false;
    *ret = a + b;
    return true;
}

static inline bool
pawl_mul_size(size_t a, size_t b, size_t *ret)
{
    if (a != 0 && b > SIZE_MAX / a)
        return false;
    *ret = a * b;
    return true;
}

/* a rounded up to a multiple of `unit` (not 0). */
static inline bool
pawl_round_up_u64(uint64_t a, uint64_t unit, uint64_t *ret)
{
    uint64_t rest = a % unit;
    return pawl_add_u64(a, rest == 0 ? 0 : unit - rest, ret);
}

#endif
