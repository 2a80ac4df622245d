#include "cli/pattern.h"

#include <string.h>

/* The set behind "[": its end (behind "]"), NULL when there is no "]"; *ret_in says whether `byte` is in it. */
static const char *
read_set(const char *at, unsigned char byte, bool *ret_in)
{
    bool is_negated = *at == '!' || *at == '^', in = false;
    at += is_negated;
    for (const char *first = at; *at != '\0'; at++) {
        if (*at == ']' && at != first) {
            *ret_in = in != is_negated;
            return at + 1;
        }
        unsigned char low = (unsigned char)*at, high = low;
        if (at[1] == '-' && at[2] != ']' && at[2] != '\0') {
            high = (unsigned char)at[2];
            at += 2;
        }
        in = in || (byte >= low && byte <= high);
    }
    return NULL;
}

/* Bytes of the code point at `at`: at least one, whatever is there. */
static size_t
code_point(struct pawl_str name, size_t at)
{
    size_t n = 1;
    if (((unsigned char)name.data[at] & 0xc0) != 0xc0)
        return 1;
    while (at + n < name.len && n < 4 && ((unsigned char)name.data[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* One element of the pattern that is no "*" against the name at `at`: what both take, false when they do not fit. */
static bool
take_one(const char **pattern, struct pawl_str name, size_t *at)
{
    const char *p = *pattern;
    if (*at >= name.len)
        return false;
    unsigned char byte = (unsigned char)name.data[*at];
    bool in;
    if (*p == '?') {
        *at += code_point(name, *at);
        *pattern = p + 1;
        return true;
    }
    if (*p == '[') {
        const char *end = read_set(p + 1, byte, &in);
        if (end != NULL) {
            *at += 1;
            *pattern = end;
            return in;
        }
    }
    p += *p == '\\' && p[1] != '\0';
    *at += 1;
    *pattern = p + 1;
    return (unsigned char)*p == byte;
}

bool
pattern_matches(const char *pattern, struct pawl_str name)
{
    /* Only the last star can need another try: an earlier one took the least that let the rest up to it fit. */
    const char *after_star = NULL;
    size_t at = 0, star_at = 0;
    for (;;) {
        if (*pattern == '*') {
            after_star = ++pattern;
            star_at = at;
            continue;
        }
        if (*pattern == '\0' && at == name.len)
            return true;
        if (*pattern != '\0' && take_one(&pattern, name, &at))
            continue;
        if (after_star == NULL || star_at >= name.len)
            return false;
        pattern = after_star;
        at = ++star_at;
    }
}
