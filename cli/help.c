#include <inttypes.h>
#include <string.h>

#include "cli/verbs.h"

#define FLAG_COLUMNS 26

void
help_overview(FILE *to)
{
    (void)fprintf(to,
                  "pawl %s: training checkpoints, model files and token shards, checked\n\n"
                  "usage: pawl VERB [flags] ARGUMENTS\n\n",
                  pawl_version());
    for (size_t i = 0; i < n_verbs; i++)
        (void)fprintf(to, "  %-16s %s\n", verbs[i]->name, verbs[i]->summary);
    (void)fputs("\n`pawl help VERB` tells more, with examples. Every verb that reports takes --json.\n", to);
}

bool
help_group(FILE *to, const char *group)
{
    size_t len = strlen(group);
    bool is_group = false;
    for (size_t i = 0; i < n_verbs; i++) {
        if (strncmp(verbs[i]->name, group, len) == 0 && verbs[i]->name[len] == ' ') {
            (void)fprintf(to, "  %-16s %s\n", verbs[i]->name, verbs[i]->summary);
            is_group = true;
        }
    }
    if (is_group)
        (void)fputs("\n`pawl help VERB` tells more, with examples.\n", to);
    return is_group;
}

static void
help_option(FILE *to, const struct option *option)
{
    char flag[64];
    (void)snprintf(flag, sizeof flag, "--%s%s%s%s%s%s", option->name, option->type == OPTION_MAYBE ? " [" : "",
                   option->value != NULL && option->type != OPTION_MAYBE ? " " : "",
                   option->value != NULL ? option->value : "", option->type == OPTION_WORDS ? "..." : "",
                   option->type == OPTION_MAYBE ? "]" : "");
    (void)fprintf(to, "  %-*s %s", FLAG_COLUMNS, flag, option->help);
    if (option->choices != NULL)
        (void)fprintf(to, " (%s)", option->choices);
    if (option->alias != NULL)
        (void)fprintf(to, "; also --%s", option->alias);
    (void)fputc('\n', to);
}

static bool
is_hidden_by(const struct verb *verb, const struct option *common)
{
    for (size_t i = 0; i < verb->table.n; i++) {
        if (strcmp(verb->table.options[i].name, common->name) == 0)
            return true;
    }
    return false;
}

void
help_verb(FILE *to, const struct verb *verb)
{
    (void)fprintf(to, "pawl %s: %s\n\nusage: pawl %s %s\n\n%s\nflags:\n", verb->name, verb->summary, verb->name,
                  verb->synopsis, verb->description);
    for (size_t i = 0; i < verb->table.n; i++)
        help_option(to, &verb->table.options[i]);
    for (size_t i = 0; i < n_common_options; i++) {
        if (!is_hidden_by(verb, &common_options[i]))
            help_option(to, &common_options[i]);
    }
    (void)fprintf(to, "\nexamples:\n%s", verb->examples);
}
