/* cli/pattern.h: shell patterns over names, which may hold any bytes. */
#ifndef CLI_PATTERN_H
#define CLI_PATTERN_H

#include "pawl/status.h"

/*
 * Whether the whole name matches: `*` any bytes (dots and slashes too), `?` one code point, `[abc]`, `[a-c]`, `[!a-c]` one byte, `\` takes
 * the next byte as it is. A `[` without its `]` stands for itself. Takes time of at most pattern times name.
 */
bool pattern_matches(const char *pattern, struct pawl_str name);

#endif
