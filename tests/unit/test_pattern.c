/* Shell patterns over names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/str.h"
#include "pawl/convert.h"

/* Goal: the patterns of the shell, over names of any bytes. */
static void
patterns_match(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool fits;
    } CASES[] = {
        { "", "", true },
        { "", "a", false },
        { "*", "", true },
        { "*", "a.b/c", true },
        { "a*c", "abc", true },
        { "a*c", "ac", true },
        { "a*c", "acb", false },
        { "*.w", "l.w.w", true },
        { "?", "\xc3\xa9", true },
        { "?", "ab", false },
        { "[!a]?", "\xe2\x82\xac", true }, /* a set takes a byte, ? the rest of its code point */
        { "[!a]??", "\xe2\x82\xac", false },
        { "*?*\xac", "\xe2\x82\xac", false }, /* wherever the first star ends */
        { "a?", "a\x82", true },
        { "?", "a\x82", false },
        { "[a-c]", "b", true },
        { "[a-c]", "d", false },
        { "[!a-c]", "d", true },
        { "[^a]", "a", false },
        { "[]]", "]", true },
        { "[a-]", "-", true },
        { "[a", "[a", true },
        { "[a", "a", false },
        { "\\*", "*", true },
        { "\\*", "a", false },
        { "\\", "\\", true },
        { "a**b", "ab", true },
        { "*a*b*", "xxaxxbxx", true },
        { "*a*b*", "xxbxxaxx", false },
        { "[", "[", true },
        { "[!", "[!", true },
        { "x[!]", "x[!]", true },
        { "W", "w", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        if (pawl_pattern_match(pawl_str_z(CASES[i].pattern), pawl_str_z(CASES[i].name)) != CASES[i].fits)
            fail_msg("'%s' and '%s'", CASES[i].pattern, CASES[i].name);
    }
    assert_true(pawl_pattern_match(PAWL_STR("a\0?"), PAWL_STR("a\0b")));
    assert_false(pawl_pattern_match(PAWL_STR("a\0b"), PAWL_STR("a\0c")));
    assert_true(pawl_pattern_match((struct pawl_str){ NULL, 0 }, (struct pawl_str){ NULL, 0 }));
    /* a bad one for those that go back over everything: not two to the power of stars */
    char name[4001];
    memset(name, 'a', 4000);
    name[4000] = '\0';
    assert_false(pawl_pattern_match(PAWL_STR("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"), pawl_str_z(name)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(patterns_match) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
