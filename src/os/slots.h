/*
 * os/slots.h: the buffers that large files go through on their way, shared by the whole process.
 *
 * They are made when they are first wanted and kept: fresh memory is slow, and O_DIRECT wants huge pages. However many files are
 * written and read at once, there are no more than PAWL_SLOTS_MAX; who gets none does without.
 */
#ifndef PAWL_OS_SLOTS_H
#define PAWL_OS_SLOTS_H

#include <stddef.h>

#define PAWL_SLOT_BYTES ((size_t)2 << 20) /* and aligned to that */
#define PAWL_SLOTS_MAX ((size_t)16)

/* Take `n` slots, or as many as there are, but at least `least`: else none. Returns how many were taken. */
size_t pawl_slots_take(unsigned char **ret_slots, size_t least, size_t n);
/* In a forked child, where there are none, nothing happens. */
void pawl_slots_give(unsigned char *const *slots, size_t n);

#endif
