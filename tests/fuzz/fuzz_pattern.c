/*
 * Shell patterns: the first line of the input is a pattern, the rest a name. The verdict is that of a matcher that goes through every pair of a place in the
 * pattern and a place in the name, and so needs no argument about which star may stay where it is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "pawl/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LENGTH_MAX 200

static void
require(bool holds)
{
    if (!holds)
        abort();
}

/* One element of a pattern. */
struct element {
    enum { LITERAL, STAR, POINT, SET } type;
    bool has[256]; /* what a literal or a set takes */
};

/* The set that begins at pattern[at], which is "[": the place behind its "]", 0 when there is none. */
static size_t
read_set(const uint8_t *pattern, size_t n, size_t at, struct element *element)
{
    size_t i = at + 1;
    bool is_negated = i < n && (pattern[i] == '!' || pattern[i] == '^');
    i += is_negated;
    for (size_t first = i; i < n && (pattern[i] != ']' || i == first); i++) {
        unsigned low = pattern[i], high = low;
        if (i + 2 < n && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
            high = pattern[i + 2];
            i += 2;
        }
        for (unsigned c = low; c <= high; c++)
            element->has[c] = true;
    }
    if (i >= n)
        return 0;
    for (unsigned c = 0; c < 256; c++)
        element->has[c] = element->has[c] != is_negated;
    return i + 1;
}

static size_t
read_elements(const uint8_t *pattern, size_t n, struct element *elements)
{
    size_t count = 0;
    for (size_t at = 0; at < n;) {
        struct element *element = &elements[count++];
        size_t behind = 0;
        memset(element, 0, sizeof *element);
        element->type = pattern[at] == '*' ? STAR : pattern[at] == '?' ? POINT : LITERAL;
        if (pattern[at] == '[')
            behind = read_set(pattern, n, at, element);
        if (behind != 0) {
            element->type = SET;
            at = behind;
            continue;
        }
        memset(element->has, 0, sizeof element->has);
        at += pattern[at] == '\\' && at + 1 < n;
        element->has[pattern[at++]] = true;
    }
    return count;
}

/* fits[i]: do the elements behind this one fit what begins at i? Then, this one and those behind it. */
static void
step_back(const struct element *element, const uint8_t *name, size_t n, bool *fits)
{
    bool is_star = element->type == STAR;
    for (size_t i = is_star ? n : 0; is_star && i-- > 0;)
        fits[i] = fits[i] || fits[i + 1];
    for (size_t i = 0; !is_star && i <= n; i++) {
        size_t to = i + 1;
        while (element->type == POINT && i < n && name[i] >= 0x80 && to < n && to < i + 4 && name[to] >= 0x80 &&
               name[to] < 0xc0)
            to++;
        fits[i] = i < n && (element->type == POINT || element->has[name[i]]) && fits[to];
    }
}

static bool
slow_match(const uint8_t *pattern, size_t n_pattern, const uint8_t *name, size_t n)
{
    static struct element elements[LENGTH_MAX];
    bool fits[LENGTH_MAX + 1] = { false };
    size_t count = read_elements(pattern, n_pattern, elements);
    fits[n] = true;
    while (count-- > 0)
        step_back(&elements[count], name, n, fits);
    return fits[0];
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *feed = size == 0 ? NULL : memchr(data, '\n', size);
    size_t n_pattern = feed == NULL ? size : (size_t)(feed - data);
    const uint8_t *name = feed == NULL ? data + size : feed + 1;
    size_t n = size - (size_t)(name - data);
    if (n_pattern > LENGTH_MAX || n > LENGTH_MAX)
        return 0;
    char *pattern = malloc(n_pattern + (n_pattern == 0)); /* a block of its own: a step past its end shows */
    require(pattern != NULL);
    if (n_pattern != 0)
        memcpy(pattern, data, n_pattern);
    require(pawl_pattern_match((struct pawl_str){ pattern, n_pattern }, (struct pawl_str){ (const char *)name, n }) ==
            slow_match((const uint8_t *)pattern, n_pattern, name, n));
    free(pattern);
    return 0;
}
