/* cli/live.h: the live line of a verb that moves bytes, shown from a second on, and its wish to stop after a signal. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include "cli/output.h"

struct live {
    struct output *out;
    const char *done; /* "wrote", "packed", "copied" */
    double began, drawn;
};

struct live live_begin(struct output *out, const char *done);
double live_seconds(const struct live *live); /* since it began */

/* For the library's progress callbacks; `context` is the struct live. Not 0 once a signal has come. */
int live_progress(void *context, uint64_t done, uint64_t total);

#endif
