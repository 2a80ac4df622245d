#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "trainer/sample.h"

/* "1,2,3"; an empty text is no ids. */
static enum pawl_status
parse_ids(const char *text, uint32_t **ret_ids, size_t *ret_n, struct pawl_error *err)
{
    size_t n = 0, max = strlen(text) / 2 + 1;
    uint32_t *ids = malloc(max * sizeof *ids);
    char *copy = strdup(text);
    enum pawl_status st = ids == NULL || copy == NULL ? fault_memory(err, max * sizeof *ids) : PAWL_OK;
    char *next = copy;
    while (st == PAWL_OK && next != NULL && text[0] != '\0') {
        char *word = next;
        uint64_t id;
        next = strchr(word, ',');
        if (next != NULL)
            *next++ = '\0';
        if (options_parse_u64(word, UINT32_MAX, &id))
            ids[n++] = (uint32_t)id;
        else
            st = fault(err, PAWL_ARGUMENT, "usage", NULL, "--prefix-ids: expected numbers with commas between them");
    }
    free(copy);
    if (st != PAWL_OK) {
        free(ids);
        return st;
    }
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
