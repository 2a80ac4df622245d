/* A ring of buffers: readers fill them ahead, in the order of the file, and each is free again when all who hold it have let go. */
#include "os/inlet.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "os/slots.h"
#include "os/thread.h"

/* A shorter range is read in less time than it takes to find out how. */
#define AHEAD_BYTES ((uint64_t)1 << 20)
/* The one buffer of an inlet that gets no slots. */
#define BLOCK_BYTES ((size_t)1 << 20)
/* Two pieces on their way from the disk, one that is copied and one that is hashed. */
#define SLOTS 4
#define READERS_MAX 2

struct buffer {
    struct pawl_inlet *inlet;
    unsigned char *data;
    uint64_t piece;   /* whose it is, when it is not free */
    unsigned holders; /* 0, and not is_filling: free */
    bool is_filling;
    bool has_bytes; /* else they are for the owner to read */
    enum pawl_status status;
    struct pawl_error error;
};

struct pawl_inlet {
    const struct pawl_file *file;
    uint64_t begin, end;
    size_t piece_bytes; /* pieces end at multiples of it, so that only the first and the last can be odd */
    uint64_t n_pieces;
    struct buffer buffers[SLOTS];
    size_t n_buffers;
    unsigned char *block; /* instead of slots */

    pthread_mutex_t mutex;
    pthread_cond_t moved;
    uint64_t to_read;    /* the piece that a reader takes next */
    uint64_t to_give;    /* the one that the owner gets next */
    struct buffer *held; /* by the owner; NULL: none */
    bool is_closing;
    struct pawl_os_file *direct; /* a second handle; NULL: not wanted so far */
    size_t alignment;
    bool is_refused; /* no direct reads, or no more */
    pthread_t readers[READERS_MAX];
    unsigned n_readers;
};

static void
bounds(const struct pawl_inlet *inlet, uint64_t piece, uint64_t *ret_begin, uint64_t *ret_end)
{
    uint64_t at = inlet->begin - inlet->begin % inlet->piece_bytes + piece * inlet->piece_bytes;
    uint64_t left = inlet->end - at;
    *ret_begin = at < inlet->begin ? inlet->begin : at;
    *ret_end = left < inlet->piece_bytes ? inlet->end : at + inlet->piece_bytes;
}

/* The place of a byte of the file: as far into the buffer as it lies behind the last multiple, so that it is aligned in both. */
static unsigned char *
place_of(const struct pawl_inlet *inlet, const struct buffer *buffer, uint64_t at)
{
    return buffer->data + at % inlet->piece_bytes;
}

/* ---- which way ---- */

/* Most of it is in the cache, or nobody can tell. */
static bool
is_cached(const struct pawl_inlet *inlet, uint64_t begin, uint64_t end)
{
    const struct pawl_os *os = inlet->file->os;
    size_t cached = 0;
    int code;
    do {
        code = os->file_cached(os->context, inlet->file->handle, begin, (size_t)(end - begin), &cached);
    } while (code == EINTR);
    return code != 0 || cached >= (end - begin + 1) / 2;
}

/* The handle for direct reads, made when it is first wanted. NULL: through the cache. The mutex is held. */
static struct pawl_os_file *
direct_handle(struct pawl_inlet *inlet)
{
    const struct pawl_os *os = inlet->file->os;
    if (inlet->direct == NULL && !inlet->is_refused) {
        int code;
        do {
            code = os->file_open_direct(os->context, inlet->file->handle, &inlet->direct, &inlet->alignment);
        } while (code == EINTR);
        if (code != 0)
            inlet->direct = NULL;
        /* One that does not fit the pieces is as good as none. */
        inlet->is_refused = code != 0 || inlet->alignment == 0 || inlet->piece_bytes % inlet->alignment != 0;
    }
    return inlet->is_refused ? NULL : inlet->direct;
}

/* Any error means the same, and is told by the reading through the cache that follows; but a medium's may pass. */
static void
note_refusal(struct pawl_inlet *inlet, int code)
{
    if (code == EIO)
        return;
    (void)pthread_mutex_lock(&inlet->mutex);
    inlet->is_refused = true;
    (void)pthread_mutex_unlock(&inlet->mutex);
}

static enum pawl_status
read_direct(struct pawl_inlet *inlet, struct buffer *buffer, struct pawl_os_file *direct, uint64_t begin, uint64_t end,
            struct pawl_error *err)
{
    const struct pawl_os *os = inlet->file->os;
    const size_t unit = inlet->alignment;
    uint64_t at = begin - begin % unit;
    while (at < end) {
        /* Whole blocks, also over the end of the file: the system stops there. */
        size_t bytes = (size_t)((end - at + unit - 1) / unit * unit);
        size_t n = 0;
        int code = os->file_read_at(os->context, direct, at, place_of(inlet, buffer, at), bytes, &n);
        if (code == EINTR)
            continue;
        if (code != 0)
            note_refusal(inlet, code);
        if (code != 0 || n == 0)
            break;
        at += n;
        if (n % unit != 0)
            break; /* the end of the file, or a place where no direct read can go on */
    }
    if (at >= end)
        return PAWL_OK;
    at = at < begin ? begin : at;
    return pawl_file_read(inlet->file, at, place_of(inlet, buffer, at), (size_t)(end - at), err);
}

/* Fill the buffer of a piece, or leave it to the owner. The mutex is held, and let go meanwhile. */
static void
fill(struct pawl_inlet *inlet, struct buffer *buffer)
{
    const struct pawl_os *os = inlet->file->os;
    bool can_ask = inlet->block == NULL && os->file_cached != NULL && os->file_open_direct != NULL;
    struct pawl_os_file *direct = NULL;
    uint64_t begin, end;
    bounds(inlet, buffer->piece, &begin, &end);
    buffer->is_filling = true;
    buffer->status = PAWL_OK;
    if (can_ask && !inlet->is_refused) {
        (void)pthread_mutex_unlock(&inlet->mutex);
        bool is_cold = !is_cached(inlet, begin, end);
        (void)pthread_mutex_lock(&inlet->mutex);
        direct = is_cold ? direct_handle(inlet) : NULL;
    }
    (void)pthread_mutex_unlock(&inlet->mutex);
    if (direct != NULL)
        buffer->status = read_direct(inlet, buffer, direct, begin, end, &buffer->error);
    else if (inlet->n_readers != 0) /* what is missing comes in while pieces before it are looked at; only advice */
        (void)os->file_advise(os->context, inlet->file->handle, begin, end - begin, PAWL_OS_WILL_NEED);
    (void)pthread_mutex_lock(&inlet->mutex);
    buffer->has_bytes = direct != NULL;
    buffer->is_filling = false;
    buffer->holders = 1;
    (void)pthread_cond_broadcast(&inlet->moved);
}

/* The buffer of the next piece, when it is free. */
static struct buffer *
take_free(struct pawl_inlet *inlet)
{
    struct buffer *buffer = &inlet->buffers[inlet->to_read % inlet->n_buffers];
    if (inlet->to_read == inlet->n_pieces || buffer->is_filling || buffer->holders != 0)
        return NULL;
    buffer->piece = inlet->to_read++;
    return buffer;
}

static void *
read_ahead(void *context)
{
    struct pawl_inlet *inlet = context;
    (void)pthread_mutex_lock(&inlet->mutex);
    while (!inlet->is_closing && inlet->to_read != inlet->n_pieces) {
        struct buffer *buffer = take_free(inlet);
        if (buffer != NULL)
            fill(inlet, buffer);
        else
            (void)pthread_cond_wait(&inlet->moved, &inlet->mutex);
    }
    (void)pthread_mutex_unlock(&inlet->mutex);
    return NULL;
}

/* ---- for the owner ---- */

static bool
take_buffers(struct pawl_inlet *inlet, bool is_large)
{
    unsigned char *slots[SLOTS];
    inlet->n_buffers = is_large ? pawl_slots_take(slots, 2, SLOTS) : 0;
    for (size_t i = 0; i < inlet->n_buffers; i++)
        inlet->buffers[i] = (struct buffer){ .inlet = inlet, .data = slots[i] };
    inlet->piece_bytes = PAWL_SLOT_BYTES;
    if (inlet->n_buffers != 0)
        return true;
    inlet->block = malloc(BLOCK_BYTES);
    inlet->buffers[0] = (struct buffer){ .inlet = inlet, .data = inlet->block };
    inlet->n_buffers = 1;
    inlet->piece_bytes = BLOCK_BYTES;
    return inlet->block != NULL;
}

static void
give_buffers(struct pawl_inlet *inlet)
{
    unsigned char *slots[SLOTS];
    for (size_t i = 0; i < inlet->n_buffers; i++)
        slots[i] = inlet->buffers[i].data;
    if (inlet->block == NULL)
        pawl_slots_give(slots, inlet->n_buffers);
    free(inlet->block);
}

enum pawl_status
pawl_inlet_open(struct pawl_inlet **ret_inlet, const struct pawl_file *file, uint64_t begin, uint64_t end,
                size_t at_once, struct pawl_error *err)
{
    struct pawl_inlet *inlet = calloc(1, sizeof *inlet);
    if (inlet == NULL)
        return pawl_fail_memory(err, sizeof *inlet);
    inlet->file = file;
    inlet->begin = begin;
    inlet->end = end < begin ? begin : end;
    bool is_large = inlet->end - begin >= AHEAD_BYTES;
    if (!take_buffers(inlet, is_large)) {
        free(inlet);
        return pawl_fail_memory(err, BLOCK_BYTES);
    }
    uint64_t from = begin - begin % inlet->piece_bytes;
    inlet->n_pieces = inlet->end == begin
                          ? 0
                          : (inlet->end - from) / inlet->piece_bytes + ((inlet->end - from) % inlet->piece_bytes != 0);
    int code = pthread_mutex_init(&inlet->mutex, NULL);
    if (code == 0 && (code = pthread_cond_init(&inlet->moved, NULL)) != 0)
        (void)pthread_mutex_destroy(&inlet->mutex);
    if (code != 0) {
        give_buffers(inlet);
        free(inlet);
        return pawl_fail_os(err, code, "make threads");
    }
    /* Two files keep a disk busy by a reader each. */
    unsigned wanted = !file->os->takes_threads || inlet->block != NULL ? 0 : at_once > 1 ? 1 : READERS_MAX;
    (void)pthread_mutex_lock(&inlet->mutex);
    while (inlet->n_readers < wanted && pawl_thread_begin(&inlet->readers[inlet->n_readers], read_ahead, inlet) == 0)
        inlet->n_readers++;
    (void)pthread_mutex_unlock(&inlet->mutex);
    *ret_inlet = inlet;
    return PAWL_OK;
}

enum pawl_status
pawl_inlet_next(struct pawl_inlet *inlet, struct pawl_inlet_piece *ret_piece, struct pawl_error *err)
{
    if (inlet->held != NULL)
        pawl_inlet_give(inlet->held);
    inlet->held = NULL;
    if (inlet->to_give == inlet->n_pieces) {
        *ret_piece = (struct pawl_inlet_piece){ inlet->end, inlet->end, NULL };
        return PAWL_OK;
    }
    uint64_t piece = inlet->to_give++;
    struct buffer *buffer = &inlet->buffers[piece % inlet->n_buffers];
    (void)pthread_mutex_lock(&inlet->mutex);
    while (buffer->piece != piece || buffer->holders == 0 || buffer->is_filling) {
        struct buffer *free_one = inlet->n_readers == 0 ? take_free(inlet) : NULL;
        if (free_one != NULL)
            fill(inlet, free_one);
        else
            (void)pthread_cond_wait(&inlet->moved, &inlet->mutex);
    }
    (void)pthread_mutex_unlock(&inlet->mutex);
    inlet->held = buffer;
    if (buffer->status != PAWL_OK) {
        if (err != NULL)
            *err = buffer->error;
        return buffer->status;
    }
    bounds(inlet, piece, &ret_piece->begin, &ret_piece->end);
    ret_piece->data = buffer->has_bytes ? place_of(inlet, buffer, ret_piece->begin) : NULL;
    return PAWL_OK;
}

enum pawl_status
pawl_inlet_load(struct pawl_inlet *inlet, uint64_t at, struct pawl_inlet_piece *piece, struct pawl_error *err)
{
    assert(piece->data == NULL && at >= piece->begin && at < piece->end);
    unsigned char *place = place_of(inlet, inlet->held, at);
    enum pawl_status st = pawl_file_read(inlet->file, at, place, (size_t)(piece->end - at), err);
    if (st == PAWL_OK) {
        piece->begin = at;
        piece->data = place;
    }
    return st;
}

void *
pawl_inlet_share(struct pawl_inlet *inlet)
{
    (void)pthread_mutex_lock(&inlet->mutex);
    inlet->held->holders++;
    (void)pthread_mutex_unlock(&inlet->mutex);
    return inlet->held;
}

void
pawl_inlet_give(void *share)
{
    struct buffer *buffer = share;
    struct pawl_inlet *inlet = buffer->inlet;
    (void)pthread_mutex_lock(&inlet->mutex);
    if (--buffer->holders == 0)
        (void)pthread_cond_broadcast(&inlet->moved);
    (void)pthread_mutex_unlock(&inlet->mutex);
}

void
pawl_inlet_close(struct pawl_inlet *inlet)
{
    if (inlet == NULL)
        return;
    const struct pawl_os *os = inlet->file->os;
    (void)pthread_mutex_lock(&inlet->mutex);
    inlet->is_closing = true;
    (void)pthread_cond_broadcast(&inlet->moved);
    (void)pthread_mutex_unlock(&inlet->mutex);
    for (unsigned i = 0; i < inlet->n_readers; i++)
        (void)pthread_join(inlet->readers[i], NULL);
    if (inlet->direct != NULL)
        (void)os->file_close(os->context, inlet->direct); /* only read from */
    (void)pthread_cond_destroy(&inlet->moved);
    (void)pthread_mutex_destroy(&inlet->mutex);
    give_buffers(inlet);
    free(inlet);
}
