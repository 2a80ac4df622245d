/* Lists of SHA-256 sums as sha256sum writes them: each file is hashed and held against its line. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/report.h"
#include "base/str.h"
#include "checkpoint/hashing.h"
#include "checkpoint/sum_lines.h"
#include "os/path.h"
#include "pawl/model.h"

/* A list of a million files is 100 MB. */
#define LIST_BYTES_MAX ((size_t)1 << 28)
/* Files that are open at once: enough that the last of them, which end alone, do not count, and few beside the descriptors that a process may have. */
#define BATCH_FILES 64
/* Lines that are none are told up to this many. */
#define BAD_SHOWN_MAX 10

/* A file that a line names. */
struct entry {
    struct pawl_buffer path; /* terminated */
    unsigned char digest[32];
    struct pawl_file file;
    struct pawl_sha256 *hash; /* made when it is first wanted, and kept for the next batch */
    enum pawl_status status;  /* of opening it, then of reading it too */
    struct pawl_error error;
};

struct checking {
    const struct pawl_os *os;
    struct pawl_report *report;
    const char *folder; /* of the list: names are relative to it */
    struct pawl_str list;
    struct pawl_buffer name; /* in the line that was read last */
    struct entry *entries;   /* BATCH_FILES of them, the first n of which wait to be hashed */
    size_t n;
    struct pawl_hash_job *jobs; /* BATCH_FILES */
    size_t n_bad;               /* lines that are none */
    size_t n_lines;             /* that are */
};

/* The path of what the line names that was read last. False: memory. */
static bool
make_path(const struct checking *c, struct pawl_buffer *path)
{
    pawl_buffer_clear(path);
    if (c->name.data[0] != '/' && strcmp(c->folder, ".") != 0) {
        (void)pawl_buffer_add_z(path, c->folder);
        if (c->folder[strlen(c->folder) - 1] != '/')
            (void)pawl_buffer_add_char(path, '/');
    }
    (void)pawl_buffer_add_str(path, pawl_buffer_str(&c->name));
    return pawl_buffer_terminate(path);
}

/* ---- files ---- */

/* A fault of the machine: it says nothing of the file, and ends the work. */
static bool
is_machine_fault(enum pawl_status st)
{
    return st == PAWL_NO_MEMORY || st == PAWL_NO_DESCRIPTORS;
}

/* Of the line that was read last. What opening the file says is in the entry. */
static enum pawl_status
open_entry(struct checking *c, struct entry *entry, const unsigned char digest[32], struct pawl_error *err)
{
    if (!make_path(c, &entry->path))
        return pawl_fail_memory(err, c->name.len + 1);
    memcpy(entry->digest, digest, sizeof entry->digest);
    entry->error = (struct pawl_error)PAWL_ERROR_INIT;
    entry->status = pawl_file_open_path(&entry->file, c->os, entry->path.data, &entry->error);
    if (entry->status == PAWL_OK && entry->hash == NULL)
        entry->status = pawl_sha256_new(&entry->hash, &entry->error);
    return PAWL_OK;
}

/* The verdict of one file. */
static void
tell_entry(struct checking *c, const struct entry *entry, const unsigned char found[32])
{
    char hex[2][65];
    pawl_report_begin_verdict(c->report, pawl_buffer_str(&entry->path), PAWL_KIND_UNKNOWN);
    if (entry->file.handle != NULL)
        pawl_report_count(c->report, 1, entry->file.bytes);
    if (entry->status == PAWL_OK && memcmp(found, entry->digest, 32) != 0) {
        pawl_sha256_print(entry->digest, hex[0]);
        pawl_sha256_print(found, hex[1]);
        pawl_report_problem(c->report, "hash", PAWL_NO_STR, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "expected SHA-256 %s, found %s", hex[0], hex[1]);
    } else if (entry->status == PAWL_NO_FILE) {
        pawl_report_problem(c->report, "missing-file", PAWL_NO_STR, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "it is in the list, and not there");
    } else if (entry->status != PAWL_OK) {
        pawl_report_problem_error(c->report, NULL, PAWL_NO_STR, &entry->error);
    }
    pawl_report_end_verdict(c->report);
}

/* Hash the files that wait, several at once, and tell of them in the order of the list. A fault of the machine ends the work. */
static enum pawl_status
check_batch(struct checking *c, struct pawl_error *err)
{
    size_t n_jobs = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct entry *entry = &c->entries[i];
        if (entry->status == PAWL_OK)
            c->jobs[n_jobs++] = (struct pawl_hash_job){ .file = &entry->file, .hash = entry->hash, .must_stay = true };
    }
    pawl_hash_files(c->jobs, n_jobs);
    enum pawl_status st = PAWL_OK;
    const struct pawl_hash_job *job = c->jobs;
    for (size_t i = 0; i < c->n; i++) {
        struct entry *entry = &c->entries[i];
        unsigned char found[32] = { 0 };
        if (entry->status == PAWL_OK) {
            entry->status = job->status;
            entry->error = job->error;
            pawl_sha256_finish(job->hash, found); /* begins anew after a failure too */
            job++;
        }
        if (st == PAWL_OK && is_machine_fault(entry->status)) {
            st = entry->status;
            if (err != NULL)
                *err = entry->error;
        }
        if (st == PAWL_OK)
            tell_entry(c, entry, found);
        pawl_file_release(&entry->file);
    }
    c->n = 0;
    return st;
}

/* One more file, of the line that was read last. When there are enough of them, or no more can be open, they are hashed. */
static enum pawl_status
add_file(struct checking *c, const unsigned char digest[32], struct pawl_error *err)
{
    enum pawl_status st = c->n == BATCH_FILES ? check_batch(c, err) : PAWL_OK;
    if (st != PAWL_OK)
        return st;
    struct entry *entry = &c->entries[c->n];
    st = open_entry(c, entry, digest, err);
    if (st == PAWL_OK && entry->status == PAWL_NO_DESCRIPTORS && c->n != 0) {
        /* The files that wait may have taken them. */
        st = check_batch(c, err);
        entry = &c->entries[0];
        if (st == PAWL_OK)
            st = open_entry(c, entry, digest, err);
    }
    c->n += st == PAWL_OK;
    return st;
}

static enum pawl_status
make_entries(struct checking *c, struct pawl_error *err)
{
    c->entries = calloc(BATCH_FILES, sizeof *c->entries);
    c->jobs = calloc(BATCH_FILES, sizeof *c->jobs);
    if (c->entries == NULL || c->jobs == NULL)
        return pawl_fail_memory(err, BATCH_FILES * (sizeof *c->entries + sizeof *c->jobs));
    for (size_t i = 0; i < BATCH_FILES; i++) {
        c->entries[i].path = (struct pawl_buffer)PAWL_BUFFER_INIT;
        c->entries[i].file = (struct pawl_file)PAWL_FILE_INIT;
    }
    return PAWL_OK;
}

static void
free_entries(struct checking *c)
{
    for (size_t i = 0; i < BATCH_FILES && c->entries != NULL; i++) {
        pawl_buffer_release(&c->entries[i].path);
        pawl_file_release(&c->entries[i].file);
        pawl_sha256_free(c->entries[i].hash);
    }
    free(c->entries);
    free(c->jobs);
}

/* ---- the list ---- */

static void
note_bad_line(struct checking *c, size_t number, uint64_t offset)
{
    if (c->n_bad++ < BAD_SHOWN_MAX)
        pawl_report_problem(c->report, "content", PAWL_NO_STR, PAWL_NO_STR, offset,
                            "line %zu is not 64 hex digits, two blanks and a name", number);
}

/* Once over all lines: the faults of the list itself (is_list), or the files that it names. */
static enum pawl_status
walk_lines(struct checking *c, const struct pawl_buffer *text, bool is_list, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    struct pawl_sum_lines lines = pawl_sum_lines_begin(pawl_buffer_str(text));
    struct pawl_sum_line line;
    while (st == PAWL_OK && pawl_sum_lines_next(&lines, &line, &c->name)) {
        if (!pawl_buffer_ok(&c->name))
            st = pawl_fail_memory(err, c->name.len);
        else if (is_list && line.is_good)
            c->n_lines++;
        else if (is_list)
            note_bad_line(c, line.number, line.offset);
        else if (line.is_good)
            st = add_file(c, line.digest, err);
    }
    return st == PAWL_OK && !is_list ? check_batch(c, err) : st;
}

/* The list itself has a verdict only where something is wrong with it. */
static enum pawl_status
check_list(struct checking *c, const struct pawl_buffer *text, struct pawl_error *err)
{
    pawl_report_begin_verdict(c->report, c->list, PAWL_KIND_UNKNOWN);
    pawl_report_count(c->report, 1, text->len);
    enum pawl_status st = walk_lines(c, text, true, err);
    if (c->n_bad > BAD_SHOWN_MAX)
        pawl_report_problem(c->report, "content", PAWL_NO_STR, PAWL_NO_STR, PAWL_OFFSET_NONE,
                            "and %zu more lines that are none", c->n_bad - BAD_SHOWN_MAX);
    if (c->n_bad == 0 && c->n_lines == 0)
        pawl_report_problem(c->report, "content", PAWL_NO_STR, PAWL_NO_STR, PAWL_OFFSET_NONE, "the list names no file");
    bool is_fine = pawl_report_problem_count(c->report) == 0;
    pawl_report_end_verdict(c->report);
    if (is_fine)
        pawl_report_drop_verdict(c->report);
    return st;
}

static enum pawl_status
check_all(struct checking *c, const char *path, struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    char *folder = NULL;
    char *name = NULL;
    bool has_slash;
    enum pawl_status st = pawl_path_split(path, &folder, &name, &has_slash, err);
    if (st == PAWL_OK)
        st = pawl_file_open_path(&file, c->os, path, err);
    if (st == PAWL_OK)
        st = pawl_file_read_all(&file, LIST_BYTES_MAX, &text, err);
    pawl_file_release(&file);
    if (st == PAWL_OK)
        st = make_entries(c, err);
    c->folder = folder;
    c->list = pawl_str_z(path);
    if (st == PAWL_OK)
        st = check_list(c, &text, err);
    if (st == PAWL_OK)
        st = walk_lines(c, &text, false, err);
    free_entries(c);
    pawl_buffer_release(&c->name);
    pawl_buffer_release(&text);
    free(folder);
    free(name);
    return st;
}

enum pawl_status
pawl_verify_sums(struct pawl_str list, struct pawl_report **ret_report, struct pawl_error *err)
{
    struct checking c = { .os = pawl_os_posix(), .name = PAWL_BUFFER_INIT };
    c.report = pawl_report_new();
    if (ret_report != NULL)
        *ret_report = c.report;
    if (c.report == NULL)
        return pawl_fail_memory(err, 1);
    enum pawl_status st;
    char *path = NULL;
    if (list.len == 0 || memchr(list.data, 0, list.len) != NULL) {
        st = pawl_fail(err, PAWL_ARGUMENT, "argument", "a path must have bytes, and no NUL");
    } else {
        path = pawl_str_dup(list);
        st = path == NULL ? pawl_fail_memory(err, list.len) : check_all(&c, path, err);
    }
    free(path);
    if (st == PAWL_OK && !pawl_report_ok(c.report))
        st = pawl_fail_memory(err, 1);
    if (ret_report == NULL)
        pawl_report_free(c.report);
    return st;
}
