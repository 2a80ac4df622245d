/* What the parser of RETENTION.json takes, the printer prints, and that text is its own print. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "checkpoint/pins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_buffer first = PAWL_BUFFER_INIT;
    struct pawl_buffer second = PAWL_BUFFER_INIT;
    int64_t *pinned = NULL;
    size_t n = 0;

    enum pawl_status st = pawl_pins_parse(&arena, data, size, &pinned, &n, &err);
    if (st == PAWL_OK) {
        int64_t *again = NULL;
        size_t n_again = 0;
        for (size_t i = 0; i < n; i++)
            if (pinned[i] < 0 || (i > 0 && pinned[i] <= pinned[i - 1]) || !pawl_pins_hold(pinned, n, pinned[i]))
                abort();
        if (!pawl_pins_print(pinned, n, &first) ||
            pawl_pins_parse(&arena, first.data, first.len, &again, &n_again, &err) != PAWL_OK ||
            !pawl_pins_print(again, n_again, &second))
            abort();
        if (n != n_again || !pawl_str_equal(pawl_buffer_str(&first), pawl_buffer_str(&second)))
            abort();
    } else if (st != PAWL_CORRUPT || err.message[0] == '\0') {
        abort(); /* bytes can't be anything else than wrong, and then it is said how */
    }
    pawl_buffer_release(&first);
    pawl_buffer_release(&second);
    pawl_arena_release(&arena);
    return 0;
}
