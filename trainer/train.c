/* The run over token shards. The loop at the end is the program that the library is made for; what is above it is set-up. */
#include "trainer/train.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/bigram.h"
#include "trainer/files.h"
#include "trainer/progress.h"
#include "trainer/signals.h"

#define BATCH_IDS_MAX (UINT64_C(1) << 31) /* of one step: 16 GiB of ids in memory */

struct trainer {
    const struct train_shards_options *options;
    struct failpoints *failpoints;
    struct talk *talk;
    char root[FILES_PATH_MAX];

    struct pawl_stream *stream;
    struct pawl_state *state;
    struct pawl_run *run;
    struct progress *progress;
    struct optimizer optimizer;

    float *weight, *gradient;
    struct bigram_counts *counts; /* of the batch */
    uint32_t *inputs, *targets;

    int64_t step, tokens_seen;
    double loss; /* training loss of `step` */

    struct pawl_save *saving; /* in flight, with --async; NULL: none */
    /* Warnings of a save come from its thread; what talks to people belongs to one. */
    pthread_mutex_t warnings_lock;
    char **warnings;
    size_t n_warnings;
};

void
train_print_hex(double value, char ret_text[32])
{
    if (value == 0.0)
        (void)snprintf(ret_text, 32, "%s0x0.0p+0", signbit(value) ? "-" : "");
    else
        (void)snprintf(ret_text, 32, "%.13a", value);
}

static uint64_t
ids_per_step(const struct trainer *t)
{
    return t->options->batch * t->options->seq_len;
}

static enum pawl_status
check_options(const struct train_shards_options *options, struct pawl_error *err)
{
    if (options->batch > BATCH_IDS_MAX / options->seq_len)
        return fault(err, PAWL_ARGUMENT, "argument", NULL,
                     "%" PRIu64 " windows of %" PRIu64 " ids: a step takes at most %" PRIu64 " ids", options->batch,
                     options->seq_len, BATCH_IDS_MAX);
    if (options->max_steps > (uint64_t)INT64_MAX / (options->batch * options->seq_len))
        return fault(err, PAWL_ARGUMENT, "argument", NULL, "%" PRIu64 " steps see more ids than 63 bits can count",
                     options->max_steps);
    return PAWL_OK;
}

static enum pawl_status
allocate(struct trainer *t, struct pawl_error *err)
{
    size_t ids = (size_t)ids_per_step(t);
    t->weight = calloc(BIGRAM_WEIGHTS, sizeof *t->weight);
    t->gradient = calloc(BIGRAM_WEIGHTS, sizeof *t->gradient);
    t->counts = calloc(1, sizeof *t->counts);
    t->inputs = malloc(ids * sizeof *t->inputs);
    t->targets = malloc(ids * sizeof *t->targets);
    if (t->weight == NULL || t->gradient == NULL || t->counts == NULL || t->inputs == NULL || t->targets == NULL)
        return fault_memory(err, sizeof *t->counts + BIGRAM_WEIGHTS * 8 + ids * 8);
    bigram_init(t->weight, t->options->seed);
    return optimizer_init(&t->optimizer, t->options->optimizer, BIGRAM_WEIGHTS, t->options->lr, t->options->momentum,
                          err);
}

static enum pawl_status
open_stream(struct trainer *t, struct pawl_error *err)
{
    const struct train_shards_options *o = t->options;
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = o->seq_len, .batch = o->batch, .seed = o->seed,
                                                             .vocabulary = BIGRAM_IDS, .split = pawl_str_z(o->split));
    return pawl_stream_open_z(o->data, o->n_data, &options, &t->stream, err);
}

/* Everything that the run must not lose, said once: saving and restoring read the same list. */
static enum pawl_status
describe(struct trainer *t, struct pawl_error *err)
{
    static const uint64_t shape[2] = { BIGRAM_IDS, BIGRAM_IDS };
    enum pawl_status st = pawl_state_new(&t->state, err);
    if (st == PAWL_OK)
        st = pawl_state_tensor(t->state,
                               &PAWL_TENSOR(PAWL_MODEL, BIGRAM_NAME, PAWL_F32, t->weight, BIGRAM_IDS, BIGRAM_IDS), err);
    if (st == PAWL_OK)
        st = optimizer_describe(&t->optimizer, t->state, BIGRAM_NAME, shape, 2, err);
    if (st == PAWL_OK)
        st = pawl_state_number(t->state, PAWL_TRAINER, "tokens_seen", PAWL_I64, &t->tokens_seen, err);
    if (st == PAWL_OK)
        st = pawl_state_number(t->state, PAWL_TRAINER, "lr", PAWL_F64, &t->optimizer.lr, err);
    /* The loss of the last step: a run that is resumed at its end must still be able to say it. */
    if (st == PAWL_OK)
        st = pawl_state_number(t->state, PAWL_EXTRA, "loss", PAWL_F64, &t->loss, err);
    if (st == PAWL_OK)
        st = pawl_state_stream(t->state, t->stream, err);
    if (st == PAWL_OK)
        st = pawl_state_metadata(t->state, pawl_str_z("format"), pawl_str_z("tinyllm"), err);
    struct pawl_str config = bigram_config();
    if (st == PAWL_OK)
        st = pawl_state_file(t->state, pawl_str_z("config.json"), config.data, config.len, err);
    return st;
}

static int
on_failpoint(void *context, const char *name)
{
    struct trainer *t = context;
    return failpoints_evaluate(t->failpoints, name);
}

/* One that finds no memory is lost: it was none to stop for. */
static void
on_warning(void *context, const struct pawl_problem *problem)
{
    struct trainer *t = context;
    size_t size = strlen(problem->message) + strlen(problem->code) + 4;
    (void)pthread_mutex_lock(&t->warnings_lock);
    char *text = malloc(size);
    char **more = realloc(t->warnings, (t->n_warnings + 1) * sizeof *more);
    if (more != NULL)
        t->warnings = more;
    if (text != NULL && more != NULL) {
        (void)snprintf(text, size, "%s (%s)", problem->message, problem->code);
        t->warnings[t->n_warnings++] = text;
    } else {
        free(text);
    }
    (void)pthread_mutex_unlock(&t->warnings_lock);
}

static void
say_warnings(struct trainer *t)
{
    (void)pthread_mutex_lock(&t->warnings_lock);
    for (size_t i = 0; i < t->n_warnings; i++) {
        talk_warning(t->talk, "%s", t->warnings[i]);
        free(t->warnings[i]);
    }
    free(t->warnings);
    t->warnings = NULL;
    t->n_warnings = 0;
    (void)pthread_mutex_unlock(&t->warnings_lock);
}

static enum pawl_status
open_run(struct trainer *t, struct pawl_error *err)
{
    enum pawl_status st = files_join(t->options->out, "ckpt", t->root, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_run_options options =
        PAWL_RUN_OPTIONS(.keep = t->options->keep, .profile = PAWL_PROFILE_TINYLLM, .failpoint = on_failpoint,
                         .warning = on_warning, .context = t, .write_sums = t->options->sums);
    st = pawl_run_open_z(t->root, &options, &t->run, err);
    say_warnings(t);
    return st;
}

/* A step directory or a root that the caller names. */
static enum pawl_status
restore_from(struct trainer *t, int64_t *ret_step, struct pawl_report **ret_report, struct pawl_error *err)
{
    struct pawl_ckpt *ckpt = NULL;
    enum pawl_status st = pawl_ckpt_open(pawl_str_z(t->options->resume_from), NULL, &ckpt, ret_report, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_report *report = NULL;
    st = pawl_ckpt_restore(ckpt, t->state, NULL, &report, err);
    if (st == PAWL_OK)
        *ret_step = pawl_ckpt_step(ckpt);
    talk_report(t->talk, report);
    pawl_report_free(report);
    pawl_ckpt_close(ckpt);
    return st;
}

/* What a checkpoint says about the run must be what this run is. */
static enum pawl_status
check_restored(struct trainer *t, struct pawl_error *err)
{
    const struct train_shards_options *o = t->options;
    uint64_t per_step = ids_per_step(t);
    if (t->step > (int64_t)o->max_steps)
        return fault(err, PAWL_ARGUMENT, "argument", t->root,
                     "the checkpoint is of step %" PRId64 ", beyond --max-steps %" PRIu64, t->step, o->max_steps);
    if ((uint64_t)t->tokens_seen != (uint64_t)t->step * per_step) {
        enum pawl_status st = fault(err, PAWL_MISMATCH, "mismatch", t->root,
                                    "the checkpoint of step %" PRId64 " has seen %" PRId64 " tokens; %" PRIu64
                                    " windows of %" PRIu64 " ids make %" PRIu64,
                                    t->step, t->tokens_seen, o->batch, o->seq_len, (uint64_t)t->step * per_step);
        fault_hint(err, "give the --batch and --seq-len that the run began with");
        return st;
    }
    uint64_t seed = 0;
    if (o->has_seed && pawl_stream_seed(t->stream, &seed) && seed != o->seed) {
        enum pawl_status st =
            fault(err, PAWL_MISMATCH, "mismatch", t->root,
                  "the run has the seed %" PRIu64 ", and goes on with it: --seed %" PRIu64 " would change nothing",
                  seed, o->seed);
        fault_hint(err, "leave --seed out; a run with another seed begins in another --out");
        return st;
    }
    if (o->has_lr && t->optimizer.lr != o->lr) {
        talk_line(t->talk, "the learning rate is %g from step %" PRId64 " on; it was %g", o->lr, t->step + 1,
                  t->optimizer.lr);
        t->optimizer.lr = o->lr;
    }
    if (t->optimizer.momentum != o->momentum) {
        talk_line(t->talk, "the momentum is %g from step %" PRId64 " on; it was %g", o->momentum, t->step + 1,
                  t->optimizer.momentum);
        t->optimizer.momentum = o->momentum;
    }
    return PAWL_OK;
}

static enum pawl_status
refuse_used_root(struct trainer *t, struct pawl_error *err)
{
    bool has_steps;
    enum pawl_status st = pawl_run_has_steps(t->run, &has_steps, err);
    if (st == PAWL_OK && has_steps) {
        st = fault(err, PAWL_EXISTS, "exists", t->root, "expected a fresh root, found checkpoints of an earlier run");
        fault_hint(err, t->options->resume ? "--resume without a DIR continues it"
                                           : "--resume continues it; another --out begins anew");
        return st;
    }
    if (st == PAWL_OK && !t->options->replace)
        st = bigram_refuse_existing(t->options->out, err);
    return st;
}

static enum pawl_status
resume(struct trainer *t, struct pawl_error *err)
{
    struct pawl_report *report = NULL;
    const char *from = t->options->resume_from;
    enum pawl_status st = from != NULL ? restore_from(t, &t->step, &report, err)
                                       : pawl_run_restore(t->run, t->state, &t->step, &report, err);
    talk_report(t->talk, report);
    pawl_report_free(report);
    char shown[FILES_PATH_MAX];
    talk_escape(pawl_str_z(from != NULL ? from : t->root), shown, sizeof shown);
    if (st == PAWL_NOT_FOUND) {
        /* The place that was named has none; the run's own may have, as when DIR is the run and not its root. */
        st = from != NULL ? refuse_used_root(t, err) : PAWL_OK;
        if (st == PAWL_OK)
            talk_line(t->talk, "%s has no checkpoint: the run begins afresh", shown);
        return st;
    }
    if (st != PAWL_OK)
        return st;
    talk_line(t->talk, "resumed step %" PRId64 " from %s", t->step, shown);
    return check_restored(t, err);
}

static enum pawl_status
set_up(struct trainer *t, struct pawl_error *err)
{
    enum pawl_status st = check_options(t->options, err);
    if (st == PAWL_OK)
        st = open_stream(t, err);
    if (st == PAWL_OK)
        st = allocate(t, err);
    if (st == PAWL_OK)
        st = describe(t, err);
    if (st == PAWL_OK)
        st = open_run(t, err);
    if (st == PAWL_OK)
        st = t->options->resume ? resume(t, err) : refuse_used_root(t, err);
    if (st == PAWL_OK && t->options->async)
        st = pawl_run_prepare(t->run, t->state, err);
    if (st == PAWL_OK)
        st = progress_open(t->options->progress, t->talk, t->step, (int64_t)t->options->max_steps, &t->progress, err);
    return st;
}

static void
tear_down(struct trainer *t)
{
    pawl_state_free(t->state);
    pawl_stream_close(t->stream);
    optimizer_release(&t->optimizer);
    free(t->weight);
    free(t->gradient);
    free(t->counts);
    free(t->inputs);
    free(t->targets);
}

/* Count the pairs of the batch. The ids were checked when the shards were opened; a file that was changed since is found here. */
static enum pawl_status
count_batch(struct trainer *t, struct pawl_error *err)
{
    size_t n = (size_t)ids_per_step(t);
    memset(t->counts, 0, sizeof *t->counts);
    for (size_t i = 0; i < n; i++) {
        uint32_t from = t->inputs[i], to = t->targets[i];
        if ((from | to) >= BIGRAM_IDS)
            return fault(err, PAWL_CORRUPT, "id-range", NULL, "id %" PRIu32 " in a batch, the vocabulary has %d",
                         from > to ? from : to, BIGRAM_IDS);
        t->counts->of[from][to]++;
    }
    return PAWL_OK;
}

static enum pawl_status
train_step(struct trainer *t, struct pawl_error *err)
{
    enum pawl_status st = pawl_stream_next(t->stream, t->inputs, t->targets, err);
    if (st == PAWL_OK)
        st = count_batch(t, err);
    if (st != PAWL_OK)
        return st;
    t->loss = bigram_gradient(t->weight, t->counts, t->gradient);
    optimizer_step(&t->optimizer, t->weight, t->gradient);
    t->step++;
    t->tokens_seen += (int64_t)ids_per_step(t);
    progress_step(t->progress, t->step, t->loss, t->optimizer.lr, t->tokens_seen);
    return PAWL_OK;
}

/* Only a durable step is told. */
static enum pawl_status
tell_saved(struct trainer *t, int64_t step, struct pawl_error *err)
{
    char name[32], path[FILES_PATH_MAX];
    pawl_step_name(step, name);
    enum pawl_status st = files_join(t->root, name, path, err);
    if (st == PAWL_OK)
        progress_ckpt(t->progress, step, path);
    return st;
}

/* See how the save in flight does, or wait for its end. */
static enum pawl_status
look_after_save(struct trainer *t, bool is_waiting, struct pawl_error *err)
{
    enum pawl_stage stage;
    if (t->saving == NULL)
        return PAWL_OK;
    enum pawl_status st = pawl_save_stage(t->saving, &stage, err);
    if (st == PAWL_OK && !is_waiting && stage < PAWL_STAGE_DURABLE)
        return PAWL_OK;
    if (st == PAWL_OK)
        st = pawl_save_wait(t->saving, -1, err);
    int64_t step = pawl_save_step(t->saving);
    pawl_save_release(t->saving);
    t->saving = NULL;
    say_warnings(t);
    return st == PAWL_OK ? tell_saved(t, step, err) : st;
}

static enum pawl_status
save(struct trainer *t, struct pawl_error *err)
{
    if (t->options->async) {
        enum pawl_status st = look_after_save(t, true, err);
        return st == PAWL_OK ? pawl_run_save_async(t->run, t->state, t->step, NULL, &t->saving, err) : st;
    }
    enum pawl_status st = pawl_run_save(t->run, t->state, t->step, NULL, err);
    say_warnings(t);
    return st == PAWL_OK ? tell_saved(t, t->step, err) : st;
}

static enum pawl_status
after_step(struct trainer *t, struct pawl_error *err)
{
    if (failpoints_evaluate(t->failpoints, "train/after-step") == 0)
        return PAWL_OK;
    return fault(err, PAWL_IO, "io", NULL, "failpoint train/after-step after step %" PRId64, t->step);
}

static enum pawl_status
train_loop(struct trainer *t, struct pawl_error *err)
{
    int64_t steps = (int64_t)t->options->max_steps;
    uint64_t every = t->options->ckpt_every;
    while (t->step < steps) {
        enum pawl_status st = train_step(t, err);
        int stop = signals_pending();
        if (st == PAWL_OK && ((uint64_t)t->step % every == 0 || t->step == steps || stop != 0))
            st = save(t, err);
        if (st == PAWL_OK)
            st = look_after_save(t, stop != 0 || t->step == steps, err);
        if (st == PAWL_OK)
            st = after_step(t, err);
        if (st == PAWL_OK && stop != 0) {
            st = fault(err, PAWL_INTERRUPTED, "interrupted", t->root,
                       "stopped by %s after step %" PRId64 ", which is saved", signals_name(stop), t->step);
            fault_hint(err, "--resume continues the run");
        }
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* {"step", "tokens_seen", "loss", "loss_hex", "data_cursor", "params_sha256"}: no path and no time. */
static enum pawl_status
add_result(struct trainer *t, struct pawl_json *json, struct pawl_error *err)
{
    char hex[32], sha256[65];
    struct pawl_stream_cursor cursor;
    enum pawl_status st = bigram_sha256(t->weight, sha256, err);
    if (st != PAWL_OK)
        return st;
    train_print_hex(t->loss, hex);
    pawl_stream_cursor(t->stream, &cursor);
    pawl_json_add_object(json);
    pawl_json_add_key_z(json, "step");
    pawl_json_add_i64(json, t->step);
    pawl_json_add_key_z(json, "tokens_seen");
    pawl_json_add_i64(json, t->tokens_seen);
    pawl_json_add_key_z(json, "loss");
    pawl_json_add_f64(json, t->loss);
    pawl_json_add_key_z(json, "loss_hex");
    pawl_json_add_string_z(json, hex);
    pawl_json_add_key_z(json, "data_cursor");
    pawl_json_add_object(json);
    pawl_json_add_key_z(json, "shard");
    pawl_json_add_u64(json, cursor.shard);
    pawl_json_add_key_z(json, "offset");
    pawl_json_add_u64(json, cursor.offset);
    pawl_json_end_object(json);
    pawl_json_add_key_z(json, "params_sha256");
    pawl_json_add_string_z(json, sha256);
    pawl_json_end_object(json);
    return PAWL_OK;
}

/* final.json comes last: where it stands, the model stands too. */
static enum pawl_status
finish(struct trainer *t, struct pawl_json *result, struct pawl_error *err)
{
    static const char *const names[] = { "config.json", "model.safetensors", "final.json" };
    char paths[3][FILES_PATH_MAX];
    const char *outputs[3] = { paths[0], paths[1], paths[2] };
    struct pawl_str text;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < 3 && st == PAWL_OK; i++)
        st = files_join(t->options->out, names[i], paths[i], err);
    if (st == PAWL_OK)
        st = bigram_write(t->options->out, t->weight, t->options->replace || t->options->resume, err);
    if (st == PAWL_OK)
        st = add_result(t, result, err);
    if (st == PAWL_OK)
        st = pawl_json_text(result, &text, err);
    if (st != PAWL_OK)
        return st;
    char line[1024];
    if (text.len >= sizeof line)
        return fault(err, PAWL_LIMIT, "limit", NULL, "a result of %zu bytes, at most %zu", text.len, sizeof line - 1);
    memcpy(line, text.data, text.len);
    line[text.len] = '\n';
    st = files_publish(t->options->out, "final.json", (struct pawl_str){ line, text.len + 1 }, err);
    if (st != PAWL_OK)
        return st;
    progress_metric(t->progress, t->step, "tokens_per_second", progress_tokens_per_second(t->progress, t->tokens_seen));
    progress_done(t->progress, t->step, t->loss, t->tokens_seen, outputs, 3);
    return PAWL_OK;
}

enum pawl_status
train_shards(const struct train_shards_options *options, struct failpoints *failpoints, struct talk *talk,
             struct pawl_json *result, struct pawl_error *err)
{
    struct trainer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return fault_memory(err, sizeof *t);
    t->options = options;
    t->failpoints = failpoints;
    t->talk = talk;
    if (pthread_mutex_init(&t->warnings_lock, NULL) != 0) {
        free(t);
        return fault_memory(err, sizeof *t);
    }

    signals_catch();
    enum pawl_status st = set_up(t, err);
    if (st == PAWL_OK)
        st = train_loop(t, err);
    if (st == PAWL_OK)
        st = finish(t, result, err);
    /* After a failure a save may be in flight all the same, and become a step. */
    if (st != PAWL_OK)
        (void)look_after_save(t, true, NULL);

    /* An error of closing is told only when there was none before it. */
    enum pawl_status closed = progress_close(t->progress, st == PAWL_OK ? err : NULL);
    st = st == PAWL_OK ? closed : st;
    closed = pawl_run_close(t->run, st == PAWL_OK ? err : NULL);
    st = st == PAWL_OK ? closed : st;
    signals_restore();
    say_warnings(t);
    (void)pthread_mutex_destroy(&t->warnings_lock);
    tear_down(t);
    free(t);
    return st;
}
