/*
 * How fast the pairs of a file are counted, beside loops of one core that only read it:
 *
 *     bench_counts [--bytes N] [--runs N] [--json] [FILE]
 *
 * Without a FILE it makes one of N bytes (default 1 GiB) in the working directory, of the words of a small vocabulary, and removes it.
 * The loops take turns in each run; the medians count. `bytes`: every byte is looked at, one by one; `words`: eight at a time,
 * which the compiler may widen. Both read blocks as the counter does. The file is in the page cache, unless it is larger.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "pawl/pcg32.h"
#include "trainer/counts.h"

#define BLOCK (256u << 10)
#define RUNS_MAX 32

enum job { JOB_BYTES, JOB_WORDS, JOB_ONE_THREAD, JOB_THREADS, JOBS };
static const char *const job_names[JOBS] = { "bytes", "words", "counts_1_thread", "counts" };

static double
now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void
die(const char *what)
{
    (void)fprintf(stderr, "bench_counts: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
make_file(const char *path, uint64_t bytes)
{
    static const char *const words[] = {
        "the ",  "of ",   "and ",  "to ",    "in ",    "a ",      "is ", "that ",    "for ",  "it ",   "as ",
        "was ",  "with ", "be ",   "by ",    "on ",    "not ",    "he ", "his ",     "but ",  "at ",   "are ",
        "this ", "have ", "from ", "token ", "model ", "weight ", "\n",  "    if (", "}\n\n", "0x1f, "
    };
    struct pawl_pcg32 rng;
    char block[BLOCK + 16];
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        die(path);
    pawl_pcg32_seed(&rng, 1, 54);
    for (uint64_t done = 0; done < bytes;) {
        size_t used = 0;
        while (used < BLOCK) {
            const char *word = words[pawl_pcg32_next(&rng) >> 27];
            size_t len = strlen(word);
            memcpy(block + used, word, len);
            used += len;
        }
        size_t n = bytes - done < BLOCK ? (size_t)(bytes - done) : BLOCK;
        if (fwrite(block, 1, n, file) != n)
            die(path);
        done += n;
    }
    if (fclose(file) != 0)
        die(path);
}

/* The empty asm keeps the sum in a register and the loop byte by byte. */
static uint64_t
add_bytes(const unsigned char *bytes, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += bytes[i];
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static uint64_t
add_words(const unsigned char *bytes, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        sum += word;
    }
    return sum;
}

static uint64_t
read_file(const char *path, uint64_t (*add)(const unsigned char *bytes, size_t n))
{
    static unsigned char block[BLOCK];
    uint64_t sum = 0;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die(path);
    while ((n = read(fd, block, sizeof block)) > 0)
        sum += add(block, (size_t)n);
    if (n < 0)
        die(path);
    (void)close(fd);
    return sum;
}

static double
run_job(enum job job, const char *path, struct bigram_counts *counts, uint64_t *ret_bytes)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    volatile uint64_t sink;
    double began = now_seconds();
    if (job == JOB_BYTES || job == JOB_WORDS) {
        sink = read_file(path, job == JOB_BYTES ? add_bytes : add_words);
        (void)sink;
    } else if (counts_of_file(path, job == JOB_ONE_THREAD ? 1 : 0, counts, ret_bytes, &err) != PAWL_OK) {
        (void)fprintf(stderr, "bench_counts: %s\n", err.message);
        exit(1);
    }
    return now_seconds() - began;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
    uint64_t bytes = UINT64_C(1) << 30, read_bytes = 0;
    int runs = 5;
    bool is_json = false;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc)
            bytes = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            runs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else
            path = argv[i];
    }
    runs = runs < 1 ? 1 : runs > RUNS_MAX ? RUNS_MAX : runs;
    char made[64];
    (void)snprintf(made, sizeof made, "bench_counts.%ld.tmp", (long)getpid());
    if (path == NULL)
        make_file(made, bytes);
    struct bigram_counts *counts = malloc(sizeof *counts);
    if (counts == NULL)
        die("memory");

    double seconds[JOBS][RUNS_MAX], medians[JOBS];
    for (int run = -1; run < runs; run++) { /* the first warms up everyone alike */
        for (int job = 0; job < JOBS; job++) {
            double passed = run_job((enum job)job, path != NULL ? path : made, counts, &read_bytes);
            if (run >= 0)
                seconds[job][run] = passed;
        }
    }
    if (path == NULL)
        (void)unlink(made);
    for (int job = 0; job < JOBS; job++) {
        qsort(seconds[job], (size_t)runs, sizeof seconds[job][0], compare);
        medians[job] = seconds[job][runs / 2];
    }
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    double peak_mib = (double)usage.ru_maxrss / 1024;
    if (is_json) {
        (void)printf("{\"bytes\": %" PRIu64 ", \"runs\": %d", read_bytes, runs);
        for (int job = 0; job < JOBS; job++)
            (void)printf(", \"%s_gb_s\": %.3f", job_names[job], (double)read_bytes / medians[job] / 1e9);
        (void)printf(", \"ratio_1_thread\": %.3f, \"ratio\": %.3f, \"ratio_words\": %.3f, \"peak_mib\": %.1f}\n",
                     medians[JOB_BYTES] / medians[JOB_ONE_THREAD], medians[JOB_BYTES] / medians[JOB_THREADS],
                     medians[JOB_WORDS] / medians[JOB_THREADS], peak_mib);
    } else {
        (void)printf("%" PRIu64 " bytes, median of %d runs\n", read_bytes, runs);
        for (int job = 0; job < JOBS; job++)
            (void)printf("%-16s %7.3f GB/s  %6.2f of the byte loop, %6.2f of the word loop\n", job_names[job],
                         (double)read_bytes / medians[job] / 1e9, medians[JOB_BYTES] / medians[job],
                         medians[JOB_WORDS] / medians[job]);
        (void)printf("peak memory      %7.1f MiB\n", peak_mib);
    }
    free(counts);
    return 0;
}
