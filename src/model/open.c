/* What is at a path, as far as models in safetensors go: a file, an index, a directory of either. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/options.h"
#include "model/index.h"
#include "model/model.h"
#include "os/path.h"

#define INDEX_ENDING ".safetensors.index.json"
#define FILE_ENDING ".safetensors"

/* What pawl_st_recognise wants to see. */
#define LOOK_BYTES ((size_t)512)

enum pawl_status
pawl_set_options_of(enum pawl_mode mode, enum pawl_profile profile, uint64_t header_bytes_max,
                    struct pawl_set_options *ret_options, struct pawl_error *err)
{
    struct pawl_set_options options = { .use_own_codes = true };
    switch (mode) {
    case PAWL_MODE_STRICT:
        options.st.mode = PAWL_ST_STRICT;
        break;
    case PAWL_MODE_COMPAT:
        options.st.mode = PAWL_ST_COMPAT;
        break;
    case PAWL_MODE_LINT:
        options.st.mode = PAWL_ST_LINT;
        break;
    default:
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no mode", (int)mode);
    }
    switch (profile) {
    case PAWL_PROFILE_NONE:
        break;
    case PAWL_PROFILE_TINYLLM:
        options.st.dtypes = UINT32_C(1) << PAWL_F32;
        break;
    case PAWL_PROFILE_COURSE:
        options.st.dtypes = UINT32_C(1) << PAWL_F32 | UINT32_C(1) << PAWL_F16 | UINT32_C(1) << PAWL_BF16 |
                            UINT32_C(1) << PAWL_F8_E4M3 | UINT32_C(1) << PAWL_I8 | UINT32_C(1) << PAWL_U8 |
                            UINT32_C(1) << PAWL_I32;
        break;
    default:
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no profile", (int)profile);
    }
    options.st.header_bytes_max = header_bytes_max;
    *ret_options = options;
    return PAWL_OK;
}

enum pawl_status
pawl_set_check_profile(const struct pawl_set *set, enum pawl_profile profile, struct pawl_error *err)
{
    if (profile != PAWL_PROFILE_TINYLLM)
        return PAWL_OK;
    for (size_t i = 0; i < set->n_files; i++) {
        const struct pawl_str *format = pawl_st_metadata(&set->files[i].header, PAWL_STR("format"));
        if (format != NULL && pawl_str_equal(*format, PAWL_STR("tinyllm")))
            continue;
        enum pawl_status st =
            format == NULL
                ? pawl_fail(err, PAWL_CORRUPT, "content",
                            "the metadata of '%s' have no format, and the profile wants tinyllm",
                            PAWL_SHOW(set->files[i].name))
                : pawl_fail(err, PAWL_CORRUPT, "content", "the format of '%s' is '%s', and the profile wants tinyllm",
                            PAWL_SHOW(set->files[i].name), PAWL_SHOW(*format));
        pawl_error_path(err, pawl_str_z(set->files[i].file.path));
        return st;
    }
    return PAWL_OK;
}

/* Lint warnings of a file go where the report is; those of shards are named by who opens them. */
struct lint {
    struct pawl_report *report;
    struct pawl_str name;
};

static void
warn(void *context, const char *code, struct pawl_str tensor, uint64_t offset, const char *message)
{
    const struct lint *lint = context;
    (void)tensor; /* the message names it */
    (void)offset;
    pawl_report_warning(lint->report, code, lint->name, "%s", message);
}

/* ---- which file of a directory ---- */

/* The entry that ends so; NULL when there is none. *ret_n: how many there are. */
static const char *
entry_ending(const struct pawl_dir_list *list, struct pawl_str ending, size_t *ret_n)
{
    const char *found = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct pawl_str name = pawl_str_z(list->entries[i].name);
        if (list->entries[i].kind == PAWL_OS_DIR || list->entries[i].kind == PAWL_OS_OTHER ||
            !pawl_str_ends(name, ending))
            continue;
        if (++*ret_n == 1)
            found = list->entries[i].name;
    }
    return found;
}

static const char *
entry_named(const struct pawl_dir_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->entries[i].kind != PAWL_OS_DIR && strcmp(list->entries[i].name, name) == 0)
            return list->entries[i].name;
    }
    return NULL;
}

enum pawl_status
pawl_model_choose(const struct pawl_dir_list *list, const char *path, const char **ret_name, bool *ret_is_index,
                  struct pawl_error *err)
{
    size_t n_indexes;
    size_t n_files;
    const char *index = entry_ending(list, PAWL_STR(INDEX_ENDING), &n_indexes);
    const char *file = entry_ending(list, PAWL_STR(FILE_ENDING), &n_files);
    const char *usual_index = entry_named(list, "model" INDEX_ENDING);
    const char *usual_file = entry_named(list, "model" FILE_ENDING);

    if (usual_index != NULL || n_indexes == 1) {
        *ret_name = usual_index != NULL ? usual_index : index;
        *ret_is_index = true;
        return PAWL_OK;
    }
    struct pawl_str base;
    uint32_t k;
    uint32_t n;
    if (n_indexes == 0 && usual_file == NULL && n_files == 1 && pawl_shard_number(pawl_str_z(file), &base, &k, &n) &&
        n > 1) {
        /* A part of a model is none: what an interrupted copy or conversion can leave. */
        (void)pawl_fail(err, PAWL_CORRUPT, "not-safetensors",
                        "the directory holds shard %" PRIu32 " of %" PRIu32 ", '%s', without the others and the index",
                        k, n, PAWL_SHOW(pawl_str_z(file)));
        pawl_error_path(err, pawl_str_z(path));
        return PAWL_CORRUPT;
    }
    if (n_indexes == 0 && (usual_file != NULL || n_files == 1)) {
        *ret_name = usual_file != NULL ? usual_file : file;
        *ret_is_index = false;
        return PAWL_OK;
    }
    if (n_indexes > 1) {
        (void)pawl_fail(err, PAWL_CORRUPT, "not-safetensors",
                        "the directory holds %zu indexes and none is model" INDEX_ENDING, n_indexes);
        pawl_error_hint(err, "name one: '%s'", PAWL_SHOW(pawl_str_z(index)));
    } else if (n_files > 1) {
        (void)pawl_fail(
            err, PAWL_CORRUPT, "not-safetensors",
            "the directory holds %zu safetensors files, none is model" FILE_ENDING ", and there is no index", n_files);
        pawl_error_hint(err, "name one of them, or make the index: pawl index DIR");
    } else {
        (void)pawl_fail(err, PAWL_CORRUPT, "not-safetensors", "the directory holds no index and no safetensors file");
    }
    pawl_error_path(err, pawl_str_z(path));
    return PAWL_CORRUPT;
}

static enum pawl_status
open_directory(const struct pawl_dir *dir, const struct pawl_set_options *options, struct lint *lint,
               struct pawl_set *set, struct pawl_error *err)
{
    struct pawl_dir_list list = { NULL, 0 };
    const char *name;
    bool is_index;
    enum pawl_status st = pawl_dir_list(dir, &list, err);
    if (st == PAWL_OK)
        st = pawl_model_choose(&list, dir->path, &name, &is_index, err);
    if (st == PAWL_OK && is_index) {
        st = pawl_set_open_index(set, dir, name, options, lint->report, err);
    } else if (st == PAWL_OK) {
        lint->name = pawl_str_z(name);
        st = pawl_set_open_file(set, dir, name, options, err);
    }
    pawl_dir_list_release(&list);
    return st;
}

/* ---- a file ---- */

/* Is it an index? Only what is JSON is asked; a text whose map stands behind the first bytes is read for it. */
static bool
is_index_text(const struct pawl_file *file, const char *code, enum pawl_status *ret_st, struct pawl_error *err)
{
    *ret_st = PAWL_OK;
    if (strcmp(code, "safetensors-index") == 0)
        return true;
    if (strcmp(code, "json") != 0 || file->bytes > PAWL_INDEX_BYTES_MAX)
        return false;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_index index;
    bool is_index = false;
    *ret_st = pawl_file_read_all(file, PAWL_INDEX_BYTES_MAX, &text, err);
    if (*ret_st == PAWL_OK) {
        struct pawl_error own = PAWL_ERROR_INIT;
        enum pawl_status st = pawl_index_parse(&arena, &index, text.data, text.len, &own);
        is_index = st == PAWL_OK;
        if (pawl_status_is_machine_fault(st)) {
            *ret_st = st;
            if (err != NULL)
                *err = own;
        }
    }
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
    return is_index;
}

static enum pawl_status
open_index_path(const struct pawl_os *os, const char *path, struct pawl_set_options options, struct pawl_report *report,
                struct pawl_set *set, struct pawl_error *err)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    char *folder = NULL;
    char *name = NULL;
    bool has_slash;
    options.follow_any = true;
    enum pawl_status st = pawl_path_split(path, &folder, &name, &has_slash, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&dir, os, folder, err);
    if (st == PAWL_OK)
        st = pawl_set_open_index(set, &dir, name, &options, report, err);
    pawl_dir_release(&dir);
    free(folder);
    free(name);
    return st;
}

static enum pawl_status
open_file_path(const struct pawl_os *os, const char *path, const struct pawl_set_options *options,
               struct pawl_report *report, enum pawl_kind *ret_kind, struct pawl_set *set, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    unsigned char look[LOOK_BYTES];
    const char *code = NULL;
    enum pawl_status st = pawl_file_open_path(&file, os, path, err);
    if (st != PAWL_OK)
        return st;
    size_t n = file.bytes < sizeof look ? (size_t)file.bytes : sizeof look;
    st = n == 0 ? PAWL_OK : pawl_file_read(&file, 0, look, n, err);
    if (st != PAWL_OK)
        goto out;
    struct pawl_error said = PAWL_ERROR_INIT;
    st = pawl_st_recognise(look, n, file.bytes, &code, &said);
    const char *slash = strrchr(path, '/');
    if (st != PAWL_OK && strcmp(code, "llmcp35") == 0) {
        *ret_kind = PAWL_KIND_LLMCP35;
        st = pawl_set_adopt_llmcp35(set, os, &file, slash == NULL ? path : slash + 1, err);
        goto out;
    }
    if (st != PAWL_OK) {
        enum pawl_status read_st;
        bool is_index = is_index_text(&file, code, &read_st, err);
        if (read_st != PAWL_OK)
            st = read_st;
        else if (!is_index && err != NULL)
            *err = said;
        if (is_index) {
            *ret_kind = PAWL_KIND_SAFETENSORS_INDEX;
            st = open_index_path(os, path, *options, report, set, err);
        }
        goto out;
    }
    st = pawl_set_adopt_file(set, os, &file, slash == NULL ? path : slash + 1, options, err);
out:
    if (st != PAWL_OK)
        pawl_error_path(err, pawl_str_z(path));
    pawl_file_release(&file);
    return st;
}

/* ---- either ---- */

enum pawl_status
pawl_model_open_plain(const struct pawl_os *os, struct pawl_str path, const struct pawl_model_options *options,
                      struct pawl_report *report, struct pawl_model **ret_model, struct pawl_error *err)
{
    struct pawl_model_options known = PAWL_MODEL_OPTIONS(.mode = PAWL_MODE_STRICT);
    struct pawl_set_options set_options;
    struct pawl_set set = PAWL_SET_INIT;
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct lint lint = { report, PAWL_NO_STR };
    enum pawl_kind kind = PAWL_KIND_SAFETENSORS;
    enum pawl_status st = PAWL_OK;

    if (options != NULL)
        st = pawl_options_take(&known, sizeof known, options, options->size, "struct pawl_model_options", err);
    if (st == PAWL_OK)
        st = pawl_set_options_of(known.mode, known.profile, known.header_bytes_max, &set_options, err);
    if (st != PAWL_OK)
        return st;
    if (path.len == 0 || memchr(path.data, 0, path.len) != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    char *text = pawl_str_dup(path);
    if (text == NULL)
        return pawl_fail_memory(err, path.len);
    const char *slash = strrchr(text, '/');
    lint.name = pawl_str_z(slash == NULL ? text : slash + 1);
    set_options.st.warn = warn;
    set_options.st.warn_context = &lint;

    struct pawl_error not_dir = PAWL_ERROR_INIT;
    st = pawl_dir_open_path(&dir, os, text, &not_dir);
    if (st == PAWL_OK) {
        kind = PAWL_KIND_SAFETENSORS_INDEX;
        st = open_directory(&dir, &set_options, &lint, &set, err);
    } else if (st == PAWL_NO_FILE) { /* also of a file */
        st = open_file_path(os, text, &set_options, report, &kind, &set, err);
    } else if (err != NULL) {
        *err = not_dir;
    }
    if (st == PAWL_OK)
        st = pawl_set_check_profile(&set, known.profile, err);
    if (st == PAWL_OK) {
        /* A file of another writer may say anything there, and the reference takes it: only what is right is used. */
        struct pawl_error own = PAWL_ERROR_INIT;
        st = pawl_set_check_aliases(&set, &own);
        if (st == PAWL_CORRUPT) {
            pawl_report_warning(report, "content", set.files[0].name, "%s", own.message);
            st = PAWL_OK;
        } else if (st != PAWL_OK && err != NULL) {
            *err = own;
        }
    }
    if (st == PAWL_OK)
        st = pawl_model_adopt(&set, kind, ret_model, err);
    pawl_set_release(&set);
    pawl_dir_release(&dir);
    free(text);
    return st;
}
