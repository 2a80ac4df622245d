/* What users of other readers and writers have met, where no other test has it already. docs/format/safetensors-cases.md tells which has. */
#include "unit/model_tools.h"

#include <inttypes.h>
#include <sys/wait.h>
#include "pawl/model.h"

static void
keep_model_bytes(const char *path, char **ret_bytes, size_t *ret_n)
{
    *ret_bytes = st_slurp(path, ret_n);
}

/*
 * Goal: a file of another writer whose header has any length is read right, its pointers say that they are not aligned, and written
 * again it has the reference's bytes. Method: N of every remainder by 8.
 */
static void
headers_of_any_length(void **state)
{
    (void)state;
    static const float values[2] = { 1.5f, -2.25f };
    char *want = NULL;
    size_t want_n = 0;
    for (size_t pad = 0; pad < 8; pad++) {
        char header[128];
        struct pawl_model *model;
        const void *mapped;
        bool is_aligned;
        float got[2];
        (void)snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}%*s",
                       (int)pad, "");
        put_model("in", header, values, 8);
        assert_int_equal(pawl_model_open_z("in", NULL, &model, NULL), PAWL_OK);
        const struct pawl_tensor_info *w = pawl_model_find(model, PAWL_STR("w"));
        assert_int_equal(pawl_model_read(model, w, PAWL_F32, got, 8, NULL), PAWL_OK);
        assert_memory_equal(got, values, 8);
        assert_int_equal(pawl_model_map(model, w, &mapped, &is_aligned, NULL), PAWL_OK);
        assert_memory_equal(mapped, values, 8);
        assert_int_equal(is_aligned, (strlen(header) + 8) % 4 == 0);
        const struct pawl_tensor t = { .size = sizeof t,
                                       .dtype = PAWL_F32,
                                       .name = w->name,
                                       .rank = w->rank,
                                       .shape = w->shape,
                                       .data = (void *)(uintptr_t)mapped };
        assert_int_equal(pawl_safetensors_write(PAWL_STR("out"), &t, 1, NULL, NULL), PAWL_OK);
        char *bytes;
        size_t n;
        keep_model_bytes("out", &bytes, &n);
        assert_int_equal((n - 8) % 8, 0);
        if (want == NULL) {
            want = bytes;
            want_n = n;
        } else {
            assert_int_equal(n, want_n);
            assert_memory_equal(bytes, want, n);
            free(bytes);
        }
        pawl_model_close(model);
    }
    free(want);
}

/* Goal: many metadata keys are written in one order, by every process: digests of a model can be compared. */
static void
metadata_in_one_order(void **state)
{
    (void)state;
    char *first = NULL;
    size_t n_first = 0;
    for (unsigned run = 0; run < 20; run++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            static const char *const KEYS[] = { "0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                                "8", "9", "10", "11", "12", "13", "14", "15" };
            struct pawl_pair metadata[16];
            for (size_t i = 0; i < 16; i++) /* given in another order each time */
                metadata[i] =
                    (struct pawl_pair){ pawl_str_z(KEYS[(i * 7 + run) % 16]), pawl_str_z(KEYS[(i * 7 + run) % 16]) };
            const struct pawl_write_options options = PAWL_WRITE_OPTIONS(.metadata = metadata, .n_metadata = 16);
            _exit(pawl_safetensors_write(PAWL_STR("m"), NULL, 0, &options, NULL) == PAWL_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        size_t n;
        char *bytes = st_slurp("m", &n);
        if (first == NULL) {
            assert_non_null(strstr(bytes + 8, "{\"0\":\"0\",\"1\":\"1\",\"10\":\"10\",\"11\":\"11\""));
            assert_non_null(strstr(bytes + 8, "\"8\":\"8\",\"9\":\"9\"}"));
            first = bytes;
            n_first = n;
            continue;
        }
        assert_int_equal(n, n_first);
        assert_memory_equal(bytes, first, n);
        free(bytes);
    }
    free(first);
}

/* Goal: names are bytes with a length: what is written under any of them is found again under it and no other, of every length. */
static void
names_come_back_as_they_were(void **state)
{
    (void)state;
    static char long_name[100000];
    memset(long_name, 'n', sizeof long_name);
    const struct pawl_str names[] = { { "", 0 },           { "\n", 1 },         { "\t", 1 },
                                      { "\"", 1 },         { "\\", 1 },         { "\xf0\x9f\xa6\x80", 4 },
                                      { "a/b", 3 },        { "..", 2 },         { "\xe2\x80\xae", 3 },
                                      { "a", 1 },          { "a\0b", 3 },       { "a\0", 2 },
                                      { "w", 1 },          { "w2", 2 },         { long_name, 4095 },
                                      { long_name, 4096 }, { long_name, 5000 }, { long_name, sizeof long_name } };
    enum { N = sizeof names / sizeof names[0] };
    struct pawl_tensor tensors[N];
    unsigned char values[N];
    const uint64_t one = 1;
    for (size_t i = 0; i < N; i++) {
        values[i] = (unsigned char)(i + 1);
        tensors[i] = (struct pawl_tensor){
            .size = sizeof tensors[i], .dtype = PAWL_U8, .name = names[i], .rank = 1, .shape = &one, .data = &values[i]
        };
    }
    struct pawl_model *model;
    assert_int_equal(pawl_safetensors_write(PAWL_STR("names"), tensors, N, NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_model_open_z("names", NULL, &model, NULL), PAWL_OK);
    for (size_t i = 0; i < N; i++) {
        unsigned char got = 0;
        const struct pawl_tensor_info *t = pawl_model_find(model, names[i]);
        assert_non_null(t);
        assert_int_equal(t->name.len, names[i].len);
        assert_memory_equal(t->name.data, names[i].data, names[i].len);
        assert_int_equal(pawl_model_read(model, t, PAWL_U8, &got, 1, NULL), PAWL_OK);
        assert_int_equal(got, values[i]);
    }
    assert_null(pawl_model_find(model, PAWL_STR("w22")));
    assert_null(pawl_model_find(model, pawl_str_make(long_name, 4094)));
    pawl_model_close(model);
}

/* Goal: shapes whose product is beyond 64 bits are refused where a caller hands them over, not only in a file. */
static void
shapes_of_callers_are_multiplied_with_checks(void **state)
{
    (void)state;
    static const uint64_t SHAPES[][2] = { { UINT64_C(1) << 33, UINT64_C(1) << 33 },
                                          { UINT64_C(1) << 32, UINT64_C(1) << 32 },
                                          { UINT64_C(1) << 62, 1 },
                                          { (UINT64_C(1) << 63) + 2, 2 },
                                          { UINT64_MAX, 2 } };
    float nothing[1] = { 0 };
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        const struct pawl_tensor t = {
            .size = sizeof t, .dtype = PAWL_F32, .name = PAWL_STR("w"), .rank = 2, .shape = SHAPES[i], .data = nothing
        };
        assert_int_equal(pawl_safetensors_write(PAWL_STR("w"), &t, 1, NULL, &err), PAWL_ARGUMENT);
        assert_string_equal(err.code, "overflow");
        assert_int_equal(access("w", F_OK), -1);
    }
}

/* Lines of a file of /proc that name `what`. */
static unsigned
lines_with(const char *path, const char *what)
{
    char line[4096];
    unsigned n = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        n += strstr(line, what) != NULL;
    fclose(file);
    return n;
}

/* Goal: after a close nothing holds the file: no mapping, no descriptor. Where a held file can't be replaced this is what decides. */
static void
nothing_is_held_after_a_close(void **state)
{
    (void)state;
    struct pawl_model *model;
    const void *mapped;
    if (access("/proc/self/maps", R_OK) != 0) {
        print_message("skipped: this system does not tell what a process has mapped\n");
        skip();
    }
    put_model("held.safetensors", "{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "abcd", 4);
    assert_int_equal(pawl_model_open_z("held.safetensors", NULL, &model, NULL), PAWL_OK);
    assert_int_equal(pawl_model_map(model, pawl_model_find(model, PAWL_STR("w")), &mapped, NULL, NULL), PAWL_OK);
    assert_int_equal(lines_with("/proc/self/maps", "held.safetensors"), 1);
    pawl_model_close(model);
    assert_int_equal(lines_with("/proc/self/maps", "held.safetensors"), 0);
    for (int fd = 3; fd < 64; fd++) {
        char link[64], target[4096];
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = '\0';
        assert_null(strstr(target, "held.safetensors"));
    }
}

/* Goal: a tensor of 2^32 bits and more is read, also where a size_t has 32. Method: 512 MiB, sparse; its last value. */
static void
a_tensor_of_more_bits_than_32_count(void **state)
{
    (void)state;
    static const char HEADER[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[134217728],\"data_offsets\":[0,536870912]}}";
    struct pawl_model *model;
    float value = 7, got = 0;
    put_model("large", HEADER, NULL, 0);
    assert_int_equal(truncate("large", (off_t)(8 + strlen(HEADER) + 536870912)), 0);
    int fd = open("large", O_WRONLY);
    assert_int_equal(pwrite(fd, &value, 4, (off_t)(8 + strlen(HEADER) + 536870908)), 4);
    close(fd);
    assert_int_equal(pawl_model_open_z("large", NULL, &model, NULL), PAWL_OK);
    const struct pawl_slice_axis last = { .start = -1, .flags = PAWL_SLICE_INDEX };
    assert_int_equal(pawl_model_read_slice(model, pawl_model_find(model, PAWL_STR("w")), &last, 1, PAWL_F32,
                                           PAWL_OVERFLOW_FORMAT, &got, 4, NULL),
                     PAWL_OK);
    assert_true(got == 7);
    pawl_model_close(model);
    if (sizeof(size_t) > 4)
        print_message("with a size_t of 64 bits; a build with -m32 shows it for 32\n");
}

/* Goal: a hundred thousands of small tensors are opened and found in linear time: what is not takes longer than the test may. */
static void
many_small_tensors(void **state)
{
    (void)state;
    static const size_t SIZES[] = { 31337, 200000 };
    for (size_t s = 0; s < 2; s++) {
        struct pawl_buffer file = PAWL_BUFFER_INIT;
        struct pawl_model *model;
        (void)pawl_buffer_add(&file, "\0\0\0\0\0\0\0\0{", 9);
        for (size_t i = 0; i < SIZES[s]; i++)
            (void)pawl_buffer_printf(&file, "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                                     i == 0 ? "" : ",", i, i, i + 1);
        (void)pawl_buffer_add_char(&file, '}');
        assert_true(pawl_buffer_ok(&file));
        pawl_put_u64le((unsigned char *)file.data, file.len - 8);
        for (size_t i = 0; i < SIZES[s]; i++)
            (void)pawl_buffer_add_char(&file, (char)i);
        assert_true(pawl_buffer_ok(&file));
        put_bytes("many", file.data, file.len);
        pawl_buffer_release(&file);
        assert_int_equal(pawl_model_open_z("many", NULL, &model, NULL), PAWL_OK);
        for (size_t i = 0; i < SIZES[s]; i++) {
            char name[32];
            size_t n = (size_t)snprintf(name, sizeof name, "t%zu", i);
            const struct pawl_tensor_info *t = pawl_model_find(model, pawl_str_make(name, n));
            assert_true(t != NULL && t->begin == i);
        }
        pawl_model_close(model);
    }
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        TEST(headers_of_any_length),
        TEST(metadata_in_one_order),
        TEST(names_come_back_as_they_were),
        TEST(shapes_of_callers_are_multiplied_with_checks),
        TEST(nothing_is_held_after_a_close),
        TEST(a_tensor_of_more_bits_than_32_count),
        TEST(many_small_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
