/* Packing files into a data set: what a document is, and what the manifest says of it. Rules: docs/format/tokens.md. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/buffer.h"
#include "formats/json/json.h"
#include "formats/tokens/shard.h"
#include "os/file.h"
#include "pawl/digest.h"
#include "stream/shard_file.h"
#include "stream/token_files.h"
#include "stream/token_writer.h"

/* Bytes read at a time; a multiple of the width of an id. */
#define CHUNK_BYTES ((size_t)1 << 20)
/* Ids handed on at a time. */
#define IDS_STEP ((size_t)4096)
#define BYTES_VOCABULARY 256

struct packing {
    struct pawl_pack_options opt;
    const struct pawl_str *paths;
    size_t n;
    struct pawl_token_writer *writer;
    uint64_t vocabulary; /* of the caller */
    uint64_t id_limit;   /* ids are below this */
    uint64_t done, total;
    struct pawl_sha256 *file_hash;   /* NULL: the corpus has a manifest of its own */
    struct pawl_sha256 *corpus_hash; /* over the lines of digests */
    unsigned char *chunk;            /* CHUNK_BYTES */
    uint32_t *ids;                   /* IDS_STEP */
    size_t n_ids;
    unsigned char tokenizer_digest[32], corpus_digest[32]; /* the writer's options point here */
};

/* One FILE, read from its beginning to its end, once. */
struct input {
    struct packing *packing;
    struct pawl_file file;
    uint64_t at;
};

/* ---- reading ---- */

static enum pawl_status
open_input(struct pawl_file *file, struct pawl_str path, struct pawl_error *err)
{
    char *name = NULL;
    enum pawl_status st = pawl_shard_path(path, &name, err);
    if (st == PAWL_OK)
        st = pawl_file_open_path(file, pawl_os_posix(), name, err);
    free(name);
    return st;
}

/* The next bytes, at most `max` and all that are left; *ret_n is 0 at the end. */
static enum pawl_status
read_chunk(struct input *in, size_t max, size_t *ret_n, struct pawl_error *err)
{
    struct packing *p = in->packing;
    uint64_t left = in->file.bytes - in->at;
    size_t n = left < max ? (size_t)left : max;
    *ret_n = n;
    if (n == 0)
        return PAWL_OK;
    enum pawl_status st = pawl_file_read(&in->file, in->at, p->chunk, n, err);
    if (st != PAWL_OK)
        return st;
    if (p->file_hash != NULL)
        pawl_sha256_update(p->file_hash, p->chunk, n);
    in->at += n;
    p->done += n;
    if (p->opt.progress != NULL && p->opt.progress(p->opt.progress_context, p->done, p->total) != 0)
        return pawl_fail(err, PAWL_CANCELED, "canceled", "packing was canceled");
    return PAWL_OK;
}

/* ---- bytes ---- */

static enum pawl_status
pack_bytes_of_file(struct input *in, struct pawl_error *err)
{
    struct packing *p = in->packing;
    enum pawl_status st = pawl_token_writer_document_of(p->writer, in->file.bytes, err);
    for (size_t n = 1; st == PAWL_OK && n != 0;) {
        st = read_chunk(in, CHUNK_BYTES, &n, err);
        if (st == PAWL_OK)
            st = pawl_token_writer_add_bytes(p->writer, p->chunk, n, err);
    }
    return st;
}

static enum pawl_status
pack_bytes_of_lines(struct input *in, struct pawl_error *err)
{
    struct packing *p = in->packing;
    enum pawl_status st = PAWL_OK;
    bool in_line = false;
    for (size_t n = 1; st == PAWL_OK && n != 0;) {
        st = read_chunk(in, CHUNK_BYTES, &n, err);
        const unsigned char *at = p->chunk, *end = p->chunk + n;
        while (st == PAWL_OK && at != end) {
            const unsigned char *feed = memchr(at, '\n', (size_t)(end - at));
            const unsigned char *stop = feed != NULL ? feed : end;
            if (!in_line)
                st = pawl_token_writer_document(p->writer, err);
            if (st == PAWL_OK)
                st = pawl_token_writer_add_bytes(p->writer, at, (size_t)(stop - at), err);
            in_line = feed == NULL;
            at = feed != NULL ? feed + 1 : end;
        }
    }
    return st;
}

/* ---- decimal ids ---- */

static enum pawl_status
flush_ids(struct packing *p, struct pawl_error *err)
{
    size_t n = p->n_ids;
    p->n_ids = 0;
    return n == 0 ? PAWL_OK : pawl_token_writer_add(p->writer, p->ids, n, err);
}

static enum pawl_status
take_id(struct packing *p, uint64_t id, uint64_t offset, struct pawl_error *err)
{
    if (id >= p->id_limit)
        return pawl_fail_at(err, PAWL_OUT_OF_RANGE, "id-range", offset, "id %" PRIu64 " is not below %" PRIu64, id,
                            p->id_limit);
    p->ids[p->n_ids++] = (uint32_t)id;
    return p->n_ids == IDS_STEP ? flush_ids(p, err) : PAWL_OK;
}

/* A number that may go on in the next chunk. */
struct number {
    bool is_open;
    uint64_t value, offset;
};

static enum pawl_status
end_number(struct packing *p, struct number *number, struct pawl_error *err)
{
    if (!number->is_open)
        return PAWL_OK;
    number->is_open = false;
    return take_id(p, number->value, number->offset, err);
}

static void
take_digit(struct number *number, unsigned digit, uint64_t offset)
{
    if (!number->is_open)
        *number = (struct number){ true, 0, offset };
    /* What is too large stays too large, and does not wrap. */
    number->value = number->value > UINT32_MAX ? number->value : number->value * 10 + digit;
}

static enum pawl_status
pack_ids_of_text(struct input *in, bool by_line, struct pawl_error *err)
{
    struct packing *p = in->packing;
    struct number number = { false, 0, 0 };
    bool in_line = false;
    enum pawl_status st = by_line ? PAWL_OK : pawl_token_writer_document(p->writer, err);
    for (size_t n = 1; st == PAWL_OK && n != 0;) {
        st = read_chunk(in, CHUNK_BYTES, &n, err);
        const uint64_t begin = in->at - n;
        for (size_t i = 0; i < n && st == PAWL_OK; i++) {
            unsigned char c = p->chunk[i];
            if (by_line && !in_line) {
                st = pawl_token_writer_document(p->writer, err);
                in_line = true;
            }
            if (st != PAWL_OK)
                break;
            if (c >= '0' && c <= '9') {
                take_digit(&number, c - (unsigned)'0', begin + i);
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
                st = end_number(p, &number, err);
                if (by_line && c == '\n' && st == PAWL_OK) {
                    st = flush_ids(p, err);
                    in_line = false;
                }
            } else {
                char shown[2] = { (char)c, '\0' };
                st = pawl_fail_at(err, PAWL_CORRUPT, "content", begin + i,
                                  "ids are decimal numbers with blanks between them, found '%s' at byte %" PRIu64,
                                  PAWL_SHOW(pawl_str_make(shown, 1)), begin + i);
            }
        }
    }
    if (st == PAWL_OK)
        st = end_number(p, &number, err);
    return st == PAWL_OK ? flush_ids(p, err) : st;
}

/* ---- JSON Lines ---- */

static enum pawl_status
fail_field(const struct packing *p, uint64_t offset, const char *what, struct pawl_error *err)
{
    return pawl_fail_at(err, PAWL_CORRUPT, "content", offset, "'%s' %s", PAWL_SHOW(p->opt.field), what);
}

/* The value of FIELD, whose key was read. */
static enum pawl_status
take_field(struct packing *p, struct pawl_json_reader *json, struct pawl_error *err)
{
    struct pawl_json_token token;
    enum pawl_status st = pawl_json_next(json, &token, err);
    if (st != PAWL_OK)
        return st;
    if (p->opt.input == PAWL_PACK_BYTES) {
        if (token.type != PAWL_JSON_STRING)
            return fail_field(p, token.offset, "is not a string", err);
        return pawl_token_writer_add_bytes(p->writer, token.text.data, token.text.len, err);
    }
    if (token.type != PAWL_JSON_ARRAY)
        return fail_field(p, token.offset, "is not an array of ids", err);
    for (;;) {
        uint64_t id = 0;
        st = pawl_json_next(json, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_ARRAY_END)
            return flush_ids(p, err);
        if (token.type != PAWL_JSON_NUMBER || !pawl_json_u64(token.text, &id))
            return fail_field(p, token.offset, "has an item that is no id", err);
        st = take_id(p, id, token.offset, err);
        if (st != PAWL_OK)
            return st;
    }
}

static enum pawl_status
take_object(struct packing *p, struct pawl_json_reader *json, struct pawl_error *err)
{
    struct pawl_json_token token;
    bool is_found = false;
    enum pawl_status st = pawl_json_next(json, &token, err);
    if (st != PAWL_OK)
        return st;
    if (token.type != PAWL_JSON_OBJECT)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", token.offset, "a line is not an object");
    for (;;) {
        st = pawl_json_next(json, &token, err);
        if (st != PAWL_OK)
            return st;
        if (token.type == PAWL_JSON_OBJECT_END)
            break;
        if (!pawl_str_equal(token.text, p->opt.field)) {
            st = pawl_json_skip(json, NULL, err);
        } else if (is_found) {
            st = fail_field(p, token.offset, "is there twice", err);
        } else {
            is_found = true;
            st = take_field(p, json, err);
        }
        if (st != PAWL_OK)
            return st;
    }
    if (!is_found)
        return fail_field(p, token.offset, "is not among the keys", err);
    return pawl_json_next(json, &token, err); /* END, or what stands behind the object is an error */
}

static enum pawl_status
pack_json_line(struct packing *p, struct pawl_str line, uint64_t begin, uint64_t number, struct pawl_error *err)
{
    struct pawl_json_reader json;
    struct pawl_error line_err = PAWL_ERROR_INIT;
    if (line.len == 0)
        return PAWL_OK; /* an empty line is no document */
    enum pawl_status st = pawl_token_writer_document(p->writer, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_json_begin(&json, line.data, line.len, 0, &line_err);
    if (st == PAWL_OK) {
        st = take_object(p, &json, &line_err);
        pawl_json_release(&json);
    }
    if (st == PAWL_OK || err == NULL)
        return st;
    *err = line_err;
    if (err->offset != PAWL_OFFSET_NONE)
        err->offset += begin;
    return pawl_context(err, st, "line %" PRIu64, number);
}

static enum pawl_status
pack_json_lines(struct input *in, struct pawl_error *err)
{
    struct packing *p = in->packing;
    struct pawl_buffer line = PAWL_BUFFER_INIT; /* what a chunk left over */
    uint64_t begin = 0, number = 1;
    enum pawl_status st = PAWL_OK;
    for (size_t n = 1; st == PAWL_OK && n != 0;) {
        st = read_chunk(in, CHUNK_BYTES, &n, err);
        const char *at = (const char *)p->chunk, *end = at + n;
        while (st == PAWL_OK && at != end) {
            const char *feed = memchr(at, '\n', (size_t)(end - at));
            const char *stop = feed != NULL ? feed : end;
            struct pawl_str text = pawl_str_make(at, (size_t)(stop - at));
            if (line.len != 0 || feed == NULL) {
                if (!pawl_buffer_add_str(&line, text))
                    st = pawl_fail_memory(err, line.len + text.len);
                text = pawl_buffer_str(&line);
            }
            if (st == PAWL_OK && feed != NULL) {
                st = pack_json_line(p, text, begin, number++, err);
                begin += text.len + 1;
                pawl_buffer_clear(&line);
            }
            at = feed != NULL ? feed + 1 : end;
        }
    }
    if (st == PAWL_OK)
        st = pack_json_line(p, pawl_buffer_str(&line), begin, number, err);
    pawl_buffer_release(&line);
    return st;
}

/* ---- token files ---- */

static enum pawl_status
pack_shard(struct input *in, struct pawl_error *err)
{
    struct packing *p = in->packing;
    struct pawl_shard_info info = { .width = 0 };
    size_t n = 0;
    enum pawl_status st = read_chunk(in, PAWL_SHARD_HEADER_BYTES, &n, err);
    if (st == PAWL_OK)
        st = pawl_shard_parse(p->chunk, n, in->file.bytes, &info, err);
    if (st == PAWL_OK)
        st = pawl_shard_check_vocabulary(&info, p->vocabulary, err);
    if (st == PAWL_OK)
        st = pawl_token_writer_document_of(p->writer, info.ids, err);
    uint64_t vocabulary = pawl_shard_vocabulary(&info, p->vocabulary);
    for (uint64_t first = 0; st == PAWL_OK && first < info.ids;) {
        st = read_chunk(in, CHUNK_BYTES, &n, err);
        uint64_t m = n / info.width;
        uint64_t bad =
            st == PAWL_OK && vocabulary != 0 ? pawl_shard_find_beyond(p->chunk, info.width, m, vocabulary) : m;
        if (bad != m)
            st = pawl_shard_fail_id(err, p->chunk, info.width, bad, first, vocabulary);
        for (uint64_t i = 0; i < m && st == PAWL_OK; i += IDS_STEP) {
            size_t step = m - i < IDS_STEP ? (size_t)(m - i) : IDS_STEP;
            pawl_shard_widen(p->ids, p->chunk + i * info.width, info.width, step);
            st = pawl_token_writer_add(p->writer, p->ids, step, err);
        }
        first += m;
    }
    return st;
}

/* ---- before anything is written ---- */

static enum pawl_status
hash_path(struct pawl_str path, unsigned char digest[32], struct pawl_error *err)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_sha256 *hash = NULL;
    unsigned char *chunk = malloc(CHUNK_BYTES);
    enum pawl_status st = chunk != NULL ? open_input(&file, path, err) : pawl_fail_memory(err, CHUNK_BYTES);
    if (st == PAWL_OK)
        st = pawl_sha256_new(&hash, err);
    for (uint64_t at = 0; st == PAWL_OK && at < file.bytes;) {
        size_t n = file.bytes - at < CHUNK_BYTES ? (size_t)(file.bytes - at) : CHUNK_BYTES;
        st = pawl_file_read(&file, at, chunk, n, err);
        if (st == PAWL_OK)
            pawl_sha256_update(hash, chunk, n);
        at += n;
    }
    if (st == PAWL_OK)
        pawl_sha256_finish(hash, digest);
    else
        pawl_error_path(err, path);
    pawl_sha256_free(hash);
    pawl_file_release(&file);
    free(chunk);
    return st;
}

static enum pawl_status
check_options(const struct pawl_pack_options *opt, size_t n, struct pawl_error *err)
{
    if (n == 0)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "there is no file to pack");
    if (opt->input != PAWL_PACK_BYTES && opt->input != PAWL_PACK_IDS && opt->input != PAWL_PACK_SHARDS)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no kind of input", (int)opt->input);
    if (opt->documents != PAWL_PACK_FILE && opt->documents != PAWL_PACK_LINE && opt->documents != PAWL_PACK_JSONL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no kind of document", (int)opt->documents);
    if (opt->input == PAWL_PACK_SHARDS && opt->documents != PAWL_PACK_FILE)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "the documents of token files are in the files themselves");
    if ((opt->documents == PAWL_PACK_JSONL) != (opt->field.len != 0))
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "a field is for JSON Lines, and they need one");
    if (opt->input == PAWL_PACK_BYTES &&
        (opt->writer.tokenizer_id.len != 0 || opt->tokenizer_file.len != 0 || opt->writer.tokenizer_sha256 != NULL))
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "a tokenizer can be named only for ids from outside: these are bytes");
    return PAWL_OK;
}

/* What the tokenizer of bytes has: 256 ids, and the separator when it is none of them. */
static enum pawl_status
choose_bytes_vocabulary(struct pawl_token_writer_options *writer, struct pawl_error *err)
{
    uint64_t least = BYTES_VOCABULARY;
    if (writer->has_separator && writer->separator >= least)
        least = writer->separator + 1;
    if (writer->vocabulary != 0 && writer->vocabulary < least)
        return pawl_fail(err, PAWL_ARGUMENT, "argument",
                         "a vocabulary of %" PRIu64 " is too small: bytes and separator take %" PRIu64,
                         writer->vocabulary, least);
    if (writer->vocabulary == 0)
        writer->vocabulary = least;
    return PAWL_OK;
}

/* Sizes of all inputs; of token files also the vocabulary that all name, and the widest width. */
static enum pawl_status
survey(struct packing *p, uint64_t *ret_vocabulary, unsigned *ret_width, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < p->n && st == PAWL_OK; i++) {
        struct pawl_file file = PAWL_FILE_INIT;
        struct pawl_shard_info info = { .vocabulary = 0 };
        st = open_input(&file, p->paths[i], err);
        if (st == PAWL_OK)
            p->total += file.bytes;
        if (st == PAWL_OK && p->opt.input == PAWL_PACK_SHARDS) {
            size_t n = file.bytes < PAWL_SHARD_HEADER_BYTES ? (size_t)file.bytes : PAWL_SHARD_HEADER_BYTES;
            st = pawl_file_read(&file, 0, p->chunk, n, err);
            if (st == PAWL_OK)
                st = pawl_shard_parse(p->chunk, n, file.bytes, &info, err);
            if (st == PAWL_OK)
                st = pawl_shard_check_vocabulary(&info, p->vocabulary, err);
            *ret_vocabulary = i == 0 || info.vocabulary == *ret_vocabulary ? info.vocabulary : 0;
            if (info.width > *ret_width)
                *ret_width = info.width;
        }
        if (st != PAWL_OK)
            pawl_error_path(err, p->paths[i]);
        pawl_file_release(&file);
    }
    return st;
}

/* What the manifest says, and the width, by the table of the page. */
static enum pawl_status
complete_options(struct packing *p, struct pawl_error *err)
{
    struct pawl_token_writer_options *writer = &p->opt.writer;
    uint64_t named = 0;
    unsigned width = 0;
    writer->size = sizeof *writer;
    p->vocabulary = writer->vocabulary;
    enum pawl_status st = survey(p, &named, &width, err);
    if (st != PAWL_OK)
        return st;
    if (p->opt.input == PAWL_PACK_BYTES) {
        unsigned char all[BYTES_VOCABULARY];
        for (unsigned i = 0; i < BYTES_VOCABULARY; i++)
            all[i] = (unsigned char)i;
        writer->tokenizer_id = PAWL_STR("bytes");
        writer->tokenizer_sha256 = p->tokenizer_digest;
        st = choose_bytes_vocabulary(writer, err);
        if (st == PAWL_OK)
            st = pawl_sha256_of(all, sizeof all, p->tokenizer_digest, err);
    } else {
        if (writer->vocabulary == 0)
            writer->vocabulary = named;
        bool is_small = writer->vocabulary != 0 && writer->vocabulary <= 65536;
        if (writer->width == 0 && width != 0 && !is_small)
            writer->width = (uint8_t)width;
        if (p->opt.tokenizer_file.len != 0) {
            st = hash_path(p->opt.tokenizer_file, p->tokenizer_digest, err);
            writer->tokenizer_sha256 = p->tokenizer_digest;
        }
    }
    if (st == PAWL_OK && p->opt.corpus_manifest.len != 0) {
        st = hash_path(p->opt.corpus_manifest, p->corpus_digest, err);
        writer->corpus_sha256 = p->corpus_digest;
    }
    return st;
}

/* ---- the whole ---- */

static enum pawl_status
pack_file(struct packing *p, struct pawl_str path, struct pawl_error *err)
{
    struct input in = { p, PAWL_FILE_INIT, 0 };
    enum pawl_status st = open_input(&in.file, path, err);
    if (st != PAWL_OK)
        goto out;
    if (p->opt.input == PAWL_PACK_SHARDS)
        st = pack_shard(&in, err);
    else if (p->opt.documents == PAWL_PACK_JSONL)
        st = pack_json_lines(&in, err);
    else if (p->opt.input == PAWL_PACK_IDS)
        st = pack_ids_of_text(&in, p->opt.documents == PAWL_PACK_LINE, err);
    else if (p->opt.documents == PAWL_PACK_LINE)
        st = pack_bytes_of_lines(&in, err);
    else
        st = pack_bytes_of_file(&in, err);
    /* A file that is still being written would be packed in part, under a digest that nobody can check. */
    if (st == PAWL_OK)
        st = pawl_file_check_unchanged(&in.file, err);
    if (st == PAWL_OK && p->file_hash != NULL) {
        unsigned char digest[32];
        char line[65];
        pawl_sha256_finish(p->file_hash, digest);
        pawl_sha256_print(digest, line);
        line[64] = '\n';
        pawl_sha256_update(p->corpus_hash, line, sizeof line);
    }
out:
    if (st != PAWL_OK)
        pawl_error_path(err, path);
    pawl_file_release(&in.file);
    return st;
}

struct pawl_packed {
    struct pawl_arena arena;
    struct pawl_token_file *files;
    size_t n;
};

static enum pawl_status
keep_result(const struct pawl_token_file *files, size_t n, struct pawl_packed **ret_packed, struct pawl_error *err)
{
    struct pawl_packed *packed = calloc(1, sizeof *packed);
    if (packed == NULL)
        return pawl_fail_memory(err, sizeof *packed);
    packed->n = n;
    packed->files = pawl_arena_take_array(&packed->arena, n, sizeof *files);
    bool is_ok = packed->files != NULL;
    for (size_t i = 0; i < n && is_ok; i++) {
        packed->files[i] = files[i];
        is_ok = pawl_arena_copy_str(&packed->arena, files[i].name, &packed->files[i].name) &&
                pawl_arena_copy_str(&packed->arena, files[i].split, &packed->files[i].split);
    }
    if (!is_ok) {
        pawl_packed_free(packed);
        return pawl_fail_memory(err, n * sizeof *files);
    }
    *ret_packed = packed;
    return PAWL_OK;
}

static enum pawl_status
pack_all(struct packing *p, struct pawl_str directory, struct pawl_packed **ret_packed, struct pawl_error *err)
{
    const struct pawl_token_file *files = NULL;
    size_t n_files = 0;
    enum pawl_status st = complete_options(p, err);
    if (st == PAWL_OK && p->opt.writer.corpus_sha256 == NULL) {
        st = pawl_sha256_new(&p->file_hash, err);
        if (st == PAWL_OK)
            st = pawl_sha256_new(&p->corpus_hash, err);
    }
    if (st == PAWL_OK)
        st = pawl_token_writer_open(directory, &p->opt.writer, &p->writer, err);
    if (st != PAWL_OK)
        return st;
    p->id_limit = pawl_token_writer_id_limit(p->writer);
    for (size_t i = 0; i < p->n && st == PAWL_OK; i++)
        st = pack_file(p, p->paths[i], err);
    if (st == PAWL_OK && p->corpus_hash != NULL) {
        pawl_sha256_finish(p->corpus_hash, p->corpus_digest);
        pawl_token_writer_corpus(p->writer, p->corpus_digest);
    }
    if (st == PAWL_OK)
        st = pawl_token_writer_finish(p->writer, &files, &n_files, err);
    if (st == PAWL_OK && ret_packed != NULL)
        st = keep_result(files, n_files, ret_packed, err);
    return st;
}

enum pawl_status
pawl_pack(struct pawl_str directory, const struct pawl_str *files, size_t n, const struct pawl_pack_options *options,
          struct pawl_packed **ret_packed, struct pawl_error *err)
{
    struct packing p = { .opt = PAWL_PACK_OPTIONS(.input = PAWL_PACK_BYTES), .paths = files, .n = n };
    struct pawl_token_files *expanded = NULL;
    if (options != NULL)
        memcpy(&p.opt, options, options->size < sizeof p.opt ? options->size : sizeof p.opt);
    enum pawl_status st = check_options(&p.opt, n, err);
    if (st != PAWL_OK)
        return st;
    p.chunk = malloc(CHUNK_BYTES);
    p.ids = malloc(IDS_STEP * sizeof *p.ids);
    if (p.chunk == NULL || p.ids == NULL)
        st = pawl_fail_memory(err, CHUNK_BYTES);
    if (st == PAWL_OK && p.opt.input == PAWL_PACK_SHARDS) {
        st = pawl_token_files_open(files, n, PAWL_STR(""), &expanded, err);
        if (st == PAWL_OK)
            p.paths = pawl_token_files_paths(expanded, &p.n);
    }
    if (st == PAWL_OK)
        st = pack_all(&p, directory, ret_packed, err);
    pawl_token_writer_close(p.writer);
    pawl_token_files_close(expanded);
    pawl_sha256_free(p.file_hash);
    pawl_sha256_free(p.corpus_hash);
    free(p.chunk);
    free(p.ids);
    return st;
}

const struct pawl_token_file *
pawl_packed_files(const struct pawl_packed *packed, size_t *ret_n)
{
    *ret_n = packed->n;
    return packed->files;
}

void
pawl_packed_free(struct pawl_packed *packed)
{
    if (packed == NULL)
        return;
    pawl_arena_release(&packed->arena);
    free(packed);
}
