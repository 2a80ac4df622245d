/*
 * proof/order.h: the order that the protocol prescribes, checked on the trace itself: what must be on the disk before what may be done. A
 * crash state shows that an order matters; this says which order it is, and finds a swap also where no reader would notice it.
 */
#ifndef PROOF_ORDER_H
#define PROOF_ORDER_H

#include "sim/simdisk.h"

/* The first rule that the trace breaks, NULL for none. Marks tell the acts apart: "save" before one of a save, "done" when it was reported. */
const char *order_check(const struct simdisk *disk, const char *root);

#endif
