/* sim/simdisk_inside.h: the struct, shared by the disk's own files. */
#ifndef SIM_SIMDISK_INSIDE_H
#define SIM_SIMDISK_INSIDE_H

#include <pthread.h>
#include "sim/simdisk.h"
#include "sim/simimage.h"

struct simlock {
    size_t inode;
    const struct pawl_os_dir *holder;
    int64_t process;
};

struct simmap {
    const unsigned char *data;
    size_t bytes;
    size_t inode;
    uint64_t offset;
};

struct simdisk {
    struct pawl_os os;
    pthread_mutex_t mutex;
    struct simimage now;  /* what programs see */
    struct simimage base; /* what was durable when the trace began */
    struct simchange *trace;
    size_t n_trace, trace_capacity;

    struct simlock *locks;
    size_t n_locks;
    struct simmap *maps;
    size_t n_maps;
    int handles;
    unsigned calls[SIM_OPS_N + 1];
    uint64_t capacity;
    uint64_t direct_bytes, direct_bytes_read;
    uint32_t cold;
    uint32_t umask;
    unsigned lacking;
    int64_t process;
    const char *weak_kind;
    int64_t clock_ns;
    uint64_t generation; /* counts reboots: handles of an earlier one answer EIO */

    bool is_armed, was_met;
    enum sim_op fault_op;
    unsigned fault_nth, fault_repeats;
    int fault_code;
    bool is_shortened, is_denied; /* the call that is being made: half of it; made, and answered EIO */
    bool is_cut_planned, is_cut;
    unsigned cut_in;
    size_t cut_trace_len; /* the trace without what the cut call did */

    char description[512];
};

/* Apply to what programs see and append to the trace; takes what the change points to. */
void simdisk_record(struct simdisk *disk, struct simchange change);
/* The inode at a path, links followed (the last one only when asked), or SIM_NONE with an errno value. */
size_t simdisk_walk(const struct simdisk *disk, const char *path, bool follow_last, int *ret_code);
/* A new inode in both images, reached by no name. */
size_t simdisk_new_inode(struct simdisk *disk, enum pawl_os_kind kind, uint32_t mode);

#endif
