/* What a conversion writes: which names stay, what they are called, who is whose alias, which metadata, which files. */
#include <stdlib.h>
#include "model/convert_model.h"

/* A name of the input: a tensor's, or an alias of one. */
struct entry {
    struct pawl_str old, name;
    size_t tensor; /* of the set */
    bool is_alias;
    bool is_kept;
};

struct planning {
    struct pawl_conversion *c;
    struct entry *entries;
    size_t n;
    size_t *stored; /* by tensor of the set: the entry under whose name it is written, SIZE_MAX: none */
    const struct entry **sorted;
    unsigned char *is_used; /* by pattern of only, then of drop, then by rename: it fitted something */
    struct pawl_error *err;
};

/* ---- names ---- */

static enum pawl_status
take_entries(struct planning *p)
{
    const struct pawl_set *set = p->c->set;
    for (size_t i = 0; i < set->n; i++) {
        /* Read in compat mode, a name may stand twice: what a reader finds by it is what is meant. */
        if (pawl_set_find(set, set->tensors[i].name) != &set->tensors[i])
            continue;
        p->entries[p->n++] = (struct entry){ .old = set->tensors[i].name, .tensor = i };
    }
    for (size_t i = 0; i < set->n_aliases; i++) {
        const struct pawl_tensor_info *target = pawl_set_find(set, set->aliases[i].value);
        p->entries[p->n++] =
            (struct entry){ .old = set->aliases[i].key, .tensor = (size_t)(target - set->tensors), .is_alias = true };
    }
    return PAWL_OK;
}

static bool
fits_any(const struct pawl_str *patterns, size_t n, struct pawl_str name, unsigned char *is_used)
{
    bool fits = false;
    for (size_t i = 0; i < n; i++) {
        if (!pawl_pattern_match(patterns[i], name))
            continue;
        is_used[i] = 1;
        fits = true;
    }
    return fits;
}

/* The place of the one `*` of a rename's side; `len` when there is none, SIZE_MAX when there is more than one. */
static size_t
star_of(struct pawl_str text)
{
    size_t at = text.len;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '*')
            continue;
        if (at != text.len)
            return SIZE_MAX;
        at = i;
    }
    return at;
}

static enum pawl_status
check_renames(const struct planning *p)
{
    for (size_t i = 0; i < p->c->options.n_renames; i++) {
        const struct pawl_rename *rename = &p->c->options.renames[i];
        size_t from = star_of(rename->from);
        size_t to = star_of(rename->to);
        if (from == SIZE_MAX || to == SIZE_MAX || (from == rename->from.len) != (to == rename->to.len))
            return pawl_fail(p->err, PAWL_ARGUMENT, "argument",
                             "rename '%s' to '%s': expected a name to a name, or one * on both sides",
                             PAWL_SHOW(rename->from), PAWL_SHOW(rename->to));
    }
    return PAWL_OK;
}

/* Does the rename fit, and what comes of it? False: it does not. */
static bool
fits_rename(const struct pawl_rename *rename, struct pawl_str name, struct pawl_str *ret_head,
            struct pawl_str *ret_star, struct pawl_str *ret_tail)
{
    size_t at = star_of(rename->from);
    if (at == rename->from.len) {
        *ret_head = rename->to;
        *ret_star = *ret_tail = PAWL_STR("");
        return pawl_str_equal(name, rename->from);
    }
    struct pawl_str head = pawl_str_make(rename->from.data, at);
    struct pawl_str tail = pawl_str_make(rename->from.data + at + 1, rename->from.len - at - 1);
    if (name.len < head.len + tail.len || !pawl_str_starts(name, head) || !pawl_str_ends(name, tail))
        return false;
    *ret_star = pawl_str_make(name.data + head.len, name.len - head.len - tail.len);
    at = star_of(rename->to);
    *ret_head = pawl_str_make(rename->to.data, at);
    *ret_tail = pawl_str_make(rename->to.data + at + 1, rename->to.len - at - 1);
    return true;
}

static enum pawl_status
rename_entry(struct planning *p, struct entry *entry, unsigned char *is_used)
{
    struct pawl_str head;
    struct pawl_str star;
    struct pawl_str tail;
    entry->name = entry->old;
    for (size_t i = 0; i < p->c->options.n_renames; i++) {
        if (!fits_rename(&p->c->options.renames[i], entry->old, &head, &star, &tail))
            continue;
        is_used[i] = 1;
        size_t len = head.len + star.len + tail.len;
        char *name = pawl_arena_take(&p->c->arena, len + 1);
        if (name == NULL)
            return pawl_fail_memory(p->err, len + 1);
        char *at = name;
        const struct pawl_str parts[3] = { head, star, tail };
        for (size_t k = 0; k < 3; k++) {
            if (parts[k].len != 0)
                memcpy(at, parts[k].data, parts[k].len);
            at += parts[k].len;
        }
        entry->name = pawl_str_make(name, len);
        break;
    }
    return PAWL_OK;
}

/* A pattern that fits nothing is a typing error that would otherwise keep, lose or misname weights in silence. */
static enum pawl_status
check_used(const struct planning *p)
{
    const struct pawl_convert_options *o = &p->c->options;
    for (size_t i = 0; i < o->n_only + o->n_drop + o->n_renames; i++) {
        if (p->is_used[i])
            continue;
        if (i < o->n_only)
            return pawl_fail(p->err, PAWL_ARGUMENT, "argument", "nothing fits the pattern '%s' of what to keep",
                             PAWL_SHOW(o->only[i]));
        if (i < o->n_only + o->n_drop)
            return pawl_fail(p->err, PAWL_ARGUMENT, "argument", "nothing fits the pattern '%s' of what to drop",
                             PAWL_SHOW(o->drop[i - o->n_only]));
        return pawl_fail(p->err, PAWL_ARGUMENT, "argument", "nothing that is kept is called '%s', to be renamed",
                         PAWL_SHOW(o->renames[i - o->n_only - o->n_drop].from));
    }
    return PAWL_OK;
}

static enum pawl_status
choose_names(struct planning *p)
{
    const struct pawl_convert_options *o = &p->c->options;
    unsigned char *drop_used = p->is_used + o->n_only;
    enum pawl_status st = check_renames(p);
    for (size_t i = 0; i < p->n && st == PAWL_OK; i++) {
        struct entry *entry = &p->entries[i];
        bool is_chosen = o->n_only == 0 || fits_any(o->only, o->n_only, entry->old, p->is_used);
        bool is_dropped = fits_any(o->drop, o->n_drop, entry->old, drop_used);
        entry->is_kept = is_chosen && !is_dropped;
        if (entry->is_kept)
            st = rename_entry(p, entry, drop_used + o->n_drop);
    }
    return st == PAWL_OK ? check_used(p) : st;
}

static int
compare_names(const void *a, const void *b)
{
    const struct entry *x = *(const struct entry *const *)a;
    const struct entry *y = *(const struct entry *const *)b;
    int order = pawl_str_compare(x->name, y->name);
    return order != 0 ? order : pawl_str_compare(x->old, y->old);
}

/* Sort what is kept by its new name; two of one name would be one tensor lost. */
static enum pawl_status
check_clashes(struct planning *p, size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->entries[i].is_kept)
            p->sorted[n++] = &p->entries[i];
    }
    if (n != 0)
        qsort(p->sorted, n, sizeof *p->sorted, compare_names);
    for (size_t i = 1; i < n; i++) {
        const struct entry *a = p->sorted[i - 1];
        const struct entry *b = p->sorted[i];
        if (!pawl_str_equal(a->name, b->name))
            continue;
        (void)pawl_fail(p->err, PAWL_ARGUMENT, "duplicate-key", "'%s' and '%s' would both be called '%s'",
                        PAWL_SHOW(a->old), PAWL_SHOW(b->old), PAWL_SHOW(a->name));
        pawl_error_tensor(p->err, a->name);
        return PAWL_ARGUMENT;
    }
    *ret_n = n;
    return PAWL_OK;
}

/* ---- tensors and aliases ---- */

/* Under which name each tensor is written. `sorted` is by new name, so the first alias that is met is the least. */
static void
choose_stored(struct planning *p, size_t n_kept)
{
    for (size_t i = 0; i < p->c->set->n; i++)
        p->stored[i] = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        if (p->entries[i].is_kept && !p->entries[i].is_alias)
            p->stored[p->entries[i].tensor] = i;
    }
    for (size_t i = 0; i < n_kept; i++) {
        size_t *stored = &p->stored[p->sorted[i]->tensor];
        if (*stored == SIZE_MAX)
            *stored = (size_t)(p->sorted[i] - p->entries);
    }
}

static enum pawl_status
take_items(struct planning *p, size_t n_kept)
{
    struct pawl_conversion *c = p->c;
    size_t n = c->set->n;
    c->items = pawl_arena_take_array(&c->arena, n + 1, sizeof *c->items);
    c->sources = pawl_arena_take_array(&c->arena, n + 1, sizeof *c->sources);
    c->aliases = pawl_arena_take_array(&c->arena, n_kept + 1, sizeof *c->aliases);
    c->dropped = pawl_arena_take_array(&c->arena, p->n + 1, sizeof *c->dropped);
    if (c->items == NULL || c->sources == NULL || c->aliases == NULL || c->dropped == NULL)
        return pawl_fail_memory(p->err, n * (sizeof *c->items + sizeof *c->sources) + p->n * sizeof *c->dropped);
    for (size_t i = 0; i < n; i++) {
        const struct pawl_tensor_info *tensor = &c->set->tensors[i];
        if (p->stored[i] == SIZE_MAX)
            continue;
        c->items[c->n] =
            (struct pawl_st_item){ p->entries[p->stored[i]].name, tensor->dtype, tensor->rank, tensor->shape };
        c->sources[c->n++] = tensor;
        c->data_bytes += tensor->end - tensor->begin;
    }
    for (size_t i = 0; i < n_kept; i++) {
        const struct entry *entry = p->sorted[i];
        const struct entry *stored = &p->entries[p->stored[entry->tensor]];
        if (entry != stored)
            c->aliases[c->n_aliases++] = (struct pawl_pair){ entry->name, stored->name };
    }
    return PAWL_OK;
}

static int
compare_strs(const void *a, const void *b)
{
    return pawl_str_compare(*(const struct pawl_str *)a, *(const struct pawl_str *)b);
}

static void
take_dropped(struct planning *p)
{
    struct pawl_conversion *c = p->c;
    for (size_t i = 0; i < p->n; i++) {
        if (!p->entries[i].is_kept)
            c->dropped[c->n_dropped++] = p->entries[i].old;
    }
    if (c->n_dropped != 0)
        qsort(c->dropped, c->n_dropped, sizeof *c->dropped, compare_strs);
}

/* ---- metadata ---- */

struct ranked_pair {
    struct pawl_pair pair;
    size_t rank; /* of two of one key the lower wins */
};

static int
compare_ranked(const void *a, const void *b)
{
    const struct ranked_pair *x = a;
    const struct ranked_pair *y = b;
    int order = pawl_str_compare(x->pair.key, y->pair.key);
    return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static enum pawl_status
check_metadata(const struct pawl_convert_options *options, struct pawl_error *err)
{
    for (size_t i = 0; i < options->n_metadata; i++) {
        struct pawl_str key = options->metadata[i].key;
        if (pawl_str_starts(key, PAWL_STR(PAWL_ALIAS_PREFIX)))
            return pawl_fail(err, PAWL_ARGUMENT, "argument",
                             "the metadata '%s' is a record of tied weights, which are carried over by themselves",
                             PAWL_SHOW(key));
        for (size_t k = 0; k < i; k++) {
            if (pawl_str_equal(key, options->metadata[k].key))
                return pawl_fail(err, PAWL_ARGUMENT, "duplicate-key", "the metadata '%s' are given twice",
                                 PAWL_SHOW(key));
        }
    }
    return PAWL_OK;
}

static enum pawl_status
add_alias_records(struct pawl_conversion *c, struct pawl_error *err)
{
    const struct pawl_str prefix = PAWL_STR(PAWL_ALIAS_PREFIX);
    for (size_t i = 0; i < c->n_aliases; i++) {
        struct pawl_str alias = c->aliases[i].key;
        char *key = pawl_arena_take(&c->arena, prefix.len + alias.len);
        if (key == NULL)
            return pawl_fail_memory(err, prefix.len + alias.len);
        memcpy(key, prefix.data, prefix.len);
        if (alias.len != 0)
            memcpy(key + prefix.len, alias.data, alias.len);
        c->metadata[c->n_metadata++] =
            (struct pawl_pair){ pawl_str_make(key, prefix.len + alias.len), c->aliases[i].value };
    }
    return PAWL_OK;
}

/* The caller's, the first file's, those of further files; records of aliases are written anew. */
static enum pawl_status
take_metadata(struct pawl_conversion *c, struct pawl_error *err)
{
    const struct pawl_convert_options *o = &c->options;
    size_t n = o->n_metadata;
    enum pawl_status st = check_metadata(o, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < c->set->n_files; i++) {
        n += c->set->files[i].header.n_metadata;
        c->has_metadata = c->has_metadata || c->set->files[i].header.has_metadata;
    }
    struct ranked_pair *all = calloc(n + 1, sizeof *all);
    c->metadata = pawl_arena_take_array(&c->arena, n + c->n_aliases + 1, sizeof *c->metadata);
    if (all == NULL || c->metadata == NULL) {
        free(all);
        return pawl_fail_memory(err, n * (sizeof *all + sizeof *c->metadata));
    }
    n = 0;
    for (size_t i = 0; i < o->n_metadata; i++, n++)
        all[n] = (struct ranked_pair){ o->metadata[i], n };
    for (size_t i = 0; i < c->set->n_files; i++) {
        const struct pawl_st_header *header = &c->set->files[i].header;
        for (size_t k = 0; k < header->n_metadata; k++) {
            if (pawl_str_starts(header->metadata[k].key, PAWL_STR(PAWL_ALIAS_PREFIX)))
                continue;
            all[n] = (struct ranked_pair){ header->metadata[k], n };
            n++;
        }
    }
    if (n != 0)
        qsort(all, n, sizeof *all, compare_ranked);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !pawl_str_equal(all[i].pair.key, all[i - 1].pair.key))
            c->metadata[c->n_metadata++] = all[i].pair;
    }
    free(all);
    st = add_alias_records(c, err);
    c->has_metadata = c->has_metadata || c->n_metadata != 0;
    return st;
}

/* ---- the whole ---- */

/* What the format refuses is the caller's argument here, whatever it would be in a file. */
static enum pawl_status
as_argument(enum pawl_status st, struct pawl_error *err)
{
    if (st != PAWL_CORRUPT && st != PAWL_LIMIT)
        return st;
    if (err != NULL)
        err->status = PAWL_ARGUMENT;
    return PAWL_ARGUMENT;
}

enum pawl_status
pawl_conversion_plan(struct pawl_conversion *conversion, struct pawl_error *err)
{
    struct planning p = { .c = conversion, .err = err };
    const struct pawl_convert_options *o = &conversion->options;
    size_t n = conversion->set->n + conversion->set->n_aliases;
    size_t n_patterns = o->n_only + o->n_drop + o->n_renames;
    size_t n_kept = 0;
    enum pawl_status st;

    p.entries = calloc(n + 1, sizeof *p.entries);
    p.sorted = calloc(n + 1, sizeof(const struct entry *));
    p.stored = calloc(conversion->set->n + 1, sizeof *p.stored);
    p.is_used = calloc(n_patterns + 1, 1);
    if (p.entries == NULL || p.sorted == NULL || p.stored == NULL || p.is_used == NULL) {
        st = pawl_fail_memory(err, n * (sizeof *p.entries + sizeof *p.sorted + sizeof *p.stored) + n_patterns);
        goto out;
    }
    st = take_entries(&p);
    if (st == PAWL_OK)
        st = choose_names(&p);
    if (st == PAWL_OK)
        st = check_clashes(&p, &n_kept);
    if (st != PAWL_OK)
        goto out;
    choose_stored(&p, n_kept);
    st = take_items(&p, n_kept);
    if (st != PAWL_OK)
        goto out;
    take_dropped(&p);
    st = take_metadata(conversion, err);
    if (st == PAWL_OK)
        st = as_argument(pawl_split_plan(&conversion->split, PAWL_STR("model"), conversion->items, conversion->n,
                                         conversion->metadata, conversion->n_metadata, conversion->has_metadata,
                                         o->is_directory ? o->file_bytes_max : UINT64_MAX, o->align, err),
                         err);
out:
    free(p.entries);
    free(p.sorted);
    free(p.stored);
    free(p.is_used);
    return st;
}

void
pawl_conversion_release(struct pawl_conversion *conversion)
{
    pawl_split_release(&conversion->split);
    pawl_arena_release(&conversion->arena);
}
