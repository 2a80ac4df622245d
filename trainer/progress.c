#include "trainer/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE_SECONDS 0.1  /* between two drawings of the live line */
#define PLAIN_SECONDS 5.0 /* between two lines in a pipe that no checkpoint calls for */

struct progress {
    FILE *file; /* NULL: none */
    char *path;
    struct pawl_json *json;
    struct talk *talk;
    int failed; /* errno of the first line that could not be written */
    int64_t first_step, last_step, first_tokens;
    bool has_tokens;
    double began, said;
    char ckpt[64]; /* "step-000050", the last durable one */
};

static double
seconds(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

enum pawl_status
progress_open(const char *path, struct talk *talk, int64_t first_step, int64_t last_step,
              struct progress **ret_progress, struct pawl_error *err)
{
    struct progress *progress = calloc(1, sizeof *progress);
    if (progress == NULL)
        return fault_memory(err, sizeof *progress);
    progress->talk = talk;
    progress->first_step = first_step;
    progress->last_step = last_step;
    progress->began = progress->said = seconds(CLOCK_MONOTONIC);
    enum pawl_status st = PAWL_OK;
    if (path != NULL) {
        st = pawl_json_new(PAWL_JSON_SPACED, PAWL_JSON_RAW, &progress->json, err);
        if (st == PAWL_OK && (progress->path = strdup(path)) == NULL)
            st = fault_memory(err, strlen(path) + 1);
        if (st == PAWL_OK && (progress->file = fopen(path, "ae")) == NULL)
            st = fault_os(err, errno, path, "open the progress file");
    }
    if (st != PAWL_OK) {
        (void)progress_close(progress, NULL);
        return st;
    }
    *ret_progress = progress;
    return PAWL_OK;
}

enum pawl_status
progress_close(struct progress *progress, struct pawl_error *err)
{
    if (progress == NULL)
        return PAWL_OK;
    talk_live_end(progress->talk);
    if (progress->file != NULL && fclose(progress->file) != 0 && progress->failed == 0)
        progress->failed = errno;
    enum pawl_status st = PAWL_OK;
    if (progress->failed != 0)
        st = fault_os(err, progress->failed, progress->path, "write the progress file");
    pawl_json_free(progress->json);
    free(progress->path);
    free(progress);
    return st;
}

/* Begin a line's object with its time and kind; false: there is no file. */
static bool
begin_event(struct progress *progress, const char *kind)
{
    if (progress->file == NULL)
        return false;
    pawl_json_clear(progress->json);
    pawl_json_add_object(progress->json);
    pawl_json_add_key_z(progress->json, "ts");
    pawl_json_add_f64(progress->json, round(seconds(CLOCK_REALTIME) * 1e6) / 1e6);
    pawl_json_add_key_z(progress->json, "kind");
    pawl_json_add_string_z(progress->json, kind);
    return true;
}

static void
add_integer(struct progress *progress, const char *key, int64_t value)
{
    pawl_json_add_key_z(progress->json, key);
    pawl_json_add_i64(progress->json, value);
}

/* A number that is not finite has no spelling in the schema: the key is left out. */
static void
add_real(struct progress *progress, const char *key, double value)
{
    if (!isfinite(value))
        return;
    pawl_json_add_key_z(progress->json, key);
    pawl_json_add_f64(progress->json, value);
}

static void
end_event(struct progress *progress)
{
    struct pawl_str text;
    pawl_json_end_object(progress->json);
    if (pawl_json_text(progress->json, &text, NULL) != PAWL_OK) {
        progress->failed = progress->failed != 0 ? progress->failed : ENOMEM;
        return;
    }
    bool is_written = fwrite(text.data, 1, text.len, progress->file) == text.len &&
                      fputc('\n', progress->file) != EOF && fflush(progress->file) == 0;
    if (!is_written && progress->failed == 0)
        progress->failed = errno != 0 ? errno : EIO;
}

double
progress_tokens_per_second(const struct progress *progress, int64_t tokens)
{
    double passed = seconds(CLOCK_MONOTONIC) - progress->began;
    return passed > 0.0 ? (double)(tokens - progress->first_tokens) / passed : 0.0;
}

static void
say_step(struct progress *progress, int64_t step, double loss, int64_t tokens)
{
    double now = seconds(CLOCK_MONOTONIC);
    struct talk *talk = progress->talk;
    if (now - progress->said < (talk->is_live ? LIVE_SECONDS : PLAIN_SECONDS))
        return;
    double passed = now - progress->began;
    double eta = step > progress->first_step
                     ? passed / (double)(step - progress->first_step) * (double)(progress->last_step - step)
                     : 0.0;
    char text[200];
    (void)snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  ETA %.0f s  %s%s", step,
                   progress->last_step, loss, progress_tokens_per_second(progress, tokens), eta,
                   progress->ckpt[0] != '\0' ? "saved " : "nothing saved yet", progress->ckpt);
    progress->said = now;
    if (talk->is_live)
        talk_live(talk, "%s", text);
    else
        talk_line(talk, "%s", text);
}

void
progress_step(struct progress *progress, int64_t step, double loss, double lr, int64_t tokens)
{
    if (!progress->has_tokens) {
        int64_t of_step = step > 0 ? tokens / step : 0;
        progress->first_tokens = tokens - of_step;
        progress->has_tokens = true;
    }
    if (begin_event(progress, "step")) {
        add_integer(progress, "step", step);
        add_real(progress, "loss", loss);
        add_real(progress, "lr", lr);
        add_integer(progress, "tokens", tokens);
        end_event(progress);
    }
    say_step(progress, step, loss, tokens);
}

void
progress_ckpt(struct progress *progress, int64_t step, const char *path)
{
    if (begin_event(progress, "ckpt")) {
        add_integer(progress, "step", step);
        pawl_json_add_key_z(progress->json, "ckpt");
        pawl_json_add_string_z(progress->json, path);
        end_event(progress);
    }
    const char *slash = strrchr(path, '/');
    (void)snprintf(progress->ckpt, sizeof progress->ckpt, "%s", slash != NULL ? slash + 1 : path);
    if (!progress->talk->is_live)
        talk_line(progress->talk, "step %" PRId64 "/%" PRId64 "  saved %s", step, progress->last_step, progress->ckpt);
}

void
progress_metric(struct progress *progress, int64_t step, const char *name, double value)
{
    if (!isfinite(value) || !begin_event(progress, "metric"))
        return;
    add_integer(progress, "step", step);
    pawl_json_add_key_z(progress->json, "name");
    pawl_json_add_string_z(progress->json, name);
    add_real(progress, "value", value);
    end_event(progress);
}

void
progress_done(struct progress *progress, int64_t step, double loss, int64_t tokens, const char *const *outputs,
              size_t n)
{
    if (!begin_event(progress, "done"))
        return;
    add_integer(progress, "step", step);
    add_real(progress, "loss", loss);
    add_integer(progress, "tokens", tokens);
    pawl_json_add_key_z(progress->json, "outputs");
    pawl_json_add_array(progress->json);
    for (size_t i = 0; i < n; i++)
        pawl_json_add_string_z(progress->json, outputs[i]);
    pawl_json_end_array(progress->json);
    end_event(progress);
}
