/* Looking for NaNs and infinities in the tensors of a set. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "base/cursor.h"
#include "model/model.h"

/* A multiple of every element's size. */
#define BLOCK_BYTES ((size_t)1 << 20)

struct found {
    uint64_t nans, infinities;
    uint64_t first; /* element */
    bool is_first_nan;
};

static void
note(struct found *found, uint64_t element, bool is_nan)
{
    if (found->nans + found->infinities == 0) {
        found->first = element;
        found->is_first_nan = is_nan;
    }
    if (is_nan)
        found->nans++;
    else
        found->infinities++;
}

/*
 * Elements of 16, 32 and 64 bits: not finite when all bits of the exponent are set, NaN when one behind them is set
 * too. A block is first asked as a whole, by a loop that vectorises; few have any.
 */
#define DEFINE_SCAN(name, type)                                                                          \
    static void name(const unsigned char *block, size_t n, uint64_t begin, type exponent, type fraction, \
                     struct found *found)                                                                \
    {                                                                                                    \
        unsigned any = 0;                                                                                \
        for (size_t i = 0; i < n; i++) {                                                                 \
            type v = load_##name(block + i * sizeof(type));                                              \
            any |= (unsigned)((v & exponent) == exponent);                                               \
        }                                                                                                \
        for (size_t i = 0; any != 0 && i < n; i++) {                                                     \
            type v = load_##name(block + i * sizeof(type));                                              \
            if ((v & exponent) == exponent)                                                              \
                note(found, begin + i, (v & fraction) != 0);                                             \
        }                                                                                                \
    }

static inline uint16_t
load_scan_16(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t
load_scan_32(const unsigned char *at)
{
    return pawl_get_u32le(at);
}

static inline uint64_t
load_scan_64(const unsigned char *at)
{
    return pawl_get_u64le(at);
}

DEFINE_SCAN(scan_16, uint16_t)
DEFINE_SCAN(scan_32, uint32_t)
DEFINE_SCAN(scan_64, uint64_t)

/* Elements of 8 bits: which codes are not finite is what their decoder says. 1: infinity, 2: NaN. */
static bool
make_table(enum pawl_dtype dtype, unsigned char table[256])
{
    bool any = false;
    for (unsigned code = 0; code < 256; code++) {
        unsigned char byte = (unsigned char)code;
        float value = 0;
        if (pawl_decode_f32(dtype, &byte, 1, &value, NULL) != PAWL_OK)
            return false;
        table[code] = (unsigned char)(isnan(value) ? 2 : isinf(value) ? 1 : 0);
        any = any || table[code] != 0;
    }
    return any;
}

static void
scan_8(const unsigned char *block, size_t n, uint64_t begin, const unsigned char table[256], struct found *found)
{
    for (size_t i = 0; i < n; i++) {
        if (table[block[i]] != 0)
            note(found, begin + i, table[block[i]] == 2);
    }
}

/* Bytes of what is looked at one by one (half a C64); 0: the dtype has only finite values. */
static size_t
unit_of(enum pawl_dtype dtype, unsigned char table[256])
{
    unsigned bits = pawl_dtype_bits(dtype);
    if (dtype == PAWL_C64)
        return 4;
    if (!pawl_dtype_is_float(dtype) || bits < 8)
        return 0;
    if (bits == 8)
        return make_table(dtype, table) ? 1 : 0;
    return bits / 8;
}

static enum pawl_status
scan_tensor(const struct pawl_set_file *file, const struct pawl_tensor_info *tensor, unsigned char *block,
            struct found *found, struct pawl_error *err)
{
    unsigned char table[256];
    size_t unit = unit_of(tensor->dtype, table);
    if (unit == 0)
        return PAWL_OK;
    uint64_t begin = 0;
    for (uint64_t at = tensor->begin; at < tensor->end;) {
        size_t bytes = tensor->end - at < BLOCK_BYTES ? (size_t)(tensor->end - at) : BLOCK_BYTES;
        size_t n = bytes / unit;
        enum pawl_status st = pawl_file_read(&file->file, file->header.data_begin + at, block, bytes, err);
        if (st != PAWL_OK)
            return st;
        if (unit == 1)
            scan_8(block, n, begin, table, found);
        else if (tensor->dtype == PAWL_F16)
            scan_16(block, n, begin, 0x7c00, 0x03ff, found);
        else if (tensor->dtype == PAWL_BF16)
            scan_16(block, n, begin, 0x7f80, 0x007f, found);
        else if (unit == 4)
            scan_32(block, n, begin, UINT32_C(0x7f800000), UINT32_C(0x007fffff), found);
        else
            scan_64(block, n, begin, UINT64_C(0x7ff0000000000000), UINT64_C(0x000fffffffffffff), found);
        at += bytes;
        begin += n;
    }
    if (tensor->dtype == PAWL_C64)
        found->first /= 2;
    return PAWL_OK;
}

/* "[0, 12, 3]" */
static bool
print_index(struct pawl_buffer *text, const struct pawl_tensor_info *tensor, uint64_t element)
{
    uint64_t inside = 1;
    for (size_t i = 0; i < tensor->rank; i++)
        inside *= tensor->shape[i]; /* not empty: something was found in it */
    (void)pawl_buffer_add_char(text, '[');
    for (size_t i = 0; i < tensor->rank; i++) {
        inside /= tensor->shape[i];
        (void)pawl_buffer_printf(text, "%s%" PRIu64, i == 0 ? "" : ", ", element / inside % tensor->shape[i]);
    }
    (void)pawl_buffer_add_char(text, ']');
    return pawl_buffer_terminate(text);
}

enum pawl_status
pawl_set_check_finite(const struct pawl_set *set, struct pawl_report *report, struct pawl_error *err)
{
    struct pawl_buffer index = PAWL_BUFFER_INIT;
    enum pawl_status st = PAWL_OK;
    unsigned char *block = malloc(BLOCK_BYTES);
    if (block == NULL)
        return pawl_fail_memory(err, BLOCK_BYTES);
    for (size_t i = 0; i < set->n && st == PAWL_OK; i++) {
        const struct pawl_tensor_info *tensor = &set->tensors[i];
        const struct pawl_set_file *file = &set->files[tensor->file];
        struct found found = { 0, 0, 0, false };
        st = scan_tensor(file, tensor, block, &found, err);
        if (st != PAWL_OK || found.nans + found.infinities == 0)
            continue;
        pawl_buffer_clear(&index);
        if (!print_index(&index, tensor, found.first)) {
            st = pawl_fail_memory(err, index.len);
            continue;
        }
        uint64_t place = file->header.data_begin + tensor->begin + found.first * (pawl_dtype_bits(tensor->dtype) / 8);
        pawl_report_problem(report, "non-finite", file->name, tensor->name, place,
                            "tensor '%s' has %" PRIu64 " NaN%s and %" PRIu64 " infinit%s, the first at %s: %s",
                            PAWL_SHOW(tensor->name), found.nans, found.nans == 1 ? "" : "s", found.infinities,
                            found.infinities == 1 ? "y" : "ies", index.data, found.is_first_nan ? "NaN" : "infinity");
    }
    pawl_buffer_release(&index);
    free(block);
    return st;
}
