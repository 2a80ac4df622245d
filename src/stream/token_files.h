/* stream/token_files.h: what a manifest states about the files of a token PATH. */
#ifndef PAWL_STREAM_TOKEN_FILES_H
#define PAWL_STREAM_TOKEN_FILES_H

#include "formats/tokens/manifest.h"
#include "os/file.h"

/* NULL where no manifest lists file i. */
const struct pawl_token_file *pawl_token_files_row(const struct pawl_token_files *files, size_t i);
/* The vocabulary that the manifest of file i states; 0: none. */
uint64_t pawl_token_files_vocabulary(const struct pawl_token_files *files, size_t i);

/* The shard that a manifest lists must hold the ids that the row says: PAWL_CORRUPT, "manifest". */
enum pawl_status pawl_token_files_check(const struct pawl_token_files *files, size_t i,
                                        const struct pawl_shard_info *info, struct pawl_error *err);

/* Read and parse the manifest of a directory into an arena. PAWL_NO_FILE when there is none. */
enum pawl_status pawl_token_manifest_load(const struct pawl_dir *dir, struct pawl_arena *arena,
                                          struct pawl_token_manifest *ret_manifest, struct pawl_error *err);

#endif
