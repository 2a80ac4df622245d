#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <openssl/crypto.h>

#include "base/str.h"
#include "pawl/digest.h"

static void
expect_digest(const void *bytes, size_t n, const char *hex)
{
    unsigned char digest[32];
    char text[65];
    assert_int_equal(pawl_sha256_of(bytes, n, digest, NULL), PAWL_OK);
    pawl_sha256_print(digest, text);
    assert_string_equal(text, hex);
}

/* The examples of FIPS 180-4 and its million a's. */
static void
published_vectors(void **state)
{
    (void)state;
    expect_digest(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    assert_non_null(million);
    memset(million, 'a', 1000000);
    expect_digest(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/*
 * Goal: how the bytes come in does not matter, and finishing begins anew: a
 * handle is used for one file after another. Method: every cut of 200 bytes
 * (three blocks and a rest) in two, through one handle.
 */
static void
pieces_and_one_handle_many_times(void **state)
{
    (void)state;
    unsigned char bytes[200], want[32], got[32];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 7);
    assert_int_equal(pawl_sha256_of(bytes, sizeof(bytes), want, NULL), PAWL_OK);

    struct pawl_sha256 *hash = NULL;
    assert_int_equal(pawl_sha256_new(&hash, NULL), PAWL_OK);
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        pawl_sha256_update(hash, bytes, cut);
        pawl_sha256_update(hash, NULL, 0);
        pawl_sha256_update(hash, bytes + cut, sizeof(bytes) - cut);
        memset(got, 0, sizeof(got));
        pawl_sha256_finish(hash, got);
        assert_memory_equal(got, want, 32);
    }
    pawl_sha256_free(hash);
    pawl_sha256_free(NULL);
}

/* Two running hashes do not share a state. */
static void
handles_are_independent(void **state)
{
    (void)state;
    struct pawl_sha256 *a = NULL, *b = NULL;
    unsigned char digest[32];
    char text[65];
    assert_int_equal(pawl_sha256_new(&a, NULL), PAWL_OK);
    assert_int_equal(pawl_sha256_new(&b, NULL), PAWL_OK);
    pawl_sha256_update(a, "a", 1);
    pawl_sha256_update(b, "zzz", 3);
    pawl_sha256_update(a, "bc", 2);
    pawl_sha256_finish(b, digest);
    pawl_sha256_finish(a, digest);
    pawl_sha256_print(digest, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    pawl_sha256_free(a);
    pawl_sha256_free(b);
}

/* The linker sends every malloc of this program and of libpawl here (--wrap). */
static bool is_memory_short;
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *
__wrap_malloc(size_t n)
{
    return is_memory_short ? NULL : __real_malloc(n);
}

/* libcrypto's allocator, counted. */
static unsigned long allocations;

static void *
counted_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    allocations++;
    return malloc(n);
}

static void *
counted_realloc(void *old, size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    allocations++;
    return realloc(old, n);
}

static void
counted_free(void *old, const char *file, int line)
{
    (void)file;
    (void)line;
    free(old);
}

/*
 * Goal: update, finish and the hash in one call, which cannot fail, ask for no
 * memory; new says no-memory and leaves the caller's pointer alone. Method: let
 * libpawl's allocations fail and count libcrypto's.
 */
static void
only_new_needs_memory(void **state)
{
    (void)state;
    unsigned char digest[32];
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_sha256 *hash = NULL, *other = NULL;
    CRYPTO_free(CRYPTO_malloc(1, NULL, 0), NULL, 0);
    assert_true(allocations > 0); /* the counter counts */
    assert_int_equal(pawl_sha256_new(&hash, NULL), PAWL_OK);

    unsigned long before = allocations;
    is_memory_short = true;
    enum pawl_status st = pawl_sha256_new(&other, &err);
    for (int i = 0; i < 3; i++) {
        pawl_sha256_update(hash, "abc", 3);
        pawl_sha256_finish(hash, digest);
    }
    enum pawl_status of = pawl_sha256_of("abc", 3, digest, NULL);
    is_memory_short = false;

    assert_int_equal(st, PAWL_NO_MEMORY);
    assert_null(other);
    assert_string_equal(err.code, "no-memory");
    assert_int_equal(of, PAWL_OK);
    assert_int_equal(allocations, before);
    pawl_sha256_free(hash);
}

static void
printing_and_parsing(void **state)
{
    (void)state;
    unsigned char digest[32], back[32];
    char text[65];
    for (size_t i = 0; i < 32; i++)
        digest[i] = (unsigned char)(i * 8 + 1);
    pawl_sha256_print(digest, text);
    assert_string_equal(text, "0109111921293139414951596169717981899199a1a9b1b9c1c9d1d9e1e9f1f9");
    assert_true(pawl_sha256_parse(pawl_str_z(text), back));
    assert_memory_equal(back, digest, 32);

    /* every place refuses what is no lowercase hex digit: the neighbours of the digits' ranges, upper case, NUL */
    memset(back, 0x5a, 32);
    for (size_t i = 0; i < 64; i++) {
        const char wrong[] = { '/', ':', '`', 'g', 'A', 'F', ' ', '\0', (char)0xff };
        for (size_t w = 0; w < sizeof(wrong); w++) {
            char kept = text[i];
            text[i] = wrong[w];
            assert_false(pawl_sha256_parse(pawl_str_make(text, 64), back));
            text[i] = kept;
        }
    }
    assert_false(pawl_sha256_parse(pawl_str_make(text, 63), back));
    assert_false(pawl_sha256_parse(pawl_str_make(text, 65), back));
    assert_false(pawl_sha256_parse(pawl_str_make(NULL, 0), back));
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(back[i], 0x5a);
}

int
main(void)
{
    /* before libcrypto allocates anything: later it refuses */
    if (CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free) != 1)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),       cmocka_unit_test(pieces_and_one_handle_many_times),
        cmocka_unit_test(handles_are_independent), cmocka_unit_test(only_new_needs_memory),
        cmocka_unit_test(printing_and_parsing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
