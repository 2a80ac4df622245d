/* pawl.metrics.json, read and printed: the metrics of a step, for retention. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "checkpoint/documents.h"
#include "checkpoint/fields.h"
#include "codec/utf8.h"

static int
compare_metrics(const void *a, const void *b)
{
    const struct pawl_metric *first = a;
    const struct pawl_metric *second = b;
    return pawl_str_compare(first->name, second->name);
}

enum pawl_status
pawl_metrics_parse(struct pawl_arena *arena, struct pawl_metrics_document *ret_document, const void *text, size_t bytes,
                   struct pawl_error *err)
{
    const struct pawl_json_value *object = NULL;
    struct pawl_metrics_document document = { 0 };

    enum pawl_status st = pawl_fields_parse(arena, text, bytes, &object, err);
    if (st != PAWL_OK)
        return st;
    document.metrics = pawl_arena_take_array(arena, object->n == 0 ? 1 : object->n, sizeof *document.metrics);
    if (document.metrics == NULL)
        return pawl_fail_memory(err, object->n * sizeof *document.metrics);
    document.n = object->n;
    for (size_t i = 0; i < object->n; i++) {
        const struct pawl_json_value *member = &object->first[i];
        struct pawl_show show;
        if (member->key.len == 0)
            return pawl_fail_at(err, PAWL_CORRUPT, "content", member->offset, "a name is empty");
        document.metrics[i].name = member->key;
        st = pawl_field_real(member, pawl_show_str(&show, member->key), &document.metrics[i].value, err);
        if (st != PAWL_OK)
            return st;
    }
    if (document.n > 1)
        qsort(document.metrics, document.n, sizeof *document.metrics, compare_metrics);
    *ret_document = document;
    return PAWL_OK;
}

bool
pawl_metrics_print(struct pawl_metrics_document *document, struct pawl_buffer *out)
{
    struct pawl_json_writer writer;

    if (document->n > 1)
        qsort(document->metrics, document->n, sizeof *document->metrics, compare_metrics);
    pawl_json_write_begin(&writer, out, PAWL_JSON_INDENTED, PAWL_JSON_RAW);
    pawl_json_write_object(&writer);
    for (size_t i = 0; i < document->n; i++) {
        pawl_json_write_key(&writer, document->metrics[i].name);
        pawl_json_write_f64(&writer, document->metrics[i].value);
    }
    pawl_json_write_object_end(&writer);
    (void)pawl_buffer_add_char(out, '\n');
    return pawl_buffer_ok(out);
}

static enum pawl_status
check_metric(const struct pawl_metric *metric, struct pawl_error *err)
{
    if (metric->name.len == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a metric's name is empty");
    if (pawl_utf8_first_bad(metric->name.data, metric->name.len) != metric->name.len)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the metric's name '%s' is not UTF-8",
                         PAWL_SHOW(metric->name));
    if (!isfinite(metric->value))
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "metric '%s' is %g, expected a finite number",
                         PAWL_SHOW(metric->name), metric->value);
    return PAWL_OK;
}

enum pawl_status
pawl_metrics_make(const struct pawl_metric *metrics, size_t n, struct pawl_buffer *out, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    if (metrics == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%zu metrics were promised and none given", n);
    struct pawl_metric *copy = calloc(n, sizeof *copy);
    if (copy == NULL)
        return pawl_fail_memory(err, n * sizeof *copy);
    memcpy(copy, metrics, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, compare_metrics);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        st = check_metric(&copy[i], err);
        if (st == PAWL_OK && i > 0 && pawl_str_equal(copy[i - 1].name, copy[i].name))
            st = pawl_fail(err, PAWL_ARGUMENT, "argument", "metric '%s' is given twice", PAWL_SHOW(copy[i].name));
    }
    struct pawl_metrics_document document = { copy, n };
    if (st == PAWL_OK && !pawl_metrics_print(&document, out))
        st = pawl_fail_memory(err, out->len);
    free(copy);
    return st;
}
