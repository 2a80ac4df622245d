/* Errors: what they say, how names are shown in them, and where they are cut. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"

static struct pawl_error err;

/* ---- names in messages ---- */

static void
shown_names_cannot_disturb_a_terminal(void **state)
{
    (void)state;
    const struct {
        struct pawl_str name;
        const char *shown;
    } rows[] = {
        { PAWL_STR(""), "" },
        { PAWL_STR("plain name"), "plain name" },
        { PAWL_STR("a\nb\tc\rd"), "a\\nb\\tc\\rd" },
        { PAWL_STR("\x1b[31m"), "\\x1b[31m" },
        { PAWL_STR("nul\0inside"), "nul\\x00inside" },
        { PAWL_STR("del\x7f"), "del\\x7f" },
        { PAWL_STR("\xc2\x85"), "\\u0085" }, /* C1: next line */
        { PAWL_STR("caf\xc3\xa9 \xe2\x82\xac"), "caf\xc3\xa9 \xe2\x82\xac" },
        { PAWL_STR("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80" },     /* four bytes */
        { PAWL_STR("x\xe2\x80\xaey"), "x\\u202ey" },              /* right-to-left override */
        { PAWL_STR("x\xe2\x81\xa6y"), "x\\u2066y" },              /* isolate */
        { PAWL_STR("\xef\xbb\xbfx"), "\\ufeffx" },                /* byte order mark */
        { PAWL_STR("\xff\xfe"), "\\xff\\xfe" },                   /* never UTF-8 */
        { PAWL_STR("\xc0\xaf"), "\\xc0\\xaf" },                   /* overlong */
        { PAWL_STR("\xe0\x80\xaf"), "\\xe0\\x80\\xaf" },          /* overlong */
        { PAWL_STR("\xed\xa0\x80"), "\\xed\\xa0\\x80" },          /* a surrogate */
        { PAWL_STR("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80" }, /* beyond the last */
        { PAWL_STR("cut\xe2\x82"), "cut\\xe2\\x82" },             /* ends inside a sequence */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(PAWL_SHOW(rows[i].name), rows[i].shown);
}

/* Goal: what is too long keeps both ends, fits, and is cut neither inside an escape nor inside a sequence. */
static void
long_names_are_cut_in_the_middle(void **state)
{
    (void)state;
    char name[2000];
    char text[64];
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = (char)('a' + i % 26);
    assert_int_equal(strlen(PAWL_SHOW(pawl_str_make(name, 200))), 200); /* whole */
    const char *shown = PAWL_SHOW(pawl_str_make(name, 2000));
    assert_in_range(strlen(shown), 150, 202);
    assert_non_null(strstr(shown, "..."));
    assert_memory_equal(shown, name, 90);
    assert_memory_equal(shown + strlen(shown) - 90, name + sizeof name - 90, 90);

    /* pieces of 1 to 10 shown bytes, for every size of the room */
    const char *const units[] = { "\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff", "\xe2\x80\xae" };
    const char *const pieces[] = { "\\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\\xff", "\\u202e" };
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t len = 0;
        while (len + 4 < 400) {
            memcpy(name + len, units[u], strlen(units[u]));
            len += strlen(units[u]);
        }
        for (size_t size = 1; size <= sizeof text; size++) {
            memset(text, '#', sizeof text);
            pawl_show_into(text, size, pawl_str_make(name, len));
            size_t at = 0;
            assert_in_range(strlen(text), 0, size - 1);
            unsigned marks = 0;
            while (text[at] != '\0') {
                size_t piece = strlen(pieces[u]);
                if (strncmp(text + at, "...", 3) == 0) {
                    marks++;
                    at += 3;
                } else {
                    assert_memory_equal(text + at, pieces[u], piece);
                    at += piece;
                }
            }
            assert_in_range(marks, 0, 1);
            if (size > 24)
                assert_int_equal(marks, 1);
            for (size_t i = size; i < sizeof text; i++)
                assert_int_equal(text[i], '#');
        }
    }
}

/* ---- filling errors ---- */

static void
a_failure_fills_all_and_forgets_the_last(void **state)
{
    (void)state;
    assert_int_equal(pawl_fail_at(&err, PAWL_CORRUPT, "overlap", 17, "expected %d, found %d", 1, 2), PAWL_CORRUPT);
    pawl_error_path(&err, PAWL_STR("first"));
    pawl_error_path(&err, PAWL_STR("second")); /* the one nearest to the fault stays */
    pawl_error_tensor(&err, PAWL_STR("fc\n"));
    pawl_error_hint(&err, "try %s", "this");
    assert_int_equal(err.status, PAWL_CORRUPT);
    assert_string_equal(err.code, "overlap");
    assert_string_equal(err.message, "expected 1, found 2");
    assert_string_equal(err.path, "first");
    assert_string_equal(err.tensor, "fc\\n");
    assert_string_equal(err.hint, "try this");
    assert_int_equal(err.offset, 17);
    assert_int_equal(pawl_fail(&err, PAWL_LIMIT, "limit", "other"), PAWL_LIMIT);
    assert_string_equal(err.path, "");
    assert_string_equal(err.tensor, "");
    assert_string_equal(err.hint, "");
    assert_true(err.offset == PAWL_OFFSET_NONE);
    assert_int_equal(err.system_errno, 0);
    assert_int_equal(pawl_fail_memory(&err, 123), PAWL_NO_MEMORY);
    assert_string_equal(err.message, "no memory for 123 bytes");
}

static void
nobody_needs_to_take_the_error(void **state)
{
    (void)state;
    assert_int_equal(pawl_fail(NULL, PAWL_LIMIT, "limit", "x"), PAWL_LIMIT);
    assert_int_equal(pawl_fail_at(NULL, PAWL_LIMIT, "limit", 1, "x"), PAWL_LIMIT);
    assert_int_equal(pawl_fail_os(NULL, ENOSPC, "x"), PAWL_NO_SPACE);
    assert_int_equal(pawl_fail_memory(NULL, 1), PAWL_NO_MEMORY);
    assert_int_equal(pawl_context(NULL, PAWL_IO, "x"), PAWL_IO);
    pawl_error_path(NULL, PAWL_STR("x"));
    pawl_error_tensor(NULL, PAWL_STR("x"));
    pawl_error_hint(NULL, "x");
    pawl_error_code(NULL, "x");
}

static void
errno_gives_the_status_the_code_and_the_text(void **state)
{
    (void)state;
    const struct {
        int code;
        enum pawl_status status;
        const char *word;
        bool is_machine_fault;
    } rows[] = {
        { ENOSPC, PAWL_NO_SPACE, "no-space", true },
        { EDQUOT, PAWL_NO_SPACE, "no-space", true },
        { EACCES, PAWL_PERMISSION, "permission", true },
        { EPERM, PAWL_PERMISSION, "permission", true },
        { EROFS, PAWL_PERMISSION, "permission", true },
        { EMFILE, PAWL_NO_DESCRIPTORS, "no-descriptors", true },
        { ENFILE, PAWL_NO_DESCRIPTORS, "no-descriptors", true },
        { ENOMEM, PAWL_NO_MEMORY, "no-memory", true },
        { ETIMEDOUT, PAWL_TIME_OUT, "time-out", true },
        { EINTR, PAWL_INTERRUPTED, "interrupted", true },
        { ESTALE, PAWL_STALE, "io", true },
        { EWOULDBLOCK, PAWL_BUSY, "busy", true },
        { ENOENT, PAWL_NO_FILE, "not-found", false },
        { ENOTDIR, PAWL_NO_FILE, "not-found", false },
        { EEXIST, PAWL_EXISTS, "exists", false },
        { EOPNOTSUPP, PAWL_UNSUPPORTED, "unsupported", false },
        { ENOSYS, PAWL_UNSUPPORTED, "unsupported", false },
        { EIO, PAWL_IO, "io", false },
        { EFBIG, PAWL_IO, "io", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[256];
        (void)snprintf(expected, sizeof expected, "write 'a': %s", strerror(rows[i].code));
        assert_int_equal(pawl_fail_os(&err, rows[i].code, "write '%s'", "a"), rows[i].status);
        assert_int_equal(err.status, rows[i].status);
        assert_int_equal(err.system_errno, rows[i].code);
        assert_string_equal(err.code, rows[i].word);
        assert_string_equal(err.message, expected);
        assert_int_equal(pawl_status_is_machine_fault(rows[i].status), rows[i].is_machine_fault);
    }
}

static void
context_goes_in_front(void **state)
{
    (void)state;
    (void)pawl_fail_os(&err, EIO, "sync directory '/ckpt'");
    assert_int_equal(pawl_context(&err, PAWL_IO, "publish step %d", 900), PAWL_IO);
    assert_string_equal(err.message, "publish step 900: sync directory '/ckpt': Input/output error");
    assert_string_equal(err.code, "io");
    assert_int_equal(err.system_errno, EIO);
    assert_int_equal(pawl_context(&err, PAWL_OK, "nothing"), PAWL_OK);
    assert_string_equal(err.message, "publish step 900: sync directory '/ckpt': Input/output error");
}

/* Goal: a text that does not fit is cut with a mark, terminated, and never inside a UTF-8 sequence. */
static void
long_messages_are_cut_with_a_mark(void **state)
{
    (void)state;
    char text[1500];
    for (size_t shift = 0; shift < 4; shift++) {
        size_t len = shift;
        memset(text, 'x', shift);
        while (len + 4 < sizeof text) {
            memcpy(text + len, "\xf0\x9f\x98\x80", 4);
            len += 4;
        }
        text[len] = '\0';
        (void)pawl_fail(&err, PAWL_LIMIT, "limit", "%s", text);
        size_t n = strlen(err.message);
        assert_in_range(n, sizeof err.message - 8, sizeof err.message - 1);
        assert_string_equal(err.message + n - 3, "...");
        assert_int_equal((n - 3 - shift) % 4, 0);
        assert_memory_equal(err.message, text, n - 3);
        (void)pawl_context(&err, PAWL_LIMIT, "front");
        assert_memory_equal(err.message, "front: ", 7);
        n = strlen(err.message);
        assert_string_equal(err.message + n - 3, "...");
        (void)pawl_fail_os(&err, EIO, "%s", text); /* no room for the system's text: still terminated */
        assert_in_range(strlen(err.message), 1, sizeof err.message - 1);
    }
    memset(text, 'y', sizeof text);
    text[sizeof err.message - 1] = '\0';
    (void)pawl_fail(&err, PAWL_LIMIT, "limit", "%s", text);
    assert_string_equal(err.message, text); /* exactly fits: not cut */
    (void)pawl_fail(&err, PAWL_LIMIT, text, "x");
    assert_int_equal(strlen(err.code), sizeof err.code - 1);
}

static void
every_status_has_a_name(void **state)
{
    (void)state;
    for (int status = 0; status <= PAWL_LIMIT; status++) {
        assert_string_not_equal(pawl_status_name((enum pawl_status)status), "unknown");
        assert_string_not_equal(pawl_code_of_status((enum pawl_status)status), "");
    }
    assert_string_equal(pawl_status_name(PAWL_NONE_COMPLETE), "none-complete");
    assert_string_equal(pawl_status_name(PAWL_LIMIT), "limit");
    assert_string_equal(pawl_status_name((enum pawl_status)(PAWL_LIMIT + 1)), "unknown");
    assert_string_equal(pawl_code_of_status(PAWL_CORRUPT), "content");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shown_names_cannot_disturb_a_terminal),
        cmocka_unit_test(long_names_are_cut_in_the_middle),
        cmocka_unit_test(a_failure_fills_all_and_forgets_the_last),
        cmocka_unit_test(nobody_needs_to_take_the_error),
        cmocka_unit_test(errno_gives_the_status_the_code_and_the_text),
        cmocka_unit_test(context_goes_in_front),
        cmocka_unit_test(long_messages_are_cut_with_a_mark),
        cmocka_unit_test(every_status_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
