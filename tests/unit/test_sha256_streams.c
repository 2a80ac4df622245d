/*
 * Goal: hashing several files at once gives each the digest that hashing it alone gives, whatever the lengths and however the bytes are cut,
 * and the two ways of updating can be mixed on one handle.
 *
 * Method: libcrypto's EVP, which shares no code with the kernels, is the oracle; all lengths around the block sizes, all ways that the
 * machine can go, cuts and contents from a printed seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <openssl/evp.h>

#include "codec/sha256_state.h"
#include "codec/sha256_streams.h"
#include "pawl/pcg32.h"

#define BYTES_MAX ((size_t)1 << 16)
#define HASHES_MAX 5

static unsigned char bytes[HASHES_MAX][BYTES_MAX];
static struct pawl_pcg32 rng;

static int
set_up(void **state)
{
    (void)state;
    const uint64_t seed = 20;
    print_message("seed %u\n", (unsigned)seed);
    pawl_pcg32_seed(&rng, seed, 1);
    for (size_t k = 0; k < HASHES_MAX; k++)
        for (size_t i = 0; i < BYTES_MAX; i++)
            bytes[k][i] = (unsigned char)pawl_pcg32_next(&rng);
    return 0;
}

static struct pawl_sha256 *
new_hash(void)
{
    struct pawl_sha256 *hash = NULL;
    assert_int_equal(pawl_sha256_new(&hash, NULL), PAWL_OK);
    return hash;
}

static void
expect_digest(struct pawl_sha256 *hash, const unsigned char *data, size_t n)
{
    unsigned char want[32], got[32];
    unsigned len = 0;
    assert_int_equal(EVP_Digest(data, n, want, &len, EVP_sha256(), NULL), 1);
    assert_int_equal(len, 32);
    pawl_sha256_finish(hash, got);
    assert_memory_equal(got, want, 32);
}

/* Every pair of lengths that differ by 0, 1, 63, 64, 65 or 200, from 0 to 300. */
static void
pairs_of_all_lengths(void)
{
    const size_t more[] = { 0, 1, 63, 64, 65, 200 };
    struct pawl_sha256 *a = new_hash(), *b = new_hash();
    for (size_t n = 0; n <= 300; n++) {
        for (size_t k = 0; k < sizeof more / sizeof more[0]; k++) {
            const struct pawl_sha256_span a_span = { bytes[0], n }, b_span = { bytes[1], n + more[k] };
            pawl_sha256_update_two(a, a_span, b, b_span);
            expect_digest(a, bytes[0], n);
            expect_digest(b, bytes[1], n + more[k]);
            pawl_sha256_update_two(a, b_span, b, a_span); /* the longer one first */
            expect_digest(a, bytes[1], n + more[k]);
            expect_digest(b, bytes[0], n);
        }
    }
    pawl_sha256_free(a);
    pawl_sha256_free(b);
}

/* Cut at random, together and alone in turn: partial blocks, counts of bits and states must go over from one to the other. */
static void
random_cuts(void)
{
    struct pawl_sha256 *a = new_hash(), *b = new_hash();
    for (int run = 0; run < 300; run++) {
        size_t total_a = pawl_pcg32_next(&rng) % BYTES_MAX, total_b = pawl_pcg32_next(&rng) % BYTES_MAX;
        size_t at_a = 0, at_b = 0;
        while (at_a < total_a || at_b < total_b) {
            size_t n_a = pawl_pcg32_next(&rng) % 5000, n_b = pawl_pcg32_next(&rng) % 5000;
            n_a = n_a < total_a - at_a ? n_a : total_a - at_a;
            n_b = n_b < total_b - at_b ? n_b : total_b - at_b;
            if (pawl_pcg32_next(&rng) % 4 == 0) {
                pawl_sha256_update(a, bytes[0] + at_a, n_a);
                pawl_sha256_update(b, bytes[1] + at_b, n_b);
            } else {
                pawl_sha256_update_two(a, (struct pawl_sha256_span){ bytes[0] + at_a, n_a }, b,
                                       (struct pawl_sha256_span){ bytes[1] + at_b, n_b });
            }
            at_a += n_a;
            at_b += n_b;
        }
        expect_digest(a, bytes[0], total_a);
        expect_digest(b, bytes[1], total_b);
    }
    pawl_sha256_free(a);
    pawl_sha256_free(b);
}

static void
groups_of_all_sizes(void)
{
    struct pawl_sha256 *hashes[HASHES_MAX];
    struct pawl_sha256_span spans[HASHES_MAX];
    for (size_t k = 0; k < HASHES_MAX; k++)
        hashes[k] = new_hash();
    for (int run = 0; run < 200; run++) {
        size_t n = (size_t)run % (HASHES_MAX + 1);
        for (size_t k = 0; k < n; k++)
            spans[k] = (struct pawl_sha256_span){ bytes[k], pawl_pcg32_next(&rng) % (run % 2 == 0 ? 300 : BYTES_MAX) };
        pawl_sha256_update_each(hashes, spans, n);
        for (size_t k = 0; k < n; k++)
            expect_digest(hashes[k], spans[k].data, spans[k].bytes);
    }
    for (size_t k = 0; k < HASHES_MAX; k++)
        pawl_sha256_free(hashes[k]);
}

/* The count of bits goes over 32 bits at 512 MiB: from right before it, as far as a file would be. */
static void
long_streams(void)
{
    struct pawl_sha256 *a = new_hash(), *b = new_hash(), *alone = new_hash();
    unsigned char want[32], got[32];
    struct pawl_sha256 *all[] = { a, b, alone };
    for (size_t i = 0; i < 3; i++) {
        all[i]->context.Nl = 0xffffffff - 511; /* one block before the carry */
        all[i]->context.Nh = 0;
    }
    pawl_sha256_update_two(a, (struct pawl_sha256_span){ bytes[0], 640 }, b,
                           (struct pawl_sha256_span){ bytes[0], 640 });
    pawl_sha256_update(alone, bytes[0], 640);
    pawl_sha256_finish(alone, want);
    pawl_sha256_finish(a, got);
    assert_memory_equal(got, want, 32);
    pawl_sha256_finish(b, got);
    assert_memory_equal(got, want, 32);
    for (size_t i = 0; i < 3; i++)
        pawl_sha256_free(all[i]);
}

/* Both spans end where no byte can be read any more. */
static void
nothing_behind_the_ends(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = 4 * page;
    unsigned char *maps[2];
    struct pawl_sha256 *a = new_hash(), *b = new_hash();
    for (int k = 0; k < 2; k++) {
        maps[k] = mmap(NULL, most + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(maps[k], MAP_FAILED);
        memcpy(maps[k], bytes[k], most);
        assert_int_equal(mprotect(maps[k] + most, page, PROT_NONE), 0);
    }
    for (size_t n = 64; n <= most; n += 64) {
        const struct pawl_sha256_span a_span = { maps[0] + most - n, n }, b_span = { maps[1] + most - n, n };
        pawl_sha256_update_two(a, a_span, b, b_span);
        expect_digest(a, a_span.data, n);
        expect_digest(b, b_span.data, n);
    }
    for (int k = 0; k < 2; k++)
        assert_int_equal(munmap(maps[k], most + page), 0);
    pawl_sha256_free(a);
    pawl_sha256_free(b);
}

static void
go(enum pawl_sha256_way way)
{
    if (!pawl_sha256_set_way(way)) {
        print_message("this machine has no such instructions\n");
        skip();
    }
    assert_int_equal(pawl_sha256_way(), way);
    pairs_of_all_lengths();
    random_cuts();
    groups_of_all_sizes();
    long_streams();
    nothing_behind_the_ends();
}

static void
one_by_one(void **state)
{
    (void)state;
    go(PAWL_SHA256_ONE_BY_ONE);
}

static void
two_by_sha_ni(void **state)
{
    (void)state;
    go(PAWL_SHA256_SHA_NI_2);
}

static void
two_by_armv8(void **state)
{
    (void)state;
    go(PAWL_SHA256_ARMV8_2);
}

static void
two_by_avx512(void **state)
{
    (void)state;
    go(PAWL_SHA256_AVX512_2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(two_by_sha_ni),
        cmocka_unit_test(two_by_armv8),
        cmocka_unit_test(two_by_avx512),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
