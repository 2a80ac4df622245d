/* What the tests of token shards and streams share: files made by hand, in the working folder. */
#ifndef PAWL_TESTS_TOKEN_SUPPORT_H
#define PAWL_TESTS_TOKEN_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cursor.h"
#include "base/str.h"
#include "pawl/digest.h"
#include "pawl/stream.h"
#include "pawl/tokens.h"

#define GOLDEN PAWL_GOLDEN "/tokens/"

/* A function of a test file that may stand unused there. */
#define SUPPORT static __attribute__((unused))

SUPPORT void
put_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

SUPPORT void
put_text(const char *path, const char *text)
{
    put_file(path, text, strlen(text));
}

/* The bytes of a file with a NUL behind them; the caller frees. */
SUPPORT char *
get_file(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("no file '%s'", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long n = ftell(file);
    assert_true(n >= 0);
    rewind(file);
    char *bytes = malloc((size_t)n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)n, file), n);
    bytes[n] = '\0';
    (void)fclose(file);
    if (ret_n != NULL)
        *ret_n = (size_t)n;
    return bytes;
}

SUPPORT bool
is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* A folder of the test's own, empty. */
SUPPORT void
fresh_folder(const char *name)
{
    char command[256];
    (void)snprintf(command, sizeof command, "rm -rf -- '%s'", name);
    assert_int_equal(system(command), 0);
    assert_int_equal(mkdir(name, 0777), 0);
}

/* A shard made word by word, without the code under test. */
SUPPORT void
put_shard(const char *path, unsigned width, uint32_t vocabulary, const uint32_t *ids, size_t n)
{
    size_t bytes = 1024 + n * width;
    unsigned char *file = calloc(1, bytes);
    assert_non_null(file);
    pawl_put_u32le(file, 20240520);
    pawl_put_u32le(file + 4, width == 2 ? 1 : 2);
    pawl_put_u32le(file + 8, (uint32_t)n);
    pawl_put_u32le(file + 12, vocabulary);
    for (size_t i = 0; i < n; i++) {
        for (unsigned b = 0; b < width; b++)
            file[1024 + i * width + b] = (unsigned char)(ids[i] >> (8 * b));
    }
    put_file(path, file, bytes);
    free(file);
}

/* n ids counting up from `first`. */
SUPPORT void
put_counting_shard(const char *path, unsigned width, uint32_t first, size_t n)
{
    uint32_t *ids = calloc(n + 1, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = first + (uint32_t)i;
    put_shard(path, width, 0, ids, n);
    free(ids);
}

/* The header of a huge shard, and nothing behind it on the disk. False: this filesystem can't. */
SUPPORT bool
put_sparse_shard(const char *path, unsigned width, uint64_t n)
{
    put_shard(path, width, 0, NULL, 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    unsigned char word[4];
    pawl_put_u32le(word, (uint32_t)n);
    assert_int_equal(fseek(file, 8, SEEK_SET), 0);
    assert_int_equal(fwrite(word, 1, 4, file), 4);
    assert_int_equal(fclose(file), 0);
    if (truncate(path, (off_t)(1024 + n * width)) != 0)
        return false;
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_blocks * 512 < ((uint64_t)1 << 20);
}

/* Cut a line at its tabs. */
SUPPORT size_t
cut_line(char *line, char **fields, size_t max)
{
    size_t n = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; n < max; at++) {
        fields[n++] = at;
        at = strchr(at, '\t');
        if (at == NULL)
            break;
        *at = '\0';
    }
    return n;
}

/* Numbers between commas. */
SUPPORT size_t
cut_numbers(const char *text, uint64_t *numbers, size_t max)
{
    size_t n = 0;
    while (*text != '\0' && n < max) {
        char *end;
        numbers[n++] = strtoull(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* The ids of a corpus of the golden files; the caller frees. */
SUPPORT uint32_t *
golden_corpus(const char *name, size_t *ret_n)
{
    char *text = get_file(GOLDEN "corpora.tsv", NULL);
    static uint64_t numbers[4096];
    uint32_t *ids = NULL;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *fields[3] = { NULL };
        assert_int_equal(cut_line(line, fields, 3), 3);
        if (strcmp(fields[0], name) != 0)
            continue;
        *ret_n = cut_numbers(fields[2], numbers, 4096);
        ids = calloc(*ret_n, sizeof *ids);
        assert_non_null(ids);
        for (size_t i = 0; i < *ret_n; i++)
            ids[i] = (uint32_t)numbers[i];
    }
    free(text);
    assert_non_null(ids);
    return ids;
}

/* A small generator for choices of the tests; its seed is printed where it begins. */
SUPPORT uint64_t
pick(uint64_t *state, uint64_t below)
{
    return pawl_splitmix64_next(state) % below;
}

#endif
