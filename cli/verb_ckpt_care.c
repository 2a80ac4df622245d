/* ckpt repair, copy, pin and unpin: looking after a root. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/live.h"
#include "cli/verbs.h"
#include "trainer/signals.h"

static void
write_names(struct pawl_json *json, const char *key, const struct pawl_str *names, size_t n)
{
    json_array(json, key);
    for (size_t i = 0; i < n; i++)
        pawl_json_add_string(json, names[i]);
    pawl_json_end_array(json);
}

static void
print_warnings(struct output *out, const struct pawl_report *report)
{
    size_t n = 0;
    const struct pawl_problem *warnings = report == NULL ? NULL : pawl_report_warnings(report, &n);
    for (size_t i = 0; i < n; i++)
        talk_warning(&out->talk, "%s (%s)", warnings[i].message, warnings[i].code);
}

/* ---- repair ---- */

static void
write_repair(struct output *out, const char *root, bool is_dry, const struct pawl_report *report)
{
    size_t n = 0, n_steps = 0, n_warnings = 0;
    const struct pawl_str *names = pawl_report_names(report, PAWL_NAMES_QUARANTINED, &n);
    const struct pawl_verdict *steps = pawl_report_verdicts(report, &n_steps);
    const struct pawl_problem *warnings = pawl_report_warnings(report, &n_warnings);
    pawl_json_add_object(out->json);
    json_bool(out->json, "ok", true);
    json_text_z(out->json, "root", root);
    json_bool(out->json, "dry_run", is_dry);
    write_names(out->json, "quarantined", names, n);
    json_array(out->json, "broken");
    for (size_t i = 0; i < n_steps; i++) {
        pawl_json_add_object(out->json);
        json_text_z(out->json, "name", steps[i].name);
        json_problems(out->json, "reasons", steps[i].problems, steps[i].n_problems);
        pawl_json_end_object(out->json);
    }
    pawl_json_end_array(out->json);
    json_problems(out->json, "warnings", warnings, n_warnings);
    pawl_json_end_object(out->json);
}

static void
print_repair(struct output *out, bool is_dry, const struct pawl_report *report)
{
    size_t n = 0, n_steps = 0;
    const struct pawl_str *names = pawl_report_names(report, PAWL_NAMES_QUARANTINED, &n);
    const struct pawl_verdict *steps = pawl_report_verdicts(report, &n_steps);
    for (size_t i = 0; i < n; i++) {
        char *name = text_name(names[i]);
        (void)printf("%s%s -> %.*s.bad\n", is_dry ? "would rename " : "renamed ", name, (int)strcspn(name, "."), name);
        free(name);
        for (size_t k = 0; k < n_steps; k++)
            if (strlen(steps[k].name) == names[i].len && memcmp(steps[k].name, names[i].data, names[i].len) == 0)
                text_problems(out, steps[k].problems, steps[k].n_problems, "problem");
    }
    if (n == 0 && n_steps == 0 && !out->talk.is_quiet)
        (void)printf("every step is complete\n");
    print_warnings(out, report);
}

static int
run_repair(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *root = arguments->paths.items[0];
    struct pawl_report *report = NULL;
    enum pawl_status st =
        pawl_ckpt_repair(pawl_str_z(root), &PAWL_REPAIR_OPTIONS(.dry_run = arguments->dry_run), &report, &err);
    if (st == PAWL_OK && out->is_json)
        write_repair(out, root, arguments->dry_run, report);
    else if (report != NULL && !out->is_json)
        print_repair(out, arguments->dry_run, report); /* what was done before a failure, too */
    if (st == PAWL_OK)
        st = output_end(out, &err);
    pawl_report_free(report);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, root, &err);
}

static const struct option repair_options[] = {
    { "dry-run", NULL, NULL, NULL, "only say what would be renamed", OPTION_AT(dry_run), OPTION_SWITCH, 0, 0, 0 },
};

const struct verb verb_ckpt_repair = {
    .name = "ckpt repair",
    .synopsis = "ROOT [--dry-run]",
    .summary = "quarantine broken steps",
    .description =
        "Hashes every step, and renames each that is not complete to step-N.bad, so that a launcher that\n"
        "restarts over and over does not hash it each time. Nothing is mended, and nothing is lost. A LATEST\n"
        "that names a broken step is first moved to the step that a load takes instead. A step-N.bad that is\n"
        "there already is kept: then that step stays as it is, exit status 1.\n",
    .examples = "  pawl ckpt repair out/ckpt --dry-run\n"
                "  pawl ckpt repair out/ckpt\n",
    .table = TABLE(repair_options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "ROOT",
    .run = run_repair,
};

/* ---- copy ---- */

static int
run_copy(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *step = arguments->paths.items[0];
    const char *dest = arguments->paths.items[1];
    struct pawl_report *report = NULL;
    struct live copying = live_begin(out, "copied");
    signals_catch();
    enum pawl_status st = pawl_ckpt_copy(
        pawl_str_z(step), pawl_str_z(dest),
        &PAWL_COPY_OPTIONS(.replace = arguments->force, .progress = live_progress, .context = &copying), &report, &err);
    signals_restore();
    size_t n = 0;
    const struct pawl_verdict *verdicts = report == NULL ? NULL : pawl_report_verdicts(report, &n);
    const struct pawl_verdict *copy = verdicts == NULL || n == 0 ? NULL : &verdicts[n - 1];
    if (st == PAWL_OK && copy != NULL && out->is_json) {
        pawl_json_add_object(out->json);
        json_bool(out->json, "ok", true);
        json_text_z(out->json, "from", step);
        json_text_z(out->json, "path", copy->name);
        json_u64(out->json, "files", copy->files);
        json_u64(out->json, "bytes", copy->bytes);
        pawl_json_end_object(out->json);
    } else if (st == PAWL_OK && copy != NULL) {
        (void)printf("%s\n", copy->name); /* as it is: for $(...) */
    } else if (!out->is_json) {
        talk_report(&out->talk, report);
    }
    if (!out->is_json)
        print_warnings(out, st == PAWL_OK ? report : NULL);
    if (st == PAWL_OK)
        st = output_end(out, &err);
    pawl_report_free(report);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, step, &err);
}

static const struct option copy_options[] = { OPTION_FORCE };

const struct verb verb_ckpt_copy = {
    .name = "ckpt copy",
    .synopsis = "STEP DEST [--force]",
    .summary = "copy a step, verified while it is read and again by its manifest",
    .description =
        "STEP is a step directory under any name, or a root: the step that a load takes. DEST is a directory\n"
        "that is there (then the copy is DEST/step-N), or the name of the new one. Every byte is hashed as it\n"
        "is read; the copy is made durable, read again and verified, and only then gets its name. Under a\n"
        "step's name it is made under that root's lock; LATEST there is left alone. Prints the path.\n",
    .examples = "  pawl ckpt copy out/ckpt/step-000500 /archive/run7\n"
                "  pawl ckpt copy out/ckpt best\n",
    .table = TABLE(copy_options),
    .min_paths = 2,
    .max_paths = 2,
    .path_name = "STEP or DEST",
    .run = run_copy,
};

/* ---- pin, unpin ---- */

/* "500" or "step-000500"; -1: neither. */
static int64_t
step_of(const char *text)
{
    uint64_t step = 0;
    if (options_parse_u64(text, INT64_MAX, &step))
        return (int64_t)step;
    return pawl_step_of_name(pawl_str_z(text));
}

static int
run_pinning(const struct arguments *arguments, struct output *out, bool is_pinned)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *root = arguments->paths.items[0];
    struct pawl_str path = pawl_str_z(root);
    int64_t *pinned = NULL;
    size_t n = 0;
    int64_t step = step_of(arguments->paths.items[1]);
    if (step < 0) {
        (void)fault(&err, PAWL_ARGUMENT, "usage", NULL, "STEP: expected a number, or a name as step-000500");
        return output_error(out, NULL, &err);
    }
    enum pawl_status st = is_pinned ? pawl_ckpt_pin(path, step, &err) : pawl_ckpt_unpin(path, step, &err);
    if (st == PAWL_OK)
        st = pawl_ckpt_pins(path, &pinned, &n, &err);
    if (st == PAWL_OK && out->is_json) {
        pawl_json_add_object(out->json);
        json_bool(out->json, "ok", true);
        json_text_z(out->json, "root", root);
        json_i64(out->json, "step", step);
        json_array(out->json, "pinned");
        for (size_t i = 0; i < n; i++)
            pawl_json_add_i64(out->json, pinned[i]);
        pawl_json_end_array(out->json);
        pawl_json_end_object(out->json);
    } else if (st == PAWL_OK && !out->talk.is_quiet) {
        (void)printf("pinned:");
        for (size_t i = 0; i < n; i++)
            (void)printf(" %" PRId64, pinned[i]);
        (void)printf("%s\n", n == 0 ? " none" : "");
    }
    if (st == PAWL_OK)
        st = output_end(out, &err);
    pawl_free(pinned);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, root, &err);
}

static int
run_pin(const struct arguments *arguments, struct output *out)
{
    return run_pinning(arguments, out, true);
}

static int
run_unpin(const struct arguments *arguments, struct output *out)
{
    return run_pinning(arguments, out, false);
}

const struct verb verb_ckpt_pin = {
    .name = "ckpt pin",
    .synopsis = "ROOT STEP",
    .summary = "keep a step: retention never deletes it",
    .description = "STEP is a number, or a name as step-000500; it need not be there yet. Kept in RETENTION.json. Busy "
                   "(exit status 75) while a trainer runs there. Prints what is pinned.\n",
    .examples = "  pawl ckpt pin out/ckpt 500\n",
    .min_paths = 2,
    .max_paths = 2,
    .path_name = "ROOT or STEP",
    .run = run_pin,
};

const struct verb verb_ckpt_unpin = {
    .name = "ckpt unpin",
    .synopsis = "ROOT STEP",
    .summary = "let retention delete a pinned step again",
    .description = "The counterpart of ckpt pin. Unpinning what is not pinned changes nothing.\n",
    .examples = "  pawl ckpt unpin out/ckpt 500\n",
    .min_paths = 2,
    .max_paths = 2,
    .path_name = "ROOT or STEP",
    .run = run_unpin,
};
