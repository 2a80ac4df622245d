/*
 * sim/simimage.h: files and directories as plain values, and the operations
 * that change them. A disk has two images, what programs see and what was
 * durable at the start; a crash state is the second with some operations applied.
 *
 * An operation says what it sets, not what it found: "name X means inode 7
 * from now on". So each has a meaning whether or not those before it survived.
 */
#ifndef SIM_SIMIMAGE_H
#define SIM_SIMIMAGE_H

#include "os/os.h"

#define SIM_ROOT ((size_t)0) /* the inode of the root directory */
#define SIM_NONE SIZE_MAX    /* no inode: the name is removed */

struct simentry {
    char *name;
    size_t inode;
};

struct siminode {
    enum pawl_os_kind kind;
    uint32_t mode;
    int64_t mtime_ns;
    unsigned char *data; /* of a file, or a link's text; a NUL stands behind it */
    size_t bytes;
    struct simentry *entries; /* of a directory */
    size_t n_entries;
};

struct simimage {
    struct siminode *inodes;
    size_t n;
};

enum simchange_kind {
    SIMCHANGE_NAMES,     /* one or two names of one or two directories */
    SIMCHANGE_WRITE,     /* bytes of a file */
    SIMCHANGE_SET_BYTES, /* its size */
    SIMCHANGE_SET_MODE,
    SIMCHANGE_SYNC_FILE, /* these change no image: they say what can no longer be lost */
    SIMCHANGE_SYNC_DIR,
    SIMCHANGE_SYNC_ALL,
    SIMCHANGE_MARK /* the test's own note, "reported durable" */
};

struct simname {
    size_t dir; /* inode */
    char *name;
    size_t inode; /* what it means from now on, SIM_NONE: nothing */
};

struct simchange {
    enum simchange_kind kind;
    struct simname names[2]; /* SIMCHANGE_NAMES; the second may have name NULL */
    size_t inode;            /* of the file or directory that is written or synced */
    uint64_t offset;
    uint64_t bytes; /* written, or the new size */
    unsigned char *data;
    uint32_t mode;
    int64_t mtime_ns;
    char *text;       /* SIMCHANGE_MARK, and how the operation is called in a listing */
    bool is_setup;    /* by the test, durable from the start */
    bool is_doomed;   /* a sync that should have kept it failed: no later one does */
    unsigned at_call; /* number of the call of the table that made it */
};

/* Memory of the tests: aborts when there is none. */
void *sim_alloc(size_t bytes);
char *sim_copy_text(const char *text);
uint64_t sim_random(uint64_t *state); /* splitmix64 */

void simimage_init(struct simimage *image); /* an empty root */
void simimage_release(struct simimage *image);
void simimage_copy(struct simimage *to, const struct simimage *from);
/* Make sure that the inode is there, empty. */
void simimage_need(struct simimage *image, size_t inode, enum pawl_os_kind kind, uint32_t mode, int64_t mtime_ns);

size_t simimage_find(const struct simimage *image, size_t dir, const char *name); /* SIM_NONE: nothing */
size_t simimage_parent(const struct simimage *image, size_t dir);                 /* of the root: the root */
/* Bytes of all files that have a name. */
uint64_t simimage_bytes(const struct simimage *image);

void simimage_set_name(struct simimage *image, size_t dir, const char *name, size_t inode);
void simimage_write(struct simimage *image, size_t inode, uint64_t offset, const void *data, size_t bytes);
void simimage_set_bytes(struct simimage *image, size_t inode, uint64_t bytes);
void simimage_apply(struct simimage *image, const struct simchange *change);
void simchange_release(struct simchange *change);

#endif
