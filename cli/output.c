#include "cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum pawl_status
output_begin(struct output *out, const char *verb, const struct arguments *arguments, struct pawl_error *err)
{
    *out = (struct output){ .verb = verb };
    out->is_json = arguments->json;
    out->is_verbose = arguments->verbose;
    (void)snprintf(out->who, sizeof out->who, "pawl%s%s", verb[0] != '\0' ? " " : "", verb);

    const char *color = arguments->color != NULL ? arguments->color : "auto";
    const char *no_color = getenv("NO_COLOR");
    bool may = isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
    out->has_color = strcmp(color, "always") == 0 || (strcmp(color, "auto") == 0 && may);

    const char *term = getenv("TERM");
    bool is_terminal = isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
    const char *live = arguments->progress != NULL ? arguments->progress : "auto";
    out->talk.who = out->who;
    out->talk.is_quiet = arguments->quiet;
    out->talk.is_live = strcmp(live, "always") == 0 || (strcmp(live, "never") != 0 && is_terminal);
    /* A terminal acts on C1 controls and on marks of direction in a name; the escaped document means the same. */
    enum pawl_json_escape escape = isatty(STDOUT_FILENO) ? PAWL_JSON_ASCII : PAWL_JSON_RAW;
    return pawl_json_new(PAWL_JSON_SPACED, escape, &out->json, err);
}

enum pawl_status
output_end(struct output *out, struct pawl_error *err)
{
    talk_live_end(&out->talk);
    if (out->is_json) {
        struct pawl_str text;
        enum pawl_status st = pawl_json_text(out->json, &text, err);
        if (st != PAWL_OK)
            return st;
        (void)fwrite(text.data, 1, text.len, stdout);
        (void)fputc('\n', stdout);
    }
    int code = output_flush();
    return code == 0 ? PAWL_OK : fault_os(err, code, "standard output", "write");
}

int
output_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    int code = errno;
    if (code == 0) { /* an earlier write failed, and what it said is gone */
        struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0 };
        code = poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0 ? EPIPE : EIO;
    }
    return code == EPIPE ? 0 : code; /* nobody reads any more: as quiet as SIGPIPE would be */
}

void
output_release(struct output *out)
{
    pawl_json_free(out->json);
    out->json = NULL;
}

/* {"ok": false, "error": {"code", "message", "path", "offset", "hint"}} */
static void
print_error_document(struct output *out, const char *path, const struct pawl_error *err)
{
    struct pawl_json *json = out->json;
    struct pawl_str text;
    if (json == NULL)
        return;
    pawl_json_clear(json);
    pawl_json_add_object(json);
    json_bool(json, "ok", false);
    json_object(json, "error");
    json_text_z(json, "code", err->code[0] != '\0' ? err->code : pawl_status_name(err->status));
    json_text_z(json, "message", err->message);
    json_text_z(json, "path", path != NULL && path[0] != '\0' ? path : NULL);
    if (err->offset == PAWL_OFFSET_NONE)
        json_null(json, "offset");
    else
        json_u64(json, "offset", err->offset);
    json_text_z(json, "hint", err->hint[0] != '\0' ? err->hint : NULL);
    pawl_json_end_object(json);
    pawl_json_end_object(json);
    if (pawl_json_text(json, &text, NULL) == PAWL_OK)
        (void)printf("%.*s\n", (int)text.len, text.data);
    (void)fflush(stdout);
}

int
output_error(struct output *out, const char *path, const struct pawl_error *err)
{
    talk_live_end(&out->talk);
    (void)fflush(stdout); /* what was printed already stands before it */
    char *given = path != NULL ? text_name_z(path) : NULL;
    const char *shown = err->path[0] != '\0' ? err->path : given;
    (void)fprintf(stderr, "%s: %s%s%s\n", out->who, shown != NULL ? shown : "", shown != NULL ? ": " : "",
                  err->message[0] != '\0' ? err->message : pawl_status_name(err->status));
    if (err->hint[0] != '\0')
        (void)fprintf(stderr, "hint: %s\n", err->hint);
    if (out->is_verbose)
        (void)fprintf(stderr, "%s: code %s, status %s\n", out->who, err->code, pawl_status_name(err->status));
    if (out->is_json)
        print_error_document(out, err->path[0] != '\0' ? err->path : path, err);
    free(given);
    return exit_of_status(err->status);
}

/* ---- pieces of documents ---- */

void
json_text(struct pawl_json *json, const char *key, struct pawl_str value)
{
    pawl_json_add_key_z(json, key);
    if (value.data == NULL)
        pawl_json_add_null(json);
    else
        pawl_json_add_string(json, value);
}

void
json_text_z(struct pawl_json *json, const char *key, const char *value)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_string_z(json, value);
}

void
json_u64(struct pawl_json *json, const char *key, uint64_t value)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_u64(json, value);
}

void
json_i64(struct pawl_json *json, const char *key, int64_t value)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_i64(json, value);
}

void
json_f64(struct pawl_json *json, const char *key, double value)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_f64(json, value);
}

void
json_bool(struct pawl_json *json, const char *key, bool value)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_bool(json, value);
}

void
json_null(struct pawl_json *json, const char *key)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_null(json);
}

void
json_object(struct pawl_json *json, const char *key)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_object(json);
}

void
json_array(struct pawl_json *json, const char *key)
{
    pawl_json_add_key_z(json, key);
    pawl_json_add_array(json);
}

void
json_problems(struct pawl_json *json, const char *key, const struct pawl_problem *problems, size_t n)
{
    json_array(json, key);
    for (size_t i = 0; i < n; i++) {
        pawl_json_add_object(json);
        json_text_z(json, "code", problems[i].code);
        json_text_z(json, "message", problems[i].message);
        json_text(json, "file", problems[i].file);
        json_text(json, "tensor", problems[i].tensor);
        if (problems[i].offset == PAWL_OFFSET_NONE)
            json_null(json, "offset");
        else
            json_u64(json, "offset", problems[i].offset);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
}
