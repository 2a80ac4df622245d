#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "codec/xxh64.h"

#define SANITY_BYTES 222
#define SANITY_SEED UINT64_C(2654435761)

/* The bytes that the reference's own check of itself hashes: the top bytes of a row of products. */
static void
make_sanity_bytes(unsigned char bytes[SANITY_BYTES])
{
    uint64_t word = SANITY_SEED;
    for (size_t i = 0; i < SANITY_BYTES; i++) {
        bytes[i] = (unsigned char)(word >> 56);
        word *= UINT64_C(11400714785074694797);
    }
}

/* Published with the algorithm: the check of the reference implementation, and texts that its documentation and bindings quote. */
static void
published_vectors(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        uint64_t seed, sum;
    } cases[] = {
        { 0, 0, UINT64_C(0xef46db3751d8e999) },
        { 0, SANITY_SEED, UINT64_C(0xac75fda2929b17ef) },
        { 1, 0, UINT64_C(0xe934a84adb052768) },
        { 1, SANITY_SEED, UINT64_C(0x5014607643a9b4c3) },
        { 4, 0, UINT64_C(0x9136a0dca57457ee) },
        { 14, 0, UINT64_C(0x8282dcc4994e35c8) },
        { 14, SANITY_SEED, UINT64_C(0xc3bd6bf63deb6df0) },
        { 222, 0, UINT64_C(0xb641ae8cb691c174) },
        { 222, SANITY_SEED, UINT64_C(0x20cb8ab7ae10c14a) },
    };
    unsigned char bytes[SANITY_BYTES];
    make_sanity_bytes(bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(pawl_xxh64(bytes, cases[i].bytes, cases[i].seed) == cases[i].sum);
    assert_true(pawl_xxh64("abc", 3, 0) == UINT64_C(0x44bc2cf5ad770999));
    assert_true(pawl_xxh64("Nobody inspects the spammish repetition", 39, 0) == UINT64_C(0xfbcea83c8a378bf1));
    assert_true(pawl_xxh64(NULL, 0, 0) == UINT64_C(0xef46db3751d8e999));
}

/* Goal: where the pieces are cut does not matter, nor that a sum was asked for on the way. Method: every pair of cuts of 222 bytes. */
static void
pieces_give_the_sum_of_the_whole(void **state)
{
    (void)state;
    unsigned char bytes[SANITY_BYTES];
    make_sanity_bytes(bytes);
    for (size_t a = 0; a <= SANITY_BYTES; a++) {
        for (size_t b = a; b <= SANITY_BYTES; b++) {
            struct pawl_xxh64 sum;
            pawl_xxh64_begin(&sum, 0);
            pawl_xxh64_update(&sum, bytes, a);
            assert_true(pawl_xxh64_finish(&sum) == pawl_xxh64(bytes, a, 0));
            pawl_xxh64_update(&sum, bytes + a, b - a);
            pawl_xxh64_update(&sum, bytes + b, SANITY_BYTES - b);
            assert_true(pawl_xxh64_finish(&sum) == UINT64_C(0xb641ae8cb691c174));
        }
    }
}

/* One flipped bit, anywhere, and the sum is another. */
static void
every_bit_counts(void **state)
{
    (void)state;
    unsigned char bytes[SANITY_BYTES];
    make_sanity_bytes(bytes);
    for (size_t i = 0; i < (size_t)SANITY_BYTES * 8; i++) {
        bytes[i / 8] ^= (unsigned char)(1U << i % 8);
        assert_true(pawl_xxh64(bytes, SANITY_BYTES, 0) != UINT64_C(0xb641ae8cb691c174));
        bytes[i / 8] ^= (unsigned char)(1U << i % 8);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(published_vectors),
                                        cmocka_unit_test(pieces_give_the_sum_of_the_whole),
                                        cmocka_unit_test(every_bit_counts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
