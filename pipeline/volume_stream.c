#include "pipeline/volume_stream.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = OCT_VOLUME_BLOCK_BYTES };

enum oct_err oct_volume_stream_init(struct oct_volume_stream *stream, struct oct_volume_file *file,
                                    uint64_t start, size_t row_bytes, size_t staging_bytes,
                                    struct oct_error *err)
{
    staging_bytes = (staging_bytes + BLOCK - 1) / BLOCK * BLOCK;
    *stream = (struct oct_volume_stream){
        .file = file,
        .start = start,
        .row_bytes = row_bytes,
        .staging_bytes = staging_bytes,
        .base = start,
    };
    if (start % BLOCK != 0)
        return oct_fail(err, OCT_E_ARG, "%s: libhdf5 placed an array at byte %llu, not on a block",
                        file->path, (unsigned long long)start);
    stream->staging = aligned_alloc(BLOCK, staging_bytes);
    if (!stream->staging)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: no memory for %zu bytes of staging", file->path,
                        staging_bytes);
    return OCT_OK;
}

/* Writes the first n bytes of staging. */
static enum oct_err put(struct oct_volume_stream *stream, size_t n, struct oct_error *err)
{
    size_t whole = n / BLOCK * BLOCK;
    enum oct_err e = OCT_OK;
    if (whole > 0)
        e = oct_volume_file_write(stream->file, stream->staging, whole, stream->base, true, err);
    if (e == OCT_OK && n > whole)
        e = oct_volume_file_write(stream->file, stream->staging + whole, n - whole,
                                  stream->base + whole, false, err);
    if (e == OCT_OK) {
        stream->n_bytes += n - stream->n_pushed;
        stream->n_pushed = n;
    }
    return e;
}

enum oct_err oct_volume_stream_push(struct oct_volume_stream *stream, struct oct_error *err)
{
    if (stream->n_held == stream->n_pushed)
        return OCT_OK;
    enum oct_err e = put(stream, stream->n_held, err);
    if (e != OCT_OK)
        return e;
    size_t whole = stream->n_held / BLOCK * BLOCK;
    memmove(stream->staging, stream->staging + whole, stream->n_held - whole);
    stream->base += whole;
    stream->n_held -= whole;
    stream->n_pushed = stream->n_held;
    return OCT_OK;
}

/* Moves the next byte's place forward to `target`. A short gap is filled with zeros; a long one is
 * jumped over. */
static enum oct_err skip_to(struct oct_volume_stream *stream, uint64_t target,
                            struct oct_error *err)
{
    if (target - stream->base >= stream->staging_bytes) {
        enum oct_err e = oct_volume_stream_push(stream, err);
        if (e != OCT_OK)
            return e;
    }
    /* A push keeps less than a block, so the gap may fit now. */
    if (target - stream->base >= stream->staging_bytes) {
        stream->base = target / BLOCK * BLOCK;
        stream->n_held = stream->n_pushed = 0;
    }
    size_t held = (size_t)(target - stream->base);
    memset(stream->staging + stream->n_held, 0, held - stream->n_held);
    stream->n_held = held;
    return OCT_OK;
}

enum oct_err oct_volume_stream_append(struct oct_volume_stream *stream, uint64_t row,
                                      const void *data, struct oct_error *err)
{
    enum oct_err e = skip_to(stream, stream->start + row * stream->row_bytes, err);
    const unsigned char *next = data;
    size_t left = stream->row_bytes;
    while (e == OCT_OK && left > 0) {
        size_t room = stream->staging_bytes - stream->n_held;
        size_t n = left < room ? left : room;
        memcpy(stream->staging + stream->n_held, next, n);
        stream->n_held += n;
        next += n;
        left -= n;
        if (stream->n_held < stream->staging_bytes)
            continue;
        e = put(stream, stream->n_held, err);
        if (e == OCT_OK) {
            stream->base += stream->n_held;
            stream->n_held = stream->n_pushed = 0;
        }
    }
    return e;
}

void oct_volume_stream_finish(struct oct_volume_stream *stream)
{
    free(stream->staging);
    *stream = (struct oct_volume_stream){0};
}
