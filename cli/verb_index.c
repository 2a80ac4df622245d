#include <inttypes.h>
#include <stdlib.h>

#include "cli/verbs.h"

static void
write_document(const struct arguments *a, struct pawl_json *json, const struct pawl_indexed *done)
{
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_text_z(json, "path", a->paths.items[0]);
    json_text(json, "index", done->name);
    json_bool(json, "changed", done->is_changed);
    json_u64(json, "tensors", done->tensors);
    json_u64(json, "files", done->files);
    json_u64(json, "total_size", done->total_size);
    if (done->has_total_before)
        json_u64(json, "total_size_before", done->total_size_before);
    else
        json_null(json, "total_size_before");
    json_u64(json, "added", done->added);
    json_u64(json, "removed", done->removed);
    json_u64(json, "moved", done->moved);
    json_array(json, "ignored");
    for (size_t i = 0; i < done->n_ignored; i++)
        pawl_json_add_string(json, done->ignored[i]);
    pawl_json_end_array(json);
    json_bool(json, "dry_run", a->dry_run);
    pawl_json_end_object(json);
}

static void
print_account(const struct arguments *a, const struct pawl_indexed *done)
{
    const char *verb = a->dry_run ? "would write" : "wrote";
    char *name = text_name(done->name);
    char texts[2][32];
    if (!done->is_changed)
        (void)printf("%s is right: ", name);
    else
        (void)printf("%s %s: ", verb, name);
    (void)printf("%s tensor%s in %zu file%s, %s bytes\n", text_count(done->tensors, texts[0]),
                 done->tensors == 1 ? "" : "s", done->files, done->files == 1 ? "" : "s",
                 text_count(done->total_size, texts[1]));
    free(name);
    if (!done->is_changed)
        return;
    if (!done->was_there)
        (void)printf("there was no index that can be read\n");
    else if (!done->has_total_before)
        (void)printf("total_size was missing\n");
    else if (done->total_size_before != done->total_size)
        (void)printf("total_size was %" PRIu64 "\n", done->total_size_before);
    if (done->was_there && done->added + done->removed + done->moved != 0)
        (void)printf("tensors: %zu added, %zu removed, %zu in another file\n", done->added, done->removed, done->moved);
}

static int
run(const struct arguments *a, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_index_options options = PAWL_INDEX_OPTIONS(.dry_run = a->dry_run);
    struct pawl_indexed *done = NULL;
    enum pawl_status st = pawl_index_write(pawl_str_z(a->paths.items[0]), &options, &done, &err);
    if (st != PAWL_OK)
        return output_error(out, a->paths.items[0], &err);
    if (out->is_json)
        write_document(a, out->json, done);
    else if (!out->talk.is_quiet)
        print_account(a, done);
    for (size_t i = 0; i < done->n_ignored && !out->is_json; i++) {
        char *name = text_name(done->ignored[i]);
        talk_warning(&out->talk, "'%s' is no shard of it, and is ignored", name);
        free(name);
    }
    st = output_end(out, &err);
    pawl_indexed_free(done);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, a->paths.items[0], &err);
}

static const struct option options[] = { OPTION_DRY_RUN("write nothing; say what would change") };

const struct verb verb_index = {
    .name = "index",
    .synopsis = "DIR [flags]",
    .summary = "make model.safetensors.index.json anew from the shards",
    .description =
        "The shards are the files model-00001-of-0000N.safetensors, or, when none is numbered, all *.safetensors. Each "
        "is "
        "checked;\na shard that is missing, one of another set, and a tensor that stands in two are errors. Says what "
        "changed.\n",
    .examples = "  pawl index model/\n"
                "  pawl index model/ --dry-run --json\n",
    .table = TABLE(options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "DIR",
    .run = run,
};
