/*
 * os/file.h: files as the layers above use them: whole counts, EINTR and short
 * counts handled, errors that name the operation and the path.
 *
 * A handle remembers the path it was opened by, for messages only.
 */
#ifndef PAWL_OS_FILE_H
#define PAWL_OS_FILE_H

#include "base/buffer.h"
#include "base/fail.h"
#include "os/os.h"
#include "pawl/tensor.h"

/* ---- directories ---- */

struct pawl_dir {
    const struct pawl_os *os;
    struct pawl_os_dir *handle; /* NULL: closed */
    char *path;                 /* for messages */
};

#define PAWL_DIR_INIT    \
    {                    \
        NULL, NULL, NULL \
    }

enum pawl_status pawl_dir_open_path(struct pawl_dir *dir, const struct pawl_os *os, const char *path,
                                    struct pawl_error *err);
enum pawl_status pawl_dir_open_in(struct pawl_dir *dir, const struct pawl_dir *parent, const char *name,
                                  struct pawl_error *err);
void pawl_dir_release(struct pawl_dir *dir);

/*
 * Create `path` and every missing parent, and make all of it durable. Existing directories are left as they are, but
 * their names are synced too, up to the top of their filesystem: an earlier run that was killed may have made them
 * and never synced. *ret_made (may be NULL): how many it made, the innermost ones; 0: `path` was there. On failure the
 * place is as before.
 */
enum pawl_status pawl_dir_create_all(const struct pawl_os *os, const char *path, size_t *ret_made,
                                     struct pawl_error *err);
/* Take that back: remove the `n_made` innermost directories of `path`, as far as they are empty. */
void pawl_dir_remove_made(const struct pawl_os *os, const char *path, size_t n_made);
enum pawl_status pawl_dir_create_in(const struct pawl_dir *parent, const char *name, struct pawl_error *err);

/* Sync, where "that filesystem has no such thing" is no failure: *ret_is_unsupported (may be NULL) then. */
enum pawl_status pawl_dir_sync(const struct pawl_dir *dir, bool *ret_is_unsupported, struct pawl_error *err);

struct pawl_dir_entry {
    char *name;
    enum pawl_os_kind kind; /* never 0: asked for where the listing did not tell */
};

struct pawl_dir_list {
    struct pawl_dir_entry *entries; /* by name in byte order */
    size_t n;
};

enum pawl_status pawl_dir_list(const struct pawl_dir *dir, struct pawl_dir_list *ret_list, struct pawl_error *err);
void pawl_dir_list_release(struct pawl_dir_list *list);

/* PAWL_NO_FILE when there is no such entry. Of a link: the link itself. */
enum pawl_status pawl_dir_stat(const struct pawl_dir *dir, const char *name, struct pawl_os_stat *ret,
                               struct pawl_error *err);
/* PAWL_EXISTS with PAWL_OS_NO_REPLACE when `to` is there. PAWL_UNSUPPORTED when NO_REPLACE or EXCHANGE can't be done in
 * one step here ("use the other way"); never for PAWL_OS_REPLACE. A rename that a file server carried out and denied is
 * found by looking at both names. */
enum pawl_status pawl_dir_rename(const struct pawl_dir *dir, const char *from, const char *to, enum pawl_os_rename how,
                                 struct pawl_error *err);
/* PAWL_NO_FILE when there is none. */
enum pawl_status pawl_dir_remove_file(const struct pawl_dir *dir, const char *name, struct pawl_error *err);
/* Remove an entry with all that is in it, links not followed; nothing there is fine. Iterative in depth; goes on over
 * entries that can't be removed and reports the first of them. */
enum pawl_status pawl_dir_remove_tree(const struct pawl_dir *dir, const char *name, struct pawl_error *err);

/*
 * Exclusive lock of the directory, held until pawl_dir_unlock or the release of `dir`, and dropped in a forked child.
 * PAWL_BUSY when another holds it: the message names the process where the system tells. *ret_is_fallback (may be NULL):
 * the directory itself can't be locked here, and a file `.lock` in it, never removed, is locked instead.
 * PAWL_UNSUPPORTED: nothing can be locked on that filesystem.
 */
enum pawl_status pawl_dir_lock(const struct pawl_dir *dir, enum pawl_os_lock how, bool *ret_is_fallback,
                               struct pawl_error *err);
void pawl_dir_unlock(const struct pawl_dir *dir);

/* "nfs", "cifs", "fuse" or "9p" for a filesystem whose promises are weaker, else NULL; also when it can't be told. */
const char *pawl_dir_weak_kind(const struct pawl_dir *dir);

/* Fails with PAWL_NO_SPACE, needed and available bytes in the message, when `bytes` surely do not fit. */
enum pawl_status pawl_dir_check_space(const struct pawl_dir *dir, uint64_t bytes, struct pawl_error *err);

/* ---- files for reading ---- */

struct pawl_file {
    const struct pawl_os *os;
    struct pawl_os_file *handle; /* NULL: closed */
    char *path;
    uint64_t bytes;   /* size when opened */
    int64_t mtime_ns; /* when opened, for pawl_file_check_unchanged */
};

#define PAWL_FILE_INIT         \
    {                          \
        NULL, NULL, NULL, 0, 0 \
    }

/* A path of the caller's; links are followed. A directory, FIFO, device or socket is PAWL_CORRUPT with code
 * "not-a-file" and a message that says what it is, never a hang. */
enum pawl_status pawl_file_open_path(struct pawl_file *file, const struct pawl_os *os, const char *path,
                                     struct pawl_error *err);
/* Inside a directory; a link is followed only with PAWL_OS_FOLLOW. */
enum pawl_status pawl_file_open_in(struct pawl_file *file, const struct pawl_dir *dir, const char *name,
                                   unsigned open_flags, struct pawl_error *err);
void pawl_file_release(struct pawl_file *file);

/* Exactly `bytes`, or PAWL_TRUNCATED. An EIO is tried a second time before it is believed. */
enum pawl_status pawl_file_read(const struct pawl_file *file, uint64_t offset, void *data, size_t bytes,
                                struct pawl_error *err);
/* The whole file, at most `bytes_max` (PAWL_LIMIT beyond). */
enum pawl_status pawl_file_read_all(const struct pawl_file *file, size_t bytes_max, struct pawl_buffer *ret_bytes,
                                    struct pawl_error *err);
/* Whether the file still has the size and time it had when opened: PAWL_TRUNCATED or PAWL_CORRUPT ("changed") if not. */
enum pawl_status pawl_file_check_unchanged(const struct pawl_file *file, struct pawl_error *err);

/* ---- mappings ---- */

struct pawl_map {
    const struct pawl_os *os;
    const unsigned char *data; /* NULL when bytes is 0 */
    size_t bytes;
    char *path; /* for messages */
};

#define PAWL_MAP_INIT       \
    {                       \
        NULL, NULL, 0, NULL \
    }

enum pawl_status pawl_map_file(struct pawl_map *map, const struct pawl_file *file, struct pawl_error *err);
/* Read a range in, so that a touch right after cannot fault. PAWL_TRUNCATED: the file was cut under the mapping.
 * PAWL_UNSUPPORTED: the system can't tell; read with pawl_file_read instead. */
enum pawl_status pawl_map_populate(const struct pawl_map *map, size_t offset, size_t bytes, struct pawl_error *err);
void pawl_map_release(struct pawl_map *map);

/* ---- writing ---- */

/*
 * One file being written, front to back. It is the place of the durable
 * writing engine: spans are taken in file order and every byte is shown to
 * `tap` (a hash, a counter) in order, exactly once, at the latest when
 * pawl_writer_sync has returned. Data are gathered in a buffer of 1 MiB;
 * larger spans are written from where they are.
 *
 * A file that was announced with 1 MiB or more goes through a lane
 * (os/lane.h): while the caller fills a buffer, others are written, past the
 * system's cache where the filesystem takes that, and shown to the tap, by
 * threads of their own. Tables that do not take threads see the same calls
 * from the caller's.
 *
 *     pawl_writer_create -> pawl_writer_add ... -> pawl_writer_sync -> pawl_writer_close
 *
 * After an error only pawl_writer_abandon makes sense. A failed sync is final: write the data again to a new file.
 * The directory must stay open as long as the writer: "no space" asks it how much there is.
 */
struct pawl_tap {
    void (*update)(void *context, const void *data, size_t bytes); /* NULL: nobody looks */
    void *context;
};

struct pawl_lane;
struct pawl_lanes;
struct pawl_outlet;

struct pawl_writer {
    const struct pawl_os *os;
    struct pawl_os_dir *dir; /* the directory's handle, not owned */
    struct pawl_os_file *handle;
    const struct pawl_sink *sink; /* instead of a file; not owned */
    char *path;
    uint64_t bytes_expected; /* as announced, 0 when not known */
    uint64_t bytes_reserved; /* 0 when nothing was reserved */
    uint64_t offset;         /* bytes taken so far */
    uint64_t written;        /* bytes handed to the system */
    uint64_t written_back;   /* of these, the write-back was begun */
    unsigned char *gather;   /* the buffer; NULL when there is a lane */
    size_t gathered;
    struct pawl_tap tap;
    struct pawl_lane *lane; /* NULL: a small file, one of unknown size, or a sink */
    struct pawl_lanes *own_lanes;
    struct pawl_outlet *outlet; /* what the lane writes by */
};

#define PAWL_WRITER_INIT                                                                       \
    {                                                                                          \
        NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0, { NULL, NULL }, NULL, NULL, NULL \
    }

/* `bytes` is the size to come, 0 when not known: space is reserved where the filesystem can. A file that becomes
 * smaller is cut at the sync, a larger one just grows. PAWL_EXISTS when the name is taken. */
enum pawl_status pawl_writer_create(struct pawl_writer *writer, const struct pawl_dir *dir, const char *name,
                                    uint64_t bytes, struct pawl_tap tap, struct pawl_error *err);
/* The same, as one of several files that are written at once: their taps are served together (os/lane.h). `lanes` NULL: alone. */
enum pawl_status pawl_writer_create_among(struct pawl_writer *writer, struct pawl_lanes *lanes,
                                          const struct pawl_dir *dir, const char *name, uint64_t bytes,
                                          struct pawl_tap tap, struct pawl_error *err);
/* Write to a sink: a sync hands over what is gathered and syncs nothing, a close ends it. `sink` must live as long as the writer. */
enum pawl_status pawl_writer_to_sink(struct pawl_writer *writer, const struct pawl_sink *sink, struct pawl_tap tap,
                                     struct pawl_error *err);
enum pawl_status pawl_writer_add(struct pawl_writer *writer, const void *data, size_t bytes, struct pawl_error *err);
/* Room for the caller to fill in place, at most `bytes`, at least 1; then pawl_writer_filled(n). Saves a copy for sources. */
enum pawl_status pawl_writer_room(struct pawl_writer *writer, size_t bytes, void **ret_room, size_t *ret_bytes,
                                  struct pawl_error *err);
enum pawl_status pawl_writer_filled(struct pawl_writer *writer, size_t bytes, struct pawl_error *err);
/* Add bytes that stay as they are, where they are, until the sync: what lies as a direct write wants it is not copied. */
enum pawl_status pawl_writer_lend(struct pawl_writer *writer, const void *data, size_t bytes, struct pawl_error *err);
enum pawl_status pawl_writer_sync(struct pawl_writer *writer, struct pawl_error *err);
enum pawl_status pawl_writer_close(struct pawl_writer *writer,
                                   struct pawl_error *err); /* an error of close is an error */
void pawl_writer_abandon(
    struct pawl_writer *writer); /* close without caring; the name stays; fine after close and on the empty state */

/* ---- replacing one file ---- */

/*
 * Publish bytes under a name: `<name>.tmp` beside it, sync, rename, sync of the
 * directory. After any failure the name holds all its old bytes or all the new,
 * and the temporary is gone where it can be; one left by a crash is removed
 * first. Mode: an ordinary create's.
 */
enum pawl_status pawl_file_replace(const struct pawl_dir *dir, const char *name, const char *temporary,
                                   const void *data, size_t bytes, struct pawl_error *err);

/*
 * Publish a large file under a caller's path: a temporary beside the target (`.<name>.<unique>.tmp`), written through
 * `writer`, then synced, renamed, and the directory synced. A link that the path is, is followed and its target
 * replaced; a replaced file keeps its mode; a mapping of the old file keeps the old bytes. After any failure, and after
 * pawl_publish_release without a commit, the old file is intact (or, when only the last sync failed, replaced by the
 * whole new one) and the temporary gone where it can be. A target that is a directory, FIFO or device is refused.
 *
 *     pawl_publish_begin -> pawl_writer_add(&publish.writer, ...) -> pawl_publish_commit;  always pawl_publish_release
 */
struct pawl_publish {
    struct pawl_dir dir;
    char *name; /* of the target, links resolved */
    char *temporary;
    bool is_replacing; /* the target was there: keep its mode */
    uint32_t mode;
    bool may_replace;
    struct pawl_writer writer;
    bool is_unsynced; /* set after begin: the commit renames and syncs nothing */
};

#define PAWL_PUBLISH_INIT                                                   \
    {                                                                       \
        PAWL_DIR_INIT, NULL, NULL, false, 0, false, PAWL_WRITER_INIT, false \
    }

/* PAWL_EXISTS when the target is there and may_replace is false (checked again, in one step, at the commit). */
enum pawl_status pawl_publish_begin(struct pawl_publish *publish, const struct pawl_os *os, const char *path,
                                    bool may_replace, uint64_t bytes, struct pawl_tap tap, struct pawl_error *err);
enum pawl_status pawl_publish_commit(struct pawl_publish *publish, struct pawl_error *err);
void pawl_publish_release(struct pawl_publish *publish);

#endif
