/*
 * What is inside the files of a step: documents by their schemas, tensor files by the rules of safetensors, an index by its
 * shards, and the step that they say they are of.
 *
 * "Size and hash are right, but": a fault of the content is believed only of a file whose hash is right; so where the hash was
 * left to the reader it is taken here first.
 */
#include "checkpoint/step_content.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "checkpoint/blocks.h"
#include "checkpoint/names.h"
#include "formats/json/json.h"
#include "model/index.h"

/* A file of tensors that was opened and hashed ahead of its turn. */
struct early {
    const struct pawl_receipt *row; /* NULL: none, or it was taken */
    struct pawl_set set;
};

struct content {
    struct pawl_step *step;
    const struct pawl_step_options *options;
    struct pawl_report *report;
    struct pawl_error *err;
    struct early *early; /* two of them */
};

/* The files of one base ("model", "optimizer") that the manifest lists. */
struct form {
    struct pawl_str base;
    const struct pawl_receipt *single, *index;
    size_t n_shards;
    uint32_t count;         /* the N of "k of N" of the first shard met */
    bool is_whole_sharded;  /* the index, and shards 1 ... N of one N */
    bool is_whole;          /* exactly one whole form */
    bool has_other_numbers; /* shards of another N, or outside 1 ... N */
};

static struct pawl_step_file *
file_of(const struct content *c, const struct pawl_receipt *row)
{
    return &c->step->files[row - c->step->manifest.files];
}

/* ---- believing a fault ---- */

/* Make sure that a file was hashed; *ret_is_right: what stands in it is what was written. */
static enum pawl_status
make_sure(const struct content *c, const struct pawl_receipt *row, bool *ret_is_right)
{
    enum pawl_status st = pawl_step_hash_listed(c->step, row, c->report, c->err);
    *ret_is_right = file_of(c, row)->state == PAWL_STEP_FILE_RIGHT;
    return st;
}

/* A fault of the content: once per file, and only where the hash is right. */
static enum pawl_status
content_fault(const struct content *c, const struct pawl_receipt *row, const struct pawl_error *fault)
{
    bool is_right;
    enum pawl_status st = make_sure(c, row, &is_right);
    if (st != PAWL_OK || !is_right || file_of(c, row)->has_content_fault)
        return st;
    file_of(c, row)->has_content_fault = true;
    pawl_report_problem_error(c->report, fault->status == PAWL_IO ? "io" : "content", row->name, fault);
    return PAWL_OK;
}

static enum pawl_status
step_fault(const struct content *c, const struct pawl_receipt *row, int64_t expected, struct pawl_str found)
{
    bool is_right;
    enum pawl_status st = make_sure(c, row, &is_right);
    if (st == PAWL_OK && is_right)
        pawl_report_problem(c->report, "step-mismatch", row->name, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "expected step %" PRId64 ", as %s says, found step %s", expected,
                            c->step->is_named ? "the directory's name" : PAWL_TRAINER_STATE, PAWL_SHOW(found));
    return st;
}

/* ---- documents ---- */

/* Read a listed document once, hashed as it is read. *ret_is_read false: there is none, or it is wrong, which is reported. */
static enum pawl_status
read_document(const struct content *c, const char *name, struct pawl_buffer *ret_text,
              const struct pawl_receipt **ret_row, bool *ret_is_read)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    const struct pawl_receipt *row = pawl_step_row(c->step, pawl_str_z(name));
    *ret_is_read = false;
    *ret_row = row;
    if (row == NULL || file_of(c, row)->state != PAWL_STEP_FILE_THERE)
        return PAWL_OK;
    enum pawl_status st = pawl_step_read_file(c->step, row, PAWL_DOCUMENT_BYTES_MAX, ret_text, &own);
    if (st == PAWL_OK) {
        file_of(c, row)->state = PAWL_STEP_FILE_RIGHT;
        *ret_is_read = true;
        return PAWL_OK;
    }
    if (st == PAWL_LIMIT)
        return content_fault(c, row, &own);
    if (!pawl_step_is_content_fault(st)) {
        if (c->err != NULL)
            *c->err = own;
        return st;
    }
    file_of(c, row)->state = PAWL_STEP_FILE_WRONG;
    pawl_report_problem_error(c->report, NULL, row->name, &own);
    return PAWL_OK;
}

/* What a parser answered: memory ends the examination, the rest is a fault of the file. */
static enum pawl_status
parsed(const struct content *c, const struct pawl_receipt *row, enum pawl_status st, const struct pawl_error *own)
{
    if (st == PAWL_OK)
        return PAWL_OK;
    if (pawl_step_is_content_fault(st))
        return content_fault(c, row, own);
    if (c->err != NULL)
        *c->err = *own;
    return st;
}

static enum pawl_status
check_trainer_state(const struct content *c)
{
    struct pawl_step *step = c->step;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    const struct pawl_receipt *row;
    bool is_read;

    enum pawl_status st = read_document(c, PAWL_TRAINER_STATE, &text, &row, &is_read);
    if (st == PAWL_OK && is_read) {
        st = pawl_trainer_state_parse(&step->arena, &step->trainer, text.data, text.len, &own);
        step->has_trainer = st == PAWL_OK;
        st = parsed(c, row, st, &own);
    }
    pawl_buffer_release(&text);
    if (st != PAWL_OK || !step->has_trainer)
        return st;
    if (!step->is_named) {
        step->number = step->trainer.state.step;
    } else if (step->trainer.state.step != step->number) {
        char found[24];
        (void)snprintf(found, sizeof found, "%" PRId64, step->trainer.state.step);
        st = step_fault(c, row, step->number, pawl_str_z(found));
    }
    return st;
}

static enum pawl_status
check_extra_state(const struct content *c)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    const struct pawl_receipt *row;
    bool is_read;

    enum pawl_status st = read_document(c, PAWL_EXTRA_STATE, &text, &row, &is_read);
    if (st == PAWL_OK && is_read) {
        st = pawl_extra_state_parse(&c->step->arena, &c->step->extra, text.data, text.len, &own);
        st = parsed(c, row, st, &own);
    }
    pawl_buffer_release(&text);
    return st;
}

/* The stream's document is for the stream to judge; metrics are for retention, and malformed ones count as none. */
static enum pawl_status
check_other_documents(const struct content *c)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    const struct pawl_receipt *row;
    bool is_read;

    enum pawl_status st = read_document(c, PAWL_STREAM_STATE, &c->step->stream_text, &row, &is_read);
    if (st == PAWL_OK)
        st = read_document(c, PAWL_METRICS, &text, &row, &is_read);
    if (st == PAWL_OK && is_read) {
        st = pawl_metrics_parse(&c->step->arena, &c->step->metrics, text.data, text.len, &own);
        if (st != PAWL_OK && pawl_step_is_content_fault(st)) {
            pawl_report_warning(c->report, "content", row->name, "the metrics are not used: %s", own.message);
            st = PAWL_OK;
        } else if (st != PAWL_OK && c->err != NULL) {
            *c->err = own;
        }
    }
    pawl_buffer_release(&text);
    return st;
}

/* ---- checksums ---- */

/* Do the sums speak of just the tensor files that are listed? */
static enum pawl_status
check_sums_agree(const struct pawl_manifest *manifest, const struct pawl_sums *sums, struct pawl_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < manifest->n; i++) {
        const struct pawl_receipt *row = &manifest->files[i];
        if (!pawl_name_is_tensor_file(row->name))
            continue;
        const struct pawl_sums_file *file = pawl_sums_find(sums, row->name);
        n++;
        if (file == NULL)
            return pawl_fail(err, PAWL_CORRUPT, "content", "it has no sums of '%s', which is listed",
                             PAWL_SHOW(row->name));
        if (file->bytes != row->bytes)
            return pawl_fail(err, PAWL_CORRUPT, "content",
                             "it has sums of '%s' with %" PRIu64 " bytes, listed are %" PRIu64, PAWL_SHOW(row->name),
                             file->bytes, row->bytes);
    }
    for (size_t i = 0; i < sums->n && n != sums->n; i++)
        if (pawl_manifest_find(manifest, sums->files[i].name) == NULL)
            return pawl_fail(err, PAWL_CORRUPT, "content", "it has sums of '%s', which is not listed",
                             PAWL_SHOW(sums->files[i].name));
    return PAWL_OK;
}

static enum pawl_status
check_sums(const struct content *c)
{
    struct pawl_step *step = c->step;
    struct pawl_error own = PAWL_ERROR_INIT;
    struct pawl_sums sums = { NULL, 0 };
    const struct pawl_receipt *row;
    bool is_read;

    enum pawl_status st = read_document(c, PAWL_SUMS, &step->sums_text, &row, &is_read);
    if (st != PAWL_OK || !is_read)
        return st;
    st = pawl_sums_parse(&step->arena, &sums, step->sums_text.data, step->sums_text.len, &own);
    if (st == PAWL_UNSUPPORTED) {
        pawl_report_warning(c->report, "content", row->name, "the sums are not used: %s", own.message);
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = check_sums_agree(&step->manifest, &sums, &own);
    if (st == PAWL_OK)
        step->sums = sums;
    return parsed(c, row, st, &own);
}

/*
 * Who opens lazily gets names and shapes at once: where there are sums, they are held against those of the headers. What such a sum says against a
 * file is believed when the file's sha256 says so too; else the sums are to blame.
 */
static enum pawl_status
check_headers(const struct content *c, const struct pawl_set *set, bool *ret_all_right)
{
    for (size_t i = 0; i < set->n_files; i++) {
        const struct pawl_set_file *file = &set->files[i];
        const struct pawl_sums_file *sums = pawl_sums_find(&c->step->sums, file->name);
        struct pawl_error own = PAWL_ERROR_INIT;
        bool is_right;
        if (sums == NULL || c->step->trust != PAWL_TRUST_LAZY)
            continue;
        uint64_t found = pawl_blocks_header_sum(file);
        if (sums->header_bytes == file->header.data_begin && sums->header_sum == found)
            continue;
        *ret_all_right = false;
        enum pawl_status st = make_sure(c, pawl_step_row(c->step, file->name), &is_right);
        if (st != PAWL_OK)
            return st;
        if (!is_right)
            continue;
        (void)pawl_fail(&own, PAWL_CORRUPT, "content",
                        "'%s' has a header of %" PRIu64 " bytes and the xxh64 %016" PRIx64 ", the sums say %" PRIu64
                        " and %016" PRIx64,
                        PAWL_SHOW(file->name), file->header.data_begin, found, sums->header_bytes, sums->header_sum);
        st = content_fault(c, pawl_step_row(c->step, PAWL_STR(PAWL_SUMS)), &own);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* ---- which tensor files are listed ---- */

static struct form
find_form(const struct pawl_manifest *manifest, struct pawl_str base)
{
    struct form form = { .base = base };
    uint32_t next = 1; /* rows are sorted: shards of one N come in the order of their numbers */
    for (size_t i = 0; i < manifest->n; i++) {
        const struct pawl_receipt *row = &manifest->files[i];
        uint32_t k = 0;
        uint32_t n = 0;
        switch (pawl_tensor_file_of_name(row->name, base, &k, &n)) {
        case PAWL_TENSOR_FILE_NO:
            break;
        case PAWL_TENSOR_FILE_SINGLE:
            form.single = row;
            break;
        case PAWL_TENSOR_FILE_INDEX:
            form.index = row;
            break;
        case PAWL_TENSOR_FILE_SHARD:
            if (form.n_shards++ == 0)
                form.count = n;
            if (n != form.count || k != next)
                form.has_other_numbers = true;
            next++;
            break;
        }
    }
    form.is_whole_sharded =
        form.index != NULL && form.n_shards > 0 && !form.has_other_numbers && form.n_shards == form.count;
    bool has_sharded = form.index != NULL || form.n_shards > 0;
    form.is_whole = (form.single != NULL && !has_sharded) || (form.single == NULL && form.is_whole_sharded);
    return form;
}

static void
check_listing(const struct content *c, const struct form *model, const struct form *optimizer)
{
    const struct form *forms[] = { model, optimizer };
    struct pawl_buffer lacks = PAWL_BUFFER_INIT;
    if (pawl_step_row(c->step, PAWL_STR(PAWL_TRAINER_STATE)) == NULL)
        (void)pawl_buffer_add_z(&lacks, PAWL_TRAINER_STATE);
    for (size_t i = 0; i < 2; i++) {
        const struct form *form = forms[i];
        if (form->is_whole)
            continue;
        (void)pawl_buffer_printf(&lacks, "%sexactly one whole form of the %.*s (found: %s, %s, %zu shards)",
                                 lacks.len == 0 ? "" : "; ", PAWL_ARG(form->base),
                                 form->single == NULL ? "no single file" : "the single file",
                                 form->index == NULL ? "no index" : "an index", form->n_shards);
    }
    if (lacks.len != 0)
        pawl_report_problem(c->report, "manifest", PAWL_STR(PAWL_MANIFEST), PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "it does not list %.*s", PAWL_ARG(pawl_buffer_str(&lacks)));
    pawl_buffer_release(&lacks);
}

/* ---- tensor files ---- */

static const struct pawl_set_options SET_OPTIONS = { .index_inside_only = true };

/*
 * Model and optimizer, when each is one file, are hashed together: two streams on one core. Only files that open without a fault: all
 * faults are found, and told, when their turn comes.
 */
static void
open_early(const struct content *c, const struct form *const *forms)
{
    const struct pawl_set *sets[2];
    size_t n = 0;
    struct pawl_step *step = c->step;
    if (!step->dir.os->takes_threads || step->trust != PAWL_TRUST_FULL || c->options->defer_hash ||
        c->options->weights_only)
        return;
    for (size_t i = 0; i < 2; i++) {
        const struct pawl_receipt *row = forms[i]->single;
        if (!forms[i]->is_whole || row == NULL || file_of(c, row)->state != PAWL_STEP_FILE_THERE)
            return;
    }
    for (size_t i = 0; i < 2; i++) {
        char *name = pawl_str_dup(forms[i]->single->name);
        struct pawl_set set = PAWL_SET_INIT;
        if (name != NULL && pawl_set_open_file(&set, &step->dir, name, &SET_OPTIONS, NULL) == PAWL_OK) {
            c->early[i] = (struct early){ forms[i]->single, set };
            sets[n++] = &c->early[i].set;
        }
        free(name);
    }
    if (n == 2)
        pawl_step_hash_ahead(step, sets, n);
}

static bool
take_early(const struct content *c, const struct pawl_receipt *row, struct pawl_set *ret_set)
{
    for (size_t i = 0; i < 2; i++) {
        if (c->early[i].row != row)
            continue;
        *ret_set = c->early[i].set;
        c->early[i] = (struct early){ NULL, PAWL_SET_INIT };
        return true;
    }
    return false;
}

/* One file of tensors, by itself. `set` NULL: only its faults are wanted. */
static enum pawl_status
check_file(const struct content *c, const struct pawl_receipt *row, struct pawl_set *ret_set, bool *ret_is_open)
{
    struct pawl_set set = PAWL_SET_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    bool all_right = true;

    *ret_is_open = false;
    if (file_of(c, row)->state < PAWL_STEP_FILE_THERE || file_of(c, row)->state == PAWL_STEP_FILE_WRONG)
        return PAWL_OK;
    enum pawl_status st = PAWL_OK;
    if (!take_early(c, row, &set)) {
        char *name = pawl_str_dup(row->name);
        if (name == NULL)
            return pawl_fail_memory(c->err, row->name.len + 1);
        st = pawl_set_open_file(&set, &c->step->dir, name, &SET_OPTIONS, &own);
        if (st == PAWL_IO) /* believed when a second try repeats it */
            st = pawl_set_open_file(&set, &c->step->dir, name, &SET_OPTIONS, &own);
        free(name);
    }
    if (st != PAWL_OK)
        return parsed(c, row, st, &own);
    bool is_lazy = c->step->trust == PAWL_TRUST_LAZY;
    if (!c->options->defer_hash || (ret_set == NULL && !is_lazy))
        st = pawl_step_hash_set(c->step, &set, c->report, &all_right, c->err);
    else
        all_right = set.files[0].file.bytes == row->bytes;
    if (st == PAWL_OK && is_lazy)
        st = check_headers(c, &set, &all_right);
    if (st == PAWL_OK && all_right && ret_set != NULL) {
        *ret_set = set;
        *ret_is_open = true;
    } else {
        pawl_set_release(&set);
    }
    return st;
}

static bool
is_shard_of(const struct form *form, const struct pawl_receipt *row)
{
    return pawl_tensor_file_of_name(row->name, form->base, NULL, NULL) == PAWL_TENSOR_FILE_SHARD;
}

/* Every shard by itself: the index is wrong, or is not there, or the form is not whole. */
static enum pawl_status
check_shards_alone(const struct content *c, const struct form *form)
{
    const struct pawl_manifest *manifest = &c->step->manifest;
    for (size_t i = 0; i < manifest->n; i++) {
        bool is_open;
        if (!is_shard_of(form, &manifest->files[i]))
            continue;
        enum pawl_status st = check_file(c, &manifest->files[i], NULL, &is_open);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* An index without a whole form around it: that it is one is all that can be asked. */
static enum pawl_status
check_index_alone(const struct content *c, const struct form *form)
{
    struct pawl_arena scratch = PAWL_ARENA_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    struct pawl_index index;
    const struct pawl_receipt *row;
    bool is_read = false;
    char *name = pawl_str_dup(form->index->name);
    if (name == NULL)
        return pawl_fail_memory(c->err, form->index->name.len + 1);
    enum pawl_status st = read_document(c, name, &text, &row, &is_read);
    if (st == PAWL_OK && is_read) {
        st = pawl_index_parse(&scratch, &index, text.data, text.len, &own);
        st = parsed(c, row, st, &own);
    }
    free(name);
    pawl_buffer_release(&text);
    pawl_arena_release(&scratch);
    return st;
}

/* The faults that the opening of an index found, held against the hashes: what follows from a damaged file is not reported beside it. */
static enum pawl_status
sort_index_faults(const struct content *c, const struct form *form, const struct pawl_report *found)
{
    size_t n = 0;
    const struct pawl_verdict *verdict = pawl_report_verdicts(found, &n);
    const struct pawl_manifest *manifest = &c->step->manifest;
    bool has_damaged_shard = false;

    for (size_t i = 0; i < manifest->n; i++) {
        bool is_right;
        if (!is_shard_of(form, &manifest->files[i]))
            continue;
        enum pawl_status st = make_sure(c, &manifest->files[i], &is_right);
        if (st != PAWL_OK)
            return st;
        has_damaged_shard = has_damaged_shard || file_of(c, &manifest->files[i])->state == PAWL_STEP_FILE_WRONG;
    }
    for (size_t i = 0; n == 1 && i < verdict->n_problems; i++) {
        const struct pawl_problem *problem = &verdict->problems[i];
        const struct pawl_receipt *row = pawl_step_row(c->step, problem->file);
        bool is_index = row == form->index || row == NULL || !is_shard_of(form, row);
        if (is_index && has_damaged_shard)
            continue;
        struct pawl_error own = PAWL_ERROR_INIT;
        (void)pawl_fail_at(&own, PAWL_CORRUPT, "content", problem->offset, "%s", problem->message);
        if (problem->tensor.data != NULL)
            pawl_error_tensor(&own, problem->tensor);
        enum pawl_status st = content_fault(c, is_index ? form->index : row, &own);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* Every file of the set must be a shard that the manifest lists, and every listed shard must be in the set. */
static enum pawl_status
check_members(const struct content *c, const struct form *form, const struct pawl_set *set, bool *ret_are_ours)
{
    size_t n_ours = 0;
    for (size_t i = 0; i < set->n_files; i++) {
        const struct pawl_receipt *row = pawl_step_row(c->step, set->files[i].name);
        n_ours += row != NULL && is_shard_of(form, row) && set->files[i].file.bytes == row->bytes;
    }
    *ret_are_ours = n_ours == set->n_files && n_ours == form->n_shards;
    if (*ret_are_ours)
        return PAWL_OK;
    struct pawl_error own = PAWL_ERROR_INIT;
    (void)pawl_fail(&own, PAWL_CORRUPT, "content",
                    "the index maps tensors to %zu files, %zu of them among the %zu listed", set->n_files, n_ours,
                    form->n_shards);
    return content_fault(c, form->index, &own);
}

/* Warnings go where the examination's own go. */
static void
keep_warnings(const struct content *c, const struct pawl_report *found)
{
    size_t n = 0;
    const struct pawl_verdict *verdict = pawl_report_verdicts(found, &n);
    for (size_t i = 0; n == 1 && i < verdict->n_warnings; i++)
        pawl_report_warning(c->report, verdict->warnings[i].code, verdict->warnings[i].file, "%s",
                            verdict->warnings[i].message);
}

static enum pawl_status
check_index(const struct content *c, const struct form *form, struct pawl_set *ret_set, bool *ret_is_open)
{
    struct pawl_set set = PAWL_SET_INIT;
    struct pawl_error own = PAWL_ERROR_INIT;
    bool are_ours = false;
    bool all_right = true;
    bool is_right = false;

    enum pawl_status st = make_sure(c, form->index, &is_right);
    if (st != PAWL_OK)
        return st;
    if (!is_right)
        return check_shards_alone(c, form);
    char *name = pawl_str_dup(form->index->name);
    struct pawl_report *found = pawl_report_new();
    if (name == NULL || found == NULL) {
        st = pawl_fail_memory(c->err, form->index->name.len + 1);
        goto out;
    }
    pawl_report_begin_verdict(found, c->step->name, PAWL_KIND_CHECKPOINT);
    st = pawl_set_open_index(&set, &c->step->dir, name, &SET_OPTIONS, found, &own);
    if (st == PAWL_IO) {
        pawl_report_drop_verdict(found);
        pawl_report_begin_verdict(found, c->step->name, PAWL_KIND_CHECKPOINT);
        st = pawl_set_open_index(&set, &c->step->dir, name, &SET_OPTIONS, found, &own);
    }
    if (!pawl_report_ok(found)) {
        st = pawl_fail_memory(c->err, sizeof(struct pawl_problem));
    } else if (st == PAWL_CORRUPT) {
        st = sort_index_faults(c, form, found);
    } else if (st == PAWL_OK) {
        keep_warnings(c, found);
        st = check_members(c, form, &set, &are_ours);
        if (st == PAWL_OK && are_ours && !c->options->defer_hash)
            st = pawl_step_hash_set(c->step, &set, c->report, &all_right, c->err);
        if (st == PAWL_OK && are_ours)
            st = check_headers(c, &set, &all_right);
    } else if (pawl_step_is_content_fault(st)) {
        /* One of them can't be read: which one its hash tells, or else the index is to blame. */
        size_t before = pawl_report_problem_count(c->report);
        st = check_shards_alone(c, form);
        if (st == PAWL_OK && pawl_report_problem_count(c->report) == before)
            st = content_fault(c, form->index, &own);
    } else if (c->err != NULL) {
        *c->err = own;
    }
    if (st == PAWL_OK && are_ours && all_right) {
        *ret_set = set;
        set = (struct pawl_set)PAWL_SET_INIT;
        *ret_is_open = true;
    }
out:
    pawl_set_release(&set);
    pawl_report_free(found);
    free(name);
    return st;
}

/* Open the whole form of a base; what is not whole is looked at file by file. */
static enum pawl_status
open_form(const struct content *c, const struct form *form, struct pawl_set *ret_set, bool *ret_is_open)
{
    enum pawl_status st = PAWL_OK;
    *ret_is_open = false;
    if (form->is_whole && form->single != NULL)
        return check_file(c, form->single, ret_set, ret_is_open);
    if (form->is_whole)
        return check_index(c, form, ret_set, ret_is_open);
    bool is_open;
    if (form->single != NULL)
        st = check_file(c, form->single, NULL, &is_open);
    if (st == PAWL_OK && form->index != NULL)
        st = check_index_alone(c, form);
    if (st == PAWL_OK)
        st = check_shards_alone(c, form);
    return st;
}

/* ---- metadata ---- */

static const struct pawl_receipt *
row_of_set_file(const struct content *c, const struct pawl_set *set, size_t i)
{
    return pawl_step_row(c->step, set->files[i].name);
}

/* What the profile tinyllm asks of a file: only F32, and `format` tinyllm. */
static enum pawl_status
check_profile(const struct content *c, const struct pawl_set *set)
{
    if (c->options->profile != PAWL_PROFILE_TINYLLM)
        return PAWL_OK;
    for (size_t i = 0; i < set->n_files; i++) {
        const struct pawl_st_header *header = &set->files[i].header;
        const struct pawl_str *format = pawl_st_metadata(header, PAWL_STR("format"));
        struct pawl_error own = PAWL_ERROR_INIT;
        enum pawl_status st = PAWL_OK;
        if (format == NULL || !pawl_str_equal(*format, PAWL_STR("tinyllm")))
            st = pawl_fail(
                &own, PAWL_CORRUPT, "content", "profile tinyllm: expected the format \"tinyllm\", found %s%s%s",
                format == NULL ? "none" : "\"", format == NULL ? "" : PAWL_SHOW(*format), format == NULL ? "" : "\"");
        for (size_t k = 0; k < header->n && st == PAWL_OK; k++) {
            if (header->tensors[k].dtype == PAWL_F32)
                continue;
            st = pawl_fail(&own, PAWL_CORRUPT, "content", "profile tinyllm: expected F32, found %s in tensor '%s'",
                           pawl_dtype_name(header->tensors[k].dtype), PAWL_SHOW(header->tensors[k].name));
            pawl_error_tensor(&own, header->tensors[k].name);
        }
        if (st != PAWL_OK)
            st = content_fault(c, row_of_set_file(c, set, i), &own);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* `state` must be one JSON object, read strictly. */
static enum pawl_status
check_optimizer_state(const struct content *c, const struct pawl_receipt *row, struct pawl_str text)
{
    struct pawl_arena scratch = PAWL_ARENA_INIT;
    const struct pawl_json_value *value = NULL;
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_json_parse(&scratch, text.data, text.len, 0, &value, &own);
    if (st == PAWL_OK && value->type != PAWL_JSON_OBJECT)
        st = pawl_fail(&own, PAWL_CORRUPT, "content", "expected an object");
    pawl_arena_release(&scratch);
    (void)pawl_context(&own, st, "the metadata's `state`");
    return parsed(c, row, st, &own);
}

static bool
is_profile_optimizer(struct pawl_str name)
{
    return pawl_str_equal(name, PAWL_STR("adamw")) || pawl_str_equal(name, PAWL_STR("sgd")) ||
           pawl_str_equal(name, PAWL_STR("muon")) || pawl_str_equal(name, PAWL_STR("none"));
}

static enum pawl_status
check_optimizer_metadata(const struct content *c)
{
    struct pawl_step *step = c->step;
    const struct pawl_st_header *header = &step->optimizer.files[0].header;
    const struct pawl_receipt *row = row_of_set_file(c, &step->optimizer, 0);
    const struct pawl_str *name = pawl_st_metadata(header, PAWL_STR("optimizer"));
    const struct pawl_str *number = pawl_st_metadata(header, PAWL_STR("step"));
    const struct pawl_str *state = pawl_st_metadata(header, PAWL_STR("state"));
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;

    if (name == NULL || number == NULL) {
        (void)pawl_fail(&own, PAWL_CORRUPT, "content", "the metadata have no `%s`",
                        name == NULL ? "optimizer" : "step");
        st = content_fault(c, row, &own);
    }
    if (st == PAWL_OK && state != NULL)
        st = check_optimizer_state(c, row, *state);
    if (st == PAWL_OK && name != NULL && c->options->profile == PAWL_PROFILE_TINYLLM && !is_profile_optimizer(*name)) {
        (void)pawl_fail(&own, PAWL_CORRUPT, "content",
                        "profile tinyllm: expected the optimizer adamw, sgd, muon or none, found '%s'",
                        PAWL_SHOW(*name));
        st = content_fault(c, row, &own);
    }
    if (st == PAWL_OK && number != NULL && step->number >= 0) {
        char expected[24];
        (void)snprintf(expected, sizeof expected, "%" PRId64, step->number);
        if (!pawl_str_equal(*number, pawl_str_z(expected)))
            st = step_fault(c, row, step->number, *number);
    }
    if (name != NULL)
        step->optimizer_name = *name;
    if (state != NULL)
        step->optimizer_state = *state;
    return st;
}

static enum pawl_status
check_aliases(const struct content *c, struct pawl_set *set)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_set_check_aliases(set, &own);
    return parsed(c, row_of_set_file(c, set, 0), st, &own);
}

/* Are all files of an open set without a fault so far? */
static bool
is_clean(const struct content *c, const struct pawl_set *set)
{
    for (size_t i = 0; i < set->n_files; i++) {
        const struct pawl_step_file *file = file_of(c, row_of_set_file(c, set, i));
        if (file->state < PAWL_STEP_FILE_THERE || file->state == PAWL_STEP_FILE_WRONG || file->has_content_fault)
            return false;
    }
    return true;
}

static enum pawl_status
check_model(const struct content *c, const struct form *form)
{
    struct pawl_step *step = c->step;
    enum pawl_status st = open_form(c, form, &step->model, &step->has_model);
    if (st != PAWL_OK || !step->has_model)
        return st;
    st = check_aliases(c, &step->model);
    if (st != PAWL_OK)
        return st;
    step->has_weights = is_clean(c, &step->model); /* before the profile, which a load never asks for */
    return check_profile(c, &step->model);
}

static enum pawl_status
check_optimizer(const struct content *c, const struct form *form)
{
    struct pawl_step *step = c->step;
    enum pawl_status st = open_form(c, form, &step->optimizer, &step->has_optimizer);
    if (st != PAWL_OK || !step->has_optimizer)
        return st;
    st = check_aliases(c, &step->optimizer);
    if (st == PAWL_OK)
        st = check_optimizer_metadata(c);
    if (st == PAWL_OK)
        st = check_profile(c, &step->optimizer);
    return st;
}

enum pawl_status
pawl_step_check_content(struct pawl_step *step, const struct pawl_step_options *options, struct pawl_report *report,
                        struct pawl_error *err)
{
    struct early early[2] = { { NULL, PAWL_SET_INIT }, { NULL, PAWL_SET_INIT } };
    const struct content c = { step, options, report, err, early };
    const struct form model = find_form(&step->manifest, PAWL_STR("model"));
    const struct form optimizer = find_form(&step->manifest, PAWL_STR("optimizer"));

    check_listing(&c, &model, &optimizer);
    enum pawl_status st = check_trainer_state(&c);
    if (st == PAWL_OK)
        st = check_extra_state(&c);
    if (st == PAWL_OK)
        st = check_other_documents(&c);
    if (st == PAWL_OK)
        st = check_sums(&c);
    if (st == PAWL_OK)
        open_early(&c, (const struct form *const[]){ &model, &optimizer });
    if (st == PAWL_OK)
        st = check_model(&c, &model);
    if (st == PAWL_OK && !options->weights_only)
        st = check_optimizer(&c, &optimizer);
    pawl_set_release(&early[0].set);
    pawl_set_release(&early[1].set);
    return st;
}
