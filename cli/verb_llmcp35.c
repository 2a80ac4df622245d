/* pawl llmcp35: the single file by its own name: what is in it, whether it is right, one update replayed, and safetensors. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/verb_llmcp35.h"
#include "cli/verbs.h"
#include "trainer/llmcp35_replay.h"

/* ---- what a file holds ---- */

static const char *const caller_s[] = {
    "the corpus and its split",       "the batch order and its cursor",     "the training generator",
    "the schedule and the next rate", "the clipping and validation policy", "the gradients"
};

static void
json_hex(struct pawl_json *json, const char *key, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "0x%016" PRIx64, value);
    json_text_z(json, key, text);
}

static uint64_t
bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void
json_label(struct pawl_json *json, const char *key, uint64_t hash)
{
    char text[32];
    (void)snprintf(text, sizeof text, "fnv1a64:%016" PRIx64, hash);
    json_text_z(json, key, text);
}

static void
json_names(struct pawl_json *json, const char *key, const struct pawl_str *names, size_t n)
{
    json_array(json, key);
    for (size_t i = 0; i < n; i++)
        pawl_json_add_string(json, names[i]);
    pawl_json_end_array(json);
}

static const char *
kind_of_tokenizer(const struct pawl_llmcp35_tokenizer *tokenizer)
{
    return pawl_llmcp35_tokenizer_kind(tokenizer) == PAWL_LLMCP35_LITERAL ? "literal" : "byte-bpe";
}

void
llmcp35_write_details(struct pawl_json *json, const struct pawl_llmcp35 *checkpoint)
{
    struct pawl_llmcp35_facts facts;
    size_t n_merges;
    pawl_llmcp35_facts(checkpoint, &facts);
    (void)pawl_llmcp35_tokenizer_merges(facts.tokenizer, &n_merges);
    json_u64(json, "version", 1);
    json_label(json, "checksum", facts.checksum);
    json_u64(json, "step", facts.step);
    json_object(json, "tokenizer");
    json_text_z(json, "kind", kind_of_tokenizer(facts.tokenizer));
    json_u64(json, "vocabulary", pawl_llmcp35_tokenizer_vocabulary(facts.tokenizer));
    json_u64(json, "merges", n_merges);
    pawl_json_end_object(json);
    json_object(json, "decoder");
    json_u64(json, "vocabulary", facts.config.vocabulary);
    json_u64(json, "width", facts.config.width);
    json_u64(json, "heads", facts.config.heads);
    json_u64(json, "ffn_width", facts.config.feed_forward);
    json_u64(json, "layers", facts.config.layers);
    json_u64(json, "positions", facts.config.positions);
    json_f64(json, "rope_base", facts.config.rope_base);
    json_f64(json, "rms_epsilon", facts.config.rms_epsilon);
    json_u64(json, "parameters", facts.values);
    pawl_json_end_object(json);
    json_object(json, "adamw");
    json_f64(json, "learning_rate", facts.adamw.learning_rate);
    json_f64(json, "beta1", facts.adamw.beta1);
    json_f64(json, "beta2", facts.adamw.beta2);
    json_f64(json, "epsilon", facts.adamw.epsilon);
    json_f64(json, "weight_decay", facts.adamw.weight_decay);
    json_f64(json, "beta1_power", facts.beta1_power);
    json_f64(json, "beta2_power", facts.beta2_power);
    if (facts.adamw.has_groups != 0) {
        json_object(json, "groups");
        json_names(json, "decay", facts.adamw.decay, facts.adamw.n_decay);
        json_names(json, "no_decay", facts.adamw.no_decay, facts.adamw.n_no_decay);
        pawl_json_end_object(json);
    } else {
        json_null(json, "groups");
    }
    pawl_json_end_object(json);
    json_object(json, "sampling_rng");
    json_text_z(json, "algorithm", "splitmix64");
    json_hex(json, "state", facts.rng_state);
    pawl_json_end_object(json);
    json_array(json, "not_stored");
    for (size_t i = 0; i < sizeof caller_s / sizeof caller_s[0]; i++)
        pawl_json_add_string_z(json, caller_s[i]);
    pawl_json_end_array(json);
}

static void
print_line(const struct output *out, const char *key, const char *value)
{
    text_color(out, "1");
    text_pad(key, 14);
    text_plain(out);
    (void)printf("%s\n", value);
}

void
llmcp35_print_details(const struct output *out, const struct pawl_llmcp35 *checkpoint)
{
    struct pawl_llmcp35_facts facts;
    char text[256], counts[3][32];
    size_t n_merges;
    pawl_llmcp35_facts(checkpoint, &facts);
    (void)pawl_llmcp35_tokenizer_merges(facts.tokenizer, &n_merges);
    (void)snprintf(text, sizeof text, "version 1, fnv1a64:%016" PRIx64, facts.checksum);
    print_line(out, "file", text);
    print_line(out, "step", text_count(facts.step, counts[0]));
    (void)snprintf(text, sizeof text, "%s, %s tokens", kind_of_tokenizer(facts.tokenizer),
                   text_count(pawl_llmcp35_tokenizer_vocabulary(facts.tokenizer), counts[0]));
    print_line(out, "tokenizer", text);
    (void)snprintf(text, sizeof text, "%s layer%s of width %s, %s head%s, feed-forward %" PRIu64 ", positions %" PRIu64,
                   text_count(facts.config.layers, counts[0]), facts.config.layers == 1 ? "" : "s",
                   text_count(facts.config.width, counts[1]), text_count(facts.config.heads, counts[2]),
                   facts.config.heads == 1 ? "" : "s", facts.config.feed_forward, facts.config.positions);
    print_line(out, "decoder", text);
    (void)snprintf(text, sizeof text, "rate %g, betas %g and %g, epsilon %g, weight decay %g%s",
                   facts.adamw.learning_rate, facts.adamw.beta1, facts.adamw.beta2, facts.adamw.epsilon,
                   facts.adamw.weight_decay, facts.adamw.has_groups != 0 ? ", in groups" : "");
    print_line(out, "adamw", text);
    (void)snprintf(text, sizeof text, "SplitMix64, state 0x%016" PRIx64, facts.rng_state);
    print_line(out, "sampling", text);
    for (size_t i = 0; i < sizeof caller_s / sizeof caller_s[0]; i++)
        print_line(out, i == 0 ? "not stored" : "", caller_s[i]);
}

/* ---- info and verify: as those verbs, once the file is known to be one ---- */

static enum pawl_status
check_file(const char *path, struct pawl_error *err)
{
    struct pawl_llmcp35 *checkpoint = NULL;
    enum pawl_status st = pawl_llmcp35_load_z(path, &checkpoint, NULL, err);
    pawl_llmcp35_free(checkpoint);
    return st;
}

static int
info(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *path = arguments->paths.items[0];
    return check_file(path, &err) == PAWL_OK ? info_run(arguments, out) : output_error(out, path, &err);
}

/* ---- replay ---- */

static enum pawl_status
parse_ids(const char *text, const char *flag, uint64_t **ret_ids, size_t *ret_n, struct pawl_error *err)
{
    if (text == NULL)
        return fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s is missing: ids with commas between them", flag);
    return options_parse_ids(text, flag, UINT64_MAX, ret_ids, ret_n, err);
}

static void
print_tensor(void *context, const char *label, const double *values, size_t n)
{
    (void)context;
    (void)printf("%s\t", label);
    for (size_t i = 0; i < n; i++)
        (void)printf("%s%016" PRIx64, i == 0 ? "" : " ", bits_of(values[i]));
    (void)printf("\n");
}

static void
write_tensor(void *context, const char *label, const double *values, size_t n)
{
    struct pawl_json *json = context;
    pawl_json_add_key_z(json, label);
    pawl_json_add_array(json);
    for (size_t i = 0; i < n; i++) {
        char text[24];
        (void)snprintf(text, sizeof text, "%016" PRIx64, bits_of(values[i]));
        pawl_json_add_string_z(json, text);
    }
    pawl_json_end_array(json);
}

static void
write_replay(struct pawl_json *json, const struct llmcp35_replay *replay)
{
    json_label(json, "logits_before", replay->logits_before);
    json_hex(json, "loss_bits", bits_of(replay->loss));
    json_label(json, "gradients", replay->gradients);
    json_label(json, "parameters_after", replay->parameters_after);
    json_label(json, "moments_after", replay->moments_after);
    json_hex(json, "beta1_power_bits", bits_of(replay->beta1_power));
    json_hex(json, "beta2_power_bits", bits_of(replay->beta2_power));
    json_u64(json, "step_after", replay->step_after);
    json_label(json, "logits_after", replay->logits_after);
    json_hex(json, "next_sampling_draw", replay->next_sampling_draw);
}

static void
print_replay(const struct llmcp35_replay *replay)
{
    const struct {
        const char *key, *prefix;
        uint64_t value;
    } rows[] = { { "logits_before", "fnv1a64:", replay->logits_before },
                 { "loss_bits", "0x", bits_of(replay->loss) },
                 { "gradients", "fnv1a64:", replay->gradients },
                 { "parameters_after", "fnv1a64:", replay->parameters_after },
                 { "moments_after", "fnv1a64:", replay->moments_after },
                 { "beta1_power_bits", "0x", bits_of(replay->beta1_power) },
                 { "beta2_power_bits", "0x", bits_of(replay->beta2_power) },
                 { "step_after", NULL, replay->step_after },
                 { "logits_after", "fnv1a64:", replay->logits_after },
                 { "next_sampling_draw", "0x", replay->next_sampling_draw } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].prefix != NULL)
            (void)printf("%-20s%s%016" PRIx64 "\n", rows[i].key, rows[i].prefix, rows[i].value);
        else
            (void)printf("%-20s%" PRIu64 "\n", rows[i].key, rows[i].value);
    }
}

/* The format's own protocol always replaces: what may not be replaced is looked at before. */
static enum pawl_status
check_target(const struct arguments *arguments, const char *path, struct pawl_error *err)
{
    struct stat found;
    if (arguments->force || lstat(path, &found) != 0)
        return PAWL_OK;
    enum pawl_status st = fault(err, PAWL_EXISTS, "exists", path, "it exists and is not to be replaced");
    fault_hint(err, "--force replaces it");
    return st;
}

static enum pawl_status
write_stdout(const struct pawl_llmcp35 *checkpoint, struct pawl_error *err)
{
    struct pawl_llmcp35_facts facts;
    pawl_llmcp35_facts(checkpoint, &facts);
    size_t n = (size_t)(facts.header_bytes + facts.payload_bytes);
    unsigned char *bytes = malloc(n);
    enum pawl_status st = bytes == NULL ? fault_memory(err, n) : pawl_llmcp35_encode(checkpoint, bytes, n, err);
    if (st == PAWL_OK && fwrite(bytes, 1, n, stdout) != n)
        st = fault(err, PAWL_IO, "io", "-", "not everything could be written");
    free(bytes);
    return st;
}

/* The checkpoint after the update goes to OUT. */
static enum pawl_status
write_after(const char *path, const struct pawl_llmcp35 *after, struct pawl_error *err)
{
    if (path == NULL)
        return PAWL_OK;
    return strcmp(path, "-") == 0 ? write_stdout(after, err) : pawl_llmcp35_save_z(after, path, NULL, err);
}

static enum pawl_status
write_document(struct pawl_json *json, const struct llmcp35_replay *replay, struct pawl_json *tensors,
               struct pawl_error *err)
{
    struct pawl_str text;
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    write_replay(json, replay);
    if (tensors != NULL) {
        pawl_json_end_object(tensors);
        enum pawl_status st = pawl_json_text(tensors, &text, err);
        if (st != PAWL_OK)
            return st;
        pawl_json_add_key_z(json, "trace");
        pawl_json_add_raw(json, text);
    }
    pawl_json_end_object(json);
    return PAWL_OK;
}

static enum pawl_status
replay_file(const struct arguments *a, struct output *out, struct pawl_error *err)
{
    struct pawl_llmcp35 *checkpoint = NULL, *after = NULL;
    struct llmcp35_replay replay;
    uint64_t *inputs = NULL, *targets = NULL;
    size_t n = 0, n_targets = 0;
    bool to_stdout = a->out != NULL && strcmp(a->out, "-") == 0;
    struct pawl_json *tensors = NULL; /* the trace as JSON: the last member, and known before the others */
    enum pawl_status st = parse_ids(a->inputs, "inputs", &inputs, &n, err);
    if (st == PAWL_OK)
        st = parse_ids(a->targets, "targets", &targets, &n_targets, err);
    if (st == PAWL_OK && n != n_targets)
        st =
            fault(err, PAWL_ARGUMENT, "usage", NULL, "%zu inputs and %zu targets: there must be as many", n, n_targets);
    if (st == PAWL_OK && !options_given(a, "rate"))
        st = fault(err, PAWL_ARGUMENT, "usage", NULL, "--rate is missing: the rate of this step");
    if (st == PAWL_OK && to_stdout && (out->is_json || a->trace))
        st = fault(err, PAWL_ARGUMENT, "usage", NULL, "--out - and %s both want stdout",
                   out->is_json ? "--json" : "--trace");
    if (st == PAWL_OK && a->out != NULL && !to_stdout)
        st = check_target(a, a->out, err);
    if (st == PAWL_OK)
        st = pawl_llmcp35_load_z(a->paths.items[0], &checkpoint, NULL, err);
    if (st == PAWL_OK && out->is_json && a->trace) {
        st = pawl_json_new(PAWL_JSON_SPACED, PAWL_JSON_RAW, &tensors, err);
        if (st == PAWL_OK)
            pawl_json_add_object(tensors);
    }
    if (st == PAWL_OK) {
        const struct llmcp35_batch batch = { inputs, targets, n, (size_t)a->batch };
        const struct llmcp35_trace trace = { out->is_json ? write_tensor : print_tensor, tensors };
        st = llmcp35_replay(checkpoint, &batch, a->rate, a->trace ? &trace : NULL, &replay, &after, err);
    }
    if (st == PAWL_OK)
        st = write_after(a->out, after, err);
    if (st == PAWL_OK && out->is_json)
        st = write_document(out->json, &replay, tensors, err);
    else if (st == PAWL_OK && !a->trace && !to_stdout)
        print_replay(&replay);
    pawl_json_free(tensors);
    free(inputs);
    free(targets);
    pawl_llmcp35_free(checkpoint);
    pawl_llmcp35_free(after);
    return st;
}

static int
replay(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = replay_file(arguments, out, &err);
    if (st == PAWL_OK)
        st = output_end(out, &err);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, st == PAWL_ARGUMENT ? NULL : arguments->paths.items[0], &err);
}

static void
set_replay_defaults(struct arguments *arguments)
{
    arguments->batch = 1;
}

/* ---- convert ---- */

static enum pawl_status
convert_file(const struct arguments *a, const char **ret_to, uint64_t *ret_tensors, struct pawl_error *err)
{
    const char *in = a->paths.items[0], *target = a->paths.items[1];
    struct pawl_llmcp35 *checkpoint = NULL;
    enum pawl_kind kind;
    size_t n = 0;
    enum pawl_status st = pawl_kind_of(pawl_str_z(in), &kind, err);
    if (st == PAWL_OK && kind != PAWL_KIND_LLMCP35 && kind != PAWL_KIND_SAFETENSORS)
        st = fault(err, PAWL_CORRUPT, "unknown-format", in, "a %s is neither an LLMCP35 file nor one of safetensors",
                   pawl_kind_name(kind));
    if (st == PAWL_OK)
        st = check_target(a, target, err);
    if (st != PAWL_OK)
        return st;
    bool to_safetensors = kind == PAWL_KIND_LLMCP35;
    st = to_safetensors ? pawl_llmcp35_load_z(in, &checkpoint, NULL, err)
                        : pawl_llmcp35_import_safetensors(pawl_str_z(in), &checkpoint, NULL, err);
    if (st == PAWL_OK) {
        (void)pawl_llmcp35_records(checkpoint, &n);
        st = to_safetensors ? pawl_llmcp35_export_safetensors(checkpoint, pawl_str_z(target), a->force, err)
                            : pawl_llmcp35_save_z(checkpoint, target, NULL, err);
    }
    pawl_llmcp35_free(checkpoint);
    *ret_to = pawl_kind_name(to_safetensors ? PAWL_KIND_SAFETENSORS : PAWL_KIND_LLMCP35);
    *ret_tensors = n;
    return st;
}

static int
convert(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *to = NULL;
    uint64_t n = 0;
    char count[32];
    enum pawl_status st = convert_file(arguments, &to, &n, &err);
    if (st == PAWL_OK && out->is_json) {
        pawl_json_add_object(out->json);
        json_bool(out->json, "ok", true);
        json_text_z(out->json, "in", arguments->paths.items[0]);
        json_text_z(out->json, "out", arguments->paths.items[1]);
        json_text_z(out->json, "to", to);
        json_u64(out->json, "tensors", n);
        pawl_json_end_object(out->json);
    } else if (st == PAWL_OK) {
        talk_line(&out->talk, "%s tensors, written as %s", text_count(n, count), to);
    }
    if (st == PAWL_OK)
        st = output_end(out, &err);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, arguments->paths.items[0], &err);
}

/* ---- the verbs ---- */

static const struct option info_options[] = {
    { "bytes", NULL, NULL, NULL, "exact sizes, no units", OPTION_AT(exact_bytes), OPTION_SWITCH, 0, 0, 0 },
};

const struct verb verb_llmcp35_info = {
    .name = "llmcp35 info",
    .synopsis = "FILE [flags]",
    .summary = "what an LLMCP35 file holds, and what it does not",
    .description =
        "As pawl info, of a file that is taken for LLMCP35 whatever its bytes say: its first fault is told.\n",
    .examples = "  pawl llmcp35 info run.llmcp35\n",
    .table = TABLE(info_options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "FILE",
    .run = info,
};

static const struct option verify_options[] = {
    { "finite", NULL, NULL, NULL, "every NaN or infinity is a problem (no such file is taken anyway)",
      OPTION_AT(finite), OPTION_SWITCH, 0, 0, 0 },
};

const struct verb verb_llmcp35_verify = {
    .name = "llmcp35 verify",
    .synopsis = "FILE... [flags]",
    .summary = "is an LLMCP35 file exactly right?",
    .description =
        "As pawl verify, of files that are taken for LLMCP35 whatever their bytes say. Every rule of the format "
        "is checked, in\nits order: the problem is the first that fails, category and cause.\n",
    .examples = "  pawl llmcp35 verify run.llmcp35 --json\n",
    .table = TABLE(verify_options),
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .path_name = "FILE",
    .run = verify_llmcp35_run,
};

static const struct option replay_options[] = {
    { "inputs", NULL, "A,B,...", NULL, "ids, sequence by sequence", OPTION_AT(inputs), OPTION_TEXT, 0, 0, 0 },
    { "targets", NULL, "A,B,...", NULL, "the id that follows each", OPTION_AT(targets), OPTION_TEXT, 0, 0, 0 },
    { "batch", NULL, "N", NULL, "sequences among the ids (default 1)", OPTION_AT(batch), OPTION_U64, 1, UINT64_MAX, 0 },
    { "rate", NULL, "X", NULL, "the learning rate of this step", OPTION_AT(rate), OPTION_REAL, 0, 0, 0 },
    { "out", NULL, "FILE", NULL, "write the checkpoint after the update; - is stdout", OPTION_AT(out), OPTION_TEXT, 0,
      0, 0 },
    { "trace", NULL, NULL, NULL, "every intermediate value as its bits, instead of the results", OPTION_AT(trace),
      OPTION_SWITCH, 0, 0, 0 },
    OPTION_FORCE,
};

const struct verb verb_llmcp35_replay = {
    .name = "llmcp35 replay",
    .synopsis = "FILE --inputs A,B,... --targets A,B,... --rate X [flags]",
    .summary = "one training update, bit for bit",
    .description =
        "Works out logits, loss and gradients of the batch, makes one AdamW update at the rate given, and works "
        "out the logits\nagain. The results are fingerprints and bits, to be held against another "
        "implementation's. FILE is left alone.\n",
    .examples =
        "  pawl llmcp35 replay run.llmcp35 --inputs 0,1 --targets 1,2 --rate 0.006\n"
        "  pawl llmcp35 replay run.llmcp35 --inputs 0,1 --targets 1,2 --rate 0.006 --trace | diff - trace.tsv\n",
    .table = TABLE(replay_options),
    .min_paths = 1,
    .max_paths = 1,
    .path_name = "FILE",
    .set_defaults = set_replay_defaults,
    .run = replay,
};

static const struct option convert_options[] = { OPTION_FORCE };

const struct verb verb_llmcp35_convert = {
    .name = "llmcp35 convert",
    .synopsis = "IN OUT [--force]",
    .summary = "to safetensors and back, without loss",
    .description =
        "The direction is that of IN's bytes. Every record is a tensor; what is no tensor goes into the metadata.\n",
    .examples = "  pawl llmcp35 convert run.llmcp35 run.safetensors\n"
                "  pawl llmcp35 convert run.safetensors again.llmcp35\n",
    .table = TABLE(convert_options),
    .min_paths = 2,
    .max_paths = 2,
    .path_name = "IN OUT",
    .run = convert,
};
