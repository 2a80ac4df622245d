/*
 * cli/arguments.h: the words of a command line. A verb's flags are a table; values land in one struct that all verbs share,
 * so that a flag means the same everywhere.
 */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "pawl/pawl.h"

/* Words in a row; they point into argv. */
struct words {
    const char **items;
    size_t n;
};

struct arguments {
    /* of every verb */
    bool help, json, quiet, verbose;
    const char *color;    /* auto, always, never */
    const char *progress; /* auto, always, never; of train: a file */
    struct words paths;   /* what is no flag */

    /* look and check */
    const char *sort, *mode, *profile, *trust, *sums;
    bool tree, finite, exact_bytes;

    /* runs */
    int64_t keep, keep_every, newer_than;
    const char *keep_best;
    double timeout;
    bool dry_run, wait;

    /* everything that writes */
    bool force;

    /* changing model files */
    struct words only, drop, rename, metadata;
    const char *align;
    uint64_t max_shard_size;

    /* measuring */
    uint64_t bench_bytes;

    /* tokens */
    const char *tokenizer, *as, *documents, *prefix, *tokenizer_id, *tokenizer_file, *dataset, *dataset_version;
    const char *corpus_manifest, *split;
    bool ids, as_bytes;
    uint64_t eot, vocab, width, max_ids;

    /* the trainer */
    struct words data;
    const char *out, *method, *optimizer, *resume, *model, *prompt, *prefix_ids;
    double alpha, lr, momentum, temperature;
    uint64_t seed, steps, max_steps, batch, seq_len, ckpt_every, threads, max_tokens;
    bool greedy, async, with_sums;

    /* llmcp35 */
    const char *inputs, *targets;
    double rate;
    bool trace;

    const char *given[64]; /* names of the flags that stand on the line, each once: a verb has fewer */
    size_t n_given;
};

enum option_type {
    OPTION_SWITCH = 1, /* bool */
    OPTION_TEXT = 2,   /* const char * */
    OPTION_CHOICE = 3, /* const char *, one of `choices` */
    OPTION_U64 = 4,    /* min ... max */
    OPTION_I64 = 5,    /* min ... max, both not negative */
    OPTION_REAL = 6,   /* a finite double above `above` */
    OPTION_WORDS = 7,  /* struct words: up to the next flag; may be repeated */
    OPTION_MAYBE = 8,  /* const char *: the next word unless that is a flag; else NULL */
    OPTION_LIST = 9,   /* struct words: one word each time the flag stands on the line */
    OPTION_SIZE = 10   /* uint64_t of bytes, min ... : 20, 5GB, 5GiB */
};

struct option {
    const char *name;    /* without the dashes */
    const char *alias;   /* another name for the same, or NULL */
    const char *value;   /* "N": how help shows the value; NULL for a switch */
    const char *choices; /* "a|b|c" */
    const char *help;    /* one line, or several with line ends */
    size_t at;           /* offset in struct arguments */
    enum option_type type;
    uint64_t min, max; /* of numbers; max 0: none */
    double above;
};

#define OPTION_AT(member) offsetof(struct arguments, member)
/* --json, --quiet, --verbose, --color, --progress, --help */
extern const struct option common_options[];
extern const size_t n_common_options;

struct option_table {
    const struct option *options; /* a verb's own, looked up before the common ones */
    size_t n;
};

/*
 * Read argv[0 ... n), which holds no verb. Values that the line does not give keep what is in `arguments`. PAWL_ARGUMENT
 * ("usage") with a hint for a flag or a value that the table does not have.
 */
enum pawl_status options_read(const struct option_table *table, const char *const *words, size_t n,
                              struct arguments *arguments, struct pawl_error *err);
void options_release(struct arguments *arguments);

bool options_given(const struct arguments *arguments, const char *name);

/* Whether `word` is written as a common flag that takes its value from the next word ("--color"). */
bool options_takes_next(const char *word);

/* The nearest of n names when it is near enough to be meant, else NULL. */
const char *options_nearest(const char *word, const char *const *names, size_t n);

/* Digits alone, at most `max`. */
bool options_parse_u64(const char *text, uint64_t max, uint64_t *ret);

/* "20", "5GB" (5 times 10^9), "5GiB" (5 times 2^30): kB, MB, GB, TB and KiB, MiB, GiB, TiB. */
bool options_parse_size(const char *text, uint64_t *ret);

/* "1,2,3": of at most `max` each, for the flag that messages name. free() *ret_ids. PAWL_ARGUMENT ("usage"); an empty text is one too. */
enum pawl_status options_parse_ids(const char *text, const char *flag, uint64_t max, uint64_t **ret_ids, size_t *ret_n,
                                   struct pawl_error *err);

/* "METRIC:min|max:B"; the name may hold colons, B is at least 1. ret->metric points into `text`. */
bool options_parse_keep_best(const char *text, struct pawl_keep_best *ret);

/*
 * "10:20", ":20", "-5:", ":" of n things: what there is of them, so that 0 <= *ret_begin, *ret_end <= n. Or one of them, "7" or "-1"; when there is no
 * such one, *ret_begin and *ret_end are both n.
 */
bool options_parse_slice(const char *text, uint64_t n, uint64_t *ret_begin, uint64_t *ret_end);

#endif
