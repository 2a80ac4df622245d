/* base/str.h: comparing and building byte strings. */
#ifndef PAWL_BASE_STR_H
#define PAWL_BASE_STR_H

#include <string.h>
#include "pawl/status.h"

/* A literal as a struct pawl_str; NULs inside it count. */
#define PAWL_STR(literal) ((struct pawl_str){ "" literal, sizeof(literal) - 1 })
/* For printf: "%.*s", PAWL_ARG(str). Only for bytes known to be printable; else PAWL_SHOW. */
#define PAWL_ARG(str) (int)(str).len, (str).data

static inline struct pawl_str
pawl_str_make(const char *data, size_t len)
{
    struct pawl_str str = { data, len };
    return str;
}

static inline bool
pawl_str_equal(struct pawl_str a, struct pawl_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool
pawl_str_starts(struct pawl_str str, struct pawl_str prefix)
{
    return str.len >= prefix.len && (prefix.len == 0 || memcmp(str.data, prefix.data, prefix.len) == 0);
}

static inline bool
pawl_str_ends(struct pawl_str str, struct pawl_str suffix)
{
    return str.len >= suffix.len &&
           (suffix.len == 0 || memcmp(str.data + (str.len - suffix.len), suffix.data, suffix.len) == 0);
}

/* Order of unsigned bytes; a prefix comes before what it begins. Less than, equal to, greater than 0. */
static inline int
pawl_str_compare(struct pawl_str a, struct pawl_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.data, b.data, n);
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

/* A NUL-terminated copy on the heap; NULL when memory is short. Free with free(). */
char *pawl_str_dup(struct pawl_str str);

#endif
