/*
 * SHA-256 by libcrypto's block functions, which pick SHA-NI, AVX2 or the ARM
 * instructions at run time, and not through EVP: EVP_DigestInit_ex() of OpenSSL
 * 3.0 frees and allocates the state at each start (measured), so finishing a
 * file could fail where no caller can do anything about it, and a digest must
 * never be wrong in silence. Here the state lies in the handle and only
 * pawl_sha256_new() needs memory. OpenSSL 3 marks these functions as deprecated
 * in favour of EVP; every release so far has them, as have LibreSSL, BoringSSL
 * and AWS-LC. Speed is the same: EVP calls the same block function.
 */
#include "codec/sha256_state.h"

#include <stdlib.h>
#include "base/fail.h"

/* Init, update and final of libcrypto return 1, always: they only compute. Anything else must not become a digest. */
static void
must(int answer)
{
    if (answer != 1)
        abort();
}

enum pawl_status
pawl_sha256_new(struct pawl_sha256 **ret_hash, struct pawl_error *err)
{
    struct pawl_sha256 *hash = malloc(sizeof(*hash));
    if (hash == NULL)
        return pawl_fail_memory(err, sizeof(*hash));
    must(SHA256_Init(&hash->context));
    *ret_hash = hash;
    return PAWL_OK;
}

void
pawl_sha256_update(struct pawl_sha256 *hash, const void *bytes, size_t n)
{
    must(SHA256_Update(&hash->context, bytes, n));
}

void
pawl_sha256_finish(struct pawl_sha256 *hash, unsigned char ret_digest[32])
{
    must(SHA256_Final(ret_digest, &hash->context));
    must(SHA256_Init(&hash->context));
}

void
pawl_sha256_free(struct pawl_sha256 *hash)
{
    free(hash);
}

enum pawl_status
pawl_sha256_of(const void *bytes, size_t n, unsigned char ret_digest[32], struct pawl_error *err)
{
    (void)err; /* a status for callers; here not even memory can be short */
    struct pawl_sha256 hash;
    must(SHA256_Init(&hash.context));
    pawl_sha256_update(&hash, bytes, n);
    pawl_sha256_finish(&hash, ret_digest);
    return PAWL_OK;
}

void
pawl_sha256_print(const unsigned char digest[32], char ret_hex[65])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 32; i++) {
        ret_hex[2 * i] = digits[digest[i] >> 4];
        ret_hex[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_hex[64] = '\0';
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool
pawl_sha256_parse(struct pawl_str hex, unsigned char ret_digest[32])
{
    unsigned char digest[32];
    if (hex.len != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        int high = hex_value(hex.data[2 * i]), low = hex_value(hex.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        digest[i] = (unsigned char)(high << 4 | low);
    }
    for (size_t i = 0; i < 32; i++)
        ret_digest[i] = digest[i];
    return true;
}
