/* Base64: what is decoded is encoded to the same text, what is refused says where; and any bytes survive both ways. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "checkpoint/base64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds)
        abort();
}

/* Decoded into exactly the room that is asked for. */
static void
check_text(struct pawl_str text, const uint8_t *expected, size_t n)
{
    struct pawl_buffer again = PAWL_BUFFER_INIT;
    size_t most = pawl_base64_bytes_max(text.len), bytes = 0, bad = SIZE_MAX;
    unsigned char *decoded = malloc(most + (most == 0));
    require(decoded != NULL);
    if (pawl_base64_decode(text, decoded, &bytes, &bad)) {
        require(bytes <= most && bad == SIZE_MAX && pawl_base64_encode(&again, decoded, bytes));
        require(pawl_str_equal(pawl_buffer_str(&again), text));
        require(expected == NULL || (bytes == n && (n == 0 || memcmp(decoded, expected, n) == 0)));
    } else {
        require(expected == NULL && bad <= text.len);
    }
    pawl_buffer_release(&again);
    free(decoded);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t none;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    check_text(pawl_str_make((const char *)data, size), NULL, 0);
    require(pawl_base64_encode(&text, data, size));
    check_text(pawl_buffer_str(&text), size == 0 ? &none : data, size);
    pawl_buffer_release(&text);
    return 0;
}
