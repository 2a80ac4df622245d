#include "checkpoint/block_sums.h"

#include <inttypes.h>
#include <stdlib.h>
#include "base/checked.h"
#include "base/cursor.h"
#include "checkpoint/documents.h"
#include "checkpoint/names.h"

#define MAGIC "PAWLSUMS"
#define MAGIC_BYTES ((size_t)8)
#define VERSION 1
#define SUM_BYTES ((size_t)8)
#define HEAD_BYTES ((size_t)40)  /* the magic and four words */
#define ENTRY_BYTES ((size_t)32) /* the words of an entry, without its name and its sums */

size_t
pawl_sums_blocks(uint64_t bytes)
{
    return (size_t)(bytes / PAWL_SUMS_BLOCK_BYTES + (bytes % PAWL_SUMS_BLOCK_BYTES != 0));
}

uint64_t
pawl_sums_of(const struct pawl_sums_file *file, size_t block)
{
    return pawl_get_u64le(file->sums + block * SUM_BYTES);
}

static int
compare_name(const void *key, const void *item)
{
    return pawl_str_compare(*(const struct pawl_str *)key, ((const struct pawl_sums_file *)item)->name);
}

const struct pawl_sums_file *
pawl_sums_find(const struct pawl_sums *sums, struct pawl_str name)
{
    if (sums->n == 0)
        return NULL;
    return bsearch(&name, sums->files, sums->n, sizeof *sums->files, compare_name);
}

/* Names are followed by zeros up to a whole word. */
static size_t
padded(size_t name_bytes)
{
    return (name_bytes + 7) / 8 * 8;
}

/* ---- reading ---- */

static enum pawl_status
read_name(struct pawl_cursor *in, uint64_t len, struct pawl_str *ret_name, struct pawl_error *err)
{
    const unsigned char *text;
    uint64_t where = in->offset;
    if (len == 0 || len > PAWL_SUMS_NAME_BYTES_MAX)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", where - 8, "a name of %" PRIu64 " bytes, expected 1 ... %zu",
                            len, PAWL_SUMS_NAME_BYTES_MAX);
    if (!pawl_cursor_take(in, padded((size_t)len), &text))
        return pawl_fail_at(err, PAWL_CORRUPT, "content", where, "a name of %" PRIu64 " bytes, and %zu are left", len,
                            pawl_cursor_left(in));
    *ret_name = pawl_str_make((const char *)text, (size_t)len);
    if (!pawl_name_is_tensor_file(*ret_name))
        return pawl_fail_at(err, PAWL_CORRUPT, "content", where, "'%s' is no name of a tensor file",
                            PAWL_SHOW(*ret_name));
    for (size_t i = (size_t)len; i < padded((size_t)len); i++)
        if (text[i] != 0)
            return pawl_fail_at(err, PAWL_CORRUPT, "content", where + i,
                                "expected a zero behind the name, found 0x%02x", text[i]);
    return PAWL_OK;
}

static enum pawl_status
read_entry(struct pawl_cursor *in, const struct pawl_sums_file *previous, struct pawl_sums_file *ret_file,
           struct pawl_error *err)
{
    uint64_t name_bytes;
    uint64_t where = in->offset;
    size_t left = pawl_cursor_left(in);
    if (!pawl_cursor_u64le(in, &ret_file->bytes) || !pawl_cursor_u64le(in, &ret_file->header_bytes) ||
        !pawl_cursor_u64le(in, &ret_file->header_sum) || !pawl_cursor_u64le(in, &name_bytes))
        return pawl_fail_at(err, PAWL_CORRUPT, "content", where, "an entry takes %zu bytes or more, and %zu are left",
                            ENTRY_BYTES, left);
    enum pawl_status st = read_name(in, name_bytes, &ret_file->name, err);
    if (st != PAWL_OK)
        return st;
    if (previous != NULL && pawl_str_compare(previous->name, ret_file->name) >= 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", where + ENTRY_BYTES,
                            "'%s' stands behind '%s', expected each name once and ascending", PAWL_SHOW(ret_file->name),
                            PAWL_SHOW(previous->name));
    if (ret_file->header_bytes > ret_file->bytes)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", where + 8,
                            "'%s' has a header of %" PRIu64 " bytes in a file of %" PRIu64, PAWL_SHOW(ret_file->name),
                            ret_file->header_bytes, ret_file->bytes);
    uint64_t blocks = ret_file->bytes / PAWL_SUMS_BLOCK_BYTES + (ret_file->bytes % PAWL_SUMS_BLOCK_BYTES != 0);
    if (blocks > pawl_cursor_left(in) / SUM_BYTES)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", in->offset,
                            "'%s' of %" PRIu64 " bytes has %" PRIu64 " sums, and %zu bytes are left",
                            PAWL_SHOW(ret_file->name), ret_file->bytes, blocks, pawl_cursor_left(in));
    (void)pawl_cursor_take(in, (size_t)blocks * SUM_BYTES, &ret_file->sums);
    return PAWL_OK;
}

/* The magic, the version, and the words that are the same in every file of this version but the last, which is returned. */
static enum pawl_status
read_head(struct pawl_cursor *in, size_t n, uint64_t *ret_n_files, struct pawl_error *err)
{
    const unsigned char *magic;
    uint64_t version, block_bytes, own_bytes;
    if (!pawl_cursor_take(in, MAGIC_BYTES, &magic) || memcmp(magic, MAGIC, MAGIC_BYTES) != 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", 0, "it does not begin with " MAGIC);
    if (!pawl_cursor_u64le(in, &version))
        return pawl_fail_at(err, PAWL_CORRUPT, "content", 8, "%zu bytes, expected %zu or more", n,
                            HEAD_BYTES + SUM_BYTES);
    if (version > VERSION)
        return pawl_fail_at(err, PAWL_UNSUPPORTED, "unsupported", 8, "version %" PRIu64 ", this Pawl knows version %d",
                            version, VERSION);
    if (version != VERSION)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", 8, "expected version %d, found %" PRIu64, VERSION, version);
    if (!pawl_cursor_u64le(in, &block_bytes) || !pawl_cursor_u64le(in, &own_bytes) ||
        !pawl_cursor_u64le(in, ret_n_files) || pawl_cursor_left(in) < SUM_BYTES)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", in->offset, "%zu bytes, expected %zu or more", n,
                            HEAD_BYTES + SUM_BYTES);
    if (block_bytes != PAWL_SUMS_BLOCK_BYTES)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", 16, "expected blocks of %" PRIu64 " bytes, found %" PRIu64,
                            PAWL_SUMS_BLOCK_BYTES, block_bytes);
    if (own_bytes != n)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", 24, "it says that it has %" PRIu64 " bytes, and has %zu",
                            own_bytes, n);
    return PAWL_OK;
}

/* Before anything else is believed: the sum over all that stands in front of it. */
static enum pawl_status
check_own_sum(struct pawl_cursor *in, const void *bytes, size_t n, struct pawl_error *err)
{
    uint64_t expected = pawl_get_u64le((const unsigned char *)bytes + n - SUM_BYTES);
    uint64_t found = pawl_xxh64(bytes, n - SUM_BYTES, 0);
    in->end -= SUM_BYTES;
    if (expected == found)
        return PAWL_OK;
    return pawl_fail_at(err, PAWL_CORRUPT, "content", n - SUM_BYTES,
                        "expected the sum %016" PRIx64 " of itself, found %016" PRIx64, expected, found);
}

enum pawl_status
pawl_sums_parse(struct pawl_arena *arena, struct pawl_sums *ret_sums, const void *bytes, size_t n,
                struct pawl_error *err)
{
    struct pawl_cursor in = pawl_cursor_make(bytes, n);
    uint64_t n_files = 0;
    enum pawl_status st = read_head(&in, n, &n_files, err);
    if (st == PAWL_OK)
        st = check_own_sum(&in, bytes, n, err);
    if (st != PAWL_OK)
        return st;
    if (n_files > pawl_cursor_left(&in) / (ENTRY_BYTES + padded(1)))
        return pawl_fail_at(err, PAWL_CORRUPT, "content", 32, "%" PRIu64 " files do not fit into %zu bytes", n_files,
                            n);
    struct pawl_sums_file *files = pawl_arena_take_array(arena, (size_t)n_files + 1, sizeof *files);
    if (files == NULL)
        return pawl_fail_memory(err, ((size_t)n_files + 1) * sizeof *files);
    for (size_t i = 0; i < n_files; i++) {
        st = read_entry(&in, i == 0 ? NULL : &files[i - 1], &files[i], err);
        if (st != PAWL_OK)
            return st;
    }
    if (pawl_cursor_left(&in) != 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", in.offset, "%zu bytes stand behind the last file",
                            pawl_cursor_left(&in));
    *ret_sums = (struct pawl_sums){ files, (size_t)n_files };
    return PAWL_OK;
}

/* ---- writing ---- */

static enum pawl_status
document_bytes(const struct pawl_sums_file *files, size_t n, size_t *ret_bytes, struct pawl_error *err)
{
    uint64_t total = HEAD_BYTES + SUM_BYTES;
    bool fits = true;
    for (size_t i = 0; i < n && fits; i++) {
        total += ENTRY_BYTES + padded(files[i].name.len);
        fits = pawl_add_u64(total, (files[i].bytes / PAWL_SUMS_BLOCK_BYTES + 1) * SUM_BYTES, &total);
        total -= files[i].bytes % PAWL_SUMS_BLOCK_BYTES == 0 ? SUM_BYTES : 0;
        fits = fits && total <= PAWL_DOCUMENT_BYTES_MAX;
    }
    if (!fits)
        return pawl_fail(err, PAWL_LIMIT, "limit", "%s would have more than %zu bytes", PAWL_SUMS,
                         PAWL_DOCUMENT_BYTES_MAX);
    *ret_bytes = (size_t)total;
    return PAWL_OK;
}

/* Memory was reserved before: nothing here fails. */
static void
add_word(struct pawl_buffer *out, uint64_t word)
{
    unsigned char bytes[8];
    pawl_put_u64le(bytes, word);
    (void)pawl_buffer_add(out, bytes, sizeof bytes);
}

static void
add_zeros(struct pawl_buffer *out, size_t n)
{
    memset(out->data + out->len, 0, n);
    out->len += n;
}

enum pawl_status
pawl_sums_lay_out(struct pawl_sums_file *files, size_t n, struct pawl_buffer *out, struct pawl_error *err)
{
    size_t bytes = 0;
    enum pawl_status st = document_bytes(files, n, &bytes, err);
    if (st != PAWL_OK)
        return st;
    if (!pawl_buffer_reserve(out, bytes))
        return pawl_fail_memory(err, bytes);
    (void)pawl_buffer_add(out, MAGIC, MAGIC_BYTES);
    add_word(out, VERSION);
    add_word(out, PAWL_SUMS_BLOCK_BYTES);
    add_word(out, bytes);
    add_word(out, n);
    for (size_t i = 0; i < n; i++) {
        add_word(out, files[i].bytes);
        add_word(out, files[i].header_bytes);
        add_word(out, files[i].header_sum);
        add_word(out, files[i].name.len);
        (void)pawl_buffer_add_str(out, files[i].name);
        add_zeros(out, padded(files[i].name.len) - files[i].name.len);
        files[i].sums = (const unsigned char *)out->data + out->len;
        add_zeros(out, pawl_sums_blocks(files[i].bytes) * SUM_BYTES);
    }
    add_zeros(out, SUM_BYTES);
    return PAWL_OK;
}

void
pawl_sums_seal(struct pawl_buffer *document)
{
    size_t bytes = document->len - SUM_BYTES;
    pawl_put_u64le((unsigned char *)document->data + bytes, pawl_xxh64(document->data, bytes, 0));
}

/* ---- taking them ---- */

static void
begin_block(struct pawl_sums_taker *taker)
{
    pawl_xxh64_begin(&taker->sum, 0);
    taker->left = PAWL_SUMS_BLOCK_BYTES;
}

static void
end_block(struct pawl_sums_taker *taker)
{
    pawl_put_u64le(taker->to, pawl_xxh64_finish(&taker->sum));
    taker->to += SUM_BYTES;
    begin_block(taker);
}

void
pawl_sums_take_begin(struct pawl_sums_taker *taker, unsigned char *to, uint64_t bytes)
{
    taker->to = to;
    taker->end = to + pawl_sums_blocks(bytes) * SUM_BYTES;
    begin_block(taker);
}

void
pawl_sums_take(struct pawl_sums_taker *taker, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    /* A file that becomes larger than was said is an error of the save; until that is found there is no room for its sums. */
    while (bytes != 0 && taker->to != taker->end) {
        size_t n = bytes < taker->left ? bytes : (size_t)taker->left;
        pawl_xxh64_update(&taker->sum, at, n);
        taker->left -= n;
        at += n;
        bytes -= n;
        if (taker->left == 0)
            end_block(taker);
    }
}

void
pawl_sums_take_end(struct pawl_sums_taker *taker)
{
    if (taker->to != taker->end && taker->left != PAWL_SUMS_BLOCK_BYTES)
        end_block(taker);
}
