/* checkpoint/pins.c: reading, printing and changing RETENTION.json. */
#include "checkpoint/pins.h"

#include <inttypes.h>
#include <stdlib.h>
#include "base/str.h"
#include "checkpoint/documents.h"
#include "checkpoint/fields.h"
#include "checkpoint/names.h"
#include "checkpoint/run.h"
#include "pawl/run.h"

/* ---- the document ---- */

enum pawl_status
pawl_pins_parse(struct pawl_arena *arena, const void *text, size_t bytes, int64_t **ret_pinned, size_t *ret_n,
                struct pawl_error *err)
{
    static const char *const names[] = { "kind", "pinned" };
    const struct pawl_json_value *object;
    const struct pawl_json_value *members[2];
    struct pawl_str kind;
    enum pawl_status st = pawl_fields_parse(arena, text, bytes, &object, err);
    if (st == PAWL_OK)
        st = pawl_fields_object(object, names, 2, 2, members, err);
    if (st == PAWL_OK)
        st = pawl_field_string(members[0], "kind", &kind, err);
    if (st == PAWL_OK && !pawl_str_equal(kind, PAWL_STR("retention")))
        st = pawl_field_fail(members[0], "kind", "\"retention\"", err);
    if (st == PAWL_OK && members[1]->type != PAWL_JSON_ARRAY)
        st = pawl_field_fail(members[1], "pinned", "a list of step numbers", err);
    if (st != PAWL_OK)
        return st;
    size_t n = members[1]->n;
    int64_t *pinned = pawl_arena_take_array(arena, n + 1, sizeof *pinned);
    if (pinned == NULL)
        return pawl_fail_memory(err, (n + 1) * sizeof *pinned);
    for (size_t i = 0; i < n; i++) {
        const struct pawl_json_value *item = &members[1]->first[i];
        st = pawl_field_count(item, "pinned", &pinned[i], err);
        if (st == PAWL_OK && i > 0 && pinned[i] <= pinned[i - 1])
            st = pawl_field_fail(item, "pinned", "step numbers in ascending order", err);
        if (st != PAWL_OK)
            return st;
    }
    *ret_pinned = pinned;
    *ret_n = n;
    return PAWL_OK;
}

bool
pawl_pins_print(const int64_t *pinned, size_t n, struct pawl_buffer *out)
{
    struct pawl_json_writer writer;
    pawl_json_write_begin(&writer, out, PAWL_JSON_INDENTED, PAWL_JSON_RAW);
    pawl_json_write_object(&writer);
    pawl_json_write_key(&writer, PAWL_STR("kind"));
    pawl_json_write_string(&writer, PAWL_STR("retention"));
    pawl_json_write_key(&writer, PAWL_STR("pinned"));
    pawl_json_write_array(&writer);
    for (size_t i = 0; i < n; i++)
        pawl_json_write_i64(&writer, pinned[i]);
    pawl_json_write_array_end(&writer);
    pawl_json_write_object_end(&writer);
    (void)pawl_buffer_add_char(out, '\n');
    return pawl_buffer_ok(out);
}

enum pawl_status
pawl_pins_read(const struct pawl_dir *root, struct pawl_arena *arena, int64_t **ret_pinned, size_t *ret_n,
               struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_os_stat status;
    enum pawl_status st = pawl_dir_stat(root, PAWL_RETENTION, &status, err);
    if (st == PAWL_NO_FILE) {
        *ret_pinned = NULL;
        *ret_n = 0;
        return PAWL_OK;
    }
    if (st == PAWL_OK && status.kind != PAWL_OS_FILE)
        st = pawl_fail(err, PAWL_CORRUPT, "content", "not a regular file");
    if (st == PAWL_OK)
        st = pawl_file_open_in(&file, root, PAWL_RETENTION, 0, err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, PAWL_DOCUMENT_BYTES_MAX, &text, err);
    if (st == PAWL_OK)
        st = pawl_pins_parse(arena, text.data, text.len, ret_pinned, ret_n, err);
    pawl_file_release(&file);
    pawl_buffer_release(&text);
    return st;
}

bool
pawl_pins_hold(const int64_t *pinned, size_t n, int64_t step)
{
    for (size_t i = 0; i < n; i++)
        if (pinned[i] == step)
            return true;
    return false;
}

/* ---- changing ---- */

enum pawl_status
pawl_pins_change(const struct pawl_dir *root, int64_t step, bool is_pinned, struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    int64_t *pinned = NULL;
    size_t n = 0;
    if (step < 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the step is %" PRId64 ", expected 0 or more", step);
    enum pawl_status st = pawl_pins_read(root, &arena, &pinned, &n, err);
    if (st != PAWL_OK) {
        (void)pawl_context(err, st, "read '%s'", PAWL_RETENTION);
        if (st == PAWL_CORRUPT || st == PAWL_TRUNCATED || st == PAWL_LIMIT)
            pawl_error_hint(err, "mend or remove %s in the root: while it is malformed no step is deleted",
                            PAWL_RETENTION);
        goto out;
    }
    if (pawl_pins_hold(pinned, n, step) == is_pinned)
        goto out;
    int64_t *changed = pawl_arena_take_array(&arena, n + 1, sizeof *changed);
    if (changed == NULL) {
        st = pawl_fail_memory(err, (n + 1) * sizeof *changed);
        goto out;
    }
    size_t n_changed = 0;
    for (size_t i = 0; i < n && pinned[i] < step; i++)
        changed[n_changed++] = pinned[i];
    size_t rest = n_changed;
    if (is_pinned)
        changed[n_changed++] = step;
    else
        rest++; /* the step itself */
    for (size_t i = rest; i < n; i++)
        changed[n_changed++] = pinned[i];
    if (!pawl_pins_print(changed, n_changed, &text))
        st = pawl_fail_memory(err, text.len);
    else
        st = pawl_file_replace(root, PAWL_RETENTION, PAWL_RETENTION_TMP, text.data, text.len, err);
out:
    pawl_buffer_release(&text);
    pawl_arena_release(&arena);
    return st == PAWL_OK ? st : pawl_context(err, st, "%s step %" PRId64, is_pinned ? "pin" : "unpin", step);
}

/* ---- the public calls ---- */

enum pawl_status
pawl_ckpt_pin_os(const struct pawl_os *os, struct pawl_str path, int64_t step, bool is_pinned, struct pawl_error *err)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    enum pawl_status st = pawl_root_open_locked(&root, os, path, err);
    if (st == PAWL_OK) {
        st = pawl_pins_change(&root, step, is_pinned, err);
        pawl_dir_unlock(&root);
    }
    pawl_dir_release(&root);
    return st;
}

enum pawl_status
pawl_ckpt_pin(struct pawl_str root, int64_t step, struct pawl_error *err)
{
    return pawl_ckpt_pin_os(pawl_os_posix(), root, step, true, err);
}

enum pawl_status
pawl_ckpt_unpin(struct pawl_str root, int64_t step, struct pawl_error *err)
{
    return pawl_ckpt_pin_os(pawl_os_posix(), root, step, false, err);
}

enum pawl_status
pawl_ckpt_pins_os(const struct pawl_os *os, struct pawl_str path, int64_t **ret_steps, size_t *ret_n,
                  struct pawl_error *err)
{
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    char *copy = NULL;
    int64_t *pinned = NULL;
    size_t n = 0;
    if (ret_steps == NULL || ret_n == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "no place for the steps was given");
    enum pawl_status st = pawl_root_path(path, &copy, err);
    if (st == PAWL_OK)
        st = pawl_dir_open_path(&root, os, copy, err);
    if (st == PAWL_OK) {
        st = pawl_pins_read(&root, &arena, &pinned, &n, err);
        if (st != PAWL_OK)
            (void)pawl_context(err, st, "read '%s'", PAWL_RETENTION);
    }
    if (st == PAWL_OK) {
        int64_t *steps = malloc((n + 1) * sizeof *steps);
        if (steps == NULL) {
            st = pawl_fail_memory(err, (n + 1) * sizeof *steps);
        } else {
            for (size_t i = 0; i < n; i++)
                steps[i] = pinned[i];
            *ret_steps = steps;
            *ret_n = n;
        }
    }
    pawl_arena_release(&arena);
    pawl_dir_release(&root);
    free(copy);
    return st;
}

enum pawl_status
pawl_ckpt_pins(struct pawl_str root, int64_t **ret_steps, size_t *ret_n, struct pawl_error *err)
{
    return pawl_ckpt_pins_os(pawl_os_posix(), root, ret_steps, ret_n, err);
}

static enum pawl_status
change_in_run(struct pawl_run *run, int64_t step, bool is_pinned, struct pawl_error *err)
{
    enum pawl_status st = pawl_run_enter(run, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_pins_change(&run->root, step, is_pinned, err);
    pawl_run_leave(run);
    return st;
}

enum pawl_status
pawl_run_pin(struct pawl_run *run, int64_t step, struct pawl_error *err)
{
    return change_in_run(run, step, true, err);
}

enum pawl_status
pawl_run_unpin(struct pawl_run *run, int64_t step, struct pawl_error *err)
{
    return change_in_run(run, step, false, err);
}
