/*
 * bench_stream [--json] [MIB]: ids per second of the token stream beside memcpy, and what restoring a cursor costs.
 *
 * A stream reads ids of 2 or 4 bytes and writes each twice, as 4 bytes: into inputs and into targets. The limit is memcpy
 * that moves as many bytes in all (half read, half written) through buffers of the same sizes: a source of MIB MiB (512)
 * that is larger than the caches, into one batch that is not. Rounds of both alternate; each figure is the best.
 *
 * The restore is over 50 sparse shards, 10^11 ids in all, into a cursor at the end of the last; where the working folder's
 * filesystem can't hold such files it is left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cursor.h"
#include "formats/tokens/shard.h"
#include "pawl/stream.h"
#include "pawl/tokens.h"

#define FOLDER "bench-stream.tmp"
#define ROUNDS 5
#define SPARSE_SHARDS 50
#define RESTORES 1000

static double
now_s(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

/* A shard of n ids; with `fill`, all of them written, else a hole. */
static int
make_shard(const char *path, unsigned width, uint64_t n, int fill)
{
    unsigned char header[PAWL_SHARD_HEADER_BYTES];
    struct pawl_shard_info info = { .width = width, .ids = n, .vocabulary = fill ? 50257 : 0 };
    pawl_shard_print(&info, header);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(header, 1, sizeof header, file) != sizeof header)
        die(path);
    static uint32_t block[1 << 14];
    for (uint64_t at = 0; fill && at < n; at += sizeof block / width) {
        for (size_t i = 0; i < sizeof block / sizeof *block; i++)
            block[i] = width == 2 ? (uint32_t)(at % 50000) << 16 | (uint32_t)(i % 50000) : (uint32_t)((at + i) % 50257);
        uint64_t left = (n - at) * width;
        size_t bytes = left < sizeof block ? (size_t)left : sizeof block;
        if (fwrite(block, 1, bytes, file) != bytes)
            die(path);
    }
    if (fclose(file) != 0)
        die(path);
    return truncate(path, (off_t)(PAWL_SHARD_HEADER_BYTES + n * width));
}

struct job {
    unsigned width;
    uint64_t seq_len, batch, ids;
    const void *source; /* as many bytes as the shard has */
    uint32_t *inputs, *targets;
};

static double
stream_pass(const struct job *job, struct pawl_stream *stream)
{
    const uint64_t batches = job->ids / (job->seq_len * job->batch) - 1;
    double begin = now_s();
    for (uint64_t i = 0; i < batches; i++) {
        if (pawl_stream_next(stream, job->inputs, job->targets, NULL) != PAWL_OK)
            abort();
        __asm__ volatile("" : : "r"(job->inputs), "r"(job->targets) : "memory");
    }
    return (now_s() - begin) / (double)(batches * job->seq_len * job->batch);
}

/* memcpy of (width + 8) / 2 bytes per id: what the stream reads and writes, half and half. */
static double
copy_pass(const struct job *job)
{
    const size_t chunk = (size_t)(job->seq_len * job->batch * (job->width + 8) / 2);
    const size_t room = (size_t)(job->ids * job->width);
    uint64_t moved = 0;
    double begin = now_s();
    for (size_t at = 0; room - at >= chunk; at += chunk) {
        /* inputs and targets are one block of twice seq_len * batch ids: chunk is not more */
        memcpy(job->inputs, (const char *)job->source + at, chunk);
        __asm__ volatile("" : : "r"(job->inputs) : "memory");
        moved += job->seq_len * job->batch;
    }
    return (now_s() - begin) / (double)moved;
}

static void
bench_next(unsigned width, uint64_t seq_len, uint64_t mib, int as_json)
{
    struct job job = { .width = width, .seq_len = seq_len, .batch = 8, .ids = (mib << 20) / width };
    const char *paths[] = { FOLDER "/ids.bin" };
    if (make_shard(paths[0], width, job.ids, 1) != 0)
        die(paths[0]);
    size_t batch_ids = (size_t)(job.seq_len * job.batch);
    job.inputs = malloc(2 * batch_ids * sizeof *job.inputs);
    job.targets = job.inputs + batch_ids;
    void *source = malloc((size_t)(job.ids * width));
    struct pawl_stream *stream = NULL;
    struct pawl_stream_options options =
        PAWL_STREAM_OPTIONS(.seq_len = job.seq_len, .batch = job.batch, .seed = 1, .trust_ids = 1);
    if (job.inputs == NULL || source == NULL || pawl_stream_open_z(paths, 1, &options, &stream, NULL) != PAWL_OK)
        die("bench_stream");
    memset(source, 1, (size_t)(job.ids * width));
    job.source = source;

    double best_stream = 1, best_copy = 1, scan_begin, scan = 1;
    for (int round = 0; round < ROUNDS; round++) {
        double took = stream_pass(&job, stream);
        best_stream = took < best_stream ? took : best_stream;
        took = copy_pass(&job);
        best_copy = took < best_copy ? took : best_copy;
        scan_begin = now_s();
        struct pawl_shard *shard;
        if (pawl_shard_open(pawl_str_z(paths[0]), NULL, &shard, NULL) != PAWL_OK)
            abort();
        pawl_shard_close(shard);
        took = now_s() - scan_begin;
        scan = took < scan ? took : scan;
    }
    double gb_scanned = (double)(job.ids * width) / scan * 1e-9;
    if (as_json)
        printf("{\"bench\": \"next\", \"width\": %u, \"seq_len\": %" PRIu64 ", \"batch\": %" PRIu64
               ", \"ids_per_s\": %.0f, \"memcpy_ids_per_s\": %.0f, \"of_memcpy\": %.3f, \"open_with_scan_gb_per_s\": "
               "%.3f}\n",
               width, seq_len, job.batch, 1 / best_stream, 1 / best_copy, best_copy / best_stream, gb_scanned);
    else
        printf("%u-byte ids, windows of %-5" PRIu64
               " %7.1f M ids/s, %5.2f of memcpy (%.1f M); open with scan %.1f GB/s\n",
               width, seq_len, 1e-6 / best_stream, best_copy / best_stream, 1e-6 / best_copy, gb_scanned);
    pawl_stream_close(stream);
    free(job.inputs);
    free(source);
    (void)unlink(paths[0]);
}

static void
bench_restore(int as_json)
{
    static char names[SPARSE_SHARDS][64];
    const char *paths[SPARSE_SHARDS];
    for (unsigned s = 0; s < SPARSE_SHARDS; s++) {
        (void)snprintf(names[s], sizeof names[s], FOLDER "/%02u.bin", s);
        paths[s] = names[s];
        if (make_shard(names[s], 2, PAWL_SHARD_IDS_MAX, 0) != 0) {
            perror("restore left out");
            return;
        }
    }
    struct pawl_stream *stream = NULL;
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 1024, .batch = 1, .seed = 1);
    double begin = now_s();
    if (pawl_stream_open_z(paths, SPARSE_SHARDS, &options, &stream, NULL) != PAWL_OK)
        die("restore");
    double opened = now_s() - begin;
    struct pawl_stream_cursor cursor;
    pawl_stream_cursor(stream, &cursor);
    cursor.shard = SPARSE_SHARDS - 1;
    cursor.offset = PAWL_SHARD_IDS_MAX - 1100;
    begin = now_s();
    for (int i = 0; i < RESTORES; i++) {
        if (pawl_stream_restore(stream, &cursor, NULL) != PAWL_OK)
            abort();
    }
    double restored = (now_s() - begin) / RESTORES;
    static uint32_t inputs[1024], targets[1024];
    begin = now_s();
    if (pawl_stream_next(stream, inputs, targets, NULL) != PAWL_OK)
        abort();
    double first = now_s() - begin;
    double ids = (double)SPARSE_SHARDS * (double)PAWL_SHARD_IDS_MAX;
    if (as_json)
        printf("{\"bench\": \"restore\", \"ids\": %.0f, \"shards\": %d, \"open_us\": %.1f, \"restore_ns\": %.1f, "
               "\"first_batch_us\": %.1f}\n",
               ids, SPARSE_SHARDS, opened * 1e6, restored * 1e9, first * 1e6);
    else
        printf("%.3g ids in %d shards: open %.0f us, restore at the end %.1f ns, first batch after it %.0f us\n", ids,
               SPARSE_SHARDS, opened * 1e6, restored * 1e9, first * 1e6);
    pawl_stream_close(stream);
    for (unsigned s = 0; s < SPARSE_SHARDS; s++)
        (void)unlink(paths[s]);
}

int
main(int argc, char **argv)
{
    int as_json = 0;
    uint64_t mib = 512;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            as_json = 1;
        else
            mib = strtoull(argv[i], NULL, 10);
    }
    if (mib < 64) {
        fprintf(stderr, "usage: bench_stream [--json] [MIB, at least 64]\n");
        return 2;
    }
    if (mkdir(FOLDER, 0777) != 0)
        die(FOLDER);
    for (unsigned width = 2; width <= 4; width += 2) {
        bench_next(width, 128, mib, as_json);
        bench_next(width, 1024, mib, as_json);
        bench_next(width, 8192, mib, as_json);
    }
    bench_restore(as_json);
    (void)rmdir(FOLDER);
    return 0;
}
