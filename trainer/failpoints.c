#include "trainer/failpoints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trainer/fault.h"
#include "trainer/talk.h"

#define CRASH_STATUS 137 /* 128 + SIGKILL: what a shell reports of a killed process */
#define SLEEP_MAX_US UINT64_C(3600000000)

static const char *const known_points[] = {
    "save/after-file",    "save/before-manifest", "save/before-rename",
    "save/before-latest", "save/before-prune",    "train/after-step",
};

enum action { ACTION_OFF = 0, ACTION_CRASH = 1, ACTION_ERROR = 2, ACTION_SLEEP = 3 };

struct rule {
    char *name;
    enum action action;
    uint64_t at; /* the evaluation that fires; 0: every one */
    uint64_t sleep_us;
    uint64_t seen; /* evaluations so far */
};

struct failpoints {
    struct rule *rules;
    size_t n;
};

static bool
take_digits(const char **at, uint64_t max, uint64_t *ret)
{
    const char *p = *at;
    uint64_t value = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *at = p;
    *ret = value;
    return true;
}

/* "sleep(20ms)" behind "sleep". */
static bool
parse_sleep(const char *text, uint64_t *ret_us)
{
    static const struct {
        const char *end;
        uint64_t us;
    } units[] = { { "us)", 1 }, { "ms)", 1000 }, { "s)", 1000000 } };
    uint64_t value;
    if (*text++ != '(' || !take_digits(&text, SLEEP_MAX_US, &value))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text, units[i].end) == 0 && value <= SLEEP_MAX_US / units[i].us) {
            *ret_us = value * units[i].us;
            return true;
        }
    }
    return false;
}

/* One "name=[N*]action"; the name's bytes are taken over by the rule. */
static bool
parse_rule(char *text, struct rule *rule)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return false;
    *equals = '\0';
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.:-", *p) == NULL)
            return false;
    }
    rule->name = text;
    const char *action = equals + 1;
    const char *star = strchr(action, '*');
    if (star != NULL && (!take_digits(&action, UINT64_MAX, &rule->at) || rule->at == 0 || action++ != star))
        return false;
    if (strcmp(action, "crash") == 0)
        rule->action = ACTION_CRASH;
    else if (strcmp(action, "error") == 0)
        rule->action = ACTION_ERROR;
    else if (strcmp(action, "off") == 0)
        rule->action = ACTION_OFF;
    else if (strncmp(action, "sleep", 5) == 0 && parse_sleep(action + 5, &rule->sleep_us))
        rule->action = ACTION_SLEEP;
    else
        return false;
    return true;
}

static enum pawl_status
add_rule(struct failpoints *points, const char *source, const char *text, size_t len, struct pawl_error *err)
{
    struct rule rule = { NULL, ACTION_OFF, 0, 0, 0 };
    char *copy = strndup(text, len);
    if (copy == NULL)
        return fault_memory(err, len + 1);
    if (!parse_rule(copy, &rule)) {
        char shown[128];
        talk_escape((struct pawl_str){ text, len }, shown, sizeof shown);
        enum pawl_status st = fault(err, PAWL_ARGUMENT, "usage", NULL,
                                    "%s: expected name=[N*]action with the action crash, error, sleep(20ms) or off, "
                                    "found '%s'",
                                    source, shown);
        free(copy);
        return st;
    }
    struct rule *more = realloc(points->rules, (points->n + 1) * sizeof *more);
    if (more == NULL) {
        free(copy);
        return fault_memory(err, (points->n + 1) * sizeof *more);
    }
    points->rules = more;
    points->rules[points->n++] = rule;
    return PAWL_OK;
}

enum pawl_status
failpoints_add(struct failpoints *points, const char *name, const char *text, struct pawl_error *err)
{
    while (*text != '\0') {
        size_t len = strcspn(text, ";");
        if (len > 0) {
            enum pawl_status st = add_rule(points, name, text, len, err);
            if (st != PAWL_OK)
                return st;
        }
        text += len;
        if (*text == ';')
            text++;
    }
    return PAWL_OK;
}

enum pawl_status
failpoints_new(struct failpoints **ret_points, struct pawl_error *err)
{
    struct failpoints *points = calloc(1, sizeof *points);
    if (points == NULL)
        return fault_memory(err, sizeof *points);
    *ret_points = points;
    return PAWL_OK;
}

enum pawl_status
failpoints_of_environment(struct failpoints **ret_points, struct pawl_error *err)
{
    static const char *const variables[] = { "PAWL_FAILPOINTS", "TL_FAILPOINTS" };
    struct failpoints *points = NULL;
    enum pawl_status st = failpoints_new(&points, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < 2 && st == PAWL_OK; i++) {
        const char *text = getenv(variables[i]);
        if (text != NULL)
            st = failpoints_add(points, variables[i], text, err);
    }
    if (st != PAWL_OK)
        failpoints_free(points);
    else
        *ret_points = points;
    return st;
}

void
failpoints_free(struct failpoints *points)
{
    if (points == NULL)
        return;
    for (size_t i = 0; i < points->n; i++)
        free(points->rules[i].name);
    free(points->rules);
    free(points);
}

const char *
failpoints_unknown(const struct failpoints *points)
{
    for (size_t i = 0; i < points->n; i++) {
        bool is_known = false;
        for (size_t j = 0; j < sizeof known_points / sizeof known_points[0]; j++)
            is_known = is_known || strcmp(points->rules[i].name, known_points[j]) == 0;
        if (!is_known)
            return points->rules[i].name;
    }
    return NULL;
}

static void
sleep_us(uint64_t us)
{
    struct timespec left = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

int
failpoints_evaluate(struct failpoints *points, const char *name)
{
    int fails = 0;
    for (size_t i = 0; i < points->n; i++) {
        struct rule *rule = &points->rules[i];
        if (strcmp(rule->name, name) != 0)
            continue;
        rule->seen++;
        if (rule->at != 0 && rule->seen != rule->at)
            continue;
        if (rule->action == ACTION_CRASH)
            _exit(CRASH_STATUS);
        if (rule->action == ACTION_SLEEP)
            sleep_us(rule->sleep_us);
        if (rule->action == ACTION_ERROR)
            fails = 1;
    }
    return fails;
}
