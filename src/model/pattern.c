/* Shell patterns over names, which may hold any bytes. */
#include "pawl/convert.h"

#include <string.h>

/* The bytes of a pattern from `at` on. */
struct rest {
    const char *at, *end;
};

/* The set behind "[": its end (behind "]"), NULL when there is no "]"; *ret_in says whether `byte` is in it. */
static const char *
read_set(struct rest set, unsigned char byte, bool *ret_in)
{
    const char *at = set.at;
    bool is_negated = at < set.end && (*at == '!' || *at == '^');
    bool in = false;
    at += is_negated;
    for (const char *first = at; at < set.end; at++) {
        if (*at == ']' && at != first) {
            *ret_in = in != is_negated;
            return at + 1;
        }
        unsigned char low = (unsigned char)*at;
        unsigned char high = low;
        if (set.end - at > 2 && at[1] == '-' && at[2] != ']') {
            high = (unsigned char)at[2];
            at += 2;
        }
        in = in || (byte >= low && byte <= high);
    }
    return NULL;
}

/*
 * Bytes of the code point at `at`, or of what is left of one behind a "*" or a set that ended inside of it: at least one, whatever is there. From a later
 * byte it never ends earlier, which is what lets an earlier star stay where it is.
 */
static size_t
code_point(struct pawl_str name, size_t at)
{
    size_t n = 1;
    if ((unsigned char)name.data[at] < 0x80)
        return 1;
    while (at + n < name.len && n < 4 && ((unsigned char)name.data[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* One element of the pattern that is no "*" against the name at `at`: what both take, false when they do not fit. */
static bool
take_one(struct rest *pattern, struct pawl_str name, size_t *at)
{
    const char *p = pattern->at;
    if (*at >= name.len)
        return false;
    unsigned char byte = (unsigned char)name.data[*at];
    if (*p == '?') {
        *at += code_point(name, *at);
        pattern->at = p + 1;
        return true;
    }
    if (*p == '[') {
        bool in;
        const char *end = read_set((struct rest){ p + 1, pattern->end }, byte, &in);
        if (end != NULL) {
            *at += 1;
            pattern->at = end;
            return in;
        }
    }
    p += *p == '\\' && pattern->end - p > 1;
    *at += 1;
    pattern->at = p + 1;
    return (unsigned char)*p == byte;
}

bool
pawl_pattern_match(struct pawl_str pattern, struct pawl_str name)
{
    /* Only the last star can need another try: an earlier one took the least that let the rest up to it fit. */
    struct rest rest = { pattern.data, pattern.len == 0 ? pattern.data : pattern.data + pattern.len };
    const char *after_star = NULL;
    size_t at = 0;
    size_t star_at = 0;
    for (;;) {
        bool is_end = rest.at == rest.end;
        if (!is_end && *rest.at == '*') {
            after_star = ++rest.at;
            star_at = at;
            continue;
        }
        if (is_end && at == name.len)
            return true;
        if (!is_end && take_one(&rest, name, &at))
            continue;
        if (after_star == NULL || star_at >= name.len)
            return false;
        rest.at = after_star;
        at = ++star_at;
    }
}
