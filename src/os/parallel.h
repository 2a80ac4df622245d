/* os/parallel.h: the same work on many pieces by several threads, for as long as one call. */
#ifndef PAWL_OS_PARALLEL_H
#define PAWL_OS_PARALLEL_H

#include <stddef.h>

/* Processors that this process may use, at least 1. */
unsigned pawl_processors(void);

/*
 * Call fn(context, i) once for each i from 0 to n - 1, on at most `threads` threads (0: as many as there are processors, but no
 * more than 8), this one among them; pieces are begun in ascending order. Returns when all are done. A thread that can't be had is
 * done without.
 */
void pawl_parallel(size_t n, unsigned threads, void (*fn)(void *context, size_t i), void *context);

#endif
