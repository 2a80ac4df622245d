#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"

static enum pawl_trust
trust_of(const struct arguments *arguments)
{
    bool size_only = arguments->trust != NULL && strcmp(arguments->trust, "size-only") == 0;
    return size_only ? PAWL_TRUST_SIZE_ONLY : PAWL_TRUST_FULL;
}

/* "step-000042.prev" counts as step 42. */
static int64_t
step_of(const char *name)
{
    struct pawl_str text = pawl_str_z(name);
    if (text.len > 5 && strcmp(name + text.len - 5, ".prev") == 0)
        text.len -= 5;
    return pawl_step_of_name(text);
}

/* ---- ls ---- */

static void
write_steps(struct pawl_json *json, const char *root, const char *latest, const struct pawl_verdict *steps, size_t n)
{
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_text_z(json, "root", root);
    json_text_z(json, "latest", latest[0] != '\0' ? latest : NULL);
    json_array(json, "steps");
    for (size_t i = 0; i < n; i++) {
        pawl_json_add_object(json);
        json_text_z(json, "name", steps[i].name);
        json_i64(json, "step", step_of(steps[i].name));
        json_bool(json, "complete", steps[i].is_ok);
        json_problems(json, "reasons", steps[i].problems, steps[i].n_problems);
        json_u64(json, "bytes", steps[i].bytes);
        json_bool(json, "is_latest", strcmp(steps[i].name, latest) == 0);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
    pawl_json_end_object(json);
}

static void
print_steps(const struct output *out, const char *latest, const struct pawl_verdict *steps, size_t n)
{
    size_t columns = 4, complete = 0;
    uint64_t bytes = 0;
    char size[32];
    for (size_t i = 0; i < n; i++)
        columns = strlen(steps[i].name) > columns ? strlen(steps[i].name) : columns;
    if (n > 0) {
        text_color(out, "1");
        text_pad("name", columns);
        (void)printf("  %12s  complete\n", "bytes");
        text_plain(out);
    }
    for (size_t i = 0; i < n; i++) {
        text_pad(steps[i].name, columns);
        (void)printf("  %12s  ", text_size(steps[i].bytes, size));
        text_color(out, steps[i].is_ok ? "32" : "31");
        (void)fputs(steps[i].is_ok ? "yes" : "NO", stdout);
        text_plain(out);
        (void)printf("%s\n", strcmp(steps[i].name, latest) == 0 ? "  <- LATEST" : "");
        text_problems(out, steps[i].problems, steps[i].n_problems, "problem");
        complete += steps[i].is_ok;
        bytes += steps[i].bytes;
    }
    (void)printf("%zu step%s, %zu complete, %s\n", n, n == 1 ? "" : "s", complete, text_size(bytes, size));
}

static int
run_ls(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *root = arguments->paths.items[0];
    struct pawl_report *report = NULL;
    char latest[32] = "";
    enum pawl_status st = pawl_ckpt_list(pawl_str_z(root), trust_of(arguments), &report, latest, &err);
    if (st == PAWL_OK) {
        size_t n;
        const struct pawl_verdict *steps = pawl_report_verdicts(report, &n);
        if (out->is_json)
            write_steps(out->json, root, latest, steps, n);
        else
            print_steps(out, latest, steps, n);
        st = output_end(out, &err);
    }
    pawl_report_free(report);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, root, &err);
}

static const struct option ls_options[] = { OPTION_TRUST };

const struct verb verb_ckpt_ls = {
    .name = "ckpt ls",
    .synopsis = "ROOT [flags]",
    .summary = "the steps of a run, and whether each is complete",
    .description = "ROOT is a checkpoint root, usually OUT/ckpt. Every listed file of every step is hashed, unless "
                   "--trust size-only.\n",
    .examples = "  pawl ckpt ls out/ckpt\n"
                "  pawl ckpt ls out/ckpt --json | jq '.steps[] | select(.complete | not)'\n",
    .table = TABLE(ls_options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "ROOT",
    .run = run_ls,
};

/* ---- latest ---- */

static void
write_latest(struct pawl_json *json, const struct pawl_ckpt *ckpt, const struct pawl_report *report)
{
    size_t n = 0;
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_text(json, "path", pawl_ckpt_path(ckpt));
    json_i64(json, "step", pawl_ckpt_step(ckpt));
    json_array(json, "skipped");
    const struct pawl_verdict *skipped = report != NULL ? pawl_report_verdicts(report, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        pawl_json_add_object(json);
        json_text_z(json, "name", skipped[i].name);
        json_problems(json, "reasons", skipped[i].problems, skipped[i].n_problems);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
    json_array(json, "ignored");
    n = 0;
    const struct pawl_str *ignored = report != NULL ? pawl_report_names(report, PAWL_NAMES_IGNORED, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        pawl_json_add_string(json, ignored[i]);
    pawl_json_end_array(json);
    pawl_json_end_object(json);
}

/* In milliseconds; -1 waits for ever. */
static int64_t
timeout_of(const struct arguments *arguments)
{
    const double most = 9e15; /* 285,000 years: for ever, and far from the end of the integers */
    if (!options_given(arguments, "timeout"))
        return -1;
    return arguments->timeout * 1000 < most ? (int64_t)(arguments->timeout * 1000) : -1;
}

static int
run_latest(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *root = arguments->paths.items[0];
    struct pawl_ckpt *ckpt = NULL;
    struct pawl_report *report = NULL;
    struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(.trust = trust_of(arguments));
    enum pawl_status st;
    if (!arguments->wait && (options_given(arguments, "newer-than") || options_given(arguments, "timeout"))) {
        (void)fault(&err, PAWL_ARGUMENT, "usage", NULL, "--newer-than and --timeout need --wait");
        return output_error(out, NULL, &err);
    }
    if (arguments->wait) {
        int64_t newer_than = options_given(arguments, "newer-than") ? arguments->newer_than : -1;
        st = pawl_ckpt_wait(pawl_str_z(root), newer_than, timeout_of(arguments), &PAWL_WAIT_OPTIONS(.ckpt = &options),
                            &ckpt, &report, &err);
    } else {
        st = pawl_ckpt_open_newest(pawl_str_z(root), &options, &ckpt, &report, &err);
    }
    bool is_none = st == PAWL_NONE_COMPLETE;
    if (!out->is_json || st != PAWL_OK)
        talk_report(&out->talk, report);
    if (st == PAWL_OK) {
        struct pawl_str path = pawl_ckpt_path(ckpt);
        if (out->is_json)
            write_latest(out->json, ckpt, report);
        else
            (void)printf("%.*s\n", (int)path.len, path.data); /* as it is: for $(...) */
        st = output_end(out, &err);
    }
    pawl_ckpt_close(ckpt);
    pawl_report_free(report);
    if (st == PAWL_OK)
        return EXIT_FINE;
    int status = output_error(out, root, &err);
    return is_none ? EXIT_NO : status; /* the question was whether there is one */
}

static const struct option latest_options[] = {
    OPTION_TRUST,
    { "wait", NULL, NULL, NULL, "wait until there is one", OPTION_AT(wait), OPTION_SWITCH, 0, 0, 0 },
    { "newer-than", NULL, "N", NULL, "with --wait: until there is one newer than step N", OPTION_AT(newer_than),
      OPTION_I64, 0, 0, 0 },
    { "timeout", NULL, "S", NULL, "with --wait: give up after S seconds (exit status 75)", OPTION_AT(timeout),
      OPTION_REAL, 0, 0, 0 },
};

const struct verb verb_ckpt_latest = {
    .name = "ckpt latest",
    .synopsis = "ROOT [--wait [--newer-than N] [--timeout S]] [flags]",
    .summary = "the step directory that a load would choose",
    .description = "Prints its path. What is passed over, and why, is said on stderr, or in the JSON. Exit status 1 "
                   "when there is none. With --wait ROOT need not be there yet: for an evaluator beside a run.\n",
    .examples = "  pawl ckpt latest out/ckpt\n"
                "  pawl ckpt latest out/ckpt --wait --newer-than 500 --timeout 3600\n"
                "  pawl verify \"$(pawl ckpt latest out/ckpt)\"\n",
    .table = TABLE(latest_options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "ROOT",
    .run = run_latest,
};

/* ---- prune ---- */

static int
run_prune(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *root = arguments->paths.items[0];
    struct pawl_report *report = NULL;
    struct pawl_keep_best best = { .count = 0 };
    enum pawl_status st = PAWL_OK;
    if (!options_given(arguments, "keep") && !options_given(arguments, "keep-every") && arguments->keep_best == NULL)
        st = fault(&err, PAWL_ARGUMENT, "usage", NULL, "--keep is missing: how many of the newest complete steps stay");
    if (st == PAWL_OK && arguments->keep_best != NULL && !options_parse_keep_best(arguments->keep_best, &best))
        st = fault(&err, PAWL_ARGUMENT, "usage", NULL, "--keep-best: expected METRIC:min|max:B, as in loss:min:3");
    if (st != PAWL_OK)
        return output_error(out, NULL, &err);
    struct pawl_prune_options options =
        PAWL_PRUNE_OPTIONS(.keep = arguments->keep, .dry_run = arguments->dry_run, .keep_every = arguments->keep_every,
                           .keep_best = &best, .n_keep_best = arguments->keep_best != NULL);
    if (options.keep == 0)
        talk_warning(&out->talk, "without --keep nothing is deleted");
    st = pawl_ckpt_prune(pawl_str_z(root), &options, &report, &err);
    if (st == PAWL_OK) {
        size_t n, n_warnings;
        const struct pawl_str *deleted = pawl_report_names(report, PAWL_NAMES_DELETED, &n);
        const struct pawl_problem *warnings = pawl_report_warnings(report, &n_warnings);
        if (out->is_json) {
            pawl_json_add_object(out->json);
            json_bool(out->json, "ok", true);
            json_text_z(out->json, "root", root);
            json_bool(out->json, "dry_run", arguments->dry_run);
            json_array(out->json, "deleted");
            for (size_t i = 0; i < n; i++)
                pawl_json_add_string(out->json, deleted[i]);
            pawl_json_end_array(out->json);
            json_problems(out->json, "warnings", warnings, n_warnings);
            pawl_json_end_object(out->json);
        } else {
            for (size_t i = 0; i < n; i++) {
                char *name = text_name(deleted[i]);
                (void)printf("%s%s\n", arguments->dry_run ? "would delete " : "deleted ", name);
                free(name);
            }
            if (n == 0 && !out->talk.is_quiet)
                (void)printf("nothing to delete\n");
            for (size_t i = 0; i < n_warnings; i++)
                talk_warning(&out->talk, "%s (%s)", warnings[i].message, warnings[i].code);
        }
        st = output_end(out, &err);
    }
    pawl_report_free(report);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, root, &err);
}

static const struct option prune_options[] = {
    { "keep", NULL, "K", NULL, "the K newest complete steps stay", OPTION_AT(keep), OPTION_I64, 1, 0, 0 },
    { "keep-every", NULL, "N", NULL, "every N-th step stays too: the multiples of N", OPTION_AT(keep_every), OPTION_I64,
      1, 0, 0 },
    { "keep-best", NULL, "M:min|max:B", NULL, "the best B by the metric M stay too, as in loss:min:3",
      OPTION_AT(keep_best), OPTION_TEXT, 0, 0, 0 },
    { "dry-run", NULL, NULL, NULL, "only say what would go", OPTION_AT(dry_run), OPTION_SWITCH, 0, 0, 0 },
};

const struct verb verb_ckpt_prune = {
    .name = "ckpt prune",
    .synopsis = "ROOT --keep K [--keep-every N] [--keep-best M:min|max:B] [--dry-run]",
    .summary = "delete old steps by the rules of a save",
    .description = "Under the root's lock: busy (exit status 75) while a trainer runs there. What any of the policies "
                   "keeps stays, and so do pinned steps and always the step that LATEST names; with fewer than K "
                   "complete steps nothing goes.\n",
    .examples = "  pawl ckpt prune out/ckpt --keep 3 --dry-run\n"
                "  pawl ckpt prune out/ckpt --keep 3 --keep-every 1000 --keep-best loss:min:1\n",
    .table = TABLE(prune_options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "ROOT",
    .run = run_prune,
};
