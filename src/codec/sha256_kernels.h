/* codec/sha256_kernels.h: the kernels behind sha256_streams.c. Only that file calls them, after asking the processor. */
#ifndef PAWL_CODEC_SHA256_KERNELS_H
#define PAWL_CODEC_SHA256_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define PAWL_HAVE_SHA_NI 1
bool pawl_sha256_sha_ni_here(void);
/* The same number of blocks of 64 bytes into both states. */
void pawl_sha256_sha_ni_2(uint32_t a[8], const unsigned char *a_data, uint32_t b[8], const unsigned char *b_data,
                          size_t blocks);
#endif

#endif
