/*
 * The rotary tables: whether a model's can exist at all (the last step of stage F), and their rows. Every product
 * is rounded by itself: contraction and fast-math would change the bits.
 */
#include "formats/llmcp35/lc_inside.h"

#include <inttypes.h>
#include <math.h>

/* Elements of 8 bytes in the largest object there can be. */
#define ELEMENTS_MAX (UINT64_C(0x7fffffffffffffff) / 8)

static double
frequency_of(double base, uint64_t pair, uint64_t head_width)
{
    return pow(base, (-2.0 * (double)pair) / (double)head_width);
}

static enum pawl_status
fail_elements(struct lc_out *out, uint64_t layer, uint64_t elements)
{
    return LC_REFUSE(out, "model", "block_attention_rotary_table_allocation",
                     LC_FIELDS(LC_U64("layer", layer), LC_U64("elements", elements)),
                     "layer %" PRIu64 ": a rotary table of %" PRIu64 " elements is too large for any memory", layer,
                     elements);
}

static enum pawl_status
fail_angle(struct lc_out *out, uint64_t layer, uint64_t position, uint64_t pair)
{
    return LC_REFUSE(out, "model", "block_attention_rotary_non_finite",
                     LC_FIELDS(LC_U64("layer", layer), LC_U64("position", position), LC_U64("pair", pair)),
                     "layer %" PRIu64 ": the rotary angle of position %" PRIu64 " and pair %" PRIu64 " is not finite",
                     layer, position, pair);
}

enum pawl_status
pawl_lc_check_rotary(double base, uint64_t positions, uint64_t head_width, uint64_t layer, struct lc_out *out)
{
    uint64_t pairs = head_width / 2;
    uint64_t elements;
    if (!pawl_mul_u64(positions, pairs, &elements) || elements > SIZE_MAX)
        return LC_REFUSE(out, "model", "block_attention_rotary_table_overflow",
                         LC_FIELDS(LC_U64("layer", layer), LC_U64("positions", positions), LC_U64("pairs", pairs)),
                         "layer %" PRIu64 ": %" PRIu64 " positions of %" PRIu64 " pairs overflow", layer, positions,
                         pairs);
    if (pairs > ELEMENTS_MAX)
        return fail_elements(out, layer, pairs);
    for (uint64_t pair = 0; pair < pairs; pair++) {
        if (!isfinite(frequency_of(base, pair, head_width)))
            return fail_angle(out, layer, 0, pair);
    }
    if (elements > ELEMENTS_MAX)
        return fail_elements(out, layer, elements);

    /* An angle grows with its position: a pair whose last one is finite has none that is not. */
    uint64_t first = positions;
    uint64_t first_pair = 0;
    for (uint64_t pair = 0; pair < pairs; pair++) {
        double frequency = frequency_of(base, pair, head_width);
        if (isfinite((double)(positions - 1) * frequency))
            continue;
        uint64_t low = 0;
        uint64_t high = positions - 1;
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (isfinite((double)middle * frequency))
                low = middle + 1;
            else
                high = middle;
        }
        if (low < first) {
            first = low;
            first_pair = pair;
        }
    }
    return first < positions ? fail_angle(out, layer, first, first_pair) : PAWL_OK;
}

void
pawl_lc_rotary_row(double base, uint64_t head_width, uint64_t position, double *cosines, double *sines)
{
    for (uint64_t pair = 0; pair < head_width / 2; pair++) {
        double angle = (double)position * frequency_of(base, pair, head_width);
        double sine = sin(angle);
        double cosine = cos(angle);
        sines[pair] = sine == 0.0 ? 0.0 : sine; /* no negative zeros in the tables */
        cosines[pair] = cosine == 0.0 ? 0.0 : cosine;
    }
}
