/* Recordings closed beside the writing of the next: a thread that syncs, closes and names one file
 * while its owner makes and fills another.
 *
 *     owner:   ... fill A | put A | make B, fill B ............. | put B | ...
 *     thread:                sync A, rename A, sync the folder         sync B ...
 *
 * One file at a time: put waits for the one before, so that at most two writers are open at once
 * and a disk that is too slow holds up the owner, as it should.
 *
 * Threads: one owner calls everything; the two calls come from the closer's thread, between put and
 * the end of the wait that follows it. */
#ifndef OCT_PIPELINE_VOLUME_CLOSER_H
#define OCT_PIPELINE_VOLUME_CLOSER_H

#include "pipeline/base/err.h"
#include "pipeline/volume/volume.h"

#include <stdint.h>

struct oct_volume_closer;

struct oct_volume_closer_calls {
    /* All that can be safe is: oct_volume_written and oct_volume_bytes, which are final now. */
    void (*synced)(void *owner, uint64_t n_written, uint64_t n_bytes);
    /* The writer is gone. why NULL: the file has its final name; else what went wrong first, in
     * syncing or in closing. */
    void (*closed)(void *owner, const struct oct_error *why);
    void *owner;
};

/* OCT_E_NO_MEMORY, OCT_E_IO (no thread); *closer is NULL then. */
enum oct_err oct_volume_closer_create(struct oct_volume_closer **closer,
                                      const struct oct_volume_closer_calls *calls,
                                      struct oct_error *err);

/* Waits for the one before, then takes the writer over and returns. */
void oct_volume_closer_put(struct oct_volume_closer *closer, struct oct_volume_writer *writer);

/* Returns when all that was put is closed and told. */
void oct_volume_closer_wait(struct oct_volume_closer *closer);

/* Waits, then ends the thread. NULL is fine. */
void oct_volume_closer_destroy(struct oct_volume_closer *closer);

#endif
