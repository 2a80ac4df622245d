/* checkpoint/state.c: what can be described, every refusal with its whole text, and that a refusal leaves the state as it was. */
#include "unit/save_support.h"

#include <math.h>
#include <pthread.h>
#include "checkpoint/state.h"
#include "model/shared_storage.h"
#include "checkpoint/values.h"

static struct pawl_state *
new_state(void)
{
    struct pawl_state *state = NULL;
    assert_int_equal(pawl_state_new(&state, NULL), PAWL_OK);
    return state;
}

static struct pawl_error err;

/* The last call was refused as an argument with this message. */
#define assert_refused(call, text)                   \
    do {                                             \
        err = (struct pawl_error)PAWL_ERROR_INIT;    \
        assert_int_equal((call), PAWL_ARGUMENT);     \
        assert_int_equal(err.status, PAWL_ARGUMENT); \
        assert_string_equal(err.message, (text));    \
    } while (0)

/* ---- tensors ---- */

static void
tensors_are_kept_and_found(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    float data[64] = { 0 };
    char name[32];
    for (unsigned i = 0; i < 2000; i++) {
        /* Name, shape and strides are copied: the same place is used for all. */
        uint64_t shape[] = { 2, 1 + i % 7 };
        int64_t strides[] = { 1 + (int64_t)i % 7, 1 };
        (void)snprintf(name, sizeof name, "t%u", i);
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = i % 2 == 0 ? PAWL_MODEL : PAWL_OPTIMIZER,
                                      .dtype = PAWL_F32,
                                      .name = pawl_str_z(name),
                                      .rank = 2,
                                      .shape = shape,
                                      .strides = strides,
                                      .data = data };
        assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_OK);
    }
    (void)memset(name, 'x', sizeof name);
    for (unsigned i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        const struct pawl_tensor *found =
            pawl_state_find_tensor(state, i % 2 == 0 ? PAWL_MODEL : PAWL_OPTIMIZER, pawl_str_z(name));
        assert_non_null(found);
        assert_int_equal(found->shape[1], 1 + i % 7);
        assert_int_equal(found->strides[0], 1 + i % 7);
        assert_null(pawl_state_find_tensor(state, i % 2 == 0 ? PAWL_OPTIMIZER : PAWL_MODEL, pawl_str_z(name)));
    }
    /* Names are bytes with a length. */
    struct pawl_tensor odd = {
        .size = sizeof odd, .slot = PAWL_MODEL, .dtype = PAWL_F32, .name = PAWL_STR("a\0b"), .data = data
    };
    assert_int_equal(pawl_state_tensor(state, &odd, &err), PAWL_OK);
    odd.name = PAWL_STR("a\0c");
    assert_int_equal(pawl_state_tensor(state, &odd, &err), PAWL_OK);
    odd.name = PAWL_STR("");
    assert_int_equal(pawl_state_tensor(state, &odd, &err), PAWL_OK);
    assert_non_null(pawl_state_find_tensor(state, PAWL_MODEL, PAWL_STR("a\0c")));
    assert_null(pawl_state_find_tensor(state, PAWL_MODEL, PAWL_STR("a")));
    pawl_state_free(state);
    pawl_state_free(NULL);
}

static enum pawl_status
read_nothing(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *why)
{
    (void)context;
    (void)offset;
    (void)destination;
    (void)n;
    (void)why;
    return PAWL_OK;
}

static void
tensors_are_refused(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    float data[4] = { 0 };
    const uint64_t shape[] = { 4 };
    const uint64_t huge[] = { UINT64_MAX, 2 };
    const uint64_t three[] = { 3 };
    const int64_t strides[] = { 1 };
    const struct pawl_source source = { 16, read_nothing, NULL };
    const struct pawl_source short_source = { 12, read_nothing, NULL };
    const struct pawl_source no_read = { 16, NULL, NULL };
    const struct pawl_tensor good = { .size = sizeof good,
                                      .slot = PAWL_MODEL,
                                      .dtype = PAWL_F32,
                                      .name = PAWL_STR("w"),
                                      .rank = 1,
                                      .shape = shape,
                                      .data = data };
    struct pawl_tensor tensor = good;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_OK);
    assert_refused(pawl_state_tensor(state, &tensor, &err), "tensor 'w' is described twice");
    assert_string_equal(err.tensor, "w");
    assert_refused(pawl_state_tensor(state, NULL, &err), "no tensor was given");
    assert_refused(pawl_state_tensor(NULL, &tensor, &err), "no state was given");
    tensor.slot = PAWL_TRAINER;
    assert_refused(pawl_state_tensor(state, &tensor, &err),
                   "slot 3 holds no tensors; PAWL_MODEL and PAWL_OPTIMIZER do");
    tensor = good;
    tensor.name = PAWL_STR("__metadata__");
    assert_refused(pawl_state_tensor(state, &tensor, &err), "a tensor can't be named '__metadata__'");
    tensor.name = PAWL_STR("a\xff");
    assert_refused(pawl_state_tensor(state, &tensor, &err), "the tensor's name 'a\\xff' is not UTF-8: byte 1");
    tensor.name = PAWL_STR("v");
    tensor.size = 8;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_ARGUMENT);
    tensor.size = sizeof tensor;

    /* What pawl_tensor_check refuses is its business; that it is asked, and names the tensor, is ours. */
    tensor.dtype = (enum pawl_dtype)99;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_ARGUMENT);
    tensor.dtype = PAWL_F32;
    tensor.data = NULL;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_ARGUMENT);
    tensor.source = &short_source;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_ARGUMENT);
    tensor.source = &no_read;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_ARGUMENT);
    tensor.source = &source;
    tensor.strides = strides;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_ARGUMENT);
    tensor.strides = NULL;
    tensor.data = data;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_ARGUMENT);
    tensor.source = NULL;
    tensor.shape = huge;
    tensor.rank = 2;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "overflow");
    tensor.shape = three;
    tensor.rank = 1;
    tensor.dtype = PAWL_F4;
    assert_int_equal(pawl_state_tensor(state, &tensor, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "bits");
    assert_string_equal(err.tensor, "v");

    assert_int_equal(state->n_tensors, 1);
    assert_null(pawl_state_find_tensor(state, PAWL_MODEL, PAWL_STR("v")));
    pawl_state_free(state);
}

static void
sharing_is_address_dtype_shape_strides(void **unused)
{
    (void)unused;
    float data[8] = { 0 };
    const uint64_t shape[] = { 2, 3 };
    const uint64_t other_shape[] = { 3, 2 };
    const int64_t packed[] = { 3, 1 };
    const int64_t turned[] = { 1, 2 };
    const struct pawl_source source = { 24, read_nothing, NULL };
    const struct pawl_tensor a = {
        .size = sizeof a, .slot = PAWL_MODEL, .dtype = PAWL_F32, .rank = 2, .shape = shape, .data = data
    };
    struct pawl_tensor b = a;
    assert_true(pawl_tensor_shares(&a, &b));
    b.strides = packed; /* said with strides it is the same */
    assert_true(pawl_tensor_shares(&a, &b));
    b.strides = turned;
    assert_false(pawl_tensor_shares(&a, &b));
    b = a;
    b.stored = PAWL_F32; /* as it is anyway */
    assert_true(pawl_tensor_shares(&a, &b));
    b.stored = PAWL_BF16;
    assert_false(pawl_tensor_shares(&a, &b));
    struct pawl_tensor words = a; /* the file would hold the same dtype of both, and other values */
    words.dtype = PAWL_BF16;
    assert_false(pawl_tensor_shares(&b, &words));
    const uint64_t row[] = { 1, 3 };
    const int64_t far[] = { 100, 1 };
    struct pawl_tensor one = a, other;
    one.shape = row;
    other = one;
    other.strides = far; /* of a dimension of one element: it means nothing */
    assert_true(pawl_tensor_shares(&one, &other));
    b = a;
    b.shape = other_shape;
    assert_false(pawl_tensor_shares(&a, &b));
    b = a;
    b.dtype = PAWL_U32;
    assert_false(pawl_tensor_shares(&a, &b));
    b = a;
    b.data = data + 1;
    assert_false(pawl_tensor_shares(&a, &b));
    b = a;
    b.is_big_endian = 1;
    assert_false(pawl_tensor_shares(&a, &b));
    b = a;
    b.rank = 1;
    assert_false(pawl_tensor_shares(&a, &b));
    b = a;
    b.data = NULL;
    b.source = &source;
    struct pawl_tensor c = b;
    assert_false(pawl_tensor_shares(&b, &c));
    b.source = NULL;
    c.source = NULL;
    assert_false(pawl_tensor_shares(&b, &c));
}

/* ---- numbers ---- */

static void
numbers_are_refused(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    struct pawl_pcg32 rng = { 1, 3, 0, false };
    double real = 0;
    int64_t integer = 0;
    assert_refused(
        pawl_state_number(state, PAWL_TRAINER, "epoch", PAWL_I64, &integer, &err),
        "the trainer's state has no number 'epoch'; it has tokens_seen, data_cursor.shard, data_cursor.offset, "
        "lr and loss_scale, others belong in PAWL_EXTRA");
    assert_refused(pawl_state_number(state, PAWL_TRAINER, "tokens_seen", PAWL_F64, &real, &err),
                   "'tokens_seen' of the trainer's state is an integer (I64 or U64), not F64");
    assert_refused(pawl_state_number(state, PAWL_TRAINER, "lr", PAWL_I64, &integer, &err),
                   "'lr' of the trainer's state is a double (F64), not I64");
    assert_refused(pawl_state_number(state, PAWL_MODEL, "x", PAWL_F64, &real, &err),
                   "slot 1 holds no numbers; PAWL_TRAINER, PAWL_OPTIMIZER and PAWL_EXTRA do");
    assert_refused(pawl_state_number(state, PAWL_EXTRA, "", PAWL_F64, &real, &err), "a number has no name");
    assert_refused(pawl_state_number(state, PAWL_EXTRA, NULL, PAWL_F64, &real, &err), "a number has no name");
    assert_refused(pawl_state_number(state, PAWL_EXTRA, "x", PAWL_F32, &real, &err),
                   "number 'x' is F32; numbers are F64, I64 or U64");
    assert_refused(pawl_state_number(state, PAWL_EXTRA, "x", (enum pawl_dtype)77, &real, &err),
                   "number 'x' is of no dtype; numbers are F64, I64 or U64");
    assert_refused(pawl_state_number(state, PAWL_EXTRA, "x", PAWL_F64, NULL, &err), "number 'x' lies nowhere");
    assert_int_equal(pawl_state_number(state, PAWL_EXTRA, "x", PAWL_F64, &real, &err), PAWL_OK);
    assert_refused(pawl_state_number(state, PAWL_EXTRA, "x", PAWL_I64, &integer, &err),
                   "number 'x' is described twice");
    assert_int_equal(pawl_state_number(state, PAWL_OPTIMIZER, "x", PAWL_F64, &real, &err), PAWL_OK);
    assert_refused(pawl_state_numbers(state, PAWL_EXTRA, "y", PAWL_F64, &real, 1, &err),
                   "slot 4 holds no rows of numbers; only PAWL_OPTIMIZER does");
    assert_int_equal(pawl_state_numbers(state, PAWL_OPTIMIZER, "none", PAWL_F64, NULL, 0, &err), PAWL_OK);

    /* The place of a pending normal is the generator's. */
    assert_int_equal(pawl_state_rng(state, "drop", &rng, &err), PAWL_OK);
    assert_refused(pawl_state_number(state, PAWL_EXTRA, "drop_spare", PAWL_F64, &real, &err),
                   "number 'drop_spare': the name is that of a generator's pending normal");
    assert_int_equal(pawl_state_number(state, PAWL_EXTRA, "late_spare", PAWL_F64, &real, &err), PAWL_OK);
    assert_refused(pawl_state_rng(state, "late", &rng, &err),
                   "generator 'late': the place of its pending normal is taken by number 'late_spare'");
    assert_refused(pawl_state_rng(state, "drop", &rng, &err), "generator 'drop' is described twice");
    assert_refused(pawl_state_rng(state, "pcg", &rng, &err),
                   "'pcg' is the run's own generator: describe it without a name (NULL)");
    assert_refused(pawl_state_rng(state, "", &rng, &err), "a generator has no name");
    assert_refused(pawl_state_rng(state, NULL, NULL, &err), "no generator was given");
    assert_int_equal(pawl_state_rng(state, NULL, &rng, &err), PAWL_OK);
    assert_refused(pawl_state_rng(state, NULL, &rng, &err), "generator 'pcg' is described twice");
    pawl_state_free(state);
}

/* ---- texts, metadata, opaque states, files, the optimizer ---- */

static void
texts_and_metadata(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    const char hex[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    assert_refused(pawl_state_text(state, "x", PAWL_STR("y"), &err),
                   "the trainer's state has no text 'x'; it has config_sha256 and git_sha");
    assert_refused(pawl_state_text(state, "git_sha", PAWL_STR("0123"), &err),
                   "git_sha '0123' is neither 40 lowercase hex digits nor 'unknown'");
    assert_refused(pawl_state_text(state, "config_sha256", PAWL_STR("AB"), &err),
                   "config_sha256 'AB' is not 64 lowercase hex digits");
    assert_int_equal(pawl_state_text(state, "git_sha", pawl_str_make(hex, 40), &err), PAWL_OK);
    assert_int_equal(pawl_state_text(state, "git_sha", PAWL_STR("unknown"), &err), PAWL_OK);
    assert_int_equal(pawl_state_text(state, "config_sha256", pawl_str_make(hex, 64), &err), PAWL_OK);
    assert_true(pawl_str_equal(state->git_sha, PAWL_STR("unknown")));

    assert_refused(pawl_state_metadata(state, PAWL_STR("pawl.alias.x"), PAWL_STR("y"), &err),
                   "metadata key 'pawl.alias.x': keys that begin with 'pawl.' are Pawl's own");
    assert_refused(pawl_state_metadata(state, PAWL_STR("k"), PAWL_STR("\xc3"), &err),
                   "the metadata value '\\xc3' is not UTF-8: byte 0");
    assert_int_equal(pawl_state_metadata(state, PAWL_STR("k"), PAWL_STR("1"), &err), PAWL_OK);
    assert_int_equal(pawl_state_metadata(state, PAWL_STR("l"), PAWL_STR("2"), &err), PAWL_OK);
    assert_int_equal(pawl_state_metadata(state, PAWL_STR("k"), PAWL_STR("3"), &err), PAWL_OK);
    assert_int_equal(state->n_metadata, 2);
    assert_true(pawl_str_equal(state->metadata[0].value, PAWL_STR("3")));

    char byte = 'b';
    assert_refused(pawl_state_opaque(state, "", "t", &byte, 1, &err), "an opaque state has no name");
    assert_refused(pawl_state_opaque(state, "n", "", &byte, 1, &err), "opaque state 'n' has no type");
    assert_refused(pawl_state_opaque(state, "n", "t", NULL, 1, &err), "opaque state 'n': 1 bytes without data");
    assert_int_equal(pawl_state_opaque(state, "n", "t", NULL, 0, &err), PAWL_OK);
    assert_refused(pawl_state_opaque(state, "n", "t", &byte, 1, &err), "opaque state 'n' is described twice");
    pawl_state_free(state);
}

static void
files_are_copied_replaced_taken_away(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    char text[] = "abc";
    assert_int_equal(pawl_state_file(state, PAWL_STR("note"), text, 3, &err), PAWL_OK);
    text[0] = 'x';
    assert_memory_equal(state->files[0].data.data, "abc", 3);
    assert_int_equal(pawl_state_file(state, PAWL_STR("config.json"), "", 0, &err), PAWL_OK);
    assert_int_equal(pawl_state_file(state, PAWL_STR("third"), text, 3, &err), PAWL_OK);
    assert_int_equal(pawl_state_file(state, PAWL_STR("note"), text, 1, &err), PAWL_OK);
    assert_int_equal(state->n_files, 3);
    assert_int_equal(state->files[0].data.len, 1);
    assert_int_equal(pawl_state_file(state, PAWL_STR("config.json"), NULL, 0, &err), PAWL_OK);
    assert_int_equal(pawl_state_file(state, PAWL_STR("not there"), NULL, 0, &err), PAWL_OK);
    assert_int_equal(state->n_files, 2);
    assert_true(pawl_str_equal(state->files[1].name, PAWL_STR("third")));
    const char *const refused[] = { "model.safetensors",
                                    "optimizer.safetensors",
                                    "trainer_state.json",
                                    "MANIFEST.json",
                                    "model.safetensors.index.json",
                                    "model-00001-of-00002.safetensors",
                                    "optimizer-00009-of-00009.safetensors",
                                    "pawl.",
                                    "pawl.state.json",
                                    "",
                                    ".",
                                    "..",
                                    "a/b",
                                    "/a",
                                    "a\\b",
                                    "\xff" };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(pawl_state_file(state, pawl_str_z(refused[i]), text, 3, &err), PAWL_ARGUMENT);
        assert_true(err.message[0] != '\0');
    }
    assert_int_equal(pawl_state_file(state, PAWL_STR("nul\0"), text, 3, &err), PAWL_ARGUMENT);
    assert_int_equal(state->n_files, 2);
    pawl_state_free(state);
}

static void
assert_optimizer_state(const struct pawl_state *state, const char *expected, double lr)
{
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    double found = -1;
    err = (struct pawl_error)PAWL_ERROR_INIT;
    if (pawl_values_optimizer(state, &out, &found, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    assert_true(pawl_buffer_terminate(&out));
    assert_string_equal(out.data, expected);
    assert_true(found == lr);
    pawl_buffer_release(&out);
}

static void
optimizer_state_is_merged_and_sorted(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    double lr = 0.001, betas[2] = { 0.9, 1.0 };
    int64_t step = 7;
    uint64_t large = UINT64_MAX;
    assert_optimizer_state(state, "{}", 0);
    assert_refused(pawl_state_optimizer(state, "AdamW", &err), "the optimizer's name 'AdamW' is not in lower case");
    assert_refused(pawl_state_optimizer(state, "", &err), "the optimizer has no name");
    assert_int_equal(pawl_state_number(state, PAWL_OPTIMIZER, "step", PAWL_I64, &step, &err), PAWL_OK);
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    assert_refused(pawl_values_optimizer(state, &out, &lr, &err),
                   "'step' of the optimizer's state is described, and no optimizer: name it with pawl_state_optimizer");
    pawl_buffer_release(&out);
    assert_int_equal(pawl_state_optimizer(state, "adam8bit", &err), PAWL_OK);
    assert_int_equal(pawl_state_number(state, PAWL_OPTIMIZER, "lr", PAWL_F64, &lr, &err), PAWL_OK);
    assert_int_equal(pawl_state_numbers(state, PAWL_OPTIMIZER, "betas", PAWL_F64, betas, 2, &err), PAWL_OK);
    assert_int_equal(pawl_state_numbers(state, PAWL_OPTIMIZER, "none", PAWL_I64, NULL, 0, &err), PAWL_OK);
    assert_int_equal(pawl_state_number(state, PAWL_OPTIMIZER, "large", PAWL_U64, &large, &err), PAWL_OK);
    assert_int_equal(
        pawl_state_optimizer_json(state,
                                  PAWL_STR(" { \"z\" : {\"b\":1, \"a\": [ 1.0 , null]}, \"\xc3\xa9\": \"\\u00e9\", "
                                           "\"Z\": true } "),
                                  &err),
        PAWL_OK);
    assert_optimizer_state(state,
                           "{\"Z\":true,\"betas\":[0.9,1.0],\"large\":18446744073709551615,\"lr\":0.001,\"none\":[],"
                           "\"step\":7,\"z\":{\"a\":[1.0,null],\"b\":1},\"\xc3\xa9\":\"\xc3\xa9\"}",
                           0.001);
    /* Values are read at the save, not when they are described. */
    lr = 1e-5;
    step = -1;
    assert_int_equal(pawl_state_optimizer_json(state, PAWL_NO_STR, &err), PAWL_OK);
    assert_optimizer_state(
        state, "{\"betas\":[0.9,1.0],\"large\":18446744073709551615,\"lr\":1e-05,\"none\":[],\"step\":-1}", 1e-5);
    assert_refused(pawl_state_optimizer_json(state, PAWL_STR("[]"), &err), "the optimizer's state is no JSON object");
    assert_int_equal(pawl_state_optimizer_json(state, PAWL_STR("{\"a\":NaN}"), &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_state_optimizer_json(state, PAWL_STR("{\"a\":1,\"a\":2}"), &err), PAWL_ARGUMENT);
    assert_int_equal(pawl_state_optimizer_json(state, PAWL_STR("{\"a\":1"), &err), PAWL_ARGUMENT);
    betas[1] = (double)NAN;
    assert_refused(pawl_values_optimizer(state, &out, &lr, &err), "number 'betas' is NaN, expected a finite double");
    pawl_buffer_release(&out);
    pawl_state_free(state);
}

/* ---- what hangs on values ---- */

static void
extra_numbers_and_spares(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    struct pawl_pcg32 own = { 1, 3, -0.25, true }, drop = { 1, 3, 9, false };
    double best = (double)INFINITY;
    uint64_t large = (uint64_t)INT64_MAX;
    assert_int_equal(pawl_values_extra(state, &out, &err), PAWL_OK);
    assert_int_equal(out.len, 0); /* no file */
    assert_int_equal(pawl_state_rng(state, "drop", &drop, &err), PAWL_OK);
    assert_int_equal(pawl_values_extra(state, &out, &err), PAWL_OK);
    assert_int_equal(out.len, 0);
    assert_int_equal(pawl_state_rng(state, NULL, &own, &err), PAWL_OK);
    assert_int_equal(pawl_state_number(state, PAWL_EXTRA, "best", PAWL_F64, &best, &err), PAWL_OK);
    assert_int_equal(pawl_state_number(state, PAWL_EXTRA, "large", PAWL_U64, &large, &err), PAWL_OK);
    assert_int_equal(pawl_values_extra(state, &out, &err), PAWL_OK);
    assert_true(pawl_buffer_terminate(&out));
    assert_string_equal(out.data,
                        "{\n  \"numbers\": {\n    \"best\": \"Infinity\",\n    \"large\": 9223372036854775807,\n"
                        "    \"pcg_spare\": -0.25\n  },\n  \"states\": {}\n}\n");
    pawl_buffer_clear(&out);
    large++;
    assert_refused(pawl_values_extra(state, &out, &err),
                   "number 'large' is 9223372036854775808, the largest integer is 2^63-1");
    pawl_buffer_release(&out);
    pawl_state_free(state);
}

static void
trainer_numbers_are_checked(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    uint64_t shard = 3, tokens = (uint64_t)INT64_MAX + 1;
    int64_t offset = -1;
    double scale = 0.0;
    assert_int_equal(pawl_state_number(state, PAWL_TRAINER, "data_cursor.shard", PAWL_U64, &shard, &err), PAWL_OK);
    assert_refused(pawl_values_trainer(state, 1, 0.0, &out, &err),
                   "data_cursor.shard is described and data_cursor.offset is not");
    assert_int_equal(pawl_state_number(state, PAWL_TRAINER, "data_cursor.offset", PAWL_I64, &offset, &err), PAWL_OK);
    assert_refused(pawl_values_trainer(state, 1, 0.0, &out, &err),
                   "number 'data_cursor.offset' is -1, expected 0 or more");
    offset = 1;
    assert_refused(pawl_values_trainer(state, 1, -1.0, &out, &err),
                   "number 'lr' is -1.0, expected a finite double of 0 or more");
    assert_int_equal(pawl_state_number(state, PAWL_TRAINER, "loss_scale", PAWL_F64, &scale, &err), PAWL_OK);
    assert_refused(pawl_values_trainer(state, 1, 0.0, &out, &err),
                   "number 'loss_scale' is 0.0, expected a finite double above 0");
    scale = 2;
    assert_int_equal(pawl_state_number(state, PAWL_TRAINER, "tokens_seen", PAWL_U64, &tokens, &err), PAWL_OK);
    assert_refused(pawl_values_trainer(state, 1, 0.0, &out, &err),
                   "number 'tokens_seen' is 9223372036854775808, the largest integer is 2^63-1");
    assert_int_equal(out.len, 0);
    pawl_buffer_release(&out);
    pawl_state_free(state);
}

/* ---- the stream ---- */

static void
stream_brings_cursor_and_generator(void **unused)
{
    (void)unused;
    char shard[64] = { 0 };
    struct pawl_state *state = new_state();
    struct pawl_state *other = new_state();
    struct pawl_stream *stream = (struct pawl_stream *)(void *)shard; /* described, never looked at */
    struct pawl_pcg32 rng = { 1, 3, 0, false };
    int64_t shard_number = 0;
    double spare = 0;
    assert_refused(pawl_state_stream(state, NULL, &err), "no stream was given");
    assert_int_equal(pawl_state_stream(state, stream, &err), PAWL_OK);
    assert_refused(pawl_state_stream(state, stream, &err), "a stream is described already");
    assert_refused(pawl_state_rng(state, NULL, &rng, &err),
                   "the run's own generator is the stream's, which is described already");
    assert_refused(pawl_state_number(state, PAWL_TRAINER, "data_cursor.shard", PAWL_I64, &shard_number, &err),
                   "'data_cursor.shard' is the stream's, which is described already");
    assert_refused(pawl_state_number(state, PAWL_EXTRA, "pcg_spare", PAWL_F64, &spare, &err),
                   "number 'pcg_spare': the name is that of a generator's pending normal");
    assert_int_equal(pawl_state_rng(other, NULL, &rng, &err), PAWL_OK);
    assert_refused(pawl_state_stream(other, stream, &err),
                   "the run's own generator is described already, and a stream brings its own");
    pawl_state_free(other);
    other = new_state();
    assert_int_equal(pawl_state_number(other, PAWL_TRAINER, "data_cursor.shard", PAWL_I64, &shard_number, &err),
                     PAWL_OK);
    assert_refused(pawl_state_stream(other, stream, &err),
                   "'data_cursor.shard' is described already, and a stream brings its own");
    pawl_state_free(other);
    pawl_state_free(state);
}

/* ---- threads ---- */

struct describer {
    struct pawl_state *state;
    unsigned number;
};

static void *
describe_many(void *context)
{
    struct describer *describer = context;
    static double value;
    for (unsigned i = 0; i < 200; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n%u.%u", describer->number, i);
        if (pawl_state_number(describer->state, PAWL_EXTRA, name, PAWL_F64, &value, NULL) != PAWL_OK)
            return describer;
    }
    return NULL;
}

/* Goal: a state locks itself. Method: four threads describe; all is there (and the thread sanitizer is content). */
static void
threads_describe_at_once(void **unused)
{
    (void)unused;
    struct pawl_state *state = new_state();
    pthread_t threads[4];
    struct describer describers[4];
    for (unsigned i = 0; i < 4; i++) {
        describers[i] = (struct describer){ state, i };
        assert_int_equal(pthread_create(&threads[i], NULL, describe_many, &describers[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(state->n_numbers, 800);
    pawl_state_free(state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_kept_and_found),
        cmocka_unit_test(tensors_are_refused),
        cmocka_unit_test(sharing_is_address_dtype_shape_strides),
        cmocka_unit_test(numbers_are_refused),
        cmocka_unit_test(texts_and_metadata),
        cmocka_unit_test(files_are_copied_replaced_taken_away),
        cmocka_unit_test(optimizer_state_is_merged_and_sorted),
        cmocka_unit_test(extra_numbers_and_spares),
        cmocka_unit_test(trainer_numbers_are_checked),
        cmocka_unit_test(stream_brings_cursor_and_generator),
        cmocka_unit_test(threads_describe_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
