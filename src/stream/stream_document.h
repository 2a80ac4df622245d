/*
 * stream/stream_document.h: pawl.stream.json, which a checkpoint keeps beside the
 * cursor of trainer_state.json: which data set a stream reads, and how far it is.
 * Format: docs/format/token-stream.md. This build writes and takes the case of one source,
 * order base-1, one segment; any other is PAWL_UNSUPPORTED, and says what it met.
 */
#ifndef PAWL_STREAM_STREAM_DOCUMENT_H
#define PAWL_STREAM_STREAM_DOCUMENT_H

#include "base/buffer.h"
#include "pawl/stream.h"

/* What it takes to keep the fingerprints of 100,000 shards. */
#define PAWL_STREAM_DOCUMENT_BYTES_MAX ((size_t)64 << 20)

/*
 * Append the document of a stream as it stands. The same position gives the same bytes.
 *
 * A stream that was moved by a bare cursor of another generator than its own
 * can't know how many windows lie before: it is written as one of a
 * generator that was handed over (seed null), counting from that cursor.
 */
enum pawl_status pawl_stream_write_document(const struct pawl_stream *stream, struct pawl_buffer *out,
                                            struct pawl_error *err);

/*
 * Whether a document speaks of the data that a stream reads: the same number of shards, and shard by shard the name, the
 * count of ids, the width and, where both are known, the sha256; and windows of the same length.
 * PAWL_MISMATCH names the first difference; PAWL_CORRUPT, code "content", with an offset: it is no such document.
 */
enum pawl_status pawl_stream_check_document(const struct pawl_stream *stream, const void *text, size_t bytes,
                                            struct pawl_error *err);

/*
 * Check, then move the stream there, its seed and counts included. With `is_other_data` a difference of the data is let
 * pass, and only shard, offset and generator are taken: they must lie inside the shards that the stream has (PAWL_ARGUMENT).
 * After a failure the stream is as before.
 */
enum pawl_status pawl_stream_restore_document(struct pawl_stream *stream, const void *text, size_t bytes,
                                              bool is_other_data, struct pawl_error *err);

#endif
