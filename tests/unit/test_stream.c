#include "token_support.h"
#include "stream/stream_state.h"

/* One row of orders.tsv, opened over files made for it. */
struct golden_order {
    struct pawl_stream *stream;
    uint64_t seq_len, ids[16];
    size_t n;
};

static void
open_golden_order(struct golden_order *order, size_t row)
{
    char *text = get_file(GOLDEN "orders.tsv", NULL), *line = text, *fields[5];
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
    char *text = get_file(GOLDEN "cursors.tsv", NULL), *line = text, *fields[8];
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
    char *text = get_file(GOLDEN "containers.tsv", NULL), *line = text, *fields[5];
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_and_cursors_are_the_reference_s),
        cmocka_unit_test(golden_cursors_restore_with_their_counts),
        cmocka_unit_test(containers_give_the_same_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
