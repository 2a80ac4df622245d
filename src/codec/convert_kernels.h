/* codec/convert_kernels.h: what a variant of convert_kernels.inc offers to convert.c. */
#ifndef PAWL_CODEC_CONVERT_KERNELS_H
#define PAWL_CODEC_CONVERT_KERNELS_H

#include "pawl/dtype.h"

/* The overflow rule, worked out by convert.c for one dtype. */
struct encode_rule {
    uint32_t over_code; /* what a value beyond the range becomes, without its sign */
    uint32_t over_bad;  /* all ones when that is an error, else 0 */
};

struct convert_kernels {
    /*
     * Encode n values; a last group of F4 or F6 that is not full is filled with
     * zeros. Returns not 0 when a value has no code: what stands in its place
     * is then anything.
     */
    uint32_t (*encode[PAWL_DTYPE_COUNT + 1])(const float *values, size_t n, unsigned char *codes,
                                             struct encode_rule rule);
    void (*decode[PAWL_DTYPE_COUNT + 1])(const unsigned char *codes, size_t n, float *values);
};

extern const struct convert_kernels pawl_convert_kernels_portable;
#if defined(__x86_64__)
extern const struct convert_kernels pawl_convert_kernels_avx2;
extern const struct convert_kernels pawl_convert_kernels_avx512;
#endif

#endif
