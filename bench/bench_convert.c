/*
 * bench_convert [MIB]: speed of every conversion and variant, beside memcpy of
 * the same number of bytes on the same machine, in turn in one run.
 *
 * A conversion reads and writes; its GB/s count both. The limit is memcpy that
 * moves as many bytes in all (half read, half written). Two sizes: one in the
 * second-level cache, which shows the kernel, and one of MIB MiB of F32 (256),
 * which shows the memory. Each figure is the best of several rounds, since
 * whatever else the machine does only slows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/convert.h"

static const enum pawl_dtype dtypes[] = { PAWL_F16,         PAWL_BF16,        PAWL_F8_E4M3, PAWL_F8_E5M2,
                                          PAWL_F8_E4M3FNUZ, PAWL_F8_E5M2FNUZ, PAWL_F8_E8M0, PAWL_F6_E2M3,
                                          PAWL_F6_E3M2,     PAWL_F4,          PAWL_F64 };

struct buffers {
    float *values;
    unsigned char *codes;
    size_t n;
    int rounds, repeats; /* best of rounds; repeats within one, for small n */
};

static double
now_s(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

enum job { JOB_ENCODE, JOB_DECODE, JOB_COPY };

/* Seconds of one pass over n elements. */
static double
measure(const struct buffers *b, enum job job, enum pawl_convert_variant variant, enum pawl_dtype dtype, size_t copied)
{
    double best = 1e30;
    for (int round = 0; round < b->rounds; round++) {
        double begin = now_s();
        for (int i = 0; i < b->repeats; i++) {
            enum pawl_status st = PAWL_OK;
            if (job == JOB_COPY)
                memcpy(b->codes, b->values, copied);
            else if (job == JOB_ENCODE)
                st = pawl_encode_f32_by(variant, dtype, PAWL_OVERFLOW_FORMAT, b->values, b->n, b->codes, NULL, NULL);
            else
                st = pawl_decode_f32_by(variant, dtype, b->codes, b->n, b->values, NULL);
            if (st != PAWL_OK)
                abort();
            __asm__ volatile("" : : "r"(b->codes), "r"(b->values) : "memory"); /* a copy nobody reads stays */
        }
        double took = (now_s() - begin) / b->repeats;
        best = took < best ? took : best;
    }
    return best;
}

static void
fill(const struct buffers *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->values[i] = 0.001f + (float)(i * 2654435761u % 4096) /
                                    1024.0f; /* in range everywhere, subnormals of F8 and F6 among them */
}

static void
run_size(struct buffers *b, const char *where)
{
    printf("%zu values, %s\n%-12s %-7s", b->n, where, "dtype", "");
    for (int v = 0; v < PAWL_CONVERT_VARIANTS; v++)
        printf(" %10s GB/s (of memcpy)", pawl_convert_variant_name((enum pawl_convert_variant)v));
    printf("\n");
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
        size_t moved = b->n * 4 + b->n * pawl_dtype_bits(dtypes[d]) / 8;
        for (int job = JOB_ENCODE; job <= JOB_DECODE; job++) {
            if (job == JOB_DECODE && dtypes[d] == PAWL_F64)
                continue;
            fill(b);
            (void)pawl_encode_f32(dtypes[d], PAWL_OVERFLOW_FORMAT, b->values, b->n, b->codes, NULL, NULL);
            printf("%-12s %-7s", pawl_dtype_name(dtypes[d]), job == JOB_ENCODE ? "encode" : "decode");
            for (int v = 0; v < PAWL_CONVERT_VARIANTS; v++) {
                enum pawl_convert_variant variant = (enum pawl_convert_variant)v;
                if (!pawl_convert_has(variant))
                    continue;
                double took = measure(b, (enum job)job, variant, dtypes[d], 0);
                double copy_took =
                    measure(b, JOB_COPY, variant, dtypes[d], moved / 2 < b->n * 4 ? moved / 2 : b->n * 4);
                if (moved / 2 > b->n * 4)
                    copy_took *= (double)(moved / 2) / (double)(b->n * 4);
                /* the copy has overwritten the codes */
                (void)pawl_encode_f32(dtypes[d], PAWL_OVERFLOW_FORMAT, b->values, b->n, b->codes, NULL, NULL);
                printf(" %15.2f    (%5.2f)   ", (double)moved / took * 1e-9, copy_took / took);
            }
            printf("\n");
        }
    }
}

int
main(int argc, char **argv)
{
    size_t mib = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 256;
    if (mib < 1 || mib > 65536) {
        fprintf(stderr, "usage: bench_convert [MIB]\n");
        return 2;
    }
    struct buffers b = { .n = mib << 18 };
    b.values = malloc(b.n * 4);
    b.codes = malloc(b.n * 8);
    if (b.values == NULL || b.codes == NULL) {
        fprintf(stderr, "bench_convert: no memory for %zu MiB\n", 3 * mib);
        return 1;
    }
    memset(b.codes, 1, b.n * 8);
    printf("this machine's best variant: %s\n", pawl_convert_variant_name(pawl_convert_best()));
    struct buffers small = b;
    small.n = 32768;
    small.rounds = 30;
    small.repeats = 20;
    run_size(&small, "in cache");
    b.rounds = 5;
    b.repeats = 1;
    run_size(&b, "in memory");
    free(b.values);
    free(b.codes);
    return 0;
}
