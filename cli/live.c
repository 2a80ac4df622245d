#include "cli/live.h"

#include <time.h>
#include "trainer/signals.h"

#define LIVE_AFTER_SECONDS 1.0 /* what is done before that needs no live line */
#define LIVE_EVERY_SECONDS 0.1

static double
now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct live
live_begin(struct output *out, const char *done)
{
    return (struct live){ out, done, now_seconds(), 0.0 };
}

double
live_seconds(const struct live *live)
{
    return now_seconds() - live->began;
}

int
live_progress(void *context, uint64_t done, uint64_t total)
{
    struct live *live = context;
    double now = now_seconds();
    if (now - live->began > LIVE_AFTER_SECONDS && now - live->drawn > LIVE_EVERY_SECONDS) {
        char texts[3][32];
        double rate = (double)done / (now - live->began);
        live->drawn = now;
        talk_live(&live->out->talk, "%s %s of %s, %s/s", live->done, text_size(done, texts[0]),
                  text_size(total, texts[1]), text_size((uint64_t)rate, texts[2]));
    }
    return signals_pending() != 0;
}
