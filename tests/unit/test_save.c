/* checkpoint/save.c: the order of a save's operations, its warnings, its rejections, and roots of all kinds. */
#include "unit/save_support.h"

#include <math.h>
#include "checkpoint/save.h"

/* ---- the order of operations ---- */

static int
mark_failpoint(void *context, const char *name)
{
    simdisk_mark(context, name);
    return 0;
}

/* The trace from `from` on, a line each, writes without their numbers, the files of a directory that goes in one; the caller frees. */
static char *
trace_text(const struct simdisk *disk, size_t from)
{
    struct pawl_buffer out = PAWL_BUFFER_INIT;
    bool was_file = false;
    for (size_t i = from; i < simdisk_trace_len(disk); i++) {
        char line[512];
        (void)snprintf(line, sizeof line, "%s", simdisk_describe(disk, i));
        char *digits = strncmp(line, "write ", 6) == 0 ? strrchr(line, ' ') : NULL;
        if (digits != NULL)
            *digits = '\0';
        bool is_file = strncmp(line, "remove ", 7) == 0 && strncmp(line, "remove step-", 12) != 0;
        if (is_file && was_file)
            continue;
        if (is_file)
            (void)snprintf(line, sizeof line, "remove files");
        was_file = is_file;
        assert_true(pawl_buffer_printf(&out, "%s\n", line));
    }
    assert_true(pawl_buffer_terminate(&out));
    return out.data;
}

static void
assert_trace(const struct simdisk *disk, size_t from, const char *expected)
{
    char *text = trace_text(disk, from);
    assert_string_equal(text, expected);
    free(text);
}

#define WRITTEN(file) "create " file "\nwrite " file "\nsync file " file "\n"
#define FILES_1_TO_3                                                                                                \
    WRITTEN("model.safetensors")                                                                                    \
    "mark save/after-file\n" WRITTEN("optimizer.safetensors") "mark save/after-file\n" WRITTEN(                     \
        "trainer_state.json") "mark save/after-file\n" WRITTEN("pawl.state.json") "mark save/after-file\n"          \
                                                                                  "mark "                           \
                                                                                  "save/before-manifest\n" WRITTEN( \
                                                                                      "MANIFEST.json")
#define LATEST_WRITTEN                                                                 \
    "mark save/before-latest\n"                                                        \
    "create LATEST.tmp\nwrite LATEST\nsync file LATEST\nrename LATEST.tmp -> LATEST\n" \
    "sync directory root\n"                                                            \
    "mark save/before-prune\n"

/*
 * Goal: steps 1 to 6 happen in the page's order. Method: every operation and every failpoint of a save, as the simulated disk
 * saw them, against the whole list.
 */
static void
first_save_in_order(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.failpoint = mark_failpoint, .context = disk));
    assert_trace(disk, 0, "mkdir root\nsync directory /\n");
    size_t from = simdisk_trace_len(disk);
    save_step(run, &toy, 1, 1);
    assert_trace(disk, from,
                 "sync directory root\n" /* settling, once per run */
                 "mkdir step-000001.tmp\n" FILES_1_TO_3 "sync directory step-000001\n"
                 "mark save/before-rename\n"
                 "rename step-000001.tmp -> step-000001\n"
                 "sync directory root\n" LATEST_WRITTEN);
    char *tree = simdisk_tree(disk, ROOT);
    assert_string_equal(tree, "LATEST\nstep-000001/\nstep-000001/MANIFEST.json\nstep-000001/model.safetensors\n"
                              "step-000001/optimizer.safetensors\nstep-000001/pawl.state.json\n"
                              "step-000001/trainer_state.json");
    free(tree);
    assert_string_equal(simdisk_text(disk, ROOT "/LATEST"), "step-000001\n");
    close_run(run);
    assert_int_equal(simdisk_open_handles(disk), 0);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: a step that exists is exchanged, and its old content goes only after LATEST is durable. */
static void
replacement_by_exchange_in_order(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct toy toy;
    toy_init(&toy, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.failpoint = mark_failpoint, .context = disk));
    save_step(run, &toy, 2, 2); /* settles */
    size_t from = simdisk_trace_len(disk);
    save_step(run, &toy, 1, 3);
    assert_trace(disk, from,
                 "mkdir step-000001.tmp\n" FILES_1_TO_3 "sync directory step-000001\n"
                 "mark save/before-rename\n"
                 "exchange step-000001.tmp -> step-000001\n"
                 "sync directory root\n" LATEST_WRITTEN "remove files\n"
                 "remove step-000001.tmp\n");
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: where names can't be exchanged, the old step is set aside as .prev, each rename synced, and a warning says so once. */
static void
replacement_by_prev_in_order(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct heard heard = { .n = 0 };
    struct toy toy;
    simdisk_lack(disk, SIM_EXCHANGE);
    toy_init(&toy, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.warning = hear, .context = &heard));
    save_step(run, &toy, 2, 2);
    assert_int_equal(heard.n, 0);
    size_t from = simdisk_trace_len(disk);
    save_step(run, &toy, 1, 3);
    char *text = trace_text(disk, from);
    const char *tail = strstr(text, "sync directory step-000001\n");
    assert_non_null(tail);
    assert_string_equal(tail, "sync directory step-000001\n"
                              "rename step-000001 -> step-000001.prev\n"
                              "sync directory root\n"
                              "rename step-000001.tmp -> step-000001\n"
                              "sync directory root\n"
                              "create LATEST.tmp\nwrite LATEST\nsync file LATEST\n"
                              "rename LATEST.tmp -> LATEST\n"
                              "sync directory root\n"
                              "rename step-000001.prev -> step-000001.tmp\n"
                              "sync directory root\n"
                              "remove files\n"
                              "remove step-000001.tmp\n");
    free(text);
    save_step(run, &toy, 1, 4);
    assert_int_equal(heard_of(&heard, "no-exchange"), 1);
    assert_string_equal(heard.codes[0], "no-exchange");
    assert_string_equal(heard.messages[0],
                        "this filesystem can't exchange two names: a step that is saved again is set "
                        "aside as .prev meanwhile");
    assert_root_holds(simdisk_os(disk));
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: retention begins after LATEST is durable; each directory is renamed, the root synced once, and only then files go. */
static void
retention_in_order(void **state)
{
    (void)state;
    const struct saved saves[] = { { 1, 1 }, { 2, 2 }, { 3, 3 } };
    struct simdisk *disk = disk_with(saves, 3);
    struct toy toy;
    toy_init(&toy, 4);
    struct pawl_run *run =
        open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 2, .failpoint = mark_failpoint, .context = disk));
    size_t from = simdisk_trace_len(disk);
    save_step(run, &toy, 4, 4);
    char *text = trace_text(disk, from);
    const char *tail = strstr(text, "rename LATEST.tmp");
    assert_non_null(tail);
    assert_string_equal(tail, "rename LATEST.tmp -> LATEST\n"
                              "sync directory root\n"
                              "mark save/before-prune\n"
                              "rename step-000001 -> step-000001.tmp\n"
                              "rename step-000002 -> step-000002.tmp\n"
                              "sync directory root\n"
                              "remove files\n"
                              "remove step-000001.tmp\n"
                              "remove files\n"
                              "remove step-000002.tmp\n");
    free(text);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: missing parents are made durable: each created directory's parent is synced before the run is open. */
static void
parents_are_durable(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct pawl_run *run = NULL;
    assert_int_equal(pawl_run_open_os(simdisk_os(disk), PAWL_STR("out/a/ckpt"), NULL, &run, NULL), PAWL_OK);
    struct simdisk *after = simdisk_build_state(disk, simdisk_trace_len(disk), NULL,
                                                simdisk_pending(disk, simdisk_trace_len(disk), NULL, 0), 1);
    assert_true(simdisk_has(after, "out/a/ckpt"));
    simdisk_free(after);
    close_run(run);
    simdisk_free(disk);
}

/* ---- what a crashed writer left ---- */

/* Goal: after a save the root holds LATEST and step directories and nothing else of ours; what is not ours stays. */
static void
leftovers_are_removed(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct toy toy;
    simdisk_put_text(disk, ROOT "/step-000002.tmp/model.safetensors", "half");
    simdisk_put_text(disk, ROOT "/step-000009.tmp/sub/deep", "x");
    simdisk_put_text(disk, ROOT "/LATEST.tmp", "step-0000");
    simdisk_put_text(disk, ROOT "/RETENTION.tmp", "{");
    simdisk_put_text(disk, ROOT "/notes.txt", "mine");
    simdisk_put_text(disk, ROOT "/foo.tmp", "mine");
    simdisk_put_text(disk, ROOT "/step-2.tmp/x", "mine");
    simdisk_put_text(disk, ROOT "/step-000007.bad/x", "quarantined");
    toy_init(&toy, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1));
    save_step(run, &toy, 2, 2);
    close_run(run);
    char *tree = simdisk_tree(disk, ROOT);
    assert_string_equal(tree, "LATEST\nfoo.tmp\nnotes.txt\nstep-000002/\nstep-000002/MANIFEST.json\n"
                              "step-000002/model.safetensors\nstep-000002/optimizer.safetensors\n"
                              "step-000002/pawl.state.json\nstep-000002/trainer_state.json\nstep-000007.bad/\n"
                              "step-000007.bad/x\nstep-2.tmp/\nstep-2.tmp/x");
    free(tree);
    toy_release(&toy);
    simdisk_free(disk);
}

/* A directory of a disk, copied under another name. */
static void
copy_step(struct simdisk *disk, const char *from, const char *to)
{
    const char *const files[] = { "MANIFEST.json", "model.safetensors", "optimizer.safetensors", "pawl.state.json",
                                  "trainer_state.json" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char source[128], target[128];
        size_t n = 0;
        (void)snprintf(source, sizeof source, "%s/%s", from, files[i]);
        (void)snprintf(target, sizeof target, "%s/%s", to, files[i]);
        const unsigned char *data = simdisk_get(disk, source, &n);
        assert_non_null(data);
        unsigned char *copy = malloc(n + 1);
        assert_non_null(copy);
        memcpy(copy, data, n);
        simdisk_put(disk, target, copy, n);
        free(copy);
    }
}

enum prev_case { PREV_ALONE, PREV_BESIDE_COMPLETE, PREV_BESIDE_BROKEN, PREV_BESIDE_BROKEN_AND_BAD };

/*
 * Goal: the next writer deletes a .prev when its step is complete, else renames it back, a broken step having become .bad.
 * Method: the four ways a root can look, another step saved, the tree compared.
 */
static void
prev_is_settled(void **state)
{
    (void)state;
    for (enum prev_case which = PREV_ALONE; which <= PREV_BESIDE_BROKEN_AND_BAD; which++) {
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct heard heard = { .n = 0 };
        struct toy toy;
        copy_step(disk, ROOT "/step-000001", ROOT "/step-000001.prev");
        if (which == PREV_ALONE)
            simdisk_remove(disk, ROOT "/step-000001");
        if (which >= PREV_BESIDE_BROKEN) /* of the right size: only a hash tells */
            simdisk_flip(disk, ROOT "/step-000001/model.safetensors", 190, 1);
        if (which == PREV_BESIDE_BROKEN_AND_BAD)
            simdisk_put_text(disk, ROOT "/step-000001.bad/x", "of an earlier time");
        toy_init(&toy, 2);
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.warning = hear, .context = &heard));
        save_step(run, &toy, 2, 2);
        close_run(run);
        assert_root_holds(simdisk_os(disk));
        assert_true(simdisk_has(disk, ROOT "/step-000001"));
        assert_false(simdisk_has(disk, ROOT "/step-000001.prev"));
        assert_false(simdisk_has(disk, ROOT "/step-000001.tmp"));
        assert_int_equal(simdisk_has(disk, ROOT "/step-000001.bad"), which >= PREV_BESIDE_BROKEN);
        assert_int_equal(simdisk_has(disk, ROOT "/step-000001.bad/x"), which == PREV_BESIDE_BROKEN_AND_BAD);
        assert_int_equal(heard_of(&heard, "mended"), which == PREV_BESIDE_COMPLETE ? 0 : which == PREV_ALONE ? 1 : 2);
        toy_release(&toy);
        simdisk_free(disk);
    }
}

/* ---- filesystems that lack things ---- */

/* Goal: each feature that is missing costs one warning per run, naming what was done instead, and nothing else. */
static void
lacking_features_are_named(void **state)
{
    (void)state;
    const struct {
        unsigned feature;
        const char *code;
    } cases[] = {
        { SIM_EXCHANGE, "no-exchange" }, { SIM_NO_REPLACE, "no-rename-no-replace" }, { SIM_RESERVE, "no-reserve" },
        { SIM_LOCK, "lock-file" },       { SIM_SYNC_DIR, "no-directory-sync" },      { SIM_KINDS, NULL },
        { SIM_SET_BYTES, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct heard heard = { .n = 0 };
        struct toy toy;
        simdisk_lack(disk, cases[i].feature);
        toy_init(&toy, 2);
        struct pawl_run *run =
            open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 2, .warning = hear, .context = &heard));
        save_step(run, &toy, 2, 2);
        save_step(run, &toy, 3, 3);
        save_step(run, &toy, 3, 4);
        close_run(run);
        assert_root_holds(simdisk_os(disk));
        assert_false(simdisk_has(disk, ROOT "/step-000001"));
        assert_true(simdisk_has(disk, ROOT "/step-000002"));
        assert_true(simdisk_has(disk, ROOT "/step-000003"));
        assert_int_equal(heard.n, cases[i].code == NULL ? 0 : 1);
        if (cases[i].code != NULL)
            assert_string_equal(heard.codes[0], cases[i].code);
        assert_int_equal(simdisk_open_handles(disk), 0);
        toy_release(&toy);
        simdisk_free(disk);
    }
}

/* ---- space ---- */

/* Goal: a full disk is told before anything is written, with both numbers, and the old step is intact. */
static void
no_space_names_both_numbers(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct toy toy;
    toy_init(&toy, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    uint64_t before = simdisk_fingerprint(disk);
    simdisk_set_capacity(disk, 2000);
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_NO_SPACE);
    uint64_t needed = 0, available = 0;
    const char *at = strstr(err.message, "no space in 'root': ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "no space in 'root': %" SCNu64 " bytes are needed, %" SCNu64 " bytes are available",
                            &needed, &available),
                     2);
    assert_true(strncmp(err.message, "save step 2: ", 13) == 0);
    assert_int_equal(simdisk_fingerprint(disk), before);
    /* The number is the truth: with exactly so many bytes it goes. */
    simdisk_set_capacity(disk, 2000 - available + needed);
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_OK);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: what a crashed writer left must not keep a run from saving for ever. Method: it fills the disk. */
static void
stale_entries_make_room(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct toy toy;
    char *garbage = calloc(1, 100000);
    assert_non_null(garbage);
    simdisk_put(disk, ROOT "/step-000050.tmp/model.safetensors", garbage, 100000);
    free(garbage);
    simdisk_set_capacity(disk, 101000 + 3000);
    toy_init(&toy, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    save_step(run, &toy, 2, 2);
    assert_false(simdisk_has(disk, ROOT "/step-000050.tmp"));
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/*
 * Goal: disk full at any point: "no space", needed and available, the old step intact, no debris. Method: the free
 * space is not told beforehand (as with quotas), and every capacity from nothing to enough is tried.
 */
static int
lie_about_space(void *context, struct pawl_os_dir *dir, uint64_t *ret_available)
{
    (void)context;
    (void)dir;
    *ret_available = UINT64_MAX;
    return 0;
}

static void
disk_full_at_any_point(void **state)
{
    (void)state;
    struct simdisk *model = disk_with(&(struct saved){ 1, 1 }, 1);
    unsigned failed = 0;
    for (uint64_t capacity = 1500;; capacity += 37) {
        struct simdisk *disk = simdisk_clone(model);
        struct pawl_os os = *simdisk_os(disk);
        struct pawl_error err = PAWL_ERROR_INIT;
        struct toy toy;
        os.dir_space = lie_about_space;
        toy_init(&toy, 2);
        struct pawl_run *run = open_run(&os, PAWL_RUN_OPTIONS(0));
        uint64_t before = simdisk_fingerprint(disk);
        simdisk_set_capacity(disk, capacity);
        enum pawl_status st = pawl_run_save(run, toy.state, 2, NULL, &err);
        if (st != PAWL_OK) {
            failed++;
            assert_int_equal(st, PAWL_NO_SPACE);
            assert_string_equal(err.code, "no-space");
            assert_non_null(strstr(err.message, "are needed"));
            assert_int_equal(simdisk_fingerprint(disk), before);
            simdisk_set_capacity(disk, UINT64_MAX);
            save_step(run, &toy, 2, 2);
        }
        close_run(run);
        toy_release(&toy);
        simdisk_free(disk);
        if (st == PAWL_OK)
            break;
    }
    assert_true(failed > 10);
    simdisk_free(model);
}

/* ---- sources, cancelling, failpoints ---- */

struct failing {
    unsigned reads;
};

static enum pawl_status
read_failing(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err)
{
    struct failing *failing = context;
    (void)offset;
    memset(destination, 7, n);
    failing->reads++;
    if (failing->reads < 2)
        return PAWL_OK;
    err->status = PAWL_TIME_OUT;
    (void)snprintf(err->message, sizeof err->message, "the device does not answer");
    return PAWL_TIME_OUT;
}

/* Goal: a source that fails at tensor k leaves nothing new, and the error names the tensor and keeps the source's own words. */
static void
failing_source_names_the_tensor(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct failing failing = { 0 };
    struct pawl_source source = { 16, read_failing, &failing };
    const uint64_t shape[] = { 4 };
    struct pawl_state *described = NULL;
    assert_int_equal(pawl_state_new(&described, NULL), PAWL_OK);
    const char *const names[] = { "a", "b", "c" };
    for (size_t i = 0; i < 3; i++) {
        struct pawl_tensor tensor = { .size = sizeof tensor,
                                      .slot = PAWL_MODEL,
                                      .dtype = PAWL_F32,
                                      .name = pawl_str_z(names[i]),
                                      .rank = 1,
                                      .shape = shape,
                                      .source = &source };
        assert_int_equal(pawl_state_tensor(described, &tensor, &err), PAWL_OK);
    }
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    uint64_t before = simdisk_fingerprint(disk);
    assert_int_equal(pawl_run_save(run, described, 1, NULL, &err), PAWL_TIME_OUT);
    assert_string_equal(err.tensor, "b");
    assert_string_equal(err.message, "save step 1: tensor 'b': the device does not answer");
    assert_int_equal(simdisk_fingerprint(disk), before);
    close_run(run);
    pawl_state_free(described);
    simdisk_free(disk);
}

struct stopping {
    uint64_t last, total;
    unsigned calls, stop_at;
};

static int
stop(void *context, uint64_t done, uint64_t total)
{
    struct stopping *stopping = context;
    assert_true(done >= stopping->last && done <= total);
    stopping->last = done;
    stopping->total = total;
    return ++stopping->calls == stopping->stop_at;
}

/* Goal: progress reaches its total, and a save can be abandoned at every call of it until it is published. */
static void
canceled_at_every_call(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct toy toy;
    toy_init(&toy, 2);
    unsigned stop_at = 1;
    for (;; stop_at++) {
        struct stopping stopping = { .stop_at = stop_at };
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.progress = stop, .context = &stopping));
        uint64_t before = simdisk_fingerprint(disk);
        enum pawl_status st = pawl_run_save(run, toy.state, 2, NULL, &err);
        close_run(run);
        if (st == PAWL_OK) {
            assert_int_equal(stopping.last, stopping.total);
            break;
        }
        assert_int_equal(st, PAWL_CANCELED);
        assert_string_equal(err.message, "save step 2: the save was abandoned by its caller");
        assert_int_equal(simdisk_fingerprint(disk), before);
    }
    assert_true(stop_at > 4);
    toy_release(&toy);
    simdisk_free(disk);
}

struct tripping {
    unsigned calls, at;
};

static int
trip(void *context, const char *name)
{
    (void)name;
    struct tripping *tripping = context;
    return tripping->calls++ == tripping->at;
}

/* Goal: a failpoint fails the save as an I/O error there would: before the commit nothing is left, after it the save is durable. */
static void
failpoints_fail_the_save(void **state)
{
    (void)state;
    struct toy toy;
    toy_init(&toy, 2);
    for (unsigned at = 0; at < 8; at++) {
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct tripping tripping = { 0, at };
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.failpoint = trip, .context = &tripping));
        uint64_t before = simdisk_fingerprint(disk);
        enum pawl_status st = pawl_run_save(run, toy.state, 2, NULL, &err);
        /* 4 files, then before-manifest, before-rename, before-latest, before-prune */
        assert_int_equal(st, at < 7 ? PAWL_IO : PAWL_OK);
        if (at < 7) {
            assert_int_equal(simdisk_fingerprint(disk), before);
            assert_non_null(strstr(err.message, at < 4    ? "failpoint 'save/after-file'"
                                                : at == 4 ? "failpoint 'save/before-manifest'"
                                                : at == 5 ? "failpoint 'save/before-rename'"
                                                          : "failpoint 'save/before-latest'"));
        }
        assert_root_holds(simdisk_os(disk));
        close_run(run);
        simdisk_free(disk);
    }
    toy_release(&toy);
}

/* ---- rejections ---- */

/* Goal: what is refused is refused before anything is written. */
static void
rejections_touch_nothing(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct toy toy;
    toy_init(&toy, 2);
    simdisk_put_text(disk, ROOT "/step-000002.tmp/x", "stale");
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    uint64_t before = simdisk_fingerprint(disk);
    unsigned calls = simdisk_calls(disk, SIM_ANY);

    assert_int_equal(pawl_run_save(run, toy.state, -1, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "save step -1: step -1 is negative");
    toy.rng.inc = 4;
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message,
                        "save step 2: generator 'pcg' has the even increment 0000000000000004: that is no PCG stream");
    toy_set(&toy, 2);
    toy.tokens = -5;
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "save step 2: number 'tokens_seen' is -5, expected 0 or more");
    toy_set(&toy, 2);
    toy.lr = -0.5;
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "save step 2: number 'lr' is -0.5, expected a finite double of 0 or more");
    toy.lr = (double)INFINITY;
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "save step 2: number 'lr' is Infinity, expected a finite double");
    toy_set(&toy, 2);
    assert_int_equal(pawl_state_optimizer_json(toy.state, PAWL_STR("{\"lr\":1}"), NULL), PAWL_OK);
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message,
                        "save step 2: 'lr' of the optimizer's state is both a number and a key of its JSON");

    assert_int_equal(simdisk_fingerprint(disk), before);
    assert_int_equal(simdisk_calls(disk, SIM_ANY), calls); /* the disk was not even asked */
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

/* ---- bytes ---- */

/* Goal: two saves of one state are byte-identical, whatever the order of description and however they came about. */
static void
same_state_same_bytes(void **state)
{
    (void)state;
    char *first = manifest_of(7, 3);
    char *second = manifest_of(7, 3);
    char *other = manifest_of(7, 4);
    assert_string_equal(first, second);
    assert_string_not_equal(first, other);
    free(first);
    free(second);
    free(other);
}

static void
created_at_is_written_when_asked(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    struct toy toy;
    toy_init(&toy, 1);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.write_created_at = 1));
    save_step(run, &toy, 1, 1);
    close_run(run);
    int year, month, day, hour, minute, second;
    char zone;
    assert_int_equal(sscanf(simdisk_text(disk, ROOT "/step-000001/MANIFEST.json"),
                            "{\n  \"kind\": \"checkpoint\",\n  \"created_at\": \"%4d-%2d-%2dT%2d:%2d:%2d%c\",", &year,
                            &month, &day, &hour, &minute, &second, &zone),
                     7);
    assert_int_equal(zone, 'Z');
    assert_root_holds(simdisk_os(disk));
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: the error of an open disk says what, where and why. */
static void
errors_name_operation_and_path(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct toy toy;
    toy_init(&toy, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(0));
    simdisk_fail(disk, SIM_FILE_SYNC, 1, 0, 5 /* EIO */);
    assert_int_equal(pawl_run_save(run, toy.state, 2, NULL, &err), PAWL_IO);
    assert_non_null(strstr(err.message, "save step 2: sync 'root/step-000002.tmp/optimizer.safetensors' at offset "));
    assert_non_null(strstr(err.message, "Input/output error"));
    assert_string_equal(err.path, "root/step-000002.tmp/optimizer.safetensors");
    assert_int_equal(err.system_errno, 5);
    close_run(run);
    toy_release(&toy);
    simdisk_free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_save_in_order),
        cmocka_unit_test(replacement_by_exchange_in_order),
        cmocka_unit_test(replacement_by_prev_in_order),
        cmocka_unit_test(retention_in_order),
        cmocka_unit_test(parents_are_durable),
        cmocka_unit_test(leftovers_are_removed),
        cmocka_unit_test(prev_is_settled),
        cmocka_unit_test(lacking_features_are_named),
        cmocka_unit_test(no_space_names_both_numbers),
        cmocka_unit_test(stale_entries_make_room),
        cmocka_unit_test(disk_full_at_any_point),
        cmocka_unit_test(failing_source_names_the_tensor),
        cmocka_unit_test(canceled_at_every_call),
        cmocka_unit_test(failpoints_fail_the_save),
        cmocka_unit_test(rejections_touch_nothing),
        cmocka_unit_test(same_state_same_bytes),
        cmocka_unit_test(created_at_is_written_when_asked),
        cmocka_unit_test(errors_name_operation_and_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
