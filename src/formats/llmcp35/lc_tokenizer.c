/* Stage E, and tokenizers: literal pieces and byte-level BPE. */
#include "formats/llmcp35/lc_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTE_IDS 256  /* training ids of the raw bytes */
#define CONTROL_IDS 2 /* decoder ids before them */

void
pawl_llmcp35_tokenizer_free(struct pawl_llmcp35_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    pawl_arena_release(&tokenizer->arena);
    free(tokenizer);
}

/* ---- making ---- */

static enum pawl_status
new_literal(const struct pawl_str *pieces, size_t n, struct pawl_llmcp35_tokenizer **ret_tokenizer, struct lc_out *out)
{
    if (n == 0)
        return LC_REFUSE(out, "tokenizer", "empty", LC_NO_FIELDS, "a literal tokenizer has at least one token");
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].len == 0)
            return LC_REFUSE(out, "tokenizer", "empty_spelling", LC_FIELDS(LC_U64("id", i)),
                             "token %zu is spelt with no bytes", i);
    }
    struct pawl_llmcp35_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    struct lc_key *keys = calloc(n, sizeof *keys);
    struct lc_names copy = { NULL, 0 };
    enum pawl_status st = PAWL_OK;
    if (tokenizer != NULL)
        tokenizer->by_piece = pawl_arena_take_array(&tokenizer->arena, n, sizeof *tokenizer->by_piece);
    if (tokenizer == NULL || keys == NULL || tokenizer->by_piece == NULL ||
        pawl_lc_names_copy(&tokenizer->arena, &copy, pieces, n) != PAWL_OK) {
        st = pawl_lc_fail_memory(out, "tokenizer_vocabulary");
        goto out;
    }
    tokenizer->kind = PAWL_LLMCP35_LITERAL;
    tokenizer->pieces = copy.items;
    tokenizer->n_pieces = n;
    for (size_t i = 0; i < n; i++)
        keys[i] = (struct lc_key){ copy.items[i], 0, i };
    size_t repeat = pawl_lc_first_repeat(keys, n);
    if (repeat < n) {
        st = LC_REFUSE(out, "tokenizer", "repeated_spelling", LC_FIELDS(LC_U64("id", repeat)),
                       "token %zu is spelt '%s', as an earlier one", repeat, PAWL_SHOW(copy.items[repeat]));
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        tokenizer->by_piece[i] = keys[i].index;
    *ret_tokenizer = tokenizer;
    tokenizer = NULL;
out:
    free(keys);
    pawl_llmcp35_tokenizer_free(tokenizer);
    return st;
}

/* Merges whose pairs are known to be in order of rank: operands first, then whether an earlier rank has the pair. */
static enum pawl_status
check_merges(const uint32_t *pairs, size_t n, size_t repeat, struct lc_out *out)
{
    for (size_t r = 0; r < n; r++) {
        for (int side = 0; side < 2; side++) {
            uint32_t id = pairs[2 * r + (size_t)side];
            if (id >= BYTE_IDS + r)
                return LC_REFUSE(out, "bpe", "unknown_merge_operand",
                                 LC_FIELDS(LC_U64("rank", r), LC_U64("token_id", id)),
                                 "merge %zu joins token %" PRIu32 ", which is not there before it", r, id);
        }
        if (r == repeat)
            return LC_REFUSE(
                out, "bpe", "duplicate_merge_pair",
                LC_FIELDS(LC_U64("rank", r), LC_U64("left", pairs[2 * r]), LC_U64("right", pairs[2 * r + 1])),
                "merge %zu joins %" PRIu32 " and %" PRIu32 ", as an earlier one", r, pairs[2 * r], pairs[2 * r + 1]);
    }
    return PAWL_OK;
}

/* A token may be longer than 2^64 bytes (each merge can double it): such a one has no spelling, and its length stays at the top. */
static void
measure_merges(struct pawl_llmcp35_tokenizer *tokenizer)
{
    for (size_t r = 0; r < tokenizer->n_merges; r++) {
        uint64_t length = 0;
        for (int side = 0; side < 2; side++) {
            uint32_t id = tokenizer->pairs[2 * r + (size_t)side];
            uint64_t part = id < BYTE_IDS ? 1 : tokenizer->lengths[id - BYTE_IDS];
            if (part == UINT64_MAX || !pawl_add_u64(length, part, &length))
                length = UINT64_MAX;
        }
        tokenizer->lengths[r] = length;
    }
}

static enum pawl_status
new_bpe(const uint32_t *pairs, size_t n, struct pawl_llmcp35_tokenizer **ret_tokenizer, struct lc_out *out)
{
    if (n > UINT32_MAX - (BYTE_IDS + CONTROL_IDS - 1))
        return LC_REFUSE(out, "bpe", "layout_overflow", LC_FIELDS(LC_U64("merge_count", n)),
                         "%zu merges need ids beyond 32 bits", n);
    struct pawl_llmcp35_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    struct lc_key *keys = calloc(n + 1, sizeof *keys);
    unsigned char *texts = malloc(8 * n + 1);
    enum pawl_status st = PAWL_OK;
    if (tokenizer != NULL && n > 0) {
        tokenizer->pairs = pawl_arena_take_array(&tokenizer->arena, 2 * n, sizeof *tokenizer->pairs);
        tokenizer->by_pair = pawl_arena_take_array(&tokenizer->arena, n, sizeof *tokenizer->by_pair);
        tokenizer->lengths = pawl_arena_take_array(&tokenizer->arena, n, sizeof *tokenizer->lengths);
    }
    if (tokenizer == NULL || keys == NULL || texts == NULL ||
        (n > 0 && (tokenizer->pairs == NULL || tokenizer->by_pair == NULL || tokenizer->lengths == NULL))) {
        st = pawl_lc_fail_memory(out, "payload");
        goto out;
    }
    tokenizer->kind = PAWL_LLMCP35_BYTE_BPE;
    tokenizer->n_merges = n;
    for (size_t i = 0; i < 2 * n; i++) {
        tokenizer->pairs[i] = pairs[i];
        for (unsigned k = 0; k < 4; k++) /* the first byte counts most: the order of bytes is that of numbers */
            texts[4 * i + k] = (unsigned char)(pairs[i] >> (24 - 8 * k));
    }
    for (size_t r = 0; r < n; r++)
        keys[r] = (struct lc_key){ pawl_str_make((const char *)texts + 8 * r, 8), 0, r };
    size_t repeat = pawl_lc_first_repeat(keys, n);
    st = check_merges(pairs, n, repeat, out);
    if (st != PAWL_OK)
        goto out;
    for (size_t r = 0; r < n; r++)
        tokenizer->by_pair[r] = keys[r].index;
    measure_merges(tokenizer);
    *ret_tokenizer = tokenizer;
    tokenizer = NULL;
out:
    free(keys);
    free(texts);
    pawl_llmcp35_tokenizer_free(tokenizer);
    return st;
}

enum pawl_status
pawl_llmcp35_tokenizer_literal(const struct pawl_str *pieces, size_t n, struct pawl_llmcp35_tokenizer **ret_tokenizer,
                               struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    return new_literal(pieces, n, ret_tokenizer, &out);
}

enum pawl_status
pawl_llmcp35_tokenizer_bpe(const uint32_t *pairs, size_t n, struct pawl_llmcp35_tokenizer **ret_tokenizer,
                           struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct lc_out out = lc_out_make(ret_fault, err);
    return new_bpe(pairs, n, ret_tokenizer, &out);
}

/* ---- stage E ---- */

static enum pawl_status
read_literal(const struct lc_file *file, struct pawl_llmcp35_tokenizer **ret_tokenizer, struct lc_out *out)
{
    size_t n = file->first_parameter;
    struct pawl_str *pieces = calloc(n + 1, sizeof *pieces);
    enum pawl_status st = PAWL_OK;
    if (pieces == NULL)
        return pawl_lc_fail_memory(out, "tokenizer_vocabulary");
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        const struct lc_record *record = &file->records[i];
        char text[LC_NAME_TOKENS_MAX];
        (void)snprintf(text, sizeof text, "%zu", i);
        out->offset = record->entry_offset;
        if (record->role != PAWL_LLMCP35_TOKEN || record->dtype != PAWL_LLMCP35_U8 ||
            !pawl_str_equal(record->name, pawl_str_z(text)))
            st = pawl_lc_fail_identity(out, record, pawl_str_z(text), PAWL_LLMCP35_TOKEN, PAWL_LLMCP35_U8);
        else if (record->rank != 1 || record->dims[0] == 0)
            st = LC_REFUSE(out, "layout", "token_shape", LC_FIELDS(LC_U64("id", i)),
                           "token %zu has a shape of rank %" PRIu32 "%s, expected one dimension that is not 0", i,
                           record->rank, record->rank == 1 ? " and no bytes" : "");
        else
            pieces[i] = pawl_str_make((const char *)file->bytes + record->offset, (size_t)record->bytes);
    }
    out->offset = PAWL_OFFSET_NONE;
    if (st == PAWL_OK)
        st = new_literal(pieces, n, ret_tokenizer, out);
    free(pieces);
    return st;
}

static enum pawl_status
read_bpe(const struct lc_file *file, struct pawl_llmcp35_tokenizer **ret_tokenizer, struct lc_out *out)
{
    const struct lc_record *record = &file->records[0];
    char shape[96];
    out->offset = record->entry_offset;
    if (record->role != PAWL_LLMCP35_MERGES || record->dtype != PAWL_LLMCP35_U32 ||
        !pawl_str_equal(record->name, PAWL_STR(LC_PAIRS_NAME)))
        return pawl_lc_fail_identity(out, record, PAWL_STR(LC_PAIRS_NAME), PAWL_LLMCP35_MERGES, PAWL_LLMCP35_U32);
    if (record->rank != 2 || record->dims[1] != 2)
        return LC_REFUSE(out, "layout", "pair_shape", LC_FIELDS(LC_SHAPE("shape", record->dims, record->rank)),
                         "the merges have the shape %s, expected [n, 2]",
                         pawl_lc_show_shape(shape, record->dims, record->rank));
    size_t n = (size_t)record->dims[0];
    uint32_t *pairs = malloc(8 * n + 1); /* 8 bytes of each lie in the file */
    if (pairs == NULL)
        return pawl_lc_fail_memory(out, "payload");
    out->offset = record->offset;
    for (size_t i = 0; i < 2 * n; i++)
        pairs[i] = pawl_get_u32le(file->bytes + record->offset + 4 * i);
    enum pawl_status st = new_bpe(pairs, n, ret_tokenizer, out);
    free(pairs);
    return st;
}

enum pawl_status
pawl_lc_read_tokenizer(const struct lc_file *file, struct pawl_llmcp35_tokenizer **ret_tokenizer, struct lc_out *out)
{
    struct pawl_llmcp35_tokenizer *tokenizer = NULL;
    enum pawl_status st =
        file->tokenizer_kind == 1 ? read_literal(file, &tokenizer, out) : read_bpe(file, &tokenizer, out);
    if (st != PAWL_OK)
        return st;
    assert(tokenizer != NULL);
    *ret_tokenizer = tokenizer; /* the checkpoint's from here on, whatever follows */
    out->offset = PAWL_OFFSET_NONE;
    uint64_t vocabulary = pawl_llmcp35_tokenizer_vocabulary(tokenizer);
    if (vocabulary != file->tokenizer_vocabulary)
        return LC_REFUSE(out, "vocabulary_mismatch", NULL,
                         LC_FIELDS(LC_U64("tokenizer", vocabulary), LC_U64("decoder", file->tokenizer_vocabulary)),
                         "the tokenizer has %" PRIu64 " tokens, the header says %" PRIu64, vocabulary,
                         file->tokenizer_vocabulary);
    return PAWL_OK;
}

/* ---- using ---- */

enum pawl_llmcp35_tokenizer_kind
pawl_llmcp35_tokenizer_kind(const struct pawl_llmcp35_tokenizer *tokenizer)
{
    return tokenizer->kind;
}

uint64_t
pawl_llmcp35_tokenizer_vocabulary(const struct pawl_llmcp35_tokenizer *tokenizer)
{
    return tokenizer->kind == PAWL_LLMCP35_LITERAL ? tokenizer->n_pieces
                                                   : (uint64_t)CONTROL_IDS + BYTE_IDS + tokenizer->n_merges;
}

const uint32_t *
pawl_llmcp35_tokenizer_merges(const struct pawl_llmcp35_tokenizer *tokenizer, size_t *ret_n)
{
    *ret_n = tokenizer->n_merges;
    return tokenizer->pairs;
}

bool
pawl_llmcp35_tokenizer_find(const struct pawl_llmcp35_tokenizer *tokenizer, struct pawl_str piece, uint64_t *ret_id)
{
    size_t low = 0;
    size_t high = tokenizer->n_pieces;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        size_t id = tokenizer->by_piece[middle];
        int order = pawl_str_compare(tokenizer->pieces[id], piece);
        if (order == 0) {
            *ret_id = id;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* The first bytes_max bytes of a training id. Each byte is found from the top, the lengths telling the branch: a chain of
 * merges may be as deep as there are merges, and a stack for it would be memory that can lack. */
static void
spell(const struct pawl_llmcp35_tokenizer *tokenizer, uint32_t id, uint64_t length, unsigned char *bytes,
      size_t bytes_max)
{
    for (uint64_t i = 0; i < length && i < bytes_max; i++) {
        uint32_t at = id;
        uint64_t rest = i;
        while (at >= BYTE_IDS) {
            const uint32_t *pair = &tokenizer->pairs[2 * (size_t)(at - BYTE_IDS)];
            uint64_t left = pair[0] < BYTE_IDS ? 1 : tokenizer->lengths[pair[0] - BYTE_IDS];
            at = rest < left ? pair[0] : pair[1];
            rest = rest < left ? rest : rest - left;
        }
        bytes[i] = (unsigned char)at;
    }
}

enum pawl_status
pawl_llmcp35_tokenizer_spell(const struct pawl_llmcp35_tokenizer *tokenizer, uint64_t id, void *bytes, size_t bytes_max,
                             uint64_t *ret_bytes, struct pawl_error *err)
{
    uint64_t vocabulary = pawl_llmcp35_tokenizer_vocabulary(tokenizer);
    if (id >= vocabulary)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "token %" PRIu64 " of %" PRIu64, id, vocabulary);
    size_t room = bytes == NULL ? 0 : bytes_max;
    if (tokenizer->kind == PAWL_LLMCP35_LITERAL) {
        struct pawl_str piece = tokenizer->pieces[id];
        if (room > 0)
            memcpy(bytes, piece.data, piece.len < room ? piece.len : room);
        *ret_bytes = piece.len;
        return PAWL_OK;
    }
    if (id < CONTROL_IDS) {
        *ret_bytes = 0;
        return PAWL_OK;
    }
    uint32_t training = (uint32_t)(id - CONTROL_IDS);
    uint64_t length = training < BYTE_IDS ? 1 : tokenizer->lengths[training - BYTE_IDS];
    spell(tokenizer, training, length, bytes, room);
    *ret_bytes = length;
    return PAWL_OK;
}

/* The rank that joins these two training ids; n_merges when none does. */
static size_t
find_rank(const struct pawl_llmcp35_tokenizer *tokenizer, uint32_t left, uint32_t right)
{
    size_t low = 0;
    size_t high = tokenizer->n_merges;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        size_t rank = tokenizer->by_pair[middle];
        uint32_t x = tokenizer->pairs[2 * rank];
        uint32_t y = tokenizer->pairs[2 * rank + 1];
        if (x == left && y == right)
            return rank;
        if (x < left || (x == left && y < right))
            low = middle + 1;
        else
            high = middle;
    }
    return tokenizer->n_merges;
}

enum pawl_status
pawl_llmcp35_tokenizer_encode(const struct pawl_llmcp35_tokenizer *tokenizer, const void *text, size_t n, uint64_t *ids,
                              size_t n_max, size_t *ret_n, struct pawl_error *err)
{
    if (tokenizer->kind != PAWL_LLMCP35_BYTE_BPE)
        return pawl_fail(err, PAWL_UNSUPPORTED, "unsupported",
                         "a literal tokenizer does not say how a text is cut into pieces");
    if (n > SIZE_MAX / sizeof(uint32_t))
        return pawl_fail_memory(err, SIZE_MAX);
    uint32_t *line = malloc(n * sizeof *line + 1);
    if (line == NULL)
        return pawl_fail_memory(err, n * sizeof *line);
    for (size_t i = 0; i < n; i++)
        line[i] = ((const unsigned char *)text)[i];
    for (;;) {
        /* A merge makes a new token, whose own merges have higher ranks: the least rank found is the next that applies. */
        size_t least = tokenizer->n_merges;
        for (size_t i = 1; i < n && least > 0; i++) {
            size_t rank = find_rank(tokenizer, line[i - 1], line[i]);
            least = rank < least ? rank : least;
        }
        if (least == tokenizer->n_merges)
            break;
        uint32_t left = tokenizer->pairs[2 * least];
        uint32_t right = tokenizer->pairs[2 * least + 1];
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            if (i + 1 < n && line[i] == left && line[i + 1] == right) {
                line[kept++] = (uint32_t)(BYTE_IDS + least);
                i++;
            } else {
                line[kept++] = line[i];
            }
        }
        n = kept;
    }
    enum pawl_status st = PAWL_OK;
    if (n > n_max)
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "the text has %zu tokens, the caller's memory takes %zu", n,
                       n_max);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        ids[i] = (uint64_t)line[i] + CONTROL_IDS;
    if (st == PAWL_OK)
        *ret_n = n;
    free(line);
    return st;
}

/* ---- the sampling generator ---- */

uint64_t
pawl_llmcp35_draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
