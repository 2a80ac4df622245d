/* llmcp35/llmcp35.h: a checkpoint as named tensors and metadata, for what is above: src/model, and the conversion to safetensors. */
#ifndef PAWL_FORMATS_LLMCP35_LLMCP35_H
#define PAWL_FORMATS_LLMCP35_LLMCP35_H

#include "base/buffer.h"
#include "os/file.h"
#include "pawl/dtype.h"
#include "pawl/llmcp35.h"

/* The two keys of the metadata: format = "llmcp35", and the text of pawl_lc_state_text. */
#define PAWL_LLMCP35_FORMAT_KEY "format"
#define PAWL_LLMCP35_FORMAT "llmcp35"
#define PAWL_LLMCP35_STATE_KEY "llmcp35"

/* Decode an open file. */
enum pawl_status pawl_lc_read_file(const struct pawl_file *file, struct pawl_llmcp35 **ret_checkpoint,
                                   struct pawl_error *err);
/* "adamw.first.NAME": the name of a record as a tensor, into a cleared buffer. False: memory. */
bool pawl_lc_tensor_name(struct pawl_buffer *text, const struct pawl_llmcp35_record *record);
enum pawl_dtype pawl_lc_tensor_dtype(enum pawl_llmcp35_dtype dtype);
/* All that is not a tensor, as JSON, appended. False: memory. */
bool pawl_lc_state_text(const struct pawl_llmcp35 *checkpoint, struct pawl_buffer *text);

#endif
