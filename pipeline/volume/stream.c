#include "pipeline/volume/stream.h"

#include <string.h>

enum { BLOCK = OCT_VOLUME_BLOCK_BYTES, STAGING = OCT_VOLUME_QUEUE_BYTES };

enum oct_err oct_volume_stream_init(struct oct_volume_stream *stream, struct oct_volume_file *file,
                                    struct oct_volume_queue *queue, uint64_t start,
                                    size_t row_bytes, struct oct_error *err)
{
    *stream = (struct oct_volume_stream){
        .file = file,
        .queue = queue,
        .start = start,
        .row_bytes = row_bytes,
        .base = start,
    };
    if (start % BLOCK != 0)
        return oct_fail(err, OCT_E_ARG, "%s: libhdf5 placed an array at byte %llu, not on a block",
                        file->path, (unsigned long long)start);
    return OCT_OK;
}

/* Writes everything that is held in this thread; of the last block only the bytes that exist. */
static enum oct_err write_held(struct oct_volume_stream *stream, struct oct_error *err)
{
    size_t n = stream->n_held, whole = n / BLOCK * BLOCK;
    enum oct_err e = OCT_OK;
    if (whole > 0)
        e = oct_volume_file_write(stream->file, stream->staging, whole, stream->base, true, err);
    if (e == OCT_OK && n > whole)
        e = oct_volume_file_write(stream->file, stream->staging + whole, n - whole,
                                  stream->base + whole, false, err);
    return e;
}

enum oct_err oct_volume_stream_push(struct oct_volume_stream *stream, struct oct_error *err)
{
    enum oct_err e = oct_volume_queue_wait(stream->queue, err);
    if (e == OCT_OK && stream->n_held > stream->n_pushed)
        e = write_held(stream, err);
    if (e != OCT_OK || stream->n_held == stream->n_pushed)
        return e;
    size_t whole = stream->n_held / BLOCK * BLOCK;
    stream->n_bytes += stream->n_held - stream->n_pushed;
    memmove(stream->staging, stream->staging + whole, stream->n_held - whole);
    stream->base += whole;
    stream->n_held -= whole;
    stream->n_pushed = stream->n_held;
    return OCT_OK;
}

/* Advances the offset of the next byte to `target`. A short gap is filled with zeros in staging; a
 * long one is not written. */
static enum oct_err skip_to(struct oct_volume_stream *stream, uint64_t target,
                            struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (target - stream->base >= STAGING) {
        e = oct_volume_stream_push(stream, err);
        if (e != OCT_OK)
            return e;
    }
    /* The push has left less than a block in staging, so the gap may fit now. */
    if (target - stream->base >= STAGING) {
        stream->base = target / BLOCK * BLOCK;
        stream->n_held = stream->n_pushed = 0;
    }
    size_t held = (size_t)(target - stream->base);
    if (!stream->staging)
        e = oct_volume_queue_take(stream->queue, &stream->staging, err);
    if (e != OCT_OK)
        return e;
    memset(stream->staging + stream->n_held, 0, held - stream->n_held);
    stream->n_held = held;
    return OCT_OK;
}

/* Puts the full block into the queue; append takes another when it has more to store. */
static void hand_over(struct oct_volume_stream *stream)
{
    oct_volume_queue_put(stream->queue, stream->staging, STAGING, stream->base,
                         STAGING - stream->n_pushed);
    stream->staging = NULL;
    stream->base += STAGING;
    stream->n_held = stream->n_pushed = 0;
}

enum oct_err oct_volume_stream_append(struct oct_volume_stream *stream, uint64_t row,
                                      const void *data, struct oct_error *err)
{
    enum oct_err e = skip_to(stream, stream->start + row * stream->row_bytes, err);
    const unsigned char *next = data;
    size_t left = stream->row_bytes;
    while (e == OCT_OK && left > 0) {
        if (!stream->staging)
            e = oct_volume_queue_take(stream->queue, &stream->staging, err);
        if (e != OCT_OK)
            break;
        size_t room = STAGING - stream->n_held;
        size_t n = left < room ? left : room;
        memcpy(stream->staging + stream->n_held, next, n);
        stream->n_held += n;
        next += n;
        left -= n;
        if (stream->n_held == STAGING)
            hand_over(stream);
    }
    return e;
}
