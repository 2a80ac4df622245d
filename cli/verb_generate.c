#include <string.h>

#include "cli/verbs.h"
#include "trainer/sample.h"

static int
run(const struct arguments *a, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = PAWL_OK;
    if (a->model == NULL)
        st = fault(&err, PAWL_ARGUMENT, "usage", NULL, "--model is missing: the model's directory");
    else if (a->prompt == NULL)
        st = fault(&err, PAWL_ARGUMENT, "usage", NULL, "--prompt is missing: the text to go on from");
    else if (a->greedy && options_given(a, "temperature"))
        st = fault(&err, PAWL_ARGUMENT, "usage", NULL, "--greedy and --temperature exclude each other");
    if (st == PAWL_OK) {
        struct sample_options options = { .model = a->model,
                                          .prompt = pawl_str_z(a->prompt),
                                          .max_tokens = a->max_tokens,
                                          .greedy = a->greedy,
                                          .temperature = a->temperature,
                                          .seed = a->seed };
        st = sample_generate(&options, out->json, &err);
    }
    if (st == PAWL_OK) {
        out->is_json = true; /* the answer is a document, asked for or not */
        st = output_end(out, &err);
    }
    return st == PAWL_OK ? EXIT_FINE : output_error(out, st == PAWL_ARGUMENT ? NULL : a->model, &err);
}

static void
set_defaults(struct arguments *arguments)
{
    arguments->temperature = 1.0;
    arguments->max_tokens = 64;
}

static const struct option options[] = {
    { "model", NULL, "DIR", NULL, "a model directory, a checkpoint step or a run", OPTION_AT(model), OPTION_TEXT, 0, 0,
      0 },
    { "prompt", NULL, "TEXT", NULL, "the text to go on from", OPTION_AT(prompt), OPTION_TEXT, 0, 0, 0 },
    { "max-tokens", NULL, "N", NULL, "ids to make (default 64)", OPTION_AT(max_tokens), OPTION_U64, 0, 0, 0 },
    { "greedy", NULL, NULL, NULL, "always the likeliest id", OPTION_AT(greedy), OPTION_SWITCH, 0, 0, 0 },
    { "temperature", NULL, "X", NULL, "logits are divided by it (default 1)", OPTION_AT(temperature), OPTION_REAL, 0, 0,
      0 },
    { "seed", NULL, "S", NULL, "of the draws (default 0)", OPTION_AT(seed), OPTION_U64, 0, 0, 0 },
};

const struct verb verb_generate = {
    .name = "generate",
    .synopsis = "--model DIR --prompt TEXT [flags]",
    .summary = "let a bigram go on from a text",
    .description = "Prints {\"ids\", \"text\"}: what follows the prompt. The same seed gives the same text.\n",
    .examples = "  pawl generate --model model --prompt 'Once ' --max-tokens 100 --seed 7\n"
                "  pawl generate --model run/ckpt --prompt x --greedy\n",
    .table = TABLE(options),
    .min_paths = 0,
    .max_paths = 0,
    .path_name = "",
    .set_defaults = set_defaults,
    .run = run,
};
