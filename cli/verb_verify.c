#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"

/* What one PATH came to. A path that can't be examined has an error instead of verdicts. */
struct result {
    const char *path;
    enum pawl_status status;
    struct pawl_error err;
    struct pawl_report *report;
};

static enum pawl_mode
mode_of(const struct arguments *arguments)
{
    const char *mode = arguments->mode != NULL ? arguments->mode : "strict";
    return strcmp(mode, "compat") == 0 ? PAWL_MODE_COMPAT
           : strcmp(mode, "lint") == 0 ? PAWL_MODE_LINT
                                       : PAWL_MODE_STRICT;
}

static enum pawl_profile
profile_of(const struct arguments *arguments)
{
    if (arguments->profile == NULL)
        return PAWL_PROFILE_NONE;
    return strcmp(arguments->profile, "tinyllm") == 0 ? PAWL_PROFILE_TINYLLM : PAWL_PROFILE_COURSE;
}

static struct pawl_verify_options
options_of(const struct arguments *arguments)
{
    bool size_only = arguments->trust != NULL && strcmp(arguments->trust, "size-only") == 0;
    return PAWL_VERIFY_OPTIONS(.mode = mode_of(arguments), .profile = profile_of(arguments), .size_only = size_only,
                               .check_finite = arguments->finite, .vocabulary = arguments->vocab,
                               .is_safetensors = arguments->mode != NULL);
}

/* The verdict's own path: of a run's step, below the run. */
static char *
verdict_path(const struct result *result, const struct pawl_verdict *verdict)
{
    size_t n = strlen(result->path) + strlen(verdict->name) + 2;
    char *path = malloc(n);
    if (path == NULL)
        return NULL;
    if (strcmp(verdict->name, result->path) == 0 || strchr(verdict->name, '/') != NULL) {
        (void)snprintf(path, n, "%s", verdict->name);
    } else {
        size_t len = strlen(result->path);
        bool is_step = pawl_step_of_name(pawl_str_z(verdict->name)) >= 0 || strstr(verdict->name, ".prev") != NULL;
        const char *slash = len > 0 && result->path[len - 1] == '/' ? "" : "/";
        if (is_step && verdict->kind == PAWL_KIND_CHECKPOINT)
            (void)snprintf(path, n, "%s%s%s", result->path, slash, verdict->name);
        else
            (void)snprintf(path, n, "%s", verdict->name);
    }
    return path;
}

static void
write_verdict(struct pawl_json *json, const struct result *result, const struct pawl_verdict *verdict)
{
    char *path = verdict_path(result, verdict);
    pawl_json_add_object(json);
    json_text_z(json, "path", path);
    json_text_z(json, "kind", verdict->kind != PAWL_KIND_UNKNOWN ? pawl_kind_name(verdict->kind) : NULL);
    json_bool(json, "ok", verdict->is_ok);
    json_problems(json, "problems", verdict->problems, verdict->n_problems);
    json_problems(json, "warnings", verdict->warnings, verdict->n_warnings);
    json_u64(json, "files", verdict->files);
    json_u64(json, "bytes", verdict->bytes);
    pawl_json_end_object(json);
    free(path);
}

static struct pawl_problem
problem_of_error(const struct pawl_error *err)
{
    return (struct pawl_problem){ .code = err->code[0] != '\0' ? err->code : pawl_status_name(err->status),
                                  .message = err->message,
                                  .offset = err->offset };
}

static void
write_error(struct pawl_json *json, const struct result *result)
{
    struct pawl_problem problem = problem_of_error(&result->err);
    pawl_json_add_object(json);
    json_text_z(json, "path", result->path);
    json_null(json, "kind");
    json_bool(json, "ok", false);
    json_problems(json, "problems", &problem, 1);
    json_problems(json, "warnings", NULL, 0);
    json_u64(json, "files", 0);
    json_u64(json, "bytes", 0);
    pawl_json_end_object(json);
}

static void
print_verdict(const struct output *out, const struct result *result, const struct pawl_verdict *verdict)
{
    char size[32], count[32];
    char *path = verdict_path(result, verdict);
    char *shown = text_name_z(path);
    if (verdict->is_ok && out->talk.is_quiet && verdict->n_warnings == 0) {
        free(shown);
        free(path);
        return;
    }
    (void)printf("%s: ", shown);
    text_color(out, verdict->is_ok ? "32" : "31");
    (void)fputs(verdict->is_ok ? "ok" : "NOT OK", stdout);
    text_plain(out);
    if (verdict->is_ok && verdict->kind == PAWL_KIND_UNKNOWN) /* of a list of sums */
        (void)printf(" (%s)\n", text_size(verdict->bytes, size));
    else
        (void)printf(" (%s, %s file%s, %s)\n", pawl_kind_name(verdict->kind), text_count(verdict->files, count),
                     verdict->files == 1 ? "" : "s", text_size(verdict->bytes, size));
    text_problems(out, verdict->problems, verdict->n_problems, "problem");
    text_problems(out, verdict->warnings, verdict->n_warnings, "warning");
    free(shown);
    free(path);
}

static void
print_error(const struct output *out, const struct result *result)
{
    struct pawl_problem problem = problem_of_error(&result->err);
    char *shown = text_name_z(result->path);
    (void)printf("%s: ", shown);
    text_color(out, "31");
    (void)fputs("NOT OK", stdout);
    text_plain(out);
    (void)fputc('\n', stdout);
    text_problems(out, &problem, 1, "problem");
    free(shown);
}

/* 0 all is well, 1 a fault, 75 a fault of the machine on a path that may be fine. */
static int
status_of(const struct result *result)
{
    if (result->status != PAWL_OK) {
        int status = exit_of_status(result->status);
        return status == EXIT_AGAIN || status == EXIT_STOPPED ? status : EXIT_NO;
    }
    size_t n;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(result->report, &n);
    for (size_t i = 0; i < n; i++) {
        if (!verdicts[i].is_ok)
            return EXIT_NO;
    }
    return EXIT_FINE;
}

static void
tell(struct output *out, const struct result *result)
{
    if (result->status != PAWL_OK) {
        if (out->is_json)
            write_error(out->json, result);
        else
            print_error(out, result);
        return;
    }
    size_t n;
    const struct pawl_verdict *verdicts = pawl_report_verdicts(result->report, &n);
    for (size_t i = 0; i < n; i++) {
        if (out->is_json)
            write_verdict(out->json, result, &verdicts[i]);
        else
            print_verdict(out, result, &verdicts[i]);
    }
    if (n == 0 && !out->is_json && !out->talk.is_quiet) {
        char *shown = text_name_z(result->path);
        (void)printf("%s: ok (no steps)\n", shown);
        free(shown);
    }
    const struct pawl_problem *warnings = pawl_report_warnings(result->report, &n);
    for (size_t i = 0; i < n; i++)
        talk_warning(&out->talk, "%s (%s)", warnings[i].message, warnings[i].code);
}

/*
 * `tokens verify` is told what it gets: what is no token file by its bytes is opened as one, so that the fault of a broken
 * header is named, and not "unknown format".
 */
static enum pawl_status
open_as_tokens(struct pawl_str path, uint64_t vocabulary, struct pawl_error *err)
{
    enum pawl_kind kind;
    if (pawl_kind_of(path, &kind, NULL) == PAWL_OK && (kind == PAWL_KIND_TOKEN_SHARD || kind == PAWL_KIND_TOKEN_DIR))
        return PAWL_OK;
    struct pawl_token_files *files = NULL;
    struct pawl_shard_options options = PAWL_SHARD_OPTIONS(.vocabulary = vocabulary);
    size_t n = 0;
    enum pawl_status st = pawl_token_files_open(&path, 1, pawl_str_z(""), &files, err);
    const struct pawl_str *paths = st == PAWL_OK ? pawl_token_files_paths(files, &n) : NULL;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct pawl_shard *shard = NULL;
        st = pawl_shard_open(paths[i], &options, &shard, err);
        pawl_shard_close(shard);
    }
    pawl_token_files_close(files);
    return st;
}

/* The same of `llmcp35 verify`: what is no such file by its bytes is decoded as one, so that its first fault is named. */
static enum pawl_status
open_as_llmcp35(struct pawl_str path, uint64_t vocabulary, struct pawl_error *err)
{
    enum pawl_kind kind;
    (void)vocabulary;
    if (pawl_kind_of(path, &kind, NULL) == PAWL_OK && kind == PAWL_KIND_LLMCP35)
        return PAWL_OK;
    struct pawl_llmcp35 *checkpoint = NULL;
    enum pawl_status st = pawl_llmcp35_load(path, &checkpoint, NULL, err);
    pawl_llmcp35_free(checkpoint);
    return st;
}

/* A look at a path before it is examined, for verbs that are told what it is. */
typedef enum pawl_status open_as_fn(struct pawl_str path, uint64_t vocabulary, struct pawl_error *err);

static int
run(const struct arguments *arguments, struct output *out, open_as_fn *open_as)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_verify_options options = options_of(arguments);
    size_t n_paths = arguments->paths.n;
    size_t n = n_paths + (arguments->sums != NULL);
    if (n == 0) {
        (void)fault(&err, PAWL_ARGUMENT, "usage", NULL, "PATH is missing");
        fault_hint(&err, "usage: pawl verify PATH... [flags]");
        return output_error(out, NULL, &err);
    }
    struct result *results = calloc(n, sizeof *results);
    if (results == NULL) {
        (void)fault_memory(&err, n * sizeof *results);
        return output_error(out, NULL, &err);
    }
    int status = EXIT_FINE;
    for (size_t i = 0; i < n; i++) {
        bool is_list = i == n_paths;
        struct result *result = &results[i];
        result->path = is_list ? arguments->sums : arguments->paths.items[i];
        struct pawl_str path = pawl_str_z(result->path);
        result->status = open_as != NULL && !is_list ? open_as(path, arguments->vocab, &result->err) : PAWL_OK;
        if (result->status == PAWL_OK)
            result->status = is_list ? pawl_verify_sums(path, &result->report, &result->err)
                                     : pawl_verify(path, &options, &result->report, &result->err);
        int one = status_of(&results[i]);
        status = one > status ? one : status;
        if (!out->is_json)
            tell(out, &results[i]);
    }
    if (out->is_json) {
        pawl_json_add_object(out->json);
        json_bool(out->json, "ok", status == EXIT_FINE);
        json_array(out->json, "results");
        for (size_t i = 0; i < n; i++)
            tell(out, &results[i]);
        pawl_json_end_array(out->json);
        pawl_json_end_object(out->json);
    }
    for (size_t i = 0; i < n; i++)
        pawl_report_free(results[i].report);
    free(results);
    enum pawl_status st = output_end(out, &err);
    return st == PAWL_OK ? status : output_error(out, NULL, &err);
}

int
verify_run(const struct arguments *arguments, struct output *out)
{
    return run(arguments, out, NULL);
}

int
verify_tokens_run(const struct arguments *arguments, struct output *out)
{
    return run(arguments, out, open_as_tokens);
}

int
verify_llmcp35_run(const struct arguments *arguments, struct output *out)
{
    return run(arguments, out, open_as_llmcp35);
}

static const struct option options[] = {
    { "mode", NULL, "MODE", "strict|compat|lint",
      "of safetensors: the reference's verdict and no repeated names (default), exactly its verdict, or with warnings",
      OPTION_AT(mode), OPTION_CHOICE, 0, 0, 0 },
    { "finite", NULL, NULL, NULL, "every NaN or infinity is a problem", OPTION_AT(finite), OPTION_SWITCH, 0, 0, 0 },
    { "profile", NULL, "PROFILE", "course|tinyllm", "demand a narrower format", OPTION_AT(profile), OPTION_CHOICE, 0, 0,
      0 },
    OPTION_TRUST,
    OPTION_VOCAB,
    { "sums", NULL, "LIST", NULL,
      "hash the files of a list as sha256sum writes it; names are relative to the list's folder", OPTION_AT(sums),
      OPTION_TEXT, 0, 0, 0 },
};

const struct verb verb_verify = {
    .name = "verify",
    .synopsis = "PATH... [flags]",
    .summary = "is it intact? every fault, with its place",
    .description = "Of a checkpoint every fault is told, of a single file the first that stops the reading. A run is "
                   "verified step by\n"
                   "step. Exit status 0: all is well; 1: something is not.\n",
    .examples = "  pawl verify model.safetensors\n"
                "  pawl verify out/ckpt --profile tinyllm\n"
                "  pawl verify --finite --json out/ckpt/step-000100\n"
                "  pawl verify data/*.bin --quiet\n"
                "  pawl verify --sums models/v1/SHA256SUMS\n",
    .table = TABLE(options),
    .min_paths = 0, /* a list alone will do */
    .max_paths = SIZE_MAX,
    .path_name = "PATH",
    .run = verify_run,
};
