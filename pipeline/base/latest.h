/* The newest value that one thread has for another, which neither ever waits for: three copies, of
 * which each side owns one, and the third changes hands.
 *
 *     writer [ back ]   ->  [ between ]  ->   [ front ] reader
 *
 * A writer that is stopped in the middle of a value leaves the one before to the reader. That is
 * what a lock cannot give between threads of which one yields to others.
 *
 * Threads: one at a time on each side. */
#ifndef OCT_PIPELINE_BASE_LATEST_H
#define OCT_PIPELINE_BASE_LATEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct oct_latest {
    size_t bytes;
    unsigned char *copies; /* [3][bytes] */
    unsigned back, front;
    atomic_uint between;
};

/* For values of so many bytes, all zero at first. False: out of memory. */
bool oct_latest_init(struct oct_latest *latest, size_t bytes);
/* Zeroed memory is fine too. */
void oct_latest_finish(struct oct_latest *latest);

void oct_latest_write(struct oct_latest *latest, const void *value);

/* Returns whether it is another than that of the read before. */
bool oct_latest_read(struct oct_latest *latest, void *value);

#endif
