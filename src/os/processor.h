/*
 * os/processor.h: what this processor has where a program may not ask it and
 * the system must tell. x86 processors answer for themselves: cpuid, in the
 * files that use it.
 */
#ifndef PAWL_OS_PROCESSOR_H
#define PAWL_OS_PROCESSOR_H

#include <stdbool.h>

#if defined(__aarch64__)
/* The SHA-256 instructions of ARMv8: an extension that a processor may lack. */
bool pawl_processor_has_arm_sha2(void);
#endif

#endif
