#include "checkpoint/restore.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/sort.h"
#include "checkpoint/hashing.h"
#include "checkpoint/names.h"
#include "checkpoint/step_content.h"
#include "model/shared_storage.h"
#include "os/inlet.h"
#include "os/parallel.h"
#include "pawl/digest.h"

/* Read and hashed at a time: it is hashed while the processor still has it at hand. */
#define BLOCK_BYTES ((size_t)1 << 20)
/* A tensor of this many bytes is read from the cache straight into its place; smaller ones share a buffer. */
#define DIRECT_BYTES ((uint64_t)128 << 10)
/* Names of each list in a message; the report has all. */
#define NAMES_SHOWN_MAX 4

/* ---- noting ---- */

static bool
add_text(struct pawl_restore *r, struct pawl_restore_names *names, struct pawl_str text)
{
    if (names->n == names->capacity) {
        size_t capacity = names->capacity == 0 ? 8 : names->capacity * 2;
        struct pawl_str *items = realloc(names->items, capacity * sizeof *items);
        if (items == NULL)
            return false;
        names->items = items;
        names->capacity = capacity;
    }
    if (!pawl_arena_copy_str(&r->scratch, text, &names->items[names->n]))
        return false;
    names->n++;
    return true;
}

bool
pawl_restore_add_name(struct pawl_restore *r, struct pawl_restore_names *names, const char *format, ...)
{
    char text[1200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return add_text(r, names, pawl_str_z(text));
}

void
pawl_restore_add_hard(struct pawl_restore *r, const char *format, ...)
{
    char text[1200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)pawl_buffer_printf(&r->hard, "%s%s", r->hard.len == 0 ? "" : "; ", text);
}

static enum pawl_status
no_memory(struct pawl_restore *r)
{
    return pawl_fail_memory(r->err, sizeof(struct pawl_str));
}

/* ---- which tensor goes where ---- */

/* A place that a tensor of the file goes to; several for one when the caller keeps an alias in memory of its own. */
struct place {
    const struct pawl_tensor *tensor;
    uint32_t next; /* index + 1 of the next place of the same tensor of the file; 0: none */
    uint32_t info; /* index in the set */
};

struct plan {
    const struct pawl_set *set;
    enum pawl_slot slot;
    struct place *places;
    size_t n;
    uint32_t *first;    /* of each tensor of the set: index + 1 into places; 0: it goes nowhere */
    bool *has_overlaps; /* of each file of the set: some of it goes to memory that another place has too */
    const struct pawl_state_order *order;
    size_t next; /* in the order: behind the last one that a name of the file was */
};

static void
plan_release(struct plan *plan)
{
    free(plan->places);
    free(plan->first);
    free(plan->has_overlaps);
}

/* "F32 [2, 3]" */
static const char *
show_shape(char *text, size_t size, enum pawl_dtype dtype, const uint64_t *shape, size_t rank)
{
    int used = snprintf(text, size, "%s [", pawl_dtype_name(dtype));
    for (size_t i = 0; i < rank && used > 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%" PRIu64, i == 0 ? "" : ", ", shape[i]);
    if (used > 0 && (size_t)used + 1 < size)
        (void)snprintf(text + used, size - (size_t)used, "]");
    return text;
}

static bool
has_same_form(const struct pawl_tensor_info *info, const struct pawl_tensor *tensor)
{
    if (info->dtype != tensor->dtype || info->rank != tensor->rank)
        return false;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (info->shape[i] != tensor->shape[i])
            return false;
    }
    return true;
}

/* The tensor of that name. Most files hold what the state would write, in its order: so the next of that order is looked at first. */
static const struct pawl_tensor *
find_tensor(const struct pawl_restore *r, struct plan *plan, struct pawl_str name)
{
    if (plan->next < plan->order->n) {
        const struct pawl_tensor *next = &r->state->tensors[plan->order->items[plan->next]];
        if (pawl_str_equal(next->name, name)) {
            plan->next++;
            return next;
        }
    }
    return pawl_state_find_tensor(r->state, plan->slot, name);
}

/* One name of the file: a tensor, or an alias of one. */
static enum pawl_status
plan_name(struct pawl_restore *r, struct plan *plan, struct pawl_str name, size_t info, bool *is_found)
{
    const struct pawl_tensor_info *on_disk = &plan->set->tensors[info];
    const struct pawl_tensor *tensor = find_tensor(r, plan, name);
    if (tensor == NULL)
        return add_text(r, &r->unexpected, name) ? PAWL_OK : no_memory(r);
    is_found[tensor - r->state->tensors] = true;
    if (tensor->source != NULL) {
        enum pawl_status st =
            pawl_fail(r->err, PAWL_ARGUMENT, "argument",
                      "tensor '%s' has a source and no memory: it can't be restored into", PAWL_SHOW(name));
        pawl_error_tensor(r->err, name);
        return st;
    }
    if (!has_same_form(on_disk, tensor)) {
        char disk[256];
        char asked[256];
        return pawl_restore_add_name(r, &r->mismatched, "%s: %s on disk, %s asked", PAWL_SHOW(name),
                                     show_shape(disk, sizeof disk, on_disk->dtype, on_disk->shape, on_disk->rank),
                                     show_shape(asked, sizeof asked, tensor->dtype, tensor->shape, tensor->rank))
                   ? PAWL_OK
                   : no_memory(r);
    }
    for (uint32_t at = plan->first[info]; at != 0; at = plan->places[at - 1].next) {
        if (pawl_tensor_shares(plan->places[at - 1].tensor, tensor))
            return PAWL_OK; /* tied here as there: restored once */
    }
    plan->places[plan->n] = (struct place){ tensor, plan->first[info], (uint32_t)info };
    plan->first[info] = (uint32_t)++plan->n;
    return PAWL_OK;
}

static uint64_t
address_of(const struct place *place)
{
    return (uint64_t)(uintptr_t)place->tensor->data;
}

static enum pawl_status
note_clash(struct pawl_restore *r, const struct plan *plan, const struct place *first, const struct place *second)
{
    const struct pawl_tensor_info *a = &plan->set->tensors[first->info];
    const struct pawl_tensor_info *b = &plan->set->tensors[second->info];
    if (a == b || a->begin == a->end || !pawl_tensor_shares(first->tensor, second->tensor))
        return PAWL_OK;
    struct pawl_str one = first->tensor->name;
    struct pawl_str other = second->tensor->name;
    bool is_ascending = pawl_str_compare(one, other) < 0;
    return pawl_restore_add_name(r, &r->mismatched, "%s: bytes of its own on disk, the storage of %s asked",
                                 PAWL_SHOW(is_ascending ? other : one), PAWL_SHOW(is_ascending ? one : other))
               ? PAWL_OK
               : no_memory(r);
}

/*
 * Tensors that the caller has tied and the file holds apart: one memory can't take both, and taking the last one would lose the other
 * in silence. Where addresses ascend there are none.
 */
static enum pawl_status
note_clashes(struct pawl_restore *r, struct plan *plan)
{
    enum pawl_status st = PAWL_OK;
    size_t ascending = 1;
    while (ascending < plan->n && address_of(&plan->places[ascending - 1]) < address_of(&plan->places[ascending]))
        ascending++;
    if (ascending >= plan->n)
        return PAWL_OK;
    struct pawl_sort_item *items = malloc(2 * plan->n * sizeof *items);
    if (items == NULL)
        return pawl_fail_memory(r->err, 2 * plan->n * sizeof *items);
    for (size_t i = 0; i < plan->n; i++)
        items[i] = (struct pawl_sort_item){ address_of(&plan->places[i]), i };
    const struct pawl_sort_item *sorted = pawl_sort_by_key(items, items + plan->n, plan->n);
    for (size_t i = 1; i < plan->n && st == PAWL_OK; i++)
        if (sorted[i - 1].key == sorted[i].key)
            st = note_clash(r, plan, &plan->places[sorted[i - 1].item], &plan->places[sorted[i].item]);
    free(items);
    return st;
}

static enum pawl_status
plan_slot(struct pawl_restore *r, struct plan *plan, bool *is_found)
{
    const struct pawl_set *set = plan->set;
    size_t n_names = set->n + set->n_aliases;
    const struct pawl_state_order *order;
    enum pawl_status st = pawl_state_order(r->state, plan->slot, &order, r->err);
    if (st != PAWL_OK)
        return st;
    plan->order = order;

    plan->places = calloc(n_names + 1, sizeof *plan->places);
    plan->first = calloc(set->n + 1, sizeof *plan->first);
    plan->has_overlaps = calloc(set->n_files + 1, sizeof *plan->has_overlaps);
    if (plan->places == NULL || plan->first == NULL || plan->has_overlaps == NULL)
        return pawl_fail_memory(r->err, (n_names + 1) * sizeof *plan->places);
    for (size_t i = 0; i < set->n && st == PAWL_OK; i++)
        st = plan_name(r, plan, set->tensors[i].name, i, is_found);
    for (size_t i = 0; i < set->n_aliases && st == PAWL_OK; i++) {
        const struct pawl_tensor_info *target = pawl_set_find(set, set->aliases[i].value);
        st = plan_name(r, plan, set->aliases[i].key, (size_t)(target - set->tensors), is_found);
    }
    for (size_t i = 0; i < r->state->n_tensors && st == PAWL_OK; i++) {
        const struct pawl_tensor *tensor = &r->state->tensors[i];
        if (tensor->slot == plan->slot && !is_found[i] && !add_text(r, &r->missing, tensor->name))
            st = no_memory(r);
    }
    return st == PAWL_OK ? note_clashes(r, plan) : st;
}

/* ---- memory that two places have ---- */

struct span {
    uintptr_t begin, end;
    struct plan *plan;
    uint32_t file;
};

/* The spans by where they begin: as they are, or in the room behind them. `items` is room for twice as many. */
static const struct span *
sort_spans(struct span *spans, size_t n, struct pawl_sort_item *items)
{
    size_t ascending = 1;
    while (ascending < n && spans[ascending - 1].begin <= spans[ascending].begin)
        ascending++;
    if (ascending >= n)
        return spans;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct pawl_sort_item){ (uint64_t)spans[i].begin, i };
    const struct pawl_sort_item *sorted = pawl_sort_by_key(items, items + n, n);
    for (size_t i = 0; i < n; i++)
        spans[n + i] = spans[sorted[i].item];
    return spans + n;
}

/*
 * Views of the caller's that share a part of their memory are taken as they are: the file has the bytes of each, and what is read last
 * stands. But a place that another one writes to can't be hashed, or copied from: files with such places are marked, to be read
 * through blocks of our own. *ret_across: two files go to the same memory, so that they can't be read at once either.
 */
static enum pawl_status
find_overlaps(struct pawl_restore *r, struct plan *const plans[2], bool *ret_across)
{
    size_t n = 0, most = plans[0]->n + plans[1]->n + 1;
    struct span *spans = malloc(2 * most * sizeof *spans);
    struct pawl_sort_item *items = malloc(2 * most * sizeof *items);
    if (spans == NULL || items == NULL) {
        free(spans);
        free(items);
        return pawl_fail_memory(r->err, 2 * most * (sizeof *spans + sizeof *items));
    }
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < plans[k]->n; i++) {
            const struct place *place = &plans[k]->places[i];
            const struct pawl_tensor_info *info = &plans[k]->set->tensors[place->info];
            struct span *span = &spans[n];
            *span = (struct span){ .plan = plans[k], .file = info->file };
            pawl_tensor_span(place->tensor, info->end - info->begin, &span->begin, &span->end);
            n += span->begin != span->end;
        }
    }
    const struct span *sorted = sort_spans(spans, n, items);
    *ret_across = false;
    uintptr_t end = n == 0 ? 0 : sorted[0].end; /* of all so far */
    for (size_t i = 1; i < n; i++) {
        const struct span *before = &sorted[i - 1], *span = &sorted[i];
        if (span->begin < end) { /* the one before begins no later: it is of the same heap of spans */
            before->plan->has_overlaps[before->file] = true;
            span->plan->has_overlaps[span->file] = true;
            *ret_across |= before->plan != span->plan || before->file != span->file;
        }
        end = span->end > end ? span->end : end;
    }
    free(spans);
    free(items);
    return PAWL_OK;
}

/* ---- reading ---- */

/* A file read from front to back; every byte is hashed once, as it comes. */
struct reader {
    const struct pawl_file *file;
    struct pawl_sha256 *hash; /* NULL: trusted */
    struct pawl_lane *lane;   /* hashes what is read, beside the reading; NULL: hashed here */
    struct pawl_inlet *inlet;
    struct pawl_inlet_piece piece;
    uint64_t at; /* in the piece */
};

/* Straight from the cache into its place, which nobody else writes to. */
static enum pawl_status
read_into_place(struct reader *reader, void *data, size_t bytes, struct pawl_error *err)
{
    enum pawl_status st = pawl_file_read(reader->file, reader->at, data, bytes, err);
    if (st == PAWL_OK && reader->lane != NULL)
        return pawl_lane_lend(reader->lane, data, bytes, err);
    if (st == PAWL_OK && reader->hash != NULL)
        pawl_sha256_update(reader->hash, data, bytes);
    return st;
}

/* What is in the buffer is hashed there, before and while it is copied to its places. */
static enum pawl_status
hash_piece(struct reader *reader, struct pawl_error *err)
{
    const struct pawl_inlet_piece *piece = &reader->piece;
    size_t bytes = (size_t)(piece->end - piece->begin);
    if (reader->lane != NULL)
        return pawl_lane_lend_until(reader->lane, piece->data, bytes, pawl_inlet_give, pawl_inlet_share(reader->inlet),
                                    err);
    if (reader->hash != NULL)
        pawl_sha256_update(reader->hash, piece->data, bytes);
    return PAWL_OK;
}

static enum pawl_status
next_piece(struct reader *reader, struct pawl_error *err)
{
    enum pawl_status st = pawl_inlet_next(reader->inlet, &reader->piece, err);
    if (st == PAWL_OK && reader->piece.data != NULL)
        st = hash_piece(reader, err);
    return st;
}

static enum pawl_status
load_piece(struct reader *reader, struct pawl_error *err)
{
    enum pawl_status st = pawl_inlet_load(reader->inlet, reader->at, &reader->piece, err);
    return st == PAWL_OK ? hash_piece(reader, err) : st;
}

static void
put_piece(const struct plan *plan, uint32_t at, uint64_t offset, const void *piece, size_t bytes)
{
    for (; at != 0; at = plan->places[at - 1].next)
        pawl_tensor_scatter(plan->places[at - 1].tensor, offset, piece, bytes);
}

static enum pawl_status
read_tensor(struct reader *reader, const struct plan *plan, size_t i, struct pawl_error *err)
{
    const struct pawl_tensor_info *info = &plan->set->tensors[i];
    uint64_t bytes = info->end - info->begin;
    uint32_t at = plan->first[i];
    bool is_direct = bytes >= DIRECT_BYTES && at != 0 && !plan->has_overlaps[info->file] &&
                     pawl_tensor_is_packed(plan->places[at - 1].tensor);

    for (uint64_t done = 0; done < bytes;) {
        struct pawl_inlet_piece *piece = &reader->piece;
        enum pawl_status st = reader->at == piece->end ? next_piece(reader, err) : PAWL_OK;
        uint64_t left = piece->end - reader->at;
        size_t n = (size_t)(bytes - done < left ? bytes - done : left);
        if (st == PAWL_OK && is_direct && piece->data == NULL) {
            unsigned char *place = (unsigned char *)plan->places[at - 1].tensor->data + done;
            n = n < BLOCK_BYTES ? n : BLOCK_BYTES;
            st = read_into_place(reader, place, n, err);
            if (st == PAWL_OK)
                put_piece(plan, plan->places[at - 1].next, done, place, n);
        } else if (st == PAWL_OK) {
            if (piece->data == NULL)
                st = load_piece(reader, err);
            if (st == PAWL_OK)
                put_piece(plan, at, done, piece->data + (reader->at - piece->begin), n);
        }
        if (st != PAWL_OK) {
            pawl_error_tensor(err, info->name);
            return st;
        }
        reader->at += n;
        done += n;
    }
    return PAWL_OK;
}

/* Does anything of this file go anywhere? */
static bool
file_is_wanted(const struct plan *plan, size_t file)
{
    const struct pawl_set_file *set_file = &plan->set->files[file];
    for (size_t i = 0; i < set_file->header.n; i++) {
        if (plan->first[set_file->first + i] != 0)
            return true;
    }
    return false;
}

static enum pawl_status
begin_reader(struct reader *reader, struct pawl_lanes *lanes, size_t at_once, struct pawl_error *err)
{
    const struct pawl_lane_options options = { .tap = pawl_hash_tap(reader->hash) };
    enum pawl_status st = pawl_inlet_open(&reader->inlet, reader->file, reader->at, reader->file->bytes, at_once, err);
    if (st == PAWL_OK && lanes != NULL && reader->hash != NULL)
        (void)pawl_lane_open(&reader->lane, lanes, &options, NULL); /* or else it is hashed by who reads it */
    reader->piece = (struct pawl_inlet_piece){ reader->at, reader->at, NULL };
    return st;
}

static enum pawl_status
read_file(const struct pawl_restore *r, const struct plan *plan, size_t file, struct pawl_lanes *lanes, size_t at_once,
          struct pawl_error *err)
{
    const struct pawl_set_file *set_file = &plan->set->files[file];
    const struct pawl_receipt *row = pawl_step_row(r->step, set_file->name);
    struct reader reader = { .file = &set_file->file, .at = set_file->header.data_begin };
    unsigned char digest[32];
    enum pawl_status st = PAWL_OK;

    if (r->step->trust != PAWL_TRUST_SIZE_ONLY) {
        st = pawl_sha256_new(&reader.hash, err);
        if (st != PAWL_OK)
            return st;
        pawl_step_hash_header(reader.hash, set_file);
    } else if (!file_is_wanted(plan, file)) {
        return PAWL_OK;
    }
    st = begin_reader(&reader, lanes, at_once, err);
    for (size_t i = 0; i < set_file->header.n && st == PAWL_OK; i++)
        st = read_tensor(&reader, plan, set_file->first + i, err);
    if (st == PAWL_OK && reader.lane != NULL)
        st = pawl_lane_flush(reader.lane, err);
    pawl_lane_close(reader.lane); /* nobody looks at the caller's memory, or a buffer, any more */
    pawl_inlet_close(reader.inlet);
    if (st == PAWL_OK && reader.hash != NULL) {
        pawl_sha256_finish(reader.hash, digest);
        st = pawl_step_check_digest(row, digest, err);
    } else if (st == PAWL_OK) {
        st = pawl_file_check_unchanged(&set_file->file, err);
    }
    pawl_sha256_free(reader.hash);
    return st;
}

/* All reasons, not the first: the tensor files that the reading did not come to are hashed, into nobody's memory. */
static enum pawl_status
look_at_the_rest(struct pawl_restore *r)
{
    bool all_right;
    const struct pawl_set *const sets[] = { &r->step->model, &r->step->optimizer };
    return pawl_step_hash_sets(r->step, sets, 2, r->report, &all_right, r->err);
}

/* One file of tensors, and what its reading came to. */
struct reading {
    const struct plan *plan;
    size_t file;
    enum pawl_status status;
    struct pawl_error error;
};

struct readings {
    const struct pawl_restore *r;
    struct pawl_lanes *lanes;
    struct reading *items;
    size_t n;
    struct pawl_hash_sizes sizes;
};

static void
read_one(void *context, size_t i)
{
    struct readings *readings = context;
    struct reading *reading = &readings->items[i];
    reading->status =
        read_file(readings->r, reading->plan, reading->file, readings->lanes, readings->sizes.n_large, &reading->error);
}

/* In the order of the files: the first that is wrong is told, and all others looked at. */
static enum pawl_status
judge_readings(struct pawl_restore *r, const struct readings *readings)
{
    const struct reading *wrong = NULL;
    for (size_t i = 0; i < readings->n; i++) {
        const struct reading *reading = &readings->items[i];
        const struct pawl_receipt *row = pawl_step_row(r->step, reading->plan->set->files[reading->file].name);
        struct pawl_step_file *file = &r->step->files[row - r->step->manifest.files];
        if (reading->status == PAWL_OK) {
            file->state = PAWL_STEP_FILE_RIGHT;
            continue;
        }
        if (wrong != NULL)
            continue; /* it is hashed again with the rest */
        wrong = reading;
        if (!pawl_step_is_content_fault(reading->status)) {
            if (r->err != NULL)
                *r->err = reading->error;
            return reading->status;
        }
        file->state = PAWL_STEP_FILE_WRONG;
        const char *code = reading->status == PAWL_TRUNCATED ? "size" : reading->status == PAWL_IO ? "io" : "hash";
        pawl_report_problem_error(r->report, code, row->name, &reading->error);
        if (strcmp(code, "hash") == 0)
            pawl_step_tell_damage(r->step, row, r->report);
        if (r->err != NULL)
            *r->err = reading->error;
        pawl_error_code(r->err, code);
        if (r->err != NULL)
            r->err->status = PAWL_INCOMPLETE;
    }
    if (wrong == NULL)
        return PAWL_OK;
    enum pawl_status st = look_at_the_rest(r);
    return st == PAWL_OK ? PAWL_INCOMPLETE : st;
}

/* Read the files one after the other, until one is wrong. */
static void
read_in_turn(struct readings *readings)
{
    for (size_t i = 0; i < readings->n; i++) {
        read_one(readings, i);
        if (readings->items[i].status != PAWL_OK)
            readings->n = i + 1;
    }
}

static enum pawl_status
read_tensors(struct pawl_restore *r, struct plan *model, struct plan *optimizer)
{
    struct plan *const plans[] = { model, optimizer };
    struct readings readings = { .r = r };
    bool are_entangled = false;
    enum pawl_status st = find_overlaps(r, plans, &are_entangled);
    if (st != PAWL_OK)
        return st;
    readings.items = calloc(model->set->n_files + optimizer->set->n_files + 1, sizeof *readings.items);
    if (readings.items == NULL)
        return pawl_fail_memory(r->err, sizeof *readings.items);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < plans[k]->set->n_files; i++) {
            readings.items[readings.n++] = (struct reading){ .plan = plans[k], .file = i };
            pawl_hash_sizes_add(&readings.sizes, plans[k]->set->files[i].file.bytes);
        }
    }
    bool is_hashed = r->step->trust != PAWL_TRUST_SIZE_ONLY;
    if (is_hashed)
        readings.lanes = pawl_hash_lanes(r->step->dir.os, &readings.sizes);
    if (readings.lanes != NULL || (!is_hashed && pawl_hash_wants_threads(r->step->dir.os, &readings.sizes)))
        pawl_parallel(readings.n, are_entangled ? 1 : PAWL_HASH_FILES_MAX, read_one, &readings);
    else
        read_in_turn(&readings);
    pawl_lanes_free(readings.lanes);
    st = judge_readings(r, &readings);
    free(readings.items);
    return st;
}

/* ---- the outcome of the comparison ---- */

static int
compare_texts(const void *a, const void *b)
{
    return pawl_str_compare(*(const struct pawl_str *)a, *(const struct pawl_str *)b);
}

static void
show_names(struct pawl_buffer *out, const struct pawl_restore_names *names, const char *what)
{
    if (names->n == 0)
        return;
    (void)pawl_buffer_printf(out, "%s%zu %s (", out->len == 0 ? "" : "; ", names->n, what);
    for (size_t i = 0; i < names->n && i < NAMES_SHOWN_MAX; i++)
        (void)pawl_buffer_printf(out, "%s%s", i == 0 ? "" : ", ", PAWL_SHOW(names->items[i]));
    (void)pawl_buffer_printf(out, "%s)", names->n > NAMES_SHOWN_MAX ? ", ..." : "");
}

static enum pawl_status
fail_mismatch(struct pawl_restore *r)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    (void)pawl_buffer_add_str(&text, pawl_buffer_str(&r->hard));
    show_names(&text, &r->missing, "missing in the checkpoint");
    show_names(&text, &r->unexpected, "not asked for");
    show_names(&text, &r->mismatched, "that differ");
    (void)pawl_buffer_terminate(&text);
    enum pawl_status st = pawl_buffer_ok(&text) && pawl_buffer_ok(&r->hard)
                              ? pawl_fail(r->err, PAWL_MISMATCH, "mismatch", "%s does not fit the state: %s",
                                          PAWL_SHOW(r->step->name), text.data)
                              : no_memory(r);
    pawl_error_path(r->err, pawl_str_z(r->step->dir.path));
    pawl_buffer_release(&text);
    return st;
}

static void
report_names(struct pawl_restore *r)
{
    static const enum pawl_names WHICH[] = { PAWL_NAMES_MISSING, PAWL_NAMES_UNEXPECTED, PAWL_NAMES_MISMATCHED };
    struct pawl_restore_names *lists[] = { &r->missing, &r->unexpected, &r->mismatched };
    for (size_t i = 0; i < 3; i++) {
        if (lists[i]->n > 1)
            qsort(lists[i]->items, lists[i]->n, sizeof *lists[i]->items, compare_texts);
        for (size_t k = 0; k < lists[i]->n; k++)
            pawl_report_name(r->report, WHICH[i], lists[i]->items[k]);
    }
}

/* Everything was compared: go on, or stop before the first byte is overwritten. */
static enum pawl_status
judge(struct pawl_restore *r)
{
    bool all_fit = r->missing.n == 0 && r->unexpected.n == 0 && r->mismatched.n == 0;
    bool all_right = true;

    if (!pawl_buffer_ok(&r->hard))
        return no_memory(r);
    bool is_fine = r->hard.len == 0 && (all_fit || r->request.lenient);
    if (!is_fine || r->request.verify_first) {
        /* A flipped bit in a header can look like another name: first make sure that this is what was written. */
        const struct pawl_set *const sets[] = { &r->step->model, &r->step->optimizer };
        enum pawl_status st = pawl_step_hash_sets(r->step, sets, 2, r->report, &all_right, r->err);
        if (st != PAWL_OK)
            return st;
        if (!all_right)
            return pawl_fail(r->err, PAWL_INCOMPLETE, "hash", "%s is damaged", PAWL_SHOW(r->step->name));
    }
    report_names(r);
    return is_fine ? PAWL_OK : fail_mismatch(r);
}

/* ---- the whole ---- */

/* Anything but tensors of the model? Tensors of the optimizer are missing by themselves. */
static bool
asks_for_more(const struct pawl_state *state)
{
    return state->n_numbers != 0 || state->n_rngs != 0 || state->n_opaques != 0 || state->stream != NULL ||
           state->optimizer.data != NULL;
}

static enum pawl_status
restore(struct pawl_restore *r, struct plan *model, struct plan *optimizer)
{
    bool *is_found = calloc(r->state->n_tensors + 1, sizeof *is_found);
    if (is_found == NULL)
        return pawl_fail_memory(r->err, r->state->n_tensors + 1);
    enum pawl_status st = plan_slot(r, model, is_found);
    if (st == PAWL_OK)
        st = plan_slot(r, optimizer, is_found);
    free(is_found);
    if (st == PAWL_OK && !r->request.weights_only)
        st = pawl_restore_plan_values(r);
    else if (st == PAWL_OK && asks_for_more(r->state))
        pawl_restore_add_hard(r, "the checkpoint was opened for its weights only, and the state asks for more");
    if (st == PAWL_OK)
        st = judge(r);
    return st == PAWL_OK ? read_tensors(r, model, optimizer) : st;
}

void
pawl_restore_release(struct pawl_restore *r)
{
    free(r->missing.items);
    free(r->unexpected.items);
    free(r->mismatched.items);
    free(r->values);
    pawl_buffer_release(&r->hard);
    pawl_arena_release(&r->scratch);
    *r = (struct pawl_restore){ .step = NULL };
}

enum pawl_status
pawl_restore_read(struct pawl_restore *r, struct pawl_step *step, struct pawl_state *state,
                  const struct pawl_restore_request *request, struct pawl_report *report, struct pawl_error *err)
{
    struct plan model = { .set = &step->model, .slot = PAWL_MODEL };
    struct plan optimizer = { .set = &step->optimizer, .slot = PAWL_OPTIMIZER };

    *r = (struct pawl_restore){ .step = step, .state = state, .request = *request, .report = report, .err = err };
    enum pawl_status st = restore(r, &model, &optimizer);
    plan_release(&model);
    plan_release(&optimizer);
    if (st == PAWL_OK && !pawl_report_ok(report))
        st = no_memory(r);
    if (st != PAWL_OK)
        pawl_restore_release(r);
    return st;
}
