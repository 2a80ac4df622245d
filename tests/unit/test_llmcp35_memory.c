/* LLMCP35 when memory runs out: the n-th allocation fails, for every n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#include "unit/llmcp35_support.h"
#include "unit/failing_memory.h"

/* Everything that a program does with a file; the last thing that it has is let go. */
static enum pawl_status
go_around(const unsigned char *bytes, size_t n, struct pawl_llmcp35_fault **ret_fault, struct pawl_error *err)
{
    struct pawl_llmcp35 *checkpoint = NULL, *made = NULL, *imported = NULL;
    struct pawl_llmcp35_training *training = NULL;
    struct pawl_llmcp35_bundle *bundle = NULL;
    struct pawl_llmcp35_facts facts;
    const double **arrays = NULL;
    size_t n_parameters = 0;
    enum pawl_status st = pawl_llmcp35_decode(bytes, n, &checkpoint, ret_fault, err);
    if (st == PAWL_OK)
        st = pawl_llmcp35_restore(checkpoint, &training, ret_fault, err);
    if (st == PAWL_OK) {
        /* an update to what is there: at step 0 it makes the moments */
        const struct pawl_llmcp35_parameter *p = pawl_llmcp35_training_parameters(training, &n_parameters);
        arrays = __real_calloc(3 * n_parameters, sizeof *arrays);
        assert_non_null(arrays);
        static double zeros[4096];
        for (size_t i = 0; i < n_parameters; i++) {
            assert_true(p[i].n <= 4096);
            arrays[i] = p[i].values;
            arrays[n_parameters + i] = p[i].first != NULL ? p[i].first : zeros;
            arrays[2 * n_parameters + i] = p[i].second != NULL ? p[i].second : zeros;
        }
        st = pawl_llmcp35_update(training,
                                 &PAWL_LLMCP35_UPDATE(.values = arrays, .first = arrays + n_parameters,
                                                      .second = arrays + 2 * n_parameters, .n = n_parameters,
                                                      .beta1_power = 0.5, .beta2_power = 0.5),
                                 err);
    }
    if (st == PAWL_OK)
        st = pawl_llmcp35_capture(training, &bundle, err);
    if (st == PAWL_OK) {
        pawl_llmcp35_facts(checkpoint, &facts);
        st = pawl_llmcp35_new(bundle, facts.tokenizer, 1, &made, ret_fault, err);
        if (st == PAWL_OK)
            bundle = NULL;
    }
    if (st == PAWL_OK)
        st = pawl_llmcp35_save_z(made, "memory.llmcp35", ret_fault, err);
    if (st == PAWL_OK)
        st = pawl_llmcp35_export_safetensors(made, PAWL_STR("memory.safetensors"), 1, err);
    if (st == PAWL_OK)
        st = pawl_llmcp35_import_safetensors(PAWL_STR("memory.safetensors"), &imported, ret_fault, err);
    if (st == PAWL_OK) {
        pawl_llmcp35_training_free(training);
        training = NULL;
        st = pawl_llmcp35_restore_move(imported, &training, ret_fault, err);
        if (st == PAWL_OK)
            imported = NULL;
    }
    free(arrays);
    pawl_llmcp35_free(checkpoint);
    pawl_llmcp35_free(made);
    pawl_llmcp35_free(imported);
    pawl_llmcp35_training_free(training);
    pawl_llmcp35_bundle_free(bundle);
    return st;
}

/*
 * Goal: without memory every call answers so, leaks nothing (the sanitizers' build tells) and crashes nowhere. Method: each
 * allocation of a whole round fails once; a fault that could not be told is NULL.
 */
static void
every_allocation_fails_once(void **state)
{
    (void)state;
    static const char *const names[] = { "v1-selected-step8", "valid/literal-step0-groups",
                                         "valid/byte-bpe-no-merges-step0" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        size_t n;
        long nth = 0;
        unsigned n_unnoticed = 0;
        (void)snprintf(path, sizeof path, LC_GOLDEN "%s.bin", names[i]);
        unsigned char *bytes = lc_bytes_of(path, &n);
        for (has_failed = true; has_failed; nth++) {
            struct pawl_error err = PAWL_ERROR_INIT;
            struct pawl_llmcp35_fault *fault = NULL;
            has_failed = false;
            until_failure = nth;
            enum pawl_status st = go_around(bytes, n, &fault, &err);
            until_failure = -1;
            n_unnoticed += has_failed && st == PAWL_OK; /* a block that could not be made smaller */
            if (st != PAWL_OK && !(has_failed && st == PAWL_NO_MEMORY))
                fail_msg("%s, allocation %ld: %d: %s", names[i], nth, (int)st, err.message);
            pawl_llmcp35_fault_free(fault);
        }
        print_message("%s: %ld allocations\n", names[i], nth - 1);
        assert_true(nth > 100 && n_unnoticed <= 1);
        free(bytes);
    }
    (void)remove("memory.llmcp35");
    (void)remove("memory.safetensors");
}

/* The same of a file that is refused: the refusal, or no memory. */
static void
refusals_without_memory(void **state)
{
    (void)state;
    static const char *const names[] = { "group-missing-parameter", "moments-unsorted", "token-spelling-repeated",
                                         "bpe-unknown-operand" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        size_t n;
        long nth = 0;
        (void)snprintf(path, sizeof path, LC_GOLDEN "corrupt/%s.bin", names[i]);
        unsigned char *bytes = lc_bytes_of(path, &n);
        for (has_failed = true; has_failed; nth++) {
            struct pawl_llmcp35_fault *fault = NULL;
            struct pawl_llmcp35 *checkpoint = NULL;
            has_failed = false;
            until_failure = nth;
            enum pawl_status st = pawl_llmcp35_decode(bytes, n, &checkpoint, &fault, NULL);
            until_failure = -1;
            assert_true(st == PAWL_CORRUPT || (has_failed && st == PAWL_NO_MEMORY));
            assert_null(checkpoint);
            pawl_llmcp35_fault_free(fault);
        }
        free(bytes);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(refusals_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
