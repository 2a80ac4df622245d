#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/live.h"
#include "cli/verbs.h"
#include "trainer/signals.h"

/* ---- pack ---- */

static enum pawl_status
usage(struct pawl_error *err, const char *message)
{
    return fault(err, PAWL_ARGUMENT, "usage", NULL, "%s", message);
}

/* What the ids are, and what a document is. */
static enum pawl_status
set_input(const struct arguments *a, struct pawl_pack_options *options, struct pawl_error *err)
{
    if ((a->tokenizer != NULL) + (a->ids != 0) + (a->as != NULL) > 1)
        return usage(err, "--tokenizer, --ids and --as exclude each other: ids come from one place");
    if (a->width != 0 && a->width != 16 && a->width != 32)
        return usage(err, "--width: expected 16 or 32");
    options->input = a->ids ? PAWL_PACK_IDS : a->as != NULL ? PAWL_PACK_SHARDS : PAWL_PACK_BYTES;
    if (options->input == PAWL_PACK_BYTES && (a->tokenizer_id != NULL || a->tokenizer_file != NULL))
        return usage(err, "--tokenizer-id and --tokenizer-file are for ids given from outside (--ids, --as)");
    const char *documents = a->documents != NULL ? a->documents : "file";
    if (options->input == PAWL_PACK_SHARDS && a->documents != NULL)
        return usage(err, "--documents is for bytes and --ids: token files bring their own documents");
    if (strcmp(documents, "file") == 0) {
        options->documents = PAWL_PACK_FILE;
    } else if (strcmp(documents, "line") == 0) {
        options->documents = PAWL_PACK_LINE;
    } else if (strncmp(documents, "jsonl:", 6) == 0 && documents[6] != '\0') {
        options->documents = PAWL_PACK_JSONL;
        options->field = pawl_str_z(documents + 6);
    } else {
        return usage(err, "--documents: expected file, line or jsonl:FIELD");
    }
    return PAWL_OK;
}

static void
set_writer(const struct arguments *a, struct pawl_token_writer_options *writer)
{
    *writer = PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = a->vocab, .max_ids = a->max_ids, .replace = a->force,
                                        .width = (uint8_t)(a->width / 8), .prefix = pawl_str_z(a->prefix),
                                        .tokenizer_id = pawl_str_z(a->tokenizer_id), .dataset = pawl_str_z(a->dataset),
                                        .version = pawl_str_z(a->dataset_version));
    if (options_given(a, "eot")) {
        writer->separator = a->eot;
        writer->has_separator = 1;
    }
}

/* {"ok", "out", "ids", "documents", "files": [as in _MANIFEST.json]} */
static void
write_packed(struct pawl_json *json, const char *directory, const struct pawl_token_file *files, size_t n)
{
    uint64_t ids = 0, documents = 0;
    for (size_t i = 0; i < n; i++) {
        ids += files[i].ids;
        documents += files[i].documents;
    }
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_text_z(json, "out", directory);
    json_u64(json, "ids", ids);
    json_u64(json, "documents", documents);
    json_array(json, "files");
    for (size_t i = 0; i < n; i++) {
        char sha256[65];
        pawl_sha256_print(files[i].sha256, sha256);
        pawl_json_add_object(json);
        json_text(json, "name", files[i].name);
        json_text(json, "split", files[i].split);
        json_u64(json, "n_tokens", files[i].ids);
        json_u64(json, "n_docs", files[i].documents);
        json_text_z(json, "sha256", sha256);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
    pawl_json_end_object(json);
}

static void
print_packed(const struct pawl_token_file *files, size_t n)
{
    uint64_t ids = 0, documents = 0;
    char counts[2][32];
    for (size_t i = 0; i < n; i++) {
        char *name = text_name(files[i].name);
        (void)printf("%s  %s id%s, %s document%s\n", name, text_count(files[i].ids, counts[0]),
                     files[i].ids == 1 ? "" : "s", text_count(files[i].documents, counts[1]),
                     files[i].documents == 1 ? "" : "s");
        free(name);
        ids += files[i].ids;
        documents += files[i].documents;
    }
    (void)printf("%zu file%s, %s id%s, %s document%s\n", n, n == 1 ? "" : "s", text_count(ids, counts[0]),
                 ids == 1 ? "" : "s", text_count(documents, counts[1]), documents == 1 ? "" : "s");
}

static enum pawl_status
pack(const struct arguments *a, struct output *out, struct pawl_error *err)
{
    struct live progress = live_begin(out, "packed");
    struct pawl_pack_options options = PAWL_PACK_OPTIONS(.tokenizer_file = pawl_str_z(a->tokenizer_file),
                                                         .corpus_manifest = pawl_str_z(a->corpus_manifest),
                                                         .progress = live_progress, .progress_context = &progress);
    set_writer(a, &options.writer);
    enum pawl_status st = set_input(a, &options, err);
    if (st != PAWL_OK)
        return st;
    size_t n = a->paths.n - 1;
    struct pawl_str *files = calloc(n, sizeof *files);
    if (files == NULL)
        return fault_memory(err, n * sizeof *files);
    for (size_t i = 0; i < n; i++)
        files[i] = pawl_str_z(a->paths.items[i + 1]);
    struct pawl_packed *packed = NULL;
    signals_catch();
    st = pawl_pack(pawl_str_z(a->paths.items[0]), files, n, &options, &packed, err);
    signals_restore();
    free(files);
    if (st != PAWL_OK)
        return st;
    talk_live_end(&out->talk);
    size_t n_files;
    const struct pawl_token_file *written = pawl_packed_files(packed, &n_files);
    if (out->is_json)
        write_packed(out->json, a->paths.items[0], written, n_files);
    else if (!out->talk.is_quiet)
        print_packed(written, n_files);
    pawl_packed_free(packed);
    return output_end(out, err);
}

static int
run_pack(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pack(arguments, out, &err);
    if (st == PAWL_EXISTS && err.hint[0] == '\0')
        fault_hint(&err, "--force replaces the set that is there");
    return st == PAWL_OK ? EXIT_FINE : output_error(out, NULL, &err);
}

static const struct option pack_options[] = {
    { "tokenizer", NULL, "NAME", "bytes", "ids are the bytes of the documents (default)", OPTION_AT(tokenizer),
      OPTION_CHOICE, 0, 0, 0 },
    { "ids", NULL, NULL, NULL, "ids are decimal numbers in the text", OPTION_AT(ids), OPTION_SWITCH, 0, 0, 0 },
    { "as", NULL, "FORMAT", "auto", "ids are those of token files, known by their bytes", OPTION_AT(as), OPTION_CHOICE,
      0, 0, 0 },
    { "documents", NULL, "WHAT", NULL, "file (default), line, or jsonl:FIELD of JSON Lines", OPTION_AT(documents),
      OPTION_TEXT, 0, 0, 0 },
    { "eot", NULL, "ID", NULL, "this id stands before each document", OPTION_AT(eot), OPTION_U64, 0, UINT32_MAX, 0 },
    { "vocab", NULL, "N", NULL, "the vocabulary; an id beyond it is refused", OPTION_AT(vocab), OPTION_U64, 1,
      UINT64_C(1) << 32, 0 },
    { "width", NULL, "BITS", NULL, "16 or 32 (default: 16 for a vocabulary up to 65,536)", OPTION_AT(width), OPTION_U64,
      16, 32, 0 },
    { "max-ids", NULL, "N", NULL, "ids of one file (default 100,000,000)", OPTION_AT(max_ids), OPTION_U64, 1, INT32_MAX,
      0 },
    { "prefix", NULL, "NAME", NULL, "the split, and how its files begin (default train)", OPTION_AT(prefix),
      OPTION_TEXT, 0, 0, 0 },
    { "tokenizer-id", NULL, "ID", NULL, "for the manifest (default unknown)", OPTION_AT(tokenizer_id), OPTION_TEXT, 0,
      0, 0 },
    { "tokenizer-file", NULL, "FILE", NULL, "tokenizer.json, hashed into the manifest", OPTION_AT(tokenizer_file),
      OPTION_TEXT, 0, 0, 0 },
    { "dataset", NULL, "NAME", NULL, "for the manifest (default unnamed)", OPTION_AT(dataset), OPTION_TEXT, 0, 0, 0 },
    { "dataset-version", NULL, "V", NULL, "for the manifest (default 1)", OPTION_AT(dataset_version), OPTION_TEXT, 0, 0,
      0 },
    { "corpus-manifest", NULL, "FILE", NULL, "hashed into the manifest instead of the list of inputs",
      OPTION_AT(corpus_manifest), OPTION_TEXT, 0, 0, 0 },
    OPTION_FORCE,
};

const struct verb verb_tokens_pack = {
    .name = "tokens pack",
    .synopsis = "OUTDIR FILE... [flags]",
    .summary = "make token shards with a manifest",
    .description = "OUTDIR is new, empty, or what an interrupted run left. Documents are kept whole; the same input "
                   "gives the same bytes.\n",
    .examples = "  pawl tokens pack data/tok corpus/*.txt\n"
                "  pawl tokens pack data/eot corpus/*.txt --eot 256\n"
                "  pawl tokens pack data/docs docs.jsonl --documents jsonl:text\n"
                "  pawl tokens pack data/ids ids.txt --ids --documents line --vocab 50257 --tokenizer-id gpt2\n",
    .table = TABLE(pack_options),
    .min_paths = 2,
    .max_paths = SIZE_MAX,
    .path_name = "OUTDIR or FILE",
    .run = run_pack,
};

/* ---- info and verify: those verbs, on token files ---- */

static const struct option info_options[] = {
    OPTION_VOCAB,
    OPTION_SPLIT,
    { "bytes", NULL, NULL, NULL, "exact sizes, no units", OPTION_AT(exact_bytes), OPTION_SWITCH, 0, 0, 0 },
};

const struct verb verb_tokens_info = {
    .name = "tokens info",
    .synopsis = "PATH [flags]",
    .summary = "what a token shard or a directory of them holds",
    .description =
        "As `pawl info`. PATH is a shard, a directory, or a _MANIFEST.json, which stands for its directory.\n",
    .examples = "  pawl tokens info data/tok/train-00001.bin\n"
                "  pawl tokens info data/tok --split train --json\n",
    .table = TABLE(info_options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "PATH",
    .run = info_tokens_run,
};

static const struct option verify_options[] = { OPTION_VOCAB };

const struct verb verb_tokens_verify = {
    .name = "tokens verify",
    .synopsis = "PATH... [flags]",
    .summary = "are token shards what they say? every id is looked at",
    .description = "As `pawl verify`. Exit status 0: all is well; 1: something is not.\n",
    .examples = "  pawl tokens verify data/tok\n"
                "  pawl tokens verify data/tok/*.bin --vocab 256 --json\n",
    .table = TABLE(verify_options),
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .path_name = "PATH",
    .run = verify_tokens_run,
};

/* ---- cat ---- */

#define CAT_IDS 4096

static enum pawl_status
parse_slice(const char *slice, uint64_t n, uint64_t *ret_begin, uint64_t *ret_end, struct pawl_error *err)
{
    *ret_begin = 0;
    *ret_end = n;
    if (slice == NULL)
        return PAWL_OK;
    if (!options_parse_slice(slice, n, ret_begin, ret_end)) {
        char *shown = text_name_z(slice);
        enum pawl_status st =
            fault(err, PAWL_ARGUMENT, "usage", NULL, "expected a slice such as 10:20, found '%s'", shown);
        free(shown);
        return st;
    }
    if (*ret_begin == *ret_end && strchr(slice, ':') == NULL)
        return fault(err, PAWL_ARGUMENT, "argument", NULL, "id %s of %" PRIu64, slice, n);
    return PAWL_OK;
}

static enum pawl_status
print_ids(struct output *out, const uint32_t *ids, size_t n, bool as_bytes, uint64_t position, struct pawl_error *err)
{
    char text[CAT_IDS * 11];
    size_t used = 0;
    if (out->is_json) {
        for (size_t i = 0; i < n; i++)
            pawl_json_add_u64(out->json, ids[i]);
        return PAWL_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (!as_bytes) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%" PRIu32 "\n", ids[i]);
        } else if (ids[i] < 256) {
            text[used++] = (char)ids[i];
        } else {
            (void)fwrite(text, 1, used, stdout);
            return fault(err, PAWL_OUT_OF_RANGE, "out-of-range", NULL, "id %" PRIu32 " at %" PRIu64 " is no byte",
                         ids[i], position + i);
        }
    }
    (void)fwrite(text, 1, used, stdout);
    return PAWL_OK;
}

/* Print [begin, end) of one shard. */
static enum pawl_status
cat_shard(struct output *out, const struct pawl_shard *shard, uint64_t begin, uint64_t end, bool as_bytes,
          uint64_t position, struct pawl_error *err)
{
    uint32_t ids[CAT_IDS];
    enum pawl_status st = PAWL_OK;
    while (begin < end && st == PAWL_OK && !ferror(stdout)) {
        size_t n = end - begin < CAT_IDS ? (size_t)(end - begin) : CAT_IDS;
        st = pawl_shard_read(shard, begin, n, ids, err);
        if (st == PAWL_OK)
            st = print_ids(out, ids, n, as_bytes, position, err);
        begin += n;
        position += n;
    }
    return st;
}

static enum pawl_status
cat(const struct arguments *a, struct output *out, struct pawl_error *err)
{
    struct pawl_str path = pawl_str_z(a->paths.items[0]);
    struct pawl_token_files *files = NULL;
    struct pawl_shard **shards = NULL;
    size_t n = 0, opened = 0;
    uint64_t total = 0, begin = 0, end = 0;
    if (out->is_json && a->as_bytes)
        return usage(err, "--bytes and --json exclude each other");
    enum pawl_status st = pawl_token_files_open(&path, 1, pawl_str_z(a->split), &files, err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_str *paths = pawl_token_files_paths(files, &n);
    shards = calloc(n + 1, sizeof *shards);
    if (shards == NULL)
        st = fault_memory(err, (n + 1) * sizeof *shards);
    /* Some ids of a large set: constant cost, so no scan. */
    struct pawl_shard_options options = PAWL_SHARD_OPTIONS(.trust_ids = 1);
    for (; opened < n && st == PAWL_OK; opened++) {
        st = pawl_shard_open(paths[opened], &options, &shards[opened], err);
        if (st != PAWL_OK)
            break;
        total += pawl_shard_info(shards[opened]).ids;
    }
    if (st == PAWL_OK)
        st = parse_slice(a->paths.n > 1 ? a->paths.items[1] : NULL, total, &begin, &end, err);
    uint64_t before = 0;
    if (out->is_json) {
        pawl_json_add_object(out->json);
        json_bool(out->json, "ok", true);
        json_text_z(out->json, "path", a->paths.items[0]);
        json_array(out->json, "ids");
    }
    for (size_t i = 0; i < opened && st == PAWL_OK; i++) {
        uint64_t ids = pawl_shard_info(shards[i]).ids, from = begin > before ? begin - before : 0;
        uint64_t to = end > before ? end - before : 0;
        to = to < ids ? to : ids;
        if (from < to)
            st = cat_shard(out, shards[i], from, to, a->as_bytes, before + from, err);
        before += ids;
    }
    for (size_t i = 0; i < opened; i++)
        pawl_shard_close(shards[i]);
    free(shards);
    pawl_token_files_close(files);
    if (out->is_json) {
        pawl_json_end_array(out->json);
        pawl_json_end_object(out->json);
    }
    return st == PAWL_OK ? output_end(out, err) : st;
}

static int
run_cat(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = cat(arguments, out, &err);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, arguments->paths.items[0], &err);
}

static const struct option cat_options[] = {
    { "bytes", NULL, NULL, NULL, "as bytes, not as numbers; an id beyond 255 is an error", OPTION_AT(as_bytes),
      OPTION_SWITCH, 0, 0, 0 },
    OPTION_SPLIT,
};

const struct verb verb_tokens_cat = {
    .name = "tokens cat",
    .synopsis = "PATH [SLICE] [flags]",
    .summary = "the ids of a shard or a set, one a line",
    .description =
        "SLICE is 10:20, :20, 10:, -5: (from the end), or one position. The files of a directory follow each other.\n",
    .examples = "  pawl tokens cat data/tok 0:16\n"
                "  pawl tokens cat data/tok/train-00001.bin -100: --bytes\n",
    .table = TABLE(cat_options),
    .min_paths = 1,
    .max_paths = 2,
    .path_name = "PATH",
    .run = run_cat,
};
