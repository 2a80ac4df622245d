/*
 * LLMCP35 files with the checksum and the extents put right, as they would stop nearly every input at the door. What is taken must encode to
 * the same bytes, and survive the way through training and back.
 */
#include <stdlib.h>
#include <string.h>
#include "formats/llmcp35/lc_inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Positions beyond this have tables that a fuzzer should not pay for. */
#define POSITIONS_MAX 4096

static void
check_encoding(const struct pawl_llmcp35 *checkpoint, const unsigned char *bytes, size_t n)
{
    struct pawl_llmcp35_facts facts;
    pawl_llmcp35_facts(checkpoint, &facts);
    unsigned char *again = malloc(n);
    if (again == NULL)
        return;
    if (facts.header_bytes + facts.payload_bytes != n || pawl_llmcp35_encode(checkpoint, again, n, NULL) != PAWL_OK ||
        memcmp(again, bytes, n) != 0)
        abort();
    free(again);
}

static void
check_training(const struct pawl_llmcp35 *checkpoint, const unsigned char *bytes, size_t n)
{
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35_bundle *bundle = NULL;
    struct pawl_llmcp35 *made = NULL;
    struct pawl_llmcp35_facts facts;
    pawl_llmcp35_facts(checkpoint, &facts);
    if (facts.config.positions > POSITIONS_MAX)
        return;
    if (pawl_llmcp35_restore(checkpoint, &training, NULL, NULL) != PAWL_OK ||
        pawl_llmcp35_capture(training, &bundle, NULL) != PAWL_OK ||
        pawl_llmcp35_new(bundle, facts.tokenizer, facts.rng_state, &made, NULL, NULL) != PAWL_OK)
        abort();
    check_encoding(made, bytes, n);
    pawl_llmcp35_free(made);
    pawl_llmcp35_training_free(training);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_llmcp35 *checkpoint = NULL;
    struct pawl_llmcp35_fault *fault = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    unsigned char *bytes = malloc(size == 0 ? 1 : size);
    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    if (size >= LC_FIXED_BYTES) {
        uint64_t header = pawl_get_u64le(bytes + 14);
        if (header >= LC_FIXED_BYTES && header <= size)
            pawl_put_u64le(bytes + 22, size - header);
        pawl_put_u64le(bytes + LC_CHECKSUM_AT, pawl_lc_checksum_of(bytes, size));
    }
    if (pawl_llmcp35_decode(bytes, size, &checkpoint, &fault, &err) == PAWL_OK) {
        check_encoding(checkpoint, bytes, size);
        check_training(checkpoint, bytes, size);
    } else if (err.message[0] == '\0' || err.code[0] == '\0') {
        abort();
    }
    pawl_llmcp35_free(checkpoint);
    pawl_llmcp35_fault_free(fault);
    free(bytes);
    return 0;
}
