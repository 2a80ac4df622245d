#define KERNELS pawl_convert_kernels_portable
#include "codec/convert_kernels.inc"
