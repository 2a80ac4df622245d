#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "model/set.h"
#include "pawl/pcg32.h"

#define RANDOM_CASES 1500
#define ELEMENTS_MAX 6000
#define RANK_MAX 6

/* The seed is printed, and taken from PAWL_SEED to run a failure again. */
static uint64_t
seed_of_run(void)
{
    const char *text = getenv("PAWL_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 20260117;
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* What a tensor writes, by way of a real writer. Bytes in front make the room end inside elements. */
static enum pawl_status
write_tensor(const struct pawl_tensor *tensor, size_t in_front, struct pawl_buffer *ret_bytes, struct pawl_error *err)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct pawl_writer writer = PAWL_WRITER_INIT;
    struct pawl_file file = PAWL_FILE_INIT;
    const struct pawl_tap no_tap = { NULL, NULL };
    unsigned char *front = calloc(1, in_front + 1);

    assert_int_equal(pawl_dir_open_path(&dir, pawl_os_posix(), ".", NULL), PAWL_OK);
    (void)pawl_dir_remove_file(&dir, "tensor.bin", NULL);
    assert_int_equal(pawl_writer_create(&writer, &dir, "tensor.bin", 0, no_tap, NULL), PAWL_OK);
    for (size_t i = 0; i < in_front; i += 4096) /* small pieces: they are gathered */
        assert_int_equal(pawl_writer_add(&writer, front, in_front - i < 4096 ? in_front - i : 4096, NULL), PAWL_OK);
    enum pawl_status st = pawl_tensor_write(tensor, &writer, err);
    if (st == PAWL_OK) {
        assert_int_equal(pawl_writer_sync(&writer, NULL), PAWL_OK);
        assert_int_equal(pawl_writer_close(&writer, NULL), PAWL_OK);
        assert_int_equal(pawl_file_open_in(&file, &dir, "tensor.bin", 0, NULL), PAWL_OK);
        assert_true(file.bytes >= in_front);
        struct pawl_buffer all = PAWL_BUFFER_INIT;
        assert_int_equal(pawl_file_read_all(&file, SIZE_MAX, &all, NULL), PAWL_OK);
        pawl_buffer_clear(ret_bytes);
        assert_true(pawl_buffer_add(ret_bytes, all.len > in_front ? all.data + in_front : NULL, all.len - in_front));
        pawl_buffer_release(&all);
        pawl_file_release(&file);
    }
    pawl_writer_abandon(&writer);
    pawl_dir_release(&dir);
    free(front);
    return st;
}

/* ---- random layouts against the definition ---- */

struct sample {
    struct pawl_tensor tensor;
    uint64_t shape[RANK_MAX];
    int64_t strides[RANK_MAX];
    unsigned char *memory;
    size_t memory_bytes;
    size_t elements, each;
    bool is_injective; /* no two elements on one place */
};

static const enum pawl_dtype DTYPES[] = { PAWL_U8,  PAWL_F8_E4M3, PAWL_BOOL, PAWL_BF16, PAWL_I16,
                                          PAWL_F32, PAWL_U32,     PAWL_C64,  PAWL_F64,  PAWL_I64 };

static size_t
swap_unit(const struct sample *s)
{
    return !s->tensor.is_big_endian ? 1 : s->tensor.dtype == PAWL_C64 ? 4 : s->each;
}

/* The address of an element by the definition of strides alone. */
static unsigned char *
address(const struct sample *s, size_t element)
{
    int64_t at = 0;
    for (size_t i = s->tensor.rank; i-- > 0;) {
        at += (int64_t)(element % s->shape[i]) * s->strides[i];
        element /= s->shape[i];
    }
    return (unsigned char *)s->tensor.data + at * (int64_t)s->each;
}

/* Byte `b` of the packed form lies at byte `position` of its element in memory. */
static size_t
position(const struct sample *s, size_t b)
{
    size_t unit = swap_unit(s);
    return b / unit * unit + (unit - 1 - b % unit);
}

static void
make_sample(struct sample *s, struct pawl_pcg32 *rng)
{
    *s = (struct sample){ .elements = 1, .is_injective = true };
    s->tensor.size = sizeof s->tensor;
    s->tensor.name = pawl_str_z("t");
    s->tensor.dtype = DTYPES[pawl_pcg32_below(rng, sizeof DTYPES / sizeof DTYPES[0])];
    s->each = pawl_dtype_bits(s->tensor.dtype) / 8;
    s->tensor.is_big_endian = pawl_pcg32_below(rng, 3) == 0;
    s->tensor.rank = pawl_pcg32_below(rng, RANK_MAX + 1);
    for (size_t i = 0; i < s->tensor.rank; i++) {
        uint64_t size = pawl_pcg32_below(rng, 4) == 0 ? 1 : 1 + pawl_pcg32_below(rng, s->tensor.rank < 3 ? 70 : 9);
        if (pawl_pcg32_below(rng, 60) == 0)
            size = 0;
        if (s->elements * size > ELEMENTS_MAX)
            size = 1;
        s->shape[i] = size;
        s->elements *= (size_t)size;
    }
    /* Strides: a permutation of the dimensions, some with gaps, some backwards, some broadcast. */
    size_t order[RANK_MAX];
    for (size_t i = 0; i < s->tensor.rank; i++)
        order[i] = i;
    if (pawl_pcg32_below(rng, 3) != 0) {
        for (size_t i = s->tensor.rank; i-- > 1;) {
            size_t k = pawl_pcg32_below(rng, (uint32_t)i + 1);
            size_t t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
    }
    bool has_gaps = pawl_pcg32_below(rng, 2) == 0;
    bool has_turns = pawl_pcg32_below(rng, 2) == 0;
    int64_t run = has_gaps ? 1 + (int64_t)pawl_pcg32_below(rng, 3) : 1;
    int64_t below = 0;
    int64_t above = 0;
    for (size_t i = s->tensor.rank; i-- > 0;) {
        size_t d = order[i];
        int64_t stride = run;
        run *= s->shape[d] == 0 ? 1 : (int64_t)s->shape[d];
        if (has_gaps)
            run += (int64_t)pawl_pcg32_below(rng, 4);
        if (has_turns && pawl_pcg32_below(rng, 3) == 0)
            stride = -stride;
        if (has_turns && pawl_pcg32_below(rng, 8) == 0) {
            stride = 0;
            s->is_injective = s->is_injective && s->shape[d] <= 1;
        }
        if (s->shape[d] == 1 && pawl_pcg32_below(rng, 4) == 0)
            stride = 12345; /* means nothing */
        s->strides[d] = stride;
        if (s->shape[d] > 1) {
            int64_t reach = stride * (int64_t)(s->shape[d] - 1);
            below += reach < 0 ? -reach : 0;
            above += reach > 0 ? reach : 0;
        }
    }
    s->memory_bytes = (size_t)(below + above + 1) * s->each;
    s->memory = malloc(s->memory_bytes); /* just what is needed: a sanitizer sees every byte outside */
    assert_non_null(s->memory);
    for (size_t i = 0; i < s->memory_bytes; i++)
        s->memory[i] = (unsigned char)pawl_pcg32_next(rng);
    s->tensor.shape = s->shape;
    s->tensor.strides = s->strides;
    s->tensor.data = s->memory + (size_t)below * s->each;
}

/*
 * Goal: every layout comes out packed, row-major and little-endian. Method: random ranks, shapes, permuted, negative, zero
 * and gapped strides, both byte orders, against the address of each element by definition; with the room of the writer
 * ending anywhere.
 */
static void
writes_any_layout_as_its_definition_says(void **state)
{
    struct pawl_pcg32 rng;
    struct pawl_buffer got = PAWL_BUFFER_INIT;
    (void)state;
    pawl_pcg32_seed(&rng, seed_of_run(), 1);
    for (int round = 0; round < RANDOM_CASES; round++) {
        struct sample s;
        make_sample(&s, &rng);
        size_t in_front = pawl_pcg32_below(&rng, 4) == 0 ? ((size_t)1 << 20) - pawl_pcg32_below(&rng, 3000) : 0;
        assert_int_equal(write_tensor(&s.tensor, in_front, &got, NULL), PAWL_OK);
        assert_int_equal(got.len, s.elements * s.each);
        for (size_t e = 0; e < s.elements; e++) {
            const unsigned char *at = address(&s, e);
            for (size_t b = 0; b < s.each; b++) {
                if ((unsigned char)got.data[e * s.each + b] != at[position(&s, b)])
                    fail_msg("round %d: element %zu, byte %zu", round, e, b);
            }
        }
        free(s.memory);
    }
    pawl_buffer_release(&got);
}

/*
 * Goal: scattering is the inverse, from any byte to any byte, and touches nothing else. Method: the same layouts; packed
 * bytes are put in pieces cut at random places, inside elements too; then every element and every gap is looked at.
 */
static void
scatters_any_piece_to_where_it_belongs(void **state)
{
    struct pawl_pcg32 rng;
    (void)state;
    pawl_pcg32_seed(&rng, seed_of_run(), 2);
    for (int round = 0; round < RANDOM_CASES; round++) {
        struct sample s;
        make_sample(&s, &rng);
        size_t n = s.elements * s.each;
        unsigned char *packed = malloc(n + 1);
        unsigned char *want = malloc(s.memory_bytes);
        assert_true(packed != NULL && want != NULL);
        for (size_t i = 0; i < n; i++)
            packed[i] = (unsigned char)pawl_pcg32_next(&rng);
        memcpy(want, s.memory, s.memory_bytes);
        if (s.is_injective) {
            for (size_t i = 0; i < n; i++)
                want[(size_t)(address(&s, i / s.each) - s.memory) + position(&s, i % s.each)] = packed[i];
        }
        for (size_t at = 0; at < n;) {
            size_t piece = 1 + pawl_pcg32_below(&rng, pawl_pcg32_below(&rng, 2) == 0 ? 20 : 9000);
            if (piece > n - at)
                piece = n - at;
            /* A copy of its own size: reading past a piece is seen. */
            unsigned char *own = malloc(piece);
            assert_non_null(own);
            memcpy(own, packed + at, piece);
            pawl_tensor_scatter(&s.tensor, at, own, piece);
            free(own);
            at += piece;
        }
        if (s.is_injective && memcmp(want, s.memory, s.memory_bytes) != 0)
            fail_msg("round %d: memory differs", round);
        for (size_t e = 0; e < s.elements && !s.is_injective; e++) {
            /* Several elements share a place: the last one is there. */
            size_t last = e;
            for (size_t k = e + 1; k < s.elements; k++)
                last = address(&s, k) == address(&s, e) ? k : last;
            for (size_t b = 0; b < s.each; b++)
                assert_int_equal(address(&s, e)[position(&s, b)], packed[last * s.each + b]);
            if (e == 40)
                break; /* quadratic */
        }
        free(want);
        free(packed);
        free(s.memory);
    }
}

/* Goal: data larger than the writer's buffer go on where they stopped, for every kernel, a transposed matrix (tiles) and big-endian ones too. */
static void
writes_more_than_the_writer_holds(void **state)
{
    static const enum pawl_dtype KINDS[] = { PAWL_U8, PAWL_I16, PAWL_F32, PAWL_F64, PAWL_C64 };
    struct pawl_buffer got = PAWL_BUFFER_INIT;
    (void)state;
    for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
        for (unsigned form = 0; form < 4; form++) {
            struct sample s = { .elements = 1031 * 701, .each = pawl_dtype_bits(KINDS[k]) / 8 };
            s.shape[0] = 1031;
            s.shape[1] = 701;
            s.strides[0] = form % 2 == 0 ? 1 : 2 * 701; /* transposed, or every other column */
            s.strides[1] = form % 2 == 0 ? 1031 : 2;
            s.memory_bytes = 2 * s.elements * s.each;
            s.memory = malloc(s.memory_bytes);
            assert_non_null(s.memory);
            for (size_t i = 0; i < s.memory_bytes; i++)
                s.memory[i] = (unsigned char)(i * 2654435761u >> 13);
            s.tensor = (struct pawl_tensor){ .size = sizeof s.tensor,
                                             .dtype = KINDS[k],
                                             .name = pawl_str_z("big"),
                                             .rank = 2,
                                             .shape = s.shape,
                                             .strides = s.strides,
                                             .data = s.memory,
                                             .is_big_endian = form >= 2 };
            assert_int_equal(write_tensor(&s.tensor, 13, &got, NULL), PAWL_OK);
            assert_int_equal(got.len, s.elements * s.each);
            for (size_t e = 0; e < s.elements; e++) {
                const unsigned char *at = address(&s, e);
                for (size_t b = 0; b < s.each; b++) {
                    if ((unsigned char)got.data[e * s.each + b] != at[position(&s, b)])
                        fail_msg("dtype %s, form %u: element %zu", pawl_dtype_name(KINDS[k]), form, e);
                }
            }
            free(s.memory);
        }
    }
    pawl_buffer_release(&got);
}

/* Goal: byte order by the book: case 57. */
static void
turns_big_endian_bytes(void **state)
{
    struct pawl_buffer got = PAWL_BUFFER_INIT;
    (void)state;
    unsigned char f32[] = { 0x3f, 0x80, 0, 0 };
    unsigned char bf16[] = { 0x3f, 0x80 };
    unsigned char c64[] = { 0x3f, 0x80, 0, 0, 0x40, 0, 0, 0 }; /* (1, 2) */
    unsigned char f64[] = { 0x3f, 0xf0, 0, 0, 0, 0, 0, 0x01 };
    struct pawl_tensor t = PAWL_SCALAR(PAWL_MODEL, "x", PAWL_F32, f32);
    t.is_big_endian = 1;
    assert_int_equal(write_tensor(&t, 0, &got, NULL), PAWL_OK);
    assert_memory_equal(got.data, "\0\0\x80\x3f", 4);
    t.dtype = PAWL_BF16;
    t.data = bf16;
    assert_int_equal(write_tensor(&t, 0, &got, NULL), PAWL_OK);
    assert_memory_equal(got.data, "\x80\x3f", 2);
    t.dtype = PAWL_C64;
    t.data = c64;
    assert_int_equal(write_tensor(&t, 0, &got, NULL), PAWL_OK);
    assert_memory_equal(got.data, "\0\0\x80\x3f\0\0\0\x40", 8);
    t.dtype = PAWL_F64;
    t.data = f64;
    assert_int_equal(write_tensor(&t, 0, &got, NULL), PAWL_OK);
    assert_memory_equal(got.data, "\x01\0\0\0\0\0\xf0\x3f", 8);
    assert_false(pawl_tensor_is_packed(&t));
    t.dtype = PAWL_U8; /* one byte has no order */
    assert_true(pawl_tensor_is_packed(&t));
    pawl_buffer_release(&got);
}

/* Goal: Fortran order is written as what the matrix says, never as its memory: case 54. */
static void
writes_fortran_order_by_rows(void **state)
{
    struct pawl_buffer got = PAWL_BUFFER_INIT;
    float columns[4] = { 1, 3, 2, 4 }; /* [[1, 2], [3, 4]] by columns */
    const float rows[4] = { 1, 2, 3, 4 };
    const int64_t strides[2] = { 1, 2 };
    (void)state;
    struct pawl_tensor t = PAWL_TENSOR(PAWL_MODEL, "f", PAWL_F32, columns, 2, 2);
    t.strides = strides;
    assert_false(pawl_tensor_is_packed(&t));
    assert_int_equal(write_tensor(&t, 0, &got, NULL), PAWL_OK);
    assert_int_equal(got.len, sizeof rows);
    assert_memory_equal(got.data, rows, sizeof rows);
    pawl_buffer_release(&got);
}

/* Goal: packed is told from not packed, dimensions of one element and of none included. */
static void
knows_what_is_packed(void **state)
{
    float data[24] = { 0 };
    (void)state;
    struct pawl_tensor t = PAWL_TENSOR(PAWL_MODEL, "p", PAWL_F32, data, 2, 1, 3);
    assert_true(pawl_tensor_is_packed(&t));
    const int64_t odd_ones[3] = { 3, -77, 1 };
    t.strides = odd_ones;
    assert_true(pawl_tensor_is_packed(&t));
    const int64_t wider[3] = { 4, 3, 1 };
    t.strides = wider;
    assert_false(pawl_tensor_is_packed(&t));
    const int64_t backwards[3] = { 3, 3, -1 };
    t.strides = backwards;
    assert_false(pawl_tensor_is_packed(&t));
    struct pawl_tensor none = PAWL_TENSOR(PAWL_MODEL, "n", PAWL_F32, data, 0, 3);
    const int64_t any[2] = { 17, 5 };
    none.strides = any;
    assert_true(pawl_tensor_is_packed(&none));
    t.source = &(const struct pawl_source){ 24, NULL, NULL };
    t.strides = NULL;
    assert_false(pawl_tensor_is_packed(&t));
}

/* ---- sources ---- */

struct counting {
    uint64_t next, bytes, fail_at;
    size_t largest;
    bool fills_error;
};

static enum pawl_status
read_counting(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    struct counting *c = context;
    unsigned char *to = destination;
    assert_int_equal(offset, c->next); /* ascending, without a gap */
    assert_true(n > 0 && n <= c->bytes - offset);
    assert_non_null(err);
    if (offset + n > c->fail_at) {
        if (!c->fills_error)
            return PAWL_CANCELED;
        (void)snprintf(err->message, sizeof err->message, "device lost");
        (void)snprintf(err->code, sizeof err->code, "io");
        return err->status = PAWL_IO;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)((offset + i) * 131 >> 3);
    c->next = offset + n;
    c->largest = n > c->largest ? n : c->largest;
    return PAWL_OK;
}

/* Goal: a source is asked in ascending order, once for each byte, and for pieces that need no large memory. */
static void
reads_sources_in_ascending_blocks(void **state)
{
    struct pawl_buffer got = PAWL_BUFFER_INIT;
    struct counting c = { .bytes = 3 * 1048576 + 5, .fail_at = UINT64_MAX };
    const struct pawl_source source = { c.bytes, read_counting, &c };
    (void)state;
    struct pawl_tensor t = PAWL_TENSOR(PAWL_MODEL, "s", PAWL_U8, NULL, c.bytes);
    t.source = &source;
    assert_int_equal(write_tensor(&t, 3, &got, NULL), PAWL_OK);
    assert_int_equal(got.len, c.bytes);
    assert_int_equal(c.next, c.bytes);
    assert_true(c.largest <= (size_t)16 << 20);
    for (size_t i = 0; i < got.len; i++) {
        if ((unsigned char)got.data[i] != (unsigned char)(i * 131 >> 3))
            fail_msg("byte %zu", i);
    }
    pawl_buffer_release(&got);
}

/* Goal: what a source answers comes out, with the tensor's name, whether it filled the error or not. */
static void
a_failing_source_names_its_tensor(void **state)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_buffer got = PAWL_BUFFER_INIT;
    (void)state;
    struct counting c = { .bytes = 100, .fail_at = 10 };
    const struct pawl_source source = { c.bytes, read_counting, &c };
    struct pawl_tensor t = PAWL_TENSOR(PAWL_MODEL, "layer\n1", PAWL_U8, NULL, 100);
    t.source = &source;
    assert_int_equal(write_tensor(&t, 0, &got, &err), PAWL_CANCELED);
    assert_int_equal(err.status, PAWL_CANCELED);
    assert_string_equal(err.message, "tensor 'layer\\n1': its source failed at byte 0 of 100");
    assert_string_equal(err.tensor, "layer\\n1");
    c = (struct counting){ .bytes = 100, .fail_at = 10, .fills_error = true };
    assert_int_equal(write_tensor(&t, 0, &got, &err), PAWL_IO);
    assert_string_equal(err.message, "tensor 'layer\\n1': device lost");
    assert_string_equal(err.code, "io");
    assert_string_equal(err.tensor, "layer\\n1");
    c = (struct counting){ .bytes = 100, .fail_at = 10, .fills_error = true };
    assert_int_equal(write_tensor(&t, 0, &got, NULL), PAWL_IO); /* nobody wants to know */
    pawl_buffer_release(&got);
}

/* ---- what is refused ---- */

static void
expect_refusal(const struct pawl_tensor *t, enum pawl_status status, const char *message)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    uint64_t bytes = 77;
    assert_int_equal(pawl_tensor_check(t, &bytes, &err), status);
    assert_int_equal(bytes, 77);
    assert_string_equal(err.message, message);
    assert_string_equal(err.tensor, "r");
}

/* Goal: what can't be written is refused by the check, before anything is made of it, with numbers. Cases 29 and 30. */
static void
refuses_what_cannot_be_written(void **state)
{
    unsigned char data[64] = { 0 };
    struct counting c = { .bytes = 7 };
    const struct pawl_source short_source = { 7, read_counting, &c };
    const struct pawl_source long_source = { 9, read_counting, &c };
    const struct pawl_source no_function = { 8, NULL, NULL };
    const int64_t two[2] = { 1, 2 };
    const int64_t huge[2] = { INT64_MIN, 1 };
    const int64_t downwards[2] = { -(INT64_C(1) << 60), 1 };
    const int64_t wide[2] = { INT64_MAX / 2, INT64_MAX / 2 };
    uint64_t bytes = 0;
    (void)state;

    struct pawl_tensor t = PAWL_TENSOR(PAWL_MODEL, "r", PAWL_F32, data, 2);
    assert_int_equal(pawl_tensor_check(&t, &bytes, NULL), PAWL_OK);
    assert_int_equal(bytes, 8);
    t.dtype = (enum pawl_dtype)23;
    expect_refusal(&t, PAWL_ARGUMENT, "tensor 'r': 23 is no dtype");
    t.dtype = PAWL_F32;
    t.data = NULL;
    expect_refusal(&t, PAWL_ARGUMENT, "tensor 'r': neither data nor a source for 8 bytes");
    t.source = &short_source;
    expect_refusal(&t, PAWL_ARGUMENT, "tensor 'r': the source has 7 bytes, dtype and shape take 8");
    t.source = &long_source;
    expect_refusal(&t, PAWL_ARGUMENT, "tensor 'r': the source has 9 bytes, dtype and shape take 8");
    t.source = &no_function;
    expect_refusal(&t, PAWL_ARGUMENT, "tensor 'r': a source without a function to read");
    t.data = data;
    expect_refusal(&t, PAWL_ARGUMENT, "tensor 'r': both data and a source");
    t.source = NULL;
    t.shape = NULL;
    expect_refusal(&t, PAWL_ARGUMENT, "tensor 'r': rank 1, and no shape");

    struct pawl_tensor four = PAWL_TENSOR(PAWL_MODEL, "r", PAWL_F4, data, 4, 2);
    four.strides = two;
    expect_refusal(&four, PAWL_ARGUMENT, "tensor 'r': strides, and elements of 4 bits: F4 must be packed");
    struct pawl_tensor odd = PAWL_TENSOR(PAWL_MODEL, "r", PAWL_F4, data, 3);
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_tensor_check(&odd, &bytes, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "bits");

    struct pawl_tensor far = PAWL_TENSOR(PAWL_MODEL, "r", PAWL_F32, data, 2, 2);
    far.strides = huge;
    expect_refusal(&far, PAWL_ARGUMENT, "tensor 'r': reaches beyond all memory");
    far.strides = downwards;
    expect_refusal(&far, PAWL_ARGUMENT, "tensor 'r': reaches beyond all memory");
    far.strides = wide;
    expect_refusal(&far, PAWL_ARGUMENT, "tensor 'r': reaches beyond all memory");
    struct pawl_tensor large = PAWL_TENSOR(PAWL_MODEL, "r", PAWL_F32, data, UINT64_C(1) << 61);
    assert_int_equal(pawl_tensor_check(&large, &bytes, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "overflow");
    struct pawl_tensor square = PAWL_TENSOR(PAWL_MODEL, "r", PAWL_F32, data, UINT64_C(1) << 33, UINT64_C(1) << 33);
    assert_int_equal(pawl_tensor_check(&square, &bytes, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "overflow");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_any_layout_as_its_definition_says),
        cmocka_unit_test(scatters_any_piece_to_where_it_belongs),
        cmocka_unit_test(writes_more_than_the_writer_holds),
        cmocka_unit_test(turns_big_endian_bytes),
        cmocka_unit_test(writes_fortran_order_by_rows),
        cmocka_unit_test(knows_what_is_packed),
        cmocka_unit_test(reads_sources_in_ascending_blocks),
        cmocka_unit_test(a_failing_source_names_its_tensor),
        cmocka_unit_test(refuses_what_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
