/*
 * checkpoint/examine.c and step_content.c beyond the golden roots: every flip and cut, faults that hide others, and systems that fail.
 */
#include "unit/read_support.h"

#include <errno.h>
#include "sim/faultos.h"
#include "sim/simop.h"

#define STEP "step-000030"
#define AT ROOT "/" STEP "/"

static const char *const THREE[] = { "model.safetensors", "optimizer.safetensors", "trainer_state.json" };

/* ---- damage ---- */

/*
 * Goal: no flipped bit passes, and what is said about it is its file's hash and nothing that would follow from it. Method: every byte
 * of every file in turn, one bit by its place.
 */
static void
every_flipped_byte_is_a_hash(void **state)
{
    (void)state;
    char text[1024];
    for (size_t f = 0; f < 3; f++) {
        struct simdisk *disk = golden_disk("latest-missing");
        char path[256];
        char expected[256];
        size_t bytes = 0;
        (void)snprintf(path, sizeof path, AT "%s", THREE[f]);
        (void)snprintf(expected, sizeof expected, "hash %s", THREE[f]);
        assert_non_null(simdisk_get(disk, path, &bytes));
        for (size_t at = 0; at < bytes; at++) {
            unsigned char bit = (unsigned char)(1u << (at % 8));
            simdisk_flip(disk, path, at, bit);
            for (int defer = 0; defer < 2; defer++) {
                const struct pawl_step_options options = { .defer_hash = defer != 0 };
                examine_text(text, sizeof text, disk, STEP, &options);
                if (strcmp(text, expected) != 0)
                    fail_msg("%s, byte %zu, put off %d: %s", THREE[f], at, defer, text);
            }
            simdisk_flip(disk, path, at, bit);
        }
        assert_verdict(disk, STEP, "");
        simdisk_free(disk);
    }
}

/* The manifest has no hash of its own: a flip in it may look like many things, but the step is never complete. */
static void
a_flipped_manifest_never_passes(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    const struct pawl_step_options options = { 0 };
    char text[4096];
    size_t bytes = 0;
    assert_non_null(simdisk_get(disk, AT "MANIFEST.json", &bytes));
    for (size_t at = 0; at < bytes; at++) {
        for (unsigned bit = 0; bit < 8; bit += 3) {
            simdisk_flip(disk, AT "MANIFEST.json", at, (unsigned char)(1u << bit));
            assert_string_not_equal(examine_text(text, sizeof text, disk, STEP, &options), "");
            simdisk_flip(disk, AT "MANIFEST.json", at, (unsigned char)(1u << bit));
        }
    }
    simdisk_free(disk);
}

/* Goal: a cut file is a size, a cut manifest a manifest. Method: every length of each. */
static void
every_cut_has_its_verdict(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    for (size_t f = 0; f < 4; f++) {
        const char *name = f < 3 ? THREE[f] : "MANIFEST.json";
        char path[256];
        char expected[256];
        size_t bytes = 0;
        (void)snprintf(path, sizeof path, AT "%s", name);
        (void)snprintf(expected, sizeof expected, "%s %s", f < 3 ? "size" : "manifest", name);
        const unsigned char *data = simdisk_get(disk, path, &bytes);
        unsigned char *copy = malloc(bytes);
        memcpy(copy, data, bytes);
        /* without its line end a manifest is still whole */
        for (size_t len = 0; len < (f < 3 ? bytes : bytes - 1); len += len < 32 || len + 32 > bytes ? 1 : 13) {
            simdisk_put(disk, path, copy, len);
            assert_verdict(disk, STEP, expected);
        }
        simdisk_put(disk, path, copy, bytes);
        free(copy);
    }
    assert_verdict(disk, STEP, "");
    simdisk_free(disk);
}

/* ---- a fault hides what follows from it ---- */

static void
content_is_believed_only_with_its_hash(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    /* not listed as they are: the step in them is another, the trainer state no JSON, yet all that can be said is that they are damaged */
    edit_file(disk, AT "optimizer.safetensors", "\"step\":\"30\"", "\"step\":\"31\"");
    edit_file(disk, AT "trainer_state.json", "{", "[");
    edit_file(disk, AT "model.safetensors", "{\"", "x\"");
    assert_verdict(disk, STEP, "hash model.safetensors, hash optimizer.safetensors, hash trainer_state.json");
    /* listed as they are, they are what was written */
    relist(disk, STEP, "optimizer.safetensors");
    relist(disk, STEP, "trainer_state.json");
    relist(disk, STEP, "model.safetensors");
    assert_verdict(disk, STEP,
                   "content model.safetensors, step-mismatch optimizer.safetensors, content trainer_state.json");
    simdisk_free(disk);
}

static void
content_is_told_once_per_file(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    /* no `optimizer`, a `state` that is no object, another format: one reason; the other step is a reason of its own */
    edit_file(disk, AT "optimizer.safetensors", "\"optimizer\":\"sgd\"", "\"optimixer\":\"sgd\"");
    edit_file(disk, AT "optimizer.safetensors", "{\\\"lr\\\":0.1,\\\"step\\\":30}", "[\\\"lr\\\",0.1,\\\"step\\\",30]");
    edit_file(disk, AT "optimizer.safetensors", "tinyllm", "tinyLLM");
    edit_file(disk, AT "optimizer.safetensors", "\"step\":\"30\"", "\"step\":\"29\"");
    relist(disk, STEP, "optimizer.safetensors");
    assert_verdict_at(disk, STEP, PAWL_PROFILE_TINYLLM,
                      "content optimizer.safetensors, step-mismatch optimizer.safetensors", __LINE__);
    simdisk_free(disk);
}

static void
an_optimizers_step_is_decimal(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    edit_file(disk, AT "optimizer.safetensors", "\"step\":\"30\"}} ", "\"step\":\"30 \"}}");
    relist(disk, STEP, "optimizer.safetensors");
    assert_verdict(disk, STEP, "step-mismatch optimizer.safetensors");
    simdisk_free(disk);
}

/* Under a name that is not ours the trainer state says which step it is. */
static void
a_copy_is_held_against_its_trainer_state(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    size_t bytes = 0;
    static const char *const ALL[] = { "model.safetensors", "optimizer.safetensors", "trainer_state.json",
                                       "MANIFEST.json" };
    for (size_t f = 0; f < 4; f++) {
        char from[256];
        char to[256];
        (void)snprintf(from, sizeof from, AT "%s", ALL[f]);
        (void)snprintf(to, sizeof to, ROOT "/best/%s", ALL[f]);
        const unsigned char *data = simdisk_get(disk, from, &bytes);
        simdisk_put(disk, to, data, bytes);
    }
    assert_verdict(disk, "best", "");
    edit_file(disk, ROOT "/best/trainer_state.json", "\"step\": 30", "\"step\": 31");
    relist(disk, "best", "trainer_state.json");
    assert_verdict(disk, "best", "step-mismatch optimizer.safetensors");
    /* without a trainer state that can be used there is nothing to hold it against */
    edit_file(disk, ROOT "/best/trainer_state.json", "\"step\": 31", "\"step\": -1");
    relist(disk, "best", "trainer_state.json");
    assert_verdict(disk, "best", "content trainer_state.json");
    simdisk_free(disk);
}

static void
aliases_of_the_optimizer_count_too(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    edit_file(disk, AT "optimizer.safetensors", "\"format\":\"tinyllm\"", "\"pawl.alias.x\":\"y\"");
    relist(disk, STEP, "optimizer.safetensors");
    assert_verdict(disk, STEP, "content optimizer.safetensors");
    simdisk_free(disk);
}

/* Where hashing was left to a reader that will not come, because the step is passed over, it is done all the same: all reasons are told. */
static void
a_hash_that_was_put_off_is_taken_with_another_fault(void **state)
{
    (void)state;
    const struct pawl_step_options options = { .defer_hash = true };
    for (int has_other = 0; has_other < 2; has_other++) {
        struct simdisk *disk = golden_disk("latest-missing");
        struct pawl_dir root = open_root(disk);
        struct pawl_step step = { 0 };
        struct pawl_report *report = pawl_report_new();
        char text[256];
        size_t n = 0;
        size_t bytes = 0;
        assert_non_null(simdisk_get(disk, AT "model.safetensors", &bytes));
        simdisk_flip(disk, AT "model.safetensors", bytes - 1, 1);
        if (has_other != 0)
            simdisk_put_text(disk, AT "more", "");
        assert_int_equal(pawl_step_examine(&step, &root, STEP, &options, report, NULL), PAWL_OK);
        pawl_report_end_verdict(report);
        print_verdict(text, sizeof text, pawl_report_verdicts(report, &n));
        assert_string_equal(text, has_other == 0 ? "" : "hash model.safetensors, unlisted-file more");
        pawl_step_release(&step);
        pawl_report_free(report);
        pawl_dir_release(&root);
        simdisk_free(disk);
    }
}

/* ---- an index and its shards ---- */

#define SHARDED "step-000064"
#define SHARDS ROOT "/" SHARDED "/"

static void
a_damaged_shard_does_not_blame_the_index(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("sharded");
    assert_verdict(disk, SHARDED, "");
    edit_file(disk, SHARDS "model-00001-of-00005.safetensors", "\"big\"", "\"bag\"");
    assert_verdict(disk, SHARDED, "hash model-00001-of-00005.safetensors");
    relist(disk, SHARDED, "model-00001-of-00005.safetensors");
    assert_verdict(disk, SHARDED, "content model.safetensors.index.json");
    simdisk_free(disk);
}

static void
faults_of_shards_and_index_stand_side_by_side(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("sharded");
    simdisk_remove(disk, SHARDS "model-00003-of-00005.safetensors");
    edit_file(disk, SHARDS "model.safetensors.index.json", "\"big\"", "\"bag\"");
    relist(disk, SHARDED, "model.safetensors.index.json");
    assert_verdict(disk, SHARDED,
                   "missing-file model-00003-of-00005.safetensors, content model.safetensors.index.json");
    /* an index that is damaged says nothing; the shards are looked at by themselves */
    edit_file(disk, SHARDS "model.safetensors.index.json", "\"bag\"", "\"bog\"");
    edit_file(disk, SHARDS "model-00001-of-00005.safetensors", "{\"__", "x\"__");
    relist(disk, SHARDED, "model-00001-of-00005.safetensors");
    edit_file(disk, SHARDS "model-00002-of-00005.safetensors", "F32", "F64");
    assert_verdict(disk, SHARDED,
                   "content model-00001-of-00005.safetensors, hash model-00002-of-00005.safetensors, missing-file "
                   "model-00003-of-00005.safetensors, hash model.safetensors.index.json");
    simdisk_free(disk);
}

/* Beside the shards an index may map to nothing else, be it there, listed and in order. */
static void
an_index_maps_to_its_shards_alone(void **state)
{
    (void)state;
    static const char OTHER[] = "\x38\0\0\0\0\0\0\0{\"zz\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}  ";
    static const char ENTRY[] = "\"zz\": \"other.safetensors\", ";
    struct simdisk *disk = golden_disk("sharded");
    put_listed(disk, SHARDED, "other.safetensors", OTHER, 8 + 0x38);
    assert_verdict(disk, SHARDED, "");
    size_t bytes = 0;
    const char *text = (const char *)simdisk_get(disk, SHARDS "model.safetensors.index.json", &bytes);
    const char *big = strstr(text, "\"big\"");
    struct pawl_buffer more = PAWL_BUFFER_INIT;
    assert_true(pawl_buffer_add(&more, text, (size_t)(big - text)) && pawl_buffer_add_z(&more, ENTRY) &&
                pawl_buffer_add(&more, big, bytes - (size_t)(big - text)));
    put_listed(disk, SHARDED, "model.safetensors.index.json", more.data, more.len);
    pawl_buffer_release(&more);
    assert_verdict(disk, SHARDED, "content model.safetensors.index.json");
    simdisk_free(disk);
}

/* The metadata of the optimizer are those of its first shard. */
static void
the_first_shard_tells_the_step(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("sharded");
    edit_file(disk, SHARDS "optimizer-00002-of-00009.safetensors", "\"step\":\"64\"", "\"step\":\"65\"");
    relist(disk, SHARDED, "optimizer-00002-of-00009.safetensors");
    assert_verdict(disk, SHARDED, "");
    edit_file(disk, SHARDS "optimizer-00001-of-00009.safetensors", "\"step\":\"64\"", "\"step\":\"65\"");
    relist(disk, SHARDED, "optimizer-00001-of-00009.safetensors");
    assert_verdict(disk, SHARDED, "step-mismatch optimizer-00001-of-00009.safetensors");
    simdisk_free(disk);
}

/* ---- what is listed, and what is there ---- */

static void
directories_are_judged_by_what_the_manifest_lists_in_them(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    put_listed(disk, STEP, "a/b/c", "text", 4);
    put_listed(disk, STEP, "a b", "text", 4); /* sorts between "a" and "a/" */
    assert_verdict(disk, STEP, "");
    simdisk_put_text(disk, AT "a/b/d/e/f", "x");
    simdisk_put_link(disk, AT "a/l", "b");
    simdisk_put_fifo(disk, AT "a/.p");
    simdisk_put_dir(disk, AT "a/MANIFEST.json");
    assert_verdict(disk, STEP,
                   "unlisted-file a/.p, unlisted-file a/MANIFEST.json, unlisted-file a/b/d, unlisted-file a/l");
    simdisk_free(disk);
}

/* Depth costs neither the stack nor descriptors. */
static void
a_deep_directory_is_no_danger(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    enum { DEPTH = 400 };
    char name[2 * DEPTH + 2];
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(name + 2 * i, "d/", 2);
    memcpy(name + 2 * DEPTH, "f", 2);
    put_listed(disk, STEP, name, "deep", 4);
    assert_verdict(disk, STEP, "");
    char path[2 * DEPTH + 64];
    (void)snprintf(path, sizeof path, AT "%.*su", 2 * DEPTH, name);
    simdisk_put_text(disk, path, "unlisted");
    char expected[2 * DEPTH + 64];
    (void)snprintf(expected, sizeof expected, "unlisted-file %.*su", 2 * DEPTH, name);
    assert_verdict(disk, STEP, expected);
    simdisk_free(disk);
}

/* A name that no filesystem can hold is missing like another. */
static void
a_listed_name_of_a_megabyte(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    const size_t len = 1 << 20;
    char *name = malloc(len + 1);
    memset(name, 'n', len);
    name[len] = '\0';
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_manifest manifest;
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    size_t bytes = 0;
    const unsigned char *text = simdisk_get(disk, AT "MANIFEST.json", &bytes);
    assert_int_equal(pawl_manifest_parse(&arena, &manifest, text, bytes, NULL), PAWL_OK);
    struct pawl_receipt rows[8];
    memcpy(rows, manifest.files, manifest.n * sizeof *rows);
    rows[manifest.n] = (struct pawl_receipt){ { name, len }, 1, { 0 } };
    manifest.files = rows;
    manifest.n++;
    assert_true(pawl_manifest_print(&manifest, &out));
    simdisk_put(disk, AT "MANIFEST.json", out.data, out.len);
    char *verdict = malloc(len + 64);
    const struct pawl_step_options options = { 0 };
    examine_text(verdict, len + 64, disk, STEP, &options);
    assert_int_equal(strncmp(verdict, "missing-file nnnn", 17), 0);
    free(verdict);
    free(name);
    pawl_buffer_release(&out);
    pawl_arena_release(&arena);
    simdisk_free(disk);
}

/* A release's manifest has the same schema. */
static void
a_release_is_no_checkpoint(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    edit_file(disk, AT "MANIFEST.json", "\"kind\": \"checkpoint\"", "\"kind\":    \"release\"");
    assert_verdict(disk, STEP, "manifest MANIFEST.json");
    simdisk_free(disk);
}

/* As many shards as they say, but not 1 to N; and a manifest without a trainer state. */
static void
the_list_must_be_whole(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("sharded");
    size_t bytes = 0;
    const unsigned char *data = simdisk_get(disk, SHARDS "model-00005-of-00005.safetensors", &bytes);
    unsigned char *copy = malloc(bytes);
    memcpy(copy, data, bytes);
    simdisk_remove(disk, SHARDS "model-00005-of-00005.safetensors");
    relist(disk, SHARDED, "model-00005-of-00005.safetensors");
    put_listed(disk, SHARDED, "model-00006-of-00005.safetensors", copy, bytes);
    free(copy);
    assert_verdict(disk, SHARDED, "manifest MANIFEST.json");
    simdisk_free(disk);

    disk = golden_disk("latest-missing");
    simdisk_remove(disk, AT "trainer_state.json");
    relist(disk, STEP, "trainer_state.json");
    assert_verdict(disk, STEP, "manifest MANIFEST.json");
    simdisk_free(disk);
}

/* ---- trust, and the weights alone ---- */

static void
size_only_believes_hashes_and_reads_contents(void **state)
{
    (void)state;
    struct simdisk *disk = golden_disk("latest-missing");
    const struct pawl_step_options options = { .trust = PAWL_TRUST_SIZE_ONLY };
    char text[1024];
    size_t bytes = 0;
    assert_non_null(simdisk_get(disk, AT "model.safetensors", &bytes));
    simdisk_flip(disk, AT "model.safetensors", bytes - 1, 1);
    assert_string_equal(examine_text(text, sizeof text, disk, STEP, &options), "");
    edit_file(disk, AT "trainer_state.json", "\"step\": 30", "\"step\": 31");
    assert_string_equal(examine_text(text, sizeof text, disk, STEP, &options), "step-mismatch trainer_state.json");
    simdisk_remove(disk, AT "optimizer.safetensors");
    assert_string_equal(examine_text(text, sizeof text, disk, STEP, &options),
                        "missing-file optimizer.safetensors, step-mismatch trainer_state.json");
    simdisk_free(disk);
}

/* Goal: a damaged optimizer or trainer state keeps nobody from the weights, a damaged model does. */
static void
weights_can_be_had_alone(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *file;
        bool has_weights;
    } CASES[] = {
        { "\"step\":\"30\"", "\"step\":\"31\"", "optimizer.safetensors", true },
        { "\"step\": 30", "\"step\": -3", "trainer_state.json", true },
        { "F32", "F64", "model.safetensors", false },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct simdisk *disk = golden_disk("latest-missing");
        struct pawl_dir root = open_root(disk);
        struct pawl_step step = { 0 };
        struct pawl_report *report = pawl_report_new();
        char path[256];
        (void)snprintf(path, sizeof path, AT "%s", CASES[i].file);
        edit_file(disk, path, CASES[i].from, CASES[i].to);
        assert_int_equal(
            pawl_step_examine(&step, &root, STEP, &(struct pawl_step_options){ .weights_only = true }, report, NULL),
            PAWL_OK);
        pawl_report_end_verdict(report);
        assert_int_equal(step.has_weights, CASES[i].has_weights);
        assert_int_equal(step.has_model, CASES[i].has_weights);
        assert_false(step.has_optimizer); /* not touched */
        assert_int_equal(step.has_trainer, i != 1);
        pawl_step_release(&step);
        pawl_report_free(report);
        pawl_dir_release(&root);
        simdisk_free(disk);
    }
}

/* ---- systems that fail ---- */

static const enum sim_op READS[] = { SIM_DIR_OPEN,  SIM_DIR_LIST,  SIM_STAT,
                                     SIM_FILE_OPEN, SIM_FILE_STAT, SIM_FILE_READ_AT };

/* Examine a step of a golden root through faults; *ret_is_met tells whether the fault came. */
static const char *
examine_failing(char *text, size_t size, struct simdisk *disk, const char *name, enum sim_op op, unsigned nth,
                unsigned repeats, int code, bool defer, bool *ret_is_met)
{
    struct faultos *faults = faultos_new(simdisk_os(disk));
    struct pawl_dir root = PAWL_DIR_INIT;
    struct pawl_step step = { 0 };
    struct pawl_report *report = pawl_report_new();
    size_t n = 0;
    assert_int_equal(pawl_dir_open_path(&root, faultos_os(faults), ROOT, NULL), PAWL_OK);
    faultos_fail(faults, op, nth, repeats, code);
    const struct pawl_step_options options = { .defer_hash = defer };
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st = pawl_step_examine(&step, &root, name, &options, report, &err);
    *ret_is_met = faultos_was_met(faults);
    pawl_report_end_verdict(report);
    if (st != PAWL_OK) {
        assert_int_equal(err.status, st); /* it says so too */
        (void)snprintf(text, size, "error: %s", pawl_status_name(st));
    } else {
        const struct pawl_verdict *verdict = pawl_report_verdicts(report, &n);
        print_verdict(text, size, verdict);
    }
    pawl_step_release(&step);
    pawl_report_free(report);
    pawl_dir_release(&root);
    assert_int_equal(faultos_open(faults), 0);
    faultos_free(faults);
    return text;
}

/* Goal: a fault of the machine is never a reason. Method: each call of each kind fails once with each such error. */
static void
machine_faults_end_the_examination(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *answer;
    } FAULTS[] = {
        { ENOMEM, "error: no-memory" }, { EMFILE, "error: no-descriptors" }, { EACCES, "error: permission" },
        { ESTALE, "error: stale" },     { ETIMEDOUT, "error: time-out" },
    };
    static const char *const CASES[][2] = { { "attachments", "step-000003" }, { "sharded", SHARDED } };
    unsigned n_met = 0;
    for (size_t c = 0; c < 2; c++) {
        struct simdisk *disk = golden_disk(CASES[c][0]);
        for (size_t op = 0; op < sizeof READS / sizeof READS[0]; op++) {
            bool is_met = true;
            for (unsigned nth = 0; is_met; nth++) {
                for (size_t f = 0; f < sizeof FAULTS / sizeof FAULTS[0] && is_met; f++) {
                    char text[1024];
                    examine_failing(text, sizeof text, disk, CASES[c][1], READS[op], nth, 0, FAULTS[f].code, nth % 2,
                                    &is_met);
                    if (strcmp(text, is_met ? FAULTS[f].answer : "") != 0)
                        fail_msg("%s %u, errno %d: '%s'", sim_op_name(READS[op]), nth, FAULTS[f].code, text);
                    n_met += is_met;
                }
            }
        }
        simdisk_free(disk);
    }
    assert_true(n_met > 200);
}

/* An I/O error that a second try does not repeat is nothing; one that it repeats is a reason. */
static void
io_errors_count_when_they_repeat(void **state)
{
    (void)state;
    static const char *const CASES[][2] = { { "attachments", "step-000003" }, { "sharded", SHARDED } };
    unsigned n_met = 0;
    for (size_t c = 0; c < 2; c++) {
        struct simdisk *disk = golden_disk(CASES[c][0]);
        for (size_t op = 0; op < sizeof READS / sizeof READS[0]; op++) {
            bool is_met = true;
            for (unsigned nth = 0; is_met; nth++) {
                char text[8192];
                examine_failing(text, sizeof text, disk, CASES[c][1], READS[op], nth, 0, EIO, nth % 2, &is_met);
                if (strcmp(text, "") != 0)
                    fail_msg("%s %u, once: '%s'", sim_op_name(READS[op]), nth, text);
                examine_failing(text, sizeof text, disk, CASES[c][1], READS[op], nth, 100000, EIO, nth % 2, &is_met);
                if (is_met && strncmp(text, "io", 2) != 0)
                    fail_msg("%s %u, for ever: '%s'", sim_op_name(READS[op]), nth, text);
                n_met += is_met;
            }
        }
        simdisk_free(disk);
    }
    assert_true(n_met > 50);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_byte_is_a_hash),
        cmocka_unit_test(a_flipped_manifest_never_passes),
        cmocka_unit_test(every_cut_has_its_verdict),
        cmocka_unit_test(content_is_believed_only_with_its_hash),
        cmocka_unit_test(content_is_told_once_per_file),
        cmocka_unit_test(an_optimizers_step_is_decimal),
        cmocka_unit_test(a_copy_is_held_against_its_trainer_state),
        cmocka_unit_test(aliases_of_the_optimizer_count_too),
        cmocka_unit_test(a_hash_that_was_put_off_is_taken_with_another_fault),
        cmocka_unit_test(a_damaged_shard_does_not_blame_the_index),
        cmocka_unit_test(faults_of_shards_and_index_stand_side_by_side),
        cmocka_unit_test(an_index_maps_to_its_shards_alone),
        cmocka_unit_test(the_first_shard_tells_the_step),
        cmocka_unit_test(directories_are_judged_by_what_the_manifest_lists_in_them),
        cmocka_unit_test(a_deep_directory_is_no_danger),
        cmocka_unit_test(a_listed_name_of_a_megabyte),
        cmocka_unit_test(a_release_is_no_checkpoint),
        cmocka_unit_test(the_list_must_be_whole),
        cmocka_unit_test(size_only_believes_hashes_and_reads_contents),
        cmocka_unit_test(weights_can_be_had_alone),
        cmocka_unit_test(machine_faults_end_the_examination),
        cmocka_unit_test(io_errors_count_when_they_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
