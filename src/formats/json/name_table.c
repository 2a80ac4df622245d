#include "formats/json/name_table.h"

#include <stdlib.h>
#include "base/checked.h"
#include "base/cursor.h"
#include "os/large.h"

#define ITEMS_MAX ((size_t)1 << 31)
/*
 * At most four fifths of the slots are full: honest names then take 3 probes each on average, mostly in one cache line, and 8 never
 * in sum. A table of half the size is worth more than the probes: it stays in the cache (800,000 names in order: 45 ns each against 68).
 */
#define PROBES_PER_ITEM_MAX 8
#define BATCH ((size_t)32)
#define PROBES_FREE 4096 /* a few items may have bad luck */

static struct pawl_str
name_at(const struct pawl_name_table *table, size_t i)
{
    struct pawl_str name;
    memcpy(&name, table->first + i * table->stride, sizeof name);
    return name;
}

/* Multiply and fold, eight bytes a step (the mixing of MurmurHash2, 64 bits, by Appleby). */
uint64_t
pawl_name_hash(struct pawl_str name)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *at = (const unsigned char *)name.data;
    size_t left = name.len;
    uint64_t h = (uint64_t)name.len * m;
    while (left >= 8) {
        uint64_t k = pawl_get_u64le(at) * m;
        k ^= k >> 47;
        h = (h ^ k * m) * m;
        at += 8;
        left -= 8;
    }
    if (left != 0) {
        uint64_t k = 0;
        if (name.len >= 8) { /* the last eight bytes hold the rest, behind some that are done */
            k = pawl_get_u64le(at + left - 8) >> (8 * (8 - left));
        } else {
            for (size_t i = 0; i < left; i++)
                k |= (uint64_t)at[i] << (8 * i);
        }
        h = (h ^ k) * m;
    }
    h ^= h >> 47;
    h *= m;
    return h ^ h >> 47;
}

/* The slot is taken from the low bits of the hash, the tag from its high ones. */
static uint32_t
tag_of(const struct pawl_name_table *table, uint64_t hash)
{
    return table->index_bits == 32 ? 0 : (uint32_t)(hash >> 32) >> table->index_bits << table->index_bits;
}

static uint32_t
index_mask(const struct pawl_name_table *table)
{
    return table->index_bits == 32 ? UINT32_MAX : ((uint32_t)1 << table->index_bits) - 1;
}

/* The slot of that name, or the empty one where it would go. Adds to *probes. */
static size_t
find_slot(const struct pawl_name_table *table, struct pawl_str name, uint64_t hash, uint64_t *probes)
{
    uint32_t tag = tag_of(table, hash);
    uint32_t low = index_mask(table);
    size_t slot = (size_t)hash & table->mask;
    for (;; slot = (slot + 1) & table->mask) {
        uint32_t word = table->words[slot];
        ++*probes;
        if (word == 0)
            return slot;
        if ((word & ~low) == tag && pawl_str_equal(name_at(table, (word & low) - 1), name))
            return slot;
    }
}

/*
 * False when the names collide more than honest ones. A large table is beyond the caches and its slots are asked for in
 * no order: the slots of a batch are fetched together, so that the waits overlap.
 */
static bool
fill(struct pawl_name_table *table, pawl_name_same_fn *same, void *context)
{
    uint64_t hashes[BATCH];
    uint64_t probes = 0;
    uint32_t low = index_mask(table);
    for (size_t begin = 0; begin < table->n; begin += BATCH) {
        size_t n = table->n - begin < BATCH ? table->n - begin : BATCH;
        for (size_t k = 0; k < n; k++) {
            hashes[k] = pawl_name_hash(name_at(table, begin + k));
            __builtin_prefetch(&table->words[(size_t)hashes[k] & table->mask], 1);
        }
        for (size_t k = 0; k < n; k++) {
            size_t kept = begin + k;
            size_t slot = find_slot(table, name_at(table, kept), hashes[k], &probes);
            if (table->words[slot] != 0)
                kept = same(context, (table->words[slot] & low) - 1, kept);
            table->words[slot] = tag_of(table, hashes[k]) | (uint32_t)(kept + 1);
        }
        if (probes > PROBES_FREE + PROBES_PER_ITEM_MAX * (uint64_t)(begin + n))
            return false;
    }
    return true;
}

/* Sort words[0..n) by name, equal ones by index: a merge sort, which is never quadratic and needs no context in a global. */
static enum pawl_status
sort_words(struct pawl_name_table *table, struct pawl_error *err)
{
    size_t n = table->n;
    uint32_t *from = table->words;
    uint32_t *spare = malloc((n + 1) * sizeof *spare);
    if (spare == NULL)
        return pawl_fail_memory(err, n * sizeof *spare);
    uint32_t *to = spare;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            size_t a = begin;
            size_t a_end = n - begin < width ? n : begin + width;
            size_t b = a_end;
            size_t b_end = n - a_end < width ? n : a_end + width;
            for (size_t out = begin; out < b_end; out++) {
                bool takes_a = a < a_end &&
                               (b == b_end || pawl_str_compare(name_at(table, from[a]), name_at(table, from[b])) <= 0);
                to[out] = takes_a ? from[a++] : from[b++];
            }
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != table->words)
        memcpy(table->words, from, n * sizeof *from);
    free(spare);
    return PAWL_OK;
}

static enum pawl_status
build_sorted(struct pawl_name_table *table, pawl_name_same_fn *same, void *context, struct pawl_error *err)
{
    table->index_bits = 0;
    for (size_t i = 0; i < table->n; i++)
        table->words[i] = (uint32_t)i;
    enum pawl_status st = sort_words(table, err);
    if (st != PAWL_OK)
        return st;
    size_t kept = 0; /* words[0..kept) are done, all different */
    for (size_t i = 0; i < table->n; i++) {
        uint32_t item = table->words[i];
        if (kept > 0 && pawl_str_equal(name_at(table, table->words[kept - 1]), name_at(table, item)))
            table->words[kept - 1] = (uint32_t)same(context, table->words[kept - 1], item);
        else
            table->words[kept++] = item;
    }
    table->n = kept;
    return PAWL_OK;
}

enum pawl_status
pawl_name_table_build(struct pawl_name_table *table, const struct pawl_str *first, size_t stride, size_t n,
                      pawl_name_same_fn *same, void *context, struct pawl_error *err)
{
    *table = (struct pawl_name_table)PAWL_NAME_TABLE_INIT;
    if (n > ITEMS_MAX)
        return pawl_fail(err, PAWL_LIMIT, "limit", "%zu names are more than %zu", n, ITEMS_MAX);
    size_t slots = 4;
    unsigned bits = 1;
    while (slots < n + n / 4)
        slots *= 2;
    while ((uint64_t)n >> bits != 0)
        bits++;
    table->words = calloc(slots, sizeof *table->words);
    if (table->words == NULL)
        return pawl_fail_memory(err, slots * sizeof *table->words);
    pawl_memory_large(table->words, slots * sizeof *table->words);
    table->mask = slots - 1;
    table->n = n;
    table->index_bits = bits;
    table->first = (const unsigned char *)first;
    table->stride = stride;
    if (fill(table, same, context))
        return PAWL_OK;
    enum pawl_status st = build_sorted(table, same, context, err);
    if (st != PAWL_OK)
        pawl_name_table_release(table);
    return st;
}

void
pawl_name_table_release(struct pawl_name_table *table)
{
    free(table->words);
    *table = (struct pawl_name_table)PAWL_NAME_TABLE_INIT;
}

void
pawl_name_table_renumber(struct pawl_name_table *table, const size_t *places, size_t stride)
{
    uint32_t low = index_mask(table);
    bool is_hashed = table->index_bits != 0;
    size_t n = table->words == NULL ? 0 : is_hashed ? table->mask + 1 : table->n;
    for (size_t i = 0; i < n; i++) {
        uint32_t word = table->words[i];
        size_t place;
        if (is_hashed && word == 0)
            continue;
        memcpy(&place, (const unsigned char *)places + (is_hashed ? (word & low) - 1 : word) * stride, sizeof place);
        table->words[i] = is_hashed ? (word & ~low) | (uint32_t)(place + 1) : (uint32_t)place;
    }
}

size_t
pawl_name_table_find(const struct pawl_name_table *table, struct pawl_str name)
{
    if (table->n == 0)
        return PAWL_NAME_TABLE_NONE;
    if (table->index_bits != 0) {
        uint64_t probes = 0;
        uint32_t word = table->words[find_slot(table, name, pawl_name_hash(name), &probes)];
        return word == 0 ? PAWL_NAME_TABLE_NONE : (word & index_mask(table)) - 1;
    }
    size_t low = 0;
    size_t high = table->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = pawl_str_compare(name, name_at(table, table->words[middle]));
        if (order == 0)
            return table->words[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return PAWL_NAME_TABLE_NONE;
}
