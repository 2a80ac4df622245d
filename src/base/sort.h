/* base/sort.h: orders of many items in linear time, where a sort by comparison would be what a program waits for. */
#ifndef PAWL_BASE_SORT_H
#define PAWL_BASE_SORT_H

#include "base/str.h"

struct pawl_sort_item {
    uint64_t key;
    size_t item; /* the sorter's: what the key is of */
};

/*
 * Sort by `key`; equal ones keep their order. `spare` has room for n too. Returns where the result is: `items` or `spare`; the other one
 * is spoilt.
 */
struct pawl_sort_item *pawl_sort_by_key(struct pawl_sort_item *items, struct pawl_sort_item *spare, size_t n);

/*
 * Sort by name, bytes as unsigned: items[i].item numbers a struct pawl_str of an array, the first at `first`, the next `stride` bytes on.
 * Equal names keep their order. The result is in `items`, whose keys are spoilt, as `spare` is. Linear in the bytes of all names, whatever they are.
 */
void pawl_sort_by_name(struct pawl_sort_item *items, struct pawl_sort_item *spare, size_t n,
                       const struct pawl_str *first, size_t stride);

#endif
