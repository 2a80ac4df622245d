#include "proof/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checkpoint/names.h"
#include "sim/simdisk_inside.h"

struct order {
    const struct simdisk *disk;
    struct simimage image;  /* what programs saw at this place of the trace */
    bool *is_file_dirty;    /* by inode: written since its sync */
    bool *is_dir_dirty;     /* names changed since its sync */
    bool *is_let_go;        /* a step directory that was renamed to .tmp, and the root not synced since */
    bool *was_step;         /* it had a step's name, so its files may go only once that name has */
    size_t root;            /* SIM_NONE: not there yet */
    bool is_step_unsynced;  /* a step got its name since the root's sync */
    bool is_aside_unsynced; /* a step became .prev since then */
    bool is_latest_unsynced;
    bool is_latest_awaited; /* a save is going on that has not written LATEST durably */
    bool has_named;         /* and has given its step the name */
    size_t place;
};

static char broken[512];

static const char *
breaks(const struct order *order, const char *rule, const char *name)
{
    (void)snprintf(broken, sizeof broken, "operation %zu, %s: %s (%s)", order->place,
                   simdisk_describe(order->disk, order->place), rule, name);
    return broken;
}

static size_t
entry_of(const struct simimage *image, size_t dir, const char *name)
{
    for (size_t i = 0; i < image->inodes[dir].n_entries; i++)
        if (strcmp(image->inodes[dir].entries[i].name, name) == 0)
            return image->inodes[dir].entries[i].inode;
    return SIM_NONE;
}

static size_t
root_of(const struct simimage *image, const char *path)
{
    size_t at = SIM_ROOT;
    char part[128];
    while (*path != '\0' && at != SIM_NONE) {
        size_t n = strcspn(path, "/");
        (void)snprintf(part, sizeof part, "%.*s", (int)n, path);
        at = entry_of(image, at, part);
        path += n + (path[n] == '/');
    }
    return at;
}

/* All that is in a directory is on the disk, and so are its names. */
static const char *
check_whole(const struct order *order, size_t dir, const char *name)
{
    const struct siminode *inode = &order->image.inodes[dir];
    if (order->is_dir_dirty[dir])
        return breaks(order, "the directory is not synced before it gets its name", name);
    for (size_t i = 0; i < inode->n_entries; i++)
        if (order->is_file_dirty[inode->entries[i].inode])
            return breaks(order, "a file is not synced before its directory gets its name", inode->entries[i].name);
    return NULL;
}

/* A step, or its .prev, gets the temporary's name. Before a save has named its step, only a .prev may that stands beside its step. */
static const char *
check_letting_go(const struct order *order, const struct simname *from, const struct simname *to)
{
    char step_name[PAWL_STEP_NAME_BYTES];
    int64_t step = -1;
    if (pawl_entry_of_name(pawl_str_z(from->name), &step) == PAWL_ENTRY_PREV && !order->has_named) {
        pawl_entry_name(step, "", step_name);
        bool is_beside = entry_of(&order->image, order->root, step_name) != SIM_NONE;
        return is_beside && !order->is_dir_dirty[order->root]
                   ? NULL
                   : breaks(order, "a .prev is let go before its step is durable", from->name);
    }
    return order->is_latest_awaited ? breaks(order, "a step is let go before the new one is durable", to->name) : NULL;
}

/* `name` of the root means another inode from now on; `from`: what it had before. */
static const char *
check_root_name(struct order *order, const struct simname *from, const struct simname *name)
{
    enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(name->name), NULL);
    const char *fault = NULL;
    if (name->inode == SIM_NONE)
        return NULL;
    if (kind == PAWL_ENTRY_STEP) {
        fault = check_whole(order, name->inode, name->name);
        if (fault == NULL && order->is_aside_unsynced)
            fault = breaks(order, "the root is not synced between the two renames of a replacement", name->name);
        order->was_step[name->inode] = true;
        order->is_step_unsynced = true;
        order->has_named = order->is_latest_awaited;
    } else if (kind == PAWL_ENTRY_PREV) {
        order->was_step[name->inode] = true;
        order->is_aside_unsynced = true;
    } else if (kind == PAWL_ENTRY_TMP && order->was_step[name->inode]) {
        fault = check_letting_go(order, from, name);
        order->is_let_go[name->inode] = true;
    } else if (kind == PAWL_ENTRY_BAD && order->is_latest_unsynced) {
        fault = breaks(order, "a step is quarantined before LATEST has left it", name->name);
    } else if (strcmp(name->name, "LATEST") == 0) {
        if (order->is_file_dirty[name->inode])
            fault = breaks(order, "LATEST.tmp is not synced before it becomes LATEST", name->name);
        else if (order->is_step_unsynced)
            fault = breaks(order, "the root is not synced before LATEST names the step", name->name);
        order->is_latest_unsynced = true;
    } else if (strcmp(name->name, "RETENTION.json") == 0 && order->is_file_dirty[name->inode]) {
        fault = breaks(order, "RETENTION.tmp is not synced before it gets its name", name->name);
    }
    return fault;
}

/* A name in a step directory, or anywhere else. */
static const char *
check_inner_name(struct order *order, const struct simname *name)
{
    const struct siminode *dir = &order->image.inodes[name->dir];
    if (name->inode == SIM_NONE)
        return order->is_let_go[name->dir]
                   ? breaks(order, "a file goes before the root says that its step has gone", name->name)
                   : NULL;
    if (strcmp(name->name, "MANIFEST.json") != 0)
        return NULL;
    for (size_t i = 0; i < dir->n_entries; i++)
        if (order->is_file_dirty[dir->entries[i].inode])
            return breaks(order, "MANIFEST.json is begun before this file is synced", dir->entries[i].name);
    return NULL;
}

static const char *
check_names(struct order *order, const struct simchange *change)
{
    bool is_exchange = change->names[1].name != NULL && change->names[0].inode != SIM_NONE;
    for (size_t k = 0; k < 2; k++) {
        const struct simname *name = &change->names[k];
        if (name->name == NULL)
            continue;
        /* In an exchange the old step gets the temporary's name: it is let go like any other, once the root is synced. */
        if (is_exchange && pawl_entry_of_name(pawl_str_z(name->name), NULL) == PAWL_ENTRY_TMP &&
            name->dir == order->root) {
            order->is_let_go[name->inode] = true;
            continue;
        }
        const char *fault =
            name->dir == order->root ? check_root_name(order, &change->names[0], name) : check_inner_name(order, name);
        if (fault != NULL)
            return fault;
        /* A manifest that is begun, and every file after it: it is the last. */
        if (name->dir != order->root && name->inode != SIM_NONE &&
            entry_of(&order->image, name->dir, "MANIFEST.json") != SIM_NONE && strcmp(name->name, "MANIFEST.json") != 0)
            return breaks(order, "a file is created after MANIFEST.json", name->name);
    }
    for (size_t k = 0; k < 2; k++)
        if (change->names[k].name != NULL)
            order->is_dir_dirty[change->names[k].dir] = true;
    return NULL;
}

static void
note_sync(struct order *order, size_t dir)
{
    order->is_dir_dirty[dir] = false;
    if (dir != order->root)
        return;
    order->is_step_unsynced = false;
    order->is_aside_unsynced = false;
    if (order->is_latest_unsynced) {
        order->is_latest_awaited = false;
        order->has_named = false;
    }
    order->is_latest_unsynced = false;
    for (size_t i = 0; i < order->disk->now.n; i++)
        order->is_let_go[i] = false;
}

/* Every directory on the way to the root is synced, so that the root itself can be found. */
static const char *
check_parents(const struct order *order, const char *root)
{
    char path[256];
    for (const char *at = strchr(root, '/'); at != NULL; at = strchr(at + 1, '/')) {
        (void)snprintf(path, sizeof path, "%.*s", (int)(at - root), root);
        size_t dir = root_of(&order->image, path);
        if (dir != SIM_NONE && order->is_dir_dirty[dir])
            return breaks(order, "a parent of the root is not synced", path);
    }
    return order->is_dir_dirty[SIM_ROOT] ? breaks(order, "the directory of the root is not synced", root) : NULL;
}

static const char *
check_mark(struct order *order, const char *text, const char *root)
{
    if (strcmp(text, "save") == 0)
        order->is_latest_awaited = true;
    if (strcmp(text, "done") != 0)
        return NULL;
    if (order->is_latest_awaited)
        return breaks(order, "a save is reported before LATEST is durable", text);
    return check_parents(order, root);
}

static const char *
check_all(struct order *order, const char *root)
{
    for (order->place = 0; order->place < order->disk->n_trace; order->place++) {
        const struct simchange *change = &order->disk->trace[order->place];
        const char *fault = NULL;
        order->root = root_of(&order->image, root);
        switch (change->kind) {
        case SIMCHANGE_NAMES:
            fault = change->is_setup ? NULL : check_names(order, change);
            break;
        case SIMCHANGE_WRITE:
        case SIMCHANGE_SET_BYTES:
            order->is_file_dirty[change->inode] = !change->is_setup;
            break;
        case SIMCHANGE_SYNC_FILE:
            order->is_file_dirty[change->inode] = false;
            break;
        case SIMCHANGE_SYNC_DIR:
            note_sync(order, change->inode);
            break;
        case SIMCHANGE_MARK:
            fault = check_mark(order, change->text, root);
            break;
        default:
            break;
        }
        if (fault != NULL)
            return fault;
        simimage_apply(&order->image, change);
    }
    return NULL;
}

/* Steps that are there from the start are steps too. */
static void
note_base(struct order *order, const char *root)
{
    size_t dir = root_of(&order->image, root);
    for (size_t i = 0; dir != SIM_NONE && i < order->image.inodes[dir].n_entries; i++) {
        const struct simentry *entry = &order->image.inodes[dir].entries[i];
        enum pawl_root_entry kind = pawl_entry_of_name(pawl_str_z(entry->name), NULL);
        order->was_step[entry->inode] = kind == PAWL_ENTRY_STEP || kind == PAWL_ENTRY_PREV;
    }
}

const char *
order_check(const struct simdisk *disk, const char *root)
{
    size_t n = disk->now.n;
    struct order order = { .disk = disk, .root = SIM_NONE };
    order.is_file_dirty = calloc(n, sizeof(bool));
    order.is_dir_dirty = calloc(n, sizeof(bool));
    order.is_let_go = calloc(n, sizeof(bool));
    order.was_step = calloc(n, sizeof(bool));
    if (order.is_file_dirty == NULL || order.is_dir_dirty == NULL || order.is_let_go == NULL || order.was_step == NULL)
        abort();
    simimage_copy(&order.image, &disk->base);
    note_base(&order, root);
    const char *fault = check_all(&order, root);
    simimage_release(&order.image);
    free(order.is_file_dirty);
    free(order.is_dir_dirty);
    free(order.is_let_go);
    free(order.was_step);
    return fault;
}
