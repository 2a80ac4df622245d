#include "formats/tokens/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/cursor.h"

const char *
pawl_shard_format_name(enum pawl_shard_format format)
{
    switch (format) {
    case PAWL_SHARD_PAWL_1:
        return "pawl-1";
    case PAWL_SHARD_PAWL_2:
        return "pawl-2";
    }
    return "unknown";
}

static int64_t
header_word(const unsigned char *header, unsigned word)
{
    uint32_t bits = pawl_get_u32le(header + (size_t)4 * word);
    return bits <= INT32_MAX ? (int64_t)bits : (int64_t)bits - (INT64_C(1) << 32);
}

/* The size of the file disagrees with the count: say which width of 1, 2, 4 bytes would have made it right. */
static enum pawl_status
fail_size(struct pawl_error *err, uint64_t ids, unsigned width, uint64_t file_bytes)
{
    uint64_t want = PAWL_SHARD_HEADER_BYTES + ids * width;
    bool is_short = file_bytes < want;
    char fits[64] = "";
    for (unsigned other = 1; other <= 4; other *= 2) {
        if (ids != 0 && file_bytes == PAWL_SHARD_HEADER_BYTES + ids * other)
            (void)snprintf(fits, sizeof fits, "; ids of %u byte%s would fit", other, other == 1 ? "" : "s");
    }
    return pawl_fail_at(err, is_short ? PAWL_TRUNCATED : PAWL_CORRUPT, is_short ? "truncated" : "trailing",
                        is_short ? file_bytes : want,
                        "%" PRIu64 " ids of %u bytes make a file of %" PRIu64 " bytes, this one has %" PRIu64 "%s", ids,
                        width, want, file_bytes, fits);
}

enum pawl_status
pawl_shard_parse(const void *bytes, size_t n, uint64_t file_bytes, struct pawl_shard_info *ret_info,
                 struct pawl_error *err)
{
    const unsigned char *header = bytes;

    if (file_bytes < PAWL_SHARD_HEADER_BYTES || n < PAWL_SHARD_HEADER_BYTES)
        return pawl_fail_at(err, PAWL_TRUNCATED, "too-short", file_bytes,
                            "a token shard begins with a header of %d bytes, this file has %" PRIu64,
                            PAWL_SHARD_HEADER_BYTES, file_bytes);

    int64_t magic = header_word(header, 0);
    if (magic != PAWL_SHARD_MAGIC)
        return pawl_fail_at(err, PAWL_CORRUPT, "magic", 0,
                            "a token shard begins with the number %d, this file with %" PRId64, PAWL_SHARD_MAGIC,
                            magic);

    int64_t version = header_word(header, 1);
    if (version != 1 && version != 2)
        return pawl_fail_at(err, PAWL_CORRUPT, "version", 4,
                            "version 1 (16-bit ids) or 2 (32-bit ids) was expected, found %" PRId64, version);

    int64_t ids = header_word(header, 2);
    if (ids < 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "count", 8, "the number of ids is negative: %" PRId64, ids);

    unsigned width = version == 1 ? 2 : 4;
    if (file_bytes != PAWL_SHARD_HEADER_BYTES + (uint64_t)ids * width)
        return fail_size(err, (uint64_t)ids, width, file_bytes);

    int64_t vocabulary = header_word(header, 3);
    if (vocabulary < 0)
        return pawl_fail_at(err, PAWL_CORRUPT, "vocabulary", 12, "the vocabulary is negative: %" PRId64, vocabulary);

    *ret_info = (struct pawl_shard_info){
        .format = version == 1 ? PAWL_SHARD_PAWL_1 : PAWL_SHARD_PAWL_2,
        .width = width,
        .ids = (uint64_t)ids,
        .vocabulary = (uint64_t)vocabulary,
    };
    return PAWL_OK;
}

enum pawl_status
pawl_shard_check_vocabulary(const struct pawl_shard_info *info, uint64_t vocabulary, struct pawl_error *err)
{
    if (info->vocabulary == 0 || vocabulary == 0 || info->vocabulary == vocabulary)
        return PAWL_OK;
    return pawl_fail_at(err, PAWL_CORRUPT, "vocabulary", 12,
                        "a vocabulary of %" PRIu64 " was asked for, the shard names %" PRIu64, vocabulary,
                        info->vocabulary);
}

void
pawl_shard_print(const struct pawl_shard_info *info, unsigned char ret_bytes[PAWL_SHARD_HEADER_BYTES])
{
    memset(ret_bytes, 0, PAWL_SHARD_HEADER_BYTES);
    pawl_put_u32le(ret_bytes, PAWL_SHARD_MAGIC);
    pawl_put_u32le(ret_bytes + 4, info->width == 2 ? 1 : 2);
    pawl_put_u32le(ret_bytes + 8, (uint32_t)info->ids);
    pawl_put_u32le(ret_bytes + 12, info->vocabulary <= PAWL_SHARD_VOCABULARY_MAX ? (uint32_t)info->vocabulary : 0);
}

uint64_t
pawl_shard_vocabulary(const struct pawl_shard_info *info, uint64_t vocabulary)
{
    return info->vocabulary != 0 ? info->vocabulary : vocabulary;
}

uint32_t
pawl_shard_id(const void *ids, unsigned width, uint64_t at)
{
    return width == 2 ? ((const uint16_t *)ids)[at] : ((const uint32_t *)ids)[at];
}

uint64_t
pawl_shard_find_beyond_scalar(const void *ids, unsigned width, uint64_t n, uint64_t limit)
{
    for (uint64_t i = 0; i < n; i++) {
        if (pawl_shard_id(ids, width, i) >= limit)
            return i;
    }
    return n;
}

/*
 * The scan goes block by block: within a block the comparisons are only ORed
 * together, and a block with a hit is searched again id by id. Lanes are
 * compared as signed numbers, both sides moved by half the range, because that
 * is the comparison that SSE2 has; a block is 4 KiB, so the second look costs nothing.
 */
typedef int16_t lanes_16 __attribute__((vector_size(16)));
typedef int32_t lanes_32 __attribute__((vector_size(16)));
#define SCAN_BLOCK_BYTES 4096

static bool
is_any_set(const void *lanes)
{
    uint64_t words[2];
    memcpy(words, lanes, sizeof words);
    return (words[0] | words[1]) != 0;
}

static bool
block_is_beyond_16(const unsigned char *block, uint16_t last)
{
    const int16_t half = INT16_MIN;
    int16_t limit = (int16_t)(last ^ 0x8000);
    lanes_16 hits = { 0 };
    for (size_t at = 0; at < SCAN_BLOCK_BYTES; at += sizeof hits) {
        lanes_16 lanes;
        memcpy(&lanes, block + at, sizeof lanes);
        hits |= (lanes ^ half) > limit;
    }
    return is_any_set(&hits);
}

static bool
block_is_beyond_32(const unsigned char *block, uint32_t last)
{
    const int32_t half = INT32_MIN;
    int32_t limit = (int32_t)(last ^ UINT32_C(0x80000000));
    lanes_32 hits = { 0 };
    for (size_t at = 0; at < SCAN_BLOCK_BYTES; at += sizeof hits) {
        lanes_32 lanes;
        memcpy(&lanes, block + at, sizeof lanes);
        hits |= (lanes ^ half) > limit;
    }
    return is_any_set(&hits);
}

uint64_t
pawl_shard_find_beyond(const void *ids, unsigned width, uint64_t n, uint64_t limit)
{
    if (limit > (width == 2 ? UINT16_MAX : UINT32_MAX))
        return n; /* no id of this width reaches it */
    if (limit == 0)
        return 0; /* even an empty array: position 0 is n */

    const unsigned char *bytes = ids;
    const uint64_t per_block = SCAN_BLOCK_BYTES / width;
    uint64_t at = 0;
    for (; n - at >= per_block; at += per_block) {
        const unsigned char *block = bytes + at * width;
        if (width == 2 ? block_is_beyond_16(block, (uint16_t)(limit - 1))
                       : block_is_beyond_32(block, (uint32_t)(limit - 1)))
            return at + pawl_shard_find_beyond_scalar(block, width, per_block, limit);
    }
    if (at == n)
        return n;
    return at + pawl_shard_find_beyond_scalar(bytes + at * width, width, n - at, limit);
}

enum pawl_status
pawl_shard_fail_id(struct pawl_error *err, const void *ids, unsigned width, uint64_t at, uint64_t first,
                   uint64_t vocabulary)
{
    uint64_t position = first + at;
    return pawl_fail_at(err, PAWL_CORRUPT, "id-range", PAWL_SHARD_HEADER_BYTES + position * width,
                        "id %" PRIu32 " at position %" PRIu64 " is outside the vocabulary of %" PRIu64,
                        pawl_shard_id(ids, width, at), position, vocabulary);
}

/* Eight at a time by lanes: loops of a length that is not known are left scalar at -O2. */
typedef uint16_t eight_16 __attribute__((vector_size(16)));
typedef uint32_t eight_32 __attribute__((vector_size(32)));

void
pawl_shard_widen(uint32_t *out, const void *ids, unsigned width, size_t n)
{
    if (n == 0)
        return;
    if (width == 4) {
        memcpy(out, ids, n * 4);
        return;
    }
    const uint16_t *in = ids;
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        eight_16 narrow;
        memcpy(&narrow, in + i, sizeof narrow);
        eight_32 wide = __builtin_convertvector(narrow, eight_32);
        memcpy(out + i, &wide, sizeof wide);
    }
    for (; i < n; i++)
        out[i] = in[i];
}
