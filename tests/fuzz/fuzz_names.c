/*
 * Names in a root and in a step, and LATEST: what is known is spelled in one way, so that it is the name again when it is printed; and what a manifest or a
 * caller may name stays in the directory of the step.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checkpoint/documents.h"
#include "checkpoint/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds)
        abort();
}

static void
check_entry(struct pawl_str name)
{
    static const char *const suffixes[] = { "", "", ".prev", ".tmp", ".bad" };
    int64_t step = -7;
    char again[PAWL_STEP_NAME_BYTES];
    enum pawl_root_entry entry = pawl_entry_of_name(name, &step);
    require((entry == PAWL_ENTRY_OTHER) == (step == -7) && (step >= 0 || step == -7));
    require(pawl_step_of_name(name) == (entry == PAWL_ENTRY_STEP ? step : -1));
    if (entry == PAWL_ENTRY_OTHER)
        return;
    pawl_entry_name(step, suffixes[entry], again);
    require(pawl_str_equal(pawl_str_z(again), name));
}

static void
check_latest(struct pawl_str text)
{
    char again[PAWL_STEP_NAME_BYTES + 1];
    int64_t step = pawl_latest_parse(text.data, text.len);
    if (step < 0) {
        require(step == -1);
        return;
    }
    pawl_step_name(step, again);
    (void)strcat(again, "\n");
    require(pawl_str_equal(pawl_str_z(again), text));
}

static void
check_tensor_file(struct pawl_str name, const char *base)
{
    uint32_t k = 0, n = 0;
    char again[64];
    const char *end = ".safetensors";
    enum pawl_tensor_file kind = pawl_tensor_file_of_name(name, pawl_str_z(base), &k, &n);
    if (kind == PAWL_TENSOR_FILE_NO)
        return;
    require(kind == PAWL_TENSOR_FILE_SHARD ? k <= 99999 && n <= 99999 : k == 0 && n == 0);
    if (kind == PAWL_TENSOR_FILE_SHARD)
        (void)snprintf(again, sizeof again, "%s-%05u-of-%05u%s", base, (unsigned)k, (unsigned)n, end);
    else
        (void)snprintf(again, sizeof again, "%s%s%s", base, end, kind == PAWL_TENSOR_FILE_INDEX ? ".index.json" : "");
    require(pawl_str_equal(pawl_str_z(again), name));
    require(pawl_name_is_tensor_file(name) == (kind != PAWL_TENSOR_FILE_INDEX));
    require(pawl_attachment_name_check(name, NULL, NULL) == PAWL_ARGUMENT);
}

/* By the bytes alone: does a system that follows it stay below where it began? */
static void
check_manifest_name(struct pawl_str name)
{
    size_t levels = 1, len = 0, dots = 0;
    bool is_good = name.len != 0 && !pawl_str_equal(name, PAWL_STR("MANIFEST.json"));
    for (size_t i = 0; i <= name.len; i++) {
        char c = i < name.len ? name.data[i] : '/';
        is_good = is_good && c != '\\' && c != '\0';
        if (c != '/') {
            len++;
            dots += c == '.';
            continue;
        }
        is_good = is_good && len != 0 && (dots != len || len > 2);
        levels += i < name.len;
        len = dots = 0;
    }
    is_good = is_good && levels <= PAWL_NAME_LEVELS_MAX;
    require(pawl_manifest_name_is_valid(name) == is_good);
    require((pawl_manifest_name_fault(name) == NULL) == is_good);
}

static void
check_attachment(struct pawl_str name)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    bool is_known = false;
    if (pawl_attachment_name_check(name, &is_known, &err) != PAWL_OK) {
        require(err.status == PAWL_ARGUMENT && err.message[0] != '\0' && !is_known);
        return;
    }
    require(pawl_manifest_name_is_valid(name) && memchr(name.data, '/', name.len) == NULL);
    require(!pawl_name_is_tensor_file(name) && !pawl_str_starts(name, PAWL_STR("pawl.")));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_str name = pawl_str_make((const char *)data, size);
    check_entry(name);
    check_latest(name);
    check_tensor_file(name, "model");
    check_tensor_file(name, "optimizer");
    check_manifest_name(name);
    check_attachment(name);
    return 0;
}
