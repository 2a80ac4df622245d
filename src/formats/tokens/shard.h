/*
 * tokens/shard.h: the base form of a token shard, as bytes: a header of 256
 * little-endian 32-bit words, then the ids. Nothing here opens a file.
 * Format: docs/format/tokens.md.
 */
#ifndef PAWL_FORMATS_TOKENS_SHARD_H
#define PAWL_FORMATS_TOKENS_SHARD_H

#include "base/fail.h"
#include "pawl/tokens.h"

/* Ids are handed out in the mapping itself. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "token shards are mapped as they lie: little-endian machines only"
#endif

#define PAWL_SHARD_MAGIC 20240520
#define PAWL_SHARD_HEADER_BYTES 1024
/* Word 2 is a signed 32-bit number. */
#define PAWL_SHARD_IDS_MAX UINT64_C(2147483647)
/* Word 3 too: what is larger is written as "not stated". */
#define PAWL_SHARD_VOCABULARY_MAX UINT64_C(2147483647)

/*
 * Read a header and hold it against the size of its file.
 *
 * bytes, n    the beginning of the file: at least 1024 bytes of it, or all there are.
 * file_bytes  its size.
 * ret_info    set on PAWL_OK only.
 *
 * Refused in this order, by code: "too-short", "magic", "version", "count",
 * "truncated" or "trailing" (with the width that would have fitted),
 * "vocabulary". Words from 4 on are not looked at.
 */
enum pawl_status pawl_shard_parse(const void *bytes, size_t n, uint64_t file_bytes, struct pawl_shard_info *ret_info,
                                  struct pawl_error *err);

/* "vocabulary" when the shard names one (not 0) and the caller states another (not 0). */
enum pawl_status pawl_shard_check_vocabulary(const struct pawl_shard_info *info, uint64_t vocabulary,
                                             struct pawl_error *err);

/* The header of a file of info->ids ids. A vocabulary beyond the word is written as 0. */
void pawl_shard_print(const struct pawl_shard_info *info, unsigned char ret_bytes[PAWL_SHARD_HEADER_BYTES]);

/* The vocabulary that ids are held against: the shard's own, else the caller's, else 0: none. */
uint64_t pawl_shard_vocabulary(const struct pawl_shard_info *info, uint64_t vocabulary);

/*
 * The position of the first of n ids (of `width` 2 or 4 bytes, aligned) that is `limit` or more; n when there is none.
 * Reads at the speed of memory.
 */
uint64_t pawl_shard_find_beyond(const void *ids, unsigned width, uint64_t n, uint64_t limit);
/* The same, one id at a time: what the other is held against. */
uint64_t pawl_shard_find_beyond_scalar(const void *ids, unsigned width, uint64_t n, uint64_t limit);

/* "id-range": ids[at] of a shard whose first id here stands at position `first`. */
enum pawl_status pawl_shard_fail_id(struct pawl_error *err, const void *ids, unsigned width, uint64_t at,
                                    uint64_t first, uint64_t vocabulary);

/* One id of an array of ids. */
uint32_t pawl_shard_id(const void *ids, unsigned width, uint64_t at);

/* ids[0 ... n) as 32-bit numbers. The arrays must not overlap. */
void pawl_shard_widen(uint32_t *out, const void *ids, unsigned width, size_t n);

#endif
