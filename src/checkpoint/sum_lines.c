#include "checkpoint/sum_lines.h"

#include <string.h>
#include "pawl/digest.h"

#define HEX_DIGITS 64

struct pawl_sum_lines
pawl_sum_lines_begin(struct pawl_str text)
{
    return (struct pawl_sum_lines){ .at = text.data, .end = text.len == 0 ? text.data : text.data + text.len };
}

/* "\\", "\n" and "\r" in a name, of a line that begins with a backslash. False: another escape. */
static bool
unescape(struct pawl_str name, struct pawl_buffer *to)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (c == '\\') {
            if (++i == name.len || (name.data[i] != '\\' && name.data[i] != 'n' && name.data[i] != 'r'))
                return false;
            c = name.data[i] == 'n' ? '\n' : name.data[i] == 'r' ? '\r' : '\\';
        }
        (void)pawl_buffer_add_char(to, c);
    }
    return true;
}

/* "<64 hex digits>  name" or " *name"; with a backslash in front the name is escaped. */
static bool
read_line(struct pawl_str line, unsigned char ret_digest[32], struct pawl_buffer *name)
{
    bool is_escaped = line.data[0] == '\\';
    const char *at = line.data + is_escaped;
    size_t n = line.len - is_escaped;
    char hex[HEX_DIGITS];
    if (n < HEX_DIGITS + 3 || at[HEX_DIGITS] != ' ' || (at[HEX_DIGITS + 1] != ' ' && at[HEX_DIGITS + 1] != '*'))
        return false;
    for (size_t i = 0; i < HEX_DIGITS; i++)
        hex[i] = at[i] >= 'A' && at[i] <= 'F' ? (char)(at[i] - 'A' + 'a') : at[i];
    if (!pawl_sha256_parse(pawl_str_make(hex, HEX_DIGITS), ret_digest))
        return false;
    struct pawl_str found = pawl_str_make(at + HEX_DIGITS + 2, n - HEX_DIGITS - 2);
    if (memchr(found.data, 0, found.len) != NULL)
        return false;
    pawl_buffer_clear(name);
    if (is_escaped)
        return unescape(found, name);
    (void)pawl_buffer_add_str(name, found);
    return true;
}

bool
pawl_sum_lines_next(struct pawl_sum_lines *list, struct pawl_sum_line *ret, struct pawl_buffer *name)
{
    while (list->at != list->end) {
        size_t left = (size_t)(list->end - list->at);
        const char *feed = memchr(list->at, '\n', left);
        size_t taken = feed == NULL ? left : (size_t)(feed - list->at) + 1;
        size_t n = taken - (feed != NULL);
        struct pawl_str line = pawl_str_make(list->at, n > 0 && list->at[n - 1] == '\r' ? n - 1 : n);
        *ret = (struct pawl_sum_line){ .number = ++list->number, .offset = list->offset };
        list->at += taken;
        list->offset += taken;
        if (line.len != 0) {
            ret->is_good = read_line(line, ret->digest, name);
            return true;
        }
    }
    return false;
}
