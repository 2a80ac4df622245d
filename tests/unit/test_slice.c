#include "unit/model_tools.h"
#include "unit/hook_os.h"

#include <inttypes.h>
#include "model/model.h"

#define WHOLE      \
    {              \
        0, 0, 0, 0 \
    }

/* A model of one tensor "w", whose element i (of 8 bits or more) has the value i in its low bytes. */
static struct pawl_model *
counting_model(enum pawl_dtype dtype, const uint64_t *shape, size_t rank)
{
    char header[512];
    size_t at = 0;
    uint64_t elements, bytes;
    struct pawl_model *model;
    assert_int_equal(pawl_dtype_bytes(dtype, shape, rank, &elements, &bytes, NULL), PAWL_OK);
    at += (size_t)snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"%s\",\"shape\":[", pawl_dtype_name(dtype));
    for (size_t i = 0; i < rank; i++)
        at += (size_t)snprintf(header + at, sizeof header - at, "%s%" PRIu64, i == 0 ? "" : ",", shape[i]);
    (void)snprintf(header + at, sizeof header - at, "],\"data_offsets\":[0,%" PRIu64 "]}}", bytes);
    unsigned char *data = calloc(1, (size_t)bytes + 1);
    size_t each = pawl_dtype_bits(dtype) / 8;
    assert_non_null(data);
    for (uint64_t i = 0; each != 0 && i < elements; i++) {
        for (size_t k = 0; k < each && k < 8; k++)
            data[i * each + k] = (unsigned char)(i >> (8 * k));
    }
    for (uint64_t i = 0; each == 0 && i < bytes; i++)
        data[i] = (unsigned char)(i * 29 + 7);
    put_model("w.safetensors", header, data, (size_t)bytes);
    free(data);
    assert_int_equal(pawl_model_open_z("w.safetensors", NULL, &model, NULL), PAWL_OK);
    return model;
}

static const struct pawl_tensor_info *
only_tensor(const struct pawl_model *model)
{
    size_t n;
    const struct pawl_tensor_info *tensors = pawl_model_tensors(model, &n);
    assert_int_equal(n, 1);
    return tensors;
}

/* "[2,3] 1 2 3 7 8 9" of a slice by its text, or the message of its error. Static storage. */
static const char *
sliced(const struct pawl_model *model, const char *text)
{
    static char answer[4096];
    struct pawl_slice_axis axes[8];
    uint64_t shape[8], bytes;
    size_t n, rank, at = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_tensor_info *w = only_tensor(model);
    if (pawl_slice_parse(pawl_str_z(text), axes, 8, &n, &err) != PAWL_OK ||
        pawl_slice_shape(w, axes, n, shape, &rank, &bytes, &err) != PAWL_OK) {
        (void)snprintf(answer, sizeof answer, "%s", err.message);
        return answer;
    }
    size_t each = pawl_dtype_bits(w->dtype) / 8;
    unsigned char *data = malloc((size_t)bytes + 1);
    assert_non_null(data);
    if (pawl_model_read_slice(model, w, axes, n, w->dtype, PAWL_OVERFLOW_FORMAT, data, (size_t)bytes, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    at += (size_t)snprintf(answer, sizeof answer, "[");
    for (size_t i = 0; i < rank; i++)
        at += (size_t)snprintf(answer + at, sizeof answer - at, "%s%" PRIu64, i == 0 ? "" : ",", shape[i]);
    at += (size_t)snprintf(answer + at, sizeof answer - at, "]");
    for (uint64_t i = 0; i < bytes / (each == 0 ? 1 : each); i++) {
        uint64_t value = 0;
        memcpy(&value, data + i * (each == 0 ? 1 : each), each == 0 ? 1 : each);
        at += (size_t)snprintf(answer + at, sizeof answer - at, " %" PRIu64, value);
    }
    free(data);
    return answer;
}

/* Goal: NumPy's answers, among them cases 60, 61, 62 and 64: what NumPy 2 gives for np.arange(n).reshape(shape)[slice]. */
static void
numpys_answers(void **state)
{
    (void)state;
    static const struct {
        uint64_t shape[3];
        size_t rank;
        const char *slice, *answer;
    } CASES[] = {
        { { 8 }, 1, "", "[8] 0 1 2 3 4 5 6 7" },
        { { 8 }, 1, "...", "[8] 0 1 2 3 4 5 6 7" },
        { { 8 }, 1, "0:0:2", "[0]" }, /* 60: an empty selection is empty */
        { { 4, 3 }, 2, "0:0,1:2", "[0,1]" },
        { { 4, 3 }, 2, "2:1", "[0,3]" },
        { { 8 }, 1, "0:99", "[8] 0 1 2 3 4 5 6 7" }, /* 61: ranges are clamped */
        { { 8 }, 1, "7:", "[1] 7" },
        { { 8 }, 1, "8:", "[0]" },
        { { 8 }, 1, "-99:3", "[3] 0 1 2" },
        { { 8 }, 1, "3:-99", "[0]" },
        { { 8 }, 1, "99999999999999999999:", "[0]" },
        { { 8 }, 1, "-3:-1", "[2] 5 6" },
        { { 8 }, 1, "::3", "[3] 0 3 6" },
        { { 8 }, 1, "1::9223372036854775807", "[1] 1" },
        { { 8 }, 1, "::-1", "[8] 7 6 5 4 3 2 1 0" },
        { { 8 }, 1, "6:1:-2", "[3] 6 4 2" },
        { { 8 }, 1, ":4:-1", "[3] 7 6 5" },
        { { 8 }, 1, "3::-1", "[4] 3 2 1 0" },
        { { 8 }, 1, "99:-99:-3", "[3] 7 4 1" },
        { { 8 }, 1, "::-9223372036854775808", "[1] 7" },
        { { 8 }, 1, "3:5:-1", "[0]" },
        { { 4, 3 }, 2, "0,:", "[3] 0 1 2" }, /* 62: integers */
        { { 4, 3 }, 2, "-1", "[3] 9 10 11" },
        { { 4, 3 }, 2, ":, -1", "[4] 2 5 8 11" },
        { { 4, 3 }, 2, "2,1", "[] 7" },
        { { 4, 3 }, 2, "...,1", "[4] 1 4 7 10" },
        { { 4, 3 }, 2, "1,...", "[3] 3 4 5" },
        { { 4, 3 }, 2, "1,...,2", "[] 5" },
        { { 4, 3 }, 2, "::2,::2", "[2,2] 0 2 6 8" },
        { { 4, 3 }, 2, "::-2,::-1", "[2,3] 11 10 9 5 4 3" },
        { { 4, 3 }, 2, "1:3,", "[2,3] 3 4 5 6 7 8" },
        { { 2, 3, 4 }, 3, ":,1", "[2,4] 4 5 6 7 16 17 18 19" },
        { { 2, 3, 4 }, 3, "1,:,1:3", "[3,2] 13 14 17 18 21 22" },
        { { 2, 3, 4 }, 3, "...,::-3,0", "[2,1] 8 20" },
        { { 2, 3, 4 }, 3, "::-1,...,-1", "[2,3] 15 19 23 3 7 11" },
        { { 2, 1, 4 }, 3, "::-1,::-1,:2", "[2,1,2] 4 5 0 1" },
        { { 0, 3 }, 2, ":", "[0,3]" }, /* 64: axes of no elements */
        { { 0, 3 }, 2, "0:0", "[0,3]" },
        { { 0, 3 }, 2, ":,1", "[0]" },
        { { 0, 3 }, 2, "::-1,::2", "[0,2]" },
        { { 1 }, 0, "", "[] 0" },
        { { 1 }, 0, "...", "[] 0" },
        /* and its errors */
        { { 8 }, 1, "8", "tensor 'w': index 8 is out of bounds for axis 0 with size 8" },
        { { 4, 3 }, 2, "..., 99", "tensor 'w': index 99 is out of bounds for axis 1 with size 3" },
        { { 4, 3 }, 2, "-5", "tensor 'w': index -5 is out of bounds for axis 0 with size 4" },
        { { 0, 3 }, 2, "0", "tensor 'w': index 0 is out of bounds for axis 0 with size 0" },
        { { 0, 3 }, 2, ":,3", "tensor 'w': index 3 is out of bounds for axis 1 with size 3" },
        { { 4, 3 }, 2, "0,0,0", "tensor 'w': too many indices: the tensor has 2 axes, 3 were indexed" },
        { { 1 }, 0, "0", "tensor 'w': too many indices: the tensor has 0 axes, 1 were indexed" },
        { { 4, 3 }, 2, "...,0,...", "tensor 'w': '...' can stand only once" },
        { { 8 }, 1, "::0", "slice '::0': a step of 0 leads nowhere" },
        { { 8 }, 1, "a", "slice 'a': expected a number, ':' or '...' at 'a'" },
        { { 8 }, 1, "1 2", "slice '1 2': expected ',' or the end at '2'" },
        { { 8 }, 1, "-", "slice '-': expected a number, ':' or '...' at '-'" },
        { { 8 }, 1, "1:2:3:4", "slice '1:2:3:4': expected ',' or the end at ':4'" },
        { { 8 }, 1, ",", "slice ',': expected a number, ':' or '...' at ','" },
        { { 8 }, 1, "0,0,0,0,0,0,0,0,0", "slice '0,0,0,0,0,0,0,0,0': more than 8 axes" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_model *model = counting_model(PAWL_U8, CASES[i].shape, CASES[i].rank);
        const char *answer = sliced(model, CASES[i].slice);
        if (strcmp(answer, CASES[i].answer) != 0)
            fail_msg("[%s]: %s, expected %s", CASES[i].slice, answer, CASES[i].answer);
        pawl_model_close(model);
    }
}

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Where a slice of Python leads, by its definition: walk from the start until the stop is passed. */
static size_t
places(const struct pawl_slice_axis *axis, int64_t len, int64_t *list)
{
    size_t n = 0;
    if (axis->flags & PAWL_SLICE_INDEX) {
        list[0] = axis->start < 0 ? axis->start + len : axis->start;
        return 1;
    }
    int64_t step = axis->step == 0 ? 1 : axis->step;
    for (int64_t k = 0; k < len; k++) {
        int64_t at = step > 0 ? k : len - 1 - k;
        int64_t start = step > 0 ? 0 : len - 1;
        int64_t stop = step > 0 ? len : -1;
        if (axis->flags & PAWL_SLICE_START) {
            start = axis->start < 0 ? axis->start + len : axis->start;
            if (start < 0)
                start = step > 0 ? 0 : -1;
            if (start > len)
                start = len;
            if (step < 0 && start > len - 1)
                start = len - 1;
        }
        if (axis->flags & PAWL_SLICE_STOP) {
            stop = axis->stop < 0 ? axis->stop + len : axis->stop;
            if (stop < 0)
                stop = step > 0 ? 0 : -1;
        }
        bool is_inside = step > 0 ? at >= start && at < stop : at <= start && at > stop;
        if (is_inside && (at - start) % step == 0)
            list[n++] = at;
    }
    return n;
}

/*
 * Goal: any slice of any tensor is what its definition says, element by element, in every width, and so is its cast. Method: seeded
 * shapes up to rank 4, seeded axes; sizes that make windows end in the middle.
 */
static void
random_slices_are_as_defined(void **state)
{
    (void)state;
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
    static const enum pawl_dtype DTYPES[] = { PAWL_U8, PAWL_F16, PAWL_F32, PAWL_F64 };
    print_message("seed %" PRIu64 "\n", seed);
    for (int run = 0; run < 300; run++) {
        enum pawl_dtype dtype = DTYPES[next_random(&seed) % 4];
        size_t each = pawl_dtype_bits(dtype) / 8;
        size_t rank = next_random(&seed) % 5;
        uint64_t shape[4], got_shape[4], bytes;
        struct pawl_slice_axis axes[4];
        int64_t *lists[4];
        size_t counts[4], got_rank, want_rank = 0, total = 1;
        for (size_t i = 0; i < rank; i++) {
            uint64_t most = run % 10 == 0 && i + 1 == rank ? 300000 / (rank * 20) : rank == 1 ? 5000 : 12;
            shape[i] = next_random(&seed) % most + (next_random(&seed) % 8 != 0);
            int64_t len = (int64_t)shape[i];
            axes[i] = (struct pawl_slice_axis){ .flags = (uint32_t)(next_random(&seed) % 4) };
            axes[i].start = (int64_t)(next_random(&seed) % (uint64_t)(2 * len + 5)) - len - 2;
            axes[i].stop = (int64_t)(next_random(&seed) % (uint64_t)(2 * len + 5)) - len - 2;
            axes[i].step = (int64_t)(next_random(&seed) % 9) - 4;
            if (next_random(&seed) % 5 == 0 && len > 0) {
                axes[i].flags = PAWL_SLICE_INDEX;
                axes[i].start = (int64_t)(next_random(&seed) % (uint64_t)(2 * len)) - len;
            }
        }
        struct pawl_model *model = counting_model(dtype, shape, rank);
        for (size_t i = 0; i < rank; i++) {
            lists[i] = malloc((size_t)(shape[i] + 1) * sizeof *lists[i]);
            assert_non_null(lists[i]);
            counts[i] = places(&axes[i], (int64_t)shape[i], lists[i]);
            total *= counts[i];
        }
        const struct pawl_tensor_info *w = only_tensor(model);
        assert_int_equal(pawl_slice_shape(w, axes, rank, got_shape, &got_rank, &bytes, NULL), PAWL_OK);
        for (size_t i = 0; i < rank; i++) {
            if ((axes[i].flags & PAWL_SLICE_INDEX) == 0)
                assert_int_equal(got_shape[want_rank++], counts[i]);
        }
        assert_int_equal(got_rank, want_rank);
        assert_int_equal(bytes, total * each);
        unsigned char *got = malloc(total * each + 1);
        unsigned char *want = malloc(total * each + 1);
        unsigned char *cast_got = malloc(total * 8 + 8);
        unsigned char *cast_want = malloc(total * 8 + 8);
        assert_true(got != NULL && want != NULL && cast_got != NULL && cast_want != NULL);
        assert_int_equal(
            pawl_model_read_slice(model, w, axes, rank, dtype, PAWL_OVERFLOW_FORMAT, got, total * each, NULL), PAWL_OK);
        for (size_t k = 0; k < total; k++) {
            uint64_t element = 0, rest = k, stride = 1;
            for (size_t i = rank; i-- > 0;) {
                element += (uint64_t)lists[i][rest % counts[i]] * stride;
                rest /= counts[i];
                stride *= shape[i];
            }
            for (size_t b = 0; b < each; b++)
                want[k * each + b] = (unsigned char)(element >> (8 * b));
        }
        assert_memory_equal(got, want, total * each);
        if (dtype != PAWL_U8) {
            static const enum pawl_dtype TO[] = { PAWL_F32, PAWL_F64, PAWL_BF16, PAWL_F8_E5M2 };
            enum pawl_dtype to = TO[next_random(&seed) % 4];
            size_t n = total * pawl_dtype_bits(to) / 8;
            assert_int_equal(pawl_model_read_slice(model, w, axes, rank, to, PAWL_OVERFLOW_FORMAT, cast_got, n, NULL),
                             PAWL_OK);
            assert_int_equal(pawl_cast(dtype, want, total, to, PAWL_OVERFLOW_FORMAT, cast_want, NULL, NULL), PAWL_OK);
            assert_memory_equal(cast_got, cast_want, n);
        }
        for (size_t i = 0; i < rank; i++)
            free(lists[i]);
        free(got);
        free(want);
        free(cast_got);
        free(cast_want);
        pawl_model_close(model);
    }
}

/* Goal: elements of 4 and 6 bits can be taken where whole bytes are: case 66. */
static void
elements_smaller_than_a_byte(void **state)
{
    (void)state;
    struct pawl_model *model = counting_model(PAWL_F4, (uint64_t[]){ 2, 4 }, 2); /* bytes 7 36 | 65 94 */
    assert_string_equal(sliced(model, ":,0:2"), "[2,2] 7 65");
    assert_string_equal(sliced(model, "1"), "[4] 65 94");
    assert_string_equal(sliced(model, "::-1"), "[2,4] 65 94 7 36");
    assert_string_equal(sliced(model, ":,2:99"), "[2,2] 36 94");
    assert_string_equal(sliced(model, ":,0:0"), "[2,0]");
    assert_string_equal(sliced(model, ":,1:3"),
                        "tensor 'w': F4 has 4 bits an element, and only whole bytes can be taken: "
                        "here are runs of 2 elements, the lowest from element 1 on");
    assert_string_equal(sliced(model, ":,::2"),
                        "tensor 'w': F4 has 4 bits an element, and only whole bytes can be taken: "
                        "here are runs of 1 element, the lowest from element 0 on");
    assert_string_equal(sliced(model, "1,3"),
                        "tensor 'w': F4 has 4 bits an element, and only whole bytes can be taken: "
                        "here are runs of 1 element, the lowest from element 7 on");
    /* decoded too: 4 codes of a row */
    float values[4], all[8];
    const struct pawl_slice_axis row = { .start = 1, .flags = PAWL_SLICE_INDEX };
    const struct pawl_tensor_info *w = only_tensor(model);
    assert_int_equal(pawl_model_read_slice(model, w, &row, 1, PAWL_F32, PAWL_OVERFLOW_FORMAT, values, 16, NULL),
                     PAWL_OK);
    assert_int_equal(pawl_model_read(model, w, PAWL_F32, all, 32, NULL), PAWL_OK);
    assert_memory_equal(values, all + 4, 16);
    pawl_model_close(model);

    model = counting_model(PAWL_F6_E2M3, (uint64_t[]){ 3, 4 }, 2); /* a row is three bytes */
    assert_string_equal(sliced(model, "::2"), "[2,4] 7 36 65 181 210 239");
    assert_string_equal(sliced(model, ":,:2"), "tensor 'w': F6_E2M3 has 6 bits an element, and only whole bytes can be "
                                               "taken: here are runs of 2 elements, the lowest from element 0 on");
    pawl_model_close(model);
    model = counting_model(PAWL_F4, (uint64_t[]){ 2, 3 }, 2); /* a row ends inside a byte, both do not */
    assert_string_equal(sliced(model, "0:2"), "[2,3] 7 36 65");
    assert_string_equal(sliced(model, "0"), "tensor 'w': F4 has 4 bits an element, and only whole bytes can be taken: "
                                            "here are runs of 3 elements, the lowest from element 0 on");
    pawl_model_close(model);

    model = counting_model(PAWL_F4, (uint64_t[]){ 2, 5 },
                           2); /* the first run is whole bytes, the second begins inside one */
    assert_string_equal(sliced(model, ":,0:2"),
                        "tensor 'w': F4 has 4 bits an element, and only whole bytes can be taken: "
                        "here are runs of 2 elements, the lowest from element 0 on");
    pawl_model_close(model);

    /* a cast to such elements of runs that are no whole bytes there */
    unsigned char codes[3];
    model = counting_model(PAWL_F16, (uint64_t[]){ 2, 5 }, 2);
    const struct pawl_slice_axis odd[2] = { WHOLE, { .stop = 3, .flags = PAWL_SLICE_STOP } };
    assert_int_equal(
        pawl_model_read_slice(model, only_tensor(model), odd, 2, PAWL_F4, PAWL_OVERFLOW_FORMAT, codes, 3, NULL),
        PAWL_OK);
    pawl_model_close(model);
}

/*
 * Goal: a slice reads what it needs and at most a page around it: case 65, a row of 4 KiB in a tensor of 1 GiB. Method: a
 * sparse file, and a table that counts the bytes which are read of it.
 */
static void
a_slice_does_not_read_the_rest(void **state)
{
    (void)state;
    static const char HEADER[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[262144,1024],\"data_offsets\":[0,1073741824]}}";
    struct hook_os hook;
    struct pawl_model *model;
    put_model("sparse.safetensors", HEADER, NULL, 0);
    uint64_t data_begin = 8 + strlen(HEADER);
    assert_int_equal(truncate("sparse.safetensors", (off_t)(data_begin + (UINT64_C(1) << 30))), 0);
    float value = 7;
    int fd = open("sparse.safetensors", O_WRONLY);
    assert_int_equal(pwrite(fd, &value, 4, (off_t)(data_begin + 4 * (UINT64_C(200000) * 1024 + 1023))), 4);
    close(fd);

    const struct pawl_os *table = hook_begin(&hook, pawl_os_posix());
    assert_int_equal(pawl_model_open_plain(table, PAWL_STR("sparse.safetensors"), NULL, NULL, &model, NULL), PAWL_OK);
    const struct pawl_tensor_info *w = only_tensor(model);
    float row[4096];
    static const struct {
        struct pawl_slice_axis axes[2];
        size_t values;
        uint64_t most; /* bytes read */
    } CASES[] = {
        { { { .start = 200000, .flags = PAWL_SLICE_INDEX }, WHOLE }, 1024, 4096 },          /* a row */
        { { { .start = 200000, .flags = PAWL_SLICE_INDEX }, { .step = 2 } }, 512, 4096 },   /* half of one */
        { { { .start = 200000, .flags = PAWL_SLICE_INDEX }, { .step = -1 } }, 1024, 4096 }, /* backward */
        { { { .start = 199996, .stop = 200004, .step = 2, .flags = 3 }, { .step = 1023 } }, 8, 4 * 4096 },
        { { { .start = 100, .stop = 260000, .step = 65536, .flags = 3 }, { .start = 5, .flags = 4 } }, 4, 16 },
        { { { .start = 200000, .flags = PAWL_SLICE_INDEX }, { .start = -1, .flags = PAWL_SLICE_INDEX } }, 1, 4 },
        { { { .start = 0, .stop = 0, .flags = 3 }, WHOLE }, 0, 0 },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        hook.bytes_read = 0;
        assert_int_equal(pawl_model_read_slice(model, w, CASES[i].axes, 2, PAWL_F32, PAWL_OVERFLOW_FORMAT, row,
                                               CASES[i].values * 4, NULL),
                         PAWL_OK);
        if (hook.bytes_read > CASES[i].most)
            fail_msg("case %zu read %" PRIu64 " bytes, at most %" PRIu64, i, hook.bytes_read, CASES[i].most);
        if (i == 0)
            assert_true(row[1023] == 7);
        if (i == 2 || i == 5)
            assert_true(row[0] == 7);
    }
    pawl_model_close(model);
}

/*
 * Goal: what is read at once ends anywhere: in a row, between rows, in a gap. Method: 4.4 MB, in slices whose runs and gaps do not divide the
 * window, as they are and cast; every value is its own index.
 */
static void
windows_end_anywhere(void **state)
{
    (void)state;
    enum { ROWS = 1000, COLS = 1111 };
    static const struct {
        const char *text;
        int64_t row, row_step, col, col_step; /* where the result begins, and how it goes on */
        size_t rows, cols;
    } CASES[] = {
        { ":,::2", 0, 1, 0, 2, ROWS, 556 },
        { ":,1:1100", 0, 1, 1, 1, ROWS, 1099 },
        { "::-1,::-3", 999, -1, 1110, -3, ROWS, 371 },
        { "::3,5:1000:11", 0, 3, 5, 11, 334, 91 },
        { "::-2,:1000", 999, -2, 0, 1, 500, 1000 },
        { ":,3:900:700", 0, 1, 3, 700, ROWS, 2 },
        { ":,::-1", 0, 1, 1110, -1, ROWS, COLS },
        { "1:,:-1", 1, 1, 0, 1, ROWS - 1, COLS - 1 },
    };
    struct pawl_model *model = counting_model(PAWL_U32, (uint64_t[]){ ROWS, COLS }, 2);
    const struct pawl_tensor_info *w = only_tensor(model);
    uint32_t *got = malloc((size_t)ROWS * COLS * 4);
    double *wide = malloc((size_t)ROWS * COLS * 8);
    assert_true(got != NULL && wide != NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct pawl_slice_axis axes[2];
        size_t n;
        size_t count = CASES[i].rows * CASES[i].cols;
        assert_int_equal(pawl_slice_parse(pawl_str_z(CASES[i].text), axes, 2, &n, NULL), PAWL_OK);
        assert_int_equal(pawl_model_read_slice(model, w, axes, n, PAWL_U32, 0, got, count * 4, NULL), PAWL_OK);
        for (size_t k = 0; k < count; k++) {
            int64_t row = CASES[i].row + CASES[i].row_step * (int64_t)(k / CASES[i].cols);
            int64_t col = CASES[i].col + CASES[i].col_step * (int64_t)(k % CASES[i].cols);
            if (got[k] != (uint32_t)(row * COLS + col))
                fail_msg("%s: value %zu is %" PRIu32, CASES[i].text, k, got[k]);
        }
    }
    pawl_model_close(model);

    /* the same bytes as F16, cast: 2222 columns of 2 bytes */
    model = counting_model(PAWL_F16, (uint64_t[]){ ROWS, 2 * COLS }, 2);
    w = only_tensor(model);
    uint16_t *halves = malloc((size_t)ROWS * COLS * 4);
    assert_non_null(halves);
    const struct pawl_slice_axis axes[2] = { { .step = -1 }, { .step = -2 } };
    size_t count = (size_t)ROWS * COLS;
    assert_int_equal(pawl_model_read_slice(model, w, axes, 2, PAWL_F16, 0, halves, count * 2, NULL), PAWL_OK);
    assert_int_equal(pawl_model_read_slice(model, w, axes, 2, PAWL_F64, 0, wide, count * 8, NULL), PAWL_OK);
    double *want = malloc(count * 8);
    assert_non_null(want);
    assert_int_equal(pawl_cast(PAWL_F16, halves, count, PAWL_F64, PAWL_OVERFLOW_FORMAT, want, NULL, NULL), PAWL_OK);
    assert_memory_equal(wide, want, count * 8);
    assert_int_equal(halves[0], (uint16_t)(ROWS * 2 * COLS - 1));
    pawl_model_close(model);
    free(want);
    free(halves);
    free(got);
    free(wide);
}

/* Goal: a tensor that several threads read arrives whole, as it is and cast; the first bad value is named, whoever finds it. */
static void
large_tensors_are_read_by_threads(void **state)
{
    (void)state;
    enum { N = 17 << 20 }; /* 68 MiB: six slabs */
    float *values = malloc((size_t)N * 4);
    float *got = malloc((size_t)N * 4);
    uint16_t *narrow = malloc((size_t)N * 2), *want = malloc((size_t)N * 2);
    assert_true(values != NULL && got != NULL && narrow != NULL && want != NULL);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)((uint32_t)i * 2654435761u >> 8) / 4096;
    char header[128];
    (void)snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", N,
                   N * 4);
    values[N - 5] = 1e6f;
    values[3 * (12 << 18) + 9] = -1e6f;
    put_model("w.safetensors", header, values, (size_t)N * 4);
    struct pawl_model *model;
    assert_int_equal(pawl_model_open_z("w.safetensors", NULL, &model, NULL), PAWL_OK);
    const struct pawl_tensor_info *w = only_tensor(model);
    assert_int_equal(pawl_model_read(model, w, PAWL_F32, got, (size_t)N * 4, NULL), PAWL_OK);
    assert_memory_equal(got, values, (size_t)N * 4);
    assert_int_equal(pawl_model_read(model, w, PAWL_BF16, narrow, (size_t)N * 2, NULL), PAWL_OK);
    assert_int_equal(pawl_encode_f32(PAWL_BF16, PAWL_OVERFLOW_FORMAT, values, N, want, NULL, NULL), PAWL_OK);
    assert_memory_equal(narrow, want, (size_t)N * 2);
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(
        pawl_model_read_slice(model, w, NULL, 0, PAWL_F16, PAWL_OVERFLOW_ERROR, narrow, (size_t)N * 2, &err),
        PAWL_OUT_OF_RANGE);
    assert_string_equal(err.message,
                        "tensor 'w': element 9437193 is -1000000, beyond the largest of F16 in magnitude, 65504");
    assert_int_equal(truncate("w.safetensors", 50 << 20), 0);
    assert_int_equal(pawl_model_read(model, w, PAWL_F32, got, (size_t)N * 4, &err), PAWL_TRUNCATED);
    pawl_model_close(model);
    free(values);
    free(got);
    free(narrow);
    free(want);
}

/* Goal: shapes without elements, of axes beyond all counting, are not computed with. */
static void
axes_beyond_counting(void **state)
{
    (void)state;
    const uint64_t dims[3] = { 0, UINT64_MAX, UINT64_MAX };
    const struct pawl_tensor_info t = { .name = PAWL_STR("t"), .shape = dims, .rank = 3, .dtype = PAWL_F32 };
    uint64_t shape[3] = { 1, 2, 3 };
    uint64_t bytes = 9;
    size_t rank = 9;
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(pawl_slice_shape(&t, NULL, 0, shape, &rank, &bytes, &err), PAWL_OK);
    assert_memory_equal(shape, dims, sizeof dims);
    assert_int_equal(rank, 3);
    assert_int_equal(bytes, 0);
    const struct pawl_slice_axis axes[2] = { WHOLE, { .step = 2 } };
    assert_int_equal(pawl_slice_shape(&t, axes, 2, shape, &rank, &bytes, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "tensor 't': axis 1 has size 18446744073709551615, too much to count in");
    const struct pawl_slice_axis odd = { .flags = 16 };
    assert_int_equal(pawl_slice_shape(&t, &odd, 1, shape, &rank, &bytes, &err), PAWL_ARGUMENT);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        TEST(numpys_answers),
        TEST(random_slices_are_as_defined),
        TEST(elements_smaller_than_a_byte),
        TEST(a_slice_does_not_read_the_rest),
        TEST(windows_end_anywhere),
        TEST(large_tensors_are_read_by_threads),
        TEST(axes_beyond_counting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
