/* base/options.h: structs of the caller's that begin with their size. */
#ifndef PAWL_BASE_OPTIONS_H
#define PAWL_BASE_OPTIONS_H

#include "base/fail.h"

/*
 * Copy a caller's struct of `given` bytes by its own account into one of `known` bytes. A shorter one is of no version there ever
 * was; a longer one is of a newer version, fine as long as what this library does not know is left at zero.
 */
static inline enum pawl_status
pawl_options_take(void *ret_known, size_t known, const void *options, size_t given, const char *what,
                  struct pawl_error *err)
{
    if (given < known)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%s has the size %zu, expected %zu: use its macro", what,
                         given, known);
    const unsigned char *bytes = options;
    for (size_t i = known; i < given; i++)
        if (bytes[i] != 0)
            return pawl_fail(err, PAWL_UNSUPPORTED, "unsupported",
                             "%s sets something behind its first %zu bytes that this version does not know", what,
                             known);
    for (size_t i = 0; i < known; i++)
        ((unsigned char *)ret_known)[i] = bytes[i];
    return PAWL_OK;
}

#endif
