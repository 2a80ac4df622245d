/* What the parser takes is laid out again to the same bytes: there is one document for what it says, and no byte that says nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/str.h"
#include "checkpoint/block_sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Hardly any bytes have their own sum at the end and their own size in front: inputs stand for the document that has, when they begin with the magic and
 * have room for them.
 */
static uint8_t *
finished(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (copy == NULL)
        return NULL;
    if (size != 0)
        memcpy(copy, data, size);
    if (size >= 48 && memcmp(data, "PAWLSUMS", 8) == 0) {
        uint64_t sum;
        for (unsigned i = 0; i < 8; i++)
            copy[24 + i] = (uint8_t)((uint64_t)size >> 8 * i);
        sum = pawl_xxh64(copy, size - 8, 0);
        for (unsigned i = 0; i < 8; i++)
            copy[size - 8 + i] = (uint8_t)(sum >> 8 * i);
    }
    return copy;
}

static void
check(const uint8_t *data, size_t size)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_sums sums;
    enum pawl_status st = pawl_sums_parse(&arena, &sums, data, size, &err);
    if (st == PAWL_OK) {
        struct pawl_sums_file *files = calloc(sums.n + 1, sizeof *files);
        if (files == NULL)
            abort();
        for (size_t i = 0; i < sums.n; i++) {
            files[i] = sums.files[i];
            if (pawl_sums_find(&sums, files[i].name) != &sums.files[i])
                abort();
        }
        if (pawl_sums_lay_out(files, sums.n, &out, &err) != PAWL_OK)
            abort();
        for (size_t i = 0; i < sums.n; i++) {
            unsigned char *to = (unsigned char *)out.data + (files[i].sums - (const unsigned char *)out.data);
            memcpy(to, sums.files[i].sums, pawl_sums_blocks(files[i].bytes) * 8);
        }
        pawl_sums_seal(&out);
        if (out.len != size || memcmp(out.data, data, size) != 0)
            abort();
        free(files);
    } else if ((st != PAWL_CORRUPT && st != PAWL_UNSUPPORTED) || err.message[0] == '\0') {
        abort(); /* bytes can't be anything else than wrong, or of a version to come, and then it is said how */
    }
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *whole = finished(data, size);
    if (whole == NULL)
        return 0;
    check(data, size);
    check(whole, size);
    free(whole);
    return 0;
}
