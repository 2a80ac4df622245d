/*
 * The safetensors reader on any bytes. The first byte chooses: a whole file as it is, or a header's text, to which the length and
 * as many data bytes as it asks for (up to a limit) are made, so that the search is not stopped at the length. What is accepted
 * tiles, is found by name, and is planned again to a file that is accepted; strict takes nothing that compat refuses.
 */
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "formats/safetensors/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds)
        abort();
}

static void
check_plan(const struct pawl_st_header *h)
{
    struct pawl_st_item *items = calloc(h->n + 1, sizeof *items);
    struct pawl_st_plan plan;
    struct pawl_st_header again;
    require(items != NULL);
    for (size_t i = 0; i < h->n; i++)
        items[i] =
            (struct pawl_st_item){ h->tensors[i].name, h->tensors[i].dtype, h->tensors[i].rank, h->tensors[i].shape };
    require(pawl_st_plan(&plan, items, h->n, h->metadata, h->n_metadata, h->has_metadata, 0, NULL) == PAWL_OK);
    require(pawl_st_parse(&again, plan.prefix.data + 8, plan.prefix.len - 8, plan.file_bytes, NULL, NULL) == PAWL_OK);
    require(again.n == h->n && again.n_metadata == h->n_metadata && again.has_metadata == h->has_metadata);
    for (size_t i = 0; i < h->n; i++) {
        const struct pawl_tensor_info *t = pawl_st_find(&again, h->tensors[i].name);
        require(t != NULL && t->dtype == h->tensors[i].dtype && t->begin == plan.begins[i] &&
                t->end - t->begin == plan.bytes[i]);
    }
    pawl_st_release(&again);
    pawl_st_plan_release(&plan);
    free(items);
}

static void
check_header(const struct pawl_st_header *h)
{
    uint64_t at = 0;
    for (size_t i = 0; i < h->n; i++) {
        uint64_t elements;
        uint64_t bytes;
        const struct pawl_tensor_info *t = &h->tensors[i];
        require(t->begin == at && t->end >= at && t->file == 0);
        require(pawl_dtype_bytes(t->dtype, t->shape, t->rank, &elements, &bytes, NULL) == PAWL_OK &&
                bytes == t->end - t->begin);
        require(pawl_st_find(h, t->name) == t);
        at = t->end;
    }
    require(h->data_begin + at == h->file_bytes);
    for (size_t i = 0; i < h->n_metadata; i++)
        require(pawl_st_metadata(h, h->metadata[i].key) != NULL);
    check_plan(h);
}

static void
warn(void *context, const char *code, struct pawl_str tensor, uint64_t offset, const char *message)
{
    (void)context;
    (void)tensor;
    (void)offset;
    require(code[0] != '\0' && message[0] != '\0');
}

/* In one mode, from memory, or as text of a file of that size. */
static enum pawl_status
judge(const uint8_t *bytes, size_t n, uint64_t file_bytes, bool is_text, enum pawl_st_mode mode, struct pawl_error *err)
{
    struct pawl_st_options options = { .mode = mode, .warn = warn };
    struct pawl_st_header h;
    enum pawl_status st = is_text ? pawl_st_parse(&h, bytes, n, file_bytes, &options, err)
                                  : pawl_st_read_memory(&h, bytes, n, &options, err);
    if (st == PAWL_OK)
        check_header(&h);
    else
        require(err->code[0] != '\0' && err->message[0] != '\0' && h.text == NULL);
    pawl_st_release(&h);
    return st;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool is_text = (data[0] & 1) != 0;
    const uint8_t *bytes = data + 1;
    size_t n = size - 1;
    uint64_t file_bytes = n;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (is_text) {
        file_bytes = 8 + (uint64_t)n;
        /* a first try tells by its error how many bytes the data need */
        if (judge(bytes, n, file_bytes, true, PAWL_ST_COMPAT, &err) == PAWL_TRUNCATED &&
            strcmp(err.code, "truncated") == 0) {
            const char *needs = strstr(err.message, "needs ");
            require(needs != NULL);
            file_bytes = strtoull(needs + 6, NULL, 10);
        }
    }
    err = (struct pawl_error)PAWL_ERROR_INIT;
    enum pawl_status compat = judge(bytes, n, file_bytes, is_text, PAWL_ST_COMPAT, &err);
    err = (struct pawl_error)PAWL_ERROR_INIT;
    enum pawl_status strict = judge(bytes, n, file_bytes, is_text, PAWL_ST_STRICT, &err);
    err = (struct pawl_error)PAWL_ERROR_INIT;
    enum pawl_status lint = judge(bytes, n, file_bytes, is_text, PAWL_ST_LINT, &err);
    require(strict == lint);
    require(strict != PAWL_OK || compat == PAWL_OK);
    return 0;
}
