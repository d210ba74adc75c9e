/* Safe use of libhdf5: one lock around every call; its printing, its handler at exit and its
 * loading of plug-ins are turned off; its reason for a failure is available as one line. It shows
 * none of HDF5's types. */
#ifndef OCT_PIPELINE_VOLUME_HDF5_LOCK_H
#define OCT_PIPELINE_VOLUME_HDF5_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every call of libhdf5 lies between these two; not recursive. The library keeps its error stack
 * for each thread, so lock also silences the automatic printing of this one. */
void oct_hdf5_lock(void);
void oct_hdf5_unlock(void);

/* Whether there is memory for libhdf5 to make a file. Where an allocation of its own fails it
 * crashes in its error stack, or ends the process with status 255 and without a word (1.10), so it
 * must not be called then. */
bool oct_hdf5_has_memory(void);

/* What libhdf5 says was at the root of its last failure in this thread ("" when it says nothing).
 * Call it under the lock, before the next libhdf5 call. Returns text. */
const char *oct_hdf5_reason(char *text, size_t text_bytes);

/* Closes objects of any kind but files, libhdf5's hid_t, an int64_t; what is below 0 is none. Under
 * the lock. */
void oct_hdf5_close(const int64_t *objects, size_t n);
#define OCT_HDF5_CLOSE(...)                                                                        \
    oct_hdf5_close((const int64_t[]){__VA_ARGS__},                                                 \
                   sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Makes text from a file fit for a terminal: control characters and bytes that are no
 * UTF-8 (a character cut at its end too) become '?'. Returns text. */
char *oct_hdf5_printable(char *text);

#endif
