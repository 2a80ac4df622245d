/* Printing JSON: the inside writer, which trusts its caller, and quoting. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "codec/utf8.h"
#include "formats/json/json.h"
#include "formats/json/json_scan.h"

/* ---- strings ---- */

static void
add_escape(struct pawl_buffer *out, unsigned unit)
{
    static const char HEX[] = "0123456789abcdef";
    char text[6] = { '\\', 'u', HEX[unit >> 12 & 15], HEX[unit >> 8 & 15], HEX[unit >> 4 & 15], HEX[unit & 15] };
    pawl_buffer_add(out, text, sizeof text);
}

/* A byte below 0x20, a quote or a backslash. */
static void
add_special(struct pawl_buffer *out, unsigned char c)
{
    static const char SHORT[] = "btn\0fr"; /* by c - 8; 0x0b has none */
    char text[2] = { '\\', (char)c };
    if (c < 0x20) {
        text[1] = c >= 8 && c <= 13 ? SHORT[c - 8] : '\0';
        if (text[1] == '\0') {
            add_escape(out, c);
            return;
        }
    }
    pawl_buffer_add(out, text, sizeof text);
}

static bool
is_plain_ascii(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void
add_ascii(struct pawl_buffer *out, const unsigned char *at, const unsigned char *end)
{
    while (at != end) {
        const unsigned char *run = at;
        while (at != end && is_plain_ascii(*at))
            at++;
        pawl_buffer_add(out, run, (size_t)(at - run));
        if (at == end)
            return;
        if (*at < 0x7f) {
            add_special(out, *at++);
            continue;
        }
        uint32_t point;
        at += pawl_utf8_decode(at, &point);
        if (point >= 0x10000) {
            add_escape(out, 0xd800 + ((point - 0x10000) >> 10));
            add_escape(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
        } else {
            add_escape(out, point);
        }
    }
}

bool
pawl_json_quote(struct pawl_buffer *out, struct pawl_str text, enum pawl_json_escape escape)
{
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = text.len == 0 ? at : at + text.len;

    pawl_buffer_add_char(out, '"');
    if (escape == PAWL_JSON_ASCII) {
        add_ascii(out, at, end);
    } else {
        while (at != end) {
            const unsigned char *run = at;
            at = pawl_json_scan_plain(at, end);
            pawl_buffer_add(out, run, (size_t)(at - run));
            if (at != end)
                add_special(out, *at++);
        }
    }
    return pawl_buffer_add_char(out, '"');
}

/* ---- structure ---- */

void
pawl_json_write_begin(struct pawl_json_writer *writer, struct pawl_buffer *out, enum pawl_json_style style,
                      enum pawl_json_escape escape)
{
    *writer = (struct pawl_json_writer){ .out = out, .style = style, .escape = escape, .is_first = true };
}

static void
add_line(struct pawl_json_writer *writer)
{
    pawl_buffer_add_char(writer->out, '\n');
    for (unsigned i = 0; i < writer->depth; i++)
        pawl_buffer_add(writer->out, "  ", 2);
}

/* What stands before a key or a value: nothing behind a key and at the very top, else a comma and a new line. */
static void
begin_item(struct pawl_json_writer *writer)
{
    bool is_first = writer->is_first;
    writer->is_first = false;
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0)
        return;
    if (!is_first)
        pawl_buffer_add(writer->out, ", ", writer->style == PAWL_JSON_SPACED ? 2 : 1);
    if (writer->style == PAWL_JSON_INDENTED)
        add_line(writer);
}

static void
open_container(struct pawl_json_writer *writer, char c)
{
    begin_item(writer);
    pawl_buffer_add_char(writer->out, c);
    writer->depth++;
    writer->is_first = true;
}

static void
close_container(struct pawl_json_writer *writer, char c)
{
    writer->depth--;
    if (!writer->is_first && writer->style == PAWL_JSON_INDENTED)
        add_line(writer);
    pawl_buffer_add_char(writer->out, c);
    writer->is_first = false;
}

void
pawl_json_write_object(struct pawl_json_writer *writer)
{
    open_container(writer, '{');
}

void
pawl_json_write_object_end(struct pawl_json_writer *writer)
{
    close_container(writer, '}');
}

void
pawl_json_write_array(struct pawl_json_writer *writer)
{
    open_container(writer, '[');
}

void
pawl_json_write_array_end(struct pawl_json_writer *writer)
{
    close_container(writer, ']');
}

void
pawl_json_write_key(struct pawl_json_writer *writer, struct pawl_str key)
{
    begin_item(writer);
    pawl_json_quote(writer->out, key, writer->escape);
    pawl_buffer_add(writer->out, ": ", writer->style == PAWL_JSON_COMPACT ? 1 : 2);
    writer->after_key = true;
}

/* ---- scalars ---- */

void
pawl_json_write_string(struct pawl_json_writer *writer, struct pawl_str text)
{
    begin_item(writer);
    pawl_json_quote(writer->out, text, writer->escape);
}

void
pawl_json_write_raw(struct pawl_json_writer *writer, struct pawl_str text)
{
    begin_item(writer);
    pawl_buffer_add_str(writer->out, text);
}

void
pawl_json_write_u64(struct pawl_json_writer *writer, uint64_t value)
{
    begin_item(writer);
    pawl_buffer_printf(writer->out, "%" PRIu64, value);
}

void
pawl_json_write_i64(struct pawl_json_writer *writer, int64_t value)
{
    begin_item(writer);
    pawl_buffer_printf(writer->out, "%" PRId64, value);
}

void
pawl_json_write_f64(struct pawl_json_writer *writer, double value)
{
    char text[32];
    begin_item(writer);
    pawl_buffer_add(writer->out, text, pawl_json_print_f64(value, text));
}

void
pawl_json_write_bool(struct pawl_json_writer *writer, bool value)
{
    pawl_json_write_raw(writer, value ? PAWL_STR("true") : PAWL_STR("false"));
}

void
pawl_json_write_null(struct pawl_json_writer *writer)
{
    pawl_json_write_raw(writer, PAWL_STR("null"));
}

/* ---- a parsed value again ---- */

static int
compare_keys(const void *a, const void *b)
{
    const struct pawl_json_value *const *left = a;
    const struct pawl_json_value *const *right = b;
    return pawl_str_compare((*left)->key, (*right)->key);
}

/* The members by key in an array of their own; NULL when there is no memory (the buffer says so). */
static const struct pawl_json_value **
sorted_members(const struct pawl_json_value *object, struct pawl_buffer *out)
{
    const struct pawl_json_value **members = calloc(object->n, sizeof *members);
    if (members == NULL) {
        out->is_failed = true;
        return NULL;
    }
    for (size_t i = 0; i < object->n; i++)
        members[i] = &object->first[i];
    qsort(members, object->n, sizeof *members, compare_keys);
    return members;
}

static void
write_scalar(struct pawl_json_writer *writer, const struct pawl_json_value *value)
{
    switch (value->type) {
    case PAWL_JSON_STRING:
        pawl_json_write_string(writer, value->text);
        return;
    case PAWL_JSON_NUMBER:
        pawl_json_write_raw(writer, value->text);
        return;
    case PAWL_JSON_TRUE:
    case PAWL_JSON_FALSE:
        pawl_json_write_bool(writer, value->type == PAWL_JSON_TRUE);
        return;
    default:
        pawl_json_write_null(writer);
        return;
    }
}

void
pawl_json_write_value(struct pawl_json_writer *writer, const struct pawl_json_value *value, bool sort_keys)
{
    /* one frame per open container: the members that are left, in their own array when sorted */
    struct {
        const struct pawl_json_value *container;
        const struct pawl_json_value **sorted;
        size_t done;
    } frames[PAWL_JSON_DEPTH_MAX];
    size_t depth = 0;

    for (;;) {
        bool is_object = value->type == PAWL_JSON_OBJECT;
        if (is_object || value->type == PAWL_JSON_ARRAY) {
            open_container(writer, is_object ? '{' : '[');
            frames[depth].container = value;
            frames[depth].sorted = is_object && sort_keys && value->n > 1 ? sorted_members(value, writer->out) : NULL;
            frames[depth].done = 0;
            depth++;
        } else {
            write_scalar(writer, value);
        }
        while (depth > 0 && frames[depth - 1].done == frames[depth - 1].container->n) {
            depth--;
            close_container(writer, frames[depth].container->type == PAWL_JSON_OBJECT ? '}' : ']');
            free(frames[depth].sorted);
        }
        if (depth == 0)
            return;
        size_t i = frames[depth - 1].done++;
        const struct pawl_json_value *container = frames[depth - 1].container;
        value = frames[depth - 1].sorted != NULL ? frames[depth - 1].sorted[i] : &container->first[i];
        if (container->type == PAWL_JSON_OBJECT)
            pawl_json_write_key(writer, value->key);
    }
}
