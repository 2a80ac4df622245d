/* checkpoint/sum_lines.h: a list of SHA-256 sums as sha256sum writes it, line by line. */
#ifndef PAWL_CHECKPOINT_SUM_LINES_H
#define PAWL_CHECKPOINT_SUM_LINES_H

#include "base/buffer.h"

struct pawl_sum_lines {
    const char *at, *end; /* the lines to come */
    size_t number;        /* of those that were read */
    uint64_t offset;
};

struct pawl_sum_line {
    size_t number;   /* from 1 on */
    uint64_t offset; /* of its first byte in the list */
    bool is_good;    /* it has a digest and a name */
    unsigned char digest[32];
};

/* `text` must stay until the last line is read. */
struct pawl_sum_lines pawl_sum_lines_begin(struct pawl_str text);

/*
 * The next line that is not empty; false: there is none. Good are 64 hex digits, a blank, a blank or "*", and a name
 * without a NUL; a backslash in front says that the name has "\\", "\n" and "\r" in place of these bytes. The name of a
 * good line takes the place of what is in `name`, of a bad one it is anything; short of memory the buffer is failed.
 */
bool pawl_sum_lines_next(struct pawl_sum_lines *list, struct pawl_sum_line *ret, struct pawl_buffer *name);

#endif
