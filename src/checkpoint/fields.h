/*
 * checkpoint/fields.h: what the parsers of the checkpoint's documents share: is this value the object, the integer, the digits that the
 * schema asks for? A failure is PAWL_CORRUPT, code "content", with the offset in the text and a message that begins with the field:
 * "data_cursor: offset: expected an integer from 0 to 9223372036854775807, found -1".
 */
#ifndef PAWL_CHECKPOINT_FIELDS_H
#define PAWL_CHECKPOINT_FIELDS_H

#include "formats/json/json.h"

/* Parse a whole text whose value must be an object. */
enum pawl_status pawl_fields_parse(struct pawl_arena *arena, const void *text, size_t bytes,
                                   const struct pawl_json_value **ret_object, struct pawl_error *err);

/*
 * Is `value` an object that has each of `names[0 .. n_required)` and nothing besides names[0 .. n)?
 * ret_members  of n: the member of each name, NULL for an optional one that is not there.
 */
enum pawl_status pawl_fields_object(const struct pawl_json_value *value, const char *const *names, size_t n,
                                    size_t n_required, const struct pawl_json_value **ret_members,
                                    struct pawl_error *err);

/* An integer in digits alone, 0 ... 2^63-1. */
enum pawl_status pawl_field_count(const struct pawl_json_value *value, const char *name, int64_t *ret,
                                  struct pawl_error *err);
/* Any number, integers too. */
enum pawl_status pawl_field_real(const struct pawl_json_value *value, const char *name, double *ret,
                                 struct pawl_error *err);
enum pawl_status pawl_field_string(const struct pawl_json_value *value, const char *name, struct pawl_str *ret,
                                   struct pawl_error *err);
/* A string of exactly that many lowercase hex digits. */
enum pawl_status pawl_field_hex(const struct pawl_json_value *value, const char *name, size_t digits,
                                struct pawl_str *ret, struct pawl_error *err);

/* "a value is not what was expected": `expected` is the middle of the sentence. */
enum pawl_status pawl_field_fail(const struct pawl_json_value *value, const char *name, const char *expected,
                                 struct pawl_error *err);

#endif
