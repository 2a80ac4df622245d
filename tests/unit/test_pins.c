/* checkpoint/pins.c: RETENTION.json, rule by rule, and pinning under the lock, within a run and beside one. */
#include "unit/save_support.h"

#include "checkpoint/pins.h"

static char *
pins_of(const struct simdisk *disk)
{
    static char text[256];
    int64_t *steps = NULL;
    size_t n = 0;
    struct pawl_error err = PAWL_ERROR_INIT;
    text[0] = '\0';
    if (pawl_ckpt_pins_os(simdisk_os((struct simdisk *)(uintptr_t)disk), PAWL_STR(ROOT), &steps, &n, &err) != PAWL_OK)
        return err.message[0] == '\0' ? NULL : strcpy(text, "failed");
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s%" PRId64, i == 0 ? "" : " ", steps[i]);
    }
    pawl_free(steps);
    return text;
}

static enum pawl_status
pin(struct simdisk *disk, int64_t step, bool is_pinned, struct pawl_error *err)
{
    enum pawl_status st = pawl_ckpt_pin_os(simdisk_os(disk), PAWL_STR(ROOT), step, is_pinned, err);
    assert_int_equal(simdisk_open_handles(disk), 0);
    return st;
}

/* Goal: a set of steps, ascending, each once; and the file is exactly that of the page. */
static void
pins_are_a_set(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    const int64_t order[] = { 7, INT64_MAX, 0, 7, 3 };
    assert_string_equal(pins_of(disk), "");
    assert_int_equal(pin(disk, 5, false, NULL), PAWL_OK);
    assert_false(simdisk_has(disk, ROOT "/RETENTION.json")); /* unpinning what is not pinned writes nothing */
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        assert_int_equal(pin(disk, order[i], true, NULL), PAWL_OK);
    assert_string_equal(pins_of(disk), "0 3 7 9223372036854775807");
    assert_string_equal(
        simdisk_text(disk, ROOT "/RETENTION.json"),
        "{\n  \"kind\": \"retention\",\n  \"pinned\": [\n    0,\n    3,\n    7,\n    9223372036854775807\n"
        "  ]\n}\n");
    assert_int_equal(pin(disk, 3, false, NULL), PAWL_OK);
    assert_int_equal(pin(disk, 4, false, NULL), PAWL_OK);
    assert_string_equal(pins_of(disk), "0 7 9223372036854775807");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pin(disk, order[i], false, NULL), PAWL_OK);
    assert_string_equal(simdisk_text(disk, ROOT "/RETENTION.json"),
                        "{\n  \"kind\": \"retention\",\n  \"pinned\": []\n}\n");
    simdisk_free(disk);
}

static void
pins_need_the_lock_and_a_root(void **state)
{
    (void)state;
    struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
    struct pawl_error err = PAWL_ERROR_INIT;
    struct toy toy;
    toy_init(&toy, 2);
    struct pawl_run *run = open_run(simdisk_os(disk), PAWL_RUN_OPTIONS(.keep = 1));
    assert_int_equal(pawl_ckpt_pin_os(simdisk_os(disk), PAWL_STR(ROOT), 1, true, &err), PAWL_BUSY);
    assert_int_equal(pawl_run_pin(run, 1, &err), PAWL_OK); /* the run has it */
    save_step(run, &toy, 2, 2);
    save_step(run, &toy, 3, 3);
    assert_true(simdisk_has(disk, ROOT "/step-000001"));
    assert_false(simdisk_has(disk, ROOT "/step-000002"));
    assert_int_equal(pawl_run_unpin(run, 1, &err), PAWL_OK);
    save_step(run, &toy, 4, 4);
    assert_false(simdisk_has(disk, ROOT "/step-000001"));
    close_run(run);
    assert_int_equal(pin(disk, -1, true, &err), PAWL_ARGUMENT);
    assert_string_equal(err.message, "the step is -1, expected 0 or more");
    assert_int_equal(pawl_ckpt_pin_os(simdisk_os(disk), PAWL_STR("nowhere"), 1, true, &err), PAWL_NO_FILE);
    assert_int_equal(pawl_run_pin(NULL, 1, &err), PAWL_ARGUMENT);
    toy_release(&toy);
    simdisk_free(disk);
}

/* Goal: a document that breaks the schema is refused, said where, and left as it is: nobody's pins are lost by pinning. */
static void
malformed_pins_are_left_alone(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",
        "null",
        "{}",
        "{\"kind\": \"retention\"}",
        "{\"kind\": \"checkpoint\", \"pinned\": []}",
        "{\"kind\": 1, \"pinned\": []}",
        "{\"kind\": \"retention\", \"pinned\": {}}",
        "{\"kind\": \"retention\", \"pinned\": [\"1\"]}",
        "{\"kind\": \"retention\", \"pinned\": [1.0]}",
        "{\"kind\": \"retention\", \"pinned\": [-1]}",
        "{\"kind\": \"retention\", \"pinned\": [2, 1]}",
        "{\"kind\": \"retention\", \"pinned\": [1, 1]}",
        "{\"kind\": \"retention\", \"pinned\": [9223372036854775808]}",
        "{\"kind\": \"retention\", \"pinned\": [], \"more\": 1}",
        "{\"kind\": \"retention\", \"pinned\": [], \"pinned\": []}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct simdisk *disk = disk_with(&(struct saved){ 1, 1 }, 1);
        struct pawl_error err = PAWL_ERROR_INIT;
        simdisk_put_text(disk, ROOT "/RETENTION.json", texts[i]);
        uint64_t before = simdisk_fingerprint(disk);
        enum pawl_status st = pin(disk, 1, true, &err);
        if (st != PAWL_CORRUPT && st != PAWL_TRUNCATED)
            fail_msg("%s: %s", texts[i], pawl_status_name(st));
        assert_true(strncmp(err.message, "pin step 1: read 'RETENTION.json': ", 35) == 0);
        assert_string_equal(err.hint,
                            "mend or remove RETENTION.json in the root: while it is malformed no step is deleted");
        assert_int_equal(simdisk_fingerprint(disk), before);
        assert_string_equal(pins_of(disk), "failed");
        simdisk_free(disk);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pins_are_a_set),
        cmocka_unit_test(pins_need_the_lock_and_a_root),
        cmocka_unit_test(malformed_pins_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
