/* What a power cut can leave: the trace of a simulated disk, and the states built from it. */
#include "sim/simdisk_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR_BYTES 512

size_t
simdisk_trace_len(const struct simdisk *disk)
{
    return disk->n_trace;
}

void
simdisk_mark(struct simdisk *disk, const char *text)
{
    (void)pthread_mutex_lock(&disk->mutex);
    simdisk_record(disk, (struct simchange){ .kind = SIMCHANGE_MARK, .text = sim_copy_text(text) });
    (void)pthread_mutex_unlock(&disk->mutex);
}

const char *
simdisk_mark_at(const struct simdisk *disk, size_t at)
{
    return at < disk->n_trace && disk->trace[at].kind == SIMCHANGE_MARK ? disk->trace[at].text : NULL;
}

/* Where each inode was synced last before `prefix`: the place + 1, 0 for never. */
static size_t *
last_syncs(const struct simdisk *disk, size_t prefix)
{
    size_t *syncs = sim_alloc(disk->now.n * sizeof *syncs);
    for (size_t i = 0; i < prefix; i++) {
        const struct simchange *change = &disk->trace[i];
        if (change->kind == SIMCHANGE_SYNC_FILE || change->kind == SIMCHANGE_SYNC_DIR)
            syncs[change->inode] = i + 1;
        for (size_t k = 0; change->kind == SIMCHANGE_SYNC_ALL && k < disk->now.n; k++)
            syncs[k] = i + 1;
    }
    return syncs;
}

/* May a cut right before `prefix` lose what was done at `place`? */
static bool
is_pending(const struct simdisk *disk, size_t place, const size_t *syncs)
{
    const struct simchange *change = &disk->trace[place];
    if (change->is_setup)
        return false;
    switch (change->kind) {
    case SIMCHANGE_NAMES:
        if (change->is_doomed)
            return true;
        /* A rename between two directories is safe when both are. */
        return syncs[change->names[0].dir] <= place ||
               (change->names[1].name != NULL && syncs[change->names[1].dir] <= place);
    case SIMCHANGE_WRITE:
    case SIMCHANGE_SET_BYTES:
    case SIMCHANGE_SET_MODE:
        return change->is_doomed || syncs[change->inode] <= place;
    default:
        return false;
    }
}

size_t
simdisk_pending(const struct simdisk *disk, size_t prefix, size_t *places, size_t places_max)
{
    size_t n = 0;
    size_t *syncs = last_syncs(disk, prefix);
    for (size_t i = 0; i < prefix; i++) {
        if (!is_pending(disk, i, syncs))
            continue;
        if (places != NULL && n < places_max)
            places[n] = i;
        n++;
    }
    free(syncs);
    return n;
}

bool
simdisk_can_tear(const struct simdisk *disk, size_t place)
{
    return disk->trace[place].kind == SIMCHANGE_WRITE && disk->trace[place].bytes > 1;
}

/* The name under which programs see an inode, for a listing. */
static const char *
name_of(const struct simdisk *disk, size_t inode)
{
    for (size_t i = 0; i < disk->now.n; i++) {
        for (size_t k = 0; k < disk->now.inodes[i].n_entries; k++) {
            if (disk->now.inodes[i].entries[k].inode == inode)
                return disk->now.inodes[i].entries[k].name;
        }
    }
    return inode == SIM_ROOT ? "/" : "(removed)";
}

const char *
simdisk_describe(const struct simdisk *disk, size_t place)
{
    const struct simchange *change = &disk->trace[place];
    char *text = ((struct simdisk *)(uintptr_t)disk)->description; /* the only part that a look may change */
    size_t size = sizeof disk->description;
    switch (change->kind) {
    case SIMCHANGE_NAMES:
        (void)snprintf(text, size, "%s", change->text);
        break;
    case SIMCHANGE_WRITE:
        (void)snprintf(text, size, "write %s %" PRIu64 "+%" PRIu64, name_of(disk, change->inode), change->offset,
                       change->bytes);
        break;
    case SIMCHANGE_SET_BYTES:
        (void)snprintf(text, size, "set bytes %s %" PRIu64, name_of(disk, change->inode), change->bytes);
        break;
    case SIMCHANGE_SET_MODE:
        (void)snprintf(text, size, "set mode %s %04o", name_of(disk, change->inode), (unsigned)change->mode);
        break;
    case SIMCHANGE_SYNC_FILE:
        (void)snprintf(text, size, "sync file %s", name_of(disk, change->inode));
        break;
    case SIMCHANGE_SYNC_DIR:
        (void)snprintf(text, size, "sync directory %s", name_of(disk, change->inode));
        break;
    case SIMCHANGE_SYNC_ALL:
        (void)snprintf(text, size, "sync all");
        break;
    case SIMCHANGE_MARK:
        (void)snprintf(text, size, "mark %s", change->text);
        break;
    }
    return text;
}

unsigned
simdisk_call_of(const struct simdisk *disk, size_t place)
{
    return disk->trace[place].at_call;
}

/* Part of a write: sectors here and there, or a beginning; the file may have grown to its whole end or not. */
static void
apply_torn(struct simimage *image, const struct simchange *change, enum simfate fate, uint64_t *random)
{
    const uint64_t end = change->offset + change->bytes;
    const bool has_grown = (sim_random(random) & 1) != 0;
    if (has_grown && image->inodes[change->inode].bytes < end)
        simimage_set_bytes(image, change->inode, end);
    if (fate == SIMFATE_TORN_BYTES) {
        size_t n = (size_t)(sim_random(random) % change->bytes);
        simimage_write(image, change->inode, change->offset, change->data, n);
        return;
    }
    for (uint64_t at = change->offset; at < end;) {
        uint64_t sector_end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
        uint64_t n = (sector_end < end ? sector_end : end) - at;
        if ((sim_random(random) & 1) != 0)
            simimage_write(image, change->inode, at, change->data + (at - change->offset), (size_t)n);
        at += n;
    }
}

/* The image that a cut right before `prefix` leaves. */
static void
build_image(const struct simdisk *disk, size_t prefix, const unsigned char *fates, size_t n, uint64_t seed,
            struct simimage *ret_image)
{
    uint64_t random = seed;
    size_t *syncs = last_syncs(disk, prefix);
    size_t at = 0;
    simimage_copy(ret_image, &disk->base);
    for (size_t i = 0; i < prefix; i++) {
        const struct simchange *change = &disk->trace[i];
        enum simfate fate = SIMFATE_KEPT;
        if (is_pending(disk, i, syncs)) {
            fate = fates != NULL && at < n ? (enum simfate)fates[at] : SIMFATE_LOST;
            at++;
        }
        if (fate == SIMFATE_LOST)
            continue;
        if (fate != SIMFATE_KEPT && simdisk_can_tear(disk, i))
            apply_torn(ret_image, change, fate, &random);
        else
            simimage_apply(ret_image, change);
    }
    free(syncs);
}

/* A new disk with the image as its whole, durable content; takes it. */
static struct simdisk *
disk_of_image(const struct simdisk *like, struct simimage *image)
{
    struct simdisk *disk = simdisk_new();
    simimage_release(&disk->now);
    simimage_release(&disk->base);
    simimage_copy(&disk->base, image);
    disk->now = *image;
    disk->capacity = like->capacity;
    disk->umask = like->umask;
    disk->lacking = like->lacking;
    disk->process = like->process;
    disk->weak_kind = like->weak_kind;
    disk->clock_ns = like->clock_ns;
    return disk;
}

struct simdisk *
simdisk_build_state(const struct simdisk *disk, size_t prefix, const unsigned char *fates, size_t n, uint64_t seed)
{
    struct simimage image;
    build_image(disk, prefix, fates, n, seed, &image);
    return disk_of_image(disk, &image);
}

struct simdisk *
simdisk_clone(const struct simdisk *disk)
{
    struct simimage image;
    simimage_copy(&image, &disk->now);
    return disk_of_image(disk, &image);
}

bool
simdisk_reboot(struct simdisk *disk, uint64_t seed)
{
    uint64_t random = seed;
    bool was_cut = disk->is_cut;
    size_t prefix = disk->n_trace;
    if (was_cut && (sim_random(&random) & 1) != 0)
        prefix = disk->cut_trace_len;

    size_t n = simdisk_pending(disk, prefix, NULL, 0);
    unsigned char *fates = sim_alloc(n);
    /* One seed in eight loses all, one keeps all: the extremes are the likeliest in life and rare by chance. */
    unsigned extreme = (unsigned)(sim_random(&random) & 7);
    for (size_t i = 0; i < n; i++)
        fates[i] = extreme == 0   ? (unsigned char)SIMFATE_LOST
                   : extreme == 1 ? (unsigned char)SIMFATE_KEPT
                                  : (unsigned char)(sim_random(&random) & 3);
    struct simimage image;
    build_image(disk, prefix, fates, n, sim_random(&random), &image);
    free(fates);

    for (size_t i = 0; i < disk->n_trace; i++)
        simchange_release(&disk->trace[i]);
    disk->n_trace = 0;
    simimage_release(&disk->now);
    simimage_release(&disk->base);
    disk->now = image;
    simimage_copy(&disk->base, &image);
    disk->n_locks = 0;
    disk->handles = 0;
    disk->generation++;
    disk->is_armed = disk->was_met = false;
    disk->is_cut_planned = disk->is_cut = false;
    memset(disk->calls, 0, sizeof disk->calls);
    return was_cut;
}
