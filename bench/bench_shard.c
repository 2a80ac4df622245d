/*
 * bench_shard: how fast a model is split into shards, and joined again, durably, beside what the disk can do.
 *
 *     bench_shard DIR [--bytes N] [--rounds R] [--json]
 *
 * A model of N bytes (default 512 MiB; twice that lies on the disk at a time) is written into DIR. Each round does, one after the
 * other, with the input out of the page cache: reading and writing the same bytes at once in a raw loop (a thread that reads, one that
 * writes, one fsync), with O_DIRECT and through the page cache; `shard` into four files; `merge` back to one. Of each the median is
 * shown, and the ratio to the faster raw loop. All that was written is removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "pawl/pawl.h"

#define BLOCK_BYTES ((size_t)4 << 20)
#define BLOCKS 4
#define ROUNDS_MAX 31
#define TENSORS 64

enum way { RAW_DIRECT, RAW_BUFFERED, SHARD, MERGE, WAYS };
static const char *const WAY_NAMES[WAYS] = { "raw, O_DIRECT", "raw, page cache", "shard", "merge" };

static char model_path[4000], copy_path[4000], shards_path[4000], merged_path[4000];

static void
die(const char *what, const char *why)
{
    fprintf(stderr, "bench_shard: %s: %s\n", what, why);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the raw loop ---- */

struct ring {
    unsigned char *memory; /* touched before the first round */
    size_t n[BLOCKS];
    size_t first, filled;
    bool is_at_end;
    int in;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void *
read_all(void *context)
{
    struct ring *ring = context;
    size_t at = 0;
    for (;;) {
        pthread_mutex_lock(&ring->lock);
        while (ring->filled == BLOCKS)
            pthread_cond_wait(&ring->changed, &ring->lock);
        pthread_mutex_unlock(&ring->lock);
        ssize_t n = read(ring->in, ring->memory + at * BLOCK_BYTES, BLOCK_BYTES);
        if (n < 0)
            die("read", strerror(errno));
        pthread_mutex_lock(&ring->lock);
        ring->n[at] = (size_t)n;
        ring->is_at_end = n == 0;
        ring->filled += n != 0;
        pthread_cond_signal(&ring->changed);
        pthread_mutex_unlock(&ring->lock);
        if (n == 0)
            return NULL;
        at = (at + 1) % BLOCKS;
    }
}

static void
copy_raw(struct ring *ring, uint64_t bytes, bool is_direct)
{
    int flags = is_direct ? O_DIRECT : 0;
    uint64_t at = 0;
    pthread_t thread;
    ring->first = ring->filled = 0;
    ring->is_at_end = false;
    ring->in = open(model_path, O_RDONLY | flags);
    int out = open(copy_path, O_RDWR | O_CREAT | O_TRUNC | flags, 0666);
    if (ring->in < 0 || out < 0)
        die("open", strerror(errno));
    (void)fallocate(out, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
    if (pthread_create(&thread, NULL, read_all, ring) != 0)
        die("thread", "none");
    for (;;) {
        pthread_mutex_lock(&ring->lock);
        while (ring->filled == 0 && !ring->is_at_end)
            pthread_cond_wait(&ring->changed, &ring->lock);
        bool is_done = ring->filled == 0;
        pthread_mutex_unlock(&ring->lock);
        if (is_done)
            break;
        size_t n = ring->n[ring->first];
        size_t whole = is_direct ? (n + 4095) / 4096 * 4096 : n;
        if (pwrite(out, ring->memory + ring->first * BLOCK_BYTES, whole, (off_t)at) != (ssize_t)whole)
            die("write", strerror(errno));
        if (!is_direct)
            (void)sync_file_range(out, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE);
        at += n;
        pthread_mutex_lock(&ring->lock);
        ring->first = (ring->first + 1) % BLOCKS;
        ring->filled--;
        pthread_cond_signal(&ring->changed);
        pthread_mutex_unlock(&ring->lock);
    }
    pthread_join(thread, NULL);
    if (ftruncate(out, (off_t)at) != 0 || fsync(out) != 0 || close(out) != 0)
        die("sync", strerror(errno));
    close(ring->in);
}

/* ---- Pawl ---- */

static void
convert(const char *from, const char *to, uint64_t shard_bytes)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_model *model = NULL;
    struct pawl_convert_options options =
        PAWL_CONVERT_OPTIONS(.is_directory = shard_bytes != 0, .file_bytes_max = shard_bytes);
    if (pawl_model_open_z(from, NULL, &model, &err) != PAWL_OK ||
        pawl_convert(model, pawl_str_z(to), &options, NULL, &err) != PAWL_OK)
        die(to, err.message);
    pawl_model_close(model);
}

static enum pawl_status
give_noise(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    uint64_t *state = context;
    (void)offset;
    (void)err;
    for (size_t i = 0; i < n; i += 8) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy((char *)destination + i, state, n - i < 8 ? n - i : 8);
    }
    return PAWL_OK;
}

static void
make_model(uint64_t bytes)
{
    static char names[TENSORS][40];
    struct pawl_tensor tensors[TENSORS];
    struct pawl_error err = PAWL_ERROR_INIT;
    uint64_t state = 1;
    uint64_t shape = bytes / TENSORS / 4;
    const struct pawl_source source = { shape * 4, give_noise, &state };
    for (size_t i = 0; i < TENSORS; i++) {
        (void)snprintf(names[i], sizeof names[i], "layers.%zu.weight", i);
        tensors[i] = (struct pawl_tensor){ .size = sizeof tensors[i],
                                           .dtype = PAWL_F32,
                                           .name = pawl_str_z(names[i]),
                                           .rank = 1,
                                           .shape = &shape,
                                           .source = &source };
    }
    if (pawl_safetensors_write(pawl_str_z(model_path), tensors, TENSORS, NULL, &err) != PAWL_OK)
        die(model_path, err.message);
}

/* ---- rounds ---- */

static void
remove_shards(void)
{
    char path[4100];
    for (int k = 1; k <= 5; k++) {
        for (int n = 1; n <= 5; n++) {
            (void)snprintf(path, sizeof path, "%s/model-%05d-of-%05d.safetensors", shards_path, k, n);
            (void)unlink(path);
        }
    }
    (void)snprintf(path, sizeof path, "%s/model.safetensors.index.json", shards_path);
    (void)unlink(path);
    (void)rmdir(shards_path);
}

static void
make_cold(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        die(path, strerror(errno));
    close(fd);
}

static void
make_shards_cold(void)
{
    char path[4100];
    for (int k = 1; k <= 4; k++) {
        (void)snprintf(path, sizeof path, "%s/model-%05d-of-00004.safetensors", shards_path, k);
        make_cold(path);
    }
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
run_round(struct ring *ring, uint64_t bytes, int round, double seconds[WAYS][ROUNDS_MAX])
{
    for (int way = RAW_DIRECT; way < WAYS; way++) {
        make_cold(model_path);
        if (way == MERGE) /* its input are the shards; the model makes room, and is made again by it */
            make_shards_cold();
        if (way == MERGE)
            (void)unlink(model_path);
        sync();
        double begin = now();
        if (way == SHARD)
            convert(model_path, shards_path, bytes / 4);
        else if (way == MERGE)
            convert(shards_path, merged_path, 0);
        else
            copy_raw(ring, bytes, way == RAW_DIRECT);
        seconds[way][round] = now() - begin;
        (void)unlink(copy_path);
    }
    remove_shards();
    if (rename(merged_path, model_path) != 0)
        die("rename", strerror(errno));
}

static void
set_paths(const char *dir)
{
    (void)snprintf(model_path, sizeof model_path, "%s/bench_shard.safetensors", dir);
    (void)snprintf(copy_path, sizeof copy_path, "%s/bench_shard.copy", dir);
    (void)snprintf(shards_path, sizeof shards_path, "%s/bench_shard.shards", dir);
    (void)snprintf(merged_path, sizeof merged_path, "%s/bench_shard.merged", dir);
}

int
main(int argc, char **argv)
{
    uint64_t bytes = UINT64_C(512) << 20;
    int rounds = 5;
    bool is_json = false;
    const char *dir = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else
            dir = argv[i];
    }
    if (dir == NULL || strlen(dir) > 3900 || rounds < 1 || rounds > ROUNDS_MAX || bytes < TENSORS * 4)
        die("usage", "bench_shard DIR [--bytes N] [--rounds R] [--json]");
    set_paths(dir);
    struct ring ring = { .memory = aligned_alloc((size_t)2 << 20, BLOCKS * BLOCK_BYTES) };
    if (ring.memory == NULL || pthread_mutex_init(&ring.lock, NULL) != 0 || pthread_cond_init(&ring.changed, NULL) != 0)
        die("memory", "none");
    (void)madvise(ring.memory, BLOCKS * BLOCK_BYTES, MADV_HUGEPAGE);
    memset(ring.memory, 1, BLOCKS * BLOCK_BYTES);

    double seconds[WAYS][ROUNDS_MAX];
    double rates[WAYS];
    make_model(bytes);
    for (int round = 0; round < rounds; round++)
        run_round(&ring, bytes, round, seconds);
    (void)unlink(model_path);
    free(ring.memory);

    for (int way = 0; way < WAYS; way++) {
        qsort(seconds[way], (size_t)rounds, sizeof(double), compare_doubles);
        rates[way] = (double)bytes / seconds[way][rounds / 2] * 1e-6;
    }
    double limit = rates[RAW_DIRECT] > rates[RAW_BUFFERED] ? rates[RAW_DIRECT] : rates[RAW_BUFFERED];
    if (is_json)
        printf("{\"bytes\": %" PRIu64 ", \"rounds\": %d, \"raw_direct_MB_s\": %.0f, \"raw_buffered_MB_s\": %.0f, "
               "\"shard_MB_s\": %.0f, \"merge_MB_s\": %.0f, \"shard_ratio\": %.2f, \"merge_ratio\": %.2f}\n",
               bytes, rounds, rates[RAW_DIRECT], rates[RAW_BUFFERED], rates[SHARD], rates[MERGE], rates[SHARD] / limit,
               rates[MERGE] / limit);
    for (int way = 0; way < WAYS && !is_json; way++)
        printf("%-16s %7.0f MB/s (%.0f to %.0f), %.2f of the limit\n", WAY_NAMES[way], rates[way],
               (double)bytes / seconds[way][rounds - 1] * 1e-6, (double)bytes / seconds[way][0] * 1e-6,
               rates[way] / limit);
    return 0;
}
