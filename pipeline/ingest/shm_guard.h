/* Guards the reading of a mapped file that another process may truncate: an access to a missing
 * page would end the process with SIGBUS. In guarded memory a thread that accesses such a page
 * reads zeros instead, and the guard records it. (Wayland's compositors read their clients' memory
 * in this way.)
 *
 * The handler is process-wide; it passes every SIGBUS outside guarded memory on to the previous
 * handler. */
#ifndef OCT_PIPELINE_INGEST_SHM_GUARD_H
#define OCT_PIPELINE_INGEST_SHM_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct oct_shm_guard;

/* Guards the memory. NULL: too many regions are guarded (at most 16). Any thread. */
struct oct_shm_guard *oct_shm_guard_begin(void *memory, size_t bytes);

/* Returns whether pages were missing: then the whole memory is private and zero. Any thread. */
bool oct_shm_guard_struck(const struct oct_shm_guard *guard);

/* Ends the guard; call it before the memory is unmapped and after its last reader. NULL is fine. */
void oct_shm_guard_end(struct oct_shm_guard *guard);

#endif
