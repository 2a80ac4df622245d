/*
 * What a state keeps from one save to the next: the order of its tensors and who shares storage. A save must not show whether it was there.
 */
#include "unit/save_support.h"

#include "checkpoint/parts.h"
#include "model/shared_storage.h"

#define WORDS 64

/* A description, told to as many states as are asked for, up to one of its steps. */
struct tale {
    float words[WORDS];
    double lr, best;
    struct pawl_pcg32 rng;
};

typedef void tell_fn(struct tale *tale, struct pawl_state *state);

static void
add_as(struct pawl_state *state, enum pawl_slot slot, const char *name, enum pawl_dtype dtype, void *data,
       uint64_t rows, uint64_t columns)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_state_tensor(state, &PAWL_TENSOR(slot, name, dtype, data, rows, columns), &err) != PAWL_OK)
        fail_msg("%s", err.message);
}

static void
add(struct pawl_state *state, enum pawl_slot slot, const char *name, void *data)
{
    add_as(state, slot, name, PAWL_F32, data, 1, 2);
}

static void
tell_first(struct tale *tale, struct pawl_state *state)
{
    add(state, PAWL_MODEL, "layers.9", &tale->words[2]);
    add(state, PAWL_MODEL, "layers.10", &tale->words[0]);
    add_as(state, PAWL_MODEL, "layers.10.scale", PAWL_BF16, &tale->words[4], 1, 2);
    add(state, PAWL_OPTIMIZER, "layers.9", &tale->words[6]);
    add(state, PAWL_OPTIMIZER, "layers.10", &tale->words[8]);
    assert_int_equal(pawl_state_optimizer(state, "sgd", NULL), PAWL_OK);
    assert_int_equal(pawl_state_number(state, PAWL_OPTIMIZER, "lr", PAWL_F64, &tale->lr, NULL), PAWL_OK);
}

static void
tell_nothing(struct tale *tale, struct pawl_state *state)
{
    (void)tale;
    (void)state;
}

static void
tell_a_tensor_in_front(struct tale *tale, struct pawl_state *state)
{
    add(state, PAWL_MODEL, "a", &tale->words[10]);
}

static void
tell_an_optimizer_tensor(struct tale *tale, struct pawl_state *state)
{
    add(state, PAWL_OPTIMIZER, "layers.1", &tale->words[12]);
}

static void
tell_a_wider_tensor(struct tale *tale, struct pawl_state *state)
{
    add_as(state, PAWL_MODEL, "z", PAWL_F64, &tale->words[14], 1, 1);
}

/* "layers.9" is the target of one that is described later, */
static void
tell_an_alias(struct tale *tale, struct pawl_state *state)
{
    add(state, PAWL_MODEL, "tied", &tale->words[2]);
}

/* and then neither is: both are aliases of a lesser name. */
static void
tell_a_lesser_alias(struct tale *tale, struct pawl_state *state)
{
    add(state, PAWL_MODEL, "first", &tale->words[2]);
}

/* The same address, and no alias: a view of another form; a source beside memory; nothing at all. */
static void
tell_views(struct tale *tale, struct pawl_state *state)
{
    static const uint64_t shape[] = { 2, 1 };
    static const int64_t strides[] = { 1, 1 };
    add_as(state, PAWL_MODEL, "view", PAWL_F32, &tale->words[2], 2, 1);
    add_as(state, PAWL_MODEL, "view.u8", PAWL_U8, &tale->words[2], 1, 2);
    struct pawl_tensor strided = PAWL_TENSOR(PAWL_MODEL, "view.strided", PAWL_F32, &tale->words[2], 2, 1);
    strided.shape = shape;
    strided.strides = strides; /* row-major all the same: an alias of "view" */
    assert_int_equal(pawl_state_tensor(state, &strided, NULL), PAWL_OK);
    add_as(state, PAWL_MODEL, "none.a", PAWL_F32, NULL, 0, 1);
    add_as(state, PAWL_MODEL, "none.b", PAWL_F32, NULL, 0, 1);
}

static void
tell_metadata(struct tale *tale, struct pawl_state *state)
{
    (void)tale;
    assert_int_equal(pawl_state_metadata(state, PAWL_STR("who"), PAWL_STR("a"), NULL), PAWL_OK);
}

static void
tell_other_metadata(struct tale *tale, struct pawl_state *state)
{
    (void)tale;
    assert_int_equal(pawl_state_metadata(state, PAWL_STR("who"), PAWL_STR("a longer one"), NULL), PAWL_OK);
}

static void
tell_optimizer(struct tale *tale, struct pawl_state *state)
{
    (void)tale;
    assert_int_equal(pawl_state_optimizer(state, "lion", NULL), PAWL_OK);
}

static void
tell_optimizer_json(struct tale *tale, struct pawl_state *state)
{
    (void)tale;
    assert_int_equal(pawl_state_optimizer_json(state, PAWL_STR("{\"groups\": [1, 2]}"), NULL), PAWL_OK);
}

static void
tell_config(struct tale *tale, struct pawl_state *state)
{
    char digits[65];
    (void)tale;
    memset(digits, 'c', 64);
    digits[64] = '\0';
    assert_int_equal(pawl_state_text(state, "config_sha256", pawl_str_z(digits), NULL), PAWL_OK);
}

static void
tell_others(struct tale *tale, struct pawl_state *state)
{
    assert_int_equal(pawl_state_number(state, PAWL_EXTRA, "best", PAWL_F64, &tale->best, NULL), PAWL_OK);
    assert_int_equal(pawl_state_rng(state, NULL, &tale->rng, NULL), PAWL_OK);
    assert_int_equal(pawl_state_file(state, PAWL_STR("config.json"), "{}", 2, NULL), PAWL_OK);
}

static void
tell_another_one(struct tale *tale, struct pawl_state *state)
{
    add(state, PAWL_OPTIMIZER, "layers.11", &tale->words[20]);
}

static tell_fn *const TALES[] = { tell_first,
                                  tell_nothing,
                                  tell_a_tensor_in_front,
                                  tell_an_optimizer_tensor,
                                  tell_metadata,
                                  tell_a_wider_tensor,
                                  tell_an_alias,
                                  tell_optimizer,
                                  tell_nothing,
                                  tell_a_lesser_alias,
                                  tell_other_metadata,
                                  tell_views,
                                  tell_config,
                                  tell_optimizer_json,
                                  tell_others,
                                  tell_another_one };
enum { TALES_N = sizeof TALES / sizeof *TALES };

static struct pawl_parts
plan(struct pawl_state *state, int64_t step, uint64_t max_file_bytes)
{
    struct pawl_parts parts;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_parts_options options = { .step = step, .max_file_bytes = max_file_bytes };
    if (pawl_parts_plan(&parts, state, &options, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return parts;
}

/* The same files of the same bytes, headers whole, data from the same memory in the same order. */
static void
assert_same_parts(const struct pawl_parts *a, const struct pawl_parts *b, size_t tale)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct pawl_part *x = &a->parts[i], *y = &b->parts[i];
        assert_string_equal(x->name, y->name);
        if (x->bytes != y->bytes)
            fail_msg("after step %zu of the tale %s has %" PRIu64 " bytes, not %" PRIu64, tale, x->name, x->bytes,
                     y->bytes);
        if (x->text != NULL) {
            assert_memory_equal(x->text, y->text, (size_t)x->bytes);
            continue;
        }
        assert_int_equal(x->file->plan.prefix.len, y->file->plan.prefix.len);
        assert_memory_equal(x->file->plan.prefix.data, y->file->plan.prefix.data, x->file->plan.prefix.len);
        assert_int_equal(x->file->n, y->file->n);
        for (size_t k = 0; k < x->file->n; k++) {
            const struct pawl_tensor *one = x->tensors[x->file->items[x->file->plan.order[k]]];
            const struct pawl_tensor *other = y->tensors[y->file->items[y->file->plan.order[k]]];
            assert_true(pawl_str_equal(one->name, other->name));
            assert_ptr_equal(one->data, other->data);
        }
    }
}

/*
 * Goal: a state that was saved before is saved as one that never was, after every kind of change: a tensor of either slot before, between and
 * behind those that were there, an alias made, one whose target changes, views that are none, numbers, step, metadata, names and texts. Method:
 * a tale told to one state that is planned after each of its steps, and up to that step to a new one; in one file each, and in many.
 */
static void
kept_order_is_not_seen(void **unused)
{
    (void)unused;
    struct tale tale = { .lr = 0.5 };
    struct pawl_state *old = NULL;
    pawl_pcg32_seed(&tale.rng, 1, 2);
    assert_int_equal(pawl_state_new(&old, NULL), PAWL_OK);
    for (size_t told = 0; told < TALES_N; told++) {
        struct pawl_state *fresh = NULL;
        TALES[told](&tale, old);
        tale.lr /= 3;
        assert_int_equal(pawl_state_new(&fresh, NULL), PAWL_OK);
        for (size_t i = 0; i <= told; i++)
            TALES[i](&tale, fresh);
        for (uint64_t max = 0; max <= 16; max += 16) {
            struct pawl_parts one = plan(old, (int64_t)told * 7, max), other = plan(fresh, (int64_t)told * 7, max);
            assert_same_parts(&one, &other, told);
            pawl_parts_release(&one);
            pawl_parts_release(&other);
        }
        pawl_state_free(fresh);
    }
    pawl_state_free(old);
}

static struct pawl_str
header_of(const struct pawl_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->n; i++)
        if (strcmp(parts->parts[i].name, name) == 0)
            return pawl_str_make(parts->parts[i].file->plan.prefix.data + 8, parts->parts[i].file->plan.prefix.len - 8);
    fail_msg("no part is named %s", name);
    return PAWL_STR("");
}

/* Goal: the order itself, and whose alias is whose, to the byte. */
static void
headers_are_these(void **unused)
{
    (void)unused;
    struct tale tale = { .lr = 0.5 };
    struct pawl_state *state = NULL;
    assert_int_equal(pawl_state_new(&state, NULL), PAWL_OK);
    tell_first(&tale, state);
    tell_an_alias(&tale, state);
    struct pawl_parts parts = plan(state, 1, 0);
    struct pawl_str header = header_of(&parts, "model.safetensors");
    const char *before = "{\"__metadata__\":{\"format\":\"pt\",\"pawl.alias.tied\":\"layers.9\"},"
                         "\"layers.10\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                         "\"layers.9\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]},"
                         "\"layers.10.scale\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[16,20]}}";
    assert_true(header.len >= strlen(before));
    assert_memory_equal(header.data, before, strlen(before));
    header = header_of(&parts, "optimizer.safetensors");
    const char *optimizer =
        "{\"__metadata__\":{\"format\":\"pt\",\"optimizer\":\"sgd\",\"state\":\"{\\\"lr\\\":0.5}\",\"step\":\"1\"},"
        "\"layers.10\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"layers.9\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]}}";
    assert_true(header.len >= strlen(optimizer));
    assert_memory_equal(header.data, optimizer, strlen(optimizer));
    pawl_parts_release(&parts);
    tell_a_lesser_alias(&tale, state);
    tell_views(&tale, state);
    parts = plan(state, 1, 0);
    header = header_of(&parts, "model.safetensors");
    const char *after =
        "{\"__metadata__\":{\"format\":\"pt\",\"pawl.alias.layers.9\":\"first\",\"pawl.alias.tied\":\"first\","
        "\"pawl.alias.view.strided\":\"view\"},"
        "\"first\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"layers.10\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]},"
        "\"none.a\":{\"dtype\":\"F32\",\"shape\":[0,1],\"data_offsets\":[16,16]},"
        "\"none.b\":{\"dtype\":\"F32\",\"shape\":[0,1],\"data_offsets\":[16,16]},"
        "\"view\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[16,24]},"
        "\"layers.10.scale\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[24,28]},"
        "\"view.u8\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[28,30]}}";
    assert_true(header.len >= strlen(after));
    assert_memory_equal(header.data, after, strlen(after));
    pawl_parts_release(&parts);
    pawl_state_free(state);
}

/* Goal: tensors that are tied are found also where addresses never descend and names are in order: where nothing is to be sorted. */
static void
ties_in_order(void **unused)
{
    struct tale tale = { .lr = 0.5 };
    struct pawl_state *state = NULL;
    (void)unused;
    assert_int_equal(pawl_state_new(&state, NULL), PAWL_OK);
    add(state, PAWL_MODEL, "a", &tale.words[0]);
    add(state, PAWL_MODEL, "b", &tale.words[0]);
    add(state, PAWL_MODEL, "c", &tale.words[2]);
    struct pawl_parts parts = plan(state, 1, 0);
    struct pawl_str header = header_of(&parts, "model.safetensors");
    const char *tied = "{\"__metadata__\":{\"format\":\"pt\",\"pawl.alias.b\":\"a\"},\"a\":";
    assert_true(header.len >= strlen(tied));
    assert_memory_equal(header.data, tied, strlen(tied));
    pawl_parts_release(&parts);
    pawl_state_free(state);
}

/*
 * Goal: thousands of tensors, described in no order, many tied, come in the order of the file. Method: names and addresses from a generator; the
 * files planned by the planner that is told nothing, from the tensors that a quadratic search finds to be written.
 */
static void
thousands_in_no_order(void **unused)
{
    enum { N = 2000 };
    static char names[N][24];
    static float data[N];
    static struct pawl_st_item items[N];
    static struct pawl_pair pairs[N + 1];
    static const uint64_t shapes[2][2] = { { 1, 1 }, { 1, 2 } };
    static struct pawl_tensor tensors[N];
    struct pawl_state *state = NULL;
    struct pawl_split split;
    uint32_t random = 7;
    size_t n = 0, n_pairs = 0;
    (void)unused;
    assert_int_equal(pawl_state_new(&state, NULL), PAWL_OK);
    for (size_t i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        (void)snprintf(names[i], sizeof names[i], "l.%zu.%s", i * 1237 % N, i % 2 == 0 ? "weight" : "bias");
        tensors[i] = (struct pawl_tensor){ .size = sizeof tensors[i],
                                           .slot = PAWL_MODEL,
                                           .dtype = (random >> 9) % 3 == 0 ? PAWL_BF16 : PAWL_F32,
                                           .name = pawl_str_z(names[i]),
                                           .rank = 2,
                                           .shape = shapes[(random >> 13) % 2],
                                           .data = &data[(random >> 16) % (N / 2)] };
        assert_int_equal(pawl_state_tensor(state, &tensors[i], NULL), PAWL_OK);
    }
    pairs[n_pairs++] = (struct pawl_pair){ PAWL_STR("format"), PAWL_STR("pt") };
    for (size_t i = 0; i < N; i++) {
        const struct pawl_tensor *target = &tensors[i];
        for (size_t k = 0; k < N; k++)
            if (pawl_tensor_shares(&tensors[k], &tensors[i]) && pawl_str_compare(tensors[k].name, target->name) < 0)
                target = &tensors[k];
        if (target == &tensors[i]) {
            items[n++] = (struct pawl_st_item){ tensors[i].name, tensors[i].dtype, 2, tensors[i].shape };
            continue;
        }
        char *key = malloc(64);
        assert_non_null(key);
        (void)snprintf(key, 64, "pawl.alias.%.*s", (int)sizeof names[i], names[i]);
        pairs[n_pairs++] = (struct pawl_pair){ pawl_str_z(key), target->name };
    }
    assert_true(n_pairs > 100);
    assert_int_equal(pawl_split_plan(&split, PAWL_STR("model"), items, n, pairs, n_pairs, true, 0, 0, NULL), PAWL_OK);
    struct pawl_parts parts = plan(state, 1, 0);
    struct pawl_str header = header_of(&parts, "model.safetensors");
    assert_int_equal(header.len, split.files[0].plan.prefix.len - 8);
    assert_memory_equal(header.data, split.files[0].plan.prefix.data + 8, header.len);
    pawl_parts_release(&parts);
    pawl_split_release(&split);
    for (size_t i = 1; i < n_pairs; i++)
        free((char *)(uintptr_t)pairs[i].key.data);
    pawl_state_free(state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_order_is_not_seen),
        cmocka_unit_test(headers_are_these),
        cmocka_unit_test(ties_in_order),
        cmocka_unit_test(thousands_in_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
