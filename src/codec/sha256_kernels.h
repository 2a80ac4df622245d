/*
 * codec/sha256_kernels.h: the kernels behind sha256_streams.c, two streams interleaved. Only that file calls them, after asking the processor.
 *
 * A kernel takes the same number of blocks of 64 bytes into both states. Another instruction set is another file with the same two functions, and a
 * line in the table of sha256_streams.c.
 */
#ifndef PAWL_CODEC_SHA256_KERNELS_H
#define PAWL_CODEC_SHA256_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void pawl_sha256_kernel_fn(uint32_t a[8], const unsigned char *a_data, uint32_t b[8],
                                   const unsigned char *b_data, size_t blocks);

#if defined(__x86_64__)
/* `can`: has this processor the instructions? */
bool pawl_sha256_sha_ni_can(void);
pawl_sha256_kernel_fn pawl_sha256_sha_ni;
bool pawl_sha256_avx512_can(void);
/* Is it one on which this kernel was seen to be faster than that of SHA-NI alone? */
bool pawl_sha256_avx512_is_faster(void);
pawl_sha256_kernel_fn pawl_sha256_avx512;
#elif defined(__AARCH64EL__) && defined(__linux__)
bool pawl_sha256_armv8_can(void);
pawl_sha256_kernel_fn pawl_sha256_armv8;
#endif

#endif
