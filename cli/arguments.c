#include "cli/arguments.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/fault.h"
#include "trainer/talk.h"

#define NAMES_MAX 64     /* flags of one verb, aliases included */
#define NEAREST_BYTES 48 /* longer words are nobody's typing error */

const struct option common_options[] = {
    { "json", NULL, NULL, NULL, "one JSON document on one line on stdout, and nothing else there", OPTION_AT(json),
      OPTION_SWITCH, 0, 0, 0 },
    { "quiet", NULL, NULL, NULL, "say only what went wrong", OPTION_AT(quiet), OPTION_SWITCH, 0, 0, 0 },
    { "verbose", NULL, NULL, NULL, "say more: the code of a failure; time and memory", OPTION_AT(verbose),
      OPTION_SWITCH, 0, 0, 0 },
    { "color", NULL, "WHEN", "auto|always|never", "colour on stdout (auto: on a terminal, never with NO_COLOR)",
      OPTION_AT(color), OPTION_CHOICE, 0, 0, 0 },
    { "progress", NULL, "WHEN", "auto|always|never",
      "a live line on stderr for what takes over a second (auto: on a terminal)", OPTION_AT(progress), OPTION_CHOICE, 0,
      0, 0 },
    { "help", NULL, NULL, NULL, "this text", OPTION_AT(help), OPTION_SWITCH, 0, 0, 0 },
};
const size_t n_common_options = sizeof common_options / sizeof common_options[0];

/* ---- spelling ---- */

/* Edits, swaps of neighbours included, that turn a into b; both of at most NEAREST_BYTES. */
static size_t
edit_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_BYTES + 1], n = strlen(a), m = strlen(b);
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1 < best)
                best = two_above[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *
options_nearest(const char *word, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    size_t len = strlen(word), least = len / 3 + 2; /* a third may be wrong, and a little more in short words */
    if (len == 0 || len > NEAREST_BYTES)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strlen(names[i]) > NEAREST_BYTES)
            continue;
        size_t distance = edit_distance(word, names[i]);
        bool begins_so = len >= 2 && strncmp(word, names[i], len) == 0;
        distance = begins_so && distance > 1 ? 1 : distance;
        if (distance < least && distance < strlen(names[i])) {
            least = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

/* ---- values ---- */

bool
options_parse_u64(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (max - digit) / 10 || digit > max)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}

bool
options_parse_size(const char *text, uint64_t *ret)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } UNITS[] = { { "", 1 },
                  { "kB", UINT64_C(1000) },
                  { "KB", UINT64_C(1000) },
                  { "MB", UINT64_C(1000000) },
                  { "GB", UINT64_C(1000000000) },
                  { "TB", UINT64_C(1000000000000) },
                  { "KiB", UINT64_C(1) << 10 },
                  { "MiB", UINT64_C(1) << 20 },
                  { "GiB", UINT64_C(1) << 30 },
                  { "TiB", UINT64_C(1) << 40 } };
    char digits[24];
    size_t n = strspn(text, "0123456789");
    uint64_t value;
    if (n >= sizeof digits)
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        if (strcmp(text + n, UNITS[i].name) != 0)
            continue;
        if (!options_parse_u64(digits, UINT64_MAX / UNITS[i].bytes, &value))
            return false;
        *ret = value * UNITS[i].bytes;
        return true;
    }
    return false;
}

enum pawl_status
options_parse_ids(const char *text, const char *flag, uint64_t max, uint64_t **ret_ids, size_t *ret_n,
                  struct pawl_error *err)
{
    size_t n = 0, most = strlen(text) / 2 + 1;
    uint64_t *ids = calloc(most, sizeof *ids);
    char *copy = strdup(text);
    enum pawl_status st = ids == NULL || copy == NULL ? fault_memory(err, most * sizeof *ids) : PAWL_OK;
    for (char *next = copy; st == PAWL_OK && next != NULL;) {
        char *word = next;
        next = strchr(word, ',');
        if (next != NULL)
            *next++ = '\0';
        if (!options_parse_u64(word, max, &ids[n++]))
            st = fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s: expected numbers with commas between them", flag);
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

bool
options_parse_keep_best(const char *text, struct pawl_keep_best *ret)
{
    const char *last = strrchr(text, ':');
    const char *middle = last;
    uint64_t count = 0;
    while (middle != NULL && middle > text && middle[-1] != ':')
        middle--;
    bool is_min = last != NULL && middle > text && strncmp(middle, "min:", 4) == 0;
    bool is_max = last != NULL && middle > text && strncmp(middle, "max:", 4) == 0;
    if ((!is_min && !is_max) || middle - text < 2 || !options_parse_u64(last + 1, INT64_MAX, &count) || count == 0)
        return false;
    *ret = (struct pawl_keep_best){ .metric = { text, (size_t)(middle - 1 - text) },
                                    .direction = is_min ? PAWL_LEAST : PAWL_GREATEST,
                                    .count = (int64_t)count };
    return true;
}

/* One end of a slice of n; `empty` when nothing is written. */
static bool
parse_end(const char *text, size_t len, uint64_t n, uint64_t empty, uint64_t *ret)
{
    char digits[24];
    uint64_t value;
    bool is_negative = len > 0 && text[0] == '-';
    if (len == 0) {
        *ret = empty;
        return true;
    }
    text += is_negative;
    len -= is_negative;
    if (len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (!options_parse_u64(digits, INT64_MAX, &value))
        return false;
    *ret = is_negative ? (value < n ? n - value : 0) : value < n ? value : n;
    return true;
}

bool
options_parse_slice(const char *text, uint64_t n, uint64_t *ret_begin, uint64_t *ret_end)
{
    const char *colon = strchr(text, ':');
    uint64_t begin, end, one;
    if (colon != NULL) {
        if (!parse_end(text, (size_t)(colon - text), n, 0, &begin) ||
            !parse_end(colon + 1, strlen(colon + 1), n, n, &end))
            return false;
    } else {
        bool is_negative = text[0] == '-';
        if (!options_parse_u64(text + is_negative, INT64_MAX, &one))
            return false;
        bool is_there = is_negative ? one <= n && one != 0 : one < n;
        begin = !is_there ? n : is_negative ? n - one : one;
        end = begin + is_there;
    }
    *ret_begin = begin;
    *ret_end = end;
    return true;
}

static enum pawl_status
usage(struct pawl_error *err, const char *name, const char *value, const char *expected)
{
    char shown[200];
    talk_escape(pawl_str_z(value), shown, sizeof shown);
    return fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s: expected %s, found '%s'", name, expected, shown);
}

static enum pawl_status
read_number(const struct option *option, const char *value, void *to, struct pawl_error *err)
{
    uint64_t max = option->max != 0 ? option->max : option->type == OPTION_I64 ? (uint64_t)INT64_MAX : UINT64_MAX;
    uint64_t number;
    if (!options_parse_u64(value, max, &number) || number < option->min) {
        char expected[100];
        if (option->max != 0 || option->type == OPTION_I64)
            (void)snprintf(expected, sizeof expected, "a number from %" PRIu64 " to %" PRIu64, option->min, max);
        else
            (void)snprintf(expected, sizeof expected, "a number of at least %" PRIu64, option->min);
        return usage(err, option->name, value, expected);
    }
    if (option->type == OPTION_I64)
        *(int64_t *)to = (int64_t)number;
    else
        *(uint64_t *)to = number;
    return PAWL_OK;
}

/* `above` -1: zero is allowed too. */
static enum pawl_status
read_real(const struct option *option, const char *value, double *to, struct pawl_error *err)
{
    char *end;
    double number = strtod(value, &end);
    bool is_number = *value != '\0' && *end == '\0' && strchr("+-.0123456789", *value) != NULL && isfinite(number);
    bool fits = option->above < 0 ? number >= 0 : number > option->above;
    if (!is_number || !fits) {
        char expected[100];
        if (option->above < 0)
            (void)snprintf(expected, sizeof expected, "a number of at least 0");
        else
            (void)snprintf(expected, sizeof expected, "a number above %g", option->above);
        return usage(err, option->name, value, expected);
    }
    *to = number;
    return PAWL_OK;
}

static bool
is_choice(const char *choices, const char *value)
{
    size_t len = strcspn(value, "|"); /* a choice has none */
    if (value[len] != '\0')
        return false;
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, value, len) == 0 && (at[len] == '|' || at[len] == '\0'))
            return len > 0;
    }
    return false;
}

static enum pawl_status
add_word(struct words *words, const char *word, struct pawl_error *err)
{
    const char **more = realloc(words->items, (words->n + 1) * sizeof *more);
    if (more == NULL)
        return fault_memory(err, (words->n + 1) * sizeof *more);
    words->items = more;
    words->items[words->n++] = word;
    return PAWL_OK;
}

static enum pawl_status
set_value(const struct option *option, const char *value, struct arguments *arguments, struct pawl_error *err)
{
    void *to = (char *)arguments + option->at;
    switch (option->type) {
    case OPTION_SWITCH:
        *(bool *)to = true;
        return PAWL_OK;
    case OPTION_TEXT:
    case OPTION_MAYBE:
        *(const char **)to = value;
        return PAWL_OK;
    case OPTION_CHOICE:
        if (!is_choice(option->choices, value)) {
            char expected[100];
            (void)snprintf(expected, sizeof expected, "one of %s", option->choices);
            return usage(err, option->name, value, expected);
        }
        *(const char **)to = value;
        return PAWL_OK;
    case OPTION_U64:
    case OPTION_I64:
        return read_number(option, value, to, err);
    case OPTION_REAL:
        return read_real(option, value, to, err);
    case OPTION_SIZE:
        if (!options_parse_size(value, to) || *(uint64_t *)to < option->min)
            return usage(err, option->name, value, "a size such as 5GB, 500MiB or 1000000");
        return PAWL_OK;
    case OPTION_WORDS:
    case OPTION_LIST:
        return add_word(to, value, err);
    }
    return PAWL_OK;
}

/* ---- the line ---- */

static const struct option *
find(const struct option *options, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        const char *names[2] = { options[i].name, options[i].alias };
        for (size_t j = 0; j < 2; j++) {
            if (names[j] != NULL && strlen(names[j]) == len && strncmp(names[j], name, len) == 0)
                return &options[i];
        }
    }
    return NULL;
}

static enum pawl_status
unknown_flag(const struct option_table *table, const char *word, size_t len, struct pawl_error *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < table->n && n + 2 <= NAMES_MAX; i++) {
        names[n++] = table->options[i].name;
        if (table->options[i].alias != NULL)
            names[n++] = table->options[i].alias;
    }
    for (size_t i = 0; i < n_common_options && n < NAMES_MAX; i++)
        names[n++] = common_options[i].name;
    char shown[128], name[64];
    talk_escape((struct pawl_str){ word, len }, shown, sizeof shown);
    enum pawl_status st = fault(err, PAWL_ARGUMENT, "usage", NULL, "unknown flag %s", shown);
    size_t dashes = strspn(word, "-");
    dashes = dashes > len ? len : dashes;
    (void)snprintf(name, sizeof name, "%.*s", (int)(len - dashes > 60 ? 60 : len - dashes), word + dashes);
    const char *nearest = options_nearest(name, names, n);
    if (nearest != NULL)
        fault_hint(err, "did you mean --%s?", nearest);
    return st;
}

/* "-5:" is a word: no flag begins with a digit. "-" is one too. */
static bool
is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && (word[1] < '0' || word[1] > '9');
}

/* Where a flag that takes a value as its own word has it. The number of words it took besides its own. */
static enum pawl_status
read_flag(const struct option *option, const char *equals, const char *const *next, size_t n_next,
          struct arguments *arguments, size_t *ret_taken, struct pawl_error *err)
{
    if (option->type == OPTION_SWITCH) {
        if (equals != NULL)
            return fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s takes no value", option->name);
        return set_value(option, NULL, arguments, err);
    }
    if (equals != NULL)
        return set_value(option, equals + 1, arguments, err);
    if (option->type == OPTION_MAYBE) {
        bool has_value = n_next > 0 && !is_flag(next[0]);
        *ret_taken = has_value;
        return set_value(option, has_value ? next[0] : NULL, arguments, err);
    }
    if (option->type == OPTION_WORDS) {
        size_t n = 0;
        enum pawl_status st = PAWL_OK;
        while (st == PAWL_OK && n < n_next && !is_flag(next[n]))
            st = set_value(option, next[n++], arguments, err);
        *ret_taken = n;
        if (st == PAWL_OK && n == 0)
            st = fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s needs a value: %s", option->name, option->value);
        return st;
    }
    if (n_next == 0)
        return fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s needs a value: %s", option->name,
                     option->choices != NULL ? option->choices : option->value);
    *ret_taken = 1;
    return set_value(option, next[0], arguments, err);
}

enum pawl_status
options_read(const struct option_table *table, const char *const *words, size_t n, struct arguments *arguments,
             struct pawl_error *err)
{
    bool flags_end = false;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        const char *word = words[i];
        if (flags_end || !is_flag(word)) {
            st = add_word(&arguments->paths, word, err);
            continue;
        }
        if (strcmp(word, "--") == 0) {
            flags_end = true;
            continue;
        }
        if (strcmp(word, "-h") == 0) {
            arguments->help = true;
            continue;
        }
        const char *equals = strchr(word, '=');
        size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
        const struct option *option = NULL;
        if (len > 2 && word[1] == '-')
            option = find(table->options, table->n, word + 2, len - 2);
        if (option == NULL && len > 2 && word[1] == '-')
            option = find(common_options, n_common_options, word + 2, len - 2);
        if (option == NULL)
            return unknown_flag(table, word, len, err);
        size_t taken = 0;
        st = read_flag(option, equals, words + i + 1, n - i - 1, arguments, &taken, err);
        i += taken;
        if (!options_given(arguments, option->name) &&
            arguments->n_given < sizeof arguments->given / sizeof arguments->given[0])
            arguments->given[arguments->n_given++] = option->name;
    }
    return st;
}

void
options_release(struct arguments *arguments)
{
    free(arguments->paths.items);
    free(arguments->data.items);
    free(arguments->only.items);
    free(arguments->drop.items);
    free(arguments->rename.items);
    free(arguments->metadata.items);
}

bool
options_given(const struct arguments *arguments, const char *name)
{
    for (size_t i = 0; i < arguments->n_given; i++) {
        if (strcmp(arguments->given[i], name) == 0)
            return true;
    }
    return false;
}

bool
options_takes_next(const char *word)
{
    for (size_t i = 0; i < n_common_options; i++) {
        if (common_options[i].type != OPTION_SWITCH && strncmp(word, "--", 2) == 0 &&
            strcmp(word + 2, common_options[i].name) == 0)
            return true;
    }
    return false;
}
