/* Looking at a simulated disk and putting things on it, past the table. */
#include "sim/simdisk_inside.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- putting ---- */

/* The directory of `path`, made with its parents; *ret_name is the last name, in `path`. */
static size_t
need_parent(struct simdisk *disk, const char *path, const char **ret_name)
{
    size_t at = SIM_ROOT;
    for (;;) {
        while (*path == '/')
            path++;
        size_t len = strcspn(path, "/");
        if (path[len] == '\0') {
            *ret_name = path;
            return at;
        }
        char *name = sim_alloc(len + 1);
        memcpy(name, path, len);
        size_t next = simimage_find(&disk->now, at, name);
        if (next == SIM_NONE) {
            struct simchange change = { .kind = SIMCHANGE_NAMES, .is_setup = true, .text = sim_copy_text("put") };
            next = simdisk_new_inode(disk, PAWL_OS_DIR, 0777 & ~disk->umask);
            change.names[0] = (struct simname){ at, sim_copy_text(name), next };
            simdisk_record(disk, change);
        }
        free(name);
        at = next;
        path += len;
    }
}

static size_t
put_inode(struct simdisk *disk, const char *path, enum pawl_os_kind kind, uint32_t mode)
{
    const char *name;
    size_t parent = need_parent(disk, path, &name);
    if (name[0] == '\0')
        return parent; /* a path that ends in a slash */
    struct simchange change = { .kind = SIMCHANGE_NAMES, .is_setup = true, .text = sim_copy_text("put") };
    size_t inode = simdisk_new_inode(disk, kind, mode);
    change.names[0] = (struct simname){ parent, sim_copy_text(name), inode };
    simdisk_record(disk, change);
    return inode;
}

static void
put_bytes(struct simdisk *disk, size_t inode, uint64_t offset, const void *data, size_t bytes)
{
    struct simchange change = { .kind = SIMCHANGE_WRITE,
                                .is_setup = true,
                                .inode = inode,
                                .offset = offset,
                                .bytes = bytes,
                                .data = sim_alloc(bytes) };
    if (bytes != 0)
        memcpy(change.data, data, bytes);
    simdisk_record(disk, change);
}

void
simdisk_put(struct simdisk *disk, const char *path, const void *data, size_t bytes)
{
    put_bytes(disk, put_inode(disk, path, PAWL_OS_FILE, 0666 & ~disk->umask), 0, data, bytes);
}

void
simdisk_put_text(struct simdisk *disk, const char *path, const char *text)
{
    simdisk_put(disk, path, text, strlen(text));
}

void
simdisk_put_dir(struct simdisk *disk, const char *path)
{
    if (!simdisk_has(disk, path))
        (void)put_inode(disk, path, PAWL_OS_DIR, 0777 & ~disk->umask);
}

void
simdisk_put_link(struct simdisk *disk, const char *path, const char *target)
{
    put_bytes(disk, put_inode(disk, path, PAWL_OS_LINK, 0777), 0, target, strlen(target));
}

void
simdisk_put_fifo(struct simdisk *disk, const char *path)
{
    (void)put_inode(disk, path, PAWL_OS_OTHER, 0666 & ~disk->umask);
}

void
simdisk_put_mode(struct simdisk *disk, const char *path, uint32_t mode)
{
    int code;
    size_t inode = simdisk_walk(disk, path, false, &code);
    if (code != 0)
        abort();
    simdisk_record(disk,
                   (struct simchange){ .kind = SIMCHANGE_SET_MODE, .is_setup = true, .inode = inode, .mode = mode });
}

void
simdisk_remove(struct simdisk *disk, const char *path)
{
    const char *name;
    size_t parent = need_parent(disk, path, &name);
    struct simchange change = { .kind = SIMCHANGE_NAMES, .is_setup = true, .text = sim_copy_text("take") };
    change.names[0] = (struct simname){ parent, sim_copy_text(name), SIM_NONE };
    simdisk_record(disk, change);
}

void
simdisk_flip(struct simdisk *disk, const char *path, uint64_t offset, unsigned char bits)
{
    int code;
    size_t inode = simdisk_walk(disk, path, true, &code);
    if (code != 0 || offset >= disk->now.inodes[inode].bytes)
        abort();
    int64_t mtime_ns = disk->now.inodes[inode].mtime_ns;
    unsigned char flipped = disk->now.inodes[inode].data[offset] ^ bits;
    put_bytes(disk, inode, offset, &flipped, 1);
    disk->now.inodes[inode].mtime_ns = mtime_ns;
    disk->trace[disk->n_trace - 1].mtime_ns = mtime_ns;
}

/* ---- looking ---- */

const unsigned char *
simdisk_get(const struct simdisk *disk, const char *path, size_t *ret_bytes)
{
    int code;
    size_t inode = simdisk_walk(disk, path, true, &code);
    if (code != 0 || disk->now.inodes[inode].kind != PAWL_OS_FILE)
        return NULL;
    *ret_bytes = disk->now.inodes[inode].bytes;
    return disk->now.inodes[inode].data;
}

const char *
simdisk_text(const struct simdisk *disk, const char *path)
{
    size_t bytes;
    return (const char *)simdisk_get(disk, path, &bytes);
}

bool
simdisk_has(const struct simdisk *disk, const char *path)
{
    int code;
    return simdisk_walk(disk, path, false, &code) != SIM_NONE;
}

uint32_t
simdisk_mode(const struct simdisk *disk, const char *path)
{
    int code;
    size_t inode = simdisk_walk(disk, path, true, &code);
    return code == 0 ? disk->now.inodes[inode].mode : 0;
}

/* Lines that grow. */
struct lines {
    char **texts;
    size_t n;
};

static void
add_lines(const struct simimage *image, size_t dir, const char *prefix, struct lines *lines)
{
    const struct siminode *at = &image->inodes[dir];
    for (size_t i = 0; i < at->n_entries; i++) {
        const struct siminode *child = &image->inodes[at->entries[i].inode];
        size_t bytes = strlen(prefix) + strlen(at->entries[i].name) + 2;
        char *text = sim_alloc(bytes);
        (void)snprintf(text, bytes, "%s%s%s", prefix, at->entries[i].name, child->kind == PAWL_OS_DIR ? "/" : "");
        lines->texts = realloc(lines->texts, (lines->n + 1) * sizeof *lines->texts);
        if (lines->texts == NULL)
            abort();
        lines->texts[lines->n++] = text;
        if (child->kind == PAWL_OS_DIR)
            add_lines(image, at->entries[i].inode, text, lines);
    }
}

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct lines
list_under(const struct simdisk *disk, size_t dir)
{
    struct lines lines = { NULL, 0 };
    add_lines(&disk->now, dir, "", &lines);
    if (lines.n > 1)
        qsort(lines.texts, lines.n, sizeof *lines.texts, compare_texts);
    return lines;
}

char *
simdisk_tree(const struct simdisk *disk, const char *path)
{
    int code;
    size_t dir = path[0] == '\0' ? SIM_ROOT : simdisk_walk(disk, path, true, &code);
    if (dir == SIM_NONE)
        return sim_copy_text("(nothing)");
    struct lines lines = list_under(disk, dir);
    size_t bytes = 1;
    for (size_t i = 0; i < lines.n; i++)
        bytes += strlen(lines.texts[i]) + 1;
    char *text = sim_alloc(bytes);
    size_t at = 0;
    for (size_t i = 0; i < lines.n; i++) {
        size_t len = strlen(lines.texts[i]);
        if (at != 0)
            text[at++] = '\n';
        memcpy(text + at, lines.texts[i], len);
        at += len;
        free(lines.texts[i]);
    }
    free(lines.texts);
    return text;
}

static uint64_t
mix(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return (sum ^ bytes) * 0x100000001b3u;
}

uint64_t
simdisk_fingerprint(const struct simdisk *disk)
{
    struct lines lines = list_under(disk, SIM_ROOT);
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < lines.n; i++) {
        int code;
        size_t inode = simdisk_walk(disk, lines.texts[i], false, &code);
        sum = mix(sum, lines.texts[i], strlen(lines.texts[i]));
        if (code == 0)
            sum = mix(sum, disk->now.inodes[inode].data, disk->now.inodes[inode].bytes);
        free(lines.texts[i]);
    }
    free(lines.texts);
    return sum;
}

/* ---- the host ---- */

static int
write_host_file(const char *path, const struct siminode *inode)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return errno;
    size_t n = fwrite(inode->data, 1, inode->bytes, file);
    int code = n == inode->bytes ? 0 : EIO;
    if (fclose(file) != 0 && code == 0)
        code = errno;
    return code;
}

static int
export_dir(const struct simdisk *disk, size_t dir, const char *host_path)
{
    if (mkdir(host_path, 0777) < 0 && errno != EEXIST)
        return errno;
    const struct siminode *at = &disk->now.inodes[dir];
    int code = 0;
    for (size_t i = 0; i < at->n_entries && code == 0; i++) {
        const struct siminode *child = &disk->now.inodes[at->entries[i].inode];
        size_t bytes = strlen(host_path) + strlen(at->entries[i].name) + 2;
        char *path = sim_alloc(bytes);
        (void)snprintf(path, bytes, "%s/%s", host_path, at->entries[i].name);
        if (child->kind == PAWL_OS_DIR)
            code = export_dir(disk, at->entries[i].inode, path);
        else if (child->kind == PAWL_OS_FILE)
            code = write_host_file(path, child);
        free(path);
    }
    return code;
}

int
simdisk_export(const struct simdisk *disk, const char *path, const char *host_path)
{
    int code = 0;
    size_t dir = path[0] == '\0' ? SIM_ROOT : simdisk_walk(disk, path, true, &code);
    return code != 0 ? code : export_dir(disk, dir, host_path);
}

static int
import_file(struct simdisk *disk, const char *path, const char *host_path, size_t bytes)
{
    FILE *file = fopen(host_path, "rb");
    if (file == NULL)
        return errno;
    unsigned char *data = sim_alloc(bytes);
    size_t n = fread(data, 1, bytes, file);
    if (n == bytes)
        simdisk_put(disk, path, data, bytes);
    free(data);
    (void)fclose(file);
    return n == bytes ? 0 : EIO;
}

int
simdisk_import(struct simdisk *disk, const char *path, const char *host_path)
{
    DIR *stream = opendir(host_path);
    if (stream == NULL)
        return errno;
    int code = 0;
    if (path[0] != '\0')
        simdisk_put_dir(disk, path);
    const struct dirent *entry;
    while (code == 0 && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        size_t host_bytes = strlen(host_path) + strlen(entry->d_name) + 2;
        size_t sim_bytes = strlen(path) + strlen(entry->d_name) + 2;
        char *host_child = sim_alloc(host_bytes);
        char *sim_child = sim_alloc(sim_bytes);
        (void)snprintf(host_child, host_bytes, "%s/%s", host_path, entry->d_name);
        (void)snprintf(sim_child, sim_bytes, "%s%s%s", path, path[0] == '\0' ? "" : "/", entry->d_name);
        struct stat status;
        if (lstat(host_child, &status) < 0)
            code = errno;
        else if (S_ISDIR(status.st_mode))
            code = simdisk_import(disk, sim_child, host_child);
        else if (S_ISREG(status.st_mode))
            code = import_file(disk, sim_child, host_child, (size_t)status.st_size);
        free(host_child);
        free(sim_child);
    }
    (void)closedir(stream);
    return code;
}
