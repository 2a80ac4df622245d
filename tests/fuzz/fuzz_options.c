/*
 * A command line: each line of the input is a word of it, and by itself a size, a number, a slice, a list of ids and what --keep-best takes. What is refused says
 * how; what is taken is within its bounds, and what a slower reader makes of it.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "cli/arguments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORDS_MAX 100

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

/* One end of a slice: of n, it is at *ret. */
static bool
slow_end(const char *text, size_t len, uint64_t n, bool is_end, uint64_t *ret)
{
    long double value = 0;
    bool is_negative = len != 0 && text[0] == '-';
    *ret = is_end ? n : 0;
    if (len == 0)
        return true;
    if (len - is_negative >= 24 || !slow_number(text + is_negative, len - is_negative, &value) ||
        value > (long double)INT64_MAX)
        return false;
    long double at = is_negative ? (long double)n - value : value;
    *ret = at < 0 ? 0 : at > (long double)n ? n : (uint64_t)at;
    return true;
}

static void
check_slice(const char *word, uint64_t n)
{
    uint64_t begin = 7, end = 5, slow_begin = 7, slow_end_ = 5;
    const char *colon = strchr(word, ':');
    bool is_slice;
    if (colon != NULL) {
        uint64_t first, last;
        is_slice = slow_end(word, (size_t)(colon - word), n, false, &first) &&
                   slow_end(colon + 1, strlen(colon + 1), n, true, &last);
        if (is_slice)
            slow_begin = first, slow_end_ = last;
    } else {
        long double value = 0;
        bool is_negative = word[0] == '-';
        is_slice =
            slow_number(word + is_negative, strlen(word + is_negative), &value) && value <= (long double)INT64_MAX;
        long double at = is_negative ? (long double)n - value : value;
        bool is_there = at >= 0 && at < (long double)n;
        if (is_slice)
            slow_begin = is_there ? (uint64_t)at : n, slow_end_ = slow_begin + is_there;
    }
    require(options_parse_slice(word, n, &begin, &end) == is_slice && begin == slow_begin && end == slow_end_);
}

/* What is taken, printed, is the text again; but for zeros before the number. */
static void
check_keep_best(const char *word)
{
    struct pawl_keep_best best = { .count = -7 };
    size_t len = strlen(word), digits = len;
    long double count = 0;
    while (digits > 0 && word[digits - 1] >= '0' && word[digits - 1] <= '9')
        digits--;
    bool is_best =
        digits > 5 && slow_number(word + digits, len - digits, &count) && count >= 1 && count <= (long double)INT64_MAX;
    bool is_min = is_best && memcmp(word + digits - 5, ":min:", 5) == 0;
    is_best = is_min || (is_best && memcmp(word + digits - 5, ":max:", 5) == 0);
    require(options_parse_keep_best(word, &best) == is_best && best.count == (is_best ? (int64_t)count : -7));
    if (is_best)
        require(best.direction == (is_min ? PAWL_LEAST : PAWL_GREATEST) && best.metric.data == word &&
                best.metric.len == digits - 5);
}

static void
check_ids(const char *word)
{
    uint64_t *ids = NULL;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n = 0, at = 0;
    enum pawl_status st = options_parse_ids(word, "flag", UINT32_MAX, &ids, &n, &err);
    bool is_fine = true;
    for (const char *part = word; part != NULL && is_fine; at++) {
        long double id;
        size_t len = strcspn(part, ",");
        is_fine = slow_number(part, len, &id) && id <= UINT32_MAX;
        require(st != PAWL_OK || (is_fine && at < n && ids[at] == (uint64_t)id));
        part = part[len] == ',' ? part + len + 1 : NULL;
    }
    require(st == PAWL_OK ? is_fine && n == at : !is_fine && ids == NULL && strcmp(err.code, "usage") == 0);
    free(ids);
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

    static const uint64_t lengths[] = { 0, 1, 13, 1000000, INT64_MAX, UINT64_MAX };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        check_slice(word, lengths[i]);
    check_keep_best(word);
    check_ids(word);

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
    require(st != PAWL_OK || options_given(&arguments, "data") == (arguments.data.n != 0));
    require(st != PAWL_OK || options_given(&arguments, "only") == (arguments.only.n != 0));
    require(st != PAWL_OK || options_given(&arguments, "switch") == arguments.force);
    options_release(&arguments);
    free(text);
    return 0;
}
