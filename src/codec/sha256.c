#include "pawl/digest.h"

#include <stdlib.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/fail.h"

#if OPENSSL_VERSION_NUMBER < 0x30000000L
/* Before 3.0 a digest is a static table: nothing is fetched, nothing is freed. */
#define EVP_MD_fetch(library, name, properties) ((EVP_MD *)(uintptr_t)EVP_sha256())
#define EVP_MD_free(md) ((void)(md))
#endif

struct pawl_sha256 {
    EVP_MD *md; /* fetched once: a search through libcrypto's providers takes longer than hashing a page */
    EVP_MD_CTX *context;
};

/*
 * libcrypto answers, yet past the first init nothing here can go wrong: the
 * context keeps its memory, and update and final only refuse a context that was
 * never begun. Going on would write a digest of something else under every
 * promise of this library, so it is the one place that stops the process.
 */
static void
must(int answer)
{
    if (answer != 1)
        abort();
}

enum pawl_status
pawl_sha256_new(struct pawl_sha256 **ret_hash, struct pawl_error *err)
{
    struct pawl_sha256 *hash = calloc(1, sizeof(*hash));
    if (hash == NULL)
        return pawl_fail_memory(err, sizeof(*hash));

    enum pawl_status st = PAWL_OK;
    (void)ERR_set_mark(); /* the caller's queue of libcrypto errors stays as it was */
    hash->context = EVP_MD_CTX_new();
    if (hash->context == NULL) {
        st = pawl_fail(err, PAWL_NO_MEMORY, "no-memory", "no memory for a SHA-256 context of libcrypto");
        goto out;
    }
    hash->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (hash->md == NULL || EVP_DigestInit_ex(hash->context, hash->md, NULL) != 1) {
        if (ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE)
            st = pawl_fail(err, PAWL_NO_MEMORY, "no-memory", "no memory for SHA-256 of libcrypto");
        else
            st = pawl_fail(err, PAWL_UNSUPPORTED, "unsupported", "libcrypto offers no SHA-256");
        goto out;
    }
    *ret_hash = hash;
    hash = NULL;
out:
    (void)ERR_pop_to_mark();
    pawl_sha256_free(hash);
    return st;
}

void
pawl_sha256_update(struct pawl_sha256 *hash, const void *bytes, size_t n)
{
    must(EVP_DigestUpdate(hash->context, bytes, n));
}

void
pawl_sha256_finish(struct pawl_sha256 *hash, unsigned char ret_digest[32])
{
    must(EVP_DigestFinal_ex(hash->context, ret_digest, NULL));
    must(EVP_DigestInit_ex(hash->context, NULL, NULL)); /* the same digest, in the memory it has */
}

void
pawl_sha256_free(struct pawl_sha256 *hash)
{
    if (hash == NULL)
        return;
    EVP_MD_CTX_free(hash->context);
    EVP_MD_free(hash->md);
    free(hash);
}

enum pawl_status
pawl_sha256_of(const void *bytes, size_t n, unsigned char ret_digest[32], struct pawl_error *err)
{
    struct pawl_sha256 *hash = NULL;
    enum pawl_status st = pawl_sha256_new(&hash, err);
    if (st != PAWL_OK)
        return st;
    pawl_sha256_update(hash, bytes, n);
    pawl_sha256_finish(hash, ret_digest);
    pawl_sha256_free(hash);
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
