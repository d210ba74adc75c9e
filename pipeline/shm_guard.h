/* Reading a file that somebody else may cut short: the missing pages would end the process with
 * SIGBUS. Between begin and end a thread that runs into such a page sees zeros instead, and end
 * says so. (Wayland's compositors read their clients' memory in this way.)
 *
 * The handler is the process's; it passes on every SIGBUS that is not for it. A thread guards one
 * range at a time. */
#ifndef OCT_PIPELINE_SHM_GUARD_H
#define OCT_PIPELINE_SHM_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Puts the handler in place, if it is not: before the first begin, and again where somebody else
 * may have set one. Any thread that guards nothing. */
void oct_shm_guard_install(void);

void oct_shm_guard_begin(void *memory, size_t bytes);

/* True: pages were missing; the whole range is private zeroed memory from now on. */
bool oct_shm_guard_end(void);

#endif
