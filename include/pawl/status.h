/*
 * pawl/status.h: what every call answers, and the story behind a failure.
 *
 * A function that can fail returns `enum pawl_status` and takes, last, a `struct
 * pawl_error *` that may be NULL. The status is what a program branches on; the
 * error is what a person reads. It is filled on failure only, and belongs to
 * the caller: nothing in it points anywhere.
 *
 *     struct pawl_error err = PAWL_ERROR_INIT;
 *     if (pawl_run_open_z("out/ckpt", NULL, &run, &err) != PAWL_OK)
 *         fprintf(stderr, "%s\n", err.message);
 *
 * A failed call leaves its `ret_` parameters untouched. No function prints,
 * exits or installs a signal handler.
 */
#ifndef PAWL_STATUS_H
#define PAWL_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define PAWL_API
#elif defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#else
#define PAWL_API
#endif

/*
 * A struct for the length of a call, as the macros with capitals make it: C has the compound literal for that, whose address may be
 * taken. In C++ a temporary is bound to a reference, which lives to the end of the whole expression, so `&PAWL_RUN_OPTIONS(.keep = 3)`
 * reads the same there (designated initialisers are C++20; GCC and Clang take them from C++11 on).
 */
#ifdef __cplusplus
extern "C++" {
template <class T> struct pawl_type_ {
    typedef T type; /* a struct is named so also where a function has its name */
};
template <class T>
inline const T &
pawl_literal_(const T &value)
{
    return value;
}
}
#define PAWL_LITERAL_(type_, ...) (pawl_literal_(pawl_type_<struct type_>::type{ __VA_ARGS__ }))
#else
#define PAWL_LITERAL_(type_, ...) ((struct type_){ __VA_ARGS__ })
#endif

/* The numbers are part of the ABI: written out, never reused. */
enum pawl_status {
    PAWL_OK = 0,
    PAWL_ARGUMENT = 1, /* what the caller passed; nothing was done */
    PAWL_NO_MEMORY = 2,
    PAWL_IO = 3,            /* the system failed: errno is in the error */
    PAWL_NO_SPACE = 4,      /* disk or quota full: needed and available bytes are in the message */
    PAWL_NOT_FOUND = 5,     /* there is no checkpoint at all: a fresh start */
    PAWL_NONE_COMPLETE = 6, /* there are checkpoints and none verifies: a trainer must stop */
    PAWL_INCOMPLETE = 7,    /* the step that was asked for is there and not complete */
    PAWL_CORRUPT = 8,       /* bytes that break their format: more bytes would not help */
    PAWL_TRUNCATED = 9,     /* bytes that end too early */
    PAWL_MISMATCH = 10,     /* strict restore, or a cursor of another data set */
    PAWL_BUSY = 11,         /* another writer owns the root */
    PAWL_EXISTS = 12,       /* will not replace it */
    PAWL_PERMISSION = 13,
    PAWL_NO_DESCRIPTORS = 14,
    PAWL_TIME_OUT = 15,
    PAWL_INTERRUPTED = 16,
    PAWL_UNSUPPORTED = 17, /* the system or filesystem lacks it, or this build does */
    PAWL_CANCELED = 18,
    PAWL_WRONG_PROCESS = 19, /* a handle of the parent, used in a forked child that can't go on with it */
    PAWL_OUT_OF_RANGE = 20,  /* a value that the target dtype lacks */
    PAWL_NO_FILE = 21,       /* a path or entry that is not there */
    PAWL_STALE = 22,         /* a handle that the file server no longer knows */
    PAWL_LIMIT = 23          /* larger than a limit that an option can raise */
};

/* "no such place in the file" for pawl_error.offset and pawl_problem.offset. */
#define PAWL_OFFSET_NONE UINT64_MAX

/*
 * What went wrong, for a person. Fixed arrays, so that it can live on the
 * stack, be copied, and be filled when memory has run out. Texts are
 * NUL-terminated UTF-8; what does not fit is cut in the middle and shows "...".
 * `path`, `tensor` and `message` are for display only: names with unprintable
 * bytes stand there escaped.
 */
struct pawl_error {
    enum pawl_status status;
    int system_errno;   /* errno of the failed operation, 0 when none */
    uint64_t offset;    /* where in the file, PAWL_OFFSET_NONE when nowhere */
    char code[64];      /* the failure's lowercase word: "hash", "no-space", "adamw_state/invalid_beta_power" ... */
    char message[1024]; /* what was expected and what was found */
    char path[512];     /* the file or directory concerned, "" when none */
    char tensor[256];   /* the tensor concerned, "" when none */
    char hint[512];     /* what to do next, "" when there is nothing to say */
};

#define PAWL_ERROR_INIT                                  \
    {                                                    \
        PAWL_OK, 0, PAWL_OFFSET_NONE, "", "", "", "", "" \
    }

/*
 * Bytes with a length: names of tensors, files and metadata keys may hold NULs
 * and newlines. Not NUL-terminated unless a function says so. Never owns.
 */
struct pawl_str {
    const char *data; /* may be NULL only when len is 0 */
    size_t len;
};

/* The bytes of a C string, without its NUL. NULL gives the empty string. */
PAWL_API struct pawl_str pawl_str_z(const char *text);

/* The name of a status as spelt here without its prefix, in lower case with hyphens: "none-complete".
 * Never NULL; "unknown" for a number that is no status. Static storage. */
PAWL_API const char *pawl_status_name(enum pawl_status status);

/*
 * Whether a status is a fault of the machine (no memory, no descriptors,
 * permission, stale handle, time-out, interrupted) rather than of the bytes.
 * A load never falls back over one of these.
 */
PAWL_API bool pawl_status_is_machine_fault(enum pawl_status status);

#ifdef __cplusplus
}
#endif

#endif
