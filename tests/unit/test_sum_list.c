/*
 * Goal: the files of a list of sums are hashed several at once, and nobody can tell: a verdict each in the order of the list, faults with the file that has
 * them, no more descriptors than there are, all of it given back.
 *
 * Method: lists of many files in a folder of the host, small and large, right, wrong, missing and unreadable; few descriptors; each allocation fails.
 */
#include "unit/os_fixture.h"

#include <pthread.h>
#include <sys/resource.h>
#include "checkpoint/hashing.h"
#include "pawl/model.h"
#include "unit/failing_memory.h"

static pthread_t tester;

static bool
is_of_tester(void)
{
    return pthread_equal(pthread_self(), tester) != 0;
}

#define LIST "d/SHA256SUMS"
#define FILES 300
/* With one in 16 that large, threads are worth it in each batch of files. */
#define LARGE_BYTES ((size_t)5 << 18)

enum made { MADE_RIGHT, MADE_WRONG, MADE_MISSING, MADE_FOLDER, MADE_LOOP, MADE_CLOSED };

static enum made
made_of(size_t i)
{
    return i % 50 == 7    ? MADE_MISSING
           : i % 50 == 16 ? MADE_WRONG
           : i == 64      ? MADE_WRONG
           : i == 20      ? MADE_FOLDER
           : i == 130     ? MADE_LOOP
           : i == 63      ? MADE_CLOSED
                          : MADE_RIGHT;
}

static const char *
name_of(size_t i)
{
    static char name[32];
    (void)snprintf(name, sizeof name, "d/%03zu", i);
    return name;
}

/* Bytes of file i, each file's others. */
static size_t
content_of(size_t i, unsigned char *content)
{
    size_t n = i % 16 == 0 ? LARGE_BYTES + i : i % 9;
    for (size_t k = 0; k < n; k++)
        content[k] = (unsigned char)(k * 7 + k / 251 + i * 31);
    return n;
}

static void
put(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void
make_file(size_t i, enum made made, unsigned char *content, FILE *list)
{
    unsigned char digest[32];
    char hex[65];
    size_t n = content_of(i, content);
    const char *name = name_of(i);
    assert_int_equal(pawl_sha256_of(content, n, digest, NULL), PAWL_OK);
    pawl_sha256_print(digest, hex);
    (void)fprintf(list, "%s  %s\n", hex, name + 2);
    if (made == MADE_WRONG && n != 0)
        content[n - 1] ^= 1;
    if (made == MADE_FOLDER)
        assert_int_equal(mkdir(name, 0755), 0);
    else if (made == MADE_LOOP)
        assert_int_equal(symlink(name + 2, name), 0);
    else if (made != MADE_MISSING)
        put(name, content, made == MADE_WRONG && n == 0 ? 1 : n);
    if (made == MADE_CLOSED)
        assert_int_equal(chmod(name, 0), 0);
}

/* The list of n files, made as `made` says; NULL: all are right. */
static void
make_list(size_t n, enum made (*made)(size_t i))
{
    unsigned char *content = malloc(LARGE_BYTES + FILES);
    assert_non_null(content);
    assert_int_equal(mkdir("d", 0755), 0);
    FILE *list = fopen(LIST, "wb");
    assert_non_null(list);
    for (size_t i = 0; i < n; i++)
        make_file(i, made == NULL ? MADE_RIGHT : made(i), content, list);
    assert_int_equal(fclose(list), 0);
    free(content);
}

static struct pawl_report *
verify(void)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_report *report = NULL;
    if (pawl_verify_sums(PAWL_STR(LIST), &report, &err) != PAWL_OK)
        fail_msg("%s", err.message);
    return report;
}

static void
check_verdict(const struct pawl_verdict *verdict, size_t i)
{
    static const char *const codes[] = { [MADE_WRONG] = "hash",
                                         [MADE_MISSING] = "missing-file",
                                         [MADE_FOLDER] = "not-a-file",
                                         [MADE_LOOP] = "io",
                                         [MADE_CLOSED] = "permission" };
    enum made made = made_of(i);
    bool is_read = made == MADE_RIGHT || made == MADE_WRONG;
    assert_string_equal(verdict->name, name_of(i));
    if (made == MADE_CLOSED && geteuid() == 0)
        return; /* whom nothing is closed to */
    assert_int_equal(verdict->is_ok, made == MADE_RIGHT);
    assert_int_equal(verdict->files, is_read);
    assert_int_equal(verdict->n_problems, made != MADE_RIGHT);
    if (made == MADE_RIGHT)
        assert_int_equal(verdict->bytes, i % 16 == 0 ? LARGE_BYTES + i : i % 9);
    else if (strcmp(verdict->problems[0].code, codes[made]) != 0)
        fail_msg("%s: '%s', expected '%s'", verdict->name, verdict->problems[0].code, codes[made]);
}

static void
verdicts_in_the_order_of_the_list(void **state)
{
    (void)state;
    size_t n;
    make_list(FILES, made_of);
    int before = count_descriptors();
    struct pawl_report *report = verify();
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(n, FILES);
    for (size_t i = 0; i < n; i++)
        check_verdict(&verdicts[i], i);
    pawl_report_free(report);
    assert_int_equal(count_descriptors(), before);
}

/* The hash in the message is that of the file itself, not of one beside it. */
static void
the_digest_that_was_found_is_told(void **state)
{
    (void)state;
    unsigned char digest[32];
    char hex[65], expected[200];
    size_t n;
    assert_int_equal(mkdir("d", 0755), 0);
    FILE *list = fopen(LIST, "wb");
    for (size_t i = 0; i < 8; i++) {
        const char *name = name_of(i);
        if (i % 3 != 1) /* a few are not there, so that those behind them move up */
            put(name, name, strlen(name));
        (void)fprintf(list, "%064zu  %s\n", i, name + 2);
    }
    assert_int_equal(fclose(list), 0);
    struct pawl_report *report = verify();
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 8);
    for (size_t i = 0; i < n; i++) {
        const char *name = name_of(i);
        assert_int_equal(pawl_sha256_of(name, strlen(name), digest, NULL), PAWL_OK);
        pawl_sha256_print(digest, hex);
        (void)snprintf(expected, sizeof expected, "expected SHA-256 %064zu, found %s", i, hex);
        assert_int_equal(verdicts[i].n_problems, 1);
        assert_string_equal(verdicts[i].problems[0].message,
                            i % 3 == 1 ? "it is in the list, and not there" : expected);
    }
    pawl_report_free(report);
}

/* A process that may open five more files verifies a list of a hundred. */
static void
with_few_descriptors(void **state)
{
    (void)state;
    struct rlimit limit, low;
    size_t n;
    make_list(100, NULL);
    int next = open(LIST, O_RDONLY);
    assert_true(next >= 0);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)next + 5;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct pawl_report *report = verify();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct pawl_verdict *verdicts = pawl_report_verdicts(report, &n);
    assert_int_equal(n, 100);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(verdicts[i].name, name_of(i));
        assert_true(verdicts[i].is_ok);
    }
    pawl_report_free(report);
}

static void
a_file_that_changes_meanwhile_is_told(void **state)
{
    (void)state;
    struct pawl_file files[2] = { PAWL_FILE_INIT, PAWL_FILE_INIT };
    struct pawl_hash_job jobs[2];
    for (size_t i = 0; i < 2; i++) {
        host_put(name_of(i) + 2, "as it was");
        assert_int_equal(pawl_file_open_path(&files[i], pawl_os_posix(), name_of(i) + 2, NULL), PAWL_OK);
        jobs[i] = (struct pawl_hash_job){ .file = &files[i], .must_stay = i == 0 };
        assert_int_equal(pawl_sha256_new(&jobs[i].hash, NULL), PAWL_OK);
        host_put(name_of(i) + 2, "as it was, and more");
    }
    pawl_hash_files(jobs, 2);
    assert_int_equal(jobs[0].status, PAWL_CORRUPT);
    assert_string_equal(jobs[0].error.code, "changed");
    assert_int_equal(jobs[1].status, PAWL_OK);
    for (size_t i = 0; i < 2; i++) {
        pawl_sha256_free(jobs[i].hash);
        pawl_file_release(&files[i]);
    }
}

static void
every_allocation_fails(void **state)
{
    (void)state;
    make_list(12, NULL);
    int before = count_descriptors();
    for (long i = 0;; i++) {
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_report *report = NULL;
        assert_true(i < 10000);
        tester = pthread_self();
        is_counted = is_of_tester;
        has_failed = false;
        until_failure = i;
        enum pawl_status st = pawl_verify_sums(PAWL_STR(LIST), &report, &err);
        until_failure = -1;
        pawl_report_free(report);
        assert_int_equal(count_descriptors(), before);
        if (!has_failed) {
            assert_int_equal(st, PAWL_OK);
            return;
        }
        if (st != PAWL_OK)
            assert_int_equal(st, PAWL_NO_MEMORY);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verdicts_in_the_order_of_the_list, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(the_digest_that_was_found_is_told, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(with_few_descriptors, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(a_file_that_changes_meanwhile_is_told, fixture_enter, fixture_leave),
        cmocka_unit_test_setup_teardown(every_allocation_fails, fixture_enter, fixture_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
