#define KERNELS pawl_convert_kernels_avx2
#include "codec/convert_kernels.inc"
