/* What the parser takes, the printer prints, and that text is its own print: reader and writer agree on every document. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "checkpoint/documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_extra_document document;
    struct pawl_buffer first = PAWL_BUFFER_INIT;
    struct pawl_buffer second = PAWL_BUFFER_INIT;

    enum pawl_status st = pawl_extra_state_parse(&arena, &document, data, size, &err);
    if (st == PAWL_OK) {
        struct pawl_extra_document again;
        if (!pawl_extra_state_print(&document, &first))
            abort();
        if (pawl_extra_state_parse(&arena, &again, first.data, first.len, &err) != PAWL_OK ||
            !pawl_extra_state_print(&again, &second))
            abort();
        if (!pawl_str_equal(pawl_buffer_str(&first), pawl_buffer_str(&second)))
            abort();
    } else if (st != PAWL_CORRUPT || err.message[0] == '\0') {
        abort(); /* bytes can't be anything else than wrong, and then it is said how */
    }
    pawl_buffer_release(&first);
    pawl_buffer_release(&second);
    pawl_arena_release(&arena);
    return 0;
}
