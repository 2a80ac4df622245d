#include "checkpoint/names.h"

#include <inttypes.h>
#include <stdio.h>
#include "checkpoint/documents.h"
#include "codec/utf8.h"

#define STEP_PREFIX "step-"
#define STEP_DIGITS_MIN 6 /* a smaller number is padded to these, a larger one is not padded */

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The digits of a step: six padded ones, or seven and more that do not begin with 0; at most 2^63-1. -1: no such spelling. */
static int64_t
step_of_digits(struct pawl_str digits)
{
    if (digits.len < STEP_DIGITS_MIN || (digits.len > STEP_DIGITS_MIN && digits.data[0] == '0'))
        return -1;
    int64_t step = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (!is_digit(digits.data[i]))
            return -1;
        int digit = digits.data[i] - '0';
        if (step > (INT64_MAX - digit) / 10)
            return -1;
        step = step * 10 + digit;
    }
    return step;
}

enum pawl_root_entry
pawl_entry_of_name(struct pawl_str name, int64_t *ret_step)
{
    static const struct {
        struct pawl_str suffix;
        enum pawl_root_entry entry;
    } FORMS[] = {
        { { ".prev", 5 }, PAWL_ENTRY_PREV },
        { { ".tmp", 4 }, PAWL_ENTRY_TMP },
        { { ".bad", 4 }, PAWL_ENTRY_BAD },
        { { "", 0 }, PAWL_ENTRY_STEP },
    };
    const struct pawl_str prefix = PAWL_STR(STEP_PREFIX);
    if (!pawl_str_starts(name, prefix))
        return PAWL_ENTRY_OTHER;
    struct pawl_str rest = pawl_str_make(name.data + prefix.len, name.len - prefix.len);
    for (size_t i = 0; i < sizeof FORMS / sizeof FORMS[0]; i++) {
        if (!pawl_str_ends(rest, FORMS[i].suffix))
            continue;
        int64_t step = step_of_digits(pawl_str_make(rest.data, rest.len - FORMS[i].suffix.len));
        if (step < 0)
            return PAWL_ENTRY_OTHER;
        if (ret_step != NULL)
            *ret_step = step;
        return FORMS[i].entry;
    }
    return PAWL_ENTRY_OTHER;
}

void
pawl_entry_name(int64_t step, const char *suffix, char ret_name[PAWL_STEP_NAME_BYTES])
{
    (void)snprintf(ret_name, PAWL_STEP_NAME_BYTES, STEP_PREFIX "%0*" PRId64 "%s", STEP_DIGITS_MIN, step, suffix);
}

int64_t
pawl_step_of_name(struct pawl_str name)
{
    int64_t step = -1;
    return pawl_entry_of_name(name, &step) == PAWL_ENTRY_STEP ? step : -1;
}

void
pawl_step_name(int64_t step, char ret_name[32])
{
    if (step < 0)
        ret_name[0] = '\0';
    else
        pawl_entry_name(step, "", ret_name);
}

int64_t
pawl_latest_parse(const void *text, size_t bytes)
{
    const char *at = text;
    if (bytes == 0 || at[bytes - 1] != '\n')
        return -1;
    return pawl_step_of_name(pawl_str_make(at, bytes - 1));
}

/* Five digits. */
static bool
take_shard_number(struct pawl_str *text, uint32_t *ret)
{
    if (text->len < 5)
        return false;
    uint32_t number = 0;
    for (size_t i = 0; i < 5; i++) {
        if (!is_digit(text->data[i]))
            return false;
        number = number * 10 + (uint32_t)(text->data[i] - '0');
    }
    text->data += 5;
    text->len -= 5;
    *ret = number;
    return true;
}

static bool
take_text(struct pawl_str *text, struct pawl_str what)
{
    if (!pawl_str_starts(*text, what))
        return false;
    text->data += what.len;
    text->len -= what.len;
    return true;
}

enum pawl_tensor_file
pawl_tensor_file_of_name(struct pawl_str name, struct pawl_str base, uint32_t *ret_k, uint32_t *ret_n)
{
    uint32_t k = 0;
    uint32_t n = 0;
    if (!take_text(&name, base))
        return PAWL_TENSOR_FILE_NO;
    if (pawl_str_equal(name, PAWL_STR(".safetensors")))
        return PAWL_TENSOR_FILE_SINGLE;
    if (pawl_str_equal(name, PAWL_STR(".safetensors.index.json")))
        return PAWL_TENSOR_FILE_INDEX;
    if (!take_text(&name, PAWL_STR("-")) || !take_shard_number(&name, &k) || !take_text(&name, PAWL_STR("-of-")) ||
        !take_shard_number(&name, &n) || !pawl_str_equal(name, PAWL_STR(".safetensors")))
        return PAWL_TENSOR_FILE_NO;
    if (ret_k != NULL)
        *ret_k = k;
    if (ret_n != NULL)
        *ret_n = n;
    return PAWL_TENSOR_FILE_SHARD;
}

/* The files that the engine itself writes. */
static bool
is_reserved(struct pawl_str name)
{
    return pawl_str_equal(name, PAWL_STR(PAWL_MANIFEST)) || pawl_str_equal(name, PAWL_STR(PAWL_TRAINER_STATE)) ||
           pawl_tensor_file_of_name(name, PAWL_STR("model"), NULL, NULL) != PAWL_TENSOR_FILE_NO ||
           pawl_tensor_file_of_name(name, PAWL_STR("optimizer"), NULL, NULL) != PAWL_TENSOR_FILE_NO;
}

bool
pawl_name_is_tensor_file(struct pawl_str name)
{
    const struct pawl_str bases[] = { PAWL_STR("model"), PAWL_STR("optimizer") };
    for (size_t i = 0; i < 2; i++) {
        enum pawl_tensor_file kind = pawl_tensor_file_of_name(name, bases[i], NULL, NULL);
        if (kind == PAWL_TENSOR_FILE_SINGLE || kind == PAWL_TENSOR_FILE_SHARD)
            return true;
    }
    return false;
}

enum pawl_status
pawl_attachment_name_check(struct pawl_str name, bool *ret_is_known, struct pawl_error *err)
{
    const char *fault = NULL;
    if (name.len == 0)
        fault = "is empty";
    else if (pawl_str_equal(name, PAWL_STR(".")) || pawl_str_equal(name, PAWL_STR("..")))
        fault = "is a directory's";
    else if (memchr(name.data, '/', name.len) != NULL)
        fault = "has a slash";
    else if (memchr(name.data, '\\', name.len) != NULL)
        fault = "has a backslash";
    else if (memchr(name.data, '\0', name.len) != NULL)
        fault = "has a NUL";
    else if (pawl_utf8_first_bad(name.data, name.len) != name.len)
        fault = "is not UTF-8";
    else if (pawl_str_starts(name, PAWL_STR("pawl.")))
        fault = "begins with \"pawl.\", which is kept for files of the engine";
    else if (is_reserved(name))
        fault = "is kept for a file of the checkpoint's own";
    if (fault != NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "attachment '%s': the name %s", PAWL_SHOW(name), fault);
    if (ret_is_known != NULL)
        *ret_is_known = pawl_str_equal(name, PAWL_STR(PAWL_CONFIG)) || pawl_str_equal(name, PAWL_STR(PAWL_TOKENIZER)) ||
                        pawl_str_equal(name, PAWL_STR(PAWL_GENERATION_CONFIG));
    return PAWL_OK;
}

const char *
pawl_manifest_name_fault(struct pawl_str name)
{
    if (name.len == 0)
        return "is empty";
    if (name.data[0] == '/')
        return "is absolute";
    if (memchr(name.data, '\\', name.len) != NULL)
        return "has a backslash";
    if (memchr(name.data, '\0', name.len) != NULL)
        return "has a NUL";
    if (pawl_str_equal(name, PAWL_STR(PAWL_MANIFEST)))
        return "is the manifest's own";
    size_t levels = 0;
    for (size_t begin = 0; begin <= name.len;) {
        if (++levels > PAWL_NAME_LEVELS_MAX)
            return "has more than 512 components";
        const char *slash = memchr(name.data + begin, '/', name.len - begin);
        size_t end = slash == NULL ? name.len : (size_t)(slash - name.data);
        struct pawl_str component = pawl_str_make(name.data + begin, end - begin);
        if (component.len == 0)
            return "has an empty component";
        if (pawl_str_equal(component, PAWL_STR(".")) || pawl_str_equal(component, PAWL_STR("..")))
            return "has a component \".\" or \"..\"";
        begin = end + 1;
    }
    return NULL;
}

bool
pawl_manifest_name_is_valid(struct pawl_str name)
{
    return pawl_manifest_name_fault(name) == NULL;
}
