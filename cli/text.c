#include "cli/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

char *
text_name(struct pawl_str name)
{
    /* A byte becomes at most four ("\x1b"), a code point of three bytes six. */
    size_t size = name.len * 4 + 1;
    char *to = malloc(size + 4);
    if (to == NULL) {
        (void)fputs("pawl: no memory\n", stderr);
        exit(EXIT_NO);
    }
    (void)talk_escape(name, to, size + 4);
    return to;
}

char *
text_name_z(const char *name)
{
    return text_name(pawl_str_z(name));
}

const char *
text_size(uint64_t bytes, char to[32])
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    if (bytes < 1024) {
        (void)snprintf(to, 32, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
        return to;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(to, 32, "%.1f %s", value, units[unit]);
    return to;
}

const char *
text_count(uint64_t count, char to[32])
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            to[used++] = ',';
        to[used++] = digits[i];
    }
    to[used] = '\0';
    return to;
}

void
text_shape(const struct pawl_tensor_info *tensor, char *to, size_t size)
{
    size_t used = (size_t)snprintf(to, size, "[");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        char item[32];
        int n = snprintf(item, sizeof item, "%s%" PRIu64, i > 0 ? ", " : "", tensor->shape[i]);
        if (used + (size_t)n + 8 > size) {
            used += (size_t)snprintf(to + used, size - used, ", ...");
            break;
        }
        memcpy(to + used, item, (size_t)n + 1);
        used += (size_t)n;
    }
    (void)snprintf(to + used, size - used, "]");
}

size_t
text_columns(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void
text_pad(const char *text, size_t columns)
{
    size_t n = text_columns(text);
    (void)printf("%s%*s", text, n < columns ? (int)(columns - n) : 0, "");
}

void
text_color(const struct output *out, const char *code)
{
    if (out->has_color)
        (void)printf("\033[%sm", code);
}

void
text_plain(const struct output *out)
{
    if (out->has_color)
        (void)fputs("\033[0m", stdout);
}

void
text_problems(const struct output *out, const struct pawl_problem *problems, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        char *file = problems[i].file.data != NULL ? text_name(problems[i].file) : NULL;
        (void)fputs("  ", stdout);
        text_color(out, strcmp(what, "warning") == 0 ? "33" : "31");
        (void)fputs(problems[i].code, stdout);
        text_plain(out);
        (void)printf("%s%s%s: %s\n", strcmp(what, "warning") == 0 ? " (warning)" : "", file != NULL ? "  " : "",
                     file != NULL ? file : "", problems[i].message);
        free(file);
    }
}
