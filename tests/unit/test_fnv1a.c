#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "pawl/digest.h"

/* Vectors published with the algorithm (Fowler, Noll, Vo; draft-eastlake-fnv). The last catches a signed char. */
static void
published_vectors(void **state)
{
    (void)state;
    assert_true(pawl_fnv1a(PAWL_FNV1A_BASIS, NULL, 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(pawl_fnv1a(PAWL_FNV1A_BASIS, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(pawl_fnv1a(PAWL_FNV1A_BASIS, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    assert_true(pawl_fnv1a(PAWL_FNV1A_BASIS, "\xff\x00\x00\x01", 4) == UINT64_C(0x6961196491cc682d));
}

static void
pieces_give_the_hash_of_the_whole(void **state)
{
    (void)state;
    const char text[] = "chongo was here!\n";
    const size_t n = strlen(text);
    const uint64_t whole = pawl_fnv1a(PAWL_FNV1A_BASIS, text, n);
    assert_true(whole == UINT64_C(0x46810940eff5f915));
    for (size_t cut = 0; cut <= n; cut++)
        assert_true(pawl_fnv1a(pawl_fnv1a(PAWL_FNV1A_BASIS, text, cut), text + cut, n - cut) == whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(published_vectors),
                                        cmocka_unit_test(pieces_give_the_hash_of_the_whole) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
