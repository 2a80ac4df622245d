/* safetensors/st_inside.h: what the files of the reader share. */
#ifndef PAWL_FORMATS_SAFETENSORS_ST_INSIDE_H
#define PAWL_FORMATS_SAFETENSORS_ST_INSIDE_H

#include "formats/json/json.h"
#include "formats/safetensors/safetensors.h"

/* Rules 2 and 3. */
enum pawl_status pawl_st_check_length(uint64_t header_bytes, uint64_t file_bytes, const struct pawl_st_options *options,
                                      struct pawl_error *err);
/* Room for the text and what stands behind it; NULL: memory. The length has been checked. */
unsigned char *pawl_st_text_new(uint64_t header_bytes);
/* Rules 4 to 8. Takes the text over, also on failure. */
enum pawl_status pawl_st_parse_text(struct pawl_st_header *header, unsigned char *text, uint64_t header_bytes,
                                    uint64_t file_bytes, const struct pawl_st_options *options, struct pawl_error *err);
/* Repeated names, then rules 7 and 8: tensors are in the order of the header, and are sorted here. Fills the table. */
enum pawl_status pawl_st_check(struct pawl_st_header *header, const struct pawl_st_options *options,
                               struct pawl_error *err);

/* Warnings of the lint mode: of the text as it is, and of the tensors in the order of the header. */
void pawl_st_lint_text(const struct pawl_st_header *header, const struct pawl_st_options *options);
void pawl_st_lint_tensors(const struct pawl_st_header *header, const struct pawl_st_options *options);
void pawl_st_warn(const struct pawl_st_options *options, const char *code, struct pawl_str tensor, uint64_t offset,
                  const char *format, ...) PAWL_PRINTF(5, 6);

#endif
