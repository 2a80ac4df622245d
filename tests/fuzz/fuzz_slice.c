/*
 * Slices by their text: the first byte is a rank, then a byte for each dimension, then the text. A text that is taken gives axes; a slice
 * of them has the bytes that its shape says, each of a place inside the tensor, ascending or descending along each axis by its step; and
 * what is printed again from the axes gives the same axes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buffer.h"
#include "base/cursor.h"
#include "pawl/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RANK_MAX 4
#define AXES_MAX 8

static void
require(bool holds)
{
    if (!holds)
        abort();
}

/* A file in memory of one U8 tensor, whose bytes count up from 0. */
static struct pawl_model *
make_model(const uint64_t *shape, size_t rank, uint64_t bytes, struct pawl_buffer *file)
{
    struct pawl_model *model = NULL;
    (void)pawl_buffer_add(file, "\0\0\0\0\0\0\0\0", 8);
    (void)pawl_buffer_add_z(file, "{\"w\":{\"dtype\":\"U8\",\"shape\":[");
    for (size_t i = 0; i < rank; i++)
        (void)pawl_buffer_printf(file, "%s%llu", i == 0 ? "" : ",", (unsigned long long)shape[i]);
    (void)pawl_buffer_printf(file, "],\"data_offsets\":[0,%llu]}}", (unsigned long long)bytes);
    require(pawl_buffer_ok(file));
    pawl_put_u64le((unsigned char *)file->data, file->len - 8);
    for (uint64_t i = 0; i < bytes; i++)
        (void)pawl_buffer_add_char(file, (char)i);
    require(pawl_buffer_ok(file));
    require(pawl_model_open_memory(file->data, file->len, NULL, &model, NULL) == PAWL_OK);
    return model;
}

static void
check_text(const struct pawl_slice_axis *axes, size_t n)
{
    struct pawl_buffer text = PAWL_BUFFER_INIT;
    struct pawl_slice_axis again[AXES_MAX];
    size_t n_again;
    for (size_t i = 0; i < n; i++) {
        if (i != 0)
            (void)pawl_buffer_add_char(&text, ',');
        if ((axes[i].flags & PAWL_SLICE_ELLIPSIS) != 0) {
            (void)pawl_buffer_add_z(&text, "...");
            continue;
        }
        if ((axes[i].flags & (PAWL_SLICE_START | PAWL_SLICE_INDEX)) != 0)
            (void)pawl_buffer_printf(&text, "%lld", (long long)axes[i].start);
        if ((axes[i].flags & PAWL_SLICE_INDEX) != 0)
            continue;
        (void)pawl_buffer_add_char(&text, ':');
        if ((axes[i].flags & PAWL_SLICE_STOP) != 0)
            (void)pawl_buffer_printf(&text, "%lld", (long long)axes[i].stop);
        if (axes[i].step != 0)
            (void)pawl_buffer_printf(&text, ":%lld", (long long)axes[i].step);
    }
    require(pawl_buffer_ok(&text));
    require(pawl_slice_parse(pawl_buffer_str(&text), again, AXES_MAX, &n_again, NULL) == PAWL_OK && n_again == n);
    for (size_t i = 0; i < n; i++)
        require(again[i].flags == axes[i].flags && again[i].start == axes[i].start && again[i].stop == axes[i].stop &&
                again[i].step == axes[i].step);
    pawl_buffer_release(&text);
}

/* Along the last axis of the result neighbours are one step apart, in the direction of the step. */
static void
check_rows(const unsigned char *got, const uint64_t *shape, size_t rank, uint64_t bytes)
{
    uint64_t row = rank == 0 ? 1 : shape[rank - 1];
    for (uint64_t at = 0; at + row <= bytes && row > 2; at += row) {
        int step = got[at + 1] - got[at];
        require(step != 0);
        for (uint64_t i = 2; i < row; i++)
            require(got[at + i] - got[at + i - 1] == step);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t shape[RANK_MAX], got_shape[RANK_MAX], bytes = 1, got_bytes;
    struct pawl_slice_axis axes[AXES_MAX];
    struct pawl_buffer file = PAWL_BUFFER_INIT;
    struct pawl_error err = PAWL_ERROR_INIT;
    size_t n, got_rank;
    size_t rank = size == 0 ? 0 : data[0] % (RANK_MAX + 1);
    if (size < rank + 1)
        return 0;
    for (size_t i = 0; i < rank; i++) {
        shape[i] = data[1 + i] % (bytes >= 64 ? 4U : 9U); /* at most 256 elements: a byte tells which */
        bytes *= shape[i];
    }
    if (bytes > 256)
        return 0;
    const struct pawl_str text = { (const char *)data + 1 + rank, size - 1 - rank };
    if (pawl_slice_parse(text, axes, AXES_MAX, &n, &err) != PAWL_OK) {
        require(err.status == PAWL_ARGUMENT && err.message[0] != '\0');
        return 0;
    }
    check_text(axes, n);
    struct pawl_model *model = make_model(shape, rank, bytes, &file);
    const struct pawl_tensor_info *w = pawl_model_tensors(model, &(size_t){ 0 });
    if (pawl_slice_shape(w, axes, n, got_shape, &got_rank, &got_bytes, &err) == PAWL_OK) {
        uint64_t product = 1;
        for (size_t i = 0; i < got_rank; i++)
            product *= got_shape[i];
        require(got_rank <= rank && product == got_bytes && got_bytes <= bytes);
        unsigned char *got = malloc((size_t)got_bytes + (got_bytes == 0));
        require(got != NULL);
        require(pawl_model_read_slice(model, w, axes, n, PAWL_U8, PAWL_OVERFLOW_FORMAT, got, (size_t)got_bytes, NULL) ==
                PAWL_OK);
        unsigned char is_seen[256] = { 0 };
        for (uint64_t i = 0; i < got_bytes; i++)
            require(got[i] < bytes && is_seen[got[i]]++ == 0);
        check_rows(got, got_shape, got_rank, got_bytes);
        free(got);
    } else {
        require(err.status == PAWL_ARGUMENT);
    }
    pawl_model_close(model);
    pawl_buffer_release(&file);
    return 0;
}
