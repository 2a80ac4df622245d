/* checkpoint/pins.h: RETENTION.json: the steps that retention must not delete. */
#ifndef PAWL_CHECKPOINT_PINS_H
#define PAWL_CHECKPOINT_PINS_H

#include "base/arena.h"
#include "os/file.h"

/* Reading and printing the document; ascending, each once. PAWL_CORRUPT for what breaks the schema. */
enum pawl_status pawl_pins_parse(struct pawl_arena *arena, const void *text, size_t bytes, int64_t **ret_pinned,
                                 size_t *ret_n, struct pawl_error *err);
bool pawl_pins_print(const int64_t *pinned, size_t n, struct pawl_buffer *out);

/* The pinned steps of a root, none without the file. An error: nothing may be deleted there. */
enum pawl_status pawl_pins_read(const struct pawl_dir *root, struct pawl_arena *arena, int64_t **ret_pinned,
                                size_t *ret_n, struct pawl_error *err);
bool pawl_pins_hold(const int64_t *pinned, size_t n, int64_t step);

/* Pin or unpin; the caller holds the root's lock. Durable; what changes nothing writes nothing. */
enum pawl_status pawl_pins_change(const struct pawl_dir *root, int64_t step, bool is_pinned, struct pawl_error *err);

/* pawl_ckpt_pin, _unpin and _pins over another table of the system (tests). */
enum pawl_status pawl_ckpt_pin_os(const struct pawl_os *os, struct pawl_str root, int64_t step, bool is_pinned,
                                  struct pawl_error *err);
enum pawl_status pawl_ckpt_pins_os(const struct pawl_os *os, struct pawl_str root, int64_t **ret_steps, size_t *ret_n,
                                   struct pawl_error *err);

#endif
