# ARMv8, 64 bits, little-endian (docs/other-machines.md).
set(CROSS_ARCH arm64)
set(CROSS_TRIPLET aarch64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
