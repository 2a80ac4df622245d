/*
 * The safetensors reader on headers made from choices, so that the search spends its time behind the JSON: entries with names, dtypes,
 * shapes and extents that tile, in one of several spellings, and then changes. Every byte of the input is one choice. What the maker
 * knows of its header is the oracle: one without a change is accepted by every mode and read back as it was made; a change that
 * breaks the tiling, and nothing else, is refused by every mode with a code of that rule.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buffer.h"
#include "base/cursor.h"
#include "formats/safetensors/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENTRIES_MAX 24
#define RANK_MAX 6

static void
require(bool holds)
{
    if (!holds)
        abort();
}

struct choices {
    const uint8_t *at;
    size_t left;
};

/* 0 ... n - 1; 0 when the choices have run out. */
static unsigned
choose(struct choices *c, unsigned n)
{
    if (c->left == 0)
        return 0;
    c->left--;
    return *c->at++ % n;
}

struct made {
    char name[24];
    size_t name_len;
    enum pawl_dtype dtype;
    uint64_t shape[RANK_MAX];
    uint32_t rank;
    uint64_t begin, end;
};

/* Of whole bytes, at most some hundred. */
static void
make_entry(struct choices *c, struct made *m, size_t number, uint64_t begin)
{
    static const char *const ODD[] = { "t", "", "\n", "\"", "\\", "\xc3\xa9", "\xf0\x9f\xa6\x80", "__metadata", "a/b" };
    const char *odd = ODD[choose(c, 9)];
    m->name_len = (size_t)snprintf(m->name, sizeof m->name, "%s%zu", odd, number);
    if (choose(c, 8) == 1 && strlen(odd) == 1)
        m->name[0] = '\0'; /* a NUL is legal in a name */
    m->dtype = (enum pawl_dtype)(1 + choose(c, PAWL_DTYPE_COUNT));
    m->rank = choose(c, RANK_MAX);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < m->rank; i++) {
        m->shape[i] = choose(c, 5);
        elements *= m->shape[i];
    }
    if (elements * pawl_dtype_bits(m->dtype) % 8 != 0) {
        m->shape[m->rank++ < RANK_MAX ? m->rank - 1 : RANK_MAX - 1] = 4;
        elements *= 4;
    }
    m->begin = begin;
    m->end = begin + elements * pawl_dtype_bits(m->dtype) / 8;
}

static void
add_blank(struct choices *c, struct pawl_buffer *b, bool is_loose)
{
    static const char *const BLANKS[] = { "", " ", "\t", "\r\n" };
    if (is_loose)
        (void)pawl_buffer_add_z(b, BLANKS[choose(c, 4)]);
}

/* As JSON, escaped where it must be, and elsewhere where the choices say so. */
static void
add_name(struct choices *c, struct pawl_buffer *b, const struct made *m, bool is_loose)
{
    (void)pawl_buffer_add_char(b, '"');
    for (size_t i = 0; i < m->name_len; i++) {
        unsigned char byte = (unsigned char)m->name[i];
        if (byte < 0x20 || byte == '"' || byte == '\\' || (is_loose && byte < 0x80 && choose(c, 4) == 1))
            (void)pawl_buffer_printf(b, choose(c, 2) == 0 ? "\\u%04x" : "\\u%04X", byte);
        else
            (void)pawl_buffer_add_char(b, (char)byte);
    }
    (void)pawl_buffer_add_char(b, '"');
}

static void
add_numbers(struct choices *c, struct pawl_buffer *b, const uint64_t *numbers, size_t n, bool is_loose)
{
    (void)pawl_buffer_add_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        (void)pawl_buffer_printf(b, i == 0 ? "%llu" : ",%llu", (unsigned long long)numbers[i]);
        add_blank(c, b, is_loose);
    }
    (void)pawl_buffer_add_char(b, ']');
}

static void
add_entry(struct choices *c, struct pawl_buffer *b, const struct made *m, bool is_loose)
{
    static const char *const IGNORED[] = { "null", "{}", "[1,[2]]", "\"x\"", "-1.5e3", "true" };
    const uint64_t extent[2] = { m->begin, m->end };
    unsigned turn = is_loose ? choose(c, 3) : 0; /* which field is first */
    add_name(c, b, m, is_loose);
    add_blank(c, b, is_loose);
    (void)pawl_buffer_add_z(b, ":{");
    for (unsigned k = 0; k < 3; k++) {
        unsigned field = (k + turn) % 3;
        if (k != 0)
            (void)pawl_buffer_add_char(b, ',');
        add_blank(c, b, is_loose);
        if (is_loose && choose(c, 6) == 1)
            (void)pawl_buffer_printf(b, "\"extra\":%s,", IGNORED[choose(c, 6)]);
        if (field == 0)
            (void)pawl_buffer_printf(b, "\"dtype\":\"%s\"", pawl_dtype_name(m->dtype));
        (void)pawl_buffer_add_z(b, field == 1 ? "\"shape\":" : field == 2 ? "\"data_offsets\":" : "");
        if (field != 0)
            add_numbers(c, b, field == 1 ? m->shape : extent, field == 1 ? m->rank : 2, is_loose);
    }
    (void)pawl_buffer_add_char(b, '}');
}

/* The header's text; the entries as they are in `order`. */
static void
make_text(struct choices *c, struct pawl_buffer *b, const struct made *made, const size_t *order, size_t n,
          bool is_loose)
{
    bool has_metadata = choose(c, 3) == 1;
    (void)pawl_buffer_add_char(b, '{');
    if (has_metadata)
        (void)pawl_buffer_add_z(b, "\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < n; i++) {
        if (i != 0 || has_metadata)
            (void)pawl_buffer_add_char(b, ',');
        add_blank(c, b, is_loose);
        add_entry(c, b, &made[order[i]], is_loose);
    }
    (void)pawl_buffer_add_char(b, '}');
    while (b->len % 8 != 0)
        (void)pawl_buffer_add_char(b, ' ');
    require(pawl_buffer_ok(b));
}

static enum pawl_status
judge(const struct pawl_buffer *text, uint64_t data_bytes, enum pawl_st_mode mode, struct pawl_st_header *h,
      struct pawl_error *err)
{
    const struct pawl_st_options options = { .mode = mode };
    *err = (struct pawl_error)PAWL_ERROR_INIT;
    return pawl_st_parse(h, text->data, text->len, 8 + text->len + data_bytes, &options, err);
}

static void
check_read_back(const struct pawl_st_header *h, const struct made *made, size_t n)
{
    require(h->n == n);
    for (size_t i = 0; i < n; i++) {
        const struct pawl_tensor_info *t = pawl_st_find(h, (struct pawl_str){ made[i].name, made[i].name_len });
        require(t != NULL && t->dtype == made[i].dtype && t->rank == made[i].rank && t->begin == made[i].begin &&
                t->end == made[i].end);
        require(t->rank == 0 || memcmp(t->shape, made[i].shape, t->rank * sizeof *t->shape) == 0);
        require(i == 0 || h->tensors[i - 1].begin <= h->tensors[i].begin);
    }
}

static void
check_good(const struct pawl_buffer *text, const struct made *made, size_t n, uint64_t data_bytes)
{
    for (int mode = PAWL_ST_STRICT; mode <= PAWL_ST_LINT; mode++) {
        struct pawl_st_header h;
        struct pawl_error err;
        require(judge(text, data_bytes, (enum pawl_st_mode)mode, &h, &err) == PAWL_OK);
        check_read_back(&h, made, n);
        pawl_st_release(&h);
        require(judge(text, data_bytes + 1, (enum pawl_st_mode)mode, &h, &err) == PAWL_CORRUPT);
        require(strcmp(err.code, "trailing") == 0);
        if (data_bytes != 0) {
            require(judge(text, data_bytes - 1, (enum pawl_st_mode)mode, &h, &err) == PAWL_TRUNCATED);
            require(strcmp(err.code, "truncated") == 0);
        }
    }
}

/* Change the extent of one entry that has bytes: whatever it becomes, the tiling is broken. */
static void
check_broken(struct choices *c, struct made *made, const size_t *order, size_t n, uint64_t data_bytes, bool is_loose)
{
    size_t which = choose(c, (unsigned)n);
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct made *m = &made[which];
    if (m->begin == m->end)
        return;
    uint64_t by = 1 + choose(c, 9);
    unsigned how = choose(c, 4);
    if (how == 0)
        m->end += by;
    else if (how == 1)
        m->begin += by;
    else if (how == 2)
        m->end -= by < m->end ? by : 1;
    else
        m->shape[0] += m->rank == 0 ? 0 : by; /* another size; of a scalar, nothing */
    bool is_same = how == 3 && m->rank == 0;
    make_text(c, &text, made, order, n, is_loose);
    for (int mode = PAWL_ST_STRICT; mode <= PAWL_ST_LINT && !is_same; mode++) {
        struct pawl_st_header h;
        struct pawl_error err;
        require(judge(&text, data_bytes, (enum pawl_st_mode)mode, &h, &err) != PAWL_OK);
        require(strcmp(err.code, "hole") == 0 || strcmp(err.code, "overlap") == 0 || strcmp(err.code, "size") == 0 ||
                strcmp(err.code, "bits") == 0);
        require(h.text == NULL);
    }
    pawl_buffer_release(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices c = { data, size };
    struct made made[ENTRIES_MAX];
    size_t order[ENTRIES_MAX];
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    size_t n = choose(&c, ENTRIES_MAX + 1);
    bool is_loose = choose(&c, 2) == 1;
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        make_entry(&c, &made[i], i, at);
        at = made[i].end;
        order[i] = i;
    }
    for (size_t i = n; i > 1; i--) { /* the header may be in any order */
        size_t k = choose(&c, (unsigned)i);
        size_t swap = order[i - 1];
        order[i - 1] = order[is_loose ? k : i - 1];
        order[is_loose ? k : i - 1] = swap;
    }
    make_text(&c, &text, made, order, n, is_loose);
    check_good(&text, made, n, at);
    pawl_buffer_release(&text);
    if (n != 0)
        check_broken(&c, made, order, n, at, is_loose);
    return 0;
}
