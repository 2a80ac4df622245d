/* sim/simop.h: a name for every entry of struct pawl_os, for counting, failing and tracing it. */
#ifndef SIM_SIMOP_H
#define SIM_SIMOP_H

/* X(constant, entry of the table). The machine's clock, sleep and process number cannot fail and are not listed. */
#define SIM_OPS(X)                            \
    X(SIM_DIR_OPEN_PATH, dir_open_path)       \
    X(SIM_DIR_OPEN, dir_open)                 \
    X(SIM_DIR_CLOSE, dir_close)               \
    X(SIM_DIR_CREATE_PATH, dir_create_path)   \
    X(SIM_DIR_CREATE, dir_create)             \
    X(SIM_DIR_LIST, dir_list)                 \
    X(SIM_DIR_SYNC, dir_sync)                 \
    X(SIM_DIR_LOCK, dir_lock)                 \
    X(SIM_DIR_UNLOCK, dir_unlock)             \
    X(SIM_DIR_SPACE, dir_space)               \
    X(SIM_DIR_WEAK_KIND, dir_weak_kind)       \
    X(SIM_STAT, stat)                         \
    X(SIM_READ_LINK, read_link)               \
    X(SIM_RENAME, rename)                     \
    X(SIM_REMOVE_FILE, remove_file)           \
    X(SIM_REMOVE_DIR, remove_dir)             \
    X(SIM_FILE_CREATE, file_create)           \
    X(SIM_FILE_OPEN, file_open)               \
    X(SIM_FILE_CLOSE, file_close)             \
    X(SIM_FILE_STAT, file_stat)               \
    X(SIM_FILE_SET_MODE, file_set_mode)       \
    X(SIM_FILE_WRITE_AT, file_write_at)       \
    X(SIM_FILE_READ_AT, file_read_at)         \
    X(SIM_FILE_RESERVE, file_reserve)         \
    X(SIM_FILE_SET_BYTES, file_set_bytes)     \
    X(SIM_FILE_SET_DIRECT, file_set_direct)   \
    X(SIM_FILE_OPEN_DIRECT, file_open_direct) \
    X(SIM_FILE_CACHED, file_cached)           \
    X(SIM_FILE_SYNC, file_sync)               \
    X(SIM_FILE_WRITE_BACK, file_write_back)   \
    X(SIM_FILE_ADVISE, file_advise)           \
    X(SIM_FILE_MAP, file_map)                 \
    X(SIM_MAP_POPULATE, map_populate)

enum sim_op {
#define SIM_CONSTANT(constant, entry) constant,
    SIM_OPS(SIM_CONSTANT)
#undef SIM_CONSTANT
        SIM_OPS_N,
    SIM_ANY = SIM_OPS_N /* in a fault: whichever call is the n-th */
};

/* "file_sync"; static storage. */
const char *sim_op_name(enum sim_op op);

/* Features that a table may lack. Each answers as the filesystems of the notes do. */
enum sim_feature {
    SIM_EXCHANGE = 1 << 0,   /* EINVAL */
    SIM_NO_REPLACE = 1 << 1, /* EINVAL */
    SIM_RESERVE = 1 << 2,    /* EOPNOTSUPP */
    SIM_LOCK = 1 << 3,       /* simdisk: the `.lock` file; faultos: ENOSYS */
    SIM_SYNC_DIR = 1 << 4,   /* EINVAL */
    SIM_KINDS = 1 << 5,      /* listings do not tell kinds */
    SIM_POPULATE = 1 << 6,   /* ENOSYS */
    SIM_SET_BYTES = 1 << 7,  /* EOPNOTSUPP */
    SIM_SET_MODE = 1 << 8,   /* EPERM */
    SIM_DIRECT = 1 << 9,     /* writing or reading past the cache: EINVAL when it is asked for */
    SIM_CACHED = 1 << 10     /* what is in the cache: ENOSYS */
};

#endif
