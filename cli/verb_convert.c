/* convert, shard and merge: one work with different defaults. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/live.h"
#include "cli/verbs.h"
#include "trainer/signals.h"

/* What the words of the line become; the lists are the caller's to free. */
struct request {
    struct pawl_convert_options options;
    struct pawl_str *only, *drop;
    struct pawl_rename *renames;
    struct pawl_pair *metadata;
    struct live progress;
};

static void
request_release(struct request *request)
{
    free(request->only);
    free(request->drop);
    free(request->renames);
    free(request->metadata);
}

/* Past stdio: the bytes are large and come whole. */
static enum pawl_status
write_stdout(void *context, const void *data, size_t n, struct pawl_error *err)
{
    (void)context;
    for (const char *at = data; n != 0;) {
        ssize_t written = write(STDOUT_FILENO, at, n);
        if (written < 0 && errno == EINTR) {
            if (signals_pending() != 0)
                return fault(err, PAWL_CANCELED, "canceled", NULL, "stopped by a signal");
            continue;
        }
        if (written < 0)
            return fault_os(err, errno, "standard output", "write");
        at += written;
        n -= (size_t)written;
    }
    return PAWL_OK;
}

/* ---- the words ---- */

static enum pawl_status
take_patterns(const struct words *words, struct pawl_str **ret_patterns, struct pawl_error *err)
{
    struct pawl_str *patterns = calloc(words->n + 1, sizeof *patterns);
    if (patterns == NULL)
        return fault_memory(err, words->n * sizeof *patterns);
    for (size_t i = 0; i < words->n; i++)
        patterns[i] = pawl_str_z(words->items[i]);
    *ret_patterns = patterns;
    return PAWL_OK;
}

/* "K=V" at the first "=": both sides. */
static enum pawl_status
cut_word(const char *flag, const char *word, const char *expected, struct pawl_str *ret_left,
         struct pawl_str *ret_right, struct pawl_error *err)
{
    const char *equals = strchr(word, '=');
    if (equals == NULL) {
        char *shown = text_name_z(word);
        enum pawl_status st =
            fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s: expected %s, found '%s'", flag, expected, shown);
        free(shown);
        return st;
    }
    *ret_left = (struct pawl_str){ word, (size_t)(equals - word) };
    *ret_right = pawl_str_z(equals + 1);
    return PAWL_OK;
}

static enum pawl_status
take_words(const struct arguments *a, struct request *r, struct pawl_error *err)
{
    enum pawl_status st = take_patterns(&a->only, &r->only, err);
    if (st == PAWL_OK)
        st = take_patterns(&a->drop, &r->drop, err);
    if (st != PAWL_OK)
        return st;
    r->renames = calloc(a->rename.n + 1, sizeof *r->renames);
    r->metadata = calloc(a->metadata.n + 1, sizeof *r->metadata);
    if (r->renames == NULL || r->metadata == NULL)
        return fault_memory(err, a->rename.n * sizeof *r->renames + a->metadata.n * sizeof *r->metadata);
    for (size_t i = 0; i < a->rename.n && st == PAWL_OK; i++)
        st = cut_word("rename", a->rename.items[i], "FROM=TO", &r->renames[i].from, &r->renames[i].to, err);
    for (size_t i = 0; i < a->metadata.n && st == PAWL_OK; i++)
        st = cut_word("metadata", a->metadata.items[i], "KEY=VALUE", &r->metadata[i].key, &r->metadata[i].value, err);
    r->options.only = r->only;
    r->options.n_only = a->only.n;
    r->options.drop = r->drop;
    r->options.n_drop = a->drop.n;
    r->options.renames = r->renames;
    r->options.n_renames = a->rename.n;
    r->options.metadata = r->metadata;
    r->options.n_metadata = a->metadata.n;
    if (st == PAWL_OK && a->align != NULL && !options_parse_u64(a->align, UINT64_MAX, &r->options.align))
        st = fault(err, PAWL_ARGUMENT, "usage", NULL, "--align: expected a number");
    return st;
}

/* What OUT is, by its ending: a file, or a directory. */
static enum pawl_status
choose_kind(const char *out, bool *ret_is_directory, struct pawl_error *err)
{
    struct stat status;
    size_t len = strlen(out);
    const char *slash = strrchr(out, '/');
    const char *name = slash != NULL ? slash + 1 : out;
    const char *ending = strrchr(name, '.');
    *ret_is_directory = true;
    if (len > 0 && out[len - 1] == '/')
        return PAWL_OK;
    if (ending != NULL && strcmp(ending, ".safetensors") == 0) {
        *ret_is_directory = false;
        return PAWL_OK;
    }
    if (ending == NULL || ending == name || strcmp(name, "..") == 0 ||
        (stat(out, &status) == 0 && S_ISDIR(status.st_mode)))
        return PAWL_OK;
    char *shown = text_name_z(ending);
    enum pawl_status st =
        fault(err, PAWL_ARGUMENT, "usage", out,
              "expected a name that ends in .safetensors for a file, or in / for a directory, found the "
              "ending '%s'",
              shown);
    free(shown);
    return st;
}

/* ---- the account ---- */

static void
write_document(const struct arguments *a, struct pawl_json *json, const struct pawl_converted *done, double seconds)
{
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_text_z(json, "in", a->paths.items[0]);
    json_text_z(json, "out", a->paths.items[1]);
    json_u64(json, "tensors", done->tensors);
    json_u64(json, "bytes_in", done->bytes_in);
    json_u64(json, "bytes_out", done->bytes_out);
    json_array(json, "files");
    for (size_t i = 0; i < done->n_files; i++) {
        pawl_json_add_object(json);
        json_text(json, "name", done->files[i].name);
        json_u64(json, "bytes", done->files[i].bytes);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
    json_object(json, "aliases");
    for (size_t i = 0; i < done->n_aliases; i++) {
        pawl_json_add_key(json, done->aliases[i].key);
        pawl_json_add_string(json, done->aliases[i].value);
    }
    pawl_json_end_object(json);
    json_array(json, "dropped");
    for (size_t i = 0; i < done->n_dropped; i++)
        pawl_json_add_string(json, done->dropped[i]);
    pawl_json_end_array(json);
    json_f64(json, "seconds", seconds);
    json_bool(json, "dry_run", a->dry_run);
    pawl_json_end_object(json);
}

static void
print_account(const struct arguments *a, const struct pawl_converted *done)
{
    char texts[2][32];
    size_t width = 0;
    for (size_t i = 0; i < done->n_files; i++) {
        char *name = text_name(done->files[i].name);
        width = text_columns(name) > width ? text_columns(name) : width;
        free(name);
    }
    for (size_t i = 0; i < done->n_files; i++) {
        char *name = text_name(done->files[i].name);
        text_pad(name, width);
        (void)printf("  %s\n", text_size(done->files[i].bytes, texts[0]));
        free(name);
    }
    (void)printf("%s%s tensor%s, %s in %zu file%s", a->dry_run ? "would write " : "",
                 text_count(done->tensors, texts[0]), done->tensors == 1 ? "" : "s",
                 text_size(done->bytes_out, texts[1]), done->n_files, done->n_files == 1 ? "" : "s");
    if (done->n_aliases != 0)
        (void)printf("; %zu alias%s", done->n_aliases, done->n_aliases == 1 ? "" : "es");
    if (done->n_dropped != 0)
        (void)printf("; %zu dropped", done->n_dropped);
    (void)printf("\n");
}

/* ---- the work ---- */

static enum pawl_status
check_stdout(const struct arguments *a, const struct output *out, const struct request *r, struct pawl_error *err)
{
    if (r->options.is_directory)
        return fault(err, PAWL_ARGUMENT, "usage", NULL, "standard output takes one file, not shards");
    if (a->json && !a->dry_run)
        return fault(err, PAWL_ARGUMENT, "usage", NULL, "--json and the output can't both be on standard output");
    if (!a->dry_run && isatty(STDOUT_FILENO)) {
        enum pawl_status st =
            fault(err, PAWL_ARGUMENT, "usage", NULL, "standard output is a terminal, and a model is bytes");
        fault_hint(err, "pawl %s IN - > FILE, or into a pipe", out->verb);
        return st;
    }
    return PAWL_OK;
}

static int
carry_out(const struct arguments *a, struct output *out, struct request *r)
{
    static const struct pawl_sink sink = { write_stdout, NULL };
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *from = a->paths.items[0];
    const char *to = a->paths.items[1];
    bool is_stdout = strcmp(to, "-") == 0;
    struct pawl_model *model = NULL;
    struct pawl_converted *done = NULL;

    r->options.keep_existing = !a->force;
    r->options.dry_run = a->dry_run;
    r->options.file_bytes_max = a->max_shard_size;
    r->options.progress = live_progress;
    r->progress = live_begin(out, "wrote");
    r->options.progress_context = &r->progress;
    r->options.sink = is_stdout ? &sink : NULL;
    enum pawl_status st = take_words(a, r, &err);
    if (st == PAWL_OK && is_stdout)
        st = check_stdout(a, out, r, &err);
    if (st == PAWL_OK && a->max_shard_size != 0 && !r->options.is_directory) {
        st = fault(&err, PAWL_ARGUMENT, "usage", to, "--max-shard-size is for a directory, and this is a file");
        fault_hint(&err, "name a directory: it may end in /");
    }
    if (st != PAWL_OK)
        return output_error(out, NULL, &err);
    signals_catch();
    st = pawl_model_open_z(from, NULL, &model, &err);
    if (st != PAWL_OK)
        fault_path(&err, from);
    if (st == PAWL_OK)
        st = pawl_convert(model, pawl_str_z(to), &r->options, &done, &err);
    signals_restore();
    pawl_model_close(model);
    if (st == PAWL_EXISTS && !a->force && err.hint[0] == '\0' && strcmp(err.code, "exists") == 0)
        fault_hint(&err, "--force replaces it");
    if (st != PAWL_OK)
        return output_error(out, to, &err);

    talk_live_end(&out->talk);
    if (out->is_json)
        write_document(a, out->json, done, live_seconds(&r->progress));
    else if (!out->talk.is_quiet && (!is_stdout || a->dry_run))
        print_account(a, done);
    st = output_end(out, &err);
    pawl_converted_free(done);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, to, &err);
}

static int
run_kind(const struct arguments *a, struct output *out, bool is_directory)
{
    struct request request = { .options = PAWL_CONVERT_OPTIONS(.is_directory = is_directory) };
    int status = carry_out(a, out, &request);
    request_release(&request);
    return status;
}

static int
run_convert(const struct arguments *a, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    bool is_directory = false;
    if (strcmp(a->paths.items[1], "-") != 0 && choose_kind(a->paths.items[1], &is_directory, &err) != PAWL_OK)
        return output_error(out, a->paths.items[1], &err);
    return run_kind(a, out, is_directory);
}

static int
run_shard(const struct arguments *a, struct output *out)
{
    return run_kind(a, out, true);
}

static int
run_merge(const struct arguments *a, struct output *out)
{
    return run_kind(a, out, false);
}

#define OPTION_ALIGN                                                                                           \
    {                                                                                                          \
        "align", NULL, "N", "8|64|256|4096", "pad the header so that the data begin at a multiple of N bytes", \
            OPTION_AT(align), OPTION_CHOICE, 0, 0, 0                                                           \
    }
#define OPTION_MAX_SHARD_SIZE                                                                                  \
    {                                                                                                          \
        "max-shard-size", NULL, "SIZE", NULL, "bytes of tensors in one shard: 5GB (default), 500MiB, 1000000", \
            OPTION_AT(max_shard_size), OPTION_SIZE, 1, 0, 0                                                    \
    }
#define DRY_RUN "write nothing; say what would be written"

static const struct option convert_options[] = {
    { "only", NULL, "PATTERN", NULL, "keep the tensors of such names; may be repeated", OPTION_AT(only), OPTION_LIST, 0,
      0, 0 },
    { "drop", NULL, "PATTERN", NULL, "leave such tensors out; may be repeated", OPTION_AT(drop), OPTION_LIST, 0, 0, 0 },
    { "rename", NULL, "FROM=TO", NULL,
      "FROM is a name, or holds one * that TO repeats; may be repeated: the first counts", OPTION_AT(rename),
      OPTION_LIST, 0, 0, 0 },
    { "metadata", NULL, "KEY=VALUE", NULL, "add or replace an entry of the metadata; may be repeated",
      OPTION_AT(metadata), OPTION_LIST, 0, 0, 0 },
    OPTION_ALIGN,
    OPTION_MAX_SHARD_SIZE,
    OPTION_DRY_RUN(DRY_RUN),
    OPTION_FORCE,
};

const struct verb verb_convert = {
    .name = "convert",
    .synopsis = "IN OUT [flags]",
    .summary = "write a model anew: choose, rename, split, join its tensors",
    .description =
        "IN is a safetensors file, an index, a directory with a model, a checkpoint or a run (its newest weights). OUT "
        "is "
        "a\nfile when it ends in .safetensors, a directory when it ends in / or has no ending, - for standard output.\n"
        "A PATTERN chooses by name as a shell does, and sees the names of IN. Metadata and tied weights are carried "
        "over. "
        "The\noutput is canonical: the same tensors and metadata give the same bytes.\n",
    .examples = "  pawl convert model.safetensors small.safetensors --only 'model.layers.0.*' --only lm_head.weight\n"
                "  pawl convert in.safetensors out.safetensors --rename 'module.*=*' --metadata format=pt\n"
                "  pawl convert \"$(pawl ckpt latest out/ckpt)\" weights/ --max-shard-size 5GB\n"
                "  pawl convert in.safetensors - --drop '*.bias' | sha256sum\n",
    .table = TABLE(convert_options),
    .min_paths = 2,
    .max_paths = 2,
    .path_name = "IN or OUT",
    .run = run_convert,
};

static const struct option shard_options[] = {
    OPTION_MAX_SHARD_SIZE,
    OPTION_ALIGN,
    OPTION_DRY_RUN(DRY_RUN),
    OPTION_FORCE,
};

const struct verb verb_shard = {
    .name = "shard",
    .synopsis = "IN OUTDIR [--max-shard-size SIZE] [flags]",
    .summary = "split a model into files of a size, with an index",
    .description = "Writes OUTDIR/model-00001-of-0000N.safetensors and their index, or one model.safetensors when all "
                   "fits. A tensor "
                   "that\nis larger than SIZE has a shard of its own. With --force the model that OUTDIR holds is "
                   "replaced: it stays "
                   "until the\nnew one is whole, and its files are removed then. Other files are left alone.\n",
    .examples = "  pawl shard model.safetensors model/ --max-shard-size 5GB\n"
                "  pawl shard model/ smaller/ --max-shard-size 500MiB\n",
    .table = TABLE(shard_options),
    .min_paths = 2,
    .max_paths = 2,
    .path_name = "IN or OUTDIR",
    .run = run_shard,
};

static const struct option merge_options[] = {
    OPTION_ALIGN,
    OPTION_DRY_RUN(DRY_RUN),
    OPTION_FORCE,
};

const struct verb verb_merge = {
    .name = "merge",
    .synopsis = "IN OUT [flags]",
    .summary = "join the shards of a model into one file",
    .description = "IN is a directory with an index, or the index. OUT is a file, or - for standard output.\n",
    .examples = "  pawl merge model/ model.safetensors\n"
                "  pawl merge model/model.safetensors.index.json - | ssh host 'cat > model.safetensors'\n",
    .table = TABLE(merge_options),
    .min_paths = 2,
    .max_paths = 2,
    .path_name = "IN or OUT",
    .run = run_merge,
};
