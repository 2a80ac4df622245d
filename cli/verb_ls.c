#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "pawl/convert.h"

struct row {
    const struct pawl_tensor_info *tensor;
    const struct pawl_model_file *file;
};

enum sort_key { SORT_FILE = 0, SORT_NAME = 1, SORT_BYTES = 2, SORT_OFFSET = 3 };

static int
compare_names(struct pawl_str a, struct pawl_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n > 0 ? memcmp(a.data, b.data, n) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int
by_name(const void *a, const void *b)
{
    return compare_names(((const struct row *)a)->tensor->name, ((const struct row *)b)->tensor->name);
}

static int
by_bytes(const void *a, const void *b)
{
    const struct pawl_tensor_info *x = ((const struct row *)a)->tensor, *y = ((const struct row *)b)->tensor;
    uint64_t m = x->end - x->begin, n = y->end - y->begin;
    return m != n ? (m < n ? 1 : -1) : by_name(a, b); /* the largest first */
}

static int
by_offset(const void *a, const void *b)
{
    const struct pawl_tensor_info *x = ((const struct row *)a)->tensor, *y = ((const struct row *)b)->tensor;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : by_name(a, b);
}

static bool
is_wanted(const struct arguments *arguments, struct pawl_str name)
{
    if (arguments->paths.n == 1)
        return true;
    for (size_t i = 1; i < arguments->paths.n; i++) {
        if (pawl_pattern_match(pawl_str_z(arguments->paths.items[i]), name))
            return true;
    }
    return false;
}

static void
sort_rows(const struct arguments *arguments, struct row *rows, size_t n)
{
    const char *sort = arguments->sort != NULL ? arguments->sort : arguments->tree ? "name" : "offset";
    qsort(rows, n, sizeof *rows,
          strcmp(sort, "name") == 0    ? by_name
          : strcmp(sort, "bytes") == 0 ? by_bytes
                                       : by_offset);
}

static void
write_document(const struct arguments *arguments, struct pawl_json *json, enum pawl_kind kind, const struct row *rows,
               size_t n)
{
    pawl_json_add_object(json);
    json_bool(json, "ok", true);
    json_text_z(json, "path", arguments->paths.items[0]);
    json_text_z(json, "kind", pawl_kind_name(kind));
    json_array(json, "tensors");
    for (size_t i = 0; i < n; i++) {
        const struct pawl_tensor_info *tensor = rows[i].tensor;
        uint64_t data = 8 + rows[i].file->header_bytes;
        pawl_json_add_object(json);
        json_text(json, "name", tensor->name);
        json_text_z(json, "dtype", pawl_dtype_name(tensor->dtype));
        json_array(json, "shape");
        for (uint32_t k = 0; k < tensor->rank; k++)
            pawl_json_add_u64(json, tensor->shape[k]);
        pawl_json_end_array(json);
        json_u64(json, "bytes", tensor->end - tensor->begin);
        json_text(json, "file", rows[i].file->name);
        json_u64(json, "begin", data + tensor->begin);
        json_u64(json, "end", data + tensor->end);
        pawl_json_end_object(json);
    }
    pawl_json_end_array(json);
    pawl_json_end_object(json);
}

static uint64_t
elements(const struct pawl_tensor_info *tensor)
{
    uint64_t n = 0, bytes = 0;
    (void)pawl_dtype_bytes(tensor->dtype, tensor->shape, tensor->rank, &n, &bytes, NULL);
    return n;
}

static void
print_total(const struct arguments *arguments, const struct row *rows, size_t n)
{
    uint64_t parameters = 0, bytes = 0;
    char counts[2][32], size[32];
    for (size_t i = 0; i < n; i++) {
        parameters += elements(rows[i].tensor);
        bytes += rows[i].tensor->end - rows[i].tensor->begin;
    }
    (void)printf("%s tensor%s, %s parameter%s, %s\n", text_count(n, counts[0]), n == 1 ? "" : "s",
                 text_count(parameters, counts[1]), parameters == 1 ? "" : "s",
                 arguments->exact_bytes ? text_count(bytes, size) : text_size(bytes, size));
}

static void
print_columns(const struct arguments *arguments, const struct output *out, const struct row *rows, size_t n)
{
    size_t name_columns = 4, shape_columns = 5, size_columns = 5;
    char shape[128], size[32];
    for (size_t i = 0; i < n; i++) {
        char *name = text_name(rows[i].tensor->name);
        text_shape(rows[i].tensor, shape, sizeof shape);
        uint64_t bytes = rows[i].tensor->end - rows[i].tensor->begin;
        size_t columns = text_columns(name);
        name_columns = columns > name_columns && columns <= 60 ? columns : name_columns;
        columns = strlen(shape);
        shape_columns = columns > shape_columns ? columns : shape_columns;
        columns = strlen(arguments->exact_bytes ? text_count(bytes, size) : text_size(bytes, size));
        size_columns = columns > size_columns ? columns : size_columns;
        free(name);
    }
    text_color(out, "1");
    text_pad("name", name_columns);
    (void)printf("  %-11s  ", "dtype");
    text_pad("shape", shape_columns);
    (void)printf("  %*s\n", (int)size_columns, "bytes");
    text_plain(out);
    for (size_t i = 0; i < n; i++) {
        const struct pawl_tensor_info *tensor = rows[i].tensor;
        char *name = text_name(tensor->name);
        uint64_t bytes = tensor->end - tensor->begin;
        text_shape(tensor, shape, sizeof shape);
        text_pad(name, name_columns);
        (void)printf("  %-11s  ", pawl_dtype_name(tensor->dtype));
        text_pad(shape, shape_columns);
        (void)printf("  %*s\n", (int)size_columns,
                     arguments->exact_bytes ? text_count(bytes, size) : text_size(bytes, size));
        free(name);
    }
}

/* Levels of the tree; what a name has beyond them is shown as one part. A header may hold a name of millions of dots, and every
 * level is a call and an indent. */
#define TREE_LEVELS_MAX 64

/* Bytes of the name up to and with the component that begins at `from`. */
static size_t
component_end(struct pawl_str name, size_t from, size_t depth)
{
    const char *dot =
        depth + 1 < TREE_LEVELS_MAX && from < name.len ? memchr(name.data + from, '.', name.len - from) : NULL;
    return dot != NULL ? (size_t)(dot - name.data) : name.len;
}

/* Names as a tree of their parts between dots, sums beside the branches. The rows are sorted by name. */
static void
print_tree(const struct arguments *arguments, const struct row *rows, size_t n, size_t from, size_t depth)
{
    char size[32], shape[128];
    for (size_t i = 0; i < n;) {
        struct pawl_str name = rows[i].tensor->name;
        size_t end = component_end(name, from, depth), m = i + 1;
        uint64_t bytes = rows[i].tensor->end - rows[i].tensor->begin;
        while (m < n && rows[m].tensor->name.len >= end && memcmp(rows[m].tensor->name.data, name.data, end) == 0 &&
               component_end(rows[m].tensor->name, from, depth) == end) {
            bytes += rows[m].tensor->end - rows[m].tensor->begin;
            m++;
        }
        char *part = text_name((struct pawl_str){ name.data + from, end - from });
        const char *shown = arguments->exact_bytes ? text_count(bytes, size) : text_size(bytes, size);
        (void)printf("%*s", (int)(2 * depth), "");
        text_pad(part, depth < 14 ? 30 - 2 * depth : 2);
        free(part);
        if (m == i + 1 && end == name.len) {
            text_shape(rows[i].tensor, shape, sizeof shape);
            (void)printf("  %-11s  %s  %s\n", pawl_dtype_name(rows[i].tensor->dtype), shape, shown);
        } else {
            (void)printf("  %s\n", shown);
            /* A name that ends here and others that go on below it: it comes first, having no more parts. */
            size_t skip = end == name.len ? 1 : 0;
            if (skip == 1) {
                text_shape(rows[i].tensor, shape, sizeof shape);
                (void)printf("%*s(itself)  %s  %s\n", (int)(2 * depth + 2), "", pawl_dtype_name(rows[i].tensor->dtype),
                             shape);
            }
            print_tree(arguments, rows + i + skip, m - i - skip, end + 1, depth + 1);
        }
        i = m;
    }
}

static int
run(const struct arguments *arguments, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *path = arguments->paths.items[0];
    struct pawl_model *model = NULL;
    enum pawl_kind kind = PAWL_KIND_UNKNOWN;
    enum pawl_status st = pawl_kind_of(pawl_str_z(path), &kind, &err);
    if (st == PAWL_OK && (kind == PAWL_KIND_TOKEN_SHARD || kind == PAWL_KIND_TOKEN_DIR)) {
        st = fault(&err, PAWL_ARGUMENT, "argument", path, "a %s has no tensors", pawl_kind_name(kind));
        fault_hint(&err, "pawl tokens info and pawl tokens cat look into it");
    }
    if (st == PAWL_OK)
        st = pawl_model_open(pawl_str_z(path), NULL, &model, &err);
    if (st != PAWL_OK)
        return output_error(out, path, &err);

    size_t n_tensors, n_files, n = 0;
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n_tensors);
    const struct pawl_model_file *files = pawl_model_files(model, &n_files);
    struct row *rows = calloc(n_tensors + 1, sizeof *rows);
    if (rows == NULL) {
        st = fault_memory(&err, (n_tensors + 1) * sizeof *rows);
    } else {
        for (size_t i = 0; i < n_tensors; i++) {
            if (is_wanted(arguments, tensors[i].name))
                rows[n++] = (struct row){ &tensors[i], &files[tensors[i].file] };
        }
        sort_rows(arguments, rows, n);
        if (out->is_json) {
            write_document(arguments, out->json, kind, rows, n);
        } else if (arguments->tree) {
            print_tree(arguments, rows, n, 0, 0);
            print_total(arguments, rows, n);
        } else {
            print_columns(arguments, out, rows, n);
            print_total(arguments, rows, n);
        }
        st = output_end(out, &err);
    }
    free(rows);
    pawl_model_close(model);
    return st == PAWL_OK ? EXIT_FINE : output_error(out, path, &err);
}

static const struct option options[] = {
    { "sort", NULL, "KEY", "name|bytes|offset", "the order (default: as in the files; bytes: the largest first)",
      OPTION_AT(sort), OPTION_CHOICE, 0, 0, 0 },
    { "tree", NULL, NULL, NULL, "names as a tree of their parts between dots", OPTION_AT(tree), OPTION_SWITCH, 0, 0,
      0 },
    { "bytes", NULL, NULL, NULL, "exact sizes, no units", OPTION_AT(exact_bytes), OPTION_SWITCH, 0, 0, 0 },
};

const struct verb verb_ls = {
    .name = "ls",
    .synopsis = "PATH [PATTERN...] [flags]",
    .summary = "the tensors of a model file, a sharded model, a checkpoint or a run",
    .description =
        "A PATTERN chooses by name as a shell does: * any bytes, ? one, [a-c] one of these, [!a-c] none of these.\n"
        "Of a checkpoint or a run the weights are listed; its optimizer is `pawl ls STEP/optimizer.safetensors`.\n"
        "In JSON begin and end are positions in the file.\n",
    .examples = "  pawl ls model.safetensors\n"
                "  pawl ls model.safetensors 'model.layers.*.weight' --sort bytes\n"
                "  pawl ls out/ckpt --tree\n"
                "  pawl ls model.safetensors --json | jq -r '.tensors[].name'\n",
    .table = TABLE(options),
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .path_name = "PATH",
    .run = run,
};
