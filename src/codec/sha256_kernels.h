/*
 * codec/sha256_kernels.h: the kernel behind sha256_streams.c, two streams interleaved. Only that file calls it, after asking the processor.
 *
 * A build has one at most; PAWL_SHA256_KERNEL is then its way. Another
 * instruction set is another file with the same two functions.
 */
#ifndef PAWL_CODEC_SHA256_KERNELS_H
#define PAWL_CODEC_SHA256_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define PAWL_SHA256_KERNEL PAWL_SHA256_SHA_NI_2
#elif defined(__AARCH64EL__) && defined(__linux__)
#define PAWL_SHA256_KERNEL PAWL_SHA256_ARMV8_2
#endif

#ifdef PAWL_SHA256_KERNEL
/* Has this processor the instructions? */
bool pawl_sha256_kernel_here(void);
/* The same number of blocks of 64 bytes into both states. */
void pawl_sha256_kernel(uint32_t a[8], const unsigned char *a_data, uint32_t b[8], const unsigned char *b_data,
                        size_t blocks);
#endif

#endif
