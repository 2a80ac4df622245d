/*
 * sim/simdisk.h: a disk in memory that can lose power.
 *
 * Programs see every write at once. What a cut leaves is another matter: the
 * bytes and size of a file are safe once that file was synced, the names of a
 * directory once that directory was synced, and each operation since then may
 * be there, or not, or half (torn at a sector of 512 bytes or at a byte),
 * whatever the others did. Not even a file's own sync keeps its name.
 *
 *     struct simdisk *disk = simdisk_new();
 *     simdisk_put(disk, "root/LATEST", "old", 3);     durable from the start
 *     simdisk_cut_power_at(disk, 17);                 the 18th call from now, and all after it, answer EIO
 *     ... the code under test, over simdisk_os(disk) ...
 *     bool cut = simdisk_reboot(disk, seed);          what was not synced: by the seed
 *     ... look ...
 *     simdisk_free(disk);
 *
 * For all crash states of one run instead of random ones, let it run to its
 * end and take the trace:
 *
 *     for (size_t prefix = 0; prefix <= simdisk_trace_len(disk); prefix++) {
 *         size_t n = simdisk_pending(disk, prefix, NULL, 0);    operations that may be lost there
 *         unsigned char fates[n];                               SIMFATE_..., one for each, oldest first
 *         ... for every choice of fates:
 *         struct simdisk *after = simdisk_build_state(disk, prefix, fates, n, seed);
 *     }
 *
 * Paths of the helpers begin at the root of the disk, which is also the
 * working directory. The table may be used by several threads; the helpers may
 * not while it is.
 */
#ifndef SIM_SIMDISK_H
#define SIM_SIMDISK_H

#include "os/os.h"
#include "sim/simop.h"

struct simdisk;

/* Past the cache: offset, length and memory must be multiples of it, else EINVAL. */
#define SIM_DIRECT_BYTES 4096

struct simdisk *simdisk_new(void);
void simdisk_free(struct simdisk *disk);
/* The same content, all of it durable, an empty trace, no faults, nothing open. */
struct simdisk *simdisk_clone(const struct simdisk *disk);
const struct pawl_os *simdisk_os(struct simdisk *disk);

/* ---- content, durable at once; directories of the path are made ---- */

void simdisk_put(struct simdisk *disk, const char *path, const void *data, size_t bytes);
void simdisk_put_text(struct simdisk *disk, const char *path, const char *text);
void simdisk_put_dir(struct simdisk *disk, const char *path);
void simdisk_put_link(struct simdisk *disk, const char *path, const char *target);
void simdisk_put_fifo(struct simdisk *disk, const char *path);
void simdisk_put_mode(struct simdisk *disk, const char *path, uint32_t mode);
void simdisk_remove(struct simdisk *disk, const char *path);
/* Flip bits of one byte of a file, as a bad medium does: its size and time stay. */
void simdisk_flip(struct simdisk *disk, const char *path, uint64_t offset, unsigned char bits);

/* The bytes of a file (a NUL behind them), NULL when there is none; until the disk's next change. */
const unsigned char *simdisk_get(const struct simdisk *disk, const char *path, size_t *ret_bytes);
const char *simdisk_text(const struct simdisk *disk, const char *path);
bool simdisk_has(const struct simdisk *disk, const char *path);
uint32_t simdisk_mode(const struct simdisk *disk, const char *path);
/* All that is under a directory, a line each, sorted: "a", "b/", "b/c". The caller's, to free(). */
char *simdisk_tree(const struct simdisk *disk, const char *path);
/* A sum over names and contents of all, for comparing states; times and inode numbers left out. */
uint64_t simdisk_fingerprint(const struct simdisk *disk);

/* To and from a directory of the host (made when missing); 0 or errno. Links and FIFOs are left out. */
int simdisk_export(const struct simdisk *disk, const char *path, const char *host_path);
int simdisk_import(struct simdisk *disk, const char *path, const char *host_path);

/* ---- faults ---- */

/* The n-th call from now (0: the next) of kind `op` answers `code` and is not made, and `repeats` calls after it
 * likewise; closes are made. code 0: a write or read cut to half. After a failed file_sync what was pending in that
 * file is lost for ever, whatever later syncs say. */
void simdisk_fail(struct simdisk *disk, enum sim_op op, unsigned nth, unsigned repeats, int code);
bool simdisk_fault_was_met(const struct simdisk *disk);
void simdisk_lack(struct simdisk *disk, unsigned features);
/* Full beyond so many bytes of files; SIZE_MAX: never. A write is cut short, then ENOSPC. */
void simdisk_set_capacity(struct simdisk *disk, uint64_t bytes);
/* Which MiB of every file are not in the cache: number i when bit i % 32 is set. 0, as at first: all are. */
void simdisk_set_cold(struct simdisk *disk, uint32_t which);
void simdisk_set_umask(struct simdisk *disk, uint32_t mask);
/* The answer of process_id, and the holder named for a lock. */
void simdisk_set_process(struct simdisk *disk, int64_t process);
/* NULL, or what dir_weak_kind says. */
void simdisk_set_weak_kind(struct simdisk *disk, const char *kind);

/* ---- counters ---- */

unsigned simdisk_calls(const struct simdisk *disk, enum sim_op op); /* SIM_ANY: all */
uint64_t simdisk_direct_bytes(const struct simdisk *disk);          /* written past the cache */
uint64_t simdisk_direct_bytes_read(const struct simdisk *disk);     /* and read */
int simdisk_open_handles(const struct simdisk *disk);               /* files and directories */
int simdisk_open_maps(const struct simdisk *disk);

/* ---- power ---- */

/* The n-th call from now (0: the next) may or may not be carried out, and it and all later ones answer EIO. */
void simdisk_cut_power_at(struct simdisk *disk, unsigned nth);
/* Whether the cut was met. The content becomes a state that the cut, or a cut right now, can leave; all of it is
 * durable then, faults and counters are cleared. Handles that are still open become useless; close them or not. */
bool simdisk_reboot(struct simdisk *disk, uint64_t seed);

/* ---- the trace ---- */

enum simfate {
    SIMFATE_LOST = 0,
    SIMFATE_KEPT = 1,
    SIMFATE_TORN_SECTORS = 2, /* of a write: some of its sectors, by the seed; others: as kept */
    SIMFATE_TORN_BYTES = 3    /* of a write: a beginning of it, to a byte by the seed */
};

size_t simdisk_trace_len(const struct simdisk *disk);
/* A note in the trace: "reported durable". */
void simdisk_mark(struct simdisk *disk, const char *text);
/* The text of a mark, NULL when that place of the trace is none. */
const char *simdisk_mark_at(const struct simdisk *disk, size_t at);
/* Places in the trace, before `prefix`, of the operations that a cut right before it may lose, oldest first. Returns
 * their number; `places` (may be NULL) takes the first `places_max`. */
size_t simdisk_pending(const struct simdisk *disk, size_t prefix, size_t *places, size_t places_max);
/* Is that operation a write, so that it can be torn? */
bool simdisk_can_tear(const struct simdisk *disk, size_t place);
/* "write a.tmp 0+4096"; static to the disk until its next change. */
const char *simdisk_describe(const struct simdisk *disk, size_t place);
/* The number of the table's call that made it. */
unsigned simdisk_call_of(const struct simdisk *disk, size_t place);
/* The disk after a cut right before `prefix` with these fates of the n pending operations (fates NULL: all lost). */
struct simdisk *simdisk_build_state(const struct simdisk *disk, size_t prefix, const unsigned char *fates, size_t n,
                                    uint64_t seed);

#endif
