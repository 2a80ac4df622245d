/* checkpoint/retention.c: which steps count, deleting those that the policies give up, and pawl_ckpt_prune. */
#include "checkpoint/retention.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "base/str.h"
#include "checkpoint/documents.h"
#include "checkpoint/names.h"
#include "checkpoint/pins.h"
#include "base/options.h"
#include "checkpoint/run.h"
#include "pawl/run.h"

/* ---- does a step count? ---- */

/* Does the manifest list the single file, or the index and the shards 1 ... N of one N, and not both? */
static bool
lists_one_form(const struct pawl_manifest *manifest, struct pawl_str base)
{
    bool has_single = false;
    bool has_index = false;
    uint32_t n_shards = 0;
    uint32_t shards_of = 0;
    for (size_t i = 0; i < manifest->n; i++) {
        uint32_t k = 0;
        uint32_t of = 0;
        switch (pawl_tensor_file_of_name(manifest->files[i].name, base, &k, &of)) {
        case PAWL_TENSOR_FILE_SINGLE:
            has_single = true;
            break;
        case PAWL_TENSOR_FILE_INDEX:
            has_index = true;
            break;
        case PAWL_TENSOR_FILE_SHARD:
            /* Names in a manifest differ, so that N of them between 1 and N are all. */
            if (k < 1 || k > of || (n_shards != 0 && of != shards_of))
                return false;
            shards_of = of;
            n_shards++;
            break;
        case PAWL_TENSOR_FILE_NO:
            break;
        }
    }
    if (has_single)
        return !has_index && n_shards == 0;
    return has_index && n_shards != 0 && n_shards == shards_of;
}

/* The size of the regular file under a manifest's name, whose components are followed by directories only. */
static enum pawl_status
stat_listed(const struct pawl_dir *dir, char *name, struct pawl_os_stat *ret, struct pawl_error *err)
{
    struct pawl_dir inner = PAWL_DIR_INIT;
    struct pawl_dir next = PAWL_DIR_INIT;
    enum pawl_status st = PAWL_OK;
    char *slash;
    while (st == PAWL_OK && (slash = strchr(name, '/')) != NULL) {
        *slash = '\0';
        st = pawl_dir_open_in(&next, inner.handle == NULL ? dir : &inner, name, err);
        *slash = '/';
        pawl_dir_release(&inner);
        inner = next;
        next = (struct pawl_dir)PAWL_DIR_INIT;
        name = slash + 1;
    }
    if (st == PAWL_OK)
        st = pawl_dir_stat(inner.handle == NULL ? dir : &inner, name, ret, err);
    pawl_dir_release(&inner);
    return st;
}

static enum pawl_status
sizes_hold(const struct pawl_dir *dir, const struct pawl_manifest *manifest, bool *ret_hold, struct pawl_error *err)
{
    *ret_hold = false;
    for (size_t i = 0; i < manifest->n; i++) {
        struct pawl_os_stat status;
        char *name = pawl_str_dup(manifest->files[i].name);
        if (name == NULL)
            return pawl_fail_memory(err, manifest->files[i].name.len + 1);
        enum pawl_status st = stat_listed(dir, name, &status, err);
        free(name);
        if (st != PAWL_OK)
            return st;
        if (status.kind != PAWL_OS_FILE || status.bytes != manifest->files[i].bytes)
            return PAWL_OK;
    }
    *ret_hold = true;
    return PAWL_OK;
}

static enum pawl_status
read_document(const struct pawl_dir *dir, const char *name, struct pawl_buffer *ret_text, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    enum pawl_status st = pawl_file_open_in(&file, dir, name, 0, err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_DOCUMENT_BYTES_MAX, ret_text, err);
    pawl_file_release(&file);
    return st;
}

/* The values of the metrics that the policy asks for, NaN for one that is not there. Malformed metrics are none, with a warning. */
static enum pawl_status
read_metrics(const struct pawl_retention *retention, const struct pawl_dir *dir, const char *name,
             struct pawl_arena *arena, const double **ret_values, struct pawl_error *err)
{
    const struct pawl_retention_policy *policy = &retention->policy;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena scratch = PAWL_ARENA_INIT;
    struct pawl_metrics_document document = { NULL, 0 };
    struct pawl_error own = PAWL_ERROR_INIT;
    double *values = pawl_arena_take_array(arena, policy->n_best, sizeof *values);
    if (values == NULL)
        return pawl_fail_memory(err, policy->n_best * sizeof *values);
    enum pawl_status st = read_document(dir, PAWL_METRICS, &text, &own);
    if (st == PAWL_OK)
        st = pawl_metrics_parse(&scratch, &document, text.data, text.len, &own);
    for (size_t i = 0; i < policy->n_best; i++) {
        values[i] = NAN;
        for (size_t k = 0; k < document.n; k++)
            if (pawl_str_equal(document.metrics[k].name, policy->best[i].metric))
                values[i] = document.metrics[k].value;
    }
    pawl_arena_release(&scratch);
    pawl_buffer_release(&text);
    if (pawl_status_is_machine_fault(st)) {
        if (err != NULL)
            *err = own;
        return st;
    }
    if (st != PAWL_OK)
        pawl_warn_error(retention->warner, "metrics", name, "its " PAWL_METRICS " is not used", &own);
    *ret_values = values;
    return PAWL_OK;
}

/* A valid manifest, and every listed file of its size. Only a fault of the machine is an error; hashes are not looked at. */
static enum pawl_status
step_counts(const struct pawl_retention *retention, const char *name, struct pawl_arena *values_arena,
            struct pawl_retention_step *step, struct pawl_error *err)
{
    const struct pawl_dir *root = retention->root;
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_manifest manifest;
    struct pawl_os_stat status;
    bool counts = false;

    enum pawl_status st = pawl_dir_stat(root, name, &status, err);
    if (st == PAWL_OK && status.kind != PAWL_OS_DIR)
        goto out;
    if (st == PAWL_OK)
        st = pawl_dir_open_in(&dir, root, name, err);
    if (st == PAWL_OK)
        st = pawl_dir_stat(&dir, PAWL_MANIFEST, &status, err);
    if (st == PAWL_OK && status.kind != PAWL_OS_FILE)
        goto out;
    if (st == PAWL_OK)
        st = read_document(&dir, PAWL_MANIFEST, &text, err);
    if (st == PAWL_OK)
        st = pawl_manifest_parse(&arena, &manifest, text.data, text.len, err);
    if (st == PAWL_OK && pawl_str_equal(manifest.kind, PAWL_STR("checkpoint")) &&
        pawl_manifest_find(&manifest, PAWL_STR(PAWL_TRAINER_STATE)) != NULL &&
        lists_one_form(&manifest, PAWL_STR("model")) && lists_one_form(&manifest, PAWL_STR("optimizer")))
        st = sizes_hold(&dir, &manifest, &counts, err);
    if (st == PAWL_OK && counts && retention->policy.n_best != 0 &&
        pawl_manifest_find(&manifest, PAWL_STR(PAWL_METRICS)) != NULL)
        st = read_metrics(retention, &dir, name, values_arena, &step->values, err);
out:
    pawl_arena_release(&arena);
    pawl_buffer_release(&text);
    pawl_dir_release(&dir);
    if (pawl_status_is_machine_fault(st))
        return st;
    step->counts = st == PAWL_OK && counts;
    return PAWL_OK;
}

/* ---- carrying it out ---- */

static int
compare_steps(const void *a, const void *b)
{
    int64_t left = ((const struct pawl_retention_step *)a)->step;
    int64_t right = ((const struct pawl_retention_step *)b)->step;
    return left < right ? -1 : left > right;
}

/* The steps of a root, ascending by number; one that is there as .prev alone is one too. */
static size_t
gather_steps(const struct pawl_dir_list *list, struct pawl_retention_step *steps)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        int64_t step;
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(list->entries[i].name), &step);
        if (kind == PAWL_ENTRY_STEP || kind == PAWL_ENTRY_PREV)
            steps[n++] = (struct pawl_retention_step){ .step = step };
    }
    qsort(steps, n, sizeof *steps, compare_steps);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || steps[kept - 1].step != steps[i].step)
            steps[kept++] = steps[i];
    return kept;
}

/* From the newest on, until K were found; of the older ones only those that another policy may keep are opened: the rest goes in any case. */
static enum pawl_status
count_steps(const struct pawl_retention *retention, struct pawl_retention_step *steps, size_t n,
            struct pawl_arena *arena, struct pawl_error *err)
{
    const struct pawl_retention_policy *policy = &retention->policy;
    int64_t counted = 0;
    for (size_t i = n; i-- > 0;) {
        char name[PAWL_STEP_NAME_BYTES];
        bool may_stay = counted < policy->keep || policy->n_best != 0 ||
                        (policy->keep_every > 0 && steps[i].step % policy->keep_every == 0);
        if (!may_stay || steps[i].step > retention->newest ||
            pawl_pins_hold(retention->corrupt, retention->n_corrupt, steps[i].step))
            continue;
        pawl_entry_name(steps[i].step, "", name);
        enum pawl_status st = step_counts(retention, name, arena, &steps[i], err);
        if (st == PAWL_OK && !steps[i].counts) {
            pawl_entry_name(steps[i].step, ".prev", name);
            st = step_counts(retention, name, arena, &steps[i], err);
        }
        if (st != PAWL_OK)
            return pawl_context(err, st, "count the steps to keep: '%s'", name);
        counted += steps[i].counts;
    }
    return PAWL_OK;
}

/* Delete `<step><suffix>` of every chosen step that has it. */
static enum pawl_status
delete_chosen(const struct pawl_retention *retention, const struct pawl_retention_step *steps, size_t n,
              const char *suffix, const struct pawl_dir_list *list, struct pawl_error *err)
{
    size_t n_names = 0;
    char **names = calloc(list->n + 1, sizeof *names);
    bool *deleted = calloc(list->n + 1, sizeof *deleted);
    enum pawl_status st = PAWL_OK;
    if (names == NULL || deleted == NULL) {
        st = pawl_fail_memory(err, (list->n + 1) * sizeof *names);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        char name[PAWL_STEP_NAME_BYTES];
        pawl_entry_name(steps[i].step, suffix, name);
        for (size_t k = 0; k < list->n && steps[i].goes; k++)
            if (strcmp(list->entries[k].name, name) == 0)
                names[n_names++] = list->entries[k].name;
    }
    if (n_names != 0 && !retention->dry_run)
        st = pawl_root_delete(retention->root, names, n_names, deleted, retention->warner, err);
    for (size_t i = 0; i < n_names; i++)
        if (retention->dry_run || deleted[i])
            pawl_report_name(retention->report, PAWL_NAMES_DELETED, pawl_str_z(names[i]));
out:
    free(names);
    free(deleted);
    return st;
}

enum pawl_status
pawl_retention_apply(const struct pawl_retention *retention, const struct pawl_dir_list *list, struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error why;
    int64_t *pinned = NULL;
    size_t n_pinned = 0;
    enum pawl_status st = PAWL_OK;

    struct pawl_retention_step *steps = calloc(list->n + 1, sizeof *steps);
    if (steps == NULL)
        return pawl_fail_memory(err, (list->n + 1) * sizeof *steps);
    size_t n = gather_steps(list, steps);
    if (retention->policy.keep < 1)
        goto out;
    if (pawl_pins_read(retention->root, &arena, &pinned, &n_pinned, &why) != PAWL_OK) {
        pawl_warn_error(retention->warner, "retention", PAWL_RETENTION, "no step is deleted", &why);
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        steps[i].is_pinned = pawl_pins_hold(pinned, n_pinned, steps[i].step);
    st = count_steps(retention, steps, n, &arena, err);
    if (st != PAWL_OK)
        goto out;
    pawl_retention_choose(steps, n, &retention->policy, retention->newest);
    /* A .prev before its step: it would stand for the step once that is gone. */
    st = delete_chosen(retention, steps, n, ".prev", list, err);
    if (st == PAWL_OK)
        st = delete_chosen(retention, steps, n, "", list, err);
out:
    free(steps);
    pawl_arena_release(&arena);
    return st;
}

/* ---- pawl_ckpt_prune ---- */

static enum pawl_status
prune_locked(const struct pawl_dir *root, const struct pawl_retention_policy *policy, const int64_t *corrupt,
             size_t n_corrupt, bool dry_run, struct pawl_report *report, struct pawl_error *err)
{
    const struct pawl_warner warner = { NULL, NULL, report };
    struct pawl_dir_list list = { NULL, 0 };
    int64_t latest = -1;
    enum pawl_status st = dry_run ? PAWL_OK : pawl_root_settle(root, &warner, err);
    if (st == PAWL_OK)
        st = pawl_root_latest(root, &latest, err);
    if (st == PAWL_OK)
        st = pawl_dir_list(root, &list, err);
    if (st != PAWL_OK)
        return st;
    /* A LATEST that names nothing usable leaves the newest that counts. */
    bool is_there = false;
    for (size_t i = 0; i < list.n; i++) {
        int64_t step;
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(list.entries[i].name), &step);
        is_there = is_there || ((kind == PAWL_ENTRY_STEP || kind == PAWL_ENTRY_PREV) && step == latest);
    }
    const struct pawl_retention retention = { .root = root,
                                              .policy = *policy,
                                              .newest = is_there ? latest : INT64_MAX,
                                              .corrupt = corrupt,
                                              .n_corrupt = n_corrupt,
                                              .dry_run = dry_run,
                                              .warner = &warner,
                                              .report = report };
    if (!dry_run)
        pawl_root_remove_stale(root, &list, &warner);
    st = pawl_retention_apply(&retention, &list, err);
    pawl_dir_list_release(&list);
    return st;
}

static enum pawl_status
take_policy(const struct pawl_prune_options *options, struct pawl_prune_options *known,
            struct pawl_retention_policy *policy, struct pawl_error *err)
{
    if (options == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "prune: options say how many steps to keep");
    enum pawl_status st =
        pawl_options_take(known, sizeof *known, options, options->size, "struct pawl_prune_options", err);
    if (st != PAWL_OK)
        return st;
    *policy = (struct pawl_retention_policy){ known->keep, known->keep_every, known->keep_best, known->n_keep_best };
    st = pawl_policy_check(policy, err);
    if (st == PAWL_OK && policy->keep == 0 && policy->keep_every == 0 && policy->n_best == 0)
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "keep is 0, expected 1 or more");
    return st == PAWL_OK ? st : pawl_context(err, st, "prune");
}

/* The answer of a prune, with the report handed over. */
static enum pawl_status
end_prune(enum pawl_status st, struct pawl_report *report, struct pawl_report **ret_report, struct pawl_error *err)
{
    if (st == PAWL_OK && !pawl_report_ok(report))
        st = pawl_fail_memory(err, 1);
    if (ret_report != NULL)
        *ret_report = report;
    else
        pawl_report_free(report);
    return st == PAWL_OK ? st : pawl_context(err, st, "prune");
}

enum pawl_status
pawl_ckpt_prune_os(const struct pawl_os *os, struct pawl_str path, const struct pawl_prune_options *options,
                   struct pawl_report **ret_report, struct pawl_error *err)
{
    struct pawl_prune_options known = { .size = sizeof known };
    struct pawl_retention_policy policy;
    struct pawl_dir root = PAWL_DIR_INIT;
    if (ret_report != NULL)
        *ret_report = NULL;
    enum pawl_status st = take_policy(options, &known, &policy, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_report *report = pawl_report_new();
    st = report == NULL ? pawl_fail_memory(err, 1) : pawl_root_open_locked(&root, os, path, err);
    if (st == PAWL_OK) {
        st = prune_locked(&root, &policy, NULL, 0, known.dry_run != 0, report, err);
        pawl_dir_unlock(&root);
    }
    pawl_dir_release(&root);
    return end_prune(st, report, ret_report, err);
}

enum pawl_status
pawl_run_prune(struct pawl_run *run, const struct pawl_prune_options *options, struct pawl_report **ret_report,
               struct pawl_error *err)
{
    struct pawl_prune_options known;
    struct pawl_retention_policy policy;
    if (ret_report != NULL)
        *ret_report = NULL;
    enum pawl_status st = take_policy(options, &known, &policy, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_report *report = pawl_report_new();
    st = report == NULL ? pawl_fail_memory(err, 1) : pawl_run_enter(run, err);
    if (st == PAWL_OK) {
        st = prune_locked(&run->root, &policy, run->corrupt, run->n_corrupt, known.dry_run != 0, report, err);
        pawl_run_leave(run);
    }
    return end_prune(st, report, ret_report, err);
}

enum pawl_status
pawl_ckpt_prune(struct pawl_str root, const struct pawl_prune_options *options, struct pawl_report **ret_report,
                struct pawl_error *err)
{
    return pawl_ckpt_prune_os(pawl_os_posix(), root, options, ret_report, err);
}
