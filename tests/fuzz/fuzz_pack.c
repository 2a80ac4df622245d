/*
 * Files that are packed: bytes by file and by line, decimal ids, JSON Lines of strings and of ids, token files. The first byte says which, the second how the
 * set is written, the third how far in front of the end of what is read at once the text begins; the rest is the file. What a slower reader makes of it
 * is what the set holds; what he refuses is refused.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "formats/json/json.h"
#include "formats/tokens/shard.h"
#include "os/file.h"
#include "pawl/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHUNK_BYTES ((size_t)1 << 20)
#define SEPARATOR 300
#define SMALL_VOCABULARY 1000

enum kind { BYTES, BYTE_LINES, JSON_STRINGS, IDS, ID_LINES, JSON_IDS, TOKEN_FILE, KINDS };

static char folder[] = "fuzz-pack-XXXXXX";
static char in_path[64], out_path[64];

static void
require(bool holds)
{
    if (!holds)
        abort();
}

static void
leave_folder(void)
{
    struct pawl_dir here = PAWL_DIR_INIT;
    if (pawl_dir_open_path(&here, pawl_os_posix(), ".", NULL) == PAWL_OK)
        (void)pawl_dir_remove_tree(&here, folder, NULL);
    pawl_dir_release(&here);
}

static void
make_folder(void)
{
    if (in_path[0] != '\0')
        return;
    require(mkdtemp(folder) != NULL && atexit(leave_folder) == 0);
    (void)snprintf(in_path, sizeof in_path, "%s/in", folder);
    (void)snprintf(out_path, sizeof out_path, "%s/out", folder);
}

/* What the set is to hold. */
struct expected {
    struct pawl_buffer ids; /* uint32_t each */
    uint64_t documents;
    uint64_t limit; /* ids are below this */
    bool has_separator;
    bool is_refused;
    bool is_refusable; /* may be refused all the same */
    bool is_unknown;   /* nothing of this is known */
};

static void
add_id(struct expected *e, uint64_t id)
{
    uint32_t narrow = (uint32_t)id;
    e->is_refused = e->is_refused || id >= e->limit;
    require(pawl_buffer_add(&e->ids, &narrow, sizeof narrow));
}

static void
begin_document(struct expected *e)
{
    e->documents++;
    if (e->has_separator)
        add_id(e, SEPARATOR);
}

static void
add_bytes(struct expected *e, struct pawl_str text)
{
    for (size_t i = 0; i < text.len; i++)
        add_id(e, (unsigned char)text.data[i]);
}

static void
add_decimals(struct expected *e, struct pawl_str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t digits = i;
        long double value = 0;
        for (; digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9'; digits++)
            value = value * 10 + (text.data[digits] - '0');
        if (digits != i)
            add_id(e, value > (long double)UINT32_MAX ? UINT64_MAX : (uint64_t)value);
        else if (memchr(" \t\r\n", text.data[digits++], 4) == NULL)
            e->is_refused = true;
        i = digits;
    }
}

static void
add_json(struct expected *e, struct pawl_str line, bool is_ids)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_json_value *value;
    enum pawl_status st = pawl_json_parse(&arena, line.data, line.len, 0, &value, &err);
    if (st != PAWL_OK) {
        e->is_unknown = strcmp(err.code, "duplicate-key") == 0; /* of another one than FIELD it may be */
        e->is_refused = true;
    } else {
        const struct pawl_json_value *field = pawl_json_member(value, PAWL_STR("t"));
        if (field == NULL || field->type != (is_ids ? PAWL_JSON_ARRAY : PAWL_JSON_STRING))
            e->is_refused = true;
        else if (!is_ids)
            add_bytes(e, field->text);
        for (size_t i = 0; is_ids && !e->is_refused && i < field->n; i++) {
            uint64_t id = 0;
            e->is_refused = field->first[i].type != PAWL_JSON_NUMBER || !pawl_json_u64(field->first[i].text, &id);
            add_id(e, id);
        }
    }
    pawl_arena_release(&arena);
}

static void
add_lines(struct expected *e, struct pawl_str text, enum kind kind)
{
    for (size_t at = 0; at < text.len && !e->is_refused;) {
        const char *feed = memchr(text.data + at, '\n', text.len - at);
        size_t end = feed == NULL ? text.len : (size_t)(feed - text.data);
        struct pawl_str line = { text.data + at, end - at };
        at = end + 1;
        if (line.len == 0 && (kind == JSON_STRINGS || kind == JSON_IDS))
            continue;
        begin_document(e);
        if (kind == BYTE_LINES)
            add_bytes(e, line);
        else if (kind == ID_LINES)
            add_decimals(e, line);
        else
            add_json(e, line, kind == JSON_IDS);
    }
}

static void
add_token_file(struct expected *e, struct pawl_str text)
{
    struct pawl_shard_info info;
    size_t n = text.len < PAWL_SHARD_HEADER_BYTES ? text.len : PAWL_SHARD_HEADER_BYTES;
    e->is_refused = pawl_shard_parse(text.data, n, text.len, &info, NULL) != PAWL_OK;
    e->is_refusable = true; /* by what it says of its vocabulary */
    begin_document(e);
    for (uint64_t i = 0; !e->is_refused && i < info.ids; i++)
        add_id(e, pawl_shard_id(text.data + PAWL_SHARD_HEADER_BYTES, info.width, i));
}

static void
check_set(const struct expected *e)
{
    struct pawl_str path = pawl_str_z(out_path);
    struct pawl_token_files *files;
    size_t n;
    uint64_t documents = 0, at = 0, total = e->ids.len / sizeof(uint32_t);
    require(pawl_token_files_open(&path, 1, PAWL_STR(""), &files, NULL) == PAWL_OK);
    const struct pawl_str *paths = pawl_token_files_paths(files, &n);
    for (size_t i = 0; i < n; i++) {
        struct pawl_shard *shard;
        require(pawl_shard_open(paths[i], NULL, &shard, NULL) == PAWL_OK);
        uint64_t ids = pawl_shard_info(shard).ids;
        uint32_t *got = malloc((size_t)ids * sizeof *got + 1);
        require(got != NULL && ids <= total - at && pawl_shard_read(shard, 0, (size_t)ids, got, NULL) == PAWL_OK);
        require(ids == 0 || memcmp(got, e->ids.data + at * sizeof *got, (size_t)ids * sizeof *got) == 0);
        free(got);
        at += ids;
        documents += pawl_token_files_documents(files, i);
        pawl_shard_close(shard);
    }
    require(at == total && documents == e->documents);
    pawl_token_files_close(files);
}

/* The file: the text behind `padding` times a character that adds little. */
static void
write_input(struct pawl_buffer *text, const uint8_t *data, size_t size, size_t padding, char pad)
{
    require(pawl_buffer_reserve(text, padding + size + 1));
    if (padding != 0)
        memset(text->data, pad, padding);
    text->len = padding;
    require(size == 0 || pawl_buffer_add(text, data, size));
    FILE *file = fopen(in_path, "wb");
    require(file != NULL && (text->len == 0 || fwrite(text->data, 1, text->len, file) == text->len));
    require(fclose(file) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char pads[KINDS] = { 'x', 'x', '\n', ' ', ' ', '\n', 'x' };
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (size < 3)
        return 0;
    make_folder();
    enum kind kind = data[0] % KINDS;
    bool is_padded = data[1] >= 0xf8 && kind != BYTES && kind != TOKEN_FILE; /* seldom: it takes its time */
    struct expected e = { .ids = PAWL_BUFFER_INIT, .has_separator = (data[1] & 1) != 0 };
    uint64_t vocabulary = (data[1] & 2) != 0 ? SMALL_VOCABULARY : 0;
    bool is_bytes = kind <= JSON_STRINGS;
    e.limit = vocabulary != 0 ? vocabulary : is_bytes ? SEPARATOR + 1 : UINT64_C(1) << 32;
    write_input(&text, data + 3, size - 3, is_padded ? CHUNK_BYTES - data[2] : 0, pads[kind]);
    struct pawl_str all = pawl_buffer_str(&text);
    if (kind == TOKEN_FILE) {
        add_token_file(&e, all);
    } else if (kind == BYTES || kind == IDS) {
        begin_document(&e);
        if (kind == BYTES)
            add_bytes(&e, all);
        else
            add_decimals(&e, all);
    } else {
        add_lines(&e, all, kind);
    }

    const struct pawl_pack_options options =
        PAWL_PACK_OPTIONS(.input = kind == TOKEN_FILE ? PAWL_PACK_SHARDS
                                   : is_bytes         ? PAWL_PACK_BYTES
                                                      : PAWL_PACK_IDS,
                          .documents = kind == JSON_STRINGS || kind == JSON_IDS ? PAWL_PACK_JSONL
                                       : kind == BYTE_LINES || kind == ID_LINES ? PAWL_PACK_LINE
                                                                                : PAWL_PACK_FILE,
                          .field = kind == JSON_STRINGS || kind == JSON_IDS ? PAWL_STR("t") : PAWL_STR(""),
                          .writer = PAWL_TOKEN_WRITER_OPTIONS(.vocabulary = vocabulary, .separator = SEPARATOR,
                                                              .has_separator = e.has_separator, .replace = 1,
                                                              .max_ids = (data[1] & 4) != 0 && !is_padded ? 5 : 0));
    struct pawl_str in = pawl_str_z(in_path);
    enum pawl_status st = pawl_pack(pawl_str_z(out_path), &in, 1, &options, NULL, &err);
    require(e.is_unknown || (st == PAWL_OK ? !e.is_refused : e.is_refused || e.is_refusable));
    require(st == PAWL_OK || (err.code[0] != '\0' && err.message[0] != '\0'));
    if (st == PAWL_OK && !e.is_unknown)
        check_set(&e);
    pawl_buffer_release(&e.ids);
    pawl_buffer_release(&text);
    return 0;
}
