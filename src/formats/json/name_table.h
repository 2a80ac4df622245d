/*
 * json/name_table.h: finding one of many names, and finding the names that stand twice.
 *
 * An open-addressing table of 32-bit words over an array of the caller's: a word holds the index of a name, and in the
 * bits that the index leaves, bits of its hash, so that a probe rarely looks at a name that is another. The hash is fast
 * and not secret: who chooses the names can make them collide. Building counts its steps, and where they are far
 * more than honest names take, the words hold the indexes in the order of the names instead, and finding is a binary
 * search. Nothing is ever quadratic, and the same names always give the same table.
 */
#ifndef PAWL_FORMATS_JSON_NAME_TABLE_H
#define PAWL_FORMATS_JSON_NAME_TABLE_H

#include "base/fail.h"
#include "base/str.h"

struct pawl_name_table {
    uint32_t *words;
    size_t mask; /* slots less 1, a power of two */
    size_t n;
    unsigned index_bits;        /* 0: sorted */
    const unsigned char *first; /* the name of item 0 */
    size_t stride;              /* bytes from one item's name to the next */
};

#define PAWL_NAME_TABLE_INIT   \
    {                          \
        NULL, 0, 0, 0, NULL, 0 \
    }

#define PAWL_NAME_TABLE_NONE SIZE_MAX

/* Two items have one name. Returns the index that the table keeps: one of the two. */
typedef size_t pawl_name_same_fn(void *context, size_t a, size_t b);

/*
 * Build over `n` items whose struct pawl_str lie `stride` bytes apart; they are borrowed. `same` is called for names that
 * stand more than once, in no promised order, each time with one that was kept so far; a pair may come twice.
 * PAWL_NO_MEMORY; PAWL_LIMIT beyond 2^31 items.
 */
enum pawl_status pawl_name_table_build(struct pawl_name_table *table, const struct pawl_str *first, size_t stride,
                                       size_t n, pawl_name_same_fn *same, void *context, struct pawl_error *err);
void pawl_name_table_release(struct pawl_name_table *table);
/* The caller is about to reorder the items: item i goes to the index that lies i * stride bytes behind `places`. */
void pawl_name_table_renumber(struct pawl_name_table *table, const size_t *places, size_t stride);
/* The index, PAWL_NAME_TABLE_NONE when there is none. */
size_t pawl_name_table_find(const struct pawl_name_table *table, struct pawl_str name);

/* For the tests, which make names that collide. */
uint64_t pawl_name_hash(struct pawl_str name);

#endif
