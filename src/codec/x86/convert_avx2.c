/* The kernels once more, for AVX2: the flags are in src/codec/CMakeLists.txt. */
#define KERNELS pawl_convert_kernels_avx2
#include "codec/convert_kernels.inc"
