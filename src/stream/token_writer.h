/* stream/token_writer.h: the writer of a data set, seen by pack and by tests of faults. */
#ifndef PAWL_STREAM_TOKEN_WRITER_H
#define PAWL_STREAM_TOKEN_WRITER_H

#include "os/os.h"
#include "pawl/tokens.h"

/* pawl_token_writer_open over another table. */
enum pawl_status pawl_token_writer_open_on(const struct pawl_os *os, struct pawl_str directory,
                                           const struct pawl_token_writer_options *options,
                                           struct pawl_token_writer **ret_writer, struct pawl_error *err);

/* Begin a document of exactly `ids` ids, its separator not counted: its place is known at once, and nothing of it is held. */
enum pawl_status pawl_token_writer_document_of(struct pawl_token_writer *writer, uint64_t ids, struct pawl_error *err);

/* Ids that the vocabulary and the width take are below this. */
uint64_t pawl_token_writer_id_limit(const struct pawl_token_writer *writer);

#endif
