/*
 * cli/output.h: what goes where. Data on stdout, talk on stderr; with --json one document on one line on stdout and nothing
 * else there, also when the verb fails.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdio.h>

#include "cli/arguments.h"
#include "trainer/talk.h"

struct output {
    const char *verb; /* "ckpt ls" */
    bool is_json, is_verbose, has_color;
    struct pawl_json *json; /* the document under construction */
    struct talk talk;
    char who[64]; /* "pawl ckpt ls": the talk's */
};

enum pawl_status output_begin(struct output *out, const char *verb, const struct arguments *arguments,
                              struct pawl_error *err);
/* Print the document. PAWL_IO or PAWL_NO_SPACE when stdout did not take everything. */
enum pawl_status output_end(struct output *out, struct pawl_error *err);
void output_release(struct output *out);

/* Print `pawl VERB: PATH: message` and its hint, with --json the document of the error too; the exit status. */
int output_error(struct output *out, const char *path, const struct pawl_error *err);

/* Write out what stdout holds. Returns 0, also when its reader has gone, or the errno of a write that failed, now or before. */
int output_flush(void);

/* ---- pieces of documents ---- */

void json_text(struct pawl_json *json, const char *key, struct pawl_str value); /* data NULL: null */
void json_text_z(struct pawl_json *json, const char *key, const char *value);   /* NULL: null */
void json_u64(struct pawl_json *json, const char *key, uint64_t value);
void json_i64(struct pawl_json *json, const char *key, int64_t value);
void json_f64(struct pawl_json *json, const char *key, double value);
void json_bool(struct pawl_json *json, const char *key, bool value);
void json_null(struct pawl_json *json, const char *key);
void json_object(struct pawl_json *json, const char *key);
void json_array(struct pawl_json *json, const char *key);
/* [{"code", "message", "file", "tensor", "offset"}] */
void json_problems(struct pawl_json *json, const char *key, const struct pawl_problem *problems, size_t n);

/* ---- pieces of text ---- */

/* A name as a terminal may see it; the caller frees it. Never NULL but when memory ran out: then the program ends with that. */
char *text_name(struct pawl_str name);
char *text_name_z(const char *name);
/* "1.5 GiB", "12 bytes". */
const char *text_size(uint64_t bytes, char to[32]);
/* "1,234,567". */
const char *text_count(uint64_t count, char to[32]);
/* "[256, 256]" into `to`, cut with "..." at its end. */
void text_shape(const struct pawl_tensor_info *tensor, char *to, size_t size);
/* Columns of a terminal that UTF-8 text takes, one for each code point. */
size_t text_columns(const char *text);
/* Print text, and blanks up to `columns`. */
void text_pad(const char *text, size_t columns);
/* Begin and end a colour on stdout: "1" bold, "31" red, "32" green, "2" dim. */
void text_color(const struct output *out, const char *code);
void text_plain(const struct output *out);

/* Indented lines "code file: message" of problems. */
void text_problems(const struct output *out, const struct pawl_problem *problems, size_t n, const char *what);

/* ---- exit ---- */

enum exit_status {
    EXIT_FINE = 0,
    EXIT_NO = 1,
    EXIT_USAGE = 2,
    EXIT_MALFORMED = 65,
    EXIT_AGAIN = 75,
    EXIT_STOPPED = 130
};
int exit_of_status(enum pawl_status status);

#endif
