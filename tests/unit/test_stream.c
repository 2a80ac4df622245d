#include "token_support.h"
#include "os/os.h"
#include "stream/shard_file.h"
#include "stream/stream_state.h"
#include "unit/emulator.h"

/* One row of orders.tsv, opened over files made for it. */
struct golden_order {
    struct pawl_stream *stream;
    uint64_t seq_len, ids[16];
    size_t n;
};

static void
open_golden_order(struct golden_order *order, size_t row)
{
    char *text = get_file(GOLDEN "orders.tsv", NULL), *line = text, *fields[5] = { NULL };
    for (size_t i = 0; i < row; i++)
        line = strchr(line, '\n') + 1;
    assert_int_equal(cut_line(line, fields, 5), 5);
    order->seq_len = strtoull(fields[1], NULL, 10);
    order->n = cut_numbers(fields[2], order->ids, 16);

    char names[16][64];
    const char *paths[16];
    fresh_folder("golden-order");
    for (size_t s = 0; s < order->n; s++) {
        (void)snprintf(names[s], sizeof names[s], "golden-order/%zu.bin", s);
        paths[s] = names[s];
        if (order->ids[s] < 1000000)
            put_counting_shard(names[s], 4, (uint32_t)s << 24, order->ids[s]);
        else if (!put_sparse_shard(names[s], 2, order->ids[s]))
            skip();
    }
    struct pawl_pcg32 rng = { 0 };
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = order->seq_len, .batch = 1);
    char *colon = strchr(fields[3], ':');
    if (colon != NULL) {
        *colon = '\0';
        assert_int_equal(pawl_pcg32_parse(&rng, pawl_str_z(fields[3]), pawl_str_z(colon + 1), NULL), PAWL_OK);
        options.rng = &rng;
    } else {
        options.seed = strtoull(fields[3], NULL, 16);
    }
    assert_int_equal(pawl_stream_open_z(paths, order->n, &options, &order->stream, NULL), PAWL_OK);
    free(text);
}

/*
 * Goal: the order is the reference's, for ever. Method: each golden stream is walked from its beginning over shards
 * whose ids say where they stand, and each window held against the table; a window or cursor of a stream that is too
 * long to walk is reached by a golden cursor.
 */
static void
windows_and_cursors_are_the_reference_s(void **state)
{
    (void)state;
    char *windows = get_file(GOLDEN "windows.tsv", NULL), *cursors = get_file(GOLDEN "cursors.tsv", NULL);
    size_t checked_windows = 0, checked_cursors = 0;
    for (size_t row = 0; row < 6; row++) {
        struct golden_order order;
        open_golden_order(&order, row);
        bool is_sparse = order.ids[0] >= 1000000;
        uint32_t *inputs = calloc(order.seq_len, 4), *targets = calloc(order.seq_len, 4);
        const uint64_t walk = is_sparse ? 8 : 5007;
        for (uint64_t g = 0; g <= walk; g++) {
            char prefix[64], *at;
            struct pawl_stream_cursor cursor;
            pawl_stream_cursor(order.stream, &cursor);
            (void)snprintf(prefix, sizeof prefix, "\n%zu\t%" PRIu64 "\t", row, g);
            at = strncmp(cursors, prefix + 1, strlen(prefix) - 1) == 0 ? cursors - 1 : strstr(cursors, prefix);
            if (at != NULL) {
                uint64_t count, pass, shard, offset, rng_state, inc;
                assert_int_equal(sscanf(at + strlen(prefix),
                                        "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNx64, &count,
                                        &pass, &shard, &offset, &rng_state, &inc),
                                 6);
                assert_int_equal(cursor.shard, shard);
                assert_int_equal(cursor.offset, offset);
                assert_true(cursor.rng.state == rng_state && cursor.rng.inc == inc);
                assert_int_equal(order.stream->at.windows, count);
                assert_int_equal(order.stream->at.pass, pass);
                checked_cursors++;
            }
            assert_int_equal(pawl_stream_next(order.stream, inputs, targets, NULL), PAWL_OK);
            at = strncmp(windows, prefix + 1, strlen(prefix) - 1) == 0 ? windows - 1 : strstr(windows, prefix);
            if (at != NULL && !is_sparse) {
                uint64_t shard, offset;
                assert_int_equal(sscanf(at + strlen(prefix), "%" SCNu64 " %" SCNu64, &shard, &offset), 2);
                for (uint64_t i = 0; i < order.seq_len; i++) {
                    assert_int_equal(inputs[i], (shard << 24) + offset + i);
                    assert_int_equal(targets[i], inputs[i] + 1);
                }
                checked_windows++;
            }
        }
        free(inputs);
        free(targets);
        pawl_stream_close(order.stream);
    }
    assert_int_equal(checked_windows, 222);
    assert_int_equal(checked_cursors, 36);
    free(windows);
    free(cursors);
}

/*
 * Goal: a bare cursor, far into a run, gives the same next windows, and the count of windows before it is found again.
 * Method: every golden cursor is restored into a new stream.
 */
static void
golden_cursors_restore_with_their_counts(void **state)
{
    (void)state;
    char *text = get_file(GOLDEN "cursors.tsv", NULL), *line = text, *fields[8] = { NULL };
    struct golden_order order = { .stream = NULL };
    long row = -1;
    size_t n = 0;
    while (*line != '\0') {
        char *next = strchr(line, '\n') + 1;
        assert_int_equal(cut_line(line, fields, 8), 8);
        if (strtol(fields[0], NULL, 10) != row) {
            row = strtol(fields[0], NULL, 10);
            pawl_stream_close(order.stream);
            open_golden_order(&order, (size_t)row);
        }
        struct pawl_stream_cursor cursor = { strtoull(fields[4], NULL, 10), strtoull(fields[5], NULL, 10), { 0 } };
        assert_int_equal(pawl_pcg32_parse(&cursor.rng, pawl_str_z(fields[6]), pawl_str_z(fields[7]), NULL), PAWL_OK);
        assert_int_equal(pawl_stream_restore(order.stream, &cursor, NULL), PAWL_OK);
        uint64_t pass, windows;
        assert_true(pawl_stream_count(order.stream, &order.stream->at, &pass, &windows));
        assert_int_equal(windows, strtoull(fields[2], NULL, 10));
        assert_int_equal(pass, strtoull(fields[3], NULL, 10));
        line = next;
        n++;
    }
    pawl_stream_close(order.stream);
    free(text);
    assert_int_equal(n, 44);
}

/* Goal: the same ids give the same windows in 16 and 32 bits, with and without a stated vocabulary; ids as the hash. */
static void
containers_give_the_same_windows(void **state)
{
    (void)state;
    static const char *const FORMS[] = { "pawl1", "llmc1", "pawl2" };
    char *text = get_file(GOLDEN "containers.tsv", NULL), *line = text, *fields[5] = { NULL };
    size_t n = 0;
    while (*line != '\0') {
        char *next = strchr(line, '\n') + 1;
        assert_int_equal(cut_line(line, fields, 5), 5);
        const size_t T = strtoull(fields[1], NULL, 10), count = strtoull(fields[3], NULL, 10);
        for (size_t form = 0; form < 3; form++) {
            char path[512], hex[65];
            (void)snprintf(path, sizeof path, GOLDEN "%s.%s.bin", fields[0], FORMS[form]);
            if (!is_there(path))
                continue;
            const char *paths[] = { path };
            struct pawl_stream *stream;
            struct pawl_stream_options options =
                PAWL_STREAM_OPTIONS(.seq_len = T, .batch = 1, .seed = strtoull(fields[2], NULL, 16));
            assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, NULL), PAWL_OK);
            struct pawl_sha256 *hash;
            assert_int_equal(pawl_sha256_new(&hash, NULL), PAWL_OK);
            for (size_t i = 0; i < count; i++) {
                uint32_t inputs[16], targets[16];
                assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
                pawl_sha256_update(hash, inputs, T * 4);
                pawl_sha256_update(hash, targets + T - 1, 4);
            }
            unsigned char digest[32];
            pawl_sha256_finish(hash, digest);
            pawl_sha256_print(digest, hex);
            assert_string_equal(hex, fields[4]);
            pawl_sha256_free(hash);
            pawl_stream_close(stream);
            n++;
        }
        line = next;
    }
    free(text);
    assert_int_equal(n, 17);
}

/* ---- construction ---- */

/* Goal: what makes no stream is refused, in words. Method: one fault each. */
static void
construction_refuses(void **state)
{
    (void)state;
    static const char *const GOOD[] = { "c/10.bin" };
    static const char *const MIXED[] = { "c/10.bin", "c/v256.bin", "c/10.bin", "c/v257.bin" };
    static const char *const SHORT[] = { "c/10.bin", "c/3.bin" };
    static const char *const NONE[] = { "c/0.bin" };
    static const char *const GONE[] = { "c/10.bin", "c/gone.bin" };
    static const uint32_t IDS[] = { 1, 2, 3, 4, 255 };
    const struct pawl_pcg32 even = { .state = 1, .inc = 6 };
    fresh_folder("c");
    put_counting_shard("c/10.bin", 2, 0, 10);
    put_counting_shard("c/3.bin", 4, 0, 3);
    put_counting_shard("c/0.bin", 2, 0, 0);
    put_shard("c/v256.bin", 2, 256, IDS, 5);
    put_shard("c/v257.bin", 4, 257, IDS, 5);
    const struct {
        const char *const *paths;
        size_t n;
        struct pawl_stream_options options;
        enum pawl_status status;
        const char *code, *path, *message;
    } CASES[] = {
        { GOOD, 0, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1), PAWL_ARGUMENT, "argument", "",
          "a stream needs at least one shard, none was given" },
        { GOOD, 1, PAWL_STREAM_OPTIONS(.seq_len = 0, .batch = 1), PAWL_ARGUMENT, "argument", "",
          "seq_len must be at least 1, it is 0" },
        { GOOD, 1, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 0), PAWL_ARGUMENT, "argument", "",
          "batch must be at least 1, it is 0" },
        { GOOD, 1, PAWL_STREAM_OPTIONS(.seq_len = UINT64_C(1) << 40, .batch = UINT64_C(1) << 40), PAWL_ARGUMENT,
          "argument", "", "1099511627776 windows of 1099511627776 ids are more than memory can hold" },
        { GOOD, 1, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1, .rng = &even), PAWL_ARGUMENT, "argument", "",
          "the generator's increment 0000000000000006 is even" },
        { GOOD, 1, PAWL_STREAM_OPTIONS(.seq_len = 10, .batch = 1), PAWL_CORRUPT, "too-few-ids", "c/10.bin",
          "windows of 10 ids need a shard of one more, this one has 10" },
        { SHORT, 2, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1), PAWL_CORRUPT, "too-few-ids", "c/3.bin",
          "windows of 3 ids need a shard of one more, this one has 3" },
        { NONE, 1, PAWL_STREAM_OPTIONS(.seq_len = 1, .batch = 1), PAWL_CORRUPT, "too-few-ids", "c/0.bin",
          "windows of 1 ids need a shard of one more, this one has 0" },
        { GONE, 2, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1), PAWL_NO_FILE, "not-found", "c/gone.bin", NULL },
        { MIXED, 4, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1), PAWL_CORRUPT, "vocabulary", "c/v257.bin",
          "the shard names a vocabulary of 257, those before it one of 256" },
        { MIXED, 3, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1, .vocabulary = 300), PAWL_CORRUPT, "vocabulary",
          "c/v256.bin", "a vocabulary of 300 was asked for, the shard names 256" },
        { GOOD, 1, PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1, .vocabulary = 9), PAWL_CORRUPT, "id-range", "c/10.bin",
          "id 9 at position 9 is outside the vocabulary of 9" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_stream *stream = NULL;
        struct pawl_error err = PAWL_ERROR_INIT;
        enum pawl_status st = pawl_stream_open_z(CASES[i].paths, CASES[i].n, &CASES[i].options, &stream, &err);
        if (CASES[i].message != NULL)
            assert_string_equal(err.message, CASES[i].message);
        assert_int_equal(st, CASES[i].status);
        assert_string_equal(err.code, CASES[i].code);
        assert_string_equal(err.path, CASES[i].path);
        assert_null(stream);
    }
    /* The edges that are fine: T + 1 ids; a vocabulary that the file does not name; ids that are trusted. */
    struct pawl_stream *stream;
    struct pawl_stream_options edge = PAWL_STREAM_OPTIONS(.seq_len = 9, .batch = 2);
    uint32_t inputs[18], targets[18];
    assert_int_equal(pawl_stream_open_z(GOOD, 1, &edge, &stream, NULL), PAWL_OK);
    assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
    assert_int_equal(inputs[0], 0);
    assert_int_equal(inputs[9], 0);
    assert_int_equal(targets[17], 9);
    pawl_stream_close(stream);
    edge.vocabulary = 9;
    edge.trust_ids = 1;
    assert_int_equal(pawl_stream_open_z(GOOD, 1, &edge, &stream, NULL), PAWL_OK);
    assert_int_equal(pawl_stream_seq_len(stream), 9);
    assert_int_equal(pawl_stream_batch(stream), 2);
    pawl_stream_close(stream);
    pawl_stream_close(NULL);
}

/* ---- the worked example ---- */

/*
 * Goal: the example of the page: ids 10 ... 19, T = 3, B = 2, phases drawn 1, then 0. Method: the first seed whose stream
 * draws these, found by drawing; and the generator it makes, handed over, gives the same.
 */
static void
worked_example(void **state)
{
    (void)state;
    static const uint32_t INPUTS[2][6] = { { 11, 12, 13, 14, 15, 16 }, { 10, 11, 12, 13, 14, 15 } };
    static const uint32_t TARGETS[2][6] = { { 12, 13, 14, 15, 16, 17 }, { 11, 12, 13, 14, 15, 16 } };
    const char *paths[] = { "example.bin" };
    struct pawl_pcg32 rng, first, after_one, after_two;
    uint64_t seed = 0;
    for (;; seed++) {
        pawl_pcg32_stream(&rng, seed, 3);
        first = rng;
        uint64_t a = pawl_pcg32_below(&rng, 3);
        after_one = rng;
        uint64_t b = pawl_pcg32_below(&rng, 3);
        after_two = rng;
        if (a == 1 && b == 0)
            break;
    }
    put_counting_shard("example.bin", 2, 10, 10);
    for (int handed = 0; handed < 2; handed++) {
        struct pawl_stream *stream;
        struct pawl_stream_cursor cursor;
        struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 2, .seed = seed);
        if (handed == 1) {
            options.seed = seed + 1;
            options.rng = &first;
        }
        uint32_t inputs[6], targets[6];
        assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, NULL), PAWL_OK);
        pawl_stream_cursor(stream, &cursor);
        assert_int_equal(cursor.shard, 0);
        assert_int_equal(cursor.offset, 1);
        assert_true(cursor.rng.state == after_one.state && cursor.rng.inc == after_one.inc);
        for (int batch = 0; batch < 2; batch++) {
            assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
            assert_memory_equal(inputs, INPUTS[batch], sizeof inputs);
            assert_memory_equal(targets, TARGETS[batch], sizeof targets);
            pawl_stream_cursor(stream, &cursor);
            /* A pass that ends draws nothing: the next window does. */
            assert_true(cursor.rng.state == (batch == 0 ? after_one.state : after_two.state));
            assert_int_equal(cursor.offset, batch == 0 ? 7 : 6);
        }
        assert_int_equal(cursor.shard, 0);
        pawl_stream_close(stream);
    }
}

/* ---- against a model ---- */

struct model {
    uint64_t ids[6], n, T, shard, offset;
    struct pawl_pcg32 rng;
};

/* The page, written down as it reads; ids of shard s are s * 1000 + position. */
static void
model_window(struct model *m, uint32_t *inputs, uint32_t *targets)
{
    if (m->offset + m->T + 1 > m->ids[m->shard]) {
        m->shard = (m->shard + 1) % m->n;
        uint64_t room = m->ids[m->shard] - m->T;
        m->offset = pawl_pcg32_below(&m->rng, m->T < room ? m->T : room);
    }
    for (uint64_t i = 0; i < m->T; i++) {
        inputs[i] = (uint32_t)(m->shard * 1000 + m->offset + i);
        targets[i] = inputs[i] + 1;
    }
    m->offset += m->T;
}

/*
 * Goal: N batches, cursor, a new stream, restore, M batches is N + M batches, and both are what the page says. Method: 300
 * seeded configurations: shards of both widths and any size from T + 1 on, batches that span passes.
 */
static void
any_cut_changes_nothing(void **state)
{
    (void)state;
    uint64_t seed = 4711;
    print_message("seed %" PRIu64 "\n", seed);
    uint64_t spanned = 0;
    fresh_folder("cut");
    for (int run = 0; run < 300; run++) {
        struct model m = { .n = 1 + pick(&seed, 6), .T = 1 + pick(&seed, 9) };
        const uint64_t B = 1 + pick(&seed, 7), stream_seed = pick(&seed, UINT64_MAX);
        char names[6][32];
        const char *paths[6];
        for (uint64_t s = 0; s < m.n; s++) {
            m.ids[s] = m.T + 1 + pick(&seed, pick(&seed, 2) == 0 ? 3 : 60);
            (void)snprintf(names[s], sizeof names[s], "cut/%" PRIu64 ".bin", s);
            paths[s] = names[s];
            put_counting_shard(names[s], pick(&seed, 2) == 0 ? 2 : 4, (uint32_t)s * 1000, m.ids[s]);
        }
        pawl_pcg32_stream(&m.rng, stream_seed, 3);
        uint64_t room = m.ids[0] - m.T;
        m.offset = pawl_pcg32_below(&m.rng, m.T < room ? m.T : room);

        struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = m.T, .batch = B, .seed = stream_seed);
        struct pawl_stream *stream;
        assert_int_equal(pawl_stream_open_z(paths, m.n, &options, &stream, NULL), PAWL_OK);
        for (uint64_t batch = 0; batch < 20; batch++) {
            if (pick(&seed, 4) == 0) {
                struct pawl_stream_cursor cursor, again;
                pawl_stream_cursor(stream, &cursor);
                assert_int_equal(cursor.shard, m.shard);
                assert_int_equal(cursor.offset, m.offset);
                assert_true(cursor.rng.state == m.rng.state);
                pawl_stream_close(stream);
                options.seed = pick(&seed, 100); /* the cursor is the whole position */
                assert_int_equal(pawl_stream_open_z(paths, m.n, &options, &stream, NULL), PAWL_OK);
                assert_int_equal(pawl_stream_restore(stream, &cursor, NULL), PAWL_OK);
                pawl_stream_cursor(stream, &again);
                assert_true(again.shard == cursor.shard && again.offset == cursor.offset &&
                            again.rng.state == cursor.rng.state && again.rng.inc == cursor.rng.inc);
            }
            uint32_t inputs[64], targets[64], want_inputs[9], want_targets[9];
            assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
            for (uint64_t row = 0; row < B; row++) {
                uint64_t shard = m.shard;
                model_window(&m, want_inputs, want_targets);
                spanned += row != 0 && m.shard != shard;
                assert_memory_equal(inputs + row * m.T, want_inputs, m.T * 4);
                assert_memory_equal(targets + row * m.T, want_targets, m.T * 4);
            }
        }
        pawl_stream_close(stream);
    }
    assert_true(spanned > 1000);
}

/* ---- restoring ---- */

/* Goal: a cursor that can't be is refused and the stream goes on as before; one behind the last window is a position. */
static void
restoring_refuses(void **state)
{
    (void)state;
    const char *paths[] = { "r/a.bin", "r/b.bin" };
    struct pawl_stream *stream;
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_stream_cursor before, cursor;
    uint32_t inputs[3], targets[3];
    fresh_folder("r");
    put_counting_shard(paths[0], 2, 0, 10);
    put_counting_shard(paths[1], 2, 100, 7);
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 3, .batch = 1, .seed = 5);
    assert_int_equal(pawl_stream_open_z(paths, 2, &options, &stream, NULL), PAWL_OK);
    pawl_stream_cursor(stream, &before);

    cursor = before;
    cursor.shard = 2;
    assert_int_equal(pawl_stream_restore(stream, &cursor, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the cursor is in shard 2 (from 0), the stream has 2");
    cursor.shard = UINT64_MAX;
    assert_int_equal(pawl_stream_restore(stream, &cursor, &err), PAWL_ARGUMENT);
    cursor = before;
    cursor.shard = 1;
    cursor.offset = 8;
    assert_int_equal(pawl_stream_restore(stream, &cursor, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the cursor is at id 8 of shard 1 ('b.bin'), which has 7");
    cursor.offset = (uint64_t)INT64_C(-1);
    assert_int_equal(pawl_stream_restore(stream, &cursor, &err), PAWL_ARGUMENT);
    cursor = before;
    cursor.rng.inc = 6;
    assert_int_equal(pawl_stream_restore(stream, &cursor, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the cursor's increment 0000000000000006 is even: that is no generator");
    pawl_stream_cursor(stream, &cursor);
    assert_int_equal(cursor.shard, before.shard);
    assert_int_equal(cursor.offset, before.offset);
    assert_true(cursor.rng.state == before.rng.state && cursor.rng.inc == before.rng.inc);

    /* n itself, and every place behind the last full window: the next window begins the next pass on the next shard. */
    for (uint64_t offset = 4; offset <= 7; offset++) {
        struct pawl_pcg32 rng = before.rng;
        uint64_t phase = pawl_pcg32_below(&rng, 3);
        cursor = before;
        cursor.shard = 1;
        cursor.offset = offset;
        assert_int_equal(pawl_stream_restore(stream, &cursor, NULL), PAWL_OK);
        assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
        assert_int_equal(inputs[0], phase);
        pawl_stream_cursor(stream, &cursor);
        assert_int_equal(cursor.shard, 0);
        assert_int_equal(cursor.offset, phase + 3);
        assert_true(cursor.rng.state == rng.state);
    }
    cursor = before;
    cursor.shard = 1;
    cursor.offset = 3; /* the last window that fits: ids 3 ... 6 */
    assert_int_equal(pawl_stream_restore(stream, &cursor, NULL), PAWL_OK);
    assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
    assert_int_equal(inputs[0], 103);
    assert_int_equal(targets[2], 106);
    pawl_stream_close(stream);
}

/* Goal: a shard that is cut while it is read is a status, and the stream stays where it was. */
static void
a_cut_shard_is_a_status(void **state)
{
    (void)state;
    SKIP_UNDER_EMULATOR("says of every advice about memory that it was taken");
    const char *paths[] = { "shrinks.bin" };
    struct pawl_stream *stream;
    struct pawl_stream_cursor before, after;
    struct pawl_error err = PAWL_ERROR_INIT;
    uint32_t inputs[64], targets[64];
    put_counting_shard(paths[0], 4, 0, 4 << 20);
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 16, .batch = 2, .seed = 1);
    assert_int_equal(pawl_stream_open_z(paths, 1, &options, &stream, NULL), PAWL_OK);
    const struct pawl_os *os = pawl_os_posix();
    if (os->map_populate(os->context, pawl_shard_data(stream->mapped[0]), 1) != 0)
        skip(); /* a system that can't tell */
    assert_int_equal(truncate(paths[0], 8 << 20), 0);
    pawl_stream_cursor(stream, &before);
    before.offset = (3 << 20) - 20; /* beyond what is left */
    assert_int_equal(pawl_stream_restore(stream, &before, NULL), PAWL_OK);
    assert_int_equal(pawl_stream_next(stream, inputs, targets, &err), PAWL_TRUNCATED);
    pawl_stream_cursor(stream, &after);
    assert_int_equal(after.offset, before.offset);
    before.offset = 5;
    assert_int_equal(pawl_stream_restore(stream, &before, NULL), PAWL_OK);
    assert_int_equal(pawl_stream_next(stream, inputs, targets, &err), PAWL_OK);
    assert_int_equal(inputs[0], 5);
    pawl_stream_close(stream);
    assert_int_equal(unlink(paths[0]), 0);
}

/*
 * Goal: beyond 10^11 ids nothing wraps, and restoring reads no ids. Method: 50 sparse shards of 2^31 - 1 ids; a cursor at
 * the very end of the last one, whose last ids are written by hand.
 */
static void
beyond_a_hundred_billion_ids(void **state)
{
    (void)state;
    enum { SHARDS = 50 };
    const uint64_t n = INT32_MAX;
    static char names[SHARDS][32];
    const char *paths[SHARDS];
    bool can = true;
    fresh_folder("huge");
    for (unsigned s = 0; s < SHARDS && can; s++) {
        (void)snprintf(names[s], sizeof names[s], "huge/%02u.bin", s);
        paths[s] = names[s];
        can = put_sparse_shard(names[s], s % 2 == 0 ? 2 : 4, n);
    }
    if (!can) {
        print_message("this filesystem has no sparse files of 8 GiB\n");
        fresh_folder("huge");
        skip();
    }
    assert_true(n * SHARDS > UINT64_C(100000000000));
    FILE *file = fopen(names[SHARDS - 1], "r+b");
    assert_non_null(file);
    unsigned char ids[5 * 4];
    for (uint32_t i = 0; i < 5; i++)
        pawl_put_u32le(ids + (size_t)4 * i, 0xf0000000 + i);
    assert_int_equal(fseeko(file, (off_t)(1024 + (n - 5) * 4), SEEK_SET), 0);
    assert_int_equal(fwrite(ids, 1, sizeof ids, file), sizeof ids);
    assert_int_equal(fclose(file), 0);

    struct pawl_stream *stream;
    struct pawl_stream_cursor cursor;
    uint32_t inputs[8], targets[8];
    struct pawl_stream_options options = PAWL_STREAM_OPTIONS(.seq_len = 4, .batch = 2, .seed = 1);
    assert_int_equal(pawl_stream_open_z(paths, SHARDS, &options, &stream, NULL), PAWL_OK);
    pawl_stream_cursor(stream, &cursor);
    cursor.shard = SHARDS - 1;
    cursor.offset = n - 5;
    assert_int_equal(pawl_stream_restore(stream, &cursor, NULL), PAWL_OK);
    assert_int_equal(stream->mapped[SHARDS - 1]->readable_to, 0); /* not one id was looked at */
    assert_int_equal(pawl_stream_next(stream, inputs, targets, NULL), PAWL_OK);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(inputs[i], 0xf0000000 + i);
        assert_int_equal(targets[i], 0xf0000001 + i);
        assert_int_equal(inputs[4 + i], 0); /* the second window: the next pass, of shard 0 */
    }
    pawl_stream_cursor(stream, &cursor);
    assert_int_equal(cursor.shard, 0);
    pawl_stream_close(stream);
    fresh_folder("huge");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_and_cursors_are_the_reference_s),
        cmocka_unit_test(golden_cursors_restore_with_their_counts),
        cmocka_unit_test(containers_give_the_same_windows),
        cmocka_unit_test(construction_refuses),
        cmocka_unit_test(worked_example),
        cmocka_unit_test(any_cut_changes_nothing),
        cmocka_unit_test(restoring_refuses),
        cmocka_unit_test(a_cut_shard_is_a_status),
        cmocka_unit_test(beyond_a_hundred_billion_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
