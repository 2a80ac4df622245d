#include "unit/model_tools.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "pawl/model.h"
#include "unit/hostile_texts.h"

/*
 * Goal: a header made to hurt is an error or an answer, with the right code. Method: every kind of hostile_texts.h with 1 MB of it;
 * test_hostile_large has the 100 MB, and looks at the memory. What is quadratic in it takes minutes, and the test's time-out ends it.
 */
static void
hostile_headers_are_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_HOSTILE; i++) {
        struct pawl_buffer file = PAWL_BUFFER_INIT;
        make_hostile(&file, (enum hostile)i, 1000000);
        expect_hostile((enum hostile)i, &file);
        pawl_buffer_release(&file);
    }
}

static enum pawl_status
try_open(const char *path, struct pawl_error *err)
{
    struct pawl_model *model = NULL;
    *err = (struct pawl_error)PAWL_ERROR_INIT;
    enum pawl_status st = pawl_model_open_z(path, NULL, &model, err);
    assert_int_equal(st == PAWL_OK, model != NULL);
    pawl_model_close(model);
    return st;
}

/* Goal: what is no file is said to be none, at once: no reader waits for a FIFO's writer, and a device is not read. */
static void
what_is_no_file(void **state)
{
    (void)state;
    struct pawl_error err;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(try_open("fifo", &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-a-file");
    assert_int_equal(try_open("/dev/null", &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-a-file");
    assert_int_equal(try_open("/dev/zero", &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-a-file");
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(try_open("socket", &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-a-file");
    close(fd);
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_int_equal(try_open("folder", &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "not-safetensors");
    assert_int_equal(try_open("folder/nothing", &err), PAWL_NO_FILE);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_not_equal(try_open("loop", &err), PAWL_OK);
}

/* In a process without privileges: 0 when a file and a folder that may not be read are "permission", the first fault otherwise. */
static int
look_without_privileges(void)
{
    struct pawl_error err;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 9;
    if (try_open("file", &err) != PAWL_PERMISSION || strcmp(err.code, "permission") != 0)
        return 1;
    if (try_open("folder/file", &err) != PAWL_PERMISSION || strcmp(err.code, "permission") != 0)
        return 2;
    if (try_open("folder", &err) != PAWL_PERMISSION)
        return 3;
    struct pawl_report *report = NULL;
    if (pawl_verify(PAWL_STR("file"), NULL, &report, &err) != PAWL_PERMISSION)
        return 4;
    pawl_report_free(report);
    return 0;
}

/* Goal: a file without permission is never "not found" and never a fault of its content: a loader must not go on without it. */
static void
no_permission_is_not_absence(void **state)
{
    (void)state;
    char here[4096];
    put_model("file", "{}", NULL, 0);
    assert_int_equal(mkdir("folder", 0755), 0);
    put_model("folder/file", "{}", NULL, 0);
    assert_int_equal(chmod("file", 0), 0);
    assert_int_equal(chmod("folder", 0), 0);
    /* the test's own folder must let the other user through; above it the build's may not */
    assert_int_equal(chmod(".", 0755), 0);
    assert_non_null(getcwd(here, sizeof here));
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(look_without_privileges());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod("folder", 0755), 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 9) {
        print_message("skipped: root that can't become another user\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * Goal: a file cut or changed in place while it is open is an error of every call that reads, slices and casts too, and no signal; one that
 * is replaced by rename keeps its old contents. Method: 1 MiB of which half goes, then a change of one byte.
 */
static void
files_that_change_under_a_reader(void **state)
{
    (void)state;
    static unsigned char data[1 << 20], got[1 << 20];
    static float values[1 << 19];
    const char *header = "{\"w\":{\"dtype\":\"F16\",\"shape\":[1024,512],\"data_offsets\":[0,1048576]}}";
    struct pawl_model *model;
    struct pawl_error err = PAWL_ERROR_INIT;
    const struct pawl_slice_axis last = { .start = -1, .flags = PAWL_SLICE_INDEX };
    const struct pawl_slice_axis first = { .start = 0, .flags = PAWL_SLICE_INDEX };
    const struct pawl_slice_axis column[2] = { { .flags = 0 }, { .start = 3, .flags = PAWL_SLICE_INDEX } };
    memset(data, 0x3c, sizeof data);

    put_model("w", header, data, sizeof data);
    assert_int_equal(pawl_model_open_z("w", NULL, &model, NULL), PAWL_OK);
    const struct pawl_tensor_info *w = pawl_model_find(model, PAWL_STR("w"));
    put_model("new", "{}", NULL, 0);
    assert_int_equal(rename("new", "w"), 0); /* replaced: the old one lives on */
    assert_int_equal(pawl_model_read(model, w, PAWL_F16, got, sizeof got, &err), PAWL_OK);
    assert_memory_equal(got, data, sizeof data);
    assert_int_equal(pawl_model_read_slice(model, w, &last, 1, PAWL_F16, 0, got, 1024, &err), PAWL_OK);
    pawl_model_close(model);

    put_model("w", header, data, sizeof data);
    assert_int_equal(pawl_model_open_z("w", NULL, &model, NULL), PAWL_OK);
    w = pawl_model_find(model, PAWL_STR("w"));
    const void *mapped;
    assert_int_equal(truncate("w", 1 << 19), 0);
    assert_int_equal(pawl_model_read(model, w, PAWL_F16, got, sizeof got, &err), PAWL_TRUNCATED);
    assert_int_equal(pawl_model_read(model, w, PAWL_F32, values, sizeof values, &err), PAWL_TRUNCATED);
    assert_int_equal(pawl_model_read_slice(model, w, &last, 1, PAWL_F16, 0, got, 1024, &err), PAWL_TRUNCATED);
    assert_int_equal(pawl_model_read_slice(model, w, column, 2, PAWL_F32, 0, values, 4096, &err), PAWL_TRUNCATED);
    assert_int_equal(pawl_model_read_slice(model, w, &first, 1, PAWL_F16, 0, got, 1024, &err),
                     PAWL_TRUNCATED); /* it is there: and yet */
    assert_int_equal(pawl_model_map(model, w, &mapped, NULL, &err), PAWL_TRUNCATED);
    assert_string_equal(err.code, "truncated");
    pawl_model_close(model);

    put_model("w", header, data, sizeof data);
    assert_int_equal(pawl_model_open_z("w", NULL, &model, NULL), PAWL_OK);
    w = pawl_model_find(model, PAWL_STR("w"));
    struct timespec times[2] = { { 1000, 0 }, { 1000, 0 } }; /* a write leaves another time: so does this, at once */
    assert_int_equal(utimensat(AT_FDCWD, "w", times, 0), 0);
    assert_int_equal(pawl_model_read(model, w, PAWL_F16, got, sizeof got, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "changed");
    assert_int_equal(pawl_model_read_slice(model, w, &first, 1, PAWL_F16, 0, got, 1024, &err), PAWL_CORRUPT);
    pawl_model_close(model);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_enter, fixture_leave)
    const struct CMUnitTest tests[] = {
        TEST(hostile_headers_are_answered),
        TEST(what_is_no_file),
        TEST(no_permission_is_not_absence),
        TEST(files_that_change_under_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
