/* Copying past the cache: what memcpy does, wherever both ends lie, and nothing beside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "codec/past_cache.h"

/* Goal: every length and every place of both ends gives the same bytes; what lies around stays. */
static void
copies_like_memcpy(void **state)
{
    (void)state;
    static unsigned char from[8192], to[8192], expected[8192];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7 + i / 251);
    static const size_t lengths[] = { 0,   1,   15,  16,  17,   63,   64,   65,   255,
                                      256, 257, 319, 320, 1023, 1024, 1025, 4096, 5000 };
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
        for (size_t in = 0; in < 70; in += 3)
            for (size_t out = 0; out < 70; out++) {
                memset(to, 0xa5, sizeof to);
                memset(expected, 0xa5, sizeof expected);
                memcpy(expected + 64 + out, from + in, lengths[n]);
                pawl_copy_past_cache(to + 64 + out, from + in, lengths[n]);
                assert_memory_equal(to, expected, sizeof to);
            }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_like_memcpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
