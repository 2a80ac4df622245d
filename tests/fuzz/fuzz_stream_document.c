/* pawl.stream.json against a stream of two shards: what is taken must be a position of it, and print as one that is taken. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "stream/stream_document.h"
#include "stream/stream_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_stream_shard shards[2] = { { PAWL_STR("a.bin"), 40, 2 }, { PAWL_STR("b.bin"), 23, 4 } };
    unsigned char sha256[2][32];
    bool has_sha256[2] = { true, false };
    memset(sha256, 0xab, sizeof sha256);
    for (int other = 0; other < 2; other++) {
        struct pawl_stream stream = { .shards = shards,
                                      .sha256 = sha256,
                                      .has_sha256 = has_sha256,
                                      .n = 2,
                                      .seq_len = 4,
                                      .batch = 1,
                                      .has_seed = true,
                                      .at = { .is_counted = true } };
        stream.first.inc = stream.at.rng.inc = 1;
        struct pawl_error err = PAWL_ERROR_INIT;
        if (pawl_stream_restore_document(&stream, data, size, other == 1, &err) != PAWL_OK) {
            if (err.message[0] == '\0')
                abort();
            continue;
        }
        if (stream.at.shard >= 2 || stream.at.offset > shards[stream.at.shard].ids || (stream.at.rng.inc & 1) == 0)
            abort();
        if (other == 1)
            continue; /* a foreign position has no count that a document could tell */
        struct pawl_buffer out = PAWL_BUFFER_INIT;
        if (pawl_stream_write_document(&stream, &out, NULL) != PAWL_OK ||
            pawl_stream_check_document(&stream, out.data, out.len, NULL) != PAWL_OK)
            abort();
        pawl_buffer_release(&out);
    }
    return 0;
}
