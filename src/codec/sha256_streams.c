/*
 * Several hashes at once: libcrypto's state, advanced by kernels of our own
 * where two streams have whole blocks at the same time. Beginnings and ends
 * that are no whole block stay with libcrypto, so that there is one padding and
 * one count of bytes.
 */
#include "codec/sha256_streams.h"

#include <stdatomic.h>
#include <stdint.h>
#include "codec/sha256_kernels.h"
#include "codec/sha256_state.h"

#define BLOCK_BYTES ((size_t)64)

/* -1: not asked yet. Two threads that ask at once find the same. */
static atomic_int chosen = -1;

struct kernel {
    enum pawl_sha256_way way;
    bool (*can)(void);       /* NULL: the end of the table */
    bool (*is_faster)(void); /* than those behind it; asked after `can` */
    pawl_sha256_kernel_fn *go;
};

/* The fastest first. */
static const struct kernel KERNELS[] = {
#if defined(__x86_64__)
    { PAWL_SHA256_AVX512_2, pawl_sha256_avx512_can, pawl_sha256_avx512_is_faster, pawl_sha256_avx512 },
    { PAWL_SHA256_SHA_NI_2, pawl_sha256_sha_ni_can, pawl_sha256_sha_ni_can, pawl_sha256_sha_ni },
#elif defined(__AARCH64EL__) && defined(__linux__)
    { PAWL_SHA256_ARMV8_2, pawl_sha256_armv8_can, pawl_sha256_armv8_can, pawl_sha256_armv8 },
#endif
    { PAWL_SHA256_ONE_BY_ONE, NULL, NULL, NULL },
};

static const struct kernel *
kernel_of(enum pawl_sha256_way way)
{
    const struct kernel *kernel = KERNELS;
    while (kernel->can != NULL && kernel->way != way)
        kernel++;
    return kernel;
}

bool
pawl_sha256_can(enum pawl_sha256_way way)
{
    const struct kernel *kernel = kernel_of(way);
    return kernel->can != NULL ? kernel->can() : way == PAWL_SHA256_ONE_BY_ONE;
}

static enum pawl_sha256_way
best_way(void)
{
    const struct kernel *kernel = KERNELS;
    while (kernel->can != NULL && !(kernel->can() && kernel->is_faster()))
        kernel++;
    return kernel->way;
}

enum pawl_sha256_way
pawl_sha256_way(void)
{
    int way = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (way < 0) {
        way = (int)best_way();
        atomic_store_explicit(&chosen, way, memory_order_relaxed);
    }
    return (enum pawl_sha256_way)way;
}

const char *
pawl_sha256_way_name(enum pawl_sha256_way way)
{
    switch (way) {
    case PAWL_SHA256_ONE_BY_ONE:
        return "one-by-one";
    case PAWL_SHA256_SHA_NI_2:
        return "sha-ni-2";
    case PAWL_SHA256_ARMV8_2:
        return "armv8-2";
    case PAWL_SHA256_AVX512_2:
        return "avx512-2";
    }
    return NULL;
}

bool
pawl_sha256_set_way(enum pawl_sha256_way way)
{
    if (!pawl_sha256_can(way))
        return false;
    atomic_store_explicit(&chosen, (int)way, memory_order_relaxed);
    return true;
}

static struct pawl_sha256_span
behind(struct pawl_sha256_span span, size_t bytes)
{
    return (struct pawl_sha256_span){ (const unsigned char *)span.data + bytes, span.bytes - bytes };
}

/* Up to a whole number of blocks, as far as the span goes. */
static struct pawl_sha256_span
fill_block(struct pawl_sha256 *hash, struct pawl_sha256_span span)
{
    size_t missing = hash->context.num == 0 ? 0 : BLOCK_BYTES - hash->context.num;
    size_t n = span.bytes < missing ? span.bytes : missing;
    if (n == 0)
        return span;
    pawl_sha256_update(hash, span.data, n);
    return behind(span, n);
}

/* Blocks that a kernel took behind libcrypto's back, in its count of bits. */
static void
count_blocks(SHA256_CTX *context, size_t blocks)
{
    uint64_t bits = (uint64_t)context->Nh << 32 | context->Nl;
    bits += (uint64_t)blocks * BLOCK_BYTES * 8;
    context->Nl = (SHA_LONG)(bits & 0xffffffff);
    context->Nh = (SHA_LONG)(bits >> 32);
}

/* As many bytes of both as go together; what is left is in the spans. */
static void
take_common(pawl_sha256_kernel_fn *go, struct pawl_sha256 *a, struct pawl_sha256_span *a_span, struct pawl_sha256 *b,
            struct pawl_sha256_span *b_span)
{
    *a_span = fill_block(a, *a_span);
    *b_span = fill_block(b, *b_span);
    size_t blocks = (a_span->bytes < b_span->bytes ? a_span->bytes : b_span->bytes) / BLOCK_BYTES;
    if (blocks == 0)
        return;
    go(a->context.h, a_span->data, b->context.h, b_span->data, blocks);
    count_blocks(&a->context, blocks);
    count_blocks(&b->context, blocks);
    *a_span = behind(*a_span, blocks * BLOCK_BYTES);
    *b_span = behind(*b_span, blocks * BLOCK_BYTES);
}

static void
update_one(struct pawl_sha256 *hash, struct pawl_sha256_span span)
{
    if (span.bytes != 0)
        pawl_sha256_update(hash, span.data, span.bytes);
}

void
pawl_sha256_update_two(struct pawl_sha256 *a, struct pawl_sha256_span a_span, struct pawl_sha256 *b,
                       struct pawl_sha256_span b_span)
{
    pawl_sha256_kernel_fn *go = kernel_of(pawl_sha256_way())->go;
    if (go != NULL)
        take_common(go, a, &a_span, b, &b_span);
    update_one(a, a_span);
    update_one(b, b_span);
}

void
pawl_sha256_update_each(struct pawl_sha256 *const *hashes, const struct pawl_sha256_span *spans, size_t n)
{
    pawl_sha256_kernel_fn *go = kernel_of(pawl_sha256_way())->go;
    if (go != NULL && n > 1) {
        /* Two are in flight; the one with less than a block left is finished, and the next takes its place. */
        size_t a = 0;
        struct pawl_sha256_span a_span = spans[0];
        for (size_t b = 1; b < n; b++) {
            struct pawl_sha256_span b_span = spans[b];
            take_common(go, hashes[a], &a_span, hashes[b], &b_span);
            if (a_span.bytes >= b_span.bytes) {
                update_one(hashes[b], b_span);
                continue;
            }
            update_one(hashes[a], a_span);
            a = b;
            a_span = b_span;
        }
        update_one(hashes[a], a_span);
        return;
    }
    for (size_t i = 0; i < n; i++)
        update_one(hashes[i], spans[i]);
}
