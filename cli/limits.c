#include "cli/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define RING_BYTES ((size_t)32 << 20) /* of each writer: so much is written again and again */
#define PIECE ((size_t)2 << 20)
#define ALIGNMENT 4096

double
limits_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- memory ---- */

static size_t
whole_pages(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

void *
limits_memory(size_t bytes)
{
    size_t size = whole_pages(bytes);
    unsigned char *all = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)all % HUGE_PAGE) % HUGE_PAGE;
    if (before != 0)
        (void)munmap(all, before);
    if (before != HUGE_PAGE)
        (void)munmap(all + before + size, HUGE_PAGE - before);
    (void)madvise(all + before, size, MADV_HUGEPAGE);
    /* Contents that no device can shorten, and that differ from page to page. */
    uint64_t x = 88172645463325252u;
    uint64_t *words = (uint64_t *)(void *)(all + before);
    for (size_t i = 0; i < size / sizeof *words; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = x & 0x3fffffff3fffffffu; /* finite as F32 */
    }
    return all + before;
}

void
limits_forget(void *data, size_t bytes)
{
    if (data != NULL)
        (void)munmap(data, whole_pages(bytes));
}

/* ---- the disk ---- */

#define WRITERS_MAX 4

struct write_job {
    char path[4096];
    uint64_t bytes;
    unsigned char *ring;
    bool is_direct;
    int code; /* errno */
};

static int
write_all(int fd, const struct write_job *job)
{
    for (uint64_t at = 0; at < job->bytes;) {
        uint64_t left = job->bytes - at;
        size_t n = left < PIECE ? (size_t)left : PIECE;
        if (job->is_direct)
            n = (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* the last piece a little longer */
        ssize_t done = pwrite(fd, job->ring + at % RING_BYTES, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        at += (uint64_t)done;
    }
    return fsync(fd) < 0 ? errno : 0;
}

static void *
write_file(void *context)
{
    struct write_job *job = context;
    int fd = open(job->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        job->code = errno;
        return NULL;
    }
    (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)job->bytes);
    if (job->is_direct && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT) < 0)
        job->code = errno;
    if (job->code == 0)
        job->code = write_all(fd, job);
    if (close(fd) < 0 && job->code == 0)
        job->code = errno;
    return NULL;
}

double
limits_write(const char *path, uint64_t bytes, bool is_direct, unsigned threads)
{
    struct write_job jobs[WRITERS_MAX];
    pthread_t ids[WRITERS_MAX];
    int code = 0;
    unsigned begun = 0;
    threads = threads < 1 ? 1 : threads > WRITERS_MAX ? WRITERS_MAX : threads;
    unsigned char *ring = limits_memory(threads * RING_BYTES);
    if (ring == NULL) {
        errno = ENOMEM;
        return -1.0;
    }
    for (unsigned i = 0; i < threads; i++) {
        memset(&jobs[i], 0, sizeof jobs[i]);
        (void)snprintf(jobs[i].path, sizeof jobs[i].path, "%s.%u", path, i);
        jobs[i].bytes = bytes / threads;
        jobs[i].ring = ring + i * RING_BYTES;
        jobs[i].is_direct = is_direct;
    }
    double begin = limits_now();
    if (threads == 1) {
        (void)write_file(&jobs[0]);
    } else {
        while (code == 0 && begun < threads) {
            code = pthread_create(&ids[begun], NULL, write_file, &jobs[begun]);
            begun += code == 0;
        }
        for (unsigned i = 0; i < begun; i++)
            (void)pthread_join(ids[i], NULL);
    }
    double seconds = limits_now() - begin;
    for (unsigned i = 0; i < threads; i++) {
        code = code != 0 ? code : jobs[i].code;
        (void)unlink(jobs[i].path);
    }
    limits_forget(ring, threads * RING_BYTES);
    errno = code;
    return code != 0 ? -1.0 : seconds;
}

double
limits_write_best(const char *path, uint64_t bytes)
{
    double best = -1.0;
    for (unsigned threads = 1; threads <= WRITERS_MAX; threads *= 2) {
        double seconds = limits_write(path, bytes, true, threads);
        if (seconds > 0.0 && (best < 0.0 || seconds < best))
            best = seconds;
    }
    return best < 0.0 ? limits_write(path, bytes, false, 1) : best;
}

void
limits_forget_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    (void)close(fd);
}

double
limits_read(const char *path, unsigned char *data, uint64_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int code = 0;
    if (fd < 0)
        return -1.0;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT);
    double begin = limits_now();
    for (uint64_t at = 0; at < bytes && code == 0;) {
        ssize_t n = pread(fd, data + at, PIECE, (off_t)at);
        if (n < 0)
            code = errno == EINTR ? 0 : errno;
        else if (n == 0)
            break;
        else
            at += (uint64_t)n;
    }
    double seconds = limits_now() - begin;
    (void)close(fd);
    errno = code;
    return code != 0 ? -1.0 : seconds;
}

void
limits_fetch_file(const char *path)
{
    static unsigned char room[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && read(fd, room, sizeof room) > 0) {
    }
    if (fd >= 0)
        (void)close(fd);
}

/* ---- the processor ---- */

struct range_job {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
};

static void *
copy_range(void *context)
{
    struct range_job *job = context;
    memcpy(job->to, job->from, job->bytes);
    return NULL;
}

/* By all processors, at most 8. */
double
limits_copy(void *to, const void *from, size_t bytes)
{
    struct range_job jobs[8];
    pthread_t ids[8];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = processors < 1 ? 1 : processors > 8 ? 8 : (size_t)processors;
    size_t begun = 0;
    double begin = limits_now();
    for (size_t i = 0; i < n; i++) {
        size_t at = bytes / n * i;
        jobs[i] = (struct range_job){ (unsigned char *)to + at, (const unsigned char *)from + at,
                                      i + 1 == n ? bytes - at : bytes / n };
    }
    while (begun + 1 < n && pthread_create(&ids[begun], NULL, copy_range, &jobs[begun]) == 0)
        begun++;
    for (size_t i = begun; i < n; i++)
        (void)copy_range(&jobs[i]);
    for (size_t i = 0; i < begun; i++)
        (void)pthread_join(ids[i], NULL);
    return limits_now() - begin;
}

double
limits_hash(const unsigned char *data, size_t bytes)
{
    unsigned char digest[32];
    double begin = limits_now();
    if (pawl_sha256_of(data, bytes, digest, NULL) != PAWL_OK)
        return -1.0;
    return limits_now() - begin;
}

static double
hash_interleaved(const unsigned char *data, size_t first, size_t second)
{
    struct pawl_sha256 *hashes[2] = { NULL, NULL };
    unsigned char digest[32];
    double seconds = -1.0;
    if (pawl_sha256_new(&hashes[0], NULL) == PAWL_OK && pawl_sha256_new(&hashes[1], NULL) == PAWL_OK) {
        const struct pawl_sha256_span spans[2] = { { data, first }, { data + first, second } };
        double begin = limits_now();
        pawl_sha256_update_each(hashes, spans, 2);
        pawl_sha256_finish(hashes[0], digest);
        pawl_sha256_finish(hashes[1], digest);
        seconds = limits_now() - begin;
    }
    pawl_sha256_free(hashes[0]);
    pawl_sha256_free(hashes[1]);
    return seconds;
}

static void *
hash_range(void *context)
{
    struct range_job *job = context;
    unsigned char digest[32];
    (void)pawl_sha256_of(job->from, job->bytes, digest, NULL);
    return NULL;
}

double
limits_hash_two(const unsigned char *data, size_t first, size_t second)
{
    double together = hash_interleaved(data, first, second);
    struct range_job jobs[2] = { { NULL, data, first }, { NULL, data + first, second } };
    pthread_t other;
    double begin = limits_now();
    if (pthread_create(&other, NULL, hash_range, &jobs[0]) != 0)
        return together;
    (void)hash_range(&jobs[1]);
    (void)pthread_join(other, NULL);
    double apart = limits_now() - begin;
    return together >= 0.0 && together < apart ? together : apart;
}

struct hash_many {
    const unsigned char *data;
    size_t bytes, n; /* of each stream; of streams */
    atomic_size_t next;
};

static void *
hash_pairs(void *context)
{
    struct hash_many *many = context;
    for (;;) {
        size_t i = atomic_fetch_add(&many->next, 2);
        if (i >= many->n)
            return NULL;
        (void)hash_interleaved(many->data + i * many->bytes, many->bytes, i + 1 < many->n ? many->bytes : 0);
    }
}

double
limits_hash_many(const unsigned char *data, size_t bytes, size_t n)
{
    struct hash_many many = { .data = data, .bytes = bytes / n, .n = n };
    pthread_t ids[7];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    long wanted = processors < 8 ? processors : 8;
    long begun = 0;
    if (n == 2)
        return limits_hash_two(data, bytes / 2, bytes - bytes / 2);
    atomic_init(&many.next, 0);
    double begin = limits_now();
    while (begun + 1 < wanted && pthread_create(&ids[begun], NULL, hash_pairs, &many) == 0)
        begun++;
    (void)hash_pairs(&many);
    for (long i = 0; i < begun; i++)
        (void)pthread_join(ids[i], NULL);
    return limits_now() - begin;
}
