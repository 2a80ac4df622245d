/*
 * A command line: each line of the input is a word of it, and by itself a size and a number. What is refused says how; what is taken is within its bounds;
 * a size and a number are what a slower reader makes of them.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "cli/arguments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORDS_MAX 64

static const struct option options[] = {
    { "switch", NULL, NULL, NULL, "", OPTION_AT(force), OPTION_SWITCH, 0, 0, 0 },
    { "text", "words", "TEXT", NULL, "", OPTION_AT(split), OPTION_TEXT, 0, 0, 0 },
    { "choice", NULL, "WHICH", "strict|compat|lint", "", OPTION_AT(mode), OPTION_CHOICE, 0, 0, 0 },
    { "number", NULL, "N", NULL, "", OPTION_AT(vocab), OPTION_U64, 2, 1000, 0 },
    { "whole", NULL, "N", NULL, "", OPTION_AT(keep), OPTION_I64, 0, 0, 0 },
    { "real", NULL, "X", NULL, "", OPTION_AT(lr), OPTION_REAL, 0, 0, 0 },
    { "data", NULL, "PATH...", NULL, "", OPTION_AT(data), OPTION_WORDS, 0, 0, 0 },
    { "only", NULL, "PATTERN", NULL, "", OPTION_AT(only), OPTION_LIST, 0, 0, 0 },
    { "maybe", NULL, "DIR", NULL, "", OPTION_AT(sums), OPTION_MAYBE, 0, 0, 0 },
    { "size", NULL, "SIZE", NULL, "", OPTION_AT(max_shard_size), OPTION_SIZE, 20, 0, 0 },
};

static void
require(bool holds)
{
    if (!holds)
        abort();
}

static bool
slow_number(const char *text, size_t len, long double *ret)
{
    *ret = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *ret = *ret * 10 + (text[i] - '0');
    }
    return len != 0;
}

static void
check_word(const char *word)
{
    static const char *const prefixes = "kMGT";
    uint64_t number = 7, bytes = 7;
    long double expected;
    bool is_number = slow_number(word, strlen(word), &expected) && expected <= 1000;
    require(options_parse_u64(word, 1000, &number) == is_number && number == (is_number ? (uint64_t)expected : 7));

    size_t digits = strspn(word, "0123456789");
    const char *unit = word + digits;
    const char *prefix = *unit == '\0' ? NULL : strchr(prefixes, *unit == 'K' ? 'k' : *unit);
    bool is_size = slow_number(word, digits, &expected) && digits < 24;
    if (*unit != '\0') {
        bool is_binary = strcmp(unit + 1, "iB") == 0;
        is_size = is_size && prefix != NULL && (is_binary ? *unit != 'k' : strcmp(unit + 1, "B") == 0);
        for (const char *p = prefixes; is_size && p <= prefix; p++)
            expected *= is_binary ? 1024 : 1000;
    }
    is_size = is_size && expected < 18446744073709551616.0L;
    require(options_parse_size(word, &bytes) == is_size && bytes == (is_size ? (uint64_t)expected : 7));

    static const char *const names[] = { "verify", "convert", "ls", "tokens" };
    const char *nearest = options_nearest(word, names, 4);
    require(nearest == NULL || word[0] != '\0');
    (void)options_takes_next(word);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *words[WORDS_MAX];
    struct arguments arguments = { .mode = "strict", .vocab = 2, .lr = 1.0, .max_shard_size = 20 };
    struct pawl_error err = PAWL_ERROR_INIT;
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, size == 0 ? (const void *)"" : data, size);
    text[size] = '\0';
    size_t n = 0;
    for (char *next = text; next != NULL && n < WORDS_MAX;) {
        words[n++] = next;
        next = strchr(next, '\n');
        if (next != NULL)
            *next++ = '\0';
        check_word(words[n - 1]);
    }
    const struct option_table table = { options, sizeof options / sizeof options[0] };
    enum pawl_status st = options_read(&table, words, n, &arguments, &err);
    require(st == PAWL_OK || (st == PAWL_ARGUMENT && strcmp(err.code, "usage") == 0 && err.message[0] != '\0'));
    require(arguments.vocab >= 2 && arguments.vocab <= 1000 && arguments.keep >= 0);
    require(isfinite(arguments.lr) && arguments.lr > 0);
    require(strcmp(arguments.mode, "strict") == 0 || strcmp(arguments.mode, "compat") == 0 ||
            strcmp(arguments.mode, "lint") == 0);
    require(st != PAWL_OK || arguments.max_shard_size >= 20);
    require(arguments.paths.n + arguments.data.n + arguments.only.n <= n);
    require(st != PAWL_OK || !options_given(&arguments, "data") || arguments.data.n != 0);
    options_release(&arguments);
    free(text);
    return 0;
}
