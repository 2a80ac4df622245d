/*
 * F32 values on their way into a file of narrower floats, a block at a time: gathered from wherever they are, rounded once, and
 * handed to the writer. Only F32 is rounded: an F64 would lose what its owner keeps it for, and 16 bits would be rounded a second time.
 */
#include "model/stored.h"

#include "base/fail.h"
#include "codec/cast.h"
#include "model/set.h"

/* Values at a time, on the stack: a multiple of 4, so that a block of 4 or 6 bits each has whole bytes. */
#define BLOCK ((size_t)4096)

enum pawl_status
pawl_stored_check(const struct pawl_tensor *tensor, struct pawl_error *err)
{
    const char *stored = pawl_dtype_name(tensor->stored);
    uint64_t elements;
    uint64_t bytes;
    if (stored == NULL)
        return pawl_fail(err, PAWL_ARGUMENT, "argument", "%d is no dtype to store", (int)tensor->stored);
    if (tensor->dtype != PAWL_F32 || !pawl_dtype_is_float(tensor->stored) || pawl_dtype_bits(tensor->stored) > 16) {
        enum pawl_status st =
            pawl_fail(err, PAWL_ARGUMENT, "argument", "%s can't be stored as %s: only F32 is, as a narrower float",
                      pawl_dtype_name(tensor->dtype), stored);
        pawl_error_hint(err, "convert the values first, if that is meant");
        return st;
    }
    enum pawl_status st = pawl_dtype_bytes(tensor->stored, tensor->shape, tensor->rank, &elements, &bytes, err);
    if (st != PAWL_OK)
        return st;
    /* A rule that the format does not have is known before a file exists. */
    float none = 0;
    return pawl_encode_f32(tensor->stored, tensor->overflow, &none, 0, &none, NULL, err);
}

enum pawl_status
pawl_stored_write(const struct pawl_tensor *tensor, struct pawl_writer *writer, struct pawl_error *err)
{
    float values[BLOCK];
    unsigned char codes[BLOCK * 2];
    uint64_t elements;
    uint64_t bytes;
    unsigned bits = pawl_dtype_bits(tensor->stored);
    bool is_run = pawl_tensor_is_packed(tensor);
    enum pawl_status st = pawl_dtype_bytes(tensor->dtype, tensor->shape, tensor->rank, &elements, &bytes, err);
    for (uint64_t at = 0; at < elements && st == PAWL_OK; at += BLOCK) {
        size_t n = elements - at < BLOCK ? (size_t)(elements - at) : BLOCK;
        if (tensor->source != NULL)
            st = pawl_source_read(tensor->source, at * sizeof *values, values, n * sizeof *values, err);
        else if (is_run)
            memcpy(values, (const unsigned char *)tensor->data + (size_t)at * sizeof *values, n * sizeof *values);
        else
            pawl_tensor_gather(tensor, at, n, values);
        if (st == PAWL_OK)
            st = pawl_cast_part(PAWL_F32, values, n, tensor->stored, tensor->overflow, codes, at, NULL, err);
        if (st == PAWL_OK)
            st = pawl_writer_add(writer, codes, n * bits / 8, err);
    }
    return st;
}
