#include "model/set.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/checked.h"
#include "model/index.h"

/* Faults of one index that are written out; of a wrong index with 100,000 tensors the first tell all. */
#define FAULTS_SHOWN_MAX 20

/* Two tensors of one name are compared this much at a time. */
#define COMPARE_BYTES ((size_t)1 << 20)

void
pawl_set_release(struct pawl_set *set)
{
    for (size_t i = 0; i < set->n_files; i++) {
        pawl_st_release(&set->files[i].header);
        pawl_file_release(&set->files[i].file);
    }
    free(set->files);
    if (set->n_files > 1) /* a single file's tensors are its header's own */
        free(set->tensors);
    pawl_name_table_release(&set->names);
    pawl_arena_release(&set->arena);
    *set = (struct pawl_set)PAWL_SET_INIT;
}

/* ---- one file ---- */

static enum pawl_status
open_member(struct pawl_file *file, const struct pawl_dir *dir, struct pawl_str name,
            const struct pawl_set_options *options, struct pawl_error *err)
{
    enum pawl_status st;
    if (options->follow_any) {
        char *text = pawl_str_dup(name);
        if (text == NULL)
            return pawl_fail_memory(err, name.len);
        st = pawl_file_open_in(file, dir, text, PAWL_OS_FOLLOW, err);
        free(text);
    } else {
        st = pawl_member_open(file, dir, name, options, err);
    }
    return st;
}

enum pawl_status
pawl_set_adopt_file(struct pawl_set *set, const struct pawl_os *os, struct pawl_file *file, const char *name,
                    const struct pawl_set_options *options, struct pawl_error *err)
{
    struct pawl_set made = PAWL_SET_INIT;

    *set = made;
    made.os = os;
    made.files = calloc(1, sizeof *made.files);
    if (made.files == NULL)
        return pawl_fail_memory(err, sizeof *made.files);
    struct pawl_st_header *header = &made.files[0].header;
    enum pawl_status st = PAWL_OK;
    if (!pawl_arena_copy_str(&made.arena, pawl_str_z(name), &made.files[0].name))
        st = pawl_fail_memory(err, strlen(name));
    if (st == PAWL_OK)
        st = pawl_st_read(header, file, &options->st, err);
    made.n_files = st == PAWL_OK ? 1 : 0;
    if (st != PAWL_OK) {
        pawl_error_path(err, pawl_str_z(file->path != NULL ? file->path : name));
        pawl_set_release(&made);
        return st;
    }
    made.files[0].file = *file;
    *file = (struct pawl_file)PAWL_FILE_INIT;
    made.tensors = header->tensors;
    made.n = header->n;
    made.data_bytes = header->file_bytes - header->data_begin;
    *set = made;
    return PAWL_OK;
}

enum pawl_status
pawl_set_open_file(struct pawl_set *set, const struct pawl_dir *dir, const char *name,
                   const struct pawl_set_options *options, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    *set = (struct pawl_set)PAWL_SET_INIT;
    enum pawl_status st = open_member(&file, dir, pawl_str_z(name), options, err);
    if (st == PAWL_OK)
        st = pawl_set_adopt_file(set, dir->os, &file, name, options, err);
    else
        pawl_error_path(err, pawl_str_z(name));
    pawl_file_release(&file);
    return st;
}

/* ---- an index and its shards ---- */

/* A file of the index while it is read. */
struct shard {
    bool is_open;
    bool is_faulty; /* has a problem in the report */
    size_t mapped;  /* tensors that the index maps to it */
};

struct reading {
    struct pawl_set *set;
    const struct pawl_dir *dir;
    const struct pawl_set_options *options;
    struct pawl_report *report;
    struct pawl_error *err; /* takes the first fault */
    struct pawl_index index;
    struct shard *shards;
    struct pawl_arena scratch;
    size_t n_faults;
    size_t n_index_faults;
    unsigned char *is_twice; /* by tensor: reported as standing in two shards */
    enum pawl_status failed; /* of a callback that can't answer */
};

static void fault(struct reading *r, const char *code, struct pawl_str file, struct pawl_str tensor, const char *format,
                  ...) PAWL_PRINTF(5, 6);

/* A fault of the content: it goes into the report, the first into the error too, and the reading goes on. */
static void
fault(struct reading *r, const char *code, struct pawl_str file, struct pawl_str tensor, const char *format, ...)
{
    char message[1024];
    bool is_index = pawl_str_equal(file, r->set->index_name);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);

    if (r->n_faults++ == 0) {
        (void)pawl_fail(r->err, PAWL_CORRUPT, code, "%s", message);
        struct pawl_buffer path = PAWL_BUFFER_INIT;
        if (pawl_buffer_add_z(&path, r->dir->path) && (file.len == 0 || pawl_buffer_add_char(&path, '/')) &&
            pawl_buffer_add_str(&path, file))
            pawl_error_path(r->err, pawl_buffer_str(&path));
        pawl_buffer_release(&path);
        if (tensor.data != NULL)
            pawl_error_tensor(r->err, tensor);
    }
    if (is_index) {
        r->n_index_faults++;
        if (r->n_index_faults > (r->options->index_inside_only ? 1 : FAULTS_SHOWN_MAX))
            return;
    }
    pawl_report_problem(r->report, code, file, tensor, PAWL_OFFSET_NONE, "%s", message);
}

/* A shard that can't be read, as its reader says it. */
static void
shard_fault(struct reading *r, struct pawl_str file, const char *code, const struct pawl_error *own)
{
    if (r->n_faults++ == 0 && r->err != NULL) {
        *r->err = *own;
        pawl_error_path(r->err, file);
        pawl_error_code(r->err, code == NULL ? own->code : code);
        r->err->status = PAWL_CORRUPT;
    }
    pawl_report_problem_error(r->report, code, file, own);
}

/* Is it a fault of the bytes, which the report tells, or one that ends the reading? */
static bool
is_content_fault(enum pawl_status st)
{
    return st == PAWL_CORRUPT || st == PAWL_TRUNCATED || st == PAWL_LIMIT || st == PAWL_NO_FILE;
}

static enum pawl_status
read_index(struct reading *r, struct pawl_str name)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    bool is_read = false;

    enum pawl_status st = open_member(&file, r->dir, name, r->options, &own);
    if (st == PAWL_OK) {
        st = pawl_file_read_all(&file, PAWL_INDEX_BYTES_MAX, &text, &own);
        is_read = st == PAWL_OK;
        r->set->index_bytes = file.bytes;
    }
    if (is_read)
        st = pawl_index_parse(&r->scratch, &r->index, text.data, text.len, &own);
    if (st != PAWL_OK) {
        pawl_error_path(&own, pawl_str_z(file.path != NULL ? file.path : name.data));
        if (is_content_fault(st) && st != PAWL_NO_FILE)
            shard_fault(r, name, r->options->use_own_codes && is_read ? NULL : "content", &own);
        else if (r->err != NULL)
            *r->err = own;
        if (is_content_fault(st) && st != PAWL_NO_FILE)
            st = PAWL_CORRUPT;
    }
    pawl_file_release(&file);
    pawl_buffer_release(&text);
    return st;
}

/* Where names say "k of N", the shards of one base must be 1 ... N of one N. Names are sorted, so a base's stand in a row. */
static void
check_numbers(struct reading *r)
{
    struct pawl_str base = PAWL_NO_STR;
    uint32_t count = 0; /* the N of the base */
    uint32_t next = 1;
    bool is_faulty = false; /* once is enough */
    for (size_t i = 0; i <= r->index.n_files; i++) {
        struct pawl_str own = PAWL_NO_STR;
        uint32_t k = UINT32_MAX;
        uint32_t n = 0;
        bool is_numbered = i < r->index.n_files && pawl_shard_number(r->index.files[i], &own, &k, &n);
        bool is_same = is_numbered && base.data != NULL && pawl_str_equal(base, own);
        uint32_t lacking = 0;
        if (base.data != NULL && !is_same && next <= count)
            lacking = next; /* the last ones of the base before */
        else if (is_same && n == count && k != next)
            lacking = next;
        if (!is_faulty && is_same && n != count)
            fault(r, "content", r->set->index_name, PAWL_NO_STR,
                  "shards of '%s' are numbered of %" PRIu32 " and, in '%s', of %" PRIu32, PAWL_SHOW(base), count,
                  PAWL_SHOW(r->index.files[i]), n);
        else if (!is_faulty && lacking != 0)
            fault(r, "content", r->set->index_name, PAWL_NO_STR,
                  "the index maps no tensor to shard %" PRIu32 " of %" PRIu32 " of '%s'", lacking, count,
                  PAWL_SHOW(base));
        is_faulty = is_same && (is_faulty || n != count || lacking != 0);
        if (!is_same) {
            base = own; /* none: PAWL_NO_STR */
            count = n;
            if (is_numbered && k != 1) {
                is_faulty = true;
                fault(r, "content", r->set->index_name, PAWL_NO_STR,
                      "the index maps no tensor to shard 1 of %" PRIu32 " of '%s'", count, PAWL_SHOW(base));
            }
        }
        next = k + 1;
    }
}

/* Other safetensors files of the directory: of an index that was left behind, or whose shards were. */
static enum pawl_status
look_for_strays(struct reading *r, bool is_shard_missing)
{
    struct pawl_dir_list list = { NULL, 0 };
    enum pawl_status st = pawl_dir_list(r->dir, &list, r->err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < list.n; i++) {
        struct pawl_str name = pawl_str_z(list.entries[i].name);
        bool is_listed = false;
        if (list.entries[i].kind == PAWL_OS_DIR || !pawl_str_ends(name, PAWL_STR(".safetensors")))
            continue;
        for (size_t low = 0, high = r->index.n_files; low < high && !is_listed;) {
            size_t middle = low + (high - low) / 2;
            int order = pawl_str_compare(name, r->index.files[middle]);
            is_listed = order == 0;
            if (order < 0)
                high = middle;
            else
                low = middle + 1;
        }
        if (is_listed)
            continue;
        if (is_shard_missing)
            pawl_report_warning(
                r->report, "unlisted-file", name,
                "'%s' is not in the index, which has other files: %zu, '%s' the first of them; the index or "
                "the shards are stale",
                PAWL_SHOW(name), r->index.n_files, PAWL_SHOW(r->index.files[0]));
        else
            pawl_report_warning(r->report, "unlisted-file", name, "'%s' is not in the index: it is ignored",
                                PAWL_SHOW(name));
    }
    pawl_dir_list_release(&list);
    return PAWL_OK;
}

/* A lint warning of a shard, under the shard's name. */
struct shard_lint {
    struct pawl_report *report;
    struct pawl_str name;
};

static void
warn_shard(void *context, const char *code, struct pawl_str tensor, uint64_t offset, const char *message)
{
    const struct shard_lint *lint = context;
    (void)tensor; /* the message names it */
    (void)offset;
    pawl_report_warning(lint->report, code, lint->name, "%s", message);
}

/* Open every shard and read its header. What is wrong with one does not keep the others from being looked at. */
static enum pawl_status
open_shards(struct reading *r)
{
    struct pawl_set *set = r->set;
    struct pawl_set_options options = *r->options;
    struct shard_lint lint = { r->report, PAWL_NO_STR };
    bool is_missing = false;
    options.follow_any = false; /* that was for the index itself */
    options.st.warn = warn_shard;
    options.st.warn_context = &lint;

    for (size_t i = 0; i < r->index.n_files; i++) {
        struct pawl_set_file *file = &set->files[i];
        struct pawl_error own = PAWL_ERROR_INIT;
        if (!pawl_arena_copy_str(&set->arena, r->index.files[i], &file->name))
            return pawl_fail_memory(r->err, r->index.files[i].len);
        set->n_files = i + 1;
        lint.name = file->name;
        enum pawl_status st = pawl_member_open(&file->file, r->dir, file->name, &options, &own);
        bool is_there = st == PAWL_OK;
        if (is_there)
            st = pawl_st_read(&file->header, &file->file, &options.st, &own);
        if (st == PAWL_OK) {
            r->shards[i].is_open = true;
            continue;
        }
        if (!is_content_fault(st)) {
            if (r->err != NULL)
                *r->err = own;
            pawl_error_path(r->err, file->name);
            return st;
        }
        r->shards[i].is_faulty = true;
        if (is_there) {
            shard_fault(r, file->name, options.use_own_codes ? NULL : "content", &own);
        } else if (st == PAWL_NO_FILE || strcmp(own.code, "not-a-file") == 0) {
            is_missing = true;
            fault(r, "missing-file", file->name, PAWL_NO_STR, "the index maps %zu tensor%s to '%s', %s",
                  r->shards[i].mapped, r->shards[i].mapped == 1 ? "" : "s", PAWL_SHOW(file->name),
                  st == PAWL_NO_FILE ? "which is not there" : "which is no regular file");
        } else {
            fault(r, "content", set->index_name, PAWL_NO_STR, "the index maps %zu tensor%s to a wrong place: %s",
                  r->shards[i].mapped, r->shards[i].mapped == 1 ? "" : "s", own.message);
        }
    }
    return r->options->index_inside_only ? PAWL_OK : look_for_strays(r, is_missing);
}

/* Do two tensors hold the same bytes? A fault of reading is kept in r->failed. */
static const char *
compare_bytes(struct reading *r, const struct pawl_tensor_info *a, const struct pawl_tensor_info *b)
{
    const struct pawl_set_file *file_a = &r->set->files[a->file];
    const struct pawl_set_file *file_b = &r->set->files[b->file];
    uint64_t bytes = a->end - a->begin;
    if (a->dtype != b->dtype || bytes != b->end - b->begin || a->rank != b->rank ||
        (a->rank != 0 && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0))
        return "dtype or shape differ";
    unsigned char *both = malloc(2 * COMPARE_BYTES);
    if (both == NULL) {
        r->failed = pawl_fail_memory(r->err, 2 * COMPARE_BYTES);
        return "";
    }
    const char *answer = "the bytes are the same";
    for (uint64_t at = 0; at < bytes;) {
        size_t n = bytes - at < COMPARE_BYTES ? (size_t)(bytes - at) : COMPARE_BYTES;
        enum pawl_status st = pawl_file_read(&file_a->file, file_a->header.data_begin + a->begin + at, both, n, r->err);
        if (st == PAWL_OK)
            st = pawl_file_read(&file_b->file, file_b->header.data_begin + b->begin + at, both + COMPARE_BYTES, n,
                                r->err);
        if (st != PAWL_OK) {
            r->failed = st;
            break;
        }
        if (memcmp(both, both + COMPARE_BYTES, n) != 0) {
            answer = "the bytes differ";
            break;
        }
        at += n;
    }
    free(both);
    return answer;
}

/* Two tensors of the set have one name. */
static size_t
same_name(void *context, size_t a, size_t b)
{
    struct reading *r = context;
    const struct pawl_tensor_info *first = &r->set->tensors[a < b ? a : b];
    const struct pawl_tensor_info *second = &r->set->tensors[a < b ? b : a];
    if (first->file == second->file) /* only in compat mode: its own header says which one counts */
        return (size_t)(pawl_st_find(&r->set->files[first->file].header, first->name) -
                        r->set->files[first->file].header.tensors) +
               r->set->files[first->file].first;
    size_t later = a < b ? b : a;
    if (r->failed != PAWL_OK || r->is_twice[later]) /* a pair may come twice */
        return a < b ? a : b;
    r->is_twice[later] = 1;
    const char *how = r->n_index_faults > FAULTS_SHOWN_MAX ? "" : compare_bytes(r, first, second);
    if (r->failed == PAWL_OK)
        fault(r, "content", r->set->index_name, first->name, "tensor '%s' is in '%s' and in '%s': %s",
              PAWL_SHOW(first->name), PAWL_SHOW(r->set->files[first->file].name),
              PAWL_SHOW(r->set->files[second->file].name), how);
    return a < b ? a : b;
}

/* All tensors in one row, and the table to find them by. */
static enum pawl_status
gather_tensors(struct reading *r)
{
    struct pawl_set *set = r->set;
    size_t n = 0;
    for (size_t i = 0; i < set->n_files; i++)
        n += set->files[i].header.n;
    if (n > UINT32_MAX)
        return pawl_fail(r->err, PAWL_LIMIT, "limit", "%zu tensors in %zu files, more than %" PRIu32, n, set->n_files,
                         UINT32_MAX);
    if (set->n_files == 1) {
        set->tensors = set->files[0].header.tensors;
        set->n = n;
    } else {
        set->tensors = malloc((n + 1) * sizeof *set->tensors);
        if (set->tensors == NULL)
            return pawl_fail_memory(r->err, n * sizeof *set->tensors);
    }
    for (size_t i = 0; i < set->n_files; i++) {
        struct pawl_set_file *file = &set->files[i];
        if (r->shards[i].is_open)
            set->data_bytes += file->header.file_bytes - file->header.data_begin;
        if (set->n_files == 1)
            break;
        file->first = (uint32_t)set->n;
        for (size_t k = 0; k < file->header.n; k++) {
            set->tensors[set->n] = file->header.tensors[k];
            set->tensors[set->n].file = (uint32_t)i;
            set->n++;
        }
    }
    if (set->n_files > 1 && set->n > 0) {
        r->is_twice = calloc(set->n, 1);
        if (r->is_twice == NULL)
            return pawl_fail_memory(r->err, set->n);
        enum pawl_status st = pawl_name_table_build(&set->names, &set->tensors[0].name, sizeof *set->tensors, set->n,
                                                    same_name, r, r->err);
        if (st != PAWL_OK)
            return st;
    }
    return r->failed;
}

static size_t
position(const struct pawl_set *set, struct pawl_str name)
{
    if (set->n == 0)
        return SIZE_MAX;
    if (set->n_files == 1) {
        const struct pawl_tensor_info *found = pawl_st_find(&set->files[0].header, name);
        return found == NULL ? SIZE_MAX : (size_t)(found - set->tensors);
    }
    size_t at = pawl_name_table_find(&set->names, name);
    return at == PAWL_NAME_TABLE_NONE ? SIZE_MAX : at;
}

/* What is mapped must be where the map says, and what is there must be mapped. */
static enum pawl_status
check_map(struct reading *r)
{
    struct pawl_set *set = r->set;
    unsigned char *is_mapped = calloc(set->n + 1, 1);
    if (is_mapped == NULL)
        return pawl_fail_memory(r->err, set->n);
    for (size_t i = 0; i < r->index.n; i++) {
        struct pawl_str tensor = r->index.entries[i].tensor;
        uint32_t file = r->index.entries[i].file;
        size_t at = position(set, tensor);
        if (at != SIZE_MAX)
            is_mapped[at] = 1;
        if (!r->shards[file].is_open)
            continue; /* the shard's own fault */
        if (at == SIZE_MAX)
            fault(r, "content", set->index_name, tensor,
                  "the index maps tensor '%s' to '%s', which does not hold it, and no other shard does",
                  PAWL_SHOW(tensor), PAWL_SHOW(set->files[file].name));
        else if (set->tensors[at].file != file && pawl_st_find(&set->files[file].header, tensor) == NULL)
            fault(r, "content", set->index_name, tensor,
                  "the index maps tensor '%s' to '%s', which does not hold it: it is in '%s'", PAWL_SHOW(tensor),
                  PAWL_SHOW(set->files[file].name), PAWL_SHOW(set->files[set->tensors[at].file].name));
    }
    for (size_t i = 0; i < set->n; i++) {
        /* Of a name that stands twice only one is in the table: the other is no second fault. */
        if (!is_mapped[i] && position(set, set->tensors[i].name) == i)
            fault(r, "content", set->index_name, set->tensors[i].name, "tensor '%s' of '%s' is not in the index",
                  PAWL_SHOW(set->tensors[i].name), PAWL_SHOW(set->files[set->tensors[i].file].name));
    }
    free(is_mapped);
    return PAWL_OK;
}

static void
check_total(struct reading *r)
{
    if (r->index.has_total)
        r->set->total_size_stated = r->index.total_size;
    if (r->n_faults != 0)
        return; /* without all shards there is no sum to hold it against */
    if (r->index.bad_total.data != NULL)
        pawl_report_warning(r->report, "total-size", r->set->index_name,
                            "total_size is %s, the tensors have %" PRIu64 " bytes", PAWL_SHOW(r->index.bad_total),
                            r->set->data_bytes);
    else if (r->index.has_total && r->index.total_size != r->set->data_bytes)
        pawl_report_warning(r->report, "total-size", r->set->index_name,
                            "total_size is %" PRIu64 ", the tensors have %" PRIu64 " bytes", r->index.total_size,
                            r->set->data_bytes);
}

static enum pawl_status
read_all(struct reading *r, const char *index_name)
{
    struct pawl_set *set = r->set;
    if (!pawl_arena_copy_str(&set->arena, pawl_str_z(index_name), &set->index_name))
        return pawl_fail_memory(r->err, strlen(index_name));
    set->has_index = true;
    enum pawl_status st = read_index(r, set->index_name);
    if (st != PAWL_OK)
        return st;
    if (r->index.n_files == 0) {
        fault(r, "content", set->index_name, PAWL_NO_STR, "the index maps no tensor");
        return PAWL_CORRUPT;
    }
    set->files = calloc(r->index.n_files, sizeof *set->files);
    r->shards = calloc(r->index.n_files, sizeof *r->shards);
    if (set->files == NULL || r->shards == NULL)
        return pawl_fail_memory(r->err, r->index.n_files * sizeof *set->files);
    for (size_t i = 0; i < r->index.n; i++)
        r->shards[r->index.entries[i].file].mapped++;

    check_numbers(r);
    st = open_shards(r);
    if (st != PAWL_OK)
        return st;
    st = gather_tensors(r);
    if (st != PAWL_OK)
        return st;
    st = check_map(r);
    if (st != PAWL_OK)
        return st;
    check_total(r);
    if (r->n_index_faults > FAULTS_SHOWN_MAX && !r->options->index_inside_only)
        pawl_report_problem(r->report, "content", set->index_name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "and %zu more faults of this kind", r->n_index_faults - FAULTS_SHOWN_MAX);
    return r->n_faults == 0 ? PAWL_OK : PAWL_CORRUPT;
}

enum pawl_status
pawl_set_open_index(struct pawl_set *set, const struct pawl_dir *dir, const char *index_name,
                    const struct pawl_set_options *options, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_set made = PAWL_SET_INIT;
    struct reading r = { .set = &made, .dir = dir, .options = options, .report = report, .err = err };

    *set = made;
    made.os = dir->os;
    enum pawl_status st = read_all(&r, index_name);
    free(r.shards);
    free(r.is_twice);
    pawl_arena_release(&r.scratch);
    if (st != PAWL_OK)
        pawl_set_release(&made);
    else
        *set = made;
    return st;
}

enum pawl_status
pawl_set_open_shards(struct pawl_set *set, const struct pawl_dir *dir, const struct pawl_str *names, size_t n,
                     const struct pawl_set_options *options, struct pawl_error *err)
{
    struct pawl_set made = PAWL_SET_INIT;
    struct reading r = { .set = &made, .dir = dir, .options = options, .err = err };

    *set = made;
    made.os = dir->os;
    r.index.n_files = n;
    made.files = calloc(n + 1, sizeof *made.files);
    r.shards = calloc(n + 1, sizeof *r.shards);
    r.index.files = pawl_arena_take_array(&r.scratch, n + 1, sizeof *r.index.files);
    enum pawl_status st = PAWL_OK;
    if (made.files == NULL || r.shards == NULL || r.index.files == NULL)
        st = pawl_fail_memory(err, n * (sizeof *made.files + sizeof *r.shards + sizeof *r.index.files));
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        r.index.files[i] = names[i];
    if (st == PAWL_OK)
        st = open_shards(&r);
    if (st == PAWL_OK)
        st = gather_tensors(&r);
    if (st == PAWL_OK && r.n_faults != 0)
        st = PAWL_CORRUPT;
    free(r.shards);
    free(r.is_twice);
    pawl_arena_release(&r.scratch);
    if (st != PAWL_OK)
        pawl_set_release(&made);
    else
        *set = made;
    return st;
}

/* ---- names ---- */

static int
compare_pairs(const void *a, const void *b)
{
    return pawl_str_compare(((const struct pawl_pair *)a)->key, ((const struct pawl_pair *)b)->key);
}

enum pawl_status
pawl_set_check_aliases(struct pawl_set *set, struct pawl_error *err)
{
    const struct pawl_str prefix = PAWL_STR(PAWL_ALIAS_PREFIX);
    const struct pawl_st_header *header = &set->files[0].header;
    enum pawl_status st = PAWL_OK;
    size_t n = 0;
    for (size_t i = 0; i < header->n_metadata; i++)
        n += pawl_str_starts(header->metadata[i].key, prefix);
    set->aliases = NULL;
    set->n_aliases = 0;
    if (n == 0)
        return PAWL_OK;
    struct pawl_pair *aliases = pawl_arena_take_array(&set->arena, n, sizeof *aliases);
    if (aliases == NULL)
        return pawl_fail_memory(err, n * sizeof *aliases);
    n = 0;
    for (size_t i = 0; i < header->n_metadata; i++) {
        struct pawl_str key = header->metadata[i].key;
        if (!pawl_str_starts(key, prefix))
            continue;
        aliases[n].key = pawl_str_make(key.data + prefix.len, key.len - prefix.len);
        aliases[n].value = header->metadata[i].value;
        n++;
    }
    qsort(aliases, n, sizeof *aliases, compare_pairs);
    size_t good = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_tensor = position(set, aliases[i].key) != SIZE_MAX;
        if (!is_tensor && position(set, aliases[i].value) != SIZE_MAX) {
            aliases[good++] = aliases[i];
            continue;
        }
        if (st != PAWL_OK)
            continue;
        st = is_tensor ? pawl_fail(err, PAWL_CORRUPT, "content", "the alias '%s' of '%s' is itself a tensor",
                                   PAWL_SHOW(aliases[i].key), PAWL_SHOW(aliases[i].value))
                       : pawl_fail(err, PAWL_CORRUPT, "content", "the alias '%s' is of '%s', which is no tensor here",
                                   PAWL_SHOW(aliases[i].key), PAWL_SHOW(aliases[i].value));
        pawl_error_tensor(err, aliases[i].key);
        if (set->files[0].file.path != NULL)
            pawl_error_path(err, pawl_str_z(set->files[0].file.path));
    }
    set->aliases = aliases;
    set->n_aliases = good;
    return st;
}

const struct pawl_tensor_info *
pawl_set_find(const struct pawl_set *set, struct pawl_str name)
{
    size_t at = position(set, name);
    if (at == SIZE_MAX && set->n_aliases != 0) {
        const struct pawl_pair wanted = { name, { NULL, 0 } };
        const struct pawl_pair *alias =
            bsearch(&wanted, set->aliases, set->n_aliases, sizeof *set->aliases, compare_pairs);
        if (alias != NULL)
            at = position(set, alias->value);
    }
    return at == SIZE_MAX ? NULL : &set->tensors[at];
}
