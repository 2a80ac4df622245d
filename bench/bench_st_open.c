/*
 * bench_st_open: how fast a safetensors header is read, what a look-up costs, and what memory it takes.
 *
 *     bench_st_open [--json] [--rounds N]
 *
 * Headers as the reference writes them, of 200 to 800,000 tensors, lie in memory. For each size, the best of N rounds of:
 * parsing (which copies the text, checks it all and builds the table), finding every name in the order of the file, and
 * finding as many names at random; and opening and closing a file that begins so, warm, through pawl_model_open (sparse, in $TMPDIR; 0 where
 * no such file can be). Beside the speed stands that of a memcpy of the same text, the machine's limit for
 * touching it once. Memory is what the heap holds after parsing, per byte of header (glibc's count).
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "formats/json/json.h"
#include "formats/safetensors/safetensors.h"
#include "pawl/model.h"

struct result {
    size_t tensors;
    size_t header_bytes;
    double parse_s, memcpy_s;
    double in_order_ns, random_ns;
    double memory_per_byte;
    double open_s;
};

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
die(const char *what, const struct pawl_error *err)
{
    fprintf(stderr, "bench_st_open: %s: %s\n", what, err == NULL ? "no memory" : err->message);
    exit(1);
}

/* A model's names: layers of a few weights each, as large models have them. */
static void
make_header(size_t n, struct pawl_st_plan *plan)
{
    static const char *const PARTS[] = { "self_attn.q_proj.weight", "self_attn.k_proj.weight",
                                         "self_attn.v_proj.weight", "self_attn.o_proj.weight",
                                         "mlp.gate_proj.weight",    "mlp.up_proj.weight",
                                         "mlp.down_proj.weight",    "input_layernorm.weight" };
    static const uint64_t SHAPE[] = { 4096, 4096 };
    enum { NAME_BYTES = 80 };
    struct pawl_st_item *items = calloc(n, sizeof *items);
    char *names = malloc(n * NAME_BYTES);
    struct pawl_error err = PAWL_ERROR_INIT;
    if (items == NULL || names == NULL)
        die("names", NULL);
    for (size_t i = 0; i < n; i++) {
        char *name = names + i * NAME_BYTES;
        int length = snprintf(name, NAME_BYTES, "layers.%zu.%s", i / 8, PARTS[i % 8]);
        items[i] = (struct pawl_st_item){ { name, (size_t)length }, PAWL_BF16, 2, SHAPE };
    }
    if (pawl_st_plan(plan, items, n, NULL, 0, false, 0, &err) != PAWL_OK)
        die("plan", &err);
    free(items);
    free(names);
}

static size_t
heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Nanoseconds per look-up of the names picked by `order`, copied so that they don't share the cache with the header. */
static double
time_lookups(const struct pawl_st_header *h, const size_t *order, size_t *sink)
{
    size_t total = 0;
    for (size_t i = 0; i < h->n; i++)
        total += h->tensors[i].name.len;
    char *copies = malloc(total);
    struct pawl_str *names = malloc(h->n * sizeof *names);
    if (copies == NULL || names == NULL)
        die("look-up", NULL);
    char *at = copies;
    for (size_t i = 0; i < h->n; i++) {
        struct pawl_str name = h->tensors[order[i]].name;
        memcpy(at, name.data, name.len);
        names[i] = pawl_str_make(at, name.len);
        at += name.len;
    }
    double begin = now();
    for (size_t i = 0; i < h->n; i++)
        *sink += (size_t)pawl_st_find(h, names[i])->begin;
    double s = now() - begin;
    free(copies);
    free(names);
    return s * 1e9 / (double)h->n;
}

static void
keep_least(double *least, double value)
{
    if (*least == 0 || value < *least)
        *least = value;
}

/* A sparse file of that header; false where it can't be. */
static bool
make_file(const struct pawl_st_plan *plan, char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, size, "%s/bench_st_open.XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return false;
    bool is_made = write(fd, plan->prefix.data, plan->prefix.len) == (ssize_t)plan->prefix.len &&
                   ftruncate(fd, (off_t)plan->file_bytes) == 0;
    close(fd);
    if (!is_made)
        unlink(path);
    return is_made;
}

static void
measure_open(const struct pawl_st_plan *plan, int rounds, struct result *r)
{
    char path[4096];
    if (!make_file(plan, path, sizeof path))
        return;
    for (int round = 0; round < 3 * rounds; round++) {
        struct pawl_model *model;
        struct pawl_error err = PAWL_ERROR_INIT;
        double begin = now();
        if (pawl_model_open_z(path, NULL, &model, &err) != PAWL_OK)
            die("open", &err);
        pawl_model_close(model);
        keep_least(&r->open_s, now() - begin);
    }
    unlink(path);
}

static struct result
measure(size_t n, int rounds, size_t *sink)
{
    struct pawl_st_plan plan;
    make_header(n, &plan);
    const char *text = plan.prefix.data + 8;
    size_t bytes = plan.prefix.len - 8;
    struct result r = { .tensors = n, .header_bytes = bytes };
    size_t *order = malloc(n * sizeof *order);
    char *copy = malloc(bytes);
    if (order == NULL || copy == NULL)
        die("order", NULL);
    for (int round = 0; round < rounds; round++) {
        struct pawl_st_header h;
        struct pawl_error err = PAWL_ERROR_INIT;
        double begin = now();
        memcpy(copy, text, bytes);
        *sink += (size_t)copy[bytes / 2];
        keep_least(&r.memcpy_s, now() - begin);

        size_t before = heap_bytes();
        begin = now();
        if (pawl_st_parse(&h, text, bytes, plan.file_bytes, NULL, &err) != PAWL_OK)
            die("parse", &err);
        keep_least(&r.parse_s, now() - begin);
        r.memory_per_byte = (double)(heap_bytes() - before) / (double)bytes;

        for (size_t i = 0; i < n; i++)
            order[i] = i;
        keep_least(&r.in_order_ns, time_lookups(&h, order, sink));
        uint64_t random = 88172645463325252u;
        for (size_t i = n - 1; i > 0; i--) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            size_t k = (size_t)(random % (i + 1));
            size_t swap = order[i];
            order[i] = order[k];
            order[k] = swap;
        }
        keep_least(&r.random_ns, time_lookups(&h, order, sink));
        pawl_st_release(&h);
    }
    measure_open(&plan, rounds, &r);
    free(order);
    free(copy);
    pawl_st_plan_release(&plan);
    return r;
}

static void
print_json(const struct result *results, size_t n)
{
    struct pawl_json *json;
    struct pawl_str text;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_json_new(PAWL_JSON_COMPACT, PAWL_JSON_RAW, &json, &err) != PAWL_OK)
        die("json", &err);
    pawl_json_add_object(json);
    pawl_json_add_key_z(json, "bench");
    pawl_json_add_string_z(json, "st_open");
    pawl_json_add_key_z(json, "results");
    pawl_json_add_array(json);
    for (size_t i = 0; i < n; i++) {
        const struct result *r = &results[i];
        pawl_json_add_object(json);
        pawl_json_add_key_z(json, "tensors");
        pawl_json_add_u64(json, r->tensors);
        pawl_json_add_key_z(json, "header_bytes");
        pawl_json_add_u64(json, r->header_bytes);
        pawl_json_add_key_z(json, "parse_seconds");
        pawl_json_add_f64(json, r->parse_s);
        pawl_json_add_key_z(json, "memcpy_seconds");
        pawl_json_add_f64(json, r->memcpy_s);
        pawl_json_add_key_z(json, "lookup_in_order_ns");
        pawl_json_add_f64(json, r->in_order_ns);
        pawl_json_add_key_z(json, "lookup_random_ns");
        pawl_json_add_f64(json, r->random_ns);
        pawl_json_add_key_z(json, "memory_per_header_byte");
        pawl_json_add_f64(json, r->memory_per_byte);
        pawl_json_add_key_z(json, "open_close_seconds");
        pawl_json_add_f64(json, r->open_s);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
    pawl_json_end_object(json);
    if (pawl_json_text(json, &text, &err) != PAWL_OK)
        die("json", &err);
    printf("%.*s\n", (int)text.len, text.data);
    pawl_json_free(json);
}

int
main(int argc, char **argv)
{
    static const size_t SIZES[] = { 200, 31337, 200000, 800000 };
    enum { N = sizeof SIZES / sizeof SIZES[0] };
    struct result results[N];
    bool is_json = false;
    int rounds = 7;
    size_t sink = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            is_json = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
            rounds = atoi(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_st_open [--json] [--rounds N]\n");
            return 2;
        }
    }
    if (!is_json)
        printf("%8s %12s %10s %7s %12s %12s %12s %12s %12s\n", "tensors", "header", "parse", "GB/s", "memcpy GB/s",
               "find, ns", "at random", "memory/byte", "open, us");
    for (size_t i = 0; i < N; i++) {
        const struct result *r = &results[i];
        results[i] = measure(SIZES[i], rounds, &sink);
        if (!is_json)
            printf("%8zu %10zu B %7.3f ms %7.2f %12.2f %12.1f %12.1f %12.2f %12.1f\n", r->tensors, r->header_bytes,
                   r->parse_s * 1e3, (double)r->header_bytes / r->parse_s * 1e-9,
                   (double)r->header_bytes / r->memcpy_s * 1e-9, r->in_order_ns, r->random_ns, r->memory_per_byte,
                   r->open_s * 1e6);
    }
    if (is_json)
        print_json(results, N);
    return sink == 1; /* the compiler must not see that nobody looks */
}
