/* From a file or from memory to the header's text: what comes before parsing, and a look at bytes that are too many. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/cursor.h"
#include "formats/safetensors/st_inside.h"

/* What recognising a file needs to see. */
#define LOOK_BYTES ((size_t)512)
/* Trailing bytes are looked at in pieces of this size. */
#define TAIL_BYTES ((size_t)1 << 16)

/* Rule 1. */
static enum pawl_status
check_begin(const unsigned char *bytes, size_t n, uint64_t file_bytes, uint64_t *ret_length, struct pawl_error *err)
{
    enum pawl_status st = pawl_st_recognise(bytes, n, file_bytes, NULL, err);
    if (st != PAWL_OK)
        return st;
    if (file_bytes < 8) {
        (void)pawl_fail_at(err, PAWL_TRUNCATED, "too-short", file_bytes,
                           "too short: a safetensors file has at least 8 bytes, this one has %" PRIu64, file_bytes);
        pawl_error_hint(err, "the file is cut short: fetch or copy it again");
        return PAWL_TRUNCATED;
    }
    *ret_length = pawl_get_u64le(bytes);
    return PAWL_OK;
}

static bool
is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

/* A verdict of trailing bytes, with what they are. */
static void
describe_tail(bool is_all_zero, struct pawl_error *err)
{
    (void)pawl_context(err, err->status, "%s", is_all_zero ? "all of them zeros" : "not all of them zeros");
    pawl_error_hint(err, is_all_zero ? "a preallocated file that was not cut to its size: cut it where the data end"
                                     : "something was appended, or the header is not this file's");
}

enum pawl_status
pawl_st_read_memory(struct pawl_st_header *header, const void *bytes, uint64_t n, const struct pawl_st_options *options,
                    struct pawl_error *err)
{
    const unsigned char *at = bytes;
    struct pawl_error own = PAWL_ERROR_INIT;
    uint64_t length = 0;

    *header = (struct pawl_st_header)PAWL_ST_HEADER_INIT;
    enum pawl_status st = check_begin(at, n < LOOK_BYTES ? (size_t)n : LOOK_BYTES, n, &length, &own);
    if (st == PAWL_OK)
        st = pawl_st_parse(header, n < 8 ? at : at + 8, length, n, options, &own);
    if (st != PAWL_OK && strcmp(own.code, "trailing") == 0)
        describe_tail(is_zero(at + own.offset, (size_t)(n - own.offset)), &own);
    if (st != PAWL_OK && err != NULL)
        *err = own;
    return st;
}

/* Whether the file is zeros from `offset` on; a file that can't be read there is not. */
static bool
is_zero_from(const struct pawl_file *file, uint64_t offset)
{
    unsigned char *bytes = malloc(TAIL_BYTES);
    bool answer = bytes != NULL;
    while (answer && offset < file->bytes) {
        uint64_t left = file->bytes - offset;
        size_t n = left < TAIL_BYTES ? (size_t)left : TAIL_BYTES;
        answer = pawl_file_read(file, offset, bytes, n, NULL) == PAWL_OK && is_zero(bytes, n);
        offset += n;
    }
    free(bytes);
    return answer;
}

static enum pawl_status
read_file(struct pawl_st_header *header, const struct pawl_file *file, const struct pawl_st_options *options,
          struct pawl_error *err)
{
    unsigned char look[LOOK_BYTES];
    size_t n = file->bytes < LOOK_BYTES ? (size_t)file->bytes : LOOK_BYTES;
    uint64_t length = 0;

    enum pawl_status st = pawl_file_read(file, 0, look, n, err);
    if (st == PAWL_OK)
        st = check_begin(look, n, file->bytes, &length, err);
    if (st == PAWL_OK)
        st = pawl_st_check_length(length, file->bytes, options, err);
    if (st != PAWL_OK)
        return st;
    unsigned char *text = pawl_st_text_new(length);
    if (text == NULL)
        return pawl_fail_memory(err, (size_t)length);
    size_t have = n - 8 < length ? n - 8 : (size_t)length;
    memcpy(text, look + 8, have);
    st = pawl_file_read(file, 8 + have, text + have, (size_t)length - have, err);
    if (st != PAWL_OK) {
        free(text);
        return st;
    }
    return pawl_st_parse_text(header, text, length, file->bytes, options, err);
}

enum pawl_status
pawl_st_read(struct pawl_st_header *header, const struct pawl_file *file, const struct pawl_st_options *options,
             struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    *header = (struct pawl_st_header)PAWL_ST_HEADER_INIT;
    enum pawl_status st = read_file(header, file, options, &own);
    if (st == PAWL_OK)
        return PAWL_OK;
    if (strcmp(own.code, "trailing") == 0)
        describe_tail(is_zero_from(file, own.offset), &own);
    pawl_error_path(&own, pawl_str_z(file->path));
    if (err != NULL)
        *err = own;
    return st;
}

const struct pawl_tensor_info *
pawl_st_find(const struct pawl_st_header *header, struct pawl_str name)
{
    size_t i = pawl_name_table_find(&header->names, name);
    return i == PAWL_NAME_TABLE_NONE ? NULL : &header->tensors[i];
}

const struct pawl_str *
pawl_st_metadata(const struct pawl_st_header *header, struct pawl_str key)
{
    for (size_t i = 0; i < header->n_metadata; i++) {
        if (pawl_str_equal(header->metadata[i].key, key))
            return &header->metadata[i].value;
    }
    return NULL;
}
