/*
 * Golden checkpoints, the writing direction: the saves of inputs.json give the files of root/ byte for byte and no others, but for
 * what was done by hand afterwards; and every save of reject.json is refused with the root as it was.
 *
 * Left out, because this interface has no way to say it: keep = 0 (here it stands for "keep all"); an attachment named config.json (that is how the
 * config is given); an attachment described twice (the second replaces the first).
 */
#include "unit/save_support.h"

#include <math.h>

#include "checkpoint/pins.h"
#include "checkpoint/state.h"
#include "formats/json/json.h"
#include "unit/checkpoint_golden.h"
#include "unit/golden_json.h"

/* What a description needs to live until the save. */
struct memory {
    struct pawl_arena arena;
    const unsigned char *bin;
    size_t bin_bytes;
    struct pawl_state *state;
};

static void *
take(struct memory *memory, size_t bytes)
{
    void *place = pawl_arena_take(&memory->arena, bytes + 1);
    assert_non_null(place);
    return place;
}

static const char *
text_of(struct memory *memory, struct pawl_str str)
{
    struct pawl_str copy;
    assert_true(pawl_arena_copy_str(&memory->arena, str, &copy));
    return copy.data;
}

static uint64_t
number_of(const struct pawl_json_value *value)
{
    uint64_t number = 0;
    assert_non_null(value);
    assert_true(pawl_json_u64(value->text, &number));
    return number;
}

/* `bytes` of the inputs at `at`, in memory of its own: equal addresses mean shared storage. */
static void *
bytes_at(struct memory *memory, const struct pawl_json_value *at, size_t bytes)
{
    uint64_t begin = number_of(at);
    assert_true(begin <= memory->bin_bytes && bytes <= memory->bin_bytes - begin);
    void *copy = take(memory, bytes);
    memcpy(copy, memory->bin + begin, bytes);
    return copy;
}

static struct pawl_str
named(const struct pawl_json_value *value, const char *key)
{
    const struct pawl_json_value *member = pawl_json_member(value, pawl_str_z(key));
    return member == NULL ? PAWL_NO_STR : member->text;
}

/* ---- tensors ---- */

static enum pawl_status
describe_tensor(struct memory *memory, const struct pawl_json_value *value, enum pawl_slot slot, struct pawl_str name,
                struct pawl_error *err)
{
    const struct pawl_json_value *shape = pawl_json_member(value, PAWL_STR("shape"));
    const struct pawl_json_value *dtype = pawl_json_member(value, PAWL_STR("dtype"));
    const struct pawl_json_value *shares = pawl_json_member(value, PAWL_STR("shares"));
    uint64_t *dims = take(memory, shape->n * sizeof *dims);
    struct pawl_tensor tensor = { .size = sizeof tensor,
                                  .slot = slot,
                                  .dtype = dtype == NULL ? PAWL_F32 : pawl_dtype_by_name(dtype->text),
                                  .name = name,
                                  .rank = shape->n,
                                  .shape = dims };
    uint64_t elements, bytes;
    for (size_t i = 0; i < shape->n; i++)
        dims[i] = number_of(&shape->first[i]);
    assert_int_equal(pawl_dtype_bytes(tensor.dtype, dims, tensor.rank, &elements, &bytes, NULL), PAWL_OK);
    if (shares != NULL) {
        const struct pawl_tensor *other = pawl_state_find_tensor(memory->state, slot, shares->text);
        assert_non_null(other);
        tensor.data = other->data;
    } else {
        tensor.data = bytes_at(memory, pawl_json_member(value, PAWL_STR("at")), (size_t)bytes);
    }
    return pawl_state_tensor(memory->state, &tensor, err);
}

/* ---- the optimizer: members that are numbers by their functions, every other as JSON ---- */

static bool
describe_as_numbers(struct memory *memory, const struct pawl_json_value *member, enum pawl_status *ret_st,
                    struct pawl_error *err)
{
    bool is_list = member->type == PAWL_JSON_ARRAY;
    size_t n = is_list ? member->n : 1;
    const struct pawl_json_value *items = is_list ? member->first : member;
    bool is_integer = n != 0 && items[0].type == PAWL_JSON_NUMBER && pawl_json_is_integer(items[0].text);
    void *numbers = take(memory, n * 8);
    for (size_t i = 0; i < n; i++) {
        if (items[i].type != PAWL_JSON_NUMBER || pawl_json_is_integer(items[i].text) != is_integer)
            return false;
        double real = pawl_json_f64(items[i].text);
        int64_t integer = 0;
        if (is_integer && !pawl_json_i64(items[i].text, &integer))
            return false;
        memcpy((char *)numbers + 8 * i, is_integer ? (void *)&integer : (void *)&real, 8);
    }
    const char *key = text_of(memory, member->key);
    enum pawl_dtype dtype = is_integer ? PAWL_I64 : PAWL_F64;
    *ret_st = is_list ? pawl_state_numbers(memory->state, PAWL_OPTIMIZER, key, dtype, numbers, n, err)
                      : pawl_state_number(memory->state, PAWL_OPTIMIZER, key, dtype, numbers, err);
    return true;
}

static enum pawl_status
describe_optimizer(struct memory *memory, const struct pawl_json_value *optimizer, struct pawl_error *err)
{
    const struct pawl_json_value *state = pawl_json_member(optimizer, PAWL_STR("state"));
    const struct pawl_json_value *tensors = pawl_json_member(optimizer, PAWL_STR("tensors"));
    struct pawl_buffer rest = PAWL_BUFFER_INIT;
    struct pawl_json_writer writer;
    enum pawl_status st = pawl_state_optimizer(memory->state, text_of(memory, named(optimizer, "name")), err);

    pawl_json_write_begin(&writer, &rest, PAWL_JSON_INDENTED, PAWL_JSON_ASCII); /* how it is spelt must not matter */
    pawl_json_write_object(&writer);
    for (size_t i = 0; i < state->n && st == PAWL_OK; i++) {
        if (i % 2 == 0 && describe_as_numbers(memory, &state->first[i], &st, err))
            continue;
        pawl_json_write_key(&writer, state->first[i].key);
        pawl_json_write_value(&writer, &state->first[i], false);
    }
    pawl_json_write_object_end(&writer);
    if (st == PAWL_OK)
        st = pawl_state_optimizer_json(memory->state, pawl_buffer_str(&rest), err);
    pawl_buffer_release(&rest);
    for (size_t i = 0; i < tensors->n && st == PAWL_OK; i++) {
        struct pawl_str parameter = named(&tensors->first[i], "parameter");
        struct pawl_str key = named(&tensors->first[i], "key");
        char *name = take(memory, parameter.len + 1 + key.len);
        memcpy(name, parameter.data, parameter.len);
        name[parameter.len] = '.';
        memcpy(name + parameter.len + 1, key.data, key.len);
        st = describe_tensor(memory, &tensors->first[i], PAWL_OPTIMIZER,
                             pawl_str_make(name, parameter.len + 1 + key.len), err);
    }
    return st;
}

/* ---- numbers, generators, texts, files ---- */

static enum pawl_status
describe_number(struct memory *memory, enum pawl_slot slot, struct pawl_str name, const struct pawl_json_value *value,
                struct pawl_error *err)
{
    void *place = take(memory, 8);
    enum pawl_dtype dtype = PAWL_F64;
    bool is_double =
        slot == PAWL_TRAINER && (pawl_str_equal(name, PAWL_STR("lr")) || pawl_str_equal(name, PAWL_STR("loss_scale")));
    int64_t integer;
    uint64_t large;
    double real;
    if (value->type == PAWL_JSON_STRING) {
        real = pawl_json_f64(value->text);
        memcpy(place, &real, 8);
    } else if (!is_double && pawl_json_i64(value->text, &integer)) {
        dtype = PAWL_I64;
        memcpy(place, &integer, 8);
    } else if (!is_double && pawl_json_u64(value->text, &large)) {
        dtype = PAWL_U64;
        memcpy(place, &large, 8);
    } else {
        real = pawl_json_f64(value->text);
        memcpy(place, &real, 8);
    }
    return pawl_state_number(memory->state, slot, text_of(memory, name), dtype, place, err);
}

static enum pawl_status
describe_rngs(struct memory *memory, const struct pawl_json_value *rngs, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < rngs->n && st == PAWL_OK; i++) {
        struct pawl_str key = rngs->first[i].key;
        if (!pawl_str_ends(key, PAWL_STR("_state")))
            continue;
        struct pawl_str name = pawl_str_make(key.data, key.len - 6);
        char *inc = take(memory, key.len);
        memcpy(inc, key.data, key.len - 6);
        memcpy(inc + key.len - 6, "_inc", 5);
        struct pawl_pcg32 *rng = take(memory, sizeof *rng);
        st = pawl_pcg32_parse(rng, rngs->first[i].text, named(rngs, inc), err);
        if (st == PAWL_OK)
            st = pawl_state_rng(memory->state, pawl_str_equal(name, PAWL_STR("pcg")) ? NULL : text_of(memory, name),
                                rng, err);
    }
    return st;
}

static enum pawl_status
describe_trainer(struct memory *memory, const struct pawl_json_value *trainer, struct pawl_error *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < trainer->n && st == PAWL_OK; i++) {
        const struct pawl_json_value *value = &trainer->first[i];
        if (value->type == PAWL_JSON_STRING) {
            st = pawl_state_text(memory->state, text_of(memory, value->key), value->text, err);
        } else if (value->type == PAWL_JSON_OBJECT) {
            for (size_t k = 0; k < value->n && st == PAWL_OK; k++) {
                char name[128];
                (void)snprintf(name, sizeof name, "%.*s.%.*s", PAWL_ARG(value->key), PAWL_ARG(value->first[k].key));
                st = describe_number(memory, PAWL_TRAINER, pawl_str_z(name), &value->first[k], err);
            }
        } else {
            st = describe_number(memory, PAWL_TRAINER, value->key, value, err);
        }
    }
    return st;
}

static enum pawl_status
describe_file(struct memory *memory, struct pawl_str name, const struct pawl_json_value *value, struct pawl_error *err)
{
    size_t bytes = (size_t)number_of(pawl_json_member(value, PAWL_STR("bytes")));
    return pawl_state_file(memory->state, name, bytes_at(memory, pawl_json_member(value, PAWL_STR("at")), bytes), bytes,
                           err);
}

static enum pawl_status
describe(struct memory *memory, const struct pawl_json_value *save, struct pawl_error *err)
{
    static const char *const files[][2] = { { "config", "config.json" },
                                            { "tokenizer", "tokenizer.json" },
                                            { "generation_config", "generation_config.json" } };
    static const struct pawl_json_value nothing = { .type = PAWL_JSON_OBJECT };
#define PART(key) (pawl_json_member(save, PAWL_STR(key)) == NULL ? &nothing : pawl_json_member(save, PAWL_STR(key)))
    enum pawl_status st = PAWL_OK;
    const struct pawl_json_value *part = PART("model");
    for (size_t i = 0; i < part->n && st == PAWL_OK; i++)
        st = describe_tensor(memory, &part->first[i], PAWL_MODEL, named(&part->first[i], "name"), err);
    part = PART("metadata");
    for (size_t i = 0; i < part->n && st == PAWL_OK; i++)
        st = pawl_state_metadata(memory->state, part->first[i].key, part->first[i].text, err);
    if (st == PAWL_OK && pawl_json_member(save, PAWL_STR("optimizer")) != NULL)
        st = describe_optimizer(memory, PART("optimizer"), err);
    if (st == PAWL_OK)
        st = describe_rngs(memory, PART("rng"), err);
    if (st == PAWL_OK)
        st = describe_trainer(memory, PART("trainer_state"), err);
    part = PART("numbers");
    for (size_t i = 0; i < part->n && st == PAWL_OK; i++)
        st = describe_number(memory, PAWL_EXTRA, part->first[i].key, &part->first[i], err);
    part = PART("states");
    for (size_t i = 0; i < part->n && st == PAWL_OK; i++) {
        size_t bytes = (size_t)number_of(pawl_json_member(&part->first[i], PAWL_STR("bytes")));
        st = pawl_state_opaque(memory->state, text_of(memory, named(&part->first[i], "name")),
                               text_of(memory, named(&part->first[i], "type")),
                               bytes_at(memory, pawl_json_member(&part->first[i], PAWL_STR("at")), bytes), bytes, err);
    }
    for (size_t i = 0; i < 3 && st == PAWL_OK; i++) {
        part = pawl_json_member(save, pawl_str_z(files[i][0]));
        if (part != NULL)
            st = describe_file(memory, pawl_str_z(files[i][1]), part, err);
    }
    part = PART("attachments");
    for (size_t i = 0; i < part->n && st == PAWL_OK; i++)
        st = describe_file(memory, named(&part->first[i], "name"), &part->first[i], err);
    return st;
}

/* ---- one save ---- */

/* A number, or the strings that stand for doubles that JSON has no number for. */
static double
real_of(const struct pawl_json_value *value)
{
    if (value->type != PAWL_JSON_STRING)
        return pawl_json_f64(value->text);
    return pawl_str_equal(value->text, PAWL_STR("NaN"))        ? (double)NAN
           : pawl_str_equal(value->text, PAWL_STR("Infinity")) ? (double)INFINITY
                                                               : -(double)INFINITY;
}

static void
take_policies(struct memory *memory, const struct pawl_json_value *save, struct pawl_run_options *options,
              struct pawl_save_options *save_options)
{
    const struct pawl_json_value *every = pawl_json_member(save, PAWL_STR("keep_every"));
    const struct pawl_json_value *best = pawl_json_member(save, PAWL_STR("keep_best"));
    const struct pawl_json_value *metrics = pawl_json_member(save, PAWL_STR("metrics"));
    if (every != NULL)
        assert_true(pawl_json_i64(every->text, &options->keep_every));
    if (best != NULL) {
        struct pawl_keep_best *policy = take(memory, sizeof *policy);
        *policy = (struct pawl_keep_best){ .metric = named(best, "metric"),
                                           .direction = pawl_str_equal(named(best, "direction"), PAWL_STR("max"))
                                                            ? PAWL_GREATEST
                                                            : PAWL_LEAST };
        assert_true(pawl_json_i64(pawl_json_member(best, PAWL_STR("count"))->text, &policy->count));
        options->keep_best = policy;
        options->n_keep_best = 1;
    }
    if (metrics == NULL)
        return;
    struct pawl_metric *list = take(memory, metrics->n * sizeof *list);
    for (size_t i = 0; i < metrics->n; i++)
        list[i] = (struct pawl_metric){ metrics->first[i].key, real_of(&metrics->first[i]) };
    save_options->metrics = list;
    save_options->n_metrics = metrics->n;
}

/* The steps of `pinned`, no others, are pinned from here on. */
static void
pin_before(struct simdisk *disk, const struct pawl_json_value *save)
{
    const struct pawl_json_value *pinned = pawl_json_member(save, PAWL_STR("pinned"));
    struct pawl_error err = PAWL_ERROR_INIT;
    for (size_t i = 0; pinned != NULL && i < pinned->n; i++)
        if (pawl_ckpt_pin_os(simdisk_os(disk), PAWL_STR(ROOT), (int64_t)number_of(&pinned->first[i]), true, &err) !=
            PAWL_OK)
            fail_msg("%s", err.message);
}

static enum pawl_status
save_one(struct simdisk *disk, struct pawl_str profile, const struct pawl_json_value *save, const unsigned char *bin,
         size_t bin_bytes, struct pawl_error *err)
{
    struct memory memory = { .arena = PAWL_ARENA_INIT, .bin = bin, .bin_bytes = bin_bytes };
    const struct pawl_json_value *keep = pawl_json_member(save, PAWL_STR("keep"));
    const struct pawl_json_value *shard = pawl_json_member(save, PAWL_STR("max_shard_bytes"));
    struct pawl_run_options options =
        PAWL_RUN_OPTIONS(.profile =
                             pawl_str_equal(profile, PAWL_STR("tinyllm")) ? PAWL_PROFILE_TINYLLM : PAWL_PROFILE_NONE,
                         .max_file_bytes = shard == NULL ? 0 : number_of(shard));
    struct pawl_run *run = NULL;
    int64_t step = -1;
    if (keep != NULL)
        assert_true(pawl_json_i64(keep->text, &options.keep));
    assert_true(pawl_json_i64(pawl_json_member(save, PAWL_STR("step"))->text, &step));
    struct pawl_save_options save_options = PAWL_SAVE_OPTIONS(0);
    take_policies(&memory, save, &options, &save_options);
    pin_before(disk, save);
    assert_int_equal(pawl_state_new(&memory.state, NULL), PAWL_OK);
    enum pawl_status st = describe(&memory, save, err);
    if (st == PAWL_OK)
        st = pawl_run_open_os(simdisk_os(disk), PAWL_STR(ROOT), &options, &run, err);
    if (st == PAWL_OK)
        st = pawl_run_save(run, memory.state, step, &save_options, err);
    assert_int_equal(pawl_run_close(run, NULL), PAWL_OK);
    pawl_state_free(memory.state);
    pawl_arena_release(&memory.arena);
    return st;
}

static struct pawl_buffer
read_host(const char *path)
{
    struct pawl_file file = PAWL_FILE_INIT;
    struct pawl_buffer bytes = PAWL_BUFFER_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_file_open_path(&file, pawl_os_posix(), path, &err) != PAWL_OK ||
        pawl_file_read_all(&file, (size_t)64 << 20, &bytes, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    pawl_file_release(&file);
    return bytes;
}

/* ---- good ---- */

static bool
is_by_hand(const struct pawl_json_value *by_hand, const char *path)
{
    for (size_t i = 0; by_hand != NULL && i < by_hand->n; i++) {
        struct pawl_str entry = by_hand->first[i].text;
        if (strncmp(path, entry.data, entry.len) == 0 && (path[entry.len] == '\0' || path[entry.len] == '/'))
            return true;
    }
    return false;
}

/* Every entry of `a` is in `b` with the same bytes. Returns the number of files compared. */
static size_t
compare_trees(const char *name, const struct simdisk *a, const struct simdisk *b, const struct pawl_json_value *by_hand)
{
    size_t n = 0;
    char *tree = simdisk_tree(a, ROOT);
    for (char *line = strtok(tree, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char path[512];
        size_t a_bytes = 0, b_bytes = 0;
        (void)snprintf(path, sizeof path, ROOT "/%s", line);
        if (is_by_hand(by_hand, line))
            continue;
        if (line[strlen(line) - 1] == '/')
            continue;
        if (!simdisk_has(b, path))
            fail_msg("%s: %s is in one root only", name, path);
        const unsigned char *a_data = simdisk_get(a, path, &a_bytes);
        const unsigned char *b_data = simdisk_get(b, path, &b_bytes);
        if (a_bytes != b_bytes || memcmp(a_data, b_data, a_bytes) != 0)
            fail_msg("%s: %s has other bytes: %zu and %zu\n%.*s\n%.*s", name, path, a_bytes, b_bytes,
                     (int)(a_bytes < 1500 ? a_bytes : 1500), (const char *)a_data,
                     (int)(b_bytes < 1500 ? b_bytes : 1500), (const char *)b_data);
        n++;
    }
    free(tree);
    return n;
}

/* Write one case; false when it has no inputs. */
static bool
write_case(const char *name, size_t *ret_files)
{
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/good/%s/inputs.json", GOLDEN_CHECKPOINTS, name);
    const struct pawl_json_value *inputs = golden_read(&arena, path);
    if (inputs == NULL) {
        pawl_arena_release(&arena);
        return false;
    }
    const struct pawl_json_value *saves = pawl_json_member(inputs, PAWL_STR("saves"));
    const struct pawl_json_value *by_hand = pawl_json_member(inputs, PAWL_STR("by_hand"));
    (void)snprintf(path, sizeof path, "%s/good/%s/inputs.bin", GOLDEN_CHECKPOINTS, name);
    struct pawl_buffer bin = read_host(path);
    struct simdisk *written = simdisk_new();
    struct simdisk *golden = simdisk_new();
    for (size_t i = 0; i < saves->n; i++)
        if (save_one(written, named(inputs, "profile"), &saves->first[i], (const unsigned char *)bin.data, bin.len,
                     &err) != PAWL_OK)
            fail_msg("%s: save %zu: %s", name, i, err.message);
    (void)snprintf(path, sizeof path, "%s/good/%s/root", GOLDEN_CHECKPOINTS, name);
    assert_int_equal(simdisk_import(golden, ROOT, path), 0);
    size_t n = compare_trees(name, written, golden, by_hand);
    assert_int_equal(compare_trees(name, golden, written, by_hand), n);
    if (!simdisk_has(written, ROOT "/RETENTION.json"))
        assert_root_is_clean(simdisk_os(written));
    *ret_files += n;
    simdisk_free(golden);
    simdisk_free(written);
    pawl_buffer_release(&bin);
    pawl_arena_release(&arena);
    return true;
}

static void
good_roots_come_out_byte_for_byte(void **state)
{
    (void)state;
    struct pawl_dir_list cases = { NULL, 0 };
    size_t written = 0;
    size_t files = 0;
    golden_cases("good", &cases);
    for (size_t i = 0; i < cases.n; i++)
        written += write_case(cases.entries[i].name, &files);
    print_message("%zu of %zu roots written, %zu files equal\n", written, cases.n, files);
    assert_int_equal(cases.n - written, 1); /* original-writer has no inputs */
    assert_int_equal(files, 477);
    pawl_dir_list_release(&cases);
}

/* ---- rejections ---- */

static bool
can_be_said(struct pawl_str what)
{
    return !pawl_str_equal(what, PAWL_STR("keep = 0")) &&
           !pawl_str_equal(what, PAWL_STR("an attachment named \"config.json\"")) &&
           !pawl_str_equal(what, PAWL_STR("an attachment's name twice"));
}

static void
rejected_saves_leave_the_root(void **state)
{
    (void)state;
    struct pawl_arena arena = PAWL_ARENA_INIT;
    const struct pawl_json_value *cases =
        pawl_json_member(golden_read(&arena, GOLDEN_CHECKPOINTS "/reject.json"), PAWL_STR("cases"));
    struct pawl_buffer bin = read_host(GOLDEN_CHECKPOINTS "/reject.bin");
    size_t refused = 0;
    for (size_t i = 0; i < cases->n; i++) {
        const struct pawl_json_value *save = pawl_json_member(&cases->first[i], PAWL_STR("save"));
        struct pawl_str what = named(&cases->first[i], "what");
        if (!can_be_said(what))
            continue;
        for (unsigned has_root = 0; has_root < 2; has_root++) {
            struct simdisk *disk = has_root ? disk_with(&(struct saved){ 1, 1 }, 1) : simdisk_new();
            struct pawl_error err = PAWL_ERROR_INIT;
            if (!has_root) /* opening a run makes its root; a save that is refused adds nothing */
                simdisk_put_dir(disk, ROOT);
            uint64_t before = simdisk_fingerprint(disk);
            enum pawl_status st = save_one(disk, named(&cases->first[i], "profile"), save,
                                           (const unsigned char *)bin.data, bin.len, &err);
            if (st != PAWL_ARGUMENT || err.status != PAWL_ARGUMENT || err.message[0] == '\0')
                fail_msg("%.*s: %s, '%s'", PAWL_ARG(what), pawl_status_name(st), err.message);
            assert_int_equal(simdisk_fingerprint(disk), before);
            simdisk_free(disk);
        }
        refused++;
    }
    print_message("%zu of %zu rejections\n", refused, cases->n);
    assert_int_equal(cases->n - refused, 3);
    pawl_buffer_release(&bin);
    pawl_arena_release(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_roots_come_out_byte_for_byte),
        cmocka_unit_test(rejected_saves_leave_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
