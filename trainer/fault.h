/*
 * trainer/fault.h: filling a struct pawl_error from a program. What the library reports comes filled; these are for what
 * the program itself finds. Every function returns the status it was given or found; err may be NULL.
 */
#ifndef TRAINER_FAULT_H
#define TRAINER_FAULT_H

#include "pawl/status.h"

#if defined(__GNUC__)
#define TRAINER_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define TRAINER_PRINTF(format_at, first_at)
#endif

/* path NULL: none. */
enum pawl_status fault(struct pawl_error *err, enum pawl_status status, const char *code, const char *path,
                       const char *format, ...) TRAINER_PRINTF(5, 6);
/* A failed call of the system: status and code follow from errno, and the message ends with the system's text. */
enum pawl_status fault_os(struct pawl_error *err, int system_errno, const char *path, const char *format, ...)
    TRAINER_PRINTF(4, 5);
enum pawl_status fault_memory(struct pawl_error *err, size_t bytes);
void fault_hint(struct pawl_error *err, const char *format, ...) TRAINER_PRINTF(2, 3);
/* Name the path, when the error names none yet. */
void fault_path(struct pawl_error *err, const char *path);

#if defined(__clang_analyzer__) && !defined(FAULT_DEFINES)
/* As in the library: the analyzer would believe that these can return PAWL_OK. */
#define fault(err, status, ...) ((void)fault(err, status, __VA_ARGS__), (status))
#define fault_os(...) ((void)fault_os(__VA_ARGS__), PAWL_IO)
#define fault_memory(err, bytes) ((void)fault_memory(err, bytes), PAWL_NO_MEMORY)
#endif

#endif
