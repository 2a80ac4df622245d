#include "trainer/talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void
clear_live(struct talk *talk)
{
    if (talk->live == 0)
        return;
    (void)fputs("\r\033[K", stderr);
    talk->live = 0;
}

void
talk_line(struct talk *talk, const char *format, ...)
{
    if (talk->is_quiet)
        return;
    clear_live(talk);
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%s: ", talk->who);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

void
talk_warning(struct talk *talk, const char *format, ...)
{
    clear_live(talk);
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%s: warning: ", talk->who);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

void
talk_live(struct talk *talk, const char *format, ...)
{
    if (!talk->is_live || talk->is_quiet)
        return;
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(stderr, "\r%s\033[K", text);
    (void)fflush(stderr);
    talk->live = n > 0 ? (size_t)n : 0;
}

void
talk_live_end(struct talk *talk)
{
    clear_live(talk);
}

static void
say_problem(struct talk *talk, const char *what, const struct pawl_problem *problem)
{
    char file[256] = "";
    if (problem->file.data != NULL)
        talk_escape(problem->file, file, sizeof file);
    if (strncmp(what, file, strlen(file)) == 0) /* of LATEST: the verdict's name already */
        file[0] = '\0';
    talk_warning(talk, "%s%s%s%s (%s)", what, file, file[0] != '\0' ? ": " : "", problem->message, problem->code);
}

void
talk_report(struct talk *talk, const struct pawl_report *report)
{
    if (report == NULL)
        return;
    size_t n;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    for (size_t i = 0; i < n; i++) {
        char what[320], name[256];
        talk_escape(pawl_str_z(verdicts[i].name), name, sizeof name);
        (void)snprintf(what, sizeof what, "%s: ", name);
        for (size_t j = 0; j < verdicts[i].n_problems; j++)
            say_problem(talk, what, &verdicts[i].problems[j]);
        for (size_t j = 0; j < verdicts[i].n_warnings; j++)
            say_problem(talk, what, &verdicts[i].warnings[j]);
    }
    const struct pawl_problem *warnings = pawl_report_warnings(report, &n);
    for (size_t i = 0; i < n; i++)
        say_problem(talk, "", &warnings[i]);
}

/* Bytes of the UTF-8 sequence at `at`, 0 when it is none; *ret_code is its code point. */
static size_t
utf8_sequence(const unsigned char *at, size_t left, uint32_t *ret_code)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf8 ? 4 : 0;
    if (n == 0 || n > left)
        return 0;
    uint32_t code = n == 1 ? at[0] : at[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret_code = code;
    return n;
}

static bool
is_plain(uint32_t code)
{
    if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        return false;
    /* Marks that turn the direction of what follows, and line separators: they could make one name look like another. */
    bool turns = code == 0x061c || (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                 (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
    return !turns;
}

size_t
talk_escape(struct pawl_str text, char *to, size_t size)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t left = text.len, used = 0;
    to[0] = '\0';
    while (left > 0) {
        char piece[12];
        uint32_t code;
        size_t n = utf8_sequence(at, left, &code), out;
        if (n == 0) {
            n = 1;
            out = (size_t)snprintf(piece, sizeof piece, "\\x%02x", at[0]);
        } else if (is_plain(code)) {
            memcpy(piece, at, n);
            out = n;
        } else if (code == '\n' || code == '\t' || code == '\r') {
            out = (size_t)snprintf(piece, sizeof piece, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
        } else {
            out = (size_t)snprintf(piece, sizeof piece, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
        }
        bool is_last = n == left;
        if (used + out + (is_last ? 1 : 4) > size) {
            if (size >= used + 4)
                memcpy(to + used, "...", 4);
            return strlen(to);
        }
        memcpy(to + used, piece, out);
        used += out;
        to[used] = '\0';
        at += n;
        left -= n;
    }
    return used;
}
