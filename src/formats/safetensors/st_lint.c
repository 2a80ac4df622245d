/* What the lint mode warns of: nothing that makes a file wrong, everything that the reference's writer does not do. */
#include <inttypes.h>
#include <stdio.h>
#include "formats/json/json_scan.h"
#include "formats/safetensors/st_inside.h"

void
pawl_st_warn(const struct pawl_st_options *options, const char *code, struct pawl_str tensor, uint64_t offset,
             const char *format, ...)
{
    char message[1024];
    if (options->warn == NULL)
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (n > 0)
        options->warn(options->warn_context, code, tensor, offset, message);
}

void
pawl_st_lint_text(const struct pawl_st_header *h, const struct pawl_st_options *options)
{
    static const struct pawl_str NONE;
    const unsigned char *begin = h->text;
    const unsigned char *end = begin + h->header_bytes;

    if (h->header_bytes % 8 != 0)
        pawl_st_warn(options, "header-length", NONE, 0,
                     "header length %" PRIu64 " is no multiple of 8: the data begin unaligned", h->header_bytes);
    if (begin != end && pawl_json_is_blank(*begin))
        pawl_st_warn(options, "leading-blanks", NONE, 8, "blanks before the header's object");
    while (begin != end && pawl_json_is_blank(end[-1])) {
        end--;
        if (*end == ' ')
            continue;
        pawl_st_warn(options, "padding", NONE, 8 + (uint64_t)(end - begin),
                     "the header is padded with byte 0x%02x, not with spaces alone", *end);
        break;
    }
}

static bool
has_control(struct pawl_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.data[i] < 0x20 || name.data[i] == 0x7f)
            return true;
    }
    return false;
}

void
pawl_st_lint_tensors(const struct pawl_st_header *h, const struct pawl_st_options *options)
{
    bool is_ordered = true;
    for (size_t i = 0; i < h->n; i++) {
        const struct pawl_tensor_info *t = &h->tensors[i];
        uint64_t offset = 8 + (uint64_t)((const unsigned char *)t->name.data - h->text);
        unsigned unit = pawl_dtype_bits(t->dtype) / 8;
        if (t->dtype == PAWL_C64)
            unit = 4; /* a pair of F32 */
        if (t->name.len == 0)
            pawl_st_warn(options, "empty-name", t->name, offset, "a tensor has an empty name");
        if (has_control(t->name))
            pawl_st_warn(options, "control-name", t->name, offset, "tensor '%s': control characters in the name",
                         PAWL_SHOW(t->name));
        if (unit > 1 && t->end > t->begin && (h->data_begin + t->begin) % unit != 0)
            pawl_st_warn(options, "misaligned", t->name, offset,
                         "tensor '%s': %s at offset %" PRIu64 " of the file, no multiple of %u", PAWL_SHOW(t->name),
                         pawl_dtype_name(t->dtype), h->data_begin + t->begin, unit);
        if (is_ordered && i > 0 && pawl_st_compare(t[-1].dtype, t[-1].name, t->dtype, t->name) > 0) {
            is_ordered = false; /* the first is enough: all that follow may be out of place */
            pawl_st_warn(options, "order", t->name, offset,
                         "tensor '%s' stands behind '%s': not in the canonical order (dtype descending, then name)",
                         PAWL_SHOW(t->name), PAWL_SHOW(t[-1].name));
        }
    }
}
