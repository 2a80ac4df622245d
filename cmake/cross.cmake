# A toolchain of Debian for another processor, with the libraries that scripts/sysroot fetched and qemu for what is built:
# cmake/<processor>.cmake sets CROSS_ARCH (Debian's name), CMAKE_SYSTEM_PROCESSOR and CROSS_TRIPLET, and includes this.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot/${CROSS_ARCH})
file(REAL_PATH ${CMAKE_SYSROOT} CMAKE_SYSROOT)
if(NOT IS_DIRECTORY ${CMAKE_SYSROOT})
    message(FATAL_ERROR "No libraries for ${CROSS_ARCH} in ${CMAKE_SYSROOT}: run scripts/sysroot ${CROSS_ARCH}")
endif()
set(CMAKE_C_COMPILER ${CROSS_TRIPLET}-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE ${CROSS_TRIPLET})
# What qemu-user does otherwise than Linux is left out by the tests that ask for PAWL_EMULATOR.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR} -L ${CMAKE_SYSROOT} -E PAWL_EMULATOR=1)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/${CROSS_TRIPLET}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
