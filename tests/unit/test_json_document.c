/* json/json_document.c and name_table.c: trees, repeated keys, and names that collide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "formats/json/json.h"
#include "formats/json/name_table.h"
#include "unit/st_tools.h"

static enum pawl_status
parse(struct pawl_arena *arena, struct pawl_str text, const struct pawl_json_value **ret_value, struct pawl_error *err)
{
    return pawl_json_parse(arena, text.data, text.len, 0, ret_value, err);
}

static void
a_tree(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *root;
    struct pawl_str text = PAWL_STR("{\"a\":[1,{\"b\":\"x\\ty\"},[]],\"c\":null,\"\\u0064\":-2.5}");
    assert_int_equal(parse(&arena, text, &root, NULL), PAWL_OK);
    assert_int_equal(root->type, PAWL_JSON_OBJECT);
    assert_int_equal(root->n, 3);
    const struct pawl_json_value *a = pawl_json_member(root, PAWL_STR("a"));
    assert_ptr_equal(a, &root->first[0]);
    assert_int_equal(a->n, 3);
    assert_int_equal(a->offset, 5);
    assert_true(pawl_str_equal(a->first[0].text, PAWL_STR("1")));
    const struct pawl_json_value *b = pawl_json_member(&a->first[1], PAWL_STR("b"));
    assert_true(pawl_str_equal(b->text, PAWL_STR("x\ty")));
    assert_int_equal(a->first[2].type, PAWL_JSON_ARRAY);
    assert_int_equal(a->first[2].n, 0);
    assert_null(a->first[2].first);
    assert_int_equal(a->first[2].key.len, 0);
    assert_int_equal(pawl_json_member(root, PAWL_STR("c"))->type, PAWL_JSON_NULL);
    assert_true(pawl_json_f64(pawl_json_member(root, PAWL_STR("d"))->text) == -2.5);
    assert_null(pawl_json_member(root, PAWL_STR("")));
    assert_null(pawl_json_member(a, PAWL_STR("a")));
    assert_null(pawl_json_member(NULL, PAWL_STR("a")));
    pawl_arena_release(&arena);
}

/* Strings of the tree outlive the text. */
static void
text_may_go(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *root;
    char text[] = "{\"key\":\"value\",\"n\":12}";
    assert_int_equal(parse(&arena, pawl_str_make(text, sizeof text - 1), &root, NULL), PAWL_OK);
    memset(text, '?', sizeof text);
    assert_true(pawl_str_equal(pawl_json_member(root, PAWL_STR("key"))->text, PAWL_STR("value")));
    assert_true(pawl_str_equal(pawl_json_member(root, PAWL_STR("n"))->text, PAWL_STR("12")));
    pawl_arena_release(&arena);
}

/* An object of n members in which, when `repeat` < n, the last has the key of that one, spelt with an escape. */
static struct pawl_str
object_of(size_t n, size_t repeat)
{
    char *text = malloc(n * 24 + 32);
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "{");
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n && repeat < n)
            at += (size_t)sprintf(text + at, "\"\\u006b%zu\":0", repeat);
        else
            at += (size_t)sprintf(text + at, "\"k%zu\":0,", i);
    }
    if (text[at - 1] == ',')
        at--;
    text[at++] = '}';
    return pawl_str_make(text, at);
}

/*
 * Goal: a repeated key is found in small objects (compared) and large ones (by the table), escapes resolved, and the error
 * is at the second. Method: sizes around the change-over, the first, a middle and the last key repeated.
 */
static void
repeated_keys(void **state)
{
    (void)state;
    static const size_t SIZES[] = { 2, 3, 15, 16, 17, 18, 1000, 50000 };
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        size_t n = SIZES[i];
        const size_t repeats[] = { 0, n / 2, n - 2, n };
        for (size_t k = 0; k < 4; k++) {
            if (repeats[k] == n - 1)
                continue;
            struct pawl_arena arena = PAWL_ARENA_INIT;
            struct pawl_str text = object_of(n, repeats[k]);
            const struct pawl_json_value *root = NULL;
            struct pawl_error err = PAWL_ERROR_INIT;
            enum pawl_status st = parse(&arena, text, &root, &err);
            if (repeats[k] == n) {
                assert_int_equal(st, PAWL_OK);
                assert_int_equal(root->n, n);
            } else {
                char message[100];
                snprintf(message, sizeof message, "the key \"k%zu\" stands twice in one object", repeats[k]);
                assert_int_equal(st, PAWL_CORRUPT);
                assert_string_equal(err.code, "duplicate-key");
                assert_string_equal(err.message, message);
                assert_int_equal(err.offset, text.len - 2); /* the value 0 */
                assert_null(root);
            }
            pawl_arena_release(&arena);
            free((char *)text.data);
        }
    }
}

/*
 * Goal: the document and the tokenizer answer the same to the same text. Method: every row of five of these pieces,
 * a quarter of a million texts; what only the document refuses is a repeated key.
 */
static void
document_agrees_with_tokenizer(void **state)
{
    (void)state;
    static const char *const PIECES[] = { "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "1", " ", "nul", "l" };
    enum { N = sizeof PIECES / sizeof PIECES[0], LENGTH = 5 };
    size_t good = 0;
    unsigned digits[LENGTH] = { 0 };
    for (;;) {
        char text[64] = "";
        for (size_t i = 0; i < LENGTH; i++)
            strcat(text, PIECES[digits[i]]);
        struct pawl_json_reader reader;
        struct pawl_json_token token = { .type = PAWL_JSON_NULL };
        struct pawl_arena arena = PAWL_ARENA_INIT;
        const struct pawl_json_value *root;
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_error document_err = PAWL_ERROR_INIT;
        enum pawl_status st = pawl_json_begin(&reader, text, strlen(text), 0, &err);
        while (st == PAWL_OK && token.type != PAWL_JSON_END)
            st = pawl_json_next(&reader, &token, &err);
        enum pawl_status document_st = parse(&arena, pawl_str_z(text), &root, &document_err);
        if (strcmp(document_err.code, "duplicate-key") != 0) {
            if (st != document_st || strcmp(err.message, document_err.message) != 0 ||
                err.offset != document_err.offset)
                fail_msg("%s: '%s' and '%s'", text, err.message, document_err.message);
        }
        good += document_st == PAWL_OK;
        pawl_arena_release(&arena);
        pawl_json_release(&reader);
        size_t i = 0;
        while (i < LENGTH && ++digits[i] == N)
            digits[i++] = 0;
        if (i == LENGTH)
            break;
    }
    assert_true(good > 50);
}

/* ---- the table of names ---- */

/* What `same` was told. */
struct seen {
    size_t calls;
    size_t last_a, last_b;
};

static size_t
keep_later(void *context, size_t a, size_t b)
{
    struct seen *seen = context;
    seen->calls++;
    seen->last_a = a;
    seen->last_b = b;
    return a > b ? a : b;
}

/* The inverse of the hash's multiplier, by Newton's iteration. */
static uint64_t
inverse(uint64_t m)
{
    uint64_t x = m;
    for (int i = 0; i < 6; i++)
        x *= 2 - m * x;
    return x;
}

/* The hash's last block before its finish, for 16-byte names: from a first block and a wanted state to the second block. */
static uint64_t
second_block(uint64_t first, uint64_t wanted)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const uint64_t im = inverse(m);
    uint64_t k = first * m;
    k ^= k >> 47;
    uint64_t h = (16 * m ^ k * m) * m;
    uint64_t mixed = (wanted * im ^ h) * im; /* k2 ^ k2 >> 47 */
    mixed ^= mixed >> 47;
    return mixed * im;
}

/*
 * Goal: who knows the hash can't make it slow. Method: 20,000 names of one and the same hash, made by running the hash
 * backwards: a table by hash alone takes 200,000,000 comparisons for them. The names are found, their neighbours are not, and
 * a repeated one is told. The work is seen by the table itself having gone over to sorting.
 */
static void
colliding_names(void **state)
{
    (void)state;
    enum { N = 20000 };
    char(*bytes)[16] = malloc(N * sizeof *bytes);
    struct pawl_str *names = malloc((N + 1) * sizeof *names);
    assert_non_null(bytes);
    assert_non_null(names);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t first = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
        pawl_put_u64le((unsigned char *)bytes[i], first);
        pawl_put_u64le((unsigned char *)bytes[i] + 8, second_block(first, 12345));
        names[i] = pawl_str_make(bytes[i], 16);
        assert_int_equal(pawl_name_hash(names[i]), pawl_name_hash(names[0]));
    }
    names[N] = names[77];
    struct pawl_name_table table;
    struct seen seen = { 0 };
    assert_int_equal(pawl_name_table_build(&table, names, sizeof *names, N, keep_later, &seen, NULL), PAWL_OK);
    assert_int_equal(table.index_bits, 0);
    assert_int_equal(seen.calls, 0);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(pawl_name_table_find(&table, names[i]), i);
    assert_int_equal(pawl_name_table_find(&table, pawl_str_make(bytes[0], 15)), PAWL_NAME_TABLE_NONE);
    pawl_name_table_release(&table);
    assert_int_equal(pawl_name_table_build(&table, names, sizeof *names, N + 1, keep_later, &seen, NULL), PAWL_OK);
    assert_int_equal(pawl_name_table_find(&table, names[77]), N);
    assert_int_equal(seen.last_a, 77);
    assert_int_equal(seen.last_b, N);
    pawl_name_table_release(&table);
    free(bytes);
    free(names);
}

/* Honest names stay with the hash, and are all found, in tables of every small size and a large one. */
static void
honest_names(void **state)
{
    (void)state;
    static char bytes[70000][12];
    static struct pawl_str names[70000];
    for (size_t i = 0; i < 70000; i++) {
        int n = snprintf(bytes[i], sizeof bytes[i], "w%zu", i);
        names[i] = pawl_str_make(bytes[i], (size_t)n);
    }
    for (size_t n = 0; n <= 70000; n = n < 70 ? n + 1 : n < 70000 ? 70000 : 70001) {
        struct pawl_name_table table;
        struct seen seen = { 0 };
        assert_int_equal(pawl_name_table_build(&table, names, sizeof *names, n, keep_later, &seen, NULL), PAWL_OK);
        assert_int_not_equal(table.index_bits, 0);
        assert_int_equal(seen.calls, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(pawl_name_table_find(&table, names[i]), i);
        if (n < 70000)
            assert_int_equal(pawl_name_table_find(&table, names[n]), PAWL_NAME_TABLE_NONE);
        assert_int_equal(pawl_name_table_find(&table, PAWL_STR("")), PAWL_NAME_TABLE_NONE);
        assert_int_equal(pawl_name_table_find(&table, PAWL_STR("w")), PAWL_NAME_TABLE_NONE);
        pawl_name_table_release(&table);
    }
}

/* Goal: a table follows its items to other places, hashed or sorted. Method: names in reverse, honest and colliding. */
static void
renumbered(void **state)
{
    (void)state;
    enum { N = 9000 };
    static unsigned char bytes[N][16];
    static struct pawl_str names[N];
    static size_t places[N];
    for (int collide = 0; collide < 2; collide++) {
        for (uint64_t i = 0; i < N; i++) {
            uint64_t first = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
            pawl_put_u64le(bytes[i], first);
            pawl_put_u64le(bytes[i] + 8, collide ? second_block(first, 777) : i);
            names[i] = pawl_str_make((const char *)bytes[i], 16);
            places[i] = N - 1 - i;
        }
        struct pawl_name_table table;
        struct seen seen = { 0 };
        assert_int_equal(pawl_name_table_build(&table, names, sizeof *names, N, keep_later, &seen, NULL), PAWL_OK);
        assert_int_equal(table.index_bits == 0, collide);
        pawl_name_table_renumber(&table, places, sizeof *places);
        for (size_t i = 0; i < N / 2; i++) {
            struct pawl_str swap = names[i];
            names[i] = names[N - 1 - i];
            names[N - 1 - i] = swap;
        }
        for (size_t i = 0; i < N; i++)
            assert_int_equal(pawl_name_table_find(&table, names[i]), i);
        pawl_name_table_release(&table);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree),          cmocka_unit_test(text_may_go),
        cmocka_unit_test(repeated_keys),   cmocka_unit_test(document_agrees_with_tokenizer),
        cmocka_unit_test(colliding_names), cmocka_unit_test(renumbered),
        cmocka_unit_test(honest_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
