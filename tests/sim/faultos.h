/*
 * sim/faultos.h: a table over another table (a real directory, or a simulated
 * disk) that counts calls, fails the n-th on purpose, shortens it, or lacks
 * features. Handles pass through unchanged.
 */
#ifndef SIM_FAULTOS_H
#define SIM_FAULTOS_H

#include "os/os.h"
#include "sim/simop.h"

struct faultos;

struct faultos *faultos_new(const struct pawl_os *inner);
void faultos_free(struct faultos *faults);
const struct pawl_os *faultos_os(struct faultos *faults);

/*
 * From now on the n-th call (0: the next) of kind `op` answers `code` instead
 * of being made, once; `repeats` more right behind it too. file_close and
 * dir_close are made all the same, as systems do. code 0: the call is made and
 * cut short (write, read: half the bytes, at least one).
 */
void faultos_fail(struct faultos *faults, enum sim_op op, unsigned nth, unsigned repeats, int code);
/* The same, but the call is made and then denied: what a file server does when an answer got lost. */
void faultos_fail_after(struct faultos *faults, enum sim_op op, unsigned nth, int code);
/* Was the fault met? */
bool faultos_was_met(const struct faultos *faults);
void faultos_lack(struct faultos *faults, unsigned features);
/* Say that calls may come from several threads; which one is the n-th is then anybody's guess. */
void faultos_take_threads(struct faultos *faults);

/* Calls since the beginning or the last faultos_reset. */
unsigned faultos_calls(const struct faultos *faults, enum sim_op op);
void faultos_reset(struct faultos *faults);

/* The kinds of the calls in order, and the number of them, since the last reset. */
const enum sim_op *faultos_log(const struct faultos *faults, size_t *ret_n);

/* Handles and mappings that are open. */
int faultos_open(const struct faultos *faults);

#endif
