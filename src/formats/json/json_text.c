/* The public writer of pawl/json.h: the inside one behind a handle that checks the order of calls. */
#include <math.h>
#include <stdlib.h>
#include "codec/utf8.h"
#include "formats/json/json.h"

struct pawl_json {
    struct pawl_buffer out;
    struct pawl_buffer open; /* '{' or '[' per open container */
    struct pawl_json_writer writer;
    const char *fault; /* the first misuse; NULL: none */
    bool has_value;    /* the outermost one is there, whole or begun */
};

enum pawl_status
pawl_json_new(enum pawl_json_style style, enum pawl_json_escape escape, struct pawl_json **ret_json,
              struct pawl_error *err)
{
    if (style > PAWL_JSON_SPACED || escape > PAWL_JSON_ASCII)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no such style of JSON: %d, %d", (int)style, (int)escape);
    struct pawl_json *json = calloc(1, sizeof *json);
    if (json == NULL)
        return pawl_fail_memory(err, sizeof *json);
    pawl_json_write_begin(&json->writer, &json->out, style, escape);
    *ret_json = json;
    return PAWL_OK;
}

void
pawl_json_free(struct pawl_json *json)
{
    if (json == NULL)
        return;
    pawl_buffer_release(&json->out);
    pawl_buffer_release(&json->open);
    free(json);
}

void
pawl_json_clear(struct pawl_json *json)
{
    pawl_buffer_clear(&json->out);
    pawl_buffer_clear(&json->open);
    pawl_json_write_begin(&json->writer, &json->out, json->writer.style, json->writer.escape);
    json->fault = NULL;
    json->has_value = false;
}

static char
innermost(const struct pawl_json *json)
{
    return json->open.len == 0 ? '\0' : json->open.data[json->open.len - 1];
}

/* Whether a value may come here; the first time that one may not is kept. */
static bool
may_add(struct pawl_json *json)
{
    if (json->fault != NULL)
        return false;
    if (innermost(json) == '{' && !json->writer.after_key)
        json->fault = "a value in an object without a key";
    else if (json->open.len == 0 && json->has_value)
        json->fault = "a second value behind the first";
    json->has_value = true;
    return json->fault == NULL;
}

static void
begin_container(struct pawl_json *json, char c)
{
    if (!may_add(json))
        return;
    pawl_buffer_add_char(&json->open, c);
    if (c == '{')
        pawl_json_write_object(&json->writer);
    else
        pawl_json_write_array(&json->writer);
}

static void
end_container(struct pawl_json *json, char c)
{
    if (json->fault != NULL || !pawl_buffer_ok(&json->open))
        return;
    if (innermost(json) != c) {
        json->fault = c == '{' ? "the end of an object that is not open" : "the end of an array that is not open";
        return;
    }
    if (json->writer.after_key) {
        json->fault = "a key without a value";
        return;
    }
    json->open.len--;
    if (c == '{')
        pawl_json_write_object_end(&json->writer);
    else
        pawl_json_write_array_end(&json->writer);
}

void
pawl_json_add_object(struct pawl_json *json)
{
    begin_container(json, '{');
}

void
pawl_json_end_object(struct pawl_json *json)
{
    end_container(json, '{');
}

void
pawl_json_add_array(struct pawl_json *json)
{
    begin_container(json, '[');
}

void
pawl_json_end_array(struct pawl_json *json)
{
    end_container(json, '[');
}

/* A valid form of any bytes: `text` itself when it is valid, else a copy in `copy`. */
static struct pawl_str
make_valid(struct pawl_str text, struct pawl_buffer *copy)
{
    size_t bad = pawl_utf8_first_bad(text.data, text.len);
    if (bad == text.len)
        return text;
    size_t at = 0;
    while (bad != text.len) {
        pawl_buffer_add(copy, text.data + at, bad - at);
        pawl_buffer_add_z(copy, "\xef\xbf\xbd");
        at = bad + 1;
        bad = at + pawl_utf8_first_bad(text.data + at, text.len - at);
    }
    pawl_buffer_add(copy, text.data + at, text.len - at);
    return pawl_buffer_str(copy);
}

static void
add_text(struct pawl_json *json, struct pawl_str text, bool is_key)
{
    struct pawl_buffer copy = PAWL_BUFFER_INIT;
    struct pawl_str valid = make_valid(text, &copy);
    if (!pawl_buffer_ok(&copy))
        json->out.is_failed = true;
    else if (is_key)
        pawl_json_write_key(&json->writer, valid);
    else
        pawl_json_write_string(&json->writer, valid);
    pawl_buffer_release(&copy);
}

void
pawl_json_add_key(struct pawl_json *json, struct pawl_str key)
{
    if (json->fault != NULL)
        return;
    if (innermost(json) != '{' || json->writer.after_key) {
        json->fault = innermost(json) != '{' ? "a key outside of an object" : "a key behind a key";
        return;
    }
    add_text(json, key, true);
}

void
pawl_json_add_string(struct pawl_json *json, struct pawl_str text)
{
    if (may_add(json))
        add_text(json, text, false);
}

void
pawl_json_add_u64(struct pawl_json *json, uint64_t value)
{
    if (may_add(json))
        pawl_json_write_u64(&json->writer, value);
}

void
pawl_json_add_i64(struct pawl_json *json, int64_t value)
{
    if (may_add(json))
        pawl_json_write_i64(&json->writer, value);
}

void
pawl_json_add_f64(struct pawl_json *json, double value)
{
    if (!may_add(json))
        return;
    if (isfinite(value)) {
        pawl_json_write_f64(&json->writer, value);
        return;
    }
    char text[32];
    size_t n = pawl_json_print_f64(value, text);
    pawl_json_write_string(&json->writer, pawl_str_make(text, n));
}

void
pawl_json_add_bool(struct pawl_json *json, bool value)
{
    if (may_add(json))
        pawl_json_write_bool(&json->writer, value);
}

void
pawl_json_add_null(struct pawl_json *json)
{
    if (may_add(json))
        pawl_json_write_null(&json->writer);
}

void
pawl_json_add_raw(struct pawl_json *json, struct pawl_str text)
{
    if (may_add(json))
        pawl_json_write_raw(&json->writer, text);
}

void
pawl_json_add_key_z(struct pawl_json *json, const char *key)
{
    pawl_json_add_key(json, pawl_str_z(key));
}

void
pawl_json_add_string_z(struct pawl_json *json, const char *text)
{
    if (text == NULL)
        pawl_json_add_null(json);
    else
        pawl_json_add_string(json, pawl_str_z(text));
}

enum pawl_status
pawl_json_text(struct pawl_json *json, struct pawl_str *ret_text, struct pawl_error *err)
{
    const char *fault = json->fault;
    if (!pawl_buffer_ok(&json->out) || !pawl_buffer_ok(&json->open) || !pawl_buffer_terminate(&json->out))
        return pawl_fail_memory(err, json->out.len);
    if (fault == NULL && json->open.len != 0)
        fault = innermost(json) == '{' ? "an object that is not ended" : "an array that is not ended";
    if (fault == NULL && !json->has_value)
        fault = "no value";
    if (fault != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "writing JSON: %s", fault);
    *ret_text = pawl_buffer_str(&json->out);
    return PAWL_OK;
}
