/*
 * checkpoint/examine.h: the verdict on one step directory, and what was opened on the way to it, so that a load reads nothing twice.
 *
 * Every reason of docs/format/checkpoint.md "Complete" is found, not the first. A fault of the machine ends the examination with its
 * status and is never a reason; an I/O error that a second reading repeats is one (code "io", the file). FIFOs, devices and
 * links are never opened.
 */
#ifndef PAWL_CHECKPOINT_EXAMINE_H
#define PAWL_CHECKPOINT_EXAMINE_H

#include "base/report.h"
#include "checkpoint/block_sums.h"
#include "checkpoint/documents.h"
#include "model/set.h"
#include "os/file.h"

struct pawl_step_options {
    enum pawl_trust trust;
    enum pawl_profile profile;
    /* Tensor files are not hashed here: the caller does that as it reads them, with pawl_step_check_hash. Where such a file has another
     * fault it is hashed all the same, to tell a damaged file from one that was written wrongly. With PAWL_TRUST_LAZY it must be set:
     * then neither attachments are hashed, nor a step that is passed over. */
    bool defer_hash;
    /* Only what the weights need is hashed and opened; of other files than documents, the size alone is looked at. */
    bool weights_only;
};

enum pawl_step_file_state {
    PAWL_STEP_FILE_MISSING = 0, /* nothing there, or no regular file */
    PAWL_STEP_FILE_SIZE = 1,    /* another size */
    PAWL_STEP_FILE_THERE = 2,   /* of the right size, not hashed */
    PAWL_STEP_FILE_WRONG = 3,   /* another hash, or not readable */
    PAWL_STEP_FILE_RIGHT = 4    /* hashed, or trusted by its size */
};

struct pawl_step_file {
    enum pawl_step_file_state state;
    bool is_reported;       /* it was met in the listing: found, or a problem */
    bool has_content_fault; /* "once per file" */
    /* Hashed ahead of its turn, through this handle, header as parsed included; NULL: not, or it was told. */
    const struct pawl_os_file *ahead;
    unsigned char ahead_digest[32];
};

struct pawl_step {
    struct pawl_arena arena;
    struct pawl_dir dir;
    struct pawl_str name;   /* of the directory */
    uint64_t device, inode; /* of the directory, to notice that the name stands for another one now */
    int64_t number;         /* by its name; of a name that is not ours by trainer_state.json; else -1 */
    bool is_named;          /* the name is ours: step-N or step-N.prev */
    enum pawl_trust trust;

    bool has_manifest; /* it is usable */
    struct pawl_manifest manifest;
    struct pawl_step_file *files; /* one for each of manifest.files */

    bool has_trainer;
    struct pawl_trainer_document trainer;
    struct pawl_extra_document extra;     /* empty without the file */
    struct pawl_metrics_document metrics; /* empty without the file, and when it is malformed */
    struct pawl_buffer stream_text;       /* pawl.stream.json; empty without the file */
    struct pawl_buffer sums_text;         /* pawl.sums; empty without the file */
    struct pawl_sums sums;                /* what is in it, when it agrees with the manifest; else no files */

    bool has_model, has_optimizer; /* one whole form, valid */
    struct pawl_set model, optimizer;
    struct pawl_str optimizer_name;  /* data NULL: not known */
    struct pawl_str optimizer_state; /* JSON; data NULL: the writer kept none */

    bool is_complete;
    bool has_weights; /* they are right, whatever the rest is */
};

/*
 * Examine `name` in `parent`. The report gets an open verdict of that name: the caller ends or drops it.
 *
 * Returns PAWL_OK whatever the verdict (step->is_complete); PAWL_NO_FILE when there is no such entry (no verdict is opened); a fault of
 * the machine. The step must be released in every case.
 */
enum pawl_status pawl_step_examine(struct pawl_step *step, const struct pawl_dir *parent, const char *name,
                                   const struct pawl_step_options *options, struct pawl_report *report,
                                   struct pawl_error *err);
/* The same of an open directory, which is taken over, under a name that is not ours. */
enum pawl_status pawl_step_examine_open(struct pawl_step *step, struct pawl_dir *dir, const char *name,
                                        const struct pawl_step_options *options, struct pawl_report *report,
                                        struct pawl_error *err);
/* Fine for the empty state, { 0 }. */
void pawl_step_release(struct pawl_step *step);

/* The row of a listed file; its index is that of step->files. NULL: not listed. */
const struct pawl_receipt *pawl_step_row(const struct pawl_step *step, struct pawl_str name);

/*
 * Read a listed file whole and hash what was read. PAWL_CORRUPT ("hash"), PAWL_TRUNCATED ("size"), PAWL_NO_FILE ("missing-file"), PAWL_IO
 * ("io"): a fault of the content; else a fault of the machine.
 */
enum pawl_status pawl_step_read_file(const struct pawl_step *step, const struct pawl_receipt *row, size_t bytes_max,
                                     struct pawl_buffer *ret_bytes, struct pawl_error *err);

/* Compare a digest with the row's: PAWL_CORRUPT, "hash". */
enum pawl_status pawl_step_check_digest(const struct pawl_receipt *row, const unsigned char digest[32],
                                        struct pawl_error *err);

/* A tensor file's sha256 is wrong: add to the open verdict which of its tensors are damaged, as far as the step has sums to tell. */
void pawl_step_tell_damage(const struct pawl_step *step, const struct pawl_receipt *row, struct pawl_report *report);

/* Hash the tensor files of a set that have not been hashed yet; each that is wrong is a problem of the open verdict. *ret_all_right tells. */
enum pawl_status pawl_step_hash_set(struct pawl_step *step, const struct pawl_set *set, struct pawl_report *report,
                                    bool *ret_all_right, struct pawl_error *err);
/* Read and hash, all at once, and tell nothing: what comes out is told when each set's turn comes. What goes wrong is tried again then. */
void pawl_step_hash_ahead(struct pawl_step *step, const struct pawl_set *const *sets, size_t n_sets);
/* The same of several sets, all their files at once. */
enum pawl_status pawl_step_hash_sets(struct pawl_step *step, const struct pawl_set *const *sets, size_t n_sets,
                                     struct pawl_report *report, bool *ret_all_right, struct pawl_error *err);

/* Whether a status speaks of the bytes, so that a load goes on to an older step. */
bool pawl_step_is_content_fault(enum pawl_status status);

#endif
