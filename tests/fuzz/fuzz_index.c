/*
 * The index of a sharded model: what is taken is well formed (files each once and in order, every entry of one of
 * them), and printed and read again it says the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "model/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_again(struct pawl_arena *arena, const struct pawl_index *index)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_index again;
    struct pawl_pair *map = calloc(index->n + 1, sizeof *map);
    if (map == NULL)
        abort();
    for (size_t i = 0; i < index->n; i++)
        map[i] = (struct pawl_pair){ index->entries[i].tensor, index->files[index->entries[i].file] };
    if (!pawl_index_print(&text, index->total_size, map, index->n))
        abort();
    if (pawl_index_parse(arena, &again, text.data, text.len, NULL) != PAWL_OK || again.n != index->n ||
        again.n_files != index->n_files || !again.has_total || again.total_size != index->total_size)
        abort();
    for (size_t i = 0; i < again.n; i++) {
        if (!pawl_str_equal(again.entries[i].tensor, map[i].key) ||
            !pawl_str_equal(again.files[again.entries[i].file], map[i].value))
            abort();
    }
    free(map);
    pawl_buffer_release(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_index index;
    struct pawl_str base;
    uint32_t k;
    uint32_t n;
    enum pawl_status st = pawl_index_parse(&arena, &index, data, size, &err);
    if (st == PAWL_OK) {
        for (size_t i = 0; i < index.n_files; i++) {
            if (i > 0 && pawl_str_compare(index.files[i - 1], index.files[i]) >= 0)
                abort();
            if (pawl_shard_number(index.files[i], &base, &k, &n) && (k == 0 || k > n || base.len >= index.files[i].len))
                abort();
        }
        for (size_t i = 0; i < index.n; i++) {
            if (index.entries[i].file >= index.n_files)
                abort();
        }
        if (index.n > 0 && index.n_files == 0)
            abort();
        check_again(&arena, &index);
    } else if (st != PAWL_CORRUPT || err.message[0] == '\0' || err.code[0] == '\0') {
        abort();
    }
    pawl_arena_release(&arena);
    return 0;
}
