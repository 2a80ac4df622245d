# One set of flags for every target, GCC and Clang alike.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla)
option(PAWL_WERROR "Warnings are errors" OFF)
if(PAWL_WERROR)
    add_compile_options(-Werror)
endif()

# Which files for one processor are built, by what the compiler says: one for 32 bits may run on a machine of 64.
include(CheckSymbolExists)
check_symbol_exists(__x86_64__ stdint.h PAWL_X86_64)
check_symbol_exists(__AARCH64EL__ stdint.h PAWL_AARCH64)
if(CMAKE_C_BYTE_ORDER STREQUAL BIG_ENDIAN)
    message(FATAL_ERROR "Files are little-endian and mapped as they lie: little-endian machines only (docs/other-machines.md)")
endif()

# Bits are promised: no contraction of a*b+c, no fast-math. -D_GNU_SOURCE: renameat2, statx and O_DIRECT are behind it.
add_compile_options(-ffp-contract=off)
add_compile_definitions(_GNU_SOURCE _FILE_OFFSET_BITS=64)

set(PAWL_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")
if(PAWL_SANITIZE)
    add_compile_options(-fsanitize=${PAWL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${PAWL_SANITIZE})
endif()
option(PAWL_COVERAGE "Count lines for gcov" OFF)
if(PAWL_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
endif()
