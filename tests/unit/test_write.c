#include "unit/model_tools.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include "model/model.h"
#include "pawl/pcg32.h"

#define FILES PAWL_GOLDEN "/safetensors/files"

static enum pawl_status
write_to(const char *path, const struct pawl_tensor *tensors, size_t n, const struct pawl_write_options *options,
         struct pawl_error *err)
{
    return pawl_safetensors_write(pawl_str_z(path), tensors, n, options, err);
}

static struct pawl_model *
open_model(const char *path)
{
    struct pawl_model *model = NULL;
    assert_int_equal(pawl_model_open_plain(pawl_os_posix(), pawl_str_z(path), NULL, NULL, &model, NULL), PAWL_OK);
    return model;
}

static void
expect_file(const char *path, const char *hex)
{
    size_t n;
    char *got = st_slurp(path, &n);
    struct pawl_str want = st_unhex(hex);
    assert_int_equal(n, want.len);
    assert_memory_equal(got, want.data, n);
    free((char *)(uintptr_t)want.data);
    free(got);
    assert_int_equal(count_names("."), 1); /* and no temporary */
}

static struct pawl_tensor
bytes_tensor(struct pawl_str name, enum pawl_dtype dtype, size_t rank, const uint64_t *shape, const void *data)
{
    return (struct pawl_tensor){ .size = sizeof(struct pawl_tensor),
                                 .name = name,
                                 .dtype = dtype,
                                 .rank = rank,
                                 .shape = shape,
                                 .data = (void *)(uintptr_t)data };
}

/* ---- the reference's bytes ---- */

/* Goal: what the reference writes for the six small sets of its page, byte for byte, through a file. */
static void
writes_the_reference_bytes(void **state)
{
    static const uint64_t one = 1;
    static const uint64_t two = 2;
    static const uint64_t three = 3;
    static const uint64_t none_by_three[2] = { 0, 3 };
    const struct pawl_pair pair = { PAWL_STR("key"), PAWL_STR("value") };
    (void)state;
    assert_int_equal(write_to("f", NULL, 0, NULL, NULL), PAWL_OK); /* G1 */
    expect_file("f", "08000000000000007b7d202020202020");
    const struct pawl_write_options g2 = PAWL_WRITE_OPTIONS(.metadata = &pair, .n_metadata = 1);
    assert_int_equal(write_to("f", NULL, 0, &g2, NULL), PAWL_OK);
    expect_file("f", "20000000000000007b225f5f6d657461646174615f5f223a7b226b6579223a2276616c7565227d7d");
    const struct pawl_tensor g3 = bytes_tensor(PAWL_STR("s"), PAWL_F32, 0, NULL, "\0\0\x80\x3f");
    assert_int_equal(write_to("f", &g3, 1, NULL, NULL), PAWL_OK);
    expect_file("f", "38000000000000007b2273223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f66"
                     "6673657473223a5b302c345d7d7d2020200000803f");
    const struct pawl_tensor g4[] = {
        bytes_tensor(PAWL_STR("b"), PAWL_U8, 1, &three, "\1\2\3"),
        bytes_tensor(PAWL_STR("a"), PAWL_F32, 1, &one, "\0\0\x80\x3f"),
        bytes_tensor(PAWL_STR("c"), PAWL_BOOL, 1, &one, "\1"),
        bytes_tensor(PAWL_STR("d"), PAWL_F4, 1, &two, "\2"),
    };
    assert_int_equal(write_to("f", g4, 4, NULL, NULL), PAWL_OK);
    size_t n;
    char *bytes = st_slurp("f", &n);
    assert_int_equal(n, 8 + 0xd8 + 9);
    assert_int_equal((unsigned char)bytes[0], 0xd8);
    assert_memory_equal(bytes + 8 + 0xd8, "\0\0\x80\x3f\1\2\3\2\1", 9);
    assert_true(strstr(bytes + 8, "\"a\"") < strstr(bytes + 8, "\"b\"") &&
                strstr(bytes + 8, "\"b\"") < strstr(bytes + 8, "\"d\"") &&
                strstr(bytes + 8, "\"d\"") < strstr(bytes + 8, "\"c\""));
    free(bytes);
    const struct pawl_tensor g5 = bytes_tensor(PAWL_STR("z"), PAWL_F32, 2, none_by_three, NULL);
    const struct pawl_write_options empty = PAWL_WRITE_OPTIONS(.has_metadata = 1);
    assert_int_equal(write_to("f", &g5, 1, &empty, NULL), PAWL_OK);
    expect_file("f", "50000000000000007b225f5f6d657461646174615f5f223a7b7d2c227a223a7b226474797065223a22463332222c2273"
                     "68617065223a5b302c335d2c22646174615f6f666673657473223a5b302c305d7d7d202020202020");
    const struct pawl_tensor g6 = bytes_tensor(PAWL_STR("q\"\\\n\1\x7f\xc3\xa9"), PAWL_U8, 1, &one, "\0");
    assert_int_equal(write_to("f", &g6, 1, NULL, NULL), PAWL_OK);
    expect_file("f", "48000000000000007b22715c225c5c5c6e5c75303030317fc3a9223a7b226474797065223a225538222c227368617065"
                     "223a5b315d2c22646174615f6f666673657473223a5b302c315d7d7d2020202000");
}

/* Write what a file holds again, in a scattered order; the result must be `same`, or not. */
static void
write_again(const char *path, bool is_canonical)
{
    struct pawl_model *model = open_model(path);
    size_t n;
    size_t n_metadata;
    bool has_metadata;
    const struct pawl_tensor_info *infos = pawl_model_tensors(model, &n);
    const struct pawl_pair *metadata = pawl_model_metadata(model, &n_metadata, &has_metadata);
    struct pawl_tensor *tensors = calloc(n + 1, sizeof *tensors);
    unsigned char **data = calloc(n + 1, sizeof *data);
    assert_true(tensors != NULL && data != NULL);
    for (size_t i = 0; i < n; i++) {
        size_t k = (i * 7 + 3) % n; /* a permutation unless 7 divides n */
        if (n % 7 == 0)
            k = n - 1 - i;
        size_t bytes = (size_t)(infos[k].end - infos[k].begin);
        data[i] = malloc(bytes + 1);
        assert_non_null(data[i]);
        assert_int_equal(pawl_model_read(model, &infos[k], infos[k].dtype, data[i], bytes, NULL), PAWL_OK);
        tensors[i] = bytes_tensor(infos[k].name, infos[k].dtype, infos[k].rank, infos[k].shape, data[i]);
    }
    const struct pawl_write_options options =
        PAWL_WRITE_OPTIONS(.metadata = metadata, .n_metadata = n_metadata, .has_metadata = has_metadata);
    assert_int_equal(write_to("again", tensors, n, &options, NULL), PAWL_OK);
    size_t n_old;
    size_t n_new;
    char *old_bytes = st_slurp(path, &n_old);
    char *new_bytes = st_slurp("again", &n_new);
    bool is_same = n_old == n_new && memcmp(old_bytes, new_bytes, n_old) == 0;
    if (is_same != is_canonical)
        fail_msg("%s: %s", path, is_same ? "the same" : "differs");
    free(old_bytes);
    free(new_bytes);
    for (size_t i = 0; i < n; i++)
        free(data[i]);
    free(data);
    free(tensors);
    pawl_model_close(model);
}

/*
 * Goal: exactly the canonical ones of the golden files come out of the writer as they are, given their own tensors and metadata. Method: the
 * list of the golden files, read line by line.
 */
static void
writes_exactly_the_canonical_files_again(void **state)
{
    size_t bytes;
    unsigned canonical = 0;
    unsigned others = 0;
    (void)state;
    char *list = st_slurp(FILES "/manifest.json", &bytes);
    for (char *line = strtok(list, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *name = strstr(line, "{\"file\":\"");
        char *end = name == NULL ? NULL : strchr(name + 9, '"');
        char *flag = strstr(line, "\"canonical\":");
        if (end == NULL || flag == NULL) /* refused ones and indexes have none */
            continue;
        bool is_canonical = strncmp(flag + 12, "true", 4) == 0;
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%.*s", FILES, (int)(end - name - 9), name + 9);
        write_again(path, is_canonical);
        canonical += is_canonical;
        others += !is_canonical;
    }
    free(list);
    assert_true(canonical >= 40);
    assert_true(others >= 7);
}

/* Goal: the data begin where they are asked to, and the tensors read back are the same. */
static void
aligns_the_data_where_asked(void **state)
{
    static const uint64_t ALIGNS[] = { 8, 64, 256, 4096 };
    static const uint64_t shape = 5;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)state;
    const struct pawl_tensor t = bytes_tensor(PAWL_STR("t"), PAWL_U8, 1, &shape, "hello");
    for (size_t i = 0; i < 4; i++) {
        const struct pawl_write_options options = PAWL_WRITE_OPTIONS(.align = ALIGNS[i]);
        assert_int_equal(write_to("f", &t, 1, &options, NULL), PAWL_OK);
        struct pawl_model *model = open_model("f");
        size_t n;
        char got[5];
        assert_int_equal((pawl_model_files(model, &n)->header_bytes + 8) % ALIGNS[i], 0);
        assert_true(pawl_model_files(model, &n)->header_bytes + 8 < 128 + ALIGNS[i]);
        assert_int_equal(pawl_model_read(model, pawl_model_find(model, PAWL_STR("t")), PAWL_U8, got, 5, NULL), PAWL_OK);
        assert_memory_equal(got, "hello", 5);
        pawl_model_close(model);
    }
    const struct pawl_write_options odd = PAWL_WRITE_OPTIONS(.align = 128);
    assert_int_equal(write_to("f", &t, 1, &odd, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "data can begin at a multiple of 8, 64, 256 or 4096 bytes, not of 128");
}

/* ---- tied tensors ---- */

/* Goal: one storage under several names is written once, under the least; any other overlap is written twice: case 56. */
static void
writes_tied_tensors_once(void **state)
{
    float data[6] = { 1, 2, 3, 4, 5, 6 };
    uint64_t two_three[2] = { 2, 3 };
    uint64_t three_two[2] = { 3, 2 };
    uint64_t six[1] = { 6 };
    uint64_t one_six[2] = { 1, 6 };
    const int64_t packed[2] = { 3, 1 };
    const int64_t turned[2] = { 1, 2 };
    const int64_t any_one[2] = { 99, 1 };
    (void)state;
    struct pawl_tensor t[] = {
        bytes_tensor(PAWL_STR("m"), PAWL_F32, 2, two_three, data),
        bytes_tensor(PAWL_STR("b"), PAWL_F32, 2, two_three, data),     /* the least of three */
        bytes_tensor(PAWL_STR("c"), PAWL_F32, 2, two_three, data),     /* the same by explicit strides */
        bytes_tensor(PAWL_STR("shape"), PAWL_F32, 2, three_two, data), /* no alias */
        bytes_tensor(PAWL_STR("rank"), PAWL_F32, 1, six, data),
        bytes_tensor(PAWL_STR("dtype"), PAWL_I32, 2, two_three, data),
        bytes_tensor(PAWL_STR("turned"), PAWL_F32, 2, two_three, data),
        bytes_tensor(PAWL_STR("one"), PAWL_F32, 2, one_six, data),
        bytes_tensor(PAWL_STR("also one"), PAWL_F32, 2, one_six, data), /* a stride that means nothing */
        bytes_tensor(PAWL_STR("order"), PAWL_F32, 2, two_three, data),
    };
    t[2].strides = packed;
    t[6].strides = turned;
    t[8].strides = any_one;
    t[9].is_big_endian = 1;
    enum { N = sizeof t / sizeof t[0] };
    assert_int_equal(write_to("f", t, N, NULL, NULL), PAWL_OK);
    struct pawl_model *model = open_model("f");
    size_t n;
    (void)pawl_model_tensors(model, &n);
    assert_int_equal(n, N - 3);
    const struct pawl_pair *aliases = pawl_model_aliases(model, &n);
    assert_int_equal(n, 3);
    assert_true(pawl_str_equal(aliases[0].key, PAWL_STR("c")) && pawl_str_equal(aliases[0].value, PAWL_STR("b")));
    assert_true(pawl_str_equal(aliases[1].key, PAWL_STR("m")) && pawl_str_equal(aliases[1].value, PAWL_STR("b")));
    assert_true(pawl_str_equal(aliases[2].key, PAWL_STR("one")) &&
                pawl_str_equal(aliases[2].value, PAWL_STR("also one")));
    pawl_model_close(model);

    /* the order of calls changes nothing */
    copy_file("f", "g");
    for (size_t i = 0; i < N / 2; i++) {
        struct pawl_tensor swap = t[i];
        t[i] = t[N - 1 - i];
        t[N - 1 - i] = swap;
    }
    assert_int_equal(write_to("f", t, N, NULL, NULL), PAWL_OK);
    size_t n_f;
    size_t n_g;
    char *f = st_slurp("f", &n_f);
    char *g = st_slurp("g", &n_g);
    assert_int_equal(n_f, n_g);
    assert_memory_equal(f, g, n_f);
    free(f);
    free(g);
}

/* Goal: records of aliases that come with metadata of another file stay true: kept, dropped when the name is a tensor again, turned to a new target, or refused. */
static void
keeps_alias_records_true(void **state)
{
    float x[2] = { 1, 2 };
    float y[2] = { 3, 4 };
    uint64_t two = 2;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)state;
    const struct pawl_tensor t[] = { bytes_tensor(PAWL_STR("x"), PAWL_F32, 1, &two, x),
                                     bytes_tensor(PAWL_STR("a"), PAWL_F32, 1, &two, x),
                                     bytes_tensor(PAWL_STR("y"), PAWL_F32, 1, &two, y) };
    const struct pawl_pair metadata[] = { { PAWL_STR("pawl.alias.tied"), PAWL_STR("x") },
                                          { PAWL_STR("pawl.alias.y"), PAWL_STR("x") } };
    const struct pawl_write_options options = PAWL_WRITE_OPTIONS(.metadata = metadata, .n_metadata = 2);
    assert_int_equal(write_to("f", t, 3, &options, NULL), PAWL_OK);
    struct pawl_model *model = open_model("f");
    size_t n;
    const struct pawl_pair *aliases = pawl_model_aliases(model, &n);
    assert_int_equal(n, 2);
    assert_true(pawl_str_equal(aliases[0].key, PAWL_STR("tied")) && pawl_str_equal(aliases[0].value, PAWL_STR("a")));
    assert_true(pawl_str_equal(aliases[1].key, PAWL_STR("x")) && pawl_str_equal(aliases[1].value, PAWL_STR("a")));
    assert_ptr_not_equal(pawl_model_find(model, PAWL_STR("y")), pawl_model_find(model, PAWL_STR("a")));
    (void)pawl_model_metadata(model, &n, NULL);
    assert_int_equal(n, 2); /* nothing is left of the other record */
    pawl_model_close(model);
    assert_int_equal(write_to("f", t + 2, 1, &options, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the metadata make 'tied' an alias of 'x', which is not among the tensors");
}

/* ---- publishing ---- */

/* Goal: modes are those of an ordinary create or of the file that is replaced: case 45. */
static void
modes_are_ordinary(void **state)
{
    uint64_t one = 1;
    (void)state;
    const struct pawl_tensor t = bytes_tensor(PAWL_STR("t"), PAWL_U8, 1, &one, "x");
    assert_int_equal(write_to("new", &t, 1, NULL, NULL), PAWL_OK);
    assert_int_equal(host_mode("new"), 0644);
    assert_int_equal(chmod("new", 0640), 0);
    assert_int_equal(write_to("new", &t, 1, NULL, NULL), PAWL_OK);
    assert_int_equal(host_mode("new"), 0640);
}

/* Goal: a symbolic link is kept, its target replaced: case 49. */
static void
follows_a_link(void **state)
{
    uint64_t one = 1;
    struct stat status;
    (void)state;
    const struct pawl_tensor t = bytes_tensor(PAWL_STR("t"), PAWL_U8, 1, &one, "x");
    assert_int_equal(mkdir("d", 0777), 0);
    host_put("d/real", "old");
    assert_int_equal(symlink("d/real", "out"), 0);
    assert_int_equal(write_to("out", &t, 1, NULL, NULL), PAWL_OK);
    assert_int_equal(lstat("out", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    pawl_model_close(open_model("d/real"));
    assert_int_equal(count_names("d"), 1);
}

/* Goal: keep_existing refuses, and leaves what is there. */
static void
keeps_what_exists_when_asked(void **state)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_write_options options = PAWL_WRITE_OPTIONS(.keep_existing = 1);
    (void)state;
    host_put("f", "old");
    assert_int_equal(write_to("f", NULL, 0, &options, &err), PAWL_EXISTS);
    assert_string_equal(err.code, "exists");
    assert_string_equal(host_text("f"), "old");
    assert_int_equal(count_names("."), 1);
    assert_int_equal(write_to("g", NULL, 0, &options, &err), PAWL_OK);
    assert_int_equal(write_to("no/such/place", NULL, 0, NULL, &err), PAWL_NO_FILE);
    assert_true(err.path[0] != '\0');
}

/* Goal: tensors that are mapped from a file can be saved over that very file, in another order of bytes too: case 46. */
static void
saves_over_its_own_mapping(void **state)
{
    enum { N = 3 << 20 };
    uint64_t small = 3;
    uint64_t large = N;
    const void *mapped[2];
    (void)state;
    unsigned char *bytes = malloc(N);
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 12);
    const struct pawl_tensor first[] = { bytes_tensor(PAWL_STR("z"), PAWL_U8, 1, &small, "\1\2\3"),
                                         bytes_tensor(PAWL_STR("y"), PAWL_U8, 1, &large, bytes) };
    assert_int_equal(write_to("f", first, 2, NULL, NULL), PAWL_OK);
    struct pawl_model *model = open_model("f");
    assert_int_equal(pawl_model_map(model, pawl_model_find(model, PAWL_STR("z")), &mapped[0], NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_model_map(model, pawl_model_find(model, PAWL_STR("y")), &mapped[1], NULL, NULL), PAWL_OK);
    const struct pawl_tensor second[] = { bytes_tensor(PAWL_STR("a"), PAWL_U8, 1, &small, mapped[0]),
                                          bytes_tensor(PAWL_STR("b"), PAWL_U8, 1, &large, mapped[1]) };
    assert_int_equal(write_to("f", second, 2, NULL, NULL), PAWL_OK);
    assert_memory_equal(mapped[0], "\1\2\3", 3);
    assert_memory_equal(mapped[1], bytes, N);
    pawl_model_close(model);
    model = open_model("f");
    unsigned char *got = malloc(N);
    assert_non_null(got);
    assert_int_equal(pawl_model_read(model, pawl_model_find(model, PAWL_STR("a")), PAWL_U8, got, 3, NULL), PAWL_OK);
    assert_memory_equal(got, "\1\2\3", 3);
    assert_int_equal(pawl_model_read(model, pawl_model_find(model, PAWL_STR("b")), PAWL_U8, got, N, NULL), PAWL_OK);
    assert_memory_equal(got, bytes, N);
    pawl_model_close(model);
    free(got);
    free(bytes);
}

/* ---- sources ---- */

struct generator {
    uint64_t seed, bytes;
    uint64_t fail_at; /* UINT64_MAX: never */
};

static unsigned char
generated(uint64_t seed, uint64_t offset)
{
    return (unsigned char)((offset * UINT64_C(0x9e3779b97f4a7c15) + seed * 77) >> 29);
}

static enum pawl_status
generate(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    struct generator *g = context;
    unsigned char *to = destination;
    if (offset + n > g->fail_at) {
        (void)snprintf(err->message, sizeof err->message, "the generator broke");
        (void)snprintf(err->code, sizeof err->code, "io");
        return err->status = PAWL_IO;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = generated(g->seed, offset + i);
    return PAWL_OK;
}

/* Goal: a source that fails at tensor k leaves the old file as it was, no temporary, and the answer names the tensor: case 50. */
static void
a_failing_source_leaves_the_old_file(void **state)
{
    enum { TENSORS = 5 };
    static const uint64_t shape = 1500000;
    char names[TENSORS][4];
    (void)state;
    host_put("f", "the old file");
    for (size_t k = 0; k < TENSORS; k++) {
        struct generator generators[TENSORS];
        struct pawl_source sources[TENSORS];
        struct pawl_tensor tensors[TENSORS];
        struct pawl_error err = PAWL_ERROR_INIT;
        int before = count_descriptors();
        for (size_t i = 0; i < TENSORS; i++) {
            generators[i] = (struct generator){ i, shape, i == k ? shape - 1 : UINT64_MAX };
            sources[i] = (struct pawl_source){ shape, generate, &generators[i] };
            (void)snprintf(names[i], sizeof names[i], "t%zu", i);
            tensors[i] = bytes_tensor(pawl_str_z(names[i]), PAWL_U8, 1, &shape, NULL);
            tensors[i].source = &sources[i];
        }
        assert_int_equal(write_to("f", tensors, TENSORS, NULL, &err), PAWL_IO);
        assert_string_equal(err.tensor, names[k]);
        char want[64];
        (void)snprintf(want, sizeof want, "tensor '%s': the generator broke", names[k]);
        assert_string_equal(err.message, want);
        assert_string_equal(host_text("f"), "the old file");
        assert_int_equal(count_names("."), 1);
        assert_int_equal(count_descriptors(), before);
    }
}

/* Goal: a set larger than memory is written from a generator with memory for one buffer: case 52. Method: 64 tensors of 4 MiB in a child with an address space of 32 MiB more than it has. */
static void
writes_more_than_memory_holds(void **state)
{
    enum { TENSORS = 64 };
    static const uint64_t shape = 4 << 20;
    (void)state;
    static struct generator generators[TENSORS];
    static struct pawl_source sources[TENSORS];
    static struct pawl_tensor tensors[TENSORS];
    static char names[TENSORS][8];
    for (size_t i = 0; i < TENSORS; i++) {
        generators[i] = (struct generator){ i, shape, UINT64_MAX };
        sources[i] = (struct pawl_source){ shape, generate, &generators[i] };
        (void)snprintf(names[i], sizeof names[i], "t%02zu", i);
        tensors[i] = bytes_tensor(pawl_str_z(names[i]), PAWL_U8, 1, &shape, NULL);
        tensors[i].source = &sources[i];
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned long pages = 0;
        FILE *statm = fopen("/proc/self/statm", "r");
        if (statm != NULL) {
            if (fscanf(statm, "%lu", &pages) != 1)
                pages = 0;
            (void)fclose(statm);
        }
        rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (32 << 20);
        const struct rlimit limit = { most, most };
        if (pages != 0 && setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(2);
        _exit(write_to("big", tensors, TENSORS, NULL, NULL) == PAWL_OK ? 0 : 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct pawl_model *model = open_model("big");
    for (size_t i = 0; i < TENSORS; i += 21) {
        const void *data;
        assert_int_equal(pawl_model_map(model, pawl_model_find(model, pawl_str_z(names[i])), &data, NULL, NULL),
                         PAWL_OK);
        for (size_t k = 0; k < shape; k += 4099)
            assert_int_equal(((const unsigned char *)data)[k], generated(i, k));
    }
    pawl_model_close(model);
}

/* Goal: a full disk, and a file that may not grow, are told as such, and the old file is intact: case 50. */
static void
a_file_that_cannot_grow_leaves_the_old_one(void **state)
{
    static const uint64_t shape = 4 << 20;
    (void)state;
    host_put("f", "the old file");
    struct generator generator = { 1, shape, UINT64_MAX };
    struct pawl_source source = { shape, generate, &generator };
    struct pawl_tensor t = bytes_tensor(PAWL_STR("t"), PAWL_U8, 1, &shape, NULL);
    t.source = &source;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = { 1 << 20, 1 << 20 };
        struct pawl_error err = PAWL_ERROR_INIT;
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        if (write_to("f", &t, 1, NULL, &err) != PAWL_IO || err.system_errno != EFBIG)
            _exit(3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status)); /* no signal */
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(host_text("f"), "the old file");
    assert_int_equal(count_names("."), 1);
}

/* ---- what is refused before any file exists ---- */

static void
expect_refusal(const struct pawl_tensor *tensors, size_t n, const struct pawl_write_options *options, const char *code)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(write_to("f", tensors, n, options, &err), PAWL_ARGUMENT);
    assert_int_equal(err.status, PAWL_ARGUMENT);
    assert_string_equal(err.code, code);
    assert_true(err.message[0] != '\0');
    assert_int_equal(count_names("."), 0);
}

/* Goal: what the format refuses is PAWL_ARGUMENT and leaves nothing behind. */
static void
refuses_before_any_file_exists(void **state)
{
    static const uint64_t one = 1;
    static const uint64_t huge[2] = { UINT64_C(1) << 33, UINT64_C(1) << 33 };
    const struct pawl_pair twice[] = { { PAWL_STR("k"), PAWL_STR("1") }, { PAWL_STR("k"), PAWL_STR("2") } };
    const struct pawl_pair bad = { PAWL_STR("k"), PAWL_STR("\xc3") };
    (void)state;
    struct pawl_tensor t[2] = { bytes_tensor(PAWL_STR("a"), PAWL_U8, 1, &one, "x"),
                                bytes_tensor(PAWL_STR("a"), PAWL_U8, 1, &one, "y") };
    expect_refusal(t, 2, NULL, "duplicate-key");
    t[1].data = t[0].data; /* tied to itself */
    expect_refusal(t, 2, NULL, "duplicate-key");
    t[0].name = PAWL_STR("__metadata__");
    expect_refusal(t, 1, NULL, "argument");
    t[0].name = PAWL_STR("\xed\xa0\x80");
    expect_refusal(t, 1, NULL, "utf8");
    t[0] = bytes_tensor(PAWL_STR("o"), PAWL_F32, 2, huge, "x");
    expect_refusal(t, 1, NULL, "overflow");
    t[0] = bytes_tensor(PAWL_STR("f"), PAWL_F4, 1, &one, "x");
    expect_refusal(t, 1, NULL, "bits");
    t[0] = bytes_tensor(PAWL_STR("n"), PAWL_U8, 1, &one, NULL);
    expect_refusal(t, 1, NULL, "argument");
    t[0] = bytes_tensor(PAWL_STR("s"), PAWL_U8, 1, &one, "x");
    t[0].size = 8;
    expect_refusal(t, 1, NULL, "argument");
    const struct pawl_write_options repeated = PAWL_WRITE_OPTIONS(.metadata = twice, .n_metadata = 2);
    expect_refusal(NULL, 0, &repeated, "duplicate-key");
    const struct pawl_write_options not_text = PAWL_WRITE_OPTIONS(.metadata = &bad, .n_metadata = 1);
    expect_refusal(NULL, 0, &not_text, "utf8");
    assert_int_equal(pawl_safetensors_write(pawl_str_make("a\0b", 3), NULL, 0, NULL, NULL), PAWL_ARGUMENT);
    assert_int_equal(pawl_safetensors_write(PAWL_STR(""), NULL, 0, NULL, NULL), PAWL_ARGUMENT);
    assert_int_equal(count_names("."), 0);
}

struct told {
    size_t calls;
    uint64_t last, total;
    size_t cancel_at; /* which call answers no; 0: none */
};

static int
tell(void *context, uint64_t done, uint64_t total)
{
    struct told *told = context;
    assert_true(done > told->last && done <= total);
    told->last = done;
    told->total = total;
    return ++told->calls == told->cancel_at;
}

/*
 * Goal: progress is told in the middle of a tensor that is nearly the whole file, ends with all bytes, and a "no" anywhere
 * leaves the old file. Method: a tensor of 9 MiB, and every call that there is canceled in turn. Unsynced files take the same way.
 */
static void
tells_progress_and_can_be_canceled(void **state)
{
    static const uint64_t shape = (uint64_t)9 << 20;
    unsigned char *data = calloc(1, (size_t)shape);
    struct told told = { 0 };
    size_t n;
    (void)state;
    assert_non_null(data);
    const struct pawl_tensor big = bytes_tensor(PAWL_STR("big"), PAWL_U8, 1, &shape, data);
    const struct pawl_tensor small = bytes_tensor(PAWL_STR("small"), PAWL_U8, 0, NULL, data);
    const struct pawl_write_options options =
        PAWL_WRITE_OPTIONS(.is_unsynced = 1, .progress = tell, .progress_context = &told);
    assert_int_equal(write_to("f", &small, 1, NULL, NULL), PAWL_OK);
    char *before = st_slurp("f", &n);
    for (size_t i = 1; i <= 3; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        told = (struct told){ .cancel_at = i };
        assert_int_equal(write_to("f", &big, 1, &options, &err), PAWL_CANCELED);
        assert_string_equal(err.code, "canceled");
        assert_int_equal(told.calls, i);
        size_t n_after;
        char *after = st_slurp("f", &n_after);
        assert_int_equal(n_after, n);
        assert_memory_equal(after, before, n);
        assert_int_equal(count_names("."), 1);
        free(after);
    }
    told = (struct told){ 0 };
    assert_int_equal(write_to("f", &big, 1, &options, NULL), PAWL_OK);
    assert_true(told.calls >= 3 && told.last == told.total && told.total > shape);
    struct pawl_model *model = open_model("f");
    assert_non_null(pawl_model_find(model, PAWL_STR("big")));
    pawl_model_close(model);
    assert_int_equal(count_names("."), 1);
    free(before);
    free(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_enter, fixture_leave)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writes_the_reference_bytes),
        TEST(writes_exactly_the_canonical_files_again),
        TEST(aligns_the_data_where_asked),
        TEST(writes_tied_tensors_once),
        TEST(keeps_alias_records_true),
        TEST(modes_are_ordinary),
        TEST(follows_a_link),
        TEST(keeps_what_exists_when_asked),
        TEST(saves_over_its_own_mapping),
        TEST(a_failing_source_leaves_the_old_file),
        TEST(writes_more_than_memory_holds),
        TEST(a_file_that_cannot_grow_leaves_the_old_one),
        TEST(tells_progress_and_can_be_canceled),
        TEST(refuses_before_any_file_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
