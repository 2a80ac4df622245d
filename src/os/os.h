/*
 * os/os.h: the only way from Pawl to files.
 *
 * `struct pawl_os` is a table of meanings. Each entry does one thing to one
 * directory or file, answers 0 or an errno value, and decides nothing: no
 * retries, no loops over short counts, no messages. What to do about EINTR, a
 * short write or a filesystem that lacks something is decided once, above the
 * table, in os/file.c and os/dir.c, so that a table which fails the n-th
 * call on purpose tests those decisions too.
 *
 * Names are relative to a directory handle: a run keeps its root open, so a
 * change of the working directory, or of a link in the path, changes nothing.
 * Only dir_open_path takes a path of the caller's.
 *
 * Tables: pawl_os_posix() (os/posix.c) and the simulated disk of the tests
 * (tests/sim/simdisk.h). Another system is another file.
 *
 * Threads: the entries of the POSIX table may be called from any thread; two
 * threads may use one file handle when they write different ranges.
 */
#ifndef PAWL_OS_OS_H
#define PAWL_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pawl_os_dir;  /* an open directory */
struct pawl_os_file; /* an open file */

enum pawl_os_kind { PAWL_OS_FILE = 1, PAWL_OS_DIR = 2, PAWL_OS_LINK = 3, PAWL_OS_OTHER = 4 /* FIFO, device, socket */ };

struct pawl_os_stat {
    enum pawl_os_kind kind;
    uint64_t bytes;
    uint32_t mode; /* permission bits only: 07777 */
    uint64_t device, inode;
    int64_t mtime_ns; /* only to notice that a file was changed under us; never to order steps */
};

struct pawl_os_span {
    const void *data;
    size_t bytes;
};

/* Called once per entry, "." and ".." left out, in no order. `name` lives for the call. Nonzero ends the listing with
 * that answer. `kind` may be 0 where the system does not tell: stat then. */
typedef int pawl_os_list_fn(void *context, const char *name, enum pawl_os_kind kind);

enum pawl_os_open {
    PAWL_OS_FOLLOW = 1, /* follow a link that the last component is */
};

enum pawl_os_rename {
    PAWL_OS_REPLACE = 0,
    PAWL_OS_NO_REPLACE =
        1,                /* EEXIST when `to` is there; EINVAL, ENOSYS or ENOTSUP where it can't be done in one step */
    PAWL_OS_EXCHANGE = 2, /* both names stay, contents change places */
};

enum pawl_os_lock { PAWL_OS_LOCK_TRY = 1, PAWL_OS_LOCK_WAIT = 2 };

/* A forced write-back and cache advice are meanings too; a table may do nothing and answer 0. */
enum pawl_os_advice { PAWL_OS_SEQUENTIAL = 1, PAWL_OS_WILL_NEED = 2, PAWL_OS_DONT_NEED = 3 };

struct pawl_os {
    void *context; /* the table's own; handed to every entry */
    /* Calls for one job may come from several threads, in no settled order. Where false (a table that counts calls, or replays them), each
     * job is done by the thread that asks for it, one call after the other. */
    bool takes_threads;

    /* ---- directories ---- */

    /* Open by the caller's path (links in it are followed), or by name inside `dir` (never through a link: ENOTDIR or
     * ELOOP then). The handle can be synced and locked. */
    int (*dir_open_path)(void *context, const char *path, struct pawl_os_dir **ret_dir);
    int (*dir_open)(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_dir **ret_dir);
    int (*dir_close)(void *context, struct pawl_os_dir *dir);
    /* mkdir with the mode an ordinary create gives (0777 less the umask). EEXIST when the name is taken. */
    int (*dir_create_path)(void *context, const char *path);
    int (*dir_create)(void *context, struct pawl_os_dir *dir, const char *name);
    int (*dir_list)(void *context, struct pawl_os_dir *dir, pawl_os_list_fn *fn, void *fn_context);
    /* Make durable which names the directory has. EINVAL or ENOTSUP: that filesystem has no such thing. */
    int (*dir_sync)(void *context, struct pawl_os_dir *dir);
    /* Exclusive lock, held until dir_unlock or the handle's close, and dropped in a forked child. EWOULDBLOCK: held by
     * another. The table knows its fall-back where a directory can't be locked (os-notes: `.lock`), and then sets
     * *ret_is_fallback. On EWOULDBLOCK *ret_holder is the holder's process number, 0 when not known. */
    int (*dir_lock)(void *context, struct pawl_os_dir *dir, enum pawl_os_lock how, bool *ret_is_fallback,
                    int64_t *ret_holder);
    int (*dir_unlock)(void *context, struct pawl_os_dir *dir);
    /* Bytes that this user could still write there; advice, not a promise. */
    int (*dir_space)(void *context, struct pawl_os_dir *dir, uint64_t *ret_available);
    /* Short name of the filesystem when it is one with weaker promises ("nfs", "cifs", "fuse", "9p"), else NULL. */
    int (*dir_weak_kind)(void *context, struct pawl_os_dir *dir, const char **ret_kind);

    /* ---- names ---- */

    int (*stat)(void *context, struct pawl_os_dir *dir, const char *name,
                struct pawl_os_stat *ret); /* of a link: the link; of ".": the directory itself */
    int (*read_link)(void *context, struct pawl_os_dir *dir, const char *name, char *text, size_t size,
                     size_t *ret_len);
    int (*rename)(void *context, struct pawl_os_dir *from_dir, const char *from, struct pawl_os_dir *to_dir,
                  const char *to, enum pawl_os_rename how);
    int (*remove_file)(void *context, struct pawl_os_dir *dir, const char *name); /* anything but a directory */
    int (*remove_dir)(void *context, struct pawl_os_dir *dir, const char *name);  /* an empty one */

    /* ---- files ---- */

    /* A new file (EEXIST when the name is taken), for reading and writing, mode 0666 less the umask. */
    int (*file_create)(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_file **ret_file);
    /* An existing regular file for reading. Never blocks: a FIFO, device or socket is answered EFTYPE-like as
     * ENXIO, a directory EISDIR, a link (unless followed) ELOOP. */
    int (*file_open)(void *context, struct pawl_os_dir *dir, const char *name, unsigned open_flags,
                     struct pawl_os_file **ret_file);
    int (*file_close)(void *context, struct pawl_os_file *file);
    int (*file_stat)(void *context, struct pawl_os_file *file, struct pawl_os_stat *ret);
    int (*file_set_mode)(void *context, struct pawl_os_file *file, uint32_t mode);
    /* May write fewer bytes than asked, at least 1; 0 bytes is EIO. */
    int (*file_write_at)(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans,
                         size_t n_spans, size_t *ret_written);
    /* May read fewer bytes than asked; 0 is the end. */
    int (*file_read_at)(void *context, struct pawl_os_file *file, uint64_t offset, void *data, size_t bytes,
                        size_t *ret_read);
    int (*file_reserve)(void *context, struct pawl_os_file *file,
                        uint64_t bytes); /* EOPNOTSUPP: can't, go on without */
    int (*file_set_bytes)(void *context, struct pawl_os_file *file, uint64_t bytes); /* cut, or grow by zeros */
    /*
     * From now on, or no longer, write past the system's cache. While on, offset, bytes and memory of each span of file_write_at must be
     * multiples of *ret_alignment (EINVAL, perhaps). EINVAL, EOPNOTSUPP: not on this filesystem. NULL: never in this table.
     */
    int (*file_set_direct)(void *context, struct pawl_os_file *file, bool is_direct, size_t *ret_alignment);
    /*
     * A second handle on an open file, for reading past the system's cache: of the same file, whatever has its name now. Offset, bytes and memory
     * of its file_read_at must be multiples of *ret_alignment (EINVAL, perhaps); it stops at the end of the file, and sees what was written
     * before. Any error: not here. NULL: never in this table.
     */
    int (*file_open_direct)(void *context, struct pawl_os_file *file, struct pawl_os_file **ret_direct,
                            size_t *ret_alignment);
    /* About how many of these bytes the system has in its cache; a moment later it may be otherwise. Any error: can't tell. NULL: never. */
    int (*file_cached)(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, size_t *ret_cached);
    int (*file_sync)(void *context, struct pawl_os_file *file); /* data and what it takes to find them */
    int (*file_write_back)(void *context, struct pawl_os_file *file, uint64_t offset,
                           uint64_t bytes); /* begin, don't wait */
    int (*file_advise)(void *context, struct pawl_os_file *file, uint64_t offset, uint64_t bytes,
                       enum pawl_os_advice advice);
    /* A read-only private mapping of the whole range; it outlives the file handle. */
    int (*file_map)(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, const void **ret_data);
    void (*unmap)(void *context, const void *data, size_t bytes);
    /* Read mapped pages in, so that a later touch cannot fault. EFAULT: the file is shorter than it was. ENOSYS: can't tell. */
    int (*map_populate)(void *context, const void *data, size_t bytes);

    /* ---- the machine ---- */

    uint64_t (*clock_ns)(void *context);    /* monotonic */
    int64_t (*wall_seconds)(void *context); /* since 1970, for created_at */
    void (*sleep_ns)(void *context, uint64_t ns);
    int64_t (*process_id)(void *context);
};

/* The host's table. Static; never NULL. */
const struct pawl_os *pawl_os_posix(void);

#endif
