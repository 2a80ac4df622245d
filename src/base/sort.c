#include "base/sort.h"

/* So few are compared, one with the next. */
#define FEW 32

/* Bytes of a name in a key; the lowest byte of the key says how many of them there are, or that there are more. */
#define KEY_BYTES ((size_t)7)
#define MORE (KEY_BYTES + 1)

/* A byte at a time from the lowest; bytes that are the same in all keys are left out. */
struct pawl_sort_item *
pawl_sort_by_key(struct pawl_sort_item *items, struct pawl_sort_item *spare, size_t n)
{
    uint64_t differs = 0;
    for (size_t i = 1; i < n; i++)
        differs |= items[i].key ^ items[0].key;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t begins[256] = { 0 };
        if ((differs >> shift & 0xff) == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            begins[items[i].key >> shift & 0xff]++;
        size_t begin = 0;
        for (size_t b = 0; b < 256; b++) {
            size_t count = begins[b];
            begins[b] = begin;
            begin += count;
        }
        for (size_t i = 0; i < n; i++)
            spare[begins[items[i].key >> shift & 0xff]++] = items[i];
        struct pawl_sort_item *swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}

/* ---- names ---- */

struct names {
    const unsigned char *first;
    size_t stride;
};

static struct pawl_str
name_of(const struct names *names, const struct pawl_sort_item *item)
{
    struct pawl_str name;
    memcpy(&name, names->first + item->item * names->stride, sizeof name);
    return name;
}

static void
sort_few(const struct names *names, struct pawl_sort_item *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct pawl_sort_item item = items[i];
        struct pawl_str name = name_of(names, &item);
        size_t at = i;
        while (at > 0 && pawl_str_compare(name_of(names, &items[at - 1]), name) > 0) {
            items[at] = items[at - 1];
            at--;
        }
        items[at] = item;
    }
}

/* Bytes that all names have in common, of which the first `depth` are known to be. */
static size_t
common_depth(const struct names *names, const struct pawl_sort_item *items, size_t n, size_t depth)
{
    struct pawl_str one = name_of(names, &items[0]);
    size_t common = one.len;
    for (size_t i = 1; i < n && common > depth; i++) {
        struct pawl_str other = name_of(names, &items[i]);
        size_t most = other.len < common ? other.len : common;
        size_t at = depth;
        while (at < most && one.data[at] == other.data[at])
            at++;
        common = at;
    }
    return common;
}

/* The next bytes of the name, the first one highest; a name that ends comes before one that goes on, with a zero byte too. */
static uint64_t
key_of(struct pawl_str name, size_t depth)
{
    size_t left = name.len - depth;
    size_t n = left < KEY_BYTES ? left : KEY_BYTES;
    uint64_t key = 0;
    for (size_t i = 0; i < n; i++)
        key |= (uint64_t)(unsigned char)name.data[depth + i] << (8 * (KEY_BYTES - i));
    return key | (left > KEY_BYTES ? MORE : left);
}

/*
 * Names of which the first `depth` bytes are the same. They are sorted by their next bytes, and those that have the same there, and go on,
 * are sorted by what follows: the largest run of such in the loop, the others in a call, so that calls nest only log2(n) deep.
 */
static void
sort_names(const struct names *names, struct pawl_sort_item *items, struct pawl_sort_item *spare, size_t n,
           size_t depth)
{
    while (n > FEW) {
        depth = common_depth(names, items, n, depth);
        for (size_t i = 0; i < n; i++)
            items[i].key = key_of(name_of(names, &items[i]), depth);
        const struct pawl_sort_item *sorted = pawl_sort_by_key(items, spare, n);
        if (sorted != items)
            memcpy(items, sorted, n * sizeof *items);
        depth += KEY_BYTES;
        size_t largest = 0, most = 0;
        for (size_t begin = 0, end; begin < n; begin = end) {
            end = begin + 1;
            while (end < n && items[end].key == items[begin].key)
                end++;
            size_t run = (items[begin].key & 0xff) == MORE ? end - begin : 1;
            size_t lesser = run > most ? largest : begin, few = run > most ? most : run;
            if (run > most) {
                largest = begin;
                most = run;
            }
            if (few > 1)
                sort_names(names, items + lesser, spare, few, depth);
        }
        items += largest;
        n = most;
    }
    if (n > 1)
        sort_few(names, items, n);
}

void
pawl_sort_by_name(struct pawl_sort_item *items, struct pawl_sort_item *spare, size_t n, const struct pawl_str *first,
                  size_t stride)
{
    const struct names names = { (const unsigned char *)first, stride };
    sort_names(&names, items, spare, n, 0);
}
