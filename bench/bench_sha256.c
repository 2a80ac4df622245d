/*
 * How fast one core hashes: one stream by libcrypto, and two streams interleaved where the processor can.
 *
 *     bench_sha256 [--runs N] [--json]
 *
 * The ways take turns over the same 64 MiB, warm; medians.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/sha256_streams.h"

#define BYTES ((size_t)32 << 20)
#define PIECE ((size_t)1 << 20)
#define RUNS_MAX 101

static double
now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int
main(int argc, char **argv)
{
    int runs = 11;
    int is_json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = 1;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            runs = atoi(argv[++i]);
    }
    if (runs < 1 || runs > RUNS_MAX)
        return 2;
    unsigned char *a = malloc(BYTES), *b = malloc(BYTES);
    struct pawl_sha256 *one = NULL, *other = NULL;
    double speeds[2][RUNS_MAX];
    unsigned char digest[32];
    if (a == NULL || b == NULL || pawl_sha256_new(&one, NULL) != PAWL_OK || pawl_sha256_new(&other, NULL) != PAWL_OK)
        return 1;
    memset(a, 1, BYTES);
    memset(b, 2, BYTES);
    for (int run = 0; run < runs; run++) {
        for (int is_two = 0; is_two < 2; is_two++) {
            double begin = now_seconds();
            for (size_t at = 0; at < BYTES; at += PIECE) {
                if (is_two) {
                    pawl_sha256_update_two(one, (struct pawl_sha256_span){ a + at, PIECE }, other,
                                           (struct pawl_sha256_span){ b + at, PIECE });
                } else {
                    pawl_sha256_update(one, a + at, PIECE);
                    pawl_sha256_update(other, b + at, PIECE);
                }
            }
            pawl_sha256_finish(one, digest);
            pawl_sha256_finish(other, digest);
            speeds[is_two][run] = 2.0 * (double)BYTES / (now_seconds() - begin) / 1e9;
        }
    }
    for (int k = 0; k < 2; k++)
        qsort(speeds[k], (size_t)runs, sizeof speeds[k][0], compare);
    double single = speeds[0][runs / 2], pair = speeds[1][runs / 2];
    const char *way = pawl_sha256_way_name(pawl_sha256_way());
    if (is_json)
        (void)printf("{\"way\": \"%s\", \"one_stream_gb_s\": %.3f, \"two_streams_gb_s\": %.3f, \"ratio\": %.3f}\n", way,
                     single, pair, pair / single);
    else
        (void)printf("one stream %.2f GB/s, two by %s %.2f GB/s: %.2f times\n", single, way, pair, pair / single);
    pawl_sha256_free(one);
    pawl_sha256_free(other);
    free(a);
    free(b);
    return 0;
}
