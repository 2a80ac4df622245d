/*
 * pawl/convert.h: changing model files where no value changes: choosing, renaming, splitting, joining; and making an index anew.
 *
 *     struct pawl_converted *done;
 *     pawl_model_open_z("model", NULL, &model, &err);
 *     pawl_convert(model, pawl_str_z("model.safetensors"), NULL, &done, &err);        one file of a sharded model
 *     pawl_converted_free(done);
 *
 * What is written is canonical: the same tensors and metadata give the same bytes, those of the reference library. Memory is a
 * few buffers, whatever the size of the model; its names and shapes aside.
 */
#ifndef PAWL_CONVERT_H
#define PAWL_CONVERT_H

#include "pawl/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Whether the whole name matches a shell pattern: `*` any bytes (dots and slashes too), `?` one code point or what is left
 * of one, `[abc]`, `[a-c]`, `[!a-c]` one byte, `\` takes the next byte as it is. A `[` without its `]` stands for itself. Takes time of at most pattern
 * times name.
 */
PAWL_API bool pawl_pattern_match(struct pawl_str pattern, struct pawl_str name);

/* `from` is a name, or holds one `*`, which stands for any bytes and which `to` repeats: "module.*" to "*". */
struct pawl_rename {
    struct pawl_str from, to;
};

struct pawl_convert_options {
    size_t size;
    /* Which names: those that match one of `only` (all, when there is none) and none of `drop`. Patterns see the names of the input. */
    const struct pawl_str *only;
    size_t n_only;
    const struct pawl_str *drop;
    size_t n_drop;
    /* The first that fits a name renames it, once. */
    const struct pawl_rename *renames;
    size_t n_renames;
    /* Added to the input's, or in the place of the same key. */
    const struct pawl_pair *metadata;
    size_t n_metadata;
    uint64_t align;               /* where the data begin: 0 or 8, 64, 256, 4096 */
    uint64_t file_bytes_max;      /* of a directory: bytes of tensors in one file; 0: 5 GB */
    const struct pawl_sink *sink; /* instead of a path; copied, its context borrowed */
    uint8_t is_directory;  /* the path is a directory: shards and an index, or one model.safetensors when all fits */
    uint8_t keep_existing; /* PAWL_EXISTS rather than replace */
    uint8_t dry_run;       /* write nothing; the result says what would be */
    /* Told now and then, from the calling thread; anything but 0 cancels: PAWL_CANCELED, nothing is left behind. */
    int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
};
#define PAWL_CONVERT_OPTIONS(...) \
    PAWL_LITERAL_(pawl_convert_options, .size = sizeof(struct pawl_convert_options), __VA_ARGS__)

/* What was done, or with dry_run would be. */
struct pawl_converted {
    uint64_t tensors;                    /* written; aliases are not among them */
    uint64_t bytes_in, bytes_out;        /* of all files, the index included in bytes_out */
    const struct pawl_model_file *files; /* the index last; header_bytes 0 there */
    size_t n_files;
    const struct pawl_pair
        *aliases; /* key: the alias, value: its tensor; as they are called in the output, ascending */
    size_t n_aliases;
    const struct pawl_str *dropped; /* names of the input, aliases too, that the output lacks; ascending */
    size_t n_dropped;
};
PAWL_API void pawl_converted_free(struct pawl_converted *converted); /* NULL is fine */

/*
 * Write a model's tensors to other files. Nothing is read twice, and no value is looked at.
 *
 * path  of a file: published as pawl_safetensors_write does. Of a directory, which is made when it is missing: shards
 *       `model-00001-of-0000N.safetensors` and their index. An existing directory keeps what is no part of a model. The old
 *       model in it is there until the new one is whole, and its shards are removed after; but where both have as many
 *       shards, and so the same names, a loss of power can leave a directory that does not open. A link that a shard's name is, is replaced.
 *
 * Tied weights stay tied: an alias that is dropped is gone; of a tensor that is dropped and an alias that is not, the alias
 * (the least by its new name) becomes the tensor. Records of aliases that do not hold are left out. Metadata of further shards are
 * added where the first has no such key.
 *
 * Returns PAWL_OK; PAWL_ARGUMENT, before anything is written, for a pattern or rename that fits no name, two names that become one, a
 * name or metadata that the format lacks; PAWL_EXISTS; PAWL_BUSY: another writes that directory; PAWL_CANCELED; what reading answers, then PAWL_CORRUPT or
 * PAWL_TRUNCATED for an input that was changed meanwhile; PAWL_NO_SPACE and other failures of the system. After a
 * failure the output is as it was, or (only the last sync failed) the whole new one.
 */
PAWL_API enum pawl_status pawl_convert(const struct pawl_model *model, struct pawl_str path,
                                       const struct pawl_convert_options *options,
                                       struct pawl_converted **ret_converted, struct pawl_error *err);

/* ---- an index made anew ---- */

struct pawl_index_options {
    size_t size;
    uint8_t dry_run;
};
#define PAWL_INDEX_OPTIONS(...) \
    PAWL_LITERAL_(pawl_index_options, .size = sizeof(struct pawl_index_options), __VA_ARGS__)

struct pawl_indexed {
    struct pawl_str name; /* of the index: "model.safetensors.index.json" */
    size_t tensors, files;
    uint64_t total_size;
    uint8_t is_changed;       /* its bytes were not these */
    uint8_t was_there;        /* there was an index, which could be read */
    uint8_t has_total_before; /* and it had a total */
    uint64_t total_size_before;
    size_t added, removed, moved;   /* tensors of the map; all of them are added when there was none */
    const struct pawl_str *ignored; /* safetensors files of the directory that are no shards of it; ascending */
    size_t n_ignored;
};
PAWL_API void pawl_indexed_free(struct pawl_indexed *indexed); /* NULL is fine */

/*
 * Write the index of a directory's shards, durably, from what they hold. The shards are the numbered ones, `<base>-00001-of-0000N.safetensors`,
 * or, when none is numbered, all safetensors files. The index is `<base>.safetensors.index.json` ("model" when none is numbered). The
 * old one is not needed, and is not believed.
 *
 * Returns PAWL_OK; PAWL_CORRUPT for a shard that is none, a tensor that stands in two ("content"), a number that is missing
 * ("missing-file"), shards of more than one set ("content"), no shards at all ("not-safetensors"); then nothing is written. PAWL_NO_FILE; failures of the system.
 */
PAWL_API enum pawl_status pawl_index_write(struct pawl_str directory, const struct pawl_index_options *options,
                                           struct pawl_indexed **ret_indexed, struct pawl_error *err);

#ifdef __cplusplus
}
#endif

#endif
