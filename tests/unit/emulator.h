/*
 * emulator.h: tests of what qemu-user does otherwise than Linux, with programs built for another processor
 * (docs/other-machines.md). cmake/cross.cmake sets the variable.
 */
#ifndef PAWL_TESTS_EMULATOR_H
#define PAWL_TESTS_EMULATOR_H

#include <stdlib.h>

/* After cmocka.h. `why` is what the emulator lacks. */
#define SKIP_UNDER_EMULATOR(why)                                  \
    do {                                                          \
        if (getenv("PAWL_EMULATOR") != NULL) {                    \
            print_message("not under an emulator: it %s\n", why); \
            skip();                                               \
        }                                                         \
    } while (0)

#endif
