/*
 * How fast one core hashes: one stream by libcrypto, and two streams interleaved, by each way that the processor can go.
 *
 *     bench_sha256 [--runs N] [--json]
 *
 * The ways take turns over the same 64 MiB, warm; medians. The first of the ways is the one that is gone where nobody says otherwise.
 */
#include <stdbool.h>
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

#define WAYS 4

/* Both streams, one after the other or together; GB/s. */
static double
hash(struct pawl_sha256 *one, const unsigned char *a, struct pawl_sha256 *other, const unsigned char *b, bool is_two)
{
    unsigned char digest[32];
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
    return 2.0 * (double)BYTES / (now_seconds() - begin) / 1e9;
}

int
main(int argc, char **argv)
{
    int runs = 11;
    bool is_json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            runs = atoi(argv[++i]);
    }
    if (runs < 1 || runs > RUNS_MAX)
        return 2;
    unsigned char *a = malloc(BYTES), *b = malloc(BYTES);
    struct pawl_sha256 *one = NULL, *other = NULL;
    static double single[RUNS_MAX], pair[WAYS][RUNS_MAX];
    enum pawl_sha256_way ways[WAYS] = { pawl_sha256_way() };
    int n_ways = 1;
    for (int way = PAWL_SHA256_ONE_BY_ONE + 1; way < WAYS; way++)
        if (way != (int)ways[0] && pawl_sha256_can((enum pawl_sha256_way)way))
            ways[n_ways++] = (enum pawl_sha256_way)way;
    if (a == NULL || b == NULL || pawl_sha256_new(&one, NULL) != PAWL_OK || pawl_sha256_new(&other, NULL) != PAWL_OK)
        return 1;
    memset(a, 1, BYTES);
    memset(b, 2, BYTES);
    for (int run = 0; run < runs; run++) {
        single[run] = hash(one, a, other, b, false);
        for (int k = 0; k < n_ways; k++) {
            (void)pawl_sha256_set_way(ways[k]);
            pair[k][run] = hash(one, a, other, b, true);
        }
    }
    qsort(single, (size_t)runs, sizeof single[0], compare);
    for (int k = 0; k < n_ways; k++) {
        qsort(pair[k], (size_t)runs, sizeof pair[k][0], compare);
        double speed = pair[k][runs / 2], alone = single[runs / 2];
        const char *name = pawl_sha256_way_name(ways[k]);
        if (is_json)
            (void)printf("{\"way\": \"%s\", \"one_stream_gb_s\": %.3f, \"two_streams_gb_s\": %.3f, \"ratio\": %.3f}\n",
                         name, alone, speed, speed / alone);
        else
            (void)printf("one stream %.2f GB/s, two by %s %.2f GB/s: %.2f times\n", alone, name, speed, speed / alone);
    }
    pawl_sha256_free(one);
    pawl_sha256_free(other);
    free(a);
    free(b);
    return 0;
}
