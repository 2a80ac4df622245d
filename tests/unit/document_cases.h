/* unit/document_cases.h: texts for a parser of a document, with the message that each must give. */
#ifndef UNIT_DOCUMENT_CASES_H
#define UNIT_DOCUMENT_CASES_H

#include <string.h>
#include <stdio.h>
#include "base/arena.h"
#include "base/str.h"

struct document_case {
    const char *from; /* what stands in the good text ... */
    const char *to;   /* ... and what is put there instead; from NULL: the whole text */
    const char *message;
};

typedef enum pawl_status document_parse_fn(struct pawl_arena *arena, const void *text, size_t bytes,
                                           struct pawl_error *err);

/* Each case must be PAWL_CORRUPT, and say exactly that. */
static inline void
check_document_cases(document_parse_fn *parse, const char *good, const struct document_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[4096];
        const char *at = cases[i].from == NULL ? NULL : strstr(good, cases[i].from);
        struct pawl_arena arena = PAWL_ARENA_INIT;
        struct pawl_error err = PAWL_ERROR_INIT;
        if (cases[i].from == NULL) {
            (void)snprintf(text, sizeof text, "%s", cases[i].to);
        } else {
            assert_non_null(at);
            (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].to,
                           at + strlen(cases[i].from));
        }
        enum pawl_status st = parse(&arena, text, strlen(text), &err);
        if (st != PAWL_CORRUPT || strcmp(err.message, cases[i].message) != 0)
            fail_msg("case %zu ('%s'): %s: '%s', expected '%s'", i, cases[i].to, pawl_status_name(st), err.message,
                     cases[i].message);
        pawl_arena_release(&arena);
    }
}

#endif
