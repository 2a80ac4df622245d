/*
 * A few threads take the parts in their order; the thread that saves waits for news, tells progress, hears whether it is to be abandoned,
 * and goes through the finished parts in order.
 */
#include "checkpoint/crew.h"

#include <stdlib.h>
#include "checkpoint/hashing.h"
#include "os/lane.h"
#include "os/parallel.h"
#include "os/thread.h"

/* Two files of this size are worth their threads. */
#define LARGE_BYTES ((uint64_t)4 << 20)
/* More in flight would not make the disk faster. */
#define WORKERS_MAX PAWL_HASH_FILES_MAX
/* As when they are written one after the other. */
#define TELL_BYTES ((uint64_t)8 << 20)

struct crew;

struct crew_part {
    struct crew *crew;
    uint64_t told; /* of this part, to the crew */
    bool is_done, is_reserved;
    enum pawl_status status;
    struct pawl_error error;
};

struct crew {
    const struct pawl_parts *parts;
    const struct pawl_dir *dir;
    struct pawl_lanes *lanes;
    struct pawl_receipt *receipts;
    struct pawl_save_times *times;

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t news;
    struct crew_part *states;
    size_t next;      /* the part to begin */
    unsigned working; /* threads that have not ended */
    uint64_t done;    /* bytes of all parts */
    bool is_stopping; /* no further part is begun */
    bool is_canceled; /* and those under way are given up */
};

static bool
has_source(const struct pawl_part *part)
{
    if (part->text != NULL || part->image != NULL)
        return false;
    for (size_t i = 0; i < part->file->n; i++)
        if (part->tensors[part->file->items[i]]->source != NULL)
            return true;
    return false;
}

bool
pawl_crew_can(const struct pawl_parts *parts, const struct pawl_os *os)
{
    size_t n_large = 0;
    if (!os->takes_threads)
        return false;
    for (size_t i = 0; i < parts->n; i++) {
        if (has_source(&parts->parts[i]))
            return false;
        n_large += parts->parts[i].bytes >= LARGE_BYTES;
    }
    return n_large > 1;
}

static unsigned
hashing_threads(const struct pawl_parts *parts)
{
    struct pawl_hash_sizes sizes = { 0 };
    for (size_t i = 0; i < parts->n; i++)
        pawl_hash_sizes_add(&sizes, parts->parts[i].bytes);
    return pawl_hash_threads(&sizes);
}

/* A meter's owner, for the part that one thread writes. */
static int
count(void *context, uint64_t done, uint64_t total)
{
    struct crew_part *state = context;
    struct crew *crew = state->crew;
    (void)total;
    (void)pthread_mutex_lock(&crew->mutex);
    crew->done += done - state->told;
    state->told = done;
    bool is_canceled = crew->is_canceled;
    (void)pthread_cond_signal(&crew->news);
    (void)pthread_mutex_unlock(&crew->mutex);
    return is_canceled;
}

static void
write_next(struct crew *crew, size_t i)
{
    struct crew_part *state = &crew->states[i];
    struct pawl_meter meter = { .progress = count, .context = state, .times = crew->times };
    struct pawl_error err = PAWL_ERROR_INIT;
    bool is_reserved = true;
    enum pawl_status st =
        pawl_part_write(&crew->parts->parts[i], crew->dir, crew->lanes, &meter, &crew->receipts[i], &is_reserved, &err);
    (void)pthread_mutex_lock(&crew->mutex);
    state->status = st;
    state->error = err;
    state->is_reserved = is_reserved;
    state->is_done = true;
    crew->is_stopping = crew->is_stopping || st != PAWL_OK;
    (void)pthread_cond_signal(&crew->news);
    (void)pthread_mutex_unlock(&crew->mutex);
}

static void *
work(void *context)
{
    struct crew *crew = context;
    (void)pthread_mutex_lock(&crew->mutex);
    while (crew->next < crew->parts->n && !crew->is_stopping) {
        size_t i = crew->next++;
        (void)pthread_mutex_unlock(&crew->mutex);
        write_next(crew, i);
        (void)pthread_mutex_lock(&crew->mutex);
    }
    crew->working--;
    (void)pthread_cond_signal(&crew->news);
    (void)pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

/* Tell how far it is. The mutex is held before and after, not meanwhile. */
static enum pawl_status
tell(struct crew *crew, struct pawl_meter *meter, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    meter->done = crew->done;
    meter->told = crew->done;
    if (meter->progress == NULL)
        return PAWL_OK;
    (void)pthread_mutex_unlock(&crew->mutex);
    if (meter->progress(meter->context, meter->done, meter->total) != 0)
        st = pawl_fail(err, PAWL_CANCELED, "canceled", "the save was abandoned by its caller");
    (void)pthread_mutex_lock(&crew->mutex);
    return st;
}

static enum pawl_status
pass(struct crew *crew, const struct crew_part *state, pawl_crew_written_fn *written, void *context,
     struct pawl_error *err)
{
    if (state->status != PAWL_OK) {
        if (err != NULL)
            *err = state->error;
        return state->status;
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    enum pawl_status st = written(context, state->is_reserved, err);
    (void)pthread_mutex_lock(&crew->mutex);
    return st;
}

static enum pawl_status
follow(struct crew *crew, struct pawl_meter *meter, pawl_crew_written_fn *written, void *context,
       struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    size_t passed = 0;
    (void)pthread_mutex_lock(&crew->mutex);
    for (;;) {
        bool is_end = crew->working == 0;
        for (; st == PAWL_OK && passed < crew->parts->n && crew->states[passed].is_done; passed++)
            st = pass(crew, &crew->states[passed], written, context, err);
        if (st == PAWL_OK && (crew->done - meter->told >= TELL_BYTES || (is_end && crew->done != meter->told)))
            st = tell(crew, meter, err);
        if (st != PAWL_OK)
            crew->is_stopping = crew->is_canceled = true;
        if (is_end)
            break; /* all that was begun had been finished before the parts were looked at */
        bool is_news = (st == PAWL_OK && passed < crew->parts->n && crew->states[passed].is_done) ||
                       (st == PAWL_OK && crew->done - meter->told >= TELL_BYTES) || crew->working == 0;
        if (!is_news)
            (void)pthread_cond_wait(&crew->news, &crew->mutex);
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    return st;
}

enum pawl_status
pawl_crew_write(const struct pawl_parts *parts, const struct pawl_dir *dir, struct pawl_meter *meter,
                struct pawl_receipt *receipts, pawl_crew_written_fn *written, void *context, bool *ret_has_begun,
                struct pawl_error *err)
{
    struct crew crew = { .parts = parts, .dir = dir, .receipts = receipts, .times = meter->times };
    pthread_t threads[WORKERS_MAX];
    unsigned n = 0;
    *ret_has_begun = false;
    crew.states = calloc(parts->n, sizeof *crew.states);
    if (crew.states == NULL)
        return pawl_fail_memory(err, parts->n * sizeof *crew.states);
    for (size_t i = 0; i < parts->n; i++)
        crew.states[i].crew = &crew;
    enum pawl_status st = pawl_lanes_new(&crew.lanes, pawl_part_hash_two, hashing_threads(parts), err);
    if (st != PAWL_OK) {
        free(crew.states);
        return st;
    }
    (void)pthread_mutex_init(&crew.mutex, NULL);
    (void)pthread_cond_init(&crew.news, NULL);
    (void)pthread_mutex_lock(&crew.mutex); /* until all are there: the count is not 0 before the end */
    while (n < WORKERS_MAX && n < parts->n && pawl_thread_begin(&threads[n], work, &crew) == 0)
        n++;
    crew.working = n;
    (void)pthread_mutex_unlock(&crew.mutex);
    *ret_has_begun = n != 0;
    if (n != 0)
        st = follow(&crew, meter, written, context, err);
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_cond_destroy(&crew.news);
    (void)pthread_mutex_destroy(&crew.mutex);
    pawl_lanes_free(crew.lanes);
    free(crew.states);
    return st;
}
