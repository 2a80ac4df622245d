/* unit/st_tools.h: building and reading small safetensors files in tests. */
#ifndef PAWL_TESTS_ST_TOOLS_H
#define PAWL_TESTS_ST_TOOLS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "base/str.h"
#include "formats/safetensors/safetensors.h"

#define ST_UNUSED __attribute__((unused))

/* "8 + N, text, zeros" in memory of exactly that size, so that a sanitizer sees every step beyond it. */
static ST_UNUSED unsigned char *
st_file(struct pawl_str text, size_t data_bytes, size_t *ret_bytes)
{
    size_t bytes = 8 + text.len + data_bytes;
    unsigned char *file = calloc(1, bytes);
    if (file == NULL)
        abort();
    pawl_put_u64le(file, text.len);
    if (text.len != 0)
        memcpy(file + 8, text.data, text.len);
    *ret_bytes = bytes;
    return file;
}

static ST_UNUSED enum pawl_status
st_read_text(struct pawl_st_header *h, struct pawl_str text, size_t data_bytes, enum pawl_st_mode mode,
             struct pawl_error *err)
{
    size_t bytes;
    unsigned char *file = st_file(text, data_bytes, &bytes);
    struct pawl_st_options options = { .mode = mode };
    enum pawl_status st = pawl_st_read_memory(h, file, bytes, &options, err);
    free(file);
    return st;
}

/* A file of the test data, with a NUL behind it. */
static ST_UNUSED char *
st_slurp(const char *path, size_t *ret_bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "can't open %s\n", path);
        abort();
    }
    size_t capacity = 1 << 16;
    size_t n = 0;
    char *bytes = malloc(capacity + 1);
    while (bytes != NULL) {
        n += fread(bytes + n, 1, capacity - n, file);
        if (n < capacity)
            break;
        capacity *= 2;
        bytes = realloc(bytes, capacity + 1);
    }
    if (bytes == NULL)
        abort();
    fclose(file);
    bytes[n] = '\0';
    *ret_bytes = n;
    return bytes;
}

static ST_UNUSED int
st_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Hex to bytes, in place of a new buffer with a NUL behind it; "-" is empty. */
static ST_UNUSED struct pawl_str
st_unhex(const char *hex)
{
    size_t n = strlen(hex) / 2;
    char *bytes = malloc(n + 1);
    if (bytes == NULL)
        abort();
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(st_hex_digit(hex[2 * i]) << 4 | st_hex_digit(hex[2 * i + 1]));
    bytes[n] = '\0';
    return pawl_str_make(bytes, n);
}

/* The next field of a line of tab-separated ones; NULL behind the last. */
static ST_UNUSED char *
st_field(char **at)
{
    char *field = *at;
    if (field == NULL)
        return NULL;
    char *end = strchr(field, '\t');
    if (end != NULL)
        *end++ = '\0';
    *at = end;
    return field;
}

#endif
