#include "base/str.h"

#include <stdlib.h>

struct pawl_str
pawl_str_z(const char *text)
{
    return text == NULL ? pawl_str_make("", 0) : pawl_str_make(text, strlen(text));
}

char *
pawl_str_dup(struct pawl_str str)
{
    char *copy = str.len == SIZE_MAX ? NULL : malloc(str.len + 1);
    if (copy == NULL)
        return NULL;
    if (str.len != 0)
        memcpy(copy, str.data, str.len);
    copy[str.len] = '\0';
    return copy;
}
