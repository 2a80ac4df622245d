/* codec/cast.h: pawl_cast() for a part of something longer. */
#ifndef PAWL_CODEC_CAST_H
#define PAWL_CODEC_CAST_H

#include "pawl/dtype.h"

/* As pawl_cast(); `first` values were before these: indexes, in the message too, count from there. */
enum pawl_status pawl_cast_part(enum pawl_dtype from, const void *codes, size_t n, enum pawl_dtype to,
                                enum pawl_overflow overflow, void *values, uint64_t first, uint64_t *ret_bad,
                                struct pawl_error *err);

#endif
