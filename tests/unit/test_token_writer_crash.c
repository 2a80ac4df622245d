#include "token_support.h"
#include <errno.h>
#include "base/arena.h"
#include "formats/tokens/manifest.h"
#include "sim/faultos.h"
#include "sim/simdisk.h"
#include "stream/token_writer.h"

/* The set that every test writes: three files; or, as the old one, two files of other ids. */
static enum pawl_status
write_set(const struct pawl_os *os, bool is_old, bool replace, struct pawl_error *err)
{
    struct pawl_token_writer *writer = NULL;
    struct pawl_token_writer_options options =
        PAWL_TOKEN_WRITER_OPTIONS(.max_ids = 1000, .replace = replace, .dataset = pawl_str_z(is_old ? "old" : "new"));
    enum pawl_status st = pawl_token_writer_open_on(os, PAWL_STR("set"), &options, &writer, err);
    for (uint32_t d = 0; st == PAWL_OK && d < (is_old ? 2 : 3); d++) {
        uint32_t ids[900];
        for (uint32_t i = 0; i < 900; i++)
            ids[i] = d * 900 + i + (is_old ? 100000 : 0);
        st = pawl_token_writer_document(writer, err);
        if (st == PAWL_OK)
            st = pawl_token_writer_add(writer, ids, 900, err);
    }
    if (st == PAWL_OK)
        st = pawl_token_writer_finish(writer, NULL, NULL, err);
    pawl_token_writer_close(writer);
    return st;
}

/* '-': no manifest; 'o', 'n': the whole old or new set, every file with its size and digest. Else the test fails. */
static char
what_is_there(const struct simdisk *disk)
{
    size_t bytes;
    const unsigned char *text = simdisk_get(disk, "set/_MANIFEST.json", &bytes);
    if (text == NULL)
        return '-';
    struct pawl_arena arena = PAWL_ARENA_INIT;
    struct pawl_token_manifest manifest;
    struct pawl_error err = PAWL_ERROR_INIT;
    if (pawl_token_manifest_parse(&arena, text, bytes, &manifest, &err) != PAWL_OK)
        fail_msg("a manifest is half-written: %s", err.message);
    char found = manifest.dataset.data[0];
    assert_int_equal(manifest.n_files, found == 'o' ? 2 : 3);
    for (size_t i = 0; i < manifest.n_files; i++) {
        char path[64];
        unsigned char digest[32];
        (void)snprintf(path, sizeof path, "set/%.*s", PAWL_ARG(manifest.files[i].name));
        const unsigned char *file = simdisk_get(disk, path, &bytes);
        if (file == NULL)
            fail_msg("a manifest lists '%s', which is not there", path);
        assert_int_equal(bytes, 1024 + 4 * manifest.files[i].ids);
        assert_int_equal(pawl_sha256_of(file, bytes, digest, NULL), PAWL_OK);
        if (memcmp(digest, manifest.files[i].sha256, 32) != 0)
            fail_msg("'%s' is not what the manifest says", path);
    }
    pawl_arena_release(&arena);
    return found;
}

/*
 * Goal: wherever power is lost, a manifest stands over whole files only: the old set's, the new one's, or there is none;
 * and a set that was reported finished is there. The next run works. Method: cut power at call 0, 1, 2 ... of the same
 * replace, with several seeds for what was not synced, reboot the simulated disk, look.
 */
static void
a_set_is_whole_or_not_there(void **state)
{
    (void)state;
    unsigned n_cuts = 0, n_old = 0, n_none = 0, n_new = 0;
    for (unsigned op = 0;; op++) {
        bool cut = false;
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct simdisk *disk = simdisk_new();
            assert_int_equal(write_set(simdisk_os(disk), true, false, NULL), PAWL_OK);
            assert_int_equal(what_is_there(disk), 'o');
            simdisk_cut_power_at(disk, op);
            enum pawl_status st = write_set(simdisk_os(disk), false, true, NULL);
            cut = simdisk_reboot(disk, seed * 1000 + op);
            char found = what_is_there(disk);
            if (st == PAWL_OK)
                assert_int_equal(found, 'n');
            n_old += found == 'o';
            n_none += found == '-';
            n_new += found == 'n';
            struct pawl_error err = PAWL_ERROR_INIT;
            if (write_set(simdisk_os(disk), false, true, &err) != PAWL_OK)
                fail_msg("after a cut at call %u: %s", op, err.message);
            assert_int_equal(what_is_there(disk), 'n');
            simdisk_free(disk);
        }
        if (!cut)
            break;
        n_cuts++;
    }
    print_message("%u cuts: %u old, %u none, %u new\n", n_cuts, n_old, n_none, n_new);
    assert_true(n_cuts > 40 && n_old != 0 && n_none != 0 && n_new != 0);
}

/* Goal: an interrupted run without a set before it is taken up without being asked. Method: the same cuts, a new directory. */
static void
an_interrupted_run_is_taken_up(void **state)
{
    (void)state;
    for (unsigned op = 0;; op++) {
        struct simdisk *disk = simdisk_new();
        simdisk_cut_power_at(disk, op);
        enum pawl_status st = write_set(simdisk_os(disk), false, false, NULL);
        bool cut = simdisk_reboot(disk, op);
        if (st == PAWL_OK) {
            assert_int_equal(what_is_there(disk), 'n');
        } else if (what_is_there(disk) == '-') {
            struct pawl_error err = PAWL_ERROR_INIT;
            if (write_set(simdisk_os(disk), false, false, &err) != PAWL_OK)
                fail_msg("after a cut at call %u: %s", op, err.message);
            assert_int_equal(what_is_there(disk), 'n');
        }
        simdisk_free(disk);
        if (!cut)
            return;
    }
}

/*
 * Goal: whichever call fails, the run says so or is whole all the same, nothing stays open, no manifest lies, and the next
 * run works. Method: the n-th call of any kind answers EIO, ENOSPC or EMFILE, for every n.
 */
static void
every_call_may_fail(void **state)
{
    (void)state;
    static const int CODES[] = { EIO, ENOSPC, EMFILE };
    unsigned failed = 0;
    for (size_t c = 0; c < sizeof CODES / sizeof CODES[0]; c++) {
        for (unsigned nth = 0;; nth++) {
            struct simdisk *disk = simdisk_new();
            assert_int_equal(write_set(simdisk_os(disk), true, false, NULL), PAWL_OK);
            struct faultos *faults = faultos_new(simdisk_os(disk));
            faultos_fail(faults, SIM_ANY, nth, 0, CODES[c]);
            struct pawl_error err = PAWL_ERROR_INIT;
            enum pawl_status st = write_set(faultos_os(faults), false, true, &err);
            bool was_met = faultos_was_met(faults);
            assert_int_equal(faultos_open(faults), 0);
            faultos_free(faults);
            if (st == PAWL_OK) {
                assert_int_equal(what_is_there(disk), 'n');
            } else {
                failed++;
                assert_true(was_met);
                assert_true(err.message[0] != '\0' && err.status == st);
                (void)what_is_there(disk);
                assert_int_equal(write_set(simdisk_os(disk), false, true, NULL), PAWL_OK);
                assert_int_equal(what_is_there(disk), 'n');
            }
            simdisk_free(disk);
            if (!was_met)
                break;
        }
    }
    assert_true(failed > 100);
}

/* Goal: short writes and reads, and interrupted calls, change nothing. Method: each write and read in turn cut to half. */
static void
short_counts_change_nothing(void **state)
{
    (void)state;
    static const enum sim_op OPS[] = { SIM_FILE_WRITE_AT, SIM_FILE_READ_AT };
    for (size_t o = 0; o < 2; o++) {
        for (int code = 0; code <= EINTR; code += EINTR) {
            for (unsigned nth = 0;; nth++) {
                struct simdisk *disk = simdisk_new();
                simdisk_fail(disk, OPS[o], nth, 0, code);
                assert_int_equal(write_set(simdisk_os(disk), false, false, NULL), PAWL_OK);
                assert_int_equal(what_is_there(disk), 'n');
                bool was_met = simdisk_fault_was_met(disk);
                simdisk_free(disk);
                if (!was_met)
                    break;
            }
        }
    }
}

/* Goal: a filesystem without directory sync, locks, no-replace renames or reserving takes a set all the same. */
static void
poor_filesystems_do(void **state)
{
    (void)state;
    struct simdisk *disk = simdisk_new();
    simdisk_lack(disk, SIM_NO_REPLACE | SIM_RESERVE | SIM_SYNC_DIR | SIM_KINDS | SIM_LOCK);
    assert_int_equal(write_set(simdisk_os(disk), true, false, NULL), PAWL_OK);
    assert_int_equal(write_set(simdisk_os(disk), false, false, NULL), PAWL_EXISTS);
    assert_int_equal(write_set(simdisk_os(disk), false, true, NULL), PAWL_OK);
    assert_int_equal(what_is_there(disk), 'n');
    simdisk_free(disk);

    disk = simdisk_new();
    struct faultos *faults = faultos_new(simdisk_os(disk));
    faultos_lack(faults, SIM_LOCK);
    assert_int_equal(write_set(faultos_os(faults), false, false, NULL), PAWL_OK);
    assert_int_equal(what_is_there(disk), 'n');
    faultos_free(faults);
    simdisk_free(disk);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_whole_or_not_there), cmocka_unit_test(an_interrupted_run_is_taken_up),
        cmocka_unit_test(every_call_may_fail),         cmocka_unit_test(short_counts_change_nothing),
        cmocka_unit_test(poor_filesystems_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
