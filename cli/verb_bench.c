/* pawl bench: the machine's limits and Pawl beside them, in turn, in the same rounds; ratios are medians over the rounds. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/limits.h"
#include "cli/verbs.h"
#include "trainer/signals.h"

#define ROUNDS 3
#define TENSORS 147
#define MODEL_TENSORS 49 /* a third of the bytes; the optimizer has the rest */
#define DEFAULT_BYTES ((uint64_t)1 << 30)

/* What is measured, in seconds. */
enum measure {
    HASH_ONE,       /* one stream */
    HASH_FILES,     /* model and optimizer, as two streams */
    WRITE_DIRECT,   /* one thread */
    WRITE_DIRECT_2, /* two */
    WRITE_BUFFERED,
    READ_DIRECT,
    COPY,
    SAVE,
    ASYNC_STALL,
    ASYNC_DURABLE,
    LOAD_COLD,
    LOAD_WARM,
    MEASURES
};

struct bench {
    const struct arguments *arguments;
    struct output *out;
    char root[4096]; /* the checkpoint directory, ours */
    char scratch[4096];
    size_t tensor_bytes, model_bytes, bytes;
    unsigned char *data;   /* of the tensors */
    unsigned char *shadow; /* for the limits of copying and reading */
    struct pawl_state *state;
    struct pawl_run *run;
    int64_t step;
    double seconds[MEASURES][ROUNDS]; /* negative: not to be had */
    size_t rounds;
};

/* ---- beginning and end ---- */

static int
stop_when_asked(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return signals_pending() != 0;
}

static enum pawl_status
fail_errno(struct pawl_error *err, const char *what, const char *path)
{
    int code = errno;
    *err = (struct pawl_error)PAWL_ERROR_INIT;
    err->status = code == ENOSPC || code == EDQUOT ? PAWL_NO_SPACE : code == EACCES ? PAWL_PERMISSION : PAWL_IO;
    (void)snprintf(err->message, sizeof err->message, "%s '%.400s': %s", what, path, strerror(code));
    return err->status;
}

static enum pawl_status
describe(struct bench *bench, struct pawl_error *err)
{
    enum pawl_status st = pawl_state_new(&bench->state, err);
    for (size_t i = 0; i < TENSORS && st == PAWL_OK; i++) {
        char name[32];
        const uint64_t shape[] = { bench->tensor_bytes / 4 };
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = i < MODEL_TENSORS ? PAWL_MODEL : PAWL_OPTIMIZER,
                                      .dtype = PAWL_F32,
                                      .rank = 1,
                                      .shape = shape,
                                      .data = bench->data + i * bench->tensor_bytes };
        (void)snprintf(name, sizeof name, "layer.%03zu.weight", i);
        tensor.name = pawl_str_z(name);
        st = pawl_state_tensor(bench->state, &tensor, err);
    }
    return st;
}

static enum pawl_status
begin(struct bench *bench, struct pawl_error *err)
{
    const char *dir = bench->arguments->paths.items[0];
    uint64_t bytes = bench->arguments->bench_bytes != 0 ? bench->arguments->bench_bytes : DEFAULT_BYTES;
    struct stat status;
    if (stat(dir, &status) < 0)
        return fail_errno(err, "look at", dir);
    (void)snprintf(bench->root, sizeof bench->root, "%.4000s/pawl-bench-%ld", dir, (long)getpid());
    (void)snprintf(bench->scratch, sizeof bench->scratch, "%.4000s/pawl-bench-%ld.file", dir, (long)getpid());
    bench->tensor_bytes = (size_t)(bytes / TENSORS / 64 * 64);
    bench->bytes = bench->tensor_bytes * TENSORS;
    bench->model_bytes = bench->tensor_bytes * MODEL_TENSORS;
    bench->data = limits_memory(bench->bytes);
    bench->shadow = limits_memory(bench->bytes + ((size_t)4 << 20));
    if (bench->data == NULL || bench->shadow == NULL) {
        errno = ENOMEM;
        return fail_errno(err, "take memory for", dir);
    }
    enum pawl_status st = describe(bench, err);
    if (st == PAWL_OK)
        st = pawl_run_open_z(bench->root, &PAWL_RUN_OPTIONS(.progress = stop_when_asked), &bench->run, err);
    return st == PAWL_OK ? pawl_run_prepare(bench->run, bench->state, err) : st;
}

/* Only what is ours: a directory of ours, two levels, no link followed. */
static void
remove_folder(const char *path, int depth)
{
    DIR *stream = opendir(path);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char name[4096 + 300];
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (lstat(name, &status) == 0 && S_ISDIR(status.st_mode) && depth > 0)
            remove_folder(name, depth - 1);
        else
            (void)unlink(name);
    }
    if (stream != NULL)
        (void)closedir(stream);
    (void)rmdir(path);
}

static void
end(struct bench *bench)
{
    (void)pawl_run_close(bench->run, NULL);
    pawl_state_free(bench->state);
    limits_forget(bench->data, bench->bytes);
    limits_forget(bench->shadow, bench->bytes + ((size_t)4 << 20));
    if (bench->root[0] != '\0')
        remove_folder(bench->root, 1);
}

/* ---- measuring ---- */

static void
step_file(const struct bench *bench, const char *file, char *path, size_t size)
{
    char step[32];
    pawl_step_name(bench->step, step);
    (void)snprintf(path, size, "%s/%s/%s", bench->root, step, file);
}

static enum pawl_status
measure_limits(struct bench *bench, size_t round, struct pawl_error *err)
{
    bench->seconds[HASH_ONE][round] = limits_hash(bench->data, bench->bytes);
    bench->seconds[HASH_FILES][round] =
        limits_hash_two(bench->data, bench->model_bytes, bench->bytes - bench->model_bytes);
    bench->seconds[COPY][round] = limits_copy(bench->shadow, bench->data, bench->bytes);
    bench->seconds[WRITE_BUFFERED][round] = limits_write(bench->scratch, bench->bytes, false, 1);
    bench->seconds[WRITE_DIRECT][round] = limits_write(bench->scratch, bench->bytes, true, 1);
    bench->seconds[WRITE_DIRECT_2][round] = limits_write(bench->scratch, bench->bytes, true, 2);
    return bench->seconds[WRITE_BUFFERED][round] < 0.0 ? fail_errno(err, "write", bench->scratch) : PAWL_OK;
}

static enum pawl_status
measure_async(struct bench *bench, size_t round, struct pawl_error *err)
{
    struct pawl_save *save = NULL;
    double begin_at = limits_now();
    enum pawl_status st = pawl_run_save_async(bench->run, bench->state, ++bench->step, NULL, &save, err);
    bench->seconds[ASYNC_STALL][round] = limits_now() - begin_at;
    if (st == PAWL_OK)
        st = pawl_save_wait(save, -1, err);
    bench->seconds[ASYNC_DURABLE][round] = limits_now() - begin_at;
    pawl_save_release(save);
    return st;
}

/* Between the measures, not in a save: on a disk that is told of every block that is freed it takes as long as a quarter of one. */
static enum pawl_status
delete_older(struct bench *bench, struct pawl_error *err)
{
    enum pawl_status st = pawl_run_prune(bench->run, &PAWL_PRUNE_OPTIONS(.keep = 1), NULL, err);
    sync();
    return st;
}

static enum pawl_status
measure_load(struct bench *bench, bool is_cold, double *ret_seconds, struct pawl_error *err)
{
    const char *const files[] = { "model.safetensors", "optimizer.safetensors" };
    char path[8192];
    int64_t step;
    for (size_t i = 0; i < 2; i++) {
        step_file(bench, files[i], path, sizeof path);
        (is_cold ? limits_forget_file : limits_fetch_file)(path);
    }
    double begin_at = limits_now();
    enum pawl_status st = pawl_run_restore(bench->run, bench->state, &step, NULL, err);
    *ret_seconds = limits_now() - begin_at;
    return st;
}

static enum pawl_status
measure_pawl(struct bench *bench, size_t round, struct pawl_error *err)
{
    char path[8192];
    double begin_at = limits_now();
    enum pawl_status st = pawl_run_save(bench->run, bench->state, ++bench->step, NULL, err);
    bench->seconds[SAVE][round] = limits_now() - begin_at;
    if (st == PAWL_OK)
        st = delete_older(bench, err);
    if (st == PAWL_OK)
        st = measure_async(bench, round, err);
    if (st == PAWL_OK)
        st = delete_older(bench, err);
    if (st != PAWL_OK)
        return st;
    step_file(bench, "optimizer.safetensors", path, sizeof path);
    double seconds = limits_read(path, bench->shadow, bench->bytes - bench->model_bytes);
    if (seconds < 0.0)
        return fail_errno(err, "read", path);
    bench->seconds[READ_DIRECT][round] = seconds * (double)bench->bytes / (double)(bench->bytes - bench->model_bytes);
    st = measure_load(bench, true, &bench->seconds[LOAD_COLD][round], err);
    return st == PAWL_OK ? measure_load(bench, false, &bench->seconds[LOAD_WARM][round], err) : st;
}

/* ---- telling ---- */

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double
median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

/* 10^9 bytes a second; negative: not to be had. */
static double
speed(const struct bench *bench, enum measure measure)
{
    double values[ROUNDS];
    for (size_t i = 0; i < bench->rounds; i++)
        values[i] = bench->seconds[measure][i] > 0.0 ? (double)bench->bytes / bench->seconds[measure][i] / 1e9 : -1.0;
    return median(values, bench->rounds);
}

static double
seconds_of(const struct bench *bench, enum measure measure)
{
    double values[ROUNDS];
    memcpy(values, bench->seconds[measure], sizeof values);
    return median(values, bench->rounds);
}

/* The least time, of one round, in which the disk and the hash can be done with it. */
static double
limit_of(const struct bench *bench, enum measure measure, size_t round)
{
    const double *const seconds[] = { bench->seconds[WRITE_DIRECT], bench->seconds[WRITE_DIRECT_2],
                                      bench->seconds[WRITE_BUFFERED] };
    double hash = bench->seconds[HASH_FILES][round];
    double disk = -1.0;
    for (size_t i = 0; i < 3; i++)
        if (seconds[i][round] > 0.0 && (disk < 0.0 || seconds[i][round] < disk))
            disk = seconds[i][round];
    if (measure == LOAD_COLD)
        disk = bench->seconds[READ_DIRECT][round];
    else if (measure == LOAD_WARM)
        disk = 0.0;
    return disk > hash ? disk : hash;
}

static double
ratio(const struct bench *bench, enum measure measure)
{
    double values[ROUNDS];
    for (size_t i = 0; i < bench->rounds; i++)
        values[i] = measure == ASYNC_STALL     ? bench->seconds[ASYNC_STALL][i] / bench->seconds[COPY][i]
                    : measure == ASYNC_DURABLE ? bench->seconds[ASYNC_DURABLE][i] / bench->seconds[SAVE][i]
                                               : limit_of(bench, measure, i) / bench->seconds[measure][i];
    return median(values, bench->rounds);
}

struct row {
    enum measure measure;
    const char *key, *text;
};

static const struct row LIMITS[] = {
    { HASH_ONE, "hash_one_stream_gb_s", "SHA-256, one stream" },
    { HASH_FILES, "hash_gb_s", "SHA-256, model and optimizer at once" },
    { WRITE_DIRECT, "write_direct_gb_s", "durable writing past the cache, 1 thread" },
    { WRITE_DIRECT_2, "write_direct_2_gb_s", "durable writing past the cache, 2 threads" },
    { WRITE_BUFFERED, "write_buffered_gb_s", "durable writing through the cache" },
    { READ_DIRECT, "read_direct_gb_s", "reading past the cache" },
    { COPY, "copy_gb_s", "copying memory, all processors" },
};
static const struct row PAWL[] = {
    { SAVE, "save_gb_s", "durable save, hashed" },
    { ASYNC_DURABLE, "save_async_gb_s", "save in the background, until durable" },
    { LOAD_COLD, "load_cold_gb_s", "verified load, cold" },
    { LOAD_WARM, "load_warm_gb_s", "verified load, warm" },
};
static const struct row RATIOS[] = {
    { SAVE, "save", "of the lower of disk and hash, a save reaches" },
    { LOAD_COLD, "load_cold", "of the lower of disk and hash, a cold load reaches" },
    { LOAD_WARM, "load_warm", "of the hash, a warm load reaches" },
    { ASYNC_STALL, "stall_to_copy", "a background save stalls, in copies of memory" },
    { ASYNC_DURABLE, "async_to_save", "a background save takes, in plain saves" },
};
#define N_ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static void
write_document(const struct bench *bench, struct pawl_json *json)
{
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_u64(json, "bytes", bench->bytes);
    json_u64(json, "rounds", bench->rounds);
    json_object(json, "limits");
    for (size_t i = 0; i < N_ROWS(LIMITS); i++) {
        double value = speed(bench, LIMITS[i].measure);
        if (value > 0.0)
            json_f64(json, LIMITS[i].key, value);
        else
            json_null(json, LIMITS[i].key);
    }
    pawl_json_end_object(json);
    json_object(json, "pawl");
    for (size_t i = 0; i < N_ROWS(PAWL); i++)
        json_f64(json, PAWL[i].key, speed(bench, PAWL[i].measure));
    json_f64(json, "stall_seconds", seconds_of(bench, ASYNC_STALL));
    pawl_json_end_object(json);
    json_object(json, "ratios");
    for (size_t i = 0; i < N_ROWS(RATIOS); i++)
        json_f64(json, RATIOS[i].key, ratio(bench, RATIOS[i].measure));
    pawl_json_end_object(json);
    pawl_json_end_object(json);
}

static void
print_rows(const struct bench *bench)
{
    char size[32];
    (void)printf("%s in %d tensors, medians of %zu rounds\n", text_size(bench->bytes, size), TENSORS, bench->rounds);
    (void)printf("limits\n");
    for (size_t i = 0; i < N_ROWS(LIMITS); i++) {
        double value = speed(bench, LIMITS[i].measure);
        (void)printf("  %-50s", LIMITS[i].text);
        if (value > 0.0)
            (void)printf("%7.2f GB/s\n", value);
        else
            (void)printf("not on this filesystem\n");
    }
    (void)printf("pawl\n");
    for (size_t i = 0; i < N_ROWS(PAWL); i++)
        (void)printf("  %-50s%7.2f GB/s\n", PAWL[i].text, speed(bench, PAWL[i].measure));
    (void)printf("  %-50s%7.3f s\n", "stall of a background save", seconds_of(bench, ASYNC_STALL));
    (void)printf("ratios\n");
    for (size_t i = 0; i < N_ROWS(RATIOS); i++)
        (void)printf("  %-50s%7.2f\n", RATIOS[i].text, ratio(bench, RATIOS[i].measure));
}

static int
run(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct bench *bench = calloc(1, sizeof *bench);
    enum pawl_status st = PAWL_OK;
    if (bench == NULL) {
        err.status = PAWL_NO_MEMORY;
        (void)snprintf(err.message, sizeof err.message, "no memory");
        return output_error(out, arguments->paths.items[0], &err);
    }
    bench->arguments = arguments;
    bench->out = out;
    signals_catch();
    st = begin(bench, &err);
    for (size_t round = 0; round < ROUNDS && st == PAWL_OK && signals_pending() == 0; round++) {
        st = measure_limits(bench, round, &err);
        if (st == PAWL_OK && signals_pending() == 0)
            st = measure_pawl(bench, round, &err);
        if (signals_pending() == 0)
            bench->rounds = round + 1;
    }
    bool is_stopped = signals_pending() != 0;
    if (st == PAWL_OK && !is_stopped && out->is_json)
        write_document(bench, out->json);
    else if (st == PAWL_OK && !is_stopped)
        print_rows(bench);
    end(bench);
    free(bench);
    signals_restore();
    if (is_stopped)
        return EXIT_STOPPED;
    if (st == PAWL_OK)
        st = output_end(out, &err);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, arguments->paths.items[0], &err);
}

static const struct option options[] = {
    { "bytes", NULL, "N", NULL, "size of the state: 64MiB or more (default 1GiB); three times as much memory is used",
      OPTION_AT(bench_bytes), OPTION_SIZE, (uint64_t)64 << 20, 0, 0 },
};

const struct verb verb_bench = {
    .name = "bench",
    .synopsis = "DIR [flags]",
    .summary = "what this machine and a directory can do, and what Pawl reaches there",
    .description = "Measures SHA-256, durable writing, reading and copying, and beside them a durable save (model and "
                   "optimizer, 1 : 2), the\n"
                   "stall of one in the background, and verified loads; says each as a share of the machine's limit. "
                   "Everything takes\n"
                   "turns, three rounds; older steps are deleted between the measures. Removes what it wrote; on a "
                   "machine that does\n"
                   "other work the numbers are those of that.\n",
    .examples = "  pawl bench /mnt/checkpoints\n"
                "  pawl bench . --bytes 4GiB --json\n",
    .table = TABLE(options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "DIR",
    .run = run,
};
