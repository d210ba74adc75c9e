/* One dataset of a recording as a stream of rows in rising order, written in aligned blocks.
 *
 * Rows are no multiples of a disk block, so they are gathered:
 *
 *     dataset  |--row 0--|--row 1--|--row 2--|  (skipped)  |--row 5--|
 *     file     [block ][block ][block ][block ]  ...   [block ][block ]
 *                        ^ base             ^ base + n_held: where the next byte goes
 *     staging            [================..]
 *
 * staging[0] always lies on a block boundary of the file and staging holds every byte from there
 * on, so that whole blocks are written with O_DIRECT and nothing needs to be read back. A full
 * staging block goes to the queue (volume/queue.h), which writes it while the next is filled. A
 * push in the middle of a block writes the partial block through the page cache and keeps it in
 * staging; it is written again, whole, with the rows that follow. After a jump the first bytes of
 * the block are zeros, as they are in the file, since rows only rise. */
#ifndef OCT_PIPELINE_VOLUME_STREAM_H
#define OCT_PIPELINE_VOLUME_STREAM_H

#include "pipeline/base/err.h"
#include "pipeline/volume/file.h"
#include "pipeline/volume/queue.h"

#include <stddef.h>
#include <stdint.h>

struct oct_volume_stream {
    struct oct_volume_file *file;   /* borrowed, as the queue */
    struct oct_volume_queue *queue; /* of several streams of the file */
    uint64_t start;                 /* the dataset's offset in the file, a multiple of a block */
    size_t row_bytes;
    unsigned char *staging; /* lent by the queue; NULL: nothing is held */
    uint64_t base;          /* file offset of staging[0] */
    size_t n_held;          /* bytes of staging in use */
    size_t n_pushed;        /* leading bytes of it that are in the file already */
    uint64_t n_bytes;       /* new bytes of the dataset that went to the file by pushes */
};

/* start must be a multiple of OCT_VOLUME_BLOCK_BYTES (else OCT_E_ARG). The stream holds at most one
 * block of the queue, which outlives it. */
enum oct_err oct_volume_stream_init(struct oct_volume_stream *stream, struct oct_volume_file *file,
                                    struct oct_volume_queue *queue, uint64_t start,
                                    size_t row_bytes, struct oct_error *err);

/* Copies one row; `row` must be greater than that of every earlier call. May report a failure to
 * write rows before it. */
enum oct_err oct_volume_stream_append(struct oct_volume_stream *stream, uint64_t row,
                                      const void *data, struct oct_error *err);

/* Waits for the queue, then writes all that is held (not synced). */
enum oct_err oct_volume_stream_push(struct oct_volume_stream *stream, struct oct_error *err);

#endif
