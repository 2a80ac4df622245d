/* Failpoints: the syntax, which evaluation fires, and what each action does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/failpoints.h"

static struct failpoints *
points_of(const char *text)
{
    struct failpoints *points = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(failpoints_new(&points, &err), PAWL_OK);
    assert_int_equal(failpoints_add(points, "TEST", text, &err), PAWL_OK);
    return points;
}

/* Goal: "N*" fires once, on the N-th evaluation of its own name; without it every one fires. */
static void
test_which_evaluation(void **state)
{
    (void)state;
    struct failpoints *points = points_of("a=3*error;b=error");
    int want[5] = { 0, 0, 1, 0, 0 };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(failpoints_evaluate(points, "a"), want[i]);
        assert_int_equal(failpoints_evaluate(points, "b"), 1);
        assert_int_equal(failpoints_evaluate(points, "c"), 0);
        assert_int_equal(failpoints_evaluate(points, "aa"), 0);
    }
    failpoints_free(points);
}

/* Goal: every rule of a name counts, in both lists; `off` and a sleep fail nothing. */
static void
test_several_rules(void **state)
{
    (void)state;
    struct failpoints *points = points_of(";a=off;a=2*error;;a=4*error;a=sleep(1us);");
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(failpoints_add(points, "OTHER", "a=5*error", &err), PAWL_OK);
    int want[6] = { 0, 1, 0, 1, 1, 0 };
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(failpoints_evaluate(points, "a"), want[i]);
    failpoints_free(points);
}

/* Goal: what is no rule is refused, and nothing that is a rule. */
static void
test_syntax(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "a",
        "a=",
        "=error",
        "a=Error",
        "a=error ",
        "a =error",
        "a=0*error",
        "a=*error",
        "a=-1*error",
        "a=1**error",
        "a=1*",
        "a=1 *error",
        "a=sleep",
        "a=sleep()",
        "a=sleep(20)",
        "a=sleep(ms)",
        "a=sleep(2ms",
        "a=sleep(2ms))",
        "a=sleep 2ms",
        "a=sleep(2 ms)",
        "a=sleep(4000s)",
        "a=18446744073709551616*error",
        "a=crash(1)",
        "a=error,b=error",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct failpoints *points = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        char want[300];
        assert_int_equal(failpoints_new(&points, &err), PAWL_OK);
        assert_int_equal(failpoints_add(points, "TEST", bad[i], &err), PAWL_ARGUMENT);
        assert_string_equal(err.code, "usage");
        (void)snprintf(want, sizeof want,
                       "TEST: expected name=[N*]action with the action crash, error, sleep(20ms) or off, found '%s'",
                       bad[i]);
        assert_string_equal(err.message, want);
        failpoints_free(points);
    }
    static const char *const good[] = { "",
                                        ";",
                                        "a=off",
                                        "a=1*off",
                                        "a=18446744073709551615*crash",
                                        "save/x.y-1=sleep(0ms)",
                                        "a=sleep(3600s)",
                                        "a=2*sleep(20ms)" };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        failpoints_free(points_of(good[i]));
}

/* Goal: crash ends the process with 137 and flushes nothing, on the evaluation that is named. */
static void
test_crash(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct failpoints *points = points_of("a=2*crash");
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE *out = fdopen(ends[1], "w");
        if (out == NULL)
            _exit(1);
        (void)fputs("not flushed", out);
        (void)failpoints_evaluate(points, "a");
        (void)failpoints_evaluate(points, "a");
        _exit(0);
    }
    (void)close(ends[1]);
    int status;
    char text[16];
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 137);
    assert_int_equal(read(ends[0], text, sizeof text), 0);
    (void)close(ends[0]);
    failpoints_free(points);
}

/* Goal: both variables are read, in this order, and the one at fault is named. */
static void
test_environment(void **state)
{
    (void)state;
    struct failpoints *points = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(setenv("PAWL_FAILPOINTS", "train/after-step=1*error", 1), 0);
    assert_int_equal(setenv("TL_FAILPOINTS", "train/after-step=2*error;save/other=off", 1), 0);
    assert_int_equal(failpoints_of_environment(&points, &err), PAWL_OK);
    int want[3] = { 1, 1, 0 };
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(failpoints_evaluate(points, "train/after-step"), want[i]);
    assert_string_equal(failpoints_unknown(points), "save/other");
    failpoints_free(points);
    assert_int_equal(setenv("TL_FAILPOINTS", "x", 1), 0);
    assert_int_equal(failpoints_of_environment(&points, &err), PAWL_ARGUMENT);
    assert_memory_equal(err.message, "TL_FAILPOINTS: ", 15);
    assert_int_equal(unsetenv("PAWL_FAILPOINTS"), 0);
    assert_int_equal(unsetenv("TL_FAILPOINTS"), 0);
    assert_int_equal(failpoints_of_environment(&points, &err), PAWL_OK);
    assert_null(failpoints_unknown(points));
    failpoints_free(points);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_evaluation), cmocka_unit_test(test_several_rules),
        cmocka_unit_test(test_syntax),           cmocka_unit_test(test_crash),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
