/* unit/model_tools.h: small models on disk, and what a report says of them. Each test has a fresh folder (os_fixture.h). */
#ifndef UNIT_MODEL_TOOLS_H
#define UNIT_MODEL_TOOLS_H

#include "unit/os_fixture.h"
#include "base/report.h"
#include "unit/st_tools.h"

static ST_UNUSED void
put_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* A safetensors file of that header and those data. */
static ST_UNUSED void
put_model(const char *path, const char *header, const void *data, size_t n)
{
    size_t bytes;
    unsigned char *file = st_file(pawl_str_z(header), n, &bytes);
    if (n != 0)
        memcpy(file + bytes - n, data, n);
    put_bytes(path, file, bytes);
    free(file);
}

static ST_UNUSED void
copy_file(const char *from, const char *to)
{
    size_t n;
    char *bytes = st_slurp(from, &n);
    put_bytes(to, bytes, n);
    free(bytes);
}

/* "code file tensor: message" of every problem, then "warning code file: message", a line each; static storage. */
static ST_UNUSED const char *
report_text(const struct pawl_report *report)
{
    static char text[20000];
    size_t n;
    size_t at = 0;
    text[0] = '\0';
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    for (size_t v = 0; v < n; v++) {
        for (size_t i = 0; i < verdicts[v].n_problems + verdicts[v].n_warnings; i++) {
            bool is_problem = i < verdicts[v].n_problems;
            const struct pawl_problem *p =
                is_problem ? &verdicts[v].problems[i] : &verdicts[v].warnings[i - verdicts[v].n_problems];
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %.*s%s%.*s: %s\n", is_problem ? "" : "warning ",
                                   p->code, (int)p->file.len, p->file.len == 0 ? "" : p->file.data,
                                   p->tensor.data == NULL ? "" : " ", (int)p->tensor.len,
                                   p->tensor.len == 0 ? "" : p->tensor.data, p->message);
            assert_true(at < sizeof text);
        }
    }
    return text;
}

#endif
