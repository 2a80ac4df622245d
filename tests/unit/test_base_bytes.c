/* Checked arithmetic, the cursor, the buffer, the arena, strings: at their edges. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/cursor.h"

static void
arithmetic_says_when_it_would_wrap(void **state)
{
    (void)state;
    uint64_t r = 7;
    size_t s = 7;
    assert_true(pawl_add_u64(UINT64_MAX - 1, 1, &r));
    assert_true(r == UINT64_MAX);
    r = 7;
    assert_false(pawl_add_u64(UINT64_MAX, 1, &r));
    assert_false(pawl_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &r));
    assert_false(pawl_mul_u64(3, UINT64_MAX / 3 + 1, &r));
    assert_true(r == 7); /* untouched */
    assert_true(pawl_mul_u64(3, UINT64_MAX / 3, &r));
    assert_true(r == UINT64_MAX);
    assert_true(pawl_mul_u64(0, UINT64_MAX, &r));
    assert_true(r == 0);
    assert_true(pawl_mul_u64(UINT64_MAX, 0, &r));
    assert_false(pawl_add_size(SIZE_MAX, 1, &s));
    assert_false(pawl_mul_size(SIZE_MAX, 2, &s));
    assert_int_equal(s, 7);
    assert_true(pawl_round_up_u64(0, 8, &r));
    assert_true(r == 0);
    assert_true(pawl_round_up_u64(8, 8, &r));
    assert_true(r == 8);
    assert_true(pawl_round_up_u64(9, 8, &r));
    assert_true(r == 16);
    assert_false(pawl_round_up_u64(UINT64_MAX, 8, &r));
    assert_true(pawl_round_up_u64(UINT64_MAX - 7, 8, &r));
}

/* Each take has all of it or nothing: after a refusal the cursor stands where it stood. */
static void
the_cursor_never_leaves_its_bytes(void **state)
{
    (void)state;
    const unsigned char bytes[15] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff };
    struct pawl_cursor cursor = pawl_cursor_make(bytes, sizeof bytes);
    uint8_t a = 0;
    uint16_t b = 0;
    uint32_t c = 0;
    uint64_t d = 0;
    const unsigned char *taken = NULL;
    assert_true(pawl_cursor_u8(&cursor, &a));
    assert_true(pawl_cursor_u16le(&cursor, &b));
    assert_true(pawl_cursor_u32le(&cursor, &c));
    assert_int_equal(a, 1);
    assert_int_equal(b, 0x0302);
    assert_int_equal(c, 0x07060504);
    assert_int_equal(cursor.offset, 7);
    assert_false(pawl_cursor_take(&cursor, 9, &taken));
    assert_false(pawl_cursor_take(&cursor, SIZE_MAX, &taken));
    assert_null(taken);
    assert_int_equal(cursor.offset, 7);
    assert_int_equal(pawl_cursor_left(&cursor), 8);
    assert_true(pawl_cursor_u64le(&cursor, &d));
    assert_true(d == UINT64_C(0xff0e0d0c0b0a0908));
    assert_int_equal(pawl_cursor_left(&cursor), 0);
    assert_false(pawl_cursor_u8(&cursor, &a));
    assert_true(pawl_cursor_take(&cursor, 0, &taken));
    for (size_t n = 0; n < 8; n++) {
        struct pawl_cursor part = pawl_cursor_make(bytes, n);
        assert_false(pawl_cursor_u64le(&part, &d));
        assert_int_equal(part.offset, 0);
        assert_int_equal(pawl_cursor_u32le(&part, &c), n >= 4);
    }
    struct pawl_cursor none = pawl_cursor_make(NULL, 0);
    assert_int_equal(pawl_cursor_left(&none), 0);
    assert_true(pawl_cursor_take(&none, 0, &taken));
    assert_false(pawl_cursor_take(&none, 1, &taken));
    unsigned char stored[8];
    pawl_put_u64le(stored, UINT64_C(0x8877665544332211));
    assert_int_equal(stored[0], 0x11);
    assert_int_equal(stored[7], 0x88);
    assert_true(pawl_get_u64le(stored) == UINT64_C(0x8877665544332211));
    pawl_put_u32le(stored, 0xdeadbeef);
    assert_true(pawl_get_u32le(stored) == 0xdeadbeef);
}

static void
a_buffer_that_failed_stays_failed(void **state)
{
    (void)state;
    struct pawl_buffer buffer = PAWL_BUFFER_INIT;
    assert_true(pawl_buffer_add(&buffer, NULL, 0));
    assert_true(pawl_buffer_add_z(&buffer, "abc"));
    assert_true(pawl_buffer_add_char(&buffer, '\0'));
    assert_true(pawl_buffer_add_str(&buffer, PAWL_STR("d\0e")));
    assert_true(pawl_buffer_printf(&buffer, "%05d", 42));
    assert_true(pawl_buffer_printf(&buffer, "%s", ""));
    assert_int_equal(buffer.len, 12);
    assert_memory_equal(buffer.data, "abc\0d\0e00042", 12);
    assert_true(pawl_buffer_terminate(&buffer));
    assert_int_equal(buffer.len, 12);
    assert_int_equal(buffer.data[12], '\0');
    assert_false(pawl_buffer_reserve(&buffer, SIZE_MAX)); /* would wrap */
    assert_false(pawl_buffer_ok(&buffer));
    assert_false(pawl_buffer_add_z(&buffer, "x"));
    assert_int_equal(buffer.len, 12);
    assert_memory_equal(buffer.data, "abc\0d\0e00042", 12);
    pawl_buffer_clear(&buffer);
    assert_true(pawl_buffer_ok(&buffer));
    assert_true(pawl_buffer_add_z(&buffer, "y"));
    assert_int_equal(buffer.len, 1);
    pawl_buffer_release(&buffer);
    pawl_buffer_release(&buffer);
    assert_null(buffer.data);
}

/* Growth by every step: nothing is lost when the memory moves. */
static void
a_buffer_keeps_its_bytes_while_growing(void **state)
{
    (void)state;
    struct pawl_buffer buffer = PAWL_BUFFER_INIT;
    for (size_t i = 0; i < 5000; i++)
        assert_true(pawl_buffer_printf(&buffer, "%04zu", i));
    assert_int_equal(buffer.len, 20000);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(strtol((char[]){ buffer.data[4 * i], buffer.data[4 * i + 1], buffer.data[4 * i + 2],
                                          buffer.data[4 * i + 3], '\0' },
                                NULL, 10),
                         (long)i);
    pawl_buffer_release(&buffer);
}

/* Goal: takes are aligned, apart from each other, and stay where they are while more are taken. */
static void
arena_memory_is_apart_and_stays(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    unsigned char *takes[600];
    size_t sizes[600];
    for (size_t i = 0; i < 600; i++) {
        sizes[i] = i % 97 == 5 ? 3 << 20 : i * 37 % 5000; /* some larger than a block can be */
        takes[i] = pawl_arena_take(&arena, sizes[i]);
        assert_non_null(takes[i]);
        assert_int_equal((uintptr_t)takes[i] % _Alignof(max_align_t), 0);
        memset(takes[i], (int)(i % 251), sizes[i]);
    }
    for (size_t i = 0; i < 600; i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            if (takes[i][k] != i % 251)
                fail_msg("take %zu was overwritten at %zu", i, k);
        }
    }
    size_t asked = 0;
    for (size_t i = 0; i < 600; i++)
        asked += sizes[i];
    assert_in_range(arena.bytes_total, asked, asked + asked / 2 + ((size_t)4 << 20));
    assert_null(pawl_arena_take(&arena, SIZE_MAX));
    assert_null(pawl_arena_take_array(&arena, SIZE_MAX / 2, 3));
    struct pawl_str copy = { NULL, 0 };
    assert_true(pawl_arena_copy_str(&arena, PAWL_STR("a\0b"), &copy));
    assert_int_equal(copy.len, 3);
    assert_memory_equal(copy.data, "a\0b", 4);
    assert_false(pawl_arena_copy_str(&arena, pawl_str_make("", SIZE_MAX), &copy));
    pawl_arena_release(&arena);
    pawl_arena_release(&arena);
    assert_null(arena.newest);
    assert_int_equal(arena.bytes_total, 0);
}

static void
strings_compare_as_unsigned_bytes(void **state)
{
    (void)state;
    assert_true(pawl_str_compare(PAWL_STR("a"), PAWL_STR("b")) < 0);
    assert_true(pawl_str_compare(PAWL_STR("\x80"), PAWL_STR("z")) > 0);
    assert_true(pawl_str_compare(PAWL_STR("a"), PAWL_STR("a\0")) < 0);
    assert_int_equal(pawl_str_compare(PAWL_STR("a\0x"), PAWL_STR("a\0x")), 0);
    assert_true(pawl_str_compare(pawl_str_z(NULL), PAWL_STR("a")) < 0);
    assert_int_equal(pawl_str_compare(pawl_str_make(NULL, 0), pawl_str_make(NULL, 0)), 0);
    assert_true(pawl_str_equal(pawl_str_make(NULL, 0), PAWL_STR("")));
    assert_false(pawl_str_equal(PAWL_STR("a\0b"), PAWL_STR("a\0c")));
    assert_true(pawl_str_starts(PAWL_STR("step-5"), PAWL_STR("step-")));
    assert_false(pawl_str_starts(PAWL_STR("step"), PAWL_STR("step-")));
    assert_true(pawl_str_ends(PAWL_STR("a.tmp"), PAWL_STR(".tmp")));
    assert_false(pawl_str_ends(PAWL_STR("tmp"), PAWL_STR(".tmp")));
    char *copy = pawl_str_dup(PAWL_STR("a\0b"));
    assert_non_null(copy);
    assert_memory_equal(copy, "a\0b", 4);
    free(copy);
    assert_null(pawl_str_dup(pawl_str_make("", SIZE_MAX)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_says_when_it_would_wrap), cmocka_unit_test(the_cursor_never_leaves_its_bytes),
        cmocka_unit_test(a_buffer_that_failed_stays_failed),  cmocka_unit_test(a_buffer_keeps_its_bytes_while_growing),
        cmocka_unit_test(arena_memory_is_apart_and_stays),    cmocka_unit_test(strings_compare_as_unsigned_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
