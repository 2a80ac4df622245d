/* The table of the simulated disk. */
#include "sim/simdisk_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pawl_os_dir {
    size_t inode;
    uint64_t generation;
};

struct pawl_os_file {
    size_t inode;
    uint64_t generation;
    bool is_writable, is_direct;
};

/* Links followed in one path. */
#define LINKS_MAX 40

/* ---- each call begins and ends here ---- */

static bool
changes_disk(enum sim_op op)
{
    switch (op) {
    case SIM_DIR_CREATE_PATH:
    case SIM_DIR_CREATE:
    case SIM_DIR_SYNC:
    case SIM_RENAME:
    case SIM_REMOVE_FILE:
    case SIM_REMOVE_DIR:
    case SIM_FILE_CREATE:
    case SIM_FILE_SET_MODE:
    case SIM_FILE_WRITE_AT:
    case SIM_FILE_SET_BYTES:
    case SIM_FILE_SYNC:
        return true;
    default:
        return false;
    }
}

/* Takes the mutex; finish() gives it back. 0: make the call; else its answer. */
static int
begin(struct simdisk *disk, enum sim_op op)
{
    (void)pthread_mutex_lock(&disk->mutex);
    disk->calls[op]++;
    disk->calls[SIM_ANY]++;
    disk->is_shortened = false;
    disk->is_denied = false;
    if (disk->is_cut)
        return EIO;
    if (disk->is_cut_planned && disk->cut_in-- == 0) {
        disk->is_cut = true;
        disk->cut_trace_len = disk->n_trace;
        disk->is_denied = true; /* perhaps it was carried out: the reboot decides */
        return changes_disk(op) ? 0 : EIO;
    }
    if (disk->is_armed && (disk->fault_op == SIM_ANY || disk->fault_op == op)) {
        if (disk->fault_nth > 0) {
            disk->fault_nth--;
            return 0;
        }
        disk->was_met = true;
        if (disk->fault_repeats == 0)
            disk->is_armed = false;
        else
            disk->fault_repeats--;
        disk->is_shortened = disk->fault_code == 0;
        return disk->fault_code;
    }
    return 0;
}

static int
finish(struct simdisk *disk, int code)
{
    if (disk->is_denied)
        code = EIO;
    (void)pthread_mutex_unlock(&disk->mutex);
    return code;
}

void
simdisk_record(struct simdisk *disk, struct simchange change)
{
    if (disk->n_trace == disk->trace_capacity) {
        disk->trace_capacity = disk->trace_capacity == 0 ? 64 : disk->trace_capacity * 2;
        disk->trace = realloc(disk->trace, disk->trace_capacity * sizeof *disk->trace);
        if (disk->trace == NULL)
            abort();
    }
    change.at_call = disk->calls[SIM_ANY];
    change.mtime_ns = ++disk->clock_ns;
    simimage_apply(&disk->now, &change);
    disk->trace[disk->n_trace++] = change;
}

size_t
simdisk_new_inode(struct simdisk *disk, enum pawl_os_kind kind, uint32_t mode)
{
    size_t inode = disk->now.n;
    int64_t now = ++disk->clock_ns;
    simimage_need(&disk->now, inode, kind, mode, now);
    simimage_need(&disk->base, inode, kind, mode, now);
    return inode;
}

static char *
format_text(const char *verb, const char *a, const char *b)
{
    size_t bytes = strlen(verb) + strlen(a) + strlen(b) + 8;
    char *text = sim_alloc(bytes);
    (void)snprintf(text, bytes, b[0] == '\0' ? "%s %s%s" : "%s %s -> %s", verb, a, b);
    return text;
}

/* ---- paths ---- */

static size_t
walk(const struct simdisk *disk, size_t from, const char *path, bool follow_last, unsigned links, int *ret_code)
{
    const struct simimage *image = &disk->now;
    size_t at = path[0] == '/' ? SIM_ROOT : from;
    if (path[0] == '\0') {
        *ret_code = ENOENT;
        return SIM_NONE;
    }
    while (*path != '\0') {
        while (*path == '/')
            path++;
        size_t len = strcspn(path, "/");
        if (len == 0)
            break;
        if (image->inodes[at].kind != PAWL_OS_DIR) {
            *ret_code = ENOTDIR;
            return SIM_NONE;
        }
        char *name = sim_alloc(len + 1);
        memcpy(name, path, len);
        path += len;
        size_t next = strcmp(name, ".") == 0    ? at
                      : strcmp(name, "..") == 0 ? simimage_parent(image, at)
                                                : simimage_find(image, at, name);
        free(name);
        if (next == SIM_NONE) {
            *ret_code = ENOENT;
            return SIM_NONE;
        }
        if (image->inodes[next].kind == PAWL_OS_LINK && (*path != '\0' || follow_last)) {
            if (links == LINKS_MAX) {
                *ret_code = ELOOP;
                return SIM_NONE;
            }
            next = walk(disk, at, (const char *)image->inodes[next].data, true, links + 1, ret_code);
            if (next == SIM_NONE)
                return SIM_NONE;
        }
        at = next;
    }
    *ret_code = 0;
    return at;
}

size_t
simdisk_walk(const struct simdisk *disk, const char *path, bool follow_last, int *ret_code)
{
    return walk(disk, SIM_ROOT, path, follow_last, 0, ret_code);
}

/* An entry of an open directory; a link is not followed. */
static size_t
find(const struct simdisk *disk, const struct pawl_os_dir *dir, const char *name, int *ret_code)
{
    *ret_code = 0;
    if (dir->generation != disk->generation) {
        *ret_code = EIO;
        return SIM_NONE;
    }
    if (name[0] == '\0' || strchr(name, '/') != NULL) {
        *ret_code = EINVAL;
        return SIM_NONE;
    }
    return walk(disk, dir->inode, name, false, 0, ret_code);
}

/* ---- directories ---- */

static struct pawl_os_dir *
new_dir(struct simdisk *disk, size_t inode)
{
    struct pawl_os_dir *dir = sim_alloc(sizeof *dir);
    dir->inode = inode;
    dir->generation = disk->generation;
    disk->handles++;
    return dir;
}

static int
sim_dir_open_path(void *context, const char *path, struct pawl_os_dir **ret_dir)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_OPEN_PATH);
    if (code == 0) {
        size_t inode = simdisk_walk(disk, path, true, &code);
        if (code == 0 && disk->now.inodes[inode].kind != PAWL_OS_DIR)
            code = ENOTDIR;
        if (code == 0)
            *ret_dir = new_dir(disk, inode);
    }
    return finish(disk, code);
}

static int
sim_dir_open(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_dir **ret_dir)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_OPEN);
    if (code == 0) {
        size_t inode = find(disk, dir, name, &code);
        if (code == 0 && disk->now.inodes[inode].kind != PAWL_OS_DIR)
            code = ENOTDIR;
        if (code == 0)
            *ret_dir = new_dir(disk, inode);
    }
    return finish(disk, code);
}

static void
drop_locks(struct simdisk *disk, const struct pawl_os_dir *dir)
{
    for (size_t i = 0; i < disk->n_locks;) {
        if (disk->locks[i].holder == dir)
            disk->locks[i] = disk->locks[--disk->n_locks];
        else
            i++;
    }
}

static int
sim_dir_close(void *context, struct pawl_os_dir *dir)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_CLOSE);
    drop_locks(disk, dir);
    if (dir->generation == disk->generation)
        disk->handles--;
    free(dir);
    return finish(disk, code);
}

static int
make_dir(struct simdisk *disk, size_t parent, const char *name)
{
    size_t inode = simdisk_new_inode(disk, PAWL_OS_DIR, 0777 & ~disk->umask);
    struct simchange change = { .kind = SIMCHANGE_NAMES, .text = format_text("mkdir", name, "") };
    change.names[0] = (struct simname){ parent, sim_copy_text(name), inode };
    simdisk_record(disk, change);
    return 0;
}

static int
sim_dir_create_path(void *context, const char *path)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_CREATE_PATH);
    if (code == 0) {
        size_t inode = simdisk_walk(disk, path, false, &code);
        if (inode != SIM_NONE) {
            code = EEXIST;
        } else if (code == ENOENT) {
            size_t end = strlen(path);
            while (end > 0 && path[end - 1] == '/')
                end--;
            size_t at = end;
            while (at > 0 && path[at - 1] != '/')
                at--;
            char *parent_path = sim_alloc(at + 2);
            char *name = sim_alloc(end - at + 1);
            memcpy(parent_path, at == 0 ? "." : path, at == 0 ? 1 : at);
            memcpy(name, path + at, end - at);
            size_t parent = simdisk_walk(disk, parent_path, true, &code);
            if (code == 0 && disk->now.inodes[parent].kind != PAWL_OS_DIR)
                code = ENOTDIR;
            if (code == 0)
                code = make_dir(disk, parent, name);
            free(parent_path);
            free(name);
        }
    }
    return finish(disk, code);
}

static int
sim_dir_create(void *context, struct pawl_os_dir *dir, const char *name)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_CREATE);
    if (code == 0) {
        size_t inode = find(disk, dir, name, &code);
        if (inode != SIM_NONE)
            code = EEXIST;
        else if (code == ENOENT)
            code = make_dir(disk, dir->inode, name);
    }
    return finish(disk, code);
}

static int
sim_dir_list(void *context, struct pawl_os_dir *dir, pawl_os_list_fn *fn, void *fn_context)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_LIST);
    if (code == 0 && dir->generation != disk->generation)
        code = EIO;
    if (code == 0) {
        /* Last first: nobody may count on an order. */
        const struct siminode *inode = &disk->now.inodes[dir->inode];
        for (size_t i = inode->n_entries; i-- > 0 && code == 0;) {
            enum pawl_os_kind kind = disk->now.inodes[inode->entries[i].inode].kind;
            code =
                fn(fn_context, inode->entries[i].name, (disk->lacking & SIM_KINDS) != 0 ? (enum pawl_os_kind)0 : kind);
        }
    }
    return finish(disk, code);
}

/* What a failed sync should have kept is gone, whatever a later one says. */
static void
doom(struct simdisk *disk, size_t inode)
{
    size_t n = simdisk_pending(disk, disk->n_trace, NULL, 0);
    size_t *places = sim_alloc(n * sizeof *places);
    (void)simdisk_pending(disk, disk->n_trace, places, n);
    for (size_t i = 0; i < n; i++) {
        struct simchange *change = &disk->trace[places[i]];
        bool is_of_dir =
            change->kind == SIMCHANGE_NAMES &&
            (change->names[0].dir == inode || (change->names[1].name != NULL && change->names[1].dir == inode));
        if (is_of_dir || (change->kind != SIMCHANGE_NAMES && change->inode == inode))
            change->is_doomed = true;
    }
    free(places);
}

static int
sim_dir_sync(void *context, struct pawl_os_dir *dir)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_SYNC);
    if (dir->generation != disk->generation)
        code = EIO;
    else if (code != 0 && !disk->is_cut)
        doom(disk, dir->inode);
    else if (code == 0 && (disk->lacking & SIM_SYNC_DIR) != 0)
        code = EINVAL;
    else if (code == 0)
        simdisk_record(disk, (struct simchange){ .kind = SIMCHANGE_SYNC_DIR, .inode = dir->inode });
    return finish(disk, code);
}

static int
sim_dir_lock(void *context, struct pawl_os_dir *dir, enum pawl_os_lock how, bool *ret_is_fallback, int64_t *ret_holder)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_LOCK);
    (void)how; /* a program that waits for itself would hang: everybody only tries */
    *ret_is_fallback = false;
    *ret_holder = 0;
    if (code == 0 && dir->generation != disk->generation)
        code = EIO;
    size_t inode = dir->inode;
    if (code == 0 && (disk->lacking & SIM_LOCK) != 0) {
        *ret_is_fallback = true;
        inode = find(disk, dir, ".lock", &code);
        if (code == ENOENT) {
            code = 0;
            inode = simdisk_new_inode(disk, PAWL_OS_FILE, 0666 & ~disk->umask);
            struct simchange change = { .kind = SIMCHANGE_NAMES, .text = format_text("create", ".lock", "") };
            change.names[0] = (struct simname){ dir->inode, sim_copy_text(".lock"), inode };
            simdisk_record(disk, change);
        }
    }
    for (size_t i = 0; i < disk->n_locks && code == 0; i++) {
        if (disk->locks[i].inode == inode) {
            *ret_holder = disk->locks[i].process;
            code = EWOULDBLOCK;
        }
    }
    if (code == 0) {
        disk->locks = realloc(disk->locks, (disk->n_locks + 1) * sizeof *disk->locks);
        if (disk->locks == NULL)
            abort();
        disk->locks[disk->n_locks++] = (struct simlock){ inode, dir, disk->process };
    }
    return finish(disk, code);
}

static int
sim_dir_unlock(void *context, struct pawl_os_dir *dir)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_UNLOCK);
    drop_locks(disk, dir);
    return finish(disk, code);
}

static uint64_t
space_left(const struct simdisk *disk)
{
    uint64_t used = simimage_bytes(&disk->now);
    return used < disk->capacity ? disk->capacity - used : 0;
}

static int
sim_dir_space(void *context, struct pawl_os_dir *dir, uint64_t *ret_available)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_SPACE);
    (void)dir;
    if (code == 0)
        *ret_available = space_left(disk);
    return finish(disk, code);
}

static int
sim_dir_weak_kind(void *context, struct pawl_os_dir *dir, const char **ret_kind)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_DIR_WEAK_KIND);
    (void)dir;
    if (code == 0)
        *ret_kind = disk->weak_kind;
    return finish(disk, code);
}

/* ---- names ---- */

static void
fill_stat(const struct simdisk *disk, size_t inode, struct pawl_os_stat *ret)
{
    const struct siminode *at = &disk->now.inodes[inode];
    *ret = (struct pawl_os_stat){ at->kind, at->bytes, at->mode, 1, inode + 1, at->mtime_ns };
}

static int
sim_stat(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_stat *ret)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_STAT);
    if (code == 0) {
        size_t inode = find(disk, dir, name, &code);
        if (code == 0)
            fill_stat(disk, inode, ret);
    }
    return finish(disk, code);
}

static int
sim_read_link(void *context, struct pawl_os_dir *dir, const char *name, char *text, size_t size, size_t *ret_len)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_READ_LINK);
    if (code == 0) {
        size_t inode = find(disk, dir, name, &code);
        const struct siminode *at = code == 0 ? &disk->now.inodes[inode] : NULL;
        if (code == 0 && at->kind != PAWL_OS_LINK)
            code = EINVAL;
        else if (code == 0 && at->bytes >= size)
            code = ENAMETOOLONG;
        if (code == 0) {
            memcpy(text, at->data, at->bytes + 1);
            *ret_len = at->bytes;
        }
    }
    return finish(disk, code);
}

static int
check_rename(const struct simdisk *disk, size_t from, size_t to, enum pawl_os_rename how)
{
    if (from == SIM_NONE)
        return ENOENT;
    if ((how == PAWL_OS_EXCHANGE && (disk->lacking & SIM_EXCHANGE) != 0) ||
        (how == PAWL_OS_NO_REPLACE && (disk->lacking & SIM_NO_REPLACE) != 0))
        return EINVAL;
    if (how == PAWL_OS_NO_REPLACE)
        return to == SIM_NONE ? 0 : EEXIST;
    if (how == PAWL_OS_EXCHANGE)
        return to == SIM_NONE ? ENOENT : 0;
    if (to == SIM_NONE)
        return 0;
    bool from_is_dir = disk->now.inodes[from].kind == PAWL_OS_DIR;
    bool to_is_dir = disk->now.inodes[to].kind == PAWL_OS_DIR;
    if (from_is_dir && !to_is_dir)
        return ENOTDIR;
    if (!from_is_dir && to_is_dir)
        return EISDIR;
    return to_is_dir && disk->now.inodes[to].n_entries != 0 ? ENOTEMPTY : 0;
}

static int
sim_rename(void *context, struct pawl_os_dir *from_dir, const char *from, struct pawl_os_dir *to_dir, const char *to,
           enum pawl_os_rename how)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_RENAME);
    if (code == 0) {
        int to_code;
        size_t from_inode = find(disk, from_dir, from, &code);
        size_t to_inode = find(disk, to_dir, to, &to_code);
        if (code == 0 && to_code != 0 && to_code != ENOENT)
            code = to_code;
        if (code == 0)
            code = check_rename(disk, from_inode, to_inode, how);
        if (code == 0 && from_inode != to_inode) {
            struct simchange change = { .kind = SIMCHANGE_NAMES,
                                        .text =
                                            format_text(how == PAWL_OS_EXCHANGE ? "exchange" : "rename", from, to) };
            change.names[0] =
                (struct simname){ from_dir->inode, sim_copy_text(from), how == PAWL_OS_EXCHANGE ? to_inode : SIM_NONE };
            change.names[1] = (struct simname){ to_dir->inode, sim_copy_text(to), from_inode };
            simdisk_record(disk, change);
        }
    }
    return finish(disk, code);
}

static int
remove_name(struct simdisk *disk, const struct pawl_os_dir *dir, const char *name, bool wants_dir)
{
    int code;
    size_t inode = find(disk, dir, name, &code);
    if (code != 0)
        return code;
    bool is_dir = disk->now.inodes[inode].kind == PAWL_OS_DIR;
    if (is_dir != wants_dir)
        return is_dir ? EISDIR : ENOTDIR;
    if (is_dir && disk->now.inodes[inode].n_entries != 0)
        return ENOTEMPTY;
    struct simchange change = { .kind = SIMCHANGE_NAMES, .text = format_text("remove", name, "") };
    change.names[0] = (struct simname){ dir->inode, sim_copy_text(name), SIM_NONE };
    simdisk_record(disk, change);
    return 0;
}

static int
sim_remove_file(void *context, struct pawl_os_dir *dir, const char *name)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_REMOVE_FILE);
    return finish(disk, code != 0 ? code : remove_name(disk, dir, name, false));
}

static int
sim_remove_dir(void *context, struct pawl_os_dir *dir, const char *name)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_REMOVE_DIR);
    return finish(disk, code != 0 ? code : remove_name(disk, dir, name, true));
}

/* ---- files ---- */

static struct pawl_os_file *
new_file(struct simdisk *disk, size_t inode, bool is_writable)
{
    struct pawl_os_file *file = sim_alloc(sizeof *file);
    file->inode = inode;
    file->generation = disk->generation;
    file->is_writable = is_writable;
    file->is_direct = false;
    disk->handles++;
    return file;
}

static int
sim_file_create(void *context, struct pawl_os_dir *dir, const char *name, struct pawl_os_file **ret_file)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_CREATE);
    if (code == 0) {
        size_t inode = find(disk, dir, name, &code);
        if (inode != SIM_NONE) {
            code = EEXIST;
        } else if (code == ENOENT) {
            code = 0;
            inode = simdisk_new_inode(disk, PAWL_OS_FILE, 0666 & ~disk->umask);
            struct simchange change = { .kind = SIMCHANGE_NAMES, .text = format_text("create", name, "") };
            change.names[0] = (struct simname){ dir->inode, sim_copy_text(name), inode };
            simdisk_record(disk, change);
            if (!disk->is_denied)
                *ret_file = new_file(disk, inode, true);
        }
    }
    return finish(disk, code);
}

static int
sim_file_open(void *context, struct pawl_os_dir *dir, const char *name, unsigned open_flags,
              struct pawl_os_file **ret_file)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_OPEN);
    if (code == 0) {
        size_t inode = find(disk, dir, name, &code);
        if (code == 0 && (open_flags & PAWL_OS_FOLLOW) != 0)
            inode = walk(disk, dir->inode, name, true, 0, &code);
        if (code == 0) {
            enum pawl_os_kind kind = disk->now.inodes[inode].kind;
            code = kind == PAWL_OS_FILE ? 0 : kind == PAWL_OS_DIR ? EISDIR : kind == PAWL_OS_LINK ? ELOOP : ENXIO;
        }
        if (code == 0)
            *ret_file = new_file(disk, inode, false);
    }
    return finish(disk, code);
}

static int
sim_file_close(void *context, struct pawl_os_file *file)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_CLOSE);
    if (file->generation == disk->generation)
        disk->handles--;
    free(file);
    return finish(disk, code);
}

static int
check_file(const struct simdisk *disk, const struct pawl_os_file *file, bool wants_write)
{
    if (file->generation != disk->generation)
        return EIO;
    return wants_write && !file->is_writable ? EBADF : 0;
}

static int
sim_file_stat(void *context, struct pawl_os_file *file, struct pawl_os_stat *ret)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_STAT);
    if (code == 0)
        code = check_file(disk, file, false);
    if (code == 0)
        fill_stat(disk, file->inode, ret);
    return finish(disk, code);
}

static int
sim_file_set_mode(void *context, struct pawl_os_file *file, uint32_t mode)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_SET_MODE);
    if (code == 0)
        code = check_file(disk, file, false);
    if (code == 0 && (disk->lacking & SIM_SET_MODE) != 0)
        code = EPERM;
    if (code == 0)
        simdisk_record(disk,
                       (struct simchange){ .kind = SIMCHANGE_SET_MODE, .inode = file->inode, .mode = mode & 07777 });
    return finish(disk, code);
}

static int
sim_file_write_at(void *context, struct pawl_os_file *file, uint64_t offset, const struct pawl_os_span *spans,
                  size_t n_spans, size_t *ret_written)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_WRITE_AT);
    if (code == 0)
        code = check_file(disk, file, true);
    size_t bytes = 0;
    for (size_t i = 0; i < n_spans; i++) {
        bytes += spans[i].bytes;
        /* As strict as the strictest filesystem. */
        if (code == 0 && file->is_direct &&
            ((uintptr_t)spans[i].data % SIM_DIRECT_BYTES != 0 || spans[i].bytes % SIM_DIRECT_BYTES != 0))
            code = EINVAL;
    }
    if (code == 0 && file->is_direct && offset % SIM_DIRECT_BYTES != 0)
        code = EINVAL;
    size_t taken = bytes;
    if (code == 0 && disk->is_shortened)
        taken = bytes > 1 ? bytes / 2 : bytes;
    if (code == 0) {
        uint64_t size = disk->now.inodes[file->inode].bytes;
        uint64_t left = space_left(disk);
        uint64_t end_max = left > UINT64_MAX - size ? UINT64_MAX : size + left;
        if (offset + taken > end_max)
            taken = offset < end_max ? (size_t)(end_max - offset) : 0;
        if (taken == 0 && bytes != 0)
            code = ENOSPC;
    }
    if (code == 0) {
        unsigned char *data = sim_alloc(taken);
        disk->direct_bytes += file->is_direct ? taken : 0;
        size_t at = 0;
        for (size_t i = 0; i < n_spans && at < taken; i++) {
            size_t n = spans[i].bytes < taken - at ? spans[i].bytes : taken - at;
            if (n != 0)
                memcpy(data + at, spans[i].data, n);
            at += n;
        }
        simdisk_record(
            disk, (struct simchange){
                      .kind = SIMCHANGE_WRITE, .inode = file->inode, .offset = offset, .bytes = taken, .data = data });
        *ret_written = taken;
    }
    return finish(disk, code);
}

static int
sim_file_read_at(void *context, struct pawl_os_file *file, uint64_t offset, void *data, size_t bytes, size_t *ret_read)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_READ_AT);
    if (code == 0)
        code = check_file(disk, file, false);
    if (code == 0 && file->is_direct &&
        (offset % SIM_DIRECT_BYTES != 0 || (uintptr_t)data % SIM_DIRECT_BYTES != 0 || bytes % SIM_DIRECT_BYTES != 0))
        code = EINVAL;
    if (code == 0) {
        const struct siminode *at = &disk->now.inodes[file->inode];
        size_t n = offset < at->bytes ? at->bytes - (size_t)offset : 0;
        n = n < bytes ? n : bytes;
        if (disk->is_shortened && n > 1)
            n /= 2;
        disk->direct_bytes_read += file->is_direct ? n : 0;
        if (n != 0)
            memcpy(data, at->data + offset, n);
        *ret_read = n;
    }
    return finish(disk, code);
}

static int
sim_file_reserve(void *context, struct pawl_os_file *file, uint64_t bytes)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_RESERVE);
    if (code == 0)
        code = check_file(disk, file, true);
    if (code == 0 && (disk->lacking & SIM_RESERVE) != 0)
        code = EOPNOTSUPP;
    else if (code == 0 && bytes > space_left(disk))
        code = ENOSPC;
    return finish(disk, code);
}

static int
sim_file_set_bytes(void *context, struct pawl_os_file *file, uint64_t bytes)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_SET_BYTES);
    if (code == 0)
        code = check_file(disk, file, true);
    if (code == 0 && (disk->lacking & SIM_SET_BYTES) != 0)
        code = EOPNOTSUPP;
    if (code == 0)
        simdisk_record(disk, (struct simchange){ .kind = SIMCHANGE_SET_BYTES, .inode = file->inode, .bytes = bytes });
    return finish(disk, code);
}

static int
sim_file_set_direct(void *context, struct pawl_os_file *file, bool is_direct, size_t *ret_alignment)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_SET_DIRECT);
    if (code == 0)
        code = check_file(disk, file, true);
    if (code == 0 && is_direct && (disk->lacking & SIM_DIRECT) != 0)
        code = EINVAL;
    if (code == 0 && !disk->is_denied) {
        file->is_direct = is_direct;
        *ret_alignment = is_direct ? SIM_DIRECT_BYTES : 1;
    }
    return finish(disk, code);
}

static int
sim_file_open_direct(void *context, struct pawl_os_file *file, struct pawl_os_file **ret_direct, size_t *ret_alignment)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_OPEN_DIRECT);
    if (code == 0)
        code = check_file(disk, file, false);
    if (code == 0 && (disk->lacking & SIM_DIRECT) != 0)
        code = EINVAL;
    if (code == 0) {
        *ret_direct = new_file(disk, file->inode, false);
        (*ret_direct)->is_direct = true;
        *ret_alignment = SIM_DIRECT_BYTES;
    }
    return finish(disk, code);
}

static int
sim_file_cached(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, size_t *ret_cached)
{
    const uint64_t block = (uint64_t)1 << 20;
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_CACHED);
    if (code == 0)
        code = check_file(disk, file, false);
    if (code == 0 && (disk->lacking & SIM_CACHED) != 0)
        code = ENOSYS;
    if (code == 0) {
        *ret_cached = 0;
        for (uint64_t at = offset; at < offset + bytes;) {
            uint64_t end = (at / block + 1) * block;
            end = end < offset + bytes ? end : offset + bytes;
            if ((disk->cold >> (at / block % 32) & 1) == 0)
                *ret_cached += (size_t)(end - at);
            at = end;
        }
    }
    return finish(disk, code);
}

static int
sim_file_sync(void *context, struct pawl_os_file *file)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_SYNC);
    if (file->generation != disk->generation)
        code = EIO;
    else if (code != 0 && !disk->is_cut)
        doom(disk, file->inode);
    else if (code == 0)
        simdisk_record(disk, (struct simchange){ .kind = SIMCHANGE_SYNC_FILE, .inode = file->inode });
    return finish(disk, code);
}

static int
sim_file_write_back(void *context, struct pawl_os_file *file, uint64_t offset, uint64_t bytes)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_WRITE_BACK);
    (void)file;
    (void)offset;
    (void)bytes;
    return finish(disk, code); /* promises nothing */
}

static int
sim_file_advise(void *context, struct pawl_os_file *file, uint64_t offset, uint64_t bytes, enum pawl_os_advice advice)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_ADVISE);
    (void)file;
    (void)offset;
    (void)bytes;
    (void)advice;
    return finish(disk, code);
}

static int
sim_file_map(void *context, struct pawl_os_file *file, uint64_t offset, size_t bytes, const void **ret_data)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_FILE_MAP);
    if (code == 0)
        code = check_file(disk, file, false);
    if (code == 0) {
        const struct siminode *at = &disk->now.inodes[file->inode];
        unsigned char *data = sim_alloc(bytes);
        size_t n = offset < at->bytes ? at->bytes - (size_t)offset : 0;
        n = n < bytes ? n : bytes;
        if (n != 0)
            memcpy(data, at->data + offset, n);
        disk->maps = realloc(disk->maps, (disk->n_maps + 1) * sizeof *disk->maps);
        if (disk->maps == NULL)
            abort();
        disk->maps[disk->n_maps++] = (struct simmap){ data, bytes, file->inode, offset };
        *ret_data = data;
    }
    return finish(disk, code);
}

static void
sim_unmap(void *context, const void *data, size_t bytes)
{
    struct simdisk *disk = context;
    (void)pthread_mutex_lock(&disk->mutex);
    for (size_t i = 0; i < disk->n_maps; i++) {
        if (disk->maps[i].data == data && disk->maps[i].bytes == bytes) {
            free((void *)(uintptr_t)data);
            disk->maps[i] = disk->maps[--disk->n_maps];
            (void)pthread_mutex_unlock(&disk->mutex);
            return;
        }
    }
    abort(); /* no such mapping: a fault of the program under test */
}

static int
sim_map_populate(void *context, const void *data, size_t bytes)
{
    struct simdisk *disk = context;
    int code = begin(disk, SIM_MAP_POPULATE);
    if (code == 0 && (disk->lacking & SIM_POPULATE) != 0)
        code = ENOSYS;
    if (code == 0) {
        code = ENOMEM; /* not mapped */
        for (size_t i = 0; i < disk->n_maps; i++) {
            const struct simmap *map = &disk->maps[i];
            const unsigned char *begin_at = data;
            if (begin_at < map->data || begin_at + bytes > map->data + map->bytes)
                continue;
            uint64_t end = map->offset + (uint64_t)(begin_at - map->data) + bytes;
            code = end > disk->now.inodes[map->inode].bytes ? EFAULT : 0;
        }
    }
    return finish(disk, code);
}

/* ---- the machine ---- */

static uint64_t
sim_clock_ns(void *context)
{
    struct simdisk *disk = context;
    (void)pthread_mutex_lock(&disk->mutex);
    uint64_t now = (uint64_t)++disk->clock_ns;
    (void)pthread_mutex_unlock(&disk->mutex);
    return now;
}

static int64_t
sim_wall_seconds(void *context)
{
    (void)context;
    return 1700000000; /* always: what is written must not depend on when */
}

static void
sim_sleep_ns(void *context, uint64_t ns)
{
    struct simdisk *disk = context;
    (void)pthread_mutex_lock(&disk->mutex);
    disk->clock_ns += (int64_t)ns;
    (void)pthread_mutex_unlock(&disk->mutex);
}

static int64_t
sim_process_id(void *context)
{
    return ((struct simdisk *)context)->process;
}

/* ---- the disk ---- */

struct simdisk *
simdisk_new(void)
{
    struct simdisk *disk = sim_alloc(sizeof *disk);
    (void)pthread_mutex_init(&disk->mutex, NULL);
    simimage_init(&disk->now);
    simimage_init(&disk->base);
    disk->capacity = UINT64_MAX;
    disk->umask = 022;
    disk->process = 4711;
    disk->os.context = disk;
#define SIM_ENTRY(constant, entry) disk->os.entry = sim_##entry;
    SIM_OPS(SIM_ENTRY)
#undef SIM_ENTRY
    disk->os.unmap = sim_unmap;
    disk->os.clock_ns = sim_clock_ns;
    disk->os.wall_seconds = sim_wall_seconds;
    disk->os.sleep_ns = sim_sleep_ns;
    disk->os.process_id = sim_process_id;
    return disk;
}

void
simdisk_free(struct simdisk *disk)
{
    if (disk == NULL)
        return;
    for (size_t i = 0; i < disk->n_trace; i++)
        simchange_release(&disk->trace[i]);
    for (size_t i = 0; i < disk->n_maps; i++)
        free((void *)(uintptr_t)disk->maps[i].data);
    free(disk->trace);
    free(disk->maps);
    free(disk->locks);
    simimage_release(&disk->now);
    simimage_release(&disk->base);
    (void)pthread_mutex_destroy(&disk->mutex);
    free(disk);
}

const struct pawl_os *
simdisk_os(struct simdisk *disk)
{
    return &disk->os;
}

void
simdisk_fail(struct simdisk *disk, enum sim_op op, unsigned nth, unsigned repeats, int code)
{
    disk->is_armed = true;
    disk->was_met = false;
    disk->fault_op = op;
    disk->fault_nth = nth;
    disk->fault_repeats = repeats;
    disk->fault_code = code;
}

bool
simdisk_fault_was_met(const struct simdisk *disk)
{
    return disk->was_met;
}

void
simdisk_lack(struct simdisk *disk, unsigned features)
{
    disk->lacking = features;
}

void
simdisk_set_cold(struct simdisk *disk, uint32_t which)
{
    disk->cold = which;
}

void
simdisk_set_capacity(struct simdisk *disk, uint64_t bytes)
{
    disk->capacity = bytes == SIZE_MAX ? UINT64_MAX : bytes;
}

void
simdisk_set_umask(struct simdisk *disk, uint32_t mask)
{
    disk->umask = mask;
}

void
simdisk_set_process(struct simdisk *disk, int64_t process)
{
    disk->process = process;
}

void
simdisk_set_weak_kind(struct simdisk *disk, const char *kind)
{
    disk->weak_kind = kind;
}

unsigned
simdisk_calls(const struct simdisk *disk, enum sim_op op)
{
    return disk->calls[op];
}

uint64_t
simdisk_direct_bytes_read(const struct simdisk *disk)
{
    return disk->direct_bytes_read;
}

uint64_t
simdisk_direct_bytes(const struct simdisk *disk)
{
    return disk->direct_bytes;
}

int
simdisk_open_handles(const struct simdisk *disk)
{
    return disk->handles;
}

int
simdisk_open_maps(const struct simdisk *disk)
{
    return (int)disk->n_maps;
}

void
simdisk_cut_power_at(struct simdisk *disk, unsigned nth)
{
    disk->is_cut_planned = true;
    disk->is_cut = false;
    disk->cut_in = nth;
}
