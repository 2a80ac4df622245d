/*
 * llmcp35/lc_inside.h: what the files of this folder share. Format: docs/format/llmcp35.md.
 *
 *     lc_decode.c      stages A, B and the order of all stages
 *     lc_table.c       stages C, D: the record table
 *     lc_tokenizer.c   stage E, and tokenizers
 *     lc_model.c       stage F; lc_rotary.c its last step, and the tables
 *     lc_optimizer.c   stage G, and the rules of groups and AdamW's numbers
 *     lc_encode.c      the layout of a checkpoint's file, and its bytes
 *     lc_checkpoint.c  looking at a checkpoint, stage H
 *     lc_training.c    training, bundles, and checkpoints made of them
 *     lc_path.c        load and save
 *     lc_convert.c     safetensors
 */
#ifndef PAWL_FORMATS_LLMCP35_LC_INSIDE_H
#define PAWL_FORMATS_LLMCP35_LC_INSIDE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "formats/llmcp35/llmcp35.h"
#include "os/os.h"

#ifdef __FAST_MATH__
#error "NaN, infinities, signed zeros and the order of operations matter here: no fast-math"
#endif

#define LC_FIXED_BYTES 38
#define LC_CHECKSUM_AT 30
#define LC_NAME_TOKENS_MAX 21 /* decimal digits of a u64 and a NUL */
#define LC_PAIRS_NAME "training-pairs"

extern const unsigned char pawl_lc_magic[8];

/* ---- failures ---- */

/* Where the story of a failure goes. */
struct lc_out {
    struct pawl_error *err;                /* may be NULL */
    struct pawl_llmcp35_fault **ret_fault; /* may be NULL */
    uint64_t offset;                       /* in the file, of what is being read; PAWL_OFFSET_NONE */
};

/* Also empties *ret_fault. */
static inline struct lc_out
lc_out_make(struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    if (ret_fault != NULL)
        *ret_fault = NULL;
    return (struct lc_out){ err, ret_fault, PAWL_OFFSET_NONE };
}

#define LC_U64(name_, value)                                            \
    {                                                                   \
        .name = (name_), .type = PAWL_LLMCP35_NUMBER, .number = (value) \
    }
#define LC_F64(name_, value)                                        \
    {                                                               \
        .name = (name_), .type = PAWL_LLMCP35_REAL, .real = (value) \
    }
#define LC_TEXT(name_, value)                                       \
    {                                                               \
        .name = (name_), .type = PAWL_LLMCP35_TEXT, .text = (value) \
    }
#define LC_WORD(name_, value)                                                 \
    {                                                                         \
        .name = (name_), .type = PAWL_LLMCP35_TEXT, .text = pawl_str_z(value) \
    }
#define LC_SHAPE(name_, shape_, rank_)                                                   \
    {                                                                                    \
        .name = (name_), .type = PAWL_LLMCP35_NUMBERS, .numbers = (shape_), .n = (rank_) \
    }
#define LC_NAMES(name_, list)                                                             \
    {                                                                                     \
        .name = (name_), .type = PAWL_LLMCP35_NAMES, .names = (list).items, .n = (list).n \
    }

struct lc_fields {
    const struct pawl_llmcp35_field *items;
    size_t n;
};
#define LC_FIELDS(...)                                                                \
    ((struct lc_fields){ (const struct pawl_llmcp35_field[]){ __VA_ARGS__ },          \
                         sizeof((const struct pawl_llmcp35_field[]){ __VA_ARGS__ }) / \
                             sizeof(struct pawl_llmcp35_field) })
#define LC_NO_FIELDS ((struct lc_fields){ NULL, 0 })

/* The error (code "category/cause", or "category" when cause is NULL) and the fault. Returns `status`. */
enum pawl_status pawl_lc_fail(struct lc_out *out, enum pawl_status status, const char *category, const char *cause,
                              struct lc_fields fields, const char *format, ...) PAWL_PRINTF(6, 7);
/* The usual one: PAWL_CORRUPT. */
#define LC_REFUSE(out, category, cause, fields, ...) \
    pawl_lc_fail(out, PAWL_CORRUPT, category, cause, fields, __VA_ARGS__)
enum pawl_status pawl_lc_fail_memory(struct lc_out *out, const char *where);
enum pawl_status pawl_lc_fail_size(struct lc_out *out, const char *where);
/* An error that is already filled, whose fault is io. */
enum pawl_status pawl_lc_fail_io(struct lc_out *out, enum pawl_status status, const char *operation, const char *path);
#if defined(__clang_analyzer__) && !defined(PAWL_FAIL_DEFINES) /* as in base/fail.h */
#define pawl_lc_fail(out, status, ...) ((void)pawl_lc_fail(out, status, __VA_ARGS__), (status))
#define pawl_lc_fail_memory(out, where) ((void)pawl_lc_fail_memory(out, where), PAWL_NO_MEMORY)
#define pawl_lc_fail_size(out, where) ((void)pawl_lc_fail_size(out, where), PAWL_CORRUPT)
#endif

/* ---- parts ---- */

struct lc_names {
    struct pawl_str *items;
    size_t n;
};

struct lc_adamw {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    bool has_groups;
    struct lc_names decay, no_decay;
};

struct lc_tensor {
    struct pawl_str name;
    uint32_t rank;
    const uint64_t *shape;
    size_t n;
    double *values; /* owned; not NULL even when n is 0 */
};

struct lc_moments { /* of one parameter; both have its name */
    struct lc_tensor first, second;
};

struct pawl_llmcp35_tokenizer {
    enum pawl_llmcp35_tokenizer_kind kind;
    struct pawl_arena arena;
    struct pawl_str *pieces; /* literal */
    size_t *by_piece;        /* their ids, in byte order of the pieces */
    size_t n_pieces;
    uint32_t *pairs;   /* byte-BPE: two for each merge */
    size_t *by_pair;   /* ranks, in order of (left, right) */
    uint64_t *lengths; /* bytes of each merge's token */
    size_t n_merges;
};

/* A model and its optimizer: what a checkpoint, training and a bundle have in common. */
struct lc_state {
    struct pawl_arena arena; /* names and shapes */
    struct pawl_llmcp35_config config;
    struct lc_adamw adamw;
    uint64_t step;
    double beta1_power, beta2_power;
    struct lc_tensor *parameters; /* model order */
    size_t n_parameters;
    struct lc_moments *moments; /* byte order of names */
    size_t n_moments;
    struct pawl_llmcp35_parameter *views; /* model order */
};

#define LC_STATE_INIT            \
    {                            \
        .arena = PAWL_ARENA_INIT \
    }

struct pawl_llmcp35 {
    struct lc_state state;
    struct pawl_llmcp35_tokenizer *tokenizer;
    uint64_t rng_state;
    /* the file */
    struct pawl_llmcp35_record *records;
    size_t n_records;
    uint64_t header_bytes, payload_bytes, checksum;
};

struct pawl_llmcp35_adamw pawl_lc_public_adamw(const struct lc_adamw *adamw);
void pawl_lc_state_release(struct lc_state *state);
/* Groups and moments into byte order of their names. */
void pawl_lc_state_sort(struct lc_state *state);
/* Of a sorted state; NULL: there are none of that name. */
struct lc_moments *pawl_lc_find_moments(const struct lc_state *state, struct pawl_str name);
/* The public views of the parameters, from parameters and moments. */
enum pawl_status pawl_lc_state_view(struct lc_state *state, struct lc_out *out);
/* Everything but the arrays of values is copied; so are those when `with_values`, else they are NULL. */
enum pawl_status pawl_lc_state_copy(struct lc_state *to, const struct lc_state *from, bool with_values,
                                    struct lc_out *out);
enum pawl_status pawl_lc_names_copy(struct pawl_arena *arena, struct lc_names *to, const struct pawl_str *items,
                                    size_t n);
void pawl_lc_names_sort(struct lc_names names);
/* The names of parameters or moments, sorted; items to free(). */
bool pawl_lc_parameter_names(const struct lc_state *state, struct lc_names *ret_names);
bool pawl_lc_moment_names(const struct lc_state *state, struct lc_names *ret_names);
/* Both groups, sorted; items to free(). */
bool pawl_lc_group_names(const struct lc_state *state, struct lc_names *ret_names);
bool pawl_lc_names_equal(struct lc_names a, struct lc_names b);
bool pawl_lc_shape_equal(const struct lc_tensor *a, const struct lc_tensor *b);
/* Memory for n values, at least one; NULL: memory. */
double *pawl_lc_values_new(size_t n);
/* "[2, 3]" */
const char *pawl_lc_show_shape(char text[96], const uint64_t *shape, size_t rank);

/*
 * The least index of a key that equals an earlier one; n when there is none. Keys are compared by tag, then bytes. By sorting: a
 * file made to collide in a hash gains nothing.
 */
struct lc_key {
    struct pawl_str bytes;
    uint32_t tag;
    size_t index;
};
void pawl_lc_keys_sort(struct lc_key *keys, size_t n);
size_t pawl_lc_first_repeat(struct lc_key *keys, size_t n);

/* ---- a file being decoded ---- */

struct lc_record {
    uint8_t role, dtype;
    uint32_t rank;
    struct pawl_str name; /* in the file's bytes */
    const uint64_t *dims;
    uint64_t elements;
    uint64_t offset, bytes;
    uint64_t entry_offset; /* of its place in the table */
};

struct lc_file {
    const unsigned char *bytes;
    size_t n;
    uint64_t header_bytes, payload_bytes, checksum;
    uint8_t tokenizer_kind;
    uint64_t tokenizer_vocabulary;
    uint64_t selected_step;
    uint32_t n_parameters, n_moments, n_stated;
    struct lc_record *records;
    size_t n_records, records_max;
    size_t first_parameter, first_moment; /* of the records */
    struct pawl_arena arena;
};

enum pawl_status pawl_lc_check_table(struct lc_file *file, struct lc_out *out);    /* stage C */
enum pawl_status pawl_lc_check_families(struct lc_file *file, struct lc_out *out); /* stage D */
enum pawl_status pawl_lc_read_tokenizer(const struct lc_file *file, struct pawl_llmcp35_tokenizer **ret_tokenizer,
                                        struct lc_out *out); /* stage E */
enum pawl_status pawl_lc_read_model(const struct lc_file *file, struct lc_state *state,
                                    struct lc_out *out); /* stage F */
enum pawl_status pawl_lc_read_optimizer(const struct lc_file *file, struct lc_state *state,
                                        struct lc_out *out); /* stage G */
/* Name, shape and values of a record, copied into a state. */
enum pawl_status pawl_lc_read_tensor(const struct lc_file *file, const struct lc_record *record, struct lc_state *state,
                                     struct lc_tensor *tensor, struct lc_out *out);
enum pawl_status pawl_lc_fail_identity(struct lc_out *out, const struct lc_record *found, struct pawl_str name,
                                       uint8_t role, uint8_t dtype);

/* ---- rules that do not care where a state came from ---- */

enum pawl_status pawl_lc_check_adamw(const struct lc_adamw *adamw, struct lc_out *out); /* the five numbers */
enum pawl_status pawl_lc_check_groups(const struct lc_adamw *adamw,
                                      struct lc_out *out); /* the lists, in the order given */
enum pawl_status pawl_lc_check_parameter(const struct lc_tensor *tensor, struct lc_out *out);
enum pawl_status pawl_lc_check_model(const struct lc_state *state, struct lc_out *out); /* stage F from step 3 */
enum pawl_status pawl_lc_check_rotary(double base, uint64_t positions, uint64_t head_width, uint64_t layer,
                                      struct lc_out *out);
enum pawl_status pawl_lc_check_moments(const struct lc_moments *moments, struct lc_out *out);
enum pawl_status pawl_lc_check_optimizer(const struct lc_state *state,
                                         struct lc_out *out); /* stage G behind the pairs */
enum pawl_status pawl_lc_check_relations(const struct lc_state *state, const struct pawl_llmcp35_tokenizer *tokenizer,
                                         uint64_t selected_step, struct lc_out *out); /* stage H */

/* Angles of one position: `pairs` cosines and sines. */
void pawl_lc_rotary_row(double base, uint64_t head_width, uint64_t position, double *cosines, double *sines);
/* The name and shape of parameter `index` in model order; false when memory is short. */
bool pawl_lc_expected_name(struct pawl_buffer *text, uint64_t index, uint64_t layers);
size_t pawl_lc_expected_shape(const struct pawl_llmcp35_config *config, uint64_t index, uint64_t shape[2]);

/* ---- encoding ---- */

/* A place for bytes; false ends the encoding. */
struct lc_sink {
    bool (*put)(struct lc_sink *sink, const void *bytes, size_t n);
};
/* Records, header_bytes and payload_bytes of a checkpoint. */
enum pawl_status pawl_lc_layout(struct pawl_llmcp35 *checkpoint, struct lc_out *out);
/* The whole file, with this checksum in its place. False when the sink said so. */
bool pawl_lc_emit(const struct pawl_llmcp35 *checkpoint, uint64_t checksum, struct lc_sink *sink);
/* Stage I: whether the checkpoint's file is exactly these bytes. */
bool pawl_lc_emits(const struct pawl_llmcp35 *checkpoint, const unsigned char *bytes, size_t n);
/* The payload of one record. */
bool pawl_lc_emit_record(const struct pawl_llmcp35 *checkpoint, size_t index, struct lc_sink *sink);
/* The checksum of the checkpoint's file. */
uint64_t pawl_lc_checksum(const struct pawl_llmcp35 *checkpoint);
uint64_t pawl_lc_checksum_of(const unsigned char *bytes, size_t n); /* of a file's bytes, n at least 38 */

/* ---- files, over a table ---- */

enum pawl_status pawl_lc_load(const struct pawl_os *os, const char *path, struct pawl_llmcp35 **ret_checkpoint,
                              struct lc_out *out);
enum pawl_status pawl_lc_save(const struct pawl_os *os, const struct pawl_llmcp35 *checkpoint, const char *path,
                              struct lc_out *out);

#endif
