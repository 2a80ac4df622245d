#define PAWL_FAIL_DEFINES
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"

/* Where a text is cut in the middle; the end of a path tells more than its middle. */
static const char CUT_MARK[] = "...";

/* Bytes of the valid UTF-8 sequence at `at`, 0 when there is none. For display only: the strict checker is codec/utf8. */
static size_t
sequence_bytes(const unsigned char *at, size_t left, uint32_t *ret_point)
{
    unsigned lead = at[0];
    size_t n = lead < 0x80                   ? 1
               : lead >= 0xc2 && lead < 0xe0 ? 2
               : lead >= 0xe0 && lead < 0xf0 ? 3
               : lead >= 0xf0 && lead < 0xf5 ? 4
                                             : 0;
    if (n == 0 || n > left)
        return 0;
    uint32_t point = n == 1 ? lead : lead & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3f);
    }
    if ((n == 3 && point < 0x800) || (n == 4 && (point < 0x10000 || point > 0x10ffff)) ||
        (point >= 0xd800 && point < 0xe000))
        return 0;
    *ret_point = point;
    return n;
}

/* Would this code point disturb a terminal or hide what a text says? C0, DEL, C1, line separators, bidirectional controls, BOM. */
static bool
is_disturbing(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x200b && point <= 0x200f) ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x2069) || point == 0xfeff;
}

/* The printable form of what stands at `at`: at most 10 bytes and a NUL in `piece`. Returns the bytes of input used. */
static size_t
show_piece(const unsigned char *at, size_t left, char piece[16])
{
    uint32_t point = 0;
    size_t n = sequence_bytes(at, left, &point);
    if (n == 0) {
        (void)snprintf(piece, 16, "\\x%02x", at[0]);
        return 1;
    }
    if (!is_disturbing(point)) {
        memcpy(piece, at, n);
        piece[n] = '\0';
    } else if (point == '\n') {
        memcpy(piece, "\\n", 3);
    } else if (point == '\t') {
        memcpy(piece, "\\t", 3);
    } else if (point == '\r') {
        memcpy(piece, "\\r", 3);
    } else if (point < 0x80) {
        (void)snprintf(piece, 16, "\\x%02x", (unsigned)point);
    } else {
        (void)snprintf(piece, 16, "\\u%04x", (unsigned)point);
    }
    return n;
}

/* Bytes that `bytes[from..to)` take when shown. */
static size_t
shown_bytes(const unsigned char *bytes, size_t len, size_t limit)
{
    size_t total = 0;
    char piece[16];
    for (size_t i = 0; i < len && total <= limit;) {
        i += show_piece(bytes + i, len - i, piece);
        total += strlen(piece);
    }
    return total;
}

void
pawl_show_into(char *text, size_t size, struct pawl_str str)
{
    if (size == 0)
        return;
    const unsigned char *bytes = (const unsigned char *)str.data;
    const size_t mark = sizeof CUT_MARK - 1;
    size_t used = 0;
    char piece[16];

    if (shown_bytes(bytes, str.len, size) < size) {
        for (size_t i = 0; i < str.len;) {
            i += show_piece(bytes + i, str.len - i, piece);
            size_t n = strlen(piece);
            memcpy(text + used, piece, n);
            used += n;
        }
        text[used] = '\0';
        return;
    }
    if (size <= mark + 2) {
        text[0] = '\0';
        return;
    }
    /* Too long: as much of the beginning as half the room takes, then of the end. */
    size_t room = size - 1 - mark;
    size_t at = 0;
    while (at < str.len) {
        size_t step = show_piece(bytes + at, str.len - at, piece);
        size_t n = strlen(piece);
        if (used + n > room / 2)
            break;
        memcpy(text + used, piece, n);
        used += n;
        at += step;
    }
    memcpy(text + used, CUT_MARK, mark);
    used += mark;
    size_t tail = str.len;
    size_t left = size - 1 - used;
    while (tail > at) {
        /* back to the beginning of the sequence before `tail` */
        size_t from = tail - 1;
        while (from > at && tail - from < 4 && (bytes[from] & 0xc0) == 0x80)
            from--;
        uint32_t point;
        if (sequence_bytes(bytes + from, tail - from, &point) != tail - from)
            from = tail - 1;
        size_t n = shown_bytes(bytes + from, tail - from, left);
        if (n > left)
            break;
        left -= n;
        tail = from;
    }
    while (tail < str.len) {
        tail += show_piece(bytes + tail, str.len - tail, piece);
        size_t n = strlen(piece);
        if (used + n > size - 1)
            break;
        memcpy(text + used, piece, n);
        used += n;
    }
    text[used] = '\0';
}

const char *
pawl_show_str(struct pawl_show *show, struct pawl_str str)
{
    pawl_show_into(show->text, 203, str);
    return show->text;
}

/* Cut a NUL-terminated text that vsnprintf could not fit; it is marked at its end. */
static void
mark_cut(char *text, size_t size, int wanted)
{
    if (wanted >= 0 && (size_t)wanted < size)
        return;
    size_t at = size - sizeof CUT_MARK;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80) /* not inside a UTF-8 sequence */
        at--;
    memcpy(text + at, CUT_MARK, sizeof CUT_MARK);
}

static void
put_text(char *text, size_t size, const char *format, va_list args)
{
    int n = vsnprintf(text, size, format, args);
    if (n < 0)
        text[0] = '\0';
    else
        mark_cut(text, size, n);
}

static void
put_code(struct pawl_error *err, const char *code)
{
    size_t n = strlen(code);
    if (n >= sizeof err->code)
        n = sizeof err->code - 1;
    memmove(err->code, code, n);
    err->code[n] = '\0';
}

static void
begin(struct pawl_error *err, enum pawl_status status, const char *code)
{
    err->status = status;
    err->system_errno = 0;
    err->offset = PAWL_OFFSET_NONE;
    err->path[0] = '\0';
    err->tensor[0] = '\0';
    err->hint[0] = '\0';
    put_code(err, code);
}

enum pawl_status
pawl_fail(struct pawl_error *err, enum pawl_status status, const char *code, const char *format, ...)
{
    if (err == NULL)
        return status;
    begin(err, status, code);
    va_list args;
    va_start(args, format);
    put_text(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

enum pawl_status
pawl_fail_at(struct pawl_error *err, enum pawl_status status, const char *code, uint64_t offset, const char *format,
             ...)
{
    if (err == NULL)
        return status;
    begin(err, status, code);
    err->offset = offset;
    va_list args;
    va_start(args, format);
    put_text(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

enum pawl_status
pawl_status_of_errno(int system_errno)
{
    switch (system_errno) {
    case ENOSPC:
    case EDQUOT:
        return PAWL_NO_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
        return PAWL_PERMISSION;
    case EMFILE:
    case ENFILE:
        return PAWL_NO_DESCRIPTORS;
    case ENOMEM:
        return PAWL_NO_MEMORY;
    case ETIMEDOUT:
        return PAWL_TIME_OUT;
    case EINTR:
        return PAWL_INTERRUPTED;
    case ESTALE:
        return PAWL_STALE;
    case ENOENT:
    case ENOTDIR:
        return PAWL_NO_FILE;
    case EEXIST:
        return PAWL_EXISTS;
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
        return PAWL_BUSY;
    case EOPNOTSUPP:
#if ENOTSUP != EOPNOTSUPP
    case ENOTSUP:
#endif
    case ENOSYS:
        return PAWL_UNSUPPORTED;
    default:
        return PAWL_IO;
    }
}

/* strerror_r is two functions, by the headers' mood; strerror is not for threads. */
static const char *
text_of_errno(int system_errno, char *text, size_t size)
{
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    return strerror_r(system_errno, text, size);
#else
    if (strerror_r(system_errno, text, size) != 0)
        (void)snprintf(text, size, "error %d", system_errno);
    return text;
#endif
}

/* The answer alone reads like a mistake of the caller's, who wrote there a moment ago. */
#define READ_ONLY_HINT                                                                                               \
    "the filesystem is mounted read-only, which the system also does when a device has errors (its log says): what " \
    "is there can be read; mount it for writing again, or write elsewhere"

enum pawl_status
pawl_fail_os(struct pawl_error *err, int system_errno, const char *format, ...)
{
    enum pawl_status status = pawl_status_of_errno(system_errno);
    if (err == NULL)
        return status;
    begin(err, status, pawl_code_of_status(status));
    err->system_errno = system_errno;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (n < 0)
        n = 0;
    mark_cut(err->message, sizeof err->message, n);
    size_t used = strlen(err->message);
    char text[128];
    int more = snprintf(err->message + used, sizeof err->message - used, ": %s",
                        text_of_errno(system_errno, text, sizeof text));
    mark_cut(err->message + used, sizeof err->message - used > sizeof CUT_MARK ? sizeof err->message - used : SIZE_MAX,
             more);
    if (system_errno == EROFS)
        pawl_error_hint(err, "%s", READ_ONLY_HINT);
    return status;
}

enum pawl_status
pawl_fail_memory(struct pawl_error *err, size_t bytes)
{
    return pawl_fail(err, PAWL_NO_MEMORY, "no-memory", "no memory for %zu bytes", bytes);
}

void
pawl_error_path(struct pawl_error *err, struct pawl_str path)
{
    if (err != NULL && err->path[0] == '\0')
        pawl_show_into(err->path, sizeof err->path, path);
}

void
pawl_error_tensor(struct pawl_error *err, struct pawl_str tensor)
{
    if (err != NULL)
        pawl_show_into(err->tensor, sizeof err->tensor, tensor);
}

void
pawl_error_code(struct pawl_error *err, const char *code)
{
    if (err != NULL)
        put_code(err, code);
}

void
pawl_error_hint(struct pawl_error *err, const char *format, ...)
{
    if (err == NULL)
        return;
    va_list args;
    va_start(args, format);
    put_text(err->hint, sizeof err->hint, format, args);
    va_end(args);
}

enum pawl_status
pawl_context(struct pawl_error *err, enum pawl_status status, const char *format, ...)
{
    if (err == NULL || status == PAWL_OK)
        return status;
    char purpose[512];
    va_list args;
    va_start(args, format);
    put_text(purpose, sizeof purpose, format, args);
    va_end(args);
    char message[sizeof err->message];
    int n = snprintf(message, sizeof message, "%s: %s", purpose, err->message);
    mark_cut(message, sizeof message, n);
    memcpy(err->message, message, sizeof message);
    return status;
}

/* Rows in the order of the enum: name, then the word for programs where nothing finer is known. */
static const struct {
    const char *name;
    const char *code;
} STATUSES[] = {
    { "ok", "ok" },
    { "argument", "argument" },
    { "no-memory", "no-memory" },
    { "io", "io" },
    { "no-space", "no-space" },
    { "not-found", "not-found" },
    { "none-complete", "none-complete" },
    { "incomplete", "content" },
    { "corrupt", "content" },
    { "truncated", "truncated" },
    { "mismatch", "mismatch" },
    { "busy", "busy" },
    { "exists", "exists" },
    { "permission", "permission" },
    { "no-descriptors", "no-descriptors" },
    { "time-out", "time-out" },
    { "interrupted", "interrupted" },
    { "unsupported", "unsupported" },
    { "canceled", "canceled" },
    { "wrong-process", "argument" },
    { "out-of-range", "out-of-range" },
    { "no-file", "not-found" },
    { "stale", "io" },
    { "limit", "limit" },
};

const char *
pawl_status_name(enum pawl_status status)
{
    size_t at = (size_t)status;
    return at < sizeof STATUSES / sizeof STATUSES[0] ? STATUSES[at].name : "unknown";
}

const char *
pawl_code_of_status(enum pawl_status status)
{
    size_t at = (size_t)status;
    return at < sizeof STATUSES / sizeof STATUSES[0] ? STATUSES[at].code : "io";
}

bool
pawl_status_is_machine_fault(enum pawl_status status)
{
    switch (status) {
    case PAWL_NO_MEMORY:
    case PAWL_NO_DESCRIPTORS:
    case PAWL_PERMISSION:
    case PAWL_TIME_OUT:
    case PAWL_INTERRUPTED:
    case PAWL_STALE:
    case PAWL_BUSY:
    case PAWL_NO_SPACE:
    case PAWL_CANCELED:
    case PAWL_WRONG_PROCESS:
        return true;
    default:
        return false;
    }
}
