/* checkpoint/parts.c: what files a save is made of, and writing one of them. */
#include "checkpoint/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/checked.h"
#include "base/str.h"
#include "checkpoint/block_sums.h"
#include "checkpoint/names.h"
#include "checkpoint/values.h"
#include "os/large.h"
#include "os/thread.h"
#include "codec/sha256_streams.h"
#include "stream/stream_document.h"

/* Progress is told, and a cancellation heard, about this often. */
#define TELL_BYTES ((uint64_t)8 << 20)

/* Hashed, then summed, at a time: what the second looks at is still in the processor's cache. */
#define SUMMED_BYTES ((size_t)128 << 10)

/* So many tensors are fetched before their turn. */
#define AHEAD ((size_t)16)

/* ---- the files of one slot ---- */

static struct pawl_pair
pair_of(struct pawl_str key, struct pawl_str value)
{
    return (struct pawl_pair){ key, value };
}

static enum pawl_status
check_profile(const struct pawl_tensor *tensor, enum pawl_profile profile, struct pawl_error *err)
{
    bool is_fine = true;
    const char *what = "";
    if (profile == PAWL_PROFILE_TINYLLM) {
        is_fine = tensor->dtype == PAWL_F32;
        what = "tinyllm takes F32 only";
    } else if (profile == PAWL_PROFILE_COURSE) {
        const uint32_t known = 1U << PAWL_F32 | 1U << PAWL_F16 | 1U << PAWL_BF16 | 1U << PAWL_F8_E4M3 | 1U << PAWL_I8 |
                               1U << PAWL_U8 | 1U << PAWL_I32;
        is_fine = (known >> tensor->dtype & 1) != 0;
        what = "course takes F32, F16, BF16, F8_E4M3, I8, U8 and I32";
    }
    if (is_fine)
        return PAWL_OK;
    enum pawl_status st = pawl_fail(err, PAWL_ARGUMENT, "profile", "tensor '%s' is %s: profile %s",
                                    PAWL_SHOW(tensor->name), pawl_dtype_name(tensor->dtype), what);
    pawl_error_tensor(err, tensor->name);
    return st;
}

/* "pawl.alias.NAME": the name of the tensor whose storage it shares. */
static enum pawl_status
add_alias(struct pawl_parts *parts, struct pawl_part_set *set, struct pawl_str name, struct pawl_str target,
          struct pawl_error *err)
{
    const struct pawl_str prefix = PAWL_STR("pawl.alias.");
    char *key = pawl_arena_take(&parts->arena, prefix.len + name.len);
    if (key == NULL)
        return pawl_fail_memory(err, prefix.len + name.len);
    memcpy(key, prefix.data, prefix.len);
    if (name.len != 0)
        memcpy(key + prefix.len, name.data, name.len);
    set->metadata[set->n_metadata++] = pair_of(pawl_str_make(key, prefix.len + name.len), target);
    return PAWL_OK;
}

/* The tensors of a slot that are written, in the order of the file, and a metadata pair for each that shares another's storage. */
static enum pawl_status
gather_set(struct pawl_parts *parts, struct pawl_part_set *set, struct pawl_state *state, enum pawl_slot slot,
           enum pawl_profile profile, struct pawl_error *err)
{
    const struct pawl_state_order *order;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < state->n_tensors && st == PAWL_OK && profile != PAWL_PROFILE_NONE; i++)
        if (state->tensors[i].slot == slot)
            st = check_profile(&state->tensors[i], profile, err);
    if (st == PAWL_OK)
        st = pawl_state_order(state, slot, &order, err);
    if (st != PAWL_OK)
        return st;
    set->tensors = pawl_arena_take_array(&parts->arena, order->n + 1, sizeof *set->tensors);
    set->metadata =
        pawl_arena_take_array(&parts->arena, order->n_aliases + state->n_metadata + 4, sizeof *set->metadata);
    if (set->tensors == NULL || set->metadata == NULL)
        return pawl_fail_memory(err, (order->n + 1) * sizeof *set->tensors);
    for (size_t i = 0; i < order->n; i++)
        set->tensors[i] = &state->tensors[order->items[i]];
    set->n = order->n;
    for (size_t i = 0; i < order->n_aliases && st == PAWL_OK; i++)
        st = add_alias(parts, set, state->tensors[order->aliases[i].tensor].name,
                       state->tensors[order->aliases[i].target].name, err);
    return st;
}

static enum pawl_status
plan_set(struct pawl_part_set *set, struct pawl_str base, uint64_t max_file_bytes, struct pawl_error *err)
{
    /* Their names and dtypes were checked when they were described. */
    struct pawl_st_item *items = malloc((set->n + 1) * sizeof *items);
    if (items == NULL)
        return pawl_fail_memory(err, (set->n + 1) * sizeof *items);
    pawl_memory_filled(items, (set->n + 1) * sizeof *items);
    for (size_t i = 0; i < set->n; i++) {
        const struct pawl_tensor *tensor = set->tensors[i];
        if (i + AHEAD < set->n) /* they were described in another order: the waits for memory overlap */
            __builtin_prefetch(set->tensors[i + AHEAD]);
        items[i] = (struct pawl_st_item){ tensor->name, tensor->dtype, tensor->rank, tensor->shape };
    }
    enum pawl_status st = pawl_split_plan_ordered(&set->split, base, items, set->n, set->metadata, set->n_metadata,
                                                  true, max_file_bytes, 0, err);
    free(items);
    return st == PAWL_OK ? st : pawl_context(err, st, "plan the files of the %.*s", PAWL_ARG(base));
}

/* The caller's metadata, and `format`, which both files have. */
static enum pawl_status
add_metadata(struct pawl_part_set *set, const struct pawl_state *state, enum pawl_profile profile,
             struct pawl_str *ret_format, struct pawl_error *err)
{
    bool is_tinyllm = profile == PAWL_PROFILE_TINYLLM;
    struct pawl_str format = is_tinyllm ? PAWL_STR("tinyllm") : PAWL_STR("pt");
    bool has_format = false;
    for (size_t i = 0; i < state->n_metadata; i++) {
        set->metadata[set->n_metadata++] = state->metadata[i];
        if (!pawl_str_equal(state->metadata[i].key, PAWL_STR("format")))
            continue;
        has_format = true;
        if (is_tinyllm && !pawl_str_equal(state->metadata[i].value, format))
            return pawl_fail(err, PAWL_ARGUMENT, "profile",
                             "metadata 'format' is '%s': profile tinyllm takes 'tinyllm'",
                             PAWL_SHOW(state->metadata[i].value));
        format = state->metadata[i].value;
    }
    if (!has_format)
        set->metadata[set->n_metadata++] = pair_of(PAWL_STR("format"), format);
    *ret_format = format;
    return PAWL_OK;
}

static enum pawl_status
check_optimizer_profile(struct pawl_str name, enum pawl_profile profile, struct pawl_error *err)
{
    if (profile != PAWL_PROFILE_TINYLLM || pawl_str_equal(name, PAWL_STR("adamw")) ||
        pawl_str_equal(name, PAWL_STR("sgd")) || pawl_str_equal(name, PAWL_STR("muon")) ||
        pawl_str_equal(name, PAWL_STR("none")))
        return PAWL_OK;
    return pawl_fail(err, PAWL_ARGUMENT, "profile", "optimizer '%s': profile tinyllm takes adamw, sgd, muon or none",
                     PAWL_SHOW(name));
}

static enum pawl_status
plan_tensors(struct pawl_parts *parts, struct pawl_state *state, const struct pawl_parts_options *options,
             double *ret_lr, struct pawl_error *err)
{
    struct pawl_str format = PAWL_STR("");
    struct pawl_str name = pawl_values_optimizer_name(state);
    enum pawl_status st = check_optimizer_profile(name, options->profile, err);
    if (st == PAWL_OK)
        st = gather_set(parts, &parts->model, state, PAWL_MODEL, options->profile, err);
    if (st == PAWL_OK)
        st = add_metadata(&parts->model, state, options->profile, &format, err);
    if (st == PAWL_OK)
        st = plan_set(&parts->model, PAWL_STR("model"), options->max_file_bytes, err);
    if (st == PAWL_OK)
        st = gather_set(parts, &parts->optimizer, state, PAWL_OPTIMIZER, options->profile, err);
    if (st == PAWL_OK)
        st = pawl_values_optimizer(state, &parts->optimizer_state, ret_lr, err);
    if (st != PAWL_OK)
        return st;
    char *step = pawl_arena_take(&parts->arena, 24);
    if (step == NULL)
        return pawl_fail_memory(err, 24);
    (void)snprintf(step, 24, "%" PRId64, options->step);
    struct pawl_part_set *set = &parts->optimizer;
    set->metadata[set->n_metadata++] = pair_of(PAWL_STR("format"), format);
    set->metadata[set->n_metadata++] = pair_of(PAWL_STR("optimizer"), name);
    set->metadata[set->n_metadata++] = pair_of(PAWL_STR("step"), pawl_str_z(step));
    set->metadata[set->n_metadata++] = pair_of(PAWL_STR("state"), pawl_buffer_str(&parts->optimizer_state));
    return plan_set(set, PAWL_STR("optimizer"), options->max_file_bytes, err);
}

/* ---- the list of parts ---- */

static bool
add_part(struct pawl_parts *parts, struct pawl_str name, struct pawl_part part)
{
    struct pawl_str copy;
    if (!pawl_arena_copy_str(&parts->arena, name, &copy))
        return false;
    part.name = copy.data;
    parts->parts[parts->n++] = part;
    parts->bytes += part.bytes;
    return true;
}

static bool
add_document(struct pawl_parts *parts, struct pawl_str name, const struct pawl_buffer *text)
{
    return add_part(parts, name, (struct pawl_part){ .bytes = text->len, .text = text->len == 0 ? "" : text->data });
}

static bool
add_set(struct pawl_parts *parts, const struct pawl_part_set *set, struct pawl_str index_name)
{
    for (size_t i = 0; i < set->split.n_files; i++)
        if (!add_part(parts, set->split.files[i].name,
                      (struct pawl_part){ .bytes = set->split.files[i].plan.file_bytes,
                                          .file = &set->split.files[i],
                                          .tensors = set->tensors }))
            return false;
    return set->split.index.len == 0 || add_document(parts, index_name, &set->split.index);
}

static enum pawl_status
list_parts(struct pawl_parts *parts, const struct pawl_state *state, struct pawl_error *err)
{
    size_t n_max = parts->model.split.n_files + parts->optimizer.split.n_files + state->n_files + 6;
    parts->parts = pawl_arena_take_array(&parts->arena, n_max, sizeof *parts->parts);
    bool is_fine = parts->parts != NULL;
    is_fine = is_fine && add_set(parts, &parts->model, PAWL_STR("model.safetensors.index.json"));
    is_fine = is_fine && add_set(parts, &parts->optimizer, PAWL_STR("optimizer.safetensors.index.json"));
    is_fine = is_fine && add_document(parts, PAWL_STR(PAWL_TRAINER_STATE), &parts->trainer_state);
    if (parts->extra_state.len != 0)
        is_fine = is_fine && add_document(parts, PAWL_STR(PAWL_EXTRA_STATE), &parts->extra_state);
    if (parts->stream_state.len != 0)
        is_fine = is_fine && add_document(parts, PAWL_STR(PAWL_STREAM_STATE), &parts->stream_state);
    if (parts->metrics.len != 0)
        is_fine = is_fine && add_document(parts, PAWL_STR(PAWL_METRICS), &parts->metrics);
    for (size_t i = 0; i < state->n_files && is_fine; i++)
        is_fine = add_document(parts, state->files[i].name, &state->files[i].data);
    return is_fine ? PAWL_OK : pawl_fail_memory(err, n_max * sizeof *parts->parts);
}

/* The parts of tensors ascend by name: the model's before the optimizer's, shards by their numbers. */
static enum pawl_status
plan_sums(struct pawl_parts *parts, struct pawl_error *err)
{
    size_t n = 0;
    struct pawl_sums_file *files = pawl_arena_take_array(&parts->arena, parts->n, sizeof *files);
    if (files == NULL)
        return pawl_fail_memory(err, parts->n * sizeof *files);
    for (size_t i = 0; i < parts->n; i++) {
        const struct pawl_part *part = &parts->parts[i];
        if (part->text != NULL)
            continue;
        const struct pawl_buffer *header = &part->file->plan.prefix;
        files[n++] = (struct pawl_sums_file){ .name = pawl_str_z(part->name),
                                              .bytes = part->bytes,
                                              .header_bytes = header->len,
                                              .header_sum = pawl_xxh64(header->data, header->len, 0) };
    }
    enum pawl_status st = pawl_sums_lay_out(files, n, &parts->sums_text, err);
    if (st != PAWL_OK)
        return st;
    unsigned char *text = (unsigned char *)parts->sums_text.data;
    for (size_t i = 0, at = 0; i < parts->n; i++)
        if (parts->parts[i].text == NULL)
            parts->parts[i].sums = text + (files[at++].sums - text);
    parts->sums = (struct pawl_part){ .name = PAWL_SUMS, .bytes = parts->sums_text.len, .text = text };
    parts->bytes += parts->sums.bytes;
    return PAWL_OK;
}

void
pawl_parts_seal_sums(struct pawl_parts *parts)
{
    pawl_sums_seal(&parts->sums_text);
}

enum pawl_status
pawl_parts_plan(struct pawl_parts *parts, struct pawl_state *state, const struct pawl_parts_options *options,
                struct pawl_error *err)
{
    double lr = 0.0;
    enum pawl_status st;
    *parts = (struct pawl_parts){ .arena = PAWL_ARENA_INIT };
    if (options->step < 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "step %" PRId64 " is negative", options->step);
    st = plan_tensors(parts, state, options, &lr, err);
    if (st == PAWL_OK)
        st = pawl_values_trainer(state, options->step, lr, &parts->trainer_state, err);
    if (st == PAWL_OK)
        st = pawl_values_extra(state, &parts->extra_state, err);
    if (st == PAWL_OK && state->stream != NULL)
        st = pawl_stream_write_document(state->stream, &parts->stream_state, err);
    if (st == PAWL_OK && options->n_metrics != 0)
        st = pawl_metrics_make(options->metrics, options->n_metrics, &parts->metrics, err);
    if (st == PAWL_OK)
        st = list_parts(parts, state, err);
    if (st == PAWL_OK && options->with_sums)
        st = plan_sums(parts, err);
    if (st != PAWL_OK)
        pawl_parts_release(parts);
    return st;
}

static enum pawl_status
own_set(struct pawl_parts *parts, struct pawl_part_set *set, struct pawl_error *err)
{
    struct pawl_tensor *copies = pawl_arena_take_array(&parts->arena, set->n + 1, sizeof *copies);
    if (copies == NULL)
        return pawl_fail_memory(err, (set->n + 1) * sizeof *copies);
    for (size_t i = 0; i < set->n; i++) {
        copies[i] = *set->tensors[i];
        if (!pawl_tensor_keep(&parts->arena, &copies[i]))
            return pawl_fail_memory(err, sizeof *copies);
        set->tensors[i] = &copies[i];
    }
    return PAWL_OK;
}

enum pawl_status
pawl_parts_own(struct pawl_parts *parts, bool with_tensors, struct pawl_error *err)
{
    enum pawl_status st = with_tensors ? own_set(parts, &parts->model, err) : PAWL_OK;
    if (st == PAWL_OK && with_tensors)
        st = own_set(parts, &parts->optimizer, err);
    for (size_t i = 0; i < parts->n && st == PAWL_OK; i++) {
        struct pawl_part *part = &parts->parts[i];
        if (part->text == NULL || part->bytes == 0)
            continue;
        void *copy = pawl_arena_take(&parts->arena, (size_t)part->bytes);
        if (copy == NULL)
            return pawl_fail_memory(err, (size_t)part->bytes);
        memcpy(copy, part->text, (size_t)part->bytes);
        part->text = copy;
    }
    return st;
}

void
pawl_parts_release(struct pawl_parts *parts)
{
    pawl_split_release(&parts->model.split);
    pawl_split_release(&parts->optimizer.split);
    pawl_buffer_release(&parts->optimizer_state);
    pawl_buffer_release(&parts->trainer_state);
    pawl_buffer_release(&parts->extra_state);
    pawl_buffer_release(&parts->stream_state);
    pawl_buffer_release(&parts->metrics);
    pawl_buffer_release(&parts->sums_text);
    pawl_arena_release(&parts->arena);
    *parts = (struct pawl_parts){ .arena = PAWL_ARENA_INIT };
}

/* ---- writing a part ---- */

/* The hash of one part, the sums of its blocks when they are wanted, and the time that both take. */
struct hasher {
    struct pawl_sha256 *hash;
    bool has_sums;
    struct pawl_sums_taker sums;
    struct pawl_save_times *times; /* NULL: nobody asks */
    uint64_t ns;
};

static void
hash_bytes(void *context, const void *data, size_t bytes)
{
    struct hasher *hasher = context;
    uint64_t begin = hasher->times == NULL ? 0 : pawl_monotonic_ns();
    const unsigned char *at = data;
    for (size_t left = bytes; left != 0;) {
        size_t n = hasher->has_sums && left > SUMMED_BYTES ? SUMMED_BYTES : left;
        pawl_sha256_update(hasher->hash, at, n);
        if (hasher->has_sums)
            pawl_sums_take(&hasher->sums, at, n);
        at += n;
        left -= n;
    }
    if (hasher->times != NULL)
        hasher->ns += pawl_monotonic_ns() - begin;
}

void
pawl_part_hash_two(void *a, const void *a_data, void *b, const void *b_data, size_t bytes)
{
    struct hasher *one = a;
    struct hasher *other = b;
    uint64_t begin = one->times == NULL ? 0 : pawl_monotonic_ns();
    const unsigned char *a_at = a_data;
    const unsigned char *b_at = b_data;
    bool has_sums = one->has_sums || other->has_sums;
    for (size_t left = bytes; left != 0;) {
        size_t n = has_sums && left > SUMMED_BYTES ? SUMMED_BYTES : left;
        pawl_sha256_update_two(one->hash, (struct pawl_sha256_span){ a_at, n }, other->hash,
                               (struct pawl_sha256_span){ b_at, n });
        if (one->has_sums)
            pawl_sums_take(&one->sums, a_at, n);
        if (other->has_sums)
            pawl_sums_take(&other->sums, b_at, n);
        a_at += n;
        b_at += n;
        left -= n;
    }
    if (one->times != NULL) {
        uint64_t ns = pawl_monotonic_ns() - begin;
        one->ns += ns / 2;
        other->ns += ns - ns / 2;
    }
}

static enum pawl_status
tell(struct pawl_meter *meter, uint64_t more, bool is_end, struct pawl_error *err)
{
    meter->done += more;
    if (meter->progress == NULL || (!is_end && meter->done - meter->told < TELL_BYTES))
        return PAWL_OK;
    meter->told = meter->done;
    if (meter->progress(meter->context, meter->done, meter->total) == 0)
        return PAWL_OK;
    return pawl_fail(err, PAWL_CANCELED, "canceled", "the save was abandoned by its caller");
}

/* A source seen through the meter. */
struct metered {
    const struct pawl_source *inner;
    struct pawl_meter *meter;
};

static enum pawl_status
read_metered(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    const struct metered *metered = context;
    enum pawl_status st = metered->inner->read(metered->inner->context, offset, destination, n, err);
    return st == PAWL_OK ? tell(metered->meter, n, false, err) : st;
}

static enum pawl_status
write_tensor(const struct pawl_tensor *tensor, uint64_t bytes, struct pawl_writer *writer, struct pawl_meter *meter,
             struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    if (tensor->source != NULL) {
        struct metered metered = { tensor->source, meter };
        struct pawl_source source = { bytes, read_metered, &metered };
        struct pawl_tensor seen = *tensor;
        seen.source = &source;
        return pawl_tensor_write(&seen, writer, err);
    }
    if (!pawl_tensor_is_packed(tensor)) {
        st = pawl_tensor_write(tensor, writer, err);
        return st == PAWL_OK ? tell(meter, bytes, false, err) : st;
    }
    /* In slices, so that a save of one huge tensor can be abandoned too. */
    for (uint64_t at = 0; at < bytes && st == PAWL_OK;) {
        size_t n = bytes - at < TELL_BYTES ? (size_t)(bytes - at) : (size_t)TELL_BYTES;
        st = pawl_writer_add(writer, (const unsigned char *)tensor->data + at, n, err);
        if (st != PAWL_OK) {
            pawl_error_tensor(err, tensor->name);
            return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(tensor->name));
        }
        at += n;
        st = tell(meter, n, false, err);
    }
    return st;
}

/* In slices, so that it can be abandoned on the way. */
static enum pawl_status
write_image(const struct pawl_part *part, struct pawl_writer *writer, struct pawl_meter *meter, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    for (uint64_t at = 0; at < part->bytes && st == PAWL_OK;) {
        size_t n = part->bytes - at < TELL_BYTES ? (size_t)(part->bytes - at) : (size_t)TELL_BYTES;
        st = pawl_writer_lend(writer, (const unsigned char *)part->image + at, n, err);
        if (st == PAWL_OK)
            st = tell(meter, n, at + n == part->bytes, err);
        at += n;
    }
    return st;
}

static enum pawl_status
write_body(const struct pawl_part *part, struct pawl_writer *writer, struct pawl_meter *meter, struct pawl_error *err)
{
    enum pawl_status st;
    if (part->text != NULL) {
        st = pawl_writer_add(writer, part->text, (size_t)part->bytes, err);
        return st == PAWL_OK ? tell(meter, part->bytes, true, err) : st;
    }
    if (part->image != NULL)
        return write_image(part, writer, meter, err);
    const struct pawl_st_plan *plan = &part->file->plan;
    st = pawl_writer_add(writer, plan->prefix.data, plan->prefix.len, err);
    if (st == PAWL_OK)
        st = tell(meter, plan->prefix.len, false, err);
    for (size_t i = 0; i < part->file->n && st == PAWL_OK; i++) {
        size_t item = plan->order[i];
        st = write_tensor(part->tensors[part->file->items[item]], plan->bytes[item], writer, meter, err);
    }
    return st == PAWL_OK ? tell(meter, 0, true, err) : st;
}

enum pawl_status
pawl_part_write(const struct pawl_part *part, const struct pawl_dir *dir, struct pawl_lanes *lanes,
                struct pawl_meter *meter, struct pawl_receipt *ret_receipt, bool *ret_is_reserved,
                struct pawl_error *err)
{
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct hasher hasher = { .times = meter->times };
    enum pawl_status st = pawl_sha256_new(&hasher.hash, err);
    if (st != PAWL_OK)
        return st;
    if (part->sums != NULL) {
        hasher.has_sums = true;
        pawl_sums_take_begin(&hasher.sums, part->sums, part->bytes);
    }
    uint64_t begin = meter->times == NULL ? 0 : pawl_monotonic_ns();
    uint64_t synced_from = begin;
    st = pawl_writer_create_among(&writer, lanes, dir, part->name, part->bytes,
                                  (struct pawl_tap){ hash_bytes, &hasher }, err);
    if (st != PAWL_OK)
        goto out;
    if (ret_is_reserved != NULL)
        *ret_is_reserved = part->bytes == 0 || writer.bytes_reserved != 0;
    st = write_body(part, &writer, meter, err);
    if (st != PAWL_OK)
        goto out;
    if (writer.offset != part->bytes) {
        st = pawl_fail(err, PAWL_IO, "size", "'%s' became %" PRIu64 " bytes, planned were %" PRIu64,
                       PAWL_SHOW(pawl_str_z(part->name)), writer.offset, part->bytes);
        goto out;
    }
    if (meter->times != NULL)
        synced_from = pawl_monotonic_ns();
    st = pawl_writer_sync(&writer, err);
    if (st == PAWL_OK)
        st = pawl_writer_close(&writer, err);
    if (st == PAWL_OK) {
        *ret_receipt = (struct pawl_receipt){ .name = pawl_str_z(part->name), .bytes = part->bytes };
        pawl_sha256_finish(hasher.hash, ret_receipt->sha256);
        if (hasher.has_sums)
            pawl_sums_take_end(&hasher.sums);
    }
    if (meter->times != NULL) {
        uint64_t writing = synced_from - begin;
        (void)atomic_fetch_add(&meter->times->hash, hasher.ns);
        (void)atomic_fetch_add(&meter->times->write, writing > hasher.ns ? writing - hasher.ns : 0);
        (void)atomic_fetch_add(&meter->times->sync, pawl_monotonic_ns() - synced_from);
    }
out:
    pawl_writer_abandon(&writer);
    pawl_sha256_free(hasher.hash);
    return st;
}
