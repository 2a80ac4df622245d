#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/verb_llmcp35.h"
#include "cli/verbs.h"

/* ---- what there is to tell, whatever the kind ---- */

struct file_row {
    char *name;
    uint64_t bytes;
};

struct facts {
    const char *path;
    enum pawl_kind kind;
    uint64_t bytes;
    struct file_row *files; /* by name in byte order */
    size_t n_files;
    struct pawl_model *model_owned;  /* to be closed */
    const struct pawl_model *model;  /* NULL: there is none to look at */
    struct pawl_ckpt *ckpt;          /* of a step */
    struct pawl_report *report;      /* of a step: its verdict; of a run: its steps */
    char latest[32];                 /* of a run */
    char loads[64];                  /* of a run: what a load would choose, "" for nothing */
    struct pawl_token_files *tokens; /* of a shard or a directory of them */
    struct pawl_shard_info shard;    /* sums; a field that differs from file to file is 0 */
    uint64_t documents;              /* UINT64_MAX: not stated */
    struct pawl_llmcp35 *llmcp35;    /* of such a file */
};

static void
release_facts(struct facts *facts)
{
    for (size_t i = 0; i < facts->n_files; i++)
        free(facts->files[i].name);
    free(facts->files);
    pawl_model_close(facts->model_owned);
    pawl_ckpt_close(facts->ckpt);
    pawl_report_free(facts->report);
    pawl_token_files_close(facts->tokens);
    pawl_llmcp35_free(facts->llmcp35);
}

static enum pawl_status
add_file(struct facts *facts, const char *name, size_t len, uint64_t bytes, struct pawl_error *err)
{
    struct file_row *more = realloc(facts->files, (facts->n_files + 1) * sizeof *more);
    if (more == NULL)
        return fault_memory(err, (facts->n_files + 1) * sizeof *more);
    facts->files = more;
    char *copy = strndup(name, len);
    if (copy == NULL)
        return fault_memory(err, len + 1);
    facts->files[facts->n_files++] = (struct file_row){ copy, bytes };
    facts->bytes += bytes;
    return PAWL_OK;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct file_row *)a)->name, ((const struct file_row *)b)->name);
}

/* The regular files directly in a directory. */
static enum pawl_status
add_directory(struct facts *facts, const char *path, struct pawl_error *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return fault_os(err, errno, path, "open the directory");
    enum pawl_status st = PAWL_OK;
    const struct dirent *entry;
    errno = 0;
    while (st == PAWL_OK && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode))
            st = add_file(facts, entry->d_name, strlen(entry->d_name), (uint64_t)info.st_size, err);
        errno = 0;
    }
    if (st == PAWL_OK && errno != 0)
        st = fault_os(err, errno, path, "list the directory");
    (void)closedir(dir);
    if (facts->n_files > 0)
        qsort(facts->files, facts->n_files, sizeof *facts->files, by_name);
    return st;
}

/* ---- gathering, by kind ---- */

static enum pawl_status
gather_model(struct facts *facts, struct pawl_error *err)
{
    enum pawl_status st = pawl_model_open(pawl_str_z(facts->path), NULL, &facts->model_owned, err);
    if (st == PAWL_OK && facts->kind == PAWL_KIND_LLMCP35)
        st = pawl_llmcp35_load_z(facts->path, &facts->llmcp35, NULL, err);
    if (st != PAWL_OK)
        return st;
    facts->model = facts->model_owned;
    size_t n;
    const struct pawl_model_file *files = pawl_model_files(facts->model, &n);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = add_file(facts, files[i].name.data, files[i].name.len, files[i].bytes, err);
    return st;
}

static enum pawl_trust
trust_of(const struct arguments *arguments)
{
    bool size_only = arguments->trust != NULL && strcmp(arguments->trust, "size-only") == 0;
    return size_only ? PAWL_TRUST_SIZE_ONLY : PAWL_TRUST_FULL;
}

/* Complete, or with what it is not complete for: then the weights, when they can be had. */
static enum pawl_status
gather_checkpoint(struct facts *facts, const struct arguments *arguments, struct pawl_error *err)
{
    struct pawl_str path = pawl_str_z(facts->path);
    struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(.trust = trust_of(arguments));
    enum pawl_status st = pawl_ckpt_open(path, &options, &facts->ckpt, &facts->report, err);
    if (st == PAWL_INCOMPLETE) {
        struct pawl_report *reasons = facts->report;
        facts->report = NULL;
        options.weights_only = 1;
        st = pawl_ckpt_open(path, &options, &facts->ckpt, &facts->report, err);
        pawl_report_free(facts->report);
        facts->report = reasons;
    }
    if (st != PAWL_OK)
        return st;
    facts->model = pawl_ckpt_model(facts->ckpt);
    return add_directory(facts, facts->path, err);
}

/* The steps by their sizes, and the weights of the one that a load would choose. */
static enum pawl_status
gather_run(struct facts *facts, const struct arguments *arguments, struct pawl_error *err)
{
    struct pawl_str root = pawl_str_z(facts->path);
    enum pawl_status st = pawl_ckpt_list(root, PAWL_TRUST_SIZE_ONLY, &facts->report, facts->latest, err);
    if (st != PAWL_OK)
        return st;
    size_t n;
    const struct pawl_verdict *steps = pawl_report_verdicts(facts->report, &n);
    for (size_t i = 0; i < n; i++)
        facts->bytes += steps[i].bytes;
    struct pawl_ckpt_options options = PAWL_CKPT_OPTIONS(.trust = trust_of(arguments));
    st = pawl_ckpt_open_newest(root, &options, &facts->ckpt, NULL, err);
    if (st == PAWL_NOT_FOUND || st == PAWL_NONE_COMPLETE)
        return PAWL_OK;
    if (st != PAWL_OK)
        return st;
    facts->model = pawl_ckpt_model(facts->ckpt);
    struct pawl_str name = pawl_ckpt_name(facts->ckpt);
    (void)snprintf(facts->loads, sizeof facts->loads, "%.*s", (int)name.len, name.data);
    return PAWL_OK;
}

static const char *
last_component(struct pawl_str path, size_t *ret_len)
{
    size_t at = path.len;
    while (at > 0 && path.data[at - 1] != '/')
        at--;
    *ret_len = path.len - at;
    return path.data + at;
}

/* One shard's numbers into the sums. */
static void
add_shard(struct facts *facts, size_t i, const struct pawl_shard_info *info)
{
    struct pawl_shard_info *sum = &facts->shard;
    if (i == 0) {
        *sum = *info;
    } else {
        sum->ids += info->ids;
        sum->format = sum->format == info->format ? sum->format : (enum pawl_shard_format)0;
        sum->width = sum->width == info->width ? sum->width : 0;
        sum->vocabulary = sum->vocabulary == info->vocabulary ? sum->vocabulary : 0;
    }
    uint64_t documents = pawl_token_files_documents(facts->tokens, i);
    if (documents == UINT64_MAX || facts->documents == UINT64_MAX)
        facts->documents = UINT64_MAX;
    else
        facts->documents += documents;
}

static enum pawl_status
gather_tokens(struct facts *facts, const struct arguments *arguments, struct pawl_error *err)
{
    struct pawl_str path = pawl_str_z(facts->path);
    enum pawl_status st = pawl_token_files_open(&path, 1, pawl_str_z(arguments->split), &facts->tokens, err);
    if (st != PAWL_OK)
        return st;
    size_t n;
    const struct pawl_str *paths = pawl_token_files_paths(facts->tokens, &n);
    struct pawl_shard_options options = PAWL_SHARD_OPTIONS(.vocabulary = arguments->vocab);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct pawl_shard *shard = NULL;
        st = pawl_shard_open(paths[i], &options, &shard, err);
        if (st != PAWL_OK)
            break;
        struct pawl_shard_info info = pawl_shard_info(shard);
        pawl_shard_close(shard);
        size_t len;
        const char *name = last_component(paths[i], &len);
        add_shard(facts, i, &info);
        st = add_file(facts, name, len, 1024 + info.ids * info.width, err);
    }
    return st;
}

static enum pawl_status
gather(struct facts *facts, const struct arguments *arguments, bool wants_tokens, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    /* `tokens info` is told what it gets: the fault of a broken shard is named, not "unknown format". */
    if (wants_tokens) {
        struct stat info;
        bool is_dir = stat(facts->path, &info) == 0 && S_ISDIR(info.st_mode);
        size_t len;
        const char *name = last_component(pawl_str_z(facts->path), &len);
        facts->kind = is_dir || strcmp(name, "_MANIFEST.json") == 0 ? PAWL_KIND_TOKEN_DIR : PAWL_KIND_TOKEN_SHARD;
    } else {
        st = pawl_kind_of(pawl_str_z(facts->path), &facts->kind, err);
    }
    if (st != PAWL_OK)
        return st;
    switch (facts->kind) {
    case PAWL_KIND_CHECKPOINT:
        return gather_checkpoint(facts, arguments, err);
    case PAWL_KIND_RUN:
        return gather_run(facts, arguments, err);
    case PAWL_KIND_TOKEN_SHARD:
    case PAWL_KIND_TOKEN_DIR:
        return gather_tokens(facts, arguments, err);
    default:
        return gather_model(facts, err);
    }
}

/* ---- sums over the tensors ---- */

struct dtype_sums {
    uint64_t tensors, parameters, bytes;
};

static struct dtype_sums
sum_tensors(const struct pawl_model *model, struct dtype_sums by_dtype[PAWL_DTYPE_COUNT + 1])
{
    size_t n;
    struct dtype_sums all = { 0, 0, 0 };
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    for (size_t i = 0; i < n; i++) {
        uint64_t elements = 0, bytes = 0;
        (void)pawl_dtype_bytes(tensors[i].dtype, tensors[i].shape, tensors[i].rank, &elements, &bytes, NULL);
        struct dtype_sums *sums[2] = { &by_dtype[tensors[i].dtype], &all };
        for (size_t k = 0; k < 2; k++) {
            sums[k]->tensors++;
            sums[k]->parameters += elements;
            sums[k]->bytes += tensors[i].end - tensors[i].begin;
        }
    }
    return all;
}

static uint64_t
header_bytes(const struct pawl_model *model)
{
    size_t n;
    uint64_t sum = 0;
    const struct pawl_model_file *files = pawl_model_files(model, &n);
    for (size_t i = 0; i < n; i++)
        sum += files[i].header_bytes;
    return sum;
}

/* ---- as JSON ---- */

static void
write_pairs(struct pawl_json *json, const char *key, const struct pawl_pair *pairs, size_t n)
{
    json_object(json, key);
    for (size_t i = 0; i < n; i++) {
        pawl_json_add_key(json, pairs[i].key);
        pawl_json_add_string(json, pairs[i].value);
    }
    pawl_json_end_object(json);
}

static void
write_tensors(struct pawl_json *json, const struct facts *facts)
{
    struct dtype_sums by_dtype[PAWL_DTYPE_COUNT + 1] = { { 0, 0, 0 } };
    size_t n = 0;
    bool is_model = facts->model != NULL;
    if (is_model) {
        struct dtype_sums all = sum_tensors(facts->model, by_dtype);
        uint64_t bytes = header_bytes(facts->model);
        json_u64(json, "header_bytes", facts->llmcp35 != NULL ? bytes + 8 : bytes); /* there the first 8 count too */
        json_u64(json, "tensors", all.tensors);
        json_u64(json, "parameters", all.parameters);
    } else {
        if (facts->kind == PAWL_KIND_TOKEN_SHARD)
            json_u64(json, "header_bytes", 1024);
        else
            json_null(json, "header_bytes");
        json_null(json, "tensors");
        json_null(json, "parameters");
    }
    json_object(json, "dtypes");
    for (size_t i = 1; i <= PAWL_DTYPE_COUNT; i++) {
        if (by_dtype[i].tensors == 0)
            continue;
        json_object(json, pawl_dtype_name((enum pawl_dtype)i));
        json_u64(json, "tensors", by_dtype[i].tensors);
        json_u64(json, "parameters", by_dtype[i].parameters);
        json_u64(json, "bytes", by_dtype[i].bytes);
        pawl_json_end_object(json);
    }
    pawl_json_end_object(json);
    const struct pawl_pair *pairs = is_model ? pawl_model_metadata(facts->model, &n, NULL) : NULL;
    write_pairs(json, "metadata", pairs, n);
}

static void
write_trainer_state(struct pawl_json *json, const struct pawl_ckpt *ckpt)
{
    const struct pawl_trainer_state *state = pawl_ckpt_trainer_state(ckpt);
    if (state == NULL) {
        json_null(json, "trainer_state");
        return;
    }
    json_object(json, "trainer_state");
    json_i64(json, "step", state->step);
    json_i64(json, "tokens_seen", state->tokens_seen);
    json_object(json, "data_cursor");
    json_i64(json, "shard", state->cursor_shard);
    json_i64(json, "offset", state->cursor_offset);
    pawl_json_end_object(json);
    size_t n;
    const struct pawl_pair *rng = pawl_ckpt_rng(ckpt, &n);
    write_pairs(json, "rng", rng, n);
    json_f64(json, "lr", state->lr);
    json_text_z(json, "config_sha256", state->config_sha256);
    json_text_z(json, "git_sha", state->git_sha);
    if (state->has_loss_scale)
        json_f64(json, "loss_scale", state->loss_scale);
    else
        json_null(json, "loss_scale");
    pawl_json_end_object(json);
}

static void
write_checkpoint_details(struct pawl_json *json, const struct facts *facts)
{
    size_t n = 0;
    const struct pawl_verdict *verdicts = facts->report != NULL ? pawl_report_verdicts(facts->report, &n) : NULL;
    json_i64(json, "step", pawl_ckpt_step(facts->ckpt));
    json_bool(json, "complete", pawl_ckpt_is_complete(facts->ckpt));
    json_problems(json, "reasons", n > 0 ? verdicts[0].problems : NULL, n > 0 ? verdicts[0].n_problems : 0);
    write_trainer_state(json, facts->ckpt);
    if (pawl_ckpt_is_complete(facts->ckpt))
        json_text(json, "optimizer", pawl_ckpt_optimizer_name(facts->ckpt));
    else
        json_null(json, "optimizer");
    struct pawl_str state = pawl_ckpt_optimizer_state(facts->ckpt);
    pawl_json_add_key_z(json, "optimizer_state");
    if (state.data != NULL)
        pawl_json_add_raw(json, state);
    else
        pawl_json_add_null(json);
}

static void
write_run_details(struct pawl_json *json, const struct facts *facts)
{
    size_t n = 0;
    const struct pawl_verdict *steps = pawl_report_verdicts(facts->report, &n);
    json_array(json, "steps");
    for (size_t i = 0; i < n; i++)
        pawl_json_add_string_z(json, steps[i].name);
    pawl_json_end_array(json);
    json_text_z(json, "latest", facts->latest[0] != '\0' ? facts->latest : NULL);
    json_text_z(json, "loads", facts->loads[0] != '\0' ? facts->loads : NULL);
}

static void
write_token_details(struct pawl_json *json, const struct facts *facts)
{
    const struct pawl_shard_info *shard = &facts->shard;
    json_text_z(json, "format", shard->format != 0 ? pawl_shard_format_name(shard->format) : NULL);
    if (shard->width != 0)
        json_u64(json, "width", shard->width);
    else
        json_null(json, "width");
    json_u64(json, "ids", shard->ids);
    if (shard->vocabulary != 0)
        json_u64(json, "vocabulary", shard->vocabulary);
    else
        json_null(json, "vocabulary");
    if (facts->documents != UINT64_MAX)
        json_u64(json, "documents", facts->documents);
    else
        json_null(json, "documents");
    json_null(json, "examples");
}

static void
write_document(struct pawl_json *json, const struct facts *facts)
{
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_text_z(json, "path", facts->path);
    json_text_z(json, "kind", pawl_kind_name(facts->kind));
    json_u64(json, "bytes", facts->bytes);
    write_tensors(json, facts);
    json_array(json, "files");
    for (size_t i = 0; i < facts->n_files; i++) {
        pawl_json_add_object(json);
        json_text_z(json, "name", facts->files[i].name);
        json_u64(json, "bytes", facts->files[i].bytes);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
    size_t n = 0;
    const struct pawl_pair *aliases = facts->model != NULL ? pawl_model_aliases(facts->model, &n) : NULL;
    write_pairs(json, "aliases", aliases, n);
    json_object(json, "details");
    if (facts->kind == PAWL_KIND_CHECKPOINT)
        write_checkpoint_details(json, facts);
    else if (facts->kind == PAWL_KIND_RUN)
        write_run_details(json, facts);
    else if (facts->tokens != NULL)
        write_token_details(json, facts);
    else if (facts->llmcp35 != NULL)
        llmcp35_write_details(json, facts->llmcp35);
    pawl_json_end_object(json);
    pawl_json_end_object(json);
}

/* ---- as text ---- */

static void
print_line(const struct output *out, const char *key, const char *value)
{
    text_color(out, "1");
    text_pad(key, 14);
    text_plain(out);
    (void)printf("%s\n", value);
}

static void
print_pairs(const struct output *out, const char *key, const struct pawl_pair *pairs, size_t n, const char *between)
{
    for (size_t i = 0; i < n; i++) {
        char *name = text_name(pairs[i].key), *value = text_name(pairs[i].value);
        text_color(out, "1");
        text_pad(i == 0 ? key : "", 14);
        text_plain(out);
        (void)printf("%s%s%s\n", name, between, value);
        free(name);
        free(value);
    }
}

static void
print_model(const struct output *out, const struct pawl_model *model)
{
    struct dtype_sums by_dtype[PAWL_DTYPE_COUNT + 1] = { { 0, 0, 0 } };
    struct dtype_sums all = sum_tensors(model, by_dtype);
    char text[256], counts[3][32];
    (void)snprintf(text, sizeof text, "%s, %s parameter%s", text_count(all.tensors, counts[0]),
                   text_count(all.parameters, counts[1]), all.parameters == 1 ? "" : "s");
    print_line(out, "tensors", text);
    for (size_t i = 1; i <= PAWL_DTYPE_COUNT; i++) {
        if (by_dtype[i].tensors == 0)
            continue;
        (void)snprintf(text, sizeof text, "%s tensor%s, %s parameter%s, %s", text_count(by_dtype[i].tensors, counts[0]),
                       by_dtype[i].tensors == 1 ? "" : "s", text_count(by_dtype[i].parameters, counts[1]),
                       by_dtype[i].parameters == 1 ? "" : "s", text_size(by_dtype[i].bytes, counts[2]));
        char key[32];
        (void)snprintf(key, sizeof key, "  %s", pawl_dtype_name((enum pawl_dtype)i));
        print_line(out, key, text);
    }
    size_t n;
    const struct pawl_pair *pairs = pawl_model_metadata(model, &n, NULL);
    print_pairs(out, "metadata", pairs, n, " = ");
    pairs = pawl_model_aliases(model, &n);
    print_pairs(out, "aliases", pairs, n, " -> ");
}

static void
print_checkpoint(const struct output *out, const struct facts *facts)
{
    char text[256];
    const struct pawl_trainer_state *state = pawl_ckpt_trainer_state(facts->ckpt);
    bool is_complete = pawl_ckpt_is_complete(facts->ckpt);
    print_line(out, "complete", is_complete ? "yes" : "NO");
    size_t n = 0;
    const struct pawl_verdict *verdicts = facts->report != NULL ? pawl_report_verdicts(facts->report, &n) : NULL;
    if (n > 0)
        text_problems(out, verdicts[0].problems, verdicts[0].n_problems, "problem");
    if (state != NULL) {
        char lr[32];
        for (int digits = 1; digits <= 17; digits++) { /* the shortest that reads back to the same number */
            (void)snprintf(lr, sizeof lr, "%.*g", digits, state->lr);
            if (strtod(lr, NULL) == state->lr)
                break;
        }
        (void)snprintf(text, sizeof text, "%" PRId64 ", %" PRId64 " tokens seen, lr %s", state->step,
                       state->tokens_seen, lr);
        print_line(out, "step", text);
        (void)snprintf(text, sizeof text, "shard %" PRId64 ", offset %" PRId64, state->cursor_shard,
                       state->cursor_offset);
        print_line(out, "cursor", text);
    }
    if (is_complete) {
        char *name = text_name(pawl_ckpt_optimizer_name(facts->ckpt));
        print_line(out, "optimizer", name);
        free(name);
    }
    struct pawl_str optimizer = pawl_ckpt_optimizer_state(facts->ckpt);
    if (optimizer.data != NULL) {
        char *shown = text_name(optimizer);
        print_line(out, "", shown);
        free(shown);
    }
}

static void
print_run(const struct output *out, const struct facts *facts)
{
    char text[256];
    size_t n;
    const struct pawl_verdict *steps = pawl_report_verdicts(facts->report, &n);
    if (n == 0)
        (void)snprintf(text, sizeof text, "none");
    else
        (void)snprintf(text, sizeof text, "%zu, %s ... %s", n, steps[0].name, steps[n - 1].name);
    print_line(out, "steps", text);
    print_line(out, "LATEST", facts->latest[0] != '\0' ? facts->latest : "none");
    print_line(out, "loads", facts->loads[0] != '\0' ? facts->loads : "nothing");
}

static void
print_tokens(const struct output *out, const struct facts *facts)
{
    char text[128], count[32];
    const struct pawl_shard_info *shard = &facts->shard;
    print_line(out, "format", shard->format != 0 ? pawl_shard_format_name(shard->format) : "several");
    (void)snprintf(text, sizeof text, "%s of %u bytes", text_count(shard->ids, count), shard->width);
    print_line(out, "ids", text);
    print_line(out, "vocabulary", shard->vocabulary != 0 ? text_count(shard->vocabulary, count) : "not stated");
    if (facts->documents != UINT64_MAX)
        print_line(out, "documents", text_count(facts->documents, count));
}

static void
print_facts(const struct output *out, const struct facts *facts, bool exact)
{
    char size[32], text[96];
    print_line(out, "kind", pawl_kind_name(facts->kind));
    print_line(out, "size", exact ? text_count(facts->bytes, size) : text_size(facts->bytes, size));
    if (facts->kind == PAWL_KIND_CHECKPOINT)
        print_checkpoint(out, facts);
    if (facts->kind == PAWL_KIND_RUN)
        print_run(out, facts);
    if (facts->tokens != NULL)
        print_tokens(out, facts);
    if (facts->llmcp35 != NULL)
        llmcp35_print_details(out, facts->llmcp35);
    if (facts->model != NULL)
        print_model(out, facts->model);
    for (size_t i = 0; i < facts->n_files; i++) {
        char *name = text_name_z(facts->files[i].name);
        (void)snprintf(text, sizeof text, "%12s  ",
                       exact ? text_count(facts->files[i].bytes, size) : text_size(facts->files[i].bytes, size));
        text_color(out, "1");
        text_pad(i == 0 ? "files" : "", 14);
        text_plain(out);
        (void)printf("%s%s\n", text, name);
        free(name);
    }
}

static int
run(const struct arguments *arguments, struct output *out, bool wants_tokens)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct facts facts = { .path = arguments->paths.items[0] };
    enum pawl_status st = gather(&facts, arguments, wants_tokens, &err);
    if (st == PAWL_OK) {
        if (out->is_json)
            write_document(out->json, &facts);
        else
            print_facts(out, &facts, arguments->exact_bytes);
        st = output_end(out, &err);
    }
    release_facts(&facts);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, arguments->paths.items[0], &err);
}

int
info_run(const struct arguments *arguments, struct output *out)
{
    return run(arguments, out, false);
}

int
info_tokens_run(const struct arguments *arguments, struct output *out)
{
    return run(arguments, out, true);
}

static const struct option options[] = {
    OPTION_TRUST,
    { "bytes", NULL, NULL, NULL, "exact sizes, no units", OPTION_AT(exact_bytes), OPTION_SWITCH, 0, 0, 0 },
};

const struct verb verb_info = {
    .name = "info",
    .synopsis = "PATH [flags]",
    .summary = "what a file or directory is and holds",
    .description = "PATH is a safetensors file, an index or directory of a sharded model, a checkpoint's step "
                   "directory, a run (a\n"
                   "checkpoint root), a token shard or a directory of them. What it is is decided by its bytes, never "
                   "by its name.\n"
                   "Of a run the tensors are those of the step that a load would choose.\n",
    .examples = "  pawl info model.safetensors\n"
                "  pawl info out/ckpt/step-000100 --json\n"
                "  pawl info out/ckpt\n",
    .table = TABLE(options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "PATH",
    .run = info_run,
};
