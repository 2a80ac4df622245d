/* The kernels once more, for AVX-512 (F, BW, DQ, VL): the flags are in src/codec/CMakeLists.txt. */
#define KERNELS pawl_convert_kernels_avx512
#include "codec/convert_kernels.inc"
