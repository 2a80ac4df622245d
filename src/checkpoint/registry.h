/*
 * checkpoint/registry.h: the saves in flight of this process, so that a program that leaves waits for them. The only global state of saving.
 */
#ifndef PAWL_CHECKPOINT_REGISTRY_H
#define PAWL_CHECKPOINT_REGISTRY_H

#include "checkpoint/async.h"

/*
 * Install the handlers, once: at exit, and around fork (a child has no saves in flight: their threads are not there). Call it before the first
 * save begins. PAWL_NO_MEMORY when the system can't.
 */
enum pawl_status pawl_registry_start(struct pawl_error *err);

/* From the moment its thread begins until it is joined. */
void pawl_registry_add(struct pawl_save *save);
void pawl_registry_remove(struct pawl_save *save);

#endif
