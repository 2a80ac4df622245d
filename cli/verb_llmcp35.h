/* cli/verb_llmcp35.h: what pawl info tells of an LLMCP35 file. */
#ifndef CLI_VERB_LLMCP35_H
#define CLI_VERB_LLMCP35_H

#include "cli/output.h"

/* Members of the document's "details". */
void llmcp35_write_details(struct pawl_json *json, const struct pawl_llmcp35 *checkpoint);
void llmcp35_print_details(const struct output *out, const struct pawl_llmcp35 *checkpoint);

#endif
