/* Whole files of the reference: read, compared with what is known of them, and planned again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "unit/st_tools.h"

#define FILES PAWL_GOLDEN "/safetensors/files/"

struct golden {
    char *path;
    const char *expect;
    bool is_canonical;
    bool has_metadata;
    char *bytes;
    size_t n;
    struct pawl_st_header header;
    bool is_open;
    size_t tensors_seen, pairs_seen;
};

/* The same tensors and metadata, in reversed order, give the same header. */
static void
plan_again(const struct golden *g)
{
    const struct pawl_st_header *h = &g->header;
    struct pawl_st_item *items = calloc(h->n + 1, sizeof *items);
    struct pawl_pair *pairs = calloc(h->n_metadata + 1, sizeof *pairs);
    struct pawl_st_plan plan;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_non_null(items);
    assert_non_null(pairs);
    for (size_t i = 0; i < h->n; i++) {
        const struct pawl_tensor_info *t = &h->tensors[h->n - 1 - i];
        items[i] = (struct pawl_st_item){ t->name, t->dtype, t->rank, t->shape };
    }
    for (size_t i = 0; i < h->n_metadata; i++)
        pairs[i] = h->metadata[h->n_metadata - 1 - i];
    assert_int_equal(pawl_st_plan(&plan, items, h->n, pairs, h->n_metadata, h->has_metadata, 0, &err), PAWL_OK);
    if (g->is_canonical)
        assert_int_equal(plan.file_bytes, g->n);
    bool is_same = plan.prefix.len == h->data_begin && memcmp(plan.prefix.data, g->bytes, plan.prefix.len) == 0;
    if (is_same != g->is_canonical)
        fail_msg("%s: planned %s", g->path, is_same ? "the same bytes, against the manifest" : "other bytes");
    for (size_t i = 0; g->is_canonical && i < h->n; i++)
        assert_int_equal(plan.begins[h->n - 1 - i], h->tensors[i].begin);
    pawl_st_plan_release(&plan);
    free(items);
    free(pairs);
}

static void
finish(struct golden *g)
{
    if (g->path == NULL)
        return;
    if (g->is_open) {
        assert_int_equal(g->header.n, g->tensors_seen);
        assert_int_equal(g->header.n_metadata, g->pairs_seen);
        assert_int_equal(g->header.has_metadata, g->has_metadata);
        plan_again(g);
        pawl_st_release(&g->header);
    }
    free(g->bytes);
    *g = (struct golden){ 0 };
}

static void
begin(struct golden *g, char *line)
{
    char full[512];
    g->path = st_field(&line);
    size_t size = (size_t)strtoull(st_field(&line), NULL, 10);
    (void)st_field(&line); /* the hash: the manifest's own checker looks at it */
    g->expect = st_field(&line);
    g->is_canonical = *st_field(&line) == '1';
    const char *length = st_field(&line);
    g->has_metadata = strcmp(st_field(&line), "present") == 0;
    snprintf(full, sizeof full, FILES "%s", g->path);
    g->bytes = st_slurp(full, &g->n);
    assert_int_equal(g->n, size);

    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_st_read_memory(&g->header, g->bytes, g->n, NULL, &err);
    g->is_open = st == PAWL_OK;
    const char *code = strcmp(g->expect, "offset") == 0 ? "overlap" : g->expect;
    if (strcmp(st == PAWL_OK ? "ok" : err.code, code) != 0)
        fail_msg("%s: expected %s, found %s: %s", g->path, g->expect, err.code, err.message);
    if (g->is_open)
        assert_int_equal(g->header.header_bytes, strtoull(length, NULL, 10));

    /* the same through a file, found by its path */
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_st_header h;
    struct pawl_error file_err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_file_open_path(&file, pawl_os_posix(), full, NULL), PAWL_OK);
    assert_int_equal(pawl_st_read(&h, &file, NULL, &file_err), st);
    assert_string_equal(file_err.message, err.message);
    assert_string_equal(file_err.hint, err.hint);
    assert_int_equal(h.n, g->header.n);
    if (st != PAWL_OK)
        assert_string_equal(file_err.path, full);
    pawl_st_release(&h);
    pawl_file_release(&file);
}

static void
check_tensor(struct golden *g, char *line)
{
    struct pawl_str name = st_unhex(st_field(&line));
    const char *dtype = st_field(&line);
    char *shape = st_field(&line);
    assert_in_range(g->tensors_seen, 0, g->header.n - 1);
    const struct pawl_tensor_info *t = &g->header.tensors[g->tensors_seen++];
    assert_true(pawl_str_equal(t->name, name));
    assert_ptr_equal(pawl_st_find(&g->header, name), t);
    assert_string_equal(pawl_dtype_name(t->dtype), dtype);
    size_t rank = 0;
    for (char *dim = strcmp(shape, "-") == 0 ? NULL : shape; dim != NULL && *dim != '\0'; rank++) {
        assert_true(rank < t->rank);
        assert_int_equal(t->shape[rank], strtoull(dim, &dim, 10));
        dim += *dim == 'x';
    }
    assert_int_equal(rank, t->rank);
    assert_int_equal(t->begin, strtoull(st_field(&line), NULL, 10));
    assert_int_equal(t->end, strtoull(st_field(&line), NULL, 10));
    free((char *)name.data);
}

static void
check_pair(struct golden *g, char *line)
{
    struct pawl_str key = st_unhex(st_field(&line));
    struct pawl_str value = st_unhex(st_field(&line));
    const struct pawl_str *found = pawl_st_metadata(&g->header, key);
    assert_non_null(found);
    assert_true(pawl_str_equal(*found, value));
    g->pairs_seen++;
    free((char *)key.data);
    free((char *)value.data);
}

/*
 * Goal: files by the reference are read as they are, broken ones get the right code, from memory and from a file alike; and
 * canonical ones come out of the planner byte for byte, others never do. Method: the manifest of the golden files.
 */
static void
golden_files(void **state)
{
    (void)state;
    size_t n;
    size_t files = 0;
    char *list = st_slurp(FILES "manifest.tsv", &n);
    struct golden g = { 0 };
    for (char *line = strtok(list, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *at = line;
        const char *kind = st_field(&at);
        if (strcmp(kind, "file") == 0) {
            finish(&g);
            begin(&g, at);
            files++;
        } else if (strcmp(kind, "tensor") == 0) {
            check_tensor(&g, at);
        } else {
            check_pair(&g, at);
        }
    }
    finish(&g);
    free(list);
    assert_int_equal(files, 65);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden_files) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
