/* Headers of token shards with their ids, and _MANIFEST.json: what is taken must hold together. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/buffer.h"
#include "formats/tokens/manifest.h"
#include "formats/tokens/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
    if (!holds)
        abort();
}

static void
try_shard(const uint8_t *data, size_t size)
{
    struct pawl_shard_info info, again;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n = size < PAWL_SHARD_HEADER_BYTES ? size : PAWL_SHARD_HEADER_BYTES;
    if (pawl_shard_parse(data, n, size, &info, &err) != PAWL_OK) {
        check(err.message[0] != '\0' && err.code[0] != '\0');
        return;
    }
    check(size == PAWL_SHARD_HEADER_BYTES + info.ids * info.width);

    /* What is read can be written, and is then read the same. */
    unsigned char header[PAWL_SHARD_HEADER_BYTES];
    pawl_shard_print(&info, header);
    check(memcmp(header, data, 16) == 0);
    check(pawl_shard_parse(header, sizeof header, size, &again, NULL) == PAWL_OK);

    /* Aligned, as a mapping is; of exactly its size, so that a read past the end shows. */
    size_t bytes = size - PAWL_SHARD_HEADER_BYTES;
    void *ids = malloc(bytes == 0 ? 1 : bytes);
    uint32_t *wide = malloc(info.ids == 0 ? 1 : info.ids * sizeof *wide);
    check(ids != NULL && wide != NULL);
    if (bytes != 0)
        memcpy(ids, data + PAWL_SHARD_HEADER_BYTES, bytes);
    uint64_t limit = info.vocabulary != 0 ? info.vocabulary : 256;
    uint64_t bad = pawl_shard_find_beyond(ids, info.width, info.ids, limit);
    check(bad == pawl_shard_find_beyond_scalar(ids, info.width, info.ids, limit));
    pawl_shard_widen(wide, ids, info.width, info.ids);
    for (uint64_t i = 0; i < info.ids; i++) {
        check(wide[i] == pawl_shard_id(ids, info.width, i));
        check(i >= bad || wide[i] < limit);
    }
    free(ids);
    free(wide);
}

static void
try_manifest(const uint8_t *data, size_t size)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_token_manifest manifest, again;
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_token_manifest_parse(&arena, data, size, &manifest, &err);
    check(st == PAWL_OK || (err.message[0] != '\0' && err.code[0] != '\0'));
    if (st == PAWL_OK) {
        struct pawl_buffer first = PAWL_BUFFER_INIT, second = PAWL_BUFFER_INIT;
        pawl_token_manifest_print(&manifest, &first);
        check(pawl_token_manifest_parse(&arena, first.data, first.len, &again, NULL) == PAWL_OK);
        pawl_token_manifest_print(&again, &second);
        check(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        for (size_t i = 0; i < manifest.n_files; i++)
            check(memchr(manifest.files[i].name.data, '/', manifest.files[i].name.len) == NULL);
        pawl_buffer_release(&first);
        pawl_buffer_release(&second);
    }
    pawl_arena_release(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_shard(data, size);
    try_manifest(data, size);
    return 0;
}
