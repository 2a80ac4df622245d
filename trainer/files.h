/* trainer/files.h: the few files that a trainer writes beside its checkpoints: small texts, replaced durably and at once. */
#ifndef TRAINER_FILES_H
#define TRAINER_FILES_H

#include "pawl/status.h"

#define FILES_PATH_MAX 4096 /* of the systems we know: a longer path can't be opened anyhow */

/* dir, "/" and name; PAWL_ARGUMENT when that is too long for the system. */
enum pawl_status files_join(const char *dir, const char *name, char ret_path[FILES_PATH_MAX], struct pawl_error *err);
bool files_exist(const char *path); /* whatever it is; a link to nothing too */

/* Make a directory and its missing parents; each new one is durable in its parent. One that is there is fine. */
enum pawl_status files_make_directories(const char *path, struct pawl_error *err);

/* Put `text` under `name` in `dir`: temporary beside it, fsync, rename, fsync of the directory. Any old file is replaced. */
enum pawl_status files_publish(const char *dir, const char *name, struct pawl_str text, struct pawl_error *err);

/* fsync of a directory; a filesystem that has no such thing is no failure. */
enum pawl_status files_sync_directory(const char *path, struct pawl_error *err);

#endif
