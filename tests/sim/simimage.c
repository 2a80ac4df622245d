#include "sim/simimage.h"

#include <stdlib.h>
#include <string.h>

void *
sim_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes == 0 ? 1 : bytes);
    if (memory == NULL)
        abort();
    return memory;
}

char *
sim_copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(sim_alloc(bytes), text, bytes);
}

uint64_t
sim_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void
simimage_init(struct simimage *image)
{
    image->inodes = NULL;
    image->n = 0;
    simimage_need(image, SIM_ROOT, PAWL_OS_DIR, 0755, 0);
}

static void
inode_release(struct siminode *inode)
{
    for (size_t i = 0; i < inode->n_entries; i++)
        free(inode->entries[i].name);
    free(inode->entries);
    free(inode->data);
}

void
simimage_release(struct simimage *image)
{
    for (size_t i = 0; i < image->n; i++)
        inode_release(&image->inodes[i]);
    free(image->inodes);
    image->inodes = NULL;
    image->n = 0;
}

void
simimage_copy(struct simimage *to, const struct simimage *from)
{
    to->n = from->n;
    to->inodes = sim_alloc(from->n * sizeof *to->inodes);
    for (size_t i = 0; i < from->n; i++) {
        const struct siminode *old = &from->inodes[i];
        struct siminode *copy = &to->inodes[i];
        *copy = *old;
        copy->data = sim_alloc(old->bytes + 1);
        if (old->bytes != 0)
            memcpy(copy->data, old->data, old->bytes);
        copy->entries = sim_alloc(old->n_entries * sizeof *copy->entries);
        for (size_t k = 0; k < old->n_entries; k++)
            copy->entries[k] = (struct simentry){ sim_copy_text(old->entries[k].name), old->entries[k].inode };
    }
}

void
simimage_need(struct simimage *image, size_t inode, enum pawl_os_kind kind, uint32_t mode, int64_t mtime_ns)
{
    if (inode >= image->n) {
        image->inodes = realloc(image->inodes, (inode + 1) * sizeof *image->inodes);
        if (image->inodes == NULL)
            abort();
        memset(image->inodes + image->n, 0, (inode + 1 - image->n) * sizeof *image->inodes);
        image->n = inode + 1;
    }
    struct siminode *at = &image->inodes[inode];
    if (at->kind != 0)
        return;
    at->kind = kind;
    at->mode = mode;
    at->mtime_ns = mtime_ns;
    at->data = sim_alloc(1);
}

size_t
simimage_find(const struct simimage *image, size_t dir, const char *name)
{
    const struct siminode *at = &image->inodes[dir];
    for (size_t i = 0; i < at->n_entries; i++) {
        if (strcmp(at->entries[i].name, name) == 0)
            return at->entries[i].inode;
    }
    return SIM_NONE;
}

size_t
simimage_parent(const struct simimage *image, size_t dir)
{
    for (size_t i = 0; i < image->n; i++) {
        for (size_t k = 0; k < image->inodes[i].n_entries; k++) {
            if (image->inodes[i].entries[k].inode == dir)
                return i;
        }
    }
    return SIM_ROOT;
}

uint64_t
simimage_bytes(const struct simimage *image)
{
    uint64_t total = 0;
    for (size_t i = 0; i < image->n; i++) {
        for (size_t k = 0; k < image->inodes[i].n_entries; k++) {
            const struct siminode *inode = &image->inodes[image->inodes[i].entries[k].inode];
            total += inode->kind == PAWL_OS_FILE ? inode->bytes : 0;
        }
    }
    return total;
}

void
simimage_set_name(struct simimage *image, size_t dir, const char *name, size_t inode)
{
    struct siminode *at = &image->inodes[dir];
    for (size_t i = 0; i < at->n_entries; i++) {
        if (strcmp(at->entries[i].name, name) != 0)
            continue;
        if (inode != SIM_NONE) {
            at->entries[i].inode = inode;
        } else {
            free(at->entries[i].name);
            at->entries[i] = at->entries[--at->n_entries];
        }
        return;
    }
    if (inode == SIM_NONE)
        return;
    at->entries = realloc(at->entries, (at->n_entries + 1) * sizeof *at->entries);
    if (at->entries == NULL)
        abort();
    at->entries[at->n_entries++] = (struct simentry){ sim_copy_text(name), inode };
}

void
simimage_set_bytes(struct simimage *image, size_t inode, uint64_t bytes)
{
    struct siminode *at = &image->inodes[inode];
    at->data = realloc(at->data, (size_t)bytes + 1);
    if (at->data == NULL)
        abort();
    if (bytes > at->bytes)
        memset(at->data + at->bytes, 0, (size_t)bytes - at->bytes);
    at->bytes = (size_t)bytes;
    at->data[at->bytes] = 0;
}

void
simimage_write(struct simimage *image, size_t inode, uint64_t offset, const void *data, size_t bytes)
{
    struct siminode *at = &image->inodes[inode];
    if (bytes == 0)
        return;
    if (offset + bytes > at->bytes)
        simimage_set_bytes(image, inode, offset + bytes);
    memcpy(at->data + offset, data, bytes);
}

void
simimage_apply(struct simimage *image, const struct simchange *change)
{
    switch (change->kind) {
    case SIMCHANGE_NAMES:
        for (size_t i = 0; i < 2; i++) {
            if (change->names[i].name != NULL)
                simimage_set_name(image, change->names[i].dir, change->names[i].name, change->names[i].inode);
        }
        break;
    case SIMCHANGE_WRITE:
        simimage_write(image, change->inode, change->offset, change->data, (size_t)change->bytes);
        image->inodes[change->inode].mtime_ns = change->mtime_ns;
        break;
    case SIMCHANGE_SET_BYTES:
        simimage_set_bytes(image, change->inode, change->bytes);
        image->inodes[change->inode].mtime_ns = change->mtime_ns;
        break;
    case SIMCHANGE_SET_MODE:
        image->inodes[change->inode].mode = change->mode;
        break;
    default:
        break;
    }
}

void
simchange_release(struct simchange *change)
{
    free(change->names[0].name);
    free(change->names[1].name);
    free(change->data);
    free(change->text);
}
