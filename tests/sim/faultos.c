#include "sim/faultos.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct faultos {
    struct pawl_os os;
    const struct pawl_os *inner;
    pthread_mutex_t mutex;
    unsigned calls[SIM_OPS_N + 1]; /* the last counts all */
    enum sim_op *log;
    size_t n_log, log_capacity;
    unsigned lacking;
    int open;

    bool is_armed, is_after;
    enum sim_op op;
    unsigned nth, repeats;
    int code;
    bool was_met;
};

const char *
sim_op_name(enum sim_op op)
{
    static const char *const NAMES[] = {
#define SIM_NAME(constant, entry) #entry,
        SIM_OPS(SIM_NAME)
#undef SIM_NAME
            "any"
    };
    return op <= SIM_ANY ? NAMES[op] : "?";
}

enum verdict { MAKE, FAIL, SHORTEN, MAKE_AND_FAIL };

/* Count a call and say what becomes of it. */
static enum verdict
judge(struct faultos *faults, enum sim_op op, int *ret_code)
{
    enum verdict verdict = MAKE;
    (void)pthread_mutex_lock(&faults->mutex);
    if (faults->n_log == faults->log_capacity) {
        faults->log_capacity = faults->log_capacity == 0 ? 256 : faults->log_capacity * 2;
        faults->log = realloc(faults->log, faults->log_capacity * sizeof *faults->log);
        if (faults->log == NULL)
            abort();
    }
    faults->log[faults->n_log++] = op;
    faults->calls[op]++;
    faults->calls[SIM_ANY]++;
    if (faults->is_armed && (faults->op == SIM_ANY || faults->op == op)) {
        if (faults->nth > 0) {
            faults->nth--;
        } else {
            faults->was_met = true;
            *ret_code = faults->code;
            verdict = faults->code == 0 ? SHORTEN : faults->is_after ? MAKE_AND_FAIL : FAIL;
            if (faults->repeats == 0)
                faults->is_armed = false;
            else
                faults->repeats--;
        }
    }
    (void)pthread_mutex_unlock(&faults->mutex);
    return verdict;
}

static void
count_open(struct faultos *faults, int change)
{
    (void)pthread_mutex_lock(&faults->mutex);
    faults->open += change;
    (void)pthread_mutex_unlock(&faults->mutex);
}

/* The body of a call that makes nothing to be closed. */
#define PASS(op, call)                               \
    struct faultos *faults = context;                \
    const struct pawl_os *inner = faults->inner;     \
    int code = 0;                                    \
    enum verdict verdict = judge(faults, op, &code); \
    if (verdict == FAIL)                             \
        return code;                                 \
    int inner_code = (call);                         \
    return verdict == MAKE_AND_FAIL ? code : inner_code

/* The same for one that opens a handle; a denied one is closed again, as nobody gets it. */
#define PASS_OPEN(op, call, undo)                    \
    struct faultos *faults = context;                \
    const struct pawl_os *inner = faults->inner;     \
    int code = 0;                                    \
    enum verdict verdict = judge(faults, op, &code); \
    if (verdict == FAIL)                             \
        return code;                                 \
    int inner_code = (call);                         \
    if (inner_code != 0)                             \
        return inner_code;                           \
    if (verdict == MAKE_AND_FAIL) {                  \
        (void)(undo);                                \
        return code;                                 \
    }                                                \
    count_open(faults, 1);                           \
    return 0

#define LACK(feature, answer)                                    \
    if ((((struct faultos *)context)->lacking & (feature)) != 0) \
    return answer

static int
f_dir_open_path(void *context, const char *path, struct pawl_os_dir **ret_dir)
{
    PASS_OPEN(SIM_DIR_OPEN_PATH, inner->dir_open_path(inner->context, path, ret_dir),
              inner->dir_close(inner->context, *ret_dir));
}

static int
f_dir_open(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_dir **ret_dir)
{
    PASS_OPEN(SIM_DIR_OPEN, inner->dir_open(inner->context, dir, name, ret_dir),
              inner->dir_close(inner->context, *ret_dir));
}

static int
f_dir_close(void *context, struct pawl_os_dir *dir)
{
    struct faultos *faults = context;
    int code = 0;
    enum verdict verdict = judge(faults, SIM_DIR_CLOSE, &code);
    count_open(faults, -1);
    int inner_code = faults->inner->dir_close(faults->inner->context, dir);
    return verdict == FAIL || verdict == MAKE_AND_FAIL ? code : inner_code;
}

static int
f_dir_create_path(void *context, const char *path)
{
    PASS(SIM_DIR_CREATE_PATH, inner->dir_create_path(inner->context, path));
}

static int
f_dir_create(void *context, struct pawl_os_dir *dir, const char *name)
{
    PASS(SIM_DIR_CREATE, inner->dir_create(inner->context, dir, name));
}

struct kindless {
    pawl_os_list_fn *fn;
    void *context;
};

static int
without_kind(void *context, const char *name, enum pawl_os_kind kind)
{
    const struct kindless *kindless = context;
    (void)kind;
    return kindless->fn(kindless->context, name, (enum pawl_os_kind)0);
}

static int
f_dir_list(void *context, struct pawl_os_dir *dir, pawl_os_list_fn *fn, void *fn_context)
{
    struct kindless kindless = { fn, fn_context };
    bool is_lacking = (((struct faultos *)context)->lacking & SIM_KINDS) != 0;
    PASS(SIM_DIR_LIST, is_lacking ? inner->dir_list(inner->context, dir, without_kind, &kindless)
                                  : inner->dir_list(inner->context, dir, fn, fn_context));
}

static int
f_dir_sync(void *context, struct pawl_os_dir *dir)
{
    LACK(SIM_SYNC_DIR, EINVAL);
    PASS(SIM_DIR_SYNC, inner->dir_sync(inner->context, dir));
}

static int
f_dir_lock(void *context, struct pawl_os_dir *dir, enum pawl_os_lock how, bool *ret_is_fallback, int64_t *ret_holder)
{
    LACK(SIM_LOCK, ENOSYS);
    PASS(SIM_DIR_LOCK, inner->dir_lock(inner->context, dir, how, ret_is_fallback, ret_holder));
}

static int
f_dir_unlock(void *context, struct pawl_os_dir *dir)
{
    PASS(SIM_DIR_UNLOCK, inner->dir_unlock(inner->context, dir));
}

static int
f_dir_space(void *context, struct pawl_os_dir *dir, uint64_t *ret_available)
{
    PASS(SIM_DIR_SPACE, inner->dir_space(inner->context, dir, ret_available));
}

static int
f_dir_weak_kind(void *context, struct pawl_os_dir *dir, const char **ret_kind)
{
    PASS(SIM_DIR_WEAK_KIND, inner->dir_weak_kind(inner->context, dir, ret_kind));
}

static int
f_stat(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_stat *ret)
{
    PASS(SIM_STAT, inner->stat(inner->context, dir, name, ret));
}

static int
f_read_link(void *context, struct pawl_os_dir *dir, const char *name, char *text, size_t size, size_t *ret_len)
{
    PASS(SIM_READ_LINK, inner->read_link(inner->context, dir, name, text, size, ret_len));
}

static int
f_rename(void *context, struct pawl_os_dir *from_dir, const char *from, struct pawl_os_dir *to_dir, const char *to,
         enum pawl_os_rename how)
{
    if (how == PAWL_OS_EXCHANGE)
        LACK(SIM_EXCHANGE, EINVAL);
    if (how == PAWL_OS_NO_REPLACE)
        LACK(SIM_NO_REPLACE, EINVAL);
    PASS(SIM_RENAME, inner->rename(inner->context, from_dir, from, to_dir, to, how));
}

static int
f_remove_file(void *context, struct pawl_os_dir *dir, const char *name)
{
    PASS(SIM_REMOVE_FILE, inner->remove_file(inner->context, dir, name));
}

static int
f_remove_dir(void *context, struct pawl_os_dir *dir, const char *name)
{
    PASS(SIM_REMOVE_DIR, inner->remove_dir(inner->context, dir, name));
}

static int
f_file_create(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_file **ret_file)
{
    PASS_OPEN(SIM_FILE_CREATE, inner->file_create(inner->context, dir, name, ret_file),
              inner->file_close(inner->context, *ret_file));
}

static int
f_file_open(void *context, struct pawl_os_dir *dir, const char *name, unsigned open_flags,
            struct pawl_os_file **ret_file)
{
    PASS_OPEN(SIM_FILE_OPEN, inner->file_open(inner->context, dir, name, open_flags, ret_file),
              inner->file_close(inner->context, *ret_file));
}

static int
f_file_close(void *context, struct pawl_os_file *file)
{
    struct faultos *faults = context;
    int code = 0;
    enum verdict verdict = judge(faults, SIM_FILE_CLOSE, &code);
    count_open(faults, -1);
    int inner_code = faults->inner->file_close(faults->inner->context, file);
    return verdict == FAIL || verdict == MAKE_AND_FAIL ? code : inner_code;
}

static int
f_file_stat(void *context, struct pawl_os_file *file, struct pawl_os_stat *ret)
{
    PASS(SIM_FILE_STAT, inner->file_stat(inner->context, file, ret));
}

static int
f_file_set_mode(void *context, struct pawl_os_file *file, uint32_t mode)
{
    LACK(SIM_SET_MODE, EPERM);
    PASS(SIM_FILE_SET_MODE, inner->file_set_mode(inner->context, file, mode));
}

static int
f_file_write_at(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans,
                size_t n_spans, size_t *ret_written)
{
    struct faultos *faults = context;
    const struct pawl_os *inner = faults->inner;
    int code = 0;
    enum verdict verdict = judge(faults, SIM_FILE_WRITE_AT, &code);
    if (verdict == FAIL)
        return code;
    if (verdict == SHORTEN && n_spans > 0) {
        struct pawl_os_span half = spans[0];
        half.bytes = half.bytes > 1 ? half.bytes / 2 : half.bytes;
        return inner->file_write_at(inner->context, file, offset, &half, 1, ret_written);
    }
    int inner_code = inner->file_write_at(inner->context, file, offset, spans, n_spans, ret_written);
    return verdict == MAKE_AND_FAIL ? code : inner_code;
}

static int
f_file_read_at(void *context, struct pawl_os_file *file, uint64_t offset, void *data, size_t bytes, size_t *ret_read)
{
    struct faultos *faults = context;
    const struct pawl_os *inner = faults->inner;
    int code = 0;
    enum verdict verdict = judge(faults, SIM_FILE_READ_AT, &code);
    if (verdict == FAIL)
        return code;
    if (verdict == SHORTEN && bytes > 1)
        bytes /= 2;
    int inner_code = inner->file_read_at(inner->context, file, offset, data, bytes, ret_read);
    return verdict == MAKE_AND_FAIL ? code : inner_code;
}

static int
f_file_reserve(void *context, struct pawl_os_file *file, uint64_t bytes)
{
    LACK(SIM_RESERVE, EOPNOTSUPP);
    PASS(SIM_FILE_RESERVE, inner->file_reserve(inner->context, file, bytes));
}

static int
f_file_set_bytes(void *context, struct pawl_os_file *file, uint64_t bytes)
{
    LACK(SIM_SET_BYTES, EOPNOTSUPP);
    PASS(SIM_FILE_SET_BYTES, inner->file_set_bytes(inner->context, file, bytes));
}

static int
f_file_set_direct(void *context, struct pawl_os_file *file, bool is_direct, size_t *ret_alignment)
{
    if (is_direct)
        LACK(SIM_DIRECT, EINVAL);
    PASS(SIM_FILE_SET_DIRECT, inner->file_set_direct(inner->context, file, is_direct, ret_alignment));
}

static int
f_file_open_direct(void *context, struct pawl_os_file *file, struct pawl_os_file **ret_direct, size_t *ret_alignment)
{
    LACK(SIM_DIRECT, EINVAL);
    PASS_OPEN(SIM_FILE_OPEN_DIRECT, inner->file_open_direct(inner->context, file, ret_direct, ret_alignment),
              inner->file_close(inner->context, *ret_direct));
}

static int
f_file_cached(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, size_t *ret_cached)
{
    LACK(SIM_CACHED, ENOSYS);
    PASS(SIM_FILE_CACHED, inner->file_cached(inner->context, file, offset, bytes, ret_cached));
}

static int
f_file_sync(void *context, struct pawl_os_file *file)
{
    PASS(SIM_FILE_SYNC, inner->file_sync(inner->context, file));
}

static int
f_file_write_back(void *context, struct pawl_os_file *file, uint64_t offset, uint64_t bytes)
{
    PASS(SIM_FILE_WRITE_BACK, inner->file_write_back(inner->context, file, offset, bytes));
}

static int
f_file_advise(void *context, struct pawl_os_file *file, uint64_t offset, uint64_t bytes, enum pawl_os_advice advice)
{
    PASS(SIM_FILE_ADVISE, inner->file_advise(inner->context, file, offset, bytes, advice));
}

static int
f_file_map(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, const void **ret_data)
{
    PASS_OPEN(SIM_FILE_MAP, inner->file_map(inner->context, file, offset, bytes, ret_data),
              (inner->unmap(inner->context, *ret_data, bytes), 0));
}

static void
f_unmap(void *context, const void *data, size_t bytes)
{
    struct faultos *faults = context;
    count_open(faults, -1);
    faults->inner->unmap(faults->inner->context, data, bytes);
}

static int
f_map_populate(void *context, const void *data, size_t bytes)
{
    LACK(SIM_POPULATE, ENOSYS);
    PASS(SIM_MAP_POPULATE, inner->map_populate(inner->context, data, bytes));
}

static uint64_t
f_clock_ns(void *context)
{
    const struct pawl_os *inner = ((struct faultos *)context)->inner;
    return inner->clock_ns(inner->context);
}

static int64_t
f_wall_seconds(void *context)
{
    const struct pawl_os *inner = ((struct faultos *)context)->inner;
    return inner->wall_seconds(inner->context);
}

static void
f_sleep_ns(void *context, uint64_t ns)
{
    const struct pawl_os *inner = ((struct faultos *)context)->inner;
    inner->sleep_ns(inner->context, ns);
}

static int64_t
f_process_id(void *context)
{
    const struct pawl_os *inner = ((struct faultos *)context)->inner;
    return inner->process_id(inner->context);
}

struct faultos *
faultos_new(const struct pawl_os *inner)
{
    struct faultos *faults = calloc(1, sizeof *faults);
    if (faults == NULL)
        abort();
    faults->inner = inner;
    (void)pthread_mutex_init(&faults->mutex, NULL);
    faults->os.context = faults;
#define SIM_ENTRY(constant, entry) faults->os.entry = f_##entry;
    SIM_OPS(SIM_ENTRY)
#undef SIM_ENTRY
    faults->os.unmap = f_unmap;
    faults->os.clock_ns = f_clock_ns;
    faults->os.wall_seconds = f_wall_seconds;
    faults->os.sleep_ns = f_sleep_ns;
    faults->os.process_id = f_process_id;
    return faults;
}

void
faultos_free(struct faultos *faults)
{
    if (faults == NULL)
        return;
    (void)pthread_mutex_destroy(&faults->mutex);
    free(faults->log);
    free(faults);
}

const struct pawl_os *
faultos_os(struct faultos *faults)
{
    return &faults->os;
}

void
faultos_fail(struct faultos *faults, enum sim_op op, unsigned nth, unsigned repeats, int code)
{
    faults->is_armed = true;
    faults->is_after = false;
    faults->was_met = false;
    faults->op = op;
    faults->nth = nth;
    faults->repeats = repeats;
    faults->code = code;
}

void
faultos_fail_after(struct faultos *faults, enum sim_op op, unsigned nth, int code)
{
    faultos_fail(faults, op, nth, 0, code);
    faults->is_after = true;
}

void
faultos_take_threads(struct faultos *faults)
{
    faults->os.takes_threads = true;
}

bool
faultos_was_met(const struct faultos *faults)
{
    return faults->was_met;
}

void
faultos_lack(struct faultos *faults, unsigned features)
{
    faults->lacking = features;
}

unsigned
faultos_calls(const struct faultos *faults, enum sim_op op)
{
    return faults->calls[op];
}

void
faultos_reset(struct faultos *faults)
{
    memset(faults->calls, 0, sizeof faults->calls);
    faults->n_log = 0;
    faults->is_armed = false;
    faults->was_met = false;
}

const enum sim_op *
faultos_log(const struct faultos *faults, size_t *ret_n)
{
    *ret_n = faults->n_log;
    return faults->log;
}

int
faultos_open(const struct faultos *faults)
{
    return faults->open;
}
