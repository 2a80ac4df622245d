/*
 * A histogram of pairs is limited by its stores: one increment for each byte, one store in each cycle. What costs more than
 * that is missing the first-level cache, so there is one table of 32-bit counters for each thread (several, to keep
 * neighbouring increments apart, measured half as fast on text), and the wait of an increment for the one before it on the
 * same counter, which matters in runs of one byte: those are counted eight at a time. The table is emptied into 64-bit sums
 * long before a counter could wrap. A pair is fetched as the 16 bits that it is in memory; which of its bytes is the
 * high one is settled when the table is emptied.
 */
#include "trainer/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/fault.h"

#define BLOCK_BYTES (256u << 10)      /* stays in the cache between the read and the count */
#define PAIRS_MAX (UINT64_C(1) << 31) /* between two emptyings; a counter could take 2^32 - 1 */
#define THREADS_MAX 64u
#define PART_BYTES_MIN (UINT64_C(4) << 20) /* less is not worth a thread */

struct table {
    uint32_t of[1u << 16];
    uint64_t pairs; /* since the last emptying */
};

static void
empty_table(struct table *table, struct bigram_counts *counts)
{
    for (unsigned i = 0; i < BIGRAM_IDS; i++) {
        for (unsigned j = 0; j < BIGRAM_IDS; j++) {
            unsigned char pair[2] = { (unsigned char)i, (unsigned char)j };
            uint16_t at;
            memcpy(&at, pair, sizeof at);
            counts->of[i][j] += table->of[at];
        }
    }
    memset(table, 0, sizeof *table);
}

static inline uint64_t
load_64(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* The n - 1 pairs of n bytes. */
static void
count_block(struct table *table, const unsigned char *bytes, size_t n)
{
    uint32_t *of = table->of;
    size_t i = 0;
    for (; n - i >= 9; i += 8) {
        /* Four pairs that begin at even places, four at odd ones. Equal words: nine equal bytes. */
        uint64_t even = load_64(bytes + i), odd = load_64(bytes + i + 1);
        if (even == odd) {
            of[even & 0xffff] += 8;
            continue;
        }
        of[even & 0xffff]++;
        of[odd & 0xffff]++;
        of[even >> 16 & 0xffff]++;
        of[odd >> 16 & 0xffff]++;
        of[even >> 32 & 0xffff]++;
        of[odd >> 32 & 0xffff]++;
        of[even >> 48]++;
        of[odd >> 48]++;
    }
    for (; i + 1 < n; i++) {
        uint16_t at;
        memcpy(&at, bytes + i, sizeof at);
        of[at]++;
    }
    table->pairs += n;
}

void
counts_add(struct bigram_counts *counts, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        counts->of[bytes[i]][bytes[i + 1]]++;
}

/* One thread's part: the pairs whose first byte lies in [begin, end). */
struct part {
    int fd;
    bool is_seekable;
    uint64_t begin, end;
    struct bigram_counts counts;
    struct table table;
    uint64_t bytes;                       /* read */
    int failed;                           /* errno, 0 when all went well */
    unsigned char block[1 + BLOCK_BYTES]; /* a place for the last byte of the block before */
};

static ssize_t
read_some(const struct part *part, unsigned char *to, size_t n, uint64_t offset)
{
    for (;;) {
        ssize_t got = part->is_seekable ? pread(part->fd, to, n, (off_t)offset) : read(part->fd, to, n);
        if (got >= 0 || errno != EINTR)
            return got;
    }
}

static void *
count_part(void *argument)
{
    struct part *part = argument;
    uint64_t at = part->begin;
    /* The last pair of a part ends with the first byte of the next one. */
    uint64_t end = part->end == UINT64_MAX ? UINT64_MAX : part->end + 1;
    size_t kept = 0; /* 1 when block[0] holds the byte before */
    while (at < end) {
        uint64_t left = end - at;
        ssize_t got = read_some(part, part->block + 1, left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES, at);
        if (got < 0) {
            part->failed = errno;
            return NULL;
        }
        if (got == 0)
            break;
        count_block(&part->table, part->block + 1 - kept, (size_t)got + kept);
        part->block[0] = part->block[got];
        kept = 1;
        at += (uint64_t)got;
        if (part->table.pairs >= PAIRS_MAX)
            empty_table(&part->table, &part->counts);
    }
    part->bytes = at - part->begin;
    empty_table(&part->table, &part->counts);
    return NULL;
}

static unsigned
processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

static enum pawl_status
run_parts(struct part **parts, size_t n, const char *path, struct pawl_error *err)
{
    pthread_t threads[THREADS_MAX];
    size_t started = 1; /* the first part is ours */
    for (; started < n; started++) {
        if (pthread_create(&threads[started], NULL, count_part, parts[started]) != 0)
            break;
    }
    (void)count_part(parts[0]);
    for (size_t i = 1; i < started; i++)
        (void)pthread_join(threads[i], NULL);
    for (size_t i = started; i < n; i++) /* threads that the system refused */
        (void)count_part(parts[i]);
    for (size_t i = 0; i < n; i++) {
        if (parts[i]->failed != 0)
            return fault_os(err, parts[i]->failed, path, "read the file");
    }
    return PAWL_OK;
}

static enum pawl_status
count_open_file(int fd, const char *path, unsigned threads, struct bigram_counts *counts, uint64_t *ret_bytes,
                struct pawl_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return fault_os(err, errno, path, "look at the file");
    if (S_ISDIR(info.st_mode))
        return fault(err, PAWL_ARGUMENT, "argument", path, "expected a file of bytes, found a directory");

    uint64_t size = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    size_t n = threads == 0 ? processors() : threads;
    if (n > size / PART_BYTES_MIN)
        n = (size_t)(size / PART_BYTES_MIN);
    n = n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;

    struct part *parts[THREADS_MAX] = { NULL };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        parts[i] = calloc(1, sizeof *parts[i]);
        if (parts[i] == NULL) {
            st = fault_memory(err, sizeof *parts[i]);
            break;
        }
        parts[i]->fd = fd;
        parts[i]->is_seekable = n > 1;
        parts[i]->begin = size / n * i;
        parts[i]->end = i + 1 == n ? UINT64_MAX : size / n * (i + 1);
    }
    if (st == PAWL_OK)
        st = run_parts(parts, n, path, err);
    if (st == PAWL_OK) {
        memset(counts, 0, sizeof *counts);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < BIGRAM_WEIGHTS; j++)
                counts->of[j / BIGRAM_IDS][j % BIGRAM_IDS] += parts[i]->counts.of[j / BIGRAM_IDS][j % BIGRAM_IDS];
        }
        *ret_bytes = parts[n - 1]->begin + parts[n - 1]->bytes;
    }
    for (size_t i = 0; i < n; i++)
        free(parts[i]);
    return st;
}

enum pawl_status
counts_of_file(const char *path, unsigned threads, struct bigram_counts *counts, uint64_t *ret_bytes,
               struct pawl_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fault_os(err, errno, path, "open the file");
    enum pawl_status st = count_open_file(fd, path, threads, counts, ret_bytes, err);
    (void)close(fd); /* opened read-only: close cannot lose data */
    return st;
}
