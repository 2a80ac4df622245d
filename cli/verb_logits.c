#include <stdlib.h>

#include "cli/verbs.h"
#include "trainer/sample.h"

/* An empty text is no ids. */
static enum pawl_status
parse_ids(const char *text, uint32_t **ret_ids, size_t *ret_n, struct pawl_error *err)
{
    uint64_t *wide = NULL;
    size_t n = 0;
    if (text[0] == '\0')
        return PAWL_OK;
    enum pawl_status st = options_parse_ids(text, "prefix-ids", UINT32_MAX, &wide, &n, err);
    if (st != PAWL_OK)
        return st;
    uint32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; ids != NULL && i < n; i++)
        ids[i] = (uint32_t)wide[i];
    free(wide);
    if (ids == NULL)
        return fault_memory(err, n * sizeof *ids);
    *ret_ids = ids;
    *ret_n = n;
    return PAWL_OK;
}

static int
run(const struct arguments *a, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    uint32_t *ids = NULL;
    size_t n = 0;
    enum pawl_status st = PAWL_OK;
    if (a->model == NULL)
        st = fault(&err, PAWL_ARGUMENT, "usage", NULL, "--model is missing: the model's directory");
    else if (a->prompt == NULL)
        st = fault(&err, PAWL_ARGUMENT, "usage", NULL, "--prompt is missing: the text to go on from");
    if (st == PAWL_OK && a->prefix_ids != NULL)
        st = parse_ids(a->prefix_ids, &ids, &n, &err);
    if (st == PAWL_OK)
        st = sample_logits(a->model, pawl_str_z(a->prompt), ids, n, out->json, &err);
    free(ids);
    if (st == PAWL_OK) {
        out->is_json = true; /* the answer is a document, asked for or not */
        st = output_end(out, &err);
    }
    return st == PAWL_OK ? EXIT_FINE : output_error(out, st == PAWL_ARGUMENT ? NULL : a->model, &err);
}

static const struct option options[] = {
    { "model", NULL, "DIR", NULL, "a model directory, a checkpoint step or a run", OPTION_AT(model), OPTION_TEXT, 0, 0,
      0 },
    { "prompt", NULL, "TEXT", NULL, "the text before", OPTION_AT(prompt), OPTION_TEXT, 0, 0, 0 },
    { "prefix-ids", NULL, "A,B,...", NULL, "ids behind the prompt", OPTION_AT(prefix_ids), OPTION_TEXT, 0, 0, 0 },
};

const struct verb verb_logits = {
    .name = "logits",
    .synopsis = "--model DIR --prompt TEXT [flags]",
    .summary = "the logits of what comes next",
    .description = "Prints {\"logits\"}: one number for each of the 256 ids.\n",
    .examples = "  pawl logits --model model --prompt 'Once '\n"
                "  pawl logits --model model --prompt '' --prefix-ids 72,105\n",
    .table = TABLE(options),
    .min_paths = 0,
    .max_paths = 0,
    .path_name = "",
    .run = run,
};
