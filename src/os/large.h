/* os/large.h: advice for large blocks of memory that the heap gave. */
#ifndef PAWL_OS_LARGE_H
#define PAWL_OS_LARGE_H

#include <stddef.h>

/*
 * A large block was just allocated and will be used all over: let the system back it by huge pages where it has them. They are
 * had in one fault each instead of 512, and looked at all over they miss the processor's table of addresses less. Only advice: nothing is
 * touched, the contents stay, and small blocks are left alone.
 */
void pawl_memory_large(void *data, size_t bytes);
/* The same of a block that is about to be filled from end to end: its pages are had at once. */
void pawl_memory_filled(void *data, size_t bytes);

#endif
