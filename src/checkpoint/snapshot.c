/* checkpoint/snapshot.c: copying the tensors of a save into images of its files. */
#include "checkpoint/snapshot.h"

#include <stdlib.h>
#include "base/checked.h"
#include "base/str.h"
#include "codec/past_cache.h"
#include "model/stored.h"
#include "os/kept.h"
#include "os/parallel.h"

/* What O_DIRECT asks for at most, on the disks there are. */
#define BLOCK_BYTES ((size_t)4096)

/* One thread's share at a time: so large that taking the next costs nothing, so small that they end together. */
#define PIECE_BYTES ((size_t)4 << 20)

/* Sources are asked for about as much at a time. */
#define SOURCE_BYTES ((size_t)8 << 20)

/* A run of a tensor's packed bytes, on its way into an image. */
struct piece {
    const struct pawl_tensor *tensor;
    unsigned char *to;
    uint64_t offset; /* in the packed tensor; a multiple of its elements' size where that matters */
    size_t bytes;
};

struct pieces {
    struct piece *items;
    size_t n;
};

/* ---- where the images lie ---- */

static bool
round_up(size_t bytes, size_t to, size_t *ret)
{
    size_t more;
    if (!pawl_add_size(bytes, to - 1, &more))
        return false;
    *ret = more / to * to;
    return true;
}

/* Place the image of a part at or behind `at`: where it begins, and where the next may. */
static bool
place_image(const struct pawl_part *part, size_t at, size_t *ret_begin, size_t *ret_end)
{
    size_t end, bytes;
    if (part->bytes > SIZE_MAX / 2)
        return false;
    bytes = (size_t)part->bytes;
    /* Huge pages are worth their alignment only to who fills them. */
    return round_up(at, bytes >= PAWL_HUGE_PAGE_BYTES ? PAWL_HUGE_PAGE_BYTES : BLOCK_BYTES, ret_begin) &&
           pawl_add_size(*ret_begin, bytes, &end) && round_up(end, BLOCK_BYTES, ret_end);
}

bool
pawl_snapshot_bytes(const struct pawl_parts *parts, size_t *ret_bytes)
{
    size_t at = 0, begin;
    for (size_t i = 0; i < parts->n; i++)
        if (parts->parts[i].text == NULL && !place_image(&parts->parts[i], at, &begin, &at))
            return false;
    *ret_bytes = at;
    return true;
}

/* ---- copying ---- */

static void
copy_piece(void *context, size_t i)
{
    const struct piece *piece = &((const struct pieces *)context)->items[i];
    const struct pawl_tensor *tensor = piece->tensor;
    if (pawl_tensor_is_packed(tensor)) {
        pawl_copy_past_cache(piece->to, (const unsigned char *)tensor->data + piece->offset, piece->bytes);
        return;
    }
    size_t each = pawl_dtype_bits(tensor->dtype) / 8;
    pawl_tensor_gather(tensor, piece->offset / each, piece->bytes / each, piece->to);
}

static enum pawl_status
read_source(const struct pawl_tensor *tensor, unsigned char *to, struct pawl_error *err)
{
    const struct pawl_source *source = tensor->source;
    for (uint64_t at = 0; at < source->bytes;) {
        size_t n = source->bytes - at < SOURCE_BYTES ? (size_t)(source->bytes - at) : SOURCE_BYTES;
        enum pawl_status st = pawl_source_read(source, at, to + at, n, err);
        if (st != PAWL_OK) {
            pawl_error_tensor(err, tensor->name);
            return pawl_context(err, st, "tensor '%s'", PAWL_SHOW(tensor->name));
        }
        at += n;
    }
    return PAWL_OK;
}

/* Call `visit` for every tensor of a part with the place of its bytes in the image. */
static enum pawl_status
walk_image(const struct pawl_part *part, unsigned char *image,
           enum pawl_status (*visit)(void *context, const struct pawl_tensor *tensor, uint64_t bytes, unsigned char *to,
                                     struct pawl_error *err),
           void *context, struct pawl_error *err)
{
    const struct pawl_st_plan *plan = &part->file->plan;
    unsigned char *to = image + plan->prefix.len;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < part->file->n && st == PAWL_OK; i++) {
        size_t item = plan->order[i];
        st = visit(context, part->tensors[part->file->items[item]], plan->bytes[item], to, err);
        to += plan->bytes[item];
    }
    return st;
}

static enum pawl_status
count_pieces(void *context, const struct pawl_tensor *tensor, uint64_t bytes, unsigned char *to, struct pawl_error *err)
{
    (void)to;
    (void)err;
    if (tensor->source == NULL)
        ((struct pieces *)context)->n += (size_t)((bytes + PIECE_BYTES - 1) / PIECE_BYTES);
    return PAWL_OK;
}

static enum pawl_status
add_pieces(void *context, const struct pawl_tensor *tensor, uint64_t bytes, unsigned char *to, struct pawl_error *err)
{
    struct pieces *pieces = context;
    if (tensor->source != NULL)
        return read_source(tensor, to, err);
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES)
        pieces->items[pieces->n++] =
            (struct piece){ tensor, to + at, at, bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES };
    return PAWL_OK;
}

enum pawl_status
pawl_snapshot_take(struct pawl_parts *parts, unsigned char *memory, struct pawl_error *err)
{
    struct pieces pieces = { NULL, 0 };
    size_t at = 0;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < parts->n; i++)
        if (parts->parts[i].text == NULL)
            (void)walk_image(&parts->parts[i], memory, count_pieces, &pieces, NULL);
    pieces.items = malloc((pieces.n + 1) * sizeof *pieces.items);
    if (pieces.items == NULL)
        return pawl_fail_memory(err, (pieces.n + 1) * sizeof *pieces.items);
    pieces.n = 0;
    for (size_t i = 0; i < parts->n && st == PAWL_OK; i++) {
        struct pawl_part *part = &parts->parts[i];
        size_t begin;
        if (part->text != NULL)
            continue;
        bool fits = place_image(part, at, &begin, &at);
        if (!fits) { /* it did when the memory was taken */
            st = pawl_fail_memory(err, SIZE_MAX);
            break;
        }
        unsigned char *image = memory + begin;
        const struct pawl_buffer *prefix = &part->file->plan.prefix;
        memcpy(image, prefix->data, prefix->len);
        st = walk_image(part, image, add_pieces, &pieces, err);
        memset(image + part->bytes, 0, at - begin - (size_t)part->bytes);
        part->image = image;
    }
    if (st == PAWL_OK)
        pawl_parallel(pieces.n, 0, copy_piece, &pieces);
    free(pieces.items);
    return st;
}
