/*
 * Lists of SHA-256 sums: the lines are told in their order and at their places, none twice and none left out; a line that is taken, printed as sha256sum
 * would, is taken for the same digest and name.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "pawl/digest.h"
#include "checkpoint/sum_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds)
        abort();
}

static void
print_line(struct pawl_buffer *to, const struct pawl_sum_line *line, struct pawl_str name)
{
    char hex[65];
    bool is_escaped = false;
    for (size_t i = 0; i < name.len; i++)
        is_escaped = is_escaped || strchr("\\\n\r", name.data[i]) != NULL;
    pawl_sha256_print(line->digest, hex);
    (void)pawl_buffer_printf(to, "%s%s  ", is_escaped ? "\\" : "", hex);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (strchr("\\\n\r", c) == NULL)
            (void)pawl_buffer_add_char(to, c);
        else
            (void)pawl_buffer_add_z(to, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\\\");
    }
    (void)pawl_buffer_add_char(to, '\n');
    require(pawl_buffer_ok(to));
}

static void
check_good(const struct pawl_sum_line *line, struct pawl_str name)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT, name_again = PAWL_BUFFER_INIT;
    struct pawl_sum_line again;
    require(name.len != 0 && memchr(name.data, 0, name.len) == NULL);
    print_line(&text, line, name);
    struct pawl_sum_lines list = pawl_sum_lines_begin(pawl_buffer_str(&text));
    require(pawl_sum_lines_next(&list, &again, &name_again) && again.is_good && again.number == 1 && again.offset == 0);
    require(memcmp(again.digest, line->digest, sizeof line->digest) == 0);
    require(pawl_str_equal(pawl_buffer_str(&name_again), name));
    require(!pawl_sum_lines_next(&list, &again, &name_again));
    pawl_buffer_release(&text);
    pawl_buffer_release(&name_again);
}

/* Is there nothing but empty lines in [from, to)? *number: of lines. */
static bool
is_empty(const uint8_t *data, size_t from, size_t to, size_t *number)
{
    bool is_begin = true;
    for (size_t i = from; i < to; i++) {
        if (data[i] != '\n' && (data[i] != '\r' || !is_begin || (i + 1 < to && data[i + 1] != '\n')))
            return false;
        is_begin = data[i] == '\n';
        *number += is_begin;
    }
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_buffer name = PAWL_BUFFER_INIT;
    struct pawl_sum_line line;
    struct pawl_sum_lines list = pawl_sum_lines_begin(pawl_str_make((const char *)data, size));
    size_t at = 0, number = 0;
    while (pawl_sum_lines_next(&list, &line, &name)) {
        require(line.offset >= at && line.offset < size && pawl_buffer_ok(&name));
        require(is_empty(data, at, (size_t)line.offset, &number) && line.number == number + 1);
        if (line.is_good)
            check_good(&line, pawl_buffer_str(&name));
        const uint8_t *feed = memchr(data + line.offset, '\n', size - (size_t)line.offset);
        at = feed == NULL ? size : (size_t)(feed - data) + 1;
        number++;
    }
    require(is_empty(data, at, size, &number));
    pawl_buffer_release(&name);
    return 0;
}
