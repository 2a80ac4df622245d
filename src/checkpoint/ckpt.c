/* The public reading side: opening, looking, listing. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "checkpoint/find.h"
#include "checkpoint/names.h"
#include "checkpoint/reading.h"
#include "checkpoint/restore.h"
#include "checkpoint/run.h"
#include "checkpoint/step_content.h"
#include "model/model.h"

void
pawl_free(void *data)
{
    free(data);
}

/* ---- opening ---- */

static enum pawl_status
take_options(const struct pawl_ckpt_options *options, struct pawl_find_request *ret_request, struct pawl_error *err)
{
    struct pawl_ckpt_options known = { .size = sizeof known };
    enum pawl_status st = PAWL_OK;
    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_ckpt_options", err);
    if (st != PAWL_OK)
        return st;
    if (known.trust != PAWL_TRUST_FULL && known.trust != PAWL_TRUST_SIZE_ONLY && known.trust != PAWL_TRUST_LAZY)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no trust", (int)known.trust);
    *ret_request = (struct pawl_find_request){
        .options = { .trust = known.trust,
                     .weights_only = known.weights_only != 0,
                     .defer_hash = known.trust == PAWL_TRUST_LAZY },
    };
    return PAWL_OK;
}

/* Is it a file that the engine itself knows, and no attachment? */
static bool
is_own_file(struct pawl_str name)
{
    return pawl_str_equal(name, PAWL_STR(PAWL_TRAINER_STATE)) || pawl_str_starts(name, PAWL_STR("pawl.")) ||
           pawl_tensor_file_of_name(name, PAWL_STR("model"), NULL, NULL) != PAWL_TENSOR_FILE_NO ||
           pawl_tensor_file_of_name(name, PAWL_STR("optimizer"), NULL, NULL) != PAWL_TENSOR_FILE_NO;
}

/* Takes the step over, on failure too. */
static enum pawl_status
ckpt_new(struct pawl_step *step, bool weights_only, struct pawl_ckpt **ret_ckpt, struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = calloc(1, sizeof *ckpt);
    enum pawl_status st = ckpt == NULL ? pawl_fail_memory(err, sizeof *ckpt) : pawl_handle_lock_init(&ckpt->lock, err);
    if (st != PAWL_OK) {
        free(ckpt);
        pawl_step_release(step);
        return st;
    }
    ckpt->step = *step;
    ckpt->weights_only = weights_only;
    *step = (struct pawl_step){ .number = -1 };
    st = pawl_model_share(&ckpt->step.model, PAWL_KIND_CHECKPOINT, NULL, NULL, &ckpt->model, err);
    if (st == PAWL_OK && ckpt->step.has_optimizer)
        st = pawl_model_share(&ckpt->step.optimizer, PAWL_KIND_CHECKPOINT, NULL, NULL, &ckpt->optimizer, err);
    if (st == PAWL_OK && ckpt->step.trust == PAWL_TRUST_LAZY)
        st = pawl_step_guard_new(&ckpt->step, ckpt->model, ckpt->optimizer, &ckpt->guard, err);
    const struct pawl_manifest *manifest = &ckpt->step.manifest;
    if (st == PAWL_OK) {
        ckpt->files = calloc(manifest->n, sizeof *ckpt->files);
        if (ckpt->files == NULL)
            st = pawl_fail_memory(err, manifest->n * sizeof *ckpt->files);
    }
    if (st != PAWL_OK) {
        pawl_ckpt_close(ckpt);
        return st;
    }
    for (size_t i = 0; i < manifest->n; i++) {
        bool is_there =
            ckpt->step.files[i].state >= PAWL_STEP_FILE_THERE && ckpt->step.files[i].state != PAWL_STEP_FILE_WRONG;
        if (is_there && !is_own_file(manifest->files[i].name))
            ckpt->files[ckpt->n_files++] = manifest->files[i].name;
    }
    *ret_ckpt = ckpt;
    return PAWL_OK;
}

void
pawl_ckpt_close(struct pawl_ckpt *ckpt)
{
    if (ckpt == NULL)
        return;
    pawl_model_close(ckpt->model);
    pawl_model_close(ckpt->optimizer);
    pawl_step_guard_free(ckpt->guard);
    free(ckpt->files);
    pawl_step_release(&ckpt->step);
    pawl_handle_lock_release(&ckpt->lock);
    free(ckpt);
}

/* What the three ways to open share: options, the report, and making the handle of the step that `find` gave. */
struct opening {
    struct pawl_find_request request;
    struct pawl_report *report;
    struct pawl_step step;
    char *path;
    struct pawl_dir dir;
};

static enum pawl_status
opening_begin(struct opening *o, struct pawl_str path, const struct pawl_ckpt_options *options,
              struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report, struct pawl_error *err)
{
    *o = (struct opening){ .dir = PAWL_DIR_INIT };
    o->report = pawl_report_new();
    if (ret_report != NULL)
        *ret_report = o->report;
    if (o->report == NULL)
        return pawl_fail_memory(err, 1);
    if (ret_ckpt == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no place for the checkpoint was given");
    enum pawl_status st = take_options(options, &o->request, err);
    return st == PAWL_OK ? pawl_root_path(path, &o->path, err) : st;
}

static enum pawl_status
opening_end(struct opening *o, enum pawl_status st, struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report,
            struct pawl_error *err)
{
    if (st == PAWL_OK)
        st = ckpt_new(&o->step, o->request.options.weights_only, ret_ckpt, err);
    pawl_dir_release(&o->dir);
    free(o->path);
    if (ret_report == NULL)
        pawl_report_free(o->report);
    return st;
}

enum pawl_status
pawl_ckpt_open_newest_os(const struct pawl_os *os, struct pawl_str root, const struct pawl_ckpt_options *options,
                         struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report, struct pawl_error *err)
{
    struct opening o;
    enum pawl_status st = opening_begin(&o, root, options, ret_ckpt, ret_report, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&o.dir, os, o.path, err);
    if (st == PAWL_OK)
        st = pawl_find_newest(&o.dir, &o.request, &o.step, o.report, err);
    return opening_end(&o, st, ret_ckpt, ret_report, err);
}

enum pawl_status
pawl_ckpt_open_step_os(const struct pawl_os *os, struct pawl_str root, int64_t step,
                       const struct pawl_ckpt_options *options, struct pawl_ckpt **ret_ckpt,
                       struct pawl_report **ret_report, struct pawl_error *err)
{
    struct opening o;
    enum pawl_status st = opening_begin(&o, root, options, ret_ckpt, ret_report, err);
    if (st == PAWL_OK && step < 0)
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "the step is %" PRId64 ", expected 0 or more", step);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&o.dir, os, o.path, err);
    if (st == PAWL_OK)
        st = pawl_find_step(&o.dir, step, &o.request, &o.step, o.report, err);
    return opening_end(&o, st, ret_ckpt, ret_report, err);
}

bool
pawl_path_cut(char *path, const char **ret_parent, const char **ret_name)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    *ret_name = name;
    if (slash == NULL) {
        *ret_parent = ".";
    } else if (slash == path) {
        *ret_parent = "/";
    } else {
        *slash = '\0';
        *ret_parent = path;
    }
    return true;
}

/*
 * A directory under a name that is no step's: one with a manifest is a step (a copy), another is a root. A link is followed, as it is the
 * caller's own path.
 */
static enum pawl_status
open_other(struct opening *o, struct pawl_error *err)
{
    struct pawl_os_stat status;
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_dir_stat(&o->dir, PAWL_MANIFEST, &status, &own);
    if (st == PAWL_OK)
        return pawl_find_open(&o->dir, o->path, &o->request, &o->step, o->report, err);
    if (st == PAWL_NO_FILE)
        return pawl_find_newest(&o->dir, &o->request, &o->step, o->report, err);
    if (err != NULL)
        *err = own;
    return st;
}

enum pawl_status
pawl_ckpt_open_os(const struct pawl_os *os, struct pawl_str path, const struct pawl_ckpt_options *options,
                  struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report, struct pawl_error *err)
{
    struct opening o;
    int64_t step = -1;
    const char *parent = NULL;
    const char *name = NULL;
    char *cut = NULL;

    enum pawl_status st = opening_begin(&o, path, options, ret_ckpt, ret_report, err);
    if (st != PAWL_OK)
        return opening_end(&o, st, ret_ckpt, ret_report, err);
    cut = pawl_str_dup(path);
    if (cut == NULL) {
        st = pawl_fail_memory(err, path.len + 1);
        return opening_end(&o, st, ret_ckpt, ret_report, err);
    }
    enum pawl_root_entry entry =
        pawl_path_cut(cut, &parent, &name) ? pawl_entry_of_name(pawl_str_z(name), &step) : PAWL_ENTRY_OTHER;
    st = pawl_dir_open_path(&o.dir, os, entry == PAWL_ENTRY_OTHER ? o.path : parent, err);
    if (st == PAWL_OK && entry == PAWL_ENTRY_OTHER)
        st = open_other(&o, err);
    else if (st == PAWL_OK && entry == PAWL_ENTRY_STEP)
        st = pawl_find_step(&o.dir, step, &o.request, &o.step, o.report, err);
    else if (st == PAWL_OK)
        st = pawl_find_entry(&o.dir, name, &o.request, &o.step, o.report, err);
    free(cut);
    return opening_end(&o, st, ret_ckpt, ret_report, err);
}

enum pawl_status
pawl_ckpt_open_newest(struct pawl_str root, const struct pawl_ckpt_options *options, struct pawl_ckpt **ret_ckpt,
                      struct pawl_report **ret_report, struct pawl_error *err)
{
    return pawl_ckpt_open_newest_os(pawl_os_posix(), root, options, ret_ckpt, ret_report, err);
}

enum pawl_status
pawl_ckpt_open_step(struct pawl_str root, int64_t step, const struct pawl_ckpt_options *options,
                    struct pawl_ckpt **ret_ckpt, struct pawl_report **ret_report, struct pawl_error *err)
{
    return pawl_ckpt_open_step_os(pawl_os_posix(), root, step, options, ret_ckpt, ret_report, err);
}

enum pawl_status
pawl_ckpt_open(struct pawl_str path, const struct pawl_ckpt_options *options, struct pawl_ckpt **ret_ckpt,
               struct pawl_report **ret_report, struct pawl_error *err)
{
    return pawl_ckpt_open_os(pawl_os_posix(), path, options, ret_ckpt, ret_report, err);
}

/* ---- looking ---- */

int64_t
pawl_ckpt_step(const struct pawl_ckpt *ckpt)
{
    return ckpt->step.number;
}

struct pawl_str
pawl_ckpt_path(const struct pawl_ckpt *ckpt)
{
    return pawl_str_z(ckpt->step.dir.path);
}

struct pawl_str
pawl_ckpt_name(const struct pawl_ckpt *ckpt)
{
    return ckpt->step.name;
}

bool
pawl_ckpt_is_complete(const struct pawl_ckpt *ckpt)
{
    return ckpt->step.is_complete;
}

const struct pawl_model *
pawl_ckpt_model(const struct pawl_ckpt *ckpt)
{
    return ckpt->model;
}

const struct pawl_model *
pawl_ckpt_optimizer(const struct pawl_ckpt *ckpt)
{
    return ckpt->optimizer;
}

struct pawl_str
pawl_ckpt_optimizer_name(const struct pawl_ckpt *ckpt)
{
    return ckpt->step.optimizer_name.data == NULL ? PAWL_STR("none") : ckpt->step.optimizer_name;
}

struct pawl_str
pawl_ckpt_optimizer_state(const struct pawl_ckpt *ckpt)
{
    return ckpt->step.optimizer_state;
}

const struct pawl_trainer_state *
pawl_ckpt_trainer_state(const struct pawl_ckpt *ckpt)
{
    return ckpt->step.has_trainer ? &ckpt->step.trainer.state : NULL;
}

const struct pawl_pair *
pawl_ckpt_rng(const struct pawl_ckpt *ckpt, size_t *ret_n)
{
    *ret_n = ckpt->step.trainer.n_rng;
    return ckpt->step.trainer.rng;
}

const struct pawl_named_number *
pawl_ckpt_numbers(const struct pawl_ckpt *ckpt, size_t *ret_n)
{
    *ret_n = ckpt->step.extra.n_numbers;
    return ckpt->step.extra.numbers;
}

const struct pawl_named_opaque *
pawl_ckpt_opaques(const struct pawl_ckpt *ckpt, size_t *ret_n)
{
    *ret_n = ckpt->step.extra.n_opaques;
    return ckpt->step.extra.opaques;
}

const struct pawl_metric *
pawl_ckpt_metrics(const struct pawl_ckpt *ckpt, size_t *ret_n)
{
    *ret_n = ckpt->step.metrics.n;
    return ckpt->step.metrics.metrics;
}

const struct pawl_str *
pawl_ckpt_files(const struct pawl_ckpt *ckpt, size_t *ret_n)
{
    *ret_n = ckpt->n_files;
    return ckpt->files;
}

enum pawl_status
pawl_ckpt_file(const struct pawl_ckpt *ckpt, struct pawl_str name, void **ret_data, size_t *ret_bytes,
               struct pawl_error *err)
{
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    const struct pawl_receipt *row = pawl_step_row(&ckpt->step, name);
    if (row == NULL || is_own_file(name))
        return pawl_fail(err, PAWL_NO_FILE, "not-found", "%s has no file '%s'", PAWL_SHOW(ckpt->step.name),
                         PAWL_SHOW(name));
    enum pawl_status st = pawl_step_read_file(&ckpt->step, row, SIZE_MAX, &bytes, err);
    if (st == PAWL_OK && !pawl_buffer_reserve(&bytes, 1)) /* never NULL, so that it can be told from nothing */
        st = pawl_fail_memory(err, bytes.len + 1);
    if (st != PAWL_OK) {
        pawl_buffer_release(&bytes);
        return pawl_context(err, st, "file '%s' of %s", PAWL_SHOW(name), PAWL_SHOW(ckpt->step.name));
    }
    *ret_data = bytes.data; /* what a buffer holds is of the heap */
    *ret_bytes = bytes.len;
    return PAWL_OK;
}

/* ---- the rest of a lazy one ---- */

/* Attachments and what else was left; not of a checkpoint that was opened for its weights. */
static enum pawl_status
verify_others(struct pawl_ckpt *ckpt, struct pawl_report *report, struct pawl_error *err)
{
    const struct pawl_manifest *manifest = &ckpt->step.manifest;
    for (size_t i = 0; i < manifest->n && !ckpt->weights_only; i++) {
        const struct pawl_receipt *row = &manifest->files[i];
        if (pawl_name_is_tensor_file(row->name) || ckpt->step.files[i].state != PAWL_STEP_FILE_THERE)
            continue;
        enum pawl_status st = pawl_step_hash_listed(&ckpt->step, row, report, err);
        if (st != PAWL_OK)
            return st;
        pawl_report_count(report, 1, row->bytes);
    }
    return PAWL_OK;
}

/* With the checkpoint's lock, and a verdict open. */
static enum pawl_status
verify_rest(struct pawl_ckpt *ckpt, struct pawl_report *report, struct pawl_error *err)
{
    enum pawl_status st = ckpt->guard == NULL ? PAWL_OK : pawl_step_guard_verify(ckpt->guard, report, err);
    if (st == PAWL_OK)
        st = verify_others(ckpt, report, err);
    pawl_report_end_verdict(report);
    if (st == PAWL_OK && !pawl_report_ok(report))
        st = pawl_fail_memory(err, sizeof(struct pawl_problem));
    if (st != PAWL_OK || pawl_report_problem_count(report) == 0)
        return st;
    size_t n;
    const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
    const struct pawl_problem *first = &verdict[n - 1].problems[0];
    st = pawl_fail_at(err, PAWL_INCOMPLETE, first->code, first->offset, "%s is damaged: '%s': %s",
                      PAWL_SHOW(ckpt->step.name), PAWL_SHOW(first->file), first->message);
    pawl_error_path(err, pawl_str_z(ckpt->step.dir.path));
    return st;
}

enum pawl_status
pawl_ckpt_verify(struct pawl_ckpt *ckpt, struct pawl_report **ret_report, struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    struct pawl_report *report = pawl_report_new();
    if (ret_report != NULL)
        *ret_report = report;
    if (report == NULL)
        return pawl_fail_memory(err, 1);
    if (ckpt == NULL) {
        st = pawl_fail(&own, PAWL_ARGUMENT, "argument", "no checkpoint was given");
    } else if (ckpt->step.trust == PAWL_TRUST_SIZE_ONLY) {
        st = pawl_fail(&own, PAWL_ARGUMENT, "argument",
                       "%s was opened by its sizes: open it with PAWL_TRUST_LAZY to verify it later",
                       PAWL_SHOW(ckpt->step.name));
    } else {
        st = pawl_handle_lock_take(&ckpt->lock, "the checkpoint", &own);
    }
    if (st == PAWL_OK) {
        pawl_report_begin_verdict(report, ckpt->step.name, PAWL_KIND_CHECKPOINT);
        st = verify_rest(ckpt, report, &own);
        pawl_handle_lock_give(&ckpt->lock);
    }
    if (ret_report == NULL)
        pawl_report_free(report);
    if (st != PAWL_OK && err != NULL)
        *err = own;
    return st;
}

/* ---- restoring ---- */

/* Under the locks of both. */
static enum pawl_status
restore_alone(struct pawl_ckpt *ckpt, struct pawl_state *state, const struct pawl_restore_options *options,
              struct pawl_report *report, struct pawl_error *err)
{
    const struct pawl_restore_request request = { .lenient = options->lenient != 0,
                                                  .other_data = options->other_data != 0,
                                                  .verify_first = options->verify_first != 0,
                                                  .weights_only = ckpt->weights_only };
    struct pawl_restore restore = { .step = NULL };
    enum pawl_status st = pawl_handle_lock_take(&ckpt->lock, "the checkpoint", err);
    if (st != PAWL_OK)
        return st;
    st = pawl_state_enter(state, err);
    if (st == PAWL_OK) {
        pawl_report_begin_verdict(report, ckpt->step.name, PAWL_KIND_CHECKPOINT);
        st = pawl_restore_read(&restore, &ckpt->step, state, &request, report, err);
        if (st == PAWL_OK)
            st = pawl_restore_set(&restore, &ckpt->step, err);
        pawl_restore_release(&restore);
        if (pawl_report_problem_count(report) == 0)
            pawl_report_drop_verdict(report);
        else
            pawl_report_end_verdict(report);
        pawl_state_leave(state);
    }
    pawl_handle_lock_give(&ckpt->lock);
    return st;
}

enum pawl_status
pawl_ckpt_restore(struct pawl_ckpt *ckpt, struct pawl_state *state, const struct pawl_restore_options *options,
                  struct pawl_report **ret_report, struct pawl_error *err)
{
    struct pawl_restore_options known = { .size = sizeof known };
    struct pawl_error own = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    struct pawl_report *report = pawl_report_new();

    if (ret_report != NULL)
        *ret_report = report;
    if (report == NULL)
        return pawl_fail_memory(err, 1);
    if (ckpt == NULL || state == NULL)
        st = pawl_fail(&own, PAWL_ARGUMENT, "argument", "no %s was given", ckpt == NULL ? "checkpoint" : "state");
    if (st == PAWL_OK && options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_restore_options", &own);
    if (st == PAWL_OK)
        st = restore_alone(ckpt, state, &known, report, &own);
    if (ret_report == NULL)
        pawl_report_free(report);
    if (st != PAWL_OK && err != NULL)
        *err = own;
    return st;
}

/* What a search does with a step that it takes. */
struct restoring {
    struct pawl_run *run;
    struct pawl_state *state;
    struct pawl_restore_request request;
    struct pawl_restore restore; /* of the step that was read last */
};

/* Steps that were found wrong do not count for retention, whose own look at them is a short one. */
static enum pawl_status
remember_corrupt(struct pawl_run *run, const struct pawl_report *report, struct pawl_error *err)
{
    size_t n = 0;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    int64_t *corrupt = realloc(run->corrupt, (run->n_corrupt + n + 1) * sizeof *corrupt);
    if (corrupt == NULL)
        return pawl_fail_memory(err, (run->n_corrupt + n + 1) * sizeof *corrupt);
    run->corrupt = corrupt;
    for (size_t i = 0; i < n; i++) {
        int64_t step = pawl_step_of_name(pawl_str_z(verdicts[i].name));
        bool is_known = step < 0 || verdicts[i].n_problems == 0;
        for (size_t k = 0; k < run->n_corrupt && !is_known; k++)
            is_known = run->corrupt[k] == step;
        if (!is_known)
            run->corrupt[run->n_corrupt++] = step;
    }
    return PAWL_OK;
}

static enum pawl_status
read_found(void *context, struct pawl_step *step, struct pawl_report *report, struct pawl_error *err)
{
    struct restoring *restoring = context;
    pawl_restore_release(&restoring->restore); /* of a step that was read and then found outdated */
    enum pawl_status st = remember_corrupt(restoring->run, report, err);
    if (st == PAWL_OK)
        st = pawl_restore_read(&restoring->restore, step, restoring->state, &restoring->request, report, err);
    return st;
}

/* With the locks of run and state. Numbers are set when the search is over: nothing that fails comes after. */
static enum pawl_status
restore_newest(struct pawl_run *run, struct pawl_state *state, int64_t *ret_step, struct pawl_report *report,
               struct pawl_error *err)
{
    struct restoring restoring = { .run = run, .state = state };
    struct pawl_step step = { 0 };
    const struct pawl_find_request request = { .options = { .defer_hash = run->options.verify_first == 0 },
                                               .use = read_found,
                                               .context = &restoring };
    enum pawl_status st = pawl_find_newest(&run->root, &request, &step, report, err);
    if (st == PAWL_OK)
        st = pawl_restore_set(&restoring.restore, &step, err);
    else if (remember_corrupt(run, report, NULL) != PAWL_OK)
        st = pawl_fail_memory(err, sizeof *run->corrupt);
    if (st == PAWL_OK && ret_step != NULL)
        *ret_step = step.number;
    pawl_restore_release(&restoring.restore);
    pawl_step_release(&step);
    return st;
}

enum pawl_status
pawl_run_restore(struct pawl_run *run, struct pawl_state *state, int64_t *ret_step, struct pawl_report **ret_report,
                 struct pawl_error *err)
{
    struct pawl_error own = PAWL_ERROR_INIT;
    struct pawl_report *report = pawl_report_new();

    if (ret_report != NULL)
        *ret_report = report;
    if (report == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st = PAWL_OK;
    if (state == NULL)
        st = pawl_fail(&own, PAWL_ARGUMENT, "argument", "no state was given");
    if (st == PAWL_OK)
        st = pawl_run_enter(run, &own);
    if (st == PAWL_OK) {
        st = pawl_state_enter(state, &own);
        if (st == PAWL_OK) {
            st = restore_newest(run, state, ret_step, report, &own);
            pawl_state_leave(state);
        }
        pawl_run_leave(run);
    }
    if (ret_report == NULL)
        pawl_report_free(report);
    if (st != PAWL_OK && err != NULL)
        *err = own;
    return st;
}

/* ---- a root as a whole ---- */

enum pawl_status
pawl_ckpt_list_os(const struct pawl_os *os, struct pawl_str root, enum pawl_trust trust,
                  struct pawl_report **ret_report, char ret_latest[32], struct pawl_error *err)
{
    const struct pawl_step_options options = { .trust = trust, .defer_hash = trust == PAWL_TRUST_LAZY };
    struct pawl_dir dir = PAWL_DIR_INIT;
    char *path = NULL;
    struct pawl_report *report = pawl_report_new();

    if (ret_report != NULL)
        *ret_report = report;
    if (report == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st = pawl_root_path(root, &path, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&dir, os, path, err);
    if (st == PAWL_OK)
        st = pawl_find_all(&dir, &options, report, ret_latest, err);
    pawl_dir_release(&dir);
    free(path);
    if (ret_report == NULL)
        pawl_report_free(report);
    return st;
}

enum pawl_status
pawl_ckpt_list(struct pawl_str root, enum pawl_trust trust, struct pawl_report **ret_report, char ret_latest[32],
               struct pawl_error *err)
{
    return pawl_ckpt_list_os(pawl_os_posix(), root, trust, ret_report, ret_latest, err);
}
