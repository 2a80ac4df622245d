/* pawl(1): finds the verb, reads its flags, runs it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli/verbs.h"

const struct verb *const verbs[] = {
    &verb_info,           &verb_ls,
    &verb_verify,         &verb_convert,
    &verb_shard,          &verb_merge,
    &verb_index,          &verb_ckpt_ls,
    &verb_ckpt_latest,    &verb_ckpt_prune,
    &verb_ckpt_repair,    &verb_ckpt_copy,
    &verb_ckpt_pin,       &verb_ckpt_unpin,
    &verb_tokens_pack,    &verb_tokens_info,
    &verb_tokens_verify,  &verb_tokens_cat,
    &verb_train_bigram,   &verb_generate,
    &verb_logits,         &verb_bench,
    &verb_llmcp35_info,   &verb_llmcp35_verify,
    &verb_llmcp35_replay, &verb_llmcp35_convert,
};
const size_t n_verbs = sizeof verbs / sizeof verbs[0];

/* The command line without its verb. */
struct line {
    const char **words;
    size_t n;
    const char *verb[2]; /* the first words that are no flags; NULL: none */
};

static bool
is_group(const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < n_verbs; i++) {
        if (strncmp(verbs[i]->name, word, len) == 0 && verbs[i]->name[len] == ' ')
            return true;
    }
    return false;
}

/* Take the verb's words out of the line; common flags may stand before and between them. */
static bool
split_line(int argc, char **argv, struct line *line)
{
    *line = (struct line){ .words = calloc((size_t)argc + 1, sizeof *line->words) };
    if (line->words == NULL)
        return false;
    size_t wanted = 1;
    bool flags_end = false;
    for (int i = 1; i < argc; i++) {
        size_t found = line->verb[0] == NULL ? 0 : line->verb[1] == NULL ? 1 : 2;
        bool is_flag = argv[i][0] == '-' && argv[i][1] != '\0';
        flags_end = flags_end || strcmp(argv[i], "--") == 0;
        if (!is_flag && !flags_end && found < wanted) {
            line->verb[found] = argv[i];
            wanted = found == 0 && (is_group(argv[i]) || strcmp(argv[i], "help") == 0) ? 2 : wanted;
            continue;
        }
        line->words[line->n++] = argv[i];
        if (found < wanted && !flags_end && options_takes_next(argv[i]) && i + 1 < argc)
            line->words[line->n++] = argv[++i];
    }
    return true;
}

static const struct verb *
find_verb(const struct line *line)
{
    char name[128];
    if (line->verb[0] == NULL)
        return NULL;
    (void)snprintf(name, sizeof name, "%s%s%s", line->verb[0], line->verb[1] != NULL ? " " : "",
                   line->verb[1] != NULL ? line->verb[1] : "");
    for (size_t i = 0; i < n_verbs; i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    }
    return NULL;
}

static bool
has_word(const struct line *line, const char *word)
{
    for (size_t i = 0; i < line->n && strcmp(line->words[i], "--") != 0; i++) {
        if (strcmp(line->words[i], word) == 0)
            return true;
    }
    return false;
}

/* A usage error before any verb is known; --json counts already. */
static int
fail_line(const struct line *line, const char *verb, const struct pawl_error *err)
{
    struct output out;
    struct arguments arguments = { .json = has_word(line, "--json"), .quiet = has_word(line, "--quiet") };
    struct pawl_error second = PAWL_ERROR_INIT;
    if (output_begin(&out, verb, &arguments, &second) != PAWL_OK)
        return exit_of_status(second.status);
    int status = output_error(&out, NULL, err);
    output_release(&out);
    return status;
}

static int
unknown_verb(const struct line *line)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *names[64];
    size_t n = 0;
    char said[128];
    bool in_group = line->verb[1] != NULL;
    char *first = text_name_z(line->verb[0]), *second = in_group ? text_name_z(line->verb[1]) : NULL;
    (void)snprintf(said, sizeof said, "%.60s%s%.60s", line->verb[0], in_group ? " " : "",
                   in_group ? line->verb[1] : "");
    (void)fault(&err, PAWL_ARGUMENT, "usage", NULL, "unknown verb '%s%s%s'", first, in_group ? " " : "",
                in_group ? second : "");
    for (size_t i = 0; i < n_verbs && n < 64; i++)
        names[n++] = verbs[i]->name;
    const char *nearest = options_nearest(said, names, n);
    if (nearest == NULL && !in_group) {
        static const char *const groups[] = { "ckpt", "tokens", "train", "llmcp35", "help" };
        nearest = options_nearest(said, groups, sizeof groups / sizeof groups[0]);
    }
    if (nearest != NULL)
        fault_hint(&err, "did you mean pawl %s?", nearest);
    else
        fault_hint(&err, "pawl help lists the verbs");
    free(first);
    free(second);
    return fail_line(line, "", &err);
}

/* A group without the second word, help, --version, or nothing. */
static int
run_without_verb(const struct line *line)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    if (line->verb[0] == NULL && has_word(line, "--version")) {
        (void)printf("pawl %s\n", pawl_version());
        return EXIT_FINE;
    }
    bool wants_help = has_word(line, "--help") || has_word(line, "-h");
    if (line->verb[0] == NULL && wants_help) {
        help_overview(stdout);
        return EXIT_FINE;
    }
    if (line->verb[0] == NULL && line->n > 0 && strcmp(line->words[0], "--json") != 0) {
        char *word = text_name_z(line->words[0]);
        (void)fault(&err, PAWL_ARGUMENT, "usage", NULL, "a verb is missing before %s", word);
        fault_hint(&err, "pawl help lists the verbs");
        free(word);
        return fail_line(line, "", &err);
    }
    if (line->verb[0] == NULL) {
        (void)fault(&err, PAWL_ARGUMENT, "usage", NULL, "a verb is missing");
        fault_hint(&err, "pawl help lists the verbs");
        return fail_line(line, "", &err);
    }
    if (line->verb[1] == NULL && is_group(line->verb[0])) {
        if (wants_help) {
            (void)help_group(stdout, line->verb[0]);
            return EXIT_FINE;
        }
        (void)fault(&err, PAWL_ARGUMENT, "usage", NULL, "a verb is missing after %s", line->verb[0]);
        fault_hint(&err, "pawl help %s lists them", line->verb[0]);
        return fail_line(line, line->verb[0], &err);
    }
    return unknown_verb(line);
}

/* `pawl help`, `pawl help VERB`, `pawl help ckpt ls`. */
static int
run_help(struct line *line)
{
    const char *first = line->verb[1], *second = NULL;
    for (size_t i = 0; i < line->n && second == NULL; i++)
        second = line->words[i][0] != '-' ? line->words[i] : NULL;
    if (first == NULL) {
        help_overview(stdout);
        return EXIT_FINE;
    }
    struct line asked = { .verb = { first, second }, .words = line->words };
    const struct verb *verb = find_verb(&asked);
    if (verb != NULL) {
        help_verb(stdout, verb);
        return EXIT_FINE;
    }
    if (second == NULL && help_group(stdout, first))
        return EXIT_FINE;
    return unknown_verb(&asked);
}

static enum pawl_status
check_paths(const struct verb *verb, const struct arguments *arguments, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    if (arguments->paths.n < verb->min_paths) {
        st = fault(err, PAWL_ARGUMENT, "usage", NULL, "%s is missing", verb->path_name);
    } else if (arguments->paths.n > verb->max_paths) {
        char *word = text_name_z(arguments->paths.items[verb->max_paths]);
        st = fault(err, PAWL_ARGUMENT, "usage", NULL, "one word too many: '%s'", word);
        free(word);
    }
    if (st != PAWL_OK)
        fault_hint(err, "usage: pawl %s %s", verb->name, verb->synopsis);
    return st;
}

/* --verbose: what the run cost, on stderr. */
static void
say_cost(const struct output *out, const struct timespec *began)
{
    struct timespec now;
    struct rusage usage;
    char peak[32];
    if (!out->is_verbose || clock_gettime(CLOCK_MONOTONIC, &now) < 0 || getrusage(RUSAGE_SELF, &usage) < 0)
        return;
    double passed = (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) * 1e-9;
    (void)fprintf(stderr, "%s: %.3f s, at most %s of memory\n", out->who, passed,
                  text_size((uint64_t)usage.ru_maxrss * 1024, peak));
}

static int
run_verb(const struct verb *verb, const struct line *line)
{
    struct timespec began = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    struct arguments arguments = { .json = false };
    struct pawl_error err = PAWL_ERROR_INIT;
    struct output out = { .verb = verb->name };
    int status;
    if (verb->set_defaults != NULL)
        verb->set_defaults(&arguments);
    enum pawl_status st = options_read(&verb->table, line->words, line->n, &arguments, &err);
    if (st == PAWL_OK && arguments.help) {
        help_verb(stdout, verb);
        options_release(&arguments);
        return EXIT_FINE;
    }
    if (st == PAWL_OK)
        st = check_paths(verb, &arguments, &err);
    if (st != PAWL_OK) {
        options_release(&arguments);
        return fail_line(line, verb->name, &err);
    }
    st = output_begin(&out, verb->name, &arguments, &err);
    status = st == PAWL_OK ? verb->run(&arguments, &out) : output_error(&out, NULL, &err);
    say_cost(&out, &began);
    output_release(&out);
    options_release(&arguments);
    return status;
}

/* Ids are mapped; a touch of what another program has cut off since it was looked at is a signal, not a status. */
static void
file_was_cut(int signal_number, siginfo_t *info, void *context)
{
    static const char text[] = "pawl: a file was cut short by another program while it was read\n";
    (void)context;
    if (info->si_code == BUS_ADRERR) {
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        _exit(EXIT_MALFORMED);
    }
    (void)signal(signal_number, SIG_DFL); /* our own mistake: it comes again, and ends the program */
}

/* What a file or its filesystem does to us is told, and has an exit status. */
static void
catch_file_signals(void)
{
    struct sigaction action = { .sa_sigaction = file_was_cut, .sa_flags = SA_SIGINFO };
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); /* past a limit of file sizes the write itself says so */
}

int
main(int argc, char **argv)
{
    catch_file_signals();
    struct line line;
    if (!split_line(argc, argv, &line)) {
        (void)fputs("pawl: no memory\n", stderr);
        return EXIT_NO;
    }
    int status;
    const struct verb *verb = find_verb(&line);
    if (verb != NULL)
        status = run_verb(verb, &line);
    else if (line.verb[0] != NULL && strcmp(line.verb[0], "help") == 0)
        status = run_help(&line);
    else
        status = run_without_verb(&line);
    free(line.words);
    /* What could not be printed was not done, whatever the verb says; a verb that said so has its status already. */
    int code = output_flush();
    if (code != 0 && status == EXIT_FINE) {
        (void)fprintf(stderr, "pawl: standard output: write: %s\n", strerror(code));
        status = EXIT_AGAIN;
    }
    return status;
}
