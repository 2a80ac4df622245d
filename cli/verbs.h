/* cli/verbs.h: the verbs, one entry each; the table is in main.c. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "cli/output.h"

struct verb {
    const char *name;        /* "info", "ckpt ls" */
    const char *synopsis;    /* "PATH [flags]" */
    const char *summary;     /* one line */
    const char *description; /* paragraphs */
    const char *examples;    /* lines, each a command or a comment */
    struct option_table table;
    size_t min_paths, max_paths; /* words that are no flags */
    const char *path_name;       /* "PATH": how usage errors call a missing one */
    /* Sets what a flag left out stands for; may be NULL. */
    void (*set_defaults)(struct arguments *arguments);
    /* Carries it out, and says its failures itself; the exit status. */
    int (*run)(const struct arguments *arguments, struct output *out);
};

extern const struct verb verb_info, verb_ls, verb_verify, verb_ckpt_ls, verb_ckpt_latest, verb_ckpt_prune;
extern const struct verb verb_convert, verb_shard, verb_merge, verb_index;
extern const struct verb verb_ckpt_repair, verb_ckpt_copy, verb_ckpt_pin, verb_ckpt_unpin;
extern const struct verb verb_tokens_pack, verb_tokens_info, verb_tokens_verify, verb_tokens_cat;
extern const struct verb verb_train_bigram, verb_generate, verb_logits, verb_bench;
extern const struct verb verb_llmcp35_info, verb_llmcp35_verify, verb_llmcp35_replay, verb_llmcp35_convert;

extern const struct verb *const verbs[];
extern const size_t n_verbs;

/* help.c: print to `to`. */
void help_overview(FILE *to);
void help_verb(FILE *to, const struct verb *verb);
/* The verbs of a word that is a group ("ckpt"): false when it is none. */
bool help_group(FILE *to, const char *group);

/* verb_info.c: info of a PATH that tokens info shares; `tokens` expects a token file or directory. */
int info_run(const struct arguments *arguments, struct output *out);
int info_tokens_run(const struct arguments *arguments, struct output *out);
/* verb_verify.c: the same of verify. */
int verify_run(const struct arguments *arguments, struct output *out);
int verify_tokens_run(const struct arguments *arguments, struct output *out);
int verify_llmcp35_run(const struct arguments *arguments, struct output *out);

/* The flags that several verbs have. */
#define OPTION_TRUST                                                                                                \
    {                                                                                                               \
        "trust", NULL, "HOW", "full|size-only",                                                                     \
            "full: hash every byte (default); size-only: for a filesystem that checks by itself", OPTION_AT(trust), \
            OPTION_CHOICE, 0, 0, 0                                                                                  \
    }
#define OPTION_FORCE                                                                                        \
    {                                                                                                       \
        "force", "overwrite", NULL, NULL, "replace what is there", OPTION_AT(force), OPTION_SWITCH, 0, 0, 0 \
    }
#define OPTION_DRY_RUN(help)                                                          \
    {                                                                                 \
        "dry-run", NULL, NULL, NULL, help, OPTION_AT(dry_run), OPTION_SWITCH, 0, 0, 0 \
    }
#define OPTION_VOCAB                                                                                           \
    {                                                                                                          \
        "vocab", NULL, "N", NULL, "the vocabulary: a file that names another, or an id beyond it, is refused", \
            OPTION_AT(vocab), OPTION_U64, 1, UINT64_C(1) << 32, 0                                              \
    }
#define OPTION_SPLIT                                                                                                   \
    {                                                                                                                  \
        "split", NULL, "NAME", NULL, "of a directory with a manifest: only the files of this split", OPTION_AT(split), \
            OPTION_TEXT, 0, 0, 0                                                                                       \
    }

#define TABLE(options)                                  \
    {                                                   \
        options, sizeof(options) / sizeof((options)[0]) \
    }

#endif
