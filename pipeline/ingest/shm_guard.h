/* Reading a file that somebody else may cut short: the missing pages would end the process with
 * SIGBUS. In memory under guard any thread that runs into such a page sees zeros instead, and the
 * guard remembers it. (Wayland's compositors read their clients' memory in this way.)
 *
 * The handler is the process's; it passes on every SIGBUS that is not for it. */
#ifndef OCT_PIPELINE_INGEST_SHM_GUARD_H
#define OCT_PIPELINE_INGEST_SHM_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct oct_shm_guard;

/* Puts the memory under guard. NULL: too many are (at most 16). Any thread. */
struct oct_shm_guard *oct_shm_guard_begin(void *memory, size_t bytes);

/* Pages were missing: the whole memory is private and zero from then on. Any thread. */
bool oct_shm_guard_struck(const struct oct_shm_guard *guard);

/* Before the memory is unmapped; nobody reads it any more. NULL is fine. */
void oct_shm_guard_end(struct oct_shm_guard *guard);

#endif
