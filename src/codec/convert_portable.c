/* The kernels for the compiler's default target: they run everywhere, and the others are held against them. */
#define KERNELS pawl_convert_kernels_portable
#include "codec/convert_kernels.inc"
