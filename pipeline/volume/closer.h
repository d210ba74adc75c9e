/* A thread that syncs, closes and names one recording while its owner makes and fills the next.
 *
 *     owner:   ... fill A | put A | make B, fill B ............. | put B | ...
 *     thread:                sync A, rename A, sync the folder         sync B ...
 *
 * It closes one file at a time: put blocks until the file before is closed, so that at most two
 * writers are open at once, and a disk that is too slow blocks the owner, as it should.
 *
 * Threads: one owner calls all functions. The closer's thread makes the two callbacks, between put
 * and the end of the wait that follows it. */
#ifndef OCT_PIPELINE_VOLUME_CLOSER_H
#define OCT_PIPELINE_VOLUME_CLOSER_H

#include "pipeline/base/err.h"
#include "pipeline/volume/volume.h"

#include <stdint.h>

struct oct_volume_closer;

struct oct_volume_closer_calls {
    /* The file was synced: oct_volume_written and oct_volume_bytes, which are final now. */
    void (*synced)(void *owner, uint64_t n_written, uint64_t n_bytes);
    /* The writer is destroyed. why NULL: the file has its final name; else the first failure, in
     * syncing or in closing. */
    void (*closed)(void *owner, const struct oct_error *why);
    void *owner;
};

/* OCT_E_NO_MEMORY, OCT_E_IO (no thread); *closer is NULL then. */
enum oct_err oct_volume_closer_create(struct oct_volume_closer **closer,
                                      const struct oct_volume_closer_calls *calls,
                                      struct oct_error *err);

/* Blocks until the file before is closed, then takes the writer over and returns. */
void oct_volume_closer_put(struct oct_volume_closer *closer, struct oct_volume_writer *writer);

/* Returns when every file that was put is closed and its callbacks have returned. */
void oct_volume_closer_wait(struct oct_volume_closer *closer);

/* Waits, then ends the thread. NULL is fine. */
void oct_volume_closer_destroy(struct oct_volume_closer *closer);

#endif
