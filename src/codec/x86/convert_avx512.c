#define KERNELS pawl_convert_kernels_avx512
#include "codec/convert_kernels.inc"
