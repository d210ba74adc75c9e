/* The blocks of one recording that wait for the disk: a thread writes one while the owner fills the
 * next.
 *
 *     owner:  take a block -> fill it -> put it -> take ...   wait (before a sync)
 *     thread:                              pwrite -> the block is free again
 *
 * Blocks are written one after another in the order they were put. After the first failure nothing
 * more is written: take and wait report it, put discards.
 *
 * Threads: one owner calls everything but oct_volume_queue_bytes. Between a wait that succeeded and
 * the next put the thread does not touch the file, so that the owner may. */
#ifndef OCT_PIPELINE_VOLUME_QUEUE_H
#define OCT_PIPELINE_VOLUME_QUEUE_H

#include "pipeline/base/err.h"
#include "pipeline/volume/file.h"

#include <stddef.h>
#include <stdint.h>

/* Longer blocks make no disk faster. As long as a huge page. */
#define OCT_VOLUME_QUEUE_BYTES ((size_t)2 << 20)

struct oct_volume_queue;

/* n_blocks is what can be taken or under way at once. The file is borrowed and outlives the queue.
 * OCT_E_NO_MEMORY, OCT_E_IO (no thread); *queue is NULL then. */
enum oct_err oct_volume_queue_create(struct oct_volume_queue **queue, struct oct_volume_file *file,
                                     unsigned n_blocks, struct oct_error *err);

/* Lends a block of OCT_VOLUME_QUEUE_BYTES, aligned for direct I/O, its contents undefined; waits
 * for one to become free. At most n_blocks - 1 may be lent when it is called. On failure *block is
 * NULL. */
enum oct_err oct_volume_queue_take(struct oct_volume_queue *queue, unsigned char **block,
                                   struct oct_error *err);

/* Gives a block to be written at `offset`, `bytes` of it, both multiples of OCT_VOLUME_BLOCK_BYTES.
 * Only the last n_new bytes count as written: the others were in the file before. */
void oct_volume_queue_put(struct oct_volume_queue *queue, unsigned char *block, size_t bytes,
                          uint64_t offset, size_t n_new);

/* Returns when all blocks that were put are in the file (not synced), or with the first failure. */
enum oct_err oct_volume_queue_wait(struct oct_volume_queue *queue, struct oct_error *err);

/* New bytes written so far. Any thread. */
uint64_t oct_volume_queue_bytes(struct oct_volume_queue *queue);

/* Waits for what was put, frees all blocks, lent ones too. NULL is fine. */
void oct_volume_queue_destroy(struct oct_volume_queue *queue);

#endif
