/*
 * base/arena.h: many small allocations that end together. Blocks grow from
 * 4 KiB by doubling to 1 MiB; a larger request has a block of its own.
 * Memory is aligned for every type and not cleared.
 */
#ifndef PAWL_BASE_ARENA_H
#define PAWL_BASE_ARENA_H

#include "base/str.h"

struct pawl_arena_block;

struct pawl_arena {
    struct pawl_arena_block *newest;
    size_t bytes_total; /* asked of the heap, for limits and tests */
};

#define PAWL_ARENA_INIT \
    {                   \
        NULL, 0         \
    }

void *pawl_arena_take(struct pawl_arena *arena, size_t bytes);                /* NULL: memory */
void *pawl_arena_take_array(struct pawl_arena *arena, size_t n, size_t each); /* checks n * each; NULL: memory */
/* A copy with a NUL behind it; false: memory. */
bool pawl_arena_copy_str(struct pawl_arena *arena, struct pawl_str str, struct pawl_str *ret_copy);
void pawl_arena_release(struct pawl_arena *arena);

#endif
