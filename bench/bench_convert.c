/*
 * bench_convert [--json] [MIB]: speed of every conversion and variant, beside memcpy of
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

/* One line of the table, or the variants' objects of one conversion. */
static void
run_conversion(const struct buffers *b, const char *where, enum pawl_dtype dtype, enum job job, bool as_json)
{
    const size_t plain = b->n * 4, moved = plain + b->n * pawl_dtype_bits(dtype) / 8;
    const size_t copied =
        moved / 2 < plain ? moved / 2 : plain; /* F64 moves more than the F32 buffer holds: scaled below */
    const char *name = pawl_dtype_name(dtype), *verb = job == JOB_ENCODE ? "encode" : "decode";
    if (!as_json)
        printf("%-12s %-7s", name, verb);
    fill(b);
    for (int v = 0; v < PAWL_CONVERT_VARIANTS; v++) {
        enum pawl_convert_variant variant = (enum pawl_convert_variant)v;
        if (!pawl_convert_has(variant))
            continue;
        /* the copy below overwrites the codes */
        if (pawl_encode_f32(dtype, PAWL_OVERFLOW_FORMAT, b->values, b->n, b->codes, NULL, NULL) != PAWL_OK)
            abort();
        double took = measure(b, job, variant, dtype, 0);
        double copy_took = measure(b, JOB_COPY, variant, dtype, copied) * (double)moved / (2 * (double)copied);
        double gb_per_s = (double)moved / took * 1e-9;
        if (as_json)
            printf("{\"where\": \"%s\", \"values\": %zu, \"dtype\": \"%s\", \"job\": \"%s\", \"variant\": \"%s\", "
                   "\"gb_per_s\": %.3f, \"of_memcpy\": %.3f}\n",
                   where, b->n, name, verb, pawl_convert_variant_name(variant), gb_per_s, copy_took / took);
        else
            printf(" %15.2f    (%5.2f)   ", gb_per_s, copy_took / took);
    }
    if (!as_json)
        printf("\n");
}

static void
run_size(const struct buffers *b, const char *where, bool as_json)
{
    if (!as_json) {
        printf("%zu values, %s\n%-20s", b->n, where, "");
        for (int v = 0; v < PAWL_CONVERT_VARIANTS; v++) {
            if (pawl_convert_has((enum pawl_convert_variant)v))
                printf(" %10s GB/s (of memcpy)", pawl_convert_variant_name((enum pawl_convert_variant)v));
        }
        printf("\n");
    }
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
        run_conversion(b, where, dtypes[d], JOB_ENCODE, as_json);
        if (dtypes[d] != PAWL_F64)
            run_conversion(b, where, dtypes[d], JOB_DECODE, as_json);
    }
}

int
main(int argc, char **argv)
{
    bool as_json = argc > 1 && strcmp(argv[1], "--json") == 0;
    int at = as_json ? 2 : 1;
    size_t mib = argc > at ? (size_t)strtoul(argv[at], NULL, 10) : 256;
    if (mib < 1 || mib > 65536 || argc > at + 1) {
        fprintf(stderr, "usage: bench_convert [--json] [MIB]\n");
        return 2;
    }
    struct buffers large = { .n = mib << 18, .rounds = 5, .repeats = 1 };
    large.values = malloc(large.n * 4);
    large.codes = malloc(large.n * 8);
    if (large.values == NULL || large.codes == NULL) {
        fprintf(stderr, "bench_convert: no memory for %zu MiB\n", 3 * mib);
        free(large.values);
        free(large.codes);
        return 1;
    }
    memset(large.codes, 1, large.n * 8);
    if (!as_json)
        printf("this machine's best variant: %s\n", pawl_convert_variant_name(pawl_convert_best()));
    struct buffers small = large;
    small.n = 32768;
    small.rounds = 30;
    small.repeats = 20;
    run_size(&small, "in cache", as_json);
    run_size(&large, "in memory", as_json);
    free(large.values);
    free(large.codes);
    return 0;
}
