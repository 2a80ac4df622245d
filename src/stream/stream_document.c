#include "stream/stream_document.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include "base/arena.h"
#include "codec/utf8.h"
#include "formats/json/json.h"
#include "pawl/digest.h"
#include "stream/stream_state.h"

/* Windows of a block of a mixture; one source has no use for it, the document names it all the same. */
#define BLOCK_DEFAULT 65536
/* The largest count that every reader of JSON keeps exact. */
#define COUNT_MAX ((UINT64_C(1) << 53) - 1)

/* ---- writing ---- */

static void
put_u64(struct pawl_json_writer *json, const char *key, uint64_t value)
{
    pawl_json_write_key(json, pawl_str_z(key));
    pawl_json_write_u64(json, value);
}

static void
put_text(struct pawl_json_writer *json, const char *key, const char *text)
{
    pawl_json_write_key(json, pawl_str_z(key));
    if (text == NULL)
        pawl_json_write_null(json);
    else
        pawl_json_write_string(json, pawl_str_z(text));
}

static void
put_list_of_one(struct pawl_json_writer *json, const char *key, uint64_t value)
{
    pawl_json_write_key(json, pawl_str_z(key));
    pawl_json_write_array(json);
    pawl_json_write_u64(json, value);
    pawl_json_write_array_end(json);
}

static void
put_shards(struct pawl_json_writer *json, const struct pawl_stream *stream)
{
    pawl_json_write_key(json, PAWL_STR("shards"));
    pawl_json_write_array(json);
    for (size_t i = 0; i < stream->n; i++) {
        char hex[65];
        pawl_json_write_object(json);
        pawl_json_write_key(json, PAWL_STR("name"));
        pawl_json_write_string(json, stream->shards[i].name);
        put_u64(json, "ids", stream->shards[i].ids);
        put_u64(json, "width", stream->shards[i].width);
        if (stream->has_sha256[i])
            pawl_sha256_print(stream->sha256[i], hex);
        put_text(json, "sha256", stream->has_sha256[i] ? hex : NULL);
        pawl_json_write_object_end(json);
    }
    pawl_json_write_array_end(json);
}

static void
put_segment(struct pawl_json_writer *json, const struct pawl_stream *stream)
{
    pawl_json_write_object(json);
    put_u64(json, "start", 0);
    put_u64(json, "seq_len", stream->seq_len);
    put_text(json, "mix", "mix-1");
    put_u64(json, "block", BLOCK_DEFAULT);
    put_list_of_one(json, "weights", 1);
    put_list_of_one(json, "bases", 0);
    put_list_of_one(json, "shards", stream->n);
    pawl_json_write_object_end(json);
}

enum pawl_status
pawl_stream_write_document(const struct pawl_stream *stream, struct pawl_buffer *out, struct pawl_error *err)
{
    uint64_t pass = stream->at.pass, windows = stream->at.windows;
    bool has_seed = stream->has_seed;
    if (!stream->at.is_counted && !pawl_stream_count(stream, &stream->at, &pass, &windows))
        has_seed = false;

    for (size_t i = 0; i < stream->n; i++) {
        struct pawl_str name = stream->shards[i].name;
        if (pawl_utf8_first_bad(name.data, name.len) != name.len)
            return pawl_fail(err, PAWL_ARGUMENT, "utf8",
                             "the name of shard %zu ('%s') is not UTF-8: a checkpoint can't record it", i,
                             PAWL_SHOW(name));
    }

    char seed[17], pcg_state[17], pcg_inc[17];
    (void)snprintf(seed, sizeof seed, "%016" PRIx64, stream->seed);
    pawl_pcg32_print(&stream->at.rng, pcg_state, pcg_inc);

    struct pawl_json_writer json;
    pawl_json_write_begin(&json, out, PAWL_JSON_INDENTED, PAWL_JSON_RAW);
    pawl_json_write_object(&json);
    put_u64(&json, "version", 1);
    put_u64(&json, "window", windows);
    put_text(&json, "seed", has_seed ? seed : NULL);
    pawl_json_write_key(&json, PAWL_STR("sources"));
    pawl_json_write_array(&json);
    pawl_json_write_object(&json);
    put_text(&json, "name", "0");
    put_text(&json, "order", "base-1");
    put_text(&json, "seed", has_seed ? seed : NULL);
    put_shards(&json, stream);
    pawl_json_write_key(&json, PAWL_STR("at"));
    pawl_json_write_array(&json);
    pawl_json_write_object(&json);
    put_u64(&json, "windows", windows);
    put_u64(&json, "pass", pass);
    put_u64(&json, "shard", stream->at.shard);
    put_u64(&json, "offset", stream->at.offset);
    put_text(&json, "pcg_state", pcg_state);
    put_text(&json, "pcg_inc", pcg_inc);
    pawl_json_write_object_end(&json);
    pawl_json_write_array_end(&json);
    pawl_json_write_object_end(&json);
    pawl_json_write_array_end(&json);
    pawl_json_write_key(&json, PAWL_STR("segments"));
    pawl_json_write_array(&json);
    put_segment(&json, stream);
    pawl_json_write_array_end(&json);
    pawl_json_write_object_end(&json);
    (void)pawl_buffer_add_char(out, '\n');
    return pawl_buffer_ok(out) ? PAWL_OK : pawl_fail_memory(err, out->len);
}

/* ---- reading ---- */

/* The first thing that is wrong; the rest is then not looked at. */
struct reading {
    struct pawl_error *err;
    enum pawl_status st;
};

/* What the parts of a document say; shards stay in the tree. */
struct document {
    uint64_t window;
    bool has_seed;
    uint64_t seed;
    const struct pawl_json_value *shards;
    uint64_t windows, pass, shard, offset;
    struct pawl_pcg32 rng;
    uint64_t seq_len;
};

static void
refuse(struct reading *r, const struct pawl_json_value *value, const char *what, const char *expected)
{
    if (r->st == PAWL_OK)
        r->st = pawl_fail_at(r->err, PAWL_CORRUPT, "content", value->offset, "'%s' is not %s", what, expected);
}

static void
refuse_kind(struct reading *r, const struct pawl_json_value *value, const char *found)
{
    if (r->st == PAWL_OK)
        r->st =
            pawl_fail_at(r->err, PAWL_UNSUPPORTED, "unsupported", value->offset,
                         "the cursor is of a stream with %s; this version reads one source in the order base-1", found);
}

/* An object of exactly these keys; NULL-terminated. */
static bool
is_object(struct reading *r, const struct pawl_json_value *object, const char *what, const char *const *keys)
{
    size_t n = 0;
    if (r->st != PAWL_OK)
        return false;
    if (object->type != PAWL_JSON_OBJECT) {
        refuse(r, object, what, "an object");
        return false;
    }
    for (; keys[n] != NULL; n++) {
        if (pawl_json_member(object, pawl_str_z(keys[n])) == NULL) {
            r->st =
                pawl_fail_at(r->err, PAWL_CORRUPT, "content", object->offset, "'%s' lacks the key '%s'", what, keys[n]);
            return false;
        }
    }
    /* No key twice, the parser sees to that: so more members than keys is an unknown one. */
    for (size_t i = 0; i < object->n && object->n != n; i++) {
        size_t k = 0;
        while (k < n && !pawl_str_equal(object->first[i].key, pawl_str_z(keys[k])))
            k++;
        if (k == n) {
            r->st = pawl_fail_at(r->err, PAWL_CORRUPT, "content", object->first[i].offset,
                                 "'%s' has an unknown key '%s'", what, PAWL_SHOW(object->first[i].key));
            return false;
        }
    }
    return true;
}

static uint64_t
get_count(struct reading *r, const struct pawl_json_value *object, const char *key, uint64_t min, uint64_t max)
{
    uint64_t number = 0;
    if (r->st != PAWL_OK)
        return 0;
    const struct pawl_json_value *value = pawl_json_member(object, pawl_str_z(key));
    if (value->type != PAWL_JSON_NUMBER || !pawl_json_u64(value->text, &number) || number < min || number > max) {
        r->st = pawl_fail_at(r->err, PAWL_CORRUPT, "content", value->offset,
                             "'%s' is not an integer from %" PRIu64 " to %" PRIu64, key, min, max);
        return 0;
    }
    return number;
}

static struct pawl_str
get_text(struct reading *r, const struct pawl_json_value *object, const char *key)
{
    if (r->st != PAWL_OK)
        return PAWL_STR("");
    const struct pawl_json_value *value = pawl_json_member(object, pawl_str_z(key));
    if (value->type == PAWL_JSON_STRING && value->text.len != 0)
        return value->text;
    refuse(r, value, key, "a string of at least one character");
    return PAWL_STR("");
}

/* 16 hex digits, or null: false. */
static bool
get_seed(struct reading *r, const struct pawl_json_value *object, uint64_t *ret)
{
    static const char INC_ONE[] = "0000000000000001";
    struct pawl_pcg32 parsed = { 0 };
    if (r->st != PAWL_OK)
        return false;
    const struct pawl_json_value *value = pawl_json_member(object, PAWL_STR("seed"));
    if (value->type == PAWL_JSON_NULL)
        return false;
    if (value->type != PAWL_JSON_STRING ||
        pawl_pcg32_parse(&parsed, value->text, pawl_str_z(INC_ONE), NULL) != PAWL_OK) {
        refuse(r, value, "seed", "16 lowercase hex digits or null");
        return false;
    }
    *ret = parsed.state;
    return true;
}

/* A list with at least one item; NULL when it is not. */
static const struct pawl_json_value *
get_list(struct reading *r, const struct pawl_json_value *object, const char *key)
{
    if (r->st != PAWL_OK)
        return NULL;
    const struct pawl_json_value *value = pawl_json_member(object, pawl_str_z(key));
    if (value->type == PAWL_JSON_ARRAY && value->n != 0)
        return value;
    refuse(r, value, key, "a list of at least one item");
    return NULL;
}

static void
read_at(struct reading *r, const struct pawl_json_value *at, struct document *doc)
{
    static const char *const KEYS[] = { "windows", "pass", "shard", "offset", "pcg_state", "pcg_inc", NULL };
    if (!is_object(r, at, "at", KEYS))
        return;
    doc->windows = get_count(r, at, "windows", 0, COUNT_MAX);
    doc->pass = get_count(r, at, "pass", 0, COUNT_MAX);
    doc->shard = get_count(r, at, "shard", 0, COUNT_MAX);
    doc->offset = get_count(r, at, "offset", 0, COUNT_MAX);
    struct pawl_str state = get_text(r, at, "pcg_state"), inc = get_text(r, at, "pcg_inc");
    if (r->st == PAWL_OK && pawl_pcg32_parse(&doc->rng, state, inc, NULL) != PAWL_OK)
        refuse(r, at, "at", "the state of a generator: 16 lowercase hex digits twice, the increment odd");
    if (r->st == PAWL_OK && doc->windows != doc->window)
        refuse(r, at, "windows", "the 'window' of the stream, which has one source");
}

static void
read_shard(struct reading *r, const struct pawl_json_value *shard)
{
    static const char *const KEYS[] = { "name", "ids", "width", "sha256", NULL };
    unsigned char digest[32];
    if (!is_object(r, shard, "shards", KEYS))
        return;
    (void)get_text(r, shard, "name");
    (void)get_count(r, shard, "ids", 0, COUNT_MAX);
    uint64_t width = get_count(r, shard, "width", 1, 4);
    const struct pawl_json_value *sha256 = pawl_json_member(shard, PAWL_STR("sha256"));
    if (width == 3)
        refuse(r, shard, "width", "1, 2 or 4");
    if (sha256->type != PAWL_JSON_NULL &&
        (sha256->type != PAWL_JSON_STRING || !pawl_sha256_parse(sha256->text, digest)))
        refuse(r, sha256, "sha256", "64 lowercase hex digits or null");
}

static void
read_source(struct reading *r, const struct pawl_json_value *source, struct document *doc)
{
    static const char *const KEYS[] = { "name", "order", "seed", "shards", "at", NULL };
    uint64_t seed = 0;
    if (!is_object(r, source, "sources", KEYS))
        return;
    (void)get_text(r, source, "name");
    struct pawl_str order = get_text(r, source, "order");
    if (r->st == PAWL_OK && !pawl_str_equal(order, PAWL_STR("base-1")))
        refuse_kind(r, source, PAWL_SHOW(order));
    bool has_seed = get_seed(r, source, &seed);
    if (r->st == PAWL_OK && (has_seed != doc->has_seed || seed != doc->seed))
        refuse_kind(r, source, "another seed for its source");
    doc->shards = get_list(r, source, "shards");
    for (size_t i = 0; r->st == PAWL_OK && i < doc->shards->n; i++)
        read_shard(r, &doc->shards->first[i]);
    const struct pawl_json_value *at = get_list(r, source, "at");
    if (at != NULL && at->n != 1)
        refuse_kind(r, at, "several lanes");
    if (r->st == PAWL_OK)
        read_at(r, &at->first[0], doc);
}

/* A list of one number. */
static uint64_t
get_single(struct reading *r, const struct pawl_json_value *object, const char *key)
{
    uint64_t number = 0;
    const struct pawl_json_value *list = get_list(r, object, key);
    if (list == NULL)
        return 0;
    if (list->n != 1 || list->first[0].type != PAWL_JSON_NUMBER || !pawl_json_u64(list->first[0].text, &number))
        refuse(r, list, key, "a list of one integer, as there is one source");
    return number;
}

static void
read_segment(struct reading *r, const struct pawl_json_value *segment, struct document *doc)
{
    static const char *const KEYS[] = { "start", "seq_len", "mix", "block", "weights", "bases", "shards", NULL };
    if (!is_object(r, segment, "segments", KEYS))
        return;
    uint64_t start = get_count(r, segment, "start", 0, COUNT_MAX);
    doc->seq_len = get_count(r, segment, "seq_len", 1, 2147483646);
    struct pawl_str mix = get_text(r, segment, "mix");
    (void)get_count(r, segment, "block", 1, 16777216);
    uint64_t weight = get_single(r, segment, "weights");
    uint64_t base = get_single(r, segment, "bases");
    uint64_t shards = get_single(r, segment, "shards");
    if (r->st != PAWL_OK)
        return;
    if (!pawl_str_equal(mix, PAWL_STR("mix-1")))
        refuse(r, segment, "mix", "mix-1");
    else if (weight == 0 || weight > UINT32_MAX)
        refuse(r, segment, "weights", "a list of one number from 1 to 4294967295");
    else if (start != 0 || base != 0)
        refuse_kind(r, segment, "windows that were skipped");
    else if (shards != doc->shards->n)
        refuse_kind(r, segment, "shards that are not in use");
}

static enum pawl_status
read_document(struct pawl_arena *arena, const void *text, size_t bytes, struct document *ret, struct pawl_error *err)
{
    static const char *const KEYS[] = { "version", "window", "seed", "sources", "segments", NULL };
    const struct pawl_json_value *root = NULL;
    struct document doc = { .window = 0 };
    struct reading r = { err, PAWL_OK };
    if (bytes > PAWL_STREAM_DOCUMENT_BYTES_MAX)
        return pawl_fail(err, PAWL_CORRUPT, "content", "the document has %zu bytes, at most %zu were expected", bytes,
                         PAWL_STREAM_DOCUMENT_BYTES_MAX);
    r.st = pawl_json_parse(arena, text, bytes, 0, &root, err);
    if (r.st == PAWL_CORRUPT)
        pawl_error_code(err, "content");
    if (r.st != PAWL_OK || !is_object(&r, root, "the document", KEYS))
        return r.st;

    (void)get_count(&r, root, "version", 1, 1);
    doc.window = get_count(&r, root, "window", 0, COUNT_MAX);
    doc.has_seed = get_seed(&r, root, &doc.seed);
    const struct pawl_json_value *sources = get_list(&r, root, "sources");
    if (sources != NULL && sources->n != 1)
        refuse_kind(&r, sources, "several sources");
    const struct pawl_json_value *segments = get_list(&r, root, "segments");
    if (segments != NULL && segments->n != 1)
        refuse_kind(&r, segments, "several segments");
    if (r.st == PAWL_OK)
        read_source(&r, &sources->first[0], &doc);
    if (r.st == PAWL_OK)
        read_segment(&r, &segments->first[0], &doc);
    if (r.st == PAWL_OK)
        *ret = doc;
    return r.st;
}

/* ---- the data set ---- */

static enum pawl_status
compare_shard(const struct pawl_stream *stream, size_t i, const struct pawl_json_value *then, struct pawl_error *err)
{
    const struct pawl_stream_shard *now = &stream->shards[i];
    const struct pawl_json_value *sha256 = pawl_json_member(then, PAWL_STR("sha256"));
    struct pawl_str name = pawl_json_member(then, PAWL_STR("name"))->text;
    uint64_t ids = 0, width = 0;
    char hex[65];
    (void)pawl_json_u64(pawl_json_member(then, PAWL_STR("ids"))->text, &ids);
    (void)pawl_json_u64(pawl_json_member(then, PAWL_STR("width"))->text, &width);
    if (!pawl_str_equal(now->name, name))
        return pawl_fail(err, PAWL_MISMATCH, "mismatch", "another data set: shard %zu was '%s', now it is '%s'", i,
                         PAWL_SHOW(name), PAWL_SHOW(now->name));
    if (now->ids != ids)
        return pawl_fail(err, PAWL_MISMATCH, "mismatch",
                         "another data set: shard %zu ('%s') had %" PRIu64 " ids, now it has %" PRIu64, i,
                         PAWL_SHOW(name), ids, now->ids);
    if (now->width != width)
        return pawl_fail(err, PAWL_MISMATCH, "mismatch",
                         "another data set: shard %zu ('%s') had ids of %" PRIu64 " bytes, now of %u", i,
                         PAWL_SHOW(name), width, now->width);
    if (!stream->has_sha256[i] || sha256->type == PAWL_JSON_NULL)
        return PAWL_OK;
    pawl_sha256_print(stream->sha256[i], hex);
    if (!pawl_str_equal(pawl_str_z(hex), sha256->text))
        return pawl_fail(err, PAWL_MISMATCH, "mismatch",
                         "another data set: shard %zu ('%s') had the sha256 %s, now it has %s", i, PAWL_SHOW(name),
                         PAWL_SHOW(sha256->text), hex);
    return PAWL_OK;
}

static enum pawl_status
compare(const struct pawl_stream *stream, const struct document *doc, struct pawl_error *err)
{
    assert(doc->shards != NULL); /* a document that was read has a list of them */
    if (doc->shards->n != stream->n)
        return pawl_fail(err, PAWL_MISMATCH, "mismatch", "another data set: it had %zu shards, now it has %zu",
                         doc->shards->n, stream->n);
    for (size_t i = 0; i < stream->n; i++) {
        enum pawl_status st = compare_shard(stream, i, &doc->shards->first[i], err);
        if (st != PAWL_OK)
            return st;
    }
    if (doc->seq_len != stream->seq_len)
        return pawl_fail(err, PAWL_MISMATCH, "mismatch",
                         "another stream: its windows had %" PRIu64 " ids, now they have %" PRIu64, doc->seq_len,
                         stream->seq_len);
    return PAWL_OK;
}

enum pawl_status
pawl_stream_check_document(const struct pawl_stream *stream, const void *text, size_t bytes, struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct document doc = { .window = 0 };
    enum pawl_status st = read_document(&arena, text, bytes, &doc, err);
    if (st == PAWL_OK)
        st = compare(stream, &doc, err);
    pawl_arena_release(&arena);
    return st;
}

enum pawl_status
pawl_stream_restore_document(struct pawl_stream *stream, const void *text, size_t bytes, bool is_other_data,
                             struct pawl_error *err)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct document doc = { .window = 0 };
    enum pawl_status st = read_document(&arena, text, bytes, &doc, err);
    if (st != PAWL_OK)
        goto out;
    st = compare(stream, &doc, is_other_data ? NULL : err);
    bool is_same = st == PAWL_OK;
    if (!is_same && !is_other_data)
        goto out;
    if (is_same && doc.pass % stream->n != doc.shard) {
        st = pawl_fail(err, PAWL_CORRUPT, "content",
                       "pass %" PRIu64 " of %zu shards is over shard %" PRIu64 ", not %" PRIu64, doc.pass, stream->n,
                       doc.pass % stream->n, doc.shard);
        goto out;
    }
    struct pawl_stream_cursor cursor = { doc.shard, doc.offset, doc.rng };
    st = pawl_stream_restore(stream, &cursor, err);
    if (st != PAWL_OK || !is_same)
        goto out;

    stream->at.pass = doc.pass;
    stream->at.windows = doc.windows;
    stream->at.is_counted = true;
    /* The seed belongs to the position: what the stream was opened with would be a lie in the next document. A generator
     * that was handed over is not in the document; its place here stays what the caller gave. */
    stream->has_seed = doc.has_seed;
    if (doc.has_seed) {
        stream->seed = doc.seed;
        pawl_pcg32_stream(&stream->first, doc.seed, PAWL_PURPOSE_SHUFFLE);
    }
out:
    pawl_arena_release(&arena);
    return st;
}
