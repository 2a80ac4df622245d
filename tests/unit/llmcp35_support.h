/* unit/llmcp35_support.h: golden LLMCP35 files, and editing them. */
#ifndef UNIT_LLMCP35_SUPPORT_H
#define UNIT_LLMCP35_SUPPORT_H

#include <stdlib.h>
#include "formats/llmcp35/lc_inside.h"
#include "os/file.h"

#define LC_GOLDEN PAWL_GOLDEN "/llmcp35/"
#define LC_FIXTURE LC_GOLDEN "v1-selected-step8.bin"

/* A whole file; the test stops when it can't be had. */
static inline unsigned char *
lc_bytes_of(const char *path, size_t *ret_n)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_file_open_path(&file, pawl_os_posix(), path, &err) != PAWL_OK ||
        pawl_file_read_all(&file, (size_t)64 << 20, &bytes, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    pawl_file_release(&file);
    unsigned char *exact = malloc(bytes.len + (bytes.len == 0)); /* its end is where reading past it is seen */
    assert_non_null(exact);
    if (bytes.len > 0)
        memcpy(exact, bytes.data, bytes.len);
    *ret_n = bytes.len;
    pawl_buffer_release(&bytes);
    return exact;
}

/* Put the checksum right after an edit. */
static inline void
lc_fix_checksum(unsigned char *bytes, size_t n)
{
    if (n >= LC_FIXED_BYTES)
        pawl_put_u64le(bytes + LC_CHECKSUM_AT, pawl_lc_checksum_of(bytes, n));
}

static inline struct pawl_llmcp35 *
lc_load_golden(const char *path)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35 *checkpoint = NULL;
    if (pawl_llmcp35_load_z(path, &checkpoint, NULL, &err) != PAWL_OK)
        fail_msg("%s: %s", path, err.message);
    return checkpoint;
}

/* The file of a checkpoint, to free(). */
static inline unsigned char *
lc_encoded(const struct pawl_llmcp35 *checkpoint, size_t *ret_n)
{
    struct pawl_llmcp35_facts facts;
    pawl_llmcp35_facts(checkpoint, &facts);
    size_t n = (size_t)(facts.header_bytes + facts.payload_bytes);
    unsigned char *bytes = malloc(n);
    assert_non_null(bytes);
    assert_int_equal(pawl_llmcp35_encode(checkpoint, bytes, n, NULL), PAWL_OK);
    *ret_n = n;
    return bytes;
}

static inline const struct pawl_llmcp35_field *
lc_field(const struct pawl_llmcp35_fault *fault, const char *name)
{
    size_t n;
    const struct pawl_llmcp35_field *fields = pawl_llmcp35_fault_fields(fault, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    }
    return NULL;
}

#endif
