/* An LLMCP35 file as a set of tensors: every record by the name that docs/format/llmcp35.md gives it as a tensor. */
#include <stdlib.h>
#include "formats/llmcp35/llmcp35.h"
#include "model/set.h"

static enum pawl_status
list_tensors(struct pawl_st_header *header, const struct pawl_llmcp35 *checkpoint, uint64_t data_begin,
             struct pawl_error *err)
{
    size_t n;
    struct pawl_buffer name = PAWL_BUFFER_INIT;
    const struct pawl_llmcp35_record *records = pawl_llmcp35_records(checkpoint, &n);
    header->tensors = calloc(n, sizeof *header->tensors);
    bool is_whole = header->tensors != NULL;
    for (size_t i = 0; is_whole && i < n; i++) {
        struct pawl_tensor_info *tensor = &header->tensors[i];
        uint64_t *shape = pawl_arena_take_array(&header->arena, records[i].rank, sizeof *shape);
        is_whole = shape != NULL && pawl_lc_tensor_name(&name, &records[i]) &&
                   pawl_arena_copy_str(&header->arena, pawl_buffer_str(&name), &tensor->name);
        if (!is_whole)
            break;
        for (size_t k = 0; k < records[i].rank; k++)
            shape[k] = records[i].shape[k];
        tensor->shape = shape;
        tensor->rank = (uint32_t)records[i].rank;
        tensor->dtype = pawl_lc_tensor_dtype(records[i].dtype);
        tensor->begin = records[i].offset - data_begin;
        tensor->end = tensor->begin + records[i].bytes;
    }
    pawl_buffer_release(&name);
    header->n = is_whole ? n : 0;
    if (!is_whole)
        return pawl_fail_memory(err, n * sizeof *header->tensors);
    /* No name stands twice in a file that was decoded. */
    return pawl_name_table_build(&header->names, &header->tensors[0].name, sizeof *header->tensors, n, NULL, NULL, err);
}

/* The metadata that the file would have as safetensors. */
static enum pawl_status
list_metadata(struct pawl_st_header *header, const struct pawl_llmcp35 *checkpoint, struct pawl_error *err)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    bool is_whole = pawl_lc_state_text(checkpoint, &text);
    header->metadata = calloc(2, sizeof *header->metadata);
    is_whole = is_whole && header->metadata != NULL &&
               pawl_arena_copy_str(&header->arena, pawl_buffer_str(&text), &header->metadata[1].value);
    size_t bytes = text.len;
    pawl_buffer_release(&text);
    if (!is_whole)
        return pawl_fail_memory(err, bytes);
    header->metadata[0] = (struct pawl_pair){ PAWL_STR(PAWL_LLMCP35_FORMAT_KEY), PAWL_STR(PAWL_LLMCP35_FORMAT) };
    header->metadata[1].key = PAWL_STR(PAWL_LLMCP35_STATE_KEY);
    header->n_metadata = 2;
    header->has_metadata = true;
    return PAWL_OK;
}

enum pawl_status
pawl_set_adopt_llmcp35(struct pawl_set *set, const struct pawl_os *os, struct pawl_file *file, const char *name,
                       struct pawl_error *err)
{
    struct pawl_set made = PAWL_SET_INIT;
    struct pawl_llmcp35 *checkpoint = NULL;
    struct pawl_llmcp35_facts facts;

    *set = made;
    enum pawl_status st = pawl_lc_read_file(file, &checkpoint, err);
    if (st != PAWL_OK)
        return st;
    pawl_llmcp35_facts(checkpoint, &facts);
    made.os = os;
    made.files = calloc(1, sizeof *made.files);
    if (made.files == NULL) {
        pawl_llmcp35_free(checkpoint);
        return pawl_fail_memory(err, sizeof *made.files);
    }
    made.n_files = 1;
    struct pawl_st_header *header = &made.files[0].header;
    *header = (struct pawl_st_header)PAWL_ST_HEADER_INIT;
    header->header_bytes = facts.header_bytes - 8; /* data begin behind 8 bytes and these */
    header->data_begin = facts.header_bytes;
    header->file_bytes = facts.header_bytes + facts.payload_bytes;
    if (!pawl_arena_copy_str(&made.arena, pawl_str_z(name), &made.files[0].name))
        st = pawl_fail_memory(err, strlen(name));
    if (st == PAWL_OK)
        st = list_tensors(header, checkpoint, facts.header_bytes, err);
    if (st == PAWL_OK)
        st = list_metadata(header, checkpoint, err);
    pawl_llmcp35_free(checkpoint);
    if (st != PAWL_OK) {
        pawl_set_release(&made);
        return st;
    }
    made.files[0].file = *file;
    *file = (struct pawl_file)PAWL_FILE_INIT;
    made.tensors = header->tensors;
    made.n = header->n;
    made.data_bytes = facts.payload_bytes;
    *set = made;
    return PAWL_OK;
}
