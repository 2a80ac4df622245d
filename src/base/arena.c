#include "base/arena.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"

#define BLOCK_BYTES_MIN ((size_t)4096)
#define BLOCK_BYTES_MAX ((size_t)1 << 20)

struct pawl_arena_block {
    struct pawl_arena_block *older;
    size_t used;
    size_t capacity;
    max_align_t bytes[];
};

void *
pawl_arena_take(struct pawl_arena *arena, size_t bytes)
{
    const size_t unit = _Alignof(max_align_t);
    size_t need;
    if (!pawl_add_size(bytes, unit - 1, &need))
        return NULL;
    need -= need % unit;

    struct pawl_arena_block *block = arena->newest;
    if (block == NULL || block->capacity - block->used < need) {
        size_t capacity = block == NULL ? BLOCK_BYTES_MIN : block->capacity;
        capacity = capacity > BLOCK_BYTES_MAX / 2 ? BLOCK_BYTES_MAX : block == NULL ? capacity : capacity * 2;
        if (capacity < need)
            capacity = need;
        size_t total;
        if (!pawl_add_size(capacity, sizeof *block, &total))
            return NULL;
        struct pawl_arena_block *fresh = malloc(total);
        if (fresh == NULL)
            return NULL;
        fresh->used = 0;
        fresh->capacity = capacity;
        arena->bytes_total += total;
        if (block != NULL && capacity > BLOCK_BYTES_MAX) {
            /* a block of its own goes behind, so that the open one stays in use */
            fresh->older = block->older;
            block->older = fresh;
        } else {
            fresh->older = block;
            arena->newest = fresh;
        }
        block = fresh;
    }
    void *taken = (unsigned char *)block->bytes + block->used;
    block->used += need;
    return taken;
}

void *
pawl_arena_take_array(struct pawl_arena *arena, size_t n, size_t each)
{
    size_t bytes;
    if (!pawl_mul_size(n, each, &bytes))
        return NULL;
    return pawl_arena_take(arena, bytes);
}

bool
pawl_arena_copy_str(struct pawl_arena *arena, struct pawl_str str, struct pawl_str *ret_copy)
{
    size_t bytes;
    if (!pawl_add_size(str.len, 1, &bytes))
        return false;
    char *copy = pawl_arena_take(arena, bytes);
    if (copy == NULL)
        return false;
    if (str.len != 0)
        memcpy(copy, str.data, str.len);
    copy[str.len] = '\0';
    *ret_copy = pawl_str_make(copy, str.len);
    return true;
}

void
pawl_arena_release(struct pawl_arena *arena)
{
    struct pawl_arena_block *block = arena->newest;
    while (block != NULL) {
        struct pawl_arena_block *older = block->older;
        free(block);
        block = older;
    }
    *arena = (struct pawl_arena)PAWL_ARENA_INIT;
}
