#include "pawl/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/str.h"

struct dtype_row {
    const char *name;
    unsigned bits;
    bool is_float;
};

static const struct dtype_row rows[PAWL_DTYPE_COUNT + 1] = {
    [PAWL_BOOL] = { "BOOL", 8, false },
    [PAWL_F4] = { "F4", 4, true },
    [PAWL_F6_E2M3] = { "F6_E2M3", 6, true },
    [PAWL_F6_E3M2] = { "F6_E3M2", 6, true },
    [PAWL_U8] = { "U8", 8, false },
    [PAWL_I8] = { "I8", 8, false },
    [PAWL_F8_E5M2] = { "F8_E5M2", 8, true },
    [PAWL_F8_E4M3] = { "F8_E4M3", 8, true },
    [PAWL_F8_E8M0] = { "F8_E8M0", 8, true },
    [PAWL_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8, true },
    [PAWL_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8, true },
    [PAWL_I16] = { "I16", 16, false },
    [PAWL_U16] = { "U16", 16, false },
    [PAWL_F16] = { "F16", 16, true },
    [PAWL_BF16] = { "BF16", 16, true },
    [PAWL_I32] = { "I32", 32, false },
    [PAWL_U32] = { "U32", 32, false },
    [PAWL_F32] = { "F32", 32, true },
    [PAWL_C64] = { "C64", 64, false },
    [PAWL_F64] = { "F64", 64, true },
    [PAWL_I64] = { "I64", 64, false },
    [PAWL_U64] = { "U64", 64, false },
};

/* NULL for a number that is no dtype: a caller may have read it from anywhere. */
static const struct dtype_row *
find_row(enum pawl_dtype dtype)
{
    unsigned number = (unsigned)dtype;
    return number >= 1 && number <= PAWL_DTYPE_COUNT ? &rows[number] : NULL;
}

const char *
pawl_dtype_name(enum pawl_dtype dtype)
{
    const struct dtype_row *row = find_row(dtype);
    return row == NULL ? NULL : row->name;
}

enum pawl_dtype
pawl_dtype_by_name(struct pawl_str name)
{
    for (unsigned number = 1; number <= PAWL_DTYPE_COUNT; number++) {
        if (pawl_str_equal(name, pawl_str_make(rows[number].name, strlen(rows[number].name))))
            return (enum pawl_dtype)number;
    }
    return (enum pawl_dtype)0;
}

unsigned
pawl_dtype_bits(enum pawl_dtype dtype)
{
    const struct dtype_row *row = find_row(dtype);
    return row == NULL ? 0 : row->bits;
}

bool
pawl_dtype_is_float(enum pawl_dtype dtype)
{
    const struct dtype_row *row = find_row(dtype);
    return row != NULL && row->is_float;
}

/* Dimensions that a message shows of either end of a shape; a hostile header can hold millions. */
#define SHAPE_SHOWN 6

/* "[2, 3]" into `text`, which holds every shown dimension at 20 digits each. */
static const char *
show_shape(char text[2 * SHAPE_SHOWN * 22 + 16], const uint64_t *shape, size_t rank)
{
    char *at = text;
    *at++ = '[';
    for (size_t i = 0; i < rank; i++) {
        if (rank > 2 * SHAPE_SHOWN && i == SHAPE_SHOWN) {
            at += sprintf(at, ", ...");
            i = rank - SHAPE_SHOWN;
        }
        at += sprintf(at, "%s%" PRIu64, i == 0 ? "" : ", ", shape[i]);
    }
    *at++ = ']';
    *at = '\0';
    return text;
}

enum pawl_status
pawl_dtype_bytes(enum pawl_dtype dtype, const uint64_t *shape, size_t rank, uint64_t *ret_elements, uint64_t *ret_bytes,
                 struct pawl_error *err)
{
    const struct dtype_row *row = find_row(dtype);
    if (row == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "usage", "%u is the number of no dtype", (unsigned)dtype);

    char text[2 * SHAPE_SHOWN * 22 + 16];
    uint64_t elements = 1;
    for (size_t i = 0; i < rank; i++) {
        if (!pawl_mul_u64(elements, shape[i], &elements))
            return pawl_fail(err, PAWL_CORRUPT, "overflow", "shape %s has more than 2^64 - 1 elements",
                             show_shape(text, shape, rank));
    }
    uint64_t bits;
    if (!pawl_mul_u64(elements, row->bits, &bits))
        return pawl_fail(err, PAWL_CORRUPT, "overflow",
                         "shape %s of %s: %" PRIu64 " elements of %u bits are more than 2^64 - 1 bits",
                         show_shape(text, shape, rank), row->name, elements, row->bits);
    if (bits % 8 != 0)
        return pawl_fail(err, PAWL_CORRUPT, "bits", "shape %s of %s: %" PRIu64 " bits are no whole bytes",
                         show_shape(text, shape, rank), row->name, bits);
    *ret_elements = elements;
    *ret_bytes = bits / 8;
    return PAWL_OK;
}
