/*
 * pawl/tensor.h: what a tensor is to Pawl: as the caller has it (struct
 * pawl_tensor, for saving and restoring) and as a file has it (struct
 * pawl_tensor_info).
 */
#ifndef PAWL_TENSOR_H
#define PAWL_TENSOR_H

#include "pawl/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which part of a run's state something belongs to. */
enum pawl_slot {
    PAWL_MODEL = 1,     /* model.safetensors */
    PAWL_OPTIMIZER = 2, /* optimizer.safetensors; its numbers go into the metadata `state` */
    PAWL_TRAINER = 3,   /* trainer_state.json */
    PAWL_EXTRA = 4      /* pawl.state.json */
};

/*
 * Where a tensor's bytes come from when they do not lie in memory: a device,
 * another file, a decompressor. Little-endian, row-major, packed.
 *
 * read  must fill `destination` with the n bytes at `offset`, or return another
 *       status than PAWL_OK (and fill err, which is never NULL here): the save then fails with
 *       it, and names the tensor. Called in ascending order of offset, from the
 *       thread that saves.
 */
struct pawl_source {
    uint64_t bytes;
    enum pawl_status (*read)(void *context, uint64_t offset, void *destination, size_t n, struct pawl_error *err);
    void *context;
};

/*
 * Where a file goes that has no path: a pipe, a socket, memory. Called in order, from front to back, without seeking;
 * another answer than PAWL_OK ends the work, and is what the call that writes answers (err is never NULL here).
 */
struct pawl_sink {
    enum pawl_status (*write)(void *context, const void *data, size_t n, struct pawl_error *err);
    void *context;
};

/*
 * A tensor of the caller's. Zero-initialise and set what applies; `size` tells
 * which version of the struct this is.
 *
 *     float w[256][256];
 *     pawl_state_tensor(state, &PAWL_TENSOR(PAWL_MODEL, "fc.weight", PAWL_F32, w, 256, 256), &err);
 */
struct pawl_tensor {
    size_t size;
    enum pawl_slot slot;
    enum pawl_dtype dtype;  /* of the bytes in memory, and of the file where `stored` does not say otherwise */
    struct pawl_str name;   /* copied by whoever takes the tensor */
    size_t rank;            /* 0: a scalar */
    const uint64_t *shape;  /* rank items; copied */
    const int64_t *strides; /* in elements, rank items; NULL: row-major and packed; copied. Not for F4, F6 */
    void *data;             /* the first element (also with negative strides); borrowed. Only read by a save */
    const struct pawl_source *source; /* instead of data; copied, its context borrowed. Can't be restored into */
    uint8_t is_big_endian;            /* the bytes in memory are big-endian: turned while saving and restoring */
    /*
     * Of the file, when it is not to be that of the memory: a narrower float for F32 values, rounded once on their way out.
     * 0: `dtype`. Only pawl_safetensors_write and its kin take it; a checkpoint keeps every bit, and refuses.
     */
    enum pawl_dtype stored;
    enum pawl_overflow overflow; /* of `stored`: what becomes of a value beyond its range */
};

#ifdef __cplusplus
extern "C++" {
/* What PAWL_TENSOR makes in C++: a tensor that has its shape with it. Keep one as `auto`: a copy as a pawl_tensor has the shape no longer. */
template <size_t N> struct pawl_tensor_of_ : pawl_tensor {
    uint64_t dims[N > 0 ? N : 1];
    template <class... D>
    pawl_tensor_of_(pawl_slot slot_, const char *name_, pawl_dtype dtype_, void *data_, D... dims_)
        : pawl_tensor(), dims{ static_cast<uint64_t>(dims_)... }
    {
        size = sizeof(pawl_tensor);
        slot = slot_;
        dtype = dtype_;
        name = pawl_str_z(name_);
        rank = N;
        shape = N > 0 ? dims : nullptr;
        data = data_;
    }
    pawl_tensor_of_(const pawl_tensor_of_ &other) : pawl_tensor(other)
    {
        for (size_t i = 0; i < N; i++)
            dims[i] = other.dims[i];
        shape = N > 0 ? dims : nullptr;
    }
    pawl_tensor_of_ &operator=(const pawl_tensor_of_ &) = delete;
};
template <class... D>
inline pawl_tensor_of_<sizeof...(D)>
pawl_tensor_make_(pawl_slot slot, const char *name, pawl_dtype dtype, void *data, D... dims)
{
    return pawl_tensor_of_<sizeof...(D)>(slot, name, dtype, data, dims...);
}
}
#define PAWL_TENSOR(slot_, name_, dtype_, data_, ...) \
    (pawl_literal_(pawl_tensor_make_((slot_), (name_), (dtype_), (data_), __VA_ARGS__)))
/* A tensor of no dimensions: one element. */
#define PAWL_SCALAR(slot_, name_, dtype_, data_) (pawl_literal_(pawl_tensor_make_((slot_), (name_), (dtype_), (data_))))
#else
#define PAWL_TENSOR(slot_, name_, dtype_, data_, ...)                                      \
    ((struct pawl_tensor){ .size = sizeof(struct pawl_tensor),                             \
                           .slot = (slot_),                                                \
                           .dtype = (dtype_),                                              \
                           .name = pawl_str_z(name_),                                      \
                           .rank = sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
                           .shape = (uint64_t[]){ __VA_ARGS__ },                           \
                           .data = (data_) })

/* A tensor of no dimensions: one element. */
#define PAWL_SCALAR(slot_, name_, dtype_, data_)               \
    ((struct pawl_tensor){ .size = sizeof(struct pawl_tensor), \
                           .slot = (slot_),                    \
                           .dtype = (dtype_),                  \
                           .name = pawl_str_z(name_),          \
                           .data = (data_) })
#endif

/* A tensor as a file holds it. Belongs to what gave it; strings and shape live as long as that. */
struct pawl_tensor_info {
    struct pawl_str name;
    const uint64_t *shape; /* rank items, NULL when rank is 0 */
    uint64_t begin, end;   /* in the data buffer of its file: absolute positions are data_begin + these */
    uint32_t rank;
    uint32_t file; /* which of the files of the model */
    enum pawl_dtype dtype;
};

/* A name and a text of a file's metadata. */
struct pawl_pair {
    struct pawl_str key, value;
};

#ifdef __cplusplus
}
#endif

#endif
